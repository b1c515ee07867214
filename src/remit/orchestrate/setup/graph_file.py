"""Graphs from YAML files, in the shape docs/graphs.md describes.

Rule 1: a file and Python build equal graphs, with equal versions; the file is only the friendlier spelling.
Rule 2: reading judges the spelling alone. Whether the graph may run is for `compile_graph` to say.
Rule 3: an unknown key is refused with the nearest one that is known, never skipped.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected
from remit.core.journal.canonical import NotCanonical
from remit.core.regex import regex
from remit.core.run.lifecycle import LifecycleState, LoopState
from remit.core.schema.json_text import NotJson, parse_json
from remit.core.schema.strict_yaml import (
    ValuePath,
    YamlDocument,
    YamlFault,
    block_in,
    read_yaml,
    spelled_place,
    value_in_error,
)
from remit.core.work.graph import (
    REQUIRED_WRITES,
    Ask,
    Edge,
    EndingClass,
    Graph,
    JoinRule,
    Node,
    NodeKind,
    Sees,
    TerminalWrite,
    ToolRules,
    schema_text,
)
from remit.kernel.graph.compiled import compile_graph
from remit.kernel.graph.graph_checks import GraphFault

# Each key of an edge and the field it fills.
_EDGE_FIELDS: Mapping[str, str] = MappingProxyType({"to": "target", "outcome": "outcome", "when": "condition"})

_GRAPH_KEYS = ("name", "start", "nodes", "exits")
# What patterns put into their nodes: graphs within graphs, values handed on, votes. They are built in Python.
_OF_PATTERNS = frozenset({"inner", "model", "feed", "ballot"})
_NODE_KEYS = (*(field for field in Node.__struct_fields__ if field not in {"name", *_OF_PATTERNS}), "edges")
_EDGE_KEYS = tuple(_EDGE_FIELDS)
_RULE_KEYS = ToolRules.__struct_fields__
_ASK_KEYS = Ask.__struct_fields__

# The values of keys that choose from a short list, so that an error can show it.
_CHOICES: Mapping[str, Collection[str]] = MappingProxyType(
    {
        # A node for an agent elsewhere stands in no file: only a guard has one.
        "kind": tuple(kind for kind in NodeKind if kind is not NodeKind.HOST),
        "lifecycle": tuple(LifecycleState),
        "loop_state": tuple(LoopState),
        "join": tuple(JoinRule),
        "ending": tuple(EndingClass),
        "writes": tuple(TerminalWrite),
        "sees": tuple(Sees),
    }
)

# msgspec ends its messages with the place, as in "Expected `int`, got `str` - at `$.lease[0][1]`".
_PLACE_IN_ERROR = regex(r" - at `\$(?P<steps>[^`]*)`$")
_KEY_IN_STEPS = regex(r"^\.(\w+)")

_Typed = TypeVar("_Typed")


def graph_at(said: object) -> Graph:
    """The graph that is handed over, or that stands in this YAML file, unless it may not run."""
    if isinstance(said, Graph):
        return compile_graph(said).graph
    if isinstance(said, str | Path) and str(said):
        return runnable_graph(Path(said))
    raise RequestRejected(
        GraphFault.MALFORMED, f"graph={clipped(said)} is no graph; give a Graph, or the path of a YAML file"
    )


def runnable_graph(path: Path) -> Graph:
    """The graph in a file, unless it may not run."""
    return compile_graph(read_graph(path)).graph


def read_graph(path: Path) -> Graph:
    """The graph in a YAML file."""
    return _graph(read_yaml(path))


def _graph(document: YamlDocument) -> Graph:
    block = block_in(document, document.value, _GRAPH_KEYS, ())
    exits = block_in(document, block.pop("exits", {}), (), ("exits",))
    nodes = block_in(document, block.pop("nodes", {}), (), ("nodes",))
    head = {**block, "nodes": (), "edges": (), "exits": tuple(exits.items())}
    graph = _typed(document, head, Graph, ())
    pairs = [_node_and_edges(document, name, value) for name, value in nodes.items()]
    return msgspec.structs.replace(
        graph,
        nodes=tuple(node for node, _ in pairs),
        edges=tuple(edge for _, edges in pairs for edge in edges),
    )


def _node_and_edges(document: YamlDocument, name: str, value: Any) -> tuple[Node, list[Edge]]:
    place: ValuePath = ("nodes", name)
    block = block_in(document, value, _NODE_KEYS, place)
    ways = block.pop("edges", [])
    if not isinstance(ways, list):
        message = f"{spelled_place((*place, 'edges'))} must be a list of edges or node names"
        document.reject(YamlFault.VALUE_INVALID, message, (*place, "edges"))
    if "lease" in block:
        block["lease"] = tuple(block_in(document, block["lease"], (), (*place, "lease")).items())
    if "rules" in block:
        block["rules"] = block_in(document, block["rules"], _RULE_KEYS, (*place, "rules"))
    if "ask" in block:
        block["ask"] = _ask(document, block["ask"], (*place, "ask"))
    if block.get("kind") == NodeKind.TERMINAL:
        # A terminal that says nothing about it writes what every terminal must.
        block.setdefault("writes", REQUIRED_WRITES)
    node = _typed(document, {**block, "name": name}, Node, place)
    return node, [_edge(document, name, way, (*place, "edges", position)) for position, way in enumerate(ways)]


def _ask(document: YamlDocument, value: Any, place: ValuePath) -> dict[str, Any]:
    """An ask, whose schema may be written as the mapping that it is."""
    block = block_in(document, value, _ASK_KEYS, place)
    if isinstance(block.get("schema"), dict):
        try:
            block["schema"] = schema_text(block["schema"])
        except NotCanonical as error:
            document.reject(
                YamlFault.VALUE_INVALID, f"{spelled_place((*place, 'schema'))}: {error}", (*place, "schema")
            )
    elif isinstance(block.get("schema"), str) and block["schema"]:
        try:
            parse_json(block["schema"])
        except NotJson as error:
            problem = f"{spelled_place((*place, 'schema'))} is no JSON: {error}"
            document.reject(YamlFault.VALUE_INVALID, problem, (*place, "schema"))
    _typed(document, block, Ask, place)  # Here, where what is wrong with it can be told by its key.
    return block


def _edge(document: YamlDocument, source: str, value: Any, place: ValuePath) -> Edge:
    if isinstance(value, str):
        value = {"to": value}  # A bare name is an unconditional edge to it.
    block = block_in(document, value, _EDGE_KEYS, place)
    if "to" not in block:
        document.reject(
            YamlFault.VALUE_INVALID, f"{spelled_place(place)} has no 'to'; name the node it leads to", place
        )
    fields = {_EDGE_FIELDS[key]: field for key, field in block.items()}
    return _typed(document, {**fields, "source": source}, Edge, place)


def _typed(document: YamlDocument, value: dict[str, Any], to: type[_Typed], place: ValuePath) -> _Typed:
    try:
        return msgspec.convert(value, to)
    except msgspec.ValidationError as error:
        text = str(error)
        found = _PLACE_IN_ERROR.search(text)
        key = _KEY_IN_STEPS.match(found["steps"]) if found else None
        if key:
            key_shown = next((k for k, field in _EDGE_FIELDS.items() if field == key[1]), key[1])
            place = (*place, key_shown)
            choices = _CHOICES.get(key_shown, ())
            hint = f"; use one of {', '.join(choices)}" if choices else f"; found {value_in_error(value.get(key[1]))}"
            text = text[: found.start()] + hint if found else text
        document.reject(YamlFault.VALUE_INVALID, f"{spelled_place(place)}: {text}", place)
