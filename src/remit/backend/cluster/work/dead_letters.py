"""Dead letters: errands that no worker is given any more, kept with a code until a person looks, sends them again or they expire.

Rule 1: what is sent again is another attempt at the same errand: a call that has begun, or was taken back, is not made by it.
Rule 2: an errand is sent again as a performer of its lane has kept it: who has no key of the deployment has nothing done by it.
"""

from collections.abc import Callable
from typing import Protocol

from remit.backend.cluster.layout import ASIDE, CODE, DEAD, REASON, SUBJECT, performance_subject, token
from remit.backend.cluster.server.jetstream import JetMessage, Overtaken, Stored
from remit.backend.cluster.server.link import TTL, Link
from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.codec import decode_record, encode_record
from remit.core.journal.queued import ERRAND_UNREADABLE, NO_ERRAND, DeadLetter, ErrandName, Lane
from remit.core.record import Record, replace

LETTER_UNKNOWN = "LETTER_UNKNOWN"
LETTER_EMPTY = "LETTER_EMPTY"

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
        self._link, self._signet = link, link.signet
        self._now_ms = now_ms
        self._again = again

    async def keep(self, name: ErrandName, lane: Lane, data: bytes, code: str, why: str) -> None:
        """Keep an errand, with why no worker is given it."""
        letter = DeadLetter(number=0, name=name, lane=lane, code=code, why=why[:500], at_ms=self._now_ms())
        body = encode_record(_Letter(letter, data))
        subject = f"{DEAD}{token(lane.kind)}.{token(name.run_id)}.{token(name.command_id)}"
        headers = self._signet.signed(subject, body, {TTL: f"{_TTL_S}s"})
        await self._link.write(JetMessage(subject, body, headers))

    async def listed(self) -> list[DeadLetter]:
        """All letters, oldest first."""
        found, last = list[DeadLetter](), 0
        while (stored := await self._link.call(self._link.jet.following(DEAD + ">", last))) is not None:
            last = stored.seq
            if (kept := self._kept(stored)) is not None:
                found.append(kept.letter)
        return found

    async def replay(self, number: int) -> DeadLetter:
        """Send an errand again, as another attempt at it; its letter is removed."""
        stored = await self._link.call(self._link.jet.at(number))
        kept = None if stored is None or not stored.subject.startswith(DEAD) else self._kept(stored)
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
        raise InvariantBroken(ERRAND_UNREADABLE, f"errand {name.command_id} of run {name.run_id} was tried too often")

    def _kept(self, stored: Stored) -> _Letter | None:
        """The letter in a message; None where another program wrote it. Of what came over the wire, the headers say why.

        One that no performer of its lane has signed is shown with that code, and holds no errand.
        """
        if code := stored.headers.get(CODE, ""):
            lane = Lane("wire", stored.subject)
            if stored.subject.startswith(ASIDE):
                lane = Lane("aside", stored.headers.get(SUBJECT, ""))
            return _Letter(DeadLetter(stored.seq, NO_ERRAND, lane, code, stored.headers.get(REASON, "")), b"")
        try:
            kept: _Letter = decode_record(stored.data, _Letter)
        except InvariantBroken:
            return None
        letter = replace(kept.letter, number=stored.seq)
        may = performance_subject(letter.lane)
        if code := self._signet.objection(stored.subject, stored.data, stored.headers, may=may):
            what = f"no worker that performs such errands has signed it; it says {letter.code}: {letter.why}"
            return _Letter(replace(letter, name=replace(letter.name, attempt=0), code=code, why=what[:500]), b"")
        return replace(kept, letter=letter)
