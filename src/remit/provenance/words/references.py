"""References: addresses, links, account and telephone numbers inside a text, found by their shape.

Rule 1: a reference is found wherever it stands, also inside brackets, quotes and markup, and is taken whole.
Rule 2: spaces, dots, dashes and slashes inside account, card and telephone numbers do not count; everything else does.
Rule 3: a token too long and too mixed to be a word is opaque: it could carry anything.
Rule 4: prose is told at a glance, and plain words are skipped before anything is looked for: neither can hide what
        would be found otherwise.
Rule 5: what reaches a machine or a person without a dot (`user@host`, `host:22`, `//host/share`, `@name`, `$name`)
        points somewhere, too. It is told from prose by its signs, never by the words around it.
"""

import re
from collections.abc import Iterator

from remit.core.record import Record
from remit.core.regex import regex

# Longer than words, names, dates and most identifiers; a key, a digest or an encoding of data is at least this long.
OPAQUE_CHARS_MIN = 24
# Words of natural languages stay below this, compounds included.
WORD_CHARS_MAX = 40

_STOP = r"\s<>\"“”«»`|\\^{}"
_URL = rf"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*:/{{1,3}}[^{_STOP}]+|(?:mailto|data|javascript|tel):[^{_STOP}]+"
# Each of these begins only where its first character is new, so that a long token is read once and not from each place.
_EMAIL = rf"(?<![^{_STOP}@,;:()\[\]'])[^{_STOP}@,;:()\[\]']+@[^{_STOP}@,;:()\[\]'/]+\.[^{_STOP}@,;:()\[\]'./]+"
# A label of a host has 63 characters at most: what is longer reaches nothing, and would be read anew from each dash.
_HOST = rf"(?<![^\W_])(?:[^\W_][\w-]{{0,62}}+\.){{1,8}}[^\W\d_]{{2,24}}(?::\d+)?(?:[/?#][^{_STOP}]*)?"
_ADDRESS = rf"\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?::\d+)?(?:[/?#][^{_STOP}]*)?"
_IBAN = r"\b[A-Z]{2}\d{2}(?:[ ./-]?[A-Z0-9]{4}){2,7}(?:[ ./-]?[A-Z0-9]{1,4})?\b"
# A national number begins with a bracket or a zero and has nine digits: opening hours, "0900-1700", have fewer.
_PHONE = (
    r"\+\d[\d ()./-]{5,20}\d|\b\d{3}[-.]\d{3}[-.]\d{4}\b"
    r"|\((?=(?:[ ()./-]{0,2}\d){9})\d{2,5}\)[\d ./-]{4,14}\d"
    r"|(?<![\w-])(?=\d(?:[ /-]?\d){8})0\d{2,4}[ /-]\d{2,}(?:[ /-]\d{2,}){0,4}\b"
)
_ACCOUNT = r"\b\d{4}(?:[ ./-]\d{4}){2,4}\b|\b\d{8,34}\b"
_MASTER = regex(
    rf"(?P<url>{_URL})|(?P<email>{_EMAIL})|(?P<host>{_HOST}|{_ADDRESS})|(?P<iban>{_IBAN})|(?P<phone>{_PHONE})|(?P<account>{_ACCOUNT})"
)
_TRAILING = ".,;:!?)]}'*_…"
_CODE = regex(r"(?<![\w.@/-])(?=[\w-]*\d)(?:(?=[\w-]*[^\W\d_])[\w-]{5,}|\d{6,7})(?![\w@/])", re.ASCII)
_DIGIT = regex(r"\d")
# A weekday with its hour, a version or a paragraph has fewer; a code that opens something has more.
_CODE_DIGITS_MIN = 3
_MIXED = regex(r"(?<=\d)(?=[^\W\d_])|(?<=[^\W\d_])(?=\d)|(?<=[a-z])(?=[A-Z])")
_PAUSE = regex(r"[-/_.:=&?#]")
# A version, a code or a camel-case name changes once or twice.
_CHANGES_MIN = 4
_EDGES = _TRAILING + "#-=~+"
_LONG = regex(rf"[^{_STOP},;()\[\]]{{{OPAQUE_CHARS_MIN},}}")
# What every text with references has somewhere, and what one of its references has: most prose has neither and is not
# looked at further. Each begins with a class of signs, so that all other places are passed over without a try.
_HINT = regex(r"[@:.+\d](?:(?<=@)|(?<=:)(?=\S)|(?<=\.)(?=\w)|(?<=\+)(?=\d)|(?<=\d)(?:\d{3}|[-.]\d))")
_MARK = regex(
    r"[@:.+\dA-Z](?:(?<=@)|(?<=:)(?=\S)|(?<=\.)(?=[^\W\d_])|(?<=\+)(?=\d)|(?<=\d)(?:\d{3}|[-.]\d{1,3}[-.]\d)"
    r"|(?<=[A-Z])[A-Z]\d\d)"
)
# Whole words as prose has them, each with one sign of a sentence at most and a space behind it. Capitals alone may be a
# group of an account number, and a longer word may be opaque; both are left for those who look closer.
_PLAIN_WORDS = regex(r"(?<!\S)(?:[A-Z]?[a-z]{1,20}[.,;:!?]?(?:[ \n]+|\Z)){1,500}")
# The bytes by which a text of western languages is told to be prose.
_CODE_PAGE = "cp1252"
_LETTER, _DIGIT_SORT, _GAP, _INK = b"a0 x"


def _sort(code: int) -> int:
    """What a byte can be to a reference: a letter, a digit, a gap, or itself.

    What is not ASCII counts as a letter, which can only make a text look less like prose; digits of other scripts have
    no byte in the code page.
    """
    sign = chr(code)
    if code > 127 or sign.isalpha() or sign == "_":
        return _LETTER
    if sign.isdecimal():
        return _DIGIT_SORT
    return _GAP if sign.isspace() else code


_SORTS = bytes(_sort(code) for code in range(256))
_RUNS = bytes(_GAP if sort == _GAP else _INK for sort in _SORTS)
_LONG_RUN = b"x" * OPAQUE_CHARS_MIN
_DIGITS = regex(rb"0(?:[a0-]*0[a0-]*0|[-.]0{1,3}[-.]0)")
_ALIKE = bytes(_LETTER if sort in (_LETTER, _DIGIT_SORT) else _GAP for sort in _SORTS)
_KEY_RUN = b"a" * 16
_SEPARATORS = regex(r"[ ()./-]")
# Machines and people that are reached without a dot: a user at a host, a port, a share, a handle of a person or a purse.
_POINTER = regex(
    r"(?<![\w.+-])[\w.+-]+@[^\W\d][\w-]*(?![\w@]|\.\w)"
    r"|(?<![\w.:/@-])[A-Za-z][A-Za-z0-9-]*:\d{2,5}(?![\w:]|\.\w)"
    r"|\\\\[\w.-]+(?:\\[^\s\\]+)*"
    r"|(?<![\w:/\\])//\w[^\s<>\"]*"
    r"|(?<![\w@$.])[@$][^\W\d][\w.-]*\w"
)
# A key is a run of letters and digits; words without a digit may be longer, and names with one are shorter.
_KEY = regex(r"(?<![^\W_])(?=[^\W\d_]*\d)(?=\d*[^\W\d_])[^\W_]{16}")
_KEY_TOKEN = regex(rf"[^{_STOP},;()\[\]]{{16,}}")
# With these between its groups, a number may be a date, a version or a part of a path.
_LOOSE_SIGNS = frozenset("./")
# Endings of files that are no top-level domain, so that a name with one of them is no link.
_FILE_NAME = regex(
    r"[^/?#:]+\.(?:pdf|txt|docx?|xlsx?|csv|pptx?|png|jpe?g|gif|json|xml|ya?ml|log|html?|rtf|odt|tsv)", re.IGNORECASE
)
# A page that is named without its scheme. Names of files and of modules end otherwise than these hosts.
_PAGE = regex(
    r"www\.|[\w.-]+\.(?:com|org|net|edu|gov|int|info|io|ai|dev|app|co|uk|de|fr|eu|ch|nl|jp|us|ca|au)(?::\d+)?/.",
    re.IGNORECASE,
)
_LEFT_OUT = regex(r"^(?:https?://)?(?:www\.)?", re.IGNORECASE)


class Reference(Record):
    """One reference: its kind, its text as written, its compact form, and where it stands."""

    kind: str
    text: str
    compact: str
    start: int
    end: int


def is_link(reference: Reference) -> bool:
    """Whether a reference leads to a page: it names its scheme, or is written as pages are (`www.`, `doi.org/10.1000/1`)."""
    return reference.kind == "url" or (reference.kind == "host" and _PAGE.match(reference.compact) is not None)


def bare_link(link: str) -> str:
    """A link without what may be left out when it is written down: its scheme, `www.` and the last slash."""
    return _LEFT_OUT.sub("", link).rstrip("/")


def spellings_of(link: str) -> Iterator[str]:
    """The spellings of a link, with and without what may be left out."""
    bare = bare_link(link)
    for scheme in ("https://", "http://", ""):
        for begin in ("", "www."):
            yield f"{scheme}{begin}{bare}"
            yield f"{scheme}{begin}{bare}/"


def is_prose(text: str) -> bool:
    """Whether a text surely holds no reference and no opaque token."""
    try:
        data = text.encode() if text.isascii() else text.encode(_CODE_PAGE)
    except UnicodeEncodeError:
        return False
    sorts = data.translate(_SORTS)
    if b"@" in sorts or b"+" in sorts or b".a" in sorts:
        return False
    # That a sign stands nowhere is told sooner than that no two stand together.
    if (b"$" in sorts and b"$a" in sorts) or (b"/" in sorts and b"//" in sorts):
        return False
    if b"\\" in sorts and b"\\\\" in sorts:
        return False
    if b":" in sorts and sorts.count(b":") != sorts.count(b": ") + sorts.endswith(b":"):
        return False
    if b"0" in sorts and (b"aa00" in sorts or _DIGITS.search(sorts) is not None or _KEY_RUN in data.translate(_ALIKE)):
        return False
    return _LONG_RUN not in data.translate(_RUNS)


def skimmed(text: str) -> str:
    """A text without its plain words: the same references and opaque tokens stand in it, at other places."""
    return _PLAIN_WORDS.sub("\n", text)


def references_in(text: str) -> Iterator[Reference]:
    """All references of a text, in order."""
    if _HINT.search(text) is None or _MARK.search(text) is None:
        return
    for found in _MASTER.finditer(text):
        kind = found.lastgroup or "url"
        written = found.group().rstrip(_TRAILING) if kind in ("url", "email", "host") else found.group()
        # A bracket that was opened inside a link belongs to it.
        if written.count("(") > written.count(")") and found.group()[len(written) :].startswith(")"):
            written += ")"
        if kind == "iban":
            written = _iban_prefix(written)
        if written:
            compact = _compact(kind, written)
            yield Reference(kind, written, compact, found.start(), found.start() + len(written))


def is_file_name(reference: Reference) -> bool:
    """Whether what looks like a host is the name of a file and could not be a link."""
    return reference.kind == "host" and _FILE_NAME.fullmatch(reference.text) is not None


def pointers_in(text: str) -> Iterator[str]:
    """What points to a machine, a person or a purse without being an address or a link."""
    for found in _POINTER.finditer(text):
        yield found.group().rstrip(_TRAILING)


def opaque_in(text: str) -> Iterator[str]:
    """Tokens that no person writes as a word: codes of letters and digits, keys, and what is too long and too mixed."""
    tokens = (found.group().strip(_EDGES) for found in _KEY_TOKEN.finditer(text))
    yield from (token for token in tokens if _KEY.search(token) is not None)
    for found in _CODE.finditer(text):
        if len(_DIGIT.findall(found.group())) >= _CODE_DIGITS_MIN:
            yield found.group()
    for found in _LONG.finditer(text):
        token = found.group().strip(_EDGES)
        if len(token) >= OPAQUE_CHARS_MIN and _is_opaque(token):
            yield token


def _is_opaque(token: str) -> bool:
    """Whether a token changes between letters and digits or between cases as no word does, or never pauses at all."""
    if len(_MIXED.findall(token)) >= _CHANGES_MIN:
        return True
    return any(len(part) > WORD_CHARS_MAX for part in _PAUSE.split(token))


def _compact(kind: str, written: str) -> str:
    """A number without its separators, where these surely tell nothing; everything else as it is written."""
    if kind == "phone" or (kind == "account" and _LOOSE_SIGNS.isdisjoint(written)):
        return _SEPARATORS.sub("", written)
    if kind == "iban":
        bare = _SEPARATORS.sub("", written)
        return bare if _check_digits_hold(bare) else written.replace(" ", "")
    return written


def _iban_prefix(written: str) -> str:
    """The longest run of whole groups whose check digits hold; a text without spaces is taken as it is."""
    groups = written.split(" ")
    if len(groups) == 1:
        return written
    while len(groups) > 2:
        if _check_digits_hold(_SEPARATORS.sub("", "".join(groups))):
            return " ".join(groups)
        groups.pop()
    return ""


def _check_digits_hold(iban: str) -> bool:
    moved = iban[4:] + iban[:4]
    return int("".join(str(int(sign, 36)) for sign in moved)) % 97 == 1
