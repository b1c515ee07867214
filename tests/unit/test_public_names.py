"""The public list: every name is found, each in the file that defines it, and nothing else is offered."""

import builtins
import types
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
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


def test_every_coded_exception_can_be_caught_by_name_and_none_is_named_like_one_of_python() -> None:
    for home in Path(remit.__file__).parent.rglob("*.py"):
        module = ".".join(home.relative_to(Path(remit.__file__).parents[1]).with_suffix("").parts)
        if not module.startswith(("remit.adapters", "remit.testing", "remit.__")):
            import_module(module.removesuffix(".__init__"))
    todo, coded = [remit.RemitError], set[type[remit.RemitError]]()
    while todo:
        todo += (below := todo.pop().__subclasses__())
        coded |= {one for one in below if one.__module__.startswith("remit.") and ".adapters." not in one.__module__}
    # What is a kind of another one is caught as that: a refusal at the door as RequestRejected.
    assert {one.__name__ for one in coded if remit.RemitError in one.__bases__} <= set(remit.__all__)
    assert not {one.__name__ for one in coded} & vars(builtins).keys()
    exceptions = [name for name in remit.__all__ if isinstance(getattr(remit, name), type)]
    assert not [name for name in exceptions if issubclass(getattr(remit, name), Exception) and hasattr(builtins, name)]


def test_the_version_is_that_of_the_installed_package() -> None:
    assert remit.__version__ == version("remit")


def test_a_name_that_is_not_public_is_refused() -> None:
    with pytest.raises(AttributeError, match="module 'remit' has no attribute 'Nothing'"):
        _ = remit.Nothing  # type: ignore[attr-defined]
