"""The keys room: which keys of workers and agents a deployment believes, what each may send, and which it revoked.

Rule 1: the root is the key of the deployment. Only who holds it admits keys; the root, or the holder of a key, revokes it.
Rule 2: entries are believed for their signatures, wherever they are kept; one that cannot be read or is not signed says nothing.
Rule 3: a process that checks knows within seconds what was revoked; unable to look for longer, it believes nothing.
Rule 4: each tenant has an account of the NATS servers: the streams, buckets and subjects of one do not exist for another. A
        user of it is the key that seals its messages; the servers let no revoked key in. Only the key of the deployment
        writes what is said of keys, and changes streams. Programs that are no workers send what their statement names, hear
        events and replies, and see buckets; nothing else of their tenant.
"""

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Protocol

from remit.core.durations import DAY_MS
from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.codec import decode_record, encode_record
from remit.core.journal.signing import DID, Signer, is_did, nkey_of
from remit.core.journal.storage import StoreUnusable
from remit.core.record import Record
from remit.core.regex import regex
from remit.core.run.principal import EVERY_TENANT
from remit.orchestrate.ports import Clock
from remit.wire.credentials import (
    Capability,
    KeyEntry,
    Revocation,
    TrustedSenders,
    covers,
    is_issued,
    issue,
    revoke,
    revoked_by,
)
from remit.wire.envelopes import (
    ENVELOPE_MALFORMED,
    SEAL_HEADER,
    VALID_MS_MAX,
    OpenedMessage,
    SealedInbox,
    SealedOutbox,
)
from remit.wire.subjects import TOLD, SubjectFamily, subject_filter

KEYS_NOT_ROOT = "KEYS_NOT_ROOT"
KEYS_UNKNOWN = "KEYS_UNKNOWN"
KEYS_STALE = "KEYS_STALE"
KEYS_REVOKED = "KEYS_REVOKED"

# How old what is known of keys may be: who was revoked is believed for no longer.
FRESH_MS = 2_000
# How long it is believed where the servers do not answer.
STALE_MS_MAX = 30_000
DAYS_MAX = 3_650

# What a worker or an agent of each kind sends.
ROLES: Mapping[str, tuple[str, ...]] = {
    "agent": ("agent.task.*", "agent.signal.*", "user.message.*.*"),
    "loop": ("agent.log.>", "agent.errand.>", "agent.due.>", "agent.claim.>", "agent.late.>", "agent.report.>"),
    "model": ("agent.report.>", "agent.claim.>", "agent.late.>", "agent.perform.model.>"),
    "tools": ("agent.report.>", "agent.claim.>", "agent.late.>", "agent.perform.tool.>"),
}


# What only the key of the deployment does.
_KEPT = ("$KV.AGENT_KEYS.>", "$JS.API.STREAM.DELETE.>", "$JS.API.STREAM.UPDATE.>", "$JS.API.STREAM.RESTORE.>")
# What drivers and gateways are handed: that a run is due, what came late, and what came over the wire. A key that performs for
# others neither takes nor acknowledges it, nor changes how it is handed over. Servers spell an acknowledgement in two ways.
_HANDED = tuple(
    f"{before}{queue}{behind}"
    for queue in ("words-agent-due", "words-agent-late", "remit-wire")
    for before, behind in (
        ("$JS.API.CONSUMER.MSG.NEXT.AGENT.", ""),
        ("$JS.API.CONSUMER.DURABLE.CREATE.AGENT.", ""),
        ("$JS.ACK.AGENT.", ".>"),
        ("$JS.ACK.*.*.AGENT.", ".>"),
    )
)
# What who performs for others needs nothing of: to remove what stands in a stream, or how it is handed over; and to say what
# drivers, gateways and users say. A server cannot narrow a purge to subjects, so those who drive runs may purge whole streams.
_DRIVERS = (
    *_HANDED,
    "$JS.API.STREAM.CREATE.>",
    "$JS.API.STREAM.PURGE.>",
    "$JS.API.STREAM.MSG.DELETE.>",
    "$JS.API.STREAM.SNAPSHOT.>",
    "$JS.API.STREAM.PEER.REMOVE.>",
    "$JS.API.STREAM.LEADER.STEPDOWN.>",
    "$JS.API.CONSUMER.DELETE.>",
    "$JS.API.CONSUMER.PAUSE.>",
    "$JS.API.CONSUMER.RESET.>",
    "$JS.API.CONSUMER.LEADER.STEPDOWN.>",
    # By name; the end of a log is read through one that has none.
    "$JS.API.CONSUMER.CREATE.AGENT.>",
    "agent.log.>",
    "agent.errand.>",
    "agent.due.>",
    *[f"{family.value}.>" for family in SubjectFamily],
    "$KV.>",
)
# Events, replies and the buckets, for programs that are no workers.
_HEARD = (*[subject_filter(family) for family in TOLD], "_INBOX.>")
_LOOKS = tuple(
    f"$JS.API.{verb}.KV_{bucket}{rest}"
    for bucket in ("AGENT_LOOPS", "AGENT_TRAJECTORIES")
    for verb, rest in (("STREAM.INFO", ""), ("DIRECT.GET", ".>"))
)
_SIZE = regex(r"[1-9][0-9]{0,15}[KMGT]?")
_NAME = regex(r"[A-Za-z0-9_-]{1,64}")
CONNECTIONS_DEFAULT = 256


class Shelf(Protocol):
    """Keeps entries by name."""

    async def keep(self, name: str, data: bytes) -> None:
        """Keep an entry in the place of the one before."""

    async def kept(self) -> list[bytes]:
        """All entries, the oldest first."""


class KnownKey(Record, kw_only=True):
    """A key as a person is shown it."""

    did: str
    name: str
    may: tuple[str, ...]
    tenant: str
    expires_at_ms: int
    is_revoked: bool


class KeyRoom:
    """The keys of a deployment, as one holder of a key sees them."""

    def __init__(self, shelf: Shelf, signer: Signer, clock: Clock, root: str = "") -> None:
        if root:
            _check_did(root)
        self._shelf, self._signer, self._clock = shelf, signer, clock
        self.root, self.own = root or signer.did, signer.did
        self.roles = ROLES

    async def admit(
        self, did: str, *, may: Sequence[str], tenant: str = EVERY_TENANT, days: int = 90, name: str = ""
    ) -> Capability:
        """Let a key send under these subjects, for so many days; raises RequestRejected where that cannot be said."""
        entries = await self._entries()
        self._expect_root("admits keys", entries)
        _check_did(did)
        if not 1 <= days <= DAYS_MAX:
            raise RequestRejected(KEYS_UNKNOWN, f"days={days} is not within 1 to {DAYS_MAX}")
        if did in self._revoked(entries):
            message = f"{did[:80]} was revoked, and what it says is believed never again; make a new key on its machine"
            raise RequestRejected(KEYS_REVOKED, message, {"did": did})
        now_ms = self._clock.now_ms()
        stated = issue(
            self._signer,
            did,
            capability_id=token_hex(8),
            tenant=tenant,
            may=may,
            not_before_ms=now_ms,
            expires_at_ms=now_ms + days * DAY_MS,
        )
        await self._shelf.keep(did, encode_record(KeyEntry(name=name, statement=stated)))
        return stated

    async def revoke(self, did: str, *, why: str) -> Revocation:
        """Believe a key nothing any more; raises RequestRejected where it is not there, or not the caller's to revoke."""
        # One that an earlier version admitted although it spells no key is taken back like any other.
        if did != self._signer.did:
            self._expect_root("revokes keys of others", await self._entries())
        if did not in {key.did for key in await self.listed()} and did != self._signer.did:
            raise RequestRejected(KEYS_UNKNOWN, f"{did[:80]} was never admitted; `remit keys` lists those that were")
        revoked = revoke(self._signer, did, at_ms=self._clock.now_ms(), why=why)
        await self._shelf.keep(f"revoked {did}", encode_record(KeyEntry(revocation=revoked)))
        return revoked

    async def listed(self) -> list[KnownKey]:
        """The keys that were admitted, revoked ones among them."""
        entries = await self._entries()
        revoked = self._revoked(entries)
        return [
            KnownKey(
                did=stated.subject,
                name=entry.name,
                may=stated.may,
                tenant=stated.tenant,
                expires_at_ms=stated.expires_at_ms,
                is_revoked=stated.subject in revoked,
            )
            for entry in entries
            if (stated := entry.statement) is not None and stated.issuer == self.root and is_issued(stated)
        ]

    async def trusted(self) -> TrustedSenders:
        """Whom to believe what, now."""
        entries = await self._entries()
        held = [entry.statement for entry in entries if entry.statement is not None]
        chains = {stated.subject: (stated,) for stated in held if stated.issuer == self.root}
        return TrustedSenders(root=self.root, chains=chains, revoked=self._revoked(entries))

    def _revoked(self, entries: Sequence[KeyEntry]) -> frozenset[str]:
        return revoked_by(self.root, [entry.revocation for entry in entries if entry.revocation is not None])

    async def _entries(self) -> list[KeyEntry]:
        found = list[KeyEntry]()
        for data in await self._shelf.kept():
            try:
                found.append(decode_record(data, KeyEntry))
            except InvariantBroken:
                # Another program wrote it, and it says nothing that could be believed.
                continue
        return found

    def _expect_root(self, does: str, entries: Sequence[KeyEntry]) -> None:
        held = [entry.statement for entry in entries if entry.statement is not None]
        by = [one.issuer for one in held if one.subject == self.own != one.issuer and is_issued(one)]
        if by and self.root == self.own:
            # What it said would stand in the place of what the deployment has said.
            message = f"only the key of the deployment {does}; that of this folder, {self.own}, was admitted by {by[0]}"
            raise RequestRejected(KEYS_NOT_ROOT, message)
        if self._signer.did != self.root:
            message = f"only the key of the deployment, {self.root}, {does}; this folder holds {self._signer.did}"
            raise RequestRejected(KEYS_NOT_ROOT, message)


class SealedLine:
    """Seals what one worker sends and checks what it is sent: `sign` and `check` are all that a worker needs."""

    def __init__(self, room: KeyRoom, signer: Signer, clock: Clock, tenant: str) -> None:
        self._room, self._clock = room, clock
        self._outbox = SealedOutbox(signer, audience=room.root, tenant=tenant, epoch=token_hex(8))
        self._inbox = SealedInbox(TrustedSenders(root=room.root), tenant=tenant)
        self._known_at_ms = 0

    def sign(self, subject: str, body: bytes, *, valid_ms: int = VALID_MS_MAX) -> dict[str, str]:
        """The header with which a message is sent, so that receivers believe who sent it."""
        return {SEAL_HEADER: self._outbox.sealed(subject, body, at_ms=self._clock.now_ms(), valid_ms=valid_ms)}

    async def check(
        self,
        subject: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        is_queue: bool = True,
        is_redelivery: bool = False,
    ) -> OpenedMessage:
        """A message that may be believed, and what its sender may do; raises RequestRejected with a code for any other."""
        await self._look()
        if SEAL_HEADER not in headers:
            raise RequestRejected(ENVELOPE_MALFORMED, f"the message has no seal; sign it, in the header {SEAL_HEADER}")
        return self._inbox.open(
            headers[SEAL_HEADER],
            body,
            subject=subject,
            at_ms=self._clock.now_ms(),
            is_queue=is_queue,
            is_redelivery=is_redelivery,
        )

    async def _look(self) -> None:
        """Know which keys are believed, as of some seconds ago at most."""
        now_ms = self._clock.now_ms()
        if now_ms - self._known_at_ms < FRESH_MS:
            return
        try:
            self._inbox.trusted = await self._room.trusted()
            self._known_at_ms = now_ms
        except StoreUnusable as error:
            if now_ms - self._known_at_ms > STALE_MS_MAX:
                message = f"it is not known which keys were revoked, for {STALE_MS_MAX} ms: {error.message}"
                raise StoreUnusable(KEYS_STALE, message) from error


def _check_did(did: str) -> None:
    if not is_did(did):
        message = f"{did[:80]!r} spells no key; one begins with {DID}, and `remit keys` of its machine shows it"
        raise RequestRejected(KEYS_UNKNOWN, message)


class AccountLimits(Record, kw_only=True):
    """What an account may take of its servers. Where it says no disk or memory, what the servers have is its limit.

    What is said is reserved: servers that have less leave every account without JetStream when they read it.
    """

    disk: str = ""
    memory: str = ""
    connections: int = CONNECTIONS_DEFAULT


STANDARD_LIMITS = AccountLimits()


def account_text(tenant: str, root: str, keys: Sequence[KnownKey], limits: AccountLimits = STANDARD_LIMITS) -> str:
    """The account of a tenant as the configuration of a server has it; raises RequestRejected for a name that cannot be one.

    An admitted name that spells no key is left out: servers let nobody in by it, and would refuse the whole configuration.
    """
    if not _NAME.fullmatch(tenant):
        message = f"tenant {tenant[:80]!r} cannot name an account; use letters, digits, - and _, 64 at most"
        raise RequestRejected(KEYS_UNKNOWN, message)
    _check_did(root)
    users = [f"    {{ nkey: {nkey_of(root)} }}  # the key of the deployment"]
    admitted = [key for key in keys if not key.is_revoked and key.did != root and is_did(key.did)]
    users += [_user(key) for key in admitted if key.tenant in ("*", tenant)]
    lines = [
        f"{tenant}: {{",
        f"  jetstream: {_reserved(limits)}",
        f"  limits: {{ max_connections: {limits.connections} }}",
        "  users: [",
        *users,
        "  ]",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _reserved(limits: AccountLimits) -> str:
    """What an account reserves of the disk and the memory of its servers."""
    said = {"max_file": limits.disk, "max_memory": limits.memory}
    named = [f"{name}: {size}" for name, size in said.items() if size]
    if wrong := [size for size in said.values() if size and not _SIZE.fullmatch(size)]:
        raise RequestRejected(KEYS_UNKNOWN, f"{wrong[0][:80]!r} is no size; say bytes, or 500M, 20G, 2T")
    return f"{{ {', '.join(named)} }}" if named else "enabled"


def _user(key: KnownKey) -> str:
    if any(_is_within(key, ROLES[role]) for role in ("model", "tools")):
        permissions = f"publish: {{ deny: {_listed((*_KEPT, *_DRIVERS))} }}"
    elif _is_within(key, ROLES["loop"]):
        permissions = f"publish: {{ deny: {_listed(_KEPT)} }}"
    else:
        permissions = f"publish: {{ allow: {_listed((*key.may, *_LOOKS))} }}, subscribe: {{ allow: {_listed(_HEARD)} }}"
    said = " ".join(key.name.split()) if key.name.isprintable() else ""
    return f"    {{ nkey: {nkey_of(key.did)}, permissions: {{ {permissions} }} }}" + (f"  # {said}" if said else "")


def _is_within(key: KnownKey, part: Sequence[str]) -> bool:
    """Whether all that a key may send is of one part of the work."""
    return all(any(covers(wide, one) for wide in part) for one in key.may)


def _listed(subjects: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{subject}"' for subject in subjects) + "]"
