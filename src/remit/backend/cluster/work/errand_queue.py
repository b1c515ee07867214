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
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from remit.backend.clock import wall_clock_ms
from remit.backend.cluster.keys.believed_keys import SIGNER_UNKNOWN
from remit.backend.cluster.keys.signet import MESSAGE_MISADDRESSED, MESSAGE_REPEATED, SIGNATURE, SIGNER
from remit.backend.cluster.layout import (
    ANY,
    CHUNK_BYTES,
    DUE,
    ERRAND,
    LATE,
    LOGS,
    RING,
    errand_subject,
    errands_of,
    lane_subject,
    performance_subject,
    report_subject,
    sent_subject,
    token,
)
from remit.backend.cluster.logs.blobs import ClusterBlobs
from remit.backend.cluster.logs.leases import ClusterLeases
from remit.backend.cluster.server.connection import unreachable
from remit.backend.cluster.server.jetstream import EXPECTED, JetMessage, Overtaken
from remit.backend.cluster.server.link import TTL, Link
from remit.backend.cluster.work.claim_words import ClusterClaims
from remit.backend.cluster.work.dead_letters import DeadLetters
from remit.backend.cluster.work.stored_reports import CAME, SeenReports, StoredReports
from remit.core.failure import InvariantBroken
from remit.core.journal.codec import decode_record, encode_record
from remit.core.journal.queued import NO_ERRAND, Came, ErrandName, Lane, QueuedErrand, QueuedWord, StoredReport
from remit.core.journal.storage import BlobMissing, Place
from remit.core.record import digest_of
from remit.wire.subjects import STREAM

# How long a worker may be silent before its errand goes to another, and how often it says that it is at work.
ACK_WAIT_S = 5.0
TICK_S = ACK_WAIT_S / 4
# How long a worker waits for an errand before it asks again; one that is to leave waits no longer than that.
PULL_S = 1.0
# How long a driver waits for a ring before it looks by itself.
LOOK_S = 2.0
# How long a worker may take to say that it stops an errand, and to stop it.
ANSWER_S, STOP_S_MAX = 1.0, 10.0
# How often a word of an unknown signer is offered to other processes, at most, and how long it is left to them.
STRANGE_TRIES_MAX, STRANGE_S = 60, 10.0
# What was not performed or heard within a day is not wanted any more.
_TTL_S = 24 * 3600
_NS_PER_S = 1_000_000_000
_DIGEST, _NAME, _AGAIN = "Remit-Digest", "Remit-Errand", "Remit-Again"
_REPORTED, _STOPPED = RING + "report.", RING + "stop"
# How long a word that stops an errand is heard, by clocks that differ.
_STOP_MS = 300_000
_LANE_PENDING_MAX = 10_000
_HEARD_MAX = 10_000

_log = logging.getLogger(__name__)


class ErrandQueue:
    """The queue, for those who send errands and for those who perform them."""

    def __init__(
        self,
        link: Link,
        blobs: ClusterBlobs,
        leases: ClusterLeases,
        claims: ClusterClaims,
        now_ms: Callable[[], int],
    ) -> None:
        self.signet = link.signet
        self.reports = StoredReports(link, claims)
        self._link = link
        self._leases = leases
        self._claims = claims
        self._blobs = blobs
        self.letters = DeadLetters(link, now_ms, self._again)
        # In the loop of the connection: who waits for reports of a run, and how they are rung.
        self._waiting: dict[str, tuple[Subscription, set[asyncio.Event]]] = {}
        # What this process must be let say to be of any use here.
        self._needed = set[str]()
        # The words that were heard here, by their signatures, with their places: a copy of one says nothing.
        self._heard: dict[str, int] = {}

    @property
    def worker(self) -> str:
        """What this process is called."""
        return self._link.worker

    def expect_admitted(self) -> None:
        """Raise StoreUnusable where the word of this process counts nowhere any more, or the servers let it in no more."""
        self._link.expect_admitted()
        for subject in self._needed:
            self._link.expect_may(subject)

    async def carried(self, name: ErrandName, lane: Lane, data: bytes, *, is_new: bool, claim: int = 0) -> StoredReport:
        """The report of an errand, once it is stored. The errand is written unless it was; with `is_new` it cannot have been."""
        body, headers = await self._packed(data)
        headers |= {_NAME: _written(name), **self.signet.until(_TTL_S * 1000)}
        message = self._message(errand_subject(name, lane), body, headers, 0)
        since = await self._since(name)
        seen = await self._link.call(self._carried(name, lane, claim, message, since, is_new=is_new))
        stored = await self._unpacked((seen.data, dict(seen.headers)))
        return StoredReport(stored.came, stored.data, is_unclaimed=seen.is_unclaimed)

    async def awaited(self, name: ErrandName, lane: Lane, wait_s: float) -> StoredReport | None:
        """What came of an errand that another has sent; None where nothing did within so long."""
        try:
            async with asyncio.timeout(wait_s):
                since = await self._since(name)
                seen = await self._link.call(self._carried(name, lane, 0, None, since, is_new=False))
                return await self._unpacked((seen.data, dict(seen.headers)))
        except TimeoutError:
            return None

    def _message(self, subject: str, body: bytes, headers: Mapping[str, str], after: int | None = None) -> JetMessage:
        self._link.expect_may(subject)
        return JetMessage(subject, body, self.signet.signed(subject, body, headers), after)

    async def _carried(
        self, name: ErrandName, lane: Lane, claim: int, message: JetMessage | None, since: Place, *, is_new: bool
    ) -> SeenReports:
        rung = asyncio.Event()
        await self._listen(name.run_id, rung)
        try:
            is_sent, place = False, 0
            while True:
                if not is_new:
                    seen = await self.reports.seen(name, lane, claim, place, since)
                    if seen.is_reported:
                        return seen
                    place = seen.place
                if not is_sent and message is not None:
                    with suppress(Overtaken):  # An earlier driver of the run has sent it.
                        await self._link.jet.write(message)
                is_new, is_sent = False, True
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await rung.wait()
                rung.clear()
        finally:
            await self._hang_up(name.run_id, rung)

    async def withdraw(self, name: ErrandName, lane: Lane, claim: int = 0) -> None:
        """Take an errand back: one that waits is given to no worker; who performs it is told to stop, and waited for."""
        since = await self._since(name)
        await self._link.finish(self._withdraw(name, lane, claim, since))

    async def _withdraw(self, name: ErrandName, lane: Lane, claim: int, since: Place) -> None:
        jet, said = self._link.jet, {CAME: Came.WITHDRAWN.value, TTL: f"{_TTL_S}s"}
        if not await self._report(name, self._message(report_subject(name), b"", said), lane, claim, since):
            return  # It is over.
        if (stored := await jet.last(errand_subject(name, lane))) is not None:
            await jet.remove(stored.seq)
        inbox = jet.client.new_inbox()
        answers = await jet.client.subscribe(inbox)
        try:
            word = _written(name).encode()
            headers = self.signet.signed(_STOPPED, word, self.signet.until(_STOP_MS))
            await jet.client.publish(_STOPPED, word, reply=inbox, headers=headers)
            with suppress(NatsError, TimeoutError):  # No worker performs it, or it takes too long to stop.
                first = await answers.next_msg(ANSWER_S)
                if not first.headers:  # Else the server says that there is no worker at all.
                    await answers.next_msg(STOP_S_MAX)
        finally:
            await answers.unsubscribe()

    async def retract(self, name: ErrandName, lane: Lane) -> None:
        """Keep nothing of an errand that was withheld, and of what was reported of it: it is sent again under its name."""
        for subject in (errand_subject(name, lane), report_subject(name)):
            await self._link.finish(self._link.jet.purge(subject))

    async def due(self, run_id: str) -> None:
        """Have a loop worker drive a run."""
        headers = {TTL: f"{_TTL_S}s", **self.signet.until(_TTL_S * 1000)}
        await self._link.write(self._message(DUE + token(run_id), run_id.encode(), headers))

    async def forget(self, run_id: str, unsure: Mapping[str, Lane]) -> Sequence[StoredReport]:
        """Keep nothing of the errands of a run that has ended and what came of them; words about its calls expire by themselves.

        Gives what the holders of these calls, each with its lane, have reported: of these the run has not heard.
        """
        errands, reported, _ = errands_of(run_id)
        await self._link.finish(self._link.jet.purge(errands))
        since = {command_id: await self._claims.since(run_id, command_id) for command_id in unsure}
        unheard = await self._link.call(self.reports.told_of(run_id, unsure, since)) if unsure else []
        found = [await self._unpacked(one) for one in unheard]
        await self._link.finish(self._link.jet.purge(reported))
        return found

    def _again(self, name: ErrandName, lane: Lane, data: bytes) -> JetMessage:
        """An errand that is sent again by a person, for which no driver waits."""
        headers = {_NAME: _written(name), _AGAIN: "1", TTL: f"{_TTL_S}s"} | self.signet.until(_TTL_S * 1000)
        return self._message(errand_subject(name, lane), data, headers, 0)

    async def prepare(self, *lanes: Lane) -> None:
        """Have the queues of these lanes there."""
        self._needed |= {performance_subject(lane) for lane in lanes}
        self.expect_admitted()
        for lane in lanes:
            await self._link.call(self._consumer(_consumer_of(lane), lane_subject(lane) + ".>"))

    async def next_errand(self, lane: Lane) -> QueuedErrand | None:
        """The next errand of a lane; None where none came for a while."""
        message = await self._link.call(self._link.jet.pulled(_consumer_of(lane), PULL_S))
        if message is None:
            return None
        headers = message.headers or {}
        name = _read(headers.get(_NAME, ""))
        # It was written as the first of its subject, so a copy beside it has not been.
        is_first = headers.get(EXPECTED) == "0"
        code = self.signet.objection(message.subject, message.data, headers)
        if code or not is_first or errand_subject(name, lane) != message.subject:
            _log.warning("%s: an errand on %s is not performed", code or MESSAGE_REPEATED, message.subject[:200])
            name = NO_ERRAND
        data = (await self._unpacked((message.data, dict(headers)))).data
        return QueuedErrand(name, data, _deliveries(message), message.reply, is_again=_AGAIN in headers)

    async def report(
        self, name: ErrandName, came: Came, data: bytes = b"", *, lane: Lane | None = None, claim: int = 0
    ) -> bool:
        """Store what came of an errand and ring for it; False where one was stored before that counts."""
        body, headers = await self._packed(data)
        message = self._message(report_subject(name), body, {**headers, CAME: came.value})
        try:
            await self._link.finish(self._tell(name, replace(message, after=0)))
        except Overtaken:
            since = await self._since(name)
            return await self._link.finish(self._report(name, message, lane, claim, since))
        return True

    async def _report(self, name: ErrandName, message: JetMessage, lane: Lane | None, claim: int, since: Place) -> bool:
        seen = SeenReports(0)
        while not seen.is_reported:
            try:
                await self._tell(name, replace(message, after=seen.place))
                break
            except Overtaken:
                # It is written behind those that count for nothing.
                seen = await self.reports.seen(name, lane, claim, seen.place, since)
        return not seen.is_reported

    async def _tell(self, name: ErrandName, message: JetMessage) -> None:
        """Store a report and ring for it."""
        await self._link.jet.write(message)
        with suppress(NatsError):  # A driver that waits looks by itself.
            await self._link.jet.client.publish(_REPORTED + token(name.run_id), b"")

    async def is_reported(self, name: ErrandName, lane: Lane | None = None, claim: int = 0) -> bool:
        """Whether it is known what came of an errand."""
        since = await self._since(name) if await self._link.call(self._link.jet.last(report_subject(name))) else 0
        return (await self._link.call(self.reports.seen(name, lane, claim, since=since))).is_reported

    async def is_awaited(self, name: ErrandName) -> bool:
        """Whether an errand still stands: its run has not ended, and no driver has taken it back."""
        return await self._link.call(self._link.jet.last(sent_subject(name))) is not None

    async def settle(self, receipt: str, place: int = 0) -> None:
        """Say that an errand or a word need not be given to anybody any more; one whose place is named is removed."""
        await self._link.finish(self._link.jet.client.publish(receipt, b"+ACK"))
        if place:
            await self._link.finish(self._link.jet.remove(place))

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
            if self.signet.objection(_STOPPED, message.data, message.headers or {}, may=ERRAND + ANY):
                return  # Its signer sends no errands, and takes none back.
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
        """Keep what came of a call for which no driver waited any more, until a loop worker has told its run."""
        body, headers = await self._packed(data)
        subject = _late_subject(name)
        headers |= {_NAME: _written(name), **self.signet.until(_TTL_S * 1000)}
        await self._link.write(self._message(subject, body, headers))

    async def prepare_words(self) -> None:
        """Have the queues there of runs that are due and of what came late."""
        self._needed.add(LOGS + ANY)
        self.expect_admitted()
        for subject in (DUE, LATE):
            await self._link.call(self._consumer(_words_of(subject), subject + ">"))

    async def next_due(self) -> QueuedWord | None:
        """The next run that is due; None where none came for a while."""
        message = await self._link.call(self._link.jet.pulled(_words_of(DUE), PULL_S))
        if message is None:
            return None
        run_id = message.data.decode(errors="replace")
        if not await self._is_heard(message, "that a run is due", DUE + token(run_id)):
            return None
        if await self._leases.is_gone(run_id):
            _log.info("run %s is due and not there any more: it was deleted", run_id)
            await self.settle(message.reply)
            return None
        if not await self._leases.is_there(run_id) and _deliveries(message) < STRANGE_TRIES_MAX:
            # Its turns are signed by a key that counts for others alone.
            await self.hand_back(message.reply, _patience_s(message))
            return None
        return QueuedWord(run_id, b"", _deliveries(message), message.reply, place=_place(message))

    async def next_late(self) -> QueuedWord | None:
        """The next thing that came late; None where nothing did for a while."""
        message = await self._link.call(self._link.jet.pulled(_words_of(LATE), PULL_S))
        if message is None:
            return None
        headers = message.headers or {}
        name = _read(headers.get(_NAME, ""))
        if not await self._is_heard(message, "what came late", _late_subject(name)):
            return None
        stored = await self._unpacked((message.data, dict(headers)))
        performs = self.signet.keyring.performs(headers[SIGNER])
        return QueuedWord(
            run_id=name.run_id,
            data=stored.data,
            deliveries=_deliveries(message),
            receipt=message.reply,
            performs=performs,
            place=_place(message),
            command_id=name.command_id,
            signer=headers[SIGNER],
            claimed=await self._link.call(self.reports.claimed_under(name, headers[SIGNER], await self._since(name))),
        )

    async def _since(self, name: ErrandName) -> Place:
        """Behind which place words about an errand count."""
        return await self._claims.since(name.run_id, name.command_id)

    async def _is_heard(self, message: Msg, what: str, subject: str) -> bool:
        """Whether a word is signed by one whose word counts, about what its subject says, and was not heard before."""
        headers, place = message.headers or {}, _place(message)
        code = self.signet.objection(message.subject, message.data, headers)
        if not code and message.subject != subject:
            code = MESSAGE_MISADDRESSED
        if not code and self._heard.setdefault(headers[SIGNATURE], place) != place:
            code = MESSAGE_REPEATED
        if len(self._heard) > _HEARD_MAX:
            del self._heard[next(iter(self._heard))]
        if code == SIGNER_UNKNOWN and _deliveries(message) < STRANGE_TRIES_MAX:
            # It may count for another process, or here once the key is named.
            await self.hand_back(message.reply, _patience_s(message))
        elif code:
            self.reports.put_aside(place, message.subject, code, what)
            await self.settle(message.reply)
        return not code

    def may_perform(self, word: QueuedWord, lane: Lane) -> bool:
        """Whether the sender of a word may perform errands of a lane."""
        return not self.signet.keyring.objection(word.signer, performance_subject(lane), wall_clock_ms())

    def put_word_aside(self, word: QueuedWord, code: str, why: str) -> None:
        """Keep a dead letter about a word that no process can act on."""
        self._link.put_aside(word.place, f"of run {word.run_id}", code, why)

    async def orphans(self) -> Sequence[str]:
        """The runs that a process holds which is gone, and those that are due although no worker was handed that word."""
        return [*await self._leases.orphans(), *await self._leases.unheeded()]

    async def _packed(self, data: bytes) -> tuple[bytes, dict[str, str]]:
        headers = {TTL: f"{_TTL_S}s"}
        if len(data) <= CHUNK_BYTES:
            return data, headers
        digest = digest_of(data)
        await self._blobs.put(digest, data)
        return b"", {**headers, _DIGEST: digest.hex()}

    async def _unpacked(self, found: tuple[bytes, dict[str, str]]) -> StoredReport:
        """What a message holds; nothing where it names a text that is not there, so that it is never read as something else."""
        data, headers = found
        try:
            came = Came(headers.get(CAME, Came.DONE))
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


def _late_subject(name: ErrandName) -> str:
    return f"{LATE}{token(name.run_id)}.{token(name.command_id)}"


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


def _patience_s(message: Msg) -> float:
    """How long a word is left to others that this process cannot act on: a moment at first, and longer each time."""
    return min(0.1 * _deliveries(message), STRANGE_S)


def _deliveries(message: Msg) -> int:
    return int(message.metadata.num_delivered or 1)


def _place(message: Msg) -> int:
    return int(message.metadata.sequence.stream)
