"""What a step of a plan gave, in a few words: how much of what, and how it begins.

Rule 1: a value that cannot be read is told by its kind; looking at a run never fails because of what a step said.
Rule 2: texts stand here as they were said; whoever prints them makes them fit to print.
"""

from remit.core.journal.codec import from_json, read_json
from remit.core.record import BlobRef, Text
from remit.core.work.plan import ContextFor, RerankInput
from remit.core.work.values import ValueKind

# As many pieces of evidence as fit a line.
PIECES_MAX = 3
PIECE_CHARS_MAX = 60


def gave(kind: str, text: Text) -> str:
    """How much of what: 3 candidates, an object with 2 fields."""
    value = _value(kind, text)
    match value:
        case RerankInput(candidates=candidates):
            return _counted(len(candidates), "candidate")
        case ContextFor(messages=messages):
            return _counted(len(messages), "message")
        case dict():
            return f"an object with {_counted(len(value), 'field')}"
        case list():
            return f"a list of {len(value)}"
    return _KINDS.get(kind, "a value")


def beginning(kind: str, text: Text) -> Text:
    """How it begins: the best of the evidence with its sources, the words of messages, else the value as it stands."""
    match _value(kind, text):
        case RerankInput(candidates=candidates):
            return _joined([f"{one.source}: {_piece(one.content)}" for one in candidates[:PIECES_MAX]], len(candidates))
        case ContextFor(messages=messages):
            return _joined([_piece(message.content) for message in messages[:PIECES_MAX]], len(messages))
    return text


_KINDS = {
    ValueKind.TEXT.value: "a text",
    ValueKind.MESSAGES.value: "messages",
    ValueKind.CANDIDATES.value: "candidates",
    ValueKind.OBJECT.value: "an object",
    ValueKind.JSON.value: "a value",
    ValueKind.RESULT.value: "a result",
}


def _value(kind: str, text: Text) -> object:
    """The value in a text, where it is one to be counted and is at hand."""
    if isinstance(text, BlobRef):
        return None
    try:
        if kind == ValueKind.MESSAGES:
            return from_json(text, ContextFor)
        if kind == ValueKind.CANDIDATES:
            return from_json(text, RerankInput)
        return read_json(text) if kind in (ValueKind.OBJECT, ValueKind.JSON) else None
    except (ValueError, RecursionError):
        return None


def _piece(text: Text) -> str:
    if isinstance(text, BlobRef):
        return f"<{text.size_bytes} bytes>"
    return text if len(text) <= PIECE_CHARS_MAX else f"{text[: PIECE_CHARS_MAX - 1]}…"


def _joined(pieces: list[str], count: int) -> str:
    more = [f"and {count - len(pieces)} more"] if count > len(pieces) else []
    return "; ".join([*pieces, *more])


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
