"""The suites: four worlds with their tools, data, tasks and attackers, read from the files of `worlds/`.

Rule 1: a tool file says what a tool truly is; `Tool.shown` is the part of it that a gate is told.
Rule 2: nothing here knows a gate.
Rule 3: an effect is a call that changes something or leaves the machine; everything else is a read.
"""

import importlib
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import yaml

WORLDS = ("workspace", "bank", "travel", "chat")
FOLDER = Path(__file__).parent / "worlds"

# The fields of a tool that AUTHORITY lets an operator declare; `shows` chooses among them.
DECLARABLE = (
    "effect",
    "category",
    "network",
    "destructive",
    "control_args",
    "payload_args",
    "result",
    "author",
    "directory",
    "locator_args",
    "asks",
    "repeat",
    "reads",
    "readers",
)

Json = Any
Args = dict[str, Json]


@dataclass(frozen=True)
class Outsiders:
    """Where other people can write in what a tool returns."""

    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    adds: bool = False


@dataclass(frozen=True)
class Tool:
    """One tool: the truth about it, and how much of the truth is declared."""

    name: str
    truth: dict[str, Json]
    outsiders: Outsiders
    perform: Callable[..., Json]

    @property
    def is_effect(self) -> bool:
        """Whether a call changes something or leaves the machine."""
        return self.changes or bool(self.truth.get("network"))

    @property
    def changes(self) -> bool:
        """Whether a call changes something."""
        return self.truth["effect"] in ("write", "external")

    @property
    def is_public(self) -> bool:
        """Whether anybody may know what it returns."""
        return self.truth.get("reads") == "public"

    @property
    def always_asks(self) -> bool:
        """Whether its calls are a person's to allow whatever their values are: it declares that it destroys."""
        return bool(self.shown.get("destructive"))

    @property
    def kinds(self) -> dict[str, str]:
        """What each control argument truly is."""
        return dict(self.truth.get("control_args", {}))

    @property
    def payload(self) -> tuple[str, ...]:
        """The arguments that carry free text."""
        return tuple(self.truth.get("payload_args", ()))

    @property
    def fields(self) -> dict[str, str]:
        """The trusted fields of a result, by path."""
        return dict(self.truth.get("result", {}))

    @property
    def required(self) -> tuple[str, ...]:
        """The arguments a call cannot do without."""
        return tuple(name for name, kind in self.truth["parameters"].items() if not kind.endswith("?"))

    @cached_property
    def shown(self) -> dict[str, Json]:
        """What a gate is told about the tool when a run starts."""
        shows = self.truth["shows"]
        names = DECLARABLE if shows == "all" else () if shows == "none" else tuple(shows)
        declared = {name: self.truth[name] for name in names if name in self.truth}
        told = {"name": self.name, "description": self.truth["about"], "parameters": self._schema()}
        return told | declared

    def _schema(self) -> Json:
        properties = {name: _property(kind.removesuffix("?")) for name, kind in self.truth["parameters"].items()}
        return {"type": "object", "properties": properties, "required": list(self.required)}


def _property(kind: str) -> Json:
    if "|" in kind:
        return {"type": "string", "enum": kind.split("|")}
    if kind.endswith("[]"):
        return {"type": "array", "items": _property(kind.removesuffix("[]"))}
    return {"type": kind}


@dataclass(frozen=True)
class Call:
    """One call of a tool."""

    tool: str
    args: Args

    @classmethod
    def read(cls, entry: dict[str, Args]) -> "Call":
        """A call as the files write it: a mapping with one key."""
        ((tool, args),) = entry.items()
        return cls(tool, args)


@dataclass(frozen=True)
class Task:
    """What a user asks for, and the calls of an honest assistant."""

    id: str
    prompt: str
    shape: str
    calls: tuple[Call, ...]
    also: tuple[str, ...] = ()
    model_values: tuple[Json, ...] = ()
    everything: bool = False
    # What the user wrote in earlier exchanges of the same session, each of which was answered.
    history: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """All that the user wrote."""
        return "\n".join((*self.history, self.prompt))


@dataclass(frozen=True)
class Seen:
    """A trusted value that an honest run has seen: where it stood and what it is."""

    call: int
    tool: str
    path: str
    record: int
    kind: str
    value: Json


@dataclass(frozen=True)
class World:
    """One world: tools, data, tasks, and its attacker."""

    name: str
    tools: dict[str, Tool]
    data: dict[str, Json]
    tasks: tuple[Task, ...]
    attack: dict[str, Json]
    _seen: dict[str, list[Seen]] = field(default_factory=dict, compare=False)

    def perform(self, data: dict[str, Json], call: Call) -> Json:
        """Carry out a call; what goes wrong is a result of the tool, as it would be in life."""
        try:
            return self.tools[call.tool].perform(data, **call.args)
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            return {"error": f"{call.tool}: {type(problem).__name__}: {problem}"}

    def fresh(self) -> dict[str, Json]:
        """The data as they stand before any run."""
        return deepcopy(self.data)

    def seen(self, task: Task) -> list[Seen]:
        """The trusted values that the honest run of a task gets to see."""
        if task.id not in self._seen:
            data = self.fresh()
            results = [(call.tool, self.perform(data, call)) for call in task.calls]
            self._seen[task.id] = [
                Seen(number, tool, path, record, kind, value)
                for number, (tool, result) in enumerate(results)
                for path, kind in self.tools[tool].fields.items()
                for record, value in values_at(result, path)
            ]
        return self._seen[task.id]

    def effects(self, task: Task) -> list[int]:
        """The places of the effects among the calls of a task."""
        return [n for n, call in enumerate(task.calls) if self.tools[call.tool].is_effect]


def values_at(result: Json, path: str) -> Iterator[tuple[int, Json]]:
    """The values at a path such as `[].sender` or `[].shared_with[]`, each with the number of its record."""
    if path.startswith("[]."):
        records = result if isinstance(result, list) else []
    else:
        records = [result] if isinstance(result, dict) else []
    name = path.removeprefix("[].")
    for number, record in enumerate(records):
        value = record.get(name.removesuffix("[]")) if isinstance(record, dict) else None
        if name.endswith("[]"):
            yield from ((number, item) for item in value or ())
        elif value is not None:
            yield number, value


@cache
def world(name: str) -> World:
    """A world, read from its folder."""
    parts = {part: _yaml(FOLDER / name / f"{part}.yaml") for part in ("data", "tools", "tasks", "attack")}
    functions = importlib.import_module(f"tests.authority.worlds.{name}.functions")
    tools = {tool: _tool(tool, entry, getattr(functions, tool)) for tool, entry in parts["tools"].items()}
    tasks = tuple(_task(entry) for entry in parts["tasks"])
    return World(name, tools, parts["data"], tasks, parts["attack"])


def worlds() -> tuple[World, ...]:
    """All four worlds."""
    return tuple(world(name) for name in WORLDS)


def _yaml(path: Path) -> Json:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _tool(name: str, entry: dict[str, Json], perform: Callable[..., Json]) -> Tool:
    outsiders = entry.pop("outsiders", {})
    places = Outsiders(
        tuple(outsiders.get("texts", ())), tuple(outsiders.get("labels", ())), bool(outsiders.get("adds"))
    )
    return Tool(name, entry, places, perform)


def _task(entry: dict[str, Json]) -> Task:
    return Task(
        id=entry["id"],
        prompt=entry["prompt"],
        shape=entry["shape"],
        calls=tuple(Call.read(call) for call in entry["calls"]),
        also=tuple(entry.get("also", ())),
        model_values=tuple(entry.get("model_values", ())),
        everything=bool(entry.get("everything")),
        history=tuple(entry.get("history", ())),
    )
