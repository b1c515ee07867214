"""What a boundary amounts to: its dimensions in words, and what it does to each of a list of tools.

Rule 1: what is refused is what the kernel itself refuses, asked with a manifest like that of a run; nothing here judges anew.
Rule 2: a tool that passes may still be stopped by what only a call shows: conditions, rates, the budget that is left, and
        where its values come from.
Rule 3: what a tool leaves at its worst is said whether it passes or not.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from remit.core.durations import said_duration
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import (
    At,
    Boundary,
    BoundaryMode,
    Condition,
    Demanding,
    Then,
    Unverified,
    boundary_version,
)
from remit.core.limits.boundary_views import (
    BoundaryChecked,
    BoundaryLine,
    BoundaryShown,
    Stance,
    TierReport,
    ToolReport,
)
from remit.core.limits.budget import FIELDS, UNCHARGED, Dimension, assign, uncharged_in
from remit.core.limits.tier import TIERS
from remit.core.limits.tool_policy import POLICY, gaps_of, risk_of
from remit.core.limits.tools import Effect, ToolDefinition, may_change, may_leave_reading
from remit.core.limits.verification import is_unverified, verifier_of
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import user_message
from remit.core.work.graph import Graph
from remit.kernel.authority.authorize import STANDING, has_permission, is_within_boundary, is_within_depth
from remit.kernel.authority.call_flags import is_unreadable, people_arguments
from remit.kernel.authority.conditions import holds_always, parse_condition
from remit.kernel.authority.graph_tier import check_tier, tier_of
from remit.kernel.authority.policy import needs_a_person, rates_of
from remit.kernel.authority.verdict import ALLOWED
from remit.orchestrate.boundaries.boundary_file import boundary_said, boundary_yaml
from remit.orchestrate.boundaries.boundary_reach import idle_conditions
from remit.orchestrate.boundaries.boundary_values import ALL, said_cap, said_rate_line
from remit.orchestrate.boundaries.declaration_faults import faults_of
from remit.orchestrate.boundaries.tool_trials import kinds_of, patch_of, trials_of
from remit.orchestrate.facts.gate_facts import declared
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.provenance.declarations import declaration_of, worst_of
from remit.provenance.values.outward import CARRIED_CHARS_MAX, is_trusted

_SIDE_EFFECTS = int(Dimension.SIDE_EFFECTS)
# A manifest names a model and a request; what the tools may do depends on neither.
_ANYBODY, _ANYTHING = ModelInfo("any"), SystemRequest((user_message("-"),))

_UNVERIFIED = {
    Unverified.OBSERVE: "observe: a change that nothing verifies is kept as observed, and its run ends PARTIAL_SUCCESS",
    Unverified.REFUSE: "refuse: no run begins with a tool that changes something and that nothing verifies",
}
_DEMANDS = {
    Demanding.SHOW: "show: what a tool's category demands and it lacks is shown to those who check and approve",
    Demanding.ENFORCE: "enforce: no run begins with a tool that lacks what its category demands",
}
_UNREADABLE = (
    "it is taken for a test run whose outcome cannot be read, so that it counts as failed: declare `flags`, or a result "
    "with exit_code, failed or passed"
)
_DOES = {Then.ASK: "asks a person", Then.REFUSE: "refuses the call", Then.STOP: "stops the run"}


def boundary_findings(
    boundary: Boundary,
    tools: Sequence[ToolDefinition] = (),
    graph: Graph | None = None,
    keyless: Collection[str] = (),
) -> BoundaryChecked:
    """What a boundary does to these tools, in a run of this graph, or of a conversation without one.

    `keyless` are the names of those that take no `idempotency_key`.
    """
    manifest = make_manifest(
        run_id="check",
        request=_ANYTHING,
        boundary=boundary,
        graph=graph or chat_graph(),
        models=(_ANYBODY,),
        tools=tuple(tools),
    )
    named = [*(boundary.allowed_tools or ()), *(rate.tool for rate in boundary.rates if rate.tool != "*")]
    names = {tool.name for tool in tools}
    return BoundaryChecked(
        name=boundary.name,
        version=boundary_version(boundary),
        mode=boundary.mode,
        conditions=len(boundary.conditions),
        tools=tuple(_reported(tool, manifest, takes_key=tool.name not in keyless) for tool in tools),
        missing=tuple(dict.fromkeys(name for name in named if name not in names)) if tools else (),
        tier=_tier(manifest) if tools or graph is not None else None,
        uncharged=tuple(f"{FIELDS[one]}={manifest.caps[one]}" for one in uncharged_in(boundary.budget)),
        idle=idle_conditions(boundary, tools) if tools else (),
    )


def described_boundary(boundary: Boundary) -> BoundaryShown:
    """A boundary by its six dimensions, its gate and its conditions."""
    lines = tuple(BoundaryLine(*line) for line in _lines(boundary))
    version, said = boundary_version(boundary), boundary_said(boundary)
    return BoundaryShown(
        name=boundary.name, version=version, mode=boundary.mode, lines=lines, said=said, yaml=boundary_yaml(boundary)
    )


def _tier(manifest: Manifest) -> TierReport:
    tier = tier_of(manifest.graph, manifest.tools, manifest.boundary)
    found = TierReport(manifest.graph.name, int(tier), TIERS[tier].title, manifest.boundary.tier_max)
    try:
        check_tier(manifest)
    except RequestRejected as error:
        return replace(found, code=str(error.code), objection=error.message)
    return found


def _reported(tool: ToolDefinition, manifest: Manifest, *, takes_key: bool) -> ToolReport:
    stance, why = _stance(tool, manifest)
    if is_unreadable(tool):
        why = f"{why}; {_UNREADABLE}"
    why = "; ".join([why, *_about_people(tool, manifest.boundary)])
    authority, faults = manifest.boundary.authority, faults_of(tool)
    return ToolReport(
        tool=tool.name,
        stance=stance,
        why=why,
        risk=risk_of(tool).value,
        at_worst=_at_worst(tool),
        gaps=tuple(gap.value for gap in gaps_of(tool)),
        verified_by=verifier_of(tool),
        is_unverified=is_unverified(tool),
        checks="" if tool.category is None else POLICY[tool.category].checks,
        is_unrepeatable=tool.effect.is_mutating and not (takes_key or tool.idempotent or tool.reconcilable),
        trials=() if authority is None else trials_of(tool, authority, faults),
        kinds=kinds_of(tool),
        patch=patch_of(tool),
        faults=faults,
    )


def _about_people(tool: ToolDefinition, boundary: Boundary) -> Iterator[str]:
    """What becomes of calls whose arguments name a person, and how to say who asks."""
    looking = [one for one in boundary.conditions if one.at is At.CALL and "users" in parse_condition(one.when).names]
    people = people_arguments(tool, boundary) if looking else []
    if people:
        named = ", ".join(dict.fromkeys(f"{one.path} ({one.kind})" for one in people))
        does = ", ".join(f"{one.name} {_DOES[one.then]}" for one in looking)
        yield f"names a person by {named}: {does}; say who asks with --user or user_id="


def _stance(tool: ToolDefinition, manifest: Manifest) -> tuple[Stance, str]:
    boundary = manifest.boundary
    if (verdict := STANDING[is_within_depth](tool, manifest)) is not ALLOWED:
        return Stance.REFUSES, verdict.reason
    stance, why = _objection(tool, manifest)
    if stance is not Stance.PASSES and boundary.mode is BoundaryMode.AUDIT:
        return Stance.RECORDS, f"mode audit lets the call be made: {why}"
    rates = rates_of(tool, boundary)
    if stance is Stance.PASSES and rates:
        return stance, f"{why}; {', '.join(said_rate_line(rate) for rate in rates)}"
    return stance, why


def _objection(tool: ToolDefinition, manifest: Manifest) -> tuple[Stance, str]:
    """What a boundary that enforces does to every call of a tool."""
    boundary = manifest.boundary
    for check in (is_within_boundary, has_permission):
        if (verdict := STANDING[check](tool, manifest)) is not ALLOWED:
            return Stance.REFUSES, verdict.reason
    if firm := _conditions_always(tool, boundary, (Then.REFUSE, Then.STOP)):
        return Stance.REFUSES, "; ".join(firm)
    asks = [
        why for why in (needs_a_person(tool, boundary), _doubled(tool, boundary), _untouched(tool, manifest)) if why
    ]
    asks += _conditions_always(tool, boundary, (Then.ASK,))
    return (Stance.ASKS, "; ".join(asks)) if asks else (Stance.PASSES, _free(tool, boundary))


def _conditions_always(tool: ToolDefinition, boundary: Boundary, doing: tuple[Then, ...]) -> list[str]:
    """The conditions that do one of these things to every call of a tool."""
    calls = [one for one in boundary.conditions if one.at is At.CALL and one.then in doing]
    found = [one for one in calls if holds_always(one, tool, boundary)]
    return [f"condition {one.name} {_DOES[one.then]}" + (f": {one.message}" if one.message else "") for one in found]


def _doubled(tool: ToolDefinition, boundary: Boundary) -> str:
    """Why one yes is not enough, where another reason to ask was named first."""
    is_doubled = tool.category in boundary.four_eyes and tool.effect.is_mutating
    return "two people must approve" if is_doubled and tool.effect in boundary.approval_effects else ""


def _untouched(tool: ToolDefinition, manifest: Manifest) -> str:
    """Why a change is for a person where no effect was asked about by its kind."""
    if not tool.effect.is_mutating or tool.delegates:
        return ""
    if manifest.caps[_SIDE_EFFECTS] == 0:
        return "side_effects=0 lets the run change nothing by itself"
    return (
        "authority is off, so no gate traces where its values come from" if manifest.boundary.authority is None else ""
    )


def _free(tool: ToolDefinition, boundary: Boundary) -> str:
    if tool.delegates and may_change(tool):
        lent = dict(tool.lease)["side_effects"]
        return f"it delegates with side_effects={lent}, a proposed effect; each call of its child is judged by itself"
    if tool.effect.is_mutating:
        return f"{tool.effect} effects pass once every value is traced to the user's words or to a trusted field"
    if not may_leave_reading(tool):
        return "it changes nothing" if tool.effect is Effect.NONE else "it only reads, on this machine"
    if is_trusted_wholly(tool, boundary):
        return "it only reads, and reaches none but trusted hosts"
    if tool.network:
        return "it only reads; once anything private was read, what it carries out is traced or asks"
    return (
        "it only reads and does not declare `network`; once anything private was read, it asks before it carries "
        f"a link, an address or more than {CARRIED_CHARS_MAX} characters that the user did not write"
    )


def is_trusted_wholly(tool: ToolDefinition, boundary: Boundary) -> bool:
    """Whether a tool says where its calls go, and the boundary trusts every one of these hosts."""
    return bool(tool.trust.hosts) and all(is_trusted(host, boundary.trusted_hosts) for host in tool.trust.hosts)


def _at_worst(tool: ToolDefinition) -> tuple[str, ...]:
    """What a tool does not tell the gate; what it says and equals the worst counts as not said."""
    said, silence = declared(tool), declared(ToolDefinition(tool.name, tool.description, tool.parameters))
    spoken = {key: value for key, value in said.items() if value != silence.get(key)}
    if spoken:
        # A declaration that says anything of a tool covers its effect.
        spoken["effect"] = said["effect"]
    return worst_of(declaration_of(said), spoken)


def _lines(boundary: Boundary) -> Iterator[tuple[str, str, str]]:
    yield "observations", "reads_max", f"{boundary.reads_max}; more than that is for a person to allow"
    yield "observations", "trusted_hosts", _or_nothing(boundary.trusted_hosts)
    yield "observations", "identities", _or_nothing(boundary.identities)
    yield "state writes", "writes", _all_or(boundary.writes)
    yield from (("tools", key, says) for key, says in _tool_lines(boundary))
    yield "decision rights", "rights", _all_or(boundary.decisions)
    yield "decision rights", "tier_max", f"{boundary.tier_max}"
    yield from (("resource budgets", key, says) for key, says in _budget_lines(boundary))
    yield from (("escalation", key, says) for key, says in _escalation_lines(boundary))
    yield from (("authority", key, says) for key, says in _authority_lines(boundary))
    for condition in boundary.intake:
        yield "intake", condition.name, _condition_line(condition)
    for rule in boundary.tasks:
        grounds = f", grounded by {', '.join(rule.grounds)}" if rule.grounds else ""
        yield "tasks", rule.name, f"a task of class {rule.task_class} when {rule.when}{grounds}"
    for condition in boundary.conditions:
        yield "conditions", condition.name, _condition_line(condition)


# Whether who asked for a run may approve what it asks.
_SELF_APPROVAL: Mapping[bool | None, str] = MappingProxyType(
    {
        None: "by the owner of the store alone; never as one of four eyes",
        True: "yes, but never as one of four eyes",
        False: "no",
    }
)


def _tool_lines(boundary: Boundary) -> Iterator[tuple[str, str]]:
    yield "allowed", _all_or(boundary.allowed_tools)
    yield "approval_effects", _or_nothing(boundary.approval_effects)
    yield "approval_categories", _or_nothing(boundary.approval_categories)
    yield "four_eyes", _or_nothing(boundary.four_eyes)
    yield "permissions", _or_nothing(boundary.permissions)
    yield "concerns", _or_nothing([f"{name} ({', '.join(tools)})" for name, tools in boundary.concerns])
    yield "purchase_max", "none" if boundary.purchase_max is None else f"{boundary.purchase_max:,} of the smallest unit"
    yield "rates", _or_nothing([said_rate_line(rate) for rate in boundary.rates])
    yield "unverified", _UNVERIFIED[boundary.unverified]
    yield "demands", _DEMANDS[boundary.demands]


def _budget_lines(boundary: Boundary) -> Iterator[tuple[str, str]]:
    for name, amount in zip(FIELDS, assign(boundary.budget), strict=True):
        standard = " (standard)" if getattr(boundary.budget, name) is None else ""
        standard += " (not yet charged)" if Dimension[name.upper()] in UNCHARGED else ""
        spent = dict(boundary.exhaustion).get(name)
        yield name, f"{said_cap(name, amount)}{standard}" + (f", then {spent}" if spent else "")
    yield "wrap_up_tokens", f"{boundary.wrap_up_tokens:,} tokens"
    yield "stops_early", "yes, before it is spent in vain" if boundary.stops_early else "no"
    yield "release_by", _or_nothing(boundary.release_by, "every person who may answer the queue")


def _escalation_lines(boundary: Boundary) -> Iterator[tuple[str, str]]:
    yield "queues", _or_nothing([f"{trigger} to {queue}" for trigger, queue in boundary.queues], "as usual")
    yield "on_silence", _or_nothing(boundary.on_silence, "no other person is asked")
    yield "approval_wait", said_duration(boundary.approval_wait_ms_max)
    yield "self_approval", _SELF_APPROVAL[boundary.self_approval]


def _authority_lines(boundary: Boundary) -> Iterator[tuple[str, str]]:
    if boundary.authority is None:
        yield "authority", "off: only reads that may leave are traced, and every change asks"
        return
    said = boundary_said(boundary)["authority"]
    yield from ((key, ("yes" if value else "no") if isinstance(value, bool) else value) for key, value in said.items())


def _condition_line(condition: Condition) -> str:
    because = f" ({condition.message})" if condition.message else ""
    at = "" if condition.at is At.CALL else f" at an {condition.at}"
    return f"{_DOES[condition.then]}{at} when {condition.when}{because}"


def _all_or(items: Sequence[str] | None) -> str:
    return ALL if items is None else _or_nothing(items)


def _or_nothing(items: Sequence[str], nothing: str = "none") -> str:
    return ", ".join(items) or nothing
