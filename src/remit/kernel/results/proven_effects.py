"""Proven effects: which observations may become task state, and which effects a run may not assert.

Rule 1: only a verified observation is committed: it returned, kept its result schema, and its own check agreed. Of a
        change, one of the two must have been able to say no (core/limits/verification.py). A change in doubt is committed by the
        yes of its tool or of a person, who could have said no, whatever is known of its result.
Rule 2: intended, attempted and observed effects are not facts. Assumed ones do not exist.
Rule 3: an effect the run proposed and never committed is unproven.
Rule 4: a delegation whose lease has side effects is such a proposal: refused, failed or lost, what it was to change counts
        as left. Of a lost one it is unknown what it has changed.
Rule 5: what was left is made good by what was done in its place, and by no words: a tool that a child left, by a later
        committed call of that tool, here or beneath; a delegation, by a later one of its tool that succeeds and beneath
        which an effect was committed. Exactly the same delegation makes both good by succeeding. What was refused for
        want of authority, or by a person, is made good by exactly the same alone.
"""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType

from remit.core.failure import ANSWERED, Ending, ErrorCode, Refusal
from remit.core.journal.arrivals import ChildEnded, ModelAnswered, ToolReturned
from remit.core.journal.commands import CallTool, CancelCommand, StartChild, place_in_journal
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import (
    ARGUMENTS_INVALID,
    LEFT_BY_CHILD,
    NOT_TAKEN,
    OUTCOME_UNKNOWN,
    REFUSED_IN_CHILD,
    UNALLOWED,
    UNVERIFIED,
    Rung,
)
from remit.core.limits.budget import Dimension
from remit.core.limits.tools import ToolDefinition, may_change
from remit.core.record import Text, digest_of
from remit.core.work.graph import Node
from remit.kernel.state import CallKey, RunState
from remit.kernel.tally import Tally
from remit.kernel.traces import CallTrace

# Why no call was made of a proposed effect, in words.
NEVER_CALLED: Mapping[str, str] = MappingProxyType(
    {
        ErrorCode.TOOL_NOT_FOUND: "no such tool",
        ARGUMENTS_INVALID: "invalid arguments",
        NOT_TAKEN: "approved and never made",
    }
)
# What a later call can make good.
MENDABLE = frozenset({*NEVER_CALLED, LEFT_BY_CHILD})
# What was left undone, and is no false assertion of this run's own.
UNDONE = MENDABLE | {REFUSED_IN_CHILD}
# What a delegation was refused for that may well be begun later.
_TOO_DEAR = frozenset({Refusal.BUDGET_EXHAUSTED, Refusal.RATE_LIMITED})
# Of what a child was refused: what authority or a person has objected to, and not what there was no budget for.
_AUTHORITY = frozenset({*Refusal, REFUSED_IN_CHILD}) - _TOO_DEAR - {Refusal.REPEATED_CALL}
# What happened as far as is known, or may have: nothing that is done later takes its place.
_BEYOND_MENDING = frozenset({UNVERIFIED, OUTCOME_UNKNOWN})
NO_ARGUMENTS = digest_of(b"{}")
# What stands for the arguments of an effect that a child left: this, and the command that started it; where it was
# refused, the hash of its arguments follows.
_CHILD, _HASH = b"child:", b"#"
# Why a call that an ending cut off was never made.
NOT_ANSWERED = "the run ended before a person had answered"
NOT_JUDGED = "the run ended before the call was made"
# As many effects of a child as its parent is told of.
LEFT_MAX = 10
# What a child leaves of an effect: undone, done as far as is known, or unknown.
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


def unfit_result(arrival: ToolReturned) -> str:
    """The violations of a result against the schema of its tool, in words; empty where there are none."""
    return "; ".join([f"result {one.path or '/'}: {one.message}" for one in arrival.violations])


def stops_loop(arrival: ToolReturned, tool: ToolDefinition) -> bool:
    """Whether a verified result is the answer of the run: its tool may say so, does, and has something to say."""
    return arrival.stop_loop and tool.may_stop_loop and bool(arrival.content)


def unproven_effects(tally: Tally) -> Mapping[CallKey, str]:
    """Effects that were proposed and never committed, with the code that says why.

    One that was said not to have happened, and returned after all, is as unverified as if it had returned at once.
    """
    effects = {**tally.state.effects.uncommitted, **tally.uncommitted}
    after_all = {(one.tool, one.arguments_hash): one.code for one in _returned_after_all(tally.state)}
    unproven = {key: UNVERIFIED if after_all.get(key) == code else code for key, code in effects.items() if code}
    # One that was committed later proves nothing of the same one before it, which nothing could have refused.
    made = [one for one in tally.state.calls.made.values() if one.mutating and one.code == UNVERIFIED]
    return {**{(one.tool, one.arguments_hash): UNVERIFIED for one in made}, **unproven}


def _returned_after_all(state: RunState) -> list[CallTrace]:
    """The changes that were said not to have happened and returned since; what they returned is not checked any more."""
    return [state.calls.made[name] for name, late in state.end.late.items() if late.was_denied and late.is_returned]


def happened_calls(state: RunState) -> list[CallTrace]:
    """The calls that changed something as far as is known. Whatever was proposed since takes nothing back of them."""
    seen = (_COMMITTED, "")
    made = [one for one in state.calls.made.values() if one.mutating]
    return [
        *[one for one in made if one.code == UNVERIFIED or (one.rung, one.code) == seen],
        *_returned_after_all(state),
    ]


def unknown_effects(tally: Tally) -> Mapping[CallKey, str]:
    """Effects whose tool failed within and that were not heard of since: it is unknown whether they happened."""
    before = [key for key in tally.state.effects.unknown if tally.uncommitted.get(key) not in ("", UNVERIFIED)]
    now = [key for key, code in tally.uncommitted.items() if code == OUTCOME_UNKNOWN]
    return dict.fromkeys([*before, *now], OUTCOME_UNKNOWN)


def effects_in_doubt(state: RunState) -> Mapping[CallKey, str]:
    """The effects of which it is unknown whether they happened: calls in doubt, and calls whose tool failed within."""
    doubted = [state.calls.made[command_id] for command_id in state.commands.doubted]
    return dict.fromkeys(
        [*((trace.tool, trace.arguments_hash) for trace in doubted), *state.effects.unknown], OUTCOME_UNKNOWN
    )


def unproven_in_words(tool: str, digest: bytes, code: str) -> str:
    """An unproven effect as a message names it: by the tool and a short hash of the arguments, or by what kept it."""
    if digest.startswith(_CHILD):
        return child_effect_in_words(tool, _child_in(digest))
    if code in NEVER_CALLED:
        return f"{tool} ({NEVER_CALLED[code]})"
    return f"{tool}#{digest.hex()[:8]}"


def child_effect_in_words(tool: str, command_id: str) -> str:
    """An effect that a child left, as a message names it."""
    return f"{tool} (in child {command_id})"


def made_good(state: RunState, command: CallTool) -> list[CallKey]:
    """Proposals that no call was ever made of and that this committed call makes good: of the same tool, or arguments.

    Where there are no arguments nothing shows that two tools were meant to do the same. What the same answer proposed
    was meant beside this call, and not in its place; no other answer comes before all of its calls are settled. What a
    child was refused is made good by exactly the same call.
    """
    tool, arguments_hash = command.tool, command.arguments_hash
    # As a rule there is none, and unverified effects may be many.
    if UNDONE.isdisjoint(state.effects.uncommitted.values()):
        return []
    beside = {(call.tool, call.arguments_hash) for call in state.calls.proposed}
    return [
        key
        for key, code in state.effects.uncommitted.items()
        if (
            code in MENDABLE
            and key not in beside
            and (key[0] == tool or (key[1] == arguments_hash and arguments_hash != NO_ARGUMENTS))
        )
        or (
            code == REFUSED_IN_CHILD
            and (key[0], _hash_in(key[1])) == (tool, arguments_hash)
            and _asked_for(state, key) not in beside
        )
    ]


def left_by(state: RunState) -> tuple[tuple[str, str], ...]:
    """What a run that has ended leaves unproven, for the run that started it: each tool, and how.

    Of one that is about to be cut off, whatever is under way may yet happen.
    """
    unknown, is_open = effects_in_doubt(state), state.end.ending is None
    left = {
        (key[0], 2 if key in unknown or (is_open and code == Rung.ATTEMPTED) else int(code == UNVERIFIED))
        for key, code in state.effects.uncommitted.items()
        if key in unknown or code not in _AUTHORITY
    }
    done = [(tool, 1) for tool in tools_unverified(state)]
    return _gravest([*sorted(left), *done, *[(trace.tool, 0) for trace in cut_off_calls(state) if trace.mutating]])


def tools_unverified(state: RunState) -> tuple[str, ...]:
    """Tools of a run, or of a child that has ended, that changed something as far as is known, and that nothing verified.

    Whatever was proposed since, and came of that, takes nothing back of a call that was made.
    """
    made = [trace.tool for trace in state.calls.made.values() if trace.code == UNVERIFIED]
    left = [tool for (tool, _), code in state.effects.uncommitted.items() if code == UNVERIFIED]
    return tuple(dict.fromkeys([*made, *left]))


def tools_uncommitted(state: RunState) -> tuple[str, ...]:
    """Tools whose effect a run, or a child that has ended, proposed and has not done, as far as is known."""
    left = [tool for (tool, _), code in state.effects.uncommitted.items() if code != UNVERIFIED]
    left += [trace.tool for trace in state.calls.made.values() if trace.code == UNALLOWED]
    cut_off = [] if state.end.ending is None else [trace.tool for trace in cut_off_calls(state) if trace.mutating]
    return tuple(dict.fromkeys([*left, *cut_off]))


def all_left(parts: Iterable[tuple[tuple[str, str], ...]]) -> tuple[tuple[str, str], ...]:
    """The effects that several runs left unproven, in one list; of too many the gravest are kept."""
    return _gravest([(tool, _LEFT.index(code)) for part in parts for tool, code in part])


def _gravest(left: Iterable[tuple[str, int]]) -> tuple[tuple[str, str], ...]:
    gravest = sorted(dict.fromkeys(left), key=lambda one: (-one[1], one[0]))[:LEFT_MAX]
    return tuple((tool, _LEFT[grade]) for tool, grade in sorted(gravest))


def cut_off_calls(state: RunState) -> list[CallTrace]:
    """The calls that an ending cut off: those that were held, and of those proposed last the ones not yet judged.

    The question about a held call is withdrawn when the run ends, and nothing else tells of the call. A model may use the
    id of a call again, so only what came after the model was asked is about those that were proposed last.
    """
    held = [] if state.end.ending is None else _held_to_the_end(state)
    if not state.calls.proposed:
        return held
    asked = [said.command_id for said in state.talk.context if isinstance(said, ModelAnswered)][-1:]
    since = place_in_journal(asked[0])[0] if asked else -1
    made = [trace for command_id, trace in state.calls.made.items() if place_in_journal(command_id)[0] > since]
    refused = [trace for trace in state.calls.refused if trace.seq > since]
    settled = {(trace.call_id, trace.tool) for trace in (*made, *refused, *held)}
    left = [call for call in state.calls.proposed if (call.call_id, call.tool) not in settled]
    return [*held, *[never_made(state, call, NOT_JUDGED) for call in left]]


def _held_to_the_end(state: RunState) -> list[CallTrace]:
    """The calls that were held when the run ended, but for those that an agent elsewhere made all the same."""
    if not state.calls.withdrawn:
        return []
    made = [(one.call_id, one.tool, one.arguments_hash) for one in state.calls.made.values() if one.code == UNALLOWED]
    return [one for one in state.calls.withdrawn if (one.call_id, one.tool, one.arguments_hash) not in made]


def never_made(state: RunState, call: ProposedCall, why: str) -> CallTrace:
    """A proposal that an ending cut off, and that was neither made nor refused."""
    tool = state.derived.tools.get(call.tool)
    return CallTrace(
        call.call_id,
        call.tool,
        call.arguments_hash,
        Rung.INTENDED,
        mutating=tool is None or may_change(tool),
        arguments=call.arguments,
        code=ErrorCode.CANCELLED_SIGNAL.value,
        seq=state.seq,
        reason=why,
    )


def cut_off_beneath(state: RunState) -> list[str]:
    """The runs still under way beneath a run that has ended, or is about to: they are cancelled, and it never hears of them."""
    cut = [one for one in state.commands.parting if isinstance(one, CancelCommand) and one.run_id]
    ended = [command.run_id for command in cut if place_in_journal(command.id)[0] == state.end.seq]
    return ended + [command.run_id for command in state.commands.open.values() if isinstance(command, StartChild)]


def refused_by(state: RunState) -> tuple[CallKey, ...]:
    """The effects that a run which has ended was refused for want of authority, or by a person, here and beneath."""
    unknown = effects_in_doubt(state)
    refused = {
        (tool, _hash_in(place) if code == REFUSED_IN_CHILD else place)
        for (tool, place), code in state.effects.uncommitted.items()
        if code in _AUTHORITY and (tool, place) not in unknown
    }
    return tuple(sorted(refused)[:LEFT_MAX])


def unproven_in_child(arrival: ChildEnded) -> dict[CallKey, str]:
    """The effects that a child leaves to its parent to answer for."""
    place = place_of_child(arrival.command_id)
    refused = {(tool, place + _HASH + digest): REFUSED_IN_CHILD for tool, digest in arrival.refused}
    return {**{(tool, place): code for tool, code in arrival.left}, **refused}


def place_of_child(command_id: str) -> bytes:
    """What stands in place of arguments where an effect is one of a child."""
    return _CHILD + command_id.encode()


def _child_in(place: bytes) -> str:
    return place.removeprefix(_CHILD).partition(_HASH)[0].decode()


def _hash_in(place: bytes) -> bytes:
    return place.partition(_HASH)[2]


def left_with(command: StartChild, node: Node | None, ending: str) -> str:
    """Under which code the effect of a delegation is left, now that its child has ended so; empty where it is not.

    A child that its node declares was not proposed, and tells itself what it proposed, as long as it is there.
    """
    is_lost = ending not in _ENDINGS
    if dict(command.lease).get(_SIDE_EFFECTS, 0) == 0 or ending in ANSWERED:
        return ""
    if node is not None and not (is_lost and node.inner is None):
        return ""
    return OUTCOME_UNKNOWN if is_lost else LEFT_BY_CHILD


def made_good_beneath(
    state: RunState, command: StartChild, observed: Collection[str], *, has_succeeded: bool
) -> list[CallKey]:
    """Effects that were left before and that a child makes good, by what was committed beneath it, or by succeeding.

    What was proposed, or started, beside it was not meant in its place.
    """
    proposed = [(call.tool, call.arguments_hash) for call in state.calls.proposed] if command.call_id else []
    own: CallKey | tuple[str, Text] = (command.tool, command.arguments_hash)
    if command.call_id:
        beside = {key for key in proposed if key != own or proposed.count(key) > 1}
    else:
        own, beside = (command.node, command.prompt), set()
    has_changed = has_succeeded and any(_is_effect(state, tool) for tool in observed)
    good = []
    for key, code in state.effects.uncommitted.items():
        asked = _asked_for(state, key)
        if code in _BEYOND_MENDING or (asked in beside and key != own) or _began_with(key, command):
            continue
        is_same = has_succeeded and asked == own
        is_redone = code in MENDABLE and key[0] in observed
        if is_same or is_redone or (has_changed and _is_like(key, code, command)):
            good.append(key)
    return good


def _asked_for(state: RunState, left: CallKey) -> CallKey | tuple[str, Text] | None:
    """What was proposed when this was left: the call itself, or the delegation, or what the node of the child asked for."""
    if not left[1].startswith(_CHILD):
        return left
    before = _child_in(left[1])
    if (asked := state.calls.made.get(before)) is not None:
        return asked.tool, asked.arguments_hash
    return next(((child.node, child.prompt) for child in state.children.ended if child.command_id == before), None)


def _began_with(left: CallKey, command: StartChild) -> bool:
    """Whether the child that left this was started in the same turn as this one."""
    return left[1].startswith(_CHILD) and _child_in(left[1]).partition(".")[0] == command.id.partition(".")[0]


def _is_like(left: CallKey, code: str, command: StartChild) -> bool:
    """Whether this is a delegation of the same tool, or a proposal with the same arguments, that was never begun or failed."""
    if left[0] == command.tool:
        return code in MENDABLE or code in _TOO_DEAR
    return code in MENDABLE and left[1] == command.arguments_hash != NO_ARGUMENTS


def _is_effect(state: RunState, tool: str) -> bool:
    return tool in state.derived.tools and state.derived.tools[tool].effect.is_mutating


def has_changed_anything(tally: Tally) -> bool:
    """Whether any effect of the run, or of one beneath it, was committed, or happened as far as is known."""
    if tally.state.effects.count > 0 or "" in tally.uncommitted.values():
        return True
    if any(_is_effect(tally.state, name) for name in (*tally.state.effects.observed_below, *tally.observed_below)):
        return True
    return UNVERIFIED in unproven_effects(tally).values() or bool(happened_calls(tally.state))


def times_committed(tally: Tally, tool: str) -> int:
    """How many observations of a tool were committed, here and in runs beneath."""
    below = tally.state.effects.observed_below.get(tool, 0) + tally.observed_below.get(tool, 0)
    return tally.state.effects.committed.get(tool, 0) + tally.committed.count(tool) + below
