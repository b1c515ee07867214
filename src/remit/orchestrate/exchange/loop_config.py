"""What the public loops are made of: their engine, tools, prompts, listeners and limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from remit.core.record import JsonObject
from remit.core.run.contract import ITERATIONS_MAX_DEFAULT, ExecutionHints
from remit.core.run.manifest import OUTPUT_TOKENS_DEFAULT
from remit.inference.engine import AnyEngine, Restarted, StreamChunk
from remit.observe.views.event_log import EventLog
from remit.orchestrate.setup.kit import Code, ContextProvider, SystemPrompt, ToolCallFilter
from remit.tool.registry import Registry

Stream = Callable[[StreamChunk | Restarted], None]


OnToolResult = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """What an agent works with. `grammar` shapes structured answers only; a chat is free text."""

    engine: AnyEngine
    tools: Registry = field(default_factory=lambda: Registry(()))
    system_prompt: SystemPrompt = ""
    grammar: str = ""
    max_tokens: int = OUTPUT_TOKENS_DEFAULT
    max_tool_iterations: int = ITERATIONS_MAX_DEFAULT
    stream: Stream | None = None
    on_tool_result: OnToolResult | None = None
    observer: EventLog | None = None
    context_provider: ContextProvider | None = None
    # What judges answers: named code, and the engine of a judge of their meaning.
    code: Mapping[str, Code] = field(default_factory=dict)
    judge: AnyEngine | None = None
    # What looks at proposed calls before they are judged, by name and in this order.
    filters: Mapping[str, ToolCallFilter] = field(default_factory=dict)
    # Who is asked in place of the engine when the boundary says `downgrade` and money runs short.
    downgrade: AnyEngine | None = None
    # How models are sampled, and how long a run may take; its limits of tokens and rounds are the fields above.
    hints: ExecutionHints = field(default_factory=ExecutionHints)


@dataclass(frozen=True, slots=True)
class SpecializedConfig:
    """What a specialized loop works with; every call begins with nothing but this."""

    engine: AnyEngine
    tools: Registry
    system_prompt: SystemPrompt
    schema: JsonObject
    grammar: str = ""
    max_tokens: int = OUTPUT_TOKENS_DEFAULT
    stream: Stream | None = None
    observer: EventLog | None = None
    context_provider: ContextProvider | None = None
