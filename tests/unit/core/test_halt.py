"""The journal of halts: what stands is the fold of its entries, and what does not add up is an error."""

import pytest

from remit.core.failure import InvariantBroken
from remit.core.journal.codec import hash_turn
from remit.core.run.halt import (
    HALTS_DAMAGED,
    NOTHING_HALTED,
    Halt,
    HaltKind,
    HaltScope,
    encode_halt,
    halts_after,
    halts_in,
)

REACHES = [HaltKind]

TOOL = HaltScope(HaltKind.TOOL, "pay")


def written(*steps: tuple[HaltScope, bool]) -> list[bytes]:
    data: list[bytes] = []
    for number, (scope, is_lift) in enumerate(steps, 1):
        previous = hash_turn(data[-1]) if data else b""
        data.append(encode_halt(Halt(number, 7, previous, scope, "ada", "why", is_lift)))
    return data


def test_what_is_halted_is_what_was_halted_and_not_lifted() -> None:
    data = written((HaltScope(), False), (TOOL, False), (HaltScope(), True))
    standing = halts_after(NOTHING_HALTED, data)
    assert [str(scope) for scope in standing.halts] == ["tool pay"]
    assert (standing.number, standing.head, standing.lifted_by) == (3, hash_turn(data[-1]), "ada")
    assert halts_after(halts_after(NOTHING_HALTED, data[:1]), data[1:]) == standing


def test_entries_read_back_as_they_were_written() -> None:
    (entry,) = halts_in(written((TOOL, False)))
    assert entry == Halt(1, 7, b"", TOOL, "ada", "why")


@pytest.mark.parametrize(
    "data",
    [
        [b"nonsense"],
        written((TOOL, False))[:1] * 2,
        written((TOOL, False), (TOOL, True))[1:],
    ],
)
def test_entries_that_do_not_add_up_are_an_error(data: list[bytes]) -> None:
    with pytest.raises(InvariantBroken) as raised:
        halts_after(NOTHING_HALTED, data)
    assert raised.value.code == HALTS_DAMAGED


@pytest.mark.parametrize(
    ("scope", "said"),
    [(HaltScope(), "everything"), (TOOL, "tool pay"), (HaltScope(HaltKind.RUN, "r1"), "run r1")],
)
def test_a_scope_is_said_as_a_sentence_names_it(scope: HaltScope, said: str) -> None:
    assert str(scope) == said
