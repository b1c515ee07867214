"""What the documents say is there, and nothing in the project tells where it happened to be written."""

import os
import re
from collections.abc import Collection
from pathlib import Path

import pytest

from tests.tidy.source import PACKAGE, ROOT, expect_none, project_files

# In backticks, and either a folder or something with an ending we keep.
NAMED_FILE = re.compile(r"`([\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|md|toml|lock|yaml|yml|json)))`")
# What a clone has only once it is used.
MADE = frozenset({".venv/", ".venv/bin/"})
NAMED_TARGET = re.compile(r"`make ([a-z]+)[^`]*`|^\s*make ([a-z]+)", re.MULTILINE)
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)

# Homes of people and of build machines, and the hosts packages come from. The pieces keep this file from finding itself.
WORKPLACES = re.compile(r"(?<![\w.~-])/(?:work|root|home/[a-z]+|Users/[A-Za-z]+)/[\w.]")
REGISTRIES = re.compile("|".join(("py" + r"pi\.", "python" + "hosted", "npm" + "js", r"registry\." + "npm")))


def missing_files(text: str, exists: Collection[str] | None = None) -> list[str]:
    """Files and folders that a document names, looked up from the root, from src and from the package."""

    def is_there(name: str) -> bool:
        if exists is not None:
            return name in exists
        return name in MADE or any((ROOT / start / name).exists() for start in (".", "src", PACKAGE))

    return [name for name in NAMED_FILE.findall(text) if not is_there(name)]


def missing_targets(text: str, makefile: str) -> list[str]:
    targets = set(TARGET.findall(makefile))
    named = (first or second for first, second in NAMED_TARGET.findall(text))
    return sorted({name for name in named if name not in targets})


def workplaces(text: str) -> list[str]:
    return [found.group() for pattern in (WORKPLACES, REGISTRIES) for found in pattern.finditer(text)]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_every_file_named_in_the_architecture_exists() -> None:
    expect_none(missing_files(read("ARCHITECTURE.md")))


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "docs/decisions/README.md", "docs/requirements.md"])
def test_every_file_and_target_named_in_a_document_exists(name: str) -> None:
    expect_none(missing_files(read(name)))
    expect_none(missing_targets(read(name), read("Makefile")))


def test_every_decision_stands_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    notes = [path.name for path in folder.glob("*.md") if path.name != "README.md"]
    assert [name for name in sorted(notes) if f"({name})" not in read("docs/decisions/README.md")] == []


def test_ci_runs_the_command_of_the_readme() -> None:
    commands = [line for line in read(".ci/run").splitlines() if line.startswith("make ")]
    assert commands == ["make test", "make run </dev/null"]
    assert "make test" in read("README.md")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_no_file_names_a_workplace_or_a_registry() -> None:
    complaints: list[str] = []
    for path in project_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        complaints.extend(f"{path.relative_to(ROOT)}: {found}" for found in workplaces(text))
    expect_none(complaints)


def test_a_file_that_a_document_invents_is_found() -> None:
    text = "See `kernel/state.py`, `tests/golden/` and `make check`, `x = 1`, `RunState`."
    assert missing_files(text, exists=()) == ["kernel/state.py", "tests/golden/"]
    assert missing_files(text, exists=("kernel/state.py", "tests/golden/")) == []


def test_a_target_that_a_document_invents_is_found() -> None:
    makefile = "check: static\n\t@true\nlock:\n"
    text = "Run `make check`, `make lock UPGRADE=--upgrade` or:\n\n    make dance\n"
    assert missing_targets(text, makefile) == ["dance"]


@pytest.mark.parametrize(
    "path", [("", "work", "main"), ("", "root", ".cache"), ("", "home", "ann", "remit"), ("", "Users", "Ann", "remit")]
)
def test_a_workplace_is_found_in_a_text(path: tuple[str, ...]) -> None:
    assert workplaces(f"see {'/'.join(path)}") != []


def test_a_registry_is_found_in_a_text() -> None:
    assert workplaces("https://" + "py" + "pi.org/simple") != []


@pytest.mark.parametrize("text", ["/tmp/a", "docs/work/a", "~/work/a", "/workflows/a", "/homes", "http://a/b"])
def test_an_ordinary_path_passes(text: str) -> None:
    assert workplaces(text) == []


def test_the_project_files_include_what_git_keeps() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in project_files()}
    assert {"pyproject.toml", "src/remit/__init__.py", "tests/tidy/source.py"} <= names
    assert not any(Path(name).parts[0] in {".git", ".venv", ".tools"} for name in names)
