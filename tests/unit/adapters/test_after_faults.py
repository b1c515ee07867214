"""What a user finds after a fault: children of forks, restored runs, rebuilt inboxes and guarded runs of a database put back."""

import asyncio

import pytest

from remit.assemble import opened_system, settings_of
from remit.core.failure import RemitError
from remit.core.journal.codec import encode_signal
from remit.core.record import JsonObject
from remit.core.run.signals import Signal, UserSignal
from tests.unit.adapters.desk import HELPER, TOOLS, Desk, calls
from tests.unit.adapters.test_cli_rebuild import lose
from tests.unit.adapters.test_cli_restore import backed_up, put_back


def delegating(desk: Desk) -> str:
    """A run whose child asks, with a script that serves forks of it as well."""
    tools = desk.file("tools.py", TOOLS + HELPER)
    asks = [{"when": '"task"', **calls("write", text="hello")}] * 3
    script = desk.script(*asks, calls("helper", task="write"), *["Done."] * 6)
    return str(desk.say("run", "Have it written", "--engine", script, "--tools", tools, "--json").values["run_id"])


def child_of(desk: Desk, parent: str) -> str:
    rows = desk.say("runs", "--children", "--json").rows
    return next(str(row["run_id"]) for row in rows if row["listing"].get("parent_id") == parent)


def waits(desk: Desk, run_id: str) -> str:
    rows = {row["run_id"]: row for row in desk.say("runs", "--children", "--json").rows}
    return str(rows[run_id].get("waiting_for", "") or rows[run_id].get("ending", ""))


@pytest.mark.parametrize("how", ["cancel", "reject"])
def test_a_child_that_is_turned_away_inside_a_fork_leaves_the_origin_as_it_was(desk: Desk, how: str) -> None:
    origin = delegating(desk)
    fork = str(desk.say("fork", origin, "--why", "try", "--json").values["run_id"])
    child, origin_child = child_of(desk, fork), child_of(desk, origin)
    assert child != origin_child
    if how == "cancel":
        assert f"remit resume {fork}" in desk.say("signal", child, "cancel").err
    else:
        assert desk.say("reject", child).code == 3
        assert waits(desk, fork) == "REVIEW_REQUIRED"
        assert desk.say("signal", child, "resume").code != 3
    assert desk.say("resume", fork).code != 3
    assert (waits(desk, origin), waits(desk, origin_child)) == ("CONFIRM_REQUIRED", "CONFIRM_REQUIRED")
    assert (desk.notes, desk.say("verify", "--all").code) == ([], 0)


def test_the_child_of_a_fork_whose_turns_are_missing_is_restored_and_asks_first(desk: Desk) -> None:
    fork = str(desk.say("fork", delegating(desk), "--why", "try", "--json").values["run_id"])
    child = child_of(desk, fork)
    backed_up(desk)
    assert desk.say("approve", child).code == 0
    assert desk.notes == ["hello"]
    put_back(desk)
    for words in (["approve", child], ["resume", fork], ["signal", child, "cancel"]):
        said = desk.say(*words)
        assert (said.code, "STORE_BEHIND_ITS_LOG" in said.err) == (1, True), words
    said = desk.say("restore", child, "--accept", "--why", "the disk died", "--json")
    restored = str(said.values["run_id"])
    assert (said.code, restored not in (child, fork)) == (3, True)
    asked = desk.say("approvals", restored, "--json").rows[0]
    assert any(f"run {child} may have done this" in reason for reason in asked["reasons"]), asked["reasons"]
    assert (desk.notes, desk.say("verify", restored).code) == (["hello"], 0)


def test_a_restored_run_that_failed_is_tried_again_and_still_asks_before_any_change(desk: Desk) -> None:
    run_id = desk.waiting()
    backed_up(desk)
    assert desk.say("approve", run_id).code == 0
    put_back(desk)
    restored = str(desk.say("restore", run_id, "--accept", "--why", "the disk died", "--json").values["run_id"])
    assert desk.say("signal", restored, "cancel").code == 0
    said = desk.say("signal", restored, "retry", "--json")
    again = str(said.values["run_id"])
    assert (said.code, again not in (run_id, restored)) == (3, True)
    asked = desk.say("approvals", again, "--json").rows[0]
    assert f"run {run_id} may have done this" in asked["reasons"][0]
    assert (desk.notes, desk.say("verify", again).code) == (["hello"], 0)


def test_what_became_of_signals_is_the_same_after_a_rebuild(desk: Desk) -> None:
    run_id = desk.waiting()

    async def left() -> dict[int, object]:
        """One that was heard, one that was refused, and one that no process has heard."""
        async with opened_system(settings_of(home=desk.home)) as system:
            inbox = system.store.inbox
            for kind, payload in ((Signal.FEEDBACK, {"text": "be brief"}), (Signal.RESUME, {})):
                await inbox.put(run_id, encode_signal(UserSignal("s", kind, run_id, "ada", payload=payload)))
            with pytest.raises(RemitError):
                await system.signal(UserSignal("s", Signal.RESUME, run_id, "ada"))
            await inbox.put("nobody", b"")
        return await told()

    async def told() -> dict[int, object]:
        async with opened_system(settings_of(home=desk.home)) as system:
            inbox = system.store.inbox
            pending = [entry.number for entry in await inbox.pending(after=0)]
            return {**{number: await inbox.outcome(number) for number in (1, 2, 3)}, 0: pending}

    before = asyncio.run(left())
    assert before[0] == [3]
    assert (before[1], before[2]) == (("", ""), before[2])
    lose(desk)
    assert desk.say("rebuild").code == 0
    assert asyncio.run(told()) == before
    assert desk.say("approve", run_id).code == 0


GUARDED: JsonObject = {"op": "start", "run": "talk", "prompt": "Mail bob@example.com.", "tools": []}


def test_a_guard_does_not_go_on_with_a_run_of_a_database_that_was_put_back(desk: Desk) -> None:
    tools = [{"name": "mail", "effect": "external", "parameters": {"type": "object", "properties": {}}}]

    async def talk(*operations: JsonObject) -> list[JsonObject]:
        async with opened_system(settings_of(home=desk.home)) as system:
            guard = system.guard()
            said = [await guard.answer({"run": "talk", **operation}) or {} for operation in operations]
            await guard.close()
        return said

    start: JsonObject = {**GUARDED, "tools": tools}
    call: JsonObject = {"op": "call", "id": "c", "tool": "mail", "args": {}}
    started, asked = asyncio.run(talk(start, call))
    assert (started, asked["decision"]) == ({"ok": True}, "ask")
    backed_up(desk)
    resumed, answered = asyncio.run(talk(start, {"op": "answer", "id": "c", "approve": True, "by": "ada"}))
    assert (resumed, answered) == ({"ok": True, "resumed": True}, {"ok": True})
    put_back(desk)
    again, unanswered = asyncio.run(talk(start, {"op": "answer", "id": "c", "approve": True, "by": "ada"}))
    assert (again["code"], unanswered["code"]) == ("STORE_BEHIND_ITS_LOG", "GUARD_RUN_UNKNOWN")
    run_id = desk.say("runs", "--json").rows[0]["run_id"]
    for words in (["approve", run_id], ["signal", run_id, "cancel"]):
        assert desk.say(*words, "--json").error == "STORE_BEHIND_ITS_LOG", words
