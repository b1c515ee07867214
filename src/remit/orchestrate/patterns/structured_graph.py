"""The structured graph: what SpecializedLoop and `chat_structured` run. Prepare, use tools if there are any, produce, check.

Rule 1: with tools there are two phases: first the model works with them as in a chat, in words, then it is asked for the output
        alone, with no tool on offer. Without tools only the second is there.
Rule 2: an output that is not accepted is asked for again with the exact violation, as often as the check node allows;
        every cycle passes a node with a bound.
Rule 3: a tool that is called where the output is asked for is refused, and the output is asked for again: words of the first
        phase are no output.
Rule 4: where the type that was given as schema demands more than its JSON Schema says, the check hears the type, too.
Rule 5: a grammar holds the decoder, a schema judges what came of it; the output may have both.
"""

from collections.abc import Iterable
from functools import lru_cache

from remit.core.run.contract import ITERATIONS_MAX_DEFAULT, SystemRequest
from remit.core.work.graph import (
    EXITS,
    STANDARD_RULES,
    TERMINALS,
    Ask,
    Edge,
    Graph,
    Node,
    NodeKind,
    NodeOutcome,
    schema_text,
)

# Two re-asks: a model that twice failed to mend its output will not do it the third time.
REASKS_DEFAULT = 2
# What the model is told when its tools have done their part.
PRODUCE = "Produce your structured output now."

# Before the name of a type, it names the code that says why the type refuses an output.
TYPE_MARK = "type:"

GRAPHS_KEPT_MAX = 64


@lru_cache(maxsize=GRAPHS_KEPT_MAX, typed=True)
def structured_graph(
    schema: str,
    grammar: str = "",
    *,
    tool_rounds_max: int = 0,
    reasks_max: int = REASKS_DEFAULT,
    is_prepared: bool = False,
    heard: str = "",
) -> Graph:
    """The graph for an output of this schema (its JSON text); without rounds of tools the first phase is left out.

    What is prepared already, as a replica is by its parent, begins at once. `heard` names code that hears each output.
    """
    ask = Ask(PRODUCE if tool_rounds_max else "", tools=(), schema=schema, grammar=grammar)
    # Each output that is asked for may be put off once by a call of a tool that is not on offer any more.
    produce = Node("produce", NodeKind.MODEL, ask=ask, visits_max=2 * (reasks_max + 1) if tool_rounds_max else 0)
    check = Node("check", NodeKind.VALIDATE, code=heard, visits_max=reasks_max + 1)
    first = "think" if tool_rounds_max else "produce"
    phase_one: tuple[Node, ...] = ()
    ways: tuple[Edge, ...] = ()
    if tool_rounds_max:
        phase_one = (
            Node("think", NodeKind.MODEL, ask=Ask(words=True)),
            Node("act", NodeKind.TOOL, visits_max=tool_rounds_max, rules=STANDARD_RULES),
        )
        ways = (
            Edge("think", "act", NodeOutcome.CALLED_TOOLS),
            Edge("think", "produce"),
            Edge("act", "produce", NodeOutcome.STOPPED),
            Edge("act", "think"),
            Edge("produce", "produce", NodeOutcome.CALLED_TOOLS),
        )
    return Graph(
        name="structured",
        start=first if is_prepared else "prepare",
        nodes=(*(() if is_prepared else (Node("prepare", NodeKind.RETRIEVE),)), *phase_one, produce, check, *TERMINALS),
        edges=(
            *(() if is_prepared else (Edge("prepare", first, NodeOutcome.FAILED), Edge("prepare", first))),
            *ways,
            Edge("produce", "check"),
            Edge("check", "done", NodeOutcome.PASSED),
            Edge("check", "produce"),
        ),
        exits=EXITS,
    )


def type_heard(code: Iterable[str]) -> str:
    """The name, among those of a kit's code, of what hears an output for the type that was given as schema; empty without one."""
    return next((name for name in code if name.startswith(TYPE_MARK)), "")


def structured_for(request: SystemRequest, reasks_max: int | None = None, *, has_tools: bool, heard: str = "") -> Graph:
    """The structured graph that a request wants: its schema, its grammar, its rounds of tools, and so many re-asks."""
    assert request.output.schema is not None, "a structured request without a schema was refused at the door"
    return structured_graph(
        schema_text(request.output.schema),
        request.output.grammar or "",
        tool_rounds_max=(request.hints.max_iterations or ITERATIONS_MAX_DEFAULT) if has_tools else 0,
        reasks_max=REASKS_DEFAULT if reasks_max is None else reasks_max,
        heard=heard,
    )
