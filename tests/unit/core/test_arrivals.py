from typing import get_args

import msgspec
import pytest

from remit.core.failure import ErrorCode
from remit.core.journal.arrivals import Arrival, Happened, ModelAnswered, RunStarted, ToolFailed
from remit.core.journal.proposed_call import ProposedCall, Provenance

REACHES = [Arrival, Happened, Provenance]


def test_a_proposed_call_is_untraced_until_the_gate_traces_it() -> None:
    assert ProposedCall("call", "look", "{}", b"hash").provenance is Provenance.UNTRACED


def test_an_effect_in_doubt_happened_did_not_or_nobody_knows() -> None:
    assert [happened.value for happened in Happened] == ["yes", "no", "unknown"]


@pytest.mark.req("3.29", "4.13")
def test_a_failure_of_a_tool_is_reported_as_exactly_that() -> None:
    failed = ToolFailed("1.0", ErrorCode.TOOL_TIMEOUT, "it took too long", b"evidence", duration_ms=30_000)
    assert msgspec.to_builtins(failed) == {
        "type": "ToolFailed",
        "command_id": "1.0",
        "code": "TOOL_TIMEOUT",
        "error": "it took too long",
        "evidence": "ZXZpZGVuY2U=",
        "duration_ms": 30_000,
    }


# Of the first arrival the manifest is a matter of its own.
@pytest.mark.parametrize("kind", [kind for kind in get_args(Arrival) if kind is not RunStarted])
def test_an_arrival_comes_back_as_its_own_kind(kind: type[msgspec.Struct]) -> None:
    codes = {
        "code": "TOOL_TIMEOUT",
        "ending": "SUCCESS",
        "happened": "yes",
        "evidence": b"",
        "number": 1,
        "token": 1,
        "content": "",
        "sources": [],
        "waiting_for": "CONFIRM_REQUIRED",
        "call": {"call_id": "c", "tool": "look", "arguments": "{}", "arguments_hash": b""},
    }
    required = [field.name for field in msgspec.structs.fields(kind) if field.required]
    values = {"type": kind.__name__, **{name: codes.get(name, "x") for name in required}}
    arrival: Arrival = msgspec.convert(values, Arrival)
    assert type(arrival) is kind


def test_an_answer_carries_words_thoughts_calls_and_its_cost() -> None:
    fields = (
        "command_id",
        "text",
        "reasoning",
        "calls",
        "usage",
        "tokens_bound",
        "violations",
        "offered",
        "repairs",
        "raw",
        "model",
        "unsupported",
        "ungrounded",
        "exposed",
    )
    assert ModelAnswered.__struct_fields__ == fields
