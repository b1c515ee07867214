"""Secrets of the store's folder are read from a file that is its owner's alone."""

import json
from pathlib import Path

import pytest

from remit.core.failure import RequestRejected
from remit.tool.secrets import vault
from remit.tool.secrets.secret import SECRET_INVALID
from remit.tool.secrets.vault import SECRETS_NOT_PRIVATE, SECRETS_UNREADABLE, Vault, read_secrets

VALUE = "sk-live-0123456789"
AT_MS = 1_893_456_000_000  # 2030-01-01
TOML = f"""
TOKEN = "{VALUE}"
[OTHER]
value = "another-0123456789"
expires_at = 2030-01-01T00:00:00Z
"""


def write(folder: Path, text: str | bytes, name: str = "secrets.toml", mode: int = 0o600) -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


def refused(folder: Path) -> RequestRejected:
    with pytest.raises(RequestRejected) as refusal:
        read_secrets(folder)
    assert VALUE not in str(refusal.value)
    assert refusal.value.__cause__ is None or VALUE not in str(refusal.value.__cause__)
    return refusal.value


def test_a_folder_without_a_file_holds_no_secrets(tmp_path: Path) -> None:
    assert read_secrets(tmp_path) == {}
    assert read_secrets(tmp_path / "nowhere") == {}


def test_a_toml_file_names_secrets_with_and_without_their_end(tmp_path: Path) -> None:
    write(tmp_path, TOML)
    assert Vault(read_secrets(tmp_path)).expiries == {"TOKEN": None, "OTHER": AT_MS}


def test_a_json_file_does_so_too(tmp_path: Path) -> None:
    write(tmp_path, json.dumps({"TOKEN": VALUE, "OTHER": {"value": VALUE, "expires_at": AT_MS}}), "secrets.json")
    assert Vault(read_secrets(tmp_path)).expiries == {"TOKEN": None, "OTHER": AT_MS}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_file_that_others_may_open_is_refused_with_what_to_type(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path, TOML, mode=mode)
    error = refused(tmp_path)
    assert error.code == SECRETS_NOT_PRIVATE
    assert error.message == f"'{path}' is open to others (mode {mode:o}); type: chmod 600 '{path}'"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("secrets.toml", f'A = "x"\nTOKEN = {VALUE}', "is no valid TOML in line 2"),
        ("secrets.json", f'{{"TOKEN": "{VALUE}"', "is no valid JSON in line 1"),
        ("secrets.json", f'{{"A": "x",\n"TOKEN": "{VALUE}",\n"TOKEN": "y"}}', "has a key twice in line 3"),
        ("secrets.json", f'["{VALUE}"]', "must be an object that maps names to secrets"),
        ("secrets.json", "[" * 100_000, "is no valid JSON"),
        ("secrets.toml", b"\xff", "is no valid TOML;"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_quotes_nothing(
    tmp_path: Path, name: str, text: str | bytes, said: str
) -> None:
    write(tmp_path, text, name)
    error = refused(tmp_path)
    assert error.code == SECRETS_UNREADABLE
    assert said in error.message


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secrets.toml").mkdir()
    assert "cannot be read: it is no regular file" in refused(tmp_path).message


def test_two_files_are_one_too_many(tmp_path: Path) -> None:
    write(tmp_path, TOML)
    write(tmp_path, "{}", "secrets.json")
    assert "holds secrets.toml and secrets.json; keep one of them" in refused(tmp_path).message


def test_an_entry_that_is_no_secret_is_named(tmp_path: Path) -> None:
    write(tmp_path, f'[TOKEN]\nvalue = "{VALUE}"\nexpires = 1')
    error = refused(tmp_path)
    assert (error.code, error.details) == (SECRET_INVALID, {"secret": "TOKEN"})


def test_a_file_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "FILE_BYTES_MAX", 10)
    write(tmp_path, TOML)
    assert "has more than file_bytes_max=10" in refused(tmp_path).message
