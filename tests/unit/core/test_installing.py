"""What is missing is said with a command that is right as it is printed."""

import importlib.util
import shutil
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from remit.core.installing import install_command, is_made_by_uv


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment with neither pip nor uv, which nothing is known about."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", "/my env/bin/python")
    return monkeypatch


def test_with_pip_the_command_names_the_interpreter_that_lacks_the_package(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(importlib.util, "find_spec", lambda name: ModuleSpec(name, None))
    assert install_command("local") == "'/my env/bin/python' -m pip install 'remit[local]'"


def test_without_pip_uv_installs_into_the_same_environment(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(shutil, "which", lambda name: "/bin/uv")
    assert install_command("openai") == "uv pip install 'remit[openai]' --python '/my env/bin/python'"


def test_an_environment_that_uv_made_is_told_of_uv(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nuv = 0.13.7\n")
    assert install_command("local").startswith("uv pip install ")
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/uv = bin\n")
    assert not is_made_by_uv(tmp_path)


def test_with_neither_pip_is_brought_first(bare: pytest.MonkeyPatch) -> None:
    said = install_command("local")
    assert said == "'/my env/bin/python' -m ensurepip && '/my env/bin/python' -m pip install 'remit[local]'"
