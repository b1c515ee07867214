"""Commands are performed within the process, every one of them ends in a report, and timers ring."""

import asyncio
import logging
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals, rulings
from remit.core.journal.codec import decode_turn
from remit.core.journal.commands import (
    AskHuman,
    CallCode,
    CallModel,
    CallTool,
    CancelCommand,
    Command,
    Retrieve,
    SetTimer,
    StartChild,
    TimerPurpose,
)
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolResult
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints, SystemRequest
from remit.core.run.inference import ModelResult
from remit.core.run.manifest import Manifest
from remit.core.run.messages import Message, user_message
from remit.core.work.goal import Criterion, Goal
from remit.orchestrate.executors.reports import ChildSaid, ContextSaid, ModelSaid, PersonApproved, Report, ToolSaid
from remit.orchestrate.loop.claims import PerformerLost
from remit.orchestrate.loop.in_process import Executor
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.offspring import child_manifest, spent_by
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.testing.runs import SimulatedRun
from remit.testing.scripts import Breaks, in_turn, proposes, proposes_all, says
from remit.tool.secrets.vault import Vault
from tests.unit.kernel.builders import BEGINS_AT_MS, manifest_of
from tests.unit.orchestrate.stage import Stage, WatchedJournal, hang, loop_clock, ok, play

NO_RETRIES = Budget(retries=0)
# Soon enough for a test to wait for it, late enough for the run to begin.
SOON_MS = 400
HOUR_MS = 3_600_000


async def driven(stage: Stage, manifest: Manifest | None = None) -> SimulatedRun:
    """A run from its first turn to where nothing moves it any more."""
    await stage.runner.drive(await stage.runner.start(manifest or manifest_of()))
    return await stage.run()


def soon(*, timeout_ms: int = SOON_MS) -> Manifest:
    """A run whose time is up soon."""
    return manifest_of(request=SystemRequest((user_message("please"),), hints=ExecutionHints(timeout_ms=timeout_ms)))


class Interrupted:
    """An executor that hangs, and remembers that it was told to stop."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.was_cancelled = False

    async def __call__(self, live: Live, command: Command) -> Report:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        raise AssertionError


async def raise_secret(live: Live, command: Command) -> Report:
    raise ValueError("password=hunter2")


class TestPerforming:
    def test_one_command_is_awaited_in_the_task_that_drives_the_run(self) -> None:
        async def scene() -> None:
            async def model(live: Live, command: CallModel) -> Report:
                tasks.append(asyncio.current_task())
                return ModelSaid(command.id, says("done"))

            tasks: list[object] = []
            await driven(Stage(executors={CallModel: model}))
            assert tasks == [asyncio.current_task()]

        play(scene())

    def test_no_report_that_is_handed_on_holds_a_secret(self) -> None:
        async def scene() -> None:
            stage = Stage(
                in_turn(proposes_all(("look", {"n": 1}), ("look", {"n": 2})), says("it is token-0123456789")),
                tools={"look": ok},
            )
            stage.dispatch.vault = Vault({"TOKEN": "token-0123456789"})
            run = await driven(stage)
            assert run.last(arrivals.ModelAnswered).text == "it is [exposed secret TOKEN]"

        play(scene())

    def test_several_commands_are_performed_beside_each_other(self) -> None:
        async def scene() -> None:
            async def tool(live: Live, command: CallTool) -> Report:
                begun.append(command.id)
                if len(begun) == 3:
                    all_begun.set()
                await all_begun.wait()
                return ToolSaid(command.id, ToolResult(command.call_id, command.tool, '{"ok": true}'))

            begun: list[str] = []
            all_begun = asyncio.Event()
            three = proposes_all(*(("look", {"n": number}) for number in range(3)))
            run = await driven(Stage(in_turn(three, says("done")), executors={CallTool: tool}))
            assert run.ending is Ending.SUCCESS

        play(scene())

    def test_whichever_is_first_is_reported_first(self) -> None:
        async def scene() -> None:
            async def tool(live: Live, command: CallTool) -> Report:
                if command.call_id == "call1":
                    await second_is_done.wait()
                else:
                    second_is_done.set()
                return ToolSaid(command.id, ToolResult(command.call_id, command.tool, '{"ok": true}'))

            second_is_done = asyncio.Event()
            two = proposes_all(("look", {"n": 1}), ("look", {"n": 2}))
            run = await driven(Stage(in_turn(two, says("done")), executors={CallTool: tool}))
            ordered = run.all(CallTool)
            assert [returned.command_id for returned in run.all(arrivals.ToolReturned)] == [
                ordered[1].id,
                ordered[0].id,
            ]

        play(scene())

    def test_context_code_and_children_are_performed_like_anything_else(self) -> None:
        async def scene() -> None:
            async def retrieve(live: Live, command: Retrieve) -> Report:
                return ContextSaid(command.id, "evidence")

            async def code(live: Live, command: CallCode) -> Report:
                return arrivals.CodeReturned(command.id)

            executors: dict[type[Command], Executor] = {Retrieve: retrieve, CallCode: code}
            goal = Goal("be polite", (Criterion("polite", validator="polite"),))
            run = await driven(Stage(executors=executors), manifest_of(goal=goal, retrieves_context=True))
            assert run.ending is Ending.SUCCESS
            assert run.state.talk.ephemeral == "evidence"

        play(scene())

    def test_a_run_that_only_waits_for_people_has_nothing_to_receive(self) -> None:
        async def scene() -> None:
            stage = Stage(in_turn(proposes("write", {"n": 1})))
            run = await driven(stage)
            assert run.ending is None
            assert run.state.people.asking == 1
            assert stage.performed_of(AskHuman) == []

        play(scene())

    def test_a_run_goes_on_when_a_person_has_answered(self) -> None:
        async def scene() -> None:
            stage = Stage(in_turn(proposes("write", {"n": 1}), says("written")), tools={"write": ok})
            live = await stage.runner.start(manifest_of())
            await stage.runner.drive(live)
            (question,) = (command for command in live.state.commands.open.values() if isinstance(command, AskHuman))
            await stage.runner.rule_on(live, PersonApproved(question.id, "ada"))
            await stage.runner.drive(live)
            assert live.state.end.ending is Ending.SUCCESS

        play(scene())

    @pytest.mark.parametrize("count", [1, 2])
    def test_what_is_under_way_is_not_begun_again_however_often_it_is_sent(self, count: int) -> None:
        async def scene() -> None:
            async def tool(live: Live, command: CallTool) -> Report:
                begun.append(command.id)
                if len(begun) == count:
                    for sent in [sent for sent in live.state.commands.open.values() if isinstance(sent, CallTool)]:
                        stage.dispatch.send(live, sent)
                    all_begun.set()
                await all_begun.wait()
                return ToolSaid(command.id, ToolResult(command.call_id, command.tool, '{"ok": true}'))

            begun: list[str] = []
            all_begun = asyncio.Event()
            proposed = proposes_all(*(("look", {"n": number}) for number in range(count)))
            stage = Stage(in_turn(proposed, says("done")), executors={CallTool: tool})
            assert (await driven(stage)).ending is Ending.SUCCESS
            assert len(begun) == count

        play(scene())

    def test_what_was_sent_twice_before_it_began_begins_once(self) -> None:
        async def scene() -> None:
            stage = Stage()
            live = await stage.runner.start(manifest_of())
            for command in list(live.state.commands.open.values()):
                stage.dispatch.send(live, command)
            await stage.runner.drive(live)
            assert len(stage.performed_of(CallModel)) == 1

        play(scene())

    def test_nothing_is_kept_of_runs_that_are_over(self) -> None:
        async def scene() -> None:
            stage = Stage()
            for number in range(20):
                live = await stage.runner.start(replace(manifest_of(), run_id=f"run{number}"))
                await stage.runner.drive(live)
            assert stage.dispatch._work == {}

        play(scene())

    def test_forgetting_a_run_nobody_knows_is_no_error(self) -> None:
        async def scene() -> None:
            stage = Stage()
            live = await stage.runner.start(manifest_of())
            stage.dispatch.forget(live)
            stage.dispatch.forget(live)

        play(scene())


class TestABrokenExecutor:
    @pytest.mark.req("4.13")
    def test_one_that_raises_becomes_a_failure_with_a_code(self) -> None:
        run = play(driven(Stage(executors={CallModel: raise_secret}), manifest_of(budget=NO_RETRIES)))
        assert run.ending is Ending.UNAVAILABLE_DEP
        assert run.last(arrivals.ModelFailed).code is ErrorCode.INFERENCE_ENGINE_ERROR

    def test_what_it_raised_is_for_the_operator_and_not_for_the_journal(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.ERROR):
            run = play(driven(Stage(executors={CallModel: raise_secret}), manifest_of(budget=NO_RETRIES)))
        assert "ValueError" in run.last(arrivals.ModelFailed).message
        assert not any(b"hunter2" in data for data in run.journal)
        assert "hunter2" in caplog.text

    def test_one_of_several_that_raises_leaves_the_others_alone(self) -> None:
        async def scene() -> None:
            async def tool(live: Live, command: CallTool) -> Report:
                if command.call_id == "call1":
                    raise OSError("disk full")
                return ToolSaid(command.id, ToolResult(command.call_id, command.tool, '{"ok": true}'))

            two = proposes_all(("look", {"n": 1}), ("look", {"n": 2}))
            run = await driven(Stage(in_turn(two, says("done")), executors={CallTool: tool}))
            assert run.ending is Ending.SUCCESS
            assert run.last(arrivals.ToolFailed).code is ErrorCode.TOOL_EXECUTION_FAILED

        play(scene())

    @pytest.mark.parametrize("error", [ValueError, PerformerLost])
    @pytest.mark.parametrize("is_claimed", [False, True])
    def test_one_that_breaks_leaves_in_doubt_what_it_had_claimed(
        self, error: type[Exception], is_claimed: bool
    ) -> None:
        async def scene() -> None:
            async def tool(live: Live, command: CallTool) -> Report:
                assert not is_claimed or await stage.dispatch.claim(live.run_id, command.id)
                raise error

            stage = Stage(in_turn(proposes("write", {"n": 1}), says("done")), executors={CallTool: tool})
            live = await stage.runner.start(manifest_of())
            await stage.runner.drive(live)
            (question,) = (command for command in live.state.commands.open.values() if isinstance(command, AskHuman))
            await stage.runner.rule_on(live, PersonApproved(question.id, "ada"))
            await stage.runner.drive(live)
            assert len(live.state.commands.doubted) == is_claimed
            (call,) = live.state.calls.made.values()
            assert (call.code == ErrorCode.TOOL_UNAVAILABLE) is not is_claimed

        play(scene())

    @pytest.mark.parametrize("calls", [1, 2])
    def test_one_that_speaks_of_another_command_broke_its_own(self, calls: int) -> None:
        async def scene() -> None:
            async def tool(live: Live, command: CallTool) -> Report:
                return ToolSaid("0.1", ToolResult(command.call_id, command.tool, '{"ok": true}'))

            proposed = proposes_all(*(("look", {"n": number}) for number in range(calls)))
            run = await driven(Stage(in_turn(proposed, says("done")), executors={CallTool: tool}))
            assert run.ending is Ending.SUCCESS
            assert len(run.all(arrivals.ToolFailed)) == calls

        play(scene())

    @pytest.mark.parametrize("calls", [1, 2])
    def test_one_that_is_cancelled_from_within_broke_its_command(self, calls: int) -> None:
        async def scene() -> None:
            async def tool(live: Live, command: CallTool) -> Report:
                inner = asyncio.create_task(asyncio.Event().wait())
                inner.cancel()
                await inner
                raise AssertionError

            proposed = proposes_all(*(("look", {"n": number}) for number in range(calls)))
            run = await driven(Stage(in_turn(proposed, says("done")), executors={CallTool: tool}))
            assert "cancelled from within" in run.last(arrivals.ToolFailed).error

        play(scene())

    def test_a_model_that_nobody_performs_ends_the_run(self) -> None:
        async def scene() -> None:
            stage = Stage()
            stage.dispatch._executors = {}
            run = await driven(stage)
            assert run.ending is Ending.UNAVAILABLE_DEP
            assert run.state.end.error is ErrorCode.CONFIG_NO_ENGINE

        play(scene())

    def test_tools_that_nobody_performs_are_unavailable(self) -> None:
        async def scene() -> None:
            two = proposes_all(("look", {"n": 1}), ("look", {"n": 2}))
            stage = Stage(in_turn(two, says("sorry")))
            stage.dispatch._executors = {CallModel: stage._call_model}
            run = await driven(stage)
            assert [failed.code for failed in run.all(arrivals.ToolFailed)] == [ErrorCode.TOOL_UNAVAILABLE] * 2

        play(scene())


class TestCancelling:
    @pytest.mark.parametrize("calls", [1, 2])
    def test_a_cancel_from_elsewhere_stops_whatever_is_under_way(self, calls: int) -> None:
        async def scene() -> None:
            interrupted = Interrupted()
            proposed = proposes_all(*(("look", {"n": number}) for number in range(calls)))
            stage = Stage(in_turn(proposed), executors={CallTool: interrupted})
            live = await stage.runner.start(manifest_of())
            driving = asyncio.create_task(stage.runner.drive(live))
            await interrupted.begun.wait()
            elsewhere = await stage.runner.load("run")
            await stage.runner.rule_on(elsewhere, arrivals.CancelRequested("ada"))
            await driving
            assert live.state.end.ending is Ending.USER_CANCEL
            assert interrupted.was_cancelled

        play(scene())

    def test_a_command_that_was_not_begun_is_never_begun(self) -> None:
        async def scene() -> None:
            stage = Stage()
            live = await stage.runner.start(manifest_of())
            await stage.runner.rule_on(live, arrivals.CancelRequested("ada"))
            await stage.runner.drive(live)
            assert stage.performed == []

        play(scene())

    def test_a_drive_that_is_cancelled_cancels_its_tasks(self) -> None:
        async def scene() -> None:
            interrupted = Interrupted()
            two = proposes_all(("look", {"n": 1}), ("look", {"n": 2}))
            stage = Stage(in_turn(two), executors={CallTool: interrupted})
            driving = asyncio.create_task(driven(stage))
            await interrupted.begun.wait()
            driving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await driving
            await asyncio.sleep(0)
            assert interrupted.was_cancelled
            assert stage.dispatch._work == {}

        play(scene())

    def test_a_task_that_wants_to_stop_driving_is_heard_even_beside_a_cancel_of_the_run(self) -> None:
        async def scene() -> None:
            interrupted = Interrupted()
            stage = Stage(executors={CallModel: interrupted})
            live = await stage.runner.start(manifest_of())
            driving = asyncio.create_task(stage.runner.drive(live))
            await interrupted.begun.wait()
            await stage.runner.rule_on(await stage.runner.load("run"), arrivals.CancelRequested("ada"))
            driving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await driving

        play(scene())

    def test_a_command_that_is_cancelled_twice_is_cut_off_once(self) -> None:
        async def scene() -> None:
            interrupted = Interrupted()
            stage = Stage(executors={CallModel: interrupted})
            live = await stage.runner.start(manifest_of())
            driving = asyncio.create_task(stage.runner.drive(live))
            await interrupted.begun.wait()
            elsewhere = await stage.runner.load("run")
            turn = await stage.runner.rule_on(elsewhere, arrivals.CancelRequested("ada"))
            (cancel,) = (decision for decision in turn.decisions if isinstance(decision, CancelCommand))
            stage.dispatch.send(elsewhere, cancel)
            await driving
            assert live.state.end.ending is Ending.USER_CANCEL

        play(scene())

    def test_a_command_that_is_cancelled_as_it_begins_is_reported(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def scene() -> None:
            two = proposes_all(("look", {"n": 1}), ("look", {"n": 2}))
            stage = Stage(in_turn(two, says("done")), executors={CallTool: Interrupted()})
            begin = stage.dispatch._start

            def begin_and_cancel(work: Any, live: Live, command: Command) -> None:
                begin(work, live, command)
                stage.dispatch._cancel(work, command.id)

            monkeypatch.setattr(stage.dispatch, "_start", begin_and_cancel)
            run = await asyncio.wait_for(driven(stage, manifest_of(budget=NO_RETRIES)), 30)
            assert [turn.error for turn in run.all(arrivals.ToolFailed)] == ["it was cancelled"] * 2

        play(scene())

    def test_what_is_sent_while_the_driver_waits_begins_at_once(self) -> None:
        async def scene() -> None:
            async def tool(live: Live, command: CallTool) -> Report:
                if command.tool == "look":
                    looking.set()
                    await written.wait()
                else:
                    written.set()
                return ToolSaid(command.id, ToolResult(command.call_id, command.tool, '{"ok": true}'))

            looking, written = asyncio.Event(), asyncio.Event()
            both = proposes_all(("look", {"n": 1}), ("write", {"n": 2}))
            stage = Stage(in_turn(both, says("done")), executors={CallTool: tool})
            live = await stage.runner.start(manifest_of())
            driving = asyncio.create_task(stage.runner.drive(live))
            await looking.wait()
            elsewhere = await stage.runner.load("run")
            (question,) = (
                command for command in elsewhere.state.commands.open.values() if isinstance(command, AskHuman)
            )
            await stage.runner.rule_on(elsewhere, PersonApproved(question.id, "ada"))
            await driving
            assert live.state.end.ending is Ending.SUCCESS

        play(scene())


class TestTimers:
    @pytest.mark.parametrize("early_ms", [5, 0, -5_000])
    def test_a_call_is_tried_again_when_its_pause_is_over(self, early_ms: int) -> None:
        async def scene() -> None:
            async def let_time_pass(run_id: str, after: int) -> None:
                for data in await journal.kept.read(run_id):
                    for decision in decode_turn(data).decisions:
                        if isinstance(decision, SetTimer) and decision.purpose is TimerPurpose.RETRY:
                            stage.clock.at_ms = decision.due_at_ms - early_ms

            def breaks_once(messages: Sequence[Message], chance: Random) -> ModelResult | Breaks:
                return Breaks() if len(stage.performed) == 1 else says("done")

            journal = WatchedJournal(beside_append=let_time_pass)
            stage = Stage(breaks_once, journal=journal)
            run = await driven(stage)
            assert run.ending is Ending.SUCCESS
            assert [call.attempt for call in stage.performed_of(CallModel)] == [1, 2]

        play(scene())

    @pytest.mark.req("0.10")
    def test_a_deadline_cuts_off_the_call_that_is_awaited(self) -> None:
        async def scene() -> None:
            interrupted = Interrupted()
            stage = Stage(executors={CallModel: interrupted}, clock=loop_clock())
            run = await driven(stage, soon())
            assert run.ending is Ending.TIMEOUT
            assert interrupted.was_cancelled

        play(scene())

    def test_a_deadline_cuts_off_the_present_driver_of_the_run(self) -> None:
        async def scene() -> None:
            async def look_then_hang(live: Live, command: CallModel) -> Report:
                if command.messages_count == 1:
                    return ModelSaid(command.id, proposes("look", {"n": 1}))
                return await interrupted(live, command)

            interrupted = Interrupted()
            stage = Stage(executors={CallModel: look_then_hang}, clock=loop_clock())
            live = await stage.runner.start(soon())
            report = await asyncio.create_task(stage.dispatch.receive(live))
            assert report is not None
            await stage.runner.advance(live, report)
            await stage.runner.drive(live)
            assert (live.state.end.ending, interrupted.was_cancelled) == (Ending.TIMEOUT, True)

        play(scene())

    def test_a_deadline_stops_calls_beside_each_other(self) -> None:
        async def scene() -> None:
            interrupted = Interrupted()
            two = proposes_all(("look", {"n": 1}), ("look", {"n": 2}))
            run = await driven(Stage(in_turn(two), executors={CallTool: interrupted}, clock=loop_clock()), soon())
            await asyncio.sleep(0)
            assert run.ending is Ending.TIMEOUT
            assert interrupted.was_cancelled

        play(scene())

    def test_a_deadline_is_kept_although_an_executor_will_not_stop(self) -> None:
        async def scene() -> None:
            async def stubborn(live: Live, command: CallModel) -> Report:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    return ModelSaid(command.id, says("one more thing"))
                raise AssertionError

            run = await driven(Stage(executors={CallModel: stubborn}, clock=loop_clock()), soon())
            assert run.ending is Ending.TIMEOUT
            assert run.state.result.answer == ""

        play(scene())

    @pytest.mark.slow
    def test_a_deadline_that_stands_still_cuts_nothing_off(self) -> None:
        async def scene() -> None:
            async def slow(live: Live, command: CallTool) -> Report:
                await asyncio.sleep(2 * SOON_MS / 1000)
                return ToolSaid(command.id, ToolResult(command.call_id, command.tool, '{"ok": true}'))

            both = proposes_all(("write", {"n": 1}), ("look", {"n": 2}))
            run = await driven(Stage(in_turn(both), executors={CallTool: slow}, clock=loop_clock()), soon())
            assert run.ending is None
            assert len(run.all(arrivals.TimerFired)) == len(run.all(arrivals.ToolReturned)) == 1

        play(scene())

    def test_silence_is_taken_for_a_no_when_the_run_is_next_driven(self) -> None:
        async def scene() -> None:
            stage = Stage(in_turn(proposes("write", {"n": 1}), says("nobody answered")))
            live = await stage.runner.start(manifest_of())
            await stage.runner.drive(live)
            (question,) = (command for command in live.state.commands.open.values() if isinstance(command, AskHuman))
            stage.clock.at_ms = question.expires_at_ms
            await stage.runner.drive(live)
            assert (await stage.run()).last(rulings.QuestionSettled).answer is rulings.Answer.EXPIRED
            assert live.state.end.ending is not None

        play(scene())

    def test_a_run_that_nobody_moves_any_more_ends_at_its_deadline(self) -> None:
        async def scene() -> None:
            clock = loop_clock()
            first = Stage(executors={CallModel: hang}, clock=clock)
            await first.runner.start(soon())
            stage = Stage(journal=first.journal, clock=clock)
            live = await stage.runner.load("run")
            await stage.runner.drive(live)
            assert live.state.end.ending is Ending.TIMEOUT
            assert stage.performed == []

        play(scene())

    @pytest.mark.slow
    def test_a_timer_that_is_set_while_the_driver_waits_rings_too(self) -> None:
        async def scene() -> None:
            interrupted = Interrupted()
            stage = Stage(executors={CallModel: interrupted}, clock=loop_clock())
            live = await stage.runner.start(soon())
            driving = asyncio.create_task(stage.runner.drive(live))
            await interrupted.begun.wait()
            elsewhere = await stage.runner.load("run")
            await stage.runner.rule_on(elsewhere, arrivals.PauseRequested("ada"))
            await asyncio.sleep(1.5 * SOON_MS / 1000)  # Long enough for the timer to ring while the clock stands.
            await stage.runner.rule_on(elsewhere, arrivals.ResumeRequested("ada"))
            await driving
            assert live.state.end.ending is Ending.TIMEOUT

        play(scene())


class TestAClockThatIsSetBack:
    def test_a_call_is_tried_again_although_the_clock_says_an_hour_ago(self) -> None:
        async def scene() -> None:
            def breaks_once(messages: Sequence[Message], chance: Random) -> ModelResult | Breaks:
                stage.clock.at_ms -= HOUR_MS
                return Breaks() if len(stage.performed) == 1 else says("done")

            stage = Stage(breaks_once, clock=loop_clock())
            assert (await driven(stage)).ending is Ending.SUCCESS

        play(scene())

    def test_a_deadline_is_kept_and_its_moment_is_the_runs_time(self) -> None:
        async def scene() -> None:
            async def model(live: Live, command: CallModel) -> Report:
                stage.clock.at_ms -= HOUR_MS
                return await interrupted(live, command)

            interrupted = Interrupted()
            stage = Stage(executors={CallModel: model}, clock=loop_clock())
            run = await driven(stage, soon())
            assert (run.ending, interrupted.was_cancelled) == (Ending.TIMEOUT, True)
            # At its moment or, since time passes between two looks at the clock, just behind it; never an hour before.
            assert BEGINS_AT_MS + SOON_MS <= run.state.at_ms < BEGINS_AT_MS + HOUR_MS
            assert len(run.all(arrivals.TimerFired)) == 1

        play(scene())

    def test_a_deadline_is_kept_by_a_process_whose_clock_is_behind(self) -> None:
        async def scene() -> None:
            first = Stage(executors={CallModel: hang}, clock=loop_clock())
            await first.runner.start(soon())
            stage = Stage(journal=first.journal, clock=loop_clock())
            stage.clock.at_ms -= HOUR_MS
            live = await stage.runner.load("run")
            await stage.runner.drive(live)
            assert live.state.end.ending is Ending.TIMEOUT

        play(scene())


class TestARunWithinARun:
    def test_a_deadline_of_the_parent_reaches_the_child_that_is_driven_within_it(self) -> None:
        async def scene() -> None:
            interrupted = Interrupted()

            async def start_child(live: Live, command: StartChild) -> Report:
                manifest = child_manifest(parent, command, chat_graph())
                child = await stage.runner.start(replace(manifest, deadline_at_ms=0))
                await stage.runner.drive(child)
                assert child.state.end.ending is not None
                return ChildSaid(command.id, child.state.end.ending, "", spent_by(child.state))

            async def model(live: Live, command: CallModel) -> Report:
                if live.run_id == "run":
                    return ModelSaid(command.id, proposes("ask_child", {"n": 1}))
                return await interrupted(live, command)

            parent = soon()
            stage = Stage(executors={StartChild: start_child, CallModel: model}, clock=loop_clock())
            run = await driven(stage, parent)
            assert run.ending is Ending.TIMEOUT
            assert interrupted.was_cancelled
            assert stage.dispatch._work == {}

        play(scene())
