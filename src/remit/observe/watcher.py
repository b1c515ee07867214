"""Who is told what happens in runs, while it happens."""

from typing import Protocol

from remit.core.journal.turn import Turn
from remit.core.run.contract import SystemRequest
from remit.core.run.recovery import Recovery
from remit.observe.views.meter import Meter


class Watcher(Protocol):
    """Is told what happens in the runs that are driven here, while it happens."""

    def turned(self, run_id: str, request: SystemRequest, turn: Turn) -> None:
        """A turn was written."""

    def measured(self, run_id: str, meter: Meter) -> None:
        """The same turn, as it leaves the run: where it stands and what it has used."""

    def said(self, run_id: str, text: str) -> None:
        """A model said something more; it is provisional until its turn is written."""

    def restarted(self, run_id: str) -> None:
        """What the model said since the last turn is void; it begins anew."""

    def recovered(self, run_id: str, recovery: Recovery) -> None:
        """A run was taken up again, and so many of its calls made anew."""

    def abandoned(self, run_id: str, tool: str) -> None:
        """The system was closed while a call went on that had been told to stop."""
