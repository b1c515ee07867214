"""What is left of a turn when words are taken out of it: what the stores that redact have in common."""

from remit.backend.redacted_turns import MARK, finder_of, longest_first, without, words_to_redact
from remit.core.journal.arrivals import FeedbackGiven
from remit.core.journal.codec import NO_HASH, decode_turn, encode_turn, hash_turn
from remit.core.journal.turn import KERNEL_VERSION, RedactedTurn, Turn
from remit.core.record import BlobRef, Text, digest_of

SAID = RedactedTurn(b"", b"", "ann", "a mistake", 1, "", b"")
DIGEST = digest_of(b"a long text")


def turn(text: Text) -> bytes:
    return encode_turn(Turn(0, 1, NO_HASH, KERNEL_VERSION, FeedbackGiven("ann", text)))


def test_the_words_make_room_for_a_mark_and_the_hash_is_kept() -> None:
    left = without(("words",), turn("some words here"), set(), SAID)
    assert left is not None
    assert left.link == hash_turn(turn("some words here"))
    assert decode_turn(left.data).arrival == FeedbackGiven("ann", f"some {MARK} here")


def test_a_turn_without_the_words_stays_unless_its_text_is_gone() -> None:
    data = turn(BlobRef(DIGEST, 11))
    assert without(("words",), data, set(), SAID) is None
    assert without(("words",), data, {DIGEST}, SAID) is not None


def test_a_turn_that_cannot_be_read_stays_as_it_is_whatever_it_refers_to() -> None:
    data = b"\x01" + b"\xc4\x20" + DIGEST
    assert without(("words",), data, {DIGEST}, SAID) is None


def test_the_words_are_found_in_turns_and_texts_and_the_longest_goes_first() -> None:
    found = words_to_redact(finder_of("words"), turn("my words"), [b"cGFzc3dvcmRz words", b"\xff"])
    assert "words" in found
    assert longest_first(["a", "", "abc", "ab"]) == ("abc", "ab", "a")
