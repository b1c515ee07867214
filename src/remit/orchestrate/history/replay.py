"""Replay: every turn of a run is decided again and its facts are computed again, with no model and no tool.

Rule 1: each arrival is taken back to the report it was made from, and completed anew; what comes out must be the very
        arrival. Then the kernel decides anew; what comes out must be the very bytes.
Rule 2: where nothing can be compared there is no equality: a turn of another version, or one whose text is gone.
Rule 3: the first difference ends the audit, since everything after it stands on it.
Rule 4: what the journal does not keep cannot be computed again, and the audit says where: why arguments could not be
        written down, and how a whole number that breaks a schema was spelt (1 or 1.0). Everything else is.
Rule 5: the first turns of a fork were decided for the run it was copied from; their facts are computed again here, their
        decisions where they were made.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from remit.core.failure import InvariantBroken, RemitError
from remit.core.journal.arrivals import ApprovalGiven, Arrival, CallProposed, CodeReturned, ModelAnswered, RunStarted
from remit.core.journal.codec import decode_turn, encode_turn, hash_turn, redacted_in
from remit.core.journal.storage import BlobMissing
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.record import Record, Text, digest_of, replace
from remit.kernel.authority.conditions import looks_for_assertions
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState, pinned
from remit.observe.linked_turns import references
from remit.observe.plain import printable_line
from remit.observe.proof.export import Export
from remit.orchestrate.facts.facts import Facts
from remit.orchestrate.facts.first_arrival import started
from remit.orchestrate.facts.texts import Kept
from remit.orchestrate.history.retold import report_behind, with_words_of
from remit.orchestrate.ports import Blobs
from remit.orchestrate.tenants.rates import as_counted

if TYPE_CHECKING:
    from remit.orchestrate.facts.gate_trace import Tracer

# Enough of both sides to see what differs.
SHOWN_CHARS_MAX = 400

# The text under a digest, or None when it is not kept any more.
BlobOf = Callable[[bytes], bytes | None]


# What the house raises over a turn that no kernel could have taken.
_NONSENSE = (RemitError, AssertionError, LookupError, ValueError, TypeError, AttributeError, RecursionError)


class AuditVerdict(StrEnum):
    """The verdict of an audit."""

    SAME = "same"
    DIFFERENT = "different"
    OTHER_VERSION = "other_version"
    REDACTED = "redacted"


class TurnDifference(Record):
    """The first turn that comes out differently: in what, as recorded, and as computed again."""

    seq: int
    what: str
    recorded: str
    recomputed: str


class Audit(Record):
    """The audit of a run whose turns were decided again. Numbers in the tuples are those of turns."""

    turns: int
    verdict: AuditVerdict
    same: int
    difference: TurnDifference | None = None
    # Decided by other rules than these, so not compared; or written by another version, and so not the same bytes.
    other_version: tuple[int, ...] = ()
    # Decided again from recorded facts alone, since a text they were computed from is gone.
    redacted: tuple[int, ...] = ()
    # Same in everything that the journal keeps enough of (Rule 4).
    unkept: tuple[int, ...] = ()
    # Copied from the run this is a fork of (Rule 5).
    copied: tuple[int, ...] = ()


class _Gone(Exception):
    """A text that is needed is not kept any more."""


class _Different(Exception):
    """Something came out differently."""

    def __init__(self, what: str, recorded: object, recomputed: object) -> None:
        super().__init__(what)
        self.what, self.recorded, self.recomputed = what, recorded, recomputed


async def kept_texts(blobs: Blobs, data: Iterable[bytes]) -> dict[bytes, bytes]:
    """The long texts that these turns name, as far as both can be read, for an audit, a verification or an export."""
    texts: dict[bytes, bytes] = {}
    for stored in data:
        try:
            turn = decode_turn(stored)
        except InvariantBroken:
            continue  # It is found when the turns are compared.
        for reference in references(turn):
            if reference.digest not in texts:
                try:
                    texts[reference.digest] = await blobs.get(reference.digest)
                except BlobMissing:
                    continue  # Redacted: a reader that asks for it learns that it is gone.
    return texts


def audit(data: Sequence[bytes], blob_of: BlobOf) -> Audit:
    """Decide a run again, from its stored turns."""
    auditor = _Auditor(blob_of)
    difference: TurnDifference | None = None
    for seq, stored in enumerate(data):
        try:
            auditor.take(seq, stored)
        except _Different as found:
            difference = TurnDifference(seq, found.what, _shown(found.recorded), _shown(found.recomputed))
            break
    if difference is not None:
        verdict = AuditVerdict.DIFFERENT
    elif auditor.other_version:
        verdict = AuditVerdict.OTHER_VERSION
    else:
        verdict = AuditVerdict.REDACTED if auditor.redacted else AuditVerdict.SAME
    return Audit(
        turns=len(data),
        verdict=verdict,
        same=auditor.same,
        difference=difference,
        other_version=tuple(auditor.other_version),
        redacted=tuple(auditor.redacted),
        unkept=tuple(auditor.unkept),
        copied=tuple(auditor.copied),
    )


class _Auditor:
    """Follows a run, turn by turn."""

    def __init__(self, blob_of: BlobOf) -> None:
        self._state = RunState()
        self._facts = Facts()
        self._blob_of = blob_of
        self._tracer: Tracer | None = None
        self._copied_seq = -1
        self._is_redacted = False
        self.same = 0
        self.other_version: list[int] = []
        self.redacted: list[int] = []
        self.unkept: list[int] = []
        self.copied: list[int] = []

    def take(self, seq: int, stored: bytes) -> None:
        """Compare the next turn, then fold it; raises _Different."""
        try:
            turn = decode_turn(stored)
        except InvariantBroken as error:
            raise _Different("bytes", error.message, "a turn that can be read") from error
        is_judged = False
        self._is_redacted = self._is_redacted or redacted_in(stored) is not None
        if redacted_in(stored) is not None:
            self.redacted.append(seq)
        elif turn.kernel != KERNEL_VERSION:
            self.other_version.append(seq)
        else:
            is_judged = self._compared(seq, turn, stored)
        try:
            apply(self._state, turn, hash_turn(stored))
        except _NONSENSE as error:
            raise _Different("fold", type(error).__name__, "a turn that follows from those before it") from error
        if self._tracer is not None:
            (self._tracer.follow if is_judged else self._tracer.retrace)(turn, self._read_if_kept)
        elif seq == 0 and self._state.derived.is_traced:
            from remit.orchestrate.facts.gate_trace import traced

            self._tracer = traced(pinned(self._state), (turn,), self._read_if_kept)
        if seq == 0 and (origin := pinned(self._state).forked_from) is not None:
            self._copied_seq = origin.seq
            self.copied.append(seq)

    def _compared(self, seq: int, turn: Turn, stored: bytes) -> bool:
        """Compare one turn; behind one that was redacted a difference says only that something is missing."""
        try:
            return self._compare(seq, turn, stored)
        except _Different:
            if not self._is_redacted:
                raise
            self.redacted.append(seq)
            return False

    def _compare(self, seq: int, turn: Turn, stored: bytes) -> bool:
        """Compare one turn; whether its calls were judged again on the way."""
        is_redacted = False
        try:
            arrival = self._completed_again(seq, turn.arrival)
        except _Gone:
            arrival, is_redacted = turn.arrival, True
            self.redacted.append(seq)
        if arrival != turn.arrival:
            raise _Different(*_first_unlike("arrival", turn.arrival, arrival))
        is_spelt_alike = True
        if seq <= self._copied_seq:
            self.copied.append(seq)
        elif not _is_copied_start(arrival):
            is_spelt_alike = self._decide_again(turn, arrival, stored)
        if not is_spelt_alike:
            self.other_version.append(seq)
        self.same += is_spelt_alike and not is_redacted
        return not is_redacted

    def _decide_again(self, turn: Turn, arrival: Arrival, stored: bytes) -> bool:
        """Whether the turn comes out as the very bytes; if it only reads the same, another version wrote them."""
        try:
            # From which entry of the inbox a report came is no decision.
            again = replace(take_turn(self._state, arrival, turn.at_ms), heard=turn.heard)
        except _NONSENSE as error:
            raise _Different("decisions", turn.decisions, error) from error
        written = encode_turn(again)
        if written != encode_turn(turn):
            raise _Different(*_first_unlike("turn", turn, again))
        return written == stored

    def _completed_again(self, seq: int, arrival: Arrival) -> Arrival:
        """The arrival, made anew from the report it came from."""
        kept: Kept = []
        if isinstance(arrival, RunStarted):
            return self._started_again(arrival, kept)
        if self._state.manifest is None:
            raise _Different("arrival", type(arrival).__name__, "RunStarted")
        if self._tracer is not None and self._tracer.is_gone and self._rests_on_reading(arrival):
            raise _Gone
        try:
            report = report_behind(arrival, self._read)
            completed = self._facts.complete(self._state, report, kept, self._tracer, self._read)
        except _NONSENSE as error:
            raise _Different("arrival", arrival, error) from error
        again = with_words_of(arrival, completed)
        if again is not completed:
            self.unkept.append(seq)
        return as_counted(arrival, again)

    def _started_again(self, arrival: RunStarted, kept: Kept) -> Arrival:
        request = arrival.manifest.request
        messages = tuple(
            replace(message, content=self._read(message.content), reasoning=self._read(message.reasoning))
            for message in request.messages
        )
        manifest = replace(arrival.manifest, request=replace(request, messages=messages))
        try:
            return started(manifest, kept)
        except _NONSENSE as error:
            raise _Different("arrival", "RunStarted", error) from error

    def _rests_on_reading(self, arrival: Arrival) -> bool:
        """Whether facts of an arrival rest on everything that was read: by it calls are judged, and links of answers."""
        if isinstance(arrival, ApprovalGiven):
            return arrival.modified is not None
        if isinstance(arrival, ModelAnswered) and looks_for_assertions(pinned(self._state).boundary):
            return True
        if isinstance(arrival, CallProposed):
            return not arrival.takes
        return isinstance(arrival, ModelAnswered | CodeReturned) and bool(arrival.calls)

    def _read_if_kept(self, text: Text) -> str | None:
        """A text in full, or None when it is gone."""
        try:
            return self._read(text)
        except _Gone:
            return None

    def _read(self, text: Text) -> str:
        """A text in full."""
        if isinstance(text, str):
            return text
        data = self._blob_of(text.digest)
        if data is None:
            raise _Gone
        if digest_of(data) != text.digest:
            raise _Different("text", text.digest.hex(), digest_of(data).hex())
        return data.decode()


def _is_copied_start(arrival: Arrival) -> bool:
    return isinstance(arrival, RunStarted) and arrival.manifest.forked_from is not None


def _first_unlike(name: str, recorded: object, recomputed: object) -> tuple[str, object, object]:
    """Where two records differ first, as a path of fields, and both values there."""
    if type(recorded) is type(recomputed):
        if isinstance(recorded, Record):
            for field in recorded.__struct_fields__:
                was, now = getattr(recorded, field), getattr(recomputed, field)
                if was != now:
                    return _first_unlike(f"{name}.{field}", was, now)
        if isinstance(recorded, tuple) and isinstance(recomputed, tuple):
            for place, (was, now) in enumerate(zip(recorded, recomputed, strict=False)):
                if was != now:
                    return _first_unlike(f"{name}[{place}]", was, now)
    return name, recorded, recomputed


def _shown(value: object) -> str:
    return printable_line(value if isinstance(value, str) else str(value), SHOWN_CHARS_MAX)


def replay_export(export: Export) -> Audit:
    """A run that was carried here as a file, decided again with no model and no tool."""
    return audit(export.data, export.blobs.get)
