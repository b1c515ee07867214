"""Cancel reaches whatever a run has under way: models, tools of every kind, children. What does not listen is shown.

Nothing is left behind: no task of the event loop and no process. How long it takes is not asked, only that it is seconds.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_WAITING, Ending
from remit.core.journal.rulings import AddendumNoted
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus, SystemResponse
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.signals import Signal
from remit.inference.engine import StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.observe.views.sentence import sentence
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.tool.declare.decorator import Tool, tool
from remit.tool.delegate import delegate
from remit.tool.loader import load_tools
from remit.tool.registry import Registry
from tests.e2e.command import remit_in
from tests.e2e.command import until as wait_until
from tests.e2e.errand import LEASE
from tests.e2e.house import asking, calls, house, says, tell, until
from tests.unit.tool.watching import running_in

MINUTE_MS = 60_000
# A minute is what the slow ones take; a cancelled one is done long before.
SECONDS = 20

SLOW = {"delay_ms": MINUTE_MS, **says("Too late.")}


@pytest.fixture(autouse=True)
def _processes_can_be_counted() -> None:
    """Who is left running is read from /proc, which Linux has."""
    if not Path("/proc/self/task").exists():
        assert os.environ.get("CI") != "true", "no /proc: run the tests where processes can be counted"
        pytest.skip("no /proc: what a cancelled run leaves running cannot be counted on this system")


@dataclass
class Heard:
    """Who began, and who was told to stop."""

    began: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def engine(self, *replies: JsonObject) -> "Listening":
        """An engine that notes both."""
        return Listening(self, ScriptedEngine(replies))


class Listening:
    """A scripted engine that says when it is asked, and when it is cancelled."""

    def __init__(self, heard: Heard, script: ScriptedEngine) -> None:
        self._heard, self._script = heard, script

    def model_info(self) -> ModelInfo:
        """The script's."""
        return self._script.model_info()

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """The script's reply, unless the run is cancelled."""
        self._heard.began.append("model")
        try:
            return await self._script.infer(request, on_chunk)
        except asyncio.CancelledError:
            self._heard.stopped.append("model")
            raise


def waiting_tool(heard: Heard) -> Tool:
    @tool(effect="read", timeout_ms=MINUTE_MS)
    async def wait() -> str:
        """Wait for something that never comes."""
        heard.began.append("tool")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            heard.stopped.append("tool")
            raise
        return "never"

    return wait


def play(home: Path, scene: Callable[[System], Awaitable[None]], kit: Kit | None = None) -> None:
    """Play a scene, and see that it leaves nothing behind."""

    async def alone() -> None:
        async with asyncio.timeout(SECONDS), house(home, kit) as system:
            await scene(system)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "tasks are left"

    before = processes()
    asyncio.run(alone())
    assert processes() == before, "processes are left"


def processes() -> set[int]:
    """The processes that this one has started and that still run."""
    started: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        # A thread may have ended since it was listed.
        with suppress(FileNotFoundError, ProcessLookupError):
            started |= {int(pid) for pid in (task / "children").read_text().split()}
    return started


async def cancelled(system: System, run_id: str) -> SystemResponse:
    await tell(system, Signal.CANCEL, run_id, {"reason": "enough"})
    await system.settle()
    response = await system.result(run_id)
    assert response.terminal_code is Ending.USER_CANCEL, response
    assert not await system.archive.runs(open_only=True, with_children=True), "a run is left open"
    return response


def test_a_cancel_reaches_a_model_call(tmp_path: Path) -> None:
    heard = Heard()

    async def scene(system: System) -> None:
        run_id = await system.submit(asking(), engine_kit(heard.engine(SLOW)))
        await until(lambda: heard.began, "the model is asked")
        await cancelled(system, run_id)
        assert heard.stopped == ["model"]

    play(tmp_path / "store", scene)


def test_a_cancel_reaches_every_async_tool_of_an_answer(tmp_path: Path) -> None:
    heard = Heard()
    twice: JsonObject = {"tool_calls": [{"name": "wait", "arguments": {}}, {"name": "wait", "arguments": {}}]}

    async def scene(system: System) -> None:
        run_id = await system.submit(asking(), engine_kit(heard.engine(twice), Registry([waiting_tool(heard)])))
        await until(lambda: heard.began.count("tool") == 2, "both tools are called")
        response = await cancelled(system, run_id)
        assert heard.stopped == ["tool", "tool"]
        assert [call.status for call in response.tool_calls_made] == [CallStatus.OUTCOME_UNKNOWN] * 2

    play(tmp_path / "store", scene)


ISOLATED = """
import os, subprocess, time
from pathlib import Path
from remit import tool

@tool(effect="read", isolate=True, timeout_ms=60_000)
def dig(folder: str) -> str:
    \"\"\"Start a process of its own and never come back.\"\"\"
    os.chdir(folder)
    subprocess.Popen(["sleep", "60"])
    Path("began").touch()
    time.sleep(60)
"""


def test_a_cancel_ends_an_isolated_tool_and_every_process_it_started(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(ISOLATED)
    pit = tmp_path / "pit"
    pit.mkdir()
    engine = ScriptedEngine([calls("dig", {"folder": str(pit)}), says("Never.")])

    async def scene(system: System) -> None:
        run_id = await system.submit(asking(), engine_kit(engine, load_tools(str(tmp_path / "tools.py"))))
        await until((pit / "began").exists, "the tool has started")
        assert len(running_in(pit)) == 2
        await cancelled(system, run_id)
        await until(lambda: not running_in(pit), "the processes of the tool are gone")

    play(tmp_path / "store", scene)


def test_a_cancel_reaches_the_model_call_of_a_child(tmp_path: Path) -> None:
    heard = Heard()
    hand_over = delegate("hand_over", description="Have it done.", lease=dict(LEASE))
    engine = heard.engine({"when": "dig deep", **SLOW}, calls("hand_over", {"task": "dig deep"}), says("Never."))

    async def scene(system: System) -> None:
        run_id = await system.submit(asking(), engine_kit(engine, Registry([hand_over])))
        await until(lambda: len(heard.began) == 2, "the child's model is asked")
        await cancelled(system, run_id)
        assert heard.stopped == ["model"]
        (child,) = [entry for entry in await system.archive.runs(with_children=True) if entry.run_id != run_id]
        assert (child.listing.parent_id, child.ending) == (run_id, Ending.USER_CANCEL)

    play(tmp_path / "store", scene)


def deaf_tool(effect: str, began: Event, gate: Event) -> Tool:
    @tool(effect=effect, timeout_ms=MINUTE_MS)
    def post() -> str:
        """Send something, in a thread that hears nothing."""
        began.set()
        assert gate.wait(SECONDS)
        return "posted"

    return post


def test_a_thread_that_ignores_the_cancel_is_shown_and_heard_when_it_comes_back(tmp_path: Path) -> None:
    began, gate = Event(), Event()
    kit = engine_kit(ScriptedEngine([calls("post"), says("Posted.")]), Registry([deaf_tool("external", began, gate)]))

    async def scene(system: System) -> None:
        asked = await system.run(asking(), kit)
        assert asked.waiting_for is not None, asked
        await tell(system, Signal.APPROVE, asked.run_id, {"packet_id": asked.waiting_for.packet_ids[0]})
        turns = await abandon(system, asked.run_id, began)
        gate.set()
        await until_turns(system, asked.run_id, turns + 1)
        await until_only(1)
        told = await system.archive.told(asked.run_id)
        assert len(told.turns) == turns + 1
        assert [type(decision) for decision in told.turns[-1].decisions] == [AddendumNoted]
        assert told.explanation.addenda == 1
        # What came late changes nothing about the ending, and is told in place of the doubt.
        response = await system.result(asked.run_id)
        assert response.terminal_code is Ending.USER_CANCEL
        assert [(call.status, call.is_late) for call in response.tool_calls_made] == [(CallStatus.OBSERVED, True)]
        assert "post once [1 returned after the end]" in sentence(told.explanation)
        assert told.explanation.uncommitted == ("post",)

    play(tmp_path / "store", scene, kit)


def test_a_thread_that_only_reads_is_shown_and_what_it_read_late_is_nobodys_concern(tmp_path: Path) -> None:
    began, gate = Event(), Event()
    kit = engine_kit(ScriptedEngine([calls("post"), says("Read.")]), Registry([deaf_tool("read", began, gate)]))

    async def scene(system: System) -> None:
        run_id = await system.submit(asking(), kit)
        turns = await abandon(system, run_id, began)
        gate.set()
        await until_only(1)
        assert (await system.archive.find(run_id)).turns == turns

    play(tmp_path / "store", scene, kit)


async def abandon(system: System, run_id: str, began: Event) -> int:
    """Cancel a run while its thread is at work, and see how that is shown; gives the number of its turns."""
    await until(began.is_set, "the thread is at work")
    response = await cancelled(system, run_id)
    assert [call.status for call in response.tool_calls_made] == [CallStatus.OUTCOME_UNKNOWN]
    told = await system.archive.told(run_id)
    assert "post once [1 outcome unknown]" in sentence(told.explanation)
    assert told.explanation.addenda == 0
    assert [(call.run_id, call.tool) for call in system.abandoned] == [(run_id, "post")]
    # Besides the test one task is left: it waits for the thread.
    await until_only(2)
    return len(told.turns)


async def until_turns(system: System, run_id: str, count: int) -> None:
    """Wait for what comes late: between its thread and its turn there may be no task at all."""
    async with asyncio.timeout(SECONDS):
        while (await system.archive.find(run_id)).turns < count:  # noqa: ASYNC110  # a thread brings it about
            await asyncio.sleep(0.02)


async def until_only(count: int) -> None:
    await until(lambda: len(asyncio.all_tasks()) <= count, "whatever had to end has ended")
    assert len(asyncio.all_tasks()) == count


DEAF = """
import time
from pathlib import Path
from remit import tool

@tool(effect="external", timeout_ms=60_000)
def post(began: str) -> str:
    \"\"\"Send something, in a thread that hears nothing.\"\"\"
    Path(began).touch()
    time.sleep(60)
    return "posted"
"""


def test_a_process_ends_although_a_thread_of_it_ignores_the_cancel(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(DEAF, [calls("post", {"began": str(tmp_path / "began")}), says("Posted.")])
        assert remit.run_here().exit_code == EXIT_WAITING
        approving = remit.start("approve", "last", "--json")
        wait_until((tmp_path / "began").exists, "the tool is at work")
        assert remit("signal", "last", "cancel", "enough").exit_code == EXIT_OK
        ended = approving.answer()
        assert ended.exit_code == EXIT_FAILED, ended
        assert ended.values["terminal_code"] == "USER_CANCEL"
        assert [call["status"] for call in ended.values["tool_calls_made"]] == ["outcome_unknown"]
        assert "a call of tool 'post' in run" in ended.err
        assert "did not stop and was abandoned" in ended.err
        assert "post" in (shown := remit.here("show", "last").out)
        assert "outcome_unknown" in shown
        assert "1 outcome unknown" in remit.here("explain", "last").out


def test_an_interrupted_process_leaves_its_run_to_be_resumed(tmp_path: Path) -> None:
    with remit_in(tmp_path) as remit:
        remit.write(replies=[{"delay_ms": MINUTE_MS, **says("Late.")}])
        running = remit.start_run()
        run_id = remit.open_run()
        running.process.terminate()
        assert running.answer().exit_code == 128 + 15
        assert run_id in remit.here("runs", "--open").out
