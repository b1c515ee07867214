import msgspec
import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.tools import ToolCall
from remit.core.record import BlobRef
from remit.core.run.messages import (
    MESSAGE_INVALID,
    Message,
    Role,
    assistant_message,
    check_message,
    system_message,
    tool_message,
    user_message,
)

CALL = ToolCall("call_1", "read_file", {"path": "main.py"})


@pytest.mark.req("1.7")
def test_a_message_has_role_content_calls_call_id_and_name() -> None:
    assert set(Message.__struct_fields__) == {"role", "content", "reasoning", "tool_calls", "tool_call_id", "name"}
    assert list(Role) == ["system", "user", "assistant", "tool"]


@pytest.mark.req("1.7")
@pytest.mark.parametrize(
    "message",
    [
        system_message("be brief"),
        user_message("where is my order?"),
        assistant_message("on its way"),
        assistant_message("", (CALL,)),
        assistant_message("", reasoning="the user wants a date"),
        assistant_message("let me see", (CALL,), "a tool knows"),
        tool_message("call_1", "read_file", "print()"),
        user_message(BlobRef(b"digest", 5000)),
    ],
)
def test_the_constructors_build_combinations_that_pass_the_check(message: Message) -> None:
    check_message(message)


def test_the_constructors_put_each_word_into_its_field() -> None:
    assert tool_message("call_1", "read_file", "text") == Message(
        role=Role.TOOL, content="text", tool_call_id="call_1", name="read_file"
    )
    assert assistant_message("said", (CALL,), "thought") == Message(
        role=Role.ASSISTANT, content="said", tool_calls=(CALL,), reasoning="thought"
    )


@pytest.mark.req("1.7")
@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (Message(Role.SYSTEM), "'system' needs a content"),
        (Message(Role.USER), "'user' needs a content"),
        (Message(Role.USER, "hi", tool_calls=(CALL,)), "'user' has no tool_calls"),
        (Message(Role.SYSTEM, "hi", reasoning="hm"), "'system' has no reasoning"),
        (Message(Role.USER, "hi", name="bob"), "'user' has no name"),
        (Message(Role.ASSISTANT), "needs content, reasoning or tool_calls"),
        (Message(Role.ASSISTANT, "hi", tool_call_id="call_1"), "'assistant' has no tool_call_id"),
        (Message(Role.TOOL, "", tool_call_id="call_1", name="read_file"), "'tool' needs a content"),
        (Message(Role.TOOL, "text", name="read_file"), "'tool' needs a tool_call_id"),
        (Message(Role.TOOL, "text", tool_call_id="call_1"), "'tool' needs a name"),
        (Message(Role.TOOL, "text", tool_calls=(CALL,), tool_call_id="c", name="n"), "'tool' has no tool_calls"),
        (Message("robot", "hi"), "not 'robot'"),  # type: ignore[arg-type]
    ],
)
def test_fields_that_do_not_fit_the_role_are_refused(message: Message, complaint: str) -> None:
    with pytest.raises(RequestRejected, match=complaint) as caught:
        check_message(message)
    assert caught.value.code == MESSAGE_INVALID


def test_an_assistant_message_is_refused_when_one_of_its_calls_is_incomplete() -> None:
    with pytest.raises(RequestRejected, match="has no id"):
        check_message(assistant_message("", (ToolCall("", "read_file"),)))


def test_a_message_with_a_stored_text_survives_json() -> None:
    message = user_message(BlobRef(b"\x00\xff", 2048))
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message
