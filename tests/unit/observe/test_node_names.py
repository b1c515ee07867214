"""What a step gave, in a few words, whatever it was."""

import pytest

from remit.core.journal.codec import to_json
from remit.core.record import BlobRef, Text
from remit.core.run.messages import user_message
from remit.core.work.candidate import Candidate, ScoreMaker
from remit.core.work.plan import ContextFor, RerankInput
from remit.core.work.values import ValueKind
from remit.observe.node_names import PIECE_CHARS_MAX, beginning, gave

LONG = BlobRef(b"\x01" * 32, 70_000)


def candidates(*contents: Text) -> str:
    found = [Candidate(content, f"doc {n}", 1.0, ScoreMaker.RETRIEVAL) for n, content in enumerate(contents, 1)]
    return to_json(RerankInput("q", tuple(found)))


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("text", "hello", "a text"),
        ("result", "hello", "a result"),
        ("object", '{"a":1,"b":2}', "an object with 2 fields"),
        ("json", "[1,2,3]", "a list of 3"),
        ("json", "3", "a value"),
        ("messages", to_json(ContextFor("q", (user_message("one"),))), "1 message"),
        ("candidates", candidates("a", "b"), "2 candidates"),
        ("candidates", LONG, "candidates"),
        ("messages", "no json", "messages"),
        ("object", "{" * 5_000, "an object"),
        ("of another version", "x", "a value"),
    ],
)
def test_what_was_given_is_counted_where_it_can_be(kind: str, text: Text, said: str) -> None:
    assert gave(kind, text) == said


def test_every_kind_has_words_of_its_own() -> None:
    assert all(gave(kind, LONG) for kind in ValueKind)


def test_evidence_begins_with_its_sources_and_counts_the_rest() -> None:
    said = beginning("candidates", candidates("a", "b" * 200, LONG, "d"))
    assert said == f"doc 1: a; doc 2: {'b' * (PIECE_CHARS_MAX - 1)}…; doc 3: <70000 bytes>; and 1 more"


def test_messages_begin_with_their_words() -> None:
    assert beginning("messages", to_json(ContextFor("q", (user_message("one"), user_message("two"))))) == "one; two"


def test_anything_else_stands_for_itself() -> None:
    assert beginning("text", "hello") == "hello"
    assert beginning("candidates", LONG) is LONG
