"""PlanExecutor: typed steps in an order, each handing its output to the next.

Rule 1: a plan is one governed run: its steps share one budget, one boundary, one journal.
Rule 2: what a step gave is written once. A resumed plan finds it there, and no finished step runs again.
Rule 3: a plan that fails gives what its finished steps gave.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_parts
from functools import partial
from pathlib import Path
from typing import Any, Self

from remit.agents.agent_requests import hints_of
from remit.agents.plan_parts import StepWork, executor_parts, types_of
from remit.agents.single_runs import CallLoop, KitFor, SingleRuns
from remit.agents.terms import GoalSource, engine_of, terms_of
from remit.agents.workplace import refuse_inside_a_loop
from remit.core.declared_arguments import checks_arguments, checks_only
from remit.core.failure import Ending, RequestRejected
from remit.core.journal.turn import Turn
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.profiles import STANDARD
from remit.core.record import JsonObject, replace
from remit.core.run.contract import Mode, SystemError, SystemRequest, SystemResponse, WaitingFor  # noqa: A004  # the name of the contract
from remit.core.run.inference import Routing
from remit.core.run.lifecycle import AgentRole
from remit.core.run.messages import system_message, user_message
from remit.core.run.request_checks import check_request
from remit.core.run.usage import sum_usage
from remit.core.work.orders import Orders, orders_of
from remit.core.work.plan import RUN_THE_PLAN, ExecutionPlan, PlanPolicy, PlanTrace, Step
from remit.kernel.state import RunState, pinned
from remit.observe.views.event_log import EventLog, Telling
from remit.orchestrate.bus.bus import Listener
from remit.orchestrate.facade import System
from remit.orchestrate.patterns.plan_graph import finished_steps
from remit.orchestrate.patterns.planned_graph import is_planned, steps_run
from remit.orchestrate.patterns.planners import ModelPlanner, Planner, check_planner, check_policy, given_plan
from remit.orchestrate.patterns.step_values import read_value
from remit.orchestrate.run_handle import Run, Streaming
from remit.orchestrate.setup.kit import Code, Kit, SystemPrompt, Terms, prompt_text

RUN_NO_PLAN = "RUN_NO_PLAN"


@dataclass(frozen=True, slots=True)
class PlanResult:
    """The steps that were finished, each with its input and output, who made the plan, and the response of the run.

    Where the plan failed, `response.error` says why, and the steps that were finished before are here all the same.
    """

    steps: tuple[Step, ...]
    trace: PlanTrace | None
    response: SystemResponse

    @property
    def outputs(self) -> Mapping[str, Any]:
        """What each finished step gave, by its name."""
        return {step.name: step.output for step in self.steps}

    @property
    def output(self) -> Any:
        """What the last finished step gave; None where none was."""
        return self.steps[-1].output if self.steps else None

    @property
    def error(self) -> SystemError | None:
        """Why the plan failed."""
        return self.response.error

    @property
    def terminal_code(self) -> Ending | None:
        """How the plan ended; None while it has not."""
        return self.response.terminal_code

    @property
    def waiting_for(self) -> WaitingFor | None:
        """What a person is asked before the plan goes on."""
        return self.response.waiting_for

    def raise_for_error(self) -> Self:
        """The result itself; raises RunFailed where the plan failed, or has not ended."""
        self.response.raise_for_error()
        return self


@checks_arguments()
class PlanExecutor(CallLoop[PlanResult]):
    """Executes plans: each type of step is done by the handler, the function or the loop that is given for it."""

    @checks_only("system_prompt", "observer")
    def __init__(
        self,
        # Keys are texts, and a member of StepType is one; the keys of a Mapping are invariant to type checkers.
        handlers: Mapping[Any, StepWork],
        *,
        policy: PlanPolicy = PlanPolicy(),
        planner: Planner | None = None,
        system_prompt: SystemPrompt = "",
        temperature: float | None = None,
        top_p: float = 0.0,
        timeout_ms: int = 0,
        options: JsonObject | None = None,
        observer: EventLog | None = None,
        boundary: Boundary | Path | str = STANDARD,
        budget: Budget = Budget(),
        role: AgentRole | str = AgentRole.GENERAL,
        goal: GoalSource | None = None,
        user_id: str = "",
        system: System | None = None,
        home: Path | str | None = None,
    ) -> None:
        self._parts = executor_parts(handlers)
        check_policy(policy)
        if isinstance(planner, ModelPlanner):
            planner.given = engine_of(planner.given)
            self._parts = self._parts.with_engine(planner.engine)
        check_planner(planner, self._parts.engines)
        self.policy, self.planner = policy, planner
        self._system_prompt, self._observer, self._user_id = system_prompt, observer, user_id
        self._hints = hints_of(temperature, top_p, timeout_ms, options)
        self._terms = replace_parts(terms_of(boundary, budget, Routing.AUTO, role=role, goal=goal), policy=policy)
        self._runs = SingleRuns(_read, self._kit_for, _expect_plan, system=system, home=home)
        # A provider of prompts is asked when a run begins.
        check_request(self._asking("", system_prompt if isinstance(system_prompt, str) else ""))

    async def execute(
        self, plan: ExecutionPlan | Sequence[Step] | None = None, *, prompt: str = "", orders: Orders = ()
    ) -> PlanResult:
        """Execute a plan; without one, what the planner makes of the prompt. A first step without input gets the prompt.

        With `orders`, these effects alone happen unattended. It returns with a question to a person, too. A caller that
        stops waiting for it cancels the run.
        """
        return await self.run(replace(self._request(prompt), orders=orders_of(orders)), plan)

    async def run(self, request: SystemRequest, plan: ExecutionPlan | Sequence[Step] | None = None) -> PlanResult:
        """Execute a plan for a request of the caller's own; its mode is plan."""
        terms = self._terms_of(plan)
        return await self._runs.call(replace(request, mode=Mode.PLAN), self._equipping(terms.plan), terms)

    async def start(
        self, plan: ExecutionPlan | Sequence[Step] | None = None, *, prompt: str = "", chunks: bool = False
    ) -> Run[PlanResult]:
        """Begin to execute a plan: the handle follows, answers and cancels it, and its result is that of execute()."""
        terms = self._terms_of(plan)
        return await self._runs.start(self._request(prompt), self._equipping(terms.plan), terms, chunks=chunks)

    def stream(self, plan: ExecutionPlan | Sequence[Step] | None = None, *, prompt: str = "") -> Streaming[PlanResult]:
        """Execute a plan, with the words of its steps as they come: `async for piece in`; to await it gives the result."""
        return Streaming(partial(self.start, plan, prompt=prompt, chunks=True))

    def execute_sync(self, plan: ExecutionPlan | Sequence[Step] | None = None, *, prompt: str = "") -> PlanResult:
        """Execute a plan without an event loop."""
        refuse_inside_a_loop("execute_sync", "execute")
        return asyncio.run(self.execute(plan, prompt=prompt))

    async def resume(self, run_id: str, plan: ExecutionPlan | Sequence[Step] | None = None) -> PlanResult:
        """Go on with a plan that was begun here or elsewhere; no step that was finished runs again.

        The handlers must be there that the plan was begun with; else it is refused, and the plan stays as it is.
        Where a step has a schema that is a type with checks of its own, give the plan again, so that they are there, too.
        """
        return await self._runs.resume(run_id, None if plan is None else self._equipping(given_plan(plan)))

    def _terms_of(self, plan: ExecutionPlan | Sequence[Step] | None) -> Terms:
        return replace_parts(self._terms, plan=None if plan is None else given_plan(plan))

    def _request(self, prompt: str) -> SystemRequest:
        return self._asking(prompt, prompt_text(self._system_prompt))

    def _asking(self, prompt: str, said: str) -> SystemRequest:
        told = (system_message(said),) if said else ()
        messages = (*told, user_message(prompt or RUN_THE_PLAN))
        return SystemRequest(messages, Mode.PLAN, user_id=self._user_id, hints=self._hints)

    def _equipping(self, plan: ExecutionPlan | None) -> KitFor:
        """Kits for one plan, with what hears the answers of its steps for their types."""
        return partial(self._kit_for, typed=None if plan is None else types_of(plan))

    def _kit_for(self, system: System, typed: Mapping[str, Code] | None = None) -> tuple[Kit, Listener]:
        parts = self._parts
        told = None if self._observer is None else partial(_tell, self._observer, Telling())
        kit = Kit(
            parts.engines, parts.tools, {**parts.code, **(typed or {})}, handlers=parts.handlers, planner=self.planner
        )
        return replace_parts(kit, step_filters=parts.filters), Listener(told)


def _tell(observer: EventLog, telling: Telling, state: RunState, turn: Turn) -> None:
    for event in telling.events(state, turn):
        observer.record(event)


async def _expect_plan(system: System, run_id: str) -> None:
    manifest = pinned(await system.state_of(run_id))
    if manifest.request.mode is not Mode.PLAN:
        message = f"run {run_id} is of mode {manifest.request.mode} and no plan; resume it with what began it"
        raise RequestRejected(RUN_NO_PLAN, message, {"run_id": run_id})


async def _read(system: System, response: SystemResponse) -> PlanResult:
    state = await system.state_of(response.run_id)
    if is_planned(state):
        beneath = steps_run(state)
        if not beneath:
            return PlanResult((), None, response)
        state = await system.state_of(beneath)
    outputs = {
        name: read_value(output.kind, await system.text(output.text)) for name, output in state.result.outputs.items()
    }
    usages = {name: sum_usage(child.usage for child in state.children.ended if child.node == name) for name in outputs}
    return PlanResult(finished_steps(pinned(state).graph, outputs, usages), pinned(state).plan, response)
