"""Traces: what a state remembers of a single call, of the failures of a tool, and of a child that has ended."""

from typing import NamedTuple

import msgspec

from remit.core.failure import ErrorCode
from remit.core.journal.rulings import Rung
from remit.core.record import Text
from remit.core.run.usage import TokenUsage


class Streak(NamedTuple):
    """How often a tool failed since it last succeeded, the last code, and the answer that had proposed the call."""

    times: int
    code: str
    answer: int


def longer(streak: Streak | None, code: str, answer: int) -> Streak:
    """The streak with one more failure. Calls of one answer fail beside each other and count once."""
    if streak is None:
        return Streak(1, code, answer)
    return Streak(streak.times + (streak.answer != answer), code, answer)


class CallTrace(msgspec.Struct, gc=False, array_like=True):
    """One commanded or refused tool call, as far up the ladder as it got. Snapshots write it without its field names."""

    call_id: str
    tool: str
    arguments_hash: bytes
    rung: Rung
    mutating: bool = False
    arguments: Text = ""
    content: Text = ""
    code: str = ""
    verifier: str = ""
    evidence: bytes = b""
    seq: int = 0
    duration_ms: int = 0
    # Why it was refused, or what the tool itself said when it failed.
    reason: str = ""


class LateOutcome(msgspec.Struct, gc=False, array_like=True):
    """What became of a call in doubt, as its tool told after the run had ended. No code: nothing contradicts it.

    With `was_denied` it was settled as not done before, whether or not the run had ended.
    """

    seq: int
    code: str = ""
    reason: str = ""
    duration_ms: int = 0
    content: Text = ""
    # Whether it came back, whatever was found wrong with what it returned; otherwise it is known not to have happened.
    is_returned: bool = False
    was_denied: bool = False


class ChildTrace(msgspec.Struct, gc=False, array_like=True):
    """One child that a node declared, once it has ended: how, with which words, and what it used of its models.

    The ending is an Ending, or the kernel's word for a child that was lost.
    """

    command_id: str
    node: str
    ending: str
    text: Text = ""
    error: ErrorCode | None = None
    message: str = ""
    usage: TokenUsage = TokenUsage()
    # What it was to do.
    prompt: Text = ""
