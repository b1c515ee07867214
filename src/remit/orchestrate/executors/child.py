"""Children: a run beneath another, started, awaited, cancelled; and forks, which have no parent.

Rule 1: a child's id follows from the command that starts it, so starting it twice takes up the one there is.
Rule 2: a child that only waits for people is left alone, and its parent is told that it waits.
Rule 3: a cancel reaches a child as a cancel of its own, so that it ends properly and cancels its own children.
Rule 4: a child that another process drives is neither lost nor out of reach: its end is waited for, and a cancel is
        left in its inbox.
Rule 5: a child or a fork that was deleted, or that only the log of heads remembers, never begins again: what it did may
        not be done twice.
Rule 6: a child has the time that its parent has left when the child begins, not when it was ordered.
"""

import asyncio
import logging
from functools import partial

from remit.core.failure import Ending, IllegalArrival, RequestRejected
from remit.core.journal.arrivals import CancelRequested, ChildLost, ChildSuspended, ResumeRequested
from remit.core.journal.codec import decode_turn, encode_signal, from_json
from remit.core.journal.commands import CancelCommand, ForkRun, StartChild, place_in_journal
from remit.core.journal.signing import is_deletion_signed
from remit.core.journal.storage import LeaseLost, RunHeld
from remit.core.record import replace
from remit.core.run.manifest import EarlierEffect, Manifest
from remit.core.run.messages import Message, user_message
from remit.core.run.signals import Signal, UserSignal
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.core.work.goal import JUDGE_MARK
from remit.core.work.graph import Node, schema_text
from remit.core.work.orders import LeasedOrders
from remit.core.work.plan import ASK_PLANNER
from remit.kernel.budget.wall_clock import deadline_beneath, waited_by
from remit.kernel.results.endings import denied_by
from remit.kernel.results.notices import correction
from remit.kernel.results.proven_effects import LEFT_MAX, all_left, cut_off_beneath, left_by, refused_by
from remit.kernel.state import RunState, graph_of_run, pinned, waiting_for
from remit.observe.logs import run_fields
from remit.observe.views.execution import MORE_TIME, NOT_AGAIN, run_usage, why_ended
from remit.orchestrate.executors.reports import ChildSaid, Report
from remit.orchestrate.facts.order_leases import orders_used
from remit.orchestrate.history.fork_run import begin_fork, child_begun, effects_of, is_settled, origin_of
from remit.orchestrate.loop.driver import Driver
from remit.orchestrate.loop.hub import Hub
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.offspring import (
    child_manifest,
    judge_request,
    observed_by,
    replica_request,
    spent_by,
    step_request,
)
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.planned_graph import PLAN, PLANNED, PLANNER, STEPS, Planned
from remit.orchestrate.patterns.step_values import shown_to_model
from remit.orchestrate.patterns.structured_graph import structured_graph
from remit.orchestrate.ports import HeadLog, Inbox
from remit.validate.rule_set import SemanticCheck
from remit.validate.semantic import ask_of

# Whom a child hears a cancel from.
PARENT = "parent"
# How often a parent looks whether a child that another process drives can be taken up.
HELD_POLL_MS = 100
# How long a fork is offered to its holder: copying takes that long only where a process hangs.
FORK_WAIT_MS_MAX = 10_000

_log = logging.getLogger(__name__)


class ChildExecutor:
    """Performs StartChild, CancelCommand and ForkRun with the hub that drives all runs of this process."""

    def __init__(self, hub: Hub, inbox: Inbox, log: HeadLog) -> None:
        self._hub = hub
        self._inbox = inbox
        self._log = log

    async def start(self, live: Live, command: StartChild) -> Report:
        """Have a child run until it ends or waits for people."""
        while True:
            driver = await self._driver_at_last(live, command)
            if driver is None:
                return ChildLost(command.id)
            driver.is_awaited = True
            try:
                state = await self._hub.at_rest(driver)
                break
            except LeaseLost:
                continue  # Another process drives it on, and is waited for.
            finally:
                driver.is_awaited = False
        if state.end.ending is None:
            # A child that a person paused waits under no code; that person has to look after it.
            return ChildSuspended(command.id, waiting_for(state) or Ending.REVIEW_REQUIRED)
        return await self._ended(live, command, state)

    async def cancel(self, live: Live, command: CancelCommand) -> None:
        """Tell a child to end."""
        await self.end(command.run_id, command.id)

    async def end(self, run_id: str, signal_id: str) -> None:
        """Tell a run to end in the name of its parent: here, or through its inbox where another process drives it."""
        try:
            await self._hub.note(run_id, CancelRequested(PARENT))
        except IllegalArrival:
            return  # It has ended already, or never began.
        except RunHeld:
            await self._inbox.put(run_id, encode_signal(UserSignal(signal_id, Signal.CANCEL, run_id, PARENT)))

    async def carry_out(self, live: Live, command: ForkRun) -> None:
        """Make the fork that a retry orders. Where its kit is not known here, the sender of the retry makes it, or learns why."""
        try:
            await self.fork(live, command)
        except RequestRejected as error:
            # Of an order from before a crash, no sender is left.
            if not live.is_ordered_here(command):
                raise
            fields = run_fields(live.run_id, live.state, command_id=command.id)
            _log.info("fork %s is left to the sender of the retry: %s", command.run_id, error, extra=fields)

    async def fork(self, live: Live, command: ForkRun) -> None:
        """Make the fork that a retry orders and let it go on, unless that was done. Forking it twice forks it once."""
        runner = self._hub.runner
        # Asked for at once: its origin has ended and is about to be let go, and its kit with it.
        kit = self._hub.known_kit(live.run_id)
        if await self._was_there(live, command):
            return
        origin = origin_of(live.run_id, command, runner.clock.now_ms())
        copy = partial(begin_fork, runner.journal, origin, command.run_id, ())
        loop = asyncio.get_running_loop()
        until_s = loop.time() + FORK_WAIT_MS_MAX / 1000
        while loop.time() < until_s:
            if await is_settled(runner, command.run_id, command.at_seq):
                return
            if kit is not None:
                self._hub.lend(command.run_id, kit)
            try:
                await self._hub.fork(command.run_id, ResumeRequested(command.by), copy)
            except RunHeld:
                # Another process makes it, or tells it something, and may be gone before it has resumed it.
                await asyncio.sleep(HELD_POLL_MS / 1000)
                continue
            return

    async def _driver_at_last(self, live: Live, command: StartChild) -> Driver | None:
        """The driver of the child here, once no other process drives it; None when it was deleted.

        The deadline of the parent bounds the wait.
        """
        while True:
            try:
                return await self._driver(live, command)
            except RunHeld:
                await asyncio.sleep(HELD_POLL_MS / 1000)

    async def _driver(self, live: Live, command: StartChild) -> Driver | None:
        hub = self._hub
        if command.run_id in hub.drivers or await hub.runner.journal.read(command.run_id):
            return await hub.take_up(command.run_id, hub.kit_of(live.run_id))
        if await self._was_there(live, command):
            return None
        manifest = await self._manifest(live, command)
        try:
            return await hub.begin(manifest, hub.kit_of(live.run_id))
        except IllegalArrival:  # Another process began it at the same moment.
            return await hub.take_up(command.run_id, hub.kit_of(live.run_id))

    async def _manifest(self, live: Live, command: StartChild) -> Manifest:
        """What the child is started with, as the node that declares it says, or as a chat about its prompt."""
        parent, graph = pinned(live.state), graph_of_run(live.state)
        node = graph.nodes[graph.index[command.node]] if command.node else None
        now_ms = max(live.state.at_ms, self._hub.runner.clock.now_ms())
        deadline = deadline_beneath(live.state, now_ms, 0 if node is None else node.timeout_ms)
        command = replace(command, deadline_at_ms=deadline)
        if command.kind.startswith(JUDGE_MARK):
            return await self._judge(live, command)
        leased = await self._lease_of(live, command)
        if node is None or node.inner is None:
            return child_manifest(parent, command, chat_graph(), read=_read_by(live), leased=leased)
        if node.feed is not None and node.feed.step_type == PLANNED:
            made = from_json(await self._hub.runner.text(command.prompt), Planned)
            manifest = child_manifest(parent, command, made.graph, parent.request, read=_read_by(live), leased=leased)
            return replace(manifest, plan=made.trace)
        # What people said meanwhile is for the next model that is asked, and here the children ask.
        said_since = (*_plan_said(live.state), *live.state.talk.pending)
        if node.feed is not None:
            fed = shown_to_model(command.kind, await self._hub.runner.text(command.prompt))
            told = (correction(command.problems),) if command.problems else ()
            request = step_request(parent.request, node, (*fed, *told, *said_since))
        elif node.prompt:
            request = step_request(parent.request, node, (user_message(node.prompt), *said_since))
        else:
            request = replica_request(
                parent.request, await self._hub.runner.text(live.state.talk.ephemeral), said_since
            )
            place = _place_of(live.state, command)
            return child_manifest(
                parent, command, node.inner, request, replica=place, read=_read_by(live), leased=leased
            )
        earlier = () if node.feed is None else await self._done_before(live, node)
        return child_manifest(parent, command, node.inner, request, read=_read_by(live), leased=leased, earlier=earlier)

    async def _lease_of(self, live: Live, command: StartChild) -> LeasedOrders | None:
        """The orders that a child may carry out, as they were when it was ordered."""
        if not live.state.derived.is_traced:
            return None
        return (await self._hub.runner.tracer(live)).leases.get(command.id)

    async def _done_before(self, live: Live, node: Node) -> tuple[EarlierEffect, ...]:
        """What earlier attempts at a step changed, or may have: it is tried again, and nothing of that is done again unasked."""
        tried = [child for child in live.state.children.ended if child.node == node.name]
        journal = self._hub.runner.journal
        begun = [await child_begun(journal, live.state, child.command_id) for child in tried]
        done = [await effects_of(journal, run_id) for run_id in begun]
        return tuple([effect for effects in done for effect in effects])

    async def _judge(self, live: Live, command: StartChild) -> Manifest:
        """What a judge is started with: the question of its criterion, the answer, and the evidence there was for it."""
        parent = pinned(live.state)
        assert parent.goal is not None, "only a goal asks for judges"
        name = command.kind.removeprefix(JUDGE_MARK)
        question = next(criterion.judge for criterion in parent.goal.criteria if criterion.name == name)
        answer, context = (
            await self._hub.runner.text(command.prompt),
            await self._hub.runner.text(live.state.talk.ephemeral),
        )
        evidence = (Candidate(context, "context", 1.0, ScoreMaker.RETRIEVAL),) if context else ()
        asked = ask_of(SemanticCheck(name, question), answer, evidence=evidence)
        request = judge_request(parent.request, asked.messages, asked.schema)
        graph = structured_graph(schema_text(asked.schema), is_prepared=True)
        return child_manifest(parent, command, graph, request, model=parent.goal.judge_model)

    async def _was_there(self, live: Live, command: StartChild | ForkRun) -> bool:
        """Whether a run that has no turn here once had some: it was deleted, or lost with a database that was put back."""
        # The log of heads is long; a run that was only just ordered has never been, so it was not deleted.
        if live.is_ordered_here(command):
            return False
        if isinstance(command, ForkRun) and await self._hub.runner.journal.read(command.run_id):
            return False
        deletion = await self._log.deletion(command.run_id)
        if deletion is not None and is_deletion_signed(deletion):
            return True
        return await self._log.last(command.run_id) is not None

    async def _ended(self, live: Live, command: StartChild, state: RunState) -> Report:
        assert state.end.ending is not None, "a child that has not ended is suspended"
        text = await self._hub.runner.text(state.result.answer)
        usage = run_usage(state)
        ended = [state, *await self._cut_off(state)]
        refused = {one for each in ended for one in refused_by(each)}
        how = (
            state.end.error,
            _why_ended(live, command, state),
            usage,
            waited_by(state),
            observed_by(state),
            all_left(map(left_by, ended)),
            denied_by(state),
            tuple(sorted(refused)[:LEFT_MAX]),
            await self._orders_used(ended),
        )
        return ChildSaid(command.id, state.end.ending, text, spent_by(state), *how)

    async def _orders_used(self, ended: list[RunState]) -> tuple[int, ...] | None:
        """Which of its leased orders a child has used up, or a run beneath it; None where it was leased none."""
        leased = pinned(ended[0]).leased
        if leased is None:
            return None
        journal = self._hub.runner.journal
        turns = [decode_turn(data) for state in ended for data in await journal.read(state.run_id)]
        return orders_used(leased, turns)

    async def _cut_off(self, state: RunState) -> list[RunState]:
        """The runs that were cut off beneath a run when it ended, as they stand: no other run tells of them."""
        found = []
        for run_id in cut_off_beneath(state):
            if await self._hub.runner.journal.read(run_id):
                beneath = (await self._hub.runner.load(run_id)).state
                found += [beneath, *await self._cut_off(beneath)]
        return found


def _why_ended(live: Live, command: StartChild, state: RunState) -> str:
    """Why a child ended, in its own words; what ran out of the time of its step names that limit, not the run's."""
    graph = graph_of_run(live.state)
    limit_ms = graph.nodes[graph.index[command.node]].timeout_ms if command.node else 0
    if (
        state.end.ending is not Ending.TIMEOUT
        or not limit_ms
        or state.at_ms >= deadline_beneath(live.state, state.at_ms)
    ):
        return f"{why_ended(state)}; {NOT_AGAIN}" if state.end.is_final else why_ended(state)
    return f"step {command.node!r} took longer than timeout_ms={limit_ms}; {MORE_TIME}"


def _plan_said(state: RunState) -> tuple[Message, ...]:
    """The plan that a planner made for the models of the run: the first thing said behind the request."""
    graph, asked = graph_of_run(state), len(pinned(state).request.messages)
    place = graph.index.get(PLAN)
    if place is None or graph.nodes[place].code != PLANNER or STEPS in graph.index or not state.place.visits[place]:
        return ()
    # What the model of the planner said stands before it.
    said = state.talk.context[asked + (ASK_PLANNER in graph.index)]
    assert isinstance(said, Message), "a plan is told as a message"
    return (said,)


def _read_by(live: Live) -> tuple[str, ...]:
    """Labels of what a run has read by now: its child may be told of it."""
    return pinned(live.state).read if live.tracer is None else live.tracer.labels


def _place_of(state: RunState, command: StartChild) -> int:
    """Which of the children of its node this one is, from 1, in the order in which they were started."""
    beside = (
        other.id
        for other in state.commands.open.values()
        if isinstance(other, StartChild) and other.node == command.node
    )
    ended = (child.command_id for child in state.children.ended if child.node == command.node)
    return sorted({*beside, *ended, command.id}, key=place_in_journal).index(command.id) + 1
