"""The tools of a guarded run, read from the objects of the protocol.

Rule 1: what a tool does not declare counts as the worst; an unknown key is refused by its name, because a
        declaration that is misspelt would be one that is missing.
Rule 2: the kernel registers everything that a tool declares, as it does for a tool of ours; so what a boundary says of
        what is read, of rates or of cheaper tools holds here as well.
Rule 3: `result` is the map of trusted fields; the shape of a result is not checked here.
Rule 4: the same list of tools is read once, however many runs bring it.
"""

from collections import OrderedDict
from functools import partial
from hashlib import sha256
from typing import Any

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import RequestRejected
from remit.core.journal.canonical import INTEGER_MAX
from remit.core.journal.codec import read_json, to_json
from remit.core.limits.tool_trust import Trust
from remit.core.limits.tools import RATE_MAX, TOOL_TIMEOUT_MS_DEFAULT, ToolCategory, ToolDefinition, check_definition
from remit.core.record import JsonObject, Record
from remit.provenance.declarations import Declaration, ToolReader, declaration_of
from remit.provenance.gate import opened_tools

GUARD_TOOL_INVALID = "GUARD_TOOL_INVALID"

# As many as a request may bring, and more than any model is offered at once.
TOOLS_MAX = 1_000
# A process that guards many runs has a few lists of tools, each some tens of kilobytes long; a longer one is not kept.
LISTS_KEPT_MAX = 32
LIST_KEPT_BYTES_MAX = 512 * 1024
_NAMES_SHOWN_MAX = 5
# A rate is how many calls in how much time.
_PAIR = 2

# What the kernel alone reads, what both read, and what the gate reads besides.
_TEXTS = ("blast_radius", "rollback", "alternative", "fallback")
_KERNEL = (
    "idempotent",
    "destructive",
    "untrusted_output",
    "permissions",
    "timeout_ms",
    "cost_microusd",
    "rate",
    "flags",
    "concerns",
    *_TEXTS,
)
_DECLARED = ("name", "description", "parameters", "effect", "category", "network", "stakes", "control_args")
_GATE = ("payload_args", "result", "author", "directory", "locator_args", "asks", "repeat", "reads", "readers", "hosts")
KEYS = frozenset((*_KERNEL, *_DECLARED, *_GATE))

# A tool that says nothing of its parameters takes any object; the gate knows none of its arguments then.
_ANY_OBJECT: JsonObject = {"type": "object"}


class Toolset(Record):
    """A list of tools as the kernel registers it, and its length in the protocol."""

    definitions: tuple[ToolDefinition, ...]
    size_bytes: int


class Toolsets:
    """Lists of tools that were met before, the oldest of which make room for new ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, Toolset] = OrderedDict()

    def of(self, tools: Any) -> Toolset:
        """The tools in a list of the protocol; raises RequestRejected for one that no run could have."""
        if not isinstance(tools, list) or len(tools) > TOOLS_MAX:
            what = f"{len(tools)} entries" if isinstance(tools, list) else f"a {type(tools).__name__}"
            raise RequestRejected(GUARD_TOOL_INVALID, f"tools is {what} and must be a list of at most {TOOLS_MAX}")
        try:
            data = to_json(tools).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise RequestRejected(GUARD_TOOL_INVALID, f"tools has no form in JSON: {str(error)[:200]}") from error
        key = sha256(data).digest()
        found = self._kept.get(key)
        if found is None:
            # Read back, so that a caller cannot change a list behind the runs that share it.
            found = _read(read_json(data), len(data))
            if len(data) > LIST_KEPT_BYTES_MAX:
                return found
            if len(self._kept) >= LISTS_KEPT_MAX:
                self._kept.popitem(last=False)
            self._kept[key] = found
        self._kept.move_to_end(key)
        return found


def _read(tools: list[Any], size_bytes: int) -> Toolset:
    definitions = tuple([_definition(tool) for tool in tools])
    opened_tools(tools)
    return Toolset(definitions, size_bytes)


def _definition(tool: Any) -> ToolDefinition:
    """What the kernel registers; the gate's own reader refuses what has no name or the wrong types."""
    declaration = declaration_of(tool)
    read = ToolReader(tool, partial(_unfit, declaration.name))
    if unknown := sorted(set(tool) - KEYS):
        named = ", ".join(repr(key[:SHOWN_CHARS_MAX]) for key in unknown[:_NAMES_SHOWN_MAX])
        raise _rejected(declaration.name, f"declares {named}, which is unknown; use {', '.join(sorted(KEYS))}")
    category = read.choice("category", tuple(ToolCategory), "")
    rate_max, rate_per_ms = _rate(read)
    definition = ToolDefinition(
        name=declaration.name,
        description=declaration.description,
        parameters=_ANY_OBJECT if tool.get("parameters") is None else tool["parameters"],
        effect=declaration.effect,
        category=ToolCategory(category) if category else None,
        network=declaration.network,
        idempotent=read.flag("idempotent"),
        destructive=read.flag("destructive"),
        untrusted_output=read.flag("untrusted_output", fallback=True),
        permissions=read.texts("permissions"),
        timeout_ms=_amount(read, "timeout_ms", TOOL_TIMEOUT_MS_DEFAULT),
        cost_microusd=_amount(read, "cost_microusd", 0),
        # Where a tool does not say which parameters it has, it cannot be told whether it has these.
        control_args=declaration.control_args if declaration.parameters else (),
        trust=_trust(declaration, tool),
        rate_max=rate_max,
        rate_per_ms=rate_per_ms,
        blast_radius=read.text("blast_radius"),
        rollback=read.text("rollback"),
        alternative=read.text("alternative"),
        fallback=read.text("fallback"),
        flags=read.pairs("flags", "an object from path to flag"),
        concerns=read.texts("concerns"),
    )
    check_definition(definition)
    return definition


def _trust(declaration: Declaration, tool: JsonObject) -> Trust:
    """What the gate reads of a tool, as its definition keeps it."""
    return Trust(
        payload_args=declaration.payload_args,
        fields=tuple([(field.path, field.kind) for field in declaration.result]),
        author=declaration.author,
        directory=declaration.directory,
        locator_args=declaration.locator_args,
        asks=declaration.asks,
        repeat=declaration.repeat,
        reads=declaration.reads,
        readers=declaration.readers,
        stakes=None if tool.get("stakes") is None else declaration.stakes,
        hosts=declaration.hosts,
    )


def _rate(read: ToolReader) -> tuple[int, int]:
    """At most so many calls within so many milliseconds, written as a list of both."""
    value = read.get("rate")
    if value is None:
        return 0, 0
    if isinstance(value, list) and len(value) == _PAIR and all(type(one) is int for one in value):
        times, per_ms = value
        if 0 < times <= RATE_MAX and 0 < per_ms <= INTEGER_MAX:
            return times, per_ms
    raise read.unfit("rate", value, f"[calls, milliseconds], two whole numbers from 1, at most {RATE_MAX} calls")


def _amount(read: ToolReader, key: str, fallback: int) -> int:
    value = read.get(key)
    if value is None:
        return fallback
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INTEGER_MAX:
        return value
    raise read.unfit(key, value, f"a whole number from 0 to {INTEGER_MAX}")


def _unfit(name: str, key: str, value: Any, way_out: str) -> RequestRejected:
    return _rejected(name, f"declares {key}={repr(value)[:SHOWN_CHARS_MAX]}; use {way_out}")


def _rejected(name: str, problem: str) -> RequestRejected:
    shown = name[:SHOWN_CHARS_MAX]
    return RequestRejected(GUARD_TOOL_INVALID, f"tool {shown!r} {problem}", {"tool": shown})
