"""Seals: the value behind a handle, so that only the store that found it can read it again.

Rule 1: a handle says what kind of secret it stands for and digits that follow from the value and the store's key: equal
        values have equal handles in one store, and without the key it is impossible to guess a value by its handle.
Rule 2: a sealed value is encrypted and bound to its scope and its handle; moved elsewhere it opens nothing.
"""

import hmac
from hashlib import sha256
from typing import TYPE_CHECKING

from remit.core.record import Record

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

# The first word of why a call was not made, or an answer not taken, in which a secret of the vault stood.
SECRET_EXPOSED = "SECRET_EXPOSED"  # noqa: S105  # a code, and no password

# Forty-eight bits tell the secrets of a store apart; where two should meet, the second gets more.
DIGITS_MIN = 12
DIGITS_MAX = 32
_NONCE_BYTES = 12
_SEALING = b"remit seal 1"
_NAMING = b"remit handle 1"


class Sealed(Record):
    """A sealed value, and the handle that stands for it."""

    handle: str
    data: bytes


def reference_to(key: bytes, kind: str, value: str, digits: int = DIGITS_MIN) -> str:
    """The handle of a value: `secret:KIND#DIGITS`, a single word to a reader of words."""
    return f"secret:{kind}#{_keyed(key, _NAMING, value.encode('utf-8', 'surrogatepass')).hex()[:digits]}"


def sealed(key: bytes, scope: str, handle: str, value: str) -> Sealed:
    """The value encrypted for a scope under its handle."""
    data = value.encode("utf-8", "surrogatepass")
    # The same bytes for the same value: a nonce that follows from all of it is never used for two.
    nonce = _keyed(key, _SEALING, _bound(scope, handle) + data)[:_NONCE_BYTES]
    return Sealed(handle, nonce + _cipher(key).encrypt(nonce, data, _bound(scope, handle)))


def unsealed(key: bytes, scope: str, one: Sealed) -> str | None:
    """The value, or None where it was sealed with another key, for another scope or handle, or changed."""
    from cryptography.exceptions import InvalidTag

    try:
        data = _cipher(key).decrypt(one.data[:_NONCE_BYTES], one.data[_NONCE_BYTES:], _bound(scope, one.handle))
    except (InvalidTag, ValueError):
        return None
    return data.decode("utf-8", "surrogatepass")


def _cipher(key: bytes) -> "AESGCM":
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(_keyed(key, _SEALING, b""))


def _bound(scope: str, handle: str) -> bytes:
    return f"{len(scope)}:{scope}{handle}".encode()


def _keyed(key: bytes, purpose: bytes, data: bytes) -> bytes:
    return hmac.new(key, purpose + b"\n" + data, sha256).digest()
