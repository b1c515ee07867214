"""Tools are loaded from files and modules, and loaded again only as what they were."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from remit.core.failure import RemitError, RequestRejected
from remit.core.limits.tools import Effect
from remit.core.record import replace
from remit.core.run.manifest import Source
from remit.tool.loader import (
    CODE_FILE_NOT_FOUND,
    CODE_FILE_UNREADABLE,
    FILE_BYTES_MAX,
    TOOL_DEFINITION_CHANGED,
    TOOL_FILE_EMPTY,
    TOOL_FILE_NOT_FOUND,
    TOOL_FILE_UNREADABLE,
    TOOL_SOURCE_CHANGED,
    TOOL_SOURCE_MISSING,
    SourceFault,
    load_code,
    load_tools,
    reload,
)
from remit.tool.registry import Registry

HEAD = "from remit.tool.declare.decorator import tool\n"
TWO = (
    HEAD
    + """
from dataclasses import dataclass

@dataclass
class Size:
    width: int

@tool(effect="read")
def zebra(size: Size) -> int:
    return size.width

@tool(name="other")
def ant() -> str:
    return __name__

again = ant

def plain(a: int) -> int:
    return a

wrapped = tool(effect="none", name="wrapped")(plain)
"""
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tools.py"
    path.write_text(TWO)
    return path


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that can be imported for the time of a test."""
    folder = tmp_path / "wares"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "desk.py").write_text(TWO)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "wares"]:
        del sys.modules[name]


def refusal(place: Any) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        load_tools(str(place))
    return caught.value


def source_fault(*given: Any, **options: Any) -> SourceFault:
    with pytest.raises(SourceFault) as caught:
        reload(*given, **options)
    assert isinstance(caught.value, RemitError)
    return caught.value


def test_the_tools_of_a_file_come_in_their_order_and_once_each(file: Path) -> None:
    registry = load_tools(str(file))
    assert [one.name for one in registry] == ["zebra", "other", "wrapped"]
    assert [one.attribute for one in registry.sources] == ["zebra", "ant", "wrapped"]
    assert {one.place for one in registry.sources} == {str(file)}


def test_the_same_bytes_are_executed_once_and_changed_bytes_anew(file: Path) -> None:
    first, second = load_tools(str(file)), load_tools(str(file))
    assert first.get("zebra") is second.get("zebra")
    file.write_text(TWO + "\n")
    third = load_tools(str(file))
    assert third.get("zebra") is not first.get("zebra")
    assert third.sources[0].digest != first.sources[0].digest
    assert third.version == first.version


def test_two_files_of_equal_bytes_are_two_modules(file: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.py"
    copy.write_bytes(file.read_bytes())
    assert load_tools(str(copy)).sources[0].place == str(copy)
    assert load_tools(str(file)).sources[0].place == str(file)


def test_a_file_may_be_named_by_a_relative_path(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    assert load_tools("tools.py").sources[0].place == str(file)


def test_a_file_does_not_take_itself_for_the_main_program(file: Path) -> None:
    found = load_tools(str(file)).get("other")
    assert found is not None
    assert found().startswith("_remit_tools_")


def test_the_tools_of_a_module_are_found_by_its_name(package: Path) -> None:
    registry = load_tools("module:wares.desk")
    assert {one.place for one in registry.sources} == {"wares.desk"}
    assert [one.attribute for one in registry.sources] == ["zebra", "ant", "wrapped"]
    assert reload(registry.sources, registry.definitions).version == registry.version


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = refusal(tmp_path / "gone.py")
    assert found.code == TOOL_FILE_NOT_FOUND
    assert found.details == {"place": str(tmp_path / "gone.py")}
    assert refusal("module:no_such_module").code == TOOL_FILE_NOT_FOUND
    assert refusal("module:no.such.module").code == TOOL_FILE_NOT_FOUND


def test_a_syntax_error_is_told_with_its_line(file: Path) -> None:
    file.write_text("x = 1\nif:\n")
    found = refusal(file)
    assert (found.code, found.details["line"]) == (TOOL_FILE_UNREADABLE, 2)
    assert "in line 2: SyntaxError" in found.message


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"1 / 0\n", "ZeroDivisionError: division by zero"),
        (b"raise SystemExit(3)\n", "SystemExit: 3"),
        (b"import no_such_module\n", "ModuleNotFoundError"),
        (b"x = '\xff'\n", "UnicodeDecodeError"),
        (b"x = 1\0\n", "null bytes"),
        (b"#" * (FILE_BYTES_MAX + 1), f"file_bytes_max={FILE_BYTES_MAX}"),
        (HEAD.encode() + b"@tool\ndef f(a): pass\n", "TOOL_DEFINITION_INVALID"),
    ],
)
def test_a_file_that_cannot_be_loaded_says_why(file: Path, text: bytes, told: str) -> None:
    file.write_bytes(text)
    before = set(sys.modules)
    found = refusal(file)
    assert found.code == TOOL_FILE_UNREADABLE
    assert told in found.message
    assert not any(name.startswith("_remit_tools_") for name in set(sys.modules) - before)


def test_a_folder_is_no_tool_file(tmp_path: Path) -> None:
    assert refusal(tmp_path).code == TOOL_FILE_UNREADABLE


def test_a_module_that_cannot_be_loaded_says_why(package: Path) -> None:
    (package / "broken.py").write_text("1 / 0\n")
    (package / "needy.py").write_text("import no_such_module\n")
    assert "ZeroDivisionError" in refusal("module:wares.broken").message
    found = refusal("module:wares.needy")
    assert found.code == TOOL_FILE_UNREADABLE


def test_a_file_without_tools_is_refused(file: Path) -> None:
    file.write_text("x = 1\n")
    assert refusal(file).code == TOOL_FILE_EMPTY


def test_tools_are_loaded_again_from_where_they_came(file: Path) -> None:
    first = load_tools(str(file))
    again = reload(first.sources, first.definitions)
    assert again.definitions == first.definitions
    assert again.sources == first.sources


def test_a_plain_function_is_wrapped_again(file: Path) -> None:
    zebra = load_tools(str(file)).get("zebra")
    assert zebra is not None
    plain = Source("plain", zebra.source.place, "plain", zebra.source.digest)
    found = reload([plain]).get("plain")
    assert found is not None
    assert found.definition.effect is Effect.EXTERNAL


def test_a_tool_is_found_by_its_name_where_its_attribute_is_another(file: Path) -> None:
    source = load_tools(str(file)).sources[1]
    assert [one.name for one in reload([replace(source, attribute="elsewhere")])] == ["other"]
    assert [one.name for one in reload([replace(source, attribute="zebra")])] == ["other"]


def test_a_changed_file_is_refused_before_it_is_executed(file: Path) -> None:
    first = load_tools(str(file))
    file.write_text("raise AssertionError('executed')\n")
    found = source_fault(first.sources, first.definitions)
    assert found.code == TOOL_SOURCE_CHANGED
    assert {key: found.details[key] for key in ("name", "place", "expected")} == {
        "name": "zebra",
        "place": str(file),
        "expected": first.sources[0].digest,
    }
    assert found.details["found"] not in ("", first.sources[0].digest)
    assert "(and 2 more)" in found.message
    assert [one["name"] for one in found.details["faults"]] == ["zebra", "other", "wrapped"]


def test_a_change_that_was_accepted_passes_while_the_definition_is_the_same(file: Path) -> None:
    first = load_tools(str(file))
    file.write_text(TWO.replace("return size.width", "return size.width + 1"))
    again = reload(first.sources, first.definitions, accept_changed={"zebra", "other", "wrapped"})
    assert again.definitions == first.definitions
    assert again.sources != first.sources
    assert source_fault(first.sources, accept_changed={"zebra", "other"}).details["name"] == "wrapped"


def test_a_definition_that_changed_is_refused_although_accepted(file: Path) -> None:
    first = load_tools(str(file))
    file.write_text(TWO.replace('effect="read"', 'effect="none"'))
    found = source_fault(first.sources, first.definitions, accept_changed={"zebra", "other", "wrapped"})
    assert (found.code, found.details["name"]) == (TOOL_DEFINITION_CHANGED, "zebra")
    assert found.details["expected_version"] == first.definitions[0].version
    assert found.details["found_version"] != found.details["expected_version"]


def test_a_tool_that_is_gone_is_missing(file: Path) -> None:
    first = load_tools(str(file))
    zebra = first.sources[:1]
    file.write_text(TWO.replace("def zebra", "def yak"))
    found = source_fault(zebra, accept_changed={"zebra"})
    assert (found.code, "'zebra' is no longer in its file" in found.message) == (TOOL_SOURCE_MISSING, True)
    file.write_text("1 / 0\n")
    assert "cannot be loaded" in source_fault(zebra, accept_changed={"zebra"}).message
    file.unlink()
    assert source_fault(zebra).code == TOOL_SOURCE_MISSING


@pytest.mark.parametrize("place", ["", "no.such.module", "no_such_module", "sys", ".."])
def test_what_has_no_file_is_missing(place: str) -> None:
    found = source_fault([Source("x", place, "x", "00")])
    assert (found.code, found.details["found"]) == (TOOL_SOURCE_MISSING, "")


def test_a_function_of_elsewhere_that_a_file_makes_a_tool_of_is_found_in_that_file(package: Path, file: Path) -> None:
    file.write_text(HEAD + "from wares.desk import plain, zebra\nwidth = tool(effect='none', name='width')(plain)\n")
    registry = load_tools(str(file))
    assert [(one.name, one.place, one.attribute) for one in registry.sources] == [
        ("zebra", "wares.desk", "zebra"),
        ("width", str(file), "width"),
    ]
    assert reload(registry.sources, registry.definitions).version == registry.version


def test_a_module_that_was_imported_before_its_file_changed_is_refused(package: Path) -> None:
    first = load_tools("module:wares.desk")
    (package / "desk.py").write_text(TWO.replace("return size.width", "return size.width + 1"))
    found = source_fault(first.sources[:1], first.definitions, accept_changed={"zebra"})
    assert found.code == TOOL_SOURCE_CHANGED
    assert "resume from a new process" in found.message


def test_a_file_is_executed_once_however_many_threads_ask_for_it(file: Path) -> None:
    file.write_text(TWO + "\nimport threading\nthreading.Event().wait(0.05)\nlast = tool(name='last')(plain)\n")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(load_tools, [str(file)] * 4))
    assert {len(registry) for registry in found} == {4}
    assert len({id(registry.get("last")) for registry in found}) == 1


def test_nothing_to_load_again_is_an_empty_registry() -> None:
    assert len(reload([])) == 0
    assert isinstance(reload(()), Registry)


def test_a_file_of_code_is_loaded_once_and_its_faults_have_codes_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    with pytest.raises(RequestRejected, match="there is no file of code") as caught:
        load_code(path)
    assert caught.value.code == CODE_FILE_NOT_FOUND
    path.write_text("answer = 42\n")
    assert load_code(path).answer == 42
    assert load_code(path) is load_code(path)
    path.write_text("1 / 0\n")
    with pytest.raises(RequestRejected, match=r"file of code .* cannot be loaded") as caught:
        load_code(path)
    assert caught.value.code == CODE_FILE_UNREADABLE
    path.write_text("#" * (FILE_BYTES_MAX + 1))
    with pytest.raises(RequestRejected, match="file_bytes_max") as caught:
        load_code(path)
    assert caught.value.code == CODE_FILE_UNREADABLE
