"""Two systems on one store approve the same packet at once: the person who may not is told why, and no effect is doubled."""

import asyncio
from collections import Counter
from pathlib import Path
from uuid import uuid4

from remit.backend.embedded.store import EmbeddedStore
from remit.core.failure import ArrivalFault, Ending, RemitError
from remit.core.journal.commands import packet_version
from remit.core.limits.boundary import Boundary
from remit.core.limits.tools import ToolCategory
from remit.core.run.signals import Signal, UserSignal
from remit.kernel.state import RunState, questions
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit, Terms
from remit.tool.declare.decorator import tool
from tests.unit.orchestrate.house import Said, calls, request, scripted, systems

ROUNDS = 5
ONE_PERSON = Terms()
FOUR_EYES = Terms(boundary=Boundary("two", four_eyes=(ToolCategory.PAYMENT,)))
# What the second person is told: the question is settled, or not there any more, or the run has ended.
TOO_LATE = {"QUESTION_SETTLED"}


class Payments:
    """How often each payment was made, and kits that make them."""

    def __init__(self) -> None:
        self.made = Counter[str]()

    def kit(self) -> Kit:
        @tool(effect="write", category="payment")
        async def pay(to: str, idempotency_key: str) -> Said:
            """Pay a person."""
            self.made[idempotency_key] += 1
            return f"paid {to}"

        return scripted(calls("pay", to="bob"), {"text": "Paid."}, tools=[pay])


async def approved_at_once(
    payments: Payments, terms: Terms, both: list[System], *people: str
) -> tuple[list[str], RunState]:
    """The codes of those who were not heard when two systems approve what a run of the first one asks, and the run."""
    (one, other), kit = both, payments.kit()
    waiting = await one.run(request(), kit, terms)
    (question,) = questions(await one.state_of(waiting.run_id))
    assert waiting.waiting_for is not None
    assert question.packet is not None
    payload = {"packet_id": waiting.waiting_for.packet_ids[0], "packet": packet_version(question.packet)}
    told = [UserSignal(uuid4().hex, Signal.APPROVE, waiting.run_id, by, payload=payload) for by in people]
    outcomes = await asyncio.gather(
        one.signal(told[0], kit=kit), other.signal(told[1], kit=payments.kit()), return_exceptions=True
    )
    await one.settle()
    await other.settle()
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert all(isinstance(error, RemitError) for error in refused), refused
    codes = [str(error.code) for error in refused if isinstance(error, RemitError)]
    return codes, await one.state_of(waiting.run_id)


def test_of_two_that_approve_one_packet_at_once_one_wins_and_the_other_gets_a_code(tmp_path: Path) -> None:
    async def play() -> None:
        payments = Payments()
        async with systems(EmbeddedStore.open(tmp_path), EmbeddedStore.open(tmp_path)) as both:
            for _ in range(ROUNDS):
                (code,), run = await approved_at_once(payments, ONE_PERSON, both, "ann", "bob")
                assert code in TOO_LATE
                assert run.end.ending is Ending.SUCCESS
        assert list(payments.made.values()) == [1] * ROUNDS

    asyncio.run(play())


def test_of_two_people_at_once_both_count_and_the_call_is_made_once(tmp_path: Path) -> None:
    async def play() -> None:
        payments = Payments()
        async with systems(EmbeddedStore.open(tmp_path), EmbeddedStore.open(tmp_path)) as both:
            for _ in range(ROUNDS):
                codes, run = await approved_at_once(payments, FOUR_EYES, both, "ann", "bob")
                assert (codes, run.end.ending) == ([], Ending.SUCCESS)
        assert list(payments.made.values()) == [1] * ROUNDS

    asyncio.run(play())


def test_one_person_at_two_places_at_once_is_one_person(tmp_path: Path) -> None:
    async def play() -> None:
        payments = Payments()
        async with systems(EmbeddedStore.open(tmp_path), EmbeddedStore.open(tmp_path)) as both:
            codes, run = await approved_at_once(payments, FOUR_EYES, both, "ann", "ann")
            assert codes == [ArrivalFault.ALREADY_APPROVED]
            (question,) = questions(run)
            assert run.people.approvals == {question.id: ("ann",)}
        assert not payments.made

    asyncio.run(play())
