"""Spending: what a call may cost at worst, whether that still fits, and what it cost in the end.

Rule 1: every dimension has its own cap; money never stands in for the others.
Rule 2: the worst case is reserved before a call and settled after it, so no cap is overshot by anything foreseen. An
        engine that reports more than was reserved is charged with it, and the run stops.
Rule 3: what is not known (a price, a usage) counts as the worst.
"""

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.commands import CallModel, Command
from remit.core.journal.rulings import CommandSettled, UsageExceeded
from remit.core.limits.budget import FIELDS, Charges, Dimension, charges_of
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.run.inference import ModelInfo
from remit.core.run.usage import TokenUsage
from remit.kernel.results.endings import head_for
from remit.kernel.tally import WAITED_FOR, Tally, blocks

_INPUT = int(Dimension.INPUT_TOKENS)
_OUTPUT = int(Dimension.OUTPUT_TOKENS)
_COST = int(Dimension.INFERENCE_COST_MICROUSD)
_MICRO = 1_000_000


def lacking(tally: Tally, charges: Charges) -> Dimension | None:
    """The first dimension in which these charges no longer fit, or None when all do."""
    left = tally.left
    for dimension, amount in charges:
        if amount > left[dimension]:
            return Dimension(dimension)
    return None


def model_charges(
    model: ModelInfo, input_tokens: int, output_tokens: int, *, is_money_capped: bool = True
) -> Charges | None:
    """The charges that a model call reserves or costs, money included; None when its price is unknown and a money cap holds."""
    price = model.price
    if price is None:
        return None if is_money_capped else ((_INPUT, input_tokens), (_OUTPUT, output_tokens))
    total = input_tokens * price.input_microusd_per_mtok + output_tokens * price.output_microusd_per_mtok
    if total:
        # In whole micro-dollars, rounded up: a fraction of one is still spent.
        return ((_INPUT, input_tokens), (_OUTPUT, output_tokens), (_COST, -(-total // _MICRO)))
    return ((_INPUT, input_tokens), (_OUTPUT, output_tokens))


# What a call of a tool that is not declared may have cost.
WORST_CHARGES: Charges = charges_of(
    ((Dimension.TOOL_CALLS, 1), (Dimension.EXTERNAL_API_CALLS, 1), (Dimension.SIDE_EFFECTS, 1))
)


def tool_charges(tool: ToolDefinition) -> Charges:
    """The charges that one call of a tool reserves."""
    leaves_the_machine = tool.network or tool.effect is Effect.EXTERNAL
    return charges_of(
        (
            (Dimension.TOOL_CALLS, 1),
            (Dimension.EXTERNAL_API_CALLS, int(leaves_the_machine)),
            (Dimension.INFERENCE_COST_MICROUSD, tool.cost_microusd),
            (Dimension.SIDE_EFFECTS, int(tool.effect.is_mutating)),
        )
    )


def usage_charges(model: ModelInfo, usage: TokenUsage, command: CallModel) -> Charges:
    """The charges of a model call that was made: as reported, or all that was reserved when nothing was."""
    generated = usage.reasoning_tokens + usage.output_tokens
    if not generated and not usage.prompt_tokens:
        return command.reserved
    # A price that is unknown was looked at when the call was reserved.
    charges = model_charges(model, usage.prompt_tokens, generated, is_money_capped=False)
    assert charges is not None, "where money is not capped, tokens are counted alone"
    return charges


def at_least(floor: Charges, charges: Charges) -> Charges:
    """The larger of the two in every dimension."""
    amounts = dict(floor)
    for dimension, amount in charges:
        amounts[dimension] = max(amount, amounts.get(dimension, 0))
    return tuple(sorted(amounts.items()))


def settle_command(tally: Tally, command: Command, charged: Charges) -> str | None:
    """Release what a command reserved and charge what it cost. More than was reserved stops the run."""
    left, reserved, is_over = tally.left, dict(command.reserved), False
    for dimension, amount in command.reserved:
        left[dimension] += amount
    for dimension, amount in charged:
        left[dimension] -= amount
        if amount > reserved.get(dimension, 0):
            is_over = True
    if type(command) in WAITED_FOR or blocks(command):
        tally.blocking -= 1
    tally.decisions.append(CommandSettled(command.id, charged))
    return _stop_for_excess(tally, command, charged) if is_over else None


def _stop_for_excess(tally: Tally, command: Command, charged: Charges) -> str:
    reserved = dict(command.reserved)
    over = tuple((d, amount - reserved.get(d, 0)) for d, amount in charged if amount > reserved.get(d, 0))
    tally.rule(UsageExceeded(command.id, over))
    names = ", ".join(f"{FIELDS[d]} by {amount}" for d, amount in over)
    return head_for(
        tally, Ending.BUDGET_EXHAUSTED, message=f"command {command.id} used more than it had reserved: {names}"
    )


def end_exhausted(tally: Tally, dimension: Dimension, wanted: int) -> str:
    """End the run because a dimension it needs cannot be reserved."""
    cap, name = tally.state.spending.caps[dimension], FIELDS[dimension]
    spent = cap - tally.left[dimension]
    message = f"{name}: {spent} spent or reserved and {wanted} wanted exceed {name}_max={cap}"
    return head_for(tally, Ending.BUDGET_EXHAUSTED, message=message)


def iterations_exhausted(tally: Tally, node: str, visits_max: int) -> str:
    """End the run because a bounded node was to be entered once too often."""
    message = f"node {node} was entered visits_max={visits_max} times and the run wanted it again"
    return head_for(tally, Ending.BUDGET_EXHAUSTED, ErrorCode.ORCHESTRATION_ITERATION_LIMIT, message)
