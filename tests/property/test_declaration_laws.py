"""Laws of tried declarations: what is made up fits the schema, all of it is named, and what cannot be so is told."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from typing_extensions import TypedDict

from remit import tool
from remit.core.limits.authority import Authority, Stakes
from remit.core.limits.tool_trust import Repeat, Trust
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.record import JsonObject
from remit.core.schema.json_schema import compile_schema
from remit.orchestrate.boundaries.declaration_faults import faults_of
from remit.orchestrate.boundaries.made_up_calls import NothingFits, arguments_of
from remit.orchestrate.boundaries.tool_trials import UNTRIED, kinds_of, trials_of
from remit.orchestrate.facts.gate_facts import declared
from remit.provenance.declarations import declaration_of
from remit.tool.registry import Registry

NAMES = st.sampled_from(["file", "email", "site_url", "ticket_id", "count", "day", "body", "zone", "iban", "mode"])
SCALARS = st.one_of(
    st.just({"type": "string"}),
    st.builds(
        lambda least, more: {"type": "string", "minLength": least, "maxLength": least + more},
        st.integers(0, 40),
        st.integers(1, 9),
    ),
    st.just({"type": "boolean"}),
    st.just({"type": ["string", "null"]}),
    st.builds(
        lambda low, more: {"type": "integer", "minimum": low, "maximum": low + more},
        st.integers(-90, 90_000),
        st.integers(0, 9),
    ),
    st.builds(lambda step: {"type": "number", "multipleOf": step}, st.sampled_from([1, 5, 0.5])),
    st.builds(
        lambda choices: {"enum": choices}, st.lists(st.sampled_from(["slow", "fast", "kept"]), min_size=1, unique=True)
    ),
    st.sampled_from([{"type": "string", "format": name} for name in ("date", "date-time", "email", "uri")]),
    st.just({"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}),
)


def objects(inner: st.SearchStrategy[JsonObject]) -> st.SearchStrategy[JsonObject]:
    return st.dictionaries(NAMES, inner, min_size=1, max_size=3).flatmap(
        lambda properties: st.builds(
            lambda required: {
                "type": "object",
                "properties": properties,
                "required": sorted(required),
                "additionalProperties": False,
            },
            st.sets(st.sampled_from([*properties])),
        )
    )


VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        objects(inner)
        | st.builds(lambda items, least: {"type": "array", "items": items, "minItems": least}, inner, st.integers(0, 3))
    ),
    max_leaves=6,
)


def behind_references(schema: JsonObject) -> JsonObject:
    """The same schema, with each argument behind a reference, as dataclasses and models are."""
    definitions = {f"D{place}": one for place, one in enumerate(schema["properties"].values())}
    places = {name: {"$ref": f"#/$defs/D{place}"} for place, name in enumerate(schema["properties"])}
    return {**schema, "$defs": definitions, "properties": places}


def made(schema: JsonObject, **more: Any) -> ToolDefinition:
    trust = Trust(repeat=Repeat.TARGET, **{key: more.pop(key) for key in ("payload_args", "stakes") if key in more})
    return ToolDefinition("file_claim", "Acts.", schema, effect=Effect.EXTERNAL, trust=trust, **more)


@given(objects(VALUES), st.booleans())
def test_what_is_made_up_fits_the_schema_and_every_argument_is_named(schema: JsonObject, is_apart: bool) -> None:
    schema = behind_references(schema) if is_apart else schema
    definition = made(schema)
    declaration = declaration_of(declared(definition))
    for number in (0, 1):
        assert compile_schema(schema).is_valid(arguments_of(declaration, number))
    named = {kind.partition(":")[0].partition(".")[0].partition("[")[0] for kind in kinds_of(definition)}
    assert named == set(schema["properties"])
    assert kinds_of(definition) == kinds_of(made({**schema, "required": []}))
    assert faults_of(definition) == ()


def test_a_call_that_cannot_be_made_up_is_said_to_be_untried() -> None:
    odd: JsonObject = {
        "type": "object",
        "properties": {"code": {"type": "string", "pattern": "^Q{7}$"}},
        "required": ["code"],
    }
    with pytest.raises(NothingFits, match="code"):
        arguments_of(declaration_of(declared(made(odd))), 0)
    (untried,) = trials_of(made(odd), Authority())
    assert untried.decision == UNTRIED
    assert "examples" in untried.reasons[0]
    known = {**odd, "properties": {"code": {**odd["properties"]["code"], "examples": ["QQQQQQQ"]}}}
    assert len(trials_of(made(known, control_args=(("code", "id:code"),)), Authority())) == 2
    assert kinds_of(made(odd)) == ("code: no kind: it is matched by its characters alone",)


STRINGS, WHOLE, REAL, SWITCH = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
OBJECT: JsonObject = {"type": "object", "properties": {"zip": STRINGS}}
HELD = [
    *(
        (kind, STRINGS)
        for kind in (
            "email",
            "url",
            "path",
            "iban",
            "date",
            "time",
            "number",
            "money",
            "id:file",
            "who:email",
            "who:user",
            "channel",
            "enum",
            "code",
        )
    ),
    *((kind, WHOLE) for kind in ("number", "money", "id:file", "amount", "percent")),
    ("number", REAL),
    ("bool", SWITCH),
    ("email", {"type": "array", "items": STRINGS}),
    ("email", {"type": ["string", "null"], "format": "email"}),
    ("email", {"anyOf": [STRINGS, {"type": "null"}]}),
    ("id:person", {"type": "string", "format": "email"}),
    ("id:zone", {"enum": ["eu-1", "us-2"]}),
    ("enum", {"enum": ["a", "b"]}),
    ("date", {"type": "string", "format": "date-time"}),
    ("email", {"type": "object"}),
    ("id:x", {}),
]
UNHELD = [
    *((kind, WHOLE) for kind in ("email", "url", "path", "iban", "date", "time", "who:email", "bool")),
    *((kind, REAL) for kind in ("email", "date", "path")),
    *((kind, SWITCH) for kind in ("email", "number", "id:file", "date", "money")),
    ("bool", STRINGS),
    ("id:address", OBJECT),
    ("email", {"type": "array", "items": WHOLE}),
    ("email", {"enum": ["urgent", "normal"]}),
    ("number", {"enum": ["low", "high"]}),
    ("iban", {"type": "string", "format": "email"}),
    ("date", {"type": "string", "format": "uri"}),
    ("emial", STRINGS),
]


def one_argument(schema: JsonObject, name: str = "thing") -> JsonObject:
    return {"type": "object", "properties": {name: schema}, "required": [name]}


@pytest.mark.parametrize(("kind", "schema"), HELD)
@pytest.mark.parametrize("is_apart", [False, True])
def test_a_kind_that_an_argument_can_have_is_no_fault(kind: str, schema: JsonObject, is_apart: bool) -> None:
    whole = one_argument(schema)
    assert faults_of(made(behind_references(whole) if is_apart else whole, control_args=(("thing", kind),))) == ()


@pytest.mark.parametrize(("kind", "schema"), UNHELD)
@pytest.mark.parametrize("is_apart", [False, True])
def test_a_kind_that_no_value_of_an_argument_has_is_told(kind: str, schema: JsonObject, is_apart: bool) -> None:
    whole = one_argument(schema)
    (fault,) = faults_of(made(behind_references(whole) if is_apart else whole, control_args=(("thing", kind),)))
    assert fault.startswith(f"control_args gives thing the kind {kind}, and ")


@pytest.mark.parametrize("name", ["iban", "account", "to", "recipient_address", "card", "payee", "wallet"])
def test_where_money_goes_is_no_payload(name: str) -> None:
    tool_ = made(one_argument(STRINGS, name), payload_args=(name,), stakes=Stakes.MONEY)
    (fault,) = faults_of(tool_)
    assert fault.startswith(f"payload_args names {name}, ")
    assert faults_of(made(one_argument(STRINGS, "remark"), payload_args=("remark",), stakes=Stakes.MONEY)) == ()


@pytest.mark.parametrize("schema", [WHOLE, REAL, SWITCH, {"enum": ["a"]}, {"type": "string", "format": "email"}])
def test_what_is_no_free_text_is_no_payload(schema: JsonObject) -> None:
    assert len(faults_of(made(one_argument(schema), payload_args=("thing",)))) == 1


@pytest.mark.parametrize("path", ["thnig", "thing.of", "thing[]", "other"])
def test_a_declaration_that_names_no_argument_is_told(path: str) -> None:
    for key in ("control_args", "payload_args"):
        more: dict[str, Any] = (
            {"control_args": ((path, "id:file"),)} if key == "control_args" else {"payload_args": (path,)}
        )
        (fault,) = faults_of(made(one_argument(STRINGS), **more))
        assert fault.startswith(f"{key} names {path}, which no argument is")
    assert faults_of(made(one_argument({"type": "object"}), control_args=(("thing.of", "id:file"),))) == ()


class Line(BaseModel):
    sku_id: str
    pieces: int


@dataclass
class Parcel:
    email: str
    lines: list[Line] = field(default_factory=list)


class Stay(TypedDict):
    email: str
    nights: int


@tool(
    effect="external",
    control_args={"parcel.email": "email", "parcel.lines[].sku_id": "id:sku", "parcel.lines[].pieces": "number"},
    repeat="target",
)
def ship_parcel(
    parcel: Parcel, mode: Literal["fast", "slow"] = "fast", dry_run: bool = False, when: str | None = None
) -> str:
    """Ship a parcel."""
    return ""


@tool(effect="external", control_args={"stay.email": "email"}, repeat="target")
def book_stay(stay: Stay, size: Annotated[int, "in beds"] = 1) -> str:
    """Book a stay."""
    return ""


def definition_of(function: Any) -> ToolDefinition:
    return Registry([function]).definitions[0]


def test_arguments_of_records_are_opened_and_tried() -> None:
    assert kinds_of(definition_of(ship_parcel)) == (
        "parcel.email: email",
        "parcel.lines[].sku_id: id:sku",
        "parcel.lines[].pieces: number",
        "mode: one of fast, slow",
        "dry_run: no kind: true or false",
        "when: no kind: it is matched by its characters alone",
    )
    for function in (ship_parcel, book_stay):
        assert [one.decision for one in trials_of(definition_of(function), Authority())] == ["allow", "ask", "ask"]
        assert faults_of(definition_of(function)) == ()
