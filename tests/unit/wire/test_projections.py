"""Runs as the wire shows them, read off every golden journal: loops, trajectories and events."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from remit.core.failure import ENDINGS, Ending
from remit.core.journal.codec import decode_turn, hash_turn
from remit.core.record import Record, replace
from remit.core.run.lifecycle import LoopState, Outcome
from remit.core.run.manifest import SessionLink
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState, loop_state, pinned
from remit.observe.reading import Reading
from remit.wire.message_records import (
    AgentIdentity,
    ContextEvent,
    LoopCancelledEvent,
    LoopCompletedEvent,
    LoopCreatedEvent,
    LoopEntity,
    LoopFailedEvent,
    Trajectory,
)
from remit.wire.payloads import checked_record, posted, read, trajectory_entry, written
from remit.wire.projections import context_events, loop_ended, loop_entity, trajectory_of, turn_messages
from scripts.make_golden import GOLDEN, read_journal

JOURNALS = sorted(GOLDEN.glob("v*/*.journal"))
every_journal = pytest.mark.parametrize("path", JOURNALS, ids=lambda path: f"{path.parent.name}/{path.stem}")


class Told:
    """A journal played from its first turn on: each loop that its bucket showed, and each message that was told."""

    def __init__(self, path: Path) -> None:
        self.state, self.reading = RunState(), Reading()
        self.loops: list[LoopEntity] = []
        self.messages: list[Record] = []
        for data in read_journal(path):
            turn = decode_turn(data)
            apply(self.state, turn, hash_turn(data))
            self.reading.take(turn)
            self.loops.append(loop_entity(self.state, self.reading))
            self.messages += turn_messages(turn, self.state, self.reading)

    def all(self, kind: type[Record]) -> Iterator[Record]:
        return (message for message in self.messages if isinstance(message, kind))


@cache
def told(name: str, version: str = "v4") -> Told:
    return Told(GOLDEN / version / f"{name}.journal")


@pytest.mark.req("3.6", "3.11")
@every_journal
def test_a_loop_is_in_order_after_every_turn_of_a_golden_journal(path: Path) -> None:
    run = told(path.stem, path.parent.name)
    for loop in run.loops:
        assert read(written(loop), LoopEntity) == loop
    last = run.loops[-1]
    assert last.state == loop_state(run.state)
    assert last.task_id == pinned(run.state).request.request_id


@pytest.mark.req("3.13", "3.14")
@every_journal
def test_every_message_of_a_golden_journal_can_be_posted_and_the_last_says_how_it_ended(path: Path) -> None:
    run = told(path.stem, path.parent.name)
    for message in run.messages:
        # Some golden journals are of requests that were never given an id.
        named = message if getattr(message, "task_id", "given") else replace(message, task_id="t")
        assert posted(named).data
    assert isinstance(run.messages[0], LoopCreatedEvent)
    ended = [m for m in run.messages if isinstance(m, LoopCompletedEvent | LoopFailedEvent | LoopCancelledEvent)]
    ending = run.state.end.ending
    assert [message.outcome for message in ended] == ([] if ending is None else [ENDINGS[ending].outcome.value])


@pytest.mark.req("3.9")
@every_journal
def test_the_trajectory_of_a_golden_journal_is_in_order_and_its_totals_are_sums(path: Path) -> None:
    run = told(path.stem, path.parent.name)
    for is_full in (False, True):
        trajectory = checked_record(trajectory_of(run.state, run.reading, is_full=is_full))
        data, _ = trajectory_entry(trajectory)
        assert read(data, Trajectory) == trajectory
        assert trajectory.total_tokens_in == sum(step.tokens_in for step in trajectory.steps)
        moments = [step.timestamp for step in trajectory.steps]
        assert moments == sorted(moments)
        assert any(step.messages for step in trajectory.steps) <= is_full


def test_a_chat_with_a_read_shows_its_calls_and_its_answer() -> None:
    run = told("chat_with_a_read")
    steps = trajectory_of(run.state, run.reading, is_full=True).steps
    assert [step.step_type for step in steps] == ["model_call", "tool_call", "tool_call", "model_call"]
    first, *calls, last = steps
    assert first.prompt
    assert [step.tool_name for step in steps if step.tool_name] == [call.name for call in first.tool_calls]
    assert [step.tool_arguments for step in steps if step.tool_name] == [call.arguments for call in first.tool_calls]
    assert last.prompt in [call.tool_result for call in calls]
    assert [message.role for message in last.messages] == ["user", "assistant", "tool", "tool"]
    (ended,) = run.all(LoopCompletedEvent)
    assert isinstance(ended, LoopCompletedEvent)
    assert ended.result == last.response == run.loops[-1].result
    assert run.loops[-1].outcome == Outcome.SUCCESS


@pytest.mark.req("3.25")
def test_who_asked_for_a_pause_and_what_the_loop_was_doing_are_shown_while_it_is_paused() -> None:
    loops = told("paused_and_resumed").loops
    paused = [loop for loop in loops if loop.state == LoopState.PAUSED]
    assert paused
    assert all(loop.pause_requested_by and loop.state_before_pause for loop in paused)
    assert not LoopState(paused[0].state_before_pause).is_overlay
    assert (loops[-1].pause_requested, loops[-1].pause_requested_by, loops[-1].state_before_pause) == (False, "", "")


@pytest.mark.req("3.25")
@pytest.mark.parametrize("name", ["cancelled_in_doubt", "cancelled_while_waiting"])
def test_who_cancelled_a_loop_and_when_is_shown(name: str) -> None:
    run = told(name)
    loop = run.loops[-1]
    (event,) = run.all(LoopCancelledEvent)
    assert isinstance(event, LoopCancelledEvent)
    assert loop.cancelled_by == event.cancelled_by != ""
    assert loop.cancelled_at == event.cancelled_at == loop.completed_at != ""
    assert (loop.state, loop.outcome) == ("cancelled", "cancelled")


def test_a_failed_loop_says_why_in_a_code_and_in_words() -> None:
    run = told("budget_exhausted")
    (event,) = run.all(LoopFailedEvent)
    assert isinstance(event, LoopFailedEvent)
    assert event.reason == Ending.BUDGET_EXHAUSTED
    assert run.loops[-1].error == event.error != ""


def test_a_child_names_its_parent_and_its_depth() -> None:
    loop = told("child_of_a_call").loops[0]
    assert loop.parent_loop_id
    assert loop.depth >= 1


@pytest.mark.req("3.15")
def test_compressing_a_context_is_told_as_its_beginning_and_its_end() -> None:
    starting, complete, *_ = (message for message in told("compressed").all(ContextEvent))
    assert isinstance(starting, ContextEvent)
    assert isinstance(complete, ContextEvent)
    assert (starting.type, complete.type) == ("compaction_starting", "compaction_complete")
    assert complete.tokens_saved > 0
    assert complete.utilization < starting.utilization


@pytest.mark.req("3.15")
def test_an_exchange_that_is_over_leaves_the_results_of_its_tools_behind() -> None:
    run = Told(GOLDEN / "v4" / "chat_with_a_read.journal")
    run.state.manifest = replace(pinned(run.state), session=SessionLink(1))
    last = decode_turn(read_journal(GOLDEN / "v4" / "chat_with_a_read.journal")[-1])
    (event,) = context_events(last, run.state)
    assert (event.type, event.loop_id) == ("gc_complete", run.state.run_id)
    assert event.tokens_saved > 0
    run.state.talk.context = []
    assert list(context_events(last, run.state)) == []


def test_results_that_wait_for_others_of_the_same_answer_are_pending() -> None:
    pending = [
        loop for path in JOURNALS for loop in told(path.stem, path.parent.name).loops if loop.pending_tool_results
    ]
    assert pending
    for loop in pending:
        assert all(key == result.call_id for key, result in loop.pending_tool_results.items())


def test_an_answer_of_any_length_is_shown_in_a_loop_that_fits_its_bucket() -> None:
    run = Told(GOLDEN / "v4" / "chat_with_a_read.journal")
    long = loop_entity(run.state, run.reading, text=lambda _: "x" * 5_000_000)
    assert "5000000 bytes in all" in long.result
    assert read(written(long), LoopEntity) == long
    assert "bytes in all" in str(loop_ended(run.state, run.reading, text=lambda _: "x" * 5_000_000))


def test_a_loop_shows_the_identity_of_its_agent() -> None:
    run, identity = told("chat_with_a_read"), AgentIdentity(did="did:key:z6Mk", display_name="general")
    assert loop_entity(run.state, run.reading, identity=identity).identity == identity


def test_a_loop_that_goes_on_has_no_end_to_tell() -> None:
    run = Told(GOLDEN / "v4" / "paused_and_resumed.journal")
    run.state.end.ending = None
    with pytest.raises(AssertionError):
        loop_ended(run.state, run.reading)
