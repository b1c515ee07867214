"""Tools that ask a person: their call is a question, and the answer is its result."""

from hashlib import sha256
from typing import Any

import pytest

from remit.core.failure import ArrivalFault, Ending, Refusal
from remit.core.journal import arrivals, rulings
from remit.core.journal.canonical import canonical_json
from remit.core.journal.commands import AskHuman, AskPurpose, CallTool, TimerPurpose
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import Answer, Rung
from remit.core.limits.boundary import Boundary, Condition, Exhaustion, Then
from remit.core.limits.budget import Budget, Dimension
from remit.core.limits.tools import Effect, ToolDefinition
from remit.core.record import BlobRef, replace
from remit.core.run.messages import Message, Role
from remit.kernel.authority.call_rulings import OPTIONS_MAX, QUESTION_CHARS_MAX, question_in
from remit.kernel.state import loop_state, waiting_for
from tests.simulation.scenarios import TOOLS
from tests.unit.kernel.builders import Run, lawful, manifest_of, wants

SCHEMA = {"type": "object", "properties": {"question": {"type": "string"}, "options": {"type": "array"}}}
CALLS, REVIEWS = Dimension.TOOL_CALLS, Dimension.HUMAN_REVIEWS


def asking_tool(under: Ending = Ending.MISSING_INFO, name: str = "ask") -> ToolDefinition:
    return ToolDefinition(name, "ask a person", SCHEMA, effect=Effect.NONE, asks_under=under)


def question(text: str = "Which city?", *options: str, call_id: str = "asked", **more: Any) -> ProposedCall:
    """A call of the tool that asks, as facts complete it."""
    said = canonical_json({"question": text, **({"options": list(options)} if options else {}), **more})
    return ProposedCall(call_id, "ask", said.decode(), sha256(said).digest())


def able_to_ask(under: Ending = Ending.MISSING_INFO, **manifest: Any) -> Run:
    return Run(manifest_of(tools=(*TOOLS, asking_tool(under)), **manifest))


def results(run: Run, call_id: str) -> list[str]:
    """The texts of the tool messages that answer a call."""
    told = [entry for entry in run.state.talk.context if isinstance(entry, Message) and entry.role is Role.TOOL]
    return [str(message.content) for message in told if message.tool_call_id == call_id]


def test_the_question_and_its_options_are_shown_under_the_code_of_the_tool() -> None:
    run = able_to_ask(Ending.AMBIGUOUS_INTENT)
    run.proposes(question("Which of the two?", "this", "that"))
    asked = run.question()
    assert (asked.purpose, asked.question, asked.options) == (
        AskPurpose.QUESTION,
        "Which of the two?",
        ("this", "that"),
    )
    assert (asked.call_id, asked.tool, asked.packet) == ("asked", "ask", None)
    assert (waiting_for(run.state), loop_state(run.state)) == (Ending.AMBIGUOUS_INTENT, "paused")
    assert run.all(CallTool) == []


def test_an_answer_is_the_one_result_of_its_call() -> None:
    run = able_to_ask()
    run.proposes(question(), wants("look", call_id="looked"))
    run.tells("Rome")
    assert run.path()[-1] == "act"
    run.returns("look")
    assert run.path()[-1] == "think"
    assert (results(run, "asked"), len(results(run, "looked"))) == (["Rome"], 1)
    trace = next(trace for trace in run.state.calls.made.values() if trace.tool == "ask")
    assert (trace.rung, trace.content, trace.arguments) == (Rung.OBSERVED, "Rome", question().arguments)
    assert run.last(rulings.QuestionSettled).answer is Answer.ANSWERED
    lawful(run)


def test_a_question_is_charged_as_a_call_and_as_a_review() -> None:
    run = able_to_ask()
    run.proposes(question())
    assert (run.reserved(CALLS), run.reserved(REVIEWS)) == (1, 1)
    run.tells("Rome")
    assert (run.used(CALLS), run.used(REVIEWS)) == (1, 1)


def test_a_question_that_is_passed_on_is_one_call_and_a_review_for_everybody_who_was_asked() -> None:
    run = able_to_ask(boundary=Boundary(on_silence=("desk",)), budget=Budget(tool_calls=1))
    run.proposes(question())
    run.rings(TimerPurpose.APPROVAL)
    run.tells("Rome")
    assert (run.used(CALLS), run.used(REVIEWS)) == (1, 2)
    assert results(run, "asked") == ["Rome"]
    (trace,) = run.state.calls.made.values()
    assert (trace.rung, trace.content) == (Rung.OBSERVED, "Rome")
    lawful(run)


def test_calls_under_one_id_keep_their_own_traces_when_a_question_is_passed_on() -> None:
    run = able_to_ask(boundary=Boundary(on_silence=("desk",)))
    one, other = question("Which?", call_id="call"), question("When?", call_id="call")
    run.proposes(one, other, wants("look"))
    run.tells("this")
    run.rings(TimerPurpose.APPROVAL)
    run.returns("look")
    run.tells("now")
    told = {(trace.tool, trace.arguments_hash): trace.content for trace in run.state.calls.made.values()}
    assert told == {
        ("ask", one.arguments_hash): "this",
        ("ask", other.arguments_hash): "now",
        ("look", wants("look").arguments_hash): '{"ok": true}',
    }
    lawful(run)


def test_a_person_who_does_not_answer_is_told_to_the_model_and_the_run_goes_on() -> None:
    run = able_to_ask()
    run.proposes(question())
    run.rejects("ask another one")
    expected = "Not called. APPROVAL_REJECTED: ada does not answer: ask another one"
    assert results(run, "asked") == [expected]
    assert (run.path()[-1], run.last(rulings.QuestionSettled).answer) == ("think", Answer.REJECTED)
    assert next(iter(run.state.calls.made.values())).code == Refusal.APPROVAL_REJECTED
    lawful(run)


def test_a_no_without_a_reason_says_only_who_does_not_answer() -> None:
    run = able_to_ask()
    run.proposes(question())
    run.rejects()
    assert results(run, "asked") == ["Not called. APPROVAL_REJECTED: ada does not answer"]


@pytest.mark.parametrize("under", [Ending.MISSING_INFO, Ending.AMBIGUOUS_INTENT, Ending.REVIEW_REQUIRED])
def test_a_question_that_nobody_answers_ends_the_run_under_its_code(under: Ending) -> None:
    run = able_to_ask(under)
    run.proposes(question())
    asked = run.question()
    run.rings(TimerPurpose.APPROVAL)
    assert (run.state.end.ending, run.state.end.message) == (under, f"nobody answered question {asked.id} in time")
    lawful(run)


def test_a_yes_is_no_answer_to_a_question() -> None:
    run = able_to_ask()
    run.proposes(question())
    assert run.fault_of(arrivals.ApprovalGiven(run.question().id, "ada")) is ArrivalFault.WRONG_PACKET


def test_where_no_review_is_left_the_question_is_refused_and_counts_as_no_call() -> None:
    run = able_to_ask(budget=Budget(human_reviews=0))
    run.proposes(question(), question("When?", call_id="second"))
    refused = run.all(rulings.ToolCallRefused)
    assert [one.code for one in refused] == [Refusal.BUDGET_EXHAUSTED] * 2
    assert refused[0].reason == "nobody may be asked any more: human_reviews_max=0 is spent"
    assert (run.path()[-1], run.state.calls.repeats, run.used(CALLS)) == ("think", {}, 0)
    lawful(run)


def test_a_question_of_which_calls_are_spent_is_refused_like_any_call() -> None:
    run = able_to_ask(budget=Budget(tool_calls=0))
    run.proposes(question())
    assert run.last(rulings.ToolCallRefused).code == Refusal.BUDGET_EXHAUSTED
    assert run.all(AskHuman) == []


def test_the_same_question_is_not_asked_a_third_time() -> None:
    run = able_to_ask()
    for _ in range(2):
        run.proposes(question())
        run.tells("Rome")
    run.proposes(question())
    assert run.last(rulings.ToolCallRefused).code == Refusal.REPEATED_CALL


def test_a_question_that_a_person_reworded_is_asked_as_they_put_it() -> None:
    boundary = Boundary(conditions=(Condition("polite", 'tool == "ask"', Then.ASK),))
    run = able_to_ask(boundary=boundary)
    run.proposes(question())
    better = question("Which city, please?")
    run.approves(modified=better)
    assert (run.question().question, run.question().arguments_hash) == ("Which city, please?", better.arguments_hash)
    run.tells("Rome")
    assert results(run, "asked") == ["Rome"]
    assert list(run.state.calls.repeats) == [("ask", better.arguments_hash)]
    lawful(run)


def test_a_question_beyond_the_calls_of_a_run_may_be_released_by_a_person_first() -> None:
    boundary = Boundary(exhaustion=(("tool_calls", Exhaustion.ASK),), budget=Budget(tool_calls=1))
    run = able_to_ask(boundary=boundary)
    run.proposes(wants("look"))
    run.returns()
    run.proposes(question())
    assert run.question().purpose is AskPurpose.APPROVAL
    run.approves()
    assert run.question().purpose is AskPurpose.QUESTION
    run.tells("Rome")
    assert (run.state.spending.caps[CALLS], run.used(CALLS)) == (2, 2)
    lawful(run)


def test_a_question_is_cut_to_what_a_person_reads() -> None:
    call = question("why " * 1000, *[f"option {n} {'x' * 1000}" for n in range(50)])
    text, options = question_in(call)
    assert (len(text), len(options)) == (QUESTION_CHARS_MAX, OPTIONS_MAX)
    assert {len(option) for option in options} == {QUESTION_CHARS_MAX}


def test_arguments_that_hold_no_question_are_shown_as_they_are() -> None:
    bare = canonical_json({"n": 1}).decode()
    assert question_in(replace(question(), arguments=bare)) == (bare, ())
    assert question_in(replace(question(), arguments="")) == ("", ())
    assert question_in(question(options="no list")) == ("Which city?", ())


def test_of_a_question_too_long_for_a_turn_the_short_part_is_asked() -> None:
    kept = BlobRef(b"digest", 10_000)
    call = replace(question(), arguments=kept, abridged='{"question":"Which?"}')
    assert question_in(call) == ("Which?", ())
