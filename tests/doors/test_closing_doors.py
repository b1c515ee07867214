"""A verb that is under way when its system is closed is finished or told SYSTEM_CLOSED, wherever it was, and nothing else."""

import asyncio
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from remit.core.failure import RemitError
from remit.core.run.run_events import SYSTEM_CLOSED, Subject
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.facade import System
from tests.doors.test_closed_doors import VERBS
from tests.doors.test_tenants import STORES, Ids, asked, calls, kit, opened, outcome

# Far more than any verb waits for, where nothing takes time.
AWAITS_MAX = 60
Verb = Callable[[System, str], Awaitable[object]]


async def ended(system: System) -> str:
    """A run that has ended."""
    return (await system.run(asked("hello"), kit())).run_id


async def waiting(system: System) -> str:
    """A run that asks for a yes."""
    return (await system.run(asked("change"), kit(calls("change", what="a")))).run_id


async def _told(system: System, run_id: str, what: Signal, **payload: str) -> object:
    said = UserSignal("s-1", what, run_id, "ann", payload=payload)
    return await system.signal(said, kit=kit())


async def _first_event(system: System, run_id: str) -> object:
    return await anext(system.subscribe(Subject(run_id), since=-1))


async def _approved(system: System, run_id: str) -> object:
    return await (await system.find(run_id, kit=kit())).approve(by="ann")


# What is said to a run as it stands, beside the verbs that only look.
SAID: dict[str, tuple[Callable[[System], Awaitable[str]], Verb]] = {
    "start": (ended, lambda system, _: system.start(asked("again"), kit())),
    "run": (ended, lambda system, _: system.run(asked("again"), kit())),
    "fork": (ended, lambda system, run_id: system.fork(run_id, by="ann", kit=kit())),
    "fork of a waiting run": (waiting, lambda system, run_id: system.fork(run_id, by="ann", kit=kit())),
    "retry": (ended, lambda system, run_id: _told(system, run_id, Signal.RETRY, reason="again")),
    "resume": (waiting, lambda system, run_id: system.resume(run_id, kit=kit())),
    "approve": (waiting, _approved),
    "cancel": (waiting, lambda system, run_id: _told(system, run_id, Signal.CANCEL)),
    "feedback": (waiting, lambda system, run_id: _told(system, run_id, Signal.FEEDBACK, text="hurry")),
    "events": (ended, _first_event),
    "costs": (ended, lambda system, _: system.costs()),
    "delete": (ended, lambda system, run_id: system.delete(run_id)),
    "halt": (ended, lambda system, _: system.halt("stop", by="ann", tool="change")),
    "verify": (ended, lambda system, run_id: system.archive.verify(run_id)),
}


async def _closed_meanwhile(system: System, verb: Awaitable[object], awaits: int) -> tuple[str, bool]:
    """What a verb says whose system is closed after so many turns of the loop; and whether it had said so before."""

    async def told() -> str:
        try:
            await verb
        except RemitError as error:
            return str(error.code)
        return "finished"

    task = asyncio.create_task(told())
    for _ in range(awaits):
        await asyncio.sleep(0)
    was_done = task.done()
    await system.close()
    return await asyncio.wait_for(task, 5), was_done


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("name", SAID)
def test_a_verb_whose_system_is_closed_at_any_of_its_awaits_is_finished_or_told_so(
    kind: str, name: str, tmp_path: Path
) -> None:
    prepare, verb = SAID[name]

    async def story(awaits: int) -> bool:
        system = opened(STORES[kind](tmp_path / str(awaits)), Ids())
        said, was_done = await _closed_meanwhile(system, verb(system, await prepare(system)), awaits)
        assert was_done or (awaits, said) in ((awaits, "finished"), (awaits, SYSTEM_CLOSED))
        return was_done

    # A store on a disk takes its time to open; its threads make every story another one anyway.
    for awaits in range(0, AWAITS_MAX, 6 if kind == "embedded" else 1):
        if asyncio.run(story(awaits)):
            break


@pytest.mark.parametrize("kind", STORES)
def test_a_reader_of_a_system_that_is_closed_is_answered_as_before_or_told_so(kind: str, tmp_path: Path) -> None:
    async def story(home: Path, name: str, verb: Callable[..., Awaitable[object]], awaits: int) -> None:
        system = opened(STORES[kind](home), Ids())
        run_id = await ended(system)
        task = asyncio.create_task(outcome(verb, system, run_id))
        for _ in range(awaits):
            await asyncio.sleep(0)
        await system.close()
        said = await asyncio.wait_for(task, 5)
        assert not any(f" {wrong} " in said for wrong in ("STORE_CLOSED", "STORE_DAMAGED", "STORE_BEHIND_ITS_LOG")), (
            name
        )

    for number, (name, verb) in enumerate(VERBS):
        for awaits in (number % 4,) if kind == "embedded" else (0, 1, 2, 4):
            asyncio.run(story(tmp_path / f"{number}-{awaits}", name, verb, awaits))


@pytest.mark.parametrize("kind", STORES)
def test_a_store_is_not_closed_while_a_question_to_it_is_under_way(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = STORES[kind](tmp_path)
        system = opened(store, Ids())
        run_id = await ended(system)
        asked, may_answer, last = asyncio.Event(), asyncio.Event(), store.log.last
        is_closed, close = asyncio.Event(), store.close

        async def held(name: str) -> object:
            asked.set()
            await may_answer.wait()
            assert not is_closed.is_set(), "it was closed under a caller"
            return await last(name)

        async def closed() -> None:
            is_closed.set()
            await close()

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(store.log, "last", held)
            patched.setattr(store, "close", closed)
            forking = asyncio.create_task(system.fork(run_id, by="ann", kit=kit()))
            await asked.wait()
            closing = [asyncio.create_task(system.close()) for _ in range(2)]
            await asyncio.wait(closing, timeout=0.1)
            assert not any(one.done() for one in closing)
            may_answer.set()
            with pytest.raises(RemitError, match=SYSTEM_CLOSED):
                await asyncio.wait_for(forking, 5)
            await asyncio.wait_for(asyncio.gather(*closing), 5)
        assert is_closed.is_set()

    asyncio.run(story())


# Threads change places all the time, so that what is closed under its user is met within seconds. `VERB` is one of SAID.
RACE = """
import asyncio, random, sys, tempfile
from pathlib import Path
from tests.doors.test_closing_doors import SAID, STORES, Ids, opened

sys.setswitchinterval(1e-6)
chance, wrong = random.Random(7), set()

async def once(home, name):
    prepare, verb = SAID[name]
    system = opened(STORES["embedded"](home), Ids())
    run_id = await prepare(system)
    task = asyncio.ensure_future(verb(system, run_id))
    await asyncio.sleep(chance.random() * 0.003)
    await system.close()
    (said,) = await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 20)
    if isinstance(said, BaseException) and getattr(said, "code", "") != "SYSTEM_CLOSED":
        wrong.add((name, repr(said)[:300]))

with tempfile.TemporaryDirectory() as homes:
    for number in range(int(sys.argv[1])):
        for name in SAID:
            asyncio.run(once(Path(homes, f"{number}-{name}"), name))
print(sorted(wrong))
"""


def test_no_process_dies_of_a_system_that_is_closed_while_its_verbs_are_under_way() -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", RACE, "4"]
    raced = subprocess.run(command, check=False, capture_output=True, text=True, timeout=240)
    assert (raced.returncode, raced.stdout.strip()) == (0, "[]"), raced.stderr[-3_000:]
