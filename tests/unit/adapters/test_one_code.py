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
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import RemitError
from remit.core.record import JsonObject
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.bus import post
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


async def export(met: Met) -> object:
    return await met.system.archive.export(met.run_id)


def answered_in_hand(answer: str, *words: str) -> Door:
    """A run in hand is approved, rejected or told something."""

    async def answered(met: Met) -> object:
        return await getattr(await met.system.find(met.run_id), answer)(*words, met.packet_id, by="ada")

    return answered


def line(*words: str) -> Callable[[Met], str]:
    """What the command line answers, by its code: it has a loop of its own."""

    def said(met: Met) -> str:
        done = met.desk.say(*(word.format(run=met.run_id, packet=met.packet_id) for word in words), "--json")
        return done.error if done.code == 1 and '"error"' in done.out else NONE

    return said


NONE = "none"
# Words are no answer to a call, whatever else is wrong.
WORDS = "a run, words"
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
        "a run, yes": answered_in_hand("approve"),
        "a run, no": answered_in_hand("reject"),
        WORDS: answered_in_hand("answer", "so"),
        "AgentLoop": lambda met: agent(met).approve(met.packet_id, by="ada"),
        "SpecializedLoop": lambda met: SpecializedLoop(met.desk.script("x"), schema=SCHEMA, system=met.system).approve(
            met.packet_id, by="ada"
        ),
        "PlanExecutor": lambda met: PlanExecutor({}, system=met.system).reject(met.packet_id, by="ada"),
    },
    "note": {"a system": lambda met: met.system.note(met.run_id, "ada", "k", '"v"')},
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
        "history": lambda met: met.system.archive.history(met.run_id),
        "replay": lambda met: met.system.archive.replay(met.run_id),
        "verify": lambda met: met.system.archive.verify(met.run_id),
        "export": export,
        "settle": lambda met: met.system.settle(met.run_id),
        "is_guarded": lambda met: met.system.is_guarded(met.run_id),
    },
    "halt": {
        "a system": lambda met: met.system.halt("smoke", by="ada", run=met.run_id),
        "a system, to lift": lambda met: met.system.lift(by="ada", run=met.run_id),
    },
    "acknowledge": {"queues": lambda met: met.system.queues.acknowledge(met.run_id, "ada")},
}
LINES: Mapping[str, tuple[Callable[[Met], str], ...]] = {
    "cancel": (line("signal", "{run}", "cancel"),),
    "pause": (line("signal", "{run}", "pause"),),
    "feedback": (line("signal", "{run}", "feedback", "hurry"),),
    "note": (),
    "answer": (line("approve", "{packet}"), line("reject", "{packet}")),
    "resume": (line("resume", "{run}"),),
    "fork": (line("fork", "{run}"),),
    "look": tuple(line(verb, "{run}") for verb in ("show", "trace", "explain", "replay", "verify", "export")),
    "halt": (line("halt", "--run", "{run}", "--why", "smoke"), line("halt", "--lift", "--run", "{run}")),
    "acknowledge": (line("queues", "ack", "{run}"),),
}
# A loop answers and resumes what is its own. Of other runs it says what any door would say of them, where they are not there,
# need no answer any more, or never wanted one.
OF_PATTERNS = ("RUN_NOT_FOUND", "RUN_DELETED", "QUESTION_SETTLED", "PACKET_UNKNOWN")
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
DRIVEN = (*TOLD, "note", "answer", "resume", "fork")
# What no run of the desk asks: a command that it never had, one that was no question, and a name of none.
UNASKED = ("9.9", "0.1", "nonsense")

# What is wrong, and which code a caller is told who wants what.
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


def codes_at(desk: Desk, run_id: str, packet: str, expected: Mapping[str, str]) -> dict[tuple[str, str], str]:
    """The codes at all doors that are none of those expected."""
    found: dict[tuple[str, str], str] = {}

    async def story() -> None:
        for verb in expected:
            for name, door in DOORS[verb].items():
                if name in (*PATTERNS, WORDS) and expected[verb] not in OF_PATTERNS:
                    continue
                async with opened_system(settings_of(home=desk.home)) as system:
                    found[verb, name] = await code_at(door, Met(desk, run_id, packet, system))

    asyncio.run(story())
    for verb in expected:
        for number, said in enumerate(LINES[verb]):
            found[verb, f"command {number}"] = said(Met(desk, run_id, packet, None))
    return {door: code for door, code in found.items() if code != expected[door[0]]}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_has_one_code_whatever_the_door(desk: Desk, fault: str) -> None:
    happens, expected = FAULTS[fault]
    run_id = happens(desk)
    assert codes_at(desk, run_id, f"{run_id}/{NUMBER}", expected) == {}


@pytest.mark.parametrize("stands", [Desk.waiting, Desk.ended, ended, Desk.delegating])
@pytest.mark.parametrize("unasked", UNASKED)
def test_an_answer_to_what_was_never_asked_has_one_code_whatever_the_door(
    desk: Desk, stands: Callable[[Desk], str], unasked: str
) -> None:
    run_id = stands(desk)
    assert codes_at(desk, run_id, f"{run_id}/{unasked}", {"answer": "PACKET_UNKNOWN"}) == {}


def test_what_a_child_was_asked_under_a_number_is_not_what_its_parent_was_asked(desk: Desk) -> None:
    run_id = desk.delegating()
    assert desk.say("approve", run_id).code == 0
    assert codes_at(desk, run_id, f"{run_id}/{NUMBER}", {"answer": "PACKET_UNKNOWN"}) == {}


@pytest.mark.parametrize("stands", [Desk.waiting, Desk.ended])
@pytest.mark.parametrize("packet", ["nonsense", "1.99", "", " "])
def test_a_packet_that_is_none_has_one_code_at_every_pattern(
    desk: Desk, stands: Callable[[Desk], str], packet: str
) -> None:
    assert patterns_say(desk, stands(desk), packet) == dict.fromkeys(ANSWERING, "PACKET_UNKNOWN")


def test_an_open_packet_of_a_run_that_no_pattern_started_has_one_code_at_every_pattern(desk: Desk) -> None:
    run_id = desk.waiting()
    assert patterns_say(desk, run_id, f"{run_id}/{NUMBER}") == dict.fromkeys(ANSWERING, "PACKET_UNKNOWN")


ANSWERING = [name for name in DOORS["answer"] if name in PATTERNS]


def patterns_say(desk: Desk, run_id: str, packet: str) -> dict[str, str]:
    """The codes with which each pattern refuses an answer."""

    async def story() -> dict[str, str]:
        async with opened_system(settings_of(home=desk.home)) as system:
            met = Met(desk, run_id, packet, system)
            return {name: await code_at(DOORS["answer"][name], met) for name in ANSWERING}

    return asyncio.run(story())


@pytest.mark.parametrize("name", ["../x", "a.b*", "nobody"])
def test_what_names_no_run_is_neither_halted_nor_settled_nor_guarded(desk: Desk, name: str) -> None:
    desk.ended()
    verbs = {"halt": "RUN_NOT_FOUND", "look": "RUN_NOT_FOUND"}
    assert codes_at(desk, name, f"{name}/{NUMBER}", verbs) == {}


def test_a_halt_of_a_run_that_was_deleted_since_is_lifted(desk: Desk) -> None:
    run_id = desk.ended()

    async def story() -> None:
        async with opened_system(settings_of(home=desk.home)) as system:
            await system.halt("smoke", by="ada", run=run_id)
            await system.delete(run_id)
            await system.lift(by="ada", run=run_id)
            assert system.halts() == ()

    asyncio.run(story())


async def unnamed(met: Met) -> object:
    return await (await met.system.find(met.run_id)).approve(by="ada")


@pytest.mark.parametrize(("stands", "code"), [(Desk.ended, "PACKET_UNKNOWN"), (ended, "QUESTION_SETTLED")])
def test_an_answer_that_names_no_question_has_one_code_where_none_is_asked(
    desk: Desk, stands: Callable[[Desk], str], code: str
) -> None:
    run_id = stands(desk)

    async def story() -> str:
        async with opened_system(settings_of(home=desk.home)) as system:
            return await code_at(unnamed, Met(desk, run_id, "", system))

    said = [line(verb, "{run}")(Met(desk, run_id, "", None)) for verb in ("approve", "reject")]
    assert [asyncio.run(story()), *said] == [code] * 3


# What a driver in another process leaves to be said here: it goes on itself, and hears signals when it listens.
HELD: Mapping[str, str] = {
    **dict.fromkeys((*TOLD, "answer"), "SIGNAL_UNHEARD"),
    **dict.fromkeys(("note", "resume"), "RUN_HELD"),
    **dict.fromkeys(("fork", "look"), NONE),
}


def test_a_run_that_another_process_drives_has_one_code_whatever_the_door(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post, "OUTCOME_WAIT_MS_MAX", 2 * post.OUTCOME_POLL_MS)
    run_id = desk.waiting()
    with asyncio.Runner() as elsewhere:
        store = elsewhere.run(_holding(desk, run_id))
        try:
            assert codes_at(desk, run_id, f"{run_id}/{NUMBER}", HELD) == {}
        finally:
            elsewhere.run(store.close())


async def _holding(desk: Desk, run_id: str) -> EmbeddedStore:
    """A process that drives a run and hears no person."""
    store = EmbeddedStore.open(desk.home)
    assert await store.leases.take(run_id) is not None
    return store


# A guarded run is driven by its guard, so a person who answers it elsewhere is heard through the inbox.
GUARDED: JsonObject = {
    "op": "start",
    "run": "talk",
    "prompt": "Mail bob@example.com that the plan is ready.",
    "tools": [
        {
            "name": "mail",
            "effect": "external",
            "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
        }
    ],
}


@pytest.mark.parametrize(
    ("call_id", "code"), [("settled", "QUESTION_SETTLED"), ("expired", "QUESTION_SETTLED"), ("never", "PACKET_UNKNOWN")]
)
def test_an_answer_to_a_guarded_run_has_one_code_whatever_the_door(desk: Desk, call_id: str, code: str) -> None:
    found: dict[str, str] = {}

    async def story() -> None:
        async with (
            opened_system(settings_of(home=desk.home)) as system,
            opened_system(settings_of(home=desk.home)) as other,
        ):
            guard, numbers = system.guard(), {"never": "9.9"}

            async def said(**operation: object) -> JsonObject:
                return await guard.answer({"run": "talk", **operation}) or {}

            assert await said(**GUARDED, boundary={"approval_wait_ms_max": 1_000}, at_ms=0) == {"ok": True}
            run_id = guard.run_id_of("talk")
            for name in ("settled", "expired"):
                wanted = await said(op="call", id=name, tool="mail", args={"to": f"{name}@evil.example"}, at_ms=0)
                assert wanted["decision"] == "ask"
                numbers[name] = (await system.archive.approvals(run_id))[0].id.rpartition("/")[2]
                if name == "settled":
                    assert await said(op="answer", id=name, approve=False, by="bea", at_ms=0) == {"ok": True}
            found["guard"] = str((await said(op="answer", id=call_id, approve=True, by="ada", at_ms=1_000)).get("code"))
            for who, one in (("here", system), ("by the inbox", other)):
                met = Met(desk, run_id, f"{run_id}/{numbers[call_id]}", one)
                for name, door in DOORS["answer"].items():
                    if name not in PATTERNS:
                        found[f"{name}, {who}"] = await code_at(door, met)
            found["start"] = str((await other.guard().answer({**GUARDED, "at_ms": 0}) or {}).get("code"))
            await guard.close()

    asyncio.run(story())
    assert found.pop("start") == "RUN_HELD"
    assert {door: said for door, said in found.items() if said != code} == {}
