"""The chat graph: what AgentLoop runs. Prepare, think, act as often as the model asks, check, done.

Rule 1: the act node bounds the tool rounds and the check node the repairs; every cycle passes one of them, so
        thinking needs no bound of its own.
Rule 2: context that cannot be found makes a poorer answer, not a failed run.
Rule 3: nothing is done unchecked: an answer, and a tool that ends the loop, both lead to check.
"""

from functools import lru_cache

from remit.core.failure import RequestRejected
from remit.core.run.contract import ITERATIONS_MAX_DEFAULT, SystemRequest
from remit.core.run.request_checks import ITERATIONS_MAX
from remit.core.work.graph import (
    EXITS,
    STANDARD_RULES,
    TERMINALS,
    Edge,
    Graph,
    Node,
    NodeKind,
    NodeOutcome,
)

REPAIRS_DEFAULT = 2
REPAIRS_MAX = 100

# Every run of a deployment asks for one of few; a graph never changes, so all of them may have the same.
GRAPHS_KEPT_MAX = 64

CHAT_LIMIT_INVALID = "CHAT_LIMIT_INVALID"


@lru_cache(maxsize=GRAPHS_KEPT_MAX, typed=True)
def chat_graph(tool_rounds_max: int = ITERATIONS_MAX_DEFAULT, repairs_max: int = REPAIRS_DEFAULT) -> Graph:
    """The graph of a chat with at most so many rounds of tools and repairs of the answer."""
    _refuse_outside("tool_rounds_max", tool_rounds_max, 1, ITERATIONS_MAX)
    _refuse_outside("repairs_max", repairs_max, 0, REPAIRS_MAX)
    return Graph(
        name="chat",
        start="prepare",
        nodes=(
            Node("prepare", NodeKind.RETRIEVE),
            Node("think", NodeKind.MODEL),
            Node("act", NodeKind.TOOL, visits_max=tool_rounds_max, rules=STANDARD_RULES),
            Node("check", NodeKind.VALIDATE, visits_max=repairs_max + 1),
            *TERMINALS,
        ),
        edges=(
            Edge("prepare", "think", NodeOutcome.FAILED),
            Edge("prepare", "think"),
            Edge("think", "act", NodeOutcome.CALLED_TOOLS),
            Edge("think", "check"),
            Edge("act", "check", NodeOutcome.STOPPED),
            Edge("act", "think"),
            Edge("check", "done", NodeOutcome.PASSED),
            Edge("check", "think"),
        ),
        exits=EXITS,
    )


def chat_for(request: SystemRequest, repairs_max: int | None = None) -> Graph:
    """The chat graph with as many rounds of tools as the request wants, and so many repairs, where a number is given."""
    repairs = REPAIRS_DEFAULT if repairs_max is None else repairs_max
    return chat_graph(tool_rounds_max=request.hints.max_iterations, repairs_max=repairs)


def _refuse_outside(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        # Zero rounds would read as "no bound" in a graph; a chat without tools is asked for with `tool_choice` none.
        raise RequestRejected(CHAT_LIMIT_INVALID, f"{name}={value} is outside {least} to {most}")
