"""Reading takes time that grows with the length of a text and not with its square, whatever signs repeat in it."""

from collections.abc import Callable
from itertools import permutations
from time import process_time
from typing import Any

import pytest

from remit.core.secrets.secret_search import secrets_in
from remit.orchestrate.facts.excerpts import claims_in, tells_secret
from remit.provenance.gate import start
from remit.provenance.values.payload import points_to

SHORT, TIMES = 1_500, 8
# Eight times the text takes eight times as long, or sixty-four times where each place is read anew from each other one.
GROWTH_MAX = 28
# Below this a clock tells nothing.
TOLD_S = 0.12

SIGNS = ("1", "a", "A", "-", ".", "/", " ", "@", ",", ":", '"', "'", "(", "[", "\n", "_", "+", "$", "=", "*", "`")
PIECES = (
    "7. ",
    "AC-1. ",
    "Foo. ",
    "said ",
    "written ",
    "regards ",
    "[\n",
    ":\n- a\n",
    "pay it and ",
    "not a. ",
    "1 (",
    "é。",
)
PAIRS = tuple(left + right for left, right in permutations(SIGNS, 2) if not left.isalnum() or not right.isalnum())
PATTERNS = (*SIGNS, *PAIRS, *PIECES)
PAY: dict[str, Any] = {
    "name": "pay",
    "effect": "external",
    "parameters": {"properties": {"to": {"type": "string"}, "note": {"type": "string"}}},
    "control_args": {"to": "id:account"},
    "payload_args": ["note"],
}
READ: dict[str, Any] = {
    "name": "read",
    "effect": "read",
    "network": False,
    "parameters": {"properties": {}},
    "result": {"[].id": "id:account", "[].name": "label"},
}


def prompted(text: str) -> None:
    start(f"Pay AC-1. {text}", [PAY]).verdict_on("c", "pay", {"to": "AC-1", "note": ""})


def returned(text: str) -> None:
    gate = start("Pay AC-1.", [PAY, READ])
    gate.verdict_on("r", "read", {})
    gate.observe("r", "read", [{"id": text, "name": text}, {"text": text}])
    gate.verdict_on("c", "pay", {"to": "AC-1", "note": ""})


def carried(text: str) -> None:
    gate = start("Pay AC-1.", [PAY])
    gate.verdict_on("c", "pay", {"to": text, "note": text})


def searched(text: str) -> None:
    list(points_to(text))
    secrets_in(text)
    tells_secret(text)
    claims_in(text)


def seconds(read: Callable[[str], None], text: str) -> float:
    begun = process_time()
    read(text)
    return process_time() - begun


def grows_too_fast(read: Callable[[str], None], pattern: str) -> bool:
    long = (pattern * SHORT * TIMES)[: SHORT * TIMES]
    for _ in range(3):
        # A moment of a busy machine is no proof: each of three looks has to say so.
        taken = seconds(read, long)
        if taken < TOLD_S or taken < GROWTH_MAX * seconds(read, long[:SHORT]):
            return False
    return True


@pytest.mark.parametrize("read", [prompted, returned, carried, searched], ids=lambda read: read.__name__)
def test_no_sign_and_no_pair_of_signs_makes_a_text_slow_to_read(read: Callable[[str], None]) -> None:
    read("warm")
    assert [pattern for pattern in PATTERNS if grows_too_fast(read, pattern)] == []


def test_a_request_of_more_words_than_are_planned_orders_nothing_unasked() -> None:
    text = "Pay AC-1. " + "please " * 4_001
    assert not start(text, [PAY]).verdict_on("c", "pay", {"to": "AC-1", "note": ""}).is_allowed
