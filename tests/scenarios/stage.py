"""The stage: a scenario is played with real parts, and what happened is kept as the journal has it.

Rule 1: the kernel, the runner, the facade, the tools and the store are those of the house; the model is scripted, people
        are the file's, and only the clock is moved on by hand.
Rule 2: people act one after the other, each when the run waits for them; a person who comes when no call waits is an error.
Rule 3: what happened is told by the turns of every run and by the notes of the tools themselves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from uuid import uuid4

from remit.backend.memory.store import MemoryStore
from remit.context.fts import RELEVANCE
from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import AskHuman
from remit.core.journal.turn import Turn
from remit.core.limits.boundary import Boundary
from remit.core.record import JsonObject, replace
from remit.core.run.contract import ExecutionHints, OutputContract, SystemRequest, SystemResponse
from remit.core.run.inference import Price, Routing
from remit.core.run.messages import Message, system_message, user_message
from remit.core.run.signals import Signal, UserSignal, packet_id
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.core.work.graph import Graph
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import RunState
from remit.orchestrate.facade import System
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.redundant_graph import Redundancy
from remit.orchestrate.setup.kit import Kit, Terms
from remit.tool.registry import Registry
from tests.scenarios.given import UNBOUNDED, Given
from tests.scenarios.hours import Hours, in_no_time
from tests.scenarios.props import Call, real_tool
from tests.scenarios.scenario import Act, Scenario

RUN = "run"
# What a mid-sized model costs today, so that money is a dimension that counts.
PRICE = Price(1_000_000, 4_000_000)
CONTEXT_WINDOW = 200_000
PPM = 1_000_000

_T = TypeVar("_T")
_SIGNALS = {"approve": Signal.APPROVE, "answer": Signal.APPROVE, "reject": Signal.REJECT, "cancel": Signal.CANCEL}


@dataclass
class Played:
    """What became of a scenario."""

    scenario: Scenario
    boundary: Boundary
    # The turns of every run, the one that was asked for first.
    runs: dict[str, list[Turn]] = field(default_factory=dict)
    response: SystemResponse | None = None
    # Why no run was begun at all.
    turned_away: RequestRejected | None = None
    # The calls whose functions ran, in that order.
    executed: list[Call] = field(default_factory=list)
    # What people wanted to do when no call waited for it.
    unwanted: list[str] = field(default_factory=list)

    @property
    def turns(self) -> Iterator[Turn]:
        """Every turn, run by run."""
        return (turn for turns in self.runs.values() for turn in turns)

    def decisions(self, kind: type[_T]) -> list[_T]:
        """Every ruling or command of this kind, run by run."""
        return [one for turn in self.turns for one in turn.decisions if isinstance(one, kind)]


def play(scenario: Scenario, *, boundary: Boundary | None = None) -> Played:
    """Play a scenario to its end; with another boundary, as it would have gone with that one."""
    played = Played(scenario, boundary or scenario.given.boundary)
    hours = Hours()
    in_no_time(_Stage(played, hours).play(), hours)
    return played


class _Shelf:
    """Evidence that is found for every question, and how much of the question it answers to."""

    def __init__(self, text: str, relevance_ppm: int) -> None:
        share = relevance_ppm / PPM
        self._found = (Candidate(text, "shelf", share, ScoreMaker.RETRIEVAL, {RELEVANCE: share}),)

    async def find(self, query: str) -> Sequence[Candidate]:
        """The one thing that is known."""
        return self._found

    def written(self, found: Sequence[Candidate]) -> Sequence[Message]:
        """The same as the model reads it."""
        return tuple(system_message(candidate.content) for candidate in found)

    async def build(self, query: str) -> Sequence[Message]:
        """The one thing that is known, as the model reads it."""
        return self.written(self._found)


class _Stage:
    """One scenario while it is played."""

    def __init__(self, played: Played, hours: Hours) -> None:
        self.played, self._hours = played, hours
        given = played.scenario.given
        engine = ScriptedEngine(given.model, context_window=CONTEXT_WINDOW, price=PRICE, calls_at_once=8)
        self._kit = Kit(
            {engine.model_info().name: engine},
            Registry([real_tool(one, played.executed.append) for one in given.tools]),
            context=None if given.knows is None else _Shelf(*given.knows),
        )
        self._store = MemoryStore()
        self._system = System(self._store, clock=hours, find_kit=self._found, new_id=lambda: RUN)

    async def _found(self, state: RunState) -> Kit:
        return self._kit

    async def play(self) -> None:
        """Begin the run and let everybody act."""
        given = self.played.scenario.given
        try:
            await self._system.run(_request(given), self._kit, _terms(given, self.played.boundary))
        except RequestRejected as error:
            self.played.turned_away = error
        else:
            for act in self.played.scenario.when:
                await self._act(act)
            self.played.response = await self._system.result(RUN)
        for run_id in await self._store.journal.names():
            self.played.runs[run_id] = [decode_turn(data) for data in await self._store.journal.read(run_id)]
        await self._system.close()

    async def _act(self, act: Act) -> None:
        asked = [one for one in await self._open_questions() if not act.tool or _tool_of(one[1]) == act.tool]
        if not asked:
            about = f" about {act.tool}" if act.tool else ""
            self.played.unwanted.append(f"{act.by or 'nobody'} wants to {act.verb}, and nobody is asked{about}")
            return
        run_id, question = asked[0]
        if act.verb == "silence":
            self._hours.pass_until(question.expires_at_ms)
            await self._system.resume(run_id, kit=self._kit)
        else:
            target = RUN if act.verb == "cancel" else run_id
            payload = {"packet_id": packet_id(run_id, question.id), **_payload(act)}
            signal = UserSignal(str(uuid4()), _SIGNALS[act.verb], target, act.by, payload=payload)
            await self._tell(act, signal)
        await self._system.settle(RUN)

    async def _tell(self, act: Act, signal: UserSignal) -> None:
        """Let a run hear a person; whether it does must be what the file says."""
        code, message = "", ""
        try:
            await self._system.signal(signal, kit=self._kit)
        except RemitError as error:
            code, message = str(error.code), error.message
        if code != act.turned_away:
            came_to = f"was turned away with {code}: {message}" if code else "was heard"
            self.played.unwanted.append(f"{act.by} wanted to {act.verb} and {came_to}")

    async def _open_questions(self) -> list[tuple[str, AskHuman]]:
        """What people are asked now, oldest first."""
        found: list[tuple[str, AskHuman]] = []
        for run_id in await self._store.journal.names():
            state = await self._system.state_of(run_id)
            found += [(run_id, one) for one in state.commands.open.values() if isinstance(one, AskHuman)]
        return found


def _tool_of(question: AskHuman) -> str:
    return question.tool if question.packet is None else question.packet.call.tool


def _payload(act: Act) -> JsonObject:
    said: JsonObject = {"reason": act.reason} if act.reason else {}
    if act.text:
        said["text"] = act.text
    if act.arguments is not None:
        said["arguments"] = act.arguments
    return said


def _request(given: Given) -> SystemRequest:
    return SystemRequest(
        messages=(user_message(given.user),),
        mode=given.mode,
        hints=ExecutionHints(max_iterations=given.rounds) if given.rounds > 0 else ExecutionHints(),
        output=OutputContract(schema=given.schema),
        user_id=given.asked_by,
    )


def _terms(given: Given, boundary: Boundary) -> Terms:
    return Terms(
        boundary,
        given.budget,
        goal=given.goal,
        graph=_unbounded() if given.rounds == UNBOUNDED else None,
        router=Routing.NONE,
        redundancy=Redundancy(given.replicas) if given.replicas else Redundancy(),
    )


def _unbounded() -> Graph:
    """A chat in which nothing bounds how often the model calls tools or mends its answer."""
    chat = chat_graph()
    return replace(chat, nodes=tuple(replace(node, visits_max=0) for node in chat.nodes))
