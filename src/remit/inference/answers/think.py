"""Thinking aloud: `<think>...</think>` at the beginning of a text is what a model thought, not what it says.

Rule 1: only the beginning counts. Once something was said, a tag is text like any other.
Rule 2: pieces may be cut anywhere; no more is held back than what may still become a tag, or the spaces before one.
Rule 3: a thought within a thought ends with its own tag; a thought that never ends is all there is.
Rule 4: the spaces around a thought are dropped.
Rule 5: the pieces, joined, are what the whole text comes to, however it was cut.
"""

from typing import NamedTuple

from remit.core.regex import regex

OPENS = "<think>"
CLOSES = "</think>"

# As many spaces before a tag as are waited out; a text that begins with more is only a text.
SPACES_MAX = 256

_TAG = regex(rf"{OPENS}|{CLOSES}")
_SPACES = regex(r"\s*")


class SaidAndThought(NamedTuple):
    """What was said and what was thought."""

    text: str = ""
    thought: str = ""


class ThinkFilter:
    """Takes a text in pieces, and tells of each what is said and what is thought."""

    __slots__ = ("_depth", "_has_spoken", "_has_thought", "_held")

    def __init__(self) -> None:
        self._held = ""
        self._depth = 0
        self._has_thought = False
        self._has_spoken = False

    def take(self, piece: str) -> SaidAndThought:
        """What is known by now, and was not told before."""
        if self._has_spoken:
            return SaidAndThought(piece)
        text, self._held = self._held + piece, ""
        return self._read(text)

    def end(self) -> SaidAndThought:
        """What was held back, now that no more comes."""
        held, self._held = self._held, ""
        if self._depth:
            return SaidAndThought("", held)
        return SaidAndThought(held[_behind_spaces(held, 0) :] if self._has_thought else held)

    def _read(self, text: str) -> SaidAndThought:
        thoughts: list[str] = []
        at = 0
        while True:
            if not self._depth:
                begun = _behind_spaces(text, at)
                if begun - at > SPACES_MAX or not text.startswith(OPENS, begun):
                    return SaidAndThought(self._speak(text, at, begun), "".join(thoughts))
                at, self._depth, self._has_thought = begun + len(OPENS), 1, True
            tag = _TAG.search(text, at)
            if tag is None:
                kept = len(text) - _tag_begun(text[max(at, len(text) - len(CLOSES)) :])
                self._held = text[kept:]
                return SaidAndThought("", "".join([*thoughts, text[at:kept]]))
            self._depth += 1 if tag.group() == OPENS else -1
            # The tags of a thought within a thought are part of the outer one.
            thoughts.append(text[at : tag.end() if self._depth else tag.start()])
            at = tag.end()

    def _speak(self, text: str, at: int, begun: int) -> str:
        """Say the text from here on, or hold it back while a tag may still come of it."""
        if begun - at <= SPACES_MAX and OPENS.startswith(text[begun : begun + len(OPENS)]):
            self._held = text[at:]
            return ""
        self._has_spoken = True
        return text[begun:] if self._has_thought else text[at:]


def _behind_spaces(text: str, at: int) -> int:
    spaces = _SPACES.match(text, at)
    assert spaces is not None, "any text begins with no space or more"
    return spaces.end()


def _tag_begun(text: str) -> int:
    """How many of the last characters may be the beginning of a tag."""
    tails = (text[start:] for start in range(len(text)))
    return next((len(tail) for tail in tails if OPENS.startswith(tail) or CLOSES.startswith(tail)), 0)
