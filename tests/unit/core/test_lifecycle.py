"""The two vocabularies of where a run stands."""

from itertools import product

import pytest

from remit.core.run.lifecycle import (
    LIFECYCLE_TRANSITIONS,
    AgentRole,
    LifecycleState,
    LoopState,
    Outcome,
    default_loop_state,
    is_loop_move,
)

REACHES = [AgentRole, LifecycleState, LoopState, Outcome]

INIT, PLAN, PREPARE, EXECUTE, VALIDATE, COMPLETE, ERROR, CANCELLED = LifecycleState
TERMINALS = {COMPLETE, ERROR, CANCELLED}


@pytest.mark.req("0.15")
def test_the_lifecycle_has_eight_states_and_each_has_its_row() -> None:
    assert [state.value for state in LifecycleState] == [
        "INIT",
        "PLAN",
        "PREPARE",
        "EXECUTE",
        "VALIDATE",
        "COMPLETE",
        "ERROR",
        "CANCELLED",
    ]
    assert set(LIFECYCLE_TRANSITIONS) == set(LifecycleState)


@pytest.mark.req("0.15", "0.16")
def test_the_moves_of_the_lifecycle_are_exactly_those_of_the_contract() -> None:
    forward = {(INIT, PLAN), (INIT, PREPARE), (PLAN, PREPARE), (PREPARE, EXECUTE), (EXECUTE, VALIDATE)}
    judged = {(VALIDATE, COMPLETE), (VALIDATE, EXECUTE)}
    broken_off = set(product(set(LifecycleState) - TERMINALS, (ERROR, CANCELLED)))
    legal = {
        (before, after)
        for before in LifecycleState
        for after in LifecycleState
        if after in LIFECYCLE_TRANSITIONS[before]
    }
    assert legal == forward | judged | broken_off


@pytest.mark.req("0.15")
def test_no_lifecycle_leaves_a_terminal_state() -> None:
    assert {state for state in LifecycleState if state.is_terminal} == TERMINALS
    assert all(LIFECYCLE_TRANSITIONS[state] == frozenset() for state in TERMINALS)


@pytest.mark.req("3.5")
def test_a_loop_has_ten_states_of_which_three_are_terminal() -> None:
    assert len(LoopState) == 10
    assert {state for state in LoopState if state.is_terminal} == {
        LoopState.COMPLETE,
        LoopState.FAILED,
        LoopState.CANCELLED,
    }


@pytest.mark.req("3.5")
def test_a_loop_moves_forward_and_backward_until_it_is_over() -> None:
    assert is_loop_move(LoopState.EXPLORING, LoopState.EXECUTING)
    assert is_loop_move(LoopState.REVIEWING, LoopState.EXPLORING)
    assert not is_loop_move(LoopState.EXECUTING, LoopState.EXECUTING)
    over = [state for state in LoopState if state.is_terminal]
    assert not any(is_loop_move(before, after) for before, after in product(over, LoopState))


@pytest.mark.req("3.5")
def test_only_waiting_lies_over_another_state() -> None:
    assert {state for state in LoopState if state.is_overlay} == {LoopState.PAUSED, LoopState.AWAITING_APPROVAL}


def test_every_lifecycle_has_a_loop_state_for_every_role_and_never_an_overlay() -> None:
    states = {default_loop_state(lifecycle, role) for lifecycle, role in product(LifecycleState, AgentRole)}
    assert states == {state for state in LoopState if not state.is_overlay}


@pytest.mark.parametrize(
    ("lifecycle", "expected"),
    [
        (INIT, LoopState.EXPLORING),
        (PREPARE, LoopState.EXPLORING),
        (PLAN, LoopState.PLANNING),
        (EXECUTE, LoopState.EXECUTING),
        (VALIDATE, LoopState.REVIEWING),
        (COMPLETE, LoopState.COMPLETE),
        (ERROR, LoopState.FAILED),
        (CANCELLED, LoopState.CANCELLED),
    ],
)
def test_a_node_without_a_loop_state_takes_that_of_its_lifecycle(
    lifecycle: LifecycleState, expected: LoopState
) -> None:
    assert default_loop_state(lifecycle) is expected


def test_only_the_architect_plans_by_architecting() -> None:
    planning = {role: default_loop_state(PLAN, role) for role in AgentRole}
    assert planning.pop(AgentRole.ARCHITECT) is LoopState.ARCHITECTING
    assert set(planning.values()) == {LoopState.PLANNING}


@pytest.mark.req("3.5")
def test_a_terminal_lifecycle_has_a_terminal_loop_state_and_no_other_has() -> None:
    assert all(default_loop_state(state).is_terminal is state.is_terminal for state in LifecycleState)


@pytest.mark.req("3.16")
def test_there_are_six_roles_with_the_names_of_the_wire() -> None:
    assert {role.value for role in AgentRole} == {
        "architect",
        "editor",
        "general",
        "qualifier",
        "developer",
        "reviewer",
    }


def test_a_run_that_is_over_counts_as_success_failed_or_cancelled() -> None:
    assert [outcome.value for outcome in Outcome] == ["success", "failed", "cancelled"]
