"""Reading a run: turns that follow each other, folded; anything else is refused with a code."""

import pytest

from remit.core.failure import InvariantBroken
from remit.core.journal.codec import NO_HASH, hash_turn
from remit.core.journal.turn import Turn
from remit.core.record import BlobRef
from remit.observe.linked_turns import JOURNAL_CHAIN_BROKEN, fold, linked_turns, read_history, references, states
from remit.testing import runs
from tests.simulation.play import demo_manifest, demo_world
from tests.unit.observe.sealed import simulated

DEMO = demo_world().finish(demo_manifest())


def test_a_history_holds_every_turn_with_its_link() -> None:
    history = read_history("demo", DEMO.journal)
    assert history.turns == DEMO.turns
    assert [step.link for step in history.steps] == [hash_turn(data) for data in DEMO.journal]
    assert history.head == hash_turn(DEMO.journal[-1])


def test_a_history_folds_to_the_state_of_the_run() -> None:
    assert fold(read_history("demo", DEMO.journal)) == DEMO.state


def test_each_turn_comes_with_the_state_after_it() -> None:
    seen = [(turn.seq, state.seq, state.head) for turn, state in states(read_history("demo", DEMO.journal))]
    assert seen == [(seq, seq, hash_turn(data)) for seq, data in enumerate(DEMO.journal)]


def test_turns_that_follow_one_already_read_are_linked_to_it() -> None:
    steps = linked_turns("demo", DEMO.journal[3:], after=2, head=hash_turn(DEMO.journal[2]))
    assert [step.turn.seq for step in steps] == [3, 4, 5, 6]


def test_a_run_nobody_started_has_no_history() -> None:
    history = read_history("none", [])
    assert (history.turns, history.head) == ((), NO_HASH)
    assert fold(history) == runs.fold_journal([])


@pytest.mark.parametrize("order", [(0, 2), (1, 0), (0, 0), (1,)])
def test_turns_that_do_not_follow_each_other_are_refused(order: tuple[int, ...]) -> None:
    with pytest.raises(InvariantBroken) as caught:
        read_history("demo", [DEMO.journal[place] for place in order])
    assert caught.value.code == JOURNAL_CHAIN_BROKEN


def test_a_turn_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvariantBroken) as caught:
        read_history("demo", [b"\x01nothing"])
    assert caught.value.code == "JOURNAL_UNREADABLE"


def test_every_long_text_of_a_turn_is_found_wherever_it_stands() -> None:
    found = {ref.digest for seed in range(30) for run in simulated(seed) for ref in references(read(run.data))}
    kept = {digest for seed in range(30) for run in simulated(seed) for digest in run.blobs}
    # A text may be kept although its turn was never written, but none is named that is not kept.
    assert found
    assert found <= kept


def test_a_text_by_digest_is_its_own_reference() -> None:
    reference = BlobRef(b"\x01" * 32, 5)
    assert list(references(("text", (reference, 3), {"blob": "no record"}))) == [reference]


def read(data: tuple[bytes, ...]) -> tuple[Turn, ...]:
    return read_history("", data).turns
