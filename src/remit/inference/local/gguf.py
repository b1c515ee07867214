"""GGUF: what the header of a model's file says about the model, read without loading it.

Rule 1: a file is hostile until it was read: every length is checked against what can be there before it is used.
Rule 2: only the header is read, never the weights.
Rule 3: what a file does not say stays empty; nothing is guessed.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from remit.core.failure import RequestRejected

MODEL_FILE_UNREADABLE = "MODEL_FILE_UNREADABLE"

# The largest vocabulary of today, with its merges, takes about 20 MB.
HEADER_BYTES_MAX = 128 * 2**20
# Headers have a few dozen entries, and the largest models a few thousand tensors.
ENTRIES_MAX = 65_536
TENSORS_MAX = 1_000_000
# A tensor of GGML has at most four.
DIMENSIONS_MAX = 4
# What the runtime does not survive: no layers or more than it has room for, a window that is nothing or does not fit 31 bits.
LAYERS_MAX = 512
WINDOW_MAX = 2**31 - 1
# How much is read at once: most headers fit.
BLOCK_BYTES = 4 * 2**20

_MAGIC = b"GGUF"
# The first version counted in 32 bits and has not been written since 2023.
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
# What every text begins with.
_LENGTH = struct.Struct("<Q")
# The numbers of a header, by the type that it names, as struct spells them.
_NUMBERS: Final = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
# A text that steers the model, such as the one that ends a message.
_CONTROL = 3

# What general.file_type names: how most of the weights are kept.
_QUANTISATIONS: Final = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16", 36: "TQ1_0", 37: "TQ2_0",
}  # fmt: skip

MetadataNumber: TypeAlias = int | float
MetadataValue: TypeAlias = MetadataNumber | str | list[MetadataNumber] | list[str]


@dataclass(frozen=True, slots=True)
class ModelHeader:
    """What a model's file says about itself. `control_tokens` are the texts that steer the model."""

    architecture: str
    name: str
    size_label: str
    parameters: int
    quantisation: str
    context_length: int
    has_chat_template: bool
    control_tokens: tuple[str, ...]
    size_bytes: int


def read_header(path: Path) -> ModelHeader:
    """What the header of a GGUF file says, or RequestRejected with what is wrong with the file."""
    try:
        with path.open("rb") as file:
            return _read(_Cursor(file, path.stat().st_size))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise RequestRejected(MODEL_FILE_UNREADABLE, f"{str(path)!r} cannot be read: {reason}") from error
    except _Broken as broken:
        message = f"{str(path)!r} is no usable GGUF file: {broken}; get the file again, or name another one"
        raise RequestRejected(MODEL_FILE_UNREADABLE, message) from broken


class _Broken(Exception):
    """What is wrong with a file."""


class _Cursor:
    """Takes bytes off the beginning of a file, as far as a header may go."""

    def __init__(self, file: BinaryIO, size_bytes: int) -> None:
        self._file = file
        self._data = b""
        self._at = 0
        # How much was dropped from the front of the data.
        self._gone = 0
        self.size_bytes = size_bytes

    @property
    def place(self) -> int:
        """How much was taken so far."""
        return self._gone + self._at

    def expect(self, count: int, what: str) -> None:
        """Refuse what cannot be in the file, or is more than a header may hold."""
        if count > self.size_bytes - self.place:
            raise _Broken(f"{what} reaches behind the end of the file, at byte {self.size_bytes}")
        if self.place + count > HEADER_BYTES_MAX:
            raise _Broken(f"{what} makes the header longer than {HEADER_BYTES_MAX} bytes")

    def take(self, count: int, what: str) -> bytes:
        """The next bytes."""
        end = self._at + count
        if end > len(self._data):
            self.expect(count, what)
            rest = self._data[self._at :]
            self._gone, self._at, end = self._gone + self._at, 0, count
            self._data = rest + self._file.read(max(count - len(rest), BLOCK_BYTES))
            if end > len(self._data):
                raise _Broken(f"it became shorter while {what} was read")
        piece = self._data[self._at : end]
        self._at = end
        return piece

    def number(self, code: str, what: str) -> MetadataNumber:
        """The next number, of a type as struct spells it."""
        found: MetadataNumber = struct.unpack("<" + code, self.take(struct.calcsize("<" + code), what))[0]
        return found

    def count(self, code: str, count_max: int, what: str) -> int:
        """The next number, which says how many of something there are."""
        found = int(self.number(code, what))
        if found > count_max:
            raise _Broken(f"{what} is {found}, and at most {count_max} are read")
        return found

    def text(self, what: str) -> str:
        """The next text."""
        data, at = self._data, self._at
        # A vocabulary has a hundred thousand of them: what lies in the block at hand is taken without ceremony.
        if len(data) - at >= _LENGTH.size:
            start = at + _LENGTH.size
            end = start + _LENGTH.unpack_from(data, at)[0]
            if end <= len(data):
                self._at = end
                return data[start:end].decode("utf-8", "replace")
        size = self.count("Q", HEADER_BYTES_MAX, f"the length of {what}")
        # Names and templates are shown, never executed; a byte that is no UTF-8 only looks odd.
        return self.take(size, what).decode("utf-8", "replace")


def _read(cursor: _Cursor) -> ModelHeader:
    if cursor.take(len(_MAGIC), "its beginning") != _MAGIC:
        raise _Broken("it does not begin with GGUF")
    if (version := cursor.count("I", 2**32, "its version")) not in _VERSIONS:
        raise _Broken(f"its version is {version}, and {' and '.join(map(str, _VERSIONS))} are read")
    tensors = cursor.count("Q", TENSORS_MAX, "the number of tensors")
    entries = cursor.count("Q", ENTRIES_MAX, "the number of entries")
    found = dict([_entry(cursor) for _ in range(entries)])
    parameters = _parameters(cursor, tensors)
    architecture = _text(found, "general.architecture")
    if not architecture:
        raise _Broken("it does not name its architecture")
    _expect_within(found, f"{architecture}.block_count", LAYERS_MAX)
    _expect_within(found, f"{architecture}.context_length", WINDOW_MAX)
    return ModelHeader(
        architecture=architecture,
        name=_text(found, "general.name"),
        size_label=_text(found, "general.size_label"),
        parameters=parameters,
        quantisation=_quantisation(found.get("general.file_type")),
        context_length=_whole(found.get(f"{architecture}.context_length")),
        has_chat_template=bool(_text(found, "tokenizer.chat_template")),
        control_tokens=_control_tokens(found),
        size_bytes=cursor.size_bytes,
    )


def _entry(cursor: _Cursor) -> tuple[str, MetadataValue]:
    key = cursor.text("the name of an entry")
    what = f"the entry {key[:80]!r}"
    kind = cursor.count("I", 2**32, what)
    if kind != _ARRAY:
        return key, _single(cursor, kind, what)
    kind = cursor.count("I", 2**32, what)
    count = cursor.count("Q", HEADER_BYTES_MAX, what)
    if code := _NUMBERS.get(kind):
        size = struct.calcsize("<" + code)
        return key, list(struct.unpack(f"<{count}{code}", cursor.take(count * size, what)))
    if kind != _STRING:
        raise _Broken(f"{what} holds values of the unknown kind {kind}")
    # A count that is a lie is found before anything is made of it.
    cursor.expect(count * _LENGTH.size, what)
    return key, [cursor.text(what) for _ in range(count)]


def _single(cursor: _Cursor, kind: int, what: str) -> MetadataNumber | str:
    if kind == _STRING:
        return cursor.text(what)
    code = _NUMBERS.get(kind)
    if code is None:
        raise _Broken(f"{what} is of the unknown kind {kind}")
    return cursor.number(code, what)


def _parameters(cursor: _Cursor, tensors: int) -> int:
    """How many weights the tensors have together; each of them must begin within the file."""
    parameters = furthest = 0
    for _ in range(tensors):
        what = f"the tensor {cursor.text('the name of a tensor')[:80]!r}"
        dimensions = cursor.count("I", DIMENSIONS_MAX, f"the dimensions of {what}")
        parameters += math.prod(int(cursor.number("Q", what)) for _ in range(dimensions))
        cursor.number("I", what)
        furthest = max(furthest, int(cursor.number("Q", what)))
    if tensors and cursor.place + furthest >= cursor.size_bytes:
        raise _Broken(f"its weights reach behind the end of the file, at byte {cursor.size_bytes}")
    return parameters


def _expect_within(found: dict[str, MetadataValue], key: str, most: int) -> None:
    """Refuse a number that ends the runtime's process; what is of another kind the runtime refuses itself."""
    value = found.get(key)
    if isinstance(value, int) and not 1 <= value <= most:
        raise _Broken(f"its entry {key!r} is {str(value)[:80]}, and may be 1 to {most}")


def _text(found: dict[str, MetadataValue], key: str) -> str:
    value = found.get(key, "")
    return value if isinstance(value, str) else ""


def _whole(value: MetadataValue | None) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _quantisation(value: MetadataValue | None) -> str:
    if not isinstance(value, int):
        return ""
    return _QUANTISATIONS.get(value, f"file type {value}")


def _control_tokens(found: dict[str, MetadataValue]) -> tuple[str, ...]:
    tokens, kinds = found.get("tokenizer.ggml.tokens"), found.get("tokenizer.ggml.token_type")
    if not isinstance(tokens, list) or not isinstance(kinds, list):
        return ()
    return tuple([str(token) for token, kind in zip(tokens, kinds, strict=False) if kind == _CONTROL and token])
