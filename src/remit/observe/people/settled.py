"""What became of a question to a person, for those who answer too late: by whom it was answered, or why nobody needs to."""

from collections.abc import Iterable

from remit.core.failure import RequestRejected
from remit.core.journal.arrivals import CancelRequested
from remit.core.journal.commands import AskHuman
from remit.core.journal.rulings import Answer, ApprovalCounted, QuestionSettled, RunEnded
from remit.core.journal.turn import Turn
from remit.core.run.signals import packet_id

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
    return f"was {settled.answer.value} by {by or 'somebody'}"


def _because(turn: Turn) -> str:
    """Why the questions of a turn were withdrawn, where that is because the run ended."""
    ending = next((decision.ending for decision in turn.decisions if isinstance(decision, RunEnded)), None)
    if ending is None:
        return ""
    if isinstance(turn.arrival, CancelRequested):
        return f", since the run was cancelled by {turn.arrival.by}"
    return f", since the run ended as {ending.value}"
