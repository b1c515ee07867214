"""Long texts and snapshots, in chunks, so that none is too long: the newest of a subject alone is kept.

Rule 1: the first chunk says how many there are, and is written last: a reader that finds it finds the others.
Rule 2: the chunks of one snapshot have one nonce; two writers of one run leave one that is whole, or none that is believed.
"""

import asyncio
import secrets
from collections.abc import Callable, Collection, Mapping
from hashlib import sha256

from remit.backend.cluster.layout import (
    AT_MS,
    CHUNK_BYTES,
    CHUNKS,
    SNAPSHOT,
    TEXT,
    TEXTS,
    snapshot_subject,
    text_subject,
    token,
)
from remit.backend.cluster.server.connection import unreachable
from remit.backend.cluster.server.jetstream import JetMessage, JetStream, Stored
from remit.backend.cluster.server.link import Link
from remit.core.journal.storage import BlobMissing, Snapshot
from remit.core.record import digest_of

_SEQ, _HEAD, _SIGNATURE, _SET = "Remit-Seq", "Remit-Head", "Remit-Signature", "Remit-Set"
# How many chunks are under way at a time.
_AT_ONCE = 4
_READ_S = 5.0
# A text of a hundred thousand chunks has 50 GB.
_COUNT_DIGITS_MAX = 5
_FEW = 20

Subject = Callable[[int], str]


class ClusterBlobs:
    """Long texts by their digest."""

    def __init__(self, link: Link, now_ms: Callable[[], int]) -> None:
        self._link = link
        self._now_ms = now_ms

    async def put(self, digest: bytes, data: bytes) -> None:
        """Keep these bytes; keeping them twice keeps them once."""
        said = {AT_MS: str(self._now_ms())}
        await self._link.finish(_put(self._link.jet, lambda chunk: text_subject(digest, chunk), data, said))

    async def get(self, digest: bytes) -> bytes:
        """The bytes with this digest, or raise BlobMissing."""
        found = await self._link.call(_get(self._link.jet, lambda chunk: text_subject(digest, chunk)))
        # What another client has put there is not the text, and nothing is read as one that is not.
        if found is None or digest_of(found[0]) != digest:
            raise BlobMissing(digest)
        return found[0]

    async def found(self, digest: bytes) -> bytes | None:
        """The bytes with this digest; None where there are none."""
        try:
            return await self.get(digest)
        except BlobMissing:
            return None

    async def remove(self, digest: bytes) -> None:
        """Keep a text no longer."""
        await self._link.finish(self._link.jet.purge(f"{TEXT}{digest.hex()}.*", stream=TEXTS))

    async def put_before(self, at_ms: int, among: Collection[bytes] | None = None) -> dict[bytes, int]:
        """The digests of the texts that were put before a time and never after it, with their sizes; of these, or of all."""
        # A few are asked for one by one; of many, all are looked through.
        is_few = among is not None and len(among) <= _FEW
        patterns = [f"{TEXT}{digest.hex()}.*" for digest in among or ()] if is_few else [TEXT + ">"]
        sizes: dict[bytes, int] = {}
        old: set[bytes] = set()
        for pattern in patterns:
            for subject, headers in await self._link.call(_headers_of(self._link.jet, pattern)):
                digest_text, _, chunk = subject.removeprefix(TEXT).partition(".")
                try:
                    digest, put_at_ms = bytes.fromhex(digest_text), int(headers.get(AT_MS, ""))
                except ValueError:
                    continue  # Another program put it there.
                sizes[digest] = sizes.get(digest, 0) + int(headers.get("Nats-Msg-Size", 0))
                if chunk == "0" and put_at_ms < at_ms:
                    old.add(digest)
        return {digest: size for digest, size in sizes.items() if digest in old and (among is None or digest in among)}


class ClusterSnapshots:
    """The last state of every run that was kept."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def keep(self, run_id: str, seq: int, head: bytes, data: bytes, signature: bytes = b"") -> None:
        """Keep a state instead of any that was kept before."""
        said = {_SEQ: str(seq), _HEAD: head.hex(), _SIGNATURE: signature.hex(), _SET: secrets.token_hex(8)}
        await self._link.finish(_put(self._link.jet, lambda chunk: snapshot_subject(run_id, chunk), data, said))

    async def latest(self, run_id: str) -> Snapshot | None:
        """What was kept last, where it is whole."""
        found = await self._link.call(_get(self._link.jet, lambda chunk: snapshot_subject(run_id, chunk)))
        if found is None:
            return None
        data, said = found
        try:
            signature = bytes.fromhex(said[_SIGNATURE])
            return Snapshot(run_id, int(said[_SEQ]), bytes.fromhex(said[_HEAD]), data, signature)
        except (KeyError, ValueError):
            return None

    async def forget(self, run_id: str) -> None:
        """Keep no state of a run any more."""
        await self._link.finish(self._link.jet.purge(f"{SNAPSHOT}{token(run_id)}.*", stream=TEXTS))


async def _put(jet: JetStream, subject: Subject, data: bytes, said: Mapping[str, str]) -> None:
    chunks = [data[begin : begin + CHUNK_BYTES] for begin in range(0, len(data), CHUNK_BYTES)] or [b""]
    headers = {**said, CHUNKS: str(len(chunks)), "Remit-Sha256": sha256(data).hexdigest()}
    numbers = range(1, len(chunks))
    for begin in range(0, len(numbers), _AT_ONCE):
        some = numbers[begin : begin + _AT_ONCE]
        await asyncio.gather(*(jet.write(JetMessage(subject(number), chunks[number], headers)) for number in some))
    await jet.write(JetMessage(subject(0), chunks[0], headers))


async def _get(jet: JetStream, subject: Subject) -> tuple[bytes, Mapping[str, str]] | None:
    """What was put last and the headers that it was put with; None where there is nothing whole."""
    first = await jet.newest(subject(0), TEXTS)
    if first is None:
        return None
    parts = [first.data]
    count = first.headers.get(CHUNKS, "")
    # Another program may put anything there.
    if not (count.isdecimal() and len(count) <= _COUNT_DIGITS_MAX):
        return None
    numbers = range(1, int(count))
    for begin in range(0, len(numbers), _AT_ONCE):
        some = numbers[begin : begin + _AT_ONCE]
        found = await asyncio.gather(*(jet.newest(subject(number), TEXTS) for number in some))
        if None in found:
            return None
        parts += [_of_same(one, first) for one in found]
    data = b"".join(parts)
    return (data, first.headers) if sha256(data).hexdigest() == first.headers.get("Remit-Sha256") else None


def _of_same(chunk: Stored | None, first: Stored) -> bytes:
    return chunk.data if chunk is not None and chunk.headers.get(_SET) == first.headers.get(_SET) else b""


async def _headers_of(jet: JetStream, pattern: str) -> list[tuple[str, Mapping[str, str]]]:
    """The subject and the headers of every message of the texts that a pattern fits."""
    inbox = jet.client.new_inbox()
    answers = await jet.client.subscribe(inbox)
    config = {
        "deliver_policy": "last_per_subject",
        "ack_policy": "none",
        "deliver_subject": inbox,
        "filter_subject": pattern,
        "headers_only": True,
        "mem_storage": True,
        "num_replicas": 1,
        "inactive_threshold": 5_000_000_000,
    }
    try:
        created = await jet.asked(f"$JS.API.CONSUMER.CREATE.{TEXTS}", {"stream_name": TEXTS, "config": config})
        if "error" in created:
            raise unreachable(jet.address, str(created["error"].get("description")))
        # Some may have been delivered before it is told how many there are.
        left = int(created["num_pending"]) + int(created["delivered"]["consumer_seq"])
        found: list[tuple[str, Mapping[str, str]]] = []
        while len(found) < left:
            message = await answers.next_msg(_READ_S)
            found.append((message.subject, message.headers or {}))
    finally:
        await answers.unsubscribe()
    return found
