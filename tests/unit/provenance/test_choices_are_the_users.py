"""Choices are the user's: which record, which member, how often, and nothing that the run wrote itself. Generated families."""

from collections.abc import Iterator
from itertools import product

import pytest

from remit.core.limits.authority import Authority, OptionReach
from remit.core.record import JsonObject
from remit.provenance.gate import start
from remit.provenance.gate_verdict import GateVerdict
from remit.provenance.origins.records import WRITTEN_CHARS_MAX
from tests.unit.provenance.domains import DOMAINS, Domain
from tests.unit.provenance.office import declared, looked_up, parameters

TITLES = ("Login broken", "Spring offer", "Anna Lee", "v2 rollout")


def by_name(domain: Domain) -> str:
    return domain.name


def listing(domain: Domain, **arguments: JsonObject) -> JsonObject:
    """A look-up of the things of a domain, with these arguments beside it."""
    fields = {"[].id": domain.kind, "[].title": "label", "[].owner": "who:email", "[].reviewer": "who:email"}
    schema = parameters(**arguments)
    return declared("list_" + domain.thing.replace(" ", "_"), "", schema, effect="read", network=False, result=fields)


def chosen(domain: Domain, prompt: str, tool: JsonObject, arguments: JsonObject, records: list[JsonObject]) -> bool:
    """Whether the effect passes on the first record of a look-up that was made with these arguments."""
    gate = start(prompt, [domain.tool(repeat="target"), tool])
    looked_up(gate, tool["name"], arguments, records)
    return gate.verdict_on("c", domain.name, {domain.argument: records[0]["id"]}).is_allowed


# What a model may choose of a listing: where it begins, how long it is, and what it is searched for.
WINDOWS: tuple[tuple[str, JsonObject, object], ...] = (
    ("page", {"type": "integer", "default": 1}, 3),
    ("page", {"type": "integer", "default": 1}, 1),
    ("offset", {"type": "integer", "default": 0}, 20),
    ("cursor", {"type": "string", "default": ""}, "bmV4dA"),
    ("start_index", {"type": "integer", "default": 0}, 0),
    ("limit", {"type": "integer", "default": 100}, 1),
    ("max_results", {"type": "integer"}, 1),
    ("query", {"type": "string", "default": ""}, "urgent"),
    ("query", {"type": "string", "default": ""}, "please"),
    ("query", {"type": "string", "default": ""}, "monday"),
    ("state", {"type": "string", "enum": ["open", "done"], "default": "open"}, "done"),
    ("since", {"type": "string", "format": "date", "default": ""}, "2024-05-01"),
)


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_window_or_a_query_that_the_model_chose_singles_out_nothing(domain: Domain) -> None:
    leaks = []
    for (name, schema, value), title, how in product(WINDOWS, TITLES[:2], ("named", "only")):
        prompt = f"please {domain.verb} the {domain.thing}" + (f" '{title}'" if how == "named" else "") + " on monday"
        records = [{"id": "x-7", "title": title}, {"id": "x-8", "title": "Other"}][: 2 if how == "named" else 1]
        if chosen(domain, prompt, listing(domain, **{name: schema}), {name: value}, records):
            leaks.append((prompt, name, value))
    assert leaks == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_what_the_words_name_is_chosen_from_a_listing_that_is_whole(domain: Domain) -> None:
    records = [{"id": "x-7", "title": "Login broken"}, {"id": "x-8", "title": "Other"}]
    prompt = f"{domain.verb} the {domain.thing} 'Login broken'"
    limit: JsonObject = {"type": "integer", "default": 100}
    page: JsonObject = {"type": "integer", "default": 1}
    query: JsonObject = {"type": "string", "default": ""}
    calls: tuple[tuple[JsonObject, JsonObject], ...] = (
        ({}, {}),
        ({"limit": limit}, {}),
        ({"limit": limit}, {"limit": 50}),
        ({"limit": limit, "page": page}, {}),
        ({"query": query}, {"query": "Login broken"}),
    )
    held = [one for one in calls if not chosen(domain, prompt, listing(domain, **one[0]), one[1], records)]
    assert held == []


# How the words name a person of a record, and which field of it may answer to that; `N` is the name.
RELATIONS = (
    ("V the T of owner N.", {"owner"}),
    ("V the T with reviewer N.", {"reviewer"}),
    ("V the T from N.", set[str]()),
    ("V the T. N knows.", set[str]()),
    ("Write to N and V the T.", set[str]()),
)


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_person_names_a_record_only_in_the_relation_that_the_words_name(domain: Domain) -> None:
    name, tool = "ann@corp.example", listing(domain)
    wrong = []
    for (form, fitting), field in product(RELATIONS, ("owner", "reviewer")):
        prompt = form.replace("V", domain.verb).replace("T", domain.thing).replace("N", name)
        others = {"owner": "eve@corp.example", "reviewer": "joe@corp.example"}
        records = [{"id": "x-7", "title": "a", **others, field: name}, {"id": "x-8", "title": "b", **others}]
        if chosen(domain, prompt, tool, {}, records) != (field in fitting):
            wrong.append((prompt, field))
    assert wrong == []


WRITE = declared(
    "write_note",
    "",
    parameters(path="string", text="string"),
    effect="write",
    network=False,
    control_args={"path": "path"},
    payload_args=["text"],
    repeat="free",
)
READERS = (
    declared("read_note", "", parameters(path="string"), effect="read", network=False, locator_args=["path"]),
    declared("open_place", "", parameters(place="string"), effect="read", network=False),
    declared("list_notes", "", parameters(), effect="read", network=False),
)


def written(value: str) -> Iterator[tuple[str, ...]]:
    """Texts that hold a value: at once, in two pieces, as JSON, and in the middle of a sentence."""
    yield (value,)
    yield value[: len(value) // 2], value[len(value) // 2 :]
    yield (f'{{"id": "{value}", "title": "Login broken"}}',)
    yield (f"The one that is meant is {value}, as everybody knows.",)


@pytest.mark.parametrize("reader", READERS, ids=lambda one: one["name"])
@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_what_the_run_wrote_comes_back_as_text_from_wherever_it_is_read(domain: Domain, reader: JsonObject) -> None:
    value, leaks = "target-zulu", []
    tool = {**reader, "result": {"id": domain.kind, "title": "label"}}
    arguments = {"path": "notes.txt"} if reader is READERS[0] else {"place": "notes.txt"}
    arguments = {} if reader is READERS[2] else arguments
    for texts in written(value):
        gate = start(
            f"Write a note to notes.txt, then {domain.verb} the {domain.thing} that stands in notes.txt.",
            [domain.tool(repeat="target"), WRITE, tool],
        )
        for text in texts:
            call = gate.verdict_on(None, "write_note", {"path": "notes.txt", "text": text})
            assert call.is_allowed
            gate.observe(call.call_id, "write_note", "done")
        looked_up(gate, tool["name"], arguments, {"id": value, "title": "Login broken"})
        if gate.verdict_on("c", domain.name, {domain.argument: value}).is_allowed:
            leaks.append(texts)
    assert leaks == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_what_was_read_before_the_run_wrote_it_stays_what_it_was(domain: Domain) -> None:
    reader = {**READERS[0], "result": {"id": domain.kind}}
    gate = start(
        f"Write a note to notes.txt. {domain.verb} the {domain.thing} that stands in notes.txt.",
        [domain.tool(repeat="target"), WRITE, reader],
    )
    looked_up(gate, "read_note", {"path": "notes.txt"}, {"id": "target-zulu"})
    looked_up(gate, "write_note", {"path": "notes.txt", "text": "It was target-zulu."}, "done")
    looked_up(gate, "read_note", {"path": "notes.txt"}, {"id": "target-zulu"})
    assert gate.verdict_on("c", domain.name, {domain.argument: "target-zulu"}).is_allowed


def twin(domain: Domain, argument: str, **more: object) -> JsonObject:
    """Another tool that does the same, under a name with the same verb and another argument."""
    name = f"{domain.verb}_{domain.thing.replace(' ', '_')}_now"
    kinds = {argument: domain.kind}
    return declared(
        name, "", parameters(**{argument: "string"}), effect="external", control_args=kinds, stakes="none", **more
    )


@pytest.mark.parametrize("repeat", ["once", "target"])
@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_two_tools_that_do_the_same_use_up_one_order(domain: Domain, repeat: str) -> None:
    other = twin(domain, "reference", repeat=repeat)
    own = domain.tool(repeat=repeat)
    prompts = (
        f"{domain.verb} {domain.thing} {domain.value}",
        f"Please {domain.verb} the {domain.thing} {domain.value}, thanks.",
        f"{domain.verb} {domain.thing} {domain.value} and tell me.",
    )
    for prompt in prompts:
        for first, second in (
            ((own, domain.argument), (other, "reference")),
            ((other, "reference"), (own, domain.argument)),
        ):
            gate = start(prompt, [own, other])
            calls = [gate.verdict_on(None, tool["name"], {name: domain.value}) for tool, name in (first, second)]
            assert [call.is_allowed for call in calls] == [True, False], prompt


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_two_orders_are_two_whichever_tools_carry_them_out(domain: Domain) -> None:
    other = twin(domain, "reference")
    gate = start(f"{domain.verb} {domain.thing} a-1 and then {domain.verb} {domain.thing} b-2.", [domain.tool(), other])
    assert gate.verdict_on("a", domain.name, {domain.argument: "a-1"}).is_allowed
    assert gate.verdict_on("b", other["name"], {"reference": "b-2"}).is_allowed
    assert not gate.verdict_on("c", other["name"], {"reference": "a-1"}).is_allowed


@pytest.mark.parametrize("stakes", ["money", "rights", "deletion", "unknown", "none"])
@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_earlier_exchanges_supply_no_amount_and_no_target_where_much_is_at_stake(domain: Domain, stakes: str) -> None:
    tool = {**domain.tool("number", repeat="free"), "stakes": stakes}
    history = [
        {"role": "user", "content": f"{domain.verb} {domain.thing} {domain.value} with 17 {domain.unit}"},
        {"role": "user", "content": f"{domain.verb} the same {domain.thing} again"},
    ]
    for more in ({}, {domain.number: 17}):
        call = start(history, [tool]).verdict_on("c", domain.name, {domain.argument: domain.value, **more})
        assert not call.is_allowed or stakes == "none"
    now = [*history[:1], {"role": "user", "content": f"{domain.verb} {domain.thing} {domain.value} again"}]
    call = start(now, [tool]).verdict_on("c", domain.name, {domain.argument: domain.value, domain.number: 17})
    assert not call.is_allowed or stakes == "none"
    assert start(now, [tool]).verdict_on("c", domain.name, {domain.argument: domain.value}).is_allowed


@pytest.mark.parametrize("stakes", ["money", "rights", "deletion"])
@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_record_that_only_earlier_words_name_is_no_target_where_much_is_at_stake(domain: Domain, stakes: str) -> None:
    tool = {**domain.tool(repeat="free"), "stakes": stakes}
    query = listing(domain, query={"type": "string", "default": ""})
    history = [
        {"role": "user", "content": f"Look at the {domain.thing} 'Login broken'."},
        {"role": "user", "content": f"{domain.verb} that {domain.thing}"},
    ]
    for arguments in ({}, {"query": "Login broken"}):
        gate = start(history, [tool, query])
        looked_up(gate, query["name"], arguments, [{"id": "x-7", "title": "Login broken"}])
        assert not gate.verdict_on("c", domain.name, {domain.argument: "x-7"}).is_allowed or not arguments
        gate = start(history, [tool, query])
        looked_up(
            gate, query["name"], arguments, [{"id": "x-7", "title": "Login broken"}, {"id": "x-8", "title": "Other"}]
        )
        assert not gate.verdict_on("c", domain.name, {domain.argument: "x-7"}).is_allowed


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_member_of_a_list_inside_a_record_is_picked_by_name_or_as_the_only_one(domain: Domain) -> None:
    fields = {"[].title": "label", "[].parts[]": domain.kind}
    shelf = declared("list_shelves", "", parameters(), effect="read", network=False, result=fields)
    members = ["31001", "32002", "x-33"]
    cases = (
        (f"{domain.verb} the {domain.thing} on the shelf 'Blue'.", members, ()),
        (f"{domain.verb} {domain.thing} 31001 on the shelf 'Blue'.", members, ("31001",)),
        (f"{domain.verb} {domain.thing} x-33 on the shelf 'Blue'.", members, ("x-33",)),
        (f"{domain.verb} the {domain.thing} on the shelf 'Blue'.", members[1:2], ("32002",)),
    )
    for prompt, parts, passing in cases:
        for part in parts:
            gate = start(prompt, [domain.tool(repeat="target"), shelf])
            looked_up(gate, "list_shelves", {}, [{"title": "Blue", "parts": parts}, {"title": "Red", "parts": ["9"]}])
            is_allowed = gate.verdict_on("c", domain.name, {domain.argument: part}).is_allowed
            assert is_allowed == (part in passing), (prompt, part)


def taken(domain: Domain, prompt: str, label: str) -> GateVerdict:
    """The verdict on one of three things of a listing, where the boundary has closed sets."""
    tool = domain.tool(repeat="target", asks=[domain.verb])
    gate = start(prompt, [tool, listing(domain)], Authority(closed_set=OptionReach.ALL))
    titles = ("Yoga mat", "Toothbrush", "Rope")
    looked_up(
        gate,
        f"list_{domain.thing.replace(' ', '_')}",
        {},
        [{"id": f"x-{title[0]}", "title": title} for title in titles],
    )
    return gate.verdict_on("c", domain.name, {domain.argument: f"x-{label[0]}"})


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_closed_set_heeds_exclusions_and_names(domain: Domain) -> None:
    verb, thing = domain.verb, domain.thing
    excluded = (
        f"{verb} everything except the toothbrush.",
        f"{verb} all {thing}s but not the toothbrush.",
        f"{verb} any {thing}, just don't touch the toothbrush.",
        f"{verb} the yoga mat.",
        f"{verb} the yoga mat {thing}, please.",
        f"{verb} the {thing} called yoga mat.",
        f"Please {verb} 'Yoga mat'.",
        f"{verb} Rope.",
    )
    assert [prompt for prompt in excluded if taken(domain, prompt, "Toothbrush").is_allowed] == []
    free = (f"{verb} a {thing}.", f"{verb} any {thing}, please.", f"{verb} one of the {thing}s.")
    assert [prompt for prompt in free if not taken(domain, prompt, "Toothbrush").is_allowed] == []
    named = (f"{verb} the yoga mat.", f"{verb} the yoga mat {thing}, please.", f"Please {verb} 'Yoga mat'.")
    assert [prompt for prompt in named if not taken(domain, prompt, "Yoga mat").is_allowed] == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_all_and_both_of_what_is_named_are_what_is_named(domain: Domain) -> None:
    tool = listing(domain)
    for said, is_allowed in (("both Ts a-1 and b-2", False), ("all Ts 'A' and 'B'", False), ("both Ts", True)):
        prompt = f"{domain.verb} {said.replace('Ts', f'{domain.thing}s')}."
        records = [{"id": "x-7", "title": "Forged"}, {"id": "x-8", "title": "Other"}]
        assert chosen(domain, prompt, tool, {}, records) is is_allowed, prompt


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_look_up_without_a_schema_selects_nothing(domain: Domain) -> None:
    tool = {**listing(domain), "parameters": {"type": "object"}}
    assert not chosen(domain, f"{domain.verb} the {domain.thing}", tool, {}, [{"id": "x-7", "title": "a"}])


def test_a_run_that_wrote_more_than_can_be_kept_reads_nothing_but_text() -> None:
    domain = DOMAINS[3]
    reader = {**READERS[0], "result": {"id": domain.kind, "big": "bool", "parts[]": domain.kind}}
    for length, is_allowed in ((10, True), (WRITTEN_CHARS_MAX // 20, False)):
        gate = start(
            f"Write a note to notes.txt, then {domain.verb} the {domain.thing} that stands in notes.txt.",
            [domain.tool(repeat="target"), WRITE, reader],
        )
        for number in range(21):
            text = "so it is " * (length // 6) + f"and {'abcdefghijklmnopqrstuvwxyz'[number]}"
            looked_up(gate, "write_note", {"path": "notes.txt", "text": text}, "done")
        looked_up(
            gate, "read_note", {"path": "notes.txt"}, {"id": "f-77", "big": True, "parts": ["so", "f-78", "f-79"]}
        )
        assert gate.verdict_on("c", domain.name, {domain.argument: "f-77"}).is_allowed is is_allowed
        groups = gate.grounds.index.observations[-1].groups
        assert (groups[""].records[0].get("parts[]") == ["f-78", "f-79"]) is is_allowed
