"""What a structured call with tools really sends: words first, then the output alone."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit import AgentLoop, InferHandler, PlanExecutor, SpecializedLoop, Step, tool
from remit.core.limits.tools import ToolCall
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.messages import Message, Role
from remit.inference.engine import StreamHandler
from tests.conformance.chat_server import Call, Peer, served
from tests.doors.desk import MOOD, Panel

GRAMMAR = 'root ::= "{\\"mood\\":\\"good\\"}" | "{\\"mood\\":\\"bad\\"}"'
WORDS = "I have found what you wanted."
GOOD = '{"mood":"good"}'


@tool(effect="read", network=False)
def look(word: str) -> str:
    """Look a word up."""
    return f"{word} is a good word"


class Worker:
    """A model that calls a tool, says a word about it, and produces."""

    def __init__(self) -> None:
        self.sent: list[ModelRequest] = []

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The next of its three answers."""
        self.sent.append(request)
        if len(self.sent) == 1:
            return ModelResult("", tool_calls=(ToolCall("1", "look", {"word": "lamp"}),))
        return ModelResult(WORDS if len(self.sent) == 2 else GOOD)

    def model_info(self) -> ModelInfo:
        """A model that costs nothing."""
        return ModelInfo("worker", 8_192, Price(0, 0))


def said(messages: tuple[Message, ...]) -> list[object]:
    return [message.content for message in messages if message.role is Role.ASSISTANT]


@pytest.mark.req("2.3", "2.12")
@pytest.mark.parametrize("grammar", ["", GRAMMAR])
def test_the_tool_phase_is_a_chat_and_the_second_phase_alone_has_a_shape(grammar: str, tmp_path: Path) -> None:
    worker = Worker()
    loop = SpecializedLoop(worker, schema=MOOD, grammar=grammar, tools=[look], home=tmp_path)
    response = loop.call_sync("What is the mood of lamp?")
    assert (response.error, response.content) == (None, GOOD)
    first, second, third = worker.sent
    for request in (first, second):
        assert [offered.name for offered in request.tools] == ["look"]
        assert (request.schema, request.grammar) == (None, "")
    assert (third.tools, bool(third.schema), third.grammar) == ((), True, grammar)
    assert WORDS in said(third.messages)
    assert third.messages[-1] == Message(Role.USER, "Produce your structured output now.")


@pytest.mark.req("2.12")
def test_no_call_knows_of_another(tmp_path: Path) -> None:
    worker = Worker()
    loop = SpecializedLoop(worker, schema=MOOD, tools=[look], home=tmp_path)
    loop.call_sync("What is the mood of lamp?")
    loop.call_sync("And of kettle?")
    assert [message.content for message in worker.sent[3].messages] == ["And of kettle?"]


@pytest.mark.req("2.3", "2.12")
@pytest.mark.parametrize("type_of_step", ["infer", "specialized"])
def test_a_step_with_tools_and_a_shape_has_the_same_two_phases(type_of_step: str, tmp_path: Path) -> None:
    worker = Worker()
    specialized = SpecializedLoop(worker, schema=MOOD, tools=[look])
    work: dict[str, Any] = {"infer": InferHandler(worker, tools=[look]), "specialized": specialized}
    executor = PlanExecutor({type_of_step: work[type_of_step]}, home=tmp_path)
    schema = MOOD if type_of_step == "infer" else None
    result = executor.execute_sync([Step("look", type_of_step, "What is the mood of lamp?", schema=schema)])
    assert (result.response.error, result.output) == (None, {"mood": "good"})
    shapes = [(len(request.tools), bool(request.schema), request.grammar) for request in worker.sent]
    assert shapes == [(1, False, ""), (1, False, ""), (0, True, "")]


@pytest.mark.req("2.3", "2.12")
@pytest.mark.parametrize("grammar", ["", GRAMMAR])
def test_on_the_wire_tools_and_a_shape_are_never_in_one_request(grammar: str, tmp_path: Path) -> None:
    async def play(call: Call, peer: Peer) -> None:
        said = ('<tool_call>{"name": "look", "arguments": {"word": "lamp"}}</tool_call>', WORDS, GOOD)
        await peer.says(said[call.answers])

    with served(play) as server:
        engine = f"ollama:tiny?url={server.url}&grammars=grammar"
        loop = SpecializedLoop(engine, schema=MOOD, grammar=grammar, tools=[look], home=tmp_path)
        response = loop.call_sync("What is the mood of lamp?")
    assert (response.error, response.content) == (None, GOOD)
    shapes = ("tools", "response_format", "grammar")
    sent = [{key for key in shapes if call.body.get(key)} for call in server.calls]
    assert sent == [{"tools"}, {"tools"}, {"grammar"} if grammar else {"response_format"}]


@pytest.mark.req("2.3")
def test_an_agent_that_is_asked_for_a_shape_offers_no_tool(tmp_path: Path) -> None:
    panel = Panel(GOOD)
    agent = AgentLoop(panel, tools=[look], grammar=GRAMMAR, home=tmp_path)
    assert asyncio.run(agent.chat_structured("What is the mood?", MOOD)).error is None
    assert [(request.tools, bool(request.schema), request.grammar) for request in panel.asked] == [((), True, GRAMMAR)]
