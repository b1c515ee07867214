"""The engine for the Messages API, asked through real sockets."""

import asyncio
import gzip
import logging
import sys
import traceback
from pathlib import Path

import pytest

from remit.assemble import settings_of
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.record import JsonObject, replace
from remit.core.run.inference import TEMPLATE_TOKENS_MAX, ModelRequest, ModelResult, Price
from remit.core.run.messages import user_message
from remit.inference.anthropic.engine import AnthropicEngine, open_anthropic
from remit.inference.anthropic.spec import VENDOR_URL
from remit.inference.endpoint import serving as served
from remit.inference.endpoint.faults import REFUSAL_BYTES_MAX
from remit.inference.engine import Engine, EngineFault, StreamChunk, StreamHandler
from remit.inference.openai.spec import Endpoint
from remit.inference.specs import EngineSettings, open_engine
from tests.conformance.chat_server import Call, ChatServer, Peer, Play, free_port, serving
from tests.conformance.messages_server import base_of, refusal, says

KEY = "sk-ant-very-secret-0123456789"
# Every header that a server is sent.
SENT = {
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "user-agent",
}
SENT |= {"anthropic-version", "x-api-key"}
HELLO = ModelRequest((user_message("hello"),))
UNAVAILABLE, BROKEN = ErrorCode.INFERENCE_MODEL_UNAVAILABLE, ErrorCode.INFERENCE_ENGINE_ERROR
MALFORMED = ErrorCode.INFERENCE_MALFORMED_RESPONSE


def at(url: str, *, key: str = "") -> Engine:
    return open_anthropic(f"tiny?url={base_of(url)}", EngineSettings(anthropic_api_key=key))


def asked(
    play: Play, request: ModelRequest = HELLO, *, key: str = "", on_chunk: StreamHandler | None = None
) -> tuple[ModelResult, ChatServer]:
    async def scenario() -> tuple[ModelResult, ChatServer]:
        async with serving(play) as server:
            return await at(server.url, key=key).infer(request, on_chunk), server

    return asyncio.run(scenario())


def fault_of(play: Play, *, key: str = "") -> EngineFault:
    with pytest.raises(EngineFault) as raised:
        asked(play, key=key)
    return raised.value


async def says_hello(call: Call, peer: Peer) -> None:
    await says(peer, "Hel", "lo")


def refuses(status: int) -> Play:
    async def play(call: Call, peer: Peer) -> None:
        body = refusal("api_error", f"no to {call.headers['authorization']}")
        await peer.status(status, body, retry_after="20", location="http://127.0.0.1:1")

    return play


def streams(*pieces: bytes, ends: bool = True) -> Play:
    async def play(call: Call, peer: Peer) -> None:
        await peer.begin()
        for piece in pieces:
            await peer.raw(piece)
        if ends:
            await peer.end()

    return play


def test_the_server_is_asked_for_a_stream_of_messages() -> None:
    result, server = asked(says_hello, replace(HELLO, max_tokens=5, options={"metadata": {"user_id": "u"}}), key=KEY)
    assert result.content == "Hello"
    [call] = server.calls
    assert call.path == "/v1/messages"
    assert call.body == {
        "model": "tiny",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        "stream": True,
        "max_tokens": 5,
        "metadata": {"user_id": "u"},
    }


def test_a_key_is_sent_in_both_ways_that_servers_look_for_it() -> None:
    _, server = asked(says_hello, key=KEY)
    headers = server.calls[0].headers
    assert (headers["authorization"], headers["x-api-key"]) == (f"Bearer {KEY}", KEY)
    assert headers["anthropic-version"]


def test_the_vendor_gets_the_key_once_and_no_wishes_about_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[JsonObject] = []

    async def answered(server: served.Server, body: JsonObject, *_: object) -> ModelResult:
        bodies.append(body)
        return ModelResult()

    # Looked at and not sent: no test calls the vendor.
    monkeypatch.setattr(served.Server, "answered", answered)
    engine = AnthropicEngine(Endpoint("tiny", VENDOR_URL), key=KEY)
    asyncio.run(engine.infer(replace(HELLO, temperature=0.5, top_p=0.5)))
    headers = engine._server._headers
    assert (headers["authorization"], "x-api-key" in headers) == (f"Bearer {KEY}", False)
    assert not {"temperature", "top_p"} & set(bodies[0])


def test_any_other_server_gets_wishes_about_sampling() -> None:
    _, server = asked(says_hello, replace(HELLO, temperature=0.0, top_p=0.5))
    assert (server.calls[0].body["temperature"], server.calls[0].body["top_p"]) == (0.0, 0.5)


def test_ones_own_machine_needs_no_key() -> None:
    _, server = asked(says_hello)
    assert server.calls[0].headers["authorization"] == "Bearer none"


def test_a_call_takes_the_time_it_took() -> None:
    result, _ = asked(says_hello)
    assert result.usage.duration_ms >= 0
    assert (result.usage.prompt_tokens, result.usage.output_tokens) == (7, 2)


def test_one_engine_serves_one_loop_after_another() -> None:
    async def first() -> tuple[Engine, int, list[ModelResult]]:
        async with serving(says_hello) as server:
            engine = at(server.url)
            return engine, server.port, await asyncio.gather(*(engine.infer(HELLO) for _ in range(5)))

    async def again(engine: Engine, port: int) -> ModelResult:
        server = await asyncio.start_server(ChatServer(says_hello).answer, "127.0.0.1", port)
        async with server:
            return await engine.infer(HELLO)

    engine, port, heard = asyncio.run(first())
    heard += [asyncio.run(again(engine, port)) for _ in range(2)]
    assert [result.content for result in heard] == ["Hello"] * 7


def test_nothing_is_tried_twice() -> None:
    async def scenario(play: Play) -> int:
        async with serving(play) as server:
            with pytest.raises(EngineFault):
                await at(server.url).infer(HELLO)
            return len(server.calls)

    async def hangs_up(call: Call, peer: Peer) -> None:
        peer.drop()

    for play in (refuses(429), refuses(529), refuses(307), hangs_up):
        assert asyncio.run(scenario(play)) == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [(307, UNAVAILABLE), (400, BROKEN), (401, UNAVAILABLE), (404, UNAVAILABLE), (429, BROKEN), (529, UNAVAILABLE)],
)
def test_a_refusal_is_a_fault_that_never_holds_the_key(status: int, code: ErrorCode) -> None:
    fault = fault_of(refuses(status), key=KEY)
    assert fault.code is code
    assert KEY not in "".join(traceback.format_exception(fault))
    assert KEY not in repr(fault)


def test_how_long_to_wait_is_told() -> None:
    fault = fault_of(refuses(429))
    assert (fault.retry_after_s, "it asks to wait 20 s" in fault.message) == (20, True)


def test_the_environment_says_where_the_vendor_is_and_holds_its_key() -> None:
    settings = settings_of({"ANTHROPIC_BASE_URL": "http://localhost:1", "ANTHROPIC_API_KEY": KEY}).engines
    assert (settings.anthropic_base_url, settings.anthropic_api_key) == ("http://localhost:1", KEY)


def test_an_engine_and_its_settings_never_show_the_key() -> None:
    settings = EngineSettings(anthropic_api_key=KEY)
    engine = open_anthropic("tiny", settings)
    assert repr(engine) == f"AnthropicEngine('anthropic:tiny?url={VENDOR_URL}&window=200000')"
    assert KEY not in repr(settings) + repr(engine) + repr(engine.model_info())


def test_a_spec_opens_the_engine_and_the_engines_spec_opens_it_again(tmp_path: Path) -> None:
    settings = EngineSettings(anthropic_base_url="http://localhost:1", anthropic_api_key=KEY)
    engine = open_engine("anthropic:tiny?price=1/2&window=99", base=tmp_path, settings=settings)
    assert isinstance(engine, AnthropicEngine)
    again = open_engine(engine.spec, base=tmp_path)
    assert again.model_info() == engine.model_info()
    assert (engine.model_info().name, engine.model_info().context_window) == ("anthropic:tiny", 99)
    assert engine.model_info().price == Price(1_000_000, 2_000_000)


@pytest.mark.parametrize(
    ("rest", "price"),
    [
        ("claude-3-5-haiku-latest", Price(800_000, 4_000_000)),
        ("claude-3-5-haiku-latest?price=1/2", Price(1_000_000, 2_000_000)),
        ("claude-3-5-haiku-latest?price=0/0", Price(0, 0)),
        ("claude-3-5-haiku-latest?url=https://gateway.example", None),
        ("claude-3-5-haiku-latest?url=http://127.0.0.1:1", Price(0, 0)),
        ("no-such-model", None),
    ],
)
def test_a_price_is_that_of_the_spec_then_that_of_the_vendors_own_model(rest: str, price: Price | None) -> None:
    assert open_anthropic(rest, EngineSettings(anthropic_api_key=KEY)).model_info().price == price


def test_another_machine_is_not_asked_without_a_key_or_without_encryption() -> None:
    for rest in ("claude-sonnet-4-5", "tiny?url=https://host.example"):
        with pytest.raises(RequestRejected, match="set ANTHROPIC_API_KEY") as raised:
            open_anthropic(rest, EngineSettings())
        assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    settings = EngineSettings(anthropic_api_key=KEY)
    with pytest.raises(RequestRejected, match="name an https url, or add plain_http=allowed") as raised:
        open_anthropic("tiny?url=http://10.0.0.1", settings)
    assert KEY not in raised.value.message
    assert open_anthropic("tiny?url=http://10.0.0.1&plain_http=allowed", settings).model_info().name == "anthropic:tiny"


@pytest.mark.parametrize("key", [f"{KEY}\r", f"{KEY}\n", f"{KEY} ", "\t", "sk-\u00e9", "sk-\ud800", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(RequestRejected, match="ANTHROPIC_API_KEY holds") as raised:
        at("http://127.0.0.1:1", key=key)
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_what_the_environment_holds_for_others_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv(
        "ANTHROPIC_CUSTOM_HEADERS", "X-Gateway: secret-2\nAuthorization: Bearer another\nX-Api-Key: another"
    )
    _, server = asked(says_hello, key=KEY)
    headers = server.calls[0].headers
    assert set(headers) == SENT
    assert (headers["authorization"], headers["x-api-key"]) == (f"Bearer {KEY}", KEY)
    assert headers["accept-encoding"] == "identity"
    assert not [value for value in headers.values() if "another" in value or "secret-2" in value]


def test_no_log_of_any_package_holds_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    asked(says_hello, key=KEY)
    fault_of(refuses(401), key=KEY)
    assert caplog.records
    assert KEY not in caplog.text


def test_without_the_package_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(RequestRejected) as raised:
        at("http://127.0.0.1:1")
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    assert "pip install 'remit[anthropic]'" in raised.value.message


def test_a_model_that_the_vendor_will_retire_is_asked_without_a_warning() -> None:
    async def scenario() -> ModelResult:
        async with serving(says_hello) as server:
            settings = EngineSettings(anthropic_base_url=base_of(server.url))
            return await open_anthropic("claude-3-opus-20240229", settings).infer(HELLO)

    assert asyncio.run(scenario()).content == "Hello"


START = b'event: message_start\ndata: {"type": "message_start", "message": {"usage": {"input_tokens": 1}}}\n\n'
TEXT = b'data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}\n\n'
ENDED = b'data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}\n\n'
STOPPED = b'data: {"type": "message_stop"}\n\n'


@pytest.mark.parametrize(
    "pieces",
    [
        [START, TEXT, ENDED, STOPPED],
        [START, TEXT, ENDED],
        [START + TEXT + ENDED.strip()],
        [START, TEXT, ENDED, STOPPED + b"data: {never read"],
        [b": waiting\n\n", START[:20], START[20:], TEXT, ENDED],
    ],
)
def test_an_answer_is_whole_when_it_says_why_it_stopped(pieces: list[bytes]) -> None:
    assert asked(streams(*pieces))[0].content == "Hello"


def test_a_server_that_never_hangs_up_is_left_when_it_is_done() -> None:
    async def play(call: Call, peer: Peer) -> None:
        await peer.begin()
        await peer.raw(START + TEXT + ENDED + STOPPED)
        await peer.wait_for_hanging_up()

    assert asked(play)[0].content == "Hello"


OVERLOADED = (
    b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'
)


@pytest.mark.parametrize(
    ("play", "code", "problem"),
    [
        (streams(START, TEXT, STOPPED), MALFORMED, "without saying why it stopped"),
        (streams(START, b"data: <html>\n\n"), MALFORMED, "no JSON"),
        (streams(b"<html>\n\n</html>"), MALFORMED, "holds no event, and is said to be 'text/event-stream'"),
        (streams(), MALFORMED, "holds no event"),
        (streams(START, TEXT, OVERLOADED), UNAVAILABLE, "Overloaded"),
        (streams(START, TEXT, OVERLOADED.replace(b"overloaded_error", b"api_error")), BROKEN, "failed while"),
        (streams(START, TEXT, ends=False), BROKEN, "was lost"),
    ],
)
def test_a_stream_that_is_no_answer_is_a_fault_that_costs(play: Play, code: ErrorCode, problem: str) -> None:
    fault = fault_of(play)
    assert (fault.code, fault.was_cut) == (code, True)
    assert problem in fault.message


def test_a_page_instead_of_a_stream_is_named() -> None:
    async def play(call: Call, peer: Peer) -> None:
        await peer.status(200, "<html>Welcome</html>")

    fault = fault_of(play)
    assert (fault.code, "'text/html'; check the url" in fault.message) == (MALFORMED, True)


@pytest.mark.parametrize("packing", ["gzip", "br", "rot13"])
def test_a_packed_answer_is_refused_before_it_is_unpacked(packing: str) -> None:
    async def play(call: Call, peer: Peer) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-encoding: {packing}\r\ntransfer-encoding: chunked\r\n\r\n"
        await peer.send(head.encode())
        # Were it read, this would be megabytes of empty lines.
        await peer.raw(gzip.compress(b"\n" * 10_000_000))
        await peer.wait_for_hanging_up()

    fault = fault_of(play)
    assert (fault.code, fault.was_cut) == (MALFORMED, True)
    assert f"packed its answer as {packing!r}" in fault.message


def test_a_line_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "EVENT_BYTES_MAX", 100_000)

    async def play(call: Call, peer: Peer) -> None:
        await peer.begin()
        while True:
            await peer.raw(b"x" * 65536)

    fault = fault_of(play)
    assert (fault.code, "event_bytes_max=100000" in fault.message) == (MALFORMED, True)


def test_a_refusal_without_an_end_is_given_up() -> None:
    sent = 0

    async def play(call: Call, peer: Peer) -> None:
        nonlocal sent
        await peer.send(b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            await peer.raw(b"x" * 65536)
            sent += 65536

    assert fault_of(play).code is BROKEN
    # What lies in the buffers of both sockets comes on top.
    assert REFUSAL_BYTES_MAX <= sent < 100 * REFUSAL_BYTES_MAX


def test_silence_is_not_waited_out_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "SILENCE_TIMEOUT_S", 0.05)

    async def play(call: Call, peer: Peer) -> None:
        await peer.wait_for_hanging_up()

    fault = fault_of(play)
    assert (fault.code, fault.was_cut, "fell silent" in fault.message) == (BROKEN, True, True)


def test_a_listener_that_breaks_is_heard_of() -> None:
    def breaks(chunk: StreamChunk) -> None:
        raise LookupError(chunk.text)

    with pytest.raises(LookupError, match="Hel"):
        asked(says_hello, on_chunk=breaks)


def test_ones_own_machine_is_reached_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{asyncio.run(free_port())}")
    assert asked(says_hello)[0].content == "Hello"


def test_what_the_template_adds_to_a_prompt_is_reserved_as_well() -> None:
    engine = open_anthropic("tiny?url=http://127.0.0.1:1", EngineSettings())
    assert engine.model_info().template_tokens == TEMPLATE_TOKENS_MAX
