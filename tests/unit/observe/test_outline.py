"""The outline tells a run as a tree: visits, steps, and what became of each."""

from time import process_time

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.arrivals import (
    ApprovalGiven,
    ApprovalRefused,
    Arrival,
    CancelRequested,
    ChildEnded,
    ChildSuspended,
    CodeFailed,
    CodeReturned,
    ContextFailed,
    ContextFound,
    FeedbackGiven,
    Happened,
    ModelAnswered,
    OutcomeJudged,
    PauseRequested,
    QuestionAnswered,
    ResumeRequested,
    RetryRequested,
    RunStarted,
    SessionNoted,
    SourcesAccepted,
    ToolOutcomeLost,
    ToolReconciled,
    ToolReturned,
)
from remit.core.journal.commands import (
    COMMANDS,
    AskHuman,
    AskPurpose,
    CallCode,
    CallModel,
    CallTool,
    Retrieve,
    StartChild,
)
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import (
    AddendumNoted,
    Answer,
    CallSettled,
    ChildHeld,
    CommandSettled,
    GroundingViolated,
    NodeEntered,
    OutcomeDoubted,
    QuestionSettled,
    RunEnded,
    Rung,
    StepFinished,
    ToolCallRefused,
    UsageExceeded,
    VoteCounted,
)
from remit.core.journal.turn import KERNEL_VERSION, Decision, Turn
from remit.core.record import replace
from remit.core.run.lifecycle import AgentRole, LifecycleState, LoopState
from remit.core.run.manifest import Source
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import Node, NodeKind
from remit.core.work.plan import Step as PlanStep
from remit.core.work.values import ValueKind
from remit.kernel.state import label_of, loop_state, pinned, questions
from remit.observe.reading import Reading, reading_of
from remit.observe.steps import PerformedStep, StepKind
from remit.observe.views.outline import Outline, loop_states, outline, outline_of, steps_in
from tests.simulation.play import demo_manifest, demo_world
from tests.unit.kernel.builders import Run, manifest_of, wants
from tests.unit.observe.patterned import BAD, FAILS, GOOD, Ran, planned, voted
from tests.unit.observe.sealed import simulated
from tests.unit.observe.test_linked_turns import read

REACHES = [StepKind]

DEMO = demo_world().finish(demo_manifest())
MANIFEST = demo_manifest()


def run_of(*turns: tuple[int, Arrival, tuple[Decision, ...]]) -> list[Turn]:
    """A run that starts, and then hears this."""
    began: tuple[int, Arrival, tuple[Decision, ...]] = (0, RunStarted(MANIFEST, 1), (NodeEntered("think", "started"),))
    told = [began, *turns]
    return [Turn(seq, at_ms, b"", KERNEL_VERSION, said, decided) for seq, (at_ms, said, decided) in enumerate(told)]


def told(*turns: tuple[int, Arrival, tuple[Decision, ...]]) -> Outline:
    return outline(run_of(*turns))


def only_step(*turns: tuple[int, Arrival, tuple[Decision, ...]]) -> PerformedStep:
    (step,) = steps_in(told(*turns))
    return step


CALL = CallTool("1.0", "call", "refund", "v", '{"n":1}', b"h", "key", 1000, ())
CALLED: tuple[int, Arrival, tuple[Decision, ...]] = (10, FeedbackGiven("", ""), (CALL,))


def test_the_demo_is_told_visit_by_visit_with_what_each_step_came_to() -> None:
    tree = outline(DEMO.turns)
    assert [visit.node for visit in tree.visits] == [
        "prepare",
        "think",
        "act",
        "think",
        "act",
        "think",
        "check",
        "done",
    ]
    steps = [(step.kind, step.name, step.status) for step in steps_in(tree)]
    assert steps == [
        (StepKind.MODEL, "scripted", "answered"),
        (StepKind.TOOL, "lookup_order", "committed"),
        (StepKind.REFUSED, "find_order", "refused"),
        (StepKind.MODEL, "scripted", "answered"),
        (StepKind.QUESTION, "approval of refund", "approved"),
        (StepKind.TOOL, "refund", "committed"),
        (StepKind.MODEL, "scripted", "answered"),
    ]
    assert (tree.run_id, tree.boundary, tree.ending) == ("demo", "customer_support", "SUCCESS")
    assert tree.duration_ms == DEMO.turns[-1].at_ms - DEMO.turns[0].at_ms


def test_a_step_knows_what_it_took_and_cost_and_who_allowed_it() -> None:
    model, _, refused, _, question, refund, _ = steps_in(outline(DEMO.turns))
    assert model.charged == ((0, 8), (1, 4), (5, 4))
    assert model.proposed == ("lookup_order", "find_order")
    assert (refused.code, refused.asked, refused.rung) == ("TOOL_NOT_FOUND", '{"order_id":"42"}', "intended")
    assert (question.by, question.duration_ms) == ("ada", 45020)
    assert (refund.by, refund.rung, refund.answered) == ("ada", "committed", '{"refunded": true}')


def test_a_time_that_was_reported_counts_more_than_the_clock_between_turns() -> None:
    returned = ToolReturned("1.0", "done", b"", duration_ms=7)
    assert only_call(20, returned).duration_ms == 7
    answered = ModelAnswered("1.0", "hi", usage=TokenUsage(duration_ms=9))
    call = CallModel("1.0", "m", 1, 10, 1000, ())
    steps = told((10, PauseRequested("ann"), (call,)), (20, answered, (CommandSettled("1.0"),)))
    assert next(step for step in steps_in(steps) if step.kind is StepKind.MODEL).duration_ms == 9


def only_call(at_ms: int, arrival: Arrival, *decisions: Decision) -> PerformedStep:
    """What a call has become after an arrival."""
    steps = steps_in(told(CALLED, (at_ms, arrival, decisions)))
    return next(step for step in steps if step.kind is StepKind.TOOL)


@pytest.mark.parametrize(
    ("arrival", "decisions", "status"),
    [
        (ToolReturned("1.0", "x", b""), (CallSettled("1.0", Rung.COMMITTED),), "committed"),
        (ToolReturned("1.0", "x", b"", refuted="no"), (CallSettled("1.0", Rung.OBSERVED, code="E"),), "failed"),
        (ToolReturned("1.0", "x", b""), (CallSettled("1.0", Rung.OBSERVED),), "observed"),
        (ToolOutcomeLost("1.0"), (OutcomeDoubted("1.0", "gone"),), "in doubt"),
        (CancelRequested("ann"), (CallSettled("1.0", Rung.ATTEMPTED),), "cut off"),
        (CancelRequested("ann"), (CommandSettled("1.0"),), "cut off"),
        (PauseRequested("ann"), (CommandSettled("9.9"), OutcomeDoubted("9.9", "")), "under way"),
    ],
)
def test_a_call_is_told_as_far_as_it_got(arrival: Arrival, decisions: tuple[Decision, ...], status: str) -> None:
    assert only_call(20, arrival, *decisions).status == status


def test_what_leaves_a_call_open_does_not_end_it() -> None:
    assert only_call(20, ToolOutcomeLost("1.0")).until_seq == -1
    child = StartChild("1.0", "demo.1.0", "go", (), 1, 0, (), "call", "helper")
    suspended = (20, ChildSuspended("1.0", Ending.CONFIRM_REQUIRED), (ChildHeld("1.0", Ending.CONFIRM_REQUIRED),))
    _, step = steps_in(told((10, PauseRequested("ann"), (child,)), suspended))
    assert (step.kind, step.status) == (StepKind.CHILD, "waits for a person, first for CONFIRM_REQUIRED")
    assert (step.run_id, step.until_seq) == ("demo.1.0", -1)


def test_an_inquiry_tells_what_became_of_a_call() -> None:
    steps = (step for seed in range(200) for run in simulated(seed) for step in steps_in(outline(read(run.data))))
    told = {"happened: yes", "happened: no"}
    assert any(step.kind is StepKind.INQUIRY and step.status in told for step in steps)
    assert only_call(20, ToolReconciled("1.0", Happened.YES, "x")).answered == "x"


@pytest.mark.parametrize(
    ("arrival", "answer", "by", "words"),
    [
        (ApprovalGiven("1.0", "ann", ProposedCall("c", "t", "{}", b"")), Answer.APPROVED, "ann", "{}"),
        (ApprovalRefused("1.0", "ann", "too much"), Answer.REJECTED, "ann", "too much"),
        (OutcomeJudged("1.0", "ann", Happened.NO), Answer.ANSWERED, "ann", "happened: no"),
        (QuestionAnswered("1.0", "ann", "blue"), Answer.ANSWERED, "ann", "blue"),
    ],
)
def test_a_question_is_told_with_its_answer(arrival: Arrival, answer: Answer, by: str, words: str) -> None:
    ask = AskHuman("1.0", AskPurpose.QUESTION, Ending.CONFIRM_REQUIRED, 99, question="which?")
    asked, step = steps_in(
        told((10, PauseRequested("ann"), (ask,)), (50, arrival, (QuestionSettled("1.0", answer, by),)))
    )
    assert (step.status, step.by, step.answered, step.asked) == (answer.value, by, words, "which?")
    assert (step.duration_ms, asked.kind) == (40, StepKind.SIGNAL)


def test_a_question_nobody_answered_ends_when_it_is_settled() -> None:
    ask = AskHuman("1.0", AskPurpose.QUESTION, Ending.CONFIRM_REQUIRED, 99, question="which?")
    expired = (
        60,
        PauseRequested("ann"),
        (QuestionSettled("1.0", Answer.EXPIRED), QuestionSettled("9.9", Answer.EXPIRED)),
    )
    steps = list(steps_in(told((10, PauseRequested("ann"), (ask,)), expired)))
    assert [(step.status, step.duration_ms) for step in steps if step.kind is StepKind.QUESTION] == [("expired", 50)]


@pytest.mark.parametrize(
    ("arrival", "name", "words"),
    [
        (CancelRequested("ann", "enough"), "cancel", "enough"),
        (PauseRequested("ann"), "pause", ""),
        (ResumeRequested("ann"), "resume", ""),
        (FeedbackGiven("ann", "be brief"), "feedback", "be brief"),
        (RetryRequested("ann"), "retry", ""),
        (SessionNoted("ann", "tone", '"dry"'), "session entry", 'tone="dry"'),
        (SourcesAccepted("ann", (Source("look", "tools.py"),)), "changed code accepted", "look"),
    ],
)
def test_what_people_say_unasked_is_a_step_of_its_own(arrival: Arrival, name: str, words: str) -> None:
    step = only_step((10, arrival, ()))
    assert (step.kind, step.name, step.by, step.asked) == (StepKind.SIGNAL, name, "ann", words)


@pytest.mark.parametrize(
    ("ruling", "name"),
    [
        (UsageExceeded("1.0", ((2, 1),)), "more was used than was reserved"),
        (GroundingViolated(("paid",)), "claimed and never observed"),
        (AddendumNoted("1.0"), "after the ending"),
    ],
)
def test_a_ruling_that_people_should_know_of_is_a_note(ruling: Decision, name: str) -> None:
    _, note = steps_in(told((10, PauseRequested("ann"), (ruling,))))
    assert (note.kind, note.name) == (StepKind.NOTE, name)


def test_a_refusal_without_its_answer_has_no_arguments() -> None:
    refused = ToolCallRefused("call", "refund", "E", "no")
    _, step = steps_in(told((10, PauseRequested("ann"), (refused,))))
    assert (step.kind, step.asked, step.reason) == (StepKind.REFUSED, "", "no")


@pytest.mark.slow
def test_every_step_of_every_scenario_is_told_once_and_where_it_was_ordered() -> None:
    kinds = set()
    for seed in range(64):
        for run in simulated(seed):
            turns = read(run.data)
            tree = outline(turns)
            steps = list(steps_in(tree))
            kinds |= {step.kind for step in steps}
            ordered = [d for turn in turns for d in turn.decisions if type(d) in COMMANDS]
            calls = [command for command in ordered if isinstance(command, CallTool)]
            assert len(calls) == sum(step.kind is StepKind.TOOL for step in steps)
            assert all(step.until_seq >= step.seq or step.until_seq == -1 for step in steps)
            assert tree.turns == len(turns)
    # Where a run stands and how is told by its visits and its ending.
    assert kinds == set(StepKind) - {StepKind.NODE, StepKind.RUN}


def test_what_arrives_after_the_ending_makes_the_run_no_longer() -> None:
    ended = (30, PauseRequested("ann"), (RunEnded(Ending.USER_CANCEL, message="enough"),))
    late = (9_000, ContextFailed("7.7", "late"), (AddendumNoted("7.7"),))
    tree = told(ended, late)
    assert (tree.duration_ms, tree.ending, tree.reason) == (30, "USER_CANCEL", "enough")
    assert tree.visits[-1].duration_ms == 30


def test_only_what_the_last_turns_had_a_part_in_is_told_on_demand() -> None:
    tree = outline_of(reading_of(DEMO.turns), last=2)
    assert tree.left_out == len(DEMO.turns) - 2
    assert [step.name for step in steps_in(tree)] == ["refund", "scripted"]
    assert outline_of(reading_of(DEMO.turns), last=999).left_out == 0


def test_a_run_of_ten_thousand_turns_is_told_in_its_length() -> None:
    turns = [
        (seq, FeedbackGiven("ann", "on"), (NodeEntered("think", "settled"), CallModel(f"{seq}.1", "m", 1, 9, 9, ())))
        for seq in range(1, 10_000)
    ]
    began = process_time()
    assert sum(1 for _ in steps_in(told(*turns))) == 2 * len(turns)
    # A tenth of that is what it takes; a quadratic way would take minutes.
    assert process_time() - began < 10


# Plans and votes.


def notes(ran: Ran, kind: StepKind) -> list[str]:
    return [f"{step.name} {step.status}" for step in steps_in(ran.outline) if step.kind is kind]


def test_what_each_step_of_a_plan_gave_is_told_where_it_was_finished() -> None:
    ran = planned(
        PlanStep("find", "find"), PlanStep("order", "rerank"), PlanStep("look", "tool", {"at": "x"}, tool="look")
    )
    assert notes(ran, StepKind.STEP) == ["find gave 3 candidates", "order gave 3 candidates", "look gave a result"]
    visits = {visit.node: visit.steps for visit in ran.outline.visits}
    code, step = visits["order"]
    assert (code.kind, code.status, code.answered) == (StepKind.CODE, "returned", "")
    assert str(step.answered).startswith("doc 3: text 3 ")
    call, step = visits["look"]
    assert (call.answered, step.answered) == ("seen x", "")
    assert visits["look:arguments"][0].proposed == ("look",)


def test_a_step_that_only_looked_passes_on_what_it_was_fed() -> None:
    ran = planned(PlanStep("judge", "validate", input="fine"), PlanStep("again", "validate"), check=lambda text: None)
    assert notes(ran, StepKind.STEP) == ["judge passed on a text", "again passed on a text"]


def test_children_of_a_plan_carry_the_name_of_their_step_and_no_prompt() -> None:
    ran = planned(PlanStep("find", "find"), PlanStep("answer", "infer"))
    (child,) = [step for step in steps_in(ran.outline) if step.kind is StepKind.CHILD]
    assert (child.name, child.asked, child.status, child.answered) == (
        "step answer",
        "",
        "answered",
        "It is 72 m tall.",
    )
    assert child.run_id in ran.children


def test_replicas_are_numbered_and_one_that_failed_says_why() -> None:
    ran = voted(GOOD, FAILS, GOOD)
    children = [step for step in steps_in(ran.outline) if step.kind is StepKind.CHILD]
    assert [child.name for child in children] == ["replica 1", "replica 2", "replica 3"]
    assert (children[1].status, children[1].code) == ("failed", "INFERENCE_CONTEXT_EXCEEDED")
    assert "the script says so" in children[1].reason
    (vote,) = [step for step in steps_in(ran.outline) if step.kind is StepKind.VOTE]
    assert vote.name == "2 of 2 answers agree (100 %): replica 1 wins"


def test_a_vote_that_is_not_settled_is_undecided_and_one_without_a_winner_objects() -> None:
    early = voted(GOOD, BAD, GOOD, GOOD, n=5, early_stop=True)
    counted = [step.status for step in steps_in(early.outline) if step.kind is StepKind.CODE]
    assert counted == ["undecided", "undecided", "counted"]
    none = voted(GOOD, BAD, GOOD, voting="unanimity")
    (code,) = [step for step in steps_in(none.outline) if step.kind is StepKind.CODE]
    assert (code.status, "differs" in code.reason) == ("objected", True)


def test_a_child_takes_as_long_as_it_took_and_not_as_its_model_says() -> None:
    slow = TokenUsage(1, 0, 1, duration_ms=9_000)
    child = StartChild("0.5", "demo.0.5", "go", (), 0, 0, (), node="somewhere")
    ended = ChildEnded("0.5", Ending.SUCCESS, "done", usage=slow)
    _, step = steps_in(told((10, PauseRequested("ann"), (child,)), (20, ended, (CommandSettled("0.5"),))))
    assert (step.name, step.duration_ms) == ("somewhere", 10)


def test_figures_stand_beside_what_they_are_about() -> None:
    retrieve = Retrieve("0.5", 1)
    found = ContextFound("0.5", "text", relevance_ppm=800_000)
    _, step = steps_in(told((10, PauseRequested("ann"), (retrieve,)), (10, found, (CommandSettled("0.5"),))))
    assert (step.status, step.note) == ("found", "relevance 80 %")
    code = CallCode("0.6", "rules", "text", 1)
    heard = CodeReturned("0.6", problems=("too short",), checks_passed=3, checks_failed=1)
    _, step = steps_in(told((10, PauseRequested("ann"), (code,)), (10, heard, (CommandSettled("0.6"),))))
    assert (step.status, step.note, step.reason) == ("objected", "3 of 4 checks passed", "too short")
    failed = CodeFailed("0.6", "it broke", ErrorCode.TOOL_TIMEOUT)
    _, step = steps_in(told((10, PauseRequested("ann"), (code,)), (10, failed, (CommandSettled("0.6"),))))
    assert (step.status, step.code, step.reason) == ("failed", "TOOL_TIMEOUT", "it broke")


def test_a_piece_of_a_journal_that_names_steps_nobody_knows_is_told_all_the_same() -> None:
    strange = (StepFinished("gone", ValueKind.TEXT, "9.9", is_passed_on=True), VoteCounted("9.9", 1, 1, 1_000_000))
    steps = list(steps_in(told((10, PauseRequested("ann"), strange))))
    assert [step.name for step in steps[1:]] == ["gone", "1 of 1 replica agrees (100 %): one wins"]


def went(run: Run) -> tuple[LoopState, ...]:
    reading = Reading()
    return loop_states(pinned(run.state), [fact for turn in run.turns for fact in reading.take(turn)])


@pytest.mark.req("3.5")
def test_overlays_lie_over_a_state_that_returns() -> None:
    run = Run()
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.ResumeRequested("ada"))
    run.proposes(wants("write"))
    assert went(run) == (
        LoopState.EXPLORING,
        LoopState.EXECUTING,
        LoopState.PAUSED,
        LoopState.EXECUTING,
        LoopState.AWAITING_APPROVAL,
    )
    assert went(run)[-1] is loop_state(run.state)


def test_a_pause_lies_over_a_state_until_a_person_resumes_whatever_people_answer_meanwhile() -> None:
    run = Run()
    run.proposes(wants("write"))
    (question,) = questions(run.state)
    run.take(arrivals.PauseRequested("ada"))
    run.take(arrivals.ApprovalRefused(question.id, "ada", "no"))
    assert went(run)[-2:] == (LoopState.AWAITING_APPROVAL, LoopState.PAUSED)
    assert loop_state(run.state) is LoopState.PAUSED
    run.take(arrivals.ResumeRequested("ada"))
    assert went(run)[-1] is loop_state(run.state) is not LoopState.PAUSED


def test_a_run_cancelled_with_two_questions_open_went_from_waiting_to_cancelled_once() -> None:
    run = Run()
    run.proposes(wants("write", 1, call_id="a"), wants("write", 2, call_id="b"))
    assert len(list(questions(run.state))) == 2
    run.take(arrivals.CancelRequested("ada"))
    assert went(run)[-2:] == (LoopState.AWAITING_APPROVAL, LoopState.CANCELLED)
    assert went(run).count(LoopState.CANCELLED) == 1


def test_nothing_follows_the_loop_state_that_a_run_ended_in() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.take(arrivals.CancelRequested("ada"))
    facts = [fact for turn in run.turns for fact in Reading().take(turn)]
    assert went(run)[-1] is LoopState.CANCELLED
    assert loop_states(pinned(run.state), [*facts, *facts])[-1] is LoopState.CANCELLED


def test_the_role_of_a_run_names_its_work() -> None:
    run = Run(replace(manifest_of(), role=AgentRole.ARCHITECT))
    assert loop_state(run.state) is LoopState.ARCHITECTING
    assert went(run)[-1] is LoopState.ARCHITECTING


def test_what_a_graph_says_of_a_node_stands_whatever_the_role() -> None:
    said = Node("look", NodeKind.MODEL, lifecycle=LifecycleState.EXECUTE, loop_state=LoopState.PLANNING)
    assert {label_of(role, said) for role in AgentRole} == {LoopState.PLANNING}
