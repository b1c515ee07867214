"""Sessions: a chain of runs. Each names the one before it and that one's head, so a conversation can be proven whole.

Rule 1: one exchange at a time: while a run of the session is open, the next one is refused with a code.
Rule 2: history is what users and assistants said. Tool results and retrieved evidence belong to one run only.
Rule 3: entries of the session outlive its runs; the next run begins with all of them.
Rule 4: a run that was tried again stands in its session for what the newest fork of it came to.
Rule 5: what a session keeps beside its words (decisions and names, by key, as JSON values) goes through the journal first,
        which is the truth. What is read here is a copy, and every value that is handed out is the reader's own.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from remit.core.failure import ArrivalFault, RequestRejected
from remit.core.journal.canonical import NotCanonical, canonical_json
from remit.core.journal.codec import decode_turn, read_json
from remit.core.journal.commands import ForkRun
from remit.core.journal.rulings import SessionEntryKept
from remit.core.record import JsonObject, Record, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.manifest import SESSION_ENTRIES_MAX, SessionLink
from remit.core.run.messages import Message, Role, assistant_message
from remit.core.run.request_checks import ID_CHARS_MAX
from remit.core.schema.json_text import kept_value
from remit.kernel.state import RunState, pinned
from remit.orchestrate.exchange.conversation import Fetch
from remit.orchestrate.ports import Catalogue

if TYPE_CHECKING:
    from remit.orchestrate.loop.runner import Runner

# The entries of a session to which nothing is added.
NOTHING: Mapping[str, str] = MappingProxyType({})

SESSION_BUSY = "SESSION_BUSY"
SESSION_FOREIGN = "SESSION_FOREIGN"
SESSION_AMBIGUOUS = "SESSION_AMBIGUOUS"
SESSION_ENTRY_INVALID = "SESSION_ENTRY_INVALID"

# A preference, a name, a small table. With all of its entries a manifest stays within a megabyte.
ENTRY_BYTES_MAX = 4096

# Entries as turns keep them: key, and value as a JSON text.
Entries = tuple[tuple[str, str], ...]


class Session(Record):
    """A session as its newest run has it: what was said, what is kept, and whether an exchange is open."""

    session_id: str
    messages: tuple[Message, ...] = ()
    entries: Entries = ()
    run_id: str = ""
    is_open: bool = False


class Last(NamedTuple):
    """The last exchange of a session: its place, the run that it came down to, and the entries that are kept."""

    ordinal: int
    run: RunState
    entries: Mapping[str, str]


async def session_of(session_id: str, last: Last | None, fetch: Fetch) -> Session:
    """A session with every text in full. What an open run has answered so far is not said yet."""
    if last is None:
        return Session(session_id)
    run = last.run
    said = _asked(run) if run.end.ending is None else history_of(run)
    messages = tuple([replace(message, content=await fetch(message.content)) for message in said])
    return Session(session_id, messages, tuple(sorted(last.entries.items())), run.run_id, run.end.ending is None)


def check_entries(entries: Iterable[tuple[str, str]]) -> Entries:
    """The entries that a turn may keep: short names, and values that are JSON and small."""
    return tuple([(_checked_key(key), _checked_value(key, value)) for key, value in entries])


def _checked_key(key: str) -> str:
    if 1 <= len(key) <= ID_CHARS_MAX and key.isprintable():
        return key
    message = f"entry {key[:80]!r} of the session is not named with 1 to {ID_CHARS_MAX} printable characters"
    raise RequestRejected(SESSION_ENTRY_INVALID, message)


def _checked_value(key: str, value: str) -> str:
    try:
        text = canonical_json(read_json(value)).decode()
    except (ValueError, TypeError, RecursionError, NotCanonical) as error:
        message = f"the value of entry {key[:80]!r} is no JSON text: {error}"
        raise RequestRejected(SESSION_ENTRY_INVALID, message, {"key": key[:80]}) from error
    if (size := len(text.encode())) > ENTRY_BYTES_MAX:
        message = (
            f"the value of entry {key[:80]!r} has {size} bytes, more than {ENTRY_BYTES_MAX}; keep a reference to it"
        )
        raise RequestRejected(SESSION_ENTRY_INVALID, message, {"key": key[:80], "size_bytes": size})
    return text


async def last_run(
    catalogue: Catalogue, runner: "Runner", session_id: str, tenant_id: str | None = None
) -> Last | None:
    """The newest run of a session of a tenant, or what trying it again came to; None when the session has none.

    Raises RequestRejected where several tenants have a session of this name and it is not said whose is meant.
    """
    runs = await catalogue.session(session_id, tenant_id=tenant_id)
    if not runs:
        return None
    if len(tenants := {entry.listing.tenant_id for entry in runs}) > 1:
        message = f"{len(tenants)} tenants have a session {session_id[:80]!r}; say whose is meant with tenant_id"
        raise RequestRejected(SESSION_AMBIGUOUS, message, {"session_id": session_id[:80]})
    run = await runner.state_at_rest(runs[-1].run_id)
    entries = dict(run.session)
    while fork_id := await _newest_fork(catalogue, run):
        run = await runner.state_at_rest(fork_id)
        entries |= await _noted_since_forked(runner, run)
    return Last(runs[-1].listing.ordinal, run, entries)


async def _newest_fork(catalogue: Catalogue, run: RunState) -> str:
    """The newest fork of a run that has begun; empty when there is none."""
    for command in reversed(run.commands.parting):
        if isinstance(command, ForkRun) and await catalogue.entry(command.run_id) is not None:
            return command.run_id
    return ""


async def _noted_since_forked(runner: "Runner", fork: RunState) -> dict[str, str]:
    """The entries that a fork was told itself; those it was copied with may be older than what its origin was told."""
    origin = pinned(fork).forked_from
    assert origin is not None, "a fork names where it was copied from"
    turns = [decode_turn(data) for data in await runner.journal.read(fork.run_id, after=origin.seq)]
    kept = (decision for turn in turns for decision in turn.decisions if isinstance(decision, SessionEntryKept))
    return {entry.key: entry.value for entry in kept}


def linked_request(
    request: SystemRequest, last: Last | None, entries: Entries = (), read: tuple[str, ...] = ()
) -> tuple[SystemRequest, SessionLink]:
    """The request with the history of its session before its own words, and its place there.

    `entries` are those that are new with this run, `read` the labels of what earlier runs of the session have read.
    """
    if last is None:
        return request, SessionLink(0, entries=_fitting(request, dict(entries)))
    ordinal, run, known = last
    _check_owner(request, run)
    if run.end.ending is None:
        raise RequestRejected(
            SESSION_BUSY,
            f"exchange {ordinal} of session {request.session_id!r} is open: run {run.run_id}; "
            "go on with AgentLoop.resume() or `remit resume`, or cancel it first",
            {"session_id": request.session_id, "run_id": run.run_id},
        )
    own = request.messages
    instructions = tuple(message for message in own if message.role is Role.SYSTEM)
    said = tuple(message for message in own if message.role is not Role.SYSTEM)
    entered = _fitting(request, {**known, **dict(entries)})
    place = SessionLink(ordinal + 1, run.run_id, run.head, entered, read)
    return replace(request, messages=(*instructions, *history_of(run), *said)), place


def _check_owner(request: SystemRequest, run: RunState) -> None:
    """A session is its tenant's and its user's: a caller that goes on with it is shown what was said in it."""
    before = pinned(run).request
    if (request.tenant_id, request.user_id) != (before.tenant_id, before.user_id):
        message = (
            f"session {request.session_id!r} is that of another user or tenant; begin one of your own, under another id"
        )
        raise RequestRejected(SESSION_FOREIGN, message, {"session_id": request.session_id})


def _fitting(request: SystemRequest, entries: dict[str, str]) -> Entries:
    if (count := len(entries)) > SESSION_ENTRIES_MAX:
        message = f"session {request.session_id!r} would have {count} entries, entries_max={SESSION_ENTRIES_MAX}"
        raise RequestRejected(ArrivalFault.SESSION_FULL, message, {"count": count, "limit": SESSION_ENTRIES_MAX})
    return tuple(sorted(entries.items()))


def history_of(state: RunState) -> tuple[Message, ...]:
    """What was said in a session up to the end of this run."""
    return (*_asked(state), assistant_message(state.result.answer)) if state.result.answer else _asked(state)


def _asked(state: RunState) -> tuple[Message, ...]:
    messages = pinned(state).request.messages
    return tuple(m for m in messages if m.role in (Role.USER, Role.ASSISTANT) and not m.tool_calls)


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
        """A copy of the value, or the default when nothing is kept under the key."""
        with self._lock:
            text = self._texts.get(key)
        return default if text is None else kept_value(text)

    def items(self) -> JsonObject:
        """Everything that is kept, as a copy."""
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
