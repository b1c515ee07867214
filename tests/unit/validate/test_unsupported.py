"""Values that an answer states: what is only written otherwise passes, and what nothing supports is named."""

import pytest

from remit.validate.state_words import enums_in
from remit.validate.unsupported import UNSUPPORTED_MAX, AnswerEvidence, numbers_in

BALANCE = '{"balance_cents": 5900, "currency": "EUR"}'
INVOICE = '{"id": "INV-2041", "due": "2026-03-04", "total": "1234.50"}'


@pytest.mark.req("4.35")
@pytest.mark.parametrize(
    ("observed", "said", "answer"),
    [
        (BALANCE, "", "Your balance is \u20ac59.00."),
        (BALANCE, "", "Your balance is about 59 euros."),
        ('{"balance_cents": 5999}', "", "You have roughly \u20ac60."),
        ('{"balance": 1250.5}', "", "The balance is $1,250.50."),
        ('{"balance": 1250.5}', "", "The balance is 1.250,50 EUR"),
        ('{"balance": 1250.5}', "", "The balance is 1\u2019250.50 CHF"),
        ('{"balance": 1250.5}', "", "The balance is $1250, give or take."),
        (INVOICE, "", "Invoice INV-2041 over 1,234.50 is due on March 4, 2026."),
        (INVOICE, "", "Invoice inv 2041 is due on the 4th of March 2026 (04.03.2026, or 04.03.26)."),
        (INVOICE, "", "It is due in March 2026."),
        ("due 4 March 2026", "", "It is due on 2026-03-04."),
        ('{"temp_c": 21.44, "at": "2026-11-16T15:05:00Z"}', "", "It is about 21 degrees at 3:05 pm on Nov. 16."),
        ('{"share": 0.5987}', "", "That is 59.9%."),
        ('{"population": 1234567}', "", "About 1.2 million people, 1.2m in short."),
        ('[{"id": 1}, {"id": 2}, {"id": 7, "tags": ["a"]}]', "", "I found 3 orders:\n1. one\n2) two\n3. three"),
        ("391", "What is 17 * 23?", "17 * 23 = 391"),
        ('{"price": 19.99}', "twenty of them, please", "Each costs $19.99, and you want 20."),
        ("12 passed, 1 failed", "", "One test failed; 12 passed."),
        (
            '{"stock": 5}',
            "",
            "See https://shop.example/items/9912?q=77 for more, step 2 of the guide; we are there 24/7.",
        ),
        ('{"stock": 5}', "", "There are 5:\n```\nfor i in range(10): print(i, 99)\n```"),
        ('{"stock": 5}', "", "All is well with your account."),
        ('{"runs": "v1.2.3"}', "", "It runs v1.2.3"),
        ('{"address": "10.0.0.17"}', "", "It lives at 10.0.0.17."),
        ('{"took": "250ms"}', "", "It took 250 ms."),
        ('{"id": "1234567890123456789012345678"}', "", "The id is 1234567890123456789012345678."),
    ],
)
def test_what_is_only_written_otherwise_is_supported(observed: str, said: str, answer: str) -> None:
    assert AnswerEvidence([observed], [said]).unsupported(answer) == ()


@pytest.mark.req("4.35")
@pytest.mark.parametrize(
    ("observed", "said", "answer", "unsupported"),
    [
        (BALANCE, "", "Your balance is \u20ac1,000,000.", "1,000,000"),
        ('{"balance": 12}', "", "Your balance is 17.", "17"),
        ('{"balance": 1250.5}', "", "The balance is $125.05.", "125.05"),
        (INVOICE, "", "Invoice INV-2042 is due.", "INV-2042"),
        (INVOICE, "", "It is due on April 4, 2026.", "April 4"),
        (INVOICE, "", "It is due on March 5, 2026.", "March 5"),
        ("due in May 2026", "", "It is due in June 2026.", "June 2026"),
        ('{"population": 1234567}', "", "About 2.1 million people.", "2.1"),
        ("391", "What is 17 * 23?", "17 * 23 = 381", "381"),
        ("12 passed, 1 failed", "", "All 13 tests ran.", "13"),
        ('{"stock": 5}', "", "There are 7 left.", "7"),
        ('{"address": "10.0.0.17"}', "", "It lives at 10.0.0.18.", "10.0.0.18"),
        ('{"stock": 5}', "", "Its code is 3f9a2c41.", "3f9a2c41"),
    ],
)
def test_a_value_that_nothing_supports_is_named(observed: str, said: str, answer: str, unsupported: str) -> None:
    assert unsupported in AnswerEvidence([observed], [said]).unsupported(answer)


@pytest.mark.req("4.35")
@pytest.mark.parametrize(
    ("observed", "answer", "unsupported"),
    [
        ('{"status": "suspended"}', "Yes, your account is active.", ("active",)),
        ('{"status": "suspended"}', "No, it is not active: it is suspended.", ()),
        ('{"status": "suspended"}', "Your account isn't active.", ()),
        ('{"active": false}', "Your account is active.", ("active",)),
        ('{"is_active": true}', "Your account is active.", ()),
        ('{"orders": [{"status": "shipped"}]}', "Your order has been delivered.", ("delivered",)),
        ('{"status": "shipped"}', "It was shipped. Once it is delivered, you get a mail.", ()),
        ("The invoice is overdue", "Your invoice is paid.", ("paid",)),
        ('"canceled"', "It was cancelled.", ()),
        ("2 failed", "Everything is passing.", ("passed",)),
        ('{"exit_code": 1, "failed": 3}', "All tests pass.", ("passed",)),
        ('{"returncode": 2}', "The job was successful.", ("succeeded",)),
        ('{"exit_code": 1, "failed": 3}', "No test passed but 3 failed.", ()),
        ('{"exit_code": 0, "failed": 0}', "All tests pass.", ()),
        ('{"status": "closed"}', "The account is not closed.", ("not closed",)),
        ('{"status": "closed"}', "It isn't closed.", ("not closed",)),
        ('[{"status": "closed"}, {"status": "active"}]', "The second is not closed.", ()),
        ('{"note": "it was closed by mistake"}', "It is not closed.", ()),
        ('{"status": "open"}', "Your account is active.", ()),
    ],
)
def test_words_for_a_state_contradict_those_of_their_group(
    observed: str, answer: str, unsupported: tuple[str, ...]
) -> None:
    assert AnswerEvidence([observed], ["Is my account active, paid and delivered?"]).unsupported(answer) == unsupported


@pytest.mark.req("4.35")
def test_words_that_a_result_schema_lists_contradict_each_other() -> None:
    schema = {
        "properties": {"tier": {"enum": ["gold", "silver", "on hold"]}, "n": {"enum": [1, 2]}, "x": [{"enum": []}]}
    }
    enums = [*enums_in(schema)]
    assert ("gold", "silver", "on hold") in enums
    evidence = AnswerEvidence(['{"tier": "silver"}'], enums=enums)
    assert evidence.unsupported("You are a gold member.") == ("gold",)
    assert evidence.unsupported("Your membership is on hold.") == ("on hold",)
    assert evidence.unsupported("You are a silver member, not gold.") == ()


def test_a_schema_that_is_too_deep_lists_nothing_more() -> None:
    schema: object = {"enum": ["a", "b"]}
    for _ in range(50):
        schema = {"items": schema}
    assert [*enums_in(schema)] == []


def test_no_more_values_are_named_than_an_answer_can_be_corrected_by() -> None:
    found = AnswerEvidence(["1"]).unsupported(" ".join(str(1000 + n) for n in range(50)))
    assert len(found) == UNSUPPORTED_MAX


def test_a_number_of_several_readings_keeps_them_and_one_of_none_has_parts() -> None:
    (grouped,) = numbers_in("1.234")
    assert [str(reading) for reading in grouped.readings] == ["1234", "1.234"]
    (dotted,) = numbers_in("04.03.2026")
    assert (dotted.readings, [int(part) for part in dotted.parts]) == ((), [4, 3, 2026])


@pytest.mark.req("4.35")
@pytest.mark.parametrize(
    ("observed", "said", "answer", "unsupported"),
    [
        ('{"in_stock": false}', "Is it in stock?", "Yes, it is in stock.", ("in stock", "Yes")),
        ('{"in_stock": false}', "Is it there?", "It is in stock.", ("in stock",)),
        ('{"in_stock": false}', "Is it in stock?", "No, it is not in stock.", ()),
        ('{"in_stock": false}', "Is it sold out?", "Yes, it is sold out.", ()),
        ('{"is_in_stock": true}', "Is it there?", "It isn't in stock.", ("not in stock",)),
        ('{"approved": false}', "Is my loan approved?", "Yes.", ("Yes",)),
        ('{"approved": "no", "id": 7}', "Is my loan approved?", "**Yes**, certainly.", ("Yes",)),
        ('{"approved": false}', "Well?", "Yes.", ("Yes",)),
        ('{"approved": false, "id": 7}', "Well?", "Yes.", ()),
        ('{"approved": true}', "Is my loan approved?", "No.", ("No",)),
        ('{"approved": true}', "Is my loan not approved?", "No.", ()),
        ('[{"approved": true}, {"approved": false}]', "Is it approved?", "Yes.", ()),
        ('{"default": false, "on": false}', "", "By default it is on.", ()),
        ("no field at all", "Is it approved?", "Yes.", ()),
        ('{"lamps": 3}', "How many lamps?", "There are five lamps.", ("five",)),
        ('{"lamps": 3}', "How many lamps?", "There are five old lamps.", ("five",)),
        ('{"lamps": 3}', "How many lamps?", "There are three lamps.", ()),
        ('{"lamps": 3}', "How many lamps?", "There are two ways to see it.", ()),
    ],
)
def test_yes_and_no_and_numbers_in_words_are_held_against_what_was_observed(
    observed: str, said: str, answer: str, unsupported: tuple[str, ...]
) -> None:
    assert AnswerEvidence([observed], [said]).unsupported(answer) == unsupported


def test_fields_that_nest_too_deep_say_nothing() -> None:
    deep = '{"approved": ' + "[" * 40 + "false" + "]" * 40 + "}"
    assert AnswerEvidence([deep], ["Is it approved?"]).unsupported("Yes.") == ()
