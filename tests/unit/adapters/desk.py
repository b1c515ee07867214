"""A desk with the command line on it: a folder for runs, scripts for the model, tools that write notes."""

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from remit.adapters.cli.main import main
from remit.core.record import JsonObject

TOOLS = '''
from pathlib import Path

from remit.tool.declare.decorator import tool

NOTES = Path(__file__).with_name("notes.txt")


@tool(effect="read")
def look(place: str) -> str:
    """Look somewhere."""
    print("a tool prints to stdout")
    return f"nothing at {place}"


def is_written(arguments, result):
    """Whether the note stands in the file."""
    return arguments["text"] in NOTES.read_text()


@tool(effect="write", idempotent=True, verify=is_written)
def write(text: str, idempotency_key: str) -> str:
    """Write a note."""
    with NOTES.open("a") as notes:
        notes.write(text + "\\n")
    return text

'''

HELPER = """
from remit.tool.delegate import delegate

LEASE = {"input_tokens": 50_000, "output_tokens": 10_000, "tool_calls": 5, "steps": 20, "human_reviews": 3}
helper = delegate("helper", description="Have a helper do a task.", lease=LEASE)
"""


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """A person looks at it."""
        return True


class Said(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def values(self) -> JsonObject:
        """The one object on stdout."""
        (line,) = self.out.splitlines()
        values: JsonObject = json.loads(line)
        return values

    @property
    def rows(self) -> list[JsonObject]:
        """The objects on stdout, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> str:
        """The code of the error, as programs read it."""
        return str(self.values["error"]["code"])


class Desk:
    """Says something to the command line and hears what it answers."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._capsys = capsys
        self._scripts = 0

    def say(self, *words: object) -> Said:
        """What a command answers."""
        self._capsys.readouterr()
        code = main([*map(str, words), "--home", str(self.home)])
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)

    def script(self, *replies: Any) -> str:
        """The spec of an engine that gives these replies; a text stands for an answer."""
        self._scripts += 1
        path = self.folder / f"script{self._scripts}.json"
        spelled = [{"text": reply} if isinstance(reply, str) else reply for reply in replies]
        path.write_text(json.dumps({"replies": spelled}), encoding="utf-8")
        return f"scripted:{path}"

    def file(self, name: str, content: str | bytes) -> Path:
        """A file on the desk."""
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def tools(self) -> Path:
        """A file with tools: look reads, write needs approval."""
        return self.file("tools.py", TOOLS)

    @property
    def notes(self) -> list[str]:
        """What the tool wrote."""
        path = self.folder / "notes.txt"
        return path.read_text().splitlines() if path.exists() else []

    def waiting(self) -> str:
        """A run that waits for a person to approve a note; gives its id."""
        script = self.script(calls("write", text="hello"), "Written.")
        return str(
            self.say("run", "Write hello", "--engine", script, "--tools", self.tools(), "--json").values["run_id"]
        )

    def delegating(self) -> str:
        """A run whose child waits for a person to approve a note; gives its id."""
        tools = self.file("tools.py", TOOLS + HELPER)
        script = self.script({"when": '"task"', **calls("write", text="hello")}, calls("helper", task="write"), "Done.")
        said = self.say("run", "Have it written", "--engine", script, "--tools", tools, "--json")
        return str(said.values["run_id"])

    def ended(self, answer: str = "Done.") -> str:
        """A run that has answered; gives its id."""
        return str(self.say("run", "Hi", "--engine", self.script(answer), "--json").values["run_id"])


def calls(tool: str, **arguments: object) -> JsonObject:
    """A reply that calls a tool."""
    return {"tool_calls": [{"name": tool, "arguments": arguments}]}
