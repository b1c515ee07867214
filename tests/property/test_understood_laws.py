"""Laws of understanding: a clause binds only where it is understood whole. Tools, values and sentences are made of grammars."""

from itertools import product
from typing import Any

import pytest

from remit.core.record import JsonObject
from remit.provenance.gate import start
from tests.unit.provenance.office import declared, looked_up, parameters

# A verb, a thing with an id, what it is kept in with an id, and a number that it has.
TRADES = (
    ("erase", "sheet", "S-14", "binder", "B-3", "width"),
    ("scrap", "wagon", "W-208", "depot", "D-77", "mileage"),
    ("void", "voucher", "VC-5", "campaign", "CP-12", "worth"),
    ("retract", "claim", "CL-31", "policy", "PL-6", "premium"),
    ("uproot", "tree", "T-402", "orchard", "OR-9", "height"),
)
STAKES = ("none", "deletion")
NAMES = ("Amber Fox", "Basalt Owl", "Cobalt Elk")


def tool(name: str, kinds: JsonObject, schemas: JsonObject | None = None, **more: Any) -> JsonObject:
    made = {argument: {"type": "string"} for argument in kinds} | (schemas or {})
    return declared(name, "", parameters(**made), **{"effect": "external", "control_args": kinds, **more})


def passes(prompt: str, made: JsonObject, **arguments: Any) -> bool:
    return start(prompt, [made]).verdict_on("c", made["name"], arguments).is_allowed


def of_trade(verb: str, thing: str, stakes: str) -> JsonObject:
    return tool(f"{verb}_{thing}", {f"{thing}_id": f"id:{thing}"}, stakes=stakes, repeat="target")


def on_listing(prompt: str, trade: tuple[str, ...], stakes: str, wanted: int = 1) -> bool:
    """Whether the effect falls on one of three records, of which the second has the greatest number."""
    verb, thing, _, _, _, field = trade
    result = {"[].id": f"id:{thing}", "[].name": "label", f"[].{field}": "number", "[].state": "label"}
    look = declared(f"list_{thing}s", "", parameters(), effect="read", network=False, reads="public", result=result)
    act = of_trade(verb, thing, stakes)
    gate = start(prompt, [look, act])
    states = ("Fresh", "Stale", "Fresh")
    records = [
        {"id": f"x-{place}", "name": name, field: number, "state": state}
        for place, (name, number, state) in enumerate(zip(NAMES, (10, 90, 60), states, strict=True))
    ]
    looked_up(gate, look["name"], {}, records)
    return gate.verdict_on("c", act["name"], {f"{thing}_id": f"x-{wanted}"}).is_allowed


def said(form: str, trade: tuple[str, ...]) -> str:
    verb, thing, value, holder, place, field = trade
    told = form.format(V=verb, v=verb, T=thing, I=value, H=holder, J=place, F=field, N=NAMES[1])
    return told[:1].upper() + told[1:]


def leaks(forms: tuple[str, ...], of: Any) -> list[str]:
    return [
        prompt
        for trade, stakes, form in product(TRADES, STAKES, forms)
        if of(prompt := said(form, trade), trade, stakes)
    ]


def test_what_holds_a_thing_is_never_taken_for_the_thing() -> None:
    forms = ("{V} {T} {I} in {H} {J}.", "{V} {I} of {J}.", "{V} the lining of {H} {J}.", "{V} {T} {I} inside {J}.",
             "in {J}, {v} {I}.", "open {J} and {v} {I} there.", "{V} the {T} in {J}.", "{V} the first half of {H} {J}.")  # fmt: skip

    def holder_goes(prompt: str, trade: tuple[str, ...], stakes: str) -> bool:
        verb, _, _, holder, place, _ = trade
        made = tool(f"{verb}_{holder}", {f"{holder}_id": f"id:{holder}"}, stakes=stakes, asks=[verb])
        loose = tool(f"{verb}_object", {"object_id": "id"}, stakes=stakes, asks=[verb])
        return passes(prompt, made, **{f"{holder}_id": place}) or passes(prompt, loose, object_id=place)

    assert leaks(forms, holder_goes) == []
    folders = ("/srv/logs", "Ledgers", "old/2019")
    made = tool("erase_path", {"path": "path"}, stakes="deletion", asks=["erase"])
    for folder, form in product(
        folders, ("Erase {} in {}.", "Erase the file {} from {}.", "Erase {} in my {} folder.")
    ):
        assert not passes(form.format("march.log", folder), made, path=folder)
    for trade in TRADES:
        member = said("{V} {T} {I} in {H} {J}.", trade)
        assert passes(member, of_trade(trade[0], trade[1], "deletion"), **{f"{trade[1]}_id": trade[2]})


def test_an_end_of_an_order_is_the_record_only_where_nothing_else_is_said_of_it() -> None:
    forms = ("{V} the {T} with the second highest {F}.", "{V} the {T} with nearly the highest {F}.",
             "{V} the {T} with the highest {F} besides {N}.", "{V} the fresh {T} with the highest {F}.",
             "{V} the {T} right of the one with the highest {F}.", "{V} the third highest {T}.",
             "{V} the {T} with the highest {F} under 70.", "{V} a {T} lacking the highest {F}.",
             "{V} the neighbour of the {T} with the highest {F}.")  # fmt: skip
    assert leaks(forms, on_listing) == []
    assert all(on_listing(said("{V} the {T} with the highest {F}.", trade), trade, "deletion") for trade in TRADES)


def test_a_name_picks_its_record_only_from_the_clause_that_orders() -> None:
    forms = ("{V} the {T} beside {N}.", "{V} the {T} praised by {N}.", "{V} the {T} that preceded {N}.",
             "{V} the {T} newer than {N}.", "{V} the {T} resembling {N}.", "inform {N}. {V} the {T}.",
             "glance at {N} and {v} the {T}.", "{N} is fine. {V} a {T}.", "{V} all {T}s. Never {N}.",
             "{V} all {T}s. {N} remains.", "{N} remains. {V} all {T}s.", "{V} all {T}s. Spare {N}.",
             "{V} the {T} for {N}.", "{V} the {T} from {N}.", "{V} the {T} by {N}.", "{V} the {T} and tell {N}.",
             "{V} all {T}s, {N} remains.", "we still want {N}. {V} every {T}.")  # fmt: skip
    assert leaks(forms, on_listing) == []
    for trade, form in product(TRADES, ("{V} the {T} '{N}'.", "find the {T} '{N}' and {v} it.")):
        assert on_listing(said(form, trade), trade, "deletion"), said(form, trade)


def test_a_value_binds_in_the_role_of_its_preposition() -> None:
    send = tool("remit_funds", {"to_account": "id:account", "amount": "money:major"}, {"amount": {"type": "number"}},
                stakes="money", asks=["send", "remit"])  # fmt: skip
    haul = tool("haul_crate", {"crate_id": "id:crate", "bay": "id:bay"}, stakes="none", asks=["haul"])
    note = tool(
        "post_note", {"to": "email"}, {"text": {"type": "string"}}, payload_args=["text"], stakes="none", asks=["post"]
    )
    for way in ("from", "out of", "charging", "off", "owned by", "on behalf of"):
        assert not passes(f"Send 35 EUR {way} K-71.", send, to_account="K-71", amount=35), way
    for way in ("from", "out of", "anywhere but", "away from", "past", "to the bay facing", "for the sake of"):
        assert not passes(f"Haul crate C-8 {way} Y-2.", haul, crate_id="C-8", bay="Y-2"), way
    for way in ("from", "on behalf of", "about", "in the name of", "drafted by", "to everyone but"):
        prompt = f'Post a note "Hi" {way} nia@corp.example.'
        assert not passes(prompt, note, to="nia@corp.example", text="Hi"), way
    assert passes("Send 35 EUR to K-71.", send, to_account="K-71", amount=35)
    assert passes("Haul crate C-8 from Y-1 to Y-2.", haul, crate_id="C-8", bay="Y-2")
    assert passes('Post a note "Hi" to nia@corp.example.', note, to="nia@corp.example", text="Hi")


def test_conditions_alternatives_and_neighbours_are_left_over() -> None:
    forms = ("{V} the {T} beside {I}.", "{V} the {T} that succeeded {I}.", "{V} {I} when Ada nods.", "{V} {I} with Ada's blessing.",
             "{V} {I} in case it rains.", "{V} {I} or {J}.", "{V} {I}, no, {J}.", "{V} {I}, hold on, {J}.", "{V} {J} to shield {I}.",
             "{V} {J}. {I} is good.", "{V} {I}. Strike that, {J}.", "as an example, {v} {I}.", "theoretically, {v} {I}.",
             "{V} whichever of {I} and {J} is worse.", "{V} {I} subject to review.", "{V} {I} upon Ada's word.")  # fmt: skip
    for trade, stakes, form in product(TRADES, STAKES, forms):
        verb, thing, value, _, _, _ = trade
        assert not passes(said(form, trade), of_trade(verb, thing, stakes), **{f"{thing}_id": value}), said(form, trade)
    plain = (
        "{V} {I}.",
        "please {v} the {T} {I} now.",
        "could you {v} {T} {I}?",
        "{T} {I} is broken. {V} it.",
        "{V} {I} and tell me.",
    )
    for trade, form in product(TRADES, plain[:4]):
        verb, thing, value, _, _, _ = trade
        assert passes(said(form, trade), of_trade(verb, thing, "deletion"), **{f"{thing}_id": value}), said(form, trade)


@pytest.mark.parametrize("lead", ["Whose dialect is this?", "What is the mood of this?", "Is this proper Dutch?", "Polish the phrasing.\n",
                                  "What style is this?", "Tidy the commas.\n"])  # fmt: skip
def test_what_stands_behind_a_question_about_a_text_is_that_text(lead: str) -> None:
    for trade in TRADES:
        verb, thing, value, _, _, _ = trade
        assert not passes(
            f"{lead} {verb.title()} {thing} {value}.", of_trade(verb, thing, "none"), **{f"{thing}_id": value}
        )


def test_a_choice_is_made_by_the_clause_that_orders_and_by_nothing_else_in_it() -> None:
    admit = tool("admit_person", {"person": "who:user"}, {"level": {"enum": ["view", "edit", "owner"]}, "mode": {"enum": ["r", "w", "x"], "default": ""}},
                 stakes="rights", asks=["admit", "give access"])  # fmt: skip
    held = ("Admit Ines as the owner was.", "Admit Ines to what Raf may edit.", "Admit Ines with the reverse of view access.",
            "Admit Ines with more than view access.", "Admit Ines; she has to edit plenty.", "Admit Ines until the owner returns.")  # fmt: skip
    for prompt, level in product(held, ("view", "edit", "owner")):
        assert not passes(prompt, admit, person="Ines", level=level), prompt
    assert passes("Admit Ines with view access.", admit, person="Ines", level="view")
    allow = tool(
        "allow_person",
        {"person": "email"},
        {"perm": {"enum": ["r", "w", "x"]}},
        stakes="rights",
        asks=["allow", "give"],
    )
    for word, perm in (("read", "r"), ("write", "w"), ("execute", "x")):
        assert passes(f"Give ines@corp.example {word} permissions.", allow, person="ines@corp.example", perm=perm)
        assert not passes("Give ines@corp.example rights to the x axis.", allow, person="ines@corp.example", perm=perm)


def test_a_number_binds_only_as_it_stands() -> None:
    send = tool("remit_funds", {"to_account": "id:account", "amount": "money:major"}, {"amount": {"type": "number"}},
                stakes="money", asks=["remit"])  # fmt: skip
    blurred = ("55 out of 70 EUR", "70 per cent EUR", "55 of the 70 EUR", "3 x 70 EUR", "3*70 EUR", "thrice 70 EUR", ">70 EUR",
               "nearly 70 EUR", "EUR 70 per guest", "€70 below the quote", "between 60 and 70 EUR", "up to 70 EUR", "70 or 80 EUR")  # fmt: skip
    for amount in blurred:
        assert not passes(f"Remit {amount} to K-71.", send, to_account="K-71", amount=70), amount
    for amount in ("70 EUR", "€70", "EUR 70", "70 euros", "€0.07k"):
        assert passes(f"Remit {amount} to K-71.", send, to_account="K-71", amount=70), amount


def test_what_prepares_an_order_passes_with_it() -> None:
    load = tool("download_file", {"url": "url", "path": "path"}, asks=["download"], stakes="none")
    for name, folder in product(("create_folder", "make_directory", "mkdir"), ("/srv/raw", "Ledgers")):
        make = tool(name, {"path": "path"}, asks=["create"], stakes="none")
        for way in ("to the folder", "into the new folder"):
            gate = start(f"Download https://host.example/m.csv {way} {folder}.", [load, make])
            assert not gate.verdict_on("x", name, {"path": "/etc"}).is_allowed
            gate = start(f"Download https://host.example/m.csv {way} {folder}.", [load, make])
            assert gate.verdict_on("a", name, {"path": folder}).is_allowed
            call = {"url": "https://host.example/m.csv", "path": f"{folder}/m.csv"}
            assert gate.verdict_on("b", "download_file", call).is_allowed


def test_few_words_around_an_order_change_nothing() -> None:
    for trade, lead in product(
        TRADES, ("Completely {}.", "Task: {}.", "Today: {}.", "I need one thing: {}.", "Two things: {}.")
    ):
        verb, thing, value, _, _, _ = trade
        order = f"{verb} {thing} {value}"
        assert passes(lead.format(order), of_trade(verb, thing, "deletion"), **{f"{thing}_id": value}), lead
    pay = tool(
        "pay_person",
        {"person": "who:name", "amount": "money:major"},
        {"amount": {"type": "number"}},
        stakes="money",
        asks=["pay"],
    )
    for prompt in ("Pay Ines 40 EUR.", "Pay Ines 40 EUR for invoice 812.", "Pay EUR 40 to Ines."):
        assert passes(prompt, pay, person="Ines", amount=40), prompt
    stay = tool(
        "prolong_stay", {"stay_id": "id:stay", "nights": "number:night"}, {"nights": {"type": "integer"}}, stakes="none"
    )
    assert passes("Prolong stay 812 by 40 nights.", stay, stay_id="812", nights=40)
    rows = tool(
        "copy_rows",
        {"table": "id:table", "limit": "number"},
        {"limit": {"type": "integer", "default": 0}},
        stakes="none",
        asks=["copy"],
    )
    assert passes("Copy the first 20 rows of table t-4.", rows, table="t-4", limit=20)
    assert not passes("Copy the first 20 rows of table t-4.", rows, table="t-4")
    scrap = tool("scrap_host", {"host_id": "id:host"}, {"wipe": {"type": "boolean", "default": False}}, stakes="none")
    assert passes("Scrap h-12 and wipe it.", scrap, host_id="h-12", wipe=True)
    assert not passes("Scrap h-12 and wipe your nose.", scrap, host_id="h-12", wipe=True)
    enter = tool("enter_code", {"code": "code"}, asks=["enter"], stakes="none")
    inbox = declared("read_inbox", "", parameters(), effect="read", network=False, author="from")
    gate = start("Enter the one-time code from the mail.", [enter, inbox])
    looked_up(gate, "read_inbox", {}, [{"from": "a@x.example", "body": "Your code is 481516."}])
    assert gate.verdict_on("c", "enter_code", {"code": "481516"}).is_allowed


def test_a_label_in_small_letters_is_meant_where_it_is_all_that_an_order_falls_on() -> None:
    fields = {"[].sku": "id:product", "[].name": "label"}
    look = declared("list_products", "", parameters(), effect="read", network=False, reads="public", result=fields)
    buy = tool("buy_product", {"sku": "id:product"}, stakes="money", asks=["buy"], repeat="target")
    for prompt, names, found in (
        ("Buy a kettle.", ("Kettle", "Mug"), [0]),
        ("Buy the garden hose.", ("Mug", "Garden Hose"), [1]),
        ("Buy a kettle.", ("Kettle A", "Kettle B"), []),
        ("Buy a kettle.", ("Kettle", "Kettle Pro"), []),
        ("Buy a kettle unlike the mug.", ("Kettle", "Mug"), []),
        ("Ask for a kettle.", ("Kettle", "Mug"), []),
    ):
        records = [{"sku": f"p-{place}", "name": name} for place, name in enumerate(names)]
        bought = []
        for record in records:
            gate = start(prompt, [look, buy])
            looked_up(gate, "list_products", {}, records)
            if gate.verdict_on("c", "buy_product", {"sku": record["sku"]}).is_allowed:
                bought.append(int(record["sku"][2:]))
        assert bought == found, prompt


def test_a_verdict_names_the_word_that_was_not_understood() -> None:
    verdict = start("Erase sheet S-14 unless it rains.", [of_trade("erase", "sheet", "none")])
    assert not verdict.verdict_on("c", "erase_sheet", {"sheet_id": "S-14"}).is_allowed
    gate = start("Erase sheet S-14 pending review.", [of_trade("erase", "sheet", "none")])
    assert gate.verdict_on("c", "erase_sheet", {"sheet_id": "S-14"}).reasons == (
        "PROVENANCE_UNBOUND: 'pending' is not understood",
    )


def test_orders_one_after_the_other_are_each_understood_alone() -> None:
    write = tool(
        "send_note", {"to": "email"}, {"text": {"type": "string"}}, payload_args=["text"], stakes="none", asks=["write"]
    )
    sheet = of_trade("erase", "sheet", "deletion")
    for prompt in ("Write to ann@corp.example. Erase sheet S-14.", "Write ann@corp.example\n\nErase sheet S-14."):
        assert start(prompt, [write, sheet]).verdict_on("c", "erase_sheet", {"sheet_id": "S-14"}).is_allowed, prompt
    rotate = tool("rotate_key", {"to": "email", "key": "id:key"}, stakes="none")
    assert passes("Rotate key K-4 to ann@corp.example.", rotate, to="ann@corp.example", key="K-4")
    # Another verb governs the address, and no tool has that verb.
    assert not passes("Rotate key K-4 and tell ann@corp.example.", rotate, to="ann@corp.example", key="K-4")
    gate = start("Erase sheet S-14 and then write to Ann.", [write, sheet])
    gate.hear("Ann")
    assert gate.verdict_on("c", "erase_sheet", {"sheet_id": "S-14"}).is_allowed
