"""Write the documents that are made from the code: failures, lifecycle, events, the public names and the wire.

Rule 1: whatever the code knows is read from its tables, unions and docstrings, never written down again here.
Rule 2: the same code gives the same bytes; tests/tidy/test_generated_docs.py compares them with what is stored.
Rule 3: nothing is left out: a kind or a code without its words stops the writing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from remit.core.failure import (
    BY_STAKES,
    CATEGORIES,
    ENDING_ALIASES,
    ENDINGS,
    ERRORS,
    EXIT_FAILED,
    EXIT_OK,
    EXIT_STOPPED,
    EXIT_WAITING,
    REFUSALS,
    ArrivalFault,
)
from remit.core.run.lifecycle import (
    LIFECYCLE_TRANSITIONS,
    AgentRole,
    LifecycleState,
    LoopState,
    default_loop_state,
    is_loop_move,
)
from remit.kernel.graph.compiled import compile_graph
from remit.kernel.graph.draw import draw_mermaid
from remit.orchestrate.patterns.chat_graph import chat_graph
from scripts.api_docs import api
from scripts.event_docs import events
from scripts.markdown import code, fenced, paragraph, table
from scripts.wire_docs import wire

DOCS = Path(__file__).resolve().parents[1] / "docs"
MADE = "<!-- Made by `make docs` (scripts/generate_docs.py) from the code. Edits here are overwritten. -->"

# What a script may conclude from each exit code; 2 is left to wrong usage of a command.
EXIT_MEANINGS = MappingProxyType(
    {
        EXIT_OK: "the run succeeded, perhaps in part",
        EXIT_FAILED: "the run failed or was cancelled",
        EXIT_WAITING: "the run waits for a person",
        EXIT_STOPPED: "the run was refused, or stopped by policy or budget",
    }
)

# An arrival fault has no row in the failure table, since it leaves no trace: it only tells the sender why.
FAULT_MEANINGS: Mapping[ArrivalFault, str] = MappingProxyType(
    {
        ArrivalFault.DUPLICATE: "the command has its outcome already, or is already known to be in doubt",
        ArrivalFault.UNKNOWN_COMMAND: "no command of the run has this id, or one that this arrival does not answer",
        ArrivalFault.RUN_ENDED: "the run is over; only late outcomes and a retry are still heard",
        ArrivalFault.NOT_WAITING: "the call may simply be made again, so its outcome cannot be lost",
        ArrivalFault.ALREADY_STARTED: "the run has its first turn",
        ArrivalFault.NOT_STARTED: "the run has no first turn yet",
        ArrivalFault.NOT_PAUSED: "only a paused run can be resumed",
        ArrivalFault.ALREADY_PAUSED: "the run is paused already",
        ArrivalFault.SELF_APPROVAL: "who asked for the run does not approve it, and is never one of several who must",
        ArrivalFault.NAME_CONFUSABLE: "the name can be read for another one that the question knows",
        ArrivalFault.NOT_RELEASING: "the boundary names who may release budget, and this person is not named",
        ArrivalFault.CALL_NOT_ALLOWED: "a guarded call that was approved can no longer be made; it stays held",
        ArrivalFault.PAUSED: "nothing can be approved while the run is paused; resume it first",
        ArrivalFault.WRONG_PACKET: "the question asks for something else than this answers",
        ArrivalFault.NOT_RETRYABLE: "the run is open, or ended in its first turn, or succeeded and no reason was given",
        ArrivalFault.SESSION_FULL: "the session has as many entries as one may have",
        ArrivalFault.PACKET_CHANGED: "the approval is of another packet than the one that waits; look again",
        ArrivalFault.ALREADY_APPROVED: "this person has approved the call already, and another one must",
    }
)


def failures() -> Iterator[str]:
    """Every ending, error code, refusal and arrival fault."""
    yield "# Failures"
    yield paragraph(
        "How a run can end, and every code that says why. The tables are those of `core/failure.py`: programs branch on "
        "codes, categories and exit codes; messages are for people."
    )
    yield from endings()
    yield from errors()
    yield from refusals()
    yield from faults()


def endings() -> Iterator[str]:
    """How a run ends, who receives authority next, and what a script sees."""
    yield "## Endings"
    yield paragraph(
        "A code that *suspends* becomes the ending only when its wait expires or nobody can answer; the second exit "
        "code is the one it has then. *Receives* names who has authority next."
    )
    yield table(
        ("Ending", "Kind", "Category", "Retryable", "Exit code", "Route", "Receives", "Lifecycle", "Loop state"),
        (
            (
                code(ending),
                row.kind,
                row.category or "",
                row.retryable,
                row.exit_code
                if row.exit_code == row.exit_code_when_ended
                else f"{row.exit_code}, then {row.exit_code_when_ended}",
                row.route or "",
                row.receives,
                row.lifecycle,
                f"{row.waits_as}, then {row.loop_state}" if row.waits_as else row.loop_state,
            )
            for ending, row in ENDINGS.items()
        ),
    )
    yield paragraph(
        f"A run that waits for several people at once, or whose children do, waits under the code with most at stake: "
        f"{', '.join(map(code, BY_STAKES))}, in this order. Its packets are named in the same order."
    )
    yield paragraph(
        "An ending that is caused by an error carries the error's code, category and retryability instead of its own. "
        "Without a closer cause it carries this one:"
    )
    yield table(
        ("Ending", "Error code"), ((code(ending), code(row.error)) for ending, row in ENDINGS.items() if row.error)
    )
    yield paragraph("Some endings also answer to the names that the failure taxonomy gives them:")
    yield table(("Alias", "Ending"), ((code(alias), code(ending)) for alias, ending in ENDING_ALIASES.items()))
    yield "### Exit codes"
    yield table(("Exit code", "Means"), EXIT_MEANINGS.items())


def errors() -> Iterator[str]:
    """What can go wrong in the world, in a model or in the setup."""
    yield "## Categories"
    yield table(
        ("Category", "Codes begin with", "Emitted by", "Recovery"),
        ((name, code(row.prefix), row.emitted_by, row.recovery) for name, row in CATEGORIES.items()),
    )
    yield "## Error codes"
    yield table(
        ("Code", "Category", "Retryable", "Emitted by", "Recovery"),
        ((code(name), row.category, row.retryable, row.emitted_by, row.recovery) for name, row in ERRORS.items()),
    )


def refusals() -> Iterator[str]:
    """Why a proposed call is not made."""
    yield "## Refusals"
    yield paragraph(
        "A proposed tool call that is refused is never commanded; the model is told the code and the reason. Unknown "
        "tools and bad arguments are refused with an error code from above."
    )
    yield table(
        ("Refusal", "Category", "Ending, if the run ends because of it"),
        ((code(name), row.category, code(row.ending)) for name, row in REFUSALS.items()),
    )


def faults() -> Iterator[str]:
    """Why an arrival is not judged."""
    yield "## Arrival faults"
    yield paragraph(
        "An arrival that cannot be judged in the state of its run raises `IllegalArrival`, makes no turn and changes "
        "nothing. The fault says why."
    )
    yield table(("Fault", "Means"), ((code(fault), FAULT_MEANINGS[fault]) for fault in ArrivalFault))


def lifecycle() -> Iterator[str]:
    """The two vocabularies for where a run stands, and the chat graph as an example of what they label."""
    yield "# Lifecycle and loop states"
    yield paragraph(
        "A run stands at one node of its graph. The node carries two labels for display: a lifecycle state and a loop "
        "state (`core/run/lifecycle.py`)."
    )
    yield "## Lifecycle"
    yield fenced("mermaid", lifecycle_diagram())
    yield "## Loop state"
    yield paragraph(
        "Within a box, any state may follow any other, backward too. `paused` and `awaiting_approval` lie over another "
        "state, which returns when they are lifted; no node carries them."
    )
    yield fenced("mermaid", loop_diagram())
    yield paragraph("A node that names no loop state has the one of its lifecycle:")
    yield table(
        ("Lifecycle", "Loop state", "For an architect"),
        (
            (code(state), code(default_loop_state(state)), code(default_loop_state(state, AgentRole.ARCHITECT)))
            for state in LifecycleState
        ),
    )
    yield "## The chat graph"
    yield paragraph(
        "What `AgentLoop` runs, with its standard limits (`orchestrate/patterns/chat_graph.py`). Each node shows its kind and "
        "its lifecycle; dotted ways are the exits that can befall any node."
    )
    yield fenced("mermaid", draw_mermaid(compile_graph(chat_graph())))


def lifecycle_diagram() -> str:
    """The stations of a run and every move between them."""
    moves = [
        f"  {before} --> {after}"
        for before in LifecycleState
        for after in LifecycleState
        if after in LIFECYCLE_TRANSITIONS[before]
    ]
    ends = [f"  {state} --> [*]" for state in LifecycleState if state.is_terminal]
    return "\n".join(["stateDiagram-v2", f"  [*] --> {LifecycleState.INIT}", *moves, *ends])


def loop_diagram() -> str:
    """The loop states in boxes whose members may all make the same moves: sixty arrows would hide that."""
    boxes: dict[str, list[LoopState]] = {
        "working": [state for state in LoopState if not state.is_terminal and not state.is_overlay],
        "waiting": [state for state in LoopState if state.is_overlay],
    }
    ends: dict[str, list[LoopState]] = {state.value: [state] for state in LoopState if state.is_terminal}
    groups = {**boxes, **ends}
    first = default_loop_state(LifecycleState.INIT)
    lines = ["stateDiagram-v2"]
    for name, states in boxes.items():
        begins = [f"    [*] --> {first}"] if first in states else []
        lines += [f"  state {name} {{", *begins, *(f"    {state}" for state in states), "  }"]
    lines += [f"  [*] --> {name}" for name, states in boxes.items() if first in states]
    lines += [
        f"  {before} --> {after}"
        for before in groups
        for after in groups
        if before != after and may_move(groups[before], groups[after])
    ]
    return "\n".join([*lines, *(f"  {name} --> [*]" for name in ends)])


def may_move(before: Iterable[LoopState], after: Iterable[LoopState]) -> bool:
    """Whether every state of one group may be followed by every state of another; a drawing allows no half truths."""
    answers = {is_loop_move(first, second) for first in before for second in after}
    assert len(answers) == 1, f"{list(before)} and {list(after)} do not move alike; draw them apart"
    return answers.pop()


DOCUMENTS: Mapping[str, Callable[[], Iterator[str]]] = MappingProxyType(
    {"failures.md": failures, "lifecycle.md": lifecycle, "events.md": events, "api.md": api, "wire.md": wire}
)


def documents() -> dict[str, str]:
    """Every generated document by its name in docs/."""
    return {name: "\n\n".join([MADE, *blocks()]) + "\n" for name, blocks in DOCUMENTS.items()}


def main() -> None:
    """Write every document."""
    for name, text in documents().items():
        (DOCS / name).write_text(text, encoding="utf-8")
        print(f"docs/{name}")


if __name__ == "__main__":
    main()
