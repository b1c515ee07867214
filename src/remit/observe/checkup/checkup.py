"""A check-up: one thing that was looked at, how it is, and what to do about it.

Rule 1: only what is broken is a problem; what is optional and not there is missing, and what may be so on purpose is
        doubtful.
Rule 2: whatever is not fine comes with the way out, as something to type where there is such a thing.
"""

import sys
from enum import StrEnum
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.metadata import version as package_version
from importlib.util import find_spec

from remit.core.record import Record

PYTHON_MIN = (3, 11)


class CheckState(StrEnum):
    """How a thing is."""

    OK = "ok"
    MISSING = "missing"
    DOUBTFUL = "doubtful"
    PROBLEM = "problem"


class Check(Record):
    """What was looked at, how it is, what was seen, the way out, and the code that runs would be refused with."""

    name: str
    state: CheckState
    seen: str
    way_out: str = ""
    code: str = ""


def check_house() -> tuple[Check, Check]:
    """How Python and this package are."""
    return check_python(sys.version_info[:3]), check_install(distribution("remit"))


def check_python(version: tuple[int, int, int]) -> Check:
    """Whether this Python can run the house."""
    seen = ".".join(map(str, version))
    if version < PYTHON_MIN:
        return Check("python", CheckState.PROBLEM, seen, f"use Python {PYTHON_MIN[0]}.{PYTHON_MIN[1]} or later")
    return Check("python", CheckState.OK, f"{seen} at {sys.executable}")


def check_install(installed: Distribution) -> Check:
    """Which version is installed, and how: as a package, or as a folder that is being worked on."""
    origin = installed.read_text("direct_url.json") or "{}"
    how = "editable, from a folder" if '"editable"' in origin else "a package"
    return Check("remit", CheckState.OK, f"{installed.version}, {how}")


def check_package(name: str, module: str, *, needed_for: str, way_out: str) -> Check:
    """Whether an optional package is there; it is not loaded."""
    if find_spec(module) is None:
        return Check(name, CheckState.MISSING, f"{module} is not installed; {needed_for}", way_out)
    try:
        return Check(name, CheckState.OK, f"{module} {package_version(module)}")
    except PackageNotFoundError:
        # A module that no package brought; whoever put it there knows its version.
        return Check(name, CheckState.OK, module)
