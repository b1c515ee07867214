"""The conformance suite finds snapshots that do not do what all must."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.snapshots import MemorySnapshots
from remit.core.journal.storage import Snapshot
from remit.orchestrate.ports import Journal, Snapshots
from remit.testing.conformance.records.snapshots import SNAPSHOTS_CHECKS, OpenSnapshots


class BadSnapshots:
    """Snapshots in memory with one flaw."""

    def __init__(self, flaw: str, journal: MemoryJournal) -> None:
        self._flaw = flaw
        self._journal = journal
        self._kept: dict[str, Snapshot] = {}

    async def keep(self, run_id: str, seq: int, head: bytes, data: bytes, signature: bytes = b"") -> None:
        key = run_id.lower() if self._flaw == "mixes" else run_id
        match self._flaw:
            case "trims":
                data = data.strip(b"\0")
            case "cuts":
                data = data[:65536]
            case "forgets where":
                seq = 0
            case "keeps the largest" if key in self._kept and self._kept[key].seq > seq:
                return
            case "loses":
                kept = dict(self._kept)
                await asyncio.sleep(0)
                self._kept = kept
            case "writes turns":
                await self._journal.append(run_id, data, after=seq)
        self._kept[key] = Snapshot(run_id, seq, head, data, b"" if self._flaw == "forgets who" else signature)

    async def latest(self, run_id: str) -> Snapshot | None:
        found = self._kept.get(run_id.lower() if self._flaw == "mixes" else run_id)
        return Snapshot(run_id, 0, b"", b"") if found is None and self._flaw == "makes up" else found


def snapshots(flaw: str) -> OpenSnapshots:
    @asynccontextmanager
    async def opened() -> AsyncIterator[tuple[Journal, Snapshots]]:
        journal = MemoryJournal()
        yield journal, BadSnapshots(flaw, journal) if flaw else MemorySnapshots()

    return opened


def failed_by(flaw: str) -> set[str]:
    failed = set()
    for check in SNAPSHOTS_CHECKS:
        try:
            asyncio.run(check(snapshots(flaw)))
        except Exception:  # noqa: BLE001  # a flaw shows itself in whatever way
            failed.add(check.__name__)
    return failed


@pytest.mark.parametrize("flaw", ["", "none"])
def test_snapshots_without_flaw_pass_every_check(flaw: str) -> None:
    assert failed_by(flaw) == set()


@pytest.mark.parametrize(
    ("flaw", "check"),
    [
        ("makes up", "a_run_that_nobody_kept_has_no_snapshot"),
        ("trims", "a_snapshot_comes_back_exactly"),
        ("cuts", "a_snapshot_comes_back_exactly"),
        ("forgets where", "a_snapshot_comes_back_exactly"),
        ("keeps the largest", "the_newest_snapshot_is_found"),
        ("mixes", "snapshots_do_not_mix"),
        ("loses", "many_may_be_kept_at_once"),
        ("forgets who", "a_signature_is_kept_with_its_snapshot"),
        ("writes turns", "a_snapshot_changes_no_turn"),
    ],
)
def test_snapshots_with_a_flaw_fail_the_check_that_is_about_it(flaw: str, check: str) -> None:
    assert check in failed_by(flaw)
