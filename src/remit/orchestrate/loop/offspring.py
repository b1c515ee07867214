"""Offspring: runs that come from other runs: manifests of children and forks, copied turns, and from which runs a run came.

Rule 1: a child holds its parent's boundary narrowed, its lease as its whole budget, and its deadline. A step with a role or
        filters of its own has them in addition.
Rule 2: a fork is the original up to a turn, under a new id, and names where it was copied from.
Rule 3: copying can be cut off between any two turns and goes on from there; the manifest says how far it must get.
Rule 4: a fork begins paused where its origin was left, and goes on when the caller that asked for it resumes it.
Rule 5: a lineage is pinned by the first turn of a run and never changes. The index has it, and so does the run's manifest.
"""

from collections.abc import Callable

from remit.core.declared_arguments import checks_arguments
from remit.core.failure import NO_DENIALS, InvariantBroken
from remit.core.journal.arrivals import RunForked, RunStarted, RunTaken
from remit.core.journal.codec import NO_HASH, decode_turn, encode_turn, from_json, hash_turn
from remit.core.journal.commands import StartChild
from remit.core.journal.storage import AppendConflict, Place, Warrant
from remit.core.journal.turn import Turn
from remit.core.limits.boundary import boundary_version, narrow
from remit.core.limits.budget import COUNTERS, Charges, budget_of
from remit.core.limits.roles import instructed, narrowed_to
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import JsonObject, replace
from remit.core.run.contract import ExecutionHints, Mode, OutputContract, SystemRequest
from remit.core.run.inference import ModelInfo
from remit.core.run.lifecycle import AgentRole
from remit.core.run.lineage import derived_id
from remit.core.run.manifest import EarlierEffect, Manifest, Origin, lineage_of
from remit.core.run.messages import Message, Role, system_message, user_message
from remit.core.schema.json_text import kept_value
from remit.core.work.graph import Ask, Graph, Node, graph_version
from remit.core.work.orders import LeasedOrders
from remit.kernel.decide import take_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState, pinned
from remit.orchestrate.loop.durability import run_listing
from remit.orchestrate.ports import Catalogue, Journal

_NO_TOOLS = ToolChoice(ToolChoiceMode.NONE)
# How often a process that copies a fork goes on behind others that do; each stops at the first turn that is not its own.
CONFLICTS_MAX = 10
# Greedy replicas would all say the same and outvote no other; this is what most engines take by themselves.
REPLICA_TEMPERATURE = 0.7


def child_manifest(
    parent: Manifest,
    command: StartChild,
    graph: Graph,
    request: SystemRequest | None = None,
    *,
    replica: int = 0,
    model: str = "",
    read: tuple[str, ...] = (),
    earlier: tuple[EarlierEffect, ...] = (),
    leased: LeasedOrders | None = None,
) -> Manifest:
    """The manifest of a child run: its task alone, or the request that its node declares.

    `read` labels what its parent has read by now, `earlier` is what earlier attempts did; its orders are those `leased` to it.
    """
    lease = dict(command.lease)
    asked = request or child_request(parent.request, (user_message(command.prompt),))
    # Gauges and the clock are limits of the moment and are inherited; counters are what the lease holds, else nothing.
    caps = tuple(lease.get(index, 0) if index in COUNTERS else cap for index, cap in enumerate(parent.caps))
    node = next((node for node in parent.graph.nodes if node.name == command.node), None)
    ask = Ask() if node is None or node.ask is None else node.ask
    grants = next((tool.grants for tool in parent.tools if tool.name == command.tool), None)
    boundary = narrow(parent.boundary, tools=parent.request.tools or None, budget=budget_of(caps), grants=grants)
    boundary = narrowed_to(ask.role, boundary)
    models, engines = _models_of(parent, model or (node.model if node is not None else ""))
    return replace(
        parent,
        run_id=command.run_id,
        request=replace(asked, orders=()),
        leased=leased,
        models=models,
        engines=engines,
        boundary=boundary,
        caps=caps,
        graph=graph,
        versions=replace(parent.versions, boundary=boundary_version(boundary), graph=graph_version(graph)),
        goal=None,
        # Its words are those of a model or a graph, and its answer is a part of its parent's.
        task=None,
        retrieves_context=False,
        depth=command.depth,
        deadline_at_ms=command.deadline_at_ms,
        parent=Origin(parent.run_id, command.id),
        lineage=(*lineage_of(parent), parent.run_id),
        session=None,
        forked_from=None,
        replica=replica,
        # What its parent needed says nothing of a part of it.
        foresight=None,
        is_delegated=True,
        agents=(*parent.agents, command.tool) if command.tool else parent.agents,
        read=read,
        earlier=(*parent.earlier, *earlier),
        # A step has its own beside what its plan has.
        filters=(*parent.filters, *ask.filters),
        role=parent.role if ask.role is AgentRole.GENERAL else ask.role,
        # Who is offered no tools attempts nothing, and is not cut short for what others have attempted.
        denials=NO_DENIALS if asked.tool_choice.mode is ToolChoiceMode.NONE else command.denials,
    )


def child_request(request: SystemRequest, messages: tuple[Message, ...]) -> SystemRequest:
    """A request in the name of the same caller, with the same tools at most, about something else."""
    return SystemRequest(
        messages=messages,
        request_id=request.request_id,
        session_id=request.session_id,
        trace_id=request.trace_id,
        tools=request.tools,
        tool_choice=_choice_beneath(request.tool_choice),
        tenant_id=request.tenant_id,
        user_id=request.user_id,
        metadata=request.metadata,
        user_assumed=request.user_assumed,
    )


def replica_request(parent: SystemRequest, evidence: str, said_since: tuple[Message, ...] = ()) -> SystemRequest:
    """The parent's own request, asked once more, with the evidence that was found for it and what people said since."""
    *earlier, last = parent.messages
    shown = (system_message(evidence),) if evidence else ()
    messages = (*earlier, *shown, last, *said_since)
    asked = child_request(parent, messages)
    hints = parent.hints
    if hints.temperature is None:
        hints = replace(hints, temperature=REPLICA_TEMPERATURE)
    return replace(asked, mode=Mode.STRUCTURED, hints=hints, output=parent.output, tool_choice=_NO_TOOLS)


def judge_request(parent: SystemRequest, messages: tuple[Message, ...], schema: JsonObject) -> SystemRequest:
    """The request of a judge: nothing of the conversation but what it is to judge, and no tools."""
    output = OutputContract(schema, repair_allowed=False)
    return replace(child_request(parent, messages), mode=Mode.STRUCTURED, output=output, tool_choice=_NO_TOOLS)


def step_request(parent: SystemRequest, node: Node, messages: tuple[Message, ...]) -> SystemRequest:
    """The request of a step of a plan: its own instruction after the caller's, then what it is fed."""
    ask = node.ask or Ask()
    said = tuple(message for message in parent.messages if message.role is Role.SYSTEM)
    told = (system_message(ask.instruction),) if ask.instruction else ()
    schema = kept_value(ask.schema) if ask.schema else None
    output = replace(parent.output, schema=schema, grammar=ask.grammar or None)
    graph_name = "" if node.inner is None else node.inner.name
    asked = child_request(parent, instructed(ask.role, (*said, *told, *messages)))
    return replace(
        asked,
        mode=Mode(graph_name) if graph_name in set(Mode) else Mode.CHAT,
        hints=_hints_of(ask, parent.hints),
        output=output,
        tools=ask.tools or (),
        tool_choice=asked.tool_choice if ask.tools else _NO_TOOLS,
    )


def _hints_of(ask: Ask, hints: ExecutionHints) -> ExecutionHints:
    """How a step is asked: as it says itself, else as its plan."""
    hints = replace(hints, max_tokens=ask.max_tokens or hints.max_tokens)
    if not ask.sampling:
        return hints
    own = from_json(ask.sampling, ExecutionHints)
    return replace(
        hints,
        temperature=hints.temperature if own.temperature is None else own.temperature,
        top_p=own.top_p or hints.top_p,
        options={**hints.options, **own.options},
    )


def _models_of(parent: Manifest, name: str) -> tuple[tuple[ModelInfo, ...], tuple[str, ...]]:
    """The models of a child and how their engines are opened, the one that its node names before the others."""
    pairs = list(zip(parent.models, parent.engines or ("",) * len(parent.models), strict=True))
    pairs.sort(key=lambda pair: pair[0].name != name)
    return tuple(model for model, _ in pairs), tuple(spec for _, spec in pairs) if parent.engines else ()


def _choice_beneath(choice: ToolChoice) -> ToolChoice:
    """Who may call no tools has no children that do; which tool must be called is between a run and its model."""
    return choice if choice.mode is ToolChoiceMode.NONE else ToolChoice()


def spent_by(state: RunState) -> Charges:
    """The share of its lease that a child used: its counters, less what people released to it beyond the lease.

    What an ended child still holds belongs to calls in doubt, whose cost is unknown: it counts as spent.
    """
    caps = pinned(state).caps
    spent = ((int(d), caps[d] - state.spending.left[d]) for d in COUNTERS)
    return tuple((dimension, amount) for dimension, amount in spent if amount > 0)


def observed_by(state: RunState) -> tuple[tuple[str, int], ...]:
    """The tools of which a run and those beneath it committed observations, and how many."""
    observed = dict(state.effects.observed_below)
    for tool, times in state.effects.committed.items():
        observed[tool] = observed.get(tool, 0) + times
    return tuple(sorted(observed.items()))


async def copy_turns(
    journal: Journal,
    origin: Origin,
    fork_id: str,
    earlier: tuple[EarlierEffect, ...] = (),
    warrant: Warrant | None = None,
) -> None:
    """Write what is still missing of a fork: its origin's turns up to the one it was copied at, and that it stands still.

    It does so from the moment the origin was left until the fork is resumed. `earlier` is what its origin did since.
    """
    for left in reversed(range(CONFLICTS_MAX)):
        try:
            return await _copy_on(journal, origin, fork_id, earlier, warrant)
        except AppendConflict:
            # The process that held the fork before was copying it too, and may have begun it: it goes on from what was written.
            if not left:
                raise
    return None


async def _copy_on(
    journal: Journal,
    origin: Origin,
    fork_id: str,
    earlier: tuple[EarlierEffect, ...],
    warrant: Warrant | None,
) -> None:
    found = await journal.read(fork_id)
    copied, place = list(found), found.place
    if len(copied) > origin.seq + 1:
        return
    if copied:
        origin = _manifest_in(copied[0]).forked_from or origin
    original = (await journal.read(origin.run_id))[: origin.seq + 1]
    if len(original) <= origin.seq:
        message = f"run {origin.run_id} has {len(original)} turns and cannot be forked at turn {origin.seq}"
        raise InvariantBroken("FORK_TOO_LATE", message)
    why = _why_forked(original[0])
    for data in original[len(copied) :]:
        head = hash_turn(copied[-1]) if copied else NO_HASH
        copied.append(encode_turn(_copied(_explained(decode_turn(data), why), origin, fork_id, head, earlier)))
        place = await _append(journal, fork_id, copied, place, warrant)
    state = RunState()
    for data in copied:
        apply(state, decode_turn(data), hash_turn(data))
    copied.append(encode_turn(take_turn(state, RunForked(origin.by or f"fork of {origin.run_id}"), state.at_ms)))
    await _append(journal, fork_id, copied, place, warrant)


async def _append(journal: Journal, fork_id: str, copied: list[bytes], place: Place, warrant: Warrant | None) -> Place:
    listing = None
    if len(copied) == 1:
        listing = run_listing(_manifest_in(copied[0]), decode_turn(copied[0]).at_ms)
    return await journal.append(fork_id, copied[-1], place, listing=listing, warrant=warrant)


def _manifest_in(data: bytes) -> Manifest:
    first = decode_turn(data).arrival
    assert isinstance(first, RunStarted), "the first turn of a run is its start"
    return first.manifest


def _why_forked(data: bytes) -> str:
    """Why a run is itself a fork, from its first turn; empty where it is none."""
    origin = _manifest_in(data).forked_from
    return "" if origin is None else origin.why


def _explained(turn: Turn, why: str) -> Turn:
    """A turn that tells its reason itself: the manifest of a copy has another."""
    arrival = turn.arrival
    if not isinstance(arrival, RunForked) or arrival.why is not None:
        return turn
    return replace(turn, arrival=replace(arrival, why=why))


def _copied(turn: Turn, origin: Origin, fork_id: str, head: bytes, earlier: tuple[EarlierEffect, ...]) -> Turn:
    """A turn as the fork has it: the keys of effects stay, since the world knows them; children become its own."""
    arrival = turn.arrival
    if isinstance(arrival, RunStarted):
        # Whatever the origin's parent leased was settled with the origin, so the fork has no parent.
        # One that was retried is of the family of its origin; any other fork begins one.
        lineage = (*lineage_of(arrival.manifest), origin.run_id) if origin.command_id else ()
        manifest = replace(
            arrival.manifest, run_id=fork_id, forked_from=origin, parent=None, session=None, lineage=lineage
        )
        if earlier:
            # A person is shown the first that applies, so effects of the direct origin come before those of earlier origins.
            manifest = replace(manifest, earlier=tuple(dict.fromkeys((*earlier, *manifest.earlier))))
        arrival = replace(arrival, manifest=manifest)
    elif isinstance(arrival, RunTaken):
        arrival = replace(arrival, token=0)  # The leases of a fork are its own.
    decisions = tuple(
        replace(decision, run_id=derived_id(fork_id, decision.id)) if isinstance(decision, StartChild) else decision
        for decision in turn.decisions
    )
    return replace(turn, arrival=arrival, decisions=decisions, previous=head, heard=0)


# Of so many runs that were begun here it is remembered: the index does not list a run before its first turn is written.
REMEMBERED_MAX = 4096


@checks_arguments()
class Lineages:
    """Tells the lineages of runs."""

    def __init__(self, catalogue: Catalogue, expect_open: Callable[[], None] = lambda: None) -> None:
        self._catalogue = catalogue
        self._expect_open = expect_open
        self._known: dict[str, tuple[str, ...]] = {}

    def learn(self, manifest: Manifest) -> None:
        """Remember the lineage of a run that is about to begin."""
        self._known[manifest.run_id] = lineage_of(manifest)
        if len(self._known) > REMEMBERED_MAX:
            del self._known[next(iter(self._known))]

    async def of(self, run_id: str) -> tuple[str, ...]:
        """The runs that a run came from as a child or as a retry, the first of them first; none where it was not started."""
        self._expect_open()
        if (known := self._known.get(run_id)) is not None:
            return known
        entry = await self._catalogue.entry(run_id)
        return () if entry is None else entry.listing.lineage

    async def family(self, run_id: str) -> str:
        """The first run of the lineage of a run, or the run itself."""
        return next(iter(await self.of(run_id)), run_id)

    async def is_beneath(self, run_id: str, above: str) -> bool:
        """Whether a run is another one, or came from it."""
        return run_id == above or above in await self.of(run_id)
