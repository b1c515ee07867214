"""Questions to people: a question is a command with an expiry, and silence is refusal.

Rule 1: every question costs one human review, reserved when it is asked; nothing else is reserved while waiting.
Rule 2: every question has a timer. A question that expires goes to the next queue of the boundary; when there is none it is a
        no, and an outcome that stays unknown ends the run for review.
Rule 3: every question names the queue that receives authority by it.
"""

from remit.core.failure import Ending
from remit.core.journal.commands import AskHuman, AskPurpose, Packet, SetTimer, TimerPurpose
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import Answer, QuestionSettled
from remit.core.limits.budget import Charges, Dimension, charges_of
from remit.core.limits.escalation import TRIGGER_OF, Trigger, escalation_of
from remit.core.record import Text, replace
from remit.kernel.budget.spend import lacking
from remit.kernel.state import questions
from remit.kernel.tally import Tally, blocks

REVIEW = ((int(Dimension.HUMAN_REVIEWS), 1),)


def open_question(
    tally: Tally,
    purpose: AskPurpose,
    ending: Ending,
    *,
    packet: Packet | None = None,
    question: str = "",
    trigger: Trigger | None = None,
    group: str = "",
    options: tuple[str, ...] = (),
    releases: Charges = (),
    call: ProposedCall | None = None,
    answer: Text = "",
) -> str:
    """Ask a person, and set the timer that takes silence for a no. Returns the question's id.

    Questions of one group are one review: the first question pays for it and has an empty group, the others name the first.
    """
    boundary = tally.manifest.boundary
    # The call of a tool that asks is charged like any other call, beside the review.
    reserved = REVIEW if call is None else charges_of((*REVIEW, *tally.state.derived.charges[call.tool]))
    asked = AskHuman(
        id=tally.next_id(),
        purpose=purpose,
        ending=ending,
        expires_at_ms=tally.at_ms + boundary.approval_wait_ms_max,
        packet=packet,
        question=question,
        reserved=() if group else reserved,
        escalation=escalation_of(trigger or TRIGGER_OF[ending], boundary.queues, is_grave=_is_grave(tally, packet)),
        group=group,
        options=options,
        releases=releases,
        call_id="" if call is None else call.call_id,
        tool="" if call is None else call.tool,
        arguments_hash=b"" if call is None else call.arguments_hash,
        answer=answer,
    )
    _put(tally, asked)
    return asked.id


def _is_grave(tally: Tally, packet: Packet | None) -> bool:
    """Whether what is asked about destroys something."""
    return packet is not None and tally.state.derived.tools[packet.call.tool].destructive


def ask_the_next(tally: Tally, question: AskHuman) -> bool:
    """Pass an unanswered question on, to the next queue that the boundary names; whether there is one."""
    queues = tally.manifest.boundary.on_silence
    if not has_next(tally, question):
        return False
    assert question.escalation is not None, "every question names who is asked"
    group, reserved = _group_of(tally, question), _price_of_asking_again(tally, question)
    settle_question(tally, question, Answer.ESCALATED)
    passed_on = replace(
        question,
        id=tally.next_id(),
        expires_at_ms=tally.at_ms + tally.manifest.boundary.approval_wait_ms_max,
        reserved=reserved,
        escalation=replace(question.escalation, queue=queues[question.silences]),
        group=group,
        silences=question.silences + 1,
    )
    _put(tally, passed_on)
    return True


def ask_anew(tally: Tally, question: AskHuman, packet: Packet | None, expires_at_ms: int = 0) -> None:
    """Withdraw a question and ask it again with another packet. It expires like the first one, or at the later moment given.

    Both together are charged as one review.
    """
    settle_question(tally, question, Answer.WITHDRAWN)
    group, until_ms = _group_of(tally, question), max(question.expires_at_ms, expires_at_ms)
    _put(tally, replace(question, id=tally.next_id(), packet=packet, reserved=(), group=group, expires_at_ms=until_ms))


def has_next(tally: Tally, question: AskHuman) -> bool:
    """Whether there is a next person to ask, and asking once more fits the budget beside what the first asking cost."""
    is_left = question.silences < len(tally.manifest.boundary.on_silence)
    return is_left and lacking(tally, _price_of_asking_again(tally, question)) is None


def _group_of(tally: Tally, question: AskHuman) -> str:
    """The group of a question that was asked together with others; those that are passed on stay together."""
    is_first = any(other.group == question.id for other in questions(tally.state))
    return question.id if is_first else question.group


def _price_of_asking_again(tally: Tally, question: AskHuman) -> Charges:
    """One review, unless one of its group was passed on to the same people and has paid; a call is charged once."""
    group, silences = _group_of(tally, question), question.silences + 1
    is_paid = any((other.group, other.silences) == (group, silences) for other in questions(tally.state))
    return () if group and is_paid else REVIEW


def _put(tally: Tally, question: AskHuman) -> None:
    tally.issue(question)
    tally.asking += 1
    tally.issue(SetTimer(tally.next_id(), question.expires_at_ms, TimerPurpose.APPROVAL, question.id))


def settle_question(
    tally: Tally, question: AskHuman, answer: Answer, *, by: str = "", is_released: bool = False
) -> None:
    """Close a question. It cost its review whatever the answer; an approval also widens what its packet names."""
    # What it reserved is what it cost, so nothing is given back.
    tally.blocking -= blocks(question)
    tally.asking -= 1
    releases = released_by(question) if is_released else ()
    for dimension, amount in releases:
        tally.left[dimension] += amount
    tally.rule(QuestionSettled(question.id, answer, by, releases))


def released_by(question: AskHuman) -> Charges:
    """The charges that a yes to a question releases."""
    return question.releases if question.packet is None else question.packet.releases
