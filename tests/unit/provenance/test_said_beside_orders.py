"""What stands beside an order, in its sentence or next to it, is understood or asks: families with verbs that nobody knows."""

from random import Random

import pytest

from remit.provenance.gate import start
from remit.provenance.words.vocabulary import COURTESIES, SUBJECTS
from tests.unit.provenance.domains import DOMAINS, Domain, judged

LETTERS = Random("beside")


def made_up(ending: str = "") -> str:
    return "".join(LETTERS.choice("bdfgklmnprtv") + LETTERS.choice("aeiou") for _ in range(3)) + "k" + ending


# Clauses with a subject of their own: pronouns, people and things, with verbs that are no words.
CLAUSES = (
    *(f"{subject} {made_up()} {rest}".strip() for subject in sorted(SUBJECTS - {"it"}) for rest in ("", "that", "X-2")),
    *(f"{subject} must {made_up()}" for subject in ("you", "he", "we")),
)
FRAGMENTS = tuple(
    form.format(made_up(), made_up("ed"))
    for form in (
        "{0}.",
        "Only {0}.",
        "Bob {1} it.",
        "{0} the {1} one.",
        "I {1} this.",
        "Not {0}.",
        "That is {0}.",
        "{0}?",
    )
)


def by_name(domain: Domain) -> str:
    return domain.name


def ordered(domain: Domain) -> str:
    return f"{domain.verb.capitalize()} {domain.thing} {domain.value}"


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_clause_in_the_sentence_of_an_order_is_understood_or_asks(domain: Domain) -> None:
    order = ordered(domain)
    behind = [
        f"{order}{mark}{clause}{end}."
        for clause in CLAUSES
        for mark, end in ((", ", ""), (" - ", ""), ("; ", ""), (" (", ")"))
    ]
    before = [
        f"{clause.capitalize()}{mark}{order[0].lower()}{order[1:]}."
        for clause in CLAUSES
        for mark in (", ", " - ", "; ")
    ]
    assert [prompt for prompt in (*behind, *before) if judged(prompt, domain).is_allowed] == []
    assert judged(f"{order}.", domain).is_allowed


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_a_sentence_next_to_an_order_is_understood_or_asks(domain: Domain) -> None:
    order = ordered(domain)
    prompts = [
        prompt
        for said in FRAGMENTS
        for prompt in (f"{order}. {said}", f"{said[0].upper()}{said[1:]} {order}.", f"{order}.\n{said}")
    ]
    assert [prompt for prompt in prompts if judged(prompt, domain).is_allowed] == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_what_is_polite_and_what_forbids_a_name_holds_nothing_back(domain: Domain) -> None:
    order = ordered(domain)
    polite = [*sorted(COURTESIES), "thank you very much", "kind regards, Ann"]
    prompts = [f"{order}. {said[0].upper()}{said[1:]}." for said in polite]
    prompts += [f"{said[0].upper()}{said[1:]}! {order}." for said in polite if "regards" not in said]
    prompts += [f"{order}. Do not {domain.verb} {domain.thing} {domain.value}9."]
    assert [prompt for prompt in prompts if not judged(prompt, domain).is_allowed] == []


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_what_another_verb_governs_is_no_target(domain: Domain) -> None:
    other = f"{domain.value}9"
    said = domain.tool()
    verbs = [
        "tell",
        "notify",
        "inform",
        "thank",
        "show",
        "confirm",
        "report",
        "let",
        "summarise",
        *(made_up() for _ in range(5)),
    ]
    for verb in verbs:
        for joined in (f" and {verb} ", f", {verb} ", f", then {verb} "):
            prompt = f"{ordered(domain)}{joined}{other}."
            verdict = start(prompt, [said]).verdict_on("c", domain.name, {domain.argument: other})
            assert not verdict.is_allowed, prompt


RANGE = "Book stage SG-1 from 2026-12-01 to 2026-12-03."


@pytest.mark.parametrize(
    ("names", "given", "is_allowed"),
    [
        (("day",), {"day": "2026-12-03"}, False),
        (("day",), {"day": "2026-12-01"}, False),
        (("start", "end"), {"start": "2026-12-01", "end": "2026-12-03"}, True),
        (("from_day", "to_day"), {"from_day": "2026-12-01", "to_day": "2026-12-03"}, True),
    ],
)
def test_a_range_binds_both_its_ends_or_none(names: tuple[str, ...], given: dict[str, str], is_allowed: bool) -> None:
    properties = {name: {"type": "string"} for name in ("stage", *names)}
    tool = {
        "name": "book_stage",
        "effect": "external",
        "stakes": "none",
        "parameters": {"type": "object", "properties": properties},
        "control_args": {"stage": "id:stage", **dict.fromkeys(names, "date")},
    }
    verdict = start(RANGE, [tool]).verdict_on("c", "book_stage", {"stage": "SG-1", **given})
    assert verdict.is_allowed is is_allowed


@pytest.mark.parametrize("verb", ["save", "write", "export"])
@pytest.mark.parametrize("form", ["as F in the folder D", "as F in D", "in D as F", "to F in D", "to D/F"])
def test_what_is_made_is_called_as_it_is_said_in_the_folder_that_is_said(verb: str, form: str) -> None:
    said = form.replace("F", "deed.pdf").replace("D", "/vault/maps")
    tool = {
        "name": f"{verb}_scan",
        "effect": "write",
        "stakes": "none",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        "control_args": {"path": "path"},
    }
    gate = start(f"{verb.capitalize()} the scan {said}.", [tool])
    assert gate.verdict_on("c", f"{verb}_scan", {"path": "/vault/maps/deed.pdf"}).is_allowed


def test_what_a_thing_is_done_by_names_no_path() -> None:
    tool = {
        "name": "delete_scan",
        "effect": "write",
        "stakes": "none",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        "control_args": {"path": "path"},
    }
    gate = start("Delete the scan using rules.txt.", [tool])
    assert not gate.verdict_on("c", "delete_scan", {"path": "rules.txt"}).is_allowed


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_another_order_with_a_value_of_its_own_holds_nothing_back_unless_it_points_to_this_one(domain: Domain) -> None:
    order = ordered(domain)
    for verb in (made_up() for _ in range(5)):
        assert judged(f"{verb.capitalize()} X-29. Then {order[0].lower()}{order[1:]}.", domain).is_allowed
        for said in (f"{verb} it", f"{verb} X-29 instead", f"only {verb} X-29", f"{verb} X-29 first", f"{verb} Bob"):
            assert not judged(f"{said.capitalize()}. {order}.", domain).is_allowed, said


@pytest.mark.parametrize("domain", DOMAINS, ids=by_name)
def test_what_a_person_approved_uses_up_the_order_of_another_tool_with_its_verb(domain: Domain) -> None:
    twin = {**domain.tool(), "name": f"zap_{domain.thing.replace(' ', '_')}", "asks": [domain.verb]}
    given = {domain.argument: domain.value}
    gate = start(f"Please {domain.verb} the {made_up()} {domain.value}.", [domain.tool(), twin])
    assert not gate.verdict_on("a", domain.name, given).is_allowed
    gate.answer("a", True, "ada")
    assert gate.verdict_on("a", domain.name, given).is_allowed
    assert not gate.verdict_on("b", twin["name"], given).is_allowed
