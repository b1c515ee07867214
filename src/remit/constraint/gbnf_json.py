"""JSON in GBNF: any value, the characters of a text, values as they stand, and names that are none of some.

Rule 1: where JSON may have space, one space may stand or none; where it may end, it ends. A model cannot ramble there.
Rule 2: a text may hold any character, and any escape but half of a pair.
Rule 3: a value that stands in a schema may be written with its letters or, beyond ASCII, with escapes; not both mixed.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from remit.constraint.gbnf_numbers import DIGITS_MAX
from remit.constraint.gbnf_parts import (
    CODE_MAX,
    EMPTY,
    Literal,
    Named,
    OneOf,
    Part,
    choice,
    one_of,
    optional,
    repeated,
    sequence,
)

VALUE, TEXT, CHARACTER, SPACE, NUMBER, UNSIGNED = "value", "string", "char", "space", "number", "unsigned"
OTHER_CHARACTER, OTHER_ESCAPE = "name-char", "name-escape"

QUOTE = Literal('"')
COMMA = sequence(Literal(","), Named(SPACE))
COLON = sequence(Literal(":"), Named(SPACE))
# What a text may hold as it is: no quote, no backslash, no control character, no half of a pair.
RAW = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, CODE_MAX))

_HEX = OneOf(((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)))
_DIGIT = OneOf(((0x30, 0x39),))
_LOW_HALF = sequence(Literal("\\u"), one_of("dD"), OneOf(((0x43, 0x46), (0x63, 0x66))), _HEX, _HEX)
_HIGH_HALF = sequence(one_of("89ABab"), _HEX, _HEX, _LOW_HALF)
# Four hexadecimal digits that are a character, or half of one and the other half.
_FROM_D = sequence(one_of("dD"), choice(sequence(OneOf(((0x30, 0x37),)), _HEX, _HEX), _HIGH_HALF))
_BELOW_D = OneOf(((0x30, 0x39), (0x41, 0x43), (0x45, 0x46), (0x61, 0x63), (0x65, 0x66)))
_ESCAPE = choice(one_of('"\\/bfnrt'), sequence(Literal("u"), choice(sequence(_BELOW_D, _HEX, _HEX, _HEX), _FROM_D)))
# The same without escapes of plain letters: whoever looks for a name would not recognise it.
_NO_LETTER = choice(
    sequence(Literal("00"), one_of("0189abcdefABCDEF"), _HEX),
    sequence(Literal("007"), one_of("fF")),
    sequence(Literal("0"), OneOf(((0x31, 0x39), (0x41, 0x46), (0x61, 0x66))), _HEX, _HEX),
    sequence(OneOf(((0x31, 0x39), (0x41, 0x43), (0x45, 0x46), (0x61, 0x63), (0x65, 0x66))), _HEX, _HEX, _HEX),
    _FROM_D,
)
_OTHER_ESCAPE_PART = sequence(Literal("\\"), choice(one_of('"\\bfnrt'), sequence(Literal("u"), _NO_LETTER)))
_ENTRY = sequence(Named(TEXT), COLON, Named(VALUE))


def listed(part: Part) -> Part:
    """A part any number of times, with commas between."""
    return optional(sequence(part, repeated(sequence(COMMA, part), 0, None)))


SHARED: Mapping[str, Part] = MappingProxyType(
    {
        SPACE: optional(Literal(" ")),
        CHARACTER: choice(OneOf(RAW), sequence(Literal("\\"), _ESCAPE)),
        OTHER_CHARACTER: choice(OneOf(RAW), Named(OTHER_ESCAPE)),
        OTHER_ESCAPE: _OTHER_ESCAPE_PART,
        TEXT: sequence(QUOTE, repeated(Named(CHARACTER), 0, None), QUOTE),
        UNSIGNED: sequence(
            choice(Literal("0"), sequence(OneOf(((0x31, 0x39),)), repeated(_DIGIT, 0, DIGITS_MAX - 1))),
            optional(sequence(Literal("."), repeated(_DIGIT, 1, DIGITS_MAX))),
            optional(sequence(one_of("eE"), optional(one_of("+-")), repeated(_DIGIT, 1, 3))),
        ),
        NUMBER: sequence(optional(Literal("-")), Named(UNSIGNED)),
        VALUE: choice(
            sequence(Literal("{"), listed(_ENTRY), Literal("}")),
            sequence(Literal("["), listed(Named(VALUE)), Literal("]")),
            Named(TEXT),
            Named(NUMBER),
            *map(Literal, ("true", "false", "null")),
        ),
    }
)


def value_part(value: Any) -> Part:
    """A value as it stands."""
    if isinstance(value, list):
        return sequence(Literal("["), *_joined(map(value_part, value)), Literal("]"))
    if isinstance(value, dict):
        members = (sequence(name_part(name), COLON, value_part(member)) for name, member in value.items())
        return sequence(Literal("{"), *_joined(members), Literal("}"))
    return name_part(value)


def name_part(value: Any) -> Part:
    """A text, or another value that is no container, as it stands."""
    from json import dumps

    return choice(Literal(dumps(value, ensure_ascii=False)), Literal(dumps(value)))


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    for number, part in enumerate(parts):
        yield COMMA if number else EMPTY
        yield part


def can_be_told_apart(names: Iterable[str]) -> bool:
    """Whether the names can be kept out of others: none of their letters can be written in two ways."""
    return all(" " <= each <= "~" and each not in '"\\' for each in "".join(names))


def other_names(names: Iterable[str], prefix: str) -> dict[str, Part]:
    """The rules of a quoted name that is none of these; the first rule is `prefix`, the others begin with it."""
    known = dict.fromkeys(names)
    begun = {"": prefix}
    for name in known:
        for length in range(1, len(name) + 1):
            begun.setdefault(name[:length], f"{prefix}n{len(begun)}")
    rules = {rule: _after(start, begun, is_name=start in known) for start, rule in begun.items()}
    rules[prefix] = sequence(QUOTE, rules[prefix])
    return rules


def _after(start: str, begun: Mapping[str, str], *, is_name: bool) -> Part:
    """What may follow the beginning of a name so that the whole is none of the known ones."""
    following = {name[-1]: rule for name, rule in begun.items() if name[:-1] == start and name}
    rest = sequence(repeated(Named(OTHER_CHARACTER), 0, None), QUOTE)
    raw = minus(RAW, tuple((ord(each), ord(each)) for each in sorted(following)))
    return choice(
        *(sequence(Literal(letter), Named(rule)) for letter, rule in following.items()),
        sequence(choice(OneOf(raw), Named(OTHER_ESCAPE)), rest),
        *(() if is_name else (QUOTE,)),
    )


def minus(ranges: tuple[tuple[int, int], ...], others: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    """What is within the ranges and not within the others, in order."""
    found = list(ranges)
    for low, high in others:
        found = [
            part
            for first, last in found
            for part in ((first, min(last, low - 1)), (max(first, high + 1), last))
            if part[0] <= part[1]
        ]
    return tuple(found)
