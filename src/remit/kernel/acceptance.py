"""Acceptance: whether an answer may stand, by everything code can check about it.

Rule 1: the output contract, the tool choice, the goal's required actions, its task class and its criteria must hold.
Rule 2: what does not hold is told to the model, as often as the node may be visited; then the run fails.
Rule 3: a guard that cannot be decided does not hold.
"""

from collections.abc import Iterator
from typing import NamedTuple

from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.goal import NEEDS_OBSERVATION, Goal
from remit.core.graph import Node, NodeOutcome
from remit.core.rulings import CheckFailed, GroundingViolated
from remit.core.tools import ToolChoiceMode
from remit.kernel.endings import head_for
from remit.kernel.grounding import has_observed_anything, times_committed
from remit.kernel.guards import holds, parse_guard
from remit.kernel.tally import Tally
from remit.kernel.view import view_of
from remit.kernel.words import correction_bound

GOAL_INVALID = "GOAL_INVALID"


class Problem(NamedTuple):
    """Why an answer may not stand."""

    code: ErrorCode
    text: str


def check_goal(goal: Goal) -> None:
    """Refuse a goal with a criterion that no code could verify; the run must not find out when it has answered."""
    for criterion in goal.criteria:
        if bool(criterion.guard) == bool(criterion.validator):
            message = f"criterion {criterion.name!r} needs a guard or a validator, and not both"
            raise RequestRejected(GOAL_INVALID, message)
        if criterion.guard:
            parse_guard(criterion.guard)


def conclude(tally: Tally, node: Node) -> str:
    """Pass the answer, send it back, or fail the run, now that every validator was heard."""
    found = (*_problems(tally), *(Problem(ErrorCode.VALIDATION_RULE_FAILED, text) for text in _heard(tally)))
    if not found:
        return NodeOutcome.PASSED
    texts = tuple(problem.text for problem in found)
    visits = tally.state.visits[tally.node] + tally.visits.get(tally.node, 0)
    if not node.visits_max or visits < node.visits_max:
        bound = correction_bound(texts)
        tally.rule(CheckFailed(texts, bound))
        tally.say(bound)
        return NodeOutcome.REPAIRABLE
    if ungrounded := tuple(p.text for p in found if p.code is ErrorCode.VALIDATION_SEMANTIC_FAILED):
        tally.rule(GroundingViolated(ungrounded))
    return head_for(tally, Ending.VALIDATION_FAIL, found[0].code, "; ".join(texts))


def _heard(tally: Tally) -> tuple[str, ...]:
    return (*tally.state.problems, *tally.problems)


def _problems(tally: Tally) -> Iterator[Problem]:
    yield from _contract_problems(tally)
    yield from _choice_problems(tally)
    goal = tally.manifest.goal
    if goal is not None:
        yield from _goal_problems(tally, goal)


def _contract_problems(tally: Tally) -> Iterator[Problem]:
    for violation in tally.answer_violations:
        is_syntax = violation.keyword == "json"
        code = ErrorCode.CONSTRAINT_JSON_INVALID if is_syntax else ErrorCode.CONSTRAINT_SCHEMA_INVALID
        yield Problem(code, f"output {violation.path or '/'}: {violation.message}")


def _choice_problems(tally: Tally) -> Iterator[Problem]:
    choice = tally.manifest.request.tool_choice
    if choice.mode is ToolChoiceMode.REQUIRED and not tally.state.calls:
        yield Problem(ErrorCode.VALIDATION_RULE_FAILED, "a tool call is required before answering")
    elif choice.mode is ToolChoiceMode.FUNCTION and all(
        call.tool != choice.function_name for call in tally.state.calls.values()
    ):
        yield Problem(ErrorCode.VALIDATION_RULE_FAILED, f"tool {choice.function_name} must be called before answering")


def _goal_problems(tally: Tally, goal: Goal) -> Iterator[Problem]:
    for action in goal.required_actions:
        times = times_committed(tally, action.tool)
        if times < action.times_min:
            text = f"required action {action.tool}: observed {times} of {action.times_min} times"
            yield Problem(ErrorCode.VALIDATION_SEMANTIC_FAILED, text)
    if goal.task_class is not None and NEEDS_OBSERVATION[goal.task_class] and not has_observed_anything(tally):
        text = f"a task of class {goal.task_class} needs an observation; answering from reasoning is not enough"
        yield Problem(ErrorCode.VALIDATION_SEMANTIC_FAILED, text)
    for criterion in goal.criteria:
        if criterion.guard and not _is_true(criterion.guard, tally):
            yield Problem(ErrorCode.VALIDATION_RULE_FAILED, f"criterion {criterion.name} does not hold")


def _is_true(guard: str, tally: Tally) -> bool:
    program = parse_guard(guard)
    return holds(program, view_of(tally, "", program.names)) is True
