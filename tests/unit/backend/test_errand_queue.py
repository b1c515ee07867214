"""Errands, claims and dead letters on JetStream, as several processes see them."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from remit.backend.cluster.layout import CHUNK_BYTES, claim_subject, errand_subject, report_subject
from remit.backend.cluster.logs import tail
from remit.backend.cluster.logs.entries import Mark
from remit.backend.cluster.server.jetstream import JetMessage
from remit.backend.cluster.server.link import entry
from remit.backend.cluster.work import errand_queue
from remit.backend.folded.log import RUN
from remit.core.failure import RequestRejected
from remit.core.journal.codec import encode_record
from remit.core.journal.commands import CallTool
from remit.core.journal.queued import NO_ERRAND, Came, Claim, Claimed, ClaimWord, ErrandName, Lane, StoredReport
from remit.core.journal.storage import START, RunListing, Warrant
from remit.testing.conformance.processes.dispatch import a_call
from tests.e2e.house import until
from tests.nats_server import clear, fall_silent, opened

LANE, NAME = Lane("tool", "a tool.of dots", "v"), ErrandName("run.1", "1.1")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    clear()
    monkeypatch.setattr(errand_queue, "PULL_S", 0.1)
    monkeypatch.setattr(errand_queue, "LOOK_S", 0.1)


def test_an_errand_and_its_report_have_any_length_and_are_forgotten_together(tmp_path: Path) -> None:
    async def story() -> None:
        here, there = [await asyncio.to_thread(opened, tmp_path) for _ in range(2)]
        long = b"x" * (CHUNK_BYTES + 1)
        await there.queue.prepare(LANE)
        assert await there.queue.next_errand(LANE) is None
        waiting = asyncio.ensure_future(here.queue.carried(NAME, LANE, long, is_new=True))
        queued = await there.queue.next_errand(LANE)
        assert queued is not None
        assert (queued.name, queued.data) == (NAME, long)
        assert not await there.queue.is_reported(NAME)
        await there.queue.keep(queued.receipt)
        assert await there.queue.report(NAME, Came.DONE, long)
        assert not await there.queue.report(NAME, Came.DONE, b"again")
        await there.queue.settle(queued.receipt)
        assert await waiting == StoredReport(Came.DONE, long)
        # Who takes the run up finds it, and sends nothing.
        assert await there.queue.carried(NAME, LANE, b"", is_new=False) == StoredReport(Came.DONE, long)
        await here.queue.forget(NAME.run_id, {})
        assert not await there.queue.is_reported(NAME)
        for store in (here, there):
            await store.close()

    asyncio.run(story())


def test_an_errand_that_a_stranger_kept_as_a_dead_letter_is_sent_again_by_nobody(tmp_path: Path) -> None:
    async def story() -> None:
        here, stranger = [await asyncio.to_thread(opened, tmp_path / name) for name in ("ours", "theirs")]
        await stranger.queue.letters.keep(NAME, LANE, b"pay me", "ERRAND_POISON", "send it again")
        await here.queue.letters.keep(NAME, LANE, b"ours", "ERRAND_POISON", "it kills")
        forged, true = await here.queue.letters.listed()
        assert (forged.code, forged.name.run_id, forged.name.attempt) == ("SIGNER_UNKNOWN", NAME.run_id, 0)
        assert "send it again" in forged.why
        with pytest.raises(RequestRejected, match="LETTER_EMPTY"):
            await here.queue.letters.replay(forged.number)
        assert (await here.queue.letters.replay(true.number)).name.command_id == NAME.command_id
        for store in (here, stranger):
            await store.close()

    asyncio.run(story())


def test_what_is_handed_back_comes_again_and_what_was_withdrawn_does_not(tmp_path: Path) -> None:
    async def story() -> None:
        here = await asyncio.to_thread(opened, tmp_path)
        await here.queue.prepare(LANE)
        waiting = asyncio.ensure_future(here.queue.carried(NAME, LANE, b"one", is_new=True))
        first = await here.queue.next_errand(LANE)
        assert first is not None
        await here.queue.hand_back(first.receipt)
        second = await here.queue.next_errand(LANE)
        assert second is not None
        assert second.deliveries == 2
        await here.queue.withdraw(NAME, LANE)
        await here.queue.withdraw(NAME, LANE)
        assert (await waiting).came is Came.WITHDRAWN
        await here.queue.hand_back(second.receipt)
        assert await here.queue.next_errand(LANE) is None
        await here.close()

    asyncio.run(story())


def test_messages_that_no_worker_of_ours_wrote_are_read_as_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        here = await asyncio.to_thread(opened, tmp_path)
        await here.queue.prepare(LANE)
        subject = errand_subject(NAME, LANE)
        await here.link.write(JetMessage(subject, b"bare"))
        await here.link.write(JetMessage(subject, b"", {"Remit-Errand": "?", "Remit-Digest": "no digest"}))
        await here.link.write(JetMessage("agent.dead.wire.1", b"", {"Remit-Code": "WIRE_MALFORMED"}))
        await here.link.write(JetMessage("agent.dead.else", b"?"))
        for data in (b"bare", b""):
            queued = await here.queue.next_errand(LANE)
            assert queued is not None
            assert (queued.name, queued.data) == (NO_ERRAND, data)
        assert [letter.code for letter in await here.queue.letters.listed()] == ["WIRE_MALFORMED"]
        await here.link.write(JetMessage(report_subject(NAME), b"", {"Remit-Came": "with the wind"}))
        assert (await here.queue.carried(NAME, LANE, b"", is_new=False)).came is Came.LOST
        await here.close()

    asyncio.run(story())


def test_the_writer_of_the_next_word_about_a_call_decides(tmp_path: Path) -> None:
    async def story() -> None:
        here, there = [await asyncio.to_thread(opened, tmp_path) for _ in range(2)]
        ours, theirs = here.claims, there.claims
        assert await ours.claim("run", "1.1") is Claimed.GRANTED
        assert await ours.claim("run", "1.1") is Claimed.GRANTED
        assert await theirs.claim("run", "1.1") is Claimed.TAKEN
        assert not await theirs.revoke("run", "1.1")
        assert await theirs.claim("run", "1.1", attempt=0) is Claimed.GRANTED
        assert await theirs.last("run", "1.1") == Claim(ClaimWord.CLAIMED, there.link.worker, 2)
        assert await ours.revoke("run", "1.2")
        assert await ours.revoke("run", "1.2")
        assert await theirs.claim("run", "1.2") is Claimed.REVOKED
        await ours.offer("run", "1.2")
        assert await theirs.claim("run", "1.2") is Claimed.GRANTED
        # What another has revoked since is not offered by who knew only its own word.
        assert await ours.revoke("run", "1.3")
        assert await theirs.revoke("run", "1.3")
        await ours.offer("run", "1.3")
        assert await ours.claim("run", "1.3") is Claimed.REVOKED
        for store in (here, there):
            await store.close()

    asyncio.run(story())


def signature_of(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that a copy of a message needs to be believed."""
    return {name: text for name, text in headers.items() if name in ("Remit-Signer", "Remit-Signature")}


def test_what_is_not_signed_by_the_deployment_is_not_believed_and_leaves_a_call_in_doubt(tmp_path: Path) -> None:
    async def story() -> None:
        here = await asyncio.to_thread(opened, tmp_path / "ours")
        hostile = await asyncio.to_thread(opened, tmp_path / "theirs")
        assert await hostile.claims.claim("run", "1.1") is Claimed.GRANTED
        assert await here.claims.claim("run", "1.1", attempt=9) is Claimed.TAKEN
        assert not await here.claims.revoke("run", "1.1")
        # A copy of what was once signed is written behind the claim.
        assert await here.claims.revoke("run", "1.2")
        copied = await here.link.call(here.link.jet.last(claim_subject("run", "1.2")))
        assert copied is not None
        await here.claims.offer("run", "1.2")
        assert await here.claims.claim("run", "1.2") is Claimed.GRANTED
        await hostile.link.write(JetMessage(copied.subject, copied.data, signature_of(copied.headers)))
        assert not await here.claims.revoke("run", "1.2")
        assert await here.claims.claim("run", "1.2", by="another") is Claimed.TAKEN
        assert await hostile.queue.report(NAME, Came.DONE, b"made up")
        assert (await here.queue.carried(NAME, LANE, b"", is_new=False)).came is Came.LOST
        await here.queue.prepare_words()
        await hostile.queue.late(NAME, b"made up")
        assert await here.queue.next_late() is None
        # Until the owner says that this key counts.
        here.signet.keyring.believe([hostile.key.signer.did])
        assert (await here.queue.carried(NAME, LANE, b"", is_new=False)).data == b"made up"
        forged = {"Remit-Signer": here.key.signer.did, "Remit-Signature": "no signature"}
        assert not here.signet.is_believed("agent.errand.x", b"", forged)
        for store in (here, hostile):
            await store.close()

    asyncio.run(story())


def test_a_call_that_is_ordered_again_may_begin_again_by_the_turn_that_orders_it(tmp_path: Path) -> None:
    async def story() -> None:
        here, there = [await asyncio.to_thread(opened, tmp_path) for _ in range(2)]
        call = a_call("0.1", mutating=True)
        assert isinstance(call, CallTool)
        warrant = Warrant(await here.leases.take("run") or 0)
        place = await here.journal.append("run", b"0", START, listing=RunListing(1), warrant=warrant, orders=[call])
        assert await there.claims.revoke("run", call.id)
        await here.journal.append("run", b"1", place, warrant=warrant, orders=[call])
        assert await there.claims.claim("run", call.id) is Claimed.GRANTED
        for store in (here, there):
            await store.close()

    asyncio.run(story())


def test_words_about_a_call_count_from_the_turn_that_orders_it_also_where_that_was_written_anew_or_elsewhere(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        here, there = [await asyncio.to_thread(opened, tmp_path) for _ in range(2)]
        call = a_call("1.1", mutating=True)
        # A word that stands before the turn.
        assert await there.claims.claim("run", call.id) is Claimed.GRANTED
        warrant = Warrant(await here.leases.take("run") or 0)
        place = await here.journal.append("run", b"words", START, listing=RunListing(1), warrant=warrant)
        await here.journal.append("run", b"more words", place, warrant=warrant)
        assert await there.claims.last("run", call.id) is None
        assert await here.claims.claim("run", call.id, by="us") is Claimed.GRANTED
        assert await there.claims.claim("run", call.id) is Claimed.TAKEN
        # Its turn is written anew behind the claim, and stands where it stood.
        for number in (0, 1):
            await here.redactions._rewrite("run", number, b"")
        fresh = await asyncio.to_thread(opened, tmp_path)
        for store in (here, there, fresh):
            assert await store.claims.claim("run", call.id) is Claimed.TAKEN
            assert not await store.claims.revoke("run", call.id)
        for odd in ("", "x", "9" * 99 + ".1", "-1.1", "7.1"):
            assert await fresh.log_copy.ordered_at("run", odd) == 0
        for store in (here, there, fresh):
            await store.close()

    asyncio.run(story())


def test_every_word_counts_about_a_call_of_a_run_whose_turns_this_process_may_not_all_know(tmp_path: Path) -> None:
    async def story() -> None:
        here, other = [await asyncio.to_thread(opened, tmp_path / name) for name in ("ours", "theirs")]
        assert await here.claims.claim("run", "0.1", by="early") is Claimed.GRANTED
        place = await here.journal.append("run", b"0", START, listing=RunListing(1))
        assert await here.log_copy.ordered_at("run", "0.1") == place
        # It may be a turn that counts for others, and by which they count the turns behind it.
        await other.link.write(entry(RUN + "run", encode_record(Mark("x")), after=place))
        await here.log_copy.refresh()
        assert await here.log_copy.ordered_at("run", "0.1") == 0
        assert await here.claims.claim("run", "0.1") is Claimed.TAKEN
        for store in (here, other):
            await store.close()

    asyncio.run(story())


def test_a_process_that_folds_no_logs_keeps_few_entries_and_knows_all_of_them_when_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setattr(tail, "UNREAD_MAX", 5)
        here, performer = [await asyncio.to_thread(opened, tmp_path) for _ in range(2)]
        ear = performer.link._tail
        for round_ in range(3):
            for number in range(10):
                await here.journal.append(f"run-{round_}-{number}", b"0", START, listing=RunListing(1))
            await until(lambda: ear._is_paused, "it hears nothing more")
            assert len(ear._entries) == 0
            await asyncio.sleep(0.1)
            ear.begin_again()  # As where its connection was lost.
            assert ear._subscription is None
            for _ in range(2):
                await performer.log_copy.refresh()
                assert len(performer.log_copy.journal.every_run()) == (round_ + 1) * 10
        for store in (here, performer):
            await store.close()

    asyncio.run(story())


def test_a_claim_on_a_call_of_a_run_that_was_removed_and_is_there_again_still_counts(tmp_path: Path) -> None:
    async def story() -> None:
        here = await asyncio.to_thread(opened, tmp_path)
        for _ in range(2):
            place = await here.journal.append("run", b"0", START, listing=RunListing(1))
            assert await here.claims.claim("run", "0.1", by="us") is Claimed.GRANTED
            assert place
            await here.retention.delete("run")
        await here.journal.append("run", b"0", START, listing=RunListing(1))
        assert await here.claims.claim("run", "0.1", by="another") is Claimed.TAKEN
        await here.close()

    asyncio.run(story())


def test_runs_are_orphans_whose_holder_is_gone_and_no_others(tmp_path: Path) -> None:
    async def story() -> None:
        gone = await asyncio.to_thread(opened, tmp_path, lease_ms=1_000)
        here = await asyncio.to_thread(opened, tmp_path)
        assert await gone.leases.take("left")
        assert await gone.leases.take("let go")
        assert await here.leases.take("ours")
        assert await here.queue.orphans() == []
        await gone.leases.release("let go", gone.log_copy.held_under("let go"))
        # As one that is killed: it says nothing when it goes.
        fall_silent(gone.link)
        await gone.link.call(gone.link.jet.purge(f"remit.alive.{gone.link.worker}", stream="AGENT_ALIVE"))
        assert await here.queue.orphans() == ["left"]
        for store in (here, gone):
            await store.close()

    asyncio.run(story())
