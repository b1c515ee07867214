"""Laws of effects: what may be ordered, committed, repeated and claimed."""

from collections.abc import Callable, Iterator
from hashlib import sha256

from remit.core.failure import Ending, ErrorCode, Refusal
from remit.core.journal import arrivals, commands, rulings
from remit.core.journal.arrivals import Happened
from remit.core.journal.codec import read_json
from remit.core.journal.commands import AskHuman, CallTool
from remit.core.journal.proposed_call import Provenance
from remit.core.journal.turn import Turn
from remit.core.limits.boundary import BoundaryMode
from remit.core.limits.budget import Dimension
from remit.core.limits.tools import MUTATING, ToolCategory
from remit.core.record import JsonObject
from remit.core.schema.json_schema import compile_schema
from remit.core.work.goal import GROUNDS, NEEDS_OBSERVATION
from remit.kernel.results import notices
from remit.kernel.state import pinned
from remit.testing.runs import SimulatedRun
from remit.testing.world import SimulatedWorld
from tests.simulation.laws.books import commands_of, effect_of, held_by, is_effect, tools_of


def only_verified_observations_are_committed(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A committed call was seen to return what it promised, or its tool or a person said so afterwards."""
    for turn in run.turns:
        for decision in turn.decisions:
            if isinstance(decision, rulings.CallSettled) and decision.rung is rulings.Rung.COMMITTED:
                if not _is_verified(turn.arrival):
                    yield f"turn {turn.seq} commits command {decision.command_id} on {turn.arrival}"
                elif not decision.verifier or not decision.evidence:
                    yield f"turn {turn.seq} commits command {decision.command_id} without verifier or evidence"
                elif isinstance(turn.arrival, arrivals.ToolReturned) and _is_unchecked(run, decision.command_id):
                    yield f"turn {turn.seq} commits the effect of command {decision.command_id}, which nothing could refuse"


def _is_unchecked(run: SimulatedRun, command_id: str) -> bool:
    """Whether a call changes something by a tool that declares no check at all; those of the simulation do or do not."""
    tool = tools_of(run)[run.state.calls.made[command_id].tool]
    return tool.effect in MUTATING and not tool.result and tool.verifier == "schema"


def _is_verified(arrival: arrivals.Arrival) -> bool:
    if isinstance(arrival, arrivals.ToolReturned):
        return not arrival.violations and not arrival.refuted
    if isinstance(arrival, arrivals.ToolReconciled):
        return arrival.happened is Happened.YES
    return isinstance(arrival, arrivals.OutcomeJudged) and arrival.happened is Happened.YES


def what_is_committed_really_happened(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Every committed effect is one that the world knows of."""
    keys = {command.id: command.key for _, command in commands_of(run) if isinstance(command, CallTool)}
    tools = tools_of(run)
    called = {command.id: command.tool for _, command in commands_of(run) if isinstance(command, CallTool)}
    for settled in run.all(rulings.CallSettled):
        is_effect = tools[called[settled.command_id]].effect in MUTATING
        if settled.rung is rulings.Rung.COMMITTED and is_effect and keys[settled.command_id] not in world.hands.effects:
            yield f"command {settled.command_id} is committed and never happened"


def no_mutating_command_without_its_approval(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A call that changes something was approved by a person, for exactly its arguments, in the turn that orders it."""
    asked = {command.id: command for _, command in commands_of(run) if isinstance(command, AskHuman)}
    tools = tools_of(run)
    for turn, command in commands_of(run):
        if not isinstance(command, CallTool) or tools[command.tool].effect not in MUTATING:
            continue
        if not command.mutating:
            yield f"turn {turn.seq} orders {command.tool} as if it changed nothing"
        arrival = turn.arrival
        if not isinstance(arrival, arrivals.ApprovalGiven):
            if not _may_act_unattended(run, turn, command):
                yield f"turn {turn.seq} orders {command.tool} without an approval"
            continue
        packet = asked[arrival.command_id].packet
        approved = arrival.modified or (packet.call if packet is not None else None)
        if approved is None or approved.arguments_hash != command.arguments_hash or packet is None:
            yield f"turn {turn.seq} orders {command.tool} with arguments that were not approved"
        elif packet.call.tool != command.tool or packet.tool_version != command.version:
            yield f"turn {turn.seq} orders another tool than was approved"


def _may_act_unattended(run: SimulatedRun, turn: Turn, command: CallTool) -> bool:
    """Whether a changing call needs no person: its values are bound and its boundary demands none, or that only audits."""
    manifest = pinned(run.state)
    boundary, tool = manifest.boundary, tools_of(run)[command.tool]
    if boundary.mode is BoundaryMode.AUDIT:
        return any(isinstance(d, rulings.CallNoted) and d.call_id == command.call_id for d in turn.decisions) or (
            _is_bound(run, turn, command)
        )
    is_demanded = (
        tool.effect in boundary.approval_effects
        or tool.category in boundary.four_eyes
        or (tool.category in boundary.approval_categories and tool.category is not ToolCategory.FILE_SYSTEM)
        or manifest.caps[Dimension.SIDE_EFFECTS] == 0
    )
    return _is_bound(run, turn, command) and not is_demanded


def _is_bound(run: SimulatedRun, turn: Turn, command: CallTool) -> bool:
    """Whether the latest proposal of these bytes, by this turn, was found bound by the gate."""
    is_bound = False
    for earlier in run.turns[: turn.seq + 1]:
        proposing = isinstance(earlier.arrival, arrivals.ModelAnswered | arrivals.CodeReturned)
        same = [
            call.provenance
            for call in (earlier.arrival.calls if proposing else ())  # type: ignore[union-attr]  # both have calls
            if (call.call_id, call.arguments_hash) == (command.call_id, command.arguments_hash)
            and _is_tool_or_twin(run, call.tool, command.tool)
        ]
        is_bound = Provenance.BOUND in same if same else is_bound
    return is_bound


def _is_tool_or_twin(run: SimulatedRun, proposed: str, ordered: str) -> bool:
    """Whether the ordered tool is the one that was proposed, or its declared equivalent."""
    tool = tools_of(run).get(proposed)
    return proposed == ordered or (tool is not None and tool.fallback == ordered)


def four_eyes_are_two_people(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A call that several people must approve is ordered when so many different people have."""
    asked = {command.id: command for _, command in commands_of(run) if isinstance(command, AskHuman)}
    approved: dict[str, set[str]] = {}
    for turn in run.turns:
        arrival = turn.arrival
        if not isinstance(arrival, arrivals.ApprovalGiven):
            continue
        approved.setdefault(arrival.command_id, set()).add(arrival.by)
        packet = asked[arrival.command_id].packet
        is_ordered = any(isinstance(decision, CallTool) for decision in turn.decisions)
        if packet is not None and is_ordered and len(approved[arrival.command_id]) < packet.approvals_needed:
            yield f"turn {turn.seq} orders {packet.call.tool} with {len(approved[arrival.command_id])} approvals"


def nothing_unsafe_goes_on(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A run in which a condition stopped a call is over in that turn, and no call of it is ordered there."""
    for turn in run.turns:
        unsafe = [d for d in turn.decisions if isinstance(d, rulings.ToolCallRefused) and d.code == Refusal.UNSAFE]
        if unsafe and not any(isinstance(decision, rulings.RunEnded) for decision in turn.decisions):
            yield f"turn {turn.seq} refuses {unsafe[0].tool} as unsafe and the run goes on"
        if unsafe and (ordered := [d.tool for d in turn.decisions if isinstance(d, CallTool)]):
            yield f"turn {turn.seq} refuses {unsafe[0].tool} as unsafe and orders {ordered[0]} beside it"


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
    """An effect is attempted once; again only with the same key, by a tool declared idempotent.

    That is after a crash or when its run was taken over, where it failed and it is unknown what it had done by then, or after a
    halt that called it off.
    """
    tools = tools_of(run)
    seen: dict[str, int] = {}
    for performed in world.hands.performed:
        tool = tools.get(performed.tool)
        if performed.run_id != run.run_id or tool is None or tool.effect not in MUTATING:
            continue
        is_again = performed.key in seen and performed.life <= seen[performed.key]
        if performed.key in seen and not (
            tool.idempotent and (not is_again or _may_be_repeated(run, performed.command_id))
        ):
            yield f"{performed.tool} was attempted again with key {performed.key}"
        seen[performed.key] = performed.life


def _may_be_repeated(run: SimulatedRun, command_id: str) -> bool:
    """Whether an attempt came after another that failed within or was called off by a halt, or whose driver lost the run."""
    if any(isinstance(turn.arrival, arrivals.RunTaken) for turn in run.turns):
        return True
    if any(isinstance(turn.arrival, arrivals.RunHalted) and command_id in turn.arrival.withheld for turn in run.turns):
        return True
    calls = {command.id: command for _, command in commands_of(run) if isinstance(command, CallTool)}
    key = calls[command_id].key if command_id in calls else ""
    failed = [turn.arrival for turn in run.turns if isinstance(turn.arrival, arrivals.ToolFailed)]
    open_keys = {calls[arrival.command_id].key for arrival in failed if arrival.is_unknown}
    return key in open_keys


def an_unknown_outcome_is_never_success(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A mutating call that ran out of time, was lost or failed within is in doubt, and a run with one in doubt is no success.

    Of a tool that may be called again with the same key, it may be settled, as what it is: unknown.
    """
    for turn in run.turns:
        arrival = turn.arrival
        is_timeout = isinstance(arrival, arrivals.ToolFailed) and (
            arrival.code is ErrorCode.TOOL_TIMEOUT or arrival.is_unknown
        )
        if is_timeout or isinstance(arrival, arrivals.ToolOutcomeLost):
            assert isinstance(arrival, arrivals.ToolFailed | arrivals.ToolOutcomeLost)
            for decision in turn.decisions:
                settles = (
                    isinstance(decision, rulings.CallSettled)
                    and decision.command_id == arrival.command_id
                    and decision.code != rulings.OUTCOME_UNKNOWN
                )
                if settles and is_effect(run, arrival.command_id):
                    yield f"turn {turn.seq} settles command {arrival.command_id}, whose outcome is unknown"
    if run.ending in (Ending.SUCCESS, Ending.PARTIAL_SUCCESS) and run.state.commands.doubted:
        yield f"it ended as {run.ending} with {sorted(run.state.commands.doubted)} in doubt"
    if run.ending in (Ending.SUCCESS, Ending.PARTIAL_SUCCESS) and (left := _left_open(run)):
        yield f"it ended as {run.ending} although the outcome is unknown of {sorted(tool for tool, _ in left)}"


def _left_open(run: SimulatedRun) -> set[tuple[str, bytes]]:
    """Effects that were settled as unknown, and of which no later attempt and no person has told more."""
    left: set[tuple[str, bytes]] = set()
    for turn in run.turns:
        is_account = isinstance(turn.arrival, arrivals.ToolReconciled | arrivals.OutcomeJudged)
        for settled in [decision for decision in turn.decisions if isinstance(decision, rulings.CallSettled)]:
            trace = run.state.calls.made[settled.command_id]
            if settled.code == rulings.OUTCOME_UNKNOWN:
                left.add((trace.tool, trace.arguments_hash))
            elif settled.rung is rulings.Rung.COMMITTED or settled.code == rulings.UNVERIFIED or is_account:
                left.discard((trace.tool, trace.arguments_hash))
    return left


def success_is_earned(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """SUCCESS means that something was answered and every effect that was proposed was committed, or made good.

    A proposal that no call was ever made of, for want of the tool or for its arguments, is made good by a later committed
    call of the same tool, or with the same arguments; by none of the same answer. What a child left undone counts as well,
    and so does a delegation with side effects that was refused, failed or lost. A later child makes it good by committing
    the same tool; by succeeding, if it is the same delegation; and a delegation of its tool, if it changed something too.
    """
    if run.ending is not Ending.SUCCESS:
        return
    if not run.state.result.answer:
        yield "it ended as SUCCESS without an answer"
    yield from _unmet(world, run)
    tools, open_effects, malformed = tools_of(run), set[tuple[str, bytes]](), dict[tuple[str, bytes], int]()
    for turn in run.turns:
        if isinstance(turn.arrival, arrivals.ChildEnded | arrivals.ChildLost):
            place = turn.arrival.command_id.encode()
            malformed |= {(tool, place): -1 for tool in _left_by_child(world, run, turn.arrival)}
        if isinstance(turn.arrival, arrivals.ChildEnded):
            good = _done_by_child(world, run, turn.arrival)
            malformed = {one: answer for one, answer in malformed.items() if not good(one)}
            open_effects = {one for one in open_effects if not good(one)}
        for decision in turn.decisions:
            key = effect_of(decision, tools)
            if key is not None and isinstance(decision, rulings.ToolCallRefused) and _is_malformed(decision):
                malformed[key] = _answer_with(run, decision.call_id, turn.seq)
            elif key is not None:
                open_effects.add(key)
            if isinstance(decision, rulings.QuestionSettled):
                open_effects -= held_by(run, decision.command_id)
            if isinstance(decision, rulings.CallSettled) and decision.rung is rulings.Rung.COMMITTED:
                trace = run.state.calls.made[decision.command_id]
                open_effects.discard((trace.tool, trace.arguments_hash))
                beside = _answer_with(run, trace.call_id, turn.seq)
                malformed = {
                    one: answer
                    for one, answer in malformed.items()
                    if answer == beside >= 0 or not _is_made_good(one, trace.tool, trace.arguments_hash)
                }
    if left := open_effects | malformed.keys():
        yield f"it ended as SUCCESS with {sorted(tool for tool, _ in left)} proposed and not committed"


def _answer_with(run: SimulatedRun, call_id: str, until_seq: int) -> int:
    """The latest answer up to a turn that proposed a call of this id; -1 where none did."""
    found = -1
    for turn in run.turns[: until_seq + 1]:
        calls = turn.arrival.calls if isinstance(turn.arrival, arrivals.ModelAnswered) else ()
        found = turn.seq if any(call.call_id == call_id for call in calls) else found
    return found


def _is_malformed(refused: rulings.ToolCallRefused) -> bool:
    return refused.code in (ErrorCode.TOOL_NOT_FOUND, ErrorCode.CONSTRAINT_SCHEMA_INVALID)


def _is_made_good(proposed: tuple[str, bytes], tool: str, arguments_hash: bytes) -> bool:
    is_same = proposed[1] == arguments_hash and arguments_hash != sha256(b"{}").digest()
    return proposed[0] == tool or is_same


def _started(run: SimulatedRun, command_id: str) -> commands.StartChild:
    return next(c for _, c in commands_of(run) if c.id == command_id and isinstance(c, commands.StartChild))


def _left_by_child(
    world: SimulatedWorld, run: SimulatedRun, arrival: arrivals.ChildEnded | arrivals.ChildLost
) -> Iterator[str]:
    """What a child that did not succeed leaves: its own effects, and what was delegated to it, if that has failed."""
    started = _started(run, arrival.command_id)
    ending = arrival.ending if isinstance(arrival, arrivals.ChildEnded) else None
    if ending is not None and ending is not Ending.SUCCESS:
        yield from _undone_by_child(world, run, arrival.command_id)
    may_change = dict(started.lease).get(int(Dimension.SIDE_EFFECTS), 0) > 0
    if started.tool and may_change and ending not in (Ending.SUCCESS, Ending.PARTIAL_SUCCESS):
        yield started.tool


def _done_by_child(
    world: SimulatedWorld, run: SimulatedRun, arrival: arrivals.ChildEnded
) -> Callable[[tuple[str, bytes]], bool]:
    """Whether a child that has ended makes good what was left: by what was committed beneath it, or by succeeding."""
    started, is_success = _started(run, arrival.command_id), arrival.ending is Ending.SUCCESS
    like = {
        c.id.encode()
        for _, c in commands_of(run)
        if isinstance(c, commands.StartChild) and _asks(c) == _asks(started) and c.id != started.id
    }
    child = child_of(world, run, started)
    committed = set() if child is None else _committed_beneath(world, child)
    tools = tools_of(run)
    has_changed = is_success and any(tool in tools and tools[tool].effect in MUTATING for tool in committed)

    def is_good(left: tuple[str, bytes]) -> bool:
        is_same = is_success and (left[1] in like or left == (started.tool, started.arguments_hash))
        in_place = has_changed and _is_made_good(left, started.tool, started.arguments_hash)
        return is_same or in_place or left[0] in committed

    return is_good


def _asks(started: commands.StartChild) -> tuple[object, ...]:
    return started.tool, started.arguments_hash, started.node, started.prompt


def child_of(world: SimulatedWorld, run: SimulatedRun, started: commands.StartChild) -> SimulatedRun | None:
    """The run that a delegation began; None where it never did.

    What a fork copied of its origin was begun there, and by the fork only where it was still open: the fork names children
    of its own.
    """
    origin = pinned(run.state).forked_from
    while origin is not None and commands.place_in_journal(started.id)[0] <= origin.seq:
        if started.run_id in world.run_ids():
            break
        run = world.run(origin.run_id)
        started, origin = _started(run, started.id), pinned(run.state).forked_from
    return world.run(started.run_id) if started.run_id in world.run_ids() else None


def _committed_beneath(world: SimulatedWorld, run: SimulatedRun) -> set[str]:
    """The tools of which a run, and those that it started, committed observations."""
    below = [child_of(world, run, c) for _, c in commands_of(run) if isinstance(c, commands.StartChild)]
    committed = [_committed_beneath(world, child) for child in below if child is not None]
    return set(run.state.effects.committed).union(*committed)


def _undone_by_child(world: SimulatedWorld, run: SimulatedRun, command_id: str) -> Iterator[str]:
    """The tools that the journal of a child names in effects it proposed and did not commit."""
    child = child_of(world, run, _started(run, command_id))
    if child is None:
        return
    tools, left = tools_of(child), dict[tuple[str, bytes], bool]()
    for turn in child.turns:
        for decision in turn.decisions:
            if isinstance(decision, CallTool) and tools[decision.tool].effect in MUTATING:
                left[decision.tool, decision.arguments_hash] = True
            if isinstance(decision, rulings.CallSettled) and decision.rung is rulings.Rung.COMMITTED:
                trace = child.state.calls.made[decision.command_id]
                left.pop((trace.tool, trace.arguments_hash), None)
    yield from {tool for tool, _ in left}


def _unmet(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """What the goal and the output contract demand and the journal does not show."""
    manifest = pinned(run.state)
    called = {command.id: command.tool for _, command in commands_of(run) if isinstance(command, CallTool)}
    settled = run.all(rulings.CallSettled)
    committed = [called[ruling.command_id] for ruling in settled if ruling.rung is rulings.Rung.COMMITTED]
    schema = manifest.request.output.schema
    if schema is not None and not _fits(schema, world.text(run.state.result.answer)):
        yield "it ended as SUCCESS with an answer that breaks its output contract"
    goal = manifest.goal
    for action in goal.required_actions if goal is not None else ():
        if committed.count(action.tool) < action.times_min:
            yield f"it ended as SUCCESS without the required action {action.tool}"
    if goal is None or goal.task_class is None or not NEEDS_OBSERVATION[goal.task_class]:
        return
    can_retrieve = ToolCategory.RETRIEVAL in (goal.grounds or GROUNDS[goal.task_class])
    if not committed and not (can_retrieve and any(found.text for found in run.all(arrivals.ContextFound))):
        yield f"it ended as SUCCESS with a task of class {goal.task_class} and no observation"


def _fits(schema: JsonObject, text: str) -> bool:
    try:
        return compile_schema(schema).is_valid(read_json(text))
    except ValueError:
        return False


def nobody_is_asked_twice_about_one_call(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """A call is put in doubt once, at most one inquiry about it is open, and a late outcome is noted once."""
    doubted = [ruling.command_id for ruling in run.all(rulings.OutcomeDoubted)]
    noted = [ruling.about for ruling in run.all(rulings.AddendumNoted) if ruling.about in doubted]
    for command_id in sorted({*doubted, *noted}):
        if doubted.count(command_id) > 1 or noted.count(command_id) > 1:
            yield f"command {command_id} was doubted {doubted.count(command_id)} times and noted {noted.count(command_id)} times"
    asked: dict[str, str] = {}
    for turn in run.turns:
        for decision in turn.decisions:
            if isinstance(decision, rulings.QuestionSettled | rulings.CommandSettled):
                asked = {about: key for about, key in asked.items() if key != decision.command_id}
            about = _inquiry_about(decision)
            if about in asked:
                yield f"turn {turn.seq} asks about command {about}, as command {asked[about]} does already"
            if about and isinstance(decision, AskHuman | commands.ReconcileTool):
                asked[about] = decision.id


def _inquiry_about(decision: object) -> str:
    if isinstance(decision, commands.ReconcileTool):
        return decision.about
    return decision.packet.about if isinstance(decision, AskHuman) and decision.packet is not None else ""


def calls_are_told_as_they_came(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """What stands in the trace of a call is what its own outcome said, and that of no other call."""
    said: dict[str, object] = {}
    for turn in run.turns:
        if isinstance(turn.arrival, arrivals.ToolReturned):
            said[turn.arrival.command_id] = turn.arrival.content
        if isinstance(turn.arrival, arrivals.ToolReconciled) and turn.arrival.happened is not Happened.UNKNOWN:
            about = next(
                c.about
                for _, c in commands_of(run)
                if c.id == turn.arrival.command_id and isinstance(c, commands.ReconcileTool)
            )
            said[about] = turn.arrival.content
        if isinstance(turn.arrival, arrivals.QuestionAnswered):
            said[turn.arrival.command_id] = turn.arrival.text
        if isinstance(turn.arrival, arrivals.ChildEnded):
            said[turn.arrival.command_id] = turn.arrival.text
        if isinstance(turn.arrival, arrivals.ChildLost):
            said[turn.arrival.command_id] = notices.CHILD_LOST
    for command_id, trace in run.state.calls.made.items():
        if trace.content and trace.content != said.get(command_id):
            yield f"the trace of command {command_id} holds what another call returned"
