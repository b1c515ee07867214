"""Grammars of llama.cpp's own tests: what they accept, what they reject, and which are none."""

from typing import Any

import pytest

from remit.constraint.grammar.gbnf import GRAMMAR_INVALID
from remit.constraint.grammar.matching import Fit, read_with
from remit.constraint.grammar.notation import check_grammar
from remit.core.failure import RequestRejected
from tests.vectors import vectors

CASES = vectors("gbnf_cases.json")
ACCEPTED = [(case, text) for case in CASES["grammar_cases"] for text in case["accept"]]
REJECTED = [(case, text) for case in CASES["grammar_cases"] for text in case["reject"]]


@pytest.mark.parametrize(("case", "text"), ACCEPTED, ids=str)
def test_what_a_grammar_accepts_fits_it(case: dict[str, Any], text: str) -> None:
    assert read_with(case["grammar"], text).fit is Fit.FITS


@pytest.mark.parametrize(("case", "text"), REJECTED, ids=str)
def test_what_a_grammar_rejects_does_not_fit_it(case: dict[str, Any], text: str) -> None:
    assert read_with(case["grammar"], text).fit is not Fit.FITS


# Filed among the bad grammars, and none of them: it has one rule and refers to nothing.
SOUND = 'root ::= "foobar"'
BAD = [case["grammar"] for case in CASES["bad_grammars"] if case["grammar"].strip() != SOUND]


@pytest.mark.parametrize("grammar", BAD, ids=str)
def test_a_grammar_that_is_none_is_refused(grammar: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        check_grammar(grammar)
    assert refused.value.code == GRAMMAR_INVALID
    assert "line " in refused.value.message
