"""Graphs that many runs share: looked for secrets once, and again only where a value is known."""

from typing import Any

import pytest

from remit.backend.memory.seals import MemorySeals
from remit.core.record import replace
from remit.core.run.manifest import Manifest
from remit.core.work.graph import Graph, Node, NodeKind
from remit.orchestrate.facts import sealer as sealer_module
from remit.orchestrate.facts.sealer import MADE_UP_KIND, Sealer
from tests.unit.kernel.builders import in_line, manifest_of


class CountingSealer(Sealer):
    """Counts how many graphs are looked at."""

    graphs = 0

    def _changed(self, look: Any, value: Any, name: str = "") -> Any:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        self.graphs += isinstance(value, Graph)
        return super()._changed(look, value, name)


def with_prompt(run_id: str, prompt: str) -> Manifest:
    return replace(manifest_of(graph=in_line(Node("ask", NodeKind.HUMAN, prompt=prompt))), run_id=run_id)


def test_a_graph_that_runs_share_is_looked_at_once() -> None:
    sealer = CountingSealer(MemorySeals())
    first, second = with_prompt("1", "Shall I go on?"), with_prompt("2", "Shall I go on?")
    assert sealer.manifest(first).graph is first.graph
    assert sealer.manifest(second).graph is second.graph
    assert sealer.graphs == 1


def test_a_graph_that_runs_share_is_looked_at_again_for_what_one_of_them_knows() -> None:
    seals = MemorySeals()
    sealer = CountingSealer(seals)
    plain = with_prompt("1", "Shall I take correcthorse?")
    sealer.manifest(plain)
    handle = seals.seal("2", "password", "correcthorse")
    knowing = sealer.manifest(replace(plain, run_id="2"))
    assert knowing.graph.nodes[0].prompt == f"Shall I take {handle}?"
    assert sealer.manifest(replace(plain, run_id="3")).graph is plain.graph
    assert sealer.graphs == 2


def test_a_graph_with_a_handle_is_looked_at_in_every_run() -> None:
    seals = MemorySeals()
    sealer = CountingSealer(seals)
    handle = seals.seal("1", "password", "short")
    given = with_prompt("1", f"Shall I take {handle}?")
    assert sealer.manifest(given).graph == given.graph
    assert MADE_UP_KIND in sealer.manifest(replace(given, run_id="2")).graph.nodes[0].prompt


def test_only_so_many_plain_graphs_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealer_module, "GRAPHS_REMEMBERED_MAX", 1)
    sealer = CountingSealer(MemorySeals())
    for words in ("One?", "Two?", "Two?", "One?"):
        sealer.manifest(with_prompt("1", words))
    assert sealer.graphs == 3
