"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.transcript import README, comparable, in_readme, recorded, shown


@pytest.mark.model
def test_the_transcript_is_what_the_demo_says() -> None:
    assert comparable(in_readme(README.read_text(encoding="utf-8"))) == comparable(shown(recorded()))


@pytest.mark.model
def test_the_example_answers_with_what_its_tool_said(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    # Its words may differ from one processor to another.
    assert (done.stderr, done.returncode, "3" in done.stdout) == ("", 0, True), done.stdout


def test_a_transcript_that_says_something_else_is_noticed() -> None:
    transcript = in_readme(README.read_text(encoding="utf-8"))
    assert comparable(transcript) != comparable(transcript.replace("committed", "assumed"))
    assert comparable(transcript) == comparable(re.sub(r"\d+ ms", "7 ms", transcript))
