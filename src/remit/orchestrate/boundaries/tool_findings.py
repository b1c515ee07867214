"""What a boundary does to each of a list of tools, and which of its conditions no call of them could ever meet.

Rule 1: what is refused is what the kernel itself refuses, asked with a manifest like that of a run; nothing here judges anew.
Rule 2: a tool that passes may still be stopped by what only a call shows: conditions, rates, the budget that is left, and
        where its values come from.
Rule 3: what a tool leaves at its worst is said whether it passes or not.
Rule 4: a condition is read as alternatives of demands, and is idle when each of its alternatives has a demand that no tool
        meets; that demand says why. What a run would have to show is taken as possible.
"""

from collections.abc import Collection, Iterator, Sequence

from remit.core.failure import RequestRejected
from remit.core.limits.boundary import (
    At,
    Boundary,
    BoundaryMode,
    Condition,
    Then,
    boundary_version,
)
from remit.core.limits.boundary_views import (
    BoundaryChecked,
    IdleCondition,
    Stance,
    TierReport,
    ToolReport,
)
from remit.core.limits.budget import FIELDS, Dimension, uncharged_in
from remit.core.limits.flags import OTHER_USER, SECRET_READ, TESTS_FAILED, flag_named
from remit.core.limits.purchases import tells_amount
from remit.core.limits.tier import TIERS
from remit.core.limits.tool_policy import POLICY, gaps_of, risk_of
from remit.core.limits.tools import Effect, ToolDefinition, may_change, may_leave_reading
from remit.core.limits.verification import is_unverified, verifier_of
from remit.core.record import replace
from remit.core.regex import regex
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import user_message
from remit.core.work.graph import Graph
from remit.kernel.authority.authorize import STANDING, has_permission, is_within_boundary, is_within_depth
from remit.kernel.authority.boundary_checks import needs_a_person, rates_of
from remit.kernel.authority.call_flags import declares_tests, is_unreadable, names_people, people_arguments
from remit.kernel.authority.conditions import CONDITION_NAMES, SETTLED_NAMES, holds_always, parse_condition, says_always
from remit.kernel.authority.graph_tier import check_tier, tier_of
from remit.kernel.authority.verdict import ALLOWED
from remit.orchestrate.boundaries.boundary_words import DOES, said_rate_line
from remit.orchestrate.boundaries.declaration_faults import faults_of
from remit.orchestrate.boundaries.tool_trials import kinds_of, patch_of, trials_of
from remit.orchestrate.facts.gate_facts import declared
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.provenance.declarations import declaration_of, worst_of
from remit.provenance.values.outward import CARRIED_CHARS_MAX, is_trusted

_SIDE_EFFECTS = int(Dimension.SIDE_EFFECTS)
# A manifest names a model and a request; what the tools may do depends on neither.
_ANYBODY, _ANYTHING = ModelInfo("any"), SystemRequest((user_message("-"),))

_UNREADABLE = (
    "it is taken for a test run whose outcome cannot be read, so that it counts as failed: declare `flags`, or a result "
    "with exit_code, failed or passed"
)


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
        does = ", ".join(f"{one.name} {DOES[one.then]}" for one in looking)
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
    return [f"condition {one.name} {DOES[one.then]}" + (f": {one.message}" if one.message else "") for one in found]


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


_NAME = regex(r"(?<![\w\"'.])[a-z_][a-z0-9_]*(?![\w(])")
_QUOTED = regex(r"\"[^\"]*\"|'[^']*'")
_FLAG = regex(r"[\"'](\w+)[\"'] in flags")
_CONCERN = regex(r"[\"'](\w+)[\"'] in concerns")


def idle_conditions(boundary: Boundary, tools: Sequence[ToolDefinition]) -> tuple[IdleCondition, ...]:
    """The conditions that none of these tools could meet."""
    found = ((condition.name, _why_idle(condition, boundary, tools)) for condition in boundary.conditions)
    return tuple(IdleCondition(name, why) for name, why in found if why)


def _why_idle(condition: Condition, boundary: Boundary, tools: Sequence[ToolDefinition]) -> str:
    """What every alternative of a condition lacks; empty where one of them could hold."""
    reasons: list[str] = []
    for demands in _alternatives(condition.when):
        unmet = [demand for demand in demands if not any(_meets(demand, tool, boundary, tools) for tool in tools)]
        together = [tool for tool in tools if all(_meets(demand, tool, boundary, tools) for demand in demands)]
        if together:
            return ""
        reasons.append(_lack(unmet[0]) if unmet else f"no single tool meets {' && '.join(demands)}")
    return "; ".join(dict.fromkeys(reasons))


def _meets(demand: str, tool: ToolDefinition, boundary: Boundary, tools: Sequence[ToolDefinition]) -> bool:
    """Whether a call of a tool, in a run with all of them, could meet one demand."""
    if (flag := _FLAG.fullmatch(demand)) is not None:
        return _may_raise(flag[1], boundary, tools)
    names = set(_NAME.findall(_QUOTED.sub('""', demand)))
    if "users" in names:
        return names_people(tool, boundary)
    if demand.replace(" ", "") == "purchase>=0":
        return tells_amount(tool)
    if demand == SECRET_READ:
        return any(one.effect is not Effect.NONE for one in tools)
    known = names & CONDITION_NAMES.keys()
    if not known or not known <= SETTLED_NAMES:
        return True
    return says_always(demand, tool, boundary) is True


def _may_raise(flag: str, boundary: Boundary, tools: Sequence[ToolDefinition]) -> bool:
    if flag == SECRET_READ:
        return any(tool.effect is not Effect.NONE for tool in tools)
    if flag == OTHER_USER:
        return any(kind in boundary.identities for tool in tools for _, kind in tool.trust.fields)
    if flag == TESTS_FAILED and any(declares_tests(tool) for tool in tools):
        return True
    return any(flag_named(spec) == flag for tool in tools for _, spec in tool.flags)


def _lack(demand: str) -> str:
    """The declaration whose absence makes a demand idle."""
    if (flag := _FLAG.fullmatch(demand)) is not None and flag[1] == OTHER_USER:
        return "no tool declares a field of its result of a kind in `identities`"
    if flag is not None:
        return f"no tool declares a field of its result that raises the flag {flag[1]}"
    if (concern := _CONCERN.fullmatch(demand)) is not None:
        return f"neither a tool nor the boundary declares the concern {concern[1]}"
    if "users" in demand:
        return "no tool has an argument of a kind in `identities`, or called after one"
    if demand.startswith("purchase"):
        return "no tool declares which of its arguments is `money`"
    return f"no tool makes {demand} true"


def _alternatives(when: str) -> Iterator[list[str]]:
    """The alternatives of a condition, each as its demands; brackets around either are opened."""
    parts = _split(when, "||")
    if len(parts) > 1:
        for part in parts:
            yield from _alternatives(part)
        return
    demands = _split(when, "&&")
    if len(demands) == 1:
        inner = _opened(demands[0])
        if inner == demands[0]:
            yield demands
        else:
            yield from _alternatives(inner)
        return
    combined: list[list[str]] = [[]]
    for demand in demands:
        combined = [[*before, *more] for before in combined for more in _alternatives(demand)]
    yield from combined


def _opened(text: str) -> str:
    """A text without the brackets that enclose all of it."""
    is_enclosed = text.startswith("(") and text.endswith(")") and len(_split(text[1:-1], ")", nested=False)) == 1
    return text[1:-1].strip() if is_enclosed else text


def _split(text: str, sign: str, *, nested: bool = True) -> list[str]:
    """The parts of a text between signs that stand in no brackets and no quotes."""
    parts, depth, quote, start = [], 0, "", 0
    for place, one in enumerate(text):
        if quote:
            quote = "" if one == quote else quote
        elif one in "\"'":
            quote = one
        elif depth == 0 and text.startswith(sign, place):
            parts.append(text[start:place].strip())
            start = place + len(sign)
        elif one in "([":
            depth += 1
        elif one in ")]" and (nested or depth):
            depth -= 1
    return [*parts, text[start:].strip()]
