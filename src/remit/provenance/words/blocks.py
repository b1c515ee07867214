"""Blocks: which parts of a prompt are the user's own words, and which were pasted in and are data.

Rule 1: fences, triple quotes, passages between rules, quoted mail, tagged blocks, structured data and long passages
        after a colon are data.
        So is what follows "translate", "summarise", "the following" and a colon, and what a person says or said.
        What no tool changes anything with and that points at "this" or "the following" is to be worked on: all that comes
        behind it in the message is data, across full stops and paragraphs.
Rule 2: data is blanked out and not cut out, so that places in the rest still count from the prompt's start.
Rule 3: in doubt a block is data: the gate then asks, and asking is the cheaper mistake.
Rule 4: the writer of the data may have written marks into it. So a block reaches from its first mark to the last one in
        the message, and an unclosed one to the message's end.
Rule 5: each message is looked at alone: what was pasted into one says nothing about the next.
"""

import re
from collections.abc import Iterator, Set

from remit.core.regex import regex
from remit.provenance.words.vocabulary import FUNCTION_WORDS, HAVING, LEADS, MODALS, stem

# A passage of this length after a colon is a text that the user brought along, not a sentence they dictate.
PASSAGE_CHARS_MIN = 400
# Longer than any name or title: a quotation of this length is a text within the text.
QUOTE_CHARS_MAX = 200

_FENCE = regex(r"`{3,}|^[ \t]*~{3,}", re.MULTILINE)
_TRIPLE = regex(r"\"{3,}|'{3,}")
# A line of nothing but one sign, as people draw it around what they paste.
_RULE = regex(r"^[ \t]*([-*=_#+])\1{2,}[ \t]*$", re.MULTILINE)
_QUOTED_LINES = regex(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_TAG = regex(r"<([A-Za-z][\w-]{0,40})(?:\s[^<>]{0,200})?>")
_TAG_END = regex(r"</([A-Za-z][\w-]{0,40})")
_MAIL = regex(
    r"^[ \t]*(?:-{2,}[ \t]*(?:original|forwarded)[ \w]*-{2,}|(?:begin )?forwarded (?:message|mail)\b|on\b[^\n]{0,200}\bwrote:)",
    re.IGNORECASE | re.MULTILINE,
)
# Two or more lines of the form "Name: value", as letters and mails begin.
_HEADERS = regex(r"(?:^[A-Z][\w-]{0,30}:[ \t]+\S.*(?:\n|\Z)){2,}", re.MULTILINE)
_STRUCTURED = regex(r"^[ \t]*[\[{][^\n]*(?:\n|\Z)(?:.*\n)*?(?:[ \t]*[\]}][ \t,]*(?:\n|\Z)|.*\Z)", re.MULTILINE)
_AFTER_COLON = regex(r":[ \t]*\n+(?=\S|[ \t])")
# What is to be worked on, or what a person said, stands behind these words.
_GIVEN = regex(
    r"\b(?:translat\w*|summari[sz]\w*|proofread\w*|rephras\w*|paraphras\w*|the following|quot(?:e|es|ed|ing)|past(?:e|ed)"
    r"|says|said|writes|wrote|written|reads|states|stated)\b[^.!?:\n]*:",
    re.IGNORECASE,
)
# The verb stays: what it takes back or reports is not understood.
_TOLD = regex(r"\b(?:says|said|writes|wrote)\b(?![^.!?\n]*:)([,;\s\u2013\u2014-][^.!?\n]*)", re.IGNORECASE)
_ACCORDING = regex(r"\baccording( to\b[^,.!?\n]{0,200},[^.!?\n]*)", re.IGNORECASE)
# Who says all of a sentence may stand behind it: "delete it, said Ann".
_SPOKEN = regex(
    r",[\s\"\u201d']*(?:(?:said|says|wrote|writes)\b[^,.!?\n]{1,60}|[A-Z]\w*(?: [A-Z]\w*)? (?:said|says|wrote|writes))[.!?\s]*$"
    r"|\s(?:said|says|wrote|writes) [A-Z]\w*(?: [A-Z]\w*)?[.!?\s]*$"
)
_SENTENCE = regex(r"[^.!?\n]+(?:[.!?](?=\S)[^.!?\n]+)*[.!?\n]*")
_POINTING = regex(
    r"\b(?:this|these|the (?:following|next)|(?:what|as) follows|below|beneath|underneath|what (?:i|we) (?:got|received))\b",
    re.IGNORECASE,
)
# What points at a text that is not there yet, whatever is said of it; "this order 17" points at something else.
_AHEAD = regex(r"\b(?:following|follows|below|beneath|underneath)\b", re.IGNORECASE)
_NAMED = regex(r"[\d\"'@#/\u201c\u2018]|\s[A-Z]")
_NUMBERED = regex(r"[\d\"#@/\u201c]")
_ASKED = regex(r"\?\s*$")
_REQUESTING = LEADS | frozenset(
    ["i", "want", "need", "like", "would", "you", "help", "me", "could", "kindly", "hi", "hello", "hey", "let's"]
)
# What a letter ends with: what the user says of it stands behind.
_SIGNED = regex(
    r"\b(?:(?:kind|best|warm) regards|sincerely|yours truly|best wishes)\b,?\s*+\w*+[.,\s-]*+(?=\w+\W+\w+\W+\w)",
    re.IGNORECASE,
)
# A line that is nothing but a verb and what it falls on, where that has no name.
_WORKING = regex(r"\s*(?:please )?(\w+) (?:the|all|any) [a-z ]++[.:]?[ \t]*+\n++", re.IGNORECASE)
_ITEM = regex(r"[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]")
# A list of values alone.
_VALUE = r"(?:[ \t]*\n[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t])?\s*(?=[^\s,;]*[\d@/])[^\s,;]*[^\s,;.!]"
_VALUES = regex(rf"{_VALUE}(?:(?:\s*[,;]|\s+and\b|(?=\s*\n)){_VALUE})*+[ \t]*(?:[.!](?=\s|$)|\n|\Z)")
_DOING = frozenset({"please", "pls", "plz", "kindly", "now", "then", "so", "do"})
# The sign that is left of data behind words, and words that announce none.
BLOCK = "\u25a0"
_SAYING = regex(r"\w[^:\w]*\Z")
# What announces a list is shorter.
_BEFORE_CHARS_MAX = 200
_STOP = regex(r"[.!?\n]")
_VISIBLE = regex(r"\S")
_WORD = regex(r"[A-Za-z'\u2019-]+")
# A fence at the start of a line that says what follows, "```python", opens a block.
_SAYS_WHAT = regex(r"[ \t]*\w")


def own_words(message: str, effects: Set[str] = frozenset(), known: Set[str] = frozenset()) -> str:
    """One message with everything that was pasted in blanked out.

    `effects` are the stems that order an effect of a tool, `known` those that any tool is asked with.
    """
    # The marks are all looked for in the message as it was written: a mark inside of a block must not hide another.
    spans = [*_fenced(message), *_between(message, _TRIPLE), *_ruled(message), *_tagged(message)]
    for pattern in (_QUOTED_LINES, _STRUCTURED):
        spans += [found.span() for found in pattern.finditer(message)]
    own = _blanked(message, spans)
    for pattern in (_MAIL, _HEADERS):
        if found := pattern.search(own):
            own = own[: found.start()] + blanked(own[found.start() :])
    own = _without_pointed_at(message, own, effects, known)
    if (found := _SIGNED.search(own)) is not None:
        own = blanked(own[: found.end()]) + own[found.end() :]
    return _without_passages(message, _without_given(message, own, effects))


def _without_pointed_at(message: str, own: str, effects: Set[str], known: Set[str]) -> str:
    """What follows a sentence that points at a text and orders no effect is data, to the end of the message."""
    for found in _SENTENCE.finditer(own):
        if (_points_ahead(found.group(), effects) or _works_on_text(found.group(), known)) and not _announces_block(
            message, own, found.end()
        ):
            return own[: found.end()] + blanked(own[found.end() :])
    return own


def _works_on_text(sentence: str, known: Set[str]) -> bool:
    """Whether a line tells to work on a text that stands below it, by a verb that no tool has: "Correct the typos"."""
    found = _WORKING.fullmatch(sentence)
    return found is not None and stem(found[1]) not in known and found[1].lower() not in FUNCTION_WORDS | _REQUESTING


def _points_ahead(sentence: str, effects: Set[str]) -> bool:
    pointing = _POINTING.search(sentence)
    if pointing is None or ":" in sentence[pointing.end() :]:
        return False
    words = [word.lower() for word in _WORD.findall(sentence[: pointing.start()])]
    if any(stem(word) in effects for word in words):
        return False
    if _AHEAD.search(pointing.group()) or (_ASKED.search(sentence) and not _NUMBERED.search(sentence)):
        return True
    first = next((place for place, word in enumerate(words) if word not in _REQUESTING), len(words))
    ordering = words[first] if first < len(words) else ""
    if not (MODALS | HAVING).isdisjoint(words[first:]):
        return False
    return ordering not in FUNCTION_WORDS | {""} and _NAMED.search(sentence, pointing.end()) is None


def _without_given(message: str, own: str, effects: Set[str]) -> str:
    """What follows "translate:", "Ann says" and the like is data: to the paragraph's end, or to that of the sentence.

    Not so a list that an order announces: "close the following tickets: 31, 32", "do the following:" and a line for each.
    """
    spans = [found.span(1) for pattern in (_TOLD, _ACCORDING) for found in pattern.finditer(own)]
    for found in _SENTENCE.finditer(own):
        spoken = _SPOKEN.search(found.group())
        if spoken is not None and found.group()[: spoken.start()].strip():
            spans.append(found.span())
    for found in _GIVEN.finditer(own):
        if not _announces_block(message, own, found.end()):
            end = own.find("\n\n", found.end() + 1)
            end = end if end >= 0 else len(own)
            spans.append((_end_of_list(own, found.start(), found.end(), end, effects), end))
    return _blanked(own, spans)


def _end_of_list(own: str, start: int, begin: int, end: int, effects: Set[str]) -> int:
    """Where the list ends that an order announces by "the following"; where it begins, if it is no such list."""
    if not own.startswith("the following", start):
        return begin
    before = [word.lower() for word in _WORD.findall(_STOP.split(own[max(start - _BEFORE_CHARS_MAX, 0) : start])[-1])]
    lines = [_ITEM.sub("", line) for line in own[begin:end].splitlines() if line.strip()]
    if before[-1:] == ["do"] and _DOING.issuperset(before):
        is_list = all(stem((_WORD.findall(line) or [""])[0]) in effects for line in lines)
        return end if is_list else begin
    found = _VALUES.match(own, begin, end)
    return found.end() if found is not None and any(stem(word) in effects for word in before) else begin


def _announces_block(message: str, own: str, end: int) -> bool:
    """Whether a block that is blanked out follows a colon at once: it is then what the colon announces."""
    first = _VISIBLE.search(message, end)
    return first is not None and own[first.start()].isspace()


def _blanked(message: str, spans: list[tuple[int, int]]) -> str:
    parts: list[str] = []
    last = 0
    for start, end in sorted(spans):
        if end > last:
            begin = max(start, last)
            data = blanked(message[begin:end])
            # Data right behind words that do not announce it may answer them: "> not so".
            if data and _SAYING.search(message, last, begin) is not None:
                data = BLOCK + data[1:]
            parts += [message[last:begin], data]
            last = end
    return "".join((*parts, message[last:]))


def _fenced(message: str) -> Iterator[tuple[int, int]]:
    """Between the first fence and the last, or to the message's end where the last one opens a block."""
    for start, end in _between(message, _FENCE):
        line = message[:end].rpartition("\n")[2].lstrip()
        is_open = not line.strip("`~") and _SAYS_WHAT.match(message, end) is not None
        yield start, len(message) if is_open else end


def _between(message: str, mark: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """From the first mark to the last, or to the message's end where there is only one."""
    marks = [found.span() for found in mark.finditer(message)]
    if marks:
        yield marks[0][0], marks[-1][1] if len(marks) > 1 else len(message)


def _ruled(message: str) -> Iterator[tuple[int, int]]:
    """Between the first rule and the last. A single one parts two passages, unless a colon says what stands below it."""
    rules = [found.span() for found in _RULE.finditer(message)]
    if len(rules) > 1:
        yield rules[0][0], rules[-1][1]
    elif rules and message[: rules[0][0]].rstrip().endswith(":"):
        yield rules[0][0], len(message)


def _tagged(message: str) -> Iterator[tuple[int, int]]:
    """What stands between a tag and its last end; a tag that never ends is a word like any other."""
    ends = {found[1].lower(): found.start() for found in _TAG_END.finditer(message)}
    last = 0
    for found in _TAG.finditer(message):
        end = ends.get(found[1].lower(), 0)
        if end > max(found.start(), last):
            yield found.start(), end
            last = end


def _without_passages(message: str, own: str) -> str:
    """A long passage after a colon is data to the message's end, unless it is a list of things to do.

    Its length is that of what was written: a passage is no shorter for the blocks inside of it. Where a block follows
    the colon at once, the block is what the colon announces.
    """
    for found in _AFTER_COLON.finditer(own):
        rest = message[found.end() :]
        is_block = _announces_block(message, own, found.end())
        if len(rest.strip()) >= PASSAGE_CHARS_MIN and not is_block and not _ITEM.match(rest):
            return own[: found.end()] + blanked(own[found.end() :])
    return own


def blanked(text: str) -> str:
    """A text of the same length in which nothing is said."""
    return _VISIBLE.sub(" ", text)
