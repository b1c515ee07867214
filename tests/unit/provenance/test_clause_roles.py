"""Where a value stands decides what it binds: folders and files, both ends of a range, days and counts."""

import pytest

from remit.core.record import JsonObject
from remit.provenance.gate import start
from tests.unit.provenance.domains import DOMAINS, Domain, judged
from tests.unit.provenance.office import looked_up

VERBS = ("delete", "shred", "wipe")
STAKES = ("none", "deletion")


def made(name: str, control: dict[str, str], stakes: str, **types: str) -> JsonObject:
    properties: JsonObject = {one: {"type": types.get(one, "string")} for one in control}
    parameters: JsonObject = {"type": "object", "properties": properties}
    asks = [name.partition("_")[0]]
    return {
        "name": name,
        "effect": "write",
        "stakes": stakes,
        "asks": asks,
        "parameters": parameters,
        "control_args": dict(control),
    }


def passes(prompt: str, tool: JsonObject, **given: str | int) -> bool:
    return start(prompt, [tool]).verdict_on("c", str(tool["name"]), given).is_allowed


@pytest.mark.parametrize("stakes", STAKES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_folder_that_another_order_governs_holds_no_file_of_this_one(verb: str, stakes: str) -> None:
    tool, big = made(f"{verb}_scan", {"path": "path"}, stakes), verb.capitalize()
    for other in ("archive", "back up", "show", "keep", "leave", "look in", "do not touch", "list"):
        for prompt in (
            f"{other.capitalize()} /home. {big} a.txt in /vault.",
            f"{other.capitalize()} /home, then {verb} a.txt in /vault.",
            f"{big} a.txt in /vault and {other} /home.",
            f"{big} a.txt in /vault. {other.capitalize()} /home.",
        ):
            assert not passes(prompt, tool, path="/home/a.txt"), prompt
    for middle in (" and ", ", ", "; ", f", then {verb} ", f". {big} "):
        for word in ("in", "from"):
            prompt = f"{big} a.txt {word} /vault{middle}b.txt {word} /home."
            assert not passes(prompt, tool, path="/home/a.txt"), prompt
            assert not passes(prompt, tool, path="/vault/b.txt"), prompt
    for path in ("a.txt", "/vault/maps", "/a.txt"):
        assert not passes(f"{big} a.txt in /vault/maps.", tool, path=path), path


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_and_the_folder_beside_it_are_one_path(verb: str) -> None:
    tool, big = made(f"{verb}_scan", {"path": "path"}, "none"), verb.capitalize()
    for prompt in (
        f"{big} a.txt in /vault.",
        f"{big} a.txt from /vault.",
        f"In /vault, {verb} a.txt.",
        f"{big} a.txt in /vault, please.",
        f"{big} the file a.txt in the folder /vault.",
        f"{big} a.txt from /vault and b.txt from /home.",
    ):
        assert passes(prompt, tool, path="/vault/a.txt"), prompt


@pytest.mark.parametrize("stakes", STAKES)
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("src", "dst"),
        ("source", "destination"),
        ("source", "target"),
        ("from", "to"),
        ("from_path", "to_path"),
        ("old_path", "new_path"),
    ],
)
def test_what_is_moved_goes_from_where_it_is_said_to_where_it_is_said(source: str, target: str, stakes: str) -> None:
    tool = made("move_file", {source: "path", target: "path"}, stakes)
    for prompt in ("Move x.txt from /a to /b.", "Move x.txt to /b from /a."):
        assert not passes(prompt, tool, **{source: "/b/x.txt", target: "/a/x.txt"}), prompt
        assert passes(prompt, tool, **{source: "/a/x.txt", target: "/b/x.txt"}), prompt
    nameless = made("move_file", {"one": "path", "other": "path"}, stakes)
    for one, other in (("/a/x.txt", "/b/x.txt"), ("/b/x.txt", "/a/x.txt")):
        assert not passes("Move x.txt from /a to /b.", nameless, one=one, other=other)


@pytest.mark.parametrize("stakes", STAKES)
@pytest.mark.parametrize(
    ("begin", "end", "is_told"),
    [
        ("start", "end", True),
        ("from", "to", True),
        ("start_date", "end_date", True),
        ("since", "until", True),
        ("check_in", "check_out", True),
        ("alpha", "omega", False),
    ],
)
@pytest.mark.parametrize(("first", "last"), [("2026-12-01", "2026-12-03"), ("10:00", "12:00")])
def test_the_ends_of_a_range_are_not_swapped(
    begin: str, end: str, is_told: bool, first: str, last: str, stakes: str
) -> None:
    kind = "time" if ":" in first else "date"
    tool = made("book_berth", {"berth": "id:berth", begin: kind, end: kind}, stakes)
    prompt = f"Book berth BR-1 from {first} to {last}."
    assert not passes(prompt, tool, berth="BR-1", **{begin: last, end: first})
    assert passes(prompt, tool, berth="BR-1", **{begin: first, end: last}) is is_told


@pytest.mark.parametrize("stakes", STAKES)
def test_a_day_is_led_in_plainly(stakes: str) -> None:
    tool = made("block_berth", {"berth": "id:berth", "day": "date"}, stakes)
    for lead in ("on ", "for ", "at ", ""):
        assert passes(f"Block BR-1 {lead}2026-12-03.", tool, berth="BR-1", day="2026-12-03"), lead
    leads = "until,before,after,by,since,through,from,the day after,a day before,as of,starting,ending,~,two days after,the week of,not before,2026-12-01 -"
    for lead in leads.split(","):
        for gap in (" ", "") if lead == "~" else (" ",):
            assert not passes(f"Block BR-1 {lead}{gap}2026-12-03.", tool, berth="BR-1", day="2026-12-03"), lead
    ending = made("block_berth", {"berth": "id:berth", "until": "date"}, stakes)
    assert passes("Block BR-1 until 2026-12-03.", ending, berth="BR-1", until="2026-12-03")


@pytest.mark.parametrize("kind", ["number", "number:row", "id:row", ""])
@pytest.mark.parametrize("stakes", STAKES)
def test_a_count_numbers_no_single_thing(stakes: str, kind: str) -> None:
    for thing in ("row", "bay", "entry", "box"):
        plural = {"entry": "entries", "box": "boxes"}.get(thing, f"{thing}s")
        named = kind.replace("row", thing)
        cut = made(f"cut_{thing}", {"table": "id:table", thing: named}, stakes, **{thing: "integer"})
        alone = made(f"cut_{thing}", {thing: named}, stakes, **{thing: "integer"})
        for lead in ("", "the first ", "any ", "every ", "about "):
            assert not passes(f"Cut {lead}3 {plural} of table TB-1.", cut, table="TB-1", **{thing: 3}), (lead, thing)
            assert not passes(f"Cut {lead}4 {plural}.", alone, **{thing: 4}), (lead, thing)
        if kind != f"number:{thing}" and "number" not in kind:
            assert passes(f"Cut {thing} 3 of table TB-1.", cut, table="TB-1", **{thing: 3})


@pytest.mark.parametrize("domain", DOMAINS, ids=lambda domain: domain.name)
def test_a_word_with_a_capital_beside_an_order_is_understood_or_asks(domain: Domain) -> None:
    order = f"{domain.verb.capitalize()} {domain.thing} {domain.value}"
    words = (
        "Drabon",
        "Drabon It",
        "Drabn't",
        "Not Yet",
        "Next Monday",
        "After Drabon",
        "Half-Way",
        "Drabon's Wish",
        "If Drabon",
    )
    signs = (" ({})", ", {}", " - {}", "; {}", ",{}", " \u2014 {}", " [{}]", " and {}")
    prompts = [f"{order}{sign.format(word)}." for word in words for sign in signs]
    assert [prompt for prompt in prompts if judged(prompt, domain).is_allowed] == []


@pytest.mark.parametrize("sign", [" ({})", ", {}", " - {}", "; {}"])
@pytest.mark.parametrize("word", ["Not Nuts", "not Nuts", "Spare Nuts", "Keep Nuts", "Second Heaviest", "Except Nuts"])
def test_what_is_ruled_out_with_a_capital_is_heeded(word: str, sign: str) -> None:
    burn = made("burn_crate", {"crate": "id:crate"}, "deletion")
    result = {"[].id": "id:crate", "[].name": "label", "[].weight": "number"}
    look: JsonObject = {"name": "list_crates", "effect": "read", "network": False, "result": result}
    gate = start(f"Burn the heaviest crate{sign.format(word)}.", [burn, look])
    crates = [{"id": "k1", "name": "Figs", "weight": 5}, {"id": "k2", "name": "Nuts", "weight": 9}]
    looked_up(gate, "list_crates", {}, crates)
    assert not gate.verdict_on("c", "burn_crate", {"crate": "k2"}).is_allowed


def test_a_list_of_names_goes_on_call_by_call() -> None:
    tool = made("invite_guest", {"guest": "label"}, "none")
    gate = start("Invite Ann, Bob and Carl.", [tool])
    assert [gate.verdict_on(name, "invite_guest", {"guest": name}).is_allowed for name in ("Ann", "Bob", "Carl")] == [
        True
    ] * 3
