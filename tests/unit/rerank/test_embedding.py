"""The embedding router finds the tool that words ask for, and says when there is none."""

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from remit.core.limits.tools import ToolDefinition
from remit.rerank import embedding
from remit.rerank.embedding import (
    CLAUSES_MAX,
    FITS_CLEARLY_MIN,
    FITS_MIN,
    WORDS_CHARS_MAX,
    EmbeddingRouter,
    embedding_router,
    request_parts,
)


def declared(name: str, description: str) -> ToolDefinition:
    return ToolDefinition(name, description, {"type": "object"})


TOOLS = (
    declared("clock", "The current date and time, now or in a time zone."),
    declared("calculator", "Compute an arithmetic expression such as 12 * 7."),
    declared("read_file", "Read the text of a file by its path."),
    declared("lookup_order", "Look an order up by its number: status, item and delivery."),
)


def shortlist(words: str) -> list[str]:
    return [each.tool for each in embedding_router().shortlist(words, TOOLS)]


@pytest.mark.parametrize(
    ("words", "tools"),
    [
        ("What time is it?", ["clock"]),
        ("Compute (3 + 4) * 5", ["calculator"]),
        ("Could you please read the file notes.txt", ["read_file"]),
        ("Has my order 1077 been shipped yet?", ["lookup_order"]),
        ("Hello. My name is Ada. What is 3 * 9?", ["calculator"]),
        ("Tell me a joke.", []),
        ("Who wrote Hamlet?", []),
        ("", []),
        ("   ", []),
    ],
)
def test_words_ask_for_the_tool_that_fits_or_for_none(words: str, tools: list[str]) -> None:
    assert shortlist(words) == tools


def test_a_request_for_two_things_asks_for_two_tools_in_their_order() -> None:
    assert shortlist("What time is it, and what is 12*7?") == ["clock", "calculator"]
    assert shortlist("Read notes.txt and tell me the time. Then read b.txt") == ["read_file", "clock"]


def test_what_fits_says_how_well() -> None:
    (clear,) = embedding_router().shortlist("Where is order 42?", TOOLS)
    assert clear.score >= FITS_CLEARLY_MIN
    (weak,) = embedding_router().shortlist("Add 1200 and 345", TOOLS)
    assert FITS_MIN <= weak.score < FITS_CLEARLY_MIN


def test_every_tool_has_its_place_in_the_ranking() -> None:
    ranked = embedding_router().ranked("Where is order 42?", TOOLS)
    assert ranked[0].tool == "lookup_order"
    assert {each.tool for each in ranked} == {tool.name for tool in TOOLS}
    assert [each.score for each in ranked] == sorted((each.score for each in ranked), reverse=True)


def test_without_words_or_without_tools_nothing_breaks() -> None:
    assert len(embedding_router().ranked("", TOOLS)) == len(TOOLS)
    assert embedding_router().ranked("What time is it?", ()) == ()
    assert embedding_router().shortlist("What time is it?", ()) == ()


def test_one_tool_is_found_among_hundreds() -> None:
    crowd = [declared(f"report_{n}", f"Write report number {n} about district {n % 17}.") for n in range(300)]
    ranked = embedding_router().ranked("What time is it in Tokyo?", [*crowd, TOOLS[0]])
    assert ranked[0].tool == "clock"


def test_a_tool_without_a_description_is_known_by_its_name() -> None:
    (found,) = embedding_router().shortlist("Send an email to Bob", [declared("sendEmail", ""), TOOLS[0]])
    assert found.tool == "sendEmail"


def test_clauses_are_sentences_and_what_and_joins_with_the_whole_at_the_end() -> None:
    assert request_parts("Please read a.txt, and then add it. Done?\nYes; ok") == [
        "read a.txt",
        "add it.",
        "Done?",
        "Yes",
        "ok",
        "read a.txt, and then add it. Done? Yes; ok",
    ]
    assert request_parts("Please") == ["Please", "Please"]


def test_only_so_much_of_a_long_request_is_read() -> None:
    assert len(request_parts("Stop. " * 100)) == CLAUSES_MAX + 1
    assert len(request_parts("a" * 9000)[-1]) == WORDS_CHARS_MAX


def test_what_was_embedded_is_kept_and_makes_room_when_it_is_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    router = EmbeddingRouter()
    computed: list[int] = []
    compute = EmbeddingRouter._computed

    def counted(self: EmbeddingRouter, texts: list[str]) -> object:
        computed.append(len(texts))
        return compute(self, texts)

    monkeypatch.setattr(EmbeddingRouter, "_computed", counted)
    first = router.ranked("What time is it?", TOOLS)
    assert router.ranked("What time is it?", TOOLS) == first
    assert computed == [4, 4, 2, 2]
    monkeypatch.setattr(embedding, "VECTORS_MAX", 5)
    assert router.ranked("What time is it?", TOOLS) == first
    assert len(router._vectors) <= 5


def test_many_threads_load_it_once_and_hear_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    load = embedding._load

    def counted() -> object:
        loads.append(1)
        return load()

    monkeypatch.setattr(embedding, "_load", counted)
    router = EmbeddingRouter()
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: router.shortlist("What time is it?", TOOLS), range(32)))
    assert (len(loads), len(found)) == (1, 1)


def test_it_can_be_asked_beside_an_event_loop() -> None:
    async def scene() -> list[str]:
        found = await asyncio.to_thread(embedding_router().shortlist, "Where is order 42?", TOOLS)
        return [each.tool for each in found]

    assert asyncio.run(scene()) == ["lookup_order"]


@pytest.mark.slow
def test_loading_it_leaves_the_logging_of_the_process_alone() -> None:
    # In a process of its own: here it may have been loaded before.
    program = (
        "import logging; from remit.rerank.embedding import EmbeddingRouter; "
        "EmbeddingRouter().ranked('look', [__import__('remit.core.limits.tools').core.limits.tools.ToolDefinition('look', 'Look.', {})]); "
        "root = logging.getLogger(); print(root.handlers, logging.getLevelName(root.level))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "WARNING"]
