"""What loops ask and what comes of it: one message for each call and each outcome of every golden journal, of any size."""

from pathlib import Path

import pytest

from remit.core.journal.arrivals import ModelAnswered, ModelFailed
from remit.core.journal.codec import decode_turn, hash_turn
from remit.core.journal.commands import CallModel, CallTool
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.rulings import CallSettled
from remit.core.journal.turn import Turn
from remit.core.record import Record, replace
from remit.core.run.messages import Message, user_message
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState, pinned
from remit.observe.reading import Reading
from remit.wire.call_events import model_answered, outcomes_of, requests_of_turn
from remit.wire.message_records import AgentRequest, AgentResponse, LoopCreatedEvent, WireToolCall, WireToolResult
from remit.wire.message_texts import moment
from remit.wire.payloads import MESSAGE_BYTES_MAX, delivered, posted
from remit.wire.projections import turn_messages
from scripts.make_golden import GOLDEN, read_journal

JOURNALS = sorted(GOLDEN.glob("v*/*.journal"))
every_journal = pytest.mark.parametrize("path", JOURNALS, ids=lambda path: f"{path.parent.name}/{path.stem}")


def played(path: Path) -> list[tuple[Turn, RunState, list[Record]]]:
    """Each turn of a journal, the one state that it belongs to, and what the wire was told of it."""
    state, reading = RunState(), Reading()
    found = []
    for data in read_journal(path):
        turn = decode_turn(data)
        apply(state, turn, hash_turn(data))
        reading.take(turn)
        found.append((turn, state, list(turn_messages(turn, state, reading))))
    return found


@pytest.mark.req("3.2", "3.12")
@every_journal
def test_every_call_and_every_outcome_of_a_journal_is_told_once_under_its_id(path: Path) -> None:
    for turn, state, told in played(path):
        origin = pinned(state).forked_from
        if origin is not None and turn.seq <= origin.seq:
            assert told == [], "what was copied was told of its own run"
            continue
        decisions, arrival = turn.decisions, turn.arrival
        models = [one.id for one in decisions if isinstance(one, CallModel)]
        calls = [one.id for one in decisions if isinstance(one, CallTool)]
        settled = [one.command_id for one in decisions if isinstance(one, CallSettled)]
        answered = [arrival.command_id] if isinstance(arrival, ModelAnswered | ModelFailed) else []
        ids = {kind: [command_of(name)[1] for name in named(told, kind)] for kind in (AgentRequest, AgentResponse)}
        assert (ids[AgentRequest], ids[AgentResponse]) == (models, answered)
        assert len(named(told, WireToolCall)) == len(calls)
        assert len(named(told, WireToolResult)) == len(settled)
        for message in told:
            whole = message if getattr(message, "task_id", "given") else replace(message, task_id="t")
            post = posted(whole)
            assert delivered(post.subject, post.data, post.headers) == whole


def command_of(name: str) -> tuple[str, str]:
    run_id, _, command_id = name.rpartition(":")
    return run_id, command_id


def named(told: list[Record], kind: type[Record]) -> list[str]:
    field = {WireToolCall: "id", WireToolResult: "call_id"}.get(kind, "request_id")
    return [getattr(message, field) for message in told if isinstance(message, kind)]


@pytest.mark.req("3.2")
@every_journal
def test_a_call_has_one_id_from_its_proposal_to_its_result_and_in_what_models_are_shown(path: Path) -> None:
    proposed, executed, resulted = set[str](), set[str](), set[str]()
    for _, state, told in played(path):
        for one in told:
            if isinstance(one, AgentResponse) and one.message is not None:
                proposed |= {call.id for call in one.message.tool_calls}
            elif isinstance(one, WireToolCall):
                executed.add(one.id)
                assert one.id in proposed or one.id.count(".") == state.run_id.count(".") + 1
            elif isinstance(one, WireToolResult):
                resulted.add(one.call_id)
                assert one.call_id in executed
            elif isinstance(one, AgentRequest):
                own = [message for message in one.messages if f"{state.run_id}:" in message.tool_call_id]
                if pinned(state).forked_from is not None:
                    continue  # What was copied was told as that run's.
                assert {message.tool_call_id for message in own} <= proposed


@pytest.mark.req("3.2")
@every_journal
def test_a_call_that_happened_is_told_with_an_error_only_where_it_failed(path: Path) -> None:
    for _, state, told in played(path):
        traces = {trace.code for trace in state.calls.made.values()}
        for one in told:
            if isinstance(one, WireToolResult):
                assert not one.error.startswith("EFFECT_UNVERIFIED")
                if one.metadata:
                    assert (one.metadata, one.error) == ({"agentic": {"unverified": True}}, "")
                    assert "EFFECT_UNVERIFIED" in traces


@pytest.mark.req("3.2")
def test_an_answer_has_its_status_and_a_call_without_an_id_is_given_one() -> None:
    called = model_answered(ModelAnswered("2.0", calls=(ProposedCall("", "read_file", "{}", b""),)), "a:b")
    assert (called.status, command_of(called.request_id)) == ("tool_call", ("a:b", "2.0"))
    assert called.message is not None
    assert called.message.tool_calls[0].id == "a:b:2.0.1"
    assert model_answered(ModelAnswered("2.0", "It says hello."), "r").status == "complete"
    silent = model_answered(ModelAnswered("2.0"), "r")
    assert (silent.status, silent.error.partition(":")[0]) == ("error", "INFERENCE_MALFORMED_RESPONSE")
    post = posted(called)
    assert post.subject == "agent.response.a=3Ab=3A2=2E0"
    assert delivered(post.subject, post.data, post.headers) == called


@every_journal
def test_a_failed_model_call_is_a_response_of_status_error_with_its_text(path: Path) -> None:
    for turn, state, told in played(path):
        if isinstance(turn.arrival, ModelFailed) and told:
            (response,) = [one for one in told if isinstance(one, AgentResponse)]
            assert (response.status, response.error.partition(": ")[0]) == ("error", turn.arrival.code)
            assert turn.arrival.message in response.error
            assert command_of(response.request_id) == (state.run_id, turn.arrival.command_id)


@every_journal
def test_a_loop_was_created_when_its_own_first_turn_was_written(path: Path) -> None:
    created = [
        (turn, told) for turn, _, messages in played(path) for told in messages if isinstance(told, LoopCreatedEvent)
    ]
    for turn, event in created:
        assert event.created_at == moment(turn.at_ms)
    assert len(created) == 1 or not created


@pytest.mark.parametrize("chars", [1, 60_000, 300_000, 3_000_000])
@pytest.mark.parametrize("count", [1, 40])
def test_a_request_of_any_length_fits_a_message_and_shows_its_newest_words(chars: int, count: int) -> None:
    path = GOLDEN / "v4" / "chat_with_a_read.journal"
    (turn, state, _) = next(one for one in played(path) if any(isinstance(d, CallModel) for d in one[0].decisions))
    long: list[Message | ModelAnswered] = [user_message(f"{number} " + "\u00e9" * chars) for number in range(count)]
    state.talk.context = long
    command = next(one for one in turn.decisions if isinstance(one, CallModel))
    turn = replace(turn, decisions=(replace(command, messages_count=count),))
    (request,) = requests_of_turn(turn, state, str)
    assert isinstance(request, AgentRequest)
    assert len(posted(request).data) <= MESSAGE_BYTES_MAX
    assert request.messages[-1].content.startswith(f"{count - 1} ")
    if len(request.messages) < count:
        assert (
            request.messages[0].content == f"[{count - len(request.messages) + 1} earlier messages are left out here]"
        )


def test_a_call_whose_arguments_are_long_is_told_by_their_size_and_one_that_shows_nothing_is_not_told() -> None:
    path = GOLDEN / "v4" / "chat_with_a_read.journal"
    steps = played(path)
    turn, state, _ = next(one for one in steps if any(isinstance(d, CallTool) for d in one[0].decisions))
    call = next(one for one in turn.decisions if isinstance(one, CallTool))
    long = '{"text": "' + "x" * 500_000 + '"}'
    (told,) = requests_of_turn(replace(turn, decisions=(replace(call, arguments=long),)), state, str)
    assert isinstance(told, WireToolCall)
    assert told.arguments["size_bytes"] > 500_000
    turn, state, _ = next(one for one in steps if any(isinstance(d, CallModel) for d in one[0].decisions))
    state.talk.context = []
    asked = tuple([one for one in turn.decisions if isinstance(one, CallModel)])
    assert list(requests_of_turn(replace(turn, decisions=asked), state, str)) == []
    assert list(outcomes_of(replace(turn, decisions=(CallSettled("unknown", call_rung(steps)),)), state, str)) == []


def call_rung(steps: list[tuple[Turn, RunState, list[Record]]]):  # type: ignore[no-untyped-def]
    return next(one.rung for turn, _, _ in steps for one in turn.decisions if isinstance(one, CallSettled))
