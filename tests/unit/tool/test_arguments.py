"""Arguments become the declared types, results become text, and what does not fit is a fault that names it."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from enum import Enum, StrEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field
from typing_extensions import TypedDict, override

from remit.core.failure import ErrorCode
from remit.core.record import JsonObject
from remit.tool.call.arguments import PROBLEMS_MAX, call_function, prepared, result_text
from remit.tool.call.call_metadata import CallMetadata
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.outcomes import ERROR_CHARS_MAX, RESULT_BYTES_MAX, Performed, Stop, ToolFault
from remit.tool.declare.decorator import Tool, tool


class Colour(Enum):
    RED = "red"


class Mood(StrEnum):
    GOOD = "good"


@dataclass
class Size:
    width: int
    colour: Colour = Colour.RED


class Address(BaseModel):
    street: str = Field(alias="road")


class Row(TypedDict):
    day: date


def complain(value: int) -> int:
    raise KeyError("broken validator")


def values(tool: Tool, arguments: JsonObject) -> dict[str, Any]:
    return prepared(tool, arguments, "the-key", CancelToken())


def fault(action: Any, *given: Any) -> str:
    with pytest.raises(ToolFault) as caught:
        action(*given)
    assert caught.value.error_code is ErrorCode.TOOL_EXECUTION_FAILED
    return caught.value.error


def text(value: Any, annotation: Any = Any) -> str:
    return result_text(returning(annotation), value).content


def returning(annotation: Any) -> Tool:
    def f() -> Any: ...

    f.__annotations__["return"] = annotation
    return tool(f)


def test_arguments_become_instances_of_the_declared_types() -> None:
    @tool
    def f(size: Size, address: Address, row: Row, colours: set[Colour], pair: tuple[int, float]) -> None: ...

    found = values(
        f,
        {
            "size": {"width": 3, "colour": "red"},
            "address": {"road": "x"},
            "row": {"day": "2024-02-29"},
            "colours": ["red"],
            "pair": [1, 2],
        },
    )
    assert found == {
        "size": Size(3),
        "address": Address(road="x"),
        "row": {"day": date(2024, 2, 29)},
        "colours": {Colour.RED},
        "pair": (1, 2.0),
    }


def test_a_number_is_taken_for_what_it_is_worth() -> None:
    @tool
    def f(a: int, b: float) -> None: ...

    assert values(f, {"a": 5.0, "b": 5}) == {"a": 5, "b": 5.0}


def test_an_argument_that_was_not_given_is_not_passed() -> None:
    default: list[int] = []

    @tool
    def f(a: Annotated[int, Field(default=4)], b: list[int] = default, c: int = 3) -> None: ...

    assert values(f, {"c": 1}) == {"a": 4, "c": 1}


def test_the_key_and_the_token_are_filled_in_and_cannot_be_given() -> None:
    @tool
    def f(a: int, idempotency_key: str, token: CancelToken) -> None: ...

    token = CancelToken()
    assert prepared(f, {"a": 1}, "the-key", token) == {"a": 1, "idempotency_key": "the-key", "token": token}
    assert "idempotency_key" in fault(values, f, {"a": 1, "idempotency_key": "mine"})
    assert "token" in fault(values, f, {"a": 1, "token": {}})


def test_the_metadata_of_the_request_is_filled_in_as_a_copy_and_cannot_be_given() -> None:
    @tool
    def f(a: int, about: CallMetadata) -> None: ...

    held = {"tickets": [7]}
    given = prepared(f, {"a": 1}, "the-key", None, metadata=held)
    given["about"]["tickets"].append(8)
    assert (given["about"], held) == (CallMetadata(tickets=[7, 8]), {"tickets": [7]})
    assert values(f, {"a": 1})["about"] == {}
    assert "about" not in f.definition.parameters["properties"]
    assert "about" in fault(values, f, {"a": 1, "about": {}})


@pytest.mark.parametrize("arguments", [{"a": "5"}, {"a": True}, {"a": 1, "b": 2}, {}, {"a": None}, {"a": 1.5}])
def test_arguments_that_do_not_fit_are_not_bent(arguments: JsonObject) -> None:
    @tool
    def f(a: int) -> None: ...

    assert fault(values, f, arguments).startswith("the arguments do not fit: ")


def test_problems_name_their_place_and_never_the_value() -> None:
    @tool
    def f(size: Size) -> None: ...

    found = fault(values, f, {"size": {"width": "secret"}})
    assert "size.width: Input should be a valid integer" in found
    assert "secret" not in found


def test_many_problems_are_counted_instead_of_listed() -> None:
    @tool
    def f(a: list[int]) -> None: ...

    found = fault(values, f, {"a": ["x"] * (PROBLEMS_MAX + 5)})
    assert found.endswith("and 5 more")


def test_arguments_that_are_no_json_and_validators_that_break_are_faults() -> None:
    @tool
    def f(a: Annotated[int, AfterValidator(complain)]) -> None: ...

    assert "no JSON" in fault(values, f, {"a": float("nan")})
    assert "could not be converted: KeyError: 'broken validator'" in fault(values, f, {"a": 1})


@pytest.mark.parametrize(
    "error", [ValueError("no"), SystemExit(2), KeyboardInterrupt(), StopIteration(), asyncio.CancelledError()]
)
def test_whatever_a_function_raises_is_an_observation(error: BaseException) -> None:
    @tool
    def f() -> None:
        raise error

    assert fault(call_function, f, {}, "", CancelToken()).startswith(type(error).__name__)


def test_an_asynchronous_function_can_be_called_where_no_loop_runs() -> None:
    @tool
    async def f(a: int) -> int:
        return a + 1

    assert call_function(f, {"a": 1}, "", CancelToken()) == 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("plain 42", "plain 42"),
        ("42", "42"),
        (Mood.GOOD, "good"),
        (None, "null"),
        (3, "3"),
        ([1, "a"], '[1,"a"]'),
        (Size(1), '{"width":1,"colour":"red"}'),
        (Address(road="x"), '{"road":"x"}'),
        ({Colour.RED: date(2024, 1, 2)}, '{"red":"2024-01-02"}'),
        (Colour.RED, '"red"'),
    ],
)
def test_a_text_stays_and_everything_else_becomes_json(value: Any, expected: str) -> None:
    assert text(value) == expected


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (list[Size], [Size(1)], '[{"width":1,"colour":"red"}]'),
        (Row, {"day": date(2024, 1, 2)}, '{"day":"2024-01-02"}'),
        (float, 3, "3.0"),
        (str, "42", "42"),
        (str, "naïve", "naïve"),
        (str, "\ud800", "\ud800"),
        (Literal["a"], "a", "a"),
        (Mood, Mood.GOOD, "good"),
        (int | Stop, 3, "3"),
        (None, None, "null"),
    ],
)
def test_a_result_of_its_declared_type_is_written(annotation: Any, value: Any, expected: str) -> None:
    assert text(value, annotation) == expected


@pytest.mark.parametrize(
    ("annotation", "value", "named"),
    [
        (int, "3", "returned a str that is not the declared int"),
        (str, 3, "returned a int that is not the declared str"),
        (str, "x" * (RESULT_BYTES_MAX + 1), "exceeds result_bytes_max"),
        (Size, {"width": 1}, "returned a dict that is not the declared Size"),
        (list[int], [1, "x"], "1: Input should be a valid integer"),
        (None, 3, "returned a int that is not the declared NoneType"),
        (Annotated[int, AfterValidator(complain)], 3, "could not be checked: KeyError"),
    ],
)
def test_a_result_of_another_type_is_a_fault_that_names_it(annotation: Any, value: Any, named: str) -> None:
    assert named in fault(text, value, annotation)


class Price(TypedDict):
    cents: int


class Basket(TypedDict):
    prices: list[Price]


class Mute:
    @override
    def __repr__(self) -> str:
        raise KeyError("mute")


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Price, {"cents": 5, "note": "zebra"}, '{"cents":5,"note":"zebra"}'),
        (Price, {"cents": 5}, '{"cents":5}'),
        (list[Price], [{"cents": 5, "note": "é"}], '[{"cents":5,"note":"é"}]'),
        (Basket, {"prices": [{"cents": 5, "at": 1}], "of": "ann"}, '{"prices":[{"cents":5,"at":1}],"of":"ann"}'),
        (tuple[Price, int], ({"cents": 5, "note": "x"}, 1), '[{"cents":5,"note":"x"},1]'),
        (Price, {"cents": 5, "note": Mute()}, '{"cents":5}'),
    ],
)
def test_members_that_the_declared_type_does_not_name_are_kept(annotation: Any, value: Any, expected: str) -> None:
    assert text(value, annotation) == expected


def test_the_fault_of_a_result_says_what_was_returned() -> None:
    assert "it was: zebrapayload" in fault(text, "zebrapayload", int)
    assert 'it was: {"cents":"zebra"}' in fault(text, {"cents": "zebra"}, Price)
    assert "it was: <object object" in fault(text, object())
    assert "it was: a Mute that cannot be told" in fault(text, Mute())
    assert "it began: zebra" in fault(text, "zebra" * RESULT_BYTES_MAX, str)
    assert len(fault(text, "zebra" * 10_000, int)) <= ERROR_CHARS_MAX


def test_a_value_that_is_no_json_is_a_fault_that_names_its_type() -> None:
    assert "returned a object, which is no JSON" in fault(text, object())
    assert "returned a bytes, which is no JSON" in fault(text, b"\xff")


def test_a_coroutine_in_the_place_of_a_result_is_a_fault() -> None:
    async def later() -> int:
        return 1

    assert "returned a coroutine" in fault(text, later())


def test_a_stop_asks_to_stop_the_loop_with_a_text() -> None:
    assert result_text(returning(int | Stop), Stop("done")) == Performed("done", stop_loop=True)
    assert "Stop with a int" in fault(text, Stop(3))  # type: ignore[arg-type]


def test_a_result_over_the_limit_is_a_fault_that_names_both() -> None:
    assert len(text("x" * RESULT_BYTES_MAX)) == RESULT_BYTES_MAX
    assert f"result_bytes={RESULT_BYTES_MAX + 1} exceeds" in fault(text, "x" * (RESULT_BYTES_MAX + 1))
    assert "exceeds" in fault(text, "ä" * (RESULT_BYTES_MAX // 2 + 1))
    assert "exceeds" in fault(text, Stop("x" * (RESULT_BYTES_MAX + 1)))


def test_half_a_surrogate_pair_is_left_to_the_writer_of_the_arrival() -> None:
    assert text("\ud800") == "\ud800"


def test_a_generator_is_no_result() -> None:
    def numbers() -> Iterator[int]:
        yield 1

    assert text(list(numbers())) == "[1]"
