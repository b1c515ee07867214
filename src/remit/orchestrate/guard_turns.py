"""The turns of a guarded run: its state, the gate that follows it, and the time.

Rule 1: the state is made from a real manifest and changed by folding alone; each change is a turn that the gate follows.
Rule 2: what a run of ours would refuse to begin with is refused here, too: a boundary that nobody could judge by, and a
        request that it turns away.
Rule 3: time never goes back.
"""

from remit.core.arrivals import Arrival, RunStarted
from remit.core.codec import NO_HASH
from remit.core.contract import SystemRequest
from remit.core.events import KERNEL_VERSION, Decision, Turn
from remit.core.inference import ModelInfo
from remit.core.lineage import derived_id, is_safe_id
from remit.core.manifest import Manifest, make_manifest
from remit.core.messages import user_message
from remit.core.record import replace
from remit.core.rulings import NodeEntered
from remit.kernel.apply import apply
from remit.kernel.conditions import check_conditions
from remit.kernel.exhaustion import check_exhaustion
from remit.kernel.intake import check_intake
from remit.kernel.rules.started import STARTED
from remit.kernel.state import RunState
from remit.kernel.tally import Tally
from remit.orchestrate.guard_boundary import GuardTerms
from remit.orchestrate.guard_operations import Asker
from remit.orchestrate.guard_tools import Toolset
from remit.orchestrate.guard_waiting import Waiting
from remit.orchestrate.patterns.chat import chat_graph
from remit.orchestrate.tracing import Read, Tracer, reader_of
from remit.provenance.gate import Gate

# The node of the chat graph where calls are judged. The guard stands there from the first turn to the last.
_ACT = "act"
# Who proposes calls is unknown and never asked; a manifest names a model all the same.
_PROPOSER = ModelInfo("guarded")

# Gives the texts that stand in their turn.
AT_HAND: Read = reader_of({})


def manifest_of(run_id: str, gate: Gate, tools: Toolset, terms: GuardTerms, asker: Asker) -> Manifest:
    """What a guarded run is started with. The guard is the gate, so its boundary always has one."""
    request = SystemRequest(
        tuple([user_message(said) for said in gate.evidence.prompts]), user_id=asker.user, tenant_id=asker.tenant
    )
    return make_manifest(
        # A host names its runs as it likes; nothing of them is written, and none is looked up by this id.
        run_id=run_id if is_safe_id(run_id) else derived_id(run_id, "guard"),
        request=request,
        boundary=replace(terms.boundary, authority=terms.authority),
        graph=chat_graph(),
        models=(_PROPOSER,),
        tools=tools.definitions,
        role=asker.role,
    )


class Turns:
    """One guarded run, turn by turn."""

    def __init__(self, manifest: Manifest, gate: Gate, at_ms: int) -> None:
        """Begin; raises RequestRejected for a run that could not be judged, or that its boundary turns away."""
        if manifest.boundary.conditions:
            check_conditions(manifest.boundary)
        if manifest.boundary.exhaustion:
            check_exhaustion(manifest.boundary)
        check_intake(manifest, at_ms)
        self.state = RunState()
        self.tracer = Tracer(manifest, AT_HAND, gate)
        self.waiting = Waiting()
        self.at_ms = at_ms
        self.fold(RunStarted(manifest, 0), [NodeEntered(_ACT, STARTED)])

    def pass_time(self, at_ms: int) -> int:
        """Come to a moment, unless it is later already; gives the moment that it is."""
        self.at_ms = max(self.at_ms, at_ms)
        return self.at_ms

    def tally(self, answering: str = "") -> Tally:
        """The tally of the next turn."""
        return Tally(self.state, self.at_ms, answering)

    def fold(self, arrival: Arrival, decisions: list[Decision], read: Read = AT_HAND) -> None:
        """Make a turn of it, and have the gate follow."""
        self.tracer.follow(self.fold_unseen(arrival, decisions), read)

    def fold_unseen(self, arrival: Arrival, decisions: list[Decision]) -> Turn:
        """Make a turn of it that the gate is told of otherwise."""
        state = self.state
        turn = Turn(state.seq + 1, self.at_ms, NO_HASH, KERNEL_VERSION, arrival, tuple(decisions))
        apply(state, turn, NO_HASH)
        self.waiting.add(decisions)
        return turn
