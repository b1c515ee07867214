"""What a person is told of earlier attempts at the target of a call."""

from hashlib import sha256

import pytest

from remit.core.failure import ErrorCode
from remit.core.journal.canonical import canonical_json
from remit.core.journal.proposed_call import ProposedCall
from remit.core.record import BlobRef, JsonObject, replace
from remit.kernel.authority.earlier_attempts import ARGUMENTS_CHARS_MAX, ATTEMPTS_SHOWN_MAX, attempts_at
from tests.unit.kernel.builders import Run, known, manifest_of, wants

AIMED = (known("pay", reconcilable=False, control_args=(("note", "id:person"),)), known("look"))
UNCHECKED = (known("write", result={}), known("put"))


def pays(n: int, note: str | None = "bob") -> ProposedCall:
    arguments: JsonObject = {"n": n} if note is None else {"n": n, "note": note}
    data = canonical_json(arguments)
    return ProposedCall(f"call{n}", "pay", data.decode(), sha256(data).digest())


def reasons(run: Run) -> tuple[str, ...]:
    packet = run.question().packet
    assert packet is not None
    return tuple(reason for reason in packet.reasons if reason.startswith("tried before: "))


def test_two_calls_have_one_target_when_the_arguments_that_steer_agree() -> None:
    run = Run(manifest_of(tools=AIMED))
    run.proposes(pays(1))
    assert reasons(run) == ()
    run.approves()
    run.fails()
    run.proposes(pays(2))
    seq = run.state.seq - 1
    failed = "failed with TOOL_EXECUTION_FAILED"
    assert reasons(run) == (f'tried before: pay {{"n":1,"note":"bob"}} settled by turn {seq}, {failed}',)


def test_another_target_is_no_attempt_at_this_one() -> None:
    run = Run(manifest_of(tools=AIMED))
    run.proposes(pays(1))
    run.approves()
    run.fails()
    assert attempts_at(run.state, pays(2, "eve")) == ()
    assert attempts_at(run.state, pays(2, None)) == ()


def test_a_tool_that_names_no_target_is_aimed_by_all_its_arguments() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.returns()
    (told,) = attempts_at(run.state, wants("write"))
    assert told.endswith("committed")
    assert attempts_at(run.state, wants("write", 2)) == ()
    assert attempts_at(run.state, wants("put")) == ()


def test_a_read_has_no_attempts_to_tell_of() -> None:
    run = Run()
    run.proposes(wants("look"))
    run.returns()
    assert attempts_at(run.state, wants("look")) == ()


def test_an_attempt_that_nothing_verified_says_so() -> None:
    run = Run(manifest_of(tools=UNCHECKED))
    run.proposes(wants("write"))
    run.approves()
    run.returns()
    (told,) = attempts_at(run.state, wants("write"))
    assert told.endswith("returned and was not verified")


@pytest.mark.parametrize("tool", ["write", "put"])
def test_an_attempt_that_nobody_knows_of_says_so(tool: str) -> None:
    run = Run()
    run.proposes(wants(tool))
    run.approves()
    run.breaks_within(tool)
    (told,) = attempts_at(run.state, wants(tool))
    assert told.endswith("its outcome is not known")


def test_a_call_that_is_asked_about_is_no_earlier_attempt_at_itself() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    assert reasons(run) == ()


def test_the_latest_attempts_come_first_and_only_so_many() -> None:
    run = Run(manifest_of(tools=AIMED))
    for n in range(ATTEMPTS_SHOWN_MAX + 1):
        run.proposes(pays(n))
        run.approves()
        run.returns("pay")
    told = attempts_at(run.state, pays(9))
    assert len(told) == ATTEMPTS_SHOWN_MAX
    assert f'"n":{ATTEMPTS_SHOWN_MAX}' in told[0]


def test_arguments_that_are_kept_elsewhere_are_told_by_their_size_and_aim_by_their_hash() -> None:
    run = Run(manifest_of(tools=AIMED))
    long = replace(pays(1), arguments=BlobRef(b"d" * 32, 5_000))
    run.proposes(long)
    run.approves()
    run.fails()
    (told,) = attempts_at(run.state, long)
    assert told.startswith("tried before: pay (5000 bytes) settled by turn")
    assert attempts_at(run.state, pays(1, "eve")) == ()


def test_long_arguments_are_cut() -> None:
    run = Run(manifest_of(tools=AIMED))
    run.proposes(pays(1, "x" * 1_000))
    run.approves()
    run.fails()
    (told,) = attempts_at(run.state, pays(2, "x" * 1_000))
    assert len(told) < ARGUMENTS_CHARS_MAX + 120
