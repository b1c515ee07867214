"""A check-up: one thing that was looked at, how it is, and what to do about it.

Rule 1: only what is broken is a problem; what is optional and not there is missing, and what may be so on purpose is
        doubtful.
Rule 2: whatever is not fine comes with the way out, as something to type where there is such a thing.
Rule 3: an isolated process is never called a sandbox, here or elsewhere.
Rule 4: secrets are told by their names, and by nothing else.
"""

import subprocess
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.metadata import version as package_version
from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING

from remit.core.failure import RemitError
from remit.core.record import Record

if TYPE_CHECKING:
    from remit.tool.secrets.vault import Vault

PYTHON_MIN = (3, 11)
# The vendors whose models are asked with a key, and the variable that it is taken from. Two checks are named after each: its
# package, and its key with this behind the name.
VENDORS: Mapping[str, str] = MappingProxyType({"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"})
VENDOR_KEY = ".key"


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
        # A module that no package brought; its version is not known here.
        return Check(name, CheckState.OK, module)


PROBE_TIMEOUT_S = 20


def check_confinement() -> tuple[Check, Check]:
    """The findings on what isolate=True and sandbox=True come to on this machine."""
    from remit.tool.process.sandbox import sandbox_problem

    return check_isolation(is_walled=has_numbers()), check_sandbox(sandbox_problem())


def check_isolation(*, is_walled: bool) -> Check:
    """What an isolated tool can still do; a process that can be killed is what is promised."""
    name, promised = (
        "tools.isolate",
        "processes that can be killed, with limits; no sandbox: they read what this user reads",
    )
    if is_walled:
        return Check(name, CheckState.OK, f"{promised}, and can signal nothing outside")
    seen = f"{promised}, and can signal every process of this user: the kernel lets it make no process namespace"
    return Check(
        name, CheckState.DOUBTFUL, seen, "allow user namespaces, or use sandbox=True for tools that you do not trust"
    )


def check_sandbox(problem: str) -> Check:
    """Whether sandbox=True can be kept."""
    if problem:
        from remit.tool.process.sandbox import WAY_OUT

        return Check(
            "tools.sandbox", CheckState.MISSING, f"{problem}; tools with sandbox=True are unavailable", WAY_OUT
        )
    return Check("tools.sandbox", CheckState.OK, "bubblewrap shuts tools with sandbox=True in")


def has_numbers() -> bool:
    """Whether what an isolated tool starts has process numbers of its own here; tried with a process that does nothing."""
    try:
        tried = subprocess.run(  # our own interpreter and module, and no shell
            [sys.executable, "-P", "-m", "remit.tool.process.warden"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


_SECRETS = "secrets"


def check_secrets(open_vault: "Callable[[], Vault]") -> list[Check]:
    """Which secrets there are and whether they still hold; nothing where there are none."""
    try:
        vault = open_vault()
    except RemitError as error:
        seen, _, way_out = error.message.partition("; ")
        return [Check(_SECRETS, CheckState.PROBLEM, f"{error.code}: {seen}", way_out)]
    names = sorted(vault.expiries)
    if not names:
        return []
    seen = f"{len(names)}: {', '.join(names)}"
    revoked = list(vault.revoked)
    if revoked:
        way_out = "set other values, and have the old ones withdrawn where they are accepted"
        told = f"{seen}; revoked because a model knew them: {', '.join(revoked)}"
        return [Check(_SECRETS, CheckState.PROBLEM, told, way_out)]
    expired = [name for name in names if vault.has_expired(name)]
    if not expired:
        return [Check(_SECRETS, CheckState.OK, seen)]
    way_out = "put new ones in their place; until then the tools that ask for them are not called"
    return [Check(_SECRETS, CheckState.DOUBTFUL, f"{seen}; expired: {', '.join(expired)}", way_out)]
