"""The loop states that a run went through end, after every turn, where the run stands, over all stored journals."""

from pathlib import Path

import pytest

from remit.core.journal.codec import hash_turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState, loop_state, pinned
from remit.observe.fact import Fact
from remit.observe.linked_turns import read_history
from remit.observe.reading import Reading
from remit.observe.views.outline import loop_states
from scripts.make_golden import GOLDEN, read_journal

JOURNALS = sorted(GOLDEN.glob("v*/*.journal"))


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_last_loop_state_that_is_told_is_where_the_run_stands(path: Path) -> None:
    data = read_journal(path)
    state, reading, facts = RunState(), Reading(), list[Fact]()
    for stored, turn in zip(data, read_history("", data).turns, strict=True):
        apply(state, turn, hash_turn(stored))
        facts += reading.take(turn)
        assert loop_states(pinned(state), facts)[-1:] in ((), (loop_state(state),)), f"after turn {turn.seq}"
