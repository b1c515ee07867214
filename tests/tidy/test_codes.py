"""Every code that a caller may meet has a category and says whether trying again may help."""

import re

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode, Refusal, RequestRejected, failure_named
from remit.core.failure_families import FailureCategory, Retryable, code_family
from remit.core.schema.strict_yaml import YamlFault
from remit.kernel.graph.expressions import GuardFault
from remit.kernel.graph.graph_checks import GraphFault
from scripts.requirements import ROOT

# Constants that look like codes and are names of the environment, or of a stream and its buckets.
NOT_CODES = {
    "AGENT",
    "AGENT_ALIVE",
    "AGENT_KEYS",
    "AGENT_LOOPS",
    "AGENT_TEXTS",
    "AGENT_TRAJECTORIES",
    "ANTHROPIC_API_KEY",
    "LC_",
    "NO_COLOR",
    "REMIT_ENGINE_URLS",
    "REMIT_SECRET_",
    "REMIT_STORE",
    "REMIT_TRUST",
    "TERM",
    "HANDLERS",
}
CONSTANT = re.compile(r'^_?[A-Z][A-Z_]* = "([A-Z][A-Z_]+)"$', re.MULTILINE)
RAISED = re.compile(r'(?:Rejected|Broken|Unusable|Error|__init__|Fault)\(\s*"([A-Z]+_[A-Z_]+)"')


def codes() -> set[str]:
    texts = [path.read_text() for path in (ROOT / "src" / "remit").rglob("*.py")]
    written = {code for text in texts for pattern in (CONSTANT, RAISED) for code in pattern.findall(text)}
    return {*written, *ArrivalFault, *GraphFault, *GuardFault, *YamlFault} - NOT_CODES - {*ErrorCode, *Ending, *Refusal}


@pytest.mark.req("0.22")
def test_no_code_is_without_a_category() -> None:
    assert sorted(str(code) for code in codes() if code_family(code) is None) == []


@pytest.mark.req("0.22")
def test_the_longest_beginning_decides() -> None:
    assert code_family("TOOL_FILE_EMPTY") == (FailureCategory.CONFIGURATION, Retryable.NO)
    assert code_family("TOOL_OF_A_USER") == (FailureCategory.TOOL, Retryable.IF_IDEMPOTENT)
    assert code_family("SOMETHING_ELSE") is None


@pytest.mark.req("0.22")
def test_a_rejected_request_says_what_kind_of_failure_it_is() -> None:
    rejected = RequestRejected("REQUEST_TOO_LARGE", "too large")
    assert (rejected.category, rejected.retryable) == (FailureCategory.CONFIGURATION, False)
    busy = RequestRejected("AGENT_BUSY", "busy")
    assert (busy.category, busy.retryable) == (FailureCategory.ORCHESTRATION, True)


@pytest.mark.req("0.22")
@pytest.mark.parametrize(
    "code", [*YamlFault, *GuardFault, "STORE_ADDRESS_INVALID", "STORE_EXTRA_MISSING", "COSTS_INVALID"]
)
def test_what_a_caller_wrote_wrongly_is_configuration(code: str) -> None:
    rejected = RequestRejected(code, "written wrongly")
    assert (rejected.category, rejected.retryable) == (FailureCategory.CONFIGURATION, False)


@pytest.mark.parametrize("code", [*ErrorCode, *Refusal, *Ending, "MY_OWN"])
def test_any_code_can_be_asked_for(code: str) -> None:
    assert failure_named(code).code
