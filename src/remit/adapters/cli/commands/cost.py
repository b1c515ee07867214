"""The command that says what runs cost.

Rule 1: a run that cannot be read is named and left out, and the command fails: a sum that lacks something says so.
"""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import DAYS_MAX, as_usage, text_from_file, wrong_usage
from remit.adapters.cli.arguments.options import COMMON, CommonOptions, whole_number
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.colours import print_lines
from remit.adapters.cli.screen.cost_table import report_lines, report_values
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.durations import DAY_MS, duration_ms
from remit.core.failure import EXIT_FAILED, EXIT_OK
from remit.observe.cost.cost_report import NO_PRICES, CostReport, Grouping, Prices, parse_prices
from remit.observe.plain import printable_line

PRICES_UNREADABLE = "PRICES_UNREADABLE"

# A screenful; what is beyond it stands in one row.
ROWS_SHOWN = 20
_NAME_CHARS_MAX = 80


def cost(
    *runs: Annotated[
        str,
        Parameter(name="RUN", help="Only these runs and what is beneath them: ids, the beginning of one, or `last`."),
    ],
    by: Annotated[
        Grouping,
        Parameter(help="What the rows stand for; `run` unless said. `each-run` has runs beneath others apart."),
    ] = Grouping.RUN,
    since: Annotated[
        str, Parameter(help="Only runs that began since then: an age such as 30min, 12h, 7d or 2w, or a date, in UTC.")
    ] = "",
    tenant: Annotated[str | None, Parameter(help="Only runs of this tenant.")] = None,
    prices: Annotated[
        Path | None,
        Parameter(help="A YAML or JSON file that says what calls, GPU seconds and reviews cost; `-` is stdin."),
    ] = None,
    limit: Annotated[
        int, Parameter(converter=whole_number, help="How many rows to show at most, 20 unless said; 0 shows all.")
    ] = ROWS_SHOWN,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Add up what runs cost: by run, tenant, day, node, tool or model."""
    if limit < 0:
        raise wrong_usage(f"--limit {limit} is less than 0; 0 shows all")
    since_ms = since_ms_from(since, time.time_ns() // 1_000_000) if since else 0
    priced = _prices_in(prices)

    async def look() -> CostReport:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            return await system.costs(*runs, by=by, since_ms=since_ms, tenant_id=tenant, prices=priced)

    report = in_loop(look())
    _answer(terminal, report, limit)
    return EXIT_FAILED if report.unread else EXIT_OK


def since_ms_from(text: str, now_ms: int) -> int:
    """The moment that `--since` names: so long ago, or a date, which is one in UTC unless it says otherwise."""
    age_ms = duration_ms(text)
    if age_ms is not None and age_ms <= DAYS_MAX * DAY_MS:
        return now_ms - age_ms
    if age_ms is None and (found := _date_ms(text)) is not None:
        return found
    shown = printable_line(text, _NAME_CHARS_MAX)
    raise wrong_usage(
        f"--since {shown!r} is no age (30min, 12h, 7d, 2w; at most {DAYS_MAX}d) and no date (2026-01-31, 2026-01-31T12:00)"
    )


def _date_ms(text: str) -> int | None:
    try:
        said = datetime.fromisoformat(text)
        return int((said if said.tzinfo is not None else said.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        # It is no date, or none that a calendar has.
        return None


def _prices_in(file: Path | None) -> Prices:
    if file is None:
        return NO_PRICES
    with as_usage():
        return parse_prices(text_from_file(file, PRICES_UNREADABLE), str(file))


def _answer(terminal: Terminal, report: CostReport, limit: int) -> None:
    if terminal.is_json:
        terminal.values({**report_values(report, limit), "unread": list(report.unread)})
        return
    print_lines(terminal, report_lines(terminal, report, limit))
    for run_id in report.unread:
        shown = printable_line(run_id, _NAME_CHARS_MAX)
        terminal.remark(f"run {shown} cannot be read and is not in these sums; `remit verify {shown}` says why")
