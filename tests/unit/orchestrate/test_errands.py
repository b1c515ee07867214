"""Errands and reports as bytes: what is carried elsewhere arrives as it was, and what is no errand says so."""

import asyncio
from typing import get_args

import pytest

from remit.core.failure import ErrorCode, InvariantBroken
from remit.core.journal.arrivals import ModelFailed
from remit.core.journal.commands import CallCode, CallModel, CallTool, ReconcileTool, Retrieve
from remit.core.journal.proposed_call import ProposedCall
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.record import TEXT_INLINE_BYTES_MAX, BlobRef, Text, digest_of
from remit.core.run.contract import SystemRequest
from remit.core.run.halt import HaltKind, HaltScope
from remit.core.run.inference import ModelInfo, ModelRequest, Routing
from remit.core.run.messages import assistant_message, tool_message, user_message
from remit.orchestrate.executors.errands import (
    Errand,
    InquiryErrand,
    JudgeErrand,
    ModelErrand,
    Occasion,
    PlanErrand,
    ProposeErrand,
    RetrieveErrand,
    Sender,
    SiftErrand,
    StepErrand,
    ToolErrand,
    VoteErrand,
    decode_errand,
    decode_report,
    encode_errand,
    encode_report,
    packed,
    unpacked,
)
from remit.orchestrate.executors.reports import FilterSaid, Report, SiftedCall, ToolSaid

LONG = "a long text, " * 100
SENDER = Sender("run", "family", "request", "session", "trace", "tenant", "ada", (HaltScope(HaltKind.RUN, "run"),))
CODE = CallCode("1.1", "check", LONG, 5_000)
SHOWN = (
    user_message(LONG),
    assistant_message("", (ToolCall("c", "look", {"at": 1.5}),)),
    tool_message("c", "look", "x"),
)
ERRANDS: list[Errand] = [
    ModelErrand(
        SENDER,
        CallModel("1.1", "m", 3, 100, 1_000, ()),
        ModelRequest(SHOWN, options={"seed": 4}),
        ModelInfo("m", 4096),
        1,
        Occasion("look", ("look",), must_call=True),
        Routing.NONE,
        is_checked=True,
        engine="scripted:m",
    ),
    ToolErrand(SENDER, CallTool("1.1", "c", "look", "v", "{}", b"h", "key", 5, (), True), "act", ("f",), "why"),
    InquiryErrand(SENDER, ReconcileTool("2.1", "1.1", "look", "key", 5), "{}"),
    JudgeErrand(SENDER, CODE),
    SiftErrand(SENDER, CODE, "act", (ProposedCall("c", "look", "{}", b"h"),)),
    StepErrand(SENDER, CODE, "write", "Write.", is_check=True),
    PlanErrand(SENDER, CODE, SystemRequest((user_message("look"),)), "{}", "words"),
    ProposeErrand(SENDER, CODE, "look"),
    VoteErrand(SENDER, CODE, ("a", BlobRef(b"d", 3)), (0, 2), 1),
    RetrieveErrand(SENDER, Retrieve("1.1", 5), "words"),
]


def test_there_is_an_errand_of_every_kind() -> None:
    assert {type(errand) for errand in ERRANDS} == set(get_args(Errand))


@pytest.mark.parametrize("errand", ERRANDS, ids=lambda errand: type(errand).__name__)
def test_an_errand_arrives_as_it_was(errand: Errand) -> None:
    light, texts = packed(errand)
    kept = dict(texts)
    carried = decode_errand(encode_errand(light))
    assert carried == light

    async def fetch(text: Text) -> str:
        return text if isinstance(text, str) else kept[text.digest].decode()

    assert asyncio.run(unpacked(carried, fetch)) == errand


def test_long_texts_that_a_model_is_shown_are_carried_by_digest() -> None:
    light, texts = packed(ERRANDS[0])
    assert texts == [(digest_of(LONG.encode()), LONG.encode())]
    assert len(encode_errand(light)) < TEXT_INLINE_BYTES_MAX < len(LONG)


@pytest.mark.parametrize(
    "report",
    [
        ToolSaid("1.1", ToolResult("c", "look", "fine"), duration_ms=3),
        FilterSaid("1.1", (SiftedCall(ToolCall("c", "look", {}), "no"),)),
        ModelFailed("1.1", ErrorCode.INFERENCE_ENGINE_ERROR, "it broke", was_cut=True),
    ],
    ids=lambda report: type(report).__name__,
)
def test_a_report_comes_back_as_it_was(report: Report) -> None:
    assert decode_report(encode_report(report)) == report


@pytest.mark.parametrize("data", [b"", b"\x00", b"\x02", encode_errand(ERRANDS[0])[:-1], b"\x01\xc1"], ids=repr)
def test_what_is_no_errand_says_so(data: bytes) -> None:
    for decode in (decode_errand, decode_report):
        with pytest.raises(InvariantBroken, match="ERRAND_UNREADABLE"):
            decode(data)
