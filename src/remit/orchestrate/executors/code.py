"""Named code of the user: validators and whatever else a graph names, run with one text and heard once.

Rule 1: code is found by the name the graph gives it; what is not there fails the command, never the process.
Rule 2: plain functions run in a thread and coroutines on the loop, both within the command's time.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

from remit.core.arrivals import CodeFailed, CodeReturned
from remit.core.commands import CallCode
from remit.core.record import Text
from remit.orchestrate.deadlines import TimeRanOut, within
from remit.orchestrate.kit import Code, Kit
from remit.orchestrate.ports import Live
from remit.orchestrate.reports import Report
from remit.tool.threads import threads


class CodeExecutor:
    """Performs CallCode."""

    def __init__(self, kit_of: Callable[[str], Kit], text: Callable[[Text], Awaitable[str]]) -> None:
        self._kit_of = kit_of
        self._text = text

    async def __call__(self, live: Live, command: CallCode) -> Report:
        """Run the code on its input and report what it says."""
        code = self._kit_of(live.run_id).code.get(command.name)
        if code is None:
            return CodeFailed(command.id, f"nobody here has code named {command.name[:80]!r}")
        text = await self._text(command.input)
        try:
            said = await within(command.timeout_ms, _run(code, text))
        except TimeRanOut:
            return CodeFailed(command.id, f"{command.name[:80]!r} took longer than timeout_ms={command.timeout_ms}")
        except Exception as error:  # noqa: BLE001  # whatever the user's code raises is an outcome
            return CodeFailed(command.id, f"{command.name[:80]!r} raised {type(error).__name__}: {error}")
        return _returned(command, said)


async def _run(code: Code, text: str) -> object:
    if inspect.iscoroutinefunction(code):
        return await code(text)
    return await asyncio.wrap_future(threads().submit(lambda: code(text)))


def _returned(command: CallCode, said: object) -> Report:
    """A text is a value, several texts are problems, and nothing is content."""
    if said is None:
        return CodeReturned(command.id)
    if isinstance(said, str):
        return CodeReturned(command.id, said)
    if isinstance(said, list | tuple) and all(isinstance(problem, str) for problem in said):
        return CodeReturned(command.id, problems=tuple(said))
    kind = type(said).__name__
    return CodeFailed(
        command.id, f"{command.name[:80]!r} returned a {kind}; it may return a text, a list of texts or None"
    )
