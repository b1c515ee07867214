"""decide(): rule on one arrival. The tables in this file are the table of contents of the kernel.

Rule 1: same version, same state, same arrival, same time: same decisions on any machine.
Rule 2: an arrival that cannot be judged raises IllegalArrival and changes nothing.
Rule 3: a rule settles what arrived and names the outcome of the node; only here does the run move along its graph.
Rule 4: a run that is paused, past its deadline or waiting for steps or time leaves nothing new issued, timers excepted.
Rule 5: a node that still waits for something is left only for good, and so is any node by a cancel or a timeout.
Rule 6: what the model proposed is judged once, by the next tool node; where the run goes elsewhere, it is refused,
        unless the run ends without success.

weigh() decides, and its tally holds the turn. take_turn() and decide() are the same for those who want no more than the
turn or its decisions.
"""

from collections.abc import Callable, Mapping
from typing import Any

from remit.core.failure import ArrivalFault, Ending, IllegalArrival
from remit.core.journal import arrivals, commands
from remit.core.journal.arrivals import (
    Arrival,
    RetryRequested,
    RunStarted,
    SessionNoted,
    TextShown,
    ToolFailed,
    ToolOutcomeLost,
    ToolReturned,
)
from remit.core.journal.rulings import AddendumNoted, NodeEntered, OutcomeParked, RunEnded
from remit.core.journal.turn import KERNEL_VERSION, Decision, Turn
from remit.core.limits.budget import Dimension
from remit.core.work.graph import EXIT_ENDINGS, EndingClass, Node, NodeKind, NodeOutcome
from remit.kernel.budget.early_stop import stop_early
from remit.kernel.budget.exhaustion import freeze, freeze_for_time, is_out_of_time, may_freeze
from remit.kernel.budget.spend import end_exhausted, iterations_exhausted
from remit.kernel.budget.wall_clock import is_past_deadline, stop_for_time, wind_up
from remit.kernel.fold.apply import opened_state
from remit.kernel.graph.compiled import GuardUndecided
from remit.kernel.graph.condition_view import view_of
from remit.kernel.people.outdated import SETTLING, ask_as_of_now
from remit.kernel.results.acceptance import refuse_unaccepted
from remit.kernel.results.doubt import clears, contradicts, hear_again
from remit.kernel.results.endings import CLASS_OF, enter_terminal, head_for, refuse_success
from remit.kernel.results.tasks import warn_of_task
from remit.kernel.rules import child, code, host, human, model, signal, started, timer, tool
from remit.kernel.rules.human import RELEASED, THAWED
from remit.kernel.rules.signal import on_retry, on_session_noted
from remit.kernel.rules.started import STARTED
from remit.kernel.rules.timer import AGAIN
from remit.kernel.rules.tool import FILTERED
from remit.kernel.state import RunState
from remit.kernel.tally import Tally

Rule = Callable[[Tally, Any], str | None]
Entry = Callable[[Tally, Node], str | None]

# What an ended run still hears, beside the late outcomes of its calls.
HEARD_LATE = (RetryRequested, SessionNoted)
# Endings that a pause does not hold up.
AT_ONCE = (Ending.USER_CANCEL, Ending.TIMEOUT)
_STEPS = int(Dimension.STEPS)
# Looking a member up in its enum takes longer than anything else in _enter(), which runs once or twice a turn.
_TERMINAL, _TOOL = NodeKind.TERMINAL, NodeKind.TOOL
_CALL_TOOL = commands.CallTool

# Arrival kind -> rule.
RULES: Mapping[type[Arrival], Rule] = {
    arrivals.RunStarted: started.on_started,
    arrivals.ModelAnswered: model.on_answered,
    arrivals.ModelFailed: model.on_model_failed,
    arrivals.ToolReturned: tool.on_returned,
    arrivals.ToolFailed: tool.on_tool_failed,
    arrivals.ToolOutcomeLost: tool.on_outcome_lost,
    arrivals.ToolReconciled: tool.on_reconciled,
    arrivals.CodeReturned: code.on_code_returned,
    arrivals.CodeFailed: code.on_code_failed,
    arrivals.ContextFound: code.on_context_found,
    arrivals.ContextFailed: code.on_context_failed,
    arrivals.ApprovalGiven: human.on_approved,
    arrivals.ApprovalRefused: human.on_refused,
    arrivals.OutcomeJudged: human.on_judged,
    arrivals.QuestionAnswered: human.on_question_answered,
    arrivals.TimerFired: timer.on_timer,
    arrivals.ChildEnded: child.on_child_ended,
    arrivals.ChildSuspended: child.on_child_suspended,
    arrivals.ChildLost: child.on_child_lost,
    arrivals.CancelRequested: signal.on_cancel,
    arrivals.PauseRequested: signal.on_pause,
    arrivals.ResumeRequested: signal.on_resume,
    arrivals.FeedbackGiven: signal.on_feedback,
    arrivals.RetryRequested: signal.on_retry,
    arrivals.RunForked: signal.on_forked,
    arrivals.SessionNoted: signal.on_session_noted,
    arrivals.SourcesAccepted: signal.on_sources_accepted,
    arrivals.RunHalted: signal.on_halted,
    arrivals.RunTaken: signal.on_taken,
    arrivals.CallProposed: host.on_proposed,
    arrivals.TextShown: host.on_shown,
    arrivals.HostFinished: host.on_finished,
}

# Outcome kind -> the command it must answer.
ANSWERS: Mapping[type[Arrival], type[commands.Command]] = {
    arrivals.ModelAnswered: commands.CallModel,
    arrivals.ModelFailed: commands.CallModel,
    arrivals.ToolReturned: commands.CallTool,
    arrivals.ToolFailed: commands.CallTool,
    arrivals.ToolOutcomeLost: commands.CallTool,
    arrivals.ToolReconciled: commands.ReconcileTool,
    arrivals.CodeReturned: commands.CallCode,
    arrivals.CodeFailed: commands.CallCode,
    arrivals.ContextFound: commands.Retrieve,
    arrivals.ContextFailed: commands.Retrieve,
    arrivals.ApprovalGiven: commands.AskHuman,
    arrivals.ApprovalRefused: commands.AskHuman,
    arrivals.OutcomeJudged: commands.AskHuman,
    arrivals.QuestionAnswered: commands.AskHuman,
    arrivals.TimerFired: commands.SetTimer,
    arrivals.ChildEnded: commands.StartChild,
    arrivals.ChildSuspended: commands.StartChild,
    arrivals.ChildLost: commands.StartChild,
}

# Node kind -> what entering such a node issues.
ENTRIES: Mapping[NodeKind, Entry] = {
    NodeKind.MODEL: model.enter_model,
    NodeKind.TOOL: tool.enter_tool,
    NodeKind.RETRIEVE: code.enter_retrieve,
    NodeKind.RERANK: code.enter_code,
    NodeKind.DECIDE: code.enter_code,
    NodeKind.VALIDATE: code.enter_validate,
    NodeKind.HUMAN: human.enter_human,
    NodeKind.CHILD: child.enter_child,
    NodeKind.MAP: child.enter_child,
    NodeKind.TERMINAL: enter_terminal,
    NodeKind.HOST: host.enter_host,
}


def take_turn(state: RunState, arrival: Arrival, at_ms: int) -> Turn:
    """The next turn of a run: the arrival and what is decided about it."""
    return weigh(state, arrival, at_ms).turn


def decide(state: RunState, arrival: Arrival, at_ms: int) -> tuple[Decision, ...]:
    """Rule on one arrival, or raise IllegalArrival."""
    return weigh(state, arrival, at_ms).turn.decisions


def weigh(state: RunState, arrival: Arrival, at_ms: int) -> Tally:
    """The tally of a turn, and the turn in it. What it counted is what the state will hold once that is applied."""
    kind = type(arrival)
    answers, answering, command = ANSWERS.get(kind), "", None
    if answers is None:
        _admit_unasked(state, arrival)
        if isinstance(arrival, RunStarted):
            state = opened_state(arrival, at_ms)
    else:
        answering = arrival.command_id  # type: ignore[union-attr]  # every kind in ANSWERS names its command
        command = state.commands.open.get(answering)
        if type(command) is not answers or answering in state.commands.doubted:
            _admit_outcome(state, arrival, answering)
    tally = Tally(state, at_ms, answering)
    if answers is _CALL_TOOL and command is None:
        hear_again(tally, arrival)  # type: ignore[arg-type]  # nothing else about a settled call is admitted
    elif state.end.ending is None:
        outcome = RULES[kind](tally, arrival)
        if at_ms >= state.clock.deadline_at_ms and is_out_of_time(tally):
            freeze_for_time(tally)
        _move(tally, outcome)
        if at_ms >= state.clock.deadline_at_ms or state.clock.is_standing:
            _look_at_the_clock(tally)
    else:
        _decide_late(tally, arrival)
    if state.people.asking and kind in SETTLING and state.end.ending is None:
        ask_as_of_now(tally, arrival)
    tally.turn = Turn(state.seq + 1, at_ms, state.head, KERNEL_VERSION, arrival, tuple(tally.decisions))
    return tally


def _look_at_the_clock(tally: Tally) -> None:
    """Stop a run whose time is up, and wind up a clock that stood still, unless this turn has ended the run."""
    if tally.decisions and type(tally.decisions[-1]) is RunEnded:
        return
    if is_past_deadline(tally):
        _move(tally, stop_for_time(tally))
    else:
        wind_up(tally)


def _admit_outcome(state: RunState, arrival: Arrival, command_id: str) -> None:
    """Let an outcome through that answers an open command, and says more of one in doubt than that it is unknown.

    One that tells that a call happened which was settled as not done is let through, once; and so is one that tells what
    became of a call whose outcome its agent did not know.
    """
    command, kind = state.commands.open.get(command_id), type(arrival)
    if command is None and isinstance(arrival, ToolReturned) and contradicts(state, arrival):
        return
    if command is None and clears(state, arrival):
        return
    if type(command) is not ANSWERS[kind]:
        raise _unanswerable(state, kind, command_id)
    if _knows_nothing(state, arrival):
        raise IllegalArrival(ArrivalFault.DUPLICATE, f"command {command_id} of run {state.run_id} is in doubt already")


def _admit_unasked(state: RunState, arrival: Arrival) -> None:
    """Let a start through where there is no run yet, and a signal where there is one that has not ended."""
    kind = type(arrival)
    if (kind is RunStarted) == (state.seq >= 0):
        fault = ArrivalFault.ALREADY_STARTED if state.seq >= 0 else ArrivalFault.NOT_STARTED
        raise IllegalArrival(fault, f"{kind.__name__} for run {state.run_id!r}, which has {state.seq + 1} turns")
    if state.end.ending is not None and kind not in HEARD_LATE and not _tells_of_an_effect(arrival):
        raise IllegalArrival(ArrivalFault.RUN_ENDED, f"run {state.run_id} ended as {state.end.ending}")


def _tells_of_an_effect(arrival: Arrival) -> bool:
    """Whether an agent elsewhere reports an effect that was not allowed."""
    return isinstance(arrival, TextShown) and arrival.made is not None


def _unanswerable(state: RunState, kind: type[Arrival], command_id: str) -> IllegalArrival:
    """Why no open command is answered by this kind of outcome."""
    if state.seq < 0:
        return IllegalArrival(ArrivalFault.NOT_STARTED, f"{kind.__name__} for a run that has no turn yet")
    command = state.commands.open.get(command_id)
    if command is None:
        return IllegalArrival(_fault_of(state, command_id), f"command {command_id!r} of run {state.run_id} is not open")
    message = f"{kind.__name__} does not answer {type(command).__name__} {command_id}"
    return IllegalArrival(ArrivalFault.UNKNOWN_COMMAND, message)


def _knows_nothing(state: RunState, arrival: Arrival) -> bool:
    """Whether an outcome says no more than that it is unknown. What was returned is shown of a run that has ended."""
    if isinstance(arrival, ToolFailed):
        return tool.leaves_open(arrival)
    if isinstance(arrival, ToolReturned):
        return state.end.ending is None and bool(arrival.violations) and not arrival.refuted
    return isinstance(arrival, ToolOutcomeLost)


def _fault_of(state: RunState, command_id: str) -> ArrivalFault:
    """A command of a turn already taken was settled: its outcome is a duplicate."""
    seq = command_id.partition(".")[0]
    # Ids come from outside too; one with more digits than any turn so far is not even read as a number.
    is_taken = seq.isdecimal() and len(seq) <= len(str(state.seq)) and int(seq) <= state.seq
    return ArrivalFault.DUPLICATE if is_taken else ArrivalFault.UNKNOWN_COMMAND


def _decide_late(tally: Tally, arrival: Arrival) -> None:
    """After the ending only late outcomes, retries and session entries are heard; none changes how the run ended."""
    if isinstance(arrival, RetryRequested):
        on_retry(tally, arrival)
    elif isinstance(arrival, SessionNoted):
        on_session_noted(tally, arrival)
    elif isinstance(arrival, TextShown) and arrival.made is not None:
        tally.rule(AddendumNoted(host.note_unallowed(tally, arrival.made)))
    else:
        tally.rule(AddendumNoted(tally.answering))


def _move(tally: Tally, outcome: str | None) -> None:
    """Follow edges until the run waits for something, is paused, or has ended.

    Every node entered on the way costs a step or is a terminal, so this ends.
    """
    sure = tally.graph.sure
    while outcome is not None:
        if (tally.paused or (tally.asking and tally.is_frozen)) and tally.ending not in AT_ONCE:
            _park(tally, outcome)
            return
        target = sure[tally.node].get(outcome)
        if target is not None:
            outcome = _enter(tally, target, outcome)
        elif outcome == AGAIN:
            outcome = model.enter_model(tally, tally.graph.nodes[tally.node], tally.state.counts.attempt + 1)
        elif outcome == FILTERED:
            outcome = tool.go_on_filtered(tally, tally.graph.nodes[tally.node])
        elif outcome == RELEASED:
            outcome = model.enter_model(tally, tally.graph.nodes[tally.node])
        elif outcome == THAWED:
            outcome = signal.unpark(tally)
        else:
            outcome = _enter(tally, _chosen(tally, outcome), outcome)


def _park(tally: Tally, outcome: str) -> None:
    """Keep an outcome for the resume, unless one that ends the run is kept already: the first of those decides."""
    parked = tally.state.place.parked
    if parked is None or parked.ending is None:
        tally.rule(OutcomeParked(outcome, tally.ending, tally.error, tally.message))


def _chosen(tally: Tally, outcome: str) -> int:
    """Where an outcome leads that has no sure edge. A condition that cannot be decided leads to review."""
    graph = tally.graph
    if outcome == STARTED:
        return graph.start
    if tally.node < 0:
        # The start node could not even be entered, so no edge of it can be followed.
        return _terminal(tally, EXIT_ENDINGS[NodeOutcome(outcome)])
    try:
        return graph.next_node(tally.node, outcome, lambda names: view_of(tally, outcome, names))
    except GuardUndecided as undecided:
        head_for(tally, Ending.REVIEW_REQUIRED, message=undecided.message)
        return _terminal(tally, EndingClass.ESCALATION)


def _terminal(tally: Tally, ending: EndingClass) -> int:
    """A terminal of this class; compile_graph() refuses a graph without one."""
    nodes = enumerate(tally.graph.nodes)
    return next(index for index, node in nodes if node.kind is _TERMINAL and node.ending is ending)


def _enter(tally: Tally, target: int, outcome: str) -> str | None:
    """Enter a node, unless its bound or the step budget is used up: then the run is exhausted where it stands."""
    node = tally.graph.nodes[target]
    kind = node.kind
    if kind is _TERMINAL:
        return _enter_terminal(tally, target, node, outcome)
    if tally.ending is not None and (tally.blocking or tally.ending in AT_ONCE):
        # What still waits can only be cut off by ending; who was stopped at once does nothing more.
        return _enter(tally, _terminal(tally, CLASS_OF[tally.ending]), outcome)
    state, visits_max, steps_left = tally.state, node.visits_max, tally.left[_STEPS]
    if visits_max and state.place.visits[target] + (tally.visits.count(target) if tally.visits else 0) >= visits_max:
        return _leave_exhausted(tally, outcome, iterations_exhausted(tally, node.name, visits_max))
    if steps_left <= 0 and may_freeze(tally, Dimension.STEPS):
        freeze(tally, Dimension.STEPS, 1)
        return outcome
    if steps_left <= 0:
        return _leave_exhausted(tally, outcome, end_exhausted(tally, Dimension.STEPS, 1))
    if state.derived.floors is not None and (stopped := stop_early(tally, target)) is not None:
        return _leave_exhausted(tally, outcome, stopped)
    if kind is _TOOL:
        tally.stopped = False
    elif tally.is_unjudged:
        tool.refuse_proposals(tally)
    if tally.ending is not None:
        tally.ending, tally.error, tally.message = None, None, ""
    tally.visits += (target,)
    tally.left[_STEPS] = steps_left - 1
    tally.node = target
    tally.decisions.append(NodeEntered(node.name, outcome))
    return ENTRIES[kind](tally, node)


def _leave_exhausted(tally: Tally, outcome: str, exit_named: str) -> str | None:
    """Follow the exit of an exhausted run; one that cannot be entered either leaves only the terminal itself."""
    is_exit = outcome == NodeOutcome.EXHAUSTED
    return _enter(tally, _terminal(tally, EndingClass.EXHAUSTION), outcome) if is_exit else exit_named


def _enter_terminal(tally: Tally, target: int, node: Node, outcome: str) -> str | None:
    """End the run here, or name the outcome that leads elsewhere when it has not earned this ending."""
    if tally.is_unjudged and node.ending is EndingClass.SUCCESS:
        tool.refuse_proposals(tally)
    tally.node = target
    if (refused := refuse_success(tally, node) or refuse_unaccepted(tally, node)) is not None:
        return refused
    if tally.manifest.task is not None:
        warn_of_task(tally, node)
    tally.rule(NodeEntered(node.name, outcome))
    return ENTRIES[_TERMINAL](tally, node)
