"""Purchases: what a call spends, as far as its tool declares it."""

from typing import Any

import pytest

from remit.core.limits.purchases import UNTOLD_AMOUNT, amount_in, tells_amount
from remit.core.limits.tools import ToolDefinition

BARE = ToolDefinition("order", "", {"type": "object"})


def tool(*kinds: tuple[str, str]) -> ToolDefinition:
    return ToolDefinition("order", "", {"type": "object"}, control_args=kinds)


@pytest.mark.parametrize(
    ("kind", "value", "amount"),
    [
        ("money", 500, 500),
        ("money", 500.0, 500),
        ("money", "500", 500),
        ("money", 0, 0),
        ("money", [100, 200], 300),
        ("money", {"a": 1, "b": [2]}, 3),
        ("money:major", 5, 500),
        ("money:major", 5.25, 525),
        ("money:major", " 5.25 ", 525),
        *(
            ("money", value, UNTOLD_AMOUNT)
            for value in (5.5, -1, "five", True, None, "NaN", "Infinity", 2**60, [1, "x"])
        ),
        ("money:major", 5.255, UNTOLD_AMOUNT),
    ],
)
def test_an_amount_is_told_in_the_smallest_unit_or_not_at_all(kind: str, value: Any, amount: int) -> None:
    assert amount_in({"sum": value, "to": "acme"}, tool(("sum", kind), ("to", "who:vendor"))) == amount


def test_amounts_of_one_call_count_together() -> None:
    assert amount_in({"net": 100, "tax": 1.19}, tool(("net", "money"), ("tax", "money:major"))) == 219


@pytest.mark.parametrize("arguments", [{}, {"to": "acme"}])
def test_what_no_argument_tells_nobody_knows(arguments: dict[str, Any]) -> None:
    assert amount_in(arguments, tool(("sum", "money"))) == UNTOLD_AMOUNT
    assert amount_in({"sum": 5}, BARE) == UNTOLD_AMOUNT


def test_a_tool_tells_amounts_where_it_declares_one() -> None:
    assert tells_amount(tool(("sum", "money")))
    assert tells_amount(tool(("sum", "money:major")))
    assert not tells_amount(tool(("sum", "number")))
    assert not tells_amount(BARE)
