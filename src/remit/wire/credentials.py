"""Credentials: who a worker or an agent is, what it may send, and who takes that back.

Rule 1: a worker and an agent are known by a did:key of their own. The key of the deployment, the root, says what each may do.
Rule 2: a statement only narrows: its holder may hand on a part of it, for a part of its time, and never more.
Rule 3: what no statement allows is refused. A statement that cannot be judged allows nothing.
Rule 4: a key that was revoked is believed nothing any more, whenever it says that it spoke: who stole it can set a clock.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from hmac import digest as hmac_digest

import msgspec

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import NotCanonical
from remit.core.journal.signing import Signer, is_signed, signed_message
from remit.core.record import JsonObject, Record, replace
from remit.core.regex import regex
from remit.core.run.lifecycle import AgentRole
from remit.core.run.principal import EVERY_TENANT
from remit.wire.message_records import AgentIdentity
from remit.wire.message_texts import moment

CAPABILITY_INVALID = "CAPABILITY_INVALID"
CAPABILITY_EXPIRED = "CAPABILITY_EXPIRED"
CAPABILITY_WIDENED = "CAPABILITY_WIDENED"
CAPABILITY_LACKING = "CAPABILITY_LACKING"
CAPABILITY_REVOKED = "CAPABILITY_REVOKED"

# The root, a site, a host, a worker.
CHAIN_MAX = 4
# Every subject of the wire and as many tools of one worker.
PATTERNS_MAX = 256
# The workers of a large deployment.
STATEMENTS_KEPT_MAX = 4_096

_CAPABILITY_PURPOSE = b"remit capability 1\n"
_REVOCATION_PURPOSE = b"remit revocation 1\n"
_AGENT_PURPOSE = b"remit agent key 1\n"
# A pattern of subjects: literal tokens, * for any one of them, and > at the end for all that follow.
_PATTERN = regex(r"(?:[^\s.*>]+|\*)(?:\.(?:[^\s.*>]+|\*))*(?:\.>)?|>")


class Capability(Record, kw_only=True):
    """What the issuer lets the subject send: under which subjects, for which tenant, from when until when."""

    id: str
    issuer: str
    subject: str
    tenant: str
    may: tuple[str, ...]
    not_before_ms: int
    expires_at_ms: int
    signature: bytes = b""


class Revocation(Record, kw_only=True):
    """A signed word that a key is believed nothing any more, or that a statement holds no longer: who says so, when and why."""

    issuer: str
    revokes: str
    at_ms: int
    why: str
    signature: bytes = b""


class KeyEntry(Record, kw_only=True):
    """What is kept of a key: that it may send, or that it is revoked; and a name for people."""

    name: str = ""
    statement: Capability | None = None
    revocation: Revocation | None = None


class TrustedSenders(Record, kw_only=True):
    """What a receiver relies on: the root, the statements that each sender holds, and what was revoked."""

    root: str
    chains: Mapping[str, tuple[Capability, ...]] = {}
    revoked: frozenset[str] = frozenset()


def agent_signer(deployment: Signer, name: str) -> Signer:
    """The key of an agent of a deployment, the same for the same name wherever the deployment's key is."""
    seed = hmac_digest(deployment.private_bytes(), _AGENT_PURPOSE + name.encode(), sha256)
    return Signer.from_bytes(seed)


def identity_of(
    did: str, display_name: str, *, role: AgentRole, chain: Sequence[Capability] = (), created_at_ms: int = 0
) -> AgentIdentity:
    """An agent as its loops show it, with what it may do."""
    return AgentIdentity(
        did=did,
        display_name=display_name,
        credentials=tuple([{**_plain(stated), "may": [*stated.may]} for stated in chain]),
        internal_role=role.value,
        created=moment(created_at_ms),
    )


def issue(
    issuer: Signer,
    subject: str,
    *,
    capability_id: str,
    tenant: str,
    may: Sequence[str],
    not_before_ms: int,
    expires_at_ms: int,
) -> Capability:
    """A signed statement of what its subject may send; raises RequestRejected where it says nothing that could be judged."""
    stated = Capability(
        id=capability_id,
        issuer=issuer.did,
        subject=subject,
        tenant=tenant,
        may=tuple(may),
        not_before_ms=not_before_ms,
        expires_at_ms=expires_at_ms,
    )
    _check_shape(stated)
    return replace(stated, signature=issuer.sign(_capability_message(stated)))


def effective(chain: Sequence[Capability], trusted: TrustedSenders, at_ms: int) -> Capability:
    """What the last statement of a chain allows now; raises RequestRejected with a code where any link of it does not hold."""
    if not 1 <= len(chain) <= CHAIN_MAX:
        raise RequestRejected(CAPABILITY_INVALID, f"a chain has 1 to {CHAIN_MAX} statements, not {len(chain)}")
    issuer, above = trusted.root, None
    for capability in chain:
        _check_shape(capability)
        if capability.issuer != issuer or not is_issued(capability):
            raise RequestRejected(CAPABILITY_INVALID, f"statement {capability.id[:80]!r} is not signed by {issuer}")
        for name in (capability.subject, capability.issuer, capability.id):
            if name in trusted.revoked:
                raise RequestRejected(
                    CAPABILITY_REVOKED, f"{name[:80]} was revoked; ask for a new key and a new statement"
                )
        if not capability.not_before_ms <= at_ms < capability.expires_at_ms:
            message = f"statement {capability.id[:80]!r} holds from {moment(capability.not_before_ms)} to "
            raise RequestRejected(CAPABILITY_EXPIRED, message + moment(capability.expires_at_ms))
        if above is not None and (wider := _wider(capability, above)):
            raise RequestRejected(
                CAPABILITY_WIDENED, f"statement {capability.id[:80]!r} allows {wider}, beyond the one above it"
            )
        issuer, above = capability.subject, capability
    return chain[-1]


def check_may(capability: Capability, subject: str, tenant: str) -> None:
    """Refuse a message that a statement does not allow."""
    if capability.tenant not in (EVERY_TENANT, tenant):
        raise RequestRejected(
            CAPABILITY_LACKING, f"{capability.subject} may send for tenant {capability.tenant!r} alone"
        )
    if not any(covers(pattern, subject) for pattern in capability.may):
        message = (
            f"{capability.subject} may not send to {subject[:80]!r}; it may send to {', '.join(capability.may)[:200]}"
        )
        raise RequestRejected(CAPABILITY_LACKING, message)


# A pure memo: the same statement comes with every message of its holder.
@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def is_issued(capability: Capability) -> bool:
    """Whether the issuer that a statement names signed exactly this."""
    try:
        message = _capability_message(capability)
    except NotCanonical:
        return False
    return is_signed(capability.issuer, message, capability.signature)


def revoke(issuer: Signer, revokes: str, *, at_ms: int, why: str) -> Revocation:
    """A signed revocation of a key, by its did, or of a statement, by its id."""
    stated = Revocation(issuer=issuer.did, revokes=revokes, at_ms=at_ms, why=why)
    return replace(stated, signature=issuer.sign(_revocation_message(stated)))


def revoked_by(root: str, revocations: Iterable[Revocation]) -> frozenset[str]:
    """What was revoked: by the root, or by the holder of a key, who may always give up their own."""
    return frozenset(
        [entry.revokes for entry in revocations if entry.issuer in (root, entry.revokes) and _is_revocation(entry)]
    )


def covers(pattern: str, subject: str) -> bool:
    """Whether a pattern allows a subject, or everything that another pattern allows."""
    wanted, named = pattern.split("."), subject.split(".")
    for place, part in enumerate(wanted):
        if part == ">":
            return len(named) > place
        if place >= len(named) or named[place] == ">" or part not in ("*", named[place]):
            return False
    return len(wanted) == len(named)


def _wider(capability: Capability, above: Capability) -> str:
    if above.tenant not in (EVERY_TENANT, capability.tenant):
        return f"tenant {capability.tenant!r}"
    if capability.not_before_ms < above.not_before_ms or capability.expires_at_ms > above.expires_at_ms:
        return "a longer time"
    return next((name for name in capability.may if not any(covers(pattern, name) for pattern in above.may)), "")


def _check_shape(capability: Capability) -> None:
    if not (capability.id and capability.subject and capability.tenant):
        raise RequestRejected(CAPABILITY_INVALID, "a statement needs an id, a subject and a tenant")
    if not 1 <= len(capability.may) <= PATTERNS_MAX:
        raise RequestRejected(
            CAPABILITY_INVALID, f"a statement names 1 to {PATTERNS_MAX} subjects, not {len(capability.may)}"
        )
    wrong = next((pattern for pattern in capability.may if not _PATTERN.fullmatch(pattern)), None)
    if wrong is not None:
        raise RequestRejected(CAPABILITY_INVALID, f"{wrong[:80]!r} is no pattern of subjects, such as tool.result.*")
    if capability.not_before_ms >= capability.expires_at_ms:
        raise RequestRejected(CAPABILITY_INVALID, f"statement {capability.id[:80]!r} ends before it begins")


def _is_revocation(entry: Revocation) -> bool:
    try:
        message = _revocation_message(entry)
    except NotCanonical:
        return False
    return is_signed(entry.issuer, message, entry.signature)


def _plain(record: Record) -> JsonObject:
    plain: JsonObject = msgspec.to_builtins(record)
    return plain


def _capability_message(capability: Capability) -> bytes:
    return signed_message(_CAPABILITY_PURPOSE, _plain(replace(capability, signature=b"")))


def _revocation_message(entry: Revocation) -> bytes:
    return signed_message(_REVOCATION_PURPOSE, _plain(replace(entry, signature=b"")))
