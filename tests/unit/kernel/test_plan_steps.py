"""Steps of a plan: what each is fed, what it leaves, and when the plan fails at it."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Happened
from remit.core.journal.commands import AskHuman, CallCode, CallTool, ReconcileTool, StartChild, TimerPurpose
from remit.core.journal.rulings import CheckFailed, OutcomeParked, StepFinished
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.tools import Effect, ToolChoice, ToolChoiceMode
from remit.core.record import replace
from remit.core.schema.json_schema import Violation
from remit.core.work.graph import Edge, Node, NodeKind, NodeOutcome, StepInput
from remit.core.work.values import Output, ValueKind
from remit.kernel.authority.authorize import IDENTICAL_CALLS_MAX
from remit.kernel.results import notices
from remit.testing.runs import fold_journal
from tests.unit.kernel.builders import QUESTION, manifest_of, wants
from tests.unit.kernel.plans import (
    GIVEN,
    PlanRun,
    child_step,
    code_step,
    plan_of,
    retried,
    tool_step,
    validate_step,
)

MISMATCH = ErrorCode.ORCHESTRATION_STEP_MISMATCH


def started(*nodes: Node, edges: tuple[Edge, ...] = (), budget: Budget = Budget()) -> PlanRun:
    return PlanRun(manifest_of(graph=plan_of(*nodes, edges=edges), budget=budget))


def calling(tool: str, *, edges: tuple[Edge, ...] = (), visits_max: int = 1, budget: Budget = Budget()) -> PlanRun:
    """A plan that stands at its tool step, whose call was just proposed."""
    run = started(*tool_step("act", visits_max=visits_max), edges=edges, budget=budget)
    run.calls(wants(tool))
    return run


class TestFeeding:
    def test_a_step_works_on_the_value_that_the_plan_gives_it(self) -> None:
        run = started(code_step("a"))
        (command,) = run.open(CallCode)
        assert (command.name, command.input, command.kind) == ("step:custom", GIVEN.value, "text")

    def test_a_step_works_on_the_output_of_the_step_it_names(self) -> None:
        run = started(code_step("a"), code_step("b"), code_step("c", "a"))
        run.gives("of a")
        run.gives("of b")
        assert run.open(CallCode)[0].input == "of a"

    def test_a_step_finished_in_this_very_turn_feeds_the_next(self) -> None:
        run = started(code_step("a"), code_step("b", "a"))
        run.gives('{"n":1}', ValueKind.OBJECT)
        (command,) = run.open(CallCode)
        assert (command.input, command.kind) == ('{"n":1}', "object")

    def test_a_steps_code_is_told_what_the_step_takes(self) -> None:
        run = started(code_step("a"), code_step("b", "a", takes="json"))
        run.gives("[1]", ValueKind.JSON)
        assert run.open(CallCode)[0].takes == "json"

    def test_a_value_that_the_step_cannot_work_on_ends_the_plan_before_anything_is_ordered(self) -> None:
        run = started(code_step("a"), code_step("b", "a", takes="object"))
        run.gives("no object")
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, MISMATCH)
        assert run.state.end.message == "step b takes object and step a gives it text"
        assert run.open(CallCode) == []

    def test_a_child_is_not_started_on_a_value_it_cannot_work_on(self) -> None:
        picky = replace(child_step("b", "a"), feed=StepInput("object", "text", source="a"))
        run = started(code_step("a"), picky)
        run.gives("words")
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, MISMATCH)
        assert run.all(StartChild) == []

    def test_a_value_of_the_plan_itself_can_be_the_wrong_one(self) -> None:
        run = started(code_step("a", takes="candidates"))
        assert run.state.end.message == "step a takes candidates and the plan gives it text"

    def test_a_step_that_is_fed_nothing_at_all_does_not_run(self) -> None:
        run = started(replace(code_step("a"), feed=StepInput()))
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, MISMATCH)
        assert run.state.end.message == "step a takes any kind of value and the plan gives it none"

    def test_a_source_that_gave_nothing_is_a_mismatch(self) -> None:
        skipped = (Edge("a", "c", NodeOutcome.FAILED),)
        run = started(code_step("a"), code_step("b"), code_step("c", "b"), edges=skipped)
        run.raises()
        assert run.state.end.message == "step b gave nothing that step c could work on"
        assert run.state.end.error is MISMATCH

    @pytest.mark.parametrize("kind", [NodeKind.RETRIEVE, NodeKind.RERANK, NodeKind.VALIDATE])
    def test_every_kind_of_step_with_code_runs_it_on_what_it_is_fed(self, kind: NodeKind) -> None:
        run = started(replace(code_step("a"), kind=kind, timeout_ms=77))
        (command,) = run.open(CallCode)
        assert (command.input, command.kind, command.timeout_ms) == (GIVEN.value, "text", 77)


class TestFinishing:
    def test_an_output_is_written_once_with_the_outcome_it_came_of(self) -> None:
        run = started(code_step("a"), code_step("b", "a"))
        command = run.open(CallCode)[0]
        run.gives("of a")
        assert run.all(StepFinished) == [StepFinished("a", ValueKind.TEXT, command.id)]
        assert run.state.result.outputs == {"a": Output(ValueKind.TEXT, "of a", command.id)}

    def test_the_last_output_is_the_answer(self) -> None:
        run = started(code_step("a"), code_step("b", "a"))
        run.gives("of a")
        assert run.state.result.answer == "of a"
        run.gives("of b")
        assert (run.state.end.ending, run.state.result.answer) == (Ending.SUCCESS, "of b")

    def test_a_retrieve_step_finds_what_its_code_returns(self) -> None:
        run = started(replace(code_step("a"), kind=NodeKind.RETRIEVE))
        run.gives("[]", ValueKind.CANDIDATES)
        assert run.state.result.outputs["a"].kind is ValueKind.CANDIDATES

    def test_a_value_of_a_kind_that_nobody_knows_ends_the_plan(self) -> None:
        run = started(code_step("a"))
        run.gives("what is this", "riddle")
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, MISMATCH)
        assert "gave a value of kind 'riddle'" in run.state.end.message

    def test_a_childs_answer_is_the_output_of_its_step(self) -> None:
        run = started(child_step("a"))
        command = run.open(StartChild)[0]
        assert (command.node, command.kind, command.prompt) == ("a", "text", GIVEN.value)
        run.answers("found it")
        assert run.state.result.outputs == {"a": Output(ValueKind.TEXT, "found it", command.id)}

    def test_code_that_fails_fails_the_plan_under_its_own_code(self) -> None:
        run = started(code_step("a"))
        run.raises(ErrorCode.TOOL_TIMEOUT)
        assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, ErrorCode.TOOL_TIMEOUT)
        assert run.state.result.outputs == {}

    def test_a_step_that_failed_is_tried_again_as_often_as_its_edge_says(self) -> None:
        step = code_step("a", visits_max=2)
        run = started(step, edges=(retried(step),))
        run.raises()
        run.gives("at last")
        assert (run.path().count("a"), run.state.result.answer) == (2, "at last")

    def test_a_step_that_fails_once_more_than_that_fails_the_plan(self) -> None:
        step = code_step("a", visits_max=2)
        run = started(step, edges=(retried(step),))
        run.raises()
        run.raises()
        assert run.state.end.ending is Ending.UNAVAILABLE_DEP

    def test_what_an_earlier_step_gave_survives_a_later_failure(self) -> None:
        run = started(code_step("a"), code_step("b", "a"))
        run.gives("of a")
        run.raises()
        assert list(run.state.result.outputs) == ["a"]
        assert run.state == fold_journal(run.journal)


class TestValidating:
    def test_a_validate_step_hands_on_what_it_looked_at(self) -> None:
        run = started(code_step("a"), validate_step("v", "a"), code_step("b", "v"))
        run.gives("[1]", ValueKind.JSON)
        command = run.open(CallCode)[0]
        run.validates()
        assert run.last(StepFinished) == StepFinished("v", ValueKind.JSON, command.id, is_passed_on=True)
        assert run.state.result.outputs["v"] == Output(ValueKind.JSON, "[1]", command.id)
        assert run.open(CallCode)[0].input == "[1]"

    def test_a_validate_step_may_look_at_a_value_of_the_plan(self) -> None:
        alone = Node("v", NodeKind.VALIDATE, code="step:validate", visits_max=1, feed=GIVEN)
        run = started(alone)
        run.validates()
        assert (run.state.end.ending, run.state.result.answer) == (Ending.SUCCESS, GIVEN.value)

    def test_what_it_objects_to_goes_back_to_its_maker(self) -> None:
        run = self.repairing()
        run.answers("bad")
        run.validates("too short", "too rude")
        assert run.last(CheckFailed).problems == ("too short", "too rude")
        (again,) = run.open(StartChild)
        assert (again.node, again.problems) == ("a", ("too short", "too rude"))
        run.answers("good")
        run.validates()
        assert (run.state.end.ending, run.state.result.answer, run.state.counts.repairs) == (Ending.SUCCESS, "good", 1)

    def test_the_first_try_is_told_of_no_problems(self) -> None:
        assert self.repairing().open(StartChild)[0].problems == ()

    def test_a_pause_before_the_repair_does_not_forget_what_was_wrong(self) -> None:
        run = self.repairing()
        run.answers("bad")
        run.pauses()
        run.validates("too short")
        assert run.now(OutcomeParked)[0].outcome == NodeOutcome.REPAIRABLE
        run.resumes()
        assert run.open(StartChild)[0].problems == ("too short",)
        run.answers("good")
        run.validates()
        assert (run.state.end.ending, run.state.result.answer) == (Ending.SUCCESS, "good")
        assert run.state.result.sent_back == ()

    def test_when_its_visits_are_used_up_the_plan_fails(self) -> None:
        run = self.repairing()
        for _ in range(2):
            run.answers("bad")
            run.validates("too short")
        assert (run.state.end.ending, run.state.end.error) == (Ending.VALIDATION_FAIL, ErrorCode.VALIDATION_RULE_FAILED)
        assert run.state.end.message == "step v: too short"

    def test_without_a_bound_of_its_own_the_maker_sets_it(self) -> None:
        maker, judge = child_step("a", visits_max=2), validate_step("v", "a", visits_max=0)
        run = started(maker, judge, edges=(Edge("v", "a", NodeOutcome.REPAIRABLE),))
        for _ in range(2):
            run.answers("bad")
            run.validates("too short")
            assert run.state.counts.last_error == ErrorCode.VALIDATION_RULE_FAILED
        assert (run.state.end.ending, run.state.end.error) == (
            Ending.BUDGET_EXHAUSTED,
            ErrorCode.ORCHESTRATION_ITERATION_LIMIT,
        )

    def test_an_objection_never_leads_on_where_no_edge_leads_back(self) -> None:
        run = started(code_step("a"), validate_step("v", "a", visits_max=3), code_step("b"))
        run.gives("bad")
        run.validates("too short")
        assert (run.state.end.ending, run.state.end.message) == (Ending.VALIDATION_FAIL, "step v: too short")
        assert "b" not in run.path()

    def test_an_objection_that_is_final_is_not_sent_back(self) -> None:
        run = self.repairing()
        run.answers("bad")
        run.take(arrivals.CodeReturned(run.open(CallCode)[0].id, problems=("never",), is_final=True))
        assert (run.state.end.ending, run.state.end.message) == (Ending.VALIDATION_FAIL, "step v: never")

    def test_a_validator_that_fails_has_objected(self) -> None:
        run = self.repairing()
        run.answers("good")
        run.raises()
        assert run.open(StartChild)[0].problems == ("it broke",)

    def repairing(self) -> PlanRun:
        maker, judge = child_step("a", visits_max=2), validate_step("v", "a", visits_max=2)
        return started(maker, judge, edges=(Edge("v", "a", NodeOutcome.REPAIRABLE),))


class TestCalling:
    def test_a_committed_call_is_the_result_of_its_step(self) -> None:
        run = calling("look")
        command = run.open(CallTool)[0]
        run.returns("look", '{"ok": true}')
        assert run.state.result.outputs == {"act": Output(ValueKind.RESULT, '{"ok": true}', command.id)}
        assert (run.state.end.ending, run.state.result.answer) == (Ending.SUCCESS, '{"ok": true}')

    def test_what_proposes_the_call_is_no_step_of_its_own(self) -> None:
        assert calling("look").all(StepFinished) == []

    def test_a_call_proposed_while_paused_is_made_after_the_resume(self) -> None:
        run = started(*tool_step("act"))
        run.pauses()
        run.calls(wants("look"))
        assert run.open(CallTool) == []
        run.resumes()
        assert len(run.open(CallTool)) == 1

    @pytest.mark.parametrize("code", [ErrorCode.TOOL_EXECUTION_FAILED, ErrorCode.TOOL_UNAVAILABLE])
    def test_a_call_that_failed_gives_nothing(self, code: ErrorCode) -> None:
        run = calling("look")
        run.fails("look", code)
        assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, code)
        assert run.state.end.message == f"step act: its call ended as {code}"
        assert run.state.result.outputs == {}

    def test_a_result_that_breaks_its_promise_gives_nothing(self) -> None:
        run = calling("look")
        run.returns("look", "nonsense", violations=(Violation("", "type", "no object"),))
        assert (run.state.end.ending, run.state.end.error) == (
            Ending.UNAVAILABLE_DEP,
            ErrorCode.CONSTRAINT_SCHEMA_INVALID,
        )

    def test_a_tool_step_that_is_tried_again_too_often_runs_into_the_repeat_breaker(self) -> None:
        call = tool_step("act", visits_max=4)[1]
        run = calling("look", edges=(retried(call, at="act:arguments"),), visits_max=4)
        for _ in range(2):
            run.fails("look")
            run.calls(wants("look"))
        run.calls(wants("look"))
        assert (run.state.end.ending, run.path().count("act")) == (Ending.REPEATED_FAILURE, 4)
        assert len(run.all(CallTool)) == IDENTICAL_CALLS_MAX

    def test_a_step_that_was_given_no_call_cannot_go_on(self) -> None:
        run = started(*tool_step("act"))
        run.gives('{"n":1}', ValueKind.OBJECT)
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, MISMATCH)
        assert run.state.end.message == "step act was given no call to make"

    def test_a_call_with_arguments_that_break_the_schema_is_not_made(self) -> None:
        run = started(*tool_step("act"))
        run.calls(wants("look", violations=(Violation("/n", "type", "no number"),)))
        assert (run.state.end.ending, run.state.end.error) == (
            Ending.VALIDATION_FAIL,
            ErrorCode.CONSTRAINT_SCHEMA_INVALID,
        )
        assert run.all(CallTool) == []

    def test_a_call_that_is_not_permitted_ends_the_plan_as_the_refusal_says(self) -> None:
        run = calling("secret")
        assert run.state.end.ending is Ending.PERMISSION_DENIED
        assert run.state.end.message == "step act: tool secret needs permission vault.open, which test lacks"

    def test_a_call_that_no_review_is_left_for_ends_the_plan(self) -> None:
        run = calling("write", budget=Budget(human_reviews=0))
        assert run.state.end.ending is Ending.BUDGET_EXHAUSTED

    def test_a_delegating_tool_gives_what_its_child_answers(self) -> None:
        run = calling("ask_child")
        command = run.open(StartChild)[0]
        run.answers("the child says so")
        assert run.state.result.outputs == {"act": Output(ValueKind.RESULT, "the child says so", command.id)}

    def test_a_delegating_tool_fails_as_its_child_did(self) -> None:
        run = calling("ask_child")
        run.ends(Ending.IMPOSSIBLE, error=ErrorCode.INFERENCE_CONTEXT_EXCEEDED, message="too long")
        assert (run.state.end.ending, run.state.end.error) == (Ending.IMPOSSIBLE, ErrorCode.INFERENCE_CONTEXT_EXCEEDED)


class TestApproving:
    def test_an_approved_call_is_made_and_finishes_its_step(self) -> None:
        run = calling("write")
        assert len(run.open(AskHuman)) == 1
        run.approves()
        run.returns("write")
        assert (run.state.end.ending, run.state.result.outputs["act"].kind) == (Ending.SUCCESS, ValueKind.RESULT)

    def test_arguments_that_a_person_changed_are_those_that_are_used(self) -> None:
        run = calling("write")
        run.approves(modified=wants("write", 5))
        assert run.open(CallTool)[0].arguments == '{"n":5}'
        run.returns("write")
        assert run.state.end.ending is Ending.SUCCESS

    def test_a_rejected_call_ends_the_plan(self) -> None:
        run = calling("write")
        run.rejects("not today")
        assert run.state.end.ending is Ending.PERMISSION_DENIED
        assert run.state.end.message == "step act: rejected by ada: not today"

    def test_silence_ends_the_plan(self) -> None:
        run = calling("write")
        run.rings(TimerPurpose.APPROVAL)
        assert run.state.end.ending is Ending.CONFIRM_REQUIRED
        assert run.state.end.message == "step act: nobody approved it in time"

    def test_an_approval_that_no_longer_passes_the_firm_checks_is_a_refusal(self) -> None:
        run = calling("write", budget=Budget(tool_calls=1))
        # What was left when the person was asked is gone when they answer.
        run.state.spending.left[2] = 0
        run.approves()
        assert run.state.end.ending is Ending.BUDGET_EXHAUSTED
        assert run.all(CallTool) == []

    def test_a_tool_that_needs_no_person_is_called_at_once(self) -> None:
        trusting = Boundary(name="trusting", approval_effects=(Effect.EXTERNAL,))
        run = PlanRun(manifest_of(graph=plan_of(*tool_step("act")), boundary=trusting))
        run.calls(wants("fetch"))
        assert len(run.open(CallTool)) == 1

    def test_a_request_without_tools_has_none_for_its_steps(self) -> None:
        silent = replace(QUESTION, tool_choice=ToolChoice(ToolChoiceMode.NONE))
        run = PlanRun(manifest_of(graph=plan_of(*tool_step("act")), request=silent))
        run.calls(wants("look"))
        assert run.state.end.ending is Ending.PERMISSION_DENIED


class TestDoubting:
    def test_a_tool_that_knows_what_became_of_its_call_finishes_the_step(self) -> None:
        run = self.doubted("pay")
        run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, Happened.YES, '{"ok":true}', b"seen", 30))
        assert (run.state.end.ending, run.state.result.outputs["act"].text) == (Ending.SUCCESS, '{"ok":true}')

    def test_a_call_known_not_to_have_happened_fails_the_step(self) -> None:
        run = self.doubted("pay")
        run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, Happened.NO))
        assert (run.state.end.ending, run.state.end.error) == (Ending.UNAVAILABLE_DEP, ErrorCode.TOOL_EXECUTION_FAILED)

    def test_a_person_knows_that_it_happened_and_not_what_came_of_it(self) -> None:
        run = self.doubted("write")
        run.judges(Happened.YES)
        assert (run.state.end.ending, run.state.result.outputs["act"].text) == (Ending.SUCCESS, notices.HAPPENED)
        assert run.state == fold_journal(run.journal)

    def test_a_person_who_says_no_fails_the_step(self) -> None:
        run = self.doubted("write")
        run.judges(Happened.NO)
        assert (run.state.end.ending, run.state.result.outputs) == (Ending.UNAVAILABLE_DEP, {})

    def test_a_late_outcome_finishes_the_step_that_was_in_doubt(self) -> None:
        run = self.doubted("write")
        run.returns("write", '{"ok": "late"}')
        assert (run.state.end.ending, run.state.result.outputs["act"].text) == (Ending.SUCCESS, '{"ok": "late"}')

    def test_a_step_in_doubt_is_not_tried_again(self) -> None:
        retry = retried(tool_step("act", visits_max=2)[1], at="act:arguments")
        run = self.doubted("write", edges=(retry,), visits_max=2)
        assert (run.path().count("act"), len(run.all(CallTool))) == (1, 1)

    def doubted(self, tool: str, *, edges: tuple[Edge, ...] = (), visits_max: int = 1) -> PlanRun:
        run = calling(tool, edges=edges, visits_max=visits_max)
        run.approves()
        run.loses(tool)
        return run


class TestStopping:
    @pytest.mark.parametrize("step", [code_step("a"), child_step("a")])
    def test_a_cancel_ends_the_plan_wherever_it_stands(self, step: Node) -> None:
        run = started(step)
        run.take(arrivals.CancelRequested("ada"))
        assert (run.state.end.ending, run.state.result.outputs) == (Ending.USER_CANCEL, {})
        assert run.state.commands.open == {}

    def test_a_value_that_comes_while_paused_is_kept_and_the_next_step_waits(self) -> None:
        run = started(code_step("a"), code_step("b", "a"))
        run.pauses()
        run.gives("of a")
        assert (list(run.state.result.outputs), run.open(CallCode)) == (["a"], [])
        run.resumes()
        assert run.open(CallCode)[0].input == "of a"
        assert len(run.all(StepFinished)) == 1

    def test_a_failure_that_comes_while_paused_is_tried_again_after_the_resume(self) -> None:
        step = code_step("a", visits_max=2)
        run = started(step, edges=(retried(step),))
        run.pauses()
        run.raises()
        run.resumes()
        assert len(run.open(CallCode)) == 1

    def test_an_output_that_comes_after_the_deadline_is_kept_and_nothing_more_is_ordered(self) -> None:
        run = started(code_step("a"), child_step("b", "a"), budget=Budget(wall_clock_ms=1000))
        run.take(arrivals.CodeReturned(run.open(CallCode)[0].id, "late", kind="text"), after_ms=2000)
        assert (run.state.end.ending, run.all(StartChild)) == (Ending.TIMEOUT, [])
        assert run.state.result.outputs["a"].text == "late"
