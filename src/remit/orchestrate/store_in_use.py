"""The store as the verbs of one system use it: what is asked of it is counted, and it is closed when no question is under way.

Rule 1: a store is not closed while something that was asked of it is under way here, whichever backend it is.
Rule 2: once the system lets it go, nothing more is asked of it: the caller is told SYSTEM_CLOSED, and no code of a store.
Rule 3: what drivers write with every turn is not counted: they have ended by then, and those that were abandoned write nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, ParamSpec, TypeVar, cast

from remit.core.run.run_events import system_closed
from remit.orchestrate.ports import Store

Asked = ParamSpec("Asked")
Told = TypeVar("Told")

# The ports whose questions are counted. A bell, a key and the files of seals have nothing open that closing would take away.
_COUNTED = frozenset(
    {
        *("journal", "feed", "blobs", "snapshots", "catalogue", "log", "index", "ledger", "inbox", "leases", "halts"),
        *("receipts", "retention", "redactions", "checkup"),
    }
)
# What is asked with every turn or command.
_UNCOUNTED = frozenset({("journal", "append"), ("blobs", "put"), ("halts", "news")})


def in_use(store: Store) -> Store:
    """The store for a system, which closes it."""
    return cast(Store, StoreInUse(store))


class StoreInUse:
    """A store, of which each port counts what is asked of it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._under_way = 0
        self._is_left = False
        self._idle: asyncio.Event | None = None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in _COUNTED:
            return found
        port = _Port(self, name, found)
        setattr(self, name, port)
        return port

    async def ask(self, question: Callable[Asked, Awaitable[Told]], *given: Asked.args, **named: Asked.kwargs) -> Told:
        """Ask a port, and count the question as under way; raises SYSTEM_CLOSED once the system has let the store go."""
        self.expect_open()
        self._under_way += 1
        try:
            return await question(*given, **named)
        finally:
            self._under_way -= 1
            if self._idle is not None and not self._under_way:
                self._idle.set()

    def expect_open(self) -> None:
        """Raise SYSTEM_CLOSED once the store was let go."""
        if self._is_left:
            raise system_closed()

    async def close(self) -> None:
        """Let nothing more be asked, wait for what is under way, and close the store."""
        self._is_left = True
        if self._under_way:
            # Nothing is asked any more, so that what is under way only becomes less.
            self._idle = self._idle or asyncio.Event()
            await self._idle.wait()
        await self._store.close()


class _Port:
    """A port of a store in use: what it can be asked is found out when it is first used, and how at each question that counts."""

    def __init__(self, use: StoreInUse, name: str, port: Any) -> None:
        self._use, self._port = use, port
        for asked in dir(type(port)):
            known = getattr(type(port), asked)
            if asked.startswith("_") or not callable(known):
                continue
            find = partial(getattr, port, asked)
            if (name, asked) in _UNCOUNTED:
                # As it is: going through this port would take six times as long as the question, and every turn asks.
                setattr(self, asked, find())
            else:
                setattr(self, asked, self._counted(find) if iscoroutinefunction(known) else self._expected(find))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def _counted(self, find: Callable[[], Callable[Asked, Awaitable[Told]]]) -> Callable[Asked, Awaitable[Told]]:
        async def asked(*given: Asked.args, **named: Asked.kwargs) -> Told:
            return await self._use.ask(find(), *given, **named)

        return asked

    def _expected(self, find: Callable[[], Callable[Asked, Told]]) -> Callable[Asked, Told]:
        def asked(*given: Asked.args, **named: Asked.kwargs) -> Told:
            self._use.expect_open()
            return find()(*given, **named)

        return asked
