"""Whether an answer may stand, by everything code can check about it."""

import pytest

from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.journal import rulings
from remit.core.limits.tools import ToolChoice, ToolChoiceMode
from remit.core.record import replace
from remit.core.run.contract import OutputContract, SystemRequest
from remit.core.run.messages import user_message
from remit.core.schema.json_schema import Violation
from remit.core.work.goal import FACTUAL, Criterion, Goal, RequiredAction, TaskClass
from remit.core.work.graph import Edge, Node, NodeKind
from remit.kernel.results.acceptance import GOAL_INVALID, check_goal
from remit.kernel.results.tasks import NEEDS_REVIEW
from remit.orchestrate.patterns.chat_graph import chat_graph
from tests.simulation.scenarios import hasty_graph
from tests.unit.kernel.builders import QUESTION, Run, in_line, manifest_of, wants

BROKEN = (Violation("/n", "type", "is not a number"),)
NO_JSON = (Violation("", "json", "expected value"),)


def with_goal(goal: Goal) -> Run:
    return Run(manifest_of(goal=goal))


def choosing(mode: ToolChoiceMode, function_name: str = "") -> Run:
    request = SystemRequest((user_message("please"),), tool_choice=ToolChoice(mode, function_name))
    return Run(manifest_of(request=request))


def test_an_answer_nobody_demands_anything_of_passes() -> None:
    run = Run()
    run.says("hello")
    assert run.path()[-2:] == ["check", "done"]


def test_an_answer_that_breaks_its_contract_is_sent_back() -> None:
    run = Run()
    run.says("{}", violations=BROKEN)
    assert run.last(rulings.CheckFailed).problems == ("output /n: is not a number",)
    assert run.path()[-1] == "think"
    run.says("7")
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.parametrize(
    ("violations", "code"),
    [(BROKEN, ErrorCode.CONSTRAINT_SCHEMA_INVALID), (NO_JSON, ErrorCode.CONSTRAINT_JSON_INVALID)],
)
def test_an_answer_that_cannot_be_repaired_fails_the_run(violations: tuple[Violation, ...], code: ErrorCode) -> None:
    run = Run(manifest_of(graph=chat_graph(repairs_max=1)))
    run.says("first", violations=violations)
    run.says("second", violations=violations)
    assert (run.state.end.ending, run.state.end.error) == (Ending.VALIDATION_FAIL, code)
    assert run.state.result.answer == "second"


def test_a_check_without_a_bound_sends_an_answer_back_as_often_as_the_model_may_try() -> None:
    think = Node("think", NodeKind.MODEL, visits_max=3)
    graph = in_line(think, Node("check", NodeKind.VALIDATE), edges=(Edge("check", "think", "repairable"),))
    run = Run(manifest_of(graph=graph))
    for _ in range(3):
        run.says("{}", violations=BROKEN)
    assert run.path() == ["think", "check"] * 3 + ["exhausted"]


@pytest.mark.req("3.23")
def test_a_required_tool_call_must_come_before_the_answer() -> None:
    run = choosing(ToolChoiceMode.REQUIRED)
    run.says("I know it anyway")
    assert run.last(rulings.CheckFailed).problems == ("a tool call is required before answering",)
    run.proposes(wants("look"))
    run.returns()
    run.says("now I know")
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.req("3.23")
def test_the_one_function_that_was_chosen_must_be_called_before_the_answer() -> None:
    run = choosing(ToolChoiceMode.FUNCTION, "look")
    run.says("I know it anyway")
    assert run.last(rulings.CheckFailed).problems == ("tool look must be called before answering",)
    run.proposes(wants("look"))
    run.returns()
    run.says("now I know")
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.req("3.23")
@pytest.mark.parametrize("mode", [ToolChoiceMode.AUTO, ToolChoiceMode.NONE])
def test_an_answer_without_tools_passes_where_none_is_demanded(mode: ToolChoiceMode) -> None:
    run = choosing(mode)
    run.says("hello")
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.req("4.9")
def test_a_required_action_counts_when_its_observation_was_committed() -> None:
    run = with_goal(Goal("look twice", required_actions=(RequiredAction("look", 2),)))
    run.proposes(wants("look", 1), wants("look", 2))
    run.returns()
    run.fails("look")
    run.says("looked twice")
    assert run.last(rulings.CheckFailed).problems == ("required action look: observed 1 of 2 times",)
    run.proposes(wants("look", 3))
    run.returns()
    run.says("looked twice")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_required_action_counts_in_the_turn_that_commits_it() -> None:
    run = with_goal(Goal("finish", required_actions=(RequiredAction("finish"),)))
    run.proposes(wants("finish"))
    run.returns("finish", "that is all", stop_loop=True)
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.req("4.35")
@pytest.mark.parametrize("task", sorted(FACTUAL - {TaskClass.ACCOUNT_STATUS}))
def test_a_fact_of_the_world_is_no_success_from_reasoning_alone(task: TaskClass) -> None:
    run = with_goal(Goal("tell me", task_class=task))
    run.says("42")
    assert run.path()[-1] == "think"
    run.proposes(wants("look"))
    run.returns()
    run.says("42")
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.req("4.35")
@pytest.mark.parametrize("task", [None, TaskClass.ESTIMATE, TaskClass.CREATIVE])
def test_what_needs_no_observation_may_be_answered_at_once(task: TaskClass | None) -> None:
    run = with_goal(Goal("tell me", task_class=task))
    run.says("about 42")
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.req("4.11")
def test_an_answer_that_claims_what_was_never_observed_ends_as_a_grounding_violation() -> None:
    run = with_goal(Goal("look", required_actions=(RequiredAction("look"),)))
    for _ in range(3):
        run.says("I looked")
    assert run.last(rulings.GroundingViolated).claims == ("required action look: observed 0 of 1 times",)
    assert (run.state.end.ending, run.state.end.error) == (Ending.VALIDATION_FAIL, ErrorCode.VALIDATION_SEMANTIC_FAILED)


@pytest.mark.req("4.9")
def test_a_criterion_that_holds_passes_and_one_that_does_not_is_named() -> None:
    goal = Goal("be short", (Criterion("short", guard="answer_bytes < 5"), Criterion("any", guard="visits > 0")))
    run = with_goal(goal)
    run.says("far too long")
    assert run.last(rulings.CheckFailed).problems == ("criterion short does not hold",)
    run.says("ok")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_criterion_that_cannot_be_decided_does_not_hold() -> None:
    run = with_goal(Goal("divide", (Criterion("odd", guard="10 / (visits - visits) > 1"),)))
    for _ in range(3):
        run.says("hello")
    assert (run.state.end.ending, run.state.end.error) == (Ending.VALIDATION_FAIL, ErrorCode.VALIDATION_RULE_FAILED)


def test_every_validator_is_heard_before_the_answer_is_judged() -> None:
    goal = Goal("be kind", (Criterion("polite", validator="polite"), Criterion("kind", validator="kind")))
    run = with_goal(goal)
    run.says("hello")
    run.validates("too loud")
    assert run.path()[-1] == "check"
    run.validates("too cold")
    assert run.last(rulings.CheckFailed).problems == ("too loud", "too cold")


def test_problems_of_an_answer_are_forgotten_when_it_is_sent_back() -> None:
    run = with_goal(Goal("be kind", (Criterion("polite", validator="polite"),)))
    run.says("hello")
    run.validates("too loud")
    run.says("hello again")
    run.validates()
    assert run.state.end.ending is Ending.SUCCESS


@pytest.mark.parametrize("criterion", [Criterion("empty"), Criterion("both", "visits > 0", "polite")])
def test_a_criterion_needs_a_guard_or_a_validator_and_not_both(criterion: Criterion) -> None:
    with pytest.raises(RequestRejected, match=GOAL_INVALID):
        check_goal(Goal("do it", (criterion,)))


def test_a_goal_whose_guard_cannot_be_read_is_refused_before_the_run_begins() -> None:
    with pytest.raises(RequestRejected, match="GUARD_UNREADABLE"):
        with_goal(Goal("do it", (Criterion("unreadable", guard="answer_bytes >"),)))


def test_a_goal_that_code_can_verify_is_taken() -> None:
    check_goal(Goal("do it", (Criterion("short", guard="answer_bytes < 5"), Criterion("polite", validator="polite"))))


def test_an_answer_that_ends_the_loop_is_not_blamed_for_the_one_before() -> None:
    run = Run()
    run.says("not json", violations=NO_JSON)
    run.proposes(wants("finish"))
    run.returns("finish", stop_loop=True)
    assert run.state.end.ending is Ending.SUCCESS


def test_an_answer_beside_calls_is_the_answer_in_the_same_turn() -> None:
    chat = chat_graph()
    graph = type(chat)("hasty", chat.start, chat.nodes, (Edge("act", "check", "refused"), *chat.edges), chat.exits)
    goal = Goal("say something", (Criterion("long enough", guard="answer_bytes > 3"),))
    run = Run(manifest_of(graph=graph, goal=goal))
    run.proposes(wants("nothing"), text="here you are")
    assert run.path()[-2:] == ["check", "done"]


def hasty(goal: Goal | None = None, request: SystemRequest = QUESTION) -> Run:
    """A run whose graph passes no validate node."""
    return Run(manifest_of(graph=in_line(Node("think", NodeKind.MODEL)), goal=goal, request=request))


@pytest.mark.parametrize(
    "goal",
    [
        Goal("look", required_actions=(RequiredAction("look"),)),
        Goal("know", task_class=TaskClass.CURRENT_FACT),
        Goal("be short", (Criterion("short", guard="answer_bytes < 2"),)),
        Goal("be polite", (Criterion("polite", validator="polite"),)),
    ],
)
def test_a_graph_without_a_check_earns_no_success_it_was_not_asked_to_prove(goal: Goal) -> None:
    run = hasty(goal)
    run.says("done")
    assert run.state.end.ending is Ending.VALIDATION_FAIL


def test_a_graph_without_a_check_succeeds_when_the_goal_is_met() -> None:
    run = hasty(Goal("be short", (Criterion("short", guard="answer_bytes < 9"),)))
    run.says("done")
    assert run.state.end.ending is Ending.SUCCESS


def test_a_graph_without_a_check_cannot_ask_for_a_review_and_ends_as_one_that_is_required() -> None:
    run = Run(manifest_of(graph=hasty_graph(), goal=Goal("advise", task_class=TaskClass.HIGH_STAKES)))
    run.proposes(wants("look"))
    run.returns()
    run.says("wait")
    assert (run.state.end.ending, run.state.end.message) == (Ending.REVIEW_REQUIRED, NEEDS_REVIEW)


def test_a_value_that_nothing_supports_sends_the_answer_back_and_the_next_is_judged_anew() -> None:
    run = with_goal(Goal("tell me", task_class=TaskClass.CURRENT_FACT))
    run.proposes(wants("look"))
    run.returns()
    run.says("it is 7", unsupported=("7",))
    assert run.path()[-1] == "think"
    assert (
        run.state.result.unsupported,
        run.last(rulings.CheckFailed).problems[0].startswith("the answer states '7'"),
    ) == (
        ("7",),
        True,
    )
    run.says("it is 8")
    assert (run.state.result.unsupported, run.state.end.ending) == ((), Ending.SUCCESS)


def test_no_answer_at_all_breaks_every_output_contract() -> None:
    request = replace(QUESTION, output=OutputContract(schema={"type": "object"}))
    run = Run(manifest_of(graph=in_line(Node("pass", NodeKind.DECIDE)), request=request))
    assert run.state.end.ending is Ending.VALIDATION_FAIL
    assert run.state.end.message == "output: there is no answer"


def test_an_output_contract_without_repair_makes_an_error_of_structure_final() -> None:
    request = replace(QUESTION, output=OutputContract(schema={"type": "object"}, repair_allowed=False))
    run = Run(manifest_of(request=request))
    run.says("not json", violations=(Violation("", "json", "expected value"),))
    assert run.state.end.ending is Ending.VALIDATION_FAIL
    assert run.state.end.error is ErrorCode.CONSTRAINT_JSON_INVALID


def test_an_enum_beside_another_violation_is_a_schema_that_was_not_kept() -> None:
    enum, most = Violation("/label", "enum", "is none of them"), Violation("/score", "maximum", "is too much")
    codes = []
    for violations in ((enum,), (enum, most)):
        run = Run(manifest_of(graph=chat_graph(repairs_max=0)))
        run.says("{}", violations=violations)
        codes.append(run.state.end.error)
    assert codes == [ErrorCode.CONSTRAINT_ENUM_UNRECOGNIZED, ErrorCode.CONSTRAINT_SCHEMA_INVALID]
