"""Signatures: who vouches for a run, provable offline with the public key alone.

Rule 1: a signer is named by its did:key, which is its public key; nothing has to be looked up to check a signature.
Rule 2: what is signed begins with its purpose, and the fields follow as canonical JSON, so that a signature can
        never be read as one over anything else.
Rule 3: a check answers yes or no; a malformed name, key or signature is a no.
"""

from base64 import b32encode
from binascii import crc_hqx
from functools import lru_cache
from typing import TYPE_CHECKING

from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.journal.storage import SignedHead, Snapshot
from remit.core.journal.turn import RedactedTurn
from remit.core.record import JsonObject, Record, digest_of, replace

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# How NATS begins the key of a user, before its letters are made.
_NKEY_USER = bytes([20 << 3])
# The multicodec name of an Ed25519 public key, and how a did:key in base58btc begins.
_ED25519 = b"\xed\x01"
DID = "did:key:z"
_KEY_BYTES = 32

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DIGITS = {letter: value for value, letter in enumerate(_ALPHABET)}
# 34 bytes are never more than 47 letters; a longer name is no key, whatever it says.
_LETTERS_MAX = 47

# The workers and agents of a large deployment.
SIGNERS_KEPT_MAX = 4_096

_HEAD_PURPOSE = b"remit head 1\n"
_DELETION_PURPOSE = b"remit deletion 1\n"
_REDACTION_PURPOSE = b"remit redaction 1\n"
_SNAPSHOT_PURPOSE = b"remit snapshot 1\n"


class SignedDeletion(Record):
    """Who vouches that a run was deleted on purpose, and how it stood then: its last turn, and the hash of that."""

    run_id: str
    seq: int
    head: bytes
    at_ms: int
    signer: str
    signature: bytes


class Signer:
    """Holds a private key. It signs; it never shows the key unless asked for it by name."""

    __slots__ = ("_key", "did")

    def __init__(self, key: "Ed25519PrivateKey") -> None:
        self._key = key
        self.did = _did_of(key.public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> "Signer":
        """A signer with a new key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Signer":
        """The signer whose private key these 32 bytes are; raises ValueError for any other number of them."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        if len(raw) != _KEY_BYTES:
            raise ValueError(f"a private key has {_KEY_BYTES} bytes, not {len(raw)}")
        return cls(Ed25519PrivateKey.from_private_bytes(raw))

    def private_bytes(self) -> bytes:
        """The 32 bytes of the private key, to be kept where only the signer reads them."""
        return self._key.private_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """The signature over these bytes."""
        return self._key.sign(message)


def is_signed(did: str, message: bytes, signature: bytes) -> bool:
    """Whether the signer with this name signed these bytes."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    public = _public_bytes(did)
    if public is None:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def sign_head(signer: Signer, *, run_id: str, seq: int, head: bytes, ending: str) -> SignedHead:
    """Vouch that turn number `seq` of this run has this hash, and whether the run ended with it."""
    signature = signer.sign(_head_message(run_id, seq, head, ending, signer.did))
    return SignedHead(run_id=run_id, seq=seq, head=head, ending=ending, signer=signer.did, signature=signature)


def is_head_signed(signed: SignedHead) -> bool:
    """Whether the signer that a head names signed exactly this head. Whether to trust that signer is another question."""
    try:
        message = _head_message(signed.run_id, signed.seq, signed.head, signed.ending, signed.signer)
    except NotCanonical:
        return False
    return is_signed(signed.signer, message, signed.signature)


def sign_deletion(signer: Signer, *, run_id: str, seq: int, head: bytes, at_ms: int) -> SignedDeletion:
    """Vouch that this run was deleted on purpose when it stood at turn `seq`."""
    signature = signer.sign(_deletion_message(run_id, seq, head, at_ms, signer.did))
    return SignedDeletion(run_id=run_id, seq=seq, head=head, at_ms=at_ms, signer=signer.did, signature=signature)


def is_deletion_signed(signed: SignedDeletion) -> bool:
    """Whether the signer that a deletion names signed exactly this deletion."""
    try:
        message = _deletion_message(signed.run_id, signed.seq, signed.head, signed.at_ms, signed.signer)
    except NotCanonical:
        return False
    return is_signed(signed.signer, message, signed.signature)


def sign_redaction(signer: Signer, run_id: str, seq: int, redacted: RedactedTurn) -> RedactedTurn:
    """Vouch that this is what is left of a turn of this run, which had this hash."""
    named = replace(redacted, signer=signer.did, signature=b"")
    return replace(named, signature=signer.sign(_redaction_message(run_id, seq, named)))


def is_redaction_signed(run_id: str, seq: int, redacted: RedactedTurn) -> bool:
    """Whether the signer that a redacted turn names signed exactly this."""
    try:
        message = _redaction_message(run_id, seq, redacted)
    except NotCanonical:
        return False
    return is_signed(redacted.signer, message, redacted.signature)


def sign_snapshot(signer: Signer, snapshot: Snapshot) -> bytes:
    """Vouch that this is the state which this run had after this turn."""
    return signer.sign(_snapshot_message(snapshot, signer.did))


def is_snapshot_signed(did: str, snapshot: Snapshot, signature: bytes) -> bool:
    """Whether the signer with this name signed exactly this snapshot."""
    try:
        message = _snapshot_message(snapshot, did)
    except NotCanonical:
        return False
    return is_signed(did, message, signature)


def signed_message(purpose: bytes, fields: JsonObject) -> bytes:
    """The bytes to sign for a purpose: one line that names it, then the fields in canonical form."""
    return purpose + canonical_json(fields)


def _head_message(run_id: str, seq: int, head: bytes, ending: str, did: str) -> bytes:
    fields = {"run_id": run_id, "seq": seq, "head": head.hex(), "ending": ending, "signer": did}
    return signed_message(_HEAD_PURPOSE, fields)


def _deletion_message(run_id: str, seq: int, head: bytes, at_ms: int, did: str) -> bytes:
    fields = {"run_id": run_id, "seq": seq, "head": head.hex(), "at_ms": at_ms, "signer": did}
    return signed_message(_DELETION_PURPOSE, fields)


def _redaction_message(run_id: str, seq: int, redacted: RedactedTurn) -> bytes:
    fields = {
        "run_id": run_id,
        "seq": seq,
        "link": redacted.link.hex(),
        "data": digest_of(redacted.data).hex(),
        "by": redacted.by,
        "why": redacted.why,
        "at_ms": redacted.at_ms,
        "signer": redacted.signer,
    }
    return signed_message(_REDACTION_PURPOSE, fields)


def _snapshot_message(snapshot: Snapshot, did: str) -> bytes:
    fields = {
        "run_id": snapshot.run_id,
        "seq": snapshot.seq,
        "head": snapshot.head.hex(),
        "data": digest_of(snapshot.data).hex(),
        "signer": did,
    }
    return signed_message(_SNAPSHOT_PURPOSE, fields)


def _did_of(public: bytes) -> str:
    number = int.from_bytes(_ED25519 + public, "big")
    letters: list[str] = []
    while number:
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return DID + "".join(reversed(letters))


def is_did(name: str) -> bool:
    """Whether a name spells the public key of a signer."""
    return _public_bytes(name) is not None


def nkey_of(did: str) -> str:
    """A key as NATS servers spell the keys of users; empty where the name spells none."""
    public = _public_bytes(did)
    if public is None:
        return ""
    spelt = _NKEY_USER + public
    return b32encode(spelt + crc_hqx(spelt, 0).to_bytes(2, "little")).decode().rstrip("=")


# A pure memo: the same few signers are asked about all day, and spelling a key takes as long as a good part of checking it.
@lru_cache(maxsize=SIGNERS_KEPT_MAX)
def _public_bytes(did: str) -> bytes | None:
    """The public key that a name spells, in its one spelling; None when it spells none."""
    letters = did.removeprefix(DID)
    if letters == did or len(letters) > _LETTERS_MAX:
        return None
    number = 0
    for letter in letters:
        if letter not in _DIGITS:
            return None
        number = number * len(_ALPHABET) + _DIGITS[letter]
    if number.bit_length() > 8 * (len(_ED25519) + _KEY_BYTES):
        return None
    public = number.to_bytes(len(_ED25519) + _KEY_BYTES, "big").removeprefix(_ED25519)
    # A second spelling of one key would be a second name for one signer.
    return public if len(public) == _KEY_BYTES and _did_of(public) == did else None
