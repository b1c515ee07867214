"""The command that brings what an extra of this package names into the environment that runs it.

Rule 1: the command is right as it is printed, whether or not the environment was activated: it names its interpreter.
Rule 2: an environment that uv made has no pip of its own; one without either is given pip first.
"""

import importlib.util
import sys
from pathlib import Path

# What uv writes into the settings of an environment that it makes.
_MADE_BY_UV = "\nuv = "


def install_command(extra: str) -> str:
    """What to type so that the packages of an extra are here."""
    # Who misses nothing does not pay for them.
    import shlex
    import shutil

    python, wanted = shlex.quote(sys.executable), f"'remit[{extra}]'"
    if has_pip():
        return f"{python} -m pip install {wanted}"
    if shutil.which("uv") or is_made_by_uv(Path(sys.prefix)):
        return f"uv pip install {wanted} --python {python}"
    return f"{python} -m ensurepip && {python} -m pip install {wanted}"


def has_pip() -> bool:
    """Whether this interpreter has a pip of its own."""
    return importlib.util.find_spec("pip") is not None


def is_made_by_uv(environment: Path) -> bool:
    """Whether uv made an environment, so that its user has uv."""
    settings = environment / "pyvenv.cfg"
    return settings.is_file() and _MADE_BY_UV in f"\n{settings.read_text(encoding='utf-8')}"
