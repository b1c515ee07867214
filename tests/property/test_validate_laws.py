"""Laws of finding, ordering and judging: whatever the texts say."""

import copy
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.context.fts import Document, DocumentIndex, passages_of
from remit.core.failure import RequestRejected
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.rerank.lexical import rerank
from remit.validate.check import Report, compile_rules, confidence_of, result_of
from remit.validate.rule_set import (
    AllowedValues,
    Citations,
    Length,
    MustMatch,
    MustMention,
    MustNotMatch,
    MustNotMention,
    NoSecrets,
    NotEmpty,
    NumberRange,
    RequiredFields,
    Rule,
    RuleCheck,
    RuleSet,
    Severity,
)
from remit.validate.safe_regex import compile_pattern

CHECKS: tuple[RuleCheck, ...] = (
    NotEmpty(),
    Length(chars_min=1, chars_max=20),
    MustMatch("[a-z]"),
    MustNotMatch("b.{1,5}c"),
    MustMention(("a",)),
    MustNotMention(("b",)),
    RequiredFields(("a", "b")),
    NumberRange(least=0, most=5),
    AllowedValues(("a", 1, True)),
    Citations(),
    NoSecrets(),
)
PLACES = ("", "/a", "/a/*", "/0")
ALL = tuple(
    Rule(f"{number}{place}", check, place, severity, optional)
    for number, check in enumerate(CHECKS)
    for place, severity, optional in zip(PLACES, [*Severity] * 2, (True, False) * 2, strict=True)
)
RULES = compile_rules(RuleSet("all", ALL))
SOME = ALL[::3]

KEYS = st.sampled_from(["a", "b", "0", "a/b", "~"])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(["a", "abc [1]", '{"a":1}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
CANDIDATES = st.builds(Candidate, st.text(max_size=30), st.text(max_size=5), st.floats(), st.sampled_from(ScoreMaker))


@given(VALUES)
def test_judging_changes_nothing_and_says_the_same_again(value: Any) -> None:
    before = copy.deepcopy(value)
    assert RULES.check(value) == RULES.check(value)
    assert repr(value) == repr(before)


@given(VALUES, st.permutations(SOME))
def test_the_order_of_rules_decides_the_listing_alone(value: Any, order: list[Rule]) -> None:
    def by_rule(report: Report) -> dict[str, list[Any]]:
        return {rule.name: [breach for breach in report.breaches if breach.rule == rule.name] for rule in SOME}

    shuffled = compile_rules(RuleSet("all", tuple(order))).check(value)
    straight = compile_rules(RuleSet("all", SOME)).check(value)
    assert by_rule(shuffled) == by_rule(straight)
    assert sorted(shuffled.passed) == sorted(straight.passed)


@given(VALUES)
def test_every_rule_passes_or_is_broken_and_is_counted_once(value: Any) -> None:
    report = RULES.check(value)
    result = result_of(report)
    assert set(report.passed).isdisjoint(breach.rule for breach in report.breaches)
    assert result.checks_passed + result.checks_failed == len(ALL)
    confidence = confidence_of(result)
    assert confidence is not None
    assert 0.0 <= confidence[0] <= 1.0


@given(VALUES)
def test_every_violation_is_one_printable_line(value: Any) -> None:
    assert all(line.isprintable() for line in result_of(RULES.check(value)).violations)


@given(st.text(alphabet="ab.*+?{}()[]|\\^$-,12P<>=!:i", max_size=15), st.text(alphabet="ab.1\n", max_size=10))
def test_a_pattern_is_refused_or_answers_and_what_it_found_matches(source: str, text: str) -> None:
    try:
        pattern = compile_pattern(source)
    except RequestRejected:
        return
    found = pattern.first_in(text)
    assert (found is not None) == pattern.occurs_in(text)
    assert found is None or (text[found.start :].startswith(found.text) and pattern.occurs_in(found.text))


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["a", "ab ", "é漢", "[1]", '{"a":', "sk-", "eyJa.", "a://b:c", "\n", "-----BEGIN A "])
def test_a_megabyte_is_judged_in_seconds(piece: str) -> None:
    text = (piece * 1_000_000)[:1_000_000]
    began = time.process_time()
    report = RULES.check(text)
    assert len(report.passed) < len(ALL)
    assert time.process_time() - began < 20


@given(st.text(max_size=20), st.lists(CANDIDATES, max_size=8))
def test_reranking_is_a_permutation_with_falling_scores(query: str, candidates: list[Candidate]) -> None:
    found = rerank(query, candidates)
    assert sorted((str(c.content), c.source) for c in found) == sorted((str(c.content), c.source) for c in candidates)
    scores = [c.score for c in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 and c.scored_by is ScoreMaker.RERANK for score, c in zip(scores, found, strict=True))
    assert rerank(query, found[:3]) == rerank(query, found[:3])


INDEX = DocumentIndex()
INDEX.add(
    Document(f"d{n}", text)
    for n, text in enumerate(("near and far", "not or and", "text of words", "a b c", "é ü 漢字"))
)


@given(st.text(max_size=60) | st.text(alphabet="ab\"'()*:^-+{} NEARORTD\x00", max_size=40))
def test_no_query_ever_raises_and_relevance_is_a_share(query: str) -> None:
    found = INDEX.retrieve(query)
    assert found == INDEX.retrieve(query)
    assert all(candidate.score >= 0 and 0 <= candidate.metadata["relevance"] <= 1 for candidate in found)
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)


@given(st.text(alphabet="ab. \n", max_size=400), st.integers(40, 80), st.integers(0, 10))
def test_pieces_are_bounded_stand_where_they_say_and_lose_nothing(
    text: str, chars_max: int, overlap_chars: int
) -> None:
    pieces = list(passages_of(text, chars_max=chars_max, overlap_chars=overlap_chars))
    covered: set[int] = set()
    for piece in pieces:
        assert 0 < len(piece.text) <= chars_max
        assert text[piece.start : piece.start + len(piece.text)] == piece.text
        covered.update(range(piece.start, piece.start + len(piece.text)))
    assert all(letter.isspace() or at in covered for at, letter in enumerate(text))
