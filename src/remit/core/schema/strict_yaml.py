"""YAML read strictly: bounded, without surprises, and with the line of every value at hand.

Rule 1: a file says everything once: no repeated keys, no anchors, no aliases, no tags of its own.
Rule 2: what a file may contain is bounded before it is built: its bytes, its depth, its types.
Rule 3: an error names file, line, the value found and what would be right.
Rule 4: what is written reads back as the same value, on the same terms.
"""

from collections.abc import Callable, Collection
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, TypeAlias

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected

# A graph of a thousand nodes takes about 150 kilobytes; a megabyte is a mistake, or an attack.
YAML_BYTES_MAX = 1_000_000
# The deepest shape of our own has five levels; the parser itself would follow thousands.
YAML_DEPTH_MAX = 8

# Where a value stands in the file: the keys and positions that lead to it.
ValuePath: TypeAlias = tuple[str | int, ...]


class YamlFault(StrEnum):
    """Why a file was turned away."""

    UNREADABLE = "FILE_UNREADABLE"
    TOO_LARGE = "FILE_TOO_LARGE"
    TOO_DEEP = "FILE_TOO_DEEP"
    NOT_YAML = "FILE_NOT_YAML"
    HAS_ALIAS = "FILE_HAS_ALIAS"
    HAS_TAG = "FILE_HAS_TAG"
    KEY_REPEATED = "FILE_KEY_REPEATED"
    KEY_UNKNOWN = "FILE_KEY_UNKNOWN"
    VALUE_INVALID = "FILE_VALUE_INVALID"


class YamlDocument(NamedTuple):
    """What a file holds, and on which line each value stands."""

    source_name: str
    value: Any
    lines: dict[ValuePath, int]

    def reject(self, fault: YamlFault, message: str, place: ValuePath) -> NoReturn:
        """Turn the file away because of what stands at this place, or around it."""
        line = 0
        while not line and place:
            line, place = self.lines.get(place, 0), place[:-1]
        reject_file(self.source_name, fault, message, line)


def block_in(document: YamlDocument, value: Any, keys: Collection[str], place: ValuePath) -> dict[str, Any]:
    """A mapping whose keys are all known; without keys to compare with, every key is."""
    if not isinstance(value, dict):
        wanted = f" with the keys {', '.join(keys)}" if keys else ""
        message = f"{spelled_place(place)} must be a mapping{wanted}, not {value_in_error(value)}"
        document.reject(YamlFault.VALUE_INVALID, message, place)
    for key in value:
        if keys and key not in keys:
            near = get_close_matches(key, keys, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(keys)}"
            message = f"{spelled_place(place)} has the unknown key {key[:80]!r}; {hint}"
            document.reject(YamlFault.KEY_UNKNOWN, message, (*place, key))
    return dict(value)


def list_in(document: YamlDocument, value: Any, place: ValuePath) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        document.reject(
            YamlFault.VALUE_INVALID, f"{spelled_place(place)} must be a list, not {value_in_error(value)}", place
        )
    return value


def spelled_place(place: ValuePath) -> str:
    """A place as an error names it."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:80]}" for step in place)
    return steps.removeprefix(".") or "the file"


def value_in_error(value: Any) -> str:
    """A value as an error shows it: a short one by its words, anything else by its type."""
    return f"{clipped(value)}" if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"


def read_yaml(path: Path, open_file: Callable[[Path], BinaryIO] = lambda path: path.open("rb")) -> YamlDocument:
    """The document in a file."""
    name = str(path)
    return parse_yaml(decoded_text(bytes_in(path, open_file), name), name)


def bytes_in(path: Path, open_file: Callable[[Path], BinaryIO] = lambda path: path.open("rb")) -> bytes:
    """The bytes of a file: at most one more than it may have, so that `decoded_text` finds it too large."""
    try:
        with open_file(path) as file:
            return file.read(YAML_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        reject_file(str(path), YamlFault.UNREADABLE, f"cannot be read: {why}; check its path and its permissions")


def decoded_text(data: bytes, source_name: str) -> str:
    """The text in the bytes of a file; the name stands for it in errors."""
    _refuse_size(len(data), source_name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reject_file(source_name, YamlFault.UNREADABLE, f"is not UTF-8 text: byte {error.start} is wrong")


def parse_yaml(text: str, source_name: str, *, depth_max: int = YAML_DEPTH_MAX) -> YamlDocument:
    """The document in a text; the name stands for it in errors."""
    try:
        _refuse_size(len(text.encode()), source_name)
    except UnicodeEncodeError as error:
        reject_file(
            source_name, YamlFault.UNREADABLE, f"is not Unicode text: character {error.start} is half of a pair"
        )
    # Its package takes as long to load as a tenth of this one, and few programs read a file.
    from remit.core.schema.yaml_values import value_in

    lines: dict[ValuePath, int] = {}
    return YamlDocument(source_name, value_in(text, source_name, lines, depth_max), lines)


def write_yaml(value: Any) -> str:
    """A plain value as people would write it: mappings over lines in their order, short lists on one."""
    from remit.core.schema.yaml_values import yaml_text

    return yaml_text(value)


def _refuse_size(size_bytes: int, source_name: str) -> None:
    if size_bytes > YAML_BYTES_MAX:
        reject_file(source_name, YamlFault.TOO_LARGE, f"has more than file_bytes_max={YAML_BYTES_MAX}")


def reject_file(source_name: str, fault: YamlFault, message: str, line: int = 0) -> NoReturn:
    """Turn a file away, naming it and the line."""
    where = f"{source_name}:{line}" if line else source_name
    raise RequestRejected(fault, f"{where}: {message}", {"source": source_name, "line": line})
