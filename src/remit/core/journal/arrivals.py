"""Arrivals: what the world reports, in the past tense, completed with the facts the kernel needs.

Rule 1: an arrival is raw: a timeout or an error is reported as exactly that.
Rule 2: facts (canonical arguments, their hash, violations, token bounds, origins) are recorded with the arrival,
        so the kernel judges them and an audit can compute them again.
Rule 3: an outcome names the command it answers; everything else names who sent it.
"""

from enum import StrEnum
from typing import TypeAlias

from remit.core.failure import NO_DENIALS, Denials, Ending, ErrorCode
from remit.core.journal.proposed_call import ProposedCall
from remit.core.limits.budget import Charges
from remit.core.record import BlobRef, Record, Text
from remit.core.run.manifest import Manifest, Source
from remit.core.run.usage import TokenUsage
from remit.core.schema.json_schema import Violation


class Happened(StrEnum):
    """What is known of an effect whose outcome was in doubt."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class RunStarted(Record, tag=True):
    """A request passed the door. Facts: token bounds of its messages and of the tools offered with each call."""

    manifest: Manifest
    messages_tokens_bound: int
    offer_tokens_bound: int = 0


class ModelAnswered(Record, tag=True):
    """A model answered, with a text, with proposed calls, or both. `violations` are those of the shape asked for.

    `offered` are the tools it was offered, where a router had shortlisted them. `unsupported` are values of the text that
    nothing which was observed says, where its task asks for facts. Where the text had to be repaired to
    have the shape asked for, `repairs` say what was changed and `raw` holds the words as the model said them. `model`
    names the model that answered where that was not the model that was asked.
    """

    command_id: str
    text: Text = ""
    reasoning: Text = ""
    calls: tuple[ProposedCall, ...] = ()
    usage: TokenUsage = TokenUsage()
    tokens_bound: int = 0
    violations: tuple[Violation, ...] = ()
    offered: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()
    raw: Text = ""
    model: str = ""
    unsupported: tuple[str, ...] = ()
    # What the answer presents as verified and no observation shows; said only where the boundary looks for that.
    ungrounded: tuple[str, ...] = ()
    # The secret of the house that stood in its text or its reasoning, which no model is shown.
    exposed: str = ""


class ModelFailed(Record, tag=True):
    """A model call ended without an answer. `was_cut` says that it may have cost up to what was reserved.

    `retry_after_ms` is how long the server of the model asked to be left alone, 0 when it did not. `is_final` says that
    asking again would come to the same.
    """

    command_id: str
    code: ErrorCode
    message: str = ""
    usage: TokenUsage = TokenUsage()
    was_cut: bool = False
    retry_after_ms: int = 0
    is_final: bool = False


class ToolReturned(Record, tag=True):
    """A tool returned (rung: observed). Facts: violations of its result schema; `refuted` if its own check said no."""

    command_id: str
    content: Text
    evidence: bytes
    tokens_bound: int = 0
    violations: tuple[Violation, ...] = ()
    refuted: str = ""
    stop_loop: bool = False
    duration_ms: int = 0
    # Of the output contract, when the content is to become the answer.
    answer_violations: tuple[Violation, ...] = ()
    # The result in full, when it is too long to be shown: the content is then its beginning and says so.
    whole: BlobRef | None = None
    # What it says of the facts that the goal calls critical: (name, value).
    critical: tuple[tuple[str, str], ...] = ()
    # The flags that it raises, by what its tool declares and by what the boundary looks for.
    flags: tuple[str, ...] = ()
    # Several open calls could have brought it, and it is unknown which: what was read is told by a turn of its own.
    is_shared: bool = False


class ToolFailed(Record, tag=True):
    """A tool raised, was unavailable, or ran out of time: an observation too."""

    command_id: str
    code: ErrorCode
    error: str = ""
    evidence: bytes = b""
    tokens_bound: int = 0
    duration_ms: int = 0
    # A secret of the house stood in the arguments: the call was not made, and the run is not safe.
    exposed: bool = False
    # The flags that the words of its failure raise.
    flags: tuple[str, ...] = ()
    # The function was entered and did not say that nothing happened, so it is unknown what it has changed.
    is_unknown: bool = False
    # Several open calls could have failed so, and it is unknown which.
    is_shared: bool = False


class ToolOutcomeLost(Record, tag=True):
    """The executor of this mutating command died before reporting: it is unknown whether it happened."""

    command_id: str


class ToolReconciled(Record, tag=True):
    """A tool was asked what became of an earlier call. If it happened, the content is that call's result.

    `why` says why it is unknown, where it is.
    """

    command_id: str
    happened: Happened
    content: Text = ""
    evidence: bytes = b""
    tokens_bound: int = 0
    violations: tuple[Violation, ...] = ()
    whole: BlobRef | None = None
    why: str = ""


class Election(Record):
    """What a vote came to: the place of the winner among the candidates, how many agree with it, and how surely.

    One that is not settled may still be changed by candidates to come.
    """

    winner: int
    votes: int
    confidence_ppm: int
    is_settled: bool = True


class CodeReturned(Record, tag=True):
    """Named code of the user returned. For a validator, `problems` is empty when it was satisfied.

    `kind` says how to read the value of a step. A validator that counts says how many of its checks passed and failed.
    """

    command_id: str
    value: Text = ""
    problems: tuple[str, ...] = ()
    kind: str = ""
    calls: tuple[ProposedCall, ...] = ()
    election: Election | None = None
    checks_passed: int = 0
    checks_failed: int = 0
    warnings: tuple[str, ...] = ()
    # What is wrong is not worth another attempt.
    is_final: bool = False
    # The calls are what a filter made of those that were proposed.
    is_filtered: bool = False
    # What the calls take of the context, where the model is shown them as its own; 0 where it is not.
    tokens_bound: int = 0


class CodeFailed(Record, tag=True):
    """Named code of the user raised or ran out of time."""

    command_id: str
    error: str = ""
    code: ErrorCode = ErrorCode.TOOL_EXECUTION_FAILED


class ContextFound(Record, tag=True):
    """Evidence was retrieved for the exchange; it stands just before the last message and is never history."""

    command_id: str
    text: Text = ""
    tokens_bound: int = 0
    # How much of the question the best of it answers to, in millionths; -1 where the provider does not say.
    relevance_ppm: int = -1


class ContextFailed(Record, tag=True):
    """Retrieval failed; the run goes on without context."""

    command_id: str
    error: str = ""


class ApprovalGiven(Record, tag=True):
    """A person approved a held call, as it stands or with arguments of their own.

    `packet` is the version of the packet that they were shown, where they say so; no other may be approved by it.
    """

    command_id: str
    by: str
    modified: ProposedCall | None = None
    packet: str = ""
    reason: str = ""
    # Whether the values that nothing supplied may be used by this tool for the rest of the run.
    for_values: bool = False
    # The agent that proposed the call elsewhere waits for this very answer, and makes the call at once. Otherwise the
    # call waits until it is proposed again.
    is_awaited: bool = False
    # The orders as the person wants them, as JSON, where that is not as they were shown.
    orders: Text = ""
    # The standing grant that the person gave beforehand, where that is what approves.
    grant: str = ""


class ApprovalRefused(Record, tag=True):
    """A person refused a held call."""

    command_id: str
    by: str
    reason: str = ""


class OutcomeJudged(Record, tag=True):
    """A person said what became of an effect in doubt."""

    command_id: str
    by: str
    happened: Happened


class QuestionAnswered(Record, tag=True):
    """A person answered a question a graph asked."""

    command_id: str
    by: str
    text: Text
    tokens_bound: int = 0


class TimerFired(Record, tag=True):
    """A moment the kernel asked to be told about has come. `unbegun` are open calls that certainly will not be made."""

    command_id: str
    unbegun: tuple[str, ...] = ()


class ChildEnded(Record, tag=True):
    """A child run ended; what it spent settles its lease, what it used of its models is reported beside that."""

    command_id: str
    ending: Ending
    text: Text = ""
    spent: Charges = ()
    tokens_bound: int = 0
    error: ErrorCode | None = None
    message: str = ""
    usage: TokenUsage = TokenUsage()
    # What a judge objects to. Of a child that was leased orders, behind the mark of that, the numbers of those that are
    # used up: a field of its own would be the sixteenth key, with which every stored turn of this kind had other bytes.
    problems: tuple[str, ...] = ()
    # How long it is known to have waited for people; -1 where it is unknown.
    stood_ms: int = -1
    # Tools of which it or those beneath it committed observations, and how many.
    observed: tuple[tuple[str, int], ...] = ()
    # Effects that it proposed and never committed: each tool, and whether it is undone, not verified, or unknown.
    left: tuple[tuple[str, str], ...] = ()
    # What it and those beneath it were denied, beyond what it was told when it began.
    denials: Denials = NO_DENIALS
    # Effects that it proposed and that were refused for want of authority, or by a person: tool, hash of the arguments.
    refused: tuple[tuple[str, bytes], ...] = ()


class ChildSuspended(Record, tag=True):
    """A child run waits for a person, under this code; nothing moves it until a person answers."""

    command_id: str
    waiting_for: Ending


class ChildLost(Record, tag=True):
    """A child run cannot be found or reached any more."""

    command_id: str


class CancelRequested(Record, tag=True):
    """A user wants the run to stop at once. `unbegun` are its open calls that certainly will not be made any more."""

    by: str
    reason: str = ""
    unbegun: tuple[str, ...] = ()


class PauseRequested(Record, tag=True):
    """A user wants no new commands issued."""

    by: str


class ResumeRequested(Record, tag=True):
    """A user wants a paused run to go on."""

    by: str


class FeedbackGiven(Record, tag=True):
    """A user adds words for the model's next call, without deciding anything."""

    by: str
    text: Text
    tokens_bound: int = 0


class RetryRequested(Record, tag=True):
    """A user wants an ended run tried again, as a fork that names it. One that succeeded needs a reason.

    `key` follows from the id of the signal: one that is delivered again orders no second fork.
    """

    by: str
    reason: str = ""
    key: str = ""


class RunForked(Record, tag=True):
    """A copy of another run's turns ends here; from here on it is a run of its own, which its manifest says why.

    Where the fork is copied in its turn, `why` keeps the reason, since the manifest of the copy has one of its own.
    """

    by: str
    why: str | None = None


class SessionNoted(Record, tag=True):
    """A user keeps an entry for the session: this run and every later one of it. The value is a JSON text."""

    by: str
    key: str
    value: str


class SourcesAccepted(Record, tag=True):
    """A person accepts that code the run relies on has changed since it began."""

    by: str
    sources: tuple[Source, ...]


class RunHalted(Record, tag=True):
    """Dispatch is halted: these open commands were not begun, or were called off, and wait until the halt is lifted.

    `number` is the entry of the journal of halts, `what` says in words what that entry halts. It is 0 where no halt is
    in force: what a command needs is missing here, and `why` says what.
    """

    by: str
    number: int
    what: str
    why: str
    withheld: tuple[str, ...] = ()


class RunTaken(Record, tag=True):
    """A new driver has taken up the run under a lease that may expire; the one before can write nothing behind this.

    `token` is the fencing token of the lease.
    """

    token: int


class CallProposed(Record, tag=True):
    """An agent that runs elsewhere proposes a call and waits for the verdict.

    `takes` names the open command of the very same call that a person has approved and that is not made yet.
    """

    call: ProposedCall
    takes: str = ""


class TextShown(Record, tag=True):
    """An agent that runs elsewhere was shown a text as a result of this tool, and no single open call brought it.

    `is_shared` says that one of several open calls did. One that is lost could not be taken in: its words are unknown.
    `made` is the call that it is the result of, where that changes something and was not allowed. With `orders` it says
    instead which effects are wanted, as JSON, and `by` who has confirmed that.
    """

    tool: str = ""
    text: Text = ""
    is_shared: bool = False
    is_lost: bool = False
    made: ProposedCall | None = None
    orders: Text = ""
    by: str = ""


class HostFinished(Record, tag=True):
    """An agent that runs elsewhere is done: it proposes nothing more."""


Arrival: TypeAlias = (
    RunStarted
    | ModelAnswered
    | ModelFailed
    | ToolReturned
    | ToolFailed
    | ToolOutcomeLost
    | ToolReconciled
    | CodeReturned
    | CodeFailed
    | ContextFound
    | ContextFailed
    | ApprovalGiven
    | ApprovalRefused
    | OutcomeJudged
    | QuestionAnswered
    | TimerFired
    | ChildEnded
    | ChildSuspended
    | ChildLost
    | CancelRequested
    | PauseRequested
    | ResumeRequested
    | FeedbackGiven
    | RetryRequested
    | RunForked
    | SessionNoted
    | SourcesAccepted
    | RunHalted
    | RunTaken
    | CallProposed
    | TextShown
    | HostFinished
)
