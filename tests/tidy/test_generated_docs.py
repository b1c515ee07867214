"""The documents that are made from the code say what the code says now, and the index names every document."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

import remit
from remit.core.failure import ArrivalFault, Ending, ErrorCode, Refusal
from remit.core.run.lifecycle import LifecycleState, LoopState
from scripts.event_docs import ARRIVALS, COMMANDS, RULINGS
from scripts.generate_docs import DOCS, MADE, documents, may_move
from scripts.markdown import cell, item, paragraph, table
from tests.tidy.source import ROOT, expect_none

LINK = re.compile(r"\]\(([\w./-]+)\)")


@cache
def made() -> dict[str, str]:
    """Every document as the code makes it, made once for all tests."""
    return documents()


def stale(made: Mapping[str, str], folder: Path) -> list[str]:
    """Documents that are missing or differ from what the code says."""
    return [
        f"docs/{name} is stale; run `make docs`"
        for name, text in made.items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def unlisted(folder: Path) -> list[str]:
    """Documents and folders that the index does not name, and names of the index that are not there."""
    linked = set(LINK.findall((folder / "README.md").read_text(encoding="utf-8")))
    stored = {path.name for path in folder.glob("*.md")} - {"README.md"}
    stored |= {f"{path.name}/README.md" for path in folder.iterdir() if (path / "README.md").is_file()}
    return [
        *(f"docs/README.md does not name {name}" for name in sorted(stored - linked)),
        *(f"docs/README.md names {name}" for name in sorted(linked) if not (folder / name).exists()),
    ]


def test_every_generated_document_says_what_the_code_says() -> None:
    expect_none(stale(made(), DOCS))


def test_the_index_names_every_document() -> None:
    expect_none(unlisted(ROOT / "docs"))


def test_a_generated_document_begins_with_how_it_is_made() -> None:
    assert all(text.startswith(f"{MADE}\n\n# ") and text.endswith("\n") for text in made().values())


def test_no_code_and_no_kind_of_event_is_left_out() -> None:
    made_now = made()
    missing = [
        *(
            name
            for kinds in (Ending, ErrorCode, Refusal, ArrivalFault)
            for name in kinds
            if name not in made_now["failures.md"]
        ),
        *(name for states in (LifecycleState, LoopState) for name in states if name not in made_now["lifecycle.md"]),
        *(
            kind.__name__
            for kind in (*ARRIVALS, *RULINGS, *COMMANDS)
            if f"\n### {kind.__name__}\n" not in made_now["events.md"]
        ),
    ]
    assert missing == []


def test_every_public_name_stands_in_the_reference_once() -> None:
    headings = re.findall(r"^### (\w+)$", made()["api.md"], re.MULTILINE)
    assert sorted(headings) == sorted({*dir(remit)} - {"__version__"})


@pytest.mark.slow
def test_making_the_documents_twice_gives_the_same_bytes() -> None:
    assert documents() == made()


def test_a_stale_and_a_missing_document_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("old")
    (tmp_path / "b.md").write_text("same")
    complaints = stale({"a.md": "new", "b.md": "same", "c.md": "new"}, tmp_path)
    assert [complaint.split()[0] for complaint in complaints] == ["docs/a.md", "docs/c.md"]


def test_a_document_outside_the_index_and_an_invented_one_are_found(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("[A](a.md) [gone](gone.md)")
    (tmp_path / "a.md").touch()
    (tmp_path / "b.md").touch()
    assert unlisted(tmp_path) == ["docs/README.md does not name b.md", "docs/README.md names gone.md"]


def test_a_bar_in_a_cell_does_not_begin_the_next_one() -> None:
    assert cell("str | None") == r"str \| None"
    assert table(("A", "B"), [("x", "a|b")]).splitlines() == ["| A | B |", "| --- | --- |", "| x | a\\|b |"]


def test_prose_is_broken_at_the_length_of_the_house() -> None:
    assert all(len(line) <= 120 for line in paragraph("word " * 100).splitlines())
    first, second = item("1", "word " * 30).splitlines()
    assert first.startswith("1. word")
    assert second.startswith("   word")


def test_states_that_do_not_move_alike_cannot_be_drawn_as_one() -> None:
    with pytest.raises(AssertionError, match="draw them apart"):
        may_move([LoopState.EXPLORING, LoopState.COMPLETE], [LoopState.FAILED])
