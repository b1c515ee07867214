"""The redundant graph: what RedundantLoop runs. Prepare, ask N replicas, count their votes, check, done.

Rule 1: a replica is a child run of the structured graph; it repairs its own answer and is never run again.
Rule 2: a replica that failed, in whatever way, has no vote and does not fail the others.
Rule 3: one after the other, unless the model can be asked several things at once; all of them, unless a settled vote is
        to end it early.
"""

from functools import lru_cache

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected
from remit.core.record import Record
from remit.core.run.contract import SystemRequest
from remit.core.work.graph import (
    EXITS,
    TERMINALS,
    Ballot,
    Edge,
    Graph,
    JoinRule,
    Node,
    NodeKind,
    NodeOutcome,
    schema_text,
)
from remit.orchestrate.patterns.structured_graph import structured_graph

# Three is the least that can outvote one.
REPLICAS_DEFAULT = 3
REPLICAS_MAX = 100
# Before the name of a strategy, it names the code that counts.
VOTE_MARK = "vote:"

# What can become of a replica without stopping the run: it has no vote.
_BEFALLEN = (NodeOutcome.FAILED, NodeOutcome.ESCALATED, NodeOutcome.EXHAUSTED)

REPLICAS_INVALID = "REPLICAS_INVALID"
# An hour, as for tools and steps.
REPLICA_TIMEOUT_MS_MAX = 3_600_000
GRAPHS_KEPT_MAX = 64


class Redundancy(Record, frozen=True):
    """How often a model is asked, who counts, and whether a settled vote ends early.

    `timeout_ms` is what no replica may take longer than; 0 leaves the run's own clock.
    """

    n: int = REPLICAS_DEFAULT
    voting: str = "majority"
    early_stop: bool = False
    is_parallel: bool = False
    timeout_ms: int = 0


@lru_cache(maxsize=GRAPHS_KEPT_MAX, typed=True)
def redundant_graph(schema: str, grammar: str, redundancy: Redundancy, heard: str = "") -> Graph:
    """The graph for so many answers of this schema (its JSON text); `heard` names code that hears each of them."""
    n, early_stop = redundancy.n, redundancy.early_stop
    is_parallel = redundancy.is_parallel and not early_stop
    # Voting takes the place of asking again: what a replica cannot repair has no vote.
    inner = structured_graph(schema, grammar, reasks_max=0, is_prepared=True, heard=heard)
    vote = Node(
        "vote",
        NodeKind.DECIDE,
        code=f"{VOTE_MARK}{redundancy.voting}",
        visits_max=n,
        ballot=Ballot("replica", n, early_stop),
    )
    if is_parallel:
        replica = Node(
            "replica",
            NodeKind.MAP,
            children=n,
            join=JoinRule.ANY,
            inner=inner,
            visits_max=1,
            timeout_ms=redundancy.timeout_ms,
        )
        ways = (*(Edge("replica", "vote", outcome) for outcome in _BEFALLEN), Edge("replica", "vote"))
    else:
        replica = Node("replica", NodeKind.CHILD, inner=inner, visits_max=n, timeout_ms=redundancy.timeout_ms)
        ways = (
            *(Edge("replica", "vote", outcome) for outcome in _BEFALLEN),
            Edge("replica", "vote"),
            Edge("vote", "replica", NodeOutcome.UNDECIDED),
        )
    return Graph(
        name="redundant",
        start="prepare",
        nodes=(
            Node("prepare", NodeKind.RETRIEVE),
            replica,
            vote,
            Node("check", NodeKind.VALIDATE, visits_max=1),
            *TERMINALS,
        ),
        edges=(
            Edge("prepare", "replica", NodeOutcome.FAILED),
            Edge("prepare", "replica"),
            *ways,
            Edge("vote", "check"),
            Edge("check", "done"),
        ),
        exits=EXITS,
    )


def redundant_for(request: SystemRequest, redundancy: Redundancy, heard: str = "") -> Graph:
    """The redundant graph that a request wants."""
    assert request.output.schema is not None, "a redundant request without a schema was refused at the door"
    check_replicas(redundancy.n)
    check_timeout(redundancy.timeout_ms)
    return redundant_graph(schema_text(request.output.schema), request.output.grammar or "", redundancy, heard)


def check_replicas(n: int) -> None:
    """Refuse a number of replicas that could not be asked."""
    # A bool is an int to Python, and no count.
    if type(n) is not int or not 1 <= n <= REPLICAS_MAX:
        message = f"n={clipped(n)} is not a number of replicas from 1 to {REPLICAS_MAX}"
        raise RequestRejected(REPLICAS_INVALID, message, {"n": str(n)[:80], "limit": REPLICAS_MAX})


def check_timeout(timeout_ms: int) -> None:
    """Refuse a time that no replica could be held to."""
    if type(timeout_ms) is not int or not 0 <= timeout_ms <= REPLICA_TIMEOUT_MS_MAX:
        message = f"replica_timeout_ms={clipped(timeout_ms)} is not from 0 to {REPLICA_TIMEOUT_MS_MAX}; 0 sets no limit"
        raise RequestRejected(REPLICAS_INVALID, message, {"limit": REPLICA_TIMEOUT_MS_MAX})
