"""What queues hold, read off runs that were driven by hand."""

import pytest

from remit.core.failure import Ending
from remit.core.journal.arrivals import CancelRequested
from remit.core.journal.commands import AskHuman, AskPurpose
from remit.core.journal.rulings import RunEnded
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.limits.boundary import Boundary
from remit.core.limits.escalation import QUEUES, Escalation, Gravity, Trigger, escalation_of
from remit.core.limits.queue import QueueLimits
from remit.core.record import BlobRef, replace
from remit.core.run.approval import What
from remit.core.work.goal import Goal
from remit.core.work.graph import Node, NodeKind
from remit.observe.people.queue_items import (
    SUMMARY_CHARS_MAX,
    QueueItem,
    aged,
    escalation_asked,
    item_ended,
    items_asked,
    queue_overview,
)
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants

REACHES = [What, Gravity]


def item(name: str, severity: Gravity = Gravity.LOW, since_ms: int = 0, queue: str = "user") -> QueueItem:
    """An item that waits."""
    row = escalation_of(Trigger.MISSING_INPUT)
    return QueueItem(name, name, queue, What.QUESTION, severity, row.trigger, row.route, since_ms, "?")


def ended(escalation: Escalation | None, message: str = "") -> list[Turn]:
    """The last turn of a run that ended so."""
    ending = RunEnded(Ending.BUDGET_EXHAUSTED, message=message, escalation=escalation)
    return [Turn(0, 5, b"", KERNEL_VERSION, CancelRequested("ada"), (ending,))]


def test_a_held_call_is_an_item_of_the_queue_that_may_allow_it() -> None:
    run = Run()
    run.proposes(wants("write", 7))
    (found,) = items_asked(run.state, run.turns)
    assert (found.id, found.run_id, found.queue) == ("run/1.2", "run", "operator")
    assert (found.what, found.severity, found.trigger) == (What.APPROVAL, Gravity.HIGH, Trigger.HIGH_IMPACT_MUTATION)
    assert found.summary == 'write {"n":7}'
    assert found.since_ms == run.turns[1].at_ms
    assert found.expires_at_ms == run.question().expires_at_ms


def test_calls_that_were_held_together_name_the_first_of_them() -> None:
    run = Run()
    run.proposes(wants("write", 1), wants("write", 2, call_id="other"))
    first, second = items_asked(run.state, run.turns)
    assert (first.id, first.group or first.id, second.group) == ("run/1.2", "run/1.2", "run/1.2")


def test_a_question_of_a_graph_goes_to_the_user() -> None:
    run = Run(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt="Which\x1b[2J city?"))))
    (found,) = items_asked(run.state, run.turns)
    assert (found.queue, found.what, found.severity) == ("user", What.QUESTION, Gravity.LOW)
    assert found.summary == "Which\\x1b[2J city?"


def test_a_call_in_doubt_is_an_item_that_asks_what_became_of_it() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.loses()
    (found,) = items_asked(run.state, run.turns)
    assert found.what is What.OUTCOME
    assert found.summary.startswith("what became of write ")


def test_a_question_that_names_no_queue_goes_where_its_code_leads() -> None:
    asked = AskHuman("1.1", AskPurpose.QUESTION, Ending.MISSING_INFO, 0)
    assert escalation_asked(asked) == escalation_of(Trigger.MISSING_INPUT)
    unknown = replace(asked, ending=Ending.USER_CANCEL)
    assert escalation_asked(unknown).trigger is Trigger.HIGH_IMPACT_MUTATION


def test_a_doubtful_answer_is_an_item_for_review() -> None:
    run = Run(manifest_of(goal=Goal("be sure", confidence_ppm_min=1)))
    run.says("perhaps")
    (found,) = items_asked(run.state, run.turns)
    assert (found.what, found.queue) == (What.REVIEW, "review")


def test_a_release_and_long_arguments_have_summaries_of_their_own() -> None:
    run = Run()
    run.proposes(wants("write"))
    question = run.question()
    assert question.packet is not None
    long = replace(question.packet, call=replace(question.packet.call, arguments=BlobRef(b"d" * 32, 5000)))
    run.state.commands.open[question.id] = replace(question, packet=long)
    assert items_asked(run.state, run.turns)[0].summary == "write <5000 bytes>"
    run.state.commands.open[question.id] = replace(question, packet=None, purpose=AskPurpose.RELEASE)
    assert items_asked(run.state, run.turns)[0].summary == "release more budget"
    run.state.commands.open[question.id] = replace(question, packet=None, purpose=AskPurpose.QUESTION, id="9.1")
    (late,) = items_asked(run.state, run.turns)
    assert (late.summary, late.since_ms) == ("a question", 0)


def test_an_ending_that_hands_authority_on_is_an_item_and_another_is_none() -> None:
    to = escalation_of(Trigger.BUDGET_LIMIT)
    found = item_ended("r", ended(to, "x" * 500))
    assert found is not None
    assert (found.id, found.queue, found.what, found.since_ms, found.expires_at_ms) == (
        "r",
        "budget",
        What.ENDING,
        5,
        0,
    )
    assert found.summary.startswith("ended as BUDGET_EXHAUSTED: xxx")
    assert len(found.summary) == SUMMARY_CHARS_MAX
    assert item_ended("r", ended(None)) is None
    assert item_ended("r", []) is None


def test_the_ending_of_a_child_goes_to_its_parent_unless_it_is_grave() -> None:
    assert item_ended("r.1", ended(escalation_of(Trigger.BUDGET_LIMIT)), is_child=True) is None
    grave = item_ended("r.1", ended(escalation_of(Trigger.SECURITY_BREACH)), is_child=True)
    assert grave is not None
    assert (grave.queue, grave.summary) == ("security", "ended as BUDGET_EXHAUSTED")


def test_a_boundary_may_name_other_queues() -> None:
    queues = ((Trigger.HIGH_IMPACT_MUTATION.value, "desk"),)
    run = Run(manifest_of(boundary=Boundary(name="test", queues=queues)))
    run.proposes(wants("write"))
    assert [found.queue for found in items_asked(run.state, run.turns)] == ["desk"]


def test_what_is_overdue_stands_first_then_what_is_graver_then_what_is_older() -> None:
    items = [
        item("new", Gravity.HIGH, 90),
        item("old", Gravity.LOW, 10),
        item("grave", Gravity.HIGH, 50),
        item("late", Gravity.MODERATE, 10, "review"),
    ]
    shown = aged(items, [QueueLimits("review", age_ms_max=80), QueueLimits("user")], 100)
    assert [one.id for one in shown] == ["late", "grave", "new", "old"]
    assert [(one.age_ms, one.is_overdue) for one in shown] == [(90, True), (50, False), (10, False), (90, False)]


def test_an_item_from_a_clock_that_is_ahead_has_no_age() -> None:
    (shown,) = aged([item("a", since_ms=200)], [QueueLimits("user", age_ms_max=1)], 100)
    assert (shown.age_ms, shown.is_overdue) == (0, False)


def test_every_queue_of_the_table_is_shown_and_those_that_hold_something_or_are_limited() -> None:
    limits = [QueueLimits("desk", load_max=1, age_ms_max=10), QueueLimits("user", load_max=3)]
    items = aged([item("a", Gravity.HIGH, 0, "desk"), item("b", Gravity.LOW, 80, "far"), item("c")], limits, 100)
    shown = {queue.name: queue for queue in queue_overview(items, limits)}
    assert set(shown) == {*QUEUES, "desk", "far"}
    desk = shown["desk"]
    assert (desk.items, desk.high, desk.oldest_ms, desk.overdue, desk.overdue_high) == (1, 1, 100, 1, 1)
    assert desk.is_saturated
    assert (shown["user"].items, shown["user"].low, shown["user"].is_saturated) == (1, 1, False)
    assert (shown["far"].moderate, shown["far"].load_max, shown["sre"].items) == (0, 0, 0)


def test_a_full_queue_holds_the_gravest_and_then_the_oldest_and_the_rest_waits_outside() -> None:
    items = [
        item("low", Gravity.LOW, 1),
        item("old", Gravity.MODERATE, 2),
        item("new", Gravity.MODERATE, 3),
        item("grave", Gravity.HIGH, 9),
        item("far", Gravity.LOW, 0, "sre"),
    ]
    for load_max, outside in ((0, []), (1, ["old", "new", "low"]), (2, ["new", "low"]), (3, ["low"]), (4, [])):
        shown = aged(items, [QueueLimits("user", load_max=load_max)], 10)
        assert [one.id for one in shown if one.is_outside] == outside


def test_calls_held_together_enter_together_and_an_ending_is_always_inside() -> None:
    both = [replace(item(name, Gravity.LOW, 5), group="a") for name in ("a", "b")]
    ended = replace(item("z", Gravity.LOW, 9), what=What.ENDING)
    shown = aged([*both, ended, item("c", Gravity.LOW, 6)], [QueueLimits("user", load_max=2)], 10)
    assert [one.id for one in shown if one.is_outside] == ["c"]


@pytest.mark.req("4.46")
def test_what_lies_too_long_gets_graver_until_it_is_let_in() -> None:
    items = [item("old", Gravity.LOW, 0), item("new", Gravity.MODERATE, 95)]
    limits = [QueueLimits("user", load_max=1, age_ms_max=40)]
    (before,) = [one for one in aged(items, limits, 39) if one.id == "old"]
    assert (before.severity, before.is_overdue, before.is_outside) == (Gravity.LOW, False, True)
    for now_ms, severity in ((41, Gravity.MODERATE), (81, Gravity.HIGH), (900, Gravity.HIGH)):
        (old,) = [one for one in aged(items, limits, now_ms) if one.id == "old"]
        assert (old.severity, old.is_overdue, old.is_outside) == (severity, True, False)
