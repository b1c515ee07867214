"""What a run cost: each charge with its node, tool and model; children, forks and free models."""

import pytest

from remit.core.failure import Ending, ErrorCode, InvariantBroken
from remit.core.journal.arrivals import (
    CancelRequested,
    ChildEnded,
    ChildLost,
    ChildSuspended,
    ModelAnswered,
    ModelFailed,
    PauseRequested,
    ResumeRequested,
    ToolReturned,
)
from remit.core.journal.commands import CallModel, CallTool, StartChild, TimerPurpose
from remit.core.journal.rulings import AddendumNoted
from remit.core.journal.turn import Turn
from remit.core.limits.budget import Charges, Dimension
from remit.core.record import replace
from remit.core.run.inference import ModelInfo, Price
from remit.core.run.manifest import Origin
from remit.core.run.usage import TokenUsage
from remit.observe.cost.charges import Expense, RunCost, own_amounts, run_cost, totalled
from remit.observe.linked_turns import JOURNAL_CHAIN_BROKEN
from remit.observe.reading import reading_of
from remit.observe.views.explain import explain
from tests.simulation.play import demo_manifest, demo_world
from tests.unit.kernel.builders import Run, manifest_of, wants

DEMO = demo_world().finish(demo_manifest())
TIMED = TokenUsage(prompt_tokens=8, output_tokens=4, duration_ms=1500)


def amount(amounts: Charges, dimension: Dimension) -> int:
    return dict(amounts).get(int(dimension), 0)


def of_tool(cost: RunCost, tool: str) -> list[Expense]:
    return [expense for expense in cost.expenses if expense.tool == tool]


def of_models(run: Run) -> list[Expense]:
    return [expense for expense in run_cost(run.turns).expenses if expense.model]


def test_every_call_is_charged_to_the_node_where_it_was_ordered() -> None:
    cost = run_cost(DEMO.turns)
    assert (cost.run_id, cost.tenant_id, cost.copied) == ("demo", "", ())
    assert {e.node for e in cost.expenses if e.model} == {"think"}
    assert {e.node for e in cost.expenses if e.tool} == {"act"}


def test_a_tool_is_charged_for_its_call_and_for_the_review_that_it_needed() -> None:
    review, call = of_tool(run_cost(DEMO.turns), "refund")
    assert amount(review.amounts, Dimension.HUMAN_REVIEWS) == 1
    assert amount(call.amounts, Dimension.EXTERNAL_API_CALLS) == 1
    assert amount(call.amounts, Dimension.SIDE_EFFECTS) == 1
    (looked,) = of_tool(run_cost(DEMO.turns), "lookup_order")
    assert looked.amounts == ((int(Dimension.TOOL_CALLS), 1),)


def test_a_refused_call_costs_nothing() -> None:
    assert of_tool(run_cost(DEMO.turns), "find_order") == []


def test_every_visit_of_a_node_is_a_step_and_its_end_is_none() -> None:
    steps = [e.node for e in run_cost(DEMO.turns).expenses if amount(e.amounts, Dimension.STEPS)]
    assert steps == ["prepare", "think", "act", "think", "act", "think", "check"]


def test_the_clock_stands_still_while_a_person_is_asked() -> None:
    run = Run()
    run.proposes(wants("pay"))
    before = run_cost(run.turns).used[Dimension.WALL_CLOCK_MS]
    run.approves(after_ms=60_000)
    assert run_cost(run.turns).used[Dimension.WALL_CLOCK_MS] == before
    run.returns("pay")
    assert run_cost(run.turns).used[Dimension.WALL_CLOCK_MS] == before + 10


def test_a_pause_and_the_time_after_the_end_cost_no_time() -> None:
    run = Run()
    run.take(PauseRequested("ada"))
    paused = run_cost(run.turns).used[Dimension.WALL_CLOCK_MS]
    run.take(ResumeRequested("ada"), after_ms=5_000)
    assert run_cost(run.turns).used[Dimension.WALL_CLOCK_MS] == paused
    run.says("Done.")
    assert run.state.end.ending is Ending.SUCCESS
    ended = run_cost(run.turns).used[Dimension.WALL_CLOCK_MS]
    late = Turn(run.state.seq + 1, run.now_ms + 1_000, run.state.head, 1, run.turns[-1].arrival, ())
    assert run_cost([*run.turns, late]).used[Dimension.WALL_CLOCK_MS] == ended


def test_the_time_of_a_free_model_is_that_of_a_gpu() -> None:
    run = Run(manifest_of(model=ModelInfo("mine", 100_000, Price(0, 0))))
    run.says("Done.", usage=TIMED)
    (call,) = of_models(run)
    assert (call.model, call.gpu_ms) == ("mine", 1500)


def test_a_model_that_is_paid_by_the_token_takes_no_gpu_of_ours() -> None:
    run = Run(manifest_of(model=ModelInfo("theirs", 100_000, Price(1, 0))))
    run.says("Done.", usage=TIMED)
    (call,) = of_models(run)
    assert (call.model, call.gpu_ms) == ("theirs", 0)


def test_a_call_is_charged_to_the_model_that_answered() -> None:
    run = Run()
    (asked,) = run.open(CallModel)
    run.take(ModelAnswered(asked.id, "Done.", usage=TIMED, tokens_bound=20, model="second choice"))
    (call,) = of_models(run)
    assert call.model == "second choice"


def test_a_failed_call_is_charged_to_the_model_that_was_asked_and_its_repeat_is_a_retry() -> None:
    run = Run()
    (asked,) = run.open(CallModel)
    run.take(ModelFailed(asked.id, ErrorCode.INFERENCE_ENGINE_ERROR, usage=TIMED))
    run.rings(TimerPurpose.RETRY)
    run.says("Done.")
    failed, answered = of_models(run)
    assert failed.model == answered.model == asked.model
    assert (amount(failed.amounts, Dimension.RETRIES), amount(answered.amounts, Dimension.RETRIES)) == (0, 1)


def test_the_most_that_a_model_was_shown_is_kept_and_not_added_up() -> None:
    cost = run_cost(DEMO.turns)
    shown = [amount(e.amounts, Dimension.INPUT_TOKENS) for e in cost.expenses if e.model]
    assert len(shown) == 3
    assert cost.used[Dimension.CONTEXT_TOKENS] == max(shown)
    assert cost.used[Dimension.INPUT_TOKENS] == sum(shown)


def child_of(run: Run) -> StartChild:
    run.proposes(wants("ask_child"))
    (started,) = run.open(StartChild)
    return started


def test_a_child_costs_its_parent_the_call_the_run_and_what_it_spent() -> None:
    run = Run()
    started = child_of(run)
    spent = ((int(Dimension.INPUT_TOKENS), 100), (int(Dimension.TOOL_CALLS), 2))
    run.take(ChildEnded(started.id, Ending.SUCCESS, "done", spent=spent))
    (expense,) = of_tool(run_cost(run.turns), "ask_child")
    assert (expense.child_id, expense.covered) == (started.run_id, spent)
    assert amount(expense.amounts, Dimension.TOOL_CALLS) == 3
    own = dict(own_amounts(expense, dict(spent)))
    assert own == {Dimension.TOOL_CALLS: 1, Dimension.CHILD_RUNS: 1}


def test_the_clock_stands_still_while_a_child_waits_for_a_person() -> None:
    run = Run()
    started = child_of(run)
    run.take(ChildSuspended(started.id, Ending.CONFIRM_REQUIRED))
    before = run_cost(run.turns).used[Dimension.WALL_CLOCK_MS]
    run.take(ChildEnded(started.id, Ending.SUCCESS, "done"), after_ms=60_000)
    assert run_cost(run.turns).used[Dimension.WALL_CLOCK_MS] == before
    run.says("Done.")
    assert run_cost(run.turns).used[Dimension.WALL_CLOCK_MS] == before + 10


def test_what_a_child_worked_after_it_had_waited_costs_the_time_of_its_parent() -> None:
    run = Run()
    started = child_of(run)
    run.take(ChildSuspended(started.id, Ending.CONFIRM_REQUIRED))
    before = run_cost(run.turns).used[Dimension.WALL_CLOCK_MS]
    run.take(ChildEnded(started.id, Ending.SUCCESS, "done", stood_ms=60_000), after_ms=75_000)
    assert run_cost(run.turns).used[Dimension.WALL_CLOCK_MS] == before + 15_000
    (clock,) = [
        spent.used for spent in explain(run.state, reading_of(run.turns)).spent if spent.dimension == "wall_clock_ms"
    ]
    assert clock == before + 15_000


def test_a_child_that_is_cut_off_while_it_waits_costs_no_time() -> None:
    run = Run()
    run.take(ChildSuspended(child_of(run).id, Ending.CONFIRM_REQUIRED))
    before = run_cost(run.turns).used[Dimension.WALL_CLOCK_MS]
    run.take(CancelRequested("ada"), after_ms=60_000)
    assert run_cost(run.turns).used[Dimension.WALL_CLOCK_MS] == before


def test_a_run_beneath_another_says_how_deep_it_is() -> None:
    run = Run(replace(manifest_of(), depth=2))
    assert run_cost(run.turns).used[Dimension.DEPTH] == 2


def test_what_a_lost_child_is_not_known_to_have_used_stays_with_its_parent() -> None:
    run = Run()
    run.take(ChildLost(child_of(run).id))
    (expense,) = of_tool(run_cost(run.turns), "ask_child")
    leased = amount(expense.covered, Dimension.INPUT_TOKENS)
    own = own_amounts(expense, {int(Dimension.INPUT_TOKENS): 30})
    assert amount(own, Dimension.INPUT_TOKENS) == leased - 30


def test_a_child_that_used_more_than_its_parent_was_charged_takes_no_more_away() -> None:
    expense = Expense(1, "act", ((0, 5), (13, 1)), child_id="run.1.2", covered=((0, 5),))
    assert own_amounts(expense, {0: 9, 13: 4}) == ((13, 1),)


def test_an_expense_that_started_no_run_stays_as_it_is() -> None:
    assert own_amounts(Expense(1, "act", ((2, 1),), "look"), {2: 1}) == ((2, 1),)


def test_a_fork_is_not_charged_for_the_turns_that_it_copied() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.returns("look")
    run.says("Done.")
    began = run.turns[0].arrival
    manifest = replace(manifest_of(), run_id="fork", forked_from=Origin("run", "9.1", 1))
    first = replace(run.turns[0], arrival=replace(began, manifest=manifest))
    fork = run_cost([first, *run.turns[1:]])
    assert {expense.seq for expense in fork.copied} == {0, 1}
    assert min(expense.seq for expense in fork.expenses) == 2
    together = totalled(e.amounts for e in (*fork.copied, *fork.expenses))
    assert together == run_cost(run.turns).used


def test_a_call_in_doubt_is_charged_once_by_the_ending_whether_or_not_its_outcome_comes() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    (call,) = run.open(CallTool)
    assert not amount(totalled_of(run), Dimension.SIDE_EFFECTS)
    run.take(CancelRequested("ada"))
    assert amount(totalled_of(run), Dimension.SIDE_EFFECTS) == 1
    (told,) = [one for one in explain(run.state, reading_of(run.turns)).spent if one.dimension == "side_effects"]
    assert (told.used, told.reserved, told.in_doubt) == (1, 0, 1)
    run.take(ToolReturned(call.id, '{"ok": true}', b"e", 20))
    assert isinstance(run.turns[-1].decisions[0], AddendumNoted)
    assert amount(totalled_of(run), Dimension.SIDE_EFFECTS) == 1
    assert run.used(Dimension.SIDE_EFFECTS) == 1
    (told,) = [one for one in explain(run.state, reading_of(run.turns)).spent if one.dimension == "side_effects"]
    assert (told.used, told.reserved, told.in_doubt) == (1, 0, 0)


def totalled_of(run: Run) -> Charges:
    return tuple(run_cost(run.turns).used.items())


@pytest.mark.parametrize("turns", [(), DEMO.turns[1:]])
def test_a_run_without_its_beginning_has_no_cost_that_could_be_told(turns: tuple[Turn, ...]) -> None:
    with pytest.raises(InvariantBroken) as refused:
        run_cost(turns)
    assert refused.value.code == JOURNAL_CHAIN_BROKEN
