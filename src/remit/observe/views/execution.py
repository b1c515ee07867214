"""A run as callers see it: ExecutionState, ExecutionContext and SystemResponse, read off the state.

Rule 1: these are views; nothing is kept here that the state does not say.
Rule 2: an open run has a response too: what it waits for, and what there is of an answer.
Rule 3: the checks that are counted are those of the answer as it stands; what was said of answers that went back stands in
        the journal. A schema is one check, a rule or a judge that was heard is one each; a goal without either is one.
"""

from collections.abc import Mapping

from remit.core.failure import (
    ANSWERED,
    Ending,
    ErrorCode,
    Failure,
    failure_named,
    failure_of,
    stakes_of,
)
from remit.core.failure_families import FailureCategory, Retryable
from remit.core.journal.arrivals import ModelAnswered
from remit.core.journal.codec import from_json, plain_value, read_json
from remit.core.journal.commands import place_in_journal
from remit.core.limits.tools import ToolChoiceMode
from remit.core.record import JsonObject, Text, replace
from remit.core.run.contract import (
    GUARD_MODE,
    ConfidenceSource,
    ExecutionContext,
    ExecutionState,
    HaltedBy,
    Mode,
    SystemError,  # noqa: A004  # the contract's own name for it
    SystemResponse,
    ToolCallMade,
    ValidationResult,
    WaitingFor,
)
from remit.core.run.signals import packet_id
from remit.core.run.usage import TokenUsage, sum_usage
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.core.work.goal import PPM
from remit.core.work.graph import CHILD_KINDS
from remit.core.work.plan import MARK, RerankInput
from remit.core.work.values import ValueKind
from remit.kernel.graph.plan_steps import failed_call
from remit.kernel.results.feasible import why_disallowed
from remit.kernel.results.votes import in_order
from remit.kernel.state import (
    RunState,
    graph_of_run,
    lifecycle,
    pinned,
    questions,
    standing_at,
    waiting_for,
)
from remit.kernel.traces import ChildTrace
from remit.observe.figures import readable
from remit.observe.views.calls_made import calls_made, unallowed
from remit.observe.views.late_outcomes import NOTHING_BELOW, EffectsBeneath, in_doubt


def execution_state(state: RunState) -> ExecutionState:
    """Where a run stands in its lifecycle. Of a plan, its own steps are counted; of any other run, the nodes entered."""
    return ExecutionState(
        current=lifecycle(state),
        entered_at_ms=state.place.entered_at_ms,
        attempt=attempt_of(state),
        total_steps=len(state.result.outputs) if _is_plan(state) else state.steps,
        last_error=error_of(state) or last_error_of(state),
        last_step=_last_step(state),
    )


def attempt_of(state: RunState) -> int:
    """Which attempt a run is at: of a plan, how often the step was begun that was begun most often."""
    if not _is_plan(state):
        return state.counts.repairs + 1
    visits = zip(graph_of_run(state).nodes, state.place.visits, strict=True)
    return max((times for node, times in visits if node.feed is not None), default=1) or 1


def _is_plan(state: RunState) -> bool:
    return state.derived.graph is not None and any(node.feed is not None for node in state.derived.graph.nodes)


def _last_step(state: RunState) -> str:
    """The step of a plan that was finished last; of any other run, the node it stands at."""
    if _is_plan(state):
        # One that was sent back and done again is finished later than its place among the steps says.
        return max(
            state.result.outputs, key=lambda step: place_in_journal(state.result.outputs[step].command_id), default=""
        )
    return standing_at(state).name if state.place.node >= 0 else ""


def execution_context(state: RunState) -> ExecutionContext:
    """A run as one object."""
    request = pinned(state).request
    return ExecutionContext(
        request_id=request.request_id,
        session_id=request.session_id,
        trace_id=request.trace_id,
        mode=request.mode if pinned(state).host is None else GUARD_MODE,
        started_at_ms=state.clock.started_at_ms,
        state=execution_state(state),
        selected_tools=selected_tools(state),
        candidates=_candidates(state),
        metadata=request.metadata,
    )


def _candidates(state: RunState) -> tuple[Candidate, ...]:
    """The answers of a vote, the winner's with its share; an answer that was judged; or a plan's latest evidence."""
    if all(node.ballot is None for node in pinned(state).graph.nodes):
        return _judged(state) or _evidence(state)
    share = max(state.result.confidence_ppm, 0) / PPM
    return tuple(
        Candidate(
            child.text,
            state.children.runs[child.command_id],
            share if state.result.confidence_ppm >= 0 and child.text == state.result.answer else 0.0,
            ScoreMaker.VOTE,
            {"replica": number},
        )
        for number, child in enumerate(_replicas(state), 1)
        if child.ending in ANSWERED
    )


def _judged(state: RunState) -> tuple[Candidate, ...]:
    """The answer as judges left it: 1.0 when none of them objects, 0.0 when one does."""
    goal = pinned(state).goal
    judges = [criterion.name for criterion in goal.criteria if criterion.judge] if goal is not None else []
    if not judges or not state.children.ended:
        return ()
    score = 0.0 if state.result.objections else 1.0
    return (Candidate(state.result.answer, state.run_id, score, ScoreMaker.JUDGE, {"judges": judges}),)


def _evidence(state: RunState) -> tuple[Candidate, ...]:
    """The candidates that a step of a plan gave last, where they are at hand."""
    found = [output for output in state.result.outputs.values() if output.kind is ValueKind.CANDIDATES]
    latest = max(found, key=lambda output: place_in_journal(output.command_id), default=None)
    if latest is None or not isinstance(latest.text, str):
        return ()
    return from_json(latest.text, RerankInput).candidates


def selected_tools(state: RunState) -> tuple[str, ...]:
    """The tools the run may call: offered, and not ruled out by what the boundary lets it do."""
    manifest = pinned(state)
    return tuple(name for name in offered_tools(state) if not why_disallowed(state.derived.tools[name], manifest))


def offered_tools(state: RunState) -> tuple[str, ...]:
    """The tools that the model is shown: registered, on the list of the boundary, and offered by the request."""
    manifest = pinned(state)
    allowed, offered, choice = manifest.boundary.allowed_tools, manifest.request.tools, manifest.request.tool_choice
    if choice.mode is ToolChoiceMode.NONE:
        return ()
    if choice.mode is ToolChoiceMode.FUNCTION:
        offered = (choice.function_name,)
    return tuple(
        tool.name
        for tool in manifest.tools
        if (allowed is None or tool.name in allowed) and (not offered or tool.name in offered)
    )


def run_usage(state: RunState, *, with_children: bool = True) -> TokenUsage:
    """What the run and its declared children used of their models: counts add up, context and window are the largest."""
    # Failed calls are in the sums and in no answer; of the gauges and the time only answers tell.
    answered = sum_usage(entry.usage for entry in state.talk.context if isinstance(entry, ModelAnswered))
    own = replace(
        answered,
        prompt_tokens=state.talk.prompt_tokens,
        reasoning_tokens=state.talk.reasoning_tokens,
        output_tokens=state.talk.output_tokens,
    )
    return sum_usage((own, *(child.usage for child in state.children.ended if with_children)))


def run_confidence(state: RunState) -> tuple[float | None, ConfidenceSource | None]:
    """How surely the answer stands, and what says so: a vote before checks that were counted, those before evidence."""
    if state.result.confidence_ppm >= 0:
        return state.result.confidence_ppm / PPM, ConfidenceSource.VOTING
    if checks := state.result.checks_passed + state.result.checks_failed:
        return state.result.checks_passed / checks, ConfidenceSource.VALIDATION
    if state.talk.relevance_ppm >= 0:
        return state.talk.relevance_ppm / PPM, ConfidenceSource.RETRIEVAL
    return None, None


def response_of(
    state: RunState,
    content: str,
    outputs: Mapping[str, object] | None = None,
    made: tuple[ToolCallMade, ...] | None = None,
    below: EffectsBeneath = NOTHING_BELOW,
) -> SystemResponse:
    """What the caller is told. `content` is the text of the run's answer, wherever it lives.

    `outputs` are those of a plan's steps, by their name, as far as it came; `made` is the log of calls, where the caller
    has read the texts and the children that it tells of; `below` is what runs beneath it left in doubt.
    """
    request = pinned(state).request
    has_schema = request.output.schema is not None
    confidence, source = run_confidence(state)
    return SystemResponse(
        request_id=request.request_id,
        session_id=request.session_id,
        run_id=state.run_id,
        terminal_code=state.end.ending,
        waiting_for=_waiting_for(state),
        content="" if _is_withheld(state) else content,
        structured_output=outputs or (_structured(state, content) if has_schema else None),
        tool_calls_made=calls_made(state) if made is None else made,
        confidence=confidence,
        confidence_source=source,
        validation=validation_of(state),
        token_usage=run_usage(state),
        error=error_of(state),
        warnings=_warnings(state, below),
        halted=_halted_by(state),
    )


def raw_answer(state: RunState) -> Text:
    """What the model said where its answer had to be repaired; empty where it stands as it was said."""
    said = (
        entry
        for entry in reversed(state.talk.context)
        if isinstance(entry, ModelAnswered) and entry.text == state.result.answer
    )
    return next((entry.raw for entry in said), "")


def error_of(state: RunState) -> SystemError | None:
    """Why the run failed, if it did."""
    failure = None if state.end.ending is None else failure_of(state.end.ending, state.end.error)
    if failure is None:
        return None
    message = readable(why_ended(state)) or f"the run ended as {state.end.ending}"
    details = {**_whereabouts(state, failure), **details_of(state)}
    return SystemError(
        code=failure.code,
        category=failure.category,
        retryable=_is_retryable(state, failure),
        message=message,
        details=details,
        caused_by=_cause_of(state, failure, details),
    )


def why_ended(state: RunState) -> str:
    """Why a run ended; of a tool step that failed, in the words of its tool, with the limit that it reached."""
    call = next((call for call in reversed(state.calls.made.values()) if call.reason), None)
    step = _step_begun(state)
    if call is None or state.end.message != failed_call(step, call.code or call.rung):
        return state.end.message
    if call.code != ErrorCode.TOOL_TIMEOUT:
        return f"step {step}: {call.reason}"
    graph, tool = graph_of_run(state), state.derived.tools.get(call.tool)
    rules = graph.nodes[graph.index[step]].rules
    if rules is not None and tool is not None and tool.timeout_ms <= rules.timeout_ms:
        return f"step {step}: {call.reason}; declare more with @tool(timeout_ms=…)"
    return f"step {step}: {call.reason}; {MORE_TIME}"


# What stands last in the message of a run beneath whose model would fail again.
NOT_AGAIN = "asking again would come to the same"
# How a step of a plan that was too slow gets more time.
MORE_TIME = "give the step a longer timeout_ms, or the plan's policy a longer timeout_per_step_ms"


def _step_begun(state: RunState) -> str:
    """The step of a plan that was begun last and is not finished; empty where there is none."""
    begun = zip(graph_of_run(state).nodes, state.place.visits, strict=True) if state.derived.graph is not None else ()
    steps = [node.name.partition(MARK)[0] for node, times in begun if node.feed is not None and times]
    return next((name for name in reversed(steps) if name not in state.result.outputs), "")


def _whereabouts(state: RunState, failure: Failure) -> JsonObject:
    """What failed, by its name: the step of a plan, the tool, the model, the replica."""
    step = _step_begun(state)
    is_caused = state.end.ending in _CAUSED
    called = [call.tool for call in state.calls.made.values() if call.code == failure.code or (is_caused and call.code)]
    model = _failed_model(state, step) if failure.category is FailureCategory.INFERENCE else ""
    own = [n for n, child in enumerate(_replicas(state), 1) if child.error and child.error == state.end.error]
    replica = pinned(state).replica or max(own, default=0)
    found = {"step": step, "tool": called[-1] if called else "", "model": model, "replica": replica}
    return {name: value for name, value in found.items() if value}


def _replicas(state: RunState) -> list[ChildTrace]:
    """The replicas of a vote that have ended, in the order in which they were asked for."""
    sources = {node.ballot.source for node in pinned(state).graph.nodes if node.ballot is not None}
    return in_order([child for child in state.children.ended if child.node in sources])


def _failed_model(state: RunState, step: str) -> str:
    """The model that failed: that of the node that asked it, beneath or here; empty where that cannot be told from here."""
    models = pinned(state).models
    failed = _failed_children(state)
    name = failed[-1].node if failed else step
    if not name:
        return models[state.talk.model_index].name if models else ""
    graph = graph_of_run(state)
    node = graph.nodes[graph.index[name]]
    if node.model or node.kind not in CHILD_KINDS:
        # Code asks models of its own, of which this run knows nothing.
        return node.model
    return models[0].name if len(models) == 1 else ""


def _failed_children(state: RunState) -> list[ChildTrace]:
    """The runs beneath that nodes of the graph started and that gave no answer, in the order in which they ended."""
    graph = graph_of_run(state)
    begun = [child for child in state.children.ended if child.node in graph.index]
    return [
        child
        for child in begun
        if graph.nodes[graph.index[child.node]].kind in CHILD_KINDS and child.ending not in ANSWERED
    ]


def _cause_of(state: RunState, failure: Failure, details: JsonObject) -> SystemError | None:
    """What the failure came of: the step or replica that failed as a run beneath, else what went wrong before."""
    replicas = _replicas(state)
    steps = [child for child in state.children.ended if child.node and child.node == details.get("step")]
    failed = [child for child in (*steps, *replicas) if child.ending not in ANSWERED]
    if not failed and state.end.ending in _CAUSED and not details.get("step"):
        # A planner is no step; the run that asked its model is what the failure came of.
        failed = [child for child in _failed_children(state) if child.error == state.end.error]
    if not failed:
        last = (_failed_call(state) or last_error_of(state)) if state.end.ending in _CAUSED else None
        is_told = last is None or last.code == failure.code or state.counts.last_error == state.end.ending
        return None if is_told else last
    child = failed[-1]
    beneath = failure_of(Ending(child.ending), child.error) if child.ending in set(Ending) else None
    how = beneath or failure_named(child.ending)
    place: JsonObject = {"step": details["step"]} if details.get("step") else {}
    if child in replicas:
        place = {"replica": replicas.index(child) + 1}
    place["run_id"] = state.children.runs[child.command_id]
    message = readable(child.message) or f"it ended as {child.ending}"
    is_retryable = how.retryable is Retryable.YES and not child.message.endswith(NOT_AGAIN)
    return SystemError(how.code, how.category, is_retryable, message, place)


# Endings that something else led to, which went wrong before.
_CAUSED = frozenset({Ending.REPEATED_FAILURE, Ending.UNAVAILABLE_DEP, Ending.PERMISSION_DENIED, Ending.IMPOSSIBLE})


def _failed_call(state: RunState) -> SystemError | None:
    """The last call that failed, in the words of its tool."""
    known = set(ErrorCode)
    call = next((call for call in reversed(state.calls.made.values()) if call.reason and call.code in known), None)
    if call is None:
        return None
    failure = failure_named(call.code)
    return SystemError(
        failure.code, failure.category, _is_retryable(state, failure), readable(call.reason), {"tool": call.tool}
    )


def last_error_of(state: RunState) -> SystemError | None:
    """The last thing that went wrong, whether or not the run recovered from it."""
    if not state.counts.last_error:
        return None
    failure = failure_named(state.counts.last_error)
    message = f"{state.counts.last_error} is the last failure of {state.steps} steps; the run went on"
    return SystemError(failure.code, failure.category, _is_retryable(state, failure), message)


def _is_retryable(state: RunState, failure: Failure) -> bool:
    """Submitting again is safe for a tool's failure only when every tool that was called may be called again.

    A model whose failure is final, such as a key that is refused, would fail again.
    """
    is_final = state.end.is_final and failure.category is FailureCategory.INFERENCE
    if is_final or state.end.message.endswith(NOT_AGAIN):
        return False
    if failure.retryable is not Retryable.IF_IDEMPOTENT:
        return failure.retryable is Retryable.YES
    called = (state.derived.tools.get(trace.tool) for trace in state.calls.made.values())
    return all(tool is not None and (tool.idempotent or not tool.effect.is_mutating) for tool in called)


def _waiting_for(state: RunState) -> WaitingFor | None:
    ending = waiting_for(state)
    if ending is None:
        return None
    asked = sorted(questions(state), key=lambda question: stakes_of(question.ending))
    # A run whose child is the one that asks has no question of its own.
    expires_at_ms = min((question.expires_at_ms for question in asked), default=0)
    packets = tuple(packet_id(state.run_id, question.id) for question in asked)
    return WaitingFor(ending, packets, expires_at_ms, tuple(question.ending for question in asked))


def _halted_by(state: RunState) -> HaltedBy | None:
    halt = state.place.halted
    return None if halt is None else HaltedBy(halt.what, halt.by, halt.why)


def _is_withheld(state: RunState) -> bool:
    """Whether an output does not fit and its contract is strict, so that nothing of it is returned."""
    return bool(state.result.violations) and pinned(state).request.output.strict_validation


def _warnings(state: RunState, below: EffectsBeneath) -> tuple[str, ...]:
    """What the caller should know who goes on with what there is: what was left open, and how an output does not fit."""
    left_open = ((state.end.message,) if state.end.ending is Ending.PARTIAL_SUCCESS else ()) + tuple(
        state.result.warnings
    )
    left_open += tuple(map(readable, pinned(state).notes))
    left_open += (*in_doubt(state, below), *unallowed(state), *repaired(state), *_voteless(state))
    if not state.result.violations or _is_withheld(state):
        return left_open
    return (*left_open, *(f"output {v.path or '/'}: {v.message}" for v in state.result.violations))


def _voteless(state: RunState) -> tuple[str, ...]:
    """How many replicas of a vote that is over failed, and so had no vote."""
    if not state.children.ended:
        return ()
    ballots = [node.ballot for node in pinned(state).graph.nodes if node.ballot is not None]
    asked = {ballot.source for ballot in ballots}
    failed = sum(child.node in asked and child.ending not in ANSWERED for child in state.children.ended)
    if not failed or state.end.ending is None:
        return ()
    return (f"{failed} of {sum(ballot.replicas for ballot in ballots)} replicas failed",)


def _structured(state: RunState, content: str) -> object:
    """The output as a value: what fits, or without a strict contract also what can be read of one that does not."""
    if _is_withheld(state) or not content:
        return None
    try:
        return read_json(content)
    except (ValueError, RecursionError):
        return None  # The text of a tool that ended the loop is an answer without being an output of the model.


# Modes whose output contract is about the answer itself.
_CONTRACTED = (Mode.CHAT, Mode.STRUCTURED)
# As many repairs as a warning names.
_REPAIRS_SHOWN_MAX = 3


def validation_of(state: RunState) -> ValidationResult | None:
    """What the checks came to; None where nothing judged the answer of this run, or there was none to judge."""
    manifest = pinned(state)
    has_contract = manifest.request.output.schema is not None and manifest.request.mode in _CONTRACTED
    counted = state.result.checks_passed + state.result.checks_failed
    if not has_contract and manifest.goal is None and not counted:
        return None
    passed, failed = state.result.checks_passed, state.result.checks_failed
    if has_contract and (state.result.answer or state.result.violations):
        fits = not state.result.violations
        passed, failed = passed + fits, failed + (not fits)
    elif not counted:
        passed, failed = int(state.end.ending in ANSWERED), int(state.end.ending is Ending.VALIDATION_FAIL)
    repairs, remaining = state.counts.repairs + len(_mended(state)), _remaining(state)
    if not (passed or failed or repairs or remaining):
        return None
    return ValidationResult(passed, failed, repairs, remaining)


def details_of(state: RunState) -> JsonObject:
    """What a program is told about an answer that did not pass: each violation with its path, and every objection."""
    if state.end.ending is not Ending.VALIDATION_FAIL:
        return {}
    violations = plain_value(state.result.violations)
    objections = [*state.result.problems, *state.result.objections]
    return {
        **({"violations": violations} if violations else {}),
        **({"problems": objections} if objections else {}),
    }


def repaired(state: RunState) -> tuple[str, ...]:
    """A warning that the answer had to be repaired to have its shape, with what was changed."""
    mended = _mended(state)
    if not mended or mended[-1].text != state.result.answer:
        return ()
    repairs = mended[-1].repairs
    more = f" and {len(repairs) - _REPAIRS_SHOWN_MAX} more" if len(repairs) > _REPAIRS_SHOWN_MAX else ""
    return (f"the output was repaired: {'; '.join(repairs[:_REPAIRS_SHOWN_MAX])}{more}",)


def _mended(state: RunState) -> list[ModelAnswered]:
    return [entry for entry in state.talk.context if isinstance(entry, ModelAnswered) and entry.repairs]


def _remaining(state: RunState) -> tuple[str, ...]:
    unfit = tuple(f"{violation.path or '/'}: {violation.message}" for violation in state.result.violations)
    return (*unfit, *state.result.problems, *state.result.objections)
