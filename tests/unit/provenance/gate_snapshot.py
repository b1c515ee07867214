"""Snapshots: a gate as plain JSON values and back, at any moment of a run.

Rule 1: only what cannot be computed is written: prompts, declarations, options, observations, and what became of calls.
        The index, the picks and the plan are made anew from these.
Rule 2: a restored gate gives the same verdicts and writes the same snapshot.
Rule 3: a snapshot of another form is refused by its version.
"""

from typing import Any

from remit.core.failure import RequestRejected
from remit.core.limits.authority import authority_json, authority_of
from remit.core.record import JsonObject
from remit.provenance.call_log import Call
from remit.provenance.gate import Gate
from remit.provenance.origins.labels import Group, Observation
from remit.provenance.repeated_effects import Uses

SNAPSHOT_VERSION = 3
SNAPSHOT_INVALID = "SNAPSHOT_INVALID"


def snapshot(gate: Gate) -> JsonObject:
    """The state of a gate as plain JSON values."""
    ledger = gate.ledger
    return {
        "version": SNAPSHOT_VERSION,
        "prompts": list(gate.grounds.prompts),
        "earlier": gate.grounds.earlier,
        "read": list(gate.grounds.read),
        "tools": gate.tools_json,
        "authority": authority_json(gate.authority),
        "plan": dict(gate.model_plan),
        "observations": [_observation_json(one) for one in gate.grounds.index.observations],
        "trusted_hosts": list(gate.trusted_hosts),
        "covered": sorted(gate.covered),
        "approved": sorted([list(one) for one in gate.grounds.approved]),
        "count": ledger.count,
        "tripped": ledger.tripped,
        "open": [_call_json(call) for call in ledger.open.values()],
        "waiting": [_call_json(call) for call in ledger.waiting.values()],
        "approvals": dict(ledger.approvals),
        "rejected": dict(ledger.rejected),
        "again": sorted(ledger.again),
        "retries": sorted(ledger.retries),
        "written": list(ledger.written.parts),
        "uses": {tool: [uses.calls, dict(uses.targets)] for tool, uses in ledger.uses.items() if uses.calls},
    }


def restore(state: Any) -> Gate:
    """The gate that a snapshot was taken of."""
    if not isinstance(state, dict) or state.get("version") != SNAPSHOT_VERSION:
        found = state.get("version") if isinstance(state, dict) else state
        message = f"snapshot version={repr(found)[:80]} is unknown; this release reads {SNAPSHOT_VERSION}"
        raise RequestRejected(SNAPSHOT_INVALID, message)
    try:
        return _restored(state)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise RequestRejected(SNAPSHOT_INVALID, f"snapshot is damaged: {error!r}"[:300]) from None


def _restored(state: Any) -> Gate:
    authority, read = authority_of(state["authority"]), tuple(state["read"])
    gate = Gate(
        state["prompts"],
        state["tools"],
        authority,
        state["plan"],
        earlier=state["earlier"],
        read=read,
        trusted_hosts=tuple(state["trusted_hosts"]),
    )
    gate.covered = set(state["covered"])
    for one in state["observations"]:
        gate.grounds.add(_observation(one))
    gate.grounds.approved = {(tool, kind, value) for tool, kind, value in state["approved"]}
    ledger = gate.ledger
    ledger.count, ledger.tripped = state["count"], state["tripped"]
    ledger.open = {call.call_id: call for call in map(_call, state["open"])}
    ledger.waiting = {call.call_id: call for call in map(_call, state["waiting"])}
    ledger.approvals, ledger.rejected = dict(state["approvals"]), dict(state["rejected"])
    ledger.again, ledger.retries = set(state["again"]), set(state["retries"])
    ledger.written.note(state["written"])
    ledger.uses = {tool: Uses(calls, dict(targets)) for tool, (calls, targets) in state["uses"].items()}
    return gate


def _observation_json(one: Observation) -> JsonObject:
    return {
        "call_id": one.call_id,
        "tool": one.tool,
        "groups": {
            name: {"records": list(group.records), "kinds": dict(group.kinds), "is_cut": group.is_cut}
            for name, group in one.groups.items()
        },
        "references": [list(reference) for reference in one.references],
        "marks": [one.chosen, one.asked, one.is_earlier, one.located, one.untrusted],
        "arguments": list(one.arguments),
        "names": list(one.names),
        "readers": None if one.readers is None else list(one.readers),
    }


def _observation(one: JsonObject) -> Observation:
    chosen, asked, is_earlier, located, untrusted = one["marks"]
    groups = {
        name: Group(tuple(group["records"]), dict(group["kinds"]), group["is_cut"])
        for name, group in one["groups"].items()
    }
    return Observation(
        one["call_id"],
        one["tool"],
        groups,
        tuple((kind, value) for kind, value in one["references"]),
        chosen=chosen,
        asked=asked,
        is_earlier=is_earlier,
        located=located,
        untrusted=untrusted,
        arguments=tuple(one["arguments"]),
        readers=None if one["readers"] is None else tuple(one["readers"]),
        names=tuple(one["names"]),
    )


def _call_json(call: Call) -> JsonObject:
    return {
        "call_id": call.call_id,
        "tool": call.tool,
        "digest": call.digest,
        "targets": list(call.targets),
        "arguments": list(call.arguments),
        "unbound": [list(one) for one in call.unbound],
        "names": list(call.names),
        "written": list(call.written),
        "marks": [call.chosen, call.bound, call.is_earlier, call.located, call.asked],
    }


def _call(one: Any) -> Call:
    chosen, bound, is_earlier, located, asked = one["marks"]
    return Call(
        one["call_id"],
        one["tool"],
        one["digest"],
        targets=tuple(one["targets"]),
        arguments=tuple(one["arguments"]),
        unbound=tuple((kind, value) for kind, value in one["unbound"]),
        chosen=chosen,
        bound=bound,
        is_earlier=is_earlier,
        located=located,
        asked=asked,
        names=tuple(one["names"]),
        written=tuple(one["written"]),
    )
