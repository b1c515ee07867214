"""Providers and rerankers as their users write them: plain or async, of one input or of two."""

from pathlib import Path
from typing import Any

import pytest

from remit import (
    AgentLoop,
    Boundary,
    Candidate,
    Message,
    PlanExecutor,
    Principal,
    RequestRejected,
    RerankHandler,
    RerankInput,
    RetrieveHandler,
    Step,
    system_message,
)
from remit.core.work.candidate import ScoreMaker
from tests.doors.desk import Panel

FOUND = tuple(Candidate(text, text, 1.0, ScoreMaker.RETRIEVAL) for text in ("first", "second"))


class Plain:
    """A provider that is not async."""

    def build(self, query: str) -> list[Message]:
        """One piece of evidence."""
        return [system_message(f"evidence for {query}")]


@pytest.mark.req("1.3")
def test_a_provider_with_a_plain_build_is_heard_by_an_agent(tmp_path: Path) -> None:
    panel = Panel("fine")
    response = AgentLoop(panel, context_provider=Plain(), home=tmp_path).chat_sync("lamps")
    assert (response.error, response.warnings) == (None, ())
    assert "evidence for lamps" in [message.content for message in panel.asked[0].messages]


def one(asked: RerankInput) -> list[Candidate]:
    return [*reversed(asked.candidates)]


def whole(asked: RerankInput, limit: int = 9) -> RerankInput:
    return RerankInput(asked.query, tuple(reversed(asked.candidates))[:limit])


def two(query: str, candidates: Any) -> list[Candidate]:
    return [*reversed(candidates)]


class Ranker:
    """A reranker as an object, of one input."""

    async def rerank(self, asked: RerankInput) -> tuple[Candidate, ...]:
        """Turned round."""
        return tuple(reversed(asked.candidates))


@pytest.mark.req("1.3", "2.17")
@pytest.mark.parametrize("reranker", [one, whole, two, Ranker()])
def test_a_reranker_takes_a_rerank_input_or_query_and_candidates(reranker: Any, tmp_path: Path) -> None:
    handlers: dict[str, Any] = {"retrieve": RetrieveHandler(lambda query: FOUND), "rerank": RerankHandler(reranker)}
    result = PlanExecutor(handlers, home=tmp_path).execute_sync([Step("a", "retrieve", "lamps"), Step("b", "rerank")])
    assert result.response.error is None
    assert result.output == RerankInput("lamps", tuple(reversed(FOUND)))


class Told(Plain):
    """A provider that says what it reads and is told for whom it looks."""

    def __init__(self, reads: str) -> None:
        self.reads, self.heard = reads, list[Principal]()

    async def build(self, query: str, asked_by: Principal | None = None) -> list[Message]:  # type: ignore[explicit-override,override]  # an async one
        """Evidence for one user."""
        assert asked_by is not None
        self.heard.append(asked_by)
        return [system_message(f"evidence for {asked_by.user_id}")]


@pytest.mark.req("4.2")
def test_a_provider_is_told_for_whom_it_looks(tmp_path: Path) -> None:
    panel, provider = Panel("fine"), Told("secret")
    AgentLoop(panel, context_provider=provider, user_id="ann", home=tmp_path).chat_sync("lamps")
    assert [one.user_id for one in provider.heard] == ["ann"]
    assert "evidence for ann" in [message.content for message in panel.asked[0].messages]


@pytest.mark.req("4.2")
@pytest.mark.parametrize("provider", [Plain(), Told("secret"), Told("everything")])
def test_a_provider_that_reads_more_than_the_boundary_allows_is_refused(provider: Plain, tmp_path: Path) -> None:
    narrow = Boundary(name="narrow", reads_max="public")  # type: ignore[arg-type]  # the text of a member
    with pytest.raises(RequestRejected, match="CONTEXT_BEYOND_BOUNDARY"):
        AgentLoop(Panel("fine"), context_provider=provider, boundary=narrow, home=tmp_path).chat_sync("lamps")
    allowed = AgentLoop(Panel("fine"), context_provider=Told("public"), boundary=narrow, home=tmp_path)
    assert allowed.chat_sync("lamps").content == "fine"
