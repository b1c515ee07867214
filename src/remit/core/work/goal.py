"""The goal object: what a run must have done, beyond having answered, to end as SUCCESS.

Rule 1: every criterion is verified by code, a guard or a named validator, or by a judge; never by the word of the model
        that answers.
Rule 2: a required action counts when its observation was committed, not when it was proposed.
Rule 3: a fact of the world is never SUCCESS from reasoning alone; the task class says which those are, and which
        categories of tools can tell them.
"""

from enum import StrEnum

from remit.core.limits.tool_trust import Reads
from remit.core.limits.tools import Effect, ToolCategory, ToolDefinition
from remit.core.record import MadeByHand, Record

# The whole of a share: confidences and relevances stand in records as millionths, since records hold no floats.
PPM = 1_000_000


class TaskClass(StrEnum):
    """What kind of task this is, as far as it decides between reasoning and a tool."""

    ESTIMATE = "estimate"
    EXACT_CALCULATION = "exact_calculation"
    CURRENT_FACT = "current_fact"
    ACCOUNT_STATUS = "account_status"
    CODE_RESULT = "code_result"
    TOOL_RESULT = "tool_result"
    HIGH_STAKES = "high_stakes"
    CREATIVE = "creative"


# High stakes "usually" need a tool; the stricter reading is the safe one.
NEEDS_OBSERVATION: dict[TaskClass, bool] = {
    TaskClass.ESTIMATE: False,
    TaskClass.EXACT_CALCULATION: True,
    TaskClass.CURRENT_FACT: True,
    TaskClass.ACCOUNT_STATUS: True,
    TaskClass.CODE_RESULT: True,
    TaskClass.TOOL_RESULT: True,
    TaskClass.HIGH_STAKES: True,
    TaskClass.CREATIVE: False,
}

# Classes whose answers state facts that an observation must have; a recommendation weighs them, and a person reviews it.
FACTUAL = frozenset(task for task, needs in NEEDS_OBSERVATION.items() if needs and task is not TaskClass.HIGH_STAKES)

_C = ToolCategory
# Which categories of tools can tell what a class asks for. Asking people tells nothing of the world.
GROUNDS: dict[TaskClass, frozenset[ToolCategory]] = {
    TaskClass.ESTIMATE: frozenset(),
    TaskClass.EXACT_CALCULATION: frozenset({_C.SANDBOX, _C.DATABASE}),
    TaskClass.CURRENT_FACT: frozenset(
        {_C.READ_ONLY_LOOKUP, _C.RETRIEVAL, _C.LIVE_API, _C.DATABASE, _C.EMAIL_CALENDAR, _C.INFRASTRUCTURE}
    ),
    TaskClass.ACCOUNT_STATUS: frozenset(
        {_C.READ_ONLY_LOOKUP, _C.LIVE_API, _C.DATABASE, _C.EMAIL_CALENDAR, _C.PAYMENT, _C.INFRASTRUCTURE}
    ),
    TaskClass.CODE_RESULT: frozenset({_C.SANDBOX, _C.INFRASTRUCTURE}),
    TaskClass.TOOL_RESULT: frozenset(ToolCategory) - {_C.REVIEW_QUEUE},
    TaskClass.HIGH_STAKES: frozenset(
        {_C.READ_ONLY_LOOKUP, _C.RETRIEVAL, _C.LIVE_API, _C.DATABASE, _C.FILE_SYSTEM, _C.SANDBOX}
    ),
    TaskClass.CREATIVE: frozenset(),
}
# What tells of an account only where it does not read what is public: the time of day is a look-up, too.
_TELLS_ANYBODY = frozenset({_C.READ_ONLY_LOOKUP, _C.LIVE_API})


class TaskSource(StrEnum):
    """Who says what kind of task a run is."""

    CALLER = "caller"
    BOUNDARY = "boundary"
    INFERRED = "inferred"


class Task(Record):
    """What kind of task a run is, who says so, and why: the rule of the boundary, or the words that it was taken from.

    `grounds` are the categories that can tell it, where they are named.
    """

    task_class: TaskClass
    said_by: TaskSource
    why: str = ""
    grounds: tuple[ToolCategory, ...] = ()


def can_ground(tool: ToolDefinition, task: Task) -> bool:
    """Whether an observation of this tool can tell what the task asks for.

    A read without a category can tell anything, unless the categories are named; what computes without reading
    tells a calculation, and what only acts tells what came of the action.
    """
    if tool.delegates or tool.asks_under is not None:
        return False
    if task.grounds:
        return tool.category in task.grounds
    if tool.category is None:
        if tool.effect is Effect.READ:
            return True
        computed = (TaskClass.EXACT_CALCULATION, TaskClass.TOOL_RESULT) if tool.effect is Effect.NONE else ()
        return task.task_class in (computed or (TaskClass.TOOL_RESULT,))
    if task.task_class is TaskClass.ACCOUNT_STATUS and tool.category in _TELLS_ANYBODY:
        return tool.trust.reads is not Reads.PUBLIC
    return tool.category in GROUNDS[task.task_class]


def computes(tool: ToolDefinition) -> bool:
    """Whether a tool makes values of others, so that what it gives may be told beside what was observed."""
    return tool.category is ToolCategory.SANDBOX or (tool.category is None and tool.effect is Effect.NONE)


# Before the name of a criterion, it says that a child run is its judge.
JUDGE_MARK = "judge:"


class Criterion(Record):
    """One thing that must hold at the end: a guard over the run, the name of a validator, or a question for a judge.

    Exactly one of them. A judge is a model in a run of its own, and a yes means that all is well; where it only warns,
    the answer stands all the same.
    """

    name: str
    guard: str = ""
    validator: str = ""
    judge: str = ""
    only_warns: bool = False


class RequiredAction(Record):
    """A tool whose observation must have been committed at least so often."""

    tool: str
    times_min: int = 1


class Goal(MadeByHand):
    """The goal of a run, in a form that code can check."""

    statement: str
    criteria: tuple[Criterion, ...] = ()
    required_actions: tuple[RequiredAction, ...] = ()
    task_class: TaskClass | None = None
    # Facts that every observation must agree on, by the name of the field that states them.
    critical: tuple[str, ...] = ()
    # An answer whose confidence is below this many millionths goes to review; 0 asks for none.
    confidence_ppm_min: int = 0
    # The model that judges; empty for the one that answers.
    judge_model: str = ""
    # The categories of tools whose observations ground the answer, in place of those of the task class.
    grounds: tuple[ToolCategory, ...] = ()
