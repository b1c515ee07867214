"""Steps: what was done in a run, each from its order to its outcome.

Rule 1: what one turn ordered and a later one settled is one step, with how long it took and what it was charged.
Rule 2: texts stand here as they were said; the caller makes them fit to print.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeAlias

from remit.core.failure import ANSWERED
from remit.core.journal.arrivals import (
    ApprovalGiven,
    ApprovalRefused,
    CallProposed,
    CancelRequested,
    ChildEnded,
    ChildLost,
    CodeFailed,
    CodeReturned,
    ContextFailed,
    ContextFound,
    FeedbackGiven,
    ModelAnswered,
    ModelFailed,
    OutcomeJudged,
    PauseRequested,
    QuestionAnswered,
    ResumeRequested,
    RetryRequested,
    RunForked,
    RunHalted,
    SessionNoted,
    SourcesAccepted,
    ToolFailed,
    ToolOutcomeLost,
    ToolReconciled,
    ToolReturned,
)
from remit.core.journal.commands import (
    AskHuman,
    CallCode,
    CallModel,
    CallTool,
    Command,
    ReconcileTool,
    Retrieve,
    StartChild,
)
from remit.core.journal.proposed_call import ProposedCall, order_of
from remit.core.journal.rulings import NOT_TAKEN, UNVERIFIED, CallSettled, Rung
from remit.core.limits.budget import Charges, Dimension
from remit.core.record import Record, Text
from remit.core.run.usage import TokenUsage
from remit.core.work.orders import told_order
from remit.kernel.people.clock_stop import UNTOLD
from remit.observe.node_names import percent


class StepKind(StrEnum):
    """What kind of thing was done, or came in between."""

    MODEL = "model"
    TOOL = "tool"
    REFUSED = "refused"
    QUESTION = "question"
    CHILD = "child"
    CODE = "code"
    CONTEXT = "context"
    INQUIRY = "inquiry"
    TIMER = "timer"
    SIGNAL = "signal"
    STEP = "step"
    VOTE = "vote"
    NOTE = "note"
    # Where the run stands, and how it does; the tree has visits and an ending in their place.
    NODE = "node"
    RUN = "run"


UNDER_WAY = "under way"
CUT_OFF = "cut off"
ANSWERED_STATUS = "answered"
RETURNED = "returned"
LOST = "lost"
FAILED = "failed"
IN_DOUBT = "in doubt"
NEVER_MADE = "approved, never made"
NOT_ALLOWED = "made without being allowed"
OPEN = "open"
# What a person told a run to end it.
CANCEL = "cancel"


class PerformedStep(Record):
    """One thing that was done: what was asked, what came of it, how long that took and what it was charged.

    `seq` is the turn that ordered it and `until_seq` the one that settled it; -1 and a duration of -1 mean that none has.
    """

    kind: StepKind
    name: str
    seq: int
    began_ms: int
    status: str = UNDER_WAY
    until_seq: int = -1
    duration_ms: int = -1
    asked: Text = ""
    answered: Text = ""
    # The tools that a model's answer proposed to call.
    proposed: tuple[str, ...] = ()
    code: str = ""
    reason: str = ""
    # A figure that says how well it went: checks that passed, how much of a question the evidence answers to.
    note: str = ""
    by: str = ""
    rung: str = ""
    attempt: int = 1
    charged: Charges = ()
    usage: TokenUsage = TokenUsage()
    # The run that a child is.
    run_id: str = ""
    # The command that ordered it; the node at which the run stood then.
    id: str = ""
    node: str = ""
    # The tool that is called, asked about or worked for, and the call that asked for it.
    tool: str = ""
    call_id: str = ""
    arguments_hash: bytes = b""
    # What was set aside for it, and how much of that a child may spend.
    reserved: Charges = ()
    lease: Charges = ()
    # The model that answered in place of the one asked; how many messages it was shown.
    model: str = ""
    messages: int = 0
    # How long its performer says that it took; 0 where it does not say so.
    measured_ms: int = 0
    # As much of a result as a model was shown.
    content: Text = ""
    # Under which code a person is waited for; of a child that has ended, for how long it says it waited, -1 where it does not.
    waiting_for: str = ""
    stood_ms: int = UNTOLD
    # The order that a call carries out.
    order: str = ""


# Fields of a step that something changes, and to what.
Changes: TypeAlias = dict[str, Any]
# A call as the model that proposed it named it: models repeat their ids, so the tool and the arguments belong to it.
CallName: TypeAlias = tuple[str, str, bytes]
_NO_ORDERS: Mapping[CallName, str] = MappingProxyType({})


def orders_proposed(arrival: object) -> dict[CallName, str]:
    """The orders that the calls of an arrival equal."""
    if isinstance(arrival, CallProposed):
        calls: tuple[ProposedCall, ...] = (arrival.call,)
    else:
        calls = arrival.calls if isinstance(arrival, ModelAnswered | CodeReturned) else ()
    equal = [(call, order_of(call)) for call in calls]
    return {(call.call_id, call.tool, call.arguments_hash): told_order(order) for call, order in equal if order}


def begun_step(
    command: Command, seq: int, began_ms: int, node: str = "", orders: Mapping[CallName, str] = _NO_ORDERS
) -> PerformedStep | None:
    """The step that a command begins; timers, forks and cancellations are told by what comes of them."""
    if (changes := _ordered(command)) is None:
        return None
    if isinstance(command, CallTool) and orders:
        ordered = orders.get((command.call_id, command.tool, command.arguments_hash), "")
        changes["order"] = changes["order"] or ordered
    return PerformedStep(seq=seq, began_ms=began_ms, id=command.id, node=node, reserved=command.reserved, **changes)


def _ordered(command: Command) -> Changes | None:
    match command:
        case CallModel():
            shown = {"attempt": command.attempt, "messages": command.messages_count}
            return {"kind": StepKind.MODEL, "name": command.model, **shown}
        case CallTool():
            said = {"asked": command.arguments, "rung": Rung.ATTEMPTED.value, "by": command.approved_by}
            granted = {"order": _grant_in(command.approved_by)}
            return {"kind": StepKind.TOOL, "name": command.tool, **said, **granted, **_called(command)}
        case ReconcileTool():
            return {"kind": StepKind.INQUIRY, "name": command.tool, "tool": command.tool}
        case CallCode():
            return {"kind": StepKind.CODE, "name": command.name}
        case Retrieve():
            return {"kind": StepKind.CONTEXT, "name": "evidence"}
        case StartChild():
            named = {"name": command.tool or command.node or "run", "asked": command.prompt}
            child = {"run_id": command.run_id, "lease": command.lease}
            return {"kind": StepKind.CHILD, **named, **child, **_called(command)}
        case AskHuman():
            return {"kind": StepKind.QUESTION, "status": OPEN, "waiting_for": command.ending.value, **_asked(command)}
    return None


def _grant_in(approved_by: str) -> str:
    """The standing grant by which a call was approved; empty where a person was asked."""
    _, mark, told = approved_by.partition(" (grant ")
    return f"grant {told.removesuffix(')')}" if mark else ""


def _called(command: CallTool | StartChild) -> Changes:
    return {"tool": command.tool, "call_id": command.call_id, "arguments_hash": command.arguments_hash}


def _asked(command: AskHuman) -> Changes:
    purpose, packet = command.purpose.value, command.packet
    if packet is None:
        return {"name": purpose, "asked": command.question}
    about = {"name": f"{purpose} of {packet.call.tool}", "tool": packet.call.tool}
    return {**about, "asked": packet.call.arguments, "reason": "; ".join(packet.reasons)}


def _how_answered(arrival: ModelAnswered) -> str:
    """Who answered, where that was not the one asked, and how much of the words had to be repaired."""
    who = f"by {arrival.model}" if arrival.model else ""
    changes = len(arrival.repairs)
    repaired = f"repaired in {changes} place{'s' if changes > 1 else ''}" if changes else ""
    return "; ".join(part for part in (who, repaired) if part)


def outcome_of(arrival: object) -> Changes:
    """What an arrival says of the step that it answers."""
    match arrival:
        case ModelAnswered():
            proposed = tuple(call.tool for call in arrival.calls)
            said = {"status": ANSWERED_STATUS, "answered": arrival.text, "proposed": proposed, "usage": arrival.usage}
            return {**said, "note": _how_answered(arrival), "model": arrival.model}
        case ModelFailed():
            failed = {"status": FAILED, "code": arrival.code.value, "reason": arrival.message}
            return {**failed, "usage": arrival.usage}
        case ToolReturned():
            # The result in full, where it was too long to be shown to a model.
            whole = arrival.whole or arrival.content
            return {"answered": whole, "reason": arrival.refuted, "content": arrival.content}
        case ToolFailed():
            return {"status": FAILED, "code": arrival.code.value, "reason": arrival.error}
        case ToolOutcomeLost():
            return {"status": IN_DOUBT, "reason": "its performer died before it could report"}
        case ToolReconciled():
            happened = {"status": f"happened: {arrival.happened.value}"}
            return {**happened, "answered": arrival.whole or arrival.content}
        case CodeReturned() | CodeFailed():
            return _code_outcome(arrival)
        case ContextFound():
            note = "" if arrival.relevance_ppm < 0 else f"relevance {percent(arrival.relevance_ppm)}"
            return {"status": "found", "answered": arrival.text, "note": note}
        case ContextFailed():
            return {"status": FAILED, "reason": arrival.error}
        case ChildEnded() | ChildLost():
            return _child_outcome(arrival)
    return _answer_of(arrival)


def _code_outcome(arrival: CodeReturned | CodeFailed) -> Changes:
    """What code of the user came to: a validator is content or objects, a step returns, a voter counts."""
    if isinstance(arrival, CodeFailed):
        return {"status": FAILED, "code": arrival.code.value, "reason": arrival.error}
    reason = "; ".join(arrival.problems)
    if arrival.election is not None:
        return {"status": "counted" if arrival.election.is_settled else "undecided"}
    if arrival.calls:
        return {"status": RETURNED, "proposed": tuple(call.tool for call in arrival.calls)}
    status = "objected" if arrival.problems else RETURNED if arrival.kind else "passed"
    checks = arrival.checks_passed + arrival.checks_failed
    note = f"{arrival.checks_passed} of {checks} checks passed" if checks else ""
    return {"status": status, "answered": arrival.value, "reason": reason, "note": note}


def _child_outcome(arrival: ChildEnded | ChildLost) -> Changes:
    if isinstance(arrival, ChildLost):
        return {"status": LOST}
    said = {"answered": arrival.text, "stood_ms": arrival.stood_ms}
    if arrival.ending in ANSWERED:
        return {**said, "status": ANSWERED_STATUS, "code": arrival.ending.value}
    code = arrival.ending.value if arrival.error is None else arrival.error.value
    return {**said, "status": FAILED, "code": code, "reason": arrival.message}


def _answer_of(arrival: object) -> Changes:
    """What a person answered; the ruling beside it says what came of that."""
    match arrival:
        case ApprovalGiven():
            modified = {} if arrival.modified is None else {"answered": arrival.modified.arguments}
            return {"by": arrival.by, **modified}
        case ApprovalRefused():
            return {"by": arrival.by, "answered": arrival.reason}
        case OutcomeJudged():
            return {"by": arrival.by, "answered": f"happened: {arrival.happened.value}"}
        case QuestionAnswered():
            return {"by": arrival.by, "answered": arrival.text}
    return {}


def told_by_people(arrival: object) -> tuple[str, str, Text] | None:
    """What a person told a run without being asked: what, who, and in which words."""
    match arrival:
        case CancelRequested():
            return CANCEL, arrival.by, arrival.reason
        case PauseRequested():
            return "pause", arrival.by, ""
        case RunHalted():
            return f"halt of {arrival.what}", arrival.by, arrival.why
        case ResumeRequested():
            return "resume", arrival.by, ""
        case FeedbackGiven():
            return "feedback", arrival.by, arrival.text
        case RetryRequested():
            return "retry", arrival.by, arrival.reason
        case RunForked():
            return "fork", arrival.by, ""
        case SessionNoted():
            return "session entry", arrival.by, f"{arrival.key}={arrival.value}"
        case SourcesAccepted():
            return "changed code accepted", arrival.by, ", ".join(source.name for source in arrival.sources)
    return None


def status_settled(ruling: CallSettled, step: PerformedStep) -> str:
    """What became of a tool call, in a word: how far up the ladder it got, unless it failed on the way."""
    if ruling.rung is Rung.COMMITTED:
        return Rung.COMMITTED.value
    if ruling.code == NOT_TAKEN:
        return NEVER_MADE
    # What an agent elsewhere tells of a failed call later settles it once more: it returned.
    if step.status in (FAILED, CUT_OFF) and ruling.code != UNVERIFIED:
        return step.status
    return FAILED if ruling.code and ruling.code != UNVERIFIED else ruling.rung.value


def gauges_of(step: PerformedStep, charged: Charges) -> Charges:
    """How far a model call that was charged so went in the gauges: retries before it, and tokens that it was shown.

    Steps of other kinds move no gauge; the depth of the run is told by the run itself.
    """
    if step.kind is not StepKind.MODEL:
        return ()
    shown = dict(charged).get(int(Dimension.INPUT_TOKENS), 0)
    gauges = ((int(Dimension.RETRIES), step.attempt - 1), (int(Dimension.CONTEXT_TOKENS), shown))
    return tuple([gauge for gauge in gauges if gauge[1]])


def checks_passed(arrival: object) -> int:
    """How many checks code of the user counts as passed."""
    return arrival.checks_passed if isinstance(arrival, CodeReturned) else 0
