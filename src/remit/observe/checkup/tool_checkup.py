"""How tools can be kept apart on this machine: in processes of their own, and in a sandbox.

Rule 1: an isolated process is never called a sandbox, here or elsewhere.
"""

import subprocess
import sys

from remit.observe.checkup.checkup import Check, CheckState
from remit.tool.process.sandbox import WAY_OUT, sandbox_problem

PROBE_TIMEOUT_S = 20


def check_tools() -> tuple[Check, Check]:
    """What isolate=True and sandbox=True come to here."""
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
