"""What runs ask people, and their answers: `remit approvals`, `remit approve` and `remit reject`."""

import pytest

from remit.adapters.cli.arguments import options
from tests.unit.adapters.desk import Desk, calls


def test_approvals_show_exactly_what_would_run(desk: Desk) -> None:
    run_id = desk.waiting()
    (asked,) = desk.say("approvals", "--json").rows
    assert (asked["run_id"], asked["tool"], asked["effect"]) == (run_id, "write", "write")
    assert asked["arguments"] == {"text": "hello"}
    assert asked["releases"] == [["side_effects", 1]]
    assert (asked["queue"], asked["severity"], len(asked["packet"])) == ("operator", "high", 64)
    lines = desk.say("approvals").out.splitlines()
    assert lines[0].startswith(f'{asked["id"]}  write(text="hello") wants to be called; it changes something')
    assert len(lines) == 4
    assert (
        lines[1] == "     values: ! text: its boundary traces no values, so the model alone says where they come from"
    )
    assert lines[3].startswith(f"     answer with: remit approve {asked['id']}  or: remit reject {asked['id']}")
    full = desk.say("approvals", "--full").out.splitlines()
    assert full[1] == '     text = "hello"'


def test_nobody_is_asked_anything_when_no_run_waits(desk: Desk) -> None:
    desk.ended()
    said = desk.say("approvals")
    assert (said.code, said.out, said.err) == (0, "", "no run asks anything\n")
    assert desk.say("approvals", "--json").out == ""


NEVER_BACK = '''import asyncio
from remit import tool

@tool(effect="external", network=True)
async def pay(n: int) -> int:
    """Pay."""
    await asyncio.Event().wait()
    return n
'''


def test_a_call_that_an_ending_left_in_doubt_is_told_until_a_person_takes_note(desk: Desk) -> None:
    (desk.folder / "never_back.py").write_text(NEVER_BACK)
    script, tools = desk.script(calls("pay", n=1), "Paid."), str(desk.folder / "never_back.py")
    run_id = desk.say("run", "Pay", "--engine", script, "--tools", tools, "--timeout", "0.3", "--json").values["run_id"]
    ended = desk.say("approve", run_id, "--json").values
    assert ended["terminal_code"] == "TIMEOUT"
    assert ended["warnings"][0].startswith("it is unknown what became of pay#")
    said = desk.say("approvals").err
    assert f"run {run_id} ended as TIMEOUT, and it is unknown what became of pay#" in said
    assert f"remit queues ack {run_id}" in said
    (item,) = desk.say("queues", "review", "--json").rows
    assert item["doubted"][0].startswith("pay#")
    (row,) = desk.say("approvals", "--json").rows
    assert (row["what"], row["run_id"], row["doubted"]) == ("ending", run_id, item["doubted"])
    assert "warning     it is unknown what became of pay#" in desk.say("show", run_id).out
    desk.say("queues", "ack", run_id)
    assert desk.say("approvals").err == "no run asks anything\n"
    assert desk.say("approvals", "--json").rows == []


def test_arguments_too_long_for_a_turn_are_shown_in_full(desk: Desk) -> None:
    script = desk.script(calls("write", text="long " * 400), "Written.")
    desk.say("run", "Write", "--engine", script, "--tools", desk.tools())
    (asked,) = desk.say("approvals", "--json").rows
    assert asked["arguments"] == {"text": "long " * 400}


def test_an_approved_call_is_made_and_the_answer_printed(desk: Desk) -> None:
    desk.waiting()
    (asked,) = desk.say("approvals", "--json").rows
    said = desk.say("approve", asked["id"])
    assert said == (0, "Written.\n", "")
    assert desk.notes == ["hello"]


def test_an_approval_names_who_gave_it_or_else_the_user_of_the_system(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "keyboard")
    for who, words in (("ann", ("--by", "ann")), ("keyboard", ())):
        run_id = desk.waiting()
        desk.say("approve", run_id, *words)
        arrivals = [row["arrival"] for row in desk.say("trace", run_id, "--json").rows]
        assert [arrival["by"] for arrival in arrivals if arrival["type"] == "ApprovalGiven"] == [who]


def test_a_user_without_a_name_is_known_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def nameless() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nameless)
    assert options.keyboard_user().startswith("uid-")


def test_an_approver_may_change_the_arguments(desk: Desk) -> None:
    desk.waiting()
    said = desk.say("approve", "last", "--args", desk.file("args.json", '{"text": "goodbye"}'), "--json")
    assert (said.code, said.values["terminal_code"]) == (0, "SUCCESS")
    assert desk.notes == ["goodbye"]


@pytest.mark.parametrize("content", ["[1]", "{", b"\xff"])
def test_arguments_that_are_no_json_object_are_wrong_usage_and_decide_nothing(desk: Desk, content: str | bytes) -> None:
    desk.waiting()
    said = desk.say("approve", "last", "--args", desk.file("args.json", content), "--json")
    assert (said.code, said.error) == (2, "ARGUMENTS_UNREADABLE")
    assert len(desk.say("approvals", "--json").rows) == 1


def test_a_rejected_call_is_not_made_and_the_run_goes_on_when_a_person_resumes_it(desk: Desk) -> None:
    run_id = desk.waiting()
    said = desk.say("reject", "last", "--reason", "not now")
    assert (said.code, said.out) == (3, "")
    assert f"remit resume {run_id}" in said.err
    said = desk.say("resume", "last")
    assert (said.code, said.out) == (4, "")
    assert "ended as PERMISSION_DENIED: refused" in said.err
    assert "not accepted as an answer: Written." in said.err
    assert desk.notes == []


def test_a_rejection_needs_no_reason(desk: Desk) -> None:
    desk.waiting()
    assert desk.say("reject", "last").code == 3
    assert desk.say("approvals", "--json").rows == []


def test_a_packet_is_answered_once(desk: Desk) -> None:
    desk.waiting()
    (asked,) = desk.say("approvals", "--json").rows
    assert desk.say("approve", asked["id"]).code == 0
    said = desk.say("approve", asked["id"], "--json")
    assert (said.code, said.error) == (1, "QUESTION_SETTLED")
    assert f"question {asked['id']} was approved by" in said.out
    assert desk.say("approve", "last", "--json").error == "QUESTION_SETTLED"
    assert desk.notes == ["hello"]


def test_a_run_that_asks_several_things_must_be_answered_by_packet(desk: Desk) -> None:
    both = {"tool_calls": [{"name": "write", "arguments": {"text": text}} for text in ("one", "two")]}
    desk.say("run", "Write", "--engine", desk.script(both, "Written."), "--tools", desk.tools())
    said = desk.say("approve", "last", "--json")
    assert (said.code, said.error) == (1, "PACKET_AMBIGUOUS")
    asked = [row["id"] for row in desk.say("approvals", "--json").rows]
    assert desk.say("approve", asked[0]).code == 3
    assert desk.say("approve", asked[1]).code == 0
    assert sorted(desk.notes) == ["one", "two"]


def held_together(desk: Desk) -> str:
    """A run that wants to write two notes at once; gives its id."""
    both = {"tool_calls": [{"name": "write", "arguments": {"text": text}} for text in ("one", "two")]}
    said = desk.say("run", "Write", "--engine", desk.script(both, "Written."), "--tools", desk.tools(), "--json")
    return str(said.values["run_id"])


def test_calls_that_were_held_together_are_one_packet_and_answered_as_one(desk: Desk) -> None:
    run_id = held_together(desk)
    shown = desk.say("approvals").out
    assert shown.startswith(f"{run_id}/1.2+  2 calls were held together; packet ")
    said = desk.say("approve", "last+", "--reason", "both are fine")
    assert (said.code, said.out, sorted(desk.notes)) == (0, "Written.\n", ["one", "two"])
    assert said.err.count("[x] ") == 2


def test_only_what_is_ticked_is_approved_and_the_rest_is_refused(desk: Desk) -> None:
    run_id = held_together(desk)
    first, second = (row["id"] for row in desk.say("approvals", "--json").rows)
    said = desk.say("approve", f"{run_id}/1.2+", "--only", second.rpartition("/")[2])
    assert desk.notes == ["two"]
    assert f"[ ] {first}  write" in said.err
    assert f"[x] {second}  write" in said.err
    (refused,) = [
        row["arrival"]
        for row in desk.say("trace", run_id, "--json").rows
        if row["arrival"]["type"] == "ApprovalRefused"
    ]
    assert refused["reason"] == "it is not among the calls that were approved"


def test_a_packet_of_several_calls_is_rejected_as_one(desk: Desk) -> None:
    held_together(desk)
    assert desk.say("reject", "last+", "--reason", "no").code == 3
    assert desk.say("approvals", "--json").rows == []
    assert desk.say("signal", "last", "resume").code != 3
    assert desk.notes == []


def test_what_is_left_of_a_packet_is_still_named_by_its_first_call(desk: Desk) -> None:
    run_id = held_together(desk)
    first = desk.say("approvals", "--json").rows[0]["id"]
    assert desk.say("reject", first).code == 3
    assert len(desk.say("approvals", f"{first}+", "--json").rows) == 1
    assert desk.say("approve", f"{run_id}/1.2+").code == 0
    assert desk.notes == ["two"]


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("last/1.2", "--only", "1.2"), "USAGE", 2),
        (("last+", "--text", "yes"), "USAGE", 2),
        (("last+", "--arguments", "{}"), "USAGE", 2),
        (("last+", "--only", "9.9"), "PACKET_UNKNOWN", 1),
        (("last+", "--packet", "0" * 16), "PACKET_CHANGED", 1),
        (("last/1.2", "--packet", "0" * 16), "PACKET_CHANGED", 1),
        (("last/1.2", "--packet", ""), "PACKET_CHANGED", 1),
        (("last+", "--packet", ""), "PACKET_CHANGED", 1),
        (("last/9.9+",), "PACKET_UNKNOWN", 1),
        (("last/1.2", "--arguments", "{"), "ARGUMENTS_UNREADABLE", 2),
        (("last/1.2", "--arguments", "[1]"), "ARGUMENTS_UNREADABLE", 2),
        (("last/1.2", "--arguments", "{}", "--args", "x.json"), "USAGE", 2),
    ],
)
def test_an_answer_that_does_not_fit_its_packet_is_refused_and_decides_nothing(
    desk: Desk, words: tuple[str, ...], code: str, exit_code: int
) -> None:
    held_together(desk)
    said = desk.say("approve", *words, "--json")
    assert (said.code, said.error) == (exit_code, code)
    assert len(desk.say("approvals", "--json").rows) == 2
    assert desk.notes == []


def test_a_packet_is_approved_by_enough_of_the_version_that_was_looked_at(desk: Desk) -> None:
    desk.waiting()
    (asked,) = desk.say("approvals", "--json").rows
    assert desk.say("reject", asked["id"], "--packet", "f" * 64, "--json").error == "PACKET_CHANGED"
    assert desk.say("approve", asked["id"], "--packet", asked["packet"][:16]).code == 0
    assert desk.notes == ["hello"]


def test_other_arguments_are_shown_as_what_they_change(desk: Desk) -> None:
    desk.waiting()
    said = desk.say("approve", "last", "--arguments", '{"text": "goodbye"}')
    assert (said.code, desk.notes) == (0, ["goodbye"])
    assert '     text: "hello" -> "goodbye"\n' in said.err


def test_one_question_is_shown_in_full_and_a_list_points_to_it(desk: Desk) -> None:
    script = desk.script(calls("write", text="long " * 400), "Written.")
    desk.say("run", "Write", "--engine", script, "--tools", desk.tools())
    (asked,) = desk.say("approvals", "--json").rows
    listed = desk.say("approvals").out
    assert "2002 characters) wants to be called; it changes something that can be seen from here" in listed
    assert f"  all of it: remit approvals {asked['id']}\n" in listed
    assert "long " * 300 not in listed
    assert "long " * 400 in desk.say("approvals", asked["id"]).out
    assert desk.say("approvals", "nobody/1.1", "--json").error == "RUN_NOT_FOUND"


@pytest.mark.parametrize(
    ("name", "code"), [("nobody/1.0", "RUN_NOT_FOUND"), ("last/9.9", "PACKET_UNKNOWN"), ("last", "PACKET_UNKNOWN")]
)
def test_a_packet_that_is_not_open_is_refused_with_a_code(desk: Desk, name: str, code: str) -> None:
    desk.ended()
    said = desk.say("approve", name, "--json")
    assert (said.code, said.error) == (1, code)


def test_a_paused_run_waits_until_it_is_resumed(desk: Desk) -> None:
    run_id = desk.waiting()
    assert desk.say("signal", "last", "pause", "--json").values == {"run_id": run_id, "signal": "pause"}
    assert desk.say("approve", "last", "--json").error == "PAUSED"
    assert desk.say("signal", "last", "resume").code == 3
    assert desk.say("approve", "last").code == 0


@pytest.mark.parametrize("has_changed", [True, False])
def test_a_no_needs_no_tools_and_the_run_is_paused_until_they_are_back(desk: Desk, has_changed: bool) -> None:
    run_id, tools = desk.waiting(), desk.folder / "tools.py"
    text = tools.read_text()
    if has_changed:
        tools.write_text(text + "# changed")
    else:
        tools.unlink()
    for _ in range(2):  # A yes is not taken.
        assert desk.say("approve", run_id, "--json").error.startswith("TOOL_SOURCE_")
    said = desk.say("reject", run_id, "--reason", "no", "--by", "ann")
    assert said.code == 3
    assert f"run {run_id} heard the no and rests: a no loads no tools" in said.err
    assert f"remit resume {run_id}" in said.err
    assert desk.say("approvals", "--json").rows == []
    assert desk.say("signal", run_id, "resume", "--json").error.startswith("TOOL_SOURCE_")
    tools.write_text(text)
    said = desk.say("signal", run_id, "resume", "--json")
    assert (said.code, said.values["terminal_code"], desk.notes) == (4, "PERMISSION_DENIED", [])
    assert desk.say("verify", run_id).code == 0
    assert desk.say("replay", run_id).code == 0


HELPER = '''from remit import tool
from remit.tool.delegate import delegate

@tool(effect="write", network=False)
def refund(n: int) -> int:
    """Pay back."""
    return n

LEASE = {"input_tokens": 20000, "output_tokens": 9000, "tool_calls": 8, "steps": 30, "human_reviews": 8}
helper = delegate("helper", description="help", lease=LEASE)
'''


def test_a_parent_whose_child_rests_after_a_no_says_what_to_type(desk: Desk) -> None:
    (desk.folder / "helper.py").write_text(HELPER)
    pays, told = {"when": "refund bob", **calls("refund", n=20)}, {"when": "APPROVAL_REJECTED", "text": "I could not."}
    script = desk.script(pays, told, calls("helper", task="refund bob"), "Not done.")
    said = desk.say("run", "x", "--engine", script, "--tools", str(desk.folder / "helper.py"), "--json")
    run_id = said.values["run_id"]
    said = desk.say("reject", run_id, "--by", "ann", "--reason", "no")
    (child,) = desk.say("show", run_id, "--json").values["response"]["waiting_for"]["paused"]
    release = f"run {run_id} waits for run {child}, which is paused by ann; go on with: remit resume {child}"
    assert (said.code, release in said.err, "waits for a person" in said.err) == (3, True, False)
    again = desk.say("resume", run_id)
    assert (again.code, release in again.err) == (3, True)
    shown = desk.say("show", run_id).out
    assert f"stands      waits: REVIEW_REQUIRED at act; paused beneath it: {child} by ann" in shown
    assert f"next        remit resume {child}" in shown
    assert "waits: REVIEW_REQUIRED" in desk.say("runs").out
    desk.say("resume", child)
    assert desk.say("show", run_id, "--json").values["entry"]["ending"]


def test_a_run_whose_tools_are_gone_can_be_paused_and_cancelled(desk: Desk) -> None:
    run_id = desk.waiting()
    (desk.folder / "tools.py").unlink()
    assert desk.say("signal", run_id, "pause").code == 0
    said = desk.say("reject", run_id)
    assert (said.code, desk.say("approvals", "--json").rows) == (3, [])
    assert desk.say("signal", run_id, "cancel").code == 0
    assert desk.say("runs", "--json").values["ending"] == "USER_CANCEL"
