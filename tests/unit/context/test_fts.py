"""The index of documents: what is found, in which order, and what is turned away."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remit.context import fts
from remit.context.fts import (
    CHUNK_CHARS_MAX,
    DOCUMENT_CHARS_MAX,
    OVERLAP_CHARS,
    QUERY_CHARS_MAX,
    QUERY_WORDS_MAX,
    RESULTS_MAX,
    Document,
    DocumentIndex,
    check_chunking,
    expression_of,
    meaningful_words,
    passages_of,
    quoted,
)
from remit.core.failure import RequestRejected
from remit.core.work.candidate import ScoreMaker

SHOP = (
    Document("returns", "Items may be returned within 30 days.", "operator", {"language": "en"}),
    Document("shipping", "Shipping takes two days and costs five euros."),
    Document("coffee", "The café sells coffee."),
    Document("hours", "We open at nine."),
)


@pytest.fixture
def shop() -> Iterator[DocumentIndex]:
    with DocumentIndex() as index:
        index.add(SHOP)
        yield index


def sources(index: DocumentIndex, query: str) -> list[str]:
    return [candidate.source for candidate in index.retrieve(query)]


@pytest.mark.req("1.13")
def test_what_is_found_says_where_it_came_from_and_who_scored_it(shop: DocumentIndex) -> None:
    (found,) = shop.retrieve("returned items")
    assert found.content == "Items may be returned within 30 days."
    assert found.source == "returns"
    assert found.scored_by is ScoreMaker.RETRIEVAL
    assert found.score > 0
    assert found.metadata == {"language": "en", "piece": 1, "start": 0, "origin": "operator", "relevance": 1.0}


def test_a_document_nobody_vouches_for_is_untrusted(shop: DocumentIndex) -> None:
    assert shop.retrieve("coffee")[0].metadata["origin"] == "untrusted"


def test_words_are_found_in_other_forms_and_without_their_accents(shop: DocumentIndex) -> None:
    assert sources(shop, "return item") == ["returns"]
    assert sources(shop, "cafe") == ["coffee"]


@pytest.mark.parametrize(
    "query",
    [
        "", " ", "*", '"', '"unbalanced', "NEAR(a b", "text:coffee AND", "NOT", "(((", "^", "a OR", "-x", "{a b}: c", "\x00",
        "\ud800", "\u0301", "'; DROP TABLE pieces; --", "x" * 10_000, "💥",
    ],
)  # fmt: skip
def test_no_query_is_taken_for_syntax(shop: DocumentIndex, query: str) -> None:
    shop.retrieve(query)
    assert shop.count() == (4, 4)


def test_an_operator_in_a_query_is_only_a_word(shop: DocumentIndex) -> None:
    assert sources(shop, "text:coffee NOT coffee") == ["coffee"]
    assert sources(shop, "NEAR(shipping, coffee)") == ["coffee", "shipping"]


def test_a_piece_with_more_of_the_question_is_more_relevant(shop: DocumentIndex) -> None:
    shop.add([Document("both", "Coffee and shipping.")])
    best, *others = shop.retrieve("coffee shipping")
    assert best.source == "both"
    assert best.metadata["relevance"] == pytest.approx(1.0)
    assert all(0 < other.metadata["relevance"] < 1 for other in others)


def test_a_question_whose_words_are_nowhere_is_less_relevant(shop: DocumentIndex) -> None:
    assert shop.retrieve("coffee for astronauts")[0].metadata["relevance"] < 0.5


def test_equal_scores_are_ordered_by_document_whatever_the_order_of_adding() -> None:
    twins = [Document(name, "the same words") for name in ("b", "a", "c")]
    for order in (twins, twins[::-1]):
        index = DocumentIndex()
        index.add(
            [*order, Document("z", "other"), Document("y", "another"), Document("x", "more"), Document("w", "some")]
        )
        assert sources(index, "same") == ["a", "b", "c"]


def test_a_long_document_is_found_by_its_pieces() -> None:
    index = DocumentIndex(chunk_chars_max=100, overlap_chars=0)
    pieces = index.add([Document("book", "\n\n".join(f"Chapter {n} tells of topic{n} at length." for n in range(20)))])
    (found,) = index.retrieve("topic13")
    assert pieces > 5
    assert isinstance(found.content, str)
    assert "topic13" in found.content
    assert found.metadata["piece"] > 1
    assert found.metadata["start"] > 0


def test_a_document_takes_the_place_of_one_with_its_id(shop: DocumentIndex) -> None:
    shop.add([Document("coffee", "We have tea only.")])
    assert sources(shop, "tea") == ["coffee"]
    assert "coffee" not in sources(shop, "sells")
    assert shop.count() == (4, 4)


def test_a_document_that_was_removed_is_not_found_any_more(shop: DocumentIndex) -> None:
    assert shop.remove("coffee")
    assert not shop.remove("coffee")
    assert sources(shop, "coffee") == []
    assert shop.count() == (3, 3)


def test_a_document_of_white_space_is_kept_and_never_found(shop: DocumentIndex) -> None:
    assert shop.add([Document("blank", " \n ")]) == 0
    assert shop.count() == (5, 4)


def test_half_a_character_in_a_document_does_no_harm(shop: DocumentIndex) -> None:
    shop.add([Document("odd\ud800", "strange \ud800 text", "lab\udfff")])
    assert sources(shop, "strange") == ["odd?"]


@pytest.mark.parametrize(
    ("document", "named"),
    [
        (Document("", "text"), "document id ''"),
        (Document("x" * 201, "text"), "id_chars_max=200"),
        (Document("long", "x" * (DOCUMENT_CHARS_MAX + 1)), "document_chars_max"),
        (Document("odd", "text", metadata={"at": object()}), "metadata is not JSON"),
        (Document("nan", "text", metadata={"at": float("nan")}), "metadata is not JSON"),
        (Document("much", "text", metadata={"note": "x" * 10_001}), "metadata_chars_max"),
    ],
)
def test_a_document_that_cannot_be_kept_is_refused_by_name(shop: DocumentIndex, document: Document, named: str) -> None:
    with pytest.raises(RequestRejected, match=named) as caught:
        shop.add([Document("new", "brand new"), document])
    assert caught.value.code == "DOCUMENT_INVALID"
    assert shop.count() == (4, 4)
    assert sources(shop, "brand") == []


def test_a_full_index_takes_nothing_more(shop: DocumentIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fts, "CHUNKS_MAX", 4)
    with pytest.raises(RequestRejected, match="5 pieces, chunks_max=4") as caught:
        shop.add([Document("fifth", "one too many")])
    assert caught.value.code == "INDEX_FULL"
    assert shop.count() == (4, 4)


@pytest.mark.parametrize("limit", [0, -1, RESULTS_MAX + 1])
def test_a_limit_out_of_bounds_is_refused(shop: DocumentIndex, limit: int) -> None:
    with pytest.raises(RequestRejected, match=f"limit={limit}") as caught:
        shop.retrieve("coffee", limit=limit)
    assert caught.value.code == "RETRIEVE_INVALID"


def test_no_more_is_returned_than_the_limit_says(shop: DocumentIndex) -> None:
    assert len(shop.retrieve("coffee shipping items open", limit=2)) == 2


def test_an_index_in_a_file_is_there_again_when_it_is_opened_anew(tmp_path: Path) -> None:
    with DocumentIndex(tmp_path / "shop.db") as index:
        index.add(SHOP)
    with DocumentIndex(tmp_path / "shop.db") as again:
        assert sources(again, "coffee") == ["coffee"]
        assert again.count() == (4, 4)


def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (a)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(RequestRejected, match="something else") as caught:
        DocumentIndex(path)
    assert caught.value.code == "INDEX_UNREADABLE"
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database at all, but long enough to be read as one" * 20)
    with pytest.raises(RequestRejected, match=r"notes\.txt"):
        DocumentIndex(path)


def test_a_folder_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RequestRejected, match="nowhere"):
        DocumentIndex(tmp_path / "nowhere" / "shop.db")


def test_a_closed_index_says_so_instead_of_finding_nothing(shop: DocumentIndex) -> None:
    shop.close()
    with pytest.raises(RequestRejected, match="closed"):
        shop.retrieve("coffee")


def test_an_index_may_be_asked_and_filled_from_many_threads(shop: DocumentIndex) -> None:
    def work(number: int) -> list[str]:
        shop.add([Document(f"new{number}", f"about subject{number}")])
        return sources(shop, f"subject{number}")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(20))) == [[f"new{number}"] for number in range(20)]


def test_a_short_text_is_one_piece_without_the_white_space_around_it() -> None:
    assert [tuple(chunk) for chunk in passages_of("  \n hello \n")] == [(4, "hello")]


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_a_text_of_nothing_has_no_pieces(text: str) -> None:
    assert list(passages_of(text)) == []


@pytest.mark.parametrize(
    ("separator", "end"),
    [("\n\n", "."), ("\n", "x"), (". ", "."), (" ", "x")],
    ids=["paragraph", "line", "sentence", "word"],
)
def test_a_piece_ends_at_the_best_end_there_is(separator: str, end: str) -> None:
    words = " ".join(["word"] * 7) + end if separator != " " else "wordx"
    text = separator.join([words] * 20)
    first = next(passages_of(text, chars_max=100, overlap_chars=0))
    assert first.text.endswith(end.strip())
    assert len(first.text) >= 50


def test_a_text_without_any_end_is_cut_at_the_limit() -> None:
    assert [chunk.text for chunk in passages_of("x" * 100, chars_max=40, overlap_chars=0)] == [
        "x" * 40,
        "x" * 40,
        "x" * 20,
    ]


def test_neighbours_overlap_from_the_beginning_of_a_word() -> None:
    text = " ".join(f"w{number:03}" for number in range(60))
    first, second, *_ = passages_of(text, chars_max=100, overlap_chars=20)
    assert second.start < first.start + len(first.text)
    assert text[second.start : second.start + 1] == "w"
    assert text[second.start : second.start + len(second.text)] == second.text


def test_an_overlap_within_one_long_word_still_goes_forward() -> None:
    pieces = list(passages_of("x" * 200, chars_max=40, overlap_chars=10))
    assert [piece.start for piece in pieces] == [0, 30, 60, 90, 120, 150, 180][: len(pieces)]
    assert pieces[-1].start + len(pieces[-1].text) == 200


@pytest.mark.parametrize(
    ("chars_max", "overlap_chars"),
    [(39, 0), (20_001, 0), (100, -1), (100, 26)],
    ids=["tiny", "huge", "negative", "much"],
)
def test_sizes_that_make_no_sense_are_refused_by_name(chars_max: int, overlap_chars: int) -> None:
    with pytest.raises(RequestRejected, match=f"chars_max={chars_max}|overlap_chars={overlap_chars}") as caught:
        check_chunking(chars_max, overlap_chars)
    assert caught.value.code == "CHUNKING_INVALID"


def test_the_usual_sizes_are_allowed() -> None:
    check_chunking(CHUNK_CHARS_MAX, OVERLAP_CHARS)


def test_words_are_found_once_each_in_their_order_without_case() -> None:
    assert meaningful_words("Refund, REFUND? shipping_cost!") == ("refund", "shipping", "cost")


def test_words_that_every_question_has_are_left_out() -> None:
    assert meaningful_words("What is the price of the book?") == ("price", "book")


def test_words_that_say_nothing_are_kept_when_there_are_no_others() -> None:
    assert meaningful_words("Who are you?") == ("who", "are", "you")


@pytest.mark.parametrize("text", ["", "?!*()", '"""', "\x00\ud800", "x" * 65])
def test_a_text_without_words_has_none(text: str) -> None:
    assert meaningful_words(text) == ()


def test_a_query_is_bounded_in_characters_and_in_words() -> None:
    assert len(meaningful_words(" ".join(f"w{n}" for n in range(100)))) == QUERY_WORDS_MAX
    assert meaningful_words(" " * QUERY_CHARS_MAX + "late") == ()


def test_marks_belong_to_their_letters() -> None:
    assert meaningful_words("हिन्दी भाषा") == ("हिन्दी", "भाषा")


def test_every_word_is_quoted() -> None:
    assert expression_of(("near", "not")) == '"near" OR "not"'
    assert quoted('a"b') == '"a""b"'


def test_what_is_no_path_is_refused_and_no_file_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RequestRejected, match="give documents to add"):
        DocumentIndex([Document("a.md", "lamps")])  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
