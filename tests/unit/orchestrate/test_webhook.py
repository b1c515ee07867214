"""One signed POST, and what comes back."""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Callable

import pytest

from remit.core.failure import RemitError, RequestRejected
from remit.orchestrate.people.webhook import (
    ANSWER_BYTES_MAX,
    KEY_BYTES_MIN,
    WEBHOOK_KEY_INVALID,
    WEBHOOK_UNREACHABLE,
    Posted,
    address_name,
    check_key,
    post,
    signature_of,
    webhook_may_decide,
)
from remit.tool.builtin.http_client import OVERHEAD_BYTES_MAX
from tests.unit.orchestrate.hooked import hooked

Serving = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def posted_to(serve: Serving, *, timeout_ms: int = 10_000) -> Posted:
    """What a server that behaves so makes of a POST."""

    async def play() -> Posted:
        served: list[asyncio.Task[None] | None] = []

        async def tracked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            served.append(asyncio.current_task())
            try:
                await serve(reader, writer)
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(tracked, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            return await post(f"http://127.0.0.1:{port}", b"{}", {}, timeout_ms=timeout_ms)
        finally:
            server.close()
            await asyncio.gather(*(task for task in served if task is not None), return_exceptions=True)
            await asyncio.sleep(0)

    return asyncio.run(play())


def saying(data: bytes) -> Serving:
    """A server that says this, whatever it is told, and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()
        writer.close()

    return serve


def test_a_body_arrives_as_it_was_sent_with_its_headers() -> None:
    with hooked(lambda values: (201, b"ok")) as hook:
        headers = {"Remit-Time": "5", "Remit-Signature": "sha256=x"}
        posted = asyncio.run(post(hook.url, '{"a": "ü"}'.encode(), headers))
    assert posted == Posted(201, b"ok")
    assert hook.got == [{"a": "ü"}]
    assert hook.headers[0]["Content-Type"] == "application/json"
    assert hook.signed == [False]


def test_a_signature_is_an_hmac_over_time_and_bytes() -> None:
    expected = hmac.new(b"key", b"5.body", hashlib.sha256).hexdigest()
    assert signature_of(b"key", 5, b"body") == expected
    assert len({signature_of(b"key", 6, b"body"), signature_of(b"yek", 5, b"body"), expected}) == 3


@pytest.mark.parametrize("length", [0, KEY_BYTES_MIN - 1, 5000])
def test_a_key_that_could_be_guessed_or_is_none_is_refused(length: int) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_key(b"k" * length)
    assert refused.value.code == WEBHOOK_KEY_INVALID
    assert check_key(b"k" * KEY_BYTES_MIN)


@pytest.mark.parametrize(
    ("url", "may"),
    [
        ("https://example.org/x", True),
        ("http://127.0.0.1:1/x", True),
        ("http://[::1]/x", True),
        ("http://localhost/x", False),
        ("http://example.org/x", False),
        ("http://10.0.0.1/x", False),
    ],
)
def test_an_answer_decides_only_over_tls_or_from_this_machine(url: str, may: bool) -> None:
    assert webhook_may_decide(url) is may


def test_an_address_is_remembered_without_what_may_be_secret_in_it() -> None:
    place = address_name("https://example.org/hooks/T0K3N?key=s3cret")
    assert place.startswith("example.org#")
    assert "T0K3N" not in place
    assert place != address_name("https://example.org/hooks/other")


def test_a_body_in_chunks_and_one_without_a_length_are_read() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
    assert posted_to(saying(chunked)) == Posted(200, b"hi")
    assert posted_to(saying(b"HTTP/1.0 204 None\r\n\r\n")) == Posted(204)


def test_a_server_that_keeps_the_connection_open_is_not_waited_for() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        await reader.read()
        writer.close()

    assert posted_to(serve) == Posted(200, b"hi")


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhi",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (ANSWER_BYTES_MAX + 1),
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * (ANSWER_BYTES_MAX + OVERHEAD_BYTES_MAX + 1),
    ],
)
def test_an_answer_that_is_cut_or_too_long_is_none(said: bytes) -> None:
    posted = posted_to(saying(said))
    assert posted.status == 200
    assert not posted.is_complete
    assert len(posted.body) <= ANSWER_BYTES_MAX


@pytest.mark.parametrize("said", [b"", b"hello\r\n\r\n", b"HTTP/1.1 ok\r\n\r\n", b"\x00" * 100])
def test_what_is_no_http_is_no_answer(said: bytes) -> None:
    with pytest.raises(RemitError) as refused:
        posted_to(saying(said))
    assert refused.value.code == WEBHOOK_UNREACHABLE


def test_a_server_that_never_answers_is_waited_for_only_so_long() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    with pytest.raises(RemitError, match="took longer than 50 ms"):
        posted_to(serve, timeout_ms=50)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://127.0.0.1:99999/", "https://127.0.0.1:1/"])
def test_nobody_there_is_told_without_the_path(url: str) -> None:
    with pytest.raises(RemitError) as refused:
        asyncio.run(post(f"{url}T0K3N", b"{}", {}))
    assert refused.value.code == WEBHOOK_UNREACHABLE
    assert "T0K3N" not in refused.value.message
