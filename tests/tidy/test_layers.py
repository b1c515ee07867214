"""Higher rooms import lower ones, and the rooms of the flat band know core alone; CI asks the import linter the same."""

import tomllib
from collections.abc import Sequence

import pytest

from tests.tidy.source import PACKAGE, ROOT, Source, expect_none, imported, source, sources

BAND = "kernel"


def layers() -> list[list[str]]:
    """The rooms of each layer, highest first, as the import contract names them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = next(c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers")
    return [[room.strip(" ()") for room in layer.split("|")] for layer in contract["layers"]]


def wrong_ways(file: Source, rooms: Sequence[Sequence[str]]) -> list[str]:
    """Imports that lead up, or to a neighbour on the same layer."""
    level = {room: height for height, layer in enumerate(rooms) for room in layer}
    complaints = []
    for node, module in imported(file.nodes):
        parts = module.split(".")
        if parts[0] != "remit" or len(parts) == 1 or file.room not in level or parts[1] in (file.room, "__main__"):
            continue
        if parts[1] not in level or level[parts[1]] <= level[file.room]:
            complaints.append(file.at(node, f"{file.room} may not import {parts[1]}"))
    return complaints


@pytest.mark.req("1.1")
def test_every_room_imports_only_rooms_below_it() -> None:
    expect_none(complaint for file in sources(PACKAGE) for complaint in wrong_ways(file, layers()))


@pytest.mark.req("1.1")
def test_the_import_linter_is_part_of_every_check() -> None:
    assert "lint-imports" in (ROOT / "Makefile").read_text()
    assert "make test" in (ROOT / ".ci" / "run").read_text()


@pytest.mark.req("1.2")
def test_the_rooms_of_the_flat_band_know_core_alone_and_so_cannot_call_a_model() -> None:
    rooms = layers()
    height = next(height for height, layer in enumerate(rooms) if BAND in layer)
    assert rooms[height + 1 :] == [["core"]]
    assert {"inference", "context", "rerank", "prompt", "tool", "constraint", "validate", "memory"} <= set(
        rooms[height]
    )


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("src/remit/core/a.py", "from remit.kernel import state\n"),
        ("src/remit/kernel/a.py", "import remit.inference.engine\n"),
        ("src/remit/orchestrate/a.py", "from remit.backend.memory import journal\n"),
        ("src/remit/observe/a.py", "from remit.nowhere import thing\n"),
    ],
)
def test_an_import_that_leads_up_or_sideways_is_found(path: str, text: str) -> None:
    assert wrong_ways(source(path, text), layers()) != []


def test_an_import_that_leads_down_or_stays_in_its_room_passes() -> None:
    text = "from remit.core import budget\nfrom remit.kernel import tally\nimport hashlib\nimport remit\n"
    assert wrong_ways(source("src/remit/kernel/a.py", text), layers()) == []
