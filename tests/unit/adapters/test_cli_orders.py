"""Orders at the terminal: given with a file, named by whatever tells of the run."""

import json
from typing import Any

import pytest

from tests.unit.adapters.desk import Desk, calls
from tests.unit.adapters.talk import Talker

ORDER = {"tool": "write", "args": {"text": "buy lamps"}}
DO = {"tool_calls": [{"name": "write", "arguments": {"text": "buy lamps"}}]}
TOLD = "order 1 of 1, given by the caller"


@pytest.mark.parametrize("said", [json.dumps([ORDER]), "orders:\n- tool: write\n  args: {text: buy lamps}\n"])
def test_a_run_with_a_file_of_orders_does_them_and_explains_which(desk: Desk, said: str) -> None:
    orders = ("--orders", desk.file("orders.yaml", said))
    run = desk.say(
        "run", "Go.", "--engine", desk.script(DO, "Done."), "--tools", desk.tools(), "--boundary", "guarded", *orders
    )
    assert run.code == 0, run.err
    assert TOLD in desk.say("explain", "last").out
    assert TOLD in desk.say("trace", "last").out
    assert TOLD in json.dumps(desk.say("explain", "last", "--json").values)


def test_a_packet_names_the_order_that_a_boundary_asks_about_all_the_same(desk: Desk) -> None:
    orders = ("--orders", desk.file("orders.json", json.dumps([ORDER])))
    desk.say("run", "Go.", "--engine", desk.script(DO, "Done."), "--tools", desk.tools(), *orders)
    assert f"it is {TOLD}" in desk.say("approvals").out
    assert f"ordered: {TOLD}" in desk.say("approvals", "--full").out


@pytest.mark.parametrize(
    ("text", "code"), [("- tool: [", "FILE_NOT_YAML"), ("orders: 7", "ORDERS_INVALID"), ("- tool: 7", "ORDERS_INVALID")]
)
def test_orders_that_cannot_be_read_are_wrong_usage_and_make_no_store(desk: Desk, text: str, code: str) -> None:
    file = desk.file("orders.yaml", text)
    said = desk.say("run", "Go.", "--engine", desk.script("Hi."), "--orders", file, "--json")
    assert (said.code, said.error) == (2, code)
    assert not desk.home.exists()


def test_a_chat_takes_orders_for_one_message_and_carries_none_over(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    file = desk.file("orders.json", json.dumps([ORDER]))
    talker, engine = Talker(desk, monkeypatch), desk.script(DO, "Done.", "Nothing.")
    options = ("--tools", desk.tools(), "--boundary", "guarded")
    seen = talker.says("/orders", f"/orders {file}", "Go.", "And now?", engine=engine, options=options)
    assert "error SLASH_MISUSED" in seen
    assert "1 orders for the next message" in seen
    runs = [run["run_id"] for run in reversed(desk.say("runs", "--json").rows)]
    first, second = (desk.say("show", run, "--turn", "0").out for run in runs)
    assert ("buy lamps" in first, "buy lamps" in second) == (True, False)


def test_a_chat_keeps_a_refused_list_until_another_one_is_given(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = desk.file("bad.json", json.dumps([{"tool": "no_such_tool", "args": {"text": "buy lamps"}}]))
    none = desk.file("none.json", "[]")
    talker, engine = Talker(desk, monkeypatch), desk.script("Done.", "Nothing.")
    options = ("--tools", desk.tools(), "--boundary", "guarded", "--orders", bad)
    seen = talker.says("Go.", "Go.", f"/orders {none}", "Go.", engine=engine, options=options)
    assert seen.count("error ORDERS_INVALID") == 2
    assert len(desk.say("runs", "--json").rows) == 1


CHAIRS = json.dumps({"tool": "write", "args": {"text": "buy chairs"}})
MADE = {"orders": [ORDER, {"tool": "write", "args": {"text": "buy kettles"}, "if": "they are cheap"}]}
BOUNDARY = "name: ordered\nextends: guarded\nauthority: {orders: model, confirm: %s}\n"


def asked(desk: Desk, *replies: object, confirm: str = "after") -> str:
    """A run whose orders a model made, and which waits for a person to confirm them."""
    script = desk.script(json.dumps(MADE), *replies, "Done.")
    boundary = desk.file("ordered.yaml", BOUNDARY % confirm)
    said = desk.say("run", "Go.", "--engine", script, "--tools", desk.tools(), "--boundary", boundary, "--json")
    assert said.code == 3, said.out
    return str(said.values["run_id"])


def do(text: str) -> dict[str, Any]:
    return calls("write", text=text)


@pytest.mark.parametrize("confirm", ["after", "before"])
def test_a_person_reads_the_orders_that_a_model_made_line_by_line(desk: Desk, confirm: str) -> None:
    asked(desk, do("buy lamps"), confirm=confirm)
    shown = desk.say("approvals").out
    assert '1. write text="buy lamps"\n' in shown
    assert "2. write text=\"buy kettles\"  ONLY IF 'they are cheap' (nothing checks this)\n" in shown
    assert "--edit 1=JSON" in shown
    assert desk.say("approve", "last", "--by", "ada").code == 0
    assert desk.notes == ["buy lamps"]
    assert "order 1 of 2, confirmed by ada at " in desk.say("explain", "last").out


@pytest.mark.parametrize(
    ("edits", "done", "left"),
    [
        (("--edit", '1={"tool":"write","args":{"text":"buy chairs"}}'), "buy chairs", "buy lamps"),
        (("--edit", "1="), "buy kettles", "buy lamps"),
    ],
)
def test_a_line_is_changed_or_left_out_and_what_it_said_before_asks(
    desk: Desk, edits: tuple[str, ...], done: str, left: str
) -> None:
    asked(desk, do(done), do(left))
    said = desk.say("approve", "last", "--by", "ada", *edits)
    assert " -> " in said.err
    assert (said.code, desk.notes) == (3, [done])
    assert desk.say("replay", "last").code == 0


def test_a_change_that_no_order_can_be_leaves_the_question_open(desk: Desk) -> None:
    asked(desk)
    for edit, words in (
        ("one=", "names no order"),
        ("3=", "lists 2 orders"),
        ('1={"tool":"look"}', "changes something"),
        ('1={"tool":"write","args":{"text":{"lookup":{"tool":"look","field":"x"}}}}', "declares"),
        ("1=[]", "must hold a JSON object"),
    ):
        said = desk.say("approve", "last", "--edit", edit)
        assert said.code != 0
        assert words in said.err
    assert '1. write text="buy lamps"\n' in desk.say("approvals").out


def test_an_edit_comes_alone(desk: Desk) -> None:
    assert "give nothing else" in desk.say("approve", "last", "--edit", "1=", "--text", "hm").err


@pytest.mark.parametrize(
    ("lines", "notes"),
    [
        (("e 1", CHAIRS, "y"), ["buy chairs"]),
        (("d 2", "y"), ["buy lamps"]),
        (("d 2", "e 1", CHAIRS, "f", "yes"), ["buy chairs"]),
        (("e 1 2", CHAIRS, CHAIRS, "d 2", "y"), ["buy chairs"]),
        (("e 9", "e 1", "no json", "later"), []),
        # A change is no yes, however many there are, and a no or nothing after it confirms none of them.
        (("d 2",), []),
        (("e 1", CHAIRS), []),
        (("d 2", "l"), []),
        (("d 2", "n"), []),
        (("e 1", '{"tool": "look"}', "l"), []),
    ],
)
def test_a_line_is_edited_at_the_terminal(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...], notes: list[str]
) -> None:
    boundary = desk.file("ordered.yaml", BOUNDARY % "after")
    script = desk.script(json.dumps(MADE), do(notes[0]) if notes else "Hm.", "Done.")
    command = ("run", "Go.", "--engine", script, "--tools", desk.tools(), "--boundary", boundary)
    seen = Talker(desk, monkeypatch).types(*lines, command=command)
    assert "are these wanted?" in seen
    assert desk.notes == notes
    assert ('1. write text="buy chairs"' in seen) is (CHAIRS in lines)
    assert ("changes something" in seen) is ('{"tool": "look"}' in lines)


def test_an_edit_names_itself_in_what_is_wrong_with_it(desk: Desk) -> None:
    asked(desk)
    for edits, words in (
        (("--edit", "1={"), "--edit 1= is not JSON"),
        (("--edit", "1=7"), "--edit 1= holds a int"),
        (("--edit", "1=", "--edit", "1="), "--edit names an order twice"),
    ):
        assert words in desk.say("approve", "last", *edits).err


def test_a_list_is_shown_as_it_will_stand_when_it_is_changed_on_the_command_line(desk: Desk) -> None:
    asked(desk, do("buy chairs"))
    said = desk.say("approve", "last", "--by", "ada", "--edit", f"1={CHAIRS}", "--edit", "2=")
    assert '1. write text="buy chairs"' in said.err
    assert desk.notes == ["buy chairs"]


def test_what_is_refused_after_a_confirmation_is_told_by_its_tool(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    strict = "name: strict\nextends: guarded\nauthority: {orders: model, beyond: refuse}\n"
    script = desk.script(json.dumps(MADE), do("buy a car"), "Done.")
    command = ("run", "Go.", "--engine", script, "--tools", desk.tools(), "--boundary", desk.file("s.yaml", strict))
    seen = Talker(desk, monkeypatch).types("y", command=command)
    assert "confirm_orders" not in seen
    assert "write refused (PERMISSION_DENIED)" in seen
