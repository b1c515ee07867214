"""What each mode tells its caller, end to end: these fields of the response, and no others."""

from collections.abc import Callable, Iterator, Sequence

import pytest

from remit import AgentLoop, SpecializedLoop
from remit.context.evidence_message import ContextBuilder
from remit.context.fts import Document, DocumentIndex
from remit.core.failure import Ending
from remit.core.record import JsonObject
from remit.core.run.contract import ConfidenceSource, Mode, OutputContract, SystemRequest, SystemResponse
from remit.core.run.messages import user_message
from remit.core.work.candidate import ScoreMaker
from remit.core.work.goal import Criterion, Goal
from remit.core.work.plan import Step
from remit.inference.scripted.engine import ScriptedEngine
from remit.observe.views.execution import execution_context, execution_state
from remit.orchestrate.patterns.handlers import ValidateHandler
from remit.orchestrate.setup.kit import Kit, Terms
from remit.tool.registry import Registry
from remit.validate.check import Report, compile_rules
from remit.validate.rule_set import Length, MustMention, Rule, RuleSet, Severity
from tests.unit.observe.patterned import BAD, FAILS, GOOD, MIXED, SCHEMA, planned, voted
from tests.unit.orchestrate.house import calls, in_memory, look
from tests.unit.orchestrate.stage import play

REACHES = [ConfidenceSource]

FIELDS = (
    "content",
    "structured_output",
    "tool_calls_made",
    "confidence",
    "confidence_source",
    "validation",
    "token_usage",
)


def told(response: SystemResponse) -> set[str]:
    """The fields of a response that say something."""
    nothing = SystemResponse("", "", "")
    return {field for field in FIELDS if getattr(response, field) != getattr(nothing, field)}


def chatted(*replies: JsonObject) -> SystemResponse:
    async def ask() -> SystemResponse:
        async with in_memory() as system, AgentLoop(ScriptedEngine(replies), tools=[look], system=system) as loop:
            return await loop.chat("please")

    return play(ask())


def structured(*replies: JsonObject) -> SystemResponse:
    async def ask() -> SystemResponse:
        async with in_memory() as system:
            return await SpecializedLoop(ScriptedEngine(replies), schema=SCHEMA, system=system).call("please")

    return play(ask())


def plan_with_a_tool() -> SystemResponse:
    return planned(Step("answer", "infer"), Step("look", "tool", {"at": "x"}, tool="look")).response


@pytest.mark.req("0.13", "0.14")
@pytest.mark.parametrize(
    ("run", "fields"),
    [
        (
            lambda: chatted(calls("look", at="x"), {"text": "Seen."}),
            {"content", "tool_calls_made", "token_usage"},
        ),
        (
            lambda: structured({"text": GOOD}),
            {"content", "structured_output", "validation", "token_usage"},
        ),
        (plan_with_a_tool, {"content", "structured_output", "tool_calls_made", "token_usage"}),
        (
            lambda: voted(GOOD).response,
            {"content", "structured_output", "confidence", "confidence_source", "token_usage"},
        ),
    ],
    ids=[mode.value for mode in (Mode.CHAT, Mode.STRUCTURED, Mode.PLAN, Mode.REDUNDANT)],
)
def test_a_mode_populates_its_own_fields_and_no_others(run: Callable[[], SystemResponse], fields: set[str]) -> None:
    response = run()
    assert response.terminal_code is Ending.SUCCESS
    assert told(response) == fields


@pytest.mark.req("0.14")
def test_the_structured_output_of_a_plan_is_that_of_each_step() -> None:
    assert plan_with_a_tool().structured_output == {"answer": "It is 72 m tall.", "look": "seen x"}


@pytest.mark.req("0.7")
def test_a_plan_that_failed_still_has_what_was_finished() -> None:
    response = planned(Step("answer", "infer"), Step("boom", "break")).response
    assert response.error is not None
    assert (response.content, response.structured_output) == ("It is 72 m tall.", {"answer": "It is 72 m tall."})


# Confidence, and where it comes from.


@pytest.mark.req("0.8", "2.28")
def test_the_confidence_of_a_vote_is_the_share_that_agrees() -> None:
    response = voted(GOOD, BAD, GOOD).response
    assert response.confidence == pytest.approx(2 / 3, abs=1e-6)
    assert response.confidence_source is ConfidenceSource.VOTING


RULES = compile_rules(
    RuleSet(
        name="mood",
        rules=(
            Rule("short", Length(chars_max=40)),
            Rule("kind", MustMention(("kind",)), severity=Severity.WARN),
            Rule("good", MustMention(("good",))),
        ),
    )
)


def checked(*replies: str, goal: Goal) -> SystemResponse:
    """A structured run whose goal is judged by the rules, which count."""

    def judge(text: str) -> Report:
        return RULES.check(text)

    async def ask() -> SystemResponse:
        async with in_memory() as system:
            engine = ScriptedEngine([{"text": reply} for reply in replies])
            kit = Kit({"scripted": engine}, Registry(()), {"mood": judge})
            request = SystemRequest((user_message("please"),), Mode.STRUCTURED, output=OutputContract(schema=SCHEMA))
            return await system.run(request, kit, Terms(goal=goal))

    return play(ask())


GOAL = Goal("be good", criteria=(Criterion("mood", validator="mood"),))


@pytest.mark.req("0.4", "0.8")
def test_the_confidence_of_checks_is_the_share_that_passed() -> None:
    response = checked(GOOD, goal=GOAL)
    assert response.terminal_code is Ending.SUCCESS
    assert response.confidence == pytest.approx(2 / 3)
    assert response.confidence_source is ConfidenceSource.VALIDATION
    assert response.validation is not None
    assert (response.validation.checks_passed, response.validation.checks_failed) == (3, 1)
    assert (response.validation.repair_attempts, response.validation.violations) == (0, ())


@pytest.mark.req("0.8")
def test_a_plan_whose_validate_step_counts_is_as_sure_as_its_checks() -> None:
    ran = planned(Step("answer", "infer"), Step("judge", "validate"), replies=["It is good."], check=RULES.check)
    assert ran.response.confidence == pytest.approx(2 / 3)
    assert ran.response.confidence_source is ConfidenceSource.VALIDATION
    assert ran.response.validation is not None
    assert ran.response.validation.checks_failed == 1


@pytest.mark.req("0.4", "0.18")
def test_a_validation_counts_repairs_and_says_what_remains() -> None:
    response = checked(BAD, goal=GOAL)
    assert response.terminal_code is Ending.VALIDATION_FAIL
    assert response.validation is not None
    assert response.validation.repair_attempts == 2
    assert response.validation.checks_failed == 2
    assert len(response.validation.violations) == 1
    assert "good" in response.validation.violations[0]


@pytest.mark.req("0.4")
def test_an_output_that_was_repaired_leaves_no_violation() -> None:
    response = structured({"text": '{"mood": 3}'}, {"text": GOOD})
    assert response.validation is not None
    assert (response.validation.checks_passed, response.validation.checks_failed) == (1, 0)
    assert (response.validation.repair_attempts, response.validation.violations) == (1, ())


def asked_with(index: DocumentIndex, question: str) -> SystemResponse:
    async def ask() -> SystemResponse:
        async with in_memory() as system:
            provider = ContextBuilder(index)
            engine = ScriptedEngine([{"text": "It is tall."}])
            async with AgentLoop(engine, context_provider=provider, system=system) as loop:
                return await loop.chat(question)

    return play(ask())


@pytest.fixture
def index() -> Iterator[DocumentIndex]:
    """One document about a tower."""
    with DocumentIndex() as made:
        made.add([Document("tower.txt", "The tower of the town hall is 72 m tall.")])
        yield made


@pytest.mark.req("0.8")
def test_the_confidence_of_evidence_is_the_relevance_of_the_best_of_it(index: DocumentIndex) -> None:
    response = asked_with(index, "How tall is the tower?")
    assert response.confidence_source is ConfidenceSource.RETRIEVAL
    assert response.confidence is not None
    assert 0.0 < response.confidence <= 1.0


@pytest.mark.req("0.8")
def test_nothing_found_speaks_for_nothing(index: DocumentIndex) -> None:
    response = asked_with(index, "zebra")
    assert (response.confidence, response.confidence_source) == (0.0, ConfidenceSource.RETRIEVAL)


# ExecutionState and ExecutionContext.


@pytest.mark.req("0.19")
def test_a_plan_counts_its_own_steps_and_names_the_one_finished_last() -> None:
    state = execution_state(planned(Step("find", "find"), Step("size", "count")).state)
    assert (state.total_steps, state.last_step, state.attempt) == (2, "size", 1)


@pytest.mark.req("0.18", "0.19")
def test_a_step_that_is_done_again_is_another_attempt_and_the_step_finished_last() -> None:
    said: list[str] = []

    def once(text: str) -> Sequence[str]:
        said.append(text)
        return ("again",) if len(said) == 1 else ()

    ran = planned(
        Step("answer", "infer"),
        Step("first", "validate"),
        Step("judge", "doubt", retries=1),
        Step("boom", "break"),
        check=lambda text: None,
        more={"doubt": ValidateHandler(once)},
    )
    state = execution_state(ran.state)
    assert state.last_error is not None
    assert (state.attempt, state.total_steps) == (2, 3)
    assert state.last_step == "judge"


@pytest.mark.req("0.19")
def test_a_step_that_was_tried_again_is_another_attempt() -> None:
    tried: list[int] = []

    def at_last(step: Step) -> str:
        tried.append(1)
        if len(tried) < 3:
            raise ValueError("not yet")
        return "done"

    ran = planned(Step("hard", "hard", "x", retries=2), more={"hard": at_last})
    assert (ran.response.terminal_code, execution_state(ran.state).attempt) == (Ending.SUCCESS, 3)


@pytest.mark.req("0.19")
def test_a_vote_replaces_retrying_and_stands_at_a_node() -> None:
    state = execution_state(voted(GOOD, FAILS, GOOD).state)
    assert (state.attempt, state.last_step) == (1, "done")


@pytest.mark.req("0.20")
def test_the_candidates_of_a_vote_are_the_answers_with_the_share_of_the_winner() -> None:
    ran = voted(BAD, GOOD, FAILS, GOOD, n=4)
    found = execution_context(ran.state).candidates
    assert [candidate.content for candidate in found] == [BAD, GOOD, GOOD]
    assert [candidate.metadata["replica"] for candidate in found] == [1, 2, 4]
    assert [candidate.score for candidate in found] == [0.0, pytest.approx(2 / 3, abs=1e-6), found[1].score]
    assert {candidate.scored_by for candidate in found} == {ScoreMaker.VOTE}
    assert all(candidate.source in ran.children for candidate in found)


@pytest.mark.req("0.20")
def test_candidates_of_a_vote_without_a_winner_have_no_share() -> None:
    found = execution_context(voted(GOOD, BAD, MIXED, voting="unanimity").state).candidates
    assert [candidate.score for candidate in found] == [0.0, 0.0, 0.0]


@pytest.mark.req("0.20")
def test_the_candidates_of_a_plan_are_the_evidence_found_last() -> None:
    ran = planned(Step("find", "find"), Step("order", "rerank"), Step("size", "count", "x"))
    assert [candidate.source for candidate in execution_context(ran.state).candidates] == ["doc 3", "doc 2", "doc 1"]
    assert execution_context(planned(Step("size", "count")).state).candidates == ()


def test_an_answer_that_had_to_be_repaired_says_so() -> None:
    response = structured({"text": f"Sure: {GOOD[:-1]},}}"})
    assert response.validation is not None
    assert response.validation.repair_attempts == 1
    assert any(warning.startswith("the output was repaired: ") for warning in response.warnings)


def test_a_failure_tells_programs_the_path_of_every_violation() -> None:
    response = structured({"text": '{"mood": 3}'})
    assert response.error is not None
    assert response.error.details["violations"][0]["path"] == "/mood"
