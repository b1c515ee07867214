"""What a run may call, with which permissions, and how much it may spend. Judged in the kernel.

Rule 1: a boundary is data, pinned in the manifest by its version; a request only ever narrows it.
Rule 2: what is not allowed is refused; a mutating effect needs a person unless the boundary says otherwise.
Rule 3: a child's boundary is its parent's or narrower.
"""

import msgspec

from remit.core.budget import Budget, assign, budget_of
from remit.core.failure import RequestRejected
from remit.core.record import Record
from remit.core.tools import Effect
from remit.core.versions import content_version

# A day: long enough for a person to come back to work, short enough that a forgotten question does not linger.
APPROVAL_WAIT_MS_MAX = 86_400_000

BOUNDARY_UNKNOWN = "BOUNDARY_UNKNOWN"
# Of a name that is none, as much is shown as names have, and some more.
_SHOWN_CHARS_MAX = 80


class Boundary(Record):
    """The lease of decision rights a run holds."""

    name: str = "standard"
    allowed_tools: tuple[str, ...] | None = None
    approval_effects: tuple[Effect, ...] = (Effect.WRITE, Effect.EXTERNAL)
    permissions: tuple[str, ...] = ()
    budget: Budget = Budget()
    approval_wait_ms_max: int = APPROVAL_WAIT_MS_MAX


def boundary_version(boundary: Boundary) -> str:
    """The content hash under which the manifest pins a boundary."""
    return content_version(boundary)


def narrow(parent: Boundary, *, tools: tuple[str, ...] | None, budget: Budget) -> Boundary:
    """The boundary of a child: no tool, permission or cap its parent lacks."""
    allowed = parent.allowed_tools
    if tools is not None:
        allowed = tools if allowed is None else tuple(name for name in tools if name in allowed)
    return Boundary(
        name=parent.name,
        allowed_tools=allowed,
        approval_effects=parent.approval_effects,
        permissions=parent.permissions,
        budget=budget_of(assign(parent.budget, budget)),
        approval_wait_ms_max=parent.approval_wait_ms_max,
    )


_RESEARCH = Budget(
    steps=15,
    tool_calls=30,
    external_api_calls=5,
    input_tokens=200_000,
    output_tokens=30_000,
    wall_clock_ms=300_000,
    inference_cost_microusd=2_000_000,
    retries=3,
    reflection_passes=1,
    context_tokens=100_000,
    memory_writes=2,
    side_effects=0,
)
_CODING = Budget(
    steps=30,
    tool_calls=50,
    external_api_calls=10,
    input_tokens=400_000,
    output_tokens=60_000,
    wall_clock_ms=600_000,
    inference_cost_microusd=5_000_000,
    retries=5,
    reflection_passes=2,
    context_tokens=200_000,
    memory_writes=5,
    side_effects=2,
)
_INCIDENT = Budget(
    steps=10,
    tool_calls=15,
    external_api_calls=2,
    input_tokens=100_000,
    output_tokens=15_000,
    wall_clock_ms=120_000,
    inference_cost_microusd=1_000_000,
    retries=2,
    reflection_passes=1,
    context_tokens=50_000,
    memory_writes=0,
    side_effects=0,
)
# Support and procurement take the research caps, with more live look-ups and nothing written or changed.
_SERVICE = msgspec.structs.replace(_RESEARCH, external_api_calls=10, memory_writes=0, side_effects=0)

STANDARD = Boundary()

PROFILES: dict[str, Boundary] = {
    profile.name: profile
    for profile in (
        Boundary(name="research_assistant", permissions=("sources.read", "documents.read"), budget=_RESEARCH),
        Boundary(
            name="coding_assistant",
            permissions=("workspace.read", "workspace.write", "sandbox.run"),
            budget=_CODING,
        ),
        Boundary(name="customer_support", permissions=("documents.read", "account.read"), budget=_SERVICE),
        Boundary(name="procurement", permissions=("vendors.read", "contracts.read"), budget=_SERVICE),
        Boundary(name="incident_sre", permissions=("logs.read", "metrics.read", "deploys.read"), budget=_INCIDENT),
    )
}


def boundary_named(name: str) -> Boundary:
    """The boundary of this name; raises RequestRejected when there is none."""
    known = {STANDARD.name: STANDARD, **PROFILES}
    if (found := known.get(name)) is None:
        shown = str(name)[:_SHOWN_CHARS_MAX]
        message = f"boundary {shown!r} is unknown; use one of {', '.join(known)}"
        raise RequestRejected(BOUNDARY_UNKNOWN, message, {"boundary": shown})
    return found
