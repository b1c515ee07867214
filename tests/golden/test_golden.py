"""The past stays readable: every stored journal folds to what was recorded of it, and nothing in it can be changed."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

import pytest

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.journal import MemoryJournal
from remit.core.failure import InvariantBroken
from remit.core.journal.arrivals import Arrival
from remit.core.journal.codec import NO_HASH, decode_turn, encode_turn, hash_turn
from remit.core.journal.commands import Command
from remit.core.journal.rulings import Ruling
from remit.core.journal.turn import KERNEL_VERSION
from remit.core.record import JsonObject
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState, pinned
from remit.orchestrate.loop.runner import Runner
from remit.testing.runs import SimulatedRun, fold_journal
from scripts.golden_stage import Stage
from scripts.make_golden import GOLDEN, files, read_journal, summary_of, write

JOURNALS = sorted(GOLDEN.glob("v*/*.journal"))
# Every so many bytes one is changed: a prime, so that it meets every kind of place.
TAMPER_STEP_BYTES = 23


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def summary_beside(path: Path) -> JsonObject:
    summary: JsonObject = json.loads(path.with_suffix(".json").read_text(encoding="ascii"))
    return summary


def head_of(journal: Sequence[bytes]) -> bytes:
    """The hash at the end of a chain that holds; InvariantBroken when a turn is unreadable or out of its place."""
    head = NO_HASH
    for seq, data in enumerate(journal):
        turn = decode_turn(data)
        if turn.seq != seq or turn.previous != head:
            raise InvariantBroken("CHAIN_BROKEN", f"turn {seq} does not follow the one before it")
        head = hash_turn(data)
    return head


async def loaded(journal: Sequence[bytes]) -> RunState:
    """The run as a runner that finds its journal takes it up."""
    stage, kept = Stage(), MemoryJournal()
    for seq, data in enumerate(journal):
        await kept.append("run", data, after=seq - 1)
    runner = Runner(journal=kept, blobs=MemoryBlobs(), clock=stage, dispatch=stage)
    return (await runner.load("run")).state


every_journal = pytest.mark.parametrize("path", JOURNALS, ids=name_of)


@every_journal
def test_a_stored_journal_folds_to_its_recorded_summary(path: Path) -> None:
    assert summary_of(read_journal(path)) == summary_beside(path)


@every_journal
def test_the_chain_of_a_stored_journal_holds(path: Path) -> None:
    assert head_of(read_journal(path)).hex() == summary_beside(path)["head"]


@every_journal
def test_a_runner_takes_up_a_stored_journal(path: Path) -> None:
    journal = read_journal(path)
    assert asyncio.run(loaded(journal)) == fold_journal(journal)


@every_journal
def test_deciding_a_stored_journal_again_gives_the_same_bytes(path: Path) -> None:
    state, journal = RunState(), read_journal(path)
    # Other rules than those of today decide otherwise, and the copied turns of a fork were decided for another run.
    is_of_today = summary_beside(path)["kernel"] == KERNEL_VERSION
    origin = pinned(fold_journal(journal)).forked_from
    for data in journal:
        turn = decode_turn(data)
        if is_of_today and (origin is None or turn.seq > origin.seq):
            assert encode_turn(take_turn(state, turn.arrival, turn.at_ms)) == data, f"turn {turn.seq}"
        apply(state, turn, hash_turn(data))


@every_journal
def test_a_tampered_byte_is_noticed_by_the_chain_or_the_codec(path: Path) -> None:
    journal, head = read_journal(path), summary_beside(path)["head"]
    for seq, data in enumerate(journal):
        for place in range(0, len(data), TAMPER_STEP_BYTES):
            tampered = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            try:
                found = head_of([*journal[:seq], tampered, *journal[seq + 1 :]])
            except InvariantBroken:
                continue
            assert found.hex() != head, f"byte {place} of turn {seq}"


@every_journal
def test_a_turn_dropped_from_a_stored_journal_is_noticed(path: Path) -> None:
    journal, head = read_journal(path), summary_beside(path)["head"]
    assert head_of(journal[:-1]).hex() != head
    for seq in range(len(journal) - 1):
        with pytest.raises(InvariantBroken):
            head_of([*journal[:seq], *journal[seq + 1 :]])


def test_every_journal_has_a_summary_and_every_summary_a_journal() -> None:
    summaries = sorted(path.with_suffix(".journal") for path in GOLDEN.glob("v*/*.json"))
    assert summaries == JOURNALS
    assert JOURNALS


def test_every_kind_of_record_stands_in_some_journal() -> None:
    runs = [SimulatedRun(path.stem, read_journal(path)) for path in JOURNALS]
    kinds = [kind for family in (Arrival, Ruling, Command) for kind in get_args(family)]
    assert [kind.__name__ for kind in kinds if not any(run.all(kind) for run in runs)] == []


def test_making_the_journals_twice_gives_the_same_bytes() -> None:
    assert files() == files()


def test_only_what_is_missing_is_written_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert write(tmp_path, force=False) == []
    stored = {name: (tmp_path / name).read_text(encoding="ascii") for name in files()}
    assert stored == files()
    old, missing = sorted(stored)[:2]
    (tmp_path / old).write_text("another past\n", encoding="ascii")
    (tmp_path / missing).unlink()
    capsys.readouterr()
    assert write(tmp_path, force=False) == [old]
    assert (tmp_path / old).read_text(encoding="ascii") == "another past\n"
    assert (tmp_path / missing).read_text(encoding="ascii") == stored[missing]
    assert write(tmp_path, force=True) == []
    assert (tmp_path / old).read_text(encoding="ascii") == stored[old]
    assert capsys.readouterr().out.split() == [f"tests/golden/{missing}", f"tests/golden/{old}"]
