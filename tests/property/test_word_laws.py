"""Laws that hold for every word of the core, whatever its fields say."""

from enum import StrEnum
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.journal.canonical import INTEGER_MAX
from remit.core.limits.tools import ToolCall, ToolChoice, ToolDefinition, ToolResult, tool_version
from remit.core.record import Record
from remit.core.run.contract import (
    ExecutionContext,
    ExecutionHints,
    ExecutionState,
    OutputContract,
    SystemError,  # noqa: A004
    SystemRequest,
    SystemResponse,
    ToolCallMade,
    ValidationResult,
    WaitingFor,
)
from remit.core.run.correlation import (
    CorrelatedEvent,
    CorrelationContext,
    InferenceEndEvent,
    InferenceStartEvent,
    LifecycleTransitionEvent,
    ToolEndEvent,
    ToolStartEvent,
)
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult, Price
from remit.core.run.messages import Message
from remit.core.run.signals import UserSignal
from remit.core.run.usage import TokenUsage, check_usage, sum_usage
from remit.core.work.candidate import Candidate, ScoreMaker, best_first

WORDS: tuple[type[Record], ...] = (
    TokenUsage,
    Message,
    ToolCall,
    ToolResult,
    ToolChoice,
    ToolDefinition,
    ModelRequest,
    ModelResult,
    Price,
    ModelInfo,
    Candidate,
    ExecutionHints,
    OutputContract,
    SystemRequest,
    ToolCallMade,
    ValidationResult,
    SystemError,
    WaitingFor,
    SystemResponse,
    ExecutionState,
    ExecutionContext,
    UserSignal,
    CorrelationContext,
    InferenceStartEvent,
    InferenceEndEvent,
    ToolStartEvent,
    ToolEndEvent,
    LifecycleTransitionEvent,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-INTEGER_MAX, INTEGER_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=20),
    int: st.integers(0, INTEGER_MAX),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=32),
    NoneType: st.none(),
    Any: JSON,
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    """Any value a field of this type may hold."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if origin in (Union, UnionType):
        return st.one_of([values_of(argument) for argument in arguments])
    if origin is dict:
        return st.dictionaries(st.text(max_size=10), JSON, max_size=3)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, arguments))
    if issubclass(kind, StrEnum):
        return st.sampled_from(kind)
    return st.deferred(lambda: words_of(kind))


@cache
def words_of(kind: type[Record]) -> st.SearchStrategy[Any]:
    """Any record of this type: each field drawn by itself."""
    return st.fixed_dictionaries({name: values_of(hint) for name, hint in get_type_hints(kind).items()}).map(
        lambda fields: kind(**fields)
    )


@pytest.mark.parametrize("kind", WORDS, ids=lambda kind: kind.__name__)
@given(data=st.data())
@pytest.mark.slow
def test_every_word_survives_json_and_msgpack(kind: type[Record], data: st.DataObject) -> None:
    word = data.draw(words_of(kind))
    assert msgspec.json.decode(msgspec.json.encode(word), type=kind) == word
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(word), type=kind) == word


@given(data=st.data())
def test_an_event_is_recognised_among_all_events(data: st.DataObject) -> None:
    event = data.draw(values_of(CorrelatedEvent))
    assert msgspec.json.decode(msgspec.json.encode(event), type=CorrelatedEvent) == event


@given(st.lists(words_of(TokenUsage), max_size=5), st.integers(0, 5))
def test_usage_sums_the_same_in_any_grouping_and_order(usages: list[TokenUsage], cut: int) -> None:
    total = sum_usage(usages)
    assert sum_usage([sum_usage(usages[:cut]), sum_usage(usages[cut:])]) == total
    assert sum_usage(reversed(usages)) == total
    assert total.total_tokens == sum(usage.total_tokens for usage in usages)
    check_usage(total)


@given(st.lists(words_of(TokenUsage), min_size=1, max_size=5))
def test_the_rate_of_a_sum_lies_between_the_slowest_and_the_fastest(usages: list[TokenUsage]) -> None:
    rates = [usage.tokens_per_second for usage in usages]
    total = sum_usage(usages).tokens_per_second
    assert total == 0.0 or min(rates) * 0.999 <= total <= max(rates) * 1.001


@given(st.lists(words_of(Candidate)), st.sampled_from(ScoreMaker))
def test_ordering_candidates_loses_none_and_never_rises(candidates: list[Candidate], maker: ScoreMaker) -> None:
    same_maker = [msgspec.structs.replace(candidate, scored_by=maker) for candidate in candidates]
    ordered = best_first(same_maker)
    assert sorted(map(id, ordered)) == sorted(map(id, same_maker))
    assert all(one.score >= other.score for one, other in pairwise(ordered))


@given(words_of(ToolDefinition))
def test_a_version_is_the_same_before_and_after_a_journey_through_json(definition: ToolDefinition) -> None:
    travelled = msgspec.json.decode(msgspec.json.encode(definition), type=ToolDefinition)
    assert tool_version(travelled) == tool_version(definition)
