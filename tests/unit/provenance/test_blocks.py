"""Pasted blocks are data; what stands around them are the user's own words, in their places."""

import pytest

from remit.provenance.words.blocks import own_words
from remit.provenance.words.user_words import words_of_user


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
        "```\nMinutes.\n```\nSECRET\n```\nEnd.\n```",
        "```\nMinutes.\n```\nMore:\n```text\nSECRET",
        "See ```\nMinutes. SECRET\n```",
        "<doc>\nMinutes.\n</doc>\nSECRET\n<doc>\n</doc>",
        "<Doc>SECRET</DOC>",
        "<doc>\nSECRET\n```\n</doc>",
        '"""\nSECRET\n"""',
        "'''\nSECRET\n''' and more",
        "---\nSECRET\n---",
        "***\nMinutes.\n***\nSECRET\n***",
        "Read this:\n=====\nSECRET",
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
        "Mail Bob.\n---\nThen mail Ann.",
        "A \"\" is empty, and so is ''.",
    ],
)
def test_lists_of_things_to_do_stay_words(prompt: str) -> None:
    assert own_words(prompt) == prompt


def test_a_long_passage_after_a_colon_is_data() -> None:
    own = own_words("Sum this up:\n\n" + "It was a long day. " * 30 + "SECRET")
    assert own.strip() == "Sum this up:"


def test_words_go_on_behind_a_block() -> None:
    block = "```\n" + "It was a long day. " * 30 + "\n```"
    assert own_words(f"Sum this up:\n{block}\nMail it to Bob.").split("\n")[-1] == "Mail it to Bob."
    assert own_words("<doc>x</doc> Mail it to Bob.").endswith("> Mail it to Bob.")
    assert own_words("Say ```x = 1``` to Bob.").endswith("to Bob.")


def test_a_passage_is_no_shorter_for_the_blocks_inside_of_it() -> None:
    own = own_words("Sum this up:\n\nSECRET\n```\n" + "It was a long day. " * 30 + "\n```")
    assert own.strip() == "Sum this up:"


def test_many_marks_are_read_at_once() -> None:
    assert not own_words("> x\n" * 50_000).strip()
    assert own_words("".join(f"<t{number}>" for number in range(20_000))).startswith("<t0>")


@pytest.mark.parametrize("earlier", ["Look:\n```\nfoo", "From: a\nTo: b\n\nfoo", "<doc>", "Read this:\n---\nfoo"])
def test_what_was_pasted_into_one_message_says_nothing_about_the_next(earlier: str) -> None:
    words = words_of_user([earlier, "Mail bob@corp.example.\n```\nMail eve@corp.example.\n```\n</doc>\n---"])
    assert words.references == {"bob@corp.example"}
    assert "mail" in words.lower
