"""What a server did not count is bounded by its bytes: never 0, and never more than a run reserves for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.limits.tools import ToolCall, ToolDefinition
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelInfo, ModelRequest
from remit.core.run.messages import Message, assistant_message, system_message, tool_message, user_message
from remit.core.run.usage import TokenUsage
from remit.inference.answers.streamed_answer import OVERHEAD_TOKENS, Generated, bounded_usage, prompt_bound
from remit.kernel.results.notices import MESSAGE_TOKENS_OVERHEAD
from remit.orchestrate.facts.first_arrival import started
from tests.unit.kernel.builders import manifest_of

INFO = ModelInfo("m", 1000, template_tokens=7)
ASKED = ModelRequest((user_message("hello"),), max_tokens=50)


def test_the_overhead_is_the_one_that_runs_reserve() -> None:
    assert OVERHEAD_TOKENS == MESSAGE_TOKENS_OVERHEAD


def test_what_was_reported_stands() -> None:
    usage = TokenUsage(5, 1, 2, 8, 1000)
    assert bounded_usage(usage, ASKED, INFO, Generated(99, 99)) is usage


def test_a_figure_that_is_missing_becomes_its_bound() -> None:
    prompt, said = 7 + 5 + OVERHEAD_TOKENS, 4 + OVERHEAD_TOKENS
    assert bounded_usage(TokenUsage(), ASKED, INFO, Generated(3, 4)) == TokenUsage(
        prompt, 3, said, prompt + 3 + said, 1000
    )
    assert bounded_usage(TokenUsage(9), ASKED, INFO, Generated(0, 4)) == TokenUsage(9, 0, said, 9 + said, 1000)
    assert bounded_usage(TokenUsage(0, 1, 2), ASKED, INFO, Generated(0, 4)) == TokenUsage(
        prompt, 1, 2, prompt + 3, 1000
    )


@pytest.mark.parametrize(
    ("generated", "thought", "said"),
    [
        (Generated(0, 0), 0, OVERHEAD_TOKENS),
        (Generated(0, 500), 0, 50),
        (Generated(45, 500), 45, 5),
        (Generated(500, 500), 50, 0),
        # What a server made calls of may have been longer.
        (Generated(10, 3, calls=1), 10, 40),
    ],
)
def test_no_more_output_is_counted_than_was_allowed(generated: Generated, thought: int, said: int) -> None:
    usage = bounded_usage(TokenUsage(), ASKED, INFO, generated)
    assert (usage.reasoning_tokens, usage.output_tokens) == (thought, said)


def test_without_a_limit_every_byte_counts_and_every_call_costs_its_overhead() -> None:
    usage = bounded_usage(TokenUsage(), replace(ASKED, max_tokens=0), INFO, Generated(500, 600, calls=2))
    assert (usage.reasoning_tokens, usage.output_tokens) == (500, 600 + 3 * OVERHEAD_TOKENS)


def test_arguments_that_cannot_be_written_are_counted_all_the_same() -> None:
    strange = assistant_message("", (ToolCall("1", "f", {"a": float("nan")}),))
    assert prompt_bound(ModelRequest((strange,)), INFO) > prompt_bound(ModelRequest((assistant_message("", ()),)), INFO)


texts = st.text(max_size=20)
arguments = st.dictionaries(texts, st.one_of(texts, st.integers(-5, 5)), max_size=3)
calls = st.lists(st.builds(ToolCall, st.text("ab1", min_size=1, max_size=5), st.just("look"), arguments), max_size=2)
messages = st.one_of(
    st.builds(user_message, texts),
    st.builds(system_message, texts),
    st.builds(lambda text, made, thought: assistant_message(text, tuple(made), thought), texts, calls, texts),
    st.builds(tool_message, st.text("ab1", min_size=1, max_size=5), st.just("look"), texts),
)
tools = st.lists(
    st.builds(ToolDefinition, st.just("look"), texts, st.just({"type": "object"})),
    max_size=1,
    unique_by=lambda t: t.name,
)


@given(st.lists(messages, min_size=1, max_size=4), tools)
def test_a_run_reserves_at_least_the_bound_of_its_prompt(said: list[Message], offered: list[ToolDefinition]) -> None:
    manifest = manifest_of(request=SystemRequest(tuple(said)), tools=tuple(offered), model=INFO)
    begun = started(manifest, [])
    bound = prompt_bound(ModelRequest(tuple(said), tuple(offered)), INFO)
    assert 0 < bound <= begun.messages_tokens_bound + begun.offer_tokens_bound
    assert bound >= sum(len(message.content.encode()) for message in said if isinstance(message.content, str))
