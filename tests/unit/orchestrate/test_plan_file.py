"""Plans read from YAML: the same as in Python, or refused with the line and the way out."""

from hashlib import sha256
from pathlib import Path

import pytest

from remit.core.failure import RequestRejected
from remit.core.schema.strict_yaml import YAML_BYTES_MAX
from remit.core.work.plan import ExecutionPlan, PlanPolicy, PlanTrace, Step
from remit.orchestrate.patterns.plan_file import DOCUMENTS_MAX, PLAN_DEPTH_MAX, PlanFile, read_plan
from remit.orchestrate.patterns.planners import PLAN_POLICY_INVALID

SCHEMA = {"type": "object", "properties": {"answer": {"type": "string"}}}
WHOLE = """
documents: [docs, more/one.txt]
rules: rules.yaml
handlers: handlers.py
policy: {max_steps: 5, allowed_step_types: [retrieve, infer], require_linear: false, timeout_per_step_ms: 9000}
steps:
  - {name: find, type: retrieve, input: tea, timeout_ms: 50}
  - name: say
    type: infer
    source: find
    instruction: Say it.
    retries: 2
    schema: {type: object, properties: {answer: {type: string}}}
  - {name: call, type: tool, tool: look, input: {place: here}}
"""


def plan(folder: Path, text: str) -> PlanFile:
    path = folder / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    return read_plan(path)


def refusal(folder: Path, text: str) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        plan(folder, text)
    return caught.value


@pytest.fixture
def furnished(tmp_path: Path) -> Path:
    """A folder with everything that a plan names."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "more").mkdir()
    for name in ("more/one.txt", "rules.yaml", "handlers.py"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_file_says_what_python_would(furnished: Path) -> None:
    read = plan(furnished, WHOLE)
    path = furnished / "plan.yaml"
    assert read.plan == ExecutionPlan(
        (
            Step("find", "retrieve", "tea", timeout_ms=50),
            Step("say", "infer", source="find", instruction="Say it.", retries=2, schema=SCHEMA),
            Step("call", "tool", {"place": "here"}, tool="look"),
        ),
        PlanTrace("file", f"the plan file {path}"),
    )
    assert read.policy == PlanPolicy(5, ("retrieve", "infer"), require_linear=False, timeout_per_step_ms=9000)
    assert read.documents == (furnished / "docs", furnished / "more/one.txt")
    assert (read.rules, read.handlers) == (furnished / "rules.yaml", furnished / "handlers.py")
    assert read.digest == sha256(WHOLE.encode()).hexdigest()
    assert dict(read.lines) == {"find": 7, "say": 8, "call": 14}


def test_a_file_with_steps_alone_has_the_standing_policy_and_no_files(tmp_path: Path) -> None:
    read = plan(tmp_path, "steps: [{name: a, type: infer, input: hi}]")
    assert read.policy == PlanPolicy()
    assert (read.documents, read.rules, read.handlers) == ((), None, None)


def test_an_input_that_json_cannot_have_stays_what_it_is(tmp_path: Path) -> None:
    (step,) = plan(tmp_path, "steps: [{name: a, type: infer, input: .inf}]").plan.steps
    assert step.input == float("inf")


def test_one_folder_of_documents_needs_no_list(furnished: Path) -> None:
    assert plan(furnished, "documents: docs\nsteps: []\n").documents == (furnished / "docs",)


def test_paths_start_at_the_plan_file_wherever_the_command_is_given(
    furnished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (furnished / "plan.yaml").write_text("rules: rules.yaml\nsteps: []\n")
    monkeypatch.chdir(furnished / "more")
    assert read_plan(Path("../plan.yaml")).rules == furnished / "rules.yaml"


@pytest.mark.parametrize(
    ("text", "line", "code", "words"),
    [
        ("- a\n", 0, "FILE_VALUE_INVALID", "the file must be a mapping with the keys steps"),
        ("stepps: []\n", 1, "FILE_KEY_UNKNOWN", "did you mean 'steps'?"),
        ("qqq: []\n", 1, "FILE_KEY_UNKNOWN", "known are steps, policy"),
        ("steps: 3\n", 1, "FILE_VALUE_INVALID", "steps must be a list, not 3"),
        ("steps:\n  - go\n", 2, "FILE_VALUE_INVALID", "steps[0] must be a mapping"),
        ("steps:\n  - {name: a, typ: infer}\n", 2, "FILE_KEY_UNKNOWN", "did you mean 'type'?"),
        ("steps:\n  - {name: a, output: b}\n", 2, "FILE_KEY_UNKNOWN", "'output'"),
        ("steps:\n  - {type: infer}\n", 2, "FILE_VALUE_INVALID", "has no 'name'; add it"),
        ("steps:\n  - {name: a}\n", 2, "FILE_VALUE_INVALID", "has no 'type'; add it"),
        ("steps:\n  - {name: 4, type: infer}\n", 2, "FILE_VALUE_INVALID", "steps[0].name: Expected `str`"),
        ("steps:\n  - name: a\n    type: infer\n    retries: many\n", 4, "FILE_VALUE_INVALID", "found 'many'"),
        ("steps:\n  - name: a\n    type: infer\n    schema: {type: 7}\n", 4, "FILE_VALUE_INVALID", "steps[0].schema"),
        ("steps:\n  - name: a\n    type: infer\n    schema: [1]\n", 4, "FILE_VALUE_INVALID", "found a list"),
        ("policy: {max_steps: .nan}\n", 1, "FILE_VALUE_INVALID", "found nan"),
        ("policy: {max_step: 3}\n", 1, "FILE_KEY_UNKNOWN", "did you mean 'max_steps'?"),
        ("policy: {max_steps: x}\n", 1, "FILE_VALUE_INVALID", "policy.max_steps"),
        ("policy: {allowed_step_types: [3]}\n", 1, "FILE_VALUE_INVALID", "policy.allowed_step_types"),
        ("rules: nowhere.yaml\n", 1, "FILE_VALUE_INVALID", "is not there; paths start at the plan file"),
        ("rules: docs\n", 1, "FILE_VALUE_INVALID", "is no file; name one"),
        ("handlers: [a]\n", 1, "FILE_VALUE_INVALID", "handlers must be a path, not a list"),
        ("handlers: ''\n", 1, "FILE_VALUE_INVALID", "handlers must be a path, not ''"),
        ("documents: []\n", 1, "FILE_VALUE_INVALID", f"name 1 to {DOCUMENTS_MAX} folders or files"),
        ("documents:\n  - docs\n  - nowhere\n", 3, "FILE_VALUE_INVALID", "documents[1]"),
        ('documents: "a\\0b"\n', 1, "FILE_VALUE_INVALID", "is not there"),
        ("documents: {a: b}\n", 1, "FILE_VALUE_INVALID", "documents must be a list, not a dict"),
    ],
)
def test_what_is_spelled_wrong_is_refused_with_its_line(
    furnished: Path, text: str, line: int, code: str, words: str
) -> None:
    error = refusal(furnished, text)
    assert (error.code, error.details["line"]) == (code, line)
    assert words in error.message
    assert error.message.startswith(f"{furnished / 'plan.yaml'}:{line}:" if line else str(furnished / "plan.yaml"))


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("max_steps: 100000", "max_steps=100000 is not from 1 to "),
        ("max_steps: 0", "max_steps=0 is not from 1 to "),
        ("max_steps: -5", "max_steps=-5 is not from 1 to "),
        ("timeout_per_step_ms: -1", "timeout_per_step_ms=-1 is not from 0 to "),
    ],
)
def test_a_policy_that_no_plan_could_be_judged_by_is_refused_at_its_line(
    tmp_path: Path, policy: str, words: str
) -> None:
    error = refusal(tmp_path, f"steps:\n  - {{name: a, type: x}}\npolicy:\n  {policy}\n")
    assert (error.code, error.details["line"]) == (PLAN_POLICY_INVALID, 3)
    assert error.message.startswith(f"{tmp_path / 'plan.yaml'}:3: the policy cannot be used: ")
    assert words in error.message


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected, match="cannot be read: No such file") as caught:
        read_plan(tmp_path / "none.yaml")
    assert caught.value.code == "FILE_UNREADABLE"


def test_a_file_that_is_too_large_or_too_deep_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "#" * (YAML_BYTES_MAX + 1)).code == "FILE_TOO_LARGE"
    deep = "[" * PLAN_DEPTH_MAX + "]" * PLAN_DEPTH_MAX
    assert refusal(tmp_path, f"steps: {deep}").code == "FILE_TOO_DEEP"


def test_a_refusal_of_a_step_is_located_and_any_other_names_the_file(furnished: Path) -> None:
    read = plan(furnished, WHOLE)
    located = read.located(RequestRejected("CODE", "it is wrong", {"step": "say"}))
    assert (located.code, located.message) == ("CODE", f"{furnished / 'plan.yaml'}:8: it is wrong")
    assert located.details == {"step": "say", "line": 8}
    assert read.located(RequestRejected("CODE", "all wrong")).message == f"{furnished / 'plan.yaml'}: all wrong"


def test_a_step_with_a_very_long_name_is_found_by_the_beginning_of_it(tmp_path: Path) -> None:
    read = plan(tmp_path, f"steps:\n  - {{name: {'a' * 200}, type: x}}\n")
    assert read.located(RequestRejected("CODE", "no", {"step": "a" * 80})).details["line"] == 2


def test_of_two_steps_of_one_name_the_first_line_is_told(tmp_path: Path) -> None:
    read = plan(tmp_path, "steps:\n  - {name: a, type: x}\n  - {name: a, type: x}\n")
    assert dict(read.lines) == {"a": 2}
