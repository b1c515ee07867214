"""Finding runs by name, and reading what they ask, rely on and come to."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.store import EmbeddedStore
from remit.backend.memory.store import MemoryStore
from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.storage import Barrier, RunListing
from remit.core.journal.turn import KERNEL_VERSION
from remit.core.run.halt import HALTED
from remit.core.run.lineage import lifted
from remit.orchestrate.history.archive import Archive
from remit.orchestrate.loop import durability
from tests.unit.backend.signed import journal_of
from tests.unit.orchestrate.house import calls, keep, request, scripted, systems
from tests.unit.orchestrate.stage import play


async def store_of(*runs: tuple[str, str]) -> MemoryStore:
    """A store that lists these runs, each with its parent."""
    store = MemoryStore()
    for run_id, parent_id in runs:
        await store.journal.append(
            run_id, b"", after=-1, listing=RunListing(0, parent_id=parent_id, lineage=_lineage(parent_id))
        )
    return store


def _lineage(parent_id: str) -> tuple[str, ...]:
    return (*lifted(parent_id), parent_id) if parent_id else ()


FAMILY = (("abc", ""), ("abc.1.0", "abc"), ("abc.1.0.2.0", "abc.1.0"), ("abd", ""), ("xyz.3.1", "xyz"))


def found(name: str, runs: Sequence[tuple[str, str]] = FAMILY) -> str:
    async def find() -> str:
        return (await Archive(await store_of(*runs)).find(name)).run_id

    return play(find())


@pytest.mark.parametrize(
    ("name", "run_id"),
    [("abc", "abc"), ("abc.1.0", "abc.1.0"), ("abd", "abd"), ("abc.", "abc.1.0"), ("x", "xyz.3.1"), ("last", "abd")],
)
def test_a_run_is_found_by_its_name_and_comes_before_its_children(name: str, run_id: str) -> None:
    assert found(name) == run_id


@pytest.mark.parametrize(("name", "code"), [("", "RUN_NOT_FOUND"), ("q", "RUN_NOT_FOUND"), ("ab", "RUN_AMBIGUOUS")])
def test_a_name_of_no_run_or_of_several_is_refused(name: str, code: str) -> None:
    with pytest.raises(RequestRejected, match=code):
        found(name)


def test_more_candidates_than_fit_a_line_are_not_all_named() -> None:
    with pytest.raises(RequestRejected, match=r"6 runs begin with 'r': .*, \.\.\.; say which"):
        found("r", [(f"r{number}", "") for number in range(6)])


def test_the_last_run_of_an_empty_store_is_not_there() -> None:
    with pytest.raises(RequestRejected, match="RUN_NOT_FOUND"):
        found("last", ())


def test_the_root_of_a_child_is_the_run_that_nobody_started_as_one() -> None:
    async def root() -> str:
        return await Archive(await store_of(*FAMILY)).root("abc.1.0.2.0")

    assert play(root()) == "abc"


def test_a_family_is_told_from_its_deepest_member_up() -> None:
    async def family() -> list[str]:
        return await Archive(await store_of(*FAMILY)).family("abc")

    assert play(family()) == ["abc.1.0.2.0", "abc.1.0", "abc"]


def test_children_are_listed_only_on_request() -> None:
    async def listed() -> tuple[list[str], list[str]]:
        archive = Archive(await store_of(*FAMILY))
        roots, every = await archive.runs(), await archive.runs(with_children=True, limit=2)
        return [entry.run_id for entry in roots], [entry.run_id for entry in every]

    assert play(listed()) == (["abd", "abc"], ["xyz.3.1", "abd"])


def test_what_other_runs_ask_is_not_asked_by_this_one() -> None:
    async def asked() -> int:
        store = await store_of(("abc", ""))
        await store.journal.append("waits", b"", after=-1, listing=RunListing(0), barrier=Barrier(waiting_for="REVIEW"))
        return len(await Archive(store).approvals("abc"))

    assert play(asked()) == 0


def test_a_store_without_a_key_signs_no_export() -> None:
    async def export() -> None:
        await Archive(await store_of(("abc", ""))).export("abc")

    with pytest.raises(RequestRejected, match="EXPORT_UNSIGNED"):
        play(export())


def test_a_run_that_was_deleted_is_told_from_one_that_was_taken_out_of_the_store(tmp_path: Path) -> None:
    async def absent(name: str) -> str:
        store = EmbeddedStore.open(tmp_path)
        with pytest.raises(RequestRejected) as caught:
            await Archive(store).find(name)
        await store.close()
        return str(caught.value.code)

    async def fill() -> None:
        store = EmbeddedStore.open(tmp_path)
        for run_id in ("deleted", "taken", "kept"):
            await journal_of(store).append(run_id, b"turn", after=-1, barrier=Barrier("SUCCESS"), listing=RunListing(0))
        await store.retention.delete("deleted")
        await store.close()

    play(fill())
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
        connection.execute("DELETE FROM runs WHERE run_id = 'taken'")
    codes = [play(absent(name)) for name in ("deleted", "taken", "nobody")]
    assert codes == ["RUN_DELETED", "RUN_MISSING", "RUN_NOT_FOUND"]


def test_a_run_that_is_listed_otherwise_than_its_turns_say_does_not_verify(tmp_path: Path) -> None:
    async def fill() -> str:
        store = EmbeddedStore.open(tmp_path)
        async with systems(store) as (system,):
            asked = await system.run(request(), scripted(calls("keep", text="x"), tools=[keep]))
            assert (await system.archive.verify(asked.run_id)).ok
        return asked.run_id

    async def codes(run_id: str) -> list[str]:
        store = EmbeddedStore.open(tmp_path)
        found = await Archive(store).verify(run_id)
        await store.close()
        return [finding.code.value for finding in found.findings]

    run_id = play(fill())
    for change in ("ending = 'SUCCESS'", "waiting_for = ''", "waiting_for = 'MISSING_INFO'", "tenant_id = 'other'"):
        with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
            before = connection.execute("SELECT * FROM runs").fetchall()
            connection.execute(f"UPDATE runs SET {change}")
            connection.commit()
            assert play(codes(run_id)) == ["INDEX_DIFFERS"]
            connection.execute("DELETE FROM runs")
            connection.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(before[0]))})", before[0])
            connection.commit()
    assert play(codes(run_id)) == []


def test_a_run_of_an_earlier_version_may_be_listed_under_the_code_of_its_first_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def found(listed: str) -> list[str]:
        store = EmbeddedStore.open(tmp_path / (listed or "none"))
        async with systems(store) as (system,):
            asked = await system.run(request(), scripted(calls("keep", text="x"), tools=[keep]))
        with closing(sqlite3.connect(tmp_path / (listed or "none") / DATABASE)) as connection, connection:
            connection.execute("UPDATE runs SET waiting_for = ?", (listed,))
        store = EmbeddedStore.open(tmp_path / (listed or "none"))
        verified = await Archive(store).verify(asked.run_id)
        await store.close()
        return [finding.code.value for finding in verified.findings]

    monkeypatch.setattr(durability, "LISTED_BY_STAKES_SINCE", KERNEL_VERSION + 1)
    assert play(found("MISSING_INFO")) == []
    assert play(found("")) == play(found(HALTED)) == ["INDEX_DIFFERS"]


def test_a_run_that_is_listed_and_has_no_turn_is_missing(tmp_path: Path) -> None:
    async def look() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.journal.append("run", b"turn", after=-1, listing=RunListing(0))
        with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
            connection.execute("DELETE FROM turns")
        entry = await store.catalogue.entry("run")
        assert entry is not None
        assert entry.turns == 0
        with pytest.raises(InvariantBroken, match="RUN_MISSING"):
            await Archive(store).told("run")
        await store.close()

    play(look())
