"""Authorization: the ordered checks on a proposed tool call, the last thing before a command is recorded.

Rule 1: every check must agree; the first that objects decides. Each may rely on those before it: only a tool that
        is registered is looked up by the ones that follow.
Rule 2: a verdict is allow, refuse or ask. Asking reserves nothing; the answer is judged again at this same seam.
Rule 3: the tally holds what this turn has already promised, so calls of one answer are judged one after the other.
Rule 4: what a person approved skips only the checks a person may overrule: what its origin did, provenance
        and approval.
Rule 5: a boundary that only audits records what it would have refused or held, and lets it pass; what keeps a run
        whole (registered, valid, offered, within scopes and budget, no repeat) is enforced in either mode.
Rule 6: a check that reads only the tool and the manifest has one result for the whole run; a tool that it lets pass
        is checked once, and so is a tool whose calls it could never object to. A check that reads the call or the
        tally runs for every call.
"""

from collections.abc import Callable, Mapping

from remit.core.failure import ErrorCode, Refusal
from remit.core.journal.proposed_call import NOBODY_ANSWERED, OVER_RATE, SAID_NO, ProposedCall, Provenance, order_of
from remit.core.journal.rulings import CallNoted
from remit.core.limits.authority import StandsFor
from remit.core.limits.boundary import BoundaryMode
from remit.core.limits.budget import FIELDS, Charges, Dimension
from remit.core.limits.tools import MUTATING, ToolChoiceMode, ToolDefinition, may_leave_reading
from remit.core.run.manifest import Manifest, askers_of, has_scope, may_approve_own
from remit.core.run.person import is_among
from remit.core.work.graph import BY_BOUNDARY, STANDARD_RULES, ToolRules
from remit.kernel.authority.boundary_checks import (
    check_tool_alternative,
    check_tool_conditions,
    check_tool_rates,
    conditions_ask,
    is_checkable,
    is_the_least_tool,
    keeps_conditions,
    keeps_rate,
    may_write,
    model_may_decide,
    needs_a_person,
)
from remit.kernel.authority.earlier_attempts import HAPPENED_UNSEEN, done_unseen
from remit.kernel.authority.verdict import ALLOWED, Judgement, Verdict, ask_person, refuse
from remit.kernel.budget.exhaustion import asked_when_spent
from remit.kernel.budget.spend import lacking, tool_charges
from remit.kernel.state import RunState
from remit.kernel.tally import Tally

# The gate's word for a call behind another one that is held.
_BEHIND = frozenset({"TRIPPED"})
# Its word for an effect that no order names, which a boundary may refuse.
_UNORDERED = frozenset({"BEYOND_ORDERS"})
# The third identical call without a committed change between is one too many.
IDENTICAL_CALLS_MAX = 2

_TOOL_CALLS = FIELDS[Dimension.TOOL_CALLS]

_NONE, _FUNCTION = ToolChoiceMode.NONE, ToolChoiceMode.FUNCTION
_SIDE_EFFECTS = int(Dimension.SIDE_EFFECTS)
_DEPTH = int(Dimension.DEPTH)
_AUDIT, _BOUND = BoundaryMode.AUDIT, Provenance.BOUND

Check = Callable[[ProposedCall, Tally], Verdict]
Standing = Callable[[ToolDefinition, Manifest], Verdict]


def is_registered(call: ProposedCall, tally: Tally) -> Verdict:
    """The tool is one the manifest pinned."""
    if call.tool in tally.state.derived.tools:
        return ALLOWED
    return refuse(ErrorCode.TOOL_NOT_FOUND, f"no tool named {call.tool[:100]!r} is registered for this run")


def passes_filters(call: ProposedCall, tally: Tally) -> Verdict:
    """No filter of the user turned the call away; a rate of the user is looked at in its place."""
    is_turned_away = call.filtered and not call.filtered.startswith(OVER_RATE)
    return refuse(Refusal.FILTERED, call.filtered) if is_turned_away else ALLOWED


def has_valid_arguments(call: ProposedCall, tally: Tally) -> Verdict:
    """The arguments keep the tool's schema."""
    if not call.violations:
        return ALLOWED
    first = call.violations[0]
    more = f" (and {len(call.violations) - 1} more)" if len(call.violations) > 1 else ""
    return refuse(
        ErrorCode.CONSTRAINT_SCHEMA_INVALID, f"arguments of {call.tool}: {first.path or '/'}: {first.message}{more}"
    )


def is_within_boundary(call: ProposedCall, tally: Tally) -> Verdict:
    """The boundary allows the tool, grants the right to decide on it, lets the run write what it writes, and can check it."""
    return _allowed(tally.state.derived.tools[call.tool], tally.manifest)


def _allowed(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    allowed = manifest.boundary.allowed_tools
    if allowed is not None and tool.name not in allowed:
        return refuse(Refusal.PERMISSION_DENIED, f"boundary {manifest.boundary.name} does not allow tool {tool.name}")
    if (verdict := model_may_decide(tool, manifest)) is not ALLOWED:
        return verdict
    if (verdict := may_write(tool, manifest)) is not ALLOWED:
        return verdict
    return is_checkable(tool, manifest)


def is_offered(call: ProposedCall, tally: Tally) -> Verdict:
    """The request's whitelist and tool choice offer the tool."""
    return _offered(tally.state.derived.tools[call.tool], tally.manifest)


def _offered(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    request, choice = manifest.request, manifest.request.tool_choice
    is_other_function = choice.mode is _FUNCTION and choice.function_name != tool.name
    if (request.tools and tool.name not in request.tools) or choice.mode is _NONE or is_other_function:
        return refuse(Refusal.NOT_OFFERED, f"the request does not offer tool {tool.name}")
    return ALLOWED


def has_permission(call: ProposedCall, tally: Tally) -> Verdict:
    """The boundary holds every permission that the tool and the node require."""
    return _permitted(tally.state.derived.tools[call.tool], tally.manifest, rules_here(tally))


def _permitted(tool: ToolDefinition, manifest: Manifest, rules: ToolRules) -> Verdict:
    for permission in _needed(tool, rules):
        if permission not in manifest.boundary.permissions:
            reason = f"tool {tool.name} needs permission {permission}, which {manifest.boundary.name} lacks"
            return refuse(Refusal.PERMISSION_DENIED, reason)
    return ALLOWED


def is_within_scopes(call: ProposedCall, tally: Tally) -> Verdict:
    """The principal of the run has every permission that the tool and the node require, whatever the boundary holds."""
    return _scoped(tally.state.derived.tools[call.tool], tally.manifest, rules_here(tally))


def _scoped(tool: ToolDefinition, manifest: Manifest, rules: ToolRules) -> Verdict:
    if (whom := manifest.principal) is None:
        return ALLOWED
    for permission in _needed(tool, rules):
        if not has_scope(manifest, permission):
            reason = f"tool {tool.name} needs permission {permission}, which {whom.user_id} of {whom.tenant_id} lacks"
            return refuse(Refusal.PERMISSION_DENIED, reason)
    return ALLOWED


def _needed(tool: ToolDefinition, rules: ToolRules) -> tuple[str, ...]:
    return tool.permissions if rules.permission == BY_BOUNDARY else (*tool.permissions, rules.permission)


def _everywhere(check: Callable[[ToolDefinition, Manifest, ToolRules], Verdict]) -> Standing:
    """A check that holds at every node: the first objection that any node could raise."""

    def checked(tool: ToolDefinition, manifest: Manifest) -> Verdict:
        rules = (STANDARD_RULES, *(node.rules for node in manifest.graph.nodes if node.rules is not None))
        verdicts = (check(tool, manifest, rule) for rule in rules)
        return next((verdict for verdict in verdicts if verdict is not ALLOWED), ALLOWED)

    return checked


def is_within_depth(call: ProposedCall, tally: Tally) -> Verdict:
    """The run may go one level deeper, if the call delegates, and has a model that a child could ask."""
    return _shallow(tally.state.derived.tools[call.tool], tally.manifest)


def _shallow(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    depth_max = manifest.caps[_DEPTH]
    if tool.delegates and not manifest.models:
        reason = f"{tool.name} delegates to a model, and this run has none; give it an engine"
        return refuse(ErrorCode.TOOL_UNAVAILABLE, reason)
    if tool.delegates and manifest.depth + 1 > depth_max:
        return refuse(Refusal.DEPTH_EXCEEDED, f"depth={manifest.depth + 1} exceeds depth_max={depth_max}")
    return ALLOWED


def is_within_budget(call: ProposedCall, tally: Tally) -> Verdict:
    """Everything the call may cost at worst still fits, and something is left of the counter its node names."""
    charges, rules = tally.state.derived.charges[call.tool], tally.graph.nodes[tally.node].rules
    if rules is not None and rules.budget != _TOOL_CALLS:
        charges = (*charges, (int(Dimension[rules.budget.upper()]), 1))
    dimension = lacking(tally, charges)
    if dimension is None:
        return ALLOWED
    lifted = {lifted for lifted, _ in lifted_by_a_person(call, tally)}
    dimension = lacking(tally, tuple(charge for charge in charges if charge[0] not in lifted))
    if dimension is None:
        return ALLOWED
    cap, name = tally.state.spending.caps[dimension], FIELDS[dimension]
    return Verdict(
        Judgement.REFUSE, Refusal.BUDGET_EXHAUSTED, f"{name}_max={cap} leaves nothing for {call.tool}", dimension
    )


def rules_here(tally: Tally) -> ToolRules:
    """The rules of the tool node the run stands at; a call judged anywhere else keeps the standard ones."""
    return tally.graph.nodes[tally.node].rules or STANDARD_RULES


def lifted_by_a_person(call: ProposedCall, tally: Tally) -> Charges:
    """The charges that an approval of this call releases.

    Its side effect, where the run was given none at all; and what it lacks of dimensions that the boundary leaves to a
    person once they are spent. What a child would be leased is not lifted.
    """
    manifest, tool = tally.manifest, tally.state.derived.tools[call.tool]
    if tool.delegates:
        return ()
    is_forbidden = manifest.caps[_SIDE_EFFECTS] == 0 and tool.effect in MUTATING
    asking = asked_when_spent(manifest.boundary)
    released = []
    for dimension, amount in tally.state.derived.charges[call.tool] if is_forbidden or asking else ():
        if is_forbidden and dimension == _SIDE_EFFECTS:
            released.append((dimension, amount))
        elif dimension in asking and manifest.caps[dimension] > 0 and amount > tally.left[dimension]:
            released.append((dimension, amount - max(tally.left[dimension], 0)))
    return tuple(released)


def is_not_a_repeat(call: ProposedCall, tally: Tally) -> Verdict:
    """Object to a call whose tool was called with exactly these arguments too often without a change between.

    One that carries out an order of its own is none of them: equal orders are several effects that are wanted.
    """
    if order_of(call) is not None:
        return ALLOWED
    key = (call.tool, call.arguments_hash)
    times = tally.state.calls.repeats.get(key, 0) + (tally.repeats.count(key) if tally.repeats else 0)
    if times < IDENTICAL_CALLS_MAX:
        return ALLOWED
    return refuse(
        Refusal.REPEATED_CALL, f"{call.tool} was called {times} times with these arguments and nothing changed"
    )


def was_not_done_before(call: ProposedCall, tally: Tally) -> Verdict:
    """Exactly this is not known to have happened without its result, and the like was not done by an earlier run.

    That is the run that this one was forked from, after the turn it was copied at, or an earlier attempt at its step.
    """
    earlier = tally.manifest.earlier
    if tally.state.derived.tools[call.tool].effect not in MUTATING:
        return ALLOWED
    if tally.manifest.host is not None and (why := _left_open(call, tally.state)):
        return ask_person(why)
    if (done := done_unseen(tally.state, call)) is not None:
        return ask_person(f"{call.tool} was called with the same arguments in turn {done.seq}: {HAPPENED_UNSEEN}")
    for effect in earlier:
        if not effect.tool:
            if effect.how:
                return ask_person(f"run {effect.run_id} may have done this: {effect.how}")
            return ask_person(f"run {effect.run_id} was open when this one was forked from it, and may do the same")
        if call.tool == effect.tool or call.arguments_hash == effect.arguments_hash:
            same = "with the same arguments" if call.arguments_hash == effect.arguments_hash else "with other arguments"
            return ask_person(f"run {effect.run_id} called {effect.tool} {same} in turn {effect.seq}: {effect.how}")
    return ALLOWED


def _left_open(call: ProposedCall, state: RunState) -> str:
    """The earlier call like this that may have happened, in words, where its tool may not be called again; else nothing."""
    key = (call.tool, call.arguments_hash)
    if state.derived.tools[call.tool].idempotent:
        return ""
    if key in state.effects.unknown:
        return f"an earlier call of {call.tool} with these arguments failed, and nobody knows what it has done"
    doubted = [
        trace
        for trace in map(state.calls.made.__getitem__, state.commands.doubted)
        if (trace.tool, trace.arguments_hash) == key
    ]
    if not doubted:
        return ""
    return (
        f"an earlier call of {call.tool} with these arguments is in doubt ({doubted[0].code}); nobody knows what it did"
    )


def _changes_nothing(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    """ALLOWED where a tool changes nothing, so that no call of it can have been done before."""
    return ask_person("every change is held against those before it") if tool.effect in MUTATING else ALLOWED


def comes_from_a_trusted_origin(call: ProposedCall, tally: Tally) -> Verdict:
    """A call that could change something needs a person's yes, unless its values were traced and found bound.

    A call to which the gate objects needs a person's yes, too; a call that a person has refused stays refused.
    """
    if call.provenance is _BOUND:
        return ALLOWED
    if call.provenance is Provenance.REFUSED and call.objection in _UNORDERED:
        return refuse(Refusal.PERMISSION_DENIED, f"{call.objection}: {'; '.join(call.reasons)}")
    if call.provenance is Provenance.REFUSED:
        code = Refusal.APPROVAL_EXPIRED if NOBODY_ANSWERED in call.reasons[:1] else Refusal.APPROVAL_REJECTED
        return refuse(code, "; ".join(call.reasons) or SAID_NO)
    if call.provenance is Provenance.UNBOUND:
        return ask_person("; ".join(call.reasons) or call.objection, call.objection)
    return _trusted(tally.state.derived.tools[call.tool])


def _trusted(tool: ToolDefinition) -> Verdict:
    """The verdict on an untraced call of a tool. One that only reads is harmless, wherever its arguments come from."""
    if tool.effect in MUTATING:
        return ask_person(f"nobody traced where the arguments of {tool.name} come from")
    return ALLOWED


def _trusted_always(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    """ALLOWED where no call of a tool is ever traced, because it reads and stays on this machine."""
    if may_leave_reading(tool):
        return ask_person("a read that may leave the machine is traced")
    return _trusted(tool)


def needs_no_approval(call: ProposedCall, tally: Tally) -> Verdict:
    """Neither the boundary nor the node demands a person for such a call, and the budget has room for it."""
    tool = tally.state.derived.tools[call.tool]
    if rules_here(tally).approval and tool.asks_under is None:
        return ask_person(f"node {tally.graph.nodes[tally.node].name} demands approval of every call")
    if (verdict := _released(tool, tally.manifest)) is not ALLOWED and not _is_confirmed(call, tool, tally.manifest):
        return verdict
    if (verdict := conditions_ask(call, tally)) is not ALLOWED:
        return verdict
    if lifted := lifted_by_a_person(call, tally):
        names = ", ".join(FIELDS[dimension] for dimension, _ in lifted)
        return ask_person(f"nothing is left of {names}; a person may let this one call through")
    return ALLOWED


def _is_confirmed(call: ProposedCall, tool: ToolDefinition, manifest: Manifest) -> bool:
    """Whether the confirmation of an order stands for the approval that the boundary demands of the call that equals it.

    Who gives orders confirms them as the caller of the run: that counts where the caller may approve, and never for four eyes.
    """
    boundary, order = manifest.boundary, order_of(call)
    if order is None or boundary.authority is None or boundary.authority.stands_for is StandsFor.NOTHING:
        return False
    askers = askers_of(manifest)
    is_by_another = bool(order.by) and not is_among(order.by, askers)
    if tool.category in boundary.four_eyes:
        return is_by_another and boundary.authority.stands_for is StandsFor.FOUR_EYES
    return is_by_another or all(may_approve_own(manifest, asker) for asker in askers)


def is_grantable(call: ProposedCall, tally: Tally) -> bool:
    """Whether a call that is held may be approved by a grant that a person gave beforehand.

    That is where the origin of its values, the boundary's demand for one approval of such effects, or a cap of no effects
    at all is what asks. Doubts, conditions, nodes, what is spent, four eyes and another call that is held want a person
    who looks at it.
    """
    tool, boundary = tally.state.derived.tools[call.tool], tally.manifest.boundary
    is_excepted = tool.category in boundary.four_eyes or rules_here(tally).approval or call.objection in _BEHIND
    if is_excepted or tally.state.commands.doubted or was_not_done_before(call, tally) is not ALLOWED:
        return False
    is_spent = any(tally.manifest.caps[dimension] for dimension, _ in lifted_by_a_person(call, tally))
    if is_spent or conditions_ask(call, tally) is not ALLOWED:
        return False
    stands_for = StandsFor.NOTHING if boundary.authority is None else boundary.authority.stands_for
    return not tool.destructive or stands_for is not StandsFor.NOTHING


def _released(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    if why := needs_a_person(tool, manifest.boundary):
        return ask_person(why)
    if manifest.caps[_SIDE_EFFECTS] == 0 and tool.effect in MUTATING and not tool.delegates:
        return ask_person(
            f"the run may change nothing by itself, and {tool.name} does; a person may let this one call through"
        )
    return ALLOWED


def _released_always(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    """ALLOWED where no call of a tool ever needs an approval, at whatever node the run may stand."""
    boundary = manifest.boundary
    is_demanding = any(node.rules is not None and node.rules.approval for node in manifest.graph.nodes)
    may_be_spent = asked_when_spent(boundary).intersection(dimension for dimension, _ in tool_charges(tool))
    if boundary.conditions or is_demanding or may_be_spent:
        return ask_person("something looks at every call")
    return _released(tool, manifest)


# Depth and permission come before money: a call that may never be made should not read as one that is too dear.
FIRM_CHECKS: tuple[Check, ...] = (
    is_registered,
    passes_filters,
    has_valid_arguments,
    is_within_boundary,
    is_offered,
    has_permission,
    is_within_scopes,
    is_within_depth,
    keeps_conditions,
    keeps_rate,
    is_the_least_tool,
    is_within_budget,
    is_not_a_repeat,
)
CHECKS: tuple[Check, ...] = (*FIRM_CHECKS, was_not_done_before, comes_from_a_trusted_origin, needs_no_approval)

# What a boundary that only audits lets pass.
AUDITED: frozenset[Check] = frozenset(
    {
        is_within_boundary,
        has_permission,
        keeps_conditions,
        keeps_rate,
        is_the_least_tool,
        comes_from_a_trusted_origin,
        needs_no_approval,
    }
)

# Checks that need no call, or not of every tool: what they say of a tool at worst.
STANDING: Mapping[Check, Standing] = {
    is_registered: lambda tool, manifest: ALLOWED,
    passes_filters: lambda tool, manifest: ask_person("filters look at every call") if manifest.filters else ALLOWED,
    is_within_boundary: _allowed,
    is_offered: _offered,
    has_permission: _everywhere(_permitted),
    is_within_scopes: _everywhere(_scoped),
    is_within_depth: _shallow,
    keeps_conditions: check_tool_conditions,
    keeps_rate: check_tool_rates,
    is_the_least_tool: check_tool_alternative,
    was_not_done_before: _changes_nothing,
    comes_from_a_trusted_origin: _trusted_always,
    needs_no_approval: _released_always,
}


def checks_left(tool: ToolDefinition, manifest: Manifest) -> tuple[Check, ...]:
    """The checks that may object to a call of this tool, in their order: all but those that have let the tool pass."""
    passed = {check for check, says in STANDING.items() if says(tool, manifest) is ALLOWED}
    return tuple(check for check in CHECKS if check not in passed)


def authorize(call: ProposedCall, tally: Tally, checks: tuple[Check, ...] | None = None) -> Verdict:
    """Judge a call. Pass FIRM_CHECKS for one a person has approved."""
    for check in _checks_for(call.tool, tally) if checks is None else checks:
        verdict = check(call, tally)
        if verdict is not ALLOWED and not _is_only_noted(check, call, tally, verdict):
            return verdict
    return ALLOWED


def _checks_for(tool_name: str, tally: Tally) -> tuple[Check, ...]:
    """The checks that are left for a tool, found out with its first call: most tools of a run are never called."""
    derived = tally.state.derived
    known = derived.checks.get(tool_name)
    if known is None:
        tool = derived.tools.get(tool_name)
        if tool is None:
            return CHECKS
        known = derived.checks[tool_name] = checks_left(tool, tally.manifest)
    return known


def _is_only_noted(check: Check, call: ProposedCall, tally: Tally, verdict: Verdict) -> bool:
    """Record an objection of a boundary that only audits; whether it is one."""
    if tally.manifest.boundary.mode is not _AUDIT or check not in AUDITED:
        return False
    # Where a person would have lifted a cap for this one call, no person is asked, and it is lifted all the same.
    releases = lifted_by_a_person(call, tally) if check is needs_no_approval else ()
    for dimension, amount in releases:
        tally.left[dimension] += amount
    tally.rule(
        CallNoted(
            call_id=call.call_id,
            tool=call.tool,
            judgement=verdict.judgement,
            code=verdict.code,
            reason=verdict.reason,
            releases=releases,
        )
    )
    return True


def reasons_to_ask(call: ProposedCall, tally: Tally) -> tuple[str, ...]:
    """Everything a person should know about why they are asked, not only what objected first."""
    origin, demand = comes_from_a_trusted_origin(call, tally), needs_no_approval(call, tally)
    before = was_not_done_before(call, tally)
    reasons = [] if before is ALLOWED else [before.reason]
    reasons += [] if origin is ALLOWED else [*call.reasons] or [origin.reason]
    return tuple(reasons if demand is ALLOWED else [*reasons, demand.reason])
