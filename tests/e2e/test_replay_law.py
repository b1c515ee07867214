"""The replay law: every journal decides to the same bytes again, facts included, with no model and no tool called.

The runs here are of every kind that real engines and tools make. Beyond them, every test that goes through house.py or
command.py has each of its journals audited when it leaves.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from remit.core.failure import EXIT_OK, EXIT_WAITING, Ending
from remit.core.limits.budget import Budget
from remit.core.record import JsonObject
from remit.core.run.contract import SystemResponse
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import Message, system_message
from remit.core.run.signals import Signal
from remit.core.work.goal import Criterion, Goal
from remit.inference.engine import StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.observe.proof.export import read_export
from remit.orchestrate.facade import System
from remit.orchestrate.history.replay import Audit, AuditVerdict, replay_export
from remit.orchestrate.setup.kit import Kit, Terms
from remit.tool.declare.decorator import Tool, tool
from remit.tool.delegate import delegate
from remit.tool.registry import Registry
from tests.e2e.command import remit_in
from tests.e2e.errand import LEASE
from tests.e2e.house import answer, asking, calls, house, says, tell, until

LONG = "täglich \x1b[31m " * 2_000
HUGE = "x" * 10_000_000
# What a tool gets from a file that is not UTF-8, read with surrogateescape; and a half of a pair.
UNWRITABLE = b"caf\xe9".decode(errors="surrogateescape") + "\ud83d"

CHILD_LEASE = {**dict(LEASE), "external_api_calls": 1}

Record = Callable[[str, object], None]


@dataclass
class World:
    """Everything a run may call. Once closed, code that calls anything has broken the law."""

    is_closed: bool = False
    called: list[str] = field(default_factory=list)

    def calls(self, what: str) -> None:
        """Note a call."""
        assert not self.is_closed, f"{what} was called while a journal was decided again"
        self.called.append(what)

    def kit(self, replies: Sequence[JsonObject], *, evidence: Callable[[], str] | None = None) -> Kit:
        """A kit that plays these replies."""
        engine = Played(self, ScriptedEngine(replies))
        context = None if evidence is None else Evidence(self, evidence)
        return Kit({engine.model_info().name: engine}, Registry(self.tools()), {"polite": self.polite}, context)

    def polite(self, text: str) -> list[str]:
        """What a validator of the user's finds wrong."""
        self.calls("polite")
        return [] if "please" in text else ["say please", "\ud800 is half of a pair"]

    def tools(self) -> list[Tool]:
        """Tools of every kind."""

        @tool(effect="read")
        async def look(n: int = 1, deep: bool = False) -> dict[str, int | bool]:
            """Look something up."""
            self.calls("look")
            return {"n": n, "deep": deep}

        @tool(effect="read")
        def recite(kind: str) -> str:
            """Say something long or strange."""
            self.calls("recite")
            return {"long": LONG, "huge": HUGE, "unwritable": UNWRITABLE}[kind]

        @tool(effect="read")
        async def crack() -> str:
            """Fail with strange words."""
            self.calls("crack")
            raise ValueError(f"no {UNWRITABLE}")

        @tool(effect="external", idempotent=True, verify=lambda arguments, result: arguments["to"] in result)
        def pay(amount: float, to: str, idempotency_key: str) -> str:
            """Pay a person."""
            self.calls("pay")
            return f"{to} has {amount}"

        @tool(effect="read", timeout_ms=1)
        async def hang() -> str:
            """Take too long."""
            self.calls("hang")
            await asyncio.Event().wait()
            return "never"

        return [look, recite, crack, pay, hang, delegate("hand_over", description="Have it done.", lease=CHILD_LEASE)]


class Played:
    """An engine that plays a script while the world is open."""

    def __init__(self, world: World, script: ScriptedEngine) -> None:
        self._world, self._script = world, script

    def model_info(self) -> ModelInfo:
        """The script's."""
        return self._script.model_info()

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The script's next reply."""
        self._world.calls("the model")
        return await self._script.infer(request, on_chunk)


class Evidence:
    """A context provider."""

    def __init__(self, world: World, find: Callable[[], str]) -> None:
        self._world, self._find = world, find

    async def build(self, query: str) -> Sequence[Message]:
        """What was found."""
        self._world.calls("the context provider")
        return [system_message(self._find())]


Scene = Callable[[System, World], Awaitable[SystemResponse]]


async def approved_as_proposed(system: System, world: World) -> SystemResponse:
    kit = world.kit([calls("pay", {"amount": 1, "to": "Ann"}), says("Paid.")])
    return await answer(system, Signal.APPROVE, await system.run(asking(), kit))


async def approved_with_other_arguments(system: System, world: World) -> SystemResponse:
    kit = world.kit([calls("pay", {"amount": 100.0, "to": "Ann"}), says("Paid.")])
    return await answer(system, Signal.APPROVE, await system.run(asking(), kit), {"amount": 1e2, "to": "Béa"})


async def rejected_by_a_person(system: System, world: World) -> SystemResponse:
    kit = world.kit([calls("pay", {"amount": 1, "to": "Ann"}), says("Then not.")])
    return await answer(system, Signal.REJECT, await system.run(asking(), kit))


async def long_texts(system: System, world: World) -> SystemResponse:
    kit = world.kit([calls("recite", {"kind": "long"}), says(LONG)])
    return await system.run(asking(LONG), kit)


async def unwritable_texts(system: System, world: World) -> SystemResponse:
    kit = world.kit([calls("recite", {"kind": "unwritable"}), calls("crack"), says("Strange.")])
    return await system.run(asking(), kit)


async def ten_megabytes(system: System, world: World) -> SystemResponse:
    return await system.run(asking(), world.kit([calls("recite", {"kind": "huge"}), says("Much.")]))


async def refused_calls(system: System, world: World) -> SystemResponse:
    proposals = [("nobody", {}), ("look", {"n": "one"}), ("look", {"n": 1.0, "more": None}), ("look", {"n": 1})]
    many = {"tool_calls": [{"name": name, "arguments": arguments} for name, arguments in proposals]}
    return await system.run(asking(), world.kit([many, *[calls("look", {"n": 1})] * 4, says("Enough.")]))


async def failing_calls(system: System, world: World) -> SystemResponse:
    return await system.run(asking(), world.kit([calls("hang"), calls("crack"), says("Neither.")]))


async def failing_model(system: System, world: World) -> SystemResponse:
    kit = world.kit([{"error": "INFERENCE_ENGINE_ERROR"}, {"error": "INFERENCE_MALFORMED_RESPONSE"}, says("At last.")])
    return await system.run(asking(), kit)


async def a_session_with_entries(system: System, world: World) -> SystemResponse:
    entries = {"language": '"de"'}
    first = await system.run(asking("One.", "talk"), world.kit([says("First.")]), entries=entries)
    await system.note(first.run_id, "erin", "mood", '{"good": true}')
    return await system.run(asking("Two.", "talk"), world.kit([says("First."), says("Second.")]))


async def a_child_that_asks(system: System, world: World) -> SystemResponse:
    # A child's conversation begins anew, so it finds its own place in the script by what it was told.
    replies: list[JsonObject] = [
        {"when": "pay for it", **calls("pay", {"amount": 2, "to": "Cy"})},
        {"when": "^Cy has", **says("Paid below.")},
        calls("hand_over", {"task": "pay for it"}),
        says("Done below."),
    ]
    return await answer(system, Signal.APPROVE, await system.run(asking(), world.kit(replies)))


async def a_retry_as_a_fork(system: System, world: World) -> SystemResponse:
    kit = world.kit([{"error": "INFERENCE_ENGINE_ERROR"}])
    failed = await system.run(asking(), kit, Terms(budget=Budget(retries=0)))
    assert failed.error is not None
    # The world is better when it is tried again.
    fork_id = await tell(system, Signal.RETRY, failed.run_id, kit=world.kit([says("Now.")]))
    await system.settle()
    return await system.result(fork_id)


async def paused_and_released(system: System, world: World) -> SystemResponse:
    run_id = await system.submit(
        asking(), world.kit([{"delay_ms": 200, **calls("look")}, calls("look", {"n": 2}), says("Seen.")])
    )
    await tell(system, Signal.PAUSE, run_id)
    await tell(system, Signal.FEEDBACK, run_id, {"text": f"Look twice. {LONG[:5000]}"})
    await system.settle()
    assert (await system.result(run_id)).terminal_code is None
    await tell(system, Signal.RESUME, run_id)
    await system.settle()
    return await system.result(run_id)


async def cancelled_by_a_person(system: System, world: World) -> SystemResponse:
    run_id = await system.submit(asking(), world.kit([{"delay_ms": 60_000, **says("Too late.")}]))
    await until(lambda: "the model" in world.called, "the model is asked")
    await tell(system, Signal.CANCEL, run_id, {"reason": "changed my mind"})
    return await system.result(run_id)


async def found_evidence(system: System, world: World) -> SystemResponse:
    return await system.run(asking(), world.kit([says("I see.")], evidence=lambda: LONG))


def no_evidence() -> str:
    raise LookupError(UNWRITABLE)


async def evidence_that_fails(system: System, world: World) -> SystemResponse:
    return await system.run(asking(), world.kit([says("Without.")], evidence=no_evidence))


async def checked_by_a_validator(system: System, world: World) -> SystemResponse:
    terms = Terms(goal=Goal("be polite", (Criterion("polite", validator="polite"),)))
    return await system.run(asking(), world.kit([says("Give!"), says("Give, please.")]), terms)


# Each kind of run, and how it ends.
SCENES: Mapping[Scene, Ending] = {
    approved_as_proposed: Ending.SUCCESS,
    approved_with_other_arguments: Ending.SUCCESS,
    rejected_by_a_person: Ending.PERMISSION_DENIED,
    long_texts: Ending.SUCCESS,
    unwritable_texts: Ending.SUCCESS,
    ten_megabytes: Ending.SUCCESS,
    refused_calls: Ending.REPEATED_FAILURE,
    failing_calls: Ending.SUCCESS,
    failing_model: Ending.SUCCESS,
    a_session_with_entries: Ending.SUCCESS,
    a_child_that_asks: Ending.SUCCESS,
    a_retry_as_a_fork: Ending.SUCCESS,
    paused_and_released: Ending.SUCCESS,
    cancelled_by_a_person: Ending.USER_CANCEL,
    found_evidence: Ending.SUCCESS,
    evidence_that_fails: Ending.SUCCESS,
    checked_by_a_validator: Ending.SUCCESS,
}


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_run_decides_to_the_same_bytes_with_no_model_and_no_tool(
    scene: Scene, tmp_path: Path, record_property: Record
) -> None:
    world = World()

    async def play() -> None:
        async with house(tmp_path / "store") as system:
            response = await scene(system, world)
            assert response.terminal_code is SCENES[scene], response
            assert world.called
            world.is_closed = True
            for entry in await system.archive.runs(with_children=True):
                expect_same(await system.archive.replay(entry.run_id))
                carried = read_export(await system.archive.export(entry.run_id))
                expect_same(replay_export(carried))
                record_property("figure: replay law, journals", 1)
                record_property("figure: replay law, turns", entry.turns)

    asyncio.run(play())


def expect_same(found: Audit) -> None:
    assert found.verdict is AuditVerdict.SAME, found
    assert found.same == found.turns, found


TOOLS = """
from remit import tool

@tool(effect="write")
def note(text: str) -> str:
    \"\"\"Keep a note.\"\"\"
    return text
"""


def test_the_installed_command_replays_a_run_whose_tools_and_script_are_gone(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TOOLS, [calls("note", {"text": LONG}), says("Noted.")])
        assert remit.run_here().exit_code == EXIT_WAITING
        assert remit.here("approve", "last").exit_code == EXIT_OK
        (tmp_path / "tools.py").write_text("raise SystemExit('a tool was loaded')")
        (tmp_path / "script.json").unlink()
        answer = remit("replay", "last", "--json")
    assert answer.exit_code == EXIT_OK, answer
    assert (answer.values["verdict"], answer.values["same"]) == ("same", answer.values["turns"])
