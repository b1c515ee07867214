"""Custody: a run that the log of heads knows more of is not gone on with, and what no key vouches for is not loaded."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from remit.assemble import system_on
from remit.backend.embedded.disk.database import DATABASE
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import InvariantBroken, RemitError
from remit.core.journal.arrivals import SourcesAccepted
from remit.core.journal.codec import decode_turn, encode_redacted, encode_turn, hash_turn
from remit.core.journal.signing import Signer, sign_redaction
from remit.core.journal.storage import RUN_NOT_VOUCHED, STORE_BEHIND_ITS_LOG
from remit.core.journal.turn import RedactedTurn
from remit.core.record import replace
from remit.core.run.signals import Signal
from remit.orchestrate.history.custody import Custody
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import approval, calls, request, scripted, signal, systems, unaudited
from tests.unit.orchestrate.stage import play

DONE: list[str] = []


@tool(effect="write")
def pay(to: str) -> str:
    """Pay a person, which cannot be done twice."""
    DONE.append(to)
    return f"paid {to}"


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


KIT = (calls("pay", to="eve"), {"text": "done"})


async def restored(home: Path) -> tuple[str, str]:
    """A run whose payment was made, in a store whose database was put back to before it; gives run and packet."""
    async with systems(EmbeddedStore.open(home)) as (system,):
        asked = await system.run(request(), scripted(*KIT, tools=[pay]))
        assert asked.waiting_for is not None
        (packet_id,) = asked.waiting_for.packet_ids
        with closing(sqlite3.connect(home / DATABASE)) as connection:
            connection.execute("VACUUM INTO ?", (str(home / "backup"),))
        await system.signal(approval(packet_id))
        assert (await system.result(asked.run_id)).terminal_code is not None
    shutil.move(home / "backup", home / DATABASE)
    return asked.run_id, packet_id


async def refused_all(home: Path, run_id: str, packet_id: str) -> list[str]:
    """With which codes everything that would go on with a run, or add to it, is refused."""
    codes = []
    async with unaudited(EmbeddedStore.open(home)) as (system,):
        kit = scripted(*KIT, tools=[pay])
        for act in (
            lambda: system.resume(run_id, kit=kit),
            lambda: system.signal(approval(packet_id), kit=kit),
            lambda: system.signal(approval(packet_id, Signal.REJECT)),
            lambda: system.signal(signal(Signal.CANCEL, run_id)),
            lambda: system.signal(signal(Signal.PAUSE, run_id)),
            lambda: system.note(run_id, "ada", "key", "1"),
        ):
            try:
                await act()
            except RemitError as error:
                codes.append(str(error.code))
            else:
                codes.append("")
        await system.settle()
    return codes


def test_nothing_is_done_to_a_run_of_which_later_turns_were_signed(tmp_path: Path) -> None:
    async def story() -> None:
        run_id, packet_id = await restored(tmp_path)
        assert set(await refused_all(tmp_path, run_id, packet_id)) == {STORE_BEHIND_ITS_LOG}
        assert DONE == ["eve"]

    play(story())


def test_a_run_that_went_another_way_than_was_signed_is_not_gone_on_with_either(tmp_path: Path) -> None:
    async def story() -> None:
        run_id, packet_id = await restored(tmp_path)
        log = (tmp_path / "heads.log").read_bytes()
        (tmp_path / "heads.log").write_bytes(b"".join(log.splitlines(True)[:2]))
        async with unaudited(EmbeddedStore.open(tmp_path)) as (system,):
            for _ in range(3):
                await system.signal(signal(Signal.FEEDBACK, run_id, text="hm"))
            kept = await system.store.catalogue.entry(run_id)
            assert kept is not None
        (tmp_path / "heads.log").write_bytes(log)
        assert set(await refused_all(tmp_path, run_id, packet_id)) == {STORE_BEHIND_ITS_LOG}

    play(story())


def test_without_a_look_at_the_log_the_payment_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def blind(self: Custody, state: object, run_id: str) -> None:
        """The mutant: the log is not compared with the journal."""

    async def story() -> None:
        run_id, packet_id = await restored(tmp_path)
        monkeypatch.setattr(Custody, "expect_whole", blind)
        await refused_all(tmp_path, run_id, packet_id)
        assert DONE == ["eve", "eve"]

    play(story())


async def vouched(home: Path, run_id: str, *signers: str) -> str:
    """The code with which a run's code is refused; empty where it may be loaded."""
    store = EmbeddedStore.open_to_read(home)
    try:
        await Custody(store.journal, store.catalogue, store.log, lambda: frozenset(signers)).expect_vouched(run_id)
    except RemitError as error:
        return str(error.code)
    finally:
        await store.close()
    return ""


def changed(home: Path, query: str, *values: object) -> None:
    with closing(sqlite3.connect(home / DATABASE)) as connection, connection:
        connection.execute(query, values)


def test_code_is_loaded_only_where_an_accepted_signer_vouches_for_the_turn_that_names_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(EmbeddedStore.open(tmp_path)) as (system,):
            run_id = (await system.run(request(), scripted(*KIT, tools=[pay]))).run_id
            store = system.store
            assert isinstance(store, EmbeddedStore)
            did, turns = store.did, await store.journal.read(run_id)
        assert await vouched(tmp_path, run_id, did) == ""
        assert await vouched(tmp_path, run_id, "did:key:zOther") == RUN_NOT_VOUCHED
        # A process without the key accepts other code in the name of a person.
        last = decode_turn(turns[-1])
        forged = replace(last, seq=last.seq + 1, arrival=SourcesAccepted("ada", ()), decisions=())
        query = "INSERT INTO turns (run_no, seq, data) SELECT run_no, ?, ? FROM runs"
        changed(tmp_path, query, forged.seq, encode_turn(forged))
        assert await vouched(tmp_path, run_id, did) == RUN_NOT_VOUCHED
        changed(tmp_path, "DELETE FROM turns WHERE seq = ?", forged.seq)
        assert await vouched(tmp_path, run_id, did) == ""
        # Or writes another manifest into the place of the first turn, as a redaction of their own.
        stranger, redacted = (
            Signer.generate(),
            RedactedTurn(hash_turn(turns[0]), turns[0], "ada", "a secret", 1, "", b""),
        )
        forged_redaction = encode_redacted(sign_redaction(stranger, run_id, 0, redacted))
        changed(tmp_path, "UPDATE turns SET data = ? WHERE seq = 0", forged_redaction)
        assert await vouched(tmp_path, run_id, did) == RUN_NOT_VOUCHED
        changed(tmp_path, "UPDATE turns SET data = ? WHERE seq = 0", turns[0])
        changed(tmp_path, "UPDATE heads SET signature = x'00'")
        assert await vouched(tmp_path, run_id, did) == RUN_NOT_VOUCHED
        changed(tmp_path, "DELETE FROM heads")
        assert await vouched(tmp_path, run_id, did) == RUN_NOT_VOUCHED

    play(story())


def test_a_command_that_only_looks_loads_nothing_whatever_key_signed(tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(EmbeddedStore.open(tmp_path)) as (system,):
            run_id = (await system.run(request(), scripted(*KIT, tools=[pay]))).run_id
        looking = system_on(EmbeddedStore.open_to_read(tmp_path), signers=frozenset)
        with pytest.raises(RemitError, match=RUN_NOT_VOUCHED):
            await looking.archive.changed_sources(run_id)
        await looking.close()

    play(story())


def test_turns_that_are_listed_and_gone_are_told_as_damage(tmp_path: Path) -> None:
    async def story() -> None:
        async with systems(EmbeddedStore.open(tmp_path)) as (system,):
            run_id = (await system.run(request(), scripted(*KIT, tools=[pay]))).run_id
        store = EmbeddedStore.open_to_read(tmp_path)
        last = len(await store.journal.read(run_id)) - 1
        changed(tmp_path, "DELETE FROM turns")
        with pytest.raises(InvariantBroken, match=f"run {run_id} is listed with turn") as refused:
            await Custody(store.journal, store.catalogue, store.log).beyond(run_id, last)
        assert refused.value.code == "JOURNAL_CHAIN_BROKEN"
        await store.close()

    play(story())


def test_a_run_that_never_began_has_nothing_to_be_vouched_for(tmp_path: Path) -> None:
    async def story() -> None:
        system = system_on(EmbeddedStore.open(tmp_path), signers=frozenset)
        # So says a parent that is cancelled before its child was begun.
        await system._children.end("nobody", "signal")
        await system.close()

    play(story())
