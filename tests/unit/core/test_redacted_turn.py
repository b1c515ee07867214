"""Turns that something was taken out of."""

from remit.core.journal.arrivals import PauseRequested
from remit.core.journal.codec import decode_turn, encode_redacted, encode_turn, hash_turn, redacted_in
from remit.core.journal.signing import Signer, is_redaction_signed, sign_redaction
from remit.core.journal.turn import RedactedTurn, Turn
from remit.core.record import replace

TURN = Turn(3, 12, b"p" * 32, 2, PauseRequested("ann"))
LEFT = RedactedTurn(b"l" * 32, encode_turn(TURN), "ann", "a mistake", 7, "", b"")
SIGNER = Signer.from_bytes(b"k" * 32)


def test_a_redacted_turn_reads_as_what_is_left_and_keeps_its_hash() -> None:
    data = encode_redacted(LEFT)
    assert decode_turn(data) == TURN
    assert hash_turn(data) == LEFT.link
    assert redacted_in(data) == LEFT
    assert redacted_in(encode_turn(TURN)) is None
    # The format is stored, so it never changes.
    assert data.startswith(b"\xff\x87\xa4link\xc4 llll")


def test_bytes_that_only_begin_like_one_are_hashed_as_they_are() -> None:
    assert redacted_in(b"\xffnonsense") is None
    assert hash_turn(b"\xffnonsense") != LEFT.link


def test_its_signature_covers_run_turn_and_words() -> None:
    signed = sign_redaction(SIGNER, "run", 3, LEFT)
    assert is_redaction_signed("run", 3, signed)
    assert not is_redaction_signed("other", 3, signed)
    assert not is_redaction_signed("run", 4, signed)
    for change in ({"why": "for fun"}, {"by": "bob"}, {"data": b""}, {"link": b"x"}, {"at_ms": 8}):
        assert not is_redaction_signed("run", 3, replace(signed, **change))
    assert not is_redaction_signed("run", 3, replace(signed, why="half a pair \ud800"))
