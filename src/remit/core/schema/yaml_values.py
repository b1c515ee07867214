"""The parser and the writer behind strict YAML, apart from it so that the package is loaded with the first file."""

from typing import Any

import yaml

from remit.core.schema.strict_yaml import ValuePath, YamlFault, reject_file

# As wide as the lines of this house.
WIDTH = 120

# The same rules in C where the package was built with it: fifteen times faster.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_LINE_ENDS = frozenset("\r\n\x85\u2028\u2029")
_SCALARS = frozenset({f"{_TAG}{kind}" for kind in ("str", "int", "float", "bool", "null")})


def value_in(text: str, source_name: str, lines: dict[ValuePath, int], depth_max: int) -> Any:
    """The value of a text; on which line each part of it stands is noted in `lines`."""
    try:
        _refuse_bombs(text, source_name, depth_max)
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", "it does not parse")
        reject_file(source_name, YamlFault.NOT_YAML, f"is not YAML: {problem}", mark.line + 1 if mark else 0)
    return _value(root, (), source_name, lines) if root else None


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


def yaml_text(value: Any) -> str:
    """A plain value as text."""
    text: str = yaml.dump(
        value, Dumper=_Writer, default_flow_style=False, sort_keys=False, allow_unicode=True, width=WIDTH
    )
    return text


def _refuse_bombs(text: str, source_name: str, depth_max: int) -> None:
    """Look at the events alone, which takes no room, before anything is built from them."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            reject_file(source_name, YamlFault.HAS_ALIAS, "has an anchor or alias; write the value out", line)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > depth_max:
            reject_file(source_name, YamlFault.TOO_DEEP, f"is nested deeper than file_depth_max={depth_max}", line)


def _value(node: yaml.Node, place: ValuePath, source_name: str, lines: dict[ValuePath, int]) -> Any:
    line = lines[place] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        return [_value(item, (*place, position), source_name, lines) for position, item in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        return _mapping(node, place, source_name, lines)
    kind = node.tag.removeprefix(_TAG)
    if node.tag not in _SCALARS:
        reject_file(source_name, YamlFault.HAS_TAG, f"has a value of type {kind[:40]!r}; put a text in quotes", line)
    try:
        return yaml.constructor.SafeConstructor().construct_object(node)
    except (ValueError, yaml.YAMLError):
        reject_file(source_name, YamlFault.VALUE_INVALID, f"{node.value[:40]!r} is no {kind}", line)


def _mapping(node: yaml.MappingNode, place: ValuePath, source_name: str, lines: dict[ValuePath, int]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if key_node.tag != f"{_TAG}str":
            found = f"{key_node.value!s:.40}"
            message = f"key {found!r} reads as a {key_node.tag.removeprefix(_TAG)}; put it in quotes"
            reject_file(source_name, YamlFault.VALUE_INVALID, message, line)
        key = str(key_node.value)
        if key in values:
            first = lines[(*place, key)]
            message = f"key {key[:80]!r} is already on line {first}; keep one"
            reject_file(source_name, YamlFault.KEY_REPEATED, message, line)
        values[key] = _value(value_node, (*place, key), source_name, lines)
        lines[(*place, key)] = line  # A value may begin below its key; people look for the key.
    return values
