"""The loop states that a run went through, in the vocabulary of agent loops, overlays among them."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from remit.core.arrivals import ChildEnded, ChildLost, RunStarted
from remit.core.commands import AskHuman
from remit.core.events import Turn
from remit.core.failure import ENDINGS
from remit.core.lifecycle import LoopState
from remit.core.rulings import ChildHeld, NodeEntered, QuestionSettled, RunEnded, RunPaused, RunResumed
from remit.kernel.state import label_of


def loop_states(turns: Iterable[Turn]) -> tuple[LoopState, ...]:
    """Each state once for as long as it lasted: where the run stood, that it waited or was paused, how it ended."""
    return tuple(state for state, _ in groupby(_labels(turns)))


def _labels(turns: Iterable[Turn]) -> Iterator[LoopState]:
    beneath = LoopState.EXPLORING
    labels: dict[str, LoopState] = {}
    held: set[str] = set()
    for turn in turns:
        if isinstance(turn.arrival, ChildEnded | ChildLost) and turn.arrival.command_id in held:
            yield beneath
        if isinstance(turn.arrival, RunStarted):
            manifest = turn.arrival.manifest
            labels = {node.name: label_of(manifest.role, node) for node in manifest.graph.nodes}
        for decision in turn.decisions:
            match decision:
                case NodeEntered():
                    beneath = labels[decision.node]
                    yield beneath
                case RunPaused():
                    yield LoopState.PAUSED
                case AskHuman():
                    yield ENDINGS[decision.ending].waits_as or LoopState.AWAITING_APPROVAL
                case ChildHeld():
                    held.add(decision.command_id)
                    yield ENDINGS[decision.waiting_for].waits_as or LoopState.AWAITING_APPROVAL
                case RunResumed() | QuestionSettled():
                    yield beneath
                case RunEnded():
                    yield ENDINGS[decision.ending].loop_state
