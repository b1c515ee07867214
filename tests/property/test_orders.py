"""Laws of orders: what is written is read back, and a call equals its order only as it stands."""

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from remit.core.journal.canonical import canonical_json
from remit.core.work.orders import Order, orders_json, orders_of
from remit.provenance.declarations import declarations_of
from remit.provenance.order_book import OrderBook

NAMES = st.text("abcdefgh_", min_size=1, max_size=8)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=12)
LITERALS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3))
WHERE = st.builds(
    lambda field, test, literal: {"field": field, test: literal},
    NAMES,
    st.sampled_from(["=", "contains", "starts"]),
    SCALARS,
)
LOOKUPS = st.builds(
    lambda tool, arguments, field, where, pick, change: {
        "lookup": {"tool": tool, "arguments": arguments, "field": field, "where": where, "pick": pick} | change
    },
    NAMES,
    st.dictionaries(NAMES, SCALARS, max_size=2),
    NAMES,
    st.lists(WHERE, max_size=2),
    st.just("only") | st.builds(lambda field: {"max": field}, NAMES),
    st.just({}) | st.builds(lambda key, by: {key: by}, st.sampled_from(["plus", "minus", "times"]), st.integers(0, 9)),
)
NAMED = st.builds(lambda tool, kind: {"named": {"tool": tool, "arguments": {}, "kind": kind}}, NAMES, NAMES)
VALUES = st.builds(lambda value: {"literal": value}, LITERALS) | LOOKUPS | NAMED
WORDINGS = (
    st.builds(lambda text: {"exact": text}, st.text(max_size=20))
    | st.builds(lambda value: {"template": "to {who}", "slots": {"who": value}}, VALUES)
    | st.builds(lambda sources: {"free": sources}, st.lists(NAMES, max_size=2))
)


def _order(tool: str, args: dict[str, Any], text: dict[str, Any], note: str) -> dict[str, Any]:
    text = {name: wording for name, wording in text.items() if name not in args}
    return {"tool": tool, "args": args, "text": text} | ({"if": note} if note else {})


ORDERS = st.builds(
    _order,
    NAMES,
    st.dictionaries(NAMES, VALUES, max_size=3),
    st.dictionaries(NAMES, WORDINGS, max_size=2),
    st.text(max_size=9),
)
LISTS = st.lists(
    ORDERS | st.builds(lambda ways: {"either": ways}, st.lists(ORDERS, min_size=2, max_size=3)), max_size=4
)


@given(LISTS)
def test_what_is_written_is_read_back(given_orders: list[dict[str, Any]]) -> None:
    orders = orders_of(given_orders)
    assert orders_of(orders_json(orders)) == orders
    assert all(isinstance(order, Order) for order in orders)


def _book(arguments: dict[str, Any]) -> OrderBook:
    properties: dict[str, Any] = {name: {} for name in (*arguments, "other")}
    declared = declarations_of([{"name": "act", "effect": "external", "parameters": {"properties": properties}}])
    order = {"tool": "act", "args": {name: {"literal": value} for name, value in arguments.items()}}
    return OrderBook(orders_of([order]), declared, is_confirmed=True)


@given(st.dictionaries(NAMES, LITERALS, max_size=4))
def test_a_call_equals_the_order_that_was_made_of_its_arguments(arguments: dict[str, Any]) -> None:
    book = _book(arguments)
    assert book.match("act", arguments, (), has_unlisted=False).number == 1
    assert book.match("act", arguments, {1}, has_unlisted=False).number == 0
    assert book.match("another", arguments, (), has_unlisted=False).number == 0


@given(st.dictionaries(NAMES, LITERALS, min_size=1, max_size=4), st.data())
def test_a_call_with_one_other_argument_equals_no_order(arguments: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([*arguments, "other"]))
    value = data.draw(LITERALS)
    assume(value not in ("", None, [], {}))
    assume(name not in arguments or canonical_json(arguments[name]) != canonical_json(value))
    changed = {**arguments, name: value}
    assert _book(arguments).match("act", changed, (), has_unlisted=False).number == 0
    without = {key: one for key, one in arguments.items() if key != name}
    assert name == "other" or _book(arguments).match("act", without, (), has_unlisted=False).number == 0
