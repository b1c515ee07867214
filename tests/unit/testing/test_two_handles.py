"""The suite for two handles on one store finds a store that answers from what it read before the other wrote."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, get_type_hints

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.failure import RemitError
from remit.core.journal.signing import Signer
from remit.orchestrate.ports import Store
from remit.testing.conformance.processes.two_handles import TWO_HANDLES_CHECKS
from tests.unit.testing.test_lies import breaks

# What changes a store, or tells of damage that no handle does; all else that a port tells may be remembered for too long.
WRITES = {
    "journal": {"append"},
    "blobs": {"put"},
    "inbox": {"put", "settle"},
    "index": {"mend", "strike", "renew", "sum_up"},
    "ledger": {"count"},
    "log": {"doubt", "losses"},
    "leases": {"take", "renew", "release"},
    "halts": {"append", "refresh"},
    "receipts": {"keep"},
    "seals": {"seal", "adopt", "forget"},
}
# Caches may forget; bells ring; a key and a check-up are of one process; retention writes.
LEFT_OUT = {"bell", "snapshots", "retention", "redactions", "checkup", "key"}


def ports() -> dict[str, type]:
    """The ports of a store that tell what it keeps."""
    found = {name: get_type_hints(member.fget)["return"] for name, member in vars(Store).items() if _is_port(member)}
    return {name: port for name, port in found.items() if name not in LEFT_OUT}


def _is_port(member: object) -> bool:
    return isinstance(member, property)


def looks() -> list[tuple[str, str]]:
    """Every way in which a store is asked something."""
    return [
        (name, verb)
        for name, port in ports().items()
        for verb, member in inspect.getmembers(port, inspect.isfunction)
        if not verb.startswith("_") and verb not in WRITES.get(name, ())
    ]


def remembering(port: Any, verb: str) -> Any:
    """A port that answers a question as it did the first time."""
    asked, given = getattr(port, verb), dict[str, Any]()

    async def later(*said: Any, **more: Any) -> Any:
        key = repr((said, more))
        if key not in given:
            try:
                given[key] = await asked(*said, **more)
            except RemitError as error:
                given[key] = error
        if isinstance(given[key], RemitError):
            raise given[key]
        return given[key]

    def at_once(*said: Any, **more: Any) -> Any:
        return given.setdefault(repr((said, more)), asked(*said, **more))

    verbs = {name: getattr(port, name) for name in dir(port) if not name.startswith("__")}
    return SimpleNamespace(**{**verbs, verb: later if inspect.iscoroutinefunction(asked) else at_once})


def stale(store: MemoryStore, name: str, verb: str) -> Any:
    """Another handle on a store, which remembers one of its answers."""
    own = {port: getattr(store, port) for port in (*ports(), *LEFT_OUT)}
    return SimpleNamespace(**{**own, name: remembering(own[name], verb)})


def found_by(other: Callable[[MemoryStore], Any]) -> list[str]:
    """The checks that do not hold where one of the handles is this one."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        store = MemoryStore(Signer.generate())
        yield store, other(store)

    return [check.__name__ for check in TWO_HANDLES_CHECKS if breaks(asyncio.run, check(opened))]


def test_two_handles_that_remember_nothing_pass() -> None:
    assert found_by(lambda store: store) == []


@pytest.mark.parametrize(("name", "verb"), looks())
def test_a_handle_that_remembers_an_answer_is_found(name: str, verb: str) -> None:
    assert found_by(lambda store: stale(store, name, verb)) != []
