"""Nothing is read from the id of a run, and none is put together by hand: parentage is a field."""

import pytest

from remit.core.regex import regex
from tests.tidy.source import PACKAGE, Source, source, sources

# An id that is taken apart at dots, or asked how it begins with one, or put together with a dot.
_TAKEN_APART = regex(r'(?:run_id|fork_id|child_id|asking|above)\.\w*(?:partition|split|count|find|index)\(\s*"\.')
_PUT_TOGETHER = regex(r"\{[\w.]*(?:run_id|fork_id|child_id)\}\.(?!\s|\")")
# The one that reads what old runs are named after; and names of spans, each of a command within its run.
ALLOWED = ("core/run/lineage.py", "observe/views/event_log.py")


def breaches(file: Source) -> list[str]:
    if file.place in ALLOWED:
        return []
    lines = enumerate(file.text.splitlines(), 1)
    return [
        f"{file.path}:{number}" for number, line in lines if _TAKEN_APART.search(line) or _PUT_TOGETHER.search(line)
    ]


def test_nothing_is_read_from_an_id() -> None:
    assert [breach for file in sources(PACKAGE) for breach in breaches(file)] == []


@pytest.mark.parametrize(
    "line",
    [
        'root = run_id.partition(".")[0]',
        'while state.run_id.count(".") > 1:',
        'above.rsplit(".", 2)',
        'f"{state.run_id}.{command_id}"',
        'asking.startswith(f"{run_id}.{x}")',
    ],
)
def test_an_id_that_is_taken_apart_or_put_together_is_found(line: str) -> None:
    assert breaches(source("src/remit/orchestrate/x.py", line)) == ["src/remit/orchestrate/x.py:1"]


@pytest.mark.parametrize(
    "line", ['f"there is no run {run_id}. Try again"', 'f"{run_id}/{command_id}"', "run_id.startswith(name)"]
)
def test_an_id_that_is_shown_is_no_breach(line: str) -> None:
    assert breaches(source("src/remit/orchestrate/x.py", line)) == []
