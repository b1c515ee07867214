"""What is written for workers is signed with the key of the deployment, and believed only where it is.

Rule 1: the subject, the bytes and what the headers say of them are signed together, so nothing can be moved, changed or made
        up by a client of the server that has no key of the deployment.
Rule 2: keys besides that of this folder count where the owner of the deployment says so.
"""

from collections.abc import Collection, Mapping

from remit.backend.embedded.owner.keys import FileKey
from remit.core.journal.signing import is_signed, signed_message
from remit.core.record import digest_of

SIGNER, SIGNATURE = "Remit-Signer", "Remit-Signature"
# Headers that say something of the bytes.
_SAID = ("Remit-Digest", "Remit-Came", "Remit-Errand", "Remit-Again")
_PURPOSE = b"remit worker 1\n"


class Signet:
    """Signs for a process, and knows whom it believes."""

    def __init__(self, key: FileKey) -> None:
        self._key = key
        # The keys of others that count, as the part that knows the owner says.
        self.others: Collection[str] = ()

    def signed(self, subject: str, data: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of a message, with the signature over all that it says."""
        signer = self._key.signer
        signature = signer.sign(_message(subject, data, headers, signer.did))
        return {**headers, SIGNER: signer.did, SIGNATURE: signature.hex()}

    def is_believed(self, subject: str, data: bytes, headers: Mapping[str, str]) -> bool:
        """Whether a message is as a signer wrote it whose key counts."""
        did, signature = headers.get(SIGNER, ""), headers.get(SIGNATURE, "")
        if did != self._key.signer.did and did not in self.others:
            return False
        try:
            return is_signed(did, _message(subject, data, headers, did), bytes.fromhex(signature))
        except ValueError:
            return False


def _message(subject: str, data: bytes, headers: Mapping[str, str], did: str) -> bytes:
    said = {name: str(headers[name]) for name in _SAID if name in headers}
    return signed_message(_PURPOSE, {"subject": subject, "digest": digest_of(data).hex(), "said": said, "signer": did})
