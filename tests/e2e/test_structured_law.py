"""The real local model, held to a shape while it speaks, answers in that shape at the first attempt, every time.

The same prompts are asked without holding the model to anything, so that everybody sees what the constraint is worth.
"""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit import SpecializedLoop
from remit.assemble import system_in_memory
from remit.constraint.stack import Demand, constrain
from remit.core.failure import Ending, ErrorCode
from remit.core.limits.budget import Budget
from remit.core.run.contract import ExecutionHints, OutputContract, SystemRequest, SystemResponse
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import user_message
from remit.core.schema.json_schema import compile_schema
from remit.inference.engine import Engine, StreamHandler
from remit.inference.specs import open_engine
from remit.orchestrate.setup.kit import Terms, engine_kit
from remit.tool.registry import Registry
from tests.e2e.conftest import FIGURE
from tests.e2e.shapes import GRAMMARS, SCHEMAS, TOKENS, Shaped, Spelled

pytestmark = pytest.mark.model

# Enough to begin any of the shapes, and to finish none.
TOKENS_FEW = 4
SAMPLE = ("person", "ticket", "tagged", "date")
SAMPLE_GRAMMARS = 2

# Nothing is repeated, so that no test waits.
AT_ONCE = Budget(retries=0)

Recorder = Callable[[str, object], None]


class Overheard:
    """An engine, and every answer it gave as it gave it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.said: list[str] = []

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        result = await self._engine.infer(request, on_chunk)
        self.said.append(result.content)
        return result

    def model_info(self) -> ModelInfo:
        return self._engine.model_info()


@pytest.fixture(scope="module")
def engine() -> Engine:
    """The local model that is installed."""
    return open_engine("local", base=Path.cwd())


def prompt_of(case: Shaped | Spelled) -> str:
    """What is asked. An example is shown, so that a model that is not held to the shape has a chance."""
    if isinstance(case, Spelled):
        return f"{case.prompt}\nAnswer in the form of this example: {case.example}"
    return f"{case.prompt}\nAnswer with JSON alone, in the form of this example: {json.dumps(case.example)}"


def structured(engine: Engine, case: Shaped, prompt: str, **terms: Any) -> SystemResponse:
    loop = SpecializedLoop(engine, schema=case.schema, system=system_in_memory(), **{"max_tokens": TOKENS, **terms})
    return loop.call_sync(prompt, strict=True)


def spelled(engine: Engine, case: Spelled, *, tokens: int = TOKENS, budget: Budget = Budget()) -> SystemResponse:
    async def scene() -> SystemResponse:
        system = system_in_memory()
        output, hints = OutputContract(grammar=case.grammar), ExecutionHints(max_tokens=tokens)
        request = SystemRequest((user_message(prompt_of(case)),), output=output, hints=hints)
        try:
            return await system.run(request, engine_kit(engine, Registry(())), Terms(budget=budget))
        finally:
            await system.close()

    return asyncio.run(scene())


def unconstrained(engine: Engine, case: Shaped | Spelled) -> str:
    """What the model says to the same words, at the same temperature, with nothing to hold it."""
    request = ModelRequest((user_message(prompt_of(case)),), max_tokens=TOKENS, temperature=0.0)
    return asyncio.run(engine.infer(request)).content


def fits_at_once(engine: Engine, case: Shaped, prompt: str, **terms: Any) -> bool:
    """One answer, which is the value as it stands."""
    heard = Overheard(engine)
    response = structured(heard, case, prompt, **terms)
    if response.terminal_code is not Ending.SUCCESS or len(heard.said) != 1:
        return False
    value = json.loads(heard.said[0])
    return compile_schema(case.schema).is_valid(value) and bool(value == response.structured_output)


def is_spelled_at_once(engine: Engine, case: Spelled) -> bool:
    heard = Overheard(engine)
    response = spelled(heard, case)
    is_right = re.fullmatch(case.expression, response.content) is not None
    return response.terminal_code is Ending.SUCCESS and heard.said == [response.content] and is_right


def is_coded_without_value(response: SystemResponse) -> bool:
    assert response.error is not None
    assert "reached its limit of" in response.error.message
    has_value = response.structured_output is not None
    # What there is of the text may come along, and then it says that it was cut.
    is_marked = not response.content or any("was cut" in warning for warning in response.warnings)
    return response.error.code == ErrorCode.INFERENCE_MALFORMED_RESPONSE and not has_value and is_marked


def fits(case: Shaped, said: str, *, repair: bool) -> bool:
    return constrain(said, Demand(case.schema), repair=repair).ok


@pytest.mark.req("1.23", "2.9")
def test_a_sample_of_shapes_is_kept_at_the_first_attempt(engine: Engine) -> None:
    cases = [case for case in SCHEMAS if case.name in SAMPLE]
    missed = [case.name for case in cases if not fits_at_once(engine, case, case.prompt)]
    missed += [case.name for case in GRAMMARS[:SAMPLE_GRAMMARS] if not is_spelled_at_once(engine, case)]
    assert (len(cases), missed) == (len(SAMPLE), [])


@pytest.mark.req("0.11", "2.30")
def test_an_answer_that_was_cut_is_a_coded_failure_and_no_value(engine: Engine) -> None:
    assert is_coded_without_value(
        structured(engine, SCHEMAS[0], SCHEMAS[0].prompt, max_tokens=TOKENS_FEW, budget=AT_ONCE)
    )
    assert is_coded_without_value(spelled(engine, GRAMMARS[0], tokens=TOKENS_FEW, budget=AT_ONCE))


@pytest.mark.soak
@pytest.mark.req("1.23", "2.9")
def test_every_schema_is_kept_at_the_first_attempt(engine: Engine, record_property: Recorder) -> None:
    free = [(case, unconstrained(engine, case)) for case in SCHEMAS]
    held = [case for case in SCHEMAS if fits_at_once(engine, case, prompt_of(case))]
    # Without an example nothing is left to copy.
    bare = [case for case in SCHEMAS if fits_at_once(engine, case, case.prompt)]
    figures: dict[str, Any] = {
        "held to it while decoding": len(held),
        "held to it while decoding, without an example": len(bare),
        "not held to it": sum(fits(case, said, repair=False) for case, said in free),
        "not held to it, repaired afterwards": sum(fits(case, said, repair=True) for case, said in free),
    }
    for name, count in figures.items():
        record_property(f"{FIGURE}answers that fit their schema, of {len(SCHEMAS)}, {name}", count)
    assert [case.name for case in SCHEMAS if case not in held or case not in bare] == []


@pytest.mark.soak
@pytest.mark.req("1.23")
def test_every_grammar_is_kept_at_the_first_attempt(engine: Engine, record_property: Recorder) -> None:
    said = [unconstrained(engine, case).rstrip() for case in GRAMMARS]
    # A line end that is missing at the very end is no fault of a model that is held to no shape.
    endings = [(case, text) for case, text in zip(GRAMMARS, said, strict=True)]
    free = sum(any(re.fullmatch(case.expression, text + end) for end in ("", "\n")) for case, text in endings)
    missed = [case.name for case in GRAMMARS if not is_spelled_at_once(engine, case)]
    record_property(
        f"{FIGURE}answers that follow their grammar, of {len(GRAMMARS)}, held to it", len(GRAMMARS) - len(missed)
    )
    record_property(f"{FIGURE}answers that follow their grammar, of {len(GRAMMARS)}, not held to it", free)
    assert missed == []


@pytest.mark.soak
@pytest.mark.req("2.30")
def test_every_schema_that_is_cut_is_a_coded_failure_and_no_value(engine: Engine) -> None:
    for case in SCHEMAS:
        cut = structured(engine, case, prompt_of(case), max_tokens=TOKENS_FEW, budget=AT_ONCE)
        assert is_coded_without_value(cut), case.name
