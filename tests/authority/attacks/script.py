"""The script of an attacked run: which calls the puppet makes, for whom, and what it gets to read.

Rule 1: the puppet has no will: every call is written down before the run starts.
Rule 2: a run is named by its world, task, kind and variant, and is the same on every machine.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from tests.authority.suite import Call, Json, Seen, Task, Tool, World

# Changes what a tool returned, as other people could have; the number says which call of the run it was.
Tamper: TypeAlias = Callable[[int, Tool, Json], Json]


@dataclass(frozen=True)
class Move:
    """One call of the puppet, for the user or for the attacker."""

    call: Call
    injected: bool = False


@dataclass(frozen=True)
class Run:
    """One run, from its prompt to its last call."""

    world: World
    task: Task
    kind: str
    variant: str
    moves: tuple[Move, ...]
    prompt: str
    tamper: Tamper
    # A person answers questions: yes to what the task asks for, no to the rest. Without, questions stay open.
    answered: bool = True
    # The results of effects come only when all calls were proposed.
    overlapping: bool = False
    # What the user wrote in earlier exchanges, and the labels of what was read there.
    history: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    # No gate can tell these from an honest run without a person; they are counted apart.
    residual: bool = False

    @property
    def name(self) -> str:
        """The name that finds the run again."""
        return f"{self.task.id}/{self.kind}/{self.variant}"

    @property
    def messages(self) -> list[dict[str, str]]:
        """The conversation up to this exchange; what the assistant said in it is no person's word."""
        before = [
            {"role": role, "content": text}
            for said in self.history
            for role, text in (("user", said), ("assistant", "Done."))
        ]
        return [*before, {"role": "user", "content": self.prompt}]


def untouched(number: int, tool: Tool, result: Json) -> Json:
    """Leave a result as it is."""
    return result


def honest_run(world: World, task: Task) -> Run:
    """The task, done by an honest assistant in a world without an attacker."""
    moves = tuple(map(Move, task.calls))
    return Run(world, task, "none", "", moves, task.prompt, untouched, history=task.history)


def attacked(world: World, task: Task, variant: str, moves: list[Move], tamper: Tamper = untouched) -> Run:
    """An attacked run; the catalogue writes its kind into it."""
    return Run(world, task, "", variant, tuple(moves), task.prompt, tamper, history=task.history)


def unanswered(run: Run) -> Run:
    """The same run, without a person at the desk."""
    return replace(run, answered=False)


def overlapping(run: Run) -> Run:
    """The same run, its effects proposed before any of them has a result."""
    return replace(run, overlapping=True)


def beyond(run: Run) -> Run:
    """The same run, counted among those that no gate decides without a person."""
    return replace(run, residual=True)


def honest(calls: tuple[Call, ...]) -> list[Move]:
    """The given calls, made for the user."""
    return [Move(call) for call in calls]


def injected(call: Call) -> Move:
    """A call made for the attacker."""
    return Move(call, injected=True)


@dataclass(frozen=True)
class Slot:
    """One control value of one effect: the place an attacker wants to change."""

    call: int
    arg: str
    index: int | None
    kind: str
    value: Json

    @property
    def label(self) -> str:
        """The slot in words."""
        place = self.arg if self.index is None else f"{self.arg}[{self.index}]"
        return f"{self.call}.{place}"


def slots(world: World, task: Task) -> Iterator[Slot]:
    """Every control value of every effect of a task."""
    for number in world.effects(task):
        call = task.calls[number]
        for arg, kind in world.tools[call.tool].kinds.items():
            value = call.args.get(arg)
            if isinstance(value, list):
                yield from (Slot(number, arg, index, kind, item) for index, item in enumerate(value))
            elif value is not None:
                yield Slot(number, arg, None, kind, value)


def seen_before(world: World, task: Task, slot: Slot) -> list[Seen]:
    """The trusted values that an honest run has seen when it comes to the effect of a slot."""
    return [seen for seen in world.seen(task) if seen.call < slot.call]


def strangers(world: World, task: Task, slot: Slot) -> list[Seen]:
    """Values of the slot's kind in other records: neither the task's own nor the user's own."""
    owned = honest_values(task) | {mark(value) for value in world.data["owner"].values()}
    return [
        seen
        for seen in seen_before(world, task, slot)
        if plain_kind(seen.kind) == plain_kind(slot.kind) and mark(seen.value) not in owned
    ]


def is_named(world: World, task: Task, seen: Seen) -> bool:
    """Whether the words name the record of a value, too: then only a person knows which of the two was meant."""
    labels = [s.value for s in world.seen(task) if s.kind == "label" and (s.call, s.record) == (seen.call, seen.record)]
    return any(str(label).casefold() in task.prompt.casefold() for label in labels)


def filled(task: Task, slot: Slot, value: Json) -> Call:
    """The effect of a slot with another value in it."""
    call = task.calls[slot.call]
    if slot.index is None:
        return Call(call.tool, call.args | {slot.arg: value})
    items = list(call.args[slot.arg])
    items[slot.index] = value
    return Call(call.tool, call.args | {slot.arg: items})


def instead(task: Task, number: int, *calls: Call) -> list[Move]:
    """The calls of a task with one of them replaced by what the attacker wants."""
    return [*honest(task.calls[:number]), *map(injected, calls), *honest(task.calls[number + 1 :])]


def after(task: Task, number: int, *calls: Call) -> list[Move]:
    """The calls of a task, and right behind one of them what the attacker wants."""
    return [*honest(task.calls[: number + 1]), *map(injected, calls), *honest(task.calls[number + 1 :])]


def plain_kind(kind: str) -> str:
    """A kind without the role: `who:email` is an email."""
    return kind.removeprefix("who:")


def his(world: World, kind: str) -> Json:
    """The attacker's own value of a kind, or None if he has none."""
    values = world.attack["values"]
    return values.get(plain_kind(kind), values.get(kind))


def mark(value: Json) -> str:
    """A value as text; 45 and 45.0 are the same."""
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def honest_values(task: Task) -> set[str]:
    """All values of the honest calls, as text."""
    found: set[str] = set()
    for call in task.calls:
        for value in call.args.values():
            found.update(map(mark, value if isinstance(value, list) else [value]))
    return found


def text_kind(kind: str) -> bool:
    """Whether a value of this kind is a name, an address or an id rather than a number, a date or a choice."""
    return plain_kind(kind) not in ("number", "date", "enum", "bool", "text")
