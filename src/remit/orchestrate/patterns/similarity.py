"""Similarity: how alike two answers are, from 0 to 1.

Rule 1: what is equal has similarity 1; it is the same in both directions, in every process, in any order of keys.
Rule 2: objects are compared field by field, arrays place by place, and all fields of one object count alike.
Rule 3: numbers are as alike as the smaller is large beside the larger, texts as the words that they share; true, false
        and null are equal or not; values of two kinds have nothing in common.
Rule 4: the work is linear in the size of the two values, and a text is looked at up to a limit.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import fsum
from typing import Any, TypeAlias

from remit.core.regex import regex
from remit.orchestrate.patterns.ballots import ComparedCandidate

# Some five thousand tokens, more than twice what a replica may say unless it is allowed more. A longer text is
# judged by its beginning and its end.
TEXT_CHARS_MAX = 20_000

# Thai, Lao, Chinese and Japanese are written without spaces, so each character is a word.
_UNSPACED = "\u0e00-\u0eff\u2e80-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
_words = regex(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
# What surrounds a word and does not change it. A sign or a dot inside a number is part of the number.
_MARKS = ".,;:!?\"'()[]{}*_`\u2026\u201c\u201d\u2018\u2019\xab\xbb"

# How often each word and each pair of neighbours occurs in a text, and how many there are together.
Bag: TypeAlias = tuple[Mapping[str | tuple[str, str], int], int]
# The bags of texts met before: a text is compared with many others and taken apart once.
Bags: TypeAlias = dict[str, Bag]


def average_similarities(answers: Sequence[ComparedCandidate], times: Sequence[int]) -> list[float]:
    """How like each of several different answers is to all others, when each was given so many times."""
    rows = _similarities(_values(answers))
    return [_average(mine, row, times) for mine, row in enumerate(rows)]


def _values(answers: Sequence[ComparedCandidate]) -> list[Any]:
    """What is compared of each: its JSON, or the words of all where one is too long for that."""
    if max(len(answer.key) for answer in answers) <= TEXT_CHARS_MAX:
        return [answer.value for answer in answers]
    return [answer.key.replace(",", " ") for answer in answers]


def _similarities(values: Sequence[Any]) -> list[list[float]]:
    """A row for each value: how like it every value is."""
    bags: Bags = {}
    rows = [[1.0] * len(values) for _ in values]
    for mine, value in enumerate(values):
        for yours in range(mine):
            rows[mine][yours] = rows[yours][mine] = similarity(value, values[yours], bags)
    return rows


def _average(mine: int, row: Sequence[float], times: Sequence[int]) -> float:
    """The average over all others, those that said the same included."""
    alike = [share * (count - (place == mine)) for place, (share, count) in enumerate(zip(row, times, strict=True))]
    return fsum(alike) / (sum(times) - 1)


def similarity(one: Any, other: Any, bags: Bags) -> float:
    """How alike two JSON values are. A caller that compares many hands the same bags to all comparisons."""
    kind, other_kind = type(one), type(other)
    if kind in _NUMBERS and other_kind in _NUMBERS:
        return _of_numbers(one, other)
    if kind is not other_kind:
        return 0.0
    if kind is str:
        return _of_texts(one, other, bags)
    if kind is dict:
        return _of_objects(one, other, bags)
    if kind is list:
        return _of_arrays(one, other, bags)
    return float(one is other)


# By their exact type: True is no number here.
_NUMBERS = frozenset({int, float})


def _of_objects(one: Mapping[str, Any], other: Mapping[str, Any], bags: Bags) -> float:
    fields = len(one.keys() | other.keys())
    # The sum is exact before it is rounded, so that the order of the keys cannot show in it.
    return fsum(similarity(one[key], other[key], bags) for key in one if key in other) / fields if fields else 1.0


def _of_arrays(one: Sequence[Any], other: Sequence[Any], bags: Bags) -> float:
    places = max(len(one), len(other))
    pairs = zip(one, other, strict=False)  # What only one of them has is like nothing.
    return fsum(similarity(mine, yours, bags) for mine, yours in pairs) / places if places else 1.0


def _of_numbers(one: float, other: float) -> float:
    if one == other:
        return 1.0
    if (one < 0) is not (other < 0):
        return 0.0
    smaller, larger = sorted((abs(one), abs(other)))
    try:
        return smaller / larger
    except OverflowError:  # An integer that no double can hold, beside a double.
        return 0.0


def _of_texts(one: str, other: str, bags: Bags) -> float:
    """Twice what both bags hold, as a share of what they hold together."""
    if one == other:
        return 1.0
    (mine, mine_total), (yours, yours_total) = _bag_of(one, bags), _bag_of(other, bags)
    if len(mine) > len(yours):
        mine, yours = yours, mine
    shared = sum(min(times, yours[feature]) for feature, times in mine.items() if feature in yours)
    return 2 * shared / (mine_total + yours_total) if shared else 0.0


def _bag_of(text: str, bags: Bags) -> Bag:
    bag = bags.get(text)
    if bag is None:
        words = [word.strip(_MARKS) or word for word in _words.findall(_clipped(text).casefold())]
        # Neighbours make "dog bites man" differ from "man bites dog".
        features = Counter([*words, *pairwise(words)])
        bag = bags[text] = (features, features.total())
    return bag


def _clipped(text: str) -> str:
    half = TEXT_CHARS_MAX // 2
    return text if len(text) <= TEXT_CHARS_MAX else f"{text[:half]} {text[-half:]}"
