"""Defects that were found by reading: each test failed before its repair."""

from itertools import pairwise

import pytest

from remit.core import arrivals, rulings
from remit.core.arrivals import Happened
from remit.core.budget import Budget, Dimension
from remit.core.commands import AskHuman, CallModel, CallTool, ReconcileTool, StartChild, TimerPurpose
from remit.core.failure import ArrivalFault, Ending, ErrorCode, RequestRejected
from remit.core.goal import Criterion, Goal
from remit.core.graph import EXITS, TERMINALS, Edge, Graph, Node, NodeKind
from remit.core.lifecycle import LifecycleState, LoopState, is_lifecycle_move
from remit.core.schema import Violation
from remit.core.usage import TokenUsage
from remit.kernel.state import compiled, loop_state
from remit.orchestrate.patterns.chat import chat_graph
from remit.testing.scenarios import LEASE
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

BROKEN = (Violation("/n", "type", "is not a number"),)


def cancelled_while_paying() -> Run:
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    run.take(arrivals.CancelRequested("ada"))
    return run


def test_a_late_outcome_after_the_ending_is_noted_once_and_settles_the_doubt() -> None:
    run = cancelled_while_paying()
    command = run.open(CallTool)[0]
    run.returns("pay")
    assert run.last(rulings.AddendumNoted).about == command.id
    assert run.state.open == {}
    assert run.state.reserved == [0] * len(run.state.reserved)
    assert run.fault_of(arrivals.ToolReturned(command.id, "", b"")) is ArrivalFault.DUPLICATE


def test_a_timeout_after_the_ending_leaves_the_call_in_doubt() -> None:
    run = cancelled_while_paying()
    timeout = arrivals.ToolFailed(run.open(CallTool)[0].id, ErrorCode.TOOL_TIMEOUT)
    assert run.fault_of(timeout) is ArrivalFault.DUPLICATE


def test_a_timeout_reported_twice_asks_once() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    again = arrivals.ToolFailed(run.open(CallTool)[0].id, ErrorCode.TOOL_TIMEOUT)
    assert run.fault_of(again) is ArrivalFault.DUPLICATE


def test_a_retry_by_somebody_named_like_a_command_settles_no_doubt() -> None:
    run = cancelled_while_paying()
    command = run.open(CallTool)[0]
    run.take(arrivals.RetryRequested(command.id))
    assert list(run.state.doubted) == [command.id]


def test_a_doubt_that_ends_the_run_keeps_its_own_reason() -> None:
    run = Run(manifest_of(budget=Budget(human_reviews=1)))
    run.proposes(wants("write"))
    run.approves()
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    assert run.state.ending is Ending.REVIEW_REQUIRED
    assert [doubted.reason for doubted in run.all(rulings.OutcomeDoubted)] == [ErrorCode.TOOL_TIMEOUT]


def test_a_tool_that_cannot_say_during_a_pause_makes_nobody_be_asked_until_the_resume() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    run.fails("pay", ErrorCode.TOOL_TIMEOUT)
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, Happened.UNKNOWN))
    assert run.open(AskHuman) == []
    run.take(arrivals.ResumeRequested("ada"))
    assert len(run.open(ReconcileTool)) == 1


def test_a_call_known_not_to_have_happened_may_be_the_last_failure_in_a_row() -> None:
    run = Run(manifest_of(budget=Budget(retries=0)))
    run.proposes(wants("pay"))
    run.approves()
    run.fails("pay", ErrorCode.TOOL_TIMEOUT)
    run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, Happened.NO))
    assert run.state.ending is Ending.REPEATED_FAILURE
    assert run.state.error is ErrorCode.TOOL_EXECUTION_FAILED


def test_what_one_tool_returned_is_never_heard_as_the_outcome_of_another() -> None:
    run = Run()
    run.proposes(wants("look"), wants("fetch"))
    look = run.open(CallTool)[0]
    late = arrivals.ToolReturned(look.id, '{"ok": true}', b"evidence", 28)
    run.take(late, after_ms=600_000)
    assert run.state.ending is Ending.TIMEOUT
    assert [trace.content for trace in run.state.calls.values()] == ['{"ok": true}', ""]
    assert run.messages().count('{"ok": true}') == 1


def test_an_outcome_that_ends_the_run_is_not_replaced_by_a_later_one_during_a_pause() -> None:
    fan = Node("fan", NodeKind.MAP, prompt="look", children=2, lease=(("tool_calls", 1),), visits_max=1)
    run = Run(manifest_of(graph=in_line(fan)))
    run.take(arrivals.PauseRequested("ada"))
    run.heard_from_child(spent=((int(Dimension.TOOL_CALLS), 3),))
    run.heard_from_child()
    run.take(arrivals.ResumeRequested("ada"))
    assert run.state.ending is Ending.BUDGET_EXHAUSTED


def test_a_child_started_after_a_long_wait_for_a_person_gets_the_deadline_that_stood_still() -> None:
    ask = Node("ask", NodeKind.HUMAN, prompt="Which city?")
    child = Node("child", NodeKind.CHILD, prompt="go", lease=LEASE)
    run = Run(manifest_of(graph=in_line(ask, child)))
    run.take(arrivals.QuestionAnswered(run.question().id, "ada", "Rome", 20), after_ms=3_600_000)
    assert run.open(StartChild)[0].deadline_at_ms == run.state.deadline_at_ms > run.now_ms


def test_a_map_starts_all_its_children_or_none() -> None:
    fan = Node("fan", NodeKind.MAP, prompt="look", children=3, lease=(("tool_calls", 2),), visits_max=1)
    wrap_up = Node("wrap_up", NodeKind.HUMAN, prompt="What now?", visits_max=1)
    exits = (*EXITS[:3], ("exhausted", "wrap_up"))
    graph = Graph("fan", "fan", (fan, wrap_up, *TERMINALS), (Edge("fan", "done"), Edge("wrap_up", "exhausted")), exits)
    run = Run(manifest_of(graph=graph, budget=Budget(tool_calls=5)))
    assert run.path() == ["fan", "wrap_up"]
    assert run.all(StartChild) == []


def test_the_steps_of_a_child_count_in_the_turn_that_settles_it() -> None:
    lease = (("steps", 3),)
    child = Node("child", NodeKind.CHILD, prompt="go", lease=lease)
    after = (Node("first", NodeKind.DECIDE), Node("second", NodeKind.DECIDE))
    run = Run(manifest_of(graph=in_line(child, *after), budget=Budget(steps=5)))
    run.heard_from_child(spent=((int(Dimension.STEPS), 3),))
    assert run.state.ending is Ending.BUDGET_EXHAUSTED
    assert run.used(Dimension.STEPS) == 5


def test_a_command_id_of_thousands_of_digits_is_only_an_illegal_arrival() -> None:
    run = Run()
    assert run.fault_of(arrivals.ApprovalGiven("9" * 5000, "mallory")) is ArrivalFault.UNKNOWN_COMMAND


def with_farewell(exit_name: str) -> Graph:
    """A chat whose exit of this name leads to one more model call."""
    chat = chat_graph()
    farewell = Node("farewell", NodeKind.MODEL, visits_max=3)
    exits = tuple((outcome, "farewell" if outcome == exit_name else target) for outcome, target in EXITS)
    return Graph("farewell", chat.start, (*chat.nodes, farewell), (*chat.edges, Edge("farewell", exit_name)), exits)


def test_a_run_past_its_deadline_orders_nothing_wherever_its_graph_leads() -> None:
    run = Run(manifest_of(graph=with_farewell("cancelled")))
    run.proposes(wants("look"))
    run.take(arrivals.ToolReturned(run.open(CallTool)[0].id, "late", b"evidence"), after_ms=600_000)
    assert run.state.ending is Ending.TIMEOUT
    assert run.now(CallModel) == []


def test_a_cancelled_run_goes_nowhere_but_to_its_end() -> None:
    run = Run(manifest_of(graph=with_farewell("cancelled")))
    run.take(arrivals.CancelRequested("ada"))
    assert run.state.ending is Ending.USER_CANCEL


def test_a_node_that_still_waits_for_something_is_left_only_for_good() -> None:
    run = Run(manifest_of(graph=with_farewell("escalated")))
    denied = [wants("secret", n, call_id=f"call{n}") for n in range(3)]
    run.proposes(wants("look"), *denied)
    assert run.state.ending is Ending.PERMISSION_DENIED
    assert run.state.open == {}


def test_a_cut_stream_settles_at_its_reservation_whatever_part_of_its_usage_was_heard() -> None:
    run = Run()
    command = run.open(CallModel)[0]
    heard = TokenUsage(prompt_tokens=8)
    run.take(arrivals.ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, usage=heard, was_cut=True))
    assert run.last(rulings.CommandSettled).charged == command.reserved


def test_an_answer_beside_calls_is_the_answer_in_the_same_turn() -> None:
    chat = chat_graph()
    edges = (Edge("act", "check", "refused"), *chat.edges)
    graph = Graph("hasty", chat.start, chat.nodes, edges, chat.exits)
    goal = Goal("say something", (Criterion("long enough", guard="answer_bytes > 3"),))
    run = Run(manifest_of(graph=graph, goal=goal))
    run.proposes(wants("nothing"), text="here you are")
    assert run.path()[-2:] == ["check", "done"]


def test_an_answer_that_ends_the_loop_is_not_blamed_for_the_one_before() -> None:
    run = Run()
    run.says("not json", violations=(Violation("", "json", "expected value"),))
    run.proposes(wants("finish"))
    run.returns("finish", stop_loop=True)
    assert run.state.ending is Ending.SUCCESS


@pytest.mark.parametrize("broken", ["shape", "refuted"])
def test_a_result_that_was_not_verified_does_not_end_the_loop(broken: str) -> None:
    run = Run()
    run.proposes(wants("finish"))
    violations = BROKEN if broken == "shape" else ()
    run.returns("finish", stop_loop=True, violations=violations, refuted="no" if broken == "refuted" else "")
    assert run.path()[-1] == "think"
    assert not run.state.stopped


def test_a_model_that_said_nothing_is_not_shown_its_own_silence() -> None:
    run = Run()
    run.says("")
    run.rings(TimerPurpose.RETRY)
    assert run.messages() == ["please"]


def test_arguments_a_person_broke_leave_the_question_open() -> None:
    run = Run()
    run.proposes(wants("pay"))
    broken = arrivals.ApprovalGiven(run.question().id, "ada", wants("pay", 2, violations=BROKEN))
    assert run.fault_of(broken) is ArrivalFault.WRONG_PACKET
    run.rejects()
    run.says("done")
    assert run.state.ending is Ending.PERMISSION_DENIED


def test_an_approval_that_comes_after_its_time_is_not_heard() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.now_ms = run.question().expires_at_ms
    assert run.fault_of(arrivals.ApprovalGiven(run.question().id, "ada")) is ArrivalFault.NOT_WAITING


def test_a_check_without_a_bound_sends_an_answer_back_as_often_as_the_model_may_try() -> None:
    think = Node("think", NodeKind.MODEL, visits_max=3)
    graph = in_line(think, Node("check", NodeKind.VALIDATE), edges=(Edge("check", "think", "repairable"),))
    run = Run(manifest_of(graph=graph))
    run.says("not json", violations=BROKEN)
    assert run.path() == ["think", "check", "think"]


@pytest.mark.parametrize(
    "criterion",
    [Criterion("unreadable", guard="answer_bytes >"), Criterion("empty"), Criterion("both", "visits > 0", "polite")],
)
def test_a_goal_that_no_code_could_verify_is_refused_before_the_run_begins(criterion: Criterion) -> None:
    with pytest.raises(RequestRejected):
        Run(manifest_of(goal=Goal("do it", (criterion,))))


def test_a_run_that_waits_for_knowledge_shows_as_paused() -> None:
    run = Run(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt="Which city?"))))
    assert loop_state(run.state) is LoopState.PAUSED


def test_a_question_nobody_answers_can_end_the_run_for_want_of_information() -> None:
    ask = Node("ask", NodeKind.HUMAN, prompt="Which city?")
    run = Run(manifest_of(graph=in_line(ask, edges=(Edge("ask", "escalated", "expired"),))))
    run.rings(TimerPurpose.APPROVAL)
    assert run.state.ending is Ending.MISSING_INFO


def test_silence_of_a_person_is_no_success() -> None:
    run = Run(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt="May this leave?"))))
    run.rings(TimerPurpose.APPROVAL)
    assert run.state.ending is Ending.PARTIAL_SUCCESS


def test_a_success_that_was_not_earned_never_shows_as_complete() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.rejects()
    run.says("paid")
    nodes = {node.name: node.lifecycle for node in compiled(run.state).nodes}
    stations = [LifecycleState.INIT, *(nodes[name] for name in run.path())]
    moves = [(a, b) for a, b in pairwise(stations) if a is not b]
    assert all(is_lifecycle_move(before, after) for before, after in moves)


def test_repeated_ids_in_one_answer_do_not_confuse_what_was_delegated() -> None:
    run = Run()
    run.proposes(wants("look", 1), wants("ask_child", 2))
    child = wants("ask_child", 2)
    assert run.state.repeats[child.tool, child.arguments_hash] == 1


@pytest.mark.parametrize(
    ("condition", "broken"),
    [
        ("failed_calls == 1", "fails"),
        ("last_error == 'TOOL_EXECUTION_FAILED'", "fails"),
        ("refused_calls == 1", "refused"),
        ("last_error == 'TOOL_NOT_FOUND'", "refused"),
    ],
)
def test_a_condition_sees_what_this_turn_settled(condition: str, broken: str) -> None:
    chat = chat_graph()
    graph = Graph("seeing", chat.start, chat.nodes, (Edge("act", "done", condition=condition), *chat.edges), chat.exits)
    run = Run(manifest_of(graph=graph))
    run.proposes(wants("look" if broken == "fails" else "nothing"))
    if broken == "fails":
        run.fails("look")
    assert run.path()[-1] == "done"


@pytest.mark.parametrize("condition", ["iterations == 1", "proposed_calls == 0 && answer_bytes == 2"])
def test_a_condition_sees_the_answer_it_follows(condition: str) -> None:
    graph = in_line(Node("think", NodeKind.MODEL), edges=(Edge("think", "escalated", "answered", condition),))
    run = Run(manifest_of(graph=graph))
    run.says("hi")
    assert run.path()[-1] == "escalated"


def test_a_condition_does_not_count_the_question_just_answered() -> None:
    ask = Node("ask", NodeKind.HUMAN, prompt="Which city?")
    graph = in_line(ask, edges=(Edge("ask", "escalated", "answered", "approvals_pending == 0"),))
    run = Run(manifest_of(graph=graph))
    run.take(arrivals.QuestionAnswered(run.question().id, "ada", "Rome", 20))
    assert run.path()[-1] == "escalated"


def test_a_condition_does_not_count_the_child_just_ended() -> None:
    child = Node("child", NodeKind.CHILD, prompt="go", lease=LEASE)
    graph = in_line(child, edges=(Edge("child", "escalated", "joined", "children_open == 0"),))
    run = Run(manifest_of(graph=graph))
    run.heard_from_child()
    assert run.path()[-1] == "escalated"
