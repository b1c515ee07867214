"""Silence: who is asked next when no person answers, what that costs, and when it is a no."""

from typing import Any

import pytest

from remit.core.failure import ArrivalFault, Ending, Refusal
from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import ApprovalGiven, Happened
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, SetTimer, TimerPurpose
from remit.core.journal.rulings import Answer
from remit.core.limits.boundary import Boundary, Exhaustion
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.tools import ToolCategory
from remit.core.work.graph import Node, NodeKind
from remit.kernel.state import waiting_for
from tests.unit.kernel.builders import Run, in_line, known, lawful, manifest_of, wants

WAIT_MS = 5_000
PAY = known("pay", category=ToolCategory.PAYMENT)
REVIEWS = Dimension.HUMAN_REVIEWS
ASK = Node("ask", NodeKind.HUMAN, prompt="Which city?")


def passing_on(*queues: str, **boundary: Any) -> Boundary:
    return Boundary(approval_wait_ms_max=WAIT_MS, on_silence=queues, **boundary)


def held(*queues: str, budget: Budget = Budget(), calls: int = 1) -> Run:
    run = Run(manifest_of(boundary=passing_on(*queues), budget=budget))
    run.proposes(*(wants("write", n) for n in range(calls)))
    return run


def queue_of(question: AskHuman) -> str:
    assert question.escalation is not None
    return question.escalation.queue


def keeps_silent(run: Run) -> None:
    run.rings(TimerPurpose.APPROVAL)


def answers(run: Run) -> list[Answer]:
    return [settled.answer for settled in run.all(rulings.QuestionSettled)]


def test_a_question_that_nobody_answers_goes_to_the_next_queue_until_there_is_none() -> None:
    run = held("shift_lead", "director")
    asked = [run.question()]
    for _ in range(2):
        keeps_silent(run)
        asked.append(run.question())
    assert [queue_of(question) for question in asked] == ["operator", "shift_lead", "director"]
    assert [question.silences for question in asked] == [0, 1, 2]
    assert [question.packet for question in asked] == [asked[0].packet] * 3
    keeps_silent(run)
    assert answers(run) == [Answer.ESCALATED, Answer.ESCALATED, Answer.EXPIRED]
    assert run.last(rulings.ToolCallRefused).code == Refusal.APPROVAL_EXPIRED
    assert (run.used(REVIEWS), run.reserved(REVIEWS)) == (3, 0)
    lawful(run)


def test_who_is_asked_next_has_a_whole_wait_and_a_timer_of_their_own() -> None:
    run = held("shift_lead")
    keeps_silent(run)
    (timer,) = [timer for timer in run.open(SetTimer) if timer.purpose is TimerPurpose.APPROVAL]
    assert (timer.about, timer.due_at_ms) == (run.question().id, run.now_ms + WAIT_MS)
    assert run.question().expires_at_ms == run.now_ms + WAIT_MS
    run.approves()
    assert len(run.open(CallTool)) == 1


def test_a_late_answer_to_the_question_that_was_passed_on_is_a_duplicate() -> None:
    run = held("shift_lead")
    old = run.question()
    keeps_silent(run)
    late: list[arrivals.Arrival] = [ApprovalGiven(old.id, "ada"), arrivals.ApprovalRefused(old.id, "ada")]
    assert {run.fault_of(arrival) for arrival in late} == {ArrivalFault.DUPLICATE}
    assert run.open(CallTool) == []


def test_where_no_review_is_left_nobody_is_asked_next_and_silence_is_a_no() -> None:
    run = held("shift_lead", budget=Budget(human_reviews=1))
    keeps_silent(run)
    assert answers(run) == [Answer.EXPIRED]
    assert run.last(rulings.ToolCallRefused).reason == "nobody approved it in time"


def test_a_boundary_that_names_nobody_takes_silence_for_a_no_at_once() -> None:
    run = held()
    keeps_silent(run)
    assert answers(run) == [Answer.EXPIRED]


def test_calls_that_were_held_together_are_passed_on_together_for_one_review() -> None:
    run = held("shift_lead", calls=3)
    first = run.question()
    for _ in range(3):
        keeps_silent(run)
    passed_on = run.open(AskHuman)
    assert [question.silences for question in passed_on] == [1, 1, 1]
    assert {question.group for question in passed_on} == {first.id}
    assert (run.used(REVIEWS), run.reserved(REVIEWS)) == (1, 1)
    for _ in range(3):
        run.approves()
    assert (run.used(REVIEWS), len(run.open(CallTool))) == (2, 3)
    lawful(run)


def test_of_a_group_those_that_were_answered_are_not_passed_on() -> None:
    run = held("shift_lead", calls=2)
    run.approves()
    keeps_silent(run)
    assert (len(run.open(AskHuman)), run.question().silences, run.reserved(REVIEWS)) == (1, 1, 1)


def test_one_question_alone_stays_no_group_when_it_is_passed_on() -> None:
    run = held("shift_lead")
    keeps_silent(run)
    assert run.question().group == ""


def test_one_yes_of_two_is_forgotten_when_the_next_are_asked() -> None:
    boundary = passing_on("directors", four_eyes=(ToolCategory.PAYMENT,))
    run = Run(manifest_of(tools=(PAY,), boundary=boundary))
    run.proposes(wants("pay"))
    run.approves(by="ada")
    keeps_silent(run)
    assert run.state.people.approvals == {}
    run.approves(by="bob")
    assert run.open(CallTool) == []
    run.approves(by="cyd")
    assert [call.approved_by for call in run.open(CallTool)] == ["bob, cyd"]


def test_what_became_of_a_call_is_asked_of_the_next_and_ends_for_review_when_nobody_knows() -> None:
    run = held("shift_lead")
    run.approves()
    run.loses()
    keeps_silent(run)
    assert (run.question().purpose, queue_of(run.question())) == (AskPurpose.OUTCOME, "shift_lead")
    keeps_silent(run)
    assert run.state.end.ending is Ending.REVIEW_REQUIRED
    assert lawful(run).state.end.message.startswith("nobody said in time what became of question")


def test_the_person_asked_next_may_say_what_became_of_a_call() -> None:
    run = held("shift_lead")
    run.approves()
    run.loses()
    keeps_silent(run)
    run.judges(Happened.YES)
    assert (run.state.effects.committed, run.state.commands.doubted) == ({"write": 1}, {})


def test_a_release_is_asked_of_the_next_and_is_a_no_when_nobody_answers() -> None:
    boundary = passing_on("director", exhaustion=(("output_tokens", Exhaustion.ASK),), budget=Budget(output_tokens=0))
    run = Run(manifest_of(boundary=boundary))
    releases = run.question().releases
    keeps_silent(run)
    assert (run.question().releases, queue_of(run.question())) == (releases, "director")
    keeps_silent(run)
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert run.state.end.message == "output_tokens is spent and nobody released more in time"
    lawful(run)


def test_a_question_of_the_graph_is_passed_on_too() -> None:
    run = Run(manifest_of(graph=in_line(ASK), boundary=passing_on("desk")))
    keeps_silent(run)
    assert (run.question().question, queue_of(run.question())) == ("Which city?", "desk")
    run.tells("Rome")
    assert run.messages()[-1] == "Rome"


@pytest.mark.parametrize("is_left", [True, False])
def test_a_paused_run_passes_nothing_on_before_it_goes_on(is_left: bool) -> None:
    run = held(*(("shift_lead",) if is_left else ()))
    question = run.question()
    run.take(arrivals.PauseRequested("ada"))
    keeps_silent(run)
    assert (run.open(AskHuman) == [question]) is is_left
    run.take(arrivals.ResumeRequested("ada"))
    if is_left:
        keeps_silent(run)
        assert queue_of(run.question()) == "shift_lead"
    assert run.state.end.ending is None
    lawful(run)


def test_while_a_question_is_passed_on_the_clock_of_the_run_stands_still() -> None:
    run = held("shift_lead")
    began = run.state.clock.deadline_at_ms
    keeps_silent(run)
    keeps_silent(run)
    assert run.state.clock.deadline_at_ms == began + 2 * WAIT_MS
    assert waiting_for(run.state) is None
