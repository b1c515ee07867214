"""The trace of a run: what arrived, what was ruled, what was ordered, turn by turn.

Rule 1: a line is for people: names, and the fields that say something, cut to a line of a terminal.
Rule 2: a row is for programs: everything a turn holds.
Rule 3: whatever a model, a tool or a person said is shown as data, never as something a terminal obeys.
"""

from collections.abc import Iterable, Sequence

from remit.core.journal.arrivals import Election, RunStarted
from remit.core.journal.codec import turn_to_json
from remit.core.journal.commands import COMMANDS, Packet
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import NodeEntered
from remit.core.journal.turn import Turn
from remit.core.limits.budget import FIELDS
from remit.core.limits.escalation import Escalation
from remit.core.record import BlobRef, JsonObject, Record, Text
from remit.core.schema.json_text import kept_value
from remit.observe.node_names import percent
from remit.observe.plain import printable_line
from remit.observe.views.outline import outline, steps_in

# Wide enough for a line of a terminal, narrow enough to stay one.
LINE_CHARS_MAX = 130
# What stands before a record: the turn, its time, an arrow.
_MARGIN = 17

# Fields that speak for themselves, fields that hold charges, and fields that only programs read.
SPEAKING = ("tool", "calls", "arguments", "text", "content", "node", "code", "ending", "packet", "answer", "purpose")
CHARGES = ("reserved", "charged", "releases", "over", "lease", "spent")
UNSAID = ("tokens_bound", "evidence", "arguments_hash", "version", "usage", "timeout_ms", "key", "model", "call_id")
_NOTHING = ("", b"", (), 0, None)


def trace_lines(turns: Iterable[Turn], *, last: int = 0, columns: int = 0) -> list[str]:
    """The turns of a run: what arrived, then what was ruled, then (after an arrow) what was ordered.

    With `last`, only the last so many turns; time is counted from the first one all the same. With `columns`, no line is
    longer than that.
    """
    room = min(columns - _MARGIN, LINE_CHARS_MAX) if columns else LINE_CHARS_MAX
    lines: list[str] = []
    every = list(turns)
    began_at_ms = every[0].at_ms if every else 0
    for turn in every[-last:]:
        lines.append(f"{turn.seq:>3} {(turn.at_ms - began_at_ms) / 1000:>8.1f} s  {_shown(turn.arrival, room)}")
        for decision in turn.decisions:
            arrow = "-> " if type(decision) in COMMANDS else "   "
            lines.append(f"{'':>14}{arrow}{_shown(decision, room)}")
    return lines


def trace_rows(turns: Iterable[Turn]) -> list[JsonObject]:
    """The turns as plain values, rulings and commands apart; digests are in base64.

    `node` is where the run stood after the turn, and `settled` holds the steps that had their outcome in it.
    """
    every = list(turns)
    began_at_ms = every[0].at_ms if every else 0
    settled = _settled(every)
    node = ""
    rows: list[JsonObject] = []
    for turn in every:
        values: JsonObject = kept_value(turn_to_json(turn))
        decisions = list(zip(turn.decisions, values.get("decisions", ()), strict=True))
        node = next((d.node for d in reversed(turn.decisions) if isinstance(d, NodeEntered)), node)
        rows.append(
            {
                "seq": turn.seq,
                "at_ms": turn.at_ms,
                "since_start_ms": turn.at_ms - began_at_ms,
                "kernel": turn.kernel,
                "node": node,
                "arrival": values["arrival"],
                "rulings": [value for decision, value in decisions if type(decision) not in COMMANDS],
                "commands": [value for decision, value in decisions if type(decision) in COMMANDS],
                "settled": settled.get(turn.seq, []),
            }
        )
    return rows


def _settled(turns: Sequence[Turn]) -> dict[int, list[JsonObject]]:
    """The steps by the turn that settled each: what it was, what became of it, how long it took, what it was charged."""
    found: dict[int, list[JsonObject]] = {}
    if not turns or not isinstance(turns[0].arrival, RunStarted):
        return found  # A piece of a run: what its steps began as stands elsewhere.
    for step in steps_in(outline(turns)):
        if step.until_seq >= 0:
            values: JsonObject = {
                "kind": step.kind.value,
                "name": step.name,
                "ordered_seq": step.seq,
                "status": step.status,
                "duration_ms": step.duration_ms,
                "charged": {_dimension(index): amount for index, amount in step.charged},
            }
            optional = {
                "code": step.code,
                "rung": step.rung,
                "note": step.note,
                "by": step.by,
                "order": step.order,
                "run_id": step.run_id,
            }
            found.setdefault(step.until_seq, []).append(values | {k: v for k, v in optional.items() if v})
    return found


def turn_parts(turn: Turn) -> tuple[tuple[Record, ...], tuple[Record, ...]]:
    """What was ruled in a turn, and what was ordered."""
    every = turn.decisions
    return tuple([d for d in every if type(d) not in COMMANDS]), tuple([d for d in every if type(d) in COMMANDS])


def shown_line(text: Text, limit: int) -> str:
    """A text on one line, cut to the limit; one that is kept elsewhere by its size and the beginning of its digest."""
    if isinstance(text, BlobRef):
        return f"<{text.size_bytes} bytes {text.digest.hex()[:8]}>"
    return printable_line(text, limit)


def _shown(record: object, room: int) -> str:
    """A record by its name and the fields that say something."""
    if isinstance(record, RunStarted):
        said = [printable_line(record.manifest.boundary.name), _value(record.manifest.request.messages[-1].content)]
    else:
        fields = (
            (name, getattr(record, name)) for name in getattr(record, "__struct_fields__", ()) if name not in UNSAID
        )
        said = [_field(name, value) for name, value in fields if value not in _NOTHING]
    text = " ".join([type(record).__name__, *said])
    return text if len(text) <= room else f"{text[: max(room - 1, 0)]}…"


def _field(name: str, value: object) -> str:
    if name in CHARGES and isinstance(value, tuple):
        return f"{name}={'+'.join(f'{amount} {_dimension(index)}' for index, amount in value)}"
    return _value(value) if name in SPEAKING else f"{name}={_value(value)}"


def _dimension(index: int) -> str:
    """The name of a dimension; a journal of a later version may count one that is unknown here."""
    return FIELDS[index] if 0 <= index < len(FIELDS) else f"dimension {index}"


def _value(value: object) -> str:
    if isinstance(value, str | BlobRef):
        return shown_line(value, LINE_CHARS_MAX)
    if isinstance(value, ProposedCall):
        return f"{printable_line(value.tool, LINE_CHARS_MAX)}{_value(value.arguments)}"
    if isinstance(value, Packet):
        return f"{_value(value.call)} because {printable_line('; '.join(value.reasons), LINE_CHARS_MAX)}"
    if isinstance(value, Escalation):
        return printable_line(f"{value.trigger} to {value.queue} ({value.severity})", LINE_CHARS_MAX)
    if isinstance(value, Election):
        settled = "" if value.is_settled else " so far"
        return f"answer {value.winner + 1} with {value.votes} votes ({percent(value.confidence_ppm)}){settled}"
    if isinstance(value, tuple):
        return ", ".join(_value(item) for item in value)
    return printable_line(str(value), LINE_CHARS_MAX)
