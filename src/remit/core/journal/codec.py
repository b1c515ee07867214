"""Records to bytes and back: deterministic, chained by hash, and able to read every earlier format.

Rule 1: the same record gives the same bytes in every process.
Rule 2: the first byte names the format; a record of an older format is lifted, step by step, to the newest.
Rule 3: the chain hashes bytes as they are stored, so reading a record never changes what its hash covers. A turn that was
        redacted carries the hash of the bytes that it had before.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from remit.core.failure import InvariantBroken
from remit.core.journal.turn import RedactedTurn, Turn
from remit.core.record import JsonObject, Record, Text, unclassed
from remit.core.regex import regex
from remit.core.run.signals import UserSignal
from remit.core.schema.json_text import kept_value, parse_json

T = TypeVar("T")
R = TypeVar("R", bound=Record)

FORMAT = 1
_PREFIX = bytes([FORMAT])
# No format is ever numbered so high.
_REDACTED = b"\xff"

# From a format to the next one: a function over the plain values of a record. Empty while there is one format.
LIFTS: Mapping[int, Callable[[JsonObject], JsonObject]] = MappingProxyType({})

# Nothing stands before the first turn.
NO_HASH = b""

_encode = msgspec.msgpack.Encoder(order="deterministic", enc_hook=unclassed).encode
_decode = msgspec.msgpack.Decoder(Turn).decode
_decode_redacted = msgspec.msgpack.Decoder(RedactedTurn).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


# How MessagePack writes 32 bytes; the digest that follows is looked at without being passed over.
_DIGEST = regex(rb"\xc4\x20(?=(.{32}))", re.DOTALL)


def encode_turn(turn: Turn) -> bytes:
    """The bytes a journal stores for a turn."""
    return _PREFIX + _encode(turn)


def decode_turn(data: bytes, *, lifts: Mapping[int, Callable[[JsonObject], JsonObject]] = LIFTS) -> Turn:
    """The turn in these bytes, whatever format wrote them."""
    try:
        if data[:1] == _PREFIX:
            return _decode(memoryview(data)[1:])
        if data[:1] == _REDACTED:
            return decode_turn(_decode_redacted(memoryview(data)[1:]).data, lifts=lifts)
        return msgspec.convert(_lift(data, lifts), Turn)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvariantBroken("JOURNAL_UNREADABLE", f"turn of {len(data)} bytes does not decode: {error}") from error


def read_back(record: R) -> R:
    """A record as it is read from its bytes; raises what encoding or decoding it raises."""
    return msgspec.msgpack.decode(_encode(record), type=type(record))


def digests_in(data: bytes) -> Iterator[bytes]:
    """Whatever in the bytes of a turn has the shape of the digest of a text."""
    return (found[1] for found in _DIGEST.finditer(data))


def _lift(data: bytes, lifts: Mapping[int, Callable[[JsonObject], JsonObject]]) -> JsonObject:
    version = data[0] if data else 0
    values: JsonObject = msgspec.msgpack.decode(memoryview(data)[1:]) if version in lifts else {}
    while version != FORMAT:
        if version not in lifts:
            raise InvariantBroken(
                "JOURNAL_FORMAT_UNKNOWN",
                f"turn has format {version}; this version reads formats up to {FORMAT}. Upgrade remit to read it.",
            )
        values, version = lifts[version](values), version + 1
    return values


def hash_turn(data: bytes) -> bytes:
    """The link that the next turn carries: the SHA-256 digest of these bytes, or of those that a redacted turn had."""
    redacted = redacted_in(data) if data[:1] == _REDACTED else None
    return sha256(data).digest() if redacted is None else redacted.link


def encode_redacted(redacted: RedactedTurn) -> bytes:
    """The bytes a journal stores for a turn that was redacted."""
    return _REDACTED + _encode(redacted)


def redacted_in(data: bytes) -> RedactedTurn | None:
    """What was done to the turn in these bytes; None where it stands as it was written."""
    if data[:1] != _REDACTED:
        return None
    try:
        return _decode_redacted(memoryview(data)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def readable_turn(data: bytes) -> Turn | None:
    """The turn in these bytes; None where they are damaged."""
    try:
        return decode_turn(data)
    except InvariantBroken:
        return None


def turn_to_json(turn: Turn) -> bytes:
    """A turn as one line of JSON, for people and other programs; digests are in base64."""
    return msgspec.json.encode(turn, order="deterministic", enc_hook=unclassed)


def encode_record(record: Record) -> bytes:
    """The bytes that a log keeps of a record."""
    return _encode(record)


def decode_record(data: bytes, kind: Any) -> Any:
    """The record in these bytes, of this kind or of one of these kinds."""
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvariantBroken("ENTRY_UNREADABLE", f"entry of {len(data)} bytes does not decode: {error}") from error


def encode_signal(signal: UserSignal) -> bytes:
    """The bytes an inbox keeps of a signal."""
    return msgspec.json.encode(signal, order="deterministic")


def decode_signal(data: bytes) -> UserSignal:
    """The signal in these bytes."""
    try:
        return msgspec.json.decode(data, type=UserSignal)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvariantBroken("SIGNAL_UNREADABLE", f"signal of {len(data)} bytes does not decode: {error}") from error


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text from anywhere; raises ValueError when it is none, or when a key stands in it twice."""
    return parse_json(text)


def read_members(data: bytes) -> dict[str, bytes]:
    """The members of a JSON object, each as the bytes it is written with; raises ValueError when it is none."""
    parse_json(data)
    return {name: bytes(raw) for name, raw in _decode_members(data).items()}


def to_json(value: Any) -> str:
    """The JSON text of a value, without spaces, its keys in their order."""
    return msgspec.json.encode(value, enc_hook=unclassed).decode()


def from_json(text: str | bytes, kind: type[T]) -> T:
    """The record of this kind in a JSON text; raises ValueError when there is none, or when a key stands in it twice."""
    parse_json(text)
    return msgspec.json.decode(text, type=kind)


def plain_value(value: Any) -> Any:
    """A value as JSON has it: records as objects. Raises TypeError for what JSON cannot have."""
    return msgspec.to_builtins(value, enc_hook=unclassed)


def bare(value: Any) -> Any:
    """A foreign value as JSON has it: dataclasses and models as objects, dates as texts, arrays as lists.

    Raises TypeError for what JSON cannot have. Bytes are left as they are, since no text says that it was bytes.
    """
    return msgspec.to_builtins(value, builtin_types=(bytes, bytearray, memoryview), enc_hook=_dumped)


def _dumped(value: Any) -> Any:
    """What a pydantic model or an array of numpy says of itself, wherever it stands in a value."""
    if not isinstance(value, type):
        if callable(dump := getattr(value, "model_dump", None)):
            return dump(mode="json")
        if callable(listed := getattr(value, "tolist", None)):
            return listed()
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def arguments_in(text: Text) -> JsonObject:
    """The arguments of a call as an object; long ones, which live in Blobs, by their digest."""
    if not isinstance(text, str):
        return {"blob": text.digest.hex(), "size_bytes": text.size_bytes}
    arguments: JsonObject = kept_value(text) if text else {}
    return arguments
