"""A chain asks the next engine when one cannot serve, and never spends more than was reserved."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.run.inference import (
    SERVED_CALLS_AT_ONCE,
    TEMPLATE_TOKENS_MAX,
    ModelInfo,
    ModelRequest,
    ModelResult,
    Price,
)
from remit.core.run.messages import user_message
from remit.core.run.usage import TokenUsage
from remit.inference.chain import MEMBERS_MAX, REST_S, ChainEngine, Ear
from remit.inference.engine import Engine, EngineFault, StreamChunk, StreamHandler
from remit.inference.scripted.engine import ScriptedEngine
from remit.inference.specs import EngineSettings, engine_source, engine_spec, open_engine

HELLO = ModelRequest((user_message("hello"),))
UNAVAILABLE, BROKEN = ErrorCode.INFERENCE_MODEL_UNAVAILABLE, ErrorCode.INFERENCE_ENGINE_ERROR
FREE = Price(0, 0)


class Member:
    """An engine that fails as it is told, and answers with its name afterwards."""

    def __init__(
        self, name: str, *faults: EngineFault, info: ModelInfo | None = None, signs: str | None = None
    ) -> None:
        self._info = info or ModelInfo(name, 100, FREE)
        self._signs = self._info.name if signs is None else signs
        self._faults = list(faults)
        self.asked = 0

    async def infer(self, request: ModelRequest, on_chunk: StreamHandler | None = None) -> ModelResult:
        self.asked += 1
        if self._faults:
            raise self._faults.pop(0)
        if on_chunk is not None:
            on_chunk(StreamChunk(self._info.name))
        return ModelResult(self._info.name, model=self._signs)

    def model_info(self) -> ModelInfo:
        return self._info


class Time:
    """A clock that is set by hand."""

    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def failing(code: ErrorCode = UNAVAILABLE, **options: object) -> EngineFault:
    return EngineFault(code, f"no ({code})", **options)  # type: ignore[arg-type]


def answers(chain: ChainEngine, count: int = 1) -> Sequence[str]:
    return [asyncio.run(chain.infer(HELLO)).model for _ in range(count)]


def fault_of(chain: ChainEngine) -> EngineFault:
    with pytest.raises(EngineFault) as raised:
        asyncio.run(chain.infer(HELLO))
    return raised.value


def refusal(*infos: ModelInfo) -> str:
    with pytest.raises(RequestRejected) as raised:
        ChainEngine([Member("", info=info) for info in infos])
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    return raised.value.message


def test_the_first_member_that_serves_answers_and_signs() -> None:
    first, second = Member("a"), Member("b")
    assert answers(ChainEngine([first, second]), 2) == ["a", "a"]
    assert second.asked == 0


@pytest.mark.parametrize("code", [UNAVAILABLE, BROKEN], ids=lambda code: code.value)
def test_the_next_member_is_asked_when_one_cannot_serve(code: ErrorCode, caplog: pytest.LogCaptureFixture) -> None:
    chunks: list[StreamChunk] = []
    chain = ChainEngine([Member("a", failing(code)), Member("b", failing(code)), Member("c")])
    with caplog.at_level(logging.WARNING):
        result = asyncio.run(chain.infer(HELLO, chunks.append))
    assert (result.content, result.model) == ("c", "c")
    assert "".join(chunk.text for chunk in chunks) == result.content
    assert [record.getMessage() for record in caplog.records] == [
        "model a cannot serve; the next of the chain is asked",
        "model b cannot serve; the next of the chain is asked",
    ]


@pytest.mark.parametrize("code", [ErrorCode.INFERENCE_CONTEXT_EXCEEDED, ErrorCode.INFERENCE_MALFORMED_RESPONSE])
def test_any_other_failure_is_the_chains(code: ErrorCode) -> None:
    second = Member("b")
    assert fault_of(ChainEngine([Member("a", failing(code)), second])).code is code
    assert second.asked == 0


@pytest.mark.parametrize("cost", [{"was_cut": True}, {"usage": TokenUsage(5)}])
def test_a_call_that_may_have_cost_something_is_not_paid_for_twice(cost: dict[str, object]) -> None:
    second = Member("b")
    chain = ChainEngine([Member("a", failing(BROKEN, **cost)), second])
    assert fault_of(chain).message == f"no ({BROKEN})"
    assert second.asked == 0
    # The run asks again, and now the next one is asked first.
    assert answers(chain) == ["b"]


def test_a_call_of_which_something_was_heard_is_not_answered_by_another() -> None:
    heard: list[StreamChunk] = []
    second = Member("b")
    breaks_off = ScriptedEngine([{"error": "INFERENCE_ENGINE_ERROR", "chunks": ["half an ans"], "usage": {}}])
    with pytest.raises(EngineFault):
        asyncio.run(ChainEngine([breaks_off, second]).infer(HELLO, heard.append))
    assert [chunk.text for chunk in heard] == ["half an ans"]
    assert second.asked == 0


def test_a_member_that_failed_rests_and_is_asked_last_until_it_has_rested() -> None:
    clock = Time()
    first, second = Member("a", failing()), Member("b")
    chain = ChainEngine([first, second], clock)
    assert answers(chain, 3) == ["b", "b", "b"]
    assert first.asked == 1
    clock.now_s += REST_S
    assert answers(chain, 2) == ["a", "a"]


def test_when_all_rest_all_are_asked_in_their_order() -> None:
    first, second = Member("a", failing(retry_after_s=9)), Member("b", failing(BROKEN, retry_after_s=5))
    chain = ChainEngine([first, second])
    fault = fault_of(chain)
    assert (fault.code, fault.was_cut, fault.retry_after_s) == (BROKEN, False, 5)
    assert fault.message == f"none of 2 models can serve: a: no ({UNAVAILABLE}); b: no ({BROKEN})"
    assert answers(chain) == ["a"]


def test_members_that_all_fail_alike_fail_with_their_code() -> None:
    assert fault_of(ChainEngine([Member("a", failing()), Member("b", failing())])).code is UNAVAILABLE


def test_the_message_about_many_failures_is_bounded() -> None:
    members = [Member(f"m{n}", EngineFault(BROKEN, "x" * 10_000)) for n in range(MEMBERS_MAX)]
    assert len(fault_of(ChainEngine(members)).message) < 3_000


def test_a_reservation_for_the_chain_is_enough_for_any_member() -> None:
    infos = [ModelInfo("a", 500, Price(1, 9)), ModelInfo("b", 300, Price(5, 2)), ModelInfo("c", 400, FREE)]
    chain = ChainEngine([Member("", info=info) for info in infos])
    assert chain.model_info() == ModelInfo("a|b|c", 300, Price(5, 9))


def test_a_price_that_nobody_knows_of_one_is_unknown_of_all() -> None:
    chain = ChainEngine([Member("a"), Member("", info=ModelInfo("b", 100, None))])
    assert chain.model_info().price is None


def test_members_may_be_of_different_kinds_and_the_weakest_says_what_is_reserved() -> None:
    small = ModelInfo("small", 300, FREE, calls_by_grammar=True, template_tokens=7)
    served = ModelInfo("served", 500, Price(3, 4), template_tokens=9)
    for members in ([served, small], [small, served]):
        chain = ChainEngine([Member("", info=info) for info in members])
        name = "|".join(info.name for info in members)
        assert chain.model_info() == ModelInfo(name, 300, Price(3, 4), calls_by_grammar=True, template_tokens=9)
    assert not ChainEngine([Member("a"), Member("b")]).model_info().calls_by_grammar


def test_each_member_is_asked_in_the_way_that_suits_it() -> None:
    first, second = Member("a", failing()), Member("b")
    asked: list[str] = []
    heard: list[StreamChunk] = []

    async def ask(member: Engine, ear: Ear) -> ModelResult:
        asked.append(member.model_info().name)
        return await member.infer(HELLO, ear.before(heard.append))

    result = asyncio.run(ChainEngine([first, second]).first_served(ask))
    assert (asked, result.model, heard) == (["a", "b"], "b", [StreamChunk("b")])


def test_an_answer_that_is_not_signed_is_signed_with_the_name_of_the_member() -> None:
    assert answers(ChainEngine([Member("a", failing()), Member("b", signs="")])) == ["b"]


def test_an_answer_of_a_chain_within_a_chain_is_signed_by_who_gave_it() -> None:
    inner = ChainEngine([Member("b", failing()), Member("c")])
    chain = ChainEngine([Member("a", failing()), inner])
    assert (chain.model_info().name, answers(chain)) == ("a|b|c", ["c"])


@pytest.mark.parametrize("count", [0, 1, MEMBERS_MAX + 1])
def test_a_chain_has_a_few_members(count: int) -> None:
    assert f"has {count} members; it takes from 2 to {MEMBERS_MAX}" in refusal(*[ModelInfo("a", 1)] * count)


def script(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(f"replies:\n  - {text}\n")
    return path


def test_a_spec_with_a_bar_opens_a_chain_and_the_chains_spec_the_same_again(tmp_path: Path) -> None:
    spec = "openai:a?price=1/2&url=http://127.0.0.1:1/v1&rpm=60 | ollama:b|anthropic:c?url=http://127.0.0.1:2"
    chain = open_engine(spec, base=tmp_path)
    assert isinstance(chain, ChainEngine)
    price = Price(1_000_000, 2_000_000)
    name = "openai:a|ollama:b|anthropic:c"
    info = ModelInfo(name, 8192, price, template_tokens=TEMPLATE_TOKENS_MAX, calls_at_once=SERVED_CALLS_AT_ONCE)
    assert chain.model_info() == info
    assert engine_spec(chain) == (
        "openai:a?url=http://127.0.0.1:1/v1&price=1/2&rpm=60&breaker=5/30"
        "|ollama:b?url=http://127.0.0.1:11434/v1"
        "|anthropic:c?url=http://127.0.0.1:2"
    )
    again = open_engine(engine_spec(chain), base=tmp_path)
    assert (engine_spec(again), again.model_info()) == (engine_spec(chain), chain.model_info())
    assert repr(chain) == f"ChainEngine({chain.spec!r})"


def test_a_chain_falls_back_from_a_server_that_is_not_there(tmp_path: Path) -> None:
    script(tmp_path, "b.yaml", "text: hello")
    chain = open_engine("openai:a?url=http://127.0.0.1:9/v1|scripted:b.yaml", base=tmp_path)
    result = asyncio.run(chain.infer(HELLO))
    assert (result.content, result.model) == ("hello", "scripted:b")


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("openai:gpt-4o-mini|ollama:b", "set OPENAI_API_KEY"),
        ("ollama:b|anthropic:c", "set ANTHROPIC_API_KEY"),
        ("ollama:b|locl", "engine 'locl' is of no known kind"),
        ("ollama:b|", "engine '' is of no known kind"),
        ("|ollama:b", "engine '' is of no known kind"),
        ("ollama:a|scripted:none.yaml", "none.yaml"),
    ],
)
def test_a_member_that_cannot_be_opened_is_refused_with_its_way_out(spec: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as raised:
        open_engine(spec, base=tmp_path, settings=EngineSettings())
    assert problem in raised.value.message


def test_a_bar_in_the_name_of_a_file_makes_no_chain(tmp_path: Path) -> None:
    path = script(tmp_path, "a|b.yaml", "text: hello")
    engine = open_engine("scripted:a|b.yaml", base=tmp_path)
    assert isinstance(engine, ScriptedEngine)
    assert open_engine(engine_spec(engine), base=Path("/")).model_info() == engine.model_info()
    assert str(path) in engine_spec(engine)


def test_a_chain_relies_on_the_file_of_its_member_and_on_no_more_than_one(tmp_path: Path) -> None:
    script(tmp_path, "a.yaml", "text: hello")
    chain = open_engine("ollama:m|scripted:a.yaml", base=tmp_path)
    source = engine_source(chain)
    assert source is not None
    assert source.place == str(tmp_path / "a.yaml")
    assert engine_source(open_engine("ollama:m|vllm:m", base=tmp_path)) is None
    with pytest.raises(RequestRejected, match="2 members rely on a file"):
        open_engine("scripted:a.yaml|scripted:a.yaml", base=tmp_path)


def test_a_chain_with_a_member_made_on_the_spot_cannot_be_opened_again() -> None:
    assert engine_spec(ChainEngine([Member("a"), Member("b")])) == ""
