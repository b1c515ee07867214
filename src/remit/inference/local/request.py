"""What a local model is asked: a request in the words of the in-process server, for a chat template without tools.

Rule 1: calls and their results are text: a call is the JSON it was decoded as, a result is told by the user's side.
Rule 2: text is data: a text that would steer the model, such as the one that ends a message, is broken up before the
        template is filled.
Rule 3: an unknown option is refused; the server would ignore it in silence.
Rule 4: the first message is the operator's, and empty where the operator said nothing.
Rule 5: a schema becomes a grammar without free whitespace, on which small models burn their tokens. A keyword that the
        grammar cannot express is left to the validation of the answer; it does not lift the rest of the constraint.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from remit.core.failure import ErrorCode
from remit.core.limits.tools import ToolCall
from remit.core.record import JsonObject
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import Message, Role
from remit.inference.engine import EngineFault

# A small model left alone with a higher one loses its thread.
TEMPERATURE_DEFAULT = 0.2
TOP_P_DEFAULT = 0.95
# A page and a half, some ten seconds of one core; a caller may ask for more.
TOKENS_DEFAULT = 1024
# Small models fall into saying the same for ever. This sampler makes a sequence the less likely the longer it repeats
# what stands before; four tokens and fewer, such as a name or a figure that is to be copied, cost nothing.
NO_LOOPS: Mapping[str, float] = MappingProxyType(
    {"dry_multiplier": 0.8, "dry_base": 1.75, "dry_allowed_length": 4, "dry_penalty_last_n": 1024}
)
# The server keeps seeds in 32 bits, and the last of them means that chance decides.
SEED_MAX = 2**32 - 2
# Four suffice every vendor; more would be searched after every token.
STOPS_MAX = 8

# More attempts than any replica has.
_SEEDS_PER_REPLICA = 1000
# Invisible, and no part of any steering text.
_BREAK = "\u200b"


def body_of(request: ModelRequest, control_tokens: Iterable[str] = ()) -> JsonObject:
    """What the server is asked for. It streams, and reports how far the prompt was read, so that it can be cut."""
    body: JsonObject = {
        "messages": rendered_chat(request.messages, control_tokens),
        "max_tokens": request.max_tokens or TOKENS_DEFAULT,
        "temperature": TEMPERATURE_DEFAULT if request.temperature is None else request.temperature,
        "top_p": request.top_p or TOP_P_DEFAULT,
        # The answer follows from the request alone; asked again for the same, or by another replica, chance falls
        # otherwise.
        "seed": request.attempt + _SEEDS_PER_REPLICA * request.replica,
        "cache_prompt": True,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        **_checked(request.options),
    }
    if grammar := answer_grammar(request):
        body["grammar"] = grammar
        # A thought would have to follow the grammar, too.
        body["chat_template_kwargs"] = {"enable_thinking": False}
    else:
        body |= NO_LOOPS
    return body


def answer_grammar(request: ModelRequest) -> str:
    """The grammar that holds an answer to its shape; empty where there is none."""
    if request.grammar or request.schema is None:
        return request.grammar
    schema = {**request.schema, "x-guidance": {"whitespace_flexible": False, "lenient": True}}
    return f"%llguidance {{}}\nstart: %json {json.dumps(schema)}\n"


def rendered_chat(messages: Iterable[Message], control_tokens: Iterable[str] = ()) -> list[JsonObject]:
    """A conversation as a template without tools can show it: system, user and assistant alone."""
    harmless = _breaking(control_tokens)
    # Where the operator says nothing, many templates put words of the model's vendor. They were not asked for, no run
    # has reserved tokens for them, and without them small models answer better.
    turns: list[JsonObject] = [{"role": Role.SYSTEM.value, "content": ""}]
    results: JsonObject | None = None
    for message in messages:
        text = harmless(_text(message))
        if message.role is not Role.TOOL:
            results = None
            turns.append({"role": message.role.value, "content": text})
        elif results is None:
            # Several results of one answer are one turn: most templates demand that the two sides alternate.
            results = {"role": Role.USER.value, "content": text}
            turns.append(results)
        else:
            results["content"] += f"\n{text}"
    return turns[1:] if turns[1:2] and turns[1]["role"] == Role.SYSTEM.value else turns


def _text(message: Message) -> str:
    assert isinstance(message.content, str), "an engine never sees a digest"
    if message.role is Role.TOOL:
        return f"Result of {message.name}: {message.content}"
    return "\n".join([*([message.content] if message.content else ()), *map(call_text, message.tool_calls)])


def call_text(call: ToolCall) -> str:
    """A call as the model wrote it, in the shape that the grammar of calls holds it to."""
    return json.dumps({"tool": call.name, "arguments": call.arguments}, ensure_ascii=False, separators=(",", ":"))


def _breaking(control_tokens: Iterable[str]) -> Callable[[str], str]:
    """What makes texts harmless that would steer the model."""
    # By their first letters: some models have thousands, and few letters of a text begin any of them.
    rests: dict[str, list[str]] = {}
    for token in control_tokens:
        # One letter cannot be broken.
        if len(token) > 1:
            rests.setdefault(token[0], []).append(re.escape(token[1:]))
    if not rests:
        return str
    tokens = [f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in rests.items()]
    # A letter with which one begins, even within another.
    beginning = re.compile(f"(?={'|'.join(tokens)}).", re.DOTALL)
    return lambda text: beginning.sub(lambda found: found[0] + _BREAK, text)


def _checked(options: JsonObject) -> JsonObject:
    for name, value in options.items():
        takes, is_right = _OPTIONS.get(name, ("", None))
        if is_right is None:
            known = ", ".join(_OPTIONS)
            raise _refused(f"option {name[:80]!r} is not known to a local model; known are {known}")
        if not is_right(value):
            raise _refused(f"option {name}={str(value)[:80]!r} is not {takes}")
    return options


def _refused(message: str) -> EngineFault:
    return EngineFault(ErrorCode.INFERENCE_ENGINE_ERROR, message)


def _is_whole(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_number(value: Any, least: float, most: float) -> bool:
    return type(value) in {int, float} and least <= value <= most


def _are_stops(value: Any) -> bool:
    return isinstance(value, list) and len(value) <= STOPS_MAX and all(isinstance(stop, str) and stop for stop in value)


_PENALTY = "a number from -2 to 2"
# What a request may ask of the server besides, what each takes, and what tells that it is right.
_OPTIONS: Mapping[str, tuple[str, Callable[[Any], bool]]] = MappingProxyType(
    {
        "seed": (f"a whole number from 0 to {SEED_MAX}", lambda value: _is_whole(value, SEED_MAX)),
        "top_k": ("a whole number from 0 to 1000", lambda value: _is_whole(value, 1000)),
        "min_p": ("a number from 0 to 1", lambda value: _is_number(value, 0, 1)),
        "repeat_penalty": ("a number from 0 to 2", lambda value: _is_number(value, 0, 2)),
        "presence_penalty": (_PENALTY, lambda value: _is_number(value, -2, 2)),
        "frequency_penalty": (_PENALTY, lambda value: _is_number(value, -2, 2)),
        "stop": (f"a list of up to {STOPS_MAX} texts", _are_stops),
        "cache_prompt": ("true or false", lambda value: type(value) is bool),
    }
)
