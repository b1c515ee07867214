from collections.abc import Callable
from hashlib import sha256

import msgspec
import pytest

from remit.core.failure import Ending, InvariantBroken
from remit.core.journal.arrivals import CancelRequested
from remit.core.journal.codec import (
    FORMAT,
    NO_HASH,
    arguments_in,
    bare,
    decode_record,
    decode_turn,
    encode_record,
    encode_turn,
    from_json,
    hash_turn,
    read_json,
    read_members,
    turn_to_json,
)
from remit.core.journal.commands import CancelCommand
from remit.core.journal.rulings import RunEnded
from remit.core.journal.storage import Barrier, RunListing
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.record import BlobRef, JsonObject, Record

TURN = Turn(
    3,
    1000,
    b"head",
    KERNEL_VERSION,
    CancelRequested("ada", "enough"),
    (CancelCommand("3.0", "2.1"), RunEnded(Ending.USER_CANCEL)),
)


def test_a_turn_comes_back_from_its_bytes() -> None:
    assert decode_turn(encode_turn(TURN)) == TURN


def test_the_first_byte_names_the_format() -> None:
    assert encode_turn(TURN)[0] == FORMAT


def test_the_link_is_the_hash_of_the_bytes_as_stored() -> None:
    data = encode_turn(TURN)
    assert hash_turn(data) == sha256(data).digest()
    assert NO_HASH == b""


def test_the_kernel_version_is_always_written() -> None:
    assert msgspec.msgpack.decode(encode_turn(TURN)[1:])["kernel"] == KERNEL_VERSION


def test_what_holds_its_default_is_not_written() -> None:
    values = msgspec.msgpack.decode(encode_turn(TURN)[1:])
    assert values["decisions"][1] == {"type": "RunEnded", "ending": "USER_CANCEL"}


def older(values: JsonObject) -> JsonObject:
    """From a made-up format in which a turn called its number `number`."""
    return {"seq": values.pop("number"), **values}


def test_a_turn_of_an_older_format_is_lifted_step_by_step() -> None:
    values = msgspec.to_builtins(TURN, builtin_types=(bytes,))
    values["number"] = values.pop("seq")
    data = bytes([FORMAT - 1]) + msgspec.msgpack.encode(values)
    assert decode_turn(data, lifts={FORMAT - 1: older}) == TURN


@pytest.mark.parametrize("data", [b"", bytes([FORMAT + 1]) + b"\x80", b"\x00\x80"])
def test_a_format_nobody_knows_is_named(data: bytes) -> None:
    with pytest.raises(InvariantBroken, match=r"JOURNAL_FORMAT_UNKNOWN.*Upgrade remit"):
        decode_turn(data)


def test_a_lift_that_leads_past_the_newest_format_is_refused() -> None:
    same: Callable[[JsonObject], JsonObject] = lambda values: values  # noqa: E731
    with pytest.raises(InvariantBroken, match=f"format {FORMAT + 2}"):
        decode_turn(bytes([FORMAT + 1]) + b"\x80", lifts={FORMAT + 1: same})


@pytest.mark.parametrize("rest", [b"", b"\x80", b"\xc1", b"\xa1\xff", encode_turn(TURN)[1:-1]])
def test_bytes_that_are_no_turn_are_unreadable(rest: bytes) -> None:
    with pytest.raises(InvariantBroken, match="JOURNAL_UNREADABLE"):
        decode_turn(bytes([FORMAT]) + rest)


@pytest.mark.parametrize("rest", [b"\xc1", b"\x81\xa1\xff\x01"])
def test_bytes_of_an_older_format_that_are_no_record_are_unreadable(rest: bytes) -> None:
    with pytest.raises(InvariantBroken, match="JOURNAL_UNREADABLE"):
        decode_turn(bytes([FORMAT - 1]) + rest, lifts={FORMAT - 1: older})


def test_a_turn_comes_back_from_its_line_of_json() -> None:
    line = turn_to_json(TURN)
    assert b"\n" not in line
    assert from_json(line, Turn) == TURN


def test_a_text_that_is_no_json_is_a_value_error() -> None:
    assert read_json('{"n": 1}') == {"n": 1}
    with pytest.raises(ValueError, match="key must be a string"):
        read_json("{n: 1}")
    for read in (read_json, read_members):
        with pytest.raises(ValueError, match="'a' stands twice"):
            read(b'{"a": 1, "a": 2}')


@pytest.mark.parametrize(
    "record",
    [
        RunListing(5, session_id="session", lineage=("a", "b")),
        Barrier("SUCCESS", heard=2),
        RunEnded(Ending.USER_CANCEL),
    ],
)
def test_a_record_comes_back_from_its_bytes(record: Record) -> None:
    assert decode_record(encode_record(record), type(record)) == record


def test_one_of_several_kinds_of_records_comes_back_as_what_it_was() -> None:
    for record in (CancelCommand("3.0", "2.1"), RunEnded(Ending.USER_CANCEL)):
        assert decode_record(encode_record(record), CancelCommand | RunEnded) == record


@pytest.mark.parametrize(
    "data",
    [b"", b"no record", encode_record(Barrier()), b"\x81\xadstarted_at_ms\xa1\xff", b"\x91" * 100_000],
)
def test_bytes_that_are_no_record_are_an_unreadable_entry(data: bytes) -> None:
    with pytest.raises(InvariantBroken, match=f"ENTRY_UNREADABLE: entry of {len(data)} bytes does not decode"):
        decode_record(data, RunListing)


def test_arguments_are_an_object_wherever_they_live() -> None:
    assert arguments_in('{"n":1}') == {"n": 1}
    assert arguments_in("") == {}
    assert arguments_in(BlobRef(b"\x01\x02", 2000)) == {"blob": "0102", "size_bytes": 2000}


class Listed:
    """Says itself as a list, like an array of numbers does."""

    def tolist(self) -> list[int]:
        return [1, 2]


def test_a_value_of_others_is_told_as_it_tells_itself() -> None:
    assert bare({"a": Listed()}) == {"a": [1, 2]}


@pytest.mark.parametrize("value", [Listed, object()])
def test_a_value_that_says_nothing_of_itself_has_no_form(value: object) -> None:
    with pytest.raises(TypeError):
        bare(value)
