"""What is written to and read from JetStream, on one connection: entries by compare-and-append, batches, texts by subject.

Rule 1: a write is told as written, as refused, or not at all: where the answer is lost or says something else, the leader
        is asked what follows the entry that the write was to follow, and the nonce there says whose it is.
Rule 2: a batch is sent in one piece and never left open; a process has one open at a time. Writes that wait for it go together in
        the next: one node stages every batch on its disk, so one batch for many runs costs what a batch for one does.
Rule 3: what must be the newest is read from the leader; what is known to be there from any node, while all of them answer.
"""

import asyncio
import json
import secrets
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from remit.backend.cluster.layout import NONCE
from remit.backend.cluster.server.connection import (
    ANSWER_S_MIN,
    Tries,
    patient_server_answer,
    unreachable,
)
from remit.core.journal.codec import read_json
from remit.core.journal.storage import StoreUnusable
from remit.wire.subjects import STREAM

EXPECTED = "Nats-Expected-Last-Subject-Sequence"
MESSAGE_ID = "Nats-Msg-Id"
BATCH, BATCH_SEQUENCE, BATCH_COMMIT = "Nats-Batch-Id", "Nats-Batch-Sequence", "Nats-Batch-Commit"

# How many messages one question asks for; a batch of answers is held in memory.
PIECE = 500
# How long the leader alone is asked after some node gave no answer.
DOUBT_S = 30.0
# A server takes at most so many messages in one batch.
BATCH_MAX = 1_000
# What a server says where there is no room: for the account, on the disk, in the stream.
_FULL = frozenset({10002, 10023, 10028, 10047, 10077})
_WRONG_LAST = frozenset({10071, 10164})
NO_MESSAGE = 10037
_UNDECIDED = (NatsError, TimeoutError, OSError)
# The statuses with which a consumer hands over nothing; 408 says that the time of the question is over.
_NOTHING = ("404", "408", "409", "503")
_NS_PER_S = 1_000_000_000


class Overtaken(Exception):
    """Another entry follows the one that a write was to follow; nothing of the write is there."""

    def __init__(self, subject: str) -> None:
        super().__init__(f"another entry of {subject} was written first")
        self.subject = subject


@dataclass(frozen=True, slots=True)
class JetMessage:
    """One message of a write. `after` is the last message of its subject, 0 for none; None where any may be."""

    subject: str
    data: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    after: int | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as it is kept."""

    seq: int
    subject: str
    data: bytes
    headers: Mapping[str, str]


class _Batch:
    """A write of several messages that waits for its turn, and the answer to it."""

    __slots__ = ("answer", "messages", "nonce")

    def __init__(self, messages: Sequence[JetMessage], nonce: str) -> None:
        self.messages = messages
        self.nonce = nonce
        self.answer: dict[str, Any] | None = None


class JetStream:
    """Reads and writes of one connection."""

    def __init__(self, client: Client, address: str) -> None:
        self.client = client
        self.address = address
        # Until then nodes other than the leader are asked nothing: one of them gave no answer.
        self._leader_only_s = 0.0
        self._batches = asyncio.Lock()
        self._waiting: list[_Batch] = []

    async def write(self, *messages: JetMessage) -> int:
        """Write messages together or not at all; gives the sequence of the first, the others follow it.

        Raises Overtaken where one of them does not follow what it was to follow.
        """
        nonce = secrets.token_hex(8)
        tries = Tries(self.address)
        while True:
            answer: dict[str, Any] = {}
            why = "no answer"
            try:
                answer = await self._send(messages, nonce, tries.answer_s)
                if "error" not in answer:
                    return int(answer["seq"]) - int(answer.get("count", 1)) + 1
                why = str(answer["error"].get("description", ""))
                if (seq := await self._settled(messages, nonce)) is not None:
                    return seq
            except _UNDECIDED as error:
                why = str(error) or type(error).__name__
            code = answer.get("error", {}).get("err_code", 0)
            if code in _WRONG_LAST:
                raise Overtaken(await self._astray(messages))
            if code in _FULL:
                raise _full(self.address, why)
            await tries.failed(why)

    async def _send(self, messages: Sequence[JetMessage], nonce: str, answer_s: float) -> dict[str, Any]:
        if len(messages) == 1:
            (only,) = messages
            # A write that may follow anything is told apart by the server, for two minutes.
            headers = _headers(only, nonce) | ({MESSAGE_ID: nonce} if only.after is None else {})
            return await self._last_word(only, headers, answer_s)
        mine = _Batch(messages, nonce)
        self._waiting.append(mine)
        try:
            async with self._batches:
                if mine.answer is None:
                    await self._commit(self._group_with(mine), answer_s)
        finally:
            if mine in self._waiting:
                self._waiting.remove(mine)
        assert mine.answer is not None, "the task that has the turn sends what waits"
        return mine.answer

    def _group_with(self, first: "_Batch") -> list["_Batch"]:
        """The writes that go together with one: those that wait, as far as none has a subject that another has."""
        group, subjects, count = [], set[str](), 0
        for one in (first, *(other for other in self._waiting if other is not first)):
            own = {message.subject for message in one.messages}
            if subjects.isdisjoint(own) and count + len(one.messages) <= BATCH_MAX:
                group.append(one)
                subjects |= own
                count += len(one.messages)
        for one in group:
            self._waiting.remove(one)
        return group

    async def _commit(self, group: Sequence["_Batch"], answer_s: float) -> None:
        """Send writes in one batch; where one of them is refused, each alone."""
        try:
            answer = await self._sent([(message, one.nonce) for one in group for message in one.messages], answer_s)
        except _UNDECIDED as error:
            # Each of them asks what became of it.
            for one in group:
                one.answer = {"error": {"description": str(error) or type(error).__name__}}
            return
        if "error" in answer and len(group) > 1:
            for one in group:
                await self._commit([one], answer_s)
            return
        seq = int(answer.get("seq", 0)) - sum(len(one.messages) for one in group)
        for one in group:
            seq += len(one.messages)
            one.answer = answer if "error" in answer else {"seq": seq, "count": len(one.messages)}

    async def _sent(self, parts: Sequence[tuple[JetMessage, str]], answer_s: float) -> dict[str, Any]:
        # A batch whose commit was lost is begun again under another name; the server forgets the first.
        batch = {BATCH: secrets.token_hex(8)}
        *others, (last, last_headers) = [
            (message, _headers(message, nonce) | batch | {BATCH_SEQUENCE: str(number)})
            for number, (message, nonce) in enumerate(parts, 1)
        ]
        for message, headers in others:
            await self.client.publish(message.subject, message.data, headers=headers)
        return await self._last_word(last, last_headers | {BATCH_COMMIT: "1"}, answer_s)

    async def _last_word(self, message: JetMessage, headers: dict[str, str], answer_s: float) -> dict[str, Any]:
        answer = await self.client.request(message.subject, message.data, timeout=answer_s, headers=headers)
        found: dict[str, Any] = read_json(answer.data)
        return found

    async def _settled(self, messages: Sequence[JetMessage], nonce: str) -> int | None:
        """Where the first message stands if the write is there, None if not; raises Overtaken where it cannot be any more."""
        for number, message in enumerate(messages):
            if message.after is None:
                continue
            following = await self.following(message.subject, message.after)
            if following is None:
                continue
            if following.headers.get(NONCE) != nonce:
                raise Overtaken(message.subject)
            return following.seq - number
        return None

    async def _astray(self, messages: Sequence[JetMessage]) -> str:
        """The subject of a message that was to follow one that is not there."""
        for message in messages:
            if message.after and ((last := await self.last(message.subject)) is None or last.seq != message.after):
                return message.subject
        return messages[0].subject

    async def following(self, subject: str, seq: int, stream: str = STREAM) -> Stored | None:
        """The first message of a subject behind a sequence, as the leader knows it."""
        return await self._got(stream, {"seq": seq + 1, "next_by_subj": subject})

    async def last(self, subject: str, stream: str = STREAM) -> Stored | None:
        """The last message of a subject, as the leader knows it."""
        return await self._got(stream, {"last_by_subj": subject})

    async def at(self, seq: int, stream: str = STREAM) -> Stored | None:
        """One message, as the leader knows it."""
        return await self._got(stream, {"seq": seq})

    async def _got(self, stream: str, question: Mapping[str, Any]) -> Stored | None:
        found = await self.asked(f"$JS.API.STREAM.MSG.GET.{stream}", question)
        error = found.get("error", {})
        if error.get("err_code") == NO_MESSAGE:
            return None
        if error:
            raise unreachable(self.address, str(error.get("description")))
        message = found["message"]
        headers = dict(_parsed(b64decode(message.get("hdrs", ""))))
        return Stored(int(message["seq"]), message["subject"], b64decode(message.get("data", "")), headers)

    async def asked(self, subject: str, question: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What the API answers; it is asked again while there is no leader."""
        return await patient_server_answer(self.client, self.address, subject, question)

    async def newest(self, subject: str, stream: str) -> Stored | None:
        """The last message of a subject as any node knows it; the leader is asked where that node has none."""
        if self._asks_any_node():
            try:
                answer = await self.client.request(f"$JS.API.DIRECT.GET.{stream}.{subject}", b"", timeout=ANSWER_S_MIN)
            except _UNDECIDED:
                self._doubt_nodes()
            else:
                if _is_there(answer):
                    return _stored(answer)
        return await self.last(subject, stream)

    def _asks_any_node(self) -> bool:
        return asyncio.get_running_loop().time() >= self._leader_only_s

    def _doubt_nodes(self) -> None:
        """Ask the leader alone for a while: a node that hangs stays among those that are asked until the others miss it."""
        self._leader_only_s = asyncio.get_running_loop().time() + DOUBT_S

    async def many(self, seqs: Sequence[int], subject: str, stream: str = STREAM) -> dict[int, Stored]:
        """The messages of a subject (or pattern) with these sequences, which grow; those that are gone are left out."""
        found: dict[int, Stored] = {}
        missing = seqs
        while missing:
            piece = await self._piece(missing[:PIECE], subject, stream) if self._asks_any_node() else {}
            found |= piece
            if not piece:
                # A node that lags behind, or gives no answer; or it is gone.
                if (stored := await self.at(missing[0], stream)) is not None:
                    found[stored.seq] = stored
                missing = missing[1:]
            # Other messages may stand between these, so that a piece holds less than was asked for.
            missing = [seq for seq in missing if seq not in found]
        return found

    async def _piece(self, wanted: Sequence[int], subject: str, stream: str) -> dict[int, Stored]:
        question = {"seq": wanted[0], "batch": len(wanted), "next_by_subj": subject}
        if len(wanted) == 1:
            question = {"seq": wanted[0]}
        inbox, found, needed = self.client.new_inbox(), dict[int, Stored](), frozenset(wanted)
        answers = await self.client.subscribe(inbox)
        try:
            await self.client.publish(f"$JS.API.DIRECT.GET.{stream}", json.dumps(question).encode(), reply=inbox)
            while not needed <= found.keys():
                answer = await answers.next_msg(ANSWER_S_MIN)
                if not _is_there(answer):
                    break
                stored = _stored(answer)
                if stored.seq in needed:
                    found[stored.seq] = stored
        except _UNDECIDED:
            self._doubt_nodes()
        finally:
            await answers.unsubscribe()
        return found

    async def pulled(self, consumer: str, wait_s: float) -> Msg | None:
        """The next message that a consumer hands over; None where none came within so long."""
        asked = json.dumps({"batch": 1, "expires": int(wait_s * _NS_PER_S)}).encode()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{STREAM}.{consumer}"
        try:
            message = await self.client.request(subject, asked, timeout=wait_s + 1, old_style=True)
        except _UNDECIDED:
            # No leader just now: it is asked again, and not at once.
            await asyncio.sleep(wait_s / 10)
            return None
        status = (message.headers or {}).get("Status", "")
        if status in _NOTHING:
            if status != "408":
                await asyncio.sleep(wait_s / 10)
            return None
        return message

    async def remove(self, seq: int, stream: str = STREAM) -> None:
        """Remove one message, its bytes overwritten."""
        await self.asked(f"$JS.API.STREAM.MSG.DELETE.{stream}", {"seq": seq, "no_erase": False})

    async def purge(self, subject: str, *, stream: str = STREAM, before: int = 0) -> None:
        """Remove every message of a subject or pattern; those from a sequence on stay where one is named."""
        question: dict[str, Any] = {"filter": subject}
        if before:
            question["seq"] = before
        await self.asked(f"$JS.API.STREAM.PURGE.{stream}", question)


def _headers(message: JetMessage, nonce: str) -> dict[str, str]:
    expected = {} if message.after is None else {EXPECTED: str(message.after)}
    return {**message.headers, NONCE: nonce, **expected}


def _is_there(answer: Msg) -> bool:
    return answer.headers is not None and "Nats-Sequence" in answer.headers


def _stored(answer: Msg) -> Stored:
    headers = answer.headers or {}
    return Stored(int(headers["Nats-Sequence"]), headers["Nats-Subject"], answer.data, headers)


def _parsed(raw: bytes) -> Iterator[tuple[str, str]]:
    """The headers of a message as the API gives them: lines behind the first."""
    for line in raw.decode(errors="replace").split("\r\n")[1:]:
        key, colon, value = line.partition(":")
        if colon:
            yield key, value.strip()


def _full(address: str, why: str) -> StoreUnusable:
    message = f"the NATS server at {address} has no room: {why}; make room, or raise the limits of its account"
    return StoreUnusable("STORE_FULL", message, {"address": address})
