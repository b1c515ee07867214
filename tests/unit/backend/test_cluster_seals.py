"""What a client of the server writes without a key that counts changes nothing of what any process reads, wherever it is put."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from remit.backend.cluster.keys.believed_keys import REVOKED_MS, Keyring
from remit.backend.cluster.keys.signet import BODY, SIGNATURE, SINCE
from remit.backend.cluster.layout import NONCE, log_subject
from remit.backend.cluster.logs.entries import GONE, Answered, Gone, Left, Mark, Turned
from remit.backend.cluster.server.jetstream import JetMessage, Stored
from remit.backend.cluster.server.link import entry
from remit.backend.cluster.store import ClusterStore
from remit.backend.cluster.work import errand_queue
from remit.backend.embedded.owner.key_file import FileKey
from remit.backend.folded.log import HALT_LOG, INBOX, RECEIPTS, RUN, TENANT, Charged, Written
from remit.core.journal.codec import encode_record
from remit.core.journal.queued import DeadLetter, Lane
from remit.core.journal.signing import Signer
from remit.core.journal.storage import START, AppendConflict, RunListing, StoreUnusable, Topic
from remit.core.limits.quota import Charge
from remit.core.record import Record, digest_of
from remit.observe.checkup import CheckState
from remit.orchestrate.gateway.key_room import ROLES
from remit.wire.credentials import KeyEntry, issue, revoke
from tests.e2e.house import until
from tests.nats_server import clear, fall_silent, opened

DAY_MS = 24 * 3_600_000


@pytest.fixture(autouse=True)
def _empty() -> None:
    clear()


@asynccontextmanager
async def store_in(home: Path) -> AsyncIterator[ClusterStore]:
    store = await asyncio.to_thread(opened, home)
    try:
        yield store
    finally:
        await store.close()


async def everything(store: ClusterStore, runs: tuple[str, ...] = ("one", "two")) -> object:
    """All that a process reads from the logs."""
    turns = {run_id: list(await store.journal.read(run_id)) for run_id in runs}
    inbox = [(one.run_id, one.data) for one in await store.inbox.pending(after=0)]
    held = {run_id: store.log_copy.held_under(run_id) for run_id in runs}
    halts = list(store.halts.since(0))
    listed = [one.run_id for one in await store.catalogue.entries()]
    receipts = store.log_copy.receipts
    charges = store.log_copy.journal.ledger.charge_of("one")
    return turns, inbox, held, halts, listed, vars(receipts), charges


async def kept_in(store: ClusterStore, subject: str) -> list[Stored]:
    """Every message of a subject."""
    found, last = [], 0
    while (stored := await store.link.call(store.link.jet.following(subject, last))) is not None:
        found.append(stored)
        last = stored.seq
    return found


async def letters_of(store: ClusterStore, count: int) -> list[DeadLetter]:
    """The dead letters, once there are so many."""
    found = list[DeadLetter]()
    async with asyncio.timeout(10):
        for _ in range(1_000):
            found = await store.queue.letters.listed()
            if len(found) >= count:
                break
            await asyncio.sleep(0.01)
    return found


async def put(store: ClusterStore, subject: str, data: bytes, headers: Mapping[str, str]) -> None:
    """Publish as any client can: without an expectation, and with a nonce of its own."""
    own = {name: text for name, text in headers.items() if not name.startswith("Nats-")}
    message = JetMessage(subject, data, own | {NONCE: "feedfacefeedface"})
    await store.link.call(store.link.jet.write(message))


async def peopled(store: ClusterStore) -> None:
    """Two runs with turns, words left for both, and a holder."""
    for run_id in ("one", "two"):
        place = START
        for number in range(3):
            place = await store.journal.append(
                run_id, f"{run_id} {number}".encode(), place, listing=None if number else RunListing(1)
            )
        await store.inbox.put(run_id, b"hello")


# What could be said in each log by one who may not.
ENTRIES: dict[str, tuple[str, Record]] = {
    "a turn": (RUN + "one", Turned(1)),
    "a mark": (RUN + "one", Mark("me")),
    "a first turn": (RUN + "three", Turned(1, listing=RunListing(1))),
    "an approval": (INBOX + "one", Left(1)),
    "an answer": (INBOX + "one", Answered(8, "CODE", "no", 1)),
    "a deletion": (GONE + "one", Gone("one")),
    "a halt": (HALT_LOG, Written(b"{}")),
    "a charge": (TENANT + "local", Charged(Charge("one", "local", 1, (), is_open=True))),
    "a receipt": (RECEIPTS, Mark("me")),
}


def unsigned(store: ClusterStore, message: JetMessage) -> JetMessage:
    return message


def signed_by_a_stranger(store: ClusterStore, message: JetMessage) -> JetMessage:
    stranger = opened(store.key._home.parent / "stranger")
    try:
        return stranger.link._signed_entry(message)
    finally:
        stranger.let_go()


def signed_and_altered(store: ClusterStore, message: JetMessage) -> JetMessage:
    """The signature is of ours; what it says is not."""
    ours = store.link._signed_entry(message)
    return replace(ours, headers={**ours.headers, BODY: "00"})


def moved_in_time(store: ClusterStore, message: JetMessage) -> JetMessage:
    ours = store.link._signed_entry(message)
    return replace(ours, headers={**ours.headers, SINCE: "999"})


def signed_with_nonsense(store: ClusterStore, message: JetMessage) -> JetMessage:
    ours = store.link._signed_entry(message)
    return replace(ours, headers={**ours.headers, SIGNATURE: "no hex"})


def of_another_log(store: ClusterStore, message: JetMessage) -> JetMessage:
    """Ours, written for another subject."""
    ours = store.link._signed_entry(replace(message, subject=log_subject(RUN + "elsewhere")))
    return replace(ours, subject=message.subject)


FORGERIES = (
    unsigned,
    signed_by_a_stranger,
    signed_and_altered,
    moved_in_time,
    signed_with_nonsense,
    of_another_log,
)


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
@pytest.mark.parametrize("what", ENTRIES)
def test_what_none_has_signed_who_may_changes_nothing_of_any_log(
    what: str, forge: Callable[[ClusterStore, JetMessage], JetMessage], tmp_path: Path
) -> None:
    async def story() -> None:
        async with store_in(tmp_path / "ours") as store:
            await peopled(store)
            before = await everything(store)
            name, said = ENTRIES[what]
            whole = entry(name, encode_record(said), after=store.log_copy.place(name), bulk=b"made up")
            forged = await asyncio.to_thread(forge, store, whole)
            await put(store, forged.subject, forged.data, forged.headers)
            assert await everything(store) == before
            async with store_in(tmp_path / "ours") as later:
                assert await everything(later) == before
                (problem,) = [one for one in await later.checkup.look() if one.state is CheckState.PROBLEM]
                assert problem.code == "STORE_ENTRIES_REFUSED"
            # The next writer there goes on behind it.
            await store.journal.append("one", b"one 3", store.log_copy.stands(RUN + "one"))
            await store.inbox.put("one", b"again")
            assert list(await store.journal.read("one"))[-1] == b"one 3"

    asyncio.run(story())


def test_a_copy_of_what_was_signed_counts_nowhere(tmp_path: Path) -> None:
    async def story() -> None:
        async with store_in(tmp_path) as store:
            await peopled(store)
            before = await everything(store)
            for stored in await kept_in(store, "agent.log.>"):
                for subject in (stored.subject, log_subject(RUN + "two"), log_subject(INBOX + "two")):
                    await put(store, subject, stored.data, stored.headers)
            assert await everything(store) == before
            async with store_in(tmp_path) as later:
                assert await everything(later) == before
                found = {one.code for refused in later.log_copy.refused.values() for one in refused}
                assert found == {"MESSAGE_REPEATED"}
                assert "count for nothing" in await later.log.refused("one")
                assert not await later.log.refused("three")

    asyncio.run(story())


def test_what_was_signed_of_a_run_that_was_removed_does_not_bring_it_back(tmp_path: Path) -> None:
    async def story() -> None:
        async with store_in(tmp_path) as store:
            await peopled(store)
            copies = await kept_in(store, "agent.log.*.one")
            await store.retention.delete("one")
            for stored in copies:
                await put(store, stored.subject, stored.data, stored.headers)
            async with store_in(tmp_path) as later:
                for one in (store, later):
                    assert list(await one.journal.read("one")) == []
                    assert [run.run_id for run in await one.catalogue.entries()] == ["two"]
            # One that is brought back from a file is written anew.
            await store.journal.append("one", b"0", START, listing=RunListing(1))
            async with store_in(tmp_path) as later:
                assert list(await later.journal.read("one")) == [b"0"]

    asyncio.run(story())


def test_bytes_that_are_not_those_of_their_entry_are_read_as_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with store_in(tmp_path) as store:
            left = entry(INBOX + "one", encode_record(Left(1)), after=START, bulk=b"yes")
            ours = store.link._signed_entry(left)
            await put(store, ours.subject, b"made up", ours.headers)
            turn = store.link._signed_entry(entry(RUN + "one", encode_record(Turned(1)), after=START, bulk=b"0"))
            await put(store, turn.subject, b"made up", turn.headers)
            assert await store.inbox.pending(after=0) == []
            with pytest.raises(Exception, match="TURN_FOREIGN"):
                await store.journal.read("one")

    asyncio.run(story())


def test_what_is_put_aside_is_a_dead_letter_with_its_code_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with store_in(tmp_path) as store, store_in(tmp_path) as other:
            for number in range(3):
                await put(store, "agent.log.inbox.one", b"%d" % number, {})
                await put(store, "agent.log.garbage", b"%d" % number, {})
            for one in (store, other):
                await one.log_copy.refresh()
            letters = await letters_of(store, 6)
            assert {letter.code for letter in letters} == {"MESSAGE_UNSIGNED"}
            assert {letter.lane.name for letter in letters} == {"agent.log.inbox.one", "agent.log.garbage"}

    asyncio.run(story())


def test_a_driver_goes_on_behind_whatever_stands_in_its_way(tmp_path: Path) -> None:
    async def story() -> None:
        async with store_in(tmp_path) as store, store_in(tmp_path) as rival:
            place = await store.journal.append("one", b"0", START, listing=RunListing(1))
            for number in range(1, 4):
                for stored in await kept_in(rival, "agent.log.run.one"):
                    await put(rival, stored.subject, stored.data, stored.headers)
                place = await store.journal.append("one", b"%d" % number, place)
            assert list(await rival.journal.read("one")) == [b"0", b"1", b"2", b"3"]
            # A turn of another driver is still told as a conflict.
            await rival.journal.append("one", b"4", rival.log_copy.stands(RUN + "one"))
            with pytest.raises(AppendConflict):
                await store.journal.append("one", b"mine", place)

    asyncio.run(story())


# Keys.


class House:
    """A deployment's key, and others that it admits and revokes."""

    def __init__(self, home: Path) -> None:
        self.root, self.worker, self.other = (self._key(home / name) for name in ("root", "worker", "other"))
        self.ring = Keyring(self.root)
        self.ring.believe([self.worker.signer.did, self.other.signer.did])

    def _key(self, home: Path) -> FileKey:
        home.mkdir(parents=True)
        key = FileKey(home)
        assert key.signer.did
        return key

    def admits(self, role: str, *, issuer: Signer | None = None, whom: FileKey | None = None) -> bytes:
        stated = issue(
            issuer or self.root.signer,
            (whom or self.worker).signer.did,
            capability_id="x",
            tenant="*",
            may=ROLES[role],
            not_before_ms=0,
            expires_at_ms=DAY_MS,
        )
        return encode_record(KeyEntry(statement=stated))

    def revokes(self, whom: FileKey, *, issuer: Signer | None = None, at_ms: int = 1_000) -> bytes:
        said = revoke(issuer or self.root.signer, whom.signer.did, at_ms=at_ms, why="stolen")
        return encode_record(KeyEntry(revocation=said))


WORKER_SENDS = ("agent.report.r.c.1", "agent.claim.r.c", "agent.late.r.c")
DRIVER_SENDS = (
    "agent.log.run.r",
    "agent.log.inbox.r",
    "agent.log.halts.=e",
    "agent.errand.tool.t.v.r.c.1",
    "agent.due.r",
)


@pytest.mark.parametrize("role", ["tools", "model"])
def test_a_key_that_was_admitted_for_a_part_is_believed_for_that_part_alone(role: str, tmp_path: Path) -> None:
    house = House(tmp_path)
    did, performs = house.worker.signer.did, {"tools": "tool", "model": "model"}[role]
    for subject in (*WORKER_SENDS, *DRIVER_SENDS):
        assert house.ring.objection(did, subject, 1) == ""
    assert house.ring.performs(did) is None
    house.ring.hear(house.admits(role))
    assert [house.ring.objection(did, subject, 1) for subject in WORKER_SENDS] == [""] * 3
    assert {house.ring.objection(did, subject, 1) for subject in DRIVER_SENDS} == {"CAPABILITY_LACKING"}
    assert house.ring.performs(did) == frozenset({performs})
    assert house.ring.objection(did, WORKER_SENDS[0], DAY_MS) == "CAPABILITY_EXPIRED"
    # It admits and revokes no key, and says nothing of the key of the deployment.
    house.ring.hear(house.admits("model", issuer=house.worker.signer, whom=house.root))
    house.ring.hear(house.revokes(house.other, issuer=house.worker.signer))
    house.ring.hear(house.revokes(house.root, issuer=house.worker.signer))
    for key in (house.root, house.other):
        assert house.ring.objection(key.signer.did, "agent.log.run.r", 1) == ""


def test_a_revoked_key_is_believed_nothing_but_what_a_log_had_taken_in_before(tmp_path: Path) -> None:
    house = House(tmp_path)
    did = house.worker.signer.did
    house.ring.hear(house.revokes(house.worker, at_ms=1_000))
    for at_ms in (0, 1_000, DAY_MS):
        assert house.ring.objection(did, "agent.report.r.c.1", at_ms) == "SIGNER_REVOKED"
    assert house.ring.objection(did, "agent.log.run.r", 1_000 + REVOKED_MS, kept=True) == ""
    assert house.ring.objection(did, "agent.log.run.r", 1_001 + REVOKED_MS, kept=True) == "SIGNER_REVOKED"
    # A later word moves nothing to a later time, an earlier one to an earlier.
    house.ring.hear(house.revokes(house.worker, at_ms=DAY_MS))
    assert house.ring.objection(did, "agent.log.run.r", 1_001 + REVOKED_MS, kept=True) == "SIGNER_REVOKED"
    house.ring.hear(house.revokes(house.worker, at_ms=1))
    assert house.ring.objection(did, "agent.log.run.r", 2 + REVOKED_MS, kept=True) == "SIGNER_REVOKED"
    assert house.ring.ended_code(did, 1) == "SIGNER_REVOKED"
    assert house.ring.ended_code(house.root.signer.did, 1) == ""


def test_words_about_keys_that_are_not_signed_by_whom_they_name_say_nothing(tmp_path: Path) -> None:
    house = House(tmp_path)
    stated = replace_record(house.admits("tools"), b"agent.late")
    for data in (b"garbage", b"", stated, house.revokes(house.worker, issuer=Signer.generate())):
        house.ring.hear(data)
    assert house.ring.objection(house.worker.signer.did, "agent.log.run.r", 1) == ""
    assert house.ring.objection("", "agent.log.run.r", 1) == "SIGNER_UNKNOWN"
    assert house.ring.objection(Signer.generate().did, "agent.log.run.r", 1) == "SIGNER_UNKNOWN"


def replace_record(data: bytes, word: bytes) -> bytes:
    """The same record with another word in it, of the same length."""
    assert word in data
    return data.replace(word, word[::-1], 1)


def test_a_process_hears_within_moments_that_its_key_was_revoked_and_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with store_in(tmp_path / "root") as root, store_in(tmp_path / "worker") as worker:
            worker.signet.keyring.believe([root.key.signer.did])
            worker.queue.expect_admitted()
            said = revoke(root.key.signer, worker.key.signer.did, at_ms=1, why="stolen")
            from remit.backend.cluster.nats_broker import KeyShelf

            await KeyShelf(root.link).keep("revoked worker", encode_record(KeyEntry(revocation=said)))
            await until(worker.signet.own_objection, "the worker knows")
            with pytest.raises(StoreUnusable, match="SIGNER_REVOKED"):
                worker.queue.expect_admitted()

    asyncio.run(story())


def test_words_of_a_model_are_heard_from_those_alone_who_may_drive_its_run(tmp_path: Path) -> None:
    async def story() -> None:
        async with store_in(tmp_path / "ours") as store, store_in(tmp_path / "theirs") as stranger:
            heard: list[bytes] = []
            store.bell.listen(Topic.CHUNKS, heard.append)
            stranger.bell.ring(Topic.CHUNKS, b"forged")
            await store.link.call(store.link.jet.client.publish("remit.ring.chunks", b"unsigned"))
            store.bell.ring(Topic.CHUNKS, b"said")
            await until(lambda: bool(heard), "the word is heard")
            await asyncio.sleep(0.2)
            assert heard == [b"said"]

    asyncio.run(story())


def test_who_does_not_believe_a_deployment_removes_none_of_its_texts(tmp_path: Path) -> None:
    async def story() -> None:
        async with store_in(tmp_path / "ours") as store:
            texts = {digest_of(text): text for text in (b"long" * 400, b"other" * 400)}
            turns = [encode_record(Kept(digest)) for digest in texts]
            for digest, text in texts.items():
                await store.blobs.put(digest, text)
            place = START
            for number, turn in enumerate(turns):
                place = await store.journal.append(
                    "one", turn, place, listing=None if number else RunListing(1, tenant_id="x")
                )
            late = await asyncio.to_thread(opened, tmp_path / "theirs", lambda: 2**45)
            try:
                assert not late.log_copy.journal.turns_of("one")
                await late.log_copy.refresh()
                assert late.log_copy.foreign_texts >= texts.keys()
                removed = await late.retention.gc(ended_before_ms=2**45)
                assert (removed.runs, removed.texts) == (0, 0)
                late.log_copy.has_foreign_unread = True
                assert (await late.retention.gc(ended_before_ms=2**45)).texts == 0
            finally:
                await late.close()
            for digest, text in texts.items():
                assert await store.blobs.get(digest) == text

    asyncio.run(story())


class Kept(Record):
    """Stands for a turn that refers to a text."""

    text: bytes


def test_a_run_that_one_removed_who_may_not_is_named_and_one_that_was_removed_is_not(tmp_path: Path) -> None:
    async def story() -> None:
        async with store_in(tmp_path / "root") as root, store_in(tmp_path / "worker") as worker:
            root.signet.keyring.believe([worker.key.signer.did])
            await peopled(root)
            stated = issue(
                root.key.signer,
                worker.key.signer.did,
                capability_id="x",
                tenant="*",
                may=ROLES["tools"],
                not_before_ms=0,
                expires_at_ms=2**45,
            )
            root.signet.keyring.hear(encode_record(KeyEntry(statement=stated)))
            # It knows nothing of what it was admitted for, and its servers let it do everything.
            said = worker.link._signed_entry(entry(GONE + "one", encode_record(Gone("one")), after=START))
            await put(root, said.subject, said.data, said.headers)
            for subject in ("agent.log.run.one", "agent.log.inbox.one"):
                await worker.link.finish(worker.link.jet.purge(subject))
            await root.retention.delete("two")
            async with store_in(tmp_path / "root") as later:
                later.signet.keyring.believe([worker.key.signer.did])
                later.signet.keyring.hear(encode_record(KeyEntry(statement=stated)))
                lost = await later.log.losses()
                assert lost.missing == ("one",)
                (problem,) = [one for one in await later.checkup.look() if one.code == "STORE_BEHIND_ITS_LOG"]
                assert "one" in problem.seen

    asyncio.run(story())


def test_a_process_that_servers_let_in_no_more_says_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with store_in(tmp_path) as store:
            for _ in range(9):
                store.link._failed(OSError("nats: 'Authorization Violation'"))
            store.queue.expect_admitted()
            store.link._failed(OSError("nats: 'Authorization Violation'"))
            with pytest.raises(StoreUnusable, match="STORE_SHUT_OUT"):
                store.queue.expect_admitted()
            store.link._reconnected()
            store.queue.expect_admitted()

    asyncio.run(story())


def test_a_word_that_a_run_is_due_is_heard_once_and_from_those_who_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errand_queue, "STRANGE_TRIES_MAX", 1)

    async def story() -> None:
        async with store_in(tmp_path / "ours") as store, store_in(tmp_path / "theirs") as stranger:
            await store.journal.append("one", b"0", START, listing=RunListing(1))
            await store.journal.append("gone", b"0", START, listing=RunListing(1))
            await store.queue.prepare_words()
            await store.queue.due("one")
            (genuine,) = await kept_in(store, "agent.due.>")
            await put(store, "agent.due.one", b"one", {})
            await stranger.queue.due("one")
            await put(store, "agent.due.two", genuine.data, genuine.headers)
            await put(store, "agent.due.one", genuine.data, genuine.headers)
            await store.queue.due("gone")
            await store.retention.delete("gone")
            await store.queue.due("gone")
            heard = [word.run_id for _ in range(8) if (word := await store.queue.next_due()) is not None]
            assert heard == ["one"]
            letters = await letters_of(store, 4)
            codes = sorted(letter.code for letter in letters)
            assert codes == ["MESSAGE_FORGED", "MESSAGE_REPEATED", "MESSAGE_UNSIGNED", "SIGNER_UNKNOWN"]

    asyncio.run(story())


def test_a_word_whose_signer_counts_for_another_process_alone_is_left_to_that_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            store_in(tmp_path / "ours") as store,
            store_in(tmp_path / "theirs") as stranger,
            store_in(tmp_path / "both") as friend,
        ):
            friend.signet.keyring.believe([store.key.signer.did, stranger.key.signer.did])
            await stranger.journal.append("one", b"0", START, listing=RunListing(1))
            for one in (store, friend):
                await one.queue.prepare_words()
            await stranger.queue.due("one")
            assert await store.queue.next_due() is None
            word = await friend.queue.next_due()
            assert word is not None
            assert word.run_id == "one"
            assert await store.queue.letters.listed() == []

    asyncio.run(story())


def test_a_word_about_a_run_whose_turns_count_for_another_process_alone_is_left_to_that_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            store_in(tmp_path / "ours") as store,
            store_in(tmp_path / "theirs") as stranger,
            store_in(tmp_path / "both") as friend,
        ):
            friend.signet.keyring.believe([store.key.signer.did, stranger.key.signer.did])
            await stranger.journal.append("one", b"0", START, listing=RunListing(1))
            for one in (store, friend):
                await one.queue.prepare_words()
            await store.queue.due("one")
            assert await store.queue.next_due() is None
            word = await friend.queue.next_due()
            assert word is not None
            assert word.run_id == "one"

    asyncio.run(story())


def test_a_ring_stops_no_call_that_was_not_taken_back(tmp_path: Path) -> None:
    async def story() -> None:
        from remit.backend.cluster.work.errand_queue import _written
        from remit.core.journal.queued import ErrandName

        lane, name = Lane("tool", "t", "v"), ErrandName("one", "1.1")
        async with store_in(tmp_path) as store:
            told: list[ErrandName] = []
            end = await store.queue.on_withdrawn(lambda one, _: told.append(one))
            for word in (_written(name), "garbage", ""):
                store.link.ring("remit.ring.stop", word.encode())
            await store.link.call(store.link.jet.client.flush())
            await put(store, "agent.report.one.1=2e=1.1", b"", {"Remit-Came": "withdrawn"})
            store.link.ring("remit.ring.stop", _written(name).encode())
            await store.queue.withdraw(ErrandName("two", "1.1"), lane)
            await until(lambda: told, "a call is stopped")
            assert [one.run_id for one in told] == ["two"]
            await end()

    asyncio.run(story())


@pytest.mark.parametrize("is_signed", [False, True], ids=["bare", "signed by a stranger"])
def test_a_heartbeat_that_another_made_up_keeps_no_run_from_being_taken(
    is_signed: bool, tmp_path: Path
) -> None:  # a case
    async def story() -> None:
        ours, theirs = tmp_path / "ours", tmp_path / "theirs"
        async with store_in(ours) as gone, store_in(ours) as store, store_in(theirs) as stranger:
            assert await gone.leases.take("one") is not None
            assert await store.leases.take("one") is None
            fall_silent(gone.link)
            subject = f"remit.alive.{gone.link.worker}"
            headers = stranger.signet.signed(subject, b"", {}) if is_signed else {}
            await put(stranger, subject, b"", headers)
            assert await store.leases.take("one") is not None

    asyncio.run(story())
