"""The laws a run must keep, checked on its journal and on what really happened in the world.

Rule 1: a law trusts nothing the kernel computed: it keeps its own books from arrivals, decisions and the manifest.
Rule 2: a broken law names itself, the seed and the turn, so that it can be seen again.
"""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from remit.core import arrivals, commands, rulings
from remit.core.arrivals import Happened
from remit.core.budget import COUNTERS, FIELDS, Dimension
from remit.core.codec import encode_turn, hash_turn
from remit.core.commands import COMMANDS, AskHuman, CallModel, CallTool, Command, StartChild
from remit.core.events import Turn
from remit.core.failure import Ending, ErrorCode
from remit.core.graph import Graph
from remit.core.tools import Effect, ToolDefinition
from remit.kernel.apply import apply
from remit.kernel.decide import take_turn
from remit.kernel.state import RunState, pinned
from remit.testing.runs import LawBroken, SimulatedRun, fold
from remit.testing.world import SimulatedWorld

# What may be ordered although a run is paused or its time is up: to stop, and to be told of a moment.
_HARMLESS = (commands.CancelCommand, commands.SetTimer, commands.ForkRun)


# A law yields what is wrong with a run, in words.
Law = Callable[[SimulatedWorld, SimulatedRun], Iterator[str]]


def keep_the_law(world: SimulatedWorld, laws: Mapping[str, Law] | None = None) -> None:
    """Check every law on every run of a world; raise LawBroken for the first that does not hold."""
    for run_id in world.run_ids():
        run = world.run(run_id)
        for name, law in (LAWS if laws is None else laws).items():
            for what in law(world, run):
                raise LawBroken(name, world.seed, run_id, what)


def folding_gives_the_live_state(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Whoever folds the turns gets what the process that took them has in memory."""
    live = world.lives.get(run.run_id)
    if live is not None and live.state != fold(run.journal[: live.state.seq + 1]):
        yield f"the live state differs from the fold of its {live.state.seq + 1} turns"


def every_run_ends_or_waits(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """When nothing more will happen, a run has ended, is paused, asks somebody, or waits for a child that does."""
    state = run.state
    if state.ending is not None or state.paused or state.asking:
        return
    children = (command for command in state.open.values() if isinstance(command, StartChild))
    if not any(world.run(child.run_id).ending is None for child in children if child.run_id in world.run_ids()):
        yield f"it stands at turn {state.seq} with {[type(c).__name__ for c in state.open.values()]} open"


def no_budget_is_overshot(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """No counter ever holds more, spent and reserved together, than was assigned and released by people."""
    caps, books = list(pinned(run.state).caps), _Books(pinned(run.state).graph)
    for turn in run.turns:
        for decision in turn.decisions:
            if isinstance(decision, rulings.UsageExceeded):
                return  # The world used more than it was allowed; that is charged, and stops the run.
            if isinstance(decision, rulings.QuestionSettled) and decision.answer is rulings.Answer.APPROVED:
                for dimension, amount in decision.releases:
                    caps[dimension] += amount
            books.enter(decision)
        for dimension in COUNTERS:
            if books.held(dimension) > caps[dimension]:
                yield f"turn {turn.seq} holds {books.held(dimension)} {FIELDS[dimension]} of {caps[dimension]}"


def no_gauge_is_exceeded(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Context, retries and depth stay within their caps with every command."""
    caps = pinned(run.state).caps
    for turn, command in _commands(run):
        if isinstance(command, CallModel):
            shown = dict(command.reserved).get(Dimension.INPUT_TOKENS, 0)
            if shown > caps[Dimension.CONTEXT_TOKENS]:
                yield f"turn {turn.seq} shows the model {shown} tokens of {caps[Dimension.CONTEXT_TOKENS]}"
            if command.attempt - 1 > caps[Dimension.RETRIES]:
                yield f"turn {turn.seq} is attempt {command.attempt} with {caps[Dimension.RETRIES]} retries"
        if isinstance(command, StartChild) and command.depth > max(caps[Dimension.DEPTH], pinned(run.state).depth):
            yield f"turn {turn.seq} starts a child at depth {command.depth} of {caps[Dimension.DEPTH]}"


def nothing_is_ordered_when_time_is_up(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """After the deadline, which stands still while people are waited for, a run orders nothing but to stop."""
    caps = pinned(run.state).caps
    deadline = run.turns[0].at_ms + caps[Dimension.WALL_CLOCK_MS]
    if inherited := pinned(run.state).deadline_at_ms:
        deadline = min(deadline, inherited)
    asking, paused, since = 0, False, 0
    for turn in run.turns:
        standing = asking > 0 or paused
        moved = deadline + (turn.at_ms - since if standing else 0)
        ordered = [c for c in turn.decisions if type(c) in COMMANDS and not isinstance(c, _HARMLESS)]
        if ordered and turn.at_ms >= moved:
            yield f"turn {turn.seq} at {turn.at_ms} orders {type(ordered[0]).__name__} after the deadline {moved}"
        for decision in turn.decisions:
            asking += isinstance(decision, AskHuman) - isinstance(decision, rulings.QuestionSettled)
            paused = (paused or isinstance(decision, rulings.RunPaused)) and not isinstance(
                decision, rulings.RunResumed | rulings.RunEnded
            )
        if standing and not (asking > 0 or paused):
            deadline = moved
        elif not standing and (asking > 0 or paused):
            since = turn.at_ms


def leases_hold(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A child is given exactly its lease, and what it reports is what it used."""
    for turn, command in _commands(run):
        if not isinstance(command, StartChild) or command.run_id not in world.run_ids():
            continue
        given = pinned(world.run(command.run_id).state).caps
        for dimension in COUNTERS:
            if given[dimension] != dict(command.lease).get(int(dimension), 0):
                yield f"turn {turn.seq} leases {command.lease} and the child has {given[dimension]} {FIELDS[dimension]}"


def only_verified_observations_are_committed(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A committed call was seen to return what it promised, or its tool or a person said so afterwards."""
    for turn in run.turns:
        for decision in turn.decisions:
            if isinstance(decision, rulings.CallSettled) and decision.rung is rulings.Rung.COMMITTED:
                if not _is_verified(turn.arrival):
                    yield f"turn {turn.seq} commits command {decision.command_id} on {turn.arrival}"
                elif not decision.verifier or not decision.evidence:
                    yield f"turn {turn.seq} commits command {decision.command_id} without verifier or evidence"


def _is_verified(arrival: arrivals.Arrival) -> bool:
    if isinstance(arrival, arrivals.ToolReturned):
        return not arrival.violations and not arrival.refuted
    if isinstance(arrival, arrivals.ToolReconciled):
        return arrival.happened is Happened.YES and not arrival.violations
    return isinstance(arrival, arrivals.OutcomeJudged) and arrival.happened is Happened.YES


def what_is_committed_really_happened(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Every committed effect is one that the world knows of."""
    keys = {command.id: command.key for _, command in _commands(run) if isinstance(command, CallTool)}
    tools = _tools(run)
    called = {command.id: command.tool for _, command in _commands(run) if isinstance(command, CallTool)}
    for settled in run.all(rulings.CallSettled):
        is_effect = tools[called[settled.command_id]].effect in (Effect.WRITE, Effect.EXTERNAL)
        if settled.rung is rulings.Rung.COMMITTED and is_effect and keys[settled.command_id] not in world.hands.effects:
            yield f"command {settled.command_id} is committed and never happened"


def no_mutating_command_without_its_approval(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A call that changes something was approved by a person, for exactly its arguments, in the turn that orders it."""
    asked = {command.id: command for _, command in _commands(run) if isinstance(command, AskHuman)}
    tools = _tools(run)
    for turn, command in _commands(run):
        if not isinstance(command, CallTool) or tools[command.tool].effect not in (Effect.WRITE, Effect.EXTERNAL):
            continue
        if not command.mutating:
            yield f"turn {turn.seq} orders {command.tool} as if it changed nothing"
        arrival = turn.arrival
        if not isinstance(arrival, arrivals.ApprovalGiven):
            yield f"turn {turn.seq} orders {command.tool} without an approval"
            continue
        packet = asked[arrival.command_id].packet
        approved = arrival.modified or (packet.call if packet is not None else None)
        if approved is None or approved.arguments_hash != command.arguments_hash or packet is None:
            yield f"turn {turn.seq} orders {command.tool} with arguments nobody approved"
        elif packet.call.tool != command.tool or packet.tool_version != command.version:
            yield f"turn {turn.seq} orders another tool than was approved"


def an_approval_is_used_once(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """No question orders more than one call, and none is settled twice."""
    used: list[str] = []
    for turn in run.turns:
        if isinstance(turn.arrival, arrivals.ApprovalGiven):
            used += [turn.arrival.command_id for decision in turn.decisions if isinstance(decision, CallTool)]
    settled = [ruling.command_id for ruling in run.all(rulings.QuestionSettled)]
    for question_id in {*used, *settled}:
        if used.count(question_id) > 1 or settled.count(question_id) > 1:
            yield f"question {question_id} was used {used.count(question_id)} times"


def no_mutating_command_is_issued_again(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """An effect is attempted once; again only after a crash, with the same key, by a tool declared idempotent."""
    tools = _tools(run)
    seen: dict[str, int] = {}
    for performed in world.hands.performed:
        tool = tools.get(performed.tool)
        if performed.run_id != run.run_id or tool is None or tool.effect not in (Effect.WRITE, Effect.EXTERNAL):
            continue
        if performed.key in seen and not (tool.idempotent and performed.life > seen[performed.key]):
            yield f"{performed.tool} was attempted again with key {performed.key}"
        seen[performed.key] = performed.life


def an_unknown_outcome_is_never_success(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A mutating call that ran out of time or was lost is in doubt, and a run with one in doubt is no success."""
    for turn in run.turns:
        arrival = turn.arrival
        is_timeout = isinstance(arrival, arrivals.ToolFailed) and arrival.code is ErrorCode.TOOL_TIMEOUT
        if is_timeout or isinstance(arrival, arrivals.ToolOutcomeLost):
            assert isinstance(arrival, arrivals.ToolFailed | arrivals.ToolOutcomeLost)
            for decision in turn.decisions:
                settles = isinstance(decision, rulings.CallSettled) and decision.command_id == arrival.command_id
                if settles and _is_effect(run, arrival.command_id):
                    yield f"turn {turn.seq} settles command {arrival.command_id}, whose outcome nobody knows"
    if run.ending in (Ending.SUCCESS, Ending.PARTIAL_SUCCESS) and run.state.doubted:
        yield f"it ended as {run.ending} with {sorted(run.state.doubted)} in doubt"


def success_is_earned(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """SUCCESS means that something was answered and every effect that was proposed was committed."""
    if run.ending is not Ending.SUCCESS:
        return
    if not run.state.answer:
        yield "it ended as SUCCESS without an answer"
    tools, open_effects = _tools(run), set()
    for turn in run.turns:
        for decision in turn.decisions:
            key = _effect_of(decision, tools)
            if key is not None:
                open_effects.add(key)
            if isinstance(decision, rulings.QuestionSettled):
                open_effects -= _held_by(run, decision.command_id)
            if isinstance(decision, rulings.CallSettled) and decision.rung is rulings.Rung.COMMITTED:
                trace = run.state.calls[decision.command_id]
                open_effects.discard((trace.tool, trace.arguments_hash))
    if open_effects:
        yield f"it ended as SUCCESS with {sorted(tool for tool, _ in open_effects)} proposed and not committed"


def deciding_again_gives_the_same(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Re-deciding the recorded arrivals reproduces every turn, byte for byte."""
    state = RunState()
    for turn, data in zip(run.turns, run.journal, strict=True):
        if pinned(run.state).forked_from is None and encode_turn(take_turn(state, turn.arrival, turn.at_ms)) != data:
            yield f"turn {turn.seq} is decided differently when decided again"
            return
        apply(state, turn, hash_turn(data))


def the_chain_holds(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Every turn carries the hash of the one before it, in order and without gaps; time never goes back."""
    head, at_ms = b"", 0
    for seq, (turn, data) in enumerate(zip(run.turns, run.journal, strict=True)):
        if turn.seq != seq or turn.previous != head or turn.at_ms < at_ms:
            yield f"turn {seq} does not follow the one before it"
        head, at_ms = hash_turn(data), turn.at_ms


def a_paused_run_orders_nothing(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Between pause and resume no command is issued, but to stop."""
    paused = False
    for turn in run.turns:
        paused = paused and not any(isinstance(d, rulings.RunResumed | rulings.RunEnded) for d in turn.decisions)
        for decision in turn.decisions:
            if paused and type(decision) in COMMANDS and not isinstance(decision, _HARMLESS):
                yield f"turn {turn.seq} orders {type(decision).__name__} although the run is paused"
        paused = paused or any(isinstance(decision, rulings.RunPaused) for decision in turn.decisions)


def every_call_is_answered(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Before the model is asked again, each call it proposed has exactly one result in the context."""
    proposed: dict[int, int] = {}
    answered = 0
    for entry in run.state.context:
        if isinstance(entry, arrivals.ModelAnswered):
            if sum(proposed.values()) != answered:
                yield f"the model was asked again with {answered} of {sum(proposed.values())} calls answered"
            proposed[len(proposed)] = len(entry.calls)
        else:
            answered += entry.role == "tool"


def an_ended_run_holds_nothing(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A run ends once; what was open is settled or in doubt, and only what is in doubt stays reserved."""
    if run.ending is None:
        return
    if len(run.all(rulings.RunEnded)) != 1:
        yield "it ended more than once"
    books = _Books(pinned(run.state).graph)
    for turn in run.turns[: run.state.ended_seq + 1]:
        for decision in turn.decisions:
            books.enter(decision)
    doubted = {ruling.command_id for ruling in run.all(rulings.OutcomeDoubted)}
    if left := sorted(key for key in books.unsettled() if key not in doubted):
        yield f"commands {left} were neither settled nor in doubt when it ended"
    if set(run.state.open) != set(run.state.doubted):
        yield f"commands {sorted(set(run.state.open) - set(run.state.doubted))} are open after the ending"
    held = [0] * len(FIELDS)
    for command in run.state.open.values():
        for dimension, amount in command.reserved:
            held[dimension] += amount
    if held != run.state.reserved:
        yield f"{run.state.reserved} is reserved after the ending and {held} is in doubt"


LAWS: Mapping[str, Law] = MappingProxyType(
    {
        law.__name__: law
        for law in (
            folding_gives_the_live_state,
            every_run_ends_or_waits,
            no_budget_is_overshot,
            no_gauge_is_exceeded,
            nothing_is_ordered_when_time_is_up,
            leases_hold,
            only_verified_observations_are_committed,
            what_is_committed_really_happened,
            no_mutating_command_without_its_approval,
            an_approval_is_used_once,
            no_mutating_command_is_issued_again,
            an_unknown_outcome_is_never_success,
            success_is_earned,
            deciding_again_gives_the_same,
            the_chain_holds,
            a_paused_run_orders_nothing,
            every_call_is_answered,
            an_ended_run_holds_nothing,
        )
    }
)


class _Books:
    """What is spent and reserved, kept from the decisions alone."""

    def __init__(self, graph: Graph) -> None:
        self._terminals = frozenset(node.name for node in graph.nodes if node.ending is not None)
        self._open: dict[str, Command] = {}
        self._spent: dict[int, int] = {}

    def enter(self, decision: object) -> None:
        if type(decision) in COMMANDS:
            command: Command = decision  # type: ignore[assignment]  # the set holds exactly the commands
            self._open[command.id] = command
        elif isinstance(decision, rulings.CommandSettled | rulings.CallSettled):
            self._settle(decision.command_id, decision.charged)
        elif isinstance(decision, rulings.QuestionSettled):
            self._settle(decision.command_id, self._open[decision.command_id].reserved)
        elif isinstance(decision, rulings.NodeEntered) and decision.node not in self._terminals:
            self._spend(((int(Dimension.STEPS), 1),))

    def unsettled(self) -> list[str]:
        """Open commands that somebody performs or answers; timers and inquiries end with the run."""
        vanishing = (*_HARMLESS, commands.ReconcileTool)
        return [command.id for command in self._open.values() if not isinstance(command, vanishing)]

    def held(self, dimension: int) -> int:
        reserved = sum(dict(command.reserved).get(dimension, 0) for command in self._open.values())
        return self._spent.get(dimension, 0) + reserved

    def _settle(self, command_id: str, charged: tuple[tuple[int, int], ...]) -> None:
        del self._open[command_id]
        self._spend(charged)

    def _spend(self, charged: tuple[tuple[int, int], ...]) -> None:
        for dimension, amount in charged:
            self._spent[dimension] = self._spent.get(dimension, 0) + amount


def _commands(run: SimulatedRun) -> Iterator[tuple[Turn, Command]]:
    for turn in run.turns:
        for decision in turn.decisions:
            if type(decision) in COMMANDS:
                yield turn, decision  # type: ignore[misc]  # the set holds exactly the commands


def _tools(run: SimulatedRun) -> dict[str, ToolDefinition]:
    return {tool.name: tool for tool in pinned(run.state).tools}


def _is_effect(run: SimulatedRun, command_id: str) -> bool:
    tool = next((c.tool for _, c in _commands(run) if isinstance(c, CallTool) and c.id == command_id), "")
    return tool in _tools(run) and _tools(run)[tool].effect in (Effect.WRITE, Effect.EXTERNAL)


def _effect_of(decision: object, tools: Mapping[str, ToolDefinition]) -> tuple[str, bytes] | None:
    """The effect a decision proposes, holds or attempts; malformed calls propose none."""
    if isinstance(decision, CallTool):
        tool, digest = decision.tool, decision.arguments_hash
    elif isinstance(decision, AskHuman) and decision.packet is not None and not decision.packet.about:
        tool, digest = decision.packet.call.tool, decision.packet.call.arguments_hash
    elif isinstance(decision, rulings.ToolCallRefused) and decision.code not in (
        ErrorCode.CONSTRAINT_SCHEMA_INVALID,
        ErrorCode.TOOL_NOT_FOUND,
    ):
        tool, digest = decision.tool, decision.arguments_hash
    else:
        return None
    is_effect = tool in tools and tools[tool].effect in (Effect.WRITE, Effect.EXTERNAL)
    return (tool, digest) if is_effect else None


def _held_by(run: SimulatedRun, question_id: str) -> set[tuple[str, bytes]]:
    """The proposal a question held: approved, it is ordered or refused in the same turn under its own name."""
    for ask in run.all(AskHuman):
        if ask.id == question_id and ask.packet is not None and not ask.packet.about:
            return {(ask.packet.call.tool, ask.packet.call.arguments_hash)}
    return set()
