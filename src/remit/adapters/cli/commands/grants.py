"""The commands of standing grants: what a person approves beforehand, for more than one run.

Rule 1: a grant is shown with what is left of it; what it covers is shown as it will be compared.
Rule 2: names and values come from callers: they are shown as text that no terminal obeys.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.inputs import age_ms_from, orders_from_file, wrong_usage
from remit.adapters.cli.arguments.options import COMMON, ByWhom, CommonOptions, keyboard_user, whole_number
from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.screen.response_lines import time_text
from remit.adapters.cli.screen.terminal import Terminal, json_line
from remit.core.failure import EXIT_OK
from remit.core.limits.grant import GrantStanding
from remit.core.record import JsonObject
from remit.core.work.orders import orders_json
from remit.observe.plain import printable_line

TEXT_CHARS_MAX = 500


def listed(
    *,
    every: Annotated[bool, Parameter(name="--all", help="Those that are used up, expired or revoked, too.")] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """List what people have approved beforehand, and what is left of it."""

    async def look() -> None:
        from remit.assemble import opened_to_read

        async with opened_to_read(common.settings()) as system:
            found, now_ms = await system.grants.standings(), system.grants.now_ms
        shown = [one for one in found if every or not one.why_not(0, now_ms)]
        if terminal.is_json:
            for one in shown:
                terminal.values(_values(one, now_ms))
        for line in () if terminal.is_json else _lines(shown, now_ms):
            terminal.line(line)
        if not shown and not terminal.is_json:
            terminal.remark("no grant stands; `remit grants give` gives one, `--all` shows those that are over")

    in_loop(look())
    return EXIT_OK


def give(
    file: Annotated[Path | None, Parameter(name="FILE", help="A file of YAML or JSON with one order.")] = None,
    /,
    *,
    like: Annotated[str, Parameter(help="Cover exactly the call that a question, RUN/COMMAND, was about.")] = "",
    times: Annotated[
        int, Parameter(converter=whole_number, help="How often it may be used; 0 for as often as --amount lasts.")
    ] = 1,
    amount: Annotated[
        int,
        Parameter(converter=whole_number, help="How much it may spend in all, in the smallest unit of its currency."),
    ] = 0,
    until: Annotated[str, Parameter(help="For how long: 12h, 30d (30 days unless said).")] = "30d",
    who: Annotated[
        str | None, Parameter(help="Only for runs of this user; without it for every user of the tenant.")
    ] = None,
    tenant: Annotated[str | None, Parameter(help="For runs of this tenant; without it for runs of none.")] = None,
    by: ByWhom = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Approve an effect beforehand: so often or for so much, until then."""
    if (file is None) == (not like):
        raise wrong_usage("a grant needs one order: name a FILE with it, or a question with --like RUN/COMMAND")
    if who == "":
        raise wrong_usage(
            "--who '' names nobody; name the user whose runs it is for, or leave --who out for every user"
        )
    if tenant == "":
        raise wrong_usage(
            "--tenant '' names no tenant; name the tenant of the runs, or leave --tenant out for runs of none"
        )
    given = () if file is None else orders_from_file(file)
    if file is not None and len(given) != 1:
        raise wrong_usage(f"{str(file)!r} holds {len(given)} orders; a grant is of one")
    lasts_ms = age_ms_from(until, "--until")

    async def tell() -> None:
        from remit.assemble import opened_system

        # What is approved beforehand may be the first thing that a store is told.
        async with opened_system(common.settings()) as system:
            order = given[0] if given else await system.grants.like(like)
            until_ms = system.grants.now_ms + lasts_ms
            found = await system.grants.give(
                order,
                until_ms=until_ms,
                times=times,
                amount=amount,
                who=who or "",
                tenant=tenant or "",
                by=by or keyboard_user(),
            )
            _tell(terminal, found, system.grants.now_ms)

    in_loop(tell())
    return EXIT_OK


def revoke(
    grant: Annotated[str, Parameter(name="ID", help="The grant, as `remit grants list` names it.")],
    /,
    *,
    by: ByWhom = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Revoke a grant, so that a person is asked again."""

    async def tell() -> None:
        from remit.assemble import reopened

        async with reopened(common.settings()) as system:
            _tell(terminal, await system.grants.revoke(grant, by=by or keyboard_user()), system.grants.now_ms)

    in_loop(tell())
    return EXIT_OK


def _tell(terminal: Terminal, found: GrantStanding, now_ms: int) -> None:
    if terminal.is_json:
        terminal.values(_values(found, now_ms))
    else:
        for line in _lines([found], now_ms):
            terminal.line(line)


def _values(found: GrantStanding, now_ms: int) -> JsonObject:
    grant = found.grant
    return {
        "id": found.id,
        "order": orders_json((grant.order,))[0],
        "who": grant.who,
        "tenant": grant.tenant_id,
        "times_max": grant.times_max,
        "times_used": len(found.draws),
        "amount_max": grant.amount_max,
        "amount_used": found.spent,
        "until_ms": grant.until_ms,
        "by": found.by,
        "given_at_ms": found.at_ms,
        "revoked_by": found.revoked_by,
        "over": found.why_not(0, now_ms),
        "draws": [name for name, _ in found.draws],
    }


def _lines(found: Sequence[GrantStanding], now_ms: int) -> Iterator[str]:
    for one in found:
        grant = one.grant
        times = f"{len(one.draws)} of {grant.times_max} times" if grant.times_max else f"{len(one.draws)} times"
        money = f", {one.spent} of {grant.amount_max} spent" if grant.amount_max else ""
        whose = f" for {grant.who}" if grant.who else ""
        over = f"; over: {why}" if (why := one.why_not(0, now_ms)) else ""
        told = f"{one.id}  by {one.by}{whose}: {times}{money}, until {time_text(grant.until_ms)}{over}"
        yield printable_line(told, TEXT_CHARS_MAX)
        yield printable_line(f"     {json_line(orders_json((grant.order,))[0])}", TEXT_CHARS_MAX)
