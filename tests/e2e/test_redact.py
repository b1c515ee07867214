"""What was written before remit knew that it is a secret is taken out: no byte holds it, and the chain still verifies."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from remit.backend.embedded.disk.database import DATABASE
from remit.core.failure import EXIT_FAILED, EXIT_OK
from remit.core.journal.codec import encode_redacted, hash_turn, redacted_in
from remit.core.journal.signing import Signer, sign_redaction
from remit.core.record import replace
from tests.e2e.command import Remit, remit_in
from tests.e2e.house import calls, says
from tests.text_files import bytes_below

# No shape tells that these are secrets.
SHORT = "the north gate opens at nine"
CANARY = "a canary that is no secret"

TOOLS = f"""
from remit import tool

@tool(effect="read")
def look(what: str) -> str:
    \"\"\"Look something up.\"\"\"
    return "{SHORT}, said " + what if what == "short" else "{SHORT} " * 200

@tool(effect="external")
def send(text: str) -> str:
    \"\"\"Send words.\"\"\"
    return "sent " + text
"""


def written(folder: Path) -> tuple[Remit, str, str]:
    """A store with a run that holds the words in turns and in texts, and waits for a person: about this packet."""
    with remit_in(folder) as remit:
        script = [calls("look", {"what": "short"}), calls("look", {"what": "long"}), calls("send", {"text": SHORT})]
        remit.write(TOOLS, [*script, says(f"Done: {CANARY}, {SHORT}.")])
        done = remit.start_run().answer()
        (packet,) = done.values["waiting_for"]["packet_ids"]
        return remit, done.values["run_id"], packet


@pytest.mark.slow
def test_what_was_redacted_is_in_no_byte_and_the_chain_verifies(tmp_path: Path) -> None:
    remit, run_id, packet = written(tmp_path)
    assert SHORT.encode() in bytes_below(remit.home)
    (tmp_path / "words.txt").write_text(SHORT + "\n")
    done = remit(
        "redact", run_id, "--text-file", str(tmp_path / "words.txt"), "--why", "told by mistake", "--by", "ann"
    )
    assert done.exit_code == EXIT_OK, done
    assert SHORT.encode() not in bytes_below(remit.home)
    assert CANARY.encode() not in bytes_below(remit.home)
    verified = remit("verify", run_id)
    assert verified.exit_code == EXIT_OK, verified
    assert "turns, the first of them" in verified.out
    assert "were redacted by ann because 'told by mistake'" in verified.out
    assert "BLOB_REDACTED" in verified.out
    replayed = remit("replay", run_id, "--json")
    assert replayed.values["verdict"] == "redacted"
    for words in (("show", run_id), ("trace", run_id), ("explain", run_id), ("export", run_id), ("approvals",)):
        said = remit(*words)
        assert said.exit_code == EXIT_OK, said
        assert SHORT not in said.out + said.err
    # The run goes on, its next turns follow the redacted ones, and nothing is done with words that are gone.
    remit("approve", packet, "--by", "bob")
    assert "SECRET_GONE" in remit("show", run_id, "--json").out
    assert remit("verify", run_id).exit_code == EXIT_OK
    again = remit("redact", run_id, "--pattern", "any", "--why", "once more")
    assert again.exit_code == EXIT_OK, again


@pytest.mark.slow
def test_a_redaction_that_the_store_did_not_sign_is_found(tmp_path: Path) -> None:
    remit, run_id, _ = written(tmp_path)
    (tmp_path / "words.txt").write_text(SHORT)
    remit("redact", run_id, "--text-file", str(tmp_path / "words.txt"), "--why", "told by mistake")
    with closing(sqlite3.connect(remit.home / DATABASE)) as database:
        rows = database.execute("SELECT turn_no, seq, data FROM turns ORDER BY seq").fetchall()
        turn_no, seq, data = next(row for row in rows if redacted_in(row[2]) is not None)
        redacted = redacted_in(data)
        assert redacted is not None
        forged = encode_redacted(replace(redacted, why="for fun"))
        database.execute("UPDATE turns SET data = ? WHERE turn_no = ?", (forged, turn_no))
        database.commit()
        assert "REDACTION_FORGED" in remit("verify", run_id).out
        assert remit("show", run_id).exit_code == EXIT_FAILED
        foreign = encode_redacted(sign_redaction(Signer.generate(), run_id, seq, redacted))
        database.execute("UPDATE turns SET data = ? WHERE turn_no = ?", (foreign, turn_no))
        database.commit()
        assert hash_turn(foreign) == redacted.link
        assert "SIGNER_UNTRUSTED" in remit("verify", run_id).out


@pytest.mark.slow
def test_nothing_is_redacted_without_a_word_to_look_for(tmp_path: Path) -> None:
    remit, run_id, _ = written(tmp_path)
    assert remit("redact", run_id, "--why", "x").exit_code == 2
    assert remit("redact", run_id, "--why", "x", "--pattern", "nothing-known").error_code == "PATTERN_UNKNOWN"
    assert remit("redact", run_id, "--why", "x", "--text-file", str(tmp_path / "absent")).exit_code == 2
    (tmp_path / "words.txt").write_text("abc")
    assert remit("redact", run_id, "--why", "x", "--text-file", str(tmp_path / "words.txt")).exit_code == 2
    (tmp_path / "words.txt").write_text("words that nobody said")
    done = remit("redact", run_id, "--why", "x", "--text-file", str(tmp_path / "words.txt"))
    assert "nothing was changed" in done.out
    assert SHORT.encode() in bytes_below(remit.home)
