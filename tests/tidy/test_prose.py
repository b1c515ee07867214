"""Texts name who or what they speak of: no "whoever" and no "somebody" in the code, its messages and the documents."""

import re
from collections.abc import Iterator

import pytest

from tests.tidy.source import PACKAGE, ROOT, expect_none

UNCLEAR = re.compile(r"\b(?:whoever|whomever|somebody|someone|what is told|one's own)\b", re.IGNORECASE)
# Files in which such a word is meant, each with why.
MEANT = {
    "src/remit/core/limits/roles.py": "an instruction for a model, which old journals hold",
    "src/remit/provenance/vocabulary.py": "words that users write",
}
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")


def unclear(path: str, text: str) -> list[str]:
    """Each line that leaves open whom or what it means."""
    lines = enumerate(text.splitlines(), start=1)
    return [f"{path}:{number}: say who: {found[0]}" for number, line in lines if (found := UNCLEAR.search(line))]


def texts() -> Iterator[tuple[str, str]]:
    """The code that is shipped, what is made beside it, and the documents."""
    folders = {PACKAGE: "*.py", "docs": "*.md", "examples": "*.py", "scripts": "*.py", "benchmarks": "*.py"}
    paths = [path for folder, kind in folders.items() for path in (ROOT / folder).rglob(kind)]
    for path in (*sorted(paths), *(ROOT / name for name in DOCUMENTS)):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def test_the_code_and_the_documents_say_who_is_meant() -> None:
    expect_none(complaint for path, text in texts() if path not in MEANT for complaint in unclear(path, text))


def test_every_word_that_is_meant_is_still_there() -> None:
    assert [path for path, text in texts() if path in MEANT and not unclear(path, text)] == []


@pytest.mark.parametrize("text", ["# Whoever asks.", '"somebody else"', "a key of one's own"])
def test_a_text_that_leaves_open_who_is_meant_is_found(text: str) -> None:
    assert unclear("src/remit/a.py", f"x = 1\n{text}\n") != []
    assert unclear("src/remit/a.py", "# One process asks another one.\n") == []
