"""The loop states of a run, as its turns tell them."""

import pytest

from remit.core.journal import arrivals
from remit.core.record import replace
from remit.core.run.lifecycle import AgentRole, LifecycleState, LoopState
from remit.core.work.graph import Node, NodeKind
from remit.kernel.state import label_of, loop_state, pinned
from remit.observe.reading import Reading
from remit.observe.views.loop_states import loop_states
from tests.unit.kernel.builders import Run, manifest_of, wants


def went(run: Run) -> tuple[LoopState, ...]:
    reading = Reading()
    return loop_states(pinned(run.state), [fact for turn in run.turns for fact in reading.take(turn)])


@pytest.mark.req("3.5")
def test_overlays_lie_over_a_state_that_returns() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.ResumeRequested("ada"))
    run.proposes(wants("write"))
    assert went(run) == (
        LoopState.EXPLORING,
        LoopState.EXECUTING,
        LoopState.PAUSED,
        LoopState.EXECUTING,
        LoopState.AWAITING_APPROVAL,
    )
    assert went(run)[-1] is loop_state(run.state)


def test_the_role_of_a_run_names_its_work() -> None:
    run = Run(replace(manifest_of(), role=AgentRole.ARCHITECT))
    assert loop_state(run.state) is LoopState.ARCHITECTING
    assert went(run)[-1] is LoopState.ARCHITECTING


def test_what_a_graph_says_of_a_node_stands_whatever_the_role() -> None:
    said = Node("look", NodeKind.MODEL, lifecycle=LifecycleState.EXECUTE, loop_state=LoopState.PLANNING)
    assert {label_of(role, said) for role in AgentRole} == {LoopState.PLANNING}
