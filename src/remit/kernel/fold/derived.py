"""Facts that hold for a whole run, because they are derived from its manifest alone.

Rule 1: what stands here never changes; it is shared by every state of the run.
Rule 2: as a rule it is derived once, although a run is opened twice: to decide on its start, and to fold that turn. Each
        time takes a tenth of a short run.
"""

from remit.core.limits.boundary import Whose
from remit.core.limits.budget import Charges, lease_of
from remit.core.limits.tools import ToolDefinition, may_leave_reading
from remit.core.limits.verification import OBSERVED_ONLY, verifier_of
from remit.core.record import once_a_record
from remit.core.run.manifest import Manifest, has_orders, lineage_root
from remit.kernel.authority.boundary_checks import rates_of
from remit.kernel.authority.call_flags import may_flag
from remit.kernel.authority.conditions import looks_for_assertions
from remit.kernel.budget.early_stop import floors_of
from remit.kernel.budget.spend import tool_charges
from remit.kernel.children import child_charges
from remit.kernel.graph.compiled import compile_graph
from remit.kernel.state import DerivedFacts

# Runs that are opened at the same time; the others have done with it.
_KEPT_MAX = 4
# Tools of all runs; a deployment has some hundred.
_TOOLS_KEPT_MAX = 1024


@once_a_record(_KEPT_MAX)
def derived_of(manifest: Manifest) -> DerivedFacts:
    """The facts derived from a manifest: compiled graph, charges, verifiers and standing per tool."""
    graph = compile_graph(manifest.graph)
    return DerivedFacts(
        graph=graph,
        tools={tool.name: tool for tool in manifest.tools},
        charges={tool.name: _charges_of(tool) for tool in manifest.tools},
        verifiers={tool.name: _verifier(tool) for tool in manifest.tools},
        rated=_rated(manifest),
        floors=floors_of(graph, manifest),
        is_traced=is_traced(manifest),
        user_rates=tuple([rate for rate in manifest.boundary.rates if rate.whose is Whose.USER]),
        flagging=frozenset([tool.name for tool in manifest.tools if may_flag(tool, manifest.boundary)]),
        family=lineage_root(manifest),
    )


@once_a_record(_TOOLS_KEPT_MAX)
def _charges_of(tool: ToolDefinition) -> Charges:
    return child_charges(lease_of(tool.lease), tool_charges(tool)) if tool.delegates else tool_charges(tool)


@once_a_record(_TOOLS_KEPT_MAX)
def _verifier(tool: ToolDefinition) -> str:
    """What is named as having verified a result that nothing contradicts. A read that returned is its own observation."""
    return verifier_of(tool) or ("" if tool.effect.is_mutating else OBSERVED_ONLY)


def _rated(manifest: Manifest) -> dict[str, tuple[tuple[str, int], ...]]:
    """By tool: under which names the moments of its calls are kept, each once, and as many as the largest rate needs."""
    rated: dict[str, tuple[tuple[str, int], ...]] = {}
    for tool in manifest.tools:
        kept: dict[str, int] = {}
        for rate in rates_of(tool, manifest.boundary):
            kept[rate.tool] = max(rate.times_max, kept.get(rate.tool, 0))
        if kept:
            rated[tool.name] = tuple(kept.items())
    return rated


def is_traced(manifest: Manifest) -> bool:
    """Whether calls pass the gate: a tool reads what may be outside; or the boundary says so, and a tool changes something.

    Where a run has orders, its effects are compared with them, whatever the boundary.

    Where conditions look at what was read so far, every tool counts; where they look at what an answer claims, every run.
    """
    if manifest.host is not None or has_orders(manifest) or looks_for_assertions(manifest.boundary):
        return True
    if any(may_leave_reading(tool) for tool in manifest.tools):
        return True
    if manifest.boundary.authority is None:
        return False
    is_looked_at = any("labels" in condition.when for condition in manifest.boundary.conditions)
    return any(is_looked_at or tool.effect.is_mutating for tool in manifest.tools)
