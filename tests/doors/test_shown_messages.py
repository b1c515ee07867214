"""Events count the messages that a model was sent, also where a node shows its model a part of the conversation."""

import asyncio
from typing import Any

import pytest

import remit
from remit import (
    EXITS,
    TERMINALS,
    Edge,
    Graph,
    InMemoryEventLog,
    Listener,
    ModelResult,
    Node,
    NodeKind,
    SystemRequest,
    Terms,
    ToolCall,
    kit_of,
    tool,
    user_message,
)
from remit.core.work.graph import STANDARD_RULES, Ask, NodeOutcome, Sees
from remit.observe.views.event_log import Telling
from tests.doors.desk import Panel


@tool(effect="read")
def look(at: str) -> str:
    """Look at something."""
    return f"saw {at}"


class Looks(Panel):
    """A model that looks twice, and then says what it saw."""

    async def infer(self, request: Any, on_chunk: Any = None) -> ModelResult:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """A call, or words."""
        self.asked.append(request)
        place = len(self.asked)
        calls = (ToolCall(f"c{place}", "look", {"at": str(place)}),) if place <= 2 else ()
        return ModelResult("" if calls else "seen", tool_calls=calls)


def graph_of(sees: Sees) -> Graph:
    nodes = (
        Node("think", NodeKind.MODEL),
        Node("act", NodeKind.TOOL, visits_max=5, rules=STANDARD_RULES),
        Node("sum up", NodeKind.MODEL, ask=Ask(tools=(), sees=sees)),
        *TERMINALS,
    )
    ways = (
        Edge("think", "act", NodeOutcome.CALLED_TOOLS),
        Edge("think", "sum up"),
        Edge("act", "think"),
        Edge("sum up", "done"),
    )
    return Graph("looking", "think", nodes, ways, EXITS)


@pytest.mark.req("0.30")
@pytest.mark.parametrize("sees", Sees)
def test_an_event_counts_the_messages_that_were_sent(sees: Sees) -> None:
    panel, log, telling = Looks(), InMemoryEventLog(), Telling()

    def hear(state: Any, turn: Any) -> None:
        for event in telling.events(state, turn):
            log.record(event)

    async def story() -> None:
        async with remit.open(memory=True) as system:
            asked = SystemRequest((user_message("Look around."),))
            await system.run(asked, kit_of(panel, [look]), Terms(graph=graph_of(sees)), listener=Listener(hear))

    asyncio.run(story())
    told = [event.what.message_count for event in log.events() if hasattr(event.what, "message_count")]
    assert told == [len(request.messages) for request in panel.asked]
    assert len(told) == 4
