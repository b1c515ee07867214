"""Checks of orders: what a list says is held against the tools, so that what none of them could carry out is refused at once.

Rule 1: `expect_tools` asks for what a book of orders rests on, and holds for every list, also one that was written down long ago.
Rule 2: `check_orders` is for lists that come in: every argument is there, known, and of the type that its tool takes; every
        look-up could be made and every field be found. Whose values fit is for the look-ups to tell.
Rule 3: a message names the order, the key, the value, and what may stand there.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.limits.tools import Effect
from remit.core.schema.json_schema import compile_schema
from remit.core.schema.json_text import parse_json
from remit.core.work.orders import (
    ORDERS_INVALID,
    Exact,
    Free,
    FromOrder,
    Literal,
    Lookup,
    NamedSource,
    Order,
    values_of,
    ways_of,
)
from remit.provenance.declarations import Declaration

_SHOWN_CHARS_MAX = 80


def expect_tools(orders: tuple[Order, ...], tools: Mapping[str, Declaration]) -> None:
    """Refuse orders of tools that are not there, or of arguments and fields that these do not have."""
    for number, order in enumerate(orders, 1):
        for way in ways_of(order):
            declaration = tools.get(way.tool)
            if declaration is None or not declaration.effect.is_mutating:
                raise rejected(number, "tool", way.tool, "a tool of the run that changes something")
            known = declaration.parameters.get("properties", {})
            for name in (*dict(way.args), *dict(way.text)):
                if name not in known:
                    raise rejected(
                        number, "args", name, f"an argument of {way.tool}: {', '.join(known) or 'it has none'}"
                    )
        for value in values_of(order):
            if isinstance(value, Lookup | NamedSource):
                read = tools.get(value.tool)
                if read is None or read.effect is not Effect.READ:
                    raise rejected(number, "lookup", value.tool, "a tool of the run that only reads")
            if isinstance(value, Lookup):
                for field in (value.field, value.largest, *(one.field for one in value.where)):
                    if field:
                        _expect_field(number, field, tools[value.tool])


def check_orders(orders: tuple[Order, ...], tools: Mapping[str, Declaration]) -> None:
    """Refuse orders that these tools could never carry out."""
    expect_tools(orders, tools)
    for number, order in enumerate(orders, 1):
        for way in ways_of(order):
            _check_way(number, way, tools)
        for value in values_of(order):
            if isinstance(value, Lookup | NamedSource):
                _check_read(number, value, tools[value.tool])
            elif isinstance(value, FromOrder):
                _check_result(number, value, orders, tools)


def _check_way(number: int, way: Order, tools: Mapping[str, Declaration]) -> None:
    declaration, args, text = tools[way.tool], dict(way.args), dict(way.text)
    schemas = declaration.parameters.get("properties", {})
    for name in [one for one in _required(declaration) if one not in args and one not in text]:
        # Words may be left empty where the tool takes none; what steers an effect may not.
        if name not in declaration.payload_args or _misfit(schemas.get(name), ""):
            raise rejected(number, "args", name, f"this argument, which {way.tool} must have")
    for name, value in args.items():
        if isinstance(value, Literal) and (why := _misfit(schemas[name], parse_json(value.json))):
            raise rejected(number, name, value.json, f"a value that {way.tool} takes ({why})")
    for name, wording in text.items():
        said = wording.text if isinstance(wording, Exact) else "a text"
        if (isinstance(wording, Exact) or not _takes_text(schemas[name])) and (why := _misfit(schemas[name], said)):
            raise rejected(number, name, said, f"a text that {way.tool} takes ({why})")
        if isinstance(wording, Free) and not carries_words(declaration, name):
            way_out = (
                f"a value: free words steer no effect, so only arguments in `payload_args` of {way.tool} take them"
            )
            raise rejected(number, name, "free", way_out)
        unknown = [one for one in wording.sources if one not in tools] if isinstance(wording, Free) else []
        if unknown:
            raise rejected(number, name, unknown[0], f"tools of the run in `free`: {', '.join(tools)}")


def carries_words(declaration: Declaration, argument: str) -> bool:
    """Whether an argument is declared to carry words, and not to steer the effect."""
    return argument in declaration.payload_args and argument not in dict(declaration.control_args)


def _check_read(number: int, value: Lookup | NamedSource, read: Declaration) -> None:
    """Refuse a look-up whose call the tool would not take."""
    arguments, known = parse_json(value.arguments), read.parameters.get("properties")
    if not isinstance(known, dict):
        return  # What has no schema says nothing of what it takes.
    if unknown := [name for name in arguments if name not in known]:
        way_out = f"an argument of {read.name}: {', '.join(known) or 'it has none'}"
        raise rejected(number, "arguments", unknown[0], way_out)
    if missing := [name for name in _required(read) if name not in arguments]:
        raise rejected(number, "arguments", missing[0], f"this argument, which {read.name} must have")
    for name, given in arguments.items():
        if why := _misfit(known[name], given):
            raise rejected(number, name, value.arguments, f"a value that {read.name} takes ({why})")


def _check_result(number: int, value: FromOrder, orders: tuple[Order, ...], tools: Mapping[str, Declaration]) -> None:
    """Refuse a field of an earlier order that no way of doing it returns."""
    ways = [tools[way.tool] for way in ways_of(orders[value.number - 1])]
    if not any(_has_field(value.field, way) for way in ways):
        _expect_field(number, value.field, ways[0])


def _expect_field(number: int, field: str, tool: Declaration) -> None:
    if not _has_field(field, tool):
        names = ", ".join(sorted({one.name for one in tool.result})) or "it declares none"
        raise rejected(number, "field", field, f"a field that {tool.name} declares: {names}")


def _has_field(field: str, tool: Declaration) -> bool:
    return not {one.name for one in tool.result}.isdisjoint(spellings(field))


def _required(declaration: Declaration) -> Iterator[str]:
    required = declaration.parameters.get("required")
    yield from (name for name in required or () if isinstance(name, str)) if isinstance(required, (list, tuple)) else ()


def _takes_text(schema: Any) -> bool:
    """Whether some text may stand there; how long it must be, and the like, only the text itself can tell."""
    types = schema.get("type") if isinstance(schema, dict) else None
    return types is None or "string" in types


def _misfit(schema: Any, value: Any) -> str:
    """Why a value does not fit the schema of an argument; empty where it does, or that cannot be decided."""
    if not isinstance(schema, dict):
        return ""
    try:
        found = compile_schema(schema).violations(value, 1)
    except RequestRejected:
        return ""
    return f"{found[0].path} {found[0].message}".strip() if found else ""


def spellings(field: str) -> tuple[str, str]:
    """A field as it is written in an order, and as the declaration of a list has it."""
    return field, f"{field}[]"


def rejected(number: int, key: str, value: str, way_out: str) -> RequestRejected:
    """The refusal of an order."""
    message = f"order {number}: {key}={value[:_SHOWN_CHARS_MAX]!r}; use {way_out}"
    return RequestRejected(ORDERS_INVALID, message, {"order": number, "key": key})
