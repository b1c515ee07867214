"""Boundaries in words: what one says, and what a second one allows more than a first, what less, and what merely otherwise.

Rule 1: one difference per key of the file. A set is compared member by member, `+` for what the second has and `-` for
        what only the first had.
Rule 2: whatever puts a person, a cap or a condition between the model and the world allows less; whatever takes one
        away allows more. What cannot be ordered, such as another queue, is said to be other.
Rule 3: caps are compared as a run would be given them: what a boundary leaves open has the standard cap.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from remit.core.durations import said_duration
from remit.core.limits.authority import (
    Authority,
    Beyond,
    Confirm,
    Inference,
    Maker,
    OptionReach,
    PlanSource,
    StandsFor,
)
from remit.core.limits.boundary import (
    At,
    Boundary,
    BoundaryMode,
    Condition,
    Demanding,
    Exhaustion,
    Rate,
    TaskRule,
    Then,
    Unverified,
    Whose,
    boundary_version,
)
from remit.core.limits.boundary_views import BoundaryLine, BoundaryShown, Difference
from remit.core.limits.budget import FIELDS, STANDARD, UNCHARGED, Budget, Dimension, assign
from remit.core.limits.tool_trust import READS_RANK
from remit.orchestrate.boundaries.boundary_file import boundary_said, boundary_yaml
from remit.orchestrate.boundaries.value_reader import ALL, MICRO_OF_A_DOLLAR

_Found = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
_SAME: _Found = ((), (), ())

# From the least that happens without a person to the most.
_STRICT = (Then.STOP, Then.REFUSE, Then.ASK)
_MODES = (BoundaryMode.ENFORCE, BoundaryMode.AUDIT)
_REACHES = (OptionReach.OFF, OptionReach.ON, OptionReach.ALL)
_INFERENCES = (Inference.OFF, Inference.TYPED, Inference.IDENTITY)

# What each of the other dimensions counts: one, and several.
_UNITS: Mapping[str, tuple[str, str]] = {
    FIELDS[dimension]: units
    for dimension, units in {
        Dimension.INPUT_TOKENS: ("token", "tokens"),
        Dimension.OUTPUT_TOKENS: ("token", "tokens"),
        Dimension.TOOL_CALLS: ("call", "calls"),
        Dimension.EXTERNAL_API_CALLS: ("call", "calls"),
        Dimension.RETRIES: ("in a row", "in a row"),
        Dimension.REFLECTION_PASSES: ("pass", "passes"),
        Dimension.CONTEXT_TOKENS: ("token at once", "tokens at once"),
        Dimension.MEMORY_WRITES: ("write", "writes"),
        Dimension.SIDE_EFFECTS: ("change", "changes"),
        Dimension.STEPS: ("step", "steps"),
        Dimension.DEPTH: ("level", "levels"),
        Dimension.CHILD_RUNS: ("run", "runs"),
        Dimension.HUMAN_REVIEWS: ("question", "questions"),
    }.items()
}
_UNVERIFIED = {
    Unverified.OBSERVE: "observe: a change that nothing verifies is kept as observed, and its run ends PARTIAL_SUCCESS",
    Unverified.REFUSE: "refuse: no run begins with a tool that changes something and that nothing verifies",
}
_DEMANDS = {
    Demanding.SHOW: "show: what a tool's category demands and it lacks is shown to those who check and approve",
    Demanding.ENFORCE: "enforce: no run begins with a tool that lacks what its category demands",
}
# What each outcome of a condition does.
DOES = {Then.ASK: "asks a person", Then.REFUSE: "refuses the call", Then.STOP: "stops the run"}


def described_boundary(boundary: Boundary) -> BoundaryShown:
    """A boundary by its six dimensions, its gate and its conditions."""
    lines = tuple(BoundaryLine(*line) for line in _lines(boundary))
    version, said = boundary_version(boundary), boundary_said(boundary)
    return BoundaryShown(
        name=boundary.name, version=version, mode=boundary.mode, lines=lines, said=said, yaml=boundary_yaml(boundary)
    )


def differences(first: Boundary, second: Boundary) -> tuple[Difference, ...]:
    """Everything in which two boundaries differ, in the order of their files; empty when they are the same."""
    return tuple(Difference(key, *found) for key, found in _compared(first, second) if found != _SAME)


def _compared(first: Boundary, second: Boundary) -> Iterator[tuple[str, _Found]]:
    for key, (field, compare) in _FIELDS.items():
        if key == _BUDGET:
            yield from _budgets(first.budget, second.budget)
        elif key == _AUTHORITY:
            yield from _authorities(first.authority, second.authority)
        else:
            yield key, compare(getattr(first, field), getattr(second, field))


def _otherwise(before: Any, after: Any) -> _Found:
    return _SAME if before == after else ((), (), (_arrow(before, after),))


def _amount(before: int, after: int, say: Callable[[int], str] = str) -> _Found:
    """More of it allows more."""
    if before == after:
        return _SAME
    said = (_arrow(say(before), say(after)),)
    return (said, (), ()) if after > before else ((), said, ())


def _ranked(order: Sequence[Any]) -> Callable[[Any, Any], _Found]:
    """What stands later in this order allows more."""

    def compare(before: Any, after: Any) -> _Found:
        return _amount(order.index(before), order.index(after), lambda at: str(order[at]).lower())

    return compare


def _granted(before: Sequence[str] | None, after: Sequence[str] | None) -> _Found:
    """A set whose members are allowed; None is everything."""
    if before is None or after is None:
        said = (_arrow(_listed(before), _listed(after)),)
        return _SAME if before == after else (said, (), ()) if after is None else ((), said, ())
    gained = tuple(f"+ {one}" for one in after if one not in before)
    lost = tuple(f"- {one}" for one in before if one not in after)
    if gained or lost:
        return gained, lost, ()
    return _otherwise(_listed(before), _listed(after))


def _demanded(before: Sequence[str], after: Sequence[str]) -> _Found:
    """A set whose members take something away."""
    gained, lost, other = _granted(before, after)
    return lost, gained, other


def _concerned(concerns: Sequence[tuple[str, tuple[str, ...]]]) -> tuple[str, ...]:
    return tuple(f"{name}: {tool}" for name, tools in concerns for tool in tools)


def _limits(before: int | None, after: int | None) -> _Found:
    """None is no limit, which allows the most."""
    if before is None or after is None:
        said = (_arrow("none" if before is None else str(before), "none" if after is None else str(after)),)
        return _SAME if before == after else (said, (), ()) if after is None else ((), said, ())
    return _amount(before, after)


def _tables(before: Sequence[tuple[str, str]], after: Sequence[tuple[str, str]]) -> _Found:
    """What is said of single names, none of it more or less than the other."""
    was, becomes = dict(before), dict(after)
    names = [name for name in {**was, **becomes} if was.get(name) != becomes.get(name)]
    said = tuple(f"{name}: {_arrow(was.get(name, 'as usual'), becomes.get(name, 'as usual'))}" for name in names)
    return ((), (), said) if said else _otherwise(_listed(list(was)), _listed(list(becomes)))


def _exhaustions(before: Sequence[tuple[str, Exhaustion]], after: Sequence[tuple[str, Exhaustion]]) -> _Found:
    """Whatever is not a stop lets a run go on."""
    was, becomes = dict(before), dict(after)
    found: dict[str, list[str]] = {"more": [], "less": [], "other": []}
    for name in {**was, **becomes}:
        old, new = was.get(name, Exhaustion.STOP), becomes.get(name, Exhaustion.STOP)
        if old is not new:
            side = "more" if old is Exhaustion.STOP else "less" if new is Exhaustion.STOP else "other"
            found[side].append(f"{name}: {_arrow(old, new)}")
    if not any(found.values()):
        return _otherwise(_listed(list(was)), _listed(list(becomes)))
    return tuple(found["more"]), tuple(found["less"]), tuple(found["other"])


def _conditions(before: Sequence[Condition], after: Sequence[Condition]) -> _Found:
    """A condition takes something away. One that is worded otherwise may do either."""
    was, becomes = {one.name: one for one in before}, {one.name: one for one in after}
    more = [f"- {name}" for name in was if name not in becomes]
    less = [f"+ {name}" for name in becomes if name not in was]
    other: list[str] = []
    for name in [name for name in was if name in becomes and was[name] != becomes[name]]:
        old, new = was[name], becomes[name]
        if old.when != new.when:
            other.append(f"{name}: {_arrow(old.when, new.when)}")
        elif old.then is not new.then:
            side = more if _STRICT.index(new.then) > _STRICT.index(old.then) else less
            side.append(f"{name}: {_arrow(old.then, new.then)}")
        else:
            other.append(f"{name}: {_arrow(repr(old.message), repr(new.message))}")
    if more or less or other:
        return tuple(more), tuple(less), tuple(other)
    return _otherwise(_listed(list(was)), _listed(list(becomes)))


def _tasks(before: Sequence[TaskRule], after: Sequence[TaskRule]) -> _Found:
    """A rule that names a task demands something of its answer. One that is worded otherwise may do either."""
    was, becomes = {one.name: one for one in before}, {one.name: one for one in after}
    more = tuple(f"- {name}" for name in was if name not in becomes)
    less = tuple(f"+ {name}" for name in becomes if name not in was)
    changed = [name for name in was if name in becomes and was[name] != becomes[name]]
    other = tuple(f"{name}: {_arrow(_task_line(was[name]), _task_line(becomes[name]))}" for name in changed)
    return (more, less, other) if more or less or other else _otherwise(_listed(list(was)), _listed(list(becomes)))


def _task_line(rule: TaskRule) -> str:
    grounds = f" grounded by {', '.join(rule.grounds)}" if rule.grounds else ""
    return f"{rule.task_class} when {rule.when}{grounds}"


def _budgets(before: Budget, after: Budget) -> Iterator[tuple[str, _Found]]:
    for name, was, becomes in zip(FIELDS, assign(before), assign(after), strict=True):
        found = _amount(was, becomes, lambda amount, name=name: said_cap(name, amount))  # type: ignore[misc]
        if was == becomes and getattr(before, name) != getattr(after, name):
            # The same cap, once because the boundary says so and once because the standard budget does.
            said, standard = said_cap(name, was), f"{said_cap(name, getattr(STANDARD, name))} (standard)"
            is_said = getattr(after, name) is not None
            found = ((), (), (_arrow(standard, said) if is_said else _arrow(said, standard),))
        yield f"{_BUDGET}.{name}", found


def _authorities(before: Authority | None, after: Authority | None) -> Iterator[tuple[str, _Found]]:
    """Without a gate every change asks, so a gate allows more than none."""
    if before is None or after is None:
        said = (_arrow("off" if before is None else "on", "off" if after is None else "on"),)
        yield _AUTHORITY, _SAME if before == after else (said, (), ()) if before is None else ((), said, ())
        return
    for option, compare in _OPTIONS.items():
        yield f"{_AUTHORITY}.{option}", compare(getattr(before, option), getattr(after, option))


def _plans(before: PlanSource, after: PlanSource) -> _Found:
    if before is after or PlanSource.OFF not in (before, after):
        return _otherwise(before, after)
    return _ranked((before, after) if after is PlanSource.OFF else (after, before))(before, after)


def _arrow(before: Any, after: Any) -> str:
    return f"{before} -> {after}"


def _listed(items: Sequence[str] | None) -> str:
    return ALL if items is None else _or_nothing(items, "nothing")


_OPTIONS: Mapping[str, Callable[[Any, Any], _Found]] = {
    "infer_fields": _ranked(_INFERENCES),
    "closed_set": _ranked(_REACHES),
    "named_source": _ranked(_REACHES),
    "derive": _ranked(_REACHES),
    "tripwire": _ranked((True, False)),
    "orders": _ranked((Maker.MODEL, Maker.WORDS, Maker.OFF)),
    "beyond": _ranked((Beyond.REFUSE, Beyond.ASK)),
    "confirm": _ranked((Confirm.AFTER, Confirm.BEFORE)),
    "stands_for": _ranked((StandsFor.NOTHING, StandsFor.APPROVAL, StandsFor.FOUR_EYES)),
    "plan": _plans,
}

_BUDGET, _AUTHORITY = "budget", "authority"
# Each key of a file, the field it stands for, and how two values of it are compared.
_FIELDS: Mapping[str, tuple[str, Callable[[Any, Any], _Found]]] = {
    "name": ("name", _otherwise),
    "mode": ("mode", _ranked(_MODES)),
    "self_approval": ("self_approval", _ranked((False, None, True))),
    "observations.reads_max": ("reads_max", _ranked(sorted(READS_RANK, key=READS_RANK.__getitem__))),
    "observations.trusted_hosts": ("trusted_hosts", _granted),
    "observations.identities": ("identities", _demanded),
    "writes": ("writes", _granted),
    "tools.allowed": ("allowed_tools", _granted),
    "tools.approval_effects": ("approval_effects", _demanded),
    "tools.approval_categories": ("approval_categories", _demanded),
    "tools.four_eyes": ("four_eyes", _demanded),
    "tools.permissions": ("permissions", _granted),
    "tools.concerns": ("concerns", lambda before, after: _demanded(_concerned(before), _concerned(after))),
    "tools.purchase_max": ("purchase_max", _limits),
    "tools.rates": (
        "rates",
        lambda before, after: _demanded([said_rate_line(r) for r in before], [said_rate_line(r) for r in after]),
    ),
    "tools.unverified": ("unverified", _ranked((Unverified.REFUSE, Unverified.OBSERVE))),
    "tools.demands": ("demands", _ranked((Demanding.ENFORCE, Demanding.SHOW))),
    "decisions.rights": ("decisions", _granted),
    "decisions.tier_max": ("tier_max", _amount),
    _BUDGET: ("budget", _otherwise),
    "budget.exhaustion": ("exhaustion", _exhaustions),
    "budget.wrap_up_tokens": ("wrap_up_tokens", _amount),
    "budget.stops_early": ("stops_early", _ranked((True, False))),
    "budget.release_by": ("release_by", lambda before, after: _granted(before or None, after or None)),
    "escalation.queues": ("queues", _tables),
    "escalation.on_silence": ("on_silence", lambda before, after: _otherwise(_listed(before), _listed(after))),
    "escalation.approval_wait": (
        "approval_wait_ms_max",
        lambda before, after: _amount(before, after, said_duration),
    ),
    _AUTHORITY: ("authority", _otherwise),
    "intake": ("intake", _conditions),
    "tasks": ("tasks", _tasks),
    "conditions": ("conditions", _conditions),
}


def said_cap(name: str, amount: int) -> str:
    """A cap of the budget with its unit."""
    if name == FIELDS[Dimension.WALL_CLOCK_MS]:
        return said_duration(amount)
    if name == FIELDS[Dimension.INFERENCE_COST_MICROUSD]:
        dollars, rest = divmod(amount, MICRO_OF_A_DOLLAR)
        return f"${dollars:,}.{f'{rest:06d}'.rstrip('0').ljust(2, '0')}"
    one, several = _UNITS[name]
    return f"{amount:,} {one if amount == 1 else several}"


def said_rate_line(rate: Rate) -> str:
    """A rate in words."""
    of = "all tools together" if rate.tool == "*" else rate.tool
    whom = ", over all runs of a user" if rate.whose is Whose.USER else ""
    return f"{of}: {rate.times_max} calls per {said_duration(rate.per_ms)}{whom}"


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
    return f"{DOES[condition.then]}{at} when {condition.when}{because}"


def _all_or(items: Sequence[str] | None) -> str:
    return ALL if items is None else _or_nothing(items)


def _or_nothing(items: Sequence[str], nothing: str = "none") -> str:
    return ", ".join(items) or nothing
