"""What a run cost: every charge in its journal, with the node, the tool and the model that it belongs to.

Rule 1: a charge is read off the ruling that made it, so the charges of a run add up to what it has used, to the unit.
Rule 2: what a run beneath another one spent is counted there and nowhere else: its parent keeps what starting it cost,
        and what was charged for it beyond what it is known to have used.
Rule 3: a fork did not pay for the turns that it copied; its origin did.
Rule 4: counters and the clock add up; of a gauge the largest is kept. The clock is that of the run that nobody in the
        report started: the runs beneath it work in its time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from remit.core.arrivals import ChildEnded, ModelAnswered, ModelFailed, RunStarted
from remit.core.budget import GAUGES, Charges, Dimension
from remit.core.commands import COMMANDS, AskHuman, CallModel, CallTool, Command, ReconcileTool, StartChild
from remit.core.events import Turn
from remit.core.failure import InvariantBroken
from remit.core.graph import NodeKind
from remit.core.inference import Price
from remit.core.manifest import Manifest
from remit.core.record import Record
from remit.core.rulings import (
    AddendumNoted,
    CallSettled,
    ChildHeld,
    CommandSettled,
    NodeEntered,
    OutcomeDoubted,
    QuestionSettled,
    RunEnded,
    RunPaused,
    RunResumed,
)
from remit.kernel.hold import UNTOLD, Hold, holding, told, waited_ms
from remit.observe.history import JOURNAL_CHAIN_BROKEN

_FREE = Price(0, 0)
_CLOCK = int(Dimension.WALL_CLOCK_MS)


class Expense(Record):
    """What one command, one visit of a node or the time at a node cost.

    `seq` is the turn that charged it. `gpu_ms` is how long a model worked whose tokens are free: one's own hardware.
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
    every = list(_Reading(manifest).expenses(turns))
    return RunCost(
        run_id=manifest.run_id,
        tenant_id=manifest.request.tenant_id,
        expenses=tuple(expense for expense in every if expense.seq > copied_until),
        copied=tuple(expense for expense in every if expense.seq <= copied_until),
    )


def own_amounts(expense: Expense, used_beneath: Mapping[int, int]) -> Charges:
    """What an expense leaves with its own run, once what the run that it started has used is counted there."""
    if not expense.child_id:
        return expense.amounts
    covered = dict(expense.covered)
    left = ((d, amount - min(covered.get(d, 0), used_beneath.get(d, 0))) for d, amount in expense.amounts)
    return tuple((dimension, amount) for dimension, amount in left if amount)


def totalled(every: Iterable[Charges]) -> dict[int, int]:
    """Amounts by their dimension, all together."""
    total: dict[int, int] = {}
    for amounts in every:
        add_amounts(total, amounts)
    return total


def add_amounts(total: dict[int, int], amounts: Charges) -> None:
    """Add amounts to a total; of a gauge the larger one stays."""
    for dimension, amount in amounts:
        before = total.get(dimension, 0)
        total[dimension] = max(before, amount) if dimension in GAUGES else before + amount


class _Reading:
    """A run as far as it was read: what is open and where it was ordered, where the run stands, and its clock."""

    def __init__(self, manifest: Manifest) -> None:
        self._free = {model.name for model in manifest.models if model.price == _FREE}
        self._terminals = {node.name for node in manifest.graph.nodes if node.kind is NodeKind.TERMINAL}
        self._step: Charges = ((int(Dimension.STEPS), 1),)
        if manifest.depth:
            self._step = (*self._step, (int(Dimension.DEPTH), manifest.depth))
        self._open: dict[str, tuple[Command, str]] = {}
        self._doubted: set[str] = set()
        self._node = ""
        self._asking: set[str] = set()
        self._held: set[str] = set()
        self._hold: Hold | None = None
        # When it began, later by all the time that it worked; and how long its clock had stood as each child was started.
        self._counted_ms = 0
        self._stood_before: dict[str, int] = {}
        self._is_paused = self._has_ended = False

    def expenses(self, turns: Iterable[Turn]) -> Iterator[Expense]:
        """Every expense, in the order of the turns that charge them."""
        before_ms: int | None = None
        for turn in turns:
            if before_ms is None:
                self._counted_ms = turn.at_ms
            elif turn.at_ms > before_ms and self._is_running:
                yield self._timed(turn, turn.at_ms - before_ms)
            before_ms = turn.at_ms
            for decision in turn.decisions:
                if type(decision) in COMMANDS:
                    self._order(decision)  # type: ignore[arg-type]  # the set holds exactly the commands
                elif isinstance(decision, NodeEntered):
                    self._node = decision.node
                    if decision.node not in self._terminals:
                        yield Expense(turn.seq, decision.node, self._step)
                else:
                    yield from self._charge(turn, decision)
            yield from self._look_at_the_hold(turn)

    def _timed(self, turn: Turn, worked_ms: int) -> Expense:
        self._counted_ms += worked_ms
        return Expense(turn.seq, self._node, ((_CLOCK, worked_ms),))

    def _look_at_the_hold(self, turn: Turn) -> Iterator[Expense]:
        """What of a hold was no waiting, once it is over."""
        hold, self._hold = self._hold, None
        if self._held:
            self._hold = holding(hold, turn.at_ms, len(self._asking) + self._is_paused)
        elif hold is not None and (worked_ms := turn.at_ms - hold.since_ms - waited_ms(hold, turn.at_ms)):
            yield self._timed(turn, worked_ms)
        for child in turn.decisions:
            if isinstance(child, StartChild):
                self._stood_before[child.id] = self._stood_ms(turn.at_ms)

    def _stood_ms(self, at_ms: int) -> int:
        """How long the clock has stood so far, not counting a hold that goes on."""
        return (at_ms if self._hold is None else self._hold.since_ms) - self._counted_ms

    def _waited_beyond(self, turn: Turn, child: str) -> int:
        """How long a child says it waited beyond what the clock has stood for since it was started.

        One that was lost, or is cut off as the run ends, says nothing.
        """
        arrival = turn.arrival
        if not isinstance(arrival, ChildEnded) or arrival.command_id != child or arrival.stood_ms == UNTOLD:
            return UNTOLD
        return max(arrival.stood_ms - (self._stood_ms(turn.at_ms) - self._stood_before[child]), 0)

    @property
    def _is_running(self) -> bool:
        return not (self._has_ended or self._asking or self._is_paused or self._held)

    def _order(self, command: Command) -> None:
        self._open[command.id] = (command, self._node)
        if isinstance(command, AskHuman):
            self._asking.add(command.id)

    def _charge(self, turn: Turn, ruling: object) -> Iterator[Expense]:
        """What a ruling charges, if it does; whatever else it says about what is open or waited for is kept."""
        match ruling:
            case CommandSettled() | CallSettled():
                yield from self._settle(turn, ruling.command_id, ruling.charged)
            case QuestionSettled():
                self._asking.discard(ruling.command_id)
                yield from self._settle_as_reserved(turn, ruling.command_id)
            case OutcomeDoubted():
                self._doubted.add(ruling.command_id)
            case AddendumNoted() if ruling.about in self._doubted:
                yield from self._settle_as_reserved(turn, ruling.about)
            case ChildHeld():
                self._held.add(ruling.command_id)
            case RunPaused():
                self._is_paused = True
            case RunResumed():
                self._is_paused = False
            case RunEnded():
                self._has_ended = True

    def _settle_as_reserved(self, turn: Turn, command_id: str) -> Iterator[Expense]:
        if command_id in self._open:
            yield from self._settle(turn, command_id, self._open[command_id][0].reserved)

    def _settle(self, turn: Turn, command_id: str, charged: Charges) -> Iterator[Expense]:
        self._doubted.discard(command_id)
        if command_id in self._held and self._hold is not None:
            self._hold = told(self._hold, self._waited_beyond(turn, command_id))
        self._held.discard(command_id)
        command, node = self._open.pop(command_id, (None, self._node))
        plain = Expense(turn.seq, node, charged, command_id=command_id)
        match command:
            case CallModel():
                yield self._of_model(turn, command, plain)
            case StartChild():
                yield _of_child(command, plain)
            case CallTool() | ReconcileTool():
                yield Expense(turn.seq, node, charged, command.tool, command_id=command_id)
            case AskHuman(packet=packet) if packet is not None:
                yield Expense(turn.seq, node, charged, packet.call.tool, command_id=command_id)
            case _ if charged:
                yield plain

    def _of_model(self, turn: Turn, command: CallModel, plain: Expense) -> Expense:
        """What a model call cost, under the name of the model that answered; what it was shown is a gauge, too."""
        arrival, name, gpu_ms = turn.arrival, command.model, 0
        if isinstance(arrival, ModelAnswered | ModelFailed) and arrival.command_id == command.id:
            gpu_ms = arrival.usage.duration_ms if command.model in self._free else 0
            name = (arrival.model if isinstance(arrival, ModelAnswered) else "") or name
        shown = dict(plain.amounts).get(int(Dimension.INPUT_TOKENS), 0)
        gauges = ((int(Dimension.RETRIES), command.attempt - 1), (int(Dimension.CONTEXT_TOKENS), shown))
        amounts = (*plain.amounts, *(gauge for gauge in gauges if gauge[1]))
        return Expense(plain.seq, plain.node, amounts, model=name, command_id=command.id, gpu_ms=gpu_ms)


def _of_child(command: StartChild, plain: Expense) -> Expense:
    """What a run beneath cost its parent: what starting it did, and what was charged for what it spent."""
    lease = dict(command.lease)
    starting = {dimension: amount - lease.get(dimension, 0) for dimension, amount in command.reserved}
    spent = ((dimension, amount - starting.get(dimension, 0)) for dimension, amount in plain.amounts)
    covered = tuple((dimension, amount) for dimension, amount in spent if amount > 0)
    return Expense(
        plain.seq,
        plain.node,
        plain.amounts,
        command.tool,
        command_id=command.id,
        child_id=command.run_id,
        covered=covered,
    )
