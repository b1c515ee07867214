"""The mark of what gateways tell: by it they know their own messages from what others send under the same subjects.

Rule 1: a mark is a signature over the subject, the type and the bytes, by a key that the deployment believes.
Rule 2: only a gateway tells what becomes of loops, or answers users. What comes without a mark is refused, whatever it
        says, and no channel delivers it.
"""

from collections.abc import Callable

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import NotCanonical
from remit.core.journal.signing import Signer, is_signed, signed_message
from remit.core.record import digest_of
from remit.wire.payloads import TYPE_HEADER, HandedMessage, PublishedMessage
from remit.wire.subjects import SubjectFamily, is_of_a_loop

WIRE_NOT_TAKEN = "WIRE_NOT_TAKEN"
TOLD_HEADER = "Remit-Told"
_PURPOSE, _NOTE_PURPOSE = b"remit told 1\n", b"remit told until 1\n"
MESSAGE_UNSIGNED, MESSAGE_FORGED, SIGNER_UNKNOWN = "MESSAGE_UNSIGNED", "MESSAGE_FORGED", "SIGNER_UNKNOWN"


def expect_taken(subject: str) -> None:
    """Raise RequestRejected for a message under a subject of what loops tell."""
    if is_of_a_loop(subject):
        family = ".".join(subject.split(".")[:2])
        way_out = f"begin a loop with a task under {SubjectFamily.TASK.value}.ID, and listen here"
        raise RequestRejected(WIRE_NOT_TAKEN, f"{family} is told by loops and taken from no client; {way_out}")


class ToldCheck:
    """Knows what gateways of a deployment have told; `object_to` says as a code why a key may not tell, empty where it may."""

    def __init__(self, object_to: Callable[[str], str]) -> None:
        self._object_to = object_to

    def objection(self, message: HandedMessage) -> str:
        """Why a message was not told by a gateway of the deployment, as a code; empty where it was."""
        did, _, signature = message.headers.get(TOLD_HEADER, "").partition(" ")
        if not did:
            return MESSAGE_UNSIGNED
        if why := self._object_to(did):
            return why
        try:
            said = _said(message.subject, message.headers.get(TYPE_HEADER, ""), message.data)
            return "" if is_signed(did, said, bytes.fromhex(signature)) else MESSAGE_FORGED
        except (NotCanonical, ValueError):
            return MESSAGE_FORGED

    def explained(self, code: str) -> str:
        """What is said of a message that is not delivered, by why it is not."""
        what = "no gateway of this deployment has told it"
        return f"{what}; name the fingerprints of the deployment in REMIT_TRUST" if code == SIGNER_UNKNOWN else what


class ToldMark(ToldCheck):
    """Marks what this process tells, and knows what processes of the deployment have told."""

    def __init__(self, signer: Signer, object_to: Callable[[str], str] | None = None) -> None:
        super().__init__(object_to or (lambda did: "" if did == signer.did else SIGNER_UNKNOWN))
        self._signer = signer

    def marked(self, message: PublishedMessage) -> PublishedMessage:
        """A message with the mark of this process, where it is one of what loops tell; any other as it is."""
        if not is_of_a_loop(message.subject):
            return message
        said = _said(message.subject, message.headers.get(TYPE_HEADER, ""), message.data)
        mark = f"{self._signer.did} {self._signer.sign(said).hex()}"
        return PublishedMessage(message.subject, {**message.headers, TOLD_HEADER: mark}, message.data)

    def note(self, cursor: str) -> bytes:
        """How far everything was told, as it is kept for the next gateway."""
        return f"{cursor} {self._signer.did} {self._signer.sign(_noted(cursor)).hex()}".encode()

    def noted_in(self, kept: bytes) -> str:
        """How far everything was told, as a gateway of the deployment has noted it; empty where none has."""
        cursor, _, mark = kept.decode(errors="replace").partition(" ")
        did, _, signature = mark.partition(" ")
        try:
            is_ours = not self._object_to(did) and is_signed(did, _noted(cursor), bytes.fromhex(signature))
        except (NotCanonical, ValueError):
            return ""
        return cursor if is_ours else ""

    def is_own(self, message: HandedMessage) -> bool:
        """Whether a gateway of the deployment has told this."""
        return not self.objection(message)


def _said(subject: str, kind: str, data: bytes) -> bytes:
    return signed_message(_PURPOSE, {"subject": subject, "type": kind, "digest": digest_of(data).hex()})


def _noted(cursor: str) -> bytes:
    return signed_message(_NOTE_PURPOSE, {"cursor": cursor})
