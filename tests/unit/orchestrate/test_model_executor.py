"""Asking a model: the request is the run's, every outcome is a report, and streams never break a run."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.journal.arrivals import ContextFound, ModelAnswered, ModelFailed
from remit.core.journal.commands import CallModel, Command, Retrieve
from remit.core.limits.tools import ToolCall, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import BlobRef, Text, digest_of, replace
from remit.core.run.contract import ExecutionHints, OutputContract, SystemRequest
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult, Routing
from remit.core.run.manifest import Manifest
from remit.core.run.messages import Role, assistant_message, system_message, tool_message, user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import EXITS, TERMINALS, Ask, Edge, Graph, Node, NodeKind
from remit.inference.chain import ChainEngine
from remit.inference.engine import EngineFault, Restarted, StreamChunk, StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import RunState
from remit.orchestrate.bus import bus
from remit.orchestrate.bus.bus import Bus, OnChunk
from remit.orchestrate.exchange.call_shape import TOOLS_OFFERED_MAX
from remit.orchestrate.executors import model
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import ModelSaid, Report
from remit.orchestrate.loop.live import Live
from remit.orchestrate.setup.kit import Kit
from remit.rerank import router as router_module
from remit.rerank.router import Router, Scored
from tests.simulation.scenarios import MODEL, TOOLS
from tests.unit.kernel.builders import Run, manifest_of, wants
from tests.unit.orchestrate.stage import Stage, ok, play

LONG = "long " * 1000
ANSWER = ModelResult("hi", usage=TokenUsage(1, 0, 1))


class Recorder:
    """An engine that notes what it is asked and does what it was told."""

    def __init__(
        self, act: Callable[[StreamHandler | None], Awaitable[Any]] | None = None, info: ModelInfo = MODEL
    ) -> None:
        self.asked: list[ModelRequest] = []
        self._act = act
        self._info = info

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        self.asked.append(request)
        return ANSWER if self._act is None else await self._act(on_chunk)

    def model_info(self) -> ModelInfo:
        return self._info


class Library:
    """Gives texts by digest, and counts how often."""

    def __init__(self, *texts: str) -> None:
        self._texts = {digest_of(text.encode()): text for text in texts}
        self.fetched = 0

    async def text(self, text: Text) -> str:
        if isinstance(text, str):
            return text
        self.fetched += 1
        await asyncio.sleep(0)
        return self._texts[text.digest]


def reference(text: str) -> BlobRef:
    return BlobRef(digest_of(text.encode()), len(text))


def live_of(state: RunState) -> Live:
    return Live("run", state)


def call_of(run: Run) -> CallModel:
    return run.open(CallModel)[0]


def executor(
    engine: Any, *, on_chunk: OnChunk | None = None, library: Library | None = None
) -> Callable[[Live, Command], Coroutine[Any, Any, Report]]:
    kit = Kit({MODEL.name: engine})
    return Performers(bench_of(on_chunk, library)).carrier(lambda run_id: kit)


def bench_of(on_chunk: OnChunk | None, library: Library | None = None) -> ProcessResources:
    heard = Bus(MemoryStore())
    heard.listen(bus.Listener(on_chunk=on_chunk))
    return ProcessResources((library or Library()).text, bus=heard)


def performed(engine: Any, run: Run | None = None, *, on_chunk: OnChunk | None = None, **changes: Any) -> Report:
    run = run or Run()
    command = replace(call_of(run), **changes)
    return play(executor(engine, on_chunk=on_chunk)(live_of(run.state), command))


def failure(report: Report) -> ModelFailed:
    assert isinstance(report, ModelFailed)
    return report


def requested(run: Run, library: Library | None = None) -> ModelRequest:
    engine = Recorder()
    play(executor(engine, library=library)(live_of(run.state), call_of(run)))
    return engine.asked[0]


# What is asked.


def test_what_the_engine_says_is_reported() -> None:
    run = Run()
    assert performed(Recorder(), run) == ModelSaid(call_of(run).id, ANSWER)


@pytest.mark.req("0.10")
def test_the_wishes_of_the_request_reach_the_engine_unchanged() -> None:
    hints = ExecutionHints(max_tokens=77, temperature=0.0, top_p=0.5, options={"seed": 7, "deep": {"a": [1]}})
    output = OutputContract(schema={"type": "object"}, grammar='root ::= "hi"')
    asked = requested(Run(manifest_of(request=SystemRequest((user_message("go"),), hints=hints, output=output))))
    assert (asked.max_tokens, asked.temperature, asked.top_p) == (77, 0.0, 0.5)
    assert asked.options == {"seed": 7, "deep": {"a": [1]}}
    assert (asked.schema, asked.grammar) == ({"type": "object"}, 'root ::= "hi"')


@pytest.mark.req("0.10")
def test_what_nobody_wished_is_left_to_the_engine() -> None:
    asked = requested(Run())
    assert (asked.temperature, asked.top_p, asked.schema, asked.grammar, asked.options) == (None, 0.0, None, "", {})
    assert asked.attempt == 1


def test_the_attempt_of_the_command_is_told() -> None:
    engine = Recorder()
    performed(engine, attempt=3)
    assert engine.asked[0].attempt == 3


@pytest.mark.req("0.3")
def test_the_tools_the_run_may_call_are_offered_and_no_others() -> None:
    def offered(request: SystemRequest) -> list[str]:
        return [tool.name for tool in requested(Run(manifest_of(request=request))).tools]

    go = (user_message("go"),)
    assert offered(SystemRequest(go)) == [tool.name for tool in manifest_of().tools]
    assert offered(SystemRequest(go, tools=("look",))) == ["look"]
    assert offered(SystemRequest(go, tool_choice=ToolChoice(ToolChoiceMode.NONE))) == []
    choice = ToolChoice(ToolChoiceMode.FUNCTION, "look")
    run = Run(manifest_of(request=SystemRequest(go, tool_choice=choice)))
    assert ([tool.name for tool in requested(run).tools], requested(run).tool_choice) == (["look"], choice)


def test_the_model_is_shown_the_messages_of_the_run() -> None:
    run = Run()
    run.proposes(wants("look"), text="let me see")
    run.returns()
    assert requested(run).messages == (
        user_message("please"),
        assistant_message("let me see", (ToolCall("call", "look", {"n": 1}),)),
        tool_message("call", "look", '{"ok": true}'),
    )


def test_the_model_is_shown_only_what_was_there_when_it_was_asked() -> None:
    run, engine = Run(), Recorder()
    run.proposes(wants("look"))
    run.returns()
    play(executor(engine)(live_of(run.state), replace(call_of(run), messages_count=1)))
    assert engine.asked[0].messages == (user_message("please"),)


def test_evidence_is_shown_beside_the_messages_that_are_counted() -> None:
    request = SystemRequest((system_message("be brief"), user_message("first"), user_message("last")))
    run = Run(manifest_of(request=request, retrieves_context=True))
    run.take(ContextFound(run.open(Retrieve)[0].id, reference(LONG), 20))
    asked = requested(run, Library(LONG))
    assert [message.content for message in asked.messages] == ["be brief", "first", LONG, "last"]
    assert asked.messages[2].role is Role.SYSTEM


def test_evidence_that_comes_late_finds_its_place_and_fetches_nothing_twice() -> None:
    async def scene() -> None:
        request = SystemRequest((user_message(reference(LONG)), user_message("last")))
        run, library = Run(manifest_of(request=request)), Library(LONG, "e" * 2000)
        live, engine = live_of(run.state), Recorder()
        perform = executor(engine, library=library)
        await perform(live, call_of(run))
        run.state.talk.ephemeral = reference("e" * 2000)
        await perform(live, call_of(run))
        assert [message.content for message in engine.asked[1].messages] == [LONG, "e" * 2000, "last"]
        run.state.talk.ephemeral = ""
        await perform(live, call_of(run))
        assert engine.asked[2].messages == engine.asked[0].messages
        assert library.fetched == 2

    play(scene())


def test_texts_and_arguments_that_live_in_blobs_are_shown_in_full() -> None:
    arguments = '{"n":1,"text":"' + "x" * 2000 + '"}'
    run = Run()
    long_call = replace(wants("look"), arguments=reference(arguments))
    run.proposes(long_call, wants("look", 2, call_id="short"), text="see")
    run.returns()
    run.returns()
    run.state.talk.context[1] = replace(run.state.talk.context[1], text=reference(LONG), reasoning=reference(LONG))
    said = requested(run, Library(LONG, arguments)).messages[1]
    assert (said.content, said.reasoning) == (LONG, LONG)
    assert [call.arguments for call in said.tool_calls] == [{"n": 1, "text": "x" * 2000}, {"n": 2}]
    assert [call.id for call in said.tool_calls] == ["call", "short"]


def test_a_text_is_fetched_once_and_messages_are_kept_by_reference() -> None:
    async def scene() -> None:
        run, library, engine = Run(), Library(LONG), Recorder()
        run.state.talk.context[0] = user_message(reference(LONG))
        live = live_of(run.state)
        perform = executor(engine, library=library)
        for n in range(4):
            await perform(live, call_of(run))
            run.proposes(wants("look", n))
            run.returns()
        assert library.fetched == 1
        first, last = engine.asked[0], engine.asked[-1]
        assert all(old is new for old, new in zip(first.messages, last.messages, strict=False))
        assert first.tools is last.tools
        assert len(last.messages) == 7

    play(scene())


# What becomes of it.


def test_a_model_without_an_engine_is_a_matter_of_configuration() -> None:
    report = failure(performed(Recorder(), model="another"))
    assert (report.code, report.was_cut) == (ErrorCode.CONFIG_NO_ENGINE, False)
    assert "'another'" in report.message
    assert MODEL.name in report.message


def test_a_model_that_the_manifest_does_not_know_speaks_for_itself() -> None:
    run, engine = Run(), Recorder()
    kit = Kit({"another": engine})
    perform = Performers(ProcessResources(Library().text)).carrier(lambda run_id: kit)
    assert isinstance(play(perform(live_of(run.state), replace(call_of(run), model="another"))), ModelSaid)


def test_a_fault_is_reported_with_its_code_and_its_cost() -> None:
    async def act(on_chunk: StreamHandler | None) -> None:
        raise EngineFault(ErrorCode.INFERENCE_CONTEXT_EXCEEDED, "too long", usage=TokenUsage(5), was_cut=True)

    report = failure(performed(Recorder(act)))
    assert (report.code, report.message) == (ErrorCode.INFERENCE_CONTEXT_EXCEEDED, "too long")
    assert (report.usage, report.was_cut) == (TokenUsage(5), True)


def test_an_engine_that_takes_too_long_is_cut_and_has_ended() -> None:
    ended = []

    async def act(on_chunk: StreamHandler | None) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    report = failure(performed(Recorder(act), timeout_ms=5))
    assert (report.code, report.was_cut, ended) == (ErrorCode.INFERENCE_ENGINE_ERROR, True, [True])
    assert "timeout_ms=5" in report.message


def test_a_timeout_of_the_engines_own_is_an_error_of_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    async def act(on_chunk: StreamHandler | None) -> None:
        raise TimeoutError("connect to secret-host")

    report = failure(performed(Recorder(act)))
    assert (report.code, "TimeoutError" in report.message) == (ErrorCode.INFERENCE_ENGINE_ERROR, True)


def test_the_words_of_an_unexpected_error_are_logged_and_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def act(on_chunk: StreamHandler | None) -> None:
        raise RuntimeError("key=secret")

    report = failure(performed(Recorder(act)))
    assert report.code is ErrorCode.INFERENCE_ENGINE_ERROR
    assert report.was_cut
    assert "RuntimeError" in report.message
    assert "secret" not in report.message
    assert "key=secret" in caplog.text
    assert [getattr(record, "run_id", "") for record in caplog.records] == ["run"]


@pytest.mark.parametrize("said", [None, "hi", {"content": "hi"}])
def test_an_engine_that_returns_something_else_is_malformed(said: Any) -> None:
    async def act(on_chunk: StreamHandler | None) -> Any:
        return said

    report = failure(performed(Recorder(act)))
    assert (report.code, report.was_cut) == (ErrorCode.INFERENCE_MALFORMED_RESPONSE, True)
    assert type(said).__name__ in report.message


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


def _endless() -> Any:
    value: dict[str, Any] = {}
    value["a"] = value
    return value


@pytest.mark.parametrize("field", ["arguments", "metadata"])
@pytest.mark.parametrize("value", [_nested(200), _nested(5_000), _endless()], ids=["200", "5000", "endless"])
def test_a_call_that_nests_without_end_is_malformed(field: str, value: Any) -> None:
    async def act(on_chunk: StreamHandler | None) -> ModelResult:
        given: dict[str, Any] = {field: {"x": value}}
        return ModelResult(tool_calls=(ToolCall("c", "look", **given),), usage=TokenUsage(7, 0, 3))

    report = failure(performed(Recorder(act)))
    assert (report.code, report.usage) == (ErrorCode.INFERENCE_MALFORMED_RESPONSE, TokenUsage(7, 0, 3))
    assert "'look' with values nested deeper than depth_max=128" in report.message


def test_an_engine_need_not_be_a_coroutine_nor_take_a_handler() -> None:
    class Named:
        def model_info(self) -> ModelInfo:
            return ModelInfo("of ours", 8_000)

    class Blocking(Named):
        def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> Any:
            return ANSWER

    class Plain(Named):
        def infer(self, request: ModelRequest) -> Any:
            return ANSWER

    reports = [performed(Blocking()), performed(Plain())]
    assert [report.result for report in reports if isinstance(report, ModelSaid)] == [ANSWER, ANSWER]


@pytest.mark.req("0.31")
def test_an_answer_that_ended_in_an_error_is_a_failure_with_its_cost() -> None:
    async def act(on_chunk: StreamHandler | None) -> ModelResult:
        return ModelResult("half", usage=TokenUsage(9, 0, 2), finish_reason=FinishReason.ERROR)

    report = failure(performed(Recorder(act)))
    assert (report.code, report.usage, report.was_cut) == (ErrorCode.INFERENCE_ENGINE_ERROR, TokenUsage(9, 0, 2), False)


def test_a_cancelled_call_cancels_the_engine() -> None:
    async def scene() -> list[str]:
        heard = []

        async def act(on_chunk: StreamHandler | None) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                heard.append("stopped")
                raise EngineFault(ErrorCode.INFERENCE_ENGINE_ERROR, "stopped", was_cut=True) from None

        run = Run()
        task = asyncio.ensure_future(executor(Recorder(act))(live_of(run.state), call_of(run)))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return heard

    assert play(scene()) == ["stopped"]


# What is heard meanwhile.


class Listener:
    """Hears what is streamed, and breaks at the word it is given."""

    def __init__(self, breaks_at: str = "") -> None:
        self.heard: list[tuple[str, str]] = []
        self._breaks_at = breaks_at

    def __call__(self, run_id: str, chunk: StreamChunk | Restarted) -> None:
        text = chunk.text if isinstance(chunk, StreamChunk) else "<restarted>"
        if text == self._breaks_at:
            raise RuntimeError("the terminal is gone")
        self.heard.append((run_id, text))


async def speaks(on_chunk: StreamHandler | None) -> ModelResult:
    if on_chunk is not None:
        for text in ("a", "b", "c"):
            on_chunk(StreamChunk(text))
    return replace(ANSWER, content="abc")


def test_what_is_streamed_reaches_the_listener_with_the_run_it_is_said_in() -> None:
    listener = Listener()
    performed(Recorder(speaks), on_chunk=listener)
    assert listener.heard == [("run", "a"), ("run", "b"), ("run", "c")]


def test_nothing_is_streamed_when_nobody_listens() -> None:
    seen: list[StreamHandler | None] = []

    async def act(on_chunk: StreamHandler | None) -> ModelResult:
        seen.append(on_chunk)
        return ANSWER

    performed(Recorder(act))
    assert seen == [None]


def test_a_listener_that_breaks_loses_the_rest_and_the_run_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    listener = Listener(breaks_at="b")
    report = performed(Recorder(speaks), on_chunk=listener)
    assert isinstance(report, ModelSaid)
    assert report.result.content == "abc"
    assert listener.heard == [("run", "a")]
    assert caplog.text.count("a listener broke") == 1


def test_a_listener_that_broke_is_tried_again_with_the_next_call(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> list[tuple[str, str]]:
        listener, run = Listener(breaks_at="b"), Run()
        perform = executor(Recorder(speaks), on_chunk=listener)
        await perform(live_of(run.state), call_of(run))
        await perform(live_of(run.state), replace(call_of(run), id="9.0"))
        return listener.heard

    assert play(scene()) == [("run", "a"), ("run", "a")]


def test_another_attempt_says_that_what_was_streamed_is_void() -> None:
    listener = Listener()
    performed(Recorder(speaks), on_chunk=listener, attempt=2)
    assert [text for _, text in listener.heard] == ["<restarted>", "a", "b", "c"]


def test_a_call_that_is_performed_again_says_so_even_to_a_run_that_was_loaded_anew() -> None:
    async def scene() -> list[str]:
        listener, run = Listener(), Run()
        perform = executor(Recorder(speaks), on_chunk=listener)
        for _ in range(2):
            await perform(live_of(run.state), call_of(run))
        return [text for _, text in listener.heard]

    assert play(scene()) == ["a", "b", "c", "<restarted>", "a", "b", "c"]


def test_the_next_call_of_a_run_restarts_nothing() -> None:
    async def scene() -> list[str]:
        listener, run = Listener(), Run()
        perform = executor(Recorder(speaks), on_chunk=listener)
        await perform(live_of(run.state), call_of(run))
        await perform(live_of(run.state), replace(call_of(run), id="9.0"))
        return [text for _, text in listener.heard]

    assert play(scene()) == ["a", "b", "c"] * 2


def test_only_so_many_streams_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "STREAMS_REMEMBERED_MAX", 2)

    async def scene() -> list[str]:
        listener, run = Listener(), Run()
        perform = executor(Recorder(), on_chunk=listener)
        for run_id in ("a", "b", "a", "c", "a", "b"):
            await perform(Live(run_id, run.state), call_of(run))
        return [run_id for run_id, _ in listener.heard]

    # By the time it is asked again, `b` is the one that had been silent longest.
    assert play(scene()) == ["a", "a"]


def test_a_listener_that_breaks_at_the_restart_breaks_no_run(caplog: pytest.LogCaptureFixture) -> None:
    listener = Listener(breaks_at="<restarted>")
    assert isinstance(performed(Recorder(speaks), on_chunk=listener, attempt=2), ModelSaid)
    assert listener.heard == []


# What it is made to suit.


class Fixed:
    """A router that always wants the same tools."""

    def __init__(self, *tools: str) -> None:
        self._scored = tuple(Scored(tool, 1.0) for tool in tools)
        self.asked: list[str] = []

    def shortlist(self, words: str, tools: Sequence[ToolDefinition]) -> Sequence[Scored]:
        self.asked.append(words)
        return self._scored

    def ranked(self, words: str, tools: Sequence[ToolDefinition]) -> Sequence[Scored]:
        self.asked.append(words)
        return self._scored


SMALL = replace(MODEL, calls_by_grammar=True)


def saying(text: str, *, usage: TokenUsage = ANSWER.usage) -> Recorder:
    async def act(on_chunk: StreamHandler | None) -> ModelResult:
        if on_chunk is not None:
            for piece in (" ", text[:1], text[1:]):
                on_chunk(StreamChunk(piece))
        return ModelResult(text, usage=usage)

    return Recorder(act)


def routed(
    engine: Any,
    manifest: Manifest,
    *,
    router: Router | None = None,
    on_chunk: OnChunk | None = None,
) -> Report:
    kit = Kit({MODEL.name: engine}, router=router)
    run = Run(manifest)
    return play(Performers(bench_of(on_chunk)).carrier(lambda run_id: kit)(live_of(run.state), call_of(run)))


def test_a_call_by_grammar_is_reported_as_a_call_and_says_what_was_offered() -> None:
    engine, listener = saying('{"tool":"look","arguments":{"n":1}}'), Listener()
    report = routed(engine, manifest_of(model=SMALL), router=Fixed("look"), on_chunk=listener)
    assert isinstance(report, ModelSaid)
    assert report.result.tool_calls == (ToolCall("call-2", "look", {"n": 1}),)
    assert (report.result.content, report.result.finish_reason) == ("", FinishReason.TOOL)
    assert report.offered == ("look",)
    assert engine.asked[0].tools == ()
    assert engine.asked[0].grammar.startswith("%llguidance")
    assert listener.heard == []


def test_a_call_that_does_not_fit_is_a_failure_with_a_code_and_its_cost() -> None:
    usage = TokenUsage(7, 0, 3)
    report = failure(routed(saying('{"tool":"look"', usage=usage), manifest_of(model=SMALL), router=Fixed("look")))
    assert (report.code, report.usage, report.was_cut) == (ErrorCode.CONSTRAINT_JSON_INVALID, usage, False)


@pytest.mark.parametrize(
    ("text", "heard"), [("In words.", [" I", "n words."]), ('{"tool":"look","arguments":{"n":1}}', []), ("", [])]
)
def test_where_words_are_allowed_they_are_streamed_and_calls_are_not(text: str, heard: list[str]) -> None:
    listener = Listener()
    manifest = replace(manifest_of(model=SMALL), router=Routing.NONE)
    report = routed(saying(text), manifest, router=Fixed("look"), on_chunk=listener)
    assert isinstance(report, ModelSaid)
    assert ([piece for _, piece in listener.heard], report.offered) == (heard, ())


@pytest.mark.parametrize("text", ['<tool_call>{"name":"look","arguments":{"n":1}}</tool_call>', "<tool"])
def test_a_call_in_a_notation_of_the_models_own_is_heard_by_nobody(text: str) -> None:
    listener = Listener()
    manifest = replace(manifest_of(model=SMALL), router=Routing.NONE)
    report = routed(saying(text), manifest, on_chunk=listener)
    assert isinstance(report, ModelSaid)
    assert bool(report.result.tool_calls) is (text != "<tool")
    assert listener.heard == []


# Chains.


async def cannot_serve(on_chunk: StreamHandler | None) -> ModelResult:
    raise EngineFault(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "not there")


SERVED, ON_DISK = ModelInfo("served", 1000), ModelInfo("disk", 1000, calls_by_grammar=True)


def chained(*members: Recorder, on_chunk: OnChunk | None = None) -> Report:
    chain = ChainEngine(members)
    run = Run(manifest_of(model=replace(MODEL, calls_by_grammar=True)))
    kit = Kit({MODEL.name: chain}, router=Fixed("look"))
    return play(Performers(bench_of(on_chunk)).carrier(lambda run_id: kit)(live_of(run.state), call_of(run)))


def speaking(text: str) -> Callable[[StreamHandler | None], Awaitable[ModelResult]]:
    async def act(on_chunk: StreamHandler | None) -> ModelResult:
        if on_chunk is not None:
            on_chunk(StreamChunk(text))
        return ModelResult(text, usage=ANSWER.usage)

    return act


def test_of_a_chain_a_model_with_tools_is_offered_them_and_one_without_is_held_to_a_grammar() -> None:
    served = Recorder(cannot_serve, SERVED)
    local = Recorder(speaking('{"tool":"look","arguments":{"n":1}}'), ON_DISK)
    listener = Listener()
    report = chained(served, local, on_chunk=listener)
    assert isinstance(report, ModelSaid)
    assert ([tool.name for tool in served.asked[0].tools], served.asked[0].grammar) == (
        [tool.name for tool in TOOLS],
        "",
    )
    assert (local.asked[0].tools, local.asked[0].grammar.startswith("%llguidance")) == ((), True)
    assert report.result.tool_calls == (ToolCall("call-2", "look", {"n": 1}),)
    assert (report.result.model, report.offered, listener.heard) == ("disk", ("look",), [])


def test_of_a_chain_the_answer_is_read_in_the_way_in_which_its_member_was_asked() -> None:
    listener = Listener()
    local, served = Recorder(cannot_serve, ON_DISK), Recorder(speaking("in words"), SERVED)
    report = chained(local, served, on_chunk=listener)
    assert isinstance(report, ModelSaid)
    # Held to a grammar, words would have been a failure.
    assert (report.result.content, report.result.model) == ("in words", "served")
    assert (report.offered, [piece for _, piece in listener.heard]) == ((), ["in words"])


def test_of_two_members_that_are_both_heard_the_stream_begins_once() -> None:
    listener = Listener()
    chained(Recorder(cannot_serve, SERVED), Recorder(speaking("hi"), replace(SERVED, name="b")), on_chunk=listener)
    assert [piece for _, piece in listener.heard] == ["hi"]


def test_a_chain_within_a_chain_is_asked_member_by_member() -> None:
    inner = ChainEngine(
        [Recorder(cannot_serve, SERVED), Recorder(speaking('{"tool":"look","arguments":{"n":2}}'), ON_DISK)]
    )
    report = routed(ChainEngine([Recorder(cannot_serve, SERVED), inner]), manifest_of(), router=Fixed("look"))
    assert isinstance(report, ModelSaid)
    assert (report.result.model, report.result.tool_calls[0].arguments) == ("disk", {"n": 2})


def test_what_an_engine_raises_is_its_own_fault_even_where_shaping_would_refuse() -> None:
    async def act(on_chunk: StreamHandler | None) -> ModelResult:
        raise RequestRejected("OF_ITS_OWN", "no")

    report = failure(performed(Recorder(act)))
    assert (report.code, report.was_cut) == (ErrorCode.INFERENCE_ENGINE_ERROR, True)
    assert "raised RequestRejected" in report.message


def test_a_request_that_cannot_be_made_for_want_of_its_texts_is_no_fault_of_the_engine() -> None:
    engine = Recorder()
    request = SystemRequest((user_message(reference(LONG)),))
    with pytest.raises(KeyError):
        performed(engine, Run(manifest_of(request=request)))
    assert engine.asked == []


def test_a_model_that_wants_nothing_is_heard_as_it_speaks() -> None:
    listener = Listener()
    report = routed(saying("hello"), manifest_of(model=SMALL), router=Fixed(), on_chunk=listener)
    assert isinstance(report, ModelSaid)
    assert [piece for _, piece in listener.heard] == [" ", "h", "ello"]


def grammatical(grammar: str) -> Manifest:
    return manifest_of(request=SystemRequest((user_message("go"),), output=OutputContract(grammar=grammar)))


def test_an_answer_that_breaks_its_grammar_is_reported_with_what_is_wrong_where_it_is_checked_next() -> None:
    usage = TokenUsage(7, 0, 3)
    report = routed(saying("maybe", usage=usage), grammatical('root ::= "yes" | "no"'))
    assert isinstance(report, ModelSaid)
    assert (report.result.content, report.result.usage) == ("maybe", usage)
    assert [violation.keyword for violation in report.violations] == ["grammar"]
    fitting = routed(saying("yes"), grammatical('root ::= "yes" | "no"'))
    assert isinstance(fitting, ModelSaid)
    assert fitting.violations == ()


def unchecked(ask: Ask) -> Manifest:
    nodes = (Node("think", NodeKind.MODEL, ask=ask), *TERMINALS)
    return manifest_of(graph=Graph("unchecked", "think", nodes, (Edge("think", "done"),), EXITS))


def test_an_answer_that_breaks_its_grammar_is_a_failure_with_its_cost_where_nobody_checks_it() -> None:
    usage = TokenUsage(7, 0, 3)
    report = failure(routed(saying("maybe", usage=usage), unchecked(Ask(grammar='root ::= "yes" | "no"'))))
    assert (report.code, report.usage) == (ErrorCode.CONSTRAINT_GRAMMAR_REJECTED, usage)
    assert "'m' at character 0" in report.message


async def is_cut(on_chunk: StreamHandler | None) -> ModelResult:
    raise EngineFault(ErrorCode.INFERENCE_MALFORMED_RESPONSE, "cut", usage=TokenUsage(7, 0, 3), said='{"a')


def test_an_answer_that_was_cut_is_reported_as_far_as_it_goes_where_it_is_checked_next() -> None:
    report = routed(Recorder(is_cut), manifest_of())
    assert isinstance(report, ModelSaid)
    assert (report.result.content, report.result.usage, report.result.model) == ('{"a', TokenUsage(7, 0, 3), MODEL.name)
    assert [violation.keyword for violation in report.violations] == ["length"]
    failed = failure(routed(Recorder(is_cut), unchecked(Ask())))
    assert (failed.code, failed.usage) == (ErrorCode.INFERENCE_MALFORMED_RESPONSE, TokenUsage(7, 0, 3))


def test_a_pause_that_a_server_asks_for_is_reported() -> None:
    async def busy(on_chunk: StreamHandler | None) -> ModelResult:
        raise EngineFault(ErrorCode.INFERENCE_ENGINE_ERROR, "busy", retry_after_s=2)

    assert failure(performed(Recorder(busy))).retry_after_ms == 2000


def test_a_grammar_that_is_none_reaches_no_engine() -> None:
    engine = saying("yes")
    report = failure(routed(engine, grammatical("root ::= x")))
    assert (report.code, engine.asked) == (ErrorCode.CONSTRAINT_GRAMMAR_REJECTED, [])
    assert "line 1, column 10" in report.message


def many_tools() -> tuple[ToolDefinition, ...]:
    schema = {"type": "object"}
    crowd = [ToolDefinition(f"report_{n}", f"Write report number {n}.", schema) for n in range(60)]
    return (*crowd, ToolDefinition("clock", "Tell the current date and time.", schema))


TIME = SystemRequest((user_message("What time is it?"),))


def test_of_a_large_registry_an_engine_with_tools_is_offered_the_best() -> None:
    engine = Recorder()
    report = routed(engine, manifest_of(request=TIME, tools=many_tools()))
    assert isinstance(report, ModelSaid)
    assert len(engine.asked[0].tools) == TOOLS_OFFERED_MAX
    assert "clock" in report.offered
    assert report.offered == tuple(tool.name for tool in engine.asked[0].tools)


def test_a_small_registry_needs_no_router() -> None:
    router, engine = Fixed("look"), Recorder()
    report = routed(engine, manifest_of(), router=router)
    assert isinstance(report, ModelSaid)
    assert (router.asked, report.offered) == ([], ())


@pytest.mark.parametrize("routing", [Routing.AUTO, Routing.EMBEDDING])
def test_the_router_of_the_house_chooses_for_a_small_model(routing: Routing) -> None:
    engine = saying('{"tool":"clock","arguments":{}}')
    report = routed(engine, replace(manifest_of(model=SMALL, request=TIME, tools=many_tools()), router=routing))
    assert isinstance(report, ModelSaid)
    assert report.offered == ("clock",)


def test_no_router_is_asked_where_the_terms_forbid_it() -> None:
    router, engine = Fixed("clock"), Recorder()
    routed(engine, replace(manifest_of(request=TIME, tools=many_tools()), router=Routing.NONE), router=router)
    assert (router.asked, len(engine.asked[0].tools)) == ([], 61)


def test_a_router_that_is_not_installed_is_missed_once_and_everything_is_offered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(router_module, "EMBEDDING_PACKAGE", "no_such_package_anywhere")

    async def scene() -> int:
        engine, run = Recorder(), Run(manifest_of(request=TIME, tools=many_tools()))
        perform = executor(engine)
        for _ in range(2):
            await perform(live_of(run.state), call_of(run))
        return len(engine.asked[-1].tools)

    assert play(scene()) == 61
    assert caplog.text.count("wordllama is not installed") == 1


def test_a_router_that_was_demanded_and_is_not_installed_is_a_matter_of_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(router_module, "EMBEDDING_PACKAGE", "no_such_package_anywhere")
    report = failure(routed(Recorder(), replace(manifest_of(model=SMALL), router=Routing.EMBEDDING)))
    assert (report.code, "remit[local]" in report.message) == (ErrorCode.CONFIG_NO_ENGINE, True)


def test_a_node_that_demands_a_call_gets_it_by_grammar_without_a_router() -> None:
    nodes = (Node("think", NodeKind.MODEL, ask=Ask("Look.", ("look",), must_call=True)), *TERMINALS)
    graph = Graph("asking", "think", nodes, (Edge("think", "done"),), EXITS)
    engine = saying('{"tool":"look","arguments":{"n":1}}')
    report = routed(engine, replace(manifest_of(model=SMALL, graph=graph), router=Routing.NONE))
    assert isinstance(report, ModelSaid)
    assert [call.name for call in report.result.tool_calls] == ["look"]
    assert engine.asked[0].messages[-1] == user_message("Look.")


# A whole run.


@pytest.mark.req("1.11")
def test_a_scripted_engine_drives_a_run_with_a_tool_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> tuple[Ending | None, list[str]]:
        engine = ScriptedEngine(
            [{"tool_calls": [{"name": "look", "arguments": {"n": 1}}]}, {"text": LONG}, {"text": "never"}]
        )
        listener = Listener()
        kit = Kit({"scripted": engine})
        library = Library()
        stage = Stage(
            tools={"look": ok},
            executors={CallModel: Performers(bench_of(listener, library)).carrier(lambda run_id: kit)},
        )
        live = await stage.runner.start(manifest_of(model=engine.model_info()))
        await stage.runner.drive(live)
        assert await stage.runner.text(live.state.result.answer) == LONG
        return live.state.end.ending, [text for _, text in listener.heard]

    with caplog.at_level(logging.WARNING):
        assert play(scene()) == (Ending.SUCCESS, [LONG])
    assert caplog.text == ""


def test_a_small_model_calls_a_tool_and_then_answers_from_its_result() -> None:
    shown: list[ModelRequest] = []

    class Small:
        async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
            shown.append(request)
            text = '{"tool":"look","arguments":{"n":1}}' if request.grammar else "It is fine."
            return ModelResult(text, usage=TokenUsage(1, 0, 1))

        def model_info(self) -> ModelInfo:
            return SMALL

    async def scene() -> tuple[Ending | None, str]:
        kit, library = Kit({SMALL.name: Small()}, router=Fixed("look")), Library()
        stage = Stage(
            tools={"look": ok},
            executors={CallModel: Performers(ProcessResources(library.text)).carrier(lambda run_id: kit)},
        )
        live = await stage.runner.start(manifest_of(model=SMALL))
        await stage.runner.drive(live)
        answered = [entry for entry in live.state.talk.context if isinstance(entry, ModelAnswered)]
        assert [answer.offered for answer in answered] == [("look",), ()]
        return live.state.end.ending, await stage.runner.text(live.state.result.answer)

    assert play(scene()) == (Ending.SUCCESS, "It is fine.")
    assert shown[1].messages == (
        user_message('please\n\nThe result of look is: {"ok": true}\nAnswer in words, using this result.'),
    )
