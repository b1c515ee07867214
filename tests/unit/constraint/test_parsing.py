"""Parsing: JSON as the standard has it."""

import pytest

from remit.constraint.parsing import NotJson, parse_json


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 1}', "NaN", "[1,]", "", "'a'", '"\\ud800"', "[1e999]", "\ud800", "1" * 5000]
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
