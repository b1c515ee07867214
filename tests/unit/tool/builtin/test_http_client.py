"""A fetch goes to the checked address, is verified for the name, and ends in time, whatever the server does."""

import socket
import ssl
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from remit.tool.builtin import http_client
from remit.tool.builtin.http_client import (
    BODY_BYTES_MAX,
    HTTP_ANSWER_INVALID,
    HTTP_NOT_CONNECTED,
    HTTP_NOT_RESOLVED,
    HTTP_NOT_TRUSTED,
    HTTP_TOO_LARGE,
    HTTP_TOO_SLOW,
    INTERNET,
    OVERHEAD_BYTES_MAX,
    Deadline,
    HttpAnswer,
    Reach,
    fetched,
    trusted,
)
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.targets import HTTP_HOST_REFUSED, AllowedHost, target_of
from remit.tool.call import threads as tool_threads
from remit.tool.call.cancel_token import CancelToken, ToolCancelled
from remit.tool.call.threads import THREADS_MAX, Threads, threads
from tests.unit.tool.builtin.answering import HERE, Server, reply, serving

# Together they take seconds.
pytestmark = pytest.mark.slow

NAME = "pages.example.org"
# For servers that never end; long enough for everything that ends at once.
SHORT_MS = 600


def fetch(server: Server, url: str = "", *, reach: Reach = HERE, fetch_ms_max: int = 20_000) -> HttpAnswer:
    return fetched(target_of(url or server.url(), server.hosts), reach, Deadline(CancelToken(), fetch_ms_max))


def refusal(server: Server, url: str = "", *, reach: Reach = HERE, fetch_ms_max: int = 20_000) -> ToolRefused:
    with pytest.raises(ToolRefused) as caught:
        fetch(server, url, reach=reach, fetch_ms_max=fetch_ms_max)
    return caught.value


class Names:
    """What the names of a test resolve to, and how often they were looked up."""

    def __init__(self) -> None:
        self.answers: list[list[str]] = []
        self.asked: list[str] = []
        self.pause: Event | None = None

    def look_up(self, host: str, port: int, **options: Any) -> list[tuple[Any, ...]]:
        self.asked.append(host)
        if self.pause is not None:
            self.pause.wait()
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Names:
    """The name service of the world, which no test may ask."""
    found = Names()
    monkeypatch.setattr(socket, "getaddrinfo", found.look_up)
    return found


def test_a_page_is_fetched_with_a_request_that_says_nothing_about_us() -> None:
    with serving(reply(b"hello")) as server:
        answer = fetch(server, server.url("/a?b=c#d"))
    assert answer == HttpAnswer(200, "", "text/plain", b"hello", is_complete=True)
    (asked,) = server.asked
    assert asked == (
        f"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nUser-Agent: remit\r\n"
        f"Accept: {http_client.ACCEPT}\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
    )


def test_without_the_operators_word_this_machine_is_not_reached() -> None:
    with serving(reply()) as server:
        found = refusal(server, reach=INTERNET)
    assert found.code == HTTP_HOST_REFUSED
    assert server.asked == []


def test_a_name_is_resolved_once_and_the_connection_goes_to_what_was_checked(names: Names) -> None:
    # A client that asked a second time would get an address of the provider.
    names.answers = [["127.0.0.1"], ["169.254.169.254"]]
    with serving(reply(b"mine")) as server:
        assert fetch(server, server.url(host=NAME)).body == b"mine"
    assert names.asked == [NAME]
    assert f"Host: {NAME}:{server.port}\r\n" in server.asked[0]


@pytest.mark.parametrize(
    "addresses", [["8.8.8.8", "10.0.0.1"], ["169.254.169.254"], ["8.8.8.8", "::ffff:10.0.0.1"], ["fe80::1%eth0"]]
)
def test_one_inner_address_of_a_name_spoils_all_and_is_not_told(names: Names, addresses: list[str]) -> None:
    names.answers = [addresses]
    with serving(reply()) as server:
        found = refusal(server, server.url(host=NAME))
    assert found.code == HTTP_HOST_REFUSED
    assert not any(address in str(found) for address in addresses)


def test_a_name_without_addresses_is_told(names: Names) -> None:
    names.answers = [[]]
    with serving(reply()) as server:
        assert refusal(server, server.url(host=NAME)).code == HTTP_NOT_RESOLVED


def test_a_name_that_cannot_be_resolved_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*values: Any, **options: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", fails)
    with serving(reply()) as server:
        assert refusal(server, server.url(host=NAME)).code == HTTP_NOT_RESOLVED


def test_a_look_up_that_hangs_is_left_behind_in_time(names: Names) -> None:
    names.answers, names.pause = [["127.0.0.1"]], Event()
    with serving(reply()) as server:
        try:
            assert refusal(server, server.url(host=NAME), fetch_ms_max=SHORT_MS).code == HTTP_TOO_SLOW
        finally:
            names.pause.set()


def test_names_are_looked_up_while_every_thread_of_the_tools_waits_for_one(
    names: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.answers = [["127.0.0.1"]]
    # Threads that no other test has left busy.
    pool, all_taken = Threads(), Barrier(THREADS_MAX)
    monkeypatch.setattr(tool_threads, "_threads_of", lambda pid: pool)

    def fetch_one(server: Server) -> bytes:
        all_taken.wait()
        return fetch(server, server.url(host=NAME)).body

    with serving(reply(b"hello")) as server:
        waiting = [threads().submit(partial(fetch_one, server)) for _ in range(THREADS_MAX)]
        assert {future.result() for future in waiting} == {b"hello"}


def test_the_next_address_is_tried_when_one_takes_no_connection(names: Names) -> None:
    with serving(reply(b"second")) as server:
        # No server listens at this address of the machine.
        names.answers = [["127.0.0.2", "127.0.0.1"]]
        assert fetch(server, server.url(host=NAME)).body == b"second"


def test_a_port_where_nobody_listens_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    target = target_of(f"http://127.0.0.1:{port}/", [AllowedHost("127.0.0.1", port)])
    with pytest.raises(ToolRefused) as caught:
        fetched(target, HERE, Deadline(CancelToken()))
    assert caught.value.code == HTTP_NOT_CONNECTED


def test_a_cancelled_fetch_does_not_connect() -> None:
    token = CancelToken()
    token.cancel()
    with serving(reply()) as server, pytest.raises(ToolCancelled):
        fetched(target_of(server.url(), server.hosts), HERE, Deadline(token))
    assert server.asked == []


def test_a_fetch_that_is_cancelled_while_its_name_is_looked_up_does_not_connect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    token = CancelToken()

    def cancels(host: str, port: int, **options: Any) -> list[tuple[Any, ...]]:
        token.cancel()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", cancels)
    with serving(reply()) as server:
        target = target_of(server.url(host=NAME), server.hosts)
        with pytest.raises(ToolCancelled):
            fetched(target, HERE, Deadline(token))
    assert server.asked == []


def test_a_long_body_is_cut_and_says_so() -> None:
    with serving(reply(b"x" * (BODY_BYTES_MAX + 1))) as server:
        answer = fetch(server)
    assert (len(answer.body), answer.is_complete) == (BODY_BYTES_MAX, False)
    with serving(reply(b"x" * BODY_BYTES_MAX)) as server:
        assert fetch(server).is_complete


def test_a_body_shorter_than_its_length_is_not_complete() -> None:
    with serving(reply(b"half", content_length="8")) as server:
        answer = fetch(server)
    assert (answer.body, answer.is_complete) == (b"half", False)


def test_a_body_in_chunks_is_put_together() -> None:
    body = b"2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\n\r\n"
    with serving(reply(body, content_length="", transfer_encoding="chunked")) as server:
        assert fetch(server).body == b"hello"


def drip(client: socket.socket, stopping: Event) -> None:
    """A byte now and then, for ever: each read comes back, and the page never ends."""
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while not stopping.wait(0.02):
        client.sendall(b".")


def slow_headers(client: socket.socket, stopping: Event) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\n")
    while not stopping.wait(0.02):
        client.sendall(b"X: y\r\n"[:1])


def silence(client: socket.socket, stopping: Event) -> None:
    stopping.wait()


def flood(client: socket.socket, stopping: Event) -> None:
    """Interim answers without end, which the reader of the standard library would skip for ever."""
    while not stopping.is_set():
        client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)


@pytest.mark.parametrize("server_does", [drip, slow_headers, silence])
def test_a_server_that_takes_its_time_is_left_in_time(server_does: Any) -> None:
    with serving(server_does) as server:
        assert refusal(server, fetch_ms_max=SHORT_MS).code == HTTP_TOO_SLOW


def test_an_answer_that_never_begins_is_left_when_its_bytes_are_used_up() -> None:
    with serving(flood) as server:
        assert refusal(server).code == HTTP_TOO_LARGE


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        reply(b"zz\r\n", content_length="", transfer_encoding="chunked"),
        reply(b"5\r\nab", content_length="", transfer_encoding="chunked"),
        reply(b"-5\r\nab", content_length="", transfer_encoding="chunked"),
        reply(b"-1\r\n" + b"x" * 150_000, content_length="", transfer_encoding="chunked"),
        b"<html>an answer of the first days</html>",
        reply(b"x", content_encoding="gzip"),
        reply(b"x", content_encoding="br, identity"),
        reply(b"x", content_length="", transfer_encoding="gzip, chunked"),
    ],
)
def test_an_answer_that_is_no_proper_http_or_is_packed_is_refused(answer: bytes) -> None:
    with serving(answer) as server:
        assert refusal(server).code in {HTTP_ANSWER_INVALID, HTTP_NOT_CONNECTED}


def test_a_connection_that_is_cut_off_is_told() -> None:
    def cut(client: socket.socket, stopping: Event) -> None:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()

    with serving(cut) as server:
        assert refusal(server).code == HTTP_NOT_CONNECTED


def test_headers_and_body_share_one_count() -> None:
    # Headers just within their room, then more of a body than is read.
    head = b"".join(b"X-%d: %s\r\n" % (number, b"y" * 600) for number in range(90))
    assert len(head) < OVERHEAD_BYTES_MAX
    with serving(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + b"x" * (2 * BODY_BYTES_MAX)) as server:
        assert len(fetch(server).body) == BODY_BYTES_MAX


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's certificate for one name, and a client that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "server.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    client = trusted()
    client.load_verify_locations(pem)
    return server, client


def test_a_certificate_is_verified_for_the_name_and_not_for_the_address(
    names: Names, certificate: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    names.answers = [["127.0.0.1"]]
    context, trust = certificate
    reach = Reach(HERE.networks, trust)
    with serving(reply(b"secured"), context=context) as server:
        assert fetch(server, server.url(scheme="https", host=NAME), reach=reach).body == b"secured"
        found = refusal(server, server.url(scheme="https"), reach=reach)
        assert found.code == HTTP_NOT_TRUSTED
        # No authority of this machine has signed it.
        assert refusal(server, server.url(scheme="https", host=NAME)).code == HTTP_NOT_TRUSTED


def test_a_server_that_speaks_no_tls_is_told(names: Names) -> None:
    names.answers = [["127.0.0.1"]]
    with serving(b"HTTP/1.1 400 Bad Request\r\n\r\n") as server:
        assert refusal(server, server.url(scheme="https", host=NAME)).code == HTTP_NOT_CONNECTED


def test_a_handshake_that_never_ends_is_left_in_time(names: Names) -> None:
    names.answers = [["127.0.0.1"]]

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        target = target_of(f"https://{NAME}:{port}/", [AllowedHost(NAME, port)])
        with pytest.raises(ToolRefused) as caught:
            fetched(target, HERE, Deadline(CancelToken(), SHORT_MS))
    assert caught.value.code == HTTP_TOO_SLOW


def test_what_is_trusted_by_default_verifies_names() -> None:
    context = trusted()
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
