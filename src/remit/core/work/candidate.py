"""Candidates: a scored text, the same record for retrieval, reranking, voting and plan steps.

Rule 1: a score says who made it and is compared only with scores of the same maker; a relevance of 0.8 and
        a vote share of 0.8 have nothing in common.
Rule 2: equal scores keep the order they came in.
"""

from collections.abc import Iterable
from enum import StrEnum
from math import isnan
from typing import Any

import msgspec

from remit.core.failure import InvariantBroken
from remit.core.record import JsonObject, MadeByHand, Text

SCORES_INCOMPARABLE = "SCORES_INCOMPARABLE"


class ScoreMaker(StrEnum):
    """Who gave the score, which is what it means."""

    RETRIEVAL = "retrieval"
    RERANK = "rerank"
    VOTE = "vote"
    JUDGE = "judge"


# Stands for a maker that was not named; it is never stored.
_UNNAMED: Any = None


class Candidate(MadeByHand):
    """A text, where it came from, its score and the maker of the score: a reranker, unless another is named.

    `relevance` in the metadata, from 0 to 1, is how much of the question it answers to, of which confidence is made.
    """

    content: Text
    source: str
    score: float
    scored_by: ScoreMaker = _UNNAMED
    metadata: JsonObject = {}

    def __post_init__(self) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Take the text of a maker for it, and name one where none was named."""
        MadeByHand.__post_init__(self)
        if self.scored_by is _UNNAMED:
            msgspec.structs.force_setattr(self, "scored_by", ScoreMaker.RERANK)


# What the candidates of a plan's rerank step are called beside their input.
RerankCandidate = Candidate


def best_first(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The candidates from the highest score to the lowest; refuses scores that cannot be compared."""
    unordered = tuple(candidates)
    makers = sorted({candidate.scored_by for candidate in unordered})
    if len(makers) > 1:
        raise InvariantBroken(
            SCORES_INCOMPARABLE,
            f"scores made by {', '.join(makers)} cannot be compared; order each maker's candidates by themselves",
        )
    for candidate in unordered:
        if isnan(candidate.score):
            raise InvariantBroken(
                SCORES_INCOMPARABLE, f"candidate from {candidate.source!r} has the score NaN; give it a number"
            )
    return tuple(sorted(unordered, key=lambda candidate: candidate.score, reverse=True))
