"""Names of nodes: what the nodes of a graph are to people, as steps of a plan or replicas of a vote, and what a step gave.

Rule 1: names come from the graph alone, so a run that is read later is told in the same words.
Rule 2: names and texts are data: they are given as they stand, and the caller makes them fit to print.
Rule 3: a value that cannot be read is told by its kind; looking at a run never fails because of what a step said.
"""

from collections.abc import Mapping
from functools import lru_cache

from remit.core.journal.codec import from_json, read_json
from remit.core.journal.rulings import VoteCounted
from remit.core.record import BlobRef, Text
from remit.core.work.goal import PPM
from remit.core.work.graph import Graph, Node, NodeKind
from remit.core.work.orders import CONFIRM, LIST
from remit.core.work.plan import MARK, ContextFor, RerankInput
from remit.core.work.values import ValueKind

# A deployment runs a handful of graphs.
_GRAPHS_KEPT_MAX = 64


class Places:
    """The nodes of one graph, in the words of people."""

    def __init__(self, graph: Graph) -> None:
        self._nodes: Mapping[str, Node] = {node.name: node for node in graph.nodes}
        # A tool step has two nodes: one that makes its call, with a mark in its name, and one that has it made.
        # What lists the orders of a run and has them confirmed comes before its plan, and is no step of it.
        fed = [node for node in graph.nodes if node.feed is not None and node.code != LIST and node.prompt != CONFIRM]
        self._steps = {node.name: node.name.partition(MARK)[0] for node in fed}
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
    return f"{min(round(share_ppm / 10_000), 99) if share_ppm < PPM else 100} %"


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


# As many pieces of evidence as fit a line.
PIECES_MAX = 3
PIECE_CHARS_MAX = 60


def gave(kind: str, text: Text) -> str:
    """How much of what: 3 candidates, an object with 2 fields."""
    value = _value(kind, text)
    match value:
        case RerankInput(candidates=candidates):
            return _counted(len(candidates), "candidate")
        case ContextFor(messages=messages):
            return _counted(len(messages), "message")
        case dict():
            return f"an object with {_counted(len(value), 'field')}"
        case list():
            return f"a list of {len(value)}"
    return _KINDS.get(kind, "a value")


def beginning(kind: str, text: Text) -> Text:
    """How it begins: the best of the evidence with its sources, the words of messages, else the value as it stands."""
    match _value(kind, text):
        case RerankInput(candidates=candidates):
            return _joined([f"{one.source}: {_piece(one.content)}" for one in candidates[:PIECES_MAX]], len(candidates))
        case ContextFor(messages=messages):
            return _joined([_piece(message.content) for message in messages[:PIECES_MAX]], len(messages))
    return text


_KINDS = {
    ValueKind.TEXT.value: "a text",
    ValueKind.MESSAGES.value: "messages",
    ValueKind.CANDIDATES.value: "candidates",
    ValueKind.OBJECT.value: "an object",
    ValueKind.JSON.value: "a value",
    ValueKind.RESULT.value: "a result",
}


def _value(kind: str, text: Text) -> object:
    """The value in a text, where it is one to be counted and is at hand."""
    if isinstance(text, BlobRef):
        return None
    try:
        if kind == ValueKind.MESSAGES:
            return from_json(text, ContextFor)
        if kind == ValueKind.CANDIDATES:
            return from_json(text, RerankInput)
        return read_json(text) if kind in (ValueKind.OBJECT, ValueKind.JSON) else None
    except (ValueError, RecursionError):
        return None


def _piece(text: Text) -> str:
    if isinstance(text, BlobRef):
        return f"<{text.size_bytes} bytes>"
    return text if len(text) <= PIECE_CHARS_MAX else f"{text[: PIECE_CHARS_MAX - 1]}…"


def _joined(pieces: list[str], count: int) -> str:
    more = [f"and {count - len(pieces)} more"] if count > len(pieces) else []
    return "; ".join([*pieces, *more])


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
