"""Named code of the user: validators, voters, the steps of plans and whatever else a graph names, heard once.

Rule 1: code is found by the name the graph gives it; what is not there fails the command, never the process.
Rule 2: plain functions run in a thread and coroutines on the loop, both within the command's time.
Rule 3: a step gets the kind of value that it takes, and hands on only what can be written down.
Rule 4: a step works with what stands behind a handle; a validator, a filter and a voter see the handle.
Rule 5: a voter chooses among the answers that there are. One that breaks or makes something up leaves no consensus.
Rule 6: evidence for an exchange comes from the context provider of the run's kit. Evidence that cannot be found makes a
        poorer answer, not a failed run; the failure is recorded. It stands before the last message of the request and
        becomes no history. A provider that has candidates is asked for those, so that their relevance is reported.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Protocol, TypeAlias, runtime_checkable

from remit.context.evidence_message import relevance_of
from remit.core.failure import ErrorCode, RemitError, RequestRejected, RunFailed
from remit.core.journal.arrivals import CodeFailed, CodeReturned, ContextFailed, Election
from remit.core.journal.codec import arguments_in, from_json, to_json
from remit.core.journal.commands import CallCode
from remit.core.journal.proposed_call import ProposedCall
from remit.core.limits.tools import ToolCall
from remit.core.raised import raised
from remit.core.record import JsonObject, replace
from remit.core.run.contract import SystemResponse
from remit.core.run.messages import Message
from remit.core.run.principal import Principal
from remit.core.schema.json_text import parse_json
from remit.core.work.candidate import Candidate
from remit.core.work.goal import PPM
from remit.core.work.orders import LIST, LOOK_UP, LOOK_UP_ID, TAKE
from remit.core.work.plan import PLAN_SAID, PlanPolicy, Step
from remit.core.work.values import ValueKind
from remit.kernel.rules.tool import FILTER_MARK
from remit.observe.views.execution import MORE_TIME, NOT_AGAIN
from remit.orchestrate.exchange.filters import context_of, looked
from remit.orchestrate.executors.errands import (
    JudgeErrand,
    PlanErrand,
    ProposeErrand,
    RetrieveErrand,
    Sender,
    SiftErrand,
    StepErrand,
    VoteErrand,
)
from remit.orchestrate.executors.process_resources import ProcessResources
from remit.orchestrate.executors.reports import CodeProposed, ContextSaid, FilterSaid, Report, SiftedCall
from remit.orchestrate.facts.sealer import SECRET_GONE, SecretGone, is_lost, waits_for
from remit.orchestrate.inner_runs import inner_runs
from remit.orchestrate.loop.deadlines import TimeRanOut, within
from remit.orchestrate.patterns.found_values import candidates_in, messages_in
from remit.orchestrate.patterns.handlers import HandlerUnusable, unusable_handler
from remit.orchestrate.patterns.plan_graph import CALL_MARK, STEP_MARK
from remit.orchestrate.patterns.planned_graph import planned_steps
from remit.orchestrate.patterns.planners import Planner, made_plan, plan_words
from remit.orchestrate.patterns.redundant_graph import VOTE_MARK
from remit.orchestrate.patterns.step_values import NoStepValue, converted, journaled_value, query_in
from remit.orchestrate.patterns.voters import STRATEGIES, NoConsensus, elect, settled
from remit.orchestrate.setup.kit import ContextProvider, Kit, ToolCallFilter
from remit.tool.call.threads import call_user_code
from remit.validate.breach import breach_text
from remit.validate.check import Report as RulesReport
from remit.validate.check import result_of

# A step hands on lists of responses, and perhaps lists of those.
_LISTS_MAX = 4
_FAILED, _TIMEOUT = ErrorCode.TOOL_EXECUTION_FAILED, ErrorCode.TOOL_TIMEOUT


CodeErrand: TypeAlias = JudgeErrand | SiftErrand | StepErrand | PlanErrand | ProposeErrand | VoteErrand


async def run_code(errand: CodeErrand, kit: Kit, resources: ProcessResources) -> Report:
    """Run the user's code that an errand names and report what it says."""
    command = errand.command
    work = _found(errand, kit, resources)
    if work is None:
        why = f"there is no code here named {command.name[:80]!r}; give it to the kit under that name"
        return _failed(errand, why, ErrorCode.CONFIG_PART_MISSING)
    who = _who(errand)
    try:
        return await within(command.timeout_ms, work)
    except TimeRanOut:
        more = f"; {MORE_TIME}" if isinstance(errand, StepErrand | ProposeErrand) else ""
        return _failed(errand, f"{who} took longer than timeout_ms={command.timeout_ms}{more}", _TIMEOUT)
    except RemitError as error:
        code_of = ErrorCode(error.code) if error.code in set(ErrorCode) else _FAILED
        is_final = isinstance(error, RunFailed) and error.is_final and not error.message.endswith(NOT_AGAIN)
        return _failed(errand, f"{who}: {error.message}{f'; {NOT_AGAIN}' if is_final else ''}", code_of)
    except SecretGone as gone:
        if is_lost(gone.handle):
            return waits_for(gone.handle, who, command.id)
        message = f"{SECRET_GONE}: {who} was not run: the value behind {gone.handle} is not kept any more"
        return _failed(errand, message, ErrorCode.TOOL_UNAVAILABLE)
    except (NoStepValue, HandlerUnusable) as error:
        code_of = error.code if isinstance(error, HandlerUnusable) else ErrorCode.ORCHESTRATION_STEP_MISMATCH
        return _failed(errand, f"{who}: {error}", code_of)
    except Exception as error:  # noqa: BLE001  # whatever the user's code raises is an outcome
        return _failed(errand, f"{who} raised {raised(error)}", _FAILED)


def _found(errand: CodeErrand, kit: Kit, resources: ProcessResources) -> Awaitable[Report] | None:
    """What performs the errand, ready to be awaited."""
    name = errand.command.name
    match errand:
        case VoteErrand():
            strategy = kit.code.get(name) or STRATEGIES.get(name.removeprefix(VOTE_MARK))
            return None if strategy is None else _vote(errand, resources, strategy)
        case SiftErrand():
            look = kit.every_filter.get(name.removeprefix(FILTER_MARK))
            return None if look is None else _sift(errand, resources, look)
        case ProposeErrand():
            return _propose(errand, resources)
        case PlanErrand():
            return None if kit.planner is None else _plan(errand, kit, kit.planner, resources)
    code = kit.code.get(name)
    handler = kit.handlers.get(name.removeprefix(STEP_MARK)) if name.startswith(STEP_MARK) else None
    if code is None and handler is not None:
        code = unusable_handler(handler) or handler
    if code is None:
        return None
    return _step(errand, resources, code) if isinstance(errand, StepErrand) else _judge(errand, resources, code)


async def _judge(errand: JudgeErrand, resources: ProcessResources, code: Callable[..., Any]) -> Report:
    return _returned(errand.command, await call_user_code(code, await resources.text(errand.command.input)))


async def _sift(errand: SiftErrand, resources: ProcessResources, look: ToolCallFilter) -> Report:
    """Show a filter every call that none before it turned away."""
    proposed = errand.calls
    # Arguments that could not be written are refused by themselves; no filter is shown them. It is shown what would be
    # called, and not the handles in which the model may have said it.
    texts = [await resources.text(call.arguments) if call.arguments and not call.filtered else "" for call in proposed]
    sifted: list[SiftedCall] = []
    for call, text in zip(proposed, texts, strict=True):
        if not text:
            sifted.append(SiftedCall(ToolCall(call.call_id, call.tool, {}), call.filtered))
            continue
        # Made anew for every look: what a filter does to what it is shown changes nothing.
        batch = [_shown(one, told, errand.metadata) for one, told in zip(proposed, texts, strict=True) if told]
        said = await looked(
            look, _shown(call, text, errand.metadata), context_of(errand.sender, errand.node, tuple(batch))
        )
        as_said = await resources.text(call.said) if call.said else text
        sifted.append(_sifted(_shown(call, as_said, {}), arguments_in(text), said))
    return FilterSaid(errand.command.id, tuple(sifted))


async def _propose(errand: ProposeErrand, resources: ProcessResources) -> Report:
    command = errand.command
    if command.name == LIST:
        # What the list says is known where the gate follows the run.
        return CodeReturned(command.id, kind=ValueKind.TEXT)
    if command.name in (TAKE, LOOK_UP):
        calls = [
            ToolCall(f"{LOOK_UP_ID}{place}", tool, parse_json(text))
            for place, (tool, text) in enumerate(errand.reads, 1)
        ]
        return CodeProposed(command.id, tuple(calls), orders=errand.orders)
    arguments = converted(command.kind, await resources.text(command.input), ValueKind.OBJECT)
    call = ToolCall(f"step-{command.id}", command.name.removeprefix(CALL_MARK), arguments)
    return CodeProposed(command.id, (call,))


async def _plan(errand: PlanErrand, kit: Kit, planner: Planner, resources: ProcessResources) -> Report:
    """Ask the planner, and look at what it made: a plan that cannot run is found out before any of its steps."""
    command, messages = errand.command, []
    for message in errand.request.messages:
        text = await resources.text(message.content)
        shown = text if resources.sealer is None else resources.sealer.filled(errand.sender.family, text)
        messages.append(replace(message, content=shown))
    asked = replace(errand.request, messages=tuple(messages))
    at_ms = 0 if resources.clock is None else resources.clock.now_ms()
    try:
        made = await made_plan(planner, asked, await resources.text(errand.answer), at_ms)
        if not errand.policy:
            return CodeReturned(command.id, plan_words(made), kind=PLAN_SAID)
        planned = planned_steps(made, from_json(errand.policy, PlanPolicy), kit.handlers, asked)
    except RequestRejected as refused:
        return CodeFailed(command.id, f"{refused.code}: {refused.message}", ErrorCode.ORCHESTRATION_PLAN_FAILED)
    return CodeReturned(command.id, to_json(planned), kind=ValueKind.OBJECT)


async def _step(errand: StepErrand, resources: ProcessResources, code: Callable[..., Any]) -> Report:
    command = errand.command
    given = converted(command.kind, await resources.text(command.input), command.takes)
    if resources.sealer is not None:
        given = resources.sealer.filled(errand.sender.family, given)
    step = Step(errand.node, command.name.removeprefix(STEP_MARK), given, instruction=errand.prompt)
    with inner_runs() as inner:
        said = await call_user_code(code, step)
    _expect_answer(said)
    inner.expect_seen()
    if errand.is_check:
        return _returned(command, said)
    if isinstance(said, Step) and said.output is None:
        raise NoStepValue("the handler returned the step without an output; use step.with_output(...)")
    kind, text = journaled_value(said.output if isinstance(said, Step) else said, query=query_in(given))
    return CodeReturned(command.id, text, kind=kind)


def _expect_answer(said: object, depth: int = 0) -> None:
    """Refuse a response that is none, also within lists and objects: a step that ran an agent which failed, or waits, failed."""
    given = said.output if isinstance(said, Step) else said
    if isinstance(given, Mapping | list | tuple) and depth < _LISTS_MAX:
        for inner in given.values() if isinstance(given, Mapping) else given:
            _expect_answer(inner, depth + 1)
    response = given if isinstance(given, SystemResponse) else getattr(given, "response", None)
    if isinstance(response, SystemResponse):
        response.raise_for_error()


async def _vote(errand: VoteErrand, resources: ProcessResources, strategy: Any) -> Report:
    command, to_come = errand.command, errand.to_come
    texts, places = [await resources.text(answer) for answer in errand.answers], list(errand.places)
    is_settled = to_come <= 0 or await call_user_code(partial(settled, replicas=places), strategy, texts, to_come)
    try:
        election = await call_user_code(partial(elect, replicas=places), strategy, texts)
    except NoConsensus as none:
        if not is_settled:
            return CodeReturned(command.id, election=Election(0, 0, 0, is_settled=False))
        return CodeReturned(command.id, problems=(none.message,))
    confidence_ppm = round(election.confidence * PPM)
    return CodeReturned(command.id, election=Election(election.winner, election.votes, confidence_ppm, is_settled))


def _shown(proposed: ProposedCall, arguments: str, metadata: JsonObject) -> ToolCall:
    return ToolCall(proposed.call_id, proposed.tool, arguments_in(arguments), deepcopy(metadata))


def _sifted(call: ToolCall, shown: JsonObject, said: object) -> SiftedCall:
    """What a filter made of a call. What it left as it was shown stays in the model's own words."""
    if isinstance(said, str) and said:
        return SiftedCall(call, said)
    if said is None or (
        isinstance(said, ToolCall) and (said.id, said.name, said.arguments) == (call.id, call.name, shown)
    ):
        return SiftedCall(call)
    if isinstance(said, ToolCall) and said.name != call.name:
        return SiftedCall(call, f"a filter made a call of {said.name[:80]} of it, and a filter can rename no call")
    if isinstance(said, ToolCall):
        return SiftedCall(said)
    raise TypeError(f"a filter returns a ToolCall, a text or None, not {type(said).__name__}")


def _who(errand: CodeErrand) -> str:
    """What a message calls the code: a step by its name, anything else as the graph does."""
    if isinstance(errand, StepErrand | ProposeErrand):
        return f"step {errand.node!r}"
    if isinstance(errand, PlanErrand):
        return "the planner"
    return repr(errand.command.name[:80])


def _failed(errand: CodeErrand, message: str, code: ErrorCode) -> Report:
    """A failure, as it counts for the node that waits: a vote finds no winner, a validate step objects."""
    command = errand.command
    # A check that had no time to look has found nothing wrong.
    is_check = isinstance(errand, StepErrand) and errand.is_check and code is not _TIMEOUT
    if command.name.startswith(VOTE_MARK) or is_check:
        return CodeReturned(command.id, problems=(message,))
    return CodeFailed(command.id, message, code)


def _returned(command: CallCode, said: object) -> Report:
    """A text is a value, several texts are problems, a report is its breaches with their count, and nothing is content."""
    if said is None:
        return CodeReturned(command.id)
    if isinstance(said, RulesReport):
        counted = result_of(said)
        return CodeReturned(
            command.id,
            problems=tuple(breach_text(breach) for breach in said.blocking),
            checks_passed=counted.checks_passed,
            checks_failed=counted.checks_failed,
            warnings=said.warnings,
            is_final=said.is_final,
        )
    if isinstance(said, str):
        return CodeReturned(command.id, said)
    if isinstance(said, list | tuple) and all(isinstance(problem, str) for problem in said):
        return CodeReturned(command.id, problems=tuple(said))
    kind = type(said).__name__
    return CodeFailed(
        command.id, f"{command.name[:80]!r} returned a {kind}; it may return a text, a list of texts or None"
    )


_UNKNOWN = -1


# A function of a provider with a parameter of this name is told for whom it looks.
ASKED_BY = "asked_by"


@runtime_checkable
class _Finder(Protocol):
    """A provider that can tell what it found apart from the messages that it makes of it."""

    async def find(self, query: str) -> Sequence[Candidate]: ...

    def written(self, found: Sequence[Candidate]) -> Sequence[Message]: ...


async def retrieve(errand: RetrieveErrand, kit: Kit, resources: ProcessResources) -> Report:
    """Ask the provider of the kit for evidence about the user's last words."""
    command, provider = errand.command, kit.context
    if errand.given:
        return ContextSaid(command.id, await resources.text(errand.given), _UNKNOWN)
    if provider is None:
        return ContextFailed(command.id, "there is no context provider here")
    try:
        query = await resources.text(errand.query)
        found, relevance_ppm = await within(command.timeout_ms, _found_evidence(provider, query, errand.sender))
        texts = [await resources.text(message.content) for message in found]
    except TimeRanOut:
        return ContextFailed(command.id, f"the context provider took longer than timeout_ms={command.timeout_ms}")
    except NoStepValue as unfit:
        return ContextFailed(command.id, f"the context provider cannot be used: {unfit}")
    except Exception as error:  # noqa: BLE001  # whatever a provider raises, the run goes on without context
        return ContextFailed(command.id, f"the context provider raised {raised(error)}")
    return ContextSaid(command.id, "\n\n".join(text for text in texts if text), relevance_ppm)


async def _found_evidence(provider: ContextProvider, query: str, sender: Sender) -> tuple[Sequence[Message], int]:
    """The messages of a provider, and how relevant the best of them is in millionths, where that is known."""
    name = type(provider).__name__
    if not isinstance(provider, _Finder):
        said = await call_user_code(_for_whom(provider.build, sender), query)
        return messages_in(said, query, f"{name}.build()").messages, _UNKNOWN
    found = await call_user_code(_for_whom(provider.find, sender), query)
    candidates = candidates_in(found, query, f"{name}.find()").candidates
    relevance = relevance_of(candidates)
    made = messages_in(provider.written(candidates), query, f"{name}.written()").messages
    return made, _UNKNOWN if relevance is None else round(relevance * PPM)


def _for_whom(look: Callable[..., Any], sender: Sender) -> Callable[..., Any]:
    """A function of a provider, with the principal that it looks for where it wants to know."""
    if ASKED_BY not in inspect.signature(look).parameters:
        return look
    return partial(look, asked_by=Principal(sender.tenant_id, sender.user_id))
