"""A model lists, reads, searches and writes texts in one folder, and is told when a result was cut."""

import asyncio
import json
import os
import tracemalloc
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from remit.core.limits.tools import Effect, ToolCategory
from remit.tool.builtin import file_search, files
from remit.tool.builtin.file_search import MATCH_CHARS_MAX, MATCHES_MAX, SEARCHED_DEPTH_MAX
from remit.tool.builtin.files import (
    LISTED_MAX,
    READ_CHARS_MAX,
    WRITTEN_CHARS_MAX,
    file_tools,
    reading_tools,
)
from remit.tool.builtin.relative_path import FILE_PATH_INVALID
from remit.tool.builtin.rooted import FILE_BYTES_MAX, FILE_NOT_FOUND, FILE_NOT_TEXT
from remit.tool.call.cancel_token import CancelToken, ToolCancelled
from remit.tool.declare.decorator import Tool
from tests.unit.tool.watching import called, content, fault


class Desk:
    """The four tools on one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.tools: dict[str, Tool] = {one.name: one for one in file_tools(root)}

    def ask(self, name: str, **arguments: Any) -> Any:
        return json.loads(content(self.tools[name], **arguments))

    def fail(self, name: str, **arguments: Any) -> str:
        return fault(self.tools[name], **arguments).error


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("one\nTwo\nthree")
    (tmp_path / "sub" / "b.txt").write_text("two again\n")
    return Desk(tmp_path)


def test_the_tools_declare_what_they_do(desk: Desk) -> None:
    assert [one.name for one in reading_tools(desk.root)] == ["list_files", "read_file", "search_files"]
    assert all(one.definition.category is ToolCategory.FILE_SYSTEM for one in desk.tools.values())
    assert {one.definition.effect for one in reading_tools(desk.root)} == {Effect.READ}
    write = desk.tools["write_file"].definition
    assert (write.effect, write.idempotent, write.destructive) == (Effect.WRITE, True, True)
    assert desk.tools["read_file"].definition.untrusted_output


def test_no_definition_tells_where_the_root_lies(desk: Desk) -> None:
    assert all(str(desk.root) not in str(one.definition) for one in desk.tools.values())


def test_a_folder_is_listed_with_paths_that_can_be_read(desk: Desk) -> None:
    (desk.root / ".env").touch()
    assert desk.ask("list_files") == {
        "entries": [
            {"path": "a.txt", "kind": "file", "size_bytes": 13},
            {"path": "sub", "kind": "folder", "size_bytes": 0},
        ],
        "left_out": 1,
        "is_complete": True,
    }
    listed = desk.ask("list_files", folder="./sub/")
    assert desk.ask("read_file", path=listed["entries"][0]["path"])["text"] == "two again\n"


def test_a_folder_with_many_files_is_cut_and_says_so(desk: Desk) -> None:
    for number in range(LISTED_MAX):
        (desk.root / f"f{number}").touch()
    listed = desk.ask("list_files")
    assert len(listed["entries"]) == LISTED_MAX
    assert not listed["is_complete"]


def test_a_file_is_read_with_its_lines(desk: Desk) -> None:
    assert desk.ask("read_file", path="a.txt") == {
        "path": "a.txt",
        "text": "one\nTwo\nthree",
        "first_line": 1,
        "last_line": 3,
        "lines_total": 3,
        "is_complete": True,
    }
    assert desk.ask("read_file", path="a.txt", first_line=3)["text"] == "three"
    assert "beyond" in desk.fail("read_file", path="a.txt", first_line=4)


def test_an_empty_file_is_a_text_without_lines(desk: Desk) -> None:
    (desk.root / "empty").touch()
    read = desk.ask("read_file", path="empty")
    assert (read["text"], read["lines_total"], read["is_complete"]) == ("", 0, True)


def test_a_long_file_is_read_in_parts_until_its_end(desk: Desk) -> None:
    lines = [f"line {number} ü\u2028\r\x0c" for number in range(20_000)]
    (desk.root / "long").write_text("\n".join(lines), newline="")
    first, text = 1, ""
    for _ in range(20):
        part = desk.ask("read_file", path="long", first_line=first)
        assert len(part["text"]) <= READ_CHARS_MAX
        text, first = text + part["text"], part["last_line"] + 1
        if part["is_complete"]:
            break
    assert text == "\n".join(lines)


@pytest.mark.parametrize(
    "text", ["", "\n", "\n\n", "a", "a\n", "a\n\nb", "\na\n", "abc\nde\nf\n", "abcdef\ng", "abcde\n"]
)
def test_lines_are_cut_where_they_end_whatever_the_text(text: str, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "READ_CHARS_MAX", 5)
    (desk.root / "lines").write_text(text)
    lines = text.splitlines(keepends=True)
    for first in range(1, max(len(lines), 1) + 1):
        read = desk.ask("read_file", path="lines", first_line=first)
        shown = "".join(lines[first - 1 : read["last_line"]])
        assert read["text"] == (shown if len(shown) <= 5 else shown[:5])
        assert read["is_complete"] == (read["last_line"] >= len(lines) and len(shown) <= 5)
        assert read["lines_total"] == len(lines)
        # One more line would not have fitted.
        assert read["is_complete"] or len("".join(lines[first - 1 : read["last_line"] + 1])) > 5
    assert "beyond" in desk.fail("read_file", path="lines", first_line=max(len(lines), 1) + 1)


@pytest.mark.slow
def test_millions_of_short_lines_take_no_more_memory_than_their_text(desk: Desk) -> None:
    (desk.root / "short").write_text("ab\n" * 300_000)
    size = 900_000
    tracemalloc.start()
    try:
        desk.tools["read_file"]("short", 299_990)
        # The bytes, the text and their parts; a list of the lines alone would be twenty times the text.
        assert tracemalloc.get_traced_memory()[1] < 6 * size
        tracemalloc.reset_peak()
        desk.tools["search_files"]("b", CancelToken())
        assert tracemalloc.get_traced_memory()[1] < 6 * size
    finally:
        tracemalloc.stop()


def test_one_line_that_is_too_long_is_shown_by_its_beginning(desk: Desk) -> None:
    (desk.root / "wide").write_text("x" * (READ_CHARS_MAX + 1) + "\nend")
    read = desk.ask("read_file", path="wide")
    assert (len(read["text"]), read["last_line"], read["is_complete"]) == (READ_CHARS_MAX, 1, False)


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe", b"\x89PNG\r\n\x1a\n", b"\xed\xa0\x80"])
def test_what_is_no_text_is_not_shown(desk: Desk, data: bytes) -> None:
    (desk.root / "binary").write_bytes(data)
    assert FILE_NOT_TEXT in desk.fail("read_file", path="binary")


def test_a_path_outside_is_refused_with_words_for_the_model(desk: Desk) -> None:
    error = desk.fail("read_file", path="../../etc/passwd")
    assert error.startswith(f"ToolRefused: {FILE_PATH_INVALID}: path '../../etc/passwd'")
    assert FILE_NOT_FOUND in desk.fail("read_file", path="none")


def test_a_text_is_found_in_every_folder_below(desk: Desk) -> None:
    found = desk.ask("search_files", text="TWO")
    assert found["matches"] == [
        {"path": "a.txt", "line": 2, "text": "Two"},
        {"path": "sub/b.txt", "line": 1, "text": "two again"},
    ]
    assert (found["files_searched"], found["skipped"], found["is_complete"]) == (2, 0, True)
    assert desk.ask("search_files", text="two", folder="sub")["files_searched"] == 1


def test_a_search_passes_over_what_is_no_text_or_out_of_reach(desk: Desk) -> None:
    (desk.root / "binary").write_bytes(b"two\0")
    os.link(desk.root / "a.txt", desk.root / "hard")
    (desk.root / "store").mkdir()
    (desk.root / "store" / "remit.db").touch()
    (desk.root / "store" / "two").write_text("two")
    found = desk.ask("search_files", text="two")
    assert [match["path"] for match in found["matches"]] == ["sub/b.txt"]
    assert found["skipped"] == 4


def test_a_search_in_a_folder_that_is_not_there_is_refused(desk: Desk) -> None:
    assert FILE_NOT_FOUND in desk.fail("search_files", text="two", folder="none")


def test_a_search_with_many_matches_is_cut_and_says_so(desk: Desk) -> None:
    (desk.root / "many").write_text(f"two{'x' * MATCH_CHARS_MAX}\n" * (MATCHES_MAX + 1))
    found = desk.ask("search_files", text="two", folder="")
    assert len(found["matches"]) == MATCHES_MAX
    assert all(len(match["text"]) <= MATCH_CHARS_MAX for match in found["matches"])
    assert not found["is_complete"]


@pytest.mark.parametrize("limit", ["SEARCHED_FILES_MAX", "SEARCHED_FOLDERS_MAX", "SEARCHED_BYTES_MAX"])
def test_a_search_stops_at_each_of_its_limits_and_says_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(file_search, limit, 1)
    found = desk.ask("search_files", text="two")
    assert found["files_searched"] == 1
    assert not found["is_complete"]


def test_a_search_remembers_no_more_folders_than_it_will_look_into(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (desk.root / f"d{number}").mkdir()
        (desk.root / f"d{number}" / "in").write_text("two")
    monkeypatch.setattr(file_search, "SEARCHED_FOLDERS_MAX", 10)
    waiting: list[int] = []

    class Counted(deque[str]):
        def popleft(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
            waiting.append(len(self))
            return super().popleft()

    monkeypatch.setattr(file_search, "deque", Counted)
    found = desk.ask("search_files", text="two")
    assert (found["is_complete"], len(waiting)) == (False, 10)
    assert max(waiting) <= 10
    # Exactly as many as there are is complete.
    monkeypatch.setattr(file_search, "SEARCHED_FOLDERS_MAX", 52)
    assert desk.ask("search_files", text="two")["is_complete"]


def test_a_text_over_two_lines_is_in_no_line(desk: Desk) -> None:
    assert desk.ask("search_files", text="one\ntwo")["matches"] == []


def test_a_search_goes_so_deep_and_no_deeper(desk: Desk) -> None:
    deep = desk.root.joinpath(*["d"] * SEARCHED_DEPTH_MAX)
    (deep / "e").mkdir(parents=True)
    (deep / "in").write_text("two")
    (deep / "e" / "out").write_text("two")
    found = desk.ask("search_files", text="two", folder="d")
    assert [match["path"].rpartition("/")[2] for match in found["matches"]] == ["in"]
    assert found["skipped"] == 1


def test_a_cancelled_search_stops(desk: Desk) -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(ToolCancelled):
        desk.tools["search_files"]("two", token)


def test_a_text_is_written_verified_and_written_again_without_harm(desk: Desk) -> None:
    for changed in (True, False):
        done = asyncio.run(called(desk.tools["write_file"], path="new/c.txt", text="drei\n"))
        assert json.loads(done.content) == {"path": "new/c.txt", "size_bytes": 5, "changed": changed}
        assert done.refuted == ""
    assert (desk.root / "new" / "c.txt").read_text() == "drei\n"


def test_a_file_is_replaced_only_when_the_model_says_so(desk: Desk) -> None:
    assert "if_exists='replace'" in desk.fail("write_file", path="a.txt", text="x")
    assert desk.ask("write_file", path="a.txt", text="x", if_exists="replace")["changed"]


def test_a_write_that_was_undone_is_refuted(desk: Desk) -> None:
    write = desk.tools["write_file"]
    assert write.verify is not None
    result = write("a.txt", "x", "replace")
    assert write.verify({"path": "a.txt", "text": "x"}, result) == ""
    (desk.root / "a.txt").write_text("y")
    assert "does not hold" in write.verify({"path": "a.txt", "text": "x"}, result)


def test_a_text_that_could_not_be_read_again_is_not_written(desk: Desk) -> None:
    assert FILE_NOT_TEXT in desk.fail("write_file", path="program", text="\x7fELF\0")
    assert not (desk.root / "program").exists()


def test_a_text_with_a_lone_surrogate_cannot_be_written(desk: Desk) -> None:
    with pytest.raises(Exception, match=FILE_NOT_TEXT):
        desk.tools["write_file"]("s.txt", "\ud800")


def test_the_longest_text_that_may_be_written_can_be_read_again() -> None:
    assert WRITTEN_CHARS_MAX * 4 <= FILE_BYTES_MAX
