"""Orders: the effects that a user wants, written down before anything foreign is read.

An order names a tool and says where each argument comes from: a literal, a look-up, an earlier order's result, or the only
value of a kind in a source that the user named. Texts are exact, a template, or free with listed sources.

Rule 1: one order is one effect. An argument that an order does not name stays empty.
Rule 2: an order holds names, literals and fields, never code, so it can be hashed, stored, shown and compared.
Rule 3: what is not fixed is marked: free text, and a condition that nothing checks.
Rule 4: an order that cannot be read is refused with its number, its key, the value and what may stand there.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeAlias

from remit.core.clipped import SHOWN_CHARS_MAX, clipped
from remit.core.declared_types import as_declared
from remit.core.failure import RequestRejected
from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.record import JsonObject, MadeByHand, Record
from remit.core.regex import regex
from remit.core.schema.json_text import parse_json

ORDERS_INVALID = "ORDERS_INVALID"

# Names of the code that proposes the reads of a run's orders, that lists them with what was found, and that takes them in
# before anything is looked up.
LOOK_UP, LIST, TAKE = "orders:look_up", "orders:list", "orders:take"
# The kind of a value that is a list of orders which a model made.
MADE = "orders"
# What a person is asked about such a list.
CONFIRM = "Are these the effects that you want? Nothing else happens without another question."
# Before the number of a look-up that was made for orders, it is the id of the call, which no model made.
LOOK_UP_ID = "order-"
# A person reads and confirms the whole list at once.
ORDERS_MAX = 50
ARGUMENTS_MAX = 50
CONDITIONS_MAX = 8
ALTERNATIVES_MAX = 8
TEXT_CHARS_MAX = 20_000
NOTE_CHARS_MAX = 200
# What stands in a template for a slot.
_SLOT = regex(r"\{(\w+)\}")


class Comparison(StrEnum):
    """How a field of a record is compared with a literal."""

    IS = "="
    CONTAINS = "contains"
    STARTS = "starts"


class NumberChange(StrEnum):
    """What is done to a number that was looked up."""

    PLUS = "plus"
    MINUS = "minus"
    TIMES = "times"


class FieldTest(MadeByHand, frozen=True):
    """A condition on the records of a look-up. The literal is canonical JSON."""

    field: str
    test: Comparison
    literal: str


class Literal(Record, frozen=True, tag="literal"):
    """A value that is written in the order, as canonical JSON."""

    json: str


class Lookup(MadeByHand, frozen=True, tag="lookup"):
    """A field of the one record that a read finds: the only one under the conditions, or the one with the largest field."""

    tool: str
    # Canonical JSON of the arguments, all of them literals.
    arguments: str
    field: str
    where: tuple[FieldTest, ...] = ()
    # The field by which the largest record is picked; empty where there may be only one.
    largest: str = ""
    change: NumberChange | None = None
    # Canonical JSON of the number that the field is changed by.
    by: str = ""


class FromOrder(Record, frozen=True, tag="order"):
    """A field of what an earlier order of the list returned; the first order is number 1."""

    number: int
    field: str


class NamedSource(Record, frozen=True, tag="named"):
    """The only value of a kind in what a read of a named source returns, text included."""

    tool: str
    arguments: str
    kind: str


Value: TypeAlias = Literal | Lookup | FromOrder | NamedSource


class Exact(Record, frozen=True, tag="exact"):
    """A text that is sent as it stands."""

    text: str


class Template(Record, frozen=True, tag="template"):
    """A text with slots, `{name}`, each filled with a value."""

    text: str
    slots: tuple[tuple[str, Value], ...]


class Free(Record, frozen=True, tag="free"):
    """A text that the model words, from what these tools returned and from the request."""

    sources: tuple[str, ...] = ()


Wording: TypeAlias = Exact | Template | Free


class Order(Record, frozen=True):
    """One wanted effect. `note` is a condition that nothing checks; of `either` one whole order is done in its place."""

    tool: str = ""
    args: tuple[tuple[str, Value], ...] = ()
    text: tuple[tuple[str, Wording], ...] = ()
    note: str = ""
    either: tuple["Order", ...] = ()


class OrderUsed(Record, frozen=True):
    """The order that an effect equals: its number of how many, who confirmed the list (empty: its caller), and when."""

    number: int
    of: int
    by: str = ""
    at_ms: int = 0


class LeasedOrders(Record, frozen=True):
    """Orders that a run leases to one beneath it: filled in, with their numbers in the whole list, and who confirmed it."""

    orders: tuple[Order, ...]
    numbers: tuple[int, ...]
    of: int
    by: str = ""
    at_ms: int = 0


def told_order(used: OrderUsed) -> str:
    """An order as verdicts, traces and packets name it."""
    said = f"order {used.number} of {used.of}"
    if not used.by:
        return f"{said}, given by the caller"
    return f"{said}, confirmed by {used.by} at {datetime.fromtimestamp(used.at_ms / 1000, UTC):%H:%M} UTC"


# What a caller may give: records, or their JSON objects.
Orders: TypeAlias = Sequence[Order | JsonObject]


def ways_of(order: Order) -> tuple[Order, ...]:
    """The whole orders that fulfil this one: itself, or its alternatives."""
    return order.either or (order,)


def values_of(order: Order) -> Iterator[Value]:
    """Every value that an order names, its alternatives and the slots of its templates included."""
    for way in ways_of(order):
        yield from (value for _, value in way.args)
        for _, wording in way.text:
            if isinstance(wording, Template):
                yield from (value for _, value in wording.slots)


def reads_of(orders: tuple[Order, ...]) -> tuple[tuple[str, str], ...]:
    """The reads that fill the orders, each once: the tool and the canonical JSON of its arguments."""
    found: dict[tuple[str, str], None] = {}
    for order in orders:
        for value in values_of(order):
            if isinstance(value, Lookup | NamedSource):
                found.setdefault((value.tool, value.arguments))
    return tuple(found)


def defaults_of(parameters: JsonObject) -> JsonObject:
    """What a tool fills in for the arguments that a call leaves out, as its schema says it."""
    properties = parameters.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {
        name: schema["default"]
        for name, schema in properties.items()
        if isinstance(schema, dict) and "default" in schema
    }


def orders_of(given: Any) -> tuple[Order, ...]:
    """The orders of a list, each an Order or its JSON object; raises RequestRejected for one that cannot be read."""
    if not isinstance(given, list | tuple):
        raise _rejected(0, "orders", given, "a list of orders")
    if len(given) > ORDERS_MAX:
        raise _rejected(0, "orders", len(given), f"at most {ORDERS_MAX} orders")
    return tuple(
        as_declared(one, Order, f"order {number}", ORDERS_INVALID)
        if isinstance(one, Order)
        else _order(_At(number), one)
        for number, one in enumerate(given, 1)
    )


def orders_json(orders: tuple[Order, ...]) -> list[JsonObject]:
    """The orders as the plain JSON that `orders_of` reads."""
    return [_order_json(order) for order in orders]


class _At:
    """Where in a list of orders the reader stands."""

    def __init__(self, number: int, *, is_nested: bool = False) -> None:
        self.number = number
        self.is_nested = is_nested

    def rejected(self, key: str, value: Any, way_out: str) -> RequestRejected:
        return _rejected(self.number, key, value, way_out)

    def object(self, key: str, given: Any, allowed: tuple[str, ...]) -> JsonObject:
        """An object that has no other keys."""
        if not isinstance(given, Mapping):
            raise self.rejected(key, given, "a JSON object")
        for name in given:
            if name not in allowed:
                raise self.rejected(key, name, f"one of {', '.join(allowed)}")
        return dict(given)

    def text(self, key: str, given: Any, chars_max: int = NOTE_CHARS_MAX) -> str:
        """A text that is not empty."""
        if not isinstance(given, str) or not 0 < len(given) <= chars_max:
            raise self.rejected(key, given, f"a text of 1 to {chars_max} characters")
        return given

    def json(self, key: str, given: Any) -> str:
        """A literal as canonical JSON."""
        try:
            return canonical_json(given).decode()
        except (NotCanonical, RecursionError) as error:
            raise self.rejected(key, given, f"a JSON value ({str(error)[:SHOWN_CHARS_MAX]})") from None


def _rejected(number: int, key: str, value: Any, way_out: str) -> RequestRejected:
    where = f"order {number}" if number else "orders"
    shown = clipped(value)
    return RequestRejected(ORDERS_INVALID, f"{where}: {key}={shown}; use {way_out}", {"order": number, "key": key})


def _order(at: _At, given: Any) -> Order:
    allowed = ("tool", "args", "text", "if") if at.is_nested else ("tool", "args", "text", "if", "either")
    said = at.object("order", given, allowed)
    if "either" in said:
        return _choice(at, said)
    args, text = said.get("args", {}), said.get("text", {})
    if not isinstance(args, Mapping) or not isinstance(text, Mapping):
        raise at.rejected("args" if not isinstance(args, Mapping) else "text", given, "a JSON object by argument")
    if len(args) + len(text) > ARGUMENTS_MAX:
        raise at.rejected("args", len(args) + len(text), f"at most {ARGUMENTS_MAX} arguments")
    if both := sorted(set(args) & set(text)):
        raise at.rejected("text", both[0], "an argument once, in `args` or in `text`")
    return Order(
        tool=at.text("tool", said.get("tool")),
        args=tuple((at.text("args", name), _value(at, name, one)) for name, one in sorted(args.items())),
        text=tuple((at.text("text", name), _wording(at, name, one)) for name, one in sorted(text.items())),
        note=at.text("if", said["if"]) if "if" in said else "",
    )


def _choice(at: _At, said: JsonObject) -> Order:
    if extra := [key for key in said if key not in ("either", "if")]:
        raise at.rejected("either", extra[0], "`either` alone, with whole orders in it")
    ways = said["either"]
    if not isinstance(ways, list | tuple) or not 1 < len(ways) <= ALTERNATIVES_MAX:
        raise at.rejected("either", ways, f"a list of 2 to {ALTERNATIVES_MAX} orders")
    inner = _At(at.number, is_nested=True)
    note = at.text("if", said["if"]) if "if" in said else ""
    return Order(either=tuple(_order(inner, way) for way in ways), note=note)


_MARKS = ("literal", "lookup", "order", "named")
# Values that are looked up, with what each of them cannot be without.
_READING = {"lookup": {"tool", "field"}, "order": {"number", "field"}, "named": {"tool", "kind"}}
# More levels than a value has that a person writes.
_DEPTH_MAX = 16


def _value(at: _At, name: str, given: Any) -> Value:
    """A value: an object with one of the marks is read, anything else is a literal."""
    if not isinstance(given, Mapping) or len(given) != 1 or (mark := next(iter(given))) not in _MARKS:
        _expect_no_mark(at, name, given)
        return Literal(at.json(name, given))
    said = given[mark]
    match mark:
        case "literal":
            return Literal(at.json(name, said))
        case "lookup":
            return _lookup(at, said)
        case "order":
            return _from_order(at, said)
        case _:
            named = at.object("named", said, ("tool", "arguments", "kind"))
            return NamedSource(*_read(at, named), at.text("kind", named.get("kind")))


def _expect_no_mark(at: _At, name: str, given: Any, depth: int = 0) -> None:
    """Refuse a look-up within a value: it would be compared as the words that it is written in."""
    if depth > _DEPTH_MAX or not isinstance(given, Mapping | list | tuple):
        return
    mark, said = next(iter(given.items())) if isinstance(given, Mapping) and len(given) == 1 else ("", None)
    if mark in _READING and isinstance(said, Mapping) and _READING[mark] <= said.keys():
        raise at.rejected(name, given, f"`{mark}` as a whole value, or {{literal: …}} around one that only looks so")
    for inner in given.values() if isinstance(given, Mapping) else given:
        _expect_no_mark(at, name, inner, depth + 1)


def _read(at: _At, said: JsonObject) -> tuple[str, str]:
    """The tool of a look-up and its arguments."""
    arguments = said.get("arguments", {})
    if not isinstance(arguments, Mapping):
        raise at.rejected("arguments", arguments, "a JSON object")
    for name, one in arguments.items():
        _expect_no_mark(at, str(name), one)
    return at.text("tool", said.get("tool")), at.json("arguments", dict(arguments))


def _lookup(at: _At, given: Any) -> Lookup:
    said = at.object("lookup", given, ("tool", "arguments", "where", "pick", "field", *NumberChange))
    where, pick = said.get("where", ()), said.get("pick", "only")
    if not isinstance(where, list | tuple) or len(where) > CONDITIONS_MAX:
        raise at.rejected("where", where, f"a list of at most {CONDITIONS_MAX} conditions")
    if pick != "only":
        pick = at.object("pick", pick, ("max",)).get("max")
    changes = [NumberChange(key) for key in NumberChange if key in said]
    if len(changes) > 1:
        raise at.rejected("lookup", [*changes], "one of plus, minus, times")
    number = said[changes[0]] if changes else 0
    if not isinstance(number, int | float) or isinstance(number, bool):
        raise at.rejected(changes[0], number, "a number")
    tool, arguments = _read(at, said)
    return Lookup(
        tool=tool,
        arguments=arguments,
        field=at.text("field", said.get("field")),
        where=tuple(_where(at, one) for one in where),
        largest="" if pick == "only" else at.text("max", pick),
        change=changes[0] if changes else None,
        by=at.json(changes[0], number) if changes else "",
    )


def _where(at: _At, given: Any) -> FieldTest:
    said = at.object("where", given, ("field", *Comparison))
    tests = [Comparison(key) for key in Comparison if key in said]
    if len(tests) != 1:
        raise at.rejected("where", given, f"a field and one of {', '.join(Comparison)}")
    return FieldTest(at.text("field", said.get("field")), tests[0], at.json("where", said[tests[0]]))


def _from_order(at: _At, given: Any) -> FromOrder:
    said = at.object("order", given, ("number", "field"))
    number = said.get("number")
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < at.number:
        raise at.rejected("number", number, "the number of an earlier order, from 1")
    return FromOrder(number, at.text("field", said.get("field")))


def _wording(at: _At, name: str, given: Any) -> Wording:
    if isinstance(given, str):
        given = {"exact": given}
    said = at.object(name, given, ("exact", "template", "slots", "free"))
    if "free" in said and len(said) == 1 and isinstance(said["free"], list | tuple):
        return Free(tuple(at.text("free", source) for source in said["free"]))
    if "exact" in said and len(said) == 1 and isinstance(text := said["exact"], str) and len(text) <= TEXT_CHARS_MAX:
        return Exact(text)
    slots = said.get("slots", {})
    if "template" not in said or not isinstance(slots, Mapping):
        raise at.rejected(name, given, "a text, {exact: text}, {template: text, slots: {...}} or {free: [tools]}")
    text = at.text(name, said["template"], TEXT_CHARS_MAX)
    filled = tuple((at.text("slots", slot), _value(at, slot, one)) for slot, one in sorted(slots.items()))
    if missing := [slot for slot, _ in filled if f"{{{slot}}}" not in text]:
        raise at.rejected("slots", missing[0], f"a slot that stands in the template as {{{missing[0]}}}")
    if unfilled := [slot for slot in _SLOT.findall(text) if slot not in slots]:
        raise at.rejected("slots", unfilled[0], "a slot for each {name} of the template, or an exact text")
    return Template(text, filled)


def _order_json(order: Order) -> JsonObject:
    said: JsonObject = {"if": order.note} if order.note else {}
    if order.either:
        return {**said, "either": [_order_json(way) for way in order.either]}
    args = {name: _value_json(value) for name, value in order.args}
    text = {name: _wording_json(wording) for name, wording in order.text}
    return {"tool": order.tool, **({"args": args} if args else {}), **({"text": text} if text else {}), **said}


def _value_json(value: Value) -> JsonObject:
    match value:
        case Literal():
            return {"literal": parse_json(value.json)}
        case FromOrder():
            return {"order": {"number": value.number, "field": value.field}}
        case NamedSource():
            return {"named": {"tool": value.tool, "arguments": parse_json(value.arguments), "kind": value.kind}}
    said: JsonObject = {"tool": value.tool, "arguments": parse_json(value.arguments), "field": value.field}
    if value.where:
        said["where"] = [{"field": one.field, one.test.value: parse_json(one.literal)} for one in value.where]
    if value.largest:
        said["pick"] = {"max": value.largest}
    if value.change is not None:
        said[value.change.value] = parse_json(value.by)
    return {"lookup": said}


def _wording_json(wording: Wording) -> JsonObject:
    if isinstance(wording, Exact):
        return {"exact": wording.text}
    if isinstance(wording, Free):
        return {"free": list(wording.sources)}
    return {"template": wording.text, "slots": {slot: _value_json(value) for slot, value in wording.slots}}
