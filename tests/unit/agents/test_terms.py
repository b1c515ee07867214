"""What an agent is made of, as its maker names or hands it over: the boundary, by name, file or record."""

import asyncio
from dataclasses import replace as replace_parts
from pathlib import Path
from typing import Any

import pytest

from remit import AgentLoop, SpecializedLoop
from remit.agents.terms import judging_by, terms_of
from remit.assemble import opened_system, settings_of, system_in_memory
from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.profiles import PROCUREMENT
from remit.core.record import JsonObject, replace
from remit.core.run.contract import ConfidenceSource, SystemResponse
from remit.core.run.inference import ModelInfo, Routing
from remit.core.work.candidate import ScoreMaker
from remit.core.work.goal import Criterion, Goal
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.state import pinned
from remit.observe.views.execution import execution_context
from remit.orchestrate.loop.needs import RUN_PARTS_MISSING
from remit.orchestrate.setup.answer_rules import JUDGE_NAME_TAKEN
from remit.orchestrate.setup.kit import engine_kit
from remit.validate.check import RULES_INVALID, compile_rules
from remit.validate.rule_set import Length, MustMention, RetryPolicy, Rule, RuleSet, SemanticCheck, Severity
from tests.unit.orchestrate.house import in_memory, until
from tests.unit.orchestrate.stage import play


def bounds(said: Boundary | Path | str) -> Boundary:
    return terms_of(said, Budget(), Routing.NONE).boundary


def test_an_agent_takes_a_boundary_as_a_record_by_name_or_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nextends: procurement\nbudget: {steps: 3}\n")
    mine = Boundary(name="mine")
    assert bounds(mine) is mine
    assert bounds("procurement") is PROCUREMENT
    assert bounds(path) == bounds(str(path))
    assert (bounds(path).name, bounds(path).budget.steps) == ("mine", 3)


def test_a_boundary_that_cannot_be_used_is_refused_when_the_agent_is_made(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("name: mine\nbugdet: {}\n")
    with pytest.raises(RequestRejected, match="did you mean 'budget'"):
        bounds(path)
    with pytest.raises(RequestRejected, match="is unknown; use one of standard"):
        bounds("nobody")


POLITE = Rule("polite", MustMention(("please",)))
BRIEF = Rule("brief", Length(chars_max=30), severity=Severity.WARN)
KIND = SemanticCheck("kind", "Is the answer kind?")
RUDE: JsonObject = {"text": "Wait."}
GOOD: JsonObject = {"text": "Wait, please."}
HOLDS: JsonObject = {"text": '{"holds": true, "problems": []}'}
OBJECTS: JsonObject = {"text": '{"holds": false, "problems": ["it is curt"]}'}


class Judge(ScriptedEngine):
    """A judge with a name of its own."""

    def model_info(self) -> ModelInfo:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return replace(super().model_info(), name="judge")


def asked(rules: RuleSet, *replies: JsonObject, judge: tuple[JsonObject, ...] = (), **terms: Any) -> SystemResponse:
    engine = Judge(judge) if judge else None
    agent = AgentLoop(ScriptedEngine(replies), rules=rules, judge=engine, system=system_in_memory(), **terms)
    return play(agent.chat("How long will it take?"))


@pytest.mark.req("0.18")
def test_an_answer_that_breaks_a_rule_is_asked_for_again_with_the_breach() -> None:
    response = asked(RuleSet("desk", (POLITE,)), RUDE, GOOD)

    assert (response.terminal_code, response.content) == (Ending.SUCCESS, "Wait, please.")
    assert response.validation is not None
    assert response.validation.repair_attempts == 1


@pytest.mark.req("0.8")
def test_the_share_of_rules_that_the_answer_keeps_is_its_confidence() -> None:
    response = asked(
        RuleSet("desk", (POLITE, BRIEF)), RUDE, {"text": "Wait, please, for it will take a good while yet."}
    )

    assert (response.confidence, response.confidence_source) == (0.5, ConfidenceSource.VALIDATION)


def test_an_answer_that_never_keeps_its_rules_fails_with_what_is_wrong() -> None:
    response = asked(RuleSet("desk", (POLITE,), retry=RetryPolicy(reasks_max=1)), RUDE, RUDE, GOOD)

    assert response.terminal_code is Ending.VALIDATION_FAIL
    assert response.error is not None
    assert response.error.code == ErrorCode.VALIDATION_RULE_FAILED
    assert "polite" in response.error.message


def test_a_rule_that_is_final_is_not_worth_another_attempt() -> None:
    response = asked(RuleSet("desk", (POLITE,), retry=RetryPolicy(final_rules=("polite",))), RUDE, GOOD)

    assert response.terminal_code is Ending.VALIDATION_FAIL


def test_a_broken_rule_that_only_warns_lets_the_answer_pass_and_is_told() -> None:
    response = asked(RuleSet("desk", (BRIEF,)), {"text": "It will take about three or four weeks, I am afraid."})

    assert response.terminal_code is Ending.SUCCESS
    assert any("brief" in warning for warning in response.warnings)


def test_a_judge_that_objects_sends_the_answer_back_with_its_objection() -> None:
    system = system_in_memory()
    # What a judge is asked differs with the answer, so each verdict is the first reply to a conversation of its own.
    judge = Judge(({**OBJECTS, "when": "Wait\\.\n"}, HOLDS))
    rules = RuleSet("desk", semantic=(KIND,))
    agent = AgentLoop(ScriptedEngine((RUDE, GOOD)), rules=rules, judge=judge, system=system)
    response = play(agent.chat("How long will it take?"))
    state = play(system.state_of(response.run_id))

    assert response.content == "Wait, please."
    assert [child.node for child in state.children.ended] == ["check", "check"]
    assert any("it is curt" in str(entry.content) for entry in state.talk.context if hasattr(entry, "content"))


def test_a_judge_works_on_its_own_engine_and_is_paid_by_the_run() -> None:
    system = system_in_memory()
    rules = RuleSet("desk", semantic=(KIND,))
    agent = AgentLoop(ScriptedEngine((GOOD,)), rules=rules, judge=Judge((HOLDS,)), system=system)
    response = play(agent.chat("How long will it take?"))
    child = play(system.state_of(*play(system.state_of(response.run_id)).children.runs.values()))

    assert pinned(child).models[0].name == "judge"
    assert response.token_usage.prompt_tokens > child.talk.prompt_tokens > 0


def test_without_a_judge_of_its_own_the_answering_model_is_asked() -> None:
    rules = RuleSet("desk", semantic=(KIND,))
    response = asked(rules, {**HOLDS, "when": "Question:"}, GOOD)

    assert response.terminal_code is Ending.SUCCESS


def test_an_answer_that_a_judge_never_accepts_fails_as_a_question_of_meaning() -> None:
    rules = RuleSet("desk", semantic=(KIND,), retry=RetryPolicy(reasks_max=0))
    response = asked(rules, GOOD, judge=(OBJECTS,))

    assert response.error is not None
    assert response.error.code == ErrorCode.VALIDATION_SEMANTIC_FAILED


def test_a_judge_that_only_warns_lets_the_answer_pass() -> None:
    rules = RuleSet("desk", semantic=(replace(KIND, severity=Severity.WARN),))
    response = asked(rules, GOOD, judge=(OBJECTS,))

    assert response.terminal_code is Ending.SUCCESS
    assert any("it is curt" in warning for warning in response.warnings)


def test_a_judge_who_gives_no_verdict_has_objected() -> None:
    rules = RuleSet("desk", semantic=(KIND,), retry=RetryPolicy(reasks_max=0))
    response = asked(rules, GOOD, judge=({"text": "Fine by me!"},))

    assert response.terminal_code is Ending.VALIDATION_FAIL


def test_judges_without_budget_end_the_run_and_are_not_skipped() -> None:
    response = asked(RuleSet("desk", semantic=(KIND,)), GOOD, judge=(HOLDS,), budget=Budget(child_runs=0))

    assert response.terminal_code is Ending.BUDGET_EXHAUSTED


def test_a_structured_answer_keeps_rules_too() -> None:
    schema = {"type": "object", "properties": {"say": {"type": "string"}}, "required": ["say"]}
    replies = ({"text": '{"say":"Wait."}'}, {"text": '{"say":"Wait, please."}'})
    rules = compile_rules(RuleSet("desk", (POLITE,)))
    loop = SpecializedLoop(ScriptedEngine(replies), schema=schema, rules=rules, system=system_in_memory())

    assert play(loop.call("How long?")).structured_output == {"say": "Wait, please."}


def test_rules_join_a_goal_that_is_there_already() -> None:
    judging = judging_by(RuleSet("desk", (POLITE,)), None, ScriptedEngine((GOOD,)))
    agent = AgentLoop(
        ScriptedEngine((RUDE,)),
        rules=RuleSet("desk", (POLITE,)),
        goal=Goal("answer", (Criterion("said something", guard="answer_bytes > 0"),)),
        system=system_in_memory(),
    )
    assert [criterion.name for criterion in judging.criteria] == ["rules:desk"]
    assert play(agent.chat("Well?")).terminal_code is Ending.VALIDATION_FAIL


def test_a_judge_without_rules_and_too_many_attempts_are_refused() -> None:
    with pytest.raises(RequestRejected) as judge_alone:
        judging_by(None, Judge((GOOD,)), ScriptedEngine((GOOD,)))
    with pytest.raises(RequestRejected) as patient:
        judging_by(RuleSet("desk", (POLITE,), retry=RetryPolicy(reasks_max=101)), None, ScriptedEngine((GOOD,)))

    assert judge_alone.value.code == patient.value.code == RULES_INVALID
    assert judging_by(None, None, ScriptedEngine((GOOD,))).criteria == ()


@pytest.mark.parametrize(("verdict", "score"), [(HOLDS, 1.0), (OBJECTS, 0.0)])
def test_an_answer_that_was_judged_is_a_candidate_with_the_judges_score(verdict: JsonObject, score: float) -> None:
    system = system_in_memory()
    rules = RuleSet("desk", semantic=(KIND,), retry=RetryPolicy(reasks_max=0))
    agent = AgentLoop(ScriptedEngine((GOOD,)), rules=rules, judge=Judge((verdict,)), system=system)
    run_id = play(agent.chat("How long will it take?")).run_id

    (candidate,) = execution_context(play(system.state_of(run_id))).candidates
    assert (candidate.content, candidate.scored_by, candidate.score) == ("Wait, please.", ScoreMaker.JUDGE, score)
    assert candidate.metadata == {"judges": ["kind"]}


def test_a_judge_that_could_not_be_told_from_the_agent_is_refused() -> None:
    agent = ScriptedEngine((GOOD,))
    rules = RuleSet("desk", semantic=(KIND,))
    with pytest.raises(RequestRejected) as refused:
        AgentLoop(agent, rules=rules, judge=ScriptedEngine((HOLDS,)), system=system_in_memory())

    assert refused.value.code == JUDGE_NAME_TAKEN
    assert judging_by(rules, agent, agent).judge is agent


def test_what_remains_of_a_failure_is_told_to_people_and_to_programs() -> None:
    rules = RuleSet("desk", (POLITE,), semantic=(KIND,), retry=RetryPolicy(reasks_max=0))
    response = asked(rules, RUDE, judge=(OBJECTS,))

    assert response.validation is not None
    assert (response.validation.checks_passed, response.validation.checks_failed) == (0, 2)
    assert any("polite" in text for text in response.validation.violations)
    assert any("it is curt" in text for text in response.validation.violations)
    assert response.error is not None
    assert len(response.error.details["problems"]) == 2


@pytest.mark.parametrize("question", ["", "  ", 3])
def test_a_judge_is_never_asked_nothing(question: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        judging_by(RuleSet("desk", semantic=(SemanticCheck("kind", question),)), None, ScriptedEngine([GOOD]))
    assert refused.value.code == RULES_INVALID
    wanted = "give it a question in words" if isinstance(question, str) else "it takes str"
    assert wanted in refused.value.message


def test_a_run_with_rules_is_not_resumed_without_them_and_goes_on_with_them(tmp_path: Path) -> None:
    desk = RuleSet("desk", (POLITE,))

    async def story() -> None:
        async with opened_system(settings_of(home=tmp_path)) as system:
            agent = AgentLoop(ScriptedEngine([{**GOOD, "delay_ms": 20_000}]), rules=desk, system=system)
            task = asyncio.create_task(agent.chat("How long?"))

            async def is_begun() -> bool:
                return len(await system.archive.runs()) == 1

            await until(is_begun)
            run_id = (await system.archive.runs())[0].run_id
        await asyncio.gather(task, return_exceptions=True)
        async with opened_system(settings_of(home=tmp_path)) as system:
            engine = ScriptedEngine([GOOD])
            kit = engine_kit(engine)
            with pytest.raises(RequestRejected) as refused:
                await system.resume(run_id, kit=kit)
            assert refused.value.code == RUN_PARTS_MISSING
            assert refused.value.details["missing"] == ["code 'rules:desk'"]
            assert (await system.state_of(run_id)).end.ending is None
            ruled = replace_parts(kit, code=judging_by(desk, None, engine).code)
            assert (await system.resume(run_id, kit=ruled)).terminal_code is Ending.SUCCESS

    play(story())


@pytest.mark.req("0.19")
def test_an_answer_that_was_sent_back_stays_the_last_error_of_a_run_that_succeeds() -> None:
    async def errors() -> list[tuple[int, str]]:
        found = []
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        async with in_memory() as system:
            loop = SpecializedLoop(
                ScriptedEngine([{"text": "no json"}, {"text": '{"n": 1}'}]), schema=schema, system=system
            )
            agent = AgentLoop(ScriptedEngine((RUDE, GOOD)), rules=RuleSet("desk", (POLITE,)), system=system)
            for said in (await loop.call("how many?"), await agent.chat("how long?")):
                assert said.terminal_code is Ending.SUCCESS
                state = (await system.execution(said.run_id)).state
                assert state.last_error is not None
                found.append((state.attempt, state.last_error.code))
        return found

    assert play(errors()) == [(2, ErrorCode.CONSTRAINT_JSON_INVALID), (2, ErrorCode.VALIDATION_RULE_FAILED)]
