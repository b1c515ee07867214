"""What listeners hear of an answer that holds secrets."""

import pytest

from remit.core.secrets.secret_search import without_secrets
from remit.inference.engine import StreamChunk
from remit.orchestrate.exchange.veil import HELD_CHARS_MAX, Veil
from tests.planted import Planted

SECRETS = Planted().all()


def heard(pieces: list[str]) -> list[str]:
    """What is passed on, piece by piece."""
    passed: list[StreamChunk] = []
    veil = Veil(passed.append, lambda text: without_secrets(text, lambda kind, _: f"<{kind}>"))
    for piece in pieces:
        veil.send(StreamChunk(piece))
    veil.flush()
    return [chunk.text for chunk in passed]


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("size", [1, 3, 7, 50])
def test_a_secret_is_heard_by_nobody_however_it_is_cut(name: str, size: int) -> None:
    text, value = SECRETS[name]
    said = f"Here it is: {text} and that was all."
    words = "".join(heard([said[at : at + size] for at in range(0, len(said), size)]))
    assert value not in words
    assert value[8:] not in words
    assert words.startswith("Here it is: ")
    assert words.endswith("and that was all.")


def test_short_words_are_heard_at_once() -> None:
    assert heard(["Hel", "lo", " Ann", ", how", " are"]) == ["Hel", "lo", " Ann", ", how", " are"]


def test_a_long_word_is_heard_when_it_is_whole() -> None:
    assert heard(["inter", "national", " law"]) == ["inter", "national law"]


def test_what_is_thought_is_veiled_as_well() -> None:
    passed: list[StreamChunk] = []
    veil = Veil(passed.append, lambda text: without_secrets(text, lambda kind, _: f"<{kind}>"))
    veil.send(StreamChunk("", f"It is {SECRETS['github'][0]}."))
    veil.flush()
    assert "".join(chunk.reasoning for chunk in passed) == "It is <github_token>."


def test_what_goes_on_without_a_blank_is_not_held_for_ever() -> None:
    assert sum(map(len, heard(["x" * (HELD_CHARS_MAX + 1), "y"]))) == HELD_CHARS_MAX + 2
