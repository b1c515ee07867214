"""The lexical reranker: candidates in the order of the words they share with a question.

Rule 1: a word counts by its rarity among the candidates, less with every repetition, and less in a long text.
Rule 2: a score lies between 0 and 1 and is made here; what the candidate was scored before stays in its metadata.
Rule 3: reranking is pure: it changes no text, loses nothing unless a limit says so, and equal scores keep their order.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isfinite, log

from remit.core.failure import RequestRejected
from remit.core.record import replace
from remit.core.regex import regex
from remit.core.work.candidate import Candidate, ScoreMaker, best_first

RERANK_INVALID = "RERANK_INVALID"

# What a retriever hands over is a hundred at most; a thousand are reranked in a second.
CANDIDATES_MAX = 1000
# A chunk has some thousand characters; of a longer text the beginning decides.
CANDIDATE_CHARS_MAX = 20_000
QUERY_CHARS_MAX = 4_000
# Where the candidate's earlier score is kept.
SCORED_BEFORE = "scored_before"

# How soon repetitions stop counting, and how far length counts: the usual figures of BM25.
_SATURATION, _LENGTH_SHARE = 1.2, 0.75

_words = regex(r"[^\W_]+")


def rerank(
    query: str, candidates: Sequence[Candidate], *, limit: int = CANDIDATES_MAX, score_min: float = 0.0
) -> tuple[Candidate, ...]:
    """The candidates by the words they share with the query, best first; at most `limit`, none below `score_min`."""
    if len(candidates) > CANDIDATES_MAX:
        message = f"{len(candidates)} candidates are more than candidates_max={CANDIDATES_MAX}; retrieve fewer"
        raise RequestRejected(RERANK_INVALID, message)
    if limit < 1 or not 0.0 <= score_min <= 1.0:
        message = f"limit={limit} must be 1 or more and score_min={score_min} from 0 to 1"
        raise RequestRejected(RERANK_INVALID, message)
    scores = _scores(query, [_counted(candidate) for candidate in candidates])
    scored = [_rescored(candidate, score) for candidate, score in zip(candidates, scores, strict=True)]
    return tuple(candidate for candidate in best_first(scored) if candidate.score >= score_min)[:limit]


def _scores(query: str, texts: Sequence[Mapping[str, int]]) -> list[float]:
    asked = dict.fromkeys(word.casefold() for word in _words.findall(query[:QUERY_CHARS_MAX]))
    weights = {word: _rarity(sum(word in text for text in texts), len(texts)) for word in asked}
    total = sum(weights.values())
    lengths = [sum(text.values()) for text in texts]
    mean = sum(lengths) / len(texts) if any(lengths) else 1.0
    return [
        sum(weight * _share(text.get(word, 0), length / mean) for word, weight in weights.items()) / total
        if total
        else 0.0
        for text, length in zip(texts, lengths, strict=True)
    ]


def _rarity(having: int, count: int) -> float:
    """More than nothing even for a word that all have."""
    return log(1 + (count - having + 0.5) / (having + 0.5))


def _share(times: int, length: float) -> float:
    """From 0 for a word that is absent towards 1 for one that is everywhere."""
    return times / (times + _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * length))


def _counted(candidate: Candidate) -> Counter[str]:
    if not isinstance(candidate.content, str):
        message = f"candidate from {candidate.source[:80]!r} is named by its digest; read its text before reranking"
        raise RequestRejected(RERANK_INVALID, message)
    return Counter(word.casefold() for word in _words.findall(candidate.content[:CANDIDATE_CHARS_MAX]))


def _rescored(candidate: Candidate, score: float) -> Candidate:
    before = {"by": candidate.scored_by.value, "score": candidate.score if isfinite(candidate.score) else None}
    return replace(
        candidate, score=score, scored_by=ScoreMaker.RERANK, metadata={**candidate.metadata, SCORED_BEFORE: before}
    )
