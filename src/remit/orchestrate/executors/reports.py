"""Reports: what an executor says about the command it performed, before facts make an arrival of it.

Rule 1: a report is raw. It holds texts, not digests, and nothing in it was checked.
Rule 2: whatever an executor knows how to say as an arrival it may report as one; facts complete it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from remit.core.failure import NO_DENIALS, Denials, Ending, ErrorCode
from remit.core.journal import arrivals, commands
from remit.core.journal.arrivals import Arrival, Happened, ModelFailed
from remit.core.journal.commands import CallTool, Command
from remit.core.limits.budget import Charges
from remit.core.limits.tools import ToolCall, ToolResult
from remit.core.record import JsonObject, Record
from remit.core.run.inference import ModelResult
from remit.core.run.lineage import derived_id
from remit.core.run.signals import Signal, UserSignal
from remit.core.run.usage import TokenUsage
from remit.core.schema.json_schema import Violation


class ModelSaid(Record, tag=True):
    """A model call returned. `offered` are the tools that a router had shortlisted for it.

    `violations` are what its reader found wrong with a text that no schema speaks of, such as a grammar it breaks.
    `exposed` names the secret of the vault whose value stood in its words.
    """

    command_id: str
    result: ModelResult
    offered: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    exposed: str = ""


class ToolSaid(Record, tag=True):
    """A tool call returned. `refuted` is what the tool's own check found wrong."""

    command_id: str
    result: ToolResult
    refuted: str = ""
    duration_ms: int = 0
    # Several open calls could have brought it.
    is_shared: bool = False


class ToolBroke(Record, tag=True):
    """A tool call failed, was unavailable or ran out of time; whether it is unknown what it did by then."""

    command_id: str
    code: ErrorCode
    error: str = ""
    duration_ms: int = 0
    is_unknown: bool = False
    is_shared: bool = False


class ToolAccounted(Record, tag=True):
    """A tool was asked what became of an earlier call, and said so, or why it cannot."""

    command_id: str
    happened: Happened
    content: str = ""
    why: str = ""


class ChildSaid(Record, tag=True):
    """A child run ended; it is known to have waited for people for so long, or -1 where that is not known."""

    command_id: str
    ending: Ending
    text: str = ""
    spent: Charges = ()
    error: ErrorCode | None = None
    message: str = ""
    usage: TokenUsage = TokenUsage()
    stood_ms: int = -1
    # Tools of which it or those beneath it committed observations, and how many.
    observed: tuple[tuple[str, int], ...] = ()
    # Effects that it proposed and never committed.
    left: tuple[tuple[str, str], ...] = ()
    # What it and those beneath it were denied.
    denials: Denials = NO_DENIALS
    # Effects that it proposed and was refused for want of authority, or by a person.
    refused: tuple[tuple[str, bytes], ...] = ()
    # Of the orders that it was leased, those of which a call was proposed; None where that is not known.
    orders: tuple[int, ...] | None = None


class CodeProposed(Record, tag=True):
    """Code proposes calls of tools: a step of a plan one, orders their look-ups, which the model is shown as its own."""

    command_id: str
    calls: tuple[ToolCall, ...]
    # The orders that a model made, as JSON, where the calls are for them.
    orders: str = ""


class SiftedCall(Record):
    """A proposed call as a filter left it; with a reason it is not to be made."""

    call: ToolCall
    reason: str = ""


class FilterSaid(Record, tag=True):
    """A filter of the user has looked at the proposed calls."""

    command_id: str
    calls: tuple[SiftedCall, ...]


class ContextSaid(Record, tag=True):
    """Evidence was found; the relevance of its best piece in millionths, -1 where that is not known."""

    command_id: str
    text: str
    relevance_ppm: int = -1


class PersonApproved(Record, tag=True):
    """A person approved a held call, perhaps with arguments of their own; `packet` is the version they were shown.

    `for_values` and `is_awaited` are those of the arrival.
    """

    command_id: str
    by: str
    arguments: JsonObject | None = None
    packet: str = ""
    reason: str = ""
    for_values: bool = False
    is_awaited: bool = False
    grant: str = ""


class HostProposed(Record, tag=True):
    """An agent that runs elsewhere wants to make this call."""

    call: ToolCall


class PersonSaid(Record, tag=True):
    """A person answered a question (`command_id` names it) or gave feedback (`command_id` is empty)."""

    by: str
    text: str
    command_id: str = ""


Report: TypeAlias = (
    ModelSaid
    | FilterSaid
    | ToolSaid
    | ToolBroke
    | ToolAccounted
    | ChildSaid
    | CodeProposed
    | ContextSaid
    | PersonApproved
    | PersonSaid
    | HostProposed
    | Arrival
)


def report_of(signal: UserSignal) -> Report:
    """The report that a signal from outside makes to its run."""
    by, payload = signal.user_id, signal.payload
    match signal.type:
        case Signal.CANCEL:
            return arrivals.CancelRequested(by, str(payload.get("reason", "")))
        case Signal.PAUSE:
            return arrivals.PauseRequested(by)
        case Signal.RESUME:
            return arrivals.ResumeRequested(by)
        case Signal.APPROVE:
            shown, why = str(payload.get("packet", "")), str(payload.get("reason", ""))
            return PersonApproved(str(payload["packet_id"]), by, payload.get("arguments"), shown, why)
        case Signal.REJECT:
            return arrivals.ApprovalRefused(str(payload["packet_id"]), by, str(payload.get("reason", "")))
        case Signal.FEEDBACK:
            return PersonSaid(by, str(payload["text"]))
        case Signal.RETRY:
            return arrivals.RetryRequested(by, str(payload.get("reason", "")), retry_key(signal))


def retry_key(signal: UserSignal) -> str:
    """What a retry is told apart by: without chance, so that one that is delivered again is known."""
    return derived_id(signal.run_id, signal.signal_id)


def fork_of(signal: UserSignal) -> str:
    """The fork that a retry orders, however often it is delivered."""
    return derived_id(signal.run_id, retry_key(signal))


def report_of_broken(command: Command, why: str) -> Report:
    """The report on a command whose executor gave none: it may have done everything, or nothing."""
    return _BROKEN[type(command)](command, why)


def unperformed(command: Command) -> Report:
    """The report on a command that has no performer here: nothing was done."""
    why = f"there is no performer for {type(command).__name__} here"
    if isinstance(command, commands.CallModel):
        return arrivals.ModelFailed(command.id, ErrorCode.CONFIG_NO_ENGINE, why)
    if isinstance(command, CallTool):
        return ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, why)
    return report_of_broken(command, why)


def unequipped(command: Command, why: str) -> Report:
    """What is reported of a command whose performer could not make what it works with: nothing was done, nor ever will be."""
    if isinstance(command, commands.CallModel):
        return arrivals.ModelFailed(command.id, ErrorCode.CONFIG_PART_MISSING, why)
    if isinstance(command, CallTool):
        return ToolBroke(command.id, ErrorCode.TOOL_UNAVAILABLE, f"tool {command.tool!r} was not called: {why}")
    if isinstance(command, commands.CallCode):
        return arrivals.CodeFailed(command.id, why, ErrorCode.CONFIG_PART_MISSING)
    return report_of_broken(command, why)


def _broken_call(command: CallTool, why: str) -> Report:
    # It is unknown what a mutating call came to when its executor broke. That is what a timeout means, too.
    code = ErrorCode.TOOL_TIMEOUT if command.mutating else ErrorCode.TOOL_EXECUTION_FAILED
    return ToolBroke(command.id, code, why)


# One row per kind of command that is performed and reported.
_BROKEN: Mapping[type[Command], Callable[[Any, str], Report]] = MappingProxyType(
    {
        commands.CallModel: lambda command, why: arrivals.ModelFailed(
            command.id, ErrorCode.INFERENCE_ENGINE_ERROR, why, was_cut=True
        ),
        commands.CallTool: _broken_call,
        commands.ReconcileTool: lambda command, why: ToolAccounted(command.id, Happened.UNKNOWN),
        commands.CallCode: lambda command, why: arrivals.CodeFailed(command.id, why),
        commands.Retrieve: lambda command, why: arrivals.ContextFailed(command.id, why),
        commands.StartChild: lambda command, why: arrivals.ChildLost(command.id),
    }
)

# Every other command is a timer, a question, or a message to the performer of another.
PERFORMED: frozenset[type[Command]] = frozenset(_BROKEN)


def report_words(report: Report) -> str:
    """A report as a sentence that says what came of its errand, for people."""
    match report:
        case ToolSaid() if report.result.is_error:
            return f"it was performed, and its tool says: {report.result.error}"
        case ToolSaid():
            return f"it was performed: {report.result.content}"
        case ModelSaid():
            return f"the model answered: {report.result.content}"
        case ToolBroke():
            return f"it failed with {report.code.value}: {report.error}"
        case ModelFailed():
            return f"it failed with {report.code.value}: {report.message}"
        case _:
            return "it was performed"
