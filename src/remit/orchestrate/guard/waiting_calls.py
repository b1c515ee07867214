"""Waiting calls: which calls of one run wait for a person, each known by its ids and by its bytes.

Rule 1: the same tool with the same arguments is the same question, under whatever id it is proposed, and however often: asking
        again makes no turn and costs nothing.
Rule 2: every id under which a waiting call was proposed names it, to an answer and to a result. An id of its own goes first.
Rule 3: all of it is read off turns, but for the other ids: a process that goes on with a run learns those when they ask again.
Rule 4: a yes is to the packet that a verdict showed to the host: the one that the answer names, else the one shown last.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from remit.core.failure import ArrivalFault, RequestRejected
from remit.core.journal.commands import AskHuman, question_version
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.turn import Turn
from remit.core.record import JsonObject
from remit.core.run.signals import PACKET_AMBIGUOUS, never_asked
from remit.kernel.authority.authorize import authorize, has_valid_arguments, is_registered
from remit.kernel.authority.verdict import ALLOWED
from remit.kernel.people.outdated import reasons_shown
from remit.kernel.state import CallKey, RunState
from remit.kernel.tally import Tally
from remit.observe.people.packets import QUESTION_SETTLED, too_late
from remit.orchestrate.guard.shown_verdicts import CALL_ID_HELD, found_json, shown_refusal
from remit.provenance.gate import Gate

# An agent that asks each time under another id would otherwise be remembered without end; it answers under one of the latest.
OTHER_IDS_MAX = 1_000

_SHOWN_MAX = 5
# What a call must be before it can be another call of the same id.
_FIT = (is_registered, has_valid_arguments)


@dataclass(slots=True)
class WaitingCall:
    """A call that waits for a person: its question, the verdict that was shown, and the question that it was shown with."""

    question: AskHuman
    call: ProposedCall
    shown: JsonObject = field(default_factory=dict)
    shown_with: AskHuman | None = None

    @property
    def call_id(self) -> str:
        """The id under which it was proposed first."""
        return self.call.call_id

    @property
    def packet(self) -> str:
        """The version of the packet that waits."""
        return question_version(self.question)

    def is_heard(self, named: str | None, *, approve: bool) -> bool:
        """Whether an answer is to the packet that waits; a no that names none is to whatever waits."""
        if named is not None:
            return named == self.packet
        return not approve or (self.shown_with is not None and question_version(self.shown_with) == self.packet)

    def showing(self, shown: JsonObject, state: RunState) -> JsonObject:
        """The verdict that the host is shown now, with the packet that it is about."""
        self.shown, self.shown_with = shown, self.question
        assert self.question.packet is not None, "what is held is a call"
        later = reasons_shown(state, self.question)[len(self.question.packet.reasons) :]
        return {**shown, "reasons": [*shown["reasons"], *later], "packet": self.packet}


class WaitingCalls:
    """The calls of one run that wait for a person."""

    def __init__(self) -> None:
        self._of_id: dict[str, WaitingCall] = {}
        # A journal from before rule 1 may hold the same call several times.
        self._of_key: dict[CallKey, dict[str, bool]] = {}
        self._of_question: dict[str, str] = {}
        self._other_ids: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._of_id)

    def __iter__(self) -> Iterator[str]:
        return iter(self._of_id)

    def get(self, call_id: str) -> WaitingCall | None:
        """The waiting call of this id, its own or another under which it was proposed."""
        return self._of_id.get(call_id) or self._of_id.get(self._other_ids.get(call_id, ""))

    def same_as(self, call: ProposedCall) -> WaitingCall | None:
        """The waiting call that is this very one, whatever its id."""
        known = self._of_key.get((call.tool, call.arguments_hash))
        return None if known is None else self._of_id[next(iter(known))]

    def meant(self, call_id: str | None, tool: str) -> ProposedCall | None:
        """The waiting, unapproved call that a result is of; without an id the first of its tool."""
        if call_id is not None:
            waiting = self.get(call_id)
            return waiting.call if waiting is not None and waiting.call.tool == tool else None
        return next((waiting.call for waiting in self._of_id.values() if waiting.call.tool == tool), None)

    def own_id(self, call_id: str) -> str:
        """The id under which the call was proposed first that was held under this one."""
        return self._other_ids.get(call_id, call_id)

    def know_as(self, call_id: str, waiting: WaitingCall) -> None:
        """Know a waiting call by another id as well."""
        if call_id != waiting.call_id:
            self._other_ids[call_id] = waiting.call_id
            if len(self._other_ids) > OTHER_IDS_MAX:
                del self._other_ids[next(iter(self._other_ids))]

    def forget_id(self, call_id: str) -> None:
        """Let an id name another call from now on."""
        self._other_ids.pop(call_id, None)

    def add(self, question: AskHuman, call: ProposedCall) -> None:
        """Hold a call under its id. Where the next person is asked, or with more, the call stays the same."""
        known = self._of_id.get(call.call_id)
        if known is not None:
            self._release(known)
        waiting = self._of_id[call.call_id] = WaitingCall(question, call)
        if known is not None:
            waiting.shown, waiting.shown_with = _retold(known, question), known.shown_with
        self._of_key.setdefault((call.tool, call.arguments_hash), {})[waiting.call_id] = True
        self._of_question[question.id] = waiting.call_id

    def settle(self, questions: Iterable[str]) -> None:
        """Forget the calls that these questions were about."""
        for question_id in questions:
            if (call_id := self._of_question.get(question_id)) is not None:
                self.drop(call_id)

    def drop(self, call_id: str) -> None:
        """Hold the call of this id no longer."""
        waiting = self.get(call_id)
        if waiting is not None:
            del self._of_id[waiting.call_id]
            self._release(waiting)

    def _release(self, waiting: WaitingCall) -> None:
        del self._of_question[waiting.question.id]
        key = (waiting.call.tool, waiting.call.arguments_hash)
        del self._of_key[key][waiting.call_id]
        if not self._of_key[key]:
            del self._of_key[key]


def _retold(known: WaitingCall, question: AskHuman) -> JsonObject:
    """What was said of a waiting call, with the reasons that its question gives by now."""
    shown, before, now = known.shown, known.question.packet, question.packet
    if not shown or before is None or now is None or before.reasons == now.reasons:
        return shown
    kept = [reason for reason in shown["reasons"] if reason not in before.reasons or reason in now.reasons]
    return {**shown, "reasons": [*kept, *(reason for reason in now.reasons if reason not in before.reasons)]}


def shown_again(waiting: WaitingCall, call: ProposedCall, state: RunState, gate: Gate) -> JsonObject:
    """What is said of a call whose id names a waiting one: that it still waits, or that the id is taken."""
    if (waiting.call.tool, waiting.call.arguments_hash) == (call.tool, call.arguments_hash):
        return waiting.shown
    return shown_taken(call, state, gate, "is held")


def shown_taken(call: ProposedCall, state: RunState, gate: Gate, how: str) -> JsonObject:
    """What is said of a call whose id is that of another one: that the id is taken, unless the call is unfit anyway."""
    verdict = authorize(call, Tally(state, state.at_ms), _FIT)
    code, reason = verdict.code, verdict.reason
    if verdict is ALLOWED:
        code, reason = CALL_ID_HELD, f"id {call.call_id!r} names another call that {how}"
    return {**found_json(None, gate), **shown_refusal(code, [reason])}


def not_shown(run_id: str, waiting: WaitingCall, named: str | None, turns: Sequence[Turn]) -> RequestRejected:
    """Why an answer is refused that is to another packet than the one that waits, or to one that no verdict has shown."""
    way_out = f"propose call {waiting.call_id!r} again, show a person the verdict, and answer with its `packet`"
    if named is not None:
        message = f"the answer is to packet {named[:80]!r}, and {waiting.packet} waits now; {way_out}"
        return RequestRejected(ArrivalFault.PACKET_CHANGED, message, {"packet": waiting.packet})
    late = None if waiting.shown_with is None else too_late(run_id, turns, waiting.shown_with.id)
    why = "no verdict has shown this question" if late is None else late.message
    return RequestRejected(QUESTION_SETTLED, f"{why}; {way_out}", {"run_id": run_id, "packet": waiting.packet})


def not_waiting(run_id: str, waiting: WaitingCalls, call_id: str, turns: Sequence[Turn]) -> RequestRejected:
    """Why an answer to a call that is not held is refused, as any door says it: its question was settled, or never asked.

    An answer that names no call is one to the only call that is held.
    """
    if not call_id and waiting:
        message = f"{len(waiting)} calls are held ({', '.join([*waiting][:_SHOWN_MAX])}); say which by its id"
        return RequestRejected(PACKET_AMBIGUOUS, message, {"run_id": run_id})
    questions = [one for turn in turns for one in turn.decisions if isinstance(one, AskHuman)]
    known_as = waiting.own_id(call_id)
    asked = [one.id for one in questions if one.packet is not None and one.packet.call.call_id == known_as]
    late = too_late(run_id, turns, asked[-1] if asked else "") if asked or not call_id else None
    return late or never_asked(run_id, call_id)
