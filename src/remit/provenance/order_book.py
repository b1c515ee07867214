"""The book of orders: fills in what a run's orders leave to look-ups, and compares effects with them.

Rule 1: a read of the orders counts once, as it was before the first effect; what the run writes changes no look-up.
Rule 2: a look-up supplies a value when exactly one record is left, from a field that the tool declares, of the kind that
        the argument wants. Two candidates supply nothing: there is no better match.
Rule 3: an effect equals an order when every argument does. An argument that the order does not name must be empty.
Rule 4: an order is used up by one effect. One that did nothing is open again.
Rule 5: free text points nowhere but to literals of the orders, and is blocked once something private was read that no
        order lists.
"""

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from string import ascii_lowercase
from typing import Any, NamedTuple

from remit.core.journal.canonical import canonical_json
from remit.core.limits.tool_trust import Reads
from remit.core.record import JsonObject, replace
from remit.core.run.person import is_unseen
from remit.core.schema.json_text import parse_json
from remit.core.work.orders import (
    Comparison,
    Exact,
    FieldTest,
    Free,
    FromOrder,
    LeasedOrders,
    Literal,
    Lookup,
    NamedSource,
    NumberChange,
    Order,
    OrderUsed,
    Template,
    Value,
    Wording,
    defaults_of,
    reads_of,
    values_of,
    ways_of,
)
from remit.provenance.call_log import call_bytes, call_digest
from remit.provenance.declarations import Declaration
from remit.provenance.kinds import is_in_calendar, number_of, satisfies, supplies
from remit.provenance.order_checks import carries_words, expect_tools, rejected, spellings
from remit.provenance.origins.labels import Observation
from remit.provenance.values.payload import points_to

_EMPTY: tuple[Any, ...] = ("", None, [], {})
_SHOWN_CHARS_MAX = 80
# Of one value or text on the line of an order, and of where a value comes from.
_LINE_CHARS_MAX = 400
_ORIGIN_CHARS_MAX = 300
_CHANGES: Mapping[NumberChange, Callable[[Decimal, Decimal], Decimal]] = {
    NumberChange.PLUS: operator.add,
    NumberChange.MINUS: operator.sub,
    NumberChange.TIMES: operator.mul,
}


class Supplied(NamedTuple):
    """What a value of an order comes to: its canonical JSON, or why there is none; and where it comes from."""

    json: str
    why: str = ""
    origin: str = ""


class OrderMatch(NamedTuple):
    """The order that an effect equals; 0 and why, where it equals none."""

    number: int
    why: str = ""


class OrderBook:
    """The orders of one run: what was looked up for them, and which effect used up which."""

    def __init__(
        self,
        orders: tuple[Order, ...],
        tools: Mapping[str, Declaration],
        *,
        is_confirmed: bool,
        numbers: tuple[int, ...] = (),
        of: int = 0,
        is_strict: bool = False,
    ) -> None:
        """Strict ones name every argument that is not empty, also where the tool fills it in.

        `numbers` are those of the orders in a whole list of so many, where these are a part of it.
        """
        expect_tools(orders, tools)
        self.orders = orders
        self._numbers, self._of = numbers or tuple(range(1, len(orders) + 1)), of or len(orders)
        self._is_strict = is_strict
        self.is_confirmed = is_confirmed
        self.confirmed_by, self.confirmed_at_ms = "", 0
        self._tools = tools
        # Those that runs beneath this one were leased and have not ended with.
        self.leased: set[int] = set()
        # What the orders' own reads returned, by the hash of the call, and what carrying out an order returned.
        self._reads: dict[str, Observation | None] = dict.fromkeys(_digest(*read) for read in reads_of(orders))
        self._results: dict[int, Observation] = {}
        self._by_tool: dict[str, list[tuple[int, Order]]] = {}
        for number, order in zip(self._numbers, orders, strict=True):
            for way in ways_of(order):
                self._by_tool.setdefault(way.tool, []).append((number, way))
        self._literals = frozenset(_literals(orders))
        self._listed = frozenset(_listed(orders))

    def amended(self, orders: tuple[Order, ...]) -> "OrderBook":
        """Other orders, filled from what was looked up. Once that has happened, they may look up nothing else."""
        book = OrderBook(orders, self._tools, is_confirmed=False)
        has_looked = any(read is not None for read in self._reads.values())
        for number, order in enumerate(orders, 1):
            for tool, arguments in reads_of((order,)):
                digest = _digest(tool, arguments)
                if has_looked and digest not in self._reads:
                    raise rejected(
                        number, "lookup", f"{tool} {arguments}", "a look-up that was made, or write the value"
                    )
                book._reads[digest] = self._reads.get(digest)
        return book

    def used(self, number: int) -> OrderUsed:
        """An order as a verdict names it."""
        return OrderUsed(number, self._of, self.confirmed_by, self.confirmed_at_ms)

    def lease(self, tools: Collection[str], closed: Collection[int]) -> LeasedOrders | None:
        """The orders that a run with these tools could carry out now, filled in; None where there are none.

        What is not known yet stays here: a lease holds literals alone, so that nothing is looked up twice.
        """
        if not self.is_confirmed:
            return None
        numbered = zip(self._numbers, self.orders, strict=True)
        filled = [(number, self._filled(order, tools)) for number, order in numbered if number not in closed]
        leased = [(number, order) for number, order in filled if order is not None]
        if not leased:
            return None
        numbers, orders = zip(*leased, strict=True)
        return LeasedOrders(orders, numbers, self._of, self.confirmed_by, self.confirmed_at_ms)

    def _filled(self, order: Order, tools: Collection[str]) -> Order | None:
        """An order with what was looked up in place of its look-ups; None where a part of it is not known."""
        ways = tuple([filled for way in ways_of(order) if way.tool in tools and (filled := self._filled_way(way))])
        if order.either:
            return replace(order, either=ways) if ways else None
        return ways[0] if ways else None

    def _filled_way(self, way: Order) -> Order | None:
        args = [(name, self.supplied(value, name, way.tool).json) for name, value in way.args]
        text: list[tuple[str, Wording]] = []
        for name, wording in way.text:
            rendered, why = self._rendered(wording) if isinstance(wording, Template) else ("", "")
            if why:
                return None
            text.append((name, Exact(rendered) if isinstance(wording, Template) else wording))
        if not all(json for _, json in args):
            return None
        return replace(way, args=tuple([(name, Literal(json)) for name, json in args]), text=tuple(text))

    def lists(self, tool: str) -> bool:
        """Whether an order reads with this tool, or words a text from what it returns."""
        return tool in self._listed

    def unread(self) -> str:
        """The first look-up whose read has returned nothing yet; empty where there is none."""
        reads = (read for read in reads_of(self.orders) if self._reads[_digest(*read)] is None)
        return next((f"{tool} {arguments}" for tool, arguments in reads), "")

    def has_looked_up(self, observation: Observation) -> bool:
        """Whether this is what a look-up of the orders returned."""
        return any(read is observation for read in self._reads.values())

    def note(self, digest: str, order: int, observation: Observation, carried_out: Collection[int]) -> None:
        """Take in what a call returned: a read of the orders before anything was done, or an effect that was ordered."""
        if order:
            self._results.setdefault(order, observation)
        elif not carried_out and digest in self._reads and self._reads[digest] is None:
            self._reads[digest] = observation

    def match(
        self, tool: str, arguments: JsonObject, carried_out: Collection[int], *, has_unlisted: bool
    ) -> OrderMatch:
        """The open order that an effect equals. `has_unlisted`: the run has read something private that no order lists."""
        found = self._by_tool.get(tool, ())
        why = f"every order for {tool} is used up" if found else f"no order is for {tool}"
        for number, way in found:
            if number in carried_out:
                continue
            objection = self._differs(way, arguments, has_unlisted=has_unlisted)
            if not objection:
                return OrderMatch(number)
            why = f"order {number}: {objection}"
        # Only what is asked about pays for telling which order it was.
        for number, way in found:
            if number in carried_out and not self._differs(way, arguments, has_unlisted=has_unlisted):
                return OrderMatch(0, self._why_closed(number))
        return OrderMatch(0, why)

    def _why_closed(self, number: int) -> str:
        if number in self.leased:
            return f"order {number} was handed to a run beneath this one, which has not ended"
        return f"order {number} is used up: a call of it was made, or a run beneath this one may have made it"

    def supplied(self, value: Value, argument: str = "", tool: str = "") -> Supplied:
        """What a value of an order comes to, for this argument of this tool."""
        match value:
            case Literal():
                return Supplied(value.json, origin="given")
            case FromOrder():
                result = self._results.get(value.number)
                if result is None:
                    return Supplied("", f"order {value.number} has returned nothing yet")
                origin = f"order {value.number}.{value.field}"
                return self._picked(result, value.field, (), "", self._wanted(tool, argument), origin)
            case Lookup():
                return self._looked_up(value, argument, tool)
            case NamedSource():
                return self._named(value)

    def lines(self) -> tuple[str, ...]:
        """The list as a person reads it: at most two lines an order, with values, origins and what nothing fixes."""
        numbered = zip(self._numbers, self.orders, strict=True)
        return tuple(shown_plainly(line) for number, order in numbered for line in self._order_lines(number, order))

    def _order_lines(self, number: int, order: Order) -> Iterator[str]:
        ways = ways_of(order)
        letters = [f"{letter}) " for letter in ascii_lowercase[: len(ways)]] if order.either else [""]
        heads = [f"{letter}{self._head(way)}" for letter, way in zip(letters, ways, strict=True)]
        yield f"{number}. {' OR '.join(heads)}{_unchecked(order) if order.either else ''}"
        texts = [
            letter + "; ".join(self._wording_shown(*named) for named in way.text)
            for letter, way in zip(letters, ways, strict=True)
            if way.text
        ]
        if texts:
            yield f"   {' OR '.join(texts)}"

    def _head(self, way: Order) -> str:
        args = ", ".join(self._shown(way, *named) for named in way.args)
        return f"{way.tool} {args}".rstrip() + _unchecked(way)

    def _shown(self, order: Order, name: str, value: Value) -> str:
        found = self.supplied(value, name, order.tool)
        if found.json:
            return f"{name}={_cut(found.json)}{'' if found.origin == 'given' else f' ({found.origin})'}"
        return f"{name}=? ({found.why}{f': {found.origin}' if found.origin else ''})"

    def _wording_shown(self, name: str, wording: Wording) -> str:
        match wording:
            case Exact():
                return f"{name}: {_cut(repr(wording.text))}"
            case Template():
                slots = "; ".join(self._slot_shown(*slot) for slot in wording.slots)
                return f"{name}: {_cut(repr(self._rendered(wording)[0]))}{f' ({slots})' if slots else ''}"
            case Free():
                return f"{name}: FREE TEXT from {', '.join(wording.sources) or 'the request'} (nothing fixes its words)"

    def _slot_shown(self, slot: str, value: Value) -> str:
        """Where the value of a slot comes from, or why there is none."""
        found = self.supplied(value)
        if found.json:
            return f"{slot} {'given' if found.origin == 'given' else f'from {found.origin}'}"
        return f"{slot} NOT KNOWN: {found.why}{f': {found.origin}' if found.origin else ''}"

    def _looked_up(self, value: Lookup, argument: str, tool: str) -> Supplied:
        observation = self._reads.get(_digest(value.tool, value.arguments))
        origin = _origin(value)
        if observation is None:
            return Supplied("", f"{value.tool} was not read yet", origin)
        found = self._picked(observation, value.field, value.where, value.largest, self._wanted(tool, argument), origin)
        if not found.json or value.change is None:
            return found
        number, by = number_of(parse_json(found.json)), number_of(parse_json(value.by))
        if number is None or by is None:
            return Supplied("", f"{value.field} is {found.json[:_SHOWN_CHARS_MAX]} and no number", origin)
        return Supplied(_number_json(_CHANGES[value.change](number, by)), "", f"{origin} {value.change} {value.by}")

    def _named(self, value: NamedSource) -> Supplied:
        observation = self._reads.get(_digest(value.tool, value.arguments))
        origin = f"the only {value.kind} in {value.tool} {value.arguments}"[:200]
        if observation is None:
            return Supplied("", f"{value.tool} was not read yet", origin)
        held = {text for kind, text in observation.references if kind == value.kind}
        for group in observation.groups.values():
            fields = [field for field, kind in group.kinds.items() if satisfies(value.kind, kind)]
            held |= {str(one) for record in group.records for field in fields for one in _each(record.get(field))}
        if len(held) != 1:
            return Supplied("", f"{len(held)} values of kind {value.kind} are in it, and one is needed", origin)
        return Supplied(canonical_json(held.pop()).decode(), "", origin)

    def _picked(
        self, observation: Observation, field: str, where: tuple[FieldTest, ...], largest: str, wanted: str, origin: str
    ) -> Supplied:
        """The field of the one record that is left."""
        found = [
            (group, name) for group in observation.groups.values() for name in spellings(field) if name in group.kinds
        ]
        if len(found) != 1:
            return Supplied("", f"the result has {len(found)} groups of records with a declared field {field}", origin)
        group, name = found[0]
        if group.is_cut:
            return Supplied("", "the result has more records than are kept", origin)
        if not supplies(kind := group.kinds[name]) or not (not wanted or satisfies(wanted, kind)):
            return Supplied("", f"{field} is of kind {kind}, and {wanted or 'a value'} is wanted", origin)
        left = [record for record in group.records if all(_holds(record, one) for one in where)]
        if largest and left:
            if not (ends := _largest(left, largest)):
                return Supplied("", f"a record has no {largest} that can be compared, so none is the largest", origin)
            left = ends
        if len(left) != 1:
            return Supplied("", f"{len(left)} records fit, and one is needed", origin)
        values = list(_each(left[0].get(name)))
        if len(values) != 1:
            return Supplied("", f"the record has {len(values)} values of {field}, and one is needed", origin)
        return Supplied(canonical_json(values[0]).decode(), "", origin)

    def _wanted(self, tool: str, argument: str) -> str:
        declaration = self._tools.get(tool)
        return "" if declaration is None else dict(declaration.control_args).get(argument, "")

    def _differs(self, order: Order, arguments: JsonObject, *, has_unlisted: bool) -> str:
        """What is different about an effect; empty where nothing is."""
        args, text, defaults = dict(order.args), dict(order.text), self._defaults(order.tool)
        # What is strict compares the call as it will be made: with all that the tool itself fills in.
        made = {**({name: parse_json(json) for name, json in defaults.items()} if self._is_strict else {}), **arguments}
        for name, value in args.items():
            found = self.supplied(value, name, order.tool)
            if not found.json:
                return f"{name} is not known: {found.why}"
            given = made.get(name)
            if name not in made or not _is_same(found.json, given):
                return f"{name} is {found.json[:_SHOWN_CHARS_MAX]}, not {_shown_json(given)}"
        for name, wording in text.items():
            if isinstance(wording, Free) and not carries_words(self._tools[order.tool], name):
                return f"{name} steers the effect, and the order leaves it to free words"
            if why := self._misworded(wording, made.get(name), has_unlisted=has_unlisted):
                return f"{name} {why}"
        for name, given in made.items():
            is_off = self._is_strict and given is False and name not in arguments  # A switch that stays off is nothing.
            is_left_out = (
                given in _EMPTY
                or is_off
                or (not self._is_strict and name in defaults and _is_same(defaults[name], given))
            )
            if name not in args and name not in text and not is_left_out:
                return f"{name} is not in the order, and is {_shown_json(given)}"
        return ""

    def _misworded(self, wording: Wording, given: Any, *, has_unlisted: bool) -> str:
        """What is wrong with a text; empty where nothing is."""
        if isinstance(wording, Free):
            if not isinstance(given, str):
                return "is no text"
            if has_unlisted:
                return "is free text, and something private was read that no order lists"
            strange = next((one for one in points_to(given) if one not in self._literals), None)
            return "" if strange is None else f"points to {strange[:_SHOWN_CHARS_MAX]!r}, which no order names"
        text, why = (wording.text, "") if isinstance(wording, Exact) else self._rendered(wording)
        return why or ("" if text == given else "is worded otherwise than ordered")

    def _rendered(self, wording: Template) -> tuple[str, str]:
        """A template with its slots filled, and what is missing."""
        text, why = wording.text, ""
        for slot, value in wording.slots:
            found = self.supplied(value)
            why = why or ("" if found.json else f"has a slot {slot} that is not known: {found.why}")
            filled = parse_json(found.json) if found.json else "?"
            text = text.replace(f"{{{slot}}}", filled if isinstance(filled, str) else found.json)
        return text, why

    def _defaults(self, tool: str) -> dict[str, str]:
        declaration = self._tools.get(tool)
        found = defaults_of(declaration.parameters) if declaration is not None else {}
        return {name: canonical_json(value).decode() for name, value in found.items()}


def leased_book(leased: LeasedOrders, tools: Mapping[str, Declaration]) -> OrderBook:
    """The book of a run beneath another, with what that has leased it."""
    book = OrderBook(leased.orders, tools, is_confirmed=True, numbers=leased.numbers, of=leased.of)
    book.confirmed_by, book.confirmed_at_ms = leased.by, leased.at_ms
    return book


def _digest(tool: str, arguments: str) -> str:
    """The hash of a call, as the gate names it."""
    return call_digest(call_bytes(tool, parse_json(arguments)))


def _origin(value: Lookup) -> str:
    """Where a look-up takes its value from; that it trusts a field which others may be able to write is said."""
    tests = [f"{one.field} {one.test.value} {one.literal}" for one in value.where]
    where = f" where {' and '.join(tests)}" if tests else ""
    largest = f" with the LARGEST {value.largest}, which others may write" if value.largest else ""
    return f"{value.tool} {value.arguments}.{value.field}{where}{largest}"[:_ORIGIN_CHARS_MAX]


def _unchecked(order: Order) -> str:
    return f"  ONLY IF {order.note!r} (nothing checks this)" if order.note else ""


def _cut(text: str) -> str:
    """A text as a line holds it; what is left out is told."""
    return text if len(text) <= _LINE_CHARS_MAX else f"{text[:_LINE_CHARS_MAX]} … CUT, {len(text)} characters in all"


def _holds(record: JsonObject, where: FieldTest) -> bool:
    """Whether a record fulfils a condition; of several values of a field, one must."""
    wanted = parse_json(where.literal)
    for value in (value for name in spellings(where.field) for value in _each(record.get(name))):
        if where.test is Comparison.IS and _is_same(where.literal, value):
            return True
        if isinstance(value, str) and isinstance(wanted, str):
            if where.test is Comparison.CONTAINS and wanted in value:
                return True
            if where.test is Comparison.STARTS and value.startswith(wanted):
                return True
    return False


def _largest(records: list[JsonObject], field: str) -> list[JsonObject]:
    """The records whose field is the largest: a number, or a moment in ISO form; none where one cannot be compared."""
    held = [next((record[name] for name in spellings(field) if name in record), None) for record in records]
    numbers = [number_of(value) for value in held]
    if all(number is not None for number in numbers):
        return [one for one, number in zip(records, numbers, strict=True) if number == max(numbers)]  # type: ignore[type-var]
    moments = [value if isinstance(value, str) and is_in_calendar(value) else "" for value in held]
    # Moments compare by their letters where they are written alike.
    if not all(moments) or len({(len(one), one[10:11], one[19:]) for one in moments}) > 1:
        return []
    return [one for one, moment in zip(records, moments, strict=True) if moment == max(moments)]


def _number_json(number: Decimal) -> str:
    whole = number.to_integral_value()
    return canonical_json(int(whole) if number == whole else float(number)).decode()


def _is_same(canonical: str, value: Any) -> bool:
    return canonical_json(value).decode() == canonical


def _shown_json(value: Any) -> str:
    return canonical_json(value).decode()[:_SHOWN_CHARS_MAX]


def shown_plainly(line: str) -> str:
    """A line of a list with nothing in it that hides or turns text around; values stand in quotes with their own escapes."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(one.encode("unicode_escape").decode() if is_unseen(one) else one for one in line)


def _each(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    return value if isinstance(value, list) else (value,)


def _literals(orders: tuple[Order, ...]) -> Iterator[str]:
    """Every text and number that the orders hold literally."""
    for order in orders:
        for value in values_of(order):
            if isinstance(value, Literal):
                yield from map(str, _scalars(parse_json(value.json)))
        for way in ways_of(order):
            for _, wording in way.text:
                if isinstance(wording, Exact | Template):
                    yield from points_to(wording.text)


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _scalars(inner)
    else:
        yield value


def _listed(orders: tuple[Order, ...]) -> Iterator[str]:
    for order in orders:
        yield from (value.tool for value in values_of(order) if isinstance(value, Lookup | NamedSource))
        for way in ways_of(order):
            for _, wording in way.text:
                if isinstance(wording, Free):
                    yield from wording.sources


def reads_privately(declaration: Declaration) -> bool:
    """Whether a tool may return what is not public: a secret, or private knowledge."""
    return declaration.reads is not Reads.PUBLIC
