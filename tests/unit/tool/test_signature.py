"""A typed function becomes a schema and a converter, or is refused with the reason."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NoReturn, Optional, Union

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from remit.core.failure import RequestRejected
from remit.core.limits.tools import TOOL_INVALID
from remit.core.record import JsonObject
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.outcomes import Stop
from remit.tool.declare.signature import read_signature
from remit.tool.secrets.secret import Secret


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Size:
    width: int
    height: int = 1


class Address(BaseModel):
    """Where it goes."""

    street: str
    zip: Annotated[str, Field(pattern=r"^\d{5}$")]


class Item(TypedDict):
    name: str
    sizes: list[Size]


class Opaque:
    pass


class Moody:
    """Can be described, but not at first."""

    asked = 0

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        cls.asked += 1
        if cls.asked == 1:
            raise RuntimeError("not today")
        return handler(int)


def parameters(function: Callable[..., Any]) -> JsonObject:
    return read_signature(function, "f").parameters


def prop(function: Callable[..., Any]) -> Any:
    """The schema of the one parameter."""
    (schema,) = parameters(function)["properties"].values()
    return schema


def refusal(function: Any) -> str:
    with pytest.raises(RequestRejected) as caught:
        read_signature(function, "f")
    assert caught.value.code == TOOL_INVALID
    assert caught.value.details == {"tool": "f"}
    return caught.value.message


def test_plain_types_and_defaults_become_properties_in_their_order() -> None:
    def f(b: str, a: int, c: float = 0.5, d: bool = False, e: None = None) -> None: ...

    schema = parameters(f)
    assert list(schema["properties"]) == ["b", "a", "c", "d", "e"]
    assert schema["required"] == ["b", "a"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["c"] == {"type": "number", "default": 0.5}
    assert schema["properties"]["e"] == {"type": "null", "default": None}


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def f() -> None: ...

    assert parameters(f) == {"type": "object", "properties": {}, "additionalProperties": False}


def test_optional_union_literal_and_enum_become_choices() -> None:
    def optional(a: Optional[int]) -> None: ...  # noqa: UP045
    def union(a: Union[int, str]) -> None: ...  # noqa: UP007
    def literal(a: Literal["x", "y"]) -> None: ...
    def enum(a: Colour) -> None: ...

    assert prop(optional) == {"anyOf": [{"type": "integer"}, {"type": "null"}]}
    assert prop(union) == {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    assert prop(literal) == {"enum": ["x", "y"], "type": "string"}
    assert parameters(enum)["$defs"]["Colour"] == {"enum": ["red", "blue"], "type": "string"}


def test_collections_say_what_they_hold() -> None:
    def f(a: list[int], b: tuple[int, str], c: set[str], d: dict[str, float], e: list[Any]) -> None: ...

    found = parameters(f)["properties"]
    assert found["a"] == {"type": "array", "items": {"type": "integer"}}
    assert found["b"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert found["c"]["uniqueItems"] is True
    assert found["d"] == {"type": "object", "additionalProperties": {"type": "number"}}
    assert found["e"] == {"type": "array", "items": {}}


def test_records_of_every_kind_become_closed_objects() -> None:
    def f(a: Size, b: Address, c: Item) -> None: ...

    definitions = parameters(f)["$defs"]
    assert {name: one["additionalProperties"] for name, one in definitions.items()} == {
        "Size": False,
        "Address": False,
        "Item": False,
    }
    assert definitions["Size"]["required"] == ["width"]
    assert definitions["Address"]["properties"]["zip"]["pattern"] == r"^\d{5}$"


def test_descriptions_come_from_the_field_and_else_from_the_docstring() -> None:
    def f(a: Annotated[int, Field(ge=1, description="from the field")], b: int) -> None:
        """Do it.

        Args:
            a: from the docstring
            b: from the docstring
        """

    found = parameters(f)["properties"]
    assert found["a"] == {"description": "from the field", "minimum": 1, "type": "integer"}
    assert found["b"] == {"description": "from the docstring", "type": "integer"}


def test_parameters_may_have_names_that_a_model_could_not() -> None:
    def f(json: int, model_config: int, _hidden: int, schema: int = 1) -> None: ...

    assert list(parameters(f)["properties"]) == ["json", "model_config", "_hidden", "schema"]


def test_an_alias_of_a_field_does_not_rename_a_parameter() -> None:
    def f(a: Annotated[int, Field(alias="b")]) -> None: ...

    assert list(parameters(f)["properties"]) == ["a"]


def test_a_default_that_is_no_json_is_left_out_of_the_schema() -> None:
    opaque = Opaque()

    def f(a: Any = opaque) -> None: ...

    assert prop(f) == {}


def test_the_key_and_the_token_are_hidden_from_the_schema() -> None:
    def f(a: int, idempotency_key: str, stop: CancelToken) -> None: ...

    signature = read_signature(f, "f")
    assert list(signature.parameters["properties"]) == ["a"]
    assert signature.takes_key
    assert signature.token_names == ("stop",)


def test_the_result_schema_comes_from_the_return_annotation_without_stop() -> None:
    def number() -> int: ...  # type: ignore[empty-body]
    def either() -> int | Stop: ...  # type: ignore[empty-body]
    def stopping() -> Stop: ...  # type: ignore[empty-body]
    def never() -> NoReturn: ...  # type: ignore[empty-body]
    def anything() -> Any: ...
    def unsaid(): ...  # type: ignore[no-untyped-def]

    assert read_signature(number, "f").result == {"type": "integer"}
    assert read_signature(either, "f").result == {"type": "integer"}
    assert all(read_signature(f, "f").returns is None for f in (stopping, never, anything, unsaid))


def test_open_and_positional_parameters_are_refused() -> None:
    def star(*args: int) -> None: ...
    def stars(**kwargs: int) -> None: ...
    def slash(a: int, /) -> None: ...

    assert "takes *args" in refusal(star)
    assert "takes **kwargs" in refusal(stars)
    assert "takes a by position only" in refusal(slash)


def test_a_parameter_without_a_type_or_with_an_unknown_one_is_refused() -> None:
    def bare(a) -> None: ...  # type: ignore[no-untyped-def]
    def lost(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert "parameter 'a' has no annotation" in refusal(bare)
    assert "NameError" in refusal(lost)


def test_a_type_that_json_cannot_carry_is_refused_by_the_name_of_its_parameter() -> None:
    def opaque(a: int, b: Opaque) -> None: ...
    def callback(a: int, b: Callable[[], int]) -> None: ...
    def result() -> Opaque: ...  # type: ignore[empty-body]
    def result_callback() -> Callable[[], int]: ...  # type: ignore[empty-body]

    assert "parameter 'b' has type Opaque, which JSON cannot carry" in refusal(opaque)
    assert "parameter 'b' has type collections.abc.Callable[[], int]" in refusal(callback)
    assert "its result has type Opaque, which JSON cannot carry" in refusal(result)
    assert "which has no schema" in refusal(result_callback)


def test_a_field_in_the_place_of_a_default_is_refused() -> None:
    def f(b: int = Field(default=1)) -> None: ...

    assert "parameter 'b' has a Field as its default" in refusal(f)


def test_a_type_that_fails_only_now_and_then_is_refused_without_a_name() -> None:
    def f(a: Moody) -> None: ...

    assert "its parameters make no schema (RuntimeError: not today)" in refusal(f)


def test_a_pattern_that_the_checker_cannot_read_is_refused() -> None:
    def f(a: Annotated[str, Field(json_schema_extra={"pattern": "("})]) -> None: ...

    assert "cannot be checked" in refusal(f)


def test_a_key_that_is_no_text_is_refused() -> None:
    def f(idempotency_key: int) -> None: ...

    assert "a str, and not a int" in refusal(f)


def test_what_is_no_function_or_yields_is_refused() -> None:
    def generator() -> Iterator[int]:
        yield 1

    async def stream() -> AsyncIterator[int]:
        yield 1

    def f(a: int) -> None: ...

    assert "yields" in refusal(generator)
    assert "yields" in refusal(stream)
    assert "a partial is no function" in refusal(functools.partial(f, 1))
    assert "a type is no function" in refusal(Opaque)
    assert "cannot be read" in refusal(iter)


def test_a_parameter_that_a_secret_fills_is_hidden_from_the_model() -> None:
    def f(a: int, token: str, wrapped: Secret, other: str = "x") -> None: ...

    found = read_signature(f, "f", (("token", "TOKEN"), ("wrapped", "OTHER")))
    assert list(found.parameters["properties"]) == ["a", "other"]
    assert found.secret_names == (("token", False), ("wrapped", True))


@pytest.mark.parametrize(
    ("secrets", "said"),
    [
        ((("absent", "TOKEN"),), "secrets name 'absent', which is no parameter that a secret could fill"),
        ((("idempotency_key", "TOKEN"),), "secrets name 'idempotency_key'"),
        ((("number", "TOKEN"),), "parameter 'number' is filled with a secret, a str or a Secret, and not a int"),
        ((("token", "no name"),), "parameter 'token' is filled with a secret without a fit name"),
        ((("token", None),), "parameter 'token' is filled with a secret without a fit name"),
        ((("token", "TOKEN"),), "parameter 'wrapped' is a Secret; say which with @tool(secrets={'wrapped': 'NAME'})"),
    ],
)
def test_a_secret_that_could_not_be_filled_in_is_refused(secrets: Any, said: str) -> None:
    def f(token: str, number: int, wrapped: Secret, idempotency_key: str) -> None: ...

    with pytest.raises(RequestRejected) as refused:
        read_signature(f, "f", secrets)
    assert refused.value.code == TOOL_INVALID
    assert said in refused.value.message
