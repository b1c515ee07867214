"""Every error code, every refusal and every ending, each with one row.

Rule 1: a code belongs to exactly one category, and the beginning of its name says which.
Rule 2: what callers branch on (code, category, retryable, exit code) comes from these tables; messages are for people.
Rule 3: a run has one ending. A code that suspends becomes an ending only when its wait expires or no person can answer.
Rule 4: every ending names the receiver of authority.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

from remit.core.failure_families import FailureCategory, Retryable, code_family
from remit.core.record import JsonObject, Record
from remit.core.run.lifecycle import LifecycleState, LoopState, Outcome


class CategoryRow(Record):
    """What all codes of a category share: how they begin, which part emits them, how a caller recovers."""

    prefix: str
    emitted_by: str
    recovery: str


# A cancellation or a missing setting can be met in any room; ANY_ROOM says so where others name one.
ANY_ROOM = "any"

CATEGORIES: Mapping[FailureCategory, CategoryRow] = MappingProxyType(
    {
        FailureCategory.INFERENCE: CategoryRow("INFERENCE_", "inference", "Ask the engine again after a pause."),
        FailureCategory.TOOL: CategoryRow("TOOL_", "tool", "Call the tool again if it is idempotent, or do without."),
        FailureCategory.CONSTRAINT: CategoryRow(
            "CONSTRAINT_", "constraint", "Repair the JSON, then ask the model again."
        ),
        FailureCategory.VALIDATION: CategoryRow(
            "VALIDATION_", "validate", "Repair and ask again, or change the prompt."
        ),
        FailureCategory.ORCHESTRATION: CategoryRow("ORCHESTRATION_", "orchestrate", "A person has to step in."),
        FailureCategory.CONFIGURATION: CategoryRow("CONFIG_", ANY_ROOM, "Correct the configuration."),
        FailureCategory.CANCELLATION: CategoryRow("CANCELLED", ANY_ROOM, "Submit the request anew."),
    }
)


class ErrorCode(StrEnum):
    """The codes that a failure of the world, of the model or of the setup carries."""

    INFERENCE_ENGINE_ERROR = "INFERENCE_ENGINE_ERROR"
    INFERENCE_MODEL_UNAVAILABLE = "INFERENCE_MODEL_UNAVAILABLE"
    INFERENCE_CONTEXT_EXCEEDED = "INFERENCE_CONTEXT_EXCEEDED"
    INFERENCE_MALFORMED_RESPONSE = "INFERENCE_MALFORMED_RESPONSE"
    TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
    TOOL_EXECUTION_FAILED = "TOOL_EXECUTION_FAILED"
    TOOL_TIMEOUT = "TOOL_TIMEOUT"
    TOOL_UNAVAILABLE = "TOOL_UNAVAILABLE"
    CONSTRAINT_GRAMMAR_REJECTED = "CONSTRAINT_GRAMMAR_REJECTED"
    CONSTRAINT_SCHEMA_INVALID = "CONSTRAINT_SCHEMA_INVALID"
    CONSTRAINT_JSON_INVALID = "CONSTRAINT_JSON_INVALID"
    CONSTRAINT_ENUM_UNRECOGNIZED = "CONSTRAINT_ENUM_UNRECOGNIZED"
    VALIDATION_RULE_FAILED = "VALIDATION_RULE_FAILED"
    VALIDATION_SEMANTIC_FAILED = "VALIDATION_SEMANTIC_FAILED"
    ORCHESTRATION_STEP_MISMATCH = "ORCHESTRATION_STEP_MISMATCH"
    ORCHESTRATION_ITERATION_LIMIT = "ORCHESTRATION_ITERATION_LIMIT"
    ORCHESTRATION_NO_CONSENSUS = "ORCHESTRATION_NO_CONSENSUS"
    ORCHESTRATION_PLAN_FAILED = "ORCHESTRATION_PLAN_FAILED"
    CONFIG_NO_ENGINE = "CONFIG_NO_ENGINE"
    CONFIG_SCHEMA_REQUIRED = "CONFIG_SCHEMA_REQUIRED"
    CONFIG_GRAMMAR_NOT_FOUND = "CONFIG_GRAMMAR_NOT_FOUND"
    CONFIG_PART_MISSING = "CONFIG_PART_MISSING"
    CANCELLED_TIMEOUT = "CANCELLED_TIMEOUT"
    CANCELLED_SIGNAL = "CANCELLED_SIGNAL"


class ErrorRow(Record):
    """The row of an error code: may it be retried, which room emits it, what to do about it."""

    category: FailureCategory
    retryable: Retryable
    emitted_by: str
    recovery: str


def _row(category: FailureCategory, retryable: Retryable, recovery: str) -> ErrorRow:
    return ErrorRow(category, retryable, CATEGORIES[category].emitted_by, recovery)


_INFERENCE, _TOOL, _CONSTRAINT = FailureCategory.INFERENCE, FailureCategory.TOOL, FailureCategory.CONSTRAINT
_VALIDATION, _ORCHESTRATION = FailureCategory.VALIDATION, FailureCategory.ORCHESTRATION
_CONFIGURATION, _CANCELLATION = FailureCategory.CONFIGURATION, FailureCategory.CANCELLATION
_YES, _NO, _IF_IDEMPOTENT = Retryable.YES, Retryable.NO, Retryable.IF_IDEMPOTENT

# Inference failures are retryable one by one: a prompt that does not fit will not fit the second time.
ERRORS: Mapping[ErrorCode, ErrorRow] = MappingProxyType(
    {
        ErrorCode.INFERENCE_ENGINE_ERROR: _row(_INFERENCE, _YES, "Wait a little and ask the engine again."),
        ErrorCode.INFERENCE_MODEL_UNAVAILABLE: _row(_INFERENCE, _YES, "Load the model, or fall back to another one."),
        ErrorCode.INFERENCE_CONTEXT_EXCEEDED: _row(_INFERENCE, _NO, "Shorten the history or the retrieved context."),
        ErrorCode.INFERENCE_MALFORMED_RESPONSE: _row(_INFERENCE, _YES, "Ask again; the next answer may parse."),
        ErrorCode.TOOL_NOT_FOUND: _row(_TOOL, _IF_IDEMPOTENT, "Register the tool, or offer the model its right name."),
        ErrorCode.TOOL_EXECUTION_FAILED: _row(
            _TOOL, _IF_IDEMPOTENT, "Read the tool's error, then call it again or skip it."
        ),
        ErrorCode.TOOL_TIMEOUT: _row(_TOOL, _IF_IDEMPOTENT, "Find out whether it took effect before calling it again."),
        ErrorCode.TOOL_UNAVAILABLE: _row(
            _TOOL, _IF_IDEMPOTENT, "Bring its dependency back, or use an equivalent tool."
        ),
        ErrorCode.CONSTRAINT_GRAMMAR_REJECTED: _row(
            _CONSTRAINT, _YES, "Ask again with the grammar enforced while decoding."
        ),
        ErrorCode.CONSTRAINT_SCHEMA_INVALID: _row(_CONSTRAINT, _YES, "Show the model the violations and ask again."),
        ErrorCode.CONSTRAINT_JSON_INVALID: _row(_CONSTRAINT, _YES, "Repair the text, or ask again."),
        ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED: _row(
            _CONSTRAINT, _YES, "Match the value to an allowed one, or ask again."
        ),
        ErrorCode.VALIDATION_RULE_FAILED: _row(_VALIDATION, _YES, "Name the failed rules to the model and ask again."),
        ErrorCode.VALIDATION_SEMANTIC_FAILED: _row(
            _VALIDATION, _YES, "Change the prompt or its evidence and ask again."
        ),
        ErrorCode.ORCHESTRATION_STEP_MISMATCH: _row(
            _ORCHESTRATION, _NO, "Correct the plan: this step cannot take that input."
        ),
        ErrorCode.ORCHESTRATION_ITERATION_LIMIT: _row(
            _ORCHESTRATION, _NO, "Raise the limit, or make the task smaller."
        ),
        ErrorCode.ORCHESTRATION_NO_CONSENSUS: _row(_ORCHESTRATION, _NO, "Let a person choose among the candidates."),
        ErrorCode.ORCHESTRATION_PLAN_FAILED: _row(_ORCHESTRATION, _NO, "Mend the planner, or give the request a plan."),
        ErrorCode.CONFIG_NO_ENGINE: _row(_CONFIGURATION, _NO, "Register at least one engine."),
        ErrorCode.CONFIG_SCHEMA_REQUIRED: _row(
            _CONFIGURATION, _NO, "Give the output contract a schema; the mode needs one."
        ),
        ErrorCode.CONFIG_GRAMMAR_NOT_FOUND: _row(_CONFIGURATION, _NO, "Correct the path of the grammar file."),
        ErrorCode.CONFIG_PART_MISSING: _row(_CONFIGURATION, _NO, "Give the handler what it works with."),
        ErrorCode.CANCELLED_TIMEOUT: _row(_CANCELLATION, _NO, "Submit anew with a later deadline."),
        ErrorCode.CANCELLED_SIGNAL: _row(_CANCELLATION, _NO, "Submit anew if it is still wanted."),
    }
)


class EscalationRoute(StrEnum):
    """The five ways in which authority leaves the loop."""

    FAIL_CLOSED = "fail_closed"
    HUMAN_APPROVAL = "human_approval"
    ASK_USER = "ask_user"
    REVIEW_QUEUE = "review_queue"
    DEGRADED_MODE = "degraded_mode"


class EndingKind(StrEnum):
    """Whether a code closes the run or makes it wait for a person."""

    ENDED = "ended"
    SUSPENDED = "suspended"


class Ending(StrEnum):
    """The codes with which a run ends or is suspended."""

    SUCCESS = "SUCCESS"
    PARTIAL_SUCCESS = "PARTIAL_SUCCESS"
    IMPOSSIBLE = "IMPOSSIBLE"
    MISSING_INFO = "MISSING_INFO"
    AMBIGUOUS_INTENT = "AMBIGUOUS_INTENT"
    CONFIRM_REQUIRED = "CONFIRM_REQUIRED"
    REVIEW_REQUIRED = "REVIEW_REQUIRED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    TIMEOUT = "TIMEOUT"
    VALIDATION_FAIL = "VALIDATION_FAIL"
    LOW_CONFIDENCE = "LOW_CONFIDENCE"
    SOURCE_CONFLICT = "SOURCE_CONFLICT"
    REPEATED_FAILURE = "REPEATED_FAILURE"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    UNSAFE_DETECTION = "UNSAFE_DETECTION"
    UNAVAILABLE_DEP = "UNAVAILABLE_DEP"
    USER_CANCEL = "USER_CANCEL"


# A process that waits for a person, and one that was stopped by policy or budget, can be told apart by a script.
EXIT_OK, EXIT_FAILED, EXIT_WAITING, EXIT_STOPPED = 0, 1, 3, 4


class EndingRow(Record):
    """The row of an ending: its category, exit code, receiver of authority, and how it is told elsewhere.

    Lifecycle, loop state and outcome are those of the run once it is over. While a suspending code waits, the run
    keeps its lifecycle and `waits_as` lies over its loop state. `error` is the code a SystemError carries when the
    run knows no closer cause; without either, the ending's own name is the code.
    """

    kind: EndingKind
    category: FailureCategory | None
    lifecycle: LifecycleState
    loop_state: LoopState
    outcome: Outcome
    error: ErrorCode | None
    retryable: Retryable
    exit_code: int
    route: EscalationRoute | None
    receives: str
    waits_as: LoopState | None = None

    @property
    def exit_code_when_ended(self) -> int:
        """The exit code once the run is over: an approval or a review that never came is a refusal."""
        if self.kind is EndingKind.ENDED:
            return self.exit_code
        return EXIT_FAILED if self.route is EscalationRoute.ASK_USER else EXIT_STOPPED


# Lifecycle, loop state and outcome go together, so three builders write every row.
_COMPLETE = (LifecycleState.COMPLETE, LoopState.COMPLETE, Outcome.SUCCESS)
_CANCELLED = (LifecycleState.CANCELLED, LoopState.CANCELLED, Outcome.CANCELLED)
_FAILED = (LifecycleState.ERROR, LoopState.FAILED, Outcome.FAILED)


def _completed(category: FailureCategory | None, receives: str) -> EndingRow:
    return EndingRow(EndingKind.ENDED, category, *_COMPLETE, None, _NO, EXIT_OK, None, receives)


def _stopped(exit_code: int, route: EscalationRoute | None, receives: str, error: ErrorCode | None = None) -> EndingRow:
    row = ERRORS[error] if error else _row(_ORCHESTRATION, _NO, "")
    station = _CANCELLED if row.category is _CANCELLATION else _FAILED
    return EndingRow(EndingKind.ENDED, row.category, *station, error, row.retryable, exit_code, route, receives)


def _suspended(waits_as: LoopState, route: EscalationRoute, receives: str) -> EndingRow:
    kind = EndingKind.SUSPENDED
    return EndingRow(kind, _ORCHESTRATION, *_FAILED, None, _NO, EXIT_WAITING, route, receives, waits_as)


_FAIL_CLOSED, _HUMAN_APPROVAL = EscalationRoute.FAIL_CLOSED, EscalationRoute.HUMAN_APPROVAL
_ASK_USER, _REVIEW_QUEUE = EscalationRoute.ASK_USER, EscalationRoute.REVIEW_QUEUE
_DEGRADED_MODE = EscalationRoute.DEGRADED_MODE

# A run that waits for knowledge is paused; a run that waits for a decision awaits approval.
# The wall clock is a dimension of the budget and the breaker of repeated failures a runtime control, so TIMEOUT and
# REPEATED_FAILURE count as stopped (4); a run whose work itself came to nothing has failed (1).
# BUDGET_EXHAUSTED names no error because each dimension can cause it; the iteration limit brings
# ORCHESTRATION_ITERATION_LIMIT along as its cause. UNAVAILABLE_DEP is about a tool unless its cause is an inference error.
ENDINGS: Mapping[Ending, EndingRow] = MappingProxyType(
    {
        Ending.SUCCESS: _completed(None, "the caller"),
        Ending.PARTIAL_SUCCESS: _completed(_ORCHESTRATION, "the caller, with what is left open"),
        Ending.IMPOSSIBLE: _stopped(EXIT_FAILED, None, "the caller, with the condition that blocks"),
        Ending.MISSING_INFO: _suspended(LoopState.PAUSED, _ASK_USER, "the user or operator who knows the answer"),
        Ending.AMBIGUOUS_INTENT: _suspended(LoopState.PAUSED, _ASK_USER, "the user or supervisor who can choose"),
        Ending.CONFIRM_REQUIRED: _suspended(LoopState.AWAITING_APPROVAL, _HUMAN_APPROVAL, "the approver of the action"),
        Ending.REVIEW_REQUIRED: _suspended(LoopState.AWAITING_APPROVAL, _REVIEW_QUEUE, "the reviewer of the queue"),
        Ending.BUDGET_EXHAUSTED: _stopped(EXIT_STOPPED, _HUMAN_APPROVAL, "a person who may release more budget"),
        Ending.TIMEOUT: _stopped(
            EXIT_STOPPED, None, "the caller, with what was done in time", ErrorCode.CANCELLED_TIMEOUT
        ),
        Ending.VALIDATION_FAIL: _stopped(
            EXIT_FAILED, _REVIEW_QUEUE, "the reviewer of the output", ErrorCode.VALIDATION_RULE_FAILED
        ),
        Ending.LOW_CONFIDENCE: _suspended(
            LoopState.AWAITING_APPROVAL, _REVIEW_QUEUE, "a stronger verifier or a reviewer"
        ),
        Ending.SOURCE_CONFLICT: _stopped(EXIT_FAILED, _REVIEW_QUEUE, "the reviewer of the evidence"),
        Ending.REPEATED_FAILURE: _stopped(EXIT_STOPPED, _DEGRADED_MODE, "the operator of the failing part"),
        Ending.PERMISSION_DENIED: _stopped(EXIT_STOPPED, _FAIL_CLOSED, "security or compliance review"),
        Ending.UNSAFE_DETECTION: _stopped(EXIT_STOPPED, _FAIL_CLOSED, "security operations"),
        Ending.UNAVAILABLE_DEP: _stopped(
            EXIT_FAILED, _DEGRADED_MODE, "the degraded-mode controller or the operator", ErrorCode.TOOL_UNAVAILABLE
        ),
        Ending.USER_CANCEL: _stopped(EXIT_FAILED, None, "the person who cancelled", ErrorCode.CANCELLED_SIGNAL),
    }
)


# The codes under which runs wait, the one with most at stake first: a yes makes a call or releases budget; it says what
# became of a change, or lets an answer of high stakes stand; it chooses, perhaps the record that a call is about; it lets
# a doubtful answer stand; words are given.
BY_STAKES: tuple[Ending, ...] = (
    Ending.CONFIRM_REQUIRED,
    Ending.REVIEW_REQUIRED,
    Ending.AMBIGUOUS_INTENT,
    Ending.LOW_CONFIDENCE,
    Ending.MISSING_INFO,
)

# Endings of a run that has answered.
ANSWERED = frozenset({Ending.SUCCESS, Ending.PARTIAL_SUCCESS})

# One entry, two names: the failure taxonomy calls these endings by their error codes.
ENDING_ALIASES: Mapping[str, Ending] = MappingProxyType(
    {ErrorCode.CANCELLED_TIMEOUT.value: Ending.TIMEOUT, ErrorCode.CANCELLED_SIGNAL.value: Ending.USER_CANCEL}
)


class Refusal(StrEnum):
    """Why a proposed call was refused, beside the error codes for unknown tools and bad arguments."""

    PERMISSION_DENIED = "PERMISSION_DENIED"
    BUDGET_EXHAUSTED = "BUDGET_EXHAUSTED"
    REPEATED_CALL = "REPEATED_CALL"
    APPROVAL_REJECTED = "APPROVAL_REJECTED"
    APPROVAL_EXPIRED = "APPROVAL_EXPIRED"
    DEPTH_EXCEEDED = "DEPTH_EXCEEDED"
    NOT_OFFERED = "NOT_OFFERED"
    RATE_LIMITED = "RATE_LIMITED"
    LEAST_TOOL = "LEAST_TOOL"
    CONDITION_HELD = "CONDITION_HELD"
    FILTERED = "FILTERED"
    UNSAFE = "UNSAFE"


class Denials(Record):
    """How often authority was denied: calls by the boundary, answers by people, and calls by people or by silence."""

    by_boundary: int = 0
    answers: int = 0
    approvals: int = 0


# A record that is this very one is not written.
NO_DENIALS = Denials()


def denials_of(by_boundary: int, answers: int, approvals: int) -> Denials:
    """So many denials."""
    return Denials(by_boundary, answers, approvals) if by_boundary or answers or approvals else NO_DENIALS


class RefusalRow(Record):
    """The category of a refusal, and the ending of a run that ends because of it."""

    category: FailureCategory
    ending: Ending


# A person's no is a denial; silence leaves the confirmation that was required. Depth is a gauge of the budget.
REFUSALS: Mapping[Refusal, RefusalRow] = MappingProxyType(
    {
        Refusal.PERMISSION_DENIED: RefusalRow(_ORCHESTRATION, Ending.PERMISSION_DENIED),
        Refusal.BUDGET_EXHAUSTED: RefusalRow(_ORCHESTRATION, Ending.BUDGET_EXHAUSTED),
        Refusal.REPEATED_CALL: RefusalRow(_ORCHESTRATION, Ending.REPEATED_FAILURE),
        Refusal.APPROVAL_REJECTED: RefusalRow(_ORCHESTRATION, Ending.PERMISSION_DENIED),
        Refusal.APPROVAL_EXPIRED: RefusalRow(_ORCHESTRATION, Ending.CONFIRM_REQUIRED),
        Refusal.DEPTH_EXCEEDED: RefusalRow(_ORCHESTRATION, Ending.BUDGET_EXHAUSTED),
        Refusal.NOT_OFFERED: RefusalRow(_ORCHESTRATION, Ending.PERMISSION_DENIED),
        Refusal.RATE_LIMITED: RefusalRow(_ORCHESTRATION, Ending.BUDGET_EXHAUSTED),
        Refusal.LEAST_TOOL: RefusalRow(_ORCHESTRATION, Ending.PERMISSION_DENIED),
        Refusal.CONDITION_HELD: RefusalRow(_ORCHESTRATION, Ending.PERMISSION_DENIED),
        Refusal.FILTERED: RefusalRow(_ORCHESTRATION, Ending.PERMISSION_DENIED),
        Refusal.UNSAFE: RefusalRow(_ORCHESTRATION, Ending.UNSAFE_DETECTION),
    }
)


class ArrivalFault(StrEnum):
    """Why an arrival could not be judged."""

    DUPLICATE = "DUPLICATE"
    UNKNOWN_COMMAND = "UNKNOWN_COMMAND"
    RUN_ENDED = "RUN_ENDED"
    NOT_WAITING = "NOT_WAITING"
    ALREADY_STARTED = "ALREADY_STARTED"
    NOT_STARTED = "NOT_STARTED"
    NOT_PAUSED = "NOT_PAUSED"
    ALREADY_PAUSED = "ALREADY_PAUSED"
    PAUSED = "PAUSED"
    WRONG_PACKET = "WRONG_PACKET"
    NOT_RETRYABLE = "NOT_RETRYABLE"
    SESSION_FULL = "SESSION_FULL"
    # The approval is of a packet that is not, or no longer, the one that waits.
    PACKET_CHANGED = "PACKET_CHANGED"
    ALREADY_APPROVED = "ALREADY_APPROVED"
    # Who asked for something does not approve it, and is never one of several who must.
    SELF_APPROVAL = "SELF_APPROVAL"
    # A name that would be read for another one which the question knows.
    NAME_CONFUSABLE = "NAME_CONFUSABLE"
    # The boundary names who may release budget, and it is another person.
    NOT_RELEASING = "NOT_RELEASING"
    # A call of an agent elsewhere that was approved can no longer be made; it stays held.
    CALL_NOT_ALLOWED = "CALL_NOT_ALLOWED"


class RemitError(Exception):
    """A coded error. Its message names the thing, the value, the limit and the way out."""

    def __init__(self, code: str, message: str, details: JsonObject | None = None) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.details: JsonObject = details or {}

    @property
    def category(self) -> FailureCategory:
        """The kind of failure that its code belongs to."""
        return failure_named(self.code).category

    @property
    def retryable(self) -> bool:
        """Whether the same may succeed when it is tried again."""
        return failure_named(self.code).retryable is Retryable.YES

    def __str__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return f"{self.code}: {self.message}"


class RequestRejected(RemitError):
    """A request was turned away at the door; nothing has begun."""


class RunFailed(RemitError):
    """A run has no value to go on with: it failed, or it waits for a person.

    Whether trying again may help is what the run's own error says, where it has one; its code alone says less.
    """

    def __init__(
        self, code: str, message: str, details: JsonObject | None = None, *, retryable: bool | None = None
    ) -> None:
        super().__init__(code, message, details)
        self.is_final = retryable is False
        self._is_retryable = retryable

    @property
    def retryable(self) -> bool:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Whether the same may succeed when it is tried again."""
        return super().retryable if self._is_retryable is None else self._is_retryable


class InvariantBroken(RemitError):
    """A bug: something that cannot be is. The run stops."""


class IllegalArrival(RemitError):
    """An arrival that cannot be judged in this state; it changes nothing."""

    def __init__(self, fault: ArrivalFault, message: str, details: JsonObject | None = None) -> None:
        super().__init__(fault, message, details)
        self.fault = fault


def gravest(codes: Iterable[Ending]) -> Ending | None:
    """The code under which a run waits that waits under all of these: the one with most at stake."""
    return min(codes, key=stakes_of, default=None)


def stakes_of(code: Ending) -> int:
    """The place of a code by what is at stake, the gravest first; one that the order does not know comes before all."""
    return BY_STAKES.index(code) if code in BY_STAKES else -1


class Failure(Record):
    """The part of a SystemError that programs branch on."""

    code: str
    category: FailureCategory
    retryable: Retryable


def failure_of(ending: Ending, cause: ErrorCode | Refusal | None = None) -> Failure | None:
    """The failure that a run with this ending reports, by its closest known cause; None for the two successes."""
    row = ENDINGS[ending]
    if row.category is None or row.outcome is Outcome.SUCCESS:
        return None
    if isinstance(cause, Refusal):
        return Failure(cause.value, REFUSALS[cause].category, Retryable.NO)
    code = cause or row.error
    if code is None:
        return Failure(ending.value, row.category, row.retryable)
    return Failure(code.value, ERRORS[code].category, ERRORS[code].retryable)


def failure_named(code: str) -> Failure:
    """What any code says to programs: an error, a refusal, an ending, or one that a caller meets at a door.

    A code that is known to no table, as of a user's own, is an orchestration failure that is not tried again.
    """
    if code in set(ErrorCode):
        return Failure(code, ERRORS[ErrorCode(code)].category, ERRORS[ErrorCode(code)].retryable)
    if code in set(Refusal):
        return Failure(code, REFUSALS[Refusal(code)].category, Retryable.NO)
    known = failure_of(Ending(code)) if code in set(Ending) else None
    return known or Failure(code, *(code_family(code) or (_ORCHESTRATION, _NO)))
