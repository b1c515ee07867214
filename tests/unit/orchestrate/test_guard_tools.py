"""Tools of the guard: everything that a run knows of a tool is declared in the protocol and reaches kernel and gate."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.authority import Stakes
from remit.core.limits.tool_trust import Reads, Repeat, Trust
from remit.core.limits.tools import TOOL_INVALID, Effect, ToolCategory, ToolDefinition
from remit.core.record import JsonObject
from remit.core.run.manifest import MANIFEST_INVALID
from remit.orchestrate.guard.host_tools import GUARD_TOOL_INVALID, Toolsets
from tests.unit.orchestrate.test_guarding import FIND, MAIL, Talk, parameters

SAID: JsonObject = {
    "name": "act",
    "description": "Acts.",
    "parameters": parameters(to="string", path="string", body="string"),
    "effect": "write",
    "category": "file_system",
    "network": True,
    "idempotent": True,
    "destructive": True,
    "untrusted_output": False,
    "permissions": ["act"],
    "timeout_ms": 5,
    "cost_microusd": 7,
    "control_args": {"to": "email"},
    "payload_args": ["body"],
    "result": {"[].id": "id:file"},
    "author": "sender",
    "directory": True,
    "locator_args": ["path"],
    "asks": ["act"],
    "repeat": "free",
    "reads": "secret",
    "readers": "[].shared_with",
    "stakes": "money",
    "blast_radius": "one file",
    "rollback": "undo",
    "alternative": "find_files",
    "fallback": "other",
    "rate": [3, 1000],
}


def definition(said: Any) -> ToolDefinition:
    return Toolsets().of([said]).definitions[0]


def test_everything_that_is_declared_stands_in_the_definition() -> None:
    assert definition(SAID) == ToolDefinition(
        "act",
        "Acts.",
        SAID["parameters"],
        effect=Effect.WRITE,
        category=ToolCategory.FILE_SYSTEM,
        network=True,
        idempotent=True,
        destructive=True,
        untrusted_output=False,
        permissions=("act",),
        timeout_ms=5,
        cost_microusd=7,
        control_args=(("to", "email"),),
        trust=Trust(
            payload_args=("body",),
            fields=(("[].id", "id:file"),),
            author="sender",
            directory=True,
            locator_args=("path",),
            asks=("act",),
            repeat=Repeat.FREE,
            reads=Reads.SECRET,
            readers="[].shared_with",
            stakes=Stakes.MONEY,
        ),
        blast_radius="one file",
        rollback="undo",
        alternative="find_files",
        fallback="other",
        rate_max=3,
        rate_per_ms=1000,
    )


def test_what_is_not_declared_counts_as_the_worst() -> None:
    assert definition({"name": "act"}) == ToolDefinition("act", "", {"type": "object"})
    nulls = {key: None for key in SAID if key != "name"}
    assert definition({"name": "act", **nulls}) == definition({"name": "act"})


def test_control_args_of_unknown_parameters_reach_the_gate_alone() -> None:
    assert definition({"name": "act", "control_args": {"to": "email"}}).control_args == ()


@pytest.mark.parametrize("rate", [5, [1], [0, 5], [1, 0], [1_001, 5], [1, "5"], [True, 5], [1.5, 5]])
def test_a_rate_is_a_list_of_calls_and_milliseconds(rate: Any) -> None:
    with pytest.raises(RequestRejected, match="two whole numbers") as rejected:
        definition({**MAIL, "rate": rate})
    assert rejected.value.code == GUARD_TOOL_INVALID


@pytest.mark.parametrize("key", ["blast_radius", "rollback", "alternative", "fallback"])
def test_the_texts_for_people_and_names_of_tools_are_texts(key: str) -> None:
    with pytest.raises(RequestRejected, match=key) as rejected:
        definition({**MAIL, key: 5})
    assert rejected.value.code == GUARD_TOOL_INVALID


def test_a_control_arg_that_the_parameters_lack_is_refused() -> None:
    with pytest.raises(RequestRejected, match="'too'") as rejected:
        definition({**MAIL, "control_args": {"too": "email"}})
    assert rejected.value.code == TOOL_INVALID


@pytest.mark.parametrize("key", ["alternative", "fallback"])
def test_another_tool_that_is_named_must_be_declared_too(key: str) -> None:
    started = Talk(tools=[{**MAIL, key: "no_such"}, FIND]).started
    assert (started["ok"], started["code"]) == (False, MANIFEST_INVALID)


def test_a_tool_without_a_schema_is_undeclared_whatever_else_it_says() -> None:
    for more in ({}, {"parameters": {"type": "object"}}):
        said = {"name": "drop_table", "effect": "write", "asks": ["drop"], "repeat": "free", "stakes": "none", **more}
        talk = Talk("Drop table t-9.", [said])
        for arguments in ({}, {"table": "t-9"}):
            assert talk.call("drop_table", **arguments)["code"] == "UNDECLARED"
