"""A kit of objects that no file can bring back: a filter of calls, and a provider of evidence."""

from collections.abc import Sequence

from remit import tool
from remit.core.limits.tools import ToolCall
from remit.core.record import JsonObject
from remit.core.run.messages import Message, system_message
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.setup.kit import Kit
from remit.tool.registry import Registry

LONG = "what everybody knows of it, " * 100


@tool(effect="read", network=False)
def look(at: str) -> str:
    """Look at something."""
    return f"{at} is fine"


def lowered(call: ToolCall) -> ToolCall:
    """The same call, said quietly."""
    return ToolCall(call.id, call.name, {"at": str(call.arguments["at"]).lower()})


class Evidence:
    """Knows one long thing."""

    async def build(self, query: str) -> Sequence[Message]:
        """The thing, with the words it was asked with."""
        return [system_message(f"{query}: {LONG}")]


def kit() -> Kit:
    """The kit, the same in every process."""
    replies: list[JsonObject] = [
        {"tool_calls": [{"name": "look", "arguments": {"at": "THE SKY"}}]},
        {"text": "It is fine."},
    ]
    engine = ScriptedEngine(replies)
    return Kit({engine.model_info().name: engine}, Registry([look]), context=Evidence(), filters={"lowered": lowered})
