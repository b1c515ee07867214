"""Laws of placed words: a phrase, a sentence or a clause around an order asks unless all of it is placed. Trades are made up."""

from itertools import product

import pytest

from remit.core.record import JsonObject
from remit.provenance.gate import start
from tests.property.test_asking_laws import NUMBER, TRADES, passes, passing, tool
from tests.unit.provenance.office import declared, looked_up, parameters

# Words that no order knows, of no sort in particular.
UNKNOWN = ("blorish", "nearly", "zero", "fake", "pretend", "forbidden", "former", "hardly", "up-to-date", "later")
LIST = ("1. {O}.\n2. {V} {n} {b}.", "- {O}\n- {V} {n} {b}")


def measured(verb: str, thing: str, unit: str, stakes: str) -> JsonObject:
    """A tool that takes a thing and a measure."""
    kinds: JsonObject = {thing: f"id:{thing}", unit: f"number:{unit.rstrip('s')}"}
    return tool(f"{verb}_{thing}", kinds, {unit: NUMBER}, asks=[verb], stakes=stakes)


@pytest.mark.parametrize("stakes", ["none", "money", "rights", "deletion"])
def test_a_word_that_has_no_place_between_a_preposition_and_a_value_asks(stakes: str) -> None:
    for (verb, thing, unit), lead, word in product(
        (("defer", "claim", "days"), ("soak", "hide", "minutes"), ("hoist", "flag", "metres")),
        ("for", "at", "of", "by", "to"),
        UNKNOWN,
    ):
        act = measured(verb, thing, unit, stakes)
        prompt = f"{verb.capitalize()} {thing} CL-4 {lead} {word} 30 {unit}."
        assert not passes(prompt, act, **{thing: "CL-4", unit: 30}), prompt
    plain = "Defer claim CL-4 for 30 days."
    assert passes(plain, measured("defer", "claim", "days", stakes), claim="CL-4", days=30)


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_a_word_that_has_no_place_behind_for_asks(trade: tuple[str, ...]) -> None:
    ends = (" for {}.", ", for {}.", "; for {}.", " (for {}).", " - for {}.", " and for {}.")
    forms = tuple([f"{{O}}{end.format(word)}" for end, word in product(ends, (*UNKNOWN, "practice", "show"))])
    assert passing(forms, trade) == []


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_a_phrase_before_an_order_that_no_argument_takes_asks(trade: tuple[str, ...]) -> None:
    leads = ("On", "In", "At", "From", "After", "Before", "Until", "By", "For", "Under", "Within")
    whens = ("Monday", "2027-01-01", "1 January 2027", "10:00", "23:59", "12:00 tomorrow", "Bob", "the words of Bob",
             "the dream of Ann", "the rules of Chess")  # fmt: skip
    assert passing(tuple([f"{lead} {when}, {{o}}." for lead, when in product(leads, whens)]), trade) == []


def test_a_phrase_before_an_order_that_an_argument_takes_passes() -> None:
    act = tool("prune_vine", {"vine": "id:vine", "date": "date"}, asks=["prune"], stakes="none")
    assert passes("On 2027-01-01, prune vine VN-3.", act, vine="VN-3", date="2027-01-01")


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_a_neighbour_that_speaks_of_a_sentence_or_has_no_order_asks(trade: tuple[str, ...]) -> None:
    verbs = ("Ignore", "Skip", "Cancel", "Undo", "Do not do", "Never mind", "Ask before", "Negate")
    matters = ("sentence 1", "order 1", "step 1", "item 1", "1")
    fragments = ("In my dreams.", "In tests.", "On weekdays.", "In two parts.", "With gloves.", "At noon.", "For kids.")
    said = [f"{verb} {matter}." for verb, matter in product(verbs, matters)] + list(fragments)
    assert passing(tuple([f"{{O}}. {one}" for one in said] + [f"{one} {{O}}." for one in said]), trade) == []
    assert len(passing(("{O}. Thanks, Jo.", "{O}. Do not {v} {n} {b}."), trade)) == 2


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_a_line_above_or_below_a_list_is_said_of_each_of_its_items(trade: tuple[str, ...]) -> None:
    lines = ("Do none of these.", "Not now.", "Rejected ideas.", "At most one.", "Drafts.", "This is a joke.")
    forms = [f"{line}\n{items}" for line, items in product(lines, LIST)]
    forms += [f"{items}\n{line}" for line, items in product(lines, LIST)]
    forms += [f"{items}\nThanks.\n{line}" for line, items in product(lines, LIST)]
    assert passing(tuple(forms), trade) + passing(tuple(forms), trade, 2) == []
    assert len(passing(LIST, trade)) == len(passing(LIST, trade, 2)) == len(LIST)


def test_what_stands_on_a_day_or_a_time_and_is_no_part_of_it_asks() -> None:
    for stakes, (kind, value, forms) in product(
        ("none", "money"),
        (
            ("date", "2026-12-07", ("5-7 December 2026", "5\u20137 December 2026", "5/7 December 2026", "5+7 December 2026",
                                    "5th-7th December 2026", "-7 December 2026", "7 December 2026 BC")),
            ("time", "10:00", ("10:00:30", "10:00:59", "10:00 UTC+3", "10:00 CET", "10:00 Tokyo time", "10:00 BC",
                               "10:00 yesterday", "10:00 tomorrow", "10:00 Monday", "10:00 on Mondays")),
        ),
    ):  # fmt: skip
        act = tool("prune_vine", {"vine": "id:vine", kind: kind}, asks=["prune"], stakes=stakes)
        lead = "on" if kind == "date" else "at"
        for said in forms:
            for prompt in (f"Prune vine VN-3 {lead} {said}.", f"{lead.capitalize()} {said}, prune vine VN-3."):
                assert not passes(prompt, act, **{"vine": "VN-3", kind: value}), prompt
        plain = "7 December 2026" if kind == "date" else "10:00"
        assert passes(f"Prune vine VN-3 {lead} {plain}.", act, **{"vine": "VN-3", kind: value})


def test_a_verb_beside_an_amount_asks() -> None:
    for verb, thing in (("pay", "rower"), ("credit", "sailor")):
        act = tool(
            f"{verb}_{thing}",
            {thing: f"id:{thing}", "amount": "money:major"},
            {"amount": NUMBER},
            asks=[verb],
            stakes="money",
        )
        order = f"{verb.capitalize()} {thing} RW-1"
        takes = ("deduct", "subtract", "withhold", "keep", "refund", "recall", "cancel", "blorish")
        for joint, other in product((" and ", "; ", ", ", " then "), takes):
            assert not passes(f"{order} 40 EUR{joint}{other} 10.", act, **{thing: "RW-1", "amount": 40}), other
        for edge, lead in product(("starting", "ending", "beginning", "capped"), ("at", "with", "to", "for")):
            assert not passes(f"{order} {edge} {lead} 40 EUR.", act, **{thing: "RW-1", "amount": 40}), edge
        assert passes(f"{order} 40 EUR.", act, **{thing: "RW-1", "amount": 40})


def test_how_long_a_choice_or_an_effect_is_to_last_is_taken_up_or_asks() -> None:
    choice: JsonObject = {"type": "string", "enum": ["bosun", "steward"]}
    kinds: JsonObject = {"rower": "id:rower", "post": "enum"}
    act = tool("appoint_rower", kinds, {"post": choice}, asks=["appoint"], stakes="rights")
    for term in ("a day", "the day", "a week", "3 days", "one race", "the summer", "two weeks", "an hour"):
        prompt = f"Appoint RW-1 as bosun for {term}."
        assert not passes(prompt, act, rower="RW-1", post="bosun"), prompt
    assert passes("Appoint RW-1 as bosun.", act, rower="RW-1", post="bosun")


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_a_step_before_an_order_that_no_tool_does_asks(trade: tuple[str, ...]) -> None:
    steps = ("Get approval", "Wait for Bob", "Ask Ann", "Flip a coin", "Refuse", "Pretend", "Hold off", "Simulate it")
    assert passing(tuple([f"{step} {joint} {{o}}." for step, joint in product(steps, ("and", "then"))]), trade) == []
    assert len(passing(("Look around and {o}.",), trade)) == 1


@pytest.mark.parametrize("stakes", ["none", "rights"])
def test_the_first_of_a_measure_is_another_one(stakes: str) -> None:
    for said in ("first 30 days", "the first 30 days", "for the first 30 days"):
        act = measured("defer", "claim", "days", stakes)
        assert not passes(f"Defer claim CL-4 {said}.", act, claim="CL-4", days=30), said


@pytest.mark.parametrize("stakes", ["none", "deletion"])
def test_a_name_that_all_are_called_by_is_a_whole_name(stakes: str) -> None:
    listing = declared("list_wagons", "", parameters(), effect="read", network=False,
                       result={"[].id": "id:wagon", "[].name": "label"})  # fmt: skip
    scrap = tool("scrap_wagon", {"wagon": "id:wagon"}, asks=["scrap"], stakes=stakes, repeat="target")
    for called, whole, other in product(
        ("named", "called", "titled"),
        ("all wagons", "every wagon"),
        ("Otter Hen", "Ottery", "Otter (keep)", "Old Otter"),
    ):
        for name in ("Otter", '"Otter"'):
            gate = start(f"Scrap {whole} {called} {name}.", [listing, scrap])
            looked_up(gate, "list_wagons", {}, [{"id": "WG-1", "name": "Otter"}, {"id": "WG-2", "name": other}])
            assert gate.verdict_on("b", "scrap_wagon", {"wagon": "WG-1"}).is_allowed, (called, whole, other)
            assert not gate.verdict_on("c", "scrap_wagon", {"wagon": "WG-2"}).is_allowed, (called, whole, other)


def test_a_phrase_with_a_year_before_an_amount_asks() -> None:
    kinds: JsonObject = {"rower": "id:rower", "amount": "money:major"}
    act = tool("pay_rower", kinds, {"amount": NUMBER}, asks=["pay"], stakes="money")
    for lead in ("After", "Before", "Until", "Since", "In", "From"):
        assert not passes(f"{lead} 2027, pay rower RW-1 40 EUR.", act, rower="RW-1", amount=40), lead
