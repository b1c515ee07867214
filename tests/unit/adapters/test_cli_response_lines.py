"""Exit codes."""

import io

import pytest

from remit.adapters.cli import response_lines
from remit.adapters.cli.response_lines import exit_code_of, time_text
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import ENDINGS, Ending
from remit.core.run.contract import SystemResponse, WaitingFor

REACHES = [Ending]


@pytest.mark.parametrize("ending", list(Ending))
def test_an_ended_run_exits_with_the_code_of_its_ending(ending: Ending) -> None:
    response = SystemResponse("", "", "r", terminal_code=ending)
    assert exit_code_of(response) == ENDINGS[ending].exit_code_when_ended


def test_a_run_that_waits_or_was_paused_exits_with_3_and_one_that_goes_on_elsewhere_with_0() -> None:
    assert exit_code_of(SystemResponse("", "", "r", waiting_for=WaitingFor(Ending.CONFIRM_REQUIRED))) == 3
    assert exit_code_of(SystemResponse("", "", "r"), "paused") == 3
    assert exit_code_of(SystemResponse("", "", "r"), "open") == 0


def test_a_moment_is_told_in_utc() -> None:
    assert time_text(0) == "1970-01-01 00:00:00 UTC"


def remarks_on(response: SystemResponse, status: str = "") -> str:
    err = io.StringIO()
    response_lines._remark_on(Terminal(io.StringIO(), err), response, status)
    return err.getvalue()


def test_a_run_that_another_process_drives_is_said_to_go_on_there() -> None:
    assert remarks_on(SystemResponse("", "", "r"), "open") == "run r goes on in another process\n"
    assert remarks_on(SystemResponse("", "", "r", terminal_code=Ending.SUCCESS)) == ""


def test_of_a_run_that_no_process_drives_it_is_said_how_to_go_on() -> None:
    assert remarks_on(SystemResponse("", "", "r"), "left").endswith("no process; go on with: remit resume r\n")
    assert exit_code_of(SystemResponse("", "", "r"), "left") == 3


def test_what_a_partial_success_left_open_is_said() -> None:
    response = SystemResponse("", "", "r", terminal_code=Ending.PARTIAL_SUCCESS, warnings=("step 3 is missing",))
    assert remarks_on(response) == "run r ended as PARTIAL_SUCCESS: step 3 is missing\n"
