"""Webhooks: one signed POST to an address that an operator named, and what came back.

Rule 1: the body is signed with HMAC-SHA256 over its time and its bytes, so that whoever has the key knows who sent it,
        and that it was not sent again by somebody else much later.
Rule 2: all of it happens within one deadline and one count of bytes; no redirect is followed and no proxy is asked.
Rule 3: what comes back is data. Whether it may decide anything depends on whom it came from: an answer counts over TLS,
        whose certificate was verified, and from this very machine.
"""

import asyncio
import http.client
import io
import ssl
from collections.abc import Mapping
from hashlib import sha256
from hmac import new as new_hmac
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from remit.core.failure import RemitError, RequestRejected
from remit.core.limits.queue import check_webhook
from remit.core.record import Record

WEBHOOK_UNREACHABLE = "WEBHOOK_UNREACHABLE"
WEBHOOK_KEY_INVALID = "WEBHOOK_KEY_INVALID"

# One delivery, from the connection to the last byte of the answer. Whoever needs longer answers first and decides later.
POST_MS_MAX = 10_000
# An answer is a decision of a few lines.
ANSWER_BYTES_MAX = 65_536
# Status and headers, besides the body.
HEAD_BYTES_MAX = 65_536
# Half of what the hash has: a shorter key could be guessed.
KEY_BYTES_MIN = 16
KEY_BYTES_MAX = 4_096

SIGNATURE_HEADER = "Remit-Signature"
TIME_HEADER = "Remit-Time"
ITEM_HEADER = "Remit-Item"

_READ_BYTES = 16_384
_PORTS = {"http": 80, "https": 443}
_HEAD_END = b"\r\n\r\n"
_LENGTH = "Content-Length"


class Posted(Record):
    """What a webhook answered. A body that was too long is cut, and then it is no answer."""

    status: int
    body: bytes = b""
    is_complete: bool = True


def signature_of(key: bytes, at_ms: int, body: bytes) -> str:
    """The signature of a body that is sent at a time."""
    return new_hmac(key, f"{at_ms}.".encode() + body, sha256).hexdigest()


def check_key(key: bytes) -> bytes:
    """A key to sign with, unless it is too short to be one."""
    if not KEY_BYTES_MIN <= len(key) <= KEY_BYTES_MAX:
        message = f"the key of the webhook has {len(key)} bytes, outside {KEY_BYTES_MIN} to {KEY_BYTES_MAX}"
        raise RequestRejected(WEBHOOK_KEY_INVALID, f"{message}; `openssl rand -hex 32` makes one")
    return key


def place_of(url: str) -> str:
    """By which name deliveries to an address are remembered: its host, and a hash, since an address may hold a secret."""
    return f"{urlsplit(url).hostname}#{sha256(url.encode()).hexdigest()[:16]}"


def may_decide(url: str) -> bool:
    """Whether an answer from this address can be taken for that of whoever is meant."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        # A name is what a resolver makes of it; only addresses speak for themselves.
        return False


async def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout_ms: int = POST_MS_MAX) -> Posted:
    """Send a body; raises RemitError with WEBHOOK_UNREACHABLE when nobody answered properly in time."""
    parts = urlsplit(check_webhook(url))
    try:
        port = parts.port or _PORTS[parts.scheme]
        async with asyncio.timeout(timeout_ms / 1000):
            trust = ssl.create_default_context() if parts.scheme == "https" else None
            reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=trust)
            try:
                writer.write(_head(url, len(body), headers) + body)
                await writer.drain()
                data, is_complete = await _read(reader)
            finally:
                # Nothing is left to be sent, and nobody waits for a farewell.
                writer.transport.abort()
        return _posted(data, is_complete=is_complete)
    except TimeoutError as error:
        raise _unreachable(url, f"took longer than {timeout_ms} ms") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _unreachable(url, f"gave no proper answer ({type(error).__name__})") from error


def _head(url: str, length: int, headers: Mapping[str, str]) -> bytes:
    parts = urlsplit(url)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [f"POST {target} HTTP/1.1", f"Host: {parts.netloc}", "User-Agent: remit", "Connection: close"]
    lines += ["Content-Type: application/json", f"{_LENGTH}: {length}", "Accept-Encoding: identity"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join((*lines, "", "")).encode("ascii")


async def _read(reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    """All that is sent, up to the limit, and whether that was all; a server that keeps the connection is not waited for."""
    data = bytearray()
    while part := await reader.read(_READ_BYTES):
        data += part
        if len(data) > HEAD_BYTES_MAX + ANSWER_BYTES_MAX:
            return bytes(data), False
        if _is_whole(data):
            break
    return bytes(data), True


def _is_whole(data: bytearray) -> bool:
    """Whether a body whose length was told is there."""
    head, mark, body = bytes(data).partition(_HEAD_END)
    for line in head.split(b"\r\n") if mark else ():
        name, _, value = line.partition(b":")
        if name.strip().lower() == _LENGTH.lower().encode() and value.strip().isdigit():
            return len(body) >= int(value)
    return False


def _posted(data: bytes, *, is_complete: bool) -> Posted:
    # The reader of the standard library asks a socket for a file, and gets one.
    with http.client.HTTPResponse(_Lent(data), method="POST") as response:  # type: ignore[arg-type]
        response.begin()
        try:
            body = response.read(ANSWER_BYTES_MAX + 1)
        except http.client.IncompleteRead as error:
            body, is_complete = error.partial, False
        is_whole = is_complete and len(body) <= ANSWER_BYTES_MAX and not response.length
        return Posted(response.status, body[:ANSWER_BYTES_MAX], is_whole)


class _Lent:
    """Passes for a socket where only its file is asked for."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def makefile(self, mode: str) -> Any:
        """The file to read from."""
        return io.BytesIO(self._data)


def _unreachable(url: str, what: str) -> RemitError:
    # The path of an address may be a secret.
    return RemitError(WEBHOOK_UNREACHABLE, f"the webhook at {urlsplit(url).hostname} {what}; it is tried again")
