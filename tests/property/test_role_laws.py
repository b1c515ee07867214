"""Laws of roles: what stands before a value decides whether it binds, over many trades, prepositions and spellings."""

from decimal import Decimal
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.record import JsonObject
from remit.provenance.gate import start
from remit.provenance.words.units import UNITS, in_other_units, unit_name
from tests.unit.provenance.office import declared, parameters

# A verb, the thing that it falls on, an identifier of that, and a choice among three with what it is called.
TRADES = (
    ("reimburse", "voucher", "VC-5", "band", ("bronze", "silver", "gold")),
    ("unload", "wagon", "WG-208", "grade", ("light", "medium", "heavy")),
    ("appraise", "claim", "CL-31", "stage", ("draft", "sworn", "final")),
    ("graft", "tree", "TR-402", "strain", ("dwarf", "bushy", "giant")),
)
_WORDS = """
    under over with without in on by near beside behind after before past since until through via for of off per plus
    minus than like unlike despite versus against about above below beneath among between beyond during except inside
    outside toward towards throughout within upon amid regarding as at into onto from to no not any another each every
    half some around roughly barely almost nearly
"""
SAID = _WORDS.split()
# What may stand before each sort of value, as a reader of English would say; what is known to be harmless otherwise, too.
BEFORE_AMOUNTS = {"for", "of", "to", "at", "with"}
BEFORE_CHOICES = {"to", "into", "as"}
STAKES = ("none", "deletion")


def passes(prompt: str, made: JsonObject, **arguments: Any) -> bool:
    return start(prompt, [made]).verdict_on("c", made["name"], arguments).is_allowed


def tool(name: str, kinds: JsonObject, schemas: JsonObject | None = None, **more: Any) -> JsonObject:
    made = {argument: {"type": "string"} for argument in kinds} | (schemas or {})
    return declared(name, "", parameters(**made), **{"effect": "external", "control_args": kinds, **more})


def falling_on(verb: str, thing: str, stakes: str = "deletion") -> JsonObject:
    return tool(f"{verb}_{thing}", {thing: f"id:{thing}"}, asks=[verb], stakes=stakes)


def paying(verb: str, thing: str) -> JsonObject:
    kinds: JsonObject = {thing: f"id:{thing}", "amount": "money:major"}
    return tool(f"{verb}_{thing}", kinds, {"amount": {"type": "number"}}, asks=[verb], stakes="money")


def measured(thing: str, argument: str, kind: str) -> JsonObject:
    kinds: JsonObject = {thing: f"id:{thing}", argument: kind}
    return tool(f"treat_{thing}", kinds, {argument: {"type": "number"}}, asks=["treat"], stakes="none")


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_an_amount_binds_only_behind_what_may_lead_it_in(trade: Any) -> None:
    verb, thing, value, _, _ = trade
    pay = paying(verb, thing)
    for word in SAID:
        forms = (f"{verb} {thing} {value} {word} 50 EUR.", f"{verb} {thing} {value} {word} the sum of 50 EUR.")
        for prompt in forms if word not in BEFORE_AMOUNTS else ():
            assert not passes(prompt, pay, **{thing: value, "amount": 50}), prompt
        if word not in {*BEFORE_AMOUNTS, "on", "into", "onto"}:
            prompt = f"{verb} {word} 50 EUR to {thing} {value}."
            assert not passes(prompt, pay, **{thing: value, "amount": 50}), prompt
    for prompt in (
        f"{verb} {thing} {value} 50 EUR.",
        f"{verb} {thing} {value} for 50 EUR.",
        f"{verb} 50 EUR to {thing} {value}.",
        f"{verb} a fee of 50 EUR to {thing} {value}.",
        f"{verb} {thing} {value} the fine of 50 EUR.",
    ):
        assert passes(prompt, pay, **{thing: value, "amount": 50}), prompt


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_a_choice_binds_only_behind_what_may_lead_it_in_or_beside_its_noun(trade: Any) -> None:
    verb, thing, value, argument, choices = trade
    kinds: JsonObject = {thing: f"id:{thing}", argument: "enum"}
    rank = tool(f"{verb}_{thing}", kinds, {argument: {"enum": list(choices)}}, asks=[verb], stakes="rights")
    for word, choice in product(SAID, choices):
        for form in (f"{word} the {choice}", f"{word} {choice}", f"{word} any {choice}"):
            if word in BEFORE_CHOICES and "any" not in form:
                continue
            prompt = f"{verb} {thing} {value} {form}."
            assert not passes(prompt, rank, **{thing: value, argument: choice}), prompt
    for form in (
        ", our {c}",
        ", {c}",
        " under {a} {c}",
        " before {a} {c}",
        " with any {a} {c}",
        " from {a} {c}",
        " as non-{c}",
        " to un-{c}",
    ):
        prompt = f"{verb} {thing} {value}{form.format(a=argument, c=choices[1])}."
        assert not passes(prompt, rank, **{thing: value, argument: choices[1]}), prompt
    for form in (
        "to {c}", "as {c}", "as a {c}", "to the {c}", "with {a} {c}", "with the {a} {c}", "to {a} {c}", "in {a} {c}"
    ):  # fmt: skip
        prompt = f"{verb} {thing} {value} {form.format(a=argument, c=choices[2])}."
        assert passes(prompt, rank, **{thing: value, argument: choices[2]}), prompt


@pytest.mark.parametrize(("trade", "stakes"), list(product(TRADES, STAKES)), ids=str)
def test_what_stands_in_a_place_is_what_an_order_falls_on_only_where_its_noun_says_so(trade: Any, stakes: str) -> None:
    verb, thing, value, _, _ = trade
    act = falling_on(verb, thing, stakes)
    for word in SAID:
        other = f"{value}9"
        for prompt in (
            ""
            if word in ("of", "no")
            else f"{verb} the {thing} {word} {value}.",  # "the city of Rome", "the ticket no. 12"
            f"{verb} {word} {value}.",
            f"{verb} {thing} {other} {word} {value}.",
            f"{verb} {thing} {other} {word} {thing} {value}.",
        ):
            assert not passes(prompt, act, **{thing: value}), prompt
    for word in ("just", "now", "instead"):
        assert not passes(f"{verb} {thing} {value}9 {word} {value}.", act, **{thing: value}), word
    for word in ("in", "on", "to", "for", "of", "into"):
        prompt = f"{verb} everything {word} {value}."
        assert not passes(prompt, act, **{thing: value}), prompt
    assert passes(f"{verb} {thing} {value}.", act, **{thing: value})
    assert passes(f"{verb} the {thing} {value} now, please.", act, **{thing: value})


NO_ENDS = (
    "base head", "debit credit", "departure arrival", "giver taker", "lender borrower", "parent child", "first second",
    "before after", "left right", "one other", "upstream downstream", "home away", "a b",
)  # fmt: skip
ENDS = (
    "src dst",
    "source target",
    "origin destination",
    "from_pen to_pen",
    "sender receiver",
    "old_pen new_pen",
    "input output",
)
MOVES = ("move {a} to {b}.", "merge {a} into {b}.", "move the {t} from {a} to {b}.", "merge {t} {a} into {t} {b}.")


@pytest.mark.parametrize("stakes", STAKES)
def test_two_ends_bind_only_arguments_that_are_called_so(stakes: str) -> None:
    for names, thing, form in product((*NO_ENDS, *ENDS), ("herd", "lot", "crate"), MOVES):
        one, other = names.split()
        act = tool(f"move_{thing}", {one: f"id:{thing}", other: f"id:{thing}"}, asks=["move", "merge"], stakes=stakes)
        prompt = form.format(a="PN-1", b="PN-2", t=thing)
        assert not passes(prompt, act, **{one: "PN-2", other: "PN-1"}), (prompt, names)
        assert passes(prompt, act, **{one: "PN-1", other: "PN-2"}) is (names in ENDS), (prompt, names)


def test_two_numbers_of_one_kind_are_told_apart_by_what_they_are_called() -> None:
    crop = tool(
        "crop_image", {"image": "id:image", "width": "number", "height": "number"}, asks=["crop"], stakes="none"
    )
    for prompt in ("Crop image IM-4 to 30 by 40.", "Crop image IM-4 30 40.", "Crop image IM-4 to 30, 40."):
        for width, height in permutations((30, 40)):
            assert not passes(prompt, crop, image="IM-4", width=width, height=height), prompt
    prompt = "Crop image IM-4 to width 30 and height 40."
    assert passes(prompt, crop, image="IM-4", width=30, height=40)
    assert not passes(prompt, crop, image="IM-4", width=40, height=30)


@given(
    head=st.sampled_from(["MB", "an", "Q.", "x_", "M-B", "MB/"]),
    tail=st.integers(1, 999),
    amount=st.integers(1_001, 9_999),
    form=st.sampled_from(["{} EUR", "€{}", "EUR {}", "{} euros"]),
)
def test_a_number_behind_an_identifier_is_a_number_of_its_own(head: str, tail: int, amount: int, form: str) -> None:
    name = f"{head}-{tail}"
    prompt = f"Charge member {name} {form.format(amount)}."
    pay = tool(
        "charge_member",
        {"member": "id:member", "amount": "money:major"},
        {"amount": {"type": "number"}},
        asks=["charge"],
        stakes="money",
    )
    assert passes(prompt, pay, member=name, amount=amount), prompt
    assert not passes(prompt, pay, member=name, amount=tail), prompt
    # Groups of digits alone are one number, or none that is known.
    assert not passes(f"Charge member MB 1 {amount % 1000:03} EUR.", pay, member="MB", amount=amount % 1000)
    assert not passes(f"Charge member 555-{tail} {amount} EUR.", pay, member=f"555-{tail}", amount=amount)


def test_a_number_of_several_counts_and_a_line_picks_none() -> None:
    for thing, number, stakes in product(("row", "page", "berth"), (2, 5, 31), STAKES):
        act = tool(
            f"drop_{thing}",
            {thing: "number"},
            {thing: {"type": "integer"}},
            asks=["drop"],
            stakes=stakes,
            effect="write",
        )
        for form in ("{n} of the {t}s", "{n} of these {t}s", "{t} after {n}", "a {t} in {n} minutes", "{t} {n} hours from now",
                     "{t} under {n}", "any {t} {n}", "another {t} {n}", "every {n} {t}", "{n} {t}s"):  # fmt: skip
            prompt = f"Drop {form.format(n=number, t=thing)}."
            assert not passes(prompt, act, **{thing: number}), prompt
        for form in ("{t} {n}", "the {t} {n}", "{t} #{n}", "{t} number {n}"):
            prompt = f"Drop {form.format(n=number, t=thing)}."
            assert passes(prompt, act, **{thing: number}), prompt


def test_an_adjective_before_a_noun_is_no_name() -> None:
    for verb, thing, _, _, choices in TRADES:
        act = falling_on(verb, thing)
        for word in ("old", "red", "spare", "rusty", *choices):
            assert not passes(f"{verb} the {word} {thing}.", act, **{thing: word}), word
            assert passes(f"{verb} the {thing} called {word}.", act, **{thing: word}), word


def test_a_folder_and_a_day_stand_behind_what_may_lead_them_in() -> None:
    shred = tool("shred_scan", {"path": "path"}, asks=["shred"], stakes="deletion", effect="write")
    book = tool("book_stage", {"stage": "id:stage", "day": "date"}, asks=["book"], stakes="none")
    for word in {*SAID, "as on", "as in"} - {"in", "inside", "from"}:
        if word not in {"within", "under", "on", "at", "into", "onto", "to"}:
            assert not passes(f"Shred x.tif {word} /nave.", shred, path="/nave/x.tif"), word
        if word not in {"on", "at", "for"}:
            assert not passes(f"Book ST-1 {word} 2026-12-03.", book, stage="ST-1", day="2026-12-03"), word
    assert passes("Shred x.tif in /nave.", shred, path="/nave/x.tif")
    move = tool("move_show", {"show": "id:show", "day": "date"}, asks=["move", "postpone"], stakes="none")
    for word in ("on", "for", "at"):
        assert passes(f"Book ST-1 {word} 2026-12-03.", book, stage="ST-1", day="2026-12-03"), word
    assert passes("Move show SW-2 to 2026-12-03.", move, show="SW-2", day="2026-12-03")


@given(
    number=st.decimals(min_value=Decimal("0.01"), max_value=Decimal(5000), places=2),
    unit=st.sampled_from(sorted(UNITS)),
)
def test_a_measure_in_another_unit_is_exactly_the_same(number: Decimal, unit: str) -> None:
    dimension, size = UNITS[unit]
    found = {name: made for made, name in in_other_units(number, unit)}
    assert found[unit_name(unit)] == number
    for name, made in found.items():
        assert UNITS[name][0] == dimension
        assert Fraction(made) * UNITS[name][1] == Fraction(number) * size


MEASURES = (
    ("minutes", "number:minute", 30, ("30 min", "30 mins", "30 minutes", "half an hour", "0.5 hours", "1800 seconds")),
    ("days", "number:day", 14, ("14 days", "two weeks", "2 weeks", "a fortnight", "336 hours")),
    ("hours", "number:hour", 48, ("48 h", "48 hrs", "two days", "2 days")),
    ("celsius", "number:celsius", 4, ("4 °C", "4°C", "4 degrees", "4 celsius")),
    ("litres", "number:litre", 50, ("50 l", "50L", "50 liters", "50 litres", "50000 ml")),
    ("mg", "number:mg", 20, ("20 mg", "20mg", "0.02 g")),
    ("duration_min", "number", 90, ("90 min", "1.5 hours", "90 minutes")),
)


def test_a_unit_is_read_however_it_is_spelled_and_never_another_measure() -> None:
    for (argument, kind, number, spellings), thing in product(MEASURES, ("field", "vat", "herd")):
        act = measured(thing, argument, kind)
        for spelling in spellings:
            prompt = f"Treat {thing} XQ-3 with {spelling}."
            assert passes(prompt, act, **{thing: "XQ-3", argument: number}), prompt
            for wrong in (number + 1, number * 10, number * 60, number / 2, 1, 2):
                if wrong != number:
                    assert not passes(prompt, act, **{thing: "XQ-3", argument: wrong}), (prompt, wrong)
            for more in (
                f"{spelling} and 3 hours",
                f"{spelling} 3 kg",
                f"another {spelling}",
                f"{spelling} and a half",
            ):
                prompt = f"Treat {thing} XQ-3 with {more}."
                assert not passes(prompt, act, **{thing: "XQ-3", argument: number}), prompt
        for other, _, _, spelled in MEASURES:
            if (
                UNITS[unit_name(other.partition("_")[2] or other)][0]
                != UNITS[unit_name(argument.partition("_")[2] or argument)][0]
            ):
                for spelling in spelled:
                    assert not passes(
                        f"Treat {thing} XQ-3 with {spelling}.", act, **{thing: "XQ-3", argument: number}
                    ), spelling
    # Twenty minutes are a third of an hour, which no number says.
    assert not passes("Treat vat XQ-3 with 20 min.", measured("vat", "hours", "number:hour"), vat="XQ-3", hours=0.33)


def test_a_word_beside_a_measure_is_read_or_the_order_asks() -> None:
    """Before it, or behind it: whatever it says of the measure."""
    made_up = ("blorish", "cancelled", "forbidden", "maybe", "halved")
    for (argument, kind, number, spellings), thing in product(MEASURES[:6], ("field", "vat", "herd")):
        act = measured(thing, argument, kind)
        said = [f"Treat {thing} XQ-3 for {one} {word}." for one in spellings[:1] for word in made_up]
        said += [f"Treat {thing} XQ-3 with {word} {spellings[0]}." for word in (*made_up, "nearly", "negative", "zero")]
        assert [one for one in said if passes(one, act, **{thing: "XQ-3", argument: number})] == []
    for tail in ("an hour and a half", "a quarter of an hour"):
        assert not passes(
            f"Treat vat XQ-3 for {tail}.", measured("vat", "minutes", "number:minute"), vat="XQ-3", minutes=60
        )


@pytest.mark.parametrize("kind", ["text", "time", ""])
def test_both_ends_of_a_stretch_of_time_bind_their_own_arguments(kind: str) -> None:
    for thing, (begin, end) in product(("room", "court"), (("10:00", "11:00"), ("08:15", "17:45"))):
        kinds: JsonObject = {thing: f"id:{thing}", "date": "date"} | ({"start": kind, "end": kind} if kind else {})
        schemas: JsonObject = {"start": {"type": "string"}, "end": {"type": "string"}}
        book = tool(f"book_{thing}", kinds, schemas, asks=["book"], stakes="none")
        call = {thing: "RO-1", "date": "2026-12-04"}
        for form in ("from {a} to {b}", "between {a} and {b}"):
            prompt = f"Book {thing} RO-1 on 2026-12-04 {form.format(a=begin, b=end)}."
            assert passes(prompt, book, **call, start=begin, end=end), prompt
            assert not passes(prompt, book, **call, start=end, end=begin), prompt
        prompt = f"Book {thing} RO-1 on 2026-12-04, {begin}-{end}."
        assert passes(prompt, book, **call, start=begin, end=end), prompt
        assert not passes(prompt, book, **call, start=end, end=begin), prompt
        # A zone is no end.
        assert not passes(f"Book {thing} RO-1 on 2026-12-04, {end}-{begin}.", book, **call, start=end, end=begin)


def test_a_count_takes_what_is_counted_and_no_other_number() -> None:
    for thing, what, name in product(("show", "tour", "ferry"), ("seats", "tickets", "places"), ("count", "quantity")):
        kinds: JsonObject = {thing: f"id:{thing}", name: "number"}
        book = tool(f"book_{thing}", kinds, {name: {"type": "integer"}}, asks=["book"], stakes="none")
        for said in ("4", "four"):
            assert passes(f"Book {said} {what} for {thing} SW-1.", book, **{thing: "SW-1", name: 4}), (said, what)
        for form in ("for 4 nights", "4 {w} and 3 meals", "under 4 {w}", "every 4 {w}", "in 4 months"):
            prompt = f"Book {thing} SW-1 {form.format(w=what)}."
            assert not passes(prompt, book, **{thing: "SW-1", name: 4}), prompt


STATES = (("on", "on", "off"), ("open", "open", "shut"), ("open", "open", "closed"))


def test_a_state_is_set_at_the_verb_or_at_the_end_and_never_the_opposite_one() -> None:
    for thing, (name, said, opposite), is_choice in product(("alarm", "valve"), STATES, (False, True)):
        schema: JsonObject = {"enum": [said, opposite]} if is_choice else {"type": "boolean"}
        argument = "state" if is_choice else name
        act = tool(
            f"set_{thing}", {thing: f"id:{thing}"}, {argument: schema}, asks=["set", "turn", "switch"], stakes="none"
        )
        for word, other in ((said, opposite), (opposite, said)):
            right, wrong = (word, other) if is_choice else (word == said, word != said)
            forms = ["Turn {t} LA-4 {w}.", "Switch {t} LA-4 {w}.", "Set {t} LA-4 to {w}."]
            if name == "on":
                forms += ["Turn {w} {t} LA-4.", "Switch {w} the {t} LA-4, please."]
                # What is set off sounds, and what is put off waits.
                for form in ("Set {t} LA-4 {w}.", "Set {w} {t} LA-4.", "Set {w} the {t} LA-4."):
                    prompt = form.format(t=thing, w=word)
                    assert not passes(prompt, act, **{thing: "LA-4", argument: right}), prompt
            else:
                forms.append("Set {t} LA-4 {w}.")
            for form in forms:
                prompt = form.format(t=thing, w=word)
                assert passes(prompt, act, **{thing: "LA-4", argument: right}), (prompt, right)
                assert not passes(prompt, act, **{thing: "LA-4", argument: wrong}), (prompt, wrong)
            for form in ("Turn {t} LA-4 {w} or {o}.", "Set {t} LA-4 unless {w}.", "Turn {t} LA-4 not {w}.", "Set the {w} {t} LA-4 {o}.",
                         "Turn {t} LA-4 from {w}.", "Set {t} LA-4 before {w}."):  # fmt: skip
                prompt = form.format(t=thing, w=word, o=other)
                assert not passes(prompt, act, **{thing: "LA-4", argument: right}), (prompt, right)


def test_a_number_that_numbers_a_thing_binds_an_argument_whose_kind_says_that_thing() -> None:
    for thing, stakes in product(("ticket", "crate", "essay"), STAKES):
        act = tool(
            f"close_{thing}", {thing: f"number:{thing}"}, {thing: {"type": "integer"}}, asks=["close"], stakes=stakes
        )
        for prompt in (f"Close {thing} 31.", f"Close {thing} #31."):
            assert passes(prompt, act, **{thing: 31}), prompt
        for prompt in (f"Close 31 {thing}s.", f"Close the {thing} after 31.", "Close page 31."):
            assert not passes(prompt, act, **{thing: 31}), prompt
