"""The script behind `make requirements` tells the truth about numbers, marks and works."""

import pytest

from scripts.requirements import (
    ROOT,
    Mark,
    Works,
    listing,
    marks_in,
    problems_of,
    proofs_of,
    read_requirements,
    read_works,
    summary,
)

TABLE = """
| # | requirement | owner | verdict |
|---|---|---|---|
| 0.1 | The door has a handle | judge | holds |
| 0.2 | A `|` may stand in a row | run | open: not built yet |
"""
WORKS = Works(known=("judge", "run"), done=("judge",))


def test_the_rows_of_a_table_are_read() -> None:
    rows = [(row.number, row.text, row.owner, row.verdict, row.why) for row in read_requirements(TABLE)]
    assert rows == [
        ("0.1", "The door has a handle", "judge", "holds", None),
        ("0.2", "A `|` may stand in a row", "run", "open", "not built yet"),
    ]


def test_marks_are_read_from_functions_methods_classes_and_modules() -> None:
    text = """
import pytest
pytestmark = [pytest.mark.slow, pytest.mark.req("9.1")]
@pytest.mark.req("1.1", "1.2")
def test_a(): pass
@pytest.mark.req("2.1")
class TestB:
    @pytest.mark.req("2.2")
    async def test_c(self): pass
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.req("3.1"))])
def test_d(x): pass
"""
    assert {(mark.number, mark.test) for mark in marks_in("t.py", text)} == {
        ("9.1", "t.py"),
        ("1.1", "t.py::test_a"),
        ("1.2", "t.py::test_a"),
        ("2.1", "t.py::TestB"),
        ("2.2", "t.py::TestB::test_c"),
        ("3.1", "t.py::test_d"),
    }


@pytest.mark.parametrize("mark", ["req()", "req(number)", "req(1.1)", "req(number='1.1')"])
def test_a_mark_without_a_written_number_is_a_problem(mark: str) -> None:
    marks = marks_in("t.py", f"import pytest\n@pytest.mark.{mark}\ndef test_a(): pass\n")
    assert [m.number for m in marks] == [None]
    assert problems_of([], marks, WORKS)[-1] == "t.py::test_a: a req mark takes numbers written out"


def test_a_number_of_a_done_work_without_test_is_a_problem() -> None:
    requirements = read_requirements(TABLE)
    assert problems_of(requirements, [], WORKS) == ["0.1 has no test, and judge is done"]
    assert problems_of(requirements, [Mark("0.1", "t.py::test_a")], WORKS) == []


def test_an_unknown_number_on_a_mark_is_a_problem() -> None:
    marks = [Mark("0.1", "t.py::test_a"), Mark("7.7", "t.py::test_b")]
    assert problems_of(read_requirements(TABLE), marks, WORKS) == ["t.py::test_b: there is no requirement 7.7"]


def test_an_unknown_owner_a_double_number_and_an_empty_list_are_problems() -> None:
    twice = read_requirements(TABLE + "| 0.2 | Again | nobody | holds |\n")
    assert problems_of(twice, [Mark("0.1", "a")], WORKS) == [
        "0.2 appears twice",
        "0.2 is owned by nobody, which is not a work",
    ]
    assert problems_of([], [], Works(known=(), done=("run",))) == [
        "docs/requirements.md: no requirement found",
        "run is done but not a work",
    ]


def test_the_listing_shows_each_number_with_its_tests_or_none() -> None:
    requirements = read_requirements(TABLE)
    proofs = proofs_of(requirements, [Mark("0.2", "t.py::test_a"), Mark("0.2", "t.py::test_a")])
    assert listing(requirements, proofs, WORKS) == [
        "0.1   judge      holds  The door has a handle",
        "                 no test",
        "0.2   run        open: not built yet  A `|` may stand in a row",
        "                 t.py::test_a",
        "1 of 2 requirements have a test",
        "of 1 numbers of finished works 1 hold, 0 hold with limits, 0 open",
    ]


def test_a_number_of_a_done_work_that_is_open_needs_no_test_but_a_reason() -> None:
    row = "| 0.3 | The door opens | judge | open |\n"
    assert problems_of(read_requirements(row), [], WORKS) == ["0.3 open: a reason is missing"]
    assert problems_of(read_requirements(row.replace("open |", "open: the lock is missing |")), [], WORKS) == []


def test_a_verdict_is_one_of_three() -> None:
    row = "| 0.3 | The door opens | judge | perhaps: it may |\n"
    assert problems_of(read_requirements(row), [Mark("0.3", "a")], WORKS) == ["0.3: perhaps is no verdict"]


def test_the_readme_quotes_the_counts_of_today() -> None:
    requirements = read_requirements((ROOT / "docs" / "requirements.md").read_text())
    counts = summary(requirements, read_works((ROOT / "pyproject.toml").read_text()))
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert counts in readme, f"the README should say: {counts}"


def test_the_document_is_read_completely() -> None:
    text = (ROOT / "docs" / "requirements.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| #")]
    assert len(read_requirements(text)) == len(rows)
    assert read_works((ROOT / "pyproject.toml").read_text()).known
