"""What a session keeps beside its words: decisions and names that carry forward, by key, as JSON values.

Rule 1: the journal is the truth; what is read here is a copy of it, and every value that is handed out is the reader's own.
Rule 2: writing goes through the journal first; who reads afterwards reads what was written.
"""

import asyncio
from collections.abc import Callable, Coroutine
from threading import Lock
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.record import JsonObject
from remit.core.schema.json_text import kept_value
from remit.orchestrate.exchange.sessions import SESSION_ENTRY_INVALID, check_entries


class SessionState:
    """What a session keeps, by key: JSON values, read from here and written to the journal. Reading is thread-safe."""

    def __init__(self, keep: Callable[[str, str], Coroutine[Any, Any, None]]) -> None:
        self._keep = keep
        self._texts: dict[str, str] = {}
        self._lock = Lock()
        # One entry is written after the other, so that what is read last was written last. A lock serves one loop.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._writing = asyncio.Lock()

    def get(self, key: str, default: Any = None) -> Any:
        """A value of one's own, or the default when nothing is kept under the key."""
        with self._lock:
            text = self._texts.get(key)
        return default if text is None else kept_value(text)

    def items(self) -> JsonObject:
        """Everything that is kept, as a dictionary of one's own."""
        with self._lock:
            texts = dict(self._texts)
        return {key: kept_value(text) for key, text in texts.items()}

    async def set(self, key: str, value: Any) -> None:
        """Keep a value; it is in the journal when this returns, or in the first exchange's if there was none yet."""
        try:
            text = canonical_json(value).decode()
        except (NotCanonical, TypeError, RecursionError) as error:
            message = f"the value of entry {key[:80]!r} is no JSON: {error}"
            raise RequestRejected(SESSION_ENTRY_INVALID, message, {"key": key[:80]}) from error
        check_entries([(key, text)])
        if self._loop is not (loop := asyncio.get_running_loop()):
            self._loop, self._writing = loop, asyncio.Lock()
        async with self._writing:
            await self._keep(key, text)
            self.learn({key: text})

    def learn(self, texts: dict[str, str]) -> None:
        """Take over what the journal says."""
        with self._lock:
            self._texts |= texts
