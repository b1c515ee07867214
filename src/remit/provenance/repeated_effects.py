"""Repeating: never the same effect on the same target twice, unless the words say so.

Rule 1: the target of a call is every value that says on whom or on what it falls; amounts, dates and long texts are not.
Rule 2: a list falls on each of its members, and so does a text that lists addresses; one member that was reached before,
        or that stands in the list twice, makes the call a repetition.
Rule 3: a further target is taken as often as the words order, or when they name it; `free` takes all. `target` lifts no count.
Rule 4: one mention is one target, however it is spelled: values are the same when they are said at the same place of the
        words, or when they differ in nothing but signs that change no address. This is for counting, never for binding.
"""

from collections.abc import Sequence
from functools import lru_cache

from remit.core.limits.tool_trust import Repeat
from remit.core.record import Record
from remit.core.regex import regex
from remit.provenance.declarations import Declaration
from remit.provenance.gate_verdict import Argument, Objection
from remit.provenance.kinds import ANY, DATE, is_identity, is_target, members_of, number_key, number_of
from remit.provenance.origins.labels import index_key
from remit.provenance.words.asked_effects import Asked
from remit.provenance.words.user_words import Words

# What is longer is what is said, not on whom it falls.
TARGET_CHARS_MAX = 100
# The targets of the calls of some runs; what is remembered is short.
_COMPACT_KEPT_MAX = 4_096
_UNAIMED = frozenset({"default", "prose", "typed"})
# Marks a key that tells where in the words its values stand; names of arguments come without blanks.
_MENTIONED = "\t"
_SEPARATORS = regex(r"[.\-/()]")
# An account, card or telephone number, whose separators tell nothing.
_NUMBER = regex(r"\+?(?:[A-Z]{2}\d{2}[A-Z0-9]{8,30}|\d{5,34})")


class Part(Record):
    """One value of a target: its key, where the words say it, and for a member the list and the place it stands at."""

    key: str
    span: tuple[int, int] | None = None
    holder: str = ""
    inside: str = ""


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

    def values(self) -> set[str]:
        """What the calls fell on, whatever their arguments are called."""
        reached = [target for target, count in self.targets.items() if count and not target.startswith(_MENTIONED)]
        return {part.partition("=")[2] for target in reached for part in target.split("\n")}

    def take_back(self, targets: tuple[str, ...]) -> None:
        """Count one call less on these targets, because it was not made."""
        self.calls -= 1
        for target in targets:
            self.targets[target] -= 1


def targets_of(arguments: Sequence[Argument], words: Words | None = None) -> tuple[str, ...]:
    """The keys of all targets of a call; a call without any has one, the empty key.

    A target that the words mention has a second key, which says where.
    """
    return _keys(_parts(arguments, words))


def _keys(parts: list[Part]) -> tuple[str, ...]:
    single = [part for part in parts if not part.holder]
    shared, is_shared_said = [part.key for part in single], False
    said = shared
    if any(part.span for part in single):
        said, is_shared_said = [_with_place(part) for part in single], True
    keys: list[str] = []
    for part in parts:
        if part.holder:
            keys.append(_joined(shared, part.key))
            if is_shared_said or part.span:
                keys.append(_MENTIONED + _joined(said, _with_place(part)))
    if not keys:
        keys = ["\n".join(sorted(shared))]
        keys += [_MENTIONED + "\n".join(sorted(said))] if is_shared_said else []
    return tuple(dict.fromkeys(keys))


def _joined(shared: list[str], member: str) -> str:
    return "\n".join(sorted([*shared, member])) if shared else member


def _with_place(part: Part) -> str:
    """The key with the place in the words, if it has one."""
    return f"{part.key} {part.span[0]}-{part.span[1]}" if part.span else part.key


def _parts(arguments: Sequence[Argument], words: Words | None) -> list[Part]:
    parts: list[Part] = []
    # A call that falls on no person and no thing is told apart by all that it says.
    aimed = [one for one in arguments if _is_target(one)] or [one for one in arguments if _is_scalar(one)]
    for argument in aimed:
        path, kind = argument.path, argument.kind
        place = "".join(path.partition("[")[0].split())
        holder, _, inside = path.rpartition("[")
        members = members_of(argument.value, kind)
        if len(members) > 1:
            for number, member in enumerate(members):
                span = None if words is None else words.span_of(member)
                mention = _mention(member, kind, span, words)
                key = f"{place}={compact_of(member, kind)}"
                parts.append(Part(key, mention, holder or path, f"{inside}~{number}"))
        else:
            mention = _mention(argument.value, kind, argument.span, words)
            parts.append(Part(f"{place}={compact_of(argument.value, kind)}", mention, holder, inside))
    return parts


def _mention(value: object, kind: str, span: tuple[int, int] | None, words: Words | None) -> tuple[int, int] | None:
    """Where the words say a value, if they spell it there and do not merely vouch for it."""
    if span is None or words is None or not isinstance(value, str):
        return None
    said = words.own[span[0] : span[1]]
    if said == value:
        return span
    said = compact_of(said, kind)
    return span if said and compact_of(value, kind).endswith(said) else None


def compact_of(value: object, kind: str) -> str:
    """A value without what makes no difference to whom or what it reaches; to be compared, never to be bound."""
    if not isinstance(value, str):
        return index_key(value)
    return _kept_compact(value, kind) if len(value) <= TARGET_CHARS_MAX else _compact(value, kind)


def _compact(value: str, kind: str) -> str:
    text = "".join(value.split()).lstrip("@#").rstrip(".,;:") or value
    # An account, a telephone and an amount have a digit among their first three signs.
    if not text[:3].isalpha():
        bare = _SEPARATORS.sub("", text).upper()
        if _NUMBER.fullmatch(bare) is not None:
            return bare
        if (number := number_of(text)) is not None:
            return number_key(number)
    return text.casefold() if is_identity(kind) else text


_kept_compact = lru_cache(maxsize=_COMPACT_KEPT_MAX)(_compact)


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
    arguments: tuple[Argument, ...],
    declaration: Declaration,
    uses: Uses,
    asked: Asked,
    words: Words,
    others: Sequence[Uses] = (),
) -> Objection | None:
    """Whether a call repeats what was done or itself, or goes beyond how often it is asked for.

    `others` are the uses of other tools that the same words ask for.
    """
    if declaration.repeat is Repeat.FREE:
        return None
    parts = _parts(arguments, words)
    if _most_in_one_list(parts) > asked.times:
        return Objection.REPEAT
    if spent := sum(other.calls for other in others):
        values = {part.key.partition("=")[2] for part in parts}
        if spent + uses.calls >= asked.together or any(not values.isdisjoint(other.values()) for other in others):
            return Objection.QUOTA
    if not uses.calls:
        return None
    if any(_reached(target, uses) >= asked.times for target in _keys(parts)):
        return Objection.REPEAT
    if uses.calls < asked.count:
        return None
    aimed = [argument for argument in arguments if _is_target(argument)]
    said = [argument for argument in aimed if argument.bound_by == "words"]
    # Targets that the words give one by one are each asked for; of a tool that happens once, the words must name them.
    is_named = declaration.repeat is Repeat.TARGET or any(str(one.value) in words.names for one in said)
    return None if said and len(said) == len(aimed) and is_named else Objection.QUOTA


def _reached(target: str, uses: Uses) -> int:
    """How often a target was reached, under this key or under one whose mentions overlap with it."""
    if not target.startswith(_MENTIONED):
        return uses.targets.get(target, 0)
    parts = _read(target)
    counts = [
        count for other, count in uses.targets.items() if other.startswith(_MENTIONED) and _are_one(parts, _read(other))
    ]
    return sum(counts)


def _read(target: str) -> list[tuple[str, int, int]]:
    """The parts of a key that tells where its values stand; those without a place have an empty one."""
    read = []
    for part in target[len(_MENTIONED) :].split("\n"):
        key, _, span = part.partition(" ")
        start, _, end = span.partition("-")
        read.append((key, int(start or 0), int(end or 0)))
    return read


def _are_one(left: list[tuple[str, int, int]], right: list[tuple[str, int, int]]) -> bool:
    """Whether two targets are the same in each part: by what they say, or by where the words say it."""
    return len(left) == len(right) and all(
        one[0] == other[0]
        or (one[0].partition("=")[0] == other[0].partition("=")[0] and one[1] < other[2] and other[1] < one[2])
        for one, other in zip(left, right, strict=True)
    )


def _most_in_one_list(parts: list[Part]) -> int:
    """How often the member that a list has most often stands in it."""
    elements: dict[tuple[str, str], list[Part]] = {}
    for part in parts:
        if part.holder:
            elements.setdefault((part.holder, part.inside.partition(".")[0]), []).append(part)
    if len(elements) < 2:
        return 1
    counts: dict[tuple[str, ...], int] = {}
    spans: dict[str, list[tuple[int, int]]] = {}
    for (holder, _), element in elements.items():
        member = (holder, *sorted([f"{part.inside.partition('.')[2]}={part.key}" for part in element]))
        counts[member] = counts.get(member, 0) + 1
        if len(element) == 1 and element[0].span is not None:
            spans.setdefault(holder, []).append(element[0].span)
    return max([*counts.values(), *(_most_overlapping(sorted(found)) for found in spans.values())])


def _most_overlapping(spans: list[tuple[int, int]]) -> int:
    most = together = reach = 0
    for start, end in spans:
        together = together + 1 if start < reach else 1
        reach = max(reach, end) if together > 1 else end
        most = max(most, together)
    return most
