"""Tasks and signals of the wire become requests and signals of the house, and never bring authority along."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.lifecycle import AgentRole
from remit.core.run.messages import user_message
from remit.core.run.request_checks import check_request
from remit.core.run.signals import Signal, check_signal
from remit.wire.inbound import (
    ROUTE_KEY,
    WIRE_LOOP_UNKNOWN,
    WIRE_METADATA_RESERVED,
    WIRE_PACKET_UNCLEAR,
    WIRE_SENDER_UNCLEAR,
    PrebuiltContext,
    Route,
    attached,
    call_metadata,
    given_context,
    route_of,
    session_of_task,
    signal_of,
    start_of_task,
)
from remit.wire.message_records import Attachment, ConstructedContext, SignalMessage, TaskMessage, WireSignal
from remit.wire.payloads import WIRE_RULE_BROKEN, checked_record
from scripts.wire_docs import EXAMPLES

LEAST = TaskMessage(task_id="t", prompt="go")


def task() -> TaskMessage:
    example = EXAMPLES["task"]
    assert isinstance(example, TaskMessage)
    return example


def code_of(refused: pytest.ExceptionInfo[RequestRejected]) -> str:
    return refused.value.code


@pytest.mark.req("3.20")
def test_a_task_becomes_a_request_with_its_tools_its_choice_and_its_metadata() -> None:
    order = start_of_task(task())
    request = check_request(order.request)
    assert request.messages == (user_message("Analyze this code for bugs."),)
    assert request.tools == ("read_file",)
    assert request.tool_choice == ToolChoice(ToolChoiceMode.FUNCTION, "read_file")
    told = request.metadata
    assert {key: value for key, value in told.items() if key != ROUTE_KEY} == {"project": "remit"}
    assert (request.request_id, request.user_id) == ("task_456", "ann")
    assert (order.role, order.model, order.continues) == (AgentRole.GENERAL, "gpt-4", "")
    assert order.context == task().context


def test_what_only_the_wire_knows_travels_under_a_key_of_its_own() -> None:
    route = route_of(start_of_task(task(), thread_id="T7", message_id="m").request)
    assert route == Route(
        channel_type="slack",
        channel_id="C042",
        thread_id="T7",
        message_id="m",
        workflow_slug="add-user-auth",
        workflow_step="design",
        context_request_id="ctx_9",
        max_depth=2,
        context=task().context,
    )
    assert start_of_task(LEAST).request.metadata == {}


@pytest.mark.req("3.20", "3.28")
def test_context_that_came_with_a_task_is_kept_with_its_request_and_carried_by_no_call() -> None:
    request = start_of_task(task()).request
    assert given_context(request) == "Context (document docs/overview.md):\nThe project has one module."
    assert call_metadata(request)["project"] == "remit"
    assert call_metadata(request)[ROUTE_KEY] == {
        key: value for key, value in request.metadata[ROUTE_KEY].items() if key != "context"
    }
    assert given_context(start_of_task(LEAST).request) == ""
    assert call_metadata(start_of_task(LEAST).request) == {}


def test_a_sender_cannot_fill_the_key_of_the_wire() -> None:
    with pytest.raises(RequestRejected) as refused:
        start_of_task(replace(LEAST, metadata={ROUTE_KEY: {"channel_id": "elsewhere"}}))
    assert code_of(refused) == WIRE_METADATA_RESERVED


def test_a_request_of_python_that_uses_the_key_has_no_route() -> None:
    request = SystemRequest((user_message("hi"),), metadata={ROUTE_KEY: "mine"})
    assert route_of(request) == Route()


@pytest.mark.req("3.26")
def test_a_task_begins_a_session_and_one_that_names_a_loop_continues_its_session() -> None:
    begun = start_of_task(LEAST)
    assert begun.request.session_id == session_of_task("t") == start_of_task(LEAST).request.session_id
    following = start_of_task(replace(LEAST, task_id="u", loop_id="run1"), session_id=begun.request.session_id)
    assert following.request.session_id == begun.request.session_id
    assert following.continues == "run1"


@pytest.mark.req("3.26")
def test_a_loop_that_is_not_known_cannot_be_continued() -> None:
    with pytest.raises(RequestRejected) as refused:
        start_of_task(replace(LEAST, loop_id="run1"))
    assert code_of(refused) == WIRE_LOOP_UNKNOWN


def test_the_longest_id_of_a_task_still_names_a_session() -> None:
    check_request(start_of_task(replace(LEAST, task_id="x" * 256)).request)


def test_depth_only_narrows_what_a_run_may_spend() -> None:
    assert start_of_task(LEAST).budget == Budget()
    assert start_of_task(replace(LEAST, depth=1, max_depth=2)).budget == Budget(depth=1)
    assert start_of_task(replace(LEAST, depth=2, max_depth=2)).budget == Budget(depth=0)


def test_a_task_that_breaks_a_rule_is_refused() -> None:
    with pytest.raises(RequestRejected) as refused:
        start_of_task(TaskMessage(task_id="t"))
    assert code_of(refused) == WIRE_RULE_BROKEN


@pytest.mark.req("3.28")
def test_context_that_was_built_before_is_given_as_evidence_whatever_is_asked() -> None:
    context = start_of_task(task()).context
    assert context is not None
    (message,) = PrebuiltContext(context).build("anything")
    assert message.content == "Context (document docs/overview.md):\nThe project has one module."
    (bare,) = PrebuiltContext(ConstructedContext(content="x")).build("anything")
    assert bare.content == "Context:\nx"


@pytest.mark.req("3.19")
def test_attachments_are_context_and_no_words_of_the_user() -> None:
    files = (
        Attachment(type="code", name="a.py", content="print()", mime_type="text/x-python"),
        Attachment(type="url", name="b", url="https://example.org/b"),
    )
    context = attached(files)
    assert context is not None
    assert (
        checked_record(context).content == "[a.py] (code, text/x-python)\nprint()\n\n[b] (url, https://example.org/b)"
    )
    assert [source.id for source in context.sources] == ["a.py", "b"]
    assert attached(()) is None


def wire_signal(kind: str, payload: object = None) -> WireSignal:
    return WireSignal(type=kind, loop_id="run1", user_id="ann", payload=payload)


@pytest.mark.req("3.8")
@pytest.mark.parametrize("kind", Signal)
def test_each_signal_of_the_wire_is_one_that_the_house_takes(kind: Signal) -> None:
    more = {} if kind in (Signal.APPROVE, Signal.REJECT) else {"colour": "red"}
    payload = "why" if kind is Signal.FEEDBACK else {"reason": "why", **more}
    signal = signal_of(wire_signal(kind.value, payload), pending=["run1/2.0"])
    check_signal(signal)
    assert (signal.type, signal.run_id, signal.user_id) == (kind, "run1", "ann")
    assert "colour" not in signal.payload


@pytest.mark.parametrize("kind", ["approve", "reject"])
def test_an_answer_with_a_key_that_no_signal_has_is_refused_and_not_heard_without_its_version(kind: str) -> None:
    with pytest.raises(RequestRejected, match=r"payload\.packet_version is no key of a signal") as refused:
        signal_of(wire_signal(kind, {"packet_version": "0" * 12}), pending=["run1/2.0"])
    assert refused.value.code == "SIGNAL_INVALID"


def test_an_answer_that_names_no_packet_means_the_only_one_that_waits() -> None:
    assert signal_of(wire_signal("approve"), pending=["run1/2.0"]).payload == {"packet_id": "run1/2.0"}
    named = signal_of(wire_signal("reject", {"packet_id": "run1/3.0"}), pending=["run1/2.0", "run1/3.0"])
    assert named.payload == {"packet_id": "run1/3.0"}


@pytest.mark.parametrize("pending", [[], ["run1/2.0", "run1/3.0"]])
def test_an_answer_is_refused_where_it_is_not_clear_to_what(pending: list[str]) -> None:
    with pytest.raises(RequestRejected) as refused:
        signal_of(wire_signal("approve"), pending=pending)
    assert code_of(refused) == WIRE_PACKET_UNCLEAR


def test_a_signal_is_of_the_user_who_sent_it_and_of_no_other() -> None:
    assert signal_of(wire_signal("cancel"), sender="ann").user_id == "ann"
    for said, sender in ((wire_signal("cancel"), "bob"), (SignalMessage(type="cancel", loop_id="run1"), "")):
        with pytest.raises(RequestRejected) as refused:
            signal_of(said, sender=sender)
        assert code_of(refused) == WIRE_SENDER_UNCLEAR


def test_a_message_of_a_dispatcher_is_a_signal_of_who_sent_it() -> None:
    said = SignalMessage(type="pause", loop_id="run1", reason="lunch", timestamp="2026-03-13T10:11:12Z")
    signal = signal_of(said, sender="ann")
    check_signal(signal)
    assert (signal.type, signal.user_id, signal.payload) == (Signal.PAUSE, "ann", {"reason": "lunch"})
    assert signal.at_ms == 1_773_396_672_000
    assert signal_of(said, sender="ann").signal_id == signal.signal_id


@pytest.mark.parametrize("payload", [None, "", 7, ["x"]])
def test_a_payload_that_says_nothing_is_none(payload: object) -> None:
    assert signal_of(wire_signal("cancel", payload)).payload == {}
