"""Candidates in the order of the words they share with a question."""

import pytest

from remit.core.failure import RequestRejected
from remit.core.record import BlobRef
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.rerank.lexical import CANDIDATES_MAX, rerank


def candidate(text: str, score: float = 1.0, by: ScoreMaker = ScoreMaker.RETRIEVAL) -> Candidate:
    return Candidate(text, text[:5], score, by, {"origin": "operator"})


def order(query: str, *texts: str) -> list[str]:
    return [str(found.content) for found in rerank(query, [candidate(text) for text in texts])]


def test_the_candidate_that_shares_more_words_comes_first() -> None:
    assert order("cold milk", "warm tea", "milk", "cold milk") == ["cold milk", "milk", "warm tea"]


def test_a_rare_word_counts_more_than_one_that_all_have() -> None:
    assert order("the kettle", "the cup the the", "the spoon", "kettle")[0] == "kettle"


def test_a_short_text_comes_before_a_long_one_with_the_same_words() -> None:
    assert order("milk", "milk " + "and more " * 50, "milk")[0] == "milk"


def test_case_and_punctuation_do_not_matter() -> None:
    assert order("MILK?", "tea", "Milk!")[0] == "Milk!"


def test_equal_scores_keep_the_order_they_came_in() -> None:
    assert order("zebra", "b", "a", "c") == ["b", "a", "c"]


@pytest.mark.req("1.13")
def test_a_score_says_who_made_it_and_what_it_was_before() -> None:
    (found,) = rerank("milk", [candidate("milk", 7.5)])
    assert found.scored_by is ScoreMaker.RERANK
    assert 0 < found.score < 1
    assert found.metadata == {"origin": "operator", "scored_before": {"by": "retrieval", "score": 7.5}}
    assert found.source == "milk"


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_an_earlier_score_that_is_no_number_is_not_kept(score: float) -> None:
    (found,) = rerank("milk", [candidate("milk", score)])
    assert found.metadata["scored_before"] == {"by": "retrieval", "score": None}


def test_only_the_best_are_kept_where_a_limit_says_so() -> None:
    found = rerank("milk", [candidate("tea"), candidate("milk"), candidate("milk tea")], limit=1)
    assert [each.content for each in found] == ["milk"]


def test_what_scores_below_the_threshold_is_left_out() -> None:
    assert [each.content for each in rerank("milk", [candidate("tea"), candidate("milk")], score_min=0.1)] == ["milk"]


@pytest.mark.parametrize("query", ["", "?!", "\x00"])
def test_a_query_without_words_leaves_everything_as_it_is(query: str) -> None:
    assert order(query, "b", "", "a") == ["b", "", "a"]


def test_no_candidates_are_no_candidates() -> None:
    assert rerank("milk", []) == ()


@pytest.mark.parametrize(("limit", "score_min"), [(0, 0.0), (1, -0.1), (1, 1.1), (1, float("nan"))])
def test_limits_that_make_no_sense_are_refused(limit: int, score_min: float) -> None:
    with pytest.raises(RequestRejected, match=f"limit={limit}") as caught:
        rerank("milk", [candidate("milk")], limit=limit, score_min=score_min)
    assert caught.value.code == "RERANK_INVALID"


def test_more_candidates_than_the_bound_are_refused() -> None:
    with pytest.raises(RequestRejected, match=f"candidates_max={CANDIDATES_MAX}"):
        rerank("milk", [candidate("milk")] * (CANDIDATES_MAX + 1))


def test_a_candidate_whose_text_is_not_at_hand_is_refused_by_its_source() -> None:
    with pytest.raises(RequestRejected, match="'far' is named by its digest"):
        rerank("milk", [Candidate(BlobRef(b"d", 9), "far", 1.0, ScoreMaker.RETRIEVAL)])
