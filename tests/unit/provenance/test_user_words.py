"""What binds in the user's words: whole atoms, quotations, capitalised phrases, runs of words. Never a part."""

from decimal import Decimal

import pytest

from remit.provenance.words.user_words import words_of_user


@pytest.mark.parametrize(
    ("prompt", "value"),
    [
        ("Mail bob@corp.example.", "bob@corp.example"),
        ("Open 'the big plan', now", "the big plan"),
        ('Open "plan," now', "plan"),
        ("Open \u201cplan\u201d now", "plan"),
        ("Invite Dora Lee's friend", "Dora Lee"),
        ("Invite Dora Lee's friend", "Invite Dora Lee"),
        ("Ask the Bank of America now", "Bank of America"),
        ("Post to #general", "general"),
        ("Post to #general", "#general"),
        ("Post to general", "#general"),
        ("Read a.example/x", "https://a.example/x"),
        ("Open docs/plan.txt", "docs/plan.txt"),
        ("Restart payments-api", "payments-api"),
        ("Play blue in green tonight", "blue in green"),
        ("Paris is nice", "Paris"),
        ("Pay (DE89 3704 0044 0532 0130 00)", "DE89370400440532013000"),
        ("Mail a@b.example;c@d.example", "c@d.example"),
        ("Send Ann Lee mail", "Ann Lee"),
    ],
)
def test_a_whole_atom_or_phrase_binds(prompt: str, value: str) -> None:
    assert words_of_user([prompt]).span_of(value) is not None


@pytest.mark.parametrize(
    ("prompt", "value"),
    [
        ("Mail bob@corp.example.", "corp.example"),
        ("Mail bob@corp.example.", "bob"),
        ("Open docs/plan.txt", "plan.txt"),
        ("Open docs/plan.txt", "docs"),
        ("Invite Dora Lee Stone", "Dora Lee"),
        ("Invite Dora Lee Stone", "Lee Stone"),
        ("Invite Dora Lee Stone", "Dora"),
        ("Open 'the big plan' now", "plan"),
        ("Open 'the big plan' now", "big plan"),
        ("Restart payments-api", "payments"),
        ("Restart payments", "payment"),
        ("invite dora", "Dora"),
        ("Invite Dora", "dora"),
        ("Tell me all about it", "me"),
        ("Tell me all about it", "all"),
        ("Read https://a.example/x", "https://a.example"),
        ("Read https://a.example/x", "https://a.example/xy"),
        ("anything", ""),
        ("Read the secret plan", "https://secret"),
        ("Mail bob@corp.example", "@bob@corp.example"),
        ("Post to #general", "##general"),
        ("go on 2024-05-01 at 10:30", "2024"),
        ("Say 'it'.", "#"),
    ],
)
def test_a_part_a_longer_form_or_a_function_word_does_not_bind(prompt: str, value: str) -> None:
    assert words_of_user([prompt]).span_of(value) is None


@pytest.mark.parametrize(
    ("prompt", "number"),
    [
        ("pay 1,250.50", "1250.5"),
        ("pay 1.250,50 EUR", "1250.5"),
        ("pay 12,5", "12.5"),
        ("pay $40.", "40"),
        ("pay 40 \u20ac", "40"),
        ("three of them", "3"),
        ("file 13: read it", "13"),
    ],
)
def test_a_number_binds_by_its_size_in_any_spelling(prompt: str, number: str) -> None:
    assert words_of_user([prompt]).number_said(Decimal(number), "number", "amount") is not None


def test_units_and_percentages_keep_numbers_apart() -> None:
    words = words_of_user(["pay $40 and 10%"])
    assert words.number_said(Decimal(40), "number:USD", "amount") is not None
    assert words.number_said(Decimal(40), "number:EUR", "amount") is None
    assert words.number_said(Decimal(10), "number", "amount") is None
    assert words.number_said(Decimal(10), "percent", "amount") is not None
    assert words.number_said(Decimal(10), "number", "interest_rate") is not None


def test_the_users_text_is_owned_as_whole_words_with_its_quotations() -> None:
    words = words_of_user(["Write 'I am late' to Bob\nand say sorry."])
    assert all(words.owns(text) for text in ("", "I am late", "and say sorry", "to Bob and say"))
    assert not any(words.owns(text) for text in ("late today", "am lat", "nd say"))


def test_a_plain_word_is_a_name_where_it_is_addressed() -> None:
    words = words_of_user(["Please assign it to priya, not the random one; give room kitchen light."])
    assert words.is_name("priya")
    assert not words.is_name("random")
    assert words.is_name("kitchen", {"room"})
    assert not words.is_name("nobody")


def test_a_noun_is_narrowed_by_what_follows_it() -> None:
    assert words_of_user(["all old files from March"]).is_narrowed(0)
    assert not words_of_user(["all files and more"]).is_narrowed(0)
    assert not words_of_user(["all files. From here on"]).is_narrowed(0)
    assert not words_of_user(["all one two three four five six seven from"]).is_narrowed(0)


def test_long_quotations_name_nothing_and_later_messages_count() -> None:
    words = words_of_user(["Say '" + "word " * 60 + "' now.", "And mail bob@corp.example."])
    assert words.span_of("bob@corp.example") is not None
    assert not any(value.startswith("word") for value in words.strings)
