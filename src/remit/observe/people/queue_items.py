"""What a queue of people holds: the open questions of runs, and the endings that hand authority on.

Rule 1: a projection: it reads states and turns, and writes nothing. Its caller says which items were acknowledged, and by whom.
Rule 2: an item is a question until it is settled, and an ending until a person acknowledges it. The ending of a child
        goes to its parent; only one that is grave, or leaves an effect in doubt, goes to a queue as well.
Rule 3: what lies in its queue for longer than that allows is graver by one step, and by another for each such time more.
        What is overdue stands first, then what is graver, then what is older.
Rule 4: a summary is one bounded line; models, tools and people may have written what stands in it.
Rule 5: a queue that is full holds the gravest and, among equals, the oldest packets; the others wait outside, in this
        order, and enter as room appears. What is grave, and an ending, is always inside.
"""

from collections.abc import Iterable, Mapping, Sequence

from remit.core.failure import EscalationRoute
from remit.core.journal.commands import AskHuman, AskPurpose, question_version
from remit.core.journal.rulings import Answer, QuestionSettled, RunEnded
from remit.core.journal.turn import Turn
from remit.core.limits.escalation import QUEUES, SEVERITY_RANK, TRIGGER_OF, Escalation, Gravity, Trigger, escalation_of
from remit.core.limits.queue import QueueLimits
from remit.core.record import BlobRef, Record, Text, replace
from remit.core.run.approval import What
from remit.core.run.signals import packet_id
from remit.kernel.results.endings import listed_names
from remit.kernel.state import RunState, questions
from remit.observe.plain import printable_line
from remit.observe.views.late_outcomes import NOTHING_FOUND, FoundOutcome

# A summary stands on one line beside a name, an age and a date.
SUMMARY_CHARS_MAX = 160
_ARGUMENTS_CHARS_MAX = 100
_UNLIMITED = QueueLimits("-")
_BY_RANK = sorted(SEVERITY_RANK, key=SEVERITY_RANK.__getitem__)


class QueueItem(Record):
    """One thing that waits for people. Its id is RUN/COMMAND for a question and RUN for an ending."""

    id: str
    run_id: str
    queue: str
    what: What
    severity: Gravity
    trigger: Trigger
    route: EscalationRoute
    since_ms: int
    summary: str
    # When silence becomes an answer; 0 for an ending, which waits until a person takes note of it.
    expires_at_ms: int = 0
    group: str = ""
    # How many queues were asked before and kept silent.
    silences: int = 0
    age_ms: int = 0
    is_overdue: bool = False
    # Whether it waits for room in its queue.
    is_outside: bool = False
    # Who alone answers its queue; empty where every person may.
    answered_by: tuple[str, ...] = ()
    # The content hash of what is asked about, which an answer may name; empty for an ending and a plain question.
    packet: str = ""
    # The effects that an ending left unknown whether they happened.
    doubted: tuple[str, ...] = ()
    # What was found out after the ending of effects that it had left so.
    found: tuple[str, ...] = ()
    # Whose run it is of; a queue has its room for each tenant by itself.
    tenant_id: str = ""


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
    # How many of the items wait for room.
    outside: int = 0
    answered_by: tuple[str, ...] = ()


def escalation_asked(question: AskHuman) -> Escalation:
    """To whom a question goes; one that was asked before questions said so goes where its code leads."""
    return question.escalation or escalation_of(TRIGGER_OF.get(question.ending, Trigger.HIGH_IMPACT_MUTATION))


def asked_at_ms(question: AskHuman, turns: Sequence[Turn]) -> int:
    """When a question was asked first: its id begins with the number of its turn. One that is asked anew keeps its age."""
    seq = _turn_of(question.id)
    if seq >= len(turns):
        return 0
    withdrawn = [
        earlier
        for settled in turns[seq].decisions
        if isinstance(settled, QuestionSettled) and settled.answer is Answer.WITHDRAWN
        for earlier in turns[_turn_of(settled.command_id)].decisions
        if isinstance(earlier, AskHuman) and earlier.id == settled.command_id and _is_same(earlier, question)
    ]
    return asked_at_ms(withdrawn[0], turns) if withdrawn else turns[seq].at_ms


def _turn_of(command_id: str) -> int:
    return int(command_id.partition(".")[0])


def _is_same(earlier: AskHuman, question: AskHuman) -> bool:
    """Whether two questions are about the same call and ask the same of it."""
    before, now = earlier.packet, question.packet
    if before is None or now is None or earlier.purpose is not question.purpose:
        return False
    same = (before.call.call_id, before.call.tool, before.about) == (now.call.call_id, now.call.tool, now.about)
    return same and before.call.arguments_hash == now.call.arguments_hash


def items_asked(state: RunState, turns: Sequence[Turn]) -> list[QueueItem]:
    """The questions of a run, as items of queues."""
    return [_item(state, question, turns) for question in questions(state)]


def ended_by(turns: Iterable[Turn]) -> tuple[RunEnded, int] | None:
    """The ruling that ended a run, and when; None where these turns have none."""
    ended = ((one, turn.at_ms) for turn in turns for one in turn.decisions if isinstance(one, RunEnded))
    return next(ended, None)


def item_ended(
    run_id: str, turns: Iterable[Turn], *, is_child: bool = False, found: Mapping[str, FoundOutcome] = NOTHING_FOUND
) -> QueueItem | None:
    """The ending of a run as an item of a queue; None where it hands nothing on, or hands it to its parent.

    `found` is what was found out since of effects that it left in doubt. An ending that stands in a queue for these alone
    leaves it once all of them are known not to have happened.
    """
    if (told := ended_by(turns)) is None:
        return None
    ended, at_ms = told
    known = {claim: found[claim] for claim in ended.doubted if claim in found}
    doubted = tuple([claim for claim in ended.doubted if claim not in known])
    is_settled = bool(known) and not doubted and not any(one.has_returned for one in known.values())
    if is_settled and ended.ending not in TRIGGER_OF:
        return None
    return _ended(run_id, ended, at_ms, doubted, tuple([one.told for one in known.values()]), is_child=is_child)


def _ended(
    run_id: str, ended: RunEnded, at_ms: int, doubted: tuple[str, ...], found: tuple[str, ...], *, is_child: bool
) -> QueueItem | None:
    handed = ended.escalation
    if handed is None or (is_child and handed.severity is not Gravity.HIGH and not ended.doubted):
        return None
    doubt = f", and it is unknown what became of {listed_names(doubted)}" if doubted else ""
    since = f"; {'; '.join(found)}" if found else ""
    why = f": {ended.message}" if ended.message else ""
    return QueueItem(
        id=run_id,
        run_id=run_id,
        queue=handed.queue,
        what=What.ENDING,
        severity=handed.severity,
        trigger=handed.trigger,
        route=handed.route,
        since_ms=at_ms,
        summary=printable_line(f"ended as {ended.ending}{doubt}{since}{why}", SUMMARY_CHARS_MAX),
        doubted=doubted,
        found=found,
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
        summary=printable_line(_summary(question), SUMMARY_CHARS_MAX),
        expires_at_ms=question.expires_at_ms,
        group=packet_id(state.run_id, question.group) if question.group else "",
        silences=question.silences,
        packet=question_version(question),
    )


def _summary(question: AskHuman) -> str:
    if question.answer:
        return f"let stand: {_shown(question.answer)} ({question.question})"
    if question.packet is None:
        return question.question or ("release more budget" if question.purpose is AskPurpose.RELEASE else "a question")
    call = question.packet.call
    verb = "what became of " if question.purpose is AskPurpose.OUTCOME else ""
    return f"{verb}{call.tool} {_shown(call.arguments)}"


def _shown(arguments: Text) -> str:
    return f"<{arguments.size_bytes} bytes>" if isinstance(arguments, BlobRef) else arguments[:_ARGUMENTS_CHARS_MAX]


def aged(items: Iterable[QueueItem], limits: Iterable[QueueLimits], now_ms: int) -> list[QueueItem]:
    """The items as they stand at a moment, in the order in which people should look at them."""
    limited = {one.name: one for one in limits}
    shown = []
    for item in items:
        age_ms = max(0, now_ms - item.since_ms)
        own = limited.get(item.queue, _UNLIMITED)
        age_max, people = own.age_ms_max, own.answered_by
        severity = _raised(item.severity, age_ms // age_max) if age_max else item.severity
        is_overdue = 0 < age_max < age_ms
        shown.append(replace(item, age_ms=age_ms, is_overdue=is_overdue, severity=severity, answered_by=people))
    held: dict[tuple[str, str], list[QueueItem]] = {}
    for item in shown:
        held.setdefault((item.queue, item.tenant_id), []).append(item)
    outside = {
        packet for (queue, _), own in held.items() for packet in _outside(own, limited.get(queue, _UNLIMITED).load_max)
    }
    placed = [replace(item, is_outside=True) if packet_of(item) in outside else item for item in shown]
    return sorted(placed, key=_place)


def _raised(severity: Gravity, steps: int) -> Gravity:
    return _BY_RANK[min(SEVERITY_RANK[severity] + steps, len(_BY_RANK) - 1)]


def _outside(items: Sequence[QueueItem], load_max: int) -> list[str]:
    """The packets of a tenant's queue that find no room in it."""
    if not load_max:
        return []
    packets: dict[str, list[QueueItem]] = {}
    for item in items:
        packets.setdefault(packet_of(item), []).append(item)
    staying = [name for name, held in packets.items() if any(_stays(item) for item in held)]
    waiting = sorted((_rank(held), name) for name, held in packets.items() if name not in staying)
    return [name for _, name in waiting[max(load_max - len(staying), 0) :]]


def _stays(item: QueueItem) -> bool:
    return item.severity is Gravity.HIGH or item.what is What.ENDING


def _rank(held: Sequence[QueueItem]) -> tuple[int, int]:
    """Where a packet stands among those that want to enter: the gravest first, then the oldest."""
    return -max(SEVERITY_RANK[item.severity] for item in held), min(item.since_ms for item in held)


def _place(item: QueueItem) -> tuple[bool, bool, int, int, str]:
    return (item.is_outside, not item.is_overdue, -SEVERITY_RANK[item.severity], item.since_ms, item.id)


def queue_overview(items: Iterable[QueueItem], limits: Iterable[QueueLimits]) -> list[QueueShown]:
    """Every queue that holds something, is named by a limit, or belongs to the table of triggers."""
    limited = {one.name: one for one in limits}
    held: dict[str, list[QueueItem]] = {name: [] for name in (*limited, *QUEUES)}
    for item in items:
        held.setdefault(item.queue, []).append(item)
    return [_queue(name, of_it, limited.get(name, QueueLimits(name))) for name, of_it in held.items()]


def _queue(name: str, items: Sequence[QueueItem], limits: QueueLimits) -> QueueShown:
    counts = {rank: sum(item.severity is rank for item in items) for rank in Gravity}
    overdue = [item for item in items if item.is_overdue]
    return QueueShown(
        name=name,
        items=len(items),
        high=counts[Gravity.HIGH],
        moderate=counts[Gravity.MODERATE],
        low=counts[Gravity.LOW],
        oldest_ms=max((item.age_ms for item in items), default=0),
        overdue=len(overdue),
        overdue_high=sum(item.severity is Gravity.HIGH for item in overdue),
        load_max=limits.load_max,
        age_ms_max=limits.age_ms_max,
        is_saturated=bool(limits.load_max) and len({packet_of(item) for item in items}) >= limits.load_max,
        outside=sum(item.is_outside for item in items),
        answered_by=limits.answered_by,
    )


def packet_of(item: QueueItem) -> str:
    """What an item is answered with: its group, or itself where it is alone."""
    return item.group or item.id
