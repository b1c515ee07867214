"""Turns that are written for those who follow them, and nothing else of runs."""

import asyncio
from collections.abc import Callable

from remit.core.journal.arrivals import FeedbackGiven
from remit.core.journal.codec import encode_turn
from remit.core.journal.storage import Topic
from remit.core.journal.turn import Turn
from remit.core.record import replace
from remit.core.run.manifest import Origin, SessionLink
from remit.core.run.run_events import RunBelonging, whose_of
from remit.kernel.state import RunState
from remit.orchestrate.bus.bus import Bus
from remit.orchestrate.loop.durability import run_listing
from remit.orchestrate.ports import Store
from tests.unit.kernel.builders import manifest_of


class Written:
    """Runs on a store, written turn by turn; `a-child` is a child of `a`."""

    def __init__(self, store: Store, *, tenant_id: str = "", session_id: str = "") -> None:
        self.store = store
        self.order: list[tuple[str, int]] = []
        self.states: dict[str, RunState] = {}
        self._names = tenant_id, session_id

    @property
    def whose(self) -> dict[str, RunBelonging]:
        """Whose each run is."""
        for run_id in ("a", "b", "a-child"):
            self.state(run_id)
        return {run_id: whose_of(state.manifest) for run_id, state in self.states.items() if state.manifest is not None}

    def state(self, run_id: str) -> RunState:
        """The run, as far as those who are told of its turns look at it."""
        if run_id not in self.states:
            state = RunState()
            above, _, is_child = run_id.partition("-")
            parent, lineage = (Origin(above, "1.1"), (above,)) if is_child else (None, ())
            tenant_id, session_id = self._names
            plain = manifest_of()
            request = replace(plain.request, tenant_id=tenant_id, session_id=session_id)
            state.manifest = replace(plain, run_id=run_id, request=request, parent=parent, lineage=lineage)
            state.run_id = run_id
            self.states[run_id] = state
        return self.states[run_id]

    async def turn(
        self, run_id: str, bus: Bus | None = None, *, is_rung: bool = True, ordinal: int | None = None
    ) -> Turn:
        """Write the next turn of a run: here, so that the bus is told, or in another process, where a ring may be lost."""
        state = self.state(run_id)
        state.seq += 1
        assert state.manifest is not None
        if ordinal is not None and state.manifest.session is None:
            state.manifest = replace(state.manifest, session=SessionLink(ordinal))
        turn = Turn(state.seq, 1, b"", 3, FeedbackGiven("ada", f"{run_id} {state.seq}"))
        listing = run_listing(state.manifest, 1) if state.seq == 0 else None
        ring = getattr(self.store.bell, "ring", None)
        if not is_rung:
            self.store.bell.ring = _lost  # type: ignore[method-assign]
        try:
            await self.store.journal.append(run_id, encode_turn(turn), state.seq - 1, listing=listing)
        finally:
            if not is_rung:
                self.store.bell.ring = ring  # type: ignore[method-assign,assignment]
        self.order.append((run_id, turn.seq))
        if bus is not None:
            bus.turned(state, turn)
        return turn


async def come_true(condition: Callable[[], bool]) -> None:
    """Let others go on until something has come about; the caller has patience only for so long."""
    while not condition():  # noqa: ASYNC110  # what is waited for says nothing
        await asyncio.sleep(0)


def _lost(topic: Topic, word: bytes = b"") -> None:
    """It is not heard."""
