"""What whoever watches a run is shown while it goes on."""

import io

from remit.adapters.cli.narrating import Narrator
from remit.adapters.cli.terminal import Terminal
from remit.core.arrivals import PauseRequested
from remit.core.contract import SystemRequest
from remit.core.events import Turn
from remit.core.recovery import Recovery
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


def test_whoever_resumes_learns_in_figures_what_was_done_again() -> None:
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
        "taken up after turn 8: mutating effects executed twice 0, safe calls repeated 0, "
        "made again under the same key 1, outcomes nobody knows 1",
    ]
