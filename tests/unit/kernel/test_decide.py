"""The one door: what is let through, where a run goes, and what it may not do any more."""

from itertools import pairwise
from typing import get_args

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode, IllegalArrival, Refusal
from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import Arrival, RunStarted
from remit.core.journal.codec import NO_HASH, encode_turn, hash_turn
from remit.core.journal.commands import AskHuman, CallModel, CallTool, SetTimer, StartChild, TimerPurpose
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.limits.budget import Budget, Dimension
from remit.core.run.lifecycle import LIFECYCLE_TRANSITIONS, LifecycleState
from remit.core.work.graph import EXITS, TERMINALS, Edge, Graph, Node, NodeKind
from remit.kernel.decide import ANSWERS, ENTRIES, RULES, decide, take_turn
from remit.kernel.state import RunState, graph_of_run
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.testing.runs import fold_journal
from tests.unit.kernel.builders import BEGINS_AT_MS, Run, in_line, manifest_of, wants

REACHES = [ArrivalFault]


def test_every_kind_of_arrival_has_its_rule() -> None:
    assert set(RULES) == set(get_args(Arrival))


def test_every_outcome_says_which_command_it_answers() -> None:
    assert set(ANSWERS) == {kind for kind in RULES if "command_id" in kind.__struct_fields__}


def test_every_kind_of_node_can_be_entered() -> None:
    assert set(ENTRIES) == set(NodeKind)


def test_the_first_turn_has_nothing_before_it_and_the_next_carries_its_hash() -> None:
    run = Run()
    run.says("hello")
    assert [(turn.seq, turn.previous) for turn in run.turns] == [(0, NO_HASH), (1, hash_turn(run.journal[0]))]


def test_deciding_changes_nothing_in_the_state() -> None:
    run = Run()
    answer = arrivals.ModelAnswered(run.open(CallModel)[0].id, "hello")
    assert take_turn(run.state, answer, run.now_ms) == take_turn(run.state, answer, run.now_ms)
    assert run.state == fold_journal(run.journal)


# What is let through.


def test_nothing_can_be_said_to_a_run_that_has_not_started() -> None:
    with pytest.raises(IllegalArrival) as refused:
        take_turn(RunState(), arrivals.PauseRequested("ada"), 0)
    assert refused.value.fault is ArrivalFault.NOT_STARTED


def test_a_run_starts_once() -> None:
    assert Run().fault_of(RunStarted(manifest_of(), 0)) is ArrivalFault.ALREADY_STARTED


def test_an_outcome_that_was_heard_is_a_duplicate() -> None:
    run = Run()
    first = run.open(CallModel)[0]
    run.proposes(wants("look"))
    assert run.fault_of(arrivals.ModelAnswered(first.id, "again")) is ArrivalFault.DUPLICATE


@pytest.mark.parametrize("command_id", ["", "nonsense", "7.0", "-1.0", "²", "9" * 5000, "0." + "9" * 5000])
def test_an_outcome_of_nothing_that_was_ordered_is_only_an_illegal_arrival(command_id: str) -> None:
    fault = Run().fault_of(arrivals.ApprovalGiven(command_id, "mallory"))
    assert fault is (ArrivalFault.DUPLICATE if command_id.startswith("0.") else ArrivalFault.UNKNOWN_COMMAND)


def test_an_outcome_of_another_kind_is_not_heard() -> None:
    run = Run()
    assert run.fault_of(arrivals.ToolReturned(run.open(CallModel)[0].id, "", b"")) is ArrivalFault.UNKNOWN_COMMAND


@pytest.mark.parametrize(
    "arrival",
    [
        arrivals.CancelRequested("ada"),
        arrivals.PauseRequested("ada"),
        arrivals.ResumeRequested("ada"),
        arrivals.FeedbackGiven("ada", "more"),
    ],
)
def test_a_signal_after_the_ending_is_turned_away(arrival: Arrival) -> None:
    run = Run()
    run.says("done")
    assert run.fault_of(arrival) is ArrivalFault.RUN_ENDED


# After the ending.


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
    assert run.state.commands.open == {}
    assert run.state.reserved == [0] * len(run.state.reserved)
    assert run.fault_of(arrivals.ToolReturned(command.id, "", b"")) is ArrivalFault.DUPLICATE


def test_a_late_outcome_changes_nothing_about_the_ending() -> None:
    run = cancelled_while_paying()
    ended = (
        run.state.end.ending,
        run.state.end.message,
        run.state.result.answer,
        list(run.state.talk.context),
        run.state.end.seq,
    )
    run.returns("pay")
    assert ended == (
        run.state.end.ending,
        run.state.end.message,
        run.state.result.answer,
        run.state.talk.context,
        run.state.end.seq,
    )
    assert run.state.end.addenda == 1


def test_a_late_result_is_kept_beside_the_call_and_commits_nothing() -> None:
    run = cancelled_while_paying()
    command, left = run.open(CallTool)[0], dict(run.state.effects.uncommitted)
    run.returns("pay")
    late = run.state.end.late[command.id]
    assert (late.is_returned, late.code, late.seq) == (True, "", run.state.seq)
    assert (run.state.effects.uncommitted, run.state.effects.count) == (left, 0)


def test_a_late_result_keeps_what_contradicts_it() -> None:
    run = cancelled_while_paying()
    command = run.open(CallTool)[0]
    run.take(arrivals.ToolReturned(command.id, "paid", b"", refuted="not in the books"))
    late = run.state.end.late[command.id]
    assert (late.is_returned, late.code, late.reason) == (
        True,
        ErrorCode.VALIDATION_RULE_FAILED,
        "not in the books",
    )


def test_a_tool_that_says_late_that_it_did_nothing_is_believed() -> None:
    run = cancelled_while_paying()
    command = run.open(CallTool)[0]
    run.take(arrivals.ToolFailed(command.id, ErrorCode.TOOL_EXECUTION_FAILED, "no money"))
    late = run.state.end.late[command.id]
    assert (late.is_returned, late.code, late.reason) == (False, ErrorCode.TOOL_EXECUTION_FAILED, "no money")


def test_an_addendum_that_says_nothing_of_a_call_in_doubt_keeps_nothing() -> None:
    run = cancelled_while_paying()
    command = run.open(CallTool)[0]
    turn = Turn(
        run.state.seq + 1,
        run.state.at_ms,
        run.state.head,
        KERNEL_VERSION,
        arrivals.ToolOutcomeLost(command.id),
        (rulings.AddendumNoted(command.id),),
    )
    state = fold_journal([*run.journal, encode_turn(turn)])
    assert (state.end.late, state.commands.doubted) == ({}, {})


def test_a_timeout_after_the_ending_leaves_the_call_in_doubt() -> None:
    run = cancelled_while_paying()
    timeout = arrivals.ToolFailed(run.open(CallTool)[0].id, ErrorCode.TOOL_TIMEOUT)
    assert run.fault_of(timeout) is ArrivalFault.DUPLICATE


# Where a run goes.


@pytest.mark.req("4.20")
def test_every_transition_is_a_checkpoint_from_which_the_run_can_be_taken_up() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.returns()
    run.says("done")
    stations = [
        graph_of_run(run.state).nodes[fold_journal(run.journal[:n]).place.node].name
        for n in range(1, len(run.journal) + 1)
    ]
    assert stations == ["think", "act", "think", "done"]
    assert run.path() == ["prepare", "think", "act", "think", "check", "done"]


def test_a_run_follows_the_first_edge_whose_condition_holds() -> None:
    sort = Node("sort", NodeKind.DECIDE)
    edges = (Edge("sort", "failed", condition="visits > 5"), Edge("sort", "escalated", condition="visits == 1"))
    run = Run(manifest_of(graph=in_line(sort, edges=edges)))
    assert run.path() == ["sort", "escalated"]


def test_a_condition_that_cannot_be_decided_leads_to_review() -> None:
    sort = Node("sort", NodeKind.DECIDE)
    graph = in_line(sort, edges=(Edge("sort", "failed", condition="10 / (visits - visits) > 1"),))
    run = Run(manifest_of(graph=graph))
    assert run.path() == ["sort", "escalated"]
    assert run.state.end.ending is Ending.REVIEW_REQUIRED
    assert "cannot be decided" in run.state.end.message


@pytest.mark.req("3.7")
def test_a_node_entered_as_often_as_it_may_ends_the_run_with_the_iteration_limit() -> None:
    run = Run(manifest_of(graph=chat_graph(tool_rounds_max=1)))
    run.proposes(wants("look", 1))
    run.returns()
    run.proposes(wants("look", 2))
    assert (run.state.end.ending, run.state.end.error) == (
        Ending.BUDGET_EXHAUSTED,
        ErrorCode.ORCHESTRATION_ITERATION_LIMIT,
    )
    assert "visits_max=1" in run.state.end.message


@pytest.mark.req("3.7")
def test_a_chat_calls_tools_in_twenty_rounds_unless_told_otherwise() -> None:
    run = Run()
    while run.state.end.ending is None:
        run.proposes(wants("look", run.state.counts.iterations))
        if run.open(CallTool):
            run.returns()
    assert run.path().count("act") == 20
    assert run.state.end.error is ErrorCode.ORCHESTRATION_ITERATION_LIMIT


def test_a_run_without_a_single_step_ends_where_no_edge_can_be_followed() -> None:
    run = Run(manifest_of(budget=Budget(steps=0)))
    assert run.path() == ["exhausted"]
    assert run.state.end.message == "steps: 0 spent or reserved and 1 wanted exceed steps_max=0"


@pytest.mark.req("4.23")
def test_the_step_that_no_longer_fits_is_not_taken() -> None:
    run = Run(manifest_of(budget=Budget(steps=2)))
    run.says("done")
    assert run.path() == ["prepare", "think", "exhausted"]
    assert run.used(Dimension.STEPS) == 2


def test_the_steps_of_a_child_count_in_the_turn_that_settles_it() -> None:
    child = Node("child", NodeKind.CHILD, prompt="go", lease=(("steps", 3),))
    after = (Node("first", NodeKind.DECIDE), Node("second", NodeKind.DECIDE))
    run = Run(manifest_of(graph=in_line(child, *after), budget=Budget(steps=5)))
    run.heard_from_child(spent=((int(Dimension.STEPS), 3),))
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert run.used(Dimension.STEPS) == 5


def with_exit(outcome: str, node: Node) -> Graph:
    """A chat in which an outcome that can befall any node leads to one more node, and from there to its terminal."""
    chat = chat_graph(tool_rounds_max=1)
    exits = tuple((name, node.name if name == outcome else target) for name, target in EXITS)
    onward = (Edge(node.name, outcome, outcome), Edge(node.name, outcome))
    return Graph("exit", chat.start, (*chat.nodes, node), (*chat.edges, *onward), exits)


def test_an_exhausted_run_may_be_led_to_a_last_word() -> None:
    farewell = Node("farewell", NodeKind.HUMAN, prompt="What now?", visits_max=1)
    run = Run(manifest_of(graph=with_exit("exhausted", farewell), budget=Budget(output_tokens=4)))
    run.proposes(wants("look"))
    run.returns()
    assert run.path()[-1] == "farewell"
    assert run.state.end.ending is None


def test_an_exit_that_cannot_be_entered_either_leaves_only_the_terminal() -> None:
    farewell = Node("farewell", NodeKind.HUMAN, prompt="What now?", visits_max=1)
    run = Run(manifest_of(graph=with_exit("exhausted", farewell), budget=Budget(steps=2)))
    run.says("done")
    assert run.path() == ["prepare", "think", "exhausted"]
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED


def test_an_ending_that_leads_on_is_forgotten_on_the_way() -> None:
    second = Node("second", NodeKind.HUMAN, prompt="Did it fail?", visits_max=1)
    run = Run(manifest_of(graph=with_exit("failed", second), budget=Budget(retries=0)))
    run.breaks()
    run.take(arrivals.QuestionAnswered(run.question().id, "ada", "yes"))
    assert (run.state.end.ending, run.state.end.error, run.state.end.message) == (Ending.IMPOSSIBLE, None, "")


def wrapping_up() -> Graph:
    """A chat that asks the model for a last word when it is exhausted."""
    chat = chat_graph(tool_rounds_max=1)
    last = Node("last", NodeKind.MODEL, visits_max=1)
    exits = tuple((name, "last" if name == "exhausted" else target) for name, target in EXITS)
    onward = (Edge("last", "exhausted", "exhausted"), Edge("last", "done"))
    return Graph("wrapping up", chat.start, (*chat.nodes, last), (*chat.edges, *onward), exits)


def test_calls_that_can_no_longer_be_made_are_refused_before_the_model_has_its_last_word() -> None:
    run = Run(manifest_of(graph=wrapping_up()))
    run.proposes(wants("look"))
    run.returns()
    run.proposes(wants("write"))
    assert run.path()[-1] == "last"
    assert [refused.code for refused in run.now(rulings.ToolCallRefused)] == [Refusal.BUDGET_EXHAUSTED]
    assert run.messages()[-1].startswith("Not called. BUDGET_EXHAUSTED: node act was entered visits_max=1 times")
    run.says("written")
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED


def test_a_change_proposed_where_no_tool_is_called_is_no_success() -> None:
    run = Run(manifest_of(graph=in_line(Node("think", NodeKind.MODEL))))
    run.proposes(wants("write"), text="written")
    assert run.last(rulings.ToolCallRefused).code == Refusal.NOT_OFFERED
    assert run.state.end.ending is Ending.PERMISSION_DENIED


# What a run may not do any more.


def test_a_run_past_its_deadline_orders_nothing_wherever_its_graph_leads() -> None:
    run = Run(manifest_of(graph=with_exit("cancelled", Node("farewell", NodeKind.MODEL, visits_max=3))))
    run.proposes(wants("look"))
    run.take(arrivals.ToolReturned(run.open(CallTool)[0].id, "late", b"evidence"), after_ms=600_000)
    assert run.state.end.ending is Ending.TIMEOUT
    assert run.now(CallModel) == []


def test_a_cancelled_run_goes_nowhere_but_to_its_end() -> None:
    run = Run(manifest_of(graph=with_exit("cancelled", Node("farewell", NodeKind.MODEL, visits_max=3))))
    run.take(arrivals.CancelRequested("ada"))
    assert run.state.end.ending is Ending.USER_CANCEL


def test_a_node_that_still_waits_for_something_is_left_only_for_good() -> None:
    run = Run(manifest_of(graph=with_exit("escalated", Node("farewell", NodeKind.MODEL, visits_max=3))))
    denied = [wants("secret", n, call_id=f"call{n}") for n in range(3)]
    run.proposes(wants("look"), *denied)
    assert run.state.end.ending is Ending.PERMISSION_DENIED
    assert run.state.commands.open == {}


def test_a_paused_run_keeps_where_it_would_have_gone() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    run.says("done")
    assert run.state.place.parked == rulings.OutcomeParked("answered")
    assert run.path() == ["prepare", "think"]


def test_an_outcome_that_ends_the_run_is_not_replaced_by_a_later_one_during_a_pause() -> None:
    fan = Node("fan", NodeKind.MAP, prompt="look", children=2, lease=(("tool_calls", 1),), visits_max=1)
    run = Run(manifest_of(graph=in_line(fan)))
    run.take(arrivals.PauseRequested("ada"))
    run.heard_from_child(spent=((int(Dimension.TOOL_CALLS), 3),))
    run.heard_from_child()
    run.take(arrivals.ResumeRequested("ada"))
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED


@pytest.mark.req("0.15")
def test_a_success_that_was_not_earned_never_shows_as_complete() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.rejects()
    run.says("paid")
    nodes = {node.name: node.lifecycle for node in graph_of_run(run.state).nodes}
    stations = [LifecycleState.INIT, *(nodes[name] for name in run.path())]
    moves = [(before, after) for before, after in pairwise(stations) if before is not after]
    assert all(after in LIFECYCLE_TRANSITIONS[before] for before, after in moves)
    assert LifecycleState.COMPLETE not in stations


def test_what_a_turn_ordered_before_it_ended_the_run_is_taken_back() -> None:
    run = Run()
    denied = [wants("secret", n, call_id=f"call{n}") for n in range(3)]
    run.proposes(wants("look"), wants("pay"), *denied)
    assert run.state.end.ending is Ending.PERMISSION_DENIED
    assert run.all(AskHuman) == []
    assert run.all(CallTool) == []


def test_a_map_that_cannot_start_all_its_children_starts_none() -> None:
    fan = Node("fan", NodeKind.MAP, prompt="look", children=3, lease=(("tool_calls", 2),), visits_max=1)
    wrap_up = Node("wrap_up", NodeKind.HUMAN, prompt="What now?", visits_max=1)
    exits = (*EXITS[:3], ("exhausted", "wrap_up"))
    edges = (Edge("fan", "done"), Edge("wrap_up", "exhausted", "exhausted"), Edge("wrap_up", "exhausted"))
    graph = Graph("fan", "fan", (fan, wrap_up, *TERMINALS), edges, exits)
    run = Run(manifest_of(graph=graph, budget=Budget(tool_calls=5)))
    assert run.path() == ["fan", "wrap_up"]
    assert run.all(StartChild) == []


def test_a_started_run_is_told_of_its_deadline() -> None:
    run = Run()
    timer = run.open(SetTimer)[0]
    assert (timer.purpose, timer.due_at_ms) == (TimerPurpose.DEADLINE, BEGINS_AT_MS + 600_000)


def test_an_outcome_for_a_run_that_never_started_is_no_outcome() -> None:
    with pytest.raises(IllegalArrival) as refused:
        take_turn(RunState(), arrivals.ModelAnswered("0.1", "hello"), BEGINS_AT_MS)
    assert refused.value.fault is ArrivalFault.NOT_STARTED


def test_what_is_decided_is_what_the_turn_holds() -> None:
    run = Run()
    arrival = arrivals.ModelAnswered(run.open(CallModel)[0].id, "done", tokens_bound=20)
    assert decide(run.state, arrival, run.now_ms) == take_turn(run.state, arrival, run.now_ms).decisions
