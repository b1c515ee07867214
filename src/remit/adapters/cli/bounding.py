"""The commands about boundaries: whether one is fine, what it says, and how two differ.

Rule 1: nothing here starts a run, calls a tool or makes a store.
Rule 2: what a second boundary allows more than the first is red and what it allows less is green; the words say the same.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.inputs import as_usage, boundary_named, wrong_usage
from remit.adapters.cli.options import COMMON, Common
from remit.adapters.cli.painting import Ink, Line, print_lines, wrapped
from remit.adapters.cli.terminal import Terminal
from remit.core.boundary import BoundaryMode, boundary_version
from remit.core.boundary_reports import BoundaryChecked, BoundaryShown, Difference, Stance, ToolReport
from remit.core.codec import plain
from remit.core.failure import EXIT_FAILED, EXIT_OK

BoundaryName: TypeAlias = Annotated[
    str, Parameter(name="BOUNDARY", help="The name of a boundary, or a YAML or JSON file with one.")
]

_STANCE_INKS = {Stance.REFUSES: Ink.BAD, Stance.ASKS: Ink.WAITS, Stance.PASSES: Ink.GOOD}
# How wide the names of dimensions, keys and tools are set before what is said of them.
_STANCE_CELLS = 9
_INDENT = 4


def check(
    file: Annotated[str, Parameter(name="FILE", help="A YAML or JSON file with a boundary, or the name of one.")],
    /,
    *,
    tools: Annotated[
        list[str] | None,
        Parameter(help="FILE.py, module:NAME or builtin:clock,calculator: what would it do to them? May be repeated."),
    ] = None,
    graph: Annotated[
        Path | None, Parameter(help="A YAML file with a graph, whose tier is held against tier_max.")
    ] = None,
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Check a boundary: is it fine, and what does it do to which tools.

    For each tool it says whether its calls are refused, asked about or pass, and why, and what the tool leaves
    undeclared. The exit code is 1 when the boundary cannot be used.
    """
    from remit.assemble import graph_in, tools_at
    from remit.orchestrate.facade import boundary_at, check_boundary

    boundary = boundary_at(file)
    with as_usage():
        definitions = tools_at(tools or ()).definitions
        drawn = None if graph is None else graph_in(graph)
    found = check_boundary(boundary, definitions, drawn)
    if terminal.is_json:
        terminal.values(plain(found))
    else:
        print_lines(terminal, wrapped(terminal, _checked_lines(found), _INDENT))
    return EXIT_OK


def show(
    boundary: BoundaryName,
    /,
    *,
    yaml: Annotated[bool, Parameter(help="Print it as a file that reads back as the same boundary.")] = False,
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Show a boundary by its six dimensions."""
    from remit.orchestrate.facade import show_boundary

    if yaml and terminal.is_json:
        raise wrong_usage("--yaml and --json are two forms of one answer; say one of them")
    shown = show_boundary(boundary_named(boundary))
    if yaml:
        terminal.text(shown.yaml)
    elif terminal.is_json:
        terminal.values({"name": shown.name, "version": shown.version, "boundary": shown.said})
    else:
        print_lines(terminal, wrapped(terminal, _shown_lines(shown), _INDENT))
    return EXIT_OK


def diff(
    first: Annotated[str, Parameter(name="A", help="The name of a boundary, or a file with one.")],
    second: Annotated[str, Parameter(name="B", help="Another.")],
    /,
    *,
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Say what boundary B allows more than A, and what less.

    The exit code is 0 when they are the same, 1 when they differ, and 2 when one of them cannot be read.
    """
    from remit.orchestrate.facade import compare_boundaries

    before, after = boundary_named(first), boundary_named(second)
    found = compare_boundaries(before, after)
    if terminal.is_json:
        sides = {
            side: {"name": one.name, "version": boundary_version(one)} for side, one in (("a", before), ("b", after))
        }
        terminal.values({**sides, "same": not found, "differences": [_difference_values(one) for one in found]})
    elif found:
        print_lines(terminal, wrapped(terminal, _difference_lines(found), _INDENT))
    else:
        terminal.line(f"{before.name} and {after.name} are the same: version {boundary_version(after)}")
    return EXIT_FAILED if found else EXIT_OK


def _checked_lines(found: BoundaryChecked) -> Iterator[Line]:
    head = f"boundary {found.name} is fine"
    yield ((head, Ink.GOOD), (f": mode {found.mode}, version {found.version}", Ink.PLAIN))
    if found.mode is BoundaryMode.AUDIT:
        yield (("mode audit: what is refused or asked below is only recorded, and passes", Ink.WAITS),)
    if found.conditions:
        yield (
            (f"{found.conditions} conditions look at every call besides; `remit boundary show` lists them", Ink.FAINT),
        )
    for name in found.missing:
        yield ((f"it names tool {name}, which is not among these", Ink.WAITS),)
    yield from _tool_lines(found.tools)


def _tool_lines(tools: Sequence[ToolReport]) -> Iterator[Line]:
    width = max((len(tool.tool) for tool in tools), default=0) + 2
    for tool in tools:
        ink = _STANCE_INKS[tool.stance]
        yield ((f"{tool.stance:<{_STANCE_CELLS}}", ink), (f"{tool.tool:<{width}}", Ink.BOLD), (tool.why, Ink.PLAIN))
    for tool in tools:
        if said := _undeclared(tool):
            yield (("at worst ", Ink.WAITS), (f"{tool.tool:<{width}}", Ink.BOLD), (said, Ink.PLAIN))


def _undeclared(tool: ToolReport) -> str:
    said = [", ".join(tool.at_worst)] if tool.at_worst else []
    if tool.gaps:
        said.append(f"its category demands {', '.join(tool.gaps)}")
    return "; ".join(said) and f"{'; '.join(said)} (risk {tool.risk})"


def _shown_lines(shown: BoundaryShown) -> Iterator[Line]:
    yield ((f"boundary {shown.name}", Ink.BOLD), (f", mode {shown.mode}, version {shown.version}", Ink.PLAIN))
    width = max(len(line.key) for line in shown.lines) + 2
    dimension = ""
    for line in shown.lines:
        if line.dimension != dimension:
            dimension = line.dimension
            yield ((dimension, Ink.NAME),)
        yield ((f"  {line.key:<{width}}", Ink.FAINT), (line.says, Ink.PLAIN))


def _difference_lines(found: Sequence[Difference]) -> Iterator[Line]:
    width = max(len(one.key) for one in found) + 2
    for one in found:
        pieces = [(f"{one.key:<{width}}", Ink.BOLD)]
        for word, said, ink in (
            ("more", one.more, Ink.BAD),
            ("less", one.less, Ink.GOOD),
            ("other", one.other, Ink.PLAIN),
        ):
            if said:
                gap = "  " if len(pieces) > 1 else ""
                pieces.append((f"{gap}{word}: {', '.join(said)}", ink))
        yield pieces


def _difference_values(one: Difference) -> dict[str, object]:
    return {"key": one.key, "more": one.more, "less": one.less, "other": one.other}
