"""What one process writes for another is signed with its key, and believed only where that key counts.

Rule 1: the subject, the bytes and what the headers say of them are signed together, so nothing can be moved, changed or made
        up by a client of the server that has no key of the deployment.
Rule 2: an entry of a log is signed with the place behind which it stands. So a copy of it counts nowhere: neither in another log,
        nor behind itself, nor in the log of a run that was removed meanwhile.
Rule 3: whose key counts for what, the keyring says. What is not believed has a code, and is passed over.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping

from remit.backend.clock import wall_clock_ms
from remit.backend.cluster.keys.believed_keys import Keyring
from remit.backend.cluster.layout import ANY, ENTRY, LOGS
from remit.backend.embedded.owner.key_file import FileKey
from remit.core.journal.canonical import NotCanonical
from remit.core.journal.signing import is_signed, signed_message
from remit.core.journal.storage import Place
from remit.core.record import digest_of

SIGNER, SIGNATURE = "Remit-Signer", "Remit-Signature"
# Behind which place an entry stands, the digest of its bytes, and until when another message is worth anything.
SINCE, BODY, UNTIL = "Remit-Since", "Remit-Body", "Remit-Until"

MESSAGE_UNSIGNED = "MESSAGE_UNSIGNED"
MESSAGE_FORGED = "MESSAGE_FORGED"
MESSAGE_REPEATED = "MESSAGE_REPEATED"
MESSAGE_EXPIRED = "MESSAGE_EXPIRED"
MESSAGE_MISADDRESSED = "MESSAGE_MISADDRESSED"

# Headers that say something of the bytes.
_SAID = ("Remit-Digest", "Remit-Came", "Remit-Errand", "Remit-Again", UNTIL)
_PURPOSE = b"remit worker 1\n"
_LOG_PURPOSE = b"remit log entry 1\n"
# What this process signs comes back to it within moments; its own words need no checking.
_OWN_MAX = 4_096


class Signet:
    """Signs for a process, and knows whom it believes."""

    def __init__(self, key: FileKey, now_ms: Callable[[], int] = wall_clock_ms) -> None:
        self.key = key
        self._now_ms = now_ms
        self.keyring = Keyring(key)
        self._own: OrderedDict[str, bytes] = OrderedDict()

    def signed(self, subject: str, data: bytes, headers: Mapping[str, str]) -> dict[str, str]:
        """The headers of a message, with the signature over all that it says."""
        signer = self.key.signer
        signature = signer.sign(_message(subject, data, headers, signer.did))
        return {**headers, SIGNER: signer.did, SIGNATURE: signature.hex()}

    def objection(self, subject: str, data: bytes, headers: Mapping[str, str], *, may: str = "") -> str:
        """Why a message is not believed, as a code; empty where it is as a signer wrote it whose key counts.

        Its signer must be let send there, or under the subject `may` where no statement names the one it came under.
        """
        did = headers.get(SIGNER, "")
        if not did:
            return MESSAGE_UNSIGNED
        now_ms = self._now_ms()
        if why := self.keyring.objection(did, may or subject, now_ms):
            return why
        try:
            if not _is_signed(did, _message(subject, data, headers, did), headers.get(SIGNATURE, "")):
                return MESSAGE_FORGED
            return MESSAGE_EXPIRED if now_ms > int(headers.get(UNTIL, now_ms)) else ""
        except (ValueError, NotCanonical):
            return MESSAGE_FORGED

    def is_believed(self, subject: str, data: bytes, headers: Mapping[str, str]) -> bool:
        """Whether a message is as a signer wrote it whose key counts."""
        return not self.objection(subject, data, headers)

    def may_send(self, headers: Mapping[str, str], family: str) -> bool:
        """Whether the signer of a message that is believed may send under the subjects that begin so."""
        return not self.keyring.objection(headers.get(SIGNER, ""), family + ANY, self._now_ms())

    def object_to_driver(self, did: str) -> str:
        """Why a key may not say what becomes of runs, as a code; empty where it may."""
        return self.keyring.objection(did, LOGS + ANY, self._now_ms())

    def until(self, lasts_ms: int) -> dict[str, str]:
        """The header of a message that is worth nothing after a while."""
        return {UNTIL: str(self._now_ms() + lasts_ms)}

    def own_objection(self) -> str:
        """Why the word of this process counts nowhere any more, as a code; empty where it does."""
        return self.keyring.ended_code(self.keyring.own, self._now_ms())

    def own_lack(self, subject: str) -> str:
        """Why what this process writes under a subject would count nowhere, as a code; empty where it would count."""
        own = self.keyring.own
        return self.keyring.objection(own, subject, self._now_ms()) if own else ""

    def signed_entry(self, subject: str, data: bytes, headers: Mapping[str, str], since: Place) -> dict[str, str]:
        """The headers of an entry of a log that is written behind a place."""
        signer = self.key.signer
        said = {**headers, SINCE: str(since), SIGNER: signer.did} | ({BODY: digest_of(data).hex()} if data else {})
        message = _entry_message(subject, said)
        signature = signer.sign(message).hex()
        self._own[signature] = message
        if len(self._own) > _OWN_MAX:
            self._own.popitem(last=False)
        return {**said, SIGNATURE: signature}

    def entry_objection(
        self, subject: str, headers: Mapping[str, str], *, place: Place, last: Place, at_ms: int
    ) -> str:
        """Why an entry at a place, behind the last one that was there, is none; the server took it in at a time."""
        did, signature = headers.get(SIGNER, ""), headers.get(SIGNATURE, "")
        if not did:
            return MESSAGE_UNSIGNED
        try:
            since = int(headers.get(SINCE, ""))
        except ValueError:
            return MESSAGE_FORGED
        if not last <= since < place:
            return MESSAGE_REPEATED
        if why := self.keyring.objection(did, subject, at_ms, kept=True):
            return why
        try:
            message = _entry_message(subject, headers)
        except NotCanonical:
            return MESSAGE_FORGED
        if self._own.pop(signature, None) == message:
            return ""
        return "" if _is_signed(did, message, signature) else MESSAGE_FORGED


def is_as_signed(data: bytes, headers: Mapping[str, str]) -> bool:
    """Whether the bytes of an entry are those that were signed with it."""
    return headers.get(BODY, "") == (digest_of(data).hex() if data else "")


def _is_signed(did: str, message: bytes, signature: str) -> bool:
    try:
        raw = bytes.fromhex(signature)
    except ValueError:
        return False
    return is_signed(did, message, raw)


def _message(subject: str, data: bytes, headers: Mapping[str, str], did: str) -> bytes:
    said = {name: str(headers[name]) for name in _SAID if name in headers}
    return signed_message(_PURPOSE, {"subject": subject, "digest": digest_of(data).hex(), "said": said, "signer": did})


def _entry_message(subject: str, headers: Mapping[str, str]) -> bytes:
    fields = {name: headers.get(name, "") for name in (ENTRY, SINCE, BODY, SIGNER)}
    return signed_message(_LOG_PURPOSE, {"subject": subject, **fields})
