"""Grounding: which observations may become task state, and what a run may not claim.

Rule 1: only a verified observation is committed: it returned, kept its result schema, and its own check agreed.
Rule 2: intended, attempted and observed effects are not facts. Assumed ones do not exist.
Rule 3: an effect the run proposed and never committed is a claim without proof.
"""

from collections.abc import Mapping

from remit.core.arrivals import ToolReconciled, ToolReturned
from remit.core.rulings import Rung
from remit.core.tools import ToolDefinition
from remit.kernel.tally import Tally

_OBSERVED, _COMMITTED = Rung.OBSERVED, Rung.COMMITTED


def rung_reached(arrival: ToolReturned | ToolReconciled) -> Rung:
    """How far up the ladder an observation gets: committed when nothing contradicts it."""
    if arrival.violations or (isinstance(arrival, ToolReturned) and arrival.refuted):
        return _OBSERVED
    return _COMMITTED


def stops_loop(arrival: ToolReturned, tool: ToolDefinition) -> bool:
    """Whether a verified result is the answer of the run: its tool may say so, does, and has something to say."""
    return arrival.stop_loop and tool.may_stop_loop and bool(arrival.content)


def unproven_effects(tally: Tally) -> Mapping[str, str]:
    """Effects that were proposed and never committed: tool and short argument hash, with the code that says why."""
    claims = {**tally.state.uncommitted, **tally.uncommitted}
    return {f"{tool}#{digest.hex()[:8]}": code for (tool, digest), code in claims.items() if code}


def has_changed_anything(tally: Tally) -> bool:
    """Whether any effect of the run was committed."""
    return tally.state.effects_committed > 0 or "" in tally.uncommitted.values()


def times_committed(tally: Tally, tool: str) -> int:
    """How many observations of a tool were committed, here and in runs beneath."""
    below = tally.state.observed_below.get(tool, 0) + tally.observed_below.get(tool, 0)
    return tally.state.committed.get(tool, 0) + tally.committed.count(tool) + below
