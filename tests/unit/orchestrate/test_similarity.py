"""Answers are as alike as the fields, numbers and words that they share."""

from typing import Any

import pytest

from remit.orchestrate.patterns.ballots import compared_candidates
from remit.orchestrate.patterns.similarity import TEXT_CHARS_MAX, average_similarities, similarity

HUGE = 10**400


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("a", "a", 1),
        ("Yes.", "yes", 1),
        ("yes", "no", 0),
        ("!!!", "???", 0),
        ("", "words", 0),
        ("It is -5", "It is 5", 2 * 3 / 10),
        ("the cat sat", "the cat ran", 2 * 3 / 10),
        ("dog bites man", "man bites dog", 2 * 3 / 10),
        ("好的吗", "好的", 2 * 3 / 8),
        ("a a a", "a", 2 * 1 / 6),
        (1, 1.0, 1),
        (50, 100, 0.5),
        (-50, -100, 0.5),
        (-1, 1, 0),
        (0, 3, 0),
        (0, -3, 0),
        (1e308, -1e308, 0),
        pytest.param(HUGE, 2 * HUGE, 0.5, id="huge numbers"),
        pytest.param(HUGE, 1.5, 0, id="a huge number beside a fraction"),
        (True, True, 1),
        (True, 1, 0),
        (0, False, 0),
        (None, None, 1),
        (None, "", 0),
        ("1", 1, 0),
        ({}, {}, 1),
        ({}, [], 0),
        ([], [], 1),
        ([1, 2, 3], [1, 2], 2 / 3),
        ([1, 2], [2, 1], 0.5),
        ({"a": 1, "b": "x"}, {"b": "x", "a": 1}, 1),
        ({"a": 1, "b": "x"}, {"a": 1}, 0.5),
        ({"a": 1, "b": "x"}, {"a": 1, "c": "x"}, 1 / 3),
        ({"a": {"b": [1, 1]}}, {"a": {"b": [1, 2]}}, 0.75),
        # A long list is one field of its object, like every other.
        ({"label": "a", "list": [0] * 99}, {"label": "b", "list": [0] * 99}, 0.5),
    ],
)
def test_two_values_are_as_alike_as_what_they_share(one: Any, other: Any, expected: float) -> None:
    assert similarity(one, other, {}) == pytest.approx(expected)
    assert similarity(other, one, {}) == similarity(one, other, {})


def test_the_order_of_keys_does_not_even_show_in_the_last_digit() -> None:
    one, swapped = {"a": 1, "b": 2, "c": 3}, {"c": 3, "b": 2, "a": 1}
    other = {"a": 10, "b": 10, "c": 10}
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    assert similarity(one, other, {}) == similarity(swapped, other, {})


def test_a_text_is_taken_apart_once_however_often_it_is_compared() -> None:
    bags: dict[str, Any] = {}
    similarity(["a b", "a b"], ["a c", "a d"], bags)
    assert list(bags) == ["a b", "a c", "a d"]


def test_a_long_text_is_judged_by_its_beginning_and_its_end() -> None:
    middle, half = "x " * TEXT_CHARS_MAX, "begin " * (TEXT_CHARS_MAX // 6)
    assert similarity(f"{half}{middle}{half}", f"{half}{middle}y {middle}{half}", {}) == 1
    assert 0.5 < similarity(f"{half}{middle}end one", f"{half}{middle}end two", {}) < 1


def test_long_json_is_compared_by_its_words_whatever_the_order_of_its_keys() -> None:
    items = ",".join(str(number) for number in range(5_000))
    long, swapped = f'{{"a":[{items}],"b":1}}', f'{{"b": 1, "a": [{items}, 1]}}'
    assert len(long) > TEXT_CHARS_MAX
    alike, other, short = average_similarities(compared_candidates([long, swapped, '{"b":1}']), [1, 1, 1])
    assert 0.45 < min(alike, other) <= max(alike, other) < 0.55
    assert short < 0.01


def test_an_average_counts_how_often_each_answer_was_given() -> None:
    answers = compared_candidates(["[1,1]", "[1,2]"])
    assert average_similarities(answers, [1, 1]) == [0.75, 0.75]
    assert average_similarities(answers, [3, 1]) == pytest.approx([2.75 / 3, 0.75])
