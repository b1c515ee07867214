"""What the model is told by the kernel itself: refusals, failures and checks that did not pass.

Rule 1: a message is a pure function of what was ruled, so that folding a turn gives the same words as living it.
Rule 2: the bound on its tokens is its length in bytes and a fixed overhead: no tokenizer makes more of a text.
"""

from remit.core.record import BlobRef, Text, digest_of, size_bytes
from remit.core.run.messages import Message, tool_message, user_message

# What a message costs beyond its text: role markers and separators of every chat template we know stay below this.
MESSAGE_TOKENS_OVERHEAD = 16

CHILD_LOST = "The child run was lost; what it did is not known."
NOT_HAPPENED = "The call did not happen."
WRAP_UP = (
    "The budget of this run is spent. Give your best answer now, from what you have; no tool can be called any more."
)
HAPPENED = "The call happened; its result is not known."
# As much of what its tool told in place of a result as a reader needs to see what it is.
TOLD_CHARS_MAX = 300


def happened_as_told(told: str) -> str:
    """The result of a call that happened where what its tool tells of it is no result, or nothing; said once."""
    if told.startswith(HAPPENED):
        return told
    return f"{HAPPENED} Of it was told: {told[:TOLD_CHARS_MAX]}" if told else HAPPENED


def tokens_bound(text: str) -> int:
    """A sound upper bound of the tokens of a message with this text."""
    return len(text.encode()) + MESSAGE_TOKENS_OVERHEAD


def whole_bound(text: Text) -> int:
    """The bound of a message with this text, wherever the text lives."""
    return size_bytes(text) + MESSAGE_TOKENS_OVERHEAD


# Longer than anything shortened() says, with room for a size of twenty digits: so nothing is shortened twice.
SHORTENED_BYTES_MAX = 160


def compressed_notice(text: Text) -> str:
    """What stands in place of an earlier result once the context was compressed: its size and its digest."""
    digest = text.digest if isinstance(text, BlobRef) else digest_of(text.encode())
    return f"(an earlier result of {size_bytes(text)} bytes, kept as sha256:{digest.hex()})"


def shortened_bound(text: Text) -> int:
    """The bound of that message."""
    return tokens_bound(compressed_notice(text))


def refusal_notice(call_id: str, tool: str, code: str, reason: str) -> Message:
    """A call was not made."""
    return tool_message(call_id, tool, _refusal_text(code, reason))


def refusal_bound(code: str, reason: str) -> int:
    """The bound of that message."""
    return tokens_bound(_refusal_text(code, reason))


def failure_notice(call_id: str, tool: str, code: str, error: str) -> Message:
    """A call failed; the words of the failure are the tool's own."""
    return tool_message(call_id, tool, f"{code}: {error}")


def failure_bound(code: str, error: str) -> int:
    """The bound of that message."""
    return tokens_bound(f"{code}: {error}")


def unjudged(name: str) -> str:
    """What is said of a criterion whose judge gave no verdict."""
    return f"criterion {name} was not judged"


def correction(problems: tuple[str, ...]) -> Message:
    """The answer was not accepted."""
    return user_message(_correction_text(problems))


def correction_bound(problems: tuple[str, ...]) -> int:
    """The bound of that message."""
    return tokens_bound(_correction_text(problems))


def _refusal_text(code: str, reason: str) -> str:
    return f"Not called. {code}: {reason}"


_NOT_ACCEPTED = "The answer was not accepted:\n"


def is_correction(text: str) -> bool:
    """Whether a message tells that an answer was not accepted; what it quotes of that answer stands nowhere else."""
    return text.startswith(_NOT_ACCEPTED)


def _correction_text(problems: tuple[str, ...]) -> str:
    listed = "\n".join(f"- {problem}" for problem in problems)
    return f"{_NOT_ACCEPTED}{listed}\nAnswer again."
