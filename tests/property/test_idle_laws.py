"""Laws of what stands around an order: what takes it back is read in whatever signs, and what is idle costs no question."""

from itertools import product
from random import Random
from typing import Any

import pytest

from remit.core.record import JsonObject
from remit.provenance.gate import start
from remit.provenance.words.remarks import without_idle
from tests.unit.provenance.office import declared, parameters

LETTERS = Random("idle")
# A verb, the noun of the thing, and the stakes that it declares.
TRADES = (
    ("scrap", "wagon", "deletion"),
    ("void", "voucher", "none"),
    ("seal", "hatch", "unknown"),
    ("uproot", "tree", "deletion"),
)


def made_up(ending: str = "") -> str:
    return "".join(LETTERS.choice("bdfgklmnprtv") + LETTERS.choice("aeiou") for _ in range(3)) + "k" + ending


def tool(trade: tuple[str, str, str], **more: Any) -> JsonObject:
    verb, noun, stakes = trade
    more = {"stakes": stakes, **more} if stakes != "unknown" else more
    schema = parameters(**{noun: {"type": "string"}})
    said = {"effect": "write", "control_args": {noun: f"id:{noun}"}, "asks": [verb], "repeat": "target"}
    return declared(f"{verb}_{noun}", "", schema, **{**said, **more})


def passes(prompt: str, trade: tuple[str, str, str], value: str = "QX-31") -> bool:
    made = tool(trade)
    return start(prompt, [made]).verdict_on("c", made["name"], {trade[1]: value}).is_allowed


def filled(form: str, trade: tuple[str, str, str], **more: str) -> str:
    verb, noun, _ = trade
    told = {"V": verb.capitalize(), "v": verb, "N": noun.capitalize(), "n": noun, "a": "QX-31", "b": "QX-32"}
    return form.format(**told, o=f"{verb.capitalize()} {noun} QX-31", **more)


# What nobody has a list of, in the signs that people and their keyboards put around words.
ADDED = (
    *(made_up() for _ in range(3)), made_up("ed"), made_up().capitalize(), "not", "Don't", "n/a", "To Be Decided", "In June",
    "By June", "please no", "said Mia", "half of it", "wait",
)  # fmt: skip
SIGNS = (
    "{o} *{w}*.", "{o} **{w}**", "{o} ***{w}***.", "*{w}* {o}.", "**{w}:** {o}", "{o} *{w}", "{o} ={w}=", "{o} #{w}", "{o} @{w}",
    "{o} ```{w}```.", '{o} """{w}""".', "{o} ~~{w}~~.", "{o} _{w}_", "{o} ({w}).", "{o}; {w}.", "{o} # {w}", "{o} // {w}", "{o} | {w}",
)  # fmt: skip
BESIDE = ("{w}. {o}.", "{o}. {w}.", "{w} - {o}.", "({w}) {o}.", "{o}: {w}.", "{o}\n{w}")
SYMBOLS = "\U0001f6ab\u274c\u26d4\u2717\u00d7\u270b\U0001f645\u203c\u2020\u2192\u25a0\u00ac"


@pytest.mark.parametrize("trade", TRADES, ids=lambda one: one[0])
def test_no_word_in_the_sentence_of_an_order_vanishes_in_whatever_signs_it_stands(trade: tuple[str, str, str]) -> None:
    prompts = [filled(form, trade, w=word) for form, word in product(SIGNS + BESIDE, ADDED)]
    assert [one for one in prompts if passes(one, trade)] == []


@pytest.mark.parametrize("trade", TRADES, ids=lambda one: one[0])
def test_a_symbol_in_the_sentence_of_an_order_asks_but_for_friendly_ones_behind_it(trade: tuple[str, str, str]) -> None:
    forms = ("{s} {o}.", "{o} {s}", "Please {s} {v} {n} {a}.", "{V} {s} {n} {a}.", "{V} {n} {s} {a}.", "{o}. {s}")
    prompts = [filled(form, trade, s=sign) for form, sign in product(forms, SYMBOLS)]
    assert [one for one in prompts if passes(one, trade)] == []
    friendly = [
        filled(form, trade, s=sign)
        for form, sign in product(("{o} {s}", "{o}. {s}"), (":)", "\U0001f642", "\U0001f64f"))
    ]
    assert [one for one in friendly if not passes(one, trade)] == []


@pytest.mark.parametrize("trade", TRADES, ids=lambda one: one[0])
def test_a_note_a_comment_or_a_heading_is_no_order(trade: tuple[str, str, str]) -> None:
    forms = (
        "TODO: {o}",
        "Todo: {o}.",
        "FIXME: {o}",
        "NOTE: {o}",
        "// {o}",
        "# {o}",
        "-- {o}",
        "; {o}",
        "% {o}",
        "/* {o} */",
        "TODO {o}",
    )
    assert [one for form in forms if passes(one := filled(form, trade), trade)] == []


@pytest.mark.parametrize("trade", TRADES, ids=lambda one: one[0])
def test_emphasis_around_what_an_order_says_is_peeled_off(trade: tuple[str, str, str]) -> None:
    forms = ("{V} *{n}* {a}.", "{V} {n} **{a}**.", "**{V} {n} {a}**", "*{V}* {n} {a}.", "* {o}", "* {V} *{n}* {a}")
    assert [one for form in forms if not passes(one := filled(form, trade), trade)] == []


@pytest.mark.parametrize("trade", TRADES, ids=lambda one: one[0])
def test_a_value_stands_for_a_further_call_only_in_a_list_of_values_like_it(trade: tuple[str, str, str]) -> None:
    lists = ("{o} and {b}.", "{o}, {b}.", "{o} as well as {b}.", "{V} these {n}s: {a}, {b}.", "{V} these {n}s:\n{a}\n{b}",
             "{V} the following {n}s: {a}, {b}.", "{V} the following {n}s:\n- {a}\n- {b}", "1. {o}\n2. {V} {n} {b}", "1) {o}\n2) {V} {n} {b}",
             "a) {o}\nb) {V} {n} {b}", "First {v} {n} {a}. Second, {v} {n} {b}.", "{o}. After that, {v} {n} {b}.",
             "Please do the following:\n- {v} {n} {a}\n- {v} {n} {b}")  # fmt: skip
    for form, value in product(lists, ("QX-31", "QX-32")):
        assert passes(filled(form, trade), trade, value), filled(form, trade)
    unlike = (
        "{o} {b}.",
        "{o}, now {b}.",
        "{o} @{b}",
        "{o} #{b}",
        "{o} ={b}=",
        "{o}, {w}/{w}.",
        "{o}, {w}-{w}.",
        "{o}, @{w}",
        "{o} and {w}.{w}",
    )
    prompts = [filled(form, trade, w=made_up()) for form in unlike]
    assert [one for one in prompts if passes(one, trade)] == []
    data = ("Translate the following {n}s: {a}, {b}", "Mia does the following:\n- {v} {n} {a}", "I do the following:\n- {v} {n} {a}",
            "Never do the following:\n- {v} {n} {a}", "Do the following:\n- {v} {n} {a}\n- {w} {n} {b}")  # fmt: skip
    assert [one for form in data if passes(one := filled(form, trade, w=made_up()), trade)] == []


POLITE = (
    "{o} when you get a chance.", "{o} right away.", "{o} as soon as possible.", "Let's {v} {n} {a}.", "Alright, {v} {n} {a}.",
    "Quick one: {v} {n} {a}.", "Could you {v} {n} {a}? Thanks, Jo", "Hello team, please {v} {n} {a}.", "Hey there, {v} {n} {a}.",
    "Good morning, please {v} {n} {a}.", "Dear assistant,\n{v} {n} {a}.\nBest, Jo", "{o}. Have a nice day!", "{V} {n} no. {a}.",
    "{V} the {n} with number {a}.", "{V} the {n} with id {a}.", "{V} the {n} with the id {a}.", "{V} the {n} {a} in the system.",
)  # fmt: skip
REASONS = (
    "{o} because it is broken.", "{o} since they are no longer needed.", "{o} - it is done.", "{o} (it is done).", "{o}. It is done.",
    "{o}. It's no longer needed.", "Since the {w} is leaking, {v} {n} {a}.", "Regarding {n} {a}, please {v} it.",
    "The {w} is unhappy. {o}.", "I checked everything. {o}.", "{o} because ZB-9 is empty.", "{o} because the {w} is very old.",
)  # fmt: skip


@pytest.mark.parametrize("trade", TRADES, ids=lambda one: one[0])
def test_what_is_polite_and_why_an_order_is_given_costs_no_question(trade: tuple[str, str, str]) -> None:
    words = [{"w": one, "t": f"the {one} {made_up()}s"} for one in (made_up(), made_up())]
    prompts = [filled(form, trade, **told) for form, told in product(POLITE + REASONS, words)]
    assert [one for one in prompts if not passes(one, trade)] == []


HELD = (
    "{o} because {t}.", "{o} since it {w}s.", "Since {t}, {v} {n} {a}.", "The {w} is {w}. {o}.", "The {w} was here. {o}.",
    "{o} as I {w}ed it back.", "{o} because ZB-9 is {w}.", "As the {w} {w}s, {v} {n} {a}.", "{o} since we {w}ed it.", "{o} because it is {w}.",
    "{o} because it is not {w}.", "{o} because {t} unless it {w}s.", "{o} because half of it {w}s.", "{o} since it may {w}.",
    "{o} because the {n} {w}s.", "{o} because Mia {w}s.", "{o}. It is {w}.", "{o} (it is a {w}).", "{o}. The {w} is {w}.", "{o} - they {w}.",
    "The mail is {w}. {o}.", "The {w} is below. {o}.", "The {w} says this. {o}.", "I {w}ed this. {o}.", "For the moment, {v} {n} {a}.",
    "For example, {v} {n} {a}.", "For the {w}, {v} {n} {a}.", "{o} when you get a {w}.", "{o} as soon as it {w}s.", "Let's {w} and then not {v} {n} {a}.",
    "Regarding {n} {b}, {v} {n} {a}.", "{o}. Thanks, but no.", "{o}. Thanks, Not", "{o} (twice).", "{o}: thrice.", "{o} *twice*.", "{o} **Thrice**", "{o} ({v}ed).",
)  # fmt: skip


@pytest.mark.parametrize("trade", TRADES, ids=lambda one: one[0])
def test_a_reason_or_a_remark_that_may_take_the_order_back_asks(trade: tuple[str, str, str]) -> None:
    words = [{"w": one, "t": f"the {one} {made_up()}s"} for one in (made_up(), made_up())]
    prompts = [filled(form, trade, **told) for form, told in product(HELD, words)]
    assert [one for one in prompts if passes(one, trade)] == []


@pytest.mark.parametrize("trade", TRADES, ids=lambda one: one[0])
@pytest.mark.parametrize("form", ["{o} twice.", "{o} thrice.", "Please {v} {n} {a} twice and then stop."])
def test_a_deletion_that_is_ordered_more_than_once_asks(trade: tuple[str, str, str], form: str) -> None:
    assert passes(filled("{o} once.", trade), trade)
    assert trade[2] != "deletion" or not passes(filled(form, trade), trade)
    assert trade[2] == "deletion" or passes(filled("{o} twice.", trade), trade)


@pytest.mark.parametrize("trade", TRADES, ids=lambda one: one[0])
def test_what_a_reason_names_is_never_what_the_order_falls_on(trade: tuple[str, str, str]) -> None:
    forms = (
        "{o} because {b} is {w}.",
        "{o} since it {w}s {b}.",
        "{o}. It is done, {b}.",
        "Since {b} is {w}, {v} {n} {a}.",
    )
    assert [one for form in forms if passes(one := filled(form, trade, w=made_up()), trade, "QX-32")] == []


def test_what_is_idle_is_blanked_out_in_place_and_never_within_quotation_marks() -> None:
    text = 'Say "1. *done* right away" right away.\n1. *Go*, as well as X-1'
    bare = text.replace(quoted := '"1. *done* right away"', " " * len(quoted))
    own, left = without_idle(text, bare)
    assert len(own) == len(left) == len(text)
    assert own.split() == ["Say", '"1.', "*done*", "right", 'away"', ".", "Go", ",", "and", "X-1"]


@pytest.mark.parametrize("argument", ["ticket", "ticket_number", "ticket_id", "number", "id"])
@pytest.mark.parametrize("prompt", ["Close ticket 31.", "Close #31.", "Close ticket #31.", "Close tickets 31 and 32."])
def test_a_number_in_the_kind_of_its_thing_binds_the_argument_that_is_called_by_the_thing(
    prompt: str, argument: str
) -> None:
    made = declared(
        "close_ticket", "", parameters(**{argument: {"type": "integer"}}), effect="write", asks=["close"], stakes="none",
        control_args={argument: "number:ticket"}, repeat="target",
    )  # fmt: skip
    assert start(prompt, [made]).verdict_on("c", "close_ticket", {argument: 31}).is_allowed
    for other in (
        "Close case 31.",
        "Close ticket 3 in 31 days.",
        *(["Close 31 tickets."] if "ticket" in argument else []),
    ):
        assert not start(other, [made]).verdict_on("c", "close_ticket", {argument: 31}).is_allowed, other


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "object", "properties": {}, "additionalProperties": True},
                                    {"type": "object", "properties": {"page": {"type": "integer"}}}])  # fmt: skip
@pytest.mark.parametrize("stakes", ["none", "money", "deletion"])
def test_an_argument_that_no_schema_names_is_undeclared_of_a_read_too(schema: JsonObject, stakes: str) -> None:
    look = declared("list_crates", "", schema, effect="read", network=False, stakes=stakes)
    verdict = start("List the crates.", [look]).verdict_on("c", "list_crates", {"where": "C-1"})
    assert verdict.code == "UNDECLARED"
    assert start("List the crates.", [look]).verdict_on("c", "list_crates", {}).is_allowed
