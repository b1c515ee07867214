"""A closed store to tamper with, its exports, and what a forger without the key might do to either.

Every tampering gets the turns of a run and gives them back changed; a journal and an export are both made of them.
"""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from remit.assemble import Settings, opened_to_read, settings_of
from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.owner.trusted_stores import Trusted
from remit.core.journal.codec import decode_turn, encode_turn
from remit.core.record import replace
from remit.core.run.contract import SystemResponse
from remit.core.run.signals import Signal
from remit.observe.proof.findings import Verification
from remit.orchestrate.facade import System
from remit.tool.declare.decorator import tool
from tests.e2e import errand
from tests.e2e.errand import Ledger
from tests.e2e.house import answer, asking, calls, house, says, scripted
from tests.unit.observe.sealed import rechained

# The texts of this run are too long for turns and lie apart.
WORDS = "word " * 1_000

Turns = tuple[bytes, ...]
Tampering = Callable[[Turns, Turns, Random], Turns]


class Vault(NamedTuple):
    """A store as its last process left it, a copy from earlier, and the public key."""

    home: Path
    earlier: Path
    did: str
    # The errand to its end, the errand while it waits, one with long texts; and the errand once more, to splice.
    ended: str
    waiting: str
    wordy: str
    other: str

    def copy_to(self, folder: Path) -> Path:
        """The store once more, to be tampered with."""
        return shutil.copytree(self.home, folder)

    def turns(self, run_id: str) -> Turns:
        """What the journal holds of a run."""
        with opened_database(self.home) as connection:
            return tuple(data for (data,) in connection.execute(_TURNS, (run_id,)))


def fill(folder: Path) -> Vault:
    """Make a store, and let some runs in it come to their end, or to a question."""
    home, earlier = folder / "store", folder / "earlier"
    kit = errand.kit(Ledger(folder / "ledger"), lambda _: None)

    async def play() -> Vault:
        async with house(home, kit) as system:
            ended, waiting, other = [await system.run(errand.request(), kit) for _ in range(3)]
            shutil.copytree(home, earlier, ignore=shutil.ignore_patterns("bells"))
            while not await _asks_for(system, waiting, "mail"):
                waiting = await answer(system, Signal.APPROVE, waiting)
            while ended.terminal_code is None:
                ended = await answer(system, Signal.APPROVE, ended)
            while other.terminal_code is None:
                other = await answer(system, Signal.APPROVE, other)
            wordy = await system.run(asking(WORDS), scripted([calls("recite"), says(WORDS[5:])], recite))
            verification = await system.archive.verify(ended.run_id)
        # The house was opened past the assembly, so its store has not been entered yet.
        settings_of(home=home).trusted.enter(Trusted(verification.signer, os.geteuid()))
        runs = (ended.run_id, waiting.run_id, wordy.run_id, other.run_id)
        return Vault(home, earlier, verification.signer, *runs)

    return asyncio.run(play())


async def _asks_for(system: System, response: SystemResponse, name: str) -> bool:
    assert response.waiting_for is not None, f"no person was asked to approve {name}"
    return any(asked.tool == name for asked in await system.archive.approvals(response.run_id))


@tool(effect="read")
async def recite() -> str:
    """Say something long."""
    return WORDS[10:]


def verified(home: Path, run_id: str, signer: str | None = None) -> Verification:
    """What verifying a run of a store finds."""

    async def look() -> Verification:
        async with opened_to_read(Settings(home)) as system:
            return await system.archive.verify(run_id, signer)

    return asyncio.run(look())


@contextmanager
def opened_database(home: Path) -> Iterator[sqlite3.Connection]:
    """The database itself, past the house."""
    with closing(sqlite3.connect(home / DATABASE)) as connection, connection:
        yield connection


def put_turns(home: Path, run_id: str, turns: Sequence[bytes]) -> None:
    """Write other turns over those of a run, and keep only the heads that could still fit."""
    with opened_database(home) as connection:
        ((run_no,),) = connection.execute("SELECT run_no FROM runs WHERE run_id = ?", (run_id,)).fetchall()
        connection.execute("DELETE FROM turns WHERE run_no = ?", (run_no,))
        connection.executemany(
            "INSERT INTO turns (run_no, seq, data) VALUES (?, ?, ?)",
            [(run_no, seq, data) for seq, data in enumerate(turns)],
        )
        connection.execute("DELETE FROM heads WHERE run_no = ? AND seq >= ?", (run_no, len(turns)))


def _edit_bytes(turns: Turns, other: Turns, chance: Random) -> Turns:
    seq = chance.randrange(len(turns))
    data = bytearray(turns[seq])
    data[chance.randrange(len(data))] ^= chance.randrange(1, 256)
    return (*turns[:seq], bytes(data), *turns[seq + 1 :])


def _edit_meaning(turns: Turns, other: Turns, chance: Random) -> Turns:
    seq = chance.randrange(len(turns))
    return (*turns[:seq], _later(turns[seq]), *turns[seq + 1 :])


def _cut_the_tail(turns: Turns, other: Turns, chance: Random) -> Turns:
    return turns[: chance.randrange(1, len(turns))]


def _cut_one_out(turns: Turns, other: Turns, chance: Random) -> Turns:
    seq = chance.randrange(len(turns))
    return (*turns[:seq], *turns[seq + 1 :])


def _duplicate(turns: Turns, other: Turns, chance: Random) -> Turns:
    seq = chance.randrange(len(turns))
    return (*turns[: seq + 1], *turns[seq:])


def _swap(turns: Turns, other: Turns, chance: Random) -> Turns:
    one, two = chance.sample(range(len(turns)), 2)
    swapped = list(turns)
    swapped[one], swapped[two] = swapped[two], swapped[one]
    return tuple(swapped)


def _insert(turns: Turns, other: Turns, chance: Random) -> Turns:
    seq = chance.randrange(len(turns) + 1)
    return (*turns[:seq], chance.choice(other), *turns[seq:])


def _recompute_the_tail(turns: Turns, other: Turns, chance: Random) -> Turns:
    seq = chance.randrange(len(turns))
    return rechained((*turns[:seq], _later(turns[seq]), *turns[seq + 1 :]), seq)


def _splice(turns: Turns, other: Turns, chance: Random) -> Turns:
    seq = chance.randrange(1, min(len(turns), len(other)))
    return rechained((*turns[:seq], *other[seq:]), seq)


def _later(stored: bytes) -> bytes:
    """The turn, a millisecond later: as small a lie as there is."""
    turn = decode_turn(stored)
    return encode_turn(replace(turn, at_ms=turn.at_ms + 1))


TAMPERINGS: Mapping[str, Tampering] = {
    "edit_bytes": _edit_bytes,
    "edit_meaning": _edit_meaning,
    "cut_the_tail": _cut_the_tail,
    "cut_one_out": _cut_one_out,
    "duplicate": _duplicate,
    "swap": _swap,
    "insert": _insert,
    "recompute_the_tail": _recompute_the_tail,
    "splice": _splice,
}

_TURNS = "SELECT data FROM turns JOIN runs USING (run_no) WHERE run_id = ? ORDER BY seq"
