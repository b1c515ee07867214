"""A run as a file of lines: everything needed to verify and replay it elsewhere, signed at its end.

Rule 1: one JSON object a line: a header, the turns, the long texts, the signed heads, the heads of the log, a footer.
Rule 2: a turn stands there twice, as the bytes that are hashed and as JSON to be read; verifying compares the two.
Rule 3: the footer signs the number of lines before it and the SHA-256 over them; without it an export is cut off.
Rule 4: lines are written and read one at a time; none may be longer than LINE_BYTES_MAX.
Rule 5: keys stay outside: writing takes a function that signs, verifying needs the public key alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import BinaryIO, TypeAlias, cast

import msgspec

from remit.core.failure import RemitError
from remit.core.journal.canonical import NotCanonical
from remit.core.journal.codec import readable_turn, turn_to_json
from remit.core.journal.signing import is_signed, signed_message
from remit.core.journal.storage import SignedHead
from remit.core.journal.turn import Turn
from remit.core.record import Record
from remit.observe.linked_turns import references
from remit.observe.plain import printable_line
from remit.observe.proof.findings import Fault, Verification
from remit.observe.proof.verify import AcceptedKeys, Verifier, is_accepted

FORMAT = 1
# A text of 40 MB in base64 with room to spare; a longer line is no export, and reading it would fill the memory.
LINE_BYTES_MAX = 64 * 1024 * 1024

EXPORT_MALFORMED = "EXPORT_MALFORMED"
EXPORT_TRUNCATED = "EXPORT_TRUNCATED"
EXPORT_FORMAT_UNKNOWN = "EXPORT_FORMAT_UNKNOWN"

_PURPOSE = b"remit export 1\n"
_UNREAD = b"null"
_SHOWN_CHARS_MAX = 200


class ExportUnreadable(RemitError):
    """A file that is no export, or not all of one."""


class HeaderLine(Record, tag_field="kind", tag="header", forbid_unknown_fields=True):
    """What the file holds. `texts` counts the long texts that the turns name; some may have been redacted."""

    format: int
    run_id: str
    signer: str
    turns: int
    texts: int
    heads: int
    logged: int


class TurnLine(Record, tag_field="kind", tag="turn", forbid_unknown_fields=True):
    """One turn: its stored bytes, and what they say; null where they cannot be read."""

    seq: int
    data: bytes
    turn: msgspec.Raw


class BlobLine(Record, tag_field="kind", tag="blob", forbid_unknown_fields=True):
    """One long text under the digest that names it."""

    digest: bytes
    data: bytes


class HeadLine(Record, tag_field="kind", tag="head", forbid_unknown_fields=True):
    """A signed head that was kept with the run."""

    signed: SignedHead


class LoggedLine(Record, tag_field="kind", tag="logged", forbid_unknown_fields=True):
    """A signed head from the append-only log."""

    signed: SignedHead


class Footer(Record, tag_field="kind", tag="footer", forbid_unknown_fields=True):
    """How many lines stand before this one, the SHA-256 over them, and a signature over both."""

    lines: int
    sha256: str
    signer: str
    signature: bytes


ExportLine: TypeAlias = HeaderLine | TurnLine | BlobLine | HeadLine | LoggedLine | Footer

# The order of the kinds in a file.
_RANKS: dict[type[ExportLine], int] = {HeaderLine: 0, TurnLine: 1, BlobLine: 2, HeadLine: 3, LoggedLine: 4, Footer: 5}


class Export(Record):
    """An export in memory."""

    run_id: str
    signer: str
    data: tuple[bytes, ...]
    blobs: dict[bytes, bytes]
    heads: tuple[SignedHead, ...]
    logged: tuple[SignedHead, ...]


class _Opening(Record):
    """As much of a header as every format has."""

    kind: str
    format: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ExportLine).decode
_decode_opening = msgspec.json.Decoder(_Opening).decode


def export_lines(
    run_id: str,
    data: Sequence[bytes],
    *,
    heads: Sequence[SignedHead],
    logged: Sequence[SignedHead],
    blob_of: Callable[[bytes], bytes | None],
    signer: str,
    sign: Callable[[bytes], bytes],
) -> Iterator[bytes]:
    """The lines of an export, each with its line end. `sign` signs in the name of `signer`, a did:key."""
    digests = _digests(data)
    running, count = sha256(), 0
    for line in _body(run_id, signer, data, digests, heads, logged, blob_of):
        encoded = _encode(line) + b"\n"
        running.update(encoded)
        count += 1
        yield encoded
    digest = running.hexdigest()
    yield _encode(Footer(count, digest, signer, sign(_footer_message(run_id, count, digest, signer)))) + b"\n"


def read_lines(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of a binary file, none of them longer than can be an export's."""
    while line := stream.readline(LINE_BYTES_MAX + 1):
        yield line


def checked_lines(lines: Iterable[bytes]) -> Iterator[tuple[ExportLine, str]]:
    """The lines of an export, read strictly and in order, each with the SHA-256 over all lines before it.

    Raises ExportUnreadable with the number of the line where the file stops being an export.
    """
    running, rank, number = sha256(), -1, 0
    for number, line in enumerate(lines, start=1):
        text = line.removesuffix(b"\n")
        entry = _entry(text, number, is_whole=len(text) != len(line))
        if _RANKS[type(entry)] < rank or rank == _RANKS[Footer] or (rank < 0) != isinstance(entry, HeaderLine):
            raise _malformed(number, f"a {_kind(entry)} does not belong here")
        rank = _RANKS[type(entry)]
        yield entry, running.hexdigest()
        running.update(text + b"\n")
    if rank != _RANKS[Footer]:
        message = f"the export ends after line {number} without its footer; it was cut off, so export the run again"
        raise ExportUnreadable(EXPORT_TRUNCATED, message, {"line": number})


def read_export(lines: Iterable[bytes]) -> Export:
    """An export as a whole, its parts as they stand there; nothing is verified."""
    header: HeaderLine | None = None
    data: list[bytes] = []
    blobs: dict[bytes, bytes] = {}
    heads: list[SignedHead] = []
    logged: list[SignedHead] = []
    for entry, _ in checked_lines(lines):
        match entry:
            case HeaderLine():
                header = entry
            case TurnLine():
                data.append(entry.data)
            case BlobLine():
                blobs[entry.digest] = entry.data
            case HeadLine():
                heads.append(entry.signed)
            case LoggedLine():
                logged.append(entry.signed)
            case Footer():
                pass
    assert header is not None, "an export without a header is unreadable"
    return Export(
        run_id=header.run_id,
        signer=header.signer,
        data=tuple(data),
        blobs=blobs,
        heads=tuple(heads),
        logged=tuple(logged),
    )


def verify_export(
    lines: Iterable[bytes], *, signer: AcceptedKeys = None, logged: Sequence[SignedHead] = ()
) -> Verification:
    """Verify an export line by line, with the public key alone.

    `signer` is the did:key the caller trusts, or those of a deployment; None takes the one that the file names. `logged`
    are heads of the run that the caller knows from elsewhere: they show whether this is an older copy. Raises ExportUnreadable.
    """
    check: _Check | None = None
    for entry, digest in checked_lines(lines):
        if isinstance(entry, HeaderLine):
            check = _Check(entry, entry.signer if signer is None else signer)
        assert check is not None, "the header comes first"
        check.take(entry, digest)
    assert check is not None, "an export without a header is unreadable"
    check.verifier.take_heads(logged, check.trusted)
    return check.verifier.verdict()


class _Check:
    """One export on its way through."""

    def __init__(self, header: HeaderLine, trusted: str | frozenset[str]) -> None:
        self.header = header
        self.trusted = trusted
        self.verifier = Verifier(header.run_id)
        self._lines = 0
        self._counts = {HeadLine: 0, LoggedLine: 0}

    def take(self, entry: ExportLine, digest: str) -> None:
        """Check the next line; `digest` is over the lines before it."""
        match entry:
            case HeaderLine():
                self._expect_signer(entry.signer)
            case TurnLine():
                self._take_turn(entry)
            case BlobLine():
                self.verifier.take_blob(entry.digest, entry.data)
            case HeadLine() | LoggedLine():
                self._counts[type(entry)] += 1
                self.verifier.take_heads((entry.signed,), self.trusted)
            case Footer():
                self._take_footer(entry, digest)
        self._lines += 1

    def _take_turn(self, entry: TurnLine) -> None:
        seq = self.verifier.turns
        turn = self.verifier.take_turn(entry.data)
        if entry.seq != seq or bytes(entry.turn) != _reading(turn):
            message = f"what is written to be read of turn {seq} is not what its bytes say"
            self.verifier.find(Fault.EXPORT_READING_DIFFERS, message, seq)

    def _take_footer(self, footer: Footer, digest: str) -> None:
        find, header = self.verifier.find, self.header
        said = (header.turns, header.texts, header.heads, header.logged)
        counted = (self.verifier.turns, len(self.verifier.wanted), self._counts[HeadLine], self._counts[LoggedLine])
        if said != counted:
            message = f"the header counts turns, texts, heads and logged heads as {said}, and they are {counted}"
            find(Fault.EXPORT_COUNTS_DIFFER, message)
        if (footer.lines, footer.sha256) != (self._lines, digest):
            message = f"the footer vouches for {footer.lines} lines with SHA-256 {printable_line(footer.sha256, 64)}"
            find(Fault.EXPORT_DIGEST_DIFFERS, f"{message}; there are {self._lines} with {digest}")
        self._expect_signer(footer.signer)
        try:
            message_signed = _footer_message(header.run_id, footer.lines, footer.sha256, footer.signer)
        except NotCanonical:
            message_signed = b""
        if not is_signed(footer.signer, message_signed, footer.signature):
            find(Fault.EXPORT_SIGNATURE_FORGED, "the signature of the footer is not its signer's")

    def _expect_signer(self, signer: str) -> None:
        if not is_accepted(signer, self.trusted):
            named = self.trusted if isinstance(self.trusted, str) else "a key that is accepted here"
            shown = f"{printable_line(signer, _SHOWN_CHARS_MAX)}, not {printable_line(named, _SHOWN_CHARS_MAX)}"
            self.verifier.find(Fault.SIGNER_UNTRUSTED, f"the export is signed by {shown}")


def _digests(data: Sequence[bytes]) -> list[bytes]:
    """The digests of the long texts that these turns name, each once."""
    turns = (readable_turn(stored) for stored in data)
    return list(dict.fromkeys(reference.digest for turn in turns for reference in references(turn)))


def _body(
    run_id: str,
    signer: str,
    data: Sequence[bytes],
    digests: Sequence[bytes],
    heads: Sequence[SignedHead],
    logged: Sequence[SignedHead],
    blob_of: Callable[[bytes], bytes | None],
) -> Iterator[ExportLine]:
    yield HeaderLine(
        format=FORMAT,
        run_id=run_id,
        signer=signer,
        turns=len(data),
        texts=len(digests),
        heads=len(heads),
        logged=len(logged),
    )
    for seq, stored in enumerate(data):
        yield TurnLine(seq, stored, msgspec.Raw(_reading(readable_turn(stored))))
    for digest in digests:
        if (text := blob_of(digest)) is not None:
            yield BlobLine(digest, text)
    yield from (HeadLine(signed) for signed in heads)
    yield from (LoggedLine(signed) for signed in logged)


def _reading(turn: Turn | None) -> bytes:
    return _UNREAD if turn is None else turn_to_json(turn)


def _footer_message(run_id: str, lines: int, digest: str, signer: str) -> bytes:
    return signed_message(_PURPOSE, {"run_id": run_id, "lines": lines, "sha256": digest, "signer": signer})


def _entry(text: bytes, number: int, *, is_whole: bool) -> ExportLine:
    """The entry in a line, or ExportUnreadable."""
    if len(text) > LINE_BYTES_MAX:
        raise _malformed(number, f"it is longer than line_bytes_max={LINE_BYTES_MAX}")
    try:
        if number == 1 and (opening := _decode_opening(text)).kind == "header" and opening.format != FORMAT:
            message = (
                f"the export has format {opening.format}; this version reads format {FORMAT}. Upgrade remit to read it."
            )
            raise ExportUnreadable(EXPORT_FORMAT_UNKNOWN, message, {"format": opening.format})
        entry = cast("ExportLine", _decode(text))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        if not is_whole and not text.endswith(b"}"):
            message = f"the export breaks off within line {number}; export the run again"
            raise ExportUnreadable(EXPORT_TRUNCATED, message, {"line": number}) from error
        raise _malformed(number, printable_line(str(error), _SHOWN_CHARS_MAX)) from error
    if _encode(entry) != text:
        # One entry has one spelling, so that the footer, which no digest covers, cannot be changed either.
        raise _malformed(number, f"the {_kind(entry)} is not spelt as an export spells it")
    return entry


def _kind(entry: ExportLine) -> str:
    return type(entry).__name__.removesuffix("Line").lower()


def _malformed(number: int, what: str) -> ExportUnreadable:
    return ExportUnreadable(EXPORT_MALFORMED, f"line {number} is no line of an export: {what}", {"line": number})
