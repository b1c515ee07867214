"""What a run cost: every charge in its journal, with the node, the tool and the model that it belongs to.

Rule 1: a charge is read off the ruling that made it, so the charges of a run add up to what it has used, to the unit.
        What an ended run holds for calls in doubt is charged by its ending, until an outcome settles it.
Rule 2: what a run beneath another one spent is counted there and nowhere else: its parent keeps what starting it cost,
        and what was charged for it beyond what it is known to have used.
Rule 3: a fork did not pay for the turns that it copied; its origin did.
Rule 4: counters and the clock add up; of a gauge the largest is kept. The clock is that of the run that no run in the
        report started: the runs beneath it work in its time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from remit.core.failure import InvariantBroken
from remit.core.journal.arrivals import RunStarted
from remit.core.journal.turn import Turn
from remit.core.limits.budget import GAUGES, Charges, Dimension
from remit.core.record import Record, replace
from remit.core.run.inference import Price
from remit.core.run.manifest import Manifest
from remit.core.work.graph import NodeKind
from remit.kernel.people.clock_stop import UNTOLD, Standstill, standstill_after_child, standstill_after_turn, waited_ms
from remit.observe.fact import Fact, FactKind
from remit.observe.linked_turns import JOURNAL_CHAIN_BROKEN
from remit.observe.reading import Reading
from remit.observe.steps import PerformedStep, StepKind, gauges_of

_FREE = Price(0, 0)
_CLOCK = int(Dimension.WALL_CLOCK_MS)


class Expense(Record):
    """What one command, one visit of a node or the time at a node cost.

    `seq` is the turn that charged it. `gpu_ms` is how long a model worked whose tokens are free: on the user's own hardware.
    Of a run that was started beneath this one, `covered` is what was charged for its spending, in the parent's place.
    """

    seq: int
    node: str
    amounts: Charges
    tool: str = ""
    model: str = ""
    command_id: str = ""
    gpu_ms: int = 0
    child_id: str = ""
    covered: Charges = ()


class RunCost(Record):
    """A run and everything it was charged for, oldest first; what it copied from its origin stands apart."""

    run_id: str
    tenant_id: str
    expenses: tuple[Expense, ...]
    copied: tuple[Expense, ...] = ()

    @property
    def used(self) -> dict[int, int]:
        """What it was charged by itself, for the runs beneath it too."""
        return totalled(expense.amounts for expense in self.expenses)


def run_cost(turns: Sequence[Turn]) -> RunCost:
    """What the turns of a run, from its first one on, say that it cost."""
    began = turns[0].arrival if turns else None
    if not isinstance(began, RunStarted):
        raise InvariantBroken(
            JOURNAL_CHAIN_BROKEN, "what a run cost is read from its first turn on, and that is missing"
        )
    manifest = began.manifest
    copied_until = -1 if manifest.forked_from is None else manifest.forked_from.seq
    every = list(_expenses(manifest, turns))
    return RunCost(
        run_id=manifest.run_id,
        tenant_id=manifest.request.tenant_id,
        expenses=tuple(expense for expense in every if expense.seq > copied_until),
        copied=tuple(expense for expense in every if expense.seq <= copied_until),
    )


def own_amounts(expense: Expense, used_beneath: Mapping[int, int]) -> Charges:
    """The amounts of an expense that its own run is charged with: all, less what the child run that it started has used."""
    if not expense.child_id:
        return expense.amounts
    covered = dict(expense.covered)
    left = ((d, amount - min(covered.get(d, 0), used_beneath.get(d, 0))) for d, amount in expense.amounts)
    return tuple((dimension, amount) for dimension, amount in left if amount)


def totalled(every: Iterable[Charges]) -> dict[int, int]:
    """The sum of these charges per dimension."""
    total: dict[int, int] = {}
    for amounts in every:
        add_amounts(total, amounts)
    return total


def add_amounts(total: dict[int, int], amounts: Charges) -> None:
    """Add amounts to a total; of a gauge the larger one stays."""
    for dimension, amount in amounts:
        before = total.get(dimension, 0)
        total[dimension] = max(before, amount) if dimension in GAUGES else before + amount


def _expenses(manifest: Manifest, turns: Iterable[Turn]) -> Iterator[Expense]:
    """Every expense, in the order of the turns that charge them."""
    tariff, clock, reading = _Tariff(manifest), _Clock(), Reading()
    for turn in turns:
        if worked_ms := clock.turned(turn.at_ms):
            yield Expense(turn.seq, reading.node, ((_CLOCK, worked_ms),))
        facts = reading.take(turn)
        for fact in facts:
            clock.take(fact)
            yield from tariff.expenses(fact)
        if worked_ms := clock.looked_at(turn.at_ms, facts):
            yield Expense(turn.seq, reading.node, ((_CLOCK, worked_ms),))
    if reading.ended is not None:
        for step in reading.doubted():
            yield Expense(reading.ended_seq, step.node, step.reserved, step.tool, command_id=step.id)


class _Clock:
    """The clock of a run, which stands while people are waited for; what was waited in a standstill is known when it is over."""

    def __init__(self) -> None:
        # When the run began, later by all the time that it worked; the last turn; why the clock stands.
        self._counted_ms = self._turned_ms = -1
        self._asking: set[str] = set()
        self._held: set[str] = set()
        self._standstill: Standstill | None = None
        # How long it had stood as each child was started.
        self._stood_before: dict[str, int] = {}
        self._is_paused = self._has_ended = False

    def turned(self, at_ms: int) -> int:
        """Move the clock to a turn; gives how long the run has worked since the turn before."""
        before_ms, self._turned_ms = self._turned_ms, at_ms
        if before_ms < 0:
            self._counted_ms = at_ms
        is_standing = self._has_ended or self._asking or self._is_paused or self._held
        return 0 if before_ms < 0 or is_standing else self._worked(at_ms - before_ms)

    def take(self, fact: Fact) -> None:
        """Hear what makes it stand or go on."""
        key = fact.step.id
        match fact.kind:
            case FactKind.BEGUN if fact.step.kind is StepKind.QUESTION:
                self._asking.add(key)
            case FactKind.HELD:
                self._held.add(key)
            case FactKind.SETTLED | FactKind.RELEASED:
                if key in self._held and self._standstill is not None:
                    is_told = fact.kind is FactKind.SETTLED
                    self._standstill = standstill_after_child(
                        self._standstill, self._waited_beyond(fact) if is_told else UNTOLD
                    )
                self._asking.discard(key)
                self._held.discard(key)
            case FactKind.PAUSED | FactKind.RESUMED:
                self._is_paused = fact.kind is FactKind.PAUSED
            case FactKind.ENDED:
                self._has_ended = True

    def looked_at(self, at_ms: int, facts: Iterable[Fact]) -> int:
        """Follow the standstill of a turn; gives what of it was no waiting, once it is over."""
        standstill, self._standstill = self._standstill, None
        worked_ms = 0
        if self._held:
            self._standstill = standstill_after_turn(standstill, at_ms, len(self._asking) + self._is_paused)
        elif standstill is not None:
            worked_ms = self._worked(at_ms - standstill.since_ms - waited_ms(standstill, at_ms))
        for fact in facts:
            if fact.kind in (FactKind.BEGUN, FactKind.SENT) and fact.step.kind is StepKind.CHILD:
                self._stood_before[fact.step.id] = self._stood_ms(at_ms)
        return worked_ms

    def _worked(self, worked_ms: int) -> int:
        self._counted_ms += worked_ms
        return worked_ms

    def _stood_ms(self, at_ms: int) -> int:
        """How long it has stood so far, not counting a standstill that goes on."""
        return (at_ms if self._standstill is None else self._standstill.since_ms) - self._counted_ms

    def _waited_beyond(self, fact: Fact) -> int:
        """How long a child says it waited beyond what the clock has stood for since it was started."""
        step = fact.step
        if step.stood_ms == UNTOLD:
            return UNTOLD
        return max(step.stood_ms - (self._stood_ms(fact.at_ms) - self._stood_before[step.id]), 0)


class _Tariff:
    """What is charged for a fact of a run."""

    def __init__(self, manifest: Manifest) -> None:
        self._free = {model.name for model in manifest.models if model.price == _FREE}
        self._terminals = {node.name for node in manifest.graph.nodes if node.kind is NodeKind.TERMINAL}
        self._step: Charges = ((int(Dimension.STEPS), 1),)
        if manifest.depth:
            self._step = (*self._step, (int(Dimension.DEPTH), manifest.depth))

    def expenses(self, fact: Fact) -> Iterator[Expense]:
        """The expenses that a fact charges, if it charges any."""
        step = fact.step
        if fact.kind is FactKind.ENTERED and step.name not in self._terminals:
            yield Expense(fact.seq, step.name, self._step)
        elif fact.kind is FactKind.SETTLED:
            plain = Expense(fact.seq, step.node, fact.charged, step.tool, command_id=step.id)
            if step.kind is StepKind.MODEL:
                yield self._of_model(step, plain)
            elif step.kind is StepKind.CHILD:
                yield _of_child(step, plain)
            elif step.tool or fact.charged:
                yield plain

    def _of_model(self, step: PerformedStep, plain: Expense) -> Expense:
        """What a model call cost, under the name of the model that answered."""
        amounts = (*plain.amounts, *gauges_of(step, plain.amounts))
        gpu_ms = step.usage.duration_ms if step.name in self._free else 0
        name = step.model or step.name
        return Expense(plain.seq, plain.node, amounts, model=name, command_id=step.id, gpu_ms=gpu_ms)


def _of_child(step: PerformedStep, plain: Expense) -> Expense:
    """What a run beneath cost its parent: what starting it did, and what was charged for what it spent."""
    lease = dict(step.lease)
    starting = {dimension: amount - lease.get(dimension, 0) for dimension, amount in step.reserved}
    spent = ((dimension, amount - starting.get(dimension, 0)) for dimension, amount in plain.amounts)
    covered = tuple((dimension, amount) for dimension, amount in spent if amount > 0)
    return replace(plain, child_id=step.run_id, covered=covered)
