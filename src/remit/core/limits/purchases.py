"""Purchases: what a call spends of money that is not the run's own, by the arguments that its tool declares as money.

Rule 1: amounts are whole numbers of the smallest unit of their currency; whose currency is for the boundary to know.
Rule 2: an amount that cannot be told is no amount: the check that asks for it must object.
"""

from decimal import Decimal, InvalidOperation
from typing import Any

from remit.core.journal.canonical import INTEGER_MAX
from remit.core.limits.argument_paths import values_at
from remit.core.limits.tools import ToolDefinition
from remit.core.schema.json_text import scalars

# What an amount of money is declared as: in the smallest unit of its currency, or in whole ones with decimals.
MINOR, MAJOR = "money", "money:major"
# An amount that cannot be told.
UNTOLD_AMOUNT = -1
# Of how many smallest units a whole one is made.
_CENTS = 100


def tells_amount(tool: ToolDefinition) -> bool:
    """Whether a tool declares which of its arguments is an amount of money."""
    return any(kind in (MINOR, MAJOR) for _, kind in tool.control_args)


def amount_in(arguments: Any, tool: ToolDefinition) -> int:
    """What a call would spend, in the smallest unit; UNTOLD_AMOUNT where its tool or its arguments do not tell."""
    total = 0
    kinds = [(path, kind) for path, kind in tool.control_args if kind in (MINOR, MAJOR)]
    found = [(value, kind) for path, kind in kinds for value in values_at(arguments, path)]
    for whole, kind in found:
        for value in scalars(whole):
            amount = _minor(value, _CENTS if kind == MAJOR else 1)
            if amount is None:
                return UNTOLD_AMOUNT
            total += amount
    return total if found else UNTOLD_AMOUNT


def _minor(value: Any, factor: int) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = Decimal(str(value).strip()) * factor
    except InvalidOperation:
        return None
    if not amount.is_finite() or amount < 0 or amount > INTEGER_MAX or amount != amount.to_integral_value():
        return None
    return int(amount)
