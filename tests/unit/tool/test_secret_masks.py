"""Whatever form a value has in a text, its name stands there instead; other words stay."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.tool.secrets.secret import VALUE_CHARS_MIN
from remit.tool.secrets.secret_masks import EDGE_CHARS_MAX, Masker

TOKEN = 'ghp_A1b2/C3+d4=E5&f6"g7\\h8é'
PLAIN = "sk-live-0123456789abcdef"
MARK = "[secret TOKEN]"

ONE = Masker([("TOKEN", TOKEN)])
SIMPLE = Masker([("TOKEN", PLAIN)])


def as_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize(
    "written",
    [
        TOKEN,
        json.dumps({"token": TOKEN}),
        json.dumps({"token": TOKEN}, ensure_ascii=False),
        json.dumps({"body": json.dumps({"token": TOKEN})}),
        json.dumps(TOKEN).replace("/", "\\/"),
        f"https://host/?t={quote(TOKEN, safe='')}&x=1",
        f"https://host/{quote(TOKEN)}",
        f"t={quote_plus(TOKEN)}",
        "t=ghp_A1b2%2fC3%2bd4%3dE5%26f6%22g7%5ch8%c3%a9",
        html.escape(TOKEN),
        TOKEN.encode().hex(),
        TOKEN.encode().hex().upper(),
        as_base64(TOKEN.encode()),
        base64.urlsafe_b64encode(TOKEN.encode()).decode(),
        repr(TOKEN.encode().hex()),
    ],
)
def test_a_value_is_found_however_it_is_written(written: str) -> None:
    cleaned = ONE.masked(f"before {written} after")
    assert MARK in cleaned
    assert written not in cleaned
    assert cleaned.startswith("before ")
    assert cleaned.endswith(" after")


@pytest.mark.parametrize("before", ["", "u", "us", "use", "user:"])
@pytest.mark.parametrize("behind", ["", ":", ":x", ":xy"])
def test_a_value_within_a_longer_base64_text_is_found_wherever_it_begins(before: str, behind: str) -> None:
    written = as_base64(f"{before}{PLAIN}{behind}".encode())
    cleaned = SIMPLE.masked(f"Basic {written}")
    assert MARK in cleaned
    left = cleaned.replace(MARK, "").removeprefix("Basic ")
    # What is left are the neighbours, and at most one letter that a neighbour shares with the value.
    assert len(left) <= len(as_base64(before.encode() + behind.encode())) + 6


@given(st.text(min_size=VALUE_CHARS_MIN, max_size=60), st.text(max_size=20), st.text(max_size=20))
def test_no_text_holds_the_value_afterwards(value: str, before: str, behind: str) -> None:
    masker = Masker([("A", value)])
    for form in (value, value.encode(errors="surrogatepass").hex()):
        cleaned = masker.masked(before + form + behind)
        assert form not in cleaned.replace("[secret A]", "\0")


@given(st.text(alphabet="xyz \n{}", max_size=200))
def test_a_text_without_the_value_stays_as_it_is(text: str) -> None:
    assert ONE.masked(text) == text


@pytest.mark.parametrize("end", ["", " ...", "…"])
def test_the_beginning_of_a_value_where_a_text_was_cut_counts_as_the_value(end: str) -> None:
    for kept in range(len(PLAIN) // 2, len(PLAIN)):
        assert SIMPLE.masked(f"failed with {PLAIN[:kept]}{end}") == f"failed with {MARK}{end}"


def test_the_end_of_a_value_where_a_text_begins_counts_as_the_value() -> None:
    for cut in range(1, len(PLAIN) // 2):
        assert SIMPLE.masked(f"{PLAIN[cut:]} was refused") == f"{MARK} was refused"


def test_a_value_that_repeats_itself_leaves_nothing_at_an_edge() -> None:
    masker = Masker([("A", "ab" * 12)])
    assert masker.masked("x" + "ab" * 11) == "x[secret A]"
    assert masker.masked("ab" * 11 + "x") == "[secret A]x"


def test_what_values_commonly_begin_with_is_no_value() -> None:
    masker = Masker([("URL", "https://user:password@host.example/path")])
    assert masker.masked("see https://") == "see https://"
    assert len("https://") < EDGE_CHARS_MAX


def test_words_at_an_edge_that_only_begin_like_a_value_stay() -> None:
    head, tail = PLAIN[:12], PLAIN[-12:]
    assert SIMPLE.masked(f"{head}!") == f"{head}!"
    assert SIMPLE.masked(f"!{tail}") == f"!{tail}"


def test_of_two_values_the_longer_one_is_named() -> None:
    masker = Masker([("SHORT", PLAIN), ("LONG", f"{PLAIN}-and-more")])
    assert masker.masked(f"{PLAIN}-and-more {PLAIN}!") == "[secret LONG] [secret SHORT]!"


def test_what_a_model_said_is_marked_apart() -> None:
    assert SIMPLE.exposed(f"it is {PLAIN}!") == "it is [exposed secret TOKEN]!"


@pytest.mark.parametrize(
    "arguments",
    [{"a": PLAIN}, {PLAIN: 1}, {"a": [f"x{PLAIN}y"]}, {"a": PLAIN.encode().hex()}, {"a": "[exposed secret TOKEN]"}],
)
def test_arguments_that_hold_a_secret_or_its_mark_are_found(arguments: dict[str, object]) -> None:
    assert SIMPLE.found_in(json.dumps(arguments)) == "TOKEN"


def test_the_mark_alone_is_no_value() -> None:
    assert SIMPLE.value_in("[exposed secret TOKEN]") == ""
    assert SIMPLE.value_in(f"x{PLAIN}") == "TOKEN"


def test_arguments_that_name_a_redacted_secret_expose_nothing() -> None:
    assert SIMPLE.found_in(json.dumps({"a": MARK, "b": "[exposed secret OTHER]"})) == ""


def test_a_masker_without_values_changes_nothing() -> None:
    assert not Masker().names
    assert Masker().masked(PLAIN) == PLAIN
    assert ONE.names
