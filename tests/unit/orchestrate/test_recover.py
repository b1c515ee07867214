"""A run is taken up where its journal ends: what is safe is done again, anything else is reported as lost."""

import pytest

from remit.backend.memory.journal import MemoryJournal
from remit.backend.memory.store import MemoryStore
from remit.core.failure import Ending, RequestRejected
from remit.core.journal import arrivals, rulings
from remit.core.journal.commands import AskHuman, CallModel, CallTool, Command, ForkRun, ReconcileTool, SetTimer
from remit.core.limits.budget import Budget
from remit.core.limits.tools import ToolResult
from remit.core.record import replace
from remit.core.run.manifest import Manifest
from remit.core.run.recovery import Recovery
from remit.orchestrate.bus.bus import Bus, Listener
from remit.orchestrate.executors.reports import ModelSaid, PersonApproved, PersonSaid, ToolSaid
from remit.orchestrate.history.fork_run import fork
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.recover import RUN_NOT_FOUND, recover
from remit.testing.runs import fold_journal
from remit.testing.scripts import in_turn, proposes, proposes_all, says
from tests.unit.kernel.builders import manifest_of
from tests.unit.orchestrate.stage import Stage, WatchedJournal, ok, play


async def until_called(stage: Stage, *tools: str, manifest: Manifest | None = None) -> Live:
    """A run in which these calls were ordered, the mutating ones with an approval, and then the process died."""
    live = await stage.runner.start(manifest or manifest_of())
    answer = proposes_all(*((tool, {"n": number}) for number, tool in enumerate(tools)))
    await stage.runner.advance(live, ModelSaid(opened(live, CallModel)[0].id, answer))
    for question in opened(live, AskHuman):
        await stage.runner.advance(live, PersonApproved(question.id, "ada"))
    return live


def opened(live: Live, kind: type[Command]) -> list[Command]:
    return [command for command in live.state.commands.open.values() if isinstance(command, kind)]


def sent_to(stage: Stage, run_id: str = "run") -> list[Command]:
    """What recovery sent and no executor has performed yet."""
    return [command for _, command in stage.dispatch._work[run_id].outbox]


def test_a_run_that_is_not_there_cannot_be_recovered() -> None:
    with pytest.raises(RequestRejected) as caught:
        play(recover(Stage().runner, "nobody"))
    assert caught.value.code == RUN_NOT_FOUND


def test_a_recovered_run_is_the_fold_of_its_turns() -> None:
    async def scene() -> None:
        before, after = processes()
        await until_called(before, "look")
        live = await recover(after.runner, "run")
        assert live.state == fold_journal(await before.journal.read("run"))

    play(scene())


def test_a_model_call_without_an_answer_is_made_again_under_the_same_id() -> None:
    async def scene() -> None:
        before, after = processes()
        live = await before.runner.start(manifest_of())
        await recover(after.runner, "run")
        assert sent_to(after) == opened(live, CallModel)

    play(scene())


def test_a_reading_call_without_an_outcome_is_made_again() -> None:
    async def scene() -> None:
        before, after = processes()
        live = await until_called(before, "look")
        await recover(after.runner, "run")
        assert sent_to(after) == opened(live, CallTool)

    play(scene())


def test_an_idempotent_call_is_made_again_with_the_same_key() -> None:
    async def scene() -> None:
        before, after = processes()
        live = await until_called(before, "put")
        await recover(after.runner, "run")
        assert sent_to(after) == opened(live, CallTool)

    play(scene())


def test_a_mutating_call_is_never_made_again_and_a_person_is_asked() -> None:
    async def scene() -> None:
        before, after = processes()
        await until_called(before, "write")
        live = await recover(after.runner, "run")
        assert sent_to(after) == []
        assert list(live.state.commands.doubted) == [command.id for command in opened(live, CallTool)]
        assert len(opened(live, AskHuman)) == 1

    play(scene())


def test_a_tool_that_keeps_accounts_is_asked_first() -> None:
    async def scene() -> None:
        before, after = processes()
        await until_called(before, "pay")
        live = await recover(after.runner, "run")
        assert sent_to(after) == opened(live, ReconcileTool) != []

    play(scene())


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ((), Recovery(1, safe_repeated=1)),
        (("look", "look"), Recovery(2, safe_repeated=2)),
        (("put",), Recovery(3, keyed_repeated=1)),
        (("write",), Recovery(3, lost=1)),
        (("pay",), Recovery(3, lost=1)),
    ],
)
def test_a_process_that_takes_a_run_up_learns_what_was_done_about_its_calls(
    tools: tuple[str, ...], expected: Recovery
) -> None:
    async def scene() -> None:
        before, after = processes()
        if tools:
            await until_called(before, *tools)
        else:
            await before.runner.start(manifest_of())
        told = list[Recovery]()
        after.runner.bus = Bus(MemoryStore())
        after.runner.bus.listen(Listener(on_recovered=lambda _, recovery: told.append(recovery)))
        await recover(after.runner, "run")
        assert told == [replace(expected, seq=len(await before.journal.read("run")) - 1 - bool(expected.lost))]

    play(scene())


def test_recovering_twice_loses_nothing_twice() -> None:
    async def scene() -> None:
        before, after = processes()
        await until_called(before, "write")
        await recover(after.runner, "run")
        turns = len(await after.journal.read("run"))
        await recover(Stage(journal=before.journal).runner, "run")
        assert len(await after.journal.read("run")) == turns

    play(scene())


def test_what_a_lost_outcome_closes_is_not_performed_any_more() -> None:
    async def scene() -> None:
        before, after = processes()
        # A review for one packet of two calls and none for a question about an outcome, so the loss ends the run.
        await until_called(before, "write", "put", manifest=manifest_of(budget=Budget(human_reviews=1)))
        live = await recover(after.runner, "run")
        assert live.state.end.ending is Ending.REVIEW_REQUIRED
        assert sent_to(after) == []

    play(scene())


def test_what_a_rival_settled_meanwhile_is_not_performed_again() -> None:
    async def scene() -> None:
        async def settle(run_id: str, after_seq: int) -> None:
            if not settled:
                settled.append(True)
                rival = Stage(journal=journal.kept)
                live = await rival.runner.load(run_id)
                put = next(c for c in opened(live, CallTool) if isinstance(c, CallTool) and c.tool == "put")
                result = ToolResult("c", "put", '{"ok": true}')
                await rival.runner.advance(live, ToolSaid(put.id, result))

        settled: list[bool] = []
        journal = WatchedJournal(beside_append=settle)
        before, after = Stage(journal=journal.kept), Stage(journal=journal)
        await until_called(before, "write", "put")
        await recover(after.runner, "run")
        assert settled
        assert sent_to(after) == []

    play(scene())


def test_an_ended_run_only_repeats_what_it_said_in_parting() -> None:
    async def scene() -> None:
        before, after = processes()
        live = await until_called(before, "write")
        (call,) = opened(live, CallTool)
        assert await before.dispatch.claim("run", call.id)
        await before.runner.advance(live, arrivals.CancelRequested("ada"))
        assert opened(live, CallTool) == [call]
        again = await recover(after.runner, "run")
        assert again.state == live.state
        assert "run" not in after.dispatch._work or sent_to(after) == []

    play(scene())


def test_a_recovered_run_goes_on_to_the_same_end() -> None:
    async def scene() -> None:
        before = Stage()
        await until_called(before, "look")
        script = in_turn(proposes("look", {"n": 0}), says("done"))
        after = Stage(script, tools={"look": ok}, journal=before.journal)
        live = await recover(after.runner, "run")
        await after.runner.drive(live)
        assert live.state.end.ending is Ending.SUCCESS
        assert len((await after.run()).all(rulings.CallSettled)) == 1

    play(scene())


def test_timers_of_a_recovered_run_ring_again() -> None:
    async def scene() -> None:
        before, after = processes()
        live = await before.runner.start(manifest_of())
        (deadline,) = opened(live, SetTimer)
        assert isinstance(deadline, SetTimer)
        after.clock.at_ms = deadline.due_at_ms
        again = await recover(after.runner, "run")
        await after.runner.drive(again)
        assert again.state.end.ending is Ending.TIMEOUT

    play(scene())


def test_a_fork_whose_copying_was_cut_off_is_copied_to_its_end_first() -> None:
    async def scene() -> None:
        async def die(run_id: str, after_seq: int) -> None:
            if run_id != "run" and after_seq == 1:
                raise ConnectionError("the process dies here")

        journal = WatchedJournal(beside_append=die)
        stage = Stage(journal=journal)
        live = await until_called(stage, "look")
        for number in range(3):
            await stage.runner.advance(live, PersonSaid("ada", f"word {number}"))
        await stage.runner.advance(live, arrivals.CancelRequested("ada"))
        await stage.runner.advance(live, arrivals.RetryRequested("ada"))
        (order,) = (await stage.run()).all(ForkRun)
        with pytest.raises(ConnectionError):
            await fork(stage.runner, "run", order)
        assert len(await journal.kept.read(order.run_id)) == 2
        after = Stage(journal=journal.kept)
        copied = await recover(after.runner, order.run_id)
        assert copied.state.seq == order.at_seq + 1
        assert copied.state.place.paused

    play(scene())


def processes() -> tuple[Stage, Stage]:
    """One process that dies, and one that comes after it, on one journal."""
    journal = MemoryJournal()
    return Stage(journal=journal), Stage(journal=journal)
