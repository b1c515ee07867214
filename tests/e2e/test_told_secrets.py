"""Secrets that people tell: reasons, names, other arguments and values of the vault stand in no byte that is written."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from remit.core.failure import EXIT_OK, EXIT_WAITING
from tests.e2e.command import Remit, remit_in
from tests.e2e.house import calls, says
from tests.planted import Planted

TOKEN = Planted(5).all()["github"][1]
PASSPHRASE = "correct-horse-battery-staple"
MADE_UP = "secret:github_token#0123456789ab"

TAKES = """
from pathlib import Path
from remit import tool

@tool(effect="external")
def send(token: str) -> str:
    \"\"\"Send a token.\"\"\"
    Path(__file__).with_name("sent.txt").write_text(token)
    return "sent"
"""


def holds(remit: Remit, value: str) -> bool:
    return any(value.encode() in path.read_bytes() for path in remit.home.rglob("*") if path.is_file())


def told(remit: Remit, run_id: str) -> str:
    """What the commands say of a run."""
    words = (("show", run_id), ("trace", run_id, "--json"), ("export", run_id), ("explain", run_id))
    return "".join(said.out + said.err for said in (remit.here(*each) for each in words))


def test_the_reason_of_a_fork_has_the_handle_and_the_fork_knows_what_its_origin_was_told(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TAKES, [calls("send", {"token": TOKEN}), says("Done.")])
        assert remit.run_here().exit_code == EXIT_WAITING
        forked = remit.here("fork", "last", "--why", f"because {TOKEN}", "--json")
        assert forked.exit_code == EXIT_WAITING, forked
        (packet,) = forked.values["waiting_for"]["packet_ids"]
        assert "because secret:" in remit.here("show", forked.values["run_id"]).out
        assert not holds(remit, TOKEN)
        assert TOKEN not in told(remit, forked.values["run_id"])
        # The fork has its own keys to what was sealed for its origin.
        assert remit.here("approve", packet, "--json").values["halted"] is None
        assert (remit.folder / "sent.txt").read_text() == TOKEN


def test_the_reason_to_accept_lost_turns_has_the_handle(tmp_path: Path) -> None:
    # Its runs prove no longer that they are whole.
    remit = Remit(tmp_path)
    remit.write(TAKES, [calls("send", {"token": "plain"}), says("Done.")])
    asked = remit.run_here()
    run_id, (packet,) = asked.values["run_id"], asked.values["waiting_for"]["packet_ids"]
    with closing(sqlite3.connect(remit.home / "remit.db")) as connection:
        connection.execute("VACUUM INTO ?", (str(tmp_path / "backup.db"),))
    remit.here("approve", packet, "--json")
    shutil.copy(tmp_path / "backup.db", remit.home / "remit.db")
    for name in ("remit.db-wal", "remit.db-shm"):
        (remit.home / name).unlink(missing_ok=True)
    restored = remit.here("restore", run_id, "--accept", "--why", f"because {TOKEN}", "--json")
    assert restored.exit_code == EXIT_WAITING, restored
    assert "because secret:github_token#" in remit.here("show", restored.values["run_id"]).out
    assert not holds(remit, TOKEN)


@pytest.mark.parametrize(
    "words",
    [
        ("halt", "--why", "x", "--by", TOKEN),
        ("halt", "--why", "x", "--tool", TOKEN),
        ("halt", "--why", "x", "--tenant", TOKEN),
        ("halt", "--why", "x", "--model", TOKEN),
        ("fork", "last", "--by", TOKEN),
        ("signal", "last", "cancel", "--by", TOKEN),
        ("redact", "last", "--why", "x", "--pattern", "any", "--by", TOKEN),
    ],
    ids=" ".join,
)
def test_no_name_that_a_person_gives_may_be_a_secret(tmp_path: Path, words: tuple[str, ...]) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TAKES, [calls("send", {"token": "plain"}), says("Done.")])
        remit.run_here()
        refused = remit.here(*words)
        assert refused.error_code == "REQUEST_ID_SECRET", refused
        assert TOKEN not in refused.out + refused.err
        assert not holds(remit, TOKEN)


def test_the_reason_of_a_redaction_and_of_a_halt_has_the_kind_alone(tmp_path: Path) -> None:
    # Its runs prove no longer that they are whole.
    remit = Remit(tmp_path)
    remit.write("", [says("a canary")])
    remit.run_here()
    canary = tmp_path / "canary"
    canary.write_text("a canary")
    remit.here("redact", "last", "--why", f"as {TOKEN} was in it", "--text-file", str(canary))
    remit.here("halt", "--why", f"as {TOKEN} is known")
    assert "[secret:github_token]" in remit.here("halt", "--list").out
    assert not holds(remit, TOKEN)


@pytest.mark.parametrize(("name", "value"), [("token", TOKEN), ("token", "hunter22Xy9!")])
def test_other_arguments_are_shown_without_their_secrets(tmp_path: Path, name: str, value: str) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TAKES, [calls("send", {"token": "plain"}), says("Done.")])
        (packet,) = remit.run_here().values["waiting_for"]["packet_ids"]
        said = remit.here("approve", packet, "--arguments", f'{{"{name}": "{value}"}}')
        assert value not in said.out + said.err
        assert "-> [secret:" in said.out + said.err or '-> "[secret:' in said.out + said.err
        assert (remit.folder / "sent.txt").read_text() == value
        assert not holds(remit, value)


def test_a_value_of_the_vault_in_a_request_or_a_reason_is_a_secret_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_SECRET_DB", PASSPHRASE)
    with remit_in(tmp_path) as remit:
        remit.write("", [says("Done.")])
        done = remit.here("run", f"connect with {PASSPHRASE} now", "--engine", f"scripted:{remit.folder}/script.json")
        assert done.exit_code == EXIT_OK, done
        assert "connect with secret:vault#" in remit.here("show", "last").out
        forked = remit.here("fork", "last", "--why", f"as {PASSPHRASE} said", "--json")
        assert forked.exit_code == EXIT_OK, forked
        assert PASSPHRASE not in told(remit, forked.values["run_id"])
        assert not holds(remit, PASSPHRASE)
        # The user alone knew it, so it holds on.
        assert "revoked" not in remit.here("doctor").out


def test_a_handle_that_a_model_made_up_holds_no_run_up_in_whichever_process(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(TAKES, [calls("send", {"token": MADE_UP}), says("Done.")])
        # What another run of the store was told is nothing to this one.
        remit.run_here("--file", str(prompt(tmp_path)))
        (packet,) = remit.run_here().values["waiting_for"]["packet_ids"]
        done = remit("approve", packet, "--json")
        assert done.exit_code != EXIT_WAITING, done
        assert "TOOL_UNAVAILABLE" in done.out
        assert not (remit.folder / "sent.txt").exists()


def prompt(folder: Path) -> Path:
    path = folder / "prompt.txt"
    path.write_text(f"Use {TOKEN}.")
    return path
