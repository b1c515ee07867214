"""Leaves, handles, targets and the plan, each on its own."""

from typing import Any

import pytest

from remit.core.limits.tool_trust import Repeat
from remit.provenance.declarations import declaration_of
from remit.provenance.gate_verdict import Argument, Objection
from remit.provenance.origins.handles import as_handle, resolve
from remit.provenance.origins.labels import Group, Observation, OriginIndex, OriginPlace
from remit.provenance.repeated_effects import Uses, objection_to, targets_of
from remit.provenance.values.leaves import DEPTH_MAX, Leaves
from remit.provenance.words.asked_effects import MANY, Asked, plan_with
from remit.provenance.words.tool_words import ToolWords
from remit.provenance.words.user_words import words_of_user

NESTED = declaration_of(
    {
        "name": "book",
        "parameters": {
            "properties": {
                "legs": {"items": {"properties": {"day": {"format": "date"}, "seat": {}}}},
                "open": {"type": "object"},
                "note": True,
            },
            "required": ["legs"],
        },
        "control_args": {"legs[].seat": "id:seat", "x": "any"},
        "payload_args": ["note", "legs[].seat", "open.text"],
    }
)


def test_every_value_inside_an_argument_is_a_leaf_of_its_own() -> None:
    leaves = Leaves(NESTED).of(
        {"legs": [{"day": "2024-01-01", "seat": "4A", "bonus": 1}], "open": {"k": {"v": 1}}, "more": 1}
    )
    found = {(leaf.path, leaf.is_key): leaf for leaf in leaves}
    assert found["legs[0].day", False].kind == "date"
    assert (found["legs[0].seat", False].kind, found["legs[0].seat", False].is_payload) == ("id:seat", False)
    assert not found["legs[0].bonus", True].is_known
    assert found["open.k", True].is_known
    assert found["open.k.v", False].value == 1
    assert not found["more", False].is_known
    assert Leaves(NESTED).of({"open": {"text": "hi"}})[1].is_payload


def test_what_lies_too_deep_stays_one_leaf() -> None:
    deep: Any = 1
    for _ in range(DEPTH_MAX * 2):
        deep = [deep]
    assert isinstance(Leaves(declaration_of({"name": "x"})).of({"a": deep})[0].value, list)


@pytest.mark.parametrize(
    "origin",
    [
        OriginPlace(0, "[]", 1, "sender", "who:email"),
        OriginPlace(0, "items[]", 0, "id", "id:file"),
        OriginPlace(0, "", 0, "", "date"),
        OriginPlace(0, "*", 0, "price", "number"),
    ],
)
def test_a_handle_names_its_origin_exactly(origin: OriginPlace) -> None:
    index = OriginIndex()
    records = tuple({origin.field: f"value {n}"} for n in range(2))
    index.add(
        Observation(
            "c",
            "t",
            {"other[]": Group(({"x": 1},), {"x": "number"}), origin.group: Group(records, {origin.field: origin.kind})},
        )
    )
    resolved, used = resolve({"a": [{"b": as_handle(origin)}], "c": 1}, index)
    assert resolved == {"a": [{"b": f"value {origin.record}"}], "c": 1}
    assert used["a[0].b"] == origin


def test_a_handle_to_many_values_or_to_nothing_stays_a_text() -> None:
    index = OriginIndex()
    index.add(Observation("c", "t", {"[]": Group(({"to[]": ["a", "b"]}, {}), {"to[]": "who:user"})}))
    deep: Any = "$obs0.records[0].to"
    for _ in range(40):
        deep = [deep]
    for text in (
        "$obs0.records[0].to",
        "$obs0.records[1].to",
        "$obs0.records[5].to",
        "$obs1.records[0].to",
        "$obs",
        "$obs0.x.records[0].to",
    ):
        assert resolve({"a": text}, index) == ({"a": text}, {})
    assert resolve({"a": deep}, index)[1] == {}


def test_a_path_names_one_place() -> None:
    arguments = {"open": {"a.b": {"c[0]": 1}, "a": {"b": {"c": [2]}}, "d\\": {"e": 3}}, "open.a": 4}
    leaves = [leaf for leaf in Leaves(NESTED).of(arguments) if not leaf.is_key]
    assert [leaf.path for leaf in leaves] == [r"open.a\.b.c\[0\]", "open.a.b.c[0]", r"open.d\\.e", r"open\.a"]


def test_a_key_with_a_dot_is_no_declared_payload_and_stays_control() -> None:
    tool = declaration_of(
        {
            "name": "x",
            "parameters": {"properties": {"o": {"properties": {"a.b": {}, "c.d": {}}}}},
            "payload_args": ["o.a.b"],
            "control_args": {"o.c.d": "id:file"},
        }
    )
    one, other = Leaves(tool).of({"o": {"a.b": "x", "c.d": "y"}})
    assert not one.is_payload
    assert other.kind == "id:file"


def test_handles_are_noted_by_the_path_of_their_leaf() -> None:
    index = OriginIndex()
    index.add(Observation("c", "t", {"": Group(({"id": "7"},), {"id": "id:file"})}))
    resolved, used = resolve({"a": {"b.c": "$obs0.records[0].id", "b": {"c": "x"}}}, index)
    assert resolved == {"a": {"b.c": "7", "b": {"c": "x"}}}
    assert list(used) == [r"a.b\.c"]


def test_a_list_falls_on_each_of_its_members() -> None:
    arguments = [
        Argument("file", "7", "words", kind="id:file"),
        Argument("to[0]", "a", "words", kind="who:user"),
        Argument("to[1]", "b", "words", kind="who:user"),
        Argument("amount", 5, "words", kind="number"),
    ]
    assert targets_of(arguments) == ("file=7\nto=a", "file=7\nto=b")
    assert targets_of(arguments[3:]) == ("amount=5",)
    assert targets_of([Argument("a", None, "default")]) == ("",)
    assert targets_of(
        [Argument("text", "x" * 200, "words"), Argument("n", 1.5, "words"), Argument("who", "b", "words")]
    ) == ("who=b",)


@pytest.mark.parametrize(
    ("repeat", "by", "value", "count", "code"),
    [
        ("once", "words", "Bob", 1, None),
        ("once", "words", "plain", 1, Objection.QUOTA),
        ("once", "field:only", "Bob", 1, Objection.QUOTA),
        ("once", "field:only", "Bob", 2, None),
        ("target", "field:only", "Bob", 1, Objection.QUOTA),
        ("target", "words", "Ann", MANY, Objection.REPEAT),
        ("free", "words", "Ann", 1, None),
    ],
)
def test_a_second_target_passes_as_far_as_it_was_declared_and_named(
    repeat: str, by: str, value: str, count: int, code: Objection | None
) -> None:
    declaration = declaration_of({"name": "tell", "repeat": repeat})
    assert declaration.repeat is Repeat(repeat)
    uses = Uses()
    uses.add(targets_of([Argument("who", "Ann", "words", kind="who:user")]))
    arguments = (Argument("who", value, by, kind="who:user"),)
    assert (
        objection_to(arguments, declaration, uses, Asked(count), words_of_user(["Tell Ann and Bob a plain thing."]))
        is code
    )


TOOLS = {
    name: declaration_of({"name": name, "description": text, "effect": effect})
    for name, text, effect in [
        ("send_mail", "Sends a mail.", "external"),
        ("delete_file", "Deletes a file. Returns nothing.", "write"),
        ("add_reminder", "This tool stores a reminder.", "write"),
        ("read_file", "Reads a file.", "read"),
    ]
}


@pytest.mark.parametrize(
    ("prompt", "tool", "count"),
    [
        ("Send it.", "send_mail", 1),
        ("Could you please send it and send that?", "send_mail", 2),
        ("Mail it to Bob.", "send_mail", 0),
        ("Read my mail.", "send_mail", 0),
        ("I want it deleted.", "delete_file", 0),
        ("The deleted file is back.", "delete_file", 0),
        ("Show the delete.", "delete_file", 0),
        ("Never delete it.", "delete_file", 0),
        ("Delete both.", "delete_file", 2),
        ("Delete each of them.", "delete_file", MANY),
        ("For each of them, delete it.", "delete_file", MANY),
        ("Read all files and delete this.", "delete_file", 1),
        ("Delete three files.", "delete_file", 3),
        ("Send it 2 times.", "send_mail", 2),
        ("Send two mails.", "send_mail", 2),
        ("Remind me.", "add_reminder", 0),
        ("Store it.", "add_reminder", 0),
        ("", "send_mail", 0),
    ],
)
def test_the_words_say_which_effects_are_asked_for_and_how_often(prompt: str, tool: str, count: int) -> None:
    assert plan_with(words_of_user([prompt], verbs=ToolWords(TOOLS).known), ToolWords(TOOLS)).of(tool).count == count


def test_a_tool_is_asked_for_by_its_own_words() -> None:
    words = ToolWords(TOOLS)
    assert words.actions["send_mail"] == {"send"}
    assert words.actions["add_reminder"] == {"ad"}
    rid = {"drop": declaration_of({"name": "drop", "asks": ["get rid of", "in the bin"]})}
    for prompt in ("Get rid of it.", "Drop it.", "Put it in the bin.", "Please get rid of it."):
        assert plan_with(words_of_user([prompt]), ToolWords(rid)).of("drop").count == 1
    for prompt in ("Get a list of it.", "Drops fell.", "Bob puts it in the bin."):
        assert plan_with(words_of_user([prompt]), ToolWords(rid)).of("drop").count == 0
    assert plan_with(words_of_user(["Send it."]), ToolWords(TOOLS)).of("unknown").count == 0
