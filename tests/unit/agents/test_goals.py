"""Goals as a caller sees them: what grounds an answer, who reviews it, what only warns, and what cannot be done."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from remit import (
    AgentLoop,
    Boundary,
    Budget,
    PlanExecutor,
    RedundantLoop,
    SpecializedLoop,
    Step,
    SystemRequest,
    SystemResponse,
)
from remit import tool as declare
from remit.assemble import system_in_memory
from remit.core.failure import Ending, ErrorCode, RequestRejected
from remit.core.limits.boundary import BoundaryMode, TaskRule
from remit.core.limits.tool_trust import Reads, Trust
from remit.core.limits.tools import TOOLS_DISALLOWED, Effect, ToolCategory, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import BlobRef, JsonObject
from remit.core.run.contract import CallStatus
from remit.core.run.messages import Message, system_message, user_message
from remit.core.work.goal import (
    FACTUAL,
    GROUNDS,
    Goal,
    RequiredAction,
    Task,
    TaskClass,
    TaskSource,
    can_ground,
    computes,
)
from remit.core.work.plan import StepType
from remit.inference.scripted.engine import ScriptedEngine
from remit.kernel.results.acceptance import GOAL_INVALID
from remit.kernel.results.tasks import task_of
from remit.kernel.state import pinned
from remit.observe.views.sentence import said_task, sentence
from remit.orchestrate.facts.answer_evidence import inline, long_evidence, unsupported_in
from remit.orchestrate.history.replay import AuditVerdict, audit, kept_texts
from remit.orchestrate.setup.kit import Terms, engine_kit
from remit.tool.builtin.calculator import calculator_tool
from remit.tool.builtin.world_clock import clock_tool
from remit.tool.declare.decorator import Tool
from remit.tool.registry import Registry
from tests.unit.kernel.builders import Run, manifest_of, wants
from tests.unit.orchestrate.house import Listening, calls, helper, in_memory
from tests.unit.orchestrate.stage import play

NEEDS = [task for task in TaskClass if task not in (TaskClass.ESTIMATE, TaskClass.CREATIVE)]
LONG = "noise " * 500


@declare(effect="read", category="database")
def account(user: str = "ada") -> dict[str, Any]:
    """Look an account up."""
    return {"user": user, "status": "suspended", "balance_cents": 5900, "note": LONG}


@declare(effect="read")
def look() -> str:
    """Look at something."""
    return "seen 7"


@declare(effect="write", permissions=["ledger.write"])
def book(text: str) -> dict[str, str]:
    """Book something."""
    return {"text": text}


def gone() -> bool:
    return False


@declare(effect="read", available=gone)
def broken() -> str:
    """Be away."""
    return "never"


TOOLS: Sequence[Tool] = (account, look, book, broken, clock_tool(), calculator_tool(), helper)


def asked(*replies: JsonObject, words: str = "please", **terms: Any) -> SystemResponse:
    async def story() -> SystemResponse:
        async with in_memory() as system:
            return await AgentLoop(ScriptedEngine(replies), tools=TOOLS, system=system, **terms).chat(words)

    return play(story())


def of_class(task: TaskClass, **more: Any) -> Goal:
    return Goal("tell me", task_class=task, **more)


@pytest.mark.req("4.35")
@pytest.mark.parametrize("task", sorted(FACTUAL))
def test_an_unrelated_look_up_does_not_ground_an_answer(task: TaskClass) -> None:
    said = asked(calls("clock"), {"text": "All is well."}, {"text": "Yes."}, {"text": "Yes."}, goal=of_class(task))
    is_grounded = task in (TaskClass.CURRENT_FACT, TaskClass.TOOL_RESULT)
    assert (said.terminal_code is Ending.SUCCESS) is is_grounded
    if not is_grounded:
        assert said.error is not None
        assert said.error.code == ErrorCode.VALIDATION_SEMANTIC_FAILED
        assert all(category in said.error.message for category in GROUNDS[task])


@pytest.mark.req("4.35")
def test_an_account_is_told_by_its_database() -> None:
    said = asked(calls("account"), {"text": "All is well."}, goal=of_class(TaskClass.ACCOUNT_STATUS))
    assert said.terminal_code is Ending.SUCCESS


@pytest.mark.req("4.35")
def test_categories_that_a_goal_names_take_the_place_of_those_of_the_class() -> None:
    goal = of_class(TaskClass.ACCOUNT_STATUS, grounds=(ToolCategory.READ_ONLY_LOOKUP,))
    assert asked(calls("clock"), {"text": "Fine."}, goal=goal).terminal_code is Ending.SUCCESS
    for name in ("account", "look"):
        replies = (calls(name), *({"text": "Fine."},) * 3)
        assert asked(*replies, goal=goal).terminal_code is Ending.VALIDATION_FAIL


def definition(category: ToolCategory | None, effect: Effect = Effect.READ, **more: Any) -> ToolDefinition:
    return ToolDefinition("t", "", {"type": "object"}, effect=effect, category=category, **more)


@pytest.mark.req("4.35")
@pytest.mark.parametrize("task", TaskClass)
def test_each_class_is_bound_to_the_categories_that_can_tell_it(task: TaskClass) -> None:
    said = Task(task, TaskSource.CALLER)
    told_by = {category for category in ToolCategory if can_ground(definition(category), said)}
    assert told_by == GROUNDS[task]
    assert can_ground(definition(None), said)
    assert can_ground(definition(None, Effect.WRITE), said) is (task is TaskClass.TOOL_RESULT)
    computed = task in (TaskClass.EXACT_CALCULATION, TaskClass.TOOL_RESULT)
    assert can_ground(definition(None, Effect.NONE), said) is computed
    assert not can_ground(definition(None, delegates=True), said)
    assert not can_ground(definition(None, Effect.NONE, asks_under=Ending.MISSING_INFO), said)


def test_what_everybody_may_know_tells_nothing_of_an_account() -> None:
    task, public = Task(TaskClass.ACCOUNT_STATUS, TaskSource.CALLER), Trust(reads=Reads.PUBLIC)
    assert not can_ground(definition(ToolCategory.LIVE_API, trust=public), task)
    assert can_ground(definition(ToolCategory.DATABASE, trust=public), task)
    assert computes(definition(ToolCategory.SANDBOX))
    assert computes(definition(None, Effect.NONE))
    assert not computes(definition(None))


@pytest.mark.req("4.35")
def test_an_answer_that_contradicts_what_was_observed_is_sent_back_and_then_fails() -> None:
    lies = ({"text": "Your balance is 7,000,000."},) * 3
    said = asked(calls("account"), *lies, goal=of_class(TaskClass.ACCOUNT_STATUS))
    assert said.terminal_code is Ending.VALIDATION_FAIL
    assert said.error is not None
    assert "'7,000,000'" in said.error.message
    assert said.validation is not None
    assert said.validation.repair_attempts == 2


@pytest.mark.req("4.35")
def test_an_answer_that_is_corrected_passes_and_what_was_quoted_to_it_proves_nothing() -> None:
    lie, truth = {"text": "Your account is active."}, {"text": "It is suspended, with 59.00 EUR on it."}
    goal = of_class(TaskClass.ACCOUNT_STATUS)
    said = asked(calls("account"), lie, truth, goal=goal, words="Is my account active?")
    assert (said.terminal_code, said.warnings) == (Ending.SUCCESS, ())
    assert asked(calls("account"), lie, lie, lie, goal=goal).terminal_code is Ending.VALIDATION_FAIL


@pytest.mark.req("4.35")
def test_what_was_computed_of_observations_supports_an_answer_and_alone_it_grounds_none() -> None:
    goal = of_class(TaskClass.ACCOUNT_STATUS)
    sums = calls("calculator", expression="5900 * 3")
    said = asked(calls("account"), sums, {"text": "Three times that is 17,700 cents."}, goal=goal)
    assert said.terminal_code is Ending.SUCCESS
    alone = asked(sums, *({"text": "It is 17,700."},) * 3, goal=goal)
    assert alone.terminal_code is Ending.VALIDATION_FAIL


@pytest.mark.req("4.8", "4.35")
def test_an_inferred_class_only_warns_and_is_told() -> None:
    async def story() -> None:
        async with in_memory() as system:
            loop = AgentLoop(ScriptedEngine([{"text": "It is 12."}]), tools=TOOLS, system=system)
            said = await loop.chat("What is my balance?")
            assert said.terminal_code is Ending.SUCCESS
            (warning,) = said.warnings
            assert "taken for a task of class account_status ('What is my balance')" in warning
            state = await system.state_of(said.run_id)
            assert pinned(state).task == Task(
                TaskClass.ACCOUNT_STATUS, TaskSource.INFERRED, "What is my balance", grounds=()
            )
            told = sentence((await system.archive.told(said.run_id)).explanation)
            assert "a task of class account_status (inferred from 'What is my balance'; it only warns)" in told
            assert "was warned of (taken for" in told

    play(story())


@pytest.mark.req("4.8")
def test_an_inferred_class_that_was_grounded_warns_of_nothing_but_a_contradiction() -> None:
    words = "What is my balance?"
    assert asked(calls("account"), {"text": "It is 59.00."}, words=words).warnings == ()
    said = asked(calls("account"), {"text": "It is 77.00."}, words=words)
    assert said.terminal_code is Ending.SUCCESS
    assert "'77.00'" in said.warnings[0]
    assert asked({"text": "Hello to you."}, words="Hello?").warnings == ()
    assert asked({"text": "Roses are red, 99."}, words="Write a poem").warnings == ()


@pytest.mark.req("4.8")
def test_grounds_of_a_goal_hold_for_an_inferred_class_too() -> None:
    goal = Goal("tell me", grounds=(ToolCategory.PAYMENT,))
    said = asked(calls("account"), {"text": "It is 59.00."}, words="What is my balance?", goal=goal)
    assert "(payment)" in said.warnings[0]


@pytest.mark.req("4.8")
def test_an_inferred_task_of_high_stakes_warns_that_nobody_has_reviewed_it() -> None:
    said = asked(calls("look"), {"text": "I would wait."}, words="Should I invest in bonds?")
    assert (said.terminal_code, len(said.warnings)) == (Ending.SUCCESS, 1)
    assert "needs a person to look at its answer" in said.warnings[0]


RULES = (
    TaskRule("money", 'prompt.contains("refund")', TaskClass.ACCOUNT_STATUS, (ToolCategory.DATABASE,)),
    TaskRule("rest", "prompt_chars > 1000", TaskClass.CREATIVE),
)


@pytest.mark.req("4.8", "4.35")
def test_a_class_that_the_boundary_names_decides() -> None:
    boundary = Boundary(name="desk", tasks=RULES)
    replies = (calls("look"), *({"text": "Done."},) * 3)
    said = asked(*replies, words="my refund?", boundary=boundary)
    assert said.terminal_code is Ending.VALIDATION_FAIL
    assert asked(calls("account"), {"text": "Done."}, words="my refund?", boundary=boundary).error is None
    named = said_task(Task(TaskClass.ACCOUNT_STATUS, TaskSource.BOUNDARY, "money"))
    assert named == "a task of class account_status (by the boundary's rule money)"
    other = asked({"text": "Hi."}, words="hello", boundary=boundary)
    assert (other.terminal_code, other.warnings) == (Ending.SUCCESS, ())


@pytest.mark.req("4.8")
def test_a_rule_that_cannot_be_decided_counts_as_if_it_held_and_the_caller_comes_first() -> None:
    odd = Boundary(name="odd", tasks=(TaskRule("odd", 'tools[99] == "x"', TaskClass.CODE_RESULT),))
    replies = ({"text": "Yes."},) * 3
    assert asked(*replies, boundary=odd).terminal_code is Ending.VALIDATION_FAIL
    assert asked(*replies, boundary=odd, goal=of_class(TaskClass.CREATIVE)).terminal_code is Ending.SUCCESS


@pytest.mark.req("4.35")
def test_an_answer_of_high_stakes_waits_for_a_person_before_it_succeeds() -> None:
    async def story() -> None:
        async with in_memory() as system:
            replies = [calls("look"), {"text": "Wait."}] * 3
            goal = of_class(TaskClass.HIGH_STAKES)
            for word in ("yes", "no"):
                loop = AgentLoop(ScriptedEngine(replies), tools=TOOLS, system=system, goal=goal)
                said = await loop.chat("please")
                assert said.waiting_for is not None
                assert (said.terminal_code, said.waiting_for.ending) == (None, Ending.REVIEW_REQUIRED)
                (packet,) = said.waiting_for.packet_ids
                answer = loop.approve if word == "yes" else loop.reject
                done = await answer(packet, by="grace")
                expected = Ending.SUCCESS if word == "yes" else Ending.VALIDATION_FAIL
                assert done.terminal_code is expected

    play(story())


@pytest.mark.req("4.35")
def test_a_review_that_nobody_may_be_asked_for_ends_the_run_as_one_that_was_required() -> None:
    said = asked(calls("look"), {"text": "Wait."}, goal=of_class(TaskClass.HIGH_STAKES), budget=Budget(human_reviews=0))
    assert said.terminal_code is Ending.REVIEW_REQUIRED
    assert said.error is not None
    assert "nobody may be asked any more" in said.error.message


@pytest.mark.req("4.35")
def test_evidence_that_was_found_grounds_what_retrieval_can_tell() -> None:
    class Shelf:
        async def build(self, query: str) -> Sequence[Message]:
            """Something about everything."""
            return [system_message("the fare is 42 EUR")]

    for answer, ending in (("It is 42 EUR.", Ending.SUCCESS), ("It is 43 EUR.", Ending.VALIDATION_FAIL)):
        goal = of_class(TaskClass.CURRENT_FACT)
        said = asked(*({"text": answer},) * 3, goal=goal, context_provider=Shelf())
        assert said.terminal_code is ending
    said = asked(*({"text": "42"},) * 3, goal=of_class(TaskClass.ACCOUNT_STATUS), context_provider=Shelf())
    assert said.terminal_code is Ending.VALIDATION_FAIL


@pytest.mark.req("4.35")
def test_what_a_child_observed_grounds_its_parent() -> None:
    goal = of_class(TaskClass.ACCOUNT_STATUS, required_actions=(RequiredAction("account"),))
    of_child = ({"when": '"task"', **calls("account")}, {"when": "suspended", "text": "it is suspended"})
    replies: tuple[JsonObject, ...] = (*of_child, calls("helper", task="look"), {"text": "Suspended, it says."})
    assert asked(*replies, goal=goal).terminal_code is Ending.SUCCESS
    silent: tuple[JsonObject, ...] = ({"when": '"task"', "text": "it is fine"}, calls("helper", task="look"))
    assert asked(*silent, *({"text": "Fine."},) * 3, goal=goal).terminal_code is Ending.VALIDATION_FAIL


@pytest.mark.parametrize("kind", ["single", "plan", "redundant"])
def test_every_loop_takes_a_goal(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "goal.yaml"
    file.write_text("required_actions: [nobody]\n", encoding="utf-8")
    engine, schema = ScriptedEngine([{"text": '{"a": 1}'}]), {"type": "object"}
    responses: dict[str, Callable[[], SystemResponse]] = {
        "single": lambda: SpecializedLoop(engine, schema=schema, goal=file, system=system_in_memory()).call_sync("x"),
        "plan": lambda: (
            PlanExecutor(
                {StepType.TOOL: lambda step: "x"}, goal={"required_actions": ["nobody"]}, system=system_in_memory()
            )
            .execute_sync([Step("a", StepType.TOOL, "x")])
            .response
        ),
        "redundant": lambda: (
            RedundantLoop(engine, schema=schema, goal=str(file), system=system_in_memory()).call_sync("x").response
        ),
    }
    said = responses[kind]()
    assert said.terminal_code is Ending.IMPOSSIBLE


@pytest.mark.parametrize("goal", [7, "", {"task_class": "guess"}])
def test_a_goal_that_is_none_is_refused_when_the_loop_is_made(goal: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        AgentLoop(ScriptedEngine([{"text": "x"}]), goal=goal)
    assert refused.value.code == GOAL_INVALID


IMPOSSIBLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "absent": ("nobody", {}, "no tool named 'nobody' is registered"),
    "not allowed": ("look", {"boundary": Boundary(name="b", allowed_tools=("book",))}, "does not allow tool look"),
    "not permitted": ("book", {}, "needs permission ledger.write"),
}


@pytest.mark.req("4.36")
@pytest.mark.parametrize("why", IMPOSSIBLE)
def test_a_required_action_that_cannot_be_done_ends_the_run_before_a_model_is_paid(why: str) -> None:
    tool, terms, message = IMPOSSIBLE[why]
    engine = Listening({"text": "done"})

    async def story() -> SystemResponse:
        async with in_memory() as system:
            goal = Goal("do it", required_actions=(RequiredAction(tool),))
            return await AgentLoop(engine, tools=TOOLS, system=system, goal=goal, **terms).chat("please")

    said = play(story())
    assert said.terminal_code is Ending.IMPOSSIBLE
    assert said.error is not None
    assert f"required action {tool} cannot be done" in said.error.message
    assert message in said.error.message
    assert engine.asked == []


@pytest.mark.req("4.36")
@pytest.mark.parametrize(
    ("choice", "budget", "message"),
    [
        (ToolChoice(ToolChoiceMode.FUNCTION, "look"), Budget(tool_calls=0), "tool_calls_max=0 forbids it"),
        (ToolChoice(ToolChoiceMode.REQUIRED), Budget(tool_calls=0), "there is none that may be called"),
    ],
)
def test_a_tool_choice_that_cannot_be_met_is_impossible_too(choice: ToolChoice, budget: Budget, message: str) -> None:
    async def story() -> SystemResponse:
        async with in_memory() as system:
            request, kit = SystemRequest((user_message("please"),), tool_choice=choice), Registry(TOOLS)
            return await system.run(request, engine_kit(ScriptedEngine([{"text": "x"}]), kit), Terms(budget=budget))

    said = play(story())
    assert said.terminal_code is Ending.IMPOSSIBLE
    assert said.error is not None
    assert message in said.error.message


@pytest.mark.req("4.36")
def test_a_tool_choice_of_a_tool_that_is_not_there_is_turned_away_at_the_door_and_impossible_in_a_manifest() -> None:
    request = SystemRequest((user_message("please"),), tool_choice=ToolChoice(ToolChoiceMode.FUNCTION, "nobody"))

    async def story() -> None:
        async with in_memory() as system:
            with pytest.raises(RequestRejected, match="nobody") as refused:
                await system.run(request, engine_kit(ScriptedEngine([{"text": "x"}]), Registry(TOOLS)), Terms())
            assert refused.value.code == TOOLS_DISALLOWED

    play(story())
    run = Run(manifest_of(request=request))
    assert (run.state.end.ending, "tool_choice demands a call of nobody" in run.state.end.message) == (
        Ending.IMPOSSIBLE,
        True,
    )


@pytest.mark.req("4.36")
def test_an_action_that_the_request_does_not_offer_is_impossible() -> None:
    async def story() -> SystemResponse:
        async with in_memory() as system:
            request = SystemRequest((user_message("please"),), tools=("account",))
            terms = Terms(goal=Goal("look", required_actions=(RequiredAction("look"),)))
            return await system.run(request, engine_kit(ScriptedEngine([{"text": "x"}]), Registry(TOOLS)), terms)

    said = play(story())
    assert said.error is not None
    assert (said.terminal_code, "does not offer tool look" in said.error.message) == (Ending.IMPOSSIBLE, True)


def test_a_boundary_that_only_audits_rules_nothing_out() -> None:
    boundary = Boundary(name="b", allowed_tools=(), mode=BoundaryMode.AUDIT)
    goal = Goal("look", required_actions=(RequiredAction("look"),))
    assert asked(calls("look"), {"text": "ok"}, goal=goal, boundary=boundary).terminal_code is Ending.SUCCESS


def test_an_action_that_is_required_no_time_rules_nothing_out() -> None:
    goal = Goal("look", required_actions=(RequiredAction("nobody", 0),))
    assert asked({"text": "ok"}, goal=goal).terminal_code is Ending.SUCCESS


@pytest.mark.req("4.36")
def test_a_required_action_whose_tool_is_unavailable_ends_as_impossible_at_the_next_answer() -> None:
    goal = Goal("fetch it", required_actions=(RequiredAction("broken"),))
    said = asked(calls("broken"), {"text": "It is away."}, goal=goal)
    assert said.terminal_code is Ending.IMPOSSIBLE
    assert said.error is not None
    assert said.error.message == "required action broken cannot be done: the tool is unavailable"
    assert [call.status for call in said.tool_calls_made] == [CallStatus.FAILED]


@pytest.mark.req("4.36")
def test_a_required_action_that_a_person_turned_away_ends_as_impossible() -> None:
    async def story() -> None:
        async with in_memory() as system:
            goal = Goal("book it", required_actions=(RequiredAction("book"),))
            boundary = Boundary(name="b", permissions=("ledger.write",))
            engine = ScriptedEngine([calls("book", text="x"), {"text": "I booked it."}])
            loop = AgentLoop(engine, tools=TOOLS, system=system, goal=goal, boundary=boundary)
            said = await loop.chat("please")
            assert said.waiting_for is not None
            done = await loop.reject(said.waiting_for.packet_ids[0], by="grace", reason="too dear")
            assert done.terminal_code is Ending.IMPOSSIBLE
            assert done.error is not None
            assert "a person turned it away" in done.error.message
            assert "too dear" in done.error.message

    play(story())


def test_an_action_that_was_merely_not_done_is_asked_for_again() -> None:
    goal = Goal("look", required_actions=(RequiredAction("look"),))
    assert asked({"text": "ok"}, calls("look"), {"text": "ok"}, goal=goal).terminal_code is Ending.SUCCESS


def test_an_audit_compares_an_answer_again_and_says_where_a_text_is_gone() -> None:
    async def story() -> None:
        async with in_memory() as system:
            engine = ScriptedEngine([calls("account"), *({"text": "Your balance is 7,000,000."},) * 3])
            goal = of_class(TaskClass.ACCOUNT_STATUS)
            said = await AgentLoop(engine, tools=TOOLS, system=system, goal=goal).chat("please")
            data = await system.store.journal.read(said.run_id)
            texts = await kept_texts(system.store.blobs, data)
            assert audit(data, texts.get).verdict is AuditVerdict.SAME
            without = {digest: text for digest, text in texts.items() if b"noise" not in text}
            assert audit(data, without.get).verdict is AuditVerdict.REDACTED

    play(story())


def test_where_a_text_is_not_at_hand_nothing_is_compared() -> None:
    run = Run(manifest_of(goal=of_class(TaskClass.ACCOUNT_STATUS)))
    run.proposes(wants("look"))
    run.returns("look")
    (trace,) = run.state.calls.made.values()
    trace.content = BlobRef(b"gone", 9)
    task = task_of(pinned(run.state))
    assert task is not None
    assert [*long_evidence(run.state, task)] == [BlobRef(b"gone", 9)]
    assert unsupported_in(run.state, task, "It is 7.", inline) == ()
