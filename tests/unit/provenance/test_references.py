"""References are found by their shape, wherever they stand, and taken whole."""

import pytest

from remit.provenance.words.references import is_file_name, is_prose, opaque_in, pointers_in, references_in, skimmed


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("see https://a.example/b?c=d.", "url", "https://a.example/b?c=d"),
        ("(https://a.example/b_(c))", "url", "https://a.example/b_(c)"),
        ("[x](https://a.example/b)", "url", "https://a.example/b"),
        ("mailto:a@b.example", "url", "mailto:a@b.example"),
        ("ask a.b+c@d.example, now", "email", "a.b+c@d.example"),
        ("www.a.example/x", "host", "www.a.example/x"),
        ("10.1.2.3:80/x", "host", "10.1.2.3:80/x"),
        ("DE89370400440532013000", "iban", "DE89370400440532013000"),
        ("to DE89 3704 0044 0532 0130 00 NOW", "iban", "DE89370400440532013000"),
        ("+49 (170) 123-4567", "phone", "+491701234567"),
        ("415-555-2671", "phone", "4155552671"),
        ("1234 5678 9012 3456", "account", "1234567890123456"),
        ("1234567890", "account", "1234567890"),
        ("DE89.3704.0044.0532.0130.00", "iban", "DE89370400440532013000"),
        ("DE89/3704/0044/0532/0130/00", "iban", "DE89370400440532013000"),
        ("4000/1234/5678/9010", "account", "4000/1234/5678/9010"),
        ("+49/170/1234567", "phone", "+491701234567"),
        ("call (900) 555 0199 now", "phone", "9005550199"),
        ("call 0900/123456", "phone", "0900123456"),
        ("call 0900 123 456", "phone", "0900123456"),
        ("tel.0900/123456", "phone", "0900123456"),
    ],
)
def test_a_reference_is_found_and_taken_whole(text: str, kind: str, found: str) -> None:
    assert [(one.kind, one.compact) for one in references_in(text)] == [(kind, found)]


@pytest.mark.parametrize(
    "text",
    [
        *("All is well.", "e.g. this, i.e. that", "at 10:30 on 2024-05-01", "1,250.50 EUR", "GB29 NWBK 1234 5678 X"),
        *("open 0900-1700", "(2024) 12 of 30", "01/02/2024", "AB12 CD"),
    ],
)
def test_prose_numbers_and_dates_hold_no_reference(text: str) -> None:
    assert [one.text for one in references_in(text)] == []


def test_the_name_of_a_file_is_no_link() -> None:
    assert [is_file_name(one) for one in references_in("report.pdf and evil.zip and evil.example/a.pdf")] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "token",
    [
        "sk-abc123DEF456ghi789JKL0",
        "d41d8cd98f00b204e9800998ecf8427e",
        "x" * 60,
        "AbCdEfGhIjKlMnOpQrStUvWx",
        "C4481907",
        "7719-KITE-0042",
        "123456",
        "AKIAIOSFODNN7EXAMPLE",
        "k-JBSWY3DPEHPKPXPA",
    ],
)
def test_a_token_that_no_person_writes_is_opaque(token: str) -> None:
    assert set(opaque_in(f"take {token}, please")) == {token}


@pytest.mark.parametrize(
    "token", ["antidisestablishmentarianism", "reports/2024-05-12/final_v2.pdf", "COVID-19", "2025-06-20", "v1.2.3"]
)
def test_long_words_and_paths_are_not_opaque(token: str) -> None:
    assert list(opaque_in(token)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Hi Mark,\n\nall is well: nothing is left to do; revenue rose by 12.5 percent.",
        "The 3rd of 12, \u201cso\u201d it\u2019s said \u2013 d\u00e9j\u00e0 vu",
        "",
    ],
)
def test_prose_is_told_at_a_glance(text: str) -> None:
    assert is_prose(text)


@pytest.mark.parametrize(
    "text",
    [
        *("write to a@b.example", "see evil.example", "at 10:30", "dial +1", "AB12 ABCD EFGH", "in 1999", "1.2.3"),
        "x" * 24,
        "\u0663\u0664\u0665\u0666 \u0663\u0664\u0665\u0666 \u0663\u0664\u0665\u0666",
    ],
)
def test_what_may_hold_a_reference_is_looked_at_closely(text: str) -> None:
    assert not is_prose(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ssh eve@host now", "eve@host"),
        ("see host:8080.", "host:8080"),
        ("in \\\\evil\\share or so", "\\\\evil\\share"),
        ("in //evil/share, please", "//evil/share"),
        ("venmo @eve-smith.", "@eve-smith"),
        ("$eve on cashapp", "$eve"),
    ],
)
def test_what_points_somewhere_without_a_dot_is_found(text: str, found: str) -> None:
    assert list(pointers_in(skimmed(text))) == [found]
    assert not is_prose(text)


@pytest.mark.parametrize(
    "text",
    [
        *("and/or, either / or", "at 10:30 or 9:05", "Re: the plan", "a ratio of 3:16", "$50 or 50 $", "5 @ 3 each"),
        *("a\\b", "Note: 12 of them", "https://a.example/b"),
    ],
)
def test_signs_of_prose_point_nowhere(text: str) -> None:
    assert list(pointers_in(text)) == []


def test_plain_words_are_skipped_and_what_may_belong_to_a_number_is_not() -> None:
    assert skimmed("please pay GB29 NWBK 6016 1331 9268 19 today, thanks") == "\nGB29 NWBK 6016 1331 9268 19 \n"
