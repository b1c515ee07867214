"""Repeating: never the same effect on the same target twice, unless the words say so.

Rule 1: the target of a call is every value that says on whom or on what it falls; amounts, dates and long texts are not.
Rule 2: a list falls on each of its members; one member that was reached before makes the call a repetition.
Rule 3: `once` takes a further target only when the words name it; `target` takes any that is bound; `free` takes all.
"""

from collections.abc import Sequence

from remit.core.trust import Repeat
from remit.provenance.declarations import Declaration
from remit.provenance.kinds import ANY, DATE, is_target
from remit.provenance.labels import key_of
from remit.provenance.planning import Asked
from remit.provenance.verdicts import Argument, Objection
from remit.provenance.words import Words

# What is longer is what is said, not on whom it falls.
TARGET_CHARS_MAX = 100
_UNAIMED = frozenset({"default", "prose", "typed"})


class Uses:
    """How often a tool was let through, and how often on each target."""

    __slots__ = ("calls", "targets")

    def __init__(self, calls: int = 0, targets: dict[str, int] | None = None) -> None:
        self.calls = calls
        self.targets: dict[str, int] = targets or {}

    def add(self, targets: tuple[str, ...]) -> None:
        """Count one more call on these targets."""
        self.calls += 1
        for target in targets:
            self.targets[target] = self.targets.get(target, 0) + 1

    def take_back(self, targets: tuple[str, ...]) -> None:
        """Count one call less on these targets, because it was not made."""
        self.calls -= 1
        for target in targets:
            self.targets[target] -= 1


def targets_of(arguments: Sequence[Argument]) -> tuple[str, ...]:
    """The keys of all targets of a call; a call without any has one, the empty key."""
    # A call that falls on nobody and nothing is told apart by all that it says.
    aimed = [one for one in arguments if _is_target(one)] or [one for one in arguments if _is_scalar(one)]
    single: list[str] = []
    members: set[str] = set()
    for argument in aimed:
        place, bracket, _ = argument.path.partition("[")
        target = f"{place}={key_of(argument.value)}"
        if bracket:
            members.add(target)
        else:
            single.append(target)
    shared = "\n".join(sorted(single))
    return tuple([f"{shared}\n{member}" for member in sorted(members)]) if members else (shared,)


def _is_target(argument: Argument) -> bool:
    value = argument.value
    if argument.bound_by in _UNAIMED or not isinstance(value, (str, int)) or isinstance(value, bool):
        return False
    if argument.kind != ANY:
        return is_target(argument.kind)
    return isinstance(value, int) or (len(value) <= TARGET_CHARS_MAX and DATE.fullmatch(value) is None)


def _is_scalar(argument: Argument) -> bool:
    return (
        argument.bound_by != "default" and not isinstance(argument.value, (dict, list)) and argument.value is not None
    )


def objection_to(
    arguments: tuple[Argument, ...], declaration: Declaration, uses: Uses, asked: Asked, words: Words
) -> Objection | None:
    """Whether a call repeats what was done, or goes beyond how often it is asked for."""
    if declaration.repeat is Repeat.FREE or not uses.calls:
        return None
    targets = targets_of(arguments)
    if any(uses.targets.get(target, 0) >= asked.times for target in targets):
        return Objection.REPEAT
    if uses.calls < asked.count:
        return None
    aimed = [argument for argument in arguments if _is_target(argument)]
    if declaration.repeat is Repeat.TARGET and aimed:
        return None
    names = [argument for argument in aimed if argument.bound_by == "words"]
    if names and len(names) == len(aimed) and any(str(one.value) in words.names for one in names):
        return None
    return Objection.QUOTA
