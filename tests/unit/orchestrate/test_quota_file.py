"""The file of quotas: what it may say, and how it is refused with the line of what is wrong."""

from pathlib import Path

import pytest

from remit.assemble import Settings, quotas_for
from remit.core.failure import RequestRejected
from remit.core.limits.budget import Budget
from remit.core.limits.quota import Period, Quota
from remit.orchestrate.tenants import quota_ledger
from remit.orchestrate.tenants.quota_ledger import read_quotas

GOOD = """
quotas:
  - tenant: acme
    period: day
    caps:
      output_tokens: 100000
      tool_calls: 0
  - tenant: "*"
    period: month
    caps: {inference_cost_microusd: 2000000}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "quotas.yaml"
    path.write_text(text)
    return path


def test_a_file_says_what_python_would(tmp_path: Path) -> None:
    quotas = (
        Quota("acme", Period.DAY, Budget(output_tokens=100_000, tool_calls=0)),
        Quota("*", Period.MONTH, Budget(inference_cost_microusd=2_000_000)),
    )
    assert read_quotas(written(tmp_path, GOOD)) == quotas
    assert quotas_for(Settings(tmp_path)) == quotas


def test_a_folder_without_the_file_has_no_quotas(tmp_path: Path) -> None:
    assert quotas_for(Settings(tmp_path)) == ()


ONE = "quotas:\n- {tenant: a, period: day, caps: {steps: 1}}\n"


@pytest.mark.parametrize(
    ("text", "code", "line", "said"),
    [
        ("", "FILE_VALUE_INVALID", 0, "the file must be a mapping"),
        ("quota: []\n", "FILE_KEY_UNKNOWN", 1, "did you mean 'quotas'?"),
        ("quotas: 3\n", "FILE_VALUE_INVALID", 1, "quotas must be a list, not 3"),
        ("quotas: [1]\n", "FILE_VALUE_INVALID", 1, "quotas[0] must be a mapping"),
        (ONE + "- {tenat: a}\n", "FILE_KEY_UNKNOWN", 3, "did you mean 'tenant'?"),
        (ONE + "- {tenant: 7}\n", "FILE_VALUE_INVALID", 3, "must be a text in quotes"),
        (ONE + "- {tenant: *}\n", "FILE_NOT_YAML", 3, "is not YAML"),
        (ONE + "- {tenant: b, period: year}\n", "FILE_VALUE_INVALID", 3, "one of hour, day, month, total, not 'year'"),
        (ONE + "- {tenant: b, period: [day]}\n", "FILE_VALUE_INVALID", 3, "one of hour, day, month, total"),
        (ONE + "- {tenant: b, period: day}\n", "FILE_VALUE_INVALID", 3, "quotas[1].caps must be a mapping"),
        (ONE + "- {tenant: b, period: day, caps: {step: 1}}\n", "FILE_KEY_UNKNOWN", 3, "did you mean 'steps'?"),
        (ONE + "- {tenant: b, period: day, caps: {steps: }}\n", "FILE_VALUE_INVALID", 3, "whole number, not None"),
        (ONE + "- {tenant: b, period: day, caps: {steps: many}}\n", "FILE_VALUE_INVALID", 3, "not 'many'"),
        (ONE + "- {tenant: b, period: day, caps: {steps: -1}}\n", "FILE_VALUE_INVALID", 3, "steps=-1"),
        (ONE + "- {tenant: b, period: day, caps: {depth: 1}}\n", "FILE_VALUE_INVALID", 3, "does not add up"),
        (ONE + "- {tenant: a, period: day, caps: {steps: 2}}\n", "FILE_VALUE_INVALID", 3, "two quotas per day"),
        (ONE + "- {tenant: '', period: day, caps: {steps: 2}}\n", "FILE_VALUE_INVALID", 3, "is no name"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, code: str, line: int, said: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        read_quotas(written(tmp_path, text))
    assert (refused.value.code, refused.value.details["line"]) == (code, line)
    assert said in refused.value.message
    assert "quotas.yaml" in refused.value.message


def test_a_file_of_more_quotas_than_people_write_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quota_ledger, "QUOTAS_MAX", 1)
    with pytest.raises(RequestRejected, match="quotas has 2 entries, more than quotas_max=1"):
        read_quotas(written(tmp_path, GOOD))
