"""Objects and arrays of a schema in GBNF.

Rule 1: declared properties come in their order, each once; undeclared ones come behind them under other names.
Rule 2: entries behind the first ones that a schema names are all of one kind.
"""

from collections.abc import Sequence
from typing import Any

from remit.constraint.gbnf_json import COLON, COMMA, TEXT, can_be_told_apart, name_part, other_names
from remit.constraint.gbnf_parts import (
    EMPTY,
    NOTHING,
    Literal,
    Named,
    Part,
    choice,
    optional,
    sequence,
)
from remit.constraint.gbnf_rulebook import Rulebook
from remit.constraint.gbnf_texts import pattern_text, text_part
from remit.core.record import JsonObject
from remit.core.schema.schema_work import pointer

_COUNTS = ("minProperties", "maxProperties")
_LENGTHS = ("minItems", "maxItems")


def object_part(schema: JsonObject, path: str, book: Rulebook) -> Part:
    """The objects that fit a plain schema."""
    properties: dict[str, Any] = schema.get("properties", {})
    required = [name for name in properties if name in schema.get("required", ())]
    if set(schema.get("required", ())) - set(properties):
        book.widen(path, "required")
    members = {
        name: sequence(name_part(name), COLON, book.rule(each, f"{path}/properties{pointer((name,))}"))
        for name, each in properties.items()
    }
    fewest, largest = _count(schema, "minProperties"), schema.get("maxProperties")
    most = None if largest is None else _count(schema, "maxProperties")
    other = _other_member(schema, path, book)
    if not members:
        inner = _entries([], other, fewest, most, path=path, book=book, keywords=_COUNTS)
        return sequence(Literal("{"), inner, Literal("}"))
    # How many of the declared properties there are is not counted.
    if fewest > len(required):
        book.widen(path, "minProperties")
    if most is not None and (most < len(members) or other != NOTHING):
        book.widen(path, "maxProperties")
    left = None if most is None else max(most - len(required), 0)
    others = book.times(sequence(COMMA, other), 0, left, path=path, keywords=_COUNTS) if other != NOTHING else EMPTY
    if other != NOTHING:
        others = book.add(others, f"{path}/others")
    return sequence(Literal("{"), _ordered(members, required, others, other, path, book), Literal("}"))


def _ordered(
    members: dict[str, Part], required: Sequence[str], others: Part, other: Part, path: str, book: Rulebook
) -> Part:
    """Members in their order, commas between them, then the others. Rules are made for what may be left out first."""
    names = list(members)
    first = names.index(required[0]) if required else len(names)
    behind = [
        sequence(COMMA, members[name]) if name in required else optional(sequence(COMMA, members[name]))
        for name in names
    ]
    rest = sequence(*behind[first + 1 :], others)
    if first == 0:
        return sequence(members[names[0]], rest)
    # What follows a member that is not the first one, for each place at which the members may begin.
    tail = sequence(behind[first], rest) if required else others
    begins = [sequence(members[names[first]], rest)] if required else [sequence(other, others), EMPTY]
    for at in range(first - 1, -1, -1):
        tail = book.add(tail, f"{path}/more")
        begins.insert(0, sequence(members[names[at]], tail))
        tail = sequence(behind[at], tail)
    return choice(*begins) if required else optional(choice(*(way for way in begins if way != EMPTY)))


def _other_member(schema: JsonObject, path: str, book: Rulebook) -> Part:
    """A property that is not declared: by a pattern of its name, or by none."""
    ways: list[Part] = []
    patterns: dict[str, Any] = schema.get("patternProperties", {})
    names: dict[str, Any] = schema.get("properties", {})
    rest = schema.get("additionalProperties", True)
    for pattern, each in patterns.items():
        name = pattern_text(pattern)
        value = book.rule(each, f"{path}/patternProperties{pointer((pattern,))}")
        ways.append(sequence(Named(TEXT) if name is None else name, COLON, value))
    if patterns and (rest is not False or names or len(patterns) > 1 or pattern_text(*patterns) is None):
        book.widen(path, "patternProperties")
    if rest is not False and (value := book.rule(rest, f"{path}/additionalProperties")) != NOTHING:
        ways.append(sequence(_other_name(schema, path, book), COLON, value))
    return choice(*ways)


def _other_name(schema: JsonObject, path: str, book: Rulebook) -> Part:
    names: dict[str, Any] = schema.get("properties", {})
    if "propertyNames" in schema:
        wanted = book.plainer.plain(schema["propertyNames"], book.noting(f"{path}/propertyNames"))
        if not names and isinstance(wanted, dict) and not wanted.keys() - {"type", "pattern", "minLength", "maxLength"}:
            return text_part(wanted, f"{path}/propertyNames", book)
        if not names and isinstance(wanted, dict) and not wanted.keys() - {"type", "enum"} and "enum" in wanted:
            return choice(*(name_part(each) for each in wanted["enum"] if isinstance(each, str)))
        book.widen(path, "propertyNames")
    if not names:
        return Named(TEXT)
    if not can_be_told_apart(names) or sum(map(len, names)) > book.letters_left:
        book.widen(path, "additionalProperties")
        return Named(TEXT)
    book.letters_left -= sum(map(len, names))
    rules = other_names(names, book.new_name(f"{path}/name"))
    book.rules.update(rules)
    return Named(next(iter(rules)))


def array_part(schema: JsonObject, path: str, book: Rulebook) -> Part:
    """The arrays that fit a plain schema."""
    firsts = [book.rule(each, f"{path}/prefixItems/{at}") for at, each in enumerate(schema.get("prefixItems", ()))]
    rest = book.rule(schema.get("items", True), f"{path}/items")
    fewest = _count(schema, "minItems")
    most = _count(schema, "maxItems") if "maxItems" in schema else None
    inner = _entries(firsts, rest, fewest, most, path=path, book=book, keywords=_LENGTHS)
    return sequence(Literal("["), inner, Literal("]"))


def _entries(
    firsts: list[Part],
    rest: Part,
    fewest: int,
    most: int | None,
    *,
    path: str,
    book: Rulebook,
    keywords: tuple[str, str],
) -> Part:
    """So many entries with commas between: the first ones as they are named, then the rest."""
    if most is not None and most < fewest:
        return NOTHING
    firsts = firsts if most is None else firsts[:most]
    left = None if most is None else most - len(firsts)
    if not firsts:
        if left == 0:
            return EMPTY
        more = sequence(COMMA, rest)
        behind = book.times(more, max(fewest - 1, 0), None if left is None else left - 1, path=path, keywords=keywords)
        return sequence(rest, behind) if fewest else optional(sequence(rest, behind))
    tail = book.times(sequence(COMMA, rest), max(fewest - len(firsts), 0), left, path=path, keywords=keywords)
    for at in range(len(firsts) - 1, 0, -1):
        if at >= fewest:
            tail = optional(book.add(sequence(COMMA, firsts[at], tail), f"{path}/more"))
        else:
            tail = sequence(COMMA, firsts[at], tail)
    whole = sequence(firsts[0], tail)
    return whole if fewest else optional(whole)


def _count(schema: JsonObject, keyword: str) -> int:
    # A whole number may be written with a fraction of zero.
    return int(schema.get(keyword, 0))
