"""Effects that were proposed and that no call was ever made of: what they keep a run from, and what makes them good."""

from collections.abc import Callable

import pytest

from remit.core.failure import Ending, ErrorCode, Refusal
from remit.core.journal import rulings
from remit.core.journal.arrivals import ChildEnded, ChildLost, Happened
from remit.core.journal.commands import StartChild
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import LEFT_BY_CHILD, OUTCOME_UNKNOWN, UNVERIFIED
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.record import replace
from remit.core.schema.json_schema import Violation
from remit.kernel.results.endings import NAMES_SHOWN_MAX
from remit.kernel.results.proven_effects import LEFT_MAX, NO_ARGUMENTS, left_by, refused_by
from tests.unit.kernel.builders import Run, known, lawful, manifest_of, wants

WRONG = (Violation("/n", "type", "is not a number"),)


def without_arguments(tool: str) -> ProposedCall:
    """A call with nothing in it."""
    return ProposedCall("call", tool, "{}", NO_ARGUMENTS)


def how(run: Run) -> tuple[Ending | None, str]:
    """How a run ended, and what it says of that."""
    lawful(run)
    return run.state.end.ending, run.state.end.message


@pytest.mark.req("4.11")
def test_tools_that_do_not_exist_leave_their_effects_undone() -> None:
    run = Run()
    run.proposes(wants("refund"), wants("email", 2))
    run.says("Refunded, mail sent")
    assert how(run) == (Ending.PARTIAL_SUCCESS, "not done: email (no such tool), refund (no such tool)")
    assert [refused.mutating for refused in run.all(rulings.ToolCallRefused)] == [True, True]


def test_a_change_with_invalid_arguments_is_left_undone() -> None:
    run = Run()
    run.proposes(wants("write", violations=WRONG))
    run.says("written")
    assert how(run) == (Ending.PARTIAL_SUCCESS, "not done: write (invalid arguments)")


def test_a_read_with_invalid_arguments_leaves_nothing_undone() -> None:
    run = Run()
    run.proposes(wants("look", violations=WRONG))
    run.says("then without")
    assert how(run) == (Ending.SUCCESS, "")


@pytest.mark.parametrize("later", [wants("write", 7), wants("look", 1)])
def test_a_committed_call_of_the_same_tool_or_with_the_same_arguments_makes_it_good(later: ProposedCall) -> None:
    run = Run()
    run.proposes(wants("write", 1, violations=WRONG), wants("nothing", 1) if later.tool == "look" else wants("look", 5))
    if later.tool != "look":
        run.returns()
    run.proposes(later)
    if later.tool == "write":
        run.approves()
    run.returns()
    run.says("done")
    assert how(run) == (Ending.SUCCESS, "")


@pytest.mark.req("4.11")
@pytest.mark.parametrize("refused", [wants("email", 1), wants("write", 2, violations=WRONG)])
def test_a_call_of_the_same_answer_makes_nothing_good(refused: ProposedCall) -> None:
    run = Run()
    run.proposes(wants("write", 1, call_id="a"), replace(refused, call_id="b"))
    run.approves()
    run.returns()
    run.says("Both done")
    assert how(run)[0] is Ending.PARTIAL_SUCCESS


def test_a_call_of_the_same_answer_whose_outcome_a_person_tells_makes_nothing_good() -> None:
    run = Run()
    run.proposes(wants("write", 1, call_id="a"), wants("email", 1, call_id="b"))
    run.approves()
    run.loses("write")
    run.judges(Happened.YES)
    run.says("Both done")
    assert how(run)[0] is Ending.PARTIAL_SUCCESS


def test_a_call_that_failed_or_was_never_verified_makes_nothing_good() -> None:
    run = Run()
    run.proposes(wants("nothing"))
    run.proposes(wants("look"))
    run.fails("look")
    run.says("done")
    assert how(run)[0] is Ending.PARTIAL_SUCCESS


def test_where_there_are_no_arguments_another_tool_makes_nothing_good() -> None:
    run = Run()
    run.proposes(without_arguments("wipe"))
    run.proposes(without_arguments("look"))
    run.returns()
    run.says("wiped")
    assert how(run) == (Ending.PARTIAL_SUCCESS, "not done: wipe (no such tool)")


def test_what_the_boundary_refused_decides_over_what_no_call_was_made_of() -> None:
    run = Run(manifest_of(boundary=Boundary(name="b", allowed_tools=("look",))))
    run.proposes(wants("write"), wants("nothing"))
    run.says("done")
    ending, message = how(run)
    assert ending is Ending.PERMISSION_DENIED
    assert message.startswith("refused: nothing (no such tool), write#")
    assert message.endswith("(boundary b does not allow tool write)")


def test_a_model_that_makes_up_many_names_fills_no_message() -> None:
    run = Run()
    run.proposes(*(wants(f"{n:02}" + "x" * 5_000, n) for n in range(40)))
    run.says("all done")
    message = run.state.end.message
    assert message.endswith(f"and {40 - NAMES_SHOWN_MAX} more")
    assert len(message) < 1_500


def test_an_effect_that_happened_unverified_stays_so_when_it_is_refused_later() -> None:
    run = Run(manifest_of(tools=(known("write", result={}),)))
    for _ in range(2):
        run.proposes(wants("write"))
        run.approves()
        run.returns()
    run.proposes(wants("write"))
    assert run.last(rulings.ToolCallRefused).code == Refusal.REPEATED_CALL
    run.says("written")
    ending, message = how(run)
    assert (ending, message.startswith("not verified: write returned")) == (Ending.PARTIAL_SUCCESS, True)


def test_what_a_child_left_undone_is_its_parents_to_answer_for() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    child = run.open(StartChild)[0]
    left = (("pay", LEFT_BY_CHILD), ("write", UNVERIFIED))
    run.take(ChildEnded(child.id, Ending.PARTIAL_SUCCESS, "paid", left=left, tokens_bound=25))
    run.says("Paid.")
    ending, message = how(run)
    assert ending is Ending.PARTIAL_SUCCESS
    assert message.startswith(f"not done: pay (in child {child.id}); not verified: write returned")
    assert left_by(run.state) == (("pay", LEFT_BY_CHILD), ("write", UNVERIFIED))


def test_what_a_child_left_undone_is_made_good_by_the_same_tool() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    child = run.open(StartChild)[0]
    run.take(ChildEnded(child.id, Ending.PERMISSION_DENIED, "no", left=(("write", LEFT_BY_CHILD),), tokens_bound=25))
    run.proposes(wants("write", 3))
    run.approves()
    run.returns()
    run.says("Written.")
    assert how(run) == (Ending.SUCCESS, "")


def test_what_nobody_knows_of_a_child_is_never_made_good_and_sends_its_parent_to_review() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    child = run.open(StartChild)[0]
    run.take(ChildEnded(child.id, Ending.REVIEW_REQUIRED, "?", left=(("write", OUTCOME_UNKNOWN),), tokens_bound=25))
    run.proposes(wants("write", 3))
    run.approves()
    run.returns()
    run.says("Written.")
    assert how(run) == (Ending.REVIEW_REQUIRED, f"nobody knows what became of write (in child {child.id})")
    assert left_by(run.state) == (("write", OUTCOME_UNKNOWN),)


def at_the_desk(side_effects: int = 9) -> Run:
    """A run that may change something, so that it may let others."""
    return Run(manifest_of(boundary=Boundary(name="desk", budget=Budget(side_effects=side_effects))))


def delegated(run: Run, tool: str = "send_child", n: int = 1) -> StartChild:
    """The child that a call of this tool starts."""
    run.proposes(wants(tool, n))
    return run.open(StartChild)[-1]


WROTE = (("write", 1),)
READ = (("look", 1),)


def fails(run: Run, child: StartChild, *left: tuple[str, str]) -> None:
    run.take(ChildEnded(child.id, Ending.TIMEOUT, "late", left=left, tokens_bound=25))


def succeeds(run: Run, child: StartChild, observed: tuple[tuple[str, int], ...] = ()) -> None:
    run.take(ChildEnded(child.id, Ending.SUCCESS, "done", observed=observed, tokens_bound=25))


def test_a_delegation_that_fails_leaves_its_effect_undone_until_another_does_something() -> None:
    run = at_the_desk()
    first = delegated(run)
    fails(run, first)
    assert run.last(rulings.DelegationSettled) == rulings.DelegationSettled(first.id, "send_child", LEFT_BY_CHILD)
    assert left_by(run.state) == (("send_child", LEFT_BY_CHILD),)
    succeeds(run, delegated(run, n=2), WROTE)
    run.says("Sent.")
    assert how(run) == (Ending.SUCCESS, "")


@pytest.mark.parametrize("observed", [(), READ, (("unheard_of", 1),)])
def test_a_delegation_that_changed_nothing_makes_no_other_good(observed: tuple[tuple[str, int], ...]) -> None:
    run = at_the_desk()
    first = delegated(run)
    fails(run, first)
    succeeds(run, delegated(run, n=2), observed)
    run.says("Sent.")
    assert how(run) == (Ending.PARTIAL_SUCCESS, f"not done: send_child (in child {first.id})")


def test_exactly_the_same_delegation_makes_good_by_succeeding_what_it_left_before() -> None:
    run = at_the_desk()
    fails(run, delegated(run), ("write", LEFT_BY_CHILD))
    succeeds(run, delegated(run))
    run.says("Sent.")
    assert how(run) == (Ending.SUCCESS, "")


@pytest.mark.req("4.11")
@pytest.mark.parametrize("observed", [(), READ])
def test_a_tool_that_a_child_left_is_made_good_by_no_other_delegation_of_the_same_name(
    observed: tuple[tuple[str, int], ...],
) -> None:
    run = at_the_desk()
    first = delegated(run, "ask_child")
    run.take(ChildEnded(first.id, Ending.SUCCESS, "?", left=(("write", LEFT_BY_CHILD),), tokens_bound=25))
    succeeds(run, delegated(run, "ask_child", n=2), observed)
    run.says("Written.")
    assert how(run) == (Ending.PARTIAL_SUCCESS, f"not done: write (in child {first.id})")


def test_a_tool_that_a_child_left_is_made_good_by_one_that_committed_it_however_that_ended() -> None:
    run = at_the_desk()
    fails(run, delegated(run, "ask_child"), ("write", LEFT_BY_CHILD))
    run.take(ChildEnded(delegated(run, "ask_child", n=2).id, Ending.TIMEOUT, "late", observed=WROTE, tokens_bound=25))
    run.says("Written.")
    assert how(run) == (Ending.SUCCESS, "")


def refused_below(run: Run, n: int = 1) -> StartChild:
    """A child that was refused a call of `write`, by a person or for want of authority."""
    child = delegated(run, "ask_child")
    refused = (("write", wants("write", n).arguments_hash),)
    run.take(ChildEnded(child.id, Ending.PERMISSION_DENIED, "no", refused=refused, tokens_bound=25))
    return child


def test_what_a_child_was_refused_is_not_made_good_by_other_calls_of_the_tool() -> None:
    run = at_the_desk()
    child = refused_below(run)
    succeeds(run, delegated(run, "ask_child", n=2), WROTE)
    run.proposes(wants("write", 2))
    run.approves()
    run.returns()
    run.says("Written.")
    assert how(run) == (Ending.PARTIAL_SUCCESS, f"not done: write (in child {child.id})")
    assert refused_by(run.state) == (("write", wants("write", 1).arguments_hash),)
    assert left_by(run.state) == ()


def test_what_a_child_was_refused_is_made_good_by_exactly_the_same_call() -> None:
    run = at_the_desk()
    refused_below(run)
    run.proposes(wants("write", 1))
    run.approves()
    run.returns()
    run.says("Written.")
    assert how(run) == (Ending.SUCCESS, "")


def test_what_a_child_was_refused_is_made_good_by_exactly_the_same_delegation() -> None:
    run = at_the_desk()
    refused_below(run)
    succeeds(run, delegated(run, "ask_child"))
    run.says("Written.")
    assert how(run) == (Ending.SUCCESS, "")


def test_what_a_child_was_refused_is_not_made_good_by_a_call_beside_it() -> None:
    run = at_the_desk()
    run.proposes(wants("ask_child", 1, call_id="a"), wants("write", 1, call_id="b"))
    child = run.open(StartChild)[0]
    refused = (("write", wants("write", 1).arguments_hash),)
    run.take(ChildEnded(child.id, Ending.PERMISSION_DENIED, "no", refused=refused, tokens_bound=25))
    run.approves()
    run.returns()
    run.says("Both written.")
    assert how(run)[0] is Ending.PARTIAL_SUCCESS


@pytest.mark.parametrize("code", sorted(Refusal))
def test_a_parent_is_told_what_was_refused_for_want_of_authority_apart_from_what_was_left(code: Refusal) -> None:
    run = Run()
    run.state.effects.uncommitted["write", b"h"] = code
    is_dear = code in (Refusal.BUDGET_EXHAUSTED, Refusal.RATE_LIMITED, Refusal.REPEATED_CALL)
    assert refused_by(run.state) == (() if is_dear else (("write", b"h"),))
    assert left_by(run.state) == ((("write", LEFT_BY_CHILD),) if is_dear else ())


def test_a_delegation_that_fails_and_stays_so_is_named() -> None:
    run = at_the_desk()
    child = delegated(run)
    run.take(ChildEnded(child.id, Ending.BUDGET_EXHAUSTED, "spent", tokens_bound=25))
    run.says("Sent.")
    assert how(run) == (Ending.PARTIAL_SUCCESS, f"not done: send_child (in child {child.id})")


def test_of_a_delegation_that_was_lost_nobody_knows_what_it_changed() -> None:
    run = at_the_desk()
    child = delegated(run)
    run.take(ChildLost(child.id))
    again = delegated(run, n=2)
    run.take(ChildEnded(again.id, Ending.SUCCESS, "done", tokens_bound=25))
    run.says("Sent.")
    assert how(run) == (Ending.REVIEW_REQUIRED, f"nobody knows what became of send_child (in child {child.id})")


@pytest.mark.parametrize("arrives", [ChildLost, lambda child: ChildEnded(child, Ending.TIMEOUT)])
def test_a_delegation_without_side_effects_is_a_read(arrives: Callable[[str], ChildLost | ChildEnded]) -> None:
    run = at_the_desk()
    run.take(arrives(delegated(run, "ask_child").id))
    run.says("Then without.")
    assert how(run) == (Ending.SUCCESS, "")


def test_a_delegation_makes_nothing_good_that_was_proposed_beside_it() -> None:
    run = at_the_desk()
    run.proposes(wants("send_child", 1), wants("send_child", 2), wants("send_child", 3, violations=WRONG))
    first, second = run.open(StartChild)
    run.take(ChildEnded(first.id, Ending.IMPOSSIBLE, "no", tokens_bound=25))
    run.take(ChildEnded(second.id, Ending.SUCCESS, "yes", tokens_bound=25))
    run.says("Both sent.")
    ending, message = how(run)
    assert (ending, message) == (
        Ending.PARTIAL_SUCCESS,
        f"not done: send_child (in child {first.id}), send_child (invalid arguments)",
    )


def test_a_delegation_that_was_refused_is_made_good_by_one_that_succeeds_unless_authority_was_missing() -> None:
    run = at_the_desk(side_effects=3)
    run.proposes(wants("send_child", 1), wants("send_child", 2))
    only = run.open(StartChild)[0]
    assert run.last(rulings.ToolCallRefused).code == Refusal.BUDGET_EXHAUSTED
    run.take(ChildEnded(only.id, Ending.SUCCESS, "one", tokens_bound=25))
    succeeds(run, delegated(run, n=3), WROTE)
    run.says("Both sent.")
    assert how(run) == (Ending.SUCCESS, "")


def test_the_same_delegation_makes_good_what_was_refused_of_it() -> None:
    run = at_the_desk(side_effects=3)
    run.proposes(wants("send_child", 1), wants("send_child", 2))
    run.take(ChildEnded(run.open(StartChild)[0].id, Ending.SUCCESS, "one", tokens_bound=25))
    assert ("send_child", wants("send_child", 2).arguments_hash) in run.state.effects.uncommitted
    run.take(ChildEnded(delegated(run, n=2).id, Ending.SUCCESS, "two", tokens_bound=25))
    run.says("Sent.")
    assert how(run) == (Ending.SUCCESS, "")


def test_a_delegation_makes_good_an_unknown_tool_with_the_same_arguments() -> None:
    run = at_the_desk()
    run.proposes(wants("nothing", 1), wants("nobody", 2))
    succeeds(run, delegated(run, n=1), WROTE)
    run.says("Sent.")
    assert how(run) == (Ending.PARTIAL_SUCCESS, "not done: nobody (no such tool)")


@pytest.mark.parametrize(
    ("observed", "ending"), [((("write", 1),), Ending.SUCCESS), ((("look", 1),), Ending.PARTIAL_SUCCESS)]
)
def test_what_a_child_left_is_made_good_by_another_that_commits_the_same_tool(
    observed: tuple[tuple[str, int], ...], ending: Ending
) -> None:
    run = at_the_desk()
    first = delegated(run, "ask_child")
    run.take(ChildEnded(first.id, Ending.PARTIAL_SUCCESS, "?", left=(("write", LEFT_BY_CHILD),), tokens_bound=25))
    again = delegated(run)
    run.take(ChildEnded(again.id, Ending.SUCCESS, "done", observed=observed, tokens_bound=25))
    run.says("Sent.")
    assert how(run)[0] is ending


def test_what_children_have_changed_makes_a_refusal_a_partial_success() -> None:
    boundary = Boundary(name="desk", budget=Budget(side_effects=9), allowed_tools=("send_child",))
    run = Run(manifest_of(boundary=boundary))
    child = delegated(run)
    run.take(ChildEnded(child.id, Ending.SUCCESS, "done", observed=(("look", 1), ("write", 1)), tokens_bound=25))
    run.proposes(wants("write"))
    run.says("Sent and written.")
    assert how(run)[0] is Ending.PARTIAL_SUCCESS


def test_a_parent_is_told_of_calls_in_doubt_before_anything_else() -> None:
    run = Run()
    run.proposes(*(wants(f"tool{n}", n) for n in range(LEFT_MAX + 5)))
    run.proposes(wants("write"), wants("put"))
    for _ in range(2):
        run.approves()
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    run.breaks_within("put")
    left = left_by(run.state)
    assert len(left) == LEFT_MAX
    assert {("write", OUTCOME_UNKNOWN), ("put", OUTCOME_UNKNOWN)} < set(left)


def test_a_parent_is_told_of_so_many_effects_and_no_more() -> None:
    run = Run()
    run.proposes(*(wants(f"tool{n}", n) for n in range(LEFT_MAX + 5)))
    assert len(left_by(run.state)) == LEFT_MAX


def test_a_tool_that_nobody_knows_hands_no_confirmation_on() -> None:
    run = Run()
    run.proposes(wants("nothing"), wants("pay", 2))
    run.rejects("no")
    run.says("done")
    assert run.state.end.ending is not Ending.SUCCESS
    assert ErrorCode.TOOL_NOT_FOUND in run.state.effects.uncommitted.values()


def test_a_finished_turn_folds_to_what_it_counted() -> None:
    run = Run(manifest_of(tools=(replace(known("write"), result={}), known("look"))))
    run.proposes(wants("nothing"), wants("write", 2, violations=WRONG))
    run.proposes(wants("look"))
    run.returns()
    lawful(run)
    assert list(run.state.effects.uncommitted.values()) == [rulings.ARGUMENTS_INVALID]
