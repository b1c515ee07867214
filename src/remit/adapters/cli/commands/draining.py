"""The command that delivers what a queue holds to a webhook, whose answers may decide.

Rule 1: every item is one line or one object: delivered or not, and what the webhook decided.
Rule 2: what the webhook says is data; it is escaped where it is printed.
"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from remit.adapters.cli.event_loop import in_loop
from remit.adapters.cli.inputs import as_usage, wrong_usage
from remit.adapters.cli.options import COMMON, Common
from remit.adapters.cli.screen.terminal import Terminal
from remit.core.failure import EXIT_FAILED, EXIT_OK
from remit.core.limits.queue import Delivery, check_name, check_webhook


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
    follow: Annotated[bool, Parameter(help="Go on until somebody ends it.")] = False,
    common: Common = COMMON,
    terminal: Annotated[Terminal, Parameter(parse=False)],
) -> int:
    """Deliver what a queue holds to a webhook, signed, and hear what it decides."""
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
                _tell(terminal, delivery)
            # What was decided is carried out before the store is left.
            await system.settle()
        return EXIT_FAILED if failed else EXIT_OK

    return in_loop(deliver())


def _tell(terminal: Terminal, delivery: Delivery) -> None:
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
