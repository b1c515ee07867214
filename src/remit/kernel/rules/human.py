"""People answer: to approve a call, to say what became of one, or to answer a question of the graph.

Rule 1: an approval is used once, for the bytes in its packet, and is judged again before anything is ordered.
Rule 2: arguments a person changed have that person as their origin.
Rule 3: a rejected or expired call is refused, and the model is told.
"""

import msgspec

from remit.core.arrivals import ApprovalGiven, ApprovalRefused, Happened, OutcomeJudged, QuestionAnswered
from remit.core.commands import AskHuman, AskPurpose, CallTool
from remit.core.failure import ArrivalFault, Ending, IllegalArrival, Refusal
from remit.core.graph import Node, NodeOutcome
from remit.core.rulings import Answer, Rung
from remit.kernel.asking import REVIEW, ask, settle_question
from remit.kernel.authorize import ALLOWED, FIRM_CHECKS, authorize
from remit.kernel.calls import order_call, refuse_call, settle_call
from remit.kernel.doubt import NOT_DONE
from remit.kernel.endings import head_for
from remit.kernel.join import joined
from remit.kernel.spend import exhausted, lacking
from remit.kernel.tally import Tally
from remit.kernel.words import HAPPENED, NOT_HAPPENED, tokens_bound


def enter_human(tally: Tally, node: Node) -> str | None:
    """Ask the node's question."""
    if (dimension := lacking(tally, REVIEW)) is not None:
        return exhausted(tally, dimension, 1)
    ask(tally, AskPurpose.QUESTION, Ending.MISSING_INFO, question=node.prompt)
    return None


def on_approved(tally: Tally, arrival: ApprovalGiven) -> str | None:
    """Order the approved call if it still passes every check a person may not overrule."""
    question = _question(tally, arrival.command_id, arrival.by, AskPurpose.APPROVAL, AskPurpose.QUESTION)
    _admit_approval(tally, question, arrival)
    if question.packet is None:
        settle_question(tally, question, Answer.APPROVED, by=arrival.by)
        return NodeOutcome.APPROVED
    held = question.packet.call
    call = held
    if arrival.modified is not None:
        call = msgspec.structs.replace(arrival.modified, call_id=held.call_id, tool=held.tool)
        tally.claim(held.tool, held.arguments_hash, None)
    verdict = authorize(call, tally, FIRM_CHECKS)
    settle_question(tally, question, Answer.APPROVED, by=arrival.by, is_released=verdict is ALLOWED)
    if verdict is ALLOWED:
        order_call(tally, call, approved_by=arrival.by)
    else:
        refuse_call(tally, call, verdict.code, verdict.reason)
    return joined(tally)


def _admit_approval(tally: Tally, question: AskHuman, arrival: ApprovalGiven) -> None:
    """Turn away an approval that cannot count now; the question stays open."""
    if tally.paused:
        message = f"the run is paused, so question {question.id} cannot be approved now; resume the run first"
        raise IllegalArrival(ArrivalFault.PAUSED, message)
    if tally.at_ms >= question.expires_at_ms:
        message = f"question {question.id} expired at {question.expires_at_ms} ms; silence until then was a no"
        raise IllegalArrival(ArrivalFault.NOT_WAITING, message)
    if arrival.modified is not None and arrival.modified.violations:
        first = arrival.modified.violations[0]
        message = (
            f"the changed arguments break the schema of {arrival.modified.tool}: {first.path or '/'}: {first.message}"
        )
        raise IllegalArrival(ArrivalFault.WRONG_PACKET, message)


def on_refused(tally: Tally, arrival: ApprovalRefused) -> str | None:
    """Refuse the held call as the person wants it."""
    question = _question(tally, arrival.command_id, arrival.by, AskPurpose.APPROVAL, AskPurpose.QUESTION)
    settle_question(tally, question, Answer.REJECTED, by=arrival.by)
    if question.packet is None:
        message = f"{arrival.by} said no to question {question.id}" + (f": {arrival.reason}" if arrival.reason else "")
        return _say_no(tally, NodeOutcome.REJECTED, Ending.PERMISSION_DENIED, message)
    reason = f"rejected by {arrival.by}" + (f": {arrival.reason}" if arrival.reason else "")
    refuse_call(tally, question.packet.call, Refusal.APPROVAL_REJECTED, reason)
    return joined(tally)


def on_expired(tally: Tally, question: AskHuman) -> str | None:
    """Take silence for a no."""
    settle_question(tally, question, Answer.EXPIRED)
    if question.purpose is AskPurpose.OUTCOME:
        return head_for(
            tally, Ending.REVIEW_REQUIRED, message=f"nobody said in time what became of question {question.id}"
        )
    if question.packet is None:
        message = f"nobody answered question {question.id} in time"
        return _say_no(tally, NodeOutcome.EXPIRED, question.ending, message)
    refuse_call(tally, question.packet.call, Refusal.APPROVAL_EXPIRED, "nobody approved it in time")
    return joined(tally)


def _say_no(tally: Tally, outcome: NodeOutcome, ending: Ending, message: str) -> str:
    """A no, spoken or by silence, is never taken for a yes: where no edge names it, the run ends with it."""
    name = tally.graph.nodes[tally.node].name
    is_named = any(edge.source == name and edge.outcome == outcome for edge in tally.graph.graph.edges)
    exit_named = head_for(tally, ending, message=message)
    return outcome if is_named else exit_named


def on_judged(tally: Tally, arrival: OutcomeJudged) -> str | None:
    """Settle a call in doubt with what a person says became of it."""
    question = _question(tally, arrival.command_id, arrival.by, AskPurpose.OUTCOME)
    settle_question(tally, question, Answer.ANSWERED, by=arrival.by)
    assert question.packet is not None, "a question about an outcome names the call"
    command = tally.state.open[question.packet.about]
    assert isinstance(command, CallTool)
    if arrival.happened is Happened.UNKNOWN:
        return head_for(tally, Ending.REVIEW_REQUIRED, message=f"{arrival.by} cannot tell what became of {command.key}")
    if arrival.happened is Happened.YES:
        settle_call(tally, command, Rung.COMMITTED, verifier=f"person:{arrival.by}", evidence=command.arguments_hash)
        tally.say(tokens_bound(HAPPENED))
    else:
        settle_call(tally, command, Rung.OBSERVED, code=NOT_DONE)
        tally.say(tokens_bound(NOT_HAPPENED))
    return joined(tally, HAPPENED)


def on_question_answered(tally: Tally, arrival: QuestionAnswered) -> str | None:
    """Put the answer into the context and go on."""
    question = _question(tally, arrival.command_id, arrival.by, AskPurpose.QUESTION)
    settle_question(tally, question, Answer.ANSWERED, by=arrival.by)
    tally.say(arrival.tokens_bound)
    return NodeOutcome.ANSWERED


def _question(tally: Tally, command_id: str, by: str, *purposes: AskPurpose) -> AskHuman:
    question = tally.state.open[command_id]
    assert isinstance(question, AskHuman)
    if not by:
        raise IllegalArrival(
            ArrivalFault.WRONG_PACKET, f"the answer to question {command_id} names nobody who gives it"
        )
    if question.purpose not in purposes:
        message = f"question {command_id} asks for {question.purpose}; this answers {' or '.join(purposes)}"
        raise IllegalArrival(ArrivalFault.WRONG_PACKET, message)
    return question
