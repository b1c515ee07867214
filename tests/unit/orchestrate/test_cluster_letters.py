"""Every code that a dead letter can have, as a worker keeps it on the servers; and which of them can be sent again."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from remit.backend.cluster.layout import ENTRY, LATE, log_subject, report_subject, token
from remit.backend.cluster.logs.entries import Mark
from remit.backend.cluster.logs.tail import in_header
from remit.backend.cluster.server.jetstream import JetMessage
from remit.backend.cluster.store import ClusterStore
from remit.backend.cluster.work.errand_queue import _written
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.arrivals import ModelFailed
from remit.core.journal.codec import encode_record
from remit.core.journal.queued import DeadLetter, ErrandName, Lane
from remit.core.run.contract import CallStatus
from remit.orchestrate.executors.errands import Errand, ToolErrand, encode_report
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.executors.reports import Report, ToolBroke
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.workers import loop_worker
from tests.e2e.house import asking, until
from tests.unit.orchestrate.test_cluster_workers import letters_of
from tests.workforce import Till, crew, hurry, paying, play, rested

pytestmark = pytest.mark.slow

NAME = ErrandName("run", "1.1")
LATE_WORD = encode_report(ModelFailed("1.1", ErrorCode.INFERENCE_ENGINE_ERROR, ""))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    monkeypatch.setattr(loop_worker, "PAUSE_S", 0.1)


async def signed(store: ClusterStore, subject: str, data: bytes, headers: dict[str, str]) -> int:
    return await store.link.write(JetMessage(subject, data, store.signet.signed(subject, data, headers)))


def late(store: ClusterStore, lasts_ms: int, name: ErrandName = NAME) -> dict[str, str]:
    return {"Remit-Errand": _written(name), "Remit-Came": "done", **store.signet.until(lasts_ms)}


async def expired(store: ClusterStore) -> None:
    await signed(store, f"{LATE}run.{token('1.1')}", LATE_WORD, late(store, -1))


async def misaddressed(store: ClusterStore) -> None:
    await signed(store, f"{LATE}another.{token('1.1')}", LATE_WORD, late(store, 60_000))


async def repeated(store: ClusterStore) -> None:
    subject = f"{LATE}run.{token('1.1')}"
    first = await signed(store, subject, LATE_WORD, late(store, 60_000))
    stored = await store.link.call(store.link.jet.at(first))
    assert stored is not None
    ours = {name: text for name, text in stored.headers.items() if name.startswith("Remit-")}
    await store.link.write(JetMessage(subject, stored.data, ours))


async def unsigned(store: ClusterStore) -> None:
    await store.link.write(JetMessage(f"{LATE}run.{token('1.1')}", LATE_WORD, late(store, 60_000)))


async def misnamed(store: ClusterStore) -> None:
    subject = log_subject("run:here")
    entry = JetMessage(subject, b"", {ENTRY: in_header("run:there", encode_record(Mark("x")))}, 0)
    await store.link.write(entry)
    await store.log_copy.refresh()


WAYS: dict[str, Callable[[ClusterStore], Awaitable[None]]] = {
    "MESSAGE_EXPIRED": expired,
    "MESSAGE_MISADDRESSED": misaddressed,
    "MESSAGE_REPEATED": repeated,
    "MESSAGE_UNSIGNED": unsigned,
    "ENTRY_MISNAMED": misnamed,
}


@pytest.mark.parametrize("code", WAYS)
def test_a_message_that_is_not_believed_is_a_letter_with_its_code_and_is_no_errand_to_send_again(
    code: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with crew(tmp_path, Till().kit()) as workers:
            await workers.drives()
            store = workers.stores[0]
            await WAYS[code](store)
            found = await letters_of(workers, 1)
            assert [letter.code for letter in found] == [code]
            with pytest.raises(RequestRejected, match=f"dead letter {found[0].number} is no errand"):
                await store.queue.letters.replay(found[0].number)

    play(story())


def test_an_errand_that_broke_its_performer_is_a_letter_and_is_done_when_it_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        till, perform = Till(), Performers.perform

        async def breaks(self: Performers, errand: Errand, kit: Kit) -> Report:
            if isinstance(errand, ToolErrand):
                raise TypeError("no code of ours foresaw this")
            return await perform(self, errand, kit)

        till.may_pay.set()
        async with paying(tmp_path, till) as (workers, program, run_id):
            monkeypatch.setattr(Performers, "perform", breaks)
            await workers.performs("tool")
            (letter,) = await letters_of(workers, 1)
            assert (letter.code, letter.lane.name) == ("ERRAND_BROKEN", "pay")
            response = await rested(program, run_id)
            assert [made.status for made in response.tool_calls_made] == [CallStatus.FAILED], "it is told to its run"
            monkeypatch.setattr(Performers, "perform", perform)
            again = await workers.stores[0].queue.letters.replay(letter.number)
            assert await workers.stores[0].queue.awaited(again.name, letter.lane, 5) is not None
            assert till.begun == 0, "its run has settled it, so it is made no more"

    play(story())


def test_a_report_of_another_kind_than_its_errand_can_have_is_refused_and_the_errand_is_sent_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        till = Till()
        async with crew(tmp_path, till.kit()) as workers:
            await workers.drives()
            program = await workers.program()
            running = asyncio.ensure_future(program.run(asking("Please pay."), workers.kit))
            link = workers.stores[0].link
            await until(lambda: link.call_now(link.jet.last("agent.errand.model.>")), "the model is asked")
            sent = link.call_now(link.jet.last("agent.errand.model.>"))
            assert sent is not None
            run_id, command = sent.subject.split(".")[-3:-1]
            name = ErrandName(run_id, command.replace("=2e=", "."))
            wrong = encode_report(ToolBroke(name.command_id, ErrorCode.CANCELLED_SIGNAL, "made up"))
            subject = report_subject(name)
            await signed(workers.stores[0], subject, wrong, {"Remit-Came": "done"})
            await until(lambda: "REPORT_REFUSED" in caplog.text, "it is refused")
            await workers.performs("model")
            assert (await running).waiting_for is not None

    play(story())


def test_a_number_that_no_letter_has_is_said_to_be_none(tmp_path: Path) -> None:
    async def story() -> None:
        async with crew(tmp_path, Till().kit()) as workers:
            store = await workers.store()
            await store.queue.letters.keep(NAME, Lane("tool", "pay", "1"), b"", "ERRAND_POISON", "it kills")
            (letter,) = await letters_of(workers, 1)
            for number in (letter.number + 1, 99):
                with pytest.raises(RequestRejected, match=f"no dead letter number {number}"):
                    await store.queue.letters.replay(number)
            assert isinstance(letter, DeadLetter)

    play(story())
