"""Asking people: a question has an expiry, and silence is refusal."""

from remit.core.failure import Ending, Refusal
from remit.core.journal import rulings
from remit.core.journal.commands import AskHuman, AskPurpose, SetTimer, TimerPurpose
from remit.core.journal.rulings import Answer
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Dimension
from remit.kernel.people.questions import REVIEW, open_question, settle_question
from tests.unit.kernel.builders import BEGINS_AT_MS, Run, manifest_of, wants

REACHES = [Answer]


def test_a_question_sets_the_timer_that_takes_silence_for_a_no() -> None:
    tally = Run(manifest_of(boundary=Boundary(approval_wait_ms_max=5_000))).tally()
    open_question(tally, AskPurpose.QUESTION, Ending.MISSING_INFO, question="Where?")
    question, timer = tally.decisions
    assert isinstance(question, AskHuman)
    assert isinstance(timer, SetTimer)
    assert question.expires_at_ms == timer.due_at_ms == BEGINS_AT_MS + 5_000
    assert (timer.purpose, timer.about) == (TimerPurpose.APPROVAL, question.id)


def test_a_question_stops_the_clock_and_reserves_one_review() -> None:
    tally = Run().tally()
    open_question(tally, AskPurpose.QUESTION, Ending.MISSING_INFO)
    assert tally.is_standing
    assert tally.left[Dimension.HUMAN_REVIEWS] == tally.state.spending.left[Dimension.HUMAN_REVIEWS] - 1
    assert ((int(Dimension.HUMAN_REVIEWS), 1),) == REVIEW


def test_a_question_costs_its_review_whatever_the_answer() -> None:
    run = Run()
    run.proposes(wants("pay"))
    tally = run.tally()
    settle_question(tally, run.question(), Answer.REJECTED, by="ada")
    assert tally.left[Dimension.HUMAN_REVIEWS] == run.state.spending.left[Dimension.HUMAN_REVIEWS]
    assert run.reserved(Dimension.HUMAN_REVIEWS) == 1
    assert not tally.is_standing


def test_an_approval_widens_what_its_packet_names_and_other_answers_do_not() -> None:
    run = Run()
    run.proposes(wants("pay"))
    approved, rejected = run.tally(), run.tally()
    settle_question(approved, run.question(), Answer.APPROVED, by="ada", is_released=True)
    settle_question(rejected, run.question(), Answer.REJECTED, by="ada")
    released = ((int(Dimension.SIDE_EFFECTS), 1),)
    assert approved.decisions == [rulings.QuestionSettled(run.question().id, Answer.APPROVED, "ada", released)]
    assert rejected.decisions == [rulings.QuestionSettled(run.question().id, Answer.REJECTED, "ada")]
    left = run.state.spending.left[Dimension.SIDE_EFFECTS]
    assert (approved.left[Dimension.SIDE_EFFECTS], rejected.left[Dimension.SIDE_EFFECTS]) == (left + 1, left)


def test_what_expires_is_answered_with_no() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.rings(TimerPurpose.APPROVAL)
    assert run.last(rulings.QuestionSettled).answer is Answer.EXPIRED
    assert run.last(rulings.ToolCallRefused).code == Refusal.APPROVAL_EXPIRED
