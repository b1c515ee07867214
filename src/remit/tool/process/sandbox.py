"""The sandbox of a tool: a process that bubblewrap shuts in, with nothing at hand but what it needs to run.

| what | inside |
|---|---|
| files | /usr and its kin, the interpreter and its packages, remit, and the file or package of the tool; all read-only |
| to write | /tmp, private, in memory, gone with the call |
| not there | home, the store, the folder of the project, other users' files |
| network | none, unless the tool declares `network=True` |
| processes | its own alone: nothing outside can be seen or signalled; all of them end with the call |
| rights | no capabilities, root or not |

Rule 1: where there is no such sandbox a tool that demands it is not called: TOOL_UNAVAILABLE, and never less than it.
Rule 2: what stands around is decided here, by the declaration of the tool; no argument of a call changes it.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType

from remit.tool.declare.decorator import Tool

BUBBLEWRAP = "bwrap"
PROBE_TIMEOUT_S = 10
WAY_OUT = "install bubblewrap (apt-get install bubblewrap) and let this user make user namespaces"

# What programs ask for where they find themselves. Nothing of the home outside is there.
_AT_HOME = MappingProxyType({"HOME": "/tmp", "TMPDIR": "/tmp"})  # noqa: S108  # private in there

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_SETTINGS = (
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/resolv.conf",
    "/etc/ssl",
)


def box(tool: Tool) -> list[str]:
    """The beginning of a command line that runs what follows in a sandbox for this tool."""
    size = str(tool.limits.memory_bytes_max)
    walls = [_bubblewrap(), "--unshare-all", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"]
    if tool.definition.network:
        walls.append("--share-net")
    walls += ["--proc", "/proc", "--dev", "/dev", "--size", size, "--perms", "0700", "--tmpfs", "/tmp"]  # noqa: S108
    walls += ["--size", size, "--tmpfs", "/dev/shm", "--remount-ro", "/dev"]  # noqa: S108
    for folder in _SYSTEM:
        is_link = Path(folder).is_symlink()
        walls += ["--symlink", str(Path(folder).readlink()), folder] if is_link else ["--ro-bind-try", folder, folder]
    for path in dict.fromkeys([*_SETTINGS, *_interpreter(), *_source(tool)]):
        walls += ["--ro-bind-try", path, path]
    return [*walls, "--remount-ro", "/", "--chdir", "/tmp", "--"]  # noqa: S108


def box_environment(seen: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process in the sandbox: what it would see outside, with places that are in there."""
    return {**seen, **_AT_HOME, "PYTHONPATH": os.pathsep.join([str(_own_folder().parent), *_packages()])}


@cache
def sandbox_problem() -> str:
    """Why nothing can be shut in on this machine; empty when it can. Tried once, with a process that does nothing."""
    if shutil.which(BUBBLEWRAP) is None:
        return f"there is no {BUBBLEWRAP} on this machine"
    if wide := [folder for folder in _interpreter() if Path.home().is_relative_to(folder)]:
        return f"the interpreter lies in {wide[0]}, and so does the home, which it would show"
    walls = [_bubblewrap(), "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--proc", "/proc", "--"]
    try:
        tried = subprocess.run(  # noqa: S603  # our own words, and no shell
            [*walls, sys.executable, "-I", "-S", "-c", ""],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{BUBBLEWRAP} could not be tried: {type(error).__name__}"
    if tried.returncode:
        said = tried.stderr.decode(errors="replace").strip().splitlines()
        return f"{BUBBLEWRAP} cannot shut anything in here: {said[-1][:200] if said else tried.returncode}"
    return ""


def _bubblewrap() -> str:
    return shutil.which(BUBBLEWRAP) or BUBBLEWRAP


def _interpreter() -> list[str]:
    """Where the interpreter, its packages and remit lie, each under the names by which it is looked for."""
    folders = [sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix]
    folders += [os.path.realpath(folder) for folder in folders]
    return [*folders, *_packages(), str(_own_folder())]


def _packages() -> list[str]:
    return [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def _own_folder() -> Path:
    return Path(__file__).resolve().parents[2]


def _source(tool: Tool) -> list[str]:
    """The file of a tool, or the package that its module belongs to."""
    place = tool.source.place
    module = sys.modules.get(place.partition(".")[0])
    if os.path.isabs(place) or module is None:  # noqa: PTH117  # a name of a module is no path
        return [place]
    return list(getattr(module, "__path__", ())) or [str(module.__file__)]
