"""One turn of a run, in full: what arrived, what was ruled and what was ordered, with every long text fetched.

Rule 1: a text is shown as lines of its own, folded to the width; with --json it is exact.
Rule 2: what is not kept any more is named by its digest.
"""

from collections.abc import Awaitable, Callable, Iterator

from remit.adapters.cli.screen.colours import Ink, Line
from remit.adapters.cli.screen.response_lines import time_text
from remit.adapters.cli.screen.terminal import escaped, json_line, plain_values
from remit.core.journal.storage import BlobMissing
from remit.core.journal.turn import Turn
from remit.core.record import BlobRef, JsonObject, Record, Text
from remit.observe.linked_turns import references
from remit.observe.views.trace import turn_parts

_NOTHING = ("", b"", (), 0, None)
_INDENT = "    "


async def turn_values(turn: Turn, fetch: Callable[[Text], Awaitable[str]]) -> JsonObject:
    """A turn as plain values, long texts in full."""
    texts = {ref: await _fetched(ref, fetch) for ref in references(turn)}
    rulings, commands = turn_parts(turn)
    return {
        "seq": turn.seq,
        "at_ms": turn.at_ms,
        "kernel": turn.kernel,
        "arrival": _named(turn.arrival, texts),
        "rulings": [_named(ruling, texts) for ruling in rulings],
        "commands": [_named(command, texts) for command in commands],
    }


def turn_lines(values: JsonObject, columns: int) -> Iterator[Line]:
    """A turn as lines for people."""
    yield (
        (f"turn {values['seq']}", Ink.BOLD),
        (f"  {time_text(values['at_ms'])}  kernel {values['kernel']}", Ink.FAINT),
    )
    yield from _part("arrived", values["arrival"], columns)
    for ruling in values["rulings"]:
        yield from _part("ruled", ruling, columns)
    for command in values["commands"]:
        yield from _part("ordered", command, columns)


def _part(word: str, fields: JsonObject, columns: int) -> Iterator[Line]:
    yield ((f"{word:<9}", Ink.FAINT), (str(fields["type"]), Ink.NAME))
    for name, value in fields.items():
        if name == "type" or value in _NOTHING:
            continue
        text = value if isinstance(value, str) else json_line(value)
        folded = list(_folded(text, columns - 2 * len(_INDENT)))
        if len(folded) == 1:
            yield ((f"{_INDENT}{name}  ", Ink.FAINT), (folded[0], Ink.PLAIN))
            continue
        yield ((f"{_INDENT}{name}", Ink.FAINT),)
        for line in folded:
            yield ((f"{_INDENT}{_INDENT}{line}", Ink.PLAIN),)


def folded_lines(text: str, columns: int) -> Iterator[str]:
    """The lines of a text that was made fit to print, none of them longer than this."""
    for line in escaped(text).expandtabs().split("\n"):
        yield from (line[start : start + columns] for start in range(0, max(len(line), 1), columns))


def _folded(text: str, columns: int) -> Iterator[str]:
    return folded_lines(text, max(columns, len(_INDENT)))


def _named(record: object, texts: dict[BlobRef, str]) -> JsonObject:
    values = _plain(record, texts)
    assert isinstance(values, dict), "a record has fields"
    return {"type": type(record).__name__, **values}


def _plain(value: object, texts: dict[BlobRef, str]) -> object:
    if isinstance(value, BlobRef):
        return texts[value]
    if isinstance(value, Record):
        return {field: _plain(getattr(value, field), texts) for field in value.__struct_fields__}
    if isinstance(value, tuple | list):
        return [_plain(item, texts) for item in value]
    return plain_values(value)


async def _fetched(ref: BlobRef, fetch: Callable[[Text], Awaitable[str]]) -> str:
    try:
        return await fetch(ref)
    except BlobMissing:
        return f"<{ref.size_bytes} bytes {ref.digest.hex()} that are not kept any more>"
