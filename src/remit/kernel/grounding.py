"""Grounding: which observations may become task state, and what a run may not claim.

Rule 1: only a verified observation is committed: it returned, kept its result schema, and its own check agreed. Of a
        change, one of the two must have been able to say no (core/verification.py). A change in doubt is committed by the
        yes of its tool or of a person, who could have said no, whatever is known of its result.
Rule 2: intended, attempted and observed effects are not facts. Assumed ones do not exist.
Rule 3: an effect the run proposed and never committed is a claim without proof.
Rule 4: a delegation whose lease has side effects is such a proposal: refused, failed or lost, what it was to change counts
        as left, until another delegation succeeds in its place. Of a lost one nobody knows what it has changed.
"""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from remit.core.arrivals import ChildEnded, ToolReturned
from remit.core.budget import Dimension
from remit.core.commands import CallTool, StartChild
from remit.core.failure import ANSWERED, Ending, ErrorCode, Refusal
from remit.core.graph import Node
from remit.core.record import digest_of
from remit.core.rulings import ARGUMENTS_INVALID, LEFT_BY_CHILD, OUTCOME_UNKNOWN, UNVERIFIED, Rung
from remit.core.tools import ToolDefinition
from remit.kernel.state import CallKey, RunState
from remit.kernel.tally import Tally

# Why no call was made of a proposed effect, in words.
NEVER_CALLED: Mapping[str, str] = MappingProxyType(
    {ErrorCode.TOOL_NOT_FOUND: "no such tool", ARGUMENTS_INVALID: "invalid arguments"}
)
# What a later call can make good.
MENDABLE = frozenset({*NEVER_CALLED, LEFT_BY_CHILD})
# What a delegation was refused for that may well be begun later.
_TOO_DEAR = frozenset({Refusal.BUDGET_EXHAUSTED, Refusal.RATE_LIMITED})
NO_ARGUMENTS = digest_of(b"{}")
# What stands for the arguments of an effect that a child left: this, and the command that started it. A hash is longer.
_CHILD = b"child:"
# As many effects of a child as its parent is told of.
LEFT_MAX = 10
# What a child leaves of an effect: undone, done as far as anybody knows, or unknown to everybody.
_LEFT = (LEFT_BY_CHILD, UNVERIFIED, OUTCOME_UNKNOWN)

_OBSERVED, _COMMITTED = Rung.OBSERVED, Rung.COMMITTED
_SIDE_EFFECTS = int(Dimension.SIDE_EFFECTS)
# How a child can have ended; one that was lost has not.
_ENDINGS = frozenset(map(str, Ending))


def rung_reached(arrival: ToolReturned) -> Rung:
    """How far up the ladder an observation gets: committed when nothing contradicts it."""
    return _OBSERVED if arrival.violations or arrival.refuted else _COMMITTED


def contradicted_by(arrival: ToolReturned) -> str:
    """The code of an observation that its own check or its schema contradicts; empty where neither does."""
    if arrival.refuted:
        return ErrorCode.VALIDATION_RULE_FAILED
    return ErrorCode.CONSTRAINT_SCHEMA_INVALID if arrival.violations else ""


def stops_loop(arrival: ToolReturned, tool: ToolDefinition) -> bool:
    """Whether a verified result is the answer of the run: its tool may say so, does, and has something to say."""
    return arrival.stop_loop and tool.may_stop_loop and bool(arrival.content)


def unproven_effects(tally: Tally) -> Mapping[CallKey, str]:
    """Effects that were proposed and never committed, with the code that says why."""
    claims = {**tally.state.uncommitted, **tally.uncommitted}
    return {key: code for key, code in claims.items() if code}


def unknown_effects(tally: Tally) -> Mapping[CallKey, str]:
    """Effects whose tool failed within and that nobody has heard of since: whether they happened, nobody knows."""
    before = [key for key in tally.state.unknown if tally.uncommitted.get(key) not in ("", UNVERIFIED)]
    now = [key for key, code in tally.uncommitted.items() if code == OUTCOME_UNKNOWN]
    return dict.fromkeys([*before, *now], OUTCOME_UNKNOWN)


def effects_in_doubt(state: RunState) -> Mapping[CallKey, str]:
    """The effects of which nobody knows whether they happened: calls in doubt, and calls whose tool failed within."""
    doubted = [state.calls[command_id] for command_id in state.doubted]
    return dict.fromkeys([*((trace.tool, trace.arguments_hash) for trace in doubted), *state.unknown], OUTCOME_UNKNOWN)


def claim_of(tool: str, digest: bytes, code: str) -> str:
    """An unproven effect as a message names it: by the tool and a short hash of the arguments, or by what kept it."""
    if digest.startswith(_CHILD):
        return child_claim(tool, digest.removeprefix(_CHILD).decode())
    if code in NEVER_CALLED:
        return f"{tool} ({NEVER_CALLED[code]})"
    return f"{tool}#{digest.hex()[:8]}"


def child_claim(tool: str, command_id: str) -> str:
    """An effect that a child left, as a message names it."""
    return f"{tool} (in child {command_id})"


def made_good(state: RunState, command: CallTool) -> list[CallKey]:
    """Proposals that no call was ever made of and that this committed call makes good: of the same tool, or arguments.

    Where there are no arguments nothing shows that two tools were meant to do the same. What the same answer proposed
    was meant beside this call, and not in its place; no other answer comes before all of its calls are settled.
    """
    tool, arguments_hash = command.tool, command.arguments_hash
    beside = {(call.tool, call.arguments_hash) for call in state.proposed}
    return [
        key
        for key, code in state.uncommitted.items()
        if code in MENDABLE
        and key not in beside
        and (key[0] == tool or (key[1] == arguments_hash and arguments_hash != NO_ARGUMENTS))
    ]


def left_by(state: RunState) -> tuple[tuple[str, str], ...]:
    """What a run that has ended leaves unproven, for the run that started it: each tool, and how; the gravest last."""
    unknown = effects_in_doubt(state)
    left = {(key[0], 2 if key in unknown else int(code == UNVERIFIED)) for key, code in state.uncommitted.items()}
    gravest = sorted(left, key=lambda one: (-one[1], one[0]))[:LEFT_MAX]
    return tuple((tool, _LEFT[grade]) for tool, grade in sorted(gravest))


def claims_of_child(arrival: ChildEnded) -> dict[CallKey, str]:
    """The effects that a child leaves to its parent to answer for."""
    return {(tool, place_of_child(arrival.command_id)): code for tool, code in arrival.left}


def place_of_child(command_id: str) -> bytes:
    """What stands in place of arguments where an effect is one of a child."""
    return _CHILD + command_id.encode()


def left_with(command: StartChild, node: Node | None, ending: str) -> str:
    """Under which code the effect of a delegation is left, now that its child has ended so; empty where it is not.

    A child that its node declares was proposed by nobody, and tells itself what it proposed, as long as it is there.
    """
    is_lost = ending not in _ENDINGS
    if dict(command.lease).get(_SIDE_EFFECTS, 0) == 0 or ending in ANSWERED:
        return ""
    if node is not None and not (is_lost and node.inner is None):
        return ""
    return OUTCOME_UNKNOWN if is_lost else LEFT_BY_CHILD


def made_good_beneath(state: RunState, command: StartChild, observed: Collection[str]) -> list[CallKey]:
    """Effects that were left before and that a child which succeeded makes good.

    These are what earlier children of the same tool or node have left; what was left of tools of which it committed
    observations; and, where it may change something, proposals of the same tool or with the same arguments, as a committed
    call does. A delegation that did not fit into the budget was never begun either. What was proposed, or started, beside
    it was not meant in its place.
    """
    beside = {(call.tool, call.arguments_hash) for call in state.proposed} if command.call_id else set()
    may_change = bool(command.call_id) and dict(command.lease).get(_SIDE_EFFECTS, 0) > 0
    own = (command.tool, command.arguments_hash)
    good = [key for key in state.uncommitted if key == own and command.call_id]
    for key, code in state.uncommitted.items():
        if key in beside or key == own:
            continue
        if key[1].startswith(_CHILD):
            is_good = code in MENDABLE and _is_in_place(state, key, command, beside, observed)
        elif key[0] == own[0]:
            is_good = may_change and (code in MENDABLE or code in _TOO_DEAR)
        else:
            is_good = may_change and code in MENDABLE and key[1] == own[1] != NO_ARGUMENTS
        good += [key] if is_good else []
    return good


def _is_in_place(
    state: RunState, left: CallKey, command: StartChild, beside: Collection[CallKey], observed: Collection[str]
) -> bool:
    """Whether a child came after the one that left this, and in its place or with the same tool."""
    before = left[1].removeprefix(_CHILD).decode()
    asked = state.calls.get(before)
    if asked is not None and (asked.tool, asked.arguments_hash) in beside:
        return False
    if before.partition(".")[0] == command.id.partition(".")[0]:
        return False
    declared = next((child.node for child in state.children if child.command_id == before), "")
    is_same = asked.tool == command.tool if asked is not None else declared == command.node != ""
    return is_same or left[0] in observed


def has_changed_anything(tally: Tally) -> bool:
    """Whether any effect of the run, or of one beneath it, was committed, or happened as far as anybody knows."""
    if tally.state.effects_committed > 0 or "" in tally.uncommitted.values():
        return True
    tools = tally.state.tools
    if any(
        name in tools and tools[name].effect.is_mutating
        for name in (*tally.state.observed_below, *tally.observed_below)
    ):
        return True
    return UNVERIFIED in tally.uncommitted.values() or UNVERIFIED in tally.state.uncommitted.values()


def times_committed(tally: Tally, tool: str) -> int:
    """How many observations of a tool were committed, here and in runs beneath."""
    below = tally.state.observed_below.get(tool, 0) + tally.observed_below.get(tool, 0)
    return tally.state.committed.get(tool, 0) + tally.committed.count(tool) + below
