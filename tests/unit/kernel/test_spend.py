"""Spending: the worst case is reserved, what it cost is settled, and no cap is overshot."""

from typing import Any

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import CallModel
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.profiles import STANDARD
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.record import replace
from remit.core.run.inference import ModelInfo, Price
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import Node, NodeKind
from remit.kernel.budget.spend import (
    at_least,
    end_exhausted,
    iterations_exhausted,
    lacking,
    model_charges,
    tool_charges,
    usage_charges,
)
from remit.kernel.state import pinned
from tests.unit.kernel.builders import MESSAGES_TOKENS, OFFER_TOKENS, Run, in_line, manifest_of

PRICED = ModelInfo("priced", price=Price(1_000_000, 3_000_000))
FREE = ModelInfo("free", price=Price(0, 0))
CALLS = int(Dimension.TOOL_CALLS)


def test_charges_fit_up_to_the_cap_and_not_beyond() -> None:
    tally = Run(manifest_of(budget=Budget(tool_calls=3))).tally()
    assert lacking(tally, ((CALLS, 3),)) is None
    assert lacking(tally, ((CALLS, 4),)) is Dimension.TOOL_CALLS


def test_what_this_turn_promised_no_longer_fits_twice() -> None:
    tally = Run(manifest_of(budget=Budget(tool_calls=3))).tally()
    tally.left[CALLS] -= 2
    assert lacking(tally, ((CALLS, 2),)) is Dimension.TOOL_CALLS
    assert lacking(tally, ((CALLS, 1),)) is None


def test_the_first_dimension_that_lacks_is_named() -> None:
    tally = Run(manifest_of(budget=Budget(tool_calls=0, steps=2))).tally()
    assert lacking(tally, ((CALLS, 1), (int(Dimension.STEPS), 1))) is Dimension.TOOL_CALLS


def test_a_price_nobody_knows_is_no_price() -> None:
    assert model_charges(ModelInfo("unknown"), 10, 10) is None


def test_a_free_model_is_charged_in_tokens_alone() -> None:
    assert model_charges(FREE, 10, 20) == ((0, 10), (1, 20))


@pytest.mark.parametrize(
    ("tokens_in", "tokens_out", "cost"), [(1, 0, 1), (1, 1, 4), (1_000_000, 0, 1_000_000), (333_333, 1, 333_336)]
)
def test_money_counts_in_whole_microdollars(tokens_in: int, tokens_out: int, cost: int) -> None:
    assert model_charges(PRICED, tokens_in, tokens_out) == ((0, tokens_in), (1, tokens_out), (5, cost))


def test_a_fraction_of_a_microdollar_is_spent_whole() -> None:
    assert model_charges(ModelInfo("cheap", price=Price(1, 1)), 1, 0) == ((0, 1), (1, 0), (5, 1))


def test_a_tool_costs_a_call_money_a_request_to_the_outside_and_a_side_effect() -> None:
    tool = ToolDefinition("pay", "", {}, effect=Effect.EXTERNAL, cost_microusd=7)
    charges = dict(tool_charges(tool))
    assert charges == {
        Dimension.TOOL_CALLS: 1,
        Dimension.EXTERNAL_API_CALLS: 1,
        Dimension.INFERENCE_COST_MICROUSD: 7,
        Dimension.SIDE_EFFECTS: 1,
    }


def test_a_read_that_leaves_the_machine_is_a_request_to_the_outside() -> None:
    fetch = ToolDefinition("fetch", "", {}, effect=Effect.READ, network=True)
    look = ToolDefinition("look", "", {}, effect=Effect.READ)
    assert dict(tool_charges(fetch)) == {Dimension.TOOL_CALLS: 1, Dimension.EXTERNAL_API_CALLS: 1}
    assert dict(tool_charges(look)) == {Dimension.TOOL_CALLS: 1}


def command_of(run: Run) -> CallModel:
    return run.open(CallModel)[0]


def test_a_call_that_reports_nothing_costs_all_it_reserved() -> None:
    command = command_of(Run())
    assert usage_charges(PRICED, TokenUsage(), command) == command.reserved


def test_reasoning_is_charged_as_output() -> None:
    usage = TokenUsage(prompt_tokens=1, reasoning_tokens=2, output_tokens=3)
    assert usage_charges(FREE, usage, command_of(Run())) == ((0, 1), (1, 5))


def test_a_model_call_reserves_everything_it_will_read_and_may_write() -> None:
    reserved = dict(command_of(Run()).reserved)
    assert reserved[Dimension.INPUT_TOKENS] == MESSAGES_TOKENS + OFFER_TOKENS
    assert reserved[Dimension.OUTPUT_TOKENS] == 2048


def test_a_charge_that_leaves_out_dimensions_it_reserved_is_no_excess() -> None:
    run = Run(manifest_of(graph=in_line(Node("child", NodeKind.CHILD, prompt="go", lease=(("tool_calls", 2),)))))
    run.heard_from_child()
    assert run.all(rulings.UsageExceeded) == []


def test_the_larger_of_two_charges_counts_in_every_dimension() -> None:
    assert at_least(((0, 5), (1, 5)), ((1, 9), (5, 2))) == ((0, 5), (1, 9), (5, 2))


@pytest.mark.req("4.23")
def test_usage_above_the_reservation_is_charged_recorded_and_stops_the_run() -> None:
    run = Run()
    run.says("done", usage=TokenUsage(prompt_tokens=8, output_tokens=3000))
    exceeded = run.last(rulings.UsageExceeded)
    assert dict(exceeded.over)[Dimension.OUTPUT_TOKENS] == 3000 - 2048
    assert run.used(Dimension.OUTPUT_TOKENS) == 3000
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert "output_tokens by 952" in run.state.end.message


def test_usage_below_the_reservation_gives_the_rest_back() -> None:
    run = Run()
    run.says("done")
    assert run.all(rulings.UsageExceeded) == []
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.req("4.23")
@pytest.mark.parametrize(
    ("budget", "name"),
    [
        (Budget(input_tokens=50), "input_tokens: 0 spent or reserved and 100 wanted exceed input_tokens_max=50"),
        (Budget(output_tokens=0), "output_tokens: 0 spent or reserved and 1 wanted exceed output_tokens_max=0"),
        (Budget(context_tokens=99), "context_tokens: 0 spent or reserved and 100 wanted exceed context_tokens_max=99"),
        (Budget(inference_cost_microusd=10), "inference_cost_microusd: 0 spent"),
        (Budget(steps=1), "steps: 1 spent or reserved and 1 wanted exceed steps_max=1"),
    ],
)
def test_a_run_stops_when_a_dimension_it_needs_cannot_be_reserved(budget: Budget, name: str) -> None:
    run = Run(manifest_of(budget=budget))
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert run.state.end.message.startswith(name)
    assert run.all(CallModel) == []


def test_a_model_without_a_price_is_asked_where_nobody_caps_money_and_its_tokens_are_charged() -> None:
    run = Run(manifest_of(model=ModelInfo("unknown")))
    assert [dimension for dimension, _ in run.last(CallModel).reserved] == [0, 1]
    assert pinned(run.state).notes[0].startswith("the price of model 'unknown' is unknown")
    usage = TokenUsage(prompt_tokens=1, output_tokens=3)
    assert usage_charges(ModelInfo("unknown"), usage, run.last(CallModel)) == ((0, 1), (1, 3))


@pytest.mark.parametrize(
    "caps",
    [
        {"budget": Budget(inference_cost_microusd=5)},
        {"boundary": Boundary("mine", budget=Budget(inference_cost_microusd=5))},
        {"boundary": replace(STANDARD, budget=Budget(inference_cost_microusd=5))},
    ],
)
def test_a_model_without_a_known_price_is_never_called_where_money_is_capped(caps: dict[str, Any]) -> None:
    run = Run(manifest_of(model=ModelInfo("unknown"), **caps))
    assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
    assert "the price of model unknown is unknown" in run.state.end.message


def test_exhaustion_names_the_dimension_what_is_spent_and_the_cap() -> None:
    tally = Run(manifest_of(budget=Budget(tool_calls=2))).tally()
    tally.left[CALLS] -= 1
    assert end_exhausted(tally, Dimension.TOOL_CALLS, 5) == "exhausted"
    assert tally.message == "tool_calls: 1 spent or reserved and 5 wanted exceed tool_calls_max=2"


def test_the_iteration_limit_is_an_exhausted_budget_with_its_own_error() -> None:
    tally = Run().tally()
    assert iterations_exhausted(tally, "act", 20) == "exhausted"
    assert (tally.ending, tally.error) == (Ending.BUDGET_EXHAUSTED, ErrorCode.ORCHESTRATION_ITERATION_LIMIT)


def test_a_cut_stream_settles_at_its_reservation_whatever_part_of_its_usage_was_heard() -> None:
    run = Run()
    command = command_of(run)
    heard = TokenUsage(prompt_tokens=8)
    run.take(arrivals.ModelFailed(command.id, ErrorCode.INFERENCE_ENGINE_ERROR, usage=heard, was_cut=True))
    assert run.last(rulings.CommandSettled).charged == command.reserved
