"""Whatever the value, our canonical form is that of the reference implementation."""

import json
import math
from typing import Any

import msgspec
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from remit.core.journal.canonical import INTEGER_MAX, NotCanonical, canonical_hash, canonical_json

# Characters on both sides of the surrogates, where the order of UTF-8 and that of UTF-16 part.
TELLING = st.text(st.sampled_from("a~\x7f\x00\x1fé\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=4)
TEXTS = st.text(max_size=12) | TELLING
NUMBERS = (
    st.integers(-INTEGER_MAX, INTEGER_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-1e22, 1e22)
    | st.floats(-1e-3, 1e-3)
    | st.decimals(-(10**6), 10**6, places=2).map(float)
)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=6), max_leaves=20
)

# Everything the reference refuses too: numbers without a form, halves of surrogate pairs, foreign types.
TROUBLE = st.recursive(
    SCALARS
    | st.floats()
    | st.integers()
    | st.text(st.characters(codec=None), max_size=3)
    | st.sampled_from(["\ud800", b"", {1: 2}, {"\udc00": 1}, 2**53, -(2**53), math.nan]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_the_canonical_form_is_that_of_the_reference(value: Any) -> None:
    assert canonical_json(value) == rfc8785.dumps(value)


@given(TROUBLE)
def test_what_the_reference_refuses_is_refused_here_and_nothing_else(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        with pytest.raises(NotCanonical):
            canonical_json(value)
    else:
        assert canonical_json(value) == expected


@given(NUMBERS)
def test_a_number_reads_back_as_itself(number: float) -> None:
    assert float(canonical_json(number)) == number


@given(VALUES)
def test_the_canonical_form_of_a_canonical_form_is_itself(value: Any) -> None:
    once = canonical_json(value)
    # The reader keeps integers beyond 2**53 - 1 apart from doubles; RFC 8785 reads every number as a double.
    assert canonical_json(json.loads(once, parse_int=_as_double)) == once


@given(st.dictionaries(TEXTS, SCALARS, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_the_order_in_which_keys_arrive_does_not_matter(members: dict[str, Any], random: Any) -> None:
    shuffled = list(members.items())
    random.shuffle(shuffled)
    assert canonical_hash(dict(shuffled)) == canonical_hash(members)


@given(VALUES, VALUES)
def test_two_values_share_a_hash_only_if_they_are_the_same_json(one: Any, other: Any) -> None:
    same_bytes = rfc8785.dumps(one) == rfc8785.dumps(other)
    assert (canonical_hash(one) == canonical_hash(other)) is same_bytes


@given(VALUES)
def test_what_was_read_from_json_can_be_hashed(value: Any) -> None:
    read = msgspec.json.decode(msgspec.json.encode(value))
    assert canonical_json(read) == canonical_json(value)


def _as_double(digits: str) -> float | int:
    number = int(digits)
    return number if abs(number) <= INTEGER_MAX else float(digits)
