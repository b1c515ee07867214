"""A value of the vault as a name at the command line."""

from pathlib import Path

import pytest

from tests.unit.adapters.desk import Desk

# Each with whole commands and stores.
pytestmark = pytest.mark.slow

VALUE = "correct-horse-battery-staple"


@pytest.fixture(autouse=True)
def vault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMIT_SECRET_DB", VALUE)


def holding(folder: Path) -> list[str]:
    """The files of a store in which the value stands."""
    return [path.name for path in folder.rglob("*") if path.is_file() and VALUE.encode() in path.read_bytes()]


@pytest.mark.parametrize("option", ["--session", "--user", "--tenant"])
def test_a_run_is_not_begun_under_it(desk: Desk, option: str) -> None:
    said = desk.say("run", "Hi", "--engine", desk.script("Hello."), option, VALUE)
    assert said.code != 0
    assert "REQUEST_ID_SECRET" in said.err
    assert VALUE not in said.err
    assert holding(desk.home) == []


@pytest.mark.parametrize(
    "words",
    [
        ("halt", "--why", "stop", "--by", VALUE),
        ("halt", "--why", "stop", "--tenant", VALUE),
        ("redact", "last", "--pattern", "any", "--why", "told", "--by", VALUE),
        ("signal", "last", "cancel", "--by", VALUE),
    ],
    ids=["halt by", "halt of", "redact by", "signal by"],
)
def test_nobody_acts_under_it(desk: Desk, words: tuple[str, ...]) -> None:
    desk.waiting()
    said = desk.say(*words)
    assert "REQUEST_ID_SECRET" in said.err
    assert holding(desk.home) == []


def test_the_reasons_of_a_halt_and_of_a_redaction_do_not_tell_it(desk: Desk) -> None:
    run_id = desk.ended()
    assert desk.say("halt", "--why", f"it sent {VALUE}", "--by", "ada").code == 0
    (desk.folder / "taken.txt").write_text("Hello")
    said = desk.say(
        "redact", run_id, "--text-file", desk.folder / "taken.txt", "--why", f"beside {VALUE}", "--by", "ada"
    )
    assert said.code == 0
    assert holding(desk.home) == []
    assert "[secret DB]" in desk.say("halt", "--list").out


def test_secrets_that_cannot_be_read_keep_nobody_from_halting(desk: Desk) -> None:
    run_id = desk.ended()
    (desk.home / "secrets.toml").write_text("no toml")
    assert desk.say("halt", "--why", "stop", "--by", "ada").code == 0
    assert desk.say("redact", run_id, "--pattern", "any", "--why", "told", "--by", "ada").code == 0
