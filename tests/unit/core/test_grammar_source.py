"""A grammar is its text, or the text of a file that is named."""

from pathlib import Path

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.schema.grammar_source import grammar_text


def test_a_file_is_read_and_a_text_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "yes.gbnf"
    file.write_text('root ::= "yes"')
    assert grammar_text(file) == grammar_text(str(file)) == grammar_text('root ::= "yes"') == 'root ::= "yes"'


@pytest.mark.parametrize("data", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes | None) -> None:
    file = tmp_path / "no.gbnf"
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(RequestRejected, match=r"no\.gbnf") as refused:
        grammar_text(file)
    assert refused.value.code == ErrorCode.CONFIG_GRAMMAR_NOT_FOUND
