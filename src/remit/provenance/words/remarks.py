"""Remarks: what tells something beside an order and leaves it as it is: why, how things stand, what was done before it.

Rule 1: a remark or a reason tells how a thing stands, in words of a short list that are no second thought: "It is broken.",
        "because the tap is leaking". Any other may take the order back, or narrow it.
Rule 2: it is made of plain words in small letters, with no choice, noun or verb of the tool.
Rule 3: before an order, what the user has done is one as well: "I checked everything."
Rule 4: in doubt it is none: the gate then asks.
Rule 5: marks of lists, signs of emphasis and a few turns of phrase are idle as a whole and as they stand here, but within
        quotation marks. They are blanked out, so that places still count from the start; a part of one is read word by word.
"""

import re
from collections.abc import Sequence

from remit.core.regex import regex
from remit.provenance.words.tool_words import Lexicon
from remit.provenance.words.vocabulary import TIMES, stem

# A remark of more words may say anything.
REMARK_WORDS_MAX = 10
_BEING = frozenset({"is", "are", "was", "were", "it's"})
_IT = frozenset({"it", "it's", "they", "this", "that"})
_SUBJECTS = _IT | {"i", "we", "he", "she"}
_REASONING = frozenset({"because", "since", "as"})
# What stands in the words of a reason for a thing that it names.
THING = "x"
# What a remark within a sentence begins with.
REMARKING = _REASONING | {"it", "it's", "they"}
_OWNED = frozenset({"the", "my", "our", "his", "her", "their"})
_HEIGHTENING = frozenset({"very", "too", "now", "a", "an", "quite", "really"})
# How a thing may stand that is to be dealt with.
_STATES_SAID = """
    done finished complete completed fixed resolved solved settled broken damaged defective faulty leaking dirty old outdated
    empty unused full ready urgent important duplicate duplicates ill sick lost gone unhappy angry upset overdue due late expired
"""
_STATES = frozenset(_STATES_SAID.split())
# What the user may have done before, and with what.
_DONE = frozenset(
    {"checked", "verified", "reviewed", "inspected", "tested", "discussed", "finished", "looked", "moved", "paid"}
)
_WITH = frozenset({"it", "everything", "them", "twice", "today", "yesterday", "have", "just"})
_EMPHASIS = regex(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]*[^\s*])\1(?![\w*])")
_MARK = r"^[ \t]*(?:\d{1,2}|[a-z])[.)](?=[ \t]+\S)"
_OPENS = r"(?:(?<![^\n])|(?<=[.!?]\s))[ \t]*"
_SEQUENCE = (
    rf"{_OPENS}(?:first|second|third|fourth|fifth|last)(?:ly)?,|{_OPENS}(?:finally|next|then|after that|afterwards),"
)
_GREETING = (
    rf"{_OPENS}(?:(?:hi|hello|hey|dear) (?:there|team|all|everyone|everybody|folks|assistant)"
    r"|good (?:morning|afternoon|evening))(?=[,.!]|\n)"
)
_POLITE = (
    r"\b(?:as soon as (?:possible|you can)|(?:right|straight) away|at your (?:earliest )?convenience|in full|in the system"
    r"|when(?:ever)? you (?:get|have|find) (?:a (?:chance|moment|minute|second)|(?:the )?time)"
    r"|have a (?:nice|good|great|lovely) (?:day|evening|week|weekend))(?=[\s,.;!?)]|$)"
    rf"|{_OPENS}quick (?:one|thing|favou?r|request):"
)
_SMILES = r"\U0001f600-\U0001f604\U0001f60a\U0001f642\U0001f64f\U0001f44b\u263a\ufe0f"
_FRIENDLY = rf"(?<![:;)({_SMILES}])(?<![:;)({_SMILES}][ \t])(?:(?:[{_SMILES}]|[:]-?\))[ \t]?)++$"
_IDLE = regex(f"{_MARK}|{_SEQUENCE}|{_GREETING}|{_POLITE}|{_FRIENDLY}", re.IGNORECASE | re.MULTILINE)
_AS_WELL = regex(r"\bas well as\b")
_AND = "and       "
# Lines of one value each, behind a colon: one list.
_LINES = regex(r":[ \t]*((?:\n[ \t]*(?:[-*\u2022][ \t]+)?(?=\S*[\d@/])[^\s,;:]+[ \t]*)+)(?=\n|\Z)")
_BREAK = regex(r"\n[ \t]*(?:[-*\u2022][ \t]+)?")


def _is_plain(said: Sequence[str], lexicon: Lexicon) -> bool:
    """Whether words hold nothing back: none of those that may, and none of the tool."""
    stems = {stem(word) for word in said}
    return (
        0 < len(said) <= REMARK_WORDS_MAX
        and all(word.replace("'", "").replace("-", "").isalpha() and "n't" not in word for word in said)
        and stems.isdisjoint(lexicon.own | lexicon.chosen)
    )


def is_reason(said: Sequence[str], lexicon: Lexicon) -> bool:
    """Whether the words behind "because" tell how a thing stands, and nothing else: any others may object to the order."""
    return is_remark(said, lexicon) or (said[:1] == [THING] and _is_stated(said[1:]))


def is_lead(said: Sequence[str], lexicon: Lexicon) -> bool:
    """Whether a clause before an order tells why: "since it is broken,"."""
    return said[0] in _REASONING and is_reason(said[1:], lexicon)


def is_remark_within(said: Sequence[str], lexicon: Lexicon, *, is_cut: bool) -> bool:
    """Whether a clause behind an order tells why, or how the thing stands that the order falls on."""
    if said[0] not in _REASONING:
        return is_cut and is_state(said)
    is_led = said[0] == "because" or (len(said) > 1 and said[1] in _SUBJECTS)
    return is_led and is_reason(said[1:], lexicon)


def is_state(said: Sequence[str]) -> bool:
    """Whether words tell how a thing stands that is pointed to: "it is broken", "they are no longer needed"."""
    return bool(said) and said[0] in _IT and _is_stated(said[said[0] != "it's" :])


def _is_stated(said: Sequence[str]) -> bool:
    rest = [word for word in said[1:] if word not in _HEIGHTENING]
    is_known = rest == ["no", "longer", "needed"] or (len(rest) == 1 and rest[0] in _STATES)
    return is_known and said[0] in _BEING


def is_remark(said: Sequence[str], lexicon: Lexicon) -> bool:
    """Whether a sentence tells how a thing stands: "It is broken.", "The tap is leaking."."""
    is_thing = len(said) > 2 and said[0] in _OWNED and _is_plain(said, lexicon)
    return is_state(said) or (is_thing and _is_stated(said[2:]))


def is_context(said: Sequence[str], lexicon: Lexicon) -> bool:
    """Whether a sentence before an order tells how things are or what the user has done: "The customer is unhappy."."""
    if is_remark(said, lexicon):
        return True
    is_own = bool(said) and said[0] in ("i", "we") and _is_plain(said, lexicon)
    return is_own and any(word in _DONE for word in said) and set(said[1:]) <= _DONE | _WITH


def without_idle(own: str, bare: str) -> tuple[str, str]:
    """The own words, and the same with the quotations blanked out, without what is idle."""
    spans = [found.span() for found in _IDLE.finditer(bare)]
    for found in _EMPHASIS.finditer(bare):
        if found[2].lower().strip(".,!") in TIMES:  # Emphasis on how often may mean anything.
            continue
        width = len(found[1])
        spans += [(found.start(), found.start() + width), (found.end() - width, found.end())]
    edits = [(start, end, " " * (end - start)) for start, end in spans]
    edits += [(*found.span(), _AND) for found in _AS_WELL.finditer(bare)]
    for lines in _LINES.finditer(bare):
        breaks = [found.span() for found in _BREAK.finditer(bare, *lines.span(1))]
        edits += [(start, end, ("," if at else " ").ljust(end - start)) for at, (start, end) in enumerate(breaks)]
    edits.sort()
    return (_edited(own, edits), _edited(bare, edits)) if edits else (own, bare)


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    last = 0
    for start, end, put in edits:
        if start >= last:
            parts += [text[last:start], put]
            last = end
    return "".join((*parts, text[last:]))
