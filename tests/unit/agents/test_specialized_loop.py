"""SpecializedLoop: one answer of a given shape for each call, and nothing remembered between calls."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from remit import AgentLoop, Budget, SpecializedLoop, System
from remit.agents.workplace import LOOP_RUNNING
from remit.assemble import system_in_memory
from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.journal.arrivals import ModelAnswered
from remit.core.limits.profiles import BOUNDARY_UNKNOWN, PROFILES
from remit.core.record import JsonObject
from remit.core.run.contract import Mode
from remit.core.run.manifest import MANIFEST_INVALID
from remit.core.run.messages import Message, system_message
from remit.core.run.request_checks import REQUEST_HINT_INVALID, REQUEST_ID_INVALID, REQUEST_MALFORMED
from remit.core.schema.schema_source import SCHEMA_SOURCE_INVALID
from remit.inference.engine import Restarted, StreamChunk
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import pinned
from remit.observe.views.event_log import Action, InMemoryEventLog
from remit.orchestrate.exchange.loop_config import SpecializedConfig
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import Listening, Said
from tests.unit.orchestrate.stage import play


@dataclass
class Mood:
    sentiment: Literal["positive", "negative", "neutral"]
    score: int


GOOD = {"sentiment": "positive", "score": 3}
FITS: JsonObject = {"text": '{"sentiment":"positive","score":3}'}
MESSY: JsonObject = {"text": "Sure!\n```json\n{'sentiment': 'Positive', 'score': 3,}\n```"}
ECSTATIC: JsonObject = {"text": '{"sentiment":"ecstatic","score":3}'}


@tool(effect="read")
def look(word: str) -> str:
    """Look a word up."""
    return f"{word} is a good word"


@tool(effect="write", idempotent=True)
def keep(word: str, idempotency_key: str) -> Said:
    """Keep a word."""
    return word


def loop(*replies: JsonObject, system: System | None = None, **terms: Any) -> SpecializedLoop:
    return SpecializedLoop(ScriptedEngine(replies), schema=Mood, system=system or system_in_memory(), **terms)


@pytest.mark.parametrize("name", ["look", "nothing_like_it"])
def test_a_tool_that_is_called_where_the_output_is_asked_for_puts_it_off_and_words_are_no_output(name: str) -> None:
    calls: JsonObject = {"tool_calls": [{"name": name, "arguments": {"word": "x"}}]}
    said = loop({"text": "It is positive, I think."}, calls, FITS, tools=[look]).call_sync("How is it?")
    assert said.structured_output == GOOD
    stubborn = loop({"text": "It is positive, I think."}, calls, tools=[look]).call_sync("How is it?")
    assert stubborn.terminal_code == "BUDGET_EXHAUSTED"
    assert stubborn.structured_output is None


@pytest.mark.req("2.13")
def test_a_loop_has_nine_settings() -> None:
    fields = list(SpecializedConfig.__slots__)
    assert fields == [
        "engine",
        "tools",
        "system_prompt",
        "schema",
        "grammar",
        "max_tokens",
        "stream",
        "observer",
        "context_provider",
    ]


def test_every_call_begins_with_a_clean_slate() -> None:
    system = system_in_memory()
    specialized = loop(FITS, system=system)
    first, second = (specialized.call_sync("I love it") for _ in range(2))
    assert first.structured_output == second.structured_output == GOOD
    assert first.session_id != second.session_id


@pytest.mark.req("1.23", "2.9")
def test_an_output_that_is_messy_is_repaired_and_the_journal_says_how() -> None:
    async def scene() -> None:
        system = system_in_memory()
        response = await loop(MESSY, system=system).call("I love it")
        assert (response.terminal_code, response.structured_output) == (Ending.SUCCESS, GOOD)
        turns = [turn async for turn in system.watch(response.run_id)]
        (answer,) = [turn.arrival for turn in turns if isinstance(turn.arrival, ModelAnswered)]
        assert (answer.raw, answer.text) == (MESSY["text"], '{"sentiment":"positive","score":3}')
        assert any("enum_matched" in repair for repair in answer.repairs)
        assert (await system.archive.replay(response.run_id)).verdict == "same"

    asyncio.run(scene())


@pytest.mark.req("0.4")
@pytest.mark.parametrize("terms", [{}, {"goal": {"statement": "say how it feels"}}], ids=["schema", "goal"])
@pytest.mark.slow
def test_where_no_answer_came_nothing_was_validated(terms: JsonObject) -> None:
    response = loop({"error": "INFERENCE_ENGINE_ERROR"}, **terms).call_sync("I love it")
    assert response.error is not None
    assert (response.error.code, response.validation) == (ErrorCode.INFERENCE_ENGINE_ERROR, None)


@pytest.mark.req("0.11")
def test_without_repair_a_messy_output_is_final() -> None:
    response = loop(MESSY, FITS).call_sync("I love it", repair=False)
    assert response.error is not None
    assert response.error.code == ErrorCode.CONSTRAINT_JSON_INVALID


@pytest.mark.req("0.18", "2.30")
def test_an_output_that_does_not_fit_is_asked_for_again_and_then_fails_with_its_last_fault() -> None:
    mended = loop(ECSTATIC, FITS).call_sync("I love it")
    assert mended.structured_output == GOOD
    assert mended.validation is not None
    assert mended.validation.repair_attempts == 1
    failed = loop(ECSTATIC).call_sync("I love it")
    assert (failed.terminal_code, failed.error and failed.error.code) == (
        Ending.VALIDATION_FAIL,
        ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED,
    )


@pytest.mark.req("0.11")
def test_a_part_comes_along_with_a_warning_unless_the_contract_is_strict() -> None:
    partial = loop(ECSTATIC).call_sync("I love it")
    assert partial.structured_output == {"sentiment": "ecstatic", "score": 3}
    assert any("ecstatic" in warning for warning in partial.warnings)
    strict = loop(ECSTATIC).call_sync("I love it", strict=True)
    assert (strict.structured_output, strict.content, strict.warnings) == (None, "", ())


def test_with_tools_the_model_works_first_and_produces_then() -> None:
    calls: JsonObject = {"tool_calls": [{"name": "look", "arguments": {"word": "love"}}]}
    response = loop(calls, {"text": "a good word"}, FITS, tools=[look]).call_sync("I love it")
    assert response.structured_output == GOOD
    assert [call.name for call in response.tool_calls_made] == ["look"]


def test_a_call_that_asks_a_person_goes_on_with_the_answer() -> None:
    calls: JsonObject = {"tool_calls": [{"name": "keep", "arguments": {"word": "love"}}]}

    async def scene(answer: str) -> Ending | None:
        specialized = loop(calls, {"text": "kept"}, FITS, tools=[keep])
        asked = await specialized.call("Keep it")
        assert asked.waiting_for is not None
        (packet,) = asked.waiting_for.packet_ids
        if answer == "yes":
            done = await specialized.approve(packet, by="ada")
        else:
            done = await specialized.reject(packet, by="ada", reason="no")
        with pytest.raises(RequestRejected) as refused:
            await specialized.approve(packet, by="ada")
        assert refused.value.code == "QUESTION_SETTLED"
        return done.terminal_code

    assert asyncio.run(scene("yes")) is Ending.SUCCESS
    assert asyncio.run(scene("no")) is Ending.PERMISSION_DENIED


def test_a_loop_is_not_called_in_sync_where_a_loop_runs() -> None:
    async def scene() -> None:
        with pytest.raises(RequestRejected) as refused:
            loop(FITS).call_sync("I love it")
        assert refused.value.code == LOOP_RUNNING

    asyncio.run(scene())


def test_a_schema_that_says_nothing_is_refused() -> None:
    with pytest.raises(RequestRejected) as refused:
        SpecializedLoop(ScriptedEngine([FITS]), schema=True, system=system_in_memory())  # type: ignore[arg-type]
    assert refused.value.code == SCHEMA_SOURCE_INVALID


@pytest.mark.req("2.9")
def test_a_conversation_may_ask_for_one_answer_of_a_shape_and_no_tool_is_offered() -> None:
    async def scene() -> None:
        system = system_in_memory()
        agent = AgentLoop(ScriptedEngine([{"text": "hello"}, FITS]), tools=[look], system=system)
        await agent.chat("hello")
        response = await agent.chat_structured("How was it?", Mood)
        assert response.structured_output == GOOD
        assert [message.content for message in agent.messages][-1] == FITS["text"]
        state = await system.state_of(response.run_id)
        assert state.manifest is not None
        assert state.manifest.request.mode is Mode.STRUCTURED

    asyncio.run(scene())


def test_a_conversation_may_work_with_its_tools_before_it_produces_an_answer_of_a_shape() -> None:
    calls: JsonObject = {"tool_calls": [{"name": "look", "arguments": {"word": "love"}}]}

    async def story() -> None:
        engine = ScriptedEngine([calls, {"text": "a good word"}, FITS])
        agent = AgentLoop(engine, tools=[look], system=system_in_memory())
        response = await agent.produce("How was it?", Mood)
        assert response.structured_output == GOOD
        assert [call.name for call in response.tool_calls_made] == ["look"]

    play(story())


class Shelf:
    """A context provider that keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def build(self, query: str) -> list[Message]:
        """What is known."""
        self.asked.append(query)
        return [system_message(f"about {query}")]


@pytest.mark.req("2.12")
def test_context_is_looked_for_with_the_prompt_of_the_call_and_shown_to_the_model() -> None:
    engine, shelf = Listening(FITS), Shelf()
    specialized = SpecializedLoop(
        engine, schema=Mood, context_provider=shelf, system_prompt="Be brief.", system=system_in_memory()
    )
    specialized.call_sync("I love it")
    assert shelf.asked == ["I love it"]
    (asked,) = engine.asked
    assert [message.content for message in asked.messages][:3] == ["Be brief.", "about I love it", "I love it"]


@pytest.mark.req("2.13")
def test_stream_and_observer_hear_every_call() -> None:
    async def story() -> None:
        heard: list[StreamChunk | Restarted] = []
        log = InMemoryEventLog()
        specialized = loop(FITS, stream=heard.append, observer=log)
        responses = [await specialized.call("I love it") for _ in range(2)]
        assert heard == [StreamChunk(str(FITS["text"]))] * 2
        requests = {event.what.correlation.request_id for event in log.events() if event.action is Action.INFER}
        assert requests == {response.request_id for response in responses}

    play(story())


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"boundary": "wild_west"}, BOUNDARY_UNKNOWN),
        ({"system_prompt": 7}, REQUEST_MALFORMED),
        ({"max_tokens": 0}, REQUEST_HINT_INVALID),
        ({"budget": Budget(tool_calls=-1)}, MANIFEST_INVALID),
        ({"user_id": "x" * 300}, REQUEST_ID_INVALID),
    ],
)
def test_what_no_call_could_be_made_with_is_refused_when_the_loop_is_made(terms: Any, code: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        loop(FITS, **terms)
    assert refused.value.code == code


def test_the_settings_and_terms_of_a_loop_reach_its_runs() -> None:
    async def story() -> None:
        system = system_in_memory()
        specialized = loop(
            FITS,
            system=system,
            max_tokens=77,
            boundary="customer_support",
            budget=Budget(tool_calls=5),
            router="none",
            user_id="ada",
        )
        manifest = pinned(await system.state_of((await specialized.call("I love it")).run_id))
        assert (manifest.request.user_id, manifest.request.hints.max_tokens) == ("ada", 77)
        assert (manifest.boundary, manifest.caps[2]) == (PROFILES["customer_support"], 5)
        assert manifest.router == "none"

    play(story())


def test_a_loop_without_a_system_works_in_its_home(tmp_path: Path) -> None:
    specialized = SpecializedLoop(ScriptedEngine([FITS]), schema=Mood, home=tmp_path / "home")
    assert specialized.call_sync("I love it").structured_output == GOOD
    assert (tmp_path / "home").is_dir()
