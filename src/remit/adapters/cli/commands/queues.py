"""The commands about queues of people: what each holds, taking note of an ending, and delivery to a webhook.

Rule 1: a program that watches over people's work learns by the exit code that something grave is overdue.
Rule 2: summaries and answers of webhooks hold words of models, tools and people; they are escaped where they are printed.
Rule 3: every delivery is one line or one object: delivered or not, and what the webhook decided.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from remit.adapters.cli.arguments.options import COMMON, ByWhom, CommonOptions, RunName, keyboard_user
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK, EXIT_WAITING

if TYPE_CHECKING:
    from remit.adapters.cli.screen.colours import Line
    from remit.core.limits.queue import Delivery
    from remit.observe.people.queue_items import QueueItem, QueueShown

# An id of a question of a child of a child is longer than any column; it then pushes the rest aside.
_ID_CHARS = 24
_COLUMNS = (12, 6, 6, 10, 6, 9, 9, 9)
_HEADS = ("queue", "items", "high", "moderate", "low", "outside", "oldest", "overdue")


def queues(
    name: Annotated[
        str, Parameter(name="NAME", help="What this queue holds; without it, all queues at a glance.")
    ] = "",
    /,
    *,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Show what waits for people: every queue at a glance, or what one of them holds."""
    from remit.adapters.cli.arguments.inputs import as_usage
    from remit.adapters.cli.event_loop import in_loop
    from remit.core.limits.queue import check_name

    if name:
        with as_usage():
            check_name(name)

    async def look() -> int:
        from remit.assemble import opened_to_read
        from remit.observe.people.queue_items import queue_overview

        async with opened_to_read(common.settings()) as system:
            items, limits = await system.queues.items(name), system.queues.limits
        if name:
            _show_items(terminal, name, items)
        else:
            _show_queues(terminal, queue_overview(items, limits))
        return EXIT_WAITING if any(item.is_overdue and item.severity == "high" for item in items) else EXIT_OK

    return in_loop(look())


def ack(
    run: RunName,
    /,
    *,
    by: ByWhom = "",
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Take note of how a run ended, so that its queue no longer holds it."""
    from remit.adapters.cli.event_loop import in_loop

    async def note() -> None:
        from remit.assemble import reopened

        async with reopened(common.settings()) as system:
            run_id = (await system.archive.find(run)).run_id
            receipt = await system.queues.acknowledge(run_id, by or keyboard_user())
        if terminal.is_json:
            terminal.values(receipt)
        else:
            from remit.adapters.cli.screen.response_lines import time_text

            terminal.line(f"run {run_id} acknowledged by {receipt.by} at {time_text(receipt.at_ms)}")

    in_loop(note())
    return EXIT_OK


def drain(
    name: Annotated[str, Parameter(name="NAME", help="The queue to deliver.")],
    /,
    *,
    webhook: Annotated[
        str, Parameter(help="Where to: http://HOST/PATH or https://HOST/PATH; that of queues.yaml unless said.")
    ] = "",
    key_file: Annotated[
        Path | None, Parameter(help="A file with the key to sign with; the secret `webhook_key` unless said.")
    ] = None,
    once: Annotated[bool, Parameter(help="Deliver what there is and end; that is the default.")] = False,
    follow: Annotated[bool, Parameter(help="Go on until it is interrupted.")] = False,
    common: CommonOptions = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Deliver what a queue holds to a webhook, signed, and hear what it decides."""
    from remit.adapters.cli.arguments.inputs import as_usage, wrong_usage
    from remit.adapters.cli.event_loop import in_loop
    from remit.core.limits.queue import check_name, check_webhook

    if once and follow:
        raise wrong_usage("--once and --follow are opposites; say one of them")
    with as_usage():
        check_name(name)
        if webhook:
            check_webhook(webhook)

    async def deliver() -> int:
        from remit.assemble import drain_for, reopened

        failed = 0
        async with reopened(common.settings()) as system:
            url = webhook or system.queues.limits_of(name).webhook
            if not url:
                raise wrong_usage(f"queue {name} has no webhook; name one with --webhook, or in queues.yaml")
            work = await drain_for(system, common.settings(), name, url, key_file)
            async for delivery in work.follow() if follow else work.once():
                failed += not delivery.is_delivered
                _show_delivery(terminal, delivery)
            # What was decided is carried out before the store is left.
            await system.settle()
        return EXIT_FAILED if failed else EXIT_OK

    return in_loop(deliver())


def _show_queues(terminal: Terminal, shown: "Sequence[QueueShown]") -> None:
    from remit.adapters.cli.screen.colours import print_lines

    if terminal.is_json:
        for queue in shown:
            terminal.values(queue)
        return
    print_lines(terminal, _overview_lines(shown))


def _overview_lines(shown: "Sequence[QueueShown]") -> "Iterator[Line]":
    from remit.adapters.cli.screen.colours import Ink
    from remit.observe.figures import duration

    yield (("".join(head.ljust(width) for head, width in zip(_HEADS, _COLUMNS, strict=True)) + "limit", Ink.FAINT),)
    for queue in shown:
        cells = (queue.name, queue.items, queue.high, queue.moderate, queue.low, queue.outside)
        oldest = duration(queue.oldest_ms) if queue.items else "-"
        row = "".join(str(cell).ljust(width) for cell, width in zip((*cells, oldest), _COLUMNS, strict=False))
        limits = [f"{queue.load_max} items"] if queue.load_max else []
        limits += [duration(queue.age_ms_max)] if queue.age_ms_max else []
        limits += [f"answered by {' or '.join(queue.answered_by)}"] if queue.answered_by else []
        ink = Ink.BAD if queue.overdue else Ink.PLAIN
        full = ((" saturated", Ink.BAD),) if queue.is_saturated else ()
        yield (
            (row, Ink.PLAIN),
            (str(queue.overdue).ljust(_COLUMNS[-1]), ink),
            (", ".join(limits) or "-", Ink.FAINT),
            *full,
        )


def _show_items(terminal: Terminal, name: str, items: "Sequence[QueueItem]") -> None:
    from remit.adapters.cli.screen.colours import print_lines

    if terminal.is_json:
        for item in items:
            terminal.values(item)
        return
    print_lines(terminal, (line for item in items for line in _item_lines(item)))
    if not items:
        terminal.remark(f"queue {name} holds nothing")


def _item_lines(item: "QueueItem") -> "Iterator[Line]":
    from remit.adapters.cli.screen.colours import Ink
    from remit.adapters.cli.screen.response_lines import time_text
    from remit.core.run.approval import What
    from remit.observe.figures import duration
    from remit.observe.people.packets import GROUP_MARK

    grave = Ink.BAD if item.severity == "high" else Ink.PLAIN
    late = [(" overdue", Ink.BAD)] if item.is_overdue else []
    late += [(" outside", Ink.WAITS)] if item.is_outside else []
    yield (
        (item.id.ljust(_ID_CHARS), Ink.NAME),
        (f" {item.severity} {item.what} ", grave),
        (f"for {duration(item.age_ms)}", Ink.PLAIN),
        *late,
        (f"  {item.summary}", Ink.PLAIN),
    )
    facts = [item.trigger.value, item.route.value]
    if item.answered_by:
        facts.append(f"answered by {' or '.join(item.answered_by)}")
    if item.silences:
        facts.append(f"after {item.silences} who kept silent")
    if item.group and item.group != item.id:
        facts.append(f"held with {item.group}{GROUP_MARK}")
    ending = item.what is What.ENDING
    facts.append(f"remit queues ack {item.run_id}" if ending else f"open until {time_text(item.expires_at_ms)}")
    yield ((f"    {'; '.join(facts)}", Ink.FAINT),)


def _show_delivery(terminal: Terminal, delivery: "Delivery") -> None:
    if terminal.is_json:
        terminal.values(delivery)
        return
    how = "delivered" if delivery.is_delivered else "not delivered"
    what = f"  {delivery.decision} by {delivery.by}" if delivery.decision else ""
    why = (
        f"  {delivery.code}: {delivery.message}"
        if delivery.code
        else f"  {delivery.message}"
        if delivery.message
        else ""
    )
    terminal.line(f"{delivery.id}  {how}{what}{why}")
