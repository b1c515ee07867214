"""The engine for OpenAI-compatible servers, asked through real sockets."""

import pytest

from remit.assemble import settings_of
from remit.core.failure import ErrorCode, RequestRejected
from remit.core.record import replace
from remit.core.run.inference import Price
from remit.inference.openai.dialects import Grammars
from remit.inference.openai.engine import OpenAIEngine, open_openai
from remit.inference.openai.spec import VENDOR_URL, Endpoint
from remit.inference.specs import EngineSettings
from tests.conformance.chat_server import Play
from tests.unit.inference.vendors import HELLO, KEY, OPENAI, PIECE, SENT, streams

BROKEN = ErrorCode.INFERENCE_ENGINE_ERROR
MALFORMED = ErrorCode.INFERENCE_MALFORMED_RESPONSE


def test_the_server_is_asked_for_a_stream_of_chat_completions() -> None:
    result, server = OPENAI.asked(OPENAI.says_hello, replace(HELLO, max_tokens=5, options={"seed": 7}), key=KEY)
    assert result.content == "Hello"
    [call] = server.calls
    assert call.path == "/v1/chat/completions"
    assert call.headers["authorization"] == f"Bearer {KEY}"
    assert call.body == {
        "model": "tiny",
        "messages": [{"role": "user", "content": "hello"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 5,
        "seed": 7,
    }


def test_no_option_changes_the_model_or_how_it_answers() -> None:
    _, server = OPENAI.asked(OPENAI.says_hello, replace(HELLO, options={"model": "dear", "stream": False}))
    assert (server.calls[0].body["model"], server.calls[0].body["stream"]) == ("tiny", True)


def test_an_engine_and_its_settings_never_show_the_key() -> None:
    settings = EngineSettings(openai_api_key=KEY)
    engine = open_openai(f"tiny?url={VENDOR_URL}", settings)
    assert isinstance(engine, OpenAIEngine)
    assert repr(engine) == f"OpenAIEngine('openai:tiny?url={VENDOR_URL}')"
    for shown in (repr(engine), engine.spec, repr(settings), repr(engine.model_info())):
        assert KEY not in shown


def test_the_spec_of_an_engine_opens_the_same_model_again() -> None:
    engine = open_openai("tiny?price=1/2&window=99", EngineSettings(None, "http://localhost:1/v1"))
    assert isinstance(engine, OpenAIEngine)
    again = open_openai(engine.spec.removeprefix("openai:"), EngineSettings())
    assert again.model_info() == engine.model_info()
    assert (engine.model_info().name, engine.model_info().context_window) == ("openai:tiny", 99)
    assert engine.model_info().price == Price(1_000_000, 2_000_000)


def test_another_machine_is_asked_without_encryption_only_where_the_spec_allows_it() -> None:
    settings = EngineSettings(openai_base_url="http://10.0.0.1/v1", openai_api_key=KEY)
    for rest in ("tiny", "tiny?url=http://host.example:8080/v1"):
        with pytest.raises(RequestRejected) as raised:
            open_openai(rest, settings)
        assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
        assert "name an https url, or add plain_http=allowed" in raised.value.message
        assert KEY not in raised.value.message
    engine = open_openai("tiny?plain_http=allowed", settings)
    assert isinstance(engine, OpenAIEngine)
    assert engine.spec == "openai:tiny?url=http://10.0.0.1/v1&plain_http=allowed"


def test_what_the_environment_holds_for_others_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: secret-2\nAuthorization: Bearer another")
    _, server = OPENAI.asked(OPENAI.says_hello, key=KEY)
    headers = server.calls[0].headers
    assert set(headers) == SENT
    assert (headers["authorization"], headers["accept-encoding"]) == (f"Bearer {KEY}", "identity")
    assert not {"org-1", "proj-1", "secret-2"} & set(headers.values())


def test_the_vendor_alone_learns_whose_account_it_is() -> None:
    settings = settings_of({"OPENAI_API_KEY": KEY, "OPENAI_ORG_ID": "org-1", "OPENAI_PROJECT_ID": "proj-1"}).engines
    account = {"openai-organization": "org-1", "openai-project": "proj-1"}
    for rest, told in (("tiny", account), ("tiny?url=https://gateway.example/v1", {})):
        engine = open_openai(rest, settings)
        assert isinstance(engine, OpenAIEngine)
        assert {name: value for name, value in engine._server._headers.items() if name.startswith("openai-")} == told


def test_another_machine_is_not_asked_without_a_key() -> None:
    for rest in ("gpt-4o-mini", "tiny?url=http://host.example/v1"):
        with pytest.raises(RequestRejected) as raised:
            open_openai(rest, EngineSettings())
        assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
        assert "set OPENAI_API_KEY" in raised.value.message


def test_the_vendors_limit_has_its_own_name() -> None:
    # Asked for its words alone: the vendor is not called here.
    names = [OpenAIEngine(Endpoint("tiny", url), key=KEY)._limit for url in (VENDOR_URL, "http://127.0.0.1:1/v1")]
    assert names == ["max_completion_tokens", "max_tokens"]


def test_the_vendor_is_sent_no_grammar_which_it_would_refuse() -> None:
    engines = [OpenAIEngine(Endpoint("tiny", url), key=KEY) for url in (VENDOR_URL, "http://127.0.0.1:1/v1")]
    assert [engine._dialect.grammars is Grammars.NONE for engine in engines] == [True, False]


@pytest.mark.parametrize("rest", ["tiny?schemas=grammar", "tiny?url=http://127.0.0.1:1/v1&schemas=grammar"])
def test_a_spec_of_old_that_asks_for_grammars_made_of_schemas_is_told_what_to_write(rest: str) -> None:
    with pytest.raises(RequestRejected, match="schemas=grammar is gone: servers take a schema as it is") as raised:
        open_openai(rest, EngineSettings(openai_api_key=KEY))
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    assert "leave the option out" in raised.value.message


@pytest.mark.parametrize(
    "pieces",
    [
        [PIECE],
        [PIECE.strip()],
        [PIECE, b"data: [DONE]"],
        [PIECE[:20], PIECE[20:], b"\n\n"],
    ],
)
def test_an_answer_is_whole_when_it_says_why_it_stopped(pieces: list[bytes]) -> None:
    assert OPENAI.asked(streams(*pieces))[0].content == "Hello"


@pytest.mark.parametrize(
    ("play", "code", "problem"),
    [
        (streams(b"data: [DONE]\n\n"), MALFORMED, "without saying why it stopped"),
        (streams(b'data: {"error": {"message": "overloaded"}}\n\n'), BROKEN, "overloaded"),
    ],
)
def test_a_stream_that_is_no_answer_is_a_fault_that_costs(play: Play, code: ErrorCode, problem: str) -> None:
    fault = OPENAI.fault_of(play)
    assert (fault.code, fault.was_cut) == (code, True)
    assert problem in fault.message
