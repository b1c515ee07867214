"""A run as a tree, in a pipe and at a terminal; its budget as bars; its amounts as people read them."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.adapters.cli.main import main
from remit.adapters.cli.screen.amounts import charges, size
from remit.adapters.cli.screen.bars import BAR_CHARS, COLUMNS_MIN, budget_lines
from remit.adapters.cli.screen.colours import COLUMNS_DEFAULT, Ink, columns_of
from remit.adapters.cli.screen.terminal import Terminal
from remit.adapters.cli.screen.tree import INDENTED, Canvas, tree_lines
from remit.observe.figures import duration, money
from remit.observe.views.explain import Spent
from remit.observe.views.outline import outline
from tests.simulation.play import demo_manifest, demo_world
from tests.unit.adapters.desk import Desk, Screen, calls
from tests.unit.observe.sealed import simulated
from tests.unit.observe.test_linked_turns import read

# Many, or each with a whole command; the quick check has others of its kind.
pytestmark = pytest.mark.slow

REACHES = [Ink]

DEMO = demo_world().finish(demo_manifest())


class Bright(Screen):
    """A terminal that takes every character."""

    encoding = "utf-8"


class Narrow(Screen):
    """A terminal that takes no more than ASCII."""

    encoding = "ascii"


@pytest.fixture(autouse=True)
def coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine says, the terminals here show colours."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


def seen(desk: Desk, screen: Screen, *words: object) -> str:
    """What a terminal shows."""
    kept, sys.stdout = sys.stdout, screen
    try:
        assert main([*map(str, words), "--home", str(desk.home)]) == 0
    finally:
        sys.stdout = kept
    return screen.getvalue()


def texts(lines: Iterator[object]) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]  # type: ignore[attr-defined]


def test_a_pipe_gets_indented_lines_with_every_step_and_the_budget(desk: Desk) -> None:
    desk.waiting()
    desk.say("approve", "last", "--by", "ann")
    said = desk.say("trace", "last").out
    assert "question approval of write" in said
    assert 'tool write {"text":"hello"}  committed  approved by ann' in said
    assert "ended as SUCCESS" in said
    assert "  tool_calls              1 of 50" in said
    assert said.replace("\n", "").isprintable()
    assert not set("├└│█#") & set(said)
    assert "remit show" not in said


WHY = "boundary customer_support demands approval of external effects"


def test_the_demo_is_drawn_line_by_line() -> None:
    lines = texts(tree_lines(outline(DEMO.turns), Canvas(INDENTED, 200, {})))
    assert [line[18:] for line in lines] == [
        "run demo  under customer_support  Order 42 arrived broken. Please refund it.",
        "  prepare  after started",
        "  think  after found  253 ms",
        "    model scripted  253 ms  8 tokens in, 4 out, $0.000004  calls lookup_order, find_order",
        "  act  after called_tools  292 ms",
        '    tool lookup_order {"order_id":"42"}  committed  292 ms',
        '        = {"order_id": "42", "state": "delivered"}',
        '    refused find_order {"order_id":"42"}  TOOL_NOT_FOUND',
        "        because no tool named 'find_order' is registered for this run",
        "  think  after settled  1.4 s",
        "    model scripted  1.4 s  8 tokens in, 4 out, $0.000004  calls refund",
        "  act  after called_tools  45.3 s",
        '    question approval of refund {"order_id":"42"}  approved  by ada  45.0 s',
        f"        because {WHY}",
        '    tool refund {"order_id":"42"}  committed  approved by ada  296 ms  1 external api calls, 1 side effects',
        '        = {"refunded": true}',
        "  think  after settled  912 ms",
        "    model scripted  912 ms  8 tokens in, 4 out, $0.000004",
        "        = Order 42 is refunded.",
        "  check  after answered",
        "  done  after passed",
        "ended as SUCCESS  after 48.2 s and 7 turns",
    ]


def test_no_line_of_any_run_is_wider_than_the_terminal_or_obeyed_by_it() -> None:
    for seed in range(10):
        for run in simulated(seed):
            for columns in (40, 100):
                lines = texts(tree_lines(outline(read(run.data)), Canvas(INDENTED, columns, {})))
                assert max(map(len, lines)) <= columns
                assert all(line.isprintable() for line in lines)


def test_a_terminal_shows_branches_colours_and_bars(desk: Desk) -> None:
    desk.waiting()
    shown = seen(desk, Bright(), "trace", "last")
    assert "├─ " in shown
    assert "└─ " in shown
    assert "█░" in shown
    assert "\x1b[33m" in shown
    assert "a turn in full: remit show " in shown


def test_a_terminal_without_unicode_gets_the_same_in_ascii(desk: Desk) -> None:
    desk.waiting()
    shown = seen(desk, Narrow(), "trace", "last")
    assert "|- " in shown
    assert "`- " in shown
    assert "#." in shown


def test_a_user_who_wants_no_colours_gets_none(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.ended()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in seen(desk, Bright(), "trace", "last")
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in seen(desk, Bright(), "trace", "last")


def test_the_runs_beneath_are_drawn_where_they_were_started(desk: Desk) -> None:
    run_id = desk.delegating()
    said = desk.say("trace", run_id).out
    lines = said.splitlines()
    child = next(number for number, line in enumerate(lines) if "child helper" in line)
    assert "waits for a person, first for CONFIRM_REQUIRED" in lines[child]
    assert "question approval of write" in "\n".join(lines[child:])
    assert said.count("prepare") == 2


def test_a_run_beneath_that_is_gone_is_said_to_be(desk: Desk) -> None:
    run_id = desk.delegating()
    desk.say("signal", run_id, "cancel")
    (child,) = desk.say("show", run_id, "--json").values["children"]
    desk.say("delete", child["run_id"])
    assert f"run {child['run_id']} is not kept here" in desk.say("trace", run_id).out


def test_only_the_last_turns_are_shown_on_demand(desk: Desk) -> None:
    script = desk.script(calls("look", place="here"), "Done.")
    desk.say("run", "Look", "--engine", script, "--tools", desk.tools())
    assert "... 3 earlier turns are left out" in desk.say("trace", "last", "--last", "1").out
    assert len(desk.say("trace", "last", "--last", "1", "--json").rows) == 1
    assert desk.say("trace", "last", "--last", "1", "--turns").out.startswith("  3 ")
    said = desk.say("trace", "last", "--last", "-1", "--json")
    assert (said.code, said.error) == (2, "USAGE")


def test_the_turns_themselves_are_listed_on_demand_and_for_programs(desk: Desk) -> None:
    desk.ended("\x1b[31mred")
    lines = desk.say("trace", "last", "--turns").out
    assert "RunStarted" in lines
    assert "\\x1b[31mred" in lines
    assert "\x1b" not in lines
    rows = desk.say("trace", "last", "--json").rows
    assert [row["seq"] for row in rows] == [0, 1]
    assert rows[1]["settled"][0]["kind"] == "model"


def test_what_people_said_and_a_second_attempt_are_shown(desk: Desk) -> None:
    replies = [{"error": "INFERENCE_ENGINE_ERROR"}, calls("write", text="x"), "Done."]
    desk.say("run", "Look", "--engine", desk.script(*replies), "--tools", desk.tools())
    desk.say("signal", "last", "feedback", "be brief", "--by", "ann")
    said = desk.say("trace", "last").out
    assert "attempt 2" in said
    assert "failed, tried again  INFERENCE_ENGINE_ERROR" in said
    assert "signal feedback  by ann" in said
    assert "> be brief" in said


def test_an_ending_says_why_it_came(desk: Desk) -> None:
    desk.say("run", "Hi", "--engine", desk.script({"error": "INFERENCE_CONTEXT_EXCEEDED"}))
    (line,) = [line for line in desk.say("trace", "last").out.splitlines() if "ended as" in line]
    assert "(INFERENCE_CONTEXT_EXCEEDED)  after" in line
    assert line.endswith("turns: the script says so in answer 1, attempt 1")


@pytest.mark.parametrize(
    ("used", "cap", "filled"),
    [(0, 10, 0), (0, 0, 0), (1, 1_000, 1), (5, 10, 10), (999, 1_000, 19), (10, 10, 20), (12, 10, 20)],
)
def test_a_bar_is_full_only_where_nothing_is_left_and_empty_only_where_nothing_is_used(
    used: int, cap: int, filled: int
) -> None:
    (line,) = budget_lines(Terminal(Bright(), None), [Spent("steps", used, cap)])
    bar = line[1][0].strip()
    assert (bar.count("█"), len(bar)) == (filled, BAR_CHARS)
    assert line[2][0] == f"{used:,} of {cap:,}"


def test_a_budget_that_is_nearly_used_up_or_overdrawn_looks_so() -> None:
    spent = [Spent("steps", 1, 10), Spent("steps", 8, 10), Spent("steps", 11, 10, reserved=2)]
    lines = list(budget_lines(Terminal(Bright(), None), spent))
    assert [line[1][1] for line in lines] == [Ink.GOOD, Ink.WAITS, Ink.BAD]
    assert lines[2][2][0] == "11 of 10, 2 reserved"


@pytest.mark.parametrize(
    ("ms", "said"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (59_900, "59.9 s"),
        (60_000, "1 min"),
        (61_000, "1 min 01 s"),
        (7_500_000, "2 h 05 min"),
        (90_000_000, "1 d 01 h"),
    ],
)
def test_a_duration_has_the_unit_that_suits_it(ms: int, said: str) -> None:
    assert duration(ms) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_500, "1.5 kB"), (98_400_000, "98.4 MB"), (2 * 10**9, "2.0 GB")],
)
def test_a_size_has_the_unit_that_suits_it(count: int, said: str) -> None:
    assert size(count) == said


@pytest.mark.parametrize(("microusd", "said"), [(4, "$0.000004"), (1_500_000, "$1.50"), (2_000_000_000, "$2,000.00")])
def test_money_is_told_to_the_last_millionth(microusd: int, said: str) -> None:
    assert money(microusd) == said


def test_charges_name_what_was_counted_even_what_nobody_here_knows() -> None:
    assert charges(()) == ""
    assert charges(((2, 1),)) == "", "one call of a tool is what a tool call is"
    assert charges(((0, 1_000), (1, 5), (2, 3), (99, 7))) == "1,000 tokens in, 5 out, 3 tool calls, 7 of dimension 99"


def test_a_terminal_that_does_not_say_how_wide_it_is_has_a_usual_width(tmp_path: Path) -> None:
    assert columns_of(Terminal(None, None)) == COLUMNS_DEFAULT
    assert columns_of(Terminal(io.StringIO(), None)) == COLUMNS_DEFAULT


def test_a_narrow_terminal_shows_the_numbers_without_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = [Spent("steps", 5, 100)]
    monkeypatch.setattr(Terminal, "columns", COLUMNS_MIN)
    assert "█" in "".join(text for line in budget_lines(Terminal(Bright(), None), spent) for text, _ in line)
    monkeypatch.setattr(Terminal, "columns", COLUMNS_MIN - 1)
    (line,) = budget_lines(Terminal(Bright(), None), spent)
    assert "".join(text for text, _ in line).split() == ["steps", "5", "of", "100"]


def test_the_trace_of_a_run_that_has_not_ended_closes_with_how_show_says_that_it_stands(desk: Desk) -> None:
    run_id = desk.waiting()
    assert "  waits: CONFIRM_REQUIRED at act  after " in desk.say("trace", run_id).out
    desk.say("signal", run_id, "pause", "--by", "ann")
    desk.say("reject", run_id, "--by", "ann")
    assert "stands      paused at act by ann\n" in desk.say("show", run_id).out
    assert "  paused at act by ann  after " in desk.say("trace", run_id).out
