"""Backoff: how long a run waits before it tries again what has failed, so that no server is stormed.

Rule 1: the pause doubles with every failure in a row and is spread, so that many runs do not return at once. The spread
        comes from a hash of the waiting command, since the kernel has no chance to draw from.
Rule 2: after a failure of a tool that only reads or is idempotent, its next call waits, whatever the arguments. A call
        that a person has just approved does not wait.
Rule 3: no pause goes beyond the deadline of the run.
"""

from hashlib import sha256

from remit.core.failure import ERRORS
from remit.core.failure_families import Retryable
from remit.core.journal.commands import CallTool
from remit.core.journal.rulings import RetryPlanned
from remit.core.limits.tools import MUTATING, ToolDefinition
from remit.kernel.budget.wall_clock import deadline_at_ms
from remit.kernel.tally import Tally

BACKOFF_MS_FIRST = 500
# Half a minute: beyond that a person notices anyway, and the wall clock is the better judge.
BACKOFF_MS_MAX = 30_000


def backoff_ms(run_id: str, command_id: str, attempt: int) -> int:
    """The pause before another attempt."""
    ceiling = min(BACKOFF_MS_FIRST << min(attempt - 1, 16), BACKOFF_MS_MAX)
    spread = int.from_bytes(sha256(f"{run_id}/{command_id}".encode()).digest()[:4], "big")
    return ceiling // 2 + spread % (ceiling // 2 + 1)


def cooled_at_ms(tally: Tally, tool: ToolDefinition) -> int:
    """The moment before which a tool is not called again; 0 where it has not failed, or not in a way worth trying again."""
    streak = tally.failures_in_a_row.get(tool.name, tally.state.counts.failures_in_a_row.get(tool.name))
    if streak is None or (tool.effect in MUTATING and not tool.idempotent):
        return 0
    code = next((code for code in ERRORS if code == streak.code), None)
    if code is None or ERRORS[code].retryable is Retryable.NO:
        return 0
    failed = _failed(tally, tool.name)
    tally.rule(RetryPlanned(failed, streak.times + 1, code))
    pause_ms = backoff_ms(tally.state.run_id, failed, streak.times)
    return min(tally.at_ms + pause_ms, deadline_at_ms(tally))


def _failed(tally: Tally, tool: str) -> str:
    """The call of a tool that failed last: in this turn, or before."""
    answered = tally.state.commands.open.get(tally.answering)
    if isinstance(answered, CallTool) and answered.tool == tool:
        return answered.id
    failed = (key for key, trace in reversed(tally.state.calls.made.items()) if trace.tool == tool and trace.code)
    return next(failed, "")
