"""Checking and drawing graph files from the command line."""

import re
from pathlib import Path

import pytest

from tests.unit.adapters.desk import Desk

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "graphs.md"


@pytest.fixture
def graph(desk: Desk) -> Path:
    """The first graph of the guide."""
    found = re.search(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return desk.file("graph.yaml", found[1])


def test_a_graph_that_may_run_is_counted_and_drawn(desk: Desk, graph: Path) -> None:
    said = desk.say("graph", "check", graph)
    assert said.code == 0
    assert " may run: " in said.out
    values = desk.say("graph", "check", graph, "--json").values
    assert set(values) == {"name", "version", "nodes", "edges"}
    drawn = desk.say("graph", "draw", graph)
    assert drawn.out.startswith("flowchart TD\n")
    assert desk.say("graph", "draw", graph, "--json").values["mermaid"] == drawn.out


def test_a_graph_that_may_not_run_is_an_error_with_every_problem(desk: Desk) -> None:
    path = desk.file("graph.yaml", "name: bad\nstart: a\nnodes:\n  a: {kind: model}\n")
    said = desk.say("graph", "check", path, "--json")
    assert (said.code, said.error) == (1, "GRAPH_REFUSED")
    assert said.values["error"]["details"]["problems"]
    said = desk.say("graph", "draw", path)
    assert (said.code, said.err.startswith("error GRAPH_REFUSED: ")) == (1, True)


@pytest.mark.parametrize("content", [b"\xff\xfe\xff", b"a: [", b"\x00"])
def test_a_graph_file_that_cannot_be_read_is_an_error_with_a_code(desk: Desk, content: bytes) -> None:
    said = desk.say("graph", "check", desk.file("graph.yaml", content), "--json")
    assert (said.code, said.error.startswith("FILE_")) == (1, True)


def test_a_graph_file_that_is_not_there_is_an_error_with_a_code(desk: Desk) -> None:
    said = desk.say("graph", "check", desk.folder / "no.yaml", "--json")
    assert (said.code, said.error) == (1, "FILE_UNREADABLE")
