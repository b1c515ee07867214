"""Queues at the command line: what they hold, taking note of an ending, delivering to a webhook."""

import json
from pathlib import Path

import pytest

from tests.unit.adapters.desk import Desk
from tests.unit.orchestrate.hooked import KEY, deciding, hooked, thanks

# Each with whole commands and stores.
pytestmark = pytest.mark.slow


def exhausted(desk: Desk) -> str:
    """A run that ended for want of budget; gives its id."""
    said = desk.say("run", "Hi", "--engine", desk.script("Done."), "--budget", "output_tokens=0", "--json")
    assert said.values["terminal_code"] == "BUDGET_EXHAUSTED"
    return str(said.values["run_id"])


def limited(desk: Desk, text: str) -> None:
    """Limits for the queues of the desk's store."""
    desk.home.mkdir(exist_ok=True)
    (desk.home / "queues.yaml").write_text(text)


def test_every_queue_is_shown_at_a_glance(desk: Desk) -> None:
    desk.waiting()
    limited(desk, "queues:\n  - {name: operator, load_max: 1, age_ms_max: 3600000}\n")
    said = desk.say("queues")
    assert said.code == 0
    head, *rows = said.out.splitlines()
    assert head.split() == ["queue", "items", "high", "moderate", "low", "outside", "oldest", "overdue", "limit"]
    shown = {row.split()[0]: row for row in rows}
    assert shown["operator"].endswith("1 items, 1 h saturated")
    assert shown["sre"].split()[1:] == ["0", "0", "0", "0", "0", "-", "0", "-"]
    (operator,) = [row for row in desk.say("queues", "--json").rows if row["name"] == "operator"]
    assert (operator["items"], operator["high"], operator["load_max"], operator["is_saturated"]) == (1, 1, 1, True)


def test_what_a_queue_holds_is_listed_with_how_to_let_it_go(desk: Desk) -> None:
    waiting = desk.waiting()
    ended = exhausted(desk)
    first, second = desk.say("queues", "operator").out.splitlines()
    assert first.startswith(f"{waiting}/1.2")
    assert " high approval for " in first
    assert first.endswith('write {"text":"hello"}')
    assert second.startswith("    high_impact_mutation; human_approval; open until ")
    (item,) = desk.say("queues", "budget", "--json").rows
    assert (item["id"], item["what"]) == (ended, "ending")
    assert desk.say("queues", "budget").out.endswith(f"remit queues ack {ended}\n")
    said = desk.say("queues", "sre")
    assert (said.code, said.out, said.err) == (0, "", "queue sre holds nothing\n")


def test_calls_held_together_and_silence_are_told_of_an_item(desk: Desk) -> None:
    both = {"tool_calls": [{"name": "write", "arguments": {"text": text}} for text in ("one", "two")]}
    desk.say("run", "Write", "--engine", desk.script(both, "Written."), "--tools", desk.tools())
    assert "; held with " in desk.say("queues", "operator").out


def test_an_acknowledged_ending_is_gone_from_its_queue(desk: Desk) -> None:
    run_id = exhausted(desk)
    said = desk.say("queues", "ack", "last", "--by", "ann")
    assert said.out.startswith(f"run {run_id} acknowledged by ann at ")
    assert desk.say("queues", "ack", run_id, "--by", "bob", "--json").values["by"] == "ann"
    assert desk.say("queues", "budget", "--json").rows == []
    # The run itself is as it was.
    assert desk.say("verify", run_id).code == 0
    desk.ended()
    assert desk.say("queues", "ack", "last", "--json").error == "NOTHING_HANDED_ON"


def test_a_grave_item_that_is_overdue_is_told_by_the_exit_code(desk: Desk) -> None:
    desk.waiting()
    limited(desk, "queues:\n  - {name: operator, age_ms_max: 1}\n")
    said = desk.say("queues")
    assert said.code == 3
    assert desk.say("queues", "operator").code == 3
    assert " overdue  write " in desk.say("queues", "operator").out
    assert desk.say("queues", "budget").code == 0
    limited(desk, "queues:\n  - {name: budget, age_ms_max: 1}\n")
    exhausted(desk)
    # What has lain there for long enough is grave by now.
    assert desk.say("queues").code == 3
    limited(desk, "queues:\n  - {name: budget, age_ms_max: 3600000}\n")
    assert desk.say("queues").code == 0


def test_a_file_of_queues_that_cannot_be_meant_is_refused_by_whatever_opens_the_store(desk: Desk) -> None:
    desk.ended()
    limited(desk, "queues:\n  - {nam: operator}\n")
    for words in (("queues",), ("run", "Hi", "--engine", desk.script("x"))):
        assert desk.say(*words, "--json").error == "FILE_KEY_UNKNOWN"


def test_a_name_that_is_none_is_refused(desk: Desk) -> None:
    desk.ended()
    assert desk.say("queues", "a b", "--json").error == "QUEUE_INVALID"


def test_a_queue_is_delivered_and_what_is_decided_there_is_done(desk: Desk) -> None:
    desk.waiting()
    key = desk.file("key", KEY)
    with hooked(deciding("approve", by="ann")) as hook:
        said = desk.say("queues", "drain", "operator", "--webhook", hook.url, "--key-file", key, "--once")
    assert said.code == 0
    assert said.out.endswith("  delivered  approve by ann\n")
    assert (hook.signed, desk.notes) == ([True], ["hello"])
    assert desk.say("queues", "drain", "operator", "--webhook", hook.url, "--key-file", key) == (0, "", "")


@pytest.mark.parametrize(
    ("by", "code"), [("ann\x1b[2J", "PERSON_INVALID"), ("\u0430nn", "PERSON_INVALID"), ("eve", "QUEUE_FOREIGN")]
)
def test_a_webhook_decides_nothing_in_a_name_that_may_not_answer(desk: Desk, by: str, code: str) -> None:
    desk.waiting()
    limited(desk, "queues:\n  - {name: operator, answered_by: [ann]}\n")
    key = desk.file("key", KEY)
    with hooked(deciding("approve", by=by)) as hook:
        (delivery,) = desk.say("queues", "drain", "operator", "--webhook", hook.url, "--key-file", key, "--json").rows
    assert (delivery["code"], delivery["decision"], desk.notes) == (code, "", [])


def test_the_webhook_and_the_key_may_stand_in_the_folder_of_the_store(desk: Desk) -> None:
    desk.waiting()
    with hooked(thanks) as hook:
        limited(desk, f"queues:\n  - {{name: operator, webhook: {json.dumps(hook.url)}}}\n")
        secrets = desk.home / "secrets.json"
        secrets.write_text(json.dumps({"webhook_key": KEY.decode()}))
        secrets.chmod(0o600)
        (delivery,) = desk.say("queues", "drain", "operator", "--json").rows
    assert (delivery["status"], delivery["decision"], hook.signed) == (200, "", [True])
    assert desk.notes == []


def test_what_was_not_taken_is_told_and_fails_the_command(desk: Desk) -> None:
    desk.waiting()
    with hooked(lambda values: (403, b"")) as hook:
        said = desk.say("queues", "drain", "operator", "--webhook", hook.url, "--key-file", desk.file("key", KEY))
    assert said.code == 1
    assert said.out.endswith("not delivered  WEBHOOK_REFUSED: the webhook answered with status 403\n")


@pytest.mark.parametrize(
    ("words", "exit_code", "code"),
    [
        (("operator",), 2, "USAGE"),
        (("operator", "--once", "--follow"), 2, "USAGE"),
        (("operator", "--webhook", "ftp://x"), 2, "QUEUE_INVALID"),
        (("a b", "--webhook", "http://127.0.0.1:1/"), 2, "QUEUE_INVALID"),
        (("operator", "--webhook", "http://127.0.0.1:1/"), 1, "WEBHOOK_KEY_MISSING"),
    ],
)
def test_a_queue_is_delivered_only_to_somewhere_and_signed(
    desk: Desk, words: tuple[str, ...], exit_code: int, code: str
) -> None:
    desk.ended()
    said = desk.say("queues", "drain", *words, "--json")
    assert (said.code, said.error) == (exit_code, code)


def test_what_a_full_queue_has_no_room_for_waits_outside_and_its_run_stays_suspended(
    desk: Desk, tmp_path: Path
) -> None:
    limited(desk, "queues:\n  - {name: user, load_max: 1}\n")
    tools = desk.file(
        "mail.py",
        "from remit import tool\n\n\n@tool(effect='external', category='email_calendar')\n"
        "def mail(to: str) -> str:\n    '''Write to a person.'''\n    return 'sent'\n",
    )
    wanted = {"tool_calls": [{"name": "mail", "arguments": {"to": "bob"}}]}
    said = [
        desk.say("run", "Write", "--engine", desk.script(wanted, "Done."), "--tools", tools, "--json") for _ in range(2)
    ]
    assert [one.code for one in said] == [3, 3]
    first, second = [one.values["run_id"] for one in said]
    (row,) = [row for row in desk.say("queues", "--json").rows if row["name"] == "user"]
    assert (row["items"], row["outside"]) == (2, 1)
    assert " outside " in desk.say("queues", "user").out.splitlines()[2]
    assert desk.say("approvals").out.count("waits outside the queue, which is full") == 1
    assert desk.say("approve", second, "--json").error == "QUEUE_FULL"
    assert desk.say("approve", first).code == 0
    assert desk.say("approve", second).code == 0


def test_every_list_says_who_may_answer(desk: Desk) -> None:
    desk.waiting()
    limited(desk, "queues:\n  - {name: operator, answered_by: [olga, ann]}\n")
    assert "answered by olga or ann" in desk.say("queues").out
    assert "; answered by olga or ann; " in desk.say("queues", "operator").out
    assert "only olga or ann may answer" in desk.say("approvals").out
    for command in (("queues", "operator"), ("approvals",)):
        assert desk.say(*command, "--json").rows[0]["answered_by"] == ["olga", "ann"]
    (operator,) = [row for row in desk.say("queues", "--json").rows if row["name"] == "operator"]
    assert operator["answered_by"] == ["olga", "ann"]


@pytest.mark.parametrize("command", [("halt", "--by"), ("run", "Hi", "--user"), ("chat", "--user")])
def test_a_name_in_two_scripts_is_refused_wherever_a_person_is_named(desk: Desk, command: tuple[str, ...]) -> None:
    desk.ended()
    more = ("--why", "x") if command[0] == "halt" else ("--engine", desk.script("Done."))
    assert desk.say(*command, "\u0430lice", *more, "--json").error == "PERSON_INVALID"
