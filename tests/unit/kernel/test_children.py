"""Starting runs beneath this one, each with a lease on this run's budget."""

from remit.core.budget import Budget, Dimension, lease_of
from remit.core.commands import StartChild
from remit.core.graph import Node, NodeKind
from remit.core.record import replace
from remit.kernel.children import child_charges
from remit.testing.scenarios import LEASE
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

FAN = Node("fan", NodeKind.MAP, prompt="look around", children=3, lease=LEASE)


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
    assert [child.run_id for child in run.open(StartChild)] == [f"run.{child.id}" for child in run.open(StartChild)]


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
