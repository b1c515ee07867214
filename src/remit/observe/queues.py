"""What a queue of people holds: the open questions of runs, and the endings that hand authority on.

Rule 1: a projection: it reads states and turns, and writes nothing. Whoever has acknowledged what is told to it.
Rule 2: an item is a question until it is settled, and an ending until somebody acknowledges it. The ending of a child
        goes to its parent; only a grave one goes to a queue as well.
Rule 3: what is overdue stands first, then what is graver, then what is older.
Rule 4: a summary is one bounded line; models, tools and people may have written what stands in it.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from remit.core.commands import AskHuman, AskPurpose
from remit.core.escalation import QUEUES, SEVERITY_RANK, TRIGGER_OF, Escalation, Severity, Trigger, escalation_of
from remit.core.events import Turn
from remit.core.failure import EscalationRoute
from remit.core.queue import QueueLimits
from remit.core.record import BlobRef, Record, Text, replace
from remit.core.rulings import RunEnded
from remit.core.signals import packet_id
from remit.kernel.state import RunState, questions
from remit.observe.plain import plain

# A summary stands on one line beside a name, an age and a date.
SUMMARY_CHARS_MAX = 160
_ARGUMENTS_CHARS_MAX = 100


class What(StrEnum):
    """What an item wants of people."""

    APPROVAL = "approval"
    QUESTION = "question"
    OUTCOME = "outcome"
    RELEASE = "release"
    REVIEW = "review"
    ENDING = "ending"


class QueueItem(Record):
    """One thing that waits for people. Its id is RUN/COMMAND for a question and RUN for an ending."""

    id: str
    run_id: str
    queue: str
    what: What
    severity: Severity
    trigger: Trigger
    route: EscalationRoute
    since_ms: int
    summary: str
    # When silence becomes an answer; 0 for an ending, which waits until somebody takes note of it.
    expires_at_ms: int = 0
    group: str = ""
    # How many queues were asked before and kept silent.
    silences: int = 0
    age_ms: int = 0
    is_overdue: bool = False


class QueueShown(Record):
    """A queue at a glance."""

    name: str
    items: int = 0
    high: int = 0
    moderate: int = 0
    low: int = 0
    oldest_ms: int = 0
    overdue: int = 0
    # Of those that are overdue, the grave ones.
    overdue_high: int = 0
    load_max: int = 0
    age_ms_max: int = 0
    is_saturated: bool = False


def escalation_asked(question: AskHuman) -> Escalation:
    """To whom a question goes; one that was asked before questions said so goes where its code leads."""
    return question.escalation or escalation_of(TRIGGER_OF.get(question.ending, Trigger.HIGH_IMPACT_MUTATION))


def asked_at_ms(question: AskHuman, turns: Sequence[Turn]) -> int:
    """When a question was asked: its id begins with the number of its turn."""
    seq = int(question.id.partition(".")[0])
    return turns[seq].at_ms if seq < len(turns) else 0


def items_asked(state: RunState, turns: Sequence[Turn]) -> list[QueueItem]:
    """What a run asks people, as items of queues."""
    return [_item(state, question, turns) for question in questions(state)]


def item_ended(run_id: str, turns: Iterable[Turn], *, is_child: bool = False) -> QueueItem | None:
    """The ending of a run as an item of a queue; None where it hands nothing on, or hands it to its parent."""
    for turn in turns:
        for decision in turn.decisions:
            if isinstance(decision, RunEnded):
                return _ended(run_id, decision, turn.at_ms, is_child=is_child)
    return None


def _ended(run_id: str, ended: RunEnded, at_ms: int, *, is_child: bool) -> QueueItem | None:
    handed = ended.escalation
    if handed is None or (is_child and handed.severity is not Severity.HIGH):
        return None
    why = f": {ended.message}" if ended.message else ""
    summary = plain(f"ended as {ended.ending}{why}", SUMMARY_CHARS_MAX)
    return QueueItem(
        run_id, run_id, handed.queue, What.ENDING, handed.severity, handed.trigger, handed.route, at_ms, summary
    )


def _item(state: RunState, question: AskHuman, turns: Sequence[Turn]) -> QueueItem:
    to = escalation_asked(question)
    return QueueItem(
        id=packet_id(state.run_id, question.id),
        run_id=state.run_id,
        queue=to.queue,
        what=What(question.purpose.value),
        severity=to.severity,
        trigger=to.trigger,
        route=to.route,
        since_ms=asked_at_ms(question, turns),
        summary=plain(_summary(question), SUMMARY_CHARS_MAX),
        expires_at_ms=question.expires_at_ms,
        group=packet_id(state.run_id, question.group) if question.group else "",
        silences=question.silences,
    )


def _summary(question: AskHuman) -> str:
    if question.packet is None:
        return question.question or ("release more budget" if question.purpose is AskPurpose.RELEASE else "a question")
    call = question.packet.call
    verb = "what became of " if question.purpose is AskPurpose.OUTCOME else ""
    return f"{verb}{call.tool} {_shown(call.arguments)}"


def _shown(arguments: Text) -> str:
    return f"<{arguments.size_bytes} bytes>" if isinstance(arguments, BlobRef) else arguments[:_ARGUMENTS_CHARS_MAX]


def aged(items: Iterable[QueueItem], limits: Iterable[QueueLimits], now_ms: int) -> list[QueueItem]:
    """The items as they stand at a moment, in the order in which people should look at them."""
    age_max = {one.name: one.age_ms_max for one in limits if one.age_ms_max}
    shown = []
    for item in items:
        age_ms = max(0, now_ms - item.since_ms)
        shown.append(replace(item, age_ms=age_ms, is_overdue=age_ms > age_max.get(item.queue, age_ms)))
    return sorted(shown, key=_place)


def _place(item: QueueItem) -> tuple[bool, int, int, str]:
    return (not item.is_overdue, -SEVERITY_RANK[item.severity], item.since_ms, item.id)


def overview(items: Iterable[QueueItem], limits: Iterable[QueueLimits]) -> list[QueueShown]:
    """Every queue that holds something, is named by a limit, or belongs to the table of triggers."""
    limited = {one.name: one for one in limits}
    held: dict[str, list[QueueItem]] = {name: [] for name in (*limited, *QUEUES)}
    for item in items:
        held.setdefault(item.queue, []).append(item)
    return [_queue(name, of_it, limited.get(name, QueueLimits(name))) for name, of_it in held.items()]


def _queue(name: str, items: Sequence[QueueItem], limits: QueueLimits) -> QueueShown:
    counts = {rank: sum(item.severity is rank for item in items) for rank in Severity}
    overdue = [item for item in items if item.is_overdue]
    return QueueShown(
        name,
        len(items),
        counts[Severity.HIGH],
        counts[Severity.MODERATE],
        counts[Severity.LOW],
        max((item.age_ms for item in items), default=0),
        len(overdue),
        sum(item.severity is Severity.HIGH for item in overdue),
        limits.load_max,
        limits.age_ms_max,
        bool(limits.load_max) and len({packet_of(item) for item in items}) >= limits.load_max,
    )


def ahead_of(item: QueueItem, items: Iterable[QueueItem]) -> int:
    """How many packets of its queue were there before this item's own; calls that were held together are one."""
    before = {
        packet_of(other)
        for other in items
        if other.queue == item.queue and (other.since_ms, other.id) < (item.since_ms, item.id)
    }
    return len(before - {packet_of(item)})


def packet_of(item: QueueItem) -> str:
    """What an item is answered with: its group, or itself where it is alone."""
    return item.group or item.id
