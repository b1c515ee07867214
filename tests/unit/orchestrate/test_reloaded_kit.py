"""Kits made again from a manifest: for runs of plan files and of voters, whose files may have changed meanwhile."""

import asyncio
import json
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from remit.assemble import RunWork, kit_for, plan_from_file, planned_work, system_in_memory, voted_work
from remit.core.failure import RemitError
from remit.core.run.contract import Mode, OutputContract, SystemRequest
from remit.core.run.manifest import Source
from remit.core.run.messages import user_message
from remit.kernel.state import RunState
from remit.orchestrate.setup.kit import Terms
from remit.orchestrate.setup.reloaded_kit import changed_sources, equipped, kit_again

PLAN = """
documents: docs
rules: rules.yaml
handlers: code.py
steps:
  - {name: find, type: retrieve}
  - {name: say, type: infer}
  - {name: loud, type: shout}
  - {name: check, type: validate}
"""
FILES = {
    "plan.yaml": PLAN.replace("name: check,", "name: verify,"),
    "docs/tea.md": "Tea costs two euros.",
    "rules.yaml": "name: short\nrules: [{name: some, check: not_empty}]\n",
    "code.py": "def shout(step):\n    return step.input.upper()\n",
    "voter.py": "def first(candidates):\n    return candidates[0], 0.5\n",
    "script.json": json.dumps({"replies": [{"text": '{"price": 2}'}]}),
}
SCHEMA = {"type": "object", "properties": {"price": {"type": "integer"}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a plan, a voter and what they need."""
    (tmp_path / "docs").mkdir()
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def work(folder: Path) -> RunWork:
    return RunWork(kit_for("scripted:script.json", base=folder), Terms())


def states(running: RunWork, request: SystemRequest) -> tuple[RunState, RunState]:
    """A run that has ended, and the first run beneath it."""

    async def go() -> tuple[RunState, RunState]:
        system = system_in_memory()
        run_id = (await system.run(request, running.kit, running.terms)).run_id
        state = await system.state_of(run_id)
        child = await system.state_of(state.children.runs[state.children.ended[0].command_id])
        await system.close()
        return state, child

    return asyncio.run(go())


def plan_run(folder: Path) -> tuple[RunState, RunState]:
    running = planned_work(work(folder), plan_from_file(folder / "plan.yaml"), "What is tea?")
    return states(running, SystemRequest((user_message("What is tea?"),), Mode.PLAN))


def vote_run(folder: Path) -> RunState:
    running = voted_work(work(folder), 2, "voter.py:first", early_stop=False, is_parallel=False, base=folder)
    request = SystemRequest((user_message("What is tea?"),), Mode.REDUNDANT, output=OutputContract(schema=SCHEMA))
    return states(running, request)[0]


def again(state: RunState) -> Any:
    return asyncio.run(_awaited(kit_again(state)))


async def _awaited(made: Coroutine[Any, Any, Any]) -> Any:
    return await made


def refused(state: RunState) -> tuple[str, str]:
    """The codes with which a run is not taken up, and its changes cannot be accepted; empty where they can."""
    with pytest.raises(RemitError) as caught:
        again(state)
    try:
        changed_sources(state)
    except RemitError as error:
        return str(caught.value.code), str(error.code)
    return str(caught.value.code), ""


def changed(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)


def accepted(state: RunState) -> list[str]:
    """Accept what has changed; gives the names of it."""
    found = changed_sources(state)
    state.sources |= {source.name: source for source in found}
    return [source.name for source in found]


def test_the_kit_of_a_plan_is_made_again_with_the_same_types_code_and_sources(folder: Path) -> None:
    state, child = plan_run(folder)
    assert state.end.ending == "SUCCESS"
    names = ["plan:file", "plan:documents:1", "plan:rules", "plan:handlers"]
    for made in (again(state), again(child)):
        assert set(made.handlers) == {"infer", "tool", "rerank", "retrieve", "validate", "shout"}
        assert set(made.code) == {f"step:{name}" for name in made.handlers}
        assert [source.name for source in made.sources] == names
        assert len(made.engines) == 1
    assert changed_sources(state) == ()


def test_the_kit_of_a_vote_has_its_voter_again(folder: Path) -> None:
    state = vote_run(folder)
    made = again(state)
    assert made.code["vote:voter.py:first"](["a", "b"]) == ("a", 0.5)
    assert [source.name for source in made.sources] == ["vote:voter.py:first"]


@pytest.mark.parametrize(
    ("file", "text", "name"),
    [
        ("plan.yaml", f"# A remark.\n{FILES['plan.yaml']}", "plan:file"),
        ("docs/tea.md", "Tea costs three euros.", "plan:documents:1"),
        ("docs/milk.md", "Milk costs one euro.", "plan:documents:1"),
        ("rules.yaml", "name: other\n", "plan:rules"),
        ("code.py", "def shout(step):\n    return 'no'\n", "plan:handlers"),
    ],
)
def test_a_file_of_a_plan_that_changed_must_be_accepted(folder: Path, file: str, text: str, name: str) -> None:
    state, child = plan_run(folder)
    changed(folder, file, text)
    assert refused(state) == ("PLAN_SOURCE_CHANGED", "")
    assert refused(child) == ("PLAN_SOURCE_CHANGED", "")
    assert accepted(state) == [name]
    assert "shout" in again(state).handlers
    assert accepted(state) == []


@pytest.mark.parametrize("file", ["plan.yaml", "docs/tea.md", "rules.yaml", "code.py"])
def test_a_file_of_a_plan_that_is_gone_cannot_be_accepted(folder: Path, file: str) -> None:
    state, _ = plan_run(folder)
    (folder / file).unlink()
    assert refused(state) == ("PLAN_SOURCE_MISSING", "PLAN_SOURCE_MISSING")


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("plan.yaml", FILES["plan.yaml"].replace("name: loud", "name: louder")),
        ("plan.yaml", FILES["plan.yaml"].replace("steps:", "stepps:")),
        ("code.py", "def whisper(step):\n    return step.input\n"),
    ],
)
def test_steps_that_are_others_than_those_that_were_pinned_cannot_be_accepted(
    folder: Path, file: str, text: str
) -> None:
    state, _ = plan_run(folder)
    changed(folder, file, text)
    assert refused(state) == ("PLAN_SOURCE_CHANGED", "PLAN_DEFINITION_CHANGED")


def test_the_run_of_a_step_follows_the_graph_that_it_was_given(folder: Path) -> None:
    _, child = plan_run(folder)
    changed(folder, "plan.yaml", FILES["plan.yaml"].replace("name: loud", "name: louder"))
    assert accepted(child) == ["plan:file"]


def test_code_that_cannot_be_loaded_any_more_cannot_be_accepted(folder: Path) -> None:
    state, _ = plan_run(folder)
    changed(folder, "code.py", "import nothing_of_that_name\n")
    assert refused(state) == ("PLAN_SOURCE_CHANGED", "CODE_FILE_UNREADABLE")


def test_a_voter_that_changed_must_be_accepted_and_one_that_is_gone_cannot_be(folder: Path) -> None:
    state = vote_run(folder)
    changed(folder, "voter.py", FILES["voter.py"].replace("0.5", "0.25"))
    assert refused(state) == ("VOTER_SOURCE_CHANGED", "")
    assert accepted(state) == ["vote:voter.py:first"]
    assert again(state).code["vote:voter.py:first"](["a"]) == ("a", 0.25)
    (folder / "voter.py").unlink()
    assert refused(state) == ("VOTER_SOURCE_MISSING", "VOTER_SOURCE_MISSING")


def test_a_script_and_a_plan_that_both_changed_are_accepted_together(folder: Path) -> None:
    state, _ = plan_run(folder)
    changed(folder, "script.json", json.dumps({"replies": [{"text": "Three."}]}))
    changed(folder, "rules.yaml", "name: other\n")
    assert accepted(state) == ["engine:scripted:script", "plan:rules"]


def test_what_names_no_code_leaves_a_kit_as_it_is(folder: Path) -> None:
    kit = kit_for("scripted:script.json", base=folder)
    assert equipped(kit, (Source("engine:scripted", "x"),)) == kit
