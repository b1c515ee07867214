"""Tells the wire what happens in runs, wherever they are driven: events, replies to users, and the two buckets.

Rule 1: it follows the bus, in the order in which turns were written, from where it stood; nothing is told of a turn that was
        not written, and nothing decides on these messages.
Rule 2: whatever is told has the same key when it is told again, so a gateway that was killed may begin where it last noted.
Rule 3: the buckets are a view. Where it is unknown how far they go, every run is folded from its turns and entered anew.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from remit.core.failure import RemitError, RequestRejected
from remit.core.journal.commands import AskHuman, CallModel
from remit.core.journal.rulings import RunEnded
from remit.core.journal.storage import START, StoreUnusable
from remit.core.journal.turn import Turn
from remit.core.record import Record, digest_of
from remit.core.run.inference import ModelRequest
from remit.core.run.lifecycle import AgentRole, LoopState
from remit.core.run.messages import Message
from remit.core.run.run_events import ALL, CURSOR_INVALID, EventKind, RunEvent
from remit.core.run.signals import packet_id
from remit.kernel.state import RunState, loop_state, pinned
from remit.observe.logs import NO_RUN, run_fields
from remit.observe.steps import PerformedStep
from remit.orchestrate.bus.subscription import Subscription
from remit.orchestrate.exchange.call_shape import shaped_request, shown_at
from remit.orchestrate.facade import System
from remit.orchestrate.gateway.broker import Broker
from remit.orchestrate.gateway.folded_loops import FoldedLoop, FoldedLoops
from remit.orchestrate.gateway.told_mark import ToldMark
from remit.orchestrate.history.fork_run import awaits_resume
from remit.wire.call_events import plainly_asked
from remit.wire.message_records import AgentIdentity, AgentRequest, UserResponse, WireToolCall, WireToolResult
from remit.wire.payloads import posted, trajectory_entry, written
from remit.wire.projections import is_copied, loop_entity, trajectory_of, turn_messages
from remit.wire.replies import Destination, destination_of, progressed, question_response, reply_of, streamed
from remit.wire.subjects import LOOPS_BUCKET, TRAJECTORIES_BUCKET, token_of

# By which key the agents that loops run as are known, by their roles.
Identities: TypeAlias = Callable[[AgentRole], AgentIdentity]

# Where it is noted how far everything was told.
CURSORS_BUCKET, TOLD = "AGENT_CURSORS", "told"
# What happened is in the journal for good; a listener has a day to hear of it here.
KEPT_S = 24 * 3_600
# A request holds all that its model is shown, and a result all that was read: those who follow calls follow them closely.
CALL_KEPT_S = 3_600
# A piece of an answer means nothing once the answer is there.
PIECE_KEPT_S = 60
# Events that are told before it is noted how far everything was.
BATCH_MAX = 64
# How many runs are entered anew at once.
REBUILT_AT_ONCE = 8

_log = logging.getLogger(__name__)


class LoopTeller:
    """Tells of every run of a system until it is stopped."""

    def __init__(
        self,
        system: System,
        broker: Broker,
        on_told: Callable[[RunState], None],
        mark: ToldMark,
        identities: Identities | None = None,
    ) -> None:
        self._system, self._broker, self._identities, self._mark = system, broker, identities, mark
        # Called with a run as it stands, before anything of it is published.
        self._on_told = on_told
        self.loops = FoldedLoops(system.store.journal, system.text)
        # How many pieces of the answer that follows a turn were told, by run.
        self._pieces: dict[str, tuple[int, int]] = {}
        # How many runs were entered anew when it began.
        self.rebuilt = 0

    async def run(self, ready: Callable[[], None]) -> None:
        """Tell until cancelled; `ready` is called once nothing that happens from then on is missed."""
        ear = await self._standing()
        ready()
        try:
            while True:
                events: list[RunEvent] = []
                while len(events) < BATCH_MAX and (event := await ear.taken()) is not None:
                    events.append(event)
                if events:
                    await self._tell_all(events)
                else:
                    await ear.more()
        finally:
            ear.close()

    async def _standing(self) -> Subscription:
        """The events from where everything was told; where that is unknown, from now on, with the buckets made anew."""
        noted = self._mark.noted_in(await self._broker.get(CURSORS_BUCKET, TOLD) or b"")
        if noted:
            try:
                return await self._system.subscribe(ALL, since=noted, chunks=True).__aenter__()
            except RequestRejected as error:
                if error.code != CURSOR_INVALID:
                    raise
                _log.warning("the servers hold less than was told of: %s", error, extra=NO_RUN)
        end = await self._system.store.feed.end()
        ear = self._system.subscribe(ALL, since=START if end == START else f"place:{end}", chunks=True)
        await self.rebuild()
        if end != START:
            await self._broker.put(CURSORS_BUCKET, TOLD, self._mark.note(f"place:{end}"))
        return ear

    async def rebuild(self) -> None:
        """Enter every run anew, from its turns."""
        limit = asyncio.Semaphore(REBUILT_AT_ONCE)

        async def enter(run_id: str) -> None:
            async with limit:
                await self._careful(run_id, self._entered_anew(run_id))

        runs = [entry.run_id for entry in await self._system.archive.runs(with_children=True)]
        await asyncio.gather(*(enter(run_id) for run_id in runs))
        self.rebuilt = len(runs)

    async def _tell_all(self, events: list[RunEvent]) -> None:
        moved: dict[str, None] = {}
        cursor = ""
        for event in events:
            if event.kind is EventKind.TURN:
                cursor, moved[event.run_id] = event.cursor, None
                await self._careful(event.run_id, self._tell_turns(event.run_id, event.seq))
            elif event.kind is EventKind.SAID:
                await self._careful(event.run_id, self._tell_piece(event))
        for run_id in moved:
            if (loop := self.loops.at_hand(run_id)) is not None and loop.state.seq >= 0:
                await self._careful(run_id, self._entered(loop, f"{run_id}:{loop.state.seq}"))
        if cursor:
            await self._broker.put(CURSORS_BUCKET, TOLD, self._mark.note(cursor))

    async def _careful(self, run_id: str, telling: Awaitable[None]) -> None:
        """Tell of a run; what cannot be told of one keeps the others from nothing."""
        is_told = False
        try:
            await telling
            is_told = True
        except RemitError as error:
            if isinstance(error, StoreUnusable):
                raise
            _log.warning("what happened cannot be told: %s", error, extra=run_fields(run_id, None))
        finally:
            # Where it is told again, from where everything was, its turns are folded again.
            if not is_told:
                self.loops.forget(run_id)

    async def _tell_turns(self, run_id: str, seq: int) -> None:
        """Tell of a turn of a run; those before it are folded where they are not remembered."""
        loop, data = await self.loops.upto(run_id, seq)
        for turn in loop.folded(data):
            if turn.seq == seq:
                await self._tell_turn(loop, turn)

    async def _tell_turn(self, loop: FoldedLoop, turn: Turn) -> None:
        state, reading = loop.state, loop.reading
        self._on_told(state)
        told = await loop.with_texts(lambda text: list(turn_messages(turn, state, reading, text=text, asked=asked_in)))
        for number, message in enumerate(told):
            keep_s = CALL_KEPT_S if isinstance(message, AgentRequest | WireToolCall | WireToolResult) else KEPT_S
            await self._publish(message, f"{loop.run_id}:{turn.seq}:{number}", keep_s)
        to = self._destination(loop)
        # Of a run that was forked, the user was told what was copied when it happened.
        if to is not None and not is_copied(turn, state) and not awaits_resume(state):
            for reply in await self._replies(loop, turn, to):
                await self._publish(reply, reply.response_id)

    async def _replies(self, loop: FoldedLoop, turn: Turn, to: Destination) -> list[UserResponse]:
        """What the user of a run is told of a turn: what it asks, how it stands, how it ended."""
        state = loop.state
        now = loop_state(state)
        before, loop.told_state = loop.told_state, now.value
        if any(isinstance(decision, RunEnded) for decision in turn.decisions):
            return [reply_of(await self._system.result(loop.run_id), to, at_ms=turn.at_ms)]
        new = {packet_id(loop.run_id, one.id) for one in turn.decisions if isinstance(one, AskHuman)}
        if new:
            open_now = await self._system.archive.approvals(loop.run_id)
            return [question_response(one, to, at_ms=turn.at_ms) for one in open_now if one.id in new]
        if now.value == before or now is LoopState.AWAITING_APPROVAL:
            return []
        return [progressed(now.value, to, run_id=loop.run_id, seq=turn.seq, at_ms=turn.at_ms)]

    async def _tell_piece(self, event: RunEvent) -> None:
        """Tell the user of a run what its model is saying."""
        loop = self.loops.at_hand(event.run_id) or await self.loops.whole(event.run_id)
        if loop.state.seq < 0:
            return
        to = self._destination(loop)
        if to is None or not event.text:
            return
        seq, count = self._pieces.get(event.run_id, (event.seq, 0))
        count = count + 1 if seq == event.seq else 1
        self._pieces[event.run_id] = (event.seq, count)
        at_ms = max(loop.state.at_ms, 1)
        piece = streamed(event.text, to, run_id=event.run_id, seq=event.seq, number=count, at_ms=at_ms)
        await self._publish(piece, piece.response_id, keep_s=PIECE_KEPT_S)

    async def _entered_anew(self, run_id: str) -> None:
        await self._entered(await self.loops.whole(run_id), "")

    async def _entered(self, loop: FoldedLoop, key: str) -> None:
        """Enter a run into both buckets as it stands."""
        state, reading, name = loop.state, loop.reading, token_of(loop.run_id)
        identity = None if self._identities is None else self._identities(pinned(state).role)
        entity = await loop.with_texts(lambda text: loop_entity(state, reading, text=text, identity=identity))
        await self._broker.put(LOOPS_BUCKET, name, written(entity), key=key)
        way = await loop.with_texts(lambda text: trajectory_of(state, reading, text=text, is_full=True, shown=shown_in))
        entry, steps = trajectory_entry(way)
        if steps:
            await self._system.store.blobs.put(digest_of(steps), steps)
        await self._broker.put(TRAJECTORIES_BUCKET, name, entry, key=key)
        if state.end.ending is not None:
            self._pieces.pop(loop.run_id, None)

    def _destination(self, loop: FoldedLoop) -> Destination | None:
        manifest = pinned(loop.state)
        return destination_of(manifest.request, loop.run_id, manifest.principal)

    async def _publish(self, message: Record, key: str, keep_s: int = KEPT_S) -> None:
        await self._broker.publish(self._mark.marked(posted(message)), key=key, keep_s=keep_s)


def asked_in(state: RunState, command: CallModel) -> ModelRequest:
    """What a command asks of a model; the state is that after the turn that orders it."""
    return shaped_request(plainly_asked(state, command), state)[0]


def shown_in(state: RunState, step: PerformedStep, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """What a model call of a run was shown of the conversation before it."""
    graph = state.derived.graph
    ask = None if graph is None or step.node not in graph.index else graph.nodes[graph.index[step.node]].ask
    if ask is None:
        return messages
    began = len(pinned(state).request.messages) + (len(messages) - step.messages)
    return shown_at(messages, began, ask)
