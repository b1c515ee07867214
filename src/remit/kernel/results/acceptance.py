"""Acceptance: whether an answer may stand, by everything code can check about it.

Rule 1: the output contract, the tool choice, the goal's required actions, its task class and its criteria must hold.
Rule 2: what does not hold is told to the model, as often as the node may be visited; then the run fails. What cannot be
        made to hold any more ends it at once, as impossible.
Rule 3: a guard that cannot be decided does not hold.
"""

from collections.abc import Iterator
from typing import NamedTuple

from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.journal.commands import AskPurpose
from remit.core.journal.rulings import CheckFailed, GroundingViolated, ValidatorHeard, VoteCounted
from remit.core.limits.boundary import At
from remit.core.limits.flags import TESTS_FAILED
from remit.core.limits.tools import Effect, ToolChoiceMode, ToolDefinition
from remit.core.limits.verification import OBSERVED_ONLY
from remit.core.schema.json_schema import code_of
from remit.core.work.goal import PPM, Goal, TaskClass
from remit.core.work.graph import EndingClass, Node, NodeKind, NodeOutcome
from remit.kernel.authority.boundary_checks import condition_stop
from remit.kernel.authority.call_flags import flags_now
from remit.kernel.budget.spend import lacking
from remit.kernel.graph.condition_view import view_of
from remit.kernel.graph.edge_conditions import parse_guard
from remit.kernel.graph.expressions import condition_holds
from remit.kernel.people.questions import REVIEW, open_question
from remit.kernel.results.endings import head_for
from remit.kernel.results.feasible import given_up
from remit.kernel.results.notices import correction_bound, unjudged
from remit.kernel.results.proven_effects import times_committed
from remit.kernel.results.tasks import NEEDS_REVIEW, deciding_task, ungrounded
from remit.kernel.tally import Tally

GOAL_INVALID = "GOAL_INVALID"
# What a condition about an answer is shown in place of a tool.
_NO_TOOL = ToolDefinition("", "", {}, effect=Effect.NONE)

# Errors of structure, which an output contract without repair makes final.
_STRUCTURAL = frozenset(
    {
        ErrorCode.CONSTRAINT_JSON_INVALID,
        ErrorCode.CONSTRAINT_SCHEMA_INVALID,
        ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED,
        ErrorCode.CONSTRAINT_GRAMMAR_REJECTED,
        # Of an answer that was cut.
        ErrorCode.INFERENCE_MALFORMED_RESPONSE,
    }
)


class Problem(NamedTuple):
    """Why an answer may not stand."""

    code: ErrorCode
    text: str


def check_goal(goal: Goal) -> None:
    """Refuse a goal with a criterion that no code could verify; the run must not find out when it has answered."""
    for criterion in goal.criteria:
        if sum(map(bool, (criterion.guard, criterion.validator, criterion.judge))) != 1:
            message = (
                f"criterion {criterion.name!r} needs a guard, a validator or a judge's question, and only one of them"
            )
            raise RequestRejected(GOAL_INVALID, message)
        if criterion.guard:
            parse_guard(criterion.guard)


def conclude_answer(tally: Tally, node: Node) -> str | None:
    """Pass the answer, send it back, hand it to a reviewer, or fail the run, now that every validator was heard."""
    goal = tally.manifest.goal
    found = [*_problems(tally), *(_criteria_problems(tally, goal) if goal is not None else ())]
    found += [Problem(ErrorCode.VALIDATION_RULE_FAILED, text) for text in _heard(tally)]
    objections = (*tally.state.result.objections, *tally.objections)
    found += [Problem(ErrorCode.VALIDATION_SEMANTIC_FAILED, text) for text in objections]
    if not found:
        return _reviewed(tally)
    if goal is not None and (why := given_up(tally, goal)):
        return head_for(tally, Ending.IMPOSSIBLE, message=why)
    texts = tuple(problem.text for problem in found)
    visits = tally.state.place.visits[tally.node] + tally.visits.count(tally.node)
    may_repair = tally.manifest.request.output.repair_allowed or not any(p.code in _STRUCTURAL for p in found)
    is_final = tally.is_final or tally.state.result.is_final
    if may_repair and not is_final and (not node.visits_max or visits < node.visits_max):
        bound = correction_bound(texts)
        tally.last_error = found[0].code
        tally.rule(CheckFailed(texts, bound, found[0].code))
        tally.say(bound)
        return NodeOutcome.REPAIRABLE
    if ungrounded := tuple(
        p.text for p in found if p.code is ErrorCode.VALIDATION_SEMANTIC_FAILED and p.text not in objections
    ):
        tally.rule(GroundingViolated(ungrounded))
    return head_for(tally, Ending.VALIDATION_FAIL, found[0].code, "; ".join(texts))


def _reviewed(tally: Tally) -> str | None:
    """Pass an answer that needs no reviewer; one that is unsure or of high stakes is for a reviewer to let stand."""
    doubt, stakes = _doubt(tally), _stakes(tally)
    if not doubt and not stakes:
        return NodeOutcome.PASSED
    ending = Ending.LOW_CONFIDENCE if doubt else Ending.REVIEW_REQUIRED
    shown = "; ".join(why for why in (doubt, stakes) if why)
    if lacking(tally, REVIEW) is not None:
        return head_for(tally, ending, message=f"{shown}, and nobody may be asked any more")
    open_question(tally, AskPurpose.REVIEW, ending, question=f"{shown}. Let the answer stand?", answer=tally.answer)
    return None


def _stakes(tally: Tally) -> str:
    """Why a person has to look at the answer of a task that is said to be of high stakes; empty for any other."""
    task = deciding_task(tally.manifest)
    return NEEDS_REVIEW if task is not None and task.task_class is TaskClass.HIGH_STAKES else ""


def _doubt(tally: Tally) -> str:
    """How much the answer lacks of the confidence that the goal wants; empty when it lacks none."""
    goal = tally.manifest.goal
    if goal is None or not goal.confidence_ppm_min:
        return ""
    confidence_ppm = confidence_ppm_of(tally)
    if confidence_ppm >= goal.confidence_ppm_min:
        return ""
    return f"confidence {confidence_ppm / PPM:.2f} is below {goal.confidence_ppm_min / PPM:.2f}"


def confidence_ppm_of(tally: Tally) -> int:
    """What speaks for the answer, in millionths: a vote, else the checks it passed, else how well its evidence fits.

    An answer for which nothing speaks has no confidence at all.
    """
    state, confidence_ppm = tally.state, tally.state.result.confidence_ppm
    passed, failed = state.result.checks_passed, state.result.checks_failed
    # What this turn has heard is not in the state yet.
    for decision in tally.decisions:
        if isinstance(decision, VoteCounted):
            confidence_ppm = decision.confidence_ppm
        elif isinstance(decision, ValidatorHeard):
            passed, failed = passed + decision.checks_passed, failed + decision.checks_failed
    if confidence_ppm >= 0:
        return confidence_ppm
    return passed * PPM // (passed + failed) if passed + failed else max(state.talk.relevance_ppm, 0)


def refuse_unaccepted(tally: Tally, node: Node) -> str | None:
    """The outcome that leads elsewhere when a success terminal is reached by an answer that may not stand.

    Most graphs pass a validate node, which has sent such an answer back before; no graph gets around being judged.
    """
    if node.ending is not EndingClass.SUCCESS:
        return None
    if why := condition_stop(tally, _NO_TOOL, At.ANSWER):
        return head_for(tally, Ending.UNSAFE_DETECTION, message=why)
    goal, is_judged = tally.manifest.goal, _has_passed_a_check(tally)
    found = [*_problems(tally), *(() if goal is None or is_judged else _unjudged_criteria(tally, goal))]
    if found:
        return head_for(tally, Ending.VALIDATION_FAIL, found[0].code, "; ".join(problem.text for problem in found))
    if is_judged:
        return None
    if shown := _doubt(tally):
        return head_for(tally, Ending.LOW_CONFIDENCE, message=shown)
    return head_for(tally, Ending.REVIEW_REQUIRED, message=stakes) if (stakes := _stakes(tally)) else None


def _has_passed_a_check(tally: Tally) -> bool:
    """Whether the run passed a validate node, which could have judged its goal; that of a plan's step judges its own."""
    checks = (n for n, node in enumerate(tally.graph.nodes) if node.kind is NodeKind.VALIDATE and node.feed is None)
    return any(tally.state.place.visits[n] + tally.visits.count(n) for n in checks)


def _unjudged_criteria(tally: Tally, goal: Goal) -> Iterator[Problem]:
    """The goal's criteria, when nothing has judged them."""
    yield from _criteria_problems(tally, goal)
    for criterion in goal.criteria:
        if criterion.validator:
            yield Problem(ErrorCode.VALIDATION_RULE_FAILED, f"validator {criterion.validator} was never heard")
        if criterion.judge:
            yield Problem(ErrorCode.VALIDATION_SEMANTIC_FAILED, unjudged(criterion.name))


def _heard(tally: Tally) -> tuple[str, ...]:
    return (*tally.state.result.problems, *tally.problems)


def _problems(tally: Tally) -> Iterator[Problem]:
    if TESTS_FAILED in flags_now(tally):
        yield Problem(ErrorCode.VALIDATION_RULE_FAILED, "the last test run after a change failed")
    yield from _contract_problems(tally)
    yield from _choice_problems(tally)
    goal, task = tally.manifest.goal, deciding_task(tally.manifest)
    if goal is not None:
        yield from _goal_problems(tally, goal)
    if task is not None:
        yield from (Problem(ErrorCode.VALIDATION_SEMANTIC_FAILED, text) for text in ungrounded(tally, task))


def _contract_problems(tally: Tally) -> Iterator[Problem]:
    if tally.manifest.request.output.schema is not None and not tally.answer:
        yield Problem(ErrorCode.CONSTRAINT_JSON_INVALID, "output: there is no answer")
    if not tally.answer_violations:
        return
    code = code_of(tally.answer_violations)
    for violation in tally.answer_violations:
        yield Problem(code, f"output {violation.path or '/'}: {violation.message}")


def _choice_problems(tally: Tally) -> Iterator[Problem]:
    choice = tally.manifest.request.tool_choice
    if choice.mode is ToolChoiceMode.REQUIRED and not tally.state.calls.made:
        yield Problem(ErrorCode.VALIDATION_RULE_FAILED, "a tool call is required before answering")
    elif choice.mode is ToolChoiceMode.FUNCTION and all(
        call.tool != choice.function_name for call in tally.state.calls.made.values()
    ):
        yield Problem(ErrorCode.VALIDATION_RULE_FAILED, f"tool {choice.function_name} must be called before answering")


def _goal_problems(tally: Tally, goal: Goal) -> Iterator[Problem]:
    for action in goal.required_actions:
        times = times_committed(tally, action.tool)
        if times < action.times_min:
            text = f"required action {action.tool}: observed {times} of {action.times_min} times"
            if tally.state.derived.verifiers.get(action.tool, OBSERVED_ONLY) == "":
                text = f"required action {action.tool}: verified {times} of {action.times_min} times; it declares no `verify`"
            yield Problem(ErrorCode.VALIDATION_SEMANTIC_FAILED, text)


def _criteria_problems(tally: Tally, goal: Goal) -> Iterator[Problem]:
    for criterion in goal.criteria:
        if criterion.guard and not _is_true(criterion.guard, tally):
            yield Problem(ErrorCode.VALIDATION_RULE_FAILED, f"criterion {criterion.name} does not hold")


def _is_true(guard: str, tally: Tally) -> bool:
    program = parse_guard(guard)
    return condition_holds(program, view_of(tally, "", program.names)) is True
