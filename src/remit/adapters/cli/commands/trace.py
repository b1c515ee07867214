"""The command that shows a run step by step: as a tree, or turn by turn.

Rule 1: the tree is for people, the turns are the journal itself; with --json every turn is an object.
Rule 2: a run of any length is printed as it is read: twice as long takes twice as long.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import wrong_usage
from remit.adapters.cli.arguments.options import COMMON, CommonOptions, RunName, whole_number
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.bars import budget_lines
from remit.adapters.cli.screen.colours import Ink, Line, columns_of, print_lines, wrapped_lines
from remit.adapters.cli.screen.glance import standing_in_words
from remit.adapters.cli.screen.terminal import Terminal
from remit.adapters.cli.screen.tree import BRANCHES, BRANCHES_ASCII, INDENTED, Canvas, Marks, tree_lines
from remit.core.failure import EXIT_OK, RemitError
from remit.core.run.lifecycle import AgentRole, LoopState
from remit.observe.views.explain import Spent
from remit.observe.views.outline import Outline, outline, outline_of, steps_in
from remit.observe.views.trace import trace_lines, trace_rows

if TYPE_CHECKING:
    from remit.orchestrate.facade import System


# The word before the first line.
_ROLE = "role "


def trace(
    run: RunName,
    /,
    *,
    last: Annotated[
        int,
        Parameter(
            converter=whole_number, help="Only what the last so many turns had a part in; 0, the default, is all."
        ),
    ] = 0,
    turns: Annotated[bool, Parameter(help="The turns themselves: what arrived, was ruled and was ordered.")] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Show a run as a tree of its steps: what each took and cost, and the budget."""
    if last < 0:
        raise wrong_usage(f"--last {last} is less than 0; 0 shows every turn")

    async def look() -> None:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            told = await system.archive.told((await system.archive.find(run)).run_id)
            whole = told.turns
            is_tree = not (terminal.is_json or turns)
            stands = {told.entry.run_id: standing_in_words(told.entry, told.explanation.standing)}
            children = await _children(system, outline_of(told.reading), stands) if is_tree else {}
        if terminal.is_json:
            for row in trace_rows(whole)[-last:]:
                terminal.values(row)
        elif turns:
            columns = columns_of(terminal) if terminal.is_a_terminal else 0
            print_lines(terminal, ([(line, Ink.PLAIN)] for line in trace_lines(whole, last=last, columns=columns)))
        else:
            canvas = Canvas(_marks(terminal), columns_of(terminal), children, stands)
            print_lines(terminal, wrapped_lines(terminal, _head(told.manifest.role, told.loop), len(_ROLE)))
            print_lines(terminal, tree_lines(outline_of(told.reading, last=last), canvas))
            print_lines(terminal, _foot(terminal, told.explanation.spent, told.entry.run_id))

    in_loop(look())
    return EXIT_OK


async def _children(system: "System", told: Outline, stands: dict[str, str]) -> dict[str, Outline]:
    """The trees of the runs beneath a run, by their ids; one that is gone or cannot be read is left out.

    How those stand that have not ended is added to `stands`.
    """
    found: dict[str, Outline] = {}
    waiting = [told]
    while waiting:
        for step in steps_in(waiting.pop()):
            if not step.run_id:
                continue
            try:
                child = outline((await system.archive.history(step.run_id)).turns)
                if not child.ending:
                    open_ = await system.archive.told(step.run_id)
                    stands[step.run_id] = standing_in_words(open_.entry, open_.explanation.standing)
            except RemitError:
                # `remit verify` says what is wrong with it; the tree says that it is not kept here.
                continue
            found[step.run_id] = child
            waiting.append(child)
    return found


def _marks(terminal: Terminal) -> Marks:
    if not terminal.is_a_terminal:
        return INDENTED
    return BRANCHES if terminal.has_unicode else BRANCHES_ASCII


def _head(role: AgentRole, loop: Sequence[LoopState]) -> Iterator[Line]:
    """What the agent is there for, and the loop states it went through."""
    yield [(_ROLE, Ink.BOLD), (f"{role.value}: {' > '.join(loop)}", Ink.PLAIN)]


def _foot(terminal: Terminal, spent: Sequence[Spent], run_id: str) -> Iterator[Line]:
    """What is used of the budget, and where to read on."""
    yield [("budget", Ink.BOLD)]
    yield from budget_lines(terminal, spent)
    if terminal.is_a_terminal:
        yield [(f"a turn in full: remit show {run_id} --turn N", Ink.FAINT)]
