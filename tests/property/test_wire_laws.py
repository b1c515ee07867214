"""The laws of the wire: what is written is read back, every id has one token, and no bytes get past without a code."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.core.failure import RequestRejected
from remit.core.record import Record
from remit.wire.message_records import LoopEntity, Trajectory
from remit.wire.payloads import KINDS, delivered, posted, read, written
from remit.wire.subjects import (
    ADDRESSED_BY,
    ID_CHARS_MAX,
    Category,
    SubjectFamily,
    id_of_token,
    parse_subject,
    subject_of,
    token_of,
)
from scripts.wire_docs import EXAMPLES
from tests.depth import examples

ids = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
# Whatever a hostile peer may put into a message that was in order.
STRAY = values | st.just("2026-03-13T10:11:12Z") | st.sampled_from(["general", "success", "user", "", "approve"])


def taken(data: bytes, kind: type[Record]) -> Record | None:
    """What is read, or nothing where it was refused; any other error is one of the reader."""
    try:
        return read(data, kind)
    except RequestRejected:
        return None


@given(ids)
@settings(max_examples=examples(400))
def test_every_id_has_one_token_and_every_token_one_id(text: str) -> None:
    token = token_of(text)
    assert id_of_token(token) == text
    assert not set(token) & set(".*> /")


@given(st.sampled_from(SubjectFamily), ids, ids)
@settings(max_examples=examples(200))
def test_every_subject_is_read_as_it_was_built(family: SubjectFamily, first: str, second: str) -> None:
    named = (first, second)[: len(ADDRESSED_BY[family])]
    assert parse_subject(subject_of(family, *named)).ids == named


@given(st.text(st.sampled_from("aZ09_-=.*>ÄäFf "), max_size=ID_CHARS_MAX))
@settings(max_examples=examples(400))
def test_no_two_tokens_spell_one_id(token: str) -> None:
    with suppress(RequestRejected):
        assert token_of(id_of_token(token)) == token


@pytest.mark.parametrize("kind", [*KINDS.values(), LoopEntity, Trajectory], ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=examples(80))
def test_a_message_with_any_field_replaced_is_refused_with_a_code_or_comes_back_the_same(
    kind: type[Record], data: st.DataObject
) -> None:
    example = next(message for message in EXAMPLES.values() if type(message) is kind)
    value: dict[str, Any] = json.loads(written(example))
    for field in data.draw(st.lists(st.sampled_from(kind.__struct_fields__), min_size=1, max_size=3)):
        value[field] = data.draw(STRAY)
    message = taken(json.dumps(value).encode(), kind)
    assert message is None or read(written(message), kind) == message


@given(st.sampled_from(Category), st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode()))
@settings(max_examples=examples(300))
def test_no_bytes_get_past_without_being_a_message(category: Category, data: bytes) -> None:
    post = posted(EXAMPLES[category.value])
    with pytest.raises(RequestRejected) as refused:
        delivered(post.subject, data, post.headers)
    assert refused.value.code.startswith("WIRE_")
