"""Money: which numbers of the words can be meant as an amount of money. Where money moves, only these count.

Rule 1: a number that belongs to something else is no amount: it stands behind a word that numbers are given to (invoice,
        room, page), before a plural that it counts, before a name or "of"; it is an ordinal, a year or one of several
        groups of digits; or it goes into a sum or a share.
Rule 2: where some numbers stand beside a currency or are called an amount, only those count.
Rule 3: of several that nothing marks, one counts if it stands alone in the sentence that asks, and the others before it;
        else none does, and a person is asked.
Rule 4: cents are hundredths; a number in words is an amount only beside a currency.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from remit.core.limits.purchases import MAJOR, MINOR
from remit.core.record import Record
from remit.core.regex import regex
from remit.provenance.kinds import number_key
from remit.provenance.words.atoms import NumberSaid, Token, sentence_of
from remit.provenance.words.vocabulary import CODES, COUNTS, CURRENCIES, FUNCTION_WORDS, name_words, stem

# What an argument is called that takes an amount, and what an amount is called.
SUMS_CALLED = frozenset(
    {"amount", "sum", "total", "price", "value", "limit", "fee", "cost", "budget", "payment", "cents", "balance"}
)
_SUM_STEMS = frozenset(stem(word) for word in SUMS_CALLED)
_SIGNS = frozenset("$€£¥₹₩₽₺₪₫₴₦฿")
_SIGNS_AND_DASH = "".join(sorted(_SIGNS)) + "-"
_CENTS = frozenset({"cent", "cents", "ct", "cts", "pence", "penny", "p"})
# Currencies whose hundredth is what "cents" and "minor" say; of others it is not known how small they go.
_OF_HUNDRED = frozenset(
    {"eur", "euro", "euros", "usd", "dollar", "dollars", "gbp", "pound", "pounds", "chf", "cad", "aud", "nzd"}
)
_MINOR = frozenset({"minor", "subunit", "subunits"}) | _CENTS - {"p"}
_ORDINALS = frozenset({"st", "nd", "rd", "th"})
# What is worked out is not what goes in: "10 percent of 250", "the sum of 12 and 8".
_SHARE = regex(r"(?:%|\b(?:percent|half|third|quarter))\s+of\s+(?:the\s+)?[$€£¥]?\s?$", re.IGNORECASE)
_SHARE_CHARS_MAX = 24
_OPERANDS = regex(r"\b(?:sum|total|difference|product|average)\s+(?:of|between)\b(?:[^.!?\n]|\.(?=\d))*", re.IGNORECASE)
# Plurals that no ending shows.
_COUNTED = frozenset({"people", "persons", "children", "men", "women", "pieces", "percent", "x"})
_PLURAL_CHARS_MIN = 4
# Groups of digits side by side are a telephone number, a card or a code.
_GROUP_BEFORE = regex(r"(?<![\w-])[\d/ -]*\d[ /-]$")
_GROUP_CHARS_MAX = 16
_GROUP_BEHIND = regex(r"[ /-]\d")
_YEAR = regex(r"(?:19|20)\d\d")
_WHEN = frozenset({"in", "since", "until", "till", "during"})
_HUNDRED = Decimal(100)


_GLUED = CURRENCIES | _CENTS | _ORDINALS | {""}


class Amount(Record):
    """One number that may be an amount: its size as the index spells it, its place, and whether something marks it."""

    key: str
    start: int
    end: int
    is_marked: bool = False
    unit: str = ""
    # A word stands behind it that it may count or that makes another number of it: it is a rival, and never meant.
    is_open: bool = False


class Meant(Record):
    """The numbers that count as amounts for a tool; `rivals` are those of which it is open which is meant."""

    spans: dict[str, tuple[int, int]] = {}
    rivals: frozenset[str] = frozenset()


def amounts_in(bare: str, tokens: Sequence[Token], numbers: Mapping[str, tuple[NumberSaid, ...]]) -> tuple[Amount, ...]:
    """The numbers of the words that may be amounts, in the order in which they stand."""
    if not numbers:
        return ()
    operands = [found.span() for found in _OPERANDS.finditer(bare)]
    found = [one for key, uses in numbers.items() for said in uses for one in _amounts(bare, tokens, key, said)]
    kept = [one for one in found if not any(start <= one.start < end for start, end in operands)]
    return tuple(sorted(kept, key=lambda one: one.start))


def meant_for(amounts: Sequence[Amount], tokens: Sequence[Token], places: Sequence[int]) -> Meant:
    """The amounts that count where the words at these places ask for money to move."""
    marked = [one for one in amounts if one.is_marked]
    keys = {one.key for one in amounts}
    if marked or len(keys) < 2:
        return Meant(_spans(marked or amounts))
    start, end = sentence_of(tokens, places[-1]) if places else (0, 0)
    own = [one for one in amounts if start <= one.start < end]
    if len({one.key for one in own}) == 1 and amounts[-1].start < end:
        return Meant(_spans(own))
    return Meant({}, frozenset(keys))


def is_minor(kind: str, argument: str) -> bool:
    """Whether an argument takes an amount in hundredths: of the kind `money`, or by its name, `amount_cents`."""
    return kind == MINOR or (
        kind != MAJOR and not _MINOR.isdisjoint((*name_words(argument), *name_words(kind.partition(":")[2])))
    )


def in_hundredths(number: Decimal, amounts: Sequence[Amount]) -> Amount | None:
    """The amount of the words that a number of hundredths stands for, if its currency has hundredths."""
    key = number_key(number / _HUNDRED)
    return next((one for one in amounts if one.key == key and one.is_marked and _has_hundredths(one.unit)), None)


def _has_hundredths(unit: str) -> bool:
    return unit.lower() in _OF_HUNDRED | _CENTS


def _spans(amounts: Sequence[Amount]) -> dict[str, tuple[int, int]]:
    return {one.key: (one.start, one.end) for one in reversed(amounts) if not one.is_open}


def _amounts(bare: str, tokens: Sequence[Token], key: str, said: NumberSaid) -> Iterator[Amount]:
    """The number as an amount, if it may be one."""
    if said.end < len(bare) and bare[said.end].isalpha() and _written_on(bare, said.end) not in _GLUED:
        return  # "2m" may be two millions, and "5x" five times.
    is_word = bare[said.start : said.end].lower() in COUNTS
    behind = _behind(bare, tokens, said)
    signs = bare[max(said.start - 2, 0) : said.start].rstrip()[-1:] + bare[said.end : said.end + 2].lstrip()[:1]
    lowered = behind.lower()
    is_share = _SHARE.search(bare[max(said.start - _SHARE_CHARS_MAX, 0) : said.start]) is not None
    if said.percent or is_share or said.is_converted or _is_numbered(bare, said):
        return
    if lowered in _CENTS:
        yield Amount(number_key(Decimal(key) / _HUNDRED), said.start, said.end, is_marked=True, unit=said.unit)
        return
    is_marked = not _SIGNS.isdisjoint(signs) or lowered in CURRENCIES or _is_called(tokens, said.start)
    if not is_marked and (is_word or _counts_something(behind) or _is_written_as_another(bare, tokens, said)):
        return
    is_open = not is_marked and behind != "" and lowered not in FUNCTION_WORDS
    yield Amount(key, said.start, said.end, is_marked=is_marked, unit=said.unit, is_open=is_open)


def _written_on(bare: str, end: int) -> str:
    """The letters that are written on to a number, in lower case."""
    last = end
    while last < len(bare) and bare[last].isalpha():
        last += 1
    return bare[end:last].lower()


def _behind(bare: str, tokens: Sequence[Token], said: NumberSaid) -> str:
    """The word right behind a number, or the letters that are part of it."""
    place = bisect_right(tokens, said.end, key=lambda token: token.end)
    if place < len(tokens) and (token := tokens[place]).start <= said.end < token.end:
        return bare[said.end : token.end].strip(_SIGNS_AND_DASH)
    if place < len(tokens) and bare[said.end : tokens[place].start].strip(_SIGNS_AND_DASH + " \t") == "":
        return tokens[place].text
    return ""


def _counts_something(behind: str) -> bool:
    """Whether the word behind a number says that it is no amount: a plural, a name, an ordinal, "of"."""
    lowered = behind.lower()
    if lowered == "of" or lowered in _ORDINALS or lowered in _COUNTED:
        return True
    if lowered in FUNCTION_WORDS or not behind:
        return False
    is_plural = lowered.endswith("s") and not lowered.endswith("ss") and len(lowered) >= _PLURAL_CHARS_MIN
    return behind[0].isupper() or is_plural


def _is_written_as_another(bare: str, tokens: Sequence[Token], said: NumberSaid) -> bool:
    """Whether a number is a part of a longer one, begins with a nought that counts nothing, or is a year."""
    digits = bare[said.start : said.end]
    if _GROUP_BEFORE.search(bare, max(said.start - _GROUP_CHARS_MAX, 0), said.start) or _GROUP_BEHIND.match(
        bare, said.end
    ):
        return True
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdecimal():
        return True
    last = bisect_right(tokens, said.start, key=lambda token: token.end) - 1
    return last >= 0 and tokens[last].text.lower() in _WHEN and _YEAR.fullmatch(digits) is not None


def _is_numbered(bare: str, said: NumberSaid) -> bool:
    """Whether a number is given to something that is no sum, or stands behind a sign for that."""
    if bare[max(said.start - 2, 0) : said.start].rstrip()[-1:] in ("#", "№", "§"):
        return True
    is_marked = said.unit.lower() in CURRENCIES
    return bool(said.caller) and said.caller not in _SUM_STEMS and not is_marked


def _is_called(tokens: Sequence[Token], start: int) -> bool:
    """Whether a number is called an amount or stands right behind the code of a currency."""
    last = bisect_left(tokens, start, key=lambda token: token.start) - 1
    if last < 0:
        return False
    word, before = tokens[last].text.lower(), tokens[last - 1].text.lower() if last else ""
    if tokens[last].text in CODES:
        return True
    return word == "amount" or (word == "of" and before == "amount")
