"""A halt from another process: no call starts once `remit halt` has returned, and what it held back is done after the lift."""

import json
from pathlib import Path
from time import time
from typing import Any

import pytest

from remit.core.failure import EXIT_OK, EXIT_WAITING
from tests.e2e.command import Remit, remit_in, until

EXIT_STOPPED = 4
CALLS = 18

TOOLS = """
import asyncio, time
from pathlib import Path
from remit import tool

@tool(effect="{effect}", network=False, timeout_ms=60_000)
async def work(n: int) -> str:
    \"\"\"Note that it began, and take a while.\"\"\"
    with Path("{log}").open("a") as log:
        log.write(f"{{time.time()}} {{n}}\\n")
    await asyncio.sleep(0 if Path("{log}.go").exists() else {takes_s})
    return f"worked {{n}}"
"""


def tools(folder: Path, effect: str = "read", takes_s: float = 0.6) -> str:
    return TOOLS.format(log=folder / "began.log", effect=effect, takes_s=takes_s)


def began(folder: Path) -> list[tuple[float, int]]:
    log = folder / "began.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [(float(at), int(n)) for at, n in (line.split() for line in lines)]


def script(count: int = CALLS) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = [{"tool_calls": [{"name": "work", "arguments": {"n": n}}]} for n in range(count)]
    return [*calls, {"text": "Done."}]


@pytest.mark.parametrize("scope", [(), ("--tool", "work")])
def test_no_call_starts_once_a_halt_has_returned_and_the_run_goes_on_after_the_lift(
    scope: tuple[str, ...], tmp_path: Path
) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(tools(tmp_path), script())
        running = remit.start_run("--tenant", "acme", "--timeout", "50")
        until(lambda: len(began(tmp_path)) >= 3, "the run is under way")
        assert remit("halt", *scope, "--why", "smoke").exit_code == EXIT_OK
        halted_at = time()
        answer = running.answer()
        assert answer.exit_code == EXIT_WAITING, answer.err
        assert answer.values["halted"]["why"] == "smoke"
        assert all(at < halted_at for at, _ in began(tmp_path)), "a call began after the halt"
        run_id = answer.values["run_id"]
        refused = remit("resume", run_id, "--json")
        assert (refused.exit_code, refused.error_code) == (EXIT_STOPPED, "HALTED")
        _it_is_shown(remit, run_id)
        assert remit("halt", *scope, "--lift").exit_code == EXIT_OK
        (tmp_path / "began.log.go").touch()
        done = remit("resume", run_id, "--json")
        assert (done.exit_code, done.values["terminal_code"]) == (EXIT_OK, "SUCCESS")
        assert sorted({n for _, n in began(tmp_path)}) == list(range(CALLS))


def _it_is_shown(remit: Remit, run_id: str) -> None:
    assert "halted" in remit.here("show", run_id).out
    assert "HALTED" in remit.here("runs").out
    assert "was halted by" in remit.here("explain", run_id).out
    assert "smoke" in remit.here("halt", "--list").out
    assert "halt of" in remit.here("trace", run_id).out
    listed = json.loads(remit.here("halt", "--list", "--json").out)
    assert (len(listed["halts"]), listed["findings"]) == (1, [])


def test_while_everything_is_halted_a_new_run_is_refused_at_the_door(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(replies=[{"text": "Hi."}])
        assert remit.run_here().exit_code == EXIT_OK
        assert remit.here("halt", "--why", "smoke", "--by", "erin").exit_code == EXIT_OK
        refused = remit.run_here()
        assert (refused.exit_code, refused.error_code) == (EXIT_STOPPED, "HALTED")
        assert "halted by erin: smoke" in refused.values["error"]["message"]
        assert remit.here("halt", "--lift").exit_code == EXIT_OK
        assert remit.run_here().exit_code == EXIT_OK


def test_a_mutating_call_that_was_under_way_is_in_doubt_and_never_made_twice(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(tools(tmp_path, "write", 60), script(1))
        asked = remit.run_here("--timeout", "50")
        assert asked.exit_code == EXIT_WAITING, asked
        (packet,) = asked.values["waiting_for"]["packet_ids"]
        running = remit.start("approve", packet, "--json")
        until(lambda: began(tmp_path), "the call is under way")
        assert remit("halt", "--tool", "work", "--why", "smoke").exit_code == EXIT_OK
        assert running.answer().exit_code == EXIT_WAITING
        run_id = asked.values["run_id"]
        calls = json.loads(remit.here("show", run_id, "--json").out)["response"]["tool_calls_made"]
        assert [call["status"] for call in calls] == ["outcome_unknown"]
        assert remit.here("halt", "--tool", "work", "--lift").exit_code == EXIT_OK
        later = remit("resume", run_id, "--json")
        assert later.exit_code == EXIT_WAITING
        assert later.values["waiting_for"]["packet_ids"], "a person is asked what became of it"
        assert len(began(tmp_path)) == 1


@pytest.mark.parametrize(
    ("arguments", "exit_code", "said"),
    [
        ((), 2, "--why"),
        (("--why", "  "), 2, "--why"),
        (("--tool", "a", "--model", "b", "--why", "x"), 2, "one after the other"),
        (("--list", "--lift"), 2, "--list"),
        (("--lift",), 1, "HALT_UNKNOWN"),
        (("--lift", "--tool", "work"), 1, "HALT_UNKNOWN"),
        (("--run", "nobody", "--why", "x"), 1, "nobody"),
        (("--tool", "a\nb\x07", "--why", "x"), 1, "HALT_INVALID"),
    ],
)
def test_a_halt_that_makes_no_sense_is_refused(
    arguments: tuple[str, ...], exit_code: int, said: str, tmp_path: Path
) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(replies=[{"text": "Hi."}])
        assert remit.run_here().exit_code == EXIT_OK
        answer = remit.here("halt", *arguments)
        assert answer.exit_code == exit_code, answer.err
        assert said in answer.err
        assert remit.here("halt", "--list").out == ""


def test_there_is_nothing_to_halt_where_there_is_no_store(tmp_path: Path) -> None:
    answer = Remit(tmp_path).here("halt", "--why", "smoke")
    assert (answer.exit_code, answer.error_code) == (1, "STORE_NOT_FOUND")
    assert not (tmp_path / "store").exists()
