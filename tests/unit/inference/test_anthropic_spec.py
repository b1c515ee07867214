"""Specs of models behind the Messages API say which model, where, at what price, and open the same again."""

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.core.run.inference import Price
from remit.inference.anthropic.spec import VENDOR_URL, WINDOW_OF_VENDOR, read_place, spec_of
from remit.inference.openai.spec import CONTEXT_WINDOW_DEFAULT


def refusal(rest: str) -> str:
    with pytest.raises(RequestRejected) as raised:
        read_place(rest, url_default="")
    assert raised.value.code == ErrorCode.CONFIG_NO_ENGINE
    return raised.value.message


def test_a_model_alone_is_the_vendors_with_the_vendors_window() -> None:
    place = read_place("claude-sonnet-4-5", url_default="")
    assert (place.model, place.url, place.window) == ("claude-sonnet-4-5", VENDOR_URL, WINDOW_OF_VENDOR)


def test_a_model_behind_another_url_has_a_careful_window() -> None:
    place = read_place("m", url_default="https://gateway.example/anthropic/")
    assert (place.url, place.window) == ("https://gateway.example/anthropic", CONTEXT_WINDOW_DEFAULT)


def test_every_option_is_read() -> None:
    place = read_place("m?url=http://127.0.0.1:8080&price=3/15&window=500", url_default="https://other.example")
    assert (place.url, place.price, place.window) == ("http://127.0.0.1:8080", Price(3_000_000, 15_000_000), 500)


@pytest.mark.parametrize(
    "rest",
    [
        "claude-sonnet-4-5",
        "claude-sonnet-4-5?window=8192",
        "claude-sonnet-4-5?window=1000000&price=3/15",
        "m?url=http://[::1]:8080",
        "m?url=http://127.0.0.1:8080&window=8192",
        "m?url=http://10.0.0.1&plain_http=allowed",
        "what%3F+this&that",
    ],
)
def test_what_is_written_back_opens_the_same_again_whatever_the_settings_are(rest: str) -> None:
    place = read_place(rest, url_default="")
    kind, _, written = spec_of(place).partition(":")
    assert kind == "anthropic"
    assert read_place(written, url_default="https://other.example") == place


@pytest.mark.parametrize("rest", ["?window=5", "m?url=ftp://x", "m?window=0", 'it\'s "m"?price=1', "m?schemas=strict"])
def test_what_cannot_be_opened_is_refused_in_the_name_of_this_kind(rest: str) -> None:
    message = refusal(rest)
    assert "anthropic:" in message.split(";")[0]
    assert "openai:" not in message


@pytest.mark.parametrize("option", ["schemas=strict", "grammars=none", "thinking=left"])
def test_dialects_of_other_servers_are_refused(option: str) -> None:
    assert f"has no option {option.partition('=')[0]!r}; its API takes schemas in one way" in refusal(f"m?{option}")


@pytest.mark.parametrize("rest", ["m?key=abc", "m?url=https://me:secret@host.example"])
def test_the_way_to_give_a_key_is_told_and_no_key_is_repeated(rest: str) -> None:
    message = refusal(rest)
    assert "ANTHROPIC_API_KEY" in message
    assert not {"abc", "secret"} & set(message.replace("@", " ").split())
