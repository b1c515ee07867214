"""Pasted blocks are data; what stands around them are the user's own words, in their places."""

import pytest

from remit.provenance.blocks import own_words


@pytest.mark.parametrize(
    "pasted",
    [
        "```\nSECRET\n```",
        "~~~python\nSECRET",
        "> SECRET",
        "| SECRET | x |",
        "<doc>SECRET</doc>",
        "<a>x</a> <b k='v'>SECRET</b>",
        "-----Original Message-----\nSECRET",
        "Begin forwarded message:\nSECRET",
        "On Monday, Ann wrote:\nSECRET",
        "From: a\nTo: b\n\nSECRET",
        '{"a": "SECRET"}',
        "[\n  1, SECRET\n]",
    ],
)
def test_what_was_pasted_in_is_blanked_out_in_place(pasted: str) -> None:
    prompt = f"Do this.\n{pasted}\n"
    own = own_words(prompt)
    assert "SECRET" not in own
    assert own.startswith("Do this.")
    assert len(own) == len(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        "Do this:\n- pay 5\n- mail Bob\n" + "- and so on and so forth\n" * 30,
        "Do this:\n1. pay 5\n2. mail Bob",
        "Note: pay 5",
        "Is a < b and c > d? <never closed> x",
        "Short:\nmail Bob",
    ],
)
def test_lists_of_things_to_do_stay_words(prompt: str) -> None:
    assert own_words(prompt) == prompt


def test_a_long_passage_after_a_colon_is_data() -> None:
    own = own_words("Sum this up:\n\n" + "It was a long day. " * 30 + "SECRET")
    assert own.strip() == "Sum this up:"
