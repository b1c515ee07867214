"""Trials of declarations: what passes and what asks, of calls that were made up."""

import pytest

from remit.core.limits.authority import Authority, Stakes
from remit.core.limits.profiles import GUARDED, STANDARD
from remit.core.limits.tool_trust import Repeat, Trust
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.record import JsonObject, replace
from remit.orchestrate.boundaries.declaration_faults import faults_of
from remit.orchestrate.boundaries.tool_findings import boundary_findings
from remit.orchestrate.boundaries.tool_trials import kinds_of, patch_of, trials_of

STRING: JsonObject = {"type": "string"}
TRADES = (
    ("delete_file", {"file_id": "id:file"}),
    ("send_mail", {"recipient": "email"}),
    ("cancel_event", {"event_id": "id:event", "date": "date"}),
    ("fetch_page", {"url": "url"}),
    ("write_note", {"path": "path"}),
    ("add_member", {"member": "who:email"}),
    ("move_stock", {"shelf_id": "id:shelf", "pieces": "number"}),
)


def made(name: str, kinds: dict[str, str], **more: object) -> ToolDefinition:
    types = {key: {"type": "integer"} if kind == "number" else STRING for key, kind in kinds.items()}
    schema: JsonObject = {"type": "object", "properties": types, "required": list(kinds)}
    tool = ToolDefinition(name, "Acts.", schema, effect=Effect.EXTERNAL, control_args=tuple(kinds.items()))
    return replace(tool, **{"trust": Trust(repeat=Repeat.TARGET), **more})


@pytest.mark.parametrize(("name", "kinds"), TRADES)
def test_a_call_that_is_ordered_passes_and_any_other_one_asks(name: str, kinds: dict[str, str]) -> None:
    found = trials_of(made(name, kinds), Authority())
    assert [(one.tries, one.decision) for one in found] == [
        ("ordered", "allow"),
        ("other values", "ask"),
        ("not ordered", "ask"),
    ]
    assert found[0].request.startswith(name.partition("_")[0].capitalize())


def test_a_tool_that_declares_nothing_or_has_no_schema_never_passes() -> None:
    bare = ToolDefinition("act", "Acts.", {"type": "object", "properties": {"n": STRING}}, effect=Effect.EXTERNAL)
    for tool in (bare, made("drop_table", {"table": "id:table"}, parameters={})):
        assert {one.code for one in trials_of(tool, Authority())} == {"UNDECLARED"}


def test_a_read_and_a_delegation_are_not_tried() -> None:
    assert trials_of(made("list_files", {}, effect=Effect.READ), Authority()) == ()
    assert trials_of(made("hand_on", {}, delegates=True), Authority()) == ()


NESTED: JsonObject = {
    "type": "object",
    "properties": {
        "order_id": STRING,
        "body": STRING,
        "count": {"type": "integer"},
        "is_urgent": {"type": "boolean"},
        "speed": {"enum": ["slow", "fast"]},
        "email": STRING,
        "lines": {"type": "array", "items": {"type": "object", "properties": {"sku_id": STRING, "price": True}}},
    },
    "required": ["order_id", "body", "count", "is_urgent", "speed", "email", "lines"],
}


def test_nested_arguments_have_kinds_and_what_types_tell_is_offered_and_not_taken() -> None:
    tool = made("place_order", {"lines[].sku_id": "id:sku"}, parameters=NESTED)
    assert "lines[].sku_id: id:sku" in kinds_of(tool)
    assert "body: no kind: it is matched by its characters alone" in kinds_of(tool)
    offered = patch_of(tool)
    assert (
        offered == "control_args={'order_id': 'id:order', 'count': 'number', 'email': 'email'}, payload_args=['body']"
    )
    assert "body: payload" in kinds_of(replace(tool, trust=Trust(payload_args=("body",))))
    assert patch_of(replace(tool, effect=Effect.READ)) == ""
    assert trials_of(tool, Authority())[0].decision == "ask"


def test_a_check_tries_the_declarations_where_the_boundary_has_a_gate() -> None:
    tool = made(*TRADES[0])
    (found,) = boundary_findings(GUARDED, (tool,)).tools
    assert [one.decision for one in found.trials] == ["allow", "ask", "ask"]
    (found,) = boundary_findings(STANDARD, (tool,)).tools
    assert (found.trials, found.patch) == ((), "")


ROWS: JsonObject = {"type": "array", "items": {"type": "object", "properties": {"id": STRING}, "required": ["id"]}}


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        (made("send_sms", {"to": "", "text": ""}, effect=Effect.NONE), "effect says none"),
        (made("transfer", {"to": "", "amount": "number"}, trust=Trust(stakes=Stakes.NONE)), "stakes says none"),
        (
            made("delete_path", {"path": ""}, control_args=(), trust=Trust(payload_args=("path",))),
            "nothing else steers it",
        ),
        (made("find", {}, result=ROWS, trust=Trust(fields=(("x.y", "email"),))), "there is array where x should be"),
        (made("find", {}, result=ROWS, trust=Trust(fields=(("[].nope", "email"),))), "what is returned has id there"),
        (made("find", {}, result=ROWS, trust=Trust(fields=(("[].id.more", "email"),))), "there is string where more"),
    ],
    ids=["effect", "stakes", "payload", "no list", "no field", "too deep"],
)
def test_a_declaration_that_its_own_schema_contradicts_is_told(tool: ToolDefinition, words: str) -> None:
    assert any(words in fault for fault in faults_of(tool)), faults_of(tool)


def test_what_can_be_so_is_no_fault() -> None:
    fields = (("[].id", "id:row"),)
    for tool in (
        made("count_words", {"text": ""}, effect=Effect.NONE),
        made("find", {}, result=ROWS, trust=Trust(fields=fields)),
        made("find", {}, result={}, trust=Trust(fields=fields)),
        made("move", {"to": "", "shelf": "id:shelf"}, trust=Trust(stakes=Stakes.NONE)),
        made("save", {"path": "path"}, trust=Trust(payload_args=())),
    ):
        assert faults_of(tool) == (), tool.name


@pytest.mark.parametrize("verb", ["expel", "delete", "transfer", "send", "revoke"])
def test_a_tool_whose_name_says_that_it_changes_something_cannot_have_no_effect(verb: str) -> None:
    tool = replace(made(f"{verb}_pupil", {"pupil": "id:pupil"}), effect=Effect.NONE)
    (fault,) = faults_of(tool)
    assert f"its name says {verb}" in fault
    assert faults_of(replace(tool, name="rank_pupil")) == ()
    assert faults_of(replace(tool, effect=Effect.WRITE)) == ()


def test_asks_that_stand_in_nearly_every_request_are_told_and_the_tool_is_not_tried() -> None:
    tool = made("milk_cow", {"cow": "id:cow"}, trust=Trust(asks=("the", "milk", "please")))
    faults = faults_of(tool)
    assert ["asks says the, please" in fault for fault in faults] == [True]
    (trial,) = trials_of(tool, Authority(), faults)
    assert (trial.decision, trial.reasons) == ("not tried", (f"first mend its declaration: {faults[0]}",))
    (report,) = boundary_findings(GUARDED, [tool]).tools
    assert [one.decision for one in report.trials] == ["not tried"]
    assert faults_of(replace(tool, trust=Trust(asks=("milk", "get the milk")))) == ()
