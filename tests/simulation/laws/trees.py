"""Laws of trees: what a run and everything beneath it really spent, summed over all their journals.

Rule 1: only leaves spend: a model that was asked, a tool that was called, a node that was entered, a person who was asked.
        What a parent was charged for a child is the kernel's word and is not counted; the child's own journal is.
Rule 2: what a model reported is taken from its arrival; what was not reported counts as all that was reserved for it.
Rule 3: what the world used beyond a reservation, although it was told not to, is kept apart: no kernel can undo it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from remit.core.journal import arrivals, rulings
from remit.core.journal.arrivals import Arrival
from remit.core.journal.commands import COMMANDS, CallModel, Command, StartChild
from remit.core.limits.budget import COUNTERS, DIMENSIONS, FIELDS, Charges, Dimension
from remit.core.run.usage import TokenUsage
from remit.kernel.state import pinned
from remit.testing.runs import SimulatedRun
from remit.testing.world import SimulatedWorld

# A run by its id, or None when it never began.
Read = Callable[[str], SimulatedRun | None]

_MICRO = 1_000_000


class Branch(NamedTuple):
    """A run and everything beneath it: what it was given, what they all spent, what people released, what went beyond."""

    run: SimulatedRun
    given: tuple[int, ...]
    spent: tuple[int, ...]
    released: tuple[int, ...]
    beyond: tuple[int, ...]
    beneath: tuple["Branch", ...]

    def runs(self) -> Iterator[SimulatedRun]:
        """Every run of the branch, parents first."""
        yield self.run
        for branch in self.beneath:
            yield from branch.runs()

    def branches(self) -> Iterator["Branch"]:
        """The branch itself and every one that grows out of it."""
        yield self
        for branch in self.beneath:
            yield from branch.branches()


class OwnBooks:
    """What one run spent itself, its children left out, kept from its turns."""

    def __init__(self, run: SimulatedRun) -> None:
        manifest = pinned(run.state)
        self._terminals = frozenset(node.name for node in manifest.graph.nodes if node.ending is not None)
        self._prices = {model.name: model.price for model in manifest.models}
        self._open: dict[str, Command] = {}
        self.spent, self.released, self.beyond = ([0] * DIMENSIONS for _ in range(3))
        for turn in run.turns:
            for decision in turn.decisions:
                self._enter(decision, turn.arrival)
        # What is open may cost all that was reserved for it, also when its run has ended and its outcome is unknown.
        for command in self._open.values():
            self._spend(_own_part(command))

    def _enter(self, decision: object, arrival: Arrival) -> None:
        if type(decision) in COMMANDS:
            command: Command = decision  # type: ignore[assignment]  # the set holds exactly the commands
            self._open[command.id] = command
        elif isinstance(decision, rulings.CommandSettled | rulings.CallSettled):
            self._settle(self._open.pop(decision.command_id), arrival)
        elif isinstance(decision, rulings.QuestionSettled):
            self._spend(self._open.pop(decision.command_id).reserved)
            for dimension, amount in decision.releases:
                self.released[dimension] += amount
        elif isinstance(decision, rulings.CallNoted):
            for dimension, amount in decision.releases:
                self.released[dimension] += amount
        elif isinstance(decision, rulings.NodeEntered) and decision.node not in self._terminals:
            self.spent[Dimension.STEPS] += 1

    def _settle(self, command: Command, arrival: Arrival) -> None:
        if isinstance(arrival, arrivals.RunForked):
            # What the origin had asked of its model is the origin's to pay; the fork has never sent it.
            return
        cost = self._reported(command, arrival) if isinstance(command, CallModel) else None
        if cost is None:
            self._spend(_own_part(command))
            return
        self._spend(cost)
        reserved = dict(command.reserved)
        for dimension, amount in cost:
            self.beyond[dimension] += max(amount - reserved.get(dimension, 0), 0)

    def _reported(self, command: CallModel, arrival: Arrival) -> Charges | None:
        """What a model call cost by its own report; None when it reported nothing and may have cost all."""
        if not isinstance(arrival, arrivals.ModelAnswered | arrivals.ModelFailed) or arrival.command_id != command.id:
            return None
        if isinstance(arrival, arrivals.ModelFailed) and (arrival.was_cut or not arrival.usage.total_tokens):
            return None if arrival.was_cut else ()
        return self._priced(command, arrival.usage) if arrival.usage.total_tokens else None

    def _priced(self, command: CallModel, usage: TokenUsage) -> Charges:
        given, made, price = (
            usage.prompt_tokens,
            usage.reasoning_tokens + usage.output_tokens,
            self._prices[command.model],
        )
        if price is None:
            # It is asked where money is not capped, and no money is counted for it.
            return (Dimension.INPUT_TOKENS, given), (Dimension.OUTPUT_TOKENS, made)
        cost = given * price.input_microusd_per_mtok + made * price.output_microusd_per_mtok
        return (
            (Dimension.INPUT_TOKENS, given),
            (Dimension.OUTPUT_TOKENS, made),
            (Dimension.INFERENCE_COST_MICROUSD, -(-cost // _MICRO)),
        )

    def _spend(self, charges: Charges) -> None:
        for dimension, amount in charges:
            self.spent[dimension] += amount


def _own_part(command: Command) -> Charges:
    """What a command may cost its own run; of a child that is the child itself and the call that asked for it."""
    if not isinstance(command, StartChild):
        return command.reserved
    lease = dict(command.lease)
    tool_calls = ((int(Dimension.TOOL_CALLS), 1),) if command.call_id else ()
    asked = tuple((d, amount - lease.get(d, 0)) for d, amount in command.reserved if d not in _OF_A_CHILD)
    return ((int(Dimension.CHILD_RUNS), 1), *tool_calls, *((d, amount) for d, amount in asked if amount > 0))


# What starting a child costs by itself, whatever the kernel reserved for it.
_OF_A_CHILD = (Dimension.CHILD_RUNS, Dimension.TOOL_CALLS)


def tree_of(root: SimulatedRun, read: Read) -> Branch:
    """A run with all that was really started beneath it. It was given its caps, and each of the others its lease."""
    return _branch(root, pinned(root.state).caps, read)


def _branch(run: SimulatedRun, given: Sequence[int], read: Read) -> Branch:
    books = OwnBooks(run)
    started = ((command.lease, read(command.run_id)) for command in run.all(StartChild))
    beneath = tuple(_branch(child, _vector(lease), read) for lease, child in started if child is not None)
    spent = _summed(books.spent, (branch.spent for branch in beneath))
    released = _summed(books.released, (branch.released for branch in beneath))
    beyond = _summed(books.beyond, (branch.beyond for branch in beneath))
    return Branch(run, tuple(given), spent, released, beyond, beneath)


def _vector(charges: Charges) -> list[int]:
    amounts = dict(charges)
    return [amounts.get(dimension, 0) for dimension in range(DIMENSIONS)]


def _summed(own: Sequence[int], others: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(own, *others, strict=True)))


def overshot(tree: Branch) -> Iterator[str]:
    """Where a tree, or any branch of it, spent more than its first run was given and people released in it."""
    for branch in tree.branches():
        for dimension in COUNTERS:
            allowed = branch.given[dimension] + branch.released[dimension]
            if (spent := branch.spent[dimension] - branch.beyond[dimension]) > allowed:
                count, name = sum(1 for _ in branch.runs()), FIELDS[dimension]
                yield f"{count} runs from {branch.run.run_id} on spent {spent} {name} of {allowed}"


def above_the_gauges(tree: Branch) -> Iterator[str]:
    """Where a run of a tree goes deeper, shows a model more or tries it more often than its root may."""
    caps = pinned(tree.run.state).caps
    for run in tree.runs():
        if (depth := pinned(run.state).depth) > max(caps[Dimension.DEPTH], pinned(tree.run.state).depth):
            yield f"run {run.run_id} is at depth {depth} of {caps[Dimension.DEPTH]}"
        context = caps[Dimension.CONTEXT_TOKENS] + OwnBooks(run).released[Dimension.CONTEXT_TOKENS]
        for command in run.all(CallModel):
            shown = dict(command.reserved).get(Dimension.INPUT_TOKENS, 0)
            if shown > context:
                yield f"run {run.run_id} shows a model {shown} tokens of {context}"
            if command.attempt - 1 > caps[Dimension.RETRIES]:
                yield f"run {run.run_id} is at attempt {command.attempt} with {caps[Dimension.RETRIES]} retries"


def no_tree_is_overshot(world: SimulatedWorld, run: SimulatedRun) -> Iterator[str]:
    """All runs of a tree together never spend more than the root was given and people released to any of them."""
    if pinned(run.state).parent is not None:
        return
    known = frozenset(world.run_ids())
    tree = tree_of(run, lambda run_id: world.run(run_id) if run_id in known else None)
    yield from overshot(tree)
    yield from above_the_gauges(tree)
