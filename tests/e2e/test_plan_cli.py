"""Plan files, played by the installed command: killed at every step and resumed in another process.

Steps that are code note what they do in a file. One that finds a file with its name waits there, so that it is killed in
the middle; the line that tells of its beginning says when.
"""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from remit.core.work.values import CONVERTIBLE
from tests.e2e.command import Answer, Remit, Running, remit_in, until

EXIT_OK = 0
# A file of the guide: its name, then what it holds.
NAMED = re.compile(r"^`(?P<name>[\w./]+)`:\n\n```\w+\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)

PLAN = """
rules: rules.yaml
handlers: handlers.py
steps:
  - {name: write, type: jot, input: the beginning}
  - {name: think, type: infer, instruction: Say something about it.}
  - {name: look, type: tool, tool: look, input: {place: the shelf}}
  - {name: verify, type: validate}
"""
RULES = """
name: found
rules:
  - {name: says where, check: must_mention, words: [shelf]}
"""
NOTING = '''
"""Tools that note each call, and wait where a test says so."""

from pathlib import Path
from threading import Event

HERE = Path(__file__).parent


def _note(step):
    with (HERE / "ledger").open("a") as ledger:
        ledger.write(f"{step}\\n")
    if (HERE / f"hold-{step}").exists():
        Event().wait(60)

'''
HANDLERS = f'''{NOTING}
def jot(step):
    """Note the step."""
    _note(step.name)
    return f"{{step.input}}, written down"
'''
TOOLS = f'''{NOTING}
from remit import tool


@tool(effect="read")
def look(place: str) -> str:
    """Look somewhere."""
    _note("look")
    return f"a book on {{place}}"
'''
REPLIES = [{"text": "A good beginning.", "delay_ms": 1000}]
STEPS = ("write", "think", "look", "verify")
# Those that leave a line in the file.
NOTED = ("write", "look")


def begun(remit: Remit) -> Running:
    """The plan, under way, told to people."""
    (remit.folder / "plan.yaml").write_text(PLAN)
    (remit.folder / "rules.yaml").write_text(RULES)
    (remit.folder / "handlers.py").write_text(HANDLERS)
    remit.write(TOOLS, REPLIES)
    words = ("--mode", "plan", "--plan", "plan.yaml", "--engine", f"scripted:{remit.folder / 'script.json'}")
    return remit.start("run", *words, "--tools", "tools.py")


def killed_at(running: Running, told: str, and_then: Callable[[], object] = lambda: True) -> None:
    """Kill a command once it has told this, and something else has come about."""
    err = running.process.stderr
    assert err is not None, "the output can be read"
    while told not in (line := err.readline()):
        assert line, f"the command ended and has not told {told!r}"
    until(and_then, "what it told has begun")
    running.process.kill()
    running.process.communicate()


def guide() -> str:
    return (Path(__file__).parents[2] / "docs" / "plans.md").read_text(encoding="utf-8")


def noted(remit: Remit) -> list[str]:
    ledger = remit.folder / "ledger"
    return ledger.read_text().splitlines() if ledger.exists() else []


def result_of(answer: Answer) -> tuple[int, str, object]:
    return answer.exit_code, answer.values["content"], answer.values["structured_output"]


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_a_plan_that_is_killed_at_a_step_is_resumed_and_no_finished_step_runs_again(step: str, tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        (tmp_path / f"hold-{step}").touch()
        killed_at(begun(remit), f"-> {step} ", lambda: step not in NOTED or step in noted(remit))
        (tmp_path / f"hold-{step}").unlink()
        resumed = remit("resume", "last", "--json")
        assert result_of(resumed) == (
            EXIT_OK,
            "a book on the shelf",
            {
                "write": "the beginning, written down",
                "think": "A good beginning.",
                "look": "a book on the shelf",
                "verify": "a book on the shelf",
            },
        )
        # What was cut off in the middle is done once more, and nothing else.
        assert noted(remit) == [name for name in NOTED for _ in range(2 if name == step else 1)]


@pytest.mark.slow
def test_a_plan_that_nobody_kills_gives_the_same(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        answer = begun(remit).answer()
        assert (answer.exit_code, answer.out) == (EXIT_OK, "a book on the shelf\n")
        assert noted(remit) == ["write", "look"]
        told = [line.split()[:2] for line in answer.err.splitlines()]
        assert told == [[mark, step] for step in STEPS for mark in ("->", "<-")]


@pytest.mark.slow
def test_a_plan_whose_files_are_gone_or_changed_is_not_resumed_until_a_person_accepts_it(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        (tmp_path / "hold-look").touch()
        killed_at(begun(remit), "-> look ")
        (tmp_path / "hold-look").unlink()
        (tmp_path / "rules.yaml").rename(tmp_path / "elsewhere.yaml")
        gone = remit("resume", "last")
        assert (gone.exit_code, gone.error_code) == (1, "PLAN_SOURCE_MISSING")
        assert remit("resume", "last", "--accept-tools").error_code == "PLAN_SOURCE_MISSING"
        (tmp_path / "rules.yaml").write_text(RULES.replace("shelf", "shelf, book"))
        changed = remit("resume", "last")
        assert (changed.exit_code, changed.error_code) == (1, "PLAN_SOURCE_CHANGED")
        assert "remit resume RUN --accept-tools" in changed.err
        accepted = remit("resume", "last", "--accept-tools", "--by", "erin", "--json")
        assert (accepted.exit_code, accepted.values["content"]) == (EXIT_OK, "a book on the shelf")
        assert '"by": "erin"' in remit("trace", "last", "--json").out


@pytest.mark.slow
def test_a_plan_file_with_other_steps_is_refused_even_if_a_person_accepts_it(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        (tmp_path / "hold-look").touch()
        killed_at(begun(remit), "-> look ")
        (tmp_path / "hold-look").unlink()
        (tmp_path / "plan.yaml").write_text(PLAN.replace("the shelf", "the floor"))
        refused = remit("resume", "last", "--accept-tools")
        assert (refused.exit_code, refused.error_code) == (1, "PLAN_DEFINITION_CHANGED")
        (tmp_path / "plan.yaml").write_text(f"# Only a remark.\n{PLAN}")
        assert remit("resume", "last", "--accept-tools", "--json").values["content"] == "a book on the shelf"


@pytest.mark.slow
def test_a_user_who_resumes_a_plan_at_a_terminal_is_told_the_steps_that_are_left(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        (tmp_path / "hold-look").touch()
        killed_at(begun(remit), "-> look ")
        (tmp_path / "hold-look").unlink()
        resumed = remit("resume", "last")
        assert (resumed.exit_code, resumed.out) == (EXIT_OK, "a book on the shelf\n")
        told = [line.split()[:2] for line in resumed.err.splitlines() if line.startswith("  ")]
        assert told == [["<-", "look"], ["->", "verify"], ["<-", "verify"]]


@pytest.mark.slow
def test_the_example_of_the_guide_runs_as_it_says(tmp_path: Path) -> None:
    for found in NAMED.finditer(guide()):
        (tmp_path / found["name"]).parent.mkdir(exist_ok=True)
        (tmp_path / found["name"]).write_text(found["text"])
    (command,) = re.findall(r"^remit (.+)$", guide(), re.MULTILINE)
    with remit_in(tmp_path) as remit:
        said = remit(*shlex.split(command))
        assert (said.exit_code, said.out) == (EXIT_OK, "Within 14 days of delivery [1].\n")
        assert without_times(said.err) + said.out in without_times(guide())


def without_times(text: str) -> str:
    """A text without how long its steps took."""
    return re.sub(r"\d+ ms  ", "", text)


def test_the_guide_has_the_table_of_conversions() -> None:
    made = [f"| {taken.value} | {', '.join(sorted(kinds))} |" for taken, kinds in CONVERTIBLE.items()]
    assert "\n".join(made) in guide()
