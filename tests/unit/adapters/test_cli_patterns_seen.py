"""Plans and votes as the command line shows them: in a pipe, at a terminal of any width, to programs."""

import sys

import pytest

from remit.adapters.cli.main import main
from remit.adapters.cli.screen.amounts import usage
from remit.adapters.cli.screen.colours import COLUMNS_DEFAULT, Ink, wrapped_lines, wrapped_text
from remit.adapters.cli.screen.glance import LISTED_MAX
from remit.adapters.cli.screen.terminal import Terminal
from remit.adapters.cli.screen.tree import BRANCHES, INDENTED, Canvas, tree_lines
from remit.adapters.cli.screen.widths import cells
from remit.agents.plan_executor import PlanExecutor
from remit.agents.redundant_loop import RedundantLoop
from remit.core.run.usage import TokenUsage
from remit.core.work.plan import ExecutionPlan, PlanTrace, Step
from tests.unit.adapters.desk import Desk, Screen
from tests.unit.observe.patterned import FAILS, GOOD, HOSTILE, QUESTION, SCHEMA, InTurn, Ran, handlers, planned, voted

NARROW = 60


def texts(ran: Ran, columns: int = 200) -> list[str]:
    canvas = Canvas(INDENTED, columns, ran.children)
    return ["".join(text for text, _ in line) for line in tree_lines(ran.outline, canvas)]


class Bright(Screen):
    """A terminal that takes every character."""

    encoding = "utf-8"


def seen(desk: Desk, screen: Screen, *words: str) -> None:
    """Let a terminal show something."""
    kept, sys.stdout = sys.stdout, screen
    try:
        assert main([*words, "--home", str(desk.home)]) == 0
    finally:
        sys.stdout = kept


def plan(desk: Desk, *steps: Step, replies: tuple[object, ...] = ("It is 72 m tall.",)) -> str:
    executor = PlanExecutor(handlers(replies, lambda text: None), home=desk.home)  # type: ignore[arg-type]
    return executor.execute_sync(ExecutionPlan(steps), prompt=QUESTION).response.run_id


# The tree.


def test_a_tree_tells_the_steps_of_a_plan_in_plain_words() -> None:
    ran = planned(Step("find", "find"), Step("order", "rerank"), Step("answer", "infer"))
    lines = [line[18:].strip() for line in texts(ran)]
    assert "step order  gave 3 candidates" in lines
    assert "step answer  gave a text" in lines
    child = next(line for line in lines if line.startswith("child step answer  answered  "))
    assert next(iter(ran.children)) in child
    inside = next(place for place, line in enumerate(lines) if line.startswith("think  after found"))
    assert lines.index(child) < inside < lines.index("step answer  gave a text")


def test_a_tree_numbers_replicas_says_which_failed_and_who_won() -> None:
    lines = [line[18:].strip() for line in texts(voted(GOOD, FAILS, GOOD))]
    assert any(line.startswith("child replica 2  failed  INFERENCE_CONTEXT_EXCEEDED  ") for line in lines)
    assert "vote 2 of 2 answers agree (100 %): replica 1 wins" in lines
    assert "replica  after undecided" in " ".join(lines)


@pytest.mark.parametrize("columns", [40, 80])
def test_no_line_of_a_plan_is_too_wide_or_obeyed(columns: int) -> None:
    ran = planned(Step(f"find {HOSTILE}", "find"), Step("boom", "break"))
    lines = texts(ran, columns)
    assert max(map(len, lines)) <= columns
    assert all(line.isprintable() for line in lines)


# A glance.


def test_show_says_what_each_step_gave_and_which_are_not_finished(desk: Desk) -> None:
    run_id = plan(desk, Step("find", "find"), Step("answer", "infer"), Step("boom", "break"), Step("never", "count"))
    said = desk.say("show", run_id).out
    assert "steps       find (find) gave 3 candidates: doc 1: text 1 \\x1b[2J" in said
    assert "            answer (infer) gave a text: It is 72 m tall." in said
    assert "            boom (break) failed" in said
    assert "            never (count) not begun" in said
    assert "SUCCESS  step answer" in said
    assert HOSTILE not in said
    steps = desk.say("show", run_id, "--json").values["explanation"]["steps"]
    assert [step["status"] for step in steps] == ["finished", "finished", "failed", "not begun"]


def test_show_says_of_a_plan_that_failed_that_what_was_finished_last_is_no_answer(desk: Desk) -> None:
    failed = plan(desk, Step("answer", "infer"), Step("boom", "break"))
    assert desk.say("show", failed).out.endswith("\n\nfinished last, and no answer:\nIt is 72 m tall.\n")
    done = plan(desk, Step("answer", "infer"))
    assert "no answer:" not in desk.say("show", done).out
    assert desk.say("show", done).out.endswith("\n\nIt is 72 m tall.\n")


def test_show_says_of_any_other_run_that_failed_that_what_was_said_last_is_no_answer(desk: Desk) -> None:
    rules = desk.file("rules.yaml", "name: a\nrules: [{name: polite, check: must_mention, words: [please]}]")
    desk.say("run", "Hi", "--engine", desk.script("Never."), "--rules", rules)
    assert desk.say("show", "last").out.endswith("\n\nsaid last, and no answer:\nNever.\n")


def test_show_says_who_made_a_plan_and_why(desk: Desk) -> None:
    def made(*steps: Step, rationale: str) -> str:
        trace = PlanTrace(f"me {HOSTILE}", rationale)
        executor = PlanExecutor(handlers(("never asked",), lambda text: None), home=desk.home)
        return executor.execute_sync(ExecutionPlan(steps, trace), prompt=QUESTION).response.run_id

    run_id = made(Step("a", "count", "x"), Step("b", "count", "x"), rationale=f"counting {HOSTILE} suffices")
    said = desk.say("show", run_id).out
    line = next(line for line in said.splitlines() if line.startswith("plan "))
    assert line.startswith("plan        by me ")
    assert ": 2 steps, counting " in line
    assert HOSTILE not in said
    assert desk.say("show", run_id, "--json").values["plan"]["step_count"] == 2
    alone = desk.say("show", made(Step("a", "count", "x"), rationale="")).out
    assert next(line for line in alone.splitlines() if line.startswith("plan ")).endswith(": 1 step")
    assert desk.say("show", desk.ended(), "--json").values["plan"] is None


def test_show_says_how_often_a_step_was_begun_and_sent_back(desk: Desk) -> None:
    said: list[str] = []

    def once(text: str) -> tuple[str, ...]:
        said.append(text)
        return ("again",) if len(said) == 1 else ()

    work = handlers(["one", "two"], once)
    steps = (Step("answer", "infer"), Step("judge", "validate", retries=1))
    run_id = PlanExecutor(work, home=desk.home).execute_sync(ExecutionPlan(steps), prompt="go").response.run_id
    shown = desk.say("show", run_id).out
    assert "answer (infer, begun 2 times) gave a text: two" in shown
    assert "judge (validate, begun 2 times, sent back 1) gave a text: two" in shown


def test_show_counts_the_steps_that_are_too_many(desk: Desk) -> None:
    steps = [Step(f"s{n}", "count", "x") for n in range(LISTED_MAX + 2)]
    assert f"            and 2 steps more{chr(10)}" in desk.say("show", plan(desk, *steps)).out


def test_show_says_how_surely_a_vote_was_won_and_what_the_models_used(desk: Desk) -> None:
    reply = {"text": GOOD, "usage": {"prompt_tokens": 20, "output_tokens": 10, "duration_ms": 250}}
    loop = RedundantLoop(InTurn(reply, FAILS, reply), schema=SCHEMA, home=desk.home)
    run_id = loop.call_sync("How is it?").response.run_id
    said = desk.say("show", run_id).out
    assert "confidence  100 % by voting" in said
    assert "usage       40 tokens in, 20 out; 40 a second" in said
    names = [line.split()[-1] for line in said.splitlines() if line.startswith("child ")]
    assert names == ["1", "2", "3"]
    assert "redundant  session" in desk.say("runs").out


def test_a_narrow_terminal_breaks_lines_between_words(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(Terminal, "columns", NARROW)
    narrow = Bright()
    run_id = plan(desk, Step("find", "find"), Step("answer", "infer"), replies=("word " * 40,))
    for words in (["show", run_id], ["runs"], ["explain", run_id], ["trace", run_id], ["trace", run_id, "--turns"]):
        seen(desk, narrow, *words)
    lines = narrow.getvalue().splitlines()
    assert max(map(cells, lines)) <= NARROW
    shown = narrow.getvalue()
    assert "wor\n" not in shown
    assert "\nd word" not in shown
    assert HOSTILE not in shown


# Lines that are too long.


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        ("one two three", 8, ["one two", "three"]),
        ("", 5, [""]),
        ("abcdefghij k", 4, ["abcd", "efgh", "ij k"]),
        ("日本語 日本", 4, ["日本", "語", "日本"]),
        ("a  b", 10, ["a  b"]),
    ],
)
def test_a_text_is_broken_between_words_and_within_one_only_where_it_must(
    text: str, columns: int, lines: list[str]
) -> None:
    assert wrapped_text(text, columns) == lines


def test_what_is_no_terminal_gets_its_lines_whole() -> None:
    long = [[("name  ", Ink.NAME), ("word " * 100, Ink.PLAIN)]]
    assert list(wrapped_lines(Terminal(None, None), long, 4)) == long
    shown = list(wrapped_lines(Terminal(Bright(), None), long, 4))
    assert all(sum(len(text) for text, _ in line) <= COLUMNS_DEFAULT for line in shown)
    assert shown[1][0] == ("    ", Ink.PLAIN)


# Amounts.


@pytest.mark.parametrize(
    ("used", "said"),
    [
        (TokenUsage(), ""),
        (TokenUsage(1_000, 0, 20), "1,000 tokens in, 20 out"),
        (TokenUsage(10, 5, 20, duration_ms=1_000), "10 tokens in, 25 out (5 thought); 25 a second"),
        (TokenUsage(10, 0, 2, 12, 4_096, 1_000), "10 tokens in, 2 out; 2.0 a second; at most 12 of 4,096 in context"),
    ],
)
def test_usage_is_told_with_its_rate_where_the_time_is_known(used: TokenUsage, said: str) -> None:
    assert usage(used) == said


def test_branches_are_drawn_down_to_the_replicas() -> None:
    ran = voted(GOOD)
    lines = list(tree_lines(ran.outline, Canvas(BRANCHES, 80, ran.children)))
    assert any("│     └─ done" in "".join(text for text, _ in line) for line in lines)
