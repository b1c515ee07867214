"""What the Messages API is sent: a ModelRequest in its words.

Rule 1: options reach the server, and what the request itself says is laid over them: none can change what was asked
        for, nor what it costs.
Rule 2: the vendor takes no wishes about sampling any more, whatever their value; any other server gets those of the
        request.
Rule 3: instructions stand apart from the conversation, and results of tools in the words of the user, right behind the
        calls they answer.
Rule 4: ids of calls are unique in what is sent, and made of letters that the API takes: a result finds its call by them.
Rule 5: where a schema is to be kept, no thinking is asked for, whatever the options say.
Rule 6: what a model thought is not sent back: without the signature of its server it is not believed.
Rule 7: of a schema, the API takes a part: what it does not take is told to the model in the description, and validated
        afterwards in any case.
"""

from collections.abc import Iterable
from typing import Any

from remit.core.failure import ErrorCode
from remit.core.limits.tools import ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import JsonObject
from remit.core.regex import regex
from remit.core.run.inference import ModelRequest
from remit.core.run.manifest import OUTPUT_TOKENS_DEFAULT
from remit.core.run.messages import Message, Role
from remit.inference.engine import EngineFault

# Tokens written to a cache and answers in a hurry cost more than the price that was reserved; tools of the server's own
# are called beyond what a run may do.
_COSTLY = frozenset({"cache_control", "speed", "service_tier", "container", "mcp_servers", "tools", "tool_choice"})
_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
_WITHHELD = _COSTLY | _SAMPLING

# What stands for a result that the conversation does not hold.
NO_RESULT = "no result"

_ID = regex(r"[A-Za-z0-9_-]{1,128}")

# What the API holds a model to: types, formats of texts, and values that may stand in a list of them.
_KINDS = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"})
_PRIMITIVES = (str, int, float, bool, type(None))

_MODES = {ToolChoiceMode.REQUIRED: "any", ToolChoiceMode.NONE: "none"}


def body_of(model: str, request: ModelRequest) -> JsonObject:
    """The body of a call, without wishes about sampling."""
    body: JsonObject = {name: value for name, value in request.options.items() if name not in _WITHHELD}
    # Between calls it would be refused: a thought that led to them has to be shown again before their results.
    if request.schema is not None or (_is_between_calls(request) and _thinks_by_budget(body)):
        body.pop("thinking", None)
    body["model"], body["stream"] = model, True
    body["max_tokens"] = request.max_tokens or OUTPUT_TOKENS_DEFAULT
    body["messages"] = sent_messages(request.messages)
    instructions = [_text(message) for message in request.messages if message.role is Role.SYSTEM]
    if instructions:
        body["system"] = "\n\n".join(instructions)
    if request.tools:
        body["tools"] = [sent_tool(tool) for tool in request.tools]
        if request.tool_choice.mode is not ToolChoiceMode.AUTO:
            body["tool_choice"] = _sent_choice(request.tool_choice)
    elif called := _tools_called(request.messages):
        body["tools"], body["tool_choice"] = called, {"type": "none"}
    if request.grammar:
        raise _unkept("a grammar", "ask for a schema instead")
    if request.schema is not None:
        body["output_config"] = _with_format(body.get("output_config"), _fitted(request.schema))
    return body


def sampling_of(request: ModelRequest) -> JsonObject:
    """Wishes about sampling, for a server that takes them."""
    wishes: JsonObject = {name: value for name, value in request.options.items() if name in _SAMPLING}
    if request.temperature is not None:
        wishes["temperature"] = request.temperature
    if request.top_p > 0:
        wishes["top_p"] = request.top_p
    return wishes


def sent_messages(messages: Iterable[Message]) -> list[JsonObject]:
    """The conversation: several messages of one role in a row become one message with several blocks."""
    turns: list[JsonObject] = []
    ids = _CallIds()
    for message in messages:
        blocks = _blocks(message, ids)
        role = "assistant" if message.role is Role.ASSISTANT else "user"
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return _paired(turns)


def sent_tool(tool: ToolDefinition) -> JsonObject:
    """A tool as it is offered; what it may do stays here."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


class _CallIds:
    """What the calls of a conversation are called in what is sent."""

    __slots__ = ("_latest", "_taken")

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._latest: dict[str, str] = {}

    def name(self, call_id: str) -> str:
        """The name of a new call."""
        name = call_id
        if name in self._taken or not _ID.fullmatch(name):
            name = next(name for n in range(len(self._taken) + 1) if (name := f"call_{n}") not in self._taken)
        self._taken.add(name)
        self._latest[call_id] = name
        return name

    def find(self, call_id: str) -> str:
        """The name of the call that was made last under this id."""
        return self._latest.get(call_id, call_id)


def _paired(turns: Iterable[JsonObject]) -> list[JsonObject]:
    """The turns with one result for every call, right behind it: the API takes neither alone."""
    paired: list[JsonObject] = []
    open_ids: list[str] = []
    for turn in turns:
        if turn["role"] == "user":
            paired.append({"role": "user", "content": _answering(open_ids, turn["content"])})
        else:
            paired.append(turn)
        open_ids = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
    if open_ids:
        paired.append({"role": "user", "content": _answering(open_ids, ())})
    return paired


def _answering(call_ids: Iterable[str], blocks: Iterable[JsonObject]) -> list[JsonObject]:
    results: dict[str, JsonObject | None] = dict.fromkeys(call_ids)
    others: list[JsonObject] = []
    for block in blocks:
        if block["type"] != "tool_result":
            others.append(block)
        elif results.get(block["tool_use_id"], block) is None:
            results[block["tool_use_id"]] = block
        else:
            others.append({"type": "text", "text": block["content"]})
    # Words that were put in between stand behind the results: those are looked for first.
    return [found or _lost(call_id) for call_id, found in results.items()] + others


def _lost(call_id: str) -> JsonObject:
    return {"type": "tool_result", "tool_use_id": call_id, "content": NO_RESULT, "is_error": True}


def _tools_called(messages: Iterable[Message]) -> list[JsonObject]:
    """Tools that were called, for a request that offers none: the API wants to know what was called."""
    names = dict.fromkeys(call.name for message in messages for call in message.tool_calls)
    return [{"name": name, "description": "", "input_schema": {"type": "object"}} for name in names]


def _blocks(message: Message, ids: _CallIds) -> list[JsonObject]:
    text = _text(message)
    match message.role:
        case Role.SYSTEM:
            return []
        case Role.TOOL:
            return [{"type": "tool_result", "tool_use_id": ids.find(message.tool_call_id), "content": text}]
        case Role.USER:
            return [{"type": "text", "text": text}]
        case Role.ASSISTANT:
            # A text of nothing but spaces is refused.
            said: list[JsonObject] = [{"type": "text", "text": text}] if text.strip() else []
            calls: list[JsonObject] = [
                {"type": "tool_use", "id": ids.name(call.id), "name": call.name, "input": call.arguments}
                for call in message.tool_calls
            ]
            return said + calls


def _text(message: Message) -> str:
    assert isinstance(message.content, str), "an engine never sees a digest"
    return message.content


def _sent_choice(choice: ToolChoice) -> JsonObject:
    if choice.mode is ToolChoiceMode.FUNCTION:
        return {"type": "tool", "name": choice.function_name}
    return {"type": _MODES[choice.mode]}


def _is_between_calls(request: ModelRequest) -> bool:
    return bool(request.messages) and request.messages[-1].role is Role.TOOL


def _thinks_by_budget(body: JsonObject) -> bool:
    thinking = body.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") == "enabled"


def _with_format(config: object, schema: JsonObject) -> JsonObject:
    kept = config if isinstance(config, dict) else {}
    return {**kept, "format": {"type": "json_schema", "schema": schema}}


def _fitted(schema: JsonObject) -> JsonObject:
    try:
        return fit_schema(schema)
    except (_Unfit, RecursionError):
        raise _unkept("this schema", "name a type for each of its values") from None


class _Unfit(Exception):
    """There is a part that the API cannot hold a model to."""


def fit_schema(schema: Any) -> JsonObject:
    """A schema as the API takes it, with closed objects; what it does not take stands in the descriptions."""
    if not isinstance(schema, dict):
        raise _Unfit
    rest, fit = dict(schema), JsonObject()
    if "$defs" in rest:
        fit["$defs"] = _each_fit(rest.pop("$defs"))
    if "$ref" in rest:
        return {**fit, "$ref": rest["$ref"]}
    kind = rest.pop("type", None)
    ways = {key: rest.pop(key, None) for key in ("anyOf", "oneOf", "allOf")}
    literals = rest.get("enum")
    if isinstance(literals, list) and literals and all(isinstance(each, _PRIMITIVES) for each in literals):
        fit["enum"] = rest.pop("enum")
    if "const" in rest and isinstance(rest["const"], _PRIMITIVES):
        fit["const"] = rest.pop("const")
    is_literal = "enum" in fit or "const" in fit
    way = next((key for key, each in ways.items() if isinstance(each, list)), "")
    if way:
        fit["allOf" if way == "allOf" else "anyOf"] = [fit_schema(each) for each in ways[way]]
    elif not is_literal:
        fit["type"] = kind
    if not is_literal and not (isinstance(kind, str) and kind in _KINDS) and not (way and kind is None):
        raise _Unfit
    said = {key: rest.pop(key, None) for key in ("description", "title")}
    fit |= {key: text for key, text in said.items() if text is not None}
    if not is_literal and isinstance(kind, str):
        _fit_kind(kind, rest, fit)
    if rest:
        told = "{" + ", ".join(f"{key}: {value}" for key, value in rest.items()) + "}"
        fit["description"] = f"{fit['description']}\n\n{told}" if "description" in fit else told
    return fit


def _fit_kind(kind: str, rest: JsonObject, fit: JsonObject) -> None:
    """Move what the API takes of a type from the rest of a schema to what is sent."""
    if kind == "object":
        rest.pop("additionalProperties", None)
        fit["properties"], fit["additionalProperties"] = _each_fit(rest.pop("properties", {})), False
        if "required" in rest:
            fit["required"] = rest.pop("required")
    elif kind == "string" and rest.get("format") in _FORMATS:
        fit["format"] = rest.pop("format")
    elif kind == "array":
        if "items" in rest:
            fit["items"] = fit_schema(rest.pop("items"))
        if rest.get("minItems") in (0, 1):
            fit["minItems"] = rest.pop("minItems")


def _each_fit(schemas: Any) -> JsonObject:
    if not isinstance(schemas, dict):
        raise _Unfit
    return {name: fit_schema(each) for name, each in schemas.items()}


def _unkept(shape: str, way_out: str) -> EngineFault:
    message = f"models behind the Messages API cannot be held to {shape}; {way_out}"
    return EngineFault(ErrorCode.INFERENCE_ENGINE_ERROR, message)
