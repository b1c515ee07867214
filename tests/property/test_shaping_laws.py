"""Laws of shaping: what a small model is really asked never exceeds what its run reserved, and never depends on who asks.

The model here counts as the worst tokenizer does: a token for every byte. Its chat template is a real one, and says as
much of its own as it may.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolCall, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import JsonObject, replace
from remit.core.run.contract import ExecutionHints, OutputContract, SystemRequest, SystemResponse
from remit.core.run.inference import TEMPLATE_TOKENS_MAX, ModelInfo, ModelRequest, ModelResult, Price, Routing
from remit.core.run.messages import Message, Role, assistant_message, system_message, tool_message, user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import Ask, Graph, NodeKind, Sees
from remit.inference.engine import StreamHandler
from remit.inference.local.request import rendered_chat
from remit.orchestrate.exchange.call_shape import Circumstances, shaped
from remit.orchestrate.executors.errands import Occasion
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.setup.kit import Kit, Terms
from remit.rerank.router import Scored
from remit.tool.declare.decorator import Tool, tool
from remit.tool.registry import Registry

# Together they take seconds.
pytestmark = pytest.mark.slow

INFO = ModelInfo("small", 8192, Price(0, 0), calls_by_grammar=True, template_tokens=TEMPLATE_TOKENS_MAX)
# A failed call is not repeated, so that no test waits.
AT_ONCE = Budget(retries=0)
# What opens the answer, and an instruction of the vendor's that stands before everything.
OPENING = len("<assistant\n")
VENDORS_WORDS = TEMPLATE_TOKENS_MAX - OPENING - len("<system\n>\n")


def worst_count(messages: Sequence[JsonObject]) -> int:
    """The tokens of a conversation, where each byte is one and each of two marks around a message is one."""
    own = OPENING + VENDORS_WORDS
    return own + sum(len(f"<{turn['role']}\n{turn['content']}>\n".encode()) for turn in messages)


class Counting:
    """A model that knows no tools, reads by the byte, and says what it was given to say, one after the other."""

    def __init__(self, says: Sequence[str]) -> None:
        self._says = list(says)

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        said = self._says.pop(0) if self._says else "done"
        return ModelResult(said, usage=TokenUsage(worst_count(rendered_chat(request.messages)), 0, 1))

    def model_info(self) -> ModelInfo:
        return INFO


class InOrder:
    """A router that finds every tool fitting."""

    def shortlist(self, words: str, tools: Sequence[ToolDefinition]) -> Sequence[Scored]:
        return [Scored(each.name, 1.0) for each in tools]

    ranked = shortlist


def named(name: str, description: str, says: str) -> Tool:
    @tool(effect="none", name=name, description=description)
    def made(text: str = "") -> str:
        if says.startswith("!"):
            raise ValueError(says)
        return says

    return made


names = st.from_regex(r"[a-z_]{1,64}", fullmatch=True)
texts = st.one_of(st.just(""), st.text(max_size=30), st.sampled_from(["!no", "é" * 200, "x" * 3000]))
tools = st.lists(st.builds(named, names, texts, texts), max_size=12, unique_by=lambda one: one.name)
sights = st.sampled_from(Sees)
# A node demands a call or a shape.
asks = st.one_of(
    st.builds(Ask, texts, must_call=st.just(value=True), sees=sights),
    st.builds(Ask, texts, schema=st.sampled_from(["", '{"type":"string"}']), sees=sights),
)


def called(name: str, arguments: Any) -> str:
    return json.dumps({"tool": name, "arguments": arguments})


@st.composite
def histories(draw: st.DrawFn) -> tuple[Message, ...]:
    """What was said before: exchanges with calls and their results, the shortest ids and names among them."""
    found: list[Message] = [system_message(draw(texts) or "Be brief.")] if draw(st.booleans()) else []
    for number in range(draw(st.integers(0, 3))):
        found.append(user_message(draw(texts) or "?"))
        call = ToolCall(str(number), draw(names), {draw(texts): 1e-7})
        found += [assistant_message(draw(texts), (call,)), tool_message(str(number), call.name, draw(texts) or "-")]
    return (*found, user_message(draw(texts) or "?"))


def graph_of(ask: Ask) -> Graph:
    """A chat whose model is asked more."""
    chat = chat_graph(tool_rounds_max=3)
    nodes = [replace(node, ask=ask) if node.kind is NodeKind.MODEL else node for node in chat.nodes]
    return replace(chat, nodes=tuple(nodes))


def played(request: SystemRequest, kit: Kit, terms: Terms) -> SystemResponse:
    async def scene() -> SystemResponse:
        system = system_in_memory()
        try:
            return await system.run(request, kit, terms)
        finally:
            await system.close()

    return asyncio.run(scene())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_what_a_small_model_is_asked_was_reserved(data: st.DataObject) -> None:
    offered = Registry(data.draw(tools))
    known = [each.name for each in offered.definitions] or ["nothing"]
    replies = st.one_of(texts, st.builds(called, st.sampled_from(known), st.sampled_from([{}, {"text": "x"}, 1])))
    kit = Kit({INFO.name: Counting(data.draw(st.lists(replies, max_size=5)))}, offered)
    router = data.draw(st.sampled_from([Routing.NONE, Routing.EMBEDDING]))
    if router is Routing.EMBEDDING:
        kit = Kit(kit.engines, kit.tools, router=InOrder())
    output = data.draw(st.sampled_from([OutputContract(), OutputContract({"type": "string"})]))
    request = SystemRequest(data.draw(histories()), output=output, hints=ExecutionHints(max_tokens=1))
    graph = data.draw(st.one_of(st.none(), asks.map(graph_of)))
    response = played(request, kit, Terms(graph=graph, router=router, budget=AT_ONCE))
    assert response.error is None or "had reserved" not in response.error.message, response.error


def test_the_shortest_run_of_all_keeps_to_what_it_reserved() -> None:
    request = SystemRequest((user_message("?"),), hints=ExecutionHints(max_tokens=1))
    response = played(request, Kit({INFO.name: Counting([])}, Registry()), Terms())
    assert response.terminal_code is Ending.SUCCESS


# What another process makes of the same history; the seed of hashes differs there.
SHAPING = """
from tests.property.test_shaping_laws import shown
print(shown())
"""


def shown() -> str:
    """Several requests as they are shaped, as text."""
    definitions = tuple(named(name, f"Do {name}.", "").definition for name in ("look", "keep", "find", "sort"))
    said = (
        user_message("look, keep"),
        assistant_message("", (ToolCall("1", "look", {}),)),
        tool_message("1", "look", "x"),
    )
    requests = [
        ModelRequest(said, definitions, tool_choice=ToolChoice(ToolChoiceMode.REQUIRED)),
        ModelRequest(said[:1], definitions, grammar='root ::= ("a" | [b-d]){2,} root | "e"'),
        ModelRequest(said, (), {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "number"}}}),
    ]
    shapes = [
        shaped(request, Circumstances(info, router, Occasion("look", ("look", "keep"), must_call)))
        for request in requests
        for info in (INFO, ModelInfo("native"))
        for router in (None, InOrder())
        for must_call in (False, True)
    ]
    return "\n".join(map(repr, shapes))


@pytest.mark.slow
def test_the_same_history_is_shaped_alike_in_another_process() -> None:
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SHAPING], capture_output=True, text=True, check=True, timeout=60, env=environment
        )
        assert done.stdout.strip() == shown()


def test_a_message_of_each_role_is_counted() -> None:
    roles = {turn["role"] for turn in rendered_chat((user_message("a"), assistant_message("b")))}
    assert roles == {Role.SYSTEM, Role.USER, Role.ASSISTANT}
