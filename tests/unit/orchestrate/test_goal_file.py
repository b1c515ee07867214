"""Goals from files: every key is read, and whatever cannot be used is refused with its place."""

from pathlib import Path

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.tools import ToolCategory
from remit.core.schema.strict_yaml import YamlFault
from remit.core.work.goal import Criterion, Goal, RequiredAction, TaskClass
from remit.kernel.results.acceptance import GOAL_INVALID
from remit.orchestrate.setup.goal_file import STATEMENT_DEFAULT, goal_at, read_goal
from tests.text_files import from_text

FULL = """
statement: tell the customer how the order stands
task_class: account_status
grounds: [database, live_api]
required_actions:
  - order_status
  - {tool: notify, times_min: 2}
criteria:
  - {name: short, guard: answer_bytes < 500}
  - {name: polite, judge: Is the answer polite?, only_warns: true}
critical: [status]
confidence: 0.8
"""
FOUND = Goal(
    "tell the customer how the order stands",
    (
        Criterion("short", guard="answer_bytes < 500"),
        Criterion("polite", judge="Is the answer polite?", only_warns=True),
    ),
    (RequiredAction("order_status"), RequiredAction("notify", 2)),
    TaskClass.ACCOUNT_STATUS,
    ("status",),
    800_000,
    grounds=(ToolCategory.DATABASE, ToolCategory.LIVE_API),
)


@pytest.mark.req("4.8")
def test_every_key_of_a_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "goal.yaml"
    file.write_text(FULL, encoding="utf-8")
    assert read_goal(file) == goal_at(str(file)) == goal_at(file) == goal_at(FOUND) == FOUND
    assert goal_at(None) is None


def test_a_goal_may_be_json_or_a_mapping(tmp_path: Path) -> None:
    file = tmp_path / "goal.json"
    file.write_text('{"task_class": "code_result"}', encoding="utf-8")
    found = Goal(STATEMENT_DEFAULT, task_class=TaskClass.CODE_RESULT)
    assert goal_at(file) == goal_at({"task_class": "code_result"}) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must be a mapping"),
        ("{}", "the goal says nothing"),
        ("task_clas: estimate", "did you mean 'task_class'?"),
        ("task_class: guess", "task_class='guess' cannot be used; use one of estimate"),
        ("grounds: [clock]", "grounds[0]='clock' cannot be used"),
        ("confidence: 2", "a number from 0 to 1"),
        ("confidence: true", "a number from 0 to 1"),
        ("required_actions: look", "required_actions='look' cannot be used; use a list"),
        ("required_actions: [{times_min: 1}]", "required_actions[0].tool"),
        ("required_actions: [{tool: a, times_min: 0}]", "a whole number from 1"),
        ("required_actions: [a, a]", "'a' is required twice"),
        ("criteria: [{guard: visits > 0}]", "criteria[0] has no 'name'"),
        ("criteria: [{name: a}]", "needs a guard, a validator or a judge's question"),
        ("criteria: [{name: a, guard: 'nothing > 0'}]", "nothing"),
        ("criteria: [{name: a, guard: visits > 0, only_warns: true}]", "only a judge may warn"),
        ("criteria: [{name: a, judge: x}, {name: a, judge: y}]", "'a' is there twice"),
        ("statement: ''", "a text of 1 to"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        from_text(read_goal, text, "goal.yaml")
    assert (refused.value.code, said in refused.value.message) == (GOAL_INVALID, True), refused.value.message
    assert refused.value.message.startswith("goal.yaml")


def test_a_file_that_cannot_be_read_or_is_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as refused:
        read_goal(tmp_path / "nothing.yaml")
    assert refused.value.code == YamlFault.UNREADABLE
    with pytest.raises(RequestRejected, match="is not JSON") as refused:
        from_text(read_goal, "{", "goal.json")
    assert refused.value.code == GOAL_INVALID


def test_the_goal_among_the_examples_is_read() -> None:
    goal = read_goal(Path(__file__).parents[3] / "examples" / "goals" / "account.yaml")
    assert (goal.task_class, goal.required_actions) == (TaskClass.ACCOUNT_STATUS, (RequiredAction("account"),))
