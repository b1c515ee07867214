"""Names of tools on the wire: what every vendor takes, one for each tool, and the tool's own again on the way back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.limits.tools import TOOL_NAME_PATTERN, ToolCall, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.run.inference import ModelRequest, ModelResult
from remit.core.run.messages import assistant_message, tool_message, user_message
from remit.inference.answers.vendor_names import VENDOR_NAME_CHARS_MAX, VendorNames, vendor_names

SAFE = re.compile(rf"[A-Za-z0-9_-]{{1,{VENDOR_NAME_CHARS_MAX}}}")


def named(name: str) -> ToolDefinition:
    return ToolDefinition(name, "", {"type": "object"})


@pytest.mark.parametrize(
    ("name", "wire"),
    [("weather.get", "weather_get"), ("files/read", "files_read"), ("math: add two", "math__add_two"), ("a.b", "a_b")],
)
def test_a_name_that_vendors_refuse_is_spelled_with_underscores(name: str, wire: str) -> None:
    assert vendor_names([name, "other"]) == {name: wire}


def test_names_that_vendors_take_stay_as_they_are() -> None:
    assert vendor_names(["a_b", "a-b", "x" * 64, ""]) == {}


def test_no_two_tools_share_a_name() -> None:
    names = ["a_b", "a.b", "a/b", "a:b", "c.d", "x" * 65, "x" * 66]
    found = vendor_names(names)
    wires = [found.get(name, name) for name in names]
    assert len(set(wires)) == len(names)
    assert all(SAFE.fullmatch(wire) for wire in wires)
    assert (found["c.d"], "a_b" in found) == ("c_d", False)
    assert vendor_names(reversed(names)) == found


def test_a_mark_that_another_tool_has_as_its_name_is_made_again() -> None:
    taken = vendor_names(["a.b", "a_b"])["a.b"]
    found = vendor_names(["a.b", "a_b", taken])["a.b"]
    assert found not in {"a_b", taken}


@given(st.lists(st.from_regex(TOOL_NAME_PATTERN.pattern, fullmatch=True), max_size=8, unique=True))
def test_whatever_tools_are_called_their_names_come_back(names: list[str]) -> None:
    request = ModelRequest((user_message("hi"),), tuple(map(named, names)))
    wire = VendorNames(request)
    sent = [tool.name for tool in wire.request.tools]
    assert all(map(SAFE.fullmatch, sent))
    assert len(set(sent)) == len(names)
    called = ModelResult(tool_calls=tuple(ToolCall(str(at), name) for at, name in enumerate(sent)))
    assert [call.name for call in wire.restored(called).tool_calls] == names


def test_a_whole_request_speaks_of_a_tool_by_one_name() -> None:
    call, other = ToolCall("1", "weather.get", {"city": "Bern"}), ToolCall("2", "other")
    messages = (
        user_message("Use weather.get."),
        assistant_message("", (call, other)),
        tool_message("1", "weather.get", "rain"),
        tool_message("2", "other", "ok"),
    )
    choice = ToolChoice(ToolChoiceMode.FUNCTION, "weather.get")
    wire = VendorNames(ModelRequest(messages, (named("weather.get"),), tool_choice=choice))
    sent = wire.request
    assert (sent.tools[0].name, sent.tool_choice.function_name) == ("weather_get", "weather_get")
    assert [each.name for each in sent.messages[1].tool_calls] == ["weather_get", "other"]
    assert [message.name for message in sent.messages[2:]] == ["weather_get", "other"]
    # The words stay the user's own.
    assert sent.messages[0] is messages[0]
    # A model that writes the tool's own name is understood as well.
    for name in ("weather_get", "weather.get"):
        (back,) = wire.restored(ModelResult(tool_calls=(ToolCall("3", name),))).tool_calls
        assert back.name == "weather.get"


def test_a_request_that_needs_no_other_names_is_not_copied() -> None:
    request = ModelRequest((user_message("hi"),), (named("other"),))
    wire, result = VendorNames(request), ModelResult(tool_calls=(ToolCall("1", "other"),))
    assert wire.request is request
    assert wire.restored(result) is result
    assert VendorNames(ModelRequest((), (named("a.b"),))).restored(ModelResult("words")) == ModelResult("words")
