"""The bell of a store in memory, which rings in one event loop, and one that never rings."""

from collections.abc import Callable

from remit.core.journal.storage import Topic

# Nothing gets lost here; a listener looks by itself only because every listener does.
LOOK_MS = 1_000


class MemoryBell:
    """Rings in one event loop, for every listener of the same store, the ringing process included."""

    look_ms = LOOK_MS

    def __init__(self) -> None:
        self._ears: dict[Topic, list[Callable[[bytes], None]]] = {topic: [] for topic in Topic}

    def listen(self, topic: Topic, hear: Callable[[bytes], None]) -> Callable[[], None]:
        """Call `hear` for every word rung for a topic; gives what ends it."""
        self._ears[topic].append(hear)
        return lambda: self._ears[topic].remove(hear)

    def ring(self, topic: Topic, word: bytes = b"") -> None:
        """Ring for a topic."""
        for hear in tuple(self._ears[topic]):
            hear(word)

    def is_heard(self, topic: Topic) -> bool:
        """Whether a topic has a listener."""
        return bool(self._ears[topic])


class SilentBell:
    """Never rings: for a backend that cannot tell. A listener looks by itself, as often as people are promised."""

    look_ms = 100

    def listen(self, topic: Topic, hear: Callable[[bytes], None]) -> Callable[[], None]:
        """Nothing is ever heard."""
        return lambda: None

    def ring(self, topic: Topic, word: bytes = b"") -> None:
        """Ring for no listener."""

    def is_heard(self, topic: Topic) -> bool:
        """There is no listener."""
        return False
