"""Prices: what is paid for that no journal knows the price of, in whole micro-dollars.

Rule 1: money that a run was charged (tokens, tools that declare what a call costs) stands in its journal, at the prices
        that its manifest pinned; nothing here changes it.
Rule 2: what nobody names a price for costs nothing.
Rule 3: every amount is a whole number, and a fraction of a micro-dollar is rounded up where it is made: call by call.
        So the parts of a report always add up to its total.
"""

from collections.abc import Mapping

from remit.core.limits.budget import Charges, Dimension
from remit.core.record import Record

# A million dollars for one call, second or review: whoever writes more has mistaken the unit.
PRICE_MICROUSD_MAX = 1_000_000 * 1_000_000
_MS_PER_S = 1000


class Prices(Record):
    """What one of each costs, in micro-dollars, beside the money that the journal has."""

    tool_call_microusd: int = 0
    external_api_call_microusd: int = 0
    gpu_second_microusd: int = 0
    human_review_microusd: int = 0


NO_PRICES = Prices()


def cost_microusd(amounts: Charges | Mapping[int, int], gpu_ms: int, prices: Prices) -> int:
    """What was charged in money, and what else was used at its price."""
    used = dict(amounts)
    counted = (
        (Dimension.INFERENCE_COST_MICROUSD, 1),
        (Dimension.TOOL_CALLS, prices.tool_call_microusd),
        (Dimension.EXTERNAL_API_CALLS, prices.external_api_call_microusd),
        (Dimension.HUMAN_REVIEWS, prices.human_review_microusd),
    )
    priced = sum(used.get(int(dimension), 0) * price for dimension, price in counted)
    return priced + -(-gpu_ms * prices.gpu_second_microusd // _MS_PER_S)


def parse_prices(text: str, source_name: str) -> Prices:
    """The prices in a text of YAML or JSON; the name stands for it in errors, which say the line and what would be right."""
    # The parser is loaded by whoever has prices to read.
    from remit.core.schema.strict_yaml import YamlFault, block_in, parse_yaml, shown

    document = parse_yaml(text, source_name)
    block = block_in(document, document.value, Prices.__struct_fields__, ())
    for name, price in block.items():
        # To Python a bool is a number, and to nobody a price.
        if type(price) is not int or not 0 <= price <= PRICE_MICROUSD_MAX:
            wanted = f"a whole number of micro-dollars from 0 to {PRICE_MICROUSD_MAX}, where 1000000 is one dollar"
            document.reject(YamlFault.VALUE_INVALID, f"{name} is {shown(price)} and must be {wanted}", (name,))
    return Prices(**block)
