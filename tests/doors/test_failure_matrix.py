"""Which failures each of the four patterns can emit, and which it recovers from, row by row, through the public classes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit import (
    Budget,
    InferHandler,
    PlanExecutor,
    RerankHandler,
    Step,
    SystemResponse,
    ToolHandler,
    ValidateHandler,
    tool,
)
from remit.core.failure import Ending
from remit.core.failure_families import FailureCategory
from remit.validate.rule_set import MustMention, Rule, RuleSet
from tests.doors.desk import MOOD, Desk, Panel, call

GOOD, BAD, FENCED, NO_JSON = '{"mood":"good"}', '{"mood":"bad"}', '```json\n{"mood": "good",}\n```', "no idea"
BROKEN = {"error": "INFERENCE_ENGINE_ERROR"}
LATE = {"text": "late", "delay_ms": 60_000}
CHEERFUL = RuleSet("cheerful", (Rule("good news", MustMention(("good",))),))
NO_RETRIES, NO_TIME = Budget(retries=0), Budget(wall_clock_ms=300)


class Scale:
    """A scale that fails as often as it is told to and then works."""

    def __init__(self, failures: int) -> None:
        self.failures = failures

    def tool(self) -> Any:
        """The scale as a tool."""

        @tool(effect="read", network=False)
        def weigh() -> int:
            """Weigh a lamp."""
            self.failures -= 1
            if self.failures >= 0:
                raise OSError("the scale is stuck")
            return 3

        return weigh


def planned(desk: Desk, *steps: Step, engine: Any = None, failures: int = 0, **terms: Any) -> SystemResponse:
    """What a plan comes to with the usual handlers."""
    handlers: dict[str, Any] = {
        "infer": InferHandler(engine or Panel(GOOD)),
        "tool": ToolHandler([Scale(failures).tool()]),
        "validate": ValidateHandler(lambda text: "bad" not in text or "it is bad"),
        "rerank": RerankHandler(lambda query, candidates: candidates),
        "shout": lambda step: str(step.input).upper(),
    }
    executor = PlanExecutor(handlers, home=desk.folder / "store", **terms)
    return executor.execute_sync(list(steps)).response


ASK = Step("ask", "infer", "What is the mood?", schema=MOOD)
WEIGH = Step("weigh", "tool", {}, tool="weigh")

EMITTED: dict[tuple[str, FailureCategory], Callable[[Desk], SystemResponse]] = {
    ("chat", FailureCategory.INFERENCE): lambda desk: desk.chat(BROKEN, budget=NO_RETRIES),
    ("chat", FailureCategory.TOOL): lambda desk: desk.chat(call("weigh"), tools=[Scale(9).tool()], budget=NO_RETRIES),
    ("chat", FailureCategory.CANCELLATION): lambda desk: desk.chat(LATE, budget=NO_TIME),
    ("structured", FailureCategory.INFERENCE): lambda desk: desk.shaped(BROKEN, budget=NO_RETRIES),
    ("structured", FailureCategory.CONSTRAINT): lambda desk: desk.shaped({"text": NO_JSON}),
    ("structured", FailureCategory.VALIDATION): lambda desk: desk.shaped({"text": BAD}, rules=CHEERFUL),
    ("structured", FailureCategory.CANCELLATION): lambda desk: desk.shaped(LATE, budget=NO_TIME),
    ("plan", FailureCategory.INFERENCE): lambda desk: planned(
        desk, ASK, engine=Panel("INFERENCE_ENGINE_ERROR"), budget=NO_RETRIES
    ),
    ("plan", FailureCategory.TOOL): lambda desk: planned(desk, WEIGH, failures=9),
    ("plan", FailureCategory.CONSTRAINT): lambda desk: planned(desk, ASK, engine=Panel(NO_JSON)),
    ("plan", FailureCategory.VALIDATION): lambda desk: planned(desk, Step("look", "validate", "all bad")),
    ("plan", FailureCategory.ORCHESTRATION): lambda desk: planned(desk, Step("a", "shout", "x"), Step("b", "rerank")),
    ("plan", FailureCategory.CANCELLATION): lambda desk: planned(
        desk, Step("ask", "infer", "hello"), engine=desk.engine(LATE), budget=NO_TIME
    ),
    ("vote", FailureCategory.INFERENCE): lambda desk: desk.voted("INFERENCE_ENGINE_ERROR", budget=NO_RETRIES),
    ("vote", FailureCategory.CONSTRAINT): lambda desk: desk.voted(NO_JSON),
    ("vote", FailureCategory.ORCHESTRATION): lambda desk: desk.voted(GOOD, GOOD, BAD, voting="unanimity"),
}

RECOVERED: dict[str, Callable[[Desk], SystemResponse]] = {
    "a chat from a tool that failed": lambda desk: desk.chat(
        call("weigh"), call("weigh"), {"text": "It weighs 3."}, tools=[Scale(1).tool()]
    ),
    "a structured call from a shape, by repair": lambda desk: desk.shaped({"text": FENCED}),
    "a structured call from a shape, by asking again": lambda desk: desk.shaped({"text": NO_JSON}, {"text": GOOD}),
    "a structured call from a rule": lambda desk: desk.shaped({"text": BAD}, {"text": GOOD}, rules=CHEERFUL),
    "a plan from a shape": lambda desk: planned(desk, ASK, engine=Panel(NO_JSON, GOOD)),
    "a plan from a check": lambda desk: planned(
        desk, ASK, Step("look", "validate", retries=1), engine=Panel(BAD, GOOD)
    ),
    "a plan from a tool": lambda desk: planned(desk, Step("weigh", "tool", {}, tool="weigh", retries=1), failures=1),
    "a vote from a replica that failed": lambda desk: desk.voted(
        "INFERENCE_ENGINE_ERROR", GOOD, GOOD, budget=NO_RETRIES
    ),
    "a vote from a shape": lambda desk: desk.voted(FENCED, GOOD, FENCED),
}


@pytest.mark.req("0.27")
@pytest.mark.parametrize(("pattern", "category"), EMITTED)
def test_a_pattern_emits_failures_of_this_category(pattern: str, category: FailureCategory, tmp_path: Path) -> None:
    error = EMITTED[pattern, category](Desk(tmp_path)).error
    assert error is not None
    assert error.category is category, error


@pytest.mark.req("0.27")
@pytest.mark.parametrize("way", RECOVERED)
def test_a_pattern_recovers_where_its_row_says_so(way: str, tmp_path: Path) -> None:
    response = RECOVERED[way](Desk(tmp_path))
    assert response.error is None
    assert response.terminal_code is Ending.SUCCESS, response
