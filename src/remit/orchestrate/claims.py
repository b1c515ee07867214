"""Claims: whether a call that changes something has begun, or was taken back before it could.

Rule 1: a mutating errand is claimed just before its tool is called. One that was revoked is not performed any more.
Rule 2: whoever no longer wants it revokes it. Revoked first means that it is certainly not done, claimed first that it is
        in doubt.
Rule 3: both name the run and the command, so a command that is sent again finds what became of it.
"""

from remit.core.commands import CallTool
from remit.core.failure import ErrorCode
from remit.orchestrate.reports import Report, ToolBroke


class Revoked(Exception):
    """The errand was taken back before it had begun."""


class Claims:
    """The claims of one process, for as long as it drives the runs that they belong to."""

    def __init__(self) -> None:
        # Whether each was claimed; False says that it was revoked.
        self._claimed: dict[str, dict[str, bool]] = {}

    def claim(self, run_id: str, command_id: str) -> bool:
        """Whether a call may begin now; False where it was revoked before."""
        return self._claimed.setdefault(run_id, {}).setdefault(command_id, True)

    def revoke(self, run_id: str, command_id: str) -> bool:
        """Whether a call will certainly not be made; False where it has begun."""
        return not self._claimed.setdefault(run_id, {}).setdefault(command_id, False)

    def is_revoked(self, run_id: str, command_id: str) -> bool:
        """Whether a call was taken back already."""
        return self._claimed.get(run_id, {}).get(command_id) is False

    def renew(self, run_id: str, command_id: str) -> None:
        """Let a call be made that was revoked here and is wanted again."""
        if self.is_revoked(run_id, command_id):
            del self._claimed[run_id][command_id]

    def forget(self, run_id: str) -> None:
        """Keep nothing of a run that is no longer driven here."""
        self._claimed.pop(run_id, None)


def not_done(command: CallTool) -> Report:
    """What is reported of a call that was revoked: it did not begin."""
    message = f"tool {command.tool!r} was not called: the call was taken back before it began"
    return ToolBroke(command.id, ErrorCode.CANCELLED_SIGNAL, message)
