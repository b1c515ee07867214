import msgspec
import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.canonical import DEPTH_MAX
from remit.core.limits.tools import TOOL_CHOICE_INVALID, ToolChoice, ToolChoiceMode
from remit.core.record import BlobRef
from remit.core.run.contract import ExecutionHints, Mode, OutputContract, SystemRequest
from remit.core.run.messages import MESSAGE_INVALID, Message, Role, assistant_message, system_message, user_message
from remit.core.run.person import PERSON_INVALID, REQUEST_ID_SECRET
from remit.core.run.request_checks import (
    ID_CHARS_MAX,
    ITERATIONS_MAX,
    MESSAGES_MAX,
    OUTPUT_TOKENS_MAX,
    REQUEST_BYTES_MAX,
    REQUEST_HINT_INVALID,
    REQUEST_ID_INVALID,
    REQUEST_MALFORMED,
    REQUEST_MESSAGES_INVALID,
    REQUEST_MODE_INVALID,
    REQUEST_OUTPUT_INVALID,
    REQUEST_TOO_LARGE,
    REQUEST_TOOLS_INVALID,
    TIMEOUT_MS_MAX,
    TOOLS_MAX,
    check_request,
)
from tests.planted import Planted

REACHES = [Mode]

ASKED = SystemRequest((system_message("be brief"), user_message("hi")))


def changed(**changes: object) -> SystemRequest:
    return msgspec.structs.replace(ASKED, **changes)


def refusal_of(request: SystemRequest) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        check_request(request)
    return caught.value


@pytest.mark.req("0.16")
@pytest.mark.parametrize(
    "request_",
    [
        ASKED,
        changed(mode=Mode.STRUCTURED, output=OutputContract(schema={})),
        changed(tools=("lookup",), tool_choice=ToolChoice(ToolChoiceMode.FUNCTION, "lookup")),
        changed(tool_choice=ToolChoice(ToolChoiceMode.FUNCTION, "lookup")),
        changed(hints=ExecutionHints(OUTPUT_TOKENS_MAX, TIMEOUT_MS_MAX, 0.0, 1.0, 1)),
        changed(request_id="r" * ID_CHARS_MAX),
    ],
)
def test_a_sound_envelope_may_become_a_run(request_: SystemRequest) -> None:
    assert check_request(request_) == request_


@pytest.mark.req("0.16")
@pytest.mark.parametrize("mode", Mode)
def test_every_mode_may_be_asked_for(mode: Mode) -> None:
    output = OutputContract() if mode is Mode.PLAN else OutputContract(schema={})
    assert check_request(changed(mode=mode, output=output)).mode is mode


def test_what_enters_is_a_copy_that_the_caller_cannot_change() -> None:
    metadata = {"team": "a"}
    entered = check_request(changed(metadata=metadata))
    metadata["team"] = "b"
    assert entered.metadata == {"team": "a"}


def test_lists_and_plain_values_enter_as_the_types_they_stand_for() -> None:
    entered = check_request(changed(mode="plan", messages=[{"role": "user", "content": "hi"}], tools=["lookup"]))
    assert entered == SystemRequest((user_message("hi"),), Mode.PLAN, tools=("lookup",))
    assert entered.mode is Mode.PLAN
    assert entered.messages[0].role is Role.USER


@pytest.mark.req("0.16")
@pytest.mark.parametrize("mode", ["dream", None])
def test_only_a_mode_is_a_mode(mode: object) -> None:
    refusal = refusal_of(changed(mode=mode))
    assert refusal.code == REQUEST_MODE_INVALID
    assert "one of chat, structured, plan, redundant" in str(refusal)


def nested_in_itself() -> dict[str, object]:
    loop: dict[str, object] = {}
    loop["again"] = loop
    return loop


@pytest.mark.parametrize(
    "request_",
    [
        changed(session_id=7),
        changed(messages=({"content": "hi"},)),
        changed(messages=(Message("robot", "hi"),)),  # type: ignore[arg-type]
        changed(hints=ExecutionHints(max_tokens="many")),  # type: ignore[arg-type]
        changed(messages=(user_message("half a surrogate \ud800"),)),
        changed(metadata={"huge": 2**64}),
        changed(metadata={"what": object()}),
        changed(metadata={3: "a key that is no text"}),
        changed(metadata=nested_in_itself()),
    ],
    ids=["id", "message", "role", "hint", "text", "integer", "object", "key", "cycle"],
)
def test_what_cannot_be_written_and_read_back_is_refused(request_: SystemRequest) -> None:
    refusal = refusal_of(request_)
    assert refusal.code == REQUEST_MALFORMED
    assert "cannot be stored" in str(refusal)


def test_a_request_beyond_the_size_limit_is_refused_with_both_numbers() -> None:
    refusal = refusal_of(changed(messages=(user_message("x" * REQUEST_BYTES_MAX),)))
    assert refusal.code == REQUEST_TOO_LARGE
    assert refusal.details["limit"] == REQUEST_BYTES_MAX
    assert refusal.details["size_bytes"] > REQUEST_BYTES_MAX


@pytest.mark.parametrize("field", ["request_id", "session_id", "trace_id", "tenant_id", "user_id"])
def test_an_id_that_is_a_secret_is_refused_without_being_told(field: str) -> None:
    planted = Planted().all()
    refusal = refusal_of(changed(**{field: planted["github"][0]}))
    assert refusal.code == REQUEST_ID_SECRET
    assert planted["github"][0] not in str(refusal)
    assert (refusal.details["field"], refusal.details["kind"]) == (field, "github_token")
    # Many programs make identifiers of letters by chance.
    check_request(changed(**{field: planted["chance"][0]}))


@pytest.mark.parametrize("field", ["request_id", "session_id", "trace_id", "tenant_id", "user_id"])
@pytest.mark.parametrize("value", ["x" * (ID_CHARS_MAX + 1), "two\nlines"])
def test_an_id_is_short_and_printable(field: str, value: str) -> None:
    refusal = refusal_of(changed(**{field: value}))
    assert refusal.code == REQUEST_ID_INVALID
    assert refusal.details["field"] == field


@pytest.mark.parametrize("name", ["\u0430lice", "...", "a\u2800"])
def test_who_asks_is_named_as_any_person_is(name: str) -> None:
    assert refusal_of(changed(user_id=name)).code == PERSON_INVALID


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ((), "has 0 messages"),
        ((user_message("hi"),) * (MESSAGES_MAX + 1), "has 10001 messages"),
        ((user_message("hi"), assistant_message("hello")), "last message is of role 'assistant'"),
        ((user_message(BlobRef(b"d", 1)),), "message 0 refers to a stored text"),
        ((assistant_message("", reasoning=BlobRef(b"d", 1)), user_message("hi")), "message 0 refers to a stored text"),
    ],
    ids=["none", "too many", "not from the user", "stored content", "stored reasoning"],
)
def test_messages_are_few_enough_carry_their_texts_and_end_with_the_user(
    messages: tuple[Message, ...], complaint: str
) -> None:
    refusal = refusal_of(changed(messages=messages))
    assert refusal.code == REQUEST_MESSAGES_INVALID
    assert complaint in str(refusal)


def test_each_message_must_fit_its_role() -> None:
    assert refusal_of(changed(messages=(Message(Role.USER),))).code == MESSAGE_INVALID


@pytest.mark.req("0.10")
@pytest.mark.parametrize(
    ("hints", "complaint"),
    [
        (ExecutionHints(max_tokens=-1), "hints.max_tokens=-1 is outside 0 to"),
        (ExecutionHints(max_tokens=OUTPUT_TOKENS_MAX + 1), "is outside 0 to"),
        (ExecutionHints(timeout_ms=-1), "hints.timeout_ms=-1 is outside 0 to"),
        (ExecutionHints(timeout_ms=TIMEOUT_MS_MAX + 1), "is outside 0 to"),
        (ExecutionHints(temperature=-0.1), "hints.temperature=-0.1 is outside 0.0 to 2.0"),
        (ExecutionHints(temperature=float("nan")), "hints.temperature=nan is outside 0.0 to 2.0"),
        (ExecutionHints(top_p=1.1), "hints.top_p=1.1 is outside 0.0 to 1.0"),
    ],
)
def test_a_hint_outside_its_range_is_refused_with_the_range(hints: ExecutionHints, complaint: str) -> None:
    refusal = refusal_of(changed(hints=hints))
    assert refusal.code == REQUEST_HINT_INVALID
    assert complaint in str(refusal)


@pytest.mark.req("3.7")
@pytest.mark.parametrize("iterations", [-1, 0, ITERATIONS_MAX + 1])
def test_the_number_of_iterations_is_positive_and_bounded(iterations: int) -> None:
    refusal = refusal_of(changed(hints=ExecutionHints(max_iterations=iterations)))
    assert f"hints.max_iterations={iterations} is outside 1 to {ITERATIONS_MAX}" in str(refusal)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"tools": ("lookup", "")}, "tool name '' has not 1 to 128 characters"),
        ({"tools": ("x" * 129,)}, "has not 1 to 128 characters"),
        ({"tools": ("lookup",) * (TOOLS_MAX + 1)}, "names 1001 tools, more than 1000"),
        (
            {"tools": ("lookup",), "tool_choice": ToolChoice(ToolChoiceMode.FUNCTION, "pay")},
            "demands 'pay', which is not among tools",
        ),
    ],
)
def test_tools_are_named_and_hold_the_one_that_is_demanded(changes: dict[str, object], complaint: str) -> None:
    refusal = refusal_of(changed(**changes))
    assert refusal.code == REQUEST_TOOLS_INVALID
    assert complaint in str(refusal)


def test_a_tool_choice_is_checked_with_the_request() -> None:
    assert refusal_of(changed(tool_choice=ToolChoice(ToolChoiceMode.FUNCTION))).code == TOOL_CHOICE_INVALID


def test_the_structured_mode_needs_a_schema() -> None:
    refusal = refusal_of(changed(mode=Mode.STRUCTURED))
    assert refusal.code == ErrorCode.CONFIG_SCHEMA_REQUIRED
    assert "needs output.schema" in str(refusal)


def test_the_steps_of_a_plan_have_shapes_and_the_plan_has_none() -> None:
    for output in (OutputContract(schema={"type": "object"}), OutputContract(grammar='root ::= "a"')):
        assert refusal_of(changed(mode=Mode.PLAN, output=output)).code == REQUEST_OUTPUT_INVALID


@pytest.mark.parametrize("tenant", ["*", "a>", "a?", " a"])
def test_a_tenant_whose_name_stands_for_many_is_refused(tenant: str) -> None:
    refused = refusal_of(changed(tenant_id=tenant))
    assert (refused.code, refused.details) == (REQUEST_ID_INVALID, {"field": "tenant_id"})


@pytest.mark.parametrize("given", [None, 7, {"messages": []}, b"hello"])
def test_what_is_no_request_becomes_no_run(given: object) -> None:
    with pytest.raises(RequestRejected, match=r"REQUEST_MALFORMED.*give a SystemRequest or a text"):
        check_request(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"metadata": {"a": [{"b": float("nan")}]}}, "metadata.a[0].b=nan is no finite number"),
        ({"metadata": {"a": b"x"}}, "metadata.a=b'x' is of no type that JSON has"),
        ({"metadata": {"a": {1: 2}}}, "metadata.a has the key 1, which is no text"),
        ({"output": OutputContract({"default": float("inf")})}, "output.schema.default=inf is no finite number"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_its_path(changes: dict[str, object], named: str) -> None:
    refusal = refusal_of(changed(**changes))
    assert refusal.code == REQUEST_MALFORMED
    assert named in refusal.message


def test_metadata_that_nests_too_deep_is_refused() -> None:
    nested: object = 1
    for _ in range(DEPTH_MAX + 1):
        nested = [nested]
    assert "nests deeper than depth_max" in refusal_of(changed(metadata={"a": nested})).message


def test_options_that_json_cannot_hold_are_refused_by_their_path() -> None:
    refusal = refusal_of(changed(hints=ExecutionHints(options={"a": [1.0, float("nan")]})))
    assert (refusal.code, refusal.details) == (REQUEST_HINT_INVALID, {"field": "hints.options"})
    assert "hints.options.a[1]=nan is no finite number" in refusal.message
