"""Broken texts as models write them: each becomes the value that was meant, or is refused for the reason that is named.

The corpus is a folder of JSON lines: a text, the schema if there is one, and the value or the refusal that is expected.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.constrain import corpus_rates
from remit.constraint.reading.repair_log import Reason
from remit.constraint.stack import Constrained, Demand, constrain
from remit.core.failure import ErrorCode

# Many, or each with a whole command; the quick check has others of its kind.
pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "corpus"
DOCUMENT = Path(__file__).parents[3] / "docs" / "constraint.md"


def lines_of(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


CASES = [
    pytest.param(json.loads(line), id=f"{file.stem}-{number}")
    for file in sorted(FOLDER.glob("*.jsonl"))
    for number, line in enumerate(lines_of(file), 1)
]
CASES_MIN = 150


def held(case: dict[str, Any]) -> Constrained:
    return constrain(case["text"], Demand(case.get("schema")))


def is_as_expected(case: dict[str, Any], result: Constrained) -> bool:
    if "value" in case:
        return result.ok and json.dumps(result.value) == json.dumps(case["value"])
    return not result.ok and case["refused"] in (result.code, result.violations[0].keyword)


@pytest.mark.req("0.11", "1.23")
@pytest.mark.parametrize("case", CASES)
def test_a_broken_text_has_the_meant_value_or_the_named_refusal(case: dict[str, Any]) -> None:
    result = held(case)
    assert is_as_expected(case, result), result
    if result.ok:
        assert result.repairs, "a broken text does not become a value without a repair"


@pytest.mark.parametrize("case", CASES)
def test_without_repair_no_broken_text_has_a_value(case: dict[str, Any]) -> None:
    assert not constrain(case["text"], Demand(case.get("schema")), repair=False).ok


def test_what_becomes_of_the_corpus_is_counted_and_written_down() -> None:
    rates = corpus_rates()
    assert (rates.texts, rates.meant + rates.refused, rates.wrong) == (len(CASES), len(CASES), 0)
    assert rates.meant == sum(
        "value" in line for file in FOLDER.glob("*.jsonl") for line in map(json.loads, lines_of(file))
    )
    told = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    assert f"holds {rates.texts} broken texts as models write them" in told
    assert (
        f"{rates.meant} become the value that is meant, {rates.refused} are refused, {rates.wrong} become another value"
        in told
    )


def test_the_corpus_is_large_and_names_every_reason_but_size() -> None:
    cases = [param.values[0] for param in CASES]
    assert len(cases) >= CASES_MIN
    meant = [case for case in cases if isinstance(case, dict) and "value" in case]
    named = {case["refused"] for case in cases if isinstance(case, dict) and "refused" in case}
    codes = {code for code in ErrorCode if code.startswith("CONSTRAINT_")} - {ErrorCode.CONSTRAINT_GRAMMAR_REJECTED}
    assert named == set(Reason) - {Reason.TOO_DEEP, Reason.TOO_LONG} | codes
    right = sum(is_as_expected(case, held(case)) for case in meant)
    assert right == len(meant), f"{right} of {len(meant)} values are the meant ones"
