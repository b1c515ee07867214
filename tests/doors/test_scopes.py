"""Each verb takes the one scope that docs/principals.md gives it, and no other beside it."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import remit
from remit import (
    Principal,
    RemitError,
    Scope,
    ScriptedEngine,
    Signal,
    System,
    SystemRequest,
    UserSignal,
    kit_of,
    tool,
    user_message,
)

DOC = (Path(__file__).parents[2] / "docs" / "principals.md").read_text()
TOMORROW_MS = int(time.time() * 1000) + 86_400_000
ORDER = {"tool": "change", "args": {"what": {"literal": "a"}}}
Runs = dict[str, str]
Verb = Callable[[System, Runs], Any]


@tool(effect="write")
def change(what: str) -> str:
    """Change something."""
    return "done"


def kit() -> Any:
    calls = [{"name": "change", "arguments": {"what": "a"}}]
    return kit_of(ScriptedEngine([{"tool_calls": calls}, {"text": "done"}]), [change])


def said(kind: Signal, run: str = "waiting", **payload: str) -> Verb:
    def tell(system: System, runs: Runs) -> Any:
        named = {name: value.format(**runs) for name, value in payload.items()}
        return system.signal(UserSignal("s", kind, runs[run], "", payload=named))

    return tell


async def listed(events: AsyncIterator[Any]) -> list[Any]:
    return [one async for one in events]


def ask(text: str = "say") -> SystemRequest:
    return SystemRequest((user_message(text),))


def of_archive(system: System, runs: Runs, name: str) -> Any:
    """A question to the archive; what is asked of a run is asked of one that has ended."""
    takes_nothing = {"runs", "approvals", "verify_all", "doubts", "has_key"}
    asked = getattr(system.archive, name)
    if name == "has_key":
        return asked
    if name == "approval":
        return asked(runs["packet"])
    if name == "packet":
        return asked(runs["packet"])
    given = asked() if name in takes_nothing else asked(runs["ended"])
    return listed(given) if name == "verify_all" else given


ARCHIVE = ["find", "runs", "root", "family", "history", "told", "approvals", "approval", "settled", "packet", "changed_sources", "verify", "verify_all", "doubts", "replay", "export"]  # fmt: skip

VERBS: dict[Scope, dict[str, list[Verb]]] = {
    Scope.READ: {
        "result": [lambda s, r: s.result(r["ended"]), lambda s, r: s.result(r["waiting"])],
        "execution": [lambda s, r: s.execution(r["waiting"])],
        "state_of": [lambda s, r: s.state_of(r["waiting"])],
        "watch": [lambda s, r: listed(s.watch(r["ended"]))],
        "rested": [lambda s, r: s.rested(r["waiting"])],
        "settle(run_id)": [lambda s, r: s.settle(r["waiting"])],
        "session": [lambda s, r: s.session("talk")],
        "text": [],  # One that stands in its turn takes no scope; another is reached through a run (test_tenants.py).
        "halts": [lambda s, r: s.halts()],
        "archive": [partial(of_archive, name=name) for name in ARCHIVE],
        "queues": [lambda s, r: s.queues.items(), lambda s, r: s.queues.overview()],
        "quotas": [lambda s, r: s.quotas.tenants(), lambda s, r: s.quotas.standings("acme")],
        "grants": [
            lambda s, r: s.grants.standings(),
            lambda s, r: s.grants.like(r["packet"]),
            lambda s, r: s.grants.same_before(r["packet"]),
        ],
    },
    Scope.START: {
        "submit": [lambda s, r: s.submit(ask(), kit())],
        "run": [lambda s, r: s.run(ask(), kit())],
        "fork": [lambda s, r: s.fork(r["waiting"], kit=kit())],
        "restore": [lambda s, r: s.restore(r["ended"], why="lost")],
        "guard": [lambda s, r: s.guard().answer({"op": "start", "run": "talk", "prompt": "do", "tools": []})],
        "answer": [],  # tests/doors/test_guard.py
        "approve": [],
    },
    Scope.SIGNAL: {
        "signal": [
            said(Signal.PAUSE),
            said(Signal.RESUME),
            said(Signal.FEEDBACK, text="well"),
            said(Signal.CANCEL),
            said(Signal.RETRY, "failed", reason="again"),
        ],
        "resume": [lambda s, r: s.resume(r["waiting"], kit=kit())],
        "take_up": [lambda s, r: s.take_up(r["waiting"], kit=kit())],
        "note": [lambda s, r: s.note(r["talk"], "", "city", '"Oslo"')],
    },
    Scope.APPROVE: {
        "signal": [],
        "approve": [said(Signal.APPROVE, packet_id="{packet}")],
        "reject": [said(Signal.REJECT, packet_id="{packet}")],
        "queues.acknowledge": [lambda s, r: s.queues.acknowledge(r["refused"], "")],
        "grants.give": [lambda s, r: s.grants.give(ORDER, until_ms=TOMORROW_MS)],
        "grants.revoke": [lambda s, r: s.grants.revoke(r["grant"])],
    },
    Scope.ADMIN: {
        "halt": [lambda s, r: s.halt("why", tenant="acme"), lambda s, r: s.halt("why", run=r["waiting"])],
        "lift": [lambda s, r: s.lift(tenant="acme"), lambda s, r: s.lift(run=r["waiting"])],
        "delete": [lambda s, r: s.delete(r["ended"])],
        "redact": [lambda s, r: s.redact(r["ended"], text="say", why="shown")],
        "resume": [],  # With changed code it takes `runs.signal` beside it, as every resume does.
    },
}
CASES = [
    pytest.param(scope, verb, id=f"{scope.value}-{name}-{place}")
    for scope, verbs in VERBS.items()
    for name, ways in verbs.items()
    for place, verb in enumerate(ways)
]


@asynccontextmanager
async def house() -> AsyncIterator[tuple[System, Runs]]:
    """A tenant with a run that has ended, one that asks, one that was refused, a session, and a grant."""
    async with remit.open(memory=True) as system:
        every = system.acting_for(Principal("acme", "root", ("*",)))
        ended = await every.run(ask(), kit_of(ScriptedEngine([{"text": "done"}])))
        talk = await every.run(
            SystemRequest((user_message("say"),), session_id="talk"), kit_of(ScriptedEngine([{"text": "done"}]))
        )
        waiting = await every.run(ask(), kit())
        assert waiting.waiting_for is not None
        refused = await every.run(ask(), kit())
        assert refused.waiting_for is not None
        (packet,) = refused.waiting_for.packet_ids
        await every.signal(UserSignal("no", Signal.REJECT, refused.run_id, "", payload={"packet_id": packet}))
        await every.settle(refused.run_id)
        failed = await every.run(ask(), kit_of(ScriptedEngine([{"tool_calls": [{"name": "absent", "arguments": {}}]}])))
        grant = await every.grants.give(ORDER, until_ms=TOMORROW_MS)
        runs = {"ended": ended.run_id, "talk": talk.run_id, "waiting": waiting.run_id, "refused": refused.run_id}
        yield system, runs | {"failed": failed.run_id, "packet": waiting.waiting_for.packet_ids[0], "grant": grant.id}


async def code_of(verb: Verb, scopes: tuple[str, ...]) -> str:
    """What a verb is refused with; empty where it is not refused."""
    async with house() as (system, runs):
        try:
            given = verb(system.acting_for(Principal("acme", "eve", scopes)), runs)
            given = await given if isinstance(given, Awaitable) else given
        except RemitError as error:
            return str(error.code)
        return str(given.get("code", "")) if isinstance(given, dict) else ""


@pytest.mark.parametrize(("scope", "verb"), CASES)
def test_the_scope_of_a_verb_is_enough_for_it_and_no_other_is(scope: Scope, verb: Verb) -> None:
    alone, every = [asyncio.run(code_of(verb, scopes)) for scopes in ((scope.value,), ("*",))]
    assert alone == every != "SCOPE_LACKING"
    others = tuple(one.value for one in Scope if one is not scope and one is not Scope.OPERATE)
    assert asyncio.run(code_of(verb, others)) == "SCOPE_LACKING"


@pytest.mark.parametrize("scope", VERBS)
def test_every_verb_of_the_table_is_used_here(scope: Scope) -> None:
    (row,) = re.findall(rf"^\| `{re.escape(scope.value)}` \|(.*)\|$", DOC, re.MULTILINE)
    assert set(re.findall(r"`([^`]+)`", row)) == set(VERBS[scope])
