"""A vote: what it costs to find a winner among candidates of half a kilobyte, against reading them as JSON.

No two candidates are written alike, so that every one of them is read; most say the same. Run it alone:
`python -m benchmarks.vote`.
"""

import json
import random
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.measure import FULL, Effort, Figure, Work, compare, together
from benchmarks.tables import table
from remit.core.record import JsonObject
from remit.orchestrate.patterns.voters import MajorityVoting, SimilarityVoting, WeightedVoting, elect

COUNTS = (3, 50)
FLOOR = "json.loads of each candidate"
VALUE: JsonObject = {
    "customer": "Ada Lovelace",
    "sentiment": "positive",
    "urgency": 3,
    "confidence": 0.75,
    "topics": ["delivery", "packaging", "refund"],
    "summary": "The parcel came two days late and one corner was torn, but the engine inside works and she is glad.",
    "order": {"number": 48213, "placed": "1843-07-10", "total": 129.5, "paid": True, "note": None},
    "address": {"street": "St James's Square", "zip": "SW1Y 4JH", "city": "London"},
    "next": "Offer a refund of the delivery and ask whether the packaging may be replaced at the next visit.",
}
# What the others say instead; every third candidate differs.
OTHERS: Sequence[JsonObject] = ({"sentiment": "neutral"}, {"urgency": 4, "summary": "The parcel came two days late."})


def measure_votes(effort: Effort) -> list[Figure]:
    """A vote of each kind, among few and among many, and the check of what a strategy returned."""
    return [figure for count in COUNTS for figure in measure_count(count, effort)]


def measure_count(count: int, effort: Effort) -> Iterator[Figure]:
    """The same for so many candidates; similarity also where all differ, which makes it compare every pair."""
    candidates, strangers = candidates_of(count), candidates_of(count, numbered=range(count))
    weighted = WeightedVoting(field="confidence")
    works: dict[str, Work] = {
        f"majority of {count}": lambda: MajorityVoting().vote(candidates),
        f"majority of {count}, elected": lambda: elect(MajorityVoting(), candidates),
        f"weighted by a field, of {count}": lambda: weighted.vote(candidates),
        f"similarity of {count}": lambda: SimilarityVoting().vote(candidates),
        f"similarity of {count} that all differ": lambda: SimilarityVoting().vote(strangers),
    }

    def floor() -> list[Any]:
        return [json.loads(text) for text in candidates]

    votes = {elect(strategy, candidates).votes for strategy in (MajorityVoting(), weighted, SimilarityVoting())}
    assert votes == {count - count // 3}
    for name, work in works.items():
        yield compare(name, work, FLOOR, floor, operations=1, effort=effort)


def candidates_of(count: int, *, numbered: Sequence[int] = ()) -> list[str]:
    """So many answers, all with their keys in another order; two thirds say the same unless they are numbered."""
    chance = random.Random(count)
    texts = []
    for place in range(count):
        value = {**VALUE, **(OTHERS[place % len(OTHERS)] if place % 3 == 2 else {})}
        value |= {"urgency": numbered[place]} if numbered else {}
        texts.append(json.dumps(dict(chance.sample(list(value.items()), len(value)))))
    assert len(set(texts)) == count
    return texts


def votes_in_rounds(effort: Effort) -> list[Figure]:
    """The figures of all rounds together."""
    return [together(same) for same in zip(*(measure_votes(effort) for _ in range(effort.rounds)), strict=True)]


def vote_lines(figures: Sequence[Figure]) -> Iterator[str]:
    """What the report says of votes."""
    sizes = [len(text) for text in candidates_of(max(COUNTS))]
    yield f"Votes: JSON candidates of {min(sizes)} to {max(sizes)} bytes, two thirds of them equal, none written alike"
    yield from table(figures)


def main() -> None:
    """Measure, then print."""
    print(*vote_lines(votes_in_rounds(FULL)), sep="\n")


if __name__ == "__main__":
    main()
