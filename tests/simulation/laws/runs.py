"""Laws of runs: folding, ending, pausing, the chain, and what the model is shown."""

from collections.abc import Iterator, Mapping
from operator import attrgetter

from remit.core.journal import arrivals, rulings
from remit.core.journal.codec import encode_turn, hash_turn
from remit.core.journal.commands import COMMANDS, AskHuman, CallModel, CallTool, StartChild
from remit.core.journal.rulings import CallTaken, ChildHeld, ChildReleased, QuestionSettled, RunEnded
from remit.core.journal.turn import Decision
from remit.core.limits.budget import COUNTERS, FIELDS
from remit.core.record import replace
from remit.kernel.decide import take_turn, weigh
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState, pinned
from remit.kernel.tally import Tally
from remit.orchestrate.loop.durability import barrier_of
from remit.testing.runs import SimulatedRun, fold_journal
from remit.testing.world import SimulatedWorld
from tests.simulation.laws.books import HARMLESS, Books

# Fields of a tally that the state has too, and where: they mean the same in both.
_COUNTED = {
    "node": "place.node",
    "blocking": "commands.blocking",
    "asking": "people.asking",
    "paused": "place.paused",
    "answer": "result.answer",
    "answer_violations": "result.violations",
    "unsupported": "result.unsupported",
    "stopped": "result.stopped",
}


def folding_gives_the_live_state(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Folding the turns gives what the process that took them has in memory."""
    live = world.lives.get(run.run_id)
    if live is not None and live.state != fold_journal(run.journal[: live.state.seq + 1]):
        yield f"the live state differs from the fold of its {live.state.seq + 1} turns"


def every_run_ends_or_waits(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """When nothing more will happen, a run has ended, is paused, asks a person, or waits for a child that does."""
    state = run.state
    if state.end.ending is not None or state.place.paused or state.people.asking:
        return
    children = (command for command in state.commands.open.values() if isinstance(command, StartChild))
    if not any(world.run(child.run_id).ending is None for child in children if child.run_id in world.run_ids()):
        yield f"it stands at turn {state.seq} with {[type(c).__name__ for c in state.commands.open.values()]} open"


def deciding_again_gives_the_same(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Re-deciding the recorded arrivals reproduces every turn, byte for byte."""
    state, origin = RunState(), pinned(run.state).forked_from
    for turn, data in zip(run.turns, run.journal, strict=True):
        is_copied = origin is not None and turn.seq <= origin.seq
        # By which way a person was heard is no decision.
        again = take_turn(state, turn.arrival, turn.at_ms) if not is_copied else turn
        if not is_copied and encode_turn(replace(again, heard=turn.heard)) != data:
            yield f"turn {turn.seq} is decided differently when decided again"
            return
        apply(state, turn, hash_turn(data))


def a_turn_is_kept_for_every_process_that_relies_on_it(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """No turn that must survive a power loss is taken for one that nothing relies on."""
    state = RunState()
    for turn, data in zip(run.turns, run.journal, strict=True):
        is_relied_on = state.end.ending is not None or any(map(_is_relied_on, turn.decisions))
        if is_relied_on and barrier_of(state, turn) is None:
            yield f"turn {turn.seq} is written as if nothing relied on it"
        apply(state, turn, hash_turn(data))


def _is_relied_on(decision: Decision) -> bool:
    """Whether a decision lets an effect happen, asks or releases a person, takes a call or ends the run."""
    if isinstance(decision, CallTool):
        return decision.mutating
    return isinstance(decision, AskHuman | QuestionSettled | ChildHeld | ChildReleased | CallTaken | RunEnded)


def only_what_turns_order_is_done(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Whatever is sent to be performed stands in a turn of its run."""
    ordered = {d.id: d for turn in run.turns for d in turn.decisions if type(d) in COMMANDS}  # type: ignore[union-attr]
    for run_id, command in world.sent:
        if run_id == run.run_id and ordered.get(command.id) != command:
            yield f"{type(command).__name__} {command.id} was sent, and no turn orders it"


def the_chain_holds(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Every turn carries the hash of the one before it, in order and without gaps; time never goes back."""
    head, at_ms = b"", 0
    for seq, (turn, data) in enumerate(zip(run.turns, run.journal, strict=True)):
        if turn.seq != seq or turn.previous != head or turn.at_ms < at_ms:
            yield f"turn {seq} does not follow the one before it"
        head, at_ms = hash_turn(data), turn.at_ms


def a_paused_run_orders_nothing(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Between pause and resume no command is issued, but to stop. A fork asks again what its origin was asking."""
    paused = False
    for turn in run.turns:
        if isinstance(turn.arrival, arrivals.RunForked):
            paused = True
            continue
        paused = paused and not any(isinstance(d, rulings.RunResumed | rulings.RunEnded) for d in turn.decisions)
        for decision in turn.decisions:
            if paused and type(decision) in COMMANDS and not isinstance(decision, HARMLESS):
                yield f"turn {turn.seq} orders {type(decision).__name__} although the run is paused"
        paused = paused or any(isinstance(decision, rulings.RunPaused) for decision in turn.decisions)


def every_call_is_answered(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """Before the model is asked again, each call it proposed has exactly one result in the context."""
    proposed: dict[int, int] = {}
    answered = 0
    for entry in run.state.talk.context:
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
    books = Books(pinned(run.state).graph)
    for turn in run.turns[: run.state.end.seq + 1]:
        for decision in turn.decisions:
            books.enter(decision)
    doubted = {ruling.command_id for ruling in run.all(rulings.OutcomeDoubted)}
    if left := sorted(key for key in books.unsettled() if key not in doubted):
        yield f"commands {left} were neither settled nor in doubt when it ended"
    if set(run.state.commands.open) != set(run.state.commands.doubted):
        yield f"commands {sorted(set(run.state.commands.open) - set(run.state.commands.doubted))} are open after the ending"
    held = [cap - left for cap, left in zip(run.state.spending.caps, run.state.spending.left, strict=True)]
    if held != [books.held(dimension) for dimension in range(len(FIELDS))]:
        yield f"{held} is used and reserved after the ending, which no settlement and no doubt accounts for"


def the_tally_agrees_with_the_fold(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """What a turn counted while it was decided is what the state holds once it is applied."""
    state, last = RunState(), len(run.turns)
    if pinned(run.state).forked_from is not None:
        return  # Its first turns were decided for another run, whose name is in their keys.
    for turn, data in zip(run.turns[: run.state.end.seq if run.ending else last], run.journal, strict=False):
        tally = weigh(state, turn.arrival, turn.at_ms)
        before = len(state.talk.pending), state.talk.pending_tokens
        counted = {name: getattr(tally, name) for name in _COUNTED}
        apply(state, turn, hash_turn(data))
        yield from (f"turn {turn.seq} counted {what}" for what in _disagreements(tally, counted, before, state))


def _disagreements(
    tally: Tally, counted: Mapping[str, object], before: tuple[int, int], after: RunState
) -> Iterator[str]:
    for name, ours in counted.items():
        if ours != (folded := attrgetter(_COUNTED[name])(after)):
            yield f"{name} as {ours} and the fold as {folded}"
    # A model call takes along the feedback that was waiting for it.
    shows = any(isinstance(decision, CallModel) for decision in tally.decisions)
    pending, tokens = before if shows else (0, 0)
    messages, context_tokens = tally.messages_count + pending, tally.context_tokens + tokens
    if (messages, context_tokens) != (len(after.talk.context), after.talk.context_tokens):
        shown = f"{len(after.talk.context)} messages of {after.talk.context_tokens} tokens"
        yield f"{messages} messages of {context_tokens} tokens and the fold {shown}"
    if tally.finished is not None and after.result.outputs.get(tally.finished[0]) != tally.finished[1]:
        yield f"step {tally.finished[0]} as {tally.finished[1]} and the fold as {after.result.outputs.get(tally.finished[0])}"
    for dimension in COUNTERS:
        if tally.left[dimension] != after.spending.left[dimension]:
            yield f"{FIELDS[dimension]} left as {tally.left[dimension]} and the fold as {after.spending.left[dimension]}"
    for key, code in tally.uncommitted.items():
        if after.effects.uncommitted.get(key, "") != (code or ""):
            yield f"the effect {key[0]} as {code!r} and the fold as {after.effects.uncommitted.get(key)!r}"
