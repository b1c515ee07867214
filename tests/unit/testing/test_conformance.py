"""The conformance suites find a backend that does not do what every backend must."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from remit.backend.memory.blobs import MemoryBlobs
from remit.backend.memory.journal import MemoryJournal
from remit.core.storage import AppendConflict, Barrier, BlobMissing, Listing
from remit.orchestrate.ports import Blobs, Journal
from remit.testing.conformance.blobs import BLOBS_CHECKS, OpenBlobs
from remit.testing.conformance.journal import JOURNAL_CHECKS, OpenJournal


class BadJournal:
    """A journal in memory with one flaw."""

    def __init__(self, flaw: str) -> None:
        self._flaw = flaw
        self._runs: dict[str, list[bytes]] = {}

    async def append(
        self, run_id: str, data: bytes, *, after: int, barrier: Barrier | None = None, listing: Listing | None = None
    ) -> None:
        turns = self._runs.setdefault(self._key(run_id), [])
        if self._flaw == "asks too late":
            stands_at = len(turns)
            await asyncio.sleep(0)
            is_conflict = stands_at != after + 1
        elif self._flaw == "allows gaps":
            is_conflict = len(turns) > after + 1
        else:
            is_conflict = len(turns) != after + 1
        if is_conflict and self._flaw == "stays locked":
            self._flaw = "locked"
        if self._flaw == "locked" or (is_conflict and self._flaw != "never objects"):
            raise AppendConflict(run_id, after, len(turns) - 1)
        turns.append(self._kept(data))

    async def read(self, run_id: str, *, after: int = -1) -> Sequence[bytes]:
        turns = self._runs.get(self._key(run_id), [])
        match self._flaw:
            case "newest first":
                return turns[::-1][: len(turns) - after - 1]
            case "off by one":
                return turns[after if after > 0 else after + 1 :]
            case "one page":
                return turns[after + 1 : after + 1001]
            case "lives on":
                return turns if after < 0 else turns[after + 1 :]
            case "invents a turn":
                return turns[after + 1 :] or [b""]
        return turns[after + 1 :]

    def _key(self, run_id: str) -> str:
        return run_id.lower().replace("/", ".") if self._flaw == "mixes runs" else run_id

    def _kept(self, data: bytes) -> bytes:
        if self._flaw == "stops at zero":
            return data.split(b"\0")[0]
        return data[:65536] if self._flaw == "cuts" else data


class BadBlobs:
    """Blobs in memory with one flaw."""

    def __init__(self, flaw: str) -> None:
        self._flaw = flaw
        self._kept: dict[bytes, bytes] = {}

    async def put(self, digest: bytes, data: bytes) -> None:
        if digest in self._kept and self._flaw == "objects":
            raise BlobMissing(digest)
        if digest in self._kept and self._flaw == "appends":
            data = self._kept[digest] + data
        if self._flaw == "cuts":
            data = data[:65536]
        if self._flaw == "loses":
            kept = dict(self._kept)
            await asyncio.sleep(0)
            self._kept = {**kept, digest: data}
            return
        self._kept[digest[:1] if self._flaw == "mixes" else digest] = data

    async def get(self, digest: bytes) -> bytes:
        key = digest[:1] if self._flaw == "mixes" else digest
        if key in self._kept:
            return self._kept[key]
        if self._flaw == "makes up":
            return b""
        raise BlobMissing(digest)


def journals(flaw: str) -> OpenJournal:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Journal]:
        yield BadJournal(flaw) if flaw else MemoryJournal()

    return opened


def blobs(flaw: str) -> OpenBlobs:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Blobs]:
        yield BadBlobs(flaw) if flaw else MemoryBlobs()

    return opened


def failed_by_journal(flaw: str) -> set[str]:
    failed = set()
    for check in JOURNAL_CHECKS:
        try:
            asyncio.run(check(journals(flaw)))
        except (AssertionError, AppendConflict):
            failed.add(check.__name__)
    return failed


def failed_by_blobs(flaw: str) -> set[str]:
    failed = set()
    for check in BLOBS_CHECKS:
        try:
            asyncio.run(check(blobs(flaw)))
        except (AssertionError, BlobMissing):
            failed.add(check.__name__)
    return failed


@pytest.mark.parametrize("flaw", ["", "none"])
def test_a_journal_without_flaw_passes_every_check(flaw: str) -> None:
    assert failed_by_journal(flaw) == set()


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("never objects", "a_turn_is_written_once"),
        ("allows gaps", "a_gap_is_refused"),
        ("asks too late", "one_of_many_rivals_wins"),
        ("stays locked", "a_run_goes_on_after_a_conflict"),
        ("newest first", "turns_come_back_in_order"),
        ("off by one", "reading_starts_after_the_turn_that_is_named"),
        ("one page", "many_turns_come_back"),
        ("lives on", "what_was_read_stays_as_it_was"),
        ("invents a turn", "an_unknown_run_reads_as_nothing"),
        ("mixes runs", "runs_do_not_mix"),
        ("stops at zero", "bytes_come_back_exactly"),
        ("cuts", "a_large_turn_comes_back"),
        ("newest first", "runs_are_written_beside_each_other"),
    ],
)
def test_a_journal_with_a_flaw_fails_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed_by_journal(flaw)


@pytest.mark.parametrize("flaw", ["", "none"])
def test_blobs_without_flaw_pass_every_check(flaw: str) -> None:
    assert failed_by_blobs(flaw) == set()


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("makes up", "a_missing_blob_is_said_to_be_missing"),
        ("appends", "keeping_twice_keeps_once"),
        ("objects", "keeping_twice_keeps_once"),
        ("cuts", "a_large_blob_comes_back"),
        ("mixes", "blobs_do_not_mix"),
        ("loses", "many_may_put_at_once"),
    ],
)
def test_blobs_with_a_flaw_fail_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed_by_blobs(flaw)


def test_every_check_finds_some_flaw() -> None:
    found = set().union(
        *(failed_by_journal(flaw) for flaw in ("never objects", "stays locked", "newest first", "cuts"))
    )
    assert {"a_turn_is_written_once", "a_run_goes_on_after_a_conflict"} <= found
