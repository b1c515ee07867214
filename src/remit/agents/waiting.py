"""Waiting for a run: until it rests, until a person has answered, or until nobody wants it any more.

Rule 1: whoever stops waiting for a run that they began cancels it.
Rule 2: what a child asks is answered through the run that started it.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace as replace_parts

from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.turn import Turn
from remit.core.run.contract import SystemRequest, SystemResponse
from remit.kernel.state import RunState
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.exchange.sessions import Session
from remit.orchestrate.facade import NOTHING, System
from remit.orchestrate.run_handle import CALLER, cancellation
from remit.orchestrate.setup.kit import Kit, Terms

NOTHING_OPEN = "NOTHING_OPEN"

SILENCE = Listener()


async def run_or_cancel(
    system: System,
    request: SystemRequest,
    kit: Kit,
    terms: Terms,
    *,
    entries: Mapping[str, str] = NOTHING,
    listener: Listener = SILENCE,
) -> SystemResponse:
    """Run a request until it has ended or waits for people; whoever stops waiting meanwhile cancels the run."""
    begun: list[str] = []

    def hear(state: RunState, turn: Turn) -> None:
        # The first that is heard of is the run itself; cancelling it reaches its children.
        if not begun:
            begun.append(state.run_id)
        if listener.on_turn is not None:
            listener.on_turn(state, turn)

    try:
        hearing = replace_parts(listener, on_turn=hear)
        return await system.run(request, kit, terms, entries=entries, listener=hearing)
    except asyncio.CancelledError:
        # What was begun is finished, so the run may begin although nobody waits for it any more.
        await system.begun()
        for run_id in begun:
            with suppress(RemitError):  # It may have ended by itself at this very moment.
                await system.signal(cancellation(run_id, by=CALLER, reason="nobody waits for it any more"))
        raise


def open_run(session: Session) -> str:
    """The run of a session that is under way; raises RequestRejected when there is none."""
    if not session.is_open:
        raise RequestRejected(NOTHING_OPEN, f"session {session.session_id!r} has no exchange under way")
    return session.run_id
