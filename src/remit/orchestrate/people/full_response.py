"""Responses: what a caller is told of a run, its children's calls and questions included, with every text in full."""

from collections.abc import Callable
from contextlib import suppress

from remit.context.evidence_message import relevance_of
from remit.core.journal.codec import decode_turn, from_json, plain_value
from remit.core.journal.commands import place_in_journal
from remit.core.journal.storage import BlobMissing
from remit.core.record import replace
from remit.core.run.approval import Approval
from remit.core.run.contract import CallStatus, ConfidenceSource, SystemResponse, WaitingFor, paused_in_words
from remit.core.run.usage import TokenUsage, sum_usage
from remit.core.work.plan import RerankInput
from remit.core.work.values import Output, ValueKind
from remit.kernel.state import RunState, pinned
from remit.observe.views.calls_made import Begun, CallsOfChild, calls_begun, children_of, long_texts
from remit.observe.views.execution import raw_answer, response_of, run_confidence, run_usage
from remit.observe.views.late_outcomes import NOTHING_BELOW
from remit.orchestrate.executors.human import approvals_told
from remit.orchestrate.inner_runs import told_to_step
from remit.orchestrate.loop.child_runs import doubts_below, is_paused, joined_with, run_beneath
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.patterns.planned_graph import is_planned, steps_run
from remit.orchestrate.patterns.step_values import read_value


class Responses:
    """Reads responses off the states of runs."""

    def __init__(self, runner: Runner, answered_by: Callable[[str], tuple[str, ...]]) -> None:
        # Who alone answers a queue.
        self._runner, self._answered_by = runner, answered_by

    async def of(self, state: RunState) -> SystemResponse:
        """How a run ended, or what it waits for."""
        return await told_to_step(_Response(self._runner, self._answered_by).of(state))


class _Response:
    """One response in the making: whatever it asks of a run beneath, that is read once."""

    def __init__(self, runner: Runner, answered_by: Callable[[str], tuple[str, ...]]) -> None:
        self._runner, self._answered_by = runner, answered_by
        self._loaded: dict[str, RunState] = {}

    async def of(self, state: RunState) -> SystemResponse:
        """The response of a run, or of one beneath it."""
        # A run that has its plan made tells what the steps of that plan gave.
        steps = (
            await self._load(beneath) if (beneath := steps_run(state)) else RunState() if is_planned(state) else state
        )
        outputs = {step: await self._output(output) for step, output in steps.result.outputs.items()}
        calls, unknown = tuple([begun.call for begun in await self._calls(state)]), CallStatus.OUTCOME_UNKNOWN
        unsure = [call for call in calls if call.is_late or call.status is unknown]
        below = await doubts_below(state, self._load) if state.end.ending is not None and unsure else NOTHING_BELOW
        response = response_of(state, await self._runner.text(steps.result.answer), outputs, calls, below)
        if state.children.runs:
            # Of those that a call started, here or further beneath, the state of their parent does not tell.
            response = replace(response, token_usage=await self._usage(state))
        if response.content and (raw := raw_answer(await self._spoken_in(state))):
            response = replace(response, raw_content=await self._runner.text(raw))
        if response.confidence_source is not ConfidenceSource.VOTING and steps.result.outputs:
            confidence, source = await self._confidence(steps)
            response = replace(response, confidence=confidence, confidence_source=source)
        place = state.place
        if state.end.ending is None and place.paused and (place.halted is None or place.paused_by):
            told = f"run {state.run_id} {paused_in_words(state.run_id, place.paused_by)}"
            response = replace(response, warnings=(*response.warnings, told), paused_by=place.paused_by)
        if response.waiting_for is None:
            return response
        waiting = replace(response.waiting_for, packets=await self._packets(state, response.waiting_for.packet_ids))
        return await self._with_children(replace(response, waiting_for=waiting), waiting, state)

    async def _with_children(self, response: SystemResponse, waiting: WaitingFor, state: RunState) -> SystemResponse:
        """The response with what held children ask: their parent waits for it, so its view must name the question."""
        if not state.children.waiting:
            return response
        asked: list[WaitingFor] = []
        paused: list[str] = []
        for command_id in state.children.waiting:
            child = await self._load(state.children.runs[command_id])
            # A child that was deleted asks nothing; its parent learns that it is lost when it goes on.
            if child.seq < 0:
                continue
            told = await self.of(child)
            asked += [] if told.waiting_for is None else [told.waiting_for]
            paused += [child.run_id] if child.end.ending is None and is_paused(child) else []
            # A run whose child a halt holds back stands still for the same halt.
            response = replace(response, halted=response.halted or told.halted)
        return replace(response, waiting_for=joined_with(waiting, asked, paused))

    async def _spoken_in(self, state: RunState) -> RunState:
        """The run in which the answer of a run was said: that of the winner of a vote, else the run itself."""
        if not state.children.ended:
            return state
        ballots = {node.ballot.source for node in pinned(state).graph.nodes if node.ballot is not None}
        said = (child for child in state.children.ended if child.node in ballots and child.text == state.result.answer)
        winner = next(said, None)
        return state if winner is None else await self._child(state, winner.command_id)

    async def _confidence(self, state: RunState) -> tuple[float | None, ConfidenceSource | None]:
        """How surely a plan's answer stands: by the last vote of its steps, else its own checks, else its last evidence."""
        for child in reversed(state.children.ended):
            beneath = run_confidence(await self._child(state, child.command_id))
            if beneath[1] is ConfidenceSource.VOTING:
                return beneath
        if (own := run_confidence(state))[1] is not None:
            return own
        found = [output for output in state.result.outputs.values() if output.kind is ValueKind.CANDIDATES]
        latest = max(found, key=lambda output: place_in_journal(output.command_id), default=None)
        if latest is None:
            return None, None
        offered = from_json(await self._runner.text(latest.text), RerankInput)
        relevance = relevance_of(offered.candidates)
        return relevance, None if relevance is None else ConfidenceSource.RETRIEVAL

    async def _usage(self, state: RunState) -> TokenUsage:
        """What a run and those beneath it used of their models."""
        told = {child.command_id: child.usage for child in state.children.ended}
        used = [run_usage(state, with_children=False)]
        for command_id in state.children.runs:
            child = await self._child(state, command_id)
            is_gone = child.seq < 0
            used.append(told.get(command_id, TokenUsage()) if is_gone else await self._usage(child))
        return sum_usage(used)

    async def _packets(self, state: RunState, order: tuple[str, ...]) -> tuple[Approval, ...]:
        """What a run itself asks, in this order."""
        if not order:
            return ()
        turns = [decode_turn(data) for data in await self._runner.journal.read(state.run_id)]
        told = {asked.id: asked for asked in await approvals_told(state, turns, self._runner.text)}
        return tuple(replace(told[name], answered_by=self._answered_by(told[name].queue)) for name in order)

    async def _load(self, run_id: str) -> RunState:
        state = self._loaded.get(run_id)
        if state is None:
            state = self._loaded[run_id] = await self._runner.state_at_rest(run_id)
        return state

    async def _child(self, state: RunState, command_id: str) -> RunState:
        """The child that a command started; one with nothing done where it is gone."""
        return await run_beneath(state, command_id, self._load) or RunState()

    async def _output(self, output: Output) -> object:
        return plain_value(read_value(output.kind, await self._runner.text(output.text)))

    async def _calls(self, state: RunState, *, is_child: bool = False) -> tuple[Begun, ...]:
        """Every tool call that was made in a caller's name, by the run and by its children, with all texts in full."""
        texts: dict[bytes, str] = {}
        for reference in long_texts(state):
            # What was deleted since is named by its digest.
            with suppress(BlobMissing):
                texts[reference.digest] = await self._runner.text(reference)
        # Without tools a child may have proposed a call all the same, which was refused.
        children = [await self._calls_of(state, command_id) for command_id in children_of(state)]
        # Only where several runs called tools does their order matter, and only of its own calls does a run tell when.
        has_own = state.calls.made or state.calls.refused or state.calls.proposed or state.calls.withdrawn
        is_among = has_own and (is_child or any(child.calls for child in children))
        return calls_begun(state, texts, children, await self._times(state.run_id) if is_among else {})

    async def _times(self, run_id: str) -> dict[int, int]:
        """When each turn of a run was taken."""
        turns = map(decode_turn, await self._runner.journal.read(run_id))
        return {turn.seq: turn.at_ms for turn in turns}

    async def _calls_of(self, parent: RunState, command_id: str) -> CallsOfChild:
        child = await self._child(parent, command_id)
        if child.seq < 0:
            return CallsOfChild(command_id, ())
        duration_ms = 0 if child.end.ending is None else child.at_ms - child.clock.started_at_ms
        return CallsOfChild(command_id, await self._calls(child, is_child=True), duration_ms)
