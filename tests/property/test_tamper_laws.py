"""Any tampering of any kind at any position is found, in a store and in an export; a run that was left alone verifies."""

from functools import cache

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from remit.core.journal.codec import decode_turn, encode_turn, hash_turn
from remit.core.record import replace
from remit.observe.proof.export import ExportUnreadable, verify_export
from tests.unit.observe.sealed import MALLORY, SIGNER, Sealed, rechained, seal, simulated
from tests.unit.observe.test_export import exported
from tests.unit.observe.test_verify import edited, long_texts

# Many, or each with a whole command; the quick check has others of its kind.
pytestmark = pytest.mark.slow

SEEDS = 60


@cache
def runs() -> tuple[Sealed, ...]:
    """Runs of some length that a key vouches for: ended, open, waiting, paused, children and forks."""
    found = [run for seed in range(SEEDS) for run in simulated(seed)]
    return tuple(run for run in found if len(run.data) > 3 and run.signed_turns > 2)


@cache
def lines_of(place: int) -> tuple[bytes, ...]:
    return tuple(exported(runs()[place]))


PLACES = st.integers(0, 10_000)
FLIPS = st.integers(1, 255)


def run_at(place: int) -> Sealed:
    return runs()[place % len(runs())]


def is_found(tampered: Sealed) -> bool:
    return not tampered.verified().ok


def with_data(run: Sealed, *data: bytes) -> Sealed:
    return run._replace(data=data)


def flipped(data: bytes, at: int, flip: int) -> bytes:
    at %= len(data)
    return data[:at] + bytes([data[at] ^ flip]) + data[at + 1 :]


def test_there_are_runs_of_every_kind_to_tamper_with() -> None:
    assert len(runs()) > 30
    assert {bool(run.verified().ending) for run in runs()} == {True, False}


@given(PLACES)
def test_a_run_that_was_left_alone_verifies(place: int) -> None:
    run = run_at(place)
    found = run.verified()
    assert found.ok
    assert found.signed_turns == run.signed_turns


@given(PLACES, PLACES, PLACES, FLIPS)
def test_a_changed_byte_of_any_signed_turn_is_found(place: int, seq: int, at: int, flip: int) -> None:
    run = run_at(place)
    seq %= run.signed_turns
    assert is_found(with_data(run, *run.data[:seq], flipped(run.data[seq], at, flip), *run.data[seq + 1 :]))


@given(PLACES, PLACES)
def test_an_edited_turn_is_found_unless_it_is_the_last_and_nobody_signed_it(place: int, seq: int) -> None:
    run = run_at(place)
    seq %= max(run.signed_turns, len(run.data) - 1)
    assert is_found(with_data(run, *edited(run.data, seq)))


@given(PLACES, PLACES)
def test_a_cut_tail_is_found_wherever_it_was_signed(place: int, count: int) -> None:
    run = run_at(place)
    assert is_found(with_data(run, *run.data[: count % run.signed_turns]))


@given(PLACES, PLACES)
def test_a_dropped_turn_is_found(place: int, seq: int) -> None:
    run = run_at(place)
    seq %= run.signed_turns
    assert is_found(with_data(run, *run.data[:seq], *run.data[seq + 1 :]))


@given(PLACES, PLACES, PLACES)
def test_a_turn_that_stands_there_twice_is_found(place: int, seq: int, at: int) -> None:
    run = run_at(place)
    seq, at = seq % len(run.data), at % (len(run.data) + 1)
    assert is_found(with_data(run, *run.data[:at], run.data[seq], *run.data[at:]))


@given(PLACES, PLACES, PLACES)
def test_two_swapped_turns_are_found(place: int, one: int, other: int) -> None:
    run = run_at(place)
    one, other = one % len(run.data), other % len(run.data)
    assume(one != other)
    data = list(run.data)
    data[one], data[other] = data[other], data[one]
    assert is_found(with_data(run, *data))


@given(PLACES, PLACES, PLACES)
def test_an_inserted_turn_of_another_run_is_found(place: int, other: int, at: int) -> None:
    run, at = run_at(place), at % (len(run_at(place).data) + 1)
    foreign = run_at(other).data[at % len(run_at(other).data)]
    assert is_found(with_data(run, *run.data[:at], foreign, *run.data[at:]))


@given(PLACES, PLACES, PLACES)
def test_an_inserted_turn_is_found_although_the_rest_was_recomputed(place: int, other: int, at: int) -> None:
    run = run_at(place)
    at %= run.signed_turns
    foreign = run_at(other).data[at % len(run_at(other).data)]
    assert is_found(with_data(run, *rechained((*run.data[:at], foreign, *run.data[at:]), at)))


@given(PLACES, PLACES)
def test_a_recomputed_tail_is_found(place: int, seq: int) -> None:
    run = run_at(place)
    seq %= run.signed_turns
    assert is_found(with_data(run, *rechained(edited(run.data, seq), seq)))


@given(PLACES, PLACES)
def test_a_tail_recomputed_and_signed_with_another_key_is_found(place: int, seq: int) -> None:
    run = run_at(place)
    seq %= run.signed_turns
    forged = seal(run.run_id, rechained(edited(run.data, seq), seq), run.blobs, MALLORY)
    assert is_found(forged)
    assert is_found(forged._replace(logged=run.logged))


@given(PLACES, PLACES, PLACES)
def test_a_tail_of_another_run_is_found(place: int, other: int, at: int) -> None:
    run, donor = run_at(place), run_at(other)
    assume(run.run_id != donor.run_id)
    at %= run.signed_turns
    spliced = (*run.data[:at], *donor.data[at:])
    assert is_found(with_data(run, *spliced))
    assert is_found(with_data(run, *rechained(spliced, at)))
    assert is_found(with_data(run, *spliced)._replace(heads=donor.heads))


@given(PLACES, PLACES)
def test_another_run_in_its_place_is_found(place: int, other: int) -> None:
    run, donor = run_at(place), run_at(other)
    assume(run.run_id != donor.run_id)
    assert is_found(donor._replace(run_id=run.run_id))
    assert is_found(donor._replace(run_id=run.run_id, logged=run.logged))


@given(PLACES, PLACES)
def test_an_older_copy_is_found_by_the_log(place: int, count: int) -> None:
    run = run_at(place)
    count %= run.signed_turns
    older = seal(run.run_id, run.data[:count], run.blobs)
    assert is_found(older._replace(logged=run.logged))


@given(PLACES, PLACES)
def test_a_forged_or_foreign_head_is_found(place: int, which: int) -> None:
    run = run_at(place)
    which %= len(run.heads)
    head = run.heads[which]
    for forged in (
        replace(head, signature=flipped(head.signature, which, 1)),
        replace(head, head=flipped(head.head, which, 1)),
        replace(head, seq=head.seq + 1),
        replace(head, run_id="another"),
        replace(head, ending=head.ending + "X"),
        replace(head, signer=MALLORY.did),
    ):
        assert is_found(run._replace(heads=(*run.heads[:which], forged, *run.heads[which + 1 :])))


@given(PLACES)
def test_an_ended_run_without_its_end_head_is_found(place: int) -> None:
    run = run_at(place)
    assume(run.verified().ending)
    heads = tuple(head for head in run.heads if not head.ending)
    assert is_found(run._replace(heads=heads, logged=heads))


@cache
def runs_with_texts() -> list[Sealed]:
    return [run for run in runs() if long_texts(run)]


@given(PLACES, PLACES, PLACES, FLIPS)
def test_an_altered_text_is_found_and_a_redacted_one_is_not_taken_for_tampering(
    place: int, which: int, at: int, flip: int
) -> None:
    run = runs_with_texts()[place % len(runs_with_texts())]
    digests = sorted(long_texts(run))
    digest = digests[which % len(digests)]
    assert is_found(run._replace(blobs={**run.blobs, digest: flipped(run.blobs[digest], at, flip)}))
    found = run._replace(blobs={key: text for key, text in run.blobs.items() if key != digest}).verified()
    assert found.ok
    assert found.redacted == (digest.hex(),)


@given(PLACES, PLACES)
def test_time_that_goes_backwards_is_found_in_what_nobody_signed_yet(place: int, seq: int) -> None:
    run = run_at(place)
    seq = 1 + seq % (len(run.data) - 1)
    turn = decode_turn(run.data[seq])
    data = (*run.data[:seq], encode_turn(replace(turn, at_ms=-1)), *run.data[seq + 1 :])
    assert is_found(with_data(run, *rechained(data, seq)))


def is_found_in(lines: list[bytes]) -> bool:
    try:
        return not verify_export(lines, signer=SIGNER.did).ok
    except ExportUnreadable:
        return True


def export_at(place: int) -> list[bytes]:
    return list(lines_of(place % len(runs())))


@given(PLACES)
def test_an_export_that_was_left_alone_verifies(place: int) -> None:
    assert not is_found_in(export_at(place))
    assert verify_export(export_at(place)).ok


@given(PLACES, PLACES, PLACES, FLIPS)
def test_a_changed_byte_of_any_line_is_found(place: int, number: int, at: int, flip: int) -> None:
    lines = export_at(place)
    number %= len(lines)
    lines[number] = flipped(lines[number], at, flip)
    assert is_found_in(b"".join(lines).splitlines(keepends=True))


@given(PLACES, PLACES)
def test_an_export_cut_at_any_byte_is_found(place: int, at: int) -> None:
    whole = b"".join(export_at(place))
    # Without its very last byte, which is a line end, an export still says everything.
    cut = whole[: at % (len(whole) - 1)]
    assert is_found_in(cut.splitlines(keepends=True))


@given(PLACES, PLACES, PLACES)
def test_a_line_that_was_dropped_doubled_or_swapped_is_found(place: int, one: int, other: int) -> None:
    lines = export_at(place)
    one, other = one % len(lines), other % len(lines)
    assert is_found_in([*lines[:one], *lines[one + 1 :]])
    assert is_found_in([*lines[:other], lines[one], *lines[other:]])
    swapped = list(lines)
    swapped[one], swapped[other] = lines[other], lines[one]
    assert lines[one] == lines[other] or is_found_in(swapped)


@given(PLACES, PLACES, PLACES)
def test_lines_of_another_export_are_found(place: int, other: int, at: int) -> None:
    lines, donor = export_at(place), export_at(other)
    assume(lines != donor)
    at %= len(lines)
    line = donor[at % len(donor)]
    assert is_found_in([*lines[:at], line, *lines[at:]])
    assert line == lines[at] or is_found_in([*lines[:at], line, *lines[at + 1 :]])
    assert lines[:at] == donor[:at] or is_found_in([*lines[:at], *donor[at:]])


@given(PLACES, PLACES)
def test_a_recomputed_export_is_found(place: int, seq: int) -> None:
    run = run_at(place)
    seq %= run.signed_turns
    recomputed = run._replace(data=rechained(edited(run.data, seq), seq))
    # Everything fits but the signatures: of the footer, or of the heads when the footer is an honest one.
    assert is_found_in(exported(recomputed, MALLORY))
    assert is_found_in(exported(recomputed))


@given(PLACES, PLACES)
def test_older_turns_in_a_newer_export_are_found(place: int, count: int) -> None:
    run = run_at(place)
    older = seal(run.run_id, run.data[: count % run.signed_turns], run.blobs)
    assert is_found_in(exported(older._replace(logged=run.logged)))


def test_the_verdict_says_how_many_turns_nobody_signed() -> None:
    tails = [run.verified() for run in runs() if run.signed_turns < len(run.data)]
    assert tails
    assert all(found.ok and found.signed_turns < found.turns for found in tails)


def test_the_links_of_a_rechained_run_hold() -> None:
    data = rechained(edited(runs()[0].data, 1), 1)
    assert all(decode_turn(data[seq]).previous == hash_turn(data[seq - 1]) for seq in range(1, len(data)))
