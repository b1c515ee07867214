"""Grammars made from schemas: compact, bounded, and of exactly the calls that were offered."""

from typing import Any

import pytest

from remit.constraint.grammar.bounds import TEXT_CHARS_BOUND
from remit.constraint.grammar.gbnf import GRAMMAR_INVALID
from remit.constraint.grammar.matching import Fit, read_with
from remit.constraint.grammar.notation import check_grammar, is_gbnf
from remit.constraint.grammar.shapes import (
    TOOLS_MISSING,
    grammar_of_calls,
    grammar_of_calls_or_words,
    grammar_of_schema,
)
from remit.core.failure import RequestRejected
from remit.core.limits.tools import ToolDefinition

CLOCK = ToolDefinition("clock", "Tell the time.", {"type": "object"})
LOOKUP = ToolDefinition(
    "lookup",
    "Look an order up.",
    {"type": "object", "properties": {"order": {"type": "string"}, "deep": {"type": "boolean"}}, "required": ["order"]},
)


def fit(grammar: str, text: str) -> Fit:
    return read_with(grammar, text).fit


def test_a_text_that_fits_the_schema_is_compact() -> None:
    grammar = grammar_of_schema({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    assert fit(grammar, '{"n":12}') is Fit.FITS
    assert fit(grammar, '{"n": 12}') is Fit.BROKEN
    assert fit(grammar, '{"n":"12"}') is Fit.BROKEN
    assert fit(grammar, '{"n":12,"more":1}') is Fit.BROKEN


def test_a_text_cannot_run_on() -> None:
    grammar = grammar_of_schema({"type": "string"})
    assert fit(grammar, f'"{"a" * TEXT_CHARS_BOUND}"') is Fit.FITS
    assert fit(grammar, f'"{"a" * (TEXT_CHARS_BOUND + 1)}"') is Fit.BROKEN
    assert fit(grammar_of_schema({"type": "number"}), "3.1415926535897932384626") is Fit.BROKEN


def test_what_llguidance_cannot_say_is_left_out() -> None:
    grammar = grammar_of_schema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
    assert fit(grammar, "[1,1]") is Fit.FITS


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(RequestRejected) as raised:
        grammar_of_schema({"type": "sentence"})
    assert raised.value.code == GRAMMAR_INVALID


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"tool":"clock","arguments":{}}', Fit.FITS),
        ('{"tool":"lookup","arguments":{"order":"42"}}', Fit.FITS),
        ('{"tool":"lookup","arguments":{"order":"42","deep":true}}', Fit.FITS),
        ('{"tool":"lookup","arguments":{"order":"42"', Fit.CUT),
        ('{"tool":"lookup","arguments":{}}', Fit.BROKEN),
        ('{"tool":"clock","arguments":{"zone":1}}', Fit.BROKEN),
        ('{"tool":"other","arguments":{}}', Fit.BROKEN),
        ("It is noon.", Fit.BROKEN),
    ],
)
def test_a_call_is_of_one_of_the_tools_with_arguments_that_fit(text: str, expected: Fit) -> None:
    assert fit(grammar_of_calls([CLOCK, LOOKUP]), text) is expected


def test_words_are_an_alternative_only_where_they_are_allowed() -> None:
    grammar = grammar_of_calls_or_words([CLOCK, LOOKUP])
    assert fit(grammar, 'It is noon {"in":\n"London"}.') is Fit.FITS
    assert fit(grammar, '{"tool":"clock","arguments":{}}') is Fit.FITS
    assert fit(grammar, "{noon}") is Fit.BROKEN


def test_definitions_of_the_parameters_are_found_from_within_the_call() -> None:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {"who": {"$ref": "#/$defs/person"}},
        "required": ["who"],
        "$defs": {"person": {"enum": ["ada", "bob"]}},
    }
    grammar = grammar_of_calls([ToolDefinition("greet", "Greet.", parameters)])
    assert fit(grammar, '{"tool":"greet","arguments":{"who":"ada"}}') is Fit.FITS
    assert fit(grammar, '{"tool":"greet","arguments":{"who":"eve"}}') is Fit.BROKEN


def test_arguments_without_names_are_free_only_where_the_schema_says_so() -> None:
    free = ToolDefinition("note", "Note.", {"type": "object", "additionalProperties": {"type": "integer"}})
    assert fit(grammar_of_calls([free]), '{"tool":"note","arguments":{"a":1}}') is Fit.FITS
    assert fit(grammar_of_calls([CLOCK]), '{"tool":"clock","arguments":{"a":1}}') is Fit.BROKEN


def test_arguments_are_written_in_the_order_of_the_schema() -> None:
    parameters = {"type": "object", "properties": {"z": {"enum": [1]}, "a": {"enum": [2]}}, "required": ["a", "z"]}
    grammar = grammar_of_calls([ToolDefinition("t", "T.", parameters)])
    assert fit(grammar, '{"tool":"t","arguments":{"z":1,"a":2}}') is Fit.FITS


def test_a_grammar_of_no_calls_is_refused() -> None:
    with pytest.raises(RequestRejected) as raised:
        grammar_of_calls([])
    assert raised.value.code == TOOLS_MISSING


def test_what_is_made_here_is_right_and_no_gbnf() -> None:
    grammar = grammar_of_calls([CLOCK, LOOKUP])
    check_grammar(grammar)
    assert not is_gbnf(grammar)


def test_references_in_parameters_mean_what_they_meant() -> None:
    tree = {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}, "inner": {"$ref": "#"}}}
    grammar = grammar_of_calls([ToolDefinition("plant", "", {**tree, "$defs": {"n": {"type": "integer"}}})])
    assert fit(grammar, '{"tool":"plant","arguments":{"n":1,"inner":{"n":2,"inner":{}}}}') is Fit.FITS
    assert fit(grammar, '{"tool":"plant","arguments":{"inner":{"tool":"plant"}}}') is Fit.BROKEN


def test_a_schema_that_allows_any_number_of_entries_makes_a_grammar_that_can_be_borne() -> None:
    grammar = grammar_of_schema({"type": "array", "items": {"type": "integer"}, "maxItems": 2**53})
    assert fit(grammar, "[1,2,3]") is Fit.FITS
