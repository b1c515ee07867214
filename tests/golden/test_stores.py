"""A whole store of an earlier version stays readable: its runs are listed, folded, verified, shown and audited."""

import asyncio
import tarfile
from pathlib import Path

import pytest

from remit.assemble import opened_to_read, settings_of
from remit.orchestrate.replay import Verdict

STORES = sorted((Path(__file__).parent / "stores").glob("*.tar.gz"))
every_store = pytest.mark.parametrize("packed", STORES, ids=lambda path: path.name.partition(".")[0])

# What the store of the first version holds, newest first: a run that was killed, two exchanges of a session, one that
# waits for a person, one that a person approved, and a plain one.
ENDINGS_V1 = [None, "SUCCESS", "SUCCESS", None, "SUCCESS", "SUCCESS"]


def unpacked(packed: Path, folder: Path) -> Path:
    with tarfile.open(packed) as archive:
        # Filters came with Python 3.11.4, and are asked for by its successors.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder / ".remit"


def test_there_is_a_store_of_an_earlier_version() -> None:
    assert STORES


@every_store
def test_an_old_store_is_listed_verified_and_audited(packed: Path, tmp_path: Path) -> None:
    async def look() -> None:
        async with opened_to_read(settings_of({}, home=unpacked(packed, tmp_path))) as system:
            entries = await system.archive.runs()
            assert [entry.ending or None for entry in entries] == ENDINGS_V1
            for entry in entries:
                assert (await system.archive.verify(entry.run_id)).ok
                audit = await system.archive.replay(entry.run_id)
                assert audit.verdict is Verdict.OTHER_VERSION
                assert audit.difference is None
                assert (await system.archive.told(entry.run_id)).explanation.path
            assert len(await system.archive.approvals()) == 1

    asyncio.run(look())
