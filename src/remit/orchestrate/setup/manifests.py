"""Manifests: everything a run is started with, checked and pinned.

Rule 1: ids that a request lacks are given here; whatever cannot become a run is refused here, before anything began.
"""

import dataclasses
import logging
from collections.abc import Callable, Mapping
from os import urandom
from pathlib import Path
from uuid import uuid4

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.roles import instructed, narrowed_to
from remit.core.limits.tools import ToolCall, validate_tools_allowed
from remit.core.record import replace
from remit.core.run.contract import Mode, SystemRequest
from remit.core.run.manifest import Manifest, SessionLink, acting_for, make_manifest
from remit.core.run.messages import Message
from remit.core.run.principal import LOCAL, Principal, person_for, tenant_for
from remit.core.run.request_checks import ID_FIELDS, check_request
from remit.core.schema.grammar_source import grammar_text, names_grammar_file
from remit.core.work.goal import Task, TaskSource
from remit.core.work.graph import Graph
from remit.core.work.plan import ExecutionPlan
from remit.inference.specs import engine_spec
from remit.kernel.authority.boundary_checks import check_tools
from remit.kernel.authority.graph_tier import check_tier
from remit.kernel.authority.intake import check_intake, prompt_of, task_named
from remit.kernel.results.feasible import check_named
from remit.observe.logs import NO_RUN
from remit.orchestrate.exchange.call_shape import check_shapes
from remit.orchestrate.exchange.sessions import check_entries, last_run, linked_request
from remit.orchestrate.facts.intent import intent_of
from remit.orchestrate.history.custody import Custody
from remit.orchestrate.loop.halt_switch import Halts
from remit.orchestrate.loop.runner import Runner
from remit.orchestrate.patterns.graph_choice import check_graph_fits, graph_for
from remit.orchestrate.patterns.order_graph import begun_with_orders
from remit.orchestrate.patterns.planners import check_planner, check_planning, plan_at_hand
from remit.orchestrate.ports import Catalogue
from remit.orchestrate.setup.kit import Kit, Terms, check_context, declared_terms
from remit.orchestrate.setup.like_run_lookup import LikeRunLookup
from remit.orchestrate.setup.reloaded_kit import engine_sources
from remit.orchestrate.tenants.policies import Policies
from remit.rerank.router import check_routing
from remit.tool.secrets.vault import NO_SECRETS, Vault

_log = logging.getLogger(__name__)

# What the headers that carry traces have room for.
_TRACE_BYTES = 16


class Manifests:
    """Makes the manifests of new runs."""

    def __init__(
        self,
        runner: Runner,
        catalogue: Catalogue,
        new_id: Callable[[], str],
        halts: Halts,
        vault: Vault = NO_SECRETS,
        owner: str = "",
        custody: Custody | None = None,
        policies: Policies | None = None,
    ) -> None:
        self._runner = runner
        self._halts = halts
        self.vault = vault
        self._catalogue = catalogue
        self.new_id = new_id
        self.owner = owner
        self._custody = custody
        self.policies = policies
        self._like_runs = LikeRunLookup(catalogue, runner.journal)

    async def of(
        self,
        request: SystemRequest,
        kit: Kit,
        terms: Terms,
        entries: Mapping[str, str],
        principal: Principal = LOCAL,
    ) -> Manifest:
        """Everything the run is started with, checked and pinned, in the name of its principal."""
        entered = check_request(_signed_by(_with_grammar(request, principal), principal))
        terms, fault = await self._policed(declared_terms(terms), principal)
        for field in ID_FIELDS:
            self.vault.check_name(field, getattr(entered, field))
        first, tools = next(iter(kit.engines.values()), None), kit.tools.definitions
        asked = ("", "") if first is None else (first.model_info().name, engine_spec(first))
        entered = _identified(entered, instructed(terms.role, entered.messages))
        if (narrowed := narrowed_to(terms.role, terms.boundary)) is not terms.boundary:
            terms = dataclasses.replace(terms, boundary=narrowed)
        _check_tools(entered, kit, terms.boundary)
        check_context(kit.context, terms.boundary)
        await self._halts.refresh()
        self._halts.check_start(entered.tenant_id, *asked)
        for tool in tools:
            if tool.secrets:
                self.vault.check_usable(tool.name, [name for _, name in tool.secrets])
        plan = self._plan(entered, kit, terms)
        graph = with_grammar_texts(terms.graph or graph_for(entered, kit, terms, plan))
        graph = begun_with_orders(graph, entered, terms.boundary, tools, self._runner.clock.now_ms())
        check_graph_fits(graph, terms)
        check_shapes(entered.output.grammar or "", graph)
        check_routing(terms.router)
        entered, session = await self._linked(entered, entries)
        manifest = make_manifest(
            run_id=self.new_id(),
            request=entered,
            boundary=terms.boundary,
            budget=terms.budget,
            graph=graph,
            models=tuple(engine.model_info() for engine in kit.engines.values()),
            engines=tuple(engine_spec(engine) for engine in kit.engines.values()),
            tools=tools,
            sources=(*kit.tools.sources, *engine_sources(kit.engines.values()), *kit.sources),
            goal=terms.goal,
            role=terms.role,
            retrieves_context=kit.context is not None,
            router=terms.router,
            session=session,
            plan=None if plan is None else plan.trace,
            filters=tuple(kit.filters),
            cheaper=kit.cheaper,
            owner=self.owner,
        )
        manifest = manifest if principal is LOCAL else acting_for(manifest, principal, fault)
        check_tier(manifest)
        check_tools(manifest)
        check_named(manifest)
        now_ms = self._runner.clock.now_ms()
        check_intake(manifest, now_ms)
        foresight = await self._like_runs.foresight_of(manifest)
        return replace(manifest, task=_task(manifest, now_ms), foresight=foresight)

    def _plan(self, request: SystemRequest, kit: Kit, terms: Terms) -> ExecutionPlan | None:
        """The plan that the run is given; None where it needs none, or has one made."""
        plan = None
        if terms.graph is None:
            check_planner(kit.planner, kit.engines)
            if request.mode is Mode.PLAN:
                plan = plan_at_hand(terms.plan, kit.planner, self._runner.clock.now_ms())
            check_planning(terms.boundary, plans=plan is None and kit.planner is not None)
        return plan

    async def _policed(self, terms: Terms, principal: Principal) -> tuple[Terms, str]:
        """The terms with the boundary that holds for the principal, and why its policy could not be read, if so."""
        if principal is LOCAL or self.policies is None:
            return terms, ""
        boundary, fault = await self.policies.of(principal)
        return dataclasses.replace(terms, boundary=boundary), fault

    async def _linked(
        self, request: SystemRequest, entries: Mapping[str, str]
    ) -> tuple[SystemRequest, SessionLink | None]:
        """The request with the history of its session, and its place there; as it is where it has none."""
        if not request.session_id:
            return request, None
        last = await last_run(self._catalogue, self._runner, request.session_id, request.tenant_id)
        if last is not None and self._custody is not None:
            await self._custody.expect_vouched(last.run.run_id)
        read = () if last is None else await self._runner.labels_of(last.run)
        return linked_request(request, last, check_entries(entries.items()), read)


def _signed_by(request: SystemRequest, principal: Principal) -> SystemRequest:
    """The request in the name of its principal; refuses one that says another tenant or user."""
    if principal is LOCAL:
        return request
    user_id = person_for(principal, request.user_id, "user_id")
    tenant_id = tenant_for(principal, request.tenant_id)
    return replace(request, tenant_id=tenant_id, user_id=user_id, user_assumed=False)


def _with_grammar(request: SystemRequest, principal: Principal) -> SystemRequest:
    """The request with the text of its grammar, where it names a file. A name that a principal gives has nothing read."""
    # A request or a contract of another type is refused by `check_request`, which looks at all fields.
    named: object = getattr(getattr(request, "output", None), "grammar", None)
    if not isinstance(named, Path) and not names_grammar_file(named):
        return request
    if principal is not LOCAL and not isinstance(named, Path):
        message = (
            f"the grammar file {str(named)[:200]!r} is read for the process that opened the store alone; give its text"
        )
        raise RequestRejected(ErrorCode.CONFIG_GRAMMAR_NOT_FOUND, message, {"file": str(named)[:200]})
    return replace(request, output=replace(request.output, grammar=grammar_text(named)))


def with_grammar_texts(graph: Graph) -> Graph:
    """A graph whose nodes have the texts of their grammars, where they name files."""
    if not any(node.ask is not None and names_grammar_file(node.ask.grammar) for node in graph.nodes):
        return graph
    nodes = [
        node if node.ask is None else replace(node, ask=replace(node.ask, grammar=grammar_text(node.ask.grammar)))
        for node in graph.nodes
    ]
    return replace(graph, nodes=tuple(nodes))


def _identified(request: SystemRequest, messages: tuple[Message, ...]) -> SystemRequest:
    """The request with these messages and the ids it lacks."""
    return replace(
        request,
        messages=messages,
        request_id=request.request_id or str(uuid4()),
        trace_id=request.trace_id or urandom(_TRACE_BYTES).hex(),
    )


def _check_tools(request: SystemRequest, kit: Kit, boundary: Boundary) -> None:
    """Refuse tools that are not there, or not on the list of the boundary; warn of tools that say nothing of themselves."""
    for tool in kit.tools.definitions:
        if not tool.description:
            message = "tool %r has no docstring, so a model cannot know what it is for; write one"
            _log.warning(message, tool.name, extra=NO_RUN)
    named = [*request.tools, *([request.tool_choice.function_name] if request.tool_choice.function_name else [])]
    allowed = boundary.allowed_tools
    known = [tool.name for tool in kit.tools.definitions if allowed is None or tool.name in allowed]
    validate_tools_allowed([ToolCall(name, name) for name in named], known)


def _task(manifest: Manifest, at_ms: int) -> Task | None:
    """What kind of task a run is whose caller does not say: as the boundary says, or as the user's words look."""
    goal = manifest.goal
    if goal is not None and goal.task_class is not None:
        return None
    if (named := task_named(manifest, at_ms)) is not None:
        return named
    intent, grounds = intent_of(prompt_of(manifest)), () if goal is None else goal.grounds
    return None if intent is None else Task(intent.task_class, TaskSource.INFERRED, intent.words, grounds)


def check_ready(request: SystemRequest, kit: Kit, terms: Terms) -> None:
    """Refuse, before a store is opened, what the facade would refuse of a request with this kit and these terms."""
    graph = terms.graph or graph_for(request, kit, terms, terms.plan)
    check_graph_fits(graph, terms)
    check_shapes(request.output.grammar or "", graph)
