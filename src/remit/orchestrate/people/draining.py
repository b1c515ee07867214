"""Draining a queue: each of its items is delivered to a webhook, whose answer may decide it.

Rule 1: an item is delivered at least once. Its id is told with it, so that the webhook knows a second delivery; what was
        delivered where is remembered, and not delivered there again.
Rule 2: what is sent is bounded. A packet that had to be cut is sent without its version, so it cannot be approved there.
Rule 3: an answer decides only what it was sent: it must name the version of the packet, and who decided. It goes the way
        of `remit approve`, and is judged there.
Rule 4: whatever goes wrong with one item is told, and the others go on.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.codec import plain_value, read_json
from remit.core.journal.codec import to_json as written
from remit.core.limits.queue import OK, Delivery, Receipt, ReceiptKind, is_ok
from remit.core.record import JsonObject, Record
from remit.core.run.approval import Approval, What
from remit.core.run.request_checks import ID_CHARS_MAX
from remit.core.run.signals import Signal, UserSignal
from remit.core.schema.json_text import KeyRepeated
from remit.observe.logs import run_fields
from remit.observe.people.queue_items import QueueItem
from remit.orchestrate.people.webhook import (
    ITEM_HEADER,
    KEY_BYTES_MAX,
    POST_MS_MAX,
    SIGNATURE_HEADER,
    TIME_HEADER,
    WEBHOOK_UNREACHABLE,
    address_name,
    check_key,
    post,
    signature_of,
    webhook_may_decide,
)
from remit.orchestrate.ports import Clock
from remit.tool.call.outcomes import ToolFault
from remit.tool.secrets.vault import Vault

if TYPE_CHECKING:
    from remit.orchestrate.facade import System

WEBHOOK_REFUSED = "WEBHOOK_REFUSED"
WEBHOOK_ANSWER_INVALID = "WEBHOOK_ANSWER_INVALID"
WEBHOOK_KEY_MISSING = "WEBHOOK_KEY_MISSING"

# Under which name the secrets of a store hold the key to sign with.
SECRET_NAME = "webhook_key"  # noqa: S105  # a name, and no password

# A packet with all that belongs to it; what is longer is looked at where it was asked.
BODY_BYTES_MAX = 65_536
# How often an item is tried before the others have their turn, and how long is waited in between.
ATTEMPTS_MAX = 5
PAUSE_MS, PAUSE_MS_MAX = 500, 30_000
# How often a follower looks for new items.
POLL_MS = 2_000
REASON_CHARS_MAX = 2_000
CHANNEL = "webhook"
# How a body is written; a receiver that does not know the number should not guess.
FORMAT = 1

# Worth trying again: too busy, too slow, or broken on the other side.
_AGAIN = frozenset({408, 425, 429})
_BROKEN_FROM = 500
_DECISIONS = {"approve": Signal.APPROVE, "reject": Signal.REJECT}

Pause = Callable[[float], Awaitable[None]]

_log = logging.getLogger(__name__)


class WebhookDecision(Record):
    """The answer of a webhook, and in whose name it was given."""

    kind: Signal
    by: str
    reason: str = ""


class Drain:
    """Delivers the items of one queue to one address."""

    def __init__(
        self, system: "System", queue: str, url: str, key: bytes, *, clock: Clock, pause: Pause = asyncio.sleep
    ) -> None:
        self._system = system
        self._queue = queue
        self._url = url
        self._place = address_name(url)
        self._key = check_key(key)
        self._clock = clock
        self._pause = pause

    async def once(self) -> AsyncGenerator[Delivery, None]:
        """Deliver what was not delivered yet, the gravest first; what an answer decides is told to its run at once."""
        receipts = await self._system.store.receipts.kept(ReceiptKind.DELIVERED)
        done = {one.item for one in receipts if one.by == self._place}
        attempts = ATTEMPTS_MAX
        for item in await self._system.queues.items(self._queue):
            if item.id not in done and not item.is_outside:
                delivery = await self._deliver(item, attempts)
                # Where nothing answers the first, the others are not waited for as long again.
                attempts = 1 if delivery.code == WEBHOOK_UNREACHABLE else ATTEMPTS_MAX
                yield delivery

    async def follow(self) -> AsyncGenerator[Delivery, None]:
        """Deliver until the caller stops; after a delivery that failed, the next look is a longer while away."""
        while True:
            has_failed = False
            async for delivery in self.once():
                has_failed |= not delivery.is_delivered
                yield delivery
            await self._pause((PAUSE_MS_MAX if has_failed else POLL_MS) / 1000)

    async def _deliver(self, item: QueueItem, attempts: int) -> Delivery:
        asked = None if item.what is What.ENDING else await self._asked(item)
        if asked is None and item.what is not What.ENDING:
            return Delivery(item.id, OK, message="it was answered meanwhile, and not sent")
        body, version = item_body(item, asked, self._clock.now_ms())
        delivery, answer = await self._tried(item, body, attempts)
        if not delivery.is_delivered:
            return delivery
        receipt = Receipt(ReceiptKind.DELIVERED, item.id, item.run_id, self._place, self._clock.now_ms())
        await self._system.store.receipts.keep(receipt)
        return await self._decided(item, delivery, answer, version)

    async def _asked(self, item: QueueItem) -> Approval | None:
        try:
            return await self._system.archive.approval(item.id)
        except RemitError:
            return None

    async def _tried(self, item: QueueItem, body: bytes, attempts: int) -> tuple[Delivery, bytes]:
        """Send an item until it is taken, or not worth trying again now."""
        delivery = Delivery(item.id)
        for attempt in range(attempts):
            if attempt:
                await self._pause(min(PAUSE_MS << (attempt - 1), PAUSE_MS_MAX) / 1000)
            at_ms = self._clock.now_ms()
            headers = {
                TIME_HEADER: str(at_ms),
                ITEM_HEADER: item.id,
                SIGNATURE_HEADER: f"sha256={signature_of(self._key, at_ms, body)}",
            }
            try:
                posted = await post(self._url, body, headers)
            except RemitError as error:
                delivery = Delivery(item.id, code=str(error.code), message=error.message)
                continue
            if is_ok(posted.status):
                return Delivery(item.id, posted.status), posted.body if posted.is_complete else b""
            message = f"the webhook answered with status {posted.status}"
            delivery = Delivery(item.id, posted.status, WEBHOOK_REFUSED, message)
            if posted.status not in _AGAIN and posted.status < _BROKEN_FROM:
                break
        return delivery, b""

    async def _decided(self, item: QueueItem, delivery: Delivery, answer: bytes, version: str) -> Delivery:
        """What the answer decides, told to the run."""
        try:
            decision = decision_in(answer, version)
            if decision is None:
                return delivery
            if not webhook_may_decide(self._url):
                message = "its answer came without TLS from another machine, so it decides nothing"
                raise RemitError(WEBHOOK_ANSWER_INVALID, message)
            heard = await self._system.signal(_signal(item, decision, version, self._clock.now_ms()))
            if heard.rests_because:
                await self._go_on(item, decision)
        except RemitError as error:
            _log.warning("an answer of a webhook decided nothing: %s", error.code, extra=run_fields(item.run_id))
            return Delivery(item.id, delivery.status, str(error.code), error.message)
        return Delivery(item.id, delivery.status, decision=decision.kind.value, by=decision.by)

    async def _go_on(self, item: QueueItem, decision: WebhookDecision) -> None:
        """Let a run go on that heard a no; one that cannot stays paused, and a resume says why."""
        resumed = UserSignal(
            signal_id=str(uuid4()),
            type=Signal.RESUME,
            run_id=item.run_id,
            user_id=decision.by,
            channel_type=CHANNEL,
            channel_id=item.queue,
        )
        try:
            await self._system.signal(resumed)
        except RemitError as error:
            _log.warning("a run heard a no and rests: %s", error, extra=run_fields(item.run_id))


def _signal(item: QueueItem, decision: WebhookDecision, version: str, at_ms: int) -> UserSignal:
    payload: JsonObject = {"packet_id": item.id, "packet": version}
    if decision.reason:
        payload["reason"] = decision.reason
    return UserSignal(
        signal_id=str(uuid4()),
        type=decision.kind,
        run_id=item.run_id,
        user_id=decision.by,
        channel_type=CHANNEL,
        channel_id=item.queue,
        payload=payload,
        at_ms=at_ms,
    )


def item_body(item: QueueItem, asked: Approval | None, at_ms: int) -> tuple[bytes, str]:
    """An item as it is sent, and the version of the packet in it; empty where none can be decided there."""
    shown = None if asked is None else plain_value(asked)
    version = "" if asked is None else asked.packet
    body = _written(item, shown, version, at_ms)
    if len(body) <= BODY_BYTES_MAX:
        return body, version
    see = f"remit approvals {item.id}"
    cut = {"id": item.id, "tool": "" if asked is None else asked.tool[:ID_CHARS_MAX], "is_cut": True, "see": see}
    return _written(item, cut, "", at_ms), ""


def _written(item: QueueItem, asked: JsonObject | None, version: str, at_ms: int) -> bytes:
    values: JsonObject = {
        "format": FORMAT,
        "id": item.id,
        "queue": item.queue,
        "at_ms": at_ms,
        "item": plain_value(item),
    }
    values["asked"], values["packet"] = asked, version
    return written(values).encode()


def decision_in(answer: bytes, version: str) -> WebhookDecision | None:
    """What an answer decides about the packet of this version; None where it decides nothing.

    Raises RemitError where it would decide and may not.
    """
    try:
        said = read_json(answer) if answer.strip() else None
    except KeyRepeated as error:
        raise RemitError(WEBHOOK_ANSWER_INVALID, f"the answer decides nothing: {error}") from error
    except ValueError:
        # Many webhooks answer with a word of thanks.
        return None
    if not isinstance(said, dict) or "decision" not in said:
        return None
    if not isinstance(said["decision"], str) or said["decision"] not in _DECISIONS:
        raise _invalid("decision", said["decision"], f"one of {', '.join(_DECISIONS)}")
    by, reason = said.get("by"), said.get("reason", "")
    if not isinstance(by, str) or not 0 < len(by.strip()) <= len(by) <= ID_CHARS_MAX:
        raise _invalid("by", by, f"who decided, in up to {ID_CHARS_MAX} characters")
    if not isinstance(reason, str) or len(reason) > REASON_CHARS_MAX:
        raise _invalid("reason", reason, f"a text of up to {REASON_CHARS_MAX} characters")
    if not version or said.get("packet") != version:
        raise _invalid("packet", said.get("packet"), "the version that was sent")
    return WebhookDecision(_DECISIONS[said["decision"]], by, reason)


def _invalid(key: str, value: Any, wanted: str) -> RemitError:
    return RemitError(WEBHOOK_ANSWER_INVALID, f"the answer has {key}={str(value)[:80]!r}, which is not {wanted}")


async def webhook_key(vault: Vault, key_file: Path | None) -> bytes:
    """The key to sign with: that of a file, else the secret of its name; raises RemitError where there is none."""
    if key_file is None:
        try:
            filled = await vault.fill(f"the webhook of {SECRET_NAME}", (("key", SECRET_NAME),), timeout_ms=POST_MS_MAX)
        except ToolFault as error:
            message = (
                f"there is no key to sign with: secret {SECRET_NAME!r} cannot be had; or name a file with --key-file"
            )
            raise RequestRejected(WEBHOOK_KEY_MISSING, message) from error
        return check_key(filled["key"].reveal().encode())
    try:
        with key_file.open("rb") as file:
            return check_key(file.read(KEY_BYTES_MAX + 1).strip())
    except OSError as error:
        message = f"{str(key_file)!r} cannot be read: {error.strerror}; check its path and its permissions"
        raise RequestRejected(WEBHOOK_KEY_MISSING, message) from error
