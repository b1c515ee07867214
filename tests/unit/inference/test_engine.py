"""What an engine may fail with."""

from pathlib import Path

import pytest

from remit.core.failure import CATEGORIES, ErrorCode, InvariantBroken
from remit.core.failure_families import FailureCategory
from remit.core.run.usage import TokenUsage
from remit.inference.engine import (
    ENGINE_FAULT_MISCODED,
    INFERENCE_CODES,
    EngineFault,
    StreamChunk,
    strict_judge,
)
from remit.inference.scripted.engine import ScriptedEngine
from remit.inference.specs import EngineSettings, open_engine


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


@pytest.mark.parametrize(
    "spec",
    [
        "openai:m",
        "openai:m?rpm=60",
        "openai:m?url=http://127.0.0.1:1/v1&schemas=strict",
        "vllm:m?schemas=strict",
        "ollama:m?schemas=strict&concurrency=2",
    ],
)
def test_who_demands_strict_mode_judges_schemas_through_whatever_stands_before_it(spec: str) -> None:
    judge = strict_judge(open_engine(spec, base=Path("/"), settings=EngineSettings(openai_api_key="k" * 20)))
    assert judge is not None
    closed = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert (judge(closed), judge({"type": "object"})) == (True, False)


@pytest.mark.parametrize(
    "spec", ["openai:m?url=http://127.0.0.1:1/v1", "vllm:m?rpm=60", "anthropic:m?url=http://[::1]:1"]
)
def test_most_servers_take_schemas_as_they_are(spec: str) -> None:
    assert strict_judge(open_engine(spec, base=Path("/"))) is None
    assert strict_judge(ScriptedEngine([{"text": "hi"}])) is None
