"""The tools of the demo's desk: they read a ledger, pay once, and tell what became of a payment."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from remit import NotDone
from remit.adapters.cli.demo import story
from remit.core.journal.arrivals import Happened
from remit.tool.loader import load_tools

SOURCE = Path(story.__file__).with_name("desk.py")


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    """The module of the desk, with a ledger of its own."""
    shutil.copyfile(SOURCE, tmp_path / "desk.py")
    tools = {tool.definition.name: tool for tool in load_tools(str(tmp_path / "desk.py"))}
    return tools["refund_order"].function.__globals__


def test_an_order_is_looked_up(desk: Any) -> None:
    assert desk["lookup_order"].function("4711") == desk["ShopOrder"]("4711", "lamp", 5900)


@pytest.mark.parametrize("tool", ["lookup_order", "refund_order"])
def test_an_order_that_is_not_there_is_named(desk: Any, tool: str) -> None:
    arguments = ("1111",) if tool == "lookup_order" else ("1111", "key")
    with pytest.raises(LookupError if tool == "lookup_order" else NotDone, match="1111"):
        desk[tool].function(*arguments)


def test_a_refund_pays_once_however_often_it_is_made_with_the_same_key(desk: Any) -> None:
    first, again = (desk["refund_order"].function("4711", "key") for _ in range(2))
    assert first == again == desk["Refund"]("4711", 5900, "key")
    with desk["ledger"]() as connection:
        assert connection.execute("SELECT count(*) FROM refunds").fetchone() == (1,)


def test_an_order_is_not_paid_back_to_two_who_ask(desk: Any) -> None:
    desk["refund_order"].function("4711", "key")
    with pytest.raises(NotDone, match="paid back already"):
        desk["refund_order"].function("4711", "another")


def test_the_ledger_tells_what_became_of_a_payment(desk: Any) -> None:
    assert desk["booked"]("key") is Happened.NO
    refund = desk["refund_order"].function("4712", "key")
    assert desk["booked"]("key") == refund


def test_a_refund_that_the_ledger_does_not_hold_is_refuted(desk: Any) -> None:
    refund = desk["refund_order"].function("4712", "key")
    assert desk["is_booked"]({"order_id": "4712"}, refund) == ""
    assert "under key" in desk["is_booked"]({"order_id": "4711"}, refund)
    assert "under no such key" in desk["is_booked"]({"order_id": "4711"}, desk["Refund"]("4711", 1, "no such key"))


def test_the_tools_declare_what_they_do(tmp_path: Path) -> None:
    shutil.copyfile(SOURCE, tmp_path / "desk.py")
    look, pay = (tool.definition for tool in load_tools(str(tmp_path / "desk.py")))
    assert (look.effect, pay.effect, pay.idempotent, pay.reconcilable) == ("read", "external", True, True)
