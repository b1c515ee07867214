"""Questions to people: what a person is shown when a run asks, and which question an answer belongs to.

Rule 1: no code here waits for a person: the question stands in the journal, and the run rests until a person answers.
Rule 2: what is shown is what will run: the call as it was judged, the versions it is bound to, and what it releases.
Rule 3: a list of orders is shown by the book that will compare with it, also where a person changes it.
Rule 4: an answer that names a version is an answer to that version and no other; an empty text names none.
"""

from collections.abc import Callable, Sequence

from remit.core.failure import ArrivalFault, IllegalArrival, RequestRejected
from remit.core.journal.arrivals import CodeReturned, Happened, OutcomeJudged
from remit.core.journal.codec import arguments_in
from remit.core.journal.commands import AskHuman, AskPurpose, question_version
from remit.core.journal.proposed_call import order_of
from remit.core.journal.turn import Turn
from remit.core.limits.budget import FIELDS, Charges
from remit.core.limits.tool_policy import gaps_of
from remit.core.record import BlobRef, JsonObject, replace
from remit.core.run.approval import Approval, What
from remit.core.run.signals import Signal, UserSignal, packet_id, packet_named
from remit.core.schema.json_text import kept_value, parse_json
from remit.core.work.orders import CONFIRM, MADE, orders_of, told_order
from remit.kernel.people.outdated import reasons_shown
from remit.kernel.people.questions import released_by
from remit.kernel.state import RunState, pinned, questions
from remit.observe.linked_turns import fold, read_history
from remit.observe.people.queue_items import asked_at_ms, escalation_asked
from remit.orchestrate.exchange.conversation import Fetch
from remit.orchestrate.executors.reports import PersonSaid, Report, report_of
from remit.orchestrate.facts.texts import text_reader
from remit.orchestrate.history.replay import kept_texts
from remit.orchestrate.ports import Blobs, Turns


def approvals_in(state: RunState, turns: Sequence[Turn] = ()) -> list[Approval]:
    """What a run asks people, oldest first; its turns say since when."""
    return [_approval(state, question, turns) for question in questions(state)]


async def approvals_told(state: RunState, turns: Sequence[Turn], fetch: Fetch) -> list[Approval]:
    """The approvals that a run waits for, with every text in full."""
    told: list[Approval] = []
    for asked, question in zip(approvals_in(state, turns), questions(state), strict=True):
        arguments = "" if question.packet is None else question.packet.call.arguments
        if isinstance(arguments, BlobRef):
            asked = replace(asked, arguments=kept_value(await fetch(arguments)))
        if isinstance(question.answer, BlobRef):
            asked = replace(asked, answer=await fetch(question.answer))
        if question.question == CONFIRM:
            asked = replace(asked, arguments=await _orders_shown(turns, fetch))
        told.append(asked)
    return told


async def _orders_shown(turns: Sequence[Turn], fetch: Fetch) -> JsonObject:
    """The orders that a model made, for the person who may change them."""
    for turn in turns:
        if isinstance(turn.arrival, CodeReturned) and turn.arrival.kind == MADE:
            return {"orders": parse_json(await fetch(turn.arrival.value))}
    return {}


# The lines of these orders; raises RequestRejected for orders that cannot be.
OrderPreview = Callable[[Sequence[JsonObject]], str]


async def order_preview(run_id: str, journal: Turns, blobs: Blobs) -> OrderPreview:
    """How lists of orders in the place of the one that a run asks about would read, with what was looked up for that."""
    # Only those who change a list pay for the gate that fills it.
    from remit.orchestrate.facts.gate_trace import traced

    data = await journal.read(run_id)
    history = read_history(run_id, data)
    tracer = traced(pinned(fold(history)), history.turns, text_reader(await kept_texts(blobs, data)))
    return lambda orders: "\n".join(tracer.with_orders(orders_of(list(orders))).lines())


def _approval(state: RunState, question: AskHuman, turns: Sequence[Turn]) -> Approval:
    to = escalation_asked(question)
    asked = Approval(
        id=packet_id(state.run_id, question.id),
        run_id=state.run_id,
        purpose=What(question.purpose.value),
        ending=question.ending,
        expires_at_ms=question.expires_at_ms,
        question=question.question,
        releases=_amounts(question.releases),
        group=packet_id(state.run_id, question.group) if question.group else "",
        tool=question.tool,
        call_id=question.call_id,
        approved_by=tuple(state.people.approvals.get(question.id, ())),
        queue=to.queue,
        severity=to.severity,
        trigger=to.trigger.value,
        asked_at_ms=asked_at_ms(question, turns),
        silences=question.silences,
        options=question.options,
        released_by=pinned(state).boundary.release_by if released_by(question) else (),
        answer=question.answer if isinstance(question.answer, str) else "",
        packet=question_version(question),
    )
    return asked if question.packet is None else _with_packet(asked, state, question)


def _with_packet(asked: Approval, state: RunState, question: AskHuman) -> Approval:
    packet = question.packet
    assert packet is not None, "the caller has looked"
    call, tool = packet.call, state.derived.tools.get(packet.call.tool)
    return replace(
        asked,
        tool=call.tool,
        effect="" if tool is None else tool.effect.value,
        arguments=arguments_in(call.arguments),
        reasons=reasons_shown(state, question),
        releases=_amounts(packet.releases),
        tool_version=packet.tool_version,
        boundary_version=packet.boundary_version,
        about=packet.about,
        call_id=call.call_id,
        objection=call.objection,
        origins=call.origins,
        labels=call.labels,
        blast_radius=packet.blast_radius,
        rollback=packet.rollback,
        gaps=() if tool is None else tuple([gap.value for gap in gaps_of(tool)]),
        source=packet.source,
        left=_amounts(packet.left),
        approvals_needed=packet.approvals_needed,
        order="" if (order := order_of(call)) is None else told_order(order),
    )


def _amounts(charges: Charges) -> tuple[tuple[str, int], ...]:
    return tuple((FIELDS[dimension], amount) for dimension, amount in charges)


def answer_to(state: RunState, signal: UserSignal) -> Report:
    """What a signal reports to its run. To approve or reject a question about a doubted call says what became of it."""
    if signal.type not in (Signal.APPROVE, Signal.REJECT):
        return report_of(signal)
    command_id = packet_named(str(signal.payload["packet_id"]), signal.run_id)
    question = state.commands.open.get(command_id)
    is_yes = signal.type is Signal.APPROVE
    if isinstance(question, AskHuman):
        _expect_version(question, signal.payload.get("packet"))
        if question.purpose is AskPurpose.OUTCOME:
            return OutcomeJudged(command_id, signal.user_id, Happened.YES if is_yes else Happened.NO)
        if question.purpose is AskPurpose.QUESTION and is_yes:
            return PersonSaid(signal.user_id, str(signal.payload.get("text", "")), command_id)
        if is_yes and signal.payload.get("text"):
            # Words may say anything, "no" among it; a call is allowed by a yes alone.
            message = f"question {command_id} asks for a yes or a no and not for words; approve or reject it"
            raise IllegalArrival(ArrivalFault.WRONG_PACKET, message)
    return report_of(replace(signal, payload={**signal.payload, "packet_id": command_id}))


def _expect_version(question: AskHuman, named: str | None) -> None:
    """Refuse an answer, also a no, to another packet than the one that waits."""
    version = question_version(question)
    if named is not None and named != version:
        shown = f"packet {version}" if version else "no packet"
        message = (
            f"the answer is to packet {named[:80]!r}, and question {question.id} holds {shown} now; show that to the person "
            "(waiting_for.packets of the response), and send the answer with its `packet`"
        )
        raise RequestRejected(ArrivalFault.PACKET_CHANGED, message, {"packet": version, "answered": named[:80]})
