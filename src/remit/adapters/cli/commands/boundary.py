"""The commands about boundaries: whether one is fine, what it says, and how two differ.

Rule 1: nothing here starts a run, calls a tool or makes a store.
Rule 2: what a second boundary allows more than the first is red and what it allows less is green; the words say the same.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import as_usage, boundary_given, wrong_usage
from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.screen.colours import Ink, Line, print_lines, wrapped_lines
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK, RequestRejected
from remit.core.limits.boundary import BoundaryMode, boundary_version
from remit.core.limits.boundary_views import (
    BoundaryChecked,
    BoundaryShown,
    Difference,
    Stance,
    TierReport,
    ToolReport,
    ToolTrial,
)
from remit.core.record import JsonObject
from remit.observe.plain import printable_line

BoundaryName: TypeAlias = Annotated[
    str, Parameter(name="BOUNDARY", help="The name of a boundary, or a YAML or JSON file with one.")
]

_STANCE_INKS = {Stance.REFUSES: Ink.BAD, Stance.ASKS: Ink.WAITS, Stance.RECORDS: Ink.WAITS, Stance.PASSES: Ink.GOOD}
# The trial whose call shall pass.
_ORDERED = "ordered"
# The words for what happens to a tool, and a space.
_STANCE_CELLS = 9
# A long condition and why it is there; --json and --yaml have all of it.
_SAID_CHARS_MAX = 600
_INDENT = 4
# As much of a version as people compare.
_VERSION_CHARS = 16


def check(
    file: Annotated[str, Parameter(name="FILE", help="A YAML or JSON file with a boundary, or the name of one.")],
    /,
    *,
    tools: Annotated[
        list[str] | None,
        Parameter(help="FILE.py, module:NAME or builtin:clock,calculator: what would it do to them? May be repeated."),
    ] = None,
    graph: Annotated[
        Path | None, Parameter(help="A YAML file with a graph; exit 1 when its tier is above tier_max.")
    ] = None,
    full: Annotated[
        bool,
        Parameter(help="Say of every condition that is never met why, every trial and kind, and the whole version."),
    ] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Check a boundary: is it fine, and what does it do to which tools."""
    from remit.assemble import graph_in, tools_at
    from remit.orchestrate.drafts import boundary_at, check_boundary

    boundary = boundary_at(file)
    with as_usage():
        registry = tools_at(tools or ())
        drawn = None if graph is None else graph_in(graph)
    found = check_boundary(boundary, registry.definitions, drawn, registry.keyless)
    too_high = _too_high(found.tier) if drawn is not None else None
    is_faulty = any(tool.faults for tool in found.tools)
    if terminal.is_json:
        error = {} if too_high is None else {"error": {"code": too_high.code, "message": too_high.message}}
        terminal.values({**_checked_values(found), **error})
        return EXIT_OK if too_high is None and not is_faulty else EXIT_FAILED
    lines = _checked_lines(found, has_tools=bool(tools), is_full=full)
    print_lines(terminal, wrapped_lines(terminal, lines, _INDENT))
    if too_high is not None:
        raise too_high
    return EXIT_FAILED if is_faulty else EXIT_OK


def show(
    boundary: BoundaryName,
    /,
    *,
    yaml: Annotated[bool, Parameter(help="Print it as a file that reads back as the same boundary.")] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Show a boundary by its six dimensions."""
    from remit.orchestrate.drafts import show_boundary

    if yaml and terminal.is_json:
        raise wrong_usage("--yaml and --json are two forms of one answer; say one of them")
    shown = show_boundary(boundary_given(boundary))
    if yaml:
        terminal.text(shown.yaml)
    elif terminal.is_json:
        terminal.values({"name": shown.name, "version": shown.version, "boundary": shown.said})
    else:
        print_lines(terminal, wrapped_lines(terminal, _shown_lines(shown), _INDENT))
    return EXIT_OK


def diff(
    first: Annotated[str, Parameter(name="A", help="The name of a boundary, or a file with one.")],
    second: Annotated[str, Parameter(name="B", help="Another.")],
    /,
    *,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Say what B allows more than A, and what less; exit 0 when the same, 1 when not."""
    from remit.orchestrate.drafts import compare_boundaries

    before, after = boundary_given(first), boundary_given(second)
    found = compare_boundaries(before, after)
    if terminal.is_json:
        sides = {
            side: {"name": one.name, "version": boundary_version(one)} for side, one in (("a", before), ("b", after))
        }
        terminal.values({**sides, "same": not found, "differences": [_difference_values(one) for one in found]})
    elif found:
        print_lines(terminal, wrapped_lines(terminal, _difference_lines(found), _INDENT))
    else:
        terminal.line(f"{_said(before.name)} and {_said(after.name)} are the same: version {boundary_version(after)}")
    return EXIT_FAILED if found else EXIT_OK


def _too_high(tier: TierReport | None) -> RequestRejected | None:
    """Why the graph may not run within the boundary."""
    return RequestRejected(tier.code, tier.objection) if tier is not None and tier.objection else None


def _checked_values(found: BoundaryChecked) -> JsonObject:
    return {
        "name": found.name,
        "version": found.version,
        "mode": found.mode,
        "conditions": found.conditions,
        "tools": [_tool_values(tool) for tool in found.tools],
        "missing": found.missing,
        "tier": None
        if found.tier is None
        else {key: getattr(found.tier, key) for key in ("graph", "tier", "title", "tier_max")},
        "uncharged": found.uncharged,
        "idle": [{"condition": one.name, "why": one.why} for one in found.idle],
    }


def _tool_values(tool: ToolReport) -> JsonObject:
    trials = [{key: getattr(one, key) for key in ToolTrial.__struct_fields__} for one in tool.trials]
    return {**{key: getattr(tool, key) for key in ToolReport.__struct_fields__}, "trials": trials}


def _checked_lines(found: BoundaryChecked, *, has_tools: bool, is_full: bool) -> Iterator[Line]:
    yield (
        (f"boundary {_said(found.name)} is fine", Ink.GOOD),
        (f": mode {found.mode}, version {found.version if is_full else found.version[:_VERSION_CHARS]}", Ink.PLAIN),
    )
    if found.mode is BoundaryMode.AUDIT:
        yield (("mode audit: what is refused or asked below is only recorded, and passes", Ink.WAITS),)
    for name in found.missing:
        yield ((f"it names tool {_said(name)}, which is not among these", Ink.WAITS),)
    if (tier := found.tier) is not None:
        says = f"graph {_said(tier.graph)} has tier {tier.tier} ({tier.title}), tier_max={tier.tier_max}"
        yield ((f"{says}: too high" if tier.objection else says, Ink.BAD if tier.objection else Ink.PLAIN),)
    yield from _tool_lines(found.tools)
    yield from _fault_lines(found.tools)
    yield from _trial_lines(found.tools, is_full=is_full)
    yield from _condition_lines(found, is_full=is_full)
    if found.uncharged:
        yield ((f"not yet charged: {', '.join(found.uncharged)}", Ink.FAINT),)
    if not has_tools:
        yield (("say --tools FILE.py, and it says what becomes of their calls", Ink.FAINT),)


def _tool_lines(tools: Sequence[ToolReport]) -> Iterator[Line]:
    width = max((len(tool.tool) for tool in tools), default=0) + 2
    for tool in tools:
        ink = _STANCE_INKS[tool.stance]
        head = (f"{tool.stance:<{_STANCE_CELLS}}", ink), (f"{tool.tool:<{width}}", Ink.BOLD)
        yield (*head, (_said(tool.why), Ink.PLAIN))
    lacking = [(tool, list(_undeclared(tool))) for tool in tools]
    if any(said for _, said in lacking):
        yield (("what these tools do not declare, and remit takes at its worst (docs/tools.md):", Ink.WAITS),)
    for tool, said in lacking:
        for place, line in enumerate(said):
            yield ((f"  {tool.tool if not place else '':<{width}}", Ink.BOLD), (line, Ink.PLAIN))


def _fault_lines(tools: Sequence[ToolReport]) -> Iterator[Line]:
    """What tools declare and cannot be so."""
    for tool in tools:
        for fault in tool.faults:
            yield (("wrong    ", Ink.BAD), (f"{tool.tool}  ", Ink.BOLD), (_said(fault), Ink.PLAIN))


def _trial_lines(tools: Sequence[ToolReport], *, is_full: bool) -> Iterator[Line]:
    """What the gate does to made-up calls, and what could be declared."""
    tried = [tool for tool in tools if tool.trials or tool.patch]
    if tried:
        yield (("made-up calls, as the gate judges them:", Ink.PLAIN),)
    for tool in tried:
        is_fine = not tool.faults and all(
            (trial.decision == "allow") is (trial.tries == _ORDERED) for trial in tool.trials
        )
        says = "; ".join(f"{trial.tries}: {trial.decision} {trial.code}".strip() for trial in tool.trials)
        yield ((f"  {tool.tool}  ", Ink.BOLD), (says, Ink.GOOD if is_fine else Ink.WAITS))
        if is_full or not is_fine:
            told = [trial.request or "; ".join(trial.reasons) for trial in tool.trials[:1]]
            yield from (((f"    {_said(text)}", Ink.FAINT),) for text in told)
        if is_full:
            yield from (((f"    {_said(kind)}", Ink.FAINT),) for kind in tool.kinds)
        if tool.patch:
            yield ((f"    could declare {_said(tool.patch)}", Ink.WAITS),)


def _undeclared(tool: ToolReport) -> Iterator[str]:
    if tool.at_worst:
        yield f"{', '.join(tool.at_worst)} (risk {tool.risk})"
    if tool.gaps:
        yield f"its category demands {', '.join(tool.gaps)}, to check {_said(tool.checks)}"
    if tool.is_unverified:
        yield "nothing verifies what it did: declare `verify`, or a result type that an error message does not fit"
    if tool.is_unrepeatable:
        yield "no idempotency_key: a call in doubt cannot be repeated"


def _condition_lines(found: BoundaryChecked, *, is_full: bool) -> Iterator[Line]:
    """The conditions that look at every call, and those that these tools cannot meet."""
    if found.conditions:
        idle = f"; {len(found.idle)} of them cannot be met by these tools" if found.idle else ""
        where = "" if is_full or not found.idle else " (--full says why)"
        looks = (
            f"{found.conditions} conditions look at every call besides{idle}{where}; `remit boundary show` lists them"
        )
        yield ((looks, Ink.FAINT),)
    for one in found.idle if is_full else ():
        yield (("never met ", Ink.WAITS), (_said(one.name), Ink.BOLD), (f"  {_said(one.why)}", Ink.PLAIN))


def _shown_lines(shown: BoundaryShown) -> Iterator[Line]:
    yield ((f"boundary {_said(shown.name)}", Ink.BOLD), (f", mode {shown.mode}, version {shown.version}", Ink.PLAIN))
    width = max(len(_said(line.key)) for line in shown.lines) + 2
    dimension = ""
    for line in shown.lines:
        if line.dimension != dimension:
            dimension = line.dimension
            yield ((dimension, Ink.NAME),)
        yield ((f"  {_said(line.key):<{width}}", Ink.FAINT), (_said(line.says), Ink.PLAIN))


def _difference_lines(found: Sequence[Difference]) -> Iterator[Line]:
    width = max(len(one.key) for one in found) + 2
    for one in found:
        pieces = [(f"{one.key:<{width}}", Ink.BOLD)]
        sides = (("more", one.more, Ink.BAD), ("less", one.less, Ink.GOOD), ("other", one.other, Ink.PLAIN))
        for word, said, ink in sides:
            if said:
                gap = "  " if len(pieces) > 1 else ""
                pieces.append((f"{gap}{word}: {_said(', '.join(said))}", ink))
        yield pieces


def _difference_values(one: Difference) -> JsonObject:
    return {"key": one.key, "more": one.more, "less": one.less, "other": one.other}


def _said(text: str) -> str:
    """A text of a file on one line, and no longer than a line."""
    return printable_line(text, _SAID_CHARS_MAX)
