"""Evidence for an exchange, from the context provider of the run's kit.

Rule 1: evidence that cannot be found makes a poorer answer, not a failed run; the failure is recorded.
Rule 2: what was found stands before the last message of the request and becomes no history.
Rule 3: a provider that has its evidence as candidates is asked for those, so that their relevance is reported with it.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from remit.context.evidence_message import relevance_of
from remit.core.journal.arrivals import ContextFailed
from remit.core.run.messages import Message
from remit.core.work.candidate import Candidate
from remit.orchestrate.executors.bench import Bench
from remit.orchestrate.executors.errands import RetrieveErrand
from remit.orchestrate.executors.reports import ContextSaid, Report
from remit.orchestrate.loop.deadlines import TimeRanOut, within
from remit.orchestrate.setup.kit import ContextProvider, Kit

_PPM = 1_000_000
_UNKNOWN = -1


@runtime_checkable
class _Finder(Protocol):
    """A provider that can tell what it found apart from the messages that it makes of it."""

    async def find(self, query: str) -> Sequence[Candidate]: ...

    def written(self, found: Sequence[Candidate]) -> Sequence[Message]: ...


async def retrieve(errand: RetrieveErrand, kit: Kit, bench: Bench) -> Report:
    """Ask the provider of the kit for evidence about the user's last words."""
    command, provider = errand.command, kit.context
    if provider is None:
        return ContextFailed(command.id, "nobody here provides context")
    try:
        query = await bench.text(errand.query)
        found, relevance_ppm = await within(command.timeout_ms, _found(provider, query))
        texts = [await bench.text(message.content) for message in found]
    except TimeRanOut:
        return ContextFailed(command.id, f"the context provider took longer than timeout_ms={command.timeout_ms}")
    except Exception as error:  # noqa: BLE001  # whatever a provider raises, the run goes on without context
        return ContextFailed(command.id, f"the context provider raised {type(error).__name__}: {error}")
    return ContextSaid(command.id, "\n\n".join(text for text in texts if text), relevance_ppm)


async def _found(provider: ContextProvider, query: str) -> tuple[Sequence[Message], int]:
    """The messages of a provider, and how relevant the best of them is in millionths, where anybody can say."""
    if not isinstance(provider, _Finder):
        return await provider.build(query), _UNKNOWN
    candidates = await provider.find(query)
    relevance = relevance_of(candidates)
    return provider.written(candidates), _UNKNOWN if relevance is None else round(relevance * _PPM)
