"""Webhooks: one signed POST to an address that an operator named, and what came back.

Rule 1: the body is signed with HMAC-SHA256 over its time and its bytes, so that the holder of the key knows who sent it,
        and that it was not sent again by others much later.
Rule 2: all of it happens within one deadline and one count of bytes; no redirect is followed and no proxy is asked.
Rule 3: what comes back is data. Whether it may decide anything depends on whom it came from: an answer counts over TLS,
        whose certificate was verified, and from this very machine.
"""

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from hmac import new as new_hmac
from ipaddress import ip_address
from urllib.parse import urlsplit

from remit.core.failure import RemitError, RequestRejected
from remit.core.limits.queue import check_webhook
from remit.core.record import Record
from remit.tool.builtin.http_client import HTTP_TOO_SLOW, Deadline, HttpRequest, exchanged, resolved
from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.targets import PORTS, Target
from remit.tool.call.cancel_token import CancelToken
from remit.tool.call.threads import in_thread

WEBHOOK_UNREACHABLE = "WEBHOOK_UNREACHABLE"
WEBHOOK_KEY_INVALID = "WEBHOOK_KEY_INVALID"

# One delivery, from the connection to the last byte of the answer. A webhook that needs longer answers first and decides later.
POST_MS_MAX = 10_000
# An answer is a decision of a few lines.
ANSWER_BYTES_MAX = 65_536
# Half of what the hash has: a shorter key could be guessed.
KEY_BYTES_MIN = 16
KEY_BYTES_MAX = 4_096

SIGNATURE_HEADER = "Remit-Signature"
TIME_HEADER = "Remit-Time"
ITEM_HEADER = "Remit-Item"


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


def address_name(url: str) -> str:
    """By which name deliveries to an address are remembered: its host, and a hash, since an address may hold a secret."""
    return f"{urlsplit(url).hostname}#{sha256(url.encode()).hexdigest()[:16]}"


def webhook_may_decide(url: str) -> bool:
    """Whether an answer from this address can be taken for that of the webhook that is meant."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:
        # A name is what a resolver makes of it; only addresses speak for themselves.
        return False


async def post(url: str, body: bytes, headers: Mapping[str, str], *, timeout_ms: int = POST_MS_MAX) -> Posted:
    """Send a body; raises RemitError with WEBHOOK_UNREACHABLE when there was no proper answer in time."""
    parts = urlsplit(check_webhook(url))
    token = CancelToken()
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        target = Target(parts.scheme, parts.hostname or "", parts.port or PORTS[parts.scheme], path)
        sent = {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
        exchange = HttpRequest(target, "POST", sent, body, answer_bytes_max=ANSWER_BYTES_MAX, is_lenient=True)
        async with asyncio.timeout(timeout_ms / 1000):
            posted: Posted = await in_thread(_posted, exchange, Deadline(token, timeout_ms))
    except (TimeoutError, ToolRefused) as error:
        code = HTTP_TOO_SLOW if isinstance(error, TimeoutError) else error.code
        slow, improper = f"took longer than {timeout_ms} ms", f"gave no proper answer ({code})"
        raise _unreachable(url, slow if code == HTTP_TOO_SLOW else improper) from error
    except ValueError as error:
        raise _unreachable(url, "has an address that cannot be read") from error
    else:
        return posted
    finally:
        # The thread that waits for the answer gives it up, too.
        token.cancel()


def _posted(exchange: HttpRequest, deadline: Deadline) -> Posted:
    answer = exchanged(exchange, resolved(exchange.target, deadline), deadline)
    return Posted(answer.status, answer.body, answer.is_complete)


def _unreachable(url: str, what: str) -> RemitError:
    # The path of an address may be a secret.
    return RemitError(WEBHOOK_UNREACHABLE, f"the webhook at {urlsplit(url).hostname} {what}; it is tried again")
