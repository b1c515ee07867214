"""Before a run with orders begins its own graph: orders are made where a model makes them, looked up once, and confirmed.

Rule 1: the model that makes orders sees the user's words, the date and the tools, and nothing else.
Rule 2: the reads are proposed by code and judged like any call; what they return fills the orders, and the model is shown it.
Rule 3: a read that fails or is refused fills nothing: the effects that need it ask a person.
Rule 4: the caller's own orders are confirmed by being given. A model's are shown to a person, with what was looked up.
        Of what a model says, an order that no tool could carry out is left out, and so is everything where it cannot be
        read at all: that costs questions.
"""

import json
import re
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from remit.core.failure import RequestRejected
from remit.core.limits.authority import Confirm, Maker
from remit.core.limits.boundary import Boundary
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject, replace
from remit.core.regex import regex
from remit.core.run.contract import SystemRequest
from remit.core.run.lifecycle import LifecycleState
from remit.core.run.messages import Role
from remit.core.schema.json_text import NotJson, parse_json
from remit.core.work.graph import (
    PROMPT_CHARS_MAX,
    STANDARD_RULES,
    Ask,
    Edge,
    Graph,
    Node,
    NodeKind,
    NodeOutcome,
    Sees,
    StepInput,
    schema_text,
)
from remit.core.work.orders import (
    CONFIRM,
    LIST,
    LOOK_UP,
    ORDERS_INVALID,
    ORDERS_MAX,
    TAKE,
    Literal,
    Order,
    orders_of,
    reads_of,
    ways_of,
)
from remit.core.work.values import ValueKind

if TYPE_CHECKING:
    from remit.provenance.declarations import Declaration

_MAKE, _TAKE, _PROPOSE, _READ, _LIST, _CONFIRM = (
    "make_orders",
    "take_orders",
    "look_up_orders",
    "read_for_orders",
    "list_orders",
    "confirm_orders",
)
_PREPARE = LifecycleState.PREPARE
# As many names of the user's words as a maker of orders chooses from.
NAMES_MAX = 100
# How kinds of identifiers begin; punctuation around a word; what makes a word the name of something.
ID_MARK = "id:"
_AROUND = ".,;:!?()[]{}\"'\u201c\u201d\u2018\u2019"
_NAME = regex(r"\d|\w[@._/#-]\w|[a-z][A-Z]")

_TASK = """Today is {today}. Write down, as JSON, which effects the user asks for: {{"orders": [...]}}. Do nothing else.
One order is one call of a tool that changes something:
{{"tool": NAME, "args": {{ARGUMENT: VALUE}}, "text": {{ARGUMENT: WORDING}}}}, with "if": NOTE where the user sets a condition.
A VALUE is a literal that the user wrote, or {{"lookup": {{"tool": A READ, "arguments": {{...}}, "where": [{{"field": F, "=": X}}],
"field": F}}}} for a field of the one record that is found ("pick": {{"max": F}} for the one with the largest F), or
{{"order": {{"number": N, "field": F}}}} for what an earlier order returned. A WORDING is a text as the user wants it, or
{{"free": [READS]}} where the words are left to you. Leave out what the user does not ask for. No effect: {{"orders": []}}.
Tools:
{tools}"""


def begun_with_orders(
    graph: Graph, request: SystemRequest, boundary: Boundary, tools: tuple[ToolDefinition, ...], now_ms: int
) -> Graph:
    """The graph, begun with what its orders need; as it is where there are none to make and nothing to look up.

    Raises RequestRejected for orders that these tools could never carry out.
    """
    if request.orders:
        _check(request.orders, _declarations(tools))
        return _chained(graph, *_look_ups()) if reads_of(request.orders) else graph
    if boundary.authority is None or boundary.authority.orders is not Maker.MODEL:
        return graph
    if not any(tool.effect.is_mutating for tool in tools):
        return graph
    make = Node(_MAKE, NodeKind.MODEL, _PREPARE, visits_max=1, ask=_asked(tools, now_ms, _names_in(request)))
    text = ValueKind.TEXT
    listed = Node(_LIST, NodeKind.DECIDE, _PREPARE, visits_max=1, code=LIST, feed=StepInput(gives=text, kind=text))
    confirm = Node(_CONFIRM, NodeKind.HUMAN, visits_max=1, prompt=CONFIRM, feed=StepInput(source=_LIST))
    if boundary.authority.confirm is Confirm.AFTER:
        return _chained(graph, make, *_look_ups(), listed, confirm)
    take = Node(_TAKE, NodeKind.DECIDE, _PREPARE, visits_max=1, code=TAKE)
    return _chained(graph, make, take, listed, confirm, *_look_ups())


def _look_ups() -> tuple[Node, Node]:
    propose = Node(_PROPOSE, NodeKind.DECIDE, _PREPARE, visits_max=1, code=LOOK_UP)
    return propose, Node(_READ, NodeKind.TOOL, _PREPARE, visits_max=1, rules=STANDARD_RULES)


def _chained(graph: Graph, *before: Node) -> Graph:
    """The graph with these nodes before its start, one after the other."""
    names = [node.name for node in before]
    if taken := [node.name for node in graph.nodes if node.name in names]:
        raise RequestRejected(
            ORDERS_INVALID, f"graph {graph.name!r}: node {taken[0]!r} has a name that orders use; rename it"
        )
    onward = [Edge(name, after) for name, after in zip(names, [*names[1:], graph.start], strict=True)]
    failed = [Edge(edge.source, edge.target, NodeOutcome.FAILED) for edge in onward if edge.source in (_MAKE, _READ)]
    return replace(graph, start=names[0], nodes=(*before, *graph.nodes), edges=(*failed, *onward, *graph.edges))


def _asked(tools: tuple[ToolDefinition, ...], now_ms: int, names: Sequence[str] = ()) -> Ask:
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date().isoformat()
    lines = [json.dumps(_shown(declaration), ensure_ascii=False) for declaration in _declarations(tools).values()]
    task = _TASK.format(today=today, tools="\n".join(lines))
    if len(task) > PROMPT_CHARS_MAX:
        message = f"orders: {len(lines)} tools take {len(task)} characters, more than {PROMPT_CHARS_MAX}; give the run fewer tools, or give the orders yourself"
        raise RequestRejected(ORDERS_INVALID, message)
    return Ask(task, tools=(), schema=schema_text(_schema(_declarations(tools).values(), names)), sees=Sees.USER)


def _schema(declarations: "Collection[Declaration]", names: Sequence[str]) -> JsonObject:
    """The shape of what a maker of orders says: orders of the tools that change something, values or look-ups of the reads."""
    reads = [one for one in declarations if not one.effect.is_mutating and one.result]
    sources = [one.name for one in declarations if not one.effect.is_mutating]
    orders = [_order_schema(one, reads, sources, names) for one in declarations if one.effect.is_mutating]
    items = orders[0] if len(orders) == 1 else {"anyOf": orders}
    return {
        "type": "object",
        "properties": {"orders": {"type": "array", "maxItems": ORDERS_MAX, "items": items}},
        "required": ["orders"],
    }


def _names_in(request: SystemRequest) -> list[str]:
    """What the user wrote that is shaped like an identifier: with digits, signs within, or capitals within."""
    said = " ".join(str(message.content) for message in request.messages if message.role is Role.USER)
    words = [word.strip(_AROUND) for word in said.split()]
    return [*dict.fromkeys(word for word in words if _NAME.search(word))][:NAMES_MAX]


def _order_schema(
    declaration: "Declaration", reads: "Sequence[Declaration]", sources: Sequence[str], names: Sequence[str]
) -> JsonObject:
    known: JsonObject = declaration.parameters.get("properties", {})
    kinds = dict(declaration.control_args)
    # What names a record is a name that the user wrote, or looked up: a model makes up none.
    steering = [name for name in known if name not in declaration.payload_args]
    args = {
        name: _value_schema({"enum": [*names]} if kinds.get(name, "").startswith(ID_MARK) else known[name], reads)
        for name in steering
    }
    free = {"type": "object", "properties": {"free": {"type": "array", "items": {"enum": [*sources]}}}}
    wording: JsonObject = (
        {"anyOf": [{"type": "string"}, {**free, "required": ["free"]}]} if sources else {"type": "string"}
    )
    text = {name: wording for name in known if name in declaration.payload_args}
    required = [name for name in declaration.parameters.get("required", ()) if name in known]
    parts: JsonObject = {
        "tool": {"enum": [declaration.name]},
        "args": _object(args, [*filter(args.__contains__, required)]),
    }
    if text:
        parts["text"] = _object(text, [*filter(text.__contains__, required)])
    return _object(parts | {"if": {"type": "string"}}, ["tool", "args", *(["text"] if text else [])])


def _value_schema(schema: object, reads: "Sequence[Declaration]") -> JsonObject:
    """A literal of a plain type, or a look-up; what is not plain is not told."""
    plain = {key: said for key, said in schema.items() if key in ("type", "enum")} if isinstance(schema, dict) else {}
    if plain.get("type") not in ("string", "integer", "number", "boolean") and "enum" not in plain:
        return {}
    look_up: JsonObject = {"type": "object", "required": ["lookup"]}
    literals = [] if plain.get("enum") == [] else [plain]
    # Without names and reads there is nothing that could be said: the order that says something is left out.
    found = [*literals, look_up] if reads else literals
    return {"anyOf": found} if len(found) > 1 else {} if not found else found[0]


def _object(properties: JsonObject, required: Sequence[str]) -> JsonObject:
    return {"type": "object", "properties": properties, "required": [*required], "additionalProperties": False}


def _shown(declaration: "Declaration") -> dict[str, object]:
    """What the maker of orders is told of a tool: reads with the fields that may be looked up."""
    properties = declaration.parameters.get("properties", {})
    said: dict[str, object] = {"tool": declaration.name, "arguments": list(properties)}
    if declaration.description:
        said["does"] = declaration.description.partition("\n")[0][:120]
    if declaration.effect.is_mutating:
        return said | {"effect": declaration.effect.value, "text": list(declaration.payload_args)}
    return said | {"fields": [field.name for field in declaration.result]}


def _check(orders: tuple[Order, ...], declarations: "dict[str, Declaration]") -> None:
    # Only runs with orders pay for the gate that knows what can be ordered.
    from remit.provenance.order_checks import check_orders

    check_orders(orders, declarations)


def _declarations(tools: tuple[ToolDefinition, ...]) -> "dict[str, Declaration]":
    from remit.orchestrate.facts.gate_facts import declared
    from remit.provenance.gate import opened_tools

    return opened_tools([declared(tool) for tool in tools]).declarations


def orders_said(text: str, tools: tuple[ToolDefinition, ...], words: str) -> tuple[Order, ...]:
    """The orders in what a model says, without those that cannot be read or that no tool could carry out.

    Nor is there one in which the model makes up what names a record: that stands in the user's `words`, or is looked up.
    Not every engine holds its model to the schema that says so.
    """
    try:
        said = parse_json(text)
    except NotJson:
        return ()
    given = said.get("orders") if isinstance(said, dict) else None
    if not isinstance(given, list):
        return ()
    declarations = _declarations(tools)
    # Where one of them is unsound, so is every one that names another by its number.
    whole = _sound(given, declarations, words)
    return whole or tuple(order for one in given[:ORDERS_MAX] for order in _sound([one], declarations, words))


def _sound(given: list[object], declarations: "dict[str, Declaration]", words: str) -> tuple[Order, ...]:
    """These orders; none, where one of them cannot be read or carried out, or names a record that the user did not."""
    try:
        orders = orders_of(given)
        _check(orders, declarations)
    except RequestRejected:
        return ()
    return () if any(_makes_up(way, declarations, words) for order in orders for way in ways_of(order)) else orders


def _makes_up(way: Order, declarations: "dict[str, Declaration]", words: str) -> bool:
    """Whether an order writes down what names a record, and the user wrote no such thing."""
    declaration = declarations[way.tool]
    kinds = dict(declaration.control_args)
    named = [value for name, value in way.args if kinds.get(name, "").startswith(ID_MARK)]
    steering = [wording for name, wording in way.text if name not in declaration.payload_args]
    literals = [parse_json(value.json) for value in named if isinstance(value, Literal)]
    return bool(steering) or not all(_is_said(one, words) for literal in literals for one in _each(literal))


def _each(literal: object) -> Sequence[object]:
    return literal if isinstance(literal, list) else [literal]


def _is_said(literal: object, words: str) -> bool:
    """Whether the user wrote this as a whole, and not as a part of something longer."""
    found = re.search(rf"(?<![\w@/.-]){re.escape(str(literal))}(?![\w@/-]|\.\w)", words)
    return literal is not None and literal != "" and found is not None
