"""Dead letters: errands that no worker is given any more, kept with a code until a person looks, sends them again or they expire.

Rule 1: what is sent again is another attempt at the same errand: a call that has begun, or was taken back, is not made by it.
"""

from collections.abc import Callable
from typing import Protocol

from remit.backend.cluster.jetstream import JetMessage, Overtaken, Stored
from remit.backend.cluster.layout import DEAD, token
from remit.backend.cluster.link import TTL, Link
from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.codec import decode_record, encode_record
from remit.core.journal.queued import NO_ERRAND, DeadLetter, ErrandName, Lane
from remit.core.record import Record, replace

LETTER_UNKNOWN = "LETTER_UNKNOWN"
LETTER_EMPTY = "LETTER_EMPTY"

# How a gateway says of a message that it cannot be carried out.
_CODE, _REASON = "Remit-Code", "Remit-Reason"
_TTL_S = 30 * 24 * 3600
# No errand is tried so often; the numbers in between are those of attempts that were made.
_ATTEMPTS_MAX = 1_000


class _Letter(Record):
    letter: DeadLetter
    data: bytes


class Sends(Protocol):
    """Makes the message of an errand that is sent again."""

    def __call__(self, name: ErrandName, lane: Lane, data: bytes) -> JetMessage:
        """The message, signed."""


class DeadLetters:
    """The dead letters of a deployment."""

    def __init__(self, link: Link, now_ms: Callable[[], int], again: Sends) -> None:
        self._link = link
        self._now_ms = now_ms
        self._again = again

    async def keep(self, name: ErrandName, lane: Lane, data: bytes, code: str, why: str) -> None:
        """Keep an errand, with why no worker is given it."""
        letter = DeadLetter(0, name, lane, code, why[:500], self._now_ms())
        body = encode_record(_Letter(letter, data))
        subject = f"{DEAD}{token(lane.kind)}.{token(name.run_id)}.{token(name.command_id)}"
        await self._link.write(JetMessage(subject, body, {TTL: f"{_TTL_S}s"}))

    async def listed(self) -> list[DeadLetter]:
        """All letters, oldest first."""
        found, last = list[DeadLetter](), 0
        while (stored := await self._link.call(self._link.jet.following(DEAD + ">", last))) is not None:
            last = stored.seq
            if (kept := _kept(stored)) is not None:
                found.append(kept.letter)
        return found

    async def replay(self, number: int) -> DeadLetter:
        """Send an errand again, as another attempt at it; its letter is removed."""
        stored = await self._link.call(self._link.jet.at(number))
        kept = None if stored is None or not stored.subject.startswith(DEAD) else _kept(stored)
        if kept is None:
            message = f"there is no dead letter number {number}; `remit worker letters` lists those there are"
            raise RequestRejected(LETTER_UNKNOWN, message, {"number": number})
        if not kept.letter.name.attempt:
            message = f"dead letter {number} is no errand, so it cannot be sent again; its sender may send it anew"
            raise RequestRejected(LETTER_EMPTY, message, {"number": number})
        name = await self._sent(kept)
        await self._link.finish(self._link.jet.remove(number))
        return replace(kept.letter, name=name)

    async def _sent(self, kept: _Letter) -> ErrandName:
        name = kept.letter.name
        while name.attempt < _ATTEMPTS_MAX:
            name = replace(name, attempt=name.attempt + 1)
            try:
                await self._link.finish(self._link.jet.write(self._again(name, kept.letter.lane, kept.data)))
            except Overtaken:
                continue
            return name
        raise InvariantBroken("ERRAND_UNREADABLE", f"errand {name.command_id} of run {name.run_id} was tried too often")


def _kept(stored: Stored) -> _Letter | None:
    """The letter in a message; None where another program wrote it. Of what came over the wire, the headers say why."""
    if code := stored.headers.get(_CODE, ""):
        wire = DeadLetter(stored.seq, NO_ERRAND, Lane("wire", stored.subject), code, stored.headers.get(_REASON, ""))
        return _Letter(wire, b"")
    try:
        kept: _Letter = decode_record(stored.data, _Letter)
    except InvariantBroken:
        return None
    return replace(kept, letter=replace(kept.letter, number=stored.seq))
