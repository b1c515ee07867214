"""Ways of voting: which of several answers to one question is taken, and how surely.

Rule 1: answers that are JSON are compared in their canonical form: order of keys, spaces and 1.0 for 1 do not matter.
        Everything else is compared as text without the white space around it.
Rule 2: the winner is one of the candidates, exactly as it was given; among equals the first seen is taken.
Rule 3: the same candidates in the same order give the same winner and the same confidence.
Rule 4: a vote is settled only if nothing that may still come can change the winner, or that there is none.
Rule 5: what a foreign strategy returns is checked before it is relied on.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum
from types import MappingProxyType
from typing import Any, Protocol, TypeAlias

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import RequestRejected
from remit.core.record import Record
from remit.orchestrate.patterns.ballots import (
    VOTING_INVALID,
    ComparedCandidate,
    compared_candidates,
    equal_groups,
    is_beyond_reach,
    json_key,
    keys_of,
)
from remit.orchestrate.patterns.similarity import average_similarities

VOTING_UNKNOWN = "VOTING_UNKNOWN"

# More is no weight but a mistake; sums of weights up to here stay finite.
WEIGHT_MAX = 1e12


class NoConsensus(Exception):
    """The candidates have no winner."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class VoteInvalid(Exception):
    """A strategy returned something that is no result of a vote."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class VotingStrategy(Protocol):
    """Picks a winner. It may also have `is_settled(candidates, still_to_come) -> bool`, to stop a vote early."""

    def vote(self, candidates: Sequence[str], /) -> tuple[str, float]:
        """The winner, which is one of the candidates, and its confidence from 0 to 1; raises NoConsensus."""
        ...


Strategy: TypeAlias = VotingStrategy | Callable[[Sequence[str]], tuple[str, float]]


class Poll(Record):
    """What a vote came to: the place of the first candidate equal to the winner, how many are equal, and how surely."""

    winner: int
    votes: int
    confidence: float


def elect(strategy: Strategy, candidates: Sequence[str], *, replicas: Sequence[int] | None = None) -> Poll:
    """Take a vote and check what came of it; raises NoConsensus or VoteInvalid.

    Where not every replica answered, `replicas` says which did, in the order of the candidates.
    """
    given = tuple(candidates)
    if not given:
        raise NoConsensus(f"{_name_of(strategy)}: there are no candidates")
    seated = _seated(strategy, replicas)
    vote: Any = getattr(seated, "vote", seated)
    winner, confidence = _checked(seated, vote(given))
    keys_for = seated.keys if isinstance(seated, WeightedVoting) else keys_of
    keys = keys_for(given)
    key = keys[given.index(winner)] if winner in given else keys_for((winner,))[0]
    if key not in keys:
        raise VoteInvalid(f"{_name_of(strategy)} returned the winner {_shown(winner)}, which is none of the candidates")
    return Poll(keys.index(key), keys.count(key), confidence)


def settled(
    strategy: Strategy, candidates: Sequence[str], still_to_come: int, *, replicas: Sequence[int] | None = None
) -> bool:
    """Whether at most so many more candidates, each behind those that are here, cannot change what the vote comes to.

    A strategy that cannot say is never settled.
    """
    is_settled = getattr(_seated(strategy, replicas), "is_settled", None)
    return is_settled is not None and is_settled(tuple(candidates), still_to_come) is True


@dataclass(frozen=True, slots=True)
class MajorityVoting:
    """The most frequent answer wins; its confidence is its share of all candidates."""

    def vote(self, candidates: Sequence[str], /) -> tuple[str, float]:
        """The most frequent candidate and its share."""
        leader = max(_grouped(_present("majority voting", candidates)), key=len)
        return candidates[leader[0]], len(leader) / len(candidates)

    def is_settled(self, candidates: Sequence[str], still_to_come: int, /) -> bool:
        """Whether no answer can overtake the leader any more."""
        tallies = [[1.0] * len(group) for group in equal_groups(keys_of(candidates))]
        return is_beyond_reach(tallies, [1.0] * still_to_come)


@dataclass(frozen=True, slots=True)
class UnanimityVoting:
    """All candidates must be equal; the confidence is 1."""

    def vote(self, candidates: Sequence[str], /) -> tuple[str, float]:
        """The first candidate, unless another differs."""
        answers = _present("unanimity voting", candidates)
        for position, answer in enumerate(answers):
            if answer.key != answers[0].key:
                raise NoConsensus(f"unanimity voting: candidate {position} differs from candidate 0")
        return candidates[0], 1.0

    def is_settled(self, candidates: Sequence[str], still_to_come: int, /) -> bool:
        """Whether two differ, so that there will be no consensus, or no replica is left."""
        return still_to_come <= 0 or len(equal_groups(keys_of(candidates))) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedVoting:
    """The answer with the most weight wins; its confidence is its share of all weight.

    Either `weights` has one weight for each replica, by its place among all replicas; or `field` names a number at the
    top of every candidate's JSON object, from 0 to `weight_max`. That field is left out when candidates are compared.
    A candidate whose field is missing or no such number weighs nothing: a model cannot outvote others by a large one.
    """

    weights: Sequence[float] = ()
    field: str = ""
    weight_max: float = 1.0
    # The places of the replicas that answered, in the order of the candidates; empty when all did.
    replicas: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Refuse weights that cannot decide a vote."""
        object.__setattr__(self, "weights", tuple(self.weights))
        if bool(self.weights) is bool(self.field):
            raise _invalid("weighted voting takes either weights, one for each replica, or the name of a field")
        if flaw := _flaw_of(self.weight_max, WEIGHT_MAX):
            raise _invalid(f"weight_max={_shown(self.weight_max)} {flaw}")
        for position, weight in enumerate(self.weights):
            if flaw := _flaw_of(weight, WEIGHT_MAX):
                raise _invalid(f"weights[{position}]={_shown(weight)} {flaw}")
        if not (any(self.weights) if self.weights else self.weight_max):
            raise _invalid("all weights are 0, so no answer could win; give at least one replica a weight above 0")
        seats = set(self.replicas)
        if len(seats) < len(self.replicas) or not seats <= set(range(len(self.weights))):
            raise _invalid(
                f"replicas={_shown(self.replicas)} must be different places among {len(self.weights)} weights"
            )

    def vote(self, candidates: Sequence[str], /) -> tuple[str, float]:
        """The candidate with the most weight and its share of all weight."""
        answers = _present("weighted voting", candidates)
        seats = len(self.replicas or self.weights)
        if self.weights and len(candidates) != seats:
            # Whose answer is missing is not to be guessed: every later one would get the weight of another.
            message = f"{len(candidates)} candidates for {seats} weights; say by `replicas` which replicas answered"
            raise NoConsensus(f"weighted voting: {message}")
        weights, groups = self._weights_of(answers), self._groups_of(answers)
        tallies = [fsum([weights[place] for place in group]) for group in groups]
        if not any(tallies):
            raise NoConsensus(f"weighted voting: no candidate has a weight above 0{self._first_flaw(answers)}")
        leader = tallies.index(max(tallies))
        return candidates[groups[leader][0]], tallies[leader] / fsum(weights)

    def is_settled(self, candidates: Sequence[str], still_to_come: int, /) -> bool:
        """Whether no answer can overtake the leader any more, even with the largest weights that are left."""
        left = [self.weight_max] * still_to_come
        if self.weights:
            taken = self.replicas or range(len(candidates))
            if len(taken) != len(candidates) or len(taken) + still_to_come > len(self.weights):
                return False  # These cannot be counted; the vote says why.
            rest = [weight for place, weight in enumerate(self.weights) if place not in taken]
            left = sorted(rest, reverse=True)[:still_to_come]
        answers = compared_candidates(candidates)
        weights = self._weights_of(answers)
        tallies = [[weights[place] for place in group] for group in self._groups_of(answers)]
        return is_beyond_reach(tallies, left)

    def keys(self, candidates: Sequence[str]) -> list[str]:
        """What candidates are compared by: everything but the field that holds their weight."""
        return [self._key_of(answer) for answer in compared_candidates(candidates)]

    def _key_of(self, answer: ComparedCandidate) -> str:
        if not isinstance(answer.value, dict) or self.field not in answer.value:
            return answer.key
        return json_key({name: member for name, member in answer.value.items() if name != self.field})

    def _groups_of(self, answers: Sequence[ComparedCandidate]) -> list[list[int]]:
        return equal_groups([self._key_of(answer) for answer in answers])

    def _weights_of(self, answers: Sequence[ComparedCandidate]) -> list[float]:
        if self.weights:
            return [self.weights[place] for place in self.replicas or range(len(answers))]
        return [0.0 if self._flaw_in(answer.value) else answer.value[self.field] for answer in answers]

    def _flaw_in(self, value: Any) -> str:
        """Why a candidate weighs nothing, or an empty text."""
        if not isinstance(value, dict):
            return "is no JSON object"
        if self.field not in value:
            return f"has no field {self.field!r}"
        flaw = _flaw_of(value[self.field], self.weight_max)
        return flaw and f"has {self.field}={_shown(value[self.field])}, which {flaw}"

    def _first_flaw(self, answers: Sequence[ComparedCandidate]) -> str:
        flaws = [] if self.weights else [self._flaw_in(answer.value) for answer in answers]
        return next((f"; candidate {place} {flaw}" for place, flaw in enumerate(flaws) if flaw), "")


@dataclass(frozen=True, slots=True)
class SimilarityVoting:
    """The answer that is most like all others wins; its confidence is its average similarity to them."""

    def vote(self, candidates: Sequence[str], /) -> tuple[str, float]:
        """The candidate in the middle of all and its average similarity to the others."""
        answers = _present("similarity voting", candidates)
        groups = _grouped(answers)
        if len(groups) == 1:
            return candidates[0], 1.0
        scores = average_similarities([answers[group[0]] for group in groups], [len(group) for group in groups])
        best = scores.index(max(scores))
        return candidates[groups[best][0]], scores[best]


STRATEGIES: Mapping[str, VotingStrategy] = MappingProxyType(
    {"majority": MajorityVoting(), "unanimity": UnanimityVoting(), "similarity": SimilarityVoting()}
)


def strategy_named(name: str) -> VotingStrategy:
    """The builtin strategy of this name."""
    if name not in STRATEGIES:
        message = f"voting={_shown(name)} is unknown; use one of {', '.join(STRATEGIES)}, or a strategy of your own"
        raise RequestRejected(VOTING_UNKNOWN, message)
    return STRATEGIES[name]


def check_strategy(strategy: object, *, replicas: int | None = None) -> None:
    """Refuse at the door what could not take a vote, or not among so many replicas."""
    vote = getattr(strategy, "vote", strategy)
    if isinstance(strategy, type):
        raise _invalid(f"voting={strategy.__name__} is a class; make a strategy of it: {strategy.__name__}(...)")
    if not callable(vote):
        raise _invalid(f"voting={_shown(strategy)} has no vote() and is no function of the candidates")
    if inspect.iscoroutinefunction(vote):
        raise _invalid(f"voting={_name_of(strategy)} is async; a vote runs in a thread, so make it a plain function")
    if isinstance(strategy, WeightedVoting) and strategy.weights and replicas not in (None, len(strategy.weights)):
        raise _invalid(f"{len(strategy.weights)} weights for {replicas} replicas; give one weight for each replica")


def _present(name: str, candidates: Sequence[str]) -> list[ComparedCandidate]:
    if not candidates:
        raise NoConsensus(f"{name}: there are no candidates")
    return compared_candidates(candidates)


def _grouped(answers: Sequence[ComparedCandidate]) -> list[list[int]]:
    return equal_groups([answer.key for answer in answers])


def _seated(strategy: Strategy, replicas: Sequence[int] | None) -> Strategy:
    if replicas is not None and isinstance(strategy, WeightedVoting) and strategy.weights:
        return replace(strategy, replicas=tuple(replicas))
    return strategy


def _checked(strategy: Strategy, said: object) -> tuple[str, float]:
    name = _name_of(strategy)
    if inspect.iscoroutine(said):
        said.close()
        raise VoteInvalid(f"{name} is async; a vote runs in a thread, so make it a plain function")
    if not isinstance(said, tuple) or len(said) != 2:
        raise VoteInvalid(f"{name} returned {_shown(said)}; it must return the winner and its confidence")
    winner, confidence = said
    if not isinstance(winner, str):
        raise VoteInvalid(f"{name} returned the winner {_shown(winner)}, which is none of the candidates")
    if flaw := _flaw_of(confidence, 1.0):
        raise VoteInvalid(f"{name} returned the confidence {_shown(confidence)}, which {flaw}")
    return winner, float(confidence)


def _flaw_of(number: object, most: float) -> str:
    """What is wrong with a weight or a confidence, or an empty text."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return "is no number"
    # Written so that NaN, which is neither more nor less than anything, does not pass.
    return "" if 0 <= number <= most else f"is not from 0 to {most:g}"


def _invalid(message: str) -> RequestRejected:
    return RequestRejected(VOTING_INVALID, message)


def _name_of(strategy: object) -> str:
    return str(getattr(strategy, "__name__", type(strategy).__name__))


def _shown(value: object) -> str:
    try:
        return repr(value)[:SHOWN_CHARS_MAX]
    except ValueError:  # Python refuses to print an integer of many thousand digits.
        return "a value too long to show"
