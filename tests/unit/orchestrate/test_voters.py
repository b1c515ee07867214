"""Several answers to one question: who wins, how surely, when that is settled, and what a strategy may say."""

import math
from collections.abc import Sequence
from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.orchestrate.patterns.ballots import VOTING_INVALID
from remit.orchestrate.patterns.voters import (
    STRATEGIES,
    VOTING_UNKNOWN,
    WEIGHT_MAX,
    MajorityVoting,
    NoConsensus,
    Poll,
    SimilarityVoting,
    Strategy,
    UnanimityVoting,
    VoteInvalid,
    VotingStrategy,
    WeightedVoting,
    check_strategy,
    elect,
    settled,
    strategy_named,
)

SURE = WeightedVoting(field="confidence")
BUILTIN: tuple[VotingStrategy, ...] = (*STRATEGIES.values(), SURE)


class Longest:
    """A strategy that a user wrote."""

    def vote(self, candidates: Sequence[str], /) -> tuple[str, float]:
        return max(candidates, key=len), 0.5


class Saying:
    """A strategy that says whatever it is told to."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def vote(self, candidates: Sequence[str], /) -> tuple[str, float]:
        said: tuple[str, float] = self.said
        return said


async def vote_async(candidates: Sequence[str]) -> tuple[str, float]:
    return candidates[0], 1.0


@pytest.mark.req("2.23")
@pytest.mark.parametrize(
    ("candidates", "winner", "confidence"),
    [
        (["positive", "positive", "negative"], "positive", 2 / 3),
        (["a", "b", "a", "b", "c"], "a", 0.4),
        (["b", "a", "a", "b"], "b", 0.5),
        (["x", "y", "y"], "y", 2 / 3),
        (["x", "y", "z"], "x", 1 / 3),
        (["alone"], "alone", 1.0),
    ],
)
def test_the_most_frequent_wins_with_its_share_and_ties_go_to_the_first_seen(
    candidates: list[str], winner: str, confidence: float
) -> None:
    assert MajorityVoting().vote(candidates) == (winner, confidence)


@pytest.mark.req("2.23")
def test_json_is_counted_by_what_it_says_and_the_winner_is_the_first_as_it_was_written() -> None:
    candidates = ['{"n":2}', ' {"b": 1.0, "a": [1]}\n', '{"a":[1],"b":1}']
    assert MajorityVoting().vote(candidates) == (candidates[1], 2 / 3)
    assert elect(MajorityVoting(), candidates) == Poll(1, 2, 2 / 3)


@pytest.mark.req("2.24")
def test_unanimity_takes_equal_answers_with_full_confidence() -> None:
    assert UnanimityVoting().vote(['{"a": 1}', '{"a":1.0}', ' {"a":1}']) == ('{"a": 1}', 1.0)
    assert UnanimityVoting().vote(["positive"]) == ("positive", 1.0)


@pytest.mark.req("2.24")
@pytest.mark.parametrize(("candidates", "position"), [(["a", "a", "b"], 2), (["a", "b", "c"], 1)])
def test_unanimity_names_the_first_candidate_that_differs(candidates: list[str], position: int) -> None:
    with pytest.raises(NoConsensus) as caught:
        UnanimityVoting().vote(candidates)
    assert caught.value.message == f"unanimity voting: candidate {position} differs from candidate 0"


def test_weights_by_place_let_one_replica_outvote_two() -> None:
    strategy = WeightedVoting(weights=[1, 1, 3])
    assert strategy.vote(["a", "a", "b"]) == ("b", 0.6)
    assert strategy.vote(["a", "b", "a"]) == ("a", 0.8)
    assert WeightedVoting(weights=(1, 1)).vote(["a", "b"]) == ("a", 0.5)
    assert WeightedVoting(weights=(0, 0.5)).vote(["a", "b"]) == ("b", 1.0)
    assert WeightedVoting(weights=(2,)).vote(["a"]) == ("a", 1.0)


def test_weights_do_not_change_with_the_list_they_came_from() -> None:
    given = [1, 1, 3]
    strategy = WeightedVoting(weights=given)
    given[2] = 0
    assert strategy.vote(["a", "a", "b"]) == ("b", 0.6)


def test_weights_stay_with_their_replicas_when_one_did_not_answer() -> None:
    strategy = WeightedVoting(weights=(1, 5, 2))
    with pytest.raises(NoConsensus, match="2 candidates for 3 weights; say by `replicas` which replicas answered"):
        elect(strategy, ["a", "b"])
    assert elect(strategy, ["a", "b"], replicas=[0, 2]) == Poll(1, 1, 2 / 3)
    assert elect(strategy, ["a", "b"], replicas=[1, 2]) == Poll(0, 1, 5 / 7)
    with pytest.raises(NoConsensus, match="3 candidates for 2 weights"):
        elect(strategy, ["a", "b", "c"], replicas=[1, 2])
    with pytest.raises(NoConsensus, match=r"no candidate has a weight above 0$"):
        elect(WeightedVoting(weights=(0, 1)), ["a"], replicas=[0])


def test_replicas_matter_to_weights_by_place_alone() -> None:
    assert elect(MajorityVoting(), ["a", "a"], replicas=[0, 2]) == Poll(0, 2, 1.0)
    assert elect(SURE, ['{"confidence":1}'], replicas=[2]) == Poll(0, 1, 1.0)


@pytest.mark.parametrize("replicas", [[0, 0], [0, 3], [-1, 0]])
def test_replicas_that_cannot_be_are_refused(replicas: list[int]) -> None:
    with pytest.raises(RequestRejected, match="must be different places among 3 weights"):
        elect(WeightedVoting(weights=(1, 1, 1)), ["a", "b"], replicas=replicas)


def test_a_field_weighs_answers_that_are_otherwise_equal_together() -> None:
    candidates = [
        '{"label":"a","confidence":0.7}',
        '{"confidence":0.4,"label":"b"}',
        '{"label":"b","confidence":0.5}',
    ]
    assert SURE.vote(candidates) == (candidates[1], 0.9 / 1.6)
    assert elect(SURE, candidates) == Poll(1, 2, 0.9 / 1.6)


@pytest.mark.parametrize(
    ("candidate", "flaw"),
    [
        ("plain words", "candidate 0 is no JSON object"),
        ("0.9", "candidate 0 is no JSON object"),
        ('{"label":"a"}', "candidate 0 has no field 'confidence'"),
        ('{"confidence":"high"}', "candidate 0 has confidence='high', which is no number"),
        ('{"confidence":true}', "candidate 0 has confidence=True, which is no number"),
        ('{"confidence":null}', "candidate 0 has confidence=None, which is no number"),
        ('{"confidence":-0.5}', "candidate 0 has confidence=-0.5, which is not from 0 to 1"),
        ('{"confidence":95}', "candidate 0 has confidence=95, which is not from 0 to 1"),
        ('{"confidence":1e300}', "candidate 0 has confidence=1e+300, which is not from 0 to 1"),
    ],
)
def test_a_candidate_without_a_usable_field_weighs_nothing_and_is_named_when_nobody_weighs(
    candidate: str, flaw: str
) -> None:
    sound = '{"label":"z","confidence":0.1}'
    assert SURE.vote([candidate, sound]) == (sound, 1.0)
    with pytest.raises(NoConsensus) as caught:
        SURE.vote([candidate, '{"confidence":0}'])
    assert caught.value.message == f"weighted voting: no candidate has a weight above 0; {flaw}"


def test_a_field_may_be_on_another_scale() -> None:
    percent = WeightedVoting(field="percent", weight_max=100)
    assert percent.vote(['{"v":1,"percent":30}', '{"v":2,"percent":90}']) == ('{"v":2,"percent":90}', 0.75)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either weights, one for each replica, or the name of a field"),
        ({"weights": (1,), "field": "confidence"}, "either weights, one for each replica, or the name of a field"),
        ({"weights": (1, -1)}, r"weights\[1\]=-1 is not from 0 to 1e\+12"),
        ({"weights": (math.nan,)}, r"weights\[0\]=nan is not from 0 to"),
        ({"weights": (math.inf,)}, r"weights\[0\]=inf is not from 0 to"),
        ({"weights": (10**5000,)}, r"weights\[0\]=a value too long to show is not from 0 to"),
        ({"weights": (True,)}, r"weights\[0\]=True is no number"),
        ({"weights": ("1",)}, r"weights\[0\]='1' is no number"),
        ({"weights": (None, 1)}, r"weights\[0\]=None is no number"),
        ({"weights": (0, 0.0)}, "all weights are 0"),
        ({"field": "confidence", "weight_max": 0}, "all weights are 0"),
        ({"field": "confidence", "weight_max": math.nan}, "weight_max=nan is not from 0 to"),
        ({"field": "confidence", "weight_max": WEIGHT_MAX * 2}, r"weight_max=2000000000000.0 is not from 0 to 1e\+12"),
    ],
)
def test_weights_that_cannot_decide_are_refused_at_the_door(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestRejected, match=message) as caught:
        WeightedVoting(**options)
    assert caught.value.code == VOTING_INVALID


@pytest.mark.req("2.25")
def test_similarity_takes_the_answer_in_the_middle() -> None:
    candidates = ['{"a":1,"b":1,"c":9}', '{"a":1,"b":1,"c":1}', '{"a":7,"b":1,"c":1}']
    winner, confidence = SimilarityVoting().vote(candidates)
    assert winner == candidates[1]
    assert confidence == pytest.approx(((2 + 1 / 9) / 3 + (2 + 1 / 7) / 3) / 2)


@pytest.mark.req("2.25")
@pytest.mark.parametrize(
    ("candidates", "winner", "confidence"),
    [
        (["alone"], 0, 1.0),
        (['{"a":1, "b":2}', '{"b":2.0,"a":1}'], 0, 1.0),
        (["red", "blue"], 0, 0.0),
        (["red", "blue", "blue"], 1, 0.5),
        (["the cat sat here", "the cat sat there", "dogs run"], 0, (2 * 5 / 14) / 2),
    ],
)
def test_similarity_is_the_average_over_all_others(candidates: list[str], winner: int, confidence: float) -> None:
    election = elect(SimilarityVoting(), candidates)
    assert (election.winner, election.confidence) == (winner, confidence)


@pytest.mark.parametrize("strategy", BUILTIN)
def test_nobody_wins_where_nobody_stands(strategy: VotingStrategy) -> None:
    with pytest.raises(NoConsensus, match="voting: there are no candidates"):
        strategy.vote([])
    with pytest.raises(NoConsensus, match="Voting: there are no candidates"):
        elect(strategy, [])


@pytest.mark.parametrize(
    ("candidates", "still_to_come", "expected"),
    [
        (["a", "a"], 1, True),
        (["a", "a"], 2, True),  # A newcomer could tie, but was seen later.
        (["a", "a"], 3, False),
        (["a", "b"], 1, False),
        (["a", "b", "b"], 1, False),  # The first could tie, and was seen first.
        (["b", "a", "b"], 1, True),
        (["a", "b"], 0, True),
        ([], 3, False),
        ([], 0, True),
    ],
)
def test_a_majority_is_settled_when_nobody_can_overtake_it(
    candidates: list[str], still_to_come: int, expected: bool
) -> None:
    assert settled(MajorityVoting(), candidates, still_to_come) is expected


@pytest.mark.parametrize(
    ("candidates", "still_to_come", "expected"),
    [(["a", "b"], 5, True), (["a", "a"], 1, False), (["a", "a"], 0, True), (["a"], 1, False), ([], 1, False)],
)
def test_unanimity_is_settled_as_soon_as_two_differ(candidates: list[str], still_to_come: int, expected: bool) -> None:
    assert settled(UnanimityVoting(), candidates, still_to_come) is expected


@pytest.mark.parametrize(
    ("weights", "candidates", "still_to_come", "replicas", "expected"),
    [
        ((3, 1, 1), ["a"], 2, None, True),
        ((1, 1, 3), ["a", "a"], 1, None, False),
        ((2, 1, 1), ["a"], 2, None, True),
        ((1, 2, 1), ["a", "b"], 1, None, False),
        ((0, 0, 1), ["a", "b"], 1, None, False),
        ((1, 0, 0), ["a"], 2, None, True),
        ((1, 5, 2), ["a"], 1, [1], True),  # The candidate that is left has at most 2.
        ((1, 5, 2), ["a"], 1, [2], False),
        ((1, 1), ["a", "a"], 1, None, False),  # More than there are weights.
        ((9, 1, 1), ["a", "b"], 0, [0], False),  # Replicas that do not fit the candidates.
    ],
)
def test_weights_by_place_are_settled_when_what_is_left_cannot_change_the_winner(
    weights: tuple[float, ...], candidates: list[str], still_to_come: int, replicas: list[int] | None, expected: bool
) -> None:
    assert settled(WeightedVoting(weights=weights), candidates, still_to_come, replicas=replicas) is expected


def test_weights_by_field_are_settled_by_the_most_that_a_field_may_say() -> None:
    candidates = ['{"v":1,"confidence":0.9}', '{"v":1,"confidence":0.9}']
    assert settled(SURE, candidates, 1)
    assert not settled(SURE, candidates, 2)


@pytest.mark.req("2.25")
def test_a_strategy_of_a_user_may_be_an_object_or_a_function() -> None:
    candidates = ["short", ' {"longer": 1}', '{"longer":1.0}']

    def last(given: Sequence[str]) -> tuple[str, float]:
        return given[-1], 1

    assert elect(Longest(), candidates) == Poll(1, 2, 0.5)
    assert elect(last, candidates) == Poll(1, 2, 1.0)
    assert type(elect(last, candidates).confidence) is float


@pytest.mark.req("2.25")
def test_a_strategy_of_a_user_may_find_no_consensus_and_may_stop_early() -> None:
    class First(Longest):
        def is_settled(self, candidates: Sequence[str], still_to_come: int) -> bool:
            return still_to_come < len(candidates)

    def nobody(given: Sequence[str]) -> tuple[str, float]:
        raise NoConsensus(f"{len(given)} strangers")

    with pytest.raises(NoConsensus, match="2 strangers"):
        elect(nobody, ["a", "b"])
    assert settled(First(), ["a", "b"], 1)
    assert not settled(First(), ["a", "b"], 2)


@pytest.mark.parametrize("strategy", [Longest(), SimilarityVoting(), lambda given: (given[0], 1.0)])
def test_a_strategy_that_cannot_say_is_never_settled(strategy: Strategy) -> None:
    assert not settled(strategy, ["a", "a"], 0)


@pytest.mark.req("2.25")
@pytest.mark.parametrize(
    ("said", "message"),
    [
        (("c", 1.0), "Saying returned the winner 'c', which is none of the candidates"),
        ((0, 1.0), "Saying returned the winner 0, which is none of the candidates"),
        ((None, 1.0), "Saying returned the winner None, which is none of the candidates"),
        (("a", 1.5), "Saying returned the confidence 1.5, which is not from 0 to 1"),
        (("a", -0.1), "Saying returned the confidence -0.1, which is not from 0 to 1"),
        (("a", math.nan), "Saying returned the confidence nan, which is not from 0 to 1"),
        (("a", math.inf), "Saying returned the confidence inf, which is not from 0 to 1"),
        (("a", True), "Saying returned the confidence True, which is no number"),
        (("a", "1"), "Saying returned the confidence '1', which is no number"),
        (("a", None), "Saying returned the confidence None, which is no number"),
        (("a", 10**5000), "Saying returned the confidence a value too long to show, which is not from 0 to 1"),
        ("ab", "Saying returned 'ab'; it must return the winner and its confidence"),
        (("a",), "Saying returned ('a',); it must return the winner and its confidence"),
        (None, "Saying returned None; it must return the winner and its confidence"),
    ],
)
def test_what_is_no_result_of_a_vote_is_refused_with_strategy_and_value(said: Any, message: str) -> None:
    with pytest.raises(VoteInvalid) as caught:
        elect(Saying(said), ["a", "b"])
    assert caught.value.message == str(caught.value) == message


def test_a_long_value_is_cut_and_control_characters_are_escaped_in_the_message() -> None:
    with pytest.raises(VoteInvalid) as caught:
        elect(Saying(("\x1b[31m" + "x" * 500, 1.0)), ["a"])
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 200


def test_an_async_strategy_is_refused_at_the_door_and_at_the_vote() -> None:
    strategy: Any = vote_async
    with pytest.raises(VoteInvalid, match="vote_async is async"):
        elect(strategy, ["a"])
    with pytest.raises(RequestRejected, match="voting=vote_async is async; a vote runs in a thread"):
        check_strategy(strategy)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (MajorityVoting, r"voting=MajorityVoting is a class; make a strategy of it: MajorityVoting\(\.\.\.\)"),
        ("majority", r"voting='majority' has no vote\(\) and is no function of the candidates"),
        (None, r"voting=None has no vote\(\)"),
    ],
)
def test_what_could_not_take_a_vote_is_refused_at_the_door(strategy: object, message: str) -> None:
    with pytest.raises(RequestRejected, match=message) as caught:
        check_strategy(strategy)
    assert caught.value.code == VOTING_INVALID


@pytest.mark.parametrize("weights", [(1, 1), (1, 1, 1, 1)])
def test_weights_that_do_not_fit_the_replicas_are_refused_at_the_door(weights: tuple[float, ...]) -> None:
    with pytest.raises(RequestRejected, match=f"{len(weights)} weights for 3 replicas; give one weight for each"):
        check_strategy(WeightedVoting(weights=weights), replicas=3)
    check_strategy(WeightedVoting(weights=weights), replicas=len(weights))
    check_strategy(WeightedVoting(weights=weights))
    check_strategy(SURE, replicas=3)


@pytest.mark.parametrize("strategy", [*BUILTIN, Longest(), lambda given: (given[0], 1.0)])
def test_whatever_can_take_a_vote_passes_the_door(strategy: Strategy) -> None:
    check_strategy(strategy)
    assert elect(strategy, ['{"confidence":1}']).votes == 1


def test_builtin_strategies_are_found_by_name_and_others_are_told_the_names() -> None:
    assert [type(strategy_named(name)) for name in STRATEGIES] == [MajorityVoting, UnanimityVoting, SimilarityVoting]
    with pytest.raises(
        RequestRejected, match="voting='Majority' is unknown; use one of majority, unanimity, similarity"
    ) as c:
        strategy_named("Majority")
    assert c.value.code == VOTING_UNKNOWN
