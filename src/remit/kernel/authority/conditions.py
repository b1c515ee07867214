"""Conditions of a boundary: rules of one line over a proposed call, written in CEL.

Rule 1: a condition sees the call, what its tool declares, what the gate found, what is left of the budget, who asks and
        when. Times are UTC.
Rule 2: of an argument it may ask only what the call has; name the tool first (`tool == "refund" && args.amount > 100`),
        since one that cannot be decided objects.
Rule 3: of a call whose arguments are too long to stand in a turn, only the short ones can be asked about. One that is
        named here and long is null: it is there, and whatever else is asked of it cannot be decided.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import INTEGER_MAX
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.limits.boundary import CONDITIONS_MAX, At, Boundary, Condition, Then
from remit.core.limits.budget import Dimension
from remit.core.limits.flags import SECRET_READ
from remit.core.limits.purchases import amount_in
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.run.contract import named_user
from remit.core.schema.json_text import kept_value
from remit.kernel.authority.call_flags import concerns_of, flags_now, people_in, persons_in, purchased_so_far
from remit.kernel.authority.outside_paths import paths_outside
from remit.kernel.graph.condition_view import clock_ms_used
from remit.kernel.graph.expressions import GuardType, Program, compiled_condition, condition_holds, environment
from remit.kernel.tally import Tally

if TYPE_CHECKING:
    from cel_expr_python import cel

CONDITIONS_INVALID = "CONDITIONS_INVALID"
# Conditions of a few boundaries.
_PROGRAMS_KEPT_MAX = 1024
# Enough to know an argument and a person by.
_PEOPLE_SHOWN_MAX, _SHOWN_CHARS_MAX = 3, 40
_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
# The first of January 1970 was a Thursday; weekdays count from Monday, 1, to Sunday, 7.
_FIRST_WEEKDAY = 3

# What a name stands for, given the call, its tool and the tally of the turn.
Value = Callable[[ProposedCall, ToolDefinition, Tally], object]


def hour_of(at_ms: int) -> int:
    """The hour of a moment, 0 to 23, in UTC."""
    return at_ms % _DAY_MS // _HOUR_MS


def weekday_of(at_ms: int) -> int:
    """The day of the week of a moment, 1 for Monday to 7 for Sunday, in UTC."""
    return (at_ms // _DAY_MS + _FIRST_WEEKDAY) % 7 + 1


def _arguments(call: ProposedCall, tool: ToolDefinition, tally: Tally) -> Any:
    text = call.arguments if isinstance(call.arguments, str) else call.abridged
    return kept_value(text) if text else {}


def _users(call: ProposedCall, tool: ToolDefinition, tally: Tally) -> list[str]:
    """The people that a call is about: what stands in arguments that the tool declares as such, or that are called so."""
    return people_in(_arguments(call, tool, tally), tool, tally.manifest.boundary)


def persons_told(condition: Condition, call: ProposedCall, tool: ToolDefinition, tally: Tally) -> str:
    """Which arguments name which people, who asks, and what to do; empty of a condition that looks at none."""
    if "users" not in parse_condition(condition.when).names:
        return ""
    boundary, user = tally.manifest.boundary, named_user(tally.manifest.request)
    people = persons_in(_arguments(call, tool, tally), tool, boundary)
    told = ", ".join([f"{one.path}={one.value[:_SHOWN_CHARS_MAX]!r}" for one in people[:_PEOPLE_SHOWN_MAX]])
    if not told:
        return ""
    who = f"the user who asks is {user[:_SHOWN_CHARS_MAX]!r}" if user else "the request names no user"
    kinds = ", ".join(dict.fromkeys(one.kind for one in people))
    return f"{told}, and {who}; say who asks with --user or user_id=, or take {kinds} out of `identities` where that names no user"


def _purchase(call: ProposedCall, tool: ToolDefinition, tally: Tally) -> int:
    return amount_in(_arguments(call, tool, tally), tool)


def _purchase_max(call: ProposedCall, tool: ToolDefinition, tally: Tally) -> int:
    most = tally.manifest.boundary.purchase_max
    return INTEGER_MAX if most is None else most


def _has_read_secret(call: ProposedCall, tool: ToolDefinition, tally: Tally) -> bool:
    return "secret" in call.labels or SECRET_READ in flags_now(tally)


def _ungrounded(call: ProposedCall, tool: ToolDefinition, tally: Tally) -> list[str]:
    return list(tally.state.result.ungrounded if tally.ungrounded is None else tally.ungrounded)


def looks_for_assertions(boundary: Boundary) -> bool:
    """Whether a condition looks at what an answer presents as verified, so that what was shown has to be followed."""
    return any("ungrounded" in condition.when for condition in boundary.conditions)


def _left_of(dimension: Dimension) -> Value:
    if dimension is Dimension.WALL_CLOCK_MS:
        return lambda _, __, tally: tally.state.spending.caps[dimension] - clock_ms_used(tally)
    return lambda _, __, tally: tally.left[dimension]


_S, _I, _B = GuardType.STRING, GuardType.INT, GuardType.BOOL

# Name, type, meaning, value.
CONDITION_NAMES: Mapping[str, tuple[GuardType, str, Value]] = MappingProxyType(
    {
        "tool": (_S, "name of the tool", lambda call, tool, tally: tool.name),
        "category": (_S, "its category, empty without one", lambda call, tool, tally: tool.category or ""),
        "effect": (_S, "none, read, write or external", lambda call, tool, tally: tool.effect.value),
        "changes": (_B, "it writes or acts outside", lambda call, tool, tally: tool.effect.is_mutating),
        "destructive": (_B, "it declares that it destroys", lambda call, tool, tally: tool.destructive),
        "network": (_B, "it declares that it uses the network", lambda call, tool, tally: bool(tool.network)),
        "local": (_B, "it declares that it uses no network", lambda call, tool, tally: tool.network is False),
        "leaves_the_machine": (
            _B,
            "data may leave with the call",
            lambda call, tool, tally: bool(tool.network) or tool.effect is Effect.EXTERNAL,
        ),
        "idempotent": (_B, "it may be repeated with the same key", lambda call, tool, tally: tool.idempotent),
        "cost_microusd": (
            _I,
            "what a call costs, in millionths of a dollar",
            lambda call, tool, tally: tool.cost_microusd,
        ),
        "reads": (_S, "public, private or secret", lambda call, tool, tally: tool.trust.reads.value),
        "has_blast_radius": (_B, "it declares what it reaches", lambda call, tool, tally: bool(tool.blast_radius)),
        "has_rollback": (_B, "it declares how it is undone", lambda call, tool, tally: bool(tool.rollback)),
        "untrusted_output": (
            _B,
            "its results may hold words of strangers",
            lambda call, tool, tally: tool.untrusted_output,
        ),
        "args": (GuardType.OBJECT, "the arguments of the call", _arguments),
        "users": (
            GuardType.TEXTS,
            "people that the call is about: arguments of the kinds in `identities`, or called after them",
            _users,
        ),
        "paths_outside": (
            GuardType.TEXTS,
            "arguments that are paths, and absolute or climbing with `..`",
            lambda call, tool, tally: paths_outside(
                _arguments(call, tool, tally), tool, is_whole=isinstance(call.arguments, str)
            ),
        ),
        "concerns": (
            GuardType.TEXTS,
            "what calls of the tool are about, as it or the boundary declares",
            lambda call, tool, tally: concerns_of(tool, tally.manifest.boundary),
        ),
        "flags": (GuardType.TEXTS, "flags that results have raised so far", lambda call, tool, tally: flags_now(tally)),
        "purchase": (_I, "what the call spends, in the smallest unit; -1 when that is unknown", _purchase),
        "purchased": (
            _I,
            "what purchases of the run come to so far",
            lambda call, tool, tally: purchased_so_far(tally),
        ),
        "purchase_max": (_I, "what they may come to", _purchase_max),
        "secret_read": (_B, "a secret was read, by its tool's word or by its looks", _has_read_secret),
        "carries_secret": (
            _B,
            "something in the arguments looks like a secret",
            lambda call, tool, tally: call.carries_secret,
        ),
        "ungrounded": (GuardType.TEXTS, "what the answer presents as verified and no call has shown", _ungrounded),
        "rejections": (
            _I,
            "calls that a person, or silence, has denied, in this run, above and beneath it",
            lambda call, tool, tally: tally.state.people.rejections,
        ),
        "bound": (
            _B,
            "the gate found every value bound",
            lambda call, tool, tally: call.provenance is Provenance.BOUND,
        ),
        "objection": (_S, "the gate's objection, empty without one", lambda call, tool, tally: call.objection),
        "labels": (GuardType.TEXTS, "what was read so far", lambda call, tool, tally: list(call.labels)),
        "user": (_S, "who asks, empty when not said", lambda call, tool, tally: tally.manifest.request.user_id),
        "user_named": (
            _B,
            "the request says who asks, and it is not the operating system's user for want of a name",
            lambda call, tool, tally: bool(named_user(tally.manifest.request)),
        ),
        "tenant": (_S, "for whom, empty when not said", lambda call, tool, tally: tally.manifest.request.tenant_id),
        "channel": (
            _S,
            "how the caller reaches remit, empty when not said",
            lambda call, tool, tally: "" if tally.manifest.principal is None else tally.manifest.principal.channel,
        ),
        "agent": (
            _S,
            "the agent that calls, empty for a run that no agent speaks for",
            lambda call, tool, tally: next(reversed(tally.manifest.agents), ""),
        ),
        "role": (_S, "the role of the run", lambda call, tool, tally: tally.manifest.role.value),
        "depth": (_I, "how many runs stand above this one", lambda call, tool, tally: tally.manifest.depth),
        "hour": (_I, "0 to 23, UTC", lambda call, tool, tally: hour_of(tally.at_ms)),
        "weekday": (
            _I,
            "1 Monday to 7 Sunday, UTC",
            lambda call, tool, tally: weekday_of(tally.at_ms),
        ),
        "at_ms": (_I, "milliseconds since 1970", lambda call, tool, tally: tally.at_ms),
        "denials": (
            _I,
            "calls denied so far, in this run, above and beneath it",
            lambda call, tool, tally: tally.state.counts.denials,
        ),
        "effects_committed": (_I, "changes made so far", lambda call, tool, tally: tally.state.effects.count),
        "failures_after_change": (
            _I,
            "calls that failed since the last change",
            lambda call, tool, tally: tally.state.effects.failures_after_change,
        ),
        **{
            f"left_{dimension.name.lower()}": (_I, f"what is left of `{dimension.name.lower()}`", _left_of(dimension))
            for dimension in Dimension
        },
    }
)
# What the tool and the boundary alone decide, whatever the call.
SETTLED_NAMES = frozenset(
    {
        *(
            "tool",
            "category",
            "effect",
            "changes",
            "destructive",
            "network",
            "local",
            "leaves_the_machine",
            "idempotent",
        ),
        *("cost_microusd", "reads", "has_blast_radius", "has_rollback", "untrusted_output", "concerns"),
    }
)
_NO_CALL = ProposedCall("", "", "", b"")
# What only the gate of provenance can tell.
TRACED_NAMES = ("bound", "objection", "labels")
# A name stands for itself where it is neither part of a longer one, nor a field of something, nor begins a quoted text.
_NOT_WITHIN = r"""(?<![\w"'])(?<![\w\])]\.)"""
CONDITION_VIEW: Mapping[str, GuardType] = MappingProxyType({name: entry[0] for name, entry in CONDITION_NAMES.items()})


def check_conditions(boundary: Boundary) -> None:
    """Refuse a boundary with a condition that cannot be decided; a run must not find out at its first call."""
    if len(boundary.conditions) > CONDITIONS_MAX:
        message = f"boundary {boundary.name} has {len(boundary.conditions)} conditions, conditions_max={CONDITIONS_MAX}"
        raise RequestRejected(CONDITIONS_INVALID, message)
    for condition in boundary.conditions:
        parse_condition(condition.when)
        if condition.at is not At.CALL and condition.then is not Then.STOP:
            message = (
                f"condition {condition.name} of boundary {boundary.name} looks at an {condition.at}, where it can only "
                f"stop; use then: stop, not {condition.then}"
            )
            raise RequestRejected(CONDITIONS_INVALID, message)
        traced = [name for name in TRACED_NAMES if re.search(rf"{_NOT_WITHIN}{name}\b", condition.when)]
        if traced and boundary.authority is None:
            message = (
                f"condition {condition.name} of boundary {boundary.name} asks for {', '.join(traced)}, which only a traced "
                "run has; give the boundary `authority`"
            )
            raise RequestRejected(CONDITIONS_INVALID, message)


def objecting(
    call: ProposedCall, tool: ToolDefinition, tally: Tally, doing: tuple[Then, ...], at: At = At.CALL
) -> Iterator[tuple[Condition, bool]]:
    """The conditions that do one of these things and hold of a call, or cannot be decided; and whether one was."""
    values: dict[str, object] = {}
    for condition in tally.manifest.boundary.conditions:
        if condition.then not in doing or condition.at is not at:
            continue
        program = parse_condition(condition.when)
        for name in program.names:
            if name not in values:
                values[name] = CONDITION_NAMES[name][2](call, tool, tally)
        if (says := condition_holds(program, {name: values[name] for name in program.names})) is not False:
            yield condition, says is True


def says_always(source: str, tool: ToolDefinition, boundary: Boundary) -> bool | None:
    """What a text of SETTLED_NAMES alone says of every call of a tool; None where it cannot be decided."""
    program = parse_condition(source)
    stand: Any = SimpleNamespace(manifest=SimpleNamespace(boundary=boundary))
    return condition_holds(program, {name: CONDITION_NAMES[name][2](_NO_CALL, tool, stand) for name in program.names})


def holds_always(condition: Condition, tool: ToolDefinition, boundary: Boundary) -> bool:
    """Whether a condition objects to every call of a tool, by what the tool and the boundary declare."""
    is_settled = SETTLED_NAMES.issuperset(parse_condition(condition.when).names)
    return is_settled and says_always(condition.when, tool, boundary) is not False


# A pure memo: the same text always gives an equal program.
@lru_cache(maxsize=_PROGRAMS_KEPT_MAX)
def parse_condition(source: str) -> Program:
    """Check a condition and make it ready to evaluate, or raise GuardRefused."""
    return compiled_condition(source, CONDITION_VIEW, _environment())


@lru_cache(maxsize=1)
def _environment() -> "cel.Env":
    return environment(CONDITION_VIEW)
