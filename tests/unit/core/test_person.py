"""Names of people: one person under many spellings, and many spellings that no person may use."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.run.person import PERSON_CHARS_MAX, check_person, is_among, is_same_person, look_alike


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("alice", "ALICE"),
        ("alice", "\uff41lice"),
        ("Jose\u0301", "jos\u00e9"),
        ("Stra\u00dfe", "strasse"),
        (" ann  lee ", "Ann\u00a0Lee"),
        ("bob", "bob."),
        ("bob", "(Bob) ,"),
        ("ann lee", "ann lee\u3002"),
    ],
)
def test_two_spellings_of_one_name_are_one_person(one: str, other: str) -> None:
    assert is_same_person(one, other)
    assert is_among(other, ("bob", one))
    assert not is_among("carl", ("bob", one))
    assert look_alike(one, (other,)) == ""


@pytest.mark.parametrize(
    "name",
    [
        "alice",
        "alice@example.com",
        "slack:U0123",
        "Jos\u00e9",
        "\u5c71\u7530\u82b1\u5b50",
        "\u30b9\u30fc\u3055\u3093",
        "\u0434\u043c\u0438\u0442\u0440\u0438\u0439-admin",
        "o'neil",
        "Ann Lee",
    ],
)
def test_names_of_any_one_script_are_fine(name: str) -> None:
    assert check_person(name) == name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("", "is no name"),
        ("   ", "is no name"),
        ("...", "punctuation alone"),
        ("x" * (PERSON_CHARS_MAX + 1), "is no name"),
        ("a\u200blice", "U+200B"),
        ("alice\u202e", "U+202E"),
        ("ali\u00adce", "U+00AD"),
        ("ali\x07ce", "U+0007"),
        ("alice\ufe0f", "U+FE0F"),
        ("alice\u3164", "U+3164"),
        ("alice\u2800", "U+2800"),
        ("ali\u034fce", "U+034F"),
        ("ann\u2028lee", "U+2028"),
        ("\ud800", "U+D800"),
        ("\u0430lice", "CYRILLIC and LATIN"),
        ("\u03b1lice", "GREEK and LATIN"),
    ],
)
def test_a_name_that_hides_something_or_mixes_scripts_is_refused_with_a_code(name: str, says: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_person(name, "by")
    assert refused.value.code == "PERSON_INVALID"
    assert refused.value.message.startswith("by=")
    assert says in refused.value.message
    assert refused.value.message.isascii()


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("\u0441\u043e\u0441\u043e", "coco"),
        ("a1ice", "alice"),
        ("aIice", "alice"),
        ("b0b", "bob"),
        ("rnary", "mary"),
        ("\u03bf\u03c4\u03c4\u03bf", "otto"),
        ("ann_lee", "ann\u2010lee"),
        ("\u1d00lice", "alice"),
        ("a\u029f\u026ace", "alice"),
        ("\u042c\u043e\u042c", "bob"),
        ("\u0397\u0391\u039d\u039d\u0391", "hanna"),
        ("\u13aa\u13b7\u13a9", "amy"),
        ("b0b.", "bob"),
        ("an n", "ann"),
        ("annlee", "Ann Lee"),
    ],
)
def test_a_name_that_is_read_for_a_known_one_is_found_out(name: str, known: str) -> None:
    assert look_alike(name, ("somebody", known)) == known
    assert look_alike(known, (name,)) == name
    assert not is_same_person(name, known)


def test_names_with_and_without_an_accent_are_two_people() -> None:
    assert look_alike("jose", ("jos\u00e9",)) == ""
    assert look_alike("\u0451\u0441\u043e", ("\u00ebco",)) == "\u00ebco"
