"""Regular expressions mean the same in every Python that remit runs on."""

import re

import pytest

from tests.tidy.source import PACKAGE, Source, expect_none, source, sources

# Before 3.11.5 Python matches a group wrongly that repeats possessively or is atomic; a single class is fine.
POSSESSIVE_GROUP = re.compile(r"(?:re\.compile\(|\br?f?['\"]).*(?:(?<!\\)\)[*+?]\+(?![*+?])|\(\?>)")


def possessive_groups(file: Source) -> list[str]:
    lines = enumerate(file.text.splitlines(), 1)
    return [f"{file.path}:{number}: a group repeats possessively" for number, line in lines if is_possessive(line)]


def is_possessive(line: str) -> bool:
    return "re.compile" in line and POSSESSIVE_GROUP.search(line) is not None


def test_no_group_repeats_possessively() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in possessive_groups(file))


@pytest.mark.parametrize(
    ("line", "is_wrong"),
    [
        (r'x = re.compile(r"(?:a|b)*+c")', True),
        (r'x = re.compile(r"(?>ab)c")', True),
        (r'x = re.compile(r"[ab]*+(?:c)*")', False),
        (r'SAFE = "()*+,"', False),
    ],
)
def test_a_group_that_repeats_possessively_is_found(line: str, is_wrong: bool) -> None:
    assert bool(possessive_groups(source("src/remit/x.py", line))) is is_wrong
