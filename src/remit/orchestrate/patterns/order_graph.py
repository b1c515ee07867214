"""Before a run with orders begins its own graph, it makes their look-ups, once.

Rule 1: the reads are proposed by code and judged like any call; what they return fills the orders, and the model is shown it.
Rule 2: a read that fails or is refused fills nothing: the effects that need it ask a person.
"""

from remit.core.record import replace
from remit.core.run.lifecycle import LifecycleState
from remit.core.work.graph import STANDARD_RULES, Edge, Graph, Node, NodeKind, NodeOutcome
from remit.core.work.orders import Order, reads_of

# Names the code that proposes the reads of a run's orders.
LOOK_UP = "orders:look_up"
_PROPOSE, _READ = "look_up_orders", "read_for_orders"


def with_look_ups(graph: Graph, orders: tuple[Order, ...]) -> Graph:
    """The graph, begun with the reads of these orders; as it is where they need none."""
    if not reads_of(orders):
        return graph
    propose = Node(_PROPOSE, NodeKind.DECIDE, LifecycleState.PREPARE, visits_max=1, code=LOOK_UP)
    read = Node(_READ, NodeKind.TOOL, LifecycleState.PREPARE, visits_max=1, rules=STANDARD_RULES)
    edges = (
        Edge(_PROPOSE, _READ),
        Edge(_READ, graph.start, NodeOutcome.FAILED),
        Edge(_READ, graph.start),
        *graph.edges,
    )
    return replace(graph, start=_PROPOSE, nodes=(propose, read, *graph.nodes), edges=edges)
