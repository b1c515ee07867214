"""Token usage: what one inference call used, and what several used together.

Rule 1: only what an engine reports is stored; completion, total and rate are derived and can never disagree with it.
Rule 2: reasoning is part of the completion and is charged like output.
Rule 3: a duration of 0 means "not measured"; a rate that cannot be known is 0.0, never a guess.
Rule 4: building a record checks nothing, because usage is built on every call; `check_usage` stands at the engine's door.
"""

from collections.abc import Iterable

from remit.core.failure import ErrorCode, RemitError
from remit.core.record import Record


class TokenUsage(Record):
    """The tokens of one call as an engine reports them, or the sum over many."""

    prompt_tokens: int = 0
    reasoning_tokens: int = 0
    output_tokens: int = 0
    context_tokens: int = 0
    context_window: int = 0
    duration_ms: int = 0

    @property
    def completion_tokens(self) -> int:
        """Everything the model generated, thought or said."""
        return self.reasoning_tokens + self.output_tokens

    @property
    def total_tokens(self) -> int:
        """Everything the model read and generated."""
        return self.prompt_tokens + self.reasoning_tokens + self.output_tokens

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second; 0.0 when the duration is unknown."""
        if self.duration_ms <= 0:
            return 0.0
        return self.completion_tokens * 1000 / self.duration_ms


def usage_figures(usage: TokenUsage) -> dict[str, int | float]:
    """A usage as programs read it: what was counted, and what follows from that."""
    counted = {field: getattr(usage, field) for field in TokenUsage.__struct_fields__}
    return {
        **counted,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "tokens_per_second": round(usage.tokens_per_second, 3),
    }


def sum_usage(usages: Iterable[TokenUsage]) -> TokenUsage:
    """One usage for many calls: counts and durations add up, context and window are the largest seen.

    The rate of the sum is the average of the rates, each weighted by its duration. One call that generated tokens
    in an unknown time makes the time of the whole unknown: its tokens over the others' time would flatter the rate.
    """
    prompt = reasoning = output = context = window = duration = 0
    is_timed = True
    for usage in usages:
        prompt += usage.prompt_tokens
        reasoning += usage.reasoning_tokens
        output += usage.output_tokens
        # Context and window are gauges: three calls at half a window never fill one and a half.
        context = max(context, usage.context_tokens)
        window = max(window, usage.context_window)
        duration += usage.duration_ms
        is_timed = is_timed and (usage.duration_ms > 0 or usage.completion_tokens == 0)
    return TokenUsage(
        prompt_tokens=prompt,
        reasoning_tokens=reasoning,
        output_tokens=output,
        context_tokens=context,
        context_window=window,
        duration_ms=duration if is_timed else 0,
    )


def check_usage(usage: TokenUsage) -> None:
    """Refuse figures that are not whole numbers from zero up: an engine that miscounts would corrupt the budget."""
    for field in TokenUsage.__struct_fields__:
        value = getattr(usage, field)
        # A bool is an int to Python, and no count.
        if type(value) is not int or value < 0:
            raise RemitError(
                ErrorCode.INFERENCE_MALFORMED_RESPONSE,
                f"usage.{field}={value!r} is not a whole number from 0 up; correct what the engine reports",
            )
