"""How surely an answer stands reaches the caller of a plan, and so does everything that the replicas of a vote said."""

import json
from pathlib import Path
from typing import Any

import pytest

from remit import (
    Candidate,
    ContextBuilder,
    Document,
    DocumentIndex,
    ExecutionPlan,
    InferHandler,
    PlanExecutor,
    RedundantLoop,
    RerankHandler,
    RetrieveHandler,
    ScoreMaker,
    Step,
    SystemRequest,
    TokenUsage,
    context_confidence,
    rerank,
)
from remit.adapters.cli.screen.terminal import json_line
from remit.core.run.usage import sum_usage
from tests.doors.desk import MOOD, Panel

GOOD, BAD = '{"mood":"good"}', '{"mood":"bad"}'


class Planner:
    """Makes a plan of one vote."""

    def create_plan(self, request: SystemRequest) -> ExecutionPlan:
        """One step."""
        return ExecutionPlan((Step("judge", "vote", "How is it?"),))


@pytest.mark.req("0.8", "2.28")
@pytest.mark.parametrize("planned", [False, True])
def test_the_confidence_of_a_vote_that_is_a_step_is_that_of_its_plan(planned: bool, tmp_path: Path) -> None:
    vote = RedundantLoop(Panel(GOOD, BAD, GOOD), schema=MOOD, n=3, home=tmp_path)
    plans = PlanExecutor({"vote": vote}, planner=Planner() if planned else None, home=tmp_path)
    response = plans.execute_sync(None if planned else [Step("judge", "vote", "How is it?")]).response
    assert response.confidence == pytest.approx(2 / 3, abs=1e-6)
    assert response.confidence_source == "voting"


@pytest.mark.req("0.8")
def test_the_relevance_of_the_evidence_of_a_plan_is_its_confidence(tmp_path: Path) -> None:
    index = DocumentIndex()
    index.add([Document("a.md", "lamps are on the shelf"), Document("b.md", "chairs")])
    handlers: dict[str, Any] = {"retrieve": RetrieveHandler(ContextBuilder(index)), "rerank": RerankHandler(rerank)}
    plans = PlanExecutor({**handlers, "infer": InferHandler(Panel("on the shelf"))}, home=tmp_path)
    steps = [Step("find", "retrieve", "where are the lamps"), Step("sort", "rerank"), Step("say", "infer")]
    response = plans.execute_sync(steps).response
    assert response.confidence is not None
    assert 0.0 < response.confidence <= 1.0
    assert response.confidence_source == "retrieval"


class Shelf:
    """A finder of the user's own: one candidate with a score, and its relevance where it says one."""

    def __init__(self, metadata: dict[str, Any]) -> None:
        self.metadata = metadata

    def find(self, query: str) -> list[Candidate]:
        """What is there, whatever is asked."""
        return [Candidate("on the shelf", "a.md", 7.5, ScoreMaker.RETRIEVAL, self.metadata)]


@pytest.mark.req("0.8")
@pytest.mark.parametrize(
    ("metadata", "told"),
    [({"relevance": 0.25}, (0.25, "retrieval")), ({}, (None, None)), ({"relevance": 7}, (None, None))],
)
def test_a_finder_of_ones_own_gives_confidence_by_relevance_and_none_by_score(
    metadata: dict[str, Any], told: tuple[float | None, str | None], tmp_path: Path
) -> None:
    plans = PlanExecutor({"retrieve": RetrieveHandler(Shelf(metadata))}, home=tmp_path)
    response = plans.execute_sync([Step("find", "retrieve", "where are the lamps")]).response
    assert (response.confidence, response.confidence_source) == told
    assert context_confidence(Shelf(metadata).find("")) == told


def test_a_plan_without_votes_checks_and_evidence_has_no_confidence(tmp_path: Path) -> None:
    response = (
        PlanExecutor({"infer": InferHandler(Panel("fine"))}, home=tmp_path)
        .execute_sync([Step("a", "infer", "hi")])
        .response
    )
    assert (response.confidence, response.confidence_source) == (None, None)


@pytest.mark.req("2.22", "0.6")
def test_every_replica_of_a_vote_is_told_in_its_own_words(tmp_path: Path) -> None:
    fenced = f"Sure:\n```json\n{GOOD}\n```"
    panel = Panel(fenced, GOOD, "INFERENCE_CONTEXT_EXCEEDED")
    result = RedundantLoop(panel, schema=MOOD, n=3, home=tmp_path).call_sync("How is it?")
    assert (result.candidates, result.failed) == ((GOOD, GOOD), 1)
    assert result.raw_candidates == (fenced, GOOD, "")
    assert (result.response.content, result.response.raw_content) == (GOOD, fenced)


@pytest.mark.req("1.10")
def test_usage_as_json_has_completion_total_and_rate() -> None:
    usage = TokenUsage(10, 2, 3, 12, 100, 500)
    assert json.loads(json_line({"used": usage}))["used"] == {
        "prompt_tokens": 10,
        "reasoning_tokens": 2,
        "output_tokens": 3,
        "context_tokens": 12,
        "context_window": 100,
        "duration_ms": 500,
        "completion_tokens": 5,
        "total_tokens": 15,
        "tokens_per_second": 10.0,
    }


@pytest.mark.req("2.26")
def test_usages_add_up_and_their_rate_is_the_average_over_time() -> None:
    fast, slow = (
        TokenUsage(output_tokens=90, context_window=100, duration_ms=1_000),
        TokenUsage(output_tokens=10, duration_ms=1_000),
    )
    both = sum_usage((fast, slow))
    assert (both.output_tokens, both.context_window, both.tokens_per_second) == (100, 100, 50.0)
