"""Frames on a pipe between a process and the isolated tool it started: eight bytes of length, then the bytes."""

import os

LENGTH_BYTES = 8


def write_frame(pipe: int, data: bytes) -> None:
    """Write a whole frame, waiting while the pipe is full."""
    view = memoryview(len(data).to_bytes(LENGTH_BYTES, "big") + data)
    while view:
        view = view[os.write(pipe, view) :]


def read_frame(pipe: int) -> bytes:
    """Read a whole frame, waiting for it; raises EOFError when the other end closes before it is complete."""
    length = int.from_bytes(_read(pipe, LENGTH_BYTES), "big")
    return _read(pipe, length)


def _read(pipe: int, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        part = os.read(pipe, min(count - len(data), 1 << 20))
        if not part:
            raise EOFError(f"the pipe ended after {len(data)} of {count} bytes")
        data += part
    return bytes(data)
