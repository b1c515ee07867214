"""What was revoked stays revoked: in the store's folder, for every process, under every name, and without telling the value."""

import asyncio
import os
from pathlib import Path

import pytest

from remit.core.failure import RequestRejected
from remit.observe.checkup import CheckState, check_secrets
from remit.tool.call.outcomes import ToolFault
from remit.tool.secrets.revocations import (
    FILE,
    FILE_BYTES_MAX,
    KEY_FILE,
    REVOCATIONS_UNREADABLE,
    SECRET_REVOKED,
    KeptRevocations,
)
from remit.tool.secrets.secret import Secret
from remit.tool.secrets.vault import Vault

VALUE, OTHER = "hunter2-hunter2-hunter2", "another-value-entirely"


def vault(folder: Path, **secrets: object) -> Vault:
    return Vault(secrets, revocations=KeptRevocations(folder))  # type: ignore[arg-type]  # as a user hands them over


def lend(held: Vault, name: str) -> str:
    filled = asyncio.run(held.fill("tool", (("token", name),), timeout_ms=1_000))
    return filled["token"].reveal()


def test_a_revoked_value_stays_revoked_in_the_next_process_and_under_another_name(tmp_path: Path) -> None:
    vault(tmp_path, TOKEN=VALUE).revoke("TOKEN")
    later = vault(tmp_path, TOKEN=VALUE, COPY=VALUE, FINE=OTHER)
    assert set(later.revoked) == {"TOKEN", "COPY"}
    for name in ("TOKEN", "COPY"):
        with pytest.raises(ToolFault, match=r"was revoked at .* because a model knew it"):
            lend(later, name)
        with pytest.raises(RequestRejected) as raised:
            later.check_usable("mail", [name])
        assert raised.value.code == SECRET_REVOKED
        assert "set another value" in raised.value.message
    assert lend(later, "FINE") == OTHER
    later.check_usable("mail", ["FINE", "ABSENT"])


def test_another_value_under_the_same_name_is_lent(tmp_path: Path) -> None:
    vault(tmp_path, TOKEN=VALUE).revoke("TOKEN")
    assert lend(vault(tmp_path, TOKEN=OTHER), "TOKEN") == OTHER


def test_a_process_that_is_under_way_learns_what_another_revoked(tmp_path: Path) -> None:
    mine, others = vault(tmp_path, TOKEN=VALUE), vault(tmp_path, TOKEN=VALUE)
    assert lend(mine, "TOKEN") == VALUE
    others.revoke("TOKEN")
    others.revoke("TOKEN")
    with pytest.raises(ToolFault, match="revoked"):
        lend(mine, "TOKEN")
    assert len((tmp_path / FILE).read_text().splitlines()) == 1


def test_a_secret_that_renews_itself_is_renewed_and_a_renewal_to_a_revoked_value_is_none(tmp_path: Path) -> None:
    given = [OTHER]
    secrets = {"TOKEN": {"value": VALUE, "refresh": lambda: {"value": given[0]}}}
    first = vault(tmp_path, **secrets)
    first.revoke("TOKEN")
    again = vault(tmp_path, **secrets)
    again.check_usable("mail", ["TOKEN"])
    assert lend(again, "TOKEN") == OTHER
    given[0] = VALUE
    with pytest.raises(ToolFault, match="revoked"):
        lend(vault(tmp_path, **secrets), "TOKEN")


def test_nothing_that_is_kept_tells_the_value_and_others_cannot_read_it(tmp_path: Path) -> None:
    vault(tmp_path, TOKEN=VALUE).revoke("TOKEN")
    for name in (FILE, KEY_FILE):
        path = tmp_path / name
        assert path.stat().st_mode & 0o077 == 0
        assert VALUE not in path.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [KEY_FILE, FILE]
    # The same value has another fingerprint in another store.
    elsewhere = tmp_path / "elsewhere"
    vault(elsewhere, TOKEN=VALUE).revoke("TOKEN")
    assert (elsewhere / FILE).read_text().split('"')[7] not in (tmp_path / FILE).read_text()


def test_a_name_that_is_not_there_cannot_be_revoked(tmp_path: Path) -> None:
    vault(tmp_path, TOKEN=VALUE).revoke("ABSENT")
    assert not (tmp_path / FILE).exists()


def spoil_key(folder: Path) -> None:
    (folder / KEY_FILE).unlink()


def empty_key(folder: Path) -> None:
    (folder / KEY_FILE).write_text("no key")


def open_up(folder: Path) -> None:
    (folder / FILE).chmod(0o644)


def swell(folder: Path) -> None:
    (folder / FILE).write_bytes(b"x" * (FILE_BYTES_MAX + 1))


def replace(folder: Path) -> None:
    (folder / FILE).unlink()
    (folder / FILE).mkdir()


@pytest.mark.parametrize("harm", [spoil_key, empty_key, open_up, swell, replace])
def test_revocations_that_cannot_be_relied_on_are_refused(harm: object, tmp_path: Path) -> None:
    vault(tmp_path, TOKEN=VALUE).revoke("TOKEN")
    harm(tmp_path)  # type: ignore[operator]
    with pytest.raises(RequestRejected) as raised:
        vault(tmp_path, TOKEN=OTHER)
    assert raised.value.code == REVOCATIONS_UNREADABLE


def test_a_line_that_was_cut_off_says_nothing_and_the_others_hold(tmp_path: Path) -> None:
    vault(tmp_path, TOKEN=VALUE).revoke("TOKEN")
    with (tmp_path / FILE).open("a") as log:
        log.write('{"name": "TOK\n{}\n')
    assert list(vault(tmp_path, TOKEN=VALUE).revoked) == ["TOKEN"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(RequestRejected) as raised:
            vault(tmp_path, TOKEN=VALUE).revoke("TOKEN")
        assert raised.value.code == REVOCATIONS_UNREADABLE
    finally:
        tmp_path.chmod(0o700)


def test_a_file_where_the_folder_should_be_is_said(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("")
    with pytest.raises(RequestRejected) as raised:
        KeptRevocations(place).record("TOKEN", VALUE, 0)
    assert raised.value.code == REVOCATIONS_UNREADABLE


def test_the_check_up_names_what_is_revoked(tmp_path: Path) -> None:
    vault(tmp_path, TOKEN=VALUE).revoke("TOKEN")
    (check,) = check_secrets(lambda: vault(tmp_path, TOKEN=Secret(VALUE)))
    assert check.state is CheckState.PROBLEM
    assert "revoked because a model knew them: TOKEN" in check.seen
