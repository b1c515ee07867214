"""Guards: what a condition may say, and what becomes of one that says something else."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from remit.core.limits.budget import FIELDS
from remit.kernel.graph.edge_conditions import GUARD_NAMES, GUARD_VIEW, parse_guard
from remit.kernel.graph.expressions import (
    GUARD_CHARS_MAX,
    GUARD_FUNCTIONS,
    GuardFault,
    GuardRefused,
    GuardType,
    Program,
    condition_holds,
)

VIEW = {
    name: {GuardType.STRING: "text", GuardType.INT: 5, GuardType.BOOL: True}[kind] for name, kind in GUARD_VIEW.items()
}
DOCS = Path(__file__).parents[3] / "docs" / "graphs.md"


def refusal_of(source: str) -> GuardRefused:
    with pytest.raises(GuardRefused) as caught:
        parse_guard(source)
    return caught.value


@pytest.mark.req("4.19")
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("visits > 4", True),
        ("visits > 5", False),
        ("visits >= 5 && visits <= 5 && visits != 6", True),
        ('outcome == "text" || left_steps < 1', True),
        ('last_tool in ["text", "other"]', True),
        ("!repaired", False),
        ("repaired ? visits == 5 : false", True),
        ("(visits + 1) * 2 - 2 == 10 && visits / 2 == 2 && visits % 2 == 1 && -visits < 0", True),
        ('last_tool.startsWith("te") && last_tool.endsWith("xt") && last_tool.contains("ex")', True),
        ('last_tool.matches("^t.*t$") && size(last_tool) == 4', True),
    ],
)
def test_a_condition_is_judged_by_the_view(source: str, expected: bool) -> None:
    assert condition_holds(parse_guard(source), VIEW) is expected


@pytest.mark.parametrize("name", GUARD_VIEW)
def test_every_name_of_the_view_can_be_used_with_its_type(name: str) -> None:
    comparison = {GuardType.STRING: f'{name} == "text"', GuardType.INT: f"{name} == 5", GuardType.BOOL: name}
    assert condition_holds(parse_guard(comparison[GUARD_VIEW[name]]), VIEW) is True


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("true", ()),
        ("visits>4&&.repaired", ("visits", "repaired")),
        ("left_steps < 1 || visits < 1", ("visits", "left_steps")),
        ("left_depth > 0", ("depth", "left_depth")),
        ('outcome == "visits" // turns', ("outcome", "visits", "turns")),
        ('"a"in[last_tool]', ("last_tool",)),
    ],
)
def test_a_program_knows_every_name_that_stands_in_its_text(source: str, names: tuple[str, ...]) -> None:
    program = parse_guard(source)
    assert program.names == names
    assert condition_holds(program, {name: VIEW[name] for name in names}) is condition_holds(program, VIEW)


def test_the_view_is_small_and_shows_what_is_left_of_every_dimension() -> None:
    # The whole view fits on one page. A dimension brings a name of its own, which explains itself.
    assert len(GUARD_VIEW) == len(GUARD_NAMES) <= 25 + len(FIELDS)
    assert {f"left_{field}" for field in FIELDS} <= set(GUARD_VIEW)


@pytest.mark.parametrize(
    ("source", "fault", "line", "column"),
    [
        ("visits >", GuardFault.UNREADABLE, 1, 9),
        ("", GuardFault.UNREADABLE, 1, 1),
        ("(" * 100 + "repaired" + ")" * 100, GuardFault.UNREADABLE, 0, 0),
        ("visit > 1", GuardFault.NAME_UNKNOWN, 1, 1),
        ("repaired &&\n  visit > 1", GuardFault.NAME_UNKNOWN, 2, 3),
        ('outcome == "é😀" && visit > 1', GuardFault.NAME_UNKNOWN, 1, 20),
        ("timestamp(0) == timestamp(1)", GuardFault.NAME_UNKNOWN, 1, 10),
        ("dyn(visits) == 1", GuardFault.NAME_UNKNOWN, 1, 4),
        ("outcome[0] == outcome", GuardFault.TYPE_MISMATCH, 1, 8),
        ('visits > "a"', GuardFault.TYPE_MISMATCH, 1, 8),
        ("visits.left > 1", GuardFault.TYPE_MISMATCH, 1, 7),
        ("visits", GuardFault.NOT_BOOL, 0, 0),
        ('outcome == "\ud800"', GuardFault.NOT_TEXT, 1, 13),
        ('{"a": 1} == {"a": 1}', GuardFault.HAS_BRACES, 1, 1),
        ("repaired ||\nvisits in {1: 2}", GuardFault.HAS_BRACES, 2, 11),
        ('outcome == "}"', GuardFault.HAS_BRACES, 1, 13),
        ("[1, 2].exists(n, n == visits)", GuardFault.HAS_COMPREHENSION, 1, 15),
        ("x" * (GUARD_CHARS_MAX + 1), GuardFault.TOO_LONG, 0, 0),
    ],
)
def test_a_bad_condition_is_refused_with_a_code_and_a_position(
    source: str, fault: GuardFault, line: int, column: int
) -> None:
    refused = refusal_of(source)
    assert (refused.fault, refused.line, refused.column) == (fault, line, column)
    assert refused.code == fault.value


def test_every_fault_is_reached_by_some_condition() -> None:
    sources = ["x" * 1001, '"\ud800"', "{", "[1].map(n, n) == [1]", "visits >", "visit > 1", "visits.a", "visits"]
    assert {refusal_of(source).fault for source in sources} == set(GuardFault)


@pytest.mark.parametrize(
    "macro", ["all(n, n)", "exists(n, n)", "exists_one(n, n)", "map(n, n) == []", "filter(n, n) == []"]
)
def test_no_comprehension_gets_through(macro: str) -> None:
    assert refusal_of(f"[true].{macro}").fault is GuardFault.HAS_COMPREHENSION


def test_a_refusal_names_the_word_it_does_not_know_and_the_nearest_it_does() -> None:
    message = refusal_of("visit > 1").message
    assert "'visit'" in message
    assert "'visits'" in message


def test_a_refusal_names_a_function_it_does_not_know() -> None:
    assert "'zzz'" in refusal_of('repaired && outcome.zzz("a")').message


def test_no_text_of_the_library_is_kept() -> None:
    for source in ("visits >", "visit > 1", 'visits > "a"'):
        refused = refusal_of(source)
        assert "<input>" not in refused.message
        assert "INVALID_ARGUMENT" not in refused.message
        assert refused.__cause__ is None
        assert set(refused.details) <= {"line", "column"}


@pytest.mark.parametrize(
    ("source", "view"),
    [
        ("visits / 0 == 1", VIEW),
        ("visits + 9223372036854775807 > 0", VIEW),
        ('last_tool.matches("(")', VIEW),
        ("visits > 1", {}),
        ("visits > 1", {"visits": None}),
        ("visits > 1", {"visits": "many"}),
        ("visits > 1", {"visits": 2**70}),
        ("repaired", {"repaired": "yes"}),
    ],
)
def test_a_condition_without_a_value_is_neither_true_nor_false(source: str, view: dict[str, object]) -> None:
    assert condition_holds(parse_guard(source), view) is None


def test_a_limit_of_the_library_leaves_the_condition_undecided() -> None:
    from cel_expr_python import cel

    ones = "[" + ",".join(["1"] * 200) + "]"
    program = Program("", cel.NewEnv(variables={}).compile(f"{ones}.all(a, {ones}.all(b, a == b))"), ())
    assert condition_holds(program, {}) is None


def test_an_error_that_does_not_matter_does_not_matter() -> None:
    assert condition_holds(parse_guard("repaired || visits / 0 == 1"), VIEW) is True


def test_the_longest_condition_is_still_read() -> None:
    source = "repaired" + " " * (GUARD_CHARS_MAX - len("repaired"))
    assert condition_holds(parse_guard(source), VIEW) is True


def test_the_same_condition_is_compiled_once() -> None:
    assert parse_guard("visits == 77") is parse_guard("visits == 77")


def test_the_functions_leave_out_clocks_conversions_and_escapes_from_the_type_check() -> None:
    assert not {"timestamp", "duration", "dyn", "type", "getHours", "string", "int"} & set(GUARD_FUNCTIONS)


def test_a_graph_without_conditions_never_loads_the_library() -> None:
    code = (
        "import sys; from remit.kernel.graph.compiled import compile_graph;"
        "from remit.orchestrate.patterns.chat_graph import chat_graph;"
        "compile_graph(chat_graph()); sys.exit('cel_expr_python' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_documentation_lists_exactly_the_names_of_the_view() -> None:
    table = "\n".join(f"| `{entry.name}` | {entry.type} | {entry.meaning} |" for entry in GUARD_NAMES)
    text = DOCS.read_text(encoding="utf-8")
    assert table in text
    assert len(re.findall(r"^\| `\w+` \| (?:string|int|bool) \|", text, re.MULTILINE)) == len(GUARD_NAMES)
