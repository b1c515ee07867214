"""Days, times and durations in the words, and the dates that they bind."""

import pytest

from remit.provenance.words.moments import is_said, moments_in


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on 2024-05-19", "2024-05-19"),
        ("on 2024/05/19", "2024-05-19"),
        ("on 19.05.2024", "2024-05-19"),
        ("on 19/05/2024", "2024-05-19"),
        ("on 05/19/2024", "2024-05-19"),
        ("on 05/05/2024", "2024-05-05"),
        ("on May 19th, 2024", "2024-05-19"),
        ("on the 19th of May 2024", "2024-05-19"),
        ("on Sept. 3 2024", "2024-09-03"),
        ("on May 19 in 2024", "2024-05-19"),
        ("on 2024-05-19 at 14:00", "2024-05-19 14:00"),
        ("on 2024-05-19 at 2 p.m.", "2024-05-19T14:00:00"),
        ("on 2024-05-19 at 12 am", "2024-05-19 00:00"),
        ("on 2024-05-19", "2024-05-19 00:00"),
        ("at noon", "12:00"),
        ("at midnight", "00:00"),
        ("at 11:30 pm for two hours", "01:30"),
        ("from 2024-05-19 for 3 nights", "2024-05-22"),
        ("from 2024-05-19 for a week", "2024-05-26"),
    ],
)
def test_a_moment_that_is_said_is_bound(text: str, value: str) -> None:
    assert is_said(value, moments_in(text), today="", years=())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on 04/05/2024", "2024-05-04"),
        ("on 04/05/2024", "2024-04-05"),
        ("on May 19", "2024-05-19"),
        ("on 2024-05-19", "2024-05-20"),
        ("on 2024-05-19", "2024-05-19 14:00"),
        ("on 2024-02-30", "2024-02-30"),
        ("tomorrow", "2024-05-16"),
        ("at 25:00 or 10:75", "10:75"),
        ("in 14 days", "14:00"),
        ("at 13 pm", "13:00"),
        ("on 2024-05-19", "soon"),
        ("on 2024-05-19 at 14:00", "2024-05-19T14:00+09:00"),
        ("on 2024-05-19 at 14:00", "2024-05-19T14:00Z"),
    ],
)
def test_a_moment_that_is_not_said_or_can_be_read_twice_is_not_bound(text: str, value: str) -> None:
    assert not is_said(value, moments_in(text), today="", years=())


def test_a_trusted_day_gives_the_year_and_counts_the_days() -> None:
    assert is_said("2024-05-19", moments_in("on May 19"), today="2024-05-15", years=[2024])
    assert not is_said("2025-05-19", moments_in("on May 19"), today="2024-05-15", years=[2024])
    for text, value in [("today", "2024-05-15"), ("yesterday", "2024-05-14"), ("next Friday", "2024-05-24")]:
        assert is_said(value, moments_in(text), today="2024-05-15", years=[])
    assert not is_said("2024-05-18", moments_in("on Friday"), today="2024-05-15", years=[])
    assert not is_said("2024-06-07", moments_in("on Friday"), today="2024-05-15", years=[])
