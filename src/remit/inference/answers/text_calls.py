"""Calls that a model wrote as text: the notations that small models were trained on, read where a server left them.

Rule 1: only tools that were offered are called, and only by a text that is nothing but calls: behind a mark, at the
        beginning of a line, nothing else may follow; without a mark, nothing else may be there at all.
Rule 2: what does not read to its end is words. Nothing is repaired, and nothing is guessed.
Rule 3: what is read here is a proposal like any other: the kernel judges it.
Rule 4: pieces may be cut anywhere. No more is held back than what may still become calls.
Rule 5: reading takes time that grows with the text, and no faster.

| notation | as written by |
|---|---|
| `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, repeated | Hermes, Qwen and their kin |
| `[TOOL_CALLS][{"name": ..., "arguments": {...}}]`, or `[TOOL_CALLS]NAME[ARGS]{...}` | Mistral |
| `<|python_tag|>{"name": ..., "parameters": {...}}`, with `;` between several | Llama |
| `{"name": ..., "parameters": {...}}` or a list of such, alone or fenced as JSON | many |
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

from remit.core.journal.codec import read_json
from remit.core.limits.tools import ToolChoiceMode
from remit.core.record import JsonObject
from remit.core.regex import regex
from remit.core.run.inference import ModelRequest
from remit.inference.answers.call_pieces import CALLS_MAX

# Indentation of a mark; deeper is a quotation.
INDENT_MAX = 16
# By then it shows whether an object may be a call: its first key stands there.
PROBE_CHARS = 64
# Spaces before the first letter; a text that begins with more is only a text.
SPACES_MAX = 256

MARKS = ("<tool_call>", "[TOOL_CALLS]", "<|python_tag|>")

_MARK = regex(rf"^[ \t]{{0,{INDENT_MAX}}}(?:{'|'.join(map(re.escape, MARKS))})", re.MULTILINE)
_INDENT = regex(rf"[ \t]{{0,{INDENT_MAX}}}")
_SPACES = regex(r"\s*")
# What may stand around calls behind a mark, and around those without one.
_AROUND_MARKED = regex(
    rf"(?:\s|[;,]|{'|'.join(map(re.escape, (*MARKS, '</tool_call>', '<|eom_id|>', '<|eot_id|>', '<|im_end|>', '</s>')))})*"
)
_AROUND_BARE = regex(r"[\s;]*")
_NAMED = regex(r"([A-Za-z0-9_./: -]{1,256})(?:\[CALL_ID\][A-Za-z0-9_-]{1,256})?\[ARGS\]")
_FENCED = regex(r"```(?:json|tool_call|tool_code)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_MAY_BE_BARE = regex(
    r'(?:```[a-z_]{0,16}\s*)?\[?\s*\{\s*"(?:name|tool|function|type|id|arguments|parameters)"', re.ASCII
)

_NAMES = ("name", "tool", "function")
_ARGUMENTS = ("arguments", "parameters")
_BESIDE = frozenset({"id", "type"})

_extent_of = json.JSONDecoder().raw_decode


class WrittenCall(NamedTuple):
    """A call as it was written: the tool and its arguments."""

    name: str
    arguments: JsonObject


class SplitText(NamedTuple):
    """A text taken apart: the words, and the calls behind them."""

    words: str = ""
    calls: tuple[WrittenCall, ...] = ()


class _NoCalls(Exception):
    """The text is words after all."""


# The calls of a text that is nothing but calls, or _NoCalls.
Read: TypeAlias = Callable[[str, Collection[str]], list[WrittenCall]]


class CallFilter:
    """Takes a text in pieces, and tells of each what are words; in the end, `calls` are what the rest came to."""

    __slots__ = ("_held", "_is_caught", "_is_midline", "_may_be_bare", "_names", "_reads", "calls")

    def __init__(self, names: Collection[str], reads: Sequence[Read]) -> None:
        self.calls: tuple[WrittenCall, ...] = ()
        self._names = frozenset(names)
        self._reads = tuple(reads)
        self._held: list[str] = []
        # Whether all that follows is held back, whether a line has begun with words, and whether nothing was said yet.
        self._is_caught = False
        self._is_midline = False
        self._may_be_bare = read_bare in self._reads

    def take(self, piece: str) -> str:
        """The words among what is known by now, and was not told before."""
        if not piece:
            return ""
        if self._is_caught:
            self._held.append(piece)
            return ""
        text = self._released() + piece
        if self._may_be_bare:
            begun = text[_behind(_SPACES, text, 0) :]
            if not begun and len(text) <= SPACES_MAX:
                return self._hold(text, 0)
            if begun[:1] in ("{", "[", "`") and len(text) - len(begun) <= SPACES_MAX:
                if len(begun) < PROBE_CHARS:
                    return self._hold(text, 0)
                self._is_caught = bool(_MAY_BE_BARE.match(begun)) or begun.startswith(MARKS)
                if self._is_caught:
                    return self._hold(text, 0)
            self._may_be_bare = False
        return self._watch(text)

    def end(self, blotted: Callable[[str], str] = str) -> str:
        """The words that were held back, now that no more comes; what was no words is in `calls`.

        `blotted` takes out of a text what must not be kept.
        """
        reads = self._reads
        text = self.give_up()
        for read in reads if text else ():
            try:
                self.calls = tuple(read(blotted(text), self._names))
            except _NoCalls:
                continue
            return ""
        return text

    def give_up(self) -> str:
        """The words that were held back, and nothing is held back any more: none of it is a call."""
        self._reads, self._may_be_bare, self._is_caught = (), False, False
        return self._released()

    def _watch(self, text: str) -> str:
        """Let words pass up to a mark, or to what may become one."""
        if not self._reads:
            return text
        # Only a line that has not begun yet can begin with a mark.
        at = text.find("\n") + 1 if self._is_midline else 0
        if self._is_midline and not at:
            return text
        if mark := _MARK.search(text, at):
            self._is_caught = True
            return self._hold(text, mark.start())
        last = max(at, text.rfind("\n") + 1)
        if _may_become_mark(text, last):
            self._is_midline = False
            return self._hold(text, last)
        self._is_midline = True
        return text

    def _hold(self, text: str, start: int) -> str:
        self._held = [text[start:]]
        return text[:start]

    def _released(self) -> str:
        text, self._held = "".join(self._held), []
        return text


def call_filter(request: ModelRequest) -> CallFilter | None:
    """What reads the calls in an answer to a request; None where none was offered. An answer with a shape is no call."""
    if not request.tools or request.tool_choice.mode is ToolChoiceMode.NONE:
        return None
    is_shaped = request.schema is not None or bool(request.grammar)
    return CallFilter([tool.name for tool in request.tools], (read_marked,) if is_shaped else (read_marked, read_bare))


def written_in(text: str, names: Collection[str]) -> SplitText:
    """The words and the calls of a whole text."""
    calls = CallFilter(names, (read_marked, read_bare))
    words = calls.take(text) + calls.end()
    return SplitText(words, calls.calls)


def begins_a_call(text: str) -> bool | None:
    """Whether a text begins with the mark of a call or with a brace; None while that is open."""
    begun = text.lstrip()
    if begun.startswith(("{", *MARKS)):
        return True
    return None if any(mark.startswith(begun) for mark in MARKS) else False


def read_marked(text: str, names: Collection[str]) -> list[WrittenCall]:
    """The calls of a text that begins with a mark."""
    begun = text[_behind(_SPACES, text, 0) :]
    if not begun.startswith(MARKS):
        raise _NoCalls
    return _read(begun, names, _AROUND_MARKED)


def read_bare(text: str, names: Collection[str]) -> list[WrittenCall]:
    """The calls of a text that is JSON, alone or fenced."""
    said = text.strip()
    if fenced := _FENCED.fullmatch(said):
        said = fenced[1]
    return _read(said, names, _AROUND_BARE)


def _read(text: str, names: Collection[str], around: re.Pattern[str]) -> list[WrittenCall]:
    calls: list[WrittenCall] = []
    at = _behind(around, text, 0)
    while at < len(text):
        found, at = _value(text, at, names)
        calls += found
        if len(calls) > CALLS_MAX:
            raise _NoCalls
        at = _behind(around, text, at)
    if not calls:
        raise _NoCalls
    return calls


def _value(text: str, at: int, names: Collection[str]) -> tuple[list[WrittenCall], int]:
    """The calls that the value at a place comes to, and where it ends."""
    named = _NAMED.match(text, at)
    start = named.end() if named else at
    if not text.startswith(("{", "["), start):
        raise _NoCalls
    try:
        # The one finds the end, the other reads as strictly as everything else here is read.
        end = _extent_of(text, start)[1]
        value = read_json(text[start:end])
    except (ValueError, RecursionError):
        raise _NoCalls from None
    if named:
        return [_call(named[1], value, names)], end
    return [_called(each, names) for each in (value if isinstance(value, list) else [value])], end


def _called(value: Any, names: Collection[str]) -> WrittenCall:
    """The call that an object is."""
    if (
        isinstance(value, dict)
        and isinstance(value.get("function"), dict)
        and not value.keys() - {*_BESIDE, "function"}
    ):
        value = value["function"]
    if not isinstance(value, dict):
        raise _NoCalls
    tools = [key for key in _NAMES if key in value]
    arguments = [key for key in _ARGUMENTS if key in value]
    if len(tools) != 1 or len(arguments) != 1 or value.keys() - {*_BESIDE, *tools, *arguments}:
        raise _NoCalls
    return _call(value[tools[0]], value[arguments[0]], names)


def _call(name: Any, arguments: Any, names: Collection[str]) -> WrittenCall:
    if isinstance(arguments, str):
        # Some write the text of the object.
        try:
            arguments = read_json(arguments)
        except (ValueError, RecursionError):
            raise _NoCalls from None
    if not isinstance(name, str) or name not in names or not isinstance(arguments, dict):
        raise _NoCalls
    return WrittenCall(name, arguments)


def _behind(what: re.Pattern[str], text: str, at: int) -> int:
    """Where the text goes on behind something that may also be missing."""
    found = what.match(text, at)
    assert found is not None, "a pattern that matches nothing, too"
    return found.end()


def _may_become_mark(text: str, line: int) -> bool:
    """Whether the last line, as far as it goes, may be the beginning of a mark."""
    start = _behind(_INDENT, text, line)
    begun = text[start : start + max(map(len, MARKS))]
    return any(mark.startswith(begun) for mark in MARKS)
