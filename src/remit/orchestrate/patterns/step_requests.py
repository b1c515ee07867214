"""What an infer step asks its model: what its handler says, and the ModelRequest that may be its input.

Rule 1: all of a request is followed (messages, limits, sampling, schema, grammar) or refused as a mismatch.
Rule 2: its tools are chosen among those of the handler; none named are all of them, and tool_choice `none` is none.
"""

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.journal.codec import to_json
from remit.core.limits.tools import ToolChoiceMode
from remit.core.record import replace
from remit.core.run.contract import ExecutionHints, OutputContract, SystemRequest
from remit.core.run.envelope import check_request
from remit.core.run.inference import ModelRequest
from remit.core.work.graph import Ask, schema_text
from remit.core.work.plan import Step
from remit.orchestrate.patterns.handlers import InferHandler

# What tells attempts and replicas apart is counted by whoever asks the engine.
_COUNTED = ("attempt", "replica")


def asked_by(step: Step, handler: InferHandler) -> Ask:
    """What an infer step asks; raises RequestRejected for a request that cannot be followed as it is."""
    request = step.input if isinstance(step.input, ModelRequest) else None
    names = tuple(tool.name for tool in handler.tools)
    schema = "" if step.schema is None else schema_text(step.schema)
    ask = Ask(handler.system_prompt, names, schema=schema, max_tokens=handler.max_tokens)
    if request is None:
        return ask
    hints = ExecutionHints(
        max_tokens=request.max_tokens, temperature=request.temperature, top_p=request.top_p, options=request.options
    )
    _check(step, request, hints)
    return replace(
        ask,
        tools=_tools_of(step, request, handler),
        schema=schema if request.schema is None else schema_text(request.schema),
        grammar=request.grammar,
        max_tokens=request.max_tokens or handler.max_tokens,
        sampling=sampling_text(hints),
    )


def sampling_text(hints: ExecutionHints) -> str:
    """How a step is sampled, as its node keeps it; empty where the run's own hints hold."""
    said = ExecutionHints(temperature=hints.temperature, top_p=hints.top_p, options=hints.options)
    return "" if said == ExecutionHints() else to_json(said)


def _check(step: Step, request: ModelRequest, hints: ExecutionHints) -> None:
    output = OutputContract(request.schema, request.grammar or None)
    try:
        check_request(SystemRequest(request.messages, hints=hints, output=output))
    except RequestRejected as refused:
        raise _mismatch(step, refused.message) from refused
    if step.schema is not None and request.schema is not None:
        raise _mismatch(step, "it has a schema, and so has the step; leave out one of them")
    for name in _COUNTED:
        if (said := getattr(request, name)) != getattr(ModelRequest(()), name):
            raise _mismatch(step, f"{name}={said} is counted by the run; leave it out")


def _tools_of(step: Step, request: ModelRequest, handler: InferHandler) -> tuple[str, ...]:
    if request.tool_choice.mode is ToolChoiceMode.NONE:
        return ()
    if request.tool_choice.mode is not ToolChoiceMode.AUTO:
        raise _mismatch(step, f"tool_choice={request.tool_choice.mode} demands a call; use a tool step for that")
    for wanted in request.tools:
        found = handler.tools.get(wanted.name)
        if found is None or found.definition != wanted:
            raise _mismatch(step, f"tool {wanted.name[:80]!r} is none of its handler's; give it to the InferHandler")
    return tuple(tool.name for tool in request.tools or [tool.definition for tool in handler.tools])


def _mismatch(step: Step, problem: str) -> RequestRejected:
    message = f"step {step.name!r} has a ModelRequest that it cannot follow: {problem}"
    return RequestRejected(ErrorCode.ORCHESTRATION_STEP_MISMATCH, message, {"step": step.name})
