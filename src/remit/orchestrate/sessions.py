"""Sessions: a chain of runs. Each names the one before it and that one's head, so a conversation can be proven whole.

Rule 1: one exchange at a time: while a run of the session is open, the next one is refused with a code.
Rule 2: history is what users and assistants said. Tool results and retrieved evidence belong to one run only.
Rule 3: entries of the session outlive its runs; the next run begins with all of them.
"""

from remit.core.contract import SystemRequest
from remit.core.failure import RequestRejected
from remit.core.manifest import SessionLink
from remit.core.messages import Message, Role, assistant_message
from remit.core.record import replace
from remit.kernel.state import RunState, pinned
from remit.orchestrate.ports import Catalogue
from remit.orchestrate.runner import Runner

SESSION_BUSY = "SESSION_BUSY"


async def last_run(catalogue: Catalogue, runner: Runner, session_id: str) -> RunState | None:
    """The newest run of a session, or None when it has none."""
    runs = await catalogue.session(session_id)
    return (await runner.load(runs[-1].run_id)).state if runs else None


def linked(request: SystemRequest, last: RunState | None) -> tuple[SystemRequest, SessionLink]:
    """The request with the history of its session before its own words, and its place there."""
    if last is None:
        return request, SessionLink(0)
    link = pinned(last).session
    ordinal = 0 if link is None else link.ordinal
    if last.ending is None:
        raise RequestRejected(
            SESSION_BUSY,
            f"exchange {ordinal} of session {request.session_id!r} is open: run {last.run_id}; resume or cancel it first",
            {"session_id": request.session_id, "run_id": last.run_id},
        )
    own = request.messages
    instructions = tuple(message for message in own if message.role is Role.SYSTEM)
    said = tuple(message for message in own if message.role is not Role.SYSTEM)
    entries = tuple(sorted(last.session.items()))
    place = SessionLink(ordinal + 1, last.run_id, last.head, entries)
    return replace(request, messages=(*instructions, *history_of(last), *said)), place


def history_of(state: RunState) -> tuple[Message, ...]:
    """What was said in a session up to the end of this run."""
    asked = [m for m in pinned(state).request.messages if m.role in (Role.USER, Role.ASSISTANT) and not m.tool_calls]
    return (*asked, assistant_message(state.answer)) if state.answer else tuple(asked)
