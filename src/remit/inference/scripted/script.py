"""Scripts: what a scripted engine says, read from a YAML or JSON file or given as values, and checked.

Rule 1: a script is judged when it is read; what was read can be played to its end.
Rule 2: an error names the file and the line where there is one, the reply, the field, the value found and what is allowed.
Rule 3: an unknown key is refused, never skipped.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeAlias

from remit.core.clipped import clipped
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.limits.tools import ToolCall
from remit.core.record import JsonObject, replace, size_bytes
from remit.core.run.inference import ModelInfo, Price
from remit.core.run.manifest import Source
from remit.core.run.usage import TokenUsage
from remit.core.schema.json_text import NotJson, kept_value, parse_json, place_in
from remit.inference.engine import INFERENCE_CODES

SCRIPT_NOT_FOUND = "SCRIPT_NOT_FOUND"
SCRIPT_UNREADABLE = "SCRIPT_UNREADABLE"
SCRIPT_INVALID = "SCRIPT_INVALID"

# Ten thousand loops of a benchmark, each spelled out; more is a program, not a script.
REPLIES_MAX = 10_000
# As many calls as one answer may propose before it is refused as malformed.
CALLS_MAX = 128
CHUNKS_MAX = 10_000
# Ten minutes: longer than any model call is waited for.
DELAY_MS_MAX = 600_000
# The largest figure a script may name; sums and prices made of it still fit the 64 bits of a record.
FIGURE_MAX = 2**40 - 1
# A pattern is one idea; a page of them is a mistake.
WHEN_CHARS_MAX = 1_000
# Six levels lead to the arguments of a call; what people write below them stays under twenty.
SCRIPT_DEPTH_MAX = 32
# What a small model of today can see.
CONTEXT_WINDOW_DEFAULT = 8192
FREE = Price(0, 0)

SCRIPTED = "scripted"

ScriptPath: TypeAlias = tuple[str | int, ...]

_SCRIPT_KEYS = ("replies", "context_window", "price", "calls_at_once")
_REPLY_KEYS = ("text", "tool_calls", "error", "reasoning", "usage", "delay_ms", "chunks", "when", "replica")
_CALL_KEYS = ("name", "arguments", "id")
_USAGE_KEYS = TokenUsage.__struct_fields__
_PRICE_KEYS = Price.__struct_fields__


class ScriptedReply(NamedTuple):
    """One reply: an answer, or an error. A call without an id gets one when it is said.

    `pieces` is how the text is streamed, `said_bytes` how long text and calls are together. A reply with a `replica` is
    for that one alone; for any other it is not there.
    """

    text: str = ""
    reasoning: str = ""
    calls: tuple[ToolCall, ...] = ()
    error: ErrorCode | None = None
    usage: TokenUsage | None = None
    delay_ms: int = 0
    pieces: tuple[str, ...] = ()
    when: re.Pattern[str] | None = None
    said_bytes: int = 0
    replica: int = 0

    @property
    def speaks(self) -> bool:
        """Whether the reply leaves a message in the conversation; an error leaves none, and neither does silence."""
        return self.error is None and bool(self.text or self.calls)


class Script(NamedTuple):
    """What a scripted engine knows: its replies, the model it plays, and where both came from."""

    replies: tuple[ScriptedReply, ...]
    info: ModelInfo
    source: Source


class _Page(NamedTuple):
    """What a script is called in errors, and on which line each value stands where that is known."""

    name: str
    lines: Mapping[ScriptPath, int]

    def reject(self, message: str, place: ScriptPath) -> NoReturn:
        line, around = 0, place
        while not line and around:
            line, around = self.lines.get(around, 0), around[:-1]
        where = f"{self.name}:{line}" if line else self.name
        raise RequestRejected(SCRIPT_INVALID, f"{where}: {_spelled(place)} {message}", {"line": line})


def read_script(path: Path) -> Script:
    """The script in a file: JSON when its name ends so, YAML otherwise."""
    # Only those who read a file pay for the reader.
    from remit.core.schema.strict_yaml import YAML_BYTES_MAX, decoded_text, parse_yaml

    data, place = _bytes_in(path, YAML_BYTES_MAX + 1)
    try:
        text = decoded_text(data, place)
        if path.suffix.lower() == ".json":
            value, lines = _json_in(text, place), {}
        else:
            document = parse_yaml(text, place, depth_max=SCRIPT_DEPTH_MAX)
            value, lines = document.value, document.lines
    except RequestRejected as error:
        raise RequestRejected(SCRIPT_UNREADABLE, error.message, error.details) from error
    name = f"{SCRIPTED}:{path.name.split('.')[0] or path.name}"
    return _script(_Page(place, lines), value, Source(name, place, digest=sha256(data).hexdigest()))


def script_of(
    replies: Iterable[JsonObject], *, context_window: int, price: Price | None, calls_at_once: int = 1
) -> Script:
    """A script from values, in the shape of the file."""
    value: JsonObject = {"replies": list(replies), "context_window": context_window, "calls_at_once": calls_at_once}
    script = _script(_Page("the script", {}), value, Source(SCRIPTED))
    return script._replace(info=replace(script.info, price=price))


def _bytes_in(path: Path, bytes_max: int) -> tuple[bytes, str]:
    """The first bytes of a file, and its path as it is found from anywhere."""
    try:
        with path.open("rb") as file:
            return file.read(bytes_max), str(path.resolve())
    except (FileNotFoundError, NotADirectoryError):
        message = f"there is no script {str(path)!r}; check the path after 'scripted:'"
        raise RequestRejected(SCRIPT_NOT_FOUND, message) from None
    except (OSError, ValueError) as error:
        # A ValueError is a path that no file can have, for instance one with a zero byte.
        reason = getattr(error, "strerror", None) or str(error)
        raise RequestRejected(
            SCRIPT_UNREADABLE, f"script {str(path)!r} cannot be read: {reason}; check its path and its permissions"
        ) from error


def _json_in(text: str, name: str) -> Any:
    try:
        return parse_json(text)
    except NotJson as error:
        line, _ = place_in(text, error.at)
        raise RequestRejected(SCRIPT_UNREADABLE, f"{name}:{line}: is not JSON: {error}", {"line": line}) from error


def _script(page: _Page, value: Any, source: Source) -> Script:
    block = _block(page, value, _SCRIPT_KEYS, ())
    listed = block.get("replies")
    if not isinstance(listed, list) or not listed:
        page.reject(f"must be a list of at least one reply, not {_shown(listed)}", ("replies",))
    if len(listed) > REPLIES_MAX:
        page.reject(f"has {len(listed)} replies, replies_max={REPLIES_MAX}; the last one repeats", ("replies",))
    replies = tuple([_reply(page, reply, ("replies", position)) for position, reply in enumerate(listed)])
    window = _figure(page, block.get("context_window", CONTEXT_WINDOW_DEFAULT), ("context_window",), least=1)
    price = _price(page, block["price"]) if "price" in block else FREE
    at_once = _figure(page, block.get("calls_at_once", 1), ("calls_at_once",), least=1)
    return Script(replies, ModelInfo(source.name, window, price, calls_at_once=at_once), source)


def _price(page: _Page, value: Any) -> Price | None:
    """A price; null says that it is unknown, which is not the same as free."""
    if value is None:
        return None
    block = _block(page, value, _PRICE_KEYS, ("price",))
    for key in _PRICE_KEYS:
        if key not in block:
            page.reject(f"lacks {key}; name both prices, 0 is free", ("price",))
    return Price(*(_figure(page, block[key], ("price", key)) for key in _PRICE_KEYS))


def _reply(page: _Page, value: Any, place: ScriptPath) -> ScriptedReply:
    block = _block(page, value, _REPLY_KEYS, place)
    error = _error(page, block["error"], (*place, "error")) if "error" in block else None
    pieces, text = _pieces(page, block, place)
    calls = _calls(page, block["tool_calls"], (*place, "tool_calls")) if "tool_calls" in block else ()
    if error is not None and ("text" in block or calls):
        page.reject("has an error beside a text or tool_calls; an error stands alone, after chunks at most", place)
    if error is None and not calls and "text" not in block and not pieces:
        page.reject("says nothing; give it a text, tool_calls or an error", place)
    return ScriptedReply(
        text=text if error is None else "",
        reasoning=_text(page, block.get("reasoning", ""), (*place, "reasoning")),
        calls=calls,
        error=error,
        usage=_usage(page, block["usage"], (*place, "usage")) if "usage" in block else None,
        delay_ms=_figure(page, block.get("delay_ms", 0), (*place, "delay_ms"), most=DELAY_MS_MAX),
        pieces=pieces,
        when=_pattern(page, block["when"], (*place, "when")) if "when" in block else None,
        replica=_figure(page, block["replica"], (*place, "replica"), least=1) if "replica" in block else 0,
        said_bytes=size_bytes(text)
        + sum(size_bytes(call.name) + len(canonical_json(call.arguments)) for call in calls),
    )


def _pieces(page: _Page, block: JsonObject, place: ScriptPath) -> tuple[tuple[str, ...], str]:
    """How a text is streamed, and the text: whole, in so many pieces, or in pieces that are spelled out."""
    text, chunks, where = (
        _text(page, block.get("text", ""), (*place, "text")),
        block.get("chunks", 1),
        (*place, "chunks"),
    )
    if not isinstance(chunks, list):
        count = min(_figure(page, chunks, where, least=1, most=CHUNKS_MAX), len(text))
        cuts = [len(text) * number // count for number in range(count + 1)] if count else []
        return tuple([text[cut:next_cut] for cut, next_cut in pairwise(cuts)]), text
    if len(chunks) > CHUNKS_MAX:
        page.reject(f"has {len(chunks)} pieces, chunks_max={CHUNKS_MAX}", where)
    pieces = tuple([_text(page, piece, (*where, position)) for position, piece in enumerate(chunks)])
    joined = "".join(pieces)
    if "text" in block and joined != text:
        page.reject(
            f"join to {_shown(joined)} and the text is {_shown(text)}; leave the text out or make them equal", where
        )
    return pieces, joined


def _calls(page: _Page, value: Any, place: ScriptPath) -> tuple[ToolCall, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= CALLS_MAX:
        shown = f"{len(value)} of them" if isinstance(value, list) else _shown(value)
        page.reject(f"must be a list of 1 to calls_max={CALLS_MAX} calls, not {shown}", place)
    return tuple([_call(page, call, (*place, position)) for position, call in enumerate(value)])


def _call(page: _Page, value: Any, place: ScriptPath) -> ToolCall:
    block = _block(page, value, _CALL_KEYS, place)
    name = _text(page, block.get("name", ""), (*place, "name"))
    if not name:
        page.reject("must name the tool to be called", (*place, "name"))
    arguments = block.get("arguments", {})
    if not isinstance(arguments, dict):
        page.reject(f"must be an object, not {_shown(arguments)}", (*place, "arguments"))
    try:
        # Read back, they are what a journal gives back, and no caller can change them.
        arguments = kept_value(canonical_json(arguments))
    except NotCanonical as error:
        page.reject(f"cannot be written as JSON: {error}", (*place, "arguments"))
    return ToolCall(_text(page, block.get("id", ""), (*place, "id")), name, arguments)


def _usage(page: _Page, value: Any, place: ScriptPath) -> TokenUsage:
    block = _block(page, value, _USAGE_KEYS, place)
    return TokenUsage(*(_figure(page, block.get(key, 0), (*place, key)) for key in _USAGE_KEYS))


def _error(page: _Page, value: Any, place: ScriptPath) -> ErrorCode:
    if not isinstance(value, str) or value not in INFERENCE_CODES:
        page.reject(f"is {_shown(value)}; use one of {', '.join(sorted(INFERENCE_CODES))}", place)
    return ErrorCode(value)


def _pattern(page: _Page, value: Any, place: ScriptPath) -> re.Pattern[str]:
    pattern = _text(page, value, place)
    if len(pattern) > WHEN_CHARS_MAX:
        page.reject(f"has {len(pattern)} characters, when_chars_max={WHEN_CHARS_MAX}", place)
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        page.reject(f"is {_shown(pattern)}, which is no regular expression: {error}", place)


def _block(page: _Page, value: Any, keys: Collection[str], place: ScriptPath) -> JsonObject:
    if not isinstance(value, dict):
        page.reject(f"must be an object with the keys {', '.join(keys)}, not {_shown(value)}", place)
    for key in value:
        if key not in keys:
            page.reject(f"has the unknown key {_shown(key)}; known are {', '.join(keys)}", place)
    return value


def _text(page: _Page, value: Any, place: ScriptPath) -> str:
    if not isinstance(value, str):
        page.reject(f"must be a text, not {_shown(value)}; put it in quotes", place)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        page.reject(f"is not Unicode text: character {error.start} is half of a pair", place)
    return value


def _figure(page: _Page, value: Any, place: ScriptPath, *, least: int = 0, most: int = FIGURE_MAX) -> int:
    # A bool is an int to Python, and no count.
    if type(value) is not int or not least <= value <= most:
        page.reject(f"must be a whole number from {least} to {most}, not {_shown(value)}", place)
    return value


def _spelled(place: ScriptPath) -> str:
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return steps.removeprefix(".") or "a script"


def _shown(value: Any) -> str:
    if isinstance(value, int) and abs(value) > FIGURE_MAX:
        return "a number beyond belief"  # Its digits alone could fill a screen.
    return f"{clipped(value)}" if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"
