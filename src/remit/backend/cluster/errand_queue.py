"""Errands on JetStream: written for workers, given to one of them at a time, and told of when their reports are stored.

Rule 1: an errand is written once under its name, and its first report counts; a worker that comes later is told.
Rule 2: a worker that has an errand says so as long as it works at it. One that falls silent for ACK_WAIT_S has it no longer: it
        goes to another. The errand is let go when its report is stored, and not before.
Rule 3: rings tell that there is something to read, and may be lost: a process that waits looks by itself, too.
Rule 4: what is too long for a message is kept as a text, and named by its digest.
"""

import asyncio
import json
import logging
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from remit.backend.cluster.chunks import ClusterBlobs
from remit.backend.cluster.connection import unreachable
from remit.backend.cluster.dead_letters import DeadLetters
from remit.backend.cluster.jetstream import JetMessage, Overtaken
from remit.backend.cluster.layout import (
    CHUNK_BYTES,
    DUE,
    LATE,
    RING,
    STREAM,
    errand_subject,
    errands_of,
    lane_subject,
    report_subject,
    token,
)
from remit.backend.cluster.leases import ClusterLeases
from remit.backend.cluster.link import TTL, Link
from remit.backend.cluster.signet import Signet
from remit.core.failure import InvariantBroken
from remit.core.journal.codec import decode_record, encode_record
from remit.core.journal.queued import NO_ERRAND, Came, ErrandName, Lane, QueuedErrand, QueuedWord, StoredReport
from remit.core.journal.storage import BlobMissing
from remit.core.record import digest_of

# How long a worker may be silent before its errand goes to another, and how often it says that it is at work.
ACK_WAIT_S = 5.0
TICK_S = ACK_WAIT_S / 4
# How long a worker waits for an errand before it asks again; one that is to leave waits no longer than that.
PULL_S = 1.0
# How long a driver waits for a ring before it looks by itself.
LOOK_S = 2.0
# How long a worker may take to say that it stops an errand, and to stop it.
ANSWER_S, STOP_S_MAX = 1.0, 10.0
# What was not performed or heard within a day is not wanted any more.
_TTL_S = 24 * 3600
_NS_PER_S = 1_000_000_000
_DIGEST, _CAME, _NAME, _AGAIN = "Remit-Digest", "Remit-Came", "Remit-Errand", "Remit-Again"
_REPORTED, _STOPPED = RING + "report.", RING + "stop"
_LANE_PENDING_MAX = 10_000

_log = logging.getLogger(__name__)

_GONE = ("404", "408", "409", "503")


class ErrandQueue:
    """The queue, for those who send errands and for those who perform them."""

    def __init__(
        self, link: Link, blobs: ClusterBlobs, leases: ClusterLeases, signet: Signet, now_ms: Callable[[], int]
    ) -> None:
        self.signet = signet
        self._link = link
        self._leases = leases
        self._blobs = blobs
        self.letters = DeadLetters(link, now_ms, self._again)
        # In the loop of the connection: who waits for reports of a run, and how they are rung.
        self._waiting: dict[str, tuple[Subscription, set[asyncio.Event]]] = {}

    @property
    def worker(self) -> str:
        """What this process is called."""
        return self._link.worker

    def believe(self, signers: Collection[str]) -> None:
        """Believe what is signed with these keys, too."""
        self.signet.others = signers

    # For those who send.

    async def carried(self, name: ErrandName, lane: Lane, data: bytes, *, is_new: bool) -> StoredReport:
        """What came of an errand, once that is known; it is written unless it was. `is_new` says that it cannot have been."""
        body, headers = await self._packed(data)
        message = self._message(errand_subject(name, lane), body, {**headers, _NAME: _written(name)}, 0)
        return await self._unpacked(await self._link.call(self._carried(name, message, is_new)))

    def _message(self, subject: str, body: bytes, headers: Mapping[str, str], after: int | None = None) -> JetMessage:
        return JetMessage(subject, body, self.signet.signed(subject, body, headers), after)

    async def _carried(self, name: ErrandName, message: JetMessage, is_new: bool) -> tuple[bytes, dict[str, str]]:  # noqa: FBT001  # told by `carried` alone
        rung = asyncio.Event()
        await self._listen(name.run_id, rung)
        try:
            is_sent = False
            while True:
                if not is_new and (stored := await self._link.jet.last(report_subject(name))) is not None:
                    if not self.signet.is_believed(stored.subject, stored.data, stored.headers):
                        # What became of it is not known: who wrote this had no key, and no other report can come.
                        return b"", {_CAME: Came.LOST.value}
                    return stored.data, dict(stored.headers)
                if not is_sent:
                    with suppress(Overtaken):  # An earlier driver of the run has sent it.
                        await self._link.jet.write(message)
                is_new, is_sent = False, True
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await rung.wait()
                rung.clear()
        finally:
            await self._hang_up(name.run_id, rung)

    async def withdraw(self, name: ErrandName, lane: Lane) -> None:
        """Take an errand back: one that waits is given to no worker; who performs it is told to stop, and waited for."""
        await self._link.finish(self._withdraw(name, lane))

    async def _withdraw(self, name: ErrandName, lane: Lane) -> None:
        jet = self._link.jet
        try:
            await jet.write(
                self._message(report_subject(name), b"", {_CAME: Came.WITHDRAWN.value, TTL: f"{_TTL_S}s"}, 0)
            )
        except Overtaken:
            return  # It is over.
        if (stored := await jet.last(errand_subject(name, lane))) is not None:
            await jet.remove(stored.seq)
        inbox = jet.client.new_inbox()
        answers = await jet.client.subscribe(inbox)
        try:
            await jet.client.publish(_STOPPED, _written(name).encode(), reply=inbox)
            with suppress(NatsError, TimeoutError):  # No worker performs it, or it takes too long to stop.
                first = await answers.next_msg(ANSWER_S)
                if not first.headers:  # Else the server says that there is no worker at all.
                    await answers.next_msg(STOP_S_MAX)
        finally:
            await answers.unsubscribe()

    async def due(self, run_id: str) -> None:
        """Have a loop worker drive a run."""
        await self._link.write(JetMessage(DUE + token(run_id), run_id.encode(), {TTL: f"{_TTL_S}s"}))

    async def forget(self, run_id: str) -> None:
        """Keep nothing of the errands of a run and what came of them; words about its calls expire by themselves."""
        await forget_errands(self._link, run_id)

    def _again(self, name: ErrandName, lane: Lane, data: bytes) -> JetMessage:
        """An errand that is sent again by a person, for which no driver waits."""
        headers = {_NAME: _written(name), _AGAIN: "1", TTL: f"{_TTL_S}s"}
        return self._message(errand_subject(name, lane), data, headers, 0)

    # For those who perform.

    async def prepare(self, *lanes: Lane) -> None:
        """Have the queues of these lanes there."""
        for lane in lanes:
            await self._link.call(self._consumer(_consumer_of(lane), lane_subject(lane) + ".>"))

    async def next_errand(self, lane: Lane) -> QueuedErrand | None:
        """The next errand of a lane; None where none came for a while."""
        message = await self._link.call(self._pulled(_consumer_of(lane)))
        if message is None:
            return None
        headers = message.headers or {}
        name = _read(headers.get(_NAME, ""))
        is_ours = self.signet.is_believed(message.subject, message.data, headers)
        if not is_ours or errand_subject(name, lane) != message.subject:
            name = NO_ERRAND
        data = (await self._unpacked((message.data, dict(headers)))).data
        return QueuedErrand(name, data, _deliveries(message), message.reply, is_again=_AGAIN in headers)

    async def report(self, name: ErrandName, came: Came, data: bytes = b"") -> bool:
        """Store what came of an errand and ring for it; False where something was stored before."""
        body, headers = await self._packed(data)
        message = self._message(report_subject(name), body, {**headers, _CAME: came.value}, 0)
        return await self._link.finish(self._report(name, message))

    async def _report(self, name: ErrandName, message: JetMessage) -> bool:
        is_first = True
        try:
            await self._link.jet.write(message)
        except Overtaken:
            is_first = False
        with suppress(NatsError):  # Who waits looks by itself.
            await self._link.jet.client.publish(_REPORTED + token(name.run_id), b"")
        return is_first

    async def is_reported(self, name: ErrandName) -> bool:
        """Whether it is known what came of an errand."""
        return await self._link.call(self._link.jet.last(report_subject(name))) is not None

    async def settle(self, receipt: str) -> None:
        """Say that an errand or a word need not be given to anybody any more."""
        await self._link.finish(self._link.jet.client.publish(receipt, b"+ACK"))

    async def hand_back(self, receipt: str, wait_s: float = 0.0) -> None:
        """Have an errand or a word given to another, perhaps after a while."""
        delay = json.dumps({"delay": int(wait_s * _NS_PER_S)})
        await self._link.finish(self._link.jet.client.publish(receipt, f"-NAK {delay}".encode()))

    async def keep(self, receipt: str) -> None:
        """Say that an errand is worked at."""
        await self._link.finish(self._link.jet.client.publish(receipt, b"+WPI"))

    async def on_withdrawn(self, tell: Callable[[ErrandName, str], None]) -> Callable[[], Awaitable[None]]:
        """Call a function, in the loop of the caller, for every errand that is taken back; gives what ends it."""
        loop = asyncio.get_running_loop()

        async def hear(message: Msg) -> None:
            with suppress(RuntimeError):  # The loop is closed.
                loop.call_soon_threadsafe(tell, _read(message.data.decode(errors="replace")), message.reply)

        subscription = await self._link.call(self._link.jet.client.subscribe(_STOPPED, cb=hear))

        async def end() -> None:
            await self._link.call(subscription.unsubscribe())

        return end

    async def answer(self, answer_to: str) -> None:
        """Say to the process that took an errand back that it is being stopped here; and again, that it has stopped."""
        if answer_to:
            await self._link.finish(self._link.jet.client.publish(answer_to, b""))

    async def late(self, name: ErrandName, data: bytes) -> None:
        """Keep what came of a call when nobody waited for it any more, until a loop worker has told its run."""
        body, headers = await self._packed(data)
        subject = f"{LATE}{token(name.run_id)}.{token(name.command_id)}"
        await self._link.write(self._message(subject, body, {**headers, _NAME: _written(name)}))

    # For those who drive.

    async def prepare_words(self) -> None:
        """Have the queues there of runs that are due and of what came late."""
        for subject in (DUE, LATE):
            await self._link.call(self._consumer(_words_of(subject), subject + ">"))

    async def next_due(self) -> QueuedWord | None:
        """The next run that is due; None where none came for a while."""
        message = await self._link.call(self._pulled(_words_of(DUE)))
        if message is None:
            return None
        return QueuedWord(message.data.decode(errors="replace"), b"", _deliveries(message), message.reply)

    async def next_late(self) -> QueuedWord | None:
        """The next thing that came late; None where nothing did for a while."""
        message = await self._link.call(self._pulled(_words_of(LATE)))
        if message is None:
            return None
        headers = message.headers or {}
        if not self.signet.is_believed(message.subject, message.data, headers):
            _log.warning("what came late on %s is signed by none who may, and is not believed", message.subject[:200])
            await self.settle(message.reply)
            return None
        stored = await self._unpacked((message.data, dict(headers)))
        return QueuedWord(_read(headers.get(_NAME, "")).run_id, stored.data, _deliveries(message), message.reply)

    async def orphans(self) -> Sequence[str]:
        """The runs that a process holds which is gone."""
        return await self._leases.orphans()

    # Underneath.

    async def _packed(self, data: bytes) -> tuple[bytes, dict[str, str]]:
        headers = {TTL: f"{_TTL_S}s"}
        if len(data) <= CHUNK_BYTES:
            return data, headers
        digest = digest_of(data)
        await self._blobs.put(digest, data)
        return b"", {**headers, _DIGEST: digest.hex()}

    async def _unpacked(self, found: tuple[bytes, dict[str, str]]) -> StoredReport:
        """What a message holds; nothing where it names a text that is not there, so that nobody can read it as something."""
        data, headers = found
        try:
            came = Came(headers.get(_CAME, Came.DONE))
            if digest := headers.get(_DIGEST, ""):
                data = await self._blobs.get(bytes.fromhex(digest))
        except (ValueError, BlobMissing):
            return StoredReport(Came.LOST)
        return StoredReport(came, data)

    async def _listen(self, run_id: str, rung: asyncio.Event) -> None:
        if run_id not in self._waiting:
            waiting: set[asyncio.Event] = set()

            async def hear(_: Msg) -> None:
                for one in waiting:
                    one.set()

            subscription = await self._link.jet.client.subscribe(_REPORTED + token(run_id), cb=hear)
            if run_id in self._waiting:  # Another was faster.
                await subscription.unsubscribe()
            else:
                self._waiting[run_id] = (subscription, waiting)
        self._waiting[run_id][1].add(rung)

    async def _hang_up(self, run_id: str, rung: asyncio.Event) -> None:
        subscription, waiting = self._waiting[run_id]
        waiting.discard(rung)
        if not waiting:
            del self._waiting[run_id]
            with suppress(NatsError):
                await subscription.unsubscribe()

    async def _consumer(self, name: str, pattern: str) -> None:
        config = {
            "durable_name": name,
            "ack_policy": "explicit",
            "ack_wait": int(ACK_WAIT_S * _NS_PER_S),
            "filter_subject": pattern,
            "max_ack_pending": _LANE_PENDING_MAX,
            "max_waiting": _LANE_PENDING_MAX,
            "inactive_threshold": _TTL_S * _NS_PER_S,
        }
        asked = {"stream_name": STREAM, "config": config}
        made = await self._link.jet.asked(f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{name}", asked)
        if "error" in made:
            raise unreachable(self._link.address, f"no consumer: {made['error'].get('description')}")

    async def _pulled(self, consumer: str) -> Msg | None:
        asked = json.dumps({"batch": 1, "expires": int(PULL_S * _NS_PER_S)}).encode()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{consumer}"
        try:
            message = await self._link.jet.client.request(subject, asked, timeout=PULL_S + 1, old_style=True)
        except (NatsError, TimeoutError, OSError):
            # No leader just now: it is asked again, and not at once.
            await asyncio.sleep(PULL_S / 10)
            return None
        status = (message.headers or {}).get("Status", "")
        if status in _GONE:
            if status != "408":
                await asyncio.sleep(PULL_S / 10)
            return None
        return message


async def forget_errands(link: Link, run_id: str) -> None:
    """Remove the errands of a run and what came of them: their words are those of the run."""
    for pattern in errands_of(run_id):
        await link.finish(link.jet.purge(pattern))


def _consumer_of(lane: Lane) -> str:
    """What the queue of a lane is called; names of consumers take no dots."""
    return f"lane-{digest_of(lane_subject(lane).encode()).hex()[:32]}"


def _words_of(subject: str) -> str:
    return "words-" + subject.strip(".").replace(".", "-")


def _written(name: ErrandName) -> str:
    """A name as a header has it, whatever characters are in it."""
    return b64encode(encode_record(name)).decode()


def _read(text: str) -> ErrandName:
    """The name in a header; that of no errand where it is none."""
    try:
        found: ErrandName = decode_record(b64decode(text), ErrandName)
    except (InvariantBroken, ValueError):
        return NO_ERRAND
    return found


def _deliveries(message: Msg) -> int:
    return int(message.metadata.num_delivered or 1)
