"""What a boundary says of a call beyond which tools there are: rights, state, conditions, rates, and the least tool.

Rule 1: each check looks at one dimension of the boundary and says why it objects.
Rule 2: a check that needs only the tool and the manifest takes only these, so that it is made once a run and not every call.
Rule 3: a condition that stops, and one that refuses, may not be overruled by a person; one that asks may.
Rule 4: a call of a tool that declares `destructive` always asks a person, whatever the boundary says.
"""

from remit.core.failure import Refusal, RequestRejected
from remit.core.journal.proposed_call import OVER_RATE, ProposedCall
from remit.core.journal.rulings import CallNoted
from remit.core.limits.boundary import (
    At,
    Boundary,
    BoundaryMode,
    Condition,
    DecisionRight,
    Demanding,
    Rate,
    Then,
    Unverified,
    Whose,
)
from remit.core.limits.tool_policy import asks_by_category, gaps_of, state_written
from remit.core.limits.tool_trust import READS_RANK
from remit.core.limits.tools import MUTATING, ToolChoiceMode, ToolDefinition
from remit.core.limits.verification import is_unverified
from remit.core.run.manifest import Manifest, permissions_of
from remit.kernel.authority.conditions import objecting, persons_told
from remit.kernel.authority.verdict import ALLOWED, Judgement, Verdict, ask_person, refuse
from remit.kernel.tally import Tally

_FIRM, _ASKING = (Then.REFUSE, Then.STOP), (Then.ASK,)
TOOL_UNCHECKED = "TOOL_UNCHECKED"
# Stands for every tool in a rate.
ANY_TOOL = "*"


def model_may_decide(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    """The model holds the right to decide what this call decides."""
    boundary = manifest.boundary
    if boundary.decisions is None:
        return ALLOWED
    needed = [DecisionRight.CHOOSE_TOOLS]
    if tool.delegates:
        needed.append(DecisionRight.DELEGATE)
    if tool.asks_under is not None:
        needed = [DecisionRight.ASK_PEOPLE]
    for right in needed:
        if right not in boundary.decisions:
            reason = f"{tool.name} takes the right to {right}, which boundary {boundary.name} does not grant"
            return refuse(Refusal.PERMISSION_DENIED, reason)
    return ALLOWED


def may_write(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    """The boundary lets a run write to the kind of state that the tool writes to."""
    boundary, written = manifest.boundary, state_written(tool)
    if boundary.writes is None or written is None or written in boundary.writes:
        return ALLOWED
    allowed = ", ".join(boundary.writes) or "nothing"
    reason = f"{tool.name} writes {written}, and boundary {boundary.name} lets a run write {allowed}"
    return refuse(Refusal.PERMISSION_DENIED, reason)


def is_checkable(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    """The tool declares what the boundary wants to check its calls by: a verification, and what its category demands."""
    boundary = manifest.boundary
    if boundary.unverified is Unverified.REFUSE and is_unverified(tool):
        reason = (
            f"nothing verifies what {tool.name} did, and boundary {boundary.name} has unverified=refuse; declare `verify`"
            f", or a result type that an error message does not fit"
        )
        return refuse(Refusal.PERMISSION_DENIED, reason)
    if boundary.demands is Demanding.ENFORCE and (gaps := gaps_of(tool)):
        reason = (
            f"{tool.name} lacks {', '.join(gaps)}, which its category {tool.category} demands and boundary "
            f"{boundary.name} enforces; declare it"
        )
        return refuse(Refusal.PERMISSION_DENIED, reason)
    return ALLOWED


def check_tools(manifest: Manifest) -> None:
    """Refuse a run that is offered a tool of which its boundary could check nothing, unless that only audits."""
    boundary, request = manifest.boundary, manifest.request
    if boundary.mode is BoundaryMode.AUDIT or request.tool_choice.mode is ToolChoiceMode.NONE:
        return
    offered = [tool for tool in manifest.tools if not request.tools or tool.name in request.tools]
    usable = [tool for tool in offered if boundary.allowed_tools is None or tool.name in boundary.allowed_tools]
    verdicts = {tool.name: is_checkable(tool, manifest) for tool in usable}
    refused = {name: verdict.reason for name, verdict in verdicts.items() if verdict is not ALLOWED}
    if refused:
        raise RequestRejected(TOOL_UNCHECKED, "; ".join(refused.values()), {"tools": list(refused)})


def keeps_conditions(call: ProposedCall, tally: Tally) -> Verdict:
    """No condition holds that refuses the call or stops the run."""
    for condition, is_decided in objecting(call, tally.state.derived.tools[call.tool], tally, _FIRM):
        code = Refusal.UNSAFE if condition.then is Then.STOP else Refusal.CONDITION_HELD
        return refuse(code, _why_of_call(condition, call, tally, is_decided=is_decided))
    return ALLOWED


def conditions_ask(call: ProposedCall, tally: Tally) -> Verdict:
    """No condition holds that leaves the call to a person."""
    for condition, is_decided in objecting(call, tally.state.derived.tools[call.tool], tally, _ASKING):
        return ask_person(_why_of_call(condition, call, tally, is_decided=is_decided))
    return ALLOWED


def condition_stop(tally: Tally, tool: ToolDefinition, at: At) -> str:
    """Why a condition stops the run at an observation of this tool, or at the answer; empty when none does."""
    if not any(condition.at is at for condition in tally.manifest.boundary.conditions):
        return ""
    call = ProposedCall("", tool.name, "", b"")
    for condition, is_decided in objecting(call, tool, tally, (Then.STOP,), at):
        if tally.manifest.boundary.mode is BoundaryMode.AUDIT:
            tally.rule(
                CallNoted(
                    call_id="",
                    tool=tool.name,
                    judgement=Judgement.REFUSE,
                    code=Refusal.UNSAFE,
                    reason=_why_of(condition, is_decided),
                )
            )
            continue
        return _why_of(condition, is_decided)
    return ""


def _why_of_call(condition: Condition, call: ProposedCall, tally: Tally, *, is_decided: bool) -> str:
    people = persons_told(condition, call, tally.state.derived.tools[call.tool], tally)
    why = _why(condition.name, condition.message, is_decided=is_decided)
    return f"{why} ({people})" if people else why


def _why_of(condition: Condition, is_decided: bool) -> str:  # noqa: FBT001
    return _why(condition.name, condition.message, is_decided=is_decided)


def check_tool_conditions(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    """What the conditions say of every call of a tool: nothing where there are none."""
    return ask_person("conditions look at every call") if manifest.boundary.conditions else ALLOWED


def _why(name: str, message: str, *, is_decided: bool) -> str:
    said = f"condition {name}" + (f": {message}" if message else "")
    return said if is_decided else f"{said} (it could not be decided, which counts as if it held)"


def rates_of(tool: ToolDefinition, boundary: Boundary) -> tuple[Rate, ...]:
    """The rates that calls of a tool must keep: its own, and those of the boundary for it or for any tool."""
    own = (Rate(tool.name, tool.rate_max, tool.rate_per_ms),) if tool.rate_max else ()
    return (*own, *(rate for rate in boundary.rates if rate.tool in (tool.name, ANY_TOOL)))


def keeps_rate(call: ProposedCall, tally: Tally) -> Verdict:
    """The tool was not called too often within the time that its rates name, by this run or by all runs of its user."""
    if call.filtered.startswith(OVER_RATE):
        return refuse(Refusal.RATE_LIMITED, call.filtered)
    for rate in rates_of(tally.state.derived.tools[call.tool], tally.manifest.boundary):
        if rate.whose is Whose.USER:
            continue  # The shell, which knows the other runs of the user, has looked.
        since = tally.at_ms - rate.per_ms
        moments = [at_ms for at_ms in tally.state.calls.called_at.get(rate.tool, ()) if at_ms > since]
        now = sum(rate.tool in (tool, ANY_TOOL) for tool, _ in tally.repeats)
        if len(moments) + now >= rate.times_max:
            wait_ms = moments[0] + rate.per_ms - tally.at_ms if moments else rate.per_ms
            of = "all tools" if rate.tool == ANY_TOOL else rate.tool
            reason = f"{of}: {rate.times_max} calls within {rate.per_ms} ms are allowed; again in {wait_ms} ms"
            return refuse(Refusal.RATE_LIMITED, reason)
    return ALLOWED


def check_tool_rates(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    """What rates say of every call of a tool: nothing where it has none."""
    return ask_person("rates look at every call") if rates_of(tool, manifest.boundary) else ALLOWED


def is_the_least_tool(call: ProposedCall, tally: Tally) -> Verdict:
    """No cheaper tool was declared as an alternative that the run may call and has not tried."""
    state, tool = tally.state, tally.state.derived.tools[call.tool]
    other = state.derived.tools.get(tool.alternative)
    if other is None or _is_tried(tally, other.name) or not _is_open_to(tally.manifest, other):
        return ALLOWED
    return refuse(Refusal.LEAST_TOOL, f"try {other.name} first: {tool.name} is for what it cannot do")


def check_tool_alternative(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    """What the rule of the least tool says of every call of a tool: nothing where it names no alternative."""
    return ask_person("an alternative may come first") if tool.alternative else ALLOWED


def _is_tried(tally: Tally, tool: str) -> bool:
    """Whether a tool was called in this run, or was proposed and refused: that was an attempt, too."""
    return tool in tally.state.calls.tried or any(name == tool for name, _ in tally.repeats)


def _is_open_to(manifest: Manifest, tool: ToolDefinition) -> bool:
    """Whether the run may call a tool at all."""
    boundary, request = manifest.boundary, manifest.request
    is_allowed = boundary.allowed_tools is None or tool.name in boundary.allowed_tools
    is_offered = not request.tools or tool.name in request.tools
    is_permitted = set(tool.permissions) <= set(permissions_of(manifest))
    is_granted = model_may_decide(tool, manifest) is ALLOWED and may_write(tool, manifest) is ALLOWED
    return is_allowed and is_offered and is_permitted and is_granted


def needs_a_person(tool: ToolDefinition, boundary: Boundary) -> str:
    """Why the boundary leaves calls of a tool to a person, whatever their arguments; empty when it does not."""
    if tool.category in boundary.four_eyes and tool.effect in MUTATING:
        return f"boundary {boundary.name} wants two people to approve what {tool.category} tools do"
    if tool.destructive:
        # Not for a boundary to waive: what was destroyed cannot be had back by finding out that its values were bound.
        return f"{tool.name} declares that it destroys, and that always needs a person"
    if tool.effect in boundary.approval_effects:
        return f"boundary {boundary.name} demands approval of {tool.effect} effects"
    if tool.category in boundary.approval_categories and asks_by_category(tool):
        return f"what {tool.category} tools do is for a person to approve"
    if READS_RANK[tool.trust.reads] > READS_RANK[boundary.reads_max] and tool.effect not in MUTATING:
        return f"{tool.name} reads what is {tool.trust.reads}; boundary {boundary.name} lets a run read {boundary.reads_max}"
    return ""
