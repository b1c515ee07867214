"""Parts of a GBNF grammar in the making: what a rule is made of, and how it is written down.

Rule 1: parts are data; nothing is written before it is known which of them a text can complete.
Rule 2: what no text can complete is left out: a choice loses that way, and a sequence is lost as a whole.
Rule 3: rules that are nothing but one another in a circle become what any of them may be, so that none begins with
        itself.
Rule 4: only letters and digits stand for themselves in a set of characters; everything else is written by its number.
"""

from collections.abc import Iterable, Iterator, Mapping
from string import ascii_letters, digits
from typing import TypeAlias

from remit.core.record import Record

Ranges: TypeAlias = tuple[tuple[int, int], ...]

CODE_MAX = 0x10FFFF
_PLAIN = frozenset(map(ord, ascii_letters + digits))
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Literal(Record):
    """These characters."""

    text: str


class OneOf(Record):
    """One character within the ranges."""

    ranges: Ranges


class Named(Record):
    """Whatever the rule of this name reads."""

    name: str


class Sequence(Record):
    """One part after the other; without any, the empty text."""

    parts: tuple["Part", ...]


class Choice(Record):
    """One of the parts; without any, nothing can be read at all."""

    ways: tuple["Part", ...]


class Repeated(Record):
    """A part again and again; with None there is no most."""

    part: "Part"
    fewest: int
    largest: int | None


Part: TypeAlias = Literal | OneOf | Named | Sequence | Choice | Repeated

EMPTY = Sequence(())
NOTHING = Choice(())


def sequence(*parts: Part) -> Part:
    """Parts one after the other, with sequences in them unfolded and literals joined."""
    found: list[Part] = []
    for part in _unfolded(parts):
        last = found[-1] if found else None
        if isinstance(part, Literal) and isinstance(last, Literal):
            found[-1] = Literal(last.text + part.text)
        else:
            found.append(part)
    return found[0] if len(found) == 1 else Sequence(tuple(found))


def _unfolded(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        if isinstance(part, Sequence):
            yield from part.parts
        else:
            yield part


def choice(*ways: Part) -> Part:
    """One of the parts, each once, with choices in them unfolded."""
    found: dict[Part, None] = {}
    for way in ways:
        found.update(dict.fromkeys(way.ways if isinstance(way, Choice) else (way,)))
    return next(iter(found)) if len(found) == 1 else Choice(tuple(found))


def repeated(part: Part, fewest: int, largest: int | None) -> Part:
    """A part so many times; no repetition at all where it is once or never."""
    if largest is not None and largest < fewest:
        return NOTHING
    if largest == 0 or part == EMPTY:
        return EMPTY
    return part if fewest == largest == 1 else Repeated(part, fewest, largest)


def optional(part: Part) -> Part:
    """A part, or nothing."""
    return repeated(part, 0, 1)


def one_of(characters: str) -> Part:
    """One of these characters."""
    return OneOf(tuple((ord(each), ord(each)) for each in characters))


def completed(rules: Mapping[str, Part], root: str) -> dict[str, Part]:
    """The rules that the root leads to, without what no text can complete; none at all when the root is such."""
    whole = {name: _unwound(name, rules) for name in rules}
    able = _completable(whole)
    if root not in able:
        return {}
    found: dict[str, Part] = {}
    todo = [root]
    while todo:
        name = todo.pop()
        if name not in found:
            found[name] = _kept(whole[name], able)
            todo += reversed(list(_names_in(found[name])))
    return found


def _unwound(name: str, rules: Mapping[str, Part]) -> Part:
    """A rule, or, where it is in a circle of rules that are nothing but one another, every other way out of it."""
    reached: dict[str, None] = {}
    todo = [name]
    is_circle = False
    while todo:
        ways = _ways(rules[todo.pop()])
        named = [way.name for way in ways if isinstance(way, Named)]
        is_circle = is_circle or name in named
        todo += [other for other in named if other not in reached]
        reached.update(dict.fromkeys(named))
    if not is_circle:
        return rules[name]
    return choice(*(way for other in reached for way in _ways(rules[other]) if not isinstance(way, Named)))


def _ways(part: Part) -> tuple[Part, ...]:
    return part.ways if isinstance(part, Choice) else (part,)


def _completable(rules: Mapping[str, Part]) -> set[str]:
    """The rules of which there is at least one text."""
    users: dict[str, list[str]] = {}
    for name, part in rules.items():
        for other in _names_in(part):
            users.setdefault(other, []).append(name)
    able: set[str] = set()
    todo = list(rules)
    while todo:
        name = todo.pop()
        if name not in able and _is_able(rules[name], able):
            able.add(name)
            todo += users.get(name, ())
    return able


def _is_able(part: Part, able: set[str]) -> bool:
    match part:
        case Named(name):
            return name in able
        case Sequence(parts):
            return all(_is_able(each, able) for each in parts)
        case Choice(ways):
            return any(_is_able(way, able) for way in ways)
        case Repeated(inner, fewest, _):
            return not fewest or _is_able(inner, able)
        case _:
            return True


def _kept(part: Part, able: set[str]) -> Part:
    """A part without the ways that no text can complete."""
    match part:
        case Sequence(parts):
            return sequence(*(_kept(each, able) for each in parts))
        case Choice(ways):
            return choice(*(_kept(way, able) for way in ways if _is_able(way, able)))
        case Repeated(inner, fewest, largest):
            return repeated(_kept(inner, able), fewest, largest) if _is_able(inner, able) else EMPTY
        case _:
            return part


def _names_in(part: Part) -> Iterator[str]:
    match part:
        case Named(name):
            yield name
        case Sequence(parts) | Choice(parts):
            for each in parts:
                yield from _names_in(each)
        case Repeated(inner, _, _):
            yield from _names_in(inner)
        case _:
            pass


def written(part: Part) -> str:
    """A part as GBNF."""
    match part:
        case Literal(text):
            return f'"{"".join(map(_in_literal, text))}"'
        case OneOf(ranges):
            return f"[{''.join(map(_range, ranges))}]"
        case Named(name):
            return name
        case Sequence(parts):
            return " ".join(_grouped(each) if isinstance(each, Choice) else written(each) for each in parts) or '""'
        case Choice(ways):
            return " | ".join(map(written, ways))
        case Repeated(inner, fewest, largest):
            is_whole = isinstance(inner, Literal | OneOf | Named)
            return f"{written(inner) if is_whole else _grouped(inner)}{_times(fewest, largest)}"


def _grouped(part: Part) -> str:
    return f"({written(part)})"


def _times(fewest: int, largest: int | None) -> str:
    match fewest, largest:
        case 0, 1:
            return "?"
        case 0, None:
            return "*"
        case 1, None:
            return "+"
        case _:
            most = "" if largest is None else str(largest)
            return f"{{{fewest}}}" if fewest == largest else f"{{{fewest},{most}}}"


def _in_literal(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if " " <= character <= "~" else _code(ord(character))


def _range(span: tuple[int, int]) -> str:
    first, last = (chr(code) if code in _PLAIN else _code(code) for code in span)
    return first if span[0] == span[1] else f"{first}-{last}"


def _code(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
