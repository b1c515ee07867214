"""Errands: commands with everything that a performer needs of their runs.

Rule 1: an errand is a record: it can be written down, carried to another process, and performed there.
Rule 2: the performer of an errand has it, the kit of its run, and the resources of its own process; nothing else of the run.
Rule 3: a long text stands in the bytes of an errand by its digest, and is fetched where it is needed.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import msgspec

from remit.core.failure import InvariantBroken
from remit.core.journal.commands import CallCode, CallModel, CallTool, Command, ReconcileTool, Retrieve
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.queued import ERRAND_UNREADABLE
from remit.core.record import JsonObject, Record, Text, replace, unclassed
from remit.core.run.contract import SystemRequest
from remit.core.run.correlation import CorrelationContext
from remit.core.run.halt import HaltScope
from remit.core.run.inference import ModelInfo, ModelRequest, Routing
from remit.core.run.messages import Message
from remit.orchestrate.executors.reports import Report
from remit.orchestrate.facts.texts import Kept, stored

ERRAND_FORMAT = 1
_PREFIX = bytes([ERRAND_FORMAT])


class Sender(Record):
    """The run that an errand is for: what it is called, whom it works for, and which halts hold all of it back.

    `family` names where the values of its secrets are kept.
    """

    run_id: str
    family: str
    request_id: str = ""
    session_id: str = ""
    trace_id: str = ""
    tenant_id: str = ""
    user_id: str = ""
    scopes: tuple[HaltScope, ...] = ()

    def correlation(self, command_id: str) -> CorrelationContext:
        """What ties whatever is said of a command to the request of its run."""
        return CorrelationContext(self.request_id, self.session_id, self.trace_id, command_id)


class Occasion(Record):
    """What tools are shortlisted by: the user's words, what was called since, and whether something must be called."""

    words: str = ""
    called: tuple[str, ...] = ()
    must_call: bool = False


class ModelErrand(Record, tag=True):
    """Ask a model.

    `began` is the number of messages that stand before the first thing said in this run. The occasion is told where it
    cannot be read from the messages. `is_checked` says that what is wrong with the answer is checked by the run.
    """

    sender: Sender
    command: CallModel
    request: ModelRequest
    info: ModelInfo | None = None
    began: int = 0
    occasion: Occasion | None = None
    routing: Routing = Routing.AUTO
    is_checked: bool = False
    # What opens its engine, by which a halt may name it.
    engine: str = ""


class ToolErrand(Record, tag=True):
    """Call a tool. `filters` are those that have not seen the call as it is made, and `unseen` says why they have not.

    `metadata` is that of the request.
    """

    sender: Sender
    command: CallTool
    node: str = ""
    filters: tuple[str, ...] = ()
    unseen: str = ""
    metadata: JsonObject = {}


class InquiryErrand(Record, tag=True):
    """Ask a tool what became of a call with these arguments; None where there is no such call."""

    sender: Sender
    command: ReconcileTool
    arguments: Text | None = None


class JudgeErrand(Record, tag=True):
    """Have a validator of the user look at a text."""

    sender: Sender
    command: CallCode


class SiftErrand(Record, tag=True):
    """Show a filter of the user the calls that a model has proposed."""

    sender: Sender
    command: CallCode
    node: str
    calls: tuple[ProposedCall, ...]
    metadata: JsonObject = {}


class StepErrand(Record, tag=True):
    """Have a step of a plan done. `is_check` says that it judges what another step did."""

    sender: Sender
    command: CallCode
    node: str
    prompt: str = ""
    is_check: bool = False


class PlanErrand(Record, tag=True):
    """Have a planner make the plan of a request. `answer` is what its model said, where it has one.

    `policy` is what the plan may be, as the graph keeps it; empty where no steps are run, and the plan is told in words.
    """

    sender: Sender
    command: CallCode
    request: SystemRequest
    policy: str = ""
    answer: Text = ""


class ProposeErrand(Record, tag=True):
    """Make the call of a tool from the value that a step of a plan was handed, or the reads of a run's orders.

    A read is a tool and the canonical JSON of its arguments.
    """

    sender: Sender
    command: CallCode
    node: str
    reads: tuple[tuple[str, str], ...] = ()
    orders: str = ""


class VoteErrand(Record, tag=True):
    """Have the answers of replicas counted: their texts, their places among all replicas, and how many are to come."""

    sender: Sender
    command: CallCode
    answers: tuple[Text, ...] = ()
    places: tuple[int, ...] = ()
    to_come: int = 0


class RetrieveErrand(Record, tag=True):
    """Find evidence for the user's words; `given` is what came with the task, and then nothing is looked up."""

    sender: Sender
    command: Retrieve
    query: Text = ""
    given: Text = ""


Errand: TypeAlias = (
    ModelErrand
    | ToolErrand
    | InquiryErrand
    | JudgeErrand
    | SiftErrand
    | StepErrand
    | PlanErrand
    | ProposeErrand
    | VoteErrand
    | RetrieveErrand
)


def packed(errand: Errand) -> tuple[Errand, Kept]:
    """An errand with its long texts by digest, and these texts: they are kept before the errand goes out."""
    kept: Kept = []
    if not isinstance(errand, ModelErrand):
        return errand, kept
    messages = tuple([_referred(message, kept) for message in errand.request.messages])
    return replace(errand, request=replace(errand.request, messages=messages)), kept


def _referred(message: Message, kept: Kept) -> Message:
    texts = (message.content, message.reasoning)
    content, reasoning = (stored(text, kept) if isinstance(text, str) else text for text in texts)
    return replace(message, content=content, reasoning=reasoning)


async def unpacked(errand: Errand, fetch: Callable[[Text], Awaitable[str]]) -> Errand:
    """An errand with the texts in full that an engine is shown."""
    if not isinstance(errand, ModelErrand):
        return errand
    messages = [
        replace(message, content=await fetch(message.content), reasoning=await fetch(message.reasoning))
        for message in errand.request.messages
    ]
    return replace(errand, request=replace(errand.request, messages=tuple(messages)))


def claim_of(command: Command, attempt: int, *, is_repeatable: bool) -> int:
    """The attempt under which an errand is claimed before it is performed; 0 where none claims it.

    What decides whether something is changed is claimed: calls that change something, which begin once unless they are
    repeatable, and what their tool is asked of them.
    """
    if isinstance(command, ReconcileTool):
        return attempt
    is_claimed = isinstance(command, CallTool) and command.mutating
    return (attempt if is_repeatable else 1) if is_claimed else 0


_encode = msgspec.msgpack.Encoder(order="deterministic", enc_hook=unclassed).encode
_errands: "msgspec.msgpack.Decoder[Any]" = msgspec.msgpack.Decoder(Errand)
_reports: "msgspec.msgpack.Decoder[Any]" = msgspec.msgpack.Decoder(Report)


def encode_errand(errand: Errand) -> bytes:
    """An errand as bytes."""
    return _PREFIX + _encode(errand)


def decode_errand(data: bytes) -> Errand:
    """The errand in these bytes; raises ERRAND_UNREADABLE where there is none."""
    errand: Errand = _decoded(_errands, data)
    return errand


def encode_report(report: Report) -> bytes:
    """A report as bytes, to be carried back from where its errand was performed."""
    return _PREFIX + _encode(report)


def decode_report(data: bytes) -> Report:
    """The report in these bytes; raises ERRAND_UNREADABLE where there is none."""
    report: Report = _decoded(_reports, data)
    return report


def _decoded(decoder: "msgspec.msgpack.Decoder[Any]", data: bytes) -> Any:  # as the decoder is
    if data[:1] != _PREFIX:
        version = data[0] if data else "none"
        message = f"an errand has format {version}, and this version reads format {ERRAND_FORMAT}; upgrade remit there"
        raise InvariantBroken(ERRAND_UNREADABLE, message)
    try:
        return decoder.decode(memoryview(data)[1:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvariantBroken(ERRAND_UNREADABLE, f"an errand of {len(data)} bytes does not decode: {error}") from error
