"""The laws of the one reading: a watcher and a later reader of the journal read the same, in the time of the turns."""

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from remit.core.journal.turn import Turn
from remit.core.record import Record
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.fact import Fact, FactKind
from remit.observe.reading import Reading, reading_of
from remit.observe.steps import CUT_OFF, StepKind
from remit.observe.views.outline import outline_of
from tests.simulation.scenarios import played_world

SEEDS = st.integers(min_value=0, max_value=59)
OF_RUNS = (StepKind.NODE, StepKind.RUN)


@cache
def runs(seed: int) -> tuple[tuple[Turn, ...], ...]:
    world = played_world(seed)
    return tuple(world.run(run_id).turns for run_id in world.run_ids())


def facts_of(turns: tuple[Turn, ...]) -> list[Fact]:
    reading = Reading()
    return [fact for turn in turns for fact in reading.take(turn)]


@given(SEEDS, st.data())
def test_a_run_that_is_watched_reads_at_every_turn_as_its_journal_does(seed: int, data: st.DataObject) -> None:
    turns = data.draw(st.sampled_from(runs(seed)))
    upto = data.draw(st.integers(min_value=1, max_value=len(turns)))
    watched = Reading()
    for turn in turns:
        watched.take(turn)
        if turn.seq == upto - 1:
            assert outline_of(watched) == outline_of(reading_of(turns[:upto]))
    assert outline_of(watched) == outline_of(reading_of(turns))


@given(SEEDS)
def test_a_step_is_begun_once_and_settled_at_most_once_and_never_before_it_has_begun(seed: int) -> None:
    for turns in runs(seed):
        begun: set[str] = set()
        settled: set[str] = set()
        for fact in facts_of(turns):
            if fact.kind is FactKind.BEGUN:
                assert fact.step.id not in begun
                begun.add(fact.step.id)
            elif fact.kind is FactKind.SETTLED:
                assert fact.step.id in begun - settled
                settled.add(fact.step.id)


@given(SEEDS)
def test_the_facts_of_a_turn_are_its_own_and_its_steps_are_those_of_the_tree(seed: int) -> None:
    for turns in runs(seed):
        reading, last = Reading(), {}
        for turn in turns:
            for fact in reading.take(turn):
                assert (fact.seq, fact.at_ms) == (turn.seq, turn.at_ms)
                assert all(isinstance(part, Record) for part in (fact, fact.step))
                last[fact.step.id] = fact.step
        kept = set(map(id, reading.steps.values()))
        own = [step for key, step in last.items() if key and step.kind not in OF_RUNS]
        assert {step.id for step in own} == {key for key, step in reading.steps.items() if step.id}
        assert len(kept) == sum(len(keys) for _, keys in reading.visits)


@given(SEEDS, st.data())
def test_a_reading_that_begins_in_the_middle_of_a_run_knows_what_is_under_way(seed: int, data: st.DataObject) -> None:
    turns = data.draw(st.sampled_from(runs(seed)))
    upto = data.draw(st.integers(min_value=1, max_value=len(turns)))
    state = RunState()
    for turn in turns[:upto]:
        apply(state, turn, b"")
    whole, taken_up = reading_of(turns[:upto]), Reading.of(state)
    assert (taken_up.node, taken_up.turns) == (whole.node, whole.turns)
    for key, step in taken_up.steps.items():
        assert (step.kind, step.tool, step.run_id) == (
            whole.steps[key].kind,
            whole.steps[key].tool,
            whole.steps[key].run_id,
        )
    later = Reading.of(state)
    for turn in turns[upto:]:
        told = {fact.step.id for fact in later.take(turn) if fact.kind is FactKind.SETTLED}
        assert told == {f.step.id for f in whole.take(turn) if f.kind is FactKind.SETTLED}


@given(SEEDS)
def test_what_a_run_left_when_it_ended_is_cut_off_or_in_doubt(seed: int) -> None:
    for turns in runs(seed):
        reading = reading_of(turns)
        if reading.ended is None:
            continue
        for step in reading.steps.values():
            assert step.until_seq >= 0 or step.kind is StepKind.TOOL or step.status == CUT_OFF, step
