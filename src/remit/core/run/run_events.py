"""Events of runs as they happen, and the subjects that listeners subscribe to.

Rule 1: a turn is told once it is written, and is durable; a piece of an answer is provisional until its turn comes.
Rule 2: a cursor says behind which event a reader goes on: of one run it is the number of a turn, of many the place of a turn
        in the order in which all of them were written.
"""

from enum import StrEnum

from remit.core.clipped import clipped
from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.storage import START, Place
from remit.core.journal.turn import Turn
from remit.core.record import Record, replace
from remit.core.run.manifest import Manifest, lineage_of

CURSOR_INVALID = "CURSOR_INVALID"
SYSTEM_CLOSED = "SYSTEM_CLOSED"

_TURN, _PLACE = "turn:", "place:"
# More digits than any store counts to.
_DIGITS_MAX = 18


class RunBelonging(Record):
    """Where a run belongs, as a subject asks for it."""

    run_id: str
    tenant_id: str = ""
    session_id: str = ""
    parent_id: str = ""
    lineage: tuple[str, ...] = ()


class Subject(Record):
    """What a listener wants to hear of: one run, a session, a tenant, or everything; and whether of child runs, too.

    A child belongs to the session and the tenant of the run that it came from.
    """

    run_id: str = ""
    session_id: str = ""
    tenant_id: str = ""
    children: bool = False

    @property
    def is_one_run(self) -> bool:
        """Whether the turns of one journal are all there is to tell."""
        return bool(self.run_id) and not self.children

    def covers(self, whose: RunBelonging) -> bool:
        """Whether a run is among those that were asked for."""
        if self.run_id and self.run_id != whose.run_id and not (self.children and self.run_id in whose.lineage):
            return False
        if whose.parent_id and not self.children and self.run_id != whose.run_id:
            return False
        return self.session_id in ("", whose.session_id) and self.tenant_id in ("", whose.tenant_id)


ALL = Subject(children=True)
NOBODY = RunBelonging("")


class EventKind(StrEnum):
    """What an event tells: a turn that was written, a piece of an answer, or that the answer begins anew."""

    TURN = "turn"
    SAID = "said"
    RESTARTED = "restarted"


class RunEvent(Record):
    """One thing that happened in a run. A turn is durable; what a model is saying is provisional until its turn comes.

    `seq` is the number of the turn, of a piece that of the turn before it. `cursor` is where to go on behind this event; a
    piece has none.
    """

    run_id: str
    kind: EventKind
    seq: int
    turn: Turn | None = None
    text: str = ""
    reasoning: str = ""
    cursor: str = ""
    # Of what is said beneath the run that is followed: the number of the replica, the name of the step, or the tool that
    # delegated it.
    part: str = ""


class AnswerPiece(Record):
    """A piece of an answer, which a model began after turn `seq`; `number` counts the pieces of one answer."""

    whose: RunBelonging
    seq: int
    number: int
    text: str = ""
    reasoning: str = ""
    is_restart: bool = False
    # Which bus told it first: it need not hear it again.
    teller: str = ""


def whose_of(manifest: Manifest) -> RunBelonging:
    """Whose a run is, as its manifest says."""
    request, lineage = manifest.request, lineage_of(manifest)
    session_id = request.session_id if manifest.session is not None or lineage else ""
    parent_id = "" if manifest.parent is None else manifest.parent.run_id
    return RunBelonging(manifest.run_id, request.tenant_id, session_id, parent_id, lineage)


def turn_event(run_id: str, turn: Turn) -> RunEvent:
    """A turn as an event of its run."""
    return RunEvent(run_id, EventKind.TURN, turn.seq, turn, cursor=f"{_TURN}{run_id}:{turn.seq}")


def placed(event: RunEvent, place: Place) -> RunEvent:
    """The event of a turn for those who follow many runs."""
    return replace(event, cursor=f"{_PLACE}{place}")


def cursor_place(subject: Subject, since: str | int | None) -> Place | None:
    """Behind which turn of a run, or which place of all of them, a cursor stands; None stands for now.

    -1 is before the first. Raises RequestRejected for a cursor of something else.
    """
    mark = f"{_TURN}{subject.run_id}:" if subject.is_one_run else _PLACE
    if since is None:
        return None
    if type(since) is int and (since == START or (subject.is_one_run and since > START)):
        return since
    number = since.removeprefix(mark) if isinstance(since, str) and since.startswith(mark) else ""
    if number.isascii() and number.isdecimal() and len(number) <= _DIGITS_MAX:
        return int(number)
    raise cursor_invalid(subject, since)


def system_closed(run_id: str = "") -> RemitError:
    """What those are told who waited for a run, or for what happens in many, when their system was closed."""
    way = "a subscriber goes on there behind the cursor of its last event"
    if run_id:
        way = f"`resume` run {run_id} there, or `find` it where it has ended or another process drives it"
    message = f"the system was closed; open the store again: {way}"
    return RemitError(SYSTEM_CLOSED, message, {"run_id": run_id} if run_id else {})


def expect_unreadable(error: RemitError) -> None:
    """Raise what kept a run from being read where the run is not to blame: the system was closed."""
    if error.code == SYSTEM_CLOSED:
        raise error


def cursor_invalid(subject: Subject, since: object) -> RequestRejected:
    """The refusal of a cursor of something else, or of one beyond all that was written."""
    wanted = "the number of a turn or a cursor of an event of the run" if subject.is_one_run else "a cursor of an event"
    message = f"since={clipped(since)} is nowhere in what was subscribed to; give {wanted}, -1 for everything, or leave it out"
    return RequestRejected(CURSOR_INVALID, message, {"since": str(since)[:80]})
