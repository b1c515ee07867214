"""The runner: load, decide, append, dispatch. The only loop in the house.

Rule 1: a turn is written before any component acts on it.
Rule 2: when another runner was faster, the run is brought up to date and the report ruled on anew.
Rule 3: a report that cannot be ruled on makes no turn; only the newest state of the run may say so.
Rule 4: no secret stands in what is written: whatever looks like one is sealed before facts are made of it.
Rule 5: a run's time never goes back, whatever the clock says; when a timer has come, its moment has.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from remit.core.failure import IllegalArrival
from remit.core.journal.arrivals import CallProposed, CancelRequested, RunStarted, TimerFired, ToolReturned
from remit.core.journal.codec import decode_turn, encode_turn, hash_turn
from remit.core.journal.commands import CallTool, Command, SetTimer
from remit.core.journal.rulings import OutcomeContradicted
from remit.core.journal.storage import (
    AppendConflict,
    Barrier,
    BlobMissing,
    LeaseLost,
    Place,
    RunBehind,
    RunListing,
    StoreUnusable,
    Warrant,
)
from remit.core.journal.turn import Turn
from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import ToolCall
from remit.core.record import Text, replace
from remit.core.run.manifest import Manifest
from remit.core.work.goal import Task
from remit.kernel.decide import weigh
from remit.kernel.fold.apply import apply, opened_state
from remit.kernel.fold.derived import derived_of
from remit.kernel.state import NOT_BEGUN, RunState, pinned
from remit.kernel.tally import Tally
from remit.observe.linked_turns import Linked, linked_turns, references
from remit.orchestrate.bus.bus import Bus
from remit.orchestrate.executors.reports import HostProposed, ModelSaid, Report
from remit.orchestrate.executors.timer import cuts_off
from remit.orchestrate.facts.answer_evidence import compared_by, inline, long_evidence
from remit.orchestrate.facts.facts import Facts
from remit.orchestrate.facts.first_arrival import started
from remit.orchestrate.facts.sealer import Sealer
from remit.orchestrate.facts.texts import Kept, Read, text_reader
from remit.orchestrate.loop.durability import barrier_of, run_listing
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.outlet import Outlet
from remit.orchestrate.loop.patience import append_at_last, insist
from remit.orchestrate.loop.run_snapshots import restore_state
from remit.orchestrate.ports import Blobs, Clock, Journal, Snapshots
from remit.orchestrate.tenants.rates import UserRates

if TYPE_CHECKING:
    from remit.orchestrate.facts.gate_trace import Tracer

# What may end a run while calls of it are under way.
_CUTTING = frozenset({CancelRequested, TimerFired})
# Each conflict means that another process made progress, so a runner that loses this often in a row is one of too many.
CONFLICTS_MAX = 32
# So many runs that ended here are remembered: the next exchange of a session asks for the one before it, and the response of
# a run for those beneath it.
ENDED_REMEMBERED_MAX = 16


# A run, its next turn, the number of the turn before it, and what is kept beside it.
Append: TypeAlias = tuple[str, bytes, Place, Barrier | None, RunListing | None, Warrant | None, Sequence[Command]]


class Runner:
    """Drives runs over a backend."""

    def __init__(
        self,
        *,
        journal: Journal,
        blobs: Blobs,
        clock: Clock,
        dispatch: Outlet,
        snapshots: Snapshots | None = None,
        sealer: Sealer | None = None,
        bus: Bus | None = None,
    ) -> None:
        self.journal = journal
        self.blobs = blobs
        self.clock = clock
        self.dispatch = dispatch
        self.snapshots = snapshots
        self.sealer = sealer
        # Listeners of every turn, called after it was written and before any component acts on it.
        self.bus = bus
        self.facts = Facts()
        self.rates = UserRates()
        # Answers what a run asks, as far as a person has granted it beforehand.
        self.grants: Callable[[RunState], Awaitable[Report | None]] | None = None
        # Told of a call that was settled as not done and has returned after all, by its run and its command.
        self.on_contradicted: Callable[[str, str], None] | None = None
        # Runs of sessions and of families that ended here, the newest last; never the truth, which is the journal.
        self._ended: dict[str, RunState] = {}

    async def start(self, manifest: Manifest, live: Live | None = None) -> Live:
        """Begin a run, in a Live of the caller's or in a new one."""
        live = live or Live(manifest.run_id)
        kept: Kept = []
        manifest = manifest if self.sealer is None else self.sealer.manifest(manifest)
        arrival = started(manifest, kept)
        await self._keep(kept)
        read = text_reader(dict(kept))
        # What the gate cannot be told of refuses the run here, before anything of it is written.
        tracer = _tracer_of(arrival.manifest, read) if derived_of(arrival.manifest).is_traced else None
        turn = await self.rule_on(live, arrival)
        if tracer is not None and live.state.seq == turn.seq:
            tracer.retrace(turn, read)
            live.tracer = tracer
        return live

    async def load(self, run_id: str, live: Live | None = None) -> Live:
        """A run as its journal tells it, in a Live of the caller's or in a new one. Nothing is dispatched."""
        live = live or Live(run_id)
        later = None if self.snapshots is None else await restore_state(live, self.snapshots, self.journal)
        if later is None:
            await self.catch_up(live)
        else:
            _fold(live, *later)
        return live

    def remember_ended(self, state: RunState) -> None:
        """Keep the state of a run that ended here where it will be asked for, so that it need not be folded again."""
        manifest = pinned(state)
        if manifest.session is not None or manifest.parent is not None or state.children.runs:
            self._ended[state.run_id] = state
            if len(self._ended) > ENDED_REMEMBERED_MAX:
                del self._ended[next(iter(self._ended))]

    async def state_at_rest(self, run_id: str) -> RunState:
        """A run as its journal tells it, for those who only read: one that ended here is folded again only if it changed."""
        state = self._ended.get(run_id)
        if state is not None:
            latest = await self.journal.read(run_id, after=state.seq - 1)
            if [hash_turn(data) for data in latest] == [state.head]:
                return state
            self._ended.pop(run_id, None)
        return (await self.load(run_id)).state

    async def catch_up(self, live: Live) -> None:
        """Fold the turns that others have written. A journal that does not add up raises InvariantBroken."""
        head, seq = live.state.head, live.state.seq
        later = await self.journal.read(live.run_id, after=seq)
        _fold(live, linked_turns(live.run_id, later, after=seq, head=head), later.place)

    async def _catch_up_after_conflict(self, live: Live) -> None:
        """Catch up; raises where the journal has fewer turns than were folded, since what they did would be done again."""
        seq = live.state.seq
        await self.catch_up(live)
        if live.state.seq == seq and (turns := len(await self.journal.read(live.run_id))) <= seq:
            raise RunBehind(live.run_id, turns - 1, live.state.seq, "seen")

    async def drive(self, live: Live) -> None:
        """Take turns until the run has ended or nothing is under way that could move it.

        A drive that is cancelled, or raises, leaves a run that recover() takes up.
        """
        state, dispatch = live.state, self.dispatch
        try:
            while state.end.ending is None:
                # What was ordered here and has not begun is for the driver that the run has now.
                if live.is_taken_over:
                    raise LeaseLost(live.run_id)
                report, is_granted = await dispatch.receive(live), False
                if report is None and self.grants is not None:
                    report, is_granted = await self.grants(state), True
                if report is None:
                    return
                try:
                    await self.rule_on(live, report, insists=None)
                except IllegalArrival:
                    if is_granted:
                        return  # The run waits for a person all the same.
                    continue  # A duplicate, or no longer of interest.
        finally:
            dispatch.forget(live)

    async def advance(self, live: Live, report: Report) -> Turn | None:
        """Take one turn, or None when the report cannot be ruled on: a duplicate, or no longer of interest."""
        try:
            return await self.rule_on(live, report)
        except IllegalArrival:
            return None

    async def rule_on(self, live: Live, report: Report, entry: int = 0, *, insists: bool | None = False) -> Turn:
        """Take one turn, or raise IllegalArrival: for those who want to know why they were not heard.

        `entry` is the number in the inbox that the report came from, 0 for none. With `insists` it waits
        until a store that cannot be written just now can be; with None where the report tells of an effect.
        """
        conflicts = 0
        if type(report) in _CUTTING:
            report = await self._cut(live, report)
        report = report if self.sealer is None else self.sealer.report(live, report)
        while conflicts < CONFLICTS_MAX:
            state, warrant = live.state, live.warrant
            seq = state.seq
            if live.is_taken_over:
                raise LeaseLost(live.run_id)
            kept: Kept = []
            tracer = await self.tracer(live) if state.derived.is_traced else None
            try:
                task = compared_by(state, report) if type(report) is ModelSaid else None
                read = inline if task is None else text_reader(await self._evidence(state, task))
                tally = self._weighed(live, report, kept, tracer, read)
            except IllegalArrival:
                await self.catch_up(live)
                if live.state.seq == seq:
                    raise
                conflicts += 1
                continue
            turn = tally.turn if not entry else replace(tally.turn, heard=entry)
            data = encode_turn(turn)
            barrier = barrier_of(state, turn, entry)
            # Until its first turn is folded, a run has a manifest only in the state that it was decided in.
            listing = None if seq >= 0 else run_listing(pinned(tally.state), tally.at_ms)
            written = (live.run_id, data, live.place, barrier, listing, warrant, tally.issued)
            try:
                place = await self._write(kept, written, insists, (state, report))
            except AppendConflict:
                await self._catch_up_after_conflict(live)
                conflicts += 1
                continue
            # Another caller that holds this run may have read the turn as soon as it was written, and gone on.
            is_latest = live.state.seq == seq
            if is_latest:
                if seq < 0:
                    # A run that begins goes on in the state that was opened to decide on its start.
                    live.state = state = tally.state
                apply(state, turn, hash_turn(data))
                live.place = place
                if tracer is not None:
                    live.tracer = _followed(tracer, turn, kept)
            self._act_on(live, tally, turn, is_latest=is_latest)
            return turn
        raise AppendConflict(live.run_id)

    def _weighed(self, live: Live, report: Report, kept: Kept, tracer: "Tracer | None", read: Read) -> Tally:
        """What is decided about a report as of now, or IllegalArrival."""
        state = live.state
        arrival = self.facts.complete(state, report, kept, tracer, read)
        now_ms = self.clock.now_ms() if live.moment_ms is None else live.moment_ms
        at_ms = now_ms if now_ms > state.at_ms else state.at_ms  # noqa: FURB136  # calling max() takes longer
        if live.reached_ms or type(arrival) is TimerFired:
            at_ms = max(at_ms, live.reached_ms, _due_at_ms(state, arrival))
        if state.derived.user_rates:
            arrival = self.rates.counted(state, arrival, at_ms)
        return weigh(state, arrival, at_ms)

    async def proposed(self, live: Live, call: ToolCall) -> CallProposed:
        """A call of an agent elsewhere as a turn would bring it, before the gate has judged it; nothing is written."""
        report = HostProposed(call) if self.sealer is None else self.sealer.report(live, HostProposed(call))
        assert isinstance(report, HostProposed), "what is sealed stays a proposed call"
        said, tracer = report.call, await self.tracer(live)
        resolved = ToolCall(said.id, said.name, tracer.resolved(said.arguments))
        arrival = self.facts.complete(live.state, HostProposed(resolved), [])
        assert isinstance(arrival, CallProposed), "facts make a proposed call of it"
        return arrival

    def _act_on(self, live: Live, tally: Tally, turn: Turn, *, is_latest: bool) -> None:
        """Tell of a turn that was written, and have its commands performed."""
        state = live.state
        if state.derived.user_rates:
            self.rates.settle(state, tally.issued, tally.at_ms)
        if live.follow is not None:
            live.follow(turn)
        if self.bus is not None:
            self.bus.turned(state, turn)
        if type(turn.arrival) is ToolReturned and self.on_contradicted is not None and tally.manifest.host is None:
            for decision in turn.decisions:
                if type(decision) is OutcomeContradicted:
                    self.on_contradicted(live.run_id, decision.command_id)
        # What an agent elsewhere is to do, it is told by the guard.
        for command in tally.issued if tally.manifest.host is None else ():
            if is_latest or (_is_wanted(state, command) and not live.is_taken_over):
                self.dispatch.send(live, command)

    async def _cut(self, live: Live, report: Report) -> Report:
        """A report that may end the run, with the calls that it keeps from beginning: of others that is unknown."""
        state = live.state
        assert isinstance(report, CancelRequested | TimerFired)
        if state.manifest is not None and state.manifest.host is not None:
            return report  # Nothing here keeps an agent elsewhere from a call that it was allowed.
        if isinstance(report, TimerFired):
            timer = state.commands.open.get(report.command_id)
            due_at_ms = max(live.reached_ms, _due_at_ms(state, report), self.clock.now_ms())
            if not isinstance(timer, SetTimer) or not cuts_off(state, timer, due_at_ms):
                return report
        calls = [
            command for command in state.commands.open.values() if isinstance(command, CallTool) and command.mutating
        ]
        unsure = [
            call.id
            for call in calls
            if call.id not in state.commands.doubted and call.id not in state.commands.withheld
        ]
        revoked = [name for name in unsure if await self.dispatch.revoke(live.run_id, name)]
        return replace(report, unbegun=tuple(revoked)) if revoked else report

    async def _write(self, kept: Kept, turn: Append, insists: bool | None, of: tuple[RunState, Report]) -> Place:  # noqa: FBT001  # asked for once a turn
        """Write the texts of a turn and the turn, or keep both until the store can be written."""
        try:
            if kept:
                await self._keep(kept)
            return await self.journal.append(*turn)
        except StoreUnusable:
            if not (_tells_of_an_effect(*of) if insists is None else insists):
                raise
            await insist(partial(self._keep, kept), turn[0])
            return await append_at_last(self.journal, *turn)

    async def labels_of(self, state: RunState) -> tuple[str, ...]:
        """Labels of what a run has read, the worst where it was not traced; those it began with are among them."""
        manifest = pinned(state)
        began_with = manifest.read if manifest.session is None else (*manifest.read, *manifest.session.read)
        if state.derived.is_traced and manifest.boundary.authority is not None:
            return (await self.tracer(Live(state.run_id, state))).labels
        called = {trace.tool for trace in state.calls.made.values()}
        reads = {name: tool.trust.reads for name, tool in state.derived.tools.items() if name in called}
        return tuple(sorted({*began_with, *(read for read in reads.values() if read is not Reads.PUBLIC)}))

    async def tracer(self, live: Live) -> "Tracer":
        """The gate that follows a traced run, up to its latest turn."""
        state = live.state
        assert state.manifest is not None, "only a run that has started is traced"
        tracer = live.tracer
        if tracer is None or not tracer.is_at(state.seq):
            turns = [decode_turn(data) for data in (await self.journal.read(live.run_id))[: state.seq + 1]]
            live.tracer, _ = await self.retraced(turns)
        assert live.tracer is not None, "it was just made"
        return live.tracer

    async def retraced(self, turns: Sequence[Turn], until: int | None = None) -> "tuple[Tracer, Read]":
        """The gate of a run that has followed these turns up to one, and what reads the texts of all of them."""
        from remit.orchestrate.facts.gate_trace import traced

        started_by, read = turns[0].arrival, text_reader(await self._texts(turns))
        assert isinstance(started_by, RunStarted), "the first turn of a run is its start"
        return traced(started_by.manifest, turns[:until], read), read

    async def _evidence(self, state: RunState, task: Task) -> dict[bytes, bytes]:
        """The long texts that an answer is compared with, as far as they are kept."""
        texts: dict[bytes, bytes] = {}
        for reference in long_evidence(state, task):
            with suppress(BlobMissing):  # Redacted: then nothing is compared.
                texts[reference.digest] = await self.blobs.get(reference.digest)
        return texts

    async def _texts(self, turns: Iterable[Turn]) -> dict[bytes, bytes]:
        """The long texts that the gate is shown of these turns, as far as they are kept."""
        from remit.orchestrate.facts.gate_trace import part_shown

        texts: dict[bytes, bytes] = {}
        for turn in turns:
            for reference in references(part_shown(turn)):
                with suppress(BlobMissing):  # Redacted: the gate learns that it is gone.
                    texts[reference.digest] = await self.blobs.get(reference.digest)
        return texts

    async def text(self, text: Text) -> str:
        """A text of a run in full, wherever it lives."""
        return text if isinstance(text, str) else (await self.blobs.get(text.digest)).decode()

    async def _keep(self, kept: Kept) -> None:
        for digest, data in kept:
            await self.blobs.put(digest, data)


def _tracer_of(manifest: Manifest, read: Read) -> "Tracer":
    # Only runs whose calls pass the gate pay for it.
    from remit.orchestrate.facts.gate_trace import Tracer

    return Tracer(manifest, read)


def _followed(tracer: "Tracer", turn: Turn, kept: Kept) -> "Tracer | None":
    """The tracer after a turn; None when a text of it is not at hand, so that it is made again from all that is kept."""
    was_gone = tracer.is_gone
    tracer.follow(turn, text_reader(dict(kept)))
    return tracer if tracer.is_gone is was_gone else None


def _fold(live: Live, steps: Sequence[Linked], place: Place) -> None:
    """Bring a run up to date. The links were all checked: a turn is vouched for by the one that follows it."""
    if steps and live.state is NOT_BEGUN:
        began = steps[0].turn.arrival
        live.state = opened_state(began, steps[0].turn.at_ms) if isinstance(began, RunStarted) else RunState()
    for step in steps:
        if step.turn.seq == live.state.seq + 1:  # Another caller that holds this run may have folded it meanwhile.
            apply(live.state, step.turn, step.link)
    # Unless another caller has gone further meanwhile.
    if not steps or steps[-1].turn.seq == live.state.seq:
        live.place = place


def _due_at_ms(state: RunState, arrival: object) -> int:
    """The moment that has come with a timer, although the clock may have been set back; 0 of anything else."""
    timer = state.commands.open.get(arrival.command_id) if isinstance(arrival, TimerFired) else None
    return timer.due_at_ms if isinstance(timer, SetTimer) else 0


def _tells_of_an_effect(state: RunState, report: Report) -> bool:
    """Whether a report says what became of a call that changes something: nothing else will ever tell."""
    command = state.commands.open.get(getattr(report, "command_id", ""))
    return isinstance(command, CallTool) and command.mutating


def _is_wanted(state: RunState, command: Command) -> bool:
    """Whether a command stands although another caller went on with the run while its turn was being written."""
    return command in state.commands.open.values() or command in state.commands.parting
