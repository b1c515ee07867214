"""Children: what a node that starts them reserves, and what follows when one ends or is lost."""

import pytest

from remit.core.failure import ArrivalFault, Denials, Ending
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import CancelCommand, StartChild
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget, Dimension, lease_of
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import replace
from remit.core.run.lineage import derived_id
from remit.core.work.graph import Edge, JoinRule, Node, NodeKind, NodeOutcome
from remit.kernel.results import notices
from remit.kernel.results.doubt import LOST
from remit.kernel.results.endings import denied_by
from remit.kernel.state import loop_state, waiting_for
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

LEASE = (("tool_calls", 4), ("output_tokens", 1000))


def fan(children: int = 2, join: JoinRule = JoinRule.ALL, budget: Budget = Budget()) -> Run:
    node = Node("fan", NodeKind.MAP, prompt="look around", children=children, join=join, lease=LEASE, visits_max=1)
    return Run(manifest_of(graph=in_line(node), budget=budget))


def test_a_map_starts_its_children_together() -> None:
    run = fan(3)
    assert [child.lease for child in run.open(StartChild)] == [lease_of(LEASE)] * 3


def test_a_child_node_starts_one() -> None:
    run = Run(manifest_of(graph=in_line(Node("child", NodeKind.CHILD, prompt="go", lease=LEASE))))
    assert len(run.open(StartChild)) == 1


def test_children_that_do_not_all_fit_are_not_started() -> None:
    run = fan(3, budget=Budget(tool_calls=11))
    assert run.all(StartChild) == []
    assert run.state.end.message == "tool_calls: 0 spent or reserved and 12 wanted exceed tool_calls_max=11"


def test_what_a_child_spent_settles_its_lease() -> None:
    run = fan()
    run.heard_from_child(spent=((int(Dimension.OUTPUT_TOKENS), 10), (int(Dimension.TOOL_CALLS), 4)))
    assert (run.used(Dimension.TOOL_CALLS), run.used(Dimension.OUTPUT_TOKENS)) == (4, 10)
    assert (run.reserved(Dimension.TOOL_CALLS), run.reserved(Dimension.OUTPUT_TOKENS)) == (4, 1000)
    assert (run.used(Dimension.CHILD_RUNS), run.reserved(Dimension.CHILD_RUNS)) == (1, 1)


def test_a_child_that_spent_nothing_still_was_a_child() -> None:
    run = fan()
    run.heard_from_child()
    assert run.last(rulings.CommandSettled).charged == ((int(Dimension.CHILD_RUNS), 1),)


@pytest.mark.parametrize("dimension", [Dimension.TOOL_CALLS, Dimension.HUMAN_REVIEWS])
def test_a_child_that_spent_more_than_its_lease_stops_the_run(dimension: Dimension) -> None:
    run = fan()
    run.heard_from_child(spent=((int(dimension), 5),))
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert [over[0] for over in run.last(rulings.UsageExceeded).over] == [dimension]


def test_a_lost_child_spent_all_of_its_lease() -> None:
    run = fan(1, JoinRule.ANY)
    child = run.open(StartChild)[0]
    run.take(arrivals.ChildLost(child.id))
    assert run.last(rulings.CommandSettled).charged == child.reserved
    assert run.messages()[-1] == notices.CHILD_LOST
    assert run.state.counts.last_error == LOST


def test_a_delegate_costs_its_call_too() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    run.heard_from_child(spent=((int(Dimension.TOOL_CALLS), 2),))
    assert run.used(Dimension.TOOL_CALLS) == 3
    assert run.path()[-1] == "think"


def test_a_delegate_that_failed_does_not_fail_its_parent() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    run.heard_from_child(Ending.BUDGET_EXHAUSTED)
    run.says("then without")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_lost_delegate_is_told_as_the_result_of_its_call() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    child = run.open(StartChild)[0]
    run.take(arrivals.ChildLost(child.id))
    trace = run.state.calls.made[child.id]
    assert (trace.content, trace.code) == (notices.CHILD_LOST, LOST)


def test_a_child_that_waits_for_a_person_lets_its_parent_wait_under_the_same_code() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    child = run.open(StartChild)[0]
    run.take(arrivals.ChildSuspended(child.id, Ending.CONFIRM_REQUIRED))
    assert run.turns[-1].decisions == (rulings.ChildHeld(child.id, Ending.CONFIRM_REQUIRED),)
    assert waiting_for(run.state) is Ending.CONFIRM_REQUIRED
    assert loop_state(run.state) == "awaiting_approval"


def test_a_child_is_known_to_wait_only_once() -> None:
    run = fan(1)
    child = run.open(StartChild)[0]
    run.take(arrivals.ChildSuspended(child.id, Ending.REVIEW_REQUIRED))
    assert run.fault_of(arrivals.ChildSuspended(child.id, Ending.REVIEW_REQUIRED)) is ArrivalFault.DUPLICATE


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_child_that_waited_and_ended_or_was_lost_holds_its_parent_no_longer(is_lost: bool) -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    child = run.open(StartChild)[0]
    run.take(arrivals.ChildSuspended(child.id, Ending.CONFIRM_REQUIRED))
    run.take(arrivals.ChildLost(child.id)) if is_lost else run.heard_from_child()
    assert run.state.children.waiting == {}
    assert waiting_for(run.state) is None


def test_the_ending_of_a_parent_forgets_that_a_child_waits() -> None:
    run = fan(1)
    run.take(arrivals.ChildSuspended(run.open(StartChild)[0].id, Ending.CONFIRM_REQUIRED))
    run.take(arrivals.CancelRequested("ada"))
    assert (run.state.children.waiting, waiting_for(run.state)) == ({}, None)
    assert [order.run_id for order in run.now(CancelCommand)] == [derived_id("run", "0.3")]


CHANGING = (*LEASE, ("side_effects", 1))


def changing_fan() -> Run:
    """Two children that may change something, one after the other; each answer of the first is enough."""
    node = Node("fan", NodeKind.MAP, prompt="go", children=2, join=JoinRule.ANY, lease=CHANGING, visits_max=1)
    boundary = Boundary(name="desk", budget=Budget(side_effects=9))
    return Run(manifest_of(graph=in_line(node), boundary=boundary))


def test_of_a_declared_child_that_was_lost_nobody_knows_what_it_changed() -> None:
    run = changing_fan()
    lost = run.open(StartChild)[0]
    run.take(arrivals.ChildLost(lost.id))
    run.heard_from_child(ending=Ending.SUCCESS)
    assert run.state.effects.unknown == {("fan", f"child:{lost.id}".encode()): ""}
    assert run.state.end.ending is Ending.REVIEW_REQUIRED


def test_a_declared_child_that_failed_tells_itself_what_it_left_and_one_beside_it_makes_nothing_good() -> None:
    run = changing_fan()
    failed = run.open(StartChild)[0]
    left = (("write", rulings.LEFT_BY_CHILD),)
    run.take(arrivals.ChildEnded(failed.id, Ending.IMPOSSIBLE, "no", left=left, tokens_bound=25))
    run.take(
        arrivals.ChildEnded(
            run.open(StartChild)[0].id, Ending.SUCCESS, "yes", observed=(("write", 1),), tokens_bound=25
        )
    )
    assert run.all(rulings.DelegationSettled) == []
    assert run.state.end.message == f"not done: write (in child {failed.id})"


def test_another_child_of_the_same_node_makes_good_what_the_one_before_left() -> None:
    node = Node("child", NodeKind.CHILD, prompt="go", lease=LEASE, visits_max=2)
    line = in_line(node)
    again = replace(line, edges=(Edge("child", "child", NodeOutcome.FAILED), *line.edges))
    run = Run(manifest_of(graph=again))
    first = run.open(StartChild)[0]
    left = (("write", rulings.LEFT_BY_CHILD),)
    run.take(arrivals.ChildEnded(first.id, Ending.IMPOSSIBLE, "no", left=left, tokens_bound=25))
    run.heard_from_child(ending=Ending.SUCCESS)
    assert run.last(rulings.DelegationSettled).made_good == (("write", f"child:{first.id}".encode()),)
    assert run.state.effects.uncommitted == {}


@pytest.mark.parametrize(
    ("denials", "words_of_it"),
    [(Denials(by_boundary=1), "3 calls were denied"), (Denials(answers=1), "people said no to calls of 3 answers")],
)
def test_what_children_are_denied_counts_with_their_parent_and_with_the_next(
    denials: Denials, words_of_it: str
) -> None:
    run = Run()
    for told in range(3):
        run.proposes(wants("ask_child", told))
        child = run.open(StartChild)[0]
        assert (child.denials.by_boundary, child.denials.answers) in ((told, 0), (0, told))
        run.take(arrivals.ChildEnded(child.id, Ending.PERMISSION_DENIED, "no", tokens_bound=25, denials=denials))
    assert run.state.end.ending is Ending.PERMISSION_DENIED
    assert run.state.end.message.startswith(words_of_it)
    assert run.last(rulings.RunEnded).escalation is not None


def test_a_child_goes_on_counting_where_its_parent_stands_and_tells_what_it_adds() -> None:
    told = Denials(by_boundary=2, answers=1, approvals=1)
    run = Run(replace(manifest_of(), denials=told))
    assert (run.state.counts.denials, run.state.people.noes, run.state.people.rejections) == (2, 1, 1)
    assert denied_by(run.state) == Denials()
    run.proposes(wants("secret"))
    assert (run.state.end.ending, denied_by(run.state)) == (Ending.PERMISSION_DENIED, Denials(by_boundary=1))


def test_a_run_that_is_offered_no_tools_attempts_nothing() -> None:
    request = replace(manifest_of().request, tool_choice=ToolChoice(ToolChoiceMode.NONE))
    run = Run(manifest_of(request=request))
    run.proposes(wants("look"))
    assert (run.state.counts.denials, denied_by(run.state)) == (1, Denials())
