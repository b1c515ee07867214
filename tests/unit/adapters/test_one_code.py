"""One fault has one code, whichever door it is met at: a verb of a system, a run in hand, a pattern, the command line."""

import asyncio
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from remit import AgentLoop, PlanExecutor, RedundantLoop, SpecializedLoop
from remit.assemble import opened_system, settings_of
from remit.core.failure import RemitError
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.run_handle import approval, rejection
from tests.unit.adapters.desk import Desk


class Met(NamedTuple):
    """A run that something is wrong with, and a packet of it."""

    desk: Desk
    run_id: str
    packet_id: str
    system: Any


Door = Callable[[Met], Awaitable[object]]


def told(kind: Signal, **payload: object) -> Door:
    return lambda met: met.system.signal(UserSignal("s", kind, met.run_id, "ada", payload=payload))


async def in_hand(met: Met) -> object:
    return await (await met.system.find(met.run_id)).cancel(by="ada")


async def paused_in_hand(met: Met) -> object:
    return await (await met.system.find(met.run_id)).pause(by="ada")


async def told_in_hand(met: Met) -> object:
    return await (await met.system.find(met.run_id)).feedback("hurry", by="ada")


def agent(met: Met) -> AgentLoop:
    return AgentLoop(met.desk.script("x"), system=met.system)


async def approved_in_hand(met: Met) -> object:
    return await (await met.system.find(met.run_id)).approve(met.packet_id, by="ada")


def line(*words: str) -> Callable[[Met], str]:
    """What the command line answers, by its code: it has a loop of its own."""

    def said(met: Met) -> str:
        done = met.desk.say(*(word.format(run=met.run_id, packet=met.packet_id) for word in words), "--json")
        return done.error if done.code == 1 and '"error"' in done.out else NONE

    return said


NONE = "none"
# The first question of a run of the desk.
NUMBER = "1.2"
SCHEMA = {"type": "object"}

# What a caller wants, and the doors at which it can be asked for.
DOORS: Mapping[str, Mapping[str, Door]] = {
    "cancel": {"a system": told(Signal.CANCEL), "a run": in_hand},
    "pause": {"a system": told(Signal.PAUSE), "a run": paused_in_hand},
    "feedback": {"a system": told(Signal.FEEDBACK, text="hurry"), "a run": told_in_hand},
    "answer": {
        "a system, yes": lambda met: met.system.signal(approval(met.packet_id, by="ada")),
        "a system, no": lambda met: met.system.signal(rejection(met.packet_id, by="ada")),
        "a run": approved_in_hand,
        "AgentLoop": lambda met: agent(met).approve(met.packet_id, by="ada"),
        "SpecializedLoop": lambda met: SpecializedLoop(met.desk.script("x"), schema=SCHEMA, system=met.system).approve(
            met.packet_id, by="ada"
        ),
        "PlanExecutor": lambda met: PlanExecutor({}, system=met.system).reject(met.packet_id, by="ada"),
    },
    "resume": {
        "a system": lambda met: met.system.resume(met.run_id),
        "PlanExecutor": lambda met: PlanExecutor({}, system=met.system).resume(met.run_id),
        "RedundantLoop": lambda met: RedundantLoop(met.desk.script("x"), schema=SCHEMA, system=met.system).resume(
            met.run_id
        ),
    },
    "fork": {"a system": lambda met: met.system.fork(met.run_id, by="ada")},
    "look": {
        "a system": lambda met: met.system.result(met.run_id),
        "a run": lambda met: met.system.find(met.run_id),
    },
}
LINES: Mapping[str, tuple[Callable[[Met], str], ...]] = {
    "cancel": (line("signal", "{run}", "cancel"),),
    "pause": (line("signal", "{run}", "pause"),),
    "feedback": (line("signal", "{run}", "feedback", "hurry"),),
    "answer": (line("approve", "{packet}"), line("reject", "{packet}")),
    "resume": (line("resume", "{run}"),),
    "fork": (line("fork", "{run}"),),
    "look": (line("show", "{run}"), line("trace", "{run}"), line("explain", "{run}")),
}
# A loop answers and resumes what is its own. Of other runs it says what any door would say of them, where they are not there
# or need no answer any more.
OF_PATTERNS = ("RUN_NOT_FOUND", "RUN_DELETED", "QUESTION_SETTLED")
PATTERNS = ("AgentLoop", "SpecializedLoop", "PlanExecutor", "RedundantLoop")


def unknown(desk: Desk) -> str:
    desk.ended()
    return "nobody"


def deleted(desk: Desk) -> str:
    run_id = desk.ended()
    desk.say("delete", run_id)
    return run_id


def ended(desk: Desk) -> str:
    run_id = desk.waiting()
    assert desk.say("signal", run_id, "cancel").code == 0
    return run_id


def put_back(desk: Desk) -> str:
    """The database was put back to before the question was answered."""
    run_id = desk.waiting()
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection:
        connection.execute("VACUUM INTO ?", (str(desk.folder / "backup.db"),))
    assert desk.say("approve", run_id).code == 0
    shutil.copy(desk.folder / "backup.db", desk.home / "remit.db")
    for name in ("remit.db-wal", "remit.db-shm"):
        (desk.home / name).unlink(missing_ok=True)
    return run_id


def unreadable_log(desk: Desk) -> str:
    run_id = desk.waiting()
    with (desk.home / "heads.log").open("ab") as log:
        log.write(b"{not a line}\n")
    return run_id


def unvouched(desk: Desk) -> str:
    run_id = desk.waiting()
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("DELETE FROM heads")
    return run_id


EVERYWHERE = tuple(DOORS)
TOLD = ("cancel", "pause", "feedback")
DRIVEN = (*TOLD, "answer", "resume", "fork")

# What is wrong, and which code whoever wants what is told.
FAULTS: Mapping[str, tuple[Callable[[Desk], str], Mapping[str, str]]] = {
    "nobody started the run": (unknown, dict.fromkeys(EVERYWHERE, "RUN_NOT_FOUND")),
    "the run was deleted": (deleted, dict.fromkeys(EVERYWHERE, "RUN_DELETED")),
    "the run has ended": (ended, {**dict.fromkeys(TOLD, "RUN_ENDED"), "answer": "QUESTION_SETTLED"}),
    "the database was put back": (put_back, dict.fromkeys(DRIVEN, "STORE_BEHIND_ITS_LOG")),
    "the log of heads is damaged": (unreadable_log, dict.fromkeys(DRIVEN, "STORE_LOG_DAMAGED")),
    "nobody vouches for the run": (unvouched, dict.fromkeys(DRIVEN, "RUN_NOT_VOUCHED")),
}


async def code_at(door: Door, met: Met) -> str:
    try:
        await door(met)
    except RemitError as error:
        return str(error.code)
    return NONE


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_has_one_code_whatever_the_door(desk: Desk, fault: str) -> None:
    happens, expected = FAULTS[fault]
    run_id = happens(desk)
    found: dict[tuple[str, str], str] = {}

    async def story() -> None:
        for verb in expected:
            for name, door in DOORS[verb].items():
                if name in PATTERNS and expected[verb] not in OF_PATTERNS:
                    continue
                async with opened_system(settings_of(home=desk.home)) as system:
                    found[verb, name] = await code_at(door, Met(desk, run_id, f"{run_id}/{NUMBER}", system))

    asyncio.run(story())
    for verb in expected:
        for number, said in enumerate(LINES[verb]):
            found[verb, f"command {number}"] = said(Met(desk, run_id, f"{run_id}/{NUMBER}", None))
    assert {door: code for door, code in found.items() if code != expected[door[0]]} == {}
