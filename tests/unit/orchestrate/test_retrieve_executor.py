"""Evidence for an exchange: found for the user's last words, or a poorer answer."""

import asyncio
from collections.abc import Sequence

import pytest

from remit.core.journal.arrivals import ContextFailed
from remit.core.journal.commands import Retrieve
from remit.core.record import BlobRef, Text
from remit.core.run.contract import SystemRequest
from remit.core.run.messages import Message, assistant_message, system_message, user_message
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.kernel.state import RunState
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import ContextSaid, Report
from remit.orchestrate.loop.live import Live
from remit.orchestrate.setup.kit import ContextProvider, Kit
from tests.unit.kernel.builders import Run, manifest_of
from tests.unit.orchestrate.stage import play


class Shelf:
    """A provider that finds the same for everybody."""

    def __init__(self, *found: str) -> None:
        self.found = found
        self.asked: list[str] = []

    async def build(self, query: str) -> Sequence[Message]:
        """What stands on the shelf."""
        self.asked.append(query)
        return [system_message(text) for text in self.found]


class Broken:
    """A provider that raises."""

    async def build(self, query: str) -> Sequence[Message]:
        """Nothing, ever."""
        raise ConnectionError("the index is gone")


class Slow:
    """A provider that never comes back."""

    async def build(self, query: str) -> Sequence[Message]:
        """Nothing, in no time."""
        await asyncio.Event().wait()
        return ()


async def fetched(text: Text) -> str:
    return text if isinstance(text, str) else "a long question"


def state_with(*messages: Message) -> RunState:
    return Run(manifest_of(request=SystemRequest(messages))).state


def run(provider: ContextProvider | None, state: RunState, *, timeout_ms: int = 5_000) -> Report:
    executor = Performers(ProcessResources(fetched)).carrier(lambda run_id: Kit({}, context=provider))
    return play(executor(Live("run", state), Retrieve("0.3", timeout_ms)))


def test_anything_with_a_build_method_provides_context() -> None:
    shelf = Shelf("first", "", "second")
    state = state_with(user_message("before"), assistant_message("so"), user_message("now"))
    assert run(shelf, state) == ContextSaid("0.3", "first\n\nsecond")
    assert shelf.asked == ["now"]


def test_a_long_question_is_fetched_before_it_is_asked() -> None:
    shelf = Shelf("found")
    run(shelf, state_with(user_message(BlobRef(b"digest", 5000))))
    assert shelf.asked == ["a long question"]


def test_a_conversation_without_a_user_asks_for_nothing_in_particular() -> None:
    shelf = Shelf("found")
    run(shelf, state_with(assistant_message("hello")))
    assert shelf.asked == [""]


@pytest.mark.req("2.8")
@pytest.mark.parametrize(
    ("provider", "error"),
    [
        (None, "there is no context provider here"),
        (Broken(), "the context provider raised ConnectionError: the index is gone"),
        (Slow(), "the context provider took longer than timeout_ms=10"),
    ],
)
def test_context_that_cannot_be_had_is_reported_as_such(provider: ContextProvider | None, error: str) -> None:
    assert run(provider, state_with(user_message("now")), timeout_ms=10) == ContextFailed("0.3", error)


class Finding(Shelf):
    """A provider that also has what it found as candidates."""

    def __init__(self, *relevance: float | None) -> None:
        super().__init__()
        self.relevance = relevance

    async def find(self, query: str) -> Sequence[Candidate]:
        """A candidate for each relevance; None is one that does not say."""
        self.asked.append(query)
        known = [{} if share is None else {"relevance": share} for share in self.relevance]
        return [Candidate("text", "doc", 1.0, ScoreMaker.RETRIEVAL, metadata) for metadata in known]

    def written(self, found: Sequence[Candidate]) -> Sequence[Message]:
        """How many there are."""
        return [system_message(f"{len(found)} found")]


@pytest.mark.req("0.8")
@pytest.mark.parametrize(
    ("relevance", "reported_ppm"), [((0.25, 0.8), 800_000), ((1.0, None), 1_000_000), ((None,), -1), ((), 0)]
)
def test_the_relevance_of_the_best_evidence_is_reported_where_it_is_known(
    relevance: tuple[float | None, ...], reported_ppm: int
) -> None:
    provider = Finding(*relevance)
    report = run(provider, state_with(user_message("How tall?")))
    assert report == ContextSaid("0.3", f"{len(relevance)} found", reported_ppm)
    assert provider.asked == ["How tall?"], "it is asked once"


def test_a_provider_that_only_builds_says_nothing_about_relevance() -> None:
    report = run(Shelf("text"), state_with(user_message("How tall?")))
    assert isinstance(report, ContextSaid)
    assert report.relevance_ppm == -1
