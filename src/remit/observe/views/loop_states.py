"""The loop states that a run went through, in the vocabulary of agent loops, overlays among them."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from remit.core.failure import ENDINGS, Ending, gravest
from remit.core.run.lifecycle import LoopState
from remit.core.run.manifest import Manifest
from remit.kernel.state import label_of
from remit.observe.reading import Fact, FactKind
from remit.observe.steps import StepKind


def loop_states(manifest: Manifest, facts: Iterable[Fact]) -> tuple[LoopState, ...]:
    """Each state once for as long as it lasted: where the run stood, that it waited or was paused, how it ended."""
    return tuple(state for state, _ in groupby(_labels(manifest, facts)))


def _labels(manifest: Manifest, facts: Iterable[Fact]) -> Iterator[LoopState]:
    beneath = LoopState.EXPLORING
    labels = {node.name: label_of(manifest.role, node) for node in manifest.graph.nodes}
    # Under which code it waits, for each question and each child.
    waits: dict[str, Ending] = {}
    for fact in facts:
        match fact.kind, fact.step.kind:
            case FactKind.ENTERED, _:
                beneath = labels[fact.step.name]
                yield beneath
            case FactKind.PAUSED, _:
                yield LoopState.PAUSED
            case (FactKind.BEGUN, StepKind.QUESTION) | (FactKind.HELD, _):
                waits[fact.step.id] = Ending(fact.step.waiting_for)
                yield _overlaid(beneath, waits)
            case (FactKind.SETTLED, StepKind.QUESTION) | (FactKind.RESUMED, _):
                waits.pop(fact.step.id, None)
                yield _overlaid(beneath, waits)
            case FactKind.HEARD | FactKind.RELEASED, StepKind.CHILD if waits.pop(fact.step.id, None) is not None:
                yield _overlaid(beneath, waits)
            case FactKind.ENDED, _:
                yield ENDINGS[Ending(fact.step.name)].loop_state


def _overlaid(beneath: LoopState, waits: Mapping[str, Ending]) -> LoopState:
    """The state that a wait lays over the work, by the gravest code; the work's own where nobody is waited for."""
    code = gravest(waits.values())
    return beneath if code is None else ENDINGS[code].waits_as or LoopState.AWAITING_APPROVAL
