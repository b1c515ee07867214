"""The loop states that a run went through, in the vocabulary of agent loops, overlays among them."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from remit.core.arrivals import ChildEnded, ChildLost, RunStarted
from remit.core.commands import AskHuman
from remit.core.events import Turn
from remit.core.failure import ENDINGS, Ending, gravest
from remit.core.lifecycle import LoopState
from remit.core.rulings import ChildHeld, NodeEntered, QuestionSettled, RunEnded, RunPaused, RunResumed
from remit.kernel.state import label_of


def loop_states(turns: Iterable[Turn]) -> tuple[LoopState, ...]:
    """Each state once for as long as it lasted: where the run stood, that it waited or was paused, how it ended."""
    return tuple(state for state, _ in groupby(_labels(turns)))


def _labels(turns: Iterable[Turn]) -> Iterator[LoopState]:
    beneath = LoopState.EXPLORING
    labels: dict[str, LoopState] = {}
    # Under which code it waits, for each question and each child.
    waits: dict[str, Ending] = {}
    for turn in turns:
        if isinstance(turn.arrival, ChildEnded | ChildLost) and waits.pop(turn.arrival.command_id, None) is not None:
            yield _overlaid(beneath, waits)
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
                    waits[decision.id] = decision.ending
                    yield _overlaid(beneath, waits)
                case ChildHeld():
                    waits[decision.command_id] = decision.waiting_for
                    yield _overlaid(beneath, waits)
                case QuestionSettled():
                    waits.pop(decision.command_id, None)
                    yield _overlaid(beneath, waits)
                case RunResumed():
                    yield _overlaid(beneath, waits)
                case RunEnded():
                    yield ENDINGS[decision.ending].loop_state


def _overlaid(beneath: LoopState, waits: Mapping[str, Ending]) -> LoopState:
    """The state that a wait lays over the work, by the gravest code; the work's own where nobody is waited for."""
    code = gravest(waits.values())
    return beneath if code is None else ENDINGS[code].waits_as or LoopState.AWAITING_APPROVAL
