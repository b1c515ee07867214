"""Starting runs beneath this one, each with a lease on this run's budget."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.commands import StartChild
from remit.core.limits.budget import Budget, Dimension, lease_of
from remit.core.record import replace
from remit.core.run.lineage import derived_id
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import Edge, Graph, Node, NodeKind
from remit.kernel.children import child_charges
from remit.kernel.results.doubt import LOST
from remit.kernel.results.notices import CHILD_LOST
from remit.kernel.traces import ChildTrace
from remit.orchestrate.patterns.redundant_graph import Redundancy, redundant_graph
from tests.simulation.scenarios import LEASE
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants
from tests.unit.kernel.plans import SCHEMA, PlanRun, child_step, code_step, plan_of, retried

FAN = Node("fan", NodeKind.MAP, prompt="look around", children=3, lease=LEASE)


def redundant(*, n: int = 3, is_parallel: bool = False) -> Graph:
    return redundant_graph(SCHEMA, "", Redundancy(n, is_parallel=is_parallel))


def test_a_child_costs_its_lease_one_child_run_and_the_call_that_asked_for_it() -> None:
    charges = child_charges(lease_of((("tool_calls", 4), ("steps", 2))), ((int(Dimension.TOOL_CALLS), 1),))
    assert dict(charges) == {Dimension.TOOL_CALLS: 5, Dimension.STEPS: 2, Dimension.CHILD_RUNS: 1}
    assert charges == tuple(sorted(charges))


def test_the_lease_is_reserved_when_the_child_is_started() -> None:
    run = Run(manifest_of(graph=in_line(FAN)))
    assert run.reserved(Dimension.TOOL_CALLS) == 3 * 4
    assert run.reserved(Dimension.CHILD_RUNS) == 3


def test_a_childs_run_id_follows_from_the_command_that_starts_it() -> None:
    run = Run(manifest_of(graph=in_line(FAN)))
    assert [child.run_id for child in run.open(StartChild)] == [
        derived_id("run", child.id) for child in run.open(StartChild)
    ]


def test_a_child_the_graph_declares_costs_no_depth() -> None:
    run = Run(replace(manifest_of(graph=in_line(FAN)), depth=1))
    assert {child.depth for child in run.open(StartChild)} == {1}
    assert {(child.call_id, child.tool, child.prompt) for child in run.open(StartChild)} == {("", "", "look around")}


def test_a_child_a_model_asked_for_is_one_level_deeper() -> None:
    run = Run(replace(manifest_of(), depth=1))
    call = wants("ask_child", call_id="call_7")
    run.proposes(call)
    child = run.open(StartChild)[0]
    assert (child.depth, child.call_id, child.tool) == (2, "call_7", "ask_child")
    assert (child.prompt, child.arguments_hash) == (call.arguments, call.arguments_hash)
    assert child.lease == lease_of(LEASE)


def test_children_asked_for_in_one_answer_never_lease_the_same_budget() -> None:
    run = Run(manifest_of(budget=Budget(tool_calls=9)))
    run.proposes(wants("ask_child", 1), wants("ask_child", 2))
    assert len(run.open(StartChild)) == 1
    assert run.reserved(Dimension.TOOL_CALLS) == 5


class TestSharing:
    """A declared child whose node names no lease gets an equal share of what is left."""

    def test_one_that_is_entered_once_gets_all_that_is_left_but_what_the_way_to_the_end_takes(self) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a")), budget=Budget(steps=20, tool_calls=7)))
        lease = dict(run.open(StartChild)[0].lease)
        assert lease[Dimension.TOOL_CALLS] == 7
        # One step was taken to get here, and the check is still to come.
        assert lease[Dimension.STEPS] == 18

    def test_replicas_share_equally_and_come_to_no_more_than_there_is(self) -> None:
        run = PlanRun(manifest_of(graph=redundant(is_parallel=True), budget=Budget(tool_calls=7, steps=50)))
        leases = [dict(child.lease) for child in run.open(StartChild)]
        assert leases[0] == leases[1] == leases[2]
        assert leases[0][Dimension.TOOL_CALLS] == 2
        assert run.state.spending.left[Dimension.TOOL_CALLS] == 1

    def test_what_a_replica_did_not_use_is_there_for_the_next(self) -> None:
        run = PlanRun(manifest_of(graph=redundant(), budget=Budget(tool_calls=9)))
        shares = []
        for _ in range(3):
            shares.append(dict(run.open(StartChild)[0].lease)[Dimension.TOOL_CALLS])
            run.answers("a")
        assert shares == [3, 4, 9]

    def test_the_last_of_several_visits_gets_all_that_is_left(self) -> None:
        run = PlanRun(manifest_of(graph=redundant(n=1), budget=Budget(tool_calls=9)))
        assert dict(run.open(StartChild)[0].lease)[Dimension.TOOL_CALLS] == 9

    def test_a_dimension_of_which_nothing_is_left_is_not_leased(self) -> None:
        run = PlanRun(manifest_of(graph=redundant(), budget=Budget(tool_calls=0, side_effects=2)))
        lease = dict(run.open(StartChild)[0].lease)
        assert not {Dimension.TOOL_CALLS, Dimension.SIDE_EFFECTS} & set(lease)

    def test_children_may_have_children_only_when_every_replica_can_be_started(self) -> None:
        run = PlanRun(manifest_of(graph=redundant(is_parallel=True), budget=Budget(child_runs=7)))
        assert dict(run.open(StartChild)[0].lease)[Dimension.CHILD_RUNS] == 1
        assert run.reserved(Dimension.CHILD_RUNS) == 6

    def test_the_parent_keeps_the_steps_to_its_own_end_in_every_visit(self) -> None:
        run = PlanRun(manifest_of(graph=redundant(), budget=Budget(steps=40)))
        kept = []
        for _ in range(3):
            (child,) = run.open(StartChild)
            kept.append(run.state.spending.left[Dimension.STEPS])
            run.take(arrivals.ChildEnded(child.id, Ending.IMPOSSIBLE, "no", child.lease))
        # Vote and check, and a visit and a vote for each replica that is to come.
        assert all(left >= wanted for left, wanted in zip(kept, (6, 4, 2), strict=True))

    def test_a_node_with_a_lease_of_its_own_keeps_to_it(self) -> None:
        leased = replace(child_step("a"), lease=(("tool_calls", 2), ("steps", 5)))
        run = PlanRun(manifest_of(graph=plan_of(leased)))
        assert run.open(StartChild)[0].lease == lease_of((("tool_calls", 2), ("steps", 5)))

    def test_a_node_that_may_be_entered_any_number_of_times_gives_its_child_all(self) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a", visits_max=0)), budget=Budget(tool_calls=7)))
        assert dict(run.open(StartChild)[0].lease)[Dimension.TOOL_CALLS] == 7

    def test_nodes_that_only_a_condition_leads_to_are_on_the_way_too(self) -> None:
        branch = (Edge("a", "b", condition="visits > 1"), Edge("b", "check"))
        graph = plan_of(child_step("a"), edges=branch)
        graph = replace(graph, nodes=(*graph.nodes, code_step("b")))
        run = PlanRun(manifest_of(graph=graph, budget=Budget(steps=20)))
        assert dict(run.open(StartChild)[0].lease)[Dimension.STEPS] == 17


class TestTiming:
    def test_a_child_has_the_deadline_of_its_parent(self) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a"))))
        assert run.open(StartChild)[0].deadline_at_ms == run.state.clock.deadline_at_ms

    def test_the_time_limit_of_its_node_may_only_shorten_it(self) -> None:
        short = PlanRun(manifest_of(graph=plan_of(child_step("a", timeout_ms=5_000))))
        assert short.open(StartChild)[0].deadline_at_ms == short.now_ms + 5_000
        tight = manifest_of(graph=plan_of(child_step("a", timeout_ms=5_000)), budget=Budget(wall_clock_ms=1_000))
        run = PlanRun(tight)
        assert run.open(StartChild)[0].deadline_at_ms == run.state.clock.deadline_at_ms


class TestFailing:
    @pytest.mark.parametrize(
        ("ending", "error", "how"),
        [
            (Ending.IMPOSSIBLE, ErrorCode.INFERENCE_CONTEXT_EXCEEDED, Ending.IMPOSSIBLE),
            (Ending.BUDGET_EXHAUSTED, None, Ending.BUDGET_EXHAUSTED),
            (Ending.PERMISSION_DENIED, None, Ending.PERMISSION_DENIED),
        ],
    )
    def test_a_node_fails_as_its_child_did(self, ending: Ending, error: ErrorCode | None, how: Ending) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a"))))
        (child,) = run.open(StartChild)
        run.ends(ending, error=error, message="the reason")
        assert (run.state.end.ending, run.state.end.error) == (how, error)
        assert run.state.end.message == f"child {child.run_id}: the reason"

    @pytest.mark.parametrize(
        ("ending", "error"),
        [
            (Ending.TIMEOUT, ErrorCode.INFERENCE_ENGINE_ERROR),
            (Ending.USER_CANCEL, ErrorCode.CANCELLED_SIGNAL),
        ],
    )
    def test_a_child_that_was_cut_off_has_failed(self, ending: Ending, error: ErrorCode) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a"))))
        run.ends(ending)
        assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, error)
        assert run.state.end.message.endswith(f"it ended as {ending}")

    def test_a_child_that_ran_until_the_runs_own_deadline_ran_out_of_the_runs_time(self) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a")), budget=Budget(wall_clock_ms=5)))
        run.ends(Ending.TIMEOUT)
        assert (run.state.end.ending, run.state.end.error) == (Ending.TIMEOUT, ErrorCode.CANCELLED_TIMEOUT)

    def test_a_child_that_was_lost_has_failed_and_spent_its_lease(self) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a")), budget=Budget(tool_calls=7)))
        run.vanishes()
        assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, ErrorCode.TOOL_UNAVAILABLE)
        assert run.used(Dimension.TOOL_CALLS) == 7

    def test_a_step_whose_child_failed_is_tried_again_with_a_new_child(self) -> None:
        step = child_step("a", visits_max=2)
        run = PlanRun(manifest_of(graph=plan_of(step, edges=(retried(step),))))
        run.ends(Ending.TIMEOUT)
        run.answers("better")
        assert (run.state.end.ending, run.state.result.answer, len(run.state.children.ended)) == (
            Ending.SUCCESS,
            "better",
            2,
        )

    def test_a_step_whose_child_used_up_its_share_is_not_a_failed_one(self) -> None:
        step = child_step("a", visits_max=2)
        run = PlanRun(manifest_of(graph=plan_of(step, edges=(retried(step),))))
        run.ends(Ending.BUDGET_EXHAUSTED)
        assert (run.state.end.ending, len(run.all(StartChild))) == (Ending.BUDGET_EXHAUSTED, 1)


class TestRemembering:
    def test_a_declared_child_is_kept_with_how_it_ended_what_it_said_and_what_it_used(self) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a"))))
        (child,) = run.open(StartChild)
        run.ends(Ending.SUCCESS, text="found it")
        assert run.state.children.ended == [
            ChildTrace(
                child.id,
                "a",
                Ending.SUCCESS,
                "found it",
                usage=TokenUsage(prompt_tokens=5, output_tokens=2),
                prompt=child.prompt,
            )
        ]

    def test_a_lost_child_is_kept_as_lost(self) -> None:
        run = PlanRun(manifest_of(graph=plan_of(child_step("a"))))
        run.vanishes()
        assert [(child.ending, child.message) for child in run.state.children.ended] == [(LOST, CHILD_LOST)]

    def test_a_child_that_a_model_asked_for_is_a_call_and_no_child_of_a_node(self) -> None:
        run = PlanRun()
        run.proposes(wants("ask_child"))
        run.answers("found it")
        assert run.state.children.ended == []
