"""Texts from outside, made fit to be written into a turn.

Rule 1: every text is valid Unicode; half a surrogate pair becomes a question mark.
Rule 2: a text that has no limit of its own goes to Blobs when it is long, and the record carries its digest.
Rule 3: a name or a note has no place in Blobs, so it is cut; a name that was cut can equal no other name.
"""

from hashlib import sha256
from unicodedata import normalize

from remit.core.record import TEXT_INLINE_BYTES_MAX, BlobRef, Text
from remit.core.run.envelope import ID_CHARS_MAX

# The longest error, reason or problem that is kept: enough for a stack of causes, too little to flood a context.
NOTE_CHARS_MAX = 2000
# The longest result that a model is shown whole: some four thousand tokens, half of a small model's window.
RESULT_SHOWN_BYTES_MAX = 16 * 1024
# The largest UTF-8 length of one character: texts shorter than this many characters are inline without measuring.
_BYTES_PER_CHAR_MAX = 4
_INLINE_CHARS = TEXT_INLINE_BYTES_MAX // _BYTES_PER_CHAR_MAX
# No tool, call or person is named with it, so a name that ends like this was cut.
_CUT = "…"

# Texts on their way to Blobs: digest and bytes.
Kept = list[tuple[bytes, bytes]]


def clean(text: str) -> str:
    """The text as valid Unicode, so that it can be written."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def encoded(text: str) -> bytes:
    """The same as bytes: for whoever hashes a text, measures it and stores it, and should read it once."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def name(text: str) -> str:
    """A name or an id from outside: of a call, a tool or a person."""
    if len(text) > ID_CHARS_MAX:
        return clean(text[: ID_CHARS_MAX - 1]) + _CUT
    return text if text.isascii() else clean(text)


def person(text: str) -> str:
    """The name of a person, in one spelling and without what nobody sees: two who read alike are one."""
    seen = "".join([letter for letter in normalize("NFKC", clean(text)) if letter.isprintable()])
    return name(seen.strip())


def note(text: str) -> str:
    """An error, a reason or a problem, in the words of whoever met it."""
    return clean(text[:NOTE_CHARS_MAX])


def stored(text: str, kept: Kept) -> Text:
    """The clean text itself, or a reference to it when it is too long to be written into a turn."""
    if len(text) <= _INLINE_CHARS:
        return text
    data = text.encode()
    if len(data) <= TEXT_INLINE_BYTES_MAX:
        return text
    return _by_reference(data, sha256(data).digest(), kept)


def stored_bytes(data: bytes, digest: bytes, kept: Kept) -> Text:
    """The same for a text that was encoded and hashed already."""
    return data.decode() if len(data) <= TEXT_INLINE_BYTES_MAX else _by_reference(data, digest, kept)


def _by_reference(data: bytes, digest: bytes, kept: Kept) -> BlobRef:
    kept.append((digest, data))
    return BlobRef(digest, len(data))


def shown_of(data: bytes, digest: bytes, kept: Kept) -> tuple[Text, BlobRef | None, int]:
    """A result as a model is shown it, where the whole is kept if that is more, and the shown size."""
    if len(data) <= RESULT_SHOWN_BYTES_MAX:
        return stored_bytes(data, digest, kept), None, len(data)
    return shortened(data, digest, kept)


def shortened(data: bytes, digest: bytes, kept: Kept) -> tuple[Text, BlobRef, int]:
    """A result too long to be shown: its beginning as a model is shown it, where the whole is kept, and the shown size."""
    beginning = data[:RESULT_SHOWN_BYTES_MAX].decode(errors="ignore")
    pointer = (
        f"\n[shortened: {RESULT_SHOWN_BYTES_MAX} of {len(data)} bytes; the whole result is kept as {digest.hex()}]"
    )
    shown = beginning + pointer
    return stored(shown, kept), _by_reference(data, digest, kept), len(shown.encode())
