import pytest

from remit.core.failure import ErrorCode, RemitError
from remit.core.run.usage import TokenUsage, check_usage, sum_usage, usage_figures


@pytest.mark.req("1.10")
def test_usage_stores_six_figures_and_derives_the_rest() -> None:
    usage = TokenUsage(100, 20, 30, 150, 8192, 500)
    assert TokenUsage.__struct_fields__ == (
        "prompt_tokens",
        "reasoning_tokens",
        "output_tokens",
        "context_tokens",
        "context_window",
        "duration_ms",
    )
    assert usage.completion_tokens == 50
    assert usage.total_tokens == 150
    assert usage.tokens_per_second == 100.0


@pytest.mark.req("1.10")
def test_a_rate_is_zero_while_the_duration_is_unknown() -> None:
    assert TokenUsage(output_tokens=30).tokens_per_second == 0.0


def test_a_sum_adds_counts_and_keeps_the_largest_context_and_window() -> None:
    total = sum_usage([TokenUsage(100, 20, 30, 150, 8192, 500), TokenUsage(10, 2, 3, 15, 4096, 50)])
    assert total == TokenUsage(110, 22, 33, 150, 8192, 550)
    assert sum_usage([]) == TokenUsage()


def test_the_rate_of_a_sum_is_the_average_weighted_by_time() -> None:
    slow, fast = TokenUsage(output_tokens=10, duration_ms=1000), TokenUsage(output_tokens=90, duration_ms=1000)
    assert sum_usage([slow, fast]).tokens_per_second == 50.0


def test_one_unmeasured_answer_leaves_the_rate_of_the_sum_unknown() -> None:
    measured = TokenUsage(output_tokens=10, duration_ms=1000)
    assert sum_usage([measured, TokenUsage(output_tokens=90)]).tokens_per_second == 0.0
    assert sum_usage([measured, TokenUsage(prompt_tokens=90)]).tokens_per_second == 10.0


def test_usage_an_engine_may_report_passes() -> None:
    check_usage(TokenUsage())
    check_usage(TokenUsage(1, 2, 3, 4, 5, 6))


@pytest.mark.parametrize(
    ("usage", "complaint"),
    [
        (TokenUsage(prompt_tokens=-1), "prompt_tokens=-1"),
        (TokenUsage(duration_ms=-5), "duration_ms=-5"),
        (TokenUsage(output_tokens=1.5), r"output_tokens=1\.5"),  # type: ignore[arg-type]
        (TokenUsage(output_tokens=True), "output_tokens=True"),
        (TokenUsage(context_window=None), "context_window=None"),  # type: ignore[arg-type]
    ],
)
def test_usage_that_is_no_whole_number_from_zero_up_is_a_malformed_answer(usage: TokenUsage, complaint: str) -> None:
    with pytest.raises(RemitError, match=complaint) as caught:
        check_usage(usage)
    assert caught.value.code == ErrorCode.INFERENCE_MALFORMED_RESPONSE


def test_a_usage_is_told_with_what_follows_from_it() -> None:
    told = usage_figures(TokenUsage(10, 2, 3, 12, 100, 500))
    assert (told["prompt_tokens"], told["completion_tokens"], told["total_tokens"]) == (10, 5, 15)
    assert told["tokens_per_second"] == 10.0
