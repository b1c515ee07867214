"""remit: agents that stay within their remit.

Whatever a program needs comes from here. Each name is loaded when it is first asked for, so `import remit` costs nothing.
Inside the house every name is imported from the file that defines it, never from here.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from remit.agents.conversation import AgentLoop
    from remit.agents.guard import GuardInMemory
    from remit.agents.plan import PlanExecutor, PlanResult
    from remit.agents.redundant import RedundantLoop, RedundantResult
    from remit.agents.single import SpecializedLoop
    from remit.assemble import Settings, settings_of, system_in_memory, system_on
    from remit.backend.memory.blobs import MemoryBlobs
    from remit.backend.memory.journal import MemoryJournal
    from remit.backend.memory.store import MemoryStore
    from remit.constraint.gbnf_schema import gbnf_of, schema_grammar
    from remit.constraint.stack import Demand, constrain
    from remit.context.building import ContextBuilder, context_confidence
    from remit.context.fts import Document, DocumentIndex
    from remit.core.arrivals import Happened
    from remit.core.boundary import Boundary, Rate, Whose
    from remit.core.budget import Budget
    from remit.core.candidate import Candidate
    from remit.core.contract import ExecutionHints, Mode, OutputContract, SystemRequest, SystemResponse
    from remit.core.events import Turn
    from remit.core.failure import Ending, ErrorCode, IllegalArrival, Refusal, RemitError, RequestRejected
    from remit.core.goal import Goal
    from remit.core.graph import EXITS, TERMINALS, Edge, Graph, Node, NodeKind
    from remit.core.inference import ModelInfo, ModelRequest, ModelResult, Price, Routing
    from remit.core.lifecycle import AgentRole
    from remit.core.manifest import Manifest, make_manifest
    from remit.core.messages import Message, Role, system_message, user_message
    from remit.core.plan import ExecutionPlan, PlanPolicy, Step
    from remit.core.principal import Principal, Scope
    from remit.core.queue import QueueLimits
    from remit.core.quota import Period, Quota
    from remit.core.rulings import ToolCallRefused
    from remit.core.run_events import EventKind, RunEvent, Subject
    from remit.core.signals import Signal, UserSignal
    from remit.core.signing import Signer
    from remit.core.tools import Effect, ToolCall, ToolDefinition, ToolResult
    from remit.core.usage import TokenUsage
    from remit.front import Door, open  # noqa: A004  # `remit.open()` is how it is said
    from remit.inference.engine import Engine, EngineFault, Restarted, StreamChunk, StreamHandler
    from remit.inference.script import FREE
    from remit.inference.scripted import ScriptedEngine
    from remit.observe.event_log import Event, EventLog, InMemoryEventLog
    from remit.observe.reading import Fact, FactKind, Reading
    from remit.orchestrate.boundary_file import boundary_at, boundary_of
    from remit.orchestrate.bus import Listener
    from remit.orchestrate.facade import System
    from remit.orchestrate.guard.guard import Guard
    from remit.orchestrate.handlers import InferHandler, RerankHandler, RetrieveHandler, ToolHandler, ValidateHandler
    from remit.orchestrate.kit import FilterContext, Kit, Terms, kit_of
    from remit.orchestrate.patterns.chat import chat_graph
    from remit.orchestrate.policies import Policies
    from remit.orchestrate.run import Run
    from remit.orchestrate.subscription import Subscription
    from remit.rerank.lexical import rerank
    from remit.tool.builtin.catalogue import builtin
    from remit.tool.builtin.fetching import Reach
    from remit.tool.builtin.http_get import http_get_tool
    from remit.tool.builtin.targets import AllowedHost
    from remit.tool.cancelling import CancelToken
    from remit.tool.declare import tool
    from remit.tool.delegating import delegate
    from remit.tool.loading import load_tools
    from remit.tool.outcomes import NotDone, Reconciled, ToolFault
    from remit.tool.performing import Attempt, perform
    from remit.tool.registry import Registry
    from remit.tool.secret import Secret
    from remit.tool.vault import Vault
    from remit.validate.checking import compile_rules, confidence_of, result_of
    from remit.validate.rules import (
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
    "EXITS",
    "FREE",
    "TERMINALS",
    "AgentLoop",
    "AgentRole",
    "AllowedHost",
    "Attempt",
    "Boundary",
    "Budget",
    "CancelToken",
    "Candidate",
    "ContextBuilder",
    "Demand",
    "Document",
    "DocumentIndex",
    "Door",
    "Edge",
    "Effect",
    "Ending",
    "Engine",
    "EngineFault",
    "ErrorCode",
    "Event",
    "EventKind",
    "EventLog",
    "ExecutionHints",
    "ExecutionPlan",
    "Fact",
    "FactKind",
    "FilterContext",
    "Goal",
    "Graph",
    "Guard",
    "GuardInMemory",
    "Happened",
    "IllegalArrival",
    "InMemoryEventLog",
    "InferHandler",
    "Kit",
    "Length",
    "Listener",
    "Manifest",
    "MemoryBlobs",
    "MemoryJournal",
    "MemoryStore",
    "Message",
    "Mode",
    "ModelInfo",
    "ModelRequest",
    "ModelResult",
    "MustMention",
    "NoSecrets",
    "Node",
    "NodeKind",
    "NotDone",
    "NumberRange",
    "OutputContract",
    "Period",
    "PlanExecutor",
    "PlanPolicy",
    "PlanResult",
    "Policies",
    "Price",
    "Principal",
    "QueueLimits",
    "Quota",
    "Rate",
    "Reach",
    "Reading",
    "Reconciled",
    "RedundantLoop",
    "RedundantResult",
    "Refusal",
    "Registry",
    "RemitError",
    "RequestRejected",
    "RerankHandler",
    "Restarted",
    "RetrieveHandler",
    "RetryPolicy",
    "Role",
    "Routing",
    "Rule",
    "RuleSet",
    "Run",
    "RunEvent",
    "Scope",
    "ScriptedEngine",
    "Secret",
    "SemanticCheck",
    "Settings",
    "Severity",
    "Signal",
    "Signer",
    "SpecializedLoop",
    "Step",
    "StreamChunk",
    "StreamHandler",
    "Subject",
    "Subscription",
    "System",
    "SystemRequest",
    "SystemResponse",
    "Terms",
    "TokenUsage",
    "ToolCall",
    "ToolCallRefused",
    "ToolDefinition",
    "ToolFault",
    "ToolHandler",
    "ToolResult",
    "Turn",
    "UserSignal",
    "ValidateHandler",
    "Vault",
    "Whose",
    "__version__",
    "ask_of",
    "boundary_at",
    "boundary_of",
    "builtin",
    "chat_graph",
    "compile_rules",
    "confidence_of",
    "constrain",
    "context_confidence",
    "delegate",
    "gbnf_of",
    "http_get_tool",
    "kit_of",
    "load_tools",
    "make_manifest",
    "open",
    "perform",
    "rerank",
    "result_of",
    "schema_grammar",
    "settings_of",
    "system_in_memory",
    "system_message",
    "system_on",
    "tool",
    "user_message",
    "verdict_of",
]
# fmt: on

# Where each name is loaded from: modules below `remit`, and the names that they define.
_HOMES = {
    name: f"remit.{home}"
    for home, names in {
        "agents.conversation": "AgentLoop",
        "agents.guard": "GuardInMemory",
        "agents.plan": "PlanExecutor PlanResult",
        "agents.redundant": "RedundantLoop RedundantResult",
        "agents.single": "SpecializedLoop",
        "assemble": "Settings settings_of system_in_memory system_on",
        "backend.memory.blobs": "MemoryBlobs",
        "backend.memory.journal": "MemoryJournal",
        "backend.memory.store": "MemoryStore",
        "constraint.gbnf_schema": "gbnf_of schema_grammar",
        "constraint.stack": "Demand constrain",
        "context.building": "ContextBuilder context_confidence",
        "context.fts": "Document DocumentIndex",
        "core.arrivals": "Happened",
        "core.boundary": "Boundary Rate Whose",
        "core.budget": "Budget",
        "core.candidate": "Candidate",
        "core.contract": "ExecutionHints Mode OutputContract SystemRequest SystemResponse",
        "core.events": "Turn",
        "core.failure": "Ending ErrorCode IllegalArrival Refusal RemitError RequestRejected",
        "core.goal": "Goal",
        "core.graph": "EXITS Edge Graph Node NodeKind TERMINALS",
        "core.inference": "ModelInfo ModelRequest ModelResult Price Routing",
        "core.lifecycle": "AgentRole",
        "core.manifest": "Manifest make_manifest",
        "core.messages": "Message Role system_message user_message",
        "core.plan": "ExecutionPlan PlanPolicy Step",
        "core.queue": "QueueLimits",
        "core.quota": "Period Quota",
        "core.rulings": "ToolCallRefused",
        "core.run_events": "EventKind RunEvent Subject",
        "core.principal": "Principal Scope",
        "core.signals": "Signal UserSignal",
        "core.signing": "Signer",
        "core.tools": "Effect ToolCall ToolDefinition ToolResult",
        "core.usage": "TokenUsage",
        "front": "Door open",
        "inference.engine": "Engine EngineFault Restarted StreamChunk StreamHandler",
        "inference.script": "FREE",
        "inference.scripted": "ScriptedEngine",
        "observe.event_log": "Event EventLog InMemoryEventLog",
        "observe.reading": "Fact FactKind Reading",
        "orchestrate.boundary_file": "boundary_at boundary_of",
        "orchestrate.bus": "Listener",
        "orchestrate.facade": "System",
        "orchestrate.guard.guard": "Guard",
        "orchestrate.handlers": "InferHandler RerankHandler RetrieveHandler ToolHandler ValidateHandler",
        "orchestrate.kit": "FilterContext Kit Terms kit_of",
        "orchestrate.patterns.chat": "chat_graph",
        "orchestrate.policies": "Policies",
        "orchestrate.run": "Run",
        "orchestrate.subscription": "Subscription",
        "rerank.lexical": "rerank",
        "tool.builtin.catalogue": "builtin",
        "tool.builtin.fetching": "Reach",
        "tool.builtin.http_get": "http_get_tool",
        "tool.builtin.targets": "AllowedHost",
        "tool.cancelling": "CancelToken",
        "tool.declare": "tool",
        "tool.delegating": "delegate",
        "tool.loading": "load_tools",
        "tool.outcomes": "NotDone Reconciled ToolFault",
        "tool.performing": "Attempt perform",
        "tool.registry": "Registry",
        "tool.secret": "Secret",
        "tool.vault": "Vault",
        "validate.checking": "compile_rules confidence_of result_of",
        "validate.rules": "Length MustMention NoSecrets NumberRange RetryPolicy Rule RuleSet SemanticCheck Severity",
        "validate.semantic": "ask_of verdict_of",
    }.items()
    for name in names.split()
}

# Hidden from type checkers, for which it would make every name exist.
if not TYPE_CHECKING:

    def __getattr__(name):
        """Load a public name from its home and keep it."""
        if name == "__version__":
            from importlib.metadata import version

            value = version("remit")
        elif name in _HOMES:
            from importlib import import_module

            value = getattr(import_module(_HOMES[name]), name)
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
    return sorted(__all__)
