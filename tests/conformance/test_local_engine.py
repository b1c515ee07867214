"""The local engine does what every engine must: with a tiny model written on the spot, and with the real one.

A model of this size cannot repeat a word or go on for long because it was asked to. So the engine is opened in a
situation by asking more of it than the check does: a grammar that leaves one answer, a prompt that takes long to read, a
file that is gone. What is asked, streamed, cancelled and refused is real.
"""

import asyncio
import re
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from remit.core.record import replace
from remit.core.run.inference import ModelInfo, ModelRequest, ModelResult
from remit.core.run.messages import user_message
from remit.inference.engine import Engine, StreamHandler
from remit.inference.local.engine import LocalEngine
from remit.inference.local.models import SMOLLM2, find_model
from remit.inference.local.server import WINDOW_MAX, LoadedModels
from remit.testing.conformance import engine as conformance
from remit.testing.conformance.engine import EngineCheck, Situation, checks_without
from tests.unit.inference.tiny_model import write_tiny_model

# Few enough that all checks together take the real model some seconds.
TOKENS = 8
# More than any model here generates or reads before it is cancelled.
TOKENS_MANY = 4000

LEFT_OUT: dict[EngineCheck, str] = {
    conformance.a_proposed_call_can_be_answered: "it knows no tools: calls are read from its text",
    conformance.streaming_changes_no_proposal: "it knows no tools: calls are read from its text",
    conformance.a_conversation_goes_on_after_its_calls: "it proposes none; shown calls are in tests/unit/inference",
    conformance.a_dropped_connection_is_a_fault_that_costs: "it runs in this process: there is no connection",
    conformance.an_answer_that_breaks_off_is_malformed: "it runs in this process; events are in tests/unit/inference",
    conformance.an_answer_that_nobody_counted_is_not_free: "its runtime counts every answer, or the answer is refused",
    conformance.a_thought_is_no_part_of_the_answer: "no model here thinks when it is told to; see tests/unit/inference",
}
CHECKS = checks_without(LEFT_OUT)


class Asked:
    """An engine of which more is asked than the check does."""

    def __init__(self, engine: Engine, change: Callable[[ModelRequest], ModelRequest]) -> None:
        self._engine = engine
        self._change = change

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        bounded = request if request.max_tokens else replace(request, max_tokens=TOKENS)
        return await self._engine.infer(self._change(bounded), on_chunk)

    def model_info(self) -> ModelInfo:
        return self._engine.model_info()


def as_it_is(request: ModelRequest) -> ModelRequest:
    return request


def repeating(request: ModelRequest) -> ModelRequest:
    """One answer is left: the last message."""
    word = request.messages[-1].content
    assert isinstance(word, str)
    assert re.fullmatch(r"[a-z0-9 ]+", word)
    return replace(request, grammar=f'root ::= "{word}"', max_tokens=32)


def speaking_long(request: ModelRequest) -> ModelRequest:
    return replace(request, grammar="root ::= [a-z] root", max_tokens=TOKENS_MANY)


def reading_long(request: ModelRequest) -> ModelRequest:
    """The prompt takes the real model longer to read than anybody waits; the tiny one is still speaking by then."""
    return replace(speaking_long(request), messages=(user_message("and so on " * 300),))


def misspelled(request: ModelRequest) -> ModelRequest:
    return replace(request, grammar="root ::= (")


def too_long(request: ModelRequest) -> ModelRequest:
    return replace(request, messages=(user_message("and " * WINDOW_MAX),))


def cut_short(request: ModelRequest) -> ModelRequest:
    """What was said of a text in a shape, when it was cut, is what cannot be read."""
    return replace(request, grammar='root ::= "{" [a-z]+ "}"', max_tokens=2)


CHANGES: dict[Situation, Callable[[ModelRequest], ModelRequest]] = {
    Situation.ANSWERS: as_it_is,
    Situation.REPEATS: repeating,
    Situation.FAILS: as_it_is,
    Situation.HANGS: reading_long,
    Situation.DRAWLS: speaking_long,
    Situation.BREAKS: misspelled,
    Situation.OVERFLOWS: too_long,
    Situation.GARBLES: cut_short,
}


def opener(path: Path, loaded: LoadedModels) -> conformance.OpenEngine:
    @asynccontextmanager
    async def open_engine(situation: Situation) -> AsyncIterator[Engine]:
        if situation is not Situation.FAILS:
            yield Asked(LocalEngine(path, loaded=loaded), CHANGES[situation])
            return
        gone = path.with_name(f"gone-{path.name}")
        shutil.copyfile(path, gone)
        engine = LocalEngine(gone, loaded=loaded)
        gone.unlink()
        yield Asked(engine, CHANGES[situation])

    return open_engine


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> conformance.OpenEngine:
    folder = tmp_path_factory.mktemp("models")
    return opener(write_tiny_model(folder / "tiny.gguf", llama__context_length=WINDOW_MAX), LoadedModels())


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> conformance.OpenEngine:
    # A second name for the same bytes, so that one beside it can be taken away.
    linked = tmp_path_factory.mktemp("models") / "smollm2.gguf"
    linked.symlink_to(find_model(SMOLLM2, base=Path("/"), folder=None))
    return opener(linked, LoadedModels())


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_engine_with_a_tiny_model_does_what_every_engine_must(
    check: EngineCheck, tiny: conformance.OpenEngine
) -> None:
    asyncio.run(check(tiny))


@pytest.mark.model
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_an_engine_with_the_real_model_does_what_every_engine_must(
    check: EngineCheck, smollm2: conformance.OpenEngine
) -> None:
    asyncio.run(check(smollm2))


@pytest.mark.model
def test_the_real_model_keeps_to_a_schema_and_says_the_same_with_the_same_seed() -> None:
    engine = LocalEngine(find_model(SMOLLM2, base=Path("/"), folder=None))
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 150}}}
    shaped = {**schema, "required": ["age"], "additionalProperties": False}
    asked = ModelRequest((user_message("How old is Ann? She is 42."),), max_tokens=16, temperature=0.9)

    async def play() -> None:
        answer = await engine.infer(replace(asked, schema=shaped))
        assert re.fullmatch(r'\{"age":(\d|[1-9]\d|1[0-4]\d|150)\}', answer.content), answer.content
        seeded = replace(asked, options={"seed": 7, "cache_prompt": False})
        assert (await engine.infer(seeded)).content == (await engine.infer(seeded)).content

    asyncio.run(play())
