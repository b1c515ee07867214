"""remit: agents that stay within their remit.

Whatever a program needs comes from here. Each name is loaded when it is first asked for, so `import remit` costs nothing.
Inside the house every name is imported from the file that defines it, never from here.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remit.agents.agent_loop import AgentLoop
    from remit.agents.guard_in_memory import GuardInMemory
    from remit.agents.plan_executor import PlanExecutor, PlanResult
    from remit.agents.redundant_loop import RedundantLoop, RedundantResult
    from remit.agents.specialized_loop import SpecializedLoop
    from remit.agents.structured import StructuredResponse
    from remit.agents.terms import engine, kit_of
    from remit.agents.workplace import CallCancelled
    from remit.assemble import Settings, settings_of, system_in_memory, system_on
    from remit.backend.embedded.store import EmbeddedStore
    from remit.backend.folded.log import LogEntry
    from remit.backend.folded.store import FoldedStore
    from remit.backend.memory.blobs import MemoryBlobs
    from remit.backend.memory.journal import MemoryJournal
    from remit.backend.memory.store import MemoryStore
    from remit.constraint.grammar.notation import check_grammar
    from remit.constraint.stack import Demand, constrain
    from remit.constraint.strict_mode import StrictMode
    from remit.context.evidence_message import ContextBuilder, context_confidence
    from remit.context.fts import Document, DocumentIndex
    from remit.core.failure import (
        Ending,
        ErrorCode,
        IllegalArrival,
        InvariantBroken,
        Refusal,
        RemitError,
        RequestRejected,
        RunFailed,
    )
    from remit.core.journal.arrivals import Happened
    from remit.core.journal.rulings import ToolCallRefused
    from remit.core.journal.signing import Signer
    from remit.core.journal.storage import (
        START,
        AppendConflict,
        BlobMissing,
        EntrySettled,
        LeaseLost,
        ParentOpen,
        QuotaConflict,
        RunBehind,
        RunHeld,
        SessionConflict,
        StoreUnusable,
    )
    from remit.core.journal.turn import Turn
    from remit.core.limits.boundary import Boundary, BoundaryMode, Rate, Whose
    from remit.core.limits.budget import Budget
    from remit.core.limits.queue import QueueLimits
    from remit.core.limits.quota import Period, Quota
    from remit.core.limits.tools import (
        Effect,
        ToolCall,
        ToolCategory,
        ToolChoice,
        ToolChoiceMode,
        ToolDefinition,
        ToolResult,
    )
    from remit.core.record import BlobRef
    from remit.core.run.approval import Approval
    from remit.core.run.contract import (
        ConfidenceSource,
        ExecutionHints,
        Mode,
        OutputContract,
        SystemRequest,
        SystemResponse,
        ValidationResult,
        WaitingFor,
    )
    from remit.core.run.contract import SystemError as SystemError  # noqa: A004  # as below
    from remit.core.run.inference import FinishReason, ModelInfo, ModelRequest, ModelResult, Price, Routing
    from remit.core.run.lifecycle import AgentRole
    from remit.core.run.manifest import Manifest, make_manifest
    from remit.core.run.messages import Message, Role, assistant_message, system_message, tool_message, user_message
    from remit.core.run.principal import Principal, Scope
    from remit.core.run.run_events import EventKind, RunEvent, Subject
    from remit.core.run.signals import Signal, SignalOutcome, UserSignal
    from remit.core.run.usage import TokenUsage
    from remit.core.schema.json_schema import code_of
    from remit.core.schema.schema_source import schema_of
    from remit.core.work.candidate import Candidate, RerankCandidate
    from remit.core.work.goal import Goal
    from remit.core.work.graph import EXITS, TERMINALS, Edge, Graph, Node, NodeKind
    from remit.core.work.orders import Order
    from remit.core.work.plan import ExecutionPlan, PlanPolicy, PlanTrace, RerankInput, Step, StepType
    from remit.front import Door
    from remit.front import open as open  # noqa: A004  # `remit.open()` is how it is said, and no star takes it along
    from remit.inference.engine import AnyEngine, Engine, EngineFault, Restarted, StreamChunk, StreamHandler
    from remit.inference.scripted.engine import ScriptedEngine
    from remit.inference.scripted.script import FREE
    from remit.kernel.graph.compiled import GraphRefused, GuardUndecided
    from remit.kernel.graph.expressions import GuardRefused
    from remit.observe.cost.charges import run_cost
    from remit.observe.cost.cost_report import CostBook, CostReport, Grouping, Prices, parse_prices
    from remit.observe.fact import Fact, FactKind
    from remit.observe.logs import JsonFormatter, TextFormatter, run_logger
    from remit.observe.plain import printable_line
    from remit.observe.proof.export import ExportUnreadable, export_lines, verify_export
    from remit.observe.proof.verify import verify_run
    from remit.observe.reading import Reading
    from remit.observe.views.event_log import CodeEvent, ContextEvent, Event, EventLog, InMemoryEventLog
    from remit.orchestrate.boundaries.boundary_file import boundary_at, boundary_of
    from remit.orchestrate.bus.bus import Listener
    from remit.orchestrate.bus.subscription import Subscription
    from remit.orchestrate.facade import System
    from remit.orchestrate.guard.guard import Guard
    from remit.orchestrate.patterns.chat_graph import chat_graph
    from remit.orchestrate.patterns.handlers import (
        CandidateReranker,
        InferHandler,
        RerankHandler,
        RetrieveHandler,
        ToolHandler,
        ValidateHandler,
    )
    from remit.orchestrate.patterns.planners import ModelPlanner, Planner, StaticPlanner
    from remit.orchestrate.patterns.redundant_graph import Redundancy
    from remit.orchestrate.patterns.voters import (
        MajorityVoting,
        NoConsensus,
        UnanimityVoting,
        VotingStrategy,
        WeightedVoting,
    )
    from remit.orchestrate.run_handle import Run, Streaming
    from remit.orchestrate.setup.kit import ContextProvider, FilterContext, Kit, PromptProvider, Terms
    from remit.orchestrate.tenants.policies import Policies
    from remit.rerank.lexical import rerank
    from remit.run_records import *
    from remit.tool.builtin.builtin_tools import builtin
    from remit.tool.builtin.http_client import Reach
    from remit.tool.builtin.http_get import http_get_tool
    from remit.tool.builtin.refusal import ToolRefused
    from remit.tool.builtin.targets import AllowedHost
    from remit.tool.call.call_metadata import CallMetadata
    from remit.tool.call.cancel_token import CancelToken, ToolCancelled
    from remit.tool.call.outcomes import NotDone, Reconciled, Stop, ToolFault
    from remit.tool.call.performing import Attempt, perform
    from remit.tool.declare.decorator import tool
    from remit.tool.delegate import delegate
    from remit.tool.loader import SourceFault, load_tools
    from remit.tool.registry import Registry
    from remit.tool.secrets.secret import Secret
    from remit.tool.secrets.vault import Vault
    from remit.validate.check import compile_rules, confidence_of, result_of
    from remit.validate.rule_file import load_rules, parse_rules
    from remit.validate.rule_set import (
        Length,
        MustMention,
        NoSecrets,
        NumberRange,
        RetryPolicy,
        Rule,
        RuleSet,
        SemanticCheck,
        Severity,
    )
    from remit.validate.semantic import ask_of, verdict_of

    __version__: str

# fmt: off
__all__ = [
    "EXITS", "FREE", "START", "TERMINALS", "Abandoned", "Action", "AddendumNoted", "AgentLoop", "AgentRole", "Allowed",
    "AllowedHost", "AllowedValues", "Answer", "AnyEngine", "AppendConflict", "Approval", "ApprovalCounted", "ApprovalGiven",
    "ApprovalRefused", "Ask", "AskHuman", "AskPurpose", "At", "Attempt", "Audit", "AuditVerdict", "Authority",
    "Ballot", "Beyond", "BlobMissing", "BlobRef", "Boundary", "BoundaryMode", "Breach", "Budget", "CallCancelled",
    "CallCode", "CallMetadata", "CallModel", "CallNoted", "CallProposed", "CallSettled", "CallStatus", "CallTaken",
    "CallTool", "Called", "CallsFiltered", "CancelCommand", "CancelRequested", "CancelToken", "Candidate",
    "CandidateReranker", "CheckFailed", "ChildEnded", "ChildHeld", "ChildLost", "ChildReleased", "ChildSuspended",
    "ChildTold", "Citations", "Clock", "CodeEvent", "CodeFailed", "CodeReturned", "CommandSettled", "CommandsWithheld",
    "Comparison", "Condition", "ConfidenceSource", "Confirm", "Constrained", "ContextBuilder", "ContextCompressed",
    "ContextEvent", "ContextFailed", "ContextFound", "ContextProvider", "CorrelationContext", "CostBook", "CostReport",
    "Credential", "Criterion", "DecisionRight", "DelegationSettled", "Demand", "Demanding", "Denials", "Document",
    "DocumentIndex", "Door", "EarlierEffect", "Edge", "Effect", "EffectUnallowed", "Election", "EmbeddedStore",
    "Ending", "EndingClass", "Engine", "EngineFault", "EngineSettings", "EntrySettled", "ErrorCode", "Escalation",
    "EscalationRoute", "Event", "EventKind", "EventLog", "Events", "Exact", "ExecutionContext", "ExecutionHints",
    "ExecutionPlan", "ExecutionState", "Exhaustion", "Expense", "ExplainedObservation", "Explanation",
    "ExportUnreadable", "Fact", "FactKind", "FailureCategory", "FallbackChosen", "Fault", "FeedbackGiven",
    "FeedbackTaken", "FieldTest", "FilterContext", "Finding", "FinishReason", "FoldedStore", "Foresight", "ForkRun",
    "Free", "FromOrder", "Glimpse", "Goal", "Grant", "GrantDeed", "GrantEntry", "GrantStanding", "Graph", "GraphRefused", "Gravity",
    "GroundingViolated", "Grouping", "Guard", "GuardInMemory", "GuardRefused", "GuardUndecided", "Halt", "HaltKind", "HaltScope",
    "Halted", "HaltedBy", "Happened", "History", "Host", "HostFinished", "IllegalArrival", "InMemoryEventLog",
    "InferHandler", "Inference", "InferenceEndEvent", "InferenceStartEvent", "InvariantBroken", "JoinRule",
    "JsonFormatter", "JsonObject", "JudgeAsk", "Kit", "LeaseLost", "LeasedOrders", "Length", "LifecycleState",
    "LifecycleTransitionEvent", "Limit", "Linked", "Listener", "Literal", "LogEntry", "Lookup", "LoopState", "MajorityVoting",
    "Maker", "Manifest", "MemoryBlobs", "MemoryJournal", "MemoryStore", "Message", "Milestone", "Misfit", "Mode",
    "ModelAnswered", "ModelDowngraded", "ModelFailed", "ModelInfo", "ModelPlanner", "ModelRequest", "ModelResult",
    "MustMatch", "MustMention", "MustNotMatch", "MustNotMention", "NamedSource", "Need", "NoConsensus", "NoSecrets",
    "Node", "NodeEntered", "NodeKind", "NotDone", "NotEmpty", "NumberChange", "NumberRange", "OptionReach", "Order",
    "OrderUsed", "Origin", "OutcomeContradicted", "OutcomeDoubted", "OutcomeJudged", "OutcomeParked", "OutputContract", "Packet", "ParentOpen",
    "PatternHandler", "PauseRequested", "Performed", "PerformedStep", "Period", "PlanExecutor", "PlanPolicy",
    "PlanResult", "PlanSource", "PlanTrace", "Planner", "Policies", "Price", "Prices", "Principal", "PromptProvider",
    "ProposedCall", "Provenance", "Question", "QuestionAnswered", "QuestionSettled", "QueueItem", "QueueLimits",
    "QueueShown", "Quota", "QuotaConflict", "QuotaStanding", "Rate", "Reach", "Reading", "Reads", "Rebuilt", "Receipt",
    "ReceiptKind", "ReconcileTool", "Reconciled", "Recovery", "Redacted", "Redundancy", "RedundantLoop",
    "RedundantResult", "Refusal", "Registry", "RemitError", "Removed", "Repair", "RepairCode", "Repeat", "ReplicaTold",
    "Report", "RequestRejected", "RequiredAction", "RequiredFields", "RerankCandidate", "RerankHandler", "RerankInput",
    "Reservation", "Restarted", "ResumeRequested", "Retrieve", "RetrieveHandler", "RetryPlanned", "RetryPolicy",
    "RetryRequested", "Role", "Routing", "Row", "Rule", "RuleSet", "Run", "RunAccepted", "RunBehind", "RunBelonging", "RunCost",
    "RunEnded", "RunEntry", "RunEvent", "RunFailed", "RunForked", "RunHalted", "RunHeld", "RunInDoubt", "RunListing",
    "RunPaused", "RunResumed", "RunStanding", "RunStarted", "RunState", "RunTaken", "Rung", "Schema", "Scope",
    "ScoreMaker", "ScriptedEngine", "Secret", "Sees", "SemanticCheck", "Session", "SessionConflict",
    "SessionEntryKept", "SessionLink", "SessionNoted", "SetTimer", "Settings", "Severity", "Signal", "SignalOutcome",
    "SignedHead", "Signer", "Source", "SourceFault", "SourcesAccepted", "SourcesReplaced", "SpecializedLoop", "Spent",
    "Stakes", "StandsFor", "StartChild", "StateWrite", "StaticPlanner", "Step", "StepFinished", "StepInput",
    "StepKind", "StepTold", "StepType", "Stop", "Stopped", "StoppedEarly", "Store", "StoreInDoubt", "StoreUnusable",
    "StreamChunk", "StreamHandler", "Streaming", "StrictMode", "StructuredResponse", "Subject", "Subscription",
    "System", "SystemRequest", "SystemResponse", "Task", "TaskClass", "TaskRule", "TaskSource", "Template",
    "TerminalWrite", "Terms", "Text", "TextFormatter", "TextShown", "Then", "TimerFired", "TimerPurpose", "TokenUsage",
    "Told", "ToolCall", "ToolCallMade", "ToolCallRefused", "ToolCancelled", "ToolCategory", "ToolChoice",
    "ToolChoiceMode", "ToolDefinition", "ToolEndEvent", "ToolFailed", "ToolFault", "ToolHandler", "ToolOutcomeLost",
    "ToolReconciled", "ToolRefused", "ToolResult", "ToolReturned", "ToolRules", "ToolStartEvent", "Trigger", "Trust",
    "Turn", "TurnDifference", "UnanimityVoting", "UnderWay", "Unverified", "UsageExceeded", "UserSignal",
    "ValidateHandler", "ValidationResult", "ValidatorHeard", "ValueKind", "ValueOrigin", "Vault", "Verification",
    "Versions", "Violation", "VoteCounted", "VoteTold", "VotingStrategy", "WaitingFor", "WeightedVoting", "What",
    "Whose", "WrapUpBegun", "__version__", "ask_of", "assistant_message", "boundary_at", "boundary_of", "builtin",
    "chat_graph", "check_grammar", "code_of", "compile_rules", "confidence_of", "constrain", "context_confidence",
    "delegate", "engine", "export_lines", "goal_at", "graph_at", "http_get_tool", "kit_of", "load_rules", "load_tools",
    "make_manifest", "orders_of", "parse_prices", "parse_rules", "perform", "printable_line", "rerank", "result_of",
    "run_cost", "run_logger", "schema_of", "settings_of", "system_in_memory", "system_message", "system_on", "tool",
    "tool_message", "user_message", "verdict_of", "verify_export", "verify_run",
]
# fmt: on

# They have the names of builtins, which no star import takes away.
_LIKE_BUILTINS = ("SystemError", "open")

# Where each name is loaded from: modules below `remit`, and the names that they define.
_HOMES = {
    name: f"remit.{home}"
    for home, names in {
        "agents.agent_loop": "AgentLoop",
        "agents.guard_in_memory": "GuardInMemory",
        "agents.plan_executor": "PlanExecutor PlanResult",
        "agents.redundant_loop": "RedundantLoop RedundantResult",
        "agents.specialized_loop": "SpecializedLoop",
        "agents.workplace": "CallCancelled",
        "agents.structured": "StructuredResponse",
        "assemble": "Settings settings_of system_in_memory system_on",
        "backend.memory.blobs": "MemoryBlobs",
        "backend.memory.journal": "MemoryJournal",
        "backend.memory.store": "MemoryStore",
        "constraint.stack": "Demand constrain",
        "context.evidence_message": "ContextBuilder context_confidence",
        "context.fts": "Document DocumentIndex",
        "core.journal.arrivals": "Happened",
        "core.limits.boundary": "Boundary BoundaryMode Rate Whose",
        "core.limits.budget": "Budget",
        "core.work.candidate": "Candidate RerankCandidate",
        "core.run.approval": "Approval",
        "core.run.contract": "WaitingFor ExecutionHints Mode OutputContract SystemRequest SystemResponse ConfidenceSource ValidationResult",
        "core.journal.turn": "Turn",
        "core.failure": "Ending ErrorCode IllegalArrival InvariantBroken Refusal RemitError RequestRejected RunFailed",
        "core.work.goal": "Goal",
        "core.work.orders": "Order",
        "orchestrate.patterns.redundant_graph": "Redundancy",
        "core.work.graph": "EXITS Edge Graph Node NodeKind TERMINALS",
        "core.run.inference": "FinishReason ModelInfo ModelRequest ModelResult Price Routing",
        "core.run.lifecycle": "AgentRole",
        "core.run.manifest": "Manifest make_manifest",
        "core.run.messages": "Message Role assistant_message system_message tool_message user_message",
        "core.work.plan": "ExecutionPlan PlanPolicy PlanTrace RerankInput Step StepType",
        "core.limits.queue": "QueueLimits",
        "core.limits.quota": "Period Quota",
        "core.journal.rulings": "ToolCallRefused",
        "core.run.run_events": "EventKind RunEvent Subject",
        "core.run.principal": "Principal Scope",
        "core.run.signals": "Signal UserSignal SignalOutcome",
        "core.journal.signing": "Signer",
        "core.limits.tools": "Effect ToolCall ToolCategory ToolChoice ToolChoiceMode ToolDefinition ToolResult",
        "core.run.usage": "TokenUsage",
        "observe.cost.cost_report": "CostReport Grouping Prices CostBook parse_prices",
        "observe.proof.export": "ExportUnreadable export_lines verify_export",
        "kernel.graph.compiled": "GraphRefused GuardUndecided",
        "kernel.graph.expressions": "GuardRefused",
        "tool.builtin.refusal": "ToolRefused",
        "core.journal.storage": "START AppendConflict BlobMissing EntrySettled LeaseLost ParentOpen QuotaConflict RunBehind RunHeld "
        "SessionConflict StoreUnusable",
        "front": "Door open",
        "inference.engine": "AnyEngine Engine EngineFault Restarted StreamChunk StreamHandler",
        "inference.scripted.script": "FREE",
        "inference.scripted.engine": "ScriptedEngine",
        "observe.views.event_log": "Event EventLog InMemoryEventLog CodeEvent ContextEvent",
        "observe.fact": "Fact FactKind",
        "observe.reading": "Reading",
        "orchestrate.boundaries.boundary_file": "boundary_at boundary_of",
        "orchestrate.bus.bus": "Listener",
        "orchestrate.facade": "System",
        "orchestrate.guard.guard": "Guard",
        "orchestrate.patterns.handlers": "CandidateReranker InferHandler RerankHandler RetrieveHandler ToolHandler ValidateHandler",
        "orchestrate.setup.kit": "ContextProvider FilterContext Kit PromptProvider Terms",
        "orchestrate.patterns.chat_graph": "chat_graph",
        "orchestrate.tenants.policies": "Policies",
        "orchestrate.run_handle": "Run Streaming",
        "orchestrate.bus.subscription": "Subscription",
        "rerank.lexical": "rerank",
        "tool.builtin.builtin_tools": "builtin",
        "tool.builtin.http_client": "Reach",
        "tool.builtin.http_get": "http_get_tool",
        "tool.builtin.targets": "AllowedHost",
        "tool.call.call_metadata": "CallMetadata",
        "tool.call.cancel_token": "CancelToken ToolCancelled",
        "tool.declare.decorator": "tool",
        "tool.delegate": "delegate",
        "tool.loader": "SourceFault load_tools",
        "tool.call.outcomes": "NotDone Reconciled Stop ToolFault",
        "tool.call.performing": "Attempt perform",
        "tool.registry": "Registry",
        "tool.secrets.secret": "Secret",
        "tool.secrets.vault": "Vault",
        "validate.check": "compile_rules confidence_of result_of",
        "validate.rule_set": "Length MustMention NoSecrets NumberRange RetryPolicy Rule RuleSet SemanticCheck Severity",
        "validate.semantic": "ask_of verdict_of",
        "orchestrate.patterns.planners": "ModelPlanner Planner StaticPlanner",
        "orchestrate.patterns.voters": "MajorityVoting NoConsensus UnanimityVoting VotingStrategy WeightedVoting",
        "observe.plain": "printable_line",
        "observe.logs": "JsonFormatter TextFormatter run_logger",
        "agents.terms": "engine kit_of",
        "core.record": "BlobRef",
        "validate.rule_file": "load_rules parse_rules",
        "observe.proof.verify": "verify_run",
        "observe.cost.charges": "run_cost",
        "core.schema.schema_source": "schema_of",
        "core.schema.json_schema": "code_of",
        "constraint.strict_mode": "StrictMode",
        "constraint.grammar.notation": "check_grammar",
        "backend.folded.log": "LogEntry",
        "backend.folded.store": "FoldedStore",
        "backend.embedded.store": "EmbeddedStore",
    }.items()
    for name in names.split()
}


def _home_of_record(name: str) -> str:
    """Where a record is loaded from that stands in the longer list, which most programs never read; empty for no record."""
    if name.startswith("_"):
        return ""
    from remit.run_records import HOMES

    return HOMES.get(name, "")


def _loaded(home: str) -> ModuleType:
    """A module of this package, loaded while the collector rests.

    Nothing that is loaded is ever garbage, and looking at all of it again and again would take a tenth of the time.
    """
    import gc
    from importlib import import_module

    if not gc.isenabled():
        return import_module(home)
    gc.disable()
    try:
        return import_module(home)
    finally:
        gc.enable()


# Hidden from type checkers, for which it would make every name exist.
if not TYPE_CHECKING:

    def __getattr__(name):
        """Load a public name from its home and keep it."""
        if name == "__version__":
            from importlib.metadata import version

            value = version("remit")
        elif home := _HOMES.get(name) or _home_of_record(name):
            value = getattr(_loaded(home), name)
        else:
            raise AttributeError(f"module 'remit' has no attribute {name!r}")
        globals()[name] = value
        return value


class _Package(ModuleType):
    """Keeps `remit.tool` the decorator: importing the room of that name would put itself in its place."""

    def __setattr__(self, name: str, value: Any) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted([*__all__, *_LIKE_BUILTINS])
