"""Servers of a user's own go by their names, need no key and cost nothing."""

import asyncio
from pathlib import Path

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.run.inference import ModelRequest, Price
from remit.core.run.messages import user_message
from remit.inference.engine import StreamChunk
from remit.inference.openai.presets import URLS
from remit.inference.specs import EngineSettings, engine_spec, open_engine
from tests.conformance.chat_server import Call, Peer, serving

KEY = "sk-very-secret-0123456789"
SETTINGS = EngineSettings(openai_base_url="https://other.example/v1", openai_api_key=KEY)


@pytest.mark.parametrize("kind", URLS)
def test_a_preset_asks_its_server_where_that_listens_for_nothing(kind: str, tmp_path: Path) -> None:
    engine = open_engine(f"{kind}:qwen3:8b", base=tmp_path, settings=SETTINGS)
    assert engine_spec(engine) == f"{kind}:qwen3:8b?url={URLS[kind]}"
    info = engine.model_info()
    assert (info.name, info.price, info.calls_by_grammar) == (f"{kind}:qwen3:8b", Price(0, 0), False)
    assert repr(engine) == f"PresetEngine('{kind}:qwen3:8b?url={URLS[kind]}')"


@pytest.mark.parametrize(
    "spec",
    [
        "ollama:qwen3",
        "vllm:Qwen/Qwen3-8B?window=40960",
        "vllm:m?url=http://127.0.0.1:9000/v1&price=1/2",
        "vllm:m?url=https://gpu.example/v1",
        "ollama:m?concurrency=2&rpm=60",
        "vllm:m?grammars=guided_grammar&thinking=left&schemas=strict",
    ],
)
def test_the_spec_of_a_preset_opens_the_same_again(spec: str, tmp_path: Path) -> None:
    engine = open_engine(spec, base=tmp_path, settings=SETTINGS)
    again = open_engine(engine_spec(engine), base=tmp_path, settings=EngineSettings(openai_api_key=KEY))
    assert (engine_spec(again), again.model_info()) == (engine_spec(engine), engine.model_info())


def test_another_machine_needs_a_key_like_any_other(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected, match="set OPENAI_API_KEY") as raised:
        open_engine("vllm:m?url=https://gpu.example/v1", base=tmp_path)
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE


@pytest.mark.parametrize("spec", ["ollama:m?window=0", "ollama:?window=5", "ollama:m?speed=1"])
def test_what_cannot_be_opened_is_refused_in_the_name_of_the_preset(spec: str, tmp_path: Path) -> None:
    with pytest.raises(RequestRejected) as raised:
        open_engine(spec, base=tmp_path)
    assert raised.value.message.startswith("engine 'ollama:")


def test_an_empty_url_is_none(tmp_path: Path) -> None:
    assert engine_spec(open_engine("ollama:m?url=", base=tmp_path, settings=SETTINGS)).endswith(URLS["ollama"])


def test_a_thought_aloud_is_reasoning_and_no_key_is_sent(tmp_path: Path) -> None:
    async def play(call: Call, peer: Peer) -> None:
        await peer.says("<thi", "nk>h", "m</think>", "\n\nHel", "lo")

    async def scenario() -> None:
        async with serving(play) as server:
            engine = open_engine(f"ollama:tiny?url={server.url}", base=tmp_path, settings=SETTINGS)
            chunks: list[StreamChunk] = []
            result = await engine.infer(ModelRequest((user_message("hello"),)), chunks.append)
            assert (result.content, result.reasoning, result.model) == ("Hello", "hm", "ollama:tiny")
            assert "".join(chunk.text for chunk in chunks) == "Hello"
            assert server.calls[0].headers["authorization"] == "Bearer none"

    asyncio.run(scenario())


GRAMMAR = 'root ::= "yes"'


@pytest.mark.parametrize(
    ("spec", "sent"),
    [
        ("vllm:tiny?url={url}", {"structured_outputs": {"grammar": GRAMMAR}}),
        ("vllm:tiny?url={url}&grammars=guided_grammar&thinking=left", {"guided_grammar": GRAMMAR}),
        ("ollama:tiny?url={url}", {}),
        ("ollama:tiny?url={url}&grammars=grammar&rpm=60", {"grammar": GRAMMAR}),
        ("openai:tiny?url={url}", {"grammar": GRAMMAR}),
    ],
)
def test_a_grammar_is_sent_in_the_dialect_of_the_server(spec: str, sent: dict[str, object], tmp_path: Path) -> None:
    async def play(call: Call, peer: Peer) -> None:
        await peer.says("yes")

    async def scenario() -> None:
        async with serving(play) as server:
            engine = open_engine(spec.replace("{url}", server.url), base=tmp_path, settings=SETTINGS)
            await engine.infer(ModelRequest((user_message("hello"),), grammar=GRAMMAR))
            body = server.calls[0].body
            names = ("grammar", "guided_grammar", "structured_outputs")
            assert {name: body[name] for name in names if name in body} == sent
            assert ("chat_template_kwargs" in body) == ("thinking=left" not in spec and "ollama" not in spec)

    asyncio.run(scenario())
