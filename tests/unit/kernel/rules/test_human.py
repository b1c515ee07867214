"""People answer: to approve a call, to say what became of one, or to answer a question of the graph."""

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode, Refusal
from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import Arrival, Happened
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, TimerPurpose
from remit.core.journal.rulings import Answer, Rung
from remit.core.limits.budget import Budget, Dimension
from remit.core.schema.json_schema import Violation
from remit.core.work.graph import Edge, Node, NodeKind
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

BROKEN = (Violation("/n", "type", "is not a number"), Violation("", "required", "is missing"))
ASK = Node("ask", NodeKind.HUMAN, prompt="Which city?")


def held(*calls: str) -> Run:
    run = Run()
    run.proposes(*(wants(tool) for tool in calls or ("write",)))
    return run


def in_doubt() -> Run:
    run = held("write")
    run.approves()
    run.loses()
    return run


# Approvals.


def test_an_approved_call_is_ordered_in_the_same_turn_with_who_approved_it() -> None:
    run = held()
    run.approves(by="ada")
    command = run.now(CallTool)[0]
    assert (command.tool, command.approved_by, command.mutating) == ("write", "ada", True)
    assert run.now(rulings.QuestionSettled)[0].by == "ada"


def test_an_approval_is_used_once() -> None:
    run = held()
    question = run.question()
    run.approves()
    assert run.fault_of(arrivals.ApprovalGiven(question.id, "ada")) is ArrivalFault.DUPLICATE


def test_an_approval_releases_exactly_one_change_beyond_a_cap_of_zero() -> None:
    run = held("write", "pay")
    run.approves()
    run.approves()
    assert run.state.spending.caps[Dimension.SIDE_EFFECTS] == run.reserved(Dimension.SIDE_EFFECTS) == 2


def test_an_approval_that_comes_to_nothing_releases_nothing() -> None:
    run = Run()
    run.proposes(*[wants("write")] * 3)
    for _ in range(3):
        run.approves()
    assert run.last(rulings.ToolCallRefused).code == Refusal.REPEATED_CALL
    assert run.state.spending.caps[Dimension.SIDE_EFFECTS] == run.reserved(Dimension.SIDE_EFFECTS) == 2


def test_an_approved_call_is_judged_again_before_it_is_ordered() -> None:
    run = Run(manifest_of(budget=Budget(tool_calls=1)))
    run.proposes(wants("write"), wants("pay"))
    run.approves()
    run.approves()
    assert run.now(CallTool) == []
    assert run.last(rulings.ToolCallRefused).code == Refusal.BUDGET_EXHAUSTED


def test_arguments_a_person_changed_run_instead_of_the_held_ones() -> None:
    run = held()
    changed = wants("other", 7, call_id="another")
    run.approves(modified=changed)
    command = run.now(CallTool)[0]
    assert (command.tool, command.call_id) == ("write", "call")
    assert command.arguments_hash == changed.arguments_hash
    assert list(run.state.effects.uncommitted) == [("write", changed.arguments_hash)]


def test_a_change_that_a_person_replaced_by_another_is_no_claim() -> None:
    run = held()
    run.approves(modified=wants("write", 7))
    run.returns("write")
    run.says("written")
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.parametrize("violations", [BROKEN[:1], BROKEN[1:], BROKEN])
def test_arguments_a_person_broke_leave_the_question_open(violations: tuple[Violation, ...]) -> None:
    run = held()
    broken = arrivals.ApprovalGiven(run.question().id, "ada", wants("write", 2, violations=violations))
    assert run.fault_of(broken) is ArrivalFault.WRONG_PACKET
    run.rejects()
    run.says("done")
    assert run.state.end.ending is Ending.PERMISSION_DENIED


def test_an_approval_that_comes_after_its_time_is_not_heard() -> None:
    run = held()
    run.now_ms = run.question().expires_at_ms
    assert run.fault_of(arrivals.ApprovalGiven(run.question().id, "ada")) is ArrivalFault.NOT_WAITING


def test_a_paused_run_cannot_be_given_an_approval() -> None:
    run = held()
    run.take(arrivals.PauseRequested("ada"))
    assert run.fault_of(arrivals.ApprovalGiven(run.question().id, "ada")) is ArrivalFault.PAUSED


@pytest.mark.parametrize(("reason", "told"), [("", "rejected by ada"), ("not today", "rejected by ada: not today")])
def test_a_rejected_call_is_refused_and_the_model_is_told(reason: str, told: str) -> None:
    run = held()
    run.rejects(reason)
    refused = run.last(rulings.ToolCallRefused)
    assert (refused.code, refused.reason) == (Refusal.APPROVAL_REJECTED, told)
    assert run.messages()[-1] == f"Not called. APPROVAL_REJECTED: {told}"
    assert run.path()[-1] == "think"


def test_a_rejection_is_recorded_while_the_run_is_paused() -> None:
    run = held()
    run.take(arrivals.PauseRequested("ada"))
    run.rejects()
    assert run.state.place.parked == rulings.OutcomeParked("settled")


def test_silence_is_refusal_of_the_call() -> None:
    run = held()
    run.rings(TimerPurpose.APPROVAL)
    assert run.last(rulings.ToolCallRefused).reason == "nobody approved it in time"
    assert run.path()[-1] == "think"


# What became of a call.


def test_a_call_a_person_saw_happen_is_committed_on_their_word() -> None:
    run = in_doubt()
    run.judges(Happened.YES)
    settled = run.last(rulings.CallSettled)
    assert (settled.rung, settled.verifier) == (Rung.COMMITTED, "person:ada")
    assert settled.evidence == wants("write").arguments_hash
    run.says("written")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_call_a_person_knows_did_not_happen_is_a_failure() -> None:
    run = in_doubt()
    run.judges(Happened.NO)
    settled = run.last(rulings.CallSettled)
    assert (settled.rung, settled.code) == (Rung.OBSERVED, ErrorCode.TOOL_EXECUTION_FAILED)
    assert run.path()[-1] == "think"


def test_a_call_nobody_can_tell_about_ends_the_run_for_review() -> None:
    run = in_doubt()
    run.judges(Happened.UNKNOWN)
    assert run.state.end.ending is Ending.REVIEW_REQUIRED
    assert run.state.end.message == f"ada cannot tell what became of {run.open(CallTool)[0].key}"


def test_two_calls_in_doubt_are_told_apart() -> None:
    run = held("write", "put")
    run.approves()
    run.approves()
    for tool in ("write", "put"):
        run.fails(tool, ErrorCode.TOOL_TIMEOUT)
    run.judges(Happened.YES)
    assert [call.tool for call in run.open(CallTool)] == ["put"]
    assert len(run.open(AskHuman)) == 1


# Questions of the graph.


def test_a_human_node_asks_its_question() -> None:
    run = Run(manifest_of(graph=in_line(ASK)))
    question = run.question()
    assert (question.purpose, question.question, question.ending) == (
        AskPurpose.QUESTION,
        "Which city?",
        Ending.MISSING_INFO,
    )


def test_a_human_node_that_may_ask_nobody_exhausts_the_run() -> None:
    run = Run(manifest_of(graph=in_line(ASK), budget=Budget(human_reviews=0)))
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED


def test_an_answer_becomes_a_message_and_the_run_goes_on() -> None:
    run = Run(manifest_of(graph=in_line(ASK)))
    run.take(arrivals.QuestionAnswered(run.question().id, "ada", "Rome", 20))
    assert run.messages()[-1] == "Rome"
    assert run.all(rulings.NodeEntered)[-1].outcome == "answered"
    assert run.last(rulings.QuestionSettled).answer is Answer.ANSWERED


def test_a_question_may_be_approved_or_rejected_like_a_call() -> None:
    graph = in_line(ASK, edges=(Edge("ask", "failed", "rejected"),))
    approved, rejected = (Run(manifest_of(graph=graph)) for _ in range(2))
    approved.approves()
    rejected.rejects()
    outcomes = [run.all(rulings.NodeEntered)[-1].outcome for run in (approved, rejected)]
    assert outcomes == ["approved", "rejected"]


def test_a_no_that_the_graph_does_not_name_ends_the_run_as_denied() -> None:
    run = Run(manifest_of(graph=in_line(ASK)))
    run.rejects()
    assert run.state.end.ending is Ending.PERMISSION_DENIED
    assert run.path() == ["ask", "escalated"]


def test_a_question_nobody_answers_can_end_the_run_for_want_of_information() -> None:
    run = Run(manifest_of(graph=in_line(ASK, edges=(Edge("ask", "escalated", "expired"),))))
    run.rings(TimerPurpose.APPROVAL)
    assert run.state.end.ending is Ending.MISSING_INFO
    assert run.state.end.message == f"nobody answered question {run.all(AskHuman)[0].id} in time"


def test_silence_that_the_graph_does_not_name_ends_the_run_for_want_of_information() -> None:
    run = Run(manifest_of(graph=in_line(ASK)))
    run.rings(TimerPurpose.APPROVAL)
    assert run.state.end.ending is Ending.MISSING_INFO


def test_silence_of_a_person_is_no_success_even_where_it_leads_to_one() -> None:
    run = Run(manifest_of(graph=in_line(ASK, edges=(Edge("ask", "done", "expired"),))))
    run.rings(TimerPurpose.APPROVAL)
    assert run.state.end.ending is Ending.PARTIAL_SUCCESS


def test_a_graph_that_names_silence_may_go_on_without_an_answer() -> None:
    graph = in_line(ASK, Node("think", NodeKind.MODEL), edges=(Edge("ask", "think", "expired"),))
    run = Run(manifest_of(graph=graph))
    run.rings(TimerPurpose.APPROVAL)
    run.says("then without")
    assert run.state.end.ending is Ending.SUCCESS


# Answers to another question.


def test_an_answer_of_the_wrong_kind_changes_nothing() -> None:
    approval, outcome, question = held(), in_doubt(), Run(manifest_of(graph=in_line(ASK)))
    wrong: list[tuple[Run, Arrival]] = [
        (approval, arrivals.OutcomeJudged(approval.question().id, "ada", Happened.YES)),
        (approval, arrivals.QuestionAnswered(approval.question().id, "ada", "yes")),
        (outcome, arrivals.ApprovalGiven(outcome.question().id, "ada")),
        (outcome, arrivals.ApprovalRefused(outcome.question().id, "ada")),
        (question, arrivals.OutcomeJudged(question.question().id, "ada", Happened.YES)),
    ]
    assert {run.fault_of(arrival) for run, arrival in wrong} == {ArrivalFault.WRONG_PACKET}


def test_an_answer_that_nobody_signs_is_not_heard() -> None:
    run = held()
    assert run.fault_of(arrivals.ApprovalGiven(run.question().id, "")) is ArrivalFault.WRONG_PACKET
    assert run.state.people.asking == 1
