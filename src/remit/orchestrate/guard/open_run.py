"""An open run: what the guard knows of one open run beyond its state, so that an operation finds its call at once.

Rule 1: it is read off the turns of the run, one after the other, and nothing else: a process that goes on with a run
        after a crash reads them again and knows the same.
Rule 2: a result with an id settles the first open call of that id and tool, of several different ones the last; one without
        settles all open calls of its tool, those that this process was told of before those of an earlier one.
        One that settles no open call is told of a settled one that is in doubt or was said not to have happened.
Rule 3: a result that settles nothing is that of a call that was not allowed, where its tool changes something; unless a call
        of its id and tool was settled before, and it is told once more.
Rule 4: the moment at which the next question expires is known, so that not all of them have to be looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from remit.core.journal.arrivals import Arrival, CallProposed, RunStarted, TextShown
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, SetTimer, TimerPurpose
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import (
    AddendumNoted,
    CallSettled,
    CallTaken,
    QuestionSettled,
    RunEnded,
    ToolCallRefused,
)
from remit.core.journal.turn import Decision, Turn
from remit.kernel.results.doubt import may_be_told_again
from remit.kernel.state import RunState
from remit.orchestrate.guard.waiting_calls import WaitingCalls
from remit.orchestrate.loop.live import Live

# No question expires so late.
_NEVER_MS = 2**63


@dataclass(slots=True)
class UnreportedCall:
    """A call that waits for its result, and the ids by which its host knows it: the first, and those of its later proposals."""

    call_ids: list[str]
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
        self.waiting = WaitingCalls()
        self._unreported: dict[str, UnreportedCall] = {}
        # By id, and by tool, the commands that wait, the oldest first.
        self._of_id: dict[str, list[str]] = {}
        self._of_tool: dict[str, dict[str, bool]] = {}
        # By id and tool: calls that were settled, and those that were turned away.
        self._settled: dict[tuple[str, str], CallTool] = {}
        self._refused: dict[tuple[str, str], ProposedCall] = {}
        # Ids, with their tools, that came to name two calls or were tried for another one: of which of them something was
        # not done is unknown from then on.
        self.contested: set[tuple[str, str]] = set()
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
        return len(self._unreported) + 2 * len(self.waiting)

    @property
    def is_waiting(self) -> bool:
        """Whether a call of it may yet have a result, or another one than it had."""
        return bool(self._unreported) or any(self._told_more())

    def _told_more(self) -> Iterator[CallTool]:
        """The settled calls of which more may be told, and was not: those in doubt, and those said not to have happened."""
        state = self.state
        for command in self._settled.values():
            late = state.end.late.get(command.id)
            if may_be_told_again(state.calls.made[command.id], late) and (late is None or not late.is_returned):
                yield command

    def is_known(self, call_id: str, tool: str) -> bool:
        """Whether a call of this id and tool was proposed here."""
        key, waiting = (self.waiting.own_id(call_id), tool), self.waiting.get(call_id)
        return key in self._settled or key in self._refused or (waiting is not None and waiting.call.tool == tool)

    def takes(self, call_id: str | None, tool: str) -> bool:
        """Whether a result tells what came of a call of this run, which has ended."""
        if self.answered(call_id, tool):
            return True
        told = [one.id for one in self.told_again(call_id, tool)]
        return any(one.id in told for one in self._told_more())

    def follow(self, turn: Turn) -> None:
        """Take in a turn of the run."""
        arrival, is_over = turn.arrival, False
        if isinstance(arrival, CallProposed):
            self.calls += 1
            self.waiting.forget_id(arrival.call.call_id)
        elif isinstance(arrival, TextShown):
            self.is_lost = self.is_lost or arrival.is_lost
        elif isinstance(arrival, RunStarted):
            return
        for decision in turn.decisions:
            self._take(decision, arrival)
            is_over = is_over or isinstance(decision, RunEnded)
        if not is_over:
            self.waiting.settle([one.command_id for one in turn.decisions if isinstance(one, QuestionSettled)])

    def _take(self, decision: Decision, arrival: Arrival) -> None:
        if isinstance(decision, CallTool):
            self._wait(decision.call_id, decision)
        elif isinstance(decision, CallSettled) and decision.command_id in self._unreported:
            self._settle(decision.command_id)
        elif isinstance(decision, AddendumNoted) and decision.about in self._unreported:
            self._settle(decision.about)
        elif isinstance(decision, ToolCallRefused):
            self._refuse(decision, arrival)
        elif isinstance(decision, CallTaken) and isinstance(arrival, CallProposed):
            self._name(self._unreported[decision.command_id], arrival.call.call_id)
        elif isinstance(decision, AskHuman):
            self._hold(decision)

    def answered(self, call_id: str | None, tool: str) -> list[CallTool]:
        """The calls that a result settles."""
        if call_id is None:
            commands = [self._unreported[name].command for name in self._of_tool.get(tool, ())]
            # A host that was killed reports nothing of the calls that it had begun by then.
            return [command for command in commands if self.live.is_ordered_here(command)] or commands
        named = [command for command in self._named(call_id) if command.tool == tool]
        # A call in doubt was begun before its host or its guard was gone; a result is of one that was begun since. What was
        # approved elsewhere and not taken up was never begun.
        begun = [one for one in named if one.id not in self.state.commands.withheld] or named
        left = [one for one in begun if one.id not in self.state.commands.doubted] or begun
        is_one = not left or left[0].arguments_hash == left[-1].arguments_hash
        return left[:1] if is_one else left[-1:]

    def _named(self, call_id: str) -> list[CallTool]:
        """The open calls of an id."""
        named = self._of_id.get(call_id) or self._of_id.get(self.waiting.own_id(call_id)) or []
        return [self._unreported[name].command for name in named]

    def is_open(self, call_id: str | None) -> bool:
        """Whether an id names a call that has no outcome yet."""
        return call_id is not None and bool(self._named(call_id))

    def is_taken(self, call_id: str, call: ProposedCall) -> bool:
        """Whether an id names another call that changes something and has no outcome: a result could be of either."""
        same_tool = [command for command in self._named(call_id) if command.tool == call.tool and command.mutating]
        return any(call.arguments_hash not in (one.arguments_hash, one.instead_of) for one in same_tool)

    def told_again(self, call_id: str | None, tool: str) -> list[CallTool]:
        """The settled call that a result may say more of: one that is in doubt, or was said not to have happened."""
        known = None if call_id is None else self._settled.get((self.waiting.own_id(call_id), tool))
        settled = [one for (_, name), one in self._settled.items() if name == tool] if call_id is None else []
        made, late = self.state.calls.made, self.state.end.late
        told = {one.id: one for one in (known, *settled) if one and may_be_told_again(made[one.id], late.get(one.id))}
        return [*told.values()] if len(told) == 1 else []

    def unallowed(self, call_id: str | None, tool: str) -> ProposedCall | None:
        """The call of a result that settles nothing, where it changes something; an undeclared tool does."""
        declared = self.state.derived.tools.get(tool)
        if declared is not None and not declared.effect.is_mutating:
            return None
        asked = self.waiting.meant(call_id, tool)
        call_id = None if call_id is None else self.waiting.own_id(call_id)
        made = None if call_id is None else self._settled.get((call_id, tool))
        if asked is not None and (made is None or made.arguments_hash != asked.arguments_hash):
            return asked
        if made is not None:
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
            if name not in self._of_id and self.waiting.get(name) is None:
                return name

    def _hold(self, question: AskHuman) -> None:
        self._due_ms = min(self._due_ms, question.expires_at_ms)
        if question.purpose is AskPurpose.APPROVAL and question.packet is not None:
            self.waiting.add(question, question.packet.call)

    def _refuse(self, refused: ToolCallRefused, arrival: Arrival) -> None:
        """Remember a call that was turned away: as it was proposed, or as it was held."""
        key, waiting = (refused.call_id, refused.tool), self.waiting.get(refused.call_id)
        call = None if waiting is None else waiting.call
        if isinstance(arrival, CallProposed):
            call = arrival.call
        if call is not None:
            self._refused[key] = call
            self._settled.pop(key, None)

    def _wait(self, call_id: str, command: CallTool) -> None:
        call = self._unreported[command.id] = UnreportedCall([], command)
        if any(one.tool == command.tool and one.mutating for one in self._named(call_id)):
            self.contested.add((call_id, command.tool))
        self._name(call, call_id)
        self._of_tool.setdefault(command.tool, {})[command.id] = True

    def _name(self, call: UnreportedCall, call_id: str) -> None:
        """Let an id name a call that waits for its result."""
        if call_id not in call.call_ids:
            call.call_ids.append(call_id)
            self._of_id.setdefault(call_id, []).append(call.command.id)

    def _settle(self, command_id: str) -> None:
        call = self._unreported.pop(command_id)
        tool = call.command.tool
        for call_id in call.call_ids:
            self._settled[call_id, tool] = call.command
            same = self._of_id[call_id]
            same.remove(command_id)
            if not same:
                del self._of_id[call_id]
        del self._of_tool[tool][command_id]
