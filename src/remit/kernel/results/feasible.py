"""What cannot be done at all: a required action whose tool the run lacks, may not call, or has lost for good.

Rule 1: what the manifest alone rules out ends the run before a model is paid.
Rule 2: a tool that turned out to be unavailable, and one whose call a person turned away, is not asked for again.
Rule 3: a boundary that only audits rules nothing out, but for what the budget forbids.
Rule 4: a request that names a tool which the boundary does not allow is turned away.
Rule 5: what a person may let pass is possible as long as a person may be asked.
"""

from collections.abc import Iterator

from remit.core.failure import ErrorCode, Refusal, RequestRejected
from remit.core.limits.boundary import At, BoundaryMode, Then
from remit.core.limits.budget import FIELDS, Dimension
from remit.core.limits.tools import TOOLS_DISALLOWED, ToolChoiceMode, ToolDefinition
from remit.core.run.manifest import Manifest
from remit.core.work.goal import Goal
from remit.kernel.authority.authorize import (
    STANDING,
    is_offered,
    is_within_boundary,
    is_within_depth,
    is_within_scopes,
)
from remit.kernel.authority.boundary_checks import needs_a_person
from remit.kernel.authority.conditions import holds_always
from remit.kernel.authority.verdict import Judgement
from remit.kernel.budget.spend import tool_charges
from remit.kernel.results.proven_effects import times_committed
from remit.kernel.tally import Tally


def impossible_from_the_start(manifest: Manifest) -> str:
    """Why the run cannot come to its goal, whatever its model does; empty where nothing rules it out."""
    return next(_ruled_out(manifest), "")


def _ruled_out(manifest: Manifest) -> Iterator[str]:
    for action in manifest.goal.required_actions if manifest.goal is not None else ():
        if action.times_min > 0 and (why := why_never(action.tool, manifest)):
            yield f"required action {action.tool} cannot be done: {why}"
    choice = manifest.request.tool_choice
    if choice.mode is ToolChoiceMode.FUNCTION and (why := why_never(choice.function_name, manifest)):
        yield f"tool_choice demands a call of {choice.function_name}, which cannot be made: {why}"
    if choice.mode is ToolChoiceMode.REQUIRED and all(why_never(tool.name, manifest) for tool in manifest.tools):
        yield "tool_choice demands a call of a tool, and there is none that may be called"


def why_never(name: str, manifest: Manifest) -> str:
    """Why no call of a tool can ever be made in this run; empty where one may be."""
    tool = next((tool for tool in manifest.tools if tool.name == name), None)
    if tool is None:
        return f"no tool named {name[:100]!r} is registered for this run"
    if why := why_disallowed(tool, manifest):
        return why
    for check in (is_offered, is_within_scopes, is_within_depth):
        verdict = STANDING[check](tool, manifest)
        if verdict.judgement is Judgement.REFUSE:
            return verdict.reason
    return _refused_always(tool, manifest) or _forbidden(tool, manifest) or _unapproved(tool, manifest)


def why_disallowed(tool: ToolDefinition, manifest: Manifest) -> str:
    """Why the boundary, as the role narrows it, allows no call of a tool; empty where it does, or only audits."""
    boundary = manifest.boundary
    if boundary.mode is BoundaryMode.AUDIT:
        return ""
    verdict = STANDING[is_within_boundary](tool, manifest)
    if verdict.judgement is Judgement.REFUSE:
        return verdict.reason
    lacked = [permission for permission in tool.permissions if permission not in boundary.permissions]
    return f"tool {tool.name} needs permission {lacked[0]}, which {boundary.name} lacks" if lacked else ""


def check_named(manifest: Manifest) -> None:
    """Refuse a request that names a tool which its boundary does not allow."""
    request, tools = manifest.request, {tool.name: tool for tool in manifest.tools}
    named = dict.fromkeys([*request.tools, request.tool_choice.function_name])
    reasons = {name: why_disallowed(tools[name], manifest) for name in named if name in tools}
    if refused := {name: why for name, why in reasons.items() if why}:
        message = f"disallowed tools: {', '.join(refused)} ({'; '.join(refused.values())})"
        raise RequestRejected(TOOLS_DISALLOWED, message, {"disallowed": list(refused)})


def _refused_always(tool: ToolDefinition, manifest: Manifest) -> str:
    """Which condition refuses every call of a tool, or stops the run at any; empty where none does."""
    if manifest.boundary.mode is BoundaryMode.AUDIT:
        return ""
    for condition in manifest.boundary.conditions:
        if (
            condition.then is not Then.ASK
            and condition.at is At.CALL
            and holds_always(condition, tool, manifest.boundary)
        ):
            said = f"condition {condition.name}" + (f": {condition.message}" if condition.message else "")
            return f"{said} ({condition.then}s every call of it)"
    return ""


def _forbidden(tool: ToolDefinition, manifest: Manifest) -> str:
    """Which cap of 0 forbids every call of a tool, where no person can lift it. One above 0 is foreseen elsewhere."""
    caps = manifest.caps
    is_lifting = caps[Dimension.HUMAN_REVIEWS] > 0 or manifest.boundary.mode is BoundaryMode.AUDIT
    for dimension, _ in tool_charges(tool):
        if caps[dimension] == 0 and not (dimension == Dimension.SIDE_EFFECTS and is_lifting):
            return f"{FIELDS[dimension]}_max=0 forbids it"
    return ""


def _unapproved(tool: ToolDefinition, manifest: Manifest) -> str:
    """Why every call of a tool needs a person where none may be asked; empty where one may, or none is needed."""
    if manifest.caps[Dimension.HUMAN_REVIEWS] > 0:
        return ""
    why = "it asks a person" if tool.asks_under is not None else ""
    if not why and manifest.boundary.mode is not BoundaryMode.AUDIT:
        why = needs_a_person(tool, manifest.boundary)
    return f"{why}, and human_reviews_max=0 lets nobody be asked" if why else ""


def given_up(tally: Tally, goal: Goal) -> str:
    """Why a required action that is still missing will not be done any more; empty where it may yet be."""
    for action in goal.required_actions:
        if times_committed(tally, action.tool) < action.times_min and (why := _why_lost(tally, action.tool)):
            return f"required action {action.tool} cannot be done: {why}"
    return ""


def _why_lost(tally: Tally, tool: str) -> str:
    refused = [
        trace.reason
        for trace in tally.state.calls.refused
        if trace.tool == tool and trace.code == Refusal.APPROVAL_REJECTED
    ]
    if refused:
        return f"a person turned it away ({refused[-1]})"
    codes = [trace.code for trace in tally.state.calls.made.values() if trace.tool == tool]
    if codes and codes[-1] == ErrorCode.TOOL_UNAVAILABLE:
        return "the tool is unavailable"
    return ""
