"""Workers of a cluster: a process that drives, asks a model or calls a tool may go, and nothing is lost or done twice."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from remit import AgentLoop
from remit.backend.cluster.work import errand_queue
from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.journal.arrivals import ModelFailed
from remit.core.journal.commands import CallTool
from remit.core.journal.queued import Came, DeadLetter, ErrandName, Lane
from remit.core.record import JsonObject, Text
from remit.core.run.approval import What
from remit.core.run.contract import CallStatus, SystemResponse
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.signals import Signal
from remit.inference.engine import StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.executors.errands import Errand, Sender, ToolErrand, decode_errand, encode_errand, encode_report
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit, engine_kit
from remit.orchestrate.workers import errand_worker
from remit.orchestrate.workers.errand_worker import ErrandWorker
from remit.testing.conformance.processes.dispatch import a_call
from tests.e2e.house import asking, calls, says, tell, until
from tests.nats_server import fall_silent
from tests.workforce import Crew, Till, approved, crew, hurry, paying, play, rested

T = TypeVar("T")


class Slow:
    """A model that answers when it may, and remembers how often it was asked and told to stop."""

    def __init__(self, *replies: JsonObject) -> None:
        self._engine = ScriptedEngine(replies)
        self.may_answer = asyncio.Event()
        self.asked = self.stopped = 0

    def model_info(self) -> ModelInfo:
        return self._engine.model_info()

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        self.asked += 1
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return await self._engine.infer(request, on_chunk)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


@pytest.mark.req("3.1")
def test_a_run_is_driven_by_one_worker_and_performed_by_others(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with paying(tmp_path, till) as (workers, program, run_id):
            worker = await workers.performs("tool")
            response = await rested(program, run_id)
            assert (response.terminal_code, response.content) == (Ending.SUCCESS, "Paid.")
            await until(lambda: worker.tasks.done["done"], "the worker knows that its errand is done")
            assert (till.paid, worker.tasks.done["done"]) == (1, 1)
            assert (await program.archive.verify(run_id)).ok
            store = workers.stores[0]
            await until(lambda: not worker.tasks.under_way, "nothing is under way")
            assert await store.link.call(store.link.jet.last("agent.report.>")) is None, "it is forgotten at the end"

    play(story())


def test_a_cancel_stops_a_model_call_in_flight_on_another_worker_before_anyone_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word of the driver tells the worker: nothing that is looked at from time to time is looked at so soon."""
    monkeypatch.setattr(errand_queue, "LOOK_S", 60)
    monkeypatch.setattr(errand_queue, "ACK_WAIT_S", 60)
    monkeypatch.setattr(errand_worker, "KEEP_S", 60)

    async def story() -> None:
        model = Slow(says("Too late."))
        async with crew(tmp_path, engine_kit(model)) as workers:
            await workers.drives()
            await workers.performs("model")
            program = await workers.program()
            run_id = await program.submit(asking(), workers.kit)
            await until(lambda: model.asked, "the model is asked")
            await tell(program, Signal.CANCEL, run_id)
            await until(lambda: model.stopped, "the model is told to stop")
            assert (await rested(program, run_id)).terminal_code is Ending.USER_CANCEL

    play(story())


def test_a_loop_worker_that_leaves_stops_nothing_and_the_next_waits_for_the_same_errand(tmp_path: Path) -> None:
    async def story() -> None:
        model = Slow(says("Done."))
        async with crew(tmp_path, engine_kit(model)) as workers:
            first, _ = await workers.drives()
            await workers.performs("model")
            program = await workers.program()
            run_id = await program.submit(asking(), workers.kit)
            await until(lambda: model.asked, "the model is asked")
            second, _ = await workers.drives()
            await first.leave()
            await until(lambda: second.driven, "another drives the run")
            model.may_answer.set()
            assert (await rested(program, run_id)).content == "Done."
            assert (model.asked, model.stopped) == (1, 0)

    play(story())


@pytest.mark.slow
def test_a_driver_that_wakes_up_after_its_lease_has_expired_changes_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        model = Slow(says("Done."))
        async with crew(tmp_path, engine_kit(model)) as workers:
            first, _ = await workers.drives()
            stale = workers.stores[-1]
            await workers.performs("model")
            program = await workers.program()
            run_id = await program.submit(asking(), workers.kit)
            await until(lambda: model.asked, "the model is asked")
            fall_silent(stale.link)
            second, _ = await workers.drives()
            await until(lambda: second.driven, "another takes the run over")
            model.may_answer.set()
            assert (await rested(program, run_id)).terminal_code is Ending.SUCCESS
            await until(lambda: not first.driven, "the first puts the run down")
            assert (await program.archive.verify(run_id)).ok

    play(story())


@pytest.mark.slow
def test_a_call_whose_worker_fell_silent_is_in_doubt_and_its_late_outcome_settles_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        till = Till()
        async with paying(tmp_path, till) as (workers, program, run_id):
            await workers.performs("tool")
            silent = workers.stores[-1].queue

            async def say_nothing(receipt: str) -> None:
                """It is stopped, and does not say that it is at work."""

            monkeypatch.setattr(silent, "keep", say_nothing)
            await until(lambda: till.begun, "the tool is called")
            await workers.performs("tool")
            response = await rested(program, run_id)
            (question,) = await program.archive.approvals(run_id)
            assert (question.purpose, till.begun) == (What.OUTCOME, 1), response
            till.may_pay.set()
            await until(lambda: till.paid, "it is paid after all")
            response = await ended(program, run_id)
            assert (response.terminal_code, till.begun) == (Ending.SUCCESS, 1)

    play(story())


async def ended(system: System, run_id: str) -> SystemResponse:
    """How a run ends that another process moves."""

    async def response() -> SystemResponse | None:
        found = await system.result(run_id)
        return found if found.terminal_code is not None else None

    return await at_last(response)


async def at_last(look: Callable[[], Awaitable[T | None]]) -> T:
    """What is seen as soon as there is something."""
    while (found := await look()) is None:  # noqa: ASYNC110  # another process brings it about
        await asyncio.sleep(0.02)
    return found


@pytest.mark.slow
def test_a_call_that_no_worker_has_begun_is_certainly_not_made_when_its_run_is_cancelled(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        async with paying(tmp_path, till) as (workers, program, run_id):
            await tell(program, Signal.CANCEL, run_id)
            response = await rested(program, run_id)
            assert response.terminal_code is Ending.USER_CANCEL
            till.may_pay.set()
            worker = await workers.performs("tool")
            await asyncio.sleep(0.5)
            assert (till.begun, worker.tasks.done.total()) == (0, 0)
            assert [call.status for call in response.tool_calls_made] == [CallStatus.FAILED]

    play(story())


def test_what_no_worker_can_do_is_a_dead_letter_and_can_be_sent_again(tmp_path: Path) -> None:
    async def story() -> None:
        model = Slow(says("Done."))
        model.may_answer.set()
        async with crew(tmp_path, engine_kit(model)) as workers:
            store = await workers.store()
            lane = Lane("model", model.model_info().name)
            worker = await workers.performs("model")
            waiting = asyncio.ensure_future(
                store.queue.carried(ErrandName("run", "1.1"), lane, b"no errand", is_new=True)
            )
            assert (await waiting).came is Came.DEAD
            (letter,) = await store.queue.letters.listed()
            assert (letter.code, letter.name) == ("ERRAND_UNREADABLE", ErrandName("run", "1.1"))
            sent = await store.queue.letters.replay(letter.number)
            assert sent.name.attempt == 2
            found = await store.queue.awaited(sent.name, lane, 10)
            assert found is not None
            assert found.came is Came.DEAD
            await until(lambda: worker.tasks.done["dead"] == 2, "it is no better than before")
            with pytest.raises(RequestRejected) as refused:
                await store.queue.letters.replay(letter.number)
            assert refused.value.code == "LETTER_UNKNOWN"

    play(story())


@pytest.mark.slow
def test_an_errand_over_which_workers_die_is_given_to_a_few_and_ends_as_a_dead_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setattr(errand_worker, "KEEP_S", 30)
        monkeypatch.setattr(errand_worker, "LEAVE_S_MAX", 0)
        begun: list[str] = []

        async def hang(errand: Errand) -> Report:
            begun.append(errand.command.id)
            return await asyncio.Event().wait()  # type: ignore[return-value]  # it never returns

        async def text(text: Text) -> str:
            return str(text)

        async with crew(tmp_path, Kit({})) as workers:
            store, call = await workers.store(), a_call()
            lane = Lane("tool", call.tool, call.version)
            worker = ErrandWorker(store.queue, store.claims, [lane], concurrency=8)
            workers.at_work(worker.serve(hang, text, lambda _: False), worker.leave)
            data = encode_errand(ToolErrand(Sender("run", "run"), call))
            came = await store.queue.carried(ErrandName("run", call.id), lane, data, is_new=True)
            assert (came.came, len(begun)) == (Came.DEAD, errand_worker.DELIVERIES_MAX)
            assert [letter.code for letter in await store.queue.letters.listed()] == ["ERRAND_POISON"]

    play(story())


@pytest.mark.slow
def test_forged_reports_and_errands_are_refused_and_nothing_happens(tmp_path: Path) -> None:
    """Of an errand that was never sent, of another run, of another kind, a second time; an errand under another name."""

    async def story() -> None:
        till = Till()
        async with paying(tmp_path, till) as (workers, program, run_id):
            hostile = (await workers.store()).queue
            genuine = decode_errand(await errand_of(workers))
            call = genuine.command
            assert isinstance(call, CallTool)
            name, lane = ErrandName(run_id, call.id), Lane("tool", call.tool, call.version)
            # No caller waits for these.
            await hostile.report(
                ErrandName(run_id, "99.1"),
                Came.DONE,
                encode_report(ModelFailed("99.1", ErrorCode.INFERENCE_ENGINE_ERROR, "")),
            )
            await hostile.report(ErrandName("another", call.id), Came.DONE, b"")
            # The errand of one run under the name of another, and one that names nothing.
            await hostile.prepare(lane)
            names = (ErrandName("a third", call.id), ErrandName(run_id, "99.2"))
            forged = [hostile.carried(other, lane, encode_errand(genuine), is_new=True) for other in names]
            waiting = asyncio.gather(*forged)
            await workers.performs("tool")
            await until(lambda: till.begun, "the errand that was meant is performed")
            letters = await letters_of(workers, 2)
            assert {letter.code for letter in letters} == {"ERRAND_MISADDRESSED"}
            assert {one.came for one in await waiting} == {Came.DEAD}
            # A report of another kind is not believed: what became of the call is in doubt.
            await hostile.report(
                name, Came.DONE, encode_report(ModelFailed(call.id, ErrorCode.INFERENCE_ENGINE_ERROR, ""))
            )
            response = await rested(program, run_id)
            (question,) = await program.archive.approvals(run_id)
            assert (question.purpose, till.begun) == (What.OUTCOME, 1), response
            till.may_pay.set()
            assert not await hostile.report(name, Came.DONE, b"again")
            assert (await ended(program, run_id)).terminal_code is Ending.SUCCESS
            assert till.begun == 1

    play(story())


async def errand_of(workers: Crew) -> bytes:
    """The errand that was sent to a tool."""
    link = workers.stores[0].link
    return (await at_last(lambda: link.call(link.jet.last("agent.errand.tool.>")))).data


async def letters_of(workers: Crew, count: int) -> list[DeadLetter]:
    """So many dead letters."""
    store = await workers.store()

    async def letters() -> list[DeadLetter] | None:
        found = await store.queue.letters.listed()
        return found if len(found) >= count else None

    return await at_last(letters)


@pytest.mark.slow
def test_who_answers_waits_for_the_next_rest_although_no_worker_holds_the_run_just_now(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with crew(tmp_path, till.kit()) as workers:
            driver, _ = await workers.drives()
            await workers.performs("model")
            program = await workers.program()
            asks = await program.run(asking("Please pay."), workers.kit)
            await driver.leave()
            run_id = await approved(program, asks)
            waiting = asyncio.ensure_future(program.rested(run_id))
            await asyncio.sleep(0.5)
            assert not waiting.done(), "no worker drives it, and one will"
            await workers.drives()
            await workers.performs("tool")
            await waiting
            assert (await program.result(run_id)).terminal_code is Ending.SUCCESS

    play(story())


@pytest.mark.slow
@pytest.mark.parametrize("is_yes", [True, False])
def test_an_agent_that_is_answered_gives_the_next_rest_of_an_exchange_that_is_left_to_workers(
    tmp_path: Path, *, is_yes: bool
) -> None:
    async def story() -> None:
        till = Till()
        async with crew(tmp_path, till.kit()) as workers:
            await workers.drives()
            await workers.performs("model")
            await workers.performs("tool")
            agent = AgentLoop(
                ScriptedEngine([calls("pay"), says("Paid.")]), tools=[till.pay], system=await workers.program()
            )
            asked = await agent.chat("Look after my bill.")
            assert asked.waiting_for is not None
            (packet,) = asked.waiting_for.packet_ids
            answered = asyncio.ensure_future(
                agent.approve(packet, by="ada") if is_yes else agent.reject(packet, by="ada")
            )
            await asyncio.sleep(0.5)
            till.may_pay.set()
            response = await answered
            assert (response.terminal_code is Ending.SUCCESS, till.paid) == (is_yes, int(is_yes))
            assert response.terminal_code is not None

    play(story())
