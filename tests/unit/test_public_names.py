"""The public list: every name is found, each in the file that defines it, and nothing else is offered."""

import asyncio
import builtins
import re
import types
from importlib import import_module
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from types import FunctionType

import pytest

import remit
import remit.testing
from remit.run_records import HOMES as HOMES_OF_RECORDS

HOMES = {**remit._HOMES, **HOMES_OF_RECORDS}


def test_every_public_name_is_loaded_from_its_home() -> None:
    for name, home in HOMES.items():
        assert getattr(remit, name) is getattr(import_module(home), name)
        if isinstance(getattr(remit, name), FunctionType | type):
            assert getattr(remit, name).__module__ == home


def test_the_list_and_the_homes_name_the_same_things() -> None:
    assert sorted([*remit.__all__, "SystemError", "open"]) == sorted([*HOMES, "__version__"])
    assert dir(remit) == sorted([*remit.__all__, "SystemError", "open"])


def test_a_star_import_keeps_the_functions_of_python_itself() -> None:
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


def test_what_tests_need_is_loaded_from_its_home_and_nothing_else_is_offered() -> None:
    for name, home in remit.testing._HOMES.items():
        assert getattr(remit.testing, name) is getattr(import_module(home), name)
    assert sorted(remit.testing._HOMES) == sorted(remit.testing.__all__) == dir(remit.testing)
    suites = {name for name in remit.testing.__all__ if name.endswith("_CHECKS")}
    folder = Path(remit.testing.__file__).parent / "conformance"
    assert suites == {name for path in folder.rglob("*.py") for name in _suites_in(path.read_text(encoding="utf-8"))}
    with pytest.raises(AttributeError, match=r"module 'remit\.testing' has no attribute 'Nothing'"):
        _ = remit.testing.Nothing  # type: ignore[attr-defined]


def _suites_in(text: str) -> list[str]:
    return re.findall(r"^(\w+_CHECKS):", text, re.MULTILINE)


# They are made by what takes a path in either form.
MADE_OF_PATHS = ("EmbeddedStore.__init__", "EngineSettings.__init__", "Settings.__init__")


def public_functions() -> dict[str, object]:
    """Every public function, and every way to make or use something of a public class."""
    found: dict[str, object] = {}
    for name in (*remit.__all__, "SystemError", "open"):
        value = getattr(remit, name)
        if isinstance(value, type):
            methods = ["__init__", *[method for method in vars(value) if not method.startswith("_")]]
            found |= {f"{name}.{method}": getattr(value, method) for method in methods}
        else:
            found[name] = value
    return {name: value for name, value in found.items() if name not in MADE_OF_PATHS}


def test_whatever_takes_a_path_takes_its_text() -> None:
    taken = {
        f"{name}({parameter.name})": str(parameter.annotation)
        for name, value in public_functions().items()
        if isinstance(value, FunctionType | types.MethodType)
        for parameter in signature(value).parameters.values()
        if "Path" in str(parameter.annotation)
    }
    assert len(taken) > 20
    assert [place for place, annotation in taken.items() if not re.search(r"\bstr\b", annotation)] == []


def test_every_public_loader_reads_what_is_named_by_a_path_or_by_its_text(tmp_path: Path) -> None:
    files = {
        "rules.yaml": "name: r\nrules: []\n",
        "tools.py": "from remit import tool\n@tool\ndef look() -> str:\n    '''Look.'''\n    return ''\n",
        "boundary.yaml": "name: b\n",
        "script.json": '{"replies": [{"text": "hi"}]}',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for place in (tmp_path, str(tmp_path)):
        kind = type(place)
        assert remit.load_rules(kind(tmp_path / "rules.yaml")).rule_set.name == "r"
        assert [one.name for one in remit.load_tools(kind(tmp_path / "tools.py"))] == ["look"]
        assert remit.boundary_at(kind(tmp_path / "boundary.yaml")).name == "b"
        assert remit.ScriptedEngine.from_file(kind(tmp_path / "script.json")).source.place
        assert remit.settings_of({}, home=place).home == tmp_path
        for opened in (remit.EmbeddedStore.open, remit.EmbeddedStore.open_to_read):
            store = opened(kind(tmp_path / "store"))
            assert store.home == tmp_path / "store"
            asyncio.run(store.close())
