"""Manifests of runs that come from other runs: children beneath a parent, forks beside the original.

Rule 1: a child holds its parent's boundary narrowed, its lease as its whole budget, and its deadline.
Rule 2: a fork is the original up to a turn, under a new id, and names where it was copied from.
"""

from remit.core.arrivals import RunStarted
from remit.core.boundary import boundary_version, narrow
from remit.core.budget import COUNTERS, Charges, budget_of
from remit.core.codec import NO_HASH, decode_turn, encode_turn, hash_turn
from remit.core.commands import ForkRun, StartChild
from remit.core.contract import SystemRequest
from remit.core.failure import InvariantBroken
from remit.core.graph import Graph, graph_version
from remit.core.manifest import Manifest, Origin
from remit.core.messages import user_message
from remit.core.record import replace
from remit.kernel.state import RunState, pinned
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
        forked_from=None,
    )


def spent_by(state: RunState) -> Charges:
    """What a child used of its lease: its counters, less what people released to it beyond the lease."""
    caps = pinned(state).caps
    spent = ((int(d), state.used[d] - (state.caps[d] - caps[d])) for d in COUNTERS)
    return tuple((dimension, amount) for dimension, amount in spent if amount > 0)


async def fork(journal: Journal, run_id: str, command: ForkRun) -> None:
    """Copy a run up to a turn into a new run. Copying it twice copies it once."""
    if await journal.read(command.run_id):
        return
    head = NO_HASH
    for data in (await journal.read(run_id))[: command.at_seq + 1]:
        turn = decode_turn(data)
        arrival = turn.arrival
        if isinstance(arrival, RunStarted):
            origin = Origin(run_id, command.id, command.at_seq)
            manifest = replace(arrival.manifest, run_id=command.run_id, forked_from=origin)
            arrival = replace(arrival, manifest=manifest)
        copied = encode_turn(replace(turn, arrival=arrival, previous=head))
        await journal.append(command.run_id, copied, after=turn.seq - 1)
        head = hash_turn(copied)
    if head == NO_HASH:
        raise InvariantBroken("FORK_EMPTY", f"run {run_id} has no turn to be forked from")
