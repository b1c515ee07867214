import msgspec

from remit.core.limits.tools import ToolChoice
from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage


def test_a_request_leaves_everything_but_its_messages_to_the_engine() -> None:
    request = ModelRequest((user_message("hi"),))
    assert request.temperature is None
    assert request.schema is None
    assert (request.grammar, request.max_tokens, request.top_p) == ("", 0, 0.0)
    assert request.tool_choice == ToolChoice()
    assert request.options == {}


def test_greedy_and_default_temperature_stay_apart_on_the_wire() -> None:
    greedy = ModelRequest((user_message("hi"),), temperature=0.0, options={"mirostat": 2})
    assert msgspec.json.decode(msgspec.json.encode(greedy), type=ModelRequest) == greedy
    assert b"temperature" in msgspec.json.encode(greedy)
    assert b"temperature" not in msgspec.json.encode(ModelRequest((user_message("hi"),)))


def test_a_result_holds_content_calls_usage_and_why_it_finished() -> None:
    result = ModelResult("hello", usage=TokenUsage(prompt_tokens=3, output_tokens=1), model="small")
    assert result.finish_reason is FinishReason.STOP
    assert (result.reasoning, result.tool_calls) == ("", ())


def test_a_model_finishes_with_stop_tool_or_error() -> None:
    assert list(FinishReason) == ["stop", "tool", "error"]


def test_a_model_is_known_by_name_and_window_and_its_price_may_be_unknown() -> None:
    assert ModelInfo("small", 8192).price is None
    assert ModelInfo("small", 8192, Price(0, 0)).price is not None


def test_the_text_of_a_reason_is_taken_for_it() -> None:
    assert ModelResult("a", finish_reason="error").finish_reason is FinishReason.ERROR  # type: ignore[arg-type]  # as engines made by hand say it
