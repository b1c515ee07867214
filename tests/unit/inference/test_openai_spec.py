"""Specs of OpenAI-compatible models say which model, where, at what price, and open the same again."""

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.run.inference import Price
from remit.inference.openai.dialects import Grammars, Schemas, Thinking
from remit.inference.openai.spec import (
    ALLOWED,
    CONTEXT_WINDOW_DEFAULT,
    CONTEXT_WINDOW_MAX,
    MODEL_CHARS_MAX,
    PLAIN_HTTP,
    PRICE_USD_MAX,
    SCHEMAS,
    URL_CHARS_MAX,
    VENDOR_URL,
    Endpoint,
    read_endpoint,
)

HERE = "http://127.0.0.1:8080/v1"


def read(rest: str, url_default: str = "") -> Endpoint:
    return read_endpoint(rest, url_default=url_default)


def refusal(rest: str) -> str:
    with pytest.raises(RequestRejected) as raised:
        read(rest)
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    return raised.value.message


def test_a_model_alone_is_the_vendors_at_an_unknown_price() -> None:
    endpoint = read("gpt-4o-mini")
    assert endpoint == Endpoint("gpt-4o-mini", VENDOR_URL, CONTEXT_WINDOW_DEFAULT, None)
    assert endpoint.price is None


def test_the_url_is_that_of_the_spec_then_that_of_the_settings_then_the_vendors() -> None:
    assert read(f"m?url={HERE}/", "http://other/v1").url == HERE
    assert read("m", "http://other/v1/").url == "http://other/v1"
    assert read("m", "").url == VENDOR_URL


def test_every_option_is_read() -> None:
    endpoint = read("meta/llama-3:free?url=https://host.example/api/v1&price=0.15/0.60&window=128000")
    assert endpoint.model == "meta/llama-3:free"
    assert endpoint.url == "https://host.example/api/v1"
    assert endpoint.price == Price(150_000, 600_000)
    assert endpoint.window == 128_000


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "LOCALHOST", "[::1]"])
def test_ones_own_machine_is_free_unless_a_price_is_named(host: str) -> None:
    assert read(f"m?url=http://{host}:8080/v1").price == Price(0, 0)
    assert read(f"m?url=http://{host}:8080/v1&price=1/2").price == Price(1_000_000, 2_000_000)


@pytest.mark.parametrize("host", ["localhost.example", "10.0.0.1", "[::2]", "127.0.0.1.example"])
def test_another_machine_has_an_unknown_price_unless_it_is_named(host: str) -> None:
    assert read(f"m?url=http://{host}/v1").price is None
    assert read(f"m?url=http://{host}/v1&price=0/0").price == Price(0, 0)


@pytest.mark.parametrize(
    "rest",
    [
        "m",
        "meta/llama-3:free@latest",
        "what%3F+this&that",
        "m?url=http://[::1]:8080/v1",
        f"m?url={HERE}&price=0.15/0.60&window=128000",
        "m?price=0/0.000001",
        "m?url=http://10.0.0.1/v1&plain_http=allowed",
        "m?url=https%3A%2F%2Fhost.example%2Fa%252Fb%2Fv1",
    ],
)
def test_what_is_written_back_opens_the_same_again_whatever_the_settings_are(rest: str) -> None:
    endpoint = read(rest)
    kind, _, again = endpoint.spec.partition(":")
    assert (kind, read(again, "http://elsewhere/v1")) == ("openai", endpoint)
    assert "url=" in endpoint.spec


def test_a_spec_is_written_back_as_people_write_it() -> None:
    written = f"openai:meta/llama?url={HERE}&price=0.15/0.6&window=128000"
    assert read(written.removeprefix("openai:")).spec == written


@pytest.mark.parametrize("rest", ["", "?url=http://a/v1", "%00", "m" * (MODEL_CHARS_MAX + 1)])
def test_a_model_needs_a_name_that_can_be_read(rest: str) -> None:
    assert f"1 to {MODEL_CHARS_MAX} printable characters" in refusal(rest)


def test_an_option_nobody_knows_is_refused_without_its_value() -> None:
    message = refusal("m?key=sk-secret")
    assert "no option 'key'" in message
    assert "url, price, window" in message
    assert "secret" not in message


def test_an_option_given_twice_is_refused() -> None:
    assert "'window' more than once" in refusal("m?window=1&url=http://a/v1&window=2")


@pytest.mark.parametrize("rest", ["m?nonsense", "m?url=http://a/v1&&", "m?&"])
def test_options_of_another_form_are_refused(rest: str) -> None:
    assert "url=…&price=…&window=…" in refusal(rest)


@pytest.mark.parametrize(
    "url",
    [
        "127.0.0.1:8080",
        "ftp://host/v1",
        "http://",
        "http:///v1",
        "http://host:port/v1",
        "http://host:0/v1",
        "http://host:99999/v1",
        "http://[::1/v1",
        "http://[::1%2525lo]/v1",
        "http://\u217cocalhost/v1",
        "http://127\u30020.0.1/v1",
        "http://local;host/v1",
        "http://ho st/v1",
        "http://host/%0av1",
        "http://host/" + "a" * URL_CHARS_MAX,
    ],
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    assert "no address like http://127.0.0.1:8080/v1" in refusal(f"m?url={url}")


@pytest.mark.parametrize("url", ["http://me:hush@host/v1", "http://me@host/v1", "http://:hush@host/v1"])
def test_a_url_with_a_password_is_refused_and_not_repeated(url: str) -> None:
    message = refusal(f"m?url={url}")
    assert "OPENAI_API_KEY" in message
    assert "hush" not in message


@pytest.mark.parametrize("url", ["http://host/v1%3Fa=b", "http://host/v1%23part"])
def test_a_url_that_goes_on_behind_its_path_is_refused(url: str) -> None:
    assert "name the base alone" in refusal(f"m?url={url}")


@pytest.mark.parametrize(
    "price",
    [
        *("", "1", "1/2/3", "a/b", "-1/1", "1/-0.5", "nan/1", "1/inf", "0.0000001/1", f"{PRICE_USD_MAX}.1/1", "/"),
        *("1e999999/1", "1e-9999999/1", "1_0/1", "\u0661/1", "9999999/1"),
    ],
)
def test_a_price_that_is_none_is_refused(price: str) -> None:
    assert "dollars per million tokens, such as 0.15/0.60" in refusal(f"m?price={price}")


@pytest.mark.parametrize("window", ["", "0", "-1", "1.5", "many", str(CONTEXT_WINDOW_MAX + 1), "9" * 13, "٣"])
def test_a_window_that_is_none_is_refused(window: str) -> None:
    assert f"from 1 to {CONTEXT_WINDOW_MAX}" in refusal(f"m?window={window}")


@pytest.mark.parametrize("url", [HERE, "http://[::1]/v1", "https://host.example/v1", "HTTPS://10.0.0.1/v1"])
def test_ones_own_machine_and_an_encrypted_connection_are_private(url: str) -> None:
    assert read(f"m?url={url}").is_private


@pytest.mark.parametrize("url", ["http://host.example/v1", "HTTP://10.0.0.1/v1", "http://localhost.example/v1"])
def test_another_machine_without_encryption_is_not_private_unless_the_spec_allows_it(url: str) -> None:
    assert not read(f"m?url={url}").is_private
    assert read(f"m?url={url}&{PLAIN_HTTP}={ALLOWED}").is_private


@pytest.mark.parametrize("value", ["", "no", "yes", "Allowed"])
def test_plain_http_is_allowed_by_one_word_alone(value: str) -> None:
    assert f"write {PLAIN_HTTP}={ALLOWED}" in refusal(f"m?{PLAIN_HTTP}={value}")


def test_the_vendor_demands_strict_mode_and_another_server_where_its_spec_says_so() -> None:
    assert read("m").is_strict
    assert not read("m?url=http://127.0.0.1:1/v1").is_strict
    gateway = read(f"m?url=https://gateway.example/v1&{SCHEMAS}=strict")
    assert gateway.is_strict
    assert gateway.spec == f"openai:m?url=https://gateway.example/v1&{SCHEMAS}=strict"
    assert read(gateway.spec.removeprefix("openai:")) == gateway


@pytest.mark.parametrize("value", ["", "yes", "Strict"])
@pytest.mark.parametrize(
    ("option", "first", "last"),
    [("schemas", "strict", "strict"), ("grammars", "grammar", "none"), ("thinking", "chat_template_kwargs", "left")],
)
def test_what_a_server_wants_of_shapes_is_said_in_known_words(option: str, first: str, last: str, value: str) -> None:
    message = refusal(f"m?{option}={value}")
    assert (f"write {option}={first}" in message, f"={last}, or leave it out" in message) == (True, True)


@pytest.mark.parametrize("schemas", Schemas)
@pytest.mark.parametrize("grammars", Grammars)
@pytest.mark.parametrize("thinking", Thinking)
def test_every_word_about_shapes_is_read_and_written_back(
    schemas: Schemas, grammars: Grammars, thinking: Thinking
) -> None:
    written = f"m?url={HERE}&schemas={schemas.value}&grammars={grammars.value}&thinking={thinking.value}"
    endpoint = read(written)
    assert (endpoint.schemas, endpoint.grammars, endpoint.thinking) == (schemas, grammars, thinking)
    assert endpoint.spec == f"openai:{written}"


def test_the_largest_window_and_the_largest_price_are_taken() -> None:
    endpoint = read(f"m?window={CONTEXT_WINDOW_MAX}&price={PRICE_USD_MAX}/0")
    assert endpoint.window == CONTEXT_WINDOW_MAX
    assert endpoint.price == Price(PRICE_USD_MAX * 1_000_000, 0)
