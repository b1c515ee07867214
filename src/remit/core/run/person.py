"""Names of people: which are the same person, which only look alike, and which may not be used.

Rule 1: two names are one person when they are equal in the compatibility form of Unicode, whatever their case, their
        blanks, and the punctuation before and after.
Rule 2: a name shows all of itself: no control, no format, no invisible sign, and no word in more than one script.
Rule 3: a name that looks like another one and is not it is refused wherever both are known; so is one that only a blank
        tells apart. The table of look-alikes is
        small: letters of scripts that have the shape of Latin ones, and signs of one alphabet that are read for each other.
Rule 4: a name is a claim. Who may use which name is for the door that takes it to know.
Rule 5: names are written, shown and logged as they are, so none may be a secret.
"""

import unicodedata
from collections.abc import Iterable

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import RequestRejected
from remit.core.secrets.secret_search import CHANCE, secrets_in

PERSON_INVALID = "PERSON_INVALID"
REQUEST_ID_SECRET = "REQUEST_ID_SECRET"  # noqa: S105  # a code, and no password

# Room for an address or an id of a directory; as long as any other id.
PERSON_CHARS_MAX = 256

# Control, format, unassigned, private and surrogate characters, and separators; a plain blank is allowed by name.
_UNSEEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs"})
# Letters, marks and signs that show nothing although their category says that they would.
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_SELECTORS = ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
# Scripts that are written in one word with each other.
_EAST_ASIAN = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "IDEOGRAPHIC", "BOPOMOFO", "HANGUL"})

# What is read for what, after case was folded: each sign, and those that stand for it here.
_READ_FOR = {
    "a": "\u0430\u03b1\u0251",
    "b": "\u0432\u044c\u03b2",
    "c": "\u0441\u03f2",
    "d": "\u0501",
    "e": "\u0435\u03b5\u04bd\u025b",
    "f": "\u0493\u0584",
    "g": "\u0581\u0261",
    "h": "\u043d\u04bb\u0570",
    "j": "\u0458\u0575\u03f3",
    "k": "\u043a\u03ba\u0138",
    # A capital I, a one and a small L are one stroke in many typefaces.
    "l": "i1|!\u0456\u04cf\u03b9\u0131\u0269\u01c0",
    "m": "\u043c\u03bc",
    "n": "\u03b7\u0578\u043f",
    "o": "0\u043e\u03bf\u0585\u03c3",
    "p": "\u0440\u03c1",
    "q": "\u051b\u0566",
    "r": "\u0433",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d",
    "v": "\u0475\u03bd",
    "w": "\u051d\u03c9\u0448\u0461",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u04af",
    "z": "\u03b6",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2212_",
    "'": "\u2019\u02bc`",
}
# Capitals whose small letter is read for another, and letters of scripts that have the shape of Latin capitals alone:
# Greek and Armenian, then Cherokee, Coptic and Lisu.
_CAPITALS_READ_FOR = {
    "a": "\u13aa\u2c80\ua4ee",
    "b": "\u13f4\u2c82\ua4d0",
    "c": "\u13df\u2ca4\ua4da",
    "d": "\u13a0\ua4d3",
    "e": "\u13ac\u2c88\ua4f0",
    "f": "\u03dc\ua4dd",
    "g": "\u13c0\u13f3\ua4d6",
    "h": "\u0397\u13bb\u2c8e\ua4e7",
    "j": "\u13ab\ua4d9",
    "k": "\u13e6\u2c94\ua4d7",
    "l": "\u053c\u13de\u2c92\ua4e1\ua4f2",
    "m": "\u13b7\u2c98\ua4df",
    "n": "\u039d\u2c9a\ua4e0",
    "o": "\u2c9e\ua4f3",
    "p": "\u13e2\u2ca2\ua4d1",
    "r": "\u13a1\u13d2\ua4e3",
    "s": "\u054f\u13da\ua4e2",
    "t": "\u13a2\u2ca6\ua4d4",
    "u": "\u054d\ua4f4",
    "v": "\u13d9\ua4e6",
    "w": "\u13b3\ua4ea",
    "x": "\u2cac\ua4eb",
    "y": "\u03a5\u13a9\u2ca8\ua4ec",
    "z": "\u13c3\u2c8c\ua4dc",
}
_ALIKE = {ord(other): sign for sign, others in _READ_FOR.items() for other in others}
_CAPITALS_ALIKE = {ord(other): sign for sign, others in _CAPITALS_READ_FOR.items() for other in others}
_SMALL_CAPITAL = "LATIN LETTER SMALL CAPITAL "
_PAIRS_ALIKE = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def folded_name(name: str) -> str:
    """A name as it is compared."""
    return _trimmed(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()))


def is_same_person(one: str, other: str) -> bool:
    """Whether two names are one person."""
    return folded_name(one) == folded_name(other)


def is_among(name: str, names: Iterable[str]) -> bool:
    """Whether a name is one of these people."""
    return any(is_same_person(name, other) for other in names)


def look_alike(name: str, names: Iterable[str]) -> str:
    """The first of these names that this one could be read for without being it; empty when there is none."""
    sight = _sight(name)
    return next((other for other in names if not is_same_person(name, other) and _sight(other) == sight), "")


def check_person(name: str, field: str = "by") -> str:
    """The name of a person, unless it hides something, is a secret or cannot be one."""
    check_no_secret(field, name)
    if not name:
        raise _invalid(
            field, name, "is no name; say who it is, or act for a principal (`acting_for`), whose name it is then"
        )
    if not name.strip() or len(name) > PERSON_CHARS_MAX:
        raise _invalid(field, name, f"is no name; use 1 to {PERSON_CHARS_MAX} characters")
    if not folded_name(name):
        raise _invalid(field, name, "is no name; punctuation alone names no person")
    form = unicodedata.normalize("NFKC", name)
    for character in (*name, *form):
        if is_unseen(character):
            raise _invalid(field, name, f"holds U+{ord(character):04X}, which is invisible; leave it out")
    for word in _words(form):
        if len(scripts := _scripts(word)) > 1:
            raise _invalid(field, name, f"mixes {' and '.join(sorted(scripts))} in one word; write it in one script")
    return name


def check_no_secret(field: str, name: str) -> None:
    """Refuse a name that is a secret.

    Letters by chance alone are what many programs make identifiers of.
    """
    kind = next((found.kind for found in secrets_in(name) if found.kind != CHANCE), "")
    if kind:
        message = f"{field} looks like a secret ({kind}), and names are kept in clear; give another name, and renew that secret"
        raise RequestRejected(REQUEST_ID_SECRET, message, {"field": field, "kind": kind})


def _sight(name: str) -> str:
    """What a reader takes a name for."""
    # Accents are taken off before letters are compared and stay beside them; capitals are looked at as capitals first.
    form = unicodedata.normalize("NFKD", _trimmed(name)).translate(_CAPITALS_ALIKE)
    seen = "".join(map(_plain_letter, unicodedata.normalize("NFKD", form.casefold()).translate(_ALIKE)))
    for pair, sign in _PAIRS_ALIKE:
        seen = seen.replace(pair, sign)
    return _trimmed(seen).replace(" ", "")


def _plain_letter(character: str) -> str:
    """A letter as it is read: a small capital for the letter that it is."""
    _, _, letter = unicodedata.name(character, "").partition(_SMALL_CAPITAL)
    return letter.lower().translate(_ALIKE) if len(letter) == 1 else character


def _trimmed(form: str) -> str:
    """A form of a name without the punctuation at its ends, and with single blanks."""
    places = [place for place, sign in enumerate(form) if unicodedata.category(sign)[0] not in "PZ"]
    return " ".join(form[places[0] : places[-1] + 1].split()) if places else ""


def is_unseen(character: str) -> bool:
    """Whether a reader does not see a character: it controls, formats, fills or selects, or has no printed form."""
    # A blank that is none of the keyboard becomes a plain one in the form that is compared, and is looked at there.
    if character in (" ", "\u00a0"):
        return False
    place = ord(character)
    is_selector = any(first <= place <= last for first, last in _SELECTORS)
    return unicodedata.category(character) in _UNSEEN_CATEGORIES or character in _UNSEEN or is_selector


def _words(form: str) -> list[str]:
    return "".join(character if character.isalpha() else " " for character in form).split()


def _scripts(word: str) -> set[str]:
    """The scripts of the letters of a word, by their names in Unicode."""
    found = {unicodedata.name(character, "?").partition(" ")[0] for character in word}
    return {"EAST-ASIAN" if script in _EAST_ASIAN else script for script in found}


def _invalid(field: str, name: object, problem: str) -> RequestRejected:
    shown = ascii(name)[:SHOWN_CHARS_MAX]
    return RequestRejected(PERSON_INVALID, f"{field}={shown} {problem}", {"field": field})
