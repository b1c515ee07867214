"""PlanExecutor: typed steps in an order, each handing its output to the next, and what remains when one fails."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

import remit
from remit import (
    Budget,
    ExecutionPlan,
    InferHandler,
    PlanExecutor,
    PlanPolicy,
    RerankHandler,
    RetrieveHandler,
    SpecializedLoop,
    Step,
    System,
    ToolHandler,
    ValidateHandler,
    tool,
)
from remit.agents.plan_executor import RUN_NO_PLAN, PlanResult
from remit.agents.plan_parts import executor_parts
from remit.agents.workplace import LOOP_RUNNING
from remit.assemble import opened_system, settings_of, system_in_memory
from remit.context.evidence_message import ContextBuilder
from remit.context.fts import Document, DocumentIndex
from remit.core.failure import Ending, ErrorCode, RemitError, RequestRejected, RunFailed
from remit.core.failure_families import FailureCategory
from remit.core.limits.profiles import BOUNDARY_UNKNOWN
from remit.core.record import JsonObject
from remit.core.run.contract import CallStatus, ConfidenceSource, SystemRequest, SystemResponse
from remit.core.run.contract import SystemError as RunError
from remit.core.run.correlation import LifecycleTransitionEvent
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.lifecycle import LifecycleState
from remit.core.run.messages import Message, system_message, user_message
from remit.core.run.request_checks import REQUEST_ID_INVALID
from remit.core.run.run_events import SYSTEM_CLOSED
from remit.core.run.signals import Signal
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.core.work.plan import (
    PLAN_NOT_LINEAR,
    PLAN_STEP_INVALID,
    PLAN_STEP_TYPE_REFUSED,
    PLAN_TOO_LONG,
    PlanTrace,
    RerankInput,
    StepType,
)
from remit.inference.engine import EngineFault, StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.inference.scripted.script import FREE
from remit.kernel.state import pinned
from remit.observe.views.event_log import Action, CodeEvent, InMemoryEventLog
from remit.orchestrate.loop.needs import RUN_PARTS_MISSING
from remit.orchestrate.patterns.planners import (
    PLAN_INVALID,
    PLAN_MISSING,
    PLAN_POLICY_INVALID,
    PLANNER_FAILED,
    StaticPlanner,
)
from remit.orchestrate.setup.kit import Kit
from remit.rerank.lexical import rerank
from remit.tool.registry import Registry
from remit.validate.check import compile_rules
from remit.validate.rule_set import MustMention, Rule, RuleSet
from tests.unit.orchestrate.house import Listening, Said, calls, request, scripted, signal, until
from tests.unit.orchestrate.stage import play

INFER, RETRIEVE, RERANK, VALIDATE, TOOL = (
    StepType.INFER,
    StepType.RETRIEVE,
    StepType.RERANK,
    StepType.VALIDATE,
    StepType.TOOL,
)
QUESTION = "How do interfaces work in Go?"
DOCUMENTS = (
    Document("go.md", "Interfaces in Go are satisfied by methods. No type names the interfaces that it satisfies."),
    Document("py.md", "Protocols of Python are structural, much like interfaces."),
    Document("tea.md", "Green tea is best at eighty degrees."),
)


@pytest.fixture
def library() -> Iterator[ContextBuilder]:
    """A real full-text index."""
    with DocumentIndex() as index:
        index.add(DOCUMENTS)
        yield ContextBuilder(index)


def executor(handlers: Any, system: System | None = None, **terms: Any) -> PlanExecutor:
    return PlanExecutor(handlers, system=system or system_in_memory(), **terms)


def summarize(step: Step) -> Step:
    """The custom handler that everybody writes first."""
    if not isinstance(step.input, str):
        raise TypeError(f"summarize: expected str input, got {type(step.input).__name__}")
    return step.with_output(step.input.strip()[:12] + "...")


def shout(step: Step) -> str:
    return str(step.input).upper()


def fails(step: Step) -> None:
    raise LookupError("no such shelf")


def error_code(result: PlanResult) -> str:
    assert result.response.error is not None
    return result.response.error.code


def error_message(result: PlanResult) -> str:
    assert result.response.error is not None
    return result.response.error.message


@pytest.mark.req("0.28")
def test_every_step_occurs_in_the_events_and_what_happens_in_it_is_caused_by_it(library: ContextBuilder) -> None:
    @tool(effect="read")
    def look(x: str) -> str:
        """Look."""
        return x

    handlers = {
        "t": ToolHandler([look]),
        "f": shout,
        "r": RetrieveHandler(library),
        "i": InferHandler(ScriptedEngine([{"text": "Yes."}])),
        "broken": fails,
    }
    steps = [Step("beta", "t", {"x": "q"}, tool="look"), Step("gamma", "f", "s"), Step("delta", "r", QUESTION)]
    steps += [Step("eps", "i", "z"), Step("zeta", "broken", "z")]
    observer = InMemoryEventLog()
    result = executor(handlers, observer=observer).execute_sync(steps)
    assert error_code(result) == ErrorCode.TOOL_EXECUTION_FAILED
    for step in steps:
        causes = {event.what.correlation.caused_by for event in observer.events() if event.step_name == step.name}
        assert causes == {step.name}, f"{step.name} is named by the events {causes}"
    ran = [(event.step_name, event.what.error) for event in observer.events() if isinstance(event.what, CodeEvent)]
    assert ran == [("gamma", ""), ("delta", ""), ("zeta", "step 'zeta' raised LookupError: no such shelf")]


# The pipeline of the handbook, and what becomes of its values.


@pytest.mark.req("1.13", "2.14", "2.15", "2.16", "2.17", "2.18")
def test_retrieve_rerank_and_infer_chain_over_a_real_index(library: ContextBuilder) -> None:
    engine = Listening({"text": "By having the methods, as [1] says."})
    plan = ExecutionPlan((Step("find", RETRIEVE, QUESTION), Step("order", RERANK), Step("answer", INFER)))
    handlers = {
        RETRIEVE: RetrieveHandler(library),
        RERANK: RerankHandler(rerank),
        INFER: InferHandler(engine),
    }
    result = executor(handlers).execute_sync(plan)
    assert result.response.terminal_code is Ending.SUCCESS
    found, ordered, answer = (step.output for step in result.steps)
    assert isinstance(found, RerankInput)
    assert isinstance(ordered, RerankInput)
    assert found.query == ordered.query == QUESTION
    assert {candidate.source for candidate in found.candidates} == {"go.md", "py.md"}
    assert [candidate.scored_by for candidate in ordered.candidates] == [ScoreMaker.RERANK] * 2
    assert ordered.candidates[0].source == "go.md"
    assert ordered.candidates[0].metadata["scored_before"]["by"] == ScoreMaker.RETRIEVAL
    assert answer == result.response.content == "By having the methods, as [1] says."
    shown = [str(message.content) for message in engine.asked[0].messages]
    assert "[1] (go.md, untrusted)" in shown[0]
    assert shown[-1] == QUESTION
    assert [step.input for step in result.steps] == [QUESTION, found, ordered]


@pytest.mark.req("2.16", "2.18")
def test_a_validate_step_at_the_end_passes_the_answer_on_or_fails_the_plan(library: ContextBuilder) -> None:
    def is_long_enough(text: str) -> None:
        if len(text) < 10:
            raise ValueError(f"output too short: {len(text)} chars")

    def run(answer: str) -> PlanResult:
        handlers = {
            RETRIEVE: RetrieveHandler(library),
            INFER: InferHandler(ScriptedEngine([{"text": answer}])),
            VALIDATE: ValidateHandler(is_long_enough),
        }
        plan = ExecutionPlan((Step("find", RETRIEVE, QUESTION), Step("answer", INFER), Step("check", VALIDATE)))
        renamed = ExecutionPlan((*plan.steps[:2], Step("look", VALIDATE)))
        return executor(handlers).execute_sync(renamed)

    passed = run("Implicitly, by methods.")
    assert passed.outputs["look"] == passed.outputs["answer"] == "Implicitly, by methods."
    failed = run("Yes.")
    assert [step.name for step in failed.steps] == ["find", "answer"]
    assert failed.response.terminal_code is Ending.VALIDATION_FAIL
    assert (error_code(failed), error_message(failed)) == (
        ErrorCode.VALIDATION_RULE_FAILED,
        "step look: output too short: 4 chars",
    )


@pytest.mark.req("2.14")
def test_a_step_of_a_custom_type_is_done_by_a_function() -> None:
    engine = Listening({"text": "fine"})
    handlers = {"summarize": summarize, INFER: InferHandler(engine)}
    plan = [Step("short", "summarize", "  a text that goes on and on  "), Step("answer", INFER)]
    result = executor(handlers).execute_sync(plan)
    assert result.outputs == {"short": "a text that ...", "answer": "fine"}
    assert engine.asked[0].messages[-1].content == "a text that ..."
    refused = executor(handlers).execute_sync([Step("short", "summarize", {"a": 1})])
    assert "summarize: expected str input, got dict" in error_message(refused)


@pytest.mark.req("2.15")
def test_an_explicit_input_overrides_what_the_step_before_gave() -> None:
    plan = [Step("a", "shout", "one"), Step("b", "shout", "two"), Step("c", "shout")]
    assert executor({"shout": shout}).execute_sync(plan).outputs == {"a": "ONE", "b": "TWO", "c": "TWO"}


@pytest.mark.req("2.15")
def test_a_step_may_name_an_earlier_one_as_its_source_where_branches_are_allowed() -> None:
    plan = [Step("a", "shout", "one"), Step("b", "shout", "two"), Step("c", "shout", source="a")]
    branching = executor({"shout": shout}, policy=PlanPolicy(require_linear=False))
    assert branching.execute_sync(plan).output == "ONE"
    with pytest.raises(RequestRejected) as refused:
        executor({"shout": shout}).execute_sync(plan)
    assert refused.value.code == PLAN_NOT_LINEAR


def test_the_prompt_is_what_a_first_step_without_an_input_works_on() -> None:
    plan = [Step("a", "shout")]
    assert executor({"shout": shout}).execute_sync(plan, prompt="hello").output == "HELLO"
    # A function may need nothing at all.
    assert executor({"shout": shout}).execute_sync(plan).output == "NONE"


def test_a_first_step_that_has_nothing_to_work_on_is_refused() -> None:
    with pytest.raises(RequestRejected) as refused:
        executor({INFER: InferHandler(ScriptedEngine([{"text": "?"}]))}).execute_sync([Step("a", INFER)])
    assert refused.value.code == PLAN_STEP_INVALID
    assert "give it an input, or the plan a prompt" in refused.value.message


class Order(BaseModel):
    number: int
    items: list[str]


@dataclass
class Parcel:
    order: Order
    kind: Literal["letter", "box"]


@pytest.mark.req("1.13")
def test_models_and_dataclasses_are_handed_on_as_objects() -> None:
    seen: list[Any] = []

    def see(step: Step) -> None:
        seen.append(step.input)

    handlers = {"make": lambda step: Parcel(Order(number=7, items=["tea"]), "box"), "see": see}
    result = executor(handlers).execute_sync([Step("make", "make"), Step("see", "see")])
    assert seen == [{"order": {"number": 7, "items": ["tea"]}, "kind": "box"}]
    assert result.outputs == {"make": seen[0], "see": None}


async def pages(step: Step) -> Any:
    for page in "ab":
        yield page


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (lambda step: step, "returned the step without an output; use step.with_output(...)"),
        (lambda step: {"share": float("nan")}, "number nan is not finite"),
        (lambda step: (page for page in "ab"), "make a list of it"),
        (pages, "collect what it yields into a list"),
        (lambda step: b"raw", "decode them"),
        (lambda step: {1: "one"}, "must be a text"),
        (lambda step: object(), "a object has no form in JSON"),
        (lambda step: "x" * 10_000_001, "value_chars_max=10000000; keep it in a file"),
        (lambda step: RerankInput("q", ("no candidate",)), "a RerankInput cannot be handed on"),  # type: ignore[arg-type]
        (lambda step: [Candidate("a", "b", float("nan"), ScoreMaker.RERANK)], "a RerankInput cannot be handed on"),
    ],
)
def test_what_cannot_be_handed_on_fails_its_step_with_the_reason(handler: Callable[[Step], Any], reason: str) -> None:
    plan = [Step("before", "shout", "x"), Step("make", "make"), Step("after", "shout")]
    result = executor({"shout": shout, "make": handler}).execute_sync(plan)
    assert (error_code(result), list(result.outputs)) == (ErrorCode.ORCHESTRATION_STEP_MISMATCH, ["before"])
    assert "step 'make'" in error_message(result)
    assert reason in error_message(result)


@pytest.mark.parametrize("raises", [True, False])
@pytest.mark.parametrize("retryable", [True, False])
def test_a_step_that_failed_in_a_run_of_its_own_is_as_retryable_as_that_run(*, raises: bool, retryable: bool) -> None:
    why = RunError(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, FailureCategory.INFERENCE, retryable, "no such key")
    failed = SystemResponse("r", "s", "run", Ending.UNAVAILABLE_DEP, error=why)
    plan = executor({"ask": lambda _: failed.raise_for_error() if raises else failed})
    error = plan.execute_sync([Step("talk", "ask", "x")]).response.error
    assert error is not None
    assert (error.code, error.retryable) == (ErrorCode.INFERENCE_MODEL_UNAVAILABLE, retryable)
    with pytest.raises(RunFailed) as raised:
        failed.raise_for_error()
    assert raised.value.retryable is retryable


def test_half_a_surrogate_pair_is_a_question_mark_wherever_it_stands() -> None:
    plan = [Step("a\ud800", "echo", "x\ud800", instruction="y\ud800")]
    result = executor({"echo": lambda step: step.input + step.instruction + "z\ud800"}).execute_sync(plan)
    assert result.outputs == {"a?": "x?y?z?"}


def test_a_large_output_comes_through_whole() -> None:
    large = "tea " * 500_000
    result = executor({"make": lambda step: large, "count": lambda step: len(step.input)}).execute_sync(
        [Step("make", "make"), Step("count", "count")]
    )
    assert result.outputs == {"make": large, "count": len(large)}


def test_a_step_that_a_function_does_knows_its_name_its_type_and_its_instruction() -> None:
    seen: list[Step] = []

    async def see(step: Step) -> str:
        seen.append(step)
        return "seen"

    executor({"see": see}).execute_sync([Step("first", "see", "x", instruction="Look closely.")])
    assert seen == [Step("first", "see", "x", instruction="Look closely.")]


def test_an_infer_step_follows_its_instruction_and_keeps_to_its_schema() -> None:
    engine = Listening({"text": "Sure: {'number': 7, 'items': ['tea'],}"})
    handlers = {INFER: InferHandler(engine, system_prompt="You read letters."), "see": lambda step: step.input}
    plan = [Step("read", INFER, "Seven, tea.", instruction="Give the order.", schema=Order), Step("see", "see")]
    result = executor(handlers, system_prompt="You work for a shop.").execute_sync(plan)
    assert result.output == {"number": 7, "items": ["tea"]}
    assert result.response.structured_output == {"read": result.output, "see": result.output}
    said = [message.content for message in engine.asked[0].messages]
    assert said == ["You work for a shop.", "You read letters.\n\nGive the order.", "Seven, tea."]


def test_a_spec_opens_the_engine_of_an_infer_step(tmp_path: Path) -> None:
    script = tmp_path / "hello.yaml"
    script.write_text("replies: [{text: hello}]")
    handlers = {INFER: InferHandler(f"scripted:{script}"), "again": InferHandler(f"scripted:{script}")}
    result = executor(handlers).execute_sync([Step("a", INFER, "hi"), Step("b", "again")])
    assert result.outputs == {"a": "hello", "b": "hello"}


# What may be wrong with a plan is said before any step runs.


@pytest.mark.req("0.33")
@pytest.mark.parametrize(
    ("policy", "plan", "code"),
    [
        (PlanPolicy(max_steps=1), [Step("a", "shout", "x"), Step("b", "shout")], PLAN_TOO_LONG),
        (PlanPolicy(allowed_step_types=("infer",)), [Step("a", "shout", "x")], PLAN_STEP_TYPE_REFUSED),
        (PlanPolicy(), [Step("a", "shout", "x"), Step("b", "sing")], PLAN_STEP_TYPE_REFUSED),
        (
            PlanPolicy(require_linear=True),
            [Step("a", "shout", "x"), Step("b", "shout"), Step("c", "shout", source="a")],
            PLAN_NOT_LINEAR,
        ),
    ],
)
def test_a_policy_is_checked_before_any_step(policy: PlanPolicy, plan: list[Step], code: str) -> None:
    ran: list[Step] = []
    with pytest.raises(RequestRejected) as refused:
        executor({"shout": ran.append}, policy=policy).execute_sync(plan)
    assert (refused.value.code, ran) == (code, [])


@pytest.mark.req("2.19")
def test_kinds_that_do_not_fit_are_found_before_running_where_they_are_known() -> None:
    handlers = {INFER: InferHandler(ScriptedEngine([{"text": "words"}])), RERANK: RerankHandler(rerank)}
    with pytest.raises(RequestRejected) as refused:
        executor(handlers).execute_sync([Step("a", INFER, "hello"), Step("b", RERANK)])
    assert refused.value.code == ErrorCode.ORCHESTRATION_STEP_MISMATCH
    assert "step 'b' of type 'rerank' takes candidates and step 'a' gives text" in refused.value.message


@pytest.mark.req("0.23", "2.19")
def test_kinds_that_do_not_fit_are_found_when_their_step_comes_and_what_was_finished_is_returned() -> None:
    handlers = {"shout": shout, RERANK: RerankHandler(rerank)}
    result = executor(handlers).execute_sync([Step("a", "shout", "hello"), Step("b", RERANK)])
    assert (result.outputs, error_code(result)) == ({"a": "HELLO"}, ErrorCode.ORCHESTRATION_STEP_MISMATCH)
    assert result.response.error is not None
    assert result.response.error.category is FailureCategory.ORCHESTRATION


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (Step("a", "shout", "x", tool="look"), "names tool 'look' and is no tool step"),
        (Step("a", "shout", "x", schema={"type": "object"}), "has a schema and is no infer step"),
        (Step("a", VALIDATE, "x", instruction="Look."), "has an instruction, and its handler follows none"),
        (Step("a", VALIDATE, "x", retries=1), "no model did a step before it"),
        (Step("a", "shout", {"a": float("inf")}), "has an input that cannot be used"),
        (Step("a", "shout", "x" * 100_001), "input_chars_max=100000; have a step before it read or make it"),
        (Step("a", "shout", "x", instruction="x" * 10_001), "instruction_chars_max=10000"),
    ],
)
def test_whatever_a_step_says_is_followed_or_refused(step: Step, reason: str) -> None:
    handlers = {"shout": shout, VALIDATE: ValidateHandler(lambda text: None)}
    with pytest.raises(RequestRejected) as refused:
        executor(handlers).execute_sync([step])
    assert refused.value.code == PLAN_STEP_INVALID
    assert reason in refused.value.message


# What remains when a step fails.


@pytest.mark.req("2.19", "0.7")
def test_a_plan_that_fails_returns_what_its_finished_steps_gave() -> None:
    plan = [Step("a", "shout", "one"), Step("b", "fail"), Step("c", "shout")]
    result = executor({"shout": shout, "fail": fails}).execute_sync(plan)
    assert result.steps == (Step("a", "shout", "one", "ONE"),)
    assert (result.response.terminal_code, error_code(result)) == (
        Ending.UNAVAILABLE_DEP,
        ErrorCode.TOOL_EXECUTION_FAILED,
    )
    assert "step 'b' raised LookupError: no such shelf" in error_message(result)
    assert result.response.content == "ONE"


def test_a_plan_whose_first_step_fails_has_no_output() -> None:
    result = executor({"fail": fails}).execute_sync([Step("a", "fail")])
    assert (result.steps, result.output, dict(result.outputs)) == ((), None, {})


class Moody:
    """An engine that fails so many times, and then answers."""

    def __init__(self, failures: int) -> None:
        self.failures, self.asked = failures, 0

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        """Fail, or answer."""
        self.asked += 1
        if self.asked <= self.failures:
            raise EngineFault(ErrorCode.INFERENCE_MODEL_UNAVAILABLE, "not now")
        return ModelResult("here I am", model="moody")

    def model_info(self) -> ModelInfo:
        """Who it is."""
        return ModelInfo("moody", context_window=4096, price=FREE)


@pytest.mark.req("2.30")
def test_a_step_is_tried_again_as_often_as_it_says_and_then_fails_with_its_last_failure() -> None:
    def run(failures: int) -> PlanResult:
        handlers = {INFER: InferHandler(Moody(failures)), "shout": shout}
        budget = Budget(retries=0)
        plan = [Step("a", "shout", "x"), Step("ask", INFER, retries=2)]
        return executor(handlers, budget=budget).execute_sync(plan)

    assert run(2).outputs == {"a": "X", "ask": "here I am"}
    failed = run(3)
    assert (dict(failed.outputs), error_code(failed)) == ({"a": "X"}, ErrorCode.INFERENCE_MODEL_UNAVAILABLE)
    assert failed.response.error is not None
    assert failed.response.error.category is FailureCategory.INFERENCE


def test_a_function_is_tried_again_as_often_as_its_step_says() -> None:
    tries: list[int] = []

    def second_time(step: Step) -> str:
        tries.append(1)
        if len(tries) < 2:
            raise OSError("busy")
        return "done"

    assert executor({"try": second_time}).execute_sync([Step("a", "try", retries=1)]).output == "done"
    assert len(tries) == 2


@pytest.mark.req("0.18", "2.30")
def test_a_validate_step_with_retries_sends_an_answer_back_with_its_objection() -> None:
    engine = Listening({"when": "must be a number", "text": "42"}, {"text": "forty-two"})

    def is_number(text: str) -> str | None:
        return None if text.isdigit() else "the answer must be a number"

    handlers = {INFER: InferHandler(engine), VALIDATE: ValidateHandler(is_number), "shout": shout}
    plan = [Step("ask", INFER, "How many?"), Step("look", VALIDATE, retries=1), Step("shout", "shout")]
    result = executor(handlers).execute_sync(plan)
    assert result.outputs == {"ask": "42", "look": "42", "shout": "42"}
    assert len(engine.asked) == 2
    stubborn = {**handlers, INFER: InferHandler(ScriptedEngine([{"text": "many"}]))}
    failed = executor(stubborn).execute_sync(plan)
    assert (error_code(failed), list(failed.outputs)) == (ErrorCode.VALIDATION_RULE_FAILED, ["ask"])


@pytest.mark.parametrize("check", [lambda text: False, lambda text: ["too dull"], lambda text: "too dull"])
def test_a_check_objects_with_false_or_with_words(check: Callable[[str], Any]) -> None:
    handlers = {VALIDATE: ValidateHandler(check)}
    result = executor(handlers).execute_sync([Step("look", VALIDATE, "grey")])
    assert error_code(result) == ErrorCode.VALIDATION_RULE_FAILED


@pytest.mark.req("0.8")
def test_rules_may_do_the_validating_and_say_how_surely() -> None:
    rules = compile_rules(RuleSet("letters", (Rule("mentions tea", MustMention(("tea",))),)))
    handlers = {VALIDATE: ValidateHandler(rules)}
    passed = executor(handlers).execute_sync([Step("look", VALIDATE, "green tea")])
    assert (passed.output, passed.response.confidence_source) == ("green tea", ConfidenceSource.VALIDATION)
    failed = executor(handlers).execute_sync([Step("look", VALIDATE, "milk")])
    assert error_code(failed) == ErrorCode.VALIDATION_RULE_FAILED


@pytest.mark.req("2.16")
@pytest.mark.parametrize(
    ("kind", "handler", "given", "message"),
    [
        (INFER, InferHandler(None), "hello", "infer handler: no engine was given"),
        (TOOL, ToolHandler(None), {"at": "x"}, "tool handler: no tools were given"),
        (RETRIEVE, RetrieveHandler(None), "hello", "retrieve handler: no context provider was given"),
        (RERANK, RerankHandler(None), RerankInput("q"), "rerank handler: no reranker was given"),
        (VALIDATE, ValidateHandler(None), "hello", "validate handler: no check was given"),
    ],
)
def test_a_handler_without_its_part_fails_when_its_step_runs(kind: str, handler: Any, given: Any, message: str) -> None:
    plan = [Step("before", "shout", "x"), Step("lacking", kind, given, retries=3, tool="look" if kind == TOOL else "")]
    result = executor({"shout": shout, kind: handler}).execute_sync(plan)
    assert result.outputs == {"before": "X"}
    assert message in error_message(result)


# A busy machine does a quick step in less, and the test does not wait long for the slow one.
TOO_LONG_MS = 500


@pytest.mark.req("0.34")
@pytest.mark.parametrize("where", ["policy", "step"])
@pytest.mark.slow
def test_a_step_that_takes_too_long_is_cut_off_and_fails(where: str) -> None:
    async def waits(step: Step) -> None:
        await asyncio.Event().wait()

    policy = PlanPolicy(timeout_per_step_ms=TOO_LONG_MS if where == "policy" else 0)
    observer = InMemoryEventLog()
    plan = [Step("a", "shout", "x"), Step("b", "wait", timeout_ms=TOO_LONG_MS if where == "step" else 0)]
    result = executor({"shout": shout, "wait": waits}, policy=policy, observer=observer).execute_sync(plan)
    assert (result.outputs, error_code(result)) == ({"a": "X"}, ErrorCode.TOOL_TIMEOUT)
    assert f"step 'b' took longer than timeout_ms={TOO_LONG_MS}" in error_message(result)
    assert lifecycle(observer)[-1] == LifecycleState.ERROR


@pytest.mark.req("0.34")
def test_a_model_that_takes_too_long_fails_its_step_alone() -> None:
    engine = ScriptedEngine([{"text": "late", "delay_ms": 20_000}])
    plan = [Step("a", "shout", "x"), Step("ask", INFER, timeout_ms=50)]
    result = executor({"shout": shout, INFER: InferHandler(engine)}).execute_sync(plan)
    assert (result.outputs, error_code(result)) == ({"a": "X"}, ErrorCode.INFERENCE_ENGINE_ERROR)


@pytest.mark.req("2.20")
def test_a_cancel_is_heard_before_the_next_step_and_what_was_finished_is_returned() -> None:
    async def story() -> None:
        system, entered = system_in_memory(), asyncio.Event()
        ran: list[Step] = []

        async def waits(step: Step) -> str:
            entered.set()
            await asyncio.Event().wait()
            return "never"

        plans = executor({"shout": shout, "wait": waits, "note": ran.append}, system)
        task = asyncio.create_task(plans.execute([Step("a", "shout", "x"), Step("b", "wait"), Step("c", "note")]))
        await entered.wait()
        (run,) = await system.archive.runs()
        await system.signal(signal(Signal.CANCEL, run.run_id))
        result = await task
        assert (result.outputs, ran) == ({"a": "X"}, [])
        assert result.response.terminal_code is Ending.USER_CANCEL
        assert error_code(result) == ErrorCode.CANCELLED_SIGNAL

    play(story())


@pytest.mark.req("2.20")
def test_a_caller_that_stops_waiting_for_a_plan_cancels_it() -> None:
    async def story() -> None:
        system, entered = system_in_memory(), asyncio.Event()

        async def waits(step: Step) -> None:
            entered.set()
            await asyncio.Event().wait()

        task = asyncio.create_task(executor({"wait": waits}, system).execute([Step("a", "wait")]))
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        async def is_cancelled() -> bool:
            (run,) = await system.archive.runs()
            return run.ending == Ending.USER_CANCEL

        await until(is_cancelled)

    play(story())


# Planners.


class Chooses:
    """A planner of the caller's own."""

    planner_id = "chooser"

    def __init__(self, made: Any) -> None:
        self.made, self.asked = made, 0

    async def create_plan(self, request: SystemRequest) -> Any:
        """Whatever it was told to make."""
        self.asked += 1
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


PLAN = ExecutionPlan((Step("a", "shout"),))


@pytest.mark.req("0.32", "0.35")
def test_a_planner_makes_the_plan_and_the_manifest_pins_who_made_it() -> None:
    async def story() -> None:
        system, observer = system_in_memory(), InMemoryEventLog()
        made = ExecutionPlan(PLAN.steps, PlanTrace("chooser", "one step is enough"))
        plans = executor({"shout": shout}, system, planner=Chooses(made), observer=observer)
        result = await plans.execute(prompt="hello")
        assert result.output == "HELLO"
        assert result.trace is not None
        assert (result.trace.planner_id, result.trace.rationale, result.trace.step_count) == (
            "chooser",
            "one step is enough",
            1,
        )
        assert result.trace.created_at_ms > 0
        begun = await system.state_of(result.response.run_id)
        (beneath,) = begun.children.runs.values()
        manifest = pinned(await system.state_of(beneath))
        assert (manifest.plan, manifest.request, pinned(begun).plan) == (result.trace, pinned(begun).request, None)
        assert LifecycleState.PLAN in lifecycle(observer)

    play(story())


@pytest.mark.req("0.32")
def test_a_static_planner_looks_the_plan_up_by_the_name_in_the_request() -> None:
    planner = StaticPlanner({"loud": PLAN, "short": ExecutionPlan((Step("a", "summarize"),))})
    plans = executor({"shout": shout, "summarize": summarize}, planner=planner)
    asked = SystemRequest((user_message("hello"),), metadata={"plan": "loud"})
    result = play(plans.run(asked))
    assert result.output == "HELLO"
    assert result.trace is not None
    assert (result.trace.planner_id, result.trace.rationale) == ("static", "metadata.plan is 'loud'")
    failed = play(plans.run(SystemRequest((user_message("hello"),), metadata={"plan": "soft"}))).response.error
    assert failed is not None
    assert PLAN_MISSING in failed.message
    assert "there are loud, short" in failed.message


@pytest.mark.req("0.32")
def test_a_planner_may_ask_a_model_and_what_it_makes_is_checked_like_any_plan() -> None:
    class Asks:
        """A planner that has a model choose the types of the steps."""

        def __init__(self, answer: str) -> None:
            schema = {"type": "object", "properties": {"types": {"type": "array", "items": {"type": "string"}}}}
            self.loop = SpecializedLoop(ScriptedEngine([{"text": answer}]), schema=schema, system=system_in_memory())

        async def create_plan(self, request: SystemRequest) -> ExecutionPlan:
            """Ask for the types, and make a step of each."""
            chosen: Any = (await self.loop.call(str(request.messages[-1].content))).structured_output
            return ExecutionPlan(tuple(Step(f"step {n}", kind) for n, kind in enumerate(chosen["types"], 1)))

    handlers = {"shout": shout, "summarize": summarize}
    result = executor(handlers, planner=Asks('{"types":["shout","summarize"]}')).execute_sync(prompt="make it short")
    assert result.outputs == {"step 1": "MAKE IT SHORT", "step 2": "MAKE IT SHOR..."}
    failed = (
        executor(handlers, planner=Asks('{"types":["delete"]}')).execute_sync(prompt="make it short").response.error
    )
    assert failed is not None
    assert PLAN_STEP_TYPE_REFUSED in failed.message


@pytest.mark.req("0.36")
def test_a_plan_that_is_given_skips_the_planner() -> None:
    planner = Chooses(ValueError("nobody should ask"))
    result = executor({"shout": shout}, planner=planner).execute_sync([Step("a", "shout", "x")])
    assert (planner.asked, result.output) == (0, "X")
    assert result.trace is not None
    assert result.trace.planner_id == "direct"


@pytest.mark.req("0.32")
@pytest.mark.parametrize(
    ("made", "code", "reason"),
    [
        (RuntimeError("no idea"), PLANNER_FAILED, "planner 'chooser' raised RuntimeError: no idea"),
        (RequestRejected("NOT_TODAY", "closed"), "NOT_TODAY", "closed"),
        ("run!", PLANNER_FAILED, "returned a str; it must return an ExecutionPlan"),
        (ExecutionPlan("run!"), PLAN_INVALID, "a str is no plan"),  # type: ignore[arg-type]
        (ExecutionPlan(("run!",)), PLAN_STEP_INVALID, "step 0 of the plan is a str"),  # type: ignore[arg-type]
        (ExecutionPlan((Step(7, "shout"),)), PLAN_STEP_INVALID, "has a int as its name"),  # type: ignore[arg-type]
        (ExecutionPlan((Step("a", "shout", retries=True),)), PLAN_STEP_INVALID, "has a bool as its retries"),
        (ExecutionPlan((), "because"), PLAN_INVALID, "the trace of the plan is a str"),  # type: ignore[arg-type]
        (ExecutionPlan(()), "PLAN_EMPTY", "the plan has no steps"),
    ],
)
def test_a_planner_that_raises_or_makes_nonsense_ends_the_run(made: Any, code: str, reason: str) -> None:
    failed = executor({"shout": shout}, planner=Chooses(made)).execute_sync(prompt="hello").response.error
    assert failed is not None
    assert failed.code == ErrorCode.ORCHESTRATION_PLAN_FAILED
    assert code in failed.message
    assert reason in failed.message


def test_neither_plan_nor_planner_is_refused() -> None:
    with pytest.raises(RequestRejected) as refused:
        executor({"shout": shout}).execute_sync(prompt="hello")
    assert refused.value.code == PLAN_MISSING


# Tools as steps.

KEPT: list[str] = []


@tool(effect="write", idempotent=True)
def keep(text: str) -> Said:
    """Keep a text."""
    KEPT.append(text)
    return f"kept {text}"


@tool(effect="external")
def send(text: str) -> Said:
    """Send a text."""
    return f"sent {text}"


@tool(effect="read")
def look(at: str) -> dict[str, str]:
    """Look at something."""
    return {"seen": at}


def test_a_tool_step_that_only_reads_runs_at_once() -> None:
    handlers = {TOOL: ToolHandler([look]), "shout": shout}
    result = executor(handlers).execute_sync([Step("look", TOOL, {"at": "shelf"}, tool="look"), Step("b", "shout")])
    assert result.outputs == {"look": '{"seen":"shelf"}', "b": '{"SEEN":"SHELF"}'}
    assert [call.name for call in result.response.tool_calls_made] == ["look"]


KEEPING = [Step("a", "make"), Step("keep", TOOL, tool="keep"), Step("b", "shout")]
KEEPERS: dict[str, Any] = {"make": lambda step: {"text": "tea"}, TOOL: ToolHandler([keep]), "shout": shout}


def test_a_mutating_tool_step_waits_for_a_person_and_goes_on_when_allowed() -> None:
    async def story() -> None:
        KEPT.clear()
        plans = executor(KEEPERS)
        asked = await plans.execute(KEEPING)
        assert (asked.outputs, KEPT) == ({"a": {"text": "tea"}}, [])
        assert asked.response.waiting_for is not None
        assert asked.response.waiting_for.ending is Ending.CONFIRM_REQUIRED
        done = await plans.approve(asked.response.waiting_for.packet_ids[0], by="ada", arguments={"text": "milk"})
        assert (done.outputs["keep"], done.output, KEPT) == ("kept milk", "KEPT MILK", ["milk"])

    play(story())


def test_a_mutating_tool_step_that_is_rejected_ends_its_plan_with_what_was_finished() -> None:
    async def story() -> None:
        KEPT.clear()
        plans = executor(KEEPERS)
        plan = [KEEPING[0], Step("keep", TOOL, tool="keep", retries=1), KEEPING[2]]
        asked = await plans.execute(plan)
        assert asked.response.waiting_for is not None
        done = await plans.reject(asked.response.waiting_for.packet_ids[0], by="ada", reason="not now")
        assert (done.outputs, done.response.terminal_code) == ({"a": {"text": "tea"}}, Ending.PERMISSION_DENIED)
        assert [call.status for call in done.response.tool_calls_made] == [CallStatus.REFUSED]
        assert KEPT == []

    play(story())


@pytest.mark.parametrize(
    ("step", "code", "reason"),
    [
        (Step("t", TOOL, {}, tool="fly"), ErrorCode.TOOL_NOT_FOUND, "calls tool 'fly'; its handler has keep, send"),
        (Step("t", TOOL, {}), ErrorCode.TOOL_NOT_FOUND, "does not say which tool it calls"),
        (Step("t", TOOL, "tea", tool="keep"), ErrorCode.ORCHESTRATION_STEP_MISMATCH, "takes object"),
        (Step("t", TOOL, {}, tool="send", retries=1), PLAN_STEP_INVALID, "is not idempotent"),
    ],
)
def test_a_tool_step_that_could_not_be_made_is_refused_before_anything_runs(step: Step, code: str, reason: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        executor({TOOL: ToolHandler([keep, send])}).execute_sync([step])
    assert refused.value.code == code
    assert reason in refused.value.message


def test_a_tool_step_with_arguments_that_do_not_fit_fails_and_calls_nothing() -> None:
    result = executor({TOOL: ToolHandler([look])}).execute_sync([Step("t", TOOL, {"nope": 1}, tool="look")])
    assert error_code(result) == ErrorCode.CONSTRAINT_SCHEMA_INVALID
    assert [call.status for call in result.response.tool_calls_made] == [CallStatus.REFUSED]


def test_an_infer_step_may_use_tools_of_its_own() -> None:
    engine = ScriptedEngine([calls("look", at="shelf"), {"text": "tea"}])
    result = executor({INFER: InferHandler(engine, tools=[look])}).execute_sync([Step("ask", INFER, "What is there?")])
    assert (result.output, [call.name for call in result.response.tool_calls_made]) == ("tea", ["look"])


# The response, resuming, and who listens.


@pytest.mark.req("0.13", "0.14")
def test_the_response_of_a_plan_has_content_outputs_by_step_calls_and_usage() -> None:
    handlers = {TOOL: ToolHandler([look]), INFER: InferHandler(ScriptedEngine([{"text": "tea"}]))}
    result = executor(handlers).execute_sync([Step("look", TOOL, {"at": "shelf"}, tool="look"), Step("ask", INFER)])
    response = result.response
    assert response.content == "tea"
    assert response.structured_output == {"look": '{"seen":"shelf"}', "ask": "tea"}
    assert [call.name for call in response.tool_calls_made] == ["look"]
    assert response.token_usage.output_tokens > 0


def lifecycle(observer: InMemoryEventLog) -> list[str]:
    """The states that were entered by runs that are no children."""
    return [
        event.what.to_state
        for event in observer.events()
        if event.action is Action.LIFECYCLE and isinstance(event.what, LifecycleTransitionEvent)
    ]


@pytest.mark.req("0.21")
def test_a_plan_passes_through_its_lifecycle_and_the_observer_hears_of_it() -> None:
    observer = InMemoryEventLog()
    handlers = {"shout": shout, VALIDATE: ValidateHandler(lambda text: None)}
    executor(handlers, observer=observer).execute_sync([Step("a", "shout", "x"), Step("look", VALIDATE)])
    assert lifecycle(observer) == [
        LifecycleState.PLAN,
        LifecycleState.PREPARE,
        LifecycleState.EXECUTE,
        LifecycleState.VALIDATE,
        LifecycleState.COMPLETE,
    ]


def test_an_observer_that_breaks_does_not_break_the_plan() -> None:
    class Breaks:
        def record(self, event: object) -> None:
            raise RuntimeError("no ink")

        def events(self) -> list[Any]:
            return []

    assert executor({"shout": shout}, observer=Breaks()).execute_sync([Step("a", "shout", "x")]).output == "X"


def test_a_plan_that_waits_is_taken_up_by_another_executor_and_answered_there(tmp_path: Path) -> None:
    async def story() -> None:
        KEPT.clear()
        asked = await PlanExecutor(KEEPERS, home=tmp_path).execute(KEEPING)
        assert asked.response.waiting_for is not None
        other = PlanExecutor(KEEPERS, home=tmp_path)
        resumed = await other.resume(asked.response.run_id)
        assert resumed.response.waiting_for == asked.response.waiting_for
        done = await other.approve(asked.response.waiting_for.packet_ids[0], by="ada")
        assert (done.output, KEPT) == ("KEPT TEA", ["tea"])

    play(story())


@pytest.mark.parametrize(
    ("handlers", "missing"),
    [
        ({"make": shout, "shout": shout}, "tool 'keep'"),
        ({TOOL: ToolHandler([keep]), "make": shout}, "code 'step:shout'"),
    ],
)
def test_a_plan_is_not_resumed_without_its_handlers_and_stays_as_it_was(handlers: dict[str, Any], missing: str) -> None:
    async def story() -> None:
        system = system_in_memory()
        asked = await executor(KEEPERS, system).execute(KEEPING)
        with pytest.raises(RequestRejected) as refused:
            await executor(handlers, system).resume(asked.response.run_id)
        assert refused.value.code == RUN_PARTS_MISSING
        assert missing in refused.value.message
        assert (await system.result(asked.response.run_id)).waiting_for == asked.response.waiting_for

    play(story())


def test_a_plan_is_not_resumed_without_the_model_and_the_tools_of_its_steps() -> None:
    async def story() -> None:
        system = system_in_memory()
        engine = ScriptedEngine([calls("keep", text="x")])
        asked = await executor({INFER: InferHandler(engine, tools=[keep])}, system).execute([Step("a", INFER, "x")])
        assert asked.response.waiting_for is not None
        with pytest.raises(RequestRejected) as refused:
            await executor({INFER: InferHandler(Moody(0))}, system).resume(asked.response.run_id)
        assert refused.value.details["missing"] == [f"model {engine.model_info().name!r}", "tool 'keep'"]

    play(story())


def test_a_run_that_is_no_plan_is_not_resumed_as_one() -> None:
    async def story() -> None:
        system = system_in_memory()
        chat = await system.run(request(), scripted({"text": "hello"}))
        with pytest.raises(RequestRejected) as refused:
            await executor({"shout": shout}, system).resume(chat.run_id)
        assert refused.value.code == RUN_NO_PLAN

    play(story())


def test_a_plan_that_has_ended_tells_the_same_when_it_is_resumed() -> None:
    async def story() -> None:
        system = system_in_memory()
        plans = executor({"shout": shout}, system)
        done = await plans.execute([Step("a", "shout", "x")])
        assert (await plans.resume(done.response.run_id)).steps == done.steps

    play(story())


def test_plans_of_one_executor_run_beside_each_other() -> None:
    async def story() -> None:
        plans = executor({"shout": shout})
        plan = [Step("a", "shout"), Step("b", "shout")]
        results = await asyncio.gather(*(plans.execute(plan, prompt=word) for word in ("tea", "milk", "sugar")))
        assert [result.output for result in results] == ["TEA", "MILK", "SUGAR"]

    play(story())


def test_a_plan_decides_the_same_when_it_is_replayed(library: ContextBuilder) -> None:
    async def story() -> None:
        system = system_in_memory()
        handlers = {
            RETRIEVE: RetrieveHandler(library),
            RERANK: RerankHandler(rerank),
            INFER: InferHandler(ScriptedEngine([{"text": "fine"}])),
            VALIDATE: ValidateHandler(lambda text: None),
        }
        plan = [Step("a", RETRIEVE, QUESTION), Step("b", RERANK), Step("c", INFER), Step("d", VALIDATE)]
        done = await executor(handlers, system).execute(plan)
        assert (await system.archive.replay(done.response.run_id)).verdict == "same"

    play(story())


def test_a_plan_is_not_executed_in_sync_where_a_loop_runs() -> None:
    async def story() -> None:
        with pytest.raises(RequestRejected) as refused:
            executor({"shout": shout}).execute_sync([Step("a", "shout", "x")])
        assert refused.value.code == LOOP_RUNNING

    play(story())


# What no plan could be executed with is refused when the executor is made.


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"policy": PlanPolicy(max_steps=0)}, PLAN_POLICY_INVALID),
        ({"policy": PlanPolicy(max_steps=True)}, PLAN_POLICY_INVALID),
        ({"policy": PlanPolicy(timeout_per_step_ms=-1)}, PLAN_POLICY_INVALID),
        ({"policy": PlanPolicy(allowed_step_types="infer")}, PLAN_POLICY_INVALID),  # type: ignore[arg-type]
        ({"planner": "make one"}, PLANNER_FAILED),
        ({"boundary": "nowhere"}, BOUNDARY_UNKNOWN),
        ({"user_id": "x" * 1000}, REQUEST_ID_INVALID),
    ],
)
def test_terms_that_no_plan_could_have_are_refused(terms: dict[str, Any], code: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        executor({"shout": shout}, **terms)
    assert refused.value.code == code


@dataclass
class Shelf:
    """A provider that builds messages."""

    found: list[Message]

    async def build(self, query: str) -> list[Message]:
        """What there is."""
        return self.found


@pytest.mark.req("1.13", "2.16")
def test_messages_that_were_found_reach_a_reranker_as_candidates_and_a_model_with_the_question() -> None:
    shelf = RetrieveHandler(Shelf([system_message("tea is green"), system_message("milk is white")]))
    engine = Listening({"text": "green"})
    handlers = {RETRIEVE: shelf, RERANK: RerankHandler(lambda query, found: found[:1]), INFER: InferHandler(engine)}
    direct = executor(handlers).execute_sync([Step("find", RETRIEVE, "tea?"), Step("ask", INFER)])
    assert direct.output == "green"
    assert [m.content for m in engine.asked[0].messages] == ["tea is green", "milk is white", "tea?"]
    ordered = executor(handlers).execute_sync([Step("find", RETRIEVE, "tea?"), Step("order", RERANK)])
    assert [one.content for one in ordered.output.candidates] == ["tea is green"]


async def left_in_the_middle(home: Path) -> str:
    """A plan whose process went away while a step of it was at work; gives its run."""
    working = asyncio.Event()

    async def wait(step: Step) -> None:
        working.set()
        await asyncio.Event().wait()

    async with opened_system(settings_of(home=home)) as system:
        plan = [Step("a", "shout", "x"), Step("b", "wait"), Step("c", "shout")]
        task = asyncio.create_task(executor({"shout": shout, "wait": wait}, system).execute(plan))
        await working.wait()
        run_id = (await system.archive.runs())[0].run_id
    await asyncio.gather(task, return_exceptions=True)
    return run_id


def test_a_plan_of_functions_is_not_resumed_where_they_are_not_and_stays_open(tmp_path: Path) -> None:
    async def story() -> None:
        run_id = await left_in_the_middle(tmp_path)
        async with opened_system(settings_of(home=tmp_path)) as system:
            for _ in range(2):
                with pytest.raises(RequestRejected) as refused:
                    await system.resume(run_id)
                assert refused.value.code == RUN_PARTS_MISSING
                assert refused.value.details["missing"] == ["code 'step:shout'", "code 'step:wait'"]
                assert "resume it from the program that started it" in refused.value.message
        done = await PlanExecutor({"shout": shout, "wait": shout}, home=tmp_path).resume(run_id)
        assert (done.response.terminal_code, done.output) == (Ending.SUCCESS, "X")

    play(story())


def test_a_step_is_not_approved_where_its_plan_cannot_go_on_but_may_be_rejected_there(tmp_path: Path) -> None:
    async def story() -> None:
        KEPT.clear()
        asked = await PlanExecutor(KEEPERS, home=tmp_path).execute(KEEPING)
        assert asked.response.waiting_for is not None
        run_id, (packet_id,) = asked.response.run_id, asked.response.waiting_for.packet_ids
        tools = Kit({}, Registry([keep]))
        async with opened_system(settings_of(home=tmp_path)) as system:
            with pytest.raises(RequestRejected) as refused:
                await system.signal(signal(Signal.APPROVE, run_id, packet_id=packet_id), kit=tools)
            assert refused.value.code == RUN_PARTS_MISSING
            assert (await system.result(run_id)).waiting_for == asked.response.waiting_for
            heard = await system.signal(signal(Signal.REJECT, run_id, packet_id=packet_id), kit=tools)
            # To say no loads nothing, so nothing is missing.
            assert heard.rests_because == ""
        done = await PlanExecutor(KEEPERS, home=tmp_path).resume(run_id)
        assert (done.response.terminal_code, KEPT) == (Ending.PERMISSION_DENIED, [])

    play(story())


def test_a_kit_that_did_not_suffice_does_not_stand_in_the_way_of_the_right_one(tmp_path: Path) -> None:
    async def story() -> None:
        KEPT.clear()
        asked = await PlanExecutor(KEEPERS, home=tmp_path).execute(KEEPING)
        assert asked.response.waiting_for is not None
        run_id, (packet_id,) = asked.response.run_id, asked.response.waiting_for.packet_ids
        yes = signal(Signal.APPROVE, run_id, packet_id=packet_id)
        parts = executor_parts(KEEPERS)
        async with opened_system(settings_of(home=tmp_path)) as system:
            with pytest.raises(RequestRejected):
                await system.signal(yes, kit=Kit({}, parts.tools))
            await system.signal(yes, kit=Kit(parts.engines, parts.tools, parts.code, handlers=parts.handlers))
            assert (await system.result(run_id)).terminal_code is Ending.SUCCESS
        assert KEPT == ["tea"]

    play(story())


async def with_a_step_resumed(system: System, *replies: JsonObject) -> str:
    """A plan whose only step was paused at its first question and resumed; gives its run."""
    engine = Listening(*replies)
    handlers = {INFER: InferHandler(engine, tools=[look])}
    task = asyncio.create_task(executor(handlers, system).execute([Step("a", INFER, "x")]))

    async def is_asked() -> bool:
        return len(engine.asked) == 1

    await until(is_asked)
    child = next(e.run_id for e in await system.archive.runs(with_children=True) if e.listing.parent_id)
    await system.signal(signal(Signal.PAUSE, child))
    paused = await task
    assert paused.response.waiting_for is not None
    await system.signal(signal(Signal.RESUME, child))
    return paused.response.run_id


def test_a_plan_whose_step_was_resumed_is_told_once_the_step_has_ended() -> None:
    async def story() -> None:
        system = system_in_memory()
        run_id = await with_a_step_resumed(system, {"text": "late", "delay_ms": 100})
        assert (await system.result(run_id)).terminal_code is Ending.SUCCESS
        await system.close()

    play(story())


def test_who_waits_for_a_step_that_was_resumed_is_told_when_the_house_closes() -> None:
    async def story() -> None:
        system = system_in_memory()
        first: JsonObject = {**calls("look", at="x"), "delay_ms": 100}
        run_id = await with_a_step_resumed(system, first, {"text": "late", "delay_ms": 20_000})
        waiting = asyncio.create_task(system.result(run_id))
        await asyncio.sleep(0)
        await system.close()
        with pytest.raises(RemitError) as refused:
            await waiting
        assert refused.value.code == SYSTEM_CLOSED

    play(story())


@pytest.mark.parametrize("policy", [None, 3, {"max_steps": 1}])
def test_a_policy_that_is_none_is_refused(policy: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        executor({"shout": shout}, policy=policy)
    assert refused.value.code == PLAN_POLICY_INVALID
    assert "give a PlanPolicy" in refused.value.message


def test_a_text_of_a_class_of_its_own_is_kept_and_told_as_the_text_that_it_is(tmp_path: Path) -> None:
    class Markup(str):  # noqa: SLOT000  # as web frameworks have it
        """As web frameworks mark text that is safe to show."""

    async def play() -> None:
        plan = [Step("a", "f", "x"), Step("b", "g")]
        handlers = {"f": lambda step: Markup("<b>"), "g": lambda step: Markup(f"{step.input}!")}
        executor = PlanExecutor(handlers, home=tmp_path)
        result = await executor.execute(plan)
        assert result.outputs == {"a": "<b>", "b": "<b>!"}
        async with remit.open(tmp_path) as system:
            (entry,) = await system.archive.runs()
            assert (await system.archive.replay(entry.run_id)).verdict.value == "same"

    asyncio.run(play())
