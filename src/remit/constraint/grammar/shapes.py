"""Grammars made from schemas: the text of an answer that fits one, or of a call of a tool.

Rule 1: the text is compact JSON. Where whitespace is free, a small model spends its tokens on it.
Rule 2: what a schema leaves open is bounded here (bounds.py) and nowhere else.
Rule 3: what llguidance cannot say of a schema it leaves out; the value is validated against the whole schema afterwards.
Rule 4: a call is one object: {"tool": NAME, "arguments": {...}}. An answer in words never begins with a brace.
"""

import json
from collections.abc import Iterable
from typing import Any

from remit.constraint.grammar.bounds import bounded
from remit.constraint.grammar.notation import MARK, check_grammar
from remit.core.failure import RequestRejected
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject

TOOL, ARGUMENTS = "tool", "arguments"
TOOLS_MISSING = "GRAMMAR_TOOLS_MISSING"

_HEAD = f"{MARK} {{}}\n"
_COMPACT = {"whitespace_flexible": False, "lenient": True}
# Words: anything but a brace first, then anything at all.
_WORDS = r"words: /[^{](.|\n)*/"


def grammar_of_schema(schema: JsonObject) -> str:
    """A grammar whose texts fit the schema, or RequestRejected where llguidance cannot read it at all."""
    grammar = f"{_HEAD}start: {_json(bounded(schema))}\n"
    check_grammar(grammar)
    return grammar


def grammar_of_calls(tools: Iterable[ToolDefinition]) -> str:
    """A grammar whose texts each call one of these tools."""
    return _checked([_call(tool) for tool in tools])


def grammar_of_calls_or_words(tools: Iterable[ToolDefinition]) -> str:
    """The grammar of calls of these tools, with an answer in words as the alternative."""
    return _checked([_call(tool) for tool in tools], _WORDS)


def _checked(calls: list[str], *others: str) -> str:
    if not calls:
        raise RequestRejected(TOOLS_MISSING, "a grammar for calls needs at least one tool to call")
    rules = [f"call{number}: {call}" for number, call in enumerate(calls)] + list(others)
    start = " | ".join(rule.partition(":")[0] for rule in rules)
    grammar = "\n".join([f"{_HEAD}start: {start}", *rules, ""])
    check_grammar(grammar)
    return grammar


def _call(tool: ToolDefinition) -> str:
    """The JSON of one call. Arguments that the schema does not require may be left out."""
    arguments: JsonObject = _moved(bounded(tool.parameters))
    if not arguments.get("properties"):
        arguments = {
            **arguments,
            "properties": {},
            "additionalProperties": arguments.get("additionalProperties", False),
        }
        arguments.pop("maxProperties", None)
    return _json(
        {
            "type": "object",
            "properties": {TOOL: {"const": tool.name}, ARGUMENTS: arguments},
            "required": [TOOL, ARGUMENTS],
            "additionalProperties": False,
        }
    )


def _moved(schema: Any) -> Any:
    """A schema of arguments whose references start from the schema of the call."""
    if isinstance(schema, list):
        return [_moved(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _moved(value) for key, value in schema.items()}
    reference = found.get("$ref")
    if isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
        found["$ref"] = f"#/properties/{ARGUMENTS}{reference[1:]}"
    return found


def _json(schema: JsonObject) -> str:
    # Not the canonical form: properties are generated in the order in which the schema names them.
    text = json.dumps({**schema, "x-guidance": _COMPACT}, separators=(",", ":"), allow_nan=False)
    return f"%json {text}"
