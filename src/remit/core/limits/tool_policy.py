"""Tool policy: for each of the ten categories of tools, who may let a call pass and what must be checked about it.

Rule 1: the table says what holds when a boundary says nothing; a boundary may name the categories it preauthorizes.
Rule 2: reading never needs a person by its category; changing something does, wherever the table says so.
Rule 3: each category demands that its tools declare what its checks need; what is missing is a gap that operators and
        approvers are shown.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType

from remit.core.limits.tools import ToolCategory, ToolDefinition, may_change
from remit.core.limits.verification import could_refuse, verifier_of
from remit.core.record import Record


class Risk(StrEnum):
    """How much a call of a category can harm."""

    NONE = "none"
    LOW = "low"
    MODERATE = "moderate"
    HIGH = "high"


class StateWrite(StrEnum):
    """What kind of state a changing call writes to; a boundary says which of them a run may write."""

    FILES = "files"
    RECORDS = "records"
    MESSAGES = "messages"
    MONEY = "money"
    INFRASTRUCTURE = "infrastructure"
    OTHER = "other"


class RequiredDeclaration(StrEnum):
    """What a tool must declare so that calls of its category can be checked."""

    RESULT_SCHEMA = "result_schema"
    VERIFIER = "verifier"
    CONTROL_ARGS = "control_args"
    TRUSTED_FIELDS = "trusted_fields"
    ROLLBACK = "rollback"
    PERMISSIONS = "permissions"


class Asking(StrEnum):
    """Which calls of a category a person lets pass."""

    NEVER = "never"
    FOR_DESTRUCTION = "for_destruction"
    FOR_CHANGES = "for_changes"


class PolicyRow(Record):
    """One row of the tool policy matrix."""

    allowed: str
    scope: str
    # Of a call that only reads, and of one that changes something.
    risk_reading: Risk
    risk_changing: Risk
    checks: str
    reading_demands: tuple[RequiredDeclaration, ...]
    changing_demands: tuple[RequiredDeclaration, ...]
    asks: Asking
    writes: StateWrite


_SCHEMA, _VERIFIER, _CONTROL = (
    RequiredDeclaration.RESULT_SCHEMA,
    RequiredDeclaration.VERIFIER,
    RequiredDeclaration.CONTROL_ARGS,
)
_FIELDS, _ROLLBACK, _PERMISSIONS = (
    RequiredDeclaration.TRUSTED_FIELDS,
    RequiredDeclaration.ROLLBACK,
    RequiredDeclaration.PERMISSIONS,
)

POLICY: Mapping[ToolCategory, PolicyRow] = MappingProxyType(
    {
        ToolCategory.READ_ONLY_LOOKUP: PolicyRow(
            allowed="search documentation, logs, public sources and approved indexes",
            scope="what the user or the tenant may read",
            risk_reading=Risk.LOW,
            risk_changing=Risk.HIGH,
            checks="where it comes from, who may read it, how old it is",
            reading_demands=(_PERMISSIONS,),
            changing_demands=(_PERMISSIONS, _VERIFIER),
            asks=Asking.FOR_CHANGES,
            writes=StateWrite.OTHER,
        ),
        ToolCategory.RETRIEVAL: PolicyRow(
            allowed="query evidence stores and vector indexes",
            scope="what the session and the corpus permit",
            risk_reading=Risk.NONE,
            risk_changing=Risk.HIGH,
            checks="document ids, access, time of retrieval, citations",
            reading_demands=(_FIELDS,),
            changing_demands=(_FIELDS, _VERIFIER),
            asks=Asking.FOR_CHANGES,
            writes=StateWrite.OTHER,
        ),
        ToolCategory.LIVE_API: PolicyRow(
            allowed="fetch prices, orders, rates, tickets and stock",
            scope="an authorized key and what the user is entitled to",
            risk_reading=Risk.LOW,
            risk_changing=Risk.HIGH,
            checks="the payload against its schema; the raw observation is kept",
            reading_demands=(_SCHEMA,),
            changing_demands=(_SCHEMA, _CONTROL, _VERIFIER),
            asks=Asking.FOR_CHANGES,
            writes=StateWrite.OTHER,
        ),
        ToolCategory.SANDBOX: PolicyRow(
            allowed="calculate, run scripts, tests and parsers",
            scope="a local sandbox",
            risk_reading=Risk.LOW,
            risk_changing=Risk.MODERATE,
            checks="code, inputs, outputs, errors and limits are recorded",
            reading_demands=(),
            changing_demands=(_VERIFIER,),
            asks=Asking.FOR_DESTRUCTION,
            writes=StateWrite.FILES,
        ),
        ToolCategory.FILE_SYSTEM: PolicyRow(
            allowed="read the workspace, propose edits, write local artefacts",
            scope="a workspace of its own",
            risk_reading=Risk.LOW,
            risk_changing=Risk.MODERATE,
            checks="allowed paths, the difference made, the state after writing",
            reading_demands=(),
            changing_demands=(_CONTROL, _VERIFIER),
            asks=Asking.FOR_DESTRUCTION,
            writes=StateWrite.FILES,
        ),
        ToolCategory.DATABASE: PolicyRow(
            allowed="query approved schemas, write gated records",
            scope="a connection that reads, or writes within its scope",
            risk_reading=Risk.NONE,
            risk_changing=Risk.HIGH,
            checks="allowed statements, row security, transaction log, verification after writing",
            reading_demands=(_PERMISSIONS,),
            changing_demands=(_PERMISSIONS, _CONTROL, _VERIFIER),
            asks=Asking.FOR_CHANGES,
            writes=StateWrite.RECORDS,
        ),
        ToolCategory.EMAIL_CALENDAR: PolicyRow(
            allowed="draft messages, look at schedules, propose events",
            scope="the user's own session",
            risk_reading=Risk.LOW,
            risk_changing=Risk.HIGH,
            checks="recipients, content, timing and what the user meant",
            reading_demands=(_FIELDS,),
            changing_demands=(_CONTROL, _FIELDS),
            asks=Asking.FOR_CHANGES,
            writes=StateWrite.MESSAGES,
        ),
        ToolCategory.PAYMENT: PolicyRow(
            allowed="compare vendors, prepare purchases, look at invoices",
            scope="a secured billing scope",
            risk_reading=Risk.MODERATE,
            risk_changing=Risk.HIGH,
            checks="amount, vendor, chain of approval, terms and budget",
            reading_demands=(_PERMISSIONS,),
            changing_demands=(_PERMISSIONS, _CONTROL, _VERIFIER, _ROLLBACK),
            asks=Asking.FOR_CHANGES,
            writes=StateWrite.MONEY,
        ),
        ToolCategory.INFRASTRUCTURE: PolicyRow(
            allowed="inspect metrics, logs and deployments, propose remedies",
            scope="diagnosis by the operators of the service",
            risk_reading=Risk.LOW,
            risk_changing=Risk.HIGH,
            checks="blast radius, target, way back and record of approval",
            reading_demands=(_PERMISSIONS,),
            changing_demands=(_PERMISSIONS, _CONTROL, _ROLLBACK),
            asks=Asking.FOR_CHANGES,
            writes=StateWrite.INFRASTRUCTURE,
        ),
        ToolCategory.REVIEW_QUEUE: PolicyRow(
            allowed="hand a task to inspection, approval or compliance",
            scope="the system's own workflow",
            risk_reading=Risk.LOW,
            risk_changing=Risk.LOW,
            checks="reason, queue, severity and evidence are logged",
            reading_demands=(),
            changing_demands=(),
            asks=Asking.NEVER,
            writes=StateWrite.OTHER,
        ),
    }
)

# The categories whose changes a person lets pass, unless a boundary preauthorizes them.
ASKING_CATEGORIES: tuple[ToolCategory, ...] = tuple(
    category for category, row in POLICY.items() if row.asks is not Asking.NEVER
)


def _is_shaped(tool: ToolDefinition) -> bool:
    """Whether what comes back, or each part of a list of it, has a shape that an error has not."""
    return could_refuse(tool.result) or could_refuse(tool.result.get("items", True))


_MEETS: Mapping[RequiredDeclaration, Callable[[ToolDefinition], bool]] = MappingProxyType(
    {
        RequiredDeclaration.RESULT_SCHEMA: _is_shaped,
        RequiredDeclaration.VERIFIER: lambda tool: bool(verifier_of(tool)),
        RequiredDeclaration.CONTROL_ARGS: lambda tool: bool(tool.control_args) or not tool.parameters.get("properties"),
        RequiredDeclaration.TRUSTED_FIELDS: lambda tool: bool(tool.trust.fields) or _is_shaped(tool),
        RequiredDeclaration.ROLLBACK: lambda tool: bool(tool.rollback),
        RequiredDeclaration.PERMISSIONS: lambda tool: bool(tool.permissions),
    }
)


def gaps_of(tool: ToolDefinition) -> tuple[RequiredDeclaration, ...]:
    """What a tool leaves undeclared although its category demands it; without a category, nothing is demanded."""
    if tool.category is None:
        return ()
    row = POLICY[tool.category]
    demands = row.changing_demands if tool.effect.is_mutating else row.reading_demands
    return tuple(demand for demand in demands if not _MEETS[demand](tool))


def risk_of(tool: ToolDefinition) -> Risk:
    """How much a call of this tool can harm, or the child that it starts; without a category, the worst of its effect."""
    if tool.category is None:
        return Risk.HIGH if may_change(tool) else Risk.LOW
    row = POLICY[tool.category]
    return row.risk_changing if may_change(tool) else row.risk_reading


def state_written(tool: ToolDefinition) -> StateWrite | None:
    """What kind of state a call of this tool writes to; None for one that changes nothing."""
    if not tool.effect.is_mutating:
        return None
    return StateWrite.OTHER if tool.category is None else POLICY[tool.category].writes


def asks_by_category(tool: ToolDefinition) -> bool:
    """Whether the table sends a call of this tool to a person."""
    if tool.category is None or not tool.effect.is_mutating:
        return False
    asks = POLICY[tool.category].asks
    return asks is Asking.FOR_CHANGES or (asks is Asking.FOR_DESTRUCTION and tool.destructive)
