"""Every public verb refuses arguments that are not of the type that it declares, with a code, before it does anything.

The verbs are found by looking, and so are their arguments: one that takes what it does not declare fails here.
"""

import asyncio
import inspect
from collections.abc import Awaitable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from pydantic import BaseModel

import remit
from remit import (
    AgentLoop,
    ExecutionPlan,
    InferHandler,
    PlanExecutor,
    RedundantLoop,
    RemitError,
    RequestRejected,
    Run,
    ScriptedEngine,
    Signal,
    SpecializedLoop,
    Step,
    StepType,
    System,
    Terms,
    UserSignal,
    kit_of,
    tool,
    user_message,
)
from remit.agents.guard_in_memory import GuardInMemory
from remit.core.run.halt import HaltKind, HaltScope
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.guard.guard import Guard
from remit.orchestrate.history.archive import Archive
from remit.orchestrate.loop.offspring import Lineages
from remit.orchestrate.people.grants import Grants
from remit.orchestrate.people.queues import Queues
from remit.orchestrate.tenants.tenancy import TenantStandings
from tests.doors.test_tenants import public
from tests.doors.test_wrong_types import WRONG, Foreign

HOUSE = (System, Archive, Queues, TenantStandings, Lineages, Grants, Run, Guard, GuardInMemory)
PATTERNS = (AgentLoop, SpecializedLoop, PlanExecutor, RedundantLoop)
# What the house calls itself, with parts that only it has.
INNER = {("Queues", "acting_for"), ("Queues", "check_answer"), ("Grants", "acting_for"), ("Grants", "approve")}
INNER |= {("Lineages", "learn"), ("Run", "read_by")}
# What may be anything: a value that is looked for, or JSON of a protocol that answers with a code of its own.
OPEN = {("Guard", "answer", "operation"), ("GuardInMemory", "answer", "operation")}
ENDS_IT = {"close", "open"}
PATIENCE_S = 2


class Mood(BaseModel):
    """What a model answers."""

    mood: str


@tool(effect="external")
def send(to: str) -> str:
    """Send it."""
    return "sent"


def engine() -> ScriptedEngine:
    return ScriptedEngine([{"text": '{"mood": "fine"}'}] * 3)


def samples(run_id: str) -> dict[str, Any]:
    """An argument of each name that a verb may have, as it is meant."""
    plan = ExecutionPlan((Step("s", StepType.INFER),))
    return {
        "run_id": run_id,
        "request": remit.SystemRequest((user_message("hi"),)),
        "kit": kit_of(engine(), [send]),
        "terms": Terms(),
        "principal": remit.Principal("acme", "ada", ("*",)),
        "signal": UserSignal("one", Signal.FEEDBACK, run_id, "ann", payload={"text": "a"}),
        "subject": remit.Subject(),
        "listener": Listener(),
        "name": run_id,
        "session_id": "talk",
        "text": "hi",
        "prompt": "hi",
        "packet_id": f"{run_id}/1.0",
        "grant_id": "g1",
        "by": "ann",
        "why": "so",
        "key": "city",
        "value": '"Oslo"',
        "order": {"tool": "send", "args": {"to": {"literal": "a"}}},
        "until_ms": 1,
        "entry": remit.RunEntry(run_id, remit.RunListing(1), 3),
        "scope": HaltScope(HaltKind.RUN, run_id),
        "tenant_id": "acme",
        "chunks": False,
        "is_quiet": True,
        "above": run_id,
        "data": b"{}",
        "beginning": b"{}",
        "operation": {"op": "hello"},
        "plan": plan,
        "read": lambda response: response,
        "since": -1,
        "schema": Mood,
        "wait_ms_max": 50,
    }


def verbs_of(kind: type) -> list[tuple[str, FunctionType]]:
    """The public functions of a class that take something."""
    found = public(kind).items()
    return [
        (name, verb)
        for name, verb in found
        if isinstance(verb, FunctionType) and (kind.__name__, name) not in INNER and name not in ENDS_IT
    ]


ARGUMENTS = [
    (kind, name, argument)
    for kind in (*HOUSE, *PATTERNS)
    for name, verb in verbs_of(kind)
    for argument in list(inspect.signature(verb).parameters)[1:]
]


def holder_of(kind: type, system: System, run_id: str) -> Any:
    """Something of this class to ask."""
    made: dict[type, Any] = {
        System: lambda: system,
        Archive: lambda: system.archive,
        Queues: lambda: system.queues,
        TenantStandings: lambda: system.quotas,
        Lineages: lambda: system.lineages,
        Grants: lambda: system.grants,
        Guard: system.guard,
        GuardInMemory: GuardInMemory,
        AgentLoop: lambda: AgentLoop(engine(), system=system),
        SpecializedLoop: lambda: SpecializedLoop(engine(), schema=Mood, system=system),
        PlanExecutor: lambda: PlanExecutor({StepType.INFER: InferHandler(engine())}, system=system),
        RedundantLoop: lambda: RedundantLoop(engine(), schema=Mood, system=system),
    }
    return made[kind]()


async def came_of(held: Any, name: str, argument: str, value: object, run_id: str) -> str:
    """What came of a verb that was called with a value for one of its arguments, and with what is meant for the others."""
    verb, placed, named = getattr(held, name), list[Any](), dict[str, Any]()
    for one in inspect.signature(verb).parameters.values():
        if one.kind is one.VAR_POSITIONAL:
            placed += [value] if one.name == argument else []
        elif one.name == argument or (one.name == "by" and name != "costs") or one.default is one.empty:
            named[one.name] = value if one.name == argument else samples(run_id)[one.name]
    try:
        async with asyncio.timeout(PATIENCE_S):
            given = verb(*placed, **named)
            if isinstance(given, Awaitable):
                await given
            elif hasattr(given, "__anext__"):
                await anext(given)
    except RemitError as error:
        return f"{type(error).__name__} {error.code}: {error.message}"
    except (StopAsyncIteration, TimeoutError):
        return "taken"  # It waits for something that does not come.
    except Exception as error:  # noqa: BLE001  # whatever it is, it is what must not be
        return f"{type(error).__name__}: {error}"
    return "taken"


async def all_of(kind: type, name: str, argument: str, values: tuple[object, ...]) -> dict[str, str]:
    async with remit.open(memory=True) as system:
        run_id = (await system.run("hi", kit_of(engine(), [send]))).run_id
        held = await system.find(run_id) if kind is Run else holder_of(kind, system, run_id)
        return {repr(value): await came_of(held, name, argument, value, run_id) for value in values}


@pytest.mark.parametrize(("kind", "name", "argument"), ARGUMENTS, ids=lambda one: getattr(one, "__name__", one))
def test_what_no_verb_declares_is_refused_with_a_code_that_names_the_argument(
    kind: type, name: str, argument: str
) -> None:
    if (kind.__name__, name, argument) in OPEN:
        return
    (said,) = asyncio.run(all_of(kind, name, argument, (Foreign(),))).values()
    assert said.startswith(("RequestRejected", "RemitError"))
    assert "Foreign()" in said
    assert argument in said


@pytest.mark.parametrize(("kind", "name", "argument"), ARGUMENTS, ids=lambda one: getattr(one, "__name__", one))
def test_no_verb_lets_python_complain_of_a_wrong_type(kind: type, name: str, argument: str) -> None:
    said = asyncio.run(all_of(kind, name, argument, WRONG))
    raw = {value: told for value, told in said.items() if told != "taken" and " " not in told.partition(":")[0]}
    assert raw == {}


CONSTRUCTED = [(kind, argument) for kind in PATTERNS for argument in list(inspect.signature(kind).parameters)]


def constructed(kind: type, argument: str, value: object) -> Any:
    meant: dict[str, Any] = {"engine": engine(), "schema": Mood, "handlers": {StepType.INFER: InferHandler(engine())}}
    taken = inspect.signature(kind).parameters
    return kind(**{name: one for name, one in meant.items() if name in taken} | {argument: value})


@pytest.mark.parametrize(("kind", "argument"), CONSTRUCTED, ids=lambda one: getattr(one, "__name__", one))
def test_no_pattern_is_made_of_what_it_cannot_use(kind: type, argument: str) -> None:
    with pytest.raises(RemitError):
        constructed(kind, argument, Foreign())
    for value in WRONG:
        with suppress(RemitError):
            constructed(kind, argument, value)


@pytest.mark.parametrize("home", [5, b"a", ["a"], "a\0b", "\ud800", True, Foreign()])
@pytest.mark.parametrize("memory", [False, True])
def test_a_store_is_opened_at_no_place_that_is_none(home: Any, *, memory: bool) -> None:
    async def opened() -> None:
        async with remit.open(home, memory=memory):
            raise AssertionError("there is no such place")

    with pytest.raises(RequestRejected, match="HOME_INVALID: home="):
        asyncio.run(opened())


@pytest.mark.parametrize(
    "given", [{"secrets": 5}, {"secrets": 0}, {"memory": "false"}, {"memory": None}, {"memory": 1}]
)
def test_a_store_is_opened_with_nothing_that_is_not_declared(given: dict[str, Any], tmp_path: Path) -> None:
    async def opened() -> None:
        async with remit.open(tmp_path / "store", **given):
            raise AssertionError("it cannot be meant")

    with pytest.raises(RequestRejected, match=f"REQUEST_MALFORMED: {next(iter(given))}"):
        asyncio.run(opened())
    assert not (tmp_path / "store").exists()


def test_a_folder_for_what_is_kept_in_memory_is_a_contradiction_and_is_not_made(tmp_path: Path) -> None:
    async def opened() -> None:
        async with remit.open(tmp_path / "store", memory=True):
            raise AssertionError("it cannot be meant")

    with pytest.raises(RequestRejected, match=r"HOME_INVALID: home=.*memory=True"):
        asyncio.run(opened())
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize("kind", PATTERNS)
def test_a_folder_beside_a_system_that_has_a_store_is_a_contradiction(kind: type, tmp_path: Path) -> None:
    async def story() -> None:
        async with remit.open(memory=True) as system:
            with pytest.raises(RequestRejected, match="HOME_INVALID"):
                constructed(partial(kind, home=tmp_path), "system", system)  # type: ignore[arg-type]  # it makes one

    asyncio.run(story())


@pytest.mark.parametrize("argument", ["secrets", "policies"])
def test_a_store_is_opened_with_nothing_that_it_cannot_use(argument: str) -> None:
    async def opened(value: Any) -> None:
        async with remit.open(memory=True, **{argument: value}):
            """It is open."""

    for value in (5, "zz", [1], Foreign(), b"a"):
        with pytest.raises(RemitError):
            asyncio.run(opened(value))
