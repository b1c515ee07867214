"""AgentLoop: a conversation whose words last, whose tools are told of, and whose questions can be answered."""

import asyncio
import logging
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from remit import AgentLoop, Boundary, Budget, System
from remit.agents.agent_loop import AGENT_BUSY
from remit.agents.workplace import LOOP_RUNNING
from remit.assemble import HOME_VARIABLE, system_in_memory
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, ErrorCode, RemitError, RequestRejected
from remit.core.home import HOME_INVALID
from remit.core.journal.storage import BlobMissing
from remit.core.limits.boundary import Exhaustion
from remit.core.limits.profiles import BOUNDARY_UNKNOWN, PROFILES, STANDARD
from remit.core.record import JsonObject, Text, replace
from remit.core.run.contract import NOTHING_OPEN, CallStatus
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.manifest import MANIFEST_INVALID
from remit.core.run.messages import Message, Role, system_message
from remit.core.run.request_checks import (
    REQUEST_HINT_INVALID,
    REQUEST_ID_INVALID,
    REQUEST_MALFORMED,
    REQUEST_OUTPUT_INVALID,
    REQUEST_TOOLS_INVALID,
)
from remit.core.run.signals import PACKET_UNKNOWN
from remit.core.work.goal import Goal, RequiredAction
from remit.inference.engine import Engine, Restarted, StreamChunk, StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import pinned
from remit.observe.views.event_log import Action, ContextEvent, Event, InMemoryEventLog
from remit.orchestrate.exchange.loop_config import LoopConfig
from remit.orchestrate.exchange.sessions import SESSION_BUSY, SESSION_ENTRY_INVALID
from remit.rerank.router import ROUTER_UNKNOWN
from remit.tool.declare.decorator import tool
from remit.tool.registry import Registry
from remit.validate.check import RULES_INVALID
from tests.unit.orchestrate.house import Listening, Said, calls, helper, keep, look, store_of, systems, until
from tests.unit.orchestrate.stage import play

LONG = "word " * 1000


@tool(effect="read")
def recite() -> str:
    """Say a lot."""
    return LONG


class Shelf:
    """A context provider that knows something about everything."""

    async def build(self, query: str) -> Sequence[Message]:
        """What is known."""
        return [system_message(f"about {query}")]


class Broken:
    """A context provider that knows nothing."""

    async def build(self, query: str) -> Sequence[Message]:
        """Nothing."""
        raise ConnectionError("the index is gone")


def agent(*replies: JsonObject, engine: Engine | None = None, **terms: Any) -> AgentLoop:
    """An agent in memory, unless a system or a home is named."""
    if "system" not in terms and "home" not in terms:
        terms["system"] = system_in_memory()
    return AgentLoop(engine or ScriptedEngine(replies), **terms)


def said(speaker: AgentLoop) -> list[tuple[str, str]]:
    return [(message.role.value, str(message.content)) for message in speaker.messages]


@pytest.mark.req("2.2")
def test_an_agent_has_ten_settings_with_their_defaults_and_what_follows_from_its_rules() -> None:
    engine = ScriptedEngine([{"text": "hello"}])
    config = AgentLoop(engine, system=system_in_memory()).config
    assert list(LoopConfig.__slots__) == [
        "engine",
        "tools",
        "system_prompt",
        "grammar",
        "max_tokens",
        "max_tool_iterations",
        "stream",
        "on_tool_result",
        "observer",
        "context_provider",
        "code",
        "judge",
        "filters",
        "downgrade",
        "hints",
    ]
    assert (config.engine, len(config.tools), config.system_prompt, config.grammar) == (engine, 0, "", "")
    assert (config.max_tokens, config.max_tool_iterations) == (2048, 20)
    assert (config.stream, config.on_tool_result, config.observer, config.context_provider) == (None,) * 4
    assert (config.code, config.judge, config.filters, config.downgrade) == ({}, None, {}, None)
    assert LoopConfig(engine).tools.definitions == ()


@pytest.mark.req("2.2")
def test_the_settings_reach_the_run() -> None:
    async def story() -> None:
        engine = Listening({"text": "hello"})
        system = system_in_memory()
        speaker = agent(
            engine=engine,
            tools=[look],
            system_prompt="Be brief.",
            grammar="root ::= [a-z]",
            max_tokens=77,
            max_tool_iterations=3,
            boundary="customer_support",
            budget=Budget(tool_calls=5),
            user_id="ada",
            system=system,
        )
        response = await speaker.chat("Hello?")
        manifest = pinned(await system.state_of(response.run_id))
        (asked,) = engine.asked
        assert (asked.max_tokens, asked.grammar, [one.name for one in asked.tools]) == (77, "", ["look"])
        assert manifest.boundary == PROFILES["customer_support"]
        assert (manifest.caps[2], manifest.request.hints.max_iterations, manifest.request.user_id) == (5, 3, "ada")
        assert [message.content for message in asked.messages] == ["Be brief.", "Hello?"]

    play(story())


@pytest.mark.parametrize("engine", [None, "", "carrier-pigeon:nest", object()])
def test_an_agent_without_a_usable_engine_is_refused(engine: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        AgentLoop(engine)
    assert refused.value.code == ErrorCode.CONFIG_NO_ENGINE


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"boundary": "wild_west"}, BOUNDARY_UNKNOWN),
        ({"boundary": None}, BOUNDARY_UNKNOWN),
        ({"system_prompt": 7}, REQUEST_MALFORMED),
        ({"max_tokens": "many"}, REQUEST_MALFORMED),
        ({"max_tokens": 0}, REQUEST_HINT_INVALID),
        ({"max_tokens": 2_000_000}, REQUEST_HINT_INVALID),
        ({"max_tool_iterations": 0}, REQUEST_HINT_INVALID),
        ({"max_tool_iterations": 1001}, REQUEST_HINT_INVALID),
        ({"budget": Budget(tool_calls=-1)}, MANIFEST_INVALID),
        ({"session_id": "two\nlines"}, REQUEST_ID_INVALID),
        ({"user_id": "x" * 300}, REQUEST_ID_INVALID),
    ],
)
def test_what_no_run_could_be_started_with_is_refused_when_the_agent_is_made(terms: Any, code: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        agent({"text": "hello"}, **terms)
    assert refused.value.code == code


def test_a_boundary_is_named_or_given(tmp_path: Path) -> None:
    async def boundary_of(given: Boundary | str) -> Boundary:
        system = system_in_memory()
        response = await agent({"text": "hello"}, boundary=given, system=system).chat("Hello?")
        return pinned(await system.state_of(response.run_id)).boundary

    own = Boundary(name="own", allowed_tools=())
    assert play(boundary_of("standard")) == STANDARD
    assert play(boundary_of(own)) == own


def test_an_engine_may_be_named_by_its_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "replies.yaml").write_text("replies: [{text: hello}]")
    monkeypatch.chdir(tmp_path)
    speaker = AgentLoop("scripted:replies.yaml", home=tmp_path / "home")
    assert speaker.chat_sync("Hello?").content == "hello"


@pytest.mark.req("2.1", "2.6")
def test_a_conversation_remembers_what_was_said() -> None:
    async def story() -> None:
        speaker = agent({"text": "Paris is warm."}, {"text": "London is wet."}, system_prompt="Be brief.")
        assert said(speaker) == [("system", "Be brief.")]
        await speaker.chat("Paris?")
        await speaker.chat("London?")
        assert said(speaker) == [
            ("system", "Be brief."),
            ("user", "Paris?"),
            ("assistant", "Paris is warm."),
            ("user", "London?"),
            ("assistant", "London is wet."),
        ]

    play(story())


@pytest.mark.req("1.21", "2.6")
def test_the_messages_that_are_handed_out_belong_to_the_caller() -> None:
    async def story() -> None:
        speaker = agent({"text": "hello"})
        await speaker.chat("Hello?")
        speaker.messages.clear()
        assert len(speaker.messages) == 2

    play(story())


@pytest.mark.req("2.4", "2.11")
def test_a_listener_hears_of_every_tool_as_the_model_does_and_the_conversation_does_not() -> None:
    async def story() -> None:
        heard: list[tuple[str, str]] = []
        engine = Listening(calls("recite"), calls("look", at="sky"), calls("missing"), {"text": "done"})
        speaker = agent(
            engine=engine, tools=[recite, look], on_tool_result=lambda name, output: heard.append((name, output))
        )
        response = await speaker.chat("Go on")
        assert heard == [("recite", LONG), ("look", "seen sky")]
        shown = [message.content for message in engine.asked[-1].messages if message.role is Role.TOOL]
        assert shown[:2] == [LONG, "seen sky"]
        assert said(speaker) == [("user", "Go on"), ("assistant", "done")]
        assert [call.status for call in response.tool_calls_made][:2] == [CallStatus.COMMITTED] * 2

    play(story())


def test_a_failed_tool_is_told_of_in_the_words_the_model_reads() -> None:
    @tool(effect="read")
    def fail() -> str:
        """Fail."""
        raise OSError("no disk")

    async def story() -> None:
        heard: list[str] = []
        speaker = agent(
            calls("fail"), {"text": "sorry"}, tools=[fail], on_tool_result=lambda name, output: heard.append(output)
        )
        await speaker.chat("Go on")
        assert len(heard) == 1
        assert "no disk" in heard[0]

    play(story())


def test_a_tool_that_was_cut_off_said_nothing_and_is_not_told_of() -> None:
    @tool(effect="read")
    async def ponder() -> str:
        """Never come back."""
        await asyncio.Event().wait()
        return ""

    async def story() -> None:
        heard: list[str] = []
        speaker = agent(calls("ponder"), tools=[ponder], on_tool_result=lambda name, output: heard.append(output))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await speaker.chat("Go on")
        await speaker.open()
        assert heard == []

    play(story())


def test_several_long_results_are_told_in_their_order_even_when_one_is_lost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        heard: list[tuple[str, int]] = []
        system = system_in_memory()
        text, lost = system.text, ["the first"]

        async def sometimes(found: Text) -> str:
            if lost and lost.pop():
                raise BlobMissing(b"gone")
            return await text(found)

        system.text = sometimes  # type: ignore[method-assign, assignment]
        both = {"tool_calls": [{"name": "recite", "arguments": {}}, *calls("look", at="sky")["tool_calls"]]}
        speaker = agent(
            both,
            calls("recite"),
            {"text": "done"},
            tools=[recite, look],
            system=system,
            on_tool_result=lambda name, output: heard.append((name, len(output))),
        )
        await speaker.chat("Go on")
        assert sorted(heard) == [("look", len("seen sky")), ("recite", len(LONG))]

    with caplog.at_level(logging.WARNING):
        play(story())
    assert "could not be told" in caplog.text


def test_listeners_that_break_are_logged_and_the_exchange_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    class Deaf:
        """An event log that cannot hear."""

        def record(self, event: Event) -> None:
            """Break."""
            raise RuntimeError("no ears")

    def break_off(*anything: object) -> None:
        raise ValueError("not listening")

    async def story() -> None:
        speaker = agent(
            calls("look", at="sky"),
            {"text": "blue", "chunks": ["bl", "ue"]},
            tools=[look],
            stream=break_off,
            on_tool_result=break_off,
            observer=Deaf(),
        )
        assert (await speaker.chat("Look")).content == "blue"

    with caplog.at_level(logging.ERROR):
        play(story())
    assert "on_tool_result broke" in caplog.text
    assert "no ears" in caplog.text


def test_an_answer_is_streamed_piece_by_piece_and_anew_when_it_is_asked_for_again() -> None:
    async def story() -> None:
        heard: list[StreamChunk | Restarted] = []
        speaker = agent(
            {"error": "INFERENCE_ENGINE_ERROR"},
            {"text": "hello", "chunks": ["hel", "lo"], "reasoning": "polite"},
            stream=heard.append,
        )
        await speaker.chat("Hello?")
        assert heard == [Restarted(), StreamChunk(reasoning="polite"), StreamChunk("hel"), StreamChunk("lo")]

    play(story())


def test_what_a_child_says_is_not_streamed_as_part_of_the_answer() -> None:
    async def story() -> None:
        heard: list[StreamChunk | Restarted] = []
        speaker = agent(
            {"when": '"task"', "text": "murmur"},
            calls("helper", task="think"),
            {"text": "aloud"},
            tools=[helper],
            stream=heard.append,
        )
        await speaker.chat("Go on")
        assert heard == [StreamChunk("aloud")]

    play(story())


@pytest.mark.req("2.7")
def test_context_stands_before_the_last_message_for_the_whole_exchange_and_is_never_stored() -> None:
    async def story() -> None:
        engine = Listening(calls("look", at="sky"), {"text": "blue"}, {"text": "wet"})
        speaker = agent(engine=engine, tools=[look], context_provider=Shelf(), system_prompt="Be brief.")
        await speaker.chat("sky")
        await speaker.chat("sea")
        first, second, third = ([message.content for message in asked.messages] for asked in engine.asked)
        assert first == ["Be brief.", "about sky", "sky"]
        assert second[:3] == first
        assert third == ["Be brief.", "sky", "blue", "about sea", "sea"]
        assert [content for _, content in said(speaker)] == ["Be brief.", "sky", "blue", "sea", "wet"]

    play(story())


@pytest.mark.req("2.8")
def test_an_exchange_goes_on_without_context_when_there_is_none_and_that_is_recorded() -> None:
    async def story() -> None:
        log = InMemoryEventLog()
        speaker = agent({"text": "blue"}, context_provider=Broken(), observer=log)
        response = await speaker.chat("sky")
        assert (response.terminal_code, response.content) == (Ending.SUCCESS, "blue")
        (context,) = [event.what for event in log.events() if event.action is Action.CONTEXT]
        assert isinstance(context, ContextEvent)
        assert context.error == "the context provider raised ConnectionError: the index is gone"

    play(story())


@pytest.mark.req("1.21", "2.5")
def test_an_observer_sees_context_model_and_tools_with_the_ids_of_the_exchange() -> None:
    async def story() -> None:
        log = InMemoryEventLog()
        speaker = agent(calls("look", at="sky"), {"text": "blue"}, tools=[look], context_provider=Shelf(), observer=log)
        response = await speaker.chat("sky")
        actions = [event.action.value for event in log.events() if event.action is not Action.LIFECYCLE]
        assert actions == ["context", "infer", "infer", "tool", "tool", "infer", "infer"]
        ids = {(event.what.correlation.request_id, event.what.correlation.session_id) for event in log.events()}
        assert ids == {(response.request_id, speaker.session_id)}

    play(story())


def test_an_agent_without_tools_can_call_none() -> None:
    async def story() -> None:
        engine = Listening(calls("look", at="sky"), {"text": "I cannot."})
        response = await agent(engine=engine).chat("Look")
        assert engine.asked[0].tools == ()
        assert [call.status for call in response.tool_calls_made] == [CallStatus.REFUSED]

    play(story())


def test_tools_may_come_as_a_registry_or_as_plain_functions() -> None:
    def plain(text: str) -> str:
        """Do who knows what."""
        return text

    assert agent({"text": ""}, tools=Registry([look])).config.tools.get("look") is look
    made = agent({"text": ""}, tools=[plain]).config.tools.get("plain")
    assert made is not None
    assert made.definition.effect.is_mutating


def test_a_goal_that_was_not_reached_is_no_success() -> None:
    async def story() -> None:
        goal = Goal("look first", required_actions=(RequiredAction("look"),))
        response = await agent({"text": "blue, I guess"}, tools=[look], goal=goal).chat("Colour?")
        assert response.terminal_code is not Ending.SUCCESS

    play(story())


def test_a_question_is_answered_through_the_agent_and_the_answer_joins_the_conversation() -> None:
    async def story() -> None:
        speaker = agent(calls("keep", text="x"), {"text": "kept"}, tools=[keep])
        waiting = (await speaker.chat("Keep x")).waiting_for
        assert waiting is not None
        assert said(speaker) == [("user", "Keep x")]
        with pytest.raises(RemitError) as busy:
            await speaker.chat("And y")
        assert busy.value.code == SESSION_BUSY
        response = await speaker.approve(waiting.packet_ids[0], by="ada", arguments={"text": "z"})
        assert (response.content, response.tool_calls_made[0].result) == ("kept", "kept z")
        assert said(speaker)[-1] == ("assistant", "kept")

    play(story())


def test_a_question_may_be_named_by_its_command_alone_and_rejected() -> None:
    async def story() -> None:
        speaker = agent(calls("keep", text="x"), {"text": "then not"}, tools=[keep])
        waiting = (await speaker.chat("Keep x")).waiting_for
        assert waiting is not None
        response = await speaker.reject(waiting.packet_ids[0].partition("/")[2], by="ada", reason="too late")
        assert (response.terminal_code, response.content) == (Ending.PERMISSION_DENIED, "then not")

    play(story())


def test_a_question_of_another_conversation_is_none_of_this_one() -> None:
    async def story() -> None:
        system = system_in_memory()
        speakers = [agent(calls("keep", text="x"), {"text": "kept"}, tools=[keep], system=system) for _ in range(2)]
        waiting = [(await speaker.chat("Keep x")).waiting_for for speaker in speakers]
        assert waiting[1] is not None
        with pytest.raises(RequestRejected) as refused:
            await speakers[0].approve(waiting[1].packet_ids[0], by="ada")
        assert refused.value.code == PACKET_UNKNOWN

    play(story())


def test_nothing_is_approved_or_cancelled_while_no_exchange_is_open() -> None:
    async def story() -> None:
        speaker = agent({"text": "hello"})
        await speaker.chat("Hello?")
        with pytest.raises(RequestRejected) as refused:
            await speaker.approve("1.2", by="ada")
        assert refused.value.code == PACKET_UNKNOWN
        with pytest.raises(RequestRejected) as refused:
            await speaker.cancel()
        assert refused.value.code == NOTHING_OPEN

    play(story())


def test_what_a_child_asks_is_answered_through_the_agent_of_its_parent() -> None:
    async def story() -> None:
        heard: list[str] = []
        speaker = agent(
            {"when": '"task"', **calls("keep", text="x")},
            {"when": "^kept x", "text": "safe"},
            calls("helper", task="keep"),
            {"text": "thanks"},
            tools=[keep, helper],
            on_tool_result=lambda name, output: heard.append(name),
        )
        waiting = (await speaker.chat("Keep x")).waiting_for
        assert waiting is not None
        assert (await speaker.approve(waiting.packet_ids[0], by="ada")).content == "thanks"
        assert heard == ["keep", "helper"]

    play(story())


@pytest.mark.req("2.20")
def test_an_exchange_is_cancelled_from_another_task() -> None:
    async def story() -> None:
        speaker = agent({"text": "late", "delay_ms": 20_000}, user_id="ada")
        exchange = asyncio.create_task(speaker.chat("Hello?"))

        async def is_open() -> bool:
            await speaker.open()
            return bool(speaker.messages)

        await until(is_open)
        await speaker.cancel(reason="enough")
        response = await exchange
        assert response.error is not None
        assert response.error.message == "cancelled by ada: enough"

    play(story())


@pytest.mark.req("2.20")
def test_a_caller_that_stops_waiting_for_an_exchange_ends_it() -> None:
    async def story() -> None:
        system = system_in_memory()
        speaker = agent({"text": "late", "delay_ms": 20_000}, system=system)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await speaker.chat("Hello?")
        await system.settle()
        (entry,) = await system.store.catalogue.entries()
        assert entry.ending == Ending.USER_CANCEL

    play(story())


@pytest.mark.req("2.10")
def test_what_a_session_keeps_is_there_for_the_next_agent_of_it(tmp_path: Path) -> None:
    async def story() -> None:
        engine = ScriptedEngine([{"text": "one"}, {"text": "two"}])
        async with AgentLoop(engine, home=tmp_path, session_id="s") as first:
            await first.session_state.set("language", {"name": "English"})
            assert first.session_state.get("language") == {"name": "English"}
            await first.chat("Hello?")
            await first.session_state.set("seen", [1, 2])
        async with AgentLoop(engine, home=tmp_path, session_id="s") as second:
            assert said(second) == [("user", "Hello?"), ("assistant", "one")]
            assert second.session_state.items() == {"language": {"name": "English"}, "seen": [1, 2]}
            assert (await second.chat("Again?")).content == "two"
            await second.session_state.set("seen", [])
        async with AgentLoop(engine, home=tmp_path, session_id="s") as third:
            assert third.session_state.get("seen") == []
            assert third.session_state.get("unheard of", "nothing") == "nothing"

    play(story())


@pytest.mark.req("2.10")
def test_a_session_may_note_something_while_an_exchange_goes_on() -> None:
    async def story() -> None:
        speaker = agent({"text": "hello", "delay_ms": 60})
        exchange = asyncio.create_task(speaker.chat("Hello?"))

        async def is_open() -> bool:
            await speaker.open()
            return bool(speaker.messages)

        await until(is_open)
        await speaker.session_state.set("mood", "good")
        await exchange
        await speaker.open()
        assert speaker.session_state.get("mood") == "good"

    play(story())


def test_values_that_are_handed_out_can_be_changed_without_changing_the_session() -> None:
    async def story() -> None:
        speaker = agent({"text": "hello"})
        await speaker.session_state.set("list", [1])
        speaker.session_state.get("list").append(2)
        speaker.session_state.items()["list"].append(3)
        assert speaker.session_state.get("list") == [1]

    play(story())


@pytest.mark.parametrize(("key", "value"), [("a", object()), ("a", float("nan")), ("", 1), ("a", "x" * 5000)])
def test_a_value_that_is_no_small_json_is_not_kept(key: str, value: object) -> None:
    async def story() -> None:
        speaker = agent({"text": "hello"})
        with pytest.raises(RequestRejected) as refused:
            await speaker.session_state.set(key, value)
        assert refused.value.code == SESSION_ENTRY_INVALID
        assert speaker.session_state.items() == {}

    play(story())


def test_entries_wait_for_the_first_exchange_that_is_let_in() -> None:
    async def story() -> None:
        system = system_in_memory()
        speaker = agent({"text": "hello"}, system=system)
        await speaker.session_state.set("mood", "good")
        with pytest.raises(RequestRejected):
            await speaker.chat("")
        response = await speaker.chat("Hello?")
        assert (await system.state_of(response.run_id)).session == {"mood": '"good"'}

    play(story())


def test_a_conversation_without_a_name_is_given_one() -> None:
    UUID(agent({"text": "hello"}).session_id)


def test_two_exchanges_at_once_are_one_too_many() -> None:
    async def story() -> None:
        speaker = agent({"text": "hello", "delay_ms": 50})
        outcomes = await asyncio.gather(speaker.chat("One?"), speaker.chat("Two?"), return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, RemitError)]
        assert [error.code for error in refused] == [SESSION_BUSY]
        assert said(speaker)[-1] == ("assistant", "hello")

    play(story())


def test_a_program_without_a_loop_chats_too_and_the_conversation_goes_on(tmp_path: Path) -> None:
    speaker = AgentLoop(ScriptedEngine([{"text": "one"}, {"text": "two"}]), home=tmp_path)
    assert speaker.chat_sync("First?").content == "one"
    assert speaker.chat_sync("Second?").content == "two"
    assert [content for _, content in said(speaker)] == ["First?", "one", "Second?", "two"]


def test_a_second_thread_is_refused_while_the_first_chats(tmp_path: Path) -> None:
    asked, go_on = threading.Event(), threading.Event()

    @tool(effect="read")
    def wait() -> str:
        """Wait for the other thread."""
        asked.set()
        assert go_on.wait(20)
        return "it was refused"

    speaker = AgentLoop(ScriptedEngine([calls("wait"), {"text": "done"}]), tools=[wait], home=tmp_path)
    answers: list[str] = []
    first = threading.Thread(target=lambda: answers.append(speaker.chat_sync("First?").content))
    first.start()
    assert asked.wait(20)
    with pytest.raises(RequestRejected) as refused:
        speaker.chat_sync("Second?")
    go_on.set()
    first.join(20)
    assert refused.value.code == AGENT_BUSY
    assert answers == ["done"]
    assert [content for _, content in said(speaker)] == ["First?", "done"]


def test_a_thread_is_refused_while_the_agent_is_open_in_a_loop(tmp_path: Path) -> None:
    async def story() -> None:
        async with AgentLoop(ScriptedEngine([{"text": "one"}, {"text": "two"}]), home=tmp_path) as speaker:
            with pytest.raises(RequestRejected) as refused:
                await asyncio.to_thread(speaker.chat_sync, "Hello?")
            assert refused.value.code == AGENT_BUSY
            assert (await speaker.chat("Hello?")).content == "one"
        assert (await asyncio.to_thread(speaker.chat_sync, "Again?")).content == "two"

    play(story())


@pytest.mark.parametrize("steps", range(6))
def test_an_exchange_that_nobody_waits_for_leaves_the_session_free(steps: int, tmp_path: Path) -> None:
    async def story() -> None:
        async with AgentLoop(ScriptedEngine([{"text": "hello"}]), home=tmp_path) as speaker:
            unwanted = asyncio.create_task(speaker.chat("Hello?"))
            for _ in range(steps):
                await asyncio.sleep(0)
            unwanted.cancel()
            with pytest.raises(asyncio.CancelledError):
                await unwanted
            assert (await speaker.chat("Hello again?")).content == "hello"

    play(story())


def test_entries_that_are_kept_at_once_are_all_kept(tmp_path: Path) -> None:
    async def story() -> None:
        async with AgentLoop(ScriptedEngine([{"text": "hello"}]), home=tmp_path) as speaker:
            await speaker.chat("Hello?")
            kept = speaker.session_state
            await asyncio.gather(*[kept.set(f"key{number}", number) for number in range(5)])
            await asyncio.gather(*[kept.set("last", number) for number in range(5)])
            expected = {f"key{number}": number for number in range(5)} | {"last": 4}
            assert kept.items() == expected
            await speaker.open()
            assert kept.items() == expected

    play(story())


def test_an_agent_follows_its_program_from_loop_to_loop(tmp_path: Path) -> None:
    speaker = AgentLoop(ScriptedEngine([{"text": "one"}, {"text": "two"}]), home=tmp_path)
    assert asyncio.run(speaker.chat("First?")).content == "one"
    assert asyncio.run(speaker.chat("Second?")).content == "two"
    asyncio.run(speaker.close())


def test_chat_sync_inside_a_running_loop_is_refused_with_the_way_out() -> None:
    async def story() -> None:
        with pytest.raises(RequestRejected) as refused:
            agent({"text": "hello"}).chat_sync("Hello?")
        assert refused.value.code == LOOP_RUNNING
        assert "await chat()" in refused.value.message

    play(story())


def test_without_a_system_or_a_home_the_store_is_the_one_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "kept here"))
    AgentLoop(ScriptedEngine([{"text": "hello"}])).chat_sync("Hello?")
    assert (tmp_path / "kept here").is_dir()


def test_a_system_that_was_given_stays_open_when_the_agent_leaves() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with systems(store) as (system,):
            assert isinstance(system, System)
            async with agent({"text": "hello"}, system=system) as speaker:
                await speaker.chat("Hello?")
            assert (await agent({"text": "again"}, system=system).chat("Hello?")).content == "again"

    play(story())


def test_a_question_is_answered_by_a_new_agent_after_the_first_has_left(tmp_path: Path) -> None:
    async def story() -> None:
        engine = ScriptedEngine([calls("keep", text="x"), {"text": "kept"}])
        async with AgentLoop(engine, tools=[keep], home=tmp_path, session_id="s") as first:
            waiting = (await first.chat("Keep x")).waiting_for
        assert waiting is not None
        heard: list[str] = []
        second = AgentLoop(
            engine, tools=[keep], home=tmp_path, session_id="s", on_tool_result=lambda name, out: heard.append(out)
        )
        async with second:
            assert (await second.approve(waiting.packet_ids[0], by="ada")).content == "kept"
        assert heard == ["kept x"]

    play(story())


def test_an_exchange_that_another_process_finished_is_read_from_the_store(tmp_path: Path) -> None:
    async def story() -> None:
        engine = ScriptedEngine([calls("keep", text="x"), {"text": "kept"}])
        stores = [store_of("embedded", tmp_path) for _ in range(2)]
        async with systems(*stores) as (here, there):
            first, second = (
                agent(engine=engine, tools=[keep], system=system, session_id="s") for system in (here, there)
            )
            waiting = (await first.chat("Keep x")).waiting_for
            assert waiting is not None
            await second.approve(waiting.packet_ids[0], by="ada")
            await first.open()
            assert said(first) == [("user", "Keep x"), ("assistant", "kept")]

    play(story())


def test_two_who_answer_an_agent_at_once_leave_the_call_of_the_first_to_its_end(tmp_path: Path) -> None:
    async def story() -> None:
        kept: list[str] = []

        @tool(effect="write")
        async def put(text: str) -> Said:
            """Put a text somewhere."""
            await asyncio.sleep(0.05)
            kept.append(text)
            return "put"

        async with agent(calls("put", text="x"), {"text": "done"}, tools=[put], home=tmp_path) as speaker:
            asked = await speaker.chat("Put it there.")
            assert asked.waiting_for is not None
            (packet,) = asked.waiting_for.packet_ids
            first, second = await asyncio.gather(
                speaker.approve(packet, by="ada"), speaker.approve(packet, by="bob"), return_exceptions=True
            )
            assert (getattr(first, "terminal_code", None), kept) == (Ending.SUCCESS, ["x"])
            assert getattr(second, "code", "") == "QUESTION_SETTLED"
            # So it is told once the exchange is over.
            with pytest.raises(RequestRejected) as refused:
                await speaker.approve(packet, by="bob")
            assert (refused.value.code, "approved by ada" in refused.value.message) == ("QUESTION_SETTLED", True)
            with pytest.raises(RequestRejected) as refused:
                await speaker.approve(f"{asked.run_id}/9.9", by="bob")
            assert refused.value.code == "PACKET_UNKNOWN"

    play(story())


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ({"budget": None}, MANIFEST_INVALID),
        ({"budget": Budget(steps="x")}, MANIFEST_INVALID),  # type: ignore[arg-type]  # as a caller without types may
        ({"budget": Budget(steps=True)}, MANIFEST_INVALID),
        ({"boundary": Boundary(budget=Budget(steps=1.5))}, MANIFEST_INVALID),  # type: ignore[arg-type]
        ({"boundary": ["standard"]}, BOUNDARY_UNKNOWN),
        ({"router": 3}, ROUTER_UNKNOWN),
        ({"router": None}, ROUTER_UNKNOWN),
        ({"tools": 3}, REQUEST_TOOLS_INVALID),
        ({"tools": "look"}, REQUEST_TOOLS_INVALID),
        ({"grammar": 3}, REQUEST_OUTPUT_INVALID),
        ({"rules": 3}, RULES_INVALID),
        ({"rules": "desk.yaml"}, RULES_INVALID),
        ({"home": 3}, HOME_INVALID),
    ],
)
def test_a_setting_of_another_kind_is_refused_when_the_agent_is_made(setting: dict[str, Any], code: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        AgentLoop(ScriptedEngine([{"text": "hello"}]), **setting)
    assert refused.value.code == code


def test_when_money_runs_short_the_cheaper_engine_is_asked() -> None:
    dear = Priced("dear", 1_000_000_000)
    cheap = Priced("cheap", 0)
    frugal = replace(STANDARD, name="frugal", exhaustion=(("inference_cost_microusd", Exhaustion.DOWNGRADE),))
    budget = Budget(inference_cost_microusd=1_000)
    agent = AgentLoop(dear, boundary=frugal, budget=budget, downgrade=cheap, system=system_in_memory())
    assert agent.chat_sync("hello").content == "from cheap"


class Priced:
    """An engine whose words cost so much."""

    def __init__(self, name: str, microusd_per_mtok: int) -> None:
        self._info = ModelInfo(name, 100_000, Price(microusd_per_mtok, microusd_per_mtok))

    def model_info(self) -> ModelInfo:
        return self._info

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        return ModelResult(f"from {self._info.name}")
