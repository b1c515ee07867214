"""Waiting for a run: until it rests, until a person has answered, or until nobody wants it any more.

Rule 1: whoever stops waiting for a run that they began cancels it.
Rule 2: what a child asks is answered through the run that started it.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace as replace_parts
from uuid import uuid4

from remit.core.contract import SystemRequest, SystemResponse
from remit.core.events import Turn
from remit.core.failure import RemitError, RequestRejected
from remit.core.record import JsonObject, replace
from remit.core.signals import PACKET_MARK, PACKET_UNKNOWN, SIGNAL_INVALID, Signal, UserSignal
from remit.kernel.state import RunState
from remit.orchestrate.facade import NOTHING, System
from remit.orchestrate.kit import Kit, Terms
from remit.orchestrate.sessions import Session

NOTHING_OPEN = "NOTHING_OPEN"

# Who speaks for an agent whose user has no name.
CALLER = "caller"


async def run_or_cancel(
    system: System, request: SystemRequest, kit: Kit, terms: Terms, *, entries: Mapping[str, str] = NOTHING
) -> SystemResponse:
    """Run a request until it has ended or waits for people; whoever stops waiting meanwhile cancels the run."""
    begun: list[str] = []

    def hear(state: RunState, turn: Turn) -> None:
        # The first that is heard of is the run itself. Its children work with the same kit; cancelling it reaches them.
        if not begun:
            begun.append(state.run_id)
        if kit.on_turn is not None:
            kit.on_turn(state, turn)

    try:
        return await system.run(request, replace_parts(kit, on_turn=hear), terms, entries=entries)
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


async def answer(system: System, run_id: str, said: UserSignal, kit: Kit) -> None:
    """Let a run hear what a person says to something that it or a child of it asks, and wait until it rests."""
    asking = said.run_id or run_id
    if not await system.lineages.is_beneath(asking, run_id):
        packet_id = str(said.payload["packet_id"])[:80]
        message = f"packet {packet_id!r} is none of the open exchange, run {run_id}"
        raise RequestRejected(PACKET_UNKNOWN, message, {"packet_id": packet_id})
    await system.signal(replace(said, run_id=asking), kit=kit)
    await system.settle(run_id)


def approval(packet_id: str, *, by: str, arguments: JsonObject | None = None) -> UserSignal:
    """A yes to a packet, perhaps with other arguments. It names no run when the packet is a command's name alone."""
    changed: JsonObject = {} if arguments is None else {"arguments": arguments}
    return _said(Signal.APPROVE, run_of(packet_id), by, {**changed, "packet_id": packet_id})


def rejection(packet_id: str, *, by: str, reason: str = "") -> UserSignal:
    """A no to a packet. It names no run when the packet is a command's name alone."""
    return _said(Signal.REJECT, run_of(packet_id), by, {**_because(reason), "packet_id": packet_id})


def cancellation(run_id: str, *, by: str, reason: str = "") -> UserSignal:
    """The order to end a run at once."""
    return _said(Signal.CANCEL, run_id, by, _because(reason))


def run_of(packet_id: str) -> str:
    """The run that asks with a packet, refused where it is no text; empty when the packet is a command's name alone."""
    given: object = packet_id
    if not isinstance(given, str):
        message = f"packet {given!r:.80} is no name of a packet; take one of `waiting_for.packet_ids`"
        raise RequestRejected(PACKET_UNKNOWN, message)
    return packet_id.rpartition(PACKET_MARK)[0]


def _because(reason: str) -> JsonObject:
    return {"reason": reason} if reason else {}


def _said(kind: Signal, run_id: str, by: str, payload: JsonObject) -> UserSignal:
    given: object = by
    if not isinstance(given, str):
        message = f"by={given!r:.80} is no name of a person; say in words who signals {kind.value!r}"
        raise RequestRejected(SIGNAL_INVALID, message)
    return UserSignal(str(uuid4()), kind, run_id, by, payload=payload)
