"""What a person types, how it is edited and what is remembered of it."""

import readline
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.adapters.cli.chat import keyboard
from remit.adapters.cli.chat.keyboard import HISTORY_LINES_MAX, Keyboard
from remit.adapters.cli.screen.terminal import Terminal
from tests.planted import Planted
from tests.unit.adapters.desk import Screen
from tests.unit.adapters.pseudo import PseudoTerminal
from tests.unit.adapters.talk import Typed


@pytest.fixture
def edited(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A line editor although no user types; afterwards it remembers nothing."""
    monkeypatch.setattr(keyboard, "_editor", lambda: readline)
    yield monkeypatch
    readline.clear_history()


def type_lines(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr(sys, "stdin", Typed("".join(f"{line}\n" for line in lines)))


def test_messages_are_remembered_for_their_owner_alone_and_answers_are_not(
    tmp_path: Path, edited: pytest.MonkeyPatch
) -> None:
    history = tmp_path / "history"
    type_lines(edited, "first", "one \\", "two", "y", "", "last")
    with Keyboard(Terminal(Screen(), Screen()), history) as keys:
        assert keys.message() == "first"
        assert keys.message() == "one \ntwo"
        assert keys.answer("allow it? ", "a draft") == "y"
        assert keys.message() == ""
        assert keys.message() == "last"
        assert keys.message() is None
    assert [line for line in history.read_text().splitlines() if not line.startswith("_")] == [
        "first",
        "one  two",
        "last",
    ]
    assert history.stat().st_mode & 0o777 == 0o600
    with Keyboard(Terminal(Screen(), Screen()), history):
        assert readline.get_history_item(1) == "first"


def test_no_secret_is_remembered_in_a_file_nor_does_one_stay_there(tmp_path: Path, edited: pytest.MonkeyPatch) -> None:
    history, token = tmp_path / "history", Planted(5).all()["github"][1]
    history.write_text(f"as before, {token}\n")
    type_lines(edited, f"use {token} please", "hello")
    with Keyboard(Terminal(Screen(), Screen()), history) as keys:
        assert keys.message() == f"use {token} please"
        assert keys.message() == "hello"
    assert token not in history.read_text()
    assert "use [secret:github_token] please" in history.read_text()


def test_a_history_has_an_end(tmp_path: Path, edited: pytest.MonkeyPatch) -> None:
    history = tmp_path / "history"
    history.write_text("".join(f"line {number}\n" for number in range(HISTORY_LINES_MAX + 10)))
    with Keyboard(Terminal(Screen(), Screen()), history):
        pass
    assert len(history.read_text().splitlines()) <= HISTORY_LINES_MAX


def test_a_history_that_cannot_be_written_is_no_error(tmp_path: Path, edited: pytest.MonkeyPatch) -> None:
    with Keyboard(Terminal(Screen(), Screen()), tmp_path / "no" / "such" / "folder"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_commands_are_completed_and_nothing_else(tmp_path: Path, edited: pytest.MonkeyPatch) -> None:
    with Keyboard(Terminal(Screen(), Screen()), tmp_path / "history", ["/help", "/new", "/hold"]):
        complete = readline.get_completer()
        assert complete is not None
        assert [complete("/h", state) for state in range(3)] == ["/help", "/hold", None]
        assert complete("", 0) is None
    assert readline.get_completer() is None


def test_without_a_line_editor_a_line_is_just_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    type_lines(monkeypatch, "a line")
    with Keyboard(Terminal(Screen(), Screen()), tmp_path / "history") as keys:
        assert keys.message() == "a line"
        assert keys.answer("?") is None
    assert list(tmp_path.iterdir()) == []


TYPES = """
import sys
from pathlib import Path
from remit.adapters.cli.chat.keyboard import Keyboard
from remit.adapters.cli.screen.terminal import Terminal, own_stdout

with own_stdout() as out:
    terminal = Terminal(out, sys.stderr)
    with Keyboard(terminal, Path(sys.argv[1])) as keys:
        terminal.line("READY")
        terminal.line(f"heard {keys.message()!r}")
        terminal.line(f"answered {keys.answer('sure? ', 'draft')!r}")
        terminal.line(f"more {keys.message()!r}")
"""


def test_at_a_real_terminal_lines_are_edited_and_pasted_and_drafts_are_offered(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(TYPES)
    words = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "history")]
    with PseudoTerminal(words, environment={}, folder=tmp_path) as terminal:
        terminal.until("> ")
        terminal.type("pasted one\npasted two\n")
        terminal.until("heard 'pasted one\\npasted two'")
        terminal.until("draft")
        terminal.type("\x7f\x7f\x7f\x7f\x7fno\n")
        terminal.until("answered 'no'")
        terminal.until("> ")
        terminal.type("\x04")
        terminal.until("more None")
        assert terminal.end() == 0
    assert (tmp_path / "history").stat().st_mode & 0o777 == 0o600


BUSY = """
import select
import sys
from pathlib import Path
from remit.adapters.cli.chat.keyboard import Keyboard
from remit.adapters.cli.screen.terminal import Terminal, own_stdout

with own_stdout() as out:
    terminal = Terminal(out, sys.stderr)
    with Keyboard(terminal, Path(sys.argv[1])) as keys:
        terminal.line("BUSY")
        select.select([0], [], [])
        for _ in range(3):
            terminal.line(f"heard {keys.message()!r}")
"""


def test_what_is_typed_before_the_prompt_stands_there_stays_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(BUSY)
    words = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "history")]
    with PseudoTerminal(words, environment={}, folder=tmp_path) as terminal:
        terminal.until("BUSY")
        terminal.type("one\n/quit\n")
        terminal.until("heard 'one'")
        terminal.until("heard '/quit'")
        terminal.until("> ")
        terminal.type("pasted one\npasted two\n")
        terminal.until("heard 'pasted one\\npasted two'")
        assert terminal.end() == 0
