"""Nothing below the assembly reads the environment, and importing remit loads nothing heavy."""

import ast
import re
import subprocess
import sys

import pytest

from tests.tidy.source import PACKAGE, ROOT, Source, dotted, expect_none, source, sources

READERS = {"os.environ", "os.environb", "os.getenv", "os.getenvb"}
MENTION = re.compile("environ|getenv")
MAY_READ = {"assemble", "adapters"}
# Hands a part of it on to the processes of tools, and looks at nothing in it.
MAY_HAND_ON = {"tool/process/isolated_call.py"}
HEAVY = {"asyncio", "cel_expr_python", "jsonschema_rs", "msgspec", "pydantic", "yaml"}


def environment_reads(file: Source) -> list[str]:
    if file.room in MAY_READ or file.place in MAY_HAND_ON or not MENTION.search(file.text):
        return []
    complaints = []
    for node in file.nodes:
        match node:
            case ast.Attribute() if dotted(node) in READERS:
                complaints.append(file.at(node, f"{dotted(node)} is read below assemble.py"))
            case ast.ImportFrom(module="os", names=names):
                found = [alias.name for alias in names if f"os.{alias.name}" in READERS]
                complaints.extend(file.at(node, f"{name} is read below assemble.py") for name in found)
    return complaints


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a statement adds to a fresh interpreter."""
    program = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    printed = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return {name.split(".")[0] for name in printed.split()}


def test_nothing_below_the_assembly_reads_the_environment() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in environment_reads(file))


def test_importing_remit_loads_nothing_heavy() -> None:
    assert loaded_by("import remit") & HEAVY == set()


@pytest.mark.parametrize(
    "text", ["import os\nx = os.environ['A']\n", "import os\nos.getenv('A')\n", "from os import environ\n"]
)
def test_a_read_of_the_environment_is_found_below_the_assembly(text: str) -> None:
    assert environment_reads(source("src/remit/backend/a.py", text)) != []
    assert environment_reads(source("src/remit/assemble.py", text)) == []
    assert environment_reads(source("src/remit/adapters/cli/a.py", text)) == []


def test_a_heavy_import_is_found() -> None:
    assert loaded_by("import yaml") & HEAVY == {"yaml"}
