"""The runner: load, decide, append, dispatch. The only loop in the house.

Rule 1: a turn is written before anyone acts on it.
Rule 2: when another runner was faster, the run is brought up to date and the arrival decided anew.
Rule 3: an arrival that cannot be judged makes no turn.
Rule 4: a run's time never goes back, whatever the clock says.
"""

from remit.core.arrivals import Arrival
from remit.core.codec import decode_turn, encode_turn, hash_turn
from remit.core.commands import COMMANDS
from remit.core.events import Turn
from remit.core.failure import IllegalArrival
from remit.core.manifest import Manifest
from remit.core.storage import AppendConflict
from remit.kernel.apply import apply
from remit.kernel.decide import take_turn
from remit.kernel.state import RunState
from remit.orchestrate.facts import Facts, Kept
from remit.orchestrate.ports import Blobs, Clock, Dispatch, Journal, Live
from remit.orchestrate.reports import Report

# Each conflict means that someone else made progress, so a runner that loses this often in a row is one of too many.
CONFLICTS_MAX = 32


class Runner:
    """Drives runs over a backend."""

    def __init__(self, *, journal: Journal, blobs: Blobs, clock: Clock, dispatch: Dispatch) -> None:
        self.journal = journal
        self.blobs = blobs
        self.clock = clock
        self.dispatch = dispatch
        self.facts = Facts()

    async def start(self, manifest: Manifest) -> Live:
        """Begin a run."""
        live = Live(manifest.run_id, RunState())
        kept: Kept = []
        arrival = self.facts.started(manifest, kept)
        await self._keep(kept)
        await self._take(live, arrival)
        return live

    async def load(self, run_id: str) -> Live:
        """A run as its journal tells it. Nothing is dispatched."""
        live = Live(run_id, RunState())
        await self.catch_up(live)
        return live

    async def catch_up(self, live: Live) -> None:
        """Fold the turns that others have written."""
        for data in await self.journal.read(live.run_id, after=live.state.seq):
            turn = decode_turn(data)
            if turn.seq == live.state.seq + 1:
                apply(live.state, turn, hash_turn(data))

    async def drive(self, live: Live) -> None:
        """Take turns until the run has ended or nothing is under way that could move it."""
        while live.state.ending is None:
            report = await self.dispatch.receive(live)
            if report is None:
                return
            await self.advance(live, report)

    async def advance(self, live: Live, report: Report) -> Turn | None:
        """Take one turn, or None when the report cannot be judged: a duplicate, or no longer of interest."""
        kept: Kept = []
        try:
            arrival = self.facts.complete(live.state, report, kept)
            if kept:
                await self._keep(kept)
            return await self._take(live, arrival)
        except IllegalArrival:
            return None

    async def judge(self, live: Live, report: Report) -> Turn:
        """Take one turn, or raise IllegalArrival: for those who want to know why they were not heard."""
        kept: Kept = []
        arrival = self.facts.complete(live.state, report, kept)
        await self._keep(kept)
        return await self._take(live, arrival)

    async def _take(self, live: Live, arrival: Arrival) -> Turn:
        for _ in range(CONFLICTS_MAX):
            state = live.state
            turn = take_turn(state, arrival, max(state.at_ms, self.clock.now_ms()))
            data = encode_turn(turn)
            try:
                await self.journal.append(live.run_id, data, after=state.seq)
            except AppendConflict:
                await self.catch_up(live)
                continue
            if live.state.seq == turn.seq - 1:
                apply(live.state, turn, hash_turn(data))
            send = self.dispatch.send
            for decision in turn.decisions:
                if type(decision) in COMMANDS:
                    send(live, decision)  # type: ignore[arg-type]  # the set holds exactly the commands
            return turn
        raise AppendConflict(live.run_id, live.state.seq - 1, live.state.seq)

    async def _keep(self, kept: Kept) -> None:
        for digest, data in kept:
            await self.blobs.put(digest, data)
