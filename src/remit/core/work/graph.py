"""The graph as data: what a workflow's places are, and which outcome leads from one to the next.

Rule 1: a graph holds names, numbers and guard texts, never code; so it can be hashed, stored, shown and checked.
Rule 2: of a node's edges the first true one in declared order wins, and the last one is unconditional.
Rule 3: failed, cancelled, escalated and exhausted can befall any node. Only an edge that names such an outcome takes
        it; otherwise the graph's exit of that name does. An unconditional edge never catches them.
Rule 4: a node entered as often as its `visits_max` allows is not entered again: the run is exhausted where it stands.
Rule 5: a success that was not earned is no ending: such a terminal yields a universal outcome, and the exits take it.
"""

from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Annotated, Any, TypeAlias

import msgspec

from remit.core.journal.canonical import INTEGER_MAX, canonical_json
from remit.core.record import JsonObject, MadeByHand, Record, once_a_record, unclassed
from remit.core.run.lifecycle import AgentRole, LifecycleState, LoopState, default_loop_state

# A name is shown in pictures, messages and every NodeEntered ruling; a hundred characters say enough.
NAME_CHARS_MAX = 100
# A question or a task is a sentence or a page; longer material belongs into the run's messages.
PROMPT_CHARS_MAX = 10_000
# A schema or a grammar of so many characters is longer than what a model could be asked to keep to.
SHAPE_CHARS_MAX = 100_000
# Ten times the largest workflow that a person could still read; keeps checking it within tens of milliseconds.
NODES_MAX = 10_000
EDGES_MAX = 50_000

Name: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_CHARS_MAX)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)]
# No amount of any dimension is larger than what canonical JSON can write.
GraphAmount: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=INTEGER_MAX)]
Prompt: TypeAlias = Annotated[str, msgspec.Meta(max_length=PROMPT_CHARS_MAX)]
ValueShape: TypeAlias = Annotated[str, msgspec.Meta(max_length=SHAPE_CHARS_MAX)]


class NodeKind(StrEnum):
    """What happens at a node. A map starts its children and waits for them, so joining is a rule of the map."""

    MODEL = "model"
    TOOL = "tool"
    RETRIEVE = "retrieve"
    RERANK = "rerank"
    VALIDATE = "validate"
    HUMAN = "human"
    CHILD = "child"
    MAP = "map"
    DECIDE = "decide"
    TERMINAL = "terminal"
    # An agent that runs elsewhere proposes calls, makes them and tells what came of them.
    HOST = "host"


# Kinds of nodes that start children, and kinds that need a model. A plan of code and tools alone needs none.
CHILD_KINDS = (NodeKind.CHILD, NodeKind.MAP)
MODEL_KINDS = (NodeKind.MODEL, *CHILD_KINDS)


class JoinRule(StrEnum):
    """When a map has heard enough: every child, one that succeeded, or more than half of them."""

    ALL = "all"
    ANY = "any"
    QUORUM = "quorum"


class EndingClass(StrEnum):
    """The five ways to end that every graph must provide."""

    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLATION = "cancellation"
    ESCALATION = "escalation"
    EXHAUSTION = "exhaustion"


class TerminalWrite(StrEnum):
    """The record that a terminal leaves behind."""

    TRACE = "trace"
    STATUS = "status"
    RELEASE = "release"
    FINAL_STATE = "final_state"


# Nothing less: a run that left no trace, no status, held resources or no final state could not be answered for.
REQUIRED_WRITES = (TerminalWrite.TRACE, TerminalWrite.STATUS, TerminalWrite.RELEASE, TerminalWrite.FINAL_STATE)


class NodeOutcome(StrEnum):
    """What became of a visit to a node; edges name these."""

    ANSWERED = "answered"
    CALLED_TOOLS = "called_tools"
    SETTLED = "settled"
    STOPPED = "stopped"
    REFUSED = "refused"
    FOUND = "found"
    RETURNED = "returned"
    PASSED = "passed"
    REPAIRABLE = "repairable"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    JOINED = "joined"
    UNDECIDED = "undecided"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ESCALATED = "escalated"
    EXHAUSTED = "exhausted"


UNIVERSAL_OUTCOMES = frozenset(
    {NodeOutcome.FAILED, NodeOutcome.CANCELLED, NodeOutcome.ESCALATED, NodeOutcome.EXHAUSTED}
)

# Which ending each exit must be able to reach.
EXIT_ENDINGS: Mapping[NodeOutcome, EndingClass] = MappingProxyType(
    {
        NodeOutcome.FAILED: EndingClass.FAILURE,
        NodeOutcome.CANCELLED: EndingClass.CANCELLATION,
        NodeOutcome.ESCALATED: EndingClass.ESCALATION,
        NodeOutcome.EXHAUSTED: EndingClass.EXHAUSTION,
    }
)

# What only a visit to this kind of node can lead to.
OWN_OUTCOMES: Mapping[NodeKind, tuple[NodeOutcome, ...]] = MappingProxyType(
    {
        NodeKind.MODEL: (NodeOutcome.ANSWERED, NodeOutcome.CALLED_TOOLS),
        # settled: every call has its outcome; stopped: a tool ended the loop; refused: no call was allowed.
        NodeKind.TOOL: (NodeOutcome.SETTLED, NodeOutcome.STOPPED, NodeOutcome.REFUSED),
        NodeKind.RETRIEVE: (NodeOutcome.FOUND,),
        NodeKind.RERANK: (NodeOutcome.RETURNED,),
        NodeKind.VALIDATE: (NodeOutcome.PASSED, NodeOutcome.REPAIRABLE),
        # rejected and expired lead on only along an edge that names them; else the run ends with that no.
        NodeKind.HUMAN: (NodeOutcome.ANSWERED, NodeOutcome.APPROVED, NodeOutcome.REJECTED, NodeOutcome.EXPIRED),
        NodeKind.CHILD: (NodeOutcome.JOINED,),
        NodeKind.MAP: (NodeOutcome.JOINED,),
        # undecided: a vote that may stop early is not settled yet.
        NodeKind.DECIDE: (NodeOutcome.RETURNED, NodeOutcome.UNDECIDED),
        NodeKind.TERMINAL: (),
        # answered: the agent says that it is done.
        NodeKind.HOST: (NodeOutcome.ANSWERED,),
    }
)

# The outcomes each kind can have. A terminal has only the universal ones, and only when its success was not earned.
OUTCOMES: Mapping[NodeKind, frozenset[NodeOutcome]] = MappingProxyType(
    {kind: UNIVERSAL_OUTCOMES.union(own) for kind, own in OWN_OUTCOMES.items()}
)

LIFECYCLE_OF_KIND: Mapping[NodeKind, LifecycleState] = MappingProxyType(
    {
        NodeKind.RETRIEVE: LifecycleState.PREPARE,
        NodeKind.RERANK: LifecycleState.PREPARE,
        NodeKind.VALIDATE: LifecycleState.VALIDATE,
    }
)
LIFECYCLE_OF_ENDING: Mapping[EndingClass, LifecycleState] = MappingProxyType(
    {
        EndingClass.SUCCESS: LifecycleState.COMPLETE,
        EndingClass.CANCELLATION: LifecycleState.CANCELLED,
    }
)


def _lifecycle_of(kind: NodeKind, ending: EndingClass | None) -> LifecycleState:
    if kind == NodeKind.TERMINAL:
        # A terminal without an ending is refused by the compiler; until then it counts as a failure.
        return LIFECYCLE_OF_ENDING.get(ending or EndingClass.FAILURE, LifecycleState.ERROR)
    return LIFECYCLE_OF_KIND.get(kind, LifecycleState.EXECUTE)


# Filled in from the node's other fields when they do not say it, so readers always find a label.
_DERIVED: Any = None


BY_BOUNDARY, BY_REGISTRY, BY_RESULT = "boundary", "registry", "result_schema"


class ToolRules(Record, frozen=True):
    """The rules a tool node must have. Empty or 0 is missing.

    Permission: BY_BOUNDARY, or one that the boundary must hold for any call here. Schema: BY_REGISTRY, the tool's own.
    Budget: the counter that must have something left. Timeout: what no call here may exceed. Verification: BY_RESULT,
    the tool's result schema and its own check.
    """

    permission: str = ""
    schema: str = ""
    budget: str = ""
    timeout_ms: Count = 0
    verification: str = ""
    # Whether a person must approve every call here, whatever the boundary lets pass.
    approval: bool = False


REQUIRED_RULES = ("permission", "schema", "budget", "timeout_ms", "verification")

# Each rule points to where the called tool has its own; an hour is what no tool may exceed anyway.
STANDARD_RULES = ToolRules(BY_BOUNDARY, BY_REGISTRY, "tool_calls", 3_600_000, BY_RESULT)


class Sees(StrEnum):
    """What a model node shows: everything said, the request, that and the latest tool result, or the user's words alone."""

    EVERYTHING = "everything"
    REQUEST = "request"
    RESULTS = "results"
    USER = "user"


class Ask(MadeByHand, frozen=True):
    """What a model node asks of its model beyond the conversation. It holds for the calls of this node alone.

    The instruction is shown last. `tools` are those offered here, None for all of the run's; with `must_call` one of
    them has to be called. The answer keeps to a JSON Schema (its text), to a grammar, or to both: then the grammar
    holds the decoder and the schema judges; `words` asks for words alone, whatever shape the request wants of its output.
    0 for `max_tokens` is the request's own limit. `filters` and `role` hold for the run of a child, in addition to those of
    its parent; `sampling` is how it is sampled (the text of ExecutionHints), in place of what its parent says.
    """

    instruction: Prompt = ""
    tools: tuple[Name, ...] | None = None
    must_call: bool = False
    schema: ValueShape = ""
    grammar: ValueShape = ""
    max_tokens: Count = 0
    sees: Sees = Sees.EVERYTHING
    words: bool = False
    filters: tuple[Name, ...] = ()
    role: AgentRole = AgentRole.GENERAL
    sampling: ValueShape = ""


class StepInput(Record, frozen=True):
    """What a step of a plan works on: a value written in the plan, or the output of an earlier node.

    `takes` is the kind that the step needs, empty for whatever comes; `gives` is the kind of its output where that is
    known before it runs; `kind` is that of the value. The type of the step is for people.
    """

    takes: str = ""
    gives: str = ""
    kind: str = ""
    value: ValueShape = ""
    source: str = ""
    step_type: str = ""


class Ballot(Record, frozen=True):
    """A vote among the children of another node: how many there are to be, and whether a settled vote ends early."""

    source: Name
    replicas: Count
    early_stop: bool = False


class Node(MadeByHand, frozen=True):
    """One place of a graph. Labels that are not given follow from the kind, the ending and the lifecycle."""

    name: Name
    kind: NodeKind
    lifecycle: LifecycleState = _DERIVED
    loop_state: LoopState = _DERIVED
    # How often the node may be entered in a run; 0 sets no bound.
    visits_max: Count = 0
    # Named code of the user, for rerank, validate and decide.
    code: str = ""
    # The question for a person, or the task of a child.
    prompt: Prompt = ""
    children: Count = 0
    join: JoinRule = JoinRule.ALL
    # What each child may spend: (dimension, amount).
    lease: tuple[tuple[str, GraphAmount], ...] = ()
    rules: ToolRules | None = None
    ending: EndingClass | None = None
    writes: tuple[TerminalWrite, ...] = ()
    # For a model node: what it asks of its model. For a child: what its request is to say beyond the task.
    ask: Ask | None = None
    # For a child or a map: the graph that each child runs, a chat by default; and the model it asks.
    inner: "Graph | None" = None
    model: str = ""
    # What no command of this node may take longer than; 0 leaves the standard limits.
    timeout_ms: Count = 0
    feed: StepInput | None = None
    # For a decide node whose code counts a vote.
    ballot: Ballot | None = None

    def __post_init__(self) -> None:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        """Take texts for the members of enums, and fill in the labels that were not given."""
        MadeByHand.__post_init__(self)
        if self.lifecycle is _DERIVED:
            msgspec.structs.force_setattr(self, "lifecycle", _lifecycle_of(self.kind, self.ending))
        if self.loop_state is _DERIVED:
            msgspec.structs.force_setattr(self, "loop_state", default_loop_state(LifecycleState(self.lifecycle)))


class Edge(Record, frozen=True):
    """A way from one node to another, open for one outcome, under a condition, or always when neither is given."""

    source: Name
    target: Name
    outcome: str = ""
    condition: str = ""


class Graph(Record, frozen=True, cache_hash=True):
    """A workflow: where it starts, its nodes and edges, and where the four universal outcomes lead."""

    name: Name
    start: Name
    nodes: Annotated[tuple[Node, ...], msgspec.Meta(max_length=NODES_MAX)]
    edges: Annotated[tuple[Edge, ...], msgspec.Meta(max_length=EDGES_MAX)]
    exits: Annotated[tuple[tuple[str, str], ...], msgspec.Meta(max_length=EDGES_MAX)] = ()


def terminal(name: str, ending: EndingClass) -> Node:
    """A terminal that writes everything a terminal must."""
    return Node(name, NodeKind.TERMINAL, ending=ending, writes=REQUIRED_WRITES)


# The usual five, for graphs that need nothing special at their ends, and the exits that lead to them.
TERMINALS: tuple[Node, ...] = (
    terminal("done", EndingClass.SUCCESS),
    terminal("failed", EndingClass.FAILURE),
    terminal("cancelled", EndingClass.CANCELLATION),
    terminal("escalated", EndingClass.ESCALATION),
    terminal("exhausted", EndingClass.EXHAUSTION),
)
EXITS: tuple[tuple[str, str], ...] = tuple((outcome.value, outcome.value) for outcome in EXIT_ENDINGS)


def schema_text(schema: JsonObject) -> str:
    """A schema as an Ask keeps it, its properties in their author's order: models write them in that order.

    Raises NotCanonical where it is no JSON.
    """
    canonical_json(schema)
    return msgspec.json.encode(schema).decode()


_encode = msgspec.json.Encoder(order="sorted", enc_hook=unclassed).encode
# Graphs that the runs of one process share.
_GRAPHS_KEPT_MAX = 64


@once_a_record(_GRAPHS_KEPT_MAX)
def graph_version(graph: Graph) -> str:
    """The content hash of a graph: equal graphs have equal versions in every process.

    It is the SHA-256 digest of the canonical form (RFC 8785). A graph holds no maps and no fractions, and no integer
    that a double cannot hold; so the sorted encoder writes the canonical form at once.
    """
    return sha256(_encode(graph)).hexdigest()
