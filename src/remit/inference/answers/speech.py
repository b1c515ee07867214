"""Speech: what a model says, gathered piece by piece, with thoughts and calls set apart that it wrote into its text.

Rule 1: a vendor's own API has a field for everything, so its text is only text. Models behind any other server may think
        aloud (think.py) or write their calls (text_calls.py).
Rule 2: the pieces that are told, joined, are the text and the reasoning. A listener never hears a call.
Rule 3: calls that a server tells in its own way win: then all text is words.
"""

from collections.abc import Callable

from remit.core.limits.tools import ToolCall
from remit.core.run.inference import ModelRequest
from remit.inference.answers.text_calls import CallFilter, call_filter
from remit.inference.answers.think import SaidAndThought, ThinkFilter
from remit.inference.engine import StreamChunk


class Speech:
    """Takes what a model says and thinks, and tells of each piece what is heard of it.

    `blotted` takes out of a text what must not be kept.
    """

    __slots__ = ("_blotted", "_calls", "_reasoning", "_text", "_thoughts", "said_bytes", "thought_bytes")

    def __init__(
        self,
        *,
        thoughts: ThinkFilter | None = None,
        calls: CallFilter | None = None,
        blotted: Callable[[str], str] = str,
    ) -> None:
        self._thoughts = thoughts
        self._calls = calls
        self._blotted = blotted
        # Bytes, so that a million pieces of a letter each cost no more than their letters.
        self._text = bytearray()
        self._reasoning = bytearray()
        # As they came: what became of them does not change what they cost.
        self.said_bytes = 0
        self.thought_bytes = 0

    def take(self, text: str, thought: str = "") -> StreamChunk | None:
        """Take in a piece of text and a piece of thought; gives what a listener hears of them, None for nothing."""
        self.said_bytes += len(text.encode())
        self.thought_bytes += len(thought.encode())
        heard = SaidAndThought(text) if self._thoughts is None else self._thoughts.take(text)
        words = heard.text if self._calls is None else self._calls.take(heard.text)
        return self._heard(words, thought + heard.thought)

    def end(self) -> StreamChunk | None:
        """What is heard of what was held back, now that the model has stopped."""
        heard = SaidAndThought() if self._thoughts is None else self._thoughts.end()
        words = heard.text
        if self._calls is not None:
            words = self._calls.take(heard.text) + self._calls.end(self._blotted)
        return self._heard(words, heard.thought)

    def leave_calls(self) -> StreamChunk | None:
        """What is heard of what was held back, now that the server tells calls in its own way."""
        return None if self._calls is None else self._heard(self._calls.give_up(), "")

    @property
    def text(self) -> str:
        """The whole text that was said."""
        # Each piece was looked at already; what must not be kept can lie across two of them.
        return self._blotted(self._text.decode())

    @property
    def reasoning(self) -> str:
        """The whole text that was thought."""
        return self._blotted(self._reasoning.decode())

    def calls(self, answers: int) -> tuple[ToolCall, ...]:
        """The calls that were written as text. `answers` is how often the model has spoken before."""
        written = () if self._calls is None else self._calls.calls
        return tuple(
            [
                ToolCall(f"call-{answers + 1}-{number}", call.name, call.arguments)
                for number, call in enumerate(written, start=1)
            ]
        )

    def _heard(self, text: str, thought: str) -> StreamChunk | None:
        if not text and not thought:
            return None
        self._text += text.encode()
        self._reasoning += thought.encode()
        return StreamChunk(text, thought)


def plain_speech(_: ModelRequest, blotted: Callable[[str], str]) -> Speech:
    """For a server that has a field for everything."""
    return Speech(blotted=blotted)


def mixed_speech(request: ModelRequest, blotted: Callable[[str], str]) -> Speech:
    """For a server that may pass on what its model wrote as it stands."""
    return Speech(thoughts=ThinkFilter(), calls=call_filter(request), blotted=blotted)


def joined_pieces(first: StreamChunk | None, second: StreamChunk | None) -> StreamChunk | None:
    """Two pieces as one."""
    if first is None or second is None:
        return first or second
    return StreamChunk(first.text + second.text, first.reasoning + second.reasoning)
