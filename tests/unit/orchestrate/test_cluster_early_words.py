"""What is said of a command before the turn that orders it counts for nothing: no key makes up or stops a call beforehand."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit import Happened
from remit.backend.cluster.layout import claim_subject
from remit.backend.cluster.server.jetstream import JetMessage
from remit.backend.cluster.store import ClusterStore
from remit.backend.cluster.work.claim_words import claim_message
from remit.core.failure import Ending, ErrorCode
from remit.core.journal.queued import MESSAGE_PREMATURE, Came, Claim, ClaimWord, ErrandName
from remit.core.limits.tools import ToolResult
from remit.core.run.approval import What
from remit.core.run.contract import CallStatus
from remit.core.run.inference import ModelResult
from remit.orchestrate.executors import division
from remit.orchestrate.executors.errands import encode_report
from remit.orchestrate.executors.reports import ModelSaid, ToolAccounted, ToolBroke, ToolSaid
from remit.orchestrate.facade import System
from remit.orchestrate.workers import loop_worker
from tests.e2e.house import asking, until
from tests.nats_server import opened
from tests.unit.orchestrate.test_cluster_accounts import Bank
from tests.unit.orchestrate.test_cluster_claims import admit
from tests.unit.orchestrate.test_cluster_workers import ended, letters_of
from tests.workforce import Crew, Till, approved, crew, hurry, play, rested

pytestmark = pytest.mark.slow

# What a yes to the first call of a run orders, and what is asked of its tool where nothing is known of it.
CALL, QUESTION = "4.1", "6.1"
# The places at which the model may be asked behind it.
ASKED = [f"{turn}.{place}" for turn in (5, 6) for place in range(1, 6)]
DONE = encode_report(ToolSaid(CALL, ToolResult("call-1-1", "pay", "9")))
NOT_DONE = encode_report(ToolBroke(CALL, ErrorCode.TOOL_EXECUTION_FAILED, "NotDone: the shop is closed"))

# Writes something beforehand, as a key that counts.
Early = Callable[[ClusterStore, str], Awaitable[object]]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)
    monkeypatch.setattr(loop_worker, "PAUSE_S", 0.1)


def word(said: ClaimWord, attempt: int = 1, command_id: str = CALL) -> Early:
    async def write(store: ClusterStore, run_id: str) -> None:
        claim = Claim(said, "mine", attempt)
        await store.link.write(claim_message(store.signet, run_id, command_id, claim, None))

    return write


def report(data: bytes, came: Came = Came.DONE, command_id: str = CALL, attempt: int = 1) -> Early:
    return lambda store, run_id: store.queue.report(ErrandName(run_id, command_id, attempt), came, data)


async def garbage(store: ClusterStore, run_id: str) -> None:
    subject = claim_subject(run_id, CALL)
    await store.link.write(JetMessage(subject, b"?", store.signet.signed(subject, b"?", {})))


EARLY: dict[str, tuple[Early, ...]] = {
    "a claim": (word(ClaimWord.CLAIMED),),
    "claims of many attempts": (*(word(ClaimWord.CLAIMED, attempt) for attempt in (1, 2, 1 << 29)),),
    "a claim and that it was done": (word(ClaimWord.CLAIMED), report(DONE)),
    "a claim and that it was not done": (word(ClaimWord.CLAIMED), report(NOT_DONE)),
    "that it was done": (report(DONE),),
    "that it was not done": (report(NOT_DONE),),
    "that it was taken back": (word(ClaimWord.REVOKED), report(b"", Came.WITHDRAWN)),
    "that it may begin": (word(ClaimWord.CLAIMED), word(ClaimWord.OFFERED)),
    "that it is lost": (report(b"", Came.LOST),),
    "that no worker can do it": (report(b"", Came.DEAD),),
    "a claim that cannot be read": (garbage,),
}


@asynccontextmanager
async def waiting(home: Path, till: Till, *, tool: str = "") -> AsyncIterator[tuple[Crew, System, ClusterStore, str]]:
    """A crew whose run waits for a yes, and a worker for tools that was admitted and is given nothing."""
    async with crew(home / "ours", till.kit()) as workers:
        await workers.drives()
        for part in ("model", "tool"):
            await workers.performs(part)
        program = await workers.program()
        stranger = await asyncio.to_thread(opened, home / "theirs")
        try:
            admit(workers.stores[0], stranger, "tools", *workers.stores[1:], tool=tool)
            asked = await program.run(asking("Please pay."), workers.kit)
            assert asked.waiting_for is not None
            yield workers, program, stranger, asked.run_id
        finally:
            till.may_pay.set()
            await stranger.close()


@pytest.mark.parametrize(("early", "tool"), [*((one, "") for one in EARLY), ("a claim and that it was done", "look")])
def test_what_is_said_of_a_call_before_a_person_approves_it_neither_makes_it_up_nor_stops_it(
    early: str, tool: str, tmp_path: Path
) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with waiting(tmp_path, till, tool=tool) as (workers, program, stranger, run_id):
            for write in EARLY[early]:
                await write(stranger, run_id)
            await approved(program, await program.result(run_id))
            response = await rested(program, run_id)
            assert [(made.status, made.result) for made in response.tool_calls_made] == [(CallStatus.COMMITTED, "paid")]
            assert (response.terminal_code, till.begun, till.paid) == (Ending.SUCCESS, 1, 1)
            assert not response.warnings
            assert {letter.code for letter in await letters_of(workers, 1)} == {MESSAGE_PREMATURE}

    play(story())


def test_what_a_key_of_the_deployment_itself_says_beforehand_counts_for_nothing_either(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with waiting(tmp_path, till) as (workers, program, _, run_id):
            ours = workers.stores[0]
            assert await ours.claims.revoke(run_id, CALL)
            for write in EARLY["a claim and that it was done"]:
                await write(ours, run_id)
            await approved(program, await program.result(run_id))
            assert (await rested(program, run_id)).terminal_code is Ending.SUCCESS
            assert till.begun == 1

    play(story())


def test_what_a_model_is_said_to_answer_before_it_is_asked_is_not_its_answer(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with waiting(tmp_path, till) as (workers, program, _, run_id):
            asker = await asyncio.to_thread(opened, tmp_path / "asker")
            admit(workers.stores[0], asker, "model", *workers.stores[1:])
            for command_id in ASKED:
                said = ModelSaid(command_id, ModelResult("A lie."))
                await report(encode_report(said), command_id=command_id)(asker, run_id)
            await approved(program, await program.result(run_id))
            response = await rested(program, run_id)
            assert (response.content, response.terminal_code) == ("Paid.", Ending.SUCCESS)
            assert {letter.code for letter in await letters_of(workers, 1)} == {MESSAGE_PREMATURE}
            await asker.close()

    play(story())


def test_what_a_tool_is_said_to_answer_before_it_is_asked_is_not_its_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        monkeypatch.setattr(division, "GRACE_MS", -59_500)
        bank = Bank(timeout_ms=60_000)
        async with crew(tmp_path / "ours", bank.kit()) as workers:
            await workers.drives()
            await workers.performs("model")
            program = await workers.program()
            await workers.performs("tool", concurrency=2)
            stranger = await asyncio.to_thread(opened, tmp_path / "theirs")
            admit(workers.stores[0], stranger, "tools", *workers.stores[1:])
            try:
                asked = await program.run(asking("Please pay."), workers.kit)
                no = encode_report(ToolAccounted(QUESTION, Happened.NO))
                for attempt in (1, 2, 3):
                    await word(ClaimWord.CLAIMED, attempt, QUESTION)(stranger, asked.run_id)
                    await report(no, command_id=QUESTION, attempt=attempt)(stranger, asked.run_id)
                await approved(program, asked)
                await until(lambda: bank.begun, "the tool is called")
                bank.paid = 1  # It is paid, and its worker does not tell.
                await report(b"", Came.LOST)(stranger, asked.run_id)
                response = await ended(program, asked.run_id)
                assert bank.asked, "the tool is asked"
                assert [made.status for made in response.tool_calls_made] == [CallStatus.COMMITTED]
            finally:
                bank.may_pay.set()
                await stranger.close()

    play(story())


def test_a_call_that_was_claimed_once_it_was_ordered_stays_in_doubt_when_its_worker_is_gone(tmp_path: Path) -> None:
    async def story() -> None:
        till = Till()
        till.may_pay.set()
        async with crew(tmp_path, till.kit()) as workers:
            await workers.drives()
            await workers.performs("model")
            program = await workers.program()
            run_id = await approved(program, await program.run(asking("Please pay."), workers.kit))
            gone = await workers.store()
            await until(lambda: gone.link.call_now(gone.link.jet.last("agent.errand.tool.>")), "it is sent")
            await word(ClaimWord.CLAIMED)(gone, run_id)
            await workers.performs("tool")
            await rested(program, run_id)
            (question,) = await program.archive.approvals(run_id)
            assert (question.purpose, till.begun) == (What.OUTCOME, 0)

    play(story())
