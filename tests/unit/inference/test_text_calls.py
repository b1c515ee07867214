"""Calls that a model wrote as text are proposals where tools were offered; prose that mentions them is prose."""

import json
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.limits.tools import ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import user_message
from remit.inference.answers.call_pieces import CALLS_MAX
from remit.inference.answers.text_calls import (
    INDENT_MAX,
    MARKS,
    PROBE_CHARS,
    SPACES_MAX,
    CallFilter,
    SplitText,
    WrittenCall,
    begins_a_call,
    call_filter,
    read_bare,
    read_marked,
    written_in,
)

# Many, or each with a whole command; the quick check has others of its kind.
pytestmark = pytest.mark.slow

NAMES = ("look_up", "weather")
TOOLS = tuple(ToolDefinition(name, "", {"type": "object"}) for name in NAMES)
LOOK = WrittenCall("look_up", {"word": "tea"})
WEATHER = WrittenCall("weather", {})
JSON = '{"name": "look_up", "arguments": {"word": "tea"}}'
SHOWERS = '{"name": "weather", "parameters": {}}'


def written(*pieces: str) -> SplitText:
    reading = CallFilter(NAMES, (read_marked, read_bare))
    words = [*(reading.take(piece) for piece in pieces), reading.end()]
    return SplitText("".join(words), reading.calls)


@pytest.mark.parametrize(
    ("text", "words", "calls"),
    [
        # Hermes, Qwen.
        (f"<tool_call>{JSON}</tool_call>", "", (LOOK,)),
        (f"\n<tool_call>\n{JSON}\n</tool_call>\n<tool_call>\n{SHOWERS}\n</tool_call>\n", "\n", (LOOK, WEATHER)),
        (f"Let me see.\n<tool_call>{JSON}</tool_call>", "Let me see.\n", (LOOK,)),
        # Where the tag that closes is what stops the model, it is missing.
        (f"<tool_call>{JSON}", "", (LOOK,)),
        (f"<tool_call>[{JSON}, {SHOWERS}]</tool_call><|im_end|>", "", (LOOK, WEATHER)),
        # A tag within an argument closes nothing.
        (
            '<tool_call>{"name": "look_up", "arguments": {"word": "</tool_call>"}}</tool_call>',
            "",
            (WrittenCall("look_up", {"word": "</tool_call>"}),),
        ),
        # Mistral.
        (f"[TOOL_CALLS][{JSON}, {SHOWERS}]", "", (LOOK, WEATHER)),
        (f"[TOOL_CALLS] {JSON}</s>", "", (LOOK,)),
        ('[TOOL_CALLS]look_up[ARGS]{"word": "tea"}[TOOL_CALLS]weather[CALL_ID]a1[ARGS]{}', "", (LOOK, WEATHER)),
        # Llama.
        ('<|python_tag|>{"name": "look_up", "parameters": {"word": "tea"}}', "", (LOOK,)),
        (f"<|python_tag|>{JSON}; {SHOWERS}<|eom_id|>", "", (LOOK, WEATHER)),
        # Bare, and fenced.
        ('{"name": "look_up", "parameters": {"word": "tea"}}', "", (LOOK,)),
        ('  {"type": "function", "id": "1", "function": {"name": "weather", "arguments": "{}"}}\n', "", (WEATHER,)),
        ('{"type": "function", "name": "weather", "parameters": {}}', "", (WEATHER,)),
        ('{"tool": "weather", "arguments": {}}', "", (WEATHER,)),
        ('{"function": "weather", "arguments": {}}', "", (WEATHER,)),
        (f"[{JSON}]", "", (LOOK,)),
        (f"{JSON}\n{SHOWERS}", "", (LOOK, WEATHER)),
        (f"```json\n{JSON}\n```", "", (LOOK,)),
        (f"```\n[{JSON},\n {SHOWERS}]\n```\n", "", (LOOK, WEATHER)),
        (f"```tool_call\n{JSON}\n  ```", "", (LOOK,)),
    ],
)
def test_every_notation_is_read_however_the_text_is_cut(text: str, words: str, calls: tuple[WrittenCall, ...]) -> None:
    assert written(text) == written(*text) == written_in(text, NAMES) == SplitText(words, calls)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "It rains.",
        # Mentioned, and gone on from.
        f"Write <tool_call>{JSON}</tool_call> to call a tool.",
        f"<tool_call>{JSON}</tool_call> is how it is written.",
        f"<tool_call>{JSON}</tool_call>\nThat was it.",
        f"Like so:\n```json\n{JSON}\n```",
        f"Like so: {JSON}",
        f"{JSON} is a call.",
        f"```json\n{JSON}\n```\nThat was it.",
        f"```\n<tool_call>{JSON}</tool_call>\n```",
        f"```python\n{JSON}\n```",
        f"> <tool_call>{JSON}</tool_call>",
        " " * (INDENT_MAX + 1) + f"<tool_call>{JSON}</tool_call>",
        " " * (SPACES_MAX + 1) + JSON,
        "<tool_call>",
        "[TOOL_CALLS]",
        "[TOOL_CALLS][]",
        "<tool_call></tool_call>",
        "<|python_tag|>print(1)",
        "[TOOL_CALLS]look_up{}",
        "[TOOL_CALLS]look_up[ARGS][1]",
        # Not offered, not whole, not an object, more than a call says.
        '{"name": "delete_everything", "arguments": {}}',
        '<tool_call>{"name": "delete_everything", "arguments": {}}</tool_call>',
        f"<tool_call>{JSON[:-1]}</tool_call>",
        f"<tool_call>{JSON}</tool_call><tool_call>{JSON[:9]}",
        '{"name": "look_up"}',
        '{"name": "look_up", "arguments": [1]}',
        '{"name": "look_up", "arguments": null}',
        '{"name": "look_up", "arguments": "tea"}',
        '{"name": "look_up", "arguments": "[1]"}',
        '{"name": "look_up", "arguments": {}, "parameters": {}}',
        '{"name": "look_up", "tool": "look_up", "arguments": {}}',
        '{"name": "look_up", "arguments": {}, "price": 3}',
        '{"name": ["look_up"], "arguments": {}}',
        '{"name": "look_up", "arguments": {"n": NaN}}',
        '{"name": "look_up", "arguments": {"n": "\\ud800"}}',
        '{"type": "function", "function": {"name": "look_up"}}',
        '{"type": "function", "function": {"name": "look_up", "arguments": {}}, "price": 3}',
        "[1, 2]",
        '["look_up"]',
        "{}",
        "{" * 100_000,
        "[" * 100_000,
        '{"name": "look_up", "arguments": {"a": ' + "[" * 100_000,
    ],
)
def test_whatever_else_is_said_stays_what_it_is(text: str) -> None:
    assert written(text) == SplitText(text)
    if len(text) < 1000:
        assert written(*text) == SplitText(text)


def test_more_calls_than_one_answer_may_propose_are_words() -> None:
    most = f"[TOOL_CALLS][{','.join([JSON] * CALLS_MAX)}]"
    assert len(written(most).calls) == CALLS_MAX
    over = f"[TOOL_CALLS][{','.join([JSON] * (CALLS_MAX + 1))}]"
    assert written(over) == SplitText(over)


def test_words_are_not_held_back_longer_than_they_may_become_calls() -> None:
    reading = CallFilter(NAMES, (read_marked, read_bare))
    assert reading.take("") == ""
    assert reading.take(" \n") == ""
    assert reading.take("Hi <tool_call>") == " \nHi <tool_call>"
    assert reading.take(" and\n <tool") == " and\n"
    assert reading.take("s>") == " <tools>"
    assert reading.take("\n") == "\n"
    assert reading.take("<tool_call>x") == ""
    assert reading.take("never mind") == ""
    assert reading.end() == "<tool_call>xnever mind"
    assert reading.take("<tool_call>") == "<tool_call>"


@pytest.mark.parametrize(
    "text", ['{"city": "Paris"', "[see](the page)", "```python\nprint()", '{"name":1,  ' + " " * 60]
)
def test_an_object_that_is_no_call_is_heard_once_its_first_key_is_known(text: str) -> None:
    reading = CallFilter(NAMES, (read_marked, read_bare))
    padded = text + "x" * PROBE_CHARS
    is_call_so_far = text.startswith('{"name"')
    assert reading.take(padded) == ("" if is_call_so_far else padded)
    assert reading.end() == (padded if is_call_so_far else "")


def test_what_is_given_up_is_words_from_then_on() -> None:
    reading = CallFilter(NAMES, (read_marked, read_bare))
    assert reading.take(f"<tool_call>{JSON}") == ""
    assert reading.give_up() == f"<tool_call>{JSON}"
    assert reading.take(f"\n<tool_call>{JSON}") == f"\n<tool_call>{JSON}"
    assert (reading.end(), reading.calls) == ("", ())


def test_what_nobody_may_keep_is_taken_out_before_a_call_is_read() -> None:
    reading = CallFilter(NAMES, (read_marked,))
    reading.take('<tool_call>{"name": "look_up", "arguments": {"word": "sec')
    reading.take('ret"}}')
    assert reading.end(lambda text: text.replace("secret", "***")) == ""
    assert reading.calls == (WrittenCall("look_up", {"word": "***"}),)


ASKED = ModelRequest((user_message("hello"),), TOOLS)


def test_calls_are_looked_for_only_where_tools_may_be_called() -> None:
    assert call_filter(ModelRequest(ASKED.messages)) is None
    assert call_filter(ModelRequest(ASKED.messages, TOOLS, tool_choice=ToolChoice(ToolChoiceMode.NONE))) is None


@pytest.mark.parametrize(
    "request_shaped", [ModelRequest(ASKED.messages, TOOLS, schema={}), ModelRequest(ASKED.messages, TOOLS, grammar="x")]
)
def test_an_object_is_no_call_where_an_object_was_asked_for(request_shaped: ModelRequest) -> None:
    for text, is_call in ((JSON, False), (f"<tool_call>{JSON}", True)):
        reading = call_filter(request_shaped)
        assert reading is not None
        assert reading.take(text) + reading.end() == ("" if is_call else text)
        assert bool(reading.calls) is is_call
    reading = call_filter(ASKED)
    assert reading is not None
    assert (reading.take(JSON) + reading.end(), reading.calls) == ("", (LOOK,))


@pytest.mark.parametrize(
    ("text", "begins"),
    [("", None), (" ", None), (" <tool", None), ("[TOOL", None), ("{", True), (" [TOOL_CALLS]", True), ("a", False)],
)
def test_a_call_is_known_by_its_first_letters(text: str, begins: bool | None) -> None:
    assert begins_a_call(text) is begins


PARTS = [*MARKS, "</tool_call>", "[ARGS]", "look_up", "```json\n", "\n```", JSON, SHOWERS, "{", "}", "[", "]", '"', ";"]


@given(
    st.lists(st.one_of(st.sampled_from([*PARTS, "\n", " ", "Hello"]), st.text(max_size=5)), max_size=12),
    st.lists(st.integers(0, 200), max_size=6),
)
def test_nothing_is_lost_and_how_a_text_is_cut_changes_nothing(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    pieces = [text[start:stop] for start, stop in pairwise(places)]
    found = written(*pieces)
    assert found == written(text)
    assert text.startswith(found.words)
    assert (found.words == text) is not bool(found.calls)
    assert all(call.name in NAMES and isinstance(call.arguments, dict) for call in found.calls)


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5), st.data())
def test_calls_come_back_as_they_were_written(names: list[str], data: st.DataObject) -> None:
    values = st.dictionaries(st.text(max_size=5), st.one_of(st.text(), st.integers(-(2**53), 2**53), st.none()))
    calls = [WrittenCall(name, data.draw(values)) for name in names]
    texts = [json.dumps({"name": call.name, "arguments": call.arguments}) for call in calls]
    for text in (
        "".join(f"<tool_call>\n{each}\n</tool_call>\n" for each in texts),
        f"[TOOL_CALLS][{', '.join(texts)}]",
        "<|python_tag|>" + "; ".join(texts),
        f"```json\n[{','.join(texts)}]\n```",
    ):
        assert written(text) == SplitText("", tuple(calls))


MEGABYTE = 1_000_000


@pytest.mark.parametrize(
    "part",
    [*PARTS, "\n<tool", "\n" + " " * INDENT_MAX, "<", "\n```", "a\n", '{"name":', "</tool_call>\n<tool_call>"],
)
@pytest.mark.parametrize("begins", ["", "<tool_call>", "{", "```json\n"])
def test_a_megabyte_of_anything_takes_no_longer_than_its_length(begins: str, part: str) -> None:
    text = begins + part * (MEGABYTE // len(part))
    began_s = time.process_time()
    pieces = [text[start : start + 1000] for start in range(0, len(text), 1000)]
    found = written(*pieces)
    # Quadratic work would take minutes.
    assert time.process_time() - began_s < 10
    assert text.startswith(found.words)
