"""Server-sent events: the lines in which an answer is streamed, cut out of bytes as they come.

Rule 1: bytes may be cut anywhere; an event is what stands between two empty lines.
Rule 2: a line, an event and a stream have an end: what goes on and on is given up, before it fills the memory. All bytes
        count, those around the data too: an event of a million empty lines is not small.
Rule 3: nothing is believed here: what an event holds is judged by whoever reads it.
"""

from collections.abc import Iterator

# The event that says that no other follows.
DONE = b"[DONE]"

# A whole answer in one event is under this; a line without an end is not.
EVENT_BYTES_MAX = 4 * 1024 * 1024
# A million pieces of a token each, with everything that servers put around one.
STREAM_BYTES_MAX = 512 * 1024 * 1024

# What some servers put before the first letter; it means nothing.
_BOM = b"\xef\xbb\xbf"
# Some servers announce a failure under a field of its own.
_FIELDS = (b"data", b"error")


class StreamTooLong(Exception):
    """A line, an event or a stream did not end. The text says which, and its limit."""


class EventReader:
    """Takes bytes as they come and gives events as they are whole; `events` is how many there were."""

    __slots__ = ("_data", "_data_bytes", "_has_begun", "_pending", "_read_bytes", "events")

    def __init__(self) -> None:
        self.events = 0
        self._pending = bytearray()
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._has_begun = False
        self._read_bytes = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The events that these bytes complete."""
        self._read_bytes += len(data)
        if self._read_bytes > STREAM_BYTES_MAX:
            raise StreamTooLong(f"the stream goes on behind stream_bytes_max={STREAM_BYTES_MAX}")
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self._pending:
                line = bytes(self._pending) + line
                self._pending.clear()
            yield from self._take(line)
        self._pending += rest
        if len(self._pending) > EVENT_BYTES_MAX:
            raise StreamTooLong(f"a line goes on behind event_bytes_max={EVENT_BYTES_MAX}")

    def end(self) -> Iterator[bytes]:
        """What is left when no more bytes come: servers leave out the last empty line."""
        if self._pending:
            line = bytes(self._pending)
            self._pending.clear()
            yield from self._take(line)
        yield from self._take(b"")

    def _take(self, line: bytes) -> Iterator[bytes]:
        if not self._has_begun:
            self._has_begun, line = True, line.removeprefix(_BOM)
        line = line.removesuffix(b"\r")
        if not line:
            if self._data:
                event = b"\n".join(self._data)
                self._data, self._data_bytes = [], 0
                self.events += 1
                yield event
            return
        field, _, value = line.partition(b":")
        if field in _FIELDS:
            self._data.append(value.removeprefix(b" "))
            self._data_bytes += len(line)
            if self._data_bytes > EVENT_BYTES_MAX:
                raise StreamTooLong(f"an event goes on behind event_bytes_max={EVENT_BYTES_MAX}")
