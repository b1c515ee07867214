"""Orders over the guard's protocol: given by the host, filled by its look-ups, confirmed by a person, compared."""

import asyncio
from typing import Any

import pytest

from remit.agents.guard_in_memory import guard_in_memory
from remit.core.journal.codec import decode_turn
from remit.orchestrate.guard.host_orders import GUARD_ORDERS_CONFIRMED, GUARD_ORDERS_MISSING, GUARD_ORDERS_UNREAD
from remit.orchestrate.guard.protocol import GUARD_OP_INVALID
from tests.unit.orchestrate.test_guarding import BOB, EVE, TOOLS, Talk, ruled

FILE = {
    "lookup": {
        "tool": "find_files",
        "arguments": {"name": "plan"},
        "where": [{"field": "filename", "=": "plan"}],
        "field": "id",
    }
}
ORDERS: list[dict[str, Any]] = [
    {"tool": "delete_file", "args": {"file_id": FILE}},
    {"tool": "send_mail", "args": {"to": EVE}, "text": {"body": "Done."}},
]
FOUND = [{"id": "f1", "filename": "plan", "note": "x"}, {"id": "f2", "filename": "plans", "note": "y"}]


def looked_up() -> Talk:
    """A run whose orders were given, and filled."""
    talk = Talk("Go.", boundary={"authority": {"stands_for": "approval"}}, user="bob")
    given = talk.say("orders", orders=ORDERS)
    assert given["reads"] == [{"tool": "find_files", "args": {"name": "plan"}}]
    assert "find_files was not read yet" in given["list"][0]
    talk.call("find_files", "l", name="plan")
    talk.result("find_files", FOUND, "l")
    return talk


def test_orders_are_filled_confirmed_compared_and_named_in_the_verdict() -> None:
    talk = looked_up()
    assert 'file_id="f1"' in talk.say("orders")["list"][0]
    assert talk.say("orders", approve=True, by="ann")["confirmed_by"] == "ann"
    done = talk.call("delete_file", "d", file_id="f1")
    assert ruled(done) == ("allow", "")
    assert done["order"].startswith("order 1 of 2, confirmed by ann at ")
    assert ruled(talk.mail(EVE, "m", body="Done.")) == ("allow", "")
    assert ruled(talk.mail(BOB, "n", body="Done.")) == ("ask", "BEYOND_ORDERS")


def test_orders_that_nobody_confirmed_let_nothing_happen() -> None:
    talk = looked_up()
    assert ruled(talk.mail(EVE, body="Done."))[0] == "ask"
    assert talk.say("orders")["confirmed_by"] == ""


def test_a_person_confirms_a_list_as_they_want_it_and_it_stays_so() -> None:
    talk = looked_up()
    confirmed = talk.say("orders", orders=ORDERS[1:], approve=True, by="ann")
    assert len(confirmed["list"]) == 2
    assert talk.say("orders", orders=ORDERS)["code"] == GUARD_ORDERS_CONFIRMED
    assert ruled(talk.mail(EVE, body="Done.")) == ("allow", "")
    assert ruled(talk.call("delete_file", file_id="f1"))[0] == "ask"


def test_a_list_is_not_confirmed_before_it_shows_what_was_looked_up() -> None:
    talk = Talk("Go.", boundary={"authority": {"stands_for": "approval"}}, user="bob")
    assert talk.say("orders", orders=ORDERS, approve=True, by="ann")["code"] == GUARD_ORDERS_UNREAD
    talk.say("orders", orders=ORDERS)
    refused = talk.say("orders", approve=True, by="ann")
    assert refused["code"] == GUARD_ORDERS_UNREAD
    assert 'find_files {"name":"plan"}' in str(refused)
    talk.call("find_files", "l", name="plan")
    talk.result("find_files", FOUND, "l")
    assert talk.say("orders", approve=True, by="ann")["confirmed_by"] == "ann"


def test_a_boundary_may_have_the_list_confirmed_before_its_look_ups() -> None:
    talk = Talk("Go.", boundary={"authority": {"stands_for": "approval", "confirm": "before"}}, user="bob")
    assert talk.say("orders", orders=ORDERS, approve=True, by="ann")["confirmed_by"] == "ann"


def test_a_no_needs_no_look_up() -> None:
    talk = Talk("Go.", boundary={"authority": {"stands_for": "approval"}}, user="bob")
    talk.say("orders", orders=ORDERS)
    assert talk.say("orders", approve=False, by="ann")["list"] == []


def test_a_no_to_the_list_wants_nothing_on_it() -> None:
    talk = looked_up()
    assert talk.say("orders", approve=False, by="ann")["list"] == []
    assert ruled(talk.mail(EVE, body="Done.")) == ("ask", "BEYOND_ORDERS")


def test_who_asked_for_the_run_does_not_approve_it_by_confirming_its_orders() -> None:
    talk = Talk("Go.", boundary={"authority": {"stands_for": "approval"}, "self_approval": False}, user="bob")
    talk.say("orders", orders=[{"tool": "delete_file", "args": {"file_id": "f9"}}], approve=True, by="bob")
    assert ruled(talk.call("delete_file", file_id="f9")) == ("ask", "CONFIRM_REQUIRED")


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"by": "ann"}, GUARD_OP_INVALID),
        ({"approve": True}, GUARD_OP_INVALID),
        ({"approve": True, "by": "ann"}, GUARD_ORDERS_MISSING),
        ({"orders": [{"tool": "nothing"}]}, "ORDERS_INVALID"),
        ({"orders": 7}, "ORDERS_INVALID"),
    ],
)
def test_orders_that_cannot_be_taken_in_change_nothing(said: dict[str, Any], code: str) -> None:
    talk = Talk()
    assert talk.say("orders", **said)["code"] == code
    assert talk.say("orders") == {"ok": True, "list": [], "reads": [], "confirmed_by": ""}


def test_a_guarded_run_with_orders_is_judged_again_from_its_journal() -> None:
    async def talk() -> None:
        guard = guard_in_memory()
        await guard.answer({"op": "start", "run": "r", "prompt": "Go.", "tools": TOOLS})
        await guard.answer({"op": "orders", "run": "r", "orders": ORDERS[1:], "approve": True, "by": "ann"})
        said = {"op": "call", "run": "r", "tool": "send_mail", "args": {"to": EVE, "body": "Done."}}
        verdict = await guard.answer(said)
        assert verdict is not None
        assert verdict["decision"] == "allow"
        live = guard._runs.run("r").live
        turns = [*map(decode_turn, await guard._runner.journal.read(live.run_id))]
        tracer, _ = await guard._runner.retraced(turns)
        assert tracer.gate.ledger.carried_out == {1}

    asyncio.run(talk())
