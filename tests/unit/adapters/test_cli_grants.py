"""Standing grants at the terminal: offered, given, listed, used, revoked."""

import json

import pytest

from tests.unit.adapters.desk import Desk, calls

NOTE = calls("write", text="buy lamps")


def run(desk: Desk) -> int:
    return desk.say("run", "Go.", "--engine", desk.script(NOTE, "Done."), "--tools", desk.tools()).code


def test_an_approval_that_is_given_again_offers_a_grant_which_spares_the_next_question(desk: Desk) -> None:
    assert run(desk) == 3
    assert "remit grants give" not in desk.say("approve", "last", "--by", "ada").err
    assert run(desk) == 3
    offered = desk.say("approve", "last", "--by", "ada").err
    packet = offered.partition("--like ")[2].split()[0]
    given = desk.say("grants", "give", "--like", packet, "--times", "2", "--by", "ada", "--json").values
    assert (given["id"], given["order"]["args"]) == ("g1", {"text": {"literal": "buy lamps"}})
    assert run(desk) == 0
    assert "approved by ada (grant g1: 1 of 2, until " in desk.say("trace", "last").out
    assert "grant g1: 1 of 2" in desk.say("explain", "last").out
    assert desk.say("replay", "last").code == 0
    assert "g1  by ada: 1 of 2 times, until " in desk.say("grants", "list").out
    assert "revoked by ada" in desk.say("grants", "revoke", "g1", "--by", "ada").out
    assert "no grant stands" in desk.say("grants", "list").err
    assert json.loads(desk.say("grants", "list", "--all", "--json").out)["over"] == "revoked by ada"
    assert run(desk) == 3
    assert desk.say("verify", "--all").code == 0


def test_the_first_thing_that_a_store_is_told_may_be_a_grant(desk: Desk) -> None:
    one = desk.file("order.yaml", "tool: write\nargs: {text: buy lamps}\n")
    assert desk.say("grants", "give", one, "--by", "ada").code == 0
    assert run(desk) == 0


def test_a_grant_is_of_one_order_and_of_a_question_that_there_was(desk: Desk) -> None:
    desk.ended()
    file = desk.file("orders.yaml", "- {tool: write, args: {text: a}}\n- {tool: write, args: {text: b}}\n")
    assert "holds 2 orders" in desk.say("grants", "give", file).err
    assert "needs one order" in desk.say("grants", "give").err
    assert "names no call" in desk.say("grants", "give", "--like", "nothing/1.1").err
    one = desk.file("order.yaml", "- {tool: write, args: {text: a}}\n")
    told = desk.say("grants", "give", one, "--times", "0", "--amount", "500", "--who", "bob", "--by", "ada").out
    assert "for bob: 0 times, 0 of 500 spent" in told


@pytest.mark.parametrize(
    "text",
    [
        "tool: write\nargs: {text: a}\n",
        '{"tool": "write", "args": {"text": "a"}}',
        "- {tool: write, args: {text: a}}\n",
        "orders:\n- {tool: write, args: {text: a}}\n",
    ],
)
def test_a_file_of_a_grant_holds_one_order_in_any_form(desk: Desk, text: str) -> None:
    desk.ended()
    given = desk.say("grants", "give", desk.file("order.yaml", text), "--by", "ada", "--json").values
    assert given["order"]["args"] == {"text": {"literal": "a"}}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--times", "1.5"), "--times '1.5' is no whole number"),
        (("--times", "many"), "--times 'many' is no whole number"),
        (("--amount", "1e3"), "--amount '1e3' is no whole number"),
        (("--by", ""), "--by is empty"),
        (("--who", ""), "--who '' names nobody"),
        (("--tenant", ""), "--tenant '' names no tenant"),
        (("--who", " "), "who=' ' is no name"),
        (("--who", "B\u043eb"), "mixes CYRILLIC and LATIN"),
        (("--by", "  "), "--by is empty"),
        (("--until", "xyz"), "--until xyz is no age"),
        (("--until", "0"), "until"),
        (("--until", "9999d"), "within a year"),
    ],
)
def test_what_a_grant_cannot_mean_is_told_with_its_option(desk: Desk, options: tuple[str, str], words: str) -> None:
    desk.ended()
    said = desk.say("grants", "give", desk.file("order.yaml", "tool: write\nargs: {text: a}\n"), *options)
    assert said.code != 0
    assert words in said.err
    assert "no grant stands" in desk.say("grants", "list").err


@pytest.mark.parametrize(
    "command",
    [("run", "Go.", "--user", ""), ("approve", "last", "--by", " "), ("halt", "--all", "--why", "x", "--by", "")],
)
def test_an_empty_name_is_nobody_at_any_door(desk: Desk, command: tuple[str, ...]) -> None:
    assert "is empty; name a person" in desk.say(*command).err
    assert desk.say("runs", "--limit", "1.5").err.count("no whole number") == 1
