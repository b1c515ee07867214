"""A report of what runs cost, by tenant, day, run, node, tool or model, at prices that no journal knows.

Rule 1: a report is built one run at a time, and of a run nothing is kept but sums: thousands take the room of one.
Rule 2: a run stands for everything beneath it, so that its row says what its budget says; where each run has a row of
        its own, the row says what that run alone spent. Either way the rows add up to the total.
Rule 3: what a run beneath spent beyond what its parent was charged, because a person released it, is counted, too.
Rule 4: what failed was paid for as well: the cost of a success is that of all runs over those that succeeded.
Rule 5: money that a run was charged (tokens, tools that declare what a call costs) stands in its journal, at the prices
        that its manifest pinned; nothing here changes it. What has no price costs nothing.
Rule 6: every amount is a whole number of micro-dollars, and a fraction is rounded up where it is made: call by call.
        So the parts of a report always add up to its total.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum

from remit.core.failure import Ending
from remit.core.journal.storage import RunEntry
from remit.core.journal.turn import Turn
from remit.core.limits.budget import Charges, Dimension
from remit.core.record import Record
from remit.observe.cost.charges import Expense, RunCost, add_amounts, own_amounts, run_cost

_CLOCK = int(Dimension.WALL_CLOCK_MS)
_TOKENS = (int(Dimension.INPUT_TOKENS), int(Dimension.OUTPUT_TOKENS))
# A million dollars for one call, second or review: more is a mistaken unit.
PRICE_MICROUSD_MAX = 1_000_000 * 1_000_000
_MS_PER_S = 1000


class Prices(Record):
    """What one of each costs, in micro-dollars, beside the money that the journal has."""

    tool_call_microusd: int = 0
    external_api_call_microusd: int = 0
    gpu_second_microusd: int = 0
    human_review_microusd: int = 0


NO_PRICES = Prices()


def cost_microusd(amounts: Charges | Mapping[int, int], gpu_ms: int, prices: Prices) -> int:
    """What was charged in money, and what else was used at its price."""
    used = dict(amounts)
    counted = (
        (Dimension.INFERENCE_COST_MICROUSD, 1),
        (Dimension.TOOL_CALLS, prices.tool_call_microusd),
        (Dimension.EXTERNAL_API_CALLS, prices.external_api_call_microusd),
        (Dimension.HUMAN_REVIEWS, prices.human_review_microusd),
    )
    priced = sum(used.get(int(dimension), 0) * price for dimension, price in counted)
    return priced + -(-gpu_ms * prices.gpu_second_microusd // _MS_PER_S)


def parse_prices(text: str, source_name: str) -> Prices:
    """The prices in a text of YAML or JSON; the name stands for it in errors, which say the line and what would be right."""
    # The parser is loaded only where there are prices to read.
    from remit.core.schema.strict_yaml import YamlFault, block_in, parse_yaml, value_in_error

    document = parse_yaml(text, source_name)
    block = block_in(document, document.value, Prices.__struct_fields__, ())
    for name, price in block.items():
        # To Python a bool is a number; it is no price.
        if type(price) is not int or not 0 <= price <= PRICE_MICROUSD_MAX:
            wanted = f"a whole number of micro-dollars from 0 to {PRICE_MICROUSD_MAX}, where 1000000 is one dollar"
            document.reject(YamlFault.VALUE_INVALID, f"{name} is {value_in_error(price)} and must be {wanted}", (name,))
    return Prices(**block)


class Grouping(StrEnum):
    """What the rows of a report stand for. A run has what is beneath it in its row, unless each run has a row of its own."""

    TENANT = "tenant"
    DAY = "day"
    RUN = "run"
    EACH_RUN = "each-run"
    NODE = "node"
    TOOL = "tool"
    MODEL = "model"


# Those that say whose the money was, and not what it went to.
_WHOSE = frozenset({Grouping.TENANT, Grouping.DAY, Grouping.RUN, Grouping.EACH_RUN})
_NOTHING = Expense(0, "", ())


class Row(Record):
    """What belongs to one name; an empty one stands for whatever has none, as a model call has no tool.

    `runs` counts the runs that had a part in it.
    """

    name: str
    runs: int = 0
    used: Charges = ()
    gpu_ms: int = 0
    cost_microusd: int = 0
    # How many of the runs reached a part of what was wanted.
    in_part: int = 0


class CostReport(Record):
    """The rows, the dearest first, and the total. `roots` are the runs that no run in the report started."""

    by: Grouping
    rows: tuple[Row, ...]
    total: Row
    roots: int = 0
    succeeded: int = 0
    # Runs that began as a copy of another one, and are not charged for what they copied.
    forks: int = 0
    # Runs that could not be read, and are in no sum.
    unread: tuple[str, ...] = ()

    @property
    def cost_per_success_microusd(self) -> int | None:
        """What a success cost, everything that failed included; None where nothing succeeded."""
        return -(-self.total.cost_microusd // self.succeeded) if self.succeeded else None


class _Sum:
    """A row while it grows."""

    __slots__ = ("cost_microusd", "gpu_ms", "in_part", "runs", "used")

    def __init__(self) -> None:
        self.used: dict[int, int] = {}
        self.gpu_ms = self.cost_microusd = self.runs = self.in_part = 0

    def add(self, amounts: Charges, gpu_ms: int, cost: int) -> None:
        """Take in an expense."""
        add_amounts(self.used, amounts)
        self.gpu_ms += gpu_ms
        self.cost_microusd += cost

    def row(self, name: str) -> Row:
        """It as it stands."""
        used = tuple(sorted((dimension, amount) for dimension, amount in self.used.items() if amount))
        return Row(
            name=name,
            runs=self.runs,
            used=used,
            gpu_ms=self.gpu_ms,
            cost_microusd=self.cost_microusd,
            in_part=self.in_part,
        )


class CostBook:
    """Adds up what runs cost, tree by tree, the deepest run of each first."""

    def __init__(self, by: Grouping, prices: Prices = NO_PRICES) -> None:
        self._by = by
        self._prices = prices
        self._sums: dict[str, _Sum] = {}
        self._total = _Sum()
        self._roots = self._succeeded = self._forks = 0
        # What the runs used whose parent in the report is still to come.
        self._beneath: dict[str, dict[int, int]] = {}
        self._unread: list[str] = []

    def leave_out(self, run_id: str) -> None:
        """Name a run that cannot be read."""
        self._unread.append(run_id)

    def add(self, entry: RunEntry, turns: Sequence[Turn], root: RunEntry) -> None:
        """Take in one run of the tree of `root`, after every run beneath it."""
        cost = run_cost(turns)
        is_root = entry.run_id == root.run_id
        # A run that cost nothing has its row as well; a node, a tool or a model is there because it was charged for.
        touched = {self._name(_NOTHING, cost, root)} if self._by in _WHOSE else set()
        for expense in cost.expenses:
            used_beneath = self._beneath.pop(expense.child_id, {}) if expense.child_id else {}
            amounts = own_amounts(expense, used_beneath)
            if not is_root:
                amounts = tuple(pair for pair in amounts if pair[0] != _CLOCK)
            name = self._name(expense, cost, root)
            touched.add(name)
            self._add(name, amounts, expense.gpu_ms)
        self._count(touched, entry, is_root=is_root)
        self._forks += bool(cost.copied)
        if not is_root:
            self._beneath[entry.run_id] = cost.used

    def report(self) -> CostReport:
        """The report of all that was added up so far."""
        rows = sorted((total.row(name) for name, total in self._sums.items()), key=_dearest_first)
        return CostReport(
            by=self._by,
            rows=tuple(rows),
            total=self._total.row(""),
            roots=self._roots,
            succeeded=self._succeeded,
            forks=self._forks,
            unread=tuple(self._unread),
        )

    def _add(self, name: str, amounts: Charges, gpu_ms: int) -> None:
        cost = cost_microusd(amounts, gpu_ms, self._prices)
        self._sums.setdefault(name, _Sum()).add(amounts, gpu_ms, cost)
        self._total.add(amounts, gpu_ms, cost)

    def _count(self, touched: Iterable[str], entry: RunEntry, *, is_root: bool) -> None:
        is_in_part = entry.ending == Ending.PARTIAL_SUCCESS
        for each in (*(self._sums.setdefault(name, _Sum()) for name in touched), self._total):
            each.runs += 1
            each.in_part += is_in_part
        if is_root:
            self._roots += 1
            self._succeeded += entry.ending == Ending.SUCCESS
            # A child that was not settled is subtracted from no run.
            self._beneath.clear()

    def _name(self, expense: Expense, cost: RunCost, root: RunEntry) -> str:
        match self._by:
            case Grouping.TENANT:
                return cost.tenant_id
            case Grouping.DAY:
                # Of the run that no run in the report started, so that a tree stands on one day.
                return datetime.fromtimestamp(root.listing.started_at_ms / _MS_PER_S, UTC).date().isoformat()
            case Grouping.RUN:
                return root.run_id
            case Grouping.EACH_RUN:
                return cost.run_id
            case Grouping.NODE:
                return expense.node
            case Grouping.TOOL:
                return expense.tool
            case Grouping.MODEL:
                return expense.model


def trees_of(entries: Iterable[RunEntry], wanted: Collection[str] = ()) -> list[list[RunEntry]]:
    """The runs in trees: each tree is a list with its root last, and every run stands behind its children.

    With `wanted`, the trees of those runs alone; a wanted run beneath another wanted run is part of that one's tree.
    """
    known = {entry.run_id: entry for entry in entries}
    beneath: dict[str, list[RunEntry]] = {}
    roots: list[RunEntry] = []
    for entry in known.values():
        parent_id = entry.listing.parent_id
        if parent_id in known:
            beneath.setdefault(parent_id, []).append(entry)
        elif not wanted:
            roots.append(entry)
    # One that was deleted a moment ago is no longer listed.
    named = (known[run_id] for run_id in dict.fromkeys(wanted) if run_id in known)
    roots += [entry for entry in named if not _is_beneath(entry, known, wanted)]
    trees: list[list[RunEntry]] = []
    for root in roots:
        tree = [root]
        for entry in tree:
            tree.extend(beneath.get(entry.run_id, ()))
        trees.append(tree[::-1])
    return trees


def _is_beneath(entry: RunEntry, known: dict[str, RunEntry], wanted: Collection[str]) -> bool:
    while (parent_id := entry.listing.parent_id) in known:
        if parent_id in wanted:
            return True
        entry = known[parent_id]
    return False


def _dearest_first(row: Row) -> tuple[int, int, str]:
    used = dict(row.used)
    return -row.cost_microusd, -sum(used.get(dimension, 0) for dimension in _TOKENS), row.name
