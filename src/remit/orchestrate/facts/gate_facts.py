"""Between a run and the gate of provenance: what a tool tells it, and what a proposed call keeps of its verdict.

Rule 1: a tool says nothing to the gate that its definition does not hold, and holds nothing back.
Rule 2: what is kept of a verdict is short and is for people; the decision itself is one word.
"""

from remit.core.journal.commands import StartChild
from remit.core.journal.proposed_call import Provenance
from remit.core.limits.authority import ValueOrigin
from remit.core.limits.tools import ToolDefinition
from remit.core.record import JsonObject, replace
from remit.core.run.manifest import Manifest
from remit.core.work.goal import JUDGE_MARK
from remit.core.work.orders import told_order
from remit.orchestrate.patterns.planned_graph import PLANNED
from remit.provenance.gate_verdict import VALUE_SHOWN_CHARS_MAX, Argument, Decision, GateVerdict
from remit.provenance.origins.handles import as_handle

# What the gate says to a run in which a text was lost.
RESULT_LOST = "RESULT_LOST"
_LOST = "a text of this run is gone, so nobody knows what was read"
_LOST_FIX = "approve the call, or start the task anew"
# As many values of a call as a person looks at, and as many objections; the rest of a long list is judged and not shown.
ORIGINS_SHOWN_MAX = 40
REASONS_SHOWN_MAX = 10
# A model names arguments as it likes; of a name and of a reason this much is kept, so that a turn stays small.
PATH_CHARS_MAX = 100
REASON_CHARS_MAX = 300

_PROVENANCE = {
    Decision.ALLOW: Provenance.BOUND,
    Decision.ASK: Provenance.UNBOUND,
    Decision.REFUSE: Provenance.REFUSED,
}


def declared(tool: ToolDefinition) -> JsonObject:
    """The declaration of a tool, in the words of the gate's protocol."""
    trust = tool.trust
    said: JsonObject = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "effect": tool.effect.value,
        # What a child does outside is the child's own.
        "network": False if tool.delegates and not tool.network else tool.network,
        "destructive": tool.destructive,
        "repeat": trust.repeat.value,
        "reads": trust.reads.value,
        "directory": trust.directory,
        "author": trust.author,
        "readers": trust.readers,
        "payload_args": list(trust.payload_args),
        "locator_args": list(trust.locator_args),
    }
    optional: JsonObject = {
        "category": tool.category and tool.category.value,
        "stakes": trust.stakes and trust.stakes.value,
        "control_args": dict(tool.control_args) or None,
        "result": dict(trust.fields) or None,
        "asks": list(trust.asks) or None,
        "hosts": list(trust.hosts) or None,
    }
    return said | {key: value for key, value in optional.items() if value is not None}


def found(verdict: GateVerdict, *, is_lost: bool) -> JsonObject:
    """The fields of a proposed call that say what the gate found. Where a text is gone, it cannot have found enough."""
    provenance, objection = _PROVENANCE[verdict.decision], verdict.code.value if verdict.code else ""
    reasons, fix = tuple([reason[:REASON_CHARS_MAX] for reason in verdict.reasons[:REASONS_SHOWN_MAX]]), verdict.fix
    if is_lost and provenance is Provenance.BOUND:
        provenance, objection, reasons, fix = Provenance.UNBOUND, RESULT_LOST, (_LOST,), _LOST_FIX
    return {
        "provenance": provenance,
        "objection": objection,
        "reasons": (*reasons, fix) if fix else reasons,
        "labels": verdict.labels,
        # What the gate objects to comes first: of a long list, a person is shown that for sure.
        "origins": _origins(verdict),
        "rules": verdict.rules,
    }


def _origins(verdict: GateVerdict) -> tuple[ValueOrigin, ...]:
    origins = [_origin(argument) for argument in sorted(verdict.args, key=_is_fine)[:ORIGINS_SHOWN_MAX]]
    if verdict.order is None:
        return tuple(origins)
    # A call without arguments has no value that the order could stand at.
    first, *rest = origins or [ValueOrigin("", "", told_order(verdict.order))]
    return (replace(first, order=verdict.order), *rest)


def _is_fine(argument: Argument) -> bool:
    return argument.code is None


def _origin(argument: Argument) -> ValueOrigin:
    where = ""
    if argument.span is not None:
        where = f"request[{argument.span[0]}:{argument.span[1]}]"
    elif argument.origin is not None:
        where = as_handle(argument.origin)
    code = argument.code.value if argument.code is not None else ""
    return ValueOrigin(
        argument.path[:PATH_CHARS_MAX],
        str(argument.value)[:VALUE_SHOWN_CHARS_MAX],
        argument.bound_by,
        where,
        code,
    )


def usable_by(child: StartChild, manifest: Manifest) -> tuple[ToolDefinition, ...]:
    """The tools that a child may use: all of its parent's, unless its node names them or it judges an answer."""
    if child.kind.startswith(JUDGE_MARK):
        return ()
    node = next((node for node in manifest.graph.nodes if node.name == child.node), None)
    is_planned = node is not None and node.feed is not None and node.feed.step_type == PLANNED
    if node is None or node.inner is None or is_planned:
        return manifest.tools
    named = (node.ask.tools or ()) if node.ask is not None else ()
    return tuple(tool for tool in manifest.tools if tool.name in named)
