"""Events are cut out of bytes, wherever the bytes are cut, and whatever does not end is given up."""

import pytest

from remit.inference.endpoint import serving
from remit.inference.endpoint.serving import EventReader, StreamTooLong

STREAM = b': a comment\r\n\r\ndata: {"a": 1}\n\nevent: x\nid: 7\ndata:two\ndata: lines\n\n\n\nerror: {"b": 2}\n\ndata: [DONE]\n\n'
EVENTS = [b'{"a": 1}', b"two\nlines", b'{"b": 2}', b"[DONE]"]


def events(*pieces: bytes) -> list[bytes]:
    reader = EventReader()
    found = [event for piece in pieces for event in reader.feed(piece)]
    found.extend(reader.end())
    assert reader.events == len(found)
    return found


@pytest.mark.parametrize("cut", range(len(STREAM) + 1))
def test_bytes_may_be_cut_anywhere(cut: int) -> None:
    assert events(STREAM[:cut], STREAM[cut:]) == EVENTS


def test_bytes_may_come_one_by_one() -> None:
    assert events(*(STREAM[position : position + 1] for position in range(len(STREAM)))) == EVENTS


def test_the_last_event_needs_no_empty_line() -> None:
    assert events(b"data: one\n\ndata: two") == [b"one", b"two"]
    assert events(b"data: one\n\ndata: two\n") == [b"one", b"two"]


@pytest.mark.parametrize("data", [b"", b"\n\n\n", b": only\n: comments\n\n", b"<html>\n<p>hello</p>\n</html>\n"])
def test_what_holds_no_event_gives_none(data: bytes) -> None:
    assert events(data) == []


def test_an_event_with_empty_data_is_one() -> None:
    assert events(b"data:\n\n") == [b""]


def test_a_line_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "EVENT_BYTES_MAX", 100)
    assert events(b"data: " + b"x" * 90 + b"\n\n") == [b"x" * 90]
    with pytest.raises(StreamTooLong, match="a line goes on behind event_bytes_max=100"):
        events(*[b"x" * 10] * 11)


def test_an_event_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "EVENT_BYTES_MAX", 100)
    with pytest.raises(StreamTooLong, match="an event goes on behind event_bytes_max=100"):
        events(*[b"data: 123456789\n"] * 11)


@pytest.mark.parametrize("line", [b"data:\n", b"error: \r\n"])
def test_an_event_of_empty_lines_has_an_end_too(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "EVENT_BYTES_MAX", 100)
    with pytest.raises(StreamTooLong, match="an event goes on behind event_bytes_max=100"):
        events(line * 30)


@pytest.mark.parametrize("cut", range(6))
def test_a_mark_of_the_byte_order_is_no_part_of_the_first_event(cut: int) -> None:
    marked = b"\xef\xbb\xbf" + STREAM[STREAM.index(b"data") :]
    assert events(marked[:cut], marked[cut:]) == EVENTS
    assert events(b"data: one\n\n\xef\xbb\xbfdata: two\n\n") == [b"one"]


def test_a_stream_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "STREAM_BYTES_MAX", 100)
    with pytest.raises(StreamTooLong, match="stream_bytes_max=100"):
        events(*[b": still here\n\n"] * 8)
