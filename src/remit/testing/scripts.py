"""Scripts for what no test owns: the model, other people's services, and people.

Rule 1: a script is plain data and small functions; what it says depends on the conversation and the world's seed.
Rule 2: a scripted model is not trusted more than a real one: it goes through the same facts and the same gate.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from random import Random

from remit.core.failure import ErrorCode
from remit.core.limits.tools import ToolCall
from remit.core.record import JsonObject, Record
from remit.core.run.inference import ModelResult
from remit.core.run.messages import Message
from remit.core.run.usage import TokenUsage

# What a scripted answer reports as used when nothing else is said.
USAGE = TokenUsage(prompt_tokens=8, output_tokens=4)


class Breaks(Record):
    """A model call that fails."""

    code: ErrorCode = ErrorCode.INFERENCE_ENGINE_ERROR
    was_cut: bool = False


class Stops(Record):
    """What a tool returns when it wants to end the loop with this text."""

    text: str


# A scripted model sees the conversation and the world's chance, and answers or breaks.
Model = Callable[[Sequence[Message], Random], ModelResult | Breaks]
# A scripted tool gets its arguments and returns its text; it may raise.
Tool = Callable[[JsonObject], str | Stops]
# A scripted filter gets a tool's name and its arguments, and returns the arguments to call it with, or a reason to refuse.
Filter = Callable[[str, JsonObject], tuple[JsonObject, str]]


def says(text: str, *, usage: TokenUsage = USAGE) -> ModelResult:
    """An answer in words."""
    return ModelResult(text, usage=usage)


def proposes(tool: str, arguments: JsonObject | None = None, *, call_id: str = "call") -> ModelResult:
    """An answer that wants one tool called."""
    return ModelResult(tool_calls=(ToolCall(call_id, tool, arguments or {}),), usage=USAGE)


def proposes_all(*calls: tuple[str, JsonObject]) -> ModelResult:
    """An answer that wants several tools called at once."""
    numbered = enumerate(calls, start=1)
    return ModelResult(tool_calls=tuple(ToolCall(f"call{n}", tool, args) for n, (tool, args) in numbered), usage=USAGE)


def in_turn(*answers: ModelResult | Breaks) -> Model:
    """A model that gives these answers one after the other; the last one repeats.

    Which is next follows from how often the model has answered in the conversation, so a resumed run gets the right one.
    """

    def answer(messages: Sequence[Message], chance: Random) -> ModelResult | Breaks:
        given = sum(message.role == "assistant" for message in messages)
        return answers[min(given, len(answers) - 1)]

    return answer


class Reply(StrEnum):
    """What a scripted person does with a question."""

    APPROVE = "approve"
    REJECT = "reject"
    MODIFY = "modify"
    IGNORE = "ignore"
