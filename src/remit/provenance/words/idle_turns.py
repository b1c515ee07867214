"""Idle turns: what stands in the user's words and says nothing of what is to be done: marks of lists, emphasis, politeness.

Rule 1: the signs of emphasis around words are peeled off, and the words inside are read like any others.
Rule 2: a mark that numbers a line is no value, "as well as" is an "and", and values in lines of their own are a list.
Rule 3: a turn of phrase is idle as a whole and as it stands here; a part of one is read word by word.
Rule 4: within quotation marks nothing is idle. What is idle is blanked out, so that places still count from the start.
"""

import re

from remit.core.regex import regex

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
_FRIENDLY = r"(?:[\U0001f600-\U0001f604\U0001f60a\U0001f642\U0001f64f\U0001f44b\u263a]\ufe0f?|[:;]-?\))(?=[\s:;()\-\U0001f600-\U0001f64f\ufe0f]*$)"
_IDLE = regex(f"{_MARK}|{_SEQUENCE}|{_GREETING}|{_POLITE}|{_FRIENDLY}", re.IGNORECASE | re.MULTILINE)
_AS_WELL = regex(r"\bas well as\b")
_AND = "and       "
# Lines of one value each, behind a colon: one list.
_LINES = regex(r":[ \t]*((?:\n[ \t]*(?:[-*\u2022][ \t]+)?(?=\S*[\d@/])[^\s,;:]+[ \t]*)+)(?=\n|\Z)")
_BREAK = regex(r"\n[ \t]*(?:[-*\u2022][ \t]+)?")


def without_idle(own: str, bare: str) -> tuple[str, str]:
    """The own words, and the same with the quotations blanked out, without what is idle."""
    spans = [found.span() for found in _IDLE.finditer(bare)]
    for found in _EMPHASIS.finditer(bare):
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
