"""Signals: what a person may tell a run that is under way, or has ended.

Rule 1: each signal has one moment at which it takes effect; WHEN is that table.
Rule 2: a signal names its sender and the run; approve and reject also name the packet they answer.
Rule 3: a packet is named by its run and the command that asks, RUN/COMMAND.
Rule 4: feedback decides nothing; silence is refusal, so no signal is needed to refuse by waiting.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.json_fault import json_fault
from remit.core.record import JsonObject, MadeByHand, Record
from remit.core.run.person import check_person

SIGNAL_INVALID = "SIGNAL_INVALID"
PACKET_UNKNOWN = "PACKET_UNKNOWN"
PACKET_AMBIGUOUS = "PACKET_AMBIGUOUS"

# Run ids contain dots, so a packet needs another mark between its run and its command.
PACKET_MARK = "/"

# A page of text: room for a reason or for guidance, and too little to smuggle a document into the next model call.
SIGNAL_TEXT_BYTES_MAX = 8_192


class Signal(StrEnum):
    """The signals of people to a run."""

    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    APPROVE = "approve"
    REJECT = "reject"
    FEEDBACK = "feedback"
    RETRY = "retry"


class Checkpoint(StrEnum):
    """When a signal takes effect."""

    AT_ONCE = "at_once"
    NEXT_CHECKPOINT = "next_checkpoint"
    WHILE_PAUSED = "while_paused"
    WHILE_AWAITING_APPROVAL = "while_awaiting_approval"
    AFTER_FAILURE = "after_failure"


# Pause and feedback wait for a boundary between two steps, so that nothing in flight is cut off;
# a retry is a fork, because an ended run never reopens.
WHEN: Mapping[Signal, Checkpoint] = MappingProxyType(
    {
        Signal.CANCEL: Checkpoint.AT_ONCE,
        Signal.PAUSE: Checkpoint.NEXT_CHECKPOINT,
        Signal.RESUME: Checkpoint.WHILE_PAUSED,
        Signal.APPROVE: Checkpoint.WHILE_AWAITING_APPROVAL,
        Signal.REJECT: Checkpoint.WHILE_AWAITING_APPROVAL,
        Signal.FEEDBACK: Checkpoint.NEXT_CHECKPOINT,
        Signal.RETRY: Checkpoint.AFTER_FAILURE,
    }
)

# Which keys of the payload a signal cannot do without. All of them hold texts.
PAYLOAD_NEEDED: Mapping[Signal, tuple[str, ...]] = MappingProxyType(
    {
        Signal.CANCEL: (),
        Signal.PAUSE: (),
        Signal.RESUME: (),
        Signal.APPROVE: ("packet_id",),
        Signal.REJECT: ("packet_id",),
        Signal.FEEDBACK: ("text",),
        Signal.RETRY: (),
    }
)
PAYLOAD_TEXTS = ("packet_id", "packet", "reason", "text")
PAYLOAD_KEYS = (*PAYLOAD_TEXTS, "arguments")


class SignalOutcome(Record):
    """What became of a signal. A retry or a fork names the fork it made; `rests_because` says why that, or the run, rests."""

    run_id: str
    fork_id: str = ""
    rests_because: str = ""


def packet_id(run_id: str, command_id: str) -> str:
    """The name of a question to a person, by which one inbox serves all runs."""
    return f"{run_id}{PACKET_MARK}{command_id}"


def packet_named(name: str, run_id: str = "") -> str:
    """The command that a packet's name stands for; refuses a packet of another run. A bare command is fine."""
    run, _, command_id = name.rpartition(PACKET_MARK)
    if not command_id or (run_id and run not in ("", run_id)):
        raise none_of(name, f"of run {run_id!r}; `remit approvals` lists them as RUN{PACKET_MARK}COMMAND")
    return command_id


def none_of(name: str, whose: str) -> RequestRejected:
    """Why an answer is refused whose packet is none of those that are answered here."""
    return RequestRejected(PACKET_UNKNOWN, f"packet {name[:80]!r} is none {whose}", {"packet_id": name[:80]})


def never_asked(run_id: str, command_id: str = "") -> RequestRejected:
    """Why an answer is refused to what a run does not ask, and never did; without a name, to a run that asks nothing."""
    what = f"asks nothing under {command_id[:80]!r}" if command_id else "asks nothing"
    message = f"run {run_id} {what}; `remit approvals` lists what is asked"
    return RequestRejected(PACKET_UNKNOWN, message, {"run_id": run_id, "packet_id": packet_id(run_id, command_id)[:80]})


class UserSignal(MadeByHand):
    """A signal, who sent it from where, and when it came in."""

    signal_id: str
    type: Signal
    run_id: str
    user_id: str
    channel_type: str = ""
    channel_id: str = ""
    payload: JsonObject = {}
    at_ms: int = 0


def check_signal(signal: UserSignal) -> None:
    """Refuse a signal that does not say who, which run, or what its kind needs said."""
    # A plain text that equals a signal would pass every comparison but `is`.
    if not any(signal.type is kind for kind in Signal):
        raise RequestRejected(
            SIGNAL_INVALID, f"type must be a Signal, one of {', '.join(Signal)}, not {str(signal.type)[:80]!r}"
        )
    for field in ("signal_id", "run_id", "user_id"):
        if not getattr(signal, field):
            raise RequestRejected(SIGNAL_INVALID, f"signal {signal.type.value!r} needs a {field}, which is empty")
    check_person(signal.user_id, "user_id")
    for key in PAYLOAD_NEEDED[signal.type]:
        if not signal.payload.get(key):
            raise RequestRejected(
                SIGNAL_INVALID, f"signal {signal.type.value!r} needs payload.{key}, which is missing", {"key": key}
            )
    check_payload_keys(signal.payload)
    if fault := json_fault(signal.payload, "payload"):
        raise RequestRejected(SIGNAL_INVALID, fault, {"key": "arguments"})
    for key in PAYLOAD_TEXTS:
        _check_text(key, signal.payload.get(key, ""))


def check_payload_keys(payload: Mapping[str, Any]) -> None:
    """Refuse a key that no signal has: a misspelt `packet` would leave an answer without the version of what was shown."""
    unknown = [str(key)[:80] for key in payload if key not in PAYLOAD_KEYS]
    if unknown:
        message = f"payload.{unknown[0]} is no key of a signal; there are {', '.join(PAYLOAD_KEYS)}"
        raise RequestRejected(SIGNAL_INVALID, message, {"key": unknown[0]})


def _check_text(key: str, value: Any) -> None:
    if not isinstance(value, str):
        raise RequestRejected(SIGNAL_INVALID, f"payload.{key} is of type {type(value).__name__} and must be a text")
    size = len(value.encode(errors="replace"))
    if size > SIGNAL_TEXT_BYTES_MAX:
        raise RequestRejected(
            SIGNAL_INVALID,
            f"payload.{key} has {size} bytes, more than {SIGNAL_TEXT_BYTES_MAX}; shorten it",
            {"key": key, "size_bytes": size, "limit": SIGNAL_TEXT_BYTES_MAX},
        )
