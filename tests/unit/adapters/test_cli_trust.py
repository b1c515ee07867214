"""`remit trust`: what a person sees of a store, and what their yes does."""

import asyncio
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from remit import assemble
from remit.backend.embedded.owner import trusted_stores
from remit.backend.embedded.store import EmbeddedStore
from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import sign_head
from remit.core.record import replace
from remit.inference.specs import EngineSettings
from remit.kernel.state import RunState
from remit.orchestrate.history.custody import Custody
from remit.orchestrate.setup import reloaded_kit
from remit.orchestrate.setup.kit import Kit
from tests.unit.adapters.desk import Desk, Screen, calls


@pytest.fixture
def strangers(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with a run that waits, which stands in no list of ours; gives the run."""
    run_id = desk.waiting()
    monkeypatch.setenv("REMIT_TRUST", str(tmp_path / "list.jsonl"))
    return run_id


def test_looking_at_a_store_shows_everything_and_enters_nothing(desk: Desk, strangers: str) -> None:
    said = desk.say("trust")
    assert said.code == 3
    assert f"loads    {desk.folder}/tools.py" in said.out
    assert f"asks     scripted:{desk.folder}/script1.json" in said.out
    assert f"store    {desk.home}, owned by user" in said.out
    assert "key      did:key:z" in said.out
    assert desk.say("approve", strangers, "--json").error == "STORE_NOT_TRUSTED"


def test_a_yes_makes_a_store_ours_and_a_second_one_changes_nothing(desk: Desk, strangers: str) -> None:
    assert desk.say("trust", "--json").code == 3
    assert desk.say("trust", desk.home, "--yes", "--json").values["is_trusted"] is True
    said = desk.say("trust")
    assert (said.code, "is yours" in said.out) == (0, True)
    assert desk.say("approve", strangers).code == 0
    assert desk.notes == ["hello"]


@pytest.mark.parametrize(("word", "code"), [("y\n", 0), ("YES\n", 0), ("\n", 3), ("n\n", 3), ("", 3), ("why\n", 3)])
def test_at_a_terminal_only_a_yes_is_a_yes(
    desk: Desk, strangers: str, monkeypatch: pytest.MonkeyPatch, word: str, code: int
) -> None:
    monkeypatch.setattr(sys, "stdin", Screen(word))
    monkeypatch.setattr(sys, "stderr", Screen())
    assert desk.say("trust").code == code


def test_runs_that_nobody_signed_are_signed_for_when_a_person_has_seen_what_they_name(
    desk: Desk, strangers: str
) -> None:
    assert desk.say("trust", "--yes").code == 0
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("DELETE FROM heads")
    (desk.home / "heads.log").unlink()
    said = desk.say("approve", strangers, "--json")
    assert (said.code, said.error) == (1, "RUN_NOT_VOUCHED")
    assert desk.notes == []
    said = desk.say("trust", "--json")
    assert (said.code, said.values["runs_unsigned"]) == (3, 1)
    assert desk.say("trust", "--yes").code == 0
    assert desk.say("approve", strangers).code == 0


def test_what_is_signed_for_is_what_the_turns_say_and_not_what_a_stranger_lists(desk: Desk, strangers: str) -> None:
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("DELETE FROM heads")
        connection.execute("UPDATE runs SET ending = 'SUCCESS', waiting_for = ''")
    (desk.home / "heads.log").unlink()
    assert desk.say("trust", "--yes").code == 0

    async def signed() -> list[str]:
        store = EmbeddedStore.open_to_read(desk.home)
        try:
            return [head.ending for head in await store.catalogue.heads(strangers)]
        finally:
            await store.close()

    assert asyncio.run(signed()) == [""]


def put_beside_our_key(desk: Desk) -> None:
    """Put the database of a stranger beside a key of ours, as a sync of folders does."""
    assert desk.say("trust", "--yes").code == 0
    theirs, desk.home = desk.home, desk.folder / "ours"
    assert desk.say("run", "Hi", "--engine", desk.script("Hi")).code == 0
    for name in ("remit.db", "heads.log"):
        (desk.home / name).write_bytes((theirs / name).read_bytes())


# Every door through which a run is gone on with, added to, copied or followed.
DOORS = (
    ("approve", "{waiting}"),
    ("reject", "{waiting}"),
    ("resume", "{waiting}"),
    ("resume", "{waiting}", "--accept-tools"),
    ("fork", "{waiting}"),
    ("fork", "{ended}"),
    ("fork", "{waiting}", "--at", "0"),
    ("signal", "{ended}", "retry", "why"),
    ("signal", "{waiting}", "pause"),
    ("signal", "{waiting}", "feedback", "hm"),
    ("signal", "{waiting}", "resume"),
    ("signal", "{waiting}", "cancel"),
    ("restore", "{waiting}", "--accept", "--why", "why"),
    ("run", "And now", "--session", "talk", "--engine", "{engine}"),
)


def tried(desk: Desk, names: dict[str, str]) -> list[str]:
    """With which codes the doors are refused; a door that is open gives its exit code."""
    said = [desk.say(*(word.format(**names) for word in door), "--json") for door in DOORS]
    return [one.error if one.code else str(one.code) for one in said]


@pytest.fixture
def planted(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Runs of a stranger, one ended and one that waits, in a store with a key of ours."""
    tools, engine = desk.tools(), desk.script("Hi")
    words = ("run", "Hi", "--engine", engine, "--tools", tools, "--session", "talk", "--json")
    ended = str(desk.say(*words).values["run_id"])
    script = desk.script(calls("write", text="hello"), "Written.")
    said = desk.say("run", "Write", "--engine", script, "--tools", tools, "--json")
    waiting = str(said.values["run_id"])
    theirs = desk.home
    monkeypatch.setenv("REMIT_TRUST", str(tmp_path / "list.jsonl"))
    desk.home = desk.folder / "ours"
    assert desk.say("run", "Hi", "--engine", engine).code == 0
    for name in ("remit.db", "heads.log"):
        (desk.home / name).write_bytes((theirs / name).read_bytes())
    return {"waiting": waiting, "ended": ended, "engine": engine}


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs whose kits were looked for, from now on."""
    found: list[str] = []

    async def kit_again(state: RunState, engines: EngineSettings) -> Kit:
        found.append(state.run_id)
        return await reloaded_kit.kit_again(state, engines)

    monkeypatch.setattr(assemble, "kit_again", kit_again)
    return found


def test_no_door_leads_to_the_run_of_a_stranger_in_a_store_of_ours(
    desk: Desk, planted: dict[str, str], loaded: list[str]
) -> None:
    assert set(tried(desk, planted)) == {"RUN_NOT_VOUCHED"}
    assert desk.say("resume", "--all").code != 0
    assert (loaded, desk.notes) == ([], [])
    assert len(desk.say("runs", "--json").rows) == 2


def test_a_check_up_says_that_runs_of_our_store_are_signed_by_a_stranger(desk: Desk, planted: dict[str, str]) -> None:
    said = desk.say("doctor", "--json")
    (trust,) = [one for one in said.values["checks"] if one["name"] == "store.trust"]
    assert (said.code, trust["state"]) == (1, "problem")
    assert "signed by did:key:z" in trust["seen"]
    assert desk.say("trust", "--yes").code == 0
    assert desk.say("approve", planted["waiting"]).code == 0
    assert desk.notes == ["hello"]


def test_without_a_look_at_the_signer_a_copy_of_the_run_of_a_stranger_runs(
    desk: Desk, planted: dict[str, str], loaded: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Custody, "expect_vouched", blind)
    assert desk.say("fork", planted["ended"]).code == 0
    assert len(loaded) == 1


async def blind(*_: object) -> None:
    """A mutant: it is not looked at who has signed what a run names."""


def test_without_a_look_at_the_signer_the_code_of_a_stranger_runs(
    desk: Desk, strangers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_beside_our_key(desk)
    monkeypatch.setattr(Custody, "expect_vouched", blind)
    assert desk.say("approve", strangers).code == 0
    assert desk.notes == ["hello"]


def test_without_a_look_at_the_owner_either_the_store_of_a_stranger_runs(
    desk: Desk, strangers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trusted_stores, "expect_trusted_store", lambda *_: None)
    assert desk.say("approve", strangers, "--json").error == "RUN_NOT_VOUCHED"
    assert desk.notes == []
    monkeypatch.setattr(Custody, "expect_vouched", blind)
    assert desk.say("approve", strangers).code == 0
    assert desk.notes == ["hello"]


def test_a_database_that_was_put_beside_our_key_loads_nothing(desk: Desk, strangers: str) -> None:
    put_beside_our_key(desk)
    for words in (["approve", strangers], ["resume", strangers], ["resume", strangers, "--accept-tools"]):
        said = desk.say(*words, "--json")
        assert (said.code, said.error) == (1, "RUN_NOT_VOUCHED"), words
    assert desk.notes == []
    looked = desk.say("trust", "--json")
    assert (looked.code, len(looked.values["signers"])) == (3, 1)
    assert desk.say("trust", "--yes").code == 0
    assert desk.say("approve", strangers).code == 0
    assert desk.notes == ["hello"]


def test_what_a_store_names_is_shown_escaped_and_what_cannot_be_read_is_counted(desk: Desk, strangers: str) -> None:
    (desk.home / "queues.yaml").write_text("queues:\n  - name: ops\n    webhook: https://hooks.example/x\n")
    (desk.home / "secrets.toml").write_text("")
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute("UPDATE turns SET data = x'00' WHERE seq = 0")
    said = desk.say("trust")
    assert "runs     1, of which 1 cannot be read" in said.out
    assert "sends to https://hooks.example/x" in said.out
    assert f"reads    {desk.home}/secrets.toml" in said.out


def test_an_empty_store_names_nothing_and_becomes_ours(desk: Desk, strangers: str, tmp_path: Path) -> None:
    home = desk.home = tmp_path / "empty"
    home.mkdir(mode=0o700)
    (home / "remit.db").touch(0o600)
    (home / "queues.yaml").write_text("queues:\n  - name: ops\n    webhook: https://hooks.example/x\n")
    assert desk.say("run", "Hi", "--engine", desk.script("Hi"), "--json").error == "STORE_NOT_TRUSTED"
    assert "key      none" in desk.say("trust", home).out
    assert desk.say("trust", home, "--yes").code == 0
    assert desk.say("run", "Hi", "--engine", desk.script("Hi")).code == 0


def test_a_folder_with_nothing_but_settings_is_shown_before_it_is_used(desk: Desk) -> None:
    desk.home.mkdir(mode=0o700)
    (desk.home / "queues.yaml").write_text("queues:\n  - name: ops\n    webhook: https://hooks.example/x\n")
    secrets = desk.home / "secrets.toml"
    secrets.touch(0o600)
    secrets.write_text('their_token = "abcdefghijkl"\n')
    assert desk.say("run", "Hi", "--engine", desk.script("Hi"), "--json").error == "STORE_NOT_TRUSTED"
    said = desk.say("doctor")
    assert "STORE_NOT_TRUSTED" in said.out
    assert "their_token" not in said.out
    said = desk.say("trust")
    assert (said.code, "sends to https://hooks.example/x" in said.out, f"reads    {secrets}" in said.out) == (
        3,
        True,
        True,
    )
    assert sorted(path.name for path in desk.home.iterdir()) == ["queues.yaml", "secrets.toml"]
    assert desk.say("trust", "--yes").code == 0
    assert desk.say("run", "Hi", "--engine", desk.script("Hi")).code == 0
    assert "their_token" in desk.say("doctor").out


def test_settings_that_cannot_be_read_are_a_problem_of_the_store(desk: Desk) -> None:
    desk.home.mkdir(mode=0o700)
    (desk.home / "queues.yaml").write_text("queues: 7\n")
    said = desk.say("doctor", "--json")
    assert [one["state"] for one in said.values["checks"] if one["name"] == "store.trust"] == ["problem"]


def test_a_store_that_is_not_there_cannot_be_trusted(desk: Desk) -> None:
    assert desk.say("trust", "--yes", "--json").error == "STORE_NOT_FOUND"
    assert not desk.home.exists()


def test_a_verdict_says_that_the_key_of_the_store_is_not_ours(desk: Desk, strangers: str) -> None:
    said = desk.say("verify", strangers)
    assert said.code == 0
    assert "the key of this store is not one of yours" in said.err
    assert desk.say("verify", strangers, "--json").values["signer_trusted"] is False
    assert desk.say("trust", "--yes").code == 0
    assert desk.say("verify", strangers, "--json").values["signer_trusted"] is True


def test_a_store_that_was_opened_by_a_program_signs_what_nobody_has_signed(tmp_path: Path) -> None:
    async def scene() -> None:
        store = EmbeddedStore.open(tmp_path)
        await store.journal.append("run", b"turn", after=-1)
        signed = sign_head(store.signer, run_id="run", seq=0, head=hash_turn(b"turn"), ending="")
        await store.journal.vouch(signed)
        await store.journal.vouch(signed)
        await store.journal.vouch(replace(signed, run_id="nobody"))
        (head,) = await store.catalogue.heads("run")
        assert (head.seq, head.signer) == (0, store.did)
        await store.close()

    asyncio.run(scene())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("name", ["remit.db", "heads.log", "key", "locks"])
def test_a_file_of_another_user_makes_a_store_theirs(desk: Desk, name: str) -> None:
    run_id = desk.waiting()
    os.chown(desk.home / name, 65534, -1)
    said = desk.say("doctor")
    assert f"STORE_NOT_TRUSTED: {name} belongs to user 65534" in " ".join(said.out.split())
    assert desk.say("approve", run_id, "--json").error == "STORE_NOT_TRUSTED"
    os.chown(desk.home / name, 0, -1)
    assert desk.say("approve", run_id).code == 0


def test_a_second_name_of_a_file_of_the_store_is_told_of(desk: Desk) -> None:
    run_id = desk.waiting()
    (desk.folder / "other.db").hardlink_to(desk.home / "remit.db")
    said = desk.say("doctor")
    assert (said.code, "STORE_LINKED" in said.out) == (1, True)
    assert desk.say("approve", run_id, "--json").error == "STORE_LINKED"
