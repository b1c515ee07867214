"""What hangs below the text, and that it leaves no trace."""

import io
import logging
import os
import sys
from contextlib import redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.adapters.cli.screen.live_lines import BelowText, clear_remains
from remit.adapters.cli.screen.terminal import Aside, Terminal
from tests.unit.adapters.emulator import Emulator

STATUS = ["status one", "status two"]


class Sized(Terminal):
    """A terminal that is as large as its screen: the operating system cannot be asked about that one."""

    def __init__(self, screen: Emulator) -> None:
        super().__init__(screen, screen)
        self._screen = screen

    def screen(self) -> os.terminal_size:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """As large as it is now."""
        return os.terminal_size((self._screen.columns, self._screen.rows))


@pytest.fixture(autouse=True)
def _a_terminal_that_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def on(screen: Emulator) -> tuple[Sized, BelowText]:
    """A terminal with that screen, and what hangs below its text."""
    terminal = Sized(screen)
    below = BelowText(terminal)
    below.open()
    return terminal, below


def test_lines_hang_below_an_open_line_and_make_way_for_the_rest_of_it() -> None:
    terminal, below = on(screen := Emulator())
    terminal.piece("One ")
    below.show(STATUS)
    assert screen.lines == ["One", *STATUS]
    terminal.piece("two.\nThree")
    assert screen.lines == ["One two.", "Three"]
    below.show(STATUS)
    below.close()
    terminal.piece(".\n")
    assert screen.lines == ["One two.", "Three."]


def test_at_the_bottom_of_the_screen_the_text_moves_up() -> None:
    terminal, below = on(screen := Emulator(rows=6))
    for number in range(8):
        terminal.piece(f"line {number}\n")
        below.show(STATUS)
    terminal.piece("end")
    below.show(STATUS)
    assert screen.lines[-3:] == ["end", *STATUS]
    below.close()
    assert screen.lines == [*(f"line {number}" for number in range(8)), "end"]


@given(st.lists(st.text("ab漢\n é", max_size=30), max_size=30), st.integers(20, 30))
def test_text_is_the_same_with_and_without_something_below_it(pieces: list[str], columns: int) -> None:
    os.environ["TERM"] = "xterm"
    plain, hung = Emulator(columns, 40), Emulator(columns, 40)
    alone = Sized(plain)
    terminal, below = on(hung)
    for piece in pieces:
        alone.piece(piece)
        terminal.piece(piece)
        below.show(STATUS)
    below.close()
    assert hung.lines == plain.lines


def test_a_line_below_is_cut_to_the_width_and_holds_nothing_that_is_obeyed() -> None:
    _, below = on(screen := Emulator(columns=20))
    below.show(["\x1b[2J " + "漢" * 30])
    assert screen.lines == ["", "\\x1b[2J " + "漢" * 5 + "…"]


def test_a_writer_beside_it_gets_a_line_of_their_own() -> None:
    terminal, below = on(screen := Emulator())
    terminal.piece("One ")
    below.show(STATUS)
    terminal.remark("a remark")
    below.show(STATUS)
    assert screen.lines == ["One", "a remark", "", *STATUS]


def test_what_tools_print_and_what_is_logged_makes_it_go_first() -> None:
    terminal = Sized(screen := Emulator())
    handler = logging.StreamHandler(screen)
    logging.getLogger().addHandler(handler)
    try:
        with redirect_stdout(Aside(screen)):
            below = BelowText(terminal)
            below.open()
            below.show(STATUS)
            sys.stdout.write("printed\n")
            below.show(STATUS)
            logging.getLogger().warning("logged")
            assert screen.lines == ["printed", "logged"]
            below.close()
            sys.stdout.write("after\n")
    finally:
        logging.getLogger().removeHandler(handler)
    assert handler.filters == []
    assert screen.lines == ["printed", "logged", "after"]


def test_what_was_written_past_everyone_leaves_nothing_of_it_behind() -> None:
    _, below = on(screen := Emulator())
    below.show(STATUS)
    screen.write("from another process\n")
    below.show(STATUS)
    below.close()
    assert screen.lines == ["from another process"]


def test_a_terminal_that_became_narrow_is_cleared_as_well() -> None:
    terminal, below = on(screen := Emulator())
    terminal.piece("text")
    below.show(STATUS)
    screen.columns = 10
    terminal.piece(" more")
    below.show(STATUS)
    assert screen.lines == ["text more"]


@pytest.mark.parametrize("size", [(19, 24), (80, 5)])
def test_a_screen_without_room_shows_none_of_it(size: tuple[int, int]) -> None:
    _, below = on(screen := Emulator(*size))
    below.show(STATUS)
    assert screen.lines == []


@pytest.mark.parametrize("name", ["dumb", ""])
def test_a_terminal_that_cannot_move_is_left_alone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", name)
    _, below = on(screen := Emulator())
    below.show(STATUS)
    below.clear_line()
    below.close()
    assert screen.getvalue() == ""


def test_nobody_who_reads_a_file_is_shown_any_of_it() -> None:
    err = io.StringIO()
    below = BelowText(Terminal(Emulator(), err))
    below.open()
    below.show(STATUS)
    assert err.getvalue() == ""


def test_the_sign_of_an_interrupt_is_wiped_unless_text_stands_before_it() -> None:
    terminal, below = on(screen := Emulator())
    screen.write("^C")
    below.clear_line()
    assert screen.lines == []
    terminal.piece("text")
    screen.write("^C")
    below.clear_line()
    assert screen.lines == ["text^C"]


def test_what_a_killed_process_left_hanging_is_taken_away() -> None:
    killed, below = on(screen := Emulator())
    killed.piece("One")
    below.show(STATUS)
    terminal = Sized(screen)
    clear_remains(terminal)
    terminal.line("It was killed.")
    assert screen.lines == ["One", "It was killed."]


def test_on_a_terminal_that_cannot_move_nothing_is_left_and_nothing_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    clear_remains(Sized(screen := Emulator()))
    assert screen.lines == []
