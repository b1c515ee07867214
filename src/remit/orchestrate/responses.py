"""Responses: what a caller is told of a run, its children's calls and questions included, with every text in full."""

from contextlib import suppress

from remit.core.codec import decode_turn, plain
from remit.core.commands import CallTool
from remit.core.contract import CallStatus, SystemResponse, WaitingFor
from remit.core.record import replace
from remit.core.storage import BlobMissing
from remit.core.values import Output
from remit.kernel.grounding import child_claim, effects_in_doubt
from remit.kernel.state import RunState
from remit.observe.calls_made import Begun, CallsOfChild, calls_begun, children_of, long_texts
from remit.observe.execution import doubt_told, raw_answer, response_of
from remit.orchestrate.runner import Runner
from remit.orchestrate.step_values import read
from remit.orchestrate.waits import joined_with


class Responses:
    """Reads responses off the states of runs."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def of(self, state: RunState) -> SystemResponse:
        """How a run ended, or what it waits for."""
        outputs = {step: await self._output(output) for step, output in state.outputs.items()}
        calls = tuple(begun.call for begun in await self._calls(state))
        response = response_of(state, await self._runner.text(state.answer), outputs, calls)
        if (raw := raw_answer(state)) and response.content:
            response = replace(response, raw_content=await self._runner.text(raw))
        if response.terminal_code is not None and any(call.status is CallStatus.OUTCOME_UNKNOWN for call in calls):
            below = tuple([doubt_told(claim) for claim in await self._in_doubt_below(state)])
            response = replace(response, warnings=tuple(dict.fromkeys((*response.warnings, *below))))
        waiting = response.waiting_for
        if waiting is None or not state.held:
            return response
        # What a child asks, its parent waits for: whoever looks at the parent must learn whom to answer.
        asked: list[WaitingFor] = []
        for command_id in state.held:
            child = (await self._runner.load(state.beneath[command_id])).state
            # A child that was deleted asks nothing; its parent learns that it is lost when it goes on.
            if child.seq < 0:
                continue
            told = await self.of(child)
            asked += [] if told.waiting_for is None else [told.waiting_for]
            # A run whose child a halt holds back stands still for the same halt.
            response = replace(response, halted=response.halted or told.halted)
        return replace(response, waiting_for=joined_with(waiting, asked))

    async def _in_doubt_below(self, state: RunState) -> tuple[str, ...]:
        """The effects of runs beneath one that has ended, of which nobody knows whether they happened."""
        told: list[str] = []
        for command_id in children_of(state):
            child = (await self._runner.load(state.beneath[command_id])).state
            told += [child_claim(tool, command_id) for tool in sorted(await self._tools_in_doubt(child))]
        return tuple(told)

    async def _tools_in_doubt(self, state: RunState) -> set[str]:
        # A run that was cut off with the one above it may not have ended yet: what it has under way is in doubt already.
        under_way = [one for one in state.open.values() if isinstance(one, CallTool) and one.mutating]
        tools = {tool for tool, _ in effects_in_doubt(state)} | {command.tool for command in under_way}
        for command_id in state.beneath.values():
            tools |= await self._tools_in_doubt((await self._runner.load(command_id)).state)
        return tools

    async def _output(self, output: Output) -> object:
        return plain(read(output.kind, await self._runner.text(output.text)))

    async def _calls(self, state: RunState, *, is_child: bool = False) -> tuple[Begun, ...]:
        """Every tool call that was made in a caller's name, by the run and by its children, with all texts in full."""
        texts: dict[bytes, str] = {}
        for reference in long_texts(state):
            # What was deleted since is named by its digest.
            with suppress(BlobMissing):
                texts[reference.digest] = await self._runner.text(reference)
        # Without tools a child may have proposed a call all the same, which was refused.
        children = [await self._calls_of(state, command_id) for command_id in children_of(state)]
        # Only where several runs called tools must anybody know when.
        is_among = is_child or any(child.calls for child in children)
        return calls_begun(state, texts, children, await self._times(state.run_id) if is_among else {})

    async def _times(self, run_id: str) -> dict[int, int]:
        """When each turn of a run was taken."""
        turns = map(decode_turn, await self._runner.journal.read(run_id))
        return {turn.seq: turn.at_ms for turn in turns}

    async def _calls_of(self, parent: RunState, command_id: str) -> CallsOfChild:
        child = (await self._runner.load(parent.beneath[command_id])).state
        if child.seq < 0:
            return CallsOfChild(command_id, ())
        duration_ms = 0 if child.ending is None else child.at_ms - child.started_at_ms
        return CallsOfChild(command_id, await self._calls(child, is_child=True), duration_ms)
