"""Delegating: a tool whose call starts a run beneath the one that made it.

Rule 1: a delegate is no function. Its authorized call becomes a child run, which works with its parent's tools and model
        under its parent's boundary, has the permissions that are granted to it at most, and may spend the lease at most.
Rule 2: what a child says comes back as the result of the call and proves nothing; what it changes is its own effect.
"""

from collections.abc import Iterable, Mapping

from remit.core.failure import RequestRejected
from remit.core.limits.budget import LEASABLE, Budget
from remit.core.limits.tools import Effect, ToolDefinition, check_definition, tool_version
from remit.core.record import replace
from remit.core.run.manifest import Source
from remit.tool.declare.decorator import Tool
from remit.tool.declare.signature import read_signature

TOOL_DELEGATES = "TOOL_DELEGATES"


def delegate(
    name: str, *, description: str, lease: Mapping[str, int] | Budget, grants: Iterable[str] | None = None
) -> Tool:
    """A tool that hands a task to a child run. The lease is all the child may spend, by the counters of the budget.

    `grants` are the permissions of the run above that the child keeps; without them, all.
    """

    def hand_over(task: str) -> str:
        message = f"tool {name[:80]!r} starts a run beneath another; it is called by a model within a run, not by code"
        raise RequestRejected(TOOL_DELEGATES, message, {"tool": name[:80], "task": task[:80]})

    signature = read_signature(hand_over, name)
    definition = ToolDefinition(
        name=name,
        description=description,
        parameters=signature.parameters,
        effect=Effect.NONE,
        delegates=True,
        lease=_amounts(lease),
        grants=None if grants is None else tuple(grants),
    )
    check_definition(definition)
    return Tool(hand_over, replace(definition, version=tool_version(definition)), signature, Source(name))


def _amounts(lease: Mapping[str, int] | Budget) -> tuple[tuple[str, int], ...]:
    if not isinstance(lease, Budget):
        return tuple(lease.items())
    return tuple((counter, amount) for counter in LEASABLE if (amount := getattr(lease, counter)) is not None)
