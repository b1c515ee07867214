"""The event log: what began has one end, every event knows where it belongs, and the journal tells it again."""

import threading
from collections.abc import Iterable

import pytest

from remit.agents.redundant_loop import RedundantLoop
from remit.core.failure import Ending, ErrorCode
from remit.core.journal import arrivals
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.commands import CallCode, CallModel, CallTool, Retrieve, StartChild, TimerPurpose
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints, OutputContract, SystemRequest
from remit.core.run.correlation import (
    CorrelationContext,
    InferenceEndEvent,
    InferenceStartEvent,
    LifecycleTransitionEvent,
    ToolEndEvent,
    ToolStartEvent,
)
from remit.core.run.inference import FinishReason
from remit.core.run.lifecycle import LifecycleState
from remit.core.run.manifest import Manifest, Origin
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import Node, NodeKind
from remit.core.work.plan import ExecutionPlan, PlanPolicy, Step
from remit.kernel.fold.apply import apply
from remit.kernel.state import RunState
from remit.observe.linked_turns import read_history, states
from remit.observe.views.event_log import Action, CodeEvent, ContextEvent, Event, InMemoryEventLog, Telling
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.orchestrate.patterns.plan_graph import plan_graph
from tests.simulation.scenarios import LEASE
from tests.unit.kernel.builders import Run, in_line, manifest_of, wants
from tests.unit.observe.patterned import GOOD, SCHEMA, InTurn, handlers, planned, voted

ASKED = SystemRequest((user_message("please"),), request_id="request", session_id="session", trace_id="trace")
RUN = CorrelationContext("request", "session", "trace", "run")


class Followed(Run):
    """A run driven by hand whose turns are told as they are taken."""

    def __init__(self, manifest: Manifest | None = None) -> None:
        self.log = InMemoryEventLog()
        self.telling = Telling()
        super().__init__(manifest or manifest_of(request=ASKED))

    def take(self, arrival: arrivals.Arrival, *, after_ms: int = 10):  # type: ignore[no-untyped-def, explicit-override]
        """Let something arrive, and tell what came of it."""
        turn = super().take(arrival, after_ms=after_ms)
        for event in self.telling.events(self.state, turn):
            self.log.record(event)
        return turn

    def told(self, action: Action) -> list[object]:
        """What was told of one kind, oldest first."""
        return [event.what for event in self.log.events() if event.action is action]


def below(command_id: str, caused_by: str = "") -> CorrelationContext:
    return replace(RUN, span_id=f"run.{command_id}", parent_span_id="run", caused_by=caused_by)


@pytest.mark.req("2.5")
def test_a_model_call_is_told_when_it_begins_and_when_it_ends() -> None:
    run = Followed()
    call = run.open(CallModel)[0].id
    run.says("done", usage=TokenUsage(8, 2, 4, duration_ms=70))
    assert run.told(Action.INFER) == [
        InferenceStartEvent(below(call), 1, len(run.state.derived.tools), False, False, None),
        InferenceEndEvent(below(call), 70, 8, 6, FinishReason.STOP, 0),
    ]


def test_a_call_nobody_timed_took_as_long_as_its_turns_say() -> None:
    run = Followed()
    run.says("done")
    end = run.told(Action.INFER)[-1]
    assert isinstance(end, InferenceEndEvent)
    assert end.duration_ms == 10


def test_what_is_asked_of_the_model_shows_in_the_beginning_of_its_call() -> None:
    output = OutputContract(schema={"type": "object"}, grammar="root ::= [a-z]")
    request = replace(ASKED, hints=ExecutionHints(temperature=0.5), output=output, tools=("look",))
    start = Followed(manifest_of(request=request)).told(Action.INFER)[0]
    assert isinstance(start, InferenceStartEvent)
    assert (start.schema_present, start.grammar_present, start.temperature) == (True, True, 0.5)
    assert start.tool_defs_count == 1


def test_a_model_call_that_failed_ends_in_error_and_the_next_attempt_is_its_own() -> None:
    run = Followed()
    run.breaks()
    run.rings(TimerPurpose.RETRY)
    first, end, second = run.told(Action.INFER)
    assert isinstance(end, InferenceEndEvent)
    assert (end.finish_reason, end.tool_call_count) == (FinishReason.ERROR, 0)
    assert isinstance(first, InferenceStartEvent)
    assert isinstance(second, InferenceStartEvent)
    assert first.correlation.span_id == end.correlation.span_id != second.correlation.span_id


@pytest.mark.req("2.5")
def test_a_tool_call_is_told_with_the_call_that_caused_it() -> None:
    run = Followed()
    run.proposes(wants("look", call_id="call-7"))
    command = run.open(CallTool)[0]
    run.returns()
    context = below(command.id, "call-7")
    assert run.told(Action.TOOL) == [
        ToolStartEvent(context, "look", "call-7", command.arguments_hash.hex()),
        ToolEndEvent(context, "look", "call-7", 7, True, ""),
    ]
    reason = run.told(Action.INFER)[1]
    assert isinstance(reason, InferenceEndEvent)
    assert (reason.finish_reason, reason.tool_call_count) == (FinishReason.TOOL, 1)


@pytest.mark.parametrize(
    ("outcome", "code"),
    [("fails", ErrorCode.TOOL_EXECUTION_FAILED), ("refuted", ErrorCode.VALIDATION_RULE_FAILED)],
)
def test_a_tool_call_that_came_to_nothing_names_its_code(outcome: str, code: str) -> None:
    run = Followed()
    run.proposes(wants("look"))
    if outcome == "fails":
        run.fails()
    else:
        run.returns(refuted="not there")
    end = run.told(Action.TOOL)[-1]
    assert isinstance(end, ToolEndEvent)
    assert (end.success, end.error_code) == (False, code)


def test_a_call_that_was_refused_never_began() -> None:
    run = Followed()
    run.proposes(wants("no_such_tool"))
    assert run.told(Action.TOOL) == []


@pytest.mark.req("2.5")
def test_evidence_that_was_found_is_told_and_shown_to_the_model() -> None:
    run = Followed(manifest_of(request=ASKED, retrieves_context=True))
    command = run.open(Retrieve)[0].id
    run.take(arrivals.ContextFound(command, "it is blue", 20))
    assert run.told(Action.CONTEXT) == [ContextEvent(below(command), 10, len("it is blue"), "")]
    start = run.told(Action.INFER)[0]
    assert isinstance(start, InferenceStartEvent)
    assert start.message_count == 2


@pytest.mark.req("2.8")
def test_evidence_that_could_not_be_had_is_recorded_with_the_reason() -> None:
    run = Followed(manifest_of(request=ASKED, retrieves_context=True))
    command = run.open(Retrieve)[0].id
    run.take(arrivals.ContextFailed(command, "the index is gone"))
    assert run.told(Action.CONTEXT) == [ContextEvent(below(command), 10, 0, "the index is gone")]


def test_a_run_is_told_from_state_to_state_with_the_reason_for_each_step() -> None:
    run = Followed()
    run.says("done")
    moves = [move for move in run.told(Action.LIFECYCLE) if isinstance(move, LifecycleTransitionEvent)]
    assert [(move.from_state, move.to_state, move.reason) for move in moves] == [
        (LifecycleState.INIT, LifecycleState.PREPARE, "started"),
        (LifecycleState.PREPARE, LifecycleState.EXECUTE, "found"),
        (LifecycleState.EXECUTE, LifecycleState.VALIDATE, "answered"),
        (LifecycleState.VALIDATE, LifecycleState.COMPLETE, "passed"),
    ]
    assert {move.correlation for move in moves} == {RUN}
    assert {move.attempt for move in moves} == {1}


def test_whatever_is_under_way_when_the_run_ends_ends_with_it() -> None:
    run = Followed()
    run.proposes(wants("look", 1, call_id="a"), wants("look", 2, call_id="b"))
    run.take(arrivals.CancelRequested("ada"))
    ends = [event for event in run.told(Action.TOOL) if isinstance(event, ToolEndEvent)]
    assert [(end.tool_call_id, end.success, end.error_code) for end in ends] == [
        ("a", False, ErrorCode.CANCELLED_SIGNAL),
        ("b", False, ErrorCode.CANCELLED_SIGNAL),
    ]


@pytest.mark.parametrize("retrieves", [False, True])
def test_a_model_call_or_a_search_that_is_cut_off_ends_too(retrieves: bool) -> None:
    run = Followed(manifest_of(request=ASKED, retrieves_context=retrieves))
    run.take(arrivals.CancelRequested("ada"))
    last = run.told(Action.CONTEXT if retrieves else Action.INFER)[-1]
    if retrieves:
        assert isinstance(last, ContextEvent)
        assert last.error == ErrorCode.CANCELLED_SIGNAL
    else:
        assert isinstance(last, InferenceEndEvent)
        assert last.finish_reason is FinishReason.ERROR


def test_a_call_in_doubt_ends_with_its_outcome_or_else_with_its_doubt() -> None:
    run = Followed()
    run.proposes(wants("write"))
    run.approves()
    run.loses()
    assert [type(event) for event in run.told(Action.TOOL)] == [ToolStartEvent]
    run.take(arrivals.CancelRequested("ada"))
    end = run.told(Action.TOOL)[-1]
    assert isinstance(end, ToolEndEvent)
    assert (end.success, end.error_code) == (False, run.state.commands.doubted[run.open(CallTool)[0].id])


def test_an_addendum_tells_nothing() -> None:
    run = Followed()
    run.says("done")
    count = len(run.log.events())
    run.take(arrivals.SessionNoted("ada", "key", "1"))
    assert len(run.log.events()) == count


def test_a_delegated_task_is_a_call_and_its_child_a_span_below_it() -> None:
    run = Followed()
    run.proposes(wants("ask_child", call_id="call-3"))
    command = run.open(StartChild)[0]
    child = replace(run.tally().manifest, run_id=command.run_id, parent=Origin("run", command.id), graph=chat_graph())
    beneath = Followed.__new__(Followed)
    beneath.log, beneath.telling = run.log, run.telling
    Run.__init__(beneath, child)
    moved = [e.what for e in run.log.events() if e.run_id == command.run_id and e.action is Action.LIFECYCLE]
    assert isinstance(moved[0], LifecycleTransitionEvent)
    context = moved[0].correlation
    assert (context.span_id, context.parent_span_id, context.caused_by) == (command.run_id, "run", "call-3")
    start = run.told(Action.TOOL)[0]
    assert isinstance(start, ToolStartEvent)
    assert start.correlation.span_id == command.run_id
    run.heard_from_child(Ending.BUDGET_EXHAUSTED)
    end = run.told(Action.TOOL)[-1]
    assert isinstance(end, ToolEndEvent)
    assert (end.success, end.error_code, end.tool_name) == (False, Ending.BUDGET_EXHAUSTED, "ask_child")


def test_a_delegated_task_that_is_cut_off_with_its_parent_did_not_succeed() -> None:
    run = Followed()
    run.proposes(wants("ask_child"))
    run.take(arrivals.CancelRequested("ada"))
    end = run.told(Action.TOOL)[-1]
    assert isinstance(end, ToolEndEvent)
    assert (end.success, end.error_code) == (False, ErrorCode.CANCELLED_SIGNAL)


def test_a_child_that_the_graph_declares_is_no_call_of_the_model() -> None:
    run = Followed(manifest_of(request=ASKED, graph=in_line(Node("child", NodeKind.CHILD, prompt="go", lease=LEASE))))
    run.heard_from_child()
    assert run.told(Action.TOOL) == []


def test_a_run_that_is_followed_from_its_middle_on_is_told_from_there() -> None:
    run = Run(manifest_of(request=ASKED))
    run.proposes(wants("look"))
    telling = Telling()
    turn = run.returns()
    events = telling.events(run.state, turn)
    assert [event.action for event in events] == [Action.INFER]
    turn = run.says("done")
    kinds = [type(event.what) for event in telling.events(run.state, turn)]
    assert kinds == [InferenceEndEvent, LifecycleTransitionEvent, LifecycleTransitionEvent]


def test_the_journal_tells_the_same_as_those_who_listened() -> None:
    run = Followed()
    run.proposes(wants("look"))
    run.returns()
    run.says("done")
    telling = Telling()
    followed = states(read_history("run", run.journal))
    assert [event for turn, state in followed for event in telling.events(state, turn)] == run.log.events()


@pytest.mark.req("1.21")
def test_the_events_can_be_read_and_belong_to_the_reader() -> None:
    run = Followed()
    run.log.events().clear()
    assert run.log.events() != []
    assert {event.run_id for event in run.log.events()} == {"run"}


def test_events_may_be_recorded_and_read_from_several_threads() -> None:
    log = InMemoryEventLog()
    event = Event(1, "run", Action.CONTEXT, ContextEvent(RUN, 1, 1, ""))

    def record_many() -> None:
        for _ in range(200):
            log.record(event)

    threads = [threading.Thread(target=record_many) for _ in range(4)]
    for thread in threads:
        thread.start()
    while len(log.events()) < 800 and any(thread.is_alive() for thread in threads):
        pass
    for thread in threads:
        thread.join()
    assert len(log.events()) == 800


def test_a_first_turn_alone_already_tells_where_the_run_stands() -> None:
    run = Run(manifest_of(request=ASKED))
    assert isinstance(run.turns[0].arrival, RunStarted)
    state: RunState = run.state
    assert [event.action for event in Telling().events(state, run.turns[0])] == [
        Action.LIFECYCLE,
        Action.LIFECYCLE,
        Action.INFER,
    ]


# Steps of plans.


def where(events: Iterable[Event]) -> list[tuple[str, str]]:
    return [(event.action.value, event.step_name) for event in events]


@pytest.mark.req("0.29")
def test_every_event_of_a_plan_names_its_step_and_those_of_runs_beneath_do_as_well() -> None:
    ran = planned(Step("answer", "infer"), Step("look up", "tool", {"at": "x"}, tool="look"))
    assert ran.response.terminal_code is Ending.SUCCESS
    assert all(event.step_name for event in ran.events)
    own = [event for event in ran.events if event.run_id == ran.state.run_id]
    assert where(own) == [
        ("lifecycle", "plan"),
        ("lifecycle", "prepare"),
        ("lifecycle", "answer"),
        ("tool", "look up"),
        ("tool", "look up"),
        ("lifecycle", "check"),
        ("lifecycle", "done"),
    ]
    beneath = [event for event in ran.events if event.run_id != ran.state.run_id]
    assert {event.step_name for event in beneath} == {"answer"}
    assert {event.action for event in beneath} == {Action.INFER, Action.LIFECYCLE}


@pytest.mark.req("0.28", "0.29")
def test_what_a_step_does_is_caused_by_the_step() -> None:
    ran = planned(Step("answer", "infer"), Step("look up", "tool", {"at": "x"}, tool="look"), Step("size", "count"))
    for step in ("answer", "look up", "size"):
        causes = {event.what.correlation.caused_by for event in ran.events if event.step_name == step}
        assert causes == {step}
    (counted,) = [event.what for event in ran.events if event.action is Action.CODE]
    assert isinstance(counted, CodeEvent)
    assert (counted.error, counted.correlation.parent_span_id) == ("", ran.state.run_id)
    entered = next(event.what for event in ran.events if event.step_name == "answer")
    assert isinstance(entered, LifecycleTransitionEvent)
    assert entered.to_state is LifecycleState.EXECUTE


@pytest.mark.req("0.29")
def test_replicas_of_a_vote_inside_a_plan_name_the_step_of_the_plan() -> None:
    loop = RedundantLoop(InTurn(GOOD, name="voter"), schema=SCHEMA, n=2)
    ran = planned(Step("vote", "voting"), more={"voting": loop})
    asked = [event for event in ran.events if event.action is Action.INFER]
    assert len({event.run_id for event in asked}) == 2
    assert {event.step_name for event in ran.events if event.run_id != ran.state.run_id} == {"vote"}


@pytest.mark.req("0.29")
def test_outside_of_plans_no_step_is_named() -> None:
    assert {event.step_name for event in voted(GOOD).events} == {""}


@pytest.mark.req("0.29")
def test_the_journal_of_a_plan_tells_the_same_events_as_the_run_did() -> None:
    ran = planned(Step("size", "count"), Step("look up", "tool", {"at": "x"}, tool="look"))
    told = [event for event in ran.events if event.run_id == ran.state.run_id]
    state, telling, again = RunState(), Telling(), []
    for turn in ran.turns:
        apply(state, turn, b"")
        again += telling.events(state, turn)
    assert again == told


def test_a_plan_that_is_followed_from_its_middle_on_still_names_its_steps() -> None:
    steps = (Step("answer", "infer", "x"), Step("look up", "tool", {"at": "x"}, tool="look"))
    graph = plan_graph(ExecutionPlan(steps), PlanPolicy(), handlers(["x"]))
    run = Run(manifest_of(request=ASKED, graph=graph))
    (child,) = run.open(StartChild)
    telling = Telling()
    telling.follow(run.state)
    beneath = Run(replace(manifest_of(request=ASKED), run_id=child.run_id, parent=Origin("run", child.id)))
    for event in telling.events(beneath.state, beneath.turns[0]):
        assert (event.step_name, event.what.correlation.caused_by) == ("answer", "answer")


def test_a_run_that_has_not_begun_has_nothing_to_follow() -> None:
    telling = Telling()
    telling.follow(RunState())
    run = Followed()
    telling.follow(run.state)
    turn = run.says("done")
    assert next(event.action for event in telling.events(run.state, turn)) is Action.INFER


def test_a_plan_heard_of_for_the_first_time_in_its_middle_is_told_from_where_it_stands() -> None:
    steps = (Step("size", "count", "x"), Step("again", "count"))
    run = Run(manifest_of(request=ASKED, graph=plan_graph(ExecutionPlan(steps), PlanPolicy(), handlers(["x"]))))
    (code,) = run.open(CallCode)
    run.take(arrivals.CodeReturned(code.id, "{}", kind="object"))
    telling = Telling()
    (again,) = run.open(CallCode)
    turn = run.take(arrivals.CodeReturned(again.id, "{}", kind="object"))
    assert [event.step_name for event in telling.events(run.state, turn)] == ["done"]


def test_a_second_attempt_at_a_step_is_told_as_one() -> None:
    said: list[str] = []

    def once(text: str) -> tuple[str, ...]:
        said.append(text)
        return ("again",) if len(said) == 1 else ()

    ran = planned(Step("answer", "infer"), Step("judge", "validate", retries=1), check=once)
    own = [event.what for event in ran.events if event.run_id == ran.state.run_id]
    attempts = [what.attempt for what in own if isinstance(what, LifecycleTransitionEvent)]
    assert max(attempts) == 2
    assert attempts == sorted(attempts)
