"""Evidence for an exchange, from the context provider of the run's kit.

Rule 1: evidence that cannot be found makes a poorer answer, not a failed run; the failure is recorded.
Rule 2: what was found stands before the last message of the request and becomes no history.
"""

from collections.abc import Awaitable, Callable

from remit.core.arrivals import ContextFailed
from remit.core.commands import Retrieve
from remit.core.messages import Role
from remit.core.record import Text
from remit.kernel.state import pinned
from remit.orchestrate.deadlines import TimeRanOut, within
from remit.orchestrate.kit import Kit
from remit.orchestrate.ports import Live
from remit.orchestrate.reports import ContextSaid, Report


class RetrieveExecutor:
    """Performs Retrieve."""

    def __init__(self, kit_of: Callable[[str], Kit], text: Callable[[Text], Awaitable[str]]) -> None:
        self._kit_of = kit_of
        self._text = text

    async def __call__(self, live: Live, command: Retrieve) -> Report:
        """Ask the provider for evidence about the user's last words."""
        provider = self._kit_of(live.run_id).context
        if provider is None:
            return ContextFailed(command.id, "nobody here provides context")
        asked = [message for message in pinned(live.state).request.messages if message.role is Role.USER]
        try:
            query = await self._text(asked[-1].content) if asked else ""
            found = await within(command.timeout_ms, provider.build(query))
            texts = [await self._text(message.content) for message in found]
        except TimeRanOut:
            return ContextFailed(command.id, f"the context provider took longer than timeout_ms={command.timeout_ms}")
        except Exception as error:  # noqa: BLE001  # whatever a provider raises, the run goes on without context
            return ContextFailed(command.id, f"the context provider raised {type(error).__name__}: {error}")
        return ContextSaid(command.id, "\n\n".join(text for text in texts if text))
