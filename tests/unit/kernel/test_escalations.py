"""Escalation: every question and every ending says why authority leaves the run, how gravely, and to whom it goes."""

from collections.abc import Callable
from typing import Any

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import TimerPurpose
from remit.core.journal.proposed_call import Provenance
from remit.core.journal.rulings import RunEnded
from remit.core.limits.boundary import Boundary, Condition, Exhaustion, Then
from remit.core.limits.budget import Budget
from remit.core.limits.escalation import TRIGGERS, Escalation, Trigger
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import replace
from remit.core.work.goal import Criterion, Goal
from remit.core.work.graph import Node, NodeKind
from tests.simulation.scenarios import PARAMETERS, TOOLS
from tests.unit.kernel.builders import Run, in_line, known, manifest_of, wants

Story = Callable[[Boundary], Run]


def started(boundary: Boundary, **manifest: Any) -> Run:
    return Run(manifest_of(boundary=boundary, **manifest))


def proposing(*names: str, **changes: Any) -> Story:
    """A run that asks about a call of a tool that declares this."""

    def story(boundary: Boundary) -> Run:
        changed = tuple(known(tool.name, **changes) if tool.name in names else tool for tool in TOOLS)
        run = started(boundary, tools=changed)
        run.proposes(*(wants(name) for name in names))
        return run

    return story


def ambiguous(boundary: Boundary) -> Run:
    run = started(boundary)
    run.proposes(replace(wants("write"), provenance=Provenance.UNBOUND, objection="RECORD_AMBIGUOUS"))
    return run


def asking(under: Ending) -> Story:
    def story(boundary: Boundary) -> Run:
        ask = ToolDefinition("ask", "ask", PARAMETERS, effect=Effect.NONE, asks_under=under)
        run = started(boundary, tools=(ask,))
        run.proposes(wants("ask"))
        return run

    return story


def at_a_human_node(boundary: Boundary) -> Run:
    return started(boundary, graph=in_line(Node("ask", NodeKind.HUMAN, prompt="Which?")))


def in_doubt(boundary: Boundary) -> Run:
    run = started(boundary)
    run.proposes(wants("write"))
    run.approves()
    run.loses()
    return run


def unsure(boundary: Boundary) -> Run:
    run = started(boundary, goal=Goal("be sure", confidence_ppm_min=1))
    run.says("perhaps")
    return run


def out_of_calls(boundary: Boundary) -> Run:
    run = started(replace(boundary, exhaustion=(("tool_calls", Exhaustion.ASK),)), budget=Budget(tool_calls=1))
    run.proposes(wants("look", 1), wants("look", 2))
    return run


def out_of_words(boundary: Boundary) -> Run:
    run = started(replace(boundary, exhaustion=(("output_tokens", Exhaustion.ASK),)), budget=Budget(output_tokens=4))
    run.proposes(wants("look"))
    run.returns()
    return run


QUESTIONS: dict[str, tuple[Story, Trigger, Ending]] = {
    "a change": (proposing("write"), Trigger.HIGH_IMPACT_MUTATION, Ending.CONFIRM_REQUIRED),
    "a payment": (
        proposing("pay", category=ToolCategory.PAYMENT),
        Trigger.FINANCIAL_COMMITMENT,
        Ending.CONFIRM_REQUIRED,
    ),
    "a mail": (
        proposing("pay", category=ToolCategory.EMAIL_CALENDAR),
        Trigger.EXTERNAL_COMMUNICATION,
        Ending.CONFIRM_REQUIRED,
    ),
    "which record": (ambiguous, Trigger.AMBIGUOUS_GOAL, Ending.AMBIGUOUS_INTENT),
    "a call beyond the budget": (out_of_calls, Trigger.BUDGET_LIMIT, Ending.CONFIRM_REQUIRED),
    "more budget": (out_of_words, Trigger.BUDGET_LIMIT, Ending.CONFIRM_REQUIRED),
    "what became of a call": (in_doubt, Trigger.LOW_CONFIDENCE, Ending.REVIEW_REQUIRED),
    "a doubtful answer": (unsure, Trigger.LOW_CONFIDENCE, Ending.LOW_CONFIDENCE),
    "a node": (at_a_human_node, Trigger.MISSING_INPUT, Ending.MISSING_INFO),
    "what is missing": (asking(Ending.MISSING_INFO), Trigger.MISSING_INPUT, Ending.MISSING_INFO),
    "a choice": (asking(Ending.AMBIGUOUS_INTENT), Trigger.AMBIGUOUS_GOAL, Ending.AMBIGUOUS_INTENT),
    "a review": (asking(Ending.REVIEW_REQUIRED), Trigger.LOW_CONFIDENCE, Ending.REVIEW_REQUIRED),
}


def expected(trigger: Trigger, queue: str = "") -> Escalation:
    row = TRIGGERS[trigger]
    return Escalation(trigger, row.severity, row.route, queue or row.queue)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_says_why_it_is_asked_and_of_whom(name: str) -> None:
    story, trigger, ending = QUESTIONS[name]
    question = story(Boundary("test")).question()
    assert (question.escalation, question.ending) == (expected(trigger), ending)


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_boundary_sends_a_question_to_the_queue_that_it_names(name: str) -> None:
    story, trigger, _ = QUESTIONS[name]
    boundary = Boundary("test", queues=(("outage", "nobody"), (trigger, "elsewhere")))
    assert story(boundary).question().escalation == expected(trigger, "elsewhere")


# Endings.


def ended(how: Callable[[Run], object], story: Story) -> Story:
    """The story, and then what ends it."""

    def ending(boundary: Boundary) -> Run:
        run = story(boundary)
        how(run)
        return run

    return ending


def silent(run: Run) -> None:
    run.rings(TimerPurpose.APPROVAL)


def silent_and_done(run: Run) -> None:
    silent(run)
    run.says("done")


def denied(times: int) -> Story:
    def story(boundary: Boundary) -> Run:
        run = started(boundary)
        run.proposes(*(wants("secret", n) for n in range(times)))
        return run

    return story


def turned_away(times: int) -> Story:
    """A person says no to calls of so many answers; then the model gives up, unless the run has ended."""

    def story(boundary: Boundary) -> Run:
        run = started(boundary)
        for n in range(times):
            run.proposes(wants("write", n))
            run.rejects()
        if run.state.end.ending is None:
            run.says("done")
        return run

    return story


def rejected_change(run: Run) -> None:
    run.rejects()
    run.says("done")


def failing(tool: str, code: ErrorCode) -> Story:
    def story(boundary: Boundary) -> Run:
        run = started(boundary, budget=Budget(retries=0))
        run.proposes(wants(tool))
        run.fails(tool, code)
        return run

    return story


def invalid(boundary: Boundary) -> Run:
    run = started(boundary, goal=Goal("be short", (Criterion("short", guard="answer_bytes < 1"),)))
    for _ in range(3):
        run.says("far too long")
    return run


def conflicting(boundary: Boundary) -> Run:
    run = started(boundary, goal=Goal("agree", critical=("price",)))
    for n in (1, 2):
        run.proposes(wants("look", n))
        run.returns("look", critical=(("price", str(n)),))
    return run


def unsafe(boundary: Boundary) -> Run:
    run = started(replace(boundary, conditions=(Condition("never", "true", Then.STOP),)))
    run.proposes(wants("look"))
    return run


def exhausted(boundary: Boundary) -> Run:
    return started(boundary, budget=Budget(output_tokens=0))


def answered(boundary: Boundary) -> Run:
    run = started(boundary)
    run.says("done")
    return run


def partly(boundary: Boundary) -> Run:
    run = started(boundary)
    run.proposes(wants("write"), wants("put"))
    run.approves()
    run.rejects()
    run.returns("write")
    run.says("half of it")
    return run


def cancelled(boundary: Boundary) -> Run:
    run = started(boundary)
    run.take(arrivals.CancelRequested("ada"))
    return run


def late(boundary: Boundary) -> Run:
    run = started(boundary)
    run.rings(TimerPurpose.DEADLINE)
    return run


def impossible(boundary: Boundary) -> Run:
    run = started(boundary)
    run.breaks(ErrorCode.INFERENCE_CONTEXT_EXCEEDED)
    return run


ENDED: dict[str, tuple[Story, Ending, Trigger | None]] = {
    "success": (answered, Ending.SUCCESS, None),
    "partial success": (partly, Ending.PARTIAL_SUCCESS, None),
    "impossible": (impossible, Ending.IMPOSSIBLE, None),
    "timeout": (late, Ending.TIMEOUT, None),
    "cancel": (cancelled, Ending.USER_CANCEL, None),
    "missing": (ended(silent, at_a_human_node), Ending.MISSING_INFO, Trigger.MISSING_INPUT),
    "ambiguous": (ended(silent, asking(Ending.AMBIGUOUS_INTENT)), Ending.AMBIGUOUS_INTENT, Trigger.AMBIGUOUS_GOAL),
    "unconfirmed change": (
        ended(silent_and_done, proposing("write")),
        Ending.CONFIRM_REQUIRED,
        Trigger.HIGH_IMPACT_MUTATION,
    ),
    "unconfirmed payment": (
        ended(silent_and_done, proposing("pay", category=ToolCategory.PAYMENT)),
        Ending.CONFIRM_REQUIRED,
        Trigger.FINANCIAL_COMMITMENT,
    ),
    "unconfirmed wish": (
        ended(silent, asking(Ending.CONFIRM_REQUIRED)),
        Ending.CONFIRM_REQUIRED,
        Trigger.HIGH_IMPACT_MUTATION,
    ),
    "unknown outcome": (ended(silent, in_doubt), Ending.REVIEW_REQUIRED, Trigger.LOW_CONFIDENCE),
    "outcome nobody can tell": (
        ended(lambda run: run.judges(Happened.UNKNOWN), in_doubt),
        Ending.REVIEW_REQUIRED,
        Trigger.LOW_CONFIDENCE,
    ),
    "unsure": (ended(silent, unsure), Ending.LOW_CONFIDENCE, Trigger.LOW_CONFIDENCE),
    "turned down": (ended(Run.rejects, unsure), Ending.VALIDATION_FAIL, Trigger.LOW_CONFIDENCE),
    "invalid": (invalid, Ending.VALIDATION_FAIL, Trigger.LOW_CONFIDENCE),
    "conflict": (conflicting, Ending.SOURCE_CONFLICT, Trigger.LOW_CONFIDENCE),
    "exhausted": (exhausted, Ending.BUDGET_EXHAUSTED, Trigger.BUDGET_LIMIT),
    "failing": (
        failing("look", ErrorCode.TOOL_EXECUTION_FAILED),
        Ending.REPEATED_FAILURE,
        Trigger.TOOL_FAILURE,
    ),
    "unavailable": (failing("look", ErrorCode.TOOL_UNAVAILABLE), Ending.UNAVAILABLE_DEP, Trigger.OUTAGE),
    "denied three times": (denied(3), Ending.PERMISSION_DENIED, Trigger.REPEATED_DENIAL),
    "denied once by a person": (ended(rejected_change, proposing("write")), Ending.PERMISSION_DENIED, None),
    "denied twice by a person": (turned_away(2), Ending.PERMISSION_DENIED, Trigger.REPEATED_DENIAL),
    "denied three times by a person": (turned_away(3), Ending.PERMISSION_DENIED, Trigger.REPEATED_DENIAL),
    "unsafe": (unsafe, Ending.UNSAFE_DETECTION, Trigger.SECURITY_BREACH),
}


@pytest.mark.parametrize("name", ENDED)
def test_an_ending_says_why_authority_is_handed_on_and_to_whom(name: str) -> None:
    story, ending, trigger = ENDED[name]
    ruling = story(Boundary("test")).last(RunEnded)
    assert ruling.ending is ending
    assert ruling.escalation == (None if trigger is None else expected(trigger))


@pytest.mark.parametrize("name", [name for name, row in ENDED.items() if row[2] is not None])
def test_a_boundary_sends_an_ending_to_the_queue_that_it_names(name: str) -> None:
    story, _, trigger = ENDED[name]
    assert trigger is not None
    boundary = Boundary("test", queues=((trigger, "elsewhere"),))
    assert story(boundary).last(RunEnded).escalation == expected(trigger, "elsewhere")


def test_every_ending_and_every_trigger_is_told_here() -> None:
    assert {ending for _, ending, _ in ENDED.values()} == set(Ending)
    told = {trigger for _, trigger, _ in QUESTIONS.values()} | {trigger for _, _, trigger in ENDED.values()}
    assert told - {None} == set(Trigger)
