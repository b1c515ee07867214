"""Scenarios of trees: a root that fans out into many children at once, whose models delegate further, on tight budgets.

Rule 1: the root is given what its children are leased and little more, sometimes less, so that most runs meet an edge.
Rule 2: what is random comes from the seed; one seed grows the same tree on any machine.
"""

from collections.abc import Sequence
from random import Random

from remit.core.boundary import Boundary, Exhaustion
from remit.core.budget import FIELDS, LEASABLE, Budget, Dimension
from remit.core.contract import SystemRequest
from remit.core.graph import Edge, Graph, JoinRule, Node, NodeKind
from remit.core.inference import ModelResult
from remit.core.manifest import Manifest, make_manifest
from remit.core.messages import Message, user_message
from remit.core.record import JsonObject
from remit.core.tools import Effect, ToolCall, ToolDefinition
from remit.core.usage import TokenUsage
from remit.orchestrate.patterns.chat import chat_graph
from remit.testing.faults import WEATHER, Faults
from remit.testing.scenarios import MODEL, PARAMETERS, random_person
from remit.testing.script import Breaks, Tool
from remit.testing.world import SimulatedWorld

# How many children the root starts in one turn: what is promised to hold for so many beside each other.
CHILDREN = 50

Lease = tuple[tuple[str, int], ...]

_WORDS = "take one part each, and pass on what is too much for you"
# What a leaf is leased and what a child that may delegate is leased, which holds two leaves and some more.
LEAF: Lease = (
    ("input_tokens", 4_000),
    ("output_tokens", 600),
    ("tool_calls", 2),
    ("external_api_calls", 1),
    ("inference_cost_microusd", 6_000),
    ("steps", 7),
    ("human_reviews", 1),
)
BRANCH: Lease = (
    ("input_tokens", 12_000),
    ("output_tokens", 2_600),
    ("tool_calls", 8),
    ("external_api_calls", 3),
    ("inference_cost_microusd", 20_000),
    ("side_effects", 1),
    ("steps", 24),
    ("child_runs", 2),
    ("human_reviews", 4),
)
# Of a dimension that is spent a person is asked for more, in children too.
_ASKING = (
    ("output_tokens", Exhaustion.ASK),
    ("tool_calls", Exhaustion.ASK),
    ("external_api_calls", Exhaustion.ASK),
)


def tree_tools() -> dict[str, Tool]:
    """Simulated services behind the tools that no run is started for; they all succeed."""
    return {name: _works for name in ("look", "fetch", "write")}


def _works(arguments: JsonObject) -> str:
    return '{"ok": true}'


def eager_model(messages: Sequence[Message], chance: Random) -> ModelResult | Breaks:
    """A model that delegates whenever it may and more often than it may, looks things up, and answers in between."""
    roll = chance.random()
    if roll < 0.35:
        return ModelResult("my part is done", usage=_usage(chance))
    if roll < 0.4:
        return Breaks(was_cut=chance.random() < 0.5)
    names = ("pass_on", "pass_on", "split", "split", "look", "fetch", "write")
    calls = (
        ToolCall(f"call{place}", chance.choice(names), {"n": chance.randrange(9)})
        for place in range(chance.choice((1, 1, 2, 4)))
    )
    return ModelResult("", tool_calls=tuple(calls), usage=_usage(chance))


def _usage(chance: Random) -> TokenUsage:
    """Mostly some tokens; sometimes nothing is said, which counts as all; seldom more than was ever allowed."""
    roll = chance.random()
    if roll < 0.1:
        return TokenUsage()
    if roll < 0.102:
        return TokenUsage(prompt_tokens=10**6, output_tokens=10**6)
    return TokenUsage(prompt_tokens=chance.randrange(100), output_tokens=chance.randrange(1, 200))


def tree_scenario(seed: int, *, faults: Faults | None = None, children: int = CHILDREN) -> SimulatedWorld:
    """A world with one random tree in it, played to its end. Without faults of its own it gets those of some weather."""
    chance = Random(f"tree {seed}")
    world = SimulatedWorld(
        model=eager_model,
        tools=tree_tools(),
        person=random_person,
        faults=chance.choice(WEATHER) if faults is None else faults,
        seed=seed,
    )
    world.finish(random_tree(chance, f"tree{seed}", children))
    return world


def random_tree(chance: Random, run_id: str, children: int) -> Manifest:
    """A root that leases its children nearly all it has, and then goes on with what they left."""
    lease = tuple((name, chance.randint(max(amount // 2, 1), amount)) for name, amount in BRANCH)
    return make_manifest(
        run_id=run_id,
        request=SystemRequest((user_message(_WORDS),)),
        boundary=Boundary(
            name="tree",
            approval_effects=(Effect.WRITE,),
            approval_wait_ms_max=chance.choice((50_000, 3_600_000)),
            exhaustion=_ASKING if chance.random() < 0.6 else (),
            budget=Budget(**_caps(chance, dict(lease), children)),
        ),
        graph=tree_graph(lease, children, chance.choice(tuple(JoinRule))),
        models=(MODEL,),
        tools=_tools(chance),
    )


def _caps(chance: Random, lease: dict[str, int], children: int) -> dict[str, int]:
    """All that the children are leased, with a small share more; in one of ten dimensions, or of trees, a bit too little."""
    caps: dict[str, int] = {}
    is_scarce = chance.random() < 0.1
    for name in LEASABLE:
        amount = lease.get(name, 0) + (name == FIELDS[Dimension.CHILD_RUNS])
        more = chance.randrange(amount * max(children // 10, 2) + 1) + (6 if name == FIELDS[Dimension.STEPS] else 0)
        caps[name] = amount * children + (-1 if is_scarce and chance.random() < 0.1 and amount else more)
    return caps


def _tools(chance: Random) -> tuple[ToolDefinition, ...]:
    split = tuple((name, chance.randint(max(amount // 4, 1), amount // 2)) for name, amount in BRANCH if amount > 1)
    return (
        ToolDefinition("look", "look something up", PARAMETERS, effect=Effect.READ),
        ToolDefinition("fetch", "ask the network", PARAMETERS, effect=Effect.READ, network=True, cost_microusd=5),
        ToolDefinition("write", "write a record", PARAMETERS, effect=Effect.WRITE),
        ToolDefinition("pass_on", "delegate a part", PARAMETERS, effect=Effect.NONE, delegates=True, lease=LEAF),
        ToolDefinition("split", "delegate and let delegate", PARAMETERS, effect=Effect.READ, delegates=True, lease=split),
    )


def tree_graph(lease: Lease, children: int, join: JoinRule) -> Graph:
    """All children at once, then a chat that may delegate what is left."""
    fan = Node("fan", NodeKind.MAP, prompt=_WORDS, children=children, join=join, lease=lease, visits_max=1)
    chat = chat_graph(tool_rounds_max=4)
    return Graph("tree", "fan", (fan, *chat.nodes), (Edge("fan", "prepare"), *chat.edges), chat.exits)
