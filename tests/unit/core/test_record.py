from enum import StrEnum
from hashlib import sha256

import pytest

from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import (
    TEXT_INLINE_BYTES_MAX,
    BlobRef,
    MadeByHand,
    Record,
    digest_of,
    once_a_record,
    replace,
    text_paths,
    unclassed,
)
from remit.core.run.contract import Mode, SystemRequest
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import Message, Role, user_message


class Point(Record, tag=True):
    """Two numbers."""

    x: int
    y: int = 0


def test_a_record_never_changes() -> None:
    with pytest.raises(AttributeError):
        Point(1).x = 2  # type: ignore[misc]


def test_a_new_fact_is_a_new_record() -> None:
    point = Point(1, 2)
    assert replace(point, y=3) == Point(1, 3)
    assert point == Point(1, 2)


def test_a_record_has_no_room_for_more_than_its_fields() -> None:
    assert not hasattr(Point(1), "__dict__")


def test_a_text_in_blobs_is_named_by_its_digest_and_size() -> None:
    data = b"x" * (TEXT_INLINE_BYTES_MAX + 1)
    assert BlobRef(digest_of(data), len(data)) == BlobRef(sha256(data).digest(), 1025)


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


class Parcel(MadeByHand):
    """What has enums in every place where a record may have them."""

    size: Size = Size.SMALL
    instead: Size | None = None
    others: tuple[Size, ...] = ()
    note: str = ""


def test_texts_stand_for_the_members_that_they_name() -> None:
    parcel = Parcel("large", "small", ("large", Size.SMALL), "large")  # type: ignore[arg-type]  # texts for members
    assert (parcel.size, parcel.instead, parcel.others) == (Size.LARGE, Size.SMALL, (Size.LARGE, Size.SMALL))
    assert all(type(one) is Size for one in (parcel.size, parcel.instead, *parcel.others))
    assert type(parcel.note) is str


def test_a_text_that_names_no_member_is_left_to_who_takes_the_record() -> None:
    assert Parcel("huge").size == "huge"  # type: ignore[arg-type]  # no member


def test_a_request_takes_the_texts_of_its_mode_its_choice_and_its_roles() -> None:
    said = Message("user", "hi")  # type: ignore[arg-type]  # texts for members
    assert said == user_message("hi")
    assert type(said.role) is Role
    assert Message("usr").role == "usr"  # type: ignore[arg-type]  # no member
    asked = SystemRequest((said,), "plan", tool_choice="none")  # type: ignore[arg-type]  # texts for members
    assert (asked.mode, asked.tool_choice) == (Mode.PLAN, ToolChoice(ToolChoiceMode.NONE))
    assert ModelRequest((said,), tool_choice="required").tool_choice.mode is ToolChoiceMode.REQUIRED  # type: ignore[arg-type]  # a text


class Line(Record):
    """A line with a name, in a style."""

    name: str
    begin: Point
    style: Mode
    notes: tuple[str, ...] = ()


def test_texts_stand_where_neither_a_number_nor_an_enum_is_declared() -> None:
    assert [*text_paths(Line)] == ["name", "notes"]
    assert "tool_choice.function_name" in text_paths(ModelRequest)


def test_what_is_said_of_a_record_is_remembered_for_it_and_for_none_that_is_equal() -> None:
    asked: list[BlobRef] = []

    @once_a_record(2)
    def said_of(record: BlobRef) -> int:
        asked.append(record)
        return record.size_bytes

    first, equal, other = BlobRef(b"a", 1), BlobRef(b"a", 1), BlobRef(b"b", 2)
    assert [said_of(first), said_of(first), said_of(equal), said_of(other), said_of(first)] == [1, 1, 1, 2, 1]
    # Only so many are kept: the first was forgotten for the other.
    assert list(map(id, asked)) == list(map(id, [first, equal, other, first]))


def test_members_that_stand_in_a_list_are_put_into_a_tuple() -> None:
    parcel = Parcel(others=[Size.LARGE])  # type: ignore[arg-type]  # a list
    assert parcel.others == (Size.LARGE,)
    kept = (Size.LARGE, Size.SMALL)
    assert Parcel(others=kept).others is kept


@pytest.mark.parametrize(("kind", "plain"), [(str, "a"), (int, 7), (float, 1.5)])
def test_a_plain_value_of_a_class_of_its_own_is_stored_as_the_plain_one(kind: type, plain: object) -> None:
    own = type("Own", (kind,), {})(plain)
    assert (unclassed(own), type(unclassed(own))) == (plain, kind)


def test_what_is_no_plain_value_is_not_stored() -> None:
    with pytest.raises(TypeError, match="a object cannot be stored; give plain texts"):
        unclassed(object())
