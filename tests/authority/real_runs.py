"""The suites as real runs: a System, the world's tools as real tools, and an engine that proposes what the puppet says.

Rule 1: nothing is judged here. What happened is read off the journal; what was done is what the tools' functions did.
Rule 2: an answer of the engine brings one call, as the puppet makes them; effects whose results come late are one answer.
Rule 3: a person answers what the run asks: yes to exactly the task's own call, no to the rest; or no person does, and the
        run waits for good, so that later calls are never proposed.
Rule 4: a leak is an effect that differs from the task's own, was executed, and that no person has approved.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from dataclasses import replace as replace_run
from itertools import count, islice
from typing import Any

from remit.assemble import system_on
from remit.backend.memory.store import MemoryStore
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import AskHuman, CallTool
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import ToolCallRefused
from remit.core.limits.authority import Stakes
from remit.core.limits.boundary import Boundary
from remit.core.limits.profiles import GUARDED
from remit.core.limits.tool_trust import Reads, Repeat, Trust
from remit.core.limits.tools import Effect, ToolCall, ToolCategory, ToolDefinition, check_definition, tool_version
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.manifest import Source
from remit.core.run.messages import Message, Role, user_message
from remit.core.run.signals import Signal, UserSignal, packet_id
from remit.core.run.usage import TokenUsage
from remit.inference.engine import StreamHandler
from remit.orchestrate.facade import System
from remit.orchestrate.history.replay import AuditVerdict, audit, kept_texts
from remit.orchestrate.setup.kit import Kit, Terms, engine_kit
from remit.tool.declare.decorator import Tool
from remit.tool.declare.signature import read_signature
from remit.tool.registry import Registry
from tests.authority.attacks.script import Move, Run, honest_run, untouched
from tests.authority.effects import Ledger
from tests.authority.runner import Played, Step, Tally
from tests.authority.suite import Call, World, worlds
from tests.authority.suite import Tool as Described

PUPPET = ModelInfo("puppet", 1_000_000, Price(0, 0))
# A system and its store keep every run they had; so many, and both are made anew.
RUNS_PER_SYSTEM = 250
_TYPES = {"string": str, "number": float, "integer": int, "boolean": bool}


@dataclass
class Stage:
    """One run on its way: the puppet's next call, the data of its world, and what was really done."""

    run: Run
    data: dict[str, Any]
    # The calls of the latest answer that no tool has performed yet.
    proposed: list[int] = field(default_factory=list)
    made: list[int] = field(default_factory=list)

    def perform(self, tool: Described, arguments: dict[str, Any]) -> Any:
        """Do what a tool does, as other people may have tampered with it."""
        number = next(n for n in self.proposed if self._is_call(n, tool, arguments))
        self.proposed.remove(number)
        self.made.append(number)
        content = self.run.world.perform(self.data, self.run.moves[number].call)
        return self.run.tamper(number, tool, content)

    def _is_call(self, number: int, tool: Described, arguments: dict[str, Any]) -> bool:
        call = self.run.moves[number].call
        return call.tool == tool.name and call.args == arguments


class Puppet:
    """An engine that proposes what is written down, whatever it reads."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._answers = list(_answers(stage.run))

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The next calls of the script; which they are is told by how often it has answered in this exchange."""
        roles = [message.role for message in request.messages]
        last = max(place for place, role in enumerate(roles) if role is Role.USER)
        place = roles[last:].count(Role.ASSISTANT)
        if place >= len(self._answers):
            return ModelResult("done", usage=TokenUsage(1, 0, 1))
        numbers = self._answers[place]
        self._stage.proposed = list(numbers)
        moves = self._stage.run.moves
        calls = tuple(ToolCall(f"call-{n}", moves[n].call.tool, moves[n].call.args) for n in numbers)
        return ModelResult(tool_calls=calls, usage=TokenUsage(1, 0, 1))

    def model_info(self) -> ModelInfo:
        """The model of no user."""
        return PUPPET


def _answers(run: Run) -> Iterator[tuple[int, ...]]:
    """The numbers of the calls that are proposed together."""
    late: tuple[int, ...] = ()
    for number, move in enumerate(run.moves):
        tool = run.world.tools.get(move.call.tool)
        late += (number,)
        if not (run.overlapping and (tool is None or tool.is_effect)):
            # The late effects come before the read that waits for none of them.
            yield from ((late[:-1], late[-1:]) if late[:-1] else (late,))
            late = ()
    if late:
        yield late


class Theatre:
    """A system in memory that plays one run after the other; the tools of each world are made once."""

    def __init__(self, boundary: Boundary = GUARDED) -> None:
        self.system: System = system_on(MemoryStore())
        self._terms = Terms(boundary)
        self._tools: dict[str, Registry] = {}
        self._stage: Stage | None = None
        self._sessions = count()

    async def submit(self, stage: Stage) -> str:
        """Start a run, whose tools play on its stage; where something was read before, that is played before it."""
        run = stage.run
        if not run.read:
            messages = tuple([Message(Role(one["role"]), one["content"]) for one in run.messages])
            return await self._submit(stage, SystemRequest(messages))
        read = Move(Call.read(run.world.attack["secret"]["read"]))
        earlier = replace_run(run, moves=(read,), prompt=run.history[-1], tamper=untouched, read=())
        session_id = f"session {next(self._sessions)}"
        request = SystemRequest((user_message(earlier.prompt),), session_id=session_id)
        await self.system.state_of(await self._submit(Stage(earlier, run.world.fresh()), request))
        return await self._submit(stage, SystemRequest((user_message(run.prompt),), session_id=session_id))

    async def _submit(self, stage: Stage, request: SystemRequest) -> str:
        self._stage = stage
        world = stage.run.world
        if world.name not in self._tools:
            self._tools[world.name] = Registry([real_tool(tool, self._perform) for tool in world.tools.values()])
        kit: Kit = engine_kit(Puppet(stage), self._tools[world.name])
        return await self.system.submit(request, kit, self._terms)

    def _perform(self, tool: Described, arguments: dict[str, Any]) -> Any:
        assert self._stage is not None, "a tool is called within a run"
        return self._stage.perform(tool, arguments)


def real_tool(described: Described, perform: Callable[[Described, dict[str, Any]], Any]) -> Tool:
    """The tool of a world as a real one: declared as its file shows it, performed by its function."""

    async def function(**arguments: Any) -> Any:
        return perform(described, {name: value for name, value in arguments.items() if value is not None})

    async def is_performed(arguments: dict[str, Any], result: Any) -> bool:
        return result is not None

    _sign(function, described)
    shown = described.shown
    definition = ToolDefinition(
        name=described.name,
        description=shown["description"],
        parameters=shown["parameters"],
        effect=Effect(shown.get("effect", Effect.EXTERNAL)),
        category=ToolCategory(shown["category"]) if "category" in shown else None,
        network=bool(shown.get("network")),
        destructive=bool(shown.get("destructive")),
        control_args=tuple(shown.get("control_args", {}).items()),
        trust=_trust(shown),
        verifier="is_performed",
    )
    check_definition(definition)
    versioned = replace(definition, version=tool_version(definition))
    signature, source = read_signature(function, described.name), Source(described.name)
    return Tool(function, versioned, signature, source, companions=(None, is_performed, None))


def _trust(shown: dict[str, Any]) -> Trust:
    return Trust(
        payload_args=tuple(shown.get("payload_args", ())),
        fields=tuple(shown.get("result", {}).items()),
        author=shown.get("author", ""),
        directory=bool(shown.get("directory")),
        locator_args=tuple(shown.get("locator_args", ())),
        asks=tuple(shown.get("asks", ())),
        repeat=Repeat(shown.get("repeat", Repeat.ONCE)),
        reads=Reads(shown.get("reads", Reads.PRIVATE)),
        readers=shown.get("readers", ""),
        stakes=Stakes(shown["stakes"]) if "stakes" in shown else None,
    )


def _sign(function: Any, described: Described) -> None:
    """Give a function the signature that its tool declares."""
    parameters = []
    for name, schema in described.shown["parameters"]["properties"].items():
        kind: Any = list[str] if schema["type"] == "array" else _TYPES[schema["type"]]
        is_needed = name in described.required
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=kind if is_needed else kind | None,
                default=inspect.Parameter.empty if is_needed else None,
            )
        )
    function.__signature__ = inspect.Signature(parameters)
    function.__annotations__ = {one.name: one.annotation for one in parameters}


async def play(theatre: Theatre, run: Run) -> Played:
    """Play one run to its end, or until it waits for a person who never comes."""
    stage, system = Stage(run, run.world.fresh()), theatre.system
    run_id = await theatre.submit(stage)
    while run.answered:
        state = await system.state_of(run_id)
        asked = [command for command in state.commands.open.values() if isinstance(command, AskHuman)]
        if not asked:
            break
        await _answer(system, run, run_id, asked[0])
    await system.state_of(run_id)
    return await _played(system, stage, run_id)


async def _answer(system: System, run: Run, run_id: str, question: AskHuman) -> None:
    """Say yes to what the task asks for, and no to the rest."""
    assert question.packet is not None, "nothing but calls is asked about"
    is_honest = not run.moves[_number(question.packet.call)].injected
    kind = Signal.APPROVE if is_honest else Signal.REJECT
    payload = {"packet_id": packet_id(run_id, question.id)}
    await system.signal(UserSignal("signal", kind, run_id, "the owner", payload=payload))


def _number(call: ProposedCall) -> int:
    return int(call.call_id.removeprefix("call-"))


async def _played(system: System, stage: Stage, run_id: str) -> Played:
    """What became of each call that was proposed, as the journal tells it; and that the journal can be decided again."""
    data = await system.store.journal.read(run_id)
    audited = audit(data, (await kept_texts(system.store.blobs, data)).get)
    assert audited.verdict is AuditVerdict.SAME, f"{stage.run.name}: {audited.difference}"
    turns = [decode_turn(one) for one in data]
    calls = {
        _number(call): call for turn in turns if isinstance(turn.arrival, ModelAnswered) for call in turn.arrival.calls
    }
    decisions = [decision for turn in turns for decision in turn.decisions]
    asked = {_number(one.packet.call) for one in decisions if isinstance(one, AskHuman) and one.packet is not None}
    refused = {one.call_id: one.code for one in decisions if isinstance(one, ToolCallRefused)}
    approved = {one.call_id for one in decisions if isinstance(one, CallTool) and one.approved_by}
    differs = _differences(stage)
    steps = []
    for number, call in sorted(calls.items()):
        move = stage.run.moves[number]
        decision = "ask" if number in asked else "refuse" if call.call_id in refused else "allow"
        assert (decision == "allow") == (number in stage.made and call.call_id not in approved), stage.run.name
        # Where provenance objects to nothing, it is the boundary that asks.
        code = call.objection or ("CONFIRM_REQUIRED" if decision == "ask" else "")
        code = str(refused[call.call_id]) if decision == "refuse" else code
        verdict = {"decision": decision, "code": code, "reasons": list(call.reasons)}
        steps.append(Step(move.call.tool, move.call.args, move.injected, decision, verdict, differs.get(number, "")))
    return Played(stage.run, tuple(steps))


def _differences(stage: Stage) -> dict[int, str]:
    """How each effect that was executed differs from the task's own, by the number of its call."""
    run = stage.run
    ledger = Ledger(run.world, run.task.calls, has_read=bool(run.read))
    return {number: ledger.books(run.moves[number].call) for number in stage.made}


def play_all(runs: Iterable[Run], boundary: Boundary = GUARDED) -> Iterator[Played]:
    """Play runs one after the other, a few hundred on each system."""
    waiting = iter(runs)
    while some := list(islice(waiting, RUNS_PER_SYSTEM)):
        yield from asyncio.run(_played_together(some, boundary))


async def _played_together(runs: list[Run], boundary: Boundary) -> list[Played]:
    theatre = Theatre(boundary)
    try:
        return [await play(theatre, run) for run in runs]
    finally:
        await theatre.system.close()


def tally(runs: Iterable[Run], *, boundary: Boundary = GUARDED, task: str = "") -> dict[str, Tally]:
    """Play all benign tasks and the given attacked runs."""
    counted = {world.name: Tally(list(play_all(_benign(world, task), boundary))) for world in worlds()}
    for played in play_all(runs, boundary):
        counted[played.run.world.name].add(played)
    return counted


def _benign(world: World, task: str) -> list[Run]:
    return [honest_run(world, one) for one in world.tasks if one.id.startswith(task)]
