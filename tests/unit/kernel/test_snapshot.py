"""A state as bytes: what is kept, what is made anew, and which bytes are no snapshot."""

from dataclasses import dataclass, field, fields, is_dataclass, make_dataclass

import msgspec
import pytest

from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.commands import CallCode
from remit.core.journal.rulings import Rung
from remit.core.record import BlobRef
from remit.core.run.manifest import Source
from remit.core.run.messages import Message, user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.values import Output, ValueKind
from remit.kernel.fold import snapshot
from remit.kernel.fold.snapshot import DERIVED, layout_of, snapshot_of, state_from
from remit.kernel.results.doubt import LOST
from remit.kernel.state import RunState
from remit.kernel.traces import CallTrace, Streak
from tests.unit.kernel.builders import Run, manifest_of, wants
from tests.unit.kernel.plans import PlanRun, child_step, code_step, plan_of, vote_of


def started() -> RunState:
    """The state of a run whose model wants a tool called."""
    run = Run()
    run.take(arrivals.FeedbackGiven("ada", "hurry", 10))
    run.proposes(wants("look"))
    return run.state


def kept(state: RunState) -> RunState:
    data = snapshot_of(state)
    assert data is not None
    restored = state_from(data)
    assert restored is not None
    return restored


def test_a_state_comes_back_with_every_field() -> None:
    state = started()
    assert state.commands.open
    assert kept(state) == state


def test_what_follows_from_the_manifest_is_made_anew() -> None:
    state = started()
    restored = kept(state)
    assert restored.derived == state.derived
    assert state.derived.tools
    assert state.derived.charges
    assert restored.derived.graph is state.derived.graph


def test_every_field_of_the_state_and_of_its_groups_is_kept_but_what_is_derived() -> None:
    state, names = RunState(), set[str]()
    for entry in fields(state):
        group = getattr(state, entry.name)
        names |= {f"{entry.name}.{inner.name}" for inner in fields(group)} if is_dataclass(group) else {entry.name}
    kept_names = {entry.name for entry in layout_of(RunState).fields}
    assert names - kept_names == {f"{DERIVED}.{inner.name}" for inner in fields(state.derived)}
    assert kept_names < names


def test_maps_keep_their_order_and_their_keys_of_two_parts() -> None:
    state = started()
    state.children.waiting = {"9.1": Ending.BUDGET_EXHAUSTED, "2.1": Ending.CONFIRM_REQUIRED}
    state.calls.repeats = {("look", b"\xff"): 2, ("fetch", b""): 1}
    restored = kept(state)
    assert list(restored.children.waiting.items()) == list(state.children.waiting.items())
    assert list(restored.calls.repeats.items()) == list(state.calls.repeats.items())


def test_messages_and_answers_are_told_apart() -> None:
    state = started()
    state.talk.context = [user_message("hello"), ModelAnswered("1.1", "hi"), user_message(""), ModelAnswered("2.1")]
    restored = kept(state)
    assert restored.talk.context == state.talk.context
    assert [*map(type, restored.talk.context)] == [Message, ModelAnswered, Message, ModelAnswered]


def test_a_trace_that_was_kept_can_be_changed_without_changing_another() -> None:
    state = started()
    state.calls.made = {"1.1": CallTrace("call", "look", b"hash", Rung.ATTEMPTED, content="x")}
    restored = kept(state)
    restored.calls.made["1.1"].rung = Rung.COMMITTED
    assert state.calls.made["1.1"].rung is Rung.ATTEMPTED
    assert restored.calls.made["1.1"].content == "x"


def test_what_simulated_runs_do_not_have_is_kept_too() -> None:
    state = started()
    state.session = {"b": "1", "a": "2"}
    state.sources = {"look": Source("look", "tools.py", "look", "digest")}
    state.counts.failures_in_a_row = {"look": Streak(2, "TOOL_TIMEOUT", 3)}
    state.counts.repeats_blocked = 3
    restored = kept(state)
    assert restored == state
    assert type(restored.counts.failures_in_a_row["look"]) is Streak
    assert list(restored.session) == ["b", "a"]


def test_a_state_whose_sum_outgrew_every_number_format_is_not_kept() -> None:
    state = started()
    state.talk.prompt_tokens = 2**64
    assert snapshot_of(state) is None


def test_a_state_that_has_not_started_is_no_state_to_go_on_from() -> None:
    data = snapshot_of(RunState())
    assert data is not None
    assert state_from(data) is None


def test_bytes_that_are_no_snapshot_give_no_state() -> None:
    data = snapshot_of(started())
    assert data is not None
    mark, body = data[:32], data[32:]
    changed = bytes([mark[0] ^ 1]) + mark[1:]
    wrong_types = msgspec.msgpack.encode([1, *msgspec.msgpack.decode(body)[1:]])
    not_unicode = body.replace(b"hurry", b"\xff\xffrry")
    assert not_unicode != body
    bad = (b"", mark, body, changed + body, mark + body[:-1], data + b"\0", mark + wrong_types, mark + not_unicode)
    for given in bad:
        assert state_from(given) is None


@pytest.mark.parametrize("name", ["FORMAT", "KERNEL_VERSION"])
def test_a_snapshot_of_another_format_or_other_rules_is_not_read(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = snapshot_of(started())
    assert data is not None
    monkeypatch.setattr(snapshot, name, 99)
    later = layout_of.__wrapped__(RunState)
    assert later.mark != layout_of(RunState).mark
    monkeypatch.setattr(snapshot, "layout_of", lambda _: later)
    assert state_from(data) is None


class Inner(msgspec.Struct):
    count: int


class OtherInner(msgspec.Struct):
    count: int
    more: str = ""


@dataclass
class Known:
    first: int = 0
    second: dict[str, Inner] = field(default_factory=dict)


def test_a_changed_name_order_or_shape_of_any_field_changes_the_mark() -> None:
    marks = {layout_of(Known).mark}
    for shape in (
        [("first", int), ("other", dict[str, Inner])],
        [("second", dict[str, Inner]), ("first", int)],
        [("first", int), ("second", dict[str, OtherInner])],
        [("first", int | None), ("second", dict[str, Inner])],
        [("first", int), ("second", dict[str, Inner]), ("third", int)],
    ):
        marks.add(layout_of(make_dataclass("Known", shape)).mark)
    assert len(marks) == 6
    assert layout_of(make_dataclass("Known", [("first", int), ("second", dict[str, Inner])])).mark in marks


def test_children_their_votes_and_their_confidence_come_back() -> None:
    run = PlanRun(vote_of())
    run.ends(Ending.UNAVAILABLE_DEP, error=ErrorCode.INFERENCE_ENGINE_ERROR, message="down")
    run.answers("a")
    run.vanishes()
    restored = kept(run.state)
    assert restored == run.state
    assert [child.ending for child in restored.children.ended] == ["UNAVAILABLE_DEP", "SUCCESS", LOST]
    assert restored.children.ended[0].error is ErrorCode.INFERENCE_ENGINE_ERROR
    assert restored.children.ended[1].usage == TokenUsage(prompt_tokens=5, output_tokens=2)
    other = PlanRun(vote_of(1))
    other.answers("a")
    other.elects(0, 1, 1_000_000)
    assert kept(other.state).result.confidence_ppm == 1_000_000


def test_outputs_come_back_in_their_order_with_texts_wherever_they_live() -> None:
    run = PlanRun(manifest_of(graph=plan_of(child_step("b"), code_step("a", "b"), code_step("c", "a"))))
    run.answers("found it")
    long = BlobRef(b"digest", 5000)
    run.take(arrivals.CodeReturned(run.open(CallCode)[0].id, long, kind="json"))
    restored = kept(run.state)
    assert list(restored.result.outputs) == ["b", "a"]
    assert restored.result.outputs["a"] == Output(ValueKind.JSON, long, run.state.result.outputs["a"].command_id)
    assert restored == run.state
