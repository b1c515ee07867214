"""Manifests of runs that come from other runs: children beneath a parent, forks beside the original.

Rule 1: a child holds its parent's boundary narrowed, its lease as its whole budget, and its deadline.
Rule 2: a fork is the original up to a turn, under a new id, and names where it was copied from.
Rule 3: copying can be cut off between any two turns and goes on from there; the manifest says how far it must get.
Rule 4: a fork begins paused where its origin was left, and goes on when whoever asked for it resumes it.
"""

from contextlib import suppress

from remit.core.arrivals import PauseRequested, RunStarted
from remit.core.boundary import boundary_version, narrow
from remit.core.budget import COUNTERS, Charges, budget_of
from remit.core.codec import NO_HASH, decode_turn, encode_turn, hash_turn
from remit.core.commands import StartChild
from remit.core.contract import SystemRequest
from remit.core.events import Turn
from remit.core.failure import InvariantBroken
from remit.core.graph import Graph, graph_version
from remit.core.manifest import Manifest, Origin
from remit.core.messages import user_message
from remit.core.record import replace
from remit.core.storage import AppendConflict
from remit.core.tools import ToolChoice, ToolChoiceMode
from remit.kernel.apply import apply
from remit.kernel.decide import take_turn
from remit.kernel.state import RunState, pinned
from remit.orchestrate.durability import listing_of
from remit.orchestrate.ports import Journal


def child_manifest(parent: Manifest, command: StartChild, graph: Graph) -> Manifest:
    """What a child run is started with."""
    lease = dict(command.lease)
    # Gauges and the clock are limits of the moment and are inherited; counters are what the lease holds, else nothing.
    caps = tuple(lease.get(index, 0) if index in COUNTERS else cap for index, cap in enumerate(parent.caps))
    boundary = narrow(parent.boundary, tools=parent.request.tools or None, budget=budget_of(caps))
    request = SystemRequest(
        messages=(user_message(command.prompt),),
        request_id=parent.request.request_id,
        session_id=parent.request.session_id,
        trace_id=parent.request.trace_id,
        tools=parent.request.tools,
        tool_choice=_choice_beneath(parent.request.tool_choice),
        tenant_id=parent.request.tenant_id,
        user_id=parent.request.user_id,
        metadata=parent.request.metadata,
    )
    return replace(
        parent,
        run_id=command.run_id,
        request=request,
        boundary=boundary,
        caps=caps,
        graph=graph,
        versions=replace(parent.versions, boundary=boundary_version(boundary), graph=graph_version(graph)),
        goal=None,
        retrieves_context=False,
        depth=command.depth,
        deadline_at_ms=command.deadline_at_ms,
        parent=Origin(parent.run_id, command.id),
        session=None,
        forked_from=None,
    )


def _choice_beneath(choice: ToolChoice) -> ToolChoice:
    """Who may call no tools has no children that do; which tool must be called is between a run and its model."""
    return choice if choice.mode is ToolChoiceMode.NONE else ToolChoice()


def spent_by(state: RunState) -> Charges:
    """What a child used of its lease: its counters, less what people released to it beyond the lease.

    What an ended child still holds belongs to calls in doubt, whose cost nobody knows: it counts as spent.
    """
    caps = pinned(state).caps
    spent = ((int(d), caps[d] - state.left[d]) for d in COUNTERS)
    return tuple((dimension, amount) for dimension, amount in spent if amount > 0)


async def copy_turns(journal: Journal, origin: Origin, fork_id: str) -> None:
    """Write what is still missing of a fork: its origin's turns up to the one it was copied at, and a pause after them.

    The pause makes the clock stand still from the moment the origin was left until the fork is resumed.
    """
    copied = list(await journal.read(fork_id))
    if len(copied) > origin.seq + 1:
        return
    original = (await journal.read(origin.run_id))[: origin.seq + 1]
    if len(original) <= origin.seq:
        message = f"run {origin.run_id} has {len(original)} turns and cannot be forked at turn {origin.seq}"
        raise InvariantBroken("FORK_TOO_LATE", message)
    for data in original[len(copied) :]:
        head = hash_turn(copied[-1]) if copied else NO_HASH
        copied.append(encode_turn(_copied(decode_turn(data), origin, fork_id, head)))
        await _append(journal, fork_id, copied)
    state = RunState()
    for data in copied:
        apply(state, decode_turn(data), hash_turn(data))
    if not state.paused:
        copied.append(encode_turn(take_turn(state, PauseRequested(f"fork of {origin.run_id}"), state.at_ms)))
        await _append(journal, fork_id, copied)


async def _append(journal: Journal, fork_id: str, copied: list[bytes]) -> None:
    listing = None
    if len(copied) == 1:
        first = decode_turn(copied[0])
        assert isinstance(first.arrival, RunStarted), "the first turn of a run is its start"
        listing = listing_of(first.arrival.manifest, first.at_ms)
    with suppress(AppendConflict):  # Someone else is copying too, and writes the same bytes.
        await journal.append(fork_id, copied[-1], after=len(copied) - 2, listing=listing)


def _copied(turn: Turn, origin: Origin, fork_id: str, head: bytes) -> Turn:
    """A turn as the fork has it: the keys of effects stay, since the world knows them; children become its own."""
    arrival = turn.arrival
    if isinstance(arrival, RunStarted):
        # Whatever the origin's parent leased was settled with the origin, so the fork answers to nobody.
        manifest = replace(arrival.manifest, run_id=fork_id, forked_from=origin, parent=None, session=None)
        arrival = replace(arrival, manifest=manifest)
    decisions = tuple(
        replace(decision, run_id=f"{fork_id}.{decision.id}") if isinstance(decision, StartChild) else decision
        for decision in turn.decisions
    )
    return replace(turn, arrival=arrival, decisions=decisions, previous=head)
