"""Packets: what people are asked together, its version, what a person changed in it, and which answer came too late.

Rule 1: calls that were held in one turn are one packet, in the order in which they were proposed; a question that was
        asked alone is a packet of its own.
Rule 2: the version of a packet covers every byte that was shown with it; one that has changed is another packet.
Rule 3: where a value comes from is told beside it: bound, or supplied by nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from remit.core.failure import RequestRejected
from remit.core.journal.arrivals import CancelRequested
from remit.core.journal.commands import AskHuman
from remit.core.journal.rulings import Answer, ApprovalCounted, QuestionSettled, RunEnded
from remit.core.journal.turn import Turn
from remit.core.limits.authority import ValueOrigin
from remit.core.record import JsonObject, Record
from remit.core.run.approval import Approval
from remit.core.run.signals import packet_id
from remit.provenance.gate_verdict import FIXES, MEANINGS, Objection

# Behind the name of a question: all that were asked together with it.
GROUP_MARK = "+"
# As much of a version as people compare; sixteen digits of a hash are more than can be forged.
VERSION_SHOWN_CHARS = 16
# What a person may name a version by. Fewer digits could be met by chance.
VERSION_CHARS_MIN = 12

# Stands where a key is missing before or after a change.
ABSENT = object()


class Change(Record):
    """An argument that a person gave another value; a key that is only on one side was added or removed."""

    key: str
    before: object
    after: object

    @property
    def is_added(self) -> bool:
        """Whether the key was not proposed."""
        return self.before is ABSENT

    @property
    def is_removed(self) -> bool:
        """Whether the key is gone."""
        return self.after is ABSENT


def group_of(asked: Approval) -> str:
    """By which name all are answered that were asked together."""
    return f"{asked.group or asked.id}{GROUP_MARK}"


def grouped(asked: Iterable[Approval]) -> list[list[Approval]]:
    """Questions in packets, each where its first question stands."""
    packets: dict[str, list[Approval]] = {}
    for one in asked:
        packets.setdefault(group_of(one), []).append(one)
    return list(packets.values())


def asked_version(packet: Sequence[Approval]) -> str:
    """The version of all that is asked together; of one question alone its own, empty where that has none."""
    if len(packet) == 1:
        return packet[0].packet
    # Names and versions hold no line ends, so different packets never give the same text.
    return sha256("\n".join(f"{one.id} {one.packet}" for one in packet).encode()).hexdigest()


def names_version(version: str, named: str) -> bool:
    """Whether this much of a version names it."""
    return len(named) >= VERSION_CHARS_MIN and bool(version) and version.startswith(named)


def changes(before: JsonObject, after: JsonObject) -> Iterator[Change]:
    """What differs between two sets of arguments, key by key: first what was proposed, then what was added."""
    for key in dict.fromkeys((*before, *after)):
        old, new = before.get(key, ABSENT), after.get(key, ABSENT)
        if old is ABSENT or new is ABSENT or not _same(old, new):
            yield Change(key, old, new)


def _same(old: object, new: object) -> bool:
    """Whether two values are written alike; 1 and true are not, whatever Python says."""
    if type(old) is not type(new):
        return False
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_same(old[key], new[key]) for key in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    return old == new


def origins_of(argument: str, origins: Iterable[ValueOrigin]) -> list[ValueOrigin]:
    """Where the values of one argument come from: its own, and those within it."""
    return [
        origin
        for origin in origins
        if origin.path == argument or origin.path.startswith((f"{argument}[", f"{argument}."))
    ]


def asked_because(asked: Approval) -> list[str]:
    """Why a person is asked, in few words: each objection once, and nothing of what would have spared the question."""
    known = asked.objection in list(Objection)
    words = f"{MEANINGS[Objection(asked.objection)]} ({asked.objection})" if known else asked.objection
    told = tuple(f"{code}:" for code in Objection) if asked.origins else ()
    reasons = [
        reason
        for reason in asked.reasons
        if reason != asked.objection and reason not in FIXES.values() and not reason.startswith(told)
    ]
    return [words, *reasons] if words else reasons


# A question that was asked, and needs no answer any more.
QUESTION_SETTLED = "QUESTION_SETTLED"


def too_late(run_id: str, turns: Iterable[Turn], command_id: str = "") -> RequestRejected | None:
    """Why an answer to a question comes too late, the last one that was settled where none is named; None where it does not."""
    settled, counted = dict[str, str](), dict[str, list[str]]()
    for turn in turns:
        for decision in turn.decisions:
            if isinstance(decision, ApprovalCounted):
                counted.setdefault(decision.command_id, []).append(decision.by)
            elif isinstance(decision, QuestionSettled):
                by = [*counted.get(decision.command_id, ()), decision.by]
                settled[decision.command_id] = _told(run_id, turn, decision, ", ".join(filter(None, by)))
    question = command_id or next(reversed(settled), "")
    if question not in settled:
        return None
    name = packet_id(run_id, question)
    message = f"question {name} {settled[question]}; `remit show {run_id}` tells what followed"
    return RequestRejected(QUESTION_SETTLED, message, {"run_id": run_id, "packet_id": name})


def _told(run_id: str, turn: Turn, settled: QuestionSettled, by: str) -> str:
    """How a question was settled, in words."""
    again = [decision.id for decision in turn.decisions if isinstance(decision, AskHuman)]
    anew = f" and is asked as {packet_id(run_id, again[-1])} now" if again else ""
    match settled.answer:
        case Answer.EXPIRED:
            return "got no answer in time"
        case Answer.ESCALATED:
            return f"got no answer in time{anew}"
        case Answer.WITHDRAWN:
            return f"was withdrawn{_because(turn) or anew}"
    return f"was {settled.answer.value} by {by or 'a person'}"


def _because(turn: Turn) -> str:
    """Why the questions of a turn were withdrawn, where that is because the run ended."""
    ending = next((decision.ending for decision in turn.decisions if isinstance(decision, RunEnded)), None)
    if ending is None:
        return ""
    if isinstance(turn.arrival, CancelRequested):
        return f", since the run was cancelled by {turn.arrival.by}"
    return f", since the run ended as {ending.value}"
