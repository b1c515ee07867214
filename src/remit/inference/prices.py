"""Prices of the vendors' own models, from the table of the genai-prices package.

Rule 1: only a vendor's own url has the vendor's prices; what a gateway charges is its own affair.
Rule 2: an unknown price is None, never 0: where money is capped, a model without a price is not asked.
Rule 3: a price that depends on how long the prompt is, is taken at its highest, and every figure is rounded up: a
        reservation may be too large, never too small.
Rule 4: nothing is fetched: the table is the one that came with the package.
"""

from collections.abc import Mapping
from decimal import ROUND_CEILING, Decimal
from types import MappingProxyType, ModuleType
from typing import Any

from remit.core.run.inference import Price

# The machine at which each vendor serves its own models, by the name that vendor has in the table.
HOSTS: Mapping[str, str] = MappingProxyType({"openai": "api.openai.com", "anthropic": "api.anthropic.com"})

MICROUSD_PER_USD = 1_000_000
# A million dollars for a million tokens: beyond it the table is broken.
PRICE_MICROUSD_MAX = 1_000_000 * MICROUSD_PER_USD


def price_of(vendor: str, model: str, host: str) -> Price | None:
    """What a vendor's own model costs at the vendor's own machine; None when that is unknown."""
    if HOSTS.get(vendor) != host:
        return None
    package = _package()
    if package is None:
        return None
    try:
        found = package.calc_price(package.Usage(), model, provider_id=vendor)
    except LookupError:
        return None
    figures = [_microusd(getattr(found.model_price, name, None)) for name in ("input_mtok", "output_mtok")]
    if figures[0] is None or figures[1] is None:
        return None
    return Price(figures[0], figures[1])


def _microusd(price: Any) -> int | None:
    """Whole micro-dollars for a million tokens, of a figure or of the highest of its tiers."""
    tiers = [price.base, *(tier.price for tier in price.tiers)] if hasattr(price, "tiers") else [price]
    if not all(isinstance(usd, Decimal) and usd.is_finite() and usd >= 0 for usd in tiers):
        return None
    microusd = int((max(tiers) * MICROUSD_PER_USD).to_integral_value(ROUND_CEILING))
    return microusd if microusd <= PRICE_MICROUSD_MAX else None


def _package() -> ModuleType | None:
    try:
        import genai_prices
    except ImportError:
        return None
    return genai_prices
