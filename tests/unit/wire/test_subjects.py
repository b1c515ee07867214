"""Subjects are built and read, and no id can address another message than its own."""

import pytest

from remit.core.failure import RequestRejected
from remit.wire.subjects import (
    ADDRESSED_BY,
    CARRIES,
    FAMILY_OF,
    ID_CHARS_MAX,
    LOOPS_BUCKET,
    SEVEN,
    STREAM,
    TRAJECTORIES_BUCKET,
    WIRE_ID_INVALID,
    WIRE_SUBJECT_INVALID,
    Address,
    Category,
    SubjectFamily,
    id_of_token,
    parse_subject,
    subject_filter,
    subject_of,
    token_of,
)

REACHES = [Category, SubjectFamily]


@pytest.mark.req("3.12")
def test_the_seven_subjects_the_stream_and_both_buckets_have_the_names_of_the_wire() -> None:
    assert [subject_filter(family) for family in SEVEN] == [
        "agent.task.*",
        "agent.request.*",
        "agent.response.*",
        "tool.execute.*",
        "tool.result.*",
        "agent.complete.*",
        "agent.signal.*",
    ]
    assert (STREAM, LOOPS_BUCKET, TRAJECTORIES_BUCKET) == ("AGENT", "AGENT_LOOPS", "AGENT_TRAJECTORIES")


def test_every_category_travels_under_exactly_one_family() -> None:
    assert set(FAMILY_OF) == set(Category)
    assert sum(len(carried) for carried in CARRIES.values()) == len(Category)


@pytest.mark.parametrize("family", SubjectFamily)
def test_a_subject_is_read_as_it_was_built(family: SubjectFamily) -> None:
    ids = tuple(f"{field}.*.>" for field in ADDRESSED_BY[family])
    subject = subject_of(family, *ids)
    assert parse_subject(subject) == Address(family, ids)
    assert subject.count(".") == subject_filter(family).count(".")
    assert not set(subject) & set("*> \t")


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("loop_123-A", "loop_123-A"),
        ("a.b", "a=2Eb"),
        ("*", "=2A"),
        (">", "=3E"),
        ("a b", "a=20b"),
        ("a=b", "a=3Db"),
        ("ä", "=C3=A4"),
        ("read/file:v2", "read=2Ffile=3Av2"),
    ],
)
def test_what_a_broker_or_a_bucket_would_read_otherwise_is_escaped(text: str, token: str) -> None:
    assert token_of(text) == token
    assert id_of_token(token) == text


@pytest.mark.parametrize("text", ["", "x" * (ID_CHARS_MAX + 1), "\ud800", "𝄞" * 200])
def test_a_text_that_cannot_be_an_id_is_refused(text: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        token_of(text)
    assert refused.value.code == WIRE_ID_INVALID


@pytest.mark.parametrize("token", ["", "a b", "=2e", "=2", "a=41", "=FF", "=C3", "x" * 2_000, "a*"])
def test_a_token_has_one_spelling_and_any_other_is_refused(token: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        id_of_token(token)
    assert refused.value.code == WIRE_ID_INVALID


@pytest.mark.parametrize(
    "subject", ["", "agent", "agent.task", "agent.task.a.b", "agent.other.a", "user.message.slack", "AGENT.task.a"]
)
def test_a_subject_of_something_else_is_refused(subject: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        parse_subject(subject)
    assert refused.value.code == WIRE_SUBJECT_INVALID


def test_a_subject_takes_as_many_ids_as_its_family_has() -> None:
    with pytest.raises(RequestRejected, match="takes channel_type and channel_id, and was given 1 ids"):
        subject_of(SubjectFamily.USER_MESSAGE, "slack")
