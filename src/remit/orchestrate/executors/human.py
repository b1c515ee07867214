"""People: what a person is shown when a run asks, and which question an answer belongs to.

Rule 1: nobody here waits for a person: the question stands in the journal, and the run rests until somebody answers.
Rule 2: what is shown is what will run: the call as it was judged, the versions it is bound to, and what it releases.
"""

from remit.core.arrivals import Happened, OutcomeJudged
from remit.core.budget import FIELDS
from remit.core.codec import arguments_in
from remit.core.commands import AskHuman, AskPurpose
from remit.core.failure import Ending
from remit.core.record import JsonObject, Record, replace
from remit.core.signals import Signal, UserSignal, packet_id, packet_named
from remit.kernel.state import RunState, questions
from remit.orchestrate.reports import PersonSaid, Report, report_of


class Approval(Record):
    """One open question, as an inbox shows it. Without a tool it is a question in words."""

    id: str
    run_id: str
    purpose: AskPurpose
    ending: Ending
    expires_at_ms: int
    tool: str = ""
    effect: str = ""
    arguments: JsonObject = {}
    question: str = ""
    reasons: tuple[str, ...] = ()
    # What is allowed once, beyond the caps of the budget.
    releases: tuple[tuple[str, int], ...] = ()
    tool_version: str = ""
    boundary_version: str = ""
    # The call that is in doubt, when a person is asked what became of it.
    about: str = ""


def approvals_in(state: RunState) -> list[Approval]:
    """What a run asks people, oldest first."""
    return [_approval(state, question) for question in questions(state)]


def _approval(state: RunState, question: AskHuman) -> Approval:
    name, packet = packet_id(state.run_id, question.id), question.packet
    if packet is None:
        asked = (question.purpose, question.ending, question.expires_at_ms)
        return Approval(name, state.run_id, *asked, question=question.question)
    tool = state.tools.get(packet.call.tool)
    return Approval(
        id=name,
        run_id=state.run_id,
        purpose=question.purpose,
        ending=question.ending,
        expires_at_ms=question.expires_at_ms,
        tool=packet.call.tool,
        effect="" if tool is None else tool.effect.value,
        arguments=arguments_in(packet.call.arguments),
        question=question.question,
        reasons=packet.reasons,
        releases=tuple((FIELDS[dimension], amount) for dimension, amount in packet.releases),
        tool_version=packet.tool_version,
        boundary_version=packet.boundary_version,
        about=packet.about,
    )


def answer_to(state: RunState, signal: UserSignal) -> Report:
    """What a signal reports to its run. To approve or reject a question about a doubted call says what became of it."""
    if signal.type not in (Signal.APPROVE, Signal.REJECT):
        return report_of(signal)
    command_id = packet_named(str(signal.payload["packet_id"]), signal.run_id)
    question = state.open.get(command_id)
    is_yes = signal.type is Signal.APPROVE
    if isinstance(question, AskHuman):
        if question.purpose is AskPurpose.OUTCOME:
            return OutcomeJudged(command_id, signal.user_id, Happened.YES if is_yes else Happened.NO)
        if question.purpose is AskPurpose.QUESTION and is_yes:
            return PersonSaid(signal.user_id, str(signal.payload.get("text", "")), command_id)
    return report_of(replace(signal, payload={**signal.payload, "packet_id": command_id}))
