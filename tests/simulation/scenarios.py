"""Scenarios: runs made of a seed, with tools, budgets, goals and models that go wrong in every way we could think of."""

from collections.abc import Callable, Sequence
from functools import cache
from random import Random

from remit.core.failure import ErrorCode
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import FIELDS, UNCHARGED, Budget
from remit.core.limits.tools import Effect, ToolCall, ToolChoice, ToolChoiceMode, ToolDefinition
from remit.core.record import JsonObject, replace
from remit.core.run.contract import ExecutionHints, OutputContract, SystemRequest
from remit.core.run.inference import ModelInfo, ModelResult, Price
from remit.core.run.manifest import Manifest, make_manifest
from remit.core.run.messages import Message, Role, user_message
from remit.core.run.usage import TokenUsage
from remit.core.work.goal import Criterion, Goal, RequiredAction, TaskClass
from remit.core.work.graph import Edge, Graph, JoinRule, Node, NodeKind, graph_version
from remit.orchestrate.patterns.chat_graph import chat_graph
from remit.testing.scripts import Breaks, Reply, Stops, Tool
from remit.testing.trouble import WEATHER, Faults
from remit.testing.world import SimulatedWorld
from tests.simulation.authority_scenarios import FILTERS, asking_service, governed, governing, reading_service
from tests.simulation.pattern_scenarios import fickle, plan_request, random_plan, random_vote, vote_request

PARAMETERS: JsonObject = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["n"],
    "additionalProperties": False,
}
RESULT: JsonObject = {"type": "object", "properties": {"ok": {"type": "boolean", "const": True}}, "required": ["ok"]}
LEASE = (
    ("input_tokens", 50_000),
    ("output_tokens", 8_000),
    ("tool_calls", 4),
    ("inference_cost_microusd", 200_000),
    ("steps", 14),
    ("human_reviews", 3),
)

TOOLS: tuple[ToolDefinition, ...] = (
    ToolDefinition("look", "look something up", PARAMETERS, RESULT, effect=Effect.READ, network=False),
    ToolDefinition("fetch", "ask the network", PARAMETERS, RESULT, effect=Effect.READ, network=True, cost_microusd=5),
    ToolDefinition("write", "write a record", PARAMETERS, RESULT, effect=Effect.WRITE),
    ToolDefinition("pay", "pay a person", PARAMETERS, RESULT, effect=Effect.EXTERNAL, reconcilable=True),
    ToolDefinition("put", "put a value", PARAMETERS, RESULT, effect=Effect.WRITE, idempotent=True),
    ToolDefinition(
        "secret",
        "needs a right",
        PARAMETERS,
        RESULT,
        effect=Effect.READ,
        network=False,
        permissions=("vault.open",),
    ),
    ToolDefinition("finish", "end the loop", PARAMETERS, RESULT, effect=Effect.NONE, may_stop_loop=True),
    ToolDefinition(
        "send_child", "delegate", PARAMETERS, effect=Effect.READ, delegates=True, lease=(*LEASE, ("side_effects", 2))
    ),
    ToolDefinition("ask_child", "delegate", PARAMETERS, effect=Effect.NONE, delegates=True, lease=LEASE),
)
# The same, but nothing could refuse what two of them say they have changed.
UNCHECKED: tuple[ToolDefinition, ...] = tuple(
    replace(tool, result={}) if tool.name in ("write", "put") else tool for tool in TOOLS
)
# Every third world plays a vote or a plan; the others are one conversation each.
PATTERN_EVERY = 3
# Every fourth of them has a boundary that uses everything a boundary can say.
GOVERNED_EVERY = 4
# In every third of the rest the model stops once something was done: a run that never stops proposing earns no success.
CONTENT_EVERY = 3
MODEL = ModelInfo("scripted", 100_000, Price(1_000_000, 2_000_000))

# Laws that look at any world draw from so many, which the tests of a process then share.
PLAYED_SEEDS = 400

_HOSTILE_TEXTS = (
    "done",
    "\x1b[2J\x1b[31mowned\x07",
    "<script>alert(1)</script>",
    "half \ud800 a pair",
    "x" * 3000,
    "ok " * 20,
)
_CODES = (
    ErrorCode.INFERENCE_ENGINE_ERROR,
    ErrorCode.INFERENCE_MODEL_UNAVAILABLE,
    ErrorCode.INFERENCE_CONTEXT_EXCEEDED,
    ErrorCode.INFERENCE_MALFORMED_RESPONSE,
)


def tools() -> dict[str, Tool]:
    """Simulated services behind the tools: they all succeed and say so, and two want to end the loop; one of them may."""
    named = {tool.name: _ends if tool.name in ("finish", "put") else _works for tool in TOOLS}
    return {**named, "twin": _differs, "ask": asking_service, "report": reading_service}


def _works(arguments: JsonObject) -> str:
    return '{"ok": true}'


def _differs(arguments: JsonObject) -> str:
    return '{"ok": false}'


def _ends(arguments: JsonObject) -> Stops:
    return Stops('{"ok": true}')


def hostile_model(messages: Sequence[Message], chance: Random) -> ModelResult | Breaks:
    """A model that follows no orders: it answers, lies, breaks, repeats itself and calls whatever it likes."""
    roll = chance.random()
    if roll < 0.15:
        return ModelResult(chance.choice(_HOSTILE_TEXTS), usage=_usage(chance))
    if roll < 0.2:
        return Breaks(chance.choice(_CODES), was_cut=chance.random() < 0.3)
    if roll < 0.215:
        return ModelResult("", usage=_usage(chance))
    how_many = chance.choice((1, 1, 1, 2, 3, 6))
    calls = tuple(_call(chance) for _ in range(how_many))
    return ModelResult(chance.choice(("", "let me see")), tool_calls=calls, usage=_usage(chance))


def content_model(messages: Sequence[Message], chance: Random) -> ModelResult | Breaks:
    """A model that changes a thing or two and is content when a tool has answered."""
    if messages[-1].role is Role.TOOL and chance.random() < 0.6:
        return ModelResult("done", usage=_usage(chance))
    if chance.random() < 0.8:
        names = chance.sample(("write", "put", "pay", "put"), k=chance.choice((1, 2, 3)))
        calls = tuple(ToolCall(f"call{n}", name, {"n": n}) for n, name in enumerate(names))
        return ModelResult("", tool_calls=calls, usage=_usage(chance))
    return hostile_model(messages, chance)


def random_person(chance: Random) -> Reply:
    """A person who mostly approves, and sometimes does anything else."""
    return chance.choice((Reply.APPROVE, Reply.APPROVE, Reply.APPROVE, Reply.REJECT, Reply.MODIFY, Reply.IGNORE))


def scenario(seed: int, *, faults: Faults | None = None) -> SimulatedWorld:
    """A world with one random run in it, played to its end. Without faults of its own it gets those of some weather."""
    chance = Random(f"scenario {seed}")
    is_pattern = seed % PATTERN_EVERY == PATTERN_EVERY - 1
    is_governed = not is_pattern and seed % GOVERNED_EVERY == 0
    # Where the caller says what goes wrong, the model goes wrong as well.
    is_content = faults is None and not is_pattern and not is_governed and seed % CONTENT_EVERY == 1
    model = governing(hostile_model) if is_governed else content_model if is_content else hostile_model
    world = SimulatedWorld(
        model=fickle(hostile_model) if is_pattern else model,
        tools=tools(),
        person=random_person,
        validators={"polite": lambda text: [] if "owned" not in text else ["this is not polite"], "broken": _broken},
        filters=FILTERS,
        faults=chance.choice(WEATHER) if faults is None else faults,
        seed=seed,
    )
    make = random_pattern if is_pattern else content_manifest if is_content else random_manifest
    manifest = make(chance, f"run{seed}")
    world.finish(governed(manifest, seed) if is_governed else manifest)
    return world


@cache
def played_world(seed: int) -> SimulatedWorld:
    """The scenario of a seed, played once for all tests of a process that only read what was written in it."""
    return scenario(seed)


def random_pattern(chance: Random, run_id: str) -> Manifest:
    """A vote or a plan, under whatever else the chance gives it."""
    manifest = random_manifest(chance, run_id)
    is_vote = chance.random() < 0.5
    graph = random_vote(chance, RESULT) if is_vote else random_plan(chance, RESULT, TOOLS)
    return replace(
        manifest,
        graph=graph,
        versions=replace(manifest.versions, graph=graph_version(graph)),
        request=vote_request(RESULT) if is_vote else plan_request(),
        goal=_judged(chance) if chance.random() < 0.35 else manifest.goal,
    )


def content_manifest(chance: Random, run_id: str) -> Manifest:
    """A run that has enough of everything, so that how it ends depends on what became of its effects."""
    return make_manifest(
        run_id=run_id,
        request=SystemRequest(messages=(user_message("change something"),)),
        boundary=Boundary(name="simulated", approval_effects=(Effect.EXTERNAL,)),
        budget=Budget(),
        graph=chat_graph(),
        models=(MODEL,),
        tools=chance.choice((TOOLS, UNCHECKED)),
    )


def random_manifest(chance: Random, run_id: str) -> Manifest:
    """A run with whatever tools, caps, goal and graph the chance gives it."""
    caps = dict(zip(FIELDS, [_cap(chance, field) for field in FIELDS], strict=True))
    budget = replace(Budget(**caps), **{FIELDS[dimension]: None for dimension in UNCHARGED})
    allowed = None if chance.random() < 0.8 else tuple(tool.name for tool in TOOLS if chance.random() < 0.6)
    return make_manifest(
        run_id=run_id,
        request=_request(chance),
        boundary=Boundary(
            name="simulated",
            allowed_tools=allowed,
            permissions=("vault.open",) if chance.random() < 0.3 else (),
            approval_effects=(Effect.WRITE, Effect.EXTERNAL) if chance.random() < 0.7 else (),
            approval_wait_ms_max=chance.choice((50_000, 3_600_000)),
        ),
        budget=budget,
        graph=chance.choice(
            (
                chat_graph(),
                chat_graph(),
                chat_graph(tool_rounds_max=4),
                research_graph(chance),
                review_graph(),
                hasty_graph(),
            )
        ),
        models=(MODEL if chance.random() < 0.99 else replace(MODEL, price=None),),
        goal=_goal(chance),
        retrieves_context=chance.random() < 0.3,
        tools=TOOLS if chance.random() < 0.8 else UNCHECKED,
    )


def research_graph(chance: Random) -> Graph:
    """Children first, then the chat: a map whose answers the model then reads."""
    fan = Node(
        "fan",
        NodeKind.MAP,
        prompt="look around",
        children=3,
        join=chance.choice(tuple(JoinRule)),
        lease=LEASE,
        visits_max=1,
    )
    chat = chat_graph(tool_rounds_max=4)
    return Graph("research", "fan", (fan, *chat.nodes), (Edge("fan", "prepare"), *chat.edges), chat.exits)


def review_graph() -> Graph:
    """A chat whose answer a person sees before it leaves, with conditions on its edges."""
    chat = chat_graph(tool_rounds_max=4)
    review = Node("review", NodeKind.HUMAN, prompt="May this leave?", visits_max=2)
    sort = Node("sort", NodeKind.DECIDE)
    edges = tuple(edge for edge in chat.edges if edge.source != "check")
    return Graph(
        "review",
        chat.start,
        (*chat.nodes, review, sort),
        (
            *edges,
            Edge("check", "think", "repairable"),
            Edge("check", "sort"),
            Edge("sort", "done", condition="committed_observations == 0 && answer_bytes < 100"),
            Edge("sort", "review"),
            Edge("review", "think", "rejected"),
            Edge("review", "done"),
        ),
        chat.exits,
    )


def hasty_graph() -> Graph:
    """A chat that leaves its check out: what it answers is judged at its end all the same."""
    chat = chat_graph(tool_rounds_max=4)
    nodes = tuple(node for node in chat.nodes if node.name != "check")
    edges = tuple(replace(edge, target="done") if edge.target == "check" else edge for edge in chat.edges)
    return Graph("hasty", chat.start, nodes, tuple(edge for edge in edges if edge.source != "check"), chat.exits)


def _broken(text: str) -> Sequence[str]:
    raise RuntimeError("this validator does not work")


def _usage(chance: Random) -> TokenUsage:
    roll = chance.random()
    if roll < 0.05:
        return TokenUsage()
    if roll < 0.06:
        return TokenUsage(prompt_tokens=10**7, output_tokens=10**7)
    return TokenUsage(
        prompt_tokens=chance.randrange(50), reasoning_tokens=chance.randrange(5), output_tokens=chance.randrange(1, 50)
    )


def _call(chance: Random) -> ToolCall:
    name = chance.choice(
        (*(tool.name for tool in TOOLS), *["look", "fetch", "write", "pay", "put"] * 3, "no_such_tool")
    )
    arguments: JsonObject = {"n": chance.randrange(8)}
    roll = chance.random()
    if roll < 0.04:
        arguments = {"n": "not a number", "path": "../../etc/passwd"}
    elif roll < 0.05:
        arguments = {"n": 2**70}
    elif roll < 0.08:
        arguments["note"] = "long " * 400
    return ToolCall(chance.choice(("call", "call", f"call{chance.randrange(100)}")), name, arguments)


def _cap(chance: Random, field: str) -> int | None:
    """Mostly the standard cap; sometimes little, sometimes nothing."""
    roll = chance.random()
    if roll < (0.8 if field == "tool_calls" else 0.95):
        return None
    if roll < (0.82 if field == "tool_calls" else 0.96):
        return 0
    scale = {"input_tokens": 20_000, "output_tokens": 5_000, "wall_clock_ms": 60_000, "context_tokens": 5_000}
    scale["inference_cost_microusd"] = 50_000
    return chance.randrange(1, scale.get(field, 12))


def _request(chance: Random) -> SystemRequest:
    mode = chance.choice((*[ToolChoiceMode.AUTO] * 12, *ToolChoiceMode))
    schema = RESULT if chance.random() < 0.15 else None
    return SystemRequest(
        messages=(user_message("please do something useful" * chance.choice((1, 1, 60))),),
        hints=ExecutionHints(max_tokens=chance.choice((0, 0, 100)), timeout_ms=chance.choice((0, 0, 0, 60_000))),
        output=OutputContract(schema=schema),
        tools=() if chance.random() < 0.85 else ("look", "write"),
        tool_choice=ToolChoice(mode, "look" if mode is ToolChoiceMode.FUNCTION else ""),
    )


def _judged(chance: Random) -> Goal:
    """A goal that a model judges, in a run of its own."""
    return Goal("be kind", (Criterion("kind", judge="Is it kind?", only_warns=chance.random() < 0.3),))


def _goal(chance: Random) -> Goal | None:
    if chance.random() < 0.7:
        return None
    criteria: list[Criterion] = []
    options: tuple[Callable[[], Criterion], ...] = (
        lambda: Criterion("short", guard="answer_bytes < 2000"),
        lambda: Criterion("impossible to say", guard="10 / (visits - visits) > 1"),
        lambda: Criterion("polite", validator="polite"),
        lambda: Criterion("broken", validator="broken"),
    )
    while chance.random() < 0.5:
        criteria.append(chance.choice(options)())
    return Goal(
        "do something useful",
        tuple(criteria),
        (RequiredAction("look"),) if chance.random() < 0.3 else (),
        chance.choice((None, *TaskClass)),
    )
