"""Authorization: the ordered checks on a proposed tool call, the last thing before a command is recorded.

Rule 1: every check must agree; the first that objects decides. Each may rely on those before it: only a tool that
        is registered is looked up by the ones that follow.
Rule 2: a verdict is allow, refuse or ask. Asking reserves nothing; the answer is judged again at this same seam.
Rule 3: the tally holds what this turn has already promised, so calls of one answer are judged one after the other.
Rule 4: what a person approved skips only the checks a person may overrule: provenance and approval.
Rule 5: a check that looks at nothing but the tool and the manifest says the same all run long; a tool that it lets pass
        is shown to it once. So is one whose calls it could never object to. Whatever else looks at the call or the
        tally is asked about every call.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

from remit.core.arrivals import ProposedCall, Provenance
from remit.core.budget import FIELDS, Dimension
from remit.core.failure import ErrorCode, Refusal
from remit.core.graph import BY_BOUNDARY, STANDARD_RULES, ToolRules
from remit.core.manifest import Manifest
from remit.core.record import Record
from remit.core.tools import MUTATING, ToolChoiceMode, ToolDefinition
from remit.kernel.spend import lacking
from remit.kernel.tally import Tally

# The third identical call without a committed change between is one too many.
IDENTICAL_CALLS_MAX = 2

_TOOL_CALLS = FIELDS[Dimension.TOOL_CALLS]
UNTRUSTED = frozenset({Provenance.UNTRACED})

_NONE, _FUNCTION = ToolChoiceMode.NONE, ToolChoiceMode.FUNCTION
_SIDE_EFFECTS = int(Dimension.SIDE_EFFECTS)
_DEPTH = int(Dimension.DEPTH)


class Judgement(StrEnum):
    """What a verdict says."""

    ALLOW = "allow"
    REFUSE = "refuse"
    ASK = "ask"


class Verdict(Record):
    """The judgement on one proposed call. The code is an ErrorCode or a Refusal; reasons are for people."""

    judgement: Judgement
    code: str = ""
    reason: str = ""
    dimension: int = -1


ALLOWED = Verdict(Judgement.ALLOW)
Check = Callable[[ProposedCall, Tally], Verdict]


def is_registered(call: ProposedCall, tally: Tally) -> Verdict:
    """The tool is one the manifest pinned."""
    if call.tool in tally.state.tools:
        return ALLOWED
    return _refuse(ErrorCode.TOOL_NOT_FOUND, f"no tool named {call.tool[:100]!r} is registered for this run")


def has_valid_arguments(call: ProposedCall, tally: Tally) -> Verdict:
    """The arguments keep the tool's schema."""
    if not call.violations:
        return ALLOWED
    first = call.violations[0]
    more = f" (and {len(call.violations) - 1} more)" if len(call.violations) > 1 else ""
    return _refuse(
        ErrorCode.CONSTRAINT_SCHEMA_INVALID, f"arguments of {call.tool}: {first.path or '/'}: {first.message}{more}"
    )


def is_within_boundary(call: ProposedCall, tally: Tally) -> Verdict:
    """The boundary allows the tool, and the request's whitelist and tool choice offer it."""
    return _offered(tally.state.tools[call.tool], tally.manifest)


def _offered(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    allowed, request = manifest.boundary.allowed_tools, manifest.request
    if allowed is not None and tool.name not in allowed:
        return _refuse(Refusal.PERMISSION_DENIED, f"boundary {manifest.boundary.name} does not allow tool {tool.name}")
    choice = request.tool_choice
    is_other_function = choice.mode is _FUNCTION and choice.function_name != tool.name
    if (request.tools and tool.name not in request.tools) or choice.mode is _NONE or is_other_function:
        return _refuse(Refusal.NOT_OFFERED, f"the request does not offer tool {tool.name}")
    return ALLOWED


def has_permission(call: ProposedCall, tally: Tally) -> Verdict:
    """The boundary holds every permission the tool requires, and the run may go one level deeper if it delegates."""
    return _permitted(tally.state.tools[call.tool], tally.manifest, rules_here(tally))


def _permitted(tool: ToolDefinition, manifest: Manifest, rules: ToolRules) -> Verdict:
    boundary, depth_max = manifest.boundary, manifest.caps[_DEPTH]
    for permission in tool.permissions if rules.permission == BY_BOUNDARY else (*tool.permissions, rules.permission):
        if permission not in boundary.permissions:
            reason = f"tool {tool.name} needs permission {permission}, which {boundary.name} lacks"
            return _refuse(Refusal.PERMISSION_DENIED, reason)
    if tool.delegates and manifest.depth + 1 > depth_max:
        return _refuse(Refusal.DEPTH_EXCEEDED, f"depth={manifest.depth + 1} exceeds depth_max={depth_max}")
    return ALLOWED


def _permitted_everywhere(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    """The same at whatever node the run may stand: the first objection that any of them could raise."""
    rules = (STANDARD_RULES, *(node.rules for node in manifest.graph.nodes if node.rules is not None))
    verdicts = (_permitted(tool, manifest, rule) for rule in rules)
    return next((verdict for verdict in verdicts if verdict is not ALLOWED), ALLOWED)


def is_within_budget(call: ProposedCall, tally: Tally) -> Verdict:
    """Everything the call may cost at worst still fits, and something is left of the counter its node names."""
    charges = tally.state.tool_charges[call.tool]
    if (here := rules_here(tally).budget) != _TOOL_CALLS:
        charges = (*charges, (int(Dimension[here.upper()]), 1))
    dimension = lacking(tally, charges)
    if dimension is None:
        return ALLOWED
    if dimension is Dimension.SIDE_EFFECTS and is_for_a_person_to_lift(call, tally):
        dimension = lacking(tally, tuple(charge for charge in charges if charge[0] != _SIDE_EFFECTS))
        if dimension is None:
            return ALLOWED
    cap, name = tally.state.caps[dimension], FIELDS[dimension]
    return Verdict(
        Judgement.REFUSE, Refusal.BUDGET_EXHAUSTED, f"{name}_max={cap} leaves nothing for {call.tool}", dimension
    )


def rules_here(tally: Tally) -> ToolRules:
    """The rules of the tool node the run stands at; a call judged anywhere else keeps the standard ones."""
    return tally.graph.nodes[tally.node].rules or STANDARD_RULES


def is_for_a_person_to_lift(call: ProposedCall, tally: Tally) -> bool:
    """Whether an approval may release the one side effect of this call, because the run was given none at all.

    What a child would be leased is not lifted this way.
    """
    tool = tally.state.tools[call.tool]
    return tally.manifest.caps[_SIDE_EFFECTS] == 0 and tool.effect in MUTATING and not tool.delegates


def is_not_a_repeat(call: ProposedCall, tally: Tally) -> Verdict:
    """The same tool with the same arguments was not already called too often without a change between."""
    key = (call.tool, call.arguments_hash)
    times = tally.state.repeats.get(key, 0) + tally.repeats.count(key)
    if times < IDENTICAL_CALLS_MAX:
        return ALLOWED
    return _refuse(
        Refusal.REPEATED_CALL, f"{call.tool} was called {times} times with these arguments and nothing changed"
    )


def comes_from_a_trusted_origin(call: ProposedCall, tally: Tally) -> Verdict:
    """Every call that could change something is a person's to allow, unless its values were traced and found bound."""
    return _trusted(tally.state.tools[call.tool]) if call.provenance in UNTRUSTED else ALLOWED


def _trusted(tool: ToolDefinition) -> Verdict:
    """What an untraced call of a tool deserves. One that only reads is harmless, wherever its arguments come from."""
    if tool.effect in MUTATING:
        return _ask(f"nobody traced where the arguments of {tool.name} come from")
    return ALLOWED


def needs_no_approval(call: ProposedCall, tally: Tally) -> Verdict:
    """The boundary does not demand a person for this kind of effect."""
    return _released(tally.state.tools[call.tool], tally.manifest)


def _released(tool: ToolDefinition, manifest: Manifest) -> Verdict:
    boundary = manifest.boundary
    if tool.effect in boundary.approval_effects:
        return _ask(f"boundary {boundary.name} demands approval of {tool.effect} effects")
    if manifest.caps[_SIDE_EFFECTS] == 0 and tool.effect in MUTATING and not tool.delegates:
        return _ask(
            f"the run may change nothing by itself, and {tool.name} does; a person may let this one call through"
        )
    return ALLOWED


# Depth and permission come before money: a call that may never be made should not read as one that is too dear.
FIRM_CHECKS: tuple[Check, ...] = (
    is_registered,
    has_valid_arguments,
    is_within_boundary,
    has_permission,
    is_within_budget,
    is_not_a_repeat,
)
CHECKS: tuple[Check, ...] = (*FIRM_CHECKS, comes_from_a_trusted_origin, needs_no_approval)


# Checks that need no call, or not of every tool: what they say of a tool at worst.
STANDING: Mapping[Check, Callable[[ToolDefinition, Manifest], Verdict]] = {
    is_registered: lambda tool, manifest: ALLOWED,
    is_within_boundary: _offered,
    has_permission: _permitted_everywhere,
    comes_from_a_trusted_origin: lambda tool, manifest: _trusted(tool),
    needs_no_approval: _released,
}


def checks_left(tool: ToolDefinition, manifest: Manifest) -> tuple[Check, ...]:
    """The checks that may object to a call of this tool, in their order: all but those that have let the tool pass."""
    passed = {check for check, says in STANDING.items() if says(tool, manifest) is ALLOWED}
    return tuple(check for check in CHECKS if check not in passed)


def authorize(call: ProposedCall, tally: Tally, checks: tuple[Check, ...] | None = None) -> Verdict:
    """Judge a call. Pass FIRM_CHECKS for one a person has approved."""
    for check in tally.state.checks.get(call.tool, CHECKS) if checks is None else checks:
        verdict = check(call, tally)
        if verdict is not ALLOWED:
            return verdict
    return ALLOWED


def reasons_to_ask(call: ProposedCall, tally: Tally) -> tuple[str, ...]:
    """Everything a person should know about why they are asked, not only what objected first."""
    verdicts = (check(call, tally) for check in (comes_from_a_trusted_origin, needs_no_approval))
    return tuple(verdict.reason for verdict in verdicts if verdict is not ALLOWED)


def _refuse(code: ErrorCode | Refusal, reason: str) -> Verdict:
    return Verdict(Judgement.REFUSE, code.value, reason)


def _ask(reason: str) -> Verdict:
    return Verdict(Judgement.ASK, "", reason)
