"""Candidates are told apart by what they say, not by how it is written."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import DEPTH_MAX
from remit.orchestrate.patterns.ballots import CANDIDATES_MAX, VOTING_INVALID, equal_groups, is_beyond_reach, keys_of

# Beyond what a double holds exactly: the two differ by one.
ACCOUNT, NEIGHBOUR = 9007199254740993, 9007199254740992


def is_same(one: str, other: str) -> bool:
    mine, yours = keys_of([one, other])
    return mine == yours


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"a":1,"b":[true,null]}', ' {\n "b": [true, null], "a": 1.0}\n'),
        ('"\\u0061"', '"a"'),
        ("1e2", "100"),
        ("positive", "\u00a0positive\n"),
        ("", " \n"),
        (f'{{"account":{ACCOUNT},"n":1}}', f'{{ "n": 1.0, "account": {ACCOUNT} }}'),
        (f"[{ACCOUNT}, 1e300]", f"[{ACCOUNT},1e300]"),
    ],
)
def test_what_says_the_same_has_the_same_key(one: str, other: str) -> None:
    assert is_same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("true", "1"),
        ("[1,2]", "[2,1]"),
        ("positive", '"positive"'),
        ("positive", "Positive"),
        ("two words", "two  words"),
        (f'{{"account":{ACCOUNT}}}', f'{{"account":{NEIGHBOUR}}}'),
        (f'{{"account":{ACCOUNT}}}', f'{{"account":"{ACCOUNT}"}}'),
        ("NaN", "nan"),
    ],
)
def test_what_says_something_else_has_another_key(one: str, other: str) -> None:
    assert not is_same(one, other)


@pytest.mark.parametrize("first", ["", f"{ACCOUNT},"])
@pytest.mark.parametrize("levels", [DEPTH_MAX + 1, 100_000])
def test_json_that_nests_too_deep_is_compared_as_text(levels: int, first: str) -> None:
    text = f"[{first}" + "[" * (levels - 1) + "]" * levels
    assert is_same(text, f" {text} ")
    assert not is_same(text, text.replace("[", "[ ", 1))


def test_json_at_the_depth_limit_is_compared_as_json() -> None:
    text = "[" * DEPTH_MAX + str(ACCOUNT) + "]" * DEPTH_MAX
    assert is_same(text, text.replace("[", "[ ", 1))


def test_half_a_surrogate_pair_is_compared_as_text() -> None:
    assert is_same('"\ud800"', ' "\ud800"')


def test_too_many_candidates_are_refused_with_the_limit() -> None:
    assert len(keys_of(["a"] * CANDIDATES_MAX)) == CANDIDATES_MAX
    with pytest.raises(
        RequestRejected, match=f"257 candidates are more than candidates_max={CANDIDATES_MAX}"
    ) as caught:
        keys_of(["a"] * (CANDIDATES_MAX + 1))
    assert caught.value.code == VOTING_INVALID


def test_groups_stand_in_the_order_in_which_they_were_seen() -> None:
    assert equal_groups(["b", "a", "b", "c", "a"]) == [[0, 2], [1, 4], [3]]
    assert equal_groups([]) == []


@pytest.mark.parametrize(
    ("tallies", "left", "expected"),
    [
        ([[1, 1]], [1, 1], True),  # The newcomer ties, and was seen later.
        ([[1, 1]], [1, 1, 1], False),
        ([[1, 1], [1]], [1], True),  # The rival behind ties, and was seen later.
        ([[1], [1, 1]], [1], False),  # The rival in front ties, and was seen first.
        ([[1], [1, 1, 1]], [1], True),
        ([[1, 1], [1]], [1, 1], False),
        ([[0]], [0], True),  # No replica has any weight, and none can get any.
        ([[0]], [1], False),
        ([], [], True),
        ([], [1], False),
        ([[0.1] * 10], [1], True),  # Rounded step by step, ten times 0.1 would be less than 1.
        ([[0.1] * 9, [1]], [0.1], False),
    ],
)
def test_a_leader_is_beyond_reach_when_no_rival_can_pass_it_or_tie_in_front(
    tallies: list[list[float]], left: list[float], expected: bool
) -> None:
    assert is_beyond_reach(tallies, left) is expected
