"""Whole runs on servers that speak in dialects, count nothing, demand strict schemas, or are replaced by another model."""

import asyncio
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remit.assemble import system_in_memory
from remit.core.failure import Ending
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.turn import Turn
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus, ExecutionHints, Mode, OutputContract, SystemRequest, SystemResponse
from remit.core.run.messages import user_message
from remit.inference.chain import ChainEngine
from remit.inference.engine import Engine, StreamChunk
from remit.inference.local.engine import LocalEngine
from remit.inference.local.server import LoadedModels
from remit.inference.specs import open_engine
from remit.kernel.state import RunState
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.setup.kit import Kit
from remit.tool.declare.decorator import tool
from remit.tool.registry import Registry
from tests.conformance.chat_server import Call, ChatServer, Peer, Play, free_port, serving
from tests.conformance.test_openai_engine import NOTATIONS, writing
from tests.unit.inference.tiny_model import write_tiny_model

ERASED: list[str] = []


@tool(effect="read")
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word} is a letter"


@tool(effect="write", destructive=True)
def erase(word: str) -> str:
    """Erase a word from every book."""
    ERASED.append(word)
    return "gone"


TOOLS = Registry([look_up, erase])


class Played(NamedTuple):
    """A run on an engine: how it ended, what the journal has of its model, and what was heard."""

    response: SystemResponse
    answers: list[ModelAnswered]
    heard: str


async def played(engine: Engine, words: str = "What is a?", *, schema: JsonObject | None = None) -> Played:
    """A whole run; one that is to have a shape is offered no tools."""
    system, answers, heard = system_in_memory(), list[ModelAnswered](), list[str]()

    def keep(state: RunState, turn: Turn) -> None:
        if isinstance(turn.arrival, ModelAnswered):
            answers.append(turn.arrival)

    def hear(run_id: str, chunk: object) -> None:
        if isinstance(chunk, StreamChunk):
            heard.append(chunk.text)

    kit = Kit({engine.model_info().name: engine}, TOOLS if schema is None else Registry(()))
    request = SystemRequest(
        (user_message(words),),
        mode=Mode.CHAT if schema is None else Mode.STRUCTURED,
        output=OutputContract(schema=schema),
        hints=ExecutionHints(max_tokens=60, temperature=0.0),
    )
    try:
        return Played(await system.run(request, kit, listener=Listener(keep, hear)), answers, "".join(heard))
    finally:
        await system.close()


def play(
    scene: Play, spec: str, words: str = "What is a?", schema: JsonObject | None = None
) -> tuple[Played, ChatServer]:
    """A run on an engine in front of a server; `{url}` stands for its url."""

    async def scenario() -> tuple[Played, ChatServer]:
        async with serving(scene) as server:
            engine = open_engine(spec.replace("{url}", server.url), base=Path("/"))
            return await played(engine, words, schema=schema), server

    return asyncio.run(scenario())


# Dialects.


@pytest.mark.parametrize("notation", NOTATIONS)
def test_a_call_that_a_model_wrote_as_text_is_judged_made_and_answered(notation: str) -> None:
    run, server = play(writing(NOTATIONS[notation]), "ollama:tiny?url={url}")
    assert (run.response.terminal_code, run.response.content) == (Ending.SUCCESS, "a is a letter")
    assert {(call.name, call.status) for call in run.response.tool_calls_made} == {("look_up", CallStatus.COMMITTED)}
    # The listener heard no call, and the server is shown it as one of its own.
    assert run.heard in ("a is a letter", "Let me see.\na is a letter")
    assert server.calls[1].body["messages"][1]["tool_calls"][0]["function"]["name"] == "look_up"


def test_a_written_call_passes_the_same_gate_as_any_other() -> None:
    call = '<tool_call>{"name": "erase", "arguments": {"word": "a"}}</tool_call>'
    run, _ = play(writing(call), "vllm:tiny?url={url}")
    assert run.response.waiting_for
    assert (run.response.tool_calls_made, ERASED) == ((), [])


def test_prose_about_calls_is_an_answer() -> None:
    prose = f"Write {NOTATIONS['tool_call']} to look a word up."
    run, _ = play(writing(prose), "openai:tiny?url={url}")
    assert (run.response.terminal_code, run.response.content) == (Ending.SUCCESS, prose)
    assert run.response.tool_calls_made == ()


# What no server counted.


async def counts_nothing(call: Call, peer: Peer) -> None:
    """Calls a tool twice and then answers, and never says what anything cost."""
    await peer.begin()
    if call.answers < 2:
        arguments = json.dumps({"word": "ab"[call.answers]})
        piece = {"index": 0, "id": f"call_{call.answers}", "function": {"name": "look_up", "arguments": arguments}}
        await peer.delta({"reasoning": "hm", "tool_calls": [piece]}, "tool_calls")
    else:
        await peer.delta({"content": "Both are letters."}, "stop")
    await peer.done()


def test_a_run_whose_server_counts_nothing_is_charged_by_bytes_and_stays_within_what_it_reserved() -> None:
    run, server = play(counts_nothing, "openai:tiny?url={url}&price=1/2")
    assert (run.response.terminal_code, run.response.content) == (Ending.SUCCESS, "Both are letters.")
    for answer, call in zip(run.answers, server.calls, strict=True):
        sent = sum(len((message["content"] or "").encode()) for message in call.body["messages"])
        assert answer.usage.prompt_tokens > sent
        assert 0 < answer.usage.completion_tokens <= 60
    assert run.answers[0].usage.completion_tokens == 60
    assert run.answers[2].usage.output_tokens < 60


# Strict schemas.

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer"},
        "pet": {"type": ["string", "null"], "default": None},
    },
    "required": ["name"],
}


def saying(text: str) -> Play:
    async def scene(call: Call, peer: Peer) -> None:
        await peer.says(text)

    return scene


def told(server: ChatServer) -> Any:
    return server.calls[0].body["response_format"]["json_schema"]


@pytest.mark.req("0.11")
def test_a_server_that_demands_strict_mode_gets_it_and_its_answer_is_brought_back() -> None:
    text = '{"name":"Ann","age":null,"pet":null}'
    run, server = play(saying(text), "openai:tiny?url={url}&schemas=strict", schema=PERSON)
    assert told(server)["strict"] is True
    assert told(server)["schema"]["required"] == ["name", "age", "pet"]
    assert told(server)["schema"]["properties"]["name"] == {"type": "string"}
    assert run.response.terminal_code is Ending.SUCCESS
    assert run.response.structured_output == {"name": "Ann", "pet": None}


@pytest.mark.req("0.11")
def test_what_the_strict_schema_could_not_say_is_validated_afterwards() -> None:
    run, _ = play(saying('{"name":"","age":null,"pet":null}'), "openai:tiny?url={url}&schemas=strict", schema=PERSON)
    assert run.response.terminal_code is not Ending.SUCCESS
    assert run.answers[0].violations


def test_a_schema_that_strict_mode_cannot_say_is_sent_as_it_is() -> None:
    pairs = {"type": "object", "additionalProperties": {"type": "integer"}}
    run, server = play(saying('{"a":1}'), "openai:tiny?url={url}&schemas=strict", schema=pairs)
    assert (told(server)["strict"], told(server)["schema"]) == (False, pairs)
    assert (run.response.terminal_code, run.response.structured_output) == (Ending.SUCCESS, {"a": 1})


def test_any_other_server_gets_the_schema_as_it_is() -> None:
    run, server = play(saying('{"name":"Ann"}'), "openai:tiny?url={url}", schema=PERSON)
    assert (told(server)["strict"], told(server)["schema"]) == (False, PERSON)
    assert run.response.structured_output == {"name": "Ann"}


# Chains of different kinds.


def test_a_served_model_takes_over_from_a_local_one_that_is_gone_and_is_offered_tools(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "gone.gguf")
    gone = LocalEngine(path, loaded=LoadedModels())
    path.unlink()

    async def scenario() -> tuple[Played, ChatServer]:
        async with serving(counts_nothing) as server:
            served = open_engine(f"openai:tiny?url={server.url}", base=Path("/"))
            return await played(ChainEngine([gone, served])), server

    run, server = asyncio.run(scenario())
    assert (run.response.terminal_code, run.response.content) == (Ending.SUCCESS, "Both are letters.")
    assert [offered["function"]["name"] for offered in server.calls[0].body["tools"]] == ["look_up", "erase"]
    assert "grammar" not in server.calls[0].body
    assert [answer.model for answer in run.answers] == ["openai:tiny"] * 3


@pytest.mark.model
def test_a_local_model_takes_over_from_a_server_that_is_not_there_and_calls_by_grammar() -> None:
    async def scenario() -> Played:
        spec = f"openai:gone?url=http://127.0.0.1:{await free_port()}/v1|local"
        return await played(open_engine(spec, base=Path("/")), "Look up the word tea")

    run = asyncio.run(scenario())
    assert [(call.name, call.status) for call in run.response.tool_calls_made] == [("look_up", CallStatus.COMMITTED)]
    assert {answer.model for answer in run.answers} == {"local:SmolLM2-135M-Instruct.Q4_1"}
