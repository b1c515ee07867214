"""`remit verify` and `remit replay` prove that a run, or an export of one, is as it was written."""

import sqlite3
from contextlib import closing

import pytest

from remit.adapters.cli.arguments.export_files import lines_in
from remit.adapters.cli.arguments.inputs import InputUnusable
from remit.core.journal.signing import Signer
from remit.observe.proof import verify
from tests.unit.adapters.desk import Desk


def damage(desk: Desk, statement: str) -> None:
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute(statement)


def test_a_run_that_nobody_touched_verifies_and_replays(desk: Desk) -> None:
    desk.waiting()
    assert desk.say("verify", "last").code == 0
    desk.say("approve", "last")
    said = desk.say("verify", "last", "--json")
    assert (said.code, said.values["ok"], said.values["ending"]) == (0, True, "SUCCESS")
    said = desk.say("replay", "last", "--json")
    assert (said.code, said.values["ok"], said.values["verdict"]) == (0, True, "same")
    assert "with no model and no tool called" in desk.say("replay", "last").out


def test_a_run_that_was_changed_is_found_out(desk: Desk) -> None:
    desk.ended()
    damage(desk, "DELETE FROM turns WHERE seq = 1")
    said = desk.say("verify", "last")
    assert said.code == 1
    assert "HEAD_BEYOND_JOURNAL" in said.out
    assert "FAILED verification" in said.out
    assert desk.say("verify", "last", "--json").values["ok"] is False


def test_a_turn_that_cannot_be_read_is_a_finding_and_no_crash(desk: Desk) -> None:
    desk.ended()
    damage(desk, "UPDATE turns SET data = x'00ff' WHERE seq = 1")
    said = desk.say("verify", "last")
    assert (said.code, "TURN_UNREADABLE" in said.out) == (1, True)
    said = desk.say("replay", "last")
    assert said.code == 1
    assert "turn 1 differs in bytes" in said.out


def test_another_key_than_the_trusted_one_is_found_out(desk: Desk) -> None:
    desk.ended()
    said = desk.say("verify", "last", "--key", Signer.generate().did)
    assert (said.code, "SIGNER_UNTRUSTED" in said.out) == (1, True)
    assert desk.say("verify", "last", "--key", "did:key:zSomebodyElse").code == 2, "it spells no key"


def test_an_export_verifies_and_replays_elsewhere_with_the_key_alone(desk: Desk) -> None:
    run_id = desk.ended()
    signer = desk.say("verify", run_id, "--json").values["signer"]
    path = desk.folder / "run.jsonl"
    said = desk.say("export", "last", "--output", path)
    assert said.out.startswith(f"run {run_id} exported to ")
    desk.home = desk.folder / "another_machine"
    assert desk.say("verify", path, "--key", signer).code == 0
    said = desk.say("verify", path)
    assert (said.code, "pass --key" in said.err) == (0, True)
    assert desk.say("replay", path, "--json").values["verdict"] == "same"
    assert not desk.home.exists()


def test_a_changed_export_is_found_out_and_a_cut_one_is_an_error(desk: Desk) -> None:
    desk.ended()
    path = desk.folder / "run.jsonl"
    desk.say("export", "last", "--output", path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[2], *lines[2:]]))
    assert desk.say("verify", path).code == 1
    path.write_bytes(b"".join(lines[:-1]))
    for command in ("verify", "replay"):
        said = desk.say(command, path, "--json")
        assert (said.code, said.rows[-1]["error"]["code"]) == (1, "EXPORT_TRUNCATED")


def test_an_older_export_is_found_out_by_the_log_of_this_store(desk: Desk) -> None:
    desk.waiting()
    path = desk.folder / "run.jsonl"
    desk.say("export", "last", "--output", path)
    desk.say("approve", "last")
    said = desk.say("verify", path)
    assert (said.code, "HEAD_BEYOND_JOURNAL" in said.out) == (1, True)


def test_a_store_that_cannot_be_read_does_not_keep_a_file_from_being_verified(desk: Desk) -> None:
    desk.ended()
    path = desk.folder / "run.jsonl"
    desk.say("export", "last", "--output", path)
    (desk.home / "remit.db").write_bytes(b"no database" * 100)
    said = desk.say("verify", path)
    assert said.code == 0
    assert "were not compared: STORE_DAMAGED" in said.err


def test_a_file_that_vanishes_is_an_error_with_a_code(desk: Desk) -> None:
    with pytest.raises(InputUnusable, match="EXPORT_FILE_UNUSABLE"):
        list(lines_in(desk.folder / "gone"))


def test_a_redacted_run_does_not_replay_as_the_same(desk: Desk) -> None:
    desk.ended("long " * 1000)
    damage(desk, "DELETE FROM blobs")
    said = desk.say("verify", "last")
    assert (said.code, "BLOB_REDACTED" in said.out) == (0, True)
    said = desk.say("replay", "last")
    assert (said.code, "replayed as redacted" in said.out) == (1, True)
    assert "lacking a text" in said.out


def test_many_findings_are_counted_and_not_all_listed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.ended()
    damage(desk, "UPDATE turns SET data = x'00ff'")
    monkeypatch.setattr(verify, "FINDINGS_MAX", 1)
    said = desk.say("verify", "last")
    assert said.code == 1
    assert "more findings" in said.out


def test_a_store_without_its_key_verifies_any_signature_and_exports_nothing(desk: Desk) -> None:
    desk.ended()
    (desk.home / "key").unlink()
    assert desk.say("verify", "last").code == 0
    said = desk.say("export", "last", "--output", desk.folder / "run.jsonl", "--json")
    assert (said.code, said.error) == (1, "EXPORT_UNSIGNED")
    assert not (desk.home / "key").exists()


def test_who_verifies_without_the_key_is_told_that_any_signer_will_do(desk: Desk) -> None:
    desk.ended()
    said = desk.say("verify", "last", "--json")
    assert (said.values["ok"], said.values["signer_trusted"], said.err) == (True, True, "")
    (desk.home / "key").unlink()
    bare = desk.say("verify", "last", "--json")
    assert (bare.code, bare.values["ok"], bare.values["signer_trusted"]) == (0, True, False)
    assert "the key of this store is not one of yours, or is gone; pass --key" in desk.say("verify", "last").err
    named = desk.say("verify", "last", "--key", said.values["signer"], "--json")
    assert (named.values["signer_trusted"], named.err) == (True, "")


def test_a_lost_key_is_not_replaced_unless_a_person_does_so(desk: Desk) -> None:
    first, key = desk.ended(), desk.home / "key"
    signer = desk.say("verify", first, "--json").values["signer"]
    key.unlink()
    for words in (("run", "Hi", "--engine", desk.script("Hi")), ("delete", first), ("resume", first)):
        said = desk.say(*words, "--json")
        assert (said.code, said.error, key.exists()) == (1, "STORE_KEY_MISSING", False)
    assert len(desk.say("runs", "--json").rows) == 1
    key.write_text("ab" * 32)
    key.chmod(0o600)
    # A key that stands in no list of ours is a stranger's, whatever put it there.
    assert desk.say("resume", first, "--json").error == "STORE_NOT_TRUSTED"
    assert desk.say("trust", "--yes").code == 0
    assert desk.say("verify", desk.ended()).code == 0
    assert desk.say("verify", first).code == 1
    assert desk.say("verify", first, "--key", signer).code == 0


def test_a_key_that_is_none_is_wrong_usage_and_no_verdict(desk: Desk) -> None:
    desk.ended()
    said = desk.say("verify", "last", "--key", "mine")
    assert (said.code, "--key 'mine' is no key" in said.err, said.out) == (2, True, "")
