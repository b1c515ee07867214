"""Pages that are typed from top to bottom: their files are saved, their commands played, and what those said is compared.

    python -m scripts.typed_pages    # plays every page and writes anew what its commands say

Rule 1: a block below a line that ends in a file's name and a colon (`desk.py`:) is that file.
Rule 2: in a `console` block, a line that begins with `$ ` is typed, and what follows is what it says, stderr included.
Rule 3: a line that holds only the sign of omission stands for any lines; it stays while the rest is true.
Rule 4: what fetches packages is not played: that would prove the index and not the page.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from scripts.transcript import comparable

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("start.md", "deployment.md")

BLOCK = re.compile(r"(?:`(?P<file>[\w.-]+)`:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
TYPED = re.compile(r"^\$ (?P<command>.*)\n(?P<said>(?:(?!\$ ).*\n)*)", re.MULTILINE)
LEFT_OUT = "…"
NOT_PLAYED = ("mkdir ", "cd ", "python3 -m venv ", ". .venv/", "pip install ")
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
SECONDS_MAX = 120


def played(page: str) -> str:
    """A page as it is when its commands have been typed: what is true stays as it is, the rest is written anew."""
    with TemporaryDirectory(prefix="remit-page-") as folder:

        def block(found: re.Match[str]) -> str:
            if found["file"]:
                (Path(folder) / found["file"]).write_text(found["text"], encoding="utf-8")
            if found["language"] != "console":
                return found[0]
            return found[0].replace(found["text"], TYPED.sub(lambda one: _typed(one, Path(folder)), found["text"]))

        return BLOCK.sub(block, page)


def _typed(one: re.Match[str], folder: Path) -> str:
    if one["command"].startswith(NOT_PLAYED):
        return one[0]
    said = say(one["command"], folder)
    return one[0] if is_told(one["said"], said) else f"$ {one['command']}\n{said}"


def say(command: str, folder: Path) -> str:
    """What a command says in a folder, to a user who has just installed remit."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("REMIT_")}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": f"{folder}/config",
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    return done.stdout


def is_told(told: str, said: str) -> bool:
    """Whether a page tells what was said, apart from times, ids and what it leaves out."""
    heard, at = _compared(said.splitlines()), 0
    *firsts, last = _parts(told.splitlines())
    for number, part in enumerate(firsts):
        places = range(at, len(heard) - len(part) + 1) if number else (0,)
        fits = [place for place in places if heard[place : place + len(part)] == part]
        if not fits:
            return False
        at = fits[0] + len(part)
    rest = heard[at:]
    return rest == last if not firsts else len(rest) >= len(last) and rest[len(rest) - len(last) :] == last


def _parts(lines: list[str]) -> Iterator[list[str]]:
    """What stands between signs of omission, ready to be compared."""
    part: list[str] = []
    for line in lines:
        if line.strip() == LEFT_OUT:
            yield _compared(part)
            part = []
        else:
            part.append(line)
    yield _compared(part)


def _compared(lines: list[str]) -> list[str]:
    return comparable(DIGEST.sub("DIGEST", "\n".join(lines))).splitlines()


def main() -> None:
    """Write every page anew."""
    for name in PAGES:
        path = DOCS / name
        path.write_text(played(path.read_text(encoding="utf-8")), encoding="utf-8")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
