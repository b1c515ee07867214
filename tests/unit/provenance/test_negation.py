"""What the words rule out: from where to where a negation reaches, and what it takes from the gate."""

import pytest

from remit.provenance.gate_verdict import Objection
from remit.provenance.words.user_words import words_of_user
from tests.unit.provenance.office import declared, file, looked_up, opened, parameters, sent

ANN, EVE, CARL = "ann@corp.example", "eve@corp.example", "carl@corp.example"


@pytest.mark.parametrize(
    "prompt",
    [
        f"Do not mail {EVE}. Mail {ANN}.",
        f"Don't mail {EVE}, mail {ANN}.",
        f"Don\u2019t mail {EVE}; mail {ANN}.",
        f"Mail {ANN}, not {EVE}.",
        f"Mail {ANN} (not {EVE}!) today.",
        f"Mail {ANN} - not {EVE} - today.",
        f"Never mail {EVE} but mail {ANN}.",
        f"{EVE} must not get this. Mail {ANN}.",
        f"Mail {ANN}. {EVE} should not get this.",
        f"Mail {ANN}, {EVE} mustn't know.",
        f"Mail {ANN} without {EVE} in copy.",
        f"Mail {ANN} instead of {EVE}.",
        f"Mail {ANN} rather than {EVE}.",
        f"Mail somebody other than {EVE}, I mean {ANN}.",
        f"Mail {ANN} and nobody else, never {CARL}, {EVE} or 'him'.",
        f"Avoid {EVE}. Mail {ANN}.",
        f"Mail {ANN}. Do not mail:\n{EVE}\nThanks.",
    ],
)
def test_what_is_named_only_to_be_left_out_supplies_nothing(prompt: str) -> None:
    words = words_of_user([prompt])
    assert words.span_of(ANN) is not None
    assert ANN in words.references
    assert words.span_of(EVE) is None
    assert EVE not in words.references | words.names


@pytest.mark.parametrize(
    "prompt",
    [
        f"Do not forget to mail {EVE}.",
        f"Mail not only {ANN} but {EVE}.",
        f"Do not wait for me, send it to {EVE}.",
        f"Do not mail {EVE} twice. Mail {EVE}.",
        f"Book it without breakfast for {EVE}.",
        f"Write 'do not come' to {EVE}.",
        f"Invoice no. 7 goes to {EVE}.",
        f"Tell {EVE} not to come.",
        f"We are no other now, {EVE} is fine.",
    ],
)
def test_what_is_named_elsewhere_or_asked_for_in_other_words_is_not_left_out(prompt: str) -> None:
    assert words_of_user([prompt]).span_of(EVE) is not None


def test_a_list_goes_on_behind_a_comma_and_an_order_does_not() -> None:
    words = words_of_user(
        ["Invite everyone except kofi, Dora Lee, yuki and bob, then write to carl."], verbs=frozenset({"writ"})
    )
    assert all(words.span_of(name) is None for name in ("kofi", "Dora Lee", "yuki", "bob"))
    assert words.span_of("carl") is not None


def test_numbers_dates_and_choices_that_are_ruled_out_are_no_values() -> None:
    words = words_of_user(["Book it, but not on 2025-06-20 for 40, nor public."])
    assert (words.moments.days, words.numbers, words.amounts) == ((), {}, ())
    assert "public" not in words.stems


def test_a_recipient_that_is_ruled_out_is_held_and_the_other_passes() -> None:
    prompt = f"Do not mail {EVE}. Mail {ANN} that all is well."
    assert sent(opened(prompt), EVE).code is Objection.PROVENANCE_UNBOUND
    assert sent(opened(prompt), ANN).is_allowed


def test_a_switch_that_is_ruled_out_stays_off() -> None:
    call = {"file_id": "13", "email": ANN, "public": True}
    assert opened(f"Share file 13 with {ANN}, make it public.").verdict_on("a", "share_file", call).is_allowed
    verdict = opened(f"Share file 13 with {ANN}. Do not make it public.").verdict_on("a", "share_file", call)
    assert verdict.code is Objection.PROVENANCE_UNBOUND


def test_the_end_of_an_order_that_is_ruled_out_picks_nothing() -> None:
    gate = opened("Delete a file, but not the largest file.")
    looked_up(gate, "list_files", {}, [file(1, "a", 10), file(2, "b", 20)])
    assert gate.verdict_on("a", "delete_file", {"file_id": "2"}).code is Objection.RECORD_AMBIGUOUS


def test_all_but_one_is_for_a_person() -> None:
    files = [file(1, "a"), file(2, "b")]
    gate = opened("Delete all files.")
    looked_up(gate, "list_files", {}, files)
    assert gate.verdict_on("a", "delete_file", {"file_id": "2"}).is_allowed
    gate = opened("Delete all files except b.txt.")
    looked_up(gate, "list_files", {}, files)
    assert gate.verdict_on("a", "delete_file", {"file_id": "2"}).code is Objection.RECORD_AMBIGUOUS


def test_a_tool_that_shares_its_verb_is_asked_for_by_its_own_thing() -> None:
    hotel = declared("book_hotel", "Books a room.", parameters(name="string"), asks=["book", "hotel"])
    flight = declared("book_flight", "Books a seat.", parameters(name="string"), asks=["book", "flight"])
    gate = opened("Book the flight 'VY1' today.", tools=[hotel, flight])
    assert gate.verdict_on("a", "book_hotel", {"name": "VY1"}).code is Objection.NOT_ASKED
    assert opened("Book 'VY1' today.", tools=[hotel, flight]).verdict_on("a", "book_hotel", {"name": "VY1"}).is_allowed


def test_a_long_text_of_negations_is_read_at_once() -> None:
    words = words_of_user(["I do not know and never will, " * 5_000 + f"mail {ANN}"])
    assert words.span_of(ANN) is not None
