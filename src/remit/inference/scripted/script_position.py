"""Where a conversation stands in a script: which reply is next, told from the messages alone.

Rule 1: the place follows from the conversation, so a run that is resumed, in whatever process, gets the right reply.
Rule 2: a message of the assistant is the first reply from the place on that says the same, and the place moves behind
        it; a message no reply says counts as one reply. So a history that keeps only answers skips the calls before them.
        Look-ups that were made for orders are no message of the assistant's.
Rule 3: a reply with `when` answers what it matches and moves no place.
Rule 4: a reply that leaves no message, an error or silence, is passed by asking again: attempt n takes the n-th reply
        from the place on, up to the first that speaks.
Rule 5: behind the last reply the last one repeats.
"""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from remit.core.failure import ErrorCode
from remit.core.record import size_bytes
from remit.core.run.messages import Message, Role
from remit.core.work.orders import LOOK_UP_ID
from remit.inference.engine import EngineFault
from remit.inference.scripted.script import ScriptedReply

# How much of a message a pattern sees: a pattern whose cost grows with the square of it still takes a moment only.
WHEN_SEES_CHARS_MAX = 10_000
# Short conversations are read anew each time; of long ones that many are remembered, so that reading stays linear.
LONG_MESSAGES = 32
REMEMBERED_MAX = 256

_ASSISTANT = Role.ASSISTANT


class Bookmark(NamedTuple):
    """What reading a conversation comes to: the place in the ordered replies, the answers so far, the bytes shown."""

    place: int = 0
    answers: int = 0
    shown_bytes: int = 0


class Playbook:
    """Finds the reply to a conversation. What it remembers is a cache: without it, the replies are the same."""

    def __init__(self, replies: Sequence[ScriptedReply]) -> None:
        self._ordered = [reply for reply in replies if reply.when is None]
        self._conditional = [reply for reply in replies if reply.when is not None]
        # For each place, the first reply from there on that speaks, or the last of all.
        self._speaking = [0] * len(self._ordered)
        speaking = len(self._ordered) - 1
        for place in range(speaking, -1, -1):
            speaking = place if self._ordered[place].speaks else speaking
            self._speaking[place] = speaking
        self._remembered: dict[int, tuple[tuple[Message, ...], Bookmark]] = {}

    def reply_to(self, messages: tuple[Message, ...], attempt: int) -> tuple[ScriptedReply, Bookmark]:
        """The reply to a conversation in this attempt, and where the conversation stands."""
        mark = self._read(messages)
        if self._conditional and messages and (matching := self._matching(messages[-1])):
            return matching[min(max(attempt, 1), len(matching)) - 1], mark
        if not self._ordered:
            message = "no reply of the script matches the last message; add one without `when`"
            raise EngineFault(ErrorCode.INFERENCE_ENGINE_ERROR, message)
        place = min(mark.place, len(self._ordered) - 1)
        if mark.place == place:
            place = min(place + max(attempt, 1) - 1, self._speaking[place])
        return self._ordered[place], mark

    def _read(self, messages: tuple[Message, ...]) -> Bookmark:
        if len(messages) < LONG_MESSAGES:
            return self._read_on(Bookmark(), messages, 0)
        key, mark, start = id(messages[0]), Bookmark(), 0
        seen = self._remembered.pop(key, None)
        # Equal tuples of the same objects compare at the speed of their addresses.
        if seen is not None and messages[: len(seen[0])] == seen[0]:
            mark, start = seen[1], len(seen[0])
        mark = self._read_on(mark, messages, start)
        self._remembered[key] = (messages, mark)
        if len(self._remembered) > REMEMBERED_MAX:
            del self._remembered[next(iter(self._remembered))]
        return mark

    def _read_on(self, mark: Bookmark, messages: tuple[Message, ...], start: int) -> Bookmark:
        place, answers, shown = mark
        for position, message in enumerate(islice(messages, start, None), start):
            shown += size_bytes(message.content)
            if message.reasoning:
                shown += size_bytes(message.reasoning)
            if message.role == _ASSISTANT and not _is_look_up(message):
                answers += 1
                place = self._after(place, message, messages[position - 1] if position else None)
        return Bookmark(place, answers, shown)

    def _after(self, place: int, message: Message, before: Message | None) -> int:
        if self._conditional and before is not None:
            matching = self._matching(before)
            if matching and _says(matching[-1], message):
                return place
        ordered = self._ordered
        for position in range(place, len(ordered)):
            if _says(ordered[position], message):
                return position + 1
        return self._speaking[place] + 1 if place < len(ordered) else place

    def _matching(self, message: Message) -> list[ScriptedReply]:
        """The replies whose pattern matches, in order, up to the first that speaks."""
        assert isinstance(message.content, str), "an engine never sees a digest"
        text = message.content[:WHEN_SEES_CHARS_MAX]
        found: list[ScriptedReply] = []
        for reply in self._conditional:
            if reply.when is not None and reply.when.search(text):
                found.append(reply)
                if reply.speaks:
                    break
        return found


def _is_look_up(message: Message) -> bool:
    return bool(message.tool_calls) and message.tool_calls[0].id.startswith(LOOK_UP_ID)


def _says(reply: ScriptedReply, message: Message) -> bool:
    """Whether a message is what this reply leaves in a conversation. Ids may have been given on the way."""
    if reply.error is not None or reply.text != message.content or len(reply.calls) != len(message.tool_calls):
        return False
    pairs = zip(reply.calls, message.tool_calls, strict=True)
    return all(ours.name == theirs.name and ours.arguments == theirs.arguments for ours, theirs in pairs)
