"""An isolated call runs in a process of its own, which leaves nothing behind and cannot be fooled by what is printed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from remit.core.failure import ErrorCode
from remit.core.record import replace
from remit.observe.checkup import has_numbers
from remit.tool.call.outcomes import Killed, Performed, ToolFault
from remit.tool.call.performing import Attempt, perform
from remit.tool.declare.decorator import Tool
from remit.tool.loader import load_tools
from remit.tool.process.confinement import LIMITS
from remit.tool.process.isolated_call import PRINTED_BYTES_MAX, Leash, call_isolated
from remit.tool.secrets.vault import Vault
from tests.unit.tool.watching import SAMPLE_FILE, called, content, fault, running_in, sample, until

# Real processes take their time; `make check` leaves them to `make test`.
pytestmark = pytest.mark.slow

PERFORM = """
import asyncio, sys
from remit.tool.loader import load_tools
from remit.tool.call.performing import Attempt, perform
tool = load_tools(sys.argv[1]).get("hangs")
asyncio.run(perform(Attempt(tool, {"folder": sys.argv[2]}, "k")))
"""


def test_a_tool_in_a_process_of_its_own_is_given_the_metadata_of_the_request() -> None:
    attempt = Attempt(sample("labelled"), {}, "the-key", metadata={"project": "remit"})
    assert asyncio.run(perform(attempt)).content == "project=remit"
    assert asyncio.run(called(sample("labelled"))).content == ""


def test_arguments_key_result_and_prints_cross_the_border() -> None:
    done = asyncio.run(called(sample("mirrored"), key="the-key", point={"x": 1, "y": 2}))
    assert done == Performed('{"x":2,"y":1}', printed="mirroring for the-key, cancelled: False\nto the other stream")


def test_the_check_of_an_isolated_tool_runs_with_it() -> None:
    done = asyncio.run(called(sample("mirrored"), point={"x": 1, "y": 0}))
    assert done.refuted == "x=0 of {'point': {'x': 1, 'y': 0}} is not positive"


def test_an_asynchronous_tool_can_be_isolated_and_stop_the_loop() -> None:
    assert asyncio.run(called(sample("halted"))) == Performed("enough", stop_loop=True)


def test_an_isolated_tool_has_no_input_of_its_own() -> None:
    assert content(sample("reads_input")) == ""


def test_what_an_isolated_tool_raises_is_its_fault() -> None:
    found = fault(sample("raises"))
    assert (found.error_code, found.error) == (ErrorCode.TOOL_EXECUTION_FAILED, "ValueError: no such thing")


@pytest.mark.parametrize("name", ["raises", "exits", "crashes", "forges"])
def test_whatever_ended_an_isolated_call_leaves_open_what_it_did(name: str) -> None:
    assert fault(sample(name)).is_unknown


def test_an_isolated_tool_may_say_that_nothing_happened() -> None:
    found = fault(sample("declines"))
    assert (found.error, found.is_unknown) == ("NotDone: the bank is closed", False)


@pytest.mark.parametrize("broken", ["pipe", "fork"])
def test_a_process_that_could_not_be_started_has_done_nothing(monkeypatch: pytest.MonkeyPatch, broken: str) -> None:
    def fails(*given: object, **options: object) -> None:
        raise OSError("too many open files")

    before = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(*((os, "pipe") if broken == "pipe" else (subprocess, "Popen")), fails)
    with pytest.raises(ToolFault) as found:
        call_isolated(sample("raises"), {}, "k", Leash())
    assert (found.value.error_code, found.value.is_unknown) == (ErrorCode.TOOL_UNAVAILABLE, False)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_job_that_cannot_be_written_down_has_done_nothing() -> None:
    with pytest.raises(ToolFault) as found:
        call_isolated(sample("raises"), {"what": object()}, "k", Leash())
    assert (found.value.error_code, found.value.is_unknown) == (ErrorCode.TOOL_UNAVAILABLE, False)


def test_a_process_that_ends_without_a_result_says_how_and_what_it_printed() -> None:
    found = fault(sample("exits"))
    assert found.error_code is ErrorCode.TOOL_EXECUTION_FAILED
    assert found.error == "its process ended with exit status 7 and told no result; it printed: last words"
    assert fault(sample("crashes")).error == "its process was ended by signal SIGSEGV and told no result"


def test_a_tool_that_prints_without_end_is_not_blocked_and_is_cut() -> None:
    done = asyncio.run(called(sample("chatters"), count=1_000))
    assert done.content == "1000"
    assert len(done.printed) <= PRINTED_BYTES_MAX


def test_what_a_tool_leaves_running_is_killed_and_not_waited_for(tmp_path: Path) -> None:
    assert content(sample("leaves_a_child"), folder=str(tmp_path))
    asyncio.run(until(lambda: not running_in(tmp_path)))


def test_a_process_that_does_not_end_after_its_result_is_ended() -> None:
    assert content(sample("lingers"), folder="") == "done"


def test_no_zombie_is_left_behind() -> None:
    pid = int(content(sample("own_pid")))
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_an_isolated_process_ends_with_its_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PERFORM, str(SAMPLE_FILE), str(tmp_path)])
    try:
        asyncio.run(until((tmp_path / "began").exists))
        assert len(running_in(tmp_path)) == 2
    finally:
        parent.kill()
        parent.wait()
    asyncio.run(until(lambda: not running_in(tmp_path)))


def test_a_tool_whose_file_has_changed_is_not_called(tmp_path: Path) -> None:
    file = tmp_path / "tools.py"
    file.write_text(SAMPLE_FILE.read_text())
    found = load_tools(str(file)).get("halted")
    assert found is not None
    file.write_text(SAMPLE_FILE.read_text() + "\n")
    wrong = fault(found)
    assert wrong.error_code is ErrorCode.TOOL_UNAVAILABLE
    assert wrong.error.startswith("TOOL_SOURCE_CHANGED")


def test_a_tool_made_by_a_plain_call_is_found_by_its_name_with_its_check(tmp_path: Path) -> None:
    file = tmp_path / "tools.py"
    file.write_text(
        "from remit.tool.declare.decorator import tool\n"
        "def plain(a: int) -> int:\n    return a\n"
        "made = tool(isolate=True, name='made', verify=lambda arguments, result: 'never right')(plain)\n"
    )
    made = load_tools(str(file)).get("made")
    assert made is not None
    for attribute in ("made", "plain"):
        made.source = replace(made.source, attribute=attribute)
        assert asyncio.run(called(made, a=1)) == Performed("1", "never right")


def test_a_function_that_was_declared_elsewhere_is_not_called_without_its_declaration() -> None:
    plain = sample("own_pid")
    definition = replace(plain.definition, version="another")
    tool = Tool(plain.function, definition, plain.signature, plain.source, isolate=True)
    found = fault(tool)
    assert found.error_code is ErrorCode.TOOL_UNAVAILABLE
    assert "is not the tool that was declared" in found.error


def test_a_process_that_cannot_be_started_makes_the_tool_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    found = fault(sample("halted"))
    assert found.error_code is ErrorCode.TOOL_UNAVAILABLE
    assert "FileNotFoundError" in found.error


def test_an_interpreter_that_ends_at_once_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    large = replace(sample("halted").source, name="x" * 1_000_000)
    tool = Tool(print, sample("halted").definition, sample("halted").signature, large, isolate=True)
    assert "ended with exit status 1" in fault(tool).error


def test_a_call_that_was_cut_before_it_began_is_killed_at_once() -> None:
    leash = Leash()
    leash.cut()
    assert leash.is_cut
    with pytest.raises(Killed):
        call_isolated(sample("hangs"), {"folder": "/"}, "key", leash)


def test_a_leash_that_was_let_go_kills_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "killpg", lambda *given: killed.append(given))
    leash = Leash()
    leash.untie()
    leash.tie(77)
    leash.untie()
    leash.cut()
    assert killed == [(77, signal.SIGKILL)]


def test_a_result_that_cannot_be_read_is_a_fault() -> None:
    assert fault(sample("forges")).error.startswith("JSONDecodeError")


def test_output_without_end_ends_the_call_whether_it_is_printed_or_returned() -> None:
    found = fault(sample("prints_without_end"))
    assert (found.error_code, found.error) == (
        ErrorCode.TOOL_EXECUTION_FAILED,
        "it sent more than output_bytes_max=100000 and was ended",
    )
    echoes = sample("echoes")
    echoes.limits = LIMITS._replace(output_bytes_max=100_000)
    assert "output_bytes_max=100000" in fault(echoes, text="x" * 300_000).error


def test_a_tool_has_as_many_processes_at_once_as_its_limit_and_no_more(tmp_path: Path) -> None:
    assert content(sample("multiplies"), count=6) == "6"
    found = fault(sample("multiplies"), count=40)
    assert "more than processes_max=8 processes at a time" in found.error


def test_a_tool_has_no_more_memory_than_its_limit() -> None:
    assert content(sample("takes_memory"), bytes_wanted=1 << 20) == str(1 << 20)
    assert fault(sample("takes_memory"), bytes_wanted=2 << 30).error.startswith("MemoryError")


def test_a_tool_sees_of_the_environment_what_programs_need_and_what_it_asks_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "DATABASE_URL", "ASKED_FOR", "LC_ALL"):
        monkeypatch.setenv(name, "C")
    seen = json.loads(content(sample("sees")))
    assert {"PATH", "ASKED_FOR", "LC_ALL"} <= seen.keys()
    assert not seen.keys() & {"OPENAI_API_KEY", "DATABASE_URL"}


def test_a_tool_that_signals_its_parent_ends_at_most_itself() -> None:
    if has_numbers():
        assert json.loads(content(sample("kills_its_parent"))) == [2, 1]
    else:
        # Without numbers of its own it has ended its warden, and with that this one call.
        assert "told no result" in fault(sample("kills_its_parent")).error


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        '{"content": 5, "refuted": "", "stop_loop": false}',
        '{"code": "NO_SUCH_CODE", "error": ""}',
        '{"content": "a", "content": "b", "refuted": "", "stop_loop": false}',
    ],
)
def test_what_a_process_tells_is_a_result_or_a_fault(text: str) -> None:
    found = fault(sample("forges_a_result"), text=text)
    assert found.error_code is ErrorCode.TOOL_EXECUTION_FAILED


TOKEN, OTHER = "token-0123456789-abcdef", "other-0123456789-abcdef"


def test_secrets_reach_a_process_through_its_pipe_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMIT_SECRET_TOKEN", TOKEN)

    def inherited() -> dict[str, str]:
        return {key: value for key, value in os.environ.items() if key != "REMIT_SECRET_TOKEN"}

    vault = Vault({"TOKEN": TOKEN, "OTHER": OTHER}, inherited=inherited)
    done = asyncio.run(perform(Attempt(sample("tells_its_secrets"), {}, "key", vault)))
    assert json.loads(done.content) == {"token": TOKEN, "wrapped": OTHER, "shown": "[secret]", "seen": [False, False]}
    assert done.printed == "printing [secret TOKEN]"


def test_what_a_process_printed_before_it_died_holds_less_than_half_of_a_secret() -> None:
    with pytest.raises(ToolFault) as found:
        asyncio.run(perform(Attempt(sample("dies_with_its_secret"), {}, "key", Vault({"TOKEN": TOKEN}))))
    assert len(TOKEN) * 2_000 > PRINTED_BYTES_MAX
    assert "[secret TOKEN]" in found.value.error
    half = len(TOKEN) // 2
    assert TOKEN[:half] not in found.value.error
    assert TOKEN[-half:] not in found.value.error
