"""What a store derives from turns can be lost: it is made anew, and everything is shown as it was."""

import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest

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


# Which of the views below is that of quotas.
QUOTAS = 5


def lose(desk: Desk, *statements: str) -> None:
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection, connection:
        for statement in statements or DERIVED:
            connection.execute(statement)


# As if nothing had ever been said of the runs that are kept.
BLANK = "UPDATE runs SET started_at_ms = NULL, mode = '', ending = '', waiting_for = '', ended_at_ms = NULL"


def asked(desk: Desk, query: str) -> list[Any]:
    with closing(sqlite3.connect(desk.home / "remit.db")) as connection:
        return connection.execute(query).fetchall()


def views(desk: Desk, *runs: str) -> list[Any]:
    words_of = [
        ("runs", "--children"),
        ("approvals",),
        ("halt", "--list"),
        ("verify", "--all"),
        ("queues",),
        ("quotas", "--tenant", "acme"),
        ("cost", "--by", "tenant"),
        *(("show", run) for run in runs),
        *(("verify", run) for run in runs),
    ]
    said = [desk.say(*words, "--json") for words in words_of]
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
    assert (said.code, said.values) == (1, {"runs": 1, "unread": [bad], "nameless": 0, "untold": []})
    assert f"`remit verify {bad}`" in desk.say("rebuild").out
    assert desk.say("show", good).code == 0


def test_a_store_with_halts_is_made_anew_and_they_are_no_run(desk: Desk) -> None:
    desk.ended()
    assert desk.say("halt", "--tool", "foo", "--why", "to look").code == 0
    said = desk.say("rebuild", "--json")
    assert (said.code, said.values) == (0, {"runs": 1, "unread": [], "nameless": 0, "untold": []})
    assert "1 runs, 0 open" in desk.say("doctor", "--json").out


def test_a_run_whose_place_in_a_session_another_took_meanwhile_is_named(desk: Desk) -> None:
    script = desk.script("one", "two", "three")
    for text in ("first", "second"):
        assert desk.say("run", text, "--engine", script, "--session", "s").code == 0
    lose(desk)
    # Nothing is begun in a store that lists no run; a list that was mended by hand in part is taken for one.
    said = desk.say("run", "third", "--engine", script, "--session", "s", "--json")
    assert (said.code, said.error) == (1, "STORE_INDEX_LOST")
    lose(desk, "UPDATE runs SET started_at_ms = 1, mode = 'chat', ending = 'SUCCESS' WHERE run_no = 1")
    assert desk.say("run", "third", "--engine", script, "--session", "s").code == 0
    said = desk.say("rebuild", "--json")
    assert (said.code, said.values["runs"], len(said.values["unread"])) == (1, 2, 1)


# Each loss of what is derived: rows of the index, whole tables, and what keeps them in step.
LOSSES = {
    "a run is not listed": ("DELETE FROM runs WHERE run_no = 1",),
    "no run is listed, nor the halts": ("DELETE FROM runs",),
    "no number was ever given": ("DELETE FROM runs", "DELETE FROM sqlite_sequence"),
    "there is no index": ("DROP TABLE runs",),
    "the index has other columns": ("DROP INDEX alike", "ALTER TABLE runs DROP COLUMN likeness"),
    "the index is a view": ("DROP TABLE runs", "CREATE VIEW runs AS SELECT 1 AS run_no, 'x' AS run_id"),
    "journals have other numbers": ("UPDATE runs SET run_no = run_no + 50",),
    "journals have other names": (
        "UPDATE runs SET run_id = '?' WHERE run_no = 1",
        "UPDATE runs SET run_id = (SELECT 'x' || run_no) WHERE run_no = 2",
    ),
    "two journals have each other's name": (
        "UPDATE runs SET run_id = run_id || '-' WHERE run_no < 3",
        "UPDATE runs SET run_id = (SELECT rtrim(run_id, '-') FROM runs AS o WHERE o.run_no = 3 - runs.run_no) WHERE run_no = 1",
        "UPDATE runs SET run_id = 'other' WHERE run_no = 2",
    ),
    "the halts are listed as a run": ("UPDATE runs SET started_at_ms = 77, ending = 'SUCCESS' WHERE run_id = 'halts'",),
    "runs ended long ago": ("UPDATE runs SET ended_at_ms = 77, started_at_ms = 77",),
    "there are no sums": ("DROP TABLE charged_hours",),
    "nothing is counted": ("DROP TABLE charges", "DROP TABLE charged_hours"),
    "there are no snapshots": ("DROP TABLE snapshots",),
    "nothing keeps the sums in step": (
        "DROP TRIGGER charge_added",
        "DROP TRIGGER charge_changed",
        "DROP TRIGGER charge_removed",
    ),
    "something else keeps the sums": (
        "DROP TRIGGER charge_added",
        "CREATE TRIGGER charge_added AFTER INSERT ON charges BEGIN DELETE FROM charged_hours; END",
        "CREATE TRIGGER mine AFTER INSERT ON charges BEGIN DELETE FROM charges; END",
    ),
    "there are no indexes": ("DROP INDEX places", "DROP INDEX open_runs", "DROP INDEX alike", "DROP INDEX unsettled"),
    "runs share a place": ("DROP INDEX places", "UPDATE runs SET session_id = 's', ordinal = 0"),
    "a run has the place of another": (
        "UPDATE runs SET session_id = '' WHERE session_id = 's' AND ordinal = 0",
        "UPDATE runs SET session_id = 's', ordinal = 0 WHERE run_no = (SELECT max(run_no) FROM runs WHERE mode <> '')",
    ),
}


@pytest.mark.parametrize("lost", LOSSES)
def test_whatever_is_derived_and_lost_is_made_anew_down_to_the_schema(desk: Desk, lost: str) -> None:
    first = desk.ended()
    (desk.home / "quotas.yaml").write_text("quotas:\n  - {tenant: acme, period: day, caps: {output_tokens: 100000}}\n")
    script = desk.script("one", "two")
    for text in ("first", "second"):
        assert desk.say("run", text, "--engine", script, "--session", "s", "--tenant", "acme").code == 0
    assert desk.say("halt", "--tool", "wire", "--why", "to look").code == 0
    waits = desk.waiting()
    before = views(desk, first, waits)
    schema = sorted(asked(desk, "SELECT type, name, sql FROM sqlite_schema"), key=str)
    ((highest,),) = asked(desk, "SELECT max(run_no) FROM turns")
    lose(desk, *LOSSES[lost])
    said = desk.say("rebuild", "--json")
    assert (said.code, said.values) == (0, {"runs": 4, "unread": [], "nameless": 0, "untold": []})
    assert views(desk, first, waits) == before
    assert sorted(asked(desk, "SELECT type, name, sql FROM sqlite_schema"), key=str) == schema
    # What comes next is counted, has a place of its own and a number that no other has had.
    assert desk.say("run", "third", "--engine", script, "--session", "s", "--tenant", "acme").code == 0
    assert views(desk)[QUOTAS] != before[QUOTAS]
    assert asked(desk, "SELECT max(run_no) FROM turns") > [(highest,)]
    assert desk.say("approve", waits).code == 0


def test_a_run_that_is_gone_with_its_turns_is_not_forgotten(desk: Desk) -> None:
    gone, _ = desk.ended(), desk.ended()
    lose(
        desk,
        f"DELETE FROM turns WHERE run_no = (SELECT run_no FROM runs WHERE run_id = '{gone}')",
        f"DELETE FROM runs WHERE run_id = '{gone}'",
    )
    assert desk.say("rebuild").code == 0
    said = desk.say("verify", "--all")
    assert (said.code, f"{gone}" in said.out, "RUN_GONE" in said.out) == (1, True, True)


@pytest.mark.parametrize(
    "made",
    [
        "DELETE FROM turns WHERE run_no = (SELECT run_no FROM runs WHERE run_id = '{}')",
        "INSERT INTO runs (run_id, started_at_ms, mode, session_id) VALUES ('ghost', 77, 'chat', 's')",
    ],
    ids=["its turns are gone", "a caller listed it"],
)
def test_a_run_that_is_listed_and_has_no_turn_is_named_and_listed_no_more(desk: Desk, made: str) -> None:
    gone, kept = desk.ended(), desk.ended()
    assert desk.say("run", "Hi", "--engine", desk.script("Hi"), "--session", "s").code == 0
    lose(desk, "DROP INDEX places", made.format(gone))
    untold = gone if "turns" in made else "ghost"
    said = desk.say("rebuild")
    assert (said.code, f"run {untold} has no turn and is listed no more" in said.out) == (1, True)
    rows = {row["run_id"]: row for row in desk.say("runs", "--json").rows}
    assert kept in rows
    assert untold not in rows
    assert (desk.say("verify", "--all").code, desk.say("show", untold).code) == (int(untold == gone), 1)
    # The place that it had without right is the run's that tells it.
    assert desk.say("rebuild", "--json").values["untold"] == []


def test_a_store_whose_newest_run_was_deleted_on_purpose_has_nothing_without_a_name(desk: Desk) -> None:
    kept = desk.ended()
    desk.say("delete", desk.ended())
    assert desk.say("rebuild", "--json").values == {"runs": 1, "unread": [], "nameless": 0, "untold": []}
    assert [row["run_id"] for row in desk.say("runs", "--json").rows] == [kept]


@pytest.mark.parametrize("blanked", ["started_at_ms = NULL", "ending = ''", "ending = 'TIMEOUT'"])
def test_a_run_of_which_the_list_says_nothing_is_told_by_doctor_and_verify_until_it_is_listed_again(
    desk: Desk, blanked: str
) -> None:
    gone, kept = desk.ended(), desk.ended()
    lose(desk, f"UPDATE runs SET {blanked} WHERE run_id = '{gone}'")
    problem = next(row for row in desk.say("doctor", "--json").values["checks"] if row["name"] == "store.index")
    assert (problem["state"], problem["code"], problem["way_out"]) == ("problem", "STORE_INDEX_LOST", "remit rebuild")
    said = desk.say("verify", "--all")
    assert (said.code, f"{gone}: INDEX_DIFFERS" in said.out, f"{kept}: " in said.out) == (1, True, False)
    assert (desk.say("rebuild").code, desk.say("verify", "--all").code, desk.say("doctor").code) == (0, 0, 0)


def test_a_run_that_is_listed_as_open_although_it_ended_is_not_shown_as_open(desk: Desk) -> None:
    ended = desk.ended()
    lose(desk, "UPDATE runs SET ending = '', ended_at_ms = NULL")
    said = desk.say("runs")
    assert (said.code, f"`remit verify {ended}` says what is wrong" in said.err) == (1, True)
    assert "STORE_INDEX_LOST" in desk.say("doctor").out
    assert "`remit rebuild` lists it anew" in desk.say("verify", ended).out
    assert (desk.say("rebuild").code, desk.say("runs").code) == (0, 0)


def test_a_store_that_holds_nothing_but_halts_has_its_index(desk: Desk) -> None:
    run_id = desk.ended()
    assert desk.say("halt", "--tool", "write", "--why", "smoke").code == 0
    assert desk.say("delete", run_id).code == 0
    assert (desk.say("runs").code, desk.say("doctor").code, desk.say("verify", "--all").code) == (0, 0, 0)


def test_a_store_without_its_index_says_what_makes_it_anew(desk: Desk) -> None:
    desk.ended()
    for statement in (BLANK, "DELETE FROM runs", "DROP TABLE runs"):
        lose(desk, statement)
        for words in (["runs"], ["run", "Hi", "--engine", desk.script("Hi")], ["verify", "--all"]):
            said = desk.say(*words, "--json")
            assert (said.code, said.error, "`remit rebuild`" in said.out) == (1, "STORE_INDEX_LOST", True)
        assert "STORE_INDEX_LOST" in desk.say("doctor").out
    assert desk.say("rebuild").code == 0
    assert len(desk.say("runs", "--json").rows) == 1


@pytest.mark.parametrize(
    "statements",
    [
        ("DELETE FROM runs WHERE run_no = 1", "UPDATE turns SET data = x'00' WHERE run_no = 1 AND seq = 0"),
        ("DELETE FROM runs WHERE run_no = 1", "UPDATE turns SET data = 'text' WHERE run_no = 1 AND seq = 0"),
        ("DELETE FROM runs WHERE run_no = 1", "DELETE FROM turns WHERE run_no = 1 AND seq = 0"),
        ("INSERT INTO turns (run_no, seq, data) SELECT 77, seq, data FROM turns WHERE run_no = 1",),
        (
            "DELETE FROM runs WHERE run_no = 1",
            "INSERT INTO turns (run_no, seq, data) SELECT 77, seq, data FROM turns WHERE run_no = 1",
            "UPDATE turns SET data = x'00' WHERE run_no = 1 AND seq = 0",
            "INSERT INTO turns (run_no, seq, data) SELECT 78, seq, data FROM turns WHERE run_no = 2",
            "UPDATE turns SET data = x'00' WHERE run_no = 77",
        ),
    ],
)
def test_journals_that_name_no_run_of_their_own_are_counted_and_the_others_are_listed(
    desk: Desk, statements: tuple[str, ...]
) -> None:
    desk.ended()
    good = desk.ended()
    lose(desk, *statements)
    said = desk.say("rebuild", "--json")
    assert (said.code, said.values["nameless"] > 0) == (1, True)
    assert "journals name no run that could be listed" in desk.say("rebuild").out
    assert desk.say("show", good).code == 0


def test_two_journals_that_tell_one_name_which_none_has_are_both_left_out(desk: Desk) -> None:
    desk.ended()
    good = desk.ended()
    lose(
        desk,
        "INSERT INTO turns (run_no, seq, data) SELECT 77, seq, data FROM turns WHERE run_no = 1",
        "DELETE FROM runs WHERE run_no = 1",
    )
    assert desk.say("rebuild", "--json").values == {"runs": 1, "unread": [], "nameless": 2, "untold": []}
    assert desk.say("show", good).code == 0


@pytest.mark.parametrize("table", ["heads", "inbox", "receipts", "blobs"])
def test_a_table_that_nothing_can_be_derived_from_is_named_and_nothing_is_made_in_its_place(
    desk: Desk, table: str
) -> None:
    desk.ended()
    lose(desk, f"DROP TABLE {table}")
    said = desk.say("rebuild", "--json")
    assert (said.code, said.error) == (1, "STORE_DAMAGED")
    assert f"table {table} is missing" in said.out


def test_an_open_run_that_is_listed_as_ended_is_told_by_doctor_until_it_is_listed_again(desk: Desk) -> None:
    desk.waiting()
    assert "`remit verify --all` compares the rest" in " ".join(desk.say("doctor").out.split())
    lose(desk, "UPDATE runs SET ending = 'SUCCESS', ended_at_ms = 1 WHERE ending = ''")
    said = desk.say("doctor")
    assert (said.code, "store.index is broken: STORE_INDEX_LOST" in said.out) == (1, True)
    assert (desk.say("rebuild").code, desk.say("doctor").code) == (0, 0)


@pytest.mark.parametrize(
    "lost", ["DELETE FROM runs", "UPDATE runs SET run_id = 'x'", "UPDATE runs SET started_at_ms = NULL"]
)
def test_a_run_that_is_kept_and_not_listed_is_no_run_that_is_gone_at_any_door(desk: Desk, lost: str) -> None:
    waits, _ = desk.waiting(), desk.ended()
    lose(desk, f"{lost} WHERE run_id = '{waits}'")
    for words in (["show", waits], ["resume", waits], ["approve", waits], ["verify", waits], ["delete", waits]):
        said = desk.say(*words, "--json")
        assert (said.code, said.error, "`remit rebuild`" in said.out) == (1, "STORE_INDEX_LOST", True)
    told = desk.say("verify", "--all").out
    assert f"{waits}: INDEX_DIFFERS: run {waits} is kept and not listed (STORE_INDEX_LOST); `remit rebuild`" in told
    assert "RUN_GONE" not in told
    checks = {row["name"]: row for row in desk.say("doctor", "--json").values["checks"]}
    assert (checks["store.log"]["state"], checks["store.index"]["code"]) == ("ok", "STORE_INDEX_LOST")
    assert (desk.say("rebuild").code, desk.say("doctor").code, desk.say("approve", waits).code) == (0, 0, 0)


@pytest.mark.parametrize("lost", ["there is no index", "the index is a view", "no run is listed, nor the halts"])
def test_a_check_up_of_a_store_without_its_index_names_no_other_way_out_than_to_make_it_anew(
    desk: Desk, lost: str
) -> None:
    desk.ended()
    lose(desk, *LOSSES[lost])
    problems = [row for row in desk.say("doctor", "--json").values["checks"] if row["state"] == "problem"]
    assert {row["code"] for row in problems} == {"STORE_INDEX_LOST"}
    assert "backup" not in desk.say("doctor").out


def test_an_open_run_that_is_listed_as_ended_is_shown_as_its_turns_say_and_its_question_is_not_unknown(
    desk: Desk,
) -> None:
    waits = desk.waiting()
    lose(desk, "UPDATE runs SET ending = 'SUCCESS', waiting_for = '', ended_at_ms = 1")
    shown = desk.say("show", waits, "--json").values
    assert (shown["entry"]["ending"], shown["entry"]["waiting_for"]) == ("", "CONFIRM_REQUIRED")
    assert "stands" in (out := desk.say("show", waits).out)
    assert "SUCCESS" not in out
    for verb in ("approve", "reject"):
        said = desk.say(verb, waits, "--json")
        assert (said.code, said.error, "`remit rebuild`" in said.out) == (1, "INDEX_DIFFERS", True)
        assert "waiting_for is '', and 'CONFIRM_REQUIRED' by its turns" in said.out
    assert (desk.say("rebuild").code, desk.say("approve", waits).code) == (0, 0)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("tenant_id = 'other'", "tenant_id is 'other', and '' by its turns"),
        ("parent_id = 'x'", "parent_id is 'x', and '' by its turns"),
        ("ending = ''", "ending is '', and 'SUCCESS' by its turns"),
    ],
)
def test_a_run_that_is_listed_otherwise_is_told_with_the_column_that_differs(
    desk: Desk, change: str, named: str
) -> None:
    ended = desk.ended()
    lose(desk, f"UPDATE runs SET {change}")
    said = desk.say("verify", ended)
    assert (said.code, f"is listed otherwise than its turns say: {named};" in said.out) == (1, True)


@pytest.mark.parametrize(
    ("lost", "code"),
    [
        ("DELETE FROM runs WHERE parent_id = ''", "STORE_INDEX_LOST"),
        ("UPDATE runs SET ending = 'SUCCESS', waiting_for = '' WHERE parent_id = ''", "INDEX_DIFFERS"),
    ],
)
def test_a_child_is_not_cancelled_because_only_the_list_says_that_its_parent_is_over(
    desk: Desk, lost: str, code: str
) -> None:
    parent = desk.delegating()
    ((child,),) = asked(desk, f"SELECT run_id FROM runs WHERE parent_id = '{parent}'")
    lose(desk, lost)
    assert "is cancelled" not in desk.say("resume", "--all").err
    said = desk.say("approve", child, "--json")
    assert (said.code, said.error) == (1, code)
    assert (desk.say("rebuild").code, desk.say("approve", child).code) == (0, 0)
