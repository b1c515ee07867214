"""Laws of asking: what stands around an order, or beside its values, and is open to two readings asks. Trades are made up."""

from itertools import product

import pytest

from remit.core.record import JsonObject
from remit.provenance.gate import start
from tests.unit.provenance.office import declared, parameters

# A verb, the thing that it falls on, two identifiers, and the stakes.
TRADES = (
    ("scrap", "wagon", "WG-31", "WG-32", "deletion"),
    ("void", "voucher", "VC-5", "VC-6", "none"),
    ("seal", "hatch", "HA-70", "HA-71", "money"),
)
NUMBER: JsonObject = {"type": "number"}


def tool(name: str, kinds: JsonObject, schemas: JsonObject | None = None, **more: object) -> JsonObject:
    made = {argument: {"type": "string"} for argument in kinds} | (schemas or {})
    return declared(name, "", parameters(**made), **{"effect": "external", "control_args": kinds, **more})


def passes(prompt: str, made: JsonObject, **arguments: object) -> bool:
    return start(prompt, [made]).verdict_on("c", made["name"], arguments).is_allowed


def passing(forms: tuple[str, ...], trade: tuple[str, ...], wanted: int = 1) -> list[str]:
    """The prompts of these forms in which the order falls on one of the two identifiers."""
    verb, thing, one, other, stakes = trade
    act = tool(f"{verb}_{thing}", {thing: f"id:{thing}"}, asks=[verb], stakes=stakes)
    told = {"o": f"{verb} {thing} {one}", "O": f"{verb.capitalize()} {thing} {one}"}
    told |= {"v": verb, "V": verb.capitalize(), "n": thing, "a": one, "b": other}
    prompts = [form.format(**told) for form in forms]
    return [prompt for prompt in prompts if passes(prompt, act, **{thing: (one, other)[wanted - 1]})]


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_words_above_a_blank_line_belong_to_the_order_below_them(trade: tuple[str, ...]) -> None:
    words = ("don't", "wait", "draft", "stop", "blorish", "hold off", "never mind")
    forms = [f"{word}{end}\n\n{{O}}." for word, end in product(words, ("", ".", " -", "\n"))]
    assert passing(tuple(forms), trade) == []
    assert len(passing(("Please\n\n{O}.", "Hello,\n\n{O}.", "Thanks.\n\n{O}."), trade)) == 3


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_data_right_behind_an_order_that_announces_none_asks(trade: tuple[str, ...]) -> None:
    blocks = (
        "> not so",
        "| not so |",
        "```\nnot so\n```",
        '"""not so"""',
        "<x>not so</x>",
        "---\nnot so\n---",
        "{{not: 1}}",
    )
    gaps = ("\n", ".\n", ".\n\n", "! ", ". Thanks!\n", ".\nThanks, Jo\n")
    assert passing(tuple([f"{{O}}{gap}{block}" for gap, block in product(gaps, blocks)]), trade) == []
    assert len(passing(("> it leaks\n{O}.", "My notes:\n> it leaks\n> much\n\n{O}."), trade)) == 2


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_signs_behind_an_order_that_are_more_than_its_end_ask(trade: tuple[str, ...]) -> None:
    signs = (":(", ";)", ":-(", ": (", ":'(", "?!", "...", "..", "?.", ". . .", "(!)", ":", "--", "=", ".-")
    forms = tuple([f"{{O}}{gap}{sign}" for sign, gap in product(signs, ("", " ")) if sign + gap not in (":", ": ")])
    assert passing(forms, trade) == []
    ends = ("{O}", "{O}.", "{O}!", "{O}!!", "{O} :)", "({O}.)", "{O}. ", "{O}.\n")
    assert len(passing(ends, trade)) == len(ends)


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_a_list_whose_marks_or_lines_are_joined_by_more_than_and_asks(trade: tuple[str, ...]) -> None:
    either = ("a) {v} {n} {a} or b) {v} {n} {b}", "1. {O} or\n2. {V} {n} {b}", "- {o} or\n- {v} {n} {b}", "{O}, or\n{v} {n} {b}",
              "- {o}\n- or\n- {v} {n} {b}", "Either {v} {n} {a}\nor\n{v} {n} {b}.")  # fmt: skip
    assert passing(either, trade) + passing(either, trade, 2) == []
    marks = ("1.", "1)", "a)", "-", "2.")
    words = ("Not:", "Never:", "Don't:", "Do not:", "Not", "Never", "Without", "Skip:")
    assert passing(tuple([f"{word} {mark} {{O}}" for word, mark in product(words, marks)]), trade) == []
    both = ("a) {o}\nb) {v} {n} {b}", "- {o} and\n- {v} {n} {b}", "Not {b}. {O}.", "{O}. Do not {v} {n} {b}.")
    assert len(passing(both, trade)) == len(both)


@pytest.mark.parametrize("trade", TRADES, ids=lambda trade: trade[0])
def test_what_may_take_a_name_out_of_all_names_nothing(trade: tuple[str, ...]) -> None:
    wholes = ("all {n}s", "everything", "every {n}")
    marks = (" - ", " -", " \u2013 ", " \u2014 ", " no ", " nr ", "; ", " (", ", not ", " minus ")
    assert passing(tuple([f"{{V}} {whole}{mark}{{a}}." for whole, mark in product(wholes, marks)]), trade) == []
    assert len(passing(("{V} {n} no. {a}.", "{V} {n} nr {a}.", "{V} {n} {a}, {b}."), trade)) == 3


def test_two_moments_that_nothing_but_their_place_tells_apart_ask() -> None:
    for thing, stakes, kind in product(("court", "pier"), ("none", "money"), ("time", "")):
        both = {thing: f"id:{thing}"} | ({"start": kind, "end": kind} if kind else {})
        schemas: JsonObject = {name: {"type": "string"} for name in ("start", "end", "time")}
        book = tool(
            f"book_{thing}", both, {name: schemas[name] for name in ("start", "end")}, asks=["book"], stakes=stakes
        )
        once = tool(f"book_{thing}", {thing: f"id:{thing}", "time": "time"}, asks=["book"], stakes=stakes)
        for joint in ("-", " - ", "\u2013", " \u2013 ", " and ", ", ", "; ", " / "):
            prompt = f"Book {thing} CT-5 10:00{joint}11:00."
            assert not passes(prompt, book, **{thing: "CT-5", "start": "11:00", "end": "10:00"}), prompt
            for hour in ("10:00", "11:00"):
                assert not passes(prompt, once, **{thing: "CT-5", "time": hour}), prompt
        for joint in ("-", " - ", " \u2013 "):
            prompt = f"Book {thing} CT-5, 10:00{joint}11:00."
            assert passes(prompt, book, **{thing: "CT-5", "start": "10:00", "end": "11:00"}), prompt


def test_a_target_stands_behind_no_preposition_that_makes_something_else_of_it() -> None:
    for word in ("from", "by", "via", "through", "under", "with", "towards", "toward", "within", "inside", "behind"):
        for verb, thing, stakes in product(("pay", "promote"), ("guest", "rower"), ("money", "rights")):
            give = tool(
                f"{verb}_{thing}",
                {thing: f"id:{thing}", "amount": "money:major"},
                {"amount": NUMBER},
                asks=[verb],
                stakes=stakes,
            )
            prompt = f"{verb.capitalize()} 70 EUR {word} {thing} GS-2."
            assert not passes(prompt, give, **{thing: "GS-2", "amount": 70}), prompt
            hand = tool("hand_tool", {"tool": "id:tool", thing: f"id:{thing}"}, asks=["hand"], stakes=stakes)
            prompt = f"Hand tool TL-1 {word} {thing} GS-2."
            assert not passes(prompt, hand, **{"tool": "TL-1", thing: "GS-2"}), prompt
            assert passes(prompt.replace(word, "to", 1), hand, **{"tool": "TL-1", thing: "GS-2"}), prompt
            draw = tool("draw_tool", {"tool": "id:tool", f"from_{thing}": f"id:{thing}"}, asks=["draw"], stakes=stakes)
            assert passes(f"Draw tool TL-1 from {thing} GS-2.", draw, **{"tool": "TL-1", f"from_{thing}": "GS-2"})


def test_an_amount_beside_another_number_or_a_sign_asks() -> None:
    pay = tool(
        "charge_rower",
        {"rower": "id:rower", "amount": "money:major"},
        {"amount": NUMBER},
        asks=["charge"],
        stakes="money",
    )
    for said in ("50 % {}", "{} 300 EUR", "{}, 300 EUR", "{} and 300 EUR", "{} (300 EUR)", "{} each", "down to {}", "over to {}", "- {}",
                 "\u2013 {}", "{} x 2", "{} - 10 %", "{} or 300 EUR", "2 x {}"):  # fmt: skip
        prompt = f"Charge rower RW-1 {said.format('200 EUR')}."
        assert not passes(prompt, pay, rower="RW-1", amount=200), prompt
    for prompt in ("Charge rowers RW-1 and RW-2 200 EUR each.", "Charge all rowers, RW-1 and RW-2, 200 EUR."):
        assert passes(prompt, pay, rower="RW-1", amount=200) is ("each" in prompt), prompt
    cap = tool("set_cap", {"rower": "id:rower", "cap": "number"}, {"cap": NUMBER}, asks=["set", "lower"], stakes="none")
    assert passes("Lower the cap of rower RW-1 down to 200.", cap, rower="RW-1", cap=200)


def test_a_part_of_a_measure_or_a_moment_from_now_is_no_measure() -> None:
    for thing, (argument, value) in product(
        ("kiln", "vat"), (("hours", 1), ("hours", 2), ("minutes", 60), ("minutes", 30))
    ):
        heat = tool(
            f"heat_{thing}",
            {thing: f"id:{thing}", argument: "number"},
            {argument: NUMBER},
            asks=["heat"],
            stakes="none",
        )
        for said in ("an hour and a half", "one and a half hours", "2 hours and a half", "two and a half hours", "a third of an hour",
                     "three quarters of an hour", "an hour and a bit", "30 min from now", "30 min from here", "30 min and a bit",
                     "an hour or two", "30 - 60 minutes", "- 30 min", "for 30 min for now"):  # fmt: skip
            for lead in ("for ", ""):
                prompt = f"Heat {thing} KN-3 {lead}{said}."
                assert not passes(prompt, heat, **{thing: "KN-3", argument: value}), (prompt, argument, value)


def test_a_number_of_a_thing_is_no_count_of_things_and_a_part_of_them_is_none() -> None:
    for thing, what in product(("show", "tour"), ("seat", "ticket")):
        for argument, name in product(("count", f"{what}s", "quantity"), (f"book_{what}s", f"book_{thing}")):
            book = tool(
                name,
                {thing: f"id:{thing}", argument: "number"},
                {argument: {"type": "integer"}},
                asks=["book"],
                stakes="none",
            )
            for said in (f"{what} 4", f"2 pairs of {what}s", f"4 of the {what}s"):
                prompt, wanted = f"Book {said} for {thing} SW-1.", 2 if "pairs" in said else 4
                assert not passes(prompt, book, **{thing: "SW-1", argument: wanted}), (prompt, argument)
            assert not passes(f"Book {thing} SW-1 with 4 stars.", book, **{thing: "SW-1", argument: 4})
            if argument != f"{what}s":
                assert passes(f"Book 4 {what}s for {thing} SW-1.", book, **{thing: "SW-1", argument: 4}), argument


def test_what_is_set_off_or_put_off_is_not_turned_off() -> None:
    for thing, stakes in product(("alarm", "siren"), ("none", "rights")):
        act = tool(
            f"set_{thing}",
            {thing: f"id:{thing}", "on": "bool"},
            {"on": {"type": "boolean"}},
            asks=["set", "put", "turn"],
            stakes=stakes,
        )
        for form in (
            "Set off {t} AL-1.",
            "Put off {t} AL-1.",
            "Set the {t} AL-1 off.",
            "Put {t} AL-1 off.",
            "Set on {t} AL-1.",
        ):
            for state in (True, False):
                assert not passes(form.format(t=thing), act, **{thing: "AL-1", "on": state}), form
        assert passes(f"Turn off {thing} AL-1.", act, **{thing: "AL-1", "on": False})
        assert passes(f"Set {thing} AL-1 to off.", act, **{thing: "AL-1", "on": False})
