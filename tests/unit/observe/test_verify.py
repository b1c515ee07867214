"""Verifying finds every kind of tampering and names it, and finds nothing in a run that was left alone."""

from collections.abc import Iterator

import pytest

from remit.core.failure import Ending
from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import ToolOutcomeLost
from remit.core.journal.codec import decode_turn, encode_turn, hash_turn
from remit.core.journal.commands import CallTool, SetTimer, TimerPurpose
from remit.core.journal.signing import sign_head
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.record import replace
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.proof.findings import HARMLESS, Fault
from remit.observe.proof.verify import FINDINGS_MAX, needs_a_head, verify_run
from remit.orchestrate.loop.durability import barrier_of
from tests.simulation.play import demo_manifest, demo_world
from tests.simulation.scenarios import played_world
from tests.unit.observe.sealed import MALLORY, SIGNER, Sealed, rechained, seal, sealed_runs, simulated


def demo() -> Sealed:
    world = demo_world()
    world.finish(demo_manifest())
    return sealed_runs(world)[0]


DEMO = demo()
LAST = len(DEMO.data) - 1
# A run of another world that takes the same steps, so that its turns would fit anywhere but here.
OTHER = seal("other", DEMO.data, DEMO.blobs)


def edited(data: tuple[bytes, ...], seq: int) -> tuple[bytes, ...]:
    turn = decode_turn(data[seq])
    return (*data[:seq], encode_turn(replace(turn, at_ms=turn.at_ms + 1)), *data[seq + 1 :])


def appended(sealed: Sealed, arrival: arrivals.Arrival, *decisions: object) -> Sealed:
    """The run with one more turn that fits the chain."""
    last = decode_turn(sealed.data[-1])
    turn = Turn(len(sealed.data), last.at_ms, hash_turn(sealed.data[-1]), KERNEL_VERSION, arrival, decisions)  # type: ignore[arg-type]
    return sealed._replace(data=(*sealed.data, encode_turn(turn)))


def test_a_run_that_was_left_alone_verifies() -> None:
    found = DEMO.verified()
    assert found.ok
    assert (found.turns, found.signed_turns, found.ending) == (7, 7, "SUCCESS")
    assert (found.signer, found.head) == (SIGNER.did, hash_turn(DEMO.data[-1]).hex())


def test_every_simulated_run_verifies_ended_or_open_child_or_fork() -> None:
    runs = [run for seed in range(80) for run in simulated(seed)]
    assert all(run.verified().ok for run in runs)
    assert any(not run.verified().ending for run in runs)
    assert any(run.verified().ending for run in runs)


def test_an_edited_turn_is_found() -> None:
    assert DEMO._replace(data=edited(DEMO.data, 3)).codes() >= {"CHAIN_BROKEN", "HEAD_MISMATCH"}
    assert DEMO._replace(data=edited(DEMO.data, LAST)).codes() == {"HEAD_MISMATCH", "END_HEAD_MISSING"}


def test_a_cut_tail_is_found() -> None:
    assert "HEAD_BEYOND_JOURNAL" in DEMO._replace(data=DEMO.data[:-1]).codes()


def test_a_turn_that_was_dropped_doubled_or_swapped_is_found() -> None:
    data = DEMO.data
    for tampered in ((*data[:2], *data[3:]), (*data[:3], *data[2:]), (*data[:2], data[3], data[2], *data[4:])):
        assert {"TURN_MISPLACED", "CHAIN_BROKEN"} <= DEMO._replace(data=tampered).codes()


def test_a_recomputed_tail_is_found_by_its_heads() -> None:
    tampered = rechained(edited(DEMO.data, 2), 2)
    assert DEMO._replace(data=tampered).codes() == {"HEAD_MISMATCH", "END_HEAD_MISSING"}


def test_a_tail_that_was_recomputed_and_signed_by_a_stranger_is_found() -> None:
    forged = seal("demo", rechained(edited(DEMO.data, 2), 2), DEMO.blobs, MALLORY)
    assert forged.codes() == {"SIGNER_UNTRUSTED", "END_HEAD_MISSING"}
    mixed = forged._replace(logged=DEMO.logged)
    assert {"SIGNER_UNTRUSTED", "HEAD_MISMATCH"} <= {finding.code for finding in mixed.verified(signer=None).findings}


def test_heads_of_several_keys_verify_where_all_of_them_are_accepted_and_only_there() -> None:
    theirs = seal("demo", DEMO.data, DEMO.blobs, MALLORY)
    mixed = DEMO._replace(heads=(*DEMO.heads[:1], *theirs.heads[1:]), logged=())
    both = frozenset({SIGNER.did, MALLORY.did})
    found = mixed.verified(signer=both)
    assert found.ok
    assert found.signer == ", ".join(sorted(both))
    assert "SIGNER_UNTRUSTED" in {finding.code for finding in mixed.verified(signer=None).findings}
    assert "SIGNER_UNTRUSTED" in {finding.code for finding in mixed.verified(signer=SIGNER.did).findings}
    assert "SIGNER_UNTRUSTED" in {finding.code for finding in mixed.verified(signer=frozenset({SIGNER.did})).findings}


def test_without_a_trusted_signer_the_verdict_names_the_signer() -> None:
    forged = seal("demo", rechained(edited(DEMO.data, 2), 2), DEMO.blobs, MALLORY)
    assert forged.verified(signer=None).ok
    assert forged.verified(signer=None).signer == MALLORY.did


def test_another_run_in_the_place_of_this_one_is_found() -> None:
    spliced = Sealed("other", DEMO.data, DEMO.blobs, DEMO.heads, DEMO.logged)
    assert spliced.codes() == {"RUN_FOREIGN", "HEAD_FOREIGN", "END_HEAD_MISSING"}
    assert "RUN_FOREIGN" in OTHER.codes()


def test_an_older_copy_is_found_by_the_log() -> None:
    older = seal("demo", DEMO.data[:4], DEMO.blobs)
    assert older.verified().ok
    assert older._replace(logged=DEMO.logged).codes() == {"HEAD_BEYOND_JOURNAL"}


def test_a_run_whose_turns_are_all_gone_is_found() -> None:
    assert DEMO._replace(data=()).codes() == {"RUN_EMPTY", "HEAD_BEYOND_JOURNAL"}
    assert verify_run("none", (), (), (), None, lambda digest: None).findings[0].code is Fault.RUN_EMPTY


def test_an_ended_run_without_its_end_head_is_found() -> None:
    bare = DEMO._replace(heads=(), logged=())
    assert bare.codes() == {"END_HEAD_MISSING"}
    assert DEMO._replace(heads=()).verified().ok, "the log vouches as well"


def test_a_head_with_another_signature_is_found() -> None:
    forged = replace(DEMO.heads[-1], signature=DEMO.heads[0].signature)
    assert "HEAD_FORGED" in DEMO._replace(heads=(*DEMO.heads[:-1], forged)).codes()


@pytest.mark.parametrize(("seq", "ending"), [(6, ""), (6, "TIMEOUT"), (2, "SUCCESS")])
def test_a_head_that_disagrees_about_the_ending_is_found(seq: int, ending: str) -> None:
    head = sign_head(SIGNER, run_id="demo", seq=seq, head=hash_turn(DEMO.data[seq]), ending=ending)
    assert DEMO._replace(heads=(head,)).codes() == {"HEAD_MISMATCH"}


def test_a_later_head_may_vouch_for_the_ending_too() -> None:
    noted = appended(DEMO, arrivals.SessionNoted("ada", "k", "1"), rulings.SessionEntryKept("k", "1"))
    head = sign_head(SIGNER, run_id="demo", seq=7, head=hash_turn(noted.data[7]), ending="SUCCESS")
    found = noted._replace(heads=(head,), logged=()).verified()
    assert (found.ok, found.signed_turns) == (True, 8)


def test_something_a_person_said_that_nobody_signed_is_found() -> None:
    forged = appended(DEMO, arrivals.SessionNoted("ada", "k", "1"), rulings.SessionEntryKept("k", "1"))
    assert forged.codes() == {"TURN_UNSIGNED"}
    waiting = seal("demo", DEMO.data[:4], DEMO.blobs)
    approved = waiting._replace(data=DEMO.data[:5])
    assert approved.codes() == {"TURN_UNSIGNED"}


def test_a_turn_after_the_ending_that_goes_on_with_the_run_is_found() -> None:
    feedback = appended(DEMO, arrivals.FeedbackGiven("ada", "more"), rulings.FeedbackTaken("ada"))
    assert "TURN_AFTER_ENDING" in feedback.codes()
    again = appended(DEMO, ToolOutcomeLost("4.1"), rulings.RunEnded(Ending.TIMEOUT))
    assert "TURN_AFTER_ENDING" in again.codes()


def test_a_late_outcome_is_a_legal_addendum() -> None:
    late = appended(DEMO, ToolOutcomeLost("4.1"), rulings.AddendumNoted("4.1"))
    found = late.verified()
    assert found.ok
    assert (found.turns, found.signed_turns) == (8, 7)


def test_a_run_that_begins_twice_or_not_at_all_is_found() -> None:
    assert "RUN_NOT_STARTED" in DEMO._replace(data=rechained(DEMO.data[1:], 0)).codes()
    assert "RUN_NOT_STARTED" in DEMO._replace(data=rechained((*DEMO.data, DEMO.data[0]), 0)).codes()


def test_a_turn_that_cannot_be_read_is_found_without_losing_the_rest() -> None:
    found = DEMO._replace(data=(*DEMO.data[:2], b"\x01\x1b[2J", *DEMO.data[3:])).verified()
    assert {finding.code for finding in found.findings} >= {"TURN_UNREADABLE", "CHAIN_BROKEN"}
    assert found.turns == 7
    assert all(finding.message.isprintable() for finding in found.findings)


def test_time_that_goes_backwards_is_found() -> None:
    turn = decode_turn(DEMO.data[3])
    data = (*DEMO.data[:3], encode_turn(replace(turn, at_ms=0)), *DEMO.data[4:])
    assert "TIME_REVERSED" in DEMO._replace(data=data).codes()


def test_a_command_under_a_wrong_number_is_found() -> None:
    timer = SetTimer("9.9", 1, TimerPurpose.DEADLINE)
    assert "COMMAND_MISNUMBERED" in appended(DEMO, ToolOutcomeLost("4.1"), timer).codes()


def test_an_outcome_or_a_settlement_of_a_command_nobody_ordered_is_found() -> None:
    assert "COMMAND_UNKNOWN" in appended(DEMO, ToolOutcomeLost("99.1"), rulings.AddendumNoted("99.1")).codes()
    assert "COMMAND_UNKNOWN" in appended(DEMO, ToolOutcomeLost("4.1"), rulings.CommandSettled("99.1")).codes()


def test_a_text_that_was_altered_is_found_and_one_that_is_gone_is_redacted() -> None:
    run = next(run for seed in range(50) for run in simulated(seed) if long_texts(run))
    digest = next(iter(long_texts(run)))
    altered = run._replace(blobs={**run.blobs, digest: b"something else"})
    assert altered.codes() == {"BLOB_ALTERED"}
    redacted = run._replace(blobs={key: text for key, text in run.blobs.items() if key != digest}).verified()
    assert redacted.ok
    assert redacted.redacted == (digest.hex(),)
    assert [finding.code for finding in redacted.findings] == [Fault.BLOB_REDACTED]


def test_a_fork_is_vouched_for_from_where_it_goes_on() -> None:
    run = next(run for seed in range(300) for run in simulated(seed) if forked_at(run) is not None)
    copied = forked_at(run)
    assert copied is not None
    assert seal(run.run_id, run.data[: copied + 2], run.blobs)._replace(heads=(), logged=()).verified().ok


def test_a_journal_that_is_wrong_everywhere_is_told_in_a_bounded_number_of_findings() -> None:
    found = DEMO._replace(data=(b"nothing",) * (FINDINGS_MAX + 50)).verified()
    assert len(found.findings) == FINDINGS_MAX
    assert found.findings_left_out > 0
    assert not found.ok


def test_whatever_needs_a_head_is_written_as_a_barrier() -> None:
    for seed in range(15):
        for state, turn in before_each_turn(seed):
            assert not needs_a_head(turn) or barrier_of(state, turn) is not None


def test_an_effect_needs_a_head_and_a_read_does_not() -> None:
    call = CallTool("0.0", "c", "t", "v", "{}", b"hash", "key", 1000, ())
    read = Turn(0, 0, b"", KERNEL_VERSION, ToolOutcomeLost("0.0"), (call,))
    assert not needs_a_head(read)
    assert needs_a_head(replace(read, decisions=(replace(call, mutating=True),)))


def test_what_was_redacted_and_what_was_refused_is_harmless() -> None:
    assert {Fault.BLOB_REDACTED, Fault.TURN_REDACTED, Fault.ENTRIES_REFUSED} == HARMLESS


def before_each_turn(seed: int) -> Iterator[tuple[RunState, Turn]]:
    world = played_world(seed)
    for run_id in world.run_ids():
        state = RunState()
        for data in world.run(run_id).journal:
            turn = decode_turn(data)
            yield state, turn
            apply(state, turn, hash_turn(data))


def long_texts(run: Sealed) -> set[bytes]:
    return {bytes.fromhex(digest) for digest in run._replace(blobs={}).verified().redacted}


def forked_at(run: Sealed) -> int | None:
    first = decode_turn(run.data[0]).arrival
    assert isinstance(first, arrivals.RunStarted)
    return None if first.manifest.forked_from is None else first.manifest.forked_from.seq
