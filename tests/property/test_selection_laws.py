"""Which record is meant: over many trades, what a model chose singles out nothing, and a person is named in one relation."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.limits.authority import Authority, OptionReach
from remit.core.record import JsonObject
from remit.provenance.gate import start
from tests.unit.provenance.domains import DOMAINS, Domain
from tests.unit.provenance.office import declared, looked_up

TITLES = ("Blue lamp", "Harbour rent", "Knee check", "Old plan")
# How the beginning of a listing is called: words for it, and what they stand beside.
PLACES = ("page", "offset", "cursor", "skip", "start", "index", "pg", "p", "page_token")
BESIDE = ("", "number", "num", "no", "from", "current", "result", "at")
SPELLINGS = ("snake", "camel", "kebab")


def spelled(words: list[str], how: str) -> str:
    if how == "camel":
        return words[0] + "".join(word.capitalize() for word in words[1:])
    return ("_" if how == "snake" else "-").join(words)


def listing(domain: Domain, fields: JsonObject, **schemas: Any) -> JsonObject:
    made = {"type": "object", "properties": schemas, "required": []}
    name = f"list_{domain.thing.replace(' ', '_')}s"
    result = {"[].id": domain.kind, **fields}
    return declared(name, "", made, effect="read", network=False, reads="public", result=result)


def passes(
    prompt: str, domain: Domain, look: JsonObject, given_to: JsonObject, records: list[Any], number: int, **more: Any
) -> bool:
    """Whether the effect may fall on a record, by number, after the look-up."""
    tool = domain.tool(repeat="target", asks=[domain.verb])
    gate = start(prompt, [tool, look], more.get("authority"))
    looked_up(gate, look["name"], given_to, records)
    return gate.verdict_on("c", domain.name, {domain.argument: records[number]["id"]}).is_allowed


@pytest.mark.parametrize("place", PLACES)
@given(
    beside=st.sampled_from(BESIDE),
    is_first=st.booleans(),
    how=st.sampled_from(SPELLINGS),
    domain=st.sampled_from(DOMAINS),
    said=st.sampled_from(["", " for 3 people", ", I asked 3 times", ", see version 3", ", and that is 3"]),
)
def test_a_place_in_a_listing_that_the_model_chose_singles_out_nothing(
    place: str, beside: str, is_first: bool, how: str, domain: Domain, said: str
) -> None:
    words = [one for one in ((beside, *place.split("_")) if is_first else (*place.split("_"), beside)) if one]
    name = spelled(words, how)
    more: JsonObject
    for more in ({}, {"limit": {"type": "integer", "default": 20}}):
        look = listing(domain, {"[].title": "label"}, **{name: {"type": "integer"}, **more})
        forged = [{"id": "x-666", "title": TITLES[0]}]
        prompt = f"{domain.verb} the {domain.thing} '{TITLES[0]}'{said}"
        assert not passes(prompt, domain, look, {name: 3}, forged, 0), (name, prompt)


@given(
    name=st.sampled_from(["number", "ticket_number", "version", "depth", "level", "sheet", "seq"]),
    domain=st.sampled_from(DOMAINS),
)
def test_a_number_that_is_no_limit_singles_out_nothing(name: str, domain: Domain) -> None:
    look = listing(domain, {"[].title": "label"}, **{name: {"type": "integer"}})
    forged = [{"id": "x-666", "title": TITLES[0]}]
    assert not passes(f"{domain.verb} the {domain.thing} '{TITLES[0]}'", domain, look, {name: 3}, forged, 0)


@given(
    name=st.sampled_from(["limit", "max_results", "maxItems", "page_size", "perPage", "num_results", "top_n", "count"]),
    domain=st.sampled_from(DOMAINS),
    count=st.integers(5, 50),
)
def test_a_limit_that_was_not_reached_cuts_nothing(name: str, domain: Domain, count: int) -> None:
    look = listing(domain, {"[].title": "label"}, **{name: {"type": "integer"}})
    records = [{"id": f"x-{place}", "title": title} for place, title in enumerate(TITLES)]
    prompt = f"{domain.verb} the {domain.thing} '{TITLES[1]}'"
    assert passes(prompt, domain, look, {name: count}, records, 1)
    assert not passes(prompt, domain, look, {name: len(records)}, records, 1)


# A participle with its preposition, and what the fields are called that it may name.
RELATIONS = {
    "owned by": ("owner", "owned_by"),
    "approved by": ("approver", "approved_by"),
    "assigned to": ("assignee", "assigned_to"),
    "assigned by": ("assigner", "assigned_by"),
    "blocked by": ("blocker", "blocked_by"),
    "reviewed by": ("reviewer", "reviewed_by"),
    "created by": ("creator", "created_by"),
    "paid by": ("payer", "paid_by"),
    "edited by": ("editor", "editedBy"),
    "watched by": ("watcher", "watched_by"),
}
ANN, BOB = "ann@corp.example", "bob@corp.example"


@given(
    domain=st.sampled_from(DOMAINS),
    said=st.sampled_from(sorted(RELATIONS)),
    field=st.sampled_from([field for fields in RELATIONS.values() for field in fields]),
    is_author=st.booleans(),
)
def test_a_relation_names_the_field_that_is_called_by_it_and_never_another(
    domain: Domain, said: str, field: str, is_author: bool
) -> None:
    fields = {f"[].{field}": "who:email", "[].sender": "who:email"}
    look = listing(domain, fields) | {"author": f"[].{'sender' if is_author else field}"}
    prompt = f"{domain.verb} the {domain.thing} {said} {ANN}"
    held = [{"id": "x-1", field: ANN, "sender": BOB}, {"id": "x-2", field: BOB, "sender": BOB}]
    assert passes(prompt, domain, look, {}, held, 0) is (field in RELATIONS[said]), (prompt, field)
    sent = [{"id": "x-1", field: BOB, "sender": ANN}, {"id": "x-2", field: BOB, "sender": BOB}]
    assert not passes(prompt, domain, look, {}, sent, 0), prompt


@given(domain=st.sampled_from(DOMAINS), said=st.sampled_from(sorted(RELATIONS)))
def test_a_relation_that_no_field_is_called_by_names_nobody(domain: Domain, said: str) -> None:
    for fields, author in (({"[].sender": "who:email"}, "[].sender"), ({"[].contact": "who:email"}, "")):
        look = listing(domain, fields) | {"author": author}
        field = next(iter(fields)).removeprefix("[].")
        records = [{"id": "x-1", field: ANN}, {"id": "x-2", field: BOB}]
        assert not passes(f"{domain.verb} the {domain.thing} {said} {ANN}", domain, look, {}, records, 0)
        assert passes(f"{domain.verb} the {domain.thing} from {ANN}", domain, look, {}, records, 0)


# A list inside a record: its name, and how the words say it.
LISTS = {"related": "related", "linked": "linked", "duplicates": "duplicate", "children": "children"}
EVERYTHING = {"authority": Authority(closed_set=OptionReach.ALL)}


@given(
    domain=st.sampled_from(DOMAINS),
    field=st.sampled_from(sorted(LISTS)),
    count=st.integers(1, 3),
    is_nested=st.booleans(),
    is_closed=st.booleans(),
    is_named=st.booleans(),
)
def test_a_member_of_a_list_is_not_the_record_that_holds_it(
    domain: Domain, field: str, count: int, is_nested: bool, is_closed: bool, is_named: bool
) -> None:
    members = [f"x-9{place}" for place in range(count)]
    held = [{"id": one} for one in members] if is_nested else members
    look = listing(domain, {"[].title": "label", f"[].{field}[].id" if is_nested else f"[].{field}[]": domain.kind})
    records = [{"id": "x-31", "title": TITLES[0], field: held}, {"id": "x-47", "title": TITLES[1], field: []}]
    more: dict[str, Any] = EVERYTHING if is_closed else {}
    said = f"'{TITLES[0]}'" if is_named else "x-31"
    prompt = f"{domain.verb} {domain.thing} {said}"
    assert passes(prompt, domain, look, {}, records, 0, **more)
    assert not passes(prompt, domain, look, {}, records, 1, **more), prompt
    gate = start(prompt, [domain.tool(repeat="target"), look], **more)
    looked_up(gate, look["name"], {}, records)
    for member in members:
        assert not gate.verdict_on(None, domain.name, {domain.argument: member}).is_allowed, (prompt, member)


@given(
    domain=st.sampled_from(DOMAINS), field=st.sampled_from(["parent", "successor", "origin_id"]), is_named=st.booleans()
)
def test_another_thing_that_a_record_points_to_is_meant_only_where_the_words_say_so(
    domain: Domain, field: str, is_named: bool
) -> None:
    look = listing(domain, {"[].title": "label", f"[].{field}": domain.kind})
    records = [{"id": "x-31", "title": TITLES[0], field: "x-90"}, {"id": "x-47", "title": TITLES[1], field: "x-91"}]
    said = f"'{TITLES[0]}'" if is_named else "x-31"
    for form, is_allowed in (("{0} the {1} {2}", False), ("{0} the {3} of {1} {2}", True)):
        noun = field.removesuffix("_id")
        gate = start(form.format(domain.verb, domain.thing, said, noun), [domain.tool(asks=[domain.verb]), look])
        looked_up(gate, look["name"], {}, records)
        call = {domain.argument: "x-90"}
        bound = gate.verdict_on("c", domain.name, call).args[0].code is None
        assert bound is is_allowed


@given(domain=st.sampled_from(DOMAINS), spared=st.integers(0, 3), is_lower=st.booleans())
def test_of_a_closed_set_only_what_the_words_rule_out_is_left(domain: Domain, spared: int, is_lower: bool) -> None:
    look = listing(domain, {"[].title": "label"})
    records = [{"id": f"x-{place}", "title": title} for place, title in enumerate(TITLES)]
    name = TITLES[spared].lower() if is_lower else TITLES[spared]
    for form in ("{0} everything except the {2}", "{0} all {1}s except the {2}", "{0} all {1}s without {2}"):
        prompt = form.format(domain.verb, domain.thing, name)
        found = [place for place in range(4) if passes(prompt, domain, look, {}, records, place, **EVERYTHING)]
        assert found == [place for place in range(4) if place != spared], prompt
    for unknown in ("the green one", "Kim", f"{name} and the green one"):
        prompt = f"{domain.verb} all {domain.thing}s except {unknown}"
        assert not any(passes(prompt, domain, look, {}, records, place, **EVERYTHING) for place in range(4)), prompt


@given(domain=st.sampled_from(DOMAINS), number=st.integers(31, 90))
def test_of_a_closed_set_only_what_the_words_number_is_meant(domain: Domain, number: int) -> None:
    look = listing(domain, {"[].title": "label"})
    records = [{"id": number, "title": TITLES[0]}, {"id": number + 1, "title": TITLES[1]}]
    last = domain.thing.split()[-1]
    for said in (f"{domain.thing} {number}", f"the {domain.thing} #{number}", f"{last} {number}", f"{number}"):
        assert not passes(f"{domain.verb} {said}", domain, look, {}, records, 1, **EVERYTHING), said
