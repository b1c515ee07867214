"""The index of documents: what is found, in which order, and what is turned away."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from remit.context import fts
from remit.context.fts import DOCUMENT_CHARS_MAX, RESULTS_MAX, Document, DocumentIndex
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
