"""Servers get grammars under the names that they know, and are told not to think in words that they understand."""

from typing import Any

import pytest

from remit.inference.openai.dialects import (
    ANY,
    NAMED,
    VENDOR,
    Dialect,
    Grammars,
    Schemas,
    Thinking,
    dialect_with,
    grammar_fields,
    hush,
)
from remit.inference.openai.presets import URLS

REACHES = [Grammars, Thinking, Schemas]

YES = 'root ::= "yes"'


@pytest.mark.parametrize(
    ("grammars", "fields"),
    [
        (Grammars.GRAMMAR, {"grammar": YES}),
        (Grammars.STRUCTURED_OUTPUTS, {"structured_outputs": {"grammar": YES}}),
        (Grammars.GUIDED_GRAMMAR, {"guided_grammar": YES}),
        (Grammars.NONE, {}),
    ],
)
def test_a_grammar_stands_where_its_server_looks_for_it(grammars: Grammars, fields: dict[str, Any]) -> None:
    assert grammar_fields(YES, Dialect(grammars)) == fields
    assert grammar_fields("", Dialect(grammars)) == {}


@pytest.mark.parametrize(
    ("thinking", "body", "hushed"),
    [
        (Thinking.TEMPLATE, {}, {"chat_template_kwargs": {"enable_thinking": False}}),
        (
            Thinking.TEMPLATE,
            {"chat_template_kwargs": {"enable_thinking": True, "lang": "de"}},
            {"chat_template_kwargs": {"enable_thinking": False, "lang": "de"}},
        ),
        (Thinking.TEMPLATE, {"chat_template_kwargs": 7}, {"chat_template_kwargs": {"enable_thinking": False}}),
        (Thinking.EFFORT, {"reasoning": {"effort": "high"}}, {"reasoning_effort": "none"}),
        (Thinking.EFFORT, {"reasoning_effort": "high"}, {"reasoning_effort": "none"}),
        (Thinking.LEFT, {"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
    ],
)
def test_a_wish_not_to_think_wins_over_what_options_say(
    thinking: Thinking, body: dict[str, Any], hushed: dict[str, Any]
) -> None:
    hush(body, thinking)
    assert body == hushed


def test_every_preset_has_a_dialect() -> None:
    assert set(NAMED) == set(URLS)


def test_a_spec_says_more_than_a_name() -> None:
    assert dialect_with(NAMED["vllm"], None, None) is NAMED["vllm"]
    older = dialect_with(NAMED["vllm"], Grammars.GUIDED_GRAMMAR, Thinking.LEFT)
    assert older == Dialect(Grammars.GUIDED_GRAMMAR, Thinking.LEFT, Thinking.LEFT)
    assert dialect_with(ANY, None, Thinking.EFFORT).grammars is Grammars.GRAMMAR
    assert dialect_with(VENDOR, Grammars.GRAMMAR, None).thinking is Thinking.LEFT
