"""The parts of a turn, one by one, on the recorded turns of a real run.

Rule 1: facts and decide are measured on turns picked from the whole run, each with the state it met: neither
        changes the state, so the same turn can be decided again and again.
Rule 2: apply is measured by folding the whole run anew, because it changes the state.
Rule 3: the floor of each part does the unavoidable share of it and judges nothing.
"""

import asyncio
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec

from benchmarks.measure import Effort, Figure, Work, compare
from benchmarks.stage import Stage, fold, read_turns
from remit.core.journal.arrivals import Arrival, ModelAnswered, ToolReturned
from remit.core.journal.codec import decode_turn, encode_turn, hash_turn, read_json
from remit.core.journal.turn import Turn
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.run.inference import ModelResult
from remit.kernel.decide import decide
from remit.kernel.state import RunState
from remit.orchestrate.executors.reports import ModelSaid, Report, ToolSaid
from remit.orchestrate.facts.facts import Facts

# Enough to meet the run early and late; few enough that their states stay in the processor's caches, as one would.
PICKED = 20

Met = tuple[RunState, Turn]
Build = tuple[type[msgspec.Struct], tuple[Any, ...]]


def measure_turns(effort: Effort) -> list[Figure]:
    """Microseconds per turn of everything a turn consists of, and of reading it back."""
    stage = Stage()
    with asyncio.Runner() as runner:
        run = runner.get_loop().run_until_complete
        run(stage.play(effort.loops))
        written = list(run(stage.written()))
        return [
            *measure_judgement(picked(written), effort),
            measure_apply(written, effort),
            *measure_bytes(written, effort),
            compare(
                "fold (read, decode, hash, apply)",
                lambda: run(stage.load()),
                "decode alone",
                lambda: [decode_turn(data) for data in written],
                operations=len(written),
                effort=effort,
            ),
        ]


def picked(written: Sequence[bytes]) -> list[Met]:
    """Turns from all over the run, answers of the model and results of the tool alike, each with the state it met."""
    turns = read_turns(written)
    inner = range(1, len(turns) - 1)  # The first turn begins the run, the last one ends it.
    # An odd step meets both kinds, since they take turns.
    step = max(1, len(inner) // PICKED) | 1
    return [(fold(turns[:seq]), turns[seq][0]) for seq in inner[::step]]


def measure_judgement(met: Sequence[Met], effort: Effort) -> list[Figure]:
    """Completing a report with its facts, and deciding on the arrival that comes of it."""
    facts = Facts()
    reported = [(state, report_of(turn.arrival)) for state, turn in met]
    arrivals = [build_of(turn.arrival) for _, turn in met]
    decisions = [[build_of(decision) for decision in turn.decisions] for _, turn in met]

    def complete() -> None:
        for state, report in reported:
            facts.complete(state, report, [])

    def make_arrivals() -> None:
        for kind, values in arrivals:
            kind(*values)

    def judge() -> None:
        for state, turn in met:
            decide(state, turn.arrival, turn.at_ms)

    def make_decisions() -> None:
        for builds in decisions:
            tuple([kind(*values) for kind, values in builds])

    count = len(met)
    return [
        compare("facts", complete, "making the arrival", make_arrivals, operations=count, effort=effort),
        compare("decide", judge, "making the decisions", make_decisions, operations=count, effort=effort),
    ]


def measure_apply(written: Sequence[bytes], effort: Effort) -> Figure:
    """Folding decoded turns, against looking up one empty function for each decision."""
    turns = read_turns(written)
    empty = {type(decision): take_no_notice for turn, _ in turns for decision in turn.decisions}

    def look_up() -> None:
        for turn, _ in turns:
            for decision in turn.decisions:
                empty[type(decision)](turn, decision, turn.arrival)

    floor = "an empty function per decision"
    return compare("apply", lambda: fold(turns), floor, look_up, operations=len(turns), effort=effort)


def measure_bytes(written: Sequence[bytes], effort: Effort) -> list[Figure]:
    """Turns to bytes, bytes to hashes, bytes to turns."""
    turns = [turn for turn, _ in read_turns(written)]
    plain_encode, plain_decode = msgspec.msgpack.Encoder().encode, msgspec.msgpack.Decoder(Turn).decode
    bodies = [data[1:] for data in written]

    def figure(name: str, work: Work, floor: str, floor_work: Work) -> Figure:
        return compare(name, work, floor, floor_work, operations=len(turns), effort=effort)

    return [
        figure(
            "encode",
            lambda: [encode_turn(turn) for turn in turns],
            "msgspec, in no promised order",
            lambda: [plain_encode(turn) for turn in turns],
        ),
        figure(
            "hash",
            lambda: [hash_turn(data) for data in written],
            "SHA-256 of nothing",
            lambda: [sha256(b"").digest() for _ in written],
        ),
        figure(
            "decode",
            lambda: [decode_turn(data) for data in written],
            "msgspec, one format only",
            lambda: [plain_decode(body) for body in bodies],
        ),
    ]


def report_of(arrival: Arrival) -> Report:
    """The report that facts made this arrival of."""
    if isinstance(arrival, ToolReturned):
        return ToolSaid(arrival.command_id, ToolResult("", "", arrival.content))
    assert isinstance(arrival, ModelAnswered)
    assert isinstance(arrival.text, str)
    calls = tuple(ToolCall(call.call_id, call.tool, read_json(str(call.arguments))) for call in arrival.calls)
    return ModelSaid(arrival.command_id, ModelResult(arrival.text, tool_calls=calls, usage=arrival.usage))


def build_of(record: msgspec.Struct) -> Build:
    """What it takes to make an equal record: its kind and the values of its fields."""
    return type(record), tuple(getattr(record, field) for field in record.__struct_fields__)


def take_no_notice(turn: Turn, decision: object, arrival: object) -> None:
    """Do nothing, with as many arguments as a fold has."""
