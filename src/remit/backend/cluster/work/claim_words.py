"""Who has begun a call that changes something: the last word on a subject of its own, each written behind the one before.

Rule 1: a call begins when its claim stands; the process that writes the next word first decides, and every other one is told.
Rule 2: a process that revokes a call writes a word of its own, so that none offers it again that knew only an earlier word.
Rule 3: words expire long after the last delivery of their errand could come.
Rule 4: a claim belongs to the key that signed it: what came of a call counts from the key that holds it. One that is written
        behind another claim, and not granted by it, belongs to none.
Rule 5: keys of tools claim calls, and those of drivers. The word of any other key says that a call may have begun.
Rule 6: a word that stands before the turn that orders its call says nothing of it, whichever key signed it: no worker was given
        the call then. So it is passed over with a dead letter, and the next word is written behind it.
"""

from remit.backend.cluster.keys.signet import SIGNER, Signet
from remit.backend.cluster.layout import ERRAND, claim_subject, token
from remit.backend.cluster.logs.log_copy import ClusterLogCopy
from remit.backend.cluster.server.jetstream import JetMessage, Overtaken, Stored
from remit.backend.cluster.server.link import TTL, Link
from remit.core.failure import InvariantBroken
from remit.core.journal.codec import decode_record, encode_record
from remit.core.journal.queued import MESSAGE_PREMATURE, Claim, Claimed, ClaimWord, claim_outcome
from remit.core.journal.storage import Place

# An errand expires after a day.
CLAIM_TTL_S = 3 * 24 * 3600
# A word of one who has no key stands for a call that was begun, at the last of all attempts.
_UNKNOWN = Claim(ClaimWord.CLAIMED, "?", 1 << 30)
_TOOL = "tool"


class ClusterClaims:
    """The claims of all processes; `by` names this one where no worker is named."""

    def __init__(self, link: Link, signet: Signet, log_copy: ClusterLogCopy) -> None:
        self._link = link
        self._signet = signet
        # Behind which place words about a command count.
        self.since = log_copy.ordered_at

    async def claim(self, run_id: str, command_id: str, *, by: str = "", attempt: int = 1) -> Claimed:
        """Whether a call may begin now: for this attempt, or, where it is 0, whatever attempt has begun before."""
        by = by or self._link.worker
        found = await self._link.finish(self._claim(run_id, command_id, by, attempt, 0))
        # Asked only where another word stands: a worker that has folded no turns does so then.
        if found is not Claimed.GRANTED and (since := await self.since(run_id, command_id)):
            found = await self._link.finish(self._claim(run_id, command_id, by, attempt, since))
        return found

    async def revoke(self, run_id: str, command_id: str) -> bool:
        """Whether a call will certainly not be made; False where it has begun."""
        since = await self.since(run_id, command_id)
        return await self._link.finish(self._revoke(run_id, command_id, since))

    async def offer(self, run_id: str, command_id: str) -> None:
        """Let a call begin again that was revoked here, unless another has revoked it since."""
        since = await self.since(run_id, command_id)
        await self._link.finish(self._offer(run_id, command_id, since))

    async def last(self, run_id: str, command_id: str) -> Claim | None:
        """The last word about a call."""
        since = await self.since(run_id, command_id)
        return (await self._link.call(self._last(run_id, command_id, since)))[0]

    def put_aside(self, run_id: str, command_id: str, code: str, why: str) -> None:
        """Keep a dead letter about a call that a person should look at, once for all processes."""
        self._link.put_aside(f"{token(run_id)}-{token(command_id)}", f"of run {run_id}", code, why)

    async def holders(self, run_id: str, command_id: str, attempt: int = 0, since: Place = 0) -> dict[int, str]:
        """The keys that hold a call, by attempts at it; the words are read until this attempt has one, or all of them.

        Those up to the place `since` are passed over.

        An attempt is held by no key where a word of one that does not count here says that the call may have begun.
        Runs in the loop of the connection.
        """
        subject, place, begun = claim_subject(run_id, command_id), 0, None
        holders = dict[int, str]()
        while (not attempt or attempt not in holders) and (
            stored := await self._link.jet.following(subject, place)
        ) is not None:
            place, said = stored.seq, self._read(stored)
            if place <= since:
                self._pass_over(stored)
            elif said.word is not ClaimWord.CLAIMED:
                # What was begun is not undone by a word behind it.
                begun = begun if holders else said
            elif claim_outcome(begun, said) is Claimed.GRANTED:
                holders.setdefault(said.attempt, "" if said is _UNKNOWN else stored.headers[SIGNER])
                begun = said
        return holders

    def _pass_over(self, stored: Stored) -> None:
        why = "a claim is older than the turn that orders its call"
        self._link.put_aside(stored.seq, stored.subject, MESSAGE_PREMATURE, why)

    async def _last(self, run_id: str, command_id: str, since: Place) -> tuple[Claim | None, int]:
        stored = await self._link.jet.last(claim_subject(run_id, command_id))
        if stored is None:
            return None, 0
        if stored.seq <= since:
            self._pass_over(stored)
            return None, stored.seq
        claim = self._read(stored)
        if claim.word is ClaimWord.CLAIMED:
            return claim, stored.seq
        # What was begun is not undone by a word behind it: a copy of an earlier one is signed as well.
        place, begun = since, claim
        while (
            earlier := await self._link.jet.following(stored.subject, place)
        ) is not None and earlier.seq < stored.seq:
            place, found = earlier.seq, self._read(earlier)
            begun = found if found.word is ClaimWord.CLAIMED else begun
        return begun, stored.seq

    def _read(self, stored: Stored) -> Claim:
        """The word in a message. Of one who has no key nothing is known: the call is neither begun nor said not to be made."""
        if not self._signet.is_believed(stored.subject, stored.data, stored.headers):
            return _UNKNOWN
        try:
            found: Claim = decode_record(stored.data, Claim)
        except InvariantBroken:
            return _UNKNOWN
        performs = self._signet.keyring.performs(stored.headers[SIGNER])
        is_performers = found.word is ClaimWord.CLAIMED and (performs is None or _TOOL in performs)
        if is_performers or self._signet.may_send(stored.headers, ERRAND):
            return found
        # A key that only performs may say that a call begins, and not that it never will.
        return _UNKNOWN

    async def _claim(self, run_id: str, command_id: str, by: str, attempt: int, since: Place) -> Claimed:
        # Nobody has said anything of most calls.
        last, place = None, 0
        while True:
            number = attempt or (0 if last is None else last.attempt) + 1
            wanted = Claim(ClaimWord.CLAIMED, by, number)
            found = claim_outcome(last, wanted)
            if found is not Claimed.GRANTED or last == wanted:
                return found
            if await self._written(run_id, command_id, wanted, place):
                return found
            last, place = await self._last(run_id, command_id, since)

    async def _revoke(self, run_id: str, command_id: str, since: Place) -> bool:
        mine = Claim(ClaimWord.REVOKED, self._link.worker)
        last, place = None, 0
        while last is None or (last.word is not ClaimWord.CLAIMED and last != mine):
            if await self._written(run_id, command_id, mine, place):
                return True
            last, place = await self._last(run_id, command_id, since)
        return last == mine

    async def _offer(self, run_id: str, command_id: str, since: Place) -> None:
        last, place = await self._last(run_id, command_id, since)
        if last == Claim(ClaimWord.REVOKED, self._link.worker):
            await self._written(run_id, command_id, Claim(ClaimWord.OFFERED, self._link.worker), place)

    async def _written(self, run_id: str, command_id: str, claim: Claim, after: int) -> bool:
        try:
            await self._link.jet.write(claim_message(self._signet, run_id, command_id, claim, after))
        except Overtaken:
            return False
        return True


def claim_message(signet: Signet, run_id: str, command_id: str, claim: Claim, after: int | None) -> JetMessage:
    """A word about a call, as it is written behind another, signed."""
    subject, data = claim_subject(run_id, command_id), encode_record(claim)
    return JetMessage(subject, data, signet.signed(subject, data, {TTL: f"{CLAIM_TTL_S}s"}), after)
