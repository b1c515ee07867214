import msgspec
import pytest

from remit.core.failure import Ending, RequestRejected
from remit.core.limits.tools import (
    RATE_MAX,
    TOOL_CALL_INVALID,
    TOOL_CHOICE_INVALID,
    TOOL_INVALID,
    TOOL_TIMEOUT_MS_MAX,
    TOOLS_DISALLOWED,
    Effect,
    ToolCall,
    ToolCategory,
    ToolChoice,
    ToolChoiceMode,
    ToolDefinition,
    ToolResult,
    check_call,
    check_definition,
    check_tool_choice,
    tool_version,
    validate_tools_allowed,
)

READ_FILE = ToolDefinition(
    "read_file", "Read a file", {"type": "object", "properties": {"path": {"type": "string"}}}, effect=Effect.READ
)


def changed(**changes: object) -> ToolDefinition:
    return msgspec.structs.replace(READ_FILE, **changes)


@pytest.mark.req("1.8")
def test_call_definition_and_result_have_the_fields_of_the_contract() -> None:
    assert ToolCall.__struct_fields__ == ("id", "name", "arguments", "metadata")
    assert ToolDefinition.__struct_fields__[:3] == ("name", "description", "parameters")
    assert ToolResult.__struct_fields__ == ("call_id", "name", "content", "error", "metadata", "stop_loop")


@pytest.mark.req("1.8")
def test_a_result_is_an_error_exactly_when_it_has_an_error_text() -> None:
    assert ToolResult("call_1", "read_file", error="no such file").is_error
    assert not ToolResult("call_1", "read_file", "text").is_error


def test_only_write_and_external_effects_mutate() -> None:
    assert [effect for effect in Effect if effect.is_mutating] == [Effect.WRITE, Effect.EXTERNAL]


def test_what_a_tool_does_not_declare_counts_as_the_worst() -> None:
    silent = ToolDefinition("t", "", {"type": "object"})
    assert silent.effect is Effect.EXTERNAL
    assert silent.untrusted_output
    assert silent.category is None
    assert not silent.idempotent
    assert not silent.reconcilable
    assert not silent.may_stop_loop


def test_there_are_ten_categories() -> None:
    assert len(ToolCategory) == 10


@pytest.mark.parametrize(
    "definition",
    [
        READ_FILE,
        changed(control_args=(("path", "id:file"),)),
        changed(parameters={"type": "object"}),
        changed(delegates=True, lease=(("steps", 3), ("tool_calls", 0))),
        changed(rate_max=RATE_MAX, rate_per_ms=60_000),
        changed(alternative="list_files", fallback="read_copy"),
        changed(effect=Effect.NONE, asks_under=Ending.MISSING_INFO),
        changed(effect=Effect.NONE, asks_under=Ending.CONFIRM_REQUIRED),
        changed(secrets=(("token", "files_token"),)),
    ],
)
def test_a_sound_definition_passes(definition: ToolDefinition) -> None:
    check_definition(definition)


@pytest.mark.parametrize(
    "name", ["weather.get", "files/read", "math: add two", "a", "-", "9", "a..b", "x" * 128, "com.example.api/v1:read"]
)
def test_a_name_may_have_dots_slashes_colons_and_spaces_within(name: str) -> None:
    check_definition(changed(name=name))


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"name": ""}, "a name is 1 to 128"),
        ({"name": ".read"}, "a name is 1 to 128"),
        ({"name": "read "}, "a name is 1 to 128"),
        ({"name": "read  file"}, "a name is 1 to 128"),
        ({"name": "read\nfile"}, "a name is 1 to 128"),
        ({"name": "read\x1bfile"}, "a name is 1 to 128"),
        ({"name": "r\u0435ad"}, "a name is 1 to 128"),
        ({"name": "read\n"}, "a name is 1 to 128"),
        ({"name": "x" * 129}, "a name is 1 to 128"),
        ({"parameters": {}}, "type 'object'"),
        ({"parameters": {"type": "array"}}, "type 'object'"),
        ({"parameters": {"type": "object", "properties": []}}, "must map each parameter"),
        ({"control_args": (("file", "id:file"),)}, r"control_args name \['file'\]"),
        ({"destructive": True}, "destructive, yet its effect is 'read'"),
        ({"effect": Effect.NONE, "network": True}, "uses the network, yet its effect is 'none'"),
        ({"timeout_ms": 0}, "timeout_ms=0 is outside 1 to"),
        ({"timeout_ms": TOOL_TIMEOUT_MS_MAX + 1}, "is outside 1 to"),
        ({"cost_microusd": -1}, "cost_microusd=-1 is below 0"),
        ({"permissions": ("files.read", "")}, "permissions hold an empty name"),
        ({"verifier": ""}, "verifier is empty"),
        ({"lease": (("steps", 3),)}, "has a lease, yet starts no child run"),
        ({"grants": ()}, "grants permissions, yet starts no child run"),
        ({"delegates": True, "lease": (("steps", -1),)}, "lease steps=-1 is not a counter"),
        ({"delegates": True, "lease": (("depth", 1),)}, "lease depth=1 is not a counter"),
        ({"effect": Effect.WRITE, "delegates": True}, "what a child changes is the child's own effect"),
        ({"rate_max": -1, "rate_per_ms": 1_000}, "rate -1 per 1000 ms is below 0"),
        ({"rate_max": 1, "rate_per_ms": -1}, "rate 1 per -1 ms is below 0"),
        ({"rate_max": 1}, "a rate needs both rate_max and rate_per_ms"),
        ({"rate_per_ms": 1_000}, "a rate needs both rate_max and rate_per_ms"),
        ({"rate_max": RATE_MAX + 1, "rate_per_ms": 1_000}, "rate_max=1001 exceeds 1000"),
        ({"alternative": "read_file"}, "names itself as its alternative"),
        ({"fallback": "read_file"}, "names itself as its fallback"),
        ({"effect": Effect.NONE, "asks_under": Ending.SUCCESS}, "asks_under=SUCCESS makes no run wait"),
        ({"asks_under": Ending.MISSING_INFO}, "asks a person, so its effect must be 'none'"),
        ({"effect": Effect.NONE, "delegates": True, "asks_under": Ending.MISSING_INFO}, "it may not delegate"),
        ({"secrets": (("path", "files_token"),)}, r"shows the model its secrets \['path'\]"),
        ({"result": {"maximum": 2**60}}, "its content has no canonical form"),
        ({"result": {"default": object()}}, "its content has no canonical form"),
    ],
)
def test_an_unsound_definition_is_refused_with_the_reason(changes: dict[str, object], complaint: str) -> None:
    with pytest.raises(RequestRejected, match=complaint) as caught:
        check_definition(changed(**changes))
    assert caught.value.code == TOOL_INVALID


def test_a_version_names_the_content_and_ignores_itself() -> None:
    version = tool_version(READ_FILE)
    assert len(bytes.fromhex(version)) == 32
    assert tool_version(changed(version=version)) == version
    assert tool_version(changed(description="Reads a file")) != version
    assert tool_version(changed(effect=Effect.WRITE)) != version


def test_a_version_does_not_depend_on_the_order_of_keys() -> None:
    one = changed(parameters={"type": "object", "properties": {}})
    other = changed(parameters={"properties": {}, "type": "object"})
    assert tool_version(one) == tool_version(other)


@pytest.mark.req("3.10")
def test_calls_within_the_list_are_allowed() -> None:
    validate_tools_allowed([ToolCall("1", "read_file"), ToolCall("2", "list_dir")], ["list_dir", "read_file"])
    validate_tools_allowed([], [])


@pytest.mark.req("3.10")
def test_all_disallowed_tools_are_named_once_each() -> None:
    calls = [ToolCall(str(n), name) for n, name in enumerate(["delete_file", "read_file", "format", "delete_file"])]
    with pytest.raises(RequestRejected, match=r"disallowed tools: delete_file, format$") as caught:
        validate_tools_allowed(calls, {"read_file"})
    assert caught.value.code == TOOLS_DISALLOWED
    assert caught.value.details["disallowed"] == ["delete_file", "format"]


@pytest.mark.req("3.10")
def test_an_empty_list_allows_nothing() -> None:
    with pytest.raises(RequestRejected, match="disallowed tools: read_file"):
        validate_tools_allowed([ToolCall("1", "read_file")], ())


@pytest.mark.parametrize(
    ("call", "complaint"), [(ToolCall("", "read_file"), "has no id"), (ToolCall("1", ""), "names no tool")]
)
def test_a_call_without_id_or_name_is_refused(call: ToolCall, complaint: str) -> None:
    with pytest.raises(RequestRejected, match=complaint) as caught:
        check_call(call)
    assert caught.value.code == TOOL_CALL_INVALID


def test_a_call_with_an_id_and_a_name_passes() -> None:
    check_call(ToolCall("call_1", "read_file"))


@pytest.mark.req("3.23")
def test_a_tool_choice_is_auto_required_none_or_a_function() -> None:
    assert ToolChoice().mode is ToolChoiceMode.AUTO
    for choice in (
        ToolChoice(),
        ToolChoice(ToolChoiceMode.REQUIRED),
        ToolChoice(ToolChoiceMode.NONE),
        ToolChoice(ToolChoiceMode.FUNCTION, "read_file"),
    ):
        check_tool_choice(choice)


@pytest.mark.req("3.23")
@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        (ToolChoice(ToolChoiceMode.FUNCTION), "needs function_name"),
        (ToolChoice(ToolChoiceMode.AUTO, "read_file"), "takes no function_name"),
        (ToolChoice("any"), "not 'any'"),  # type: ignore[arg-type]
    ],
)
def test_a_function_name_goes_with_the_mode_function_alone(choice: ToolChoice, complaint: str) -> None:
    with pytest.raises(RequestRejected, match=complaint) as caught:
        check_tool_choice(choice)
    assert caught.value.code == TOOL_CHOICE_INVALID
