"""Parsing: JSON as the standard has it."""

import pytest

from remit.core.schema import json_text
from remit.core.schema.json_text import (
    KeyRepeated,
    NotJson,
    TooDeep,
    kept_value,
    parse_json,
    parse_with_oddities,
    place_in,
)


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 1}', "NaN", "[1,]", "", "'a'", '"\\ud800"', "[1e999]", "[1E+400]", "\ud800", "1" * 5000]
)
def test_what_is_no_json_or_has_a_key_twice_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


@pytest.mark.parametrize(("text", "at"), [("[1,]", 3), ('["é" 1]', 5), ("\n\n x", 3), ("[1", 2), ('"\ud800"x', 1)])
def test_the_place_where_a_text_goes_wrong_is_a_character(text: str, at: int) -> None:
    with pytest.raises(NotJson) as raised:
        parse_json(text)
    assert raised.value.at == at
    assert "column" not in str(raised.value)


def test_numbers_are_kept_exactly() -> None:
    assert parse_json("12345678901234567890123") == 12345678901234567890123
    assert parse_json('{"a": [1e200, 1.0, "1e999"]}') == {"a": [1e200, 1.0, "1e999"]}
    assert isinstance(parse_json("1.0"), float)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"to": 1, "to": 2}', "to"),
        ('{"to": 1, "to": 1}', "to"),
        (r'{"to": 1, "\u0074o": 2}', "to"),
        ('{"a": [{"b": {"c": 1, "d": 2, "c": 3}}]}', "c"),
        ('[{"": 1, "": 2}]', ""),
        ('{"é": {}, "\\u00e9": {}}', "é"),
    ],
)
def test_a_key_that_stands_twice_is_named_with_its_place(text: str, key: str) -> None:
    for given in (text, text.encode()):
        with pytest.raises(KeyRepeated) as raised:
            parse_json(given)
        assert repr(key) in str(raised.value)
        assert f"character {raised.value.at}" in str(raised.value)
        # What stands before the place holds the second of the two keys.
        assert 0 < raised.value.at < len(text)
    with pytest.raises(KeyRepeated, match=repr(key)):
        parse_with_oddities(text)


def test_the_same_key_may_stand_in_several_objects() -> None:
    text = '[{"a": {"a": 1}}, {"a": 2, "A": 3}]'
    assert parse_json(text) == parse_with_oddities(text) == kept_value(text) == [{"a": {"a": 1}}, {"a": 2, "A": 3}]


def test_a_long_key_is_shortened_where_it_is_named() -> None:
    key = "k" * 5_000
    with pytest.raises(KeyRepeated) as raised:
        parse_json(f'{{"{key}": 1, "{key}": 2}}')
    assert len(str(raised.value)) < 200


def test_a_text_that_nests_without_end_is_refused_at_the_same_depth_everywhere() -> None:
    for depth in (300, 100_000):
        with pytest.raises(TooDeep):
            parse_json("[" * depth + "]" * depth)
    assert parse_json("[" * 150 + "]" * 150)


def test_oddities_of_what_a_tool_said_are_endured() -> None:
    assert parse_with_oddities('{"a": NaN, "b": "\x01", "c": "\\ud800"}') == {"a": "NaN", "b": "\x01", "c": "\ud800"}


def test_a_place_is_a_line_and_a_column() -> None:
    assert place_in("ab\ncd", 0) == (1, 1)
    assert place_in("ab\ncd", 4) == (2, 2)
    assert place_in("é\nd".encode(), 2) == (2, 1)


def test_what_the_library_says_without_a_place_is_told_from_the_beginning() -> None:
    error = json_text._not_json("something odd", b"{}")
    assert (str(error), error.at) == ("something odd", 0)
