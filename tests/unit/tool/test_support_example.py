"""The tools of the example pay back once per key, look into the ledger themselves, and say what became of a call."""

import asyncio
from pathlib import Path

import pytest

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import Happened
from remit.core.limits.tools import Effect, ToolCategory
from remit.core.record import JsonObject
from remit.tool.call.hooks import reconcile
from remit.tool.call.outcomes import Reconciled
from remit.tool.declare.decorator import Tool
from remit.tool.loader import load_tools
from tests.tidy.source import ROOT
from tests.unit.tool.watching import called, content, fault

EXAMPLE = ROOT / "examples" / "support_tools.py"


@pytest.fixture(autouse=True)
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SUPPORT_LEDGER", str(tmp_path / "ledger.sqlite"))
    return tmp_path


def example(name: str) -> Tool:
    found = load_tools(str(EXAMPLE)).get(name)
    assert found is not None
    return found


def paid(key: str, cents: int = 100) -> str:
    return asyncio.run(called(example("refund"), key=key, order_id="42", cents=cents)).content


def test_the_example_declares_a_read_and_a_payment() -> None:
    lookup, refund = load_tools(str(EXAMPLE)).definitions
    assert (lookup.name, lookup.effect) == ("lookup_order", Effect.READ)
    assert (refund.name, refund.effect, refund.category) == ("refund", Effect.EXTERNAL, ToolCategory.PAYMENT)
    assert (refund.idempotent, refund.reconcilable, refund.verifier) == (True, True, "is_booked")
    assert "idempotency_key" not in refund.parameters["properties"]


def test_the_same_key_pays_once_and_another_pays_again() -> None:
    assert paid("k1") == paid("k1") == '{"order_id":"42","cents":100,"refund_key":"k1"}'
    paid("k2")
    assert '"refunded_cents":200' in content(example("lookup_order"), order_id="42")


def test_a_refund_is_refuted_when_the_ledger_says_otherwise() -> None:
    paid("k1", cents=100)
    done = asyncio.run(called(example("refund"), key="k1", order_id="42", cents=999))
    assert "the ledger holds ('42', 100)" in done.refuted


def test_the_ledger_says_what_became_of_a_call() -> None:
    arguments: JsonObject = {"order_id": "42", "cents": 100}
    before = asyncio.run(reconcile(example("refund"), key="k1", arguments=arguments))
    told = paid("k1")
    assert before == Reconciled(Happened.NO)
    assert asyncio.run(reconcile(example("refund"), key="k1", arguments=arguments)) == Reconciled(Happened.YES, told)


def test_unknown_orders_and_too_much_money_are_refused() -> None:
    assert "there is no order '7'" in fault(example("lookup_order"), order_id="7").error
    assert "there is no order '7'" in fault(example("refund"), order_id="7", cents=1).error
    assert "exceeds the 12900 cents" in fault(example("refund"), order_id="42", cents=12_901).error


def test_without_its_ledger_no_tool_is_available(monkeypatch: pytest.MonkeyPatch, ledger: Path) -> None:
    monkeypatch.setenv("SUPPORT_LEDGER", str(ledger / "no" / "such" / "folder"))
    for name in ("lookup_order", "refund"):
        found = fault(example(name), order_id="42")
        assert found.error_code is ErrorCode.TOOL_UNAVAILABLE
