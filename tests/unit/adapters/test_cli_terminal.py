"""What reaches the terminal, and what must not."""

import errno
import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.adapters.cli.screen.terminal import Terminal, escaped, json_line, own_stdout, printable
from remit.core.failure import RemitError
from remit.core.record import BlobRef
from tests.unit.adapters.desk import Screen

HOSTILE = "\x1b]0;title\x07 \x9b31m \u202e \ud800 \x7f"


class Closed(io.StringIO):
    """A pipe without a reader any more."""

    def write(self, text: str) -> int:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """No reader is there."""
        raise BrokenPipeError


class Full(io.StringIO):
    """A disk without room."""

    def write(self, text: str) -> int:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """There is no room."""
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("write", [printable, escaped, json_line])
def test_nothing_a_terminal_obeys_gets_through(write: object) -> None:
    assert callable(write)
    shown = write(HOSTILE)
    assert shown.isprintable()
    assert "title" in shown


def test_text_that_prints_is_printed_as_it_is() -> None:
    assert printable("a\\b ü 漢") == "a\\b ü 漢"
    assert escaped("a\\b\n\tü\r\n") == "a\\b\n\tü\n"


def test_a_line_is_one_line_and_a_text_ends_with_one() -> None:
    out = io.StringIO()
    terminal = Terminal(out, io.StringIO())
    terminal.line("a\nb")
    terminal.text("c\nd")
    terminal.text("e\n")
    assert out.getvalue() == "a\\nb\nc\nd\ne\n"


def test_json_has_every_field_of_a_record_and_bytes_in_hexadecimal() -> None:
    values = {"refs": (BlobRef(b"\x01\xff", 2),), 1: None}
    assert json.loads(json_line(values)) == {"refs": [{"digest": "01ff", "size_bytes": 2}], "1": None}
    assert json_line("\x7f") == '"\\u007f"'


def test_an_error_goes_to_programs_as_an_object_and_to_people_as_a_line() -> None:
    out, err = io.StringIO(), io.StringIO()
    error = RemitError("CODE", "what \x1b happened", {"limit": 3})
    Terminal(out, err).complain(error)
    assert (out.getvalue(), err.getvalue()) == ("", "error CODE: what \\x1b happened\n")
    Terminal(out, err, is_json=True).complain(error)
    expected = {"error": {"code": "CODE", "message": "what \x1b happened", "details": {"limit": 3}}}
    assert json.loads(out.getvalue()) == expected


def test_a_reader_that_stops_reading_is_not_written_to_any_more() -> None:
    terminal = Terminal(Closed(), Closed())
    for _ in range(2):
        terminal.line("a")
        terminal.data(b"b")
        terminal.remark("c")
    assert not terminal.is_a_terminal


def test_an_answer_that_cannot_be_written_is_an_error_with_a_code() -> None:
    terminal = Terminal(Full(), Full())
    terminal.remark("nobody is left to tell")
    with pytest.raises(RemitError, match="OUTPUT_UNWRITABLE"):
        terminal.line("a")
    terminal.line("b")


@pytest.mark.parametrize("closed", [("stdout",), ("stderr",), ("stdout", "stderr")])
def test_streams_that_were_closed_from_the_start_are_left_alone(
    closed: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in closed:
        monkeypatch.setattr(sys, name, None)
    with own_stdout() as out:
        terminal = Terminal(out, sys.stderr)
        terminal.line("an answer")
        terminal.remark("a remark")
        assert (out is None) == ("stdout" in closed)


def test_what_others_print_meanwhile_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with own_stdout() as out:
        sys.stdout.write("a tool \x1b[2J\n")
        sys.stdout.buffer.write(b"bytes\n")
        sys.stdout.flush()
        assert out is not None
        out.write("an answer\n")
    sys.stdout.write("as before\n")
    assert capsys.readouterr() == ("an answer\nas before\n", "a tool \\x1b[2J\nbytes\n")


def test_what_others_write_past_python_goes_to_stderr_too(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import os, subprocess, sys\n"
        "from remit.adapters.cli.screen.terminal import own_stdout\n"
        "with own_stdout() as out:\n"
        "    os.write(1, b'descriptor ')\n"
        "    subprocess.run(['echo', 'program'], check=True)\n"
        "    subprocess.run(['echo', 'handed on'], check=True, stdout=sys.stdout)\n"
        "    print('python')\n"
        "    out.write('an answer\\n')\n"
        "print('as before')\n"
    )
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "an answer\nas before\n"
    assert done.stderr == "descriptor program\nhanded on\npython\n"


def test_a_stdout_without_a_descriptor_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stdout", pipe)
    with own_stdout() as out:
        assert out is pipe


@pytest.mark.parametrize(
    "hidden",
    [
        *("\x1b[31m", "\x1b]8;;http://x\x07", "\x9b2J", "\x90q\x9c", "\x07", "\x08", "\x7f", "\u2028", "\u0085"),
        *("\u202a", "\u202e", "\u2066", "\u2069", "\u200e", "\u061c"),
        *("\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u034f", "\u115f", "\u3164", "\uffa0"),
        *("\ufe00", "\U000e0041", "\U000e0100", "\ud800"),
    ],
)
def test_what_a_terminal_obeys_turns_around_or_hides_is_made_visible(hidden: str) -> None:
    for write in (printable, escaped):
        shown = write(f"a{hidden}b")
        assert hidden[0] not in shown
        assert "\\" in shown
        assert shown.isprintable()


def test_everyday_signs_and_scripts_stay_as_they_are() -> None:
    for text in ("❤\ufe0f", "e\u0301", "漢字", "שלום", "مرحبا", "नमस्ते", "🙂"):
        assert printable(text) == escaped(text) == text


@given(st.text(st.sampled_from("ab\x1b[31m\r\n\t\u202e\u200b漢")), st.lists(st.integers(0, 20), max_size=5))
def test_wherever_a_text_is_cut_nothing_that_a_terminal_obeys_gets_past(text: str, cuts: list[int]) -> None:
    whole, pieces = io.StringIO(), io.StringIO()
    for out, places in ((whole, []), (pieces, sorted(cuts))):
        terminal = Terminal(out, io.StringIO())
        start = 0
        for place in [*places, len(text)]:
            terminal.piece(text[start:place])
            start = max(start, place)
        terminal.end_piece()
    assert pieces.getvalue() == whole.getvalue()
    assert whole.getvalue().replace("\n", "").replace("\t", "").isprintable()


def test_a_line_end_that_comes_in_two_pieces_is_one() -> None:
    out = io.StringIO()
    terminal = Terminal(out, io.StringIO())
    terminal.piece("a\r")
    terminal.piece("\nb\r")
    terminal.end_piece()
    terminal.end_piece()
    assert out.getvalue() == "a\nb\\r\n"


def test_a_remark_on_a_screen_begins_a_line_of_its_own() -> None:
    screen = Screen()
    terminal = Terminal(screen, screen)
    terminal.piece("half a line")
    terminal.remark("a remark")
    terminal.piece("more")
    assert screen.getvalue() == "half a line\na remark\nmore"


def test_a_remark_that_goes_elsewhere_leaves_the_answer_as_it_is() -> None:
    screen, err = Screen(), io.StringIO()
    terminal = Terminal(screen, err)
    terminal.piece("half a line")
    terminal.remark("a remark")
    assert (screen.getvalue(), err.getvalue()) == ("half a line", "a remark\n")


def test_words_beside_the_answer_are_coloured_and_still_escaped() -> None:
    err = Screen()
    Terminal(Screen(), err).paint_beside((("\x1b[2J", "31"), ("b", "")))
    assert err.getvalue() == "\x1b[31m\\x1b[2J\x1b[0mb\n"


def test_a_terminal_that_does_not_say_its_size_has_that_of_an_old_one() -> None:
    assert Terminal(Screen(), Screen()).screen() == (80, 24)
    assert Terminal(None, None).screen() == (80, 24)


def test_a_terminal_says_how_large_it_is_now() -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        terminal = Terminal(None, stream)
        assert terminal.screen() == (80, 24)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 40, 0, 0))
        assert terminal.screen() == (40, 30)
    os.close(ours)
