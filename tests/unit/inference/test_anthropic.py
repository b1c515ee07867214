"""The engine for the Messages API, asked through real sockets."""

import asyncio
from pathlib import Path

import pytest

from remit.assemble import settings_of
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.record import JsonObject, replace
from remit.core.run.inference import TEMPLATE_TOKENS_MAX, ModelResult, Price
from remit.inference.anthropic.engine import AnthropicEngine, open_anthropic
from remit.inference.anthropic.spec import VENDOR_URL
from remit.inference.endpoint import serving as served
from remit.inference.openai.spec import Endpoint
from remit.inference.specs import EngineSettings, open_engine
from tests.conformance.chat_server import Play, serving
from tests.conformance.messages_server import base_of
from tests.unit.inference.vendors import ANTHROPIC, ENDED, HELLO, KEY, SENT, START, STOPPED, TEXT, streams

UNAVAILABLE, BROKEN = ErrorCode.INFERENCE_MODEL_UNAVAILABLE, ErrorCode.INFERENCE_ENGINE_ERROR
MALFORMED = ErrorCode.INFERENCE_MALFORMED_RESPONSE


def test_the_server_is_asked_for_a_stream_of_messages() -> None:
    result, server = ANTHROPIC.asked(
        ANTHROPIC.says_hello, replace(HELLO, max_tokens=5, options={"metadata": {"user_id": "u"}}), key=KEY
    )
    assert result.content == "Hello"
    [call] = server.calls
    assert call.path == "/v1/messages"
    assert call.body == {
        "model": "tiny",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello"}]}],
        "stream": True,
        "max_tokens": 5,
        "metadata": {"user_id": "u"},
    }


def test_a_key_is_sent_in_both_ways_that_servers_look_for_it() -> None:
    _, server = ANTHROPIC.asked(ANTHROPIC.says_hello, key=KEY)
    headers = server.calls[0].headers
    assert (headers["authorization"], headers["x-api-key"]) == (f"Bearer {KEY}", KEY)
    assert headers["anthropic-version"]


def test_the_vendor_gets_the_key_once_and_no_wishes_about_sampling(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies: list[JsonObject] = []

    async def answered(server: served.Server, body: JsonObject, *_: object) -> ModelResult:
        bodies.append(body)
        return ModelResult()

    # Looked at and not sent: no test calls the vendor.
    monkeypatch.setattr(served.Server, "answered", answered)
    engine = AnthropicEngine(Endpoint("tiny", VENDOR_URL), key=KEY)
    asyncio.run(engine.infer(replace(HELLO, temperature=0.5, top_p=0.5)))
    headers = engine._server._headers
    assert (headers["authorization"], "x-api-key" in headers) == (f"Bearer {KEY}", False)
    assert not {"temperature", "top_p"} & set(bodies[0])


def test_any_other_server_gets_wishes_about_sampling() -> None:
    _, server = ANTHROPIC.asked(ANTHROPIC.says_hello, replace(HELLO, temperature=0.0, top_p=0.5))
    assert (server.calls[0].body["temperature"], server.calls[0].body["top_p"]) == (0.0, 0.5)


def test_the_environment_says_where_the_vendor_is_and_holds_its_key() -> None:
    settings = settings_of({"ANTHROPIC_BASE_URL": "http://localhost:1", "ANTHROPIC_API_KEY": KEY}).engines
    assert (settings.anthropic_base_url, settings.anthropic_api_key) == ("http://localhost:1", KEY)


def test_an_engine_and_its_settings_never_show_the_key() -> None:
    settings = EngineSettings(anthropic_api_key=KEY)
    engine = open_anthropic("tiny", settings)
    assert repr(engine) == f"AnthropicEngine('anthropic:tiny?url={VENDOR_URL}&window=200000')"
    assert KEY not in repr(settings) + repr(engine) + repr(engine.model_info())


def test_a_spec_opens_the_engine_and_the_engines_spec_opens_it_again(tmp_path: Path) -> None:
    settings = EngineSettings(anthropic_base_url="http://localhost:1", anthropic_api_key=KEY)
    engine = open_engine("anthropic:tiny?price=1/2&window=99", base=tmp_path, settings=settings)
    assert isinstance(engine, AnthropicEngine)
    again = open_engine(engine.spec, base=tmp_path)
    assert again.model_info() == engine.model_info()
    assert (engine.model_info().name, engine.model_info().context_window) == ("anthropic:tiny", 99)
    assert engine.model_info().price == Price(1_000_000, 2_000_000)


@pytest.mark.parametrize(
    ("rest", "price"),
    [
        ("claude-3-5-haiku-latest", Price(800_000, 4_000_000)),
        ("claude-3-5-haiku-latest?price=1/2", Price(1_000_000, 2_000_000)),
        ("claude-3-5-haiku-latest?price=0/0", Price(0, 0)),
        ("claude-3-5-haiku-latest?url=https://gateway.example", None),
        ("claude-3-5-haiku-latest?url=http://127.0.0.1:1", Price(0, 0)),
        ("no-such-model", None),
    ],
)
def test_a_price_is_that_of_the_spec_then_that_of_the_vendors_own_model(rest: str, price: Price | None) -> None:
    assert open_anthropic(rest, EngineSettings(anthropic_api_key=KEY)).model_info().price == price


def test_another_machine_is_not_asked_without_a_key_or_without_encryption() -> None:
    for rest in ("claude-sonnet-4-5", "tiny?url=https://host.example"):
        with pytest.raises(RequestRejected, match="set ANTHROPIC_API_KEY") as raised:
            open_anthropic(rest, EngineSettings())
        assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    settings = EngineSettings(anthropic_api_key=KEY)
    with pytest.raises(RequestRejected, match="name an https url, or add plain_http=allowed") as raised:
        open_anthropic("tiny?url=http://10.0.0.1", settings)
    assert KEY not in raised.value.message
    assert open_anthropic("tiny?url=http://10.0.0.1&plain_http=allowed", settings).model_info().name == "anthropic:tiny"


def test_what_the_environment_holds_for_others_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv(
        "ANTHROPIC_CUSTOM_HEADERS", "X-Gateway: secret-2\nAuthorization: Bearer another\nX-Api-Key: another"
    )
    _, server = ANTHROPIC.asked(ANTHROPIC.says_hello, key=KEY)
    headers = server.calls[0].headers
    assert set(headers) == SENT | {"anthropic-version", "x-api-key"}
    assert (headers["authorization"], headers["x-api-key"]) == (f"Bearer {KEY}", KEY)
    assert headers["accept-encoding"] == "identity"
    assert not [value for value in headers.values() if "another" in value or "secret-2" in value]


def test_a_model_that_the_vendor_will_retire_is_asked_without_a_warning() -> None:
    async def scenario() -> ModelResult:
        async with serving(ANTHROPIC.says_hello) as server:
            settings = EngineSettings(anthropic_base_url=base_of(server.url))
            return await open_anthropic("claude-3-opus-20240229", settings).infer(HELLO)

    assert asyncio.run(scenario()).content == "Hello"


@pytest.mark.parametrize(
    "pieces",
    [
        [START, TEXT, ENDED],
        [START + TEXT + ENDED.strip()],
    ],
)
def test_an_answer_is_whole_when_it_says_why_it_stopped(pieces: list[bytes]) -> None:
    assert ANTHROPIC.asked(streams(*pieces))[0].content == "Hello"


OVERLOADED = (
    b'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'
)


@pytest.mark.parametrize(
    ("play", "code", "problem"),
    [
        (streams(START, TEXT, STOPPED), MALFORMED, "without saying why it stopped"),
        (streams(START, b"data: <html>\n\n"), MALFORMED, "no JSON"),
        (streams(START, TEXT, OVERLOADED), UNAVAILABLE, "Overloaded"),
        (streams(START, TEXT, OVERLOADED.replace(b"overloaded_error", b"api_error")), BROKEN, "failed while"),
    ],
)
def test_a_stream_that_is_no_answer_is_a_fault_that_costs(play: Play, code: ErrorCode, problem: str) -> None:
    fault = ANTHROPIC.fault_of(play)
    assert (fault.code, fault.was_cut) == (code, True)
    assert problem in fault.message


def test_what_the_template_adds_to_a_prompt_is_reserved_as_well() -> None:
    engine = open_anthropic("tiny?url=http://127.0.0.1:1", EngineSettings())
    assert engine.model_info().template_tokens == TEMPLATE_TOKENS_MAX
