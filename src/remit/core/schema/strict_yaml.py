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

import yaml

from remit.core.failure import RequestRejected

# A graph of a thousand nodes takes about 150 kilobytes; a megabyte is a mistake, or an attack.
YAML_BYTES_MAX = 1_000_000
# The deepest shape of our own has five levels; the parser itself would follow thousands.
YAML_DEPTH_MAX = 8
# As wide as the lines of this house.
WIDTH = 120

# Where a value stands in the file: the keys and positions that lead to it.
Place: TypeAlias = tuple[str | int, ...]

# The same rules in C where the package was built with it: fifteen times faster.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_LINE_ENDS = frozenset("\r\n\x85\u2028\u2029")
_SCALARS = frozenset({f"{_TAG}{kind}" for kind in ("str", "int", "float", "bool", "null")})


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


class Document(NamedTuple):
    """What a file holds, and on which line each value stands."""

    source_name: str
    value: Any
    lines: dict[Place, int]

    def reject(self, fault: YamlFault, message: str, place: Place) -> NoReturn:
        """Turn the file away because of what stands at this place, or around it."""
        line = 0
        while not line and place:
            line, place = self.lines.get(place, 0), place[:-1]
        _reject(self.source_name, fault, message, line)


def block_in(document: Document, value: Any, keys: Collection[str], place: Place) -> dict[str, Any]:
    """A mapping whose keys are all known; without keys to compare with, every key is."""
    if not isinstance(value, dict):
        wanted = f" with the keys {', '.join(keys)}" if keys else ""
        message = f"{spelled(place)} must be a mapping{wanted}, not {shown(value)}"
        document.reject(YamlFault.VALUE_INVALID, message, place)
    for key in value:
        if keys and key not in keys:
            near = get_close_matches(key, keys, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(keys)}"
            message = f"{spelled(place)} has the unknown key {key[:80]!r}; {hint}"
            document.reject(YamlFault.KEY_UNKNOWN, message, (*place, key))
    return dict(value)


def list_in(document: Document, value: Any, place: Place) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        document.reject(YamlFault.VALUE_INVALID, f"{spelled(place)} must be a list, not {shown(value)}", place)
    return value


def spelled(place: Place) -> str:
    """A place as an error names it."""
    steps = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:80]}" for step in place)
    return steps.removeprefix(".") or "the file"


def shown(value: Any) -> str:
    """A value as an error shows it: a short one by its words, anything else by its type."""
    return f"{value!r:.80}" if isinstance(value, str | int | float | bool | None) else f"a {type(value).__name__}"


def read_yaml(path: Path, open_file: Callable[[Path], BinaryIO] = lambda path: path.open("rb")) -> Document:
    """The document in a file."""
    name = str(path)
    try:
        with open_file(path) as file:
            data = file.read(YAML_BYTES_MAX + 1)
    except OSError as error:
        _reject(name, YamlFault.UNREADABLE, f"cannot be read: {error.strerror}; check its path and its permissions")
    return parse_yaml(text_of(data, name), name)


def text_of(data: bytes, source_name: str) -> str:
    """The text in the bytes of a file; the name stands for it in errors."""
    _refuse_size(len(data), source_name)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        _reject(source_name, YamlFault.UNREADABLE, f"is not UTF-8 text: byte {error.start} is wrong")


def parse_yaml(text: str, source_name: str, *, depth_max: int = YAML_DEPTH_MAX) -> Document:
    """The document in a text; the name stands for it in errors."""
    try:
        _refuse_size(len(text.encode()), source_name)
    except UnicodeEncodeError as error:
        _reject(source_name, YamlFault.UNREADABLE, f"is not Unicode text: character {error.start} is half of a pair")
    try:
        _refuse_bombs(text, source_name, depth_max)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", "it does not parse")
        _reject(source_name, YamlFault.NOT_YAML, f"is not YAML: {problem}", mark.line + 1 if mark else 0)
    lines: dict[Place, int] = {}
    return Document(source_name, _value(root, (), source_name, lines) if root else None, lines)


class _Writer(yaml.SafeDumper):
    """Writes every value out: an alias would be refused when the text is read."""

    def ignore_aliases(self, data: Any) -> bool:  # type: ignore[explicit-override]  # typing.override comes with 3.12
        """Nothing is named, so nothing is referred to."""
        return True


def _list_node(writer: yaml.SafeDumper, items: list[Any]) -> yaml.Node:
    is_short = not any(isinstance(item, dict | list) for item in items)
    return writer.represent_sequence(f"{_TAG}seq", items, flow_style=is_short)


def _text_node(writer: yaml.SafeDumper, text: str) -> yaml.Node:
    # Between single quotes these would be read as line ends.
    style = '"' if _LINE_ENDS.intersection(text) else None
    return writer.represent_scalar(f"{_TAG}str", text, style=style)


_Writer.add_representer(list, _list_node)
_Writer.add_representer(str, _text_node)


def write_yaml(value: Any) -> str:
    """A plain value as people would write it: mappings over lines in their order, short lists on one."""
    text: str = yaml.dump(
        value, Dumper=_Writer, default_flow_style=False, sort_keys=False, allow_unicode=True, width=WIDTH
    )
    return text


def _refuse_size(size_bytes: int, source_name: str) -> None:
    if size_bytes > YAML_BYTES_MAX:
        _reject(source_name, YamlFault.TOO_LARGE, f"has more than file_bytes_max={YAML_BYTES_MAX}")


def _refuse_bombs(text: str, source_name: str, depth_max: int) -> None:
    """Look at the events alone, which takes no room, before anything is built from them."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            _reject(source_name, YamlFault.HAS_ALIAS, "has an anchor or alias; write the value out", line)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > depth_max:
            _reject(source_name, YamlFault.TOO_DEEP, f"is nested deeper than file_depth_max={depth_max}", line)


def _value(node: yaml.Node, place: Place, source_name: str, lines: dict[Place, int]) -> Any:
    line = lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        return [_value(item, (*place, position), source_name, lines) for position, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        return _mapping(node, place, source_name, lines)
    kind = node.tag.removeprefix(_TAG)
    if node.tag not in _SCALARS:
        _reject(source_name, YamlFault.HAS_TAG, f"has a value of type {kind[:40]!r}; put a text in quotes", line)
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (ValueError, yaml.YAMLError):
        _reject(source_name, YamlFault.VALUE_INVALID, f"{node.value[:40]!r} is no {kind}", line)


def _mapping(node: yaml.MappingNode, place: Place, source_name: str, lines: dict[Place, int]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if key_node.tag != f"{_TAG}str":
            found = f"{key_node.value!s:.40}"
            message = f"key {found!r} reads as a {key_node.tag.removeprefix(_TAG)}; put it in quotes"
            _reject(source_name, YamlFault.VALUE_INVALID, message, line)
        key = str(key_node.value)
        if key in values:
            first = lines[(*place, key)]
            message = f"key {key[:80]!r} is already on line {first}; keep one"
            _reject(source_name, YamlFault.KEY_REPEATED, message, line)
        values[key] = _value(value_node, (*place, key), source_name, lines)
        lines[(*place, key)] = line  # A value may begin below its key; people look for the key.
    return values


def _reject(source_name: str, fault: YamlFault, message: str, line: int = 0) -> NoReturn:
    where = f"{source_name}:{line}" if line else source_name
    raise RequestRejected(fault, f"{where}: {message}", {"source": source_name, "line": line})
