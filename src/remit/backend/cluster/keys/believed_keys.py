"""Whose word counts on a cluster: the key of this folder and those that its owner accepts, as far as the keys room lets them.

Rule 1: a key that neither is of this folder nor accepted by its owner says nothing.
Rule 2: a statement of the keys room narrows its holder to the subjects that it names, until it expires. A holder that was
        narrowed by this process's own key narrows and revokes no other.
Rule 3: a key that was revoked is believed nothing any more. What it wrote to a log before that stays, by the clock of the server,
        with REVOKED_MS for every process to have heard of it: all processes read one log as the same.
"""

from collections.abc import Collection
from dataclasses import dataclass

from remit.backend.cluster.layout import PERFORM
from remit.backend.embedded.owner.key_file import FileKey
from remit.core.failure import InvariantBroken
from remit.core.journal.codec import decode_record
from remit.wire.credentials import (
    CAPABILITY_EXPIRED,
    CAPABILITY_LACKING,
    Capability,
    KeyEntry,
    Revocation,
    covers,
    is_issued,
    revoked_by,
)

SIGNER_UNKNOWN = "SIGNER_UNKNOWN"
SIGNER_REVOKED = "SIGNER_REVOKED"

# How long a process may take to hear that a key was revoked.
REVOKED_MS = 2_000
# The statements and revocations of a large deployment.
ENTRIES_MAX = 8_192


@dataclass(slots=True)
class _Standing:
    """What is known of one key."""

    statement: Capability | None = None
    revoked_at_ms: int | None = None


class Keyring:
    """The keys that this process believes."""

    def __init__(self, key: FileKey) -> None:
        self._key = key
        self._own = ""
        self._others: frozenset[str] = frozenset()
        self._statements: dict[tuple[str, str], Capability] = {}
        self._revocations: dict[tuple[str, str], Revocation] = {}
        self._known: dict[str, _Standing] = {}

    @property
    def own(self) -> str:
        """The key of this folder; empty where it has none."""
        if not self._own and self._key.is_made:
            self._own = self._key.signer.did
        return self._own

    def believe(self, others: Collection[str]) -> None:
        """Believe these keys, too, as the owner of the folder says."""
        self._others = frozenset(others)
        self._known.clear()

    def hear(self, data: bytes) -> None:
        """Take in an entry of the keys room; one that is not signed by whom it names says nothing."""
        try:
            entry: KeyEntry = decode_record(data, KeyEntry)
        except InvariantBroken:
            return
        if len(self._statements) + len(self._revocations) >= ENTRIES_MAX:
            return
        if (stated := entry.statement) is not None and is_issued(stated):
            self._statements[stated.issuer, stated.subject] = stated
        if (revoked := entry.revocation) is not None and revoked_by(revoked.issuer, [revoked]):
            # The first word stays, so that none can be moved to a later time.
            first = self._revocations.setdefault((revoked.issuer, revoked.revokes), revoked)
            if revoked.at_ms < first.at_ms:
                self._revocations[revoked.issuer, revoked.revokes] = revoked
        self._known.clear()

    def objection(self, did: str, subject: str, at_ms: int, *, kept: bool = False) -> str:
        """Why a key's word under a subject does not count at a time, as a code; of a log, the time at which it was kept."""
        own = self.own
        if not did or (did != own and did not in self._others):
            return SIGNER_UNKNOWN
        standing = self._known.get(did)
        if standing is None:
            standing = self._known[did] = self._standing(did, own)
        revoked_at_ms, stated = standing.revoked_at_ms, standing.statement
        if revoked_at_ms is not None and not (kept and at_ms <= revoked_at_ms + REVOKED_MS):
            return SIGNER_REVOKED
        if stated is None:
            return ""
        if not any(covers(pattern, subject) for pattern in stated.may):
            return CAPABILITY_LACKING
        return CAPABILITY_EXPIRED if at_ms >= stated.expires_at_ms else ""

    def performs(self, did: str) -> frozenset[str] | None:
        """The kinds of errands that a key may perform; None for all."""
        stated = self._standing(did, self.own).statement
        if stated is None:
            return None
        parts = [pattern.removeprefix(PERFORM).split(".")[0] for pattern in stated.may if pattern.startswith(PERFORM)]
        return frozenset(parts)

    def ended_code(self, did: str, at_ms: int) -> str:
        """SIGNER_REVOKED for a key that was revoked, CAPABILITY_EXPIRED for one whose statement is over; empty for any other."""
        if not did:
            return ""
        standing = self._standing(did, self.own)
        if standing.revoked_at_ms is not None:
            return SIGNER_REVOKED
        is_over = standing.statement is not None and at_ms >= standing.statement.expires_at_ms
        return CAPABILITY_EXPIRED if is_over else ""

    def admitted_for(self, did: str) -> tuple[str, ...]:
        """The subjects that a key was narrowed to; none where it was narrowed to nothing."""
        stated = self._standing(did, self.own).statement
        return () if stated is None else stated.may

    def _standing(self, did: str, own: str) -> _Standing:
        accepted = {own, *self._others} - {""}
        narrowed = {subject for issuer, subject in self._statements if issuer == own != subject}
        roots = accepted - narrowed
        stated = [
            one
            for (issuer, subject), one in self._statements.items()
            if subject == did and issuer in roots and issuer != did
        ]
        revoked = [
            one.at_ms
            for (issuer, revokes), one in self._revocations.items()
            if revokes == did and (issuer == did or issuer in roots)
        ]
        # Of several, the first that was made narrows: a later one of another issuer gives nothing back.
        statement = min(stated, key=lambda one: one.not_before_ms, default=None)
        return _Standing(statement, min(revoked, default=None))
