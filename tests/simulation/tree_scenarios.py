"""Scenarios of trees: a root that fans out into many children at once, whose models delegate further, on tight budgets.

Rule 1: the root is given what its children are leased and little more, sometimes less, so that most runs meet an edge.
Rule 2: what is random comes from the seed; one seed grows the same tree on any machine.
"""

from collections.abc import Sequence
from random import Random

from remit.core.limits.boundary import Boundary, Exhaustion
from remit.core.limits.budget import FIELDS, LEASABLE, UNCHARGED, Budget, Dimension
from remit.core.limits.tools import Effect, ToolCall, ToolDefinition
from remit.core.record import JsonObject, replace
from remit.core.run.contract import SystemRequest
from remit.core.run.inference import ModelResult
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import Message, user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.graph import Edge, Graph, JoinRule, Node, NodeKind, NodeOutcome
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.testing.scripts import Breaks, Tool
from remit.testing.trouble import WEATHER, Faults
from remit.testing.world import SimulatedWorld
from tests.simulation.scenarios import MODEL, PARAMETERS, random_person

# How many children the root starts in one turn: what is promised to hold for so many beside each other.
CHILDREN = 50
# Enough for the root to come to its end once its children have come to theirs.
STEPS_OF_THE_ROOT = 40
# How often the root goes round, with fewer children or in its chat, to spend what is left.
ROUNDS_MAX = 8

# Where moments of different runs can be compared.
STEADY_WEATHER = tuple(replace(faults, clock_jump=0.0) for faults in WEATHER)

Lease = tuple[tuple[str, int], ...]

_WORDS = "take one part each, and pass on what is too much for you"
# What each is leased: a leaf, a run that may delegate once more, and a child of the root, which holds one of either.
LEAF: Lease = (
    ("input_tokens", 3_000),
    ("output_tokens", 400),
    ("tool_calls", 2),
    ("external_api_calls", 1),
    ("inference_cost_microusd", 4_000),
    ("steps", 7),
    ("human_reviews", 1),
)
BRANCH: Lease = (
    ("input_tokens", 8_000),
    ("output_tokens", 1_000),
    ("tool_calls", 5),
    ("external_api_calls", 2),
    ("inference_cost_microusd", 10_000),
    ("steps", 15),
    ("child_runs", 1),
    ("human_reviews", 2),
)
CHILD: Lease = (
    ("input_tokens", 18_000),
    ("output_tokens", 2_400),
    ("tool_calls", 10),
    ("external_api_calls", 4),
    ("inference_cost_microusd", 24_000),
    ("side_effects", 1),
    ("steps", 30),
    ("child_runs", 3),
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
    return dict.fromkeys(("look", "fetch", "write"), _works)


def _works(arguments: JsonObject) -> str:
    return '{"ok": true}'


def eager_model(messages: Sequence[Message], chance: Random) -> ModelResult | Breaks:
    """A model that delegates whenever it may and more often than it may, looks things up, and answers in between."""
    roll = chance.random()
    if roll < 0.2:
        return ModelResult("my part is done", usage=_usage(chance))
    if roll < 0.25:
        return Breaks(was_cut=chance.random() < 0.5)
    names = ("pass_on", "pass_on", "split", "split", "look", "fetch", "write")
    calls = (
        ToolCall(f"call{place}", chance.choice(names), {"n": chance.randrange(1_000)})
        for place in range(chance.choice((1, 2, 3, 4)))
    )
    return ModelResult("", tool_calls=tuple(calls), usage=_usage(chance))


def _usage(chance: Random) -> TokenUsage:
    """Mostly some tokens; sometimes nothing is said, which counts as all; seldom more than was ever allowed."""
    roll = chance.random()
    if roll < 0.03:
        return TokenUsage()
    if roll < 0.0305:
        return TokenUsage(prompt_tokens=10**6, output_tokens=10**6)
    return TokenUsage(prompt_tokens=chance.randrange(200), output_tokens=chance.randrange(1, 150))


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


def hurried_scenario(seed: int) -> SimulatedWorld:
    """A world with a small tree that has little time, whose runs wait for people now and then; its clock never jumps."""
    chance = Random(f"hurry {seed}")
    world = SimulatedWorld(
        model=eager_model,
        tools=tree_tools(),
        person=random_person,
        faults=chance.choice(STEADY_WEATHER),
        seed=seed,
    )
    manifest = random_tree(chance, f"hurry{seed}", chance.choice((1, 2)))
    caps = list(manifest.caps)
    caps[Dimension.WALL_CLOCK_MS] = chance.randrange(3_000, 20_000)
    world.finish(replace(manifest, caps=tuple(caps)))
    return world


def random_tree(chance: Random, run_id: str, children: int) -> Manifest:
    """A root that leases its children nearly all it has, and then goes on with what they left."""
    lease = tuple((name, max(amount * chance.choice((2, 3, 4, 4, 4)) // 4, 1)) for name, amount in CHILD)
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
        tools=TOOLS,
    )


def _caps(chance: Random, lease: dict[str, int], children: int) -> dict[str, int]:
    """All that the children are leased and enough to say a word about it; in one tree of twenty a bit too little."""
    caps: dict[str, int] = {}
    for name in LEASABLE:
        amount = lease.get(name, 0) + (name == FIELDS[Dimension.CHILD_RUNS])
        own = STEPS_OF_THE_ROOT if name == FIELDS[Dimension.STEPS] else chance.randrange(2 * amount + 1)
        if amount or Dimension[name.upper()] not in UNCHARGED:
            caps[name] = amount * children + own
    caps["wall_clock_ms"] = chance.choice((600_000, 6_000_000))
    caps["depth"] = chance.choice((1, 2))
    if chance.random() < 0.05:
        caps[chance.choice(tuple(lease))] = children - 1
    return caps


TOOLS = (
    ToolDefinition("look", "look something up", PARAMETERS, effect=Effect.READ, network=False),
    ToolDefinition("fetch", "ask the network", PARAMETERS, effect=Effect.READ, network=True, cost_microusd=5),
    ToolDefinition("write", "write a record", PARAMETERS, effect=Effect.WRITE),
    ToolDefinition("pass_on", "delegate a part", PARAMETERS, effect=Effect.NONE, delegates=True, lease=LEAF),
    ToolDefinition("split", "delegate and let delegate", PARAMETERS, effect=Effect.READ, delegates=True, lease=BRANCH),
)


def tree_graph(lease: Lease, children: int, join: JoinRule) -> Graph:
    """All children at once, then some more for as long as there is budget, then a chat that delegates the rest."""
    fan = Node("fan", NodeKind.MAP, prompt=_WORDS, children=children, join=join, lease=lease, visits_max=1)
    more = replace(fan, name="more", children=max(children // 5, 1), join=JoinRule.ANY, visits_max=ROUNDS_MAX)
    chat = chat_graph(tool_rounds_max=ROUNDS_MAX)
    edges = (
        Edge("fan", "more", NodeOutcome.FAILED),
        Edge("fan", "more"),
        Edge("more", "prepare", NodeOutcome.FAILED),
        Edge("more", "prepare", NodeOutcome.EXHAUSTED),
        Edge("more", "more"),
        *chat.edges,
    )
    return Graph("tree", "fan", (fan, more, *chat.nodes), edges, chat.exits)
