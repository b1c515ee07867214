"""Reports as they stand on the server: which of those under the name of an errand counts.

Rule 1: the first report that counts is what came of an errand. One that does not is passed over with a dead letter, and its
        errand goes on: the worker that has it writes its own behind it.
Rule 2: what a claimed call came to counts from the key that holds the claim, and from no other. That it is not known any more,
        any performer of its lane may say: then the call is in doubt.
Rule 3: that an errand was taken back counts from a key that sends errands.
Rule 4: where the signature of a report does not count, what came of its errand is not known: it may be that of the worker that
        had it, whose key was revoked since.
Rule 5: a report that stands before the turn that orders its command says nothing of it, and is passed over with a dead letter.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from remit.backend.clock import wall_clock_ms
from remit.backend.cluster.keys.signet import SIGNER
from remit.backend.cluster.layout import ERRAND, REPORT, performance_subject, report_subject, sent_subject, token
from remit.backend.cluster.server.jetstream import Stored
from remit.backend.cluster.server.link import Link
from remit.backend.cluster.work.claim_words import ClusterClaims
from remit.core.journal.queued import MESSAGE_PREMATURE, OUTCOME_UNCLAIMED, Came, ErrandName, Lane
from remit.core.journal.storage import Place
from remit.wire.credentials import CAPABILITY_LACKING

CAME = "Remit-Came"
_LOST: Mapping[str, str] = {CAME: Came.LOST.value}
# What any performer may say of a call that another has claimed.
_DOUBTS = (Came.LOST, Came.DEAD)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SeenReports:
    """How far the reports of an errand were read, and what the first says that counts."""

    place: int
    is_reported: bool = False
    data: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    # Whether the call has no claim of any key yet, so that it is not known whether it begins.
    is_unclaimed: bool = False


class StoredReports:
    """Reads the reports of errands, in the loop of the connection."""

    def __init__(self, link: Link, claims: ClusterClaims) -> None:
        self._link, self._signet = link, link.signet
        self._claims = claims

    async def seen(
        self, name: ErrandName, lane: Lane | None, claim: int, after: Place = 0, since: Place = 0
    ) -> SeenReports:
        """What is reported of an errand behind a place; `claim` is the attempt under which its call is claimed, 0 for none.

        What stands up to the place `since` is passed over, reports and claims.
        """
        while (stored := await self._link.jet.following(report_subject(name), after)) is not None:
            after, headers = stored.seq, stored.headers
            if after <= since:
                self.put_aside(after, stored.subject, MESSAGE_PREMATURE, "what is reported before it is ordered")
                continue
            said = SeenReports(after, is_reported=True, data=stored.data, headers=headers)
            unknown = SeenReports(after, is_reported=True, headers=_LOST)
            if code := self._objection(stored, lane):
                self.put_aside(after, stored.subject, code, "what is reported")
                return unknown
            if headers.get(CAME) == Came.WITHDRAWN:
                if self._signet.may_send(headers, ERRAND):
                    return said
                self.put_aside(after, stored.subject, CAPABILITY_LACKING, "that an errand was taken back")
                continue
            if not claim or headers.get(CAME) in _DOUBTS:
                return said
            holders = await self._claims.holders(name.run_id, name.command_id, claim, since)
            if not holders:
                return replace(said, is_unclaimed=True)
            if claim not in holders:
                # Another attempt has begun: what became of the call is not known from one that has not.
                return unknown
            if holders[claim] == headers[SIGNER]:
                return said
            self.put_aside(after, stored.subject, OUTCOME_UNCLAIMED, "what is said of a call that another has claimed")
        return SeenReports(after)

    def _objection(self, stored: Stored, lane: Lane | None) -> str:
        """Why a report is not believed, as a code; its signer must be let perform errands of the lane."""
        headers = stored.headers
        if why := self._signet.objection(stored.subject, stored.data, headers):
            return why
        if lane is None or headers.get(CAME) == Came.WITHDRAWN:
            return ""
        return self._signet.keyring.objection(headers[SIGNER], performance_subject(lane), wall_clock_ms())

    async def claimed_under(self, name: ErrandName, did: str, since: Place) -> int:
        """Under which attempt a key holds the call of an errand that was sent; 0 where it does not."""
        holders = await self._claims.holders(name.run_id, name.command_id, name.attempt, since)
        if not name.attempt or holders.get(name.attempt) != did:
            return 0
        if name.attempt > 1:
            # A claim of an attempt that no driver has sent counts for nothing.
            sent = await self._link.jet.last(sent_subject(name))
            if sent is None or not self._signet.is_believed(sent.subject, sent.data, sent.headers):
                return 0
        return name.attempt

    async def told_of(
        self, run_id: str, calls: Mapping[str, Lane], since: Mapping[str, Place]
    ) -> list[tuple[bytes, dict[str, str]]]:
        """What the keys that hold these calls have reported of them, whichever attempt it was."""
        found = list[tuple[bytes, dict[str, str]]]()
        for command_id, lane in calls.items():
            after = since[command_id]
            holders = frozenset((await self._claims.holders(run_id, command_id, since=after)).values())
            pattern = f"{REPORT}{token(run_id)}.{token(command_id)}.*"
            while (stored := await self._link.jet.following(pattern, after)) is not None:
                after, headers = stored.seq, dict(stored.headers)
                is_held = headers.get(SIGNER) in holders and headers.get(CAME) == Came.DONE
                if is_held and not self._objection(stored, lane):
                    found.append((stored.data, headers))
        return found

    def put_aside(self, place: int, subject: str, code: str, what: str) -> None:
        """Keep a dead letter about a message that is not believed."""
        _log.warning("%s: %s on %s is not believed", code, what, subject[:200])
        self._link.put_aside(place, subject, code, f"{what} is not believed")
