"""Roles: what each is told, what it may not do, and what its work is called."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary, DecisionRight
from remit.core.limits.roles import ROLE_UNKNOWN, ROLES, instructed, narrowed_to, role_named
from remit.core.limits.tool_policy import StateWrite
from remit.core.run.lifecycle import AgentRole, LifecycleState, LoopState, default_loop_state
from remit.core.run.messages import Message, Role, user_message

REACHES = [AgentRole]


@pytest.mark.req("3.16")
def test_every_role_has_a_row_and_all_but_the_general_one_are_told_something() -> None:
    assert set(ROLES) == set(AgentRole)
    assert [role for role in AgentRole if not ROLES[role].instructions] == [AgentRole.GENERAL]


@pytest.mark.parametrize("role", AgentRole)
def test_a_role_only_narrows(role: AgentRole) -> None:
    given = Boundary(writes=(StateWrite.FILES,), decisions=(DecisionRight.CHOOSE_TOOLS, DecisionRight.DELEGATE))
    narrowed = narrowed_to(role, given)
    assert set(narrowed.writes or ()) <= set(given.writes or ())
    assert set(narrowed.decisions or ()) <= set(given.decisions or ())
    wide = narrowed_to(role, Boundary())
    assert (wide.writes == ()) is ROLES[role].is_reading
    assert wide.decisions is None or set(wide.decisions) == set(DecisionRight) - set(ROLES[role].lacks)


def test_a_role_stands_before_the_instructions_of_the_caller() -> None:
    asked = user_message("go")
    assert instructed(AgentRole.GENERAL, (asked,)) == (asked,)
    told, last = instructed(AgentRole.REVIEWER, (asked,))
    assert (told.role, last) == (Role.SYSTEM, asked)
    both = instructed(AgentRole.REVIEWER, (Message(Role.SYSTEM, "Be brief."), asked))
    assert both[0].content == f"{ROLES[AgentRole.REVIEWER].instructions}\n\nBe brief."
    assert len(both) == 2


@pytest.mark.parametrize("said", ["pilot", "", "Architect", 7, None])
def test_an_unknown_role_is_refused_and_the_six_are_named(said: object) -> None:
    with pytest.raises(RequestRejected) as raised:
        role_named(said)
    assert raised.value.code == ROLE_UNKNOWN
    assert all(role.value in raised.value.message for role in AgentRole)


def test_a_role_is_found_by_its_name() -> None:
    assert [role_named(role.value) for role in AgentRole] == list(AgentRole)


@pytest.mark.req("3.5")
@pytest.mark.parametrize(
    ("role", "plans", "works"),
    [
        (AgentRole.GENERAL, LoopState.PLANNING, LoopState.EXECUTING),
        (AgentRole.ARCHITECT, LoopState.ARCHITECTING, LoopState.ARCHITECTING),
        (AgentRole.EDITOR, LoopState.PLANNING, LoopState.EXECUTING),
        (AgentRole.QUALIFIER, LoopState.PLANNING, LoopState.EXPLORING),
        (AgentRole.DEVELOPER, LoopState.PLANNING, LoopState.EXECUTING),
        (AgentRole.REVIEWER, LoopState.PLANNING, LoopState.REVIEWING),
    ],
)
def test_the_work_of_a_role_has_a_name(role: AgentRole, plans: LoopState, works: LoopState) -> None:
    assert default_loop_state(LifecycleState.PLAN, role) is plans
    assert default_loop_state(LifecycleState.EXECUTE, role) is works
    assert default_loop_state(LifecycleState.PREPARE, role) is LoopState.EXPLORING
