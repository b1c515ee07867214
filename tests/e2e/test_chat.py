"""Talking at a real terminal: words as they come, an approval in the middle, Ctrl-C once and twice, and coming back."""

import json
import signal
import sys
from pathlib import Path

import pytest

from remit.core.record import JsonObject
from tests.e2e.command import until
from tests.planted import Planted
from tests.text_files import bytes_below
from tests.unit.adapters.pseudo import PseudoTerminal

pytestmark = pytest.mark.slow
REMIT = str(Path(sys.executable).with_name("remit"))
CTRL_C, CTRL_D = "\x03", "\x04"
PROMPT = "> "
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u200b"

TOOLS = '''
import time
from pathlib import Path

from remit.tool.declare.decorator import tool

HERE = Path(__file__).parent


@tool(effect="write")
def write(text: str) -> str:
    """Write a note."""
    with (HERE / "notes.txt").open("a") as notes:
        notes.write(text + "\\n")
    return text


@tool(effect="read", timeout_ms=60_000)
async def block() -> str:
    """Keep everybody waiting, the event loop included."""
    (HERE / "blocks").touch()
    time.sleep(60)
    return "done"
'''


def chat(folder: Path, *replies: JsonObject, session: str = "s1", columns: int = 100) -> PseudoTerminal:
    """A chat in a folder, with these replies."""
    (folder / "script.json").write_text(json.dumps({"replies": replies}))
    (folder / "tools.py").write_text(TOOLS)
    words = [REMIT, "chat", "--engine", "scripted:script.json", "--tools", "tools.py", "--session", session]
    environment = {"REMIT_HOME": str(folder / "home"), "NO_COLOR": "1"}
    return PseudoTerminal(words, environment=environment, folder=folder, columns=columns)


def calls(name: str, **arguments: object) -> JsonObject:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def test_a_person_talks_approves_and_comes_back(tmp_path: Path) -> None:
    script: tuple[JsonObject, ...] = (
        {"text": "Hello you.", "chunks": 3},
        calls("write", text="hello"),
        {"text": "Written."},
    )
    with chat(tmp_path, *script) as terminal:
        terminal.until(PROMPT)
        terminal.type("Hi\n")
        terminal.until("Hello you.")
        terminal.until(PROMPT)
        terminal.type("Write hello\n")
        terminal.until('write(text="hello")')
        terminal.until("l(ater): ")
        terminal.type("y\n")
        terminal.until("Written.")
        terminal.until(PROMPT)
        terminal.type(CTRL_D)
        terminal.until("go on with: remit chat --session s1")
        assert terminal.end() == 0
        assert terminal.words.count("Hello you.") == 1
    assert (tmp_path / "notes.txt").read_text() == "hello\n"
    with chat(tmp_path, *script) as terminal:
        terminal.until("Write hello")
        terminal.until("Written.")
        terminal.until(PROMPT)
        terminal.type("/quit\n")
        assert terminal.end() == 0
    assert (tmp_path / "home" / "chat_history").stat().st_mode & 0o777 == 0o600


def test_a_secret_that_is_typed_is_in_no_byte_that_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, passphrase = Planted(5).all()["github"][1], "correct-horse-battery-staple"
    monkeypatch.setenv("REMIT_SECRET_DB", passphrase)
    with chat(tmp_path, {"text": "Noted."}, {"text": "Noted as well."}) as terminal:
        terminal.until(PROMPT)
        terminal.type(f"use {token} please\n")
        terminal.until("Noted.")
        terminal.until(PROMPT)
        terminal.type(f"use {passphrase} please\n")
        terminal.until("Noted as well.")
        terminal.until(PROMPT)
        terminal.type("/quit\n")
        assert terminal.end() == 0
    written = bytes_below(tmp_path / "home")
    assert b"please" in written
    assert token.encode() not in written
    assert passphrase.encode() not in written


def test_what_is_typed_before_a_question_is_no_answer_to_it(tmp_path: Path) -> None:
    slow = {"delay_ms": 1500, **calls("write", text="hello")}
    with chat(tmp_path, slow, {"text": "Written."}) as terminal:
        terminal.until(PROMPT)
        terminal.type("Write hello\n")
        terminal.until("asking scripted")
        terminal.type("y\ny\n")
        terminal.until("l(ater): ")
        terminal.type("\n")
        terminal.until("waits; /resume asks again")
        terminal.until("\n" + PROMPT)
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    assert not (tmp_path / "notes.txt").exists()


def test_ctrl_c_cancels_an_answer_and_the_chat_goes_on(tmp_path: Path) -> None:
    with chat(tmp_path, {"when": "Wait", "text": "Late.", "delay_ms": 60_000}, {"text": "Here."}) as terminal:
        terminal.until(PROMPT)
        terminal.type("Wait\n")
        terminal.until("asking scripted")
        terminal.type(CTRL_C)
        terminal.until("cancelling")
        terminal.until("ended as USER_CANCEL")
        terminal.until(PROMPT)
        terminal.type("half a line")
        terminal.until("half a line")
        terminal.press(CTRL_C, "leaves")
        terminal.until(PROMPT)
        terminal.type("Hi\n")
        terminal.until("Here.")
        terminal.until(PROMPT)
        terminal.press(CTRL_C, "leaves")
        terminal.until(PROMPT)
        terminal.press(CTRL_C, "go on with: remit chat")
        assert terminal.end() == 0


def test_a_second_ctrl_c_stops_at_once_and_says_how_to_go_on(tmp_path: Path) -> None:
    with chat(tmp_path, calls("block"), {"text": "Done."}) as terminal:
        terminal.until(PROMPT)
        terminal.type("Block\n")
        until((tmp_path / "blocks").exists, "the tool keeps everybody waiting")
        # Two that come at once may be one to the operating system, so they come until they are heard.
        until(lambda: interrupted(terminal), "it ends at once")
        assert terminal.end() == -signal.SIGINT
    assert "was cut off; everything it had decided is kept, and it goes on with: remit resume " in terminal.words


def interrupted(terminal: PseudoTerminal) -> bool:
    """Press Ctrl-C unless the program has ended; gives whether it has."""
    if terminal.process.poll() is None:
        terminal.type(CTRL_C)
    return terminal.process.poll() is not None


@pytest.mark.parametrize("columns", [40, 100])
def test_nothing_hostile_reaches_a_terminal_however_narrow(tmp_path: Path, columns: int) -> None:
    wild = {"tool_calls": [{"name": f"wipe{HOSTILE}", "arguments": {HOSTILE: HOSTILE * 20}}]}
    said = {"text": f"{HOSTILE} said 漢字 " * 20, "chunks": 50}
    with chat(tmp_path, said, *[wild] * 3, {"text": "End."}, session="s", columns=columns) as terminal:
        terminal.until(PROMPT)
        terminal.type("Hi\n")
        terminal.until(" said 漢")
        terminal.until("  used ")
        terminal.until(PROMPT)
        terminal.type("Again\n")
        terminal.until("!! wipe\\x1b")
        terminal.until(PROMPT)
        terminal.type(CTRL_D)
        assert terminal.end() == 0
    for hostile in ("\x07", "\x1b]", "\x1b[2J", "\x9b", "\u202e", "\u200b"):
        assert hostile not in terminal.seen.replace("\x1b[?2004", "")
