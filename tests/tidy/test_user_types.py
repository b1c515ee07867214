"""Type checkers as users run them: over the examples and over what a user relies on, with the strictest settings."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.tidy.source import ROOT

USER_CODE = ("tests/tidy/user_code", "examples")
WRONG = """
from remit import SpecializedLoop, tool


@tool
def stock(item: str) -> int:
    return 0


stock(3)
stock()
SpecializedLoop("local", schema=None)
"""


def checked(checker: str, *paths: str, cwd: Path) -> tuple[int, str]:
    """What a type checker says of files that are no part of the project."""
    options = {"mypy": ["--strict", "--no-incremental", "--config-file="], "basedpyright": ["--level", "error"]}
    command = [sys.executable, "-m", checker, *options[checker], *paths]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


CHECKERS = [
    "mypy",
    pytest.param("basedpyright", marks=pytest.mark.skipif(not find_spec("basedpyright"), reason="not installed")),
]


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_code_of_users_has_no_error_of_types(checker: str) -> None:
    status, said = checked(checker, *USER_CODE, cwd=ROOT)
    assert status == 0, said


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_call_that_does_not_fit_its_tool_is_an_error_of_types(checker: str, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG, encoding="utf-8")
    status, said = checked(checker, "wrong.py", cwd=tmp_path)
    assert status == 1, said
    assert {line.partition("wrong.py:")[2].partition(":")[0] for line in said.splitlines() if "error:" in line} >= {
        "10",
        "11",
        "12",
    }, said
