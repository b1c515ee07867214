"""What the steps of a plan file are done with."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import RemitError, RequestRejected
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.core.work.plan import RerankInput, Step, StepType
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.patterns.handlers import InferHandler, RerankHandler, ToolHandler
from remit.orchestrate.patterns.plan_file import PlanFile, read_plan
from remit.orchestrate.patterns.plan_kit import asks_a_model, check_steps, digest_now, plan_sources, planned
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.tool.delegate import delegate

RULES = "name: short\nrules: [{name: brief, check: length, chars_max: 5}]\n"
HANDLERS = '''
from os.path import join
from remit.core.work.plan import Step

_HIDDEN = 3

def shout(step):
    """In capitals."""
    return step.input.upper()

def _hidden(step):
    """Not for plans."""
'''


def plan(folder: Path, text: str, **files: str) -> PlanFile:
    """A plan file beside other files; a double underscore stands for the dot of a name."""
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    (folder / "plan.yaml").write_text(text)
    return read_plan(folder / "plan.yaml")


def kit(file: PlanFile, standing: Kit | None = None) -> Kit:
    return planned(standing or engine_kit(ScriptedEngine([{"text": "x"}])), plan_sources(file))


def refused(file: PlanFile) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        kit(file)
    return caught.value


def done(made: Kit, step: Step) -> Any:
    """What the handler of a step gives."""
    handler: Any = made.handlers[step.type]

    async def go() -> Any:
        said = handler(step)
        return await said if asyncio.iscoroutine(said) else said

    return asyncio.run(go())


def test_types_that_come_by_themselves_have_the_engine_and_the_tools_of_the_kit(tmp_path: Path) -> None:
    standing = engine_kit(ScriptedEngine([{"text": "x"}]))
    made = kit(plan(tmp_path, "steps: []"), standing)
    assert set(made.handlers) == {StepType.INFER, StepType.TOOL, StepType.RERANK}
    infer, tool = made.handlers["infer"], made.handlers["tool"]
    assert isinstance(infer, InferHandler)
    assert infer.engine is next(iter(standing.engines.values()))
    assert len(infer.tools) == 0
    assert isinstance(tool, ToolHandler)
    assert tool.tools is standing.tools
    assert set(made.code) == {"step:infer", "step:tool", "step:rerank"}


def test_candidates_are_reranked_by_their_words(tmp_path: Path) -> None:
    made = kit(plan(tmp_path, "steps: []"))
    assert isinstance(made.handlers["rerank"], RerankHandler)
    found = [Candidate(text, text, 1.0, ScoreMaker.RETRIEVAL) for text in ("coffee", "tea")]
    ordered = done(made, Step("rank", "rerank", RerankInput("tea", tuple(found)))).output
    assert [one.source for one in ordered.candidates] == ["tea", "coffee"]


def test_documents_rules_and_code_of_the_plan_become_types(tmp_path: Path) -> None:
    text = "documents: [tea.txt]\nrules: rules.yaml\nhandlers: code.py\nsteps: []"
    file = plan(tmp_path, text, tea__txt="Tea costs two.", rules__yaml=RULES, code__py=HANDLERS)
    made = kit(file)
    assert set(made.handlers) == {*StepType, "shout"}
    found = done(made, Step("find", "retrieve", "How much is tea?")).output
    assert [one.source for one in found.candidates] == ["tea.txt"]
    assert not done(made, Step("check", "validate", "far too long")).is_passed
    assert done(made, Step("check", "validate", "brief")).is_passed
    assert done(made, Step("shout", "shout", "hi")) == "HI"
    assert [source.name for source in made.sources] == [
        "plan:file",
        "plan:documents:1",
        "plan:rules",
        "plan:handlers",
    ]
    assert all(source.digest == digest_now(source, tmp_path) for source in made.sources)


def test_a_table_of_handlers_names_the_types_itself(tmp_path: Path) -> None:
    table = HANDLERS + "\nHANDLERS = {'cry out': shout}\n"
    assert "cry out" in kit(plan(tmp_path, "handlers: code.py\nsteps: []", code__py=table)).handlers


def test_code_of_the_plan_wins_over_what_comes_by_itself(tmp_path: Path) -> None:
    own = "def rerank(step):\n    return 'mine'\n"
    made = kit(plan(tmp_path, "handlers: code.py\nsteps: []", code__py=own))
    assert done(made, Step("rank", "rerank", "x")) == "mine"


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        ("x = 3\n", "PLAN_HANDLERS_INVALID", "has no functions and no mapping HANDLERS"),
        ("HANDLERS = {}\n", "PLAN_HANDLERS_INVALID", "has no functions and no mapping HANDLERS"),
        ("HANDLERS = [1]\n", "PLAN_HANDLERS_INVALID", "has no functions and no mapping HANDLERS"),
        ("HANDLERS = {'a': 3}\n", "PLAN_HANDLERS_INVALID", "gives 'a' a int; give it a function"),
        ("HANDLERS = {3: print}\n", "PLAN_HANDLERS_INVALID", "gives '3' a"),
        ("HANDLERS = {'a': dict}\n", "PLAN_HANDLERS_INVALID", "gives 'a' a type"),
        ("def validate(step):\n    pass\n", "PLAN_HANDLERS_INVALID", "and so has the plan file; keep one"),
        ("raise SystemExit\n", "CODE_FILE_UNREADABLE", "cannot be loaded"),
    ],
)
def test_code_that_gives_no_types_is_refused(tmp_path: Path, content: str, code: str, words: str) -> None:
    text = "rules: rules.yaml\nhandlers: code.py\nsteps: []"
    error = refused(plan(tmp_path, text, rules__yaml=RULES, code__py=content))
    assert error.code == code
    assert words in error.message


def test_rules_that_ask_a_judge_are_refused(tmp_path: Path) -> None:
    judged = "name: a\nsemantic: [{name: polite, question: Is it polite?}]\n"
    error = refused(plan(tmp_path, "rules: rules.yaml\nsteps: []", rules__yaml=judged))
    assert error.code == "PLAN_RULES_INVALID"
    assert "polite" in error.message


def test_rules_that_cannot_be_read_are_refused_with_their_own_line(tmp_path: Path) -> None:
    error = refused(plan(tmp_path, "rules: rules.yaml\nsteps: []", rules__yaml="name: a\nrule: []\n"))
    assert (error.code, error.details["line"]) == ("FILE_KEY_UNKNOWN", 2)


def test_a_kit_without_an_engine_is_enough_where_no_step_asks_a_model(tmp_path: Path) -> None:
    file = plan(tmp_path, "handlers: code.py\nsteps: [{name: a, type: shout, input: hi}]", code__py=HANDLERS)
    assert not asks_a_model(file)
    check_steps(file, kit(file, Kit({})), "")
    assert asks_a_model(plan(tmp_path, "steps: [{name: a, type: infer}]"))


def test_a_step_that_calls_a_delegating_tool_asks_a_model(tmp_path: Path) -> None:
    file = plan(tmp_path, "steps: [{name: a, type: tool, tool: payer, input: {task: pay}}]")
    payer = delegate("payer", description="Pay.", lease={"steps": 5})
    assert asks_a_model(file, (payer.definition,))
    assert not asks_a_model(file)


@pytest.mark.parametrize(
    ("steps", "code", "words"),
    [
        ("- {name: a, type: retrieve}", "PLAN_STEP_TYPE_REFUSED", "names no documents; add `documents:`"),
        ("- {name: a, type: validate}", "PLAN_STEP_TYPE_REFUSED", "names no rules; add `rules:`"),
        ("- {name: a, type: dance}", "PLAN_STEP_TYPE_REFUSED", "there are handlers for infer, rerank, tool"),
        ("- {name: a, type: tool, tool: x, input: {b: 1}}", "TOOL_NOT_FOUND", "calls tool 'x'"),
        ("- {name: a, type: rerank}", "ORCHESTRATION_STEP_MISMATCH", "takes candidates"),
        ("- {name: a, type: infer, source: b}", "PLAN_SOURCE_UNKNOWN", "'b'"),
        ("- {name: a, type: infer, retries: 99}", "PLAN_STEP_INVALID", "retries=99"),
    ],
)
def test_a_plan_that_cannot_run_is_refused_with_the_line_of_its_step(
    tmp_path: Path, steps: str, code: str, words: str
) -> None:
    file = plan(tmp_path, f"steps:\n  {steps}\n")
    with pytest.raises(RequestRejected) as caught:
        check_steps(file, kit(file), "a question")
    assert (caught.value.code, caught.value.details["line"]) == (code, 2)
    assert words in caught.value.message


@pytest.mark.parametrize("name", ["plan.yaml", "tea.txt", "rules.yaml", "code.py"])
def test_a_file_that_changed_or_went_after_its_digest_was_taken_is_refused(tmp_path: Path, name: str) -> None:
    text = "documents: tea.txt\nrules: rules.yaml\nhandlers: code.py\nsteps: []"
    file = plan(tmp_path, text, tea__txt="Tea.", rules__yaml=RULES, code__py=HANDLERS)
    sources = plan_sources(file)
    (tmp_path / name).write_text("#" + (tmp_path / name).read_text())
    with pytest.raises(RemitError) as caught:
        planned(Kit({}), sources)
    assert (caught.value.code, caught.value.details["place"]) == ("PLAN_SOURCE_CHANGED", str(tmp_path / name))
    assert caught.value.details["found"] != caught.value.details["expected"]
    (tmp_path / name).unlink()
    with pytest.raises(RemitError) as caught:
        planned(Kit({}), sources)
    assert (caught.value.code, caught.value.details["place"]) == ("PLAN_SOURCE_MISSING", str(tmp_path / name))
    (gone,) = [source for source in sources if source.place == str(tmp_path / name)]
    assert digest_now(gone, tmp_path) == ""
