"""Amounts, as people read them: sizes, charges, tokens.

Rule 1: a unit follows every number.
Rule 2: what is rounded stays true to its size; programs get the exact number, with --json.
"""

from remit.core.limits.budget import FIELDS, Charges, Dimension
from remit.core.run.usage import TokenUsage
from remit.observe.figures import money

# A rate of so many tokens and more is read without its fraction.
_WHOLE_FROM = 10
_SIZES = (("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
_SAID_APART = (Dimension.INPUT_TOKENS, Dimension.OUTPUT_TOKENS, Dimension.INFERENCE_COST_MICROUSD)
# One call of a tool is what a tool call is.
_SELF_EVIDENT = (Dimension.TOOL_CALLS, 1)


def size(count_bytes: int) -> str:
    """How much room something takes."""
    for unit, factor in _SIZES:
        if count_bytes >= factor:
            return f"{count_bytes / factor:.1f} {unit}"
    return f"{count_bytes} bytes"


def charges(charged: Charges) -> str:
    """What was charged: tokens and money first, then whatever else was counted; empty for nothing."""
    amounts = dict(charged)
    said = [
        f"{amounts[dimension]:,} {word}"
        for dimension, word in ((Dimension.INPUT_TOKENS, "tokens in"), (Dimension.OUTPUT_TOKENS, "out"))
        if amounts.get(dimension)
    ]
    if amounts.get(Dimension.INFERENCE_COST_MICROUSD):
        said.append(money(amounts[Dimension.INFERENCE_COST_MICROUSD]))
    said += [
        f"{amount:,} {_name(dimension)}"
        for dimension, amount in charged
        if dimension not in _SAID_APART and (dimension, amount) != _SELF_EVIDENT
    ]
    return ", ".join(said)


def usage(used: TokenUsage) -> str:
    """What models used: tokens, how fast they were generated where that is known, and how full the window was."""
    if not used.total_tokens:
        return ""
    said = [f"{used.prompt_tokens:,} tokens in, {used.completion_tokens:,} out"]
    if used.reasoning_tokens:
        said[0] += f" ({used.reasoning_tokens:,} thought)"
    if rate := used.tokens_per_second:
        said.append(f"{rate:,.0f} a second" if rate >= _WHOLE_FROM else f"{rate:.1f} a second")
    if used.context_tokens and used.context_window:
        said.append(f"at most {used.context_tokens:,} of {used.context_window:,} in context")
    return "; ".join(said)


def _name(dimension: int) -> str:
    """The name of a dimension; a journal of a later version may count one that is unknown here."""
    return FIELDS[dimension].replace("_", " ") if 0 <= dimension < len(FIELDS) else f"of dimension {dimension}"


def counts_line(counts: dict[str, int]) -> str:
    """Several counts in a row, each with what it counts."""
    return ", ".join(f"{count} {what}" for what, count in counts.items())
