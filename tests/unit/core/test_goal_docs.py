"""The table of docs/goals.md says what the code binds each class to."""

from pathlib import Path

from remit.core.work.goal import GROUNDS, NEEDS_OBSERVATION, TaskClass

DOCS = Path(__file__).parents[3] / "docs" / "goals.md"


def test_every_class_has_its_row_with_the_categories_that_ground_it() -> None:
    rows = {
        line.split("|")[1].strip(" `"): line.split("|") for line in DOCS.read_text("utf-8").splitlines() if "|" in line
    }
    for task in TaskClass:
        reasoning, grounded = rows[task.value][2].strip(), rows[task.value][3]
        assert reasoning.startswith("no" if NEEDS_OBSERVATION[task] else "yes")
        named = {category.value for category in GROUNDS[task] if f"`{category.value}`" in grounded}
        is_everything = task is TaskClass.TOOL_RESULT
        assert is_everything or named == {category.value for category in GROUNDS[task]}
