"""The command that looks whether everything is in place.

Rule 1: each line says what was looked at, how it is, what was seen, and where it is not fine the way out.
Rule 2: what is optional and not there is no failure; only a problem is.
Rule 3: what stops the next step comes first: what is broken, or that no model can be asked.
Rule 4: a key of a vendor is never shown, only whether there is one.
"""

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.colours import Ink, Line, columns_of, print_lines
from remit.adapters.cli.screen.terminal import Terminal, wants_colour
from remit.core.failure import EXIT_FAILED, EXIT_OK
from remit.observe.checkup import VENDOR_KEY, VENDORS, Check, CheckState
from remit.observe.plain import printable_line

_INKS = {
    CheckState.OK: Ink.GOOD,
    CheckState.MISSING: Ink.FAINT,
    CheckState.DOUBTFUL: Ink.WAITS,
    CheckState.PROBLEM: Ink.BAD,
}
# What has to be there before a model on this machine can be asked.
_LOCAL_PARTS = ("local.engine", "local.model")
_SEEN_CHARS_MAX = 400
_INDENT = (" " * 24, Ink.PLAIN)
# A path is not cut into more pieces than a person could put together again.
_COLUMNS_MIN = 40


def doctor(
    *,
    speed: Annotated[bool, Parameter(help="Load the local model, too, and measure how fast it answers.")] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Look whether store, disk, key and models are in place, and say what to do."""
    from remit.assemble import examine, measure_model

    settings = common.settings()
    checks = [*in_loop(examine(settings)), _of_terminal(terminal)]
    if speed:
        checks.append(in_loop(measure_model(settings)))
    is_well = not any(check.state is CheckState.PROBLEM for check in checks)
    first = next_step(checks)
    if terminal.is_json:
        terminal.values({"ok": is_well, "next": first, "checks": checks})
    else:
        print_lines(terminal, [((f"next: {first}", Ink.BOLD),)])
        print_lines(terminal, _lines(checks, columns_of(terminal)))
    return EXIT_OK if is_well else EXIT_FAILED


def next_step(checks: Sequence[Check]) -> str:
    """What stops a user from going on, with the way out; or what they can do now."""
    broken = [check for check in checks if check.state is CheckState.PROBLEM]
    if broken:
        way_out = f"; {broken[0].way_out}" if broken[0].way_out else ""
        return f"{broken[0].name} is broken: {printable_line(broken[0].seen, _SEEN_CHARS_MAX)}{way_out}"
    found = {check.name: check for check in checks}
    if all(_is_ok(found[part]) for part in _LOCAL_PARTS):
        return "everything is here; watch it with: remit demo"
    # A store has a key, too, and is no engine.
    for vendor in (name for name in VENDORS if _is_ok(found[f"{name}{VENDOR_KEY}"])):
        if _is_ok(found[vendor]):
            return f'everything is here to ask {vendor}; try: remit run "Hello" --engine {vendor}:MODEL'
        return f"{vendor} has a key, and its package is missing: {found[vendor].way_out}"
    return (
        "no model can be asked yet: remit models add smollm2 (on this machine), or set the key of a vendor, see below"
    )


def _is_ok(check: Check) -> bool:
    return check.state is CheckState.OK


def _of_terminal(terminal: Terminal) -> Check:
    if not terminal.is_a_terminal:
        return Check("terminal", CheckState.OK, "none: answers go to a file or a pipe, without colours")
    words = "draws lines" if terminal.has_unicode else "is not UTF-8, so trees are drawn with ASCII"
    colours = "colours" if wants_colour() else "no colours, as NO_COLOR or TERM asks"
    return Check("terminal", CheckState.OK, f"{terminal.columns} columns, {words}, {colours}")


def _lines(checks: Sequence[Check], columns: int) -> Iterator[Line]:
    for check in checks:
        first, *more = _wrapped(check.seen, columns)
        yield ((f"{check.state.value:<9}", _INKS[check.state]), (f"{check.name:<15}", Ink.BOLD), (first, Ink.PLAIN))
        yield from ((_INDENT, (line, Ink.PLAIN)) for line in more)
        if check.way_out:
            yield from ((_INDENT, (line, Ink.FAINT)) for line in _wrapped(f"-> {check.way_out}", columns))
    broken = sum(check.state is CheckState.PROBLEM for check in checks)
    said = "nothing is broken" if not broken else f"{broken} of {len(checks)} need attention"
    yield ((said, Ink.BAD if broken else Ink.GOOD),)


def _wrapped(text: str, columns: int) -> list[str]:
    """A text as lines that fit beside the name of what was looked at."""
    return wrap(printable_line(text, _SEEN_CHARS_MAX), max(columns - len(_INDENT[0]), _COLUMNS_MIN)) or [""]
