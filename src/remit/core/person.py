"""Names of people: which are the same person, which only look alike, and which nobody may use.

Rule 1: two names are one person when they are equal in the compatibility form of Unicode, whatever their case and blanks.
Rule 2: a name shows all of itself: no control, no format, no invisible sign, and no word in more than one script.
Rule 3: a name that looks like another one and is not it is refused wherever both are known. The table of look-alikes is
        small: letters of Cyrillic, Greek and Armenian, and signs of one alphabet that are read for each other.
Rule 4: a name is a claim. Who may use which name is for the door that takes it to know.
"""

import unicodedata
from collections.abc import Iterable

from remit.core.failure import RequestRejected

PERSON_INVALID = "PERSON_INVALID"

# Room for an address or an id of a directory; as long as any other id.
PERSON_CHARS_MAX = 256
_SHOWN_CHARS_MAX = 80

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
    "b": "\u0432\u03b2",
    "c": "\u0441\u03f2",
    "d": "\u0501",
    "e": "\u0435\u03b5\u04bd",
    "g": "\u0581\u0261",
    "h": "\u043d\u04bb\u0570",
    "j": "\u0458\u0575\u03f3",
    "k": "\u043a\u03ba",
    # A capital I, a one and a small L are one stroke in many typefaces.
    "l": "i1|!\u0456\u04cf\u03b9\u0131\u0269\u01c0",
    "m": "\u043c\u03bc",
    "n": "\u03b7\u0578",
    "o": "0\u043e\u03bf\u0585\u03c3",
    "p": "\u0440\u03c1",
    "q": "\u051b",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d",
    "v": "\u0475\u03bd",
    "w": "\u051d\u03c9",
    "x": "\u0445\u03c7",
    "y": "\u0443\u03b3\u04af",
    "z": "\u03b6",
    "-": "\u2010\u2011\u2012\u2013\u2014\u2212_",
    "'": "\u2019\u02bc`",
}
_ALIKE = {ord(other): sign for sign, others in _READ_FOR.items() for other in others}
_PAIRS_ALIKE = (("rn", "m"), ("vv", "w"), ("cl", "d"))


def folded(name: str) -> str:
    """A name as it is compared."""
    return " ".join(unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).split())


def is_same(one: str, other: str) -> bool:
    """Whether two names are one person."""
    return folded(one) == folded(other)


def is_among(name: str, names: Iterable[str]) -> bool:
    """Whether a name is one of these people."""
    return any(is_same(name, other) for other in names)


def look_alike(name: str, names: Iterable[str]) -> str:
    """The first of these names that this one could be read for without being it; empty when there is none."""
    sight = _sight(name)
    return next((other for other in names if not is_same(name, other) and _sight(other) == sight), "")


def check_person(name: str, field: str = "by") -> str:
    """The name of a person, unless it hides something or cannot be one."""
    if not name.strip() or len(name) > PERSON_CHARS_MAX:
        raise _invalid(field, name, f"is no name; use 1 to {PERSON_CHARS_MAX} characters")
    form = unicodedata.normalize("NFKC", name)
    for character in (*name, *form):
        if _is_unseen(character):
            raise _invalid(field, name, f"holds U+{ord(character):04X}, which nobody sees; leave it out")
    for word in _words(form):
        if len(scripts := _scripts(word)) > 1:
            raise _invalid(field, name, f"mixes {' and '.join(sorted(scripts))} in one word; write it in one script")
    return name


def _sight(name: str) -> str:
    """What a reader takes a name for."""
    seen = unicodedata.normalize("NFKC", name).casefold().translate(_ALIKE)
    for pair, sign in _PAIRS_ALIKE:
        seen = seen.replace(pair, sign)
    return " ".join(seen.split())


def _is_unseen(character: str) -> bool:
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
    shown = ascii(name)[:_SHOWN_CHARS_MAX]
    return RequestRejected(PERSON_INVALID, f"{field}={shown} {problem}", {"field": field})
