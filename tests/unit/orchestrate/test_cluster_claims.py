"""Outcomes count from the worker that claimed their call: a worker with a key that counts, and no claim, makes nothing up."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.backend.cluster.layout import claim_subject
from remit.backend.cluster.logs.entries import Left
from remit.backend.cluster.server.jetstream import JetMessage
from remit.backend.cluster.server.link import entry
from remit.backend.cluster.store import ClusterStore
from remit.backend.cluster.work.claim_words import claim_message
from remit.backend.cluster.work.errand_queue import _written
from remit.backend.folded.log import INBOX
from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import Happened, RunHalted
from remit.core.journal.codec import encode_record, encode_signal
from remit.core.journal.commands import CallTool, ReconcileTool
from remit.core.journal.queued import Came, Claim, Claimed, ClaimWord, ErrandName, Lane
from remit.core.journal.storage import START
from remit.core.limits.tools import ToolResult
from remit.core.run.approval import What
from remit.core.run.contract import CallStatus
from remit.core.run.signals import Signal, UserSignal
from remit.orchestrate.executors import division
from remit.orchestrate.executors.errands import decode_errand, encode_report
from remit.orchestrate.executors.reports import PersonApproved, Report, ToolAccounted, ToolBroke, ToolSaid
from remit.orchestrate.facade import System
from remit.orchestrate.gateway.key_room import ROLES
from remit.orchestrate.workers import loop_worker
from remit.wire.credentials import KeyEntry, issue
from tests.e2e.house import asking, tell, until
from tests.nats_server import opened
from tests.unit.orchestrate.test_cluster_accounts import Bank
from tests.unit.orchestrate.test_cluster_workers import at_last, ended, letters_of
from tests.workforce import Crew, Till, approved, crew, hurry, play, rested

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    monkeypatch.setattr(loop_worker, "PAUSE_S", 0.1)


def admit(root: ClusterStore, worker: ClusterStore, role: str, *others: ClusterStore, tool: str = "") -> None:
    """Let the key of a worker count with one that issues statements, and with others, as the keys room would."""
    may = tuple([one.replace("tool.>", f"tool.{tool}.*") if tool else one for one in ROLES[role]])
    stated = issue(
        root.key.signer,
        worker.key.signer.did,
        capability_id="x",
        tenant="*",
        may=may,
        not_before_ms=0,
        expires_at_ms=1 << 45,
    )
    for one in (root, worker, *others):
        one.signet.keyring.believe([root.key.signer.did, worker.key.signer.did])
        one.signet.keyring.hear(encode_record(KeyEntry(statement=stated)))


@asynccontextmanager
async def paying_beside_a_stranger(
    home: Path, till: Till, *, has_worker: bool, tool: str = ""
) -> AsyncIterator[tuple[Crew, System, ClusterStore, CallTool]]:
    """A crew whose run is about to pay, its call, and a worker for tools that was admitted and is given nothing."""
    async with crew(home / "ours", till.kit()) as workers:
        await workers.drives()
        await workers.performs("model")
        if has_worker:
            await workers.performs("tool")
        stranger = await asyncio.to_thread(opened, home / "theirs")
        try:
            program = await workers.program()
            admit(workers.stores[0], stranger, "tools", *workers.stores[1:], tool=tool)
            await approved(program, await program.run(asking("Please pay."), workers.kit))
            link = workers.stores[0].link
            errand = decode_errand((await at_last(lambda: link.call(link.jet.last("agent.errand.tool.>")))).data)
            assert isinstance(errand.command, CallTool)
            if has_worker:
                await until(lambda: till.begun, "the worker has begun the call")
            yield workers, program, stranger, errand.command
        finally:
            till.may_pay.set()
            await stranger.close()


def done(call: CallTool, content: str = "9") -> Report:
    return ToolSaid(call.id, ToolResult(call.call_id, call.tool, content))


def not_done(call: CallTool) -> Report:
    return ToolBroke(call.id, ErrorCode.TOOL_EXECUTION_FAILED, "NotDone: the shop is closed")


def withheld(call: CallTool) -> Report:
    return RunHalted("x", 1, "everything", "made up", (call.id,))


LIES: dict[str, Callable[[CallTool], Report]] = {"done": done, "not done": not_done}


async def run_of(program: System) -> str:
    (run,) = await program.archive.runs()
    return run.run_id


@pytest.mark.parametrize("lie", LIES)
def test_a_report_of_a_key_that_has_not_claimed_the_call_is_put_aside_and_its_run_waits_on(
    lie: str, tmp_path: Path
) -> None:
    async def story() -> None:
        till = Till()
        async with paying_beside_a_stranger(tmp_path, till, has_worker=True) as (workers, program, stranger, call):
            run_id = await run_of(program)
            # Behind the claim that stands, too, a claim gives nothing.
            for attempt in (1, 2):
                word = Claim(ClaimWord.CLAIMED, "mine", attempt)
                await stranger.link.write(claim_message(stranger.signet, run_id, call.id, word, None))
            await stranger.queue.report(ErrandName(run_id, call.id), Came.DONE, encode_report(LIES[lie](call)))
            (letter,) = await letters_of(workers, 1)
            assert letter.code == "OUTCOME_UNCLAIMED"
            assert (await program.result(run_id)).terminal_code is None
            till.may_pay.set()
            response = await rested(program, run_id)
            assert [made.result for made in response.tool_calls_made] == ["paid"]
            assert (response.terminal_code, till.begun, till.paid) == (Ending.SUCCESS, 1, 1)

    play(story())


def test_that_a_call_was_taken_back_counts_from_a_key_that_drives_alone(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        async with paying_beside_a_stranger(tmp_path, till, has_worker=True) as (workers, program, stranger, call):
            run_id = await run_of(program)
            name = ErrandName(run_id, call.id)
            # In all three forms in which a driver takes a call back.
            taken_back = Claim(ClaimWord.REVOKED, workers.stores[0].link.worker)
            await stranger.link.write(claim_message(stranger.signet, run_id, call.id, taken_back, None))
            stranger.link.ring("remit.ring.stop", _written(name).encode(), is_signed=True)
            await stranger.queue.report(name, Came.WITHDRAWN)
            (letter,) = await letters_of(workers, 1)
            assert letter.code == "CAPABILITY_LACKING"
            till.may_pay.set()
            response = await rested(program, run_id)
            assert (response.terminal_code, till.begun, till.paid) == (Ending.SUCCESS, 1, 1)

    play(story())


@pytest.mark.parametrize("lie", LIES)
def test_a_call_that_is_said_to_have_come_to_something_before_it_was_claimed_never_begins(
    lie: str, tmp_path: Path
) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with paying_beside_a_stranger(tmp_path, till, has_worker=False) as (workers, program, stranger, call):
            run_id = await run_of(program)
            await stranger.queue.report(ErrandName(run_id, call.id), Came.DONE, encode_report(LIES[lie](call)))
            response = await rested(program, run_id)
            assert [made.status for made in response.tool_calls_made] == [CallStatus.FAILED]
            last = await workers.stores[0].claims.last(run_id, call.id)
            assert last is not None
            assert last.word is ClaimWord.REVOKED
            worker = await workers.performs("tool")
            await until(lambda: worker.tasks.done or not worker.tasks.under_way, "it is looked at")
            await asyncio.sleep(0.5)
            assert till.begun == 0

    play(story())


def test_a_call_that_its_worker_withheld_is_sent_again_when_its_run_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with paying_beside_a_stranger(tmp_path, till, has_worker=False) as (workers, program, stranger, call):
            run_id = await run_of(program)
            await stranger.queue.report(ErrandName(run_id, call.id), Came.DONE, encode_report(withheld(call)))
            hub, _ = workers.systems[0].driving()

            async def paused() -> bool | None:
                return (await hub.runner.load(run_id)).state.place.paused or None

            await at_last(paused)
            await until(lambda: not hub.drivers, "it rests")
            await workers.performs("tool")
            await tell(program, Signal.RESUME, run_id)
            assert (await ended(program, run_id)).terminal_code is Ending.SUCCESS
            assert till.begun == 1

    play(story())


@pytest.mark.parametrize("lie", [*LIES, "withheld", "about another call"])
def test_what_comes_late_counts_from_the_key_that_claimed_the_call(lie: str, tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        async with paying_beside_a_stranger(tmp_path, till, has_worker=True) as (workers, program, stranger, call):
            run_id = await run_of(program)
            name = ErrandName(run_id, call.id)
            if lie == "about another call":
                name = ErrandName(run_id, "99.1")
                assert await stranger.claims.claim(run_id, "99.1") is Claimed.GRANTED
            elif lie != "withheld":
                # A claim of an attempt that no driver has sent.
                word = Claim(ClaimWord.CLAIMED, "mine", 2)
                await stranger.link.write(claim_message(stranger.signet, run_id, call.id, word, None))
                name = ErrandName(run_id, call.id, 2)
            said = withheld(call) if lie == "withheld" else LIES.get(lie, done)(call)
            await stranger.queue.late(name, encode_report(said))
            (letter,) = await letters_of(workers, 1)
            assert letter.code == ("OUTCOME_UNCLAIMED" if lie in LIES else "LATE_NOT_PERMITTED")
            till.may_pay.set()
            response = await rested(program, run_id)
            assert [made.result for made in response.tool_calls_made] == ["paid"]
            assert (response.terminal_code, till.begun) == (Ending.SUCCESS, 1)

    play(story())


def test_a_key_that_was_admitted_for_another_tool_brings_a_call_into_doubt_and_says_nothing_of_it(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with paying_beside_a_stranger(tmp_path, till, has_worker=False, tool="look") as (
            workers,
            program,
            stranger,
            call,
        ):
            run_id = await run_of(program)
            assert await stranger.claims.claim(run_id, call.id) is Claimed.GRANTED
            await stranger.queue.late(ErrandName(run_id, call.id), encode_report(done(call)))
            (letter,) = await letters_of(workers, 1)
            assert letter.code == "LATE_NOT_PERMITTED"
            await workers.performs("tool")
            await rested(program, run_id)
            (question,) = await program.archive.approvals(run_id)
            assert (question.purpose, till.begun) == (What.OUTCOME, 0)

    play(story())


def test_what_a_key_of_another_tool_reports_is_not_told_when_its_run_is_forgotten(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with paying_beside_a_stranger(tmp_path, till, has_worker=False, tool="look") as (
            workers,
            program,
            stranger,
            call,
        ):
            run_id = await run_of(program)
            assert await stranger.claims.claim(run_id, call.id) is Claimed.GRANTED
            await stranger.queue.report(ErrandName(run_id, call.id), Came.DONE, encode_report(done(call)))
            link, reports = workers.stores[0].link, workers.stores[0].queue.reports
            own, other = Lane("tool", call.tool, call.version), Lane("tool", "look", "1")
            since = {call.id: 0}
            assert await link.call(reports.told_of(run_id, {call.id: own}, since)) == []
            assert await link.call(reports.told_of(run_id, {call.id: other}, since)) != []

    play(story())


def test_no_worker_for_tools_approves_a_call_by_what_comes_late(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with crew(tmp_path / "ours", till.kit()) as workers:
            await workers.drives()
            for part in ("model", "tool"):
                await workers.performs(part)
            program = await workers.program()
            stranger = await asyncio.to_thread(opened, tmp_path / "theirs")
            admit(workers.stores[0], stranger, "tools", *workers.stores[1:])
            response = await program.run(asking("Please pay."), workers.kit)
            assert response.waiting_for is not None
            question = response.waiting_for.packet_ids[0].rpartition("/")[2]
            yes = encode_report(PersonApproved(question, "the boss"))
            packet = {"packet_id": response.waiting_for.packet_ids[0]}
            said = encode_signal(UserSignal("made-up", Signal.APPROVE, response.run_id, "the boss", payload=packet))
            name = ErrandName(response.run_id, question)
            # The true report of an approval, and the true entry of an inbox, wherever this key can put them.
            await stranger.queue.report(name, Came.DONE, yes)
            await stranger.queue.report(name, Came.DONE, said)
            await stranger.queue.late(name, said)
            left = entry(INBOX + response.run_id, encode_record(Left(1)), after=START, bulk=said)
            headers = stranger.signet.signed_entry(left.subject, left.data, left.headers, 0)
            await stranger.link.call(stranger.link.jet.write(JetMessage(left.subject, left.data, headers, 0)))
            await workers.stores[0].queue.due(response.run_id)
            await stranger.queue.late(name, yes)
            codes = {letter.code for letter in await letters_of(workers, 2)}
            assert codes == {"CAPABILITY_LACKING", "LATE_NOT_PERMITTED"}
            assert till.begun == 0
            assert await program.archive.approvals(response.run_id)
            await stranger.close()

    play(story())


def test_what_a_tool_is_said_to_answer_counts_from_the_worker_that_claimed_the_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setattr(division, "GRACE_MS", -59_500)
        bank = Bank(timeout_ms=60_000)
        async with crew(tmp_path / "ours", bank.kit()) as workers:
            await workers.drives()
            await workers.performs("model")
            program = await workers.program()
            await workers.performs("tool", concurrency=1)
            stranger = await asyncio.to_thread(opened, tmp_path / "theirs")
            admit(workers.stores[0], stranger, "tools", *workers.stores[1:])
            try:
                run_id = await approved(program, await program.run(asking("Please pay."), workers.kit))
                await until(lambda: bank.begun, "the tool is called")
                link = workers.stores[0].link
                sent = await at_last(lambda: link.call(link.jet.last("agent.errand.tool.>")))
                await stranger.queue.report(ErrandName(run_id, decode_errand(sent.data).command.id), Came.LOST)
                asked = sent
                while asked.seq == sent.seq:
                    asked = await at_last(lambda: link.call(link.jet.last("agent.errand.tool.>")))
                question = decode_errand(asked.data).command
                assert isinstance(question, ReconcileTool)
                no = encode_report(ToolAccounted(question.id, Happened.NO))
                for attempt in (1, 2, 3):
                    await stranger.queue.report(ErrandName(run_id, question.id, attempt), Came.DONE, no)
                await stranger.queue.late(ErrandName(run_id, question.id), no)
                while not (questions := await program.archive.approvals(run_id)):  # noqa: ASYNC110  # another process asks
                    await asyncio.sleep(0.05)
                assert questions[0].purpose is What.OUTCOME
                bank.may_pay.set()
                response = await ended(program, run_id)
                assert [made.result for made in response.tool_calls_made] == ["paid"]
                assert (bank.begun, bank.paid) == (1, 1)
            finally:
                bank.may_pay.set()
                await stranger.close()

    play(story())


def test_claims_belong_to_the_key_that_was_granted_them(tmp_path: Path) -> None:
    async def story() -> None:
        ours, theirs, models = [
            await asyncio.to_thread(opened, tmp_path / name) for name in ("ours", "theirs", "models")
        ]
        admit(ours, theirs, "tools")
        for store in (ours, theirs):
            store.signet.keyring.believe([one.key.signer.did for one in (ours, theirs, models)])
        us, them = ours.key.signer.did, theirs.key.signer.did

        async def holders(command_id: str, attempt: int = 0) -> dict[int, str]:
            return await ours.link.call(ours.claims.holders("run", command_id, attempt))

        assert await holders("1.1") == {}
        assert await ours.claims.claim("run", "1.1") is Claimed.GRANTED
        assert await theirs.claims.claim("run", "1.1") is Claimed.TAKEN
        for attempt in (1, 2, 2):
            word = Claim(ClaimWord.CLAIMED, "mine", attempt)
            await theirs.link.write(claim_message(theirs.signet, "run", "1.1", word, None))
        assert await holders("1.1") == {1: us, 2: them}
        # What was taken back is held by none, whatever is written behind that, until it is offered again.
        assert await ours.claims.revoke("run", "1.2")
        word = Claim(ClaimWord.CLAIMED, "mine", 1)
        await theirs.link.write(claim_message(theirs.signet, "run", "1.2", word, None))
        assert await holders("1.2") == {}
        # A key that asks models claims no call, and neither does one that is not believed.
        admit(ours, models, "model")
        ours.signet.keyring.believe([them, models.key.signer.did])
        await models.link.write(claim_message(models.signet, "run", "1.3", word, None))
        assert 1 not in await holders("1.3")
        assert not await ours.claims.revoke("run", "1.3")
        stored = await ours.link.call(ours.link.jet.last(claim_subject("run", "1.3")))
        assert stored is not None
        for store in (ours, theirs, models):
            await store.close()

    play(story())


def test_a_run_that_has_ended_is_told_what_returned_although_it_was_said_not_to_have_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the time of its call: its worker reports as of any call, and finds that no driver waits for it."""

    async def story() -> None:
        monkeypatch.setattr(division, "GRACE_MS", -59_500)
        bank = Bank(timeout_ms=60_000)
        async with believed_no(tmp_path, bank, monkeypatch) as (workers, program, run_id):
            assert (await ended(program, run_id)).terminal_code is not Ending.SUCCESS
            link = workers.stores[0].link
            while await link.call(link.jet.last("agent.errand.>")) is not None:  # noqa: ASYNC110  # its driver forgets it
                await asyncio.sleep(0.02)
            bank.may_pay.set()
            await expect_told(workers, program, run_id)

    play(story())


def test_a_report_that_stands_unread_when_its_run_is_forgotten_is_told_to_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setattr(division, "GRACE_MS", -59_500)
        bank = Bank(timeout_ms=60_000)
        async with believed_no(tmp_path, bank, monkeypatch) as (workers, program, run_id):
            driver, link = workers.stores[0].queue, workers.stores[0].link
            forget = driver.forget

            async def slowly(run_id: str, unsure: Mapping[str, Lane]) -> object:
                """Its outcome comes between the end of the run and the moment at which it is forgotten."""
                bank.may_pay.set()
                while await link.call(link.jet.last(f"agent.report.{run_id}.4=2e=1.1")) is None:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
                await until(lambda: bank.paid, "it is paid after all")
                await asyncio.sleep(0.3)
                return await forget(run_id, unsure)

            monkeypatch.setattr(driver, "forget", slowly)
            await ended(program, run_id)
            await expect_told(workers, program, run_id)

    play(story())


@asynccontextmanager
async def believed_no(
    home: Path, bank: Bank, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Crew, System, str]]:
    """A crew whose run is about to end because a tool said no of a call that is under way on a silent worker."""
    async with crew(home, bank.kit()) as workers:
        await workers.drives()
        await workers.performs("model")
        program = await workers.program()
        await workers.performs("tool", concurrency=1)
        stopped = workers.stores[-1].queue

        async def say_nothing(receipt: str) -> None:
            """It is stopped, and tells no server that it is at work."""

        async def take_nothing(lane: Lane) -> None:
            await asyncio.sleep(0.05)

        monkeypatch.setattr(stopped, "keep", say_nothing)
        try:
            run_id = await approved(program, await program.run(asking("Please pay."), workers.kit))
            await until(lambda: bank.begun, "the tool is called")
            monkeypatch.setattr(stopped, "next_errand", take_nothing)
            await workers.performs("tool")
            yield workers, program, run_id
        finally:
            bank.may_pay.set()


async def expect_told(workers: Crew, program: System, run_id: str) -> None:
    """In its journal, in its warnings and as one dead letter."""
    letters = await letters_of(workers, 1)
    assert [letter.code for letter in letters] == ["OUTCOME_CONTRADICTED"]
    (told,) = [one for one in (await program.result(run_id)).warnings if "returned after all" in one]
    assert "twice" in told
    assert (await program.archive.verify(run_id)).ok
    link = workers.stores[0].link
    while await link.call(link.jet.last("agent.late.>")) is not None:  # noqa: ASYNC110  # what was told is removed
        await asyncio.sleep(0.02)
