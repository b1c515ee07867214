"""A path is its plain names, or is refused before anything is opened."""

import pytest

from remit.tool.builtin.refusal import ToolRefused
from remit.tool.builtin.relative_path import (
    FILE_PATH_INVALID,
    NAME_BYTES_MAX,
    PATH_CHARS_MAX,
    PATH_NAMES_MAX,
    STORE_MARK,
    invalid_path,
    joined_path,
    path_names,
)

HOSTILE_PATHS = [
    "..",
    "../secret.txt",
    "sub/../../secret.txt",
    "sub/../a.txt",
    "./../secret.txt",
    "/etc/passwd",
    "//etc/passwd",
    "/",
    "a\x00.txt",
    "a.txt\x00/../../secret.txt",
    "\n",
    "a\x1b[2J",
    ".hidden",
    "sub/.git/config",
    ".remit/remit.db",
    "remit.db",
    "sub/REMIT.DB",
    "a\\b",
    "..\\secret.txt",
    "\\\\host\\share",
    "a\u202etxt",
    "a\u200d.txt",
    "\ud800",
    "\uff0e\uff0e/secret.txt",
    "\u2024\u2024/secret.txt",
    "…",
    "a" * (NAME_BYTES_MAX + 1),
    "é" * 200,
    "a/" * (PATH_NAMES_MAX + 1),
    "a" * (PATH_CHARS_MAX + 1),
    "\u2028",
    "\ufeffa",
    "\x7f",
    "\U000e0001",
    "\u034f.git/config",
    "\u115f.env",
    "\u3164.env",
    "\ufe0f.ssh/id",
    "\U000e0100.env",
    "a\ufe00b",
    "GIT~1/config",
    "git~1",
    "ENV~12.TXT",
    "\uff27\uff29\uff34~1",
    "\uff52emit.db",
    "remit.db\u180b",
]


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_a_path_that_could_mean_something_else_is_refused(path: str) -> None:
    with pytest.raises(ToolRefused) as caught:
        path_names(path)
    assert caught.value.code == FILE_PATH_INVALID


@pytest.mark.parametrize(
    "path", ["a.txt", "./a.txt", "sub/./b.txt", "sub//b.txt", "~", "a b", "%2e%2e", "a.txt~", "~1"]
)
def test_a_plain_path_is_its_names(path: str) -> None:
    assert ".." not in path_names(path)


def test_a_path_is_joined_in_its_one_spelling() -> None:
    assert joined_path("./a//b/", "c") == "a/b/c"
    assert joined_path("", "c") == "c"
    assert joined_path("./a/") == "a"
    assert joined_path("") == ""


def test_a_path_at_each_limit_is_taken() -> None:
    assert path_names("a" * NAME_BYTES_MAX) == ("a" * NAME_BYTES_MAX,)
    assert len(path_names("a/" * PATH_NAMES_MAX)) == PATH_NAMES_MAX
    assert len("/".join(["a" * 199] * 5)) < PATH_CHARS_MAX
    assert path_names(f"{STORE_MARK}.txt") == (f"{STORE_MARK}.txt",)


def test_a_refusal_names_the_path_and_the_problem() -> None:
    assert invalid_path("a", "is odd").message == "path 'a' is odd"
