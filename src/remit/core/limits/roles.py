"""Roles: what an agent is told, what it may change, and what its work is called, by what it is there for.

Rule 1: a role only narrows. It takes rights from the boundary that the caller gives and never adds any.
Rule 2: the general role says nothing, narrows nothing and changes no word: a run without a role is a run of it.
Rule 3: what a role tells the model stands before the caller's own instructions, which may say more.
"""

from collections.abc import Mapping
from types import MappingProxyType

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary, DecisionRight
from remit.core.record import Record, replace
from remit.core.run.lifecycle import AgentRole
from remit.core.run.messages import Message, Role

ROLE_UNKNOWN = "ROLE_UNKNOWN"


class RoleTraits(Record):
    """What a role brings: its instructions, whether it may change anything, and which decisions it may not take."""

    instructions: str = ""
    is_reading: bool = False
    lacks: tuple[DecisionRight, ...] = ()


_DELEGATE = (DecisionRight.DELEGATE,)

ROLES: Mapping[AgentRole, RoleTraits] = MappingProxyType(
    {
        AgentRole.GENERAL: RoleTraits(),
        AgentRole.ARCHITECT: RoleTraits(
            "You are the architect. Understand the task, look at what there is, weigh the ways to do it, and write down the "
            "design and the steps that somebody else will carry out. You change nothing yourself.",
            is_reading=True,
        ),
        AgentRole.EDITOR: RoleTraits(
            "You are the editor. Carry out the plan that you are given, step by step and no further. Where it does not fit "
            "what you find, say so and stop.",
            lacks=(DecisionRight.DELEGATE, DecisionRight.MAKE_PLANS),
        ),
        AgentRole.QUALIFIER: RoleTraits(
            "You are the qualifier. Find out whether the task is clear, allowed and possible with what there is, and what is "
            "missing. You do not carry it out and change nothing.",
            is_reading=True,
            lacks=_DELEGATE,
        ),
        AgentRole.DEVELOPER: RoleTraits(
            "You are the developer. Do the task with the tools that you have, check what you did, and say what you could not do."
        ),
        AgentRole.REVIEWER: RoleTraits(
            "You are the reviewer. Look at the work that you are given, name what is wrong with it and where, and say whether "
            "it may stand. You change nothing.",
            is_reading=True,
            lacks=_DELEGATE,
        ),
    }
)


def role_named(said: object) -> AgentRole:
    """The role with this name; raises ROLE_UNKNOWN, which names all six."""
    if isinstance(said, str) and said in set(AgentRole):
        return AgentRole(said)
    known = ", ".join(AgentRole)
    raise RequestRejected(
        ROLE_UNKNOWN, f"role={clipped(said)} is unknown; use one of {known}", {"known": list(AgentRole)}
    )


def narrowed_to(role: AgentRole, boundary: Boundary) -> Boundary:
    """The boundary as far as a role has it."""
    traits = ROLES[role]
    if traits.is_reading:
        boundary = replace(boundary, writes=())
    if traits.lacks:
        held = tuple(DecisionRight) if boundary.decisions is None else boundary.decisions
        boundary = replace(boundary, decisions=tuple(right for right in held if right not in traits.lacks))
    return boundary


def instructed(role: AgentRole, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages with what the role is told in front of the caller's own instructions."""
    told = ROLES[role].instructions
    if not told:
        return messages
    first = messages[0]
    if first.role is Role.SYSTEM and isinstance(first.content, str):
        return (replace(first, content=f"{told}\n\n{first.content}"), *messages[1:])
    return (Message(Role.SYSTEM, told), *messages)
