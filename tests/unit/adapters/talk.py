"""A user who sits at a chat and types what a test tells them to."""

import io
import sys
from pathlib import Path

import pytest

from remit.adapters.cli.main import main
from tests.unit.adapters.desk import Desk, Screen

CTRL_C = "^C"


class Typed(io.StringIO):
    """What is typed, line by line; a line may be the press of Ctrl-C, and after the last comes Ctrl-D."""

    def isatty(self) -> bool:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """The user types."""
        return True

    def readline(self, limit: int | None = -1, /) -> str:  # type: ignore[override, explicit-override]  # it reads text
        """The next line."""
        line = super().readline(-1 if limit is None else limit)
        if line.rstrip("\n") == CTRL_C:
            raise KeyboardInterrupt
        return line


class Talker:
    """Sits at a desk and talks."""

    def __init__(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        self.desk = desk
        self._monkeypatch = monkeypatch

    def says(self, *lines: str, engine: str = "", options: tuple[object, ...] = ()) -> str:
        """Everything that stands on the screen when the chat is over."""
        return self.types(*lines, command=("chat", "--engine", engine or self.desk.script("Hello."), *options))

    def types(self, *lines: str, command: tuple[object, ...]) -> str:
        """Everything that stands on the screen when a command is over, to which these lines are typed."""
        screen = Screen()
        self._monkeypatch.setenv("TERM", "dumb")
        for name in ("stdout", "stderr"):
            self._monkeypatch.setattr(sys, name, screen)
        self._monkeypatch.setattr(sys, "stdin", Typed("".join(f"{line}\n" for line in lines)))
        self.code = main([*map(str, command), "--home", str(self.desk.home)])
        self._monkeypatch.undo()
        return screen.getvalue()

    def pipes(self, data: bytes, *options: object, engine: str = "") -> tuple[int, str, str]:
        """The exit code, and what a pipe gets on stdout and stderr."""
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        chosen = ("--engine", engine or self.desk.script("Hello."))
        return tuple(self.desk.say("chat", *chosen, *options))  # type: ignore[return-value]  # a Said is three values

    def file(self, name: str) -> Path:
        """A file on the desk."""
        return self.desk.folder / name
