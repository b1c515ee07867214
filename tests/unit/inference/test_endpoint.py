"""A server gets so many calls at once and in a minute, and is left alone when it fails or asks for it."""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from remit.core.failure import ErrorCode
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import user_message
from remit.inference.endpoint import endpoint
from remit.inference.endpoint.breaker import Breaker
from remit.inference.endpoint.endpoint import CallLimiter, Endpoints, LimitedEngine
from remit.inference.endpoint.limits import EndpointLimits
from remit.inference.engine import EngineFault, StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.inference.specs import EngineSettings, engine_spec, open_engine

HELLO = ModelRequest((user_message("hello"),))
UNAVAILABLE, BROKEN = ErrorCode.INFERENCE_MODEL_UNAVAILABLE, ErrorCode.INFERENCE_ENGINE_ERROR
SPEC = "openai:m?url=http://127.0.0.1:1/v1"


class Time:
    """A clock that goes forward when a task sleeps."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    async def wait(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds


class Server:
    """An engine that does what it is told, one call after another, and counts who is inside."""

    def __init__(self, *outcomes: EngineFault | BaseException | None) -> None:
        self._outcomes = list(outcomes)
        self.asked = 0
        self.inside = 0
        self.inside_most = 0
        self.go = asyncio.Event()
        self.go.set()

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        self.asked += 1
        self.inside += 1
        self.inside_most = max(self.inside, self.inside_most)
        try:
            await self.go.wait()
            await asyncio.sleep(0)
        finally:
            self.inside -= 1
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if outcome is not None:
            raise outcome
        return ModelResult("hello", model="m")

    def model_info(self) -> ModelInfo:
        return ModelInfo("m", 100)


def failing(code: ErrorCode = UNAVAILABLE, retry_after_s: int = 0) -> EngineFault:
    return EngineFault(code, "no", retry_after_s=retry_after_s)


def limited(server: Server, limits: EndpointLimits, clock: Time) -> LimitedEngine:
    return LimitedEngine(server, SPEC, limits, Endpoints(clock))


async def outcomes_of(engine: LimitedEngine, count: int) -> Sequence[str]:
    """What came of calls one after another: the answer, or the message of the fault."""
    told: list[str] = []
    for _ in range(count):
        try:
            told.append((await engine.infer(HELLO)).content)
        except EngineFault as fault:
            told.append(fault.message)
    return told


async def settled() -> None:
    """Let everybody go on for as long as they can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_no_more_calls_than_allowed_are_made_at_once_and_each_gets_its_turn() -> None:
    async def scenario() -> None:
        server = Server()
        engine = limited(server, EndpointLimits(concurrency=2), Time())
        results = await asyncio.gather(*(engine.infer(HELLO) for _ in range(9)))
        assert [result.content for result in results] == ["hello"] * 9
        assert (server.inside_most, server.asked) == (2, 9)

    asyncio.run(scenario())


def test_without_a_limit_all_calls_are_made_at_once() -> None:
    async def scenario() -> None:
        server = Server()
        engine = limited(server, EndpointLimits(), Time())
        await asyncio.gather(*(engine.infer(HELLO) for _ in range(9)))
        assert server.inside_most == 9

    asyncio.run(scenario())


def test_who_waits_in_line_can_be_cancelled_and_leaves_no_gap() -> None:
    async def scenario() -> None:
        server = Server()
        server.go.clear()
        engine = limited(server, EndpointLimits(concurrency=1), Time())
        calls = [asyncio.create_task(engine.infer(HELLO)) for _ in range(4)]
        await settled()
        assert server.inside == 1
        calls[1].cancel()
        await settled()
        assert calls[1].cancelled()
        # The one inside is cancelled and, with it, the one whose turn has just come.
        calls[0].cancel()
        await asyncio.sleep(0)
        calls[2].cancel()
        server.go.set()
        assert (await calls[3]).content == "hello"
        assert (await engine.infer(HELLO)).content == "hello"
        assert server.inside_most == 1

    asyncio.run(scenario())


def test_nobody_waits_in_line_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        gate = CallLimiter("http://h", wait_s=0.01)
        gate.tighten(EndpointLimits(concurrency=1))
        async with gate.passing():
            with pytest.raises(EngineFault) as raised:
                async with gate.passing():
                    pass
        assert raised.value.code is UNAVAILABLE
        assert "concurrency=1 are allowed at once" in raised.value.message
        async with gate.passing():
            pass
        monkeypatch.setattr(endpoint, "WAITING_MAX", 0)
        async with gate.passing():
            with pytest.raises(EngineFault, match="0 calls already wait for http://h, as many as may wait"):
                async with gate.passing():
                    pass

    asyncio.run(scenario())


@pytest.mark.slow
def test_a_place_passes_from_one_loop_to_another_and_over_those_that_are_gone() -> None:
    gate = CallLimiter("http://h")
    gate.tighten(EndpointLimits(concurrency=1))
    passed: list[str] = []

    async def pass_through(name: str) -> None:
        async with gate.passing():
            passed.append(name)

    async def scenario() -> None:
        async with gate.passing():
            gone = asyncio.new_event_loop()
            waiting = gone.create_task(pass_through("gone"))
            await asyncio.to_thread(gone.run_until_complete, asyncio.sleep(0))
            other = Thread(target=asyncio.run, args=(pass_through("other"),))
            other.start()
            while len(gate._line) < 2:  # noqa: ASYNC110  # the other thread has no task to tell
                await asyncio.sleep(0.001)
            # Closed without being told: its task never runs again.
            waiting._log_destroy_pending = False  # type: ignore[attr-defined]
            gone.close()
        await asyncio.to_thread(other.join)
        await pass_through("here")
        del waiting, gone
        gc.collect()
        assert gate._running == 0

    asyncio.run(scenario())
    assert passed == ["other", "here"]


def test_calls_are_spread_over_the_minute() -> None:
    async def scenario() -> None:
        clock = Time()
        gate = CallLimiter("http://h", clock, clock.wait)
        gate.tighten(EndpointLimits(rpm=30))
        began_s = clock.now_s
        for _ in range(4):
            async with gate.passing():
                pass
        assert clock.now_s - began_s == pytest.approx(6.0)

    asyncio.run(scenario())


def test_a_second_s_worth_may_pass_at_once_and_no_more_is_saved_up() -> None:
    async def scenario() -> None:
        clock = Time()
        gate = CallLimiter("http://h", clock, clock.wait)
        gate.tighten(EndpointLimits(rpm=180))
        clock.now_s += 3600
        for _ in range(5):
            async with gate.passing():
                pass
        assert len(clock.slept) == 2

    asyncio.run(scenario())


def test_who_would_wait_too_long_is_told_when_to_come_back_and_takes_nothing() -> None:
    async def scenario() -> None:
        clock = Time()
        gate = CallLimiter("http://h", clock, clock.wait, wait_s=5)
        gate.tighten(EndpointLimits(rpm=6))
        async with gate.passing():
            pass
        for _ in range(3):
            with pytest.raises(EngineFault, match="is not asked before 10 s have passed") as raised:
                async with gate.passing():
                    pass
            assert (raised.value.code, raised.value.retry_after_s, raised.value.was_cut) == (UNAVAILABLE, 10, False)
        clock.now_s += 10
        async with gate.passing():
            pass
        assert clock.slept == []

    asyncio.run(scenario())


def test_a_cancelled_wait_gives_its_token_back() -> None:
    async def scenario() -> None:
        clock = Time()

        async def never(seconds: float) -> None:
            await asyncio.Event().wait()

        gate = CallLimiter("http://h", clock, never)
        gate.tighten(EndpointLimits(rpm=60))
        async with gate.passing():
            pass

        async def pass_through() -> None:
            async with gate.passing():
                pass

        waiting = asyncio.create_task(pass_through())
        await settled()
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting
        clock.now_s += 1
        async with gate.passing():
            pass

    asyncio.run(scenario())


def test_of_several_limits_for_one_url_the_strictest_holds() -> None:
    async def scenario() -> None:
        clock = Time()
        gate = CallLimiter("http://h", clock, clock.wait)
        for limits in (
            EndpointLimits(2),
            EndpointLimits(0, 600),
            EndpointLimits(5, 6),
            EndpointLimits(1, 60),
            EndpointLimits(3),
        ):
            gate.tighten(limits)
        async with gate.passing():
            assert gate._running == gate._concurrency == 1
        async with gate.passing():
            pass
        assert clock.slept == [pytest.approx(10.0)]

    asyncio.run(scenario())


def test_a_server_that_asks_to_be_left_alone_is_and_its_model_is_not_blamed() -> None:
    async def scenario() -> None:
        clock = Time()
        endpoints = Endpoints(clock)
        server = Server(failing(BROKEN, 120))
        engine = LimitedEngine(server, SPEC, EndpointLimits(failures_max=1), endpoints)
        other = LimitedEngine(Server(), SPEC.replace(":m?", ":n?"), EndpointLimits(), endpoints)
        assert await outcomes_of(engine, 1) == ["no"]
        told = "http://127.0.0.1:1/v1 is not asked before 120 s have passed; come back then"
        assert [*await outcomes_of(engine, 2), *await outcomes_of(other, 1)] == [told] * 3
        assert server.asked == 1
        clock.now_s += 121
        assert await outcomes_of(engine, 1) == ["hello"]

    asyncio.run(scenario())


def test_who_waits_while_the_server_asks_for_quiet_waits_for_that_too() -> None:
    async def scenario() -> None:
        clock = Time()

        async def sleep(seconds: float) -> None:
            await clock.wait(seconds)
            if len(clock.slept) == 1:
                gate.hold(20)

        gate = CallLimiter("http://h", clock, sleep)
        gate.hold(5)
        async with gate.passing():
            pass
        assert clock.slept == [5.0, 20.0]

    asyncio.run(scenario())


def test_after_failures_in_a_row_a_model_is_left_alone_and_then_probed_by_one_call() -> None:
    async def scenario() -> None:
        clock = Time()
        server = Server(failing(), failing(BROKEN), failing())
        engine = limited(server, EndpointLimits(failures_max=2, pause_s=30), clock)
        rests = "model 'm' failed 2 times in a row and is left alone; it is tried again in 30 s"
        assert await outcomes_of(engine, 3) == ["no", "no", rests]
        assert server.asked == 2
        clock.now_s += 30
        # The probe fails, and the pause begins anew.
        rests = "model 'm' failed 3 times in a row and is left alone; it is tried again in 30 s"
        assert await outcomes_of(engine, 2) == ["no", rests]
        clock.now_s += 31
        server.go.clear()
        probe = asyncio.create_task(engine.infer(HELLO))
        await settled()
        assert "one call is finding out whether it is back" in (await outcomes_of(engine, 1))[0]
        server.go.set()
        assert (await probe).content == "hello"
        assert await outcomes_of(engine, 3) == ["hello"] * 3

    asyncio.run(scenario())


def test_a_probe_that_is_cancelled_leaves_the_place_to_another() -> None:
    async def scenario() -> None:
        clock = Time()
        server = Server(failing())
        engine = limited(server, EndpointLimits(failures_max=1, pause_s=1), clock)
        await outcomes_of(engine, 1)
        clock.now_s += 2
        server.go.clear()
        probe = asyncio.create_task(engine.infer(HELLO))
        await settled()
        probe.cancel()
        with suppress(asyncio.CancelledError):
            await probe
        server.go.set()
        assert await outcomes_of(engine, 1) == ["hello"]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "code", [ErrorCode.INFERENCE_CONTEXT_EXCEEDED, ErrorCode.INFERENCE_MALFORMED_RESPONSE], ids=lambda code: code.value
)
def test_a_server_that_is_there_is_not_left_alone(code: ErrorCode) -> None:
    async def scenario() -> None:
        server = Server(failing(), failing(code), failing(), failing(code))
        assert await outcomes_of(limited(server, EndpointLimits(failures_max=2), Time()), 5) == ["no"] * 4 + ["hello"]

    asyncio.run(scenario())


def test_a_bug_of_the_engine_passes_as_it_is() -> None:
    async def scenario() -> None:
        engine = limited(Server(ZeroDivisionError()), EndpointLimits(1, failures_max=1), Time())
        with pytest.raises(ZeroDivisionError):
            await engine.infer(HELLO)
        assert await outcomes_of(engine, 1) == ["hello"]

    asyncio.run(scenario())


def test_engines_of_one_url_share_its_gate_and_models_have_breakers_of_their_own() -> None:
    endpoints = Endpoints(Time())
    assert endpoints.gate("a", EndpointLimits(1)) is endpoints.gate("a", EndpointLimits(2))
    assert endpoints.gate("a", EndpointLimits()) is not endpoints.gate("b", EndpointLimits())
    assert endpoints.breaker("a", EndpointLimits()) is endpoints.breaker("a", EndpointLimits())
    assert endpoints.breaker("a", EndpointLimits()) is not endpoints.breaker("b", EndpointLimits())


@pytest.mark.parametrize("kind", ["gate", "breaker"])
def test_the_endpoint_that_was_not_asked_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(endpoint, "ENDPOINTS_MAX", 2)
    endpoints = Endpoints(Time())
    find: Callable[[str, EndpointLimits], CallLimiter | Breaker] = getattr(endpoints, kind)
    a, b = find("a", EndpointLimits()), find("b", EndpointLimits())
    assert find("a", EndpointLimits()) is a
    find("c", EndpointLimits())
    assert find("a", EndpointLimits()) is a
    assert find("b", EndpointLimits()) is not b


def test_a_spec_with_limits_opens_a_limited_engine_and_its_spec_the_same_again(tmp_path: Path) -> None:
    engine = open_engine("openai:m?concurrency=4&url=http://127.0.0.1:1/v1&rpm=60", base=tmp_path)
    assert isinstance(engine, LimitedEngine)
    assert engine_spec(engine) == f"{SPEC}&concurrency=4&rpm=60&breaker=5/30"
    assert repr(engine) == f"LimitedEngine({engine.spec!r})"
    again = open_engine(engine.spec, base=tmp_path, settings=EngineSettings())
    assert (engine_spec(again), again.model_info()) == (engine.spec, engine.model_info())


def test_all_engines_of_a_process_share_the_limits_of_a_url(tmp_path: Path) -> None:
    async def scenario(ask: Callable[[str], Awaitable[object]]) -> None:
        url = "http://127.0.0.1:9"
        with pytest.raises(EngineFault, match="nothing answers"):
            await ask(f"openai:a?breaker=1/60&url={url}/v1")
        with pytest.raises(EngineFault, match="is left alone"):
            await ask(f"openai:a?breaker=1/60&url={url}/v1")

    async def ask(spec: str) -> object:
        return await open_engine(spec, base=tmp_path).infer(HELLO)

    asyncio.run(scenario(ask))


def test_a_limited_model_is_asked_no_more_at_once_than_its_endpoint_may_be() -> None:
    engine = ScriptedEngine([{"text": "yes"}], calls_at_once=8)
    spec = "openai:a?url=http://127.0.0.1:1/v1"
    assert LimitedEngine(engine, spec, EndpointLimits(concurrency=2), Endpoints()).model_info().calls_at_once == 2
    assert LimitedEngine(engine, spec, EndpointLimits(), Endpoints()).model_info().calls_at_once == 8
