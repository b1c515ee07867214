"""How far a run is, at a real terminal: shown while it goes on, gone at the end; and stopping it."""

import json
import signal
import sys
from pathlib import Path

import pytest

from remit.core.record import JsonObject
from tests.unit.adapters.emulator import Emulator
from tests.unit.adapters.pseudo import PseudoTerminal

pytestmark = pytest.mark.slow
REMIT = str(Path(sys.executable).with_name("remit"))
CTRL_C = "\x03"


def run(folder: Path, reply: JsonObject, *words: str, term: str = "xterm", columns: int = 80) -> PseudoTerminal:
    """A run at a terminal."""
    (folder / "script.json").write_text(json.dumps({"replies": [reply]}))
    words = words or ("run", "Do it", "--engine", "scripted:script.json")
    environment = {"REMIT_HOME": str(folder / "home"), "TERM": term}
    return PseudoTerminal([REMIT, *words], environment=environment, folder=folder, columns=columns)


def test_how_far_a_run_is_hangs_below_its_words_and_is_gone_at_the_end(tmp_path: Path) -> None:
    text = "One line of words that is longer than the terminal is wide, 漢字 included.\nAnd another."
    with run(tmp_path, {"text": text, "chunks": 40, "delay_ms": 2000}, columns=40) as terminal:
        terminal.until("think: asking scripted")
        terminal.until("time ")
        assert terminal.end() == 0
    screen, alone = Emulator(columns=40, rows=40), Emulator(columns=40, rows=40)
    screen.write(terminal.seen.replace("\r\n", "\n"))
    alone.write(text)
    assert screen.lines == alone.lines


def test_a_dumb_terminal_gets_the_words_alone(tmp_path: Path) -> None:
    with run(tmp_path, {"text": "One two.", "chunks": 2, "delay_ms": 1000}, term="dumb") as terminal:
        assert terminal.end() == 0
    assert terminal.seen == "One two.\r\n"


def test_ctrl_c_stops_a_run_that_can_be_resumed(tmp_path: Path) -> None:
    with run(tmp_path, {"text": "Late.", "delay_ms": 60_000}) as terminal:
        terminal.until("think: asking scripted")
        terminal.type(CTRL_C)
        terminal.until("stopping; ")
        terminal.until("stopped; go on with: remit resume ")
        assert terminal.end() == 128 + signal.SIGINT
    with run(tmp_path, {"text": "Late.", "delay_ms": 60_000}, "resume", "last") as terminal:
        terminal.until("think: asking scripted")
        terminal.type(CTRL_C)
        assert terminal.end() == 128 + signal.SIGINT
    assert "Traceback" not in terminal.seen
