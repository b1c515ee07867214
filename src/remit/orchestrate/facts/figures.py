"""Figures: what executors count, cut to what a record can hold.

Rule 1: what is not known is charged as the worst case, so a miscount can never refund anything.
"""

from remit.core.run.usage import TokenUsage

# No engine reads, generates or takes so much, in tokens or milliseconds; a figure above it is cut to it, so that every
# sum and price made of it still fits the 64 bits of a record. All its bits are ones.
FIGURE_MAX = 2**40 - 1


def cut_usage(usage: TokenUsage) -> TokenUsage:
    """The usage as reported; a figure beyond belief is cut, and one that counts nothing makes the usage unknown.

    What is not known is charged as the worst case, so a miscount can never refund anything.
    """
    prompt, reasoning, output = usage.prompt_tokens, usage.reasoning_tokens, usage.output_tokens
    context, window, duration = usage.context_tokens, usage.context_window, usage.duration_ms
    if type(prompt) is type(reasoning) is type(output) is type(context) is type(window) is type(duration) is int:
        # The bits of all of them together: negative if one is, and above the limit only if one is.
        bits = prompt | reasoning | output | context | window | duration
        if 0 <= bits <= FIGURE_MAX:
            return usage
        if bits > 0:
            return TokenUsage(*(min(getattr(usage, field), FIGURE_MAX) for field in TokenUsage.__struct_fields__))
    return TokenUsage()


def cut_figure(duration_ms: int) -> int:
    """A duration as reported; nothing where it counts none, and cut where nobody would believe it."""
    if type(duration_ms) is not int or duration_ms < 0:
        return 0
    if duration_ms > FIGURE_MAX:
        return FIGURE_MAX
    return duration_ms
