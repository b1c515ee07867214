"""Leases of orders: which of those that a run lent to one beneath it are used up, and when a list of them comes too late.

Rule 1: an order is used up when a call was proposed that equals it, whatever became of that; every other one comes back.
Rule 2: where a child does not say which these are, an order is used up whose tool it used or may have used.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from remit.core.journal.arrivals import ChildEnded
from remit.core.journal.commands import StartChild
from remit.core.journal.proposed_call import order_of
from remit.core.journal.turn import Turn
from remit.core.limits.tools import Effect
from remit.core.work.orders import ORDERS_MAX, LeasedOrders, ways_of
from remit.kernel.results.proven_effects import LEFT_MAX
from remit.orchestrate.facts.decided_calls import calls_in

if TYPE_CHECKING:
    from remit.provenance.gate import Gate

# Before the numbers of orders among what the end of a child says; no judge is leased any.
_USED_UP = "orders used up"


def said_used(orders: tuple[int, ...]) -> tuple[str, ...]:
    """The orders that a child has used up, as its end says them."""
    return (_USED_UP, *map(str, sorted(set(orders))[:ORDERS_MAX]))


def told_used(ended: ChildEnded) -> tuple[int, ...] | None:
    """The orders that a child says it has used up; None where it was leased none, or says nothing of them."""
    return tuple(map(int, ended.problems[1:])) if ended.problems[:1] == (_USED_UP,) else None


def used_by(ended: ChildEnded, leased: LeasedOrders) -> Iterator[int]:
    """The numbers of the leased orders that a child, as it says at its end, has used up."""
    if (said := told_used(ended)) is not None:
        yield from said
        return
    tools = {tool for tool, _ in (*ended.observed, *ended.left)}
    for number, order in zip(leased.numbers, leased.orders, strict=True):
        if len(ended.left) >= LEFT_MAX or not tools.isdisjoint(way.tool for way in ways_of(order)):
            yield number


def orders_used(leased: LeasedOrders, turns: Iterable[Turn]) -> tuple[int, ...]:
    """The leased orders that a run and those beneath it have used up in these turns; all, where one of them was lost."""
    used: set[int] = set()
    begun: set[str] = set()
    for turn in turns:
        used.update(order.number for call in calls_in(turn.arrival) or () if (order := order_of(call)) is not None)
        if isinstance(turn.arrival, ChildEnded):
            begun.discard(turn.arrival.command_id)
            used.update(used_by(turn.arrival, leased))
        begun.update(one.id for one in turn.decisions if isinstance(one, StartChild))
    return leased.numbers if begun else tuple(sorted(used.intersection(leased.numbers)))


def why_too_late(gate: "Gate") -> str:
    """Why the shape of orders cannot be fixed any more; empty while nothing foreign was read and no effect was made."""
    for name, uses in gate.ledger.uses.items():
        if uses.calls and gate.tools[name].effect.is_mutating:
            return f"{name} was called"
    for observation in gate.grounds.index.observations:
        tool = gate.tools.get(observation.tool)
        is_own = gate.book is not None and gate.book.has_looked_up(observation)
        if not is_own and (tool is None or tool.effect is not Effect.NONE):
            return f"{observation.tool or 'a text'} was read"
    return ""
