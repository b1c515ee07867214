"""The meter of a run, turn by turn."""

import pytest

from remit.core.failure import Ending
from remit.core.journal.arrivals import ChildEnded, CodeReturned
from remit.core.journal.commands import (
    AskHuman,
    AskPurpose,
    CallCode,
    CallModel,
    CallTool,
    Command,
    ReconcileTool,
    Retrieve,
    SetTimer,
    StartChild,
    TimerPurpose,
)
from remit.core.limits.budget import FIELDS, GAUGES, Dimension
from remit.core.work.graph import Graph, schema_text
from remit.core.work.plan import ExecutionPlan, PlanPolicy, Step
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.reading import reading_of
from remit.observe.views.explain import explain
from remit.observe.watcher import CONTEXT_NOW, Meter, metered
from remit.orchestrate.patterns.plan_graph import plan_graph
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from tests.simulation.play import demo_manifest, demo_world
from tests.unit.kernel.builders import Run, manifest_of
from tests.unit.observe.patterned import GOOD, SCHEMA, handlers

RUN = demo_world().finish(demo_manifest())


def meters() -> list[Meter]:
    """The meter after each turn of a whole run."""
    state, found = RunState(run_id=RUN.state.run_id), []
    for turn in RUN.turns:
        apply(state, turn, b"")
        found.append(metered(state))
    return found


def test_a_run_is_measured_after_every_turn() -> None:
    found = meters()
    assert [meter.node for meter in found][:3] == ["think", "act", "think"]
    assert found[0].doing[0].startswith("asking ")
    assert any(meter.doing == ("calling lookup_order",) for meter in found)
    assert any(meter.doing == ("a person is asked",) for meter in found)


def test_what_is_used_in_the_end_is_what_an_explanation_says() -> None:
    last = {spent.dimension: spent.used for spent in meters()[-1].spent}
    gauges = {FIELDS[gauge] for gauge in GAUGES}
    assert tuple(last) == (*[name for name in FIELDS if name not in gauges], CONTEXT_NOW)
    said = {spent.dimension: spent.used for spent in explain(RUN.state, reading_of(RUN.turns)).spent}
    assert last.pop(CONTEXT_NOW) == RUN.state.talk.context_tokens > 0
    assert {name: used for name, used in last.items() if used} == {
        name: used for name, used in said.items() if name not in gauges
    }


def test_the_clock_stands_while_a_person_is_asked() -> None:
    asked = [meter for meter in meters() if meter.doing == ("a person is asked",)]
    clocks = {meter.spent[Dimension.WALL_CLOCK_MS].used for meter in asked}
    assert len(clocks) == 1


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (CallModel("1", "smollm2", 1, 1, 1, ()), ("asking smollm2",)),
        (CallTool("1", "c", "look", "v", "{}", b"", "k", 1, ()), ("calling look",)),
        (StartChild("1", "r.1", "do", (), 1, 0, (), tool="helper"), ("a run beneath works for helper",)),
        (AskHuman("1", AskPurpose.QUESTION, Ending.MISSING_INFO, 0), ("a person is asked",)),
        (ReconcileTool("1", "0", "pay", "k", 1), ("asking pay what became of a call",)),
        (Retrieve("1", 1), ("looking for evidence",)),
        (SetTimer("1", 0, TimerPurpose.DEADLINE), ()),
    ],
)
def test_every_command_that_a_caller_waits_for_is_told_in_words(command: Command, said: tuple[str, ...]) -> None:
    state = RunState(run_id=RUN.state.run_id)
    apply(state, RUN.turns[0], b"")
    state.commands.open = {"1": command}
    assert metered(state).doing == said


def doing(graph: Graph) -> Run:
    return Run(manifest_of(graph=graph))


def test_the_steps_of_a_plan_are_told_while_they_are_under_way() -> None:
    steps = (Step("size", "count", "x"), Step("answer", "infer"))
    run = doing(plan_graph(ExecutionPlan(steps), PlanPolicy(), handlers(["x"])))
    assert metered(run.state).doing == ("step size is under way",)
    (code,) = run.open(CallCode)
    run.take(CodeReturned(code.id, "{}", kind="object"))
    assert metered(run.state).doing == ("step answer is under way",)


def test_replicas_are_told_by_their_number_and_then_counted() -> None:
    run = doing(redundant_graph(schema_text(SCHEMA), "", Redundancy()))
    for number in (1, 2, 3):
        assert metered(run.state).doing == (f"replica {number} is under way",)
        (child,) = run.open(StartChild)
        run.take(ChildEnded(child.id, Ending.SUCCESS, GOOD))
    assert metered(run.state).doing == ("counting votes",)


def test_replicas_beside_each_other_keep_their_numbers() -> None:
    run = doing(redundant_graph(schema_text(SCHEMA), "", Redundancy(is_parallel=True)))
    first, second, third = run.open(StartChild)
    run.take(ChildEnded(second.id, Ending.SUCCESS, GOOD))
    assert metered(run.state).doing == ("replica 1 is under way", "replica 3 is under way")
    assert {first.id, third.id} < set(run.state.commands.open)


def test_code_that_is_neither_a_step_nor_a_vote_is_not_worth_a_word() -> None:
    state = RunState(run_id=RUN.state.run_id)
    apply(state, RUN.turns[0], b"")
    state.commands.open = {"1": CallCode("1", "rules", "text", 1)}
    assert metered(state).doing == ()


def test_a_run_that_stands_nowhere_yet_has_no_node() -> None:
    state = RunState(run_id=RUN.state.run_id)
    apply(state, RUN.turns[0], b"")
    state.place.node = -1
    assert metered(state).node == ""
