import msgspec
import pytest

from remit.core.failure import InvariantBroken, RequestRejected
from remit.core.journal.codec import decode_signal, encode_signal
from remit.core.run.signals import (
    PACKET_UNKNOWN,
    PAYLOAD_NEEDED,
    SIGNAL_INVALID,
    SIGNAL_TEXT_BYTES_MAX,
    WHEN,
    Checkpoint,
    Signal,
    UserSignal,
    check_signal,
    packet_id,
    packet_named,
)


def signal(kind: Signal, **payload: object) -> UserSignal:
    return UserSignal("sig_1", kind, "run_1", "ada", "cli", "tty", payload, at_ms=5)


@pytest.mark.req("3.8")
def test_each_of_the_seven_signals_has_its_moment() -> None:
    assert dict(WHEN) == {
        Signal.CANCEL: Checkpoint.AT_ONCE,
        Signal.PAUSE: Checkpoint.NEXT_CHECKPOINT,
        Signal.RESUME: Checkpoint.WHILE_PAUSED,
        Signal.APPROVE: Checkpoint.WHILE_AWAITING_APPROVAL,
        Signal.REJECT: Checkpoint.WHILE_AWAITING_APPROVAL,
        Signal.FEEDBACK: Checkpoint.NEXT_CHECKPOINT,
        Signal.RETRY: Checkpoint.AFTER_FAILURE,
    }
    assert set(PAYLOAD_NEEDED) == set(Signal) == set(WHEN)
    assert set(WHEN.values()) == set(Checkpoint)


@pytest.mark.req("3.8")
@pytest.mark.parametrize(
    "sent",
    [
        signal(Signal.CANCEL),
        signal(Signal.PAUSE),
        signal(Signal.RESUME),
        signal(Signal.APPROVE, packet_id="p1"),
        signal(Signal.REJECT, packet_id="p1"),
        signal(Signal.REJECT, packet_id="p1", reason="wrong account"),
        signal(Signal.FEEDBACK, text="use euros"),
        signal(Signal.RETRY),
    ],
)
def test_a_complete_signal_passes_and_survives_json(sent: UserSignal) -> None:
    check_signal(sent)
    assert msgspec.json.decode(msgspec.json.encode(sent), type=UserSignal) == sent


@pytest.mark.parametrize(
    ("sent", "complaint"),
    [
        (signal(Signal.APPROVE), "'approve' needs payload.packet_id"),
        (signal(Signal.REJECT, reason="no"), "'reject' needs payload.packet_id"),
        (signal(Signal.FEEDBACK), "'feedback' needs payload.text"),
        (signal(Signal.FEEDBACK, text=["a"]), "payload.text is of type list"),
        (signal(Signal.CANCEL, reason=3), "payload.reason is of type int"),
        (signal(Signal.APPROVE, packet_id="p1", packet_version="0"), "payload.packet_version is no key of a signal"),
        (signal(Signal.REJECT, packet_id="p1", Packet="0"), "payload.Packet is no key of a signal"),
        (signal(Signal.PAUSE, version="0"), "payload.version is no key of a signal"),
        (UserSignal("", Signal.PAUSE, "run_1", "ada"), "needs a signal_id"),
        (UserSignal("sig_1", Signal.PAUSE, "", "ada"), "needs a run_id"),
        (UserSignal("sig_1", Signal.PAUSE, "run_1", ""), "needs a user_id"),
        (signal(Signal.APPROVE, packet_id="p1", arguments={"x": float("nan")}), "payload.arguments.x=nan is no finite"),
        (UserSignal("sig_1", "stop", "run_1", "ada"), "not 'stop'"),  # type: ignore[arg-type]
    ],
)
def test_an_incomplete_signal_is_refused(sent: UserSignal, complaint: str) -> None:
    with pytest.raises(RequestRejected, match=complaint) as caught:
        check_signal(sent)
    assert caught.value.code == SIGNAL_INVALID


@pytest.mark.parametrize("sent", [signal(Signal.REJECT, packet_id="p1", reason="é" * SIGNAL_TEXT_BYTES_MAX)])
def test_a_reason_is_bounded_in_bytes(sent: UserSignal) -> None:
    with pytest.raises(RequestRejected, match=r"payload\.reason has 16384 bytes, more than 8192"):
        check_signal(sent)
    check_signal(signal(Signal.FEEDBACK, text="e" * SIGNAL_TEXT_BYTES_MAX))


def test_a_packet_is_named_by_its_run_and_the_command_that_asks() -> None:
    assert packet_id("run.3.1", "4.2") == "run.3.1/4.2"
    assert packet_named("run.3.1/4.2", "run.3.1") == "4.2"
    assert packet_named("run/4.2") == "4.2"


def test_a_bare_command_names_a_packet_of_the_run_that_is_meant() -> None:
    assert packet_named("4.2", "run") == "4.2"


@pytest.mark.parametrize("name", ["other/4.2", "run/", ""])
def test_a_packet_of_another_run_or_of_none_is_refused(name: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        packet_named(name, "run")
    assert refused.value.code == PACKET_UNKNOWN


def test_a_signal_comes_back_from_the_bytes_an_inbox_keeps() -> None:
    said = signal(Signal.FEEDBACK, text="be brief")
    assert decode_signal(encode_signal(said)) == said


@pytest.mark.parametrize("data", [b"", b"{", b'{"type":"dance"}', b"\xff"])
def test_bytes_that_are_no_signal_are_unreadable(data: bytes) -> None:
    with pytest.raises(InvariantBroken, match="SIGNAL_UNREADABLE"):
        decode_signal(data)
