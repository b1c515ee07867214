"""Prices: from a file, and what amounts cost at them."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.budget import Dimension
from remit.core.schema.strict_yaml import YamlFault
from remit.observe.cost.cost_prices import NO_PRICES, PRICE_MICROUSD_MAX, Prices, cost_microusd, parse_prices

USED = {
    int(Dimension.INPUT_TOKENS): 1_000,
    int(Dimension.TOOL_CALLS): 3,
    int(Dimension.EXTERNAL_API_CALLS): 2,
    int(Dimension.INFERENCE_COST_MICROUSD): 450,
    int(Dimension.HUMAN_REVIEWS): 1,
}


def prices_of(text: str) -> Prices:
    return parse_prices(text, "prices.yaml")


def test_without_prices_the_cost_is_the_money_in_the_journal() -> None:
    assert cost_microusd(USED, 90_000, NO_PRICES) == 450


@pytest.mark.req("4.24")
@pytest.mark.parametrize(
    ("prices", "cost"),
    [
        (Prices(tool_call_microusd=10), 480),
        (Prices(external_api_call_microusd=10), 470),
        (Prices(human_review_microusd=10), 460),
        (Prices(gpu_second_microusd=10), 450 + 15),
        (Prices(1, 1, 1, 1), 450 + 3 + 2 + 2 + 1),
    ],
)
def test_what_has_a_price_is_paid_for_by_the_piece(prices: Prices, cost: int) -> None:
    assert cost_microusd(USED, 1_500, prices) == cost


def test_a_fraction_of_a_micro_dollar_is_rounded_up() -> None:
    assert cost_microusd((), 1, Prices(gpu_second_microusd=1)) == 1
    assert cost_microusd((), 1_000, Prices(gpu_second_microusd=1)) == 1
    assert cost_microusd((), 1_001, Prices(gpu_second_microusd=1)) == 2
    assert cost_microusd((), 0, Prices(gpu_second_microusd=1)) == 0


def test_a_file_names_some_prices_and_the_others_are_nothing() -> None:
    assert prices_of("human_review_microusd: 1_500_000\n") == Prices(human_review_microusd=1_500_000)
    assert prices_of("{}") == NO_PRICES


def test_a_file_may_be_json() -> None:
    text = '{"tool_call_microusd": 1, "external_api_call_microusd": 2, "gpu_second_microusd": 3}'
    assert prices_of(text) == Prices(1, 2, 3)


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ("tool_cal: 1", YamlFault.KEY_UNKNOWN, "did you mean 'tool_call_microusd'?"),
        ("tool_call_microusd: -1", YamlFault.VALUE_INVALID, "is -1 and must be a whole number of micro-dollars"),
        ("tool_call_microusd: 0.5", YamlFault.VALUE_INVALID, "is 0.5"),
        ("tool_call_microusd: true", YamlFault.VALUE_INVALID, "is True"),
        ("tool_call_microusd: '7'", YamlFault.VALUE_INVALID, "is '7'"),
        ("tool_call_microusd: [1]", YamlFault.VALUE_INVALID, "is a list"),
        (f"tool_call_microusd: {PRICE_MICROUSD_MAX + 1}", YamlFault.VALUE_INVALID, str(PRICE_MICROUSD_MAX)),
        ("", YamlFault.VALUE_INVALID, "tool_call_microusd"),
        ("- 1", YamlFault.VALUE_INVALID, "must be a mapping"),
        ("a: 1\na: 2", YamlFault.KEY_REPEATED, "a"),
        ("a: [", YamlFault.NOT_YAML, "prices.yaml"),
    ],
)
def test_a_file_that_is_no_list_of_prices_is_refused_with_its_line(text: str, code: YamlFault, hint: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        prices_of(text)
    assert refused.value.code == code
    assert hint in refused.value.message
    assert "prices.yaml" in refused.value.message


def test_the_largest_price_there_may_be_is_taken() -> None:
    assert prices_of(f"tool_call_microusd: {PRICE_MICROUSD_MAX}") == Prices(PRICE_MICROUSD_MAX)
