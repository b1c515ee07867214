"""Whose store it is: the list of a user, and what becomes of stores that it does not name."""

import json
import os
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from remit.backend.embedded.owner.key_file import load_signer
from remit.backend.embedded.owner.trusted_stores import (
    TRUST_LIST_UNUSABLE,
    Ownership,
    Trusted,
    TrustList,
    enter_new,
    expect_trusted_store,
    signers_in,
    standing_of,
    trust_named,
)
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import RequestRejected
from remit.core.journal.signing import Signer
from remit.core.journal.storage import Barrier, RunListing, StoreUnusable
from tests.unit.backend.signed import journal_of
from tests.unit.orchestrate.stage import play


@pytest.fixture
def trusted(tmp_path: Path) -> TrustList:
    return TrustList(tmp_path / "config" / "stores.jsonl")


def made(home: Path, *, runs: int = 1) -> EmbeddedStore:
    """A closed store with runs in it."""
    store = EmbeddedStore.open(home)

    async def fill() -> None:
        for number in range(runs):
            await journal_of(store).append(f"run{number}", b"turn", after=-1, barrier=Barrier(), listing=RunListing(0))
        await store.close()

    play(fill())
    return store


def test_a_store_made_here_is_entered_and_ours_from_then_on(tmp_path: Path, trusted: TrustList) -> None:
    home = tmp_path / "store"
    assert standing_of(home, trusted) == Ownership(is_ours=True, is_new=True)
    home.mkdir()
    standing = enter_new(home, trusted)
    assert standing.signers == {load_signer(home).did}
    made(home)
    assert standing_of(home, trusted) == standing
    assert trusted.path.stat().st_mode & 0o077 == 0
    # Moved elsewhere it is the same store.
    assert standing_of(home.rename(tmp_path / "moved"), trusted) == standing


def test_a_store_whose_key_is_in_no_list_is_not_ours(tmp_path: Path, trusted: TrustList) -> None:
    made(tmp_path)
    standing = standing_of(tmp_path, trusted)
    assert not standing.is_ours
    with pytest.raises(StoreUnusable, match=r"STORE_NOT_TRUSTED.*did:key:z.*`remit trust`"):
        expect_trusted_store(tmp_path, standing)
    trusted.enter(Trusted(standing.fingerprint, os.geteuid()))
    expect_trusted_store(tmp_path, standing_of(tmp_path, trusted))


def test_a_fingerprint_in_the_settings_stands_for_any_owner_of_the_files(tmp_path: Path, trusted: TrustList) -> None:
    fingerprint = load_signer(tmp_path).did
    other = Signer.generate().did
    named = trust_named(f"{fingerprint}, {other}", trusted)
    assert named == TrustList(trusted.path, frozenset({fingerprint, other}))
    assert standing_of(tmp_path, named).signers == {fingerprint, other}
    with pytest.raises(RequestRejected, match=r"TRUST_LIST_UNUSABLE.*did:key:zOther.*spells no key"):
        trust_named(f"{fingerprint}, did:key:zOther", trusted)


def test_files_of_another_user_are_not_ours_unless_a_person_said_so(
    tmp_path: Path, trusted: TrustList, monkeypatch: pytest.MonkeyPatch
) -> None:
    fingerprint, owner = load_signer(tmp_path).did, os.geteuid()
    trusted.enter(Trusted(fingerprint, 4711))
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    monkeypatch.setattr(TrustList, "_lines", lambda self: self.path.read_text().splitlines())
    assert standing_of(tmp_path, trusted).why_not == f"it belongs to user {owner}, and not to you (4711)"
    trusted.enter(Trusted(fingerprint, owner))
    assert standing_of(tmp_path, trusted).is_ours


def test_runs_without_a_key_or_a_head_are_nobodys(tmp_path: Path, trusted: TrustList) -> None:
    made(tmp_path)
    (tmp_path / "key").unlink()
    with pytest.raises(StoreUnusable, match="STORE_KEY_MISSING"):
        standing_of(tmp_path, trusted)
    (tmp_path / "heads.log").unlink()
    with closing(sqlite3.connect(tmp_path / "remit.db")) as connection, connection:
        connection.execute("DELETE FROM heads")
    assert standing_of(tmp_path, trusted).why_not == "it has no key, so it is unknown who made it"


def test_an_empty_store_is_new_unless_addresses_were_written_beside_it(tmp_path: Path, trusted: TrustList) -> None:
    (tmp_path / "remit.db").touch()
    assert standing_of(tmp_path, trusted, [""]).is_new
    assert not standing_of(tmp_path, trusted, ["http://127.0.0.1/hook"]).is_ours
    made(tmp_path, runs=0)
    assert standing_of(tmp_path, trusted).is_new


def test_a_store_that_another_process_is_making_at_this_moment_is_new(tmp_path: Path, trusted: TrustList) -> None:
    with closing(sqlite3.connect(tmp_path / "remit.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    assert (tmp_path / "remit.db").stat().st_size
    assert standing_of(tmp_path, trusted).is_new


def test_a_store_whose_key_another_process_makes_meanwhile_is_looked_at_again(
    tmp_path: Path, trusted: TrustList, monkeypatch: pytest.MonkeyPatch
) -> None:
    def just_begun(home: Path, _: str) -> bool:
        enter_new(home, trusted)
        return True

    monkeypatch.setattr("remit.backend.embedded.owner.trusted_stores.holds_any", just_begun)
    assert standing_of(tmp_path, trusted).is_ours


def test_a_database_that_cannot_be_read_says_so(tmp_path: Path, trusted: TrustList) -> None:
    (tmp_path / "remit.db").write_bytes(b"no database" * 100)
    for look in (lambda: standing_of(tmp_path, trusted), lambda: signers_in(tmp_path)):
        with pytest.raises(StoreUnusable, match="STORE_DAMAGED"):
            look()


def test_a_key_that_others_may_read_is_unusable_when_it_is_ours_and_a_strangers_when_not(
    tmp_path: Path, trusted: TrustList
) -> None:
    fingerprint = load_signer(tmp_path).did
    (tmp_path / "key").chmod(0o644)
    assert not standing_of(tmp_path, trusted).is_ours
    trusted.enter(Trusted(fingerprint, os.geteuid()))
    with pytest.raises(StoreUnusable, match="STORE_KEY_UNUSABLE"):
        standing_of(tmp_path, trusted)


def test_a_line_that_was_cut_says_nothing_and_the_next_one_stands_alone(trusted: TrustList) -> None:
    trusted.enter(Trusted("did:key:zA", 1, signers=("did:key:zB",)))
    with trusted.path.open("a") as lines:
        lines.write('{"key":"did:key:zC"')
    trusted.enter(Trusted("did:key:zD", 2))
    assert trusted.entries("did:key:zA") == (Trusted("did:key:zA", 1, signers=("did:key:zB",)),)
    assert trusted.entries("did:key:zC") == ()
    assert trusted.entries("did:key:zD") == (Trusted("did:key:zD", 2),)


@pytest.mark.parametrize("line", ["[]", "3", '{"key":"did:key:zA","owner":"x"}', '{"owner":1,"x":"did:key:zA"}'])
def test_a_line_that_means_nothing_trusts_nobody(trusted: TrustList, line: str) -> None:
    trusted.path.parent.mkdir()
    trusted.path.write_text(line.replace("[]", json.dumps(["did:key:zA"])) + "\n")
    trusted.path.chmod(0o600)
    assert trusted.entries("did:key:zA") == ()


def test_a_list_that_others_may_write_is_refused_whole(trusted: TrustList) -> None:
    trusted.enter(Trusted("did:key:zA", 1))
    trusted.path.chmod(0o622)
    with pytest.raises(RequestRejected, match=TRUST_LIST_UNUSABLE):
        trusted.entries("did:key:zA")


def test_a_list_that_is_a_link_or_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path, tmp_path / "link"):
        with pytest.raises(RequestRejected, match=TRUST_LIST_UNUSABLE):
            TrustList(path).entries("did:key:zA")
        with pytest.raises(RequestRejected, match=TRUST_LIST_UNUSABLE):
            TrustList(path).enter(Trusted("did:key:zA", 1))


def test_a_list_is_named_by_an_absolute_path_or_not_at_all(tmp_path: Path, trusted: TrustList) -> None:
    assert trust_named("", trusted) == trusted
    assert trust_named(str(tmp_path / "list"), trusted) == TrustList(tmp_path / "list")
    with pytest.raises(RequestRejected, match="neither a fingerprint"):
        trust_named("list.jsonl", trusted)


def test_a_store_is_made_although_the_list_cannot_be_written(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    trusted = TrustList(tmp_path / "file" / "stores.jsonl")
    standing = enter_new(tmp_path, trusted)
    assert standing.is_ours
    assert "will not be known as yours" in caplog.text


def test_everybody_who_signed_is_named(tmp_path: Path) -> None:
    (tmp_path / "remit.db").touch()
    assert signers_in(tmp_path) == frozenset()
    store = made(tmp_path)
    assert signers_in(tmp_path) == {store.did}


def test_reading_the_list_takes_room_for_what_is_there(trusted: TrustList) -> None:
    trusted.enter(Trusted("did:key:zMine", os.geteuid()))
    tracemalloc.start()
    try:
        assert trusted.entries("did:key:zMine")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_is_too_long_to_be_the_list_is_refused(trusted: TrustList) -> None:
    trusted.enter(Trusted("did:key:zMine", os.geteuid()))
    os.truncate(trusted.path, (64 << 20) + 1)
    with pytest.raises(RequestRejected, match="bytes, more than") as refused:
        trusted.entries("did:key:zMine")
    assert refused.value.code == TRUST_LIST_UNUSABLE
