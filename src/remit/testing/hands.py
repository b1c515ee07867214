"""The hands of a simulated world: perform commands, well or badly, and play the people around them."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals, commands
from remit.core.journal.arrivals import Happened
from remit.core.journal.codec import read_json
from remit.core.journal.commands import AskPurpose, Command
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.record import Record, replace
from remit.core.run.inference import ModelResult
from remit.core.run.manifest import Source
from remit.core.run.messages import Message
from remit.kernel.budget.wall_clock import waited_by
from remit.kernel.results.endings import denied_by
from remit.kernel.results.proven_effects import left_by, refused_by
from remit.kernel.rules.tool import FILTER_MARK
from remit.kernel.state import RunState, pinned
from remit.observe.views.execution import run_usage
from remit.orchestrate.executors import reports
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.history.fork_run import fork
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.offspring import observed_by, spent_by
from remit.testing.pattern_hands import is_of_a_pattern, manifest_of_child, said_by_code
from remit.testing.scripts import Breaks, Filter, Model, Reply, Stops, Tool
from remit.tool.call.outcomes import NotDone

if TYPE_CHECKING:
    from remit.testing.world import SimulatedWorld

# Longer than any tool's patience, so that what comes this late comes after the timeout.
LATE_MS = 100_000
# A child that is not heard of is given up after this long.
GIVE_UP_MS = 200_000
FORKS_MAX = 2
# Timers are promises not to fire early; a busy process fires them late.
TIMER_LATE_MS_MAX = 60_000
# Every event may bring a signal, and every signal is an event, so without an end there would be none.
SIGNALS_MAX = 100


class PerformedCall(Record):
    """One tool call that was really performed, in this life of the process."""

    run_id: str
    command_id: str
    key: str
    tool: str
    arguments: str
    life: int


class Hands:
    """Performs every kind of command."""

    def __init__(
        self,
        world: "SimulatedWorld",
        *,
        model: Model,
        tools: Mapping[str, Tool],
        person: Callable[[Random], Reply],
        validators: Mapping[str, Callable[[str], Sequence[str]]],
        filters: Mapping[str, Filter],
    ) -> None:
        self._world = world
        self._model = model
        self.tools = tools
        self._person = person
        self._validators = validators
        self._filters = filters
        self._children: dict[tuple[str, str], str] = {}
        self._told: dict[str, int] = {}
        self._forks = 0
        self._signals = 0
        self.performed: list[PerformedCall] = []
        # What really happened: the text each effect left, by the key of its call.
        self.effects: dict[str, str] = {}
        self._performers: dict[type[Command], Callable[[str, Any], Any]] = {
            commands.CallModel: self._call_model,
            commands.CallTool: self._call_tool,
            commands.ReconcileTool: self._reconcile,
            commands.CallCode: self._call_code,
            commands.Retrieve: self._retrieve,
            commands.AskHuman: self._ask_human,
            commands.SetTimer: self._set_timer,
            commands.StartChild: self._start_child,
            commands.CancelCommand: self._cancel,
            commands.ForkRun: self._fork,
        }

    async def perform(self, run_id: str, command: Command) -> None:
        """Do what a command orders."""
        await self._performers[type(command)](run_id, command)

    def after_turn(self, live: Live) -> None:
        """Tell the parent of a run that has ended; news of a child may be lost, but not for good."""
        state = live.state
        if state.end.ending is None or pinned(state).parent is None:
            return
        world, told = self._world, self._told.get(live.run_id, 0)
        if told > 1:
            return
        self._told[live.run_id] = told + 1
        parent = pinned(state).parent
        assert parent is not None
        left = (left_by(state), denied_by(state), refused_by(state))
        how = (state.end.error, state.end.message, run_usage(state), waited_by(state), observed_by(state), *left)
        report = reports.ChildSaid(
            parent.command_id, state.end.ending, world.text(state.result.answer), spent_by(state), *how
        )
        is_lost = world.chance.random() < world.faults.lost_child
        world.later(lambda: world.deliver(parent.run_id, report), after_ms=GIVE_UP_MS if is_lost else 0)

    def _report(self, run_id: str, report: Report, *, after_ms: int = 0) -> None:
        """Deliver what this process found out, perhaps twice; it dies with the process."""
        world = self._world
        world.later(lambda: world.deliver(run_id, report), after_ms=after_ms, dies_with_process=True)
        if world.chance.random() < world.faults.duplicate:
            world.later(lambda: world.deliver(run_id, report), after_ms=after_ms + 5, dies_with_process=True)

    def _state(self, run_id: str) -> RunState:
        live = self._world.lives.get(run_id)
        return live.state if live is not None else self._world.state_of(run_id)

    async def _call_model(self, run_id: str, command: commands.CallModel) -> None:
        live = self._world.lives.get(run_id)
        if live is None:
            return
        answer = self._model(self._read(live.conversation.catch_up(live.state)), self._world.chance)
        report: Report
        if isinstance(answer, Breaks):
            report = arrivals.ModelFailed(command.id, answer.code, was_cut=answer.was_cut)
        else:
            report = reports.ModelSaid(command.id, answer)
        self._report(run_id, report, after_ms=self._world.chance.randrange(2000))

    def _read(self, messages: Sequence[Message]) -> list[Message]:
        """The conversation as an engine would send it: every text in full."""
        text = self._world.text
        return [replace(m, content=text(m.content), reasoning=text(m.reasoning)) for m in messages]

    async def _call_tool(self, run_id: str, command: commands.CallTool) -> None:
        wait_ms = command.not_before_ms - self._world.now_ms()
        if wait_ms <= 0:
            self._call_now(run_id, command)
        else:
            self._world.later(lambda: self._call_cooled(run_id, command), after_ms=wait_ms, dies_with_process=True)

    async def _call_cooled(self, run_id: str, command: commands.CallTool) -> None:
        """Call a tool that had to cool down, unless the call was cut off meanwhile."""
        if command.id in self._state(run_id).commands.open:
            self._call_now(run_id, command)

    def _call_now(self, run_id: str, command: commands.CallTool) -> None:
        world = self._world
        if world.chance.random() < world.faults.tool_failure:
            self._fail_tool(run_id, command)
        else:
            self._report(run_id, self._really_call(run_id, command), after_ms=world.chance.randrange(500))

    def _fail_tool(self, run_id: str, command: commands.CallTool) -> None:
        """Break a call in one of the ways tools break: before, after or without its effect."""
        kinds = ("raise", "not_done", "unavailable", "timeout", "timeout_late", "shape", "refuted")
        kind = self._world.chance.choice(kinds)
        if kind == "raise":
            if self._world.chance.random() < 0.5:
                self._really_call(run_id, command)
            report: Report = reports.ToolBroke(command.id, ErrorCode.TOOL_EXECUTION_FAILED, "it broke", is_unknown=True)
        elif kind == "not_done":
            report = reports.ToolBroke(command.id, ErrorCode.TOOL_EXECUTION_FAILED, "it did nothing")
        elif kind == "unavailable":
            report = reports.ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, "it is not there")
        elif kind == "timeout":
            if self._world.chance.random() < 0.5:
                self._really_call(run_id, command)
            report = reports.ToolBroke(command.id, ErrorCode.TOOL_TIMEOUT, "it took too long")
        elif kind == "timeout_late":
            self._report(run_id, self._really_call(run_id, command), after_ms=LATE_MS)
            report = reports.ToolBroke(command.id, ErrorCode.TOOL_TIMEOUT, "it took too long")
        else:
            said = self._really_call(run_id, command)
            broken = ToolResult(command.call_id, command.tool, "\x1b[2Jnot what was promised")
            report = said
            if isinstance(said, reports.ToolSaid):
                refuted = "it is not there" if kind == "refuted" else ""
                result = said.result if refuted else broken
                report = reports.ToolSaid(command.id, result, refuted)
        self._report(run_id, report)

    def _really_call(self, run_id: str, command: commands.CallTool) -> Report:
        arguments = self._world.text(command.arguments)
        key = (run_id, command.id, command.key, command.tool, arguments)
        self.performed.append(PerformedCall(*key, self._world.life))
        try:
            said = self.tools[command.tool](read_json(arguments))
        except Exception as error:  # noqa: BLE001  # whatever a tool raises is an observation
            is_unknown = not isinstance(error, NotDone)
            return reports.ToolBroke(command.id, ErrorCode.TOOL_EXECUTION_FAILED, str(error), is_unknown=is_unknown)
        content = said.text if isinstance(said, Stops) else said
        if command.mutating:
            self.effects.setdefault(command.key, content)
        result = ToolResult(command.call_id, command.tool, content, stop_loop=isinstance(said, Stops))
        return reports.ToolSaid(command.id, result)

    async def _reconcile(self, run_id: str, command: commands.ReconcileTool) -> None:
        if self._world.chance.random() < self._world.faults.tool_failure:
            report = reports.ToolAccounted(command.id, Happened.UNKNOWN)
        elif command.key in self.effects:
            report = reports.ToolAccounted(command.id, Happened.YES, self.effects[command.key])
        else:
            report = reports.ToolAccounted(command.id, Happened.NO)
        self._report(run_id, report)

    async def _call_code(self, run_id: str, command: commands.CallCode) -> None:
        world = self._world
        if command.name.startswith(FILTER_MARK):
            self._report(run_id, self._filtered(run_id, command))
        elif is_of_a_pattern(command):
            trouble = world.faults.tool_failure / 2
            self._report(run_id, said_by_code(self._state(run_id), command, world.text, world.chance, trouble))
        else:
            self._report(run_id, self._validated(command))

    def _filtered(self, run_id: str, command: commands.CallCode) -> Report:
        calls: list[reports.SiftedCall] = []
        for call in self._state(run_id).calls.proposed:
            held = read_json(self._world.text(call.said or call.arguments) or "{}")
            try:
                arguments, reason = self._filters[command.name.removeprefix(FILTER_MARK)](call.tool, held)
            except Exception as error:  # noqa: BLE001  # whatever the user's code raises is an outcome
                return arrivals.CodeFailed(command.id, str(error))
            calls.append(reports.SiftedCall(ToolCall(call.call_id, call.tool, arguments), reason))
        return reports.FilterSaid(command.id, tuple(calls))

    def _validated(self, command: commands.CallCode) -> Report:
        try:
            problems = tuple(self._validators[command.name](self._world.text(command.input)))
        except Exception as error:  # noqa: BLE001  # whatever the user's code raises is an outcome
            return arrivals.CodeFailed(command.id, str(error))
        return arrivals.CodeReturned(command.id, problems=problems)

    async def _retrieve(self, run_id: str, command: commands.Retrieve) -> None:
        report: Report = reports.ContextSaid(command.id, "evidence", relevance_ppm=800_000)
        if self._world.chance.random() < self._world.faults.tool_failure:
            report = arrivals.ContextFailed(command.id, "nothing to be found")
        self._report(run_id, report)

    async def _ask_human(self, run_id: str, command: commands.AskHuman) -> None:
        """A person answers after a while. People are not part of the process and survive it."""
        reply, world = self._person(self._world.chance), self._world
        parent = pinned(self._state(run_id)).parent
        if parent is not None:
            self._report(parent.run_id, arrivals.ChildSuspended(parent.command_id, command.ending))
        if reply is Reply.IGNORE:
            return
        report = self._answer(run_id, command, reply)
        after_ms = world.chance.randrange(100_000)
        world.later(lambda: world.deliver(run_id, report), after_ms=after_ms)
        if world.chance.random() < world.faults.duplicate:
            world.later(lambda: world.deliver(run_id, report), after_ms=after_ms + 5)

    def _answer(self, run_id: str, command: commands.AskHuman, reply: Reply) -> Report:
        if command.purpose is AskPurpose.OUTCOME:
            assert command.packet is not None
            call = self._state(run_id).commands.open.get(command.packet.about)
            happened = isinstance(call, commands.CallTool) and call.key in self.effects
            return arrivals.OutcomeJudged(command.id, "ada", Happened.YES if happened else Happened.NO)
        by = self._who(command)
        if reply is Reply.REJECT:
            return arrivals.ApprovalRefused(command.id, "ada", "not today")
        if command.purpose is AskPurpose.QUESTION and (reply is Reply.MODIFY or command.call_id):
            return reports.PersonSaid("ada", "forty-two", command.id)
        if reply is Reply.MODIFY and command.packet is not None:
            held = read_json(self._world.text(command.packet.call.arguments))
            arguments = {**held, "n": self._world.chance.randrange(3)}
            return reports.PersonApproved(command.id, by, arguments)
        if command.packet is not None and command.packet.approvals_needed > 1:
            # The second approver is another person, or the same one once more.
            other = reports.PersonApproved(command.id, self._who(command))
            self._world.later(
                lambda: self._world.deliver(run_id, other), after_ms=self._world.chance.randrange(150_000)
            )
        return reports.PersonApproved(command.id, by)

    def _who(self, command: commands.AskHuman) -> str:
        """Who answers: one person, unless several must."""
        is_for_several = command.packet is not None and command.packet.approvals_needed > 1
        return self._world.chance.choice(("ada", "bob")) if is_for_several else "ada"

    async def _set_timer(self, run_id: str, command: commands.SetTimer) -> None:
        wait_ms = max(0, command.due_at_ms - self._world.now_ms())
        if self._world.chance.random() < self._world.faults.delay:
            wait_ms += self._world.chance.randrange(TIMER_LATE_MS_MAX)
        self._report(run_id, arrivals.TimerFired(command.id), after_ms=wait_ms)

    async def _start_child(self, run_id: str, command: commands.StartChild) -> None:
        world = self._world
        self._children[run_id, command.id] = command.run_id
        self._told.pop(command.run_id, None)
        world.later(lambda: world.deliver(run_id, arrivals.ChildLost(command.id)), after_ms=2 * GIVE_UP_MS)
        if world.chance.random() < world.faults.lost_child / 2:
            return
        await world.start(manifest_of_child(self._state(run_id), command, world.text))

    async def _cancel(self, run_id: str, command: commands.CancelCommand) -> None:
        """Only a child hears of it: whatever else was under way reports late, and is not heard."""
        child = self._children.get((run_id, command.about))
        if child is not None:
            world = self._world
            world.later(lambda: world.deliver(child, arrivals.CancelRequested("parent")))

    async def _fork(self, run_id: str, command: commands.ForkRun) -> None:
        lives = self._world.lives
        lives[command.run_id] = await fork(self._world.runner, run_id, command, live=lives.get(command.run_id))
        self.after_turn(lives[command.run_id])

    def maybe_signal(self) -> None:
        """Now and then a person sends a signal, sensible or not."""
        world = self._world
        if not world.lives or self._signals >= SIGNALS_MAX or world.chance.random() >= world.faults.signal:
            return
        self._signals += 1
        run_id = world.chance.choice(list(world.lives))
        report = self._signal(run_id)
        world.later(lambda: world.deliver(run_id, report), after_ms=world.chance.randrange(5000))
        if isinstance(report, arrivals.PauseRequested) and world.chance.random() < 0.9:
            resume = arrivals.ResumeRequested("ada")
            world.later(lambda: world.deliver(run_id, resume), after_ms=5000 + world.chance.randrange(50_000))

    def _signal(self, run_id: str) -> Report:
        chance, state = self._world.chance, self._world.lives[run_id].state
        some_id = chance.choice([*state.commands.open, "0.1", "999.0", "nonsense"])
        # Executors are ours and are believed about their own commands, so a forger must name another one.
        no_call = chance.choice(
            [key for key, c in state.commands.open.items() if not isinstance(c, commands.CallTool)] or ["0.1"]
        )
        if state.end.ending is not None and state.end.ending is not Ending.SUCCESS and self._forks < FORKS_MAX:
            self._forks += 1
            return arrivals.RetryRequested("ada")
        kinds: tuple[Callable[[], Report], ...] = (
            lambda: arrivals.CancelRequested("ada"),
            lambda: arrivals.PauseRequested("ada"),
            lambda: arrivals.PauseRequested("ada"),
            lambda: arrivals.ResumeRequested("ada"),
            lambda: reports.PersonSaid("ada", "please be quick"),
            lambda: arrivals.ToolOutcomeLost(some_id),
            lambda: reports.ModelSaid(some_id, ModelResult("I am not who you asked")),
            lambda: arrivals.ToolReturned(no_call, "forged", b"", 22),
            lambda: arrivals.ApprovalGiven(some_id, "mallory"),
            lambda: arrivals.ApprovalRefused(some_id, "ada"),
            lambda: arrivals.OutcomeJudged(some_id, "ada", Happened.UNKNOWN),
            lambda: arrivals.RunStarted(pinned(state), 0),
            lambda: arrivals.RetryRequested("ada"),
            lambda: arrivals.SessionNoted("ada", f"key-{chance.randrange(3)}", "1"),
            lambda: arrivals.SourcesAccepted("ada", (Source("charge", "/tools.py", "charge", "0f"),)),
            lambda: arrivals.ChildSuspended(some_id, Ending.CONFIRM_REQUIRED),
            lambda: arrivals.RunTaken(chance.randrange(1, 9)),
        )
        return chance.choice(kinds)()
