"""Prices of the vendors' own models come from the table of a package, rounded up, or are unknown."""

import sys
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import genai_prices
import pytest
from genai_prices import types

from remit.core.run.inference import Price
from remit.inference.prices import HOSTS, PRICE_MICROUSD_MAX, price_of


def priced(monkeypatch: pytest.MonkeyPatch, **prices: Any) -> Price | None:
    """What is read from a table that says so; the real one has no such cases."""
    found = SimpleNamespace(model_price=types.ModelPrice(**prices))
    monkeypatch.setattr(genai_prices, "calc_price", lambda *args, **options: found)
    return price_of("openai", "m", HOSTS["openai"])


@pytest.mark.parametrize(
    ("vendor", "model", "price"),
    [
        ("openai", "gpt-4o-mini", Price(150_000, 600_000)),
        ("anthropic", "claude-3-5-haiku-latest", Price(800_000, 4_000_000)),
    ],
)
def test_a_vendors_own_model_has_the_vendors_price(vendor: str, model: str, price: Price) -> None:
    assert price_of(vendor, model, HOSTS[vendor]) == price


def test_a_price_that_grows_with_the_prompt_is_taken_at_its_highest() -> None:
    assert price_of("anthropic", "claude-sonnet-4-5", HOSTS["anthropic"]) == Price(6_000_000, 22_500_000)


@pytest.mark.parametrize(
    ("vendor", "model", "host"),
    [
        ("openai", "gpt-4o-mini", "gateway.example"),
        ("openai", "gpt-4o-mini", HOSTS["anthropic"]),
        ("openai", "no-such-model", HOSTS["openai"]),
        ("nobody", "gpt-4o-mini", HOSTS["openai"]),
        ("nobody", "gpt-4o-mini", ""),
    ],
)
def test_what_nobody_knows_has_no_price(vendor: str, model: str, host: str) -> None:
    assert price_of(vendor, model, host) is None


def test_without_the_package_no_price_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    assert price_of("openai", "gpt-4o-mini", HOSTS["openai"]) is None


def test_a_fraction_of_a_micro_dollar_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    dust = Decimal("0.0000001")
    assert priced(monkeypatch, input_mtok=dust, output_mtok=Decimal(0)) == Price(1, 0)


@pytest.mark.parametrize(
    "figure", [None, Decimal(-1), Decimal("NaN"), Decimal("Infinity"), Decimal(PRICE_MICROUSD_MAX), 5.0, "5"]
)
def test_a_figure_that_is_no_price_makes_the_whole_price_unknown(monkeypatch: pytest.MonkeyPatch, figure: Any) -> None:
    assert priced(monkeypatch, input_mtok=figure, output_mtok=Decimal(1)) is None
    assert priced(monkeypatch, input_mtok=Decimal(1), output_mtok=figure) is None
