"""Crash, resume, compare: the errand is killed at a position, taken up by another process, and everything is checked.

It is a program, so that it forks from a process without threads:

    python -m tests.e2e.crash_law FOLDER positions | part PART PARTS | mutant NAME | random KILLS SEED

It prints one JSON object: how many positions it played, how often it killed, and what was wrong. How many positions an
errand has depends on how busy the machine is, so `positions` counts them once, into a file that every part reads.
"""

import asyncio
import importlib
import json
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import NamedTuple
from uuid import uuid4

from remit.backend.clock import WallClock
from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import Ending, ErrorCode
from remit.core.journal.codec import hash_turn
from remit.core.journal.commands import CallTool
from remit.core.run.approval import Approval, What
from remit.core.run.contract import SystemResponse
from remit.core.run.signals import Signal, UserSignal
from remit.kernel.state import RunState
from remit.observe.proof.verify import verify_run
from remit.orchestrate.executors.human import approvals_in
from remit.orchestrate.executors.reports import ToolBroke
from remit.orchestrate.facade import System
from remit.orchestrate.history.replay import Audit, AuditVerdict, audit, kept_texts
from remit.orchestrate.loop import recover
from remit.orchestrate.setup.kit import Kit
from tests.e2e import errand
from tests.e2e.crashing import CrashingStore, Forked, Fuse, Moment, OnKept, Position, Tell, in_fork
from tests.e2e.errand import RUN, Ledger

# More than the errand has questions, even when every one of its calls is proposed twice.
ROUNDS_MAX = 30
# Every so many positions the process that resumes is killed as well.
SECOND_KILL_EVERY = 4
# How often an errand is played until it comes to the position where it is to be killed.
TRIES_MAX = 5
# The file in which the positions are written down for all parts.
POSITIONS = "positions.json"
# The last few positions of a kind are enough to see a fault; they have the most behind them.
MUTANT_POSITIONS_MAX = 5


class Place(NamedTuple):
    """Where one errand is played: its store, and the world outside of it."""

    home: Path
    ledger: Ledger

    @classmethod
    def under(cls, folder: Path) -> "Place":
        """A new place."""
        folder.mkdir(parents=True)
        return cls(folder / "store", Ledger(folder / "ledger"))


class Kept(NamedTuple):
    """A turn that was acknowledged."""

    run_id: str
    seq: int
    link: str


def kept_as(run_id: str, seq: int, data: bytes) -> Kept:
    """How a turn is remembered that was acknowledged."""
    return Kept(run_id, seq, hash_turn(data).hex())


class Stage:
    """A system on the real store, in a process that may be killed at any moment; `on_kept` hears what is acknowledged."""

    def __init__(self, place: Place, fuse: Fuse, on_kept: OnKept) -> None:
        self.place = place
        self.kit = errand.kit(place.ledger, lambda _: fuse.passes(Moment.AFTER_EFFECT))
        self.store = EmbeddedStore.open(place.home)
        crashing = CrashingStore(self.store, fuse, on_kept)
        self.system = System(crashing, clock=WallClock(), find_kit=self._find_kit, new_id=lambda: RUN)

    async def _find_kit(self, state: RunState) -> Kit:
        return self.kit

    async def play(self) -> SystemResponse:
        """Start the errand, or go on with it where it has begun, and be its person until it has ended."""
        if await self.store.catalogue.entry(RUN) is None:
            await self.system.run(errand.request(), self.kit)
        else:
            await self.system.resume(RUN)
        return await self.attend()

    async def attend(self) -> SystemResponse:
        """Answer whatever the errand and its child ask, until it has ended."""
        for _ in range(ROUNDS_MAX):
            await self.system.settle()
            response = await self.system.result(RUN)
            if response.terminal_code is not None:
                return response
            asked = await self.asked()
            if not asked:
                response = await self.system.resume(RUN)
            await self.answer(asked)
        raise AssertionError(f"{RUN} asks for ever: {await self.asked()}")

    async def answer(self, asked: Sequence[Approval]) -> None:
        """Answer what is asked."""
        for approval in asked:
            await self.say(await self._answer(approval))

    async def say(self, signal: UserSignal) -> None:
        """Tell a run something."""
        await self.system.signal(signal)

    async def asked(self) -> list[Approval]:
        """What people are asked, as an inbox lists it."""
        entries = await self.store.catalogue.entries(waiting_only=True)
        return [approval for entry in entries for approval in approvals_in(await self.system.state_of(entry.run_id))]

    async def _answer(self, approval: Approval) -> UserSignal:
        """Approve; or say what became of a call, after a look at the world."""
        is_yes = True
        if approval.purpose is What.OUTCOME:
            command = (await self.system.state_of(approval.run_id)).commands.open[approval.about]
            assert isinstance(command, CallTool)
            is_yes = self.place.ledger.did(command.key)
        kind = Signal.APPROVE if is_yes else Signal.REJECT
        return UserSignal(uuid4().hex, kind, approval.run_id, "erin", payload={"packet_id": approval.id})


def begin(place: Place, fuse: Fuse) -> Callable[[Tell], None]:
    """What a process does that begins the errand, or goes on with it, and may be killed."""

    async def work(tell: Tell) -> None:
        stage = Stage(place, fuse, lambda *turn: tell(json.dumps(kept_as(*turn))))
        response = await stage.play()
        assert (response.terminal_code, response.content) == (Ending.SUCCESS, errand.ANSWER), response
        await stage.system.close()
        tell(json.dumps({"positions": fuse.positions(), "modules": sorted(sys.modules)}))

    return lambda tell: asyncio.run(work(tell))


def go_on(place: Place, kept: Sequence[Kept], crashes: int) -> Callable[[Tell], None]:
    """What a process does that takes the errand up after a crash, and checks everything."""

    async def work(tell: Tell) -> None:
        stage = Stage(place, Fuse(), lambda *_: None)
        before = await journals(stage.store)
        for turn in kept:
            assert turn.seq < len(before.get(turn.run_id, ())), f"lost: {turn}"
            assert hash_turn(before[turn.run_id][turn.seq]).hex() == turn.link, f"altered: {turn}"
        if before:
            await wait_for_those_in_doubt(stage)
        response = await stage.play()
        assert (response.terminal_code, response.content) == (Ending.SUCCESS, errand.ANSWER), response
        assert not await stage.store.catalogue.entries(open_only=True), "a run was left open"
        faults = errand.faults_of(place.ledger, crashes)
        assert not faults, faults
        after = await journals(stage.store)
        for run_id, data in before.items():
            assert after[run_id][: len(data)] == data, f"turns of {run_id} changed"
        await prove(stage.store, after)
        for run_id in after:
            # What was signed before the crash may have been lost with the log; what was signed since must be in it.
            signed = {
                head for head in await stage.store.catalogue.heads(run_id) if head.seq >= len(before.get(run_id, ()))
            }
            logged = set(await stage.store.log.heads(run_id))
            assert signed <= logged, f"heads of {run_id} are not in the log: {[head.seq for head in signed - logged]}"
        await stage.system.close()

    return lambda tell: asyncio.run(work(tell))


async def wait_for_those_in_doubt(stage: Stage) -> None:
    """Resume without anybody to answer: a call that cannot be asked about again makes the run wait, and is named."""
    doubted = [
        command
        for entry in await stage.store.catalogue.entries()
        for command in (await stage.system.state_of(entry.run_id)).commands.open.values()
        if isinstance(command, CallTool) and command.tool == "mail"
    ]
    attempts = stage.place.ledger.attempts("mail")
    response = await stage.system.resume(RUN)
    await stage.system.settle()
    assert stage.place.ledger.attempts("mail") == attempts, "a call in doubt was repeated"
    if doubted:
        named = [approval.about for approval in await stage.asked() if approval.purpose is What.OUTCOME]
        assert named == [command.id for command in doubted], f"{named} are asked about, in doubt are {doubted}"
        assert response.waiting_for is not None
        assert response.waiting_for.ending is Ending.REVIEW_REQUIRED


async def journals(store: EmbeddedStore) -> dict[str, list[bytes]]:
    """Every turn there is, by run."""
    return {entry.run_id: list(await store.journal.read(entry.run_id)) for entry in await store.catalogue.entries()}


async def prove(store: EmbeddedStore, turns: dict[str, list[bytes]]) -> None:
    """Every run verifies, and decides to the same bytes again."""
    for run_id, data in turns.items():
        texts = await kept_texts(store.blobs, data)
        heads, logged = await store.catalogue.heads(run_id), await store.log.heads(run_id)
        verification = verify_run(run_id, data, heads, logged, store.did, texts.get)
        assert verification.ok, verification.findings
        assert not verification.redacted, f"texts of {run_id} are lost: {verification.redacted}"
        audited = _audited(tuple(data), frozenset(texts.items()))
        assert audited.verdict is AuditVerdict.SAME, audited


@cache
def _audited(data: tuple[bytes, ...], texts: frozenset[tuple[bytes, bytes]]) -> Audit:
    """Decide a run again; many losses of power leave the same journal."""
    return audit(data, dict(texts).get)


class Tallied(NamedTuple):
    """What a part of the law came to."""

    positions: int
    kills: int
    faults: list[str]
    # Of how many positions these were a part.
    of: int = 0


def crash_once(folder: Path, position: Position, again: Position | None = None) -> tuple[int, list[str]]:
    """Kill the errand at a position, kill the process that goes on at another if one is given, and finish it: kills, faults."""
    place, killed = _killed_at(folder, position, TRIES_MAX)
    if not killed.was_killed:
        return 0, [f"{position} was not reached: {killed.said[-1:]}"]
    crashes, said = 1, list(killed.said)
    if again is not None:
        second = in_fork(begin(place, Fuse(again)))
        if not second.was_killed and not second.has_ended_well:
            return crashes, [f"{position}, then {again}: {second.said[-1:]}"]
        crashes += second.was_killed
        said += second.said
    finished = in_fork(go_on(place, kept_in(said), crashes))
    return crashes, [] if finished.has_ended_well else [f"{position}, then {again}: {_shown(finished)}"]


def _killed_at(folder: Path, position: Position, tries: int) -> tuple[Place, Forked]:
    """An errand that was killed at a position. On a busy machine one may need fewer turns; then it is played again."""
    place = Place.under(folder / str(tries))
    killed = in_fork(begin(place, Fuse(position)))
    return _killed_at(folder, position, tries - 1) if killed.has_ended_well and tries > 1 else (place, killed)


def kept_in(said: Sequence[str]) -> list[Kept]:
    """The turns that were acknowledged, as a process said."""
    return [Kept(*told) for line in said if isinstance(told := json.loads(line), list)]


def preload(modules: Sequence[str]) -> None:
    """Import what a forked process had to import, so that the next ones find it."""
    for module in modules:
        with suppress(ImportError):  # Some modules are made by others and cannot be imported by name.
            importlib.import_module(module)


def positions_of(place: Place) -> list[Position]:
    """Every position of an errand that is not killed. Whatever it had to import is imported here for all that follow."""
    return _positions_in(_played(place))


def _played(place: Place) -> str:
    """What an errand that is not killed says at its end."""
    played = in_fork(begin(place, Fuse()))
    assert played.has_ended_well, _shown(played)
    return played.said[-1]


def _positions_in(said: str) -> list[Position]:
    told = json.loads(said)
    preload(told["modules"])
    return [Position(Moment(moment), number) for moment, number in told["positions"]]


def list_positions(folder: Path) -> Tallied:
    """Write down the positions of an errand that is not killed."""
    said = _played(Place.under(folder / "uncrashed"))
    (folder / POSITIONS).write_text(said)
    return Tallied(0, 0, [], len(_positions_in(said)))


def keep_the_law(folder: Path, part: int, parts: int) -> Tallied:
    """Kill at every position that belongs to this part."""
    positions = _positions_in((folder / POSITIONS).read_text())
    kills, faults = 0, list[str]()
    for number in range(part, len(positions), parts):
        again = None
        if number // parts % SECOND_KILL_EVERY == 0:
            chance = Random(number)
            again = Position(chance.choice(list(Moment)), chance.randrange(4))
        killed, found = crash_once(folder / f"{number}", positions[number], again)
        kills += killed
        faults += found
    return Tallied(len(range(part, len(positions), parts)), kills, faults, len(positions))


def break_the_law(folder: Path, name: str) -> Tallied:
    """Kill at every moment of a kind, with a house that has a fault: the law must find it."""
    moment, mutant = MUTANTS[name]
    mutant()
    known = positions_of(Place.under(folder / "uncrashed"))
    positions = [position for position in known if position.moment is moment][-MUTANT_POSITIONS_MAX:]
    crashed = [crash_once(folder / f"{position.number}", position) for position in positions]
    return Tallied(
        len(positions), sum(kills for kills, _ in crashed), [fault for _, found in crashed for fault in found]
    )


def _repeat_blindly() -> None:
    """After a crash everything is done again."""
    vars(recover)["is_safe_to_repeat"] = lambda state, command: True


def _assume_failure() -> None:
    """After a crash, what has no outcome counts as failed."""
    vars(recover)["ToolOutcomeLost"] = lambda command_id: ToolBroke(
        command_id, ErrorCode.TOOL_EXECUTION_FAILED, "it was lost"
    )


def _forget_the_last_turn() -> None:
    """A store comes up without the last turn it had acknowledged."""
    opened = EmbeddedStore.open

    def forgetful(home: Path) -> EmbeddedStore:
        if (home / DATABASE).exists():
            connection = sqlite3.connect(home / DATABASE)
            with connection:
                connection.execute("DELETE FROM turns WHERE turn_no = (SELECT max(turn_no) FROM turns)")
            connection.close()
        return opened(home)

    EmbeddedStore.open = forgetful  # type: ignore[assignment, method-assign]


# Each fault of the house, with the moment at which a kill shows it.
MUTANTS: Mapping[str, tuple[Moment, Callable[[], None]]] = {
    "repeats_blindly": (Moment.AFTER_EFFECT, _repeat_blindly),
    "assumes_failure": (Moment.AFTER_EFFECT, _assume_failure),
    "forgets_the_last_turn": (Moment.AFTER_APPEND, _forget_the_last_turn),
}


def kill_at_random(folder: Path, kills_wanted: int, seed: int) -> Tallied:
    """Kill from outside, at any time at all, up to three times in a row, until so many kills were made."""
    chance, kills, faults, played = Random(seed), 0, list[str](), 0
    # The first one imports what the others find.
    positions_of(Place.under(folder / "uncrashed"))
    began_s = time.monotonic()
    positions_of(Place.under(folder / "again"))
    took_s = time.monotonic() - began_s
    while kills < kills_wanted and not faults:
        place, said, crashes = Place.under(folder / f"{played}"), list[str](), 0
        for _ in range(chance.randint(1, 3)):
            killed = in_fork(begin(place, Fuse()), kill_after_s=chance.uniform(0, took_s))
            said += killed.said
            crashes += killed.was_killed
            if not killed.was_killed:
                faults += [] if killed.has_ended_well else [f"seed {seed}, run {played}: {_shown(killed)}"]
                break
        finished = in_fork(go_on(place, kept_in(said), crashes))
        faults += [] if finished.has_ended_well else [f"seed {seed}, run {played}: {_shown(finished)}"]
        kills, played = kills + crashes, played + 1
        shutil.rmtree(place.home.parent)
    return Tallied(played, kills, faults)


def _shown(forked: Forked) -> str:
    return f"status {forked.status}: " + " | ".join(forked.said[-30:])


def main(arguments: Sequence[str]) -> Tallied:
    """Play what the arguments say."""
    match arguments:
        case [folder, "positions"]:
            return list_positions(Path(folder))
        case [folder, "part", part, parts]:
            return keep_the_law(Path(folder), int(part), int(parts))
        case [folder, "mutant", name]:
            return break_the_law(Path(folder), name)
        case [folder, "random", kills, seed]:
            return kill_at_random(Path(folder), int(kills), int(seed))
    raise SystemExit(__doc__)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1:])._asdict()))  # noqa: T201
