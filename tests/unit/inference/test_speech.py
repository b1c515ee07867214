"""What a model says is gathered piece by piece; thoughts and calls in its text are set apart where they may be there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.limits.tools import ToolCall, ToolDefinition
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import user_message
from remit.inference.answers.speech import Speech, joined_pieces, mixed_speech, plain_speech
from remit.inference.engine import StreamChunk

OFFERING = ModelRequest((user_message("hello"),), (ToolDefinition("look_up", "", {"type": "object"}),))
WRITTEN = '[TOOL_CALLS][{"name": "look_up", "arguments": {}}]'


def heard(speech: Speech, *pieces: str) -> list[StreamChunk]:
    told = [*(speech.take(piece) for piece in pieces), speech.end()]
    return [chunk for chunk in told if chunk is not None]


def test_a_plain_speech_is_heard_as_it_comes() -> None:
    speech = plain_speech(OFFERING, str)
    assert heard(speech, "<think>", "", WRITTEN) == [StreamChunk("<think>"), StreamChunk(WRITTEN)]
    assert (speech.text, speech.reasoning, speech.calls(0)) == (f"<think>{WRITTEN}", "", ())
    assert speech.leave_calls() is None


def test_thoughts_beside_the_text_and_in_it_are_heard_in_their_order() -> None:
    speech = mixed_speech(OFFERING, str)
    assert speech.take("<thi", "a") == StreamChunk("", "a")
    assert speech.take("nk>b</think>") == StreamChunk("", "b")
    assert speech.take(" Hi", "c") == StreamChunk("Hi", "c")
    assert speech.end() is None
    assert (speech.text, speech.reasoning) == ("Hi", "abc")
    assert (speech.said_bytes, speech.thought_bytes) == (len("<think>b</think> Hi"), 2)


def test_a_call_behind_a_thought_is_heard_by_nobody_and_named_by_its_place() -> None:
    speech = mixed_speech(OFFERING, str)
    assert heard(speech, "<think>hm</think>\n", WRITTEN) == [StreamChunk("", "hm")]
    assert speech.calls(2) == (ToolCall("call-3-1", "look_up", {}),)


def test_calls_that_are_left_to_the_server_are_words() -> None:
    speech = mixed_speech(OFFERING, str)
    assert speech.take(WRITTEN) is None
    assert speech.leave_calls() == StreamChunk(WRITTEN)
    assert speech.leave_calls() is None
    assert (speech.end(), speech.calls(0)) == (None, ())


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (None, None, None),
        (StreamChunk("a"), None, StreamChunk("a")),
        (None, StreamChunk("b"), StreamChunk("b")),
        (StreamChunk("a", "c"), StreamChunk("b", "d"), StreamChunk("ab", "cd")),
    ],
)
def test_two_pieces_are_one(first: StreamChunk | None, second: StreamChunk | None, both: StreamChunk | None) -> None:
    assert joined_pieces(first, second) == both


@given(st.lists(st.one_of(st.sampled_from(["<think>", "</think>", WRITTEN, "<tool", "\n", "{"]), st.text(max_size=4))))
def test_the_pieces_joined_are_the_text_and_the_reasoning(pieces: list[str]) -> None:
    speech = mixed_speech(OFFERING, str)
    chunks = heard(speech, *pieces)
    assert "".join(chunk.text for chunk in chunks) == speech.text
    assert "".join(chunk.reasoning for chunk in chunks) == speech.reasoning
    assert speech.said_bytes == len("".join(pieces).encode())
