"""Commands: what the kernel orders, in the imperative. None is performed before its turn is written.

Rule 1: a command's id is the seq of its turn and its position there, so it needs no chance to be unique.
Rule 2: a command carries what it reserves; its outcome settles exactly that.
Rule 3: a command can be carried elsewhere and performed there: what it needs beyond the run's history is in it.
"""

from enum import StrEnum
from typing import TypeAlias, get_args

from remit.core.failure import NO_DENIALS, Denials, Ending
from remit.core.journal.proposed_call import ProposedCall
from remit.core.journal.versions import content_version
from remit.core.limits.budget import Charges
from remit.core.limits.escalation import Escalation
from remit.core.record import Record, Text, digest_of


class TimerPurpose(StrEnum):
    """Why the kernel wants to be told of a moment."""

    DEADLINE = "deadline"
    APPROVAL = "approval"
    RETRY = "retry"


class AskPurpose(StrEnum):
    """The purpose of a question: an approval, words, a release, or what became of a call."""

    APPROVAL = "approval"
    OUTCOME = "outcome"
    QUESTION = "question"
    # To let a run spend more than it was given.
    RELEASE = "release"
    # To let an uncertain answer stand.
    REVIEW = "review"


class CallModel(Record, tag=True):
    """Ask the model, showing it the first `messages_count` messages of the run's context."""

    id: str
    model: str
    messages_count: int
    max_tokens: int
    timeout_ms: int
    reserved: Charges
    attempt: int = 1


class CallTool(Record, tag=True):
    """Call a tool (rung: attempted). The kernel makes the key with the command, because providers repeat their call ids."""

    id: str
    call_id: str
    tool: str
    version: str
    arguments: Text
    arguments_hash: bytes
    key: str
    timeout_ms: int
    reserved: Charges
    mutating: bool = False
    approved_by: str = ""
    # The moment before which it is not made, since the tool failed before; 0 is at once.
    not_before_ms: int = 0
    # What it spends of money that is not the run's own, in the smallest unit, as far as its tool declares it.
    amount: int = 0
    # The hash of the arguments that an agent elsewhere proposed, where a person changed them while it did not wait.
    instead_of: bytes = b""


class ReconcileTool(Record, tag=True):
    """Ask a tool what became of the call with this key."""

    id: str
    about: str
    tool: str
    key: str
    timeout_ms: int
    reserved: Charges = ()


class CallCode(Record, tag=True):
    """Run named code of the user on an input: of a step of a plan, with its kind and the kind that the step takes."""

    id: str
    name: str
    input: Text
    timeout_ms: int
    reserved: Charges = ()
    kind: str = ""
    takes: str = ""


class Retrieve(Record, tag=True):
    """Find evidence for the exchange."""

    id: str
    timeout_ms: int
    reserved: Charges = ()


class Packet(Record):
    """The question that a person is shown, bound to the exact bytes that will run.

    `source` is the digest of the code that would run, `left` what the run has left of its budget, `policy` the rules by
    which the gate judged.
    """

    call: ProposedCall
    tool_version: str
    boundary_version: str
    reasons: tuple[str, ...]
    releases: Charges = ()
    about: str = ""
    source: str = ""
    left: Charges = ()
    blast_radius: str = ""
    rollback: str = ""
    # How many different people must approve it.
    approvals_needed: int = 1


def packet_version(packet: Packet) -> str:
    """The content hash that an approval names: of the bytes that will run and of all that was shown with them."""
    return content_version(packet)


class AskHuman(Record, tag=True):
    """Ask a person: to approve a call, to say what became of one, to answer a question, to release budget.

    Silence is refusal, once all were asked whom the boundary names. Calls that were held together have the group of
    the first of them, and are one packet.
    """

    id: str
    purpose: AskPurpose
    ending: Ending
    expires_at_ms: int
    packet: Packet | None = None
    question: str = ""
    reserved: Charges = ()
    escalation: Escalation | None = None
    group: str = ""
    # What a question offers to choose from.
    options: tuple[str, ...] = ()
    # What an approval releases, where no call is held.
    releases: Charges = ()
    # How many were asked before and kept silent.
    silences: int = 0
    # The call of a tool that asks a person: the answer is its result.
    call_id: str = ""
    tool: str = ""
    arguments_hash: bytes = b""
    # The answer that a reviewer is asked to let stand.
    answer: Text = ""


def question_version(question: AskHuman) -> str:
    """The content hash that a yes or a no may name: of the packet, or of the answer that is reviewed; empty without either."""
    if question.packet is not None:
        return packet_version(question.packet)
    if isinstance(question.answer, str):
        return digest_of(question.answer.encode()).hex() if question.answer else ""
    return question.answer.digest.hex()


class SetTimer(Record, tag=True):
    """Report back at a moment."""

    id: str
    due_at_ms: int
    purpose: TimerPurpose
    about: str = ""
    reserved: Charges = ()


class StartChild(Record, tag=True):
    """Start a run beneath this one. Its lease is reserved here and is all it may spend.

    A node of the graph that declares its child is named, with the kind of the prompt where that is a value of a plan,
    and what a validator found wrong with the child's last answer.
    """

    id: str
    run_id: str
    prompt: Text
    lease: Charges
    depth: int
    deadline_at_ms: int
    reserved: Charges
    call_id: str = ""
    tool: str = ""
    arguments_hash: bytes = b""
    node: str = ""
    kind: str = ""
    problems: tuple[str, ...] = ()
    # What this run was denied by then.
    denials: Denials = NO_DENIALS


class CancelCommand(Record, tag=True):
    """Stop performing a command. What it had reached is unknown unless it says so.

    `run_id` is the child that the command started, if it started one: it is told to end.
    """

    id: str
    about: str
    reserved: Charges = ()
    run_id: str = ""


class ForkRun(Record, tag=True):
    """Copy this run up to a turn into a new run that names it, and let that one go on."""

    id: str
    run_id: str
    at_seq: int
    by: str
    reserved: Charges = ()
    # Why it is forked; the model of the fork is told.
    why: str = ""


Command: TypeAlias = (
    CallModel
    | CallTool
    | ReconcileTool
    | CallCode
    | Retrieve
    | AskHuman
    | SetTimer
    | StartChild
    | CancelCommand
    | ForkRun
)

# The same kinds as a set: asking whether a type is in it takes a twentieth of asking the union.
COMMANDS: frozenset[type[Command]] = frozenset(get_args(Command))


def place_in_journal(command_id: str) -> tuple[int, int]:
    """The turn in which a command was ordered, and its place there; the very first place for an empty id."""
    turn, _, place = command_id.partition(".")
    return int(turn or 0), int(place or 0)
