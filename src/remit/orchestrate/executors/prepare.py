"""Preparing an errand of a command: beside the state of its run, in the process that drives it, just before it goes out.

Rule 1: whatever performing takes of a run's state is put into the errand; its performer is not given the state.
Rule 2: what all errands of a run have in common is made once.
"""

from collections.abc import Awaitable, Callable, Mapping
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any

from remit.core.journal.canonical import canonical_json
from remit.core.journal.commands import CallCode, CallModel, CallTool, Command, ReconcileTool, Retrieve
from remit.core.record import replace
from remit.core.run.inference import ModelRequest
from remit.core.run.messages import Message, Role
from remit.core.work.graph import NodeKind
from remit.core.work.orders import LIST, LOOK_UP, TAKE, orders_json, reads_of
from remit.core.work.plan import ASK_PLANNER
from remit.kernel.results.votes import in_order, voting_answers
from remit.kernel.rules.tool import FILTER_MARK
from remit.kernel.state import RunState, graph_of_run, pinned, standing_at
from remit.observe.views.execution import offered_tools
from remit.orchestrate.exchange.call_shape import began_at, is_checked, occasion_of, shaped_request
from remit.orchestrate.exchange.conversation import Fetch
from remit.orchestrate.exchange.filters import unseen_because
from remit.orchestrate.executors.errands import (
    Errand,
    InquiryErrand,
    JudgeErrand,
    ModelErrand,
    PlanErrand,
    ProposeErrand,
    RetrieveErrand,
    Sender,
    SiftErrand,
    StepErrand,
    ToolErrand,
    VoteErrand,
)
from remit.orchestrate.loop.halt_switch import run_scopes
from remit.orchestrate.loop.live import Live
from remit.orchestrate.patterns.order_graph import orders_said
from remit.orchestrate.patterns.plan_graph import ARGUMENTS, CALL_MARK
from remit.orchestrate.patterns.planned_graph import PLANNER
from remit.orchestrate.patterns.redundant_graph import VOTE_MARK
from remit.wire.inbound import call_metadata, given_context

Prepare = Callable[[Live, Any, Fetch], Awaitable[Errand]]


class ErrandTerms:
    """The terms that all errands of a run have in common: their sender, the terms of a model call, and the models."""

    __slots__ = ("checked", "filters", "has_planner", "metadata", "models", "routing", "sender", "terms")

    def __init__(self, run_id: str, state: RunState) -> None:
        manifest = pinned(state)
        request = manifest.request
        hints, output = request.hints, request.output
        self.sender = Sender(
            run_id=run_id,
            family=state.derived.family,
            request_id=request.request_id,
            session_id=request.session_id,
            trace_id=request.trace_id,
            tenant_id=request.tenant_id,
            user_id=request.user_id,
            scopes=tuple(run_scopes(state)),
        )
        self.terms = ModelRequest(
            messages=(),
            tools=tuple([state.derived.tools[name] for name in offered_tools(state)]),
            schema=output.schema,
            grammar=output.grammar or "",
            temperature=hints.temperature,
            top_p=hints.top_p,
            tool_choice=request.tool_choice,
            options=hints.options,
            replica=manifest.replica,
        )
        self.routing, self.filters, self.metadata = manifest.router, tuple(manifest.filters), call_metadata(request)
        self.has_planner = ASK_PLANNER in graph_of_run(state).index
        # Engines are written in the order of their models, as far as they can be.
        specs = chain(manifest.engines, repeat(""))
        # Whether an answer is checked next, by the node that asks for it.
        self.checked: dict[int, bool] = {}
        self.models = {info.name: (info, spec) for info, spec in zip(manifest.models, specs, strict=False)}


def prepare(live: Live, command: Command, fetch: Fetch) -> Awaitable[Errand]:
    """The errand of a command that is performed outside the hub."""
    return _PREPARED[type(command)](live, command, fetch)


def common_of(live: Live) -> ErrandTerms:
    """The terms that all errands of a run have in common."""
    common = live.common
    if common is None:
        common = live.common = ErrandTerms(live.run_id, live.state)
    return common


def _without_planner(state: RunState, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The messages without what the model of a planner wrote: the words of the plan, which follow it, say the same."""
    said = [child.text for child in state.children.ended if child.node == ASK_PLANNER]
    asked = len(pinned(state).request.messages)
    for place, entry in enumerate(state.talk.context[asked:], began_at(state)):
        if said and isinstance(entry, Message) and entry.content == said[-1]:
            return (*messages[:place], *messages[place + 1 :])
    return messages


async def _model(live: Live, command: CallModel, fetch: Fetch) -> Errand:
    state, common = live.state, common_of(live)
    messages = await live.conversation.whole(state, command.messages_count, fetch)
    began = began_at(state)
    if common.has_planner:
        messages = _without_planner(state, messages)
    whole = replace(common.terms, messages=messages, max_tokens=command.max_tokens, attempt=command.attempt)
    request, ask = shaped_request(whole, state)
    info, engine = common.models.get(command.model, (None, ""))
    node = state.place.node
    if (is_checked_next := common.checked.get(node)) is None:
        is_checked_next = common.checked[node] = is_checked(state)
    return ModelErrand(
        sender=common.sender,
        command=command,
        request=request,
        info=info,
        began=began,
        occasion=None if ask is None else occasion_of(request, messages, began, ask),
        routing=common.routing,
        is_checked=is_checked_next,
        engine=engine,
    )


async def _tool(live: Live, command: CallTool, _: Fetch) -> Errand:
    state, common = live.state, common_of(live)
    sender, metadata = common.sender, common.metadata
    if common.filters and (unseen := unseen_because(state, command)):
        return ToolErrand(
            sender=sender,
            command=command,
            node=standing_at(state).name,
            filters=common.filters,
            unseen=unseen,
            metadata=metadata,
        )
    return ToolErrand(sender, command, metadata=metadata) if metadata else ToolErrand(sender, command)


async def _inquiry(live: Live, command: ReconcileTool, _: Fetch) -> Errand:
    doubted = live.state.commands.open.get(command.about)
    arguments = doubted.arguments if isinstance(doubted, CallTool) else None
    return InquiryErrand(common_of(live).sender, command, arguments)


async def _code(live: Live, command: CallCode, fetch: Fetch) -> Errand:
    state, sender = live.state, common_of(live).sender
    node = standing_at(state)
    if command.name.startswith(VOTE_MARK) and node.ballot is not None:
        replicas = [child for child in state.children.ended if child.node == node.ballot.source]
        answers, order = voting_answers(replicas), in_order(replicas)
        places = tuple([order.index(child) for child in answers])
        to_come = node.ballot.replicas - len(replicas)
        return VoteErrand(sender, command, tuple([child.text for child in answers]), places, to_come)
    if command.name.startswith(FILTER_MARK):
        return SiftErrand(sender, command, node.name, tuple(state.calls.proposed), call_metadata(pinned(state).request))
    if command.name == LOOK_UP:
        return await _look_ups(live, command, node.name, fetch)
    if command.name == TAKE:
        made = orders_said(await fetch(state.result.answer), pinned(state).tools, await _words(state, fetch))
        return ProposeErrand(sender, command, node.name, (), canonical_json(orders_json(made)).decode())
    if command.name == LIST:
        return ProposeErrand(sender, command, node.name)
    if command.name == PLANNER:
        said = [child.text for child in state.children.ended if child.node == ASK_PLANNER]
        return PlanErrand(sender, command, pinned(state).request, node.prompt, said[-1] if said else "")
    if not command.kind:
        return JudgeErrand(sender, command)
    name = node.name.removesuffix(ARGUMENTS)
    if command.name.startswith(CALL_MARK):
        return ProposeErrand(sender, command, name)
    return StepErrand(sender, command, name, node.prompt, node.kind is NodeKind.VALIDATE)


async def _look_ups(live: Live, command: CallCode, node: str, fetch: Fetch) -> Errand:
    """The reads of orders that a model has just made; those of orders that stand are known where the gate follows the run."""
    state, sender, manifest = live.state, common_of(live).sender, pinned(live.state)
    if manifest.request.orders or any(node.code == TAKE for node in manifest.graph.nodes):
        return ProposeErrand(sender, command, node)
    made = orders_said(await fetch(state.result.answer), pinned(state).tools, await _words(state, fetch))
    return ProposeErrand(sender, command, node, reads_of(made), canonical_json(orders_json(made)).decode())


async def _words(state: RunState, fetch: Fetch) -> str:
    """Everything that the user wrote."""
    said = [message.content for message in pinned(state).request.messages if message.role is Role.USER]
    return "\n".join([await fetch(one) for one in said])


async def _retrieve(live: Live, command: Retrieve, _: Fetch) -> Errand:
    request = pinned(live.state).request
    asked = [message for message in request.messages if message.role is Role.USER]
    return RetrieveErrand(common_of(live).sender, command, asked[-1].content if asked else "", given_context(request))


_PREPARED: Mapping[type[Command], Prepare] = MappingProxyType(
    {CallModel: _model, CallTool: _tool, ReconcileTool: _inquiry, CallCode: _code, Retrieve: _retrieve}
)
# The kinds of commands that are errands. Children, forks, timers and questions stay with the hub.
ERRANDS: frozenset[type[Command]] = frozenset(_PREPARED)
