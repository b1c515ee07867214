"""Builtin tools are there when they are named, as they were named, and again for the process that goes on with a run."""

from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import RequestRejected
from remit.core.limits.tools import ToolCategory
from remit.core.record import replace
from remit.core.run.manifest import Source
from remit.tool.builtin import builtin_tools
from remit.tool.builtin.builtin_tools import (
    BUILTIN_UNKNOWN,
    BUILTIN_VALUE_INVALID,
    OFFERS,
    ROOTS_REFUSED,
    builtin,
)
from remit.tool.builtin.relative_path import STORE_MARK
from remit.tool.loader import TOOL_SOURCE_CHANGED, TOOL_SOURCE_MISSING, SourceFault, load_tools, reload
from remit.tool.registry import TOOL_NAME_TAKEN
from tests.unit.tool.watching import content


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    (tmp_path / "shop.db").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(place: str) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        load_tools(place)
    return caught.value


def fault(source: Source, **options: Any) -> SourceFault:
    with pytest.raises(SourceFault) as caught:
        reload([source], **options)
    return caught.value


def test_a_place_names_tools_in_its_order_with_absolute_paths(here: Path) -> None:
    found = load_tools("builtin:clock, calculator,files=./notes,sqlite_query=shop.db,http_get=Example.com+a.org:8443")
    assert [(source.name, source.place) for source in found.sources] == [
        ("clock", "builtin:clock"),
        ("calculator", "builtin:calculator"),
        ("list_files", f"builtin:files={here}/notes"),
        ("read_file", f"builtin:files={here}/notes"),
        ("search_files", f"builtin:files={here}/notes"),
        ("write_file", f"builtin:files={here}/notes"),
        ("sqlite_query", f"builtin:sqlite_query={here}/shop.db"),
        ("sqlite_tables", f"builtin:sqlite_query={here}/shop.db"),
        ("http_get", "builtin:http_get=example.com+a.org:8443"),
    ]
    assert all(source.attribute == source.name and source.digest for source in found.sources)


def test_reading_tools_can_be_had_without_the_one_that_writes(here: Path) -> None:
    assert "write_file" not in load_tools("builtin:read_files=notes")
    assert "read_file" in load_tools("builtin:read_files=notes")


def test_a_link_to_a_root_is_resolved_when_it_is_named(here: Path) -> None:
    (here / "link").symlink_to("notes")
    assert load_tools("builtin:read_files=link").sources[0].place == f"builtin:read_files={here}/notes"


def test_every_offer_is_usable_and_every_category_is_chosen(here: Path) -> None:
    values = {"files": "notes", "read_files": "notes", "sqlite_query": "shop.db"}
    tools = [one for name in OFFERS for one in builtin(name, values.get(name, ""))]
    assert {one.definition.category for one in tools} == {
        ToolCategory.READ_ONLY_LOOKUP,
        ToolCategory.SANDBOX,
        ToolCategory.FILE_SYSTEM,
        ToolCategory.DATABASE,
        ToolCategory.LIVE_API,
        ToolCategory.REVIEW_QUEUE,
    }
    assert [one.name for one in tools if one.definition.network] == ["http_get"]


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    found = refusal("builtin:clok")
    assert found.code == BUILTIN_UNKNOWN
    assert found.details["nearest"] == "clock"
    assert "did you mean 'clock'" in found.message


@pytest.mark.parametrize("place", ["builtin:", "builtin: ", "builtin:clock,,calculator"])
def test_a_place_without_a_name_is_answered_with_all_there_are(place: str) -> None:
    found = refusal(place)
    assert found.code == BUILTIN_UNKNOWN
    assert all(offer.usage in found.message for offer in OFFERS.values())


@pytest.mark.parametrize(
    "entry",
    [
        "clock=3",
        "calculator=x",
        "files",
        "files=",
        "read_files",
        "files=none",
        "files=shop.db",
        "files=/",
        "files=/proc",
        "files=/proc/self",
        "files=/sys",
        "files=/dev/shm",
        "files=a\x00b",
        "sqlite_query",
        "sqlite_query=none.db",
        "sqlite_query=notes",
        "http_get=localhost",
        "http_get=a.org+",
        "http_get=https://a.org",
        "http_get=10.0.0.1:99999",
        "http_get=127.0.0.1",
        "http_get=a.org+169.254.169.254:80",
        "http_get=[::1]:8443",
        "http_get=[::ffff:8.8.8.8]",
        "http_get=*.a.org",
        "files=" + "a" * 5000,
        "sqlite_query=" + "a" * 5000,
        "files=//proc",
        "sqlite_query=shop.db?mode=rwc",
        "sqlite_query=file:shop.db",
    ],
)
@pytest.mark.usefixtures("here")
def test_a_value_that_makes_no_sense_is_refused(entry: str) -> None:
    assert refusal(f"builtin:{entry}").code == BUILTIN_VALUE_INVALID


@pytest.mark.usefixtures("here")
def test_a_refusal_shows_no_control_characters() -> None:
    assert refusal("builtin:http_get=a\x1b[2J").message.isprintable()


def test_a_path_that_is_no_text_is_refused_since_no_run_could_write_it_down(here: Path) -> None:
    (here / "odd\udcff").mkdir()
    (here / "odd\udcff" / "a.db").touch()
    for entry in ("files=odd\udcff", "sqlite_query=odd\udcff/a.db"):
        assert refusal(f"builtin:{entry}").code == BUILTIN_VALUE_INVALID


def test_a_name_in_capitals_is_answered_with_the_one_that_was_meant() -> None:
    assert "did you mean 'clock'?" in refusal("builtin:CLOCK").message


def test_a_folder_of_the_kernel_is_no_root() -> None:
    assert Path("/proc") in ROOTS_REFUSED


def test_a_store_of_remit_is_neither_a_root_nor_a_database(here: Path) -> None:
    (here / "notes" / "blobs").mkdir()
    (here / "notes" / STORE_MARK).touch()
    for entry in ("files=notes", "files=notes/blobs", f"sqlite_query=notes/{STORE_MARK}"):
        found = refusal(f"builtin:{entry}")
        assert found.code == BUILTIN_VALUE_INVALID
        assert "store" in found.message


def test_two_roots_at_once_are_two_tools_of_one_name(here: Path) -> None:
    assert refusal("builtin:files=notes,files=.").code == TOOL_NAME_TAKEN


def test_a_tool_is_made_again_from_its_source_anywhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load_tools("builtin:clock,files=./notes,http_get=[2606:4700::1]:8443,sqlite_query=shop.db")
    monkeypatch.chdir("/")
    again = reload(first.sources, first.definitions)
    assert again.sources == first.sources
    assert again.definitions == first.definitions
    read = again.get("read_file")
    assert read is not None
    assert '"text":"a"' in content(read, path="a.txt")


def test_a_root_with_a_comma_is_named_in_python_and_found_again(here: Path) -> None:
    (here / "a,b").mkdir()
    tools = builtin("read_files", "a,b")
    assert reload([one.source for one in tools]).sources == tuple(one.source for one in tools)


def test_a_tool_whose_folder_is_gone_is_missing(here: Path) -> None:
    source = load_tools("builtin:read_files=notes").sources[0]
    (here / "notes").rename(here / "moved")
    found = fault(source)
    assert found.code == TOOL_SOURCE_MISSING
    assert "no folder" in found.message


def test_a_folder_that_was_replaced_by_a_link_is_another_place(here: Path) -> None:
    source = load_tools("builtin:read_files=notes").sources[0]
    (here / "notes").rename(here / "moved")
    (here / "notes").symlink_to("/etc")
    assert fault(source).code == TOOL_SOURCE_CHANGED


def test_a_tool_that_is_no_longer_in_the_catalogue_is_missing() -> None:
    source = load_tools("builtin:clock").sources[0]
    assert fault(replace(source, place="builtin:sundial")).code == TOOL_SOURCE_MISSING
    assert fault(replace(source, attribute="sundial")).code == TOOL_SOURCE_MISSING


def test_a_tool_with_a_new_revision_needs_a_person_to_accept_it(monkeypatch: pytest.MonkeyPatch) -> None:
    source = load_tools("builtin:clock").sources[0]
    monkeypatch.setattr(builtin_tools, "OFFERS", {**OFFERS, "clock": OFFERS["clock"]._replace(revision=2)})
    found = fault(source)
    assert found.code == TOOL_SOURCE_CHANGED
    assert found.details["found"] != source.digest
    assert "clock" in reload([source], accept_changed=["clock"])


def test_the_digest_depends_on_the_place_and_the_revision_and_not_on_the_bytes_of_the_package() -> None:
    # Written down here: when it changes, runs that were started before need a person to accept their tools.
    digest = "0ac00e9c67d1a1f90776b5f9a449c41d82535fd5e0cd41b1a8cba1c364649e5e"
    assert load_tools("builtin:clock").sources == (Source("clock", "builtin:clock", "clock", digest),)
