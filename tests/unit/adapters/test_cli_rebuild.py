"""What a store derives from turns can be lost: it is made anew, and everything is shown as it was."""

import re
import sqlite3
from contextlib import closing
from typing import Any

from tests.unit.adapters.desk import Desk

# Everything that is derived of runs that there are. Refusals, receipts and what deleted runs cost are not.
DERIVED = (
    "UPDATE runs SET started_at_ms = NULL, mode = '', tenant_id = '', session_id = '', ordinal = 0, parent_id = ''",
    "UPDATE runs SET likeness = '', lineage = '', ending = '', waiting_for = ''",
    "DELETE FROM snapshots",
    "DELETE FROM charges WHERE run_no IN (SELECT run_no FROM runs)",
    "UPDATE charged_hours SET amount = 7",
    "UPDATE inbox SET code = NULL, message = NULL, settled_at_ms = NULL WHERE code = ''",
)


def lose(desk: Desk) -> None:
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        for statement in DERIVED:
            connection.execute(statement)


def views(desk: Desk, *runs: str) -> list[Any]:
    asked = [
        ("runs", "--children"),
        ("approvals",),
        ("queues",),
        ("quotas", "--tenant", "acme"),
        ("cost", "--by", "tenant"),
        *(("show", run) for run in runs),
        *(("verify", run) for run in runs),
    ]
    said = [desk.say(*words, "--json") for words in asked]
    # How long something has lain in a queue changes by itself.
    return [(one.code, re.sub(r'"oldest_ms": \d+', "", one.out)) for one in said]


def test_what_was_lost_is_made_anew_and_everything_is_shown_as_it_was(desk: Desk) -> None:
    desk.ended()
    (desk.home / "quotas.yaml").write_text("quotas:\n  - {tenant: acme, period: day, caps: {output_tokens: 100000}}\n")
    script = desk.script("one", "two")
    for text in ("first", "second"):
        assert desk.say("run", text, "--engine", script, "--session", "s", "--tenant", "acme").code == 0
    waits, ended = desk.waiting(), desk.ended()
    parent = desk.delegating()
    assert desk.say("fork", ended, "--why", "to look").code in (0, 3, 4)
    before = views(desk, waits, ended, parent)
    lose(desk)
    assert views(desk, waits, ended, parent) != before
    said = desk.say("rebuild", "--json")
    assert (said.code, said.values["unread"]) == (0, [])
    assert said.values["runs"] == len(desk.say("runs", "--children", "--json").rows)
    assert views(desk, waits, ended, parent) == before
    # Made anew once more, nothing changes; and runs go on.
    assert desk.say("rebuild").code == 0
    assert views(desk, waits, ended, parent) == before
    assert (
        desk.say("run", "third", "--engine", desk.script("three"), "--session", "s", "--tenant", "acme").out
        == "three\n"
    )
    assert desk.say("reject", waits).code in (0, 3, 4)


def test_a_run_that_cannot_be_read_is_named_and_the_others_are_made_anew(desk: Desk) -> None:
    bad, good = desk.ended(), desk.ended()
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        connection.execute(
            "UPDATE turns SET data = x'00' WHERE seq = 1 AND run_no = (SELECT run_no FROM runs WHERE run_id = ?)",
            (bad,),
        )
    lose(desk)
    said = desk.say("rebuild", "--json")
    assert (said.code, said.values) == (1, {"runs": 1, "unread": [bad]})
    assert f"`remit verify {bad}`" in desk.say("rebuild").out
    assert desk.say("show", good).code == 0


def test_a_store_with_halts_is_made_anew_and_they_are_no_run(desk: Desk) -> None:
    desk.ended()
    assert desk.say("halt", "--tool", "foo", "--why", "to look").code == 0
    said = desk.say("rebuild", "--json")
    assert (said.code, said.values) == (0, {"runs": 1, "unread": []})
    assert "1 runs, 0 open" in desk.say("doctor", "--json").out


def test_a_run_whose_place_in_a_session_another_took_meanwhile_is_named(desk: Desk) -> None:
    script = desk.script("one", "two", "three")
    for text in ("first", "second"):
        assert desk.say("run", text, "--engine", script, "--session", "s").code == 0
    lose(desk)
    assert desk.say("run", "third", "--engine", script, "--session", "s").code == 0
    said = desk.say("rebuild", "--json")
    assert (said.code, said.values["runs"], len(said.values["unread"])) == (1, 2, 1)
