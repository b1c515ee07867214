"""Type checkers as users run them: over the examples and over what a user relies on, with the strictest settings."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.tidy.source import ROOT

USER_CODE = ("tests/tidy/user_code", "examples")
OPTIONS = {
    "mypy": ["--strict", "--no-incremental", "--config-file="],
    "basedpyright": ["--level", "error", "--pythonpath", sys.executable],
}
WRONG = """
from remit import SpecializedLoop, tool


@tool
def stock(item: str) -> int:
    return 0


stock(3)
stock()
SpecializedLoop("local", schema=None)
"""


@cache
def checked(checker: str) -> tuple[list[str], list[str], str]:
    """What a type checker objects to in the code of users, and in a program that is wrong; and all that it said."""
    with TemporaryDirectory() as folder:
        wrong = Path(folder) / "wrong.py"
        wrong.write_text(WRONG, encoding="utf-8")
        command = [sys.executable, "-m", checker, *OPTIONS[checker], *USER_CODE, str(wrong)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    errors = [line for line in said.splitlines() if "error:" in line]
    return [line for line in errors if wrong.name not in line], [line for line in errors if wrong.name in line], said


@pytest.mark.slow
@pytest.mark.parametrize("checker", OPTIONS)
def test_code_of_users_has_no_error_of_types(checker: str) -> None:
    errors, _, said = checked(checker)
    assert errors == [], said


@pytest.mark.slow
@pytest.mark.parametrize("checker", OPTIONS)
def test_a_call_that_does_not_fit_its_tool_is_an_error_of_types(checker: str) -> None:
    _, errors, said = checked(checker)
    assert {line.partition("wrong.py:")[2].partition(":")[0] for line in errors} >= {"10", "11", "12"}, said
