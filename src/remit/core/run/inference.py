"""Inference: what is asked of a model, what it answers, and what is known about it.

Rule 1: nothing here knows a vendor; engines translate.
Rule 2: a temperature of None is the engine's default and 0.0 is greedy; 0 for `max_tokens` or `top_p` is the default.
Rule 3: an unknown price is None, never 0: free and unknown are different things.
"""

from enum import StrEnum

import msgspec

from remit.core.limits.tools import ToolCall, ToolChoice, ToolDefinition, take_choice
from remit.core.record import JsonObject, MadeByHand, Record
from remit.core.run.messages import Message
from remit.core.run.usage import TokenUsage


class FinishReason(StrEnum):
    """Why a model stopped: it was done, it wants tools called, or it failed."""

    STOP = "stop"
    TOOL = "tool"
    ERROR = "error"


class Routing(StrEnum):
    """Who shortlists the tools that a model is offered: whatever suits the model, the embedding router, or none."""

    AUTO = "auto"
    EMBEDDING = "embedding"
    NONE = "none"


# What the words may take that tell a model how to call, beyond the tools' own names, descriptions and schemas.
CALL_HINT_BYTES_MAX = 1024
# What a chat template may say of its own, beside the messages: an empty instruction, what opens the answer, the date,
# words of the vendor, how tools are introduced. The longest that is known takes some 350 tokens.
TEMPLATE_TOKENS_MAX = 512


# What a served model is asked at the same time when its spec sets no limit: more would only meet the vendor's own.
SERVED_CALLS_AT_ONCE = 8


class ModelRequest(Record):
    """One inference call. `options` reach the engine unchanged; `attempt` counts how often this answer was asked for.

    `replica` tells those apart who are asked the same to be compared, so that an engine with a seed gives each its own.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolDefinition, ...] = ()
    schema: JsonObject | None = None
    grammar: str = ""
    max_tokens: int = 0
    temperature: float | None = None
    top_p: float = 0.0
    tool_choice: ToolChoice = ToolChoice()
    options: JsonObject = {}
    attempt: int = 1
    replica: int = 0

    def __post_init__(self) -> None:
        """Take the text of a mode for a choice of tools."""
        if type(self.tool_choice) is not ToolChoice:
            msgspec.structs.force_setattr(self, "tool_choice", take_choice(self.tool_choice))


class ModelResult(MadeByHand):
    """One answer, whole. What was streamed on the way is not part of it."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage = TokenUsage()
    finish_reason: FinishReason = FinishReason.STOP
    model: str = ""

    def __post_init__(self) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Take the text of a reason for it; every answer comes by here, and as a rule the member stands there."""
        if type(self.finish_reason) is not FinishReason:
            MadeByHand.__post_init__(self)


class Price(Record):
    """Micro-dollars per million tokens, whole numbers. Reasoning is priced as output."""

    input_microusd_per_mtok: int
    output_microusd_per_mtok: int


class ModelInfo(Record):
    """The facts about a model before it is asked; the manifest keeps them as a snapshot.

    One that calls by grammar knows no tools: its calls are text, held to their shape by a grammar while it decodes.
    `template_tokens` is what its template may add to a prompt, so that it is reserved as well.
    """

    name: str
    context_window: int = 0
    price: Price | None = None
    calls_by_grammar: bool = False
    template_tokens: int = 0
    # How many calls it takes at the same time without the one having to wait for the other.
    calls_at_once: int = 1
