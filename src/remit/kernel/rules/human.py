"""The answers of people: to approve a call, to say what became of one, or to answer a question of the graph.

Rule 1: an approval is used once, for the bytes in its packet, and is judged again before anything is issued.
Rule 2: arguments a person changed have that person as their origin.
Rule 3: a rejected or expired call is refused, and the model is told.
Rule 4: the caller of a run does not approve it unless its boundary allows that, and is never one of several who must. To
        say no, to answer in words and to say what became of a call is open to all.
Rule 5: a yes that releases budget, with a call or without, is of those whom the boundary names for that. A no or silence
        to it ends the run, after what is under way; a cap of 0 forbids a call and was not spent, so a no is to the call.
Rule 6: a call of an agent elsewhere that can no longer be made stays held. One that is approved while that agent does not
        wait for the answer is withheld until it is proposed again, as it was or as the person changed it.
"""

import msgspec

from remit.core.failure import ArrivalFault, Ending, ErrorCode, IllegalArrival, Refusal
from remit.core.journal.arrivals import ApprovalGiven, ApprovalRefused, Happened, OutcomeJudged, QuestionAnswered
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, Packet, packet_version, question_version
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import BY_PERSON, Answer, ApprovalCounted, CommandsWithheld, Rung
from remit.core.limits.budget import FIELDS, Dimension
from remit.core.limits.queue import QUEUE_MARK
from remit.core.run.manifest import askers_of, may_approve_own
from remit.core.run.messages import Message
from remit.core.run.person import is_among, look_alike
from remit.core.work.graph import Node, NodeKind, NodeOutcome
from remit.kernel.authority.authorize import FIRM_CHECKS, authorize
from remit.kernel.authority.call_rulings import code_digest, issue_call, refuse_call, settle_call
from remit.kernel.authority.verdict import ALLOWED, Verdict, refuse
from remit.kernel.budget.spend import end_exhausted, lacking
from remit.kernel.graph.join import join_outcome
from remit.kernel.graph.plan_steps import fed
from remit.kernel.people.questions import REVIEW, ask_the_next, open_question, released_by, settle_question
from remit.kernel.results.doubt import NOT_DONE
from remit.kernel.results.endings import head_for
from remit.kernel.results.notices import HAPPENED, NOT_HAPPENED, refusal_bound, refusal_notice, tokens_bound
from remit.kernel.tally import Tally, freezes

# The outcome of a released budget, which no edge names: the model is asked after all, where the run stands.
RELEASED = "released"
# The outcome of released steps or time, which no edge names either: the run goes where it was going when it stood still.
THAWED = "thawed"

NOBODY_RELEASED = "nobody released more in time"

# What may be answered by a yes or a no; what became of a call is told otherwise.
_YES_OR_NO = (AskPurpose.APPROVAL, AskPurpose.QUESTION, AskPurpose.RELEASE, AskPurpose.REVIEW)


def enter_human(tally: Tally, node: Node) -> str | None:
    """Ask the node's question; one that is fed with a text asks to let that stand, and asks nothing where it is empty."""
    shown = None if node.feed is None else fed(tally, node).text
    if shown == "":
        return NodeOutcome.APPROVED
    if (dimension := lacking(tally, REVIEW)) is not None:
        return end_exhausted(tally, dimension, 1)
    if shown is not None:
        open_question(tally, AskPurpose.REVIEW, Ending.CONFIRM_REQUIRED, question=node.prompt, answer=shown)
        return None
    open_question(tally, AskPurpose.QUESTION, Ending.MISSING_INFO, question=node.prompt)
    return None


def on_approved(tally: Tally, arrival: ApprovalGiven) -> str | None:
    """Order the approved call if it still passes every check a person may not overrule."""
    question = _question(tally, arrival.command_id, arrival.by, *_YES_OR_NO)
    _admit_approval(tally, question, arrival)
    if question.packet is None:
        return _agreed(tally, question, arrival.by)
    if len(tally.state.people.approvals.get(question.id, ())) + 1 < question.packet.approvals_needed:
        tally.rule(ApprovalCounted(question.id, arrival.by))
        return None
    held = question.packet.call
    call = held
    if arrival.modified is not None:
        # What had been read by then was read, wherever the arguments come from.
        labels = held.labels
        call = msgspec.structs.replace(arrival.modified, call_id=held.call_id, tool=held.tool, labels=labels)
        tally.note_effect(held.tool, held.arguments_hash, None)
    verdict = authorize(call, tally, FIRM_CHECKS)
    if verdict is ALLOWED:
        verdict = _within_packet(tally, call, question.packet)
    if tally.manifest.host is not None and verdict is not ALLOWED and verdict.code != Refusal.UNSAFE:
        message = f"call {call.call_id!r} can no longer be made: {verdict.reason}; say no to it, or leave it"
        raise IllegalArrival(ArrivalFault.CALL_NOT_ALLOWED, message, {"refusal": verdict.code})
    settle_question(tally, question, Answer.APPROVED, by=arrival.by, is_released=verdict is ALLOWED)
    if verdict is ALLOWED:
        last = f"{arrival.by} ({arrival.grant})" if arrival.grant else arrival.by
        by = (*tally.state.people.approvals.get(question.id, ()), last)
        is_waiting = tally.manifest.host is not None and not arrival.is_awaited
        instead_of = held.arguments_hash if is_waiting and call.arguments_hash != held.arguments_hash else b""
        issue_call(tally, call, ", ".join(by), instead_of)
        if is_waiting:
            tally.rule(CommandsWithheld((tally.issued[-1].id,)))
        return join_outcome(tally)
    refuse_call(tally, call, verdict.code, verdict.reason)
    if verdict.code == Refusal.UNSAFE:
        return head_for(tally, Ending.UNSAFE_DETECTION, message=f"{call.tool}: {verdict.reason}")
    return join_outcome(tally)


def _within_packet(tally: Tally, call: ProposedCall, packet: Packet) -> Verdict:
    """Whether the call fits the budget with what its packet releases: a yes releases what was shown, and no more."""
    released = dict(packet.releases)
    charges = tally.state.derived.charges[call.tool]
    beyond = lacking(tally, tuple((d, amount - released.get(d, 0)) for d, amount in charges))
    if beyond is None:
        return ALLOWED
    return refuse(
        Refusal.BUDGET_EXHAUSTED, f"{FIELDS[beyond]} was spent meanwhile, and the approval released none of it"
    )


def _agreed(tally: Tally, question: AskHuman, by: str) -> str:
    """A person agrees to what no call is about: to go on, to let a doubtful answer stand, to spend more."""
    if question.call_id:
        message = f"question {question.id} wants an answer in words; a yes does not tell"
        raise IllegalArrival(ArrivalFault.WRONG_PACKET, message)
    settle_question(tally, question, Answer.APPROVED, by=by, is_released=True)
    if freezes(question):
        tally.is_thawed = True
        tally.extended_ms = dict(question.releases).get(int(Dimension.WALL_CLOCK_MS), 0)
        return THAWED
    if question.purpose is AskPurpose.RELEASE:
        return RELEASED
    is_check = tally.graph.nodes[tally.node].kind is NodeKind.VALIDATE
    return NodeOutcome.PASSED if question.purpose is AskPurpose.REVIEW and is_check else NodeOutcome.APPROVED


def _admit_person(tally: Tally, question: AskHuman, by: str) -> None:
    """Refuse a yes of the caller of the run, and a yes under a name that looks like another name that is known here."""
    manifest, askers = tally.manifest, askers_of(tally.manifest)
    needed = 1 if question.packet is None else question.packet.approvals_needed
    if needed > 1 and is_among(by, askers):
        message = f"{by} asked for this run and is none of the {needed} people who must approve question {question.id}"
        raise IllegalArrival(ArrivalFault.SELF_APPROVAL, message)
    if is_among(by, askers) and not may_approve_own(manifest, by):
        message = (
            f"{by} asked for this run, so another must approve question {question.id}; "
            f"a boundary with self_approval: true would let them"
        )
        raise IllegalArrival(ArrivalFault.SELF_APPROVAL, message)
    earlier = tally.state.people.approvals.get(question.id, ())
    releasing = manifest.boundary.release_by if released_by(question) else ()
    if other := look_alike(by, (*askers, *earlier, *releasing)):
        message = f"the name {by!r} can be read for {other!r}, which question {question.id} knows; use another"
        raise IllegalArrival(ArrivalFault.NAME_CONFUSABLE, message)
    # Of several who must approve one must be of them: the last yes is what releases.
    is_last = len(earlier) + 1 >= needed
    if releasing and is_last and not any(is_among(one, releasing) for one in (*earlier, by)):
        message = f"boundary {manifest.boundary.name} lets {', '.join(releasing)} release budget, and not {by}"
        raise IllegalArrival(ArrivalFault.NOT_RELEASING, message)


def _admit_packet(tally: Tally, question: AskHuman, packet: Packet, arrival: ApprovalGiven) -> None:
    """Turn away an approval of anything but the packet that waits, and a second one by the same person."""
    if arrival.packet and arrival.packet != packet_version(packet):
        message = (
            f"question {question.id} holds packet {packet_version(packet)[:12]}, not {arrival.packet[:12]}; look again"
        )
        raise IllegalArrival(ArrivalFault.PACKET_CHANGED, message)
    # A packet that names no source binds none: none was written down, or it is of a time when packets had none.
    if packet.source and packet.source != code_digest(tally.state, packet.call.tool):
        message = f"the code of {packet.call.tool} has changed since question {question.id} was asked; reject it"
        raise IllegalArrival(ArrivalFault.PACKET_CHANGED, message)
    if is_among(arrival.by, tally.state.people.approvals.get(question.id, ())):
        message = f"{arrival.by} has approved question {question.id} already; {packet.approvals_needed} people must"
        raise IllegalArrival(ArrivalFault.ALREADY_APPROVED, message)
    if arrival.modified is not None and packet.approvals_needed > 1:
        message = (
            f"question {question.id} needs {packet.approvals_needed} people to approve the same call; reject it instead"
        )
        raise IllegalArrival(ArrivalFault.WRONG_PACKET, message)


def _admit_approval(tally: Tally, question: AskHuman, arrival: ApprovalGiven) -> None:
    """Turn away an approval that cannot count now; the question stays open."""
    _admit_person(tally, question, arrival.by)
    if question.packet is not None:
        _admit_packet(tally, question, question.packet, arrival)
    elif arrival.packet and arrival.packet != (version := question_version(question)):
        held = f"answer {version[:12]}" if version else "no packet"
        message = f"question {question.id} holds {held}, so {arrival.packet[:12]} is another's; look again"
        raise IllegalArrival(ArrivalFault.PACKET_CHANGED, message)
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
    question = _question(tally, arrival.command_id, arrival.by, *_YES_OR_NO)
    settle_question(tally, question, Answer.REJECTED, by=arrival.by)
    if question.purpose is AskPurpose.RELEASE:
        return _not_released(tally, question, f"{arrival.by} released nothing")
    if question.call_id:
        tally.say(refusal_bound(Refusal.APPROVAL_REJECTED, _no_answer(arrival.by, arrival.reason)))
        return join_outcome(tally)
    if question.packet is None:
        message = f"{arrival.by} said no to question {question.id}" + (f": {arrival.reason}" if arrival.reason else "")
        return _say_no(tally, NodeOutcome.REJECTED, Ending.PERMISSION_DENIED, message)
    reason = f"rejected by {arrival.by}" + (f": {arrival.reason}" if arrival.reason else "")
    # What is held together is one no, and a queue that is full says none.
    tally.is_a_no = tally.state.people.no_to != tally.state.counts.iterations and not arrival.by.startswith(QUEUE_MARK)
    return _turn_down(tally, question.packet, Refusal.APPROVAL_REJECTED, reason, f"{arrival.by} released nothing")


def on_expired(tally: Tally, question: AskHuman) -> str | None:
    """Ask the next person of the escalation; else count silence as a no."""
    if ask_the_next(tally, question):
        return None
    settle_question(tally, question, Answer.EXPIRED)
    if question.purpose is AskPurpose.RELEASE:
        return _not_released(tally, question, NOBODY_RELEASED)
    if question.purpose is AskPurpose.OUTCOME:
        return head_for(
            tally, Ending.REVIEW_REQUIRED, message=f"nobody said in time what became of question {question.id}"
        )
    if question.packet is None:
        message = f"nobody answered question {question.id} in time"
        return _say_no(tally, NodeOutcome.EXPIRED, question.ending, message)
    reason = "nobody approved it in time"
    return _turn_down(tally, question.packet, Refusal.APPROVAL_EXPIRED, reason, NOBODY_RELEASED)


def _turn_down(tally: Tally, packet: Packet, code: Refusal, reason: str, message: str) -> str | None:
    """Refuse a held call. Where a yes would have released what is spent, the run ends with it."""
    spent = [dimension for dimension, _ in packet.releases if tally.manifest.caps[dimension] > 0]
    unreleased = _spent(spent, message) if spent else ""
    refuse_call(tally, packet.call, code, reason, unreleased=unreleased, is_a_no=tally.is_a_no)
    return join_outcome(tally)


def _not_released(tally: Tally, question: AskHuman, message: str) -> str:
    """The budget stays as it is, so the run stops where it stands."""
    tally.is_thawed = freezes(question)
    message = _spent([dimension for dimension, _ in question.releases], message)
    return head_for(tally, Ending.BUDGET_EXHAUSTED, message=message)


def _spent(dimensions: list[int], message: str) -> str:
    return f"{', '.join(FIELDS[dimension] for dimension in dimensions)} is spent and {message}"


def _no_answer(by: str, reason: str) -> str:
    return f"{by} does not answer" + (f": {reason}" if reason else "")


def no_answer(question: AskHuman, by: str, reason: str) -> Message:
    """What the model is told when a person does not answer its question."""
    return refusal_notice(question.call_id, question.tool, Refusal.APPROVAL_REJECTED, _no_answer(by, reason))


def _say_no(tally: Tally, outcome: NodeOutcome, ending: Ending, message: str) -> str:
    """A no, spoken or by silence, is never taken for a yes: where no edge names it, the run ends with it."""
    node = tally.graph.nodes[tally.node]
    if outcome is NodeOutcome.REJECTED and node.kind is NodeKind.VALIDATE:
        return head_for(tally, Ending.VALIDATION_FAIL, ErrorCode.VALIDATION_SEMANTIC_FAILED, message)
    name = node.name
    is_named = any(edge.source == name and edge.outcome == outcome for edge in tally.graph.graph.edges)
    exit_named = head_for(tally, ending, message=message)
    return outcome if is_named else exit_named


def on_judged(tally: Tally, arrival: OutcomeJudged) -> str | None:
    """Settle a call in doubt with what a person says became of it."""
    question = _question(tally, arrival.command_id, arrival.by, AskPurpose.OUTCOME)
    settle_question(tally, question, Answer.ANSWERED, by=arrival.by)
    assert question.packet is not None, "a question about an outcome names the call"
    command = tally.state.commands.open[question.packet.about]
    assert isinstance(command, CallTool)
    if arrival.happened is Happened.UNKNOWN:
        return head_for(tally, Ending.REVIEW_REQUIRED, message=f"{arrival.by} cannot tell what became of {command.key}")
    if arrival.happened is Happened.YES:
        settle_call(
            tally, command, Rung.COMMITTED, verifier=f"{BY_PERSON}{arrival.by}", evidence=command.arguments_hash
        )
        tally.say(tokens_bound(HAPPENED))
    else:
        settle_call(tally, command, Rung.OBSERVED, code=NOT_DONE)
        tally.say(tokens_bound(NOT_HAPPENED))
    return join_outcome(tally, HAPPENED)


def on_question_answered(tally: Tally, arrival: QuestionAnswered) -> str | None:
    """Put the answer into the context and go on."""
    question = _question(tally, arrival.command_id, arrival.by, AskPurpose.QUESTION)
    settle_question(tally, question, Answer.ANSWERED, by=arrival.by)
    tally.say(arrival.tokens_bound)
    return join_outcome(tally) if question.call_id else NodeOutcome.ANSWERED


def _question(tally: Tally, command_id: str, by: str, *purposes: AskPurpose) -> AskHuman:
    question = tally.state.commands.open[command_id]
    assert isinstance(question, AskHuman)
    if not by:
        raise IllegalArrival(
            ArrivalFault.WRONG_PACKET, f"the answer to question {command_id} does not name the person who gives it"
        )
    if question.purpose not in purposes:
        message = f"question {command_id} asks for {question.purpose}; this answers {' or '.join(purposes)}"
        raise IllegalArrival(ArrivalFault.WRONG_PACKET, message)
    return question
