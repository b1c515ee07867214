"""A model is found by its path or its name, and a caller who asks for another is told which are there."""

import sys
from pathlib import Path
from typing import NoReturn

import pytest

from remit.core.failure import ErrorCode, RequestRejected
from remit.inference.local import models
from remit.inference.local.gguf import MODEL_FILE_UNREADABLE
from remit.inference.local.models import (
    DEFAULT_NAME,
    KnownModel,
    ModelDescription,
    ModelOrigin,
    describe_model,
    find_model,
    known_models,
)
from tests.unit.inference.tiny_model import gguf_bytes, write_tiny_model


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A models folder on a machine without the package that ships weights."""
    monkeypatch.setattr(models, "WEIGHTS_MODULE", "a_package_that_is_not_installed")
    path = tmp_path / "models"
    path.mkdir()
    return path


def refusal_of(wanted: str, *, base: Path, folder: Path | None) -> str:
    with pytest.raises(RequestRejected) as caught:
        find_model(wanted, base=base, folder=folder)
    assert caught.value.code == ErrorCode.CONFIG_NO_ENGINE
    return caught.value.message


def test_models_of_the_folder_are_known_by_their_names(folder: Path) -> None:
    tiny = write_tiny_model(folder / "tiny.gguf")
    (folder / "notes.txt").write_text("not a model")
    (folder / "folder.gguf").mkdir()
    assert known_models(folder) == (KnownModel("tiny", tiny, tiny.stat().st_size, ModelOrigin.FOLDER),)


def test_weights_of_the_package_are_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "some_weights"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    shipped = write_tiny_model(package / "shipped.gguf")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(models, "WEIGHTS_MODULE", "some_weights")
    assert known_models(None) == (KnownModel("shipped", shipped, shipped.stat().st_size, ModelOrigin.PACKAGE),)
    assert "some_weights" not in sys.modules


def test_a_module_that_is_no_package_ships_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lone_weights.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(models, "WEIGHTS_MODULE", "lone_weights")
    assert known_models(tmp_path / "nowhere") == ()


def test_a_model_of_the_folder_hides_one_of_the_same_name_in_the_package(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "other_weights"
    package.mkdir()
    write_tiny_model(package / "tiny.gguf")
    ours = write_tiny_model(folder / "tiny.gguf")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(models, "WEIGHTS_MODULE", "other_weights")
    assert [model.path for model in known_models(folder)] == [ours]


@pytest.mark.parametrize("wanted", ["tiny.gguf", "./tiny.gguf"])
def test_a_path_starts_from_where_the_caller_stands(folder: Path, tmp_path: Path, wanted: str) -> None:
    here = write_tiny_model(tmp_path / "tiny.gguf")
    write_tiny_model(folder / "tiny.gguf")
    assert find_model(wanted, base=tmp_path, folder=folder) == here.resolve()
    assert find_model(str(here), base=Path("/"), folder=None) == here.resolve()


@pytest.mark.parametrize("wanted", ["tiny", "tiny.gguf", ""])
def test_a_model_is_found_by_its_name_or_because_it_is_the_only_one(folder: Path, tmp_path: Path, wanted: str) -> None:
    kept = write_tiny_model(folder / "tiny.gguf")
    assert find_model(wanted, base=tmp_path, folder=folder) == kept.resolve()


@pytest.mark.parametrize("wanted", ["", "smollm2", DEFAULT_NAME])
def test_of_several_models_the_default_is_the_one_that_can_be_fetched(
    folder: Path, tmp_path: Path, wanted: str
) -> None:
    write_tiny_model(folder / "a.gguf")
    kept = write_tiny_model(folder / f"{DEFAULT_NAME}.gguf")
    assert find_model(wanted, base=tmp_path, folder=folder) == kept.resolve()


def test_several_models_without_the_default_have_to_be_named(folder: Path, tmp_path: Path) -> None:
    write_tiny_model(folder / "a.gguf")
    write_tiny_model(folder / "b.gguf")
    assert "there are several models, a, b; say which one: local:NAME" in refusal_of("", base=tmp_path, folder=folder)


def test_a_machine_without_models_says_how_to_get_one(folder: Path, tmp_path: Path) -> None:
    assert "remit models add smollm2" in refusal_of("", base=tmp_path, folder=folder)
    assert "remit models add smollm2" in refusal_of("smollm2", base=tmp_path, folder=None)


def test_a_model_nobody_knows_is_refused_with_those_that_are_known(folder: Path, tmp_path: Path) -> None:
    write_tiny_model(folder / "tiny.gguf")
    message = refusal_of("huge", base=tmp_path, folder=folder)
    assert "'huge' is neither a file nor the name of a known model; known are tiny" in message


def test_a_description_tells_what_the_file_says(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    assert describe_model(path) == ModelDescription(
        "tiny", path, path.stat().st_size, "llama", "Tiny", "25.6K", "F32", 512, has_chat_template=True
    )


def test_a_size_label_of_the_file_wins_over_counting(tmp_path: Path) -> None:
    assert describe_model(write_tiny_model(tmp_path / "a.gguf", general__size_label="135M")).parameters == "135M"


def test_a_model_without_weights_has_none_to_count(tmp_path: Path) -> None:
    path = tmp_path / "empty.gguf"
    path.write_bytes(gguf_bytes({"general.architecture": "llama"}, {}))
    assert describe_model(path).parameters == "0"


def test_a_header_is_read_anew_when_the_file_changed(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "tiny.gguf")
    assert describe_model(path).title == "Tiny"
    write_tiny_model(path, general__name="Tiny no more")
    assert describe_model(path).title == "Tiny no more"


def test_what_is_no_model_cannot_be_described(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("not a model at all")
    for name in ("text.gguf", "gone.gguf"):
        with pytest.raises(RequestRejected) as caught:
            describe_model(tmp_path / name)
        assert caught.value.code == MODEL_FILE_UNREADABLE


def test_a_name_that_no_file_can_have_is_refused_with_the_reason(folder: Path) -> None:
    assert "cannot be looked for: File name too long" in refusal_of("x" * 5000, base=folder, folder=folder)


def test_a_folder_that_cannot_be_read_is_refused_with_the_way_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(path: Path) -> NoReturn:
        raise PermissionError(13, "Permission denied", str(path))

    # A user who may read everything, as the tests may, finds no folder locked.
    monkeypatch.setattr(Path, "iterdir", locked)
    message = refusal_of("", base=folder, folder=folder)
    assert f"{str(folder)!r} cannot be read: Permission denied" in message
    assert "REMIT_MODELS" in message
