"""What a structured call with tools really sends: words first, then the output alone."""

from pathlib import Path

import pytest

from remit import SpecializedLoop, tool
from remit.core.limits.tools import ToolCall
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.messages import Message, Role
from remit.inference.engine import StreamHandler
from tests.doors.desk import MOOD

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
