"""Blocks: which parts of a prompt are the user's own words, and which were pasted in and are data.

Rule 1: fences, quoted mail, tagged blocks, structured data and long passages after a colon are data.
Rule 2: data is blanked out and not cut out, so that places in the rest still count from the prompt's start.
Rule 3: in doubt a block is data: the gate then asks, and asking is the cheaper mistake.
"""

import re

# A passage of this length after a colon is a text that somebody brought along, not a sentence they dictate.
PASSAGE_CHARS_MIN = 400
# Longer than any name or title: a quotation of this length is a text within the text.
QUOTE_CHARS_MAX = 200

_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED_LINES = re.compile(r"^[ \t]*(?:>|\|).*$", re.MULTILINE)
_TAG = re.compile(r"<([A-Za-z][\w-]{0,40})(?:\s[^<>]{0,200})?>")
_MAIL = re.compile(
    r"^[ \t]*(?:-{2,}[ \t]*(?:original|forwarded)[ \w]*-{2,}|begin forwarded message:|on\b[^\n]{0,200}\bwrote:)",
    re.IGNORECASE | re.MULTILINE,
)
# Two or more lines of the form "Name: value", as letters and mails begin.
_HEADERS = re.compile(r"(?:^[A-Z][\w-]{0,30}:[ \t]+\S.*(?:\n|\Z)){2,}", re.MULTILINE)
_STRUCTURED = re.compile(r"^[ \t]*[\[{][^\n]*(?:\n|\Z)(?:.*\n)*?(?:[ \t]*[\]}][ \t,]*(?:\n|\Z)|\Z)", re.MULTILINE)
_AFTER_COLON = re.compile(r":[ \t]*\n+(?=\S|[ \t])")
_ITEM = re.compile(r"[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]")
_VISIBLE = re.compile(r"\S")


def own_words(prompt: str) -> str:
    """The prompt with everything that was pasted in blanked out."""
    prompt = _FENCE.sub(lambda found: _blank(found.group()), prompt)
    prompt = _without_tagged(prompt)
    for pattern in (_QUOTED_LINES, _STRUCTURED):
        prompt = pattern.sub(lambda found: _blank(found.group()), prompt)
    for pattern in (_MAIL, _HEADERS):
        if found := pattern.search(prompt):
            prompt = prompt[: found.start()] + _blank(prompt[found.start() :])
    return _without_passages(prompt)


def _without_tagged(prompt: str) -> str:
    """Blank out what stands between a tag and its end; a tag that never ends is a word like any other."""
    parts: list[str] = []
    last = 0
    endless: set[str] = set()
    for found in _TAG.finditer(prompt):
        if found.start() < last or found[1] in endless:
            continue
        end = prompt.find(f"</{found[1]}", found.end())
        if end < 0:
            endless.add(found[1])
            continue
        parts += [prompt[last : found.start()], _blank(prompt[found.start() : end])]
        last = end
    return "".join((*parts, prompt[last:]))


def _without_passages(prompt: str) -> str:
    """A long passage after a colon is data to the prompt's end, unless it is a list of things to do."""
    for found in _AFTER_COLON.finditer(prompt):
        rest = prompt[found.end() :]
        if len(rest.strip()) >= PASSAGE_CHARS_MIN and not _ITEM.match(rest):
            return prompt[: found.end()] + _blank(rest)
    return prompt


def _blank(text: str) -> str:
    return _VISIBLE.sub(" ", text)
