"""Cursors of a tenant: behind which event of its runs somebody goes on, in a form that tells nothing of other tenants.

Rule 1: the place of a turn counts the turns of all tenants, so it is sealed: encrypted and vouched for, with a key that whoever
        holds the store has, and for one tenant. A cursor of another tenant cannot be told from one that somebody made up.
Rule 2: the same place has the same cursor, in every process that has the key; a store without one has cursors for as long
        as its process lives.
"""

import hmac
import os
from hashlib import sha256

from remit.core.failure import RequestRejected
from remit.core.journal.storage import START, Place
from remit.core.run.run_events import CURSOR_INVALID
from remit.orchestrate.ports import Key

_MARK = "at:"
_PLACE_BYTES, _PROOF_BYTES, _SECRET_BYTES = 8, 16, 32
# What the key of the store signs so that the key of its cursors can be made from the signature, which nobody else has.
_PURPOSE = b"remit cursors 1"


class Cursors:
    """Seals places for tenants."""

    def __init__(self, key: Key | None) -> None:
        self._store_key = key
        self._secret = b""

    def sealed(self, tenant_id: str, place: Place) -> str:
        """The cursor of a tenant behind a place."""
        plain = place.to_bytes(_PLACE_BYTES)
        proof = self._mac(b"proof", tenant_id.encode(), plain)[:_PROOF_BYTES]
        return f"{_MARK}{(proof + self._masked(proof, plain)).hex()}"

    def opened(self, tenant_id: str, since: str | int | None) -> Place | None:
        """Behind which place a cursor of a tenant stands; None stands for now. Raises CURSOR_INVALID for any other."""
        if since is None:
            return None
        if type(since) is int and since == START:
            return START
        data = _bytes_in(since)
        proof, plain = data[:_PROOF_BYTES], self._masked(data[:_PROOF_BYTES], data[_PROOF_BYTES:])
        if not hmac.compare_digest(proof, self._mac(b"proof", tenant_id.encode(), plain)[:_PROOF_BYTES]):
            message = "since is no cursor of an event here; give one of an event, -1 for everything, or leave it out"
            raise RequestRejected(CURSOR_INVALID, message)
        return int.from_bytes(plain)

    def _masked(self, proof: bytes, data: bytes) -> bytes:
        return bytes(one ^ other for one, other in zip(data, self._mac(b"mask", proof), strict=False))

    def _mac(self, *parts: bytes) -> bytes:
        # A length before each part: no two lists of them are written alike.
        return hmac.digest(self._key(), b"".join([b"%d:%b" % (len(part), part) for part in parts]), "sha256")

    def _key(self) -> bytes:
        if not self._secret:
            key = self._store_key
            self._secret = os.urandom(_SECRET_BYTES) if key is None else sha256(key.signer.sign(_PURPOSE)).digest()
        return self._secret


def _bytes_in(since: str | int) -> bytes:
    """What a cursor is made of; nothing where it cannot be one."""
    said = since if isinstance(since, str) else ""
    try:
        data = bytes.fromhex(said.removeprefix(_MARK)) if said.startswith(_MARK) else b""
    except ValueError:
        data = b""
    return data if len(data) == _PROOF_BYTES + _PLACE_BYTES else bytes(_PROOF_BYTES + _PLACE_BYTES)
