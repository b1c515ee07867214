"""Atoms: a text cut into what may bind a value: quotations, references, names, identifiers, plain words, numbers.

Rule 1: each atom is noted whole, with its place; what it is made of is blanked out before smaller atoms are looked for.
Rule 2: a run of capitalised words is one name; only the word that opens a sentence may be left off.
Rule 3: a part of a date, and a number, is no text.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal

from remit.core.record import Record, replace
from remit.core.regex import regex
from remit.provenance.kinds import number_key
from remit.provenance.words.blocks import QUOTE_CHARS_MAX
from remit.provenance.words.moments import OFFSETS, WEEKDAYS, Moments
from remit.provenance.words.references import references_in
from remit.provenance.words.units import SPOKEN, UNITS, in_other_units, spoken_count
from remit.provenance.words.vocabulary import CODES, COUNTS, CURRENCIES, FUNCTION_WORDS, LEADS, stem

# A name of more words than this is a sentence.
NAME_WORDS_MAX = 8
# How many words before a number may call it an identifier: "the event with the id 13".
_MENTION_WORDS_MAX = 3

QUOTATION = regex(
    r"\"([^\"\n]{1,2000})\"|“([^”\n]{1,2000})”|«([^»\n]{1,2000})»|\u2018([^\u2019\n]{1,2000})\u2019|`([^`\n]{1,2000})`"
    r"|(?<![\w'])'([^'\n]{1,2000}(?:'\w[^'\n]*)*)'(?!\w)"
)
_SPELLED = regex(r"\w")
_TOKEN = regex(r"[^\s,;()\[\]{}<>\"“”«»`\u25a0]+")
_LEADING, _TRAILING = "'\u2018*_¿¡", ".,;:!?'\u2019*…"
_OPENING = "'\u2018*_([<{,;:"
_POSSESSIVE = regex(r"(?:'|\u2019)s$")
# What an "s" belongs to, and the abbreviations whose full stop ends no sentence: "ticket no. 17".
_CONTRACTED = frozenset({"it's", "let's"})
_NUMBERING = frozenset({"no", "nr"})
_DIGIT = regex(r"\d")
_NUMBER = regex(
    r"(?<![\w.,/:-])(?P<cur>[$€£¥])?\s?(?P<num>0,[0-9]+|[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+|[0-9]+(?:\.[0-9]+)?|[0-9]+,[0-9]{1,2})"
    r"(?:\s?(?P<pct>%|percent\b))?(?:\s?(?P<unit>[$€£¥]|°[Cc]\b|[A-Za-z]+))?(?![\w/@]|[.,:-]\w)"
)
# What may stand between a noun and the number that it is given: "card ending in 9023", "invoice no. 77", "order #5512".
_BETWEEN = frozenset(
    {"ending", "ends", "in", "is", "with", "no", "nr", "number", "id", "numbered", "called", "the", "ids"}
)
_LISTING = frozenset({"and", "or", "but", "then"})
# Numbers that stand in a longer list than this are given to nothing that an argument is called.
_LINKS_MAX = 100
UNCALLED = "?"
_WISHING = frozenset({"want", "need", "like", "wish", "you", "u"})
# "file 13 and 4 more" names one file.
_FURTHER = regex(r"\s+(?:more|others?|further|additional)\b")
# "12 of it" counts nothing, and "5 of the rows" does.
_MASS = regex(r"\s+(?:it|this|that)\b")
# A number with its unit written on to it: "20mg".
_MEASURE = regex(r"\d+(?:[.,]\d+)?(\D+)")
_TOUCHING = regex(r"[\s(#№]*")
_LINKED = regex(r"[\s(#№:=.,&]*")
# What stands behind a number and is no unit of it.
_NO_UNITS = FUNCTION_WORDS | LEADS | OFFSETS.keys() | frozenset(WEEKDAYS) | {""}
_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}
# "1,250" and "1.250" are a thousand to some and one and a quarter to others; "0,250" and "1,250,000" have one reading.
_AMBIGUOUS = regex(r"[1-9]\d{0,2}[.,]\d{3}|0\d+(?:[.,]\d+)?")
_MAGNITUDES = {
    "k": 1_000,
    "K": 1_000,
    "thousand": 1_000,
    "grand": 1_000,
    "hundred": 100,
    "dozen": 12,
    "million": 10**6,
    "billion": 10**9,
}
# A digit, an apostrophe or a group of three digits beside a number makes another number of the two: "1 234", "1'234".
_MORE_BEHIND = regex(
    r"['\u2019\u02bc_]\w|\s?[.,]\d|[\s\u00a0\u202f]\d{3}(?!\d)|\s(?:and\s)?\d+\s(?:hundred|thousand|million)"
)
_MORE_BEFORE = regex(
    r"(?:\d['\u2019\u02bc_]|(?:^|\s)(?:[^\w\s]|\d)*(?<!\d)\d{1,3}[\s\u00a0\u202f]|(?:hundred|thousand|million|billion)\s(?:and\s)?|\bthan\s)$"
)
_MORE_CHARS_MAX = 16
# What is taken of a number is not the number: "half of 50".
_PART_OF = regex(
    r"(?:%|\b(?:percent|half|third|quarter|fifth|tenth|double|twice|triple))\s+(?:of\s+)?(?:the\s+)?[$€£¥]?\s?$",
    re.IGNORECASE,
)
_PART_CHARS_MAX = 24
_TENS = regex(r"(?:\w+ty|hundred|thousand|million|billion|dozen)$")
_CONNECTORS = frozenset({"of", "de", "la", "le", "du", "von", "van", "&", "the", "del", "di", "da"})
_SENTENCE_END = regex(r"[.!?:\n]")
IDENTIFIER = regex(r".*[\d_@/\\#+=].*|.*\w[.:-]\w.*|[a-z]+[A-Z].*", re.DOTALL)


class Token(Record):
    """One word as written, with its place, and whether a sentence or clause begins with it."""

    text: str
    start: int
    end: int
    opens: bool


class NumberSaid(Record):
    """One number of the words: its unit if one stands there, the stems just before it, and that of what it is called."""

    start: int
    end: int
    unit: str
    percent: bool
    mentions: tuple[str, ...]
    caller: str = ""
    is_part: bool = False
    # Whether the words say it in another unit: "two weeks" for 14 days.
    is_converted: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The stems of what the number is called: the thing that it numbers, and what it counts or measures.

        A measure numbers nothing: "a row in 5 minutes", "row 5 hours from now".
        """
        if self.unit in UNITS:
            return frozenset({stem(self.unit)})
        unit = "" if self.unit.lower() in _NO_UNITS else stem(self.unit)
        return frozenset({self.caller, unit}) - {""}


def sentence_span(tokens: Sequence[Token], place: int) -> tuple[int, int]:
    """The place of the first word of a word's sentence, and that behind its last."""
    first, last = place, place + 1
    while first > 0 and not tokens[first].opens:
        first -= 1
    while last < len(tokens) and not tokens[last].opens:
        last += 1
    return first, last


def sentence_of(tokens: Sequence[Token], place: int) -> tuple[int, int]:
    """From where to where the sentence of a word goes."""
    first, last = sentence_span(tokens, place)
    return tokens[first].start, tokens[last].start if last < len(tokens) else tokens[-1].end + 1


def take_quotes(own: str, strings: dict[str, tuple[int, int]]) -> str:
    """Note each quotation as a whole and blank it out of the rest."""
    for found in QUOTATION.finditer(own):
        inside = next(part for part in found.groups() if part is not None)
        if len(inside) <= QUOTE_CHARS_MAX and _SPELLED.search(inside):
            strings.setdefault(inside, (found.start() + 1, found.end() - 1))
            # American style puts the sentence's comma inside.
            if (trimmed := inside.rstrip(".,;")) and trimmed.lower() not in FUNCTION_WORDS:
                strings.setdefault(trimmed, (found.start() + 1, found.start() + 1 + len(trimmed)))
    return QUOTATION.sub(lambda found: " " * len(found.group()), own)


def take_references(bare: str, strings: dict[str, tuple[int, int]]) -> str:
    """Note each address, link and account number as a whole and blank it out of the rest."""
    parts: list[str] = []
    last = 0
    for found in references_in(bare):
        before = bare[max(found.start - 1, 0) : found.start]
        if before and not before.isspace() and before not in _OPENING:
            continue  # The tail of a longer atom, such as the file of a path.
        parts += [bare[last : found.start], " " * (found.end - found.start)]
        last = found.end
        strings.setdefault(found.text, (found.start, found.end))
        strings.setdefault(found.compact, (found.start, found.end))
    return "".join((*parts, bare[last:]))


def tokens_of(bare: str) -> tuple[Token, ...]:
    """The words of a text without the signs around them, in order."""
    tokens: list[Token] = []
    last = 0
    for found in _TOKEN.finditer(bare):
        text = found.group()
        lead = len(text) - len(text.lstrip(_LEADING))
        text = text.strip(_LEADING).rstrip(_TRAILING)
        text = text if text.lower().replace("\u2019", "'") in _CONTRACTED else _POSSESSIVE.sub("", text)
        if not _SPELLED.search(text):
            continue
        start = found.start() + lead
        gap = bare[last:start]
        is_numbered = bool(tokens) and gap == ". " and tokens[-1].text.lower() in _NUMBERING and _DIGIT.search(text)
        opens = not tokens or (_SENTENCE_END.search(gap) is not None and not is_numbered)
        tokens.append(Token(text, start, start + len(text), opens))
        last = start + len(text)
    return tuple(tokens)


def take_atoms(bare: str, tokens: tuple[Token, ...], moments: Moments, strings: dict[str, tuple[int, int]]) -> set[str]:
    """Note every atom and every capitalised phrase; give back those that are names rather than plain words."""
    names: set[str] = set()
    taken = _places(bare, moments)
    run: list[Token] = []
    for place, token in enumerate(tokens):
        beside = [one.text for one in tokens[max(place - 1, 0) : place + 2] if one is not token]
        is_sum = token.text in CODES or (token.text.isdecimal() and any(one.lower() in CURRENCIES for one in beside))
        if is_sum and any(one[:1].isdecimal() or one.lower() in CURRENCIES for one in beside):
            _close(run, bare, strings, names)  # "Kim 40 EUR" is no name.
            continue
        if taken[token.start]:  # A part of a date is no value.
            _close(run, bare, strings, names)
            continue
        is_identifier = IDENTIFIER.fullmatch(token.text) is not None
        is_number = token.text.replace(".", "", 1).replace(",", "").lstrip("$€£¥#").isdecimal() or (
            (measure := _MEASURE.fullmatch(token.text)) is not None and measure[1] in UNITS
        )
        if is_identifier and not is_number:
            strings.setdefault(token.text, (token.start, token.end))
            strings.setdefault(token.text.lstrip("#@"), (token.start, token.end))
            names |= {token.text, token.text.lstrip("#@")}
        capital = token.text[:1].isupper()
        # A number behind an identifier is one of its own: "AN-B 20 mg".
        is_linked = _links(token) and not (run and token.text.isdecimal() and IDENTIFIER.fullmatch(run[-1].text))
        if run and not (_touch(run[-1], token, bare) and not token.opens and (capital or is_linked)):
            _close(run, bare, strings, names)
        if capital or (run and is_linked):
            run.append(token)
        elif not is_number and not is_identifier and token.text.lower() not in FUNCTION_WORDS:
            strings.setdefault(token.text, (token.start, token.end))
    _close(run, bare, strings, names)
    return names


def _links(token: Token) -> bool:
    return token.text in _CONNECTORS or token.text.isdecimal()


def _touch(left: Token, right: Token, bare: str) -> bool:
    return bare[left.end : right.start] in (" ", ". ")


def _close(run: list[Token], bare: str, strings: dict[str, tuple[int, int]], names: set[str]) -> None:
    """A run of capitalised words binds as a whole; the word that opens a sentence may be left off."""
    while run and run[-1].text in _CONNECTORS:
        run.pop()
    forms = [run[:]]
    if len(run) > 1 and run[0].opens:
        forms.append(run[1:])
    for form in forms:
        while form and _links(form[0]):
            form = form[1:]
        if form and len(form) <= NAME_WORDS_MAX and not all(token.text.lower() in FUNCTION_WORDS for token in form):
            phrase = bare[form[0].start : form[-1].end]
            strings.setdefault(phrase, (form[0].start, form[-1].end))
            # The word that opens a sentence is mostly no part of the name behind it.
            if not form[0].opens:
                names.add(phrase)
    run.clear()


def numbers_of(
    bare: str, tokens: tuple[Token, ...], moments: Moments, verbs: frozenset[str] = frozenset()
) -> dict[str, tuple[NumberSaid, ...]]:
    """The numbers of a text by their size; those of dates and times are none."""
    found: dict[str, list[NumberSaid]] = {}
    taken = _places(bare, moments)
    for match in _NUMBER.finditer(bare):
        start, end = match.start("num"), match.end("num")
        if taken[start] or _is_part_of_longer(bare, start, end, taken):
            continue
        if (number := _decimal(match["num"])) is None:
            continue
        unit = _CURRENCIES.get(match["cur"] or match["unit"] or "") or (match["unit"] or "")
        if (size := match["unit"] or "") in _MAGNITUDES:
            number, unit, end = number * _MAGNITUDES[size], _CURRENCIES.get(match["cur"] or "", ""), match.end("unit")
            if _MORE_BEHIND.match(bare, end):
                continue
        unit = "" if unit == "of" and _MASS.match(bare, match.end("unit")) else unit
        if unit in UNITS and (unit[0] == "°" or end == match.start("unit")):
            end = match.end("unit")
        before = tuple(_before(tokens, start)) + (("#",) if bare[start - 1 : start] == "#" else ())
        caller = "" if unit.lower() in CURRENCIES else caller_of(bare, tokens, (start, end), verbs)
        is_part = _PART_OF.search(bare, max(start - _PART_CHARS_MAX, 0), start) is not None
        said = NumberSaid(start, end, unit, match["pct"] is not None, before, caller, is_part)
        found.setdefault(number_key(number), []).append(said)
        _convert(number, said, found)
    spoken = list(SPOKEN.finditer(bare))
    for match in spoken:
        number = spoken_count(match[1])
        said = NumberSaid(match.start(), match.end(), match[2], percent=False, mentions=())
        found.setdefault(number_key(number), []).append(said)
        _convert(number, said, found)
    taken_words = {match.start() for match in spoken}
    for match in re.finditer(r"(?<!\w)#(\d+)\b", bare):
        caller = caller_of(bare, tokens, match.span(1), verbs)
        said = NumberSaid(match.start(1), match.end(1), "", percent=False, mentions=("#",), caller=caller)
        found.setdefault(match[1], []).append(said)
    lowered = ["", *(token.text.lower() for token in tokens), ""]
    for place, token in enumerate(tokens):
        is_longer = lowered[place + 2] in _MAGNITUDES or _TENS.match(lowered[place]) is not None
        if (
            token.text.lower() in COUNTS
            and token.start not in taken_words
            and not is_longer
            and lowered[place] != "than"
        ):
            said = NumberSaid(token.start, token.end, "", percent=False, mentions=())
            found.setdefault(str(COUNTS[token.text.lower()]), []).append(said)
    return {key: tuple(said) for key, said in found.items()}


def _convert(number: Decimal, said: NumberSaid, found: dict[str, list[NumberSaid]]) -> None:
    """Note a measure in all other units in which it is exact; it is called by nothing but those."""
    for size, unit in in_other_units(number, said.unit) if not said.percent else ():
        if stem(unit) != stem(said.unit):
            made = replace(said, unit=unit, caller="", mentions=(), is_converted=True)
            found.setdefault(number_key(size), []).append(made)


def _is_part_of_longer(bare: str, start: int, end: int, taken: bytearray) -> bool:
    """Whether what touches a number makes another one of it; a date beside it does not."""
    if _MORE_BEHIND.match(bare, end) and not taken[min(end + 1, len(bare))]:
        return True
    found = _MORE_BEFORE.search(bare[max(start - _MORE_CHARS_MAX, 0) : start].rstrip("$€£¥"))
    return found is not None and not taken[max(start - 2, 0)]


def caller_of(bare: str, tokens: tuple[Token, ...], span: tuple[int, int], verbs: frozenset[str]) -> str:
    """The stem of the noun that a number is given to: "patient 4711", "the event with the id 13", "files 13 and 14"."""
    end = span[0]
    place = last = bisect_right(tokens, end, key=lambda token: token.end) - 1
    while place >= 0:
        if last - place > _LINKS_MAX:
            return UNCALLED
        token, gap = tokens[place], bare[tokens[place].end : end]
        word, end = token.text.lower(), token.start
        is_link = (
            _is_figure(token) or word in _BETWEEN or (word in _LISTING and place > 0 and _is_figure(tokens[place - 1]))
        )
        if (_LINKED if is_link else _TOUCHING).fullmatch(gap) is None:
            return ""
        if word in _LISTING and _FURTHER.match(bare, span[1]):
            return ""
        if not is_link:
            is_noun = word.isalpha() and word not in FUNCTION_WORDS and token.text not in CODES
            return stem(word) if is_noun and _calls(tokens, place, bare, span, verbs) else ""
        place -= 1
    return ""


def _calls(tokens: tuple[Token, ...], place: int, bare: str, span: tuple[int, int], verbs: frozenset[str]) -> bool:
    """Whether a word before a number is what the number is given to: no verb that orders, and no person who gets it."""
    token, before = tokens[place], tokens[place - 1] if place else None
    if before is None or token.opens:
        # "Room 12 is free" opens its sentence with a thing, "Pay 12" with a verb.
        return bare[span[1] :].split(None, 1)[:1] in (["is"], ["has"], ["was"], ["will"])
    lead = before.text.lower()
    if token.text[0].isupper():
        return bare[span[0] : span[1]].isdecimal() and (before.opens or not before.text[0].isupper())
    if lead == "to":
        return stem(token.text) not in verbs or place < 2 or tokens[place - 2].text.lower() not in _WISHING
    return lead not in LEADS or (lead in _LISTING and stem(token.text) not in verbs)


def _is_figure(token: Token) -> bool:
    return token.text.lstrip("#").isdecimal()


def _places(text: str, moments: Moments) -> bytearray:
    """Marks every place that belongs to a date or a time."""
    marked = bytearray(len(text) + 1)
    for start, end in moments.spans:
        marked[start:end] = b"\x01" * (end - start)
    return marked


def _before(tokens: tuple[Token, ...], start: int) -> list[str]:
    last = bisect_right(tokens, start, key=lambda token: token.end)
    return [stem(token.text) for token in tokens[max(last - _MENTION_WORDS_MAX, 0) : last]]


def _decimal(text: str) -> Decimal | None:
    """The number that a text stands for; none where its separator may part thousands or a fraction."""
    if _AMBIGUOUS.fullmatch(text):
        return None
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d+,\d{1,2}|0,\d+", text):
        return Decimal(text.replace(".", "").replace(",", "."))
    return Decimal(text.replace(",", ""))
