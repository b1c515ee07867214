"""Thinking aloud: `<think>...</think>` at the beginning of a text is what a model thought, not what it says.

Rule 1: only the beginning counts. Once something was said, a tag is text like any other.
Rule 2: pieces may be cut anywhere; no more is held back than what may still become a tag, or the spaces before one.
Rule 3: a thought within a thought ends with its own tag; a thought that never ends is all there is.
Rule 4: the spaces around a thought belong to nobody.
Rule 5: the pieces, joined, are what the whole text comes to, however it was cut.
"""

from typing import NamedTuple

from remit.core.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.record import replace
from remit.inference.engine import Engine, StreamChunk, StreamHandler

OPENS = "<think>"
CLOSES = "</think>"

# As many spaces before a tag as are waited out; a text that begins with more is only a text.
SPACES_MAX = 256


class Heard(NamedTuple):
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

    def take(self, piece: str) -> Heard:
        """What is known by now, and was not told before."""
        if self._has_spoken:
            return Heard(piece)
        self._held += piece
        thoughts: list[str] = []
        while self._held and not self._has_spoken:
            if self._depth:
                before, is_certain = self._think()
                thoughts.append(before)
            else:
                is_certain = self._begin()
            if not is_certain:
                break
        text = ""
        if self._has_spoken:
            text, self._held = self._held, ""
        return Heard(text, "".join(thoughts))

    def end(self) -> Heard:
        """What was held back, now that no more comes."""
        held, self._held = self._held, ""
        if self._depth:
            return Heard("", held)
        return Heard(held.lstrip() if self._has_thought else held)

    def _begin(self) -> bool:
        """Whether it is certain how the text begins; if not, more has to come."""
        begun = self._held.lstrip()
        spaces = len(self._held) - len(begun)
        if begun.startswith(OPENS) and spaces <= SPACES_MAX:
            self._held, self._depth, self._has_thought = begun.removeprefix(OPENS), 1, True
            return True
        if OPENS.startswith(begun) and spaces <= SPACES_MAX:
            return False
        self._has_spoken = True
        if self._has_thought:
            self._held = begun
        return True

    def _think(self) -> tuple[str, bool]:
        """What was thought up to the next tag, and whether there was one."""
        found = [(at, tag) for tag in (OPENS, CLOSES) if (at := self._held.find(tag)) >= 0]
        if not found:
            kept = len(self._held) - _tag_begun(self._held)
            before, self._held = self._held[:kept], self._held[kept:]
            return before, False
        at, tag = min(found)
        before, self._held = self._held[:at], self._held[at + len(tag) :]
        self._depth += 1 if tag == OPENS else -1
        # The tags of a thought within a thought are part of the outer one.
        return before + tag if self._depth else before, True


def split(text: str) -> Heard:
    """What is said and what is thought in a whole text."""
    pieces = ThinkFilter()
    first, last = pieces.take(text), pieces.end()
    return Heard(first.text + last.text, first.thought + last.thought)


class AloudEngine:
    """An engine whose model thinks aloud: what it thinks is heard as reasoning."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def model_info(self) -> ModelInfo:
        """The model behind it."""
        return self._engine.model_info()

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The answer without its thoughts, which stand beside it."""
        pieces = ThinkFilter()

        def hear(chunk: StreamChunk) -> None:
            _tell(pieces.take(chunk.text), chunk.reasoning, on_chunk)

        result = await self._engine.infer(request, hear if on_chunk is not None else None)
        _tell(pieces.end(), "", on_chunk)
        heard = split(result.content)
        return replace(result, content=heard.text, reasoning=result.reasoning + heard.thought)


def _tell(heard: Heard, reasoning: str, on_chunk: StreamHandler | None) -> None:
    thought = reasoning + heard.thought
    if on_chunk is not None and (heard.text or thought):
        on_chunk(StreamChunk(heard.text, thought))


def _tag_begun(text: str) -> int:
    """How many of the last characters may be the beginning of a tag."""
    longest = min(len(text), len(CLOSES) - 1)
    tails = (text[-count:] for count in range(longest, 0, -1))
    return next((len(tail) for tail in tails if OPENS.startswith(tail) or CLOSES.startswith(tail)), 0)
