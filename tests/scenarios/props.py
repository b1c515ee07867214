"""The tools of a scenario: real ones, whose functions do what the file says and note that they were called.

Rule 1: a tool declares what the file says of it and nothing else; what is left out counts as the worst. One that changes
        something is verified by a look at the calls that were made, unless the file says `unverified: true`.
Rule 2: every function is a coroutine, so that a scenario's hours pass without anybody waiting for them.
Rule 3: a call is noted when its function runs, so what was executed is known without asking the journal.
"""

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.tool_trust import Trust
from remit.core.limits.tools import ToolDefinition, check_definition, tool_version
from remit.core.limits.verification import is_unverified
from remit.core.record import JsonObject, replace
from remit.core.run.manifest import Source
from remit.core.schema.strict_yaml import ValuePath, YamlDocument, YamlFault, block_in, list_in, spelled_place
from remit.tool.declare.decorator import Tool
from remit.tool.declare.signature import read_signature
from tests.scenarios.reading import names_at, number_at, record_in, text_at

TYPES: dict[str, tuple[Any, JsonObject]] = {
    "string": (str, {"type": "string"}),
    "integer": (int, {"type": "integer"}),
    "number": (float, {"type": "number"}),
    "boolean": (bool, {"type": "boolean"}),
    "strings": (list[str], {"type": "array", "items": {"type": "string"}}),
}
# Marks a parameter that a call may leave out.
OPTIONAL = "?"
FAILURES = (ErrorCode.TOOL_UNAVAILABLE, ErrorCode.TOOL_EXECUTION_FAILED, ErrorCode.TOOL_TIMEOUT)

_PLAYED = ("returns", "returns_repeated", "fails", "delay_ms", "trust", "parameters", "unverified")
# What verifies a tool that changes something: a look at the calls that were made, unless the file says `unverified`.
VERIFIER = "was_called"
_DECLARED = tuple(name for name in ToolDefinition.__struct_fields__ if name not in ("parameters", "trust", "version"))


class Outcome(NamedTuple):
    """What one call comes to: a text, or a failure."""

    text: str = ""
    fails: ErrorCode | None = None


class Call(NamedTuple):
    """A call that was made: the tool, and what its function was given; None for whatever it was given."""

    tool: str
    arguments: JsonObject | None


@dataclass(frozen=True)
class ScriptedTool:
    """What a tool declares, and what its calls come to, one after the other; the last repeats."""

    definition: ToolDefinition
    outcomes: tuple[Outcome, ...]
    delay_ms: int = 0


def tools_in(document: YamlDocument, value: Any, place: ValuePath) -> tuple[ScriptedTool, ...]:
    """The tools of a file, each with a name of its own."""
    found = tuple(_tool(document, one, (*place, at)) for at, one in enumerate(list_in(document, value, place)))
    names = [one.definition.name for one in found]
    for at, name in enumerate(names):
        if name in names[:at]:
            document.reject(YamlFault.VALUE_INVALID, f"two tools are called {name!r}; rename one", (*place, at))
    return found


def _tool(document: YamlDocument, value: Any, place: ValuePath) -> ScriptedTool:
    block = block_in(document, value, (*_DECLARED, *_PLAYED), place)
    declared = {key: block[key] for key in block if key in _DECLARED}
    declared.setdefault("description", str(declared.get("name", "")).replace("_", " "))
    parameters = _parameters(document, block.get("parameters", {}), (*place, "parameters"))
    definition = record_in(document, {**declared, "parameters": parameters}, ToolDefinition, place)
    trust = record_in(document, block.get("trust", {}), Trust, (*place, "trust"))
    definition = replace(definition, trust=trust)
    if is_unverified(definition) and block.get("unverified") is not True:
        definition = replace(definition, verifier=VERIFIER)
    try:
        check_definition(definition)
    except RequestRejected as error:
        document.reject(YamlFault.VALUE_INVALID, f"{spelled_place(place)}: {error.message}", place)
    delay_ms = number_at(document, block, "delay_ms", place)
    versioned = replace(definition, version=tool_version(definition))
    return ScriptedTool(versioned, _outcomes(document, block, place), delay_ms)


def _parameters(document: YamlDocument, value: Any, place: ValuePath) -> JsonObject:
    """A schema from names and types, such as {amount: integer, note?: string}."""
    block = block_in(document, value, (), place)
    for key, kind in block.items():
        names_at(document, kind, TYPES, (*place, key))
    return {
        "type": "object",
        "properties": {key.removesuffix(OPTIONAL): TYPES[kind][1] for key, kind in block.items()},
        "required": [key for key in block if not key.endswith(OPTIONAL)],
        "additionalProperties": False,
    }


def _outcomes(document: YamlDocument, block: JsonObject, place: ValuePath) -> tuple[Outcome, ...]:
    if "fails" in block:
        return (_failure(document, block["fails"], (*place, "fails")),)
    if "returns_repeated" in block:
        return (_repeated(document, block["returns_repeated"], (*place, "returns_repeated")),)
    returned = block.get("returns", "done")
    if isinstance(returned, str):
        return (Outcome(returned),)
    found = []
    for at, one in enumerate(list_in(document, returned, (*place, "returns"))):
        here = (*place, "returns", at)
        if isinstance(one, str):
            found.append(Outcome(one))
        else:
            failure = block_in(document, one, ("fails",), here)
            found.append(_failure(document, failure.get("fails"), (*here, "fails")))
    return tuple(found)


def _repeated(document: YamlDocument, value: Any, place: ValuePath) -> Outcome:
    """A long result, written as a text and how often it is said."""
    block = block_in(document, value, ("text", "times"), place)
    return Outcome(text_at(document, block, "text", place) * number_at(document, block, "times", place))


def _failure(document: YamlDocument, value: Any, place: ValuePath) -> Outcome:
    return Outcome(fails=ErrorCode(names_at(document, value, list(FAILURES), place)[0]))


def real_tool(scripted: ScriptedTool, note: Callable[[Call], None]) -> Tool:
    """The tool that a file describes; every call of its function is noted."""
    definition, begun = scripted.definition, 0

    def outcome() -> Outcome:
        return scripted.outcomes[min(begun, len(scripted.outcomes) - 1)]

    async def available() -> bool:
        nonlocal begun
        if outcome().fails is not ErrorCode.TOOL_UNAVAILABLE:
            return True
        begun += 1
        return False

    async def function(**arguments: Any) -> str:
        nonlocal begun
        note(Call(definition.name, arguments))
        comes_to = outcome()
        begun += 1
        late_ms = definition.timeout_ms if comes_to.fails is ErrorCode.TOOL_TIMEOUT else 0
        if scripted.delay_ms or late_ms:
            await asyncio.sleep((scripted.delay_ms + 2 * late_ms) / 1000)
        if comes_to.fails is not None:
            raise RuntimeError(f"{definition.name} is broken")
        return comes_to.text

    async def was_called(arguments: JsonObject, result: str) -> bool:
        return begun > 0

    _sign(function, definition)
    signature = read_signature(function, definition.name)
    source = Source(definition.name)
    verify = was_called if definition.verifier == VERIFIER else None
    return Tool(function, definition, signature, source, companions=(available, verify, None))


def _sign(function: Any, definition: ToolDefinition) -> None:
    """Give a function the signature that its tool declares."""
    kinds = {repr(schema): kind for kind, schema in TYPES.values()}
    parameters = []
    for name, schema in definition.parameters["properties"].items():
        kind = kinds[repr(schema)]
        is_needed = name in definition.parameters["required"]
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=kind if is_needed else kind | None,
                default=inspect.Parameter.empty if is_needed else None,
            )
        )
    function.__signature__ = inspect.Signature(parameters)
    function.__annotations__ = {one.name: one.annotation for one in parameters}
