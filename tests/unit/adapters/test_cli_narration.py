"""What a watcher of a run is shown while it goes on."""

import io
import re
import signal

import pytest

from remit.adapters.cli.screen.call_lines import CallTeller
from remit.adapters.cli.screen.colours import Ink
from remit.adapters.cli.screen.narration import Narrator, tell
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.journal.arrivals import PauseRequested
from remit.core.journal.commands import CallTool
from remit.core.journal.turn import Turn
from remit.core.record import replace
from remit.core.run.contract import SystemRequest
from remit.core.run.recovery import Recovery
from remit.observe.watcher import Meter
from tests.unit.adapters.desk import Screen

REQUEST = SystemRequest(messages=())
TURN = Turn(seq=0, at_ms=0, previous=b"", kernel=1, arrival=PauseRequested("ann"), decisions=())


def test_pieces_are_shown_as_they_come_and_a_turn_ends_their_line() -> None:
    screen = Screen()
    narrator = Narrator(Terminal(screen, io.StringIO()), "r")
    narrator.said("r", "One ")
    narrator.said("r", "two.")
    assert screen.getvalue() == "One two."
    narrator.turned("r", REQUEST, TURN)
    assert (screen.getvalue(), narrator.shown) == ("One two.\n", "One two.")


def test_a_line_that_is_ended_already_is_not_ended_twice() -> None:
    screen = Screen()
    narrator = Narrator(Terminal(screen, io.StringIO()), "r")
    narrator.said("r", "One.\n")
    narrator.turned("r", REQUEST, TURN)
    assert screen.getvalue() == "One.\n"


def test_what_was_said_before_a_restart_is_told_to_be_void() -> None:
    screen, remarks = Screen(), io.StringIO()
    narrator = Narrator(Terminal(screen, remarks), "r")
    narrator.restarted("r")
    narrator.said("r", "Wrong")
    narrator.restarted("r")
    narrator.said("r", "Right.")
    narrator.turned("r", REQUEST, TURN)
    assert screen.getvalue() == "Wrong\nRight.\n"
    assert remarks.getvalue().count("void") == 1
    assert narrator.shown == "Right."


def test_children_are_not_heard_and_the_first_run_is_the_one_that_is() -> None:
    screen = Screen()
    narrator = Narrator(Terminal(screen, io.StringIO()))
    narrator.turned("r", REQUEST, TURN)
    narrator.turned("r.1.0", REQUEST, TURN)
    narrator.said("r.1.0", "unheard")
    narrator.restarted("r.1.0")
    assert (screen.getvalue(), narrator.run_id) == ("", "r")


def test_nothing_is_shown_when_nobody_watches() -> None:
    piped, programs = io.StringIO(), Screen()
    for terminal in (Terminal(piped, io.StringIO()), Terminal(programs, io.StringIO(), is_json=True)):
        narrator = Narrator(terminal, "r")
        narrator.said("r", "One ")
        narrator.turned("r", REQUEST, TURN)
        assert narrator.shown == ""
    assert (piped.getvalue(), programs.getvalue()) == ("", "")


def test_a_call_that_did_not_stop_is_told_beside_the_answer() -> None:
    screen, remarks = Screen(), io.StringIO()
    Narrator(Terminal(screen, remarks), "r").abandoned("r", "post")
    assert (screen.getvalue(), remarks.getvalue()) == (
        "",
        "a call of tool 'post' in run r did not stop and was abandoned\n",
    )


def test_a_user_who_resumes_learns_in_figures_what_was_done_again() -> None:
    remarks = io.StringIO()
    narrator = Narrator(Terminal(Screen(), remarks), "r")
    narrator.tell_recovery()
    narrator.recovered("other", Recovery(1, safe_repeated=9))
    narrator.recovered("r", Recovery(7, safe_repeated=2))
    narrator.tell_recovery()
    narrator.recovered("r", Recovery(8, keyed_repeated=1, lost=1))
    narrator.tell_recovery()
    assert remarks.getvalue().splitlines() == [
        "taken up after turn 7: mutating effects executed twice 0, safe calls repeated 2",
        (
            "taken up after turn 8: mutating effects executed twice 0, safe calls repeated 0, "
            "made again under the same key 1, unknown outcomes 1"
        ),
    ]


def test_calls_are_told_between_the_words_where_the_user_wants_to_know() -> None:
    screen = Screen()
    narrator = Narrator(Terminal(screen, screen), "r", teller=CallTeller())
    narrator.said("r", "I look.")
    call = CallTool("1.2", "c", "look", "v", "{}", b"", "k", 1, ())
    narrator.turned("r", REQUEST, replace(TURN, decisions=(call,)))
    narrator.turned("r.1.0", REQUEST, replace(TURN, decisions=(call,)))
    assert plain_of(screen) == "I look.\n  -> look {}\n"


def test_a_line_is_cut_to_the_width_and_coloured_only_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    line = (("  -> ", Ink.GOOD), ("x" * 100, Ink.NAME), ("unseen", Ink.FAINT))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured, plain, piped = Screen(), Screen(), io.StringIO()
    tell(Terminal(coloured, coloured), line)
    assert coloured.getvalue() == f"\x1b[32m  -> \x1b[0m\x1b[36m{'x' * 73}…\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    tell(Terminal(plain, plain), line)
    assert plain.getvalue() == f"  -> {'x' * 73}…\n"
    tell(Terminal(piped, piped), line)
    assert piped.getvalue() == f"  -> {'x' * 100}unseen\n"


def test_where_the_run_stands_is_passed_on_and_a_childs_is_not() -> None:
    narrator = Narrator(Terminal(Screen(), Screen()), "r")
    narrator.measured("r.1.0", Meter("elsewhere", (), ()))
    assert narrator.progress.lines()[0].startswith("  starting")
    narrator.measured("r", Meter("think", ("asking m",), ()))
    assert narrator.progress.lines()[0].startswith("  think: asking m")


def test_what_is_being_loaded_is_shown_until_the_run_moves_on() -> None:
    narrator = Narrator(Terminal(Screen(), Screen()), "r")
    narrator.loading("loading smollm2")
    assert narrator.progress.lines()[0].startswith("  loading smollm2")


def test_a_user_who_interrupts_at_a_screen_is_told_that_it_is_heard() -> None:
    screen, piped = Screen(), io.StringIO()
    for err in (screen, piped):
        narrator = Narrator(Terminal(Screen(), err), "r")
        narrator.interrupted(signal.SIGTERM)
        narrator.interrupted(signal.SIGINT)
    assert "Ctrl-C once more stops at once" in screen.getvalue()
    assert piped.getvalue() == ""
    Narrator(Terminal(Screen(), piped), "r").cut_off(signal.SIGINT)
    assert piped.getvalue().endswith("it goes on with: remit resume r\n")


def test_a_narrator_can_listen_to_one_run_after_the_other() -> None:
    narrator = Narrator(Terminal(Screen(), Screen()))
    narrator.turned("r", REQUEST, TURN)
    narrator.said("r", "One.")
    narrator.hear_next()
    narrator.turned("s", REQUEST, TURN)
    assert (narrator.run_id, narrator.shown) == ("s", "")


def plain_of(screen: Screen) -> str:
    """What stands on a screen, without its colours."""
    return re.sub(r"\x1b\[\d*m", "", screen.getvalue())
