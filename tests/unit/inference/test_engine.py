"""What an engine may fail with."""

import pytest

from remit.core.failure import CATEGORIES, ErrorCode, FailureCategory, InvariantBroken
from remit.core.usage import TokenUsage
from remit.inference.engine import ENGINE_FAULT_MISCODED, INFERENCE_CODES, EngineFault, StreamChunk


def test_an_engine_has_the_four_codes_of_inference() -> None:
    prefix = CATEGORIES[FailureCategory.INFERENCE].prefix
    assert {code for code in ErrorCode if code.startswith(prefix)} == INFERENCE_CODES


def test_a_fault_carries_what_the_call_cost() -> None:
    fault = EngineFault(ErrorCode.INFERENCE_ENGINE_ERROR, "it broke", usage=TokenUsage(3), was_cut=True)
    assert (fault.code, fault.message, fault.usage, fault.was_cut) == (
        ErrorCode.INFERENCE_ENGINE_ERROR,
        "it broke",
        TokenUsage(3),
        True,
    )
    assert str(fault) == "INFERENCE_ENGINE_ERROR: it broke"


def test_a_fault_that_says_nothing_of_its_cost_cost_nothing() -> None:
    fault = EngineFault(ErrorCode.INFERENCE_CONTEXT_EXCEEDED, "too long")
    assert (fault.usage, fault.was_cut) == (TokenUsage(), False)


@pytest.mark.parametrize("code", [ErrorCode.TOOL_TIMEOUT, "MINE"])
def test_a_code_that_is_not_of_inference_is_a_bug(code: ErrorCode) -> None:
    with pytest.raises(InvariantBroken) as caught:
        EngineFault(code, "it broke")
    assert caught.value.code == ENGINE_FAULT_MISCODED


def test_a_piece_of_an_answer_is_text_or_reasoning() -> None:
    assert StreamChunk("word") == StreamChunk(text="word", reasoning="")
