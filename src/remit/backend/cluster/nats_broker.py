"""The wire on JetStream: messages of clients taken from the stream, answers published into it, buckets for what loops come to.

Rule 1: all gateways of an account share one consumer, so that each message is handed to one of them, and again where that one
        dies. A message that was carried out is removed; the journal has what it said.
Rule 2: whatever is published has a key, by which the server keeps it once; so it may be sent again when an answer is lost.
Rule 3: what is published expires. The journal is what is kept.
"""

from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError
from nats.js import JetStreamContext
from nats.js.errors import APIError

from remit.backend.cluster.keys.signet import Signet
from remit.backend.cluster.layout import (
    CODE,
    DEAD_LETTERS,
    KEYS,
    KEYS_BUCKET,
    KEYS_STREAM,
    REASON,
    SUBJECT,
    bucket,
    token,
)
from remit.backend.cluster.server.connection import (
    Tries,
    connect,
    patient_server_answer,
    prepare_streams,
    server_lacks,
    shown,
    stream_there,
    unreachable,
)
from remit.backend.cluster.server.jetstream import MESSAGE_ID, JetMessage, JetStream
from remit.backend.cluster.server.link import TTL, KeysWatch, Link
from remit.backend.embedded.owner.key_file import FileKey
from remit.core.journal.codec import read_json
from remit.core.journal.signing import Signer
from remit.wire.payloads import HandedMessage, PublishedMessage
from remit.wire.subjects import LOOPS_BUCKET, STREAM, TOLD, TRAJECTORIES_BUCKET, SubjectFamily, family_subjects

CONSUMER = "remit-wire"
# All that is sent under these names, however it is spelled: what cannot be carried out is refused with a code.
TAKEN = tuple(
    [
        subject
        for family in (SubjectFamily.TASK, SubjectFamily.SIGNAL, SubjectFamily.USER_MESSAGE, *TOLD)
        for subject in family_subjects(family)
    ]
)
BUCKETS = (LOOPS_BUCKET, TRAJECTORIES_BUCKET, "AGENT_CURSORS")

DEAD_LETTER_KEPT_S = 30 * 24 * 3_600

# At most TAKEN_MAX messages are fetched at once; each is sent again unless it is acknowledged within ACK_S; a fetch waits TAKE_S.
TAKEN_MAX, ACK_S, TAKE_S = 32, 30, 20.0
# How long a message that could not be carried out is left alone.
LATER_S = 1.0
# How long the server keeps the place of a reader that went away.
READER_S = 24 * 3_600
_NS_PER_S = 1_000_000_000
_REASON_CHARS_MAX = 1_000


class NatsBroker:
    """A connection that speaks the wire, in the event loop that opened it."""

    def __init__(
        self, client: Client, address: str, taken: JetStreamContext.PullSubscription, *, is_reader: bool = False
    ) -> None:
        self._client, self._address, self._taken = client, shown(address), taken
        self.jet = self._jet = JetStream(client, self._address)
        # One that only reads leaves what it was handed to others.
        self._is_reader = is_reader
        # What was handed over and not done with, by its place.
        self._open: dict[int, Msg] = {}

    @classmethod
    async def open(
        cls,
        address: str,
        *,
        subjects: Sequence[str] = TAKEN,
        consumer: str = CONSUMER,
        is_reader: bool = False,
        signer: Callable[[], Signer] | None = None,
    ) -> "NatsBroker":
        """Connect, and have the streams, the buckets and the consumer there; raises StoreUnusable as a store does."""
        client = await connect(address, name="remit wire", signer=signer)
        try:
            replicas = await prepare_streams(client, address)
            for name in BUCKETS:
                await stream_there(client, address, f"KV_{name}", bucket(name, replicas))
            config = {
                "durable_name": consumer,
                "ack_policy": "explicit",
                "ack_wait": ACK_S * _NS_PER_S,
                "deliver_policy": "new" if is_reader else "all",
                "filter_subjects": list(subjects),
                "max_ack_pending": TAKEN_MAX * 8,
                **({"inactive_threshold": READER_S * _NS_PER_S} if is_reader else {}),
            }
            made = await patient_server_answer(
                client,
                address,
                f"$JS.API.CONSUMER.DURABLE.CREATE.{STREAM}.{consumer}",
                {"stream_name": STREAM, "config": config},
            )
            if "error" in made:
                raise server_lacks(address, [f"consumer {consumer}: {made['error'].get('description')}"])
            taken = await client.jetstream().pull_subscribe_bind(consumer=consumer, stream=STREAM)
        except BaseException:
            await client.close()
            raise
        return cls(client, address, taken, is_reader=is_reader)

    async def take(self) -> list[HandedMessage]:
        """The next messages, as soon as there are any."""
        while True:
            try:
                messages = await self._taken.fetch(TAKEN_MAX, timeout=TAKE_S)
            except TimeoutError:
                continue
            except (NatsError, APIError) as error:
                raise unreachable(self._address, str(error) or type(error).__name__) from error
            return [self._noted(message) for message in messages]

    def _noted(self, message: Msg) -> HandedMessage:
        place = message.metadata.sequence.stream
        self._open[place] = message
        return HandedMessage(
            subject=message.subject,
            data=message.data,
            headers=message.headers or {},
            place=place,
            tries=message.metadata.num_delivered or 1,
        )

    async def done(self, delivery: HandedMessage) -> None:
        """A message was carried out, and is not needed any more."""
        await self._open.pop(delivery.place).ack()
        if not self._is_reader:
            await self._jet.remove(delivery.place)

    async def leave(self, delivery: HandedMessage) -> None:
        """A message was told by a gateway: it stays where it is, for those who listen."""
        await self._open.pop(delivery.place).ack()

    async def later(self, delivery: HandedMessage) -> None:
        """A message could not be carried out now; it is handed over again."""
        await self._open.pop(delivery.place).nak(delay=LATER_S)

    async def refuse(self, delivery: HandedMessage, code: str, why: str) -> None:
        """Keep a message as a dead letter, with its code, and hand it over no more."""
        said = " ".join(why.split()).encode("ascii", "replace").decode()[:_REASON_CHARS_MAX]
        headers = {CODE: code, REASON: said, SUBJECT: delivery.subject}
        letter = PublishedMessage(f"{DEAD_LETTERS}{delivery.place}", headers, delivery.data)
        await self.publish(letter, key=letter.subject, keep_s=DEAD_LETTER_KEPT_S)
        await self.done(delivery)

    async def publish(self, message: PublishedMessage, *, key: str, keep_s: int) -> None:
        """Publish a message, which is kept for so long."""
        await self._sent(message.subject, message.data, {**message.headers, MESSAGE_ID: key, TTL: f"{keep_s}s"})

    async def put(self, bucket: str, name: str, data: bytes, *, key: str = "") -> None:
        """Keep an entry of a bucket in the place of the one before."""
        await self._sent(f"$KV.{bucket}.{name}", data, {MESSAGE_ID: key} if key else {})

    async def get(self, bucket: str, name: str) -> bytes | None:
        """The entry of a bucket; None where there is none."""
        found = await self._jet.last(f"$KV.{bucket}.{name}", f"KV_{bucket}")
        return None if found is None else found.data

    async def close(self) -> None:
        """Hand nothing over any more."""
        for message in self._open.values():
            await message.nak()
        await self._client.close()

    async def _sent(self, subject: str, data: bytes, headers: dict[str, str]) -> None:
        """Have the server keep a message, asked again while it has no leader; raises StoreUnusable where that lasts."""
        tries = Tries(self._address)
        while True:
            try:
                answer = await self._client.request(subject, data, timeout=tries.answer_s, headers=headers)
                found = read_json(answer.data)
                if "error" not in found:
                    return
                why = str(found["error"].get("description"))
            except (NatsError, TimeoutError, OSError) as error:
                why = str(error) or type(error).__name__
            await tries.failed(why)


@asynccontextmanager
async def heard_keys(broker: NatsBroker, home: Path, believed: Collection[str]) -> AsyncIterator[Callable[[str], str]]:
    """Says why a key may not tell what becomes of runs, by what the keys room says while this is entered, and without a store."""
    signet = Signet(FileKey(home))
    signet.keyring.believe(believed)
    watch = KeysWatch(broker.jet, signet.keyring)
    await watch.open()
    try:
        yield signet.object_to_driver
    finally:
        await watch.close()


class KeyShelf:
    """The statements and revocations of a deployment, each under its name; they are believed for their signatures alone."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._is_there = False

    async def keep(self, name: str, data: bytes) -> None:
        """Keep an entry in the place of the one before."""
        await self._link.call(self._have())
        await self._link.write(JetMessage(KEYS + token(name), data))

    async def kept(self) -> list[bytes]:
        """All entries, the oldest first."""
        return await self._link.call(self._kept())

    async def _kept(self) -> list[bytes]:
        await self._have()
        found, last = list[bytes](), 0
        while (stored := await self._link.jet.following(KEYS + ">", last, KEYS_STREAM)) is not None:
            last = stored.seq
            found.append(stored.data)
        return found

    async def _have(self) -> None:
        if not self._is_there:
            wanted = bucket(KEYS_BUCKET, self._link.replicas)
            await stream_there(self._link.jet.client, self._link.address, KEYS_STREAM, wanted)
            self._is_there = True
