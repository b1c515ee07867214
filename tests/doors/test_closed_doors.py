"""After a system was closed every verb says so, by one code, whatever it would have needed of the store."""

import asyncio
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.core.failure import RemitError
from remit.core.run.run_events import SYSTEM_CLOSED
from tests.doors.test_tenants import (
    ARCHIVE,
    GRANTS,
    LINEAGES,
    QUEUES,
    QUOTAS,
    STORES,
    SYSTEM,
    Ids,
    asked,
    calls,
    kit,
    opened,
    outcome,
    verbs_of,
)

# What needs nothing of the store: how it is closed, what is still under way in this process, and what it was given.
ANSWERED = {
    "store",
    "close",
    "begun",
    "abandoned",
    "has_key",
    "limits_of",
    "check_answer",
    "now_ms",
    "learn",
    "approve",
}
VERBS = [
    (f"{number}: {name}", verb)
    for number, table in enumerate((SYSTEM, ARCHIVE, QUEUES, QUOTAS, LINEAGES, GRANTS))
    for name in table
    if name not in ANSWERED and (name != "acting_for" or table is SYSTEM)
    for verb in verbs_of(table, name)
]


@pytest.mark.parametrize("kind", STORES)
def test_every_verb_of_a_closed_system_says_that_it_is_closed(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = STORES[kind](tmp_path)
        system = opened(store, Ids())
        run_id = (await system.run(asked("hello"), kit())).run_id
        halts = len(store.halts.since(0))
        await system.close()
        said = {name: await outcome(verb, system, run_id) for name, verb in VERBS}
        assert {name: told for name, told in said.items() if f"RemitError {SYSTEM_CLOSED} " not in told} == {}
        if kind == "memory":
            assert len(store.halts.since(0)) == halts

    asyncio.run(story())


@pytest.mark.parametrize("kind", STORES)
def test_a_guard_of_a_closed_system_answers_every_operation_that_it_is_closed(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        store = STORES[kind](tmp_path)
        system = opened(store, Ids())
        guard, begun = system.guard(), {"op": "start", "run": "a", "prompt": "x", "tools": []}
        assert await guard.answer(begun) == {"ok": True}
        turns = len(await store.journal.read(run_id := guard.run_id_of("a")))
        await system.close()
        for op in (
            {**begun, "run": "b"},
            {"op": "call", "run": "a", "id": "1", "tool": "t", "args": {}},
            {"op": "result", "run": "a", "id": "1", "tool": "t", "content": "x"},
            {"op": "answer", "run": "a", "id": "1", "approve": True, "by": "ann"},
            {"op": "end", "run": "a"},
        ):
            said = await guard.answer(op)
            assert said is not None
            assert (op["op"], said.get("code")) == (op["op"], SYSTEM_CLOSED)
        with pytest.raises(RemitError, match=SYSTEM_CLOSED):
            await guard.hear()
        if kind == "memory":
            assert len(store.journal.turns_of(run_id)) == turns  # type: ignore[attr-defined]

    asyncio.run(story())


def test_what_has_become_of_code_is_not_looked_at_in_a_closed_system(tmp_path: Path) -> None:
    async def story() -> None:
        system = system_on(STORES["embedded"](tmp_path), signers=frozenset)
        run_id = (await system.run(asked("hello"), kit())).run_id
        await system.close()
        with pytest.raises(RemitError, match=SYSTEM_CLOSED):
            await system.archive.changed_sources(run_id)

    asyncio.run(story())


def test_waiting_for_another_process_ends_when_the_system_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        store = STORES["memory"](Path())
        system = opened(store, Ids())
        run_id = (await system.run(asked("change"), kit(calls("change", what="a")))).run_id
        is_held = store.leases.is_held

        closing: list[asyncio.Task[None]] = []

        async def closed_meanwhile(name: str) -> bool:
            # The store waits for this very question before it is closed.
            closing.append(asyncio.create_task(system.close()))
            await asyncio.sleep(0)
            return await is_held(name)

        monkeypatch.setattr(store.leases, "is_held", closed_meanwhile)
        with pytest.raises(RemitError, match=SYSTEM_CLOSED):
            await system.rested(run_id)
        await asyncio.gather(*closing)

    asyncio.run(story())
