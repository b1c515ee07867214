"""The conversation as a model is shown it: rendered once, message by message, and then passed by reference.

Rule 1: what was rendered is never rendered again, so a run of n exchanges costs n.
Rule 2: retrieved context stands just before the last message of the request, for the whole exchange, whenever it came.
Rule 3: a conversation that followed its run all along equals one that is rendered from the state at once.
Rule 4: a text that lives in Blobs is fetched once, when an engine needs it, and stands in its message from then on.
"""

from collections.abc import Awaitable, Callable

from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.codec import arguments_in
from remit.core.journal.proposed_call import ProposedCall
from remit.core.limits.tools import ToolCall
from remit.core.record import Text, replace
from remit.core.run.messages import Message, assistant_message, system_message
from remit.kernel.state import RunState, pinned

# Gives a text in full, wherever it lives.
Fetch = Callable[[Text], Awaitable[str]]


class Conversation:
    """Grows with the run's context; texts that live in Blobs stay references until an executor needs them."""

    __slots__ = ("_compressions", "_ephemeral", "_is_whole", "_seen", "_whole", "messages")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._seen = 0
        self._compressions = 0
        self._ephemeral: Text = ""
        # So many messages, from the first on, hold no reference; and whether none of the others does.
        self._whole, self._is_whole = 0, True

    def catch_up(self, state: RunState) -> list[Message]:
        """The messages of the run's context, those that are new rendered now. The list is the caller's to read."""
        if state.talk.compressions != self._compressions:
            self._begin_anew(state)
        context, messages = state.talk.context, self.messages
        for entry in context[self._seen :]:
            # Every other entry is a message already, and a call costs more than the look.
            message = _as_said(entry) if isinstance(entry, ModelAnswered) else entry
            if type(message.content) is not str or message.reasoning or message.tool_calls:
                self._is_whole = self._is_whole and not _has_references(message, entry)
            messages.append(message)
        self._seen = len(context)
        if state.talk.ephemeral != self._ephemeral:
            self._place(state)
        return messages

    async def whole(self, state: RunState, count: int, fetch: Fetch) -> tuple[Message, ...]:
        """The first `count` messages of the run's context, and evidence among them, as an engine takes them: in full."""
        messages = self.catch_up(state)
        if not self._is_whole:
            end = len(messages)
            evidence = self._evidence_at(state) if self._ephemeral else end
            for position, message in enumerate(messages[self._whole :], self._whole):
                # Evidence stands in no context; what follows it stands there one place earlier.
                entry = None if position == evidence else state.talk.context[position - (position > evidence)]
                if _has_references(message, entry):
                    messages[position] = await _fetched(message, entry, fetch)
            self._whole, self._is_whole = end, end == len(messages)
        shown = count + bool(self._ephemeral)
        return tuple(messages) if shown == len(messages) else tuple(messages[:shown])

    def _begin_anew(self, state: RunState) -> None:
        """Forget what was rendered before earlier results were shortened."""
        self.messages.clear()
        self._seen, self._whole, self._is_whole, self._ephemeral = 0, 0, True, ""
        self._compressions = state.talk.compressions

    def _place(self, state: RunState) -> None:
        """Put evidence that was found since before the last message of the request, instead of any found before."""
        place = self._evidence_at(state)
        shown = [system_message(state.talk.ephemeral)] if state.talk.ephemeral else []
        self.messages[place : place + bool(self._ephemeral)] = shown
        self._ephemeral = state.talk.ephemeral
        self._whole, self._is_whole = min(self._whole, place), False

    @staticmethod
    def _evidence_at(state: RunState) -> int:
        return len(pinned(state).request.messages) - 1


def _as_said(entry: ModelAnswered) -> Message:
    calls: tuple[ToolCall, ...] = ()
    for call in entry.calls:
        calls += (ToolCall(call.call_id, call.tool, arguments_in(call.arguments)),)
    return assistant_message(entry.text, calls, entry.reasoning)


def _has_references(message: Message, entry: Message | ModelAnswered | None) -> bool:
    if type(message.content) is not str or type(message.reasoning) is not str:
        return True
    # Arguments that live in Blobs are rendered as their digest, which looks like any other arguments.
    if type(entry) is ModelAnswered:
        for call in entry.calls:
            if type(call.arguments) is not str:
                return True
    return False


async def _fetched(message: Message, entry: Message | ModelAnswered | None, fetch: Fetch) -> Message:
    calls = message.tool_calls
    if isinstance(entry, ModelAnswered):
        calls = tuple([await _fetched_call(call, fetch) for call in entry.calls])
    content, reasoning = await fetch(message.content), await fetch(message.reasoning)
    return replace(message, content=content, reasoning=reasoning, tool_calls=calls)


async def _fetched_call(call: ProposedCall, fetch: Fetch) -> ToolCall:
    return ToolCall(call.call_id, call.tool, arguments_in(await fetch(call.arguments)))
