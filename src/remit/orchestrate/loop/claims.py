"""Claims of one process: whether a call that changes something has begun, or was taken back before it could.

Workers on a cluster hold the same to the last word that is stored about a call: `claim_outcome` in core/journal/queued.py.

Rule 1: a mutating errand is claimed just before its tool is called. One that was revoked is not performed any more, and one
        that was claimed is performed by no other, unless it is safe to repeat.
Rule 2: a run that no longer wants it revokes it. Revoked first means that it is certainly not done, claimed first that it is
        in doubt.
Rule 3: a call that another process may have begun is never said not to have happened.
Rule 4: a performer that is gone has begun what it claimed. What it did not claim is revoked, so that it does not begin later.
"""

from enum import Enum

from remit.core.failure import ErrorCode
from remit.core.journal.commands import CallTool
from remit.orchestrate.executors.reports import Report, ToolBroke


class Revoked(Exception):
    """The errand was taken back before it had begun."""


class PerformerLost(Exception):
    """The process that performed an errand is gone, and has not reported what became of it."""


class _Standing(Enum):
    OFFERED = "offered"
    # Offered again after it was revoked.
    REOPENED = "reopened"
    CLAIMED = "claimed"
    REVOKED = "revoked"


class Claims:
    """The claims of one process, for as long as it drives the runs that they belong to.

    It vouches only for calls that it was offered: whether any other has begun, cannot be known here.
    """

    def __init__(self) -> None:
        self._standing: dict[str, dict[str, _Standing]] = {}

    def offer(self, run_id: str, command_id: str) -> None:
        """Let a call begin that goes out here and nowhere else; one that was revoked here is wanted again."""
        calls = self._standing.setdefault(run_id, {})
        standing = calls.get(command_id)
        if standing is not _Standing.CLAIMED:
            is_again = standing in (_Standing.REVOKED, _Standing.REOPENED)
            calls[command_id] = _Standing.REOPENED if is_again else _Standing.OFFERED

    def claim(self, run_id: str, command_id: str, *, is_repeatable: bool = False) -> bool:
        """Claim a call; False where it was revoked before, or has begun and is not safe to repeat."""
        calls = self._standing.setdefault(run_id, {})
        standing = calls.get(command_id)
        if standing is _Standing.REVOKED or (standing is _Standing.CLAIMED and not is_repeatable):
            return False
        calls[command_id] = _Standing.CLAIMED
        return True

    def revoke(self, run_id: str, command_id: str) -> bool:
        """Take a call back, so that it is certainly not made; False where it has begun, or may have."""
        calls = self._standing.get(run_id, {})
        if calls.get(command_id) not in (_Standing.OFFERED, _Standing.REOPENED, _Standing.REVOKED):
            return False
        calls[command_id] = _Standing.REVOKED
        return True

    def is_revoked(self, run_id: str, command_id: str) -> bool:
        """Whether a call was taken back already."""
        return self._standing.get(run_id, {}).get(command_id) is _Standing.REVOKED

    def is_reopened(self, run_id: str, command_id: str) -> bool:
        """Whether a call was taken back here and is wanted again."""
        return self._standing.get(run_id, {}).get(command_id) is _Standing.REOPENED

    def begun(self, run_id: str, command_id: str) -> None:
        """Know that another process has begun a call."""
        self._standing.setdefault(run_id, {})[command_id] = _Standing.CLAIMED

    def forget(self, run_id: str) -> None:
        """Keep nothing of a run that is no longer driven here."""
        self._standing.pop(run_id, None)


def not_done(command: CallTool) -> Report:
    """The report on a call that was revoked: it did not begin."""
    message = f"tool {command.tool!r} was not called: the call was taken back before it began"
    return ToolBroke(command.id, ErrorCode.CANCELLED_SIGNAL, message)


def not_called(command: CallTool, why: str) -> Report:
    """The report on a call that broke before it was claimed, and was revoked: it did not begin."""
    return ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, f"tool {command.tool!r} was not called: {why}")
