"""Rulings: what the kernel settled, in the past tense of judgement.

Rule 1: the run's state is the fold of arrivals and rulings; what no ruling says did not happen.
Rule 2: rungs of the effect ladder that are settled in one turn are fields of one ruling.
Rule 3: what a model or a tool said stands in the arrival; a ruling quotes at most a short, bounded part of it.
"""

from enum import StrEnum
from typing import TypeAlias

from remit.core.failure import Ending, ErrorCode
from remit.core.limits.budget import Charges
from remit.core.limits.escalation import Escalation
from remit.core.record import Record
from remit.core.run.manifest import Source
from remit.core.work.values import ValueKind


class Rung(StrEnum):
    """How far an effect got: only a verified observation is committed, and nothing is ever assumed."""

    INTENDED = "intended"
    ATTEMPTED = "attempted"
    OBSERVED = "observed"
    VERIFIED = "verified"
    COMMITTED = "committed"


class Answer(StrEnum):
    """How a question to a person ended."""

    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    # No answer came in time, and the next person is asked.
    ESCALATED = "escalated"


class RunAccepted(Record, tag=True):
    """The request may run, until this moment unless a person is waited for."""

    deadline_at_ms: int


class NodeEntered(Record, tag=True):
    """The run moved along an edge: one completed step, one checkpoint."""

    node: str
    outcome: str


class CommandSettled(Record, tag=True):
    """A command has its outcome; what it reserved is released and this is charged."""

    command_id: str
    charged: Charges = ()


# Who verified an effect that its tool, asked afterwards, says happened; and, before the name, a person who said so.
RECONCILED = "reconcile"
BY_PERSON = "person:"
# The code of an effect that returned and that nothing could have refused: observed, neither failed nor verified.
UNVERIFIED = "EFFECT_UNVERIFIED"


# Of an effect whose tool failed after it was entered: whether it happened is unknown, and the key may be tried again.
OUTCOME_UNKNOWN = "OUTCOME_UNKNOWN"
# Of a proposed effect that was refused for its arguments, so that no call of it was ever made.
ARGUMENTS_INVALID = "ARGUMENTS_INVALID"
# Of an effect that a child run proposed and did not do.
LEFT_BY_CHILD = "LEFT_BY_CHILD"
# Of one that a child run was refused for want of authority, or by a person.
REFUSED_IN_CHILD = "REFUSED_IN_CHILD"
# Of one that an agent elsewhere made without being allowed to, and told afterwards.
UNALLOWED = "EFFECT_UNALLOWED"
# Of one that a person approved, and that the agent elsewhere never came for.
NOT_TAKEN = "CALL_NOT_TAKEN"


class CallSettled(Record, tag=True):
    """A tool call has its outcome. `rung` is how far it got; committed names verifier and evidence.

    The code says why it got no further; UNVERIFIED is no failure.
    """

    command_id: str
    rung: Rung
    charged: Charges = ()
    verifier: str = ""
    evidence: bytes = b""
    code: str = ""
    # Flags of the run that the outcome raises, and those that it lowers.
    raised: tuple[str, ...] = ()
    lowered: tuple[str, ...] = ()


class ToolCallRefused(Record, tag=True):
    """A proposed call was not commanded; the model is told why. The code is an ErrorCode or a Refusal.

    `mutating` says that it counts as an effect that was proposed: what an unknown tool would have done counts as the worst.
    `unreleased` says what a person, or silence, has not released with the call: the run ends once its neighbours are settled.
    `is_a_no` says that it is the first call of its answer that a person turned away. `is_denial` says that a condition of
    the boundary denied it, which counts like a missing permission.
    """

    call_id: str
    tool: str
    code: str
    reason: str
    arguments_hash: bytes = b""
    mutating: bool = False
    tokens_bound: int = 0
    unreleased: str = ""
    is_a_no: bool = False
    is_denial: bool = False


class CallNoted(Record, tag=True):
    """A boundary that only audits let a call pass which it would have refused or held. `releases` widens the caps."""

    call_id: str
    tool: str
    judgement: str
    code: str
    reason: str
    releases: Charges = ()


class CallsFiltered(Record, tag=True):
    """A filter of the user has looked at the proposed calls: so many were changed, and so many are not to be made."""

    command_id: str
    name: str
    changed: int = 0
    dropped: int = 0


class FallbackChosen(Record, tag=True):
    """A tool was unavailable, and an equivalent one is called in its place."""

    command_id: str
    tool: str


class ApprovalCounted(Record, tag=True):
    """One of several people who must approve a call has approved it; the question stays open for the others."""

    command_id: str
    by: str


class OutcomeDoubted(Record, tag=True):
    """A mutating command ran out of time, broke within, was cut off or was lost: it stays open until that is known.

    `raised` are the flags that the words of its tool raise.
    """

    command_id: str
    reason: str
    raised: tuple[str, ...] = ()


class OutcomeContradicted(Record, tag=True):
    """A call that was said not to have happened has returned after all: its effect may have happened twice by now.

    It stays settled as it is, and a person should look.
    """

    command_id: str


class QuestionSettled(Record, tag=True):
    """A question to a person was answered, expired or was withdrawn. `releases` widens the caps by so much."""

    command_id: str
    answer: Answer
    by: str = ""
    releases: Charges = ()


class ChildHeld(Record, tag=True):
    """A child waits for a person, so this run's clock stands still, for as long as the child waits."""

    command_id: str
    waiting_for: Ending


class ChildReleased(Record, tag=True):
    """A child that was said to wait is another run's: this run is a copy, and its own child has yet to begin."""

    command_id: str


class DelegationSettled(Record, tag=True):
    """A child has ended, and with it what it was to change.

    `code` says how that was left, under the name of what started the child: its tool, or its node; empty where the child
    leaves nothing but what it says itself. `made_good` are effects, left by then, that the child has made good.
    """

    command_id: str
    name: str
    code: str = ""
    made_good: tuple[tuple[str, bytes], ...] = ()


class RetryPlanned(Record, tag=True):
    """A call of a model or a tool failed in a way worth trying again; it is, after a pause."""

    command_id: str
    attempt: int
    code: ErrorCode


class UsageExceeded(Record, tag=True):
    """More was reported than was reserved. It is charged, and the run stops."""

    command_id: str
    over: Charges


class StoppedEarly(Record, tag=True):
    """What is left of a dimension cannot be enough, so nothing more is spent: this much was saved."""

    dimension: int
    left: int
    needed: int
    saved: Charges = ()


class WrapUpBegun(Record, tag=True):
    """A dimension is spent; the model is asked for its last words, from what was kept back for them."""

    dimension: int
    tokens_bound: int = 0


class ModelDowngraded(Record, tag=True):
    """A dimension is spent for the model in use; from here on this one is asked."""

    dimension: int
    model: str


class ContextCompressed(Record, tag=True):
    """The context was too long: results of these earlier calls are shown by their digest alone from here on."""

    messages: tuple[int, ...]
    tokens_saved: int


class CheckFailed(Record, tag=True):
    """The answer does not pass; these are the reasons, as the model is told them, and the code of the first."""

    problems: tuple[str, ...]
    tokens_bound: int = 0
    code: str = ""


class ValidatorHeard(Record, tag=True):
    """A named validator or a judge gave its opinion of the answer."""

    command_id: str
    name: str
    problems: tuple[str, ...] = ()
    checks_passed: int = 0
    checks_failed: int = 0
    warnings: tuple[str, ...] = ()
    is_final: bool = False


class StepFinished(Record, tag=True):
    """A step of a plan has its output: the outcome of this command, or what it was fed, where it only looked at it."""

    step: str
    kind: ValueKind
    command_id: str = ""
    is_passed_on: bool = False


class VoteCounted(Record, tag=True):
    """The replicas were counted: this child's answer is the run's, so many of those that answered agree with it."""

    winner: str
    votes: int
    answered: int
    confidence_ppm: int


class GroundingViolated(Record, tag=True):
    """The run would end as if something had happened, or were so, that was never observed.

    Where its task was only inferred, the run ends all the same and the caller is warned.
    """

    claims: tuple[str, ...]
    only_warns: bool = False


class OutcomeParked(Record, tag=True):
    """The run is paused: where it would have gone, and why, is kept for the resume."""

    outcome: str
    ending: Ending | None = None
    error: ErrorCode | None = None
    message: str = ""


class RunPaused(Record, tag=True):
    """No new commands from here on; what returns is recorded.

    A pause that a halt of dispatch made names the entry of the journal of halts, what that halts, and its reason. One that
    waits for something that is missing here names no entry.
    """

    by: str
    halt: int = 0
    what: str = ""
    why: str = ""


class CommandsWithheld(Record, tag=True):
    """These open commands have not been begun, or may be begun again: the resume sends them, under the same ids."""

    command_ids: tuple[str, ...]


class RunResumed(Record, tag=True):
    """The run goes on from where it was paused."""

    by: str


class FeedbackTaken(Record, tag=True):
    """The words will be in the next model call."""

    by: str


class SessionEntryKept(Record, tag=True):
    """The session has this entry from here on, in this run and in those that follow it."""

    key: str
    value: str


class SourcesReplaced(Record, tag=True):
    """The run relies on this code from here on, in place of what its manifest names."""

    by: str
    sources: tuple[Source, ...]


class AddendumNoted(Record, tag=True):
    """Something arrived after the ending, which stays as it is: the late outcome of the call it names, or a retry."""

    about: str


class CallTaken(Record, tag=True):
    """A call that a person approved is made now: the agent that runs elsewhere has proposed it again, and was told."""

    command_id: str


class EffectUnallowed(Record, tag=True):
    """An agent that runs elsewhere has made a call that changes something and was not allowed: it counts at its worst.

    `id` names it among the calls of the run; no command ordered it.
    """

    id: str
    tool: str
    reason: str
    charged: Charges = ()


class RunEnded(Record, tag=True):
    """The run is over, with this code. Every resource it held is released by the commands beside this ruling.

    `escalation` says who receives authority next, where the ending hands it on. `doubted` names the effects whose
    outcome is unknown.
    """

    ending: Ending
    error: ErrorCode | None = None
    message: str = ""
    escalation: Escalation | None = None
    doubted: tuple[str, ...] = ()


Ruling: TypeAlias = (
    RunAccepted
    | NodeEntered
    | CommandSettled
    | CallSettled
    | ToolCallRefused
    | CallNoted
    | CallsFiltered
    | FallbackChosen
    | ApprovalCounted
    | OutcomeDoubted
    | QuestionSettled
    | ChildHeld
    | DelegationSettled
    | RetryPlanned
    | UsageExceeded
    | StoppedEarly
    | WrapUpBegun
    | ModelDowngraded
    | ContextCompressed
    | CheckFailed
    | ValidatorHeard
    | StepFinished
    | VoteCounted
    | GroundingViolated
    | OutcomeParked
    | RunPaused
    | CommandsWithheld
    | RunResumed
    | FeedbackTaken
    | SessionEntryKept
    | SourcesReplaced
    | AddendumNoted
    | CallTaken
    | EffectUnallowed
    | RunEnded
    | ChildReleased
    | OutcomeContradicted
)
