"""The engine for OpenAI-compatible servers, asked through real sockets."""

import asyncio
import datetime as dt
import gzip
import logging
import ssl
import sys
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from remit.assemble import settings_of
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.record import replace
from remit.core.run.inference import ModelRequest, ModelResult, Price
from remit.core.run.messages import user_message
from remit.inference.endpoint import serving as served
from remit.inference.endpoint.faults import REFUSAL_BYTES_MAX
from remit.inference.engine import Engine, EngineFault, StreamChunk, StreamHandler
from remit.inference.openai.dialects import Grammars
from remit.inference.openai.engine import OpenAIEngine, open_openai
from remit.inference.openai.spec import VENDOR_URL, Endpoint
from remit.inference.specs import EngineSettings
from tests.conformance.chat_server import Call, ChatServer, Peer, Play, free_port, serving

KEY = "sk-very-secret-0123456789"
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
HELLO = ModelRequest((user_message("hello"),))
UNAVAILABLE, BROKEN = ErrorCode.INFERENCE_MODEL_UNAVAILABLE, ErrorCode.INFERENCE_ENGINE_ERROR
MALFORMED = ErrorCode.INFERENCE_MALFORMED_RESPONSE


def at(url: str, *, key: str = "") -> Engine:
    return open_openai(f"tiny?url={url}", EngineSettings(openai_api_key=key))


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
    await peer.says("Hel", "lo")


def refuses(status: int) -> Play:
    async def play(call: Call, peer: Peer) -> None:
        error = {"message": f"no to {call.headers['authorization']}", "code": "no"}
        await peer.status(status, {"error": error}, retry_after="20", location="http://127.0.0.1:1/v1")

    return play


def streams(*pieces: bytes, ends: bool = True) -> Play:
    async def play(call: Call, peer: Peer) -> None:
        await peer.begin()
        for piece in pieces:
            await peer.raw(piece)
        if ends:
            await peer.end()

    return play


def test_the_server_is_asked_for_a_stream_of_chat_completions() -> None:
    result, server = asked(says_hello, replace(HELLO, max_tokens=5, options={"seed": 7}), key=KEY)
    assert result.content == "Hello"
    [call] = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.body == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 5,
        "seed": 7,
    }


def test_no_option_changes_the_model_or_how_it_answers() -> None:
    _, server = asked(says_hello, replace(HELLO, options={"model": "dear", "stream": False}))
    assert (server.calls[0].body["model"], server.calls[0].body["stream"]) == ("tiny", True)


def test_ones_own_machine_needs_no_key() -> None:
    _, server = asked(says_hello)
    assert server.calls[0].headers["authorization"] == "Bearer none"


def test_a_call_takes_the_time_it_took() -> None:
    result, _ = asked(says_hello)
    assert result.usage.duration_ms >= 0
    assert (result.usage.prompt_tokens, result.usage.output_tokens) == (7, 2)


def test_one_engine_serves_one_loop_after_another() -> None:
    async def ask(engine: Engine) -> str:
        return (await engine.infer(HELLO)).content

    async def scenario(engines: list[Engine]) -> tuple[str, int]:
        async with serving(says_hello) as server:
            engine = engines[0] if engines else at(server.url)
            engines.append(engine)
            heard = await asyncio.gather(*(ask(engine) for _ in range(5))) if len(engines) == 1 else []
            return "".join(heard), server.port

    def in_own_loop(engine: Engine, port: int) -> str:
        async def again() -> str:
            server = await asyncio.start_server(ChatServer(says_hello).answer, "127.0.0.1", port)
            async with server:
                return await ask(engine)

        return asyncio.run(again())

    engines: list[Engine] = []
    heard, port = asyncio.run(scenario(engines))
    assert heard == "Hello" * 5
    assert [in_own_loop(engines[0], port) for _ in range(2)] == ["Hello", "Hello"]


def test_nothing_is_tried_twice() -> None:
    async def scenario(play: Play) -> int:
        async with serving(play) as server:
            with pytest.raises(EngineFault):
                await at(server.url).infer(HELLO)
            return len(server.calls)

    async def hangs_up(call: Call, peer: Peer) -> None:
        peer.drop()

    for play in (refuses(429), refuses(500), refuses(307), hangs_up):
        assert asyncio.run(scenario(play)) == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [(307, UNAVAILABLE), (400, BROKEN), (401, UNAVAILABLE), (404, UNAVAILABLE), (429, BROKEN), (500, BROKEN)],
)
def test_a_refusal_is_a_fault_that_never_holds_the_key(status: int, code: ErrorCode) -> None:
    fault = fault_of(refuses(status), key=KEY)
    assert fault.code is code
    assert KEY not in "".join(traceback.format_exception(fault))
    assert KEY not in repr(fault)


def test_an_engine_and_its_settings_never_show_the_key() -> None:
    settings = EngineSettings(openai_api_key=KEY)
    engine = open_openai(f"tiny?url={VENDOR_URL}", settings)
    assert isinstance(engine, OpenAIEngine)
    assert repr(engine) == f"OpenAIEngine('openai:tiny?url={VENDOR_URL}')"
    for shown in (repr(engine), engine.spec, repr(settings), repr(engine.model_info())):
        assert KEY not in shown


def test_the_spec_of_an_engine_opens_the_same_model_again() -> None:
    engine = open_openai("tiny?price=1/2&window=99", EngineSettings(None, "http://localhost:1/v1"))
    assert isinstance(engine, OpenAIEngine)
    again = open_openai(engine.spec.removeprefix("openai:"), EngineSettings())
    assert again.model_info() == engine.model_info()
    assert (engine.model_info().name, engine.model_info().context_window) == ("openai:tiny", 99)
    assert engine.model_info().price == Price(1_000_000, 2_000_000)


def test_another_machine_is_asked_without_encryption_only_where_the_spec_allows_it() -> None:
    settings = EngineSettings(openai_base_url="http://10.0.0.1/v1", openai_api_key=KEY)
    for rest in ("tiny", "tiny?url=http://host.example:8080/v1"):
        with pytest.raises(RequestRejected) as raised:
            open_openai(rest, settings)
        assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
        assert "name an https url, or add plain_http=allowed" in raised.value.message
        assert KEY not in raised.value.message
    engine = open_openai("tiny?plain_http=allowed", settings)
    assert isinstance(engine, OpenAIEngine)
    assert engine.spec == "openai:tiny?url=http://10.0.0.1/v1&plain_http=allowed"


@pytest.mark.parametrize("key", [f"{KEY}\r", f"{KEY}\n", f"{KEY} ", "\t", "sk-\u00e9", "sk-\ud800", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(RequestRejected) as raised:
        at("http://127.0.0.1:1/v1", key=key)
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_what_the_environment_holds_for_others_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: secret-2\nAuthorization: Bearer another")
    _, server = asked(says_hello, key=KEY)
    headers = server.calls[0].headers
    assert set(headers) == SENT
    assert (headers["authorization"], headers["accept-encoding"]) == (f"Bearer {KEY}", "identity")
    assert not {"org-1", "proj-1", "secret-2"} & set(headers.values())


def test_the_vendor_alone_learns_whose_account_it_is() -> None:
    settings = settings_of({"OPENAI_API_KEY": KEY, "OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"}).engines
    account = {"openai-organization": "org-1", "openai-project": "proj-1"}
    for rest, told in (("tiny", account), ("tiny?url=https://gateway.example/v1", {})):
        engine = open_openai(rest, settings)
        assert isinstance(engine, OpenAIEngine)
        assert {name: value for name, value in engine._server._headers.items() if name.startswith("openai-")} == told


@pytest.mark.parametrize("packing", ["gzip", "br", "zstd", "deflate, gzip", "rot13"])
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


def test_a_packed_refusal_is_not_unpacked_either() -> None:
    async def play(call: Call, peer: Peer) -> None:
        body = gzip.compress(b'{"error": {"message": "unpacked words"}}')
        head = f"HTTP/1.1 500 No\r\ncontent-encoding: gzip\r\ncontent-length: {len(body)}\r\n\r\n"
        await peer.send(head.encode() + body)

    fault = fault_of(play)
    assert (fault.code, "unpacked words" in fault.message) == (BROKEN, False)


def test_no_log_of_any_package_holds_the_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    asked(says_hello, key=KEY)
    fault_of(refuses(401), key=KEY)
    assert caplog.records
    assert KEY not in caplog.text


def test_another_machine_is_not_asked_without_a_key() -> None:
    for rest in ("gpt-4o-mini", "tiny?url=http://host.example/v1"):
        with pytest.raises(RequestRejected) as raised:
            open_openai(rest, EngineSettings())
        assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
        assert "set OPENAI_API_KEY" in raised.value.message


def test_without_the_package_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(RequestRejected) as raised:
        at("http://127.0.0.1:1/v1")
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    assert "pip install 'remit[openai]'" in raised.value.message


def test_the_vendors_limit_has_its_own_name() -> None:
    # Asked for its words alone: nobody calls the vendor here.
    names = [OpenAIEngine(Endpoint("tiny", url), key=KEY)._limit for url in (VENDOR_URL, "http://127.0.0.1:1/v1")]
    assert names == ["max_completion_tokens", "max_tokens"]


def test_the_vendor_is_sent_no_grammar_which_it_would_refuse() -> None:
    engines = [OpenAIEngine(Endpoint("tiny", url), key=KEY) for url in (VENDOR_URL, "http://127.0.0.1:1/v1")]
    assert [engine._dialect.grammars is Grammars.NONE for engine in engines] == [True, False]


@pytest.mark.parametrize("rest", ["tiny?schemas=grammar", "tiny?url=http://127.0.0.1:1/v1&schemas=grammar"])
def test_a_spec_of_old_that_asks_for_grammars_made_of_schemas_is_told_what_to_write(rest: str) -> None:
    with pytest.raises(RequestRejected, match="schemas=grammar is gone: servers take a schema as it is") as raised:
        open_openai(rest, EngineSettings(openai_api_key=KEY))
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    assert "leave the option out" in raised.value.message


PIECE = b'data: {"choices": [{"delta": {"content": "Hello"}, "finish_reason": "stop"}]}\n\n'


@pytest.mark.parametrize(
    "pieces",
    [
        [PIECE],
        [PIECE.strip()],
        [PIECE, b"data: [DONE]"],
        [PIECE + b"data: [DONE]\n\n", b"data: {never read"],
        [b": waiting\n\n", PIECE[:20], PIECE[20:], b"\n\n"],
    ],
)
def test_an_answer_is_whole_when_it_says_why_it_stopped(pieces: list[bytes]) -> None:
    assert asked(streams(*pieces))[0].content == "Hello"


def test_a_server_that_never_hangs_up_is_left_when_it_is_done() -> None:
    async def play(call: Call, peer: Peer) -> None:
        await peer.begin()
        await peer.raw(PIECE + b"data: [DONE]\n\n")
        await peer.wait_for_hanging_up()

    assert asked(play)[0].content == "Hello"


@pytest.mark.parametrize(
    ("play", "code", "problem"),
    [
        (streams(b"data: [DONE]\n\n"), MALFORMED, "without saying why it stopped"),
        (streams(PIECE.replace(b'"stop"', b"null")), MALFORMED, "without saying why it stopped"),
        (streams(b"data: <html>\n\n"), MALFORMED, "no JSON"),
        (streams(b"<html>\n\n</html>"), MALFORMED, "holds no event, and is said to be 'text/event-stream'"),
        (streams(), MALFORMED, "holds no event"),
        (streams(b'data: {"error": {"message": "overloaded"}}\n\n'), BROKEN, "overloaded"),
        (streams(PIECE, ends=False), BROKEN, "was lost"),
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


def test_bytes_that_are_no_http_are_a_lost_connection() -> None:
    async def play(call: Call, peer: Peer) -> None:
        await peer.send(b"SSH-2.0-OpenSSH_9.9\r\n")

    assert fault_of(play).code is BROKEN


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
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{asyncio.run(free_port())}")
    assert asked(says_hello)[0].content == "Hello"


def self_signed(folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
    encoding, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    pem = builder.sign(key, hashes.SHA256()).public_bytes(encoding)
    pem += key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, plain)
    (folder / "server.pem").write_bytes(pem)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem")
    return context


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path: Path) -> None:
    async def scenario() -> None:
        chat = ChatServer(says_hello)
        server = await asyncio.start_server(chat.answer, "127.0.0.1", 0, ssl=self_signed(tmp_path))
        async with server:
            await at(f"https://localhost:{server.sockets[0].getsockname()[1]}/v1").infer(HELLO)

    fault = in_vain(scenario)
    assert fault.code is UNAVAILABLE
    assert "CERTIFICATE_VERIFY_FAILED" in fault.message


def in_vain(scenario: Callable[[], Awaitable[None]]) -> EngineFault:
    async def ended() -> None:
        await scenario()

    with pytest.raises(EngineFault) as raised:
        asyncio.run(ended())
    return raised.value
