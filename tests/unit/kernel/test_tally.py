"""A turn in the making: promises are counted as they are made."""

import pytest

from remit.core.failure import Ending
from remit.core.journal.commands import (
    AskHuman,
    AskPurpose,
    CallCode,
    CancelCommand,
    Command,
    ForkRun,
    ReconcileTool,
    SetTimer,
    TimerPurpose,
)
from remit.core.journal.rulings import FeedbackTaken
from remit.core.limits.budget import Dimension
from remit.kernel.budget.spend import settle_command
from remit.kernel.tally import blocks
from tests.unit.kernel.builders import Run, wants

REACHES = [TimerPurpose, AskPurpose]

CODE = CallCode("1.0", "polite", "", 100, ((int(Dimension.TOOL_CALLS), 2),))


def asked(purpose: AskPurpose) -> AskHuman:
    return AskHuman("1.0", purpose, Ending.CONFIRM_REQUIRED, 0)


def timer(purpose: TimerPurpose) -> SetTimer:
    return SetTimer("1.0", 0, purpose)


@pytest.mark.parametrize(
    "command", [CODE, asked(AskPurpose.APPROVAL), asked(AskPurpose.QUESTION), timer(TimerPurpose.RETRY)]
)
def test_a_node_waits_for_what_it_ordered(command: Command) -> None:
    assert blocks(command)


@pytest.mark.parametrize(
    "command",
    [
        asked(AskPurpose.OUTCOME),
        timer(TimerPurpose.DEADLINE),
        timer(TimerPurpose.APPROVAL),
        ReconcileTool("1.0", "0.1", "pay", "run:0.1", 100),
        CancelCommand("1.0", "0.1"),
        ForkRun("1.0", "run.1.0", 0, "ada"),
    ],
)
def test_a_node_does_not_wait_for_what_goes_on_beside_it(command: Command) -> None:
    assert not blocks(command)


def test_an_id_is_the_turn_and_the_place_in_it() -> None:
    tally = Run().tally()
    assert tally.next_id() == "1.0"
    tally.rule(FeedbackTaken("ada"))
    assert tally.next_id() == "1.1"


def test_an_order_promises_what_it_reserves_and_a_settlement_gives_it_back() -> None:
    tally = Run().tally()
    blocking, left = tally.blocking, tally.left[Dimension.TOOL_CALLS]
    tally.issue(CODE)
    assert (left - tally.left[Dimension.TOOL_CALLS], tally.blocking) == (2, blocking + 1)
    assert settle_command(tally, CODE, ()) is None
    assert (tally.left[Dimension.TOOL_CALLS], tally.blocking) == (left, blocking)


def test_a_message_counts_with_its_bound() -> None:
    tally = Run().tally()
    tally.say(12)
    assert (tally.messages_count, tally.context_tokens) == (2, 42)


def test_a_tally_begins_where_the_state_stands() -> None:
    run = Run()
    run.proposes(wants("write"), text="let me see")
    tally = run.tally()
    assert (tally.node, tally.blocking, tally.asking, tally.answer) == (run.state.place.node, 1, 1, "let me see")
    assert tally.proposed == run.state.calls.proposed
    assert tally.is_standing


def test_the_clock_stands_still_while_a_person_is_asked_or_the_run_is_paused() -> None:
    tally = Run().tally()
    assert not tally.is_standing
    tally.paused = True
    assert tally.is_standing
