"""What runs cost, as a table for people and as values for programs.

Rule 1: a column is there when a row has something in it; money and tokens always are.
Rule 2: names come from models, tools and callers: they are cut, and shown as text that no terminal obeys.
Rule 3: the shares are drawn for people at a terminal that has room for them, and only where there is money to share.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from remit.adapters.cli.screen.colours import Ink, Line, columns_of
from remit.adapters.cli.screen.terminal import Terminal
from remit.adapters.cli.screen.widths import cells
from remit.core.limits.budget import FIELDS, GAUGES, Dimension
from remit.core.record import JsonObject
from remit.observe.cost.charges import totalled
from remit.observe.cost.cost_report import CostReport, Grouping, Row
from remit.observe.figures import duration, money
from remit.observe.plain import printable_line

NAME_CHARS_MAX = 40
SHARE_CHARS = 20
_GAP = "  "
_FULL, _FULL_ASCII = "█", "#"

_TITLES = {Grouping.EACH_RUN: "run"}
_NAMELESS = {
    Grouping.TENANT: "(no tenant)",
    Grouping.NODE: "(no node)",
    Grouping.TOOL: "(no tool)",
    Grouping.MODEL: "(no model)",
}


class _Column(NamedTuple):
    """A column of numbers: what stands above it, and how a row fills it."""

    title: str
    text_of: Callable[[Row], str]
    amount_of: Callable[[Row], int]


def _counting(title: str, dimension: Dimension) -> _Column:
    def amount_of(row: Row) -> int:
        return dict(row.used).get(int(dimension), 0)

    return _Column(title, lambda row: f"{amount_of(row):,}", amount_of)


_COST = _Column("cost", lambda row: money(row.cost_microusd), lambda row: row.cost_microusd)
_ALWAYS = (
    _COST,
    _counting("tokens in", Dimension.INPUT_TOKENS),
    _counting("tokens out", Dimension.OUTPUT_TOKENS),
)
_WHERE_USED = (
    _counting("tool calls", Dimension.TOOL_CALLS),
    _counting("external", Dimension.EXTERNAL_API_CALLS),
    _counting("reviews", Dimension.HUMAN_REVIEWS),
    # Of models on the user's own hardware, which may have a GPU or none.
    _Column("model time", lambda row: duration(row.gpu_ms), lambda row: row.gpu_ms),
    _Column("in part", lambda row: f"{row.in_part:,}", lambda row: row.in_part),
)
_RUNS = _Column("runs", lambda row: f"{row.runs:,}", lambda row: row.runs)
# What has a column; everything else that was used stands below the table.
_IN_COLUMNS = frozenset(
    {
        Dimension.INPUT_TOKENS,
        Dimension.OUTPUT_TOKENS,
        Dimension.TOOL_CALLS,
        Dimension.EXTERNAL_API_CALLS,
        Dimension.HUMAN_REVIEWS,
    }
)


def report_values(report: CostReport, limit: int) -> JsonObject:
    """A report for programs: every dimension of every row, used or not."""
    shown, rest = _cut(report.rows, limit)
    return {
        "by": report.by.value,
        "rows": [_row_values(row) for row in shown],
        "rest": None if rest is None else {"rows": len(report.rows) - len(shown), **_amount_values(rest)},
        "total": _row_values(report.total),
        "runs": report.roots,
        "succeeded": report.succeeded,
        "forks": report.forks,
        "cost_per_success_microusd": report.cost_per_success_microusd,
    }


def report_lines(terminal: Terminal, report: CostReport, limit: int) -> Iterator[Line]:
    """A report for people: the rows, the total, what else was counted, and what a success cost."""
    if not report.roots:
        yield [("no run is chosen by that; `remit runs` lists those there are", Ink.PLAIN)]
        return
    shown, rest = _cut(report.rows, limit)
    rows = [(_name(row, report.by), row) for row in shown]
    if rest is not None:
        rows.append((f"and {len(report.rows) - len(shown):,} more", rest))
    yield from _table(terminal, report, rows)
    yield [("", Ink.PLAIN)]
    yield from ([(line, Ink.PLAIN)] for line in _foot(report))


def _cut(rows: Sequence[Row], limit: int) -> tuple[Sequence[Row], Row | None]:
    """The rows that are shown, and the others as one, if there are any; one alone takes no more room than itself."""
    if not limit or len(rows) <= limit + 1:
        return rows, None
    others = rows[limit:]
    return rows[:limit], Row(
        "",
        # A run may have had a part in several rows, so theirs cannot be added up.
        0,
        tuple(sorted(totalled(row.used for row in others).items())),
        sum(row.gpu_ms for row in others),
        sum(row.cost_microusd for row in others),
    )


def _table(terminal: Terminal, report: CostReport, rows: Sequence[tuple[str, Row]]) -> Iterator[Line]:
    columns = [*_ALWAYS, *(column for column in _WHERE_USED if column.amount_of(report.total))]
    if report.by is not Grouping.EACH_RUN:
        columns.append(_RUNS)
    title = _TITLES.get(report.by, report.by.value)
    every = [*rows, ("total", report.total)]
    name_cells = max(cells(name) for name, _ in [*every, (title, report.total)])
    widths = [max(len(c.title), *(len(_shown(c, row)) for _, row in every)) for c in columns]
    table_cells = name_cells + sum(len(_GAP) + width for width in widths)
    has_shares = (
        terminal.is_a_terminal
        and report.total.cost_microusd > 0
        and len(rows) > 1
        and table_cells + len(_GAP) + SHARE_CHARS <= columns_of(terminal)
    )
    mark = _FULL if terminal.has_unicode else _FULL_ASCII
    titles = "".join(_GAP + c.title.rjust(width) for c, width in zip(columns, widths, strict=True))
    yield [(_padded(title, name_cells) + titles, Ink.FAINT)]
    for name, row in every:
        numbers = "".join(_GAP + _shown(c, row).rjust(width) for c, width in zip(columns, widths, strict=True))
        is_total = row is report.total
        share = f"{_GAP}{_share(row, report.total, mark)}" if has_shares and not is_total else ""
        yield [(_padded(name, name_cells) + numbers, Ink.BOLD if is_total else Ink.PLAIN), (share, Ink.NAME)]


def _foot(report: CostReport) -> Iterator[str]:
    used = dict(report.total.used)
    more = [(d, amount) for d, amount in sorted(used.items()) if d not in _IN_COLUMNS and d not in GAUGES]
    if more:
        yield f"also used: {', '.join(_amount(d, amount) for d, amount in more)}"
    if gauges := [_amount(d, amount) for d, amount in sorted(used.items()) if d in GAUGES]:
        yield f"at most at once: {', '.join(gauges)}"
    if report.forks:
        what = "1 run is a fork" if report.forks == 1 else f"{report.forks:,} runs are forks"
        yield f"{what}; what was copied was paid for by the origin"
    runs = f"{report.succeeded:,} of {report.roots:,} run{'s' if report.roots != 1 else ''} succeeded"
    runs += f", {report.total.in_part:,} in part" if report.total.in_part else ""
    each = report.cost_per_success_microusd
    yield runs if each is None else f"{runs}; cost per successful run, what failed included: {money(each)}"


def _row_values(row: Row) -> JsonObject:
    return {"name": row.name, "runs": row.runs, "in_part": row.in_part, **_amount_values(row)}


def _amount_values(row: Row) -> JsonObject:
    used = dict(row.used)
    known = {name: used.pop(dimension, 0) for dimension, name in enumerate(FIELDS)}
    unknown = {_words(dimension): amount for dimension, amount in used.items()}
    return {"cost_microusd": row.cost_microusd, "gpu_ms": row.gpu_ms, "used": {**known, **unknown}}


def _name(row: Row, by: Grouping) -> str:
    return printable_line(row.name, NAME_CHARS_MAX) or _NAMELESS.get(by, "")


def _shown(column: _Column, row: Row) -> str:
    """What a row says in a column; nothing is a dash, so that the rest stands out. Money is always said."""
    return column.text_of(row) if column is _COST or column.amount_of(row) else "-"


def _share(row: Row, total: Row, mark: str) -> str:
    """How much of the whole a row is; something is never nothing."""
    filled = SHARE_CHARS * row.cost_microusd // total.cost_microusd
    return mark * max(filled, 1 if row.cost_microusd else 0)


def _padded(text: str, width: int) -> str:
    return text + " " * (width - cells(text))


def _words(dimension: int) -> str:
    """The name of a dimension; a journal of a later version may count one that is unknown here."""
    return FIELDS[dimension] if 0 <= dimension < len(FIELDS) else f"dimension_{dimension}"


def _amount(dimension: int, amount: int) -> str:
    if dimension == Dimension.WALL_CLOCK_MS:
        return f"wall_clock {duration(amount)}"
    if dimension == Dimension.INFERENCE_COST_MICROUSD:
        return f"inference_cost {money(amount)}"
    return f"{_words(dimension)} {amount:,}"
