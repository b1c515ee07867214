"""Words: what the user wrote themselves, cut into the atoms and phrases that may bind a value.

Rule 1: a value is bound by a whole atom (an identifier, number, address, link, path, name), by a quotation, by a
        whole capitalised phrase, or by an unbroken run of words. Never by a part of one of these.
Rule 2: case counts and nothing is folded: a look-alike never matches.
Rule 3: pasted blocks are data. A quotation binds as a whole, and nothing inside it binds.
Rule 4: function words bind nothing; a bare small number binds no identifier unless the words call it one.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from decimal import Decimal

from remit.core.record import Record
from remit.provenance.blocks import QUOTE_CHARS_MAX, own_words
from remit.provenance.kinds import NUMBERS, base_of, number_key
from remit.provenance.moments import Moments, moments_in
from remit.provenance.references import references_in
from remit.provenance.vocabulary import (
    COUNTS,
    DEFINITE,
    FUNCTION_WORDS,
    NARROWING,
    PREPOSITIONS,
    name_stems,
    stem,
)

# A prompt is typed or pasted by a person; a book is an attachment.
PROMPT_CHARS_MAX = 200_000
# Quotations with more words than this are texts: they may be sent, and name nothing.
NAME_WORDS_MAX = 8
# How far the noun after "all" or "the latest" may reach: "all of the other unread messages from".
NOUN_WORDS_MAX = 6
# How many words before a number may call it an identifier: "the event with the id 13".
_MENTION_WORDS_MAX = 3

_QUOTE = re.compile(
    r"\"([^\"\n]{1,2000})\"|“([^”\n]{1,2000})”|«([^»\n]{1,2000})»|\u2018([^\u2019\n]{1,2000})\u2019|`([^`\n]{1,2000})`"
    r"|(?<![\w'])'([^'\n]{1,2000}(?:'\w[^'\n]*)*)'(?!\w)"
)
_TOKEN = re.compile(r"[^\s,;()\[\]{}<>\"“”«»`]+")
_LEADING, _TRAILING = "'\u2018*_¿¡", ".,;:!?'\u2019*…"
_OPENING = "'\u2018*_([<{,;:"
_POSSESSIVE = re.compile(r"(?:'|\u2019)s$")
_NUMBER = re.compile(
    r"(?<![\w.,/:-])(?P<cur>[$€£¥])?\s?(?P<num>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3})+,\d+|\d+(?:\.\d+)?|\d+,\d{1,2})"
    r"(?:\s?(?P<pct>%|percent\b))?(?:\s?(?P<unit>[$€£¥]|[A-Za-z]+))?(?![\w/@]|[.,:-]\w)"
)
_SIGIL = re.compile(r"[#@][\w-]+")
_CALLED = frozenset({"id", "number", "no", "#", "nr"})
_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY"}
_CONNECTORS = frozenset({"of", "de", "la", "le", "du", "von", "van", "&", "the", "del", "di", "da"})
_SENTENCE_END = re.compile(r"[.!?:\n]")
_IDENTIFIER = re.compile(r".*[\d_@/\\#+=].*|.*\w[.:-]\w.*|[a-z]+[A-Z].*", re.DOTALL)
_SPACE = re.compile(r"\s+")


class Token(Record):
    """One word as written, with its place, and whether a sentence or clause begins with it."""

    text: str
    start: int
    end: int
    opens: bool


class NumberSaid(Record):
    """One number of the words: its unit if one stands there, and the stems just before it."""

    start: int
    end: int
    unit: str
    percent: bool
    mentions: tuple[str, ...]


class Words(Record):
    """The user's own words, indexed. `bare` has quotations blanked out, `own` only what was pasted in."""

    prompt: str
    own: str
    bare: str
    strings: dict[str, tuple[int, int]]
    names: frozenset[str]
    numbers: dict[str, tuple[NumberSaid, ...]]
    references: frozenset[str]
    moments: Moments
    tokens: tuple[Token, ...]
    stems: frozenset[str]
    lower: frozenset[str]

    def span_of(self, value: str) -> tuple[int, int] | None:
        """Where the words say this text as a whole, if they do."""
        found = self.strings.get(value)
        if found is not None or not value:
            return found
        if _SIGIL.fullmatch(value):
            return self.strings.get(value[1:])
        scheme, _, host = value.partition("://")
        if scheme in ("https", "http") and host in self.references:
            return self.strings.get(host)
        return self.run_of(value)

    def run_of(self, value: str) -> tuple[int, int] | None:
        """Where the value stands as an unbroken run of at least two whole words that cuts no name in two."""
        parts = value.split(" ")
        if len(parts) < 2 or parts[0].lower() in FUNCTION_WORDS or parts[-1].lower() in FUNCTION_WORDS:
            return None
        start = self.bare.find(value)
        while start >= 0:
            end = start + len(value)
            if _is_whole(self.bare, start, end) and not self._cuts_name(start, end, parts):
                return start, end
            start = self.bare.find(value, start + 1)
        return None

    def _cuts_name(self, start: int, end: int, parts: list[str]) -> bool:
        """Whether a capitalised neighbour belongs to the same name; the word that opens a sentence need not."""
        before, after = self.bare[:start].rsplit(None, 1)[-1:], self.bare[end:].split(None, 1)[:1]
        if parts[-1][:1].isupper() and after and after[0][:1].isupper() and self.bare[end] == " ":
            return True
        if not (parts[0][:1].isupper() and before and before[0][:1].isupper() and self.bare[start - 1] == " "):
            return False
        return not any(token.end == start - 1 and token.opens for token in self.tokens)

    def number_said(self, number: Decimal, kind: str, argument: str) -> tuple[int, int] | None:
        """Where the words give this number, in the unit that the kind demands; a percentage is no amount."""
        wants_percent = base_of(kind) == "percent" or bool(name_stems(argument) & {"percent", "percentag", "rat"})
        unit = kind.partition(":")[2] if base_of(kind) in NUMBERS else ""
        for said in self.numbers.get(number_key(number), ()):
            if said.percent == wants_percent and unit in ("", said.unit):
                return said.start, said.end
        return None

    def identifier_said(self, digits: str, hints: Iterable[str]) -> tuple[int, int] | None:
        """Where the words call this number an identifier: by `id` or a sign nearby, or by a hinted word just before."""
        wanted = set(hints)
        for said in self.numbers.get(digits, ()):
            if wanted.intersection(said.mentions[-1:]) or _CALLED.intersection(said.mentions):
                return said.start, said.end
        return None

    def is_name(self, value: str, hints: Iterable[str] = ()) -> bool:
        """Whether the words use a text as a name: written as one, or a plain word that is addressed."""
        if value in self.names or value.lstrip("#@") in self.names:
            return True
        wanted = set(hints)
        for place, token in enumerate(self.tokens):
            if token.text == value and self._is_addressed(place, wanted):
                return True
        return self.run_of(value) is not None

    def _is_addressed(self, place: int, hints: set[str]) -> bool:
        if self.tokens[place].text[:1].isupper():
            return True
        before = self.tokens[place - 1] if place else None
        near = {
            stem(token.text) for token in self.tokens[max(place - 1, 0) : place + 2] if token is not self.tokens[place]
        }
        return bool(near & hints) or (before is not None and (before.opens or before.text.lower() in PREPOSITIONS))

    def is_narrowed(self, place: int) -> bool:
        """Whether the noun after a place is narrowed: "all files from March" is not all files."""
        for token in self.tokens[place + 1 : place + 1 + NOUN_WORDS_MAX]:
            word = token.text.lower()
            if token.opens:
                return False
            if word in NARROWING:
                return True
            if word in FUNCTION_WORDS and word not in DEFINITE:
                return False
        return False

    def owns(self, text: str) -> bool:
        """Whether a text is wholly the user's: empty, or an unbroken run of what they wrote, quotations included."""
        text = _SPACE.sub(" ", text).strip()
        if not text or text in self.strings:
            return True
        spaced = _SPACE.sub(" ", self.own)
        start = spaced.find(text)
        while start >= 0:
            if _is_whole(spaced, start, start + len(text)):
                return True
            start = spaced.find(text, start + 1)
        return False


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a place begins and ends at the edge of whole words, with no sign of a longer atom around it."""
    before, after = text[start - 1 : start], text[end : end + 2]
    if before and not (before.isspace() or before in "\"'“\u2018«`("):
        return False
    return (
        not after
        or after[0].isspace()
        or (after[0] in ".,;:!?)'\"”\u2019»`" and (len(after) == 1 or not after[1].isalnum()))
    )


def words_of(prompts: Iterable[str]) -> Words:
    """The words of all messages that the user wrote, one after the other."""
    prompt = "\n\n".join(prompts)[:PROMPT_CHARS_MAX]
    own = own_words(prompt)
    strings: dict[str, tuple[int, int]] = {}
    references = set()
    bare = _take_quotes(own, strings)
    for found in references_in(own):
        references |= {found.text, found.compact}
    plain = _take_references(bare, strings)
    names = set(strings)
    moments = moments_in(plain)
    tokens = _tokens(plain)
    names |= _take_atoms(plain, tokens, moments, strings)
    lowered = [token.text.lower() for token in tokens]
    return Words(
        prompt=prompt,
        own=own,
        bare=bare,
        strings=strings,
        names=frozenset(names),
        numbers=_numbers(plain, tokens, moments),
        references=frozenset(references),
        moments=moments,
        tokens=tokens,
        stems=frozenset(stem(part) for word in lowered for part in (word, *word.split("-"))),
        lower=frozenset(part for word in lowered for part in (word, *word.split("-"))),
    )


def _take_quotes(own: str, strings: dict[str, tuple[int, int]]) -> str:
    """Note each quotation as a whole and blank it out of the rest."""
    for found in _QUOTE.finditer(own):
        inside = next(part for part in found.groups() if part is not None)
        if len(inside) <= QUOTE_CHARS_MAX and re.search(r"\w", inside):
            strings.setdefault(inside, (found.start() + 1, found.end() - 1))
            # American style puts the sentence's comma inside.
            if (trimmed := inside.rstrip(".,;")) and trimmed.lower() not in FUNCTION_WORDS:
                strings.setdefault(trimmed, (found.start() + 1, found.start() + 1 + len(trimmed)))
    return _QUOTE.sub(lambda found: " " * len(found.group()), own)


def _take_references(bare: str, strings: dict[str, tuple[int, int]]) -> str:
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


def _tokens(bare: str) -> tuple[Token, ...]:
    tokens: list[Token] = []
    last = 0
    for found in _TOKEN.finditer(bare):
        text = found.group()
        lead = len(text) - len(text.lstrip(_LEADING))
        text = _POSSESSIVE.sub("", text.strip(_LEADING).rstrip(_TRAILING))
        if not re.search(r"\w", text):
            continue
        start = found.start() + lead
        tokens.append(Token(text, start, start + len(text), not tokens or bool(_SENTENCE_END.search(bare[last:start]))))
        last = start + len(text)
    return tuple(tokens)


def _take_atoms(
    bare: str, tokens: tuple[Token, ...], moments: Moments, strings: dict[str, tuple[int, int]]
) -> set[str]:
    """Note every atom and every capitalised phrase; give back those that are names rather than plain words."""
    names: set[str] = set()
    taken = _places(bare, moments)
    run: list[Token] = []
    for token in tokens:
        if taken[token.start]:  # A part of a date is no value.
            _close(run, bare, strings, names)
            continue
        is_identifier = _IDENTIFIER.fullmatch(token.text) is not None
        is_number = token.text.replace(".", "", 1).replace(",", "").lstrip("$€£¥#").isdecimal()
        if is_identifier and not is_number:
            strings.setdefault(token.text, (token.start, token.end))
            strings.setdefault(token.text.lstrip("#@"), (token.start, token.end))
            names |= {token.text, token.text.lstrip("#@")}
        capital = token.text[:1].isupper()
        if run and not (_touch(run[-1], token, bare) and not token.opens and (capital or _links(token))):
            _close(run, bare, strings, names)
        if capital or (run and _links(token)):
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
            if not (len(form) == 1 and form[0].opens):
                names.add(phrase)
    run.clear()


def _numbers(bare: str, tokens: tuple[Token, ...], moments: Moments) -> dict[str, tuple[NumberSaid, ...]]:
    found: dict[str, list[NumberSaid]] = {}
    taken = _places(bare, moments)
    for match in _NUMBER.finditer(bare):
        start, end = match.start("num"), match.end("num")
        if taken[start]:
            continue
        unit = _CURRENCIES.get(match["cur"] or match["unit"] or "") or (match["unit"] or "")
        before = tuple(_before(tokens, start)) + (("#",) if bare[start - 1 : start] == "#" else ())
        said = NumberSaid(start, end, unit, match["pct"] is not None, before)
        found.setdefault(number_key(_decimal(match["num"])), []).append(said)
    for match in re.finditer(r"(?<!\w)#(\d+)\b", bare):
        said = NumberSaid(match.start(1), match.end(1), "", percent=False, mentions=("#",))
        found.setdefault(match[1], []).append(said)
    for token in tokens:
        if token.text.lower() in COUNTS:
            said = NumberSaid(token.start, token.end, "", percent=False, mentions=())
            found.setdefault(str(COUNTS[token.text.lower()]), []).append(said)
    return {key: tuple(said) for key, said in found.items()}


def _places(text: str, moments: Moments) -> bytearray:
    """Marks every place that belongs to a date or a time."""
    marked = bytearray(len(text) + 1)
    for start, end in moments.spans:
        marked[start:end] = b"\x01" * (end - start)
    return marked


def _before(tokens: tuple[Token, ...], start: int) -> list[str]:
    last = bisect_right(tokens, start, key=lambda token: token.end)
    return [stem(token.text) for token in tokens[max(last - _MENTION_WORDS_MAX, 0) : last]]


def _decimal(text: str) -> Decimal:
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d+,\d{1,2}", text):
        return Decimal(text.replace(".", "").replace(",", "."))
    return Decimal(text.replace(",", ""))
