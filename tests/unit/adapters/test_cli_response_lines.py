"""Exit codes."""

import io

import pytest

from remit.adapters.cli.screen import response_lines
from remit.adapters.cli.screen.response_lines import exit_code_of, give, time_text
from remit.adapters.cli.screen.terminal import Terminal
from remit.backend.memory.store import MemoryStore
from remit.core.failure import ENDINGS, Ending
from remit.core.run.contract import SystemResponse, WaitingFor
from remit.orchestrate.facade import System
from tests.unit.orchestrate.house import scripted, unaudited
from tests.unit.orchestrate.stage import play

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


async def told(system: System, run_id: str) -> str:
    """What is said of an open run."""
    out, err = io.StringIO(), io.StringIO()
    code = await give(Terminal(out, err), system, SystemResponse("", "", run_id))
    assert (code == 0) == ("goes on in" in err.getvalue() or "which another process guards" in err.getvalue())
    return err.getvalue()


def test_it_is_said_who_goes_on_with_an_open_run_and_what_to_type_where_nobody_does() -> None:
    async def story() -> None:
        store = MemoryStore()
        async with unaudited(store, store) as (theirs, ours):
            hung = await theirs.start("q", scripted({"text": "at last", "delay_ms": 20_000}))
            assert await told(ours, hung.id) == f"run {hung.id} goes on in another process\n"
            guard = theirs.guard()
            await guard.answer({"op": "start", "run": "talk", "prompt": "hi", "tools": []})
            guarded = guard.run_id_of("talk")
            assert "goes on when its agent, which another process guards" in await told(ours, guarded)
            await guard.close()
            left = await told(ours, guarded)
            assert "no `remit guard` has it open: it goes on when its agent starts the conversation there again" in left
            assert left.endswith(f"remit signal {guarded} cancel\n")
            await theirs._hub.close()
            assert (await told(ours, hung.id)).endswith(f"go on with: remit resume {hung.id}\n")

    play(story())


def test_of_an_ended_run_nothing_is_said_that_its_answer_does_not_tell() -> None:
    assert remarks_on(SystemResponse("", "", "r", terminal_code=Ending.SUCCESS)) == ""


def test_of_a_run_that_no_process_drives_it_is_said_how_to_go_on() -> None:
    assert remarks_on(SystemResponse("", "", "r"), "left").endswith("no process; go on with: remit resume r\n")
    assert exit_code_of(SystemResponse("", "", "r"), "left") == 3


def test_what_a_partial_success_left_open_is_said() -> None:
    response = SystemResponse("", "", "r", terminal_code=Ending.PARTIAL_SUCCESS, warnings=("step 3 is missing",))
    assert remarks_on(response) == "run r ended as PARTIAL_SUCCESS: step 3 is missing\n"
