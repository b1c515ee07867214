"""Cancelling a function that runs in a thread: it is told, and it has to listen."""

from threading import Event


class ToolCancelled(Exception):
    """Raised by a tool at its own wish, because its call was cancelled."""


class CancelToken:
    """Tells a tool that its call was cancelled. A parameter annotated with it is filled in and hidden from the model."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = Event()

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled."""
        return self._event.is_set()

    def wait(self, timeout_ms: int) -> bool:
        """Pause for so long, or until the call is cancelled; whether it was."""
        return self._event.wait(timeout_ms / 1000)

    def raise_if_cancelled(self) -> None:
        """Leave the tool if its call was cancelled."""
        if self.cancelled:
            raise ToolCancelled("the call was cancelled")

    def cancel(self) -> None:
        """Tell the tool."""
        self._event.set()
