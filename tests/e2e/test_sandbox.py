"""A sandboxed tool really tries: files, network, signals, memory, processes, output. What it gets is its own."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.core.failure import EXIT_OK, ErrorCode
from remit.core.record import JsonObject
from remit.tool.call.outcomes import ToolFault
from remit.tool.call.performing import Attempt, perform
from remit.tool.loader import load_tools
from remit.tool.process import sandbox
from tests.e2e.command import Remit, remit_in
from tests.e2e.house import calls, says

pytestmark = pytest.mark.slow

FILE = Path(__file__).with_name("sandboxed_tools.py")
SECRET = "nobody-else-may-read-this"


@pytest.fixture(autouse=True)
def bubblewrap() -> None:
    """Where CI runs these tests the sandbox is there; elsewhere they say what is missing."""
    if problem := sandbox.sandbox_problem():
        assert os.environ.get("CI") != "true", f"{problem}; {sandbox.WAY_OUT}"
        pytest.skip(problem)


@pytest.fixture
def listening() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield str(server.getsockname()[1])


def got(name: str, what: str = "", *arguments: str) -> str:
    """What one attempt of a tool came to: its result, or its fault."""
    return performed(name, {"what": what, "arguments": list(arguments)})


def performed(name: str, values: JsonObject) -> str:
    """What a tool came to."""
    tool = load_tools(str(FILE)).get(name)
    assert tool is not None
    try:
        return asyncio.run(perform(Attempt(tool, values, "key"))).content
    except ToolFault as fault:
        return f"{fault.error_code}: {fault.error}"


@pytest.mark.req("4.3")
def test_files_of_the_home_the_store_and_the_project_are_not_there(tmp_path: Path) -> None:
    kept = [tmp_path / "remit.db", Path.home() / f".remit-test-{os.getpid()}"]
    try:
        for file in kept:
            file.write_text(SECRET)
            assert SECRET not in got("boxed", "read", str(file))
        assert got("boxed", "list", str(tmp_path)) == "FileNotFoundError"
        assert got("boxed", "list", str(FILE.parent)) == FILE.name
        assert got("boxed", "read", "/etc/shadow") == "FileNotFoundError"
        assert SECRET not in got("boxed", "read", f"/proc/{os.getpid()}/environ")
    finally:
        kept[1].unlink()


@pytest.mark.req("4.3")
def test_nothing_can_be_written_but_a_private_folder() -> None:
    for place in ("/usr/mine", "/mine", str(FILE), "/etc/passwd", "/dev/mine"):
        assert got("boxed", "write", place) in ("OSError", "PermissionError", "FileNotFoundError"), place
    assert got("boxed", "write", "/tmp/mine") == "4"
    assert not Path("/tmp/mine").exists()


@pytest.mark.req("4.3")
def test_there_is_no_network_unless_the_tool_declares_it(listening: str) -> None:
    assert got("boxed", "connect", listening) in ("ConnectionRefusedError", "OSError")
    assert got("boxed_with_network", "connect", listening) == "connected"


def test_nothing_outside_can_be_signalled() -> None:
    assert got("boxed", "signal") == "signalled"
    assert got("boxed", "signal", str(os.getpid())) == "ProcessLookupError"
    assert set(got("boxed", "list", "/proc").split()) & {str(os.getpid()), str(os.getppid())} == set()


def test_keys_in_the_environment_stay_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("ASKED_FOR", "given")
    assert got("boxed", "variable", "OPENAI_API_KEY") == "unset"
    assert got("boxed", "variable", "ASKED_FOR") == "unset"
    assert got("boxed_with_network", "variable", "ASKED_FOR") == "given"
    assert got("boxed", "variable", "HOME") == "/tmp"


def test_memory_processes_and_output_are_bounded() -> None:
    assert performed("eats", {"bytes_wanted": 1 << 20}) == str(1 << 20)
    assert "MemoryError" in performed("eats", {"bytes_wanted": 2 << 30})
    assert "output_bytes_max=100000" in performed("floods", {})
    assert "more than processes_max=16 processes" in performed("multiplies", {})


def test_another_user_is_not_to_be_had() -> None:
    assert got("boxed", "become", "12345") in ("PermissionError", "OSError")


def test_without_bubblewrap_the_tool_is_unavailable_and_never_run_in_the_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sandbox.sandbox_problem.cache_clear()
    try:
        said = got("boxed", "list", "/")
        assert said.startswith(f"{ErrorCode.TOOL_UNAVAILABLE}: it demands a sandbox, and there is no bwrap")
        (tmp_path / "bwrap").write_text("#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n")
        (tmp_path / "bwrap").chmod(0o755)
        sandbox.sandbox_problem.cache_clear()
        said = got("boxed", "list", "/")
        assert said.startswith(f"{ErrorCode.TOOL_UNAVAILABLE}: ")
        assert "No permissions to create new namespace" in said
    finally:
        sandbox.sandbox_problem.cache_clear()


@pytest.fixture
def remit(tmp_path: Path) -> Iterator[Remit]:
    with remit_in(tmp_path) as remit:
        yield remit


def test_a_run_goes_on_whatever_a_sandboxed_tool_does_and_its_store_is_out_of_reach(remit: Remit) -> None:
    remit.write(FILE.read_text(), replies=[])
    attempts = [{"what": "signal", "arguments": []}, {"what": "list", "arguments": [str(remit.home)]}]
    remit.write(replies=[*(calls("boxed", attempt) for attempt in attempts), says("Held.")])
    answer = remit("run", "Try.", "--engine", f"scripted:{remit.folder}/script.json", "--tools", "tools.py", "--json")
    assert answer.exit_code == EXIT_OK, answer
    assert [call["result"] for call in answer.values["tool_calls_made"]] == ["signalled", "FileNotFoundError"]


def test_the_doctor_says_whether_there_is_a_sandbox(remit: Remit) -> None:
    checks = {check["name"]: check for check in remit.here("doctor", "--json").values["checks"]}
    assert checks["tools.sandbox"]["state"] == "ok"
    assert "no sandbox" in checks["tools.isolate"]["seen"]
