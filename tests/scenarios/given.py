"""What a scenario is given: the boundary, the tools, the words of the user, and what the model says.

Rule 1: a boundary is named, or written out as in a boundary file; everything else is a record of the house.
Rule 2: what a file leaves out is the least: no tool, no goal, no person who is named as the user.
"""

from dataclasses import dataclass
from typing import Any

from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.budget import Budget
from remit.core.limits.profiles import boundary_named
from remit.core.record import JsonObject
from remit.core.run.contract import Mode
from remit.core.schema.strict_yaml import ValuePath, YamlDocument, YamlFault, block_in, list_in, spelled_place
from remit.core.work.goal import Goal
from remit.inference.scripted.engine import ScriptedEngine
from remit.orchestrate.boundaries.boundary_file import boundary_of
from tests.scenarios.props import ScriptedTool, tools_in
from tests.scenarios.reading import names_at, number_at, record_in, text_at

UNBOUNDED = -1

_GIVEN = (
    "boundary",
    "budget",
    "goal",
    "tools",
    "user",
    "asked_by",
    "model",
    "mode",
    "replicas",
    "rounds",
    "schema",
    "knows",
)


@dataclass(frozen=True)
class Given:
    """What a run is started with."""

    boundary: Boundary
    budget: Budget
    goal: Goal | None
    tools: tuple[ScriptedTool, ...]
    user: str
    asked_by: str
    model: tuple[JsonObject, ...]
    mode: Mode
    replicas: int
    # How often the model may call tools; 0 is as often as a chat usually may, UNBOUNDED without any bound.
    rounds: int
    schema: JsonObject | None
    # How much of the question the evidence answers to, in millionths; None where nothing is looked for.
    knows: tuple[str, int] | None


def given_in(document: YamlDocument, value: Any) -> Given:
    block = block_in(document, value, _GIVEN, ("given",))
    for key in ("boundary", "user", "model"):
        if key not in block:
            document.reject(YamlFault.VALUE_INVALID, f"given.{key} is missing", ("given",))
    return Given(
        boundary=_boundary(document, block["boundary"]),
        budget=record_in(document, block.get("budget", {}), Budget, ("given", "budget")),
        goal=record_in(document, block["goal"], Goal, ("given", "goal")) if "goal" in block else None,
        tools=tools_in(document, block.get("tools", []), ("given", "tools")),
        user=text_at(document, block, "user", ("given",)),
        asked_by=text_at(document, block, "asked_by", ("given",)),
        model=_replies(document, block["model"]),
        mode=Mode(names_at(document, block.get("mode", Mode.CHAT.value), list(Mode), ("given", "mode"))[0]),
        replicas=number_at(document, block, "replicas", ("given",)),
        rounds=_rounds(document, block),
        schema=block_in(document, block["schema"], (), ("given", "schema")) if "schema" in block else None,
        knows=_knows(document, block["knows"]) if "knows" in block else None,
    )


def _rounds(document: YamlDocument, block: JsonObject) -> int:
    return UNBOUNDED if block.get("rounds") == "unbounded" else number_at(document, block, "rounds", ("given",))


def _knows(document: YamlDocument, value: Any) -> tuple[str, int]:
    place = ("given", "knows")
    block = block_in(document, value, ("text", "relevance_ppm"), place)
    return text_at(document, block, "text", place), number_at(document, block, "relevance_ppm", place)


def _boundary(document: YamlDocument, value: Any) -> Boundary:
    """A boundary by its name, or written out with the keys of a boundary file."""
    try:
        return boundary_of(value) if isinstance(value, dict) else boundary_named(value)
    except RequestRejected as error:
        document.reject(YamlFault.VALUE_INVALID, f"given.boundary: {error.message}", ("given", "boundary"))


def _replies(document: YamlDocument, value: Any) -> tuple[JsonObject, ...]:
    """What the model says, in the shape that the scripted engine takes."""
    place: ValuePath = ("given", "model")
    keys = ("calls", "text", "error", "usage", "delay_ms", "reasoning", "when", "replica")
    replies: list[JsonObject] = []
    for at, said in enumerate(list_in(document, value, place)):
        block = block_in(document, said, keys, (*place, at))
        reply = {key: block[key] for key in block if key != "calls"}
        calls = [
            call_at(document, call, (*place, at, "calls", number))
            for number, call in enumerate(list_in(document, block.get("calls", []), (*place, at, "calls")))
        ]
        replies.append({**reply, "tool_calls": calls} if calls else reply)
    if not replies:
        document.reject(YamlFault.VALUE_INVALID, "given.model is empty; say what the model answers", place)
    try:
        ScriptedEngine(replies)
    except RequestRejected as error:
        document.reject(YamlFault.VALUE_INVALID, f"given.model: {error.message}", place)
    return tuple(replies)


def call_at(document: YamlDocument, value: Any, place: ValuePath) -> JsonObject:
    """One call, written as TOOL: {ARGUMENT: VALUE}."""
    block = block_in(document, value, (), place)
    if len(block) != 1:
        message = f"{spelled_place(place)} must be one tool with its arguments, such as {{refund: {{amount: 5}}}}"
        document.reject(YamlFault.VALUE_INVALID, message, place)
    ((tool, arguments),) = block.items()
    return {"name": tool, "arguments": block_in(document, arguments or {}, (), (*place, tool))}
