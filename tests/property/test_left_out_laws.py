"""What a call leaves out: over many trades, what the words give is given by the call, or a person is asked."""

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from remit.core.record import JsonObject
from remit.provenance.gate import start
from tests.unit.provenance.domains import DOMAINS, Domain
from tests.unit.provenance.office import declared, parameters

STAKES = ("none", "money", "rights", "deletion")
# What else an order may give: the argument that takes it, its kind, its schema, how the words say it (`O` is another thing
# of the trade), and the value.
SORTS: dict[str, tuple[str, str, JsonObject, str, Any]] = {
    "email": ("user", "email", {"type": "string"}, "for N@corp.example", "N@corp.example"),
    "handle": ("who", "who:user", {"type": "string"}, "for @N", "@N"),
    "id by its kind": ("key", "id:O", {"type": "string"}, "of O x-K", "x-K"),
    "id by its noun": ("O_id", "", {"type": "string"}, "of O x-K", "x-K"),
    "number by its kind": ("ref", "id:O", {"type": "integer"}, "of O K", 0),
    "date": ("before", "date", {"type": "string"}, "before 2026-01-#", "2026-01-#"),
    "date by its format": ("ending", "", {"type": "string", "format": "date"}, "until 2026-01-#", "2026-01-#"),
    "amount": ("amount", "amount:EUR", {"type": "number"}, "for K EUR", 0),
    "amount without a kind": ("amount", "", {"type": "number"}, "for K EUR", 0),
    "number with a unit": ("weight", "number:kg", {"type": "number"}, "with K kg", 0),
    "account": ("account", "iban", {"type": "string"}, "to DE89370400440532013000", "DE89370400440532013000"),
    "path": ("place", "path", {"type": "string"}, "in /srv/N/x-K", "/srv/N/x-K"),
    "quotation": ("title", "label", {"type": "string"}, "as 'Blue N K'", "Blue N K"),
    "list": ("members", "email", {"type": "array", "items": {"type": "string"}}, "for N@corp.example", ["N@corp.example"]),
    "switch": ("keep_log", "bool", {"type": "boolean"}, "with keep_log", True),
    "choice": ("mode", "enum", {"enum": ["amber", "violet"]}, "in violet mode", "violet"),
    "currency": ("currency", "enum", {"enum": ["CHF", "USD"]}, "for K USD", "USD"),
}  # fmt: skip
NAMES = st.sampled_from(["ann", "bob", "carla", "dev", "erin"])
# What an argument that is not given looks like in a call.
ABSENT = ("left out", "empty", "null", "default", "its default")


def filled(text: Any, domain: Domain, name: str, count: int) -> Any:
    if text == 0:
        return count
    if isinstance(text, list):
        return [filled(one, domain, name, count) for one in text]
    if not isinstance(text, str):
        return text
    for sign, told in (("O", domain.other_thing), ("K", str(count)), ("#", "17")):
        text = text.replace(f" {sign}", f" {told}").replace(f"-{sign}", f"-{told}").replace(f":{sign}", f":{told}")
    return text.replace("O_", f"{domain.other_thing}_").replace("N", name)


def played(domain: Domain, sort: str, stakes: str, absent: str, name: str, count: int) -> tuple[str, bool]:
    """A request that gives a value, and whether a call passes that gives it not (`absent`), or gives it."""
    argument, kind, schema, said, value = SORTS[sort]
    argument, kind = filled(argument, domain, name, count), filled(kind, domain, name, count)
    value = filled(value, domain, name, count)
    schema = dict(schema)
    if absent in ("default", "its default"):
        schema["default"] = {"number": 1, "integer": 1, "boolean": False, "array": []}.get(schema.get("type", ""), "*")
    call: JsonObject = {domain.argument: domain.value}
    if absent == "given":
        call[argument] = value
    elif absent != "left out" and absent != "default":
        call[argument] = {"empty": "", "null": None}.get(absent, schema.get("default"))
    made = parameters(**{domain.argument: {"type": "string"}, argument: schema})
    kinds = {domain.argument: domain.kind, **({argument: kind} if kind else {})}
    tool = declared(
        domain.name,
        "",
        {**made, "required": [domain.argument]},
        effect="external",
        control_args=kinds,
        stakes=stakes,
        repeat="target",
    )
    prompt = f"{domain.verb} {domain.thing} {domain.value} {filled(said, domain, name, count)}"
    return prompt, start(prompt, [tool]).verdict_on("c", domain.name, call).is_allowed


@pytest.mark.parametrize("sort", SORTS)
@given(name=NAMES, count=st.integers(21, 99), domain=st.sampled_from(DOMAINS), stakes=st.sampled_from(STAKES))
def test_a_value_that_the_words_give_is_not_left_out(
    sort: str, name: str, count: int, domain: Domain, stakes: str
) -> None:
    assume(str(count) != domain.value)  # What the words give twice is taken up by one argument that says it.
    passed = [played(domain, sort, stakes, absent, name, count) for absent in ABSENT]
    assert [prompt for prompt, is_allowed in passed if is_allowed] == []


# Where money moves, what is an amount is told by its place: those have their own laws.
@pytest.mark.parametrize("sort", SORTS)
@given(name=NAMES, count=st.integers(21, 99), domain=st.sampled_from(DOMAINS))
def test_a_call_that_takes_up_all_that_the_words_give_passes(sort: str, name: str, count: int, domain: Domain) -> None:
    if sort == "currency":
        return  # Its amount would be left over.
    prompt, is_allowed = played(domain, sort, "none", "given", name, count)
    assert is_allowed, prompt


@given(domain=st.sampled_from(DOMAINS), stakes=st.sampled_from(STAKES), sort=st.sampled_from(sorted(SORTS)))
def test_an_argument_that_the_words_do_not_speak_of_may_be_left_out(domain: Domain, stakes: str, sort: str) -> None:
    argument, kind, schema, _, _ = SORTS[sort]
    argument, kind = filled(argument, domain, "ann", 22), filled(kind, domain, "ann", 22)
    made = parameters(**{domain.argument: {"type": "string"}, argument: {**schema, "default": None}})
    kinds = {domain.argument: domain.kind, **({argument: kind} if kind else {})}
    more = {"effect": "external", "control_args": kinds, "stakes": stakes, "repeat": "target"}
    tool = declared(domain.name, "", made, **more)
    tell = declared("send_note", "", parameters(to="string"), effect="external", asks=["tell"])
    for form in (
        "{0} {1} {2}",
        "Please {0} the {1} {2}, thanks.",
        "can you {0} {1} {2}?",
        "{0} {1} {2} and tell Ann Lee.",
    ):
        prompt = form.format(domain.verb, domain.thing, domain.value)
        verdict = start(prompt, [tool, tell]).verdict_on("c", domain.name, {domain.argument: domain.value})
        assert verdict.is_allowed, (prompt, verdict.reasons)


@given(domain=st.sampled_from(DOMAINS), stakes=st.sampled_from(STAKES))
def test_a_list_is_for_as_many_calls_and_a_second_argument_of_the_kind_is_not_left_out(
    domain: Domain, stakes: str
) -> None:
    schema = parameters(**{domain.argument: {"type": "string"}, "after": {"type": "string", "default": ""}})
    kinds = {domain.argument: domain.kind}
    first, second = "x-31", "x-47"
    more = {"effect": "external", "stakes": stakes, "repeat": "target"}
    plain = declared(domain.name, "", schema, control_args=kinds, **more)
    paired = declared(domain.name, "", schema, control_args={**kinds, "after": domain.kind}, **more)
    for between in (" and ", f" and {domain.thing} "):
        prompt = f"{domain.verb} {domain.thing} {first}{between}{second}"
        calls = [{domain.argument: one} for one in (first, second)]
        gate = start(prompt, [plain])
        assert all(gate.verdict_on(None, domain.name, call).is_allowed for call in calls), prompt
        assert not start(prompt, [paired]).verdict_on("c", domain.name, calls[0]).is_allowed
    prompt = f"{domain.verb} {domain.thing} {first} after {domain.thing} {second}"
    assert not start(prompt, [paired]).verdict_on("c", domain.name, {domain.argument: first}).is_allowed


@given(domain=st.sampled_from(DOMAINS), stakes=st.sampled_from(STAKES[1:]))
def test_things_that_are_only_described_are_not_all_of_them(domain: Domain, stakes: str) -> None:
    other = f"{domain.other_thing}_id"
    schema = parameters(**{other: "string", "owner": {"type": "string", "default": ""}})
    kinds = {other: f"id:{domain.other_thing}", "owner": "who:user"}
    tool = declared(domain.name, "", schema, effect="external", control_args=kinds, stakes=stakes)
    last = domain.thing.split()[-1]
    for said, is_allowed in ((f"the stale {last}s", False), (f"my {last}s", False), (f"all {last}s", True)):
        prompt = f"{domain.verb} {said} of {domain.other_thing} x-31"
        verdict = start(prompt, [tool]).verdict_on("c", domain.name, {other: "x-31"})
        assert verdict.is_allowed is is_allowed, prompt
