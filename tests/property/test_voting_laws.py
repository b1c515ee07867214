"""Laws of voting: whatever the candidates say, however they are written, and whichever are still to come."""

import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.core.journal.canonical import canonical_json
from remit.orchestrate.patterns.similarity import similarity
from remit.orchestrate.patterns.voters import (
    STRATEGIES,
    MajorityVoting,
    NoConsensus,
    Poll,
    SimilarityVoting,
    Strategy,
    UnanimityVoting,
    WeightedVoting,
    elect,
    settled,
)

# Many, or each with a whole command; the quick check has others of its kind.
pytestmark = pytest.mark.slow

# Few different values, so that answers agree now and then; the integer is one that no double holds exactly.
LEAVES = st.sampled_from([None, True, False, 0, 1, 1.5, -2, 2**53 + 1, "", "a", "a b", "b a", "好"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "confidence"]), inner, max_size=3)
    ),
    max_leaves=6,
)
TEXTS = st.text(max_size=8) | st.sampled_from(["positive", " positive\n", "negative", "1", "1.0", "[1", '{"a":1}'])
CANDIDATES = st.lists(TEXTS | VALUES.map(json.dumps), min_size=1, max_size=7)
# Ties and overtaking need few different answers.
SHORT = st.lists(st.sampled_from(["a", "b", "c"]), max_size=5)
WEIGHTS = st.lists(st.floats(0, 1) | st.sampled_from([0, 0.1, 0.3, 1, 2]), min_size=1, max_size=8).filter(any)
FIELD = WeightedVoting(field="confidence")
BUILTIN = [*STRATEGIES.values(), FIELD]


def outcome(strategy: Strategy, candidates: Sequence[str], replicas: Sequence[int] | None = None) -> Poll | None:
    try:
        return elect(strategy, candidates, replicas=replicas)
    except NoConsensus:
        return None


def winner_of(strategy: Strategy, candidates: Sequence[str], replicas: Sequence[int] | None = None) -> int | None:
    election = outcome(strategy, candidates, replicas)
    return None if election is None else election.winner


def rewritten(value: Any, chance: random.Random) -> str:
    """The same value with its keys in another order, with other spaces, and with 1.0 for 1."""

    def gap() -> str:
        return chance.choice(["", " ", "\n\t"])

    if isinstance(value, dict):
        members = [f"{gap()}{json.dumps(key)}{gap()}:{rewritten(member, chance)}" for key, member in value.items()]
        chance.shuffle(members)
        return f"{gap()}{{{','.join(members)}{gap()}}}{gap()}"
    if isinstance(value, list):
        return f"{gap()}[{','.join(rewritten(item, chance) for item in value)}{gap()}]{gap()}"
    if type(value) is int and abs(value) < 2**53 and chance.random() < 0.5:
        return f"{gap()}{float(value)}"
    return gap() + json.dumps(value, ensure_ascii=chance.random() < 0.5)


@pytest.mark.req("2.23", "2.24", "2.25")
@pytest.mark.parametrize("strategy", BUILTIN)
@given(candidates=CANDIDATES)
def test_the_winner_is_one_of_the_candidates_and_the_same_every_time(strategy: Strategy, candidates: list[str]) -> None:
    election = outcome(strategy, candidates)
    assert outcome(strategy, candidates) == election
    if election is not None:
        assert 0 <= election.winner < len(candidates)
        assert 1 <= election.votes <= len(candidates)
        assert 0.0 <= election.confidence <= 1.0


@pytest.mark.parametrize("strategy", BUILTIN)
@given(values=st.lists(VALUES, min_size=1, max_size=5), chance=st.randoms(use_true_random=False))
def test_how_json_is_written_never_changes_a_vote(strategy: Strategy, values: list[Any], chance: random.Random) -> None:
    plain = [json.dumps(value) for value in values]
    again = [rewritten(value, chance) for value in values]
    assert outcome(strategy, again) == outcome(strategy, plain)


@pytest.mark.req("2.23")
@given(st.lists(st.sampled_from([0, 1, "a", [1], {"a": 1}, {"a": 2}, None, True]), min_size=1, max_size=9))
def test_a_majority_is_a_plain_count(values: list[Any]) -> None:
    keys = [canonical_json(value) for value in values]
    # A counter lists equal counts in the order in which they were first met.
    key, votes = Counter(keys).most_common(1)[0]
    expected = Poll(keys.index(key), votes, votes / len(keys))
    assert elect(MajorityVoting(), [json.dumps(value) for value in values]) == expected


@pytest.mark.req("2.24")
@given(SHORT.filter(bool))
def test_unanimity_is_a_majority_of_all(candidates: list[str]) -> None:
    majority = elect(MajorityVoting(), candidates)
    assert outcome(UnanimityVoting(), candidates) == (majority if majority.votes == len(candidates) else None)


@given(SHORT.filter(bool))
def test_equal_weights_give_the_majority(candidates: list[str]) -> None:
    weighted = elect(WeightedVoting(weights=[0.5] * len(candidates)), candidates)
    majority = elect(MajorityVoting(), candidates)
    assert (weighted.winner, weighted.votes) == (majority.winner, majority.votes)
    assert weighted.confidence == pytest.approx(majority.confidence)


@pytest.mark.parametrize("strategy", [MajorityVoting(), UnanimityVoting(), SimilarityVoting()])
@given(here=SHORT, to_come=SHORT, missing=st.integers(0, 2))
def test_nothing_that_comes_changes_what_is_settled(
    strategy: Strategy, here: list[str], to_come: list[str], missing: int
) -> None:
    if settled(strategy, here, len(to_come) + missing):
        assert winner_of(strategy, [*here, *to_come]) == winner_of(strategy, here)


@given(WEIGHTS, st.data())
def test_no_weight_that_comes_changes_what_is_settled(weights: list[float], data: st.DataObject) -> None:
    strategy = WeightedVoting(weights=weights)
    places = data.draw(st.permutations(range(len(weights))))
    answered = data.draw(st.integers(1, len(places)))
    here = data.draw(st.integers(1, answered))
    said = data.draw(st.lists(st.sampled_from("abc"), min_size=answered, max_size=answered))
    # Some of those that were to come may never answer.
    still_to_come = data.draw(st.integers(answered - here, len(places) - here))
    if settled(strategy, said[:here], still_to_come, replicas=places[:here]):
        before = winner_of(strategy, said[:here], places[:here])
        assert winner_of(strategy, said, places[:answered]) == before


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(-0.5, 1.5)), max_size=6), st.integers(0, 6), st.integers(0, 2)
)
def test_no_field_that_comes_changes_what_is_settled(
    said: list[tuple[str, float]], answered: int, missing: int
) -> None:
    candidates = [json.dumps({"label": label, "confidence": confidence}) for label, confidence in said]
    here = candidates[:answered]
    if settled(FIELD, here, len(candidates) - len(here) + missing):
        assert winner_of(FIELD, candidates) == winner_of(FIELD, here)


@given(st.lists(st.sampled_from("ab"), max_size=4), st.integers(0, 4))
def test_a_majority_that_is_not_settled_can_still_change(here: list[str], still_to_come: int) -> None:
    if not settled(MajorityVoting(), here, still_to_come):
        before = winner_of(MajorityVoting(), here)
        futures = [[*here, *[new] * still_to_come] for new in ("a", "b", "c")]
        assert any(winner_of(MajorityVoting(), future) != before for future in futures)


@pytest.mark.req("2.25")
@given(VALUES, VALUES)
def test_similarity_is_a_share_the_same_both_ways_and_whole_for_equals(one: Any, other: Any) -> None:
    alike = similarity(one, other, {})
    assert 0.0 <= alike <= 1.0
    assert similarity(other, one, {}) == alike
    assert similarity(one, one, {}) == 1.0


@given(st.text(max_size=40), st.text(max_size=40))
def test_texts_of_any_script_are_compared_alike_both_ways(one: str, other: str) -> None:
    alike = similarity(one, other, {})
    assert 0.0 <= alike <= 1.0
    assert similarity(other, one, {}) == alike
