"""Asking people: a question is a command with an expiry, and silence is refusal.

Rule 1: every question costs one human review, reserved when it is asked; nothing else is reserved while waiting.
Rule 2: every question has a timer; what expires is a no, and an outcome nobody could tell ends the run for review.
"""

from remit.core.budget import Dimension
from remit.core.commands import AskHuman, AskPurpose, Packet, SetTimer, TimerPurpose
from remit.core.failure import Ending
from remit.core.rulings import Answer, QuestionSettled
from remit.kernel.tally import Tally

REVIEW = ((int(Dimension.HUMAN_REVIEWS), 1),)


def ask(tally: Tally, purpose: AskPurpose, ending: Ending, *, packet: Packet | None = None, question: str = "") -> None:
    """Ask a person, and set the timer that takes silence for a no."""
    expires_at_ms = tally.at_ms + tally.manifest.boundary.approval_wait_ms_max
    command_id = tally.next_id()
    tally.order(AskHuman(command_id, purpose, ending, expires_at_ms, packet, question, REVIEW))
    tally.asking += 1
    tally.order(SetTimer(tally.next_id(), expires_at_ms, TimerPurpose.APPROVAL, command_id))


def settle_question(
    tally: Tally, question: AskHuman, answer: Answer, *, by: str = "", is_released: bool = False
) -> None:
    """Close a question. It cost its review whatever the answer; an approval also widens what its packet names."""
    tally.release(question)
    for dimension, amount in question.reserved:
        tally.left[dimension] -= amount
    tally.asking -= 1
    releases = question.packet.releases if is_released and question.packet is not None else ()
    for dimension, amount in releases:
        tally.left[dimension] += amount
    tally.rule(QuestionSettled(question.id, answer, by, releases))
