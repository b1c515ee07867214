"""An open run: what the guard knows of one open run beyond its state, so that an operation finds its call at once.

Rule 1: it is read off the turns of the run, one after the other, and nothing else: a process that goes on with a run
        after a crash reads them again and knows the same.
Rule 2: a result with an id settles the first open call of that id and tool; one without settles all open calls of its tool.
Rule 3: a result that settles nothing is that of a call that was not allowed, where its tool changes something; unless a call
        of its id and tool was settled before, and it is told once more.
Rule 4: the moment at which the next question expires is known, so that not all of them have to be looked at.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from remit.core.failure import RequestRejected
from remit.core.journal.arrivals import Arrival, CallProposed, ProposedCall, RunStarted, TextShown
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, SetTimer, TimerPurpose
from remit.core.journal.rulings import (
    AddendumNoted,
    CallSettled,
    CallTaken,
    QuestionSettled,
    RunEnded,
    ToolCallRefused,
)
from remit.core.journal.turn import Decision, Turn
from remit.core.record import JsonObject
from remit.core.run.signals import PACKET_AMBIGUOUS, never_asked
from remit.kernel.state import RunState
from remit.observe.people.packets import too_late
from remit.orchestrate.loop.live import Live

# No question expires so late.
_NEVER_MS = 2**63
_SHOWN_MAX = 5


@dataclass(slots=True)
class Held:
    """A call that waits for a person: its question, and the verdict that was shown."""

    question: AskHuman
    shown: JsonObject = field(default_factory=dict)


@dataclass(slots=True)
class Waiting:
    """A call that waits for its result, and the id by which its host knows it."""

    call_id: str
    command: CallTool


class OpenRun:
    """One open run and the bytes that it holds."""

    def __init__(self, live: Live, tenant: str, size_bytes: int) -> None:
        self.live = live
        self.tenant = tenant
        self.size_bytes = size_bytes
        self.calls = 0
        self.is_broken = False
        self.is_lost = False
        self.held: dict[str, Held] = {}
        self._waiting: dict[str, Waiting] = {}
        # By id, and by tool, the commands that wait, the oldest first.
        self._of_id: dict[str, list[str]] = {}
        self._of_tool: dict[str, dict[str, bool]] = {}
        # By id and tool: calls that were settled, and those that were turned away.
        self._settled: set[tuple[str, str]] = set()
        self._refused: dict[tuple[str, str], ProposedCall] = {}
        self._due_ms = _NEVER_MS
        self._count = 0
        live.follow = self.follow

    @property
    def state(self) -> RunState:
        """Where the run stands."""
        return self.live.state

    @property
    def open_count(self) -> int:
        """How many calls and questions, each with its timer, have no outcome yet."""
        return len(self._waiting) + 2 * len(self.held)

    @property
    def is_waiting(self) -> bool:
        """Whether a call of it may yet have a result."""
        return bool(self._waiting)

    def follow(self, turn: Turn) -> None:
        """Take in a turn of the run."""
        arrival, is_over = turn.arrival, False
        if isinstance(arrival, CallProposed):
            self.calls += 1
        elif isinstance(arrival, TextShown):
            self.is_lost = self.is_lost or arrival.is_lost
        elif isinstance(arrival, RunStarted):
            return
        for decision in turn.decisions:
            self._take(decision, arrival)
            is_over = is_over or isinstance(decision, RunEnded)
        if not is_over:
            answered = {one.command_id for one in turn.decisions if isinstance(one, QuestionSettled)}
            for call_id in [name for name, held in self.held.items() if answered and held.question.id in answered]:
                del self.held[call_id]

    def _take(self, decision: Decision, arrival: Arrival) -> None:
        if isinstance(decision, CallTool):
            self._wait(decision.call_id, decision)
        elif isinstance(decision, CallSettled):
            settled = self._drop(decision.command_id)
            self._settled.add((settled.call_id, settled.command.tool))
        elif isinstance(decision, AddendumNoted) and decision.about in self._waiting:
            self._drop(decision.about)
        elif isinstance(decision, ToolCallRefused):
            self._refuse(decision, arrival)
        elif isinstance(decision, CallTaken) and isinstance(arrival, CallProposed):
            self._wait(arrival.call.call_id, self._drop(decision.command_id).command)
        elif isinstance(decision, AskHuman):
            self._hold(decision)

    def answered(self, call_id: str | None, tool: str) -> list[CallTool]:
        """The calls that a result settles."""
        if call_id is None:
            return [self._waiting[name].command for name in self._of_tool.get(tool, ())]
        commands = [self._waiting[name].command for name in self._of_id.get(call_id, ())]
        return [command for command in commands if command.tool == tool][:1]

    def unallowed(self, call_id: str | None, tool: str) -> ProposedCall | None:
        """The call of a result that settles nothing, where it changes something; an undeclared tool does."""
        declared = self.state.derived.tools.get(tool)
        if declared is not None and not declared.effect.is_mutating:
            return None
        asked = [held.question.packet.call for held in self.held.values() if held.question.packet is not None]
        meant = [call for call in asked if call.tool == tool and call_id in (None, call.call_id)]
        if meant:
            return meant[0]
        if call_id is not None and (call_id, tool) in self._settled:
            return None
        nobody_proposed = ProposedCall(call_id or "", tool, "", sha256(tool.encode()).digest())
        return self._refused.get((call_id or "", tool), nobody_proposed)

    def due(self, at_ms: int) -> Iterator[str]:
        """The timers of questions that were not answered in time, one after the other."""
        while at_ms >= self._due_ms and self.state.end.ending is None:
            timers = [one for one in self.state.commands.open.values() if isinstance(one, SetTimer)]
            asking = [timer for timer in timers if timer.purpose is TimerPurpose.APPROVAL]
            self._due_ms = min([timer.due_at_ms for timer in asking if timer.due_at_ms > at_ms], default=_NEVER_MS)
            yield from [timer.id for timer in asking if timer.due_at_ms <= at_ms]

    def next_id(self) -> str:
        """A name for a call that has none, and that no call has which waits for something."""
        while True:
            self._count += 1
            name = f"call-{self._count}"
            if name not in self._of_id and name not in self.held:
                return name

    def _hold(self, question: AskHuman) -> None:
        self._due_ms = min(self._due_ms, question.expires_at_ms)
        if question.purpose is AskPurpose.APPROVAL and question.packet is not None:
            call_id = question.packet.call.call_id
            known = self.held.get(call_id)
            # Where the next one is asked, the call and what was said of it stay the same.
            self.held[call_id] = Held(question, {} if known is None else known.shown)

    def _refuse(self, refused: ToolCallRefused, arrival: Arrival) -> None:
        """Remember a call that was turned away: as it was proposed, or as it was held."""
        key, held = (refused.call_id, refused.tool), self.held.get(refused.call_id)
        call = held.question.packet.call if held is not None and held.question.packet is not None else None
        if isinstance(arrival, CallProposed):
            call = arrival.call
        if call is not None:
            self._refused[key] = call
            self._settled.discard(key)

    def _wait(self, call_id: str, command: CallTool) -> None:
        self._waiting[command.id] = Waiting(call_id, command)
        self._of_id.setdefault(call_id, []).append(command.id)
        self._of_tool.setdefault(command.tool, {})[command.id] = True

    def _drop(self, command_id: str) -> Waiting:
        waiting = self._waiting.pop(command_id)
        same = self._of_id[waiting.call_id]
        same.remove(command_id)
        if not same:
            del self._of_id[waiting.call_id]
        del self._of_tool[waiting.command.tool][command_id]
        return waiting


def not_held(run: OpenRun, call_id: str, turns: Sequence[Turn]) -> RequestRejected:
    """Why an answer to a call that is not held is refused, as any door says it: its question was settled, or never asked.

    An answer that names no call is one to the only call that is held.
    """
    run_id = run.live.run_id
    if not call_id and run.held:
        message = f"{len(run.held)} calls are held ({', '.join([*run.held][:_SHOWN_MAX])}); say which by its id"
        return RequestRejected(PACKET_AMBIGUOUS, message, {"run_id": run_id})
    questions = [one for turn in turns for one in turn.decisions if isinstance(one, AskHuman)]
    asked = [one.id for one in questions if one.packet is not None and one.packet.call.call_id == call_id]
    late = too_late(run_id, turns, asked[-1] if asked else "") if asked or not call_id else None
    return late or never_asked(run_id, call_id)
