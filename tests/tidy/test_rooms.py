"""Every folder is a room with a sign at its door, and every room imports only what it may."""

import ast
import sys
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.tidy.source import PACKAGE, ROOT, Source, expect_none, imported, source, sources

# What a door may import besides itself; of `orchestrate` only the facade, and what is looked at before any run.
OPEN_TO_ADAPTERS = {"adapters", "agents", "assemble", "assemble_wire", "assemble_workers", "core", "observe", "wire"}
# The facade, for runs and for what people write in files.
FACADE = "remit.adapters.** -> remit.orchestrate.facade"
DRAFTS = "remit.adapters.** -> remit.orchestrate.drafts"
GUARD = "remit.adapters.** -> remit.orchestrate.guard.guard"


def folders_without_sign(package: Path) -> list[str]:
    folders = {path.parent for path in package.rglob("*.py")}
    return sorted(folder.name for folder in folders if not (folder / "__init__.py").exists())


def crowded_signs(file: Source) -> list[str]:
    # The two doors that programs and their tests import from hold lists of names.
    if not file.path.endswith("/__init__.py") or file.path in (
        f"{PACKAGE}/__init__.py",
        f"{PACKAGE}/testing/__init__.py",
    ):
        return []
    return [] if len(file.tree.body) == 1 and ast.get_docstring(file.tree) else [f"{file.path}: more than a docstring"]


def modules_without_docstring(file: Source) -> list[str]:
    return [] if ast.get_docstring(file.tree) else [f"{file.path}: does not say what it is for"]


def foreign_imports(file: Source, vendors: Mapping[str, Collection[str]]) -> list[str]:
    complaints = []
    for node, module in imported(file.nodes):
        vendor = module.split(".")[0]
        if vendor == "remit" or vendor in sys.stdlib_module_names:
            continue
        if vendor not in vendors:
            complaints.append(file.at(node, f"{vendor} is not in the vendor table"))
        elif file.room not in vendors[vendor] and file.place not in vendors[vendor]:
            complaints.append(file.at(node, f"{vendor} belongs to {', '.join(vendors[vendor]) or 'no room'}"))
    return complaints


def doors_left_open(project: Mapping[str, Any], rooms: Collection[str]) -> list[str]:
    """What the contract of the adapters lacks, once there are adapters."""
    if "adapters" not in rooms:
        return []
    contracts = [
        contract
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "forbidden" and contract["source_modules"] == ["remit.adapters"]
    ]
    if not contracts:
        return ["pyproject.toml: no forbidden contract with source_modules = ['remit.adapters']"]
    contract = contracts[0]
    lacking = [
        f"remit.{room} is not forbidden to adapters"
        for room in sorted(set(rooms) - OPEN_TO_ADAPTERS)
        if f"remit.{room}" not in contract["forbidden_modules"]
    ]
    if contract.get("allow_indirect_imports") not in (True, "true", "True"):
        lacking.append("allow_indirect_imports is not set")
    if set(contract.get("ignore_imports", [])) - {FACADE, DRAFTS, GUARD}:
        lacking.append(f"only {FACADE}, {DRAFTS} and {GUARD} may be ignored")
    return lacking


def rooms() -> set[str]:
    return {file.room for file in sources(PACKAGE)} - {"__init__", "__main__"}


def test_every_folder_with_code_has_a_sign() -> None:
    assert folders_without_sign(ROOT / PACKAGE) == []


def test_every_sign_holds_only_a_docstring() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in crowded_signs(file))


@pytest.mark.slow
def test_every_module_says_what_it_is_for() -> None:
    everywhere = sources("src", "benchmarks", "scripts")
    expect_none(complaint for file in everywhere for complaint in modules_without_docstring(file))


def test_every_package_from_outside_is_imported_only_in_its_rooms() -> None:
    vendors = tomllib.loads((ROOT / "tests/tidy/vendors.toml").read_text())
    expect_none(complaint for file in sources(PACKAGE) for complaint in foreign_imports(file, vendors))


def test_the_adapters_have_their_contract_as_soon_as_they_exist() -> None:
    expect_none(doors_left_open(tomllib.loads((ROOT / "pyproject.toml").read_text()), rooms()))


def test_a_folder_without_sign_is_found(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    (tmp_path / "__init__.py").touch()
    (tmp_path / "room" / "a.py").touch()
    assert folders_without_sign(tmp_path) == ["room"]


@pytest.mark.parametrize("text", ["", "x = 1\n", '"""A room."""\n\nfrom remit.core.limits.budget import Budget\n'])
def test_a_sign_with_less_or_more_than_a_docstring_is_found(text: str) -> None:
    assert crowded_signs(source("src/remit/core/__init__.py", text)) != []
    assert crowded_signs(source("src/remit/__init__.py", text)) == []


def test_a_module_that_does_not_say_what_it_is_for_is_found() -> None:
    assert modules_without_docstring(source("src/remit/a.py", "x = 1\n")) != []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/remit/kernel/a.py", "import jinja2\n"),
        ("src/remit/prompt/a.py", "def f():\n    from msgspec import json\n"),
        ("src/remit/core/b.py", "import msgspec.json\n"),
        ("src/remit/core/a.py", "import unheard_of\n"),
        ("src/remit/assemble.py", "from importlib import import_module\nimport_module('jinja2.sandbox')\n"),
    ],
)
def test_a_package_outside_its_rooms_is_found(path: str, text: str) -> None:
    vendors = {"jinja2": ["prompt"], "msgspec": ["core/a.py"]}
    assert foreign_imports(source(path, text), vendors) != []


def test_a_package_in_its_room_or_file_passes() -> None:
    vendors = {"jinja2": ["prompt"], "msgspec": ["core/a.py"]}
    assert (
        foreign_imports(source("src/remit/prompt/a.py", "import os\nimport jinja2\nimport remit.core\n"), vendors) == []
    )
    assert foreign_imports(source("src/remit/core/a.py", "import msgspec\n"), vendors) == []


def test_adapters_without_a_complete_contract_are_found() -> None:
    def project(*contracts: dict[str, Any]) -> dict[str, Any]:
        return {"tool": {"importlinter": {"contracts": contracts}}}

    contract = {
        "type": "forbidden",
        "source_modules": ["remit.adapters"],
        "forbidden_modules": ["remit.kernel", "remit.orchestrate"],
        "allow_indirect_imports": True,
        "ignore_imports": [FACADE],
    }
    house = {"core", "kernel", "orchestrate", "adapters"}
    assert doors_left_open(project(), house - {"adapters"}) == []
    assert doors_left_open(project(contract), house) == []
    assert doors_left_open(project(), house) != []
    assert doors_left_open(project(contract), house | {"backend"}) != []
    assert doors_left_open(project(contract | {"allow_indirect_imports": False}), house) != []
    assert doors_left_open(project(contract | {"ignore_imports": ["remit.adapters.** -> remit.kernel"]}), house) != []
