"""The command that holds texts to a schema or a grammar, without a run.

Rule 1: one JSON result for each text, written as soon as it is known, so that another program can ask line by line.
Rule 2: a stream is read line by line and nothing of it is kept; a line that is too long is passed over and answered.
"""

from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import (
    STDIN,
    InputUnusable,
    grammar_in,
    schema_in,
    stdin_bytes,
    text_from_file,
    wrong_usage,
)
from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import EXIT_FAILED, EXIT_OK, RequestRejected
from remit.core.record import JsonObject

TEXT_UNREADABLE = "TEXT_UNREADABLE"
# A megabyte of text, escaped, with the largest schema and its resources.
LINE_BYTES_MAX = 4 * 1024 * 1024


def constrain(
    file: Annotated[
        Path,
        Parameter(name="FILE", help="A file with the text; without it, or as `-`, stdin.", allow_leading_hyphen=True),
    ] = STDIN,
    /,
    *,
    schema: Annotated[Path | None, Parameter(help="A file with the JSON Schema that the value must fit.")] = None,
    grammar: Annotated[Path | None, Parameter(help="A file with the grammar that the text must follow.")] = None,
    no_repair: Annotated[bool, Parameter(help="Parse and validate only; change nothing.")] = False,
    strict: Annotated[bool, Parameter(help="Give no value that is a part, or does not fit.")] = False,
    jsonl: Annotated[
        bool, Parameter(help="Read one JSON object a line: text, schema, resources, grammar, repair, strict, id.")
    ] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Make what a model said fit a schema: parse, repair, match enums, validate."""
    from remit.orchestrate.drafts import constrainer

    if str(file).startswith("-") and file != STDIN:
        raise wrong_usage(f"{str(file)[:SHOWN_CHARS_MAX]} is no option; see `remit constrain --help`")
    try:
        stack = constrainer(schema_in(schema), grammar_in(grammar), repair=not no_repair, strict=strict)
    except RequestRejected as error:
        raise InputUnusable(error.code, error.message, error.details) from error
    if not jsonl:
        # Files end with the end of a line, which says nothing about the text: a number before it may have been cut.
        text = text_from_file(file, TEXT_UNREADABLE).removesuffix("\n").removesuffix("\r")
        return _told([stack.text(text)], terminal)
    with _opened(file) as stream:
        lines = _lines(stream)
        return _told((stack.too_long(LINE_BYTES_MAX) if line is None else stack.line(line) for line in lines), terminal)


def _told(results: Iterable[JsonObject], terminal: Terminal) -> int:
    """Answer with every result, for as long as there is a reader; 0 when all of them fit."""
    code = EXIT_OK
    for result in results:
        terminal.values(result)
        if not result["ok"]:
            code = EXIT_FAILED
        if not terminal.is_heard:
            break
    return code


def _lines(stream: BinaryIO) -> Iterator[bytes | None]:
    """The lines that say something, without their ends; None for each that is too long."""
    while line := stream.readline(LINE_BYTES_MAX + 1):
        if len(line) > LINE_BYTES_MAX and not line.endswith(b"\n"):
            while (rest := stream.readline(LINE_BYTES_MAX)) and not rest.endswith(b"\n"):
                pass
            yield None
        elif said := line.removeprefix(BOM_UTF8).strip():
            yield said


@contextmanager
def _opened(file: Path) -> Iterator[BinaryIO]:
    try:
        if file == STDIN:
            yield stdin_bytes(TEXT_UNREADABLE)
        else:
            with file.open("rb") as stream:
                yield stream
    except OSError as error:
        message = f"{str(file)!r} cannot be read: {error.strerror or error}; check its path and its permissions"
        raise InputUnusable(TEXT_UNREADABLE, message, {"file": str(file)}) from error
