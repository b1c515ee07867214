from typing import get_args

import msgspec

from remit.core.journal.arrivals import Arrival, CallProposed, HostFinished, PauseRequested, TextShown
from remit.core.journal.commands import COMMANDS, Command, SetTimer, TimerPurpose
from remit.core.journal.rulings import Ruling, RunPaused
from remit.core.journal.turn import KERNEL_VERSION, Decision, Turn

REACHES = [Command, Ruling]


def test_a_turn_binds_one_arrival_to_its_decisions_and_to_the_turn_before() -> None:
    turn = Turn(1, 1000, b"head", KERNEL_VERSION, PauseRequested("ada"), (RunPaused("ada"),))
    assert (turn.seq, turn.previous, turn.kernel) == (1, b"head", KERNEL_VERSION)


def test_a_decision_is_a_ruling_or_a_command() -> None:
    assert set(get_args(Decision)) == {*get_args(Ruling), *get_args(Command)}
    assert set(get_args(Command)) == COMMANDS


def test_every_arrival_and_decision_says_its_kind_in_the_journal() -> None:
    kinds = (*get_args(Arrival), *get_args(Decision))
    tags = [kind.__struct_config__.tag for kind in kinds]
    assert tags == [kind.__name__ for kind in kinds]
    assert len(set(tags)) == len(tags)


def test_every_command_has_an_id_and_says_what_it_reserves() -> None:
    for kind in get_args(Command):
        assert {"id", "reserved"} <= set(kind.__struct_fields__), kind


def test_every_outcome_names_its_command_and_every_request_its_sender() -> None:
    for kind in get_args(Arrival):
        fields = set(kind.__struct_fields__)
        # No person asked for a start or a change of hands: the one has a manifest and the other a token. What an agent
        # elsewhere says is said by the host of the run, whatever process that is.
        if kind in (CallProposed, TextShown, HostFinished):
            continue
        assert {"command_id", "by", "manifest", "token"} & fields, kind


def test_a_timer_is_written_with_its_purpose() -> None:
    written = msgspec.to_builtins(SetTimer("0.1", 5, TimerPurpose.RETRY, "0.0"))
    assert written == {"type": "SetTimer", "id": "0.1", "due_at_ms": 5, "purpose": "retry", "about": "0.0"}
