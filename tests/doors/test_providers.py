"""Providers and rerankers as their users write them: plain or async, of one input or of two."""

from pathlib import Path
from typing import Any

import pytest

from remit import (
    AgentLoop,
    Boundary,
    Candidate,
    InferHandler,
    InMemoryEventLog,
    Message,
    PlanExecutor,
    Principal,
    RequestRejected,
    RerankHandler,
    RerankInput,
    RetrieveHandler,
    Step,
    ValidateHandler,
    system_message,
    user_message,
)
from remit.core.failure import ErrorCode
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


class Finds:
    """A provider that finds whatever it was made with."""

    def __init__(self, found: Any) -> None:
        self.found = found

    def find(self, query: str) -> Any:
        """What it was made with."""
        return self.found


class Builds(Finds):
    """One that builds messages."""

    find = None  # type: ignore[assignment]  # it has no such method

    def build(self, query: str) -> Any:
        """What it was made with."""
        return self.found


class Reranks(Finds):
    """A reranker that gives whatever it was made with."""

    def rerank(self, query: str, candidates: Any) -> Any:
        """What it was made with."""
        return self.found


@pytest.mark.req("2.16")
@pytest.mark.parametrize("made", [RetrieveHandler, RerankHandler, ValidateHandler])
@pytest.mark.parametrize(
    "given", ["./index.json", b"index", 5, object(), [], Finds, Builds(1).__class__, type("F", (), {"find": 5})()]
)
def test_what_is_no_such_part_is_refused_when_its_handler_is_made(made: Any, given: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        made(given)
    assert refused.value.code == "PLAN_HANDLER_INVALID"


NO_EVIDENCE: list[Any] = [-1, None, True, {"a": 1}, [1, 2], [{"text": "x"}], [None], [*FOUND, "x"], b"x", object()]


@pytest.mark.req("1.3", "2.16")
@pytest.mark.parametrize("given", [*NO_EVIDENCE, "a text", user_message("a message")])
def test_what_is_found_and_is_no_candidate_reaches_no_later_step(given: Any, tmp_path: Path) -> None:
    refuses("Finds.find() gave a", RetrieveHandler(Finds(given)), tmp_path)
    refuses("the reranker gave a", RerankHandler(Reranks(given)), tmp_path)


@pytest.mark.req("1.3", "2.16")
@pytest.mark.parametrize("given", NO_EVIDENCE)
def test_what_is_built_and_is_no_message_reaches_no_later_step(given: Any, tmp_path: Path) -> None:
    refuses("Builds.build() gave a", RetrieveHandler(Builds(given)), tmp_path)
    refuses("the function of the handler gave a", RetrieveHandler(lambda query: given), tmp_path)


def refuses(words: str, handler: Any, home: Path) -> None:
    panel = Panel("I guess")
    handlers = {"first": RetrieveHandler(lambda query: FOUND), "part": handler, "say": InferHandler(panel)}
    first = [Step("first", "first", "lamps")] if isinstance(handler, RerankHandler) else []
    plan = [*first, Step("part", "part", None if first else "lamps"), Step("say", "say")]
    error = PlanExecutor(handlers, home=home).execute_sync(plan).error
    assert error is not None
    assert (error.code, words in error.message) == (ErrorCode.ORCHESTRATION_STEP_MISMATCH, True), error.message
    assert panel.asked == []


@pytest.mark.req("2.16")
@pytest.mark.parametrize(
    "given", ["Lamps are lit.", system_message("Lamps are lit."), [system_message("Lamps are lit.")]]
)
def test_a_text_or_one_message_that_was_built_is_evidence_as_for_an_agent(given: Any, tmp_path: Path) -> None:
    for provider in (Builds(given), lambda query: given):
        panel = Panel("yes")
        handlers: dict[str, Any] = {"look": RetrieveHandler(provider), "say": InferHandler(panel)}
        PlanExecutor(handlers, home=tmp_path).execute_sync([Step("a", "look", "Lit?"), Step("b", "say")])
        assert [message.content for message in panel.asked[0].messages] == ["Lamps are lit.", "Lit?"]


class Library(Finds):
    """A provider of an agent that finds candidates and makes messages of them."""

    def build(self, query: str) -> Any:
        """What it found."""
        return self.written(self.found)

    def written(self, found: Any) -> Any:
        """A message for each."""
        return [system_message(str(each)) for each in found]


@pytest.mark.parametrize("given", [-1, "text", [1], None])
def test_an_agent_is_told_what_its_provider_gave_instead_of_candidates(given: Any, tmp_path: Path) -> None:
    observer, panel = InMemoryEventLog(), Panel("fine")
    AgentLoop(panel, context_provider=Library(given), observer=observer, home=tmp_path).chat_sync("lamps")
    assert [message.content for message in panel.asked[0].messages] == ["lamps"]
    assert "Library.find() gave a" in str(observer.events())


@pytest.mark.req("2.16")
@pytest.mark.parametrize("given", [0, 0.0, {}, set(), b"", 5, [None], object()])
def test_what_a_check_may_not_return_lets_nothing_pass(given: Any, tmp_path: Path) -> None:
    handlers: dict[str, Any] = {"say": InferHandler(Panel("fine")), "check": ValidateHandler(lambda text: given)}
    steps = [Step("a", "say", "lamps"), Step("b", "check")]
    error = PlanExecutor(handlers, home=tmp_path).execute_sync(steps).error
    assert error is not None
    assert "it may return a text, a list of texts or None" in error.message
