"""Responses: what a caller is told of a run, its children's calls and questions included, with every text in full."""

from remit.core.codec import plain
from remit.core.contract import SystemResponse, ToolCallMade
from remit.core.record import replace
from remit.core.values import Output
from remit.kernel.state import RunState
from remit.observe.execution import response_of
from remit.orchestrate.runner import Runner
from remit.orchestrate.step_values import read


class Responses:
    """Reads responses off the states of runs."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def of(self, state: RunState) -> SystemResponse:
        """How a run ended, or what it waits for."""
        outputs = {step: await self._output(output) for step, output in state.outputs.items()}
        response = response_of(state, await self._runner.text(state.answer), outputs)
        # Without tools no child can have called one, and then nobody needs to read its journal.
        if state.children and state.tools:
            response = replace(response, tool_calls_made=await self._calls_of_children(state, response))
        if response.waiting_for is None or not state.held:
            return response
        # What a child asks, its parent waits for: whoever looks at the parent must learn whom to answer.
        packets = list(response.waiting_for.packet_ids)
        for command_id in state.held:
            child = (await self._runner.load(f"{state.run_id}.{command_id}")).state
            # A child that was deleted asks nothing; its parent learns that it is lost when it goes on.
            waiting = None if child.seq < 0 else (await self.of(child)).waiting_for
            packets += waiting.packet_ids if waiting is not None else ()
        return replace(response, waiting_for=replace(response.waiting_for, packet_ids=tuple(packets)))

    async def _output(self, output: Output) -> object:
        return plain(read(output.kind, await self._runner.text(output.text)))

    async def _calls_of_children(self, state: RunState, response: SystemResponse) -> tuple[ToolCallMade, ...]:
        """Every tool call that was made in a caller's name: by the run, then by the children that its nodes declared."""
        made = list(response.tool_calls_made)
        for trace in state.children:
            child = (await self._runner.load(f"{state.run_id}.{trace.command_id}")).state
            made += () if child.seq < 0 else (await self.of(child)).tool_calls_made
        return tuple(made)
