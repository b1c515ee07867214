"""The conversation as a model is shown it: rendered once, message by message, and then passed by reference.

Rule 1: what was rendered is never rendered again, so a run of n exchanges costs n.
Rule 2: retrieved context stands just before the last message of the request, for the whole exchange, whenever it came.
Rule 3: a conversation that followed its run all along equals one that is rendered from the state at once.
"""

from remit.core.arrivals import ModelAnswered, ProposedCall
from remit.core.codec import arguments_in
from remit.core.messages import Message, assistant_message, system_message
from remit.core.record import Text
from remit.core.tools import ToolCall
from remit.kernel.state import RunState, pinned


class Conversation:
    """Grows with the run's context; texts that live in Blobs stay references until an executor needs them."""

    __slots__ = ("_ephemeral", "_seen", "messages")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._seen = 0
        self._ephemeral: Text = ""

    def catch_up(self, state: RunState) -> list[Message]:
        """The messages of the run's context, those that are new rendered now. The list is the caller's to read."""
        context = state.context
        self.messages.extend(map(rendered, context[self._seen :]))
        self._seen = len(context)
        if state.ephemeral != self._ephemeral:
            self._place(state)
        return self.messages

    def _place(self, state: RunState) -> None:
        """Put evidence that was found since before the last message of the request, instead of any found before."""
        place = len(pinned(state).request.messages) - 1
        shown = [system_message(state.ephemeral)] if state.ephemeral else []
        self.messages[place : place + bool(self._ephemeral)] = shown
        self._ephemeral = state.ephemeral


def rendered(entry: Message | ModelAnswered) -> Message:
    """An entry of the context as a message."""
    if isinstance(entry, Message):
        return entry
    return assistant_message(entry.text, tuple(map(_call, entry.calls)), entry.reasoning)


def _call(call: ProposedCall) -> ToolCall:
    return ToolCall(call.call_id, call.tool, arguments_in(call.arguments))
