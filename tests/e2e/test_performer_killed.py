"""The process that performs a call which changes something is killed before, while and after it acts.

Before it has claimed the call, nothing has happened and everybody knows. Afterwards the call is in doubt: a tool that can be
asked is asked, one that takes a key is called again with the same one, and for any other a person is asked.
"""

import asyncio
from pathlib import Path

import pytest

from remit.backend.embedded.store import EmbeddedStore
from remit.core.run.approval import What
from remit.core.run.contract import CallStatus, SystemResponse
from remit.core.run.signals import Signal
from remit.orchestrate.executors.performers import Performers
from remit.orchestrate.facade import System
from remit.testing import KillAt
from tests.e2e import payment_kit
from tests.e2e.elsewhere import LoggedElsewhere
from tests.unit.orchestrate.house import approval, request, systems

pytestmark = pytest.mark.slow

# Where the process is killed, and how often the effect has happened by then.
IN_DOUBT = [(KillAt.CLAIMED, 0), (KillAt.ACTING, 0), (KillAt.ACTED, 1), (KillAt.DONE, 1)]


class Payment:
    """A run that pays with a tool, approved by a person; the process that pays is killed at a moment, once."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, tool: str, moment: str) -> None:
        self._folder, self._log = folder, folder / "kinds"
        monkeypatch.setenv(payment_kit.LEDGER_VARIABLE, str(folder / "ledger"))
        monkeypatch.setenv(payment_kit.TOOL_VARIABLE, tool)
        self._away = LoggedElsewhere(
            self._log, str(folder / "store"), payment_kit.__name__, dies_at=moment, over="ToolErrand"
        )
        monkeypatch.setattr(
            Performers, "perform", lambda performers, errand, _: self._away.perform(errand, performers.resources)
        )

    def told(self, said_of_outcome: Signal | None = None) -> SystemResponse:
        """How the run ended; where a person is asked what became of the call, they say this."""

        async def story() -> SystemResponse:
            async with systems(EmbeddedStore.open(self._folder / "store")) as (system,):
                run_id = (await system.run(request("pay"), payment_kit.kit())).run_id
                await self._answer(system, run_id, What.APPROVAL, Signal.APPROVE)
                await system.settle()
                if said_of_outcome is not None:
                    await self._answer(system, run_id, What.OUTCOME, said_of_outcome)
                    await system.settle()
                return await system.result(run_id)

        try:
            return asyncio.run(story())
        finally:
            self._away.close()
            assert self.lines.count("-ToolErrand") == 1

    async def _answer(self, system: System, run_id: str, purpose: What, kind: Signal) -> None:
        (question,) = await system.archive.approvals(run_id)
        assert question.purpose is purpose
        await system.signal(approval(question.id, kind))

    @property
    def lines(self) -> list[str]:
        """What was performed elsewhere, and over what its performer was killed."""
        return self._log.read_text().split()


@pytest.fixture(params=["pay", "pay_by_book"])
def once(request: pytest.FixtureRequest) -> str:
    """A tool whose effect must not happen twice."""
    tool: str = request.param
    return tool


def test_what_was_not_claimed_is_certainly_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: str) -> None:
    payment = Payment(tmp_path, monkeypatch, once, KillAt.RECEIVED)
    (call,) = payment.told().tool_calls_made
    assert (call.status, call.code) == (CallStatus.FAILED, "TOOL_UNAVAILABLE")
    assert call.error == f"tool '{once}' was not called: the process that performed it is gone"
    assert payment_kit.effects() == []
    assert payment.lines.count("ToolErrand") == 1
    assert "InquiryErrand" not in payment.lines


@pytest.mark.parametrize(("moment", "times"), IN_DOUBT)
def test_of_what_was_claimed_a_person_says_what_became(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, times: int
) -> None:
    payment = Payment(tmp_path, monkeypatch, "pay", moment)
    (call,) = payment.told(Signal.APPROVE if times else Signal.REJECT).tool_calls_made
    assert call.status is (CallStatus.COMMITTED if times else CallStatus.FAILED)
    assert len(payment_kit.effects()) == times
    assert payment.lines.count("ToolErrand") == 1


@pytest.mark.parametrize(("moment", "times"), IN_DOUBT)
def test_of_what_was_claimed_a_tool_with_books_says_what_became(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, times: int
) -> None:
    payment = Payment(tmp_path, monkeypatch, "pay_by_book", moment)
    (call,) = payment.told().tool_calls_made
    assert call.status is (CallStatus.COMMITTED if times else CallStatus.FAILED)
    assert len(payment_kit.effects()) == times
    assert payment.lines.count("ToolErrand") == 1
    assert "InquiryErrand" in payment.lines


@pytest.mark.parametrize(("moment", "times"), [(KillAt.RECEIVED, 0), *IN_DOUBT])
def test_a_tool_that_takes_a_key_is_called_again_with_the_same_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, times: int
) -> None:
    payment = Payment(tmp_path, monkeypatch, "pay_once", moment)
    (call,) = payment.told().tool_calls_made
    assert call.status is CallStatus.COMMITTED
    assert len(payment_kit.effects()) == times + 1
    assert len(set(payment_kit.effects())) == 1
    assert payment.lines.count("ToolErrand") == 2
