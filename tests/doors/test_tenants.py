"""Two tenants on one store: for a principal of one, whatever is of the other looks as if it had never been started.

Every verb is called in two worlds, one with the other tenant's runs and one without, with the same ids and names of tenants.
Whatever comes back is compared byte for byte, also with what is given for ids and tenants that never were. The verbs are
found by looking: one that is not called here fails, and so does one that takes a tenant and is not called with another's.
"""

import asyncio
import inspect
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import override

import remit
from remit import ModelRequest, ModelResult, Run, StreamHandler, SystemRequest, SystemResponse
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.folded.store import FoldedStore
from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.leases import MemoryLeases
from remit.backend.memory.store import MemoryStore
from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.storage import RunEntry, RunListing
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.queue import QueueLimits
from remit.core.limits.quota import Period, Quota
from remit.core.record import BlobRef
from remit.core.run.halt import HaltKind, HaltScope
from remit.core.run.messages import user_message
from remit.core.run.principal import PRINCIPAL_FOREIGN, SCOPE_LACKING, Principal, Scope
from remit.core.run.run_events import RunEvent, Subject
from remit.core.run.signals import Signal, UserSignal
from remit.inference.scripted.engine import ScriptedEngine
from remit.observe.linked_turns import references
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.facade import System
from remit.orchestrate.guard.guard import Guard
from remit.orchestrate.history.archive import Archive
from remit.orchestrate.loop.offspring import Lineages
from remit.orchestrate.people.grants import Grants
from remit.orchestrate.people.queues import Queues
from remit.orchestrate.ports import Store
from remit.orchestrate.setup.kit import Kit, Terms, engine_kit
from remit.orchestrate.tenants.tenancy import TenantStandings
from remit.tool.declare.decorator import tool
from remit.tool.delegate import delegate
from remit.tool.registry import Registry
from tests.simulation.shared_store import PoorLog

NOON = 1_700_000_000_000
ACME = Principal("acme", "ada", ("*",))
GLOBEX = Principal("globex", "bob", ("*",))
# Ids as the house gives them, of runs that are never started.
GUESSED = "r-guessed-0001"
LONG = "x" * 5_000
PATIENCE_S = 60
LEASE = {"input_tokens": 50_000, "output_tokens": 10_000, "tool_calls": 5, "steps": 20}


class Noon:
    """A clock that stands still, so that two worlds are alike."""

    def now_ms(self) -> int:
        """Noon."""
        return NOON


@tool(effect="read", network=False)
def look(what: str) -> str:
    """Look at something long."""
    return LONG


@tool(effect="write")
def change(what: str) -> str:
    """Change something."""
    return "done"


def kit(*replies: dict[str, Any]) -> Kit:
    """A model that says this, and the tools."""
    helper = delegate("helper", description="help", lease=LEASE)
    return engine_kit(ScriptedEngine([*replies, {"text": "done"}]), Registry([look, change, helper]))


def calls(name: str, **arguments: object) -> dict[str, Any]:
    """A reply that proposes a call."""
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def asked(text: str, **fields: Any) -> SystemRequest:
    """A request that has nothing by chance."""
    return SystemRequest((user_message(text),), request_id="q", trace_id="0" * 32, **fields)


async def no_kit(state: object) -> Kit:
    """What runs of earlier processes work with."""
    return kit()


class Ids:
    """Ids in order; what begins after a leap has the same ones in every world."""

    def __init__(self) -> None:
        self._ids = count()

    def __call__(self) -> str:
        """The next one."""
        return f"r-{next(self._ids):04}"

    def leap(self) -> None:
        """Go on far beyond what was given."""
        self._ids = count(1_000)


def opened(store: Store, ids: Ids) -> System:
    """A system whose ids and times follow from nothing but what it was told."""
    quotas = [Quota("*", Period.DAY, Budget(steps=10_000))]
    queues = [QueueLimits("review", load_max=1)]
    return System(store, clock=Noon(), find_kit=no_kit, new_id=ids, quotas=quotas, queues=queues)


async def live(system: System, principal: Principal) -> dict[str, str]:
    """What happens in a tenant: a session with a long text, a run with a child, one that asks, one that is halted."""
    acting = system.acting_for(principal)
    session = await acting.run(asked("look", session_id="talk"), kit(calls("look", what="a")))
    parent = await acting.run(asked("help"), kit(calls("helper", task="look at it")))
    waiting = await acting.run(asked("change"), kit(calls("change", what="a")))
    assert waiting.waiting_for is not None
    (child,) = [name for name in await acting.archive.family(parent.run_id) if name != parent.run_id]
    return {"ended": session.run_id, "parent": parent.run_id, "child": child, "waiting": waiting.run_id}


class Silent(ScriptedEngine):
    """A model that does not answer, so that its run is driven for as long as the test takes."""

    @override
    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """Wait."""
        await asyncio.Event().wait()
        raise AssertionError("no party wakes it")


@asynccontextmanager
async def worlds() -> AsyncIterator[tuple[System, System, dict[str, str]]]:
    """A store with both tenants, and one with the first alone; and the ids of the other tenant's runs."""
    ids = Ids(), Ids()
    both, alone = opened(MemoryStore(), ids[0]), opened(MemoryStore(), ids[1])
    try:
        async with asyncio.timeout(PATIENCE_S):
            for system in (both, alone):
                await live(system, ACME)
            others = await live(both, GLOBEX)
            theirs = both.acting_for(GLOBEX)
            others["driven"] = await theirs.submit(asked("wait"), engine_kit(Silent([{"text": "never"}]), Registry([])))
            await both.halt("looked odd", by="op", run=others["ended"])
            await both.halt("looked odd", by="op", tenant="initech")
            await theirs.grants.give(ORDER, until_ms=NOON + 1_000)
            for one in ids:
                one.leap()
            yield both, alone, others
    finally:
        await both.close()
        await alone.close()


Verb = Callable[[System, str], Any]


def entry(run_id: str) -> RunEntry:
    """What a caller may claim to know of a run."""
    return RunEntry(run_id, RunListing(1), 3)


async def listed(turns: AsyncIterator[Any]) -> list[Any]:
    """All of it."""
    return [one async for one in turns]


async def overheard(system: System, subject: Subject) -> list[tuple[str, int]]:
    """What a subscriber hears of what was written before, until nothing more is there."""
    async with system.subscribe(subject, since=-1) as events:
        heard = []
        while (event := await events.taken()) is not None:
            heard.append((event.run_id, event.seq))
    return heard


def told(system: System, run_id: str) -> str:
    """Listen for nothing."""
    system.listen(Listener(), run_id)()
    return "listened"


async def exported(system: System, run_id: str) -> list[bytes]:
    """A run as a file."""
    return list(await system.archive.export(run_id))


def said(kind: Signal) -> Verb:
    """A signal to a run."""
    payloads: dict[Signal, Callable[[str], dict[str, Any]]] = {
        Signal.APPROVE: lambda run: {"packet_id": f"{run}/1.0"},
        Signal.REJECT: lambda run: {"packet_id": f"{run}/1.0"},
        Signal.FEEDBACK: lambda run: {"text": "well done"},
    }
    make = payloads.get(kind)
    return lambda s, run: s.signal(UserSignal("one", kind, run, "ada", payload=make(run) if make else {}))


Table = dict[str, Verb | list[Verb]]
SYSTEM: Table = {
    "acting_for": lambda s, run: s.acting_for(GLOBEX),
    "store": lambda s, run: s.store,
    "submit": [
        lambda s, run: s.submit(asked("a", user_id="bob"), kit()),
    ],
    "run": [
        lambda s, run: s.run(asked("more", session_id="talk"), kit(calls("look", what="b"))),
        lambda s, run: s.run(asked("more", session_id=f"after-{run}"), kit()),
    ],
    "start": [
        lambda s, run: s.start(asked("a", user_id="bob"), kit()),
    ],
    "find": lambda s, run: s.find(run),
    "listen": told,
    "follow": lambda s, run: s.follow(run, since=None, chunks=False),
    "is_guarded": lambda s, run: s.is_guarded(run),
    "subscribe": [
        lambda s, run: overheard(s, Subject(run or "nobody")),
        lambda s, run: overheard(s, Subject(run or "nobody", children=True)),
        lambda s, run: overheard(s, Subject(session_id="talk", children=True)),
        lambda s, run: overheard(s, Subject(children=True)),
    ],
    "is_left": lambda s, run: s.is_left(run, is_quiet=True),
    "guard": lambda s, run: s.guard().answer({"op": "call", "run": run or "none", "tool": "look", "args": {}}),
    "result": lambda s, run: s.result(run),
    "execution": lambda s, run: s.execution(run),
    "order_preview": lambda s, run: s.order_preview(run),
    "resume": lambda s, run: s.resume(run, kit=kit()),
    "take_up": lambda s, run: s.take_up(run, kit=kit()),
    "halt": [
        lambda s, run: s.halt("why", run=run),
        lambda s, run: s.halt("why", tool="look"),
        lambda s, run: s.halt("why"),
    ],
    "lift": [
        lambda s, run: s.lift(run=run),
        lambda s, run: s.lift(tenant="acme"),
        lambda s, run: s.lift(),
    ],
    "halts": lambda s, run: s.halts(),
    "signal": [said(kind) for kind in Signal],
    "fork": lambda s, run: s.fork(run, kit=kit()),
    "restore": lambda s, run: s.restore(run, why="lost"),
    "delete": lambda s, run: s.delete(run),
    "redact": lambda s, run: s.redact(run, text="secret", why="shown"),
    "rested": lambda s, run: s.rested(run),
    "rebuild": lambda s, run: s.rebuild(),
    "end_orphans": lambda s, run: s.end_orphans(),
    "session": [
        lambda s, run: s.session("talk"),
        lambda s, run: s.session(run),
    ],
    "text": [
        lambda s, run: s.text(BlobRef(b"\1" * 32, 5_000), run_id=run),
        lambda s, run: s.text(BlobRef(b"\1" * 32, 5_000)),
    ],
    "note": lambda s, run: s.note(run, "ada", "city", '"Oslo"'),
    "watch": lambda s, run: listed(s.watch(run)),
    "begun": lambda s, run: s.begun(),
    "settle": [lambda s, run: s.settle(run), lambda s, run: s.settle()],
    "close": lambda s, run: s.close(),
    "abandoned": lambda s, run: s.abandoned,
    "costs": [
        lambda s, run: s.costs(),
        lambda s, run: s.costs(run or "nobody"),
        lambda s, run: s.costs(by="tenant"),
    ],
    "state_of": lambda s, run: s.state_of(run),
    "driving": lambda s, run: s.driving(),
    "grants": lambda s, run: s.grants.standings(),
}
ARCHIVE: Table = {
    "has_key": lambda s, run: s.archive.has_key,
    "find": [
        lambda s, run: s.archive.find(run),
        lambda s, run: s.archive.find("r-"),
        lambda s, run: s.archive.find("last"),
    ],
    "absent": lambda s, run: s.archive.absent(run),
    "runs": [
        lambda s, run: s.archive.runs(with_children=True),
        lambda s, run: s.archive.runs(waiting_only=True, limit=1),
        lambda s, run: s.archive.runs(before=run or "nobody"),
    ],
    "root": lambda s, run: s.archive.root(run),
    "family": lambda s, run: s.archive.family(run),
    "history": lambda s, run: s.archive.history(run),
    "told": lambda s, run: s.archive.told(run),
    "approvals": [lambda s, run: s.archive.approvals(), lambda s, run: s.archive.approvals(run or "nobody")],
    "in_doubt": lambda s, run: s.archive.in_doubt(entry(run)),
    "approval": [lambda s, run: s.archive.approval(run), lambda s, run: s.archive.approval(f"{run}/1.0")],
    "settled": [
        lambda s, run: s.archive.settled(run or "nobody"),
        lambda s, run: s.archive.settled(run or "nobody", "1.0"),
    ],
    "packet": [lambda s, run: s.archive.packet(run), lambda s, run: s.archive.packet(f"{run}+")],
    "changed_sources": lambda s, run: s.archive.changed_sources(run),
    "glimpse": lambda s, run: s.archive.glimpse(entry(run)),
    "verify": lambda s, run: s.archive.verify(run),
    "verify_halts": lambda s, run: s.archive.verify_halts(),
    "has_met": [
        lambda s, run: s.archive.has_met(HaltScope(HaltKind.RUN, run)),
    ],
    "verify_all": lambda s, run: listed(s.archive.verify_all()),
    "doubts": [lambda s, run: s.archive.doubts(), lambda s, run: s.archive.doubts(run or "nobody")],
    "replay": lambda s, run: s.archive.replay(run),
    "export": exported,
}
QUEUES: Table = {
    "acting_for": lambda s, run: None,  # It takes a shelf, and a caller with a shelf of the store operates it.
    "limits_of": lambda s, run: s.queues.limits_of("review"),
    "items": lambda s, run: s.queues.items(),
    "overview": lambda s, run: s.queues.overview(),
    "acknowledge": lambda s, run: s.queues.acknowledge(run, "ada"),
    "check_answer": lambda s, run: None,  # It looks at nothing but a state that the caller has.
}
QUOTAS: Table = {
    "standings": [
        lambda s, run: s.quotas.standings("acme"),
    ],
    "tenants": lambda s, run: s.quotas.tenants(),
}
LINEAGES: Table = {
    "learn": lambda s, run: None,  # It takes a manifest, and tells nothing.
    "of": lambda s, run: s.lineages.of(run),
    "family": lambda s, run: s.lineages.family(run),
    "is_beneath": lambda s, run: s.lineages.is_beneath(run, "top"),
}


def handle(system: System, run_id: str) -> Run[SystemResponse]:
    """A handle on a run, as a caller may make it who knows an id."""

    async def read(response: SystemResponse) -> SystemResponse:
        return response

    return Run(system, run_id, read)


RUN: Table = {
    "read_by": lambda s, run: None,  # It asks nothing of the system.
    "result": lambda s, run: handle(s, run).result(),
    "events": lambda s, run: listed(handle(s, run).events()),
    "approve": [lambda s, run: handle(s, run).approve(), lambda s, run: handle(s, run).approve(f"{run}/1.0")],
    "reject": [lambda s, run: handle(s, run).reject(), lambda s, run: handle(s, run).reject(f"{run}/1.0")],
    "answer": [lambda s, run: handle(s, run).answer("a"), lambda s, run: handle(s, run).answer("a", f"{run}/1.0")],
    "cancel": lambda s, run: handle(s, run).cancel(),
    "pause": lambda s, run: handle(s, run).pause(),
    "resume": lambda s, run: handle(s, run).resume(),
    "feedback": lambda s, run: handle(s, run).feedback("well done"),
}


ORDER = {"tool": "change", "args": {"what": {"literal": "a"}}}


GRANTS: Table = {
    "acting_for": lambda s, run: None,  # It takes what is past, and a caller who has all of it operates the store.
    "now_ms": lambda s, run: s.grants.now_ms,
    "standings": lambda s, run: s.grants.standings(),
    "give": lambda s, run: s.grants.give(ORDER, until_ms=NOON + 1_000, by="bob"),
    "revoke": [lambda s, run: s.grants.revoke("g1"), lambda s, run: s.grants.revoke("globex:g1")],
    "approve": lambda s, run: None,  # It looks at nothing but a state that the caller has.
    "like": [lambda s, run: s.grants.like(f"{run}/1.2"), lambda s, run: s.grants.like(f"{run}/1.1")],
    "same_before": [lambda s, run: s.grants.same_before(f"{run}/1.2"), lambda s, run: s.grants.same_before(run)],
}


def judged(op: str, **fields: Any) -> Verb:
    """An operation of the guard's protocol, about a conversation that has this name."""
    return lambda s, run: s.guard().answer({"op": op, "run": run or "none", **fields})


def started(system: System, tenant: str) -> Any:
    """A conversation that is said to be of a tenant."""
    return system.guard().answer({"op": "start", "run": "r", "prompt": "x", "tools": [], "tenant": tenant})


GUARD: Table = {
    "line_bytes_max": lambda s, run: s.guard().line_bytes_max,
    "runs": lambda s, run: s.guard().runs,
    "run_id_of": lambda s, run: s.guard().run_id_of(run or "none"),
    "answer": [
        judged("call", id="c", tool="look", args={}),
        judged("result", id="c", tool="look", content="x"),
        judged("answer", id="c", approve=True),
        judged("end", outcome="done"),
    ],
    "line": lambda s, run: s.guard().line(json.dumps({"op": "call", "run": run, "tool": "look"}).encode()),
    "too_long": lambda s, run: s.guard().too_long(f'{{"op": "result", "run": "{run}"'.encode()),
    "hear": lambda s, run: s.guard().hear(),
    "close": lambda s, run: s.guard().close(),
}
TABLES = {
    System: SYSTEM,
    Archive: ARCHIVE,
    Queues: QUEUES,
    TenantStandings: QUOTAS,
    Lineages: LINEAGES,
    Run: RUN,
    Guard: GUARD,
    Grants: GRANTS,
}
# Every verb that takes a tenant, alone or in a record, with the name of one.
TENANTS: dict[type, Table] = {
    System: {
        "acting_for": lambda s, tenant: s.acting_for(Principal(tenant, "bob", ("*",))),
        "submit": lambda s, tenant: s.submit(asked("a", tenant_id=tenant), kit()),
        "run": lambda s, tenant: s.run(asked("a", tenant_id=tenant), kit()),
        "start": lambda s, tenant: s.start(asked("a", tenant_id=tenant), kit()),
        "subscribe": [
            lambda s, tenant: overheard(s, Subject(tenant_id=tenant)),
            lambda s, tenant: overheard(s, Subject(tenant_id=tenant, children=True)),
            lambda s, tenant: overheard(s, Subject(session_id="talk", tenant_id=tenant)),
        ],
        "halt": lambda s, tenant: s.halt("why", tenant=tenant),
        "lift": lambda s, tenant: s.lift(tenant=tenant),
        "session": lambda s, tenant: s.session("talk", tenant_id=tenant),
        "costs": [
            lambda s, tenant: s.costs(tenant_id=tenant),
            lambda s, tenant: s.costs(tenant_id=tenant, by="tenant"),
        ],
    },
    Archive: {"has_met": lambda s, tenant: s.archive.has_met(HaltScope(HaltKind.TENANT, tenant))},
    Queues: {
        "acting_for": lambda s, tenant: None,  # It takes a shelf, and a caller with a shelf of the store operates it.
        "items": lambda s, tenant: s.queues.items(tenant_id=tenant),
    },
    TenantStandings: {"standings": lambda s, tenant: s.quotas.standings(tenant)},
    Grants: {
        "acting_for": lambda s, tenant: None,  # As above.
        "give": lambda s, tenant: s.grants.give(ORDER, until_ms=NOON + 1_000, tenant=tenant),
        "revoke": lambda s, tenant: s.grants.revoke(f"{tenant}:g1"),
    },
    Guard: {
        "run_id_of": lambda s, tenant: s.guard().run_id_of("r", tenant),
        "answer": [
            started,
            lambda s, tenant: s.guard().answer({"op": "call", "run": "r", "tool": "look", "tenant": tenant}),
        ],
    },
}
# What a tenant is named by.
BY_TENANT = {"tenant", "tenant_id", "subject", "request", "scope", "principal", "operation", "grant", "grant_id"}
# What looks something up finds nothing in another tenant; to act for one is refused.
LOOKS = {"subscribe", "session", "costs", "has_met", "items", "standings"}


def verbs_of(table: Table, name: str) -> list[Verb]:
    """The ways in which a verb is called here."""
    verbs = table[name]
    return verbs if isinstance(verbs, list) else [verbs]


def cases(table: Table) -> list[tuple[str, Verb]]:
    """Every way in which a verb of a table is called."""
    return [(f"{name}.{place}", verb) for name in table for place, verb in enumerate(verbs_of(table, name))]


def public(kind: type) -> dict[str, Any]:
    """The public members of a class of the house."""
    own = [vars(one) for one in kind.__mro__ if one.__module__.startswith("remit.")]
    return {name: member for names in own for name, member in names.items() if not name.startswith("_")}


async def outcome(verb: Verb, system: System, run_id: str) -> str:
    """What comes back, all of it: what is raised with its code, words and details, or what is given."""
    try:
        given = verb(system, run_id)
        given = await given if isinstance(given, Awaitable) else given
    except RemitError as error:
        details = json.dumps(error.details, sort_keys=True, default=str)
        return f"{type(error).__name__} {error.code} {error.message} {details}"
    if isinstance(given, RemitError):
        return f"given {given.code} {given.message} {given.details}"
    # Turns tell how long tools took, so that heads of runs that are alike differ.
    return re.sub(r"head='[0-9a-f]{64}'", "head", f"{type(given).__name__} {given!r}")


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.__name__)
def test_every_public_verb_is_called_here(kind: type) -> None:
    assert set(TABLES[kind]) == set(public(kind))


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.__name__)
def test_every_public_verb_that_takes_a_tenant_is_called_with_another_one(kind: type) -> None:
    functions = {name: member for name, member in public(kind).items() if inspect.isfunction(member)}
    takes = {name for name, verb in functions.items() if BY_TENANT & set(inspect.signature(verb).parameters)}
    assert set(TENANTS.get(kind, {})) == takes


@pytest.mark.parametrize("kind", TENANTS, ids=lambda kind: kind.__name__)
def test_another_tenant_is_one_that_never_was(kind: type) -> None:
    async def compare() -> None:
        async with worlds() as (both, alone, _):
            here, there = both.acting_for(ACME), alone.acting_for(ACME)
            for name, verb in cases(TENANTS[kind]):
                never = await outcome(verb, here, "nobody")
                assert never == await outcome(verb, there, "nobody")
                # One that has runs, and one that is halted.
                for tenant in ("globex", "initech"):
                    answered = await outcome(verb, here, tenant)
                    assert answered == await outcome(verb, there, tenant), name
                    assert answered.replace(tenant, "ID") == never.replace("nobody", "ID"), name

    asyncio.run(compare())


@pytest.mark.parametrize("name", sorted(LOOKS))
def test_a_look_at_another_tenant_finds_what_an_operator_finds_in_one_that_never_was(name: str) -> None:
    async def compare() -> None:
        system = opened(MemoryStore(), Ids())
        try:
            await live(system, GLOBEX)
            for table in TENANTS.values():
                for verb in verbs_of(table, name) if name in table else []:
                    found, nothing = [
                        await outcome(verb, who, tenant)
                        for who, tenant in ((system.acting_for(ACME), "globex"), (system, "nobody"))
                    ]
                    # A quota of every tenant holds for one that never was, too, and is no tenant's to look at.
                    assert found == ("list []" if name == "standings" else nothing)
        finally:
            await system.close()

    asyncio.run(compare())


# What tells something of what is not there: what it is asked with, or that there is nothing.
SAYS_NOTHING = {
    ("System", "listen"),
    ("System", "is_guarded"),
    ("System", "is_left"),
    ("System", "session"),
    ("Run", "read_by"),
    ("Queues", "check_answer"),
    ("Archive", "absent"),
    ("Archive", "in_doubt"),
    ("Archive", "glimpse"),
    ("Archive", "settled"),
    ("Archive", "has_met"),
    ("Archive", "doubts"),
    *(("Lineages", name) for name in LINEAGES),
}


@pytest.mark.parametrize("kind", [System, Archive, Queues, Run], ids=lambda kind: kind.__name__)
def test_a_run_that_never_was_is_not_found_by_any_verb(kind: type) -> None:
    async def ask() -> None:
        async with worlds() as (_, alone, _others):
            acting = alone.acting_for(ACME)
            for name, member in public(kind).items():
                parameters = inspect.signature(member).parameters if inspect.isfunction(member) else {}
                takes_run = kind is Run or {"run_id", "run", "signal"} & set(parameters)
                if takes_run and (kind.__name__, name) not in SAYS_NOTHING:
                    said = [await outcome(verb, acting, GUESSED) for verb in verbs_of(TABLES[kind], name)]
                    assert any("RUN_NOT_FOUND" in one for one in said), (name, said)

    asyncio.run(ask())


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.__name__)
def test_what_is_of_another_tenant_is_what_nobody_started(kind: type) -> None:
    async def compare() -> None:
        async with worlds() as (both, alone, others):
            here, there = both.acting_for(ACME), alone.acting_for(ACME)
            for name, verb in cases(TABLES[kind]):
                answered = ""
                for run_id in (*others.values(), GUESSED, ""):
                    answered = await outcome(verb, here, run_id)
                    assert answered == await outcome(verb, there, run_id), name
                # What was begun differs from what was begun before it, in both worlds alike.
                if answered.startswith(SystemResponse.__name__):
                    continue
                for run_id in others.values():
                    answered, guessed = [await outcome(verb, here, one) for one in (run_id, GUESSED)]
                    assert answered.replace(run_id, "ID") == guessed.replace(GUESSED, "ID"), name

    asyncio.run(compare())


STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda home: MemoryStore(),
    "embedded": EmbeddedStore.open,
    "folded": lambda home: FoldedStore(PoorLog(), MemoryLeases(), MemoryBlobs()),
}


@pytest.mark.parametrize("kind", STORES)
def test_on_every_store_tenants_are_apart_and_each_finds_its_own(kind: str, tmp_path: Path) -> None:
    async def compare() -> None:
        system = opened(STORES[kind](tmp_path), Ids())
        try:
            mine, others = await live(system, ACME), await live(system, GLOBEX)
            acting = system.acting_for(ACME)
            for run_id in others.values():
                for name in ("result", "execution", "state_of", "watch", "rested"):
                    (verb,) = verbs_of(SYSTEM, name)
                    answered = await outcome(verb, acting, run_id)
                    assert answered.replace(run_id, "ID") == (await outcome(verb, acting, GUESSED)).replace(
                        GUESSED, "ID"
                    )
            found = [one.run_id for one in await acting.archive.runs(with_children=True)]
            assert sorted(found) == sorted(mine.values())
            assert (await acting.session("talk")).run_id == mine["ended"]
            every = {one.listing.tenant_id for one in await system.archive.runs()}
            assert every == {"acme", "globex"}
            with pytest.raises(RequestRejected) as refused:
                await system.session("talk")
            assert refused.value.code == "SESSION_AMBIGUOUS"
            assert (await system.session("talk", tenant_id="globex")).run_id == others["ended"]
        finally:
            await system.close()

    asyncio.run(compare())


def test_a_long_text_is_reached_through_a_run_that_one_may_read() -> None:
    async def reach() -> None:
        system = opened(MemoryStore(), Ids())
        try:
            mine, others = await live(system, ACME), await live(system, GLOBEX)
            acting, other = system.acting_for(ACME), system.acting_for(GLOBEX)
            turns = (await other.archive.history(others["ended"])).turns
            long = next(ref for turn in turns for ref in references(turn))
            assert await other.text(long, run_id=others["ended"]) == LONG
            assert await system.text(long) == LONG
            # The same text is kept once, and each reaches it through its own run alone.
            assert await acting.text(long, run_id=mine["ended"]) == LONG
            for run_id, code in (
                (others["ended"], "RUN_NOT_FOUND"),
                ("", "RUN_NOT_FOUND"),
                (mine["waiting"], "BLOB_MISSING"),
            ):
                with pytest.raises(RemitError) as refused:
                    await acting.text(long, run_id=run_id)
                assert refused.value.code == code
        finally:
            await system.close()

    asyncio.run(reach())


def test_a_verb_without_its_scope_is_refused_and_says_which() -> None:
    async def refuse() -> None:
        system = opened(MemoryStore(), Ids())
        try:
            mine = await live(system, ACME)
            bare = system.acting_for(Principal("acme", "eve"))
            needed = {
                "submit": Scope.START,
                "result": Scope.READ,
                "resume": Scope.SIGNAL,
                "fork": Scope.START,
                "delete": Scope.ADMIN,
                "note": Scope.SIGNAL,
                "rebuild": Scope.OPERATE,
            }
            for name, scope in needed.items():
                answered = await outcome(verbs_of(SYSTEM, name)[0], bare, mine["ended"])
                assert SCOPE_LACKING in answered, answered
                assert scope.value in answered, answered
            for table, name in ((ARCHIVE, "told"), (QUEUES, "overview"), (QUOTAS, "tenants")):
                assert SCOPE_LACKING in await outcome(verbs_of(table, name)[0], bare, mine["ended"])
        finally:
            await system.close()

    asyncio.run(refuse())


def test_a_principal_answers_in_its_own_name_and_never_for_itself() -> None:
    async def answer() -> None:
        system = opened(MemoryStore(), Ids())
        try:
            mine = await live(system, ACME)
            (question,) = await system.archive.approvals(mine["waiting"])
            yes = UserSignal("one", Signal.APPROVE, mine["waiting"], payload={"packet_id": question.id}, user_id="")
            ada, eve = system.acting_for(ACME), system.acting_for(Principal("acme", "eve", (Scope.APPROVE,)))
            with pytest.raises(RemitError) as refused:
                await ada.signal(yes)
            assert refused.value.code == "SELF_APPROVAL", refused.value
            with pytest.raises(RequestRejected) as refused_name:
                await eve.signal(UserSignal("one", Signal.APPROVE, yes.run_id, "ada", payload=yes.payload))
            assert refused_name.value.code == PRINCIPAL_FOREIGN
            await eve.signal(yes, kit=kit())
            state = await system.state_of(mine["waiting"])
            assert state.end.ending is not None
        finally:
            await system.close()

    asyncio.run(answer())


def test_nobody_has_a_run_copied_that_may_do_more_than_they() -> None:
    @tool(effect="read", network=False, permissions=["vault.open"])
    def peek(what: str) -> str:
        """Look into the vault."""
        return "gold"

    async def copied() -> None:
        system = opened(MemoryStore(), Ids())
        terms = Terms(boundary=Boundary(permissions=("vault.open",)))
        try:
            equipped = engine_kit(ScriptedEngine([calls("peek", what="a"), {"text": "done"}]), Registry([peek]))
            ran = await system.acting_for(ACME).run(asked("peek"), equipped, terms)
            assert [call.status.value for call in ran.tool_calls_made] == ["committed"]
            starter = system.acting_for(Principal("acme", "eve", (Scope.START, Scope.SIGNAL)))
            with pytest.raises(RequestRejected) as refused:
                await starter.fork(ran.run_id, at=1)
            assert (refused.value.code, refused.value.details["scope"]) == (SCOPE_LACKING, "vault.open")
            again = engine_kit(ScriptedEngine([calls("peek", what="a"), {"text": "done"}]), Registry([peek]))
            theirs = await starter.run(asked("peek"), again, terms)
            assert [call.code for call in theirs.tool_calls_made] == ["PERMISSION_DENIED"]
        finally:
            await system.close()

    asyncio.run(copied())


async def heard(system: System, since: str | int = -1) -> list[RunEvent]:
    """Everything that a principal is told of its tenant so far."""
    events = []
    subscription = system.subscribe(Subject(), since=since)
    while (event := await subscription.taken()) is not None:
        events.append(event)
    subscription.close()
    return events


@pytest.mark.parametrize("others", [0, 3])
def test_cursors_of_a_tenant_tell_nothing_of_the_turns_of_others(others: int, tmp_path: Path) -> None:
    async def one(system: System) -> None:
        request = SystemRequest((user_message("hi"),))
        await system.run(request, engine_kit(ScriptedEngine([{"text": "ok"}]), Registry([])))

    async def scene() -> None:
        async with remit.open(tmp_path / "store") as system:
            ada, bob = system.acting_for(ACME), system.acting_for(GLOBEX)
            await one(bob)
            for _ in range(others):
                await one(ada)
            await one(bob)
            events = await heard(bob)
            assert all(re.fullmatch(r"at:[0-9a-f]{48}", event.cursor) for event in events)
            assert len({event.cursor for event in events}) == len(events)
            # It goes on behind each of them without a gap, in another process too.
            async with remit.open(tmp_path / "store") as again:
                for place, event in enumerate(events):
                    told = await heard(again.acting_for(GLOBEX), event.cursor)
                    assert [one.cursor for one in told] == [one.cursor for one in events[place + 1 :]]
            await one(ada)
            foreign = [event.cursor for event in await heard(ada)]
            forged: list[str | int] = [
                "place:1",
                "place:0",
                "turn:1",
                "at:" + "0" * 48,
                "at:00",
                "at:zz",
                "",
                3,
                events[0].cursor[:-1] + "x",
            ]
            refusals = []
            for since in [*foreign, *forged]:
                with pytest.raises(RequestRejected) as refused:
                    bob.subscribe(Subject(), since=since)
                refusals.append((refused.value.code, refused.value.message, refused.value.details))
            assert all(refusal == refusals[0] for refusal in refusals)
            assert refusals[0][0] == "CURSOR_INVALID"

    asyncio.run(scene())


def test_an_export_of_what_is_not_there_says_so_and_asks_for_its_scope_first() -> None:
    async def scene() -> None:
        async with remit.open(memory=True) as system:
            for acting in (system, system.acting_for(ACME)):
                with pytest.raises(RequestRejected) as refused:
                    await acting.archive.export(GUESSED)
                assert refused.value.code == "RUN_NOT_FOUND"
            with pytest.raises(RequestRejected) as refused:
                await system.acting_for(Principal("acme", "eve", (Scope.APPROVE,))).archive.export(GUESSED)
            assert refused.value.code == SCOPE_LACKING

    asyncio.run(scene())


def test_who_may_approve_takes_note_of_an_ending_without_reading_anything_else() -> None:
    async def scene() -> None:
        async with remit.open(memory=True) as system:
            ada = system.acting_for(ACME)
            guard = ada.guard()
            await guard.answer({"op": "start", "run": "r", "prompt": "x", "tools": []})
            run_id = guard.run_id_of("r")
            await guard.answer({"op": "result", "run": "r", "tool": "rm_rf", "content": "gone"})
            eve = system.acting_for(Principal("acme", "eve", (Scope.APPROVE,)))
            assert (await eve.queues.acknowledge(run_id, "")).by == "eve"
            with pytest.raises(RequestRejected) as refused:
                await eve.queues.items()
            assert refused.value.code == SCOPE_LACKING

    asyncio.run(scene())


@pytest.mark.parametrize("limit", [-1, 10**20, 1.5, True])
def test_a_page_that_nobody_could_give_is_refused(limit: Any) -> None:
    async def scene() -> None:
        async with remit.open(memory=True) as system:
            acting = system.acting_for(ACME)
            for verb in (acting.archive.runs, acting.archive.approvals, acting.queues.items, acting.quotas.tenants):
                with pytest.raises(RequestRejected) as refused:
                    await verb(limit=limit)
                assert refused.value.code == "PAGE_INVALID"

    asyncio.run(scene())


def test_questions_and_items_are_read_page_by_page() -> None:
    @tool(effect="write", idempotent=True, verify=lambda arguments, result: True)
    def keep(text: str) -> str:
        """Keep a text."""
        return text

    async def scene() -> None:
        async with remit.open(memory=True) as system:
            ada = system.acting_for(ACME)
            for number in range(5):
                calls = [{"name": "keep", "arguments": {"text": str(number)}}]
                request = SystemRequest((user_message("Keep it."),))
                await ada.run(request, engine_kit(ScriptedEngine([{"tool_calls": calls}]), Registry([keep])))
            every = [one.id for one in await ada.archive.approvals()]
            assert len(every) == len(set(every)) == 5
            read_runs: list[str] = []
            history = ada.archive.history

            async def noted(run_id: str) -> Any:
                read_runs.append(run_id)
                return await history(run_id)

            ada.archive.history = noted  # type: ignore[method-assign]
            await ada.archive.approvals(limit=2)
            assert len(read_runs) == 2
            for read, name in ((ada.archive.approvals, "before"), (ada.queues.items, "after")):
                whole = [one.id for one in await read()]
                for limit in (1, 2, 5, 7):
                    pages: list[str] = []
                    while page := await read(limit=limit, **({name: pages[-1]} if pages else {})):
                        assert len(page) <= limit
                        pages += [one.id for one in page]
                    assert pages == whole
                with pytest.raises(RequestRejected) as refused:
                    await read(limit=1, **{name: "nothing"})
                assert refused.value.code == "PAGE_INVALID"

    asyncio.run(scene())
