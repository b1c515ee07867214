"""Coverage that a worker lost is an error that says so."""

import json
from pathlib import Path
from typing import Any

from tests.measured import COUNT, Sum


def said(*executed: int, missing: tuple[int, ...]) -> dict[str, Any]:
    lines = {"executed_lines": list(executed), "missing_lines": list(missing)}
    file = {**lines, "executed_branches": [], "missing_branches": []}
    meta = {"software": "slipcover", "branch_coverage": True}
    return {COUNT: json.dumps({"meta": meta, "files": {"src/remit/core/a.py": file}})}


def test_what_one_of_two_workers_reached_is_reached(tmp_path: Path) -> None:
    counted = Sum()
    counted.hear("gw0", said(1, 2, missing=(3, 4)))
    counted.hear("gw1", said(1, 3, missing=(2, 4)))
    counted.write(tmp_path / "report")
    file = json.loads((tmp_path / "report").read_text())["files"]["src/remit/core/a.py"]
    assert (file["executed_lines"], file["missing_lines"]) == ([1, 2, 3], [4])
    assert counted.lost == []


def test_a_worker_that_ended_without_a_word_is_named_and_nothing_is_reported(tmp_path: Path) -> None:
    (tmp_path / "report").write_text("of an earlier run")
    counted = Sum()
    counted.hear("gw0", said(1, missing=()))
    counted.hear("gw1", {})
    counted.write(tmp_path / "report")
    assert counted.lost == ["worker gw1 ended without saying what it reached"]
    assert not (tmp_path / "report").exists()
