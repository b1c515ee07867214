"""Every kind of errand is performed by another process, from its bytes and a kit that is made there.

That process is killed before it looks at an errand, while it is at work, or before it reports; what changes nothing is
then performed by another one, and the run ends as if nothing had happened.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import Ending
from remit.orchestrate.executors.performers import Performers
from remit.testing import KillAt
from tests import warm
from tests.e2e import errand_kit
from tests.e2e.command import PATIENCE_S, prove_all
from tests.e2e.elsewhere import LoggedElsewhere
from tests.tidy.source import ROOT
from tests.unit.orchestrate.house import request, systems

pytestmark = pytest.mark.slow

killed = pytest.mark.parametrize("moment", ["-", KillAt.RECEIVED, KillAt.ACTING, KillAt.DONE])

TOOLS = '''
import os
from typing import Literal

from remit import tool


@tool(effect="read", network=False)
def look(at: str) -> str:
    """Look at something."""
    return f"{at} as process {os.getpid()} sees it. " + "Much more is to be said. " * 100


def happened(key: str) -> bool:
    """It always has."""
    return True


@tool(effect="external", network=True, reconcile=happened, asks=["pay"])
def pay(to: str) -> Literal["paid"]:
    """Pay."""
    raise ConnectionError("the line is dead")
'''
RULES = """
name: polite
rules:
  - {name: says thanks, check: must_mention, words: [thanks]}
"""
PLAN = """
rules: rules.yaml
handlers: handlers.py
steps:
  - {name: write, type: jot, input: many thanks}
  - {name: look, type: tool, tool: look, input: {at: the shelf}}
  - {name: end, type: jot, input: thanks}
  - {name: verify, type: validate}
"""
HANDLERS = '''
def jot(step):
    """Note the step."""
    return f"{step.input}, written down"
'''
SCHEMA = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'
VOTER = '''
def first(answers):
    """The first of all."""
    return answers[0], 1.0
'''


class Folder:
    """A folder with the files of runs whose errands are performed by another process."""

    def __init__(self, path: Path, moment: str, files: dict[str, str]) -> None:
        self.path, self.home, self.moment = path, path / "store", moment
        for name, text in files.items():
            (path / name).write_text(text)

    def script(self, *replies: dict[str, object]) -> str:
        """An engine that says this."""
        (self.path / "script.json").write_text(json.dumps({"replies": replies}))
        return "scripted:script.json"

    def said(self, *arguments: str) -> tuple[int, str]:
        """What the command line says there."""
        words = [sys.executable, "-m", "tests.e2e.elsewhere", str(self.path / "kinds"), self.moment, *arguments]
        known = {**os.environ, "REMIT_HOME": str(self.home), "PYTHONPATH": str(ROOT)}
        answer = warm.run(
            words, check=False, cwd=self.path, env=known, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert "Traceback" not in answer.stderr, answer.stderr
        return answer.returncode, answer.stdout

    @property
    def kinds(self) -> set[str]:
        """What was performed elsewhere; every run of the store verifies, and decides to the same bytes again."""
        assert prove_all(self.home)
        return kinds_in(self.path / "kinds", self.moment)


def kinds_in(log: Path, moment: str) -> set[str]:
    """What was performed elsewhere; where its performer was to be killed, it was, over each kind."""
    lines = log.read_text().split()
    dead, kinds = ({line for line in lines if line.startswith("-") is is_dead} for is_dead in (True, False))
    assert dead == (set() if moment == "-" else {f"-{kind}" for kind in kinds})
    return kinds


def calls(name: str, **arguments: object) -> dict[str, object]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


@killed
def test_models_tools_inquiries_and_rules_are_performed_elsewhere(tmp_path: Path, moment: str) -> None:
    folder = Folder(tmp_path, moment, {"tools.py": TOOLS, "rules.yaml": RULES})
    engine = folder.script(calls("look", at="the sky"), calls("pay", to="acme"), {"text": "Paid, thanks."})
    asked = ("run", "Look, and pay acme", "--engine", engine, "--tools", "tools.py", "--rules", "rules.yaml")
    assert folder.said(*asked)[0] == 3
    assert folder.said("approve", "last", "--by", "ada") == (0, "Paid, thanks.\n")
    assert folder.kinds == {"ModelErrand", "ToolErrand", "InquiryErrand", "JudgeErrand"}


@killed
def test_steps_of_a_plan_and_their_calls_are_performed_elsewhere(tmp_path: Path, moment: str) -> None:
    folder = Folder(
        tmp_path, moment, {"tools.py": TOOLS, "rules.yaml": RULES, "plan.yaml": PLAN, "handlers.py": HANDLERS}
    )
    asked = ("run", "Go", "--mode", "plan", "--plan", "plan.yaml", "--tools", "tools.py")
    assert folder.said(*asked, "--engine", folder.script({"text": "unused"}))[0] == 0
    assert folder.kinds >= {"StepErrand", "ProposeErrand", "ToolErrand"}


@killed
def test_votes_are_counted_elsewhere(tmp_path: Path, moment: str) -> None:
    folder = Folder(tmp_path, moment, {"voter.py": VOTER, "n.json": SCHEMA})
    asked = ("run", "A number", "--mode", "redundant", "--schema", "n.json", "--voting", "voter.py:first")
    assert folder.said(*asked, "--engine", folder.script({"text": '{"n":1}'})) == (0, '{"n":1}\n')
    assert folder.kinds == {"ModelErrand", "VoteErrand"}


@killed
def test_filters_and_evidence_are_asked_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    away = LoggedElsewhere(tmp_path / "kinds", str(tmp_path / "store"), errand_kit.__name__, dies_at=moment)
    monkeypatch.setattr(Performers, "perform", lambda performers, errand, _: away.perform(errand, performers.resources))

    async def story() -> None:
        async with systems(EmbeddedStore.open(tmp_path / "store")) as (system,):
            response = await system.run(request("Look at the sky"), errand_kit.kit())
            assert response.terminal_code is Ending.SUCCESS
            assert [call.result for call in response.tool_calls_made] == ["the sky is fine"]

    try:
        asyncio.run(story())
    finally:
        away.close()
    assert kinds_in(tmp_path / "kinds", moment) == {"RetrieveErrand", "SiftErrand", "ModelErrand", "ToolErrand"}
