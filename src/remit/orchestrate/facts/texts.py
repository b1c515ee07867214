"""Texts and figures from outside, made fit to be written into a turn.

Rule 1: every text is valid Unicode; half a surrogate pair becomes a question mark.
Rule 2: a text that has no limit of its own goes to Blobs when it is long, and the record carries its digest.
Rule 3: a name or a note has no place in Blobs, so it is cut; a name that was cut can equal no other name.
Rule 4: a figure that is not known is charged as the worst case, so a miscount can never refund anything.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from unicodedata import normalize

from remit.core.record import TEXT_INLINE_BYTES_MAX, BlobRef, Text, field_values
from remit.core.run.request_checks import ID_CHARS_MAX
from remit.core.run.usage import TokenUsage

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
# A text in full; None when it is not kept any more.
Read = Callable[[Text], str | None]


def text_reader(texts: Mapping[bytes, bytes]) -> Read:
    """Gives texts in full: those that stand in their turn, and those at hand by their digest."""

    def read(text: Text) -> str | None:
        if isinstance(text, str):
            return text
        data = texts.get(text.digest)
        return None if data is None else data.decode()

    return read


def clean(text: str) -> str:
    """The text as valid Unicode, so that it can be written."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def encoded_text(text: str) -> bytes:
    """A clean text as bytes: for callers that hash, measure and store a text, and should read it once."""
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
    """The name of a person, in one spelling and without invisible characters: two who read alike are one."""
    seen = "".join([letter for letter in normalize("NFKC", clean(text)) if letter.isprintable()])
    return name(seen.strip())


def note(text: str) -> str:
    """An error, a reason or a problem, as the part that met it says it."""
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
    """The text or the reference that a record holds, of bytes that were encoded and hashed already."""
    return data.decode() if len(data) <= TEXT_INLINE_BYTES_MAX else _by_reference(data, digest, kept)


def _by_reference(data: bytes, digest: bytes, kept: Kept) -> BlobRef:
    kept.append((digest, data))
    return BlobRef(digest, len(data))


def shown_result(data: bytes, digest: bytes, kept: Kept) -> tuple[Text, BlobRef | None, int]:
    """A result as a model is shown it, where the whole is kept if that is more, and the shown size."""
    if len(data) <= RESULT_SHOWN_BYTES_MAX:
        return stored_bytes(data, digest, kept), None, len(data)
    return shortened_result(data, digest, kept)


def shortened_result(data: bytes, digest: bytes, kept: Kept) -> tuple[Text, BlobRef, int]:
    """A result too long to be shown: its beginning as a model is shown it, where the whole is kept, and the shown size."""
    beginning = data[:RESULT_SHOWN_BYTES_MAX].decode(errors="ignore")
    pointer = (
        f"\n[shortened: {RESULT_SHOWN_BYTES_MAX} of {len(data)} bytes; the whole result is kept as {digest.hex()}]"
    )
    shown = beginning + pointer
    return stored(shown, kept), _by_reference(data, digest, kept), len(shown.encode())


# No engine reads, generates or takes so much, in tokens or milliseconds; a figure above it is cut to it, so that every
# sum and price made of it still fits the 64 bits of a record.
FIGURE_MAX = 2**40 - 1
_WHOLE = frozenset({int})


def cut_usage(usage: TokenUsage) -> TokenUsage:
    """The usage as reported; a figure beyond belief is cut, and one that counts nothing makes the usage unknown.

    What is not known is charged as the worst case, so a miscount can never refund anything.
    """
    figures = field_values(usage)
    if not _WHOLE.issuperset(map(type, figures)) or min(figures) < 0:
        return TokenUsage()
    return usage if max(figures) <= FIGURE_MAX else TokenUsage(*[min(figure, FIGURE_MAX) for figure in figures])


def cut_figure(duration_ms: int) -> int:
    """A duration as reported; nothing where it counts none, and cut where it is beyond belief."""
    if type(duration_ms) is not int or duration_ms < 0:
        return 0
    if duration_ms > FIGURE_MAX:
        return FIGURE_MAX
    return duration_ms
