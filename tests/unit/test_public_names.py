"""The public list: every name is found, each in the file that defines it, and nothing else is offered."""

import builtins
import types
from importlib import import_module
from importlib.metadata import version
from types import FunctionType

import pytest

import remit


def test_every_public_name_is_loaded_from_its_home() -> None:
    for name, home in remit._HOMES.items():
        assert getattr(remit, name) is getattr(import_module(home), name)
        if isinstance(getattr(remit, name), FunctionType | type):
            assert getattr(remit, name).__module__ == home


def test_the_list_and_the_homes_name_the_same_things() -> None:
    assert sorted([*remit.__all__, "open"]) == sorted([*remit._HOMES, "__version__"])
    assert dir(remit) == sorted([*remit.__all__, "open"])


def test_whoever_takes_everything_keeps_the_functions_of_python_itself() -> None:
    taken: dict[str, object] = {}
    exec("from remit import *", taken)
    assert taken.keys() & vars(builtins).keys() <= {"__builtins__", *vars(types.ModuleType(""))}
    assert taken["AgentLoop"] is remit.AgentLoop


def test_the_version_is_that_of_the_installed_package() -> None:
    assert remit.__version__ == version("remit")


def test_a_name_that_is_not_public_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'remit' has no attribute 'Nothing'"):
        _ = remit.Nothing  # type: ignore[attr-defined]
