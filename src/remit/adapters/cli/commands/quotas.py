"""The command that shows what tenants have left of their quotas.

Rule 1: `used` is what ended runs spent, `reserved` all that open ones may spend, `left` what the next run may begin with.
Rule 2: names of tenants come from callers: they are cut, and shown as text that no terminal obeys.
Rule 3: bars are drawn for people at a terminal that has room for them; in a file there are the numbers alone.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.options import COMMON, CommonOptions
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.colours import Ink, Line, columns_of, print_lines
from remit.adapters.cli.screen.response_lines import time_text
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_OK
from remit.core.limits.quota import Period, QuotaStanding
from remit.observe.plain import printable_line

NAME_CHARS_MAX = 80
NAMELESS = "(no tenant)"

_TITLES = ("quota", "used", "reserved", "left")
_DIMENSION_CHARS = 24
_GAP = "  "
# A bar of fewer characters tells nothing; more of them tell no more.
_BAR_CHARS_MIN, _BAR_CHARS_MAX = 8, 20
# Used, reserved, left.
_MARKS, _MARKS_ASCII = ("█", "▒", "░"), ("#", "+", ".")
# From here on a quota is nearly gone.
_NEARLY = 0.8


def quotas(
    *,
    tenant: Annotated[str | None, Parameter(help="Only this tenant; without it every tenant that has a quota.")] = None,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Show what tenants have left of their quotas, and when these renew."""

    async def look() -> None:
        from remit.assemble import QUOTAS, reopened

        settings = common.settings()
        async with reopened(settings) as system:
            names = await system.quotas.tenants() if tenant is None else [tenant]
            found = [at for name in names for at in await system.quotas.standings(name)]
        if terminal.is_json:
            for at in found:
                terminal.values(at)
        elif found:
            print_lines(terminal, _lines(terminal, found))
        else:
            whose = "no tenant has a" if tenant is None else f"tenant {printable_line(tenant, NAME_CHARS_MAX)} has no"
            terminal.line(f"{whose} quota; quotas are said in {settings.home / QUOTAS}")

    in_loop(look())
    return EXIT_OK


def _lines(terminal: Terminal, found: Sequence[QuotaStanding]) -> Iterator[Line]:
    widths = [max(len(title), *(len(_numbers(at)[place]) for at in found)) for place, title in enumerate(_TITLES)]
    room = columns_of(terminal) - 2 - _DIMENSION_CHARS - sum(widths) - len(_GAP) * (len(widths) + 1)
    bar_chars = min(room, _BAR_CHARS_MAX) if terminal.is_a_terminal and room >= _BAR_CHARS_MIN else 0
    marks = _MARKS if terminal.has_unicode else _MARKS_ASCII
    for (name, period), group in groupby(found, key=lambda at: (at.tenant, at.period)):
        rows = list(group)
        shown = printable_line(name, NAME_CHARS_MAX) if name else NAMELESS
        yield ((shown, Ink.BOLD), (f"{_GAP}{_span(period, rows[0].renews_at_ms)}", Ink.PLAIN))
        yield ((f"  {'':<{_DIMENSION_CHARS}}{_row(_TITLES, widths)}", Ink.FAINT),)
        for at in rows:
            numbers = f"  {at.dimension:<{_DIMENSION_CHARS}}{_row(_numbers(at), widths)}"
            bar = f"{_GAP}{_bar(at, bar_chars, marks)}" if bar_chars else ""
            yield ((numbers, Ink.PLAIN), (bar, _ink(at)))


def _span(period: Period, renews_at_ms: int | None) -> str:
    return "in all, never renews" if renews_at_ms is None else f"per {period.value}, renews {time_text(renews_at_ms)}"


def _row(texts: Sequence[str], widths: Sequence[int]) -> str:
    return "".join(f"{_GAP}{text:>{width}}" for text, width in zip(texts, widths, strict=True))


def _numbers(at: QuotaStanding) -> tuple[str, str, str, str]:
    return f"{at.quota:,}", f"{at.spent:,}", f"{at.reserved:,}", f"{at.left:,}"


def _bar(at: QuotaStanding, chars: int, marks: tuple[str, str, str]) -> str:
    """What is used and what is reserved of a quota; something is never nothing, and all is only where nothing is left."""
    used, reserved, left = marks
    ends = [_filled(amount, at, chars) for amount in (at.spent, at.spent + at.reserved)]
    return used * ends[0] + reserved * (ends[1] - ends[0]) + left * (chars - ends[1])


def _filled(amount: int, at: QuotaStanding, chars: int) -> int:
    if not amount:
        return 0
    return chars if amount >= at.quota else min(max(chars * amount // at.quota, 1), chars - 1)


def _ink(at: QuotaStanding) -> Ink:
    if not at.left:
        return Ink.BAD
    return Ink.WAITS if at.spent + at.reserved >= _NEARLY * at.quota else Ink.GOOD
