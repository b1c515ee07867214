"""The kinds of failure, and which of them a code belongs to by how it begins.

Rule 1: the error codes, the refusals and the endings have tables of their own (core/failure.py); every other code that a
        caller may meet is here. A tidy test looks for codes that no table knows.
Rule 2: a word that ends in _ stands for all codes that begin with it; of several that fit, the longest counts.
"""

from enum import StrEnum


class FailureCategory(StrEnum):
    """The kinds of failure."""

    INFERENCE = "InferenceFailure"
    TOOL = "ToolFailure"
    CONSTRAINT = "ConstraintFailure"
    VALIDATION = "ValidationFailure"
    ORCHESTRATION = "OrchestrationFailure"
    CONFIGURATION = "ConfigurationFailure"
    CANCELLATION = "Cancellation"


class Retryable(StrEnum):
    """Whether the same request may succeed when it is submitted again."""

    YES = "yes"
    NO = "no"
    IF_IDEMPOTENT = "if_idempotent"


_INFERENCE, _TOOL, _CONSTRAINT = FailureCategory.INFERENCE, FailureCategory.TOOL, FailureCategory.CONSTRAINT
_ORCHESTRATION, _CONFIGURATION = FailureCategory.ORCHESTRATION, FailureCategory.CONFIGURATION
_CANCELLATION = FailureCategory.CANCELLATION
_YES, _NO, _IF_IDEMPOTENT = Retryable.YES, Retryable.NO, Retryable.IF_IDEMPOTENT

# What is busy, held or full may be free the next time. A file of the caller's (a boundary, goal, rules, a schema) is
# configuration; files that a tool works on have codes beside these, and a caller meets them as TOOL_EXECUTION_FAILED.
_FAMILIES: tuple[tuple[FailureCategory, Retryable, str], ...] = (
    (
        _ORCHESTRATION,
        _YES,
        (
            "AGENT_BUSY APPEND_CONFLICT EXCHANGE_OPEN HALTED LEASE_LOST QUEUE_FULL QUOTA_CONTENDED RUN_HELD RUN_STILL_DRIVEN "
            "SESSION_BUSY SIGNAL_UNHEARD STORE_BUSY STORE_FULL STORE_UNREACHABLE SYSTEM_CLOSED WEBHOOK_UNREACHABLE"
        ),
    ),
    (
        _ORCHESTRATION,
        _NO,
        (
            "ALREADY_ BACKUP_ BLOB_ CALL_ CONFORMANCE_ CONTEXT_MISCOUNTED COSTS_ CURSOR_ DUPLICATE EFFECT_ ENDING_ ENTRY_ ERRAND_ EXPORT_ FORK_ IMPORT_ KEYS_ "
            "GRANT_ GUARD_ HALT_ HALTS_ JOURNAL_ LEFT_ NAME_ NOT_ NOTHING_ OUTPUT_ PACKET_ PARENT_ PAUSED QUESTION_ QUEUE_ QUOTA_ REASON_ "
            "RECORD_ REFUSED_ RUN_ SAVE_ SCOPE_ SELF_ SESSION_ SIGNAL_ SLASH_ STORE_ STREAM_ UNEXPECTED UNKNOWN_ WEBHOOK_ WRONG_ "
            "CAPABILITY_ CHANNEL_ ENVELOPE_ LATE_ LETTER_ MESSAGE_ REPORT_ SIGNER_ TURN_FOREIGN WORKER_"
        ),
    ),
    (
        _TOOL,
        _IF_IDEMPOTENT,
        "CALCULATOR_ CALL_WITHHELD CLOCK_ CONTEXT_FAILED FILE_ HTTP_ OUTCOME_ PEOPLE_ RESULT_ SQLITE_ TOOL_",
    ),
    (_CONSTRAINT, _YES, "GRAMMAR_UNDECIDED"),
    (_INFERENCE, _YES, "MODEL_NOT_FETCHED"),
    (_CANCELLATION, _NO, "INTERRUPTED"),
    (
        _CONFIGURATION,
        _NO,
        (
            "ARGUMENTS_ AUTHORITY_ BOUNDARY_ BUDGET_ BUILTIN_ CHAT_ CHILD_ CHUNKING_ CODE_ CONDITIONS_ CONFIG_ CONSTRAIN_ CONTEXT_ "
            "COSTS_INVALID DECLARATION_ DEMO_ DIMENSION_ DOCUMENT_ DOCUMENTS_ ENGINE_ EXHAUSTION_ EXPORT_FORMAT_UNKNOWN FILE_HAS_ FILE_KEY_ "
            "FILE_NOT_YAML FILE_TOO_DEEP FILE_TOO_LARGE FILE_UNREADABLE FILE_VALUE_ FILTERS_ GATE_ GOAL_ GRAMMAR_ GRAPH_ "
            "GRANT_INVALID GUARD_BOUNDARY_ GUARD_HAS_ GUARD_NAME_UNKNOWN GUARD_NOT_BOOL GUARD_NOT_TEXT GUARD_TOOL_ GUARD_TOO_LONG "
            "GUARD_TYPE_MISMATCH GUARD_UNREADABLE HALT_INVALID HOME_ INDEX_ JUDGE_ LIMIT_ LOOP_ MANIFEST_ MESSAGE_ MODEL_ MODELS_ PAGE_ PATTERN_ "
            "ORDERS_ PERFORMER_ PERSON_ PLACE_ PLAN_ PLANNER_ PLANNING_ POLICY_ PRICES_ PRINCIPAL_ PROMPT_ QUEUE_INVALID QUOTA_INVALID REDACT_ "
            "REPLICAS_ REQUEST_ RERANK_ RETRIEVE_ REVOCATIONS_ ROLE_ ROUTER_ RULES_ SCHEMA_ SCORES_ SCRIPT_ SECRETS_ STEPS_ STORE_ADDRESS_INVALID "
            "STORE_EXTRA_MISSING STRICT_ "
            "TEXT_ TIER_ TOOL_CALL_ TOOL_CHOICE_ TOOL_DEFINITION_ TOOL_DELEGATES TOOL_FILE_ TOOL_NAME_ TOOL_SOURCE_ TOOL_UNCHECKED "
            "TOOLS_ TRUST_ USAGE VOTER_ VOTING_ WEBHOOK_KEY_ WIRE_"
        ),
    ),
)
_BEGINNINGS = {word: (category, retryable) for category, retryable, words in _FAMILIES for word in words.split()}


def code_family(code: str) -> tuple[FailureCategory, Retryable] | None:
    """Category and retryability of a code by how it begins; None of one that no table knows."""
    known = (_BEGINNINGS.get(code[:end]) for end in range(len(code), 0, -1) if end == len(code) or code[end - 1] == "_")
    return next((row for row in known if row is not None), None)
