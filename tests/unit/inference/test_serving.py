"""The client that asks the servers of both vendors, through real sockets: what it sends, bears, and gives up."""

import asyncio
import datetime as dt
import gzip
import logging
import ssl
import sys
import traceback
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.run.inference import ModelResult
from remit.inference.endpoint import serving as served
from remit.inference.endpoint.faults import REFUSAL_BYTES_MAX
from remit.inference.engine import Engine, EngineFault, StreamChunk
from tests.conformance.chat_server import Call, ChatServer, Peer, Play, free_port, serving
from tests.unit.inference.vendors import ANTHROPIC, HELLO, KEY, OPENAI, Vendor, streams

UNAVAILABLE, BROKEN = ErrorCode.INFERENCE_MODEL_UNAVAILABLE, ErrorCode.INFERENCE_ENGINE_ERROR
MALFORMED = ErrorCode.INFERENCE_MALFORMED_RESPONSE


@pytest.fixture(params=[ANTHROPIC, OPENAI], ids=lambda vendor: vendor.name)
def vendor(request: pytest.FixtureRequest) -> Vendor:
    asked: Vendor = request.param
    return asked


def test_the_users_own_machine_needs_no_key(vendor: Vendor) -> None:
    _, server = vendor.asked(vendor.says_hello)
    assert server.calls[0].headers["authorization"] == "Bearer none"


def test_a_call_takes_the_time_it_took(vendor: Vendor) -> None:
    result, _ = vendor.asked(vendor.says_hello)
    assert result.usage.duration_ms >= 0
    assert (result.usage.prompt_tokens, result.usage.output_tokens) == (7, 2)


def test_one_engine_serves_one_loop_after_another(vendor: Vendor) -> None:
    async def first() -> tuple[Engine, int, list[ModelResult]]:
        async with serving(vendor.says_hello) as server:
            engine = vendor.at(server.url, "")
            return engine, server.port, await asyncio.gather(*(engine.infer(HELLO) for _ in range(5)))

    async def again(engine: Engine, port: int) -> ModelResult:
        server = await asyncio.start_server(ChatServer(vendor.says_hello).answer, "127.0.0.1", port)
        async with server:
            return await engine.infer(HELLO)

    engine, port, heard = asyncio.run(first())
    heard += [asyncio.run(again(engine, port)) for _ in range(2)]
    assert [result.content for result in heard] == ["Hello"] * 7


def test_nothing_is_tried_twice(vendor: Vendor) -> None:
    async def scenario(play: Play) -> int:
        async with serving(play) as server:
            with pytest.raises(EngineFault):
                await vendor.at(server.url, "").infer(HELLO)
            return len(server.calls)

    async def hangs_up(call: Call, peer: Peer) -> None:
        peer.drop()

    for play in (*(vendor.refuses(status) for status in (307, 429, 500, 529)), hangs_up):
        assert asyncio.run(scenario(play)) == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (307, UNAVAILABLE),
        (400, BROKEN),
        (401, UNAVAILABLE),
        (404, UNAVAILABLE),
        (429, BROKEN),
        (500, BROKEN),
        (529, UNAVAILABLE),
    ],
)
def test_a_refusal_is_a_fault_that_never_holds_the_key(vendor: Vendor, status: int, code: ErrorCode) -> None:
    fault = vendor.fault_of(vendor.refuses(status), key=KEY)
    assert fault.code is code
    assert KEY not in "".join(traceback.format_exception(fault))
    assert KEY not in repr(fault)


def test_how_long_to_wait_is_told(vendor: Vendor) -> None:
    fault = vendor.fault_of(vendor.refuses(429))
    assert (fault.retry_after_s, "it asks to wait 20 s" in fault.message) == (20, True)


@pytest.mark.parametrize("key", [f"{KEY}\r", f"{KEY}\n", f"{KEY} ", "\t", "sk-\u00e9", "sk-\ud800", "sk-\x00"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_repeated(vendor: Vendor, key: str) -> None:
    with pytest.raises(RequestRejected, match=f"{vendor.name.upper()}_API_KEY holds") as raised:
        vendor.at("http://127.0.0.1:1/v1", key)
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_no_log_of_any_package_holds_the_key(vendor: Vendor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    vendor.asked(vendor.says_hello, key=KEY)
    vendor.fault_of(vendor.refuses(401), key=KEY)
    assert caplog.records
    assert KEY not in caplog.text


def test_without_the_package_the_way_to_it_is_told(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(RequestRejected) as raised:
        vendor.at("http://127.0.0.1:1/v1", "")
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    assert f"pip install 'remit[{vendor.name}]'" in raised.value.message


def test_a_server_that_never_hangs_up_is_left_when_it_is_done(vendor: Vendor) -> None:
    async def play(call: Call, peer: Peer) -> None:
        await peer.begin()
        await peer.raw(b"".join(vendor.answer))
        await peer.wait_for_hanging_up()

    assert vendor.asked(play)[0].content == "Hello"


def test_what_follows_an_answer_is_never_read(vendor: Vendor) -> None:
    *pieces, last = vendor.answer
    assert vendor.asked(streams(*pieces, last + b"data: {never read"))[0].content == "Hello"


def test_an_answer_comes_whole_however_it_is_cut(vendor: Vendor) -> None:
    first, *others = vendor.answer
    for cut in (1, 20, len(first) - 1):
        play = streams(b": waiting\n\n", first[:cut], first[cut:], *others)
        assert vendor.asked(play)[0].content == "Hello"


@pytest.mark.parametrize(
    ("piece", "problem"),
    [
        (b"data: <html>\n\n", "no JSON"),
        (b"<html>\n\n</html>", "holds no event, and is said to be 'text/event-stream'"),
        (b"", "holds no event"),
    ],
)
def test_a_stream_that_is_no_answer_is_a_fault_that_costs(vendor: Vendor, piece: bytes, problem: str) -> None:
    fault = vendor.fault_of(streams(*filter(None, [piece])))
    assert (fault.code, fault.was_cut) == (MALFORMED, True)
    assert problem in fault.message


def test_a_stream_that_ends_too_early_is_a_fault_that_costs(vendor: Vendor) -> None:
    fault = vendor.fault_of(streams(*vendor.begun, ends=False))
    assert (fault.code, fault.was_cut, "was lost" in fault.message) == (BROKEN, True, True)
    fault = vendor.fault_of(streams(*vendor.begun))
    assert (fault.code, fault.was_cut) == (MALFORMED, True)
    assert "without saying why it stopped" in fault.message


def test_a_page_instead_of_a_stream_is_named(vendor: Vendor) -> None:
    async def play(call: Call, peer: Peer) -> None:
        await peer.status(200, "<html>Welcome</html>")

    fault = vendor.fault_of(play)
    assert (fault.code, "'text/html'; check the url" in fault.message) == (MALFORMED, True)


@pytest.mark.parametrize("packing", ["gzip", "br", "zstd", "deflate, gzip", "rot13"])
def test_a_packed_answer_is_refused_before_it_is_unpacked(vendor: Vendor, packing: str) -> None:
    async def play(call: Call, peer: Peer) -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-encoding: {packing}\r\ntransfer-encoding: chunked\r\n\r\n"
        await peer.send(head.encode())
        # Were it read, this would be megabytes of empty lines.
        await peer.raw(gzip.compress(b"\n" * 10_000_000))
        await peer.wait_for_hanging_up()

    fault = vendor.fault_of(play)
    assert (fault.code, fault.was_cut) == (MALFORMED, True)
    assert f"packed its answer as {packing!r}" in fault.message


def test_a_packed_refusal_is_not_unpacked_either(vendor: Vendor) -> None:
    async def play(call: Call, peer: Peer) -> None:
        body = gzip.compress(b'{"error": {"message": "unpacked words"}}')
        head = f"HTTP/1.1 500 No\r\ncontent-encoding: gzip\r\ncontent-length: {len(body)}\r\n\r\n"
        await peer.send(head.encode() + body)

    fault = vendor.fault_of(play)
    assert (fault.code, "unpacked words" in fault.message) == (BROKEN, False)


def test_bytes_that_are_no_http_are_a_lost_connection(vendor: Vendor) -> None:
    async def play(call: Call, peer: Peer) -> None:
        await peer.send(b"SSH-2.0-OpenSSH_9.9\r\n")

    assert vendor.fault_of(play).code is BROKEN


def test_a_line_without_an_end_is_given_up(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "EVENT_BYTES_MAX", 100_000)

    async def play(call: Call, peer: Peer) -> None:
        await peer.begin()
        while True:
            await peer.raw(b"x" * 65536)

    fault = vendor.fault_of(play)
    assert (fault.code, "event_bytes_max=100000" in fault.message) == (MALFORMED, True)


def test_a_refusal_without_an_end_is_given_up(vendor: Vendor) -> None:
    sent = 0

    async def play(call: Call, peer: Peer) -> None:
        nonlocal sent
        await peer.send(b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            await peer.raw(b"x" * 65536)
            sent += 65536

    assert vendor.fault_of(play).code is BROKEN
    # What lies in the buffers of both sockets comes on top.
    assert REFUSAL_BYTES_MAX <= sent < 100 * REFUSAL_BYTES_MAX


def test_silence_is_not_waited_out_for_ever(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "SILENCE_TIMEOUT_S", 0.05)

    async def play(call: Call, peer: Peer) -> None:
        await peer.wait_for_hanging_up()

    fault = vendor.fault_of(play)
    assert (fault.code, fault.was_cut, "fell silent" in fault.message) == (BROKEN, True, True)


def test_a_listener_that_breaks_is_heard_of(vendor: Vendor) -> None:
    def breaks(chunk: StreamChunk) -> None:
        raise LookupError(chunk.text)

    with pytest.raises(LookupError, match="Hel"):
        vendor.asked(vendor.says_hello, on_chunk=breaks)


def test_the_users_own_machine_is_reached_without_a_proxy(vendor: Vendor, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{asyncio.run(free_port())}")
    assert vendor.asked(vendor.says_hello)[0].content == "Hello"


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


def test_a_certificate_that_no_authority_vouches_for_is_not_trusted(vendor: Vendor, tmp_path: Path) -> None:
    async def scenario() -> None:
        chat = ChatServer(vendor.says_hello)
        server = await asyncio.start_server(chat.answer, "127.0.0.1", 0, ssl=self_signed(tmp_path))
        async with server:
            await vendor.at(f"https://localhost:{server.sockets[0].getsockname()[1]}/v1", KEY).infer(HELLO)

    with pytest.raises(EngineFault, match="CERTIFICATE_VERIFY_FAILED") as raised:
        asyncio.run(scenario())
    assert raised.value.code is UNAVAILABLE
