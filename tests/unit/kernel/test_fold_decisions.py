"""Folding decisions: what each ruling and each command leaves in the state."""

from typing import get_args

import pytest

from remit.core.failure import Ending, ErrorCode, InvariantBroken, Refusal
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Happened
from remit.core.journal.codec import hash_turn
from remit.core.journal.commands import (
    AskHuman,
    CallModel,
    CallTool,
    CancelCommand,
    ReconcileTool,
    SetTimer,
    StartChild,
)
from remit.core.journal.rulings import CallSettled, CheckFailed, Rung
from remit.core.journal.turn import KERNEL_VERSION, Decision, Turn
from remit.core.limits.budget import Budget, Dimension
from remit.core.record import replace
from remit.core.schema.json_schema import Violation
from remit.core.work.goal import Criterion, Goal
from remit.core.work.graph import JoinRule, Node, NodeKind
from remit.kernel.fold.apply import apply
from remit.kernel.fold.fold_decisions import APPLIED
from remit.kernel.results import notices
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants
from tests.unit.kernel.plans import PlanRun, code_step, plan_of, validate_step, vote_of

REACHES = [Rung]


def test_every_kind_of_decision_is_folded() -> None:
    assert set(APPLIED) == set(get_args(Decision))


def test_an_open_command_holds_what_it_reserved_and_its_settlement_charges_what_it_cost() -> None:
    run = Run()
    reserved = dict(run.open(CallModel)[0].reserved)
    assert run.reserved(Dimension.OUTPUT_TOKENS) == reserved[Dimension.OUTPUT_TOKENS] == 2048
    run.says("done")
    assert (run.reserved(Dimension.OUTPUT_TOKENS), run.used(Dimension.OUTPUT_TOKENS)) == (0, 4)


@pytest.mark.req("4.12")
def test_an_attempted_call_says_what_was_attempted_under_which_key_and_for_how_long() -> None:
    run = Run()
    call = wants("look", call_id="call_7")
    run.proposes(call)
    command = run.open(CallTool)[0]
    assert (command.tool, command.call_id, command.arguments_hash) == ("look", "call_7", call.arguments_hash)
    assert (command.key, command.timeout_ms, command.version) == (
        f"run:{command.id}",
        30_000,
        run.state.derived.tools["look"].version,
    )
    assert run.state.calls.made[command.id].rung is Rung.ATTEMPTED


@pytest.mark.req("4.14")
def test_a_committed_call_names_version_time_source_validator_and_the_turn_that_proves_it() -> None:
    run = Run()
    run.proposes(wants("look"))
    command = run.open(CallTool)[0]
    run.returns()
    trace = run.state.calls.made[command.id]
    assert (trace.rung, trace.tool, trace.verifier, trace.duration_ms) == (Rung.COMMITTED, "look", "schema", 7)
    proof = run.turns[trace.seq]
    assert isinstance(proof.arrival, arrivals.ToolReturned)
    assert (trace.evidence, trace.content) == (proof.arrival.evidence, proof.arrival.content)
    assert (proof.at_ms, command.version) == (run.now_ms, run.state.derived.tools["look"].version)


@pytest.mark.req("4.13")
def test_a_failure_is_an_observation_that_keeps_what_the_tool_said() -> None:
    run = Run()
    run.proposes(wants("look"))
    command = run.open(CallTool)[0]
    run.fails("look")
    trace = run.state.calls.made[command.id]
    assert (trace.rung, trace.code, trace.evidence) == (Rung.OBSERVED, ErrorCode.TOOL_EXECUTION_FAILED, b"evidence")
    assert run.messages()[-1] == "TOOL_EXECUTION_FAILED: it broke"
    assert (run.state.counts.calls_failed, run.state.counts.last_error) == (1, ErrorCode.TOOL_EXECUTION_FAILED)


def test_failures_in_a_row_are_counted_per_tool_until_it_succeeds() -> None:
    run = Run()
    run.proposes(wants("look"), wants("fetch"))
    run.fails("look")
    run.returns("fetch")
    assert run.state.counts.failures_in_a_row == {"look": (1, ErrorCode.TOOL_EXECUTION_FAILED, 1)}
    run.proposes(wants("look"))
    run.returns("look")
    assert run.state.counts.failures_in_a_row == {}


def test_a_committed_change_forgets_which_calls_were_repeated() -> None:
    run = Run()
    run.proposes(wants("look"), wants("write"))
    run.returns("look")
    run.approves()
    assert len(run.state.calls.repeats) == 2
    run.returns("write")
    assert run.state.calls.repeats == {}
    assert (run.state.effects.count, run.state.effects.uncommitted) == (1, {})


def test_an_effect_is_uncommitted_from_the_proposal_to_the_proof() -> None:
    run = Run()
    call = wants("write")
    key = (call.tool, call.arguments_hash)
    run.proposes(call)
    assert run.state.effects.uncommitted == {key: Ending.CONFIRM_REQUIRED}
    run.approves()
    assert run.state.effects.uncommitted == {key: Rung.ATTEMPTED}
    run.fails("write")
    assert run.state.effects.uncommitted == {key: ErrorCode.TOOL_EXECUTION_FAILED}


def test_a_refused_effect_stays_uncommitted_under_the_code_of_its_refusal() -> None:
    run = Run()
    call = wants("write")
    run.proposes(call)
    run.rejects()
    assert run.state.effects.uncommitted == {(call.tool, call.arguments_hash): Refusal.APPROVAL_REJECTED}


def test_a_refused_call_is_told_and_stays_intended() -> None:
    run = Run()
    run.proposes(wants("nothing"))
    assert [(trace.tool, trace.rung, trace.code) for trace in run.state.calls.refused] == [
        ("nothing", Rung.INTENDED, ErrorCode.TOOL_NOT_FOUND)
    ]
    assert run.messages()[-1] == "Not called. TOOL_NOT_FOUND: no tool named 'nothing' is registered for this run"


def test_several_malformed_calls_of_one_answer_count_as_one_attempt() -> None:
    run = Run()
    run.proposes(wants("nothing", 1), wants("nothing", 2))
    assert (run.state.counts.invalid_in_a_row, len(run.state.calls.refused)) == (1, 2)


def test_a_settled_call_ends_a_row_of_malformed_ones() -> None:
    run = Run()
    run.proposes(wants("nothing"))
    run.proposes(wants("look"))
    run.returns()
    assert run.state.counts.invalid_in_a_row == 0


def test_denials_and_blocked_repeats_are_counted() -> None:
    run = Run()
    run.proposes(wants("secret"), *[wants("look")] * 3)
    assert (run.state.counts.denials, run.state.counts.repeats_blocked) == (1, 1)


def test_a_settled_question_takes_its_timer_along() -> None:
    run = Run()
    run.proposes(wants("write"))
    assert len(run.open(SetTimer)) == 2
    run.rejects()
    assert [timer.purpose for timer in run.open(SetTimer)] == ["deadline"]
    assert (run.state.people.asking, run.used(Dimension.HUMAN_REVIEWS)) == (0, 1)


def test_an_approval_widens_the_caps_by_what_its_packet_releases() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    assert (run.state.spending.caps[Dimension.SIDE_EFFECTS], run.reserved(Dimension.SIDE_EFFECTS)) == (1, 1)


@pytest.mark.parametrize(("happened", "text"), [(Happened.YES, notices.HAPPENED), (Happened.NO, notices.NOT_HAPPENED)])
def test_the_model_is_told_what_a_person_said_became_of_a_call(happened: Happened, text: str) -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    run.loses()
    run.judges(happened)
    assert run.messages()[-1] == text


@pytest.mark.parametrize(("happened", "text"), [(Happened.YES, '{"ok": true}'), (Happened.NO, notices.NOT_HAPPENED)])
def test_the_model_is_told_what_a_tool_said_became_of_a_call(happened: Happened, text: str) -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    command = run.open(CallTool)[0]
    run.loses()
    run.take(arrivals.ToolReconciled(run.open(ReconcileTool)[0].id, happened, '{"ok": true}', b"evidence", 28))
    assert run.messages()[-1] == text
    assert run.state.calls.made[command.id].content == ('{"ok": true}' if happened is Happened.YES else "")


def test_a_doubt_is_remembered_with_its_reason() -> None:
    run = Run()
    run.proposes(wants("write"))
    run.approves()
    command = run.open(CallTool)[0]
    run.fails("write", ErrorCode.TOOL_TIMEOUT)
    assert run.state.commands.doubted == {command.id: ErrorCode.TOOL_TIMEOUT}
    assert run.state.calls.made[command.id].code == run.state.counts.last_error == ErrorCode.TOOL_TIMEOUT


def test_an_answer_that_did_not_pass_is_sent_back_with_the_reasons() -> None:
    run = Run()
    run.says("{}", violations=(Violation("/n", "required", "is missing"),))
    assert run.messages()[-1] == "The answer was not accepted:\n- output /n: is missing\nAnswer again."
    assert run.state.counts.repairs == 1


def test_entering_children_forgets_the_failures_of_the_ones_before() -> None:
    first, second = (
        Node(name, NodeKind.MAP, prompt="go", children=2, join=JoinRule.ANY) for name in ("first", "second")
    )
    run = Run(manifest_of(graph=in_line(first, second)))
    run.heard_from_child(Ending.IMPOSSIBLE)
    assert run.state.children.failed == 1
    run.heard_from_child()
    assert run.state.children.failed == 0


def test_repeated_ids_in_one_answer_do_not_confuse_what_was_delegated() -> None:
    run = Run()
    delegated = wants("ask_child", 2)
    run.proposes(wants("look", 1), delegated)
    assert run.state.calls.repeats[delegated.tool, delegated.arguments_hash] == 1
    assert run.state.calls.made[run.open(StartChild)[0].id].arguments_hash == delegated.arguments_hash


def test_what_one_tool_returned_is_never_heard_as_the_outcome_of_another() -> None:
    run = Run()
    run.proposes(wants("look"), wants("fetch"))
    late = arrivals.ToolReturned(run.open(CallTool)[0].id, '{"ok": true}', b"evidence", 28)
    run.take(late, after_ms=600_000)
    assert run.state.end.ending is Ending.TIMEOUT
    assert [trace.content for trace in run.state.calls.made.values()] == ['{"ok": true}', ""]
    assert run.messages().count('{"ok": true}') == 1


@pytest.mark.req("4.50")
def test_an_ending_closes_everything_and_releases_what_was_reserved() -> None:
    run = Run()
    run.proposes(wants("look"), wants("pay"), wants("ask_child"))
    run.take(arrivals.CancelRequested("ada"))
    assert run.state.commands.open == {}
    assert run.state.reserved == [0] * len(run.state.reserved)
    assert (run.state.people.asking, run.state.commands.blocking, run.state.place.paused) == (0, 0, False)
    assert all(isinstance(command, CancelCommand) for command in run.state.commands.parting)
    assert run.state.end.seq == run.state.seq


def test_a_model_call_that_shows_another_number_of_messages_is_a_bug() -> None:
    run = Run()
    turn = run.turns[0]
    decisions = tuple(
        replace(decision, messages_count=7) if isinstance(decision, CallModel) else decision
        for decision in turn.decisions
    )
    broken = replace(turn, decisions=decisions)
    with pytest.raises(InvariantBroken, match=r"CONTEXT_MISCOUNTED: command 0\.4 shows 7 messages and the run has 1"):
        apply(type(run.state)(), broken, hash_turn(b""))


def test_a_retry_ordered_by_a_person_named_like_a_command_settles_no_doubt() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    run.take(arrivals.CancelRequested("ada"))
    command = run.open(CallTool)[0]
    run.take(arrivals.RetryRequested(command.id))
    assert list(run.state.commands.doubted) == [command.id]


def test_a_resumed_run_has_nothing_parked() -> None:
    run = Run(manifest_of(budget=Budget(retries=1)))
    run.take(arrivals.PauseRequested("ada"))
    run.says("done")
    run.take(arrivals.ResumeRequested("ada"))
    assert (run.state.place.parked, run.state.place.paused) == (None, False)


def test_a_question_of_the_graph_holds_no_effect() -> None:
    run = Run(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt="Where?"))))
    assert run.state.effects.uncommitted == {}
    assert run.open(AskHuman)[0].packet is None


def test_an_old_turn_is_folded_as_it_stands() -> None:
    """Rules may change; what a turn says was decided by the rules of its day."""
    run = Run()
    turn = Turn(1, run.now_ms, run.state.head, KERNEL_VERSION, arrivals.FeedbackGiven("ada", "so be it"), ())
    apply(run.state, turn, b"head")
    assert (run.state.seq, run.state.head, len(run.state.talk.pending)) == (1, b"head", 1)


def test_a_call_that_other_rules_settled_without_an_outcome_is_settled_without_a_word() -> None:
    run = Run()
    run.proposes(wants("look"))
    command = run.open(CallTool)[0]
    settled = CallSettled(command.id, Rung.OBSERVED, command.reserved)
    turn = Turn(2, run.now_ms, run.state.head, KERNEL_VERSION, arrivals.FeedbackGiven("ada", "so be it"), (settled,))
    before = list(run.state.talk.context)
    apply(run.state, turn, b"head")
    assert (run.state.calls.made[command.id].rung, run.state.talk.context) == (Rung.OBSERVED, before)


def test_a_finished_step_leaves_its_output_and_the_answer_so_far() -> None:
    run = PlanRun(manifest_of(graph=plan_of(code_step("a"), code_step("b", "a"))))
    run.gives("of a")
    assert (run.state.result.outputs["a"].text, run.state.result.answer, run.state.result.violations) == (
        "of a",
        "of a",
        (),
    )


def test_a_step_that_handed_on_what_it_was_fed_has_that_for_its_output() -> None:
    run = PlanRun(manifest_of(graph=plan_of(code_step("a"), validate_step("v", "a"))))
    run.gives("of a")
    run.validates()
    assert run.state.result.outputs["v"].text == "of a"


def test_a_vote_leaves_the_winners_words_and_how_sure_they_are() -> None:
    run = PlanRun(vote_of(1))
    run.answers("a")
    run.elects(0, 1, 900_000)
    assert (run.state.result.answer, run.state.result.confidence_ppm) == ("a", 900_000)


def test_what_was_sent_back_is_remembered_until_the_run_has_gone_there() -> None:
    run = Run(manifest_of(goal=Goal("be kind", (Criterion("kind", validator="kind"),))))
    run.says("no")
    run.take(arrivals.PauseRequested("ada"))
    run.validates("rude")
    assert run.last(CheckFailed).problems == ("rude",)
    assert run.state.result.sent_back == ("rude",)
    run.take(arrivals.ResumeRequested("ada"))
    assert not run.state.result.sent_back
