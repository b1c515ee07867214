"""The local model is measured where it is, and where it is not, the report says why."""

import json
from pathlib import Path

import pytest

from benchmarks.local import Local, local_lines, local_values, measure_local
from remit.inference.local import engine, models
from remit.inference.local.models import DEFAULT_NAME
from tests.unit.inference.tiny_model import write_tiny_model

pytestmark = pytest.mark.unmeasured

SOME = Local("local:tiny", 400.0, 350.0, 90.0, 170.0, 21.0, 2_000, 100, (0.1, 80.0), (0.1, 1_200.0))


@pytest.mark.slow
def test_every_figure_of_a_local_model_is_measured(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / f"{DEFAULT_NAME}.gguf", llama__context_length=8192)
    measured = measure_local(tmp_path)
    assert isinstance(measured, Local)
    assert measured.model == f"local:{DEFAULT_NAME}"
    assert min(measured.load_ms, measured.tokens_per_second, measured.read_tokens_per_second, measured.lag_ms) > 0
    assert min(*measured.cancel_speaking_ms, *measured.cancel_reading_ms) > 0


def test_a_machine_without_the_model_or_its_runtime_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "WEIGHTS_MODULE", "a_package_that_is_not_installed")
    assert "remit models add smollm2" in "\n".join(local_lines(measure_local(tmp_path)))
    monkeypatch.setattr(engine, "RUNTIME_MODULE", "a_package_that_is_not_installed")
    assert "remit[local]" in local_values(measure_local())["not_measured"]


def test_goals_of_the_local_model_are_judged() -> None:
    text = "\n".join(local_lines(SOME))
    assert "21.0 ms; wanted 20: MISSED" in text
    assert "80 ms; wanted 1,000: reached" in text
    assert "1,200 ms; wanted 1,000: MISSED" in text
    assert json.loads(json.dumps(local_values(SOME)))["lag_ms"] == 21.0
