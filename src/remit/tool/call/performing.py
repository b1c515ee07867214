"""Performing calls: one door for functions on the event loop, in threads and in processes of their own.

Rule 1: a call ends as Performed, as a ToolFault, or by the cancellation of its caller.
Rule 2: what is cancelled is told to stop. A coroutine is cancelled, a process is killed, a thread has its token set.
Rule 3: a thread that does not listen is abandoned: it goes on, and its outcome is handed over when it comes, because
        the effect of a call is the same whether it was awaited or not.
Rule 4: whether a call has begun is known at any moment: of one that has not, nothing has happened.
Rule 5: its gate is asked last whether the call may begin, and whether it had to wait for something since it was asked for.
        Leave that has gone stale when the function is to be entered is none: then nothing is called.
Rule 6: secrets are fetched just before the call; one that is missing or expires too soon means that it is not begun.
Rule 7: leave to begin a call (a permit) goes stale: a process that stood still between the leave and the call (SIGSTOP, a
        sleeping machine) does not make the call, since others may have taken it for gone. Both clocks are looked at.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeAlias

from remit.core.failure import ErrorCode
from remit.core.record import JsonObject, replace
from remit.core.schema.json_text import kept_value
from remit.tool.call.arguments import NO_SECRETS_LENT, call_function, prepared, result_text
from remit.tool.call.call_metadata import NO_METADATA
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.hooks import check_available, raise_if_ours, verdict
from remit.tool.call.outcomes import Killed, Performed, ToolFault, fault_of
from remit.tool.call.threads import Handed, threads
from remit.tool.declare.decorator import Tool
from remit.tool.secrets.secret import Secret
from remit.tool.secrets.vault import NO_SECRETS, Vault

if TYPE_CHECKING:
    from remit.tool.process.isolated_call import Leash

# A tool that looks at its token between two steps looks every few dozen milliseconds; a caller that cancels waits no longer.
CANCEL_GRACE_MS = 100
# A killed process is gone in milliseconds, unless the kernel itself waits for a device.
KILL_GRACE_MS = 2_000

# The outcome of a call that is not awaited any more; None if it has none, since its process was killed.
Late: TypeAlias = "asyncio.Future[Performed | ToolFault | None]"


# Less than half of what any run waits before it believes that a call which was claimed did not happen.
PERMIT_S = 2.0


class Permit:
    """Leave to begin one call, counted from the moment before it was asked for."""

    __slots__ = ("_monotonic_s", "_wall_s")

    def __init__(self) -> None:
        self._monotonic_s, self._wall_s = monotonic(), time()

    @property
    def age_s(self) -> float:
        """How long ago the leave was asked for, by the clock that went further."""
        return max(monotonic() - self._monotonic_s, time() - self._wall_s)

    @property
    def is_fresh(self) -> bool:
        """Whether the call may begin now."""
        return self.age_s < PERMIT_S


# Raises where a call may not begin any more; it is told whether the call had to wait. Gives leave that may go stale, or None.
PermitGate: TypeAlias = Callable[[bool], Awaitable[Permit | None]]


class Attempt:
    """One call: whether it has begun, how it is told to stop, and what is left of it when it is not awaited any more."""

    __slots__ = (
        "arguments",
        "gate",
        "has_begun",
        "key",
        "late",
        "leash",
        "metadata",
        "permit",
        "said",
        "secrets",
        "token",
        "tool",
        "vault",
    )

    def __init__(
        self,
        tool: Tool,
        arguments: JsonObject | str,
        key: str,
        vault: Vault = NO_SECRETS,
        gate: PermitGate | None = None,
        metadata: Mapping[str, Any] = NO_METADATA,
    ) -> None:
        self.tool = tool
        self.gate = gate
        self.vault = vault
        self.secrets: Mapping[str, Secret] = NO_SECRETS_LENT
        # The very text that was judged, or what it came to with its handles filled in.
        self.arguments = arguments
        self.key = key
        self.metadata = metadata
        # Only a function that takes a token can be told by it, only a process is held by a leash; both hold a lock.
        self.token = CancelToken() if tool.signature.token_names else None
        self.leash = _leash() if tool.isolate else None
        self.has_begun = False
        self.permit: Permit | None = None
        # What a function on the loop has said, even if that is not heard since its caller was cancelled.
        self.said: Performed | ToolFault | None = None
        # Of a call in a thread or a process that was cancelled after it had begun: what has its outcome, or will.
        self.late: Late | None = None

    @property
    def given(self) -> JsonObject:
        """The arguments as an object."""
        return kept_value(self.arguments) if isinstance(self.arguments, str) else self.arguments

    @property
    def is_abandoned(self) -> bool:
        """Whether the call was told to stop and still goes on."""
        return self.late is not None and not self.late.done()

    @property
    def last_word(self) -> "Performed | ToolFault | None":
        """What the call came to after it was told to stop, if that is known."""
        if self.said is not None:
            return self.said
        late = self.late
        return late.result() if late is not None and late.done() and not late.cancelled() else None

    def left(self) -> "asyncio.Future[Performed | ToolFault | None] | None":
        """Give the future of a call that is not awaited any more, made here where it is done; None where no outcome comes."""
        if self.late is None and self.said is not None:
            self.late = asyncio.get_running_loop().create_future()
            self.late.set_result(self.said)
        return self.late


async def perform(attempt: Attempt) -> Performed:
    """Perform one call, or raise the ToolFault it came to. A caller that cancels this finds in the attempt what is left."""
    tool = attempt.tool
    if tool.available is not None:
        await check_available(tool)
    if tool.sandbox:
        await _check_sandbox()
    if tool.definition.secrets:
        wanted, timeout_ms = tool.definition.secrets, tool.definition.timeout_ms
        attempt.secrets = await attempt.vault.fill(tool.name, wanted, timeout_ms=timeout_ms)
    if attempt.gate is not None:
        attempt.permit = await attempt.gate(tool.available is not None or len(tool.definition.secrets) > 0)
    attempt.has_begun = True
    if attempt.leash is not None:
        return await _in_process(attempt, attempt.leash)
    if tool.is_async:
        return await _on_loop(attempt)
    return await _in_thread(attempt, partial(_blocking, attempt))


def _leash() -> "Leash":
    # Only calls in processes of their own pay for what runs those.
    from remit.tool.process.isolated_call import Leash

    return Leash()


def _expect_leave(attempt: Attempt) -> None:
    """Raise where the leave to begin has gone stale: this process stood still, and the call may have been given up."""
    permit = attempt.permit
    if permit is not None and not permit.is_fresh:
        why = f"{permit.age_s:.1f} s passed since it was let begin, and {PERMIT_S} s may; it may have been given up meanwhile"
        raise ToolFault(ErrorCode.CANCELLED_SIGNAL, f"tool {attempt.tool.name!r} was not called: {why}")


async def _check_sandbox() -> None:
    from remit.tool.process.sandbox import WAY_OUT, sandbox_problem

    if problem := await asyncio.to_thread(sandbox_problem):
        raise ToolFault(ErrorCode.TOOL_UNAVAILABLE, f"it demands a sandbox, and {problem}; {WAY_OUT}")


async def _in_process(attempt: Attempt, leash: "Leash") -> Performed:
    from remit.tool.process.isolated_call import Lent, call_isolated

    lent = Lent(attempt.secrets, attempt.vault)

    def work() -> object:
        _expect_leave(attempt)
        with attempt.tool.around():
            return call_isolated(attempt.tool, attempt.given, attempt.key, leash, lent, attempt.metadata)

    return await _in_thread(attempt, work)


async def _on_loop(attempt: Attempt) -> Performed:
    tool = attempt.tool
    values = prepared(tool, attempt.arguments, attempt.key, attempt.token, attempt.secrets, attempt.metadata)
    _expect_leave(attempt)
    try:
        value = await tool.function(**values)
    except BaseException as error:
        raise_if_ours(error)
        attempt.said = fault = fault_of(error)
        raise fault from error
    performed = result_text(tool, value)
    attempt.said = performed if tool.verify is None else await _verified(attempt, (value, performed))
    return attempt.said


def _blocking(attempt: Attempt) -> tuple[Any, Performed]:
    _expect_leave(attempt)
    value = call_function(
        attempt.tool, attempt.arguments, attempt.key, attempt.token, attempt.secrets, attempt.metadata
    )
    return value, result_text(attempt.tool, value)


async def _in_thread(attempt: Attempt, work: Callable[[], Any]) -> Performed:
    """Have work done in a thread. When the caller is cancelled, the work is told to stop and given a short grace."""
    handed = threads().hand_over(partial(_outcome, work))
    try:
        outcome = await handed.answer()
    except asyncio.CancelledError:
        if handed.withdraw():
            # It waited for a thread, and none was free.
            attempt.has_begun = False
            raise
        await _stopped(attempt, handed)
        raise
    return await _settled(attempt, outcome)


async def _stopped(attempt: Attempt, handed: Handed[Any]) -> None:
    """Tell work to stop, and give it a short while to do so."""
    if attempt.token is not None:
        attempt.token.cancel()
    if attempt.leash is not None:
        attempt.leash.cut()
    late = attempt.late = asyncio.create_task(_late(attempt, handed))
    grace_ms = KILL_GRACE_MS if attempt.tool.isolate else CANCEL_GRACE_MS
    await asyncio.wait([late], timeout=grace_ms / 1000)


def _outcome(work: Callable[[], Any]) -> Any:
    """What work came to, as a value: some errors cannot cross from a thread to the loop by being raised."""
    try:
        return work()
    except (ToolFault, Killed) as fault:
        return fault
    except BaseException as error:  # noqa: BLE001  # a call that breaks in an unknown way is an observation, too
        return fault_of(error)


async def _settled(attempt: Attempt, outcome: Any) -> Performed:
    match outcome:
        case Performed():
            return outcome
        case ToolFault() | Killed():
            raise outcome
    return await _verified(attempt, outcome)


async def _verified(attempt: Attempt, returned: tuple[Any, Performed]) -> Performed:
    value, performed = returned
    if attempt.tool.verify is None:
        return performed
    return replace(performed, refuted=await verdict(attempt.tool, attempt.given, value))


async def _late(attempt: Attempt, handed: Handed[Any]) -> Performed | ToolFault | None:
    try:
        return await _settled(attempt, await handed.answer())
    except ToolFault as fault:
        return fault
    except Killed:
        return None
