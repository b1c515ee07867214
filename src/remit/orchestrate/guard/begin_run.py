"""How a guarded run begins, and how one is gone on with after a crash.

Rule 1: a conversation is pinned like any run: what the user wrote, tools, boundary, who asks, and the host's name for it.
Rule 2: the caps of steps and time are the host's to keep; every other cap is the run's.
Rule 3: a run is gone on with by a host that declares exactly the same, and by one process at a time. Of several that begin a
        conversation at once one does: its id follows from tenant, name and how many there were, so the others conflict.
Rule 4: whatever the guard knows of a run beyond its state is read off its turns again.
Rule 5: a run that brings no boundary has GUARDED: no effect needs a person for what it is, only for where its values come
        from; its caps stop a lost loop. An object has the keys of a boundary file, some of them without their group as well,
        and says how a run differs from GUARDED or from the boundary it extends; an unknown key or cap is refused by its name.
        A boundary without options of the gate has the standard ones, because the guard is the gate.
"""

from collections.abc import Collection
from typing import Any

from remit.core.clipped import SHOWN_CHARS_MAX
from remit.core.failure import IllegalArrival, RequestRejected
from remit.core.journal.arrivals import CallProposed
from remit.core.journal.codec import decode_turn
from remit.core.journal.storage import AppendConflict, RunHeld, Warrant
from remit.core.limits.authority import Authority, authority_of
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Dimension
from remit.core.limits.profiles import GUARDED, boundary_named
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.lineage import derived_id
from remit.core.run.manifest import Host, Manifest, acting_for, make_manifest
from remit.core.run.messages import user_message
from remit.core.run.principal import LOCAL, person_for, tenant_for
from remit.core.work.graph import EXITS, TERMINALS, Edge, Graph, Node, NodeKind
from remit.kernel.state import RunState, pinned
from remit.orchestrate.facts.first_arrival import started
from remit.orchestrate.guard.guard_parts import GuardParts
from remit.orchestrate.guard.open_run import OpenRun
from remit.orchestrate.guard.protocol import asker_in, expected_calls, model_in, read_in
from remit.orchestrate.guard.shown_verdicts import shown_verdict
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.recover import recover
from remit.orchestrate.loop.runner import CONFLICTS_MAX
from remit.provenance.gate import prompts_of

GUARD_BOUNDARY_INVALID = "GUARD_BOUNDARY_INVALID"


def boundary_of_start(said: Any) -> Boundary:
    """The boundary that a start names or writes out, always with a gate; raises RequestRejected for what is none."""
    if said is None:
        return gated(GUARDED)
    if isinstance(said, str):
        return gated(boundary_named(said))
    if not isinstance(said, dict):
        shown = repr(said)[:SHOWN_CHARS_MAX]
        message = f"boundary={shown} cannot be used; use a name or a JSON object"
        raise RequestRejected(GUARD_BOUNDARY_INVALID, message, {"key": "boundary"})
    # Only those who write a boundary out pay for its reader.
    from remit.orchestrate.boundaries.boundary_file import FLAT, boundary_from

    # Its options are refused under their own code.
    authority_of(said.get("authority"))
    # Null counts as absent, as everywhere in the protocol.
    present = {key: value for key, value in said.items() if value is not None}
    return gated(boundary_from(present, base=GUARDED, code=GUARD_BOUNDARY_INVALID, flat=FLAT))


def gated(boundary: Boundary) -> Boundary:
    """The boundary with a gate, which the guard is."""
    return boundary if boundary.authority is not None else replace(boundary, authority=Authority())


GUARD_RUN_OPEN = "GUARD_RUN_OPEN"
GUARD_RUN_DIFFERS = "GUARD_RUN_DIFFERS"

# How long a conversation may take is for its host to say; a run has a deadline all the same: ten years.
_WALL_CLOCK_MS = 315_360_000_000

# One place: the agent stays there until it says that it is done.
HOST_GRAPH = Graph("guard", "host", (Node("host", NodeKind.HOST), *TERMINALS), (Edge("host", "done"),), EXITS)


async def manifest_of(
    parts: GuardParts,
    name: str,
    prompt: str | list[JsonObject],
    tools: tuple[ToolDefinition, ...],
    operation: JsonObject,
) -> Manifest:
    """The manifest of a conversation; raises RequestRejected for what no run could be made of."""
    asker, plan, principal = asker_in(operation), expected_calls(operation.get("plan")), parts.principal
    for key in ("user", "tenant"):
        parts.check_name(key, getattr(asker, key))
    tenant, user = tenant_for(principal, asker.tenant), person_for(principal, asker.user, "user")
    boundary, fault = boundary_of_start(operation.get("boundary")), ""
    if principal is not LOCAL and parts.policies is not None:
        found, fault = await parts.policies.of(principal)
        boundary = gated(found)
    messages = tuple([user_message(said) for said in prompts_of(prompt)])
    manifest = make_manifest(
        run_id=parts.new_id(),
        request=SystemRequest(messages, user_id=user, tenant_id=tenant),
        boundary=boundary,
        graph=HOST_GRAPH,
        models=(),
        tools=tools,
        role=asker.role,
        owner=parts.owner,
    )
    caps = list(manifest.caps)
    caps[Dimension.WALL_CLOCK_MS], caps[Dimension.STEPS] = _WALL_CLOCK_MS, max(caps[Dimension.STEPS], 1)
    host = Host(name, None if plan is None else tuple(plan.items()), model_in(operation))
    manifest = manifest if principal is LOCAL else acting_for(manifest, principal, fault)
    return replace(manifest, caps=tuple(caps), host=host, read=read_in(operation.get("read")))


async def take_run(parts: GuardParts, manifest: Manifest, moment_ms: int | None) -> tuple[Live, bool]:
    """Begin the run of this name and tenant, or go on with an open one; gives it, leased, and whether it is new."""
    passed: dict[str, None] = {}
    while len(passed) < CONFLICTS_MAX:
        # The id first, then the look for an open run: a run that begins in between has this very id.
        run_id, last_id = await _next_id(parts, manifest, passed)
        if (live := await _reopen(parts, manifest, last_id, moment_ms)) is not None:
            return live, False
        try:
            named = replace(manifest, run_id=run_id)
            return await parts.begin(named, lambda assigned: _begin(parts, assigned, moment_ms)), True
        except AppendConflict:
            passed[run_id] = None
    message = f"{len(passed)} other guards in a row began the conversation first; start it again, or under another name"
    raise RunHeld(next(reversed(passed)), message=message)


async def _next_id(parts: GuardParts, manifest: Manifest, passed: Collection[str]) -> tuple[str, str]:
    """The id of the conversation that begins next under this name: the first that no run of it had, also none that is gone.

    Beside it stands the id before it, which the last one had; empty where this is the first. `passed` are those that no
    run can begin with, although none is known to have it.
    """
    if parts.custody is None:
        return parts.new_id(), ""
    place, step, is_growing = 0, 1, True
    while step:
        if await parts.custody.was_begun(_id_at(manifest, place + step - 1)):
            place, step = place + step, step * 2 if is_growing else step // 2
        else:
            step, is_growing = step // 2, False
    while (run_id := _id_at(manifest, place)) in passed or (place and await parts.custody.was_begun(run_id)):
        place += 1
    return run_id, _id_at(manifest, place - 1) if place else ""


def _id_at(manifest: Manifest, place: int) -> str:
    """The id of the conversation at a place among those of its name and tenant."""
    assert manifest.host is not None, "a guarded run has a host"
    return derived_id("guard", _tenant_of(manifest), manifest.host.name, str(place))


def _tenant_of(manifest: Manifest) -> str:
    return manifest.request.tenant_id


async def _begin(parts: GuardParts, manifest: Manifest, moment_ms: int | None) -> Live:
    """Take the lease of a new run and begin it; raises AppendConflict where another process has begun it."""
    run_id = manifest.run_id
    live = Live(run_id)
    live.warrant, live.moment_ms = await _take_lease(parts, manifest, run_id), moment_ms
    try:
        return await parts.runner.start(manifest, live)
    except IllegalArrival as error:
        await parts.run_leases.let_go(run_id, live.warrant)
        if live.state.seq < 0:
            raise
        raise AppendConflict(run_id) from error
    except BaseException:
        await parts.run_leases.let_go(run_id, live.warrant)
        raise


async def _take_lease(parts: GuardParts, manifest: Manifest, run_id: str) -> Warrant:
    """Take the lease of a run of this host; raises RunHeld, which names the conversation, where another guard drives it."""
    try:
        return await parts.run_leases.take(run_id)
    except RunHeld as error:
        name = "" if manifest.host is None else manifest.host.name
        message = f"run {name!r} is open as {run_id} under another guard; use another name, or end that one"
        raise RunHeld(run_id, message=message) from error


async def _reopen(parts: GuardParts, manifest: Manifest, last_id: str, moment_ms: int | None) -> Live | None:
    """Take the lease of the open run of this name and tenant and load it; None where there is none."""
    if not (run_id := await _open_id(parts, manifest, last_id)):
        return None
    warrant = await _take_lease(parts, manifest, run_id)
    try:
        live = await parts.runner.load(run_id)
        await parts.run_leases.bind(live, warrant)
        live.moment_ms = moment_ms
        if parts.custody is not None:
            await parts.custody.expect_kept(live.state, run_id)
        _check_same(parts, live.state, manifest)
    except BaseException:
        await parts.run_leases.let_go(run_id, warrant)
        raise
    return live


async def _open_id(parts: GuardParts, manifest: Manifest, last_id: str) -> str:
    """The id of the open run of this name and tenant; empty where there is none.

    The list of runs is made from their turns and may be bent, or lack a run. So turns say whether a run is open, those of
    the last conversation first; where they cannot be read although they were signed, raises what has become of them.
    """
    assert manifest.host is not None, "a guarded run has a host"
    listed = () if parts.catalogue is None else await parts.catalogue.named(manifest.host.name, _tenant_of(manifest))
    for run_id in dict.fromkeys([*filter(None, [last_id]), *(entry.run_id for entry in listed)]):
        state = (await parts.runner.load(run_id)).state
        if parts.custody is not None:
            await parts.custody.expect_no_other(state, run_id)
        if state.seq >= 0 and state.end.ending is None:
            return run_id
    return ""


def _check_same(parts: GuardParts, state: RunState, manifest: Manifest) -> None:
    """Refuse to go on with a run that was begun with something else: by its words and tools calls are judged."""
    was, sealer = pinned(state), parts.runner.sealer
    wanted = replace(manifest, run_id=was.run_id, caps=was.caps)
    declared = started(wanted if sealer is None else sealer.manifest(wanted), []).manifest
    unlike = [part for part in Manifest.__struct_fields__ if getattr(declared, part) != getattr(was, part)]
    if unlike:
        message = (
            f"the run of this name is open as {was.run_id} with other {', '.join(unlike)}; start it with the same, "
            f"end it with `remit signal {was.run_id} cancel`, or use another name"
        )
        raise RequestRejected(GUARD_RUN_DIFFERS, message, {"run_id": was.run_id, "unlike": unlike})


async def go_on(parts: GuardParts, run: OpenRun) -> int:
    """Read a run from its first turn on, and put in doubt what has no outcome; gives how many bytes its turns have."""
    live, runner = run.live, parts.runner
    data = await runner.journal.read(live.run_id)
    turns = [decode_turn(stored) for stored in data]
    tracer, read = await runner.retraced(turns, 1)
    for turn in turns[1:]:
        tracer.verdict = None
        tracer.retrace(turn, read)
        run.follow(turn)
        if (
            isinstance(turn.arrival, CallProposed)
            and (waiting := run.waiting.get(turn.arrival.call.call_id)) is not None
        ):
            waiting.shown, waiting.shown_with = (
                waiting.shown or shown_verdict(turn, tracer.verdict, tracer.gate),
                waiting.question,
            )
    live.tracer = tracer
    is_fenced = live.warrant is not None and parts.run_leases.may_expire
    await recover(runner, live.run_id, live, token=live.warrant.token if live.warrant is not None and is_fenced else 0)
    return sum(map(len, data))
