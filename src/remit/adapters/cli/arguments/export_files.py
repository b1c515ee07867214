"""Exports of runs that a command line names: what is a file is taken as an export, anything else as the name of a run."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import InputUnusable
from remit.adapters.cli.screen.terminal import plain_values
from remit.core.record import JsonObject, Record
from remit.observe.proof.export import read_lines

EXPORT_FILE_UNUSABLE = "EXPORT_FILE_UNUSABLE"


RunOrFile: TypeAlias = Annotated[
    str, Parameter(name="RUN", help="A run: its id, the beginning of it, or `last`; or a file made by `remit export`.")
]


def is_file(path: Path) -> bool:
    """Whether a file is named; what no file can be called names none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether a folder is named, in the same way."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def lines_in(path: Path) -> Iterator[bytes]:
    """The lines of a file, read as they are asked for; InputUnusable where it cannot be read."""
    try:
        with path.open("rb") as stream:
            yield from read_lines(stream)
    except (OSError, ValueError) as error:
        raise file_unusable(path, error) from error


def file_unusable(path: Path, error: OSError | ValueError) -> InputUnusable:
    """The error of a command that cannot read or write a file."""
    # A ValueError is a path that no file can have, for instance one with a zero byte.
    why = getattr(error, "strerror", None) or error
    return InputUnusable(EXPORT_FILE_UNUSABLE, f"{str(path)!r}: {why}", {"file": str(path)})


def plain_fields(record: Record) -> JsonObject:
    """The fields of a record, as plain values by name."""
    fields = plain_values(record)
    assert isinstance(fields, dict), "a record has fields"
    return fields
