"""Schemas: the JSON Schemas of parameters and results, as a model should read them.

Rule 1: titles are noise to a model, so they go; what constrains stays.
Rule 2: an object that lists its properties takes no others: an argument that is not read would be approved for nothing.
Rule 3: a result schema exists only where the text of a result can be checked against it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from remit.core.record import JsonObject
from remit.core.schema.json_text import parse_json

if TYPE_CHECKING:
    from pydantic import BaseModel, TypeAdapter

# Where a schema holds schemas: by name, in a list, or alone. Everything else (default, enum, const, examples) is data.
_BY_NAME = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
_IN_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_ALONE = frozenset({"items", "additionalProperties", "propertyNames", "not", "contains", "unevaluatedItems"})

_DEFINITIONS = "#/$defs/"
# Keywords that give a text a form.
_FORMS = ("pattern", "minLength", "maxLength")


def parameters_schema(model: "type[BaseModel]") -> JsonObject:
    """The schema of a tool's arguments."""
    from pydantic.json_schema import GenerateJsonSchema

    class Quiet(GenerateJsonSchema):
        # A default that is no JSON is left out of the schema; the function still has it.
        ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}

    schema = model.model_json_schema(by_alias=True, schema_generator=Quiet, mode="validation")
    tidied: JsonObject = _tidied(schema)
    tidied.setdefault("properties", {})
    return tidied


def result_schema(adapter: "TypeAdapter[Any]") -> JsonObject:
    """The schema of a tool's result; empty where a plain text could be taken for something else."""
    schema = _tidied(adapter.json_schema(by_alias=True, mode="serialization"))
    return schema if all(_is_told_apart(choice) for choice in _choices(schema, schema)) else {}


def _tidied(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    tidy = {}
    for keyword, value in schema.items():
        if keyword == "title" and isinstance(value, str):
            continue
        if keyword in _BY_NAME:
            value = {name: _tidied(part) for name, part in value.items()}
        elif keyword in _IN_LISTS:
            value = [_tidied(part) for part in value]
        elif keyword in _ALONE:
            value = _tidied(value)
        tidy[keyword] = value
    if "properties" in tidy:
        tidy.setdefault("additionalProperties", False)
    return tidy


def _choices(schema: Any, root: JsonObject) -> Iterator[JsonObject]:
    """The alternatives that a value has at the top, references followed; each definition is entered once."""
    waiting, seen = [schema], set()
    while waiting:
        choice = waiting.pop()
        reference = choice.get("$ref", "")
        inner = [*choice.get("anyOf", ()), *choice.get("oneOf", ())]
        if reference.startswith(_DEFINITIONS):
            name = reference.removeprefix(_DEFINITIONS)
            if name not in seen:
                seen.add(name)
                waiting.append(root["$defs"][name])
        elif inner:
            waiting += inner
        else:
            yield choice


def _is_told_apart(choice: JsonObject) -> bool:
    """Whether the text of such a result can be checked.

    A text stays as it is, and what looks like JSON is read as JSON first: the text 42 as a number. A text that must have a
    certain form is read both ways; one that may be anything has no schema.
    """
    texts = choice.get("enum", [choice["const"]] if "const" in choice else None)
    if texts is not None:
        return not any(isinstance(text, str) and _reads_as_json(text) for text in texts)
    return bool(choice.get("type", "string") != "string") or any(word in choice for word in _FORMS)


def _reads_as_json(text: str) -> bool:
    try:
        parse_json(text)
    except ValueError:
        return False
    return True
