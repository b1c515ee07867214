"""Python checks no field of a record, so each door does: a wrong type is taken as meant, or refused with a code that names it."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import remit
from remit import (
    EXITS,
    TERMINALS,
    AgentLoop,
    AllowedValues,
    Ask,
    Boundary,
    Budget,
    Citations,
    Criterion,
    Edge,
    ExecutionHints,
    ExecutionPlan,
    Goal,
    Graph,
    Length,
    Message,
    Mode,
    MustMatch,
    MustMention,
    MustNotMatch,
    MustNotMention,
    Node,
    NodeKind,
    NoSecrets,
    NotEmpty,
    NumberRange,
    Order,
    OutputContract,
    PlanPolicy,
    Principal,
    QueueLimits,
    Quota,
    Rate,
    Redundancy,
    RemitError,
    RequestRejected,
    RequiredAction,
    RequiredFields,
    RetryPolicy,
    Rule,
    RuleSet,
    Scope,
    ScriptedEngine,
    SemanticCheck,
    Signal,
    Step,
    StepType,
    Subject,
    SystemRequest,
    Terms,
    ToolCall,
    ToolChoice,
    ToolRules,
    UserSignal,
    kit_of,
    tool,
    user_message,
)


class Foreign:
    """Something that no record holds."""

    def __repr__(self) -> str:  # type: ignore[explicit-override]  # typing.override comes with Python 3.12
        return "Foreign()"


# One of each kind that a program may put somewhere by mistake.
WRONG: tuple[object, ...] = (
    None,
    True,
    -7,
    2**70,
    1.5,
    float("nan"),
    "zz",
    "",
    b"\xff",
    [],
    ["look"],
    (7,),
    {},
    {"a": 1},
    {1: 2},
    {7},
    Foreign(),
    Foreign,
    Signal.PAUSE,
    Budget(),
)


@tool(effect="read", network=False)
def look(what: str) -> str:
    """Look something up."""
    return what


def kit() -> Any:
    return kit_of(ScriptedEngine([{"text": "hi"}, {"text": "hi"}, {"text": "hi"}]), [look])


async def asked(request: SystemRequest, terms: Terms = Terms()) -> None:  # noqa: B008  # a frozen record
    async with remit.open(memory=True) as system:
        await system.run(request, kit(), terms)


def in_request(place: Callable[[Any], SystemRequest]) -> Callable[[Any], Any]:
    return lambda record: asked(place(record))


def under_terms(**fixed: Any) -> Callable[[str], Callable[[Any], Any]]:
    return lambda field: (
        lambda record: asked(SystemRequest((user_message("say hi"),), **fixed), Terms(**{field: record}))
    )


def by_agent(field: str) -> Callable[[Any], Any]:
    async def chat(record: Any) -> None:
        async with AgentLoop(ScriptedEngine([{"text": "hi"}]), system=None, **{field: record}) as agent:
            await agent.chat("say hi")

    return chat


async def told(signal: UserSignal) -> None:
    async with remit.open(memory=True) as system:
        await system.signal(signal)


async def acts(principal: Principal) -> None:
    async with remit.open(memory=True) as system:
        await system.acting_for(principal).archive.runs()


async def subscribed(subject: Subject) -> None:
    async with remit.open(memory=True) as system:
        system.subscribe(subject).close()


async def limited(**parts: Any) -> None:
    await remit.system_on(remit.MemoryStore(), **parts).close()


async def granted(order: Any) -> None:
    async with remit.open(memory=True) as system:
        await system.grants.give(order, until_ms=1, by="ann")


async def compiled(rules: Any) -> None:
    remit.compile_rules(rules)


TERMS = under_terms()
PLANNED = under_terms(mode=Mode.PLAN)
VOTED = under_terms(mode=Mode.REDUNDANT, output=OutputContract({"type": "object"}))
NODES = (Node("think", NodeKind.MODEL), Node("act", NodeKind.TOOL), *TERMINALS)
EDGES = (Edge("think", "act", "called_tools"), Edge("think", "done"), Edge("act", "think"))
GRAPH = Graph("own", "think", NODES, EDGES, EXITS)
HI = user_message("say hi")


def graph_with(node: Node) -> Graph:
    return msgspec.structs.replace(GRAPH, nodes=(node, *NODES[1:]))


def rules_with(check: Any) -> RuleSet:
    return RuleSet("r", (Rule("one", check),))


# A record as a caller makes it, and how it comes in.
Made = tuple[Any, Callable[[Any], Any]]
RECORDS: dict[str, Made] = {
    "request": (SystemRequest((HI,)), asked),
    "message": (HI, in_request(lambda one: SystemRequest((one,)))),
    "call": (
        ToolCall("c", "look", {"what": "a"}),
        in_request(lambda one: SystemRequest((HI, Message(remit.Role.ASSISTANT, tool_calls=(one,)), HI))),
    ),
    "choice": (ToolChoice(), in_request(lambda one: SystemRequest((HI,), tool_choice=one))),
    "output": (OutputContract(), in_request(lambda one: SystemRequest((HI,), output=one))),
    "hints": (ExecutionHints(), in_request(lambda one: SystemRequest((HI,), hints=one))),
    "order": (Order("look"), in_request(lambda one: SystemRequest((HI,), orders=(one,)))),
    "granted order": (Order("look"), granted),
    "terms": (Terms(), lambda one: asked(SystemRequest((HI,)), one)),
    "goal": (Goal("g"), TERMS("goal")),
    "criterion": (Criterion("c", guard="true"), lambda one: TERMS("goal")(Goal("g", criteria=(one,)))),
    "action": (RequiredAction("look"), lambda one: TERMS("goal")(Goal("g", required_actions=(one,)))),
    "budget": (Budget(), TERMS("budget")),
    "boundary": (Boundary("b"), TERMS("boundary")),
    "rate": (Rate("look", 1, 1_000), lambda one: TERMS("boundary")(Boundary("b", rates=(one,)))),
    "graph": (GRAPH, TERMS("graph")),
    "node": (NODES[0], lambda one: TERMS("graph")(graph_with(one))),
    "edge": (EDGES[1], lambda one: TERMS("graph")(msgspec.structs.replace(GRAPH, edges=(EDGES[0], one, EDGES[2])))),
    "rules of a node": (
        ToolRules("boundary", "registry", "tool_calls", 1_000, "result_schema"),
        lambda one: TERMS("graph")(graph_with(msgspec.structs.replace(NODES[1], name="think", rules=one))),
    ),
    "ask": (Ask(), lambda one: TERMS("graph")(graph_with(msgspec.structs.replace(NODES[0], ask=one)))),
    "plan": (ExecutionPlan((Step("s", StepType.INFER),)), PLANNED("plan")),
    "step": (Step("s", StepType.INFER), lambda one: PLANNED("plan")(ExecutionPlan((one,)))),
    "policy": (PlanPolicy(), PLANNED("policy")),
    "redundancy": (Redundancy(), VOTED("redundancy")),
    "agent's goal": (Goal("g"), by_agent("goal")),
    "agent's boundary": (Boundary("b"), by_agent("boundary")),
    "agent's budget": (Budget(), by_agent("budget")),
    "principal": (Principal("acme", "ada", (Scope.READ,)), acts),
    "signal": (UserSignal("s", Signal.FEEDBACK, "r", "ann", payload={"text": "a"}), told),
    "quota": (Quota("acme", remit.Period.DAY, Budget(steps=1)), lambda one: limited(quotas=[one])),
    "queue": (QueueLimits("review"), lambda one: limited(queues=[one])),
    "subject": (Subject(), subscribed),
    "rule set": (rules_with(NotEmpty()), compiled),
    "rule": (Rule("one", NotEmpty()), lambda one: compiled(RuleSet("r", (one,)))),
    "retry": (RetryPolicy(), lambda one: compiled(msgspec.structs.replace(rules_with(NotEmpty()), retry=one))),
    "question for a judge": (
        SemanticCheck("q", "is it so?"),
        lambda one: compiled(msgspec.structs.replace(rules_with(NotEmpty()), semantic=(one,))),
    ),
    "agent's rules": (rules_with(NotEmpty()), by_agent("rules")),
    **{
        type(check).__name__: (check, lambda one: compiled(rules_with(one)))
        for check in (
            AllowedValues(values=("a",)),
            Citations(),
            Length(chars_max=1),
            MustMatch("a"),
            MustMention(("a",)),
            MustNotMatch("a"),
            MustNotMention(("a",)),
            NoSecrets(),
            NotEmpty(),
            NumberRange(least=0),
            RequiredFields(("a",)),
        )
    },
}


def fields_of(record: Any) -> Iterator[str]:
    kind = type(record)
    yield from kind.__struct_fields__ if isinstance(record, msgspec.Struct) else kind.__dataclass_fields__


def with_field(record: Any, field: str, value: object) -> Any:
    """The record as a caller makes it with something else in a field."""
    said = {name: getattr(record, name) for name in fields_of(record)}
    return type(record)(**{**said, field: value})


CASES = [(name, field) for name, (record, _) in RECORDS.items() for field in fields_of(record)]


@pytest.mark.parametrize(("name", "field"), CASES)
def test_a_wrong_type_in_a_field_is_taken_as_meant_or_refused_with_a_code(name: str, field: str) -> None:
    record, door = RECORDS[name]
    said = {repr(wrong): came_of(door, with_field(record, field, wrong)) for wrong in WRONG}
    assert {wrong: why for wrong, why in said.items() if why not in ("taken", "refused")} == {}


def came_of(door: Callable[[Any], Any], record: Any) -> str:
    """Whether a record was taken or refused with a code of its door; else what was raised in the middle of the house."""
    try:
        asyncio.run(door(record))
    except RemitError as error:
        return str(error) if error.code in ("JOURNAL_UNREADABLE", "INVARIANT_BROKEN") else "refused"
    except Exception as error:  # noqa: BLE001  # whatever it is, it is what must not be
        return f"{type(error).__name__}: {error}"
    return "taken"


@pytest.mark.parametrize("name", RECORDS)
def test_what_is_no_record_at_all_is_refused_with_a_code(name: str) -> None:
    _, door = RECORDS[name]
    for wrong in (7, 1.5, Foreign(), object, {7}):
        with pytest.raises(RemitError):
            asyncio.run(door(wrong))


@pytest.mark.parametrize(
    ("meant", "said"),
    [
        (Goal("g", required_actions=(RequiredAction("look"),)), Goal("g", required_actions=[{"tool": "look"}])),  # type: ignore[arg-type]
        (Goal("g"), {"statement": "g"}),
    ],
)
def test_what_can_only_mean_one_thing_is_taken_as_meant(meant: Goal, said: Any) -> None:
    async def pinned(goal: Any) -> Goal | None:
        async with remit.open(memory=True) as system:
            run_id = await system.submit(SystemRequest((HI,)), kit(), Terms(goal=goal))
            await system.settle(run_id)
            return (await system.archive.told(run_id)).manifest.goal

    assert asyncio.run(pinned(said)) == meant


def test_a_refusal_names_the_field_its_value_and_what_it_takes() -> None:
    with pytest.raises(RequestRejected) as refused:
        asyncio.run(TERMS("goal")(Goal("g", required_actions=("look",))))  # type: ignore[arg-type]
    assert refused.value.code == "GOAL_INVALID"
    assert refused.value.message == "goal.required_actions[0]='look' cannot be used; it takes RequiredAction"
