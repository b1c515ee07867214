"""Replies go back where the task came from, in one of the six types of responses."""

import pytest

from remit.core.failure import ENDINGS, Ending, EndingKind, RequestRejected
from remit.core.failure_families import FailureCategory
from remit.core.run.approval import Approval, What
from remit.core.run.contract import SystemError as Failed
from remit.core.run.contract import SystemRequest, SystemResponse, WaitingFor
from remit.core.run.messages import user_message
from remit.core.run.principal import Principal
from remit.wire.inbound import start_of_task
from remit.wire.message_records import TaskMessage, UserMessage, UserResponse
from remit.wire.message_rules import BLOCK_TYPES, ResponseType
from remit.wire.payloads import delivered, posted
from remit.wire.replies import (
    Destination,
    destination_of,
    progressed,
    question_response,
    refusal_response,
    reply,
    reply_of,
    sender_of,
    streamed,
)

TO = Destination(channel_type="slack", channel_id="C1", user_id="ann", thread_id="T7", in_reply_to="m1")
AT_MS = 1_773_396_672_000
TASK = TaskMessage(task_id="t", prompt="go", channel_type="slack", channel_id="C1", user_id="ann")


def ended(code: Ending, content: str = "", error: Failed | None = None) -> SystemResponse:
    return SystemResponse("t", "s", "run1", terminal_code=code, content=content, error=error)


def test_a_reply_goes_to_the_channel_the_user_and_the_thread_of_its_task() -> None:
    request = start_of_task(TASK, thread_id="T7", message_id="m1").request
    assert destination_of(request, "run1") == TO
    message = UserMessage(
        message_id="m1", channel_type="slack", channel_id="C1", user_id="ann", content="go", thread_id="T7"
    )
    assert sender_of(message) == TO
    assert destination_of(SystemRequest((user_message("hi"),)), "run1") is None


def test_a_route_counts_only_in_the_channel_that_its_principal_uses() -> None:
    request = start_of_task(TASK, thread_id="T7", message_id="m1").request
    assert destination_of(request, "run1", Principal("acme", "ann", channel="slack")) == TO
    assert destination_of(request, "run1", Principal("acme", "eve", channel="api")) is None


def test_a_reply_to_a_task_without_a_message_answers_its_loop() -> None:
    to = destination_of(start_of_task(TASK).request, "run1")
    assert to is not None
    assert to.in_reply_to == "run1"


@pytest.mark.req("3.18")
def test_each_of_the_six_types_of_responses_is_delivered() -> None:
    question = Approval("run1/2.0", "run1", What.QUESTION, Ending.MISSING_INFO, 0, question="Which order?")
    replies = [
        reply(TO, ResponseType.TEXT, "hello", response_id="r", at_ms=AT_MS),
        progressed("looks into the order", TO, run_id="run1", seq=3, at_ms=AT_MS),
        reply_of(ended(Ending.SUCCESS, "It is 42."), TO, at_ms=AT_MS),
        reply_of(ended(Ending.REPEATED_FAILURE), TO, at_ms=AT_MS),
        question_response(question, TO, at_ms=AT_MS),
        streamed("It ", TO, run_id="run1", seq=3, number=0, at_ms=AT_MS),
    ]
    assert [one.type for one in replies] == list(ResponseType)
    for one in replies:
        post = posted(one)
        assert post.subject == "user.response.slack.C1"
        assert delivered(post.subject, post.data, post.headers) == one


@pytest.mark.parametrize("code", [code for code in Ending if ENDINGS[code].kind is EndingKind.ENDED])
def test_every_ending_is_told_as_a_result_an_error_or_a_status(code: Ending) -> None:
    told = reply_of(ended(code, "as far as it came"), TO, at_ms=AT_MS)
    wanted = {"success": "result", "failed": "error", "cancelled": "status"}[ENDINGS[code].outcome.value]
    assert told.type == wanted
    assert told.response_id == reply_of(ended(code), TO, at_ms=AT_MS + 5).response_id


def test_an_error_names_its_code_and_keeps_what_there_is_of_an_answer() -> None:
    error = Failed("BUDGET_EXHAUSTED", FailureCategory.ORCHESTRATION, retryable=False, message="tool_calls are spent")
    told = reply_of(ended(Ending.BUDGET_EXHAUSTED, "half an answer", error), TO, at_ms=AT_MS)
    assert told.content == "BUDGET_EXHAUSTED: tool_calls are spent"
    assert told.blocks[0].content == "half an answer"


@pytest.mark.req("3.19")
def test_a_structured_result_and_its_warnings_stand_in_blocks() -> None:
    response = SystemResponse(
        "t",
        "s",
        "run1",
        terminal_code=Ending.PARTIAL_SUCCESS,
        content="x",
        structured_output={"a": 1},
        warnings=("mind",),
    )
    blocks = reply_of(response, TO, at_ms=AT_MS).blocks
    assert [(block.type, block.content, block.lang) for block in blocks] == [
        ("code", '{"a":1}', "json"),
        ("text", "mind", ""),
    ]
    assert {block.type for block in blocks} <= set(BLOCK_TYPES)


@pytest.mark.req("3.19")
def test_a_call_that_waits_is_shown_with_a_button_for_yes_and_one_for_no() -> None:
    packet = Approval(
        "run1/2.0",
        "run1",
        What.APPROVAL,
        Ending.CONFIRM_REQUIRED,
        0,
        "refund",
        arguments={"order": 42},
        reasons=("it is external",),
    )
    response = SystemResponse("t", "s", "run1", waiting_for=WaitingFor(Ending.CONFIRM_REQUIRED, packets=(packet,)))
    told = reply_of(response, TO, at_ms=AT_MS)
    assert (told.type, told.content) == ("prompt", "May refund be called? it is external")
    assert told.blocks[0].content == '{"order":42}'
    assert [(action.id, action.signal, action.style) for action in told.actions] == [
        ("run1/2.0", "approve", "primary"),
        ("run1/2.0", "reject", "danger"),
    ]


def test_a_review_shows_the_answer_that_is_to_stand() -> None:
    packet = Approval("run1/2.0", "run1", What.REVIEW, Ending.REVIEW_REQUIRED, 0, answer="It is 42.")
    told = question_response(packet, TO, at_ms=AT_MS)
    assert told.blocks[0].content == "It is 42."
    assert len(told.actions) == 2
    assert told.content


def test_a_question_is_asked_in_its_own_words_with_what_there_is_to_choose_from() -> None:
    packet = Approval(
        "run1/2.0",
        "run1",
        What.QUESTION,
        Ending.AMBIGUOUS_INTENT,
        0,
        "choose",
        question="Which lamp?",
        options=("red", "blue"),
    )
    told = question_response(packet, TO, at_ms=AT_MS)
    assert (told.content, told.actions) == ("Which lamp?", ())
    assert [block.content for block in told.blocks] == ["red", "blue"]


def test_a_run_that_rests_without_a_question_is_told_as_a_status() -> None:
    waiting = SystemResponse("t", "s", "run1", waiting_for=WaitingFor(Ending.MISSING_INFO))
    assert reply_of(waiting, TO, at_ms=AT_MS).content == "loop run1 has not ended; it waits for MISSING_INFO"
    assert reply_of(SystemResponse("t", "s", "run1"), TO, at_ms=AT_MS).type == "status"


def test_an_answer_of_any_length_is_told_in_a_message_of_its_size() -> None:
    told = reply_of(ended(Ending.SUCCESS, "x" * 5_000_000), TO, at_ms=AT_MS)
    assert "5000000 bytes in all" in told.content
    assert len(posted(told).data) < 1_000_000


def test_a_refusal_is_told_with_its_code() -> None:
    told = refusal_response(RequestRejected("CHANNEL_NOT_PERMITTED", "ask first"), TO, at_ms=AT_MS)
    assert isinstance(told, UserResponse)
    assert (told.type, told.content) == ("error", "CHANNEL_NOT_PERMITTED: ask first")
