"""Handlers: what they take, what they give, and what they refuse to be made of."""

from collections.abc import Sequence
from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.run.messages import Message, system_message
from remit.core.run.request_checks import REQUEST_TOOLS_INVALID
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.core.work.plan import ContextFor, RerankInput, Step
from remit.core.work.values import ValueKind
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.patterns.handlers import (
    PLAN_HANDLER_INVALID,
    CandidateReranker,
    HandlerUnusable,
    InferHandler,
    RerankHandler,
    RetrieveHandler,
    ToolHandler,
    ValidateHandler,
    is_lacking,
    unusable_handler,
)
from remit.tool.registry import Registry
from tests.unit.orchestrate.house import look
from tests.unit.orchestrate.stage import play

TEA = Candidate("tea", "tea.md", 0.5, ScoreMaker.RETRIEVAL)
MILK = Candidate("milk", "milk.md", 0.9, ScoreMaker.RETRIEVAL)


class Finds:
    def __init__(self, *found: Candidate) -> None:
        self.found = found

    def find(self, query: str) -> Sequence[Candidate]:
        return self.found


class Builds:
    async def build(self, query: str) -> Sequence[Message]:
        return [system_message(query)]


class Backwards:
    def rerank(self, query: str, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return tuple(reversed(candidates))


async def alone(query: str) -> list[Candidate]:
    return [TEA]


@pytest.mark.req("2.16")
@pytest.mark.parametrize(
    ("provider", "output", "gives"),
    [
        (Finds(TEA), RerankInput("q", (TEA,)), ValueKind.CANDIDATES),
        (Finds(), RerankInput("q"), ValueKind.CANDIDATES),
        (Builds(), ContextFor("q", (system_message("q"),)), ValueKind.MESSAGES),
        (alone, RerankInput("q", (TEA,)), ""),
        (lambda query: [], RerankInput("q"), ""),
        (lambda query: ContextFor(query, ()), ContextFor("q"), ""),
    ],
)
def test_evidence_is_found_by_a_provider_or_by_a_function(provider: Any, output: Any, gives: str) -> None:
    handler = RetrieveHandler(provider)
    assert handler.gives == gives
    assert play(handler(Step("find", "retrieve", "q"))).output == output


@pytest.mark.req("2.16", "2.17")
@pytest.mark.parametrize("reranker", [Backwards(), lambda query, found: found[::-1]])
def test_candidates_are_reordered_with_their_query(reranker: Any) -> None:
    step = Step("order", "rerank", RerankInput("q", (TEA, MILK)))
    assert play(RerankHandler(reranker)(step)).output == RerankInput("q", (MILK, TEA))


def test_anything_with_a_rerank_is_a_reranker() -> None:
    assert isinstance(Backwards(), CandidateReranker)


class Judges:
    def check(self, value: Any) -> list[str]:
        return ["no"]


def objects(text: str) -> None:
    raise ValueError(text)


@pytest.mark.req("2.16")
@pytest.mark.parametrize(
    ("check", "problems"),
    [
        (lambda text: None, None),
        (lambda text: True, None),
        (lambda text: "", None),
        (lambda text: [], None),
        (lambda text: False, ("the check returned False",)),
        (lambda text: "bad", ("bad",)),
        (lambda text: ["bad", "worse"], ["bad", "worse"]),
        (objects, ("q",)),
        (Judges(), ["no"]),
    ],
)
def test_a_check_passes_a_text_or_says_what_is_wrong(check: Any, problems: Any) -> None:
    assert play(ValidateHandler(check)(Step("look", "validate", "q"))) == problems


def test_a_check_that_raises_without_words_is_named() -> None:
    assert play(ValidateHandler(objects)(Step("look", "validate", ""))) == ("the check raised ValueError",)


@pytest.mark.req("2.16")
@pytest.mark.parametrize("handler", [RetrieveHandler(None), RerankHandler(None), ValidateHandler(None)])
def test_a_handler_of_code_without_its_part_says_so_when_it_is_called(handler: Any) -> None:
    assert is_lacking(handler)
    assert unusable_handler(handler) is None
    with pytest.raises(HandlerUnusable, match="was given"):
        play(handler(Step("a", "b", "q")))


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (InferHandler(None), "infer handler: no engine was given"),
        (ToolHandler(None), "tool handler: no tools were given"),
    ],
)
def test_a_handler_without_engine_or_tools_has_code_in_its_place_that_says_so(handler: Any, message: str) -> None:
    refuse = unusable_handler(handler)
    assert refuse is not None
    with pytest.raises(HandlerUnusable, match=message):
        refuse(Step("a", "b"))


def test_handlers_that_have_what_they_need_lack_nothing() -> None:
    registry = Registry([look])
    assert ToolHandler(registry).tools is registry
    whole = (InferHandler(ScriptedEngine([{"text": "x"}]), tools=registry), ToolHandler([look]), lambda step: step)
    assert [(is_lacking(handler), unusable_handler(handler)) for handler in whole] == [(False, None)] * 3


@pytest.mark.parametrize("make", [RetrieveHandler, RerankHandler, ValidateHandler])
def test_what_could_not_work_is_refused_when_the_handler_is_made(make: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        make(7)
    assert refused.value.code == PLAN_HANDLER_INVALID
    assert "a int was given; give" in refused.value.message


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (lambda: InferHandler(None, system_prompt=3), PLAN_HANDLER_INVALID, "give a text as system_prompt"),  # type: ignore[arg-type]
        (lambda: InferHandler(None, max_tokens="x"), PLAN_HANDLER_INVALID, "max_tokens='x' is outside 0 to "),  # type: ignore[arg-type]
        (lambda: InferHandler(None, max_tokens=-5), PLAN_HANDLER_INVALID, "max_tokens=-5 is outside 0 to "),
        (lambda: InferHandler(None, max_tokens=True), PLAN_HANDLER_INVALID, "max_tokens=True is outside 0 to "),
        (lambda: InferHandler(None, tools=3), REQUEST_TOOLS_INVALID, "tools=3 are no tools; give a list"),  # type: ignore[arg-type]
        (lambda: ToolHandler(3), REQUEST_TOOLS_INVALID, "tools=3 are no tools; give a list"),  # type: ignore[arg-type]
        (lambda: ToolHandler("look"), REQUEST_TOOLS_INVALID, "tools='look' are no tools; give a list"),
    ],
)
def test_a_handler_that_no_request_could_be_made_with_is_refused_when_it_is_made(
    make: Any, code: str, words: str
) -> None:
    with pytest.raises(RequestRejected) as refused:
        make()
    assert refused.value.code == code
    assert words in refused.value.message
