"""Errands are performed from their bytes by a process at the other end of two pipes, here a thread, and it may be gone."""

import asyncio
import json
import os
import subprocess
import sys
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from remit.agents.plan_executor import PlanExecutor
from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.journal.arrivals import CodeFailed
from remit.core.journal.commands import CallCode, CallTool, Command
from remit.core.run.contract import SystemResponse
from remit.core.run.messages import system_message
from remit.core.work.plan import ExecutionPlan, Step
from remit.inference.specs import open_engine
from remit.orchestrate.executors.errands import Errand, encode_errand, packed
from remit.orchestrate.executors.reports import Report, ToolBroke, unequipped
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.testing import Elsewhere, KillAt
from remit.testing.elsewhere import Channel, _started
from remit.testing.performer import PipedPerformer, kits
from remit.tool.declare.decorator import tool
from remit.tool.registry import Registry
from tests.unit.orchestrate.house import calls, in_memory, request, scripted, systems
from tests.unit.orchestrate.stage import play
from tests.unit.orchestrate.test_errands import ERRANDS

LONG = "so it is, " * 3_000
SEEN: list[str] = []


@tool(effect="read", network=False)
async def look(at: str) -> str:
    """Look at something."""
    return LONG


@tool(effect="external", network=True, asks=["pay"], verify=lambda arguments, result: result == "paid")
def pay(text: str) -> str:
    """Pay."""
    SEEN.append(text)
    return "paid"


class Evidence:
    """Knows one thing."""

    async def build(self, query: str) -> list[Any]:
        """It."""
        return [system_message(f"known: {query}")]


def kit() -> Kit:
    """What both ends work with."""
    made = scripted(calls("look", at="it"), calls("pay", text=LONG), {"text": "done"}, tools=[look, pay])
    return Kit(made.engines, made.tools, context=Evidence())


class InAThread:
    """A process that is none: it has pipes, and can be killed."""

    def __init__(self, command: list[str]) -> None:
        *_, made_by, home = command
        (ours_in, theirs_out), (theirs_in, ours_out) = os.pipe(), os.pipe()
        self.stdout, self.stdin = os.fdopen(ours_in), os.fdopen(ours_out, "w")
        channel = Channel(os.fdopen(theirs_in), os.fdopen(theirs_out, "w"))
        self._thread = Thread(target=self._serve, args=(PipedPerformer(channel, kits(made_by, Path(home))), channel))
        self._thread.start()

    def _serve(self, performer: PipedPerformer, channel: Channel) -> None:
        with suppress(OSError):  # What it meets when the other end is gone.
            asyncio.run(performer.serve())
        channel._source.close()
        with suppress(OSError):
            channel._target.close()

    def kill(self) -> None:
        """Hang up."""
        self.stdin.close()
        self.stdout.close()

    def communicate(self) -> None:
        """Wait until it is over."""
        self._thread.join()


def away(system: Any, **said: Any) -> Elsewhere:
    """Errands in a thread."""
    return Elsewhere(system, start=InAThread, **said)  # type: ignore[arg-type]


async def paid(**said: Any) -> tuple[SystemResponse, Elsewhere]:
    """A run that looks and pays, every errand of it elsewhere."""
    SEEN.clear()
    async with in_memory() as system:
        with away(system, kit=f"{__name__}:kit", **said) as elsewhere:
            run = await system.start(request("please pay"), kit())
            assert (await run).waiting_for is not None
            return await run.approve(by="ann"), elsewhere


def test_every_kind_of_errand_is_performed_from_its_bytes() -> None:
    response, elsewhere = play(paid())
    assert response.terminal_code is Ending.SUCCESS
    assert (elsewhere.killed, SEEN) == ([], [LONG])
    assert set(elsewhere.performed) == {"RetrieveErrand", "ModelErrand", "ToolErrand"}


@pytest.mark.parametrize("moment", [KillAt.RECEIVED, KillAt.ACTING, KillAt.ACTED, KillAt.DONE])
def test_what_changes_nothing_is_performed_again_where_its_process_is_gone(moment: KillAt) -> None:
    response, elsewhere = play(paid(dies_at=moment, over="ModelErrand"))
    assert response.terminal_code is Ending.SUCCESS
    assert (elsewhere.killed, elsewhere.performed.count("ModelErrand")) == (["ModelErrand"], 4)


@pytest.mark.parametrize(
    ("moment", "times", "purpose"),
    [(KillAt.RECEIVED, 0, ""), (KillAt.CLAIMED, 0, "outcome"), (KillAt.ACTED, 1, "outcome")],
)
def test_what_changes_something_is_not_done_or_in_doubt(moment: KillAt, times: int, purpose: str) -> None:
    response, elsewhere = play(paid(dies_at=moment, over="pay"))
    asked = [] if response.waiting_for is None else [packet.purpose for packet in response.waiting_for.packets]
    assert (asked, len(SEEN), elsewhere.killed) == ([purpose] if purpose else [], times, ["ToolErrand"])


@tool(effect="external", network=True, asks=["pay"], isolate=True)
def pay_apart(text: str, ledger: str) -> str:
    """Pay in a process of its own, and write it into the ledger."""
    with Path(ledger).open("a") as opened:
        opened.write("paid\n")
    return "paid"


@tool(effect="read", network=False, isolate=True)
def look_apart(ledger: str) -> str:
    """Look at the ledger in a process of its own."""
    with Path(ledger).open("a") as opened:
        opened.write("looked\n")
    return "looked"


def apart() -> Kit:
    """Tools that run in processes of their own."""
    ledger = os.environ["LEDGER"]
    asked = (calls("look_apart", ledger=ledger), calls("pay_apart", text="Kim", ledger=ledger))
    made = scripted(*asked, {"text": "done"}, tools=[look_apart, pay_apart])
    return Kit(made.engines, made.tools)


@pytest.mark.parametrize(
    ("moment", "over", "done"),
    [
        (KillAt.ACTING, "pay_apart", ["looked"]),
        (KillAt.ACTED, "pay_apart", ["looked", "paid"]),
        (KillAt.ACTING, "look_apart", ["looked", "paid"]),
        (KillAt.ACTED, "look_apart", ["looked", "looked", "paid"]),
    ],
)
def test_a_caller_of_a_tool_in_a_process_of_its_own_is_killed_before_and_after_it_acts(
    moment: KillAt, over: str, done: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = tmp_path / "ledger"
    monkeypatch.setenv("LEDGER", str(ledger))

    async def story() -> SystemResponse:
        async with in_memory() as system:
            with away(system, kit=f"{__name__}:apart", dies_at=moment, over=over) as elsewhere:
                run = await system.start(request("please pay"), apart())
                await run
                response = await run.approve(by="ann")
            assert elsewhere.killed == ["ToolErrand"]
            return response

    response = play(story())
    asked = [] if response.waiting_for is None else [packet.purpose for packet in response.waiting_for.packets]
    assert asked == (["outcome"] if over == "pay_apart" else [])
    assert ledger.read_text().split() == done


@pytest.mark.parametrize(
    ("moment", "over"), [(KillAt.CLAIMED, "look"), (KillAt.ACTING, "pya"), (KillAt.CLAIMED, "ModelErrand")]
)
def test_a_death_that_was_ordered_and_never_came_is_an_error(moment: KillAt, over: str) -> None:
    with pytest.raises(RequestRejected) as never:
        play(paid(dies_at=moment, over=over))
    assert never.value.code == "PERFORMER_NOT_KILLED"
    assert f"dies_at='{moment}'" in never.value.message
    assert repr(over) in never.value.message
    assert "ModelErrand, ToolErrand" in never.value.message


def test_what_a_test_raises_itself_is_not_hidden_by_a_death_that_never_came() -> None:
    async def story() -> None:
        async with in_memory() as system:
            with away(system, dies_at=KillAt.DONE):
                raise KeyError("its own")

    with pytest.raises(KeyError):
        play(story())


def test_a_moment_that_there_is_not_is_refused() -> None:
    with pytest.raises(RequestRejected) as refused:
        Elsewhere(None, dies_at="acts")
    assert (refused.value.code, refused.value.details) == ("REQUEST_MALFORMED", {"field": "dies_at"})


def test_code_is_killed_when_it_begins_to_read(tmp_path: Path) -> None:
    response, elsewhere = play(paid(dies_at=KillAt.ACTING, over="RetrieveErrand"))
    assert (response.terminal_code, elsewhere.killed) == (Ending.SUCCESS, ["RetrieveErrand"])


def unmakeable() -> Kit:
    """A kit whose part is not where this process is."""
    raise RequestRejected(
        "ENGINE_NOT_REOPENABLE", "engine 'house' was given as an object, and nothing names how to open it"
    )


def test_a_performer_that_cannot_make_its_kit_ends_the_run_at_once_and_says_what_is_missing() -> None:
    async def story() -> None:
        async with in_memory() as system:
            with away(system, kit=f"{__name__}:unmakeable") as elsewhere:
                response = await system.run(request("please pay"), kit())
            assert response.error is not None
            assert (response.error.code, response.error.retryable) == (ErrorCode.CONFIG_PART_MISSING, False)
            assert "ENGINE_NOT_REOPENABLE: engine 'house' was given as an object" in response.error.message
            assert elsewhere.performed == ["RetrieveErrand", "ModelErrand"]  # once each

    play(story())


@pytest.mark.parametrize(
    ("command", "report"),
    [
        (
            CallTool("1.1", "c", "pay", "1", "{}", b"", "key", 1_000, ()),
            ToolBroke("1.1", ErrorCode.TOOL_UNAVAILABLE, "tool 'pay' was not called: why"),
        ),
        (CallCode("1.1", "rules:desk", "x", 1_000), CodeFailed("1.1", "why", ErrorCode.CONFIG_PART_MISSING)),
    ],
    ids=["tool", "code"],
)
def test_what_is_not_done_for_want_of_a_kit_is_reported_so(command: Command, report: Report) -> None:
    assert unequipped(command, "why") == report


def moments_of(errand: Errand) -> list[str]:
    """Where a performer of an errand says that it is, one after the other."""
    light, texts = packed(errand)
    message = {"errand": b64encode(encode_errand(light)), "texts": [b64encode(data) for _, data in texts]}
    moments: list[str] = []

    class Asked:
        def hear(self) -> Any:
            return message

        def say(self, said: dict[str, Any]) -> Any:
            moments.append(said.get("at", ""))
            return None if "report" in said else "{}"

    async def kit_for(_: Errand) -> Kit:
        return Kit({})

    asyncio.run(PipedPerformer(Asked(), kit_for).serve())  # type: ignore[arg-type]
    return [moment for moment in moments if moment]


@pytest.mark.parametrize("errand", ERRANDS[2:], ids=lambda errand: type(errand).__name__)
def test_the_performer_of_code_can_be_killed_before_and_after_whatever_the_errand(errand: Errand) -> None:
    assert moments_of(errand) == [KillAt.RECEIVED, KillAt.ACTING, KillAt.ACTED, KillAt.DONE]


def shout(step: Step) -> str:
    """Say it loudly."""
    return str(step.input).upper()


def shouting() -> Kit:
    """A kit that has its steps as handlers alone."""
    return Kit({}, handlers={"shout": shout})


def test_handlers_of_a_kit_do_steps_elsewhere() -> None:
    async def story() -> None:
        async with in_memory() as system:
            plan = ExecutionPlan((Step("loud", "shout", "hello"),))
            with away(system, kit=f"{__name__}:shouting", dies_at=KillAt.ACTING) as elsewhere:
                result = await PlanExecutor({"shout": shout}, system=system).execute(plan)
            assert (result.outputs, elsewhere.killed) == ({"loud": "HELLO"}, ["StepErrand"])

    play(story())


def test_a_kit_is_made_again_from_what_the_manifest_names(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"replies": [{"text": "hello"}]}))

    async def story() -> None:
        async with systems(EmbeddedStore.open(tmp_path / "store")) as (system,):
            made = engine_kit(open_engine("scripted:script.json", base=tmp_path), Registry([]))
            with away(system, home=tmp_path / "store") as elsewhere:
                assert (await system.run(request(), made)).content == "hello"
            assert elsewhere.performed == ["ModelErrand"]

    play(story())


def test_a_call_that_was_revoked_does_not_begin() -> None:
    async def story() -> None:
        SEEN.clear()
        async with in_memory() as system:
            with away(system, kit=f"{__name__}:kit"):
                run = await system.start(request("please pay"), kit())
                await run

                async def refuse(run_id: str, command_id: str) -> bool:
                    return False

                object.__setattr__(system._performers.resources, "claim", refuse)
                await run.approve(by="ann")
        assert SEEN == []

    play(story())


def test_the_program_of_a_performer_is_started_with_pipes() -> None:
    process = _started([sys.executable, "-c", "print(input())"])
    assert process.communicate("hello\n")[0] == "hello\n"
    assert isinstance(process, subprocess.Popen)
