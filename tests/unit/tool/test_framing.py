"""Frames cross a pipe whole or not at all."""

import os
from threading import Thread

import pytest

from remit.tool.process.framing import read_frame, write_frame


def test_a_frame_larger_than_the_pipe_arrives_whole() -> None:
    read_end, write_end = os.pipe()
    data = os.urandom(300_000)
    writer = Thread(target=write_frame, args=(write_end, data))
    writer.start()
    assert read_frame(read_end) == data
    writer.join()
    os.close(read_end)
    os.close(write_end)


@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\0\0\0\0\5abc"])
def test_a_frame_that_breaks_off_is_noticed(sent: bytes) -> None:
    read_end, write_end = os.pipe()
    os.write(write_end, sent)
    os.close(write_end)
    with pytest.raises(EOFError, match="the pipe ended"):
        read_frame(read_end)
    os.close(read_end)
