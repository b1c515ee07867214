"""Canonical JSON against the published vectors of RFC 8785, and what it refuses."""

import struct
from enum import IntEnum, StrEnum
from hashlib import sha256
from typing import Any

import pytest

from remit.core.journal.canonical import (
    DEPTH_MAX,
    INTEGER_MAX,
    CanonicalFault,
    NotCanonical,
    canonical_hash,
    canonical_json,
)

REACHES = [CanonicalFault]


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        ("", '""'),
        (0, "0"),
        (-INTEGER_MAX, "-9007199254740991"),
        ([], "[]"),
        ({}, "{}"),
        ((1, (2,)), "[1,[2]]"),
        ({"b": 1, "a": [True, None], "": {}}, '{"":{},"a":[true,null],"b":1}'),
        ([1.0, [], {"x": 2.0, "a": 0.5}], '[1,[],{"a":0.5,"x":2}]'),
        ({"z": {"b": 1.0, "a": []}, "y": {}}, '{"y":{},"z":{"a":[],"b":1}}'),
    ],
)
def test_a_value_has_one_form(value: Any, expected: str) -> None:
    assert canonical_json(value) == expected.encode()


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (1.0, "1"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (-12.5, "-12.5"),
        (1e-6, "0.000001"),
        (-1.5e-5, "-0.000015"),
        (1e-7, "1e-7"),
        (-3.25e-9, "-3.25e-9"),
        (1e16, "10000000000000000"),
        (2.0**60, "1152921504606847000"),
        (-1.5e20, "-150000000000000000000"),
        (1e21, "1e+21"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
)
def test_a_float_is_written_as_ecmascript_writes_it(number: float, expected: str) -> None:
    assert canonical_json(number) == expected.encode()


def test_escapes_are_the_short_ones_and_lower_case_hexadecimal() -> None:
    text = '\b\t\n\f\r"\\/\x00\x1f\x7f\u2028é'
    expected = '"\\b\\t\\n\\f\\r\\"\\\\/\\u0000\\u001f\x7f\u2028é"'.encode()
    assert canonical_json(text) == expected
    assert canonical_json([text, 1.0]) == b"[" + expected + b",1]"


def test_keys_are_ordered_by_utf16_code_units_and_not_by_code_points() -> None:
    # U+1F600 begins with the unit D83D, which comes before E000.
    assert canonical_json({"\ue000": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ue000":1}'.encode()


def test_a_character_beyond_the_basic_plane_in_a_value_changes_nothing() -> None:
    assert canonical_json({"b": "\U0001f600", "a": "ü"}) == '{"a":"ü","b":"\U0001f600"}'.encode()


def test_members_of_enums_count_as_their_values() -> None:
    assert canonical_json({Colour.RED: [Colour.RED, Level.HIGH]}) == b'{"red":["red",3]}'


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (float("nan"), CanonicalFault.NUMBER_NOT_FINITE),
        ([float("inf")], CanonicalFault.NUMBER_NOT_FINITE),
        ({"a": float("-inf")}, CanonicalFault.NUMBER_NOT_FINITE),
        (INTEGER_MAX + 1, CanonicalFault.INTEGER_TOO_LARGE),
        ({"a": [-INTEGER_MAX - 1]}, CanonicalFault.INTEGER_TOO_LARGE),
        ([10**10_000], CanonicalFault.INTEGER_TOO_LARGE),
        ("\ud800", CanonicalFault.LONE_SURROGATE),
        ({"a": "x\udfff", "b": 1.0}, CanonicalFault.LONE_SURROGATE),
        ({"\ud800": 1}, CanonicalFault.LONE_SURROGATE),
        ({"\ud800": 1.0}, CanonicalFault.LONE_SURROGATE),
        (b"bytes", CanonicalFault.NOT_JSON),
        ({"a": {1, 2}}, CanonicalFault.NOT_JSON),
        ({1: "a"}, CanonicalFault.NOT_JSON),
        ({"a": {None: 1}}, CanonicalFault.NOT_JSON),
    ],
)
def test_what_has_no_canonical_form_is_refused_with_a_code(value: Any, fault: CanonicalFault) -> None:
    with pytest.raises(NotCanonical) as caught:
        canonical_json(value)
    assert caught.value.code is fault
    assert str(caught.value) == f"{fault}: {caught.value.message}"
    assert isinstance(caught.value, ValueError)


def nested(levels: int, innermost: Any) -> Any:
    value = innermost
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


@pytest.mark.parametrize("innermost", ["x", 1.0])
def test_a_value_may_nest_so_deep_and_no_deeper(innermost: Any) -> None:
    assert canonical_json(nested(DEPTH_MAX, innermost)).count(b"{") == DEPTH_MAX // 2
    with pytest.raises(NotCanonical) as caught:
        canonical_json(nested(DEPTH_MAX + 1, innermost))
    assert caught.value.code is CanonicalFault.TOO_DEEP
    assert f"depth_max={DEPTH_MAX}" in caught.value.message


def test_a_value_that_contains_itself_is_too_deep() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotCanonical) as caught:
        canonical_json(endless)
    assert caught.value.code is CanonicalFault.TOO_DEEP


def test_the_hash_is_that_of_the_canonical_bytes() -> None:
    assert canonical_hash({"b": 1, "a": 2.0}) == sha256(b'{"a":2,"b":1}').digest()


def test_equal_documents_have_equal_hashes_whatever_their_order() -> None:
    assert canonical_hash({"a": 1, "b": [2.5]}) == canonical_hash({"b": [2.5], "a": 1.0})


def test_every_bit_pattern_near_the_bounds_of_the_fast_path_reads_back() -> None:
    for bound in (1e-4, 1e15, 1e16, 1e21, 1e-6, 1e-7):
        bits = struct.unpack(">q", struct.pack(">d", bound))[0]
        for step in range(-50, 51):
            number = struct.unpack(">d", struct.pack(">q", bits + step))[0]
            assert float(canonical_json(number)) == number


def test_the_exact_path_writes_the_three_words_of_json() -> None:
    assert canonical_json([20.0, None, True, False]) == b"[20,null,true,false]"
