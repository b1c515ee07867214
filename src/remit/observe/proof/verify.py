"""Verifying a run, and the journal of halts: whether the turns are those that were written, all of them, in their order.

Rule 1: everything wrong is found and named, not only the first thing; nothing is repaired.
Rule 2: the chain shows what was changed, dropped, added or moved; a signed head shows a cut tail and a recomputed rest.
Rule 3: the holder of the key could have signed anything; a forger without it is found out.
Rule 4: a text that is gone is a redaction, not tampering: its digest stands in the chain. A text that differs is tampering.
Rule 5: turns after the last signed head have no signature yet, and the verdict says how many there are.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import InvariantBroken
from remit.core.journal.arrivals import Arrival, CallProposed, RunStarted, TextShown
from remit.core.journal.codec import NO_HASH, decode_turn, hash_turn, redacted_in
from remit.core.journal.commands import COMMANDS, AskHuman, CallTool, ForkRun
from remit.core.journal.rulings import (
    AddendumNoted,
    CallSettled,
    CallTaken,
    ChildHeld,
    ChildReleased,
    CommandSettled,
    EffectUnallowed,
    OutcomeContradicted,
    OutcomeDoubted,
    QuestionSettled,
    RunEnded,
    SessionEntryKept,
)
from remit.core.journal.signing import is_head_signed, is_redaction_signed
from remit.core.journal.storage import STORE_INDEX_LOST, Losses, SignedHead
from remit.core.journal.turn import Decision, RedactedTurn, Turn
from remit.core.record import digest_of
from remit.core.run.halt import HALTS, NOTHING_HALTED, halts_after
from remit.kernel.decide import ANSWERS, HEARD_LATE
from remit.observe.linked_turns import references
from remit.observe.plain import printable_line
from remit.observe.proof.findings import Fault, Finding, Verification

# Enough to see what happened, few enough to read: a journal that was shuffled is wrong at every turn.
FINDINGS_MAX = 100

# What an ended run may still decide: to note what came late, to keep an entry for its session, to fork itself.
_AFTER_THE_ENDING = (AddendumNoted, OutcomeContradicted, EffectUnallowed, SessionEntryKept, ForkRun)
_SETTLING = (CommandSettled, CallSettled, QuestionSettled, OutcomeDoubted, ChildHeld, ChildReleased)


# Arrivals that no person made.
ANSWERED_BY_THE_WORLD: frozenset[type[Arrival]] = frozenset(
    {RunStarted, CallProposed, TextShown, *(kind for kind, command in ANSWERS.items() if command is not AskHuman)}
)
# Decisions on which a process or a person acts; of calls, the mutating ones.
ACTED_ON: frozenset[type[Decision]] = frozenset(
    {CallTool, AskHuman, QuestionSettled, CallTaken, EffectUnallowed, RunEnded}
)


# The did:key that a caller trusts, or those of a deployment; None for any.
AcceptedKeys: TypeAlias = str | frozenset[str] | None


def is_accepted(signer: str, trusted: AcceptedKeys) -> bool:
    """Whether a signer is trusted."""
    return trusted is None or (signer == trusted if isinstance(trusted, str) else signer in trusted)


def verify_run(
    run_id: str,
    data: Iterable[bytes],
    heads: Sequence[SignedHead],
    logged: Sequence[SignedHead],
    signer: AcceptedKeys,
    blob_of: Callable[[bytes], bytes | None],
) -> Verification:
    """Verify a run from its stored turns, the heads kept with it and those in the log beside the store.

    `signer` is the did:key the caller trusts, or those of the machines of a deployment, any of which may have driven the
    run; None takes any signer, as long as it was one throughout. `blob_of` gives the text under a digest, or None when
    it is not kept any more.
    """
    verifier = Verifier(run_id)
    for stored in data:
        verifier.take_turn(stored)
    for digest in verifier.wanted:
        if (text := blob_of(digest)) is not None:
            verifier.take_blob(digest, text)
    verifier.take_heads(heads, signer)
    verifier.take_heads(logged, signer)
    return verifier.verdict()


def needs_a_head(turn: Turn) -> bool:
    """Whether nothing may act on a turn, or be told of it, before a signed head vouches for it."""
    return type(turn.arrival) not in ANSWERED_BY_THE_WORLD or decides_any(turn, ACTED_ON)


def decides_any(turn: Turn, kinds: frozenset[type[Decision]]) -> bool:
    """Whether a turn has a decision of these kinds; of calls only the mutating ones count. Every turn comes by here."""
    if kinds.isdisjoint(map(type, turn.decisions)):
        return False
    # A loop, since any() would ask a generator for each decision.
    for decision in turn.decisions:
        if type(decision) in kinds and (type(decision) is not CallTool or decision.mutating):
            return True
    return False


class Verifier:
    """Takes the parts of a run one by one: turns in order, then blobs and heads; and keeps what it found."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        # Digests the turns name, with the first turn that does.
        self.wanted: dict[bytes, int] = {}
        self._links: list[bytes] = []
        self._at_ms = 0
        self._ordered: set[str] = set()
        self._ending, self._ended_seq = "", -1
        self._has_end_head = False
        self._signed_turns = 0
        # The last turn that may not have been acted on before its head was signed, and how far a fork was copied.
        self._weighty_seq = -1
        self._copied_seq = -1
        self._seen: set[SignedHead] = set()
        self._signers: set[str] = set()
        # Keys of one deployment: several of them may vouch for a run.
        self._accepted: frozenset[str] = frozenset()
        self._found: list[Finding] = []
        self._left_out = 0
        self._kept: set[bytes] = set()
        self._redactions: dict[int, RedactedTurn] = {}

    @property
    def turns(self) -> int:
        """How many turns were taken."""
        return len(self._links)

    def find(self, code: Fault, message: str, seq: int = -1) -> None:
        """Note something."""
        if len(self._found) < FINDINGS_MAX:
            self._found.append(Finding(code, message, seq))
        else:
            self._left_out += 1

    def take_turn(self, stored: bytes) -> Turn | None:
        """Check the next turn against all before it; None when it cannot be read."""
        seq, head = len(self._links), self._links[-1] if self._links else NO_HASH
        self._links.append(hash_turn(stored))
        try:
            turn = decode_turn(stored)
        except InvariantBroken as error:
            self.find(Fault.TURN_UNREADABLE, _shown(error.message), seq)
            return None
        self._check_redaction(seq, stored)
        if turn.seq != seq:
            self.find(Fault.TURN_MISPLACED, f"turn {turn.seq} stands where turn {seq} belongs", seq)
        if turn.previous != head:
            self.find(Fault.CHAIN_BROKEN, f"turn {seq} does not carry the hash of the turn before it", seq)
        if turn.at_ms < self._at_ms:
            self.find(Fault.TIME_REVERSED, f"turn {seq} is of {turn.at_ms} ms, after one of {self._at_ms} ms", seq)
        self._at_ms = max(self._at_ms, turn.at_ms)
        self._check_start(seq, turn)
        if seq > self._copied_seq and needs_a_head(turn):
            self._weighty_seq = seq
        self._check_commands(seq, turn)
        self._check_ending(seq, turn)
        for reference in references(turn):
            self.wanted.setdefault(reference.digest, seq)
        return turn

    def take_blob(self, digest: bytes, text: bytes) -> None:
        """Check a text that is kept under a digest."""
        self._kept.add(digest)
        if digest_of(text) != digest:
            message = f"the text under digest {digest.hex()} has another digest, {digest_of(text).hex()}"
            self.find(Fault.BLOB_ALTERED, message, self.wanted.get(digest, -1))

    def take_heads(self, heads: Iterable[SignedHead], signer: AcceptedKeys) -> None:
        """Check signed heads against the turns; all turns must have been taken."""
        self._accepted |= signer if isinstance(signer, frozenset) else frozenset()
        for head in heads:
            if head in self._seen:
                continue  # The log repeats what is kept with the run.
            self._seen.add(head)
            if not is_head_signed(head):
                self.find(
                    Fault.HEAD_FORGED, f"the signature of the head of turn {head.seq} is not its signer's", head.seq
                )
                continue
            if not is_accepted(head.signer, signer):
                named = signer if isinstance(signer, str) else "a key that is accepted here"
                message = f"the head of turn {head.seq} is signed by {_shown(head.signer)}, not by {_shown(named)}"
                self.find(Fault.SIGNER_UNTRUSTED, message, head.seq)
                continue
            self._signers.add(head.signer)
            if head.run_id != self.run_id:
                self.find(Fault.HEAD_FOREIGN, f"a head of run {_shown(head.run_id)} is kept with this run", head.seq)
                continue
            self._check_head(head)

    def verdict(self) -> Verification:
        """The verification of a run, once all its parts were taken."""
        if not self._links:
            self.find(Fault.RUN_EMPTY, f"run {_shown(self.run_id)} has no turn; there is nothing to verify")
        if len(self._signers) > 1 and not self._signers <= self._accepted:
            message = f"{len(self._signers)} signers vouch for this run: {_shown(', '.join(sorted(self._signers)))}"
            self.find(Fault.SIGNER_UNTRUSTED, message)
        if self._ending and not self._has_end_head:
            message = f"the run ended as {self._ending} with turn {self._ended_seq}, and no signed head says so"
            self.find(Fault.END_HEAD_MISSING, message, self._ended_seq)
        elif self._weighty_seq >= self._signed_turns:
            message = (
                f"turn {self._weighty_seq} hears or asks a person, orders an effect or ends the run, and no signed head "
                "vouches for it: it was put there, or its process died writing it, and resuming the run signs it"
            )
            self.find(Fault.TURN_UNSIGNED, message, self._weighty_seq)
        gone = [digest for digest in self.wanted if digest not in self._kept]
        self._tell_redactions()
        for digest in gone:
            self.find(Fault.BLOB_REDACTED, f"the text {digest.hex()} is not kept any more", self.wanted[digest])
        return Verification(
            run_id=self.run_id,
            turns=len(self._links),
            signed_turns=self._signed_turns,
            head=self._links[-1].hex() if self._links else "",
            ending=self._ending,
            signer=", ".join(sorted(self._signers))
            if self._signers <= self._accepted or len(self._signers) == 1
            else "",
            redacted=tuple(digest.hex() for digest in gone),
            findings=tuple(self._found),
            findings_left_out=self._left_out,
            redacted_turns=tuple(self._redactions),
        )

    def _check_redaction(self, seq: int, stored: bytes) -> None:
        """A turn that was redacted is vouched for by a signature of its own."""
        redacted = redacted_in(stored)
        if redacted is None:
            return
        self._redactions[seq] = redacted
        if not is_redaction_signed(self.run_id, seq, redacted):
            self.find(Fault.REDACTION_FORGED, f"turn {seq} was redacted, and its signer did not sign for it", seq)

    def _tell_redactions(self) -> None:
        """Say once for each person and reason how many turns they were; only who signs the run may have signed them."""
        told: dict[tuple[str, str], list[int]] = {}
        for seq, redacted in self._redactions.items():
            told.setdefault((redacted.by, redacted.why), []).append(seq)
            if redacted.signer not in self._signers:
                message = f"turn {seq} was redacted under the signature of {_shown(redacted.signer)}"
                self.find(Fault.SIGNER_UNTRUSTED, message, seq)
        for (by, why), turns in told.items():
            what = f"{len(turns)} turns, the first of them {turns[0]}, were redacted by {_shown(by)}"
            self.find(Fault.TURN_REDACTED, f"{what} because {_shown(why)!r}", turns[0])

    def _check_start(self, seq: int, turn: Turn) -> None:
        is_start = isinstance(turn.arrival, RunStarted)
        if is_start != (seq == 0):
            what = "begins the run again" if is_start else "is the first and does not begin the run"
            self.find(Fault.RUN_NOT_STARTED, f"turn {seq} {what}", seq)
        if not isinstance(turn.arrival, RunStarted):
            return
        manifest = turn.arrival.manifest
        if manifest.run_id != self.run_id:
            message = f"turn {seq} begins run {_shown(manifest.run_id)}, not {_shown(self.run_id)}"
            self.find(Fault.RUN_FOREIGN, message, seq)
        if manifest.forked_from is not None:
            # What was copied, and the pause after it, was acted on in the origin or not at all.
            self._copied_seq = manifest.forked_from.seq + 1

    def _check_commands(self, seq: int, turn: Turn) -> None:
        """A command is numbered by its turn and its place; whatever names one names one that was ordered before."""
        answered = getattr(turn.arrival, "command_id", "")
        if type(turn.arrival) in ANSWERS and answered not in self._ordered:
            self.find(
                Fault.COMMAND_UNKNOWN, f"turn {seq} answers command {_shown(answered)}, which was not ordered", seq
            )
        for place, decision in enumerate(turn.decisions):
            if type(decision) in COMMANDS:
                number: str = decision.id  # type: ignore[union-attr]  # the set holds exactly the commands
                if number != f"{seq}.{place}":
                    message = f"turn {seq} orders command {_shown(number)} in place {place}"
                    self.find(Fault.COMMAND_MISNUMBERED, message, seq)
                self._ordered.add(number)
            elif isinstance(decision, _SETTLING) and decision.command_id not in self._ordered:
                message = f"turn {seq} settles command {_shown(decision.command_id)}, which was not ordered"
                self.find(Fault.COMMAND_UNKNOWN, message, seq)

    def _check_ending(self, seq: int, turn: Turn) -> None:
        """After its ending a run only hears late outcomes, effects, retries and session entries, and notes them."""
        if self._ending:
            arrival = turn.arrival
            is_effect = isinstance(arrival, TextShown) and arrival.made is not None
            is_heard = is_effect or type(arrival) in ANSWERS or isinstance(arrival, HEARD_LATE)
            if not is_heard or not all(isinstance(decision, _AFTER_THE_ENDING) for decision in turn.decisions):
                message = f"turn {seq} goes on with a run that ended as {self._ending} with turn {self._ended_seq}"
                self.find(Fault.TURN_AFTER_ENDING, message, seq)
            return
        for decision in turn.decisions:
            if isinstance(decision, RunEnded):
                self._ending, self._ended_seq = decision.ending.value, seq

    def _check_head(self, head: SignedHead) -> None:
        if not 0 <= head.seq < len(self._links):
            message = f"turn {head.seq} was signed, and the journal ends with turn {len(self._links) - 1}"
            self.find(Fault.HEAD_BEYOND_JOURNAL, message, head.seq)
            return
        if head.head != self._links[head.seq]:
            message = f"turn {head.seq} was signed with hash {head.head.hex()} and has {self._links[head.seq].hex()}"
            self.find(Fault.HEAD_MISMATCH, message, head.seq)
            return
        is_ended = self._ending != "" and head.seq >= self._ended_seq
        # The turn that ends a run is signed as its end; a later head may say so again.
        is_said = head.ending != "" or head.seq == self._ended_seq
        if is_said and (not is_ended or head.ending != self._ending):
            says = f"ended as {_shown(head.ending)}" if head.ending else "open"
            is_so = f"ended as {self._ending}" if is_ended else "open"
            self.find(Fault.HEAD_MISMATCH, f"turn {head.seq} was signed as {says}, and the run is {is_so}", head.seq)
            return
        self._signed_turns = max(self._signed_turns, head.seq + 1)
        self._has_end_head = self._has_end_head or head.ending != ""


def _shown(text: str) -> str:
    return printable_line(text, SHOWN_CHARS_MAX)


def verify_halts(
    data: Sequence[bytes], heads: Sequence[SignedHead], logged: Sequence[SignedHead], signer: AcceptedKeys
) -> tuple[str, ...]:
    """What is wrong with the journal of halts; nothing where it is as it was written.

    `signer` is the did:key the caller trusts; None takes any signer.
    """
    found: list[str] = []
    try:
        halts_after(NOTHING_HALTED, data)
    except InvariantBroken as error:
        found.append(error.message)
    links = [hash_turn(stored) for stored in data]
    vouched: set[int] = set()
    # Of two lines of the log about one entry the later one counts: the first was lost, and a lift accepted that.
    for head in (*heads, *{head.seq: head for head in logged}.values()):
        if head.run_id != HALTS or not is_head_signed(head) or not is_accepted(head.signer, signer):
            found.append(f"the head of entry {head.seq + 1} is not signed by the key of this store")
        elif not 0 <= head.seq < len(links):
            found.append(f"entry {head.seq + 1} was signed, and the journal ends with entry {len(links)}")
        elif links[head.seq] != head.head:
            found.append(f"entry {head.seq + 1} is not the one that was signed")
        else:
            vouched.add(head.seq)
    # A store that has no key signs nothing; what can alter it could alter this process as well.
    if signer is not None:
        found += [f"no signed head vouches for entry {seq + 1}" for seq in range(len(links)) if seq not in vouched]
    return tuple(dict.fromkeys(found))


def verifications_of(lost: Losses) -> Iterator[Verification]:
    """The verdicts on what a store has lost: on runs by their ids, and on its log of heads under no name."""
    for run_id in lost.unlisted:
        message = f"run {run_id} is kept and not listed ({STORE_INDEX_LOST}); `remit rebuild` lists it again"
        yield nothing_of(run_id, Finding(Fault.INDEX_DIFFERS, message))
    for run_id in lost.missing:
        message = f"run {run_id} was signed for and is gone, and was not deleted: it was taken out of the store"
        yield nothing_of(run_id, Finding(Fault.RUN_GONE, message))
    if lost.is_log_lost:
        message = "heads of this store were signed, and its log of heads is gone or empty"
        yield nothing_of("", Finding(Fault.LOG_GONE, message))
    if lost.is_log_damaged:
        message = "lines of the log of heads cannot be read, and no crash cut them: what they vouched for is not known"
        yield nothing_of("", Finding(Fault.LOG_GONE, message))


def nothing_of(name: str, *findings: Finding) -> Verification:
    """The verdict on what is no run, or is not there."""
    return Verification(
        run_id=name, turns=0, signed_turns=0, head="", ending="", signer="", redacted=(), findings=findings
    )
