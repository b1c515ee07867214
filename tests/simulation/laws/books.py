"""Books that a law keeps by itself: what is open, what is spent, and what a run said, from its turns alone."""

from collections.abc import Iterable, Iterator, Mapping

from remit.core.journal import commands, rulings
from remit.core.journal.arrivals import ChildEnded, RunForked
from remit.core.journal.commands import COMMANDS, AskHuman, CallTool, Command, StartChild
from remit.core.journal.turn import Turn
from remit.core.limits.budget import Charges, Dimension
from remit.core.limits.tools import MUTATING, ToolDefinition
from remit.core.work.graph import Graph
from remit.kernel.state import pinned
from remit.testing.runs import SimulatedRun

# What may be ordered although a run is paused or its time is up: to stop, and to be told of a moment.
HARMLESS = (commands.CancelCommand, commands.SetTimer, commands.ForkRun)


class Books:
    """What is spent and reserved, kept from the decisions alone."""

    def __init__(self, graph: Graph) -> None:
        self._terminals = frozenset(node.name for node in graph.nodes if node.ending is not None)
        self._open: dict[str, Command] = {}
        self._spent: dict[int, int] = {}

    def enter(self, decision: object) -> None:
        """Enter what a decision opens, settles or spends."""
        if type(decision) in COMMANDS:
            command: Command = decision  # type: ignore[assignment]  # the set holds exactly the commands
            self._open[command.id] = command
        elif isinstance(decision, rulings.CommandSettled | rulings.CallSettled):
            self._settle(decision.command_id, decision.charged)
        elif isinstance(decision, rulings.QuestionSettled):
            self._settle(decision.command_id, self._open[decision.command_id].reserved)
        elif isinstance(decision, rulings.EffectUnallowed):
            self._spend(decision.charged)
        elif isinstance(decision, rulings.NodeEntered) and decision.node not in self._terminals:
            self._spend(((int(Dimension.STEPS), 1),))

    def unsettled(self) -> list[str]:
        """Open commands that are performed or answered; timers and inquiries end with the run."""
        vanishing = (*HARMLESS, commands.ReconcileTool)
        return [command.id for command in self._open.values() if not isinstance(command, vanishing)]

    def held(self, dimension: int) -> int:
        """What is spent and reserved of a dimension, together."""
        reserved = sum(dict(command.reserved).get(dimension, 0) for command in self._open.values())
        return self._spent.get(dimension, 0) + reserved

    def _settle(self, command_id: str, charged: Charges) -> None:
        del self._open[command_id]
        self._spend(charged)

    def _spend(self, charged: Charges) -> None:
        for dimension, amount in charged:
            self._spent[dimension] = self._spent.get(dimension, 0) + amount


def commands_of(run: SimulatedRun) -> Iterator[tuple[Turn, Command]]:
    """Every command of a run with the turn that orders it."""
    for turn in run.turns:
        for decision in turn.decisions:
            if type(decision) in COMMANDS:
                yield turn, decision  # type: ignore[misc]  # the set holds exactly the commands


# Later than any deadline: of a child that does not say how long it waited.
ALL_THE_TIME = 2**63


class Waits:
    """Who waits for a person: the run itself, which asks or is paused, or children of it, by the command of each."""

    def __init__(self) -> None:
        self._asking, self._is_paused = 0, False
        self.held: set[str] = set()

    @property
    def is_own(self) -> bool:
        """Whether the run itself waits."""
        return self._asking > 0 or self._is_paused

    def enter(self, turn: Turn) -> None:
        """Enter what a turn says of people."""
        for decision in turn.decisions:
            self._asking += isinstance(decision, AskHuman) - isinstance(decision, rulings.QuestionSettled)
            if isinstance(decision, rulings.ChildHeld):
                self.held.add(decision.command_id)
            elif isinstance(decision, rulings.CommandSettled | rulings.CallSettled | rulings.ChildReleased):
                self.held.discard(decision.command_id)
            self._is_paused = self._is_paused or isinstance(decision, rulings.RunPaused)
            self._is_paused = self._is_paused and not isinstance(decision, rulings.RunResumed | rulings.RunEnded)


def first_deadline_of(run: SimulatedRun) -> int:
    """The deadline before a person was waited for."""
    manifest = pinned(run.state)
    deadline = run.turns[0].at_ms + manifest.caps[Dimension.WALL_CLOCK_MS]
    return min(deadline, manifest.deadline_at_ms or deadline)


def deadlines_of(run: SimulatedRun) -> Iterator[tuple[Turn, int]]:
    """Every turn with the deadline in force: it moves along while a person is asked, by a child too, or the run paused.

    When the last child that waited has ended, the deadline has moved by what the longest of them waited, or the run itself;
    by all the time since the first of them did, where one does not say how long it waited. A child that is sent only when
    the run is resumed has waited for no person by then.
    """
    deadline, waits, before_ms = first_deadline_of(run), Waits(), run.turns[0].at_ms
    # Of the time since the first of the children that wait was known to; and how the deadline was when each was started.
    held_ms, own_ms, told, before, unsent = 0, 0, list[int](), dict[str, int](), set[str]()
    for turn in run.turns:
        passed_ms, before_ms = turn.at_ms - before_ms, turn.at_ms
        if waits.held:
            held_ms, own_ms = held_ms + passed_ms, own_ms + passed_ms * waits.is_own
            arrival = turn.arrival
            if (ended := getattr(arrival, "command_id", "")) in waits.held:
                is_told = isinstance(arrival, ChildEnded) and arrival.stood_ms >= 0
                told.append(before[ended] + arrival.stood_ms if is_told else ALL_THE_TIME)  # type: ignore[union-attr]
            released = {one.command_id for one in turn.decisions if isinstance(one, rulings.ChildReleased)}
            told += [ALL_THE_TIME] * len(released)
            if waits.held <= {ended, *released}:
                deadline = min(deadline + held_ms, max(deadline + own_ms, *told))
                held_ms, own_ms, told = 0, 0, []
        elif waits.is_own:
            deadline += passed_ms
        yield turn, deadline + held_ms
        before |= {child.id: deadline for child in turn.decisions if isinstance(child, StartChild)}
        unsent |= set(before) if isinstance(turn.arrival, RunForked) else set()
        for decision in turn.decisions:
            if isinstance(decision, rulings.CommandsWithheld):
                unsent |= set(before).intersection(decision.command_ids)
            elif isinstance(decision, rulings.RunResumed):
                before |= dict.fromkeys(unsent, deadline)
                unsent = set()
        waits.enter(turn)


def tools_of(run: SimulatedRun) -> dict[str, ToolDefinition]:
    """The tools the manifest pinned, by name."""
    return {tool.name: tool for tool in pinned(run.state).tools}


def is_effect(run: SimulatedRun, command_id: str) -> bool:
    """Whether a command calls a tool that changes something."""
    tool = next((c.tool for _, c in commands_of(run) if isinstance(c, CallTool) and c.id == command_id), "")
    return tool in tools_of(run) and tools_of(run)[tool].effect in MUTATING


def effect_of(decision: object, tools: Mapping[str, ToolDefinition]) -> tuple[str, bytes] | None:
    """The effect a decision proposes, holds or attempts; what an unknown tool would do counts as one."""
    if isinstance(decision, CallTool):
        tool, digest = decision.tool, decision.arguments_hash
    elif isinstance(decision, AskHuman) and decision.packet is not None and not decision.packet.about:
        tool, digest = decision.packet.call.tool, decision.packet.call.arguments_hash
    elif isinstance(decision, rulings.ToolCallRefused):
        tool, digest = decision.tool, decision.arguments_hash
    else:
        return None
    is_effect = tool not in tools or tools[tool].effect in MUTATING or leases_effects(tools[tool].lease)
    return (tool, digest) if is_effect else None


def leases_effects(lease: Iterable[tuple[str, int]]) -> bool:
    """Whether a child with this lease may change something."""
    return any(name == "side_effects" and amount > 0 for name, amount in lease)


def held_by(run: SimulatedRun, question_id: str) -> set[tuple[str, bytes]]:
    """The proposal a question held: approved, it is ordered or refused in the same turn under its own name."""
    for ask in run.all(AskHuman):
        if ask.id == question_id and ask.packet is not None and not ask.packet.about:
            return {(ask.packet.call.tool, ask.packet.call.arguments_hash)}
    return set()
