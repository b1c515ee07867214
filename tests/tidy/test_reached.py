"""Nothing is promised that is not honoured: every public member and every kind of event is handled and tested.

A member of a public enum of core/ is *handled* when src names it as `Enum.MEMBER` outside the enum itself, and
*tested* when a test names it. A kind of event (an alternative of Arrival, Ruling or Command) is handled when the room
that answers for its family names it. A test module that goes through a whole enum or family says so by listing
it at module level: `REACHES = [Signal]`. What is not reached yet stands in not_yet.toml, a list that only shrinks.
"""

import ast
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest

from tests.tidy.source import PACKAGE, ROOT, Source, dotted, expect_none, source, sources

ENUMS = {"Enum", "Flag", "IntEnum", "IntFlag", "StrEnum"}

# Where a kind of event must be named for a test to answer for it.
ANSWERS = {
    "Arrival": f"{PACKAGE}/kernel/",
    "Ruling": f"{PACKAGE}/kernel/",
    "Command": f"{PACKAGE}/orchestrate/executors/",
}


@dataclass(frozen=True)
class Promise:
    """A member of an enum (`Signal.CANCEL`) or a kind of event (`CallModel`), and the family it belongs to."""

    name: str
    family: str


def promises_of(core: Collection[Source]) -> list[Promise]:
    return [promise for file in core for promise in (*members(file), *kinds(file))]


def members(file: Source) -> Iterator[Promise]:
    """The members of the public enums that a file defines."""
    for node in file.tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and is_enum(node):
            for statement in node.body:
                match statement:
                    case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_"):
                        yield Promise(f"{node.name}.{name}", node.name)


def is_enum(node: ast.ClassDef) -> bool:
    return any(dotted(parent).split(".")[-1] in ENUMS for parent in node.bases)


def kinds(file: Source) -> Iterator[Promise]:
    """The alternatives of the unions Arrival, Ruling and Command."""
    for node in file.tree.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=family), value=ast.expr() as union) if family in ANSWERS:
                pass
            case ast.Assign(targets=[ast.Name(id=family)], value=union) if family in ANSWERS:
                pass
            case _:
                continue
        yield from (Promise(name.id, family) for name in ast.walk(union) if isinstance(name, ast.Name))


def unhandled(promises: Collection[Promise], package: Collection[Source]) -> set[str]:
    """Promises that no code answers for."""

    def is_handled(promise: Promise) -> bool:
        answer = ANSWERS.get(promise.family, f"{PACKAGE}/")
        return is_named(promise, (file for file in package if file.path.startswith(answer)))

    return {promise.name for promise in promises if not is_handled(promise)}


def untested(promises: Collection[Promise], tests: Collection[Source]) -> set[str]:
    """Promises that no test names, by themselves or by their whole family."""
    families = {name for file in tests if "REACHES" in file.text for name in declared_families(file)}
    return {promise.name for promise in promises if promise.family not in families and not is_named(promise, tests)}


def is_named(promise: Promise, files: Iterable[Source]) -> bool:
    """Whether a file uses the name of a promise; only files whose text has it are parsed, which takes long."""
    return any(promise.name in file.text and promise.name in mentions(file) for file in files)


@cache
def mentions(file: Source) -> set[str]:
    """Names and dotted names used in a file; imports do not count, nor does an enum naming its own members."""
    names: set[str] = set()
    for top in file.tree.body:
        own = top.name if isinstance(top, ast.ClassDef) else None
        for node in ast.walk(top):
            if isinstance(node, ast.Name | ast.Attribute) and (name := ".".join(dotted(node).split(".")[-2:])):
                names.update({name, name.split(".")[-1]} if not own or not name.startswith(f"{own}.") else ())
    return names


def declared_families(file: Source) -> Iterator[str]:
    """What a test module says it goes through completely."""
    for node in file.tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="REACHES")], value=ast.List(elts=items) | ast.Tuple(elts=items))
                | ast.AnnAssign(target=ast.Name(id="REACHES"), value=ast.List(elts=items) | ast.Tuple(elts=items))
            ):
                yield from (dotted(item).split(".")[-1] for item in items)


def untrue_entries(listed: Mapping[str, Any], missing: Collection[str], works: Mapping[str, Any]) -> list[str]:
    """What is wrong with not_yet.toml."""
    entries = listed.get("not_yet", [])
    names = [entry["name"] for entry in entries]
    return [
        *([f"ceiling = {listed['ceiling']}, but {len(names)} entries"] if listed["ceiling"] != len(names) else []),
        *(f"{name} is listed twice" for name in sorted(set(names)) if names.count(name) > 1),
        *(f"{name} is reached: strike it and lower the ceiling" for name in names if name not in missing),
        *(f"{e['name']}: {e['work']} is not a work" for e in entries if e["work"] not in works["works"]),
        *(f"{e['name']}: {e['work']} is done" for e in entries if e["work"] in works["done"]),
    ]


@cache
def house() -> tuple[set[str], set[str], dict[str, Any]]:
    """What src does not handle, what tests do not reach, and what is known not to be reached yet."""
    promises = promises_of(sources(f"{PACKAGE}/core"))
    tests = [file for file in sources("tests") if not file.path.startswith("tests/tidy/")]
    listed = tomllib.loads((ROOT / "tests/tidy/not_yet.toml").read_text())
    return unhandled(promises, sources(PACKAGE)), untested(promises, tests), listed


def test_every_promise_is_handled_by_code() -> None:
    missing, _, listed = house()
    expect_none(sorted(missing - {entry["name"] for entry in listed.get("not_yet", [])}))


def test_every_promise_is_reached_by_a_test() -> None:
    _, missing, listed = house()
    expect_none(sorted(missing - {entry["name"] for entry in listed.get("not_yet", [])}))


def test_the_list_of_what_is_not_reached_yet_is_true_and_only_shrinks() -> None:
    not_handled, not_tested, listed = house()
    works = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["remit"]
    expect_none(untrue_entries(listed, not_handled | not_tested, works))


CORE = source(
    "src/remit/core/a.py",
    """
from enum import StrEnum
class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"
    _ignore_ = []
    @property
    def is_red(self): return self is Colour.RED
class _Hidden(StrEnum):
    X = "x"
class Plain:
    Y = 1
Command: TypeAlias = CallModel | CallTool
Arrival = Answered | Failed
""",
)


def test_members_and_kinds_are_collected_from_core() -> None:
    names = [promise.name for promise in promises_of([CORE])]
    assert names == ["Colour.RED", "Colour.BLUE", "CallModel", "CallTool", "Answered", "Failed"]


def test_a_member_that_only_its_enum_names_is_not_handled() -> None:
    colours = [promise for promise in promises_of([CORE]) if promise.family == "Colour"]
    table = source("src/remit/kernel/b.py", "match x:\n    case Colour.BLUE: pass\n")
    assert unhandled(colours, [CORE, table]) == {"Colour.RED"}


def test_a_kind_is_handled_only_where_its_family_is_answered_for() -> None:
    promises = [promise for promise in promises_of([CORE]) if promise.family in ANSWERS]
    imports_only = source(
        "src/remit/orchestrate/executors/tool.py", "from remit.core.journal.commands import CallTool\n"
    )
    executor = source("src/remit/orchestrate/executors/model.py", "async def perform(command: CallModel): pass\n")
    rule = source("src/remit/kernel/rules/model.py", "RULES = {Answered: 1, CallTool: 2, a.Failed: 3}\n")
    assert unhandled(promises, [CORE, imports_only, executor, rule]) == {"CallTool"}


def test_a_promise_is_tested_when_a_test_names_it_or_its_family() -> None:
    promises = promises_of([CORE])
    naming = source("tests/a.py", "def test_a(): assert f(core.Colour.RED) == [CallModel, CallTool]\n")
    looping = source("tests/b.py", "@pytest.mark.parametrize('c', list(Colour))\ndef test_b(c): assert c\n")
    declaring = source("tests/c.py", "REACHES = [Colour, Arrival]\n")
    assert untested(promises, [naming, looping]) == {"Colour.BLUE", "Answered", "Failed"}
    assert untested(promises, [naming, looping, declaring]) == set()


@pytest.mark.parametrize(
    "listed",
    [
        {"ceiling": 0, "not_yet": [{"name": "A.B", "work": "run"}]},
        {"ceiling": 2, "not_yet": [{"name": "A.B", "work": "run"}]},
        {"ceiling": 2, "not_yet": [{"name": "A.B", "work": "run"}, {"name": "A.B", "work": "run"}]},
        {"ceiling": 1, "not_yet": [{"name": "A.REACHED", "work": "run"}]},
        {"ceiling": 1, "not_yet": [{"name": "A.B", "work": "leisure"}]},
        {"ceiling": 1, "not_yet": [{"name": "A.B", "work": "judge"}]},
    ],
)
def test_an_untrue_list_is_found(listed: dict[str, Any]) -> None:
    works = {"works": ["run", "judge"], "done": ["judge"]}
    assert untrue_entries(listed, {"A.B"}, works) != []
    assert untrue_entries({"ceiling": 1, "not_yet": [{"name": "A.B", "work": "run"}]}, {"A.B"}, works) == []
