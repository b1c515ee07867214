"""A report becomes an arrival that can be written, with the facts the kernel judges by."""

from hashlib import sha256
from typing import Any

import pytest

from remit.core.failure import ArrivalFault, Ending, ErrorCode, IllegalArrival, RequestRejected
from remit.core.journal import arrivals
from remit.core.journal.arrivals import Arrival, Happened, ModelAnswered, ModelFailed, ToolFailed, ToolReturned
from remit.core.journal.codec import decode_turn, encode_turn
from remit.core.journal.commands import AskHuman, CallModel, CallTool, ReconcileTool
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.turn import KERNEL_VERSION, Turn
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Dimension
from remit.core.limits.tools import TOOL_CALL_INVALID, Effect, ToolCall, ToolDefinition, ToolResult
from remit.core.record import TEXT_INLINE_BYTES_MAX, BlobRef, JsonObject, digest_of, replace
from remit.core.run.contract import OutputContract, SystemRequest
from remit.core.run.inference import CALL_HINT_BYTES_MAX, TEMPLATE_TOKENS_MAX, ModelInfo, ModelResult
from remit.core.run.manifest import Manifest
from remit.core.run.messages import Message, Role, assistant_message, tool_message, user_message
from remit.core.run.request_checks import ID_CHARS_MAX, REQUEST_MALFORMED
from remit.core.run.usage import TokenUsage
from remit.core.schema.json_schema import Violation
from remit.core.work.goal import Goal
from remit.core.work.graph import EXITS, TERMINALS, Ask, Edge, Graph, Node, NodeKind
from remit.kernel.results.notices import HAPPENED, MESSAGE_TOKENS_OVERHEAD
from remit.kernel.state import RunState
from remit.orchestrate.executors import reports
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.facts.excerpts import CRITICAL_DEPTH_MAX, CRITICAL_FACTS_MAX
from remit.orchestrate.facts.facts import CALLS_MAX, Facts
from remit.orchestrate.facts.first_arrival import started
from remit.orchestrate.facts.plain_facts import PROBLEMS_MAX, RETRY_AFTER_MS_MAX
from remit.orchestrate.facts.texts import FIGURE_MAX, NOTE_CHARS_MAX, RESULT_SHOWN_BYTES_MAX, Kept
from tests.unit.kernel.builders import Run, manifest_of, wants

HALF = "\ud800"
LONG = "x" * (TEXT_INLINE_BYTES_MAX + 1)
LONG_REF = BlobRef(digest_of(LONG.encode()), len(LONG))
HOSTILE = (HALF, "\x00", "\x1b[2J", "a" * 5000, HALF * 5000, "ü" * 3000)


@pytest.fixture
def facts() -> Facts:
    return Facts()


def complete(facts: Facts, run: Run, report: Report) -> Arrival:
    return facts.complete(run.state, report, [])


def answered(facts: Facts, result: ModelResult, run: Run | None = None) -> ModelAnswered:
    run = run or Run()
    arrival = complete(facts, run, reports.ModelSaid(run.open(CallModel)[0].id, result))
    assert isinstance(arrival, ModelAnswered)
    return arrival


def proposed(facts: Facts, call: ToolCall) -> ProposedCall:
    return answered(facts, ModelResult(tool_calls=(call,))).calls[0]


def can_be_written(arrival: Arrival) -> bool:
    turn = Turn(1, 0, b"", KERNEL_VERSION, arrival)
    return decode_turn(encode_turn(turn)) == turn


class TestAnAnswer:
    def test_a_text_is_kept_with_a_bound_of_its_bytes(self, facts: Facts) -> None:
        arrival = answered(facts, ModelResult("grüezi", "thought"))
        assert (arrival.text, arrival.reasoning) == ("grüezi", "thought")
        assert arrival.tokens_bound == len("grüezi".encode()) + len("thought") + MESSAGE_TOKENS_OVERHEAD

    def test_long_texts_go_to_blobs(self, facts: Facts) -> None:
        run, kept = Run(), list[tuple[bytes, bytes]]()
        report = reports.ModelSaid(run.open(CallModel)[0].id, ModelResult(LONG, LONG + "y"))
        arrival = facts.complete(run.state, report, kept)
        assert isinstance(arrival, ModelAnswered)
        assert arrival.text == LONG_REF
        assert [data.decode() for _, data in kept] == [LONG, LONG + "y"]

    def test_a_long_text_is_bounded_by_its_whole_length(self, facts: Facts) -> None:
        assert answered(facts, ModelResult(LONG)).tokens_bound == len(LONG) + MESSAGE_TOKENS_OVERHEAD

    @pytest.mark.parametrize("text", HOSTILE)
    def test_whatever_a_model_says_can_be_written(self, facts: Facts, text: str) -> None:
        call = ToolCall(text, text, {"text": text, text: 1})
        assert can_be_written(answered(facts, ModelResult(text, text, (call,))))
        assert can_be_written(answered(facts, ModelResult(text, text)))

    def test_more_calls_than_anybody_could_mean_are_a_malformed_answer(self, facts: Facts) -> None:
        run = Run()
        calls = (ToolCall("c", "look", {"n": 1}),) * (CALLS_MAX + 1)
        result = ModelResult(tool_calls=calls, usage=TokenUsage(7))
        arrival = complete(facts, run, reports.ModelSaid(run.open(CallModel)[0].id, result))
        assert isinstance(arrival, arrivals.ModelFailed)
        assert (arrival.code, arrival.usage) == (ErrorCode.INFERENCE_MALFORMED_RESPONSE, TokenUsage(7))
        assert len(answered(facts, ModelResult(tool_calls=calls[1:])).calls) == CALLS_MAX

    def test_an_answer_is_checked_against_the_output_contract(self, facts: Facts) -> None:
        run = Run(manifest_of(request=structured({"type": "object", "required": ["ok"]})))
        assert answered(facts, ModelResult('{"ok": 1}'), run).violations == ()
        assert answered(facts, ModelResult("{}"), run).violations[0].keyword == "required"
        assert answered(facts, ModelResult("no json"), run).violations[0].keyword == "json"

    def test_an_answer_is_checked_against_what_its_node_asked_for(self, facts: Facts) -> None:
        node = Node("think", NodeKind.MODEL, ask=Ask(schema='{"type": "integer"}'))
        graph = Graph("one", "think", (node, *TERMINALS), (Edge("think", "done"),), EXITS)
        run = Run(manifest_of(request=structured({"type": "object"}), graph=graph))
        assert answered(facts, ModelResult("7"), run).violations == ()
        assert answered(facts, ModelResult("{}"), run).violations[0].keyword == "type"

    def test_what_a_router_shortlisted_is_kept(self, facts: Facts) -> None:
        run = Run()
        report = reports.ModelSaid(run.open(CallModel)[0].id, ModelResult("hello"), ("look",))
        arrival = complete(facts, run, report)
        assert isinstance(arrival, ModelAnswered)
        assert arrival.offered == ("look",)

    def test_an_answer_without_words_is_not_checked(self, facts: Facts) -> None:
        run = Run(manifest_of(request=structured({"type": "object"})))
        assert answered(facts, ModelResult(""), run).violations == ()

    def test_words_beside_calls_are_judged_as_an_answer_and_not_mended(self, facts: Facts) -> None:
        run = Run(manifest_of(request=structured({"type": "object"})))
        calls = (ToolCall("c", "look"),)
        assert answered(facts, ModelResult("let me see", tool_calls=calls), run).violations[0].keyword == "json"
        fenced = answered(facts, ModelResult("```json\n{}\n```", tool_calls=calls), run)
        assert (fenced.text, fenced.repairs) == ("```json\n{}\n```", ())

    def test_words_beside_calls_are_free_where_no_shape_was_asked_for(self, facts: Facts) -> None:
        assert answered(facts, ModelResult("let me see", tool_calls=(ToolCall("c", "look"),))).violations == ()

    def test_an_output_schema_that_does_not_compile_is_a_violation(self, facts: Facts) -> None:
        run = Run(manifest_of(request=structured({"type": "nonsense"})))
        assert answered(facts, ModelResult("{}"), run).violations[0].keyword == "schema"


class TestUsage:
    def test_usage_is_taken_as_reported(self, facts: Facts) -> None:
        usage = TokenUsage(1, 2, 3, 4, 5, 6)
        assert answered(facts, ModelResult("a", usage=usage)).usage is usage

    @pytest.mark.parametrize("figure", [FIGURE_MAX + 1, 2**64, 10**400])
    @pytest.mark.parametrize("field", TokenUsage.__struct_fields__)
    def test_a_figure_beyond_belief_is_cut_to_what_a_record_can_hold(
        self, facts: Facts, field: str, figure: int
    ) -> None:
        usage = answered(facts, ModelResult("a", usage=replace(TokenUsage(1, 1, 1, 1, 1, 1), **{field: figure}))).usage
        assert getattr(usage, field) == FIGURE_MAX
        assert usage.total_tokens >= 3

    @pytest.mark.parametrize("figure", [-1, -(2**70), True, 1.5, None])
    @pytest.mark.parametrize("field", TokenUsage.__struct_fields__)
    def test_a_figure_that_counts_nothing_makes_the_usage_unknown(self, facts: Facts, field: str, figure: int) -> None:
        usage = replace(TokenUsage(5, 5, 5, 5, 5, 5), **{field: figure})
        assert answered(facts, ModelResult("a", usage=usage)).usage == TokenUsage()

    def test_unknown_usage_is_charged_as_all_that_was_reserved(self, facts: Facts) -> None:
        run = Run()
        reserved = run.reserved(Dimension.INPUT_TOKENS)
        run.take(answered(facts, ModelResult("done", usage=TokenUsage(-1000)), run))
        assert run.used(Dimension.INPUT_TOKENS) == reserved

    def test_the_usage_of_a_failed_call_is_made_fit_too(self, facts: Facts) -> None:
        failed = arrivals.ModelFailed("1.0", ErrorCode.INFERENCE_ENGINE_ERROR, "x" * 9999, TokenUsage(2**80))
        arrival = complete(facts, Run(), failed)
        assert isinstance(arrival, arrivals.ModelFailed)
        assert (arrival.usage.prompt_tokens, len(arrival.message)) == (FIGURE_MAX, NOTE_CHARS_MAX)

    @pytest.mark.parametrize(
        ("said", "kept"), [(0, 0), (2000, 2000), (10**9, RETRY_AFTER_MS_MAX), (-1, 0), (True, 0), (1.5, 0)]
    )
    def test_the_pause_that_a_failed_call_asks_for_has_a_limit(self, facts: Facts, said: int, kept: int) -> None:
        failed = arrivals.ModelFailed("1.0", ErrorCode.INFERENCE_ENGINE_ERROR, retry_after_ms=said)
        arrival = complete(facts, Run(), failed)
        assert isinstance(arrival, arrivals.ModelFailed)
        assert (arrival.retry_after_ms, type(arrival.retry_after_ms)) == (kept, int)

    def test_what_a_reader_found_wrong_stands_before_what_the_schema_finds_and_nothing_is_mended(
        self, facts: Facts
    ) -> None:
        run = Run(manifest_of(request=structured({"type": "object"})))
        found = (Violation("", "grammar", "x" * 9999),) * (PROBLEMS_MAX + 1)
        said = ModelResult("{'a': 1}")
        arrival = complete(facts, run, reports.ModelSaid(run.open(CallModel)[0].id, said, (), found))
        assert isinstance(arrival, ModelAnswered)
        assert (arrival.text, arrival.repairs, arrival.raw) == ("{'a': 1}", (), "")
        keywords = [violation.keyword for violation in arrival.violations]
        assert keywords == [*["grammar"] * PROBLEMS_MAX, "json"]
        assert len(arrival.violations[0].message) == NOTE_CHARS_MAX


class TestAProposedCall:
    def test_arguments_are_kept_in_canonical_form_with_their_hash(self, facts: Facts) -> None:
        call = proposed(facts, ToolCall("c1", "look", {"note": "b", "n": 1}))
        assert call.arguments == '{"n":1,"note":"b"}'
        assert call.arguments_hash == sha256(b'{"n":1,"note":"b"}').digest()
        assert call.violations == ()

    def test_arguments_are_checked_against_the_tools_schema(self, facts: Facts) -> None:
        assert proposed(facts, ToolCall("c1", "look", {"n": "one"})).violations[0].path == "/n"

    def test_arguments_of_an_unknown_tool_are_left_to_the_gate(self, facts: Facts) -> None:
        assert proposed(facts, ToolCall("c1", "no_such_tool", {"n": "one"})).violations == ()

    def test_long_arguments_go_to_blobs_by_the_digest_that_is_their_hash(self, facts: Facts) -> None:
        call = proposed(facts, ToolCall("c1", "look", {"n": 1, "note": LONG}))
        assert isinstance(call.arguments, BlobRef)
        assert call.arguments.digest == call.arguments_hash

    @pytest.mark.parametrize("value", [float("nan"), float("inf"), HALF, 2**53, b"bytes", {1: 2}])
    def test_arguments_without_canonical_form_are_a_violation(self, facts: Facts, value: object) -> None:
        call = proposed(facts, ToolCall("c1", "look", {"n": value}))
        assert (call.arguments, call.violations[0].keyword) == ("", "canonical")

    def test_arguments_that_nest_too_deep_are_a_violation(self, facts: Facts) -> None:
        arguments: JsonObject = {}
        for _ in range(500):
            arguments = {"n": arguments}
        assert proposed(facts, ToolCall("c1", "look", arguments)).violations[0].keyword == "canonical"

    @pytest.mark.parametrize("arguments", [[1], "text", 7, None])
    def test_arguments_that_are_no_object_are_a_violation(self, facts: Facts, arguments: JsonObject) -> None:
        call = proposed(facts, ToolCall("c1", "no_such_tool", arguments))
        assert (call.arguments, call.violations[0].keyword) == ("", "type")

    def test_a_tool_whose_schema_does_not_compile_is_never_called_validly(self, facts: Facts) -> None:
        parameters = {"type": "object", "properties": {"n": {"type": "nonsense"}}}
        bad = ToolDefinition("bad", "cannot be checked", parameters, effect=Effect.READ)
        run = Run(manifest_of(tools=(bad,)))
        arrival = answered(facts, ModelResult(tool_calls=(ToolCall("c", "bad", {}),)), run)
        assert arrival.calls[0].violations[0].keyword == "schema"

    def test_two_tools_of_one_version_are_checked_by_their_own_schemas(self, facts: Facts) -> None:
        first = ToolDefinition("first", "", {"type": "object", "required": ["a"]}, effect=Effect.READ, version="1")
        second = ToolDefinition("second", "", {"type": "object", "required": ["b"]}, effect=Effect.READ, version="1")
        run = Run(manifest_of(tools=(first, second)))
        calls = (ToolCall("c", "first", {"a": 1}), ToolCall("c", "second", {"a": 1}))
        found = [call.violations for call in answered(facts, ModelResult(tool_calls=calls), run).calls]
        assert found[0] == ()
        assert found[1] != ()

    def test_a_call_without_an_id_is_given_one_by_its_place(self, facts: Facts) -> None:
        calls = (ToolCall("", "look"), ToolCall("", "look"), ToolCall("own", "look"))
        ids = [call.call_id for call in answered(facts, ModelResult(tool_calls=calls)).calls]
        assert ids == ["call-0", "call-1", "own"]

    def test_names_and_ids_that_are_too_long_are_cut(self, facts: Facts) -> None:
        call = proposed(facts, ToolCall("i" * 9999, "t" * 9999))
        assert (len(call.call_id), len(call.tool)) == (ID_CHARS_MAX, ID_CHARS_MAX)

    def test_the_bound_covers_the_call_and_the_name_its_result_will_repeat(self, facts: Facts) -> None:
        arrival = answered(facts, ModelResult(tool_calls=(ToolCall("ü1", "look", {"n": 1}),)))
        named = len("ü1".encode()) + len("look")
        assert arrival.tokens_bound == 2 * MESSAGE_TOKENS_OVERHEAD + 2 * named + len('{"n":1}')


class TestAResult:
    def test_content_is_kept_with_evidence_and_bound(self, facts: Facts) -> None:
        arrival = returned(facts, '{"ok": true}')
        assert arrival.content == '{"ok": true}'
        assert arrival.evidence == digest_of(b'{"ok": true}')
        assert arrival.tokens_bound == len('{"ok": true}') + MESSAGE_TOKENS_OVERHEAD

    def test_long_content_goes_to_blobs_and_its_digest_is_the_evidence(self, facts: Facts) -> None:
        arrival = returned(facts, LONG)
        assert (arrival.content, arrival.evidence) == (LONG_REF, LONG_REF.digest)

    def test_content_is_checked_against_the_result_schema(self, facts: Facts) -> None:
        assert returned(facts, '{"ok": true}').violations == ()
        assert returned(facts, '{"ok": 1}').violations != ()
        assert returned(facts, "plain text").violations != ()

    def test_a_tool_without_result_schema_may_return_anything(self, facts: Facts) -> None:
        run = Run(manifest_of(tools=(ToolDefinition("any", "", {"type": "object"}, effect=Effect.READ),)))
        run.proposes(wants("any"))
        assert returned(facts, "whatever", run).violations == ()

    def test_a_tool_cannot_return_a_digest_that_may_be_of_another_run(self, facts: Facts) -> None:
        run = Run()
        run.proposes(wants("look"))
        report = reports.ToolSaid(run.open(CallTool)[0].id, ToolResult("c", "look", LONG_REF))
        arrival = complete(facts, run, report)
        assert isinstance(arrival, ToolFailed)
        assert arrival.code is ErrorCode.TOOL_EXECUTION_FAILED

    def test_a_result_of_the_wrong_types_is_a_broken_executor(self, facts: Facts) -> None:
        run = Run()
        run.proposes(wants("look"))
        command = run.open(CallTool)[0]
        for wrong in (None, 5, ["text"]):
            report = reports.ToolSaid(command.id, ToolResult("c", "look", wrong))  # type: ignore[arg-type]
            assert isinstance(complete(facts, run, report), ToolFailed)
        unknown = reports.ToolBroke(command.id, "WHATEVER")  # type: ignore[arg-type]
        assert isinstance(complete(facts, run, unknown), ToolFailed)
        with pytest.raises(IllegalArrival):
            complete(facts, run, reports.ToolSaid("9.9", ToolResult("c", "look", None)))  # type: ignore[arg-type]

    def test_an_answer_of_the_wrong_types_is_a_broken_engine(self, facts: Facts) -> None:
        run = Run()
        command = run.open(CallModel)[0]
        for wrong in (ModelResult(content=5), ModelResult(usage=None), ModelResult(tool_calls=None)):  # type: ignore[arg-type]
            assert isinstance(complete(facts, run, reports.ModelSaid(command.id, wrong)), ModelFailed)

    def test_a_result_too_long_to_be_shown_is_kept_whole_and_shown_by_its_beginning(self, facts: Facts) -> None:
        text = "word " * RESULT_SHOWN_BYTES_MAX
        arrival = returned(facts, text)
        assert arrival.whole == BlobRef(digest_of(text.encode()), len(text))
        assert arrival.evidence == arrival.whole.digest
        assert isinstance(arrival.content, BlobRef)
        assert arrival.content.size_bytes < RESULT_SHOWN_BYTES_MAX + 200
        assert arrival.tokens_bound == arrival.content.size_bytes + MESSAGE_TOKENS_OVERHEAD

    def test_a_long_result_that_is_to_become_the_answer_is_not_shortened(self, facts: Facts) -> None:
        run = Run()
        run.proposes(wants("look"))
        result = ToolResult("c", "look", "word " * RESULT_SHOWN_BYTES_MAX, stop_loop=True)
        arrival = complete(facts, run, reports.ToolSaid(run.open(CallTool)[0].id, result))
        assert isinstance(arrival, ToolReturned)
        assert arrival.whole is None

    def test_what_the_tools_own_check_found_is_kept(self, facts: Facts) -> None:
        run = Run()
        run.proposes(wants("look"))
        report = reports.ToolSaid(run.open(CallTool)[0].id, ToolResult("c", "look", "{}"), refuted="r" * 9999)
        arrival = complete(facts, run, report)
        assert isinstance(arrival, ToolReturned)
        assert arrival.refuted == "r" * NOTE_CHARS_MAX

    @pytest.mark.req("4.13")
    def test_a_result_with_an_error_is_a_failure_with_the_tools_own_words(self, facts: Facts) -> None:
        run = Run()
        run.proposes(wants("look"))
        result = ToolResult("c", "look", "ignored", error=f"disk {HALF} full")
        arrival = complete(facts, run, reports.ToolSaid(run.open(CallTool)[0].id, result, duration_ms=5))
        assert isinstance(arrival, ToolFailed)
        assert (arrival.code, arrival.error, arrival.duration_ms) == (
            ErrorCode.TOOL_EXECUTION_FAILED,
            "disk ? full",
            5,
        )
        assert arrival.evidence == digest_of(b"disk ? full")

    @pytest.mark.req("4.13")
    def test_a_broken_call_is_a_failure_with_its_code(self, facts: Facts) -> None:
        arrival = complete(facts, Run(), reports.ToolBroke("1.0", ErrorCode.TOOL_TIMEOUT, "e" * 9999))
        assert isinstance(arrival, ToolFailed)
        assert (arrival.code, len(arrival.error)) == (ErrorCode.TOOL_TIMEOUT, NOTE_CHARS_MAX)
        assert arrival.tokens_bound >= len(arrival.error)

    @pytest.mark.parametrize("text", HOSTILE)
    def test_whatever_a_tool_says_can_be_written(self, facts: Facts, text: str) -> None:
        assert can_be_written(returned(facts, text))
        assert can_be_written(complete(facts, Run(), reports.ToolBroke("1.0", ErrorCode.TOOL_TIMEOUT, text)))

    @pytest.mark.parametrize(("reported", "recorded"), [(-1, 0), (2**80, FIGURE_MAX), (1.5, 0), (7, 7)])
    def test_a_duration_is_a_count_of_milliseconds_or_nothing(self, facts: Facts, reported: int, recorded: int) -> None:
        arrival = complete(facts, Run(), reports.ToolBroke("1.0", ErrorCode.TOOL_TIMEOUT, duration_ms=reported))
        assert isinstance(arrival, ToolFailed)
        assert arrival.duration_ms == recorded

    def test_a_result_for_a_command_that_is_not_open_proves_nothing(self, facts: Facts) -> None:
        arrival = complete(facts, Run(), reports.ToolSaid("9.9", ToolResult("c", "look", '{"ok": true}')))
        assert isinstance(arrival, ToolReturned)
        assert arrival.violations != ()

    def test_a_result_for_a_command_of_another_kind_proves_nothing(self, facts: Facts) -> None:
        run = Run()
        arrival = complete(facts, run, reports.ToolSaid(run.open(CallModel)[0].id, ToolResult("c", "look", "{}")))
        assert isinstance(arrival, ToolReturned)
        assert run.fault_of(arrival) is ArrivalFault.UNKNOWN_COMMAND


class TestAnAccount:
    def test_the_result_of_a_call_that_happened_is_checked(self, facts: Facts) -> None:
        assert reconciled(facts, Happened.YES, '{"ok": true}').content == '{"ok": true}'
        told = f"{HAPPENED} Of it was told: nonsense"
        assert reconciled(facts, Happened.YES, "nonsense").content == told
        # A second report of it tells the same.
        assert reconciled(facts, Happened.YES, told).content == told

    @pytest.mark.parametrize("happened", [Happened.NO, Happened.UNKNOWN])
    def test_there_is_nothing_to_check_unless_it_happened(self, facts: Facts, happened: Happened) -> None:
        assert reconciled(facts, happened, "nonsense").content == "nonsense"

    def test_an_account_that_nobody_asked_for_proves_nothing(self, facts: Facts) -> None:
        arrival = complete(facts, Run(), reports.ToolAccounted("9.9", Happened.YES, '{"ok": true}'))
        assert isinstance(arrival, arrivals.ToolReconciled)
        assert str(arrival.content).startswith(HAPPENED)


class TestPeople:
    def test_an_approval_names_the_person(self, facts: Facts) -> None:
        run = asking()
        arrival = complete(facts, run, reports.PersonApproved(run.question().id, f"ada{HALF}"))
        assert arrival == arrivals.ApprovalGiven(run.question().id, "ada?")

    def test_modified_arguments_are_completed_like_proposed_ones(self, facts: Facts) -> None:
        run = asking()
        arrival = complete(facts, run, reports.PersonApproved(run.question().id, "ada", {"n": 7}))
        assert isinstance(arrival, arrivals.ApprovalGiven)
        assert arrival.modified == replace(wants("write", 7), call_id="call")

    def test_modified_arguments_that_break_the_schema_say_so(self, facts: Facts) -> None:
        run = asking()
        arrival = complete(facts, run, reports.PersonApproved(run.question().id, "ada", {"n": "seven"}))
        assert isinstance(arrival, arrivals.ApprovalGiven)
        assert arrival.modified is not None
        assert arrival.modified.violations[0].path == "/n"

    def test_arguments_for_a_question_that_is_not_open_approve_nothing(self, facts: Facts) -> None:
        arrival = complete(facts, Run(), reports.PersonApproved("9.9", "ada", {"n": 7}))
        assert isinstance(arrival, arrivals.ApprovalGiven)
        assert arrival.modified is not None
        assert arrival.modified.violations != ()

    def test_arguments_for_a_question_without_a_call_are_refused(self, facts: Facts) -> None:
        run = asking()
        question = run.question()
        run.state.commands.open[question.id] = replace(question, packet=None)
        with pytest.raises(IllegalArrival) as caught:
            complete(facts, run, reports.PersonApproved(question.id, "ada", {"n": 7}))
        assert caught.value.fault is ArrivalFault.WRONG_PACKET

    def test_an_answer_to_a_question_and_feedback_are_told_apart(self, facts: Facts) -> None:
        bound = 2 + MESSAGE_TOKENS_OVERHEAD
        answer = complete(facts, Run(), reports.PersonSaid("ada", "42", "1.0"))
        feedback = complete(facts, Run(), reports.PersonSaid("ada", "42"))
        assert answer == arrivals.QuestionAnswered("1.0", "ada", "42", bound)
        assert feedback == arrivals.FeedbackGiven("ada", "42", bound)

    @pytest.mark.parametrize("text", HOSTILE)
    def test_whatever_people_say_can_be_written(self, facts: Facts, text: str) -> None:
        run = asking()
        said: list[Report] = [
            reports.PersonSaid(text, text),
            reports.PersonSaid(text, text, "1.0"),
            reports.PersonApproved(run.question().id, text, {"n": text}),
            arrivals.ApprovalRefused("1.0", text, text),
            arrivals.OutcomeJudged("1.0", text, Happened.NO),
            arrivals.CancelRequested(text, text),
            arrivals.PauseRequested(text),
            arrivals.ResumeRequested(text),
            arrivals.RetryRequested(text),
        ]
        assert all(can_be_written(complete(facts, run, report)) for report in said)

    def test_a_signal_in_plain_words_is_taken_as_it_stands(self, facts: Facts) -> None:
        signal = arrivals.CancelRequested("ada", "enough")
        assert complete(facts, Run(), signal) is signal


class TestCodeContextAndChildren:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_whatever_code_and_sources_say_can_be_written(self, facts: Facts, text: str) -> None:
        said: list[Report] = [
            arrivals.CodeReturned("1.0", text, (text, text)),
            arrivals.CodeFailed("1.0", text),
            arrivals.ContextFailed("1.0", text),
            reports.ContextSaid("1.0", text),
            reports.ChildSaid("1.0", Ending.SUCCESS, text),
        ]
        assert all(can_be_written(complete(facts, Run(), report)) for report in said)

    def test_the_value_of_code_goes_to_blobs_when_it_is_long(self, facts: Facts) -> None:
        assert complete(facts, Run(), arrivals.CodeReturned("1.0", LONG)) == arrivals.CodeReturned("1.0", LONG_REF)
        assert complete(facts, Run(), arrivals.CodeReturned("1.0", LONG_REF)).value == LONG_REF  # type: ignore[union-attr]

    def test_a_validator_is_heard_with_a_limited_number_of_problems(self, facts: Facts) -> None:
        arrival = complete(facts, Run(), arrivals.CodeReturned("1.0", problems=("bad",) * 1000))
        assert arrival == arrivals.CodeReturned("1.0", problems=("bad",) * PROBLEMS_MAX)

    def test_a_child_that_said_nothing_is_told_by_its_ending(self, facts: Facts) -> None:
        arrival = complete(facts, Run(), reports.ChildSaid("1.0", Ending.TIMEOUT, spent=((0, 5),)))
        assert isinstance(arrival, arrivals.ChildEnded)
        assert "TIMEOUT" in str(arrival.text)
        assert arrival.spent == ((0, 5),)

    def test_a_child_that_failed_says_under_which_code_why_and_what_it_used(self, facts: Facts) -> None:
        usage = TokenUsage(prompt_tokens=5, output_tokens=2)
        said = reports.ChildSaid("1.0", Ending.IMPOSSIBLE, "", (), ErrorCode.TOOL_TIMEOUT, "slow\x1b", usage)
        arrival = complete(facts, Run(), said)
        assert isinstance(arrival, arrivals.ChildEnded)
        assert (arrival.error, arrival.usage) == (ErrorCode.TOOL_TIMEOUT, usage)
        assert can_be_written(arrival)

    @pytest.mark.parametrize(("said", "heard"), [(-1, -1), (0, 0), (7, 7), (-9, 0), (2**70, 2**40 - 1)])
    def test_how_long_a_child_waited_is_a_figure_or_unknown(self, facts: Facts, said: int, heard: int) -> None:
        arrival = complete(facts, Run(), reports.ChildSaid("1.0", Ending.SUCCESS, "yes", stood_ms=said))
        assert isinstance(arrival, arrivals.ChildEnded)
        assert arrival.stood_ms == heard

    def test_the_call_of_a_tool_step_is_completed_like_one_that_a_model_proposed(self, facts: Facts) -> None:
        arrival = complete(facts, Run(), reports.CodeProposed("1.0", (ToolCall("step-1.0", "look", {"n": 1}),)))
        assert isinstance(arrival, arrivals.CodeReturned)
        assert arrival.calls == (wants("look", call_id="step-1.0"),)
        broken = complete(facts, Run(), reports.CodeProposed("1.0", (ToolCall("step-1.0", "look", {"n": "many"}),)))
        assert isinstance(broken, arrivals.CodeReturned)
        assert broken.calls[0].violations != ()

    @pytest.mark.parametrize(("said", "kept"), [(-1, -1), (-9, -1), (5, 5), (10**9, 1_000_000), ("high", -1)])
    def test_a_relevance_is_a_share_or_nothing(self, facts: Facts, said: Any, kept: int) -> None:
        arrival = complete(facts, Run(), reports.ContextSaid("1.0", "found", said))
        assert isinstance(arrival, arrivals.ContextFound)
        assert arrival.relevance_ppm == kept

    def test_an_arrival_that_carries_its_facts_is_taken_as_it_stands(self, facts: Facts) -> None:
        timer = arrivals.TimerFired("1.0")
        assert complete(facts, Run(), timer) is timer


class TestARunThatHasNotStarted:
    def test_a_report_for_it_is_refused(self, facts: Facts) -> None:
        with pytest.raises(IllegalArrival) as caught:
            facts.complete(RunState(), reports.PersonSaid("ada", "hello?"), [])
        assert caught.value.fault is ArrivalFault.NOT_STARTED


class TestTheFirstArrival:
    def test_bounds_cover_messages_and_tools(self, facts: Facts) -> None:
        manifest = manifest_of(tools=())
        assert started(manifest, []).offer_tokens_bound == 0
        assert started(manifest, []).messages_tokens_bound == len("please") + MESSAGE_TOKENS_OVERHEAD
        assert started(manifest_of(), []).offer_tokens_bound > 0

    def test_a_model_that_calls_by_grammar_is_told_how_and_has_a_template(self, facts: Facts) -> None:
        small = (ModelInfo("small", calls_by_grammar=True, template_tokens=TEMPLATE_TOKENS_MAX),)
        with_tools, without = manifest_of(), manifest_of(tools=())
        bounds = [
            started(replace(one, models=small), []).offer_tokens_bound - started(one, []).offer_tokens_bound
            for one in (with_tools, without)
        ]
        assert bounds == [TEMPLATE_TOKENS_MAX + CALL_HINT_BYTES_MAX, TEMPLATE_TOKENS_MAX]

    def test_the_bound_of_a_message_covers_every_field(self, facts: Facts) -> None:
        plain = bound_of(facts, assistant_message("text"))
        call = ToolCall("id", "tool", {"a": "b"})
        assert bound_of(facts, assistant_message("text", (call,), "thought")) >= plain + len("thought") + len(
            'id tool {"a":"b"}'
        )
        assert bound_of(facts, tool_message("call-1", "look", "text")) == plain + len("call-1look")

    @pytest.mark.parametrize("field", ["content", "reasoning"])
    def test_every_long_text_of_a_message_goes_to_blobs(self, facts: Facts, field: str) -> None:
        kept: Kept = []
        message = replace(assistant_message("short", (), "short"), **{field: LONG})
        (stored,) = started(manifest_of(request=SystemRequest((message,))), kept).manifest.request.messages
        assert getattr(stored, field) == LONG_REF
        assert kept == [(LONG_REF.digest, LONG.encode())]

    def test_a_reference_in_a_message_stays_one(self, facts: Facts) -> None:
        kept: Kept = []
        (message,) = started(
            manifest_of(request=SystemRequest((user_message(LONG_REF),))), kept
        ).manifest.request.messages
        assert (message.content, kept) == (LONG_REF, [])

    @pytest.mark.parametrize("text", HOSTILE)
    def test_whatever_a_request_says_can_be_written(self, facts: Facts, text: str) -> None:
        message = Message(Role.TOOL, text, text, tool_call_id=text, name=text)
        assert can_be_written(started(manifest_of(request=SystemRequest((message,))), []))

    @pytest.mark.parametrize("value", [HALF, 2**70, float("nan")])
    def test_a_call_in_the_history_that_cannot_be_written_is_a_bad_request(self, facts: Facts, value: object) -> None:
        message = assistant_message("", (ToolCall("c", "look", {"n": value}),))
        with pytest.raises(RequestRejected) as caught:
            started(manifest_of(request=SystemRequest((user_message("hi"), message))), [])
        assert (caught.value.code, caught.value.details) == (TOOL_CALL_INVALID, {"position": 1})

    @pytest.mark.parametrize(
        "request_",
        [
            SystemRequest((user_message("hi"),), metadata={"n": 2**70}),
            SystemRequest((user_message("hi"),), metadata={HALF: 1}),
            SystemRequest((user_message("hi"),), metadata={1: "a key that is no text"}),  # type: ignore[dict-item]
            SystemRequest((user_message("hi"),), metadata={"x": object()}),
            SystemRequest((user_message("hi"),), session_id=HALF),
        ],
        ids=["large number", "half a pair", "number as key", "object", "session"],
    )
    def test_a_request_that_cannot_be_written_and_read_back_is_rejected(
        self, facts: Facts, request_: SystemRequest
    ) -> None:
        with pytest.raises(RequestRejected) as caught:
            started(manifest_of(request=request_), [])
        assert caught.value.code == REQUEST_MALFORMED

    def test_runs_share_a_graph_and_a_boundary_that_are_read_back_as_they_were(self) -> None:
        given = manifest_of()
        pinned = started(given, []).manifest
        assert pinned.graph is given.graph
        assert pinned.boundary is given.boundary

    def test_what_is_read_back_otherwise_than_it_was_given_is_pinned_as_it_was_read(self) -> None:
        given = manifest_of()
        listed: Any = list(given.graph.nodes)
        boundary = Boundary("listed", permissions=["send"])  # type: ignore[arg-type]  # as a careless caller may
        careless = replace(given, graph=replace(given.graph, nodes=listed), boundary=boundary)
        pinned = started(careless, []).manifest
        assert pinned.graph == given.graph
        assert pinned.boundary.permissions == ("send",)

    def test_a_goal_that_cannot_be_written_is_rejected(self, facts: Facts) -> None:
        with pytest.raises(RequestRejected):
            started(manifest_of(goal=Goal(HALF)), [])

    def test_the_tools_stay_the_very_same_so_that_their_schemas_are_compiled_once(self, facts: Facts) -> None:
        manifest: Manifest = manifest_of(boundary=Boundary())
        assert started(manifest, []).manifest.tools is manifest.tools


@pytest.mark.req("1.20")
def test_two_processes_make_the_same_facts_of_the_same_report() -> None:
    result = ModelResult("text", tool_calls=(ToolCall("c", "look", {"n": "bad", "other": [1.5]}),))
    assert answered(Facts(), result) == answered(Facts(), result)


def structured(schema: JsonObject) -> SystemRequest:
    return SystemRequest((user_message("please"),), output=OutputContract(schema))


def returned(facts: Facts, content: str | BlobRef, run: Run | None = None) -> ToolReturned:
    if run is None:
        run = Run()
        run.proposes(wants("look"))
    command = run.open(CallTool)[0]
    arrival = complete(facts, run, reports.ToolSaid(command.id, ToolResult("call", command.tool, content)))
    assert isinstance(arrival, ToolReturned)
    return arrival


def reconciled(facts: Facts, happened: Happened, content: str) -> arrivals.ToolReconciled:
    run = Run()
    run.proposes(wants("pay"))
    run.approves()
    run.loses("pay")
    arrival = complete(facts, run, reports.ToolAccounted(run.open(ReconcileTool)[0].id, happened, content))
    assert isinstance(arrival, arrivals.ToolReconciled)
    return arrival


def asking() -> Run:
    run = Run()
    run.proposes(wants("write"))
    assert isinstance(run.question(), AskHuman)
    return run


def bound_of(facts: Facts, message: Message) -> int:
    return started(manifest_of(request=SystemRequest((message,))), []).messages_tokens_bound


class TestFactsThatMustAgree:
    def stated(self, facts: Facts, content: str, *critical: str) -> tuple[tuple[str, str], ...]:
        run = Run(manifest_of(goal=Goal("agree", critical=critical)))
        run.proposes(wants("look"))
        said = reports.ToolSaid(run.open(CallTool)[0].id, ToolResult("call", "look", content))
        arrival = complete(facts, run, said)
        assert isinstance(arrival, ToolReturned)
        assert can_be_written(arrival)
        return arrival.critical

    def test_a_result_states_critical_facts_wherever_in_it_they_stand(self, facts: Facts) -> None:
        content = '{"ok": true, "rows": [{"price": 3, "name": "a"}, {"price": 4}], "deep": {"date": "today"}}'
        assert self.stated(facts, content, "price", "date") == (("date", '"today"'), ("price", "3"), ("price", "4"))

    def test_what_is_said_twice_is_stated_once(self, facts: Facts) -> None:
        assert self.stated(facts, '[{"price": 3}, {"price": 3}]', "price") == (("price", "3"),)

    def test_a_part_is_no_fact_and_is_looked_into(self, facts: Facts) -> None:
        assert self.stated(facts, '{"price": {"price": 5}}', "price") == (("price", "5"),)

    def test_words_and_other_fields_state_nothing(self, facts: Facts) -> None:
        assert self.stated(facts, "the price is 3", "price") == ()
        assert self.stated(facts, '{"cost": 3}', "price") == ()
        assert self.stated(facts, "3", "price") == ()

    def test_a_goal_that_calls_nothing_critical_asks_nothing(self, facts: Facts) -> None:
        assert self.stated(facts, '{"price": 3}') == ()

    def test_facts_are_sought_near_the_surface_alone(self, facts: Facts) -> None:
        near = "[" * CRITICAL_DEPTH_MAX + '{"price": 1}' + "]" * CRITICAL_DEPTH_MAX
        assert self.stated(facts, near, "price") == (("price", "1"),)
        assert self.stated(facts, f"[{near}]", "price") == ()

    def test_a_number_too_large_to_be_written_canonically_breaks_no_result(self, facts: Facts) -> None:
        assert self.stated(facts, f'{{"price": {10**30}}}', "price") == (("price", str(10**30)),)

    def test_a_listing_states_no_more_than_stands_in_a_turn(self, facts: Facts) -> None:
        listing = ",".join(f'{{"price": {n}}}' for n in range(CRITICAL_FACTS_MAX + 1))
        assert len(self.stated(facts, f"[{listing}]", "price")) == CRITICAL_FACTS_MAX

    def test_a_long_value_is_cut_before_it_is_written_down(self, facts: Facts) -> None:
        ((_, value),) = self.stated(facts, f'{{"price": "{"x" * 9000}"}}', "price")
        assert len(value) <= NOTE_CHARS_MAX
