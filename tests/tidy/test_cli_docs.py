"""docs/cli.md describes every command and every option, and none that is not there."""

import io
import re
from collections.abc import Mapping
from contextlib import redirect_stdout

from remit.adapters.cli.chat.slash import SLASHES
from remit.adapters.cli.main import main
from remit.adapters.cli.table import OPTIONS, command_entries
from remit.core.limits.profiles import KNOWN
from tests.tidy.source import ROOT, expect_none

DOCUMENT = (ROOT / "docs/cli.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### remit (?P<words>[a-z ]+)\n(?P<text>.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
OPTION = re.compile(r"^\| `(--[a-z-]+)` \|", re.MULTILINE)
HELPED = re.compile(r"^  (--[a-z-]+)", re.MULTILINE)
COMMON = frozenset(option.split()[0] for option, _ in OPTIONS)


def documented(text: str) -> dict[str, set[str]]:
    """The options of each command, as a document lists them."""
    return {found["words"]: set(OPTION.findall(found["text"])) for found in SECTION.finditer(text)}


def offered() -> dict[str, set[str]]:
    """The options of each command, as its help lists them, besides those of every command."""
    options: dict[str, set[str]] = {}
    for entry in command_entries():
        with redirect_stdout(io.StringIO()) as said:
            main([*entry.words.split(), "--help"])
        options[entry.words] = set(HELPED.findall(said.getvalue())) - COMMON
    return options


def disagreements(said: Mapping[str, set[str]], there: Mapping[str, set[str]]) -> list[str]:
    return [
        *(f"remit {words} is not described" for words in there if words not in said),
        *(f"remit {words} is described and not there" for words in said if words not in there),
        *(
            f"remit {words}: {name} is {'not described' if name in there[words] else 'described and not there'}"
            for words in there
            if words in said
            for name in sorted(there[words] ^ said[words])
        ),
    ]


def test_the_guide_to_the_command_line_says_what_there_is() -> None:
    expect_none(disagreements(documented(DOCUMENT), offered()))


def test_the_options_of_every_command_are_described_once() -> None:
    head = DOCUMENT.partition("\n## Running\n")[0]
    assert set(OPTION.findall(head)) == COMMON


CALLED = re.compile(r"(?:^\$ |`)remit (?P<said>(?!envelope 1)[a-z][^`\n]*)", re.MULTILINE)
NAMED = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def misnamed(text: str, there: Mapping[str, set[str]]) -> list[str]:
    """The commands that a document types and that are not there, and their options that they do not take."""
    complaints: list[str] = []
    for call in CALLED.finditer(text):
        said = call["said"]
        words = next(
            (words for words in sorted(there, key=len, reverse=True) if f"{said} ".startswith(f"{words} ")), ""
        )
        group = said.split()[0]
        if not words:
            if not any(each.startswith(f"{group} ") for each in there):
                complaints.append(f"remit {group} is not there")
            continue
        known = there[words] | COMMON | {"--help", "--version"}
        complaints += [f"remit {words} has no {name}" for name in NAMED.findall(said) if name not in known]
    return complaints


def test_every_command_and_option_that_a_document_names_is_there() -> None:
    there = offered()
    files = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]
    expect_none(
        f"{file.name}: {complaint}" for file in files for complaint in misnamed(file.read_text(encoding="utf-8"), there)
    )


def test_a_document_that_names_what_is_not_there_is_found() -> None:
    there: dict[str, set[str]] = {"run": {"--file"}, "queues list": set()}
    assert misnamed("`remit run --file x` and `remit queues`, `remit queues list --json`", there) == []
    assert misnamed("`remit run --files x`, `remit dance`\n$ remit run --measure", there) == [
        "remit run has no --files",
        "remit dance is not there",
        "remit run has no --measure",
    ]


def test_a_guide_that_disagrees_is_found() -> None:
    said = documented("### remit run\n| `--file` | a file |\n### remit dance\n")
    assert disagreements(said, {"run": {"--file"}, "dance": set()}) == []
    assert disagreements(said, {"run": {"--mode"}, "show": set()}) == [
        "remit show is not described",
        "remit dance is described and not there",
        "remit run: --file is described and not there",
        "remit run: --mode is not described",
    ]


def test_the_documentation_names_every_known_boundary() -> None:
    (line,) = [line for line in DOCUMENT.splitlines() if line.startswith("| `--boundary` | what the run may do: ")]
    assert re.findall(r"`(\w+)`", line.partition(", or a YAML")[0].partition(":")[2]) == list(KNOWN)


def test_the_documentation_lists_every_slash_command() -> None:
    listed = re.findall(r"^\| `(/[a-z]+)", DOCUMENT, re.MULTILINE)
    assert sorted(listed) == sorted(slash.word for slash in SLASHES)
