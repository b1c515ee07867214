"""The messages of the wire stay as they were: every stored one is read, and written again byte for byte."""

import pytest

from remit.wire.payloads import read, written
from scripts.make_golden import GOLDEN
from scripts.wire_docs import EXAMPLES

STORED = {path.stem: path.read_bytes() for path in sorted((GOLDEN / "wire").glob("*.json"))}


def test_there_is_a_stored_message_of_every_kind() -> None:
    assert set(STORED) == set(EXAMPLES)


@pytest.mark.parametrize("name", STORED)
def test_a_stored_message_is_read_and_written_again_byte_for_byte(name: str) -> None:
    message = read(STORED[name], type(EXAMPLES[name]))
    assert message == EXAMPLES[name]
    assert written(message) + b"\n" == STORED[name]
