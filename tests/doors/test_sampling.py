"""How a model is sampled, how long a run may take and who writes the system prompt can be said on every class."""

import asyncio
import math
import re
from pathlib import Path
from typing import Any

import pytest

from remit import (
    AgentLoop,
    Budget,
    Ending,
    ExecutionHints,
    InferHandler,
    Message,
    ModelInfo,
    ModelRequest,
    ModelResult,
    PlanExecutor,
    RedundantLoop,
    RequestRejected,
    SpecializedLoop,
    Step,
    system_message,
    user_message,
)
from tests.doors.desk import MOOD, Panel

GOOD = '{"mood":"good"}'
SAID: dict[str, Any] = {"temperature": 0.3, "top_p": 0.8, "options": {"seed": 7}}


class Prompts:
    """Makes a prompt, another one each time."""

    def __init__(self) -> None:
        self.made = 0

    def build_system_prompt(self) -> Message:
        """The next prompt."""
        self.made += 1
        return system_message(f"Be brief ({self.made}).")


def asked_by(which: str, panel: Any, home: Path, **said: Any) -> Any:
    """What one call of a class comes to."""
    match which:
        case "agent":
            return AgentLoop(panel, home=home, **said).chat_sync("hi")
        case "specialized":
            return SpecializedLoop(panel, schema=MOOD, home=home, **said).call_sync("hi")
        case "redundant":
            return RedundantLoop(panel, schema=MOOD, n=1, home=home, **said).call_sync("hi").response
        case "plan":
            plans = PlanExecutor({"infer": InferHandler(panel)}, home=home, **said)
            return plans.execute_sync([Step("a", "infer", "hi")]).response
        case _:
            loop = SpecializedLoop(panel, schema=MOOD, home=home, **said)
            return PlanExecutor({"loop": loop}, home=home).execute_sync([Step("a", "loop", "hi")]).response


CLASSES = ["agent", "specialized", "redundant", "plan"]


@pytest.mark.req("0.10")
@pytest.mark.parametrize("which", [*CLASSES, "step"])
def test_sampling_is_said_on_every_class_and_reaches_the_engine(which: str, tmp_path: Path) -> None:
    panel = Panel(GOOD)
    assert asked_by(which, panel, tmp_path, **SAID).terminal_code is Ending.SUCCESS
    sent = panel.asked[-1]
    assert (sent.temperature, sent.top_p, sent.options) == (0.3, 0.8, {"seed": 7})


def test_an_infer_handler_samples_as_it_says_unless_its_step_says_more(tmp_path: Path) -> None:
    panel = Panel("fine")
    handler = InferHandler(panel, sampling=ExecutionHints(temperature=0.0))
    plans = PlanExecutor({"infer": handler}, temperature=0.9, home=tmp_path)
    plans.execute_sync(
        [Step("a", "infer", "hi"), Step("b", "infer", ModelRequest((user_message("hi"),), temperature=0.5))]
    )
    assert [request.temperature for request in panel.asked] == [0.0, 0.5]


def test_what_a_request_does_not_say_of_its_sampling_is_as_its_handler_has_it(tmp_path: Path) -> None:
    panel, words = Panel("fine"), (user_message("hi"),)
    own = ExecutionHints(temperature=0.9, top_p=0.5, options={"seed": 1, "mirostat": 2})
    plans = PlanExecutor({"infer": InferHandler(panel, sampling=own)}, temperature=0.3, top_p=0.4, home=tmp_path)
    plans.execute_sync(
        [
            Step("bare", "infer", ModelRequest(words)),
            Step("warm", "infer", ModelRequest(words, temperature=0.1)),
            Step("top", "infer", ModelRequest(words, top_p=0.11)),
            Step("seeded", "infer", ModelRequest(words, options={"seed": 7})),
        ]
    )
    sent = [(asked.temperature, asked.top_p, asked.options["seed"], asked.options["mirostat"]) for asked in panel.asked]
    assert sent == [(0.9, 0.5, 1, 2), (0.1, 0.5, 1, 2), (0.9, 0.11, 1, 2), (0.9, 0.5, 7, 2)]


@pytest.mark.req("0.10")
@pytest.mark.parametrize("which", CLASSES)
def test_a_run_that_takes_longer_than_its_class_allows_is_cancelled(which: str, tmp_path: Path) -> None:
    class Slow(Panel):
        async def infer(self, request: Any, on_chunk: Any = None) -> ModelResult:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
            await asyncio.Event().wait()
            raise AssertionError

    response = asked_by(which, Slow(GOOD), tmp_path, timeout_ms=150)
    assert (response.terminal_code, response.error.code) == (Ending.TIMEOUT, "CANCELLED_TIMEOUT")


def test_a_loop_with_a_timeout_is_no_step(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected, match="give its steps a timeout_ms"):
        asked_by("step", Panel(GOOD), tmp_path, timeout_ms=150)


@pytest.mark.req("1.3", "1.18")
@pytest.mark.parametrize("which", [*CLASSES, "step"])
def test_a_provider_of_prompts_is_taken_wherever_a_system_prompt_is_and_asked_for_every_run(
    which: str, tmp_path: Path
) -> None:
    panel, prompts = Panel(GOOD), Prompts()
    asked_by(which, panel, tmp_path, system_prompt=prompts)
    assert str(panel.asked[-1].messages[0].content) == "Be brief (1)."


def test_a_conversation_has_its_prompt_made_anew_for_every_exchange(tmp_path: Path) -> None:
    panel, prompts = Panel("fine"), Prompts()
    agent = AgentLoop(panel, system_prompt=prompts, home=tmp_path)
    agent.chat_sync("hi")
    agent.chat_sync("again")
    assert [str(request.messages[0].content) for request in panel.asked] == ["Be brief (1).", "Be brief (2)."]


@pytest.mark.req("1.3")
@pytest.mark.parametrize("made", [OSError("no paper"), 7, user_message("hi")])
def test_a_provider_that_makes_no_prompt_is_refused_with_a_code(made: Any, tmp_path: Path) -> None:
    class Breaks:
        def build_system_prompt(self) -> Any:
            if isinstance(made, Exception):
                raise made
            return made

    with pytest.raises(RequestRejected) as refused:
        AgentLoop(Panel("fine"), system_prompt=Breaks(), home=tmp_path).chat_sync("hi")
    assert refused.value.code == "PROMPT_PROVIDER_FAILED"


class Nameless(Panel):
    """A model of which only its name and its window are known."""

    def model_info(self) -> ModelInfo:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """No price."""
        return ModelInfo("plain", 8_192)


@pytest.mark.req("1.12")
def test_an_engine_that_says_only_its_name_and_its_window_can_run(tmp_path: Path) -> None:
    response = AgentLoop(Nameless("fine"), home=tmp_path).chat_sync("hi")
    assert (response.terminal_code, response.content) == (Ending.SUCCESS, "fine")
    assert "the price of model 'plain' is unknown" in response.warnings[0]


@pytest.mark.req("1.12")
def test_under_a_cap_of_money_that_the_user_set_a_price_must_be_known(tmp_path: Path) -> None:
    capped = Budget(inference_cost_microusd=1_000_000)
    response = AgentLoop(Nameless("fine"), budget=capped, home=tmp_path).chat_sync("hi")
    assert response.terminal_code is Ending.BUDGET_EXHAUSTED


NO_JSON = {
    "hints.options.seed=nan ": {"seed": math.nan},
    "hints.options.a.b[1]=inf ": {"a": {"b": [1, math.inf]}},
    "hints.options.raw=b'x' ": {"raw": b"x"},
    "hints.options.a has the key 1,": {"a": {1: 2}},
}


@pytest.mark.parametrize("named", NO_JSON)
@pytest.mark.parametrize("which", ["agent", "specialized", "redundant", "plan", "loop as a step"])
def test_options_that_json_cannot_hold_are_refused_by_their_path(which: str, named: str, tmp_path: Path) -> None:
    with pytest.raises(RequestRejected, match=re.escape(f"REQUEST_HINT_INVALID: {named}")):
        asked_by(which, Panel(GOOD), tmp_path, options=NO_JSON[named])


def test_options_of_steps_that_json_cannot_hold_are_refused_by_their_path(tmp_path: Path) -> None:
    options = {"seed": [math.inf]}
    with pytest.raises(RequestRejected, match=r"REQUEST_HINT_INVALID: sampling\.options\.seed\[0\]=inf "):
        InferHandler(Panel(GOOD), sampling=ExecutionHints(options=options))
    step = Step("a", "infer", ModelRequest((user_message("hi"),), options=options))
    with pytest.raises(RequestRejected, match=r"hints\.options\.seed\[0\]=inf "):
        PlanExecutor({"infer": InferHandler(Panel(GOOD))}, home=tmp_path).execute_sync([step])
