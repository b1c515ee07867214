"""Two boundaries compared: what the second allows more than the first, what less, and what merely otherwise.

Rule 1: one difference per key of the file. A set is compared member by member, `+` for what the second has and `-` for
        what only the first had.
Rule 2: whatever puts a person, a cap or a condition between the model and the world allows less; whatever takes one
        away allows more. What cannot be ordered, such as another queue, is said to be other.
Rule 3: caps are compared as a run would be given them: what a boundary leaves open has the standard cap.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
    Boundary,
    BoundaryMode,
    Condition,
    Demanding,
    Exhaustion,
    TaskRule,
    Then,
    Unverified,
)
from remit.core.limits.boundary_views import Difference
from remit.core.limits.budget import FIELDS, STANDARD, Budget, assign
from remit.core.limits.trust import READS_RANK
from remit.orchestrate.boundaries.boundary_values import ALL, said_cap, said_rate_line

_Found = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
_SAME: _Found = ((), (), ())

# From the least that happens without a person to the most.
_STRICT = (Then.STOP, Then.REFUSE, Then.ASK)
_MODES = (BoundaryMode.ENFORCE, BoundaryMode.AUDIT)
_REACHES = (OptionReach.OFF, OptionReach.ON, OptionReach.ALL)
_INFERENCES = (Inference.OFF, Inference.TYPED, Inference.IDENTITY)


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
    return ALL if items is None else ", ".join(items) or "nothing"


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
