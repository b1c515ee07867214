"""Folding a turn: what an arrival leaves in the state by itself."""

import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.commands import CallModel, Retrieve, StartChild, TimerPurpose
from remit.core.limits.budget import Budget, Dimension
from remit.core.run.messages import Role
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import Node, NodeKind
from remit.kernel.decide import RULES
from remit.kernel.fold.apply import HEARD, opened_state
from remit.kernel.state import CONTEXT_FAILED
from remit.testing.runs import fold_journal
from tests.unit.kernel.builders import (
    BEGINS_AT_MS,
    MESSAGES_TOKENS,
    OFFER_TOKENS,
    Run,
    in_line,
    manifest_of,
    wants,
    with_deadline,
)


def test_only_kinds_of_arrivals_are_heard() -> None:
    assert set(HEARD) <= set(RULES)


def test_a_started_run_has_its_caps_its_messages_and_nothing_spent() -> None:
    manifest = manifest_of(budget=Budget(tool_calls=3))
    state = opened_state(arrivals.RunStarted(manifest, 11, 22), BEGINS_AT_MS)
    assert state.spending.caps[Dimension.TOOL_CALLS] == 3
    assert state.used == state.reserved == [0] * len(state.spending.caps)
    assert state.talk.context == list(manifest.request.messages)
    assert (state.talk.context_tokens, state.talk.offer_tokens) == (11, 22)
    assert (state.place.node, state.seq) == (-1, -1)


@pytest.mark.parametrize(("from_above", "deadline"), [(0, 600_000), (5_000, 5_000), (900_000, 600_000)])
def test_the_earlier_of_its_own_deadline_and_the_one_from_above_counts(from_above: int, deadline: int) -> None:
    manifest = with_deadline(manifest_of(), BEGINS_AT_MS + from_above if from_above else 0)
    assert opened_state(arrivals.RunStarted(manifest, 0), BEGINS_AT_MS).clock.deadline_at_ms == BEGINS_AT_MS + deadline


def test_folding_the_turns_gives_the_live_state() -> None:
    run = Run()
    run.proposes(wants("look"), wants("pay"))
    run.returns()
    run.approves()
    run.fails("pay")
    run.says("sorry")
    assert fold_journal(run.journal) == run.state


def test_an_answer_leaves_its_words_its_proposals_and_its_usage() -> None:
    run = Run()
    call = wants("look")
    usage = TokenUsage(prompt_tokens=5, reasoning_tokens=2, output_tokens=3)
    answer = arrivals.ModelAnswered(run.open(CallModel)[0].id, "let me see", calls=(call,), usage=usage, tokens_bound=9)
    run.take(answer)
    state = run.state
    assert state.talk.context[-1] is answer
    assert (state.result.answer, state.calls.proposed, state.counts.iterations) == ("let me see", (call,), 1)
    assert (state.talk.prompt_tokens, state.talk.reasoning_tokens, state.talk.output_tokens) == (5, 2, 3)
    assert state.talk.context_tokens == MESSAGES_TOKENS + 9


def test_an_answer_of_calls_alone_keeps_the_words_before_it() -> None:
    run = Run()
    run.proposes(wants("look"), text="let me see")
    run.returns()
    run.proposes(wants("look", 2))
    assert run.state.result.answer == "let me see"


def test_a_model_that_said_nothing_is_not_shown_its_own_silence() -> None:
    run = Run()
    run.says("")
    run.rings(TimerPurpose.RETRY)
    assert run.messages() == ["please"]


def test_a_failed_model_call_counts_what_it_used() -> None:
    run = Run()
    usage = TokenUsage(prompt_tokens=5, reasoning_tokens=2, output_tokens=3)
    code = ErrorCode.INFERENCE_ENGINE_ERROR
    run.take(arrivals.ModelFailed(run.open(CallModel)[0].id, code, usage=usage))
    assert (run.state.talk.prompt_tokens, run.state.talk.reasoning_tokens, run.state.talk.output_tokens) == (5, 2, 3)
    assert run.state.counts.last_error == code


def test_found_context_is_kept_beside_the_history() -> None:
    run = Run(manifest_of(retrieves_context=True))
    run.take(arrivals.ContextFound(run.open(Retrieve)[0].id, "evidence", 15))
    assert run.state.talk.ephemeral == "evidence"
    assert run.messages() == ["please"]
    assert run.open(CallModel)[0].reserved[0] == (0, MESSAGES_TOKENS + OFFER_TOKENS + 15)


def test_context_that_was_not_found_is_remembered_as_an_error() -> None:
    run = Run(manifest_of(retrieves_context=True))
    run.take(arrivals.ContextFailed(run.open(Retrieve)[0].id, "no index"))
    assert run.state.counts.last_error == CONTEXT_FAILED
    assert run.path() == ["prepare", "think"]


def test_feedback_waits_for_the_next_model_call() -> None:
    run = Run()
    run.take(arrivals.FeedbackGiven("ada", "be brief", 12))
    assert run.messages() == ["please"]
    run.proposes(wants("look"))
    run.returns()
    assert run.messages()[-1] == "be brief"
    assert (run.state.talk.pending, run.state.talk.pending_tokens) == ([], 0)


def test_an_answered_question_is_a_message_of_the_user() -> None:
    run = Run(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt="Where?"))))
    run.take(arrivals.QuestionAnswered(run.question().id, "ada", "Rome", 14))
    message = run.state.talk.context[-1]
    assert not isinstance(message, arrivals.ModelAnswered)
    assert (message.role, message.content, run.state.talk.context_tokens) == (Role.USER, "Rome", MESSAGES_TOKENS + 14)


def test_what_a_child_of_the_graph_says_is_a_message() -> None:
    run = Run(manifest_of(graph=in_line(Node("child", NodeKind.CHILD, prompt="go"))))
    run.heard_from_child(text="found it")
    assert run.messages() == ["please", "found it"]


def test_what_a_delegate_says_is_the_result_of_its_call_and_proves_nothing() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    run.heard_from_child(text="found it")
    trace = run.state.calls.made[run.all(StartChild)[0].id]
    assert (trace.rung, trace.content, trace.code) == ("observed", "found it", "")
    message = run.state.talk.context[-1]
    assert not isinstance(message, arrivals.ModelAnswered)
    assert (message.role, message.tool_call_id, message.name) == (Role.TOOL, "call", "ask_child")
    assert run.state.effects.committed == {}


def test_a_delegate_that_failed_is_told_with_its_ending() -> None:
    run = Run()
    run.proposes(wants("ask_child"))
    run.heard_from_child(Ending.IMPOSSIBLE, text="could not")
    assert run.state.calls.made[run.all(StartChild)[0].id].code == Ending.IMPOSSIBLE
    assert run.state.counts.last_error == Ending.IMPOSSIBLE


def test_after_the_ending_nothing_is_heard() -> None:
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    run.take(arrivals.CancelRequested("ada"))
    before = list(run.state.talk.context)
    run.returns("pay")
    assert run.state.talk.context == before
