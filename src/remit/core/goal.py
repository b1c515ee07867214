"""The goal object: what a run must have done, beyond having answered, to end as SUCCESS.

Rule 1: every criterion is verified by code, a guard or a named validator, or by a judge; never by the word of the model
        that answers.
Rule 2: a required action counts when its observation was committed, not when it was proposed.
Rule 3: a fact of the world is never SUCCESS from reasoning alone; the task class says which those are.
"""

from enum import StrEnum

from remit.core.record import Record


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


class Goal(Record):
    """What the run is for, in a form that code can check."""

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
