"""A veil over what is streamed: those who listen hear no secret, and words as soon as they cannot be a part of one.

Rule 1: a word is passed on while it is too short to be a secret, and then held until it is whole and was looked at.
Rule 2: what stands behind a telling name, and a private key that has begun, is held until it is whole.
"""

import re
from collections.abc import Callable

from remit.core.regex import regex
from remit.inference.engine import StreamChunk, StreamHandler

# Of a longer word no letter is passed on until it is whole: less than this tells nothing of a key.
WORD_PASSED_CHARS_MAX = 7
# What is held longer than this is no word, and no key.
HELD_CHARS_MAX = 20_000

_TELLING = regex(
    r"(?:passw\w{0,8}|pwd|passphrase|key|secret|token|credential\w?|bearer|basic|ssws|authorization|cookie)[^\s\w]{0,4}\s{1,3}"
    r"(?:(?:is|was|ist|lautet|=|:|=>|:=|bearer|basic|token)\s{1,3})?$",
    re.IGNORECASE,
)
_BEGUN = regex(r"-----BEGIN (?!.{0,20000}-----END)", re.DOTALL)
# So much before the last word is looked at for a telling name.
_BEFORE_CHARS = 64


class Veil:
    """Passes the pieces of one answer on without its secrets."""

    __slots__ = ("_handler", "_said", "_thought")

    def __init__(self, handler: StreamHandler, seal: Callable[[str], str]) -> None:
        self._handler = handler
        self._said = _Held(seal)
        self._thought = _Held(seal)

    def send(self, chunk: StreamChunk) -> None:
        """Take a piece, and pass on what may be heard."""
        self._pass(StreamChunk(self._said.take(chunk.text), self._thought.take(chunk.reasoning)))

    def flush(self) -> None:
        """Pass on what is left: the answer is whole."""
        self._pass(StreamChunk(self._said.rest(), self._thought.rest()))

    def _pass(self, chunk: StreamChunk) -> None:
        if chunk.text or chunk.reasoning:
            self._handler(chunk)


class _Held:
    """What was said since the last word that was whole, and how much of it was passed on."""

    __slots__ = ("_passed", "_seal", "_text")

    def __init__(self, seal: Callable[[str], str]) -> None:
        self._seal = seal
        self._text = ""
        self._passed = 0

    def take(self, text: str) -> str:
        if not text:
            return ""
        self._text += text
        whole = _whole(self._text)
        shown = self._sealed(whole)
        # Of a short word behind no telling name the beginning may be heard.
        if len(self._text) <= WORD_PASSED_CHARS_MAX and _last_word(self._text) == 0:
            shown += self._text[self._passed :]
            self._passed = len(self._text)
        return shown

    def rest(self) -> str:
        return self._sealed(len(self._text))

    def _sealed(self, whole: int) -> str:
        """What is whole, without its secrets and without what was passed on already."""
        ready, self._text = self._text[:whole], self._text[whole:]
        passed, self._passed = ready[: self._passed], max(self._passed - whole, 0)
        sealed = self._seal(ready)
        common = next(
            (at for at, (one, other) in enumerate(zip(sealed, passed, strict=False)) if one != other), len(passed)
        )
        return sealed[common:]


def _whole(text: str) -> int:
    """Up to which character a text is whole: what follows may be a part of a secret."""
    if len(text) > HELD_CHARS_MAX:
        return len(text)
    whole = _last_word(text)
    before = max(whole - _BEFORE_CHARS, 0)
    if (telling := _TELLING.search(text[before:whole])) is not None:
        whole = _last_word(text[: before + telling.start()])
    if (begun := _BEGUN.search(text)) is not None:
        whole = min(whole, begun.start())
    return whole


def _last_word(text: str) -> int:
    """Where the last word of a text begins."""
    return max(text.rfind(blank) for blank in " \n\t\r") + 1
