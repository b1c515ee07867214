"""Foreseeing: a run that can no longer come to its end within its budget is stopped before it has spent all of it."""

from typing import Any

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.commands import CallModel, ReconcileTool
from remit.core.journal.rulings import StoppedEarly
from remit.core.limits.boundary import Boundary, Exhaustion
from remit.core.limits.budget import Budget, Charges, Dimension
from remit.core.limits.foresight import RUNS_MIN, Foresight, Milestone, milestone_after
from remit.core.work.goal import Goal, RequiredAction
from remit.core.work.graph import Edge, Graph
from remit.core.work.plan import PlanTrace
from remit.kernel.budget.early_stop import floors_of
from remit.kernel.graph.compiled import compile_graph
from tests.unit.kernel.builders import Run, lawful, manifest_of, wants
from tests.unit.kernel.plans import PlanRun, child_step, code_step, plan_of, retried, tool_step, validate_step

CALLS, CHILDREN, OUTPUT = int(Dimension.TOOL_CALLS), int(Dimension.CHILD_RUNS), int(Dimension.OUTPUT_TOKENS)
INPUT, COST, EXTERNAL = (
    int(Dimension.INPUT_TOKENS),
    int(Dimension.INFERENCE_COST_MICROUSD),
    int(Dimension.EXTERNAL_API_CALLS),
)
PLAN = PlanTrace("test", step_count=3)


def requiring(*actions: RequiredAction, **manifest: Any) -> Run:
    return Run(manifest_of(goal=Goal("do it", required_actions=actions), **manifest))


def stop_of(run: Run) -> tuple[int, int, int]:
    (stopped,) = run.all(StoppedEarly)
    return stopped.dimension, stopped.left, stopped.needed


# What the goal still requires.


@pytest.mark.req("4.26")
def test_a_run_that_cannot_do_what_its_goal_requires_is_stopped_before_it_asks_its_model() -> None:
    run = requiring(RequiredAction("look", 3), budget=Budget(tool_calls=2))
    assert (run.state.end.ending, run.all(CallModel)) == (Ending.BUDGET_EXHAUSTED, [])
    assert stop_of(run) == (CALLS, 2, 3)
    assert run.state.end.message == "stopped early: tool_calls has 2 left and at least 3 are still needed"
    lawful(run)


def test_a_run_that_still_can_is_let_go_on() -> None:
    run = requiring(RequiredAction("look", 2), budget=Budget(tool_calls=2))
    run.proposes(wants("look", 1))
    run.returns()
    run.proposes(wants("look", 2))
    run.returns()
    run.says("looked twice")
    assert (run.state.end.ending, run.all(StoppedEarly)) == (Ending.SUCCESS, [])


def test_a_call_that_was_wasted_stops_the_run_as_soon_as_it_cannot_finish() -> None:
    run = requiring(RequiredAction("look", 2), budget=Budget(tool_calls=2))
    run.proposes(wants("look", 1))
    assert run.all(StoppedEarly) == []
    run.fails("look")
    assert (run.state.end.ending, len(run.all(CallModel))) == (Ending.BUDGET_EXHAUSTED, 1)
    assert stop_of(run) == (CALLS, 1, 2)
    lawful(run)


def test_a_call_that_has_just_come_back_is_under_way_no_more() -> None:
    run = requiring(RequiredAction("look", 3), budget=Budget(tool_calls=4))
    run.proposes(wants("look", 1), wants("fetch", 1), wants("secret", 1))
    run.returns("look")
    assert run.state.end.ending is None
    run.fails("fetch")
    assert (run.state.end.ending, run.path()[-1]) == (None, "think")
    run.proposes(wants("look", 2), wants("fetch", 2))
    run.returns("look")
    run.fails("fetch")
    assert stop_of(run) == (CALLS, 0, 1)


def test_calls_under_way_have_their_part_already() -> None:
    run = requiring(RequiredAction("look", 2), budget=Budget(tool_calls=3))
    run.proposes(wants("look", 1), wants("look", 2), wants("fetch"))
    run.returns("fetch")
    run.returns("look")
    assert (run.all(StoppedEarly), run.state.end.ending) == ([], None)


def test_a_question_what_became_of_a_call_is_no_second_call() -> None:
    goal = Goal("pay three times", required_actions=(RequiredAction("pay", 3),))
    run = Run(manifest_of(goal=goal, boundary=Boundary(budget=Budget(tool_calls=3, side_effects=3))))
    run.proposes(wants("pay", 1), wants("look"))
    run.approves()
    run.loses("pay")
    run.fails("look")
    run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, arrivals.Happened.YES, "{}", b"e", 18))
    assert stop_of(run) == (CALLS, 1, 2)


def test_what_a_required_call_takes_of_every_dimension_is_foreseen() -> None:
    run = requiring(RequiredAction("fetch", 3), budget=Budget(external_api_calls=2))
    assert stop_of(run) == (EXTERNAL, 2, 3)
    run = requiring(RequiredAction("look"), RequiredAction("fetch", 2), budget=Budget(tool_calls=2))
    assert stop_of(run) == (CALLS, 2, 3)


def test_what_a_person_may_lift_call_by_call_stops_nobody_early() -> None:
    run = requiring(RequiredAction("write"), budget=Budget(side_effects=0))
    assert run.state.end.ending is None
    run.proposes(wants("write"))
    run.approves()
    run.returns()
    run.says("written")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_tool_that_nobody_registered_is_not_foreseen_but_impossible() -> None:
    run = requiring(RequiredAction("nothing"))
    assert (run.state.end.ending, run.all(StoppedEarly)) == (Ending.IMPOSSIBLE, [])


def test_what_the_stop_saved_is_told() -> None:
    run = requiring(RequiredAction("look", 3), budget=Budget(tool_calls=2, output_tokens=0))
    (stopped,) = run.all(StoppedEarly)
    saved = dict(stopped.saved)
    left = {int(d): run.state.spending.left[d] for d in (Dimension.INPUT_TOKENS, Dimension.INFERENCE_COST_MICROUSD)}
    assert saved == {**left, CALLS: 2, EXTERNAL: 10}
    assert OUTPUT not in saved


@pytest.mark.parametrize("policy", [Exhaustion.ASK, Exhaustion.WRAP_UP])
def test_a_dimension_that_has_another_way_out_stops_nobody_early(policy: Exhaustion) -> None:
    boundary = Boundary(exhaustion=(("tool_calls", policy),), budget=Budget(tool_calls=2))
    run = requiring(RequiredAction("look", 3), boundary=boundary)
    assert (run.state.end.ending, run.all(StoppedEarly)) == (None, [])


def test_a_boundary_may_let_runs_go_on_to_the_bitter_end() -> None:
    run = requiring(RequiredAction("look", 3), boundary=Boundary(stops_early=False, budget=Budget(tool_calls=2)))
    assert (run.state.end.ending, run.state.derived.floors) == (None, None)


def test_where_nothing_is_foreseen_nothing_is_computed() -> None:
    assert Run(manifest_of(goal=Goal("answer"))).state.derived.floors is None
    assert Run().state.derived.floors is None


# What every way through a plan still takes.


def floors(graph: Graph) -> dict[str, Charges | None]:
    compiled = compile_graph(graph)
    found = floors_of(compiled, manifest_of(graph=graph, plan=PLAN))
    assert found is not None
    return {node.name: floor for node, floor in zip(compiled.nodes, found, strict=True)}


def test_of_each_step_of_a_plan_the_calls_and_children_of_the_shortest_way_are_known() -> None:
    graph = plan_of(code_step("read"), *tool_step("first"), child_step("think", "read"), *tool_step("second"))
    found = floors(graph)
    assert found["read"] == ((CALLS, 2), (CHILDREN, 1))
    assert found["first"] == ((CALLS, 2), (CHILDREN, 1))
    assert found["think"] == ((CALLS, 1), (CHILDREN, 1))
    assert found["second"] == ((CALLS, 1),)
    assert (found["check"], found["done"], found["failed"]) == ((), (), ())


def test_a_way_around_a_step_makes_the_bound_smaller() -> None:
    steps = (code_step("read"), *tool_step("first"), *tool_step("second"), code_step("write", "read"))
    around = plan_of(*steps, edges=(Edge("read", "write", condition="answer_bytes > 3"),))
    assert floors(plan_of(*steps))["read"] == ((CALLS, 2),)
    assert floors(around)["read"] == ()
    assert floors(around)["first"] == ((CALLS, 2),)


def test_another_attempt_takes_no_more_than_the_first_at_least() -> None:
    entrance, call = tool_step("look", visits_max=3)
    check = validate_step("fine", "look", visits_max=3)
    graph = plan_of(entrance, call, check, edges=(retried(check, at="look:arguments"),))
    assert floors(graph)["look:arguments"] == ((CALLS, 1),)


@pytest.mark.req("4.26")
def test_a_plan_that_cannot_be_finished_is_stopped_before_its_first_step() -> None:
    graph = plan_of(code_step("read"), *tool_step("first"), *tool_step("second"))
    run = PlanRun(manifest_of(graph=graph, plan=PLAN, budget=Budget(tool_calls=1)))
    assert (run.state.end.ending, run.path()) == (Ending.BUDGET_EXHAUSTED, ["exhausted"])
    assert stop_of(run) == (CALLS, 1, 2)
    fitting = PlanRun(manifest_of(graph=graph, plan=PLAN, budget=Budget(tool_calls=2)))
    assert fitting.path() == ["read"]


def test_a_plan_is_stopped_on_the_way_when_a_step_took_more_than_its_share() -> None:
    entrance, call = tool_step("first", visits_max=2)
    graph = plan_of(entrance, call, *tool_step("second"), edges=(retried(call, at="first:arguments"),))
    run = PlanRun(manifest_of(graph=graph, plan=PLAN, budget=Budget(tool_calls=2)))
    run.calls(wants("look"))
    run.fails("look", ErrorCode.TOOL_EXECUTION_FAILED)
    assert (run.state.end.ending, stop_of(run)) == (Ending.BUDGET_EXHAUSTED, (CALLS, 1, 2))


def test_children_of_a_plan_are_foreseen() -> None:
    graph = plan_of(child_step("one"), child_step("two", "one"))
    run = PlanRun(manifest_of(graph=graph, plan=PLAN, budget=Budget(child_runs=1)))
    assert stop_of(run) == (CHILDREN, 1, 2)


# What like runs needed.


def foresight(*least: Charges, runs: int = RUNS_MIN) -> Foresight:
    return Foresight(runs, tuple(Milestone(charges) for charges in least))


@pytest.mark.req("4.26")
def test_a_run_that_has_less_than_any_like_it_needed_is_stopped() -> None:
    run = Run(manifest_of(foresight=foresight(((CALLS, 5),)), budget=Budget(tool_calls=4)))
    assert (run.state.end.ending, stop_of(run)) == (Ending.BUDGET_EXHAUSTED, (CALLS, 4, 5))
    assert run.path() == ["prepare", "exhausted"]


def test_what_like_runs_needed_is_counted_by_the_answers_that_the_model_has_given() -> None:
    known = foresight(((CALLS, 2),), ((CALLS, 1),), ((OUTPUT, 70_000),))
    run = Run(manifest_of(foresight=known, budget=Budget(tool_calls=2)))
    run.proposes(wants("look", 1))
    run.returns()
    assert (run.state.end.ending, run.path()[-1]) == (None, "think")
    run.proposes(wants("look", 2))
    run.returns()
    assert stop_of(run)[::2] == (OUTPUT, 70_000)


def test_a_run_with_an_answer_needs_nothing_more_of_what_like_runs_still_asked_for() -> None:
    run = Run(manifest_of(foresight=foresight((), ((CALLS, 99),)), budget=Budget(tool_calls=1)))
    run.says("done")
    assert (run.state.end.ending, run.all(StoppedEarly)) == (Ending.SUCCESS, [])


def test_the_largest_of_what_goal_graph_and_like_runs_say_counts() -> None:
    goal = Goal("look", required_actions=(RequiredAction("look", 3),))
    run = Run(manifest_of(goal=goal, foresight=foresight(((CALLS, 2),)), budget=Budget(tool_calls=1)))
    assert stop_of(run) == (CALLS, 1, 3)
    chat = foresight((), ((CALLS, 4),))
    run = Run(manifest_of(goal=goal, foresight=chat, budget=Budget(tool_calls=4)))
    run.proposes(wants("look", 1))
    run.returns()
    assert stop_of(run) == (CALLS, 3, 4)


def test_too_few_runs_and_runs_that_came_less_far_stop_nobody() -> None:
    few = foresight(((CALLS, 5),), runs=RUNS_MIN - 1)
    assert Run(manifest_of(foresight=few, budget=Budget(tool_calls=4))).state.end.ending is None
    assert milestone_after(foresight(()), 1) is None
    run = Run(manifest_of(foresight=foresight(()), budget=Budget(tool_calls=1)))
    run.proposes(wants("look"))
    run.returns()
    assert run.state.end.ending is None


def test_a_run_at_its_last_words_needs_nothing_more() -> None:
    boundary = Boundary(exhaustion=(("tool_calls", Exhaustion.WRAP_UP),), budget=Budget(tool_calls=1))
    known = foresight((), (), ((OUTPUT, 70_000),))
    run = Run(manifest_of(boundary=boundary, foresight=known))
    run.proposes(wants("look", 1))
    run.returns()
    run.proposes(wants("look", 2))
    assert run.state.talk.is_wrapping
    run.says("from one look")
    assert (run.state.end.ending, run.state.result.answer, run.all(StoppedEarly)) == (
        Ending.BUDGET_EXHAUSTED,
        "from one look",
        [],
    )
