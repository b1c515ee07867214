"""The transcript of the demo in the README: recorded from a real run, so that it stays true.

    python -m scripts.transcript    # plays the demo without a person at the keyboard and writes the README's block anew

Times, ids and keys differ from run to run; everything else has to be the same, and a test compares it.
"""

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- transcript: made by scripts/transcript.py -->\n```text\n", "```\n<!-- end of the transcript -->"
# What the README has no room for: the one sentence that is a paragraph, and what the demo says at its end.
LEFT_OUT = ("explain",)
COLUMNS_MAX = 118
# Whatever is different every time, and what stands for it in a comparison. The order matters.
VARYING = (
    (re.compile(r"\b[0-9a-hjkmnp-tv-z]{16}\b"), "RUN"),
    (re.compile(r"did:key:\w+"), "KEY"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "MOMENT"),
    (re.compile(r"[\d.,]+ (?:ms|s|min)\b"), "TIME"),
    (re.compile(r"\d+ tokens in, \d+ out"), "N tokens"),
    (re.compile(r"(input|output|context)_tokens +\d+"), r"\1_tokens N"),
    (re.compile(r"for \w+  "), "for USER  "),
    (re.compile(r" +"), " "),
)


def recorded() -> str:
    """What the demo says to a user who reads it later."""
    with TemporaryDirectory(prefix="remit-demo-") as folder:
        command = [sys.executable, "-m", "remit", "demo", "--folder", folder]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
    if done.returncode:
        raise SystemExit(f"the demo failed with exit code {done.returncode}:\n{done.stdout}")
    return done.stdout


def shown(record: str) -> str:
    """As much of a record as the README shows, its long lines cut."""
    _, *commands = record.partition("\nThe run was stopped")[0].split("\n$ ")
    kept = [command for command in commands if command.split()[1] not in LEFT_OUT]
    lines = _without_budget("\n$ ".join(["", *kept]).strip("\n").splitlines())
    return "\n".join(line if len(line) <= COLUMNS_MAX else line[: COLUMNS_MAX - 1] + "…" for line in lines) + "\n"


def _without_budget(lines: list[str]) -> list[str]:
    """The lines without the list of what was spent of what, which ends with the command that showed it."""
    kept: list[str] = []
    is_budget = False
    for line in lines:
        is_budget = line == "budget" or (is_budget and line.startswith("  "))
        if not is_budget:
            kept.append(line)
    return kept


def comparable(text: str) -> str:
    """A transcript without what differs from run to run. Lines may be cut elsewhere, so ends of long ones do not count."""
    lines = []
    for line in text.splitlines():
        whole = line
        for pattern, stand_in in VARYING:
            whole = pattern.sub(stand_in, whole)
        lines.append(whole.removesuffix("…")[: COLUMNS_MAX // 2])
    return "\n".join(lines)


def in_readme(text: str) -> str:
    """The transcript that a README holds."""
    return text.partition(BEGIN)[2].partition(END)[0]


def main() -> None:
    """Write the README's block anew."""
    text = README.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin, "the README marks where the transcript begins"
    assert end, "the README marks where the transcript ends"
    README.write_text(before + begin + shown(recorded()) + end + after, encoding="utf-8")


if __name__ == "__main__":
    main()
