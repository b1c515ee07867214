"""The one reading: facts as they come, steps as they stand, from the first turn on or from the middle of a run."""

import msgspec

from remit.core.failure import Ending, ErrorCode
from remit.core.journal.arrivals import ModelFailed, PauseRequested, ResumeRequested, ToolReturned
from remit.core.journal.codec import decode_turn, plain_value
from remit.core.journal.rulings import ApprovalCounted, ChildHeld, CommandSettled, OutcomeDoubted, RetryPlanned
from remit.core.journal.turn import Decision, Turn
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.fact import Fact, FactKind
from remit.observe.reading import UNREAD, Reading, reading_of
from remit.observe.steps import StepKind
from scripts.make_golden import GOLDEN, read_journal
from tests.simulation.play import demo_manifest, demo_world

DEMO = demo_world().finish(demo_manifest())
REACHES = [FactKind]


def told(turns: tuple[Turn, ...]) -> list[Fact]:
    reading = Reading()
    return [fact for turn in turns for fact in reading.take(turn)]


def test_a_run_is_drawn_from_facts_alone() -> None:
    drawn = [
        f"{fact.seq} {fact.kind} {fact.step.kind} {fact.step.name}: {fact.step.status}"
        for fact in told(DEMO.turns[:3])
        if fact.kind is not FactKind.ENTERED
    ]
    assert drawn[:7] == [
        "0 started run demo: started",
        "0 begun model scripted: under way",
        "1 heard model scripted: answered",
        "1 settled model scripted: answered",
        "1 begun tool lookup_order: under way",
        "1 noted refused find_order: refused",
        "2 heard tool lookup_order: under way",
    ]


def test_a_fact_is_plain_data_that_can_be_sent_elsewhere() -> None:
    for fact in told(DEMO.turns):
        assert msgspec.json.decode(msgspec.json.encode(plain_value(fact)))["kind"] == fact.kind.value


def test_a_step_says_what_was_asked_answered_reserved_and_charged_where_and_how_far_it_got() -> None:
    (looked,) = [step for step in reading_of(DEMO.turns).steps.values() if step.kind is StepKind.TOOL and not step.by]
    assert (looked.tool, looked.node, looked.rung, looked.status) == ("lookup_order", "act", "committed", "committed")
    assert looked.asked == '{"order_id":"42"}'
    assert looked.answered == looked.content
    assert looked.reserved == looked.charged
    assert (looked.seq, looked.until_seq, looked.duration_ms, looked.measured_ms) == (1, 2, 292, 0)


def test_every_kind_of_fact_is_told_of_some_run() -> None:
    journals = [read_journal(path) for path in GOLDEN.glob("v4/*.journal")]
    runs = [tuple([decode_turn(data) for data in journal]) for journal in journals]
    assert {fact.kind for turns in runs for fact in told(turns)} == set(FactKind)


def test_a_reading_of_a_state_is_that_of_its_turns() -> None:
    state, reading = RunState(), Reading()
    for turn in DEMO.turns:
        apply(state, turn, b"")
        reading.take(turn)
        taken_up = Reading.of(state)
        assert (taken_up.node, taken_up.turns) == (reading.node, reading.turns)
        assert [step.name for step in taken_up.steps.values()] == [
            reading.steps[key].name for key in state.commands.open if key in reading.steps
        ]


def unread(*decisions: Decision) -> list[tuple[FactKind, StepKind, str]]:
    """What the first turn says that anybody reads of a run."""
    turn = Turn(7, 1000, b"", 3, PauseRequested("ann"), decisions)
    return [(fact.kind, fact.step.kind, fact.step.name) for fact in Reading().take(turn)][1:]


def test_what_is_ruled_of_a_step_whose_order_was_not_read_is_told_all_the_same() -> None:
    assert unread(OutcomeDoubted("1.1", "lost")) == [(FactKind.DOUBTED, StepKind.TOOL, UNREAD)]
    assert unread(ApprovalCounted("1.1", "ann")) == [(FactKind.COUNTED, StepKind.QUESTION, UNREAD)]
    assert unread(ChildHeld("1.1", Ending.CONFIRM_REQUIRED)) == [(FactKind.HELD, StepKind.TOOL, UNREAD)]
    assert unread(RetryPlanned("1.1", 2, ErrorCode.TOOL_TIMEOUT)) == [(FactKind.RETRIED, StepKind.TOOL, UNREAD)]
    # A timer is settled as well, and no command was waiting for it.
    assert unread(CommandSettled("1.1")) == []


def test_an_outcome_whose_order_was_not_read_is_of_the_kind_that_it_says() -> None:
    reading = Reading()
    (heard,) = reading.take(Turn(7, 1000, b"", 3, ToolReturned("1.1", "x", b"")))
    assert (heard.kind, heard.step.kind, heard.step.content) == (FactKind.HEARD, StepKind.TOOL, "x")
    (failed,) = reading.take(Turn(8, 1001, b"", 3, ModelFailed("1.2", ErrorCode.INFERENCE_ENGINE_ERROR, "it fell")))
    assert (failed.step.kind, failed.step.reason) == (StepKind.MODEL, "it fell")


def test_of_a_run_that_was_read_from_its_start_only_what_it_ordered_is_a_step() -> None:
    reading = reading_of(DEMO.turns[:1])
    assert reading.take(Turn(1, 0, b"", 3, ToolReturned("9.9", "x", b""))) == []
    assert [fact.kind for fact in reading.take(Turn(2, 0, b"", 3, ResumeRequested("ann")))] == [FactKind.NOTED]
