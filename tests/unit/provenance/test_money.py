"""Which numbers of the words can be meant as an amount of money, and what the gate makes of them where money moves."""

import pytest

from remit.provenance.gate import Gate
from remit.provenance.gate_verdict import Decision, GateVerdict, Objection
from remit.provenance.words.user_words import words_of_user
from tests.unit.provenance.office import declared, opened, parameters

ACCOUNT = "DE89370400440532013000"


def paid(prompt: str, amount: float) -> GateVerdict:
    return opened(prompt).verdict_on("a", "pay", {"account": ACCOUNT, "amount": amount, "purpose": ""})


@pytest.mark.parametrize(
    ("prompt", "amounts"),
    [
        ("Pay 40 to Ann", ["40"]),
        ("Pay Ann 75.50, she paid for the train", ["75.5"]),
        ("Pay €40 and 30 EUR and 20 euros and 5$", ["40", "30", "20", "5"]),
        ("Pay EUR 40", ["40"]),
        ("Pay ten euros", ["10"]),
        ("Pay 50 cents", ["0.5"]),
        ("Pay 1,250.00 EUR", ["1250"]),
        ("Pay the amount of 40", ["40"]),
        ("Pay 40. House 7 is mine", ["40"]),
        ("Pay for the flat. 40 is due", ["40"]),
        ("Set up a standing order: 30 to Ann", ["30"]),
    ],
)
def test_a_number_may_be_an_amount(prompt: str, amounts: list[str]) -> None:
    assert [one.key for one in words_of_user([prompt]).amounts] == amounts


@pytest.mark.parametrize(
    "prompt",
    [
        "Pay invoice 77120",
        "Pay invoice no. 77120",
        "Pay it, the invoice no. is 77120",
        "Pay it, invoice number: 77120",
        "Pay order #12",
        "Pay with the card ending in 9023",
        "Pay for flat 3, house 4, room 5 and page 6",
        "Pay 12 Baker Street",
        "Pay it, 24103 Kiel",
        "Pay for 3 tickets and 4 people",
        "Pay it on the 5th",
        "Pay it for two of us",
        "Pay it for 12 of us",
        "Pay one of them",
        "Pay 10%",
        "Pay 10 percent of 250",
        "Pay half of the €250",
        "Pay the sum of 12.40 and 8.10",
        "Pay it on 2025-05-01 at 17:30",
        "Pay it, call 0170 123 4567",
        "Pay it, call +49 170 1234567",
        "Pay what I owe since 2019",
        "Pay '40'",
        "Pay it, but not 40",
        "Pay it, the version is 1.2.3",
        "Pay § 5",
    ],
)
def test_a_number_that_belongs_to_something_else_is_no_amount(prompt: str) -> None:
    assert [one.key for one in words_of_user([prompt]).amounts] == []


@pytest.mark.parametrize(
    ("prompt", "amount"),
    [
        (f"Pay 40 to {ACCOUNT}.", 40),
        (f"Pay invoice 77120 to {ACCOUNT}: 91.75 EUR.", 91.75),
        (f"Pay {ACCOUNT} 20€ for 3 tickets.", 20),
        (f"Pay 50 cents to {ACCOUNT}.", 0.5),
    ],
)
def test_the_amount_that_is_meant_passes(prompt: str, amount: float) -> None:
    assert paid(prompt, amount).is_allowed


@pytest.mark.parametrize(
    ("prompt", "amount"),
    [
        (f"Pay invoice 77120 to {ACCOUNT}: 91.75 EUR.", 77120),
        (f"Pay {ACCOUNT} 20€ for 3 tickets, order 17.", 3),
        (f"Pay {ACCOUNT} 20€ for 3 tickets, order 17.", 17),
        (f"Pay 12 EUR to {ACCOUNT}, I have 500 left.", 500),
        (f"Ann paid 36.50. Pay her half of that (18.25) to {ACCOUNT}.", 36.5),
        (f"Pay 50 cents to {ACCOUNT}.", 50),
    ],
)
def test_another_number_of_the_words_is_held_and_the_verdict_says_why(prompt: str, amount: float) -> None:
    verdict = paid(prompt, amount)
    assert (verdict.decision, verdict.code) == (Decision.ASK, Objection.PROVENANCE_UNBOUND)
    assert verdict.reasons == (
        f"PROVENANCE_UNBOUND: amount={amount!r} (the words give this number for something else)",
    )


@pytest.mark.parametrize("amount", [40, 500])
@pytest.mark.parametrize(
    "prompt",
    [
        f"Pay 40 to {ACCOUNT}, I have 500 left.",
        f"I have 500 and 40 left. Pay {ACCOUNT}.",
        f"Pay 40 to {ACCOUNT}. I have 500 left.",
    ],
)
def test_of_several_numbers_that_nothing_marks_none_passes(prompt: str, amount: float) -> None:
    verdict = paid(prompt, amount)
    assert (verdict.decision, verdict.code, verdict.args[1].candidates) == (
        Decision.ASK,
        Objection.RECORD_AMBIGUOUS,
        2,
    )
    assert "one of 2 numbers that may be the amount" in verdict.reasons[0]


def test_a_number_of_nowhere_is_unbound_as_ever() -> None:
    assert paid(f"Pay 40 to {ACCOUNT}.", 41).reasons == ("PROVENANCE_UNBOUND: amount=41",)


RENT = declared(
    "rent_car",
    "Rents a car.",
    parameters(city="string", days="integer", amount="string", rate="number", account="integer", account_id="integer"),
    effect="external",
    stakes="money",
)


def rented(prompt: str, **arguments: object) -> dict[str, str]:
    gate: Gate = opened(prompt, tools=[{**RENT, "parameters": {**RENT["parameters"], "required": []}}])
    verdict = gate.verdict_on("a", "rent_car", arguments)
    return {one.path: one.bound_by for one in verdict.args}


def test_a_number_is_bound_under_the_name_of_its_argument() -> None:
    prompt = "Rent a car in Rome for 2 days with account 77120, 40 EUR at 5 percent."
    assert rented(prompt, days=2) == {"days": "words"}
    assert rented(prompt, days=40) == {"days": ""}
    assert rented(prompt, days=77120) == {"days": ""}
    assert rented(prompt, account=77120) == {"account": "words"}
    assert rented(prompt, account_id=77120) == {"account_id": "words"}
    assert rented(prompt, rate=5) == {"rate": "words"}


def test_an_amount_that_is_written_as_a_text_is_an_amount() -> None:
    prompt = "Rent a car for 40 EUR, invoice 77120."
    assert rented(prompt, amount="40") == {"amount": "words"}
    assert rented(prompt, amount="77120") == {"amount": ""}


def test_a_unit_that_the_kind_demands_is_demanded_of_an_amount() -> None:
    tool = {**RENT, "control_args": {"amount": "number:EUR"}}
    gate = opened("Rent it for $40 or €50.", tools=[tool])
    assert [gate.verdict_on(None, "rent_car", {"amount": number}).args[0].bound_by for number in (40, 50)] == [
        "",
        "words",
    ]


def test_a_number_that_is_called_something_binds_nothing_else_where_no_money_moves_either() -> None:
    tool = {**RENT, "stakes": "none"}
    gate = opened("Rent a car, order 17, for 2 days or 5.", tools=[tool])
    bound = [gate.verdict_on(None, "rent_car", {"days": number}).args[0].bound_by for number in (17, 2, 5)]
    assert bound == ["", "words", "words"]


def test_an_amount_of_a_trusted_field_needs_no_words() -> None:
    bills = declared(
        "find_bill",
        "Finds a bill.",
        parameters(name="string"),
        effect="read",
        result={"[].amount": "number", "[].account": "iban", "[].name": "label"},
    )
    pay = next(tool for tool in opened("x").tools_json if tool["name"] == "pay")
    gate = opened("Pay the amount and account of the bill 'Power June', room 12.", tools=[bills, pay])
    gate.verdict_on("a", "find_bill", {"name": "Power June"})
    gate.observe("a", "find_bill", [{"amount": 91.75, "account": ACCOUNT, "name": "Power June"}])
    call = {"account": ACCOUNT, "amount": 91.75, "purpose": ""}
    assert gate.verdict_on("b", "pay", call).args[1].bound_by == "field:named"
