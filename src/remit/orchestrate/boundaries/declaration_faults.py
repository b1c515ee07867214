"""Faults of declarations: what a tool says of its arguments and cannot be so.

Rule 1: a fault is certain: a kind that no value of its schema has, a name that no argument has, what decides whom an effect
        reaches as text that decides nothing. What is only not declared is no fault.
Rule 2: a message says which argument, what is wrong with it, and what to write.
"""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from remit.core.limits.authority import Stakes
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.record import JsonObject
from remit.orchestrate.boundaries.made_up_calls import DEPTH_MAX, guessed_kind
from remit.orchestrate.facts.gate_facts import declared
from remit.provenance.declarations import Declaration, declaration_of
from remit.provenance.kinds import CODE, LABEL, MOMENTS, NUMBERS, SHAPES, TEXT, base_of, looks_like
from remit.provenance.values.leaves import told_kind
from remit.provenance.words.vocabulary import COURTESIES, FUNCTION_WORDS, name_words

_SCALARS = ("string", "integer", "number", "boolean")
# Kinds that no number is of.
_WRITTEN = frozenset({*SHAPES, "path", "who"})
_KNOWN = (*sorted({*NUMBERS, *MOMENTS, *_WRITTEN, "id", "bool", "boolean", "enum", CODE}), LABEL, TEXT)
# Kinds of which a text of the right form is of no other.
_STRICT = frozenset({*SHAPES, *MOMENTS})
# What names an account or an address, to which money may go.
_DESTINATIONS = frozenset(
    [
        "iban",
        "bic",
        "swift",
        "account",
        "wallet",
        "address",
        "card",
        "recipient",
        "recipients",
        "payee",
        "beneficiary",
        "email",
        "url",
        "to",
    ]
)
_ACCOUNTS = frozenset({"iban", "account", "wallet"})
_SUMS = frozenset({"amount", "money", "price"})
# What a tool that begins so changes, whatever it falls on.
_CHANGING_SAID = """
    delete purge erase wipe destroy send publish pay transfer refund reimburse buy purchase cancel grant revoke expel ban evict
    deploy install uninstall terminate dismiss fire hire withdraw unsubscribe
"""
_CHANGING = frozenset(_CHANGING_SAID.split())
_NAMES_SHOWN_MAX = 12


def faults_of(tool: ToolDefinition) -> tuple[str, ...]:
    """What is wrong with the declarations of a tool, each in a sentence; nothing where they can be so."""
    declaration = declaration_of(declared(tool))
    properties = declaration.parameters.get("properties")
    found = [*_unfit_fields(tool), *_idle_asks(declaration)]
    verb = (name_words(tool.name) or ("",))[0]
    if declaration.effect is Effect.NONE and verb in _CHANGING:
        found.append(
            f"effect says none, so no call is judged, and its name says {verb}; write what it does: external or write"
        )
    if not isinstance(properties, dict):
        return tuple(found)
    places = dict(_places(properties))
    found += [*_nameless(declaration, places), *_understated(declaration, places)]
    for path, kind in declaration.control_args:
        if kind and path in places and (why := _unheld(kind, path, places)):
            found.append(f"control_args gives {path} the kind {kind}, and {why}")
    if declaration.effect.is_mutating:
        found += [f"payload_args names {path}, {why}" for path, why in _no_payload(declaration, places)]
    return tuple(found)


def _idle_asks(declaration: Declaration) -> Iterator[str]:
    """Words that order nothing, since they stand in nearly every request."""
    common = [word for word in declaration.asks if word.lower() in FUNCTION_WORDS | COURTESIES]
    if common:
        yield f"asks says {', '.join(common)}, which orders nothing, as in nearly every request; write the verb that it is ordered by"


def _understated(declaration: Declaration, places: dict[str, JsonObject]) -> Iterator[str]:
    """Declarations of an effect or of its stakes that its own arguments contradict."""
    kinds = dict(declaration.control_args)
    reached = [path for path in places if not _DESTINATIONS.isdisjoint(name_words(path.rpartition(".")[2]))]
    sums = [
        path
        for path in places
        if base_of(kinds.get(path, "")) in _SUMS or not _SUMS.isdisjoint(name_words(path.rpartition(".")[2]))
    ]
    if declaration.effect is Effect.NONE and reached:
        yield f"effect says none, so no call is judged, and {reached[0]} says whom it reaches; write what it does: external or write"
    if declaration.effect.is_mutating and declaration.stakes is Stakes.NONE and sums and reached:
        yield f"stakes says none, and {sums[0]} goes to {reached[0]}; write stakes='money', or leave it out"


def _unfit_fields(tool: ToolDefinition) -> Iterator[str]:
    """Fields of the result that the schema of the result has no place for."""
    for path, _ in tool.trust.fields:
        schema: Any = tool.result
        for step in path.removeprefix("$.").removeprefix("$").replace("[]", ".[]").strip(".").split("."):
            if not isinstance(schema, dict) or "$ref" in schema or not _types(schema) or len(_types(schema)) > 1:
                break
            (type_name,) = _types(schema)
            if (step == "[]") is not (type_name == "array") or type_name in _SCALARS:
                yield f"result names {path}, and there is {type_name} where {step} should be"
                break
            held = schema.get("properties")
            if step != "[]" and isinstance(held, dict) and step not in held:
                if schema.get("additionalProperties") in (None, False) and held:
                    yield f"result names {path}, and what is returned has {', '.join([*held][:_NAMES_SHOWN_MAX])} there"
                break
            schema = schema.get("items") if step == "[]" else (held or {}).get(step)


def _places(properties: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Every place in the arguments that the schema names, with what it says there."""
    for name, schema in properties.items():
        yield from _below(name, schema, 0)


def _below(path: str, schema: Any, depth: int) -> Iterator[tuple[str, JsonObject]]:
    schema = schema if isinstance(schema, dict) else {}
    yield path, schema
    if depth == DEPTH_MAX:
        return
    ways = [schema, *(way for key in ("anyOf", "oneOf") for way in schema.get(key) or () if isinstance(way, dict))]
    for way in ways:
        for key, inner in (way.get("properties") or {}).items():
            yield from _below(f"{path}.{key}", inner, depth + 1)
        if isinstance(items := way.get("items"), dict):
            yield from _below(f"{path}[]", items, depth + 1)


def _nameless(declaration: Declaration, places: dict[str, JsonObject]) -> Iterator[str]:
    """Declarations that name no argument, and those that say two things of one."""
    kinds = dict(declaration.control_args)
    said = (
        ("control_args", kinds),
        ("payload_args", declaration.payload_args),
        ("locator_args", declaration.locator_args),
    )
    for key, paths in said:
        for path in paths:
            if path not in places and not _is_open(path, places):
                near = get_close_matches(path, places, n=1)
                known = ", ".join([*places][:_NAMES_SHOWN_MAX]) or "none"
                hint = f"did you mean {near[0]}?" if near else f"its arguments are {known}"
                yield f"{key} names {path}, which no argument is; {hint}"
    for path in declaration.payload_args:
        if path in kinds:
            yield f"{path} is named by control_args and by payload_args; it is a control value, so leave it out of the second"


def _is_open(path: str, places: dict[str, JsonObject]) -> bool:
    """Whether a place stands within one whose members the schema does not name."""
    above = [one for one in places if path.startswith((f"{one}.", f"{one}["))]
    if not above:
        return False
    schema = places[max(above, key=len)]
    if "items" in schema or "properties" in schema:
        return False
    types = _types(schema)
    return not types or "object" in types or "array" in types


def _unheld(kind: str, path: str, places: dict[str, JsonObject]) -> str:
    """Why a value at this place cannot be of a kind; empty where it can."""
    schema, base = places[path], base_of(kind)
    if base not in _KNOWN and (near := get_close_matches(base, _KNOWN, n=1, cutoff=0.8)):
        return f"no value is of it; did you mean {near[0]}?"
    types = _types(schema)
    if types == {"array"} and f"{path}[]" in places:
        return _unheld(kind, f"{path}[]", places)
    if types == {"object"}:
        members = [name for name in places if name.startswith(f"{path}.") and not _has_below(name, places)]
        shown = ", ".join(members[:_NAMES_SHOWN_MAX])
        return f"it is an object; give kinds to its members: {shown}" if members else ""
    values = _choices(schema)
    if values and base not in ("enum", LABEL, TEXT):
        return "" if any(looks_like(kind, one) for one in values) else f"none of its values {values[:4]} is one"
    told = told_kind("", schema)
    if {base_of(told), base} <= _STRICT and told != base and not {told, base} <= MOMENTS:
        return f"its format says {told}"
    return (
        "" if not types or any(_may_be(base, one) for one in types) else f"it is of type {' or '.join(sorted(types))}"
    )


def _has_below(path: str, places: dict[str, JsonObject]) -> bool:
    return any(other.startswith((f"{path}.", f"{path}[")) for other in places)


def _may_be(base: str, type_name: str) -> bool:
    """Whether some value of a JSON type may be of a kind."""
    match type_name:
        case "boolean":
            return base in ("bool", "boolean", "enum")
        case "integer" | "number":
            return base not in _WRITTEN | MOMENTS | {"bool", "boolean", LABEL, TEXT}
        case "string":
            return base not in ("bool", "boolean")
        case _:
            return True


def _types(schema: JsonObject) -> set[str]:
    """The types of values that a schema takes, beside null; empty for any."""
    said = schema.get("type")
    if isinstance(said, str):
        return {said}
    if isinstance(said, (list, tuple)):
        return {one for one in said if isinstance(one, str)} - {"null"}
    ways = [way for key in ("anyOf", "oneOf") for way in schema.get(key) or ()]
    found = [_types(way) if isinstance(way, dict) else set() for way in ways]
    return set().union(*found) - {"null"} if found and all(found) else set()


def _choices(schema: JsonObject) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    choices = schema.get("enum")
    return [one for one in choices if one is not None] if isinstance(choices, (list, tuple)) else []


def _no_payload(declaration: Declaration, places: dict[str, JsonObject]) -> Iterator[tuple[str, str]]:
    """What is declared as payload and decides more than words do."""
    named = _DESTINATIONS if declaration.stakes is Stakes.MONEY else _ACCOUNTS
    kinds = dict(declaration.control_args)
    for path in [one for one in declaration.payload_args if one in places and one not in kinds]:
        schema, words = places[path], name_words(path.rpartition(".")[2].removesuffix("[]"))
        types = _types(schema)
        if (types and types <= {"integer", "number", "boolean"}) or _choices(schema):
            yield path, "which is no text but a choice or a number; leave it out"
        elif told := told_kind("", schema):
            yield path, f"whose format says {told}; write control_args={{{path!r}: {told!r}}} in its place"
        elif not kinds and (kind := base_of(guessed_kind(words[-1] if words else "", schema))) in ("path", "id"):
            yield path, f"and nothing else steers it; write control_args={{{path!r}: {kind!r}}} in its place"
        elif not named.isdisjoint(words):
            yield (
                path,
                "whose name says an account or an address: it decides whom the effect reaches; give it a kind in control_args",
            )
