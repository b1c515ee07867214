"""What a tool declares is read exactly; what it leaves out is the worst; what cannot be read is refused by name."""

from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.authority import Stakes
from remit.core.limits.tool_trust import Reads, Repeat
from remit.core.limits.tools import Effect
from remit.provenance.declarations import (
    DECLARATION_INVALID,
    TOOLS_MAX,
    declaration_of,
    declarations_of,
    segments_of,
    worst_of,
)


def test_what_is_absent_counts_as_the_worst() -> None:
    tool = declaration_of({"name": "x"})
    assert (tool.effect, tool.repeat, tool.reads, tool.stakes) == (
        Effect.EXTERNAL,
        Repeat.ONCE,
        Reads.PRIVATE,
        Stakes.UNKNOWN,
    )
    assert (tool.result, tool.payload_args, tool.directory, tool.is_checked, tool.leaves) == ((), (), False, True, True)


@pytest.mark.parametrize(
    ("path", "group", "name"),
    [
        ("", "", ""),
        ("$", "", ""),
        ("id", "", "id"),
        ("$.owner.email", "", "owner.email"),
        ("[]", "[]", ""),
        ("[].id", "[]", "id"),
        ("items[].owner.email", "items[]", "owner.email"),
        ("[].guests[]", "[]", "guests[]"),
        ("guests[]", "", "guests[]"),
        ("[].parts[].id", "[].parts[]", "id"),
        ("*.price", "*", "price"),
    ],
)
def test_a_path_tells_the_record_and_the_field(path: str, group: str, name: str) -> None:
    field = declaration_of({"name": "x", "result": {path: "number"}}).result[0]
    assert (field.group, field.name) == (group, name)


def test_a_schema_as_result_trusts_nothing_and_a_bare_kind_is_the_whole_result() -> None:
    for schema in ({"type": "object", "properties": {"id": {"type": "string"}}}, {"type": "array"}, {}, None):
        assert declaration_of({"name": "x", "result": schema}).result == ()
    assert declaration_of({"name": "x", "result": "date"}).result[0].kind == "date"
    assert declaration_of({"name": "x", "result": {"type": "label"}}).result[0].name == "type"


@pytest.mark.parametrize(
    ("tool", "key"),
    [
        (7, "tool"),
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x" * 300}, "name"),
        ({"name": "x", "effect": "big"}, "effect"),
        ({"name": "x", "effect": 1}, "effect"),
        ({"name": "x", "network": "yes"}, "network"),
        ({"name": "x", "description": 1}, "description"),
        ({"name": "x", "parameters": []}, "parameters"),
        ({"name": "x", "control_args": {"a": 1}}, "control_args"),
        ({"name": "x", "control_args": "a"}, "control_args"),
        ({"name": "x", "payload_args": "a"}, "payload_args"),
        ({"name": "x", "result": 7}, "result"),
        ({"name": "x", "result": {"a": 1}}, "result['a']"),
        ({"name": "x", "result": {"a": "~number"}}, "result['a']"),
        ({"name": "x", "result": {"a..b": "number"}}, "result"),
        ({"name": "x", "result": {"a" + ".a" * 20: "number"}}, "result"),
        ({"name": "x", "repeat": "often"}, "repeat"),
        ({"name": "x", "reads": "all"}, "reads"),
        ({"name": "x", "stakes": "high"}, "stakes"),
        ({"name": "x", "category": "toys"}, "category"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_key(tool: Any, key: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        declaration_of(tool)
    assert (caught.value.code, caught.value.details["key"]) == (DECLARATION_INVALID, key)


def test_two_tools_of_one_name_and_too_many_tools_are_refused() -> None:
    with pytest.raises(RequestRejected, match="each tool once"):
        declarations_of([{"name": "x"}, {"name": "x"}])
    with pytest.raises(RequestRejected, match=f"at most {TOOLS_MAX}"):
        declarations_of([{"name": f"x{n}"} for n in range(TOOLS_MAX + 1)])


@pytest.mark.parametrize(
    ("more", "stakes"),
    [
        ({}, Stakes.UNKNOWN),
        ({"category": "payment"}, Stakes.MONEY),
        ({"category": "infrastructure"}, Stakes.RIGHTS),
        ({"category": "retrieval"}, Stakes.NONE),
        ({"category": "retrieval", "destructive": True}, Stakes.DELETION),
        ({"category": "payment", "stakes": "none"}, Stakes.NONE),
    ],
)
def test_stakes_are_declared_or_told_by_the_category(more: dict[str, Any], stakes: Stakes) -> None:
    assert declaration_of({"name": "x", **more}).stakes is stakes


def test_a_list_of_control_arguments_leaves_their_kinds_open() -> None:
    assert declaration_of({"name": "x", "control_args": ["a", "b"]}).control_args == (("a", ""), ("b", ""))


def test_the_keys_that_a_tool_leaves_at_their_worst_are_listed() -> None:
    effect = {"name": "x", "control_args": {"a": "email"}}
    assert worst_of(declaration_of(effect), effect) == ("effect", "payload_args", "asks", "repeat", "stakes")
    read = {"name": "x", "effect": "read", "reads": "public"}
    assert worst_of(declaration_of(read), read) == ("result", "network")


def test_steps_of_a_path_are_keys_and_iterations() -> None:
    assert segments_of("$.a[].b.*.c") == ("a", "[]", "b", "*", "c")


def test_effects_and_network_reads_are_checked_and_leave() -> None:
    read = declaration_of({"name": "x", "effect": "read"})
    fetch = declaration_of({"name": "x", "effect": "read", "network": True})
    write = declaration_of({"name": "x", "effect": "write"})
    none = declaration_of({"name": "x", "effect": "none", "network": True})
    assert [one.is_checked for one in (read, fetch, write, none)] == [False, True, True, False]
    assert [one.leaves for one in (read, fetch, write)] == [False, True, False]
