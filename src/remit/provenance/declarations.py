"""Declarations: what a tool says about its arguments and results, read from a JSON object. What is absent counts as the worst.

Rule 1: absent: effect external, every argument a control value of unknown kind, no payload, no trusted field, no
        directory, repeat once, reads private, stakes unknown.
Rule 2: every argument that is not payload is a control value; `control_args` only adds what kind it is of.
Rule 3: a `result` that is a JSON Schema declares shapes and trusts nothing.
Rule 4: what cannot be read is refused with the tool, the key and the value; keys the gate does not know are left alone.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.limits.authority import Stakes
from remit.core.limits.tool_trust import Reads, Repeat
from remit.core.limits.tools import Effect, ToolCategory
from remit.core.record import JsonObject, Record
from remit.core.regex import regex
from remit.core.schema.opened_schema import opened_schema

DECLARATION_INVALID = "DECLARATION_INVALID"

# More tools than any catalogue offers a model, more fields than any result has, and more levels than people nest.
TOOLS_MAX = 2_000
FIELDS_MAX = 500
SEGMENTS_MAX = 16
NAME_CHARS_MAX = 200
_SHOWN_CHARS_MAX = 80

EACH = "[]"
ANY_KEY = "*"
_SEGMENT = regex(r"\[\]|[^.\[\]]+")
_PATH = regex(r"(?:\$\.?)?(?:(?:\[\]|[^.\[\]$][^.\[\]]*)(?:\.(?=[^.])|(?=\[)|$))*")
_SCHEMA_KEYS = frozenset({"type", "properties", "items", "$ref", "anyOf", "oneOf", "allOf", "$schema", "enum"})
_SCHEMA_TYPES = frozenset({"object", "array", "string", "integer", "boolean", "null"})


class DeclaredField(Record):
    """One declared field: its path in the result, the group of records it belongs to, its name there, and its kind."""

    path: str
    group: str
    name: str
    kind: str
    segments: tuple[str, ...]
    group_steps: int


class Declaration(Record):
    """What one tool declares."""

    name: str
    description: str = ""
    parameters: JsonObject = {}
    effect: Effect = Effect.EXTERNAL
    # None: the tool does not say.
    network: bool | None = None
    stakes: Stakes = Stakes.UNKNOWN
    control_args: tuple[tuple[str, str], ...] = ()
    payload_args: tuple[str, ...] = ()
    result: tuple[DeclaredField, ...] = ()
    author: str = ""
    directory: bool = False
    locator_args: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    repeat: Repeat = Repeat.ONCE
    reads: Reads = Reads.PRIVATE
    readers: str = ""
    hosts: tuple[str, ...] = ()

    @property
    def is_checked(self) -> bool:
        """Whether its calls pass the gate: effects, and reads that leave the machine."""
        return self.effect.is_mutating or (bool(self.network) and self.effect is not Effect.NONE)

    @property
    def may_carry(self) -> bool:
        """Whether a call only reads and leaves the machine, or may, since the tool does not say."""
        return self.effect is Effect.READ and self.network is not False

    @property
    def is_bare(self) -> bool:
        """Whether it declares nothing of an effect outside: all that is known of it is the worst."""
        said = (self.control_args, self.payload_args, self.result, self.asks, self.locator_args)
        is_silent = self.repeat is Repeat.ONCE and self.stakes is Stakes.UNKNOWN
        return self.effect is Effect.EXTERNAL and is_silent and not any(said)

    @property
    def leaves(self) -> bool:
        """Whether data may leave with a call."""
        return self.effect is Effect.EXTERNAL or bool(self.network)


def declarations_of(tools: Iterable[Any]) -> dict[str, Declaration]:
    """The declarations of a list of tools by name; a name that occurs twice is refused."""
    found: dict[str, Declaration] = {}
    for tool in tools:
        declaration = declaration_of(tool)
        if declaration.name in found:
            raise _rejected(declaration.name, "name", declaration.name, "each tool once")
        if len(found) == TOOLS_MAX:
            raise _rejected(declaration.name, "tools", len(found) + 1, f"at most {TOOLS_MAX} tools")
        found[declaration.name] = declaration
    return found


def declaration_of(tool: Any) -> Declaration:
    """One tool's declaration from its JSON object."""
    if not isinstance(tool, dict):
        raise _rejected("?", "tool", tool, "a JSON object with a name")
    name = tool.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARS_MAX:
        raise _rejected(str(name), "name", name, f"a text of 1 to {NAME_CHARS_MAX} characters")
    read = ToolReader(tool, partial(_rejected, name))
    return Declaration(
        name=name,
        description=read.text("description"),
        parameters=opened_schema(read.mapping("parameters")),
        effect=Effect(read.choice("effect", tuple(Effect), Effect.EXTERNAL)),
        network=read.flag("network") if read.get("network") is not None else None,
        stakes=_stakes(read),
        control_args=read.kinds("control_args"),
        payload_args=read.texts("payload_args"),
        result=_fields(read),
        author=read.text("author"),
        directory=read.flag("directory"),
        locator_args=read.texts("locator_args"),
        asks=read.texts("asks"),
        repeat=Repeat(read.choice("repeat", tuple(Repeat), Repeat.ONCE)),
        reads=Reads(read.choice("reads", tuple(Reads), Reads.PRIVATE)),
        readers=read.text("readers"),
        hosts=read.texts("hosts"),
    )


def worst_of(declaration: Declaration, tool: JsonObject) -> tuple[str, ...]:
    """The keys that a tool leaves at their worst, for the operator to see."""
    wanted = ["effect"]
    if declaration.is_checked:
        wanted += ["control_args", "payload_args", "asks", "repeat"]
    if not declaration.effect.is_mutating:
        wanted += ["result", "reads"]
    if declaration.effect is Effect.READ:
        wanted.append("network")
    if declaration.is_checked and declaration.stakes is Stakes.UNKNOWN:
        wanted.append("stakes")
    return tuple(key for key in wanted if tool.get(key) is None)


def segments_of(path: str) -> tuple[str, ...]:
    """The steps of a path: keys, `[]` for each element and `*` for each value of an object."""
    return tuple(_SEGMENT.findall(path.removeprefix("$").lstrip(".")))


class ToolReader:
    """Reads the keys of one tool: null counts as absent, and the caller says how a value that a key cannot hold is refused."""

    def __init__(self, tool: JsonObject, unfit: Callable[[str, Any, str], RequestRejected]) -> None:
        self._tool = tool
        self.unfit = unfit

    def get(self, key: str) -> Any:
        """The value as it stands."""
        return self._tool.get(key)

    def text(self, key: str) -> str:
        """A text; empty where the tool has none."""
        value = self._tool.get(key)
        if value is None or isinstance(value, str):
            return value or ""
        raise self.unfit(key, value, "a text")

    def mapping(self, key: str) -> JsonObject:
        """An object; empty where the tool has none."""
        value = self._tool.get(key)
        if value is None or isinstance(value, dict):
            return value or {}
        raise self.unfit(key, value, "a JSON object")

    def flag(self, key: str, *, fallback: bool = False) -> bool:
        """True or false."""
        value = self._tool.get(key)
        if value is None or isinstance(value, bool):
            return fallback if value is None else value
        raise self.unfit(key, value, "true or false")

    def choice(self, key: str, choices: tuple[str, ...], fallback: str) -> str:
        """One of these texts."""
        value = self._tool.get(key)
        if value is None:
            return fallback
        if isinstance(value, str) and value in choices:
            return value
        raise self.unfit(key, value, f"one of {', '.join(choices)}")

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; empty where the tool has none."""
        value = self._tool.get(key)
        if value is None:
            return ()
        if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
            return tuple(value)
        raise self.unfit(key, value, "a list of texts")

    def pairs(self, key: str, way_out: str) -> tuple[tuple[str, str], ...]:
        """An object from text to text."""
        value = self._tool.get(key)
        if value is None:
            return ()
        if isinstance(value, dict) and all(isinstance(k, str) and isinstance(v, str) for k, v in value.items()):
            return tuple(value.items())
        raise self.unfit(key, value, way_out)

    def kinds(self, key: str) -> tuple[tuple[str, str], ...]:
        """An object from argument to kind; a list names arguments and leaves their kinds open."""
        if isinstance(self._tool.get(key), dict):
            return self.pairs(key, "an object from argument to kind")
        return tuple((name, "") for name in self.texts(key))


def _stakes(read: ToolReader) -> Stakes:
    """What was declared; else what category and `destructive` tell; else unknown."""
    if read.get("stakes") is not None:
        return Stakes(read.choice("stakes", tuple(Stakes), Stakes.UNKNOWN))
    category = read.choice("category", tuple(ToolCategory), "")
    if read.flag("destructive"):
        return Stakes.DELETION
    if category == ToolCategory.PAYMENT:
        return Stakes.MONEY
    if category == ToolCategory.INFRASTRUCTURE:
        return Stakes.RIGHTS
    return Stakes.NONE if category else Stakes.UNKNOWN


def _fields(read: ToolReader) -> tuple[DeclaredField, ...]:
    declared = read.get("result")
    if isinstance(declared, str):
        declared = {"": declared}
    if declared is None or _is_schema(declared):
        return ()
    if not isinstance(declared, dict) or len(declared) > FIELDS_MAX:
        raise read.unfit("result", declared, f"an object of at most {FIELDS_MAX} paths, each with a kind")
    return tuple(_field(read, path, kind) for path, kind in declared.items())


def _is_schema(declared: Any) -> bool:
    if not isinstance(declared, dict) or not _SCHEMA_KEYS.intersection(declared):
        return not declared
    return declared.get("type") in list(_SCHEMA_TYPES) or any(not isinstance(kind, str) for kind in declared.values())


def _field(read: ToolReader, path: Any, kind: Any) -> DeclaredField:
    if not isinstance(kind, str) or not kind or kind.startswith("~"):
        raise read.unfit(f"result[{path!r}]", kind, "a kind such as 'id:file', 'number', 'label' or 'text'")
    segments = segments_of(path) if isinstance(path, str) and _PATH.fullmatch(path) else ("",) * (SEGMENTS_MAX + 1)
    if len(segments) > SEGMENTS_MAX:
        raise read.unfit("result", path, f"a path such as '[].id' of at most {SEGMENTS_MAX} steps")
    cut = _group_size(segments)
    return DeclaredField(
        path,
        spelled_path(segments[:cut]),
        name=spelled_path(segments[cut:]),
        kind=kind,
        segments=segments,
        group_steps=cut,
    )


def _group_size(segments: tuple[str, ...]) -> int:
    """How many steps lead to the record: up to the last iteration, unless that one ends the path of a field."""
    steps = [place for place, step in enumerate(segments, 1) if step in (EACH, ANY_KEY)]
    if not steps:
        return 0
    if steps[-1] < len(segments) or len(segments) == 1:
        return steps[-1]
    return steps[-2] if len(steps) > 1 else 0


def spelled_path(segments: tuple[str, ...]) -> str:
    """The path of these steps, as declarations spell it."""
    path = ""
    for step in segments:
        path += step if step == EACH or not path else f".{step}"
    return path


def _rejected(tool: str, key: str, value: Any, way_out: str) -> RequestRejected:
    shown, named = repr(value)[:_SHOWN_CHARS_MAX], tool[:_SHOWN_CHARS_MAX]
    message = f"tool {named!r}: {key}={shown} cannot be read; use {way_out}"
    return RequestRejected(DECLARATION_INVALID, message, {"tool": named, "key": key})
