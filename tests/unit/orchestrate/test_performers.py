"""An errand whose performer is gone is performed again where that is safe, and not for ever."""

import pytest

from remit.core.failure import Ending
from remit.orchestrate.executors.errands import Errand
from remit.orchestrate.executors.performers import PERFORMERS_LOST_MAX, Performers
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.loop.claims import PerformerLost
from remit.orchestrate.setup.kit import Kit
from tests.unit.orchestrate.house import in_memory, request, scripted
from tests.unit.orchestrate.stage import play

perform = Performers.perform


@pytest.mark.parametrize("lost", [1, PERFORMERS_LOST_MAX - 1, PERFORMERS_LOST_MAX])
def test_a_model_is_asked_again_as_often_as_performers_may_be_lost(lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    errands: list[Errand] = []

    async def performed(self: Performers, errand: Errand, kit: Kit) -> Report:
        errands.append(errand)
        if len(errands) <= lost:
            raise PerformerLost
        return await perform(self, errand, kit)

    monkeypatch.setattr(Performers, "perform", performed)

    async def story() -> None:
        async with in_memory() as system:
            response = await system.run(request(), scripted({"text": "Here I am."}))
            assert response.terminal_code is Ending.SUCCESS

    play(story())
    # One that was lost too often broke, and is asked for again by its run as after any other failure.
    assert len({errand.command.id for errand in errands}) == 1 + (lost == PERFORMERS_LOST_MAX)
