"""Places: what the nodes of a graph are to people, as steps of a plan or replicas of a vote.

Rule 1: names come from the graph alone, so a run that is read later is told in the same words.
Rule 2: a name is data: it is given as it stands, and whoever prints it makes it fit to print.
"""

from collections.abc import Mapping
from functools import lru_cache

from remit.core.journal.rulings import VoteCounted
from remit.core.work.graph import Graph, Node, NodeKind
from remit.core.work.plan import MARK

# A deployment runs a handful of graphs.
_GRAPHS_KEPT_MAX = 64
_PPM = 1_000_000


class Places:
    """The nodes of one graph, in the words of people."""

    def __init__(self, graph: Graph) -> None:
        self._nodes: Mapping[str, Node] = {node.name: node for node in graph.nodes}
        # A tool step has two nodes: one that makes its call, with a mark in its name, and one that has it made.
        self._steps = {node.name: node.name.partition(MARK)[0] for node in graph.nodes if node.feed is not None}
        self.ballots = tuple(node.ballot for node in graph.nodes if node.ballot is not None)
        self._voters = frozenset(ballot.source for ballot in self.ballots)

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of a plan in their order; none where the graph is no plan."""
        return tuple(dict.fromkeys(self._steps.values()))

    def step(self, node: str) -> str:
        """The step of a plan that a node belongs to; empty where it is none."""
        return self._steps.get(node, "")

    def type_of(self, step: str) -> str:
        """The type of a step of a plan."""
        node = self._nodes.get(step)
        return "" if node is None or node.feed is None else node.feed.step_type

    def is_voter(self, node: str) -> bool:
        """Whether the children of a node are replicas that are voted on."""
        return node in self._voters

    def is_ballot(self, node: str) -> bool:
        """Whether votes are counted at a node."""
        return node in self._nodes and self._nodes[node].ballot is not None

    def child(self, node: str, number: int) -> str:
        """What a child that a node declares is called, the first of them having the number 1."""
        if self.is_voter(node):
            return f"replica {number}"
        if node in self._steps:
            return f"step {self._steps[node]}"
        found = self._nodes.get(node)
        return f"{node} {number}" if found is not None and found.kind is NodeKind.MAP else node

    def where(self, node: str) -> str:
        """Where in a plan a node is: its step, or the name of a node that every plan has; empty outside of plans."""
        return self._steps.get(node, node) if self._steps else ""


def percent(share_ppm: int) -> str:
    """A share in millionths, as people say it; only what is certain is 100 %."""
    return f"{min(round(share_ppm / 10_000), 99) if share_ppm < _PPM else 100} %"


def vote_words(counted: VoteCounted, winner: str, asked: int) -> str:
    """What a vote came to. `asked` is how many replicas have ended, those included that gave no answer."""
    # Where one of them failed, not all replicas are counted.
    among = "answer" if counted.answered < asked else "replica"
    plural = "" if counted.answered == 1 else "s"
    agree = "agrees" if counted.votes == 1 else "agree"
    return f"{counted.votes} of {counted.answered} {among}{plural} {agree} ({percent(counted.confidence_ppm)}): {winner} wins"


@lru_cache(maxsize=_GRAPHS_KEPT_MAX)
def places_of(graph: Graph) -> Places:
    """The places of a graph."""
    return Places(graph)
