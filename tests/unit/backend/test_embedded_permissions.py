"""Files of a store that are links, or that others may write: refused or told, by how grave it is."""

import os
from pathlib import Path

import pytest

from remit.backend.embedded.checkup import FolderCheckup
from remit.backend.embedded.disk import permissions
from remit.backend.embedded.disk.permissions import BELLS, FILES, FOLDERS, refuse_exposed, weaknesses, weaknesses_inside
from remit.backend.embedded.owner.key_file import load_signer
from remit.backend.embedded.owner.trusted_stores import TrustList
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.storage import StoreUnusable
from remit.observe.checkup import CheckState
from tests.unit.orchestrate.stage import play


def made(home: Path) -> Path:
    home.mkdir(mode=0o700)
    play(EmbeddedStore.open(home).close())
    (home / "heads.log").touch(0o600)
    return home


def test_a_store_as_it_is_made_has_no_weakness(tmp_path: Path) -> None:
    assert list(weaknesses(made(tmp_path / "store"))) == []


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_a_store_that_is_a_link_is_neither_followed_nor_filled(tmp_path: Path, name: str) -> None:
    home, elsewhere = made(tmp_path / "store"), tmp_path / "elsewhere"
    elsewhere.touch()
    (home / name).unlink(missing_ok=True)
    (home / name).symlink_to(elsewhere)
    with pytest.raises(StoreUnusable, match=f"STORE_LINKED.*{name}: is a link to .*elsewhere"):
        EmbeddedStore.open(home)
    assert elsewhere.read_bytes() == b""


@pytest.mark.parametrize("kind", ["link", "pipe", "file"])
@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_a_store_that_is_none_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    home, elsewhere = made(tmp_path / "store"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    store = EmbeddedStore.open(home)
    if kind == "link":
        (home / name).symlink_to(elsewhere)
    elif kind == "pipe":
        os.mkfifo(home / name)
    else:
        (home / name).write_text("a file")
    # One that was put there after the store was opened; no listener is rung through it.
    for act in (
        ()
        if name == BELLS
        else (
            lambda: store.seals.seal("run", "password", "hunter22"),
            lambda: store.seals.values("run"),
            lambda: store.seals.forget("run"),
        )
    ):
        with pytest.raises(StoreUnusable, match=rf"STORE_LINKED.*{name}: is (a link to|no folder)"):
            act()
    play(store.close())
    with pytest.raises(StoreUnusable, match=rf"STORE_LINKED.*{name}: is (a link to|no folder)"):
        EmbeddedStore.open(home)
    (check,) = [
        one for one in play(FolderCheckup(home, TrustList(tmp_path / "list")).look()) if one.name == "store.private"
    ]
    assert (check.state, name in check.seen) == (CheckState.PROBLEM, True)
    assert list(elsewhere.iterdir()) == []


def test_a_folder_of_a_store_that_anybody_may_write_to_is_refused(tmp_path: Path) -> None:
    home = made(tmp_path / "store")
    (home / "sealed").mkdir()
    (home / "sealed").chmod(0o777)
    with pytest.raises(StoreUnusable, match=r"STORE_EXPOSED.*sealed: may be written by any user"):
        EmbeddedStore.open(home)


@pytest.mark.parametrize("kind", ["link", "pipe", "second name"])
def test_a_file_in_a_folder_of_a_store_is_its_own_and_the_only_one(tmp_path: Path, kind: str) -> None:
    home, elsewhere = made(tmp_path / "store"), tmp_path / "elsewhere"
    store = EmbeddedStore.open(home)
    store.seals.seal("run", "password", "hunter22")
    (path,) = (home / "sealed").iterdir()
    assert list(weaknesses_inside(home)) == []
    if kind == "second name":
        elsewhere.hardlink_to(path)
    else:
        path.rename(elsewhere)
        os.mkfifo(path) if kind == "pipe" else path.symlink_to(elsewhere)
    again = EmbeddedStore.open(home)
    for act in (lambda: again.seals.values("run"), lambda: store.seals.seal("run", "password", "other-one")):
        with pytest.raises(StoreUnusable, match="STORE_LINKED"):
            act()
    (check,) = [
        one for one in play(FolderCheckup(home, TrustList(tmp_path / "list")).look()) if one.name == "store.private"
    ]
    assert (check.state, path.name in check.seen) == (CheckState.PROBLEM, True)
    play(again.close())
    play(store.close())


def test_a_file_of_another_user_in_a_folder_of_a_store_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = made(tmp_path / "store")
    store = EmbeddedStore.open(home)
    store.seals.seal("run", "password", "hunter22")
    monkeypatch.setattr(permissions, "_allowed", lambda folder: (12_345,))
    with pytest.raises(StoreUnusable, match=r"STORE_LINKED.*who is not the owner of its folder"):
        store.seals.seal("run", "password", "other-one")
    assert [found.what for found in weaknesses_inside(home)] == [f"belongs to user {os.geteuid()}"]
    play(store.close())


def test_a_folder_of_a_store_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = made(tmp_path / "store")
    (home / "sealed").mkdir()

    def refuse(folder: Path) -> list[Path]:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "iterdir", refuse)
    with pytest.raises(StoreUnusable, match=r"sealed: Permission denied"):
        list(weaknesses_inside(home))


def test_what_is_no_file_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    home = made(tmp_path / "store")
    (home / "heads.log").unlink()
    os.mkfifo(home / "heads.log")
    for opening in (EmbeddedStore.open, EmbeddedStore.open_to_read):
        with pytest.raises(StoreUnusable, match=r"STORE_LINKED.*is no regular file"):
            opening(home)


@pytest.mark.parametrize("name", ["", "remit.db", "heads.log", "locks"])
def test_what_anybody_may_write_to_is_not_written_to_here(tmp_path: Path, name: str) -> None:
    home = made(tmp_path / "store")
    (home / name).chmod(0o777 if not name else 0o666)
    with pytest.raises(StoreUnusable, match=r"STORE_EXPOSED.*may be written by any user.*chmod"):
        EmbeddedStore.open(home)
    play(EmbeddedStore.open_to_read(home).close())


def test_a_folder_in_which_only_owners_rename_and_a_group_are_no_hindrance(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home = made(tmp_path / "store")
    home.chmod(0o1777)
    refuse_exposed(home)
    home.chmod(0o700)
    (home / "remit.db").chmod(0o660)
    refuse_exposed(home)
    assert "may be written by its group (mode 660)" in caplog.text
    (home / "remit.db").chmod(0o604)
    assert [found.what for found in weaknesses(home)] == ["may be read by others (mode 604)"]


def test_a_folder_of_ones_own_may_be_a_link(tmp_path: Path) -> None:
    made(tmp_path / "store")
    (tmp_path / "link").symlink_to(tmp_path / "store")
    play(EmbeddedStore.open(tmp_path / "link").close())


def test_a_path_that_cannot_be_says_so(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="STORE_NOT_FOUND"):
        list(weaknesses(tmp_path / ("x" * 5000)))


@pytest.mark.parametrize("name", ["remit.db", "heads.log", "key", "locks"])
def test_a_file_that_has_a_second_name_is_not_written_to(tmp_path: Path, name: str) -> None:
    home = made(tmp_path / "store")
    load_signer(home)
    (tmp_path / "other").hardlink_to(home / name)
    with pytest.raises(StoreUnusable) as raised:
        EmbeddedStore.open(home)
    assert (raised.value.code, "has 2 names" in raised.value.message) == ("STORE_LINKED", True)
    EmbeddedStore.open_to_read(home).let_go()
    (tmp_path / "other").unlink()
    play(EmbeddedStore.open(home).close())


def test_a_key_that_is_being_made_has_two_names_for_a_moment(tmp_path: Path) -> None:
    home = made(tmp_path / "store")
    load_signer(home)
    (home / "key.0123456789abcdef").hardlink_to(home / "key")
    assert list(weaknesses(home)) == []
