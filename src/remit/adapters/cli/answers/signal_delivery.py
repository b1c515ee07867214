"""Signals from the command line, and waiting for what becomes of them.

Rule 1: a signal names who sends it, from where, and when.
Rule 2: a run that goes on in this process is not left half-way, although its sender was refused.
"""

import time
from typing import TYPE_CHECKING
from uuid import uuid4

from remit.core.failure import RemitError
from remit.core.record import JsonObject
from remit.core.run.contract import SystemResponse
from remit.core.run.signals import Signal, UserSignal

if TYPE_CHECKING:
    from remit.core.run.signals import SignalOutcome
    from remit.orchestrate.facade import System


def signal_from(by: str, kind: Signal, run_id: str, payload: JsonObject) -> UserSignal:
    """A signal from the command line to a run."""
    return UserSignal(
        signal_id=str(uuid4()),
        type=kind,
        run_id=run_id,
        user_id=by,
        channel_type="cli",
        payload=payload,
        at_ms=time.time_ns() // 1_000_000,
    )


async def deliver(system: "System", signal: UserSignal) -> "SignalOutcome":
    """Have a run hear a signal; a refused sender leaves once the run, which may have heard another one here, rests."""
    try:
        return await system.signal(signal)
    except RemitError:
        await system.settle()
        raise


async def at_rest(system: "System", run_id: str) -> SystemResponse:
    """A run once it rests, here or in another process, and with it everything that goes on here because of it."""
    await system.result(run_id)
    await system.rested(run_id)
    await system.settle()
    return await system.result(run_id)
