"""Envelopes: messages between workers are sealed by their sender, and opened once, where they were sent to.

Rule 1: the message stays as it is; its seal travels in a header and is signed over the digest of the message, the subject,
        the tenant, the deployment, the place in the sender's order, and the time in which it holds.
Rule 2: a seal is judged in one order: its size and shape, where it was sent, what it covers, its time, whether its sender is
        known and may send there, its signature, and at last whether it was opened before. A forged seal leaves no trace.
Rule 3: a lane is what one sender, since it started, sends under one subject; its messages are numbered from 1. On a lane in
        order nothing comes after a later one. A queue hands messages to many receivers, so there any number comes once.
Rule 4: what was opened is remembered until it would have expired; so no seal is opened twice by one receiver. Between
        receivers, the journal of a run takes an outcome once.
"""

from collections import Counter
from typing import NamedTuple

import msgspec

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import NotCanonical
from remit.core.journal.signing import Signer, is_signed, signed_message
from remit.core.record import JsonObject, Record, digest_of, replace
from remit.core.schema.json_text import NotJson, parse_json
from remit.wire.credentials import Capability, TrustedSenders, check_may, effective
from remit.wire.payloads import MESSAGE_BYTES_MAX

ENVELOPE_TOO_LARGE = "ENVELOPE_TOO_LARGE"
ENVELOPE_MALFORMED = "ENVELOPE_MALFORMED"
ENVELOPE_READDRESSED = "ENVELOPE_READDRESSED"
ENVELOPE_FORGED = "ENVELOPE_FORGED"
ENVELOPE_EARLY = "ENVELOPE_EARLY"
ENVELOPE_EXPIRED = "ENVELOPE_EXPIRED"
ENVELOPE_SENDER_UNKNOWN = "ENVELOPE_SENDER_UNKNOWN"
ENVELOPE_REVOKED = "ENVELOPE_REVOKED"
ENVELOPE_REPLAYED = "ENVELOPE_REPLAYED"
ENVELOPE_OUT_OF_ORDER = "ENVELOPE_OUT_OF_ORDER"
ENVELOPE_CROWDED = "ENVELOPE_CROWDED"

SEAL_HEADER = "Remit-Seal"
# Ten fields, a subject of the longest id among them.
SEAL_BYTES_MAX = 4_096
# Clocks of machines that are kept in time differ by less; what is further ahead was not sent yet.
SKEW_MS_MAX = 5_000
# What waits in a queue for longer is sealed anew by the loop that still wants it.
VALID_MS_MAX = 24 * 3_600_000
# A busy worker answers a thousand calls a minute. So much is remembered of each sender, so that none crowds out another.
REMEMBERED_MAX = 100_000
# After so many lanes a sender looks for those that no receiver remembers any more.
LANES_SWEPT_AT = 10_000

# How often expired messages are forgotten at most.
SWEEP_MS_MIN = 1_000

_PURPOSE = b"remit envelope 1\n"


class Seal(Record, kw_only=True, forbid_unknown_fields=True):
    """What a sender signs of a message. `epoch` names one start of the sender; digest and signature are hexadecimal."""

    sender: str
    audience: str
    tenant: str
    subject: str
    epoch: str
    sequence: int
    sent_at_ms: int
    expires_at_ms: int
    digest: str
    signature: str = ""


class OpenedMessage(Record, kw_only=True):
    """A message that may be believed: who sent it, what they may do, and whether the broker has delivered it before."""

    seal: Seal
    capability: Capability
    is_again: bool = False


class SealedOutbox:
    """Seals the messages of one sender, and numbers them on each of its lanes."""

    def __init__(self, signer: Signer, *, audience: str, tenant: str, epoch: str) -> None:
        self._signer, self._audience, self._tenant, self._epoch = signer, audience, tenant, epoch
        # The latest number on each lane, and until when it holds.
        self._sent: dict[str, tuple[int, int]] = {}

    def sealed(self, subject: str, body: bytes, *, at_ms: int, valid_ms: int = VALID_MS_MAX) -> str:
        """The header for a message; raises RequestRejected for one that no receiver would open."""
        _check_size(body)
        if len(self._sent) >= LANES_SWEPT_AT:
            # No receiver remembers them, whatever its clock says.
            self._sent = {lane: sent for lane, sent in self._sent.items() if sent[1] + 2 * SKEW_MS_MAX > at_ms}
        sequence, until_ms = self._sent.get(subject, (0, 0))
        # What comes later on a lane holds as long at least: a receiver that forgot a message has forgotten all before it.
        expires_at_ms = min(max(until_ms, at_ms + valid_ms), at_ms + VALID_MS_MAX)
        seal = Seal(
            sender=self._signer.did,
            audience=self._audience,
            tenant=self._tenant,
            subject=subject,
            epoch=self._epoch,
            sequence=sequence + 1,
            sent_at_ms=at_ms,
            expires_at_ms=expires_at_ms,
            digest=digest_of(body).hex(),
        )
        self._sent[subject] = (sequence + 1, expires_at_ms)
        return written_seal(replace(seal, signature=self._signer.sign(_message(seal)).hex()))


def written_seal(seal: Seal) -> str:
    """A seal as its header has it."""
    return msgspec.json.encode(seal).decode()


def read_seal(text: str) -> Seal:
    """The seal in a header; raises RequestRejected where it is none."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > SEAL_BYTES_MAX:
        raise RequestRejected(ENVELOPE_TOO_LARGE, f"the seal has {len(data)} bytes, more than {SEAL_BYTES_MAX}")
    try:
        return msgspec.convert(parse_json(data), Seal)
    except (NotJson, msgspec.ValidationError) as error:
        raise RequestRejected(ENVELOPE_MALFORMED, f"header {SEAL_HEADER} is no seal: {error}") from None


def checked_seal(
    seal: Seal, body: bytes, *, subject: str, tenant: str, trusted: TrustedSenders, at_ms: int
) -> Capability:
    """What the sender of a message may do, where the seal holds here and now; raises RequestRejected with a code."""
    _check_size(body)
    came_as = {"subject": subject, "tenant": tenant, "audience": trusted.root}
    for field, held in came_as.items():
        if getattr(seal, field) != held:
            said: str = getattr(seal, field)
            raise RequestRejected(
                ENVELOPE_READDRESSED, f"sealed for {field} {said[:80]!r} and delivered as {held[:80]!r}"
            )
    if seal.digest != digest_of(body).hex():
        raise RequestRejected(ENVELOPE_FORGED, f"the message is not the one that {seal.sender[:80]} sealed")
    _check_time(seal, at_ms)
    if seal.sender in trusted.revoked:
        raise RequestRejected(ENVELOPE_REVOKED, f"the key {seal.sender[:80]} was revoked; nothing of it is believed")
    if seal.sender not in trusted.chains:
        raise RequestRejected(ENVELOPE_SENDER_UNKNOWN, f"no statement of the deployment names {seal.sender[:80]}")
    capability = effective(trusted.chains[seal.sender], trusted, at_ms)
    if capability.subject != seal.sender:
        raise RequestRejected(
            ENVELOPE_SENDER_UNKNOWN, f"the statement of {seal.sender[:80]} is about {capability.subject[:80]}"
        )
    check_may(capability, subject, tenant)
    if not _is_signed(seal):
        raise RequestRejected(ENVELOPE_FORGED, f"{seal.sender[:80]} did not sign this seal")
    return capability


class _Lane(NamedTuple):
    sender: str
    epoch: str
    subject: str


class SealedInbox:
    """Opens the messages of one receiver, each once. It remembers no more than a fixed number of each sender."""

    def __init__(self, trusted: TrustedSenders, *, tenant: str, remembered_max: int = REMEMBERED_MAX) -> None:
        self.trusted = trusted
        self._tenant, self._remembered_max = tenant, remembered_max
        # What was opened and has not expired: the digest of each number of a lane, and until when it holds; of each lane the
        # latest number; and how many of each sender are remembered.
        self._opened: dict[tuple[_Lane, int], tuple[str, int]] = {}
        self._latest: dict[_Lane, tuple[int, int]] = {}
        self._counts: Counter[str] = Counter()
        self._forget_at_ms = 0

    def open(
        self, header: str, body: bytes, *, subject: str, at_ms: int, is_queue: bool = False, is_redelivery: bool = False
    ) -> OpenedMessage:
        """A message that may be believed; raises RequestRejected with a code for any other.

        A broker that delivers a message again says so; then it is opened again, if it is the very one.
        """
        seal = read_seal(header)
        capability = checked_seal(seal, body, subject=subject, tenant=self._tenant, trusted=self.trusted, at_ms=at_ms)
        self._forget(at_ms)
        lane = _Lane(seal.sender, seal.epoch, seal.subject)
        opened = self._opened.get((lane, seal.sequence))
        if opened is not None:
            if is_redelivery and opened[0] == seal.digest:
                return OpenedMessage(seal=seal, capability=capability, is_again=True)
            raise RequestRejected(
                ENVELOPE_REPLAYED, f"message {seal.sequence} on {seal.subject[:80]!r} was opened before"
            )
        latest, until_ms = self._latest.get(lane, (0, 0))
        if seal.sequence <= latest and not is_queue:
            message = f"message {seal.sequence} on {seal.subject[:80]!r} comes after message {latest}"
            raise RequestRejected(ENVELOPE_OUT_OF_ORDER, message)
        if len(self._opened) >= self._remembered_max:
            message = (
                f"{len(self._opened)} messages are remembered, as many as can be; send fewer, or for a shorter time"
            )
            raise RequestRejected(ENVELOPE_CROWDED, message)
        self._opened[(lane, seal.sequence)] = (seal.digest, seal.expires_at_ms)
        self._latest[lane] = (max(latest, seal.sequence), max(until_ms, seal.expires_at_ms))
        self._forget_at_ms = min(self._forget_at_ms or seal.expires_at_ms, seal.expires_at_ms)
        return OpenedMessage(seal=seal, capability=capability)

    def _forget(self, at_ms: int) -> None:
        """Forget what has expired: its time refuses it from here on."""
        if not self._forget_at_ms or at_ms < self._forget_at_ms:
            return
        self._opened = {key: held for key, held in self._opened.items() if held[1] > at_ms}
        self._latest = {lane: held for lane, held in self._latest.items() if held[1] > at_ms}
        self._counts = Counter(lane.sender for lane, _ in self._opened)
        # Sweeping costs as much as is remembered, so not for every message that expires.
        self._forget_at_ms = at_ms + SWEEP_MS_MIN if self._opened else 0


def _check_size(body: bytes) -> None:
    if len(body) > MESSAGE_BYTES_MAX:
        raise RequestRejected(ENVELOPE_TOO_LARGE, f"the message has {len(body)} bytes, more than {MESSAGE_BYTES_MAX}")


def _check_time(seal: Seal, at_ms: int) -> None:
    if seal.sent_at_ms > at_ms + SKEW_MS_MAX:
        ahead = seal.sent_at_ms - at_ms
        raise RequestRejected(
            ENVELOPE_EARLY, f"it says that it was sent in {ahead} ms, more than {SKEW_MS_MAX} ahead; set the clock"
        )
    if not 0 < seal.expires_at_ms - seal.sent_at_ms <= VALID_MS_MAX:
        held = seal.expires_at_ms - seal.sent_at_ms
        raise RequestRejected(ENVELOPE_MALFORMED, f"it holds for {held} ms; a seal holds for 1 to {VALID_MS_MAX}")
    if at_ms >= seal.expires_at_ms:
        raise RequestRejected(ENVELOPE_EXPIRED, f"it expired {at_ms - seal.expires_at_ms} ms ago; seal it anew")
    if seal.sequence < 1:
        raise RequestRejected(ENVELOPE_MALFORMED, f"sequence={seal.sequence}; messages are numbered from 1")


def _is_signed(seal: Seal) -> bool:
    try:
        return is_signed(seal.sender, _message(seal), bytes.fromhex(seal.signature))
    except (NotCanonical, ValueError):
        return False


def _message(seal: Seal) -> bytes:
    fields: JsonObject = msgspec.to_builtins(replace(seal, signature=""))
    return signed_message(_PURPOSE, fields)
