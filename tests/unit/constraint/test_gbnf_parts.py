"""Parts of a grammar: how they are written, and what no text can complete is left out."""

import pytest

from remit.constraint.gbnf_parts import (
    EMPTY,
    NOTHING,
    Literal,
    Named,
    OneOf,
    Part,
    choice,
    completed,
    one_of,
    optional,
    repeated,
    sequence,
    written,
)
from remit.constraint.grammar.gbnf import read_gbnf

A, B = Literal("a"), Literal("b")
AB = sequence(Named("x"), Named("y"))


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (Literal('"\\\n\té\U0001f600\x01'), r'"\"\\\n\t\xE9\U0001F600\x01"'),
        (Literal("\u2028"), '"\\u2028"'),
        (OneOf(((0x41, 0x5A), (0x5F, 0x5F), (0xE000, 0x10FFFF))), r"[A-Z\x5F\uE000-\U0010FFFF]"),
        (one_of("]^-"), r"[\x5D\x5E\x2D]"),
        (sequence(A, B, Named("c")), '"ab" c'),
        (sequence(), '""'),
        (sequence(A, choice(B, Named("c"))), '"a" ("b" | c)'),
        (choice(choice(A, B), A), '"a" | "b"'),
        (choice(A, A), '"a"'),
        (optional(A), '"a"?'),
        (repeated(AB, 0, None), "(x y)*"),
        (repeated(A, 1, None), '"a"+'),
        (repeated(A, 2, None), '"a"{2,}'),
        (repeated(A, 2, 2), '"a"{2}'),
        (repeated(A, 2, 3), '"a"{2,3}'),
        (repeated(A, 1, 1), '"a"'),
        (repeated(A, 0, 0), '""'),
        (repeated(optional(A), 2, 2), '("a"?){2}'),
    ],
)
def test_a_part_is_written_as_gbnf(part: Part, text: str) -> None:
    assert written(part) == text
    names = [name for name in ("c", "x", "y") if name in text]
    read_gbnf("\n".join([f"root ::= {text}", *(f'{name} ::= "n"' for name in names)]))


def test_a_repetition_that_ends_before_it_begins_is_nothing() -> None:
    assert repeated(A, 2, 1) == NOTHING
    assert repeated(EMPTY, 3, 4) == EMPTY


def test_what_no_text_can_complete_is_left_out() -> None:
    rules: dict[str, Part] = {
        "root": sequence(A, choice(B, Named("endless")), optional(Named("endless")), repeated(Named("never"), 0, None)),
        "endless": sequence(A, Named("endless")),
        "never": NOTHING,
        "nobody": A,
    }
    assert completed(rules, "root") == {"root": Literal("ab")}


def test_a_root_that_no_text_can_complete_leaves_no_rules() -> None:
    assert completed({"root": sequence(A, Named("root"))}, "root") == {}


def test_rules_that_are_one_another_become_what_any_of_them_may_be() -> None:
    rules: dict[str, Part] = {"root": choice(Named("x"), A), "x": choice(Named("root"), B), "y": Named("x")}
    found = completed(rules, "root")
    assert set(written(found["root"]).split(" | ")) == {'"a"', '"b"'}
    assert set(found) == {"root"}


def test_a_rule_that_comes_back_to_itself_later_stays() -> None:
    rules: dict[str, Part] = {"root": choice(A, sequence(B, Named("root")))}
    assert completed(rules, "root") == rules
