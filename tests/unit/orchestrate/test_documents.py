"""Documents of a plan: what is read of a folder, what is refused, what is found."""

import asyncio
import os
from pathlib import Path

import pytest

from remit.context.fts import DOCUMENT_ID_CHARS_MAX, Document
from remit.core.failure import RequestRejected
from remit.orchestrate.patterns import documents
from remit.orchestrate.patterns.documents import Documents, read_documents


def shelf(folder: Path, **texts: str) -> Path:
    """A folder with these texts; a double underscore stands for the dot of a name."""
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def refused(place: Path) -> str:
    with pytest.raises(RequestRejected) as caught:
        read_documents(place, base=place)
    assert caught.value.code == "DOCUMENTS_UNREADABLE"
    return caught.value.message


def test_texts_of_a_folder_are_read_in_order_and_named_from_the_plan_on(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "deep" / "er").mkdir(parents=True)
    shelf(folder, b__txt="two", a__MD="one", picture__png="no", notes="no")
    shelf(folder / "deep" / "er", c__md="\ufeffthree")
    shelf(folder, __hidden__txt="no")
    found = read_documents(folder, base=tmp_path).documents
    assert [(one.id, one.text) for one in found] == [
        ("docs/a.MD", "one"),
        ("docs/b.txt", "two"),
        ("docs/deep/er/c.md", "three"),
    ]


def test_one_file_is_documents_too(tmp_path: Path) -> None:
    shelf(tmp_path, a__txt="one")
    assert read_documents(tmp_path / "a.txt", base=tmp_path / "plans").documents == (Document("../a.txt", "one"),)


def test_the_digest_tells_every_change_of_text_and_name(tmp_path: Path) -> None:
    seen = [read_documents(shelf(tmp_path, a__txt="one"), base=tmp_path).digest]
    seen.append(read_documents(shelf(tmp_path, a__txt="other"), base=tmp_path).digest)
    (tmp_path / "a.txt").rename(tmp_path / "b.txt")
    seen.append(read_documents(tmp_path, base=tmp_path).digest)
    seen.append(read_documents(shelf(tmp_path, c__txt=""), base=tmp_path).digest)
    assert len(set(seen)) == len(seen)
    assert read_documents(tmp_path, base=tmp_path / "elsewhere").digest == seen[-1]


def test_a_place_without_documents_is_refused(tmp_path: Path) -> None:
    assert "holds no document" in refused(tmp_path)
    shelf(tmp_path, a__pdf="one")
    assert "end in .txt or .md" in refused(tmp_path / "a.pdf")
    assert "cannot be read: No such file" in refused(tmp_path / "nowhere")


def test_what_is_no_text_is_refused_with_the_byte(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ab\xff")
    assert "is not UTF-8 text: byte 2 is wrong" in refused(tmp_path)


def test_too_many_files_and_too_many_bytes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf(tmp_path, a__txt="12345", b__txt="12345")
    monkeypatch.setattr(documents, "BYTES_MAX", 9)
    assert "bytes_max=9; name fewer" in refused(tmp_path)
    monkeypatch.setattr(documents, "FILES_MAX", 1)
    assert "files_max=1 documents; name fewer" in refused(tmp_path)


def test_a_document_that_nobody_may_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    (tmp_path / "loop.txt").symlink_to("loop.txt")
    assert "holds no document" in refused(tmp_path)
    pipe = tmp_path / "b.txt"
    pipe.symlink_to("/proc/self/mem")
    assert "cannot be read" in refused(tmp_path) or os.geteuid() != 0


def test_folders_that_lead_back_to_themselves_come_to_an_end(tmp_path: Path) -> None:
    shelf(tmp_path, a__txt="one")
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    found = read_documents(tmp_path, base=tmp_path).documents
    assert 1 < len(found) <= documents.FOLDERS_DEEP_MAX + 1


def test_a_long_path_is_named_by_its_end(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["x" * 60] * 4)
    folder.mkdir(parents=True)
    shelf(folder, a__txt="one")
    (only,) = read_documents(tmp_path, base=tmp_path).documents
    assert len(only.id) == DOCUMENT_ID_CHARS_MAX
    assert only.id.endswith("/a.txt")


def test_what_was_read_is_found_with_its_source() -> None:
    shop = Documents([Document("hours.md", "Open from nine to five."), Document("tea.md", "Tea costs two euros.")])
    (found,) = asyncio.run(shop.find("How much is tea?"))
    assert (found.source, found.content) == ("tea.md", "Tea costs two euros.")
    assert asyncio.run(shop.find("Elephants?")) == ()
