"""What a model thinks aloud at the beginning of its answer is heard as reasoning, however the text is cut."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.inference.answers.think import SPACES_MAX, SaidAndThought, ThinkFilter


def heard(*pieces: str) -> SaidAndThought:
    thinking = ThinkFilter()
    told = [*(thinking.take(piece) for piece in pieces), thinking.end()]
    return SaidAndThought("".join(each.text for each in told), "".join(each.thought for each in told))


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("", "", ""),
        ("Hello", "Hello", ""),
        ("  Hello ", "  Hello ", ""),
        ("<think>hm</think>Hello", "Hello", "hm"),
        ("\n<think>\nhm\n</think>\n\nHello\n", "Hello\n", "\nhm\n"),
        ("<think></think>Hello", "Hello", ""),
        ("<think>a</think> <think>b</think> Hello", "Hello", "ab"),
        # Nested: the inner tags are part of the thought.
        ("<think>a<think>b</think>c</think>Hello", "Hello", "a<think>b</think>c"),
        # Unclosed: there is nothing but the thought.
        ("<think>hm", "", "hm"),
        ("<think>hm</thin", "", "hm</thin"),
        ("<think>a<think>b</think>c", "", "a<think>b</think>c"),
        ("<think>hm</think>", "", "hm"),
        ("<think>hm</think> \n", "", "hm"),
        # What only looks like a tag, or stands further behind, is text.
        ("<thin", "<thin", ""),
        ("<thinking>hm</thinking>", "<thinking>hm</thinking>", ""),
        ("<b>Hello</b>", "<b>Hello</b>", ""),
        ("Hello <think>hm</think>", "Hello <think>hm</think>", ""),
        ("<think>hm</think>Hello <think>ha</think>", "Hello <think>ha</think>", "hm"),
        ("hm</think>Hello", "hm</think>Hello", ""),
        ("<think>hm</think> <thin", "<thin", "hm"),
        (" " * SPACES_MAX + "<think>hm</think>x", "x", "hm"),
        (" " * (SPACES_MAX + 1) + "<think>hm</think>x", " " * (SPACES_MAX + 1) + "<think>hm</think>x", ""),
    ],
)
def test_a_thought_at_the_beginning_is_told_from_what_is_said(text: str, said: str, thought: str) -> None:
    assert heard(text) == heard(*text) == SaidAndThought(said, thought)


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<", "</", "th", "ink>", " ", "\n", "hm", "Hello", " " * 200]),
        max_size=12,
    ),
    st.lists(st.integers(0, 80), max_size=6),
)
def test_how_a_text_is_cut_changes_nothing(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    pieces = [text[start:stop] for start, stop in pairwise(places)]
    assert heard(*pieces) == heard(text)


def test_no_more_is_held_back_than_may_become_a_tag() -> None:
    thinking = ThinkFilter()
    assert thinking.take("<think>so") == SaidAndThought("", "so")
    assert thinking.take("</") == SaidAndThought()
    assert thinking.take("b>") == SaidAndThought("", "</b>")
    assert thinking.take("</think>") == SaidAndThought()
    assert thinking.take("Hi <th") == SaidAndThought("Hi <th")
    assert thinking.end() == SaidAndThought()


@pytest.mark.parametrize("part", ["<think>", "<think></think>", "<think>x</think> ", "</think>", "<", " "])
def test_a_text_full_of_tags_takes_no_longer_than_its_length(part: str) -> None:
    text = "<think>" + part * (1_000_000 // len(part))
    began_s = time.process_time()
    heard(text)
    # Quadratic work would take minutes.
    assert time.process_time() - began_s < 10
