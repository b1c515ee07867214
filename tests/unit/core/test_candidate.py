import pytest

from remit.core.failure import InvariantBroken
from remit.core.work.candidate import Candidate, ScoreMaker, best_first

REACHES = [ScoreMaker]


def scored(source: str, score: float, maker: ScoreMaker = ScoreMaker.RETRIEVAL) -> Candidate:
    return Candidate("text", source, score, maker)


@pytest.mark.req("1.5")
@pytest.mark.parametrize("maker", ScoreMaker)
def test_one_record_serves_every_maker_of_scores(maker: ScoreMaker) -> None:
    assert best_first([scored("a", 0.5, maker)]) == (Candidate("text", "a", 0.5, maker),)
    assert Candidate.__struct_fields__ == ("content", "source", "score", "scored_by", "metadata")


def test_the_highest_score_comes_first_and_equals_keep_their_order() -> None:
    ordered = best_first([scored("a", 0.1), scored("b", 0.9), scored("c", 0.1), scored("d", 0.9)])
    assert [candidate.source for candidate in ordered] == ["b", "d", "a", "c"]
    assert best_first([]) == ()


@pytest.mark.req("1.14")
def test_scores_of_different_makers_are_never_compared() -> None:
    with pytest.raises(InvariantBroken, match="made by rerank, vote cannot be compared"):
        best_first([scored("a", 0.8, ScoreMaker.VOTE), scored("b", 0.8, ScoreMaker.RERANK)])


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvariantBroken, match="'b' has the score NaN"):
        best_first([scored("a", 0.8), scored("b", float("nan"))])


def test_a_candidate_that_names_no_maker_was_scored_by_a_reranker() -> None:
    assert Candidate("a", "b", 0.5).scored_by is ScoreMaker.RERANK
    assert Candidate("a", "b", 0.5, "vote").scored_by is ScoreMaker.VOTE  # type: ignore[arg-type]  # the text of a member
