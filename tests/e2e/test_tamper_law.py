"""The tamper law: whatever a forger without the key does to a store or an export, verifying finds it and names it.

A tamperer may write anything into the database and into exported files. The log of signed heads is out of reach.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random, SystemRandom

import pytest

from remit.backend.embedded.disk.database import DATABASE, WAL
from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import Signer, sign_head
from remit.core.journal.storage import SignedHead
from remit.observe.proof.export import ExportUnreadable, export_lines, read_export, verify_export
from remit.observe.proof.findings import Verification
from tests.e2e.command import Remit, remit_in
from tests.e2e.vault import TAMPERINGS, Turns, Vault, fill, opened_database, put_turns, verified

SEED = int(os.environ.get("REMIT_RANDOM_SEED") or SystemRandom().randrange(1 << 32))
# How often each kind of tampering is tried on each run, each time somewhere else.
TRIES = 5

MALLORY = Signer.from_bytes(bytes(32))

# At least one of these is found, whatever else is found because of it.
CODES: Mapping[str, set[str]] = {
    "edit_bytes": {"CHAIN_BROKEN", "HEAD_MISMATCH"},
    "edit_meaning": {"CHAIN_BROKEN", "HEAD_MISMATCH"},
    "cut_the_tail": {"HEAD_BEYOND_JOURNAL"},
    "cut_one_out": {"TURN_MISPLACED", "HEAD_BEYOND_JOURNAL"},
    "duplicate": {"TURN_MISPLACED"},
    "swap": {"TURN_MISPLACED"},
    "insert": {"TURN_MISPLACED", "CHAIN_BROKEN"},
    "recompute_the_tail": {"HEAD_MISMATCH"},
    "splice": {"HEAD_MISMATCH", "HEAD_BEYOND_JOURNAL"},
}
assert CODES.keys() == TAMPERINGS.keys()

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Vault:
    return fill(tmp_path_factory.mktemp("vault"))


def codes(found: Verification) -> set[str]:
    return {finding.code.value for finding in found.findings}


def tampered(vault: Vault, run_id: str, name: str, attempt: int) -> Turns:
    """The turns of a run after a tampering of this name; no chance may leave them as they were."""
    chance = Random(f"{SEED} {name} {run_id == vault.ended} {attempt}")
    turns = vault.turns(run_id)
    changed = TAMPERINGS[name](turns, vault.turns(vault.other), chance)
    assert changed != turns
    return changed


def export_of(vault: Vault, run_id: str, turns: Sequence[bytes], signer: Signer | None = None) -> list[bytes]:
    """An export with these turns: signed by a stranger, or with the footer that was there before."""
    lines = exported(vault, run_id)
    export = read_export(lines)
    forged = export_lines(
        run_id,
        turns,
        heads=export.heads,
        logged=export.logged,
        blob_of=export.blobs.get,
        signer=vault.did if signer is None else signer.did,
        sign=(signer or MALLORY).sign,
    )
    return [*list(forged)[:-1], lines[-1]] if signer is None else list(forged)


def exported(vault: Vault, run_id: str) -> list[bytes]:
    answer = Remit(vault.home.parent).here("export", run_id)
    assert answer.exit_code == 0, answer
    return answer.out.encode().splitlines(keepends=True)


def findings_in(lines: Sequence[bytes], signer: str | None = None, logged: Sequence[SignedHead] = ()) -> set[str]:
    """The codes of everything that is wrong with an export; nothing when it may be trusted."""
    try:
        found = verify_export(lines, signer=signer, logged=logged)
    except ExportUnreadable as error:
        return {error.code}
    return set() if found.ok else codes(found)


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_with_the_journal_is_found_wherever_it_happens(
    name: str, vault: Vault, tmp_path: Path, record_property: Record
) -> None:
    for run_id in (vault.ended, vault.waiting, vault.wordy):
        for attempt in range(TRIES):
            home = vault.copy_to(tmp_path / f"{run_id}-{attempt}")
            put_turns(home, run_id, tampered(vault, run_id, name, attempt))
            found = verified(home, run_id)
            assert not found.ok, f"REMIT_RANDOM_SEED={SEED}, attempt {attempt} of {name}"
            assert codes(found) & CODES[name], f"REMIT_RANDOM_SEED={SEED}, attempt {attempt} of {name}: {found}"
            record_property(f"figure: tamper law, journals tampered with, seed {SEED}", 1)


@pytest.mark.parametrize("name", TAMPERINGS)
def test_tampering_with_an_export_is_found_wherever_it_happens(
    name: str, vault: Vault, record_property: Record
) -> None:
    for run_id in (vault.ended, vault.waiting, vault.wordy):
        for attempt in range(TRIES):
            turns = tampered(vault, run_id, name, attempt)
            where = f"REMIT_RANDOM_SEED={SEED}, attempt {attempt} of {name}"
            assert findings_in(export_of(vault, run_id, turns)) & CODES[name], where
            # A forger who signs for it with another key is found out by every reader who knows whom to trust.
            assert "SIGNER_UNTRUSTED" in findings_in(export_of(vault, run_id, turns, MALLORY), vault.did), where
            record_property(f"figure: tamper law, exports tampered with, seed {SEED}", 2)


def test_any_line_of_an_export_that_is_changed_dropped_doubled_or_moved_is_found(
    vault: Vault, record_property: Record
) -> None:
    chance = Random(SEED)
    lines, others = exported(vault, vault.wordy), exported(vault, vault.other)
    assert findings_in(lines, vault.did) == set()
    for at, line in enumerate(lines):
        place = chance.randrange(len(line))
        flipped = line[:place] + bytes([line[place] ^ chance.randrange(1, 256)]) + line[place + 1 :]
        other = chance.choice([number for number in range(len(lines)) if lines[number] != line])
        swapped = list(lines)
        swapped[at], swapped[other] = swapped[other], line
        for changed in (
            [*lines[:at], flipped, *lines[at + 1 :]],
            [*lines[:at], *lines[at + 1 :]],
            lines[:at],
            [*lines[:at], line, *lines[at:]],
            [*lines[:at], chance.choice(others), *lines[at:]],
            swapped,
        ):
            found = findings_in(changed, vault.did) if changed else {"EXPORT_TRUNCATED"}
            assert found, f"REMIT_RANDOM_SEED={SEED}, line {at}"
            record_property(f"figure: tamper law, exports tampered with, seed {SEED}", 1)


def test_an_older_copy_of_the_database_is_found(vault: Vault, tmp_path: Path) -> None:
    home = vault.copy_to(tmp_path / "store")
    for name in (DATABASE, WAL, f"{DATABASE}-shm"):
        (home / name).unlink(missing_ok=True)
        if (vault.earlier / name).exists():
            shutil.copy(vault.earlier / name, home / name)
    for run_id in (vault.ended, vault.waiting):
        assert "HEAD_BEYOND_JOURNAL" in codes(verified(home, run_id))
    answer = Remit(tmp_path)("verify", vault.ended)
    assert answer.exit_code == 1
    assert "HEAD_BEYOND_JOURNAL" in answer.out
    # The last run had not begun yet when the copy was made.
    assert Remit(tmp_path).here("verify", vault.wordy).error_code == "RUN_MISSING"


def test_an_older_export_is_found_by_a_verifier_that_knows_the_newer_heads(vault: Vault, tmp_path: Path) -> None:
    shutil.copytree(vault.earlier, tmp_path / "store")
    older = Remit(tmp_path).here("export", vault.ended)
    assert older.exit_code == 0, older
    (vault.home.parent / "older.jsonl").write_text(older.out)
    answer = Remit(vault.home.parent)("verify", "older.jsonl", "--json")
    assert answer.exit_code == 1
    assert {finding["code"] for finding in answer.values["findings"]} == {"HEAD_BEYOND_JOURNAL"}


RUN_NO = "(SELECT run_no FROM runs WHERE run_id = :run)"
LAST_HEAD = f"(SELECT max(seq) FROM heads WHERE run_no = {RUN_NO})"

# Tamperings with the tables beside the turns, and what is found then.
ELSEWHERE: Mapping[str, tuple[str, set[str]]] = {
    "nothing": ("SELECT 1", set()),
    "a_forged_signature": (f"UPDATE heads SET signature = randomblob(64) WHERE run_no = {RUN_NO}", {"HEAD_FORGED"}),
    "a_head_that_was_moved": (
        f"UPDATE heads SET seq = seq + 1 WHERE run_no = {RUN_NO} AND seq = {LAST_HEAD}",
        {"HEAD_FORGED"},
    ),
    "another_ending": (f"UPDATE heads SET ending = 'IMPOSSIBLE' WHERE run_no = {RUN_NO}", {"HEAD_FORGED"}),
    "heads_of_another_run": (
        f"UPDATE OR REPLACE heads SET run_no = {RUN_NO} WHERE run_no <> {RUN_NO}",
        {"HEAD_FORGED"},
    ),
    "a_text_that_was_changed": ("UPDATE blobs SET data = substr(data, 2)", {"BLOB_ALTERED"}),
    "an_emptied_run": (f"DELETE FROM turns WHERE run_no = {RUN_NO}", {"RUN_EMPTY", "HEAD_BEYOND_JOURNAL"}),
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_tampering_with_the_tables_beside_the_turns_is_found(name: str, vault: Vault, tmp_path: Path) -> None:
    statement, expected = ELSEWHERE[name]
    home = vault.copy_to(tmp_path / "store")
    with opened_database(home) as connection:
        connection.execute(statement, {"run": vault.wordy})
    found = verified(home, vault.wordy)
    assert expected <= codes(found), found
    assert found.ok is (not expected)


@pytest.mark.parametrize("change", ["ending = 'SUCCESS'", "waiting_for = ''", "session_id = 'x'", "parent_id = 'x'"])
def test_a_list_of_runs_that_says_something_else_than_their_turns_is_found(
    change: str, vault: Vault, tmp_path: Path
) -> None:
    home = vault.copy_to(tmp_path / "store")
    with opened_database(home) as connection:
        connection.execute(f"UPDATE runs SET {change} WHERE run_id = ?", (vault.waiting,))
    assert codes(verified(home, vault.waiting)) == {"INDEX_DIFFERS"}


def test_a_run_whose_turns_are_gone_is_missed_by_a_reader_of_it(vault: Vault, tmp_path: Path) -> None:
    vault.copy_to(tmp_path / "store")
    put_turns(tmp_path / "store", vault.waiting, ())
    remit = Remit(tmp_path)
    listed = remit.here("runs")
    assert (listed.exit_code, "cannot be read" in listed.err) == (1, True)
    for command in ("show", "trace", "explain", "approve", "resume"):
        answer = remit.here(command, vault.waiting)
        assert (answer.exit_code, answer.error_code) == (1, "RUN_MISSING"), answer


def test_turns_under_the_name_of_another_run_are_found(vault: Vault, tmp_path: Path) -> None:
    home = vault.copy_to(tmp_path / "store")
    with opened_database(home) as connection:
        connection.execute("UPDATE runs SET run_id = 'between' WHERE run_id = ?", (vault.ended,))
        connection.execute("UPDATE runs SET run_id = ? WHERE run_id = ?", (vault.ended, vault.other))
    assert {"RUN_FOREIGN", "HEAD_FORGED", "HEAD_MISMATCH"} <= codes(verified(home, vault.ended))


def test_heads_that_a_forger_signed_with_a_key_of_their_own_are_found(vault: Vault, tmp_path: Path) -> None:
    home = vault.copy_to(tmp_path / "store")
    turns = tampered(vault, vault.ended, "recompute_the_tail", 0)
    put_turns(home, vault.ended, turns)
    with opened_database(home) as connection:
        ((run_no,),) = connection.execute("SELECT run_no FROM runs WHERE run_id = ?", (vault.ended,)).fetchall()
        for seq, _, ending in connection.execute("SELECT seq, head, ending FROM heads WHERE run_no = ?", (run_no,)):
            forged = sign_head(MALLORY, run_id=vault.ended, seq=seq, head=hash_turn(turns[seq]), ending=ending)
            connection.execute(
                "UPDATE heads SET head = ?, signer = ?, signature = ? WHERE run_no = ? AND seq = ?",
                (forged.head, forged.signer, forged.signature, run_no, seq),
            )
    assert {"SIGNER_UNTRUSTED", "HEAD_MISMATCH"} <= codes(verified(home, vault.ended))


def test_a_text_that_is_gone_is_a_redaction_and_a_run_without_it_still_verifies(vault: Vault, tmp_path: Path) -> None:
    home = vault.copy_to(tmp_path / "store")
    with opened_database(home) as connection:
        connection.execute("DELETE FROM blobs")
    found = verified(home, vault.wordy)
    assert found.ok
    assert codes(found) == {"BLOB_REDACTED"}


@pytest.mark.parametrize("name", ["edit_meaning", "recompute_the_tail", "splice"])
def test_the_installed_command_finds_tampering_and_says_so_with_its_exit_code(
    name: str, vault: Vault, tmp_path: Path
) -> None:
    vault.copy_to(tmp_path / "store")
    turns = tampered(vault, vault.ended, name, 0)
    put_turns(tmp_path / "store", vault.ended, turns)
    answer = Remit(tmp_path)("verify", vault.ended, "--json")
    assert answer.exit_code == 1, f"REMIT_RANDOM_SEED={SEED}"
    assert answer.values["ok"] is False
    assert {finding["code"] for finding in answer.values["findings"]} & CODES[name]
    (tmp_path / "forged.jsonl").write_bytes(b"".join(export_of(vault, vault.ended, turns)))
    carried = Remit(tmp_path / "elsewhere")
    carried.folder.mkdir()
    answer = carried.here("verify", str(tmp_path / "forged.jsonl"), "--key", vault.did)
    assert answer.exit_code == 1
    assert any(code in answer.out for code in CODES[name])


def test_an_untouched_export_verifies_elsewhere_with_the_public_key_alone(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_bytes(b"".join(exported(vault, vault.ended)))
    elsewhere = Remit(tmp_path)
    answer = elsewhere("verify", "run.jsonl", "--key", vault.did, "--json")
    assert answer.exit_code == 0, answer
    assert (answer.values["ok"], answer.values["findings"]) == (True, [])
    assert answer.values["signer"] == vault.did
    assert elsewhere("replay", "run.jsonl").exit_code == 0
    assert elsewhere.here("verify", "run.jsonl", "--key", MALLORY.did).exit_code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run.jsonl"], "proving an export made a store"


def test_deleting_a_run_leaves_the_others_verifiable_and_is_told_from_cutting_it_out(
    vault: Vault, tmp_path: Path
) -> None:
    vault.copy_to(tmp_path / "store")
    with remit_in(tmp_path) as remit:
        assert remit("delete", vault.wordy).exit_code == 0
        assert remit("gc", "--older-than", "0", "--json").values["removed"]["runs"] >= 2
        # Runs that had ended are gone now; the one that waits is not, and neither is what it needs.
        listed = [json.loads(line)["run_id"] for line in remit.here("runs", "--json").out.splitlines()]
        assert listed == [vault.waiting]
        assert remit("verify", vault.waiting).exit_code == 0
        assert remit.here("replay", vault.waiting).exit_code == 0
        for deleted in (vault.wordy, vault.ended):
            answer = remit.here("verify", deleted)
            assert (answer.exit_code, answer.error_code) == (1, "RUN_DELETED")
    with opened_database(tmp_path / "store") as connection:
        connection.execute("DELETE FROM turns")
        connection.execute("DELETE FROM heads")
        connection.execute("DELETE FROM runs")
    # It was the last one, so the next opener of the store is told that it was emptied.
    answer = remit.here("verify", vault.waiting)
    assert (answer.exit_code, answer.error_code) == (1, "STORE_EMPTIED")
    assert remit.here("verify", "nobody").error_code == "STORE_EMPTIED"
