"""The gate lets a room through only with its share of covered lines and branches."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.coverage_gate import main, rooms_below, tally_rooms


def entry(covered: int, total: int, *, branches: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    return {
        "executed_lines": list(range(covered)),
        "missing_lines": list(range(covered, total)),
        "executed_branches": [[0, number] for number in range(branches[0])],
        "missing_branches": [[1, number + 2] for number in range(branches[1] - branches[0])],
    }


def below(**files: dict[str, Any]) -> list[str]:
    return rooms_below(tally_rooms({"files": {f"src/remit/{name}.py": found for name, found in files.items()}}))


@pytest.mark.parametrize("room", ["core", "kernel"])
def test_core_and_kernel_must_be_covered_completely(room: str) -> None:
    assert below(**{f"{room}/a": entry(99, 100)}) == [room]
    assert below(**{f"{room}/a": entry(100, 100, branches=(9, 10))}) == [room]
    assert below(**{f"{room}/a": entry(100, 100, branches=(10, 10))}) == []


def test_elsewhere_a_room_may_lack_a_twentieth() -> None:
    assert below(**{"observe/a": entry(90, 100), "observe/b/c": entry(100, 100), "agents": entry(0, 0)}) == []
    assert below(**{"observe/a": entry(94, 100), "testing/b": entry(100, 100)}) == ["observe"]


def test_programs_of_other_processes_are_not_counted() -> None:
    assert below(**{"tool/process/warden": entry(0, 100), "tool/a": entry(10, 10)}) == []
    assert below(**{"tool/process/warden": entry(0, 100), "tool/a": entry(9, 10)}) == ["tool"]


def test_the_gate_names_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"files": {"src/remit/core/a.py": entry(1, 2, branches=(0, 1))}}))
    assert main(report) == 1
    assert capsys.readouterr().err == "src/remit/core/a.py: 1, 1->2\n"


def test_many_gaps_of_one_file_are_counted_instead_of_listed() -> None:
    gaps = tally_rooms({"files": {"src/remit/core/a.py": entry(1, 31)}})["core"].gaps
    assert gaps == ("src/remit/core/a.py: " + ", ".join(str(line) for line in range(1, 21)) + " and 10 more",)


def test_the_gate_refuses_a_report_without_our_files(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"files": {"elsewhere/a.py": entry(1, 1)}}))
    assert main(report) == 1


def test_the_gate_lets_a_covered_house_through(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"files": {"src/remit/core/a.py": entry(2, 2)}}))
    assert main(report) == 0


def test_what_one_of_two_processes_reached_is_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    meta = {"software": "slipcover", "version": "1", "branch_coverage": True, "show_contexts": False}
    for name, executed, missing in (("first", [1, 2], [3, 4]), ("second", [1, 3], [2, 4])):
        lines = {"executed_lines": executed, "missing_lines": missing}
        file = {**lines, "executed_branches": [], "missing_branches": []}
        (tmp_path / name).write_text(json.dumps({"meta": meta, "files": {"src/remit/core/a.py": file}}))
    assert main(tmp_path / "first", tmp_path / "second") == 1
    assert capsys.readouterr().err == "src/remit/core/a.py: 4\n"
