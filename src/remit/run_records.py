"""The records of runs: what turns hold, what verbs give, what the fields of public records name. `remit` gives every one of them.

They stand apart from `remit/__init__.py` because they are many, and because few programs name more than some of them.
"""

from typing import TYPE_CHECKING

# A name a line would be pages of names.
# fmt: off
if TYPE_CHECKING:
    from remit.constraint.reading.repair_log import Repair, RepairCode
    from remit.constraint.stack import Constrained, Misfit
    from remit.core.failure import Denials, EscalationRoute
    from remit.core.failure_families import FailureCategory
    from remit.core.journal.arrivals import (
        ApprovalGiven, ApprovalRefused, CallProposed, CancelRequested, ChildEnded, ChildLost, ChildSuspended,
        CodeFailed, CodeReturned, ContextFailed, ContextFound, Election, FeedbackGiven, HostFinished, ModelAnswered,
        ModelFailed, OutcomeJudged, PauseRequested, QuestionAnswered, ResumeRequested, RetryRequested, RunForked,
        RunHalted, RunStarted, RunTaken, SessionNoted, SourcesAccepted, TextShown, TimerFired, ToolFailed,
        ToolOutcomeLost, ToolReconciled, ToolReturned,
    )
    from remit.core.journal.commands import (
        AskHuman, AskPurpose, CallCode, CallModel, CallTool, CancelCommand, ForkRun, Packet, ReconcileTool,
        Retrieve, SetTimer, StartChild, TimerPurpose,
    )
    from remit.core.journal.proposed_call import ProposedCall, Provenance
    from remit.core.journal.rulings import (
        AddendumNoted, Answer, ApprovalCounted, CallNoted, CallSettled, CallTaken, CallsFiltered, CheckFailed,
        ChildHeld, ChildReleased, CommandSettled, CommandsWithheld, ContextCompressed, DelegationSettled,
        EffectUnallowed, FallbackChosen, FeedbackTaken, GroundingViolated, ModelDowngraded, NodeEntered,
        OutcomeContradicted, OutcomeDoubted, OutcomeParked, QuestionSettled, RetryPlanned, RunAccepted, RunEnded,
        RunPaused, RunResumed, Rung, SessionEntryKept, SourcesReplaced, StepFinished, StoppedEarly, UsageExceeded, ValidatorHeard,
        VoteCounted, WrapUpBegun,
    )
    from remit.core.journal.storage import Redacted, Removed, RunEntry, RunListing, SignedHead
    from remit.core.limits.authority import (
        Authority, Beyond, Confirm, Inference, Maker, OptionReach, PlanSource, Stakes, StandsFor, ValueOrigin,
    )
    from remit.core.limits.boundary import (
        At, Condition, DecisionRight, Demanding, Exhaustion, TaskRule, Then, Unverified,
    )
    from remit.core.limits.escalation import Escalation, Gravity, Trigger
    from remit.core.limits.foresight import Foresight, Milestone
    from remit.core.limits.grant import Grant, GrantDeed, GrantEntry, GrantStanding
    from remit.core.limits.queue import Receipt, ReceiptKind
    from remit.core.limits.quota import Limit, QuotaStanding, Reservation
    from remit.core.limits.tool_policy import StateWrite
    from remit.core.limits.tool_trust import Reads, Repeat, Trust
    from remit.core.record import JsonObject, Text
    from remit.core.run.approval import What
    from remit.core.run.contract import CallStatus, ExecutionContext, ExecutionState, HaltedBy, ToolCallMade
    from remit.core.run.correlation import (
        CorrelationContext, InferenceEndEvent, InferenceStartEvent, LifecycleTransitionEvent, ToolEndEvent,
        ToolStartEvent,
    )
    from remit.core.run.halt import Halt, HaltKind, HaltScope
    from remit.core.run.lifecycle import LifecycleState, LoopState
    from remit.core.run.manifest import EarlierEffect, Host, Origin, SessionLink, Source, Versions
    from remit.core.run.recovery import Recovery
    from remit.core.run.run_events import RunBelonging
    from remit.core.schema.json_schema import Schema, Violation
    from remit.core.work.candidate import ScoreMaker
    from remit.core.work.goal import Criterion, RequiredAction, Task, TaskClass, TaskSource
    from remit.core.work.graph import Ask, Ballot, EndingClass, JoinRule, Sees, StepInput, TerminalWrite, ToolRules
    from remit.core.work.orders import (
        Comparison, Exact, FieldTest, Free, FromOrder, LeasedOrders, Literal, Lookup, NamedSource, NumberChange,
        OrderUsed, Template, orders_of,
    )
    from remit.core.work.values import ValueKind
    from remit.inference.specs import EngineSettings
    from remit.kernel.state import RunState
    from remit.observe.cost.charges import Expense, RunCost
    from remit.observe.cost.cost_report import Row
    from remit.observe.cost.like_runs import Need, Stopped
    from remit.observe.linked_turns import History, Linked
    from remit.observe.people.queue_items import QueueItem, QueueShown
    from remit.observe.proof.findings import Fault, Finding, RunInDoubt, StoreInDoubt, Verification
    from remit.observe.steps import PerformedStep, StepKind
    from remit.observe.views.event_log import Action
    from remit.observe.views.explain import (
        Allowed, Called, ExplainedObservation, Explanation, Question, RunStanding, Spent, Told,
    )
    from remit.observe.views.plans_and_votes import ChildTold, ReplicaTold, StepTold, VoteTold
    from remit.orchestrate.exchange.sessions import Session
    from remit.orchestrate.executors.tool import Abandoned
    from remit.orchestrate.history.archive import Glimpse
    from remit.orchestrate.history.repair import Rebuilt
    from remit.orchestrate.history.replay import Audit, AuditVerdict, TurnDifference
    from remit.orchestrate.loop.halt_switch import Halted, UnderWay
    from remit.orchestrate.patterns.handlers import PatternHandler
    from remit.orchestrate.ports import Clock, Store
    from remit.orchestrate.run_handle import Events
    from remit.orchestrate.setup.goal_file import goal_at
    from remit.orchestrate.setup.graph_file import graph_at
    from remit.tool.call.outcomes import Performed
    from remit.tool.secrets.secret import Credential
    from remit.validate.breach import Breach
    from remit.validate.check import Report
    from remit.validate.rule_set import (
        AllowedValues, Citations, MustMatch, MustNotMatch, MustNotMention, NotEmpty, RequiredFields,
    )
    from remit.validate.semantic import JudgeAsk

__all__ = [
    "Abandoned", "Action", "AddendumNoted", "Allowed", "AllowedValues", "Answer", "ApprovalCounted", "ApprovalGiven",
    "ApprovalRefused", "Ask", "AskHuman", "AskPurpose", "At", "Audit", "AuditVerdict", "Authority", "Ballot", "Beyond",
    "Breach", "CallCode", "CallModel", "CallNoted", "CallProposed", "CallSettled", "CallStatus", "CallTaken",
    "CallTool", "Called", "CallsFiltered", "CancelCommand", "CancelRequested", "CheckFailed", "ChildEnded",
    "ChildHeld", "ChildLost", "ChildReleased", "ChildSuspended", "ChildTold", "Citations", "Clock", "CodeFailed",
    "CodeReturned", "CommandSettled", "CommandsWithheld", "Comparison", "Condition", "Confirm", "Constrained",
    "ContextCompressed", "ContextFailed", "ContextFound", "CorrelationContext", "Credential", "Criterion",
    "DecisionRight", "DelegationSettled", "Demanding", "Denials", "EarlierEffect", "EffectUnallowed", "Election",
    "EndingClass", "EngineSettings", "Escalation", "EscalationRoute", "Events", "Exact", "ExecutionContext",
    "ExecutionState", "Exhaustion", "Expense", "ExplainedObservation", "Explanation", "FailureCategory",
    "FallbackChosen", "Fault", "FeedbackGiven", "FeedbackTaken", "FieldTest", "Finding", "Foresight", "ForkRun",
    "Free", "FromOrder", "Glimpse", "Grant", "GrantDeed", "GrantEntry", "GrantStanding", "Gravity",
    "GroundingViolated", "Halt", "HaltKind", "HaltScope", "Halted", "HaltedBy", "History", "Host", "HostFinished",
    "Inference", "InferenceEndEvent", "InferenceStartEvent", "JoinRule", "JsonObject", "JudgeAsk", "LeasedOrders",
    "LifecycleState", "LifecycleTransitionEvent", "Limit", "Linked", "Literal", "Lookup", "LoopState", "Maker",
    "Milestone", "Misfit", "ModelAnswered", "ModelDowngraded", "ModelFailed", "MustMatch", "MustNotMatch",
    "MustNotMention", "NamedSource", "Need", "NodeEntered", "NotEmpty", "NumberChange", "OptionReach", "OrderUsed",
    "Origin", "OutcomeContradicted", "OutcomeDoubted", "OutcomeJudged", "OutcomeParked", "Packet", "PatternHandler", "PauseRequested",
    "Performed", "PerformedStep", "PlanSource", "ProposedCall", "Provenance", "Question", "QuestionAnswered",
    "QuestionSettled", "QueueItem", "QueueShown", "QuotaStanding", "Reads", "Rebuilt", "Receipt", "ReceiptKind",
    "ReconcileTool", "Recovery", "Redacted", "Removed", "Repair", "RepairCode", "Repeat", "ReplicaTold", "Report",
    "RequiredAction", "RequiredFields", "Reservation", "ResumeRequested", "Retrieve", "RetryPlanned", "RetryRequested",
    "Row", "RunAccepted", "RunBelonging", "RunCost", "RunEnded", "RunEntry", "RunForked", "RunHalted", "RunInDoubt",
    "RunListing", "RunPaused", "RunResumed", "RunStanding", "RunStarted", "RunState", "RunTaken", "Rung", "Schema",
    "ScoreMaker", "Sees", "Session", "SessionEntryKept", "SessionLink", "SessionNoted", "SetTimer", "SignedHead",
    "Source", "SourcesAccepted", "SourcesReplaced", "Spent", "Stakes", "StandsFor", "StartChild", "StateWrite",
    "StepFinished", "StepInput", "StepKind", "StepTold", "Stopped", "StoppedEarly", "Store", "StoreInDoubt", "Task",
    "TaskClass", "TaskRule", "TaskSource", "Template", "TerminalWrite", "Text", "TextShown", "Then", "TimerFired",
    "TimerPurpose", "Told", "ToolCallMade", "ToolEndEvent", "ToolFailed", "ToolOutcomeLost", "ToolReconciled",
    "ToolReturned", "ToolRules", "ToolStartEvent", "Trigger", "Trust", "TurnDifference", "UnderWay", "Unverified",
    "UsageExceeded", "ValidatorHeard", "ValueKind", "ValueOrigin", "Verification", "Versions", "Violation",
    "VoteCounted", "VoteTold", "What", "WrapUpBegun", "goal_at", "graph_at", "orders_of",
]
# fmt: on


# Where each name is loaded from: modules below `remit`, and the names that they define.
HOMES = {
    name: f"remit.{home}"
    for home, names in {
        "constraint.reading.repair_log": "Repair RepairCode",
        "constraint.stack": "Constrained Misfit",
        "core.failure": "Denials EscalationRoute",
        "core.failure_families": "FailureCategory",
        "core.journal.arrivals": """ApprovalGiven ApprovalRefused CallProposed CancelRequested ChildEnded ChildLost ChildSuspended CodeFailed
            CodeReturned ContextFailed ContextFound Election FeedbackGiven HostFinished ModelAnswered ModelFailed
            OutcomeJudged PauseRequested QuestionAnswered ResumeRequested RetryRequested RunForked RunHalted RunStarted
            RunTaken SessionNoted SourcesAccepted TextShown TimerFired ToolFailed ToolOutcomeLost ToolReconciled
            ToolReturned""",
        "core.journal.commands": """AskHuman AskPurpose CallCode CallModel CallTool CancelCommand ForkRun Packet ReconcileTool Retrieve SetTimer
            StartChild TimerPurpose""",
        "core.journal.proposed_call": "ProposedCall Provenance",
        "core.journal.rulings": """AddendumNoted Answer ApprovalCounted CallNoted CallSettled CallTaken CallsFiltered CheckFailed ChildHeld
            ChildReleased CommandSettled CommandsWithheld ContextCompressed DelegationSettled EffectUnallowed
            FallbackChosen FeedbackTaken GroundingViolated ModelDowngraded NodeEntered OutcomeContradicted OutcomeDoubted OutcomeParked
            QuestionSettled RetryPlanned RunAccepted RunEnded RunPaused RunResumed Rung SessionEntryKept SourcesReplaced
            StepFinished StoppedEarly UsageExceeded ValidatorHeard VoteCounted WrapUpBegun""",
        "core.journal.storage": "Redacted Removed RunEntry RunListing SignedHead",
        "core.limits.authority": """Authority Beyond Confirm Inference Maker OptionReach PlanSource Stakes StandsFor ValueOrigin""",
        "core.limits.boundary": "At Condition DecisionRight Demanding Exhaustion TaskRule Then Unverified",
        "core.limits.escalation": "Escalation Gravity Trigger",
        "core.limits.foresight": "Foresight Milestone",
        "core.limits.grant": "Grant GrantDeed GrantEntry GrantStanding",
        "core.limits.queue": "Receipt ReceiptKind",
        "core.limits.quota": "Limit QuotaStanding Reservation",
        "core.limits.tool_policy": "StateWrite",
        "core.limits.tool_trust": "Reads Repeat Trust",
        "core.record": "JsonObject Text",
        "core.run.approval": "What",
        "core.run.contract": "CallStatus ExecutionContext ExecutionState HaltedBy SystemError ToolCallMade",
        "core.run.correlation": """CorrelationContext InferenceEndEvent InferenceStartEvent LifecycleTransitionEvent ToolEndEvent ToolStartEvent""",
        "core.run.halt": "Halt HaltKind HaltScope",
        "core.run.lifecycle": "LifecycleState LoopState",
        "core.run.manifest": "EarlierEffect Host Origin SessionLink Source Versions",
        "core.run.recovery": "Recovery",
        "core.run.run_events": "RunBelonging",
        "core.schema.json_schema": "Schema Violation",
        "core.work.candidate": "ScoreMaker",
        "core.work.goal": "Criterion RequiredAction Task TaskClass TaskSource",
        "core.work.graph": "Ask Ballot EndingClass JoinRule Sees StepInput TerminalWrite ToolRules",
        "core.work.orders": """Comparison Exact FieldTest Free FromOrder LeasedOrders Literal Lookup NamedSource NumberChange OrderUsed
            Template orders_of""",
        "core.work.values": "ValueKind",
        "inference.specs": "EngineSettings",
        "kernel.state": "RunState",
        "observe.cost.charges": "Expense RunCost",
        "observe.cost.cost_report": "Row",
        "observe.cost.like_runs": "Need Stopped",
        "observe.linked_turns": "History Linked",
        "observe.people.queue_items": "QueueItem QueueShown",
        "observe.proof.findings": "Fault Finding RunInDoubt StoreInDoubt Verification",
        "observe.steps": "PerformedStep StepKind",
        "observe.views.event_log": "Action",
        "observe.views.explain": "Allowed Called ExplainedObservation Explanation Question RunStanding Spent Told",
        "observe.views.plans_and_votes": "ChildTold ReplicaTold StepTold VoteTold",
        "orchestrate.exchange.sessions": "Session",
        "orchestrate.executors.tool": "Abandoned",
        "orchestrate.history.archive": "Glimpse",
        "orchestrate.history.repair": "Rebuilt",
        "orchestrate.history.replay": "Audit AuditVerdict TurnDifference",
        "orchestrate.loop.halt_switch": "Halted UnderWay",
        "orchestrate.patterns.handlers": "PatternHandler",
        "orchestrate.ports": "Clock Store",
        "orchestrate.run_handle": "Events",
        "orchestrate.setup.goal_file": "goal_at",
        "orchestrate.setup.graph_file": "graph_at",
        "tool.call.outcomes": "Performed",
        "tool.secrets.secret": "Credential",
        "validate.breach": "Breach",
        "validate.check": "Report",
        "validate.rule_set": "AllowedValues Citations MustMatch MustNotMatch MustNotMention NotEmpty RequiredFields",
        "validate.semantic": "JudgeAsk",
    }.items()
    for name in names.split()
}
