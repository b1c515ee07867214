"""Reading a state: where the run stands, what it waits for, what may be repeated."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.commands import CallModel, CallTool, SetTimer
from remit.core.run.lifecycle import LifecycleState, LoopState
from remit.core.schema.json_schema import Violation
from remit.core.work.graph import Node, NodeKind
from remit.kernel.state import (
    RunState,
    graph_of_run,
    inquiries,
    is_safe_to_repeat,
    lifecycle,
    loop_state,
    loop_state_under,
    pinned,
    questions,
    standing_at,
    waiting_for,
)
from remit.orchestrate.patterns.chat_graph import chat_graph
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants


def test_a_run_that_has_not_started_has_no_manifest_and_no_graph() -> None:
    with pytest.raises(AssertionError, match="pins the manifest"):
        pinned(RunState())
    with pytest.raises(AssertionError, match="pins the graph"):
        graph_of_run(RunState())


@pytest.mark.req("0.15")
def test_a_run_that_stands_nowhere_yet_is_in_init() -> None:
    assert lifecycle(RunState()) is LifecycleState.INIT
    assert loop_state(RunState()) is LoopState.EXPLORING


@pytest.mark.req("0.15", "3.5")
@pytest.mark.parametrize(
    ("node", "station", "state"),
    [
        ("prepare", LifecycleState.PREPARE, LoopState.EXPLORING),
        ("think", LifecycleState.EXECUTE, LoopState.EXECUTING),
        ("act", LifecycleState.EXECUTE, LoopState.EXECUTING),
        ("check", LifecycleState.VALIDATE, LoopState.REVIEWING),
    ],
)
def test_a_run_shows_the_labels_of_the_node_it_stands_at(node: str, station: LifecycleState, state: LoopState) -> None:
    run = Run()
    run.state.place.node = graph_of_run(run.state).index[node]
    assert (lifecycle(run.state), loop_state(run.state), standing_at(run.state).name) == (station, state, node)


@pytest.mark.req("0.15", "3.5")
@pytest.mark.parametrize(
    ("arrival", "station", "state"),
    [
        (arrivals.ModelAnswered("0.4", "done"), LifecycleState.COMPLETE, LoopState.COMPLETE),
        (arrivals.CancelRequested("ada"), LifecycleState.CANCELLED, LoopState.CANCELLED),
        (
            arrivals.ModelFailed("0.4", ErrorCode.INFERENCE_CONTEXT_EXCEEDED),
            LifecycleState.ERROR,
            LoopState.FAILED,
        ),
    ],
)
def test_an_ended_run_shows_the_labels_of_its_ending(
    arrival: arrivals.Arrival, station: LifecycleState, state: LoopState
) -> None:
    run = Run()
    run.take(arrival)
    assert (lifecycle(run.state), loop_state(run.state)) == (station, state)


@pytest.mark.req("3.5")
def test_a_pause_lies_over_the_state_beneath() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    assert (loop_state(run.state), loop_state_under(run.state)) == (LoopState.PAUSED, LoopState.EXECUTING)
    assert lifecycle(run.state) is LifecycleState.EXECUTE


@pytest.mark.req("3.5")
def test_a_run_that_waits_for_a_decision_awaits_approval() -> None:
    run = Run()
    run.proposes(wants("write"))
    assert (loop_state(run.state), loop_state_under(run.state)) == (LoopState.AWAITING_APPROVAL, LoopState.EXECUTING)


@pytest.mark.req("3.5")
def test_a_run_that_waits_for_knowledge_is_paused() -> None:
    run = Run(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt="Which city?"))))
    assert loop_state(run.state) is LoopState.PAUSED


@pytest.mark.req("3.5")
def test_a_loop_may_go_back_from_reviewing_to_executing() -> None:
    run = Run(manifest_of(graph=chat_graph(repairs_max=1)))
    run.says("{}", violations=(Violation("/n", "type", "is not a number"),))
    assert run.path()[-2:] == ["check", "think"]
    assert loop_state(run.state) is LoopState.EXECUTING


def test_a_run_waits_for_the_oldest_question() -> None:
    run = Run()
    assert waiting_for(run.state) is None
    run.proposes(wants("write"), wants("pay"))
    assert waiting_for(run.state) is Ending.CONFIRM_REQUIRED
    assert [question.id for question in questions(run.state)] == ["1.2", "1.4"]


def test_an_ended_run_waits_for_nobody() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.take(arrivals.CancelRequested("ada"))
    assert waiting_for(run.state) is None


def test_who_is_asked_about_a_call_in_doubt_can_be_found() -> None:
    run = Run()
    run.proposes(wants("pay"), wants("write"))
    run.approves()
    run.approves()
    pay, write = run.open(CallTool)
    run.take(arrivals.ToolOutcomeLost(pay.id))
    run.take(arrivals.ToolOutcomeLost(write.id))
    assert [type(inquiry).__name__ for inquiry in inquiries(run.state, pay.id)] == ["ReconcileTool"]
    assert [type(inquiry).__name__ for inquiry in inquiries(run.state, write.id)] == ["AskHuman"]


@pytest.mark.parametrize(("tool", "is_safe"), [("look", True), ("put", True), ("write", False), ("pay", False)])
def test_only_a_change_that_is_not_idempotent_may_not_be_repeated_after_a_crash(tool: str, is_safe: bool) -> None:
    run = Run()
    run.proposes(wants(tool))
    if run.state.people.asking:
        run.approves()
    assert is_safe_to_repeat(run.state, run.open(CallTool)[0]) is is_safe


def test_what_is_no_tool_call_may_always_be_repeated() -> None:
    run = Run()
    assert [type(command) for command in run.state.commands.open.values()] == [SetTimer, CallModel]
    assert all(is_safe_to_repeat(run.state, command) for command in run.state.commands.open.values())


def test_a_call_in_doubt_waits_for_the_person_who_was_asked_about_it() -> None:
    run = Run()
    run.proposes(wants("put"))
    run.approves()
    run.fails("put", ErrorCode.TOOL_TIMEOUT)
    assert not is_safe_to_repeat(run.state, run.open(CallTool)[0])


def test_every_node_that_was_entered_is_a_step_and_the_terminal_is_none() -> None:
    run = Run()
    assert run.state.steps == len(run.path())
    run.says("done")
    assert run.state.steps == len(run.path()) - 1
