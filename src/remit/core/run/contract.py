"""The contract: SystemRequest and SystemResponse, the only door in and out of the house.

Rule 1: an adapter translates what it is given into a request and a response back; it adds nothing of its own.
Rule 2: an empty list of tools means all that the boundary allows; none at all is `tool_choice` `none`.
Rule 3: 0 means "not said" for `max_tokens`, `timeout_ms` and `top_p`; None for the temperature, since 0.0 is greedy.
Rule 4: building a request checks nothing; core/run/request_checks.py judges what may enter.
Rule 5: ExecutionState and ExecutionContext are views of a run, made from its journal.
"""

from enum import StrEnum
from typing import Any, Self

import msgspec

from remit.core.failure import Ending, RunFailed
from remit.core.failure_families import FailureCategory
from remit.core.limits.tools import ToolChoice, take_choice
from remit.core.record import JsonObject, MadeByHand, Record, Text
from remit.core.run.approval import Approval
from remit.core.run.lifecycle import LifecycleState
from remit.core.run.messages import Message
from remit.core.run.usage import TokenUsage
from remit.core.work.candidate import Candidate
from remit.core.work.orders import Order

# Twenty rounds of tools solve what tools will solve; a loop that needs more has usually lost its way.
ITERATIONS_MAX_DEFAULT = 20


class Mode(StrEnum):
    """Which pattern runs: AgentLoop, SpecializedLoop, PlanExecutor or RedundantLoop."""

    CHAT = "chat"
    STRUCTURED = "structured"
    PLAN = "plan"
    REDUNDANT = "redundant"


# What stands for the mode of a run whose calls an agent elsewhere proposes and makes.
GUARD_MODE = "guard"


class ExecutionHints(Record):
    """Wishes about how to run. `options` reach the engine unchanged."""

    max_tokens: int = 0
    timeout_ms: int = 0
    temperature: float | None = None
    top_p: float = 0.0
    max_iterations: int = ITERATIONS_MAX_DEFAULT
    options: JsonObject = {}


class OutputContract(Record):
    """What the output must look like. Strict means that no partly valid output is returned."""

    schema: JsonObject | None = None
    grammar: str | None = None
    repair_allowed: bool = True
    strict_validation: bool = False


class SystemRequest(MadeByHand):
    """A request as it enters. Ids left empty are given by the facade; `metadata` goes along to every tool call.

    `orders` are the effects that the caller wants: those alone happen unattended (docs/orders.md). `user_assumed` says that
    no user was named: it is that of the operating system, of whom no tool knows.
    """

    messages: tuple[Message, ...]
    mode: Mode = Mode.CHAT
    request_id: str = ""
    session_id: str = ""
    trace_id: str = ""
    hints: ExecutionHints = ExecutionHints()
    output: OutputContract = OutputContract()
    tools: tuple[str, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    tenant_id: str = ""
    user_id: str = ""
    metadata: JsonObject = {}
    orders: tuple[Order, ...] = ()
    user_assumed: bool = False

    def __post_init__(self) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Take the texts of the mode and of a choice of tools for them; as a rule the members stand there."""
        if type(self.mode) is not Mode:
            MadeByHand.__post_init__(self)
        if type(self.tool_choice) is not ToolChoice:
            msgspec.structs.force_setattr(self, "tool_choice", take_choice(self.tool_choice))


def named_user(request: SystemRequest) -> str:
    """Who asks, as a caller named them; empty where the caller named no user."""
    return "" if request.user_assumed else request.user_id


class CallStatus(StrEnum):
    """What became of a proposed tool call, as far as the run knows."""

    REFUSED = "refused"
    ATTEMPTED = "attempted"
    FAILED = "failed"
    OBSERVED = "observed"
    COMMITTED = "committed"
    OUTCOME_UNKNOWN = "outcome_unknown"


class ToolCallMade(Record):
    """One line of the log of tool calls, in the order in which they were made, children's among them.

    A result is as the model was shown it: in full up to 16 KiB, and beyond that its beginning with the digest under
    which the whole is kept. Of a call that failed it is the code with the tool's own words, of a refused one the code. A
    text that was deleted from the store since is named by its digest.
    """

    name: str
    arguments: JsonObject
    result: Text
    duration_ms: int
    call_id: str
    status: CallStatus
    # Of a call that failed, was refused, whose outcome is unknown or came late: why, and in whose words it was said.
    code: str = ""
    error: str = ""
    # Whether its outcome came after the run had ended: it is told, and nothing was made of it.
    is_late: bool = False


class ConfidenceSource(StrEnum):
    """What a confidence was computed from: agreement of replicas, rules passed, or relevance of the evidence."""

    VOTING = "voting"
    VALIDATION = "validation"
    RETRIEVAL = "retrieval"


class ValidationResult(Record):
    """The outcome of the checks of the output; violations are those that remain."""

    checks_passed: int = 0
    checks_failed: int = 0
    repair_attempts: int = 0
    violations: tuple[str, ...] = ()


class SystemError(Record):  # noqa: A001 - the name of the contract; inside the house the builtin is never meant
    """Why a run failed. Code, category and retryable are for programs, the message is for people.

    The code is an ErrorCode, or the Ending's own name where no error stands behind it.
    `retryable` answers the caller who would submit the same request again: a code that is retryable only for
    idempotent tools has been decided where the tool was known.
    """

    code: str
    category: FailureCategory
    retryable: bool
    message: str
    details: JsonObject = {}
    caused_by: "SystemError | None" = None


class WaitingFor(Record):
    """Why a run stands still, which packets a person can answer, and until when.

    Of several packets the one with most at stake comes first, and its code is the run's; `endings` has the code of each.
    `paused` names runs beneath it that ask nothing and rest until they are resumed.
    """

    ending: Ending
    packet_ids: tuple[str, ...] = ()
    expires_at_ms: int = 0
    endings: tuple[Ending, ...] = ()
    paused: tuple[str, ...] = ()
    # What is asked, in the order of the ids: the call, where its values come from, why it asks, and who may answer.
    packets: tuple[Approval, ...] = ()


class HaltedBy(Record):
    """The halt of dispatch that a run stands still for: what is halted, by whom and why."""

    what: str
    by: str
    why: str


# The code of a run of which an answer is wanted, and that has neither ended nor waits for a person.
RUN_OPEN = "RUN_OPEN"
# The code of a session that is asked to go on and has no run like that.
NOTHING_OPEN = "NOTHING_OPEN"


def paused_in_words(run_id: str, by: str) -> str:
    """That a run is paused, and how it goes on."""
    return f"is paused{by and f' by {by}'}, and goes on when it is resumed: `run.resume(by=...)`, or `remit resume {run_id}`"


class SystemResponse(Record):
    """The response as it leaves. With an error set, the content may still hold a part of the answer.

    The content is the text that was accepted; where it had to be repaired, `raw_content` holds the model's own words.
    """

    request_id: str
    session_id: str
    run_id: str
    terminal_code: Ending | None = None
    waiting_for: WaitingFor | None = None
    content: str = ""
    structured_output: Any = None
    tool_calls_made: tuple[ToolCallMade, ...] = ()
    confidence: float | None = None
    confidence_source: ConfidenceSource | None = None
    validation: ValidationResult | None = None
    token_usage: TokenUsage = TokenUsage()
    error: SystemError | None = None
    warnings: tuple[str, ...] = ()
    halted: HaltedBy | None = None
    raw_content: str = ""
    # Who paused the run, empty where copying it did; None where it is not paused, or only a halt holds it back.
    paused_by: str | None = None

    def raise_for_error(self) -> Self:
        """The response itself; raises RunFailed where the run failed, or has not ended, so that no answer can be missed."""
        if self.error is not None:
            about = {"run_id": self.run_id}
            raise RunFailed(self.error.code, self.error.message, about, retryable=self.error.retryable)
        if self.waiting_for is not None:
            asked = ", ".join(self.waiting_for.packet_ids) or "a person who resumes it"
            message = f"run {self.run_id} has not ended: it waits for {asked}{self._why_paused('; it ')}"
            raise RunFailed(self.waiting_for.ending, message, {"run_id": self.run_id})
        if self.terminal_code is None:
            message = f"run {self.run_id} has not ended, and waits for no person; resume it, or wait until it rests"
            raise RunFailed(RUN_OPEN, self._why_paused(f"run {self.run_id} ") or message, {"run_id": self.run_id})
        return self

    def _why_paused(self, what: str) -> str:
        """That the run is paused, by whom, and how it goes on; empty where it is not."""
        return "" if self.paused_by is None else what + paused_in_words(self.run_id, self.paused_by)


class ExecutionState(Record):
    """Where a run stands in its lifecycle. The last error may have been recovered from."""

    current: LifecycleState
    entered_at_ms: int
    attempt: int = 1
    total_steps: int = 0
    last_error: SystemError | None = None
    last_step: str = ""


class ExecutionContext(Record):
    """A run as one object: what was fixed at the start, then what changes as it goes."""

    request_id: str
    session_id: str
    trace_id: str
    # A Mode, or GUARD_MODE where the model and the tools are performed elsewhere.
    mode: str
    started_at_ms: int
    state: ExecutionState
    selected_tools: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    metadata: JsonObject = {}
