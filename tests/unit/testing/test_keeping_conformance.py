"""The suites for the log of heads, retention, redactions and check-ups find a store that does not do what every store must."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

import pytest
from typing_extensions import override

from remit.backend.memory import retention
from remit.backend.memory.checkup import MemoryCheckup
from remit.backend.memory.head_log import MemoryHeadLog
from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.retention import MemoryRedactions, MemoryRetention
from remit.backend.memory.store import MemoryStore
from remit.core.failure import RequestRejected
from remit.core.journal.codec import redacted_in
from remit.core.journal.commands import Command
from remit.core.journal.ended import Belongings
from remit.core.journal.signing import SignedDeletion, Signer, is_head_signed
from remit.core.journal.storage import (
    Barrier,
    Losses,
    Redacted,
    Removed,
    RunListing,
    SignedHead,
    StoreUnusable,
    Warrant,
)
from remit.core.record import digest_of, replace
from remit.observe.checkup import Check, CheckState
from remit.orchestrate.ports import HeadLog, Journal, Store
from remit.testing.conformance.custody.checkup import CHECKUP_CHECKS
from remit.testing.conformance.custody.head_log import HEAD_LOG_CHECKS
from remit.testing.conformance.custody.redactions import REDACTIONS_CHECKS, WORDS
from remit.testing.conformance.custody.retention import RETENTION_CHECKS, START_MS, Time

SIGNER = Signer.generate()
FOREVER_MS = 1 << 60


class BadLog(MemoryHeadLog):
    """A log in memory with one flaw."""

    def __init__(self, flaw: str, true: MemoryHeadLog) -> None:
        super().__init__(true._runs)
        self._flaw = flaw
        self._heads, self._deletions = true._heads, true._deletions

    @override
    async def last(self, run_id: str) -> SignedHead | None:
        match self._flaw:
            case "gives the first":
                return next(iter(await self.heads(run_id)), None)
            case "trusts anybody":
                return next(reversed(await self.heads(run_id)), None)
            case "gives the newest line":
                return next((head for head in reversed(self._heads.get(run_id, [])) if is_head_signed(head)), None)
        return await super().last(run_id)

    @override
    async def doubt(self, run_id: str, last: int) -> str:
        if self._flaw == "never doubts":
            return ""
        if self._flaw == "doubts what is not signed" and (head := await self.last(run_id)) is not None:
            return "" if head.seq == last else "there are turns behind the last head"
        return await super().doubt(run_id, last)

    @override
    async def losses(self) -> Losses:
        lost = await super().losses()
        match self._flaw:
            case "misses everything":
                return Losses()
            case "counts what is not signed":
                return replace(lost, missing=tuple(run_id for run_id in self._heads if run_id not in self._runs))
        return lost

    @override
    async def heads(self, run_id: str) -> Sequence[SignedHead]:
        match self._flaw:
            case "invents":
                return [SignedHead(run_id, 0, b"", "", "", b"")]
            case "keeps the order of its lines":
                return self._heads.get(run_id, [])
            case "mixes runs":
                return [head for heads in self._heads.values() for head in heads]
            case "forgets endings":
                return [replace(head, ending="") for head in await super().heads(run_id)]
        return await super().heads(run_id)

    @override
    async def deletion(self, run_id: str) -> SignedDeletion | None:
        if self._flaw == "invents deletions":
            return SignedDeletion(run_id, 0, b"", 0, "", b"")
        return await super().deletion(run_id)


async def _listed(journal: MemoryJournal, ended_before_ms: int, *_: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the list calls ended."""
    return tuple(retention.collectable(journal, ended_before_ms)), ()


def _ended(journal: MemoryJournal, ended_before_ms: int) -> list[str]:
    """Every run that ended before a time, asked for or not."""
    return [run_id for run_id in journal.listed() if retention.has_ended_before(journal, run_id, ended_before_ms)]


class BadRetention(MemoryRetention):
    """Retention in memory with one flaw."""

    def __init__(self, flaw: str, store: MemoryStore, now_ms: Callable[[], int]) -> None:
        super().__init__(store, store.leases, SIGNER, now_ms)
        self._flaw = flaw
        self._store = store
        self._time = now_ms

    @override
    async def delete(self, run_id: str) -> Removed:  # noqa: C901  # one case for each flaw
        store, journal = self._store, self._store.journal
        match self._flaw:
            case "signs for nothing":
                store.log.append(SignedDeletion(run_id, 0, b"", 0, "", b""))
            case "refuses the unknown" if not journal.turns_of(run_id):
                raise RequestRejected("RUN_NOT_FOUND", "no such run")
            case "takes children away" if run_id in journal._entries:
                entry = journal._entries[run_id]
                journal._entries[run_id] = replace(entry, listing=replace(entry.listing, parent_id=""))
            case "deletes what is driven":
                store.leases._held.clear()
            case "spares nothing":
                store.leases._held.clear()
            case "forgets the heads":
                removed = await super().delete(run_id)
                store.log._heads.pop(run_id, None)
                return removed
            case "keeps the place":
                places = {session: dict(taken) for session, taken in journal._sessions.items()}
                removed = await super().delete(run_id)
                journal._sessions = places
                return removed
            case "leaves children":
                with patch.object(journal, "children_of", lambda _: ()):
                    return await super().delete(run_id)
            case "believes the list of children":
                with patch.object(retention, "is_child_of", lambda first, parent_id: True):
                    return await super().delete(run_id)
            case "believes the list of parents":
                with patch.object(retention, "parent_in", lambda first, listed: listed):
                    return await super().delete(run_id)
            case "gives the quota back":
                removed = await super().delete(run_id)
                store.ledger._charges.pop(run_id, None)
                return removed
            case "takes every text":
                removed = await super().delete(run_id)
                store.blobs._kept.clear()
                return removed
            case "is late":
                await asyncio.sleep(0)
                return Removed(1 + len(journal.children_of(run_id)))
            case "keeps likenesses":
                alike = {likeness: list(names) for likeness, names in journal._alike.items()}
                removed = await super().delete(run_id)
                journal._alike = alike
                return removed
        return await super().delete(run_id)

    @override
    async def gc(self, *, ended_before_ms: int, dry_run: bool = False) -> Removed:
        if self._flaw == "is always dry":
            dry_run = True
        if self._flaw == "is never dry":
            dry_run = False
        if self._flaw == "collects all":
            ended_before_ms = FOREVER_MS
        if self._flaw == "takes young answers":
            self._store.inbox.remove(self._store.inbox.settled_before(FOREVER_MS))
        if self._flaw == "takes what is held":
            self._store.leases._held.clear()
        name, instead = {
            "asks nobody": ("collectable", _ended),
            "believes the list": ("proven", _listed),
            "believes the list of sessions": ("Belongings", lambda firsts: Belongings(())),
        }.get(self._flaw, ("collectable", retention.collectable))
        with patch.object(retention, name, instead):
            told = await super().gc(ended_before_ms=ended_before_ms, dry_run=dry_run)
        return replace(told, inbox_entries=2 * told.inbox_entries) if dry_run and self._flaw == "counts twice" else told

    @override
    def _remove(self, runs: Iterable[str]) -> tuple[int, int]:
        names = tuple(runs)
        sealed = {run_id: self._store.seals.values(run_id) for run_id in names}
        removed = super()._remove(names)
        if self._flaw == "leaves seals":
            self._store.seals._values |= sealed
        return removed


class BadRedactions(MemoryRedactions):
    """Redactions in memory with one flaw."""

    def __init__(self, flaw: str, store: MemoryStore, now_ms: Callable[[], int]) -> None:
        super().__init__(store, store.leases, SIGNER, now_ms)
        self._flaw = flaw
        self._store = store

    @override
    async def redact(self, run_id: str, *, text: str = "", kind: str = "", by: str, why: str) -> Redacted:
        journal = self._store.journal
        snapshot = await self._store.snapshots.latest(run_id)
        match self._flaw:
            case "asks no kind":
                kind = kind and "any"
            case "hears no kind":
                kind = ""
            case "does it while driven":
                self._store.leases._held.clear()
            case "says no name":
                why = "because"
            case "always writes":
                done = await super().redact(run_id, text=text, kind=kind, by=by, why=why)
                return replace(done, turns=done.turns + 1)
            case "leaves children":
                entries = dict(journal._entries)
                journal._entries.clear()
                done = await super().redact(run_id, text=text, kind=kind, by=by, why=why)
                journal._entries.update(entries)
                return done
        done = await super().redact(run_id, text=text, kind=kind, by=by, why=why)
        if self._flaw == "breaks the chain":
            for seq, data in enumerate(journal.turns_of(run_id)):
                if (left := redacted_in(data)) is not None:
                    journal.rewrite(run_id, seq, left.data)
        if self._flaw == "leaves texts":
            long = f"It is said that {WORDS}. ".encode() * 200
            self._store.blobs._kept[digest_of(long)] = long
        if self._flaw == "leaves snapshots" and snapshot is not None:
            self._store.snapshots._kept[run_id] = snapshot
        return done


class BadCheckup(MemoryCheckup):
    """A check-up in memory with one flaw."""

    def __init__(self, flaw: str, store: MemoryStore) -> None:
        super().__init__(store.journal, SIGNER)
        self._flaw = flaw
        self._store = store

    @override
    async def look(self) -> Sequence[Check]:
        found = list(await super().look())
        match self._flaw:
            case "looks twice":
                return [*found, *found]
            case "is silent":
                return [*found, Check("store.extra", CheckState.DOUBTFUL, "not fine")]
            case "counts nothing":
                return [replace(check, seen="fine") for check in found]
            case "is content":
                return [replace(check, state=CheckState.OK) for check in found]
            case "names no code":
                return [replace(check, code="") for check in found]
            case "never rests":
                return [*found, Check("store.extra", CheckState.PROBLEM, "not fine", "run it again", "X")]
            case "writes" if "open" in self._store.journal.listed():
                await self._store.inbox.put("open", b"looked")
            case "takes the run":
                self._store.leases._held.clear()
        return found


class BadStore(MemoryStore):
    """A store in memory, one part of which has one flaw."""

    def __init__(self, part: str, flaw: str, now_ms: Callable[[], int]) -> None:
        super().__init__(SIGNER, now_ms=now_ms)
        self._bad_checkup = BadCheckup(flaw if part == "checkup" else "", self)
        if part == "log":
            self.log = BadLog(flaw, self.log)
            if flaw == "logs what was refused":
                self.journal.append = self._append  # type: ignore[method-assign]  # that is the flaw
            if flaw == "logs nothing":
                self.journal.log = MemoryHeadLog({})
        if part == "retention":
            self.retention = BadRetention(flaw, self, now_ms)
        if part == "redactions":
            self.redactions = BadRedactions(flaw, self, now_ms)

    async def _append(
        self,
        run_id: str,
        data: bytes,
        after: int,
        barrier: Barrier | None = None,
        listing: RunListing | None = None,
        warrant: Warrant | None = None,
        orders: Sequence[Command] = (),
    ) -> int:
        if warrant is not None and warrant.head is not None:
            self.journal.log.append(warrant.head)
        return await MemoryJournal.append(self.journal, run_id, data, after, barrier, listing, warrant)

    @property
    @override
    def checkup(self) -> MemoryCheckup:
        return self._bad_checkup


SUITES = {
    "retention": RETENTION_CHECKS,
    "redactions": REDACTIONS_CHECKS,
    "checkup": CHECKUP_CHECKS,
}


def failed(part: str, flaw: str) -> set[str]:
    """The checks of a part that a store with this flaw fails."""

    @asynccontextmanager
    async def opened(now_ms: Callable[[], int]) -> AsyncIterator[Store]:
        yield BadStore(part, flaw, now_ms)

    @asynccontextmanager
    async def opened_log() -> AsyncIterator[tuple[Journal, HeadLog]]:
        async with opened(Time().now_ms) as store:
            yield store.journal, store.log

    if part == "log":
        plays = {check.__name__: check(opened_log) for check in HEAD_LOG_CHECKS}
    else:
        plays = {check.__name__: check(opened) for check in SUITES[part]}
    return {name for name, play in plays.items() if not _is_passed(play)}


def _is_passed(play: Coroutine[Any, Any, None]) -> bool:
    try:
        asyncio.run(play)
    except AssertionError:
        return False
    return True


FLAWS = [
    ("log", "invents", "an_unknown_run_was_never_signed"),
    ("log", "invents deletions", "an_unknown_run_was_never_signed"),
    ("log", "gives the first", "a_head_is_logged_before_its_turn_is_told_of"),
    ("log", "forgets endings", "a_head_is_logged_before_its_turn_is_told_of"),
    ("log", "logs nothing", "a_head_is_logged_before_its_turn_is_told_of"),
    ("log", "doubts what is not signed", "what_is_whole_is_in_no_doubt"),
    ("log", "mixes runs", "runs_are_logged_apart"),
    ("log", "logs what was refused", "a_refused_turn_is_not_logged"),
    ("log", "keeps the order of its lines", "heads_come_in_the_order_of_their_turns"),
    ("log", "gives the newest line", "heads_come_in_the_order_of_their_turns"),
    ("log", "trusts anybody", "only_what_was_signed_is_the_last"),
    ("log", "never doubts", "only_what_was_signed_is_the_last"),
    ("log", "misses everything", "what_was_signed_and_is_gone_is_lost"),
    ("log", "counts what is not signed", "what_nobody_signed_is_not_lost"),
    ("retention", "refuses the unknown", "deleting_what_nobody_started_removes_nothing"),
    ("retention", "signs for nothing", "deleting_what_nobody_started_removes_nothing"),
    ("retention", "leaves seals", "a_deleted_run_is_gone_with_all_that_was_kept_of_it"),
    ("retention", "leaves children", "a_run_goes_with_all_beneath_it"),
    ("retention", "takes children away", "a_child_whose_parent_is_open_stays"),
    ("retention", "deletes what is driven", "a_family_that_is_driven_stays_whole"),
    ("retention", "is late", "a_run_is_deleted_once"),
    ("retention", "takes every text", "texts_go_with_the_last_run_that_refers_to_them"),
    ("retention", "spares nothing", "a_text_that_somebody_may_be_about_to_refer_to_is_spared"),
    ("retention", "forgets the heads", "a_deletion_is_signed_and_the_log_keeps_the_heads"),
    ("retention", "keeps the place", "a_session_goes_on_after_its_newest_run_was_deleted"),
    ("retention", "keeps likenesses", "a_deleted_run_is_like_no_other"),
    ("retention", "gives the quota back", "what_a_deleted_run_cost_stays_counted"),
    ("retention", "collects all", "a_collection_removes_what_ended_before_a_time"),
    ("retention", "is always dry", "a_collection_removes_what_ended_before_a_time"),
    ("retention", "is never dry", "a_dry_run_says_what_a_collection_would_remove"),
    ("retention", "counts twice", "a_dry_run_says_what_a_collection_would_remove"),
    ("retention", "asks nobody", "a_collection_leaves_what_somebody_will_ask_for"),
    ("retention", "believes the list", "a_collection_leaves_what_only_the_list_calls_ended"),
    ("retention", "believes the list of sessions", "what_the_turns_say_of_a_run_counts_more_than_the_list"),
    ("retention", "believes the list of children", "only_what_is_beneath_a_run_by_its_turns_goes_with_it"),
    ("retention", "believes the list of parents", "only_what_is_beneath_a_run_by_its_turns_goes_with_it"),
    ("retention", "takes what is held", "a_collection_leaves_what_is_held"),
    ("retention", "takes young answers", "a_collection_takes_texts_and_answers_that_nobody_needs"),
    ("redactions", "leaves texts", "words_are_taken_out_of_turns_and_texts"),
    ("redactions", "breaks the chain", "a_redacted_turn_keeps_the_hash_that_it_had"),
    ("redactions", "says no name", "a_redacted_turn_keeps_the_hash_that_it_had"),
    ("redactions", "leaves children", "a_run_is_redacted_with_those_beneath_it"),
    ("redactions", "leaves snapshots", "caches_and_entries_that_hold_the_words_go"),
    ("redactions", "always writes", "where_the_words_do_not_stand_nothing_changes"),
    ("redactions", "does it while driven", "a_run_that_is_driven_is_not_redacted"),
    ("redactions", "asks no kind", "a_kind_that_nobody_knows_is_refused"),
    ("redactions", "hears no kind", "secrets_of_a_kind_are_taken_out_of_turns_and_texts"),
    ("redactions", "asks no kind", "secrets_of_a_kind_are_taken_out_of_turns_and_texts"),
    ("checkup", "looks twice", "a_store_is_looked_at_under_names"),
    ("checkup", "is silent", "a_store_is_looked_at_under_names"),
    ("checkup", "never rests", "a_store_that_is_well_has_no_problem"),
    ("checkup", "counts nothing", "the_store_says_how_many_runs_it_holds"),
    ("checkup", "is content", "signed_turns_that_are_missing_are_a_problem"),
    ("checkup", "names no code", "signed_turns_that_are_missing_are_a_problem"),
    ("checkup", "writes", "looking_changes_nothing"),
    ("checkup", "takes the run", "looking_changes_nothing"),
]


@pytest.mark.parametrize("part", ["log", *SUITES])
def test_what_has_no_flaw_passes_every_check(part: str) -> None:
    assert failed(part, "") == set()


@pytest.mark.parametrize(("part", "flaw", "check"), FLAWS)
def test_what_has_a_flaw_fails_the_check_that_is_about_it(part: str, flaw: str, check: str) -> None:
    assert check in failed(part, flaw)


def test_every_check_finds_some_flaw() -> None:
    every = {check.__name__ for check in HEAD_LOG_CHECKS} | {
        check.__name__ for checks in SUITES.values() for check in checks
    }
    assert {check for _, _, check in FLAWS} == every


def test_a_store_in_memory_without_a_key_deletes_without_a_line_and_redacts_nothing() -> None:
    async def play() -> None:
        store = MemoryStore(now_ms=lambda: START_MS)
        await store.journal.append("run", b"turn", -1)
        with pytest.raises(
            StoreUnusable, match=r"STORE_KEY_MISSING: run run cannot be redacted.*open it with a signer"
        ):
            await store.redactions.redact("run", text=WORDS, by="ann", why="x")
        assert await store.retention.delete("run") == Removed(1, 1)
        # Nothing is signed here, and a log without signatures would say nothing.
        assert await store.log.deletion("run") is None

    asyncio.run(play())
