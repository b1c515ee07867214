"""The work of patterns: counted before it is done, and refused where it would be too much."""

import random
import time
from functools import cache
from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.record import JsonObject
from remit.core.schema.json_schema import CONFIG_SCHEMA_INVALID, PATTERN_WORK_MAX, PATTERNS_MAX, compile_schema
from remit.core.schema.pattern_work import PatternWeight, PatternWork, patterns_in
from remit.core.schema.schema_work import References

# Ten seconds were seen at the worst on a machine that does nothing else.
SECONDS_MAX = 60
MEGABYTE = 1_000_000
# Every letter may begin a match that goes on for long; which letters, cannot be foreseen.
SLOW = "(a|b)*a(a|b){1000}c"
BACKTRACKING = "(?:(?=(a|b)*a(a|b){200}c)|a|b)*d"
AHEAD = "(?=a*b*c)d"
PASSWORD = "^(?=.*[A-Z])(?=.*[0-9]).{8,}$"


@cache
def letters(count: int) -> str:
    return "".join(random.Random(7).choices("ab", k=count))


def is_refused_as_slow(schema: JsonObject, value: Any) -> bool:
    checker = compile_schema(schema)
    (violation, *_) = checker.violations(value)
    is_told = f"pattern_work_max={PATTERN_WORK_MAX}" in violation.message
    assert not checker.is_valid(value)
    assert not checker.fits(value)
    return is_told


@pytest.mark.parametrize("pattern", [SLOW, BACKTRACKING, AHEAD])
def test_a_megabyte_for_a_slow_pattern_is_refused_at_once(pattern: str) -> None:
    began = time.process_time()
    assert is_refused_as_slow({"pattern": pattern}, letters(MEGABYTE))
    assert is_refused_as_slow({"patternProperties": {pattern: True}}, {letters(MEGABYTE): 1})
    assert is_refused_as_slow({"propertyNames": {"pattern": pattern}}, {letters(MEGABYTE): 1})
    assert is_refused_as_slow({"items": {"items": {"pattern": pattern}}}, [["a", letters(MEGABYTE)]])
    assert time.process_time() - began < SECONDS_MAX


def test_a_megabyte_for_a_plain_pattern_is_checked() -> None:
    assert compile_schema({"pattern": "^[ab]+$"}).is_valid(letters(MEGABYTE))
    assert compile_schema({"pattern": "^(a+)+$"}).violations("a" * MEGABYTE + "b")[0].keyword == "pattern"


@pytest.mark.slow
@pytest.mark.parametrize("pattern", [SLOW, BACKTRACKING, AHEAD])
def test_what_is_not_refused_is_answered_within_seconds(pattern: str) -> None:
    checker = compile_schema({"pattern": pattern})
    for step in range(14, 0, -1):
        began = time.process_time()
        (violation,) = checker.violations(letters(100 * 2**step))
        assert time.process_time() - began < SECONDS_MAX
        if "pattern_work_max" not in violation.message:
            return
    pytest.fail("every text was refused")


def test_a_thousand_short_texts_are_checked_though_their_pattern_looks_ahead() -> None:
    checker = compile_schema({"items": {"properties": {"word": {"pattern": PASSWORD}, "note": {"type": "string"}}}})
    entry = {"word": "Passw0rd", "note": "x" * 500}
    assert checker.is_valid([entry] * 1_000)
    assert checker.fits([entry] * 1_000)
    assert checker.violations([{**entry, "word": "password"}])[0].path == "/0/word"


def test_each_way_to_a_pattern_counts() -> None:
    often: JsonObject = {"allOf": [{"$ref": "#/$defs/p"}] * 1_000, "$defs": {"p": {"pattern": SLOW}}}
    assert compile_schema({"pattern": SLOW}).is_valid(letters(2_000) + "a" * 1_001 + "c")
    assert is_refused_as_slow(often, letters(2_000))


def test_patterns_of_texts_and_of_names_are_found_wherever_they_stand() -> None:
    schema: JsonObject = {
        "properties": {"pattern": {"pattern": "a"}},
        "patternProperties": {"b": {"items": [{"pattern": "c"}]}},
        "anyOf": [{"pattern": 5}, {"patternProperties": ["d"]}],
    }
    assert patterns_in([schema, True]) == {"a", "b", "c"}


def test_a_pattern_that_may_backtrack_costs_more_the_longer_the_text() -> None:
    plain, stepping = PatternWeight(1024, backtracks=False), PatternWeight(1024, backtracks=True)
    assert plain.work(2_000) == 2 * plain.work(1_000)
    assert stepping.work(2_000) > 2 * stepping.work(1_000) > 4 * stepping.work(500) > 0
    assert stepping.work(1_000) > 100 * plain.work(1_000)


def test_texts_that_meet_no_pattern_cost_nothing() -> None:
    schema: JsonObject = {"properties": {"a": {"pattern": "x"}, "b": {}}, "required": ["a"]}
    work = PatternWork(schema, References(schema, {}), {"x": PatternWeight(1024, backtracks=False)})
    assert not work.is_over({"a": "x", "b": "y" * 1_000}, 100_000, 10)
    assert work.is_over({"a": "x" * 1_000, "b": 5}, 100_000, 10)
    assert not work.is_over(["y" * 1_000], 100_000, 10)


def test_more_patterns_than_anybody_writes_are_refused() -> None:
    schema = {"anyOf": [{"pattern": f"a{number}"} for number in range(PATTERNS_MAX + 1)]}
    with pytest.raises(RequestRejected) as raised:
        compile_schema(schema)
    assert raised.value.code == CONFIG_SCHEMA_INVALID
    assert f"patterns_max={PATTERNS_MAX}" in raised.value.message
