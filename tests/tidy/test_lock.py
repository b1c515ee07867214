"""The lock holds every package the project declares, each with its hashes and without any address."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from tests.tidy.source import ROOT

PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?P<rest>(?:.*\\\n)(?:    --hash=\S+.*\n)+)?", re.MULTILINE
)
ADDRESS = re.compile(r"://|^\s*-{1,2}(?!hash)[a-z]|(?<![\w])/[\w]", re.MULTILINE)


def canonical(requirement: str) -> str:
    """The name of a requirement, as locks spell it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]).lower()


def undeclared(lock: str, project: Mapping[str, Any]) -> list[str]:
    """Packages the project declares and the lock lacks."""
    declared = [
        *project["project"]["dependencies"],
        *(item for extra in project["project"].get("optional-dependencies", {}).values() for item in extra),
        *(item for group in project["dependency-groups"].values() for item in group if isinstance(item, str)),
        *project["build-system"]["requires"],
    ]
    locked = {canonical(match["name"]) for match in PINNED.finditer(lock)}
    return sorted({canonical(item) for item in declared} - locked)


def unhashed(lock: str) -> list[str]:
    return [match["name"] for match in PINNED.finditer(lock) if not match["rest"]]


def addresses(lock: str) -> list[str]:
    return [found.group() for found in ADDRESS.finditer(lock)]


def test_the_lock_is_complete_hashed_and_without_addresses() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert (undeclared(lock, project), unhashed(lock), addresses(lock)) == ([], [], [])


GOOD = "attrs==1.0 \\\n    --hash=sha256:00 \\\n    --hash=sha256:01\n    # via remit (pyproject.toml:dev)\n"


def test_a_declared_package_that_is_not_locked_is_found() -> None:
    project = {
        "project": {"dependencies": ["Attrs>=1"], "optional-dependencies": {"x": ["in_an.extra[y]>=2"]}},
        "dependency-groups": {"dev": ["in-a-group", {"include-group": "other"}]},
        "build-system": {"requires": ["builder"]},
    }
    assert undeclared(GOOD, project) == ["builder", "in-a-group", "in-an-extra"]


def test_a_package_without_hashes_is_found() -> None:
    assert unhashed(GOOD + "bare==2.0\n" + GOOD) == ["bare"]


@pytest.mark.parametrize("line", ["--index-url https://a/simple\n", "-e .\n", "a @ file:///b\n", "    # from /opt/c\n"])
def test_an_address_in_the_lock_is_found(line: str) -> None:
    assert addresses(GOOD) == []
    assert addresses(GOOD + line) != []
