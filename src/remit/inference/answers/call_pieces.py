"""Tool calls put together from pieces, as OpenAI-compatible servers stream them.

Rule 1: a piece belongs to the call of its index, unless it names another id than that call has: then it is a new one.
        Some servers give every call the index 0.
Rule 2: without an index, an id decides; without both, a name begins a call and anything else goes on with the last.
Rule 3: arguments are text until the answer is whole; empty ones are {}, and what is no JSON object is no call.
Rule 4: a call without an id of its own gets one that follows from the conversation.
Rule 5: everything that is kept is counted: ids and names, too. A problem is told by the number of the call; what a server
        called it stands in no message.
"""

import json
from collections.abc import Callable
from typing import Any

from remit.core.journal.codec import read_json
from remit.core.limits.tools import ToolCall
from remit.core.schema.json_text import KeyRepeated

# As many calls as one answer may propose before it is refused as malformed; and as many pieces as one event may hold.
CALLS_MAX = 128
# Tools have names of a few words.
NAME_CHARS_MAX = 256
# Some gateways put what a model thought into the id, to see it again.
ID_CHARS_MAX = 16_384


class CallsUnreadable(Exception):
    """What was streamed makes no calls. The text says why."""


class _Pieces:
    """One call on its way."""

    __slots__ = ("arguments", "id", "index", "name")

    def __init__(self, index: int | None) -> None:
        self.index = index
        self.id = ""
        self.name = ""
        # Bytes, so that a million pieces of a letter each cost no more than their letters.
        self.arguments = bytearray()


class CallPieces:
    """The calls of one answer on their way."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: list[_Pieces] = []

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def size_bytes(self) -> int:
        """The bytes of all that is kept."""
        return sum(len(call.id.encode()) + len(call.name.encode()) + len(call.arguments) for call in self._calls)

    def take(self, listed: Any) -> int:
        """Add the pieces of one event, and say how many characters they had."""
        if not isinstance(listed, list):
            raise CallsUnreadable(f"tool_calls is a {type(listed).__name__} instead of a list")
        if len(listed) > CALLS_MAX:
            raise CallsUnreadable(f"a piece of it holds {len(listed)} calls, more than calls_max={CALLS_MAX}")
        return sum([self._take(piece) for piece in listed])

    def whole(self, answers: int, *, blotted: Callable[[str], str] = str) -> tuple[ToolCall, ...]:
        """The calls, now that no more pieces come. `answers` is how often the model has spoken before.

        `blotted` takes out of a text what must not be kept.
        """
        taken: set[str] = set()
        calls: list[ToolCall] = []
        for number, pieces in enumerate(self._calls, start=1):
            named = blotted(pieces.id)
            call_id = named if named and named not in taken else f"call-{answers + 1}-{number}"
            taken.add(call_id)
            arguments = _arguments(blotted(pieces.arguments.decode()), number)
            calls.append(ToolCall(call_id, blotted(_name(pieces, number)), arguments))
        return tuple(calls)

    def is_cut(self) -> bool:
        """Whether the last call may lack its end: one whose arguments never began cannot be told from a whole one."""
        return bool(self._calls) and not self._calls[-1].arguments.decode().strip()

    def _take(self, piece: Any) -> int:
        if not isinstance(piece, dict):
            raise CallsUnreadable(f"a piece of a call is a {type(piece).__name__} instead of an object")
        function = piece.get("function") or {}
        if not isinstance(function, dict):
            raise CallsUnreadable(f"the function of a call is a {type(function).__name__} instead of an object")
        call_id, name = _text(piece, "id"), _text(function, "name")
        arguments = _argument_text(function.get("arguments"))
        if len(call_id) > ID_CHARS_MAX:
            raise CallsUnreadable(
                f"the id of a call has {len(call_id)} characters, more than id_chars_max={ID_CHARS_MAX}"
            )
        call = self._belongs_to(piece.get("index"), call_id, name)
        call.id = call.id or call_id
        # Repeated by some servers with every piece, and cut by others.
        if name != call.name:
            call.name += name
        if len(call.name) > NAME_CHARS_MAX:
            raise CallsUnreadable(f"the name of a tool has more than name_chars_max={NAME_CHARS_MAX} characters")
        call.arguments += arguments.encode()
        return len(call_id) + len(name) + len(arguments)

    def _belongs_to(self, index: Any, call_id: str, name: str) -> _Pieces:
        last = self._calls[-1] if self._calls else None
        if type(index) is int:
            same = next((call for call in reversed(self._calls) if call.index == index), None)
            return same if same is not None and call_id in ("", same.id or call_id) else self._begin(index)
        if call_id:
            same = next((call for call in self._calls if call.id == call_id), None)
            return same or self._begin(None)
        return self._begin(None) if last is None or (name and last.name) else last

    def _begin(self, index: int | None) -> _Pieces:
        if len(self._calls) == CALLS_MAX:
            raise CallsUnreadable(f"it proposes more than calls_max={CALLS_MAX} calls")
        self._calls.append(_Pieces(index))
        return self._calls[-1]


def _text(holder: dict[str, Any], key: str) -> str:
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise CallsUnreadable(f"the {key} of a call is a {type(value).__name__} instead of a text")
    return value


def _name(pieces: _Pieces, number: int) -> str:
    if not pieces.name:
        raise CallsUnreadable(f"call {number} names no tool")
    return pieces.name


def _argument_text(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    if arguments is None:
        return ""
    if not isinstance(arguments, dict):
        raise CallsUnreadable(f"the arguments of a call are a {type(arguments).__name__} instead of a text")
    # Some servers send the object itself.
    try:
        return json.dumps(arguments)
    except RecursionError:
        raise CallsUnreadable("the arguments of a call are nested too deeply") from None


def _arguments(text: str, number: int) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        arguments = read_json(text)
    except KeyRepeated as error:
        raise CallsUnreadable(f"the arguments of call {number} mean two things: {error}") from None
    except (ValueError, RecursionError):
        raise CallsUnreadable(f"the arguments of call {number} are no JSON") from None
    if not isinstance(arguments, dict):
        raise CallsUnreadable(f"the arguments of call {number} are no JSON object")
    return arguments
