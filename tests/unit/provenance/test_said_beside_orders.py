"""What stands beside an order, in its sentence or next to it, is understood or asks: families with verbs that nobody knows."""

from random import Random

import pytest

from remit.provenance.gate import start
from remit.provenance.words.clause_parts import SUBJECTS
from remit.provenance.words.vocabulary import COURTESIES
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
