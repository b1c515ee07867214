"""The manifest: everything a run was started with, pinned by its first turn and never changed.

Rule 1: each part that has versions carries the content hash of the one that was used.
Rule 2: prices, model windows and tool schemas are snapshots, so judging never asks the world.
"""

from collections.abc import Iterable, Mapping

import msgspec

from remit.core.clipped import clipped
from remit.core.failure import NO_DENIALS, Denials, ErrorCode, RequestRejected
from remit.core.journal.canonical import canonical_hash
from remit.core.limits.boundary import Boundary, boundary_version
from remit.core.limits.budget import (
    DIMENSIONS,
    Budget,
    Caps,
    assign,
    beyond,
    check_budget,
    check_charged,
    negative_caps,
    padded,
)
from remit.core.limits.foresight import Foresight
from remit.core.limits.profiles import KNOWN, check_figures
from remit.core.limits.tools import ToolDefinition, check_definition, tool_version
from remit.core.record import Record, once_a_record, replace
from remit.core.run.contract import ExecutionHints, SystemRequest
from remit.core.run.inference import ModelInfo, Routing
from remit.core.run.lifecycle import AgentRole
from remit.core.run.lineage import ID_CHARS_MAX, is_safe_id, lifted
from remit.core.run.person import is_same_person
from remit.core.run.principal import Principal, may
from remit.core.work.goal import Goal, Task
from remit.core.work.graph import MODEL_KINDS, Graph, graph_version
from remit.core.work.orders import LeasedOrders
from remit.core.work.plan import PlanTrace

# What the patterns ask of a model by default.
OUTPUT_TOKENS_DEFAULT = 2048
# How long one model call or one piece of named code may take before its executor reports a failure: long enough
# for a slow local model, shorter than any standard wall clock.
MODEL_TIMEOUT_MS = 120_000
CODE_TIMEOUT_MS = 30_000


MANIFEST_INVALID = "MANIFEST_INVALID"
# Tools of all runs; a deployment has some hundred.
_TOOLS_KEPT_MAX = 1024


# The fields in which a fallback tool must equal the tool that it replaces.
_EQUAL_IN = (
    "parameters",
    "effect",
    "network",
    "category",
    "destructive",
    "permissions",
    "control_args",
    "trust",
    "delegates",
    "asks_under",
    "grants",
)


class Versions(Record):
    """Content hashes of the parts this run was started with."""

    boundary: str
    graph: str
    tools: str


class Origin(Record):
    """The run another one came from: the parent of a child, or what a fork was copied from."""

    run_id: str
    command_id: str = ""
    seq: int = 0
    # Who wanted the fork, why, and when.
    by: str = ""
    why: str = ""
    at_ms: int = 0


class EarlierEffect(Record):
    """An effect of the run that this one was forked from, which the copied turns do not tell of; or of an attempt before it.

    Without a tool it stands for any effect: the origin was open when it was copied, and may do what its fork does; or turns
    of it are missing, and it is unknown what they did.
    """

    run_id: str
    tool: str = ""
    arguments_hash: bytes = b""
    seq: int = 0
    # How far it got, or the code that says why that is unknown.
    how: str = ""
    # The key of its call, where it is unknown what became of it.
    key: str = ""


class Source(Record):
    """Where code that a run relies on was loaded from, so that the process that resumes it can load the same again.

    `place` is an absolute path or the name of a module, `attribute` the name within it, `digest` the SHA-256 of the
    file in hexadecimal. A place may also be `builtin:...`; the digest then covers the place and the tool's revision.
    An empty place says that it was made on the spot and cannot be loaded again by name.
    """

    name: str
    place: str = ""
    attribute: str = ""
    digest: str = ""


# Preferences and resolved names, not a database: every run of the session begins with all of them.
SESSION_ENTRIES_MAX = 256


class SessionLink(Record):
    """The place of a run in its session: the run before it and that one's head, and the entries it begins with.

    An entry's value is a JSON text.
    """

    ordinal: int
    previous_run_id: str = ""
    previous_head: bytes = b""
    entries: tuple[tuple[str, str], ...] = ()
    # Labels of what earlier runs of the session have read: their answers, which this one is shown, may tell it.
    read: tuple[str, ...] = ()


class Host(Record):
    """The agent elsewhere whose calls a run judges: how it names the run.

    `plan` says how often its model thinks tools are asked for, `model` which one that is, where the agent says so.
    """

    name: str
    plan: tuple[tuple[str, int], ...] | None = None
    model: str = ""


class Manifest(Record):
    """Everything that the first turn of a run pins."""

    run_id: str
    request: SystemRequest
    boundary: Boundary
    caps: Caps
    graph: Graph
    versions: Versions
    models: tuple[ModelInfo, ...]
    # How each model's engine is opened again, in the same order; empty for one that was passed as an object.
    engines: tuple[str, ...] = ()
    tools: tuple[ToolDefinition, ...] = ()
    # Where the functions of the tools and other named code came from.
    sources: tuple[Source, ...] = ()
    session: SessionLink | None = None
    goal: Goal | None = None
    role: AgentRole = AgentRole.GENERAL
    retrieves_context: bool = False
    router: Routing = Routing.AUTO
    depth: int = 0
    deadline_at_ms: int = 0
    parent: Origin | None = None
    forked_from: Origin | None = None
    # Where the plan of a run of mode plan comes from.
    plan: PlanTrace | None = None
    # Whether its request was put together by a model or a graph, as that of a child: such words ask for nothing.
    is_delegated: bool = False
    # Labels of what the run above has read.
    read: tuple[str, ...] = ()
    # So many models after the first stand ready to be asked in its place, in this order, once money runs short.
    cheaper: int = 0
    # Named code that looks at proposed calls before they are judged, in this order.
    filters: tuple[str, ...] = ()
    # What like runs needed at least, where any are known.
    foresight: Foresight | None = None
    # Which of several runs that are asked the same this one is, from 1; 0 where there is one alone.
    replica: int = 0
    # What the run that this one was forked from did after the turn it was copied at; children of a fork know it too.
    earlier: tuple[EarlierEffect, ...] = ()
    # Who asked for it: the user whom the request names, else the owner of the store; empty where that is unknown.
    started_by: str = ""
    owner: str = ""
    # What kind of task it is, where its caller does not say: as its boundary says, or as the user's words were taken.
    task: Task | None = None
    # The runs that it came from as a child or as a retry, the first of them first; a fork that was not retried has none.
    lineage: tuple[str, ...] = ()
    # What the run above had been denied when it started this one: both count as one.
    denials: Denials = NO_DENIALS
    # For whom it acts, and with which scopes at most; None where the local principal started it, who has them all.
    principal: Principal | None = None
    # The agents through which it came: the program that speaks for its principal, then those that were delegated to.
    agents: tuple[str, ...] = ()
    # Why the policy for its principal could not be read, where it began under the boundary that stands in for one.
    policy_fault: str = ""
    # Who proposes and makes the calls, where that is an agent elsewhere.
    host: Host | None = None
    # What its caller should know of how it was begun, in words: what was asked for beyond the boundary, and not given.
    notes: tuple[str, ...] = ()
    # Whether the caller set a cap of money: then a model without a price is not asked.
    is_money_capped: bool = True
    # The orders that the run above has leased it; no other run carries them out meanwhile.
    leased: LeasedOrders | None = None

    def __post_init__(self) -> None:
        """Read the manifest of an earlier version, which knew fewer dimensions, as one that caps them all."""
        if len(self.caps) < DIMENSIONS:
            msgspec.structs.force_setattr(self, "caps", padded(self.caps, self.boundary.budget))


def _is_money_capped(boundary: Boundary, budget: Budget) -> bool:
    """Whether the caller or a boundary of their own caps money; the caps that come with the house do not count."""
    if budget.inference_cost_microusd is not None:
        return True
    own, known = boundary.budget.inference_cost_microusd, KNOWN.get(boundary.name)
    return own is not None and (known is None or own != known.budget.inference_cost_microusd)


def unpriced_notes(models: Iterable[ModelInfo]) -> tuple[str, ...]:
    """What the caller of a run should know whose models have no price."""
    return tuple(
        f"the price of model {model.name[:80]!r} is unknown, so no money is counted for it; give its ModelInfo a price"
        for model in models
        if model.price is None
    )


def _check_asked(run_id: str, graph: Graph, models: tuple[ModelInfo, ...]) -> None:
    """Refuse a run that asks a model and has none."""
    if not models and _asks(graph):
        message = f"run {run_id!r} has no model; give it at least one engine"
        raise RequestRejected(ErrorCode.CONFIG_NO_ENGINE, message)


def _asks(graph: Graph) -> bool:
    """Whether a model is asked in a graph, or in one of its children: one without a graph of its own chats."""
    nodes = (node for node in graph.nodes if node.kind in MODEL_KINDS)
    return any(node.inner is None or _asks(node.inner) for node in nodes)


def _notes(
    boundary: Boundary, budget: Budget, hints: ExecutionHints, uncapped: tuple[ModelInfo, ...]
) -> tuple[str, ...]:
    """What the budget and the hints ask for that the boundary does not give, and what models cost that no cap holds."""
    # Every loop names the default; only a caller that wants more has asked for anything.
    tokens = hints.max_tokens if hints.max_tokens > OUTPUT_TOKENS_DEFAULT else None
    hinted = Budget(output_tokens=tokens, wall_clock_ms=hints.timeout_ms or None)
    said = {"output_tokens": "max_tokens", "wall_clock_ms": "timeout_ms"}
    return (*beyond(boundary.budget, budget), *beyond(boundary.budget, hinted, said), *unpriced_notes(uncapped))


def make_manifest(
    *,
    run_id: str,
    request: SystemRequest,
    boundary: Boundary,
    graph: Graph,
    models: tuple[ModelInfo, ...],
    budget: Budget = Budget(),
    tools: tuple[ToolDefinition, ...] = (),
    goal: Goal | None = None,
    role: AgentRole = AgentRole.GENERAL,
    retrieves_context: bool = False,
    router: Routing = Routing.AUTO,
    engines: tuple[str, ...] = (),
    sources: tuple[Source, ...] = (),
    session: SessionLink | None = None,
    plan: PlanTrace | None = None,
    filters: tuple[str, ...] = (),
    foresight: Foresight | None = None,
    cheaper: int = 0,
    owner: str = "",
) -> Manifest:
    """Pin the parts of a root run: everything checked, caps assigned, versions hashed from what was given."""
    _check_parts(run_id, tools, boundary.budget, budget)
    is_money_capped = _is_money_capped(boundary, budget) or all(model.price is not None for model in models)
    _check_asked(run_id, graph, models)
    check_figures(boundary)
    check_budget(budget)
    for node in [node for node in graph.nodes if node.lease]:
        check_charged(f"the lease of node {node.name!r}", node.lease)
    pinned = tuple([_versioned(tool) for tool in tools])
    return Manifest(
        run_id=run_id,
        request=request,
        boundary=boundary,
        caps=assign(boundary.budget, budget, Budget(wall_clock_ms=request.hints.timeout_ms or None)),
        graph=graph,
        versions=Versions(
            boundary=boundary_version(boundary),
            graph=graph_version(graph),
            tools=canonical_hash([tool.version for tool in pinned]).hex(),
        ),
        models=models,
        tools=pinned,
        goal=goal,
        role=role,
        retrieves_context=retrieves_context,
        router=router,
        engines=engines,
        sources=sources,
        session=session,
        plan=plan,
        filters=filters,
        foresight=foresight,
        notes=_notes(boundary, budget, request.hints, () if is_money_capped else models),
        is_money_capped=is_money_capped,
        cheaper=cheaper,
        started_by=request.user_id or owner,
        owner=owner,
    )


def acting_for(manifest: Manifest, principal: Principal, policy_fault: str = "") -> Manifest:
    """The manifest of a run that acts for a principal. Its owner is only the opener of the store."""
    agents = (principal.agent,) if principal.agent else ()
    return replace(manifest, principal=principal, agents=agents, policy_fault=policy_fault, owner="")


def has_scope(manifest: Manifest, permission: str) -> bool:
    """Whether the principal of a run has a permission; the boundary of the run has to hold it, too."""
    return manifest.principal is None or may(manifest.principal, permission)


def permissions_of(manifest: Manifest) -> tuple[str, ...]:
    """The permissions that a run may use."""
    return tuple([name for name in manifest.boundary.permissions if has_scope(manifest, name)])


def lineage_of(manifest: Manifest) -> tuple[str, ...]:
    """The runs that a run came from as a child or as a retry, the first of them first."""
    if manifest.lineage:
        return manifest.lineage
    tried = manifest.forked_from if manifest.forked_from is not None and manifest.forked_from.command_id else None
    origin = manifest.parent or tried
    # It was begun before lineages were pinned.
    return () if origin is None else (*lifted(origin.run_id), origin.run_id)


def lineage_root(manifest: Manifest) -> str:
    """The first run of the lineage of a run, or the run itself: what is sealed for one of them, all of them know."""
    return next(iter(lineage_of(manifest)), manifest.run_id)


def has_orders(manifest: Manifest) -> bool:
    """Whether a run was given orders, by its caller or by the run above it."""
    return bool(manifest.request.orders) or manifest.leased is not None


def askers_of(manifest: Manifest) -> tuple[str, ...]:
    """Who asked for a run: the person who started it, and the one who wanted it forked."""
    forked_by = "" if manifest.forked_from is None else manifest.forked_from.by
    return tuple([name for name in (manifest.started_by, forked_by) if name])


def may_approve_own(manifest: Manifest, asker: str) -> bool:
    """Whether this one of those who asked for a run may approve what it asks: the owner of its store, unless it is said."""
    allowed = manifest.boundary.self_approval
    return is_same_person(asker, manifest.owner) if allowed is None else allowed


def _versioned(tool: ToolDefinition) -> ToolDefinition:
    version = tool_version(tool)
    return tool if tool.version == version else replace(tool, version=version)


def _check_parts(run_id: object, tools: tuple[ToolDefinition, ...], *budgets: Budget) -> None:
    if not isinstance(run_id, str) or not is_safe_id(run_id):
        words = f"{ID_CHARS_MAX} letters, digits, dashes and underscores of ASCII"
        raise RequestRejected(MANIFEST_INVALID, f"run_id={clipped(run_id)} is no id; take 1 to {words}")
    for tool in tools:
        _check_tool(tool)
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        repeated = sorted({name for name in names if names.count(name) > 1})
        raise RequestRejected(MANIFEST_INVALID, f"tools {', '.join(repeated)} are registered twice; rename one of each")
    known = {tool.name: tool for tool in tools}
    for tool in tools:
        _check_other_tools(tool, known)
    for budget in budgets:
        if negative := negative_caps(budget):
            raise RequestRejected(MANIFEST_INVALID, f"caps of {', '.join(negative)} are below 0; 0 forbids")


# Every run of a program brings the same tools.
_check_tool = once_a_record(_TOOLS_KEPT_MAX)(check_definition)


def _check_other_tools(tool: ToolDefinition, tools: Mapping[str, ToolDefinition]) -> None:
    """Refuse a tool that names another which is not there, or as its equivalent one that is called or acts otherwise."""
    for role, name in (("alternative", tool.alternative), ("fallback", tool.fallback)):
        if name and name not in tools:
            message = f"tool {tool.name} names {name[:80]!r} as its {role}, which is not registered; register it too"
            raise RequestRejected(MANIFEST_INVALID, message)
    if not tool.fallback:
        return
    other = tools[tool.fallback]
    for key in _EQUAL_IN:
        if getattr(tool, key) != getattr(other, key):
            message = f"tool {tool.name} has {other.name} as its fallback, and their {key} differ; make them equal"
            raise RequestRejected(MANIFEST_INVALID, message)
