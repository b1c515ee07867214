"""The command that guards other people's agents: one JSON object a line in, one answer a line out.

Rule 1: every line is answered before the next one is read, so that another program can ask line by line.
Rule 2: what is halted on the store is asked before every call.
Rule 3: nothing is kept but what the open runs need; when the stream ends, so do they.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from remit.adapters.cli.inputs import stdin_bytes
from remit.adapters.cli.options import COMMON, Common
from remit.adapters.cli.terminal import Terminal
from remit.core.failure import EXIT_OK

STREAM_UNREADABLE = "STREAM_UNREADABLE"


def guard(
    *,
    ndjson: Annotated[
        bool,
        Parameter(help="Speak one JSON object a line over stdin and stdout; there is no other way yet.", negative=""),
    ] = True,
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Judge the tool calls of an agent that somebody else runs: allow, refuse or ask."""
    from remit.assemble import halts_of
    from remit.orchestrate.facade import guard as opened

    with halts_of(common.settings()) as halts:
        judge = opened(halts)
        for line, is_whole in _lines(stdin_bytes(STREAM_UNREADABLE), judge.line_bytes_max):
            answer = judge.line(line) if is_whole else judge.too_long(line)
            if answer is not None:
                terminal.values(answer)
            if not terminal.is_heard:
                break
    return EXIT_OK


def _lines(stream: BinaryIO, bytes_max: int) -> Iterator[tuple[bytes, bool]]:
    """The lines that say something, without their ends; of one that is too long, its beginning."""
    while line := stream.readline(bytes_max + 1):
        if len(line) > bytes_max and not line.endswith(b"\n"):
            while (rest := stream.readline(bytes_max)) and not rest.endswith(b"\n"):
                pass
            yield line, False
        elif said := line.removeprefix(BOM_UTF8).strip():
            yield said, True
