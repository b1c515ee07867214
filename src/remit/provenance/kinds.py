"""Kinds: what sort of thing a value is, which kinds may stand in for which, and whether a value looks like its kind.

A kind is a word, or a word and a namespace: `number`, `number:EUR`, `id:file`, `who:email`.

Rule 1: a file id never satisfies an event id, and a channel never a user; namespaces must be equal.
Rule 2: `label` and `text` never supply a value; a label may select a record.
Rule 3: a value that does not look like its declared kind is text, whatever the declaration says.
Rule 4: an argument without a kind takes any supplying kind, and its name may only refuse: `event_id` takes no file id.
"""

import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from remit.core.limits.purchases import MAJOR, MINOR
from remit.core.regex import regex
from remit.provenance.words.vocabulary import name_stems, stem

ANY = ""
LABEL = "label"
TEXT = "text"
# A one-time code, which has no source but the text that tells it.
CODE = "code"
# Marks a kind that was read off a value and not declared: it may select a record and supplies nothing.
INFERRED = "~"

NUMBERS = frozenset({"number", "amount", "money", "price", "integer", "int", "float", "count", "percent", "decimal"})
MOMENTS = frozenset({"date", "time", "datetime", "date-time", "timestamp", "moment"})
# Kinds of things. All other supplying kinds tell who a person is or where they can be reached.
THINGS = frozenset({"id", "path", "enum", "bool", "boolean", CODE}) | NUMBERS | MOMENTS

_MEASURES = frozenset({"bool", "boolean", "enum"}) | NUMBERS | MOMENTS

# What many an argument is called, and what says nothing about the thing it takes.
UNSAYING = frozenset({"id", "number", "nam", "key", "ref", "no", "nr"})
# No identifier that systems hand out is longer; what is longer is text.
VALUE_CHARS_MAX = 256

EMAIL = regex(r"[^\s@,;:<>()\[\]\"']+@[^\s@,;:<>()\[\]\"']+\.[^\s@,;:<>()\[\]\"'.]+")
URL = regex(r"[A-Za-z][A-Za-z0-9+.-]*://\S+|[^\s/?#@:]+\.[^\s/?#@:]+(?::\d+)?(?:[/?#]\S*)?")
IBAN = regex(r"[A-Z]{2}\d{2}[A-Z0-9]{8,30}")
DATE = regex(r"(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?(?:Z|[+-]\d{2}:\d{2})?)?")
# A name of more words is a sentence.
NAME_WORDS_MAX = 6
_NUMBER = regex(r"[+-]?\d+(\.\d+)?([eE][+-]?\d{1,3})?", re.ASCII)
_NUMBER_SIGNS = frozenset("+-0123456789")
_MEMBER = regex(r"\s*[,;]\s*")
_TIME = regex(r"\d{1,2}:\d{2}(:\d{2})?")
_PLAIN = regex(r"[^\x00-\x1f\x7f\u2028\u2029]+")
_BLANK = regex(r"[\s\x00-\x1f\x7f\u200b-\u200f\u2028-\u202f\u2060-\u2064\ufeff]")


def base_of(kind: str) -> str:
    """The word of a kind before its namespace."""
    return kind.partition(":")[0]


def unit_of(kind: str) -> str:
    """The unit that a kind of number demands; of money it says only whether it is counted in hundredths."""
    base, _, space = kind.partition(":")
    return space if base in NUMBERS and kind not in (MINOR, MAJOR) else ""


def supplies(kind: str) -> bool:
    """Whether a field of this kind may supply a value."""
    return kind not in (LABEL, TEXT, ANY) and not kind.startswith(INFERRED)


def is_identity(kind: str) -> bool:
    """Whether a kind tells who a person is or where they can be reached; things, numbers and dates do not."""
    return base_of(kind) not in THINGS


def is_target(kind: str) -> bool:
    """Whether an argument of this kind says on whom or on what an effect falls, rather than how much or when."""
    return kind.partition(":")[0] not in _MEASURES


def satisfies(wanted: str, offered: str, *, argument: str = "", tool: str = "") -> bool:
    """Whether a field of the offered kind may stand where the wanted kind is due."""
    if wanted == offered:
        return True
    base, _, space = offered.partition(":")
    if wanted in (ANY, "id"):
        return (wanted == ANY or base == "id") and _is_not_refused(base, space, argument, tool)
    if base == "who":
        return wanted in (space, "who")
    wanted_base = base_of(wanted)
    if base in NUMBERS and wanted_base in NUMBERS:
        # What is counted in hundredths is a hundred times as much.
        return MINOR not in (wanted, offered) and unit_of(wanted) in ("", space)
    return base in MOMENTS and wanted_base in MOMENTS


def _is_not_refused(base: str, space: str, argument: str, tool: str) -> bool:
    """A namespace is known from names only in order to refuse."""
    named = name_stems(argument)
    if base in NUMBERS:
        return "id" not in named
    if base != "id" or not space:
        return True
    named -= {"id"}
    return stem(space) in (named or name_stems(tool))


def looks_like(kind: str, value: Any) -> bool:
    """Whether a value has the looks of its kind."""
    base = base_of(kind.removeprefix(INFERRED))
    if base in NUMBERS:
        return number_of(value) is not None
    if base in ("bool", "boolean"):
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return False
    text = str(value)
    if not text or len(text) > VALUE_CHARS_MAX:
        return False
    if base in MOMENTS:
        return DATE.fullmatch(text) is not None or _TIME.fullmatch(text) is not None
    if base == "id":
        return _BLANK.search(text) is None
    if (shape := shape_of(kind)) is not None:
        return shape.fullmatch(text) is not None
    return _PLAIN.fullmatch(text) is not None and (base == LABEL or len(text.split()) <= NAME_WORDS_MAX)


SHAPES = {"email": EMAIL, "url": URL, "iban": IBAN}


def shape_of(kind: str) -> re.Pattern[str] | None:
    """The form that every value of a kind has, for kinds that have one."""
    base, _, space = kind.partition(":")
    return SHAPES.get(space if base == "who" else base)


def members_of(value: Any, kind: str) -> list[str]:
    """The members of a text that lists addresses, as mail programs take them."""
    if isinstance(value, str) and ("," in value or ";" in value) and base_of(kind) in ("who", "email"):
        return [member for member in _MEMBER.split(value.strip()) if member]
    return []


def number_of(value: Any) -> Decimal | None:
    """The number that a JSON number, or a text that is nothing else, stands for."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    text = value if isinstance(value, str) else repr(value)
    if text[:1] not in _NUMBER_SIGNS or len(text) > 40 or not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:  # pragma: no cover - the pattern lets nothing through that Decimal refuses
        return None


def number_key(number: Decimal) -> str:
    """One spelling per number: 12, 12.0 and 12.00 have the same."""
    if number == 0:
        return "0"
    spelled = format(number, "f")
    return spelled.rstrip("0").rstrip(".") if "." in spelled else spelled


def is_in_calendar(text: str) -> bool:
    """Whether a text in ISO form is a day, or a moment of one, that there is."""
    try:
        return DATE.fullmatch(text) is not None and datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def day_of(text: str) -> date | None:
    """The day of a text in ISO form, if there is such a day."""
    found = DATE.fullmatch(text)
    if not found:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3]))
    except ValueError:
        return None
