"""Orders and grants over the guard's protocol: the host gives orders, makes their look-ups, and says who confirmed the list.

Rule 1: orders that no person has confirmed narrow what the words allow and widen nothing.
Rule 2: a list is confirmed once, as it stands or as the person wants it; from then on it does not change.
Rule 3: a list comes before anything foreign is read and any effect is made. Later a person may change the list that was
        given, and nothing else.
Rule 4: a person confirms what the look-ups found, unless the boundary has them asked before.
Rule 5: a no means that nothing on the list is wanted: every effect asks.
"""

from typing import Any, NamedTuple

from remit.core.failure import RequestRejected
from remit.core.journal.arrivals import TextShown
from remit.core.journal.canonical import canonical_json
from remit.core.limits.authority import Confirm
from remit.core.record import JsonObject, replace
from remit.core.run.person import check_person
from remit.core.run.principal import Scope as MayDo
from remit.core.run.principal import expect_scope, person_for
from remit.core.work.orders import orders_json, orders_of
from remit.orchestrate.executors.reports import PersonApproved
from remit.orchestrate.facts.gate_trace import Tracer
from remit.orchestrate.facts.order_leases import why_too_late
from remit.orchestrate.guard.guard_parts import GuardParts
from remit.orchestrate.guard.open_run import OpenRun
from remit.orchestrate.guard.protocol import required_text, unfit
from remit.orchestrate.guard.waiting_calls import WaitingCall
from remit.orchestrate.loop.live import Live
from remit.orchestrate.loop.runner import Runner

GUARD_ORDERS_CONFIRMED = "GUARD_ORDERS_CONFIRMED"
GUARD_ORDERS_LATE = "GUARD_ORDERS_LATE"
GUARD_ORDERS_MISSING = "GUARD_ORDERS_MISSING"
GUARD_ORDERS_UNREAD = "GUARD_ORDERS_UNREAD"


class Confirmation(NamedTuple):
    """Who answers for the list, and how; empty where no person has confirmed it yet."""

    by: str = ""
    is_wanted: bool = False


async def take_orders(operation: JsonObject, parts: GuardParts, live: Live) -> JsonObject:
    """Take in what an operation says of the orders of a run, and give what stands then.

    The list is shown as a person reads it, with what was looked up so far, beside the reads that are still to fill it.
    """
    said, runner = _confirmation_in(operation, parts), parts.runner
    report = _report_of(operation.get("orders"), said, await runner.tracer(live))
    if report is not None:
        await runner.rule_on(live, report)
    return _shown(await runner.tracer(live))


def _confirmation_in(operation: JsonObject, parts: GuardParts) -> Confirmation:
    """Who confirms the orders of an operation, if a person does; raises RequestRejected for a person who may not."""
    approve = operation.get("approve")
    if approve is None and operation.get("by") is None:
        return Confirmation()
    if not isinstance(approve, bool) or "by" not in operation:
        raise unfit("approve", approve, "true or false, beside the person in `by` who says so")
    by = check_person(required_text(operation, "by"))
    parts.check_name("by", by)
    expect_scope(parts.principal, MayDo.APPROVE, "orders")
    return Confirmation(person_for(parts.principal, by), approve)


def _report_of(given: Any, said: Confirmation, tracer: Tracer) -> TextShown | None:
    """What an operation reports to its run; None where it only asks what stands."""
    book = tracer.gate.book
    if given is None and not said.by:
        return None
    if book is not None and book.is_confirmed:
        message = (
            f"the orders of this run were confirmed by {book.confirmed_by}; what else is wanted is approved by itself"
        )
        raise RequestRejected(GUARD_ORDERS_CONFIRMED, message)
    if given is None and book is None:
        raise RequestRejected(GUARD_ORDERS_MISSING, "this run has no orders that could be confirmed; give them first")
    if given is not None and not (book is not None and said.by) and (why := why_too_late(tracer.gate)):
        message = (
            f"{why}, so a list of orders comes too late: its shape is fixed before anything foreign is read and any effect is "
            "made; approve what is wanted call by call, or give the orders to a new run"
        )
        raise RequestRejected(GUARD_ORDERS_LATE, message)
    wanted = orders_of([] if said.by and not said.is_wanted else book.orders if given is None and book else given)
    stands = tracer.with_orders(wanted)
    if said.is_wanted and tracer.gate.authority.confirm is Confirm.AFTER and (unread := stands.unread()):
        message = (
            f"the look-up {unread} has not been made, so the list would be confirmed before it shows what was found; make its reads "
            "and confirm it then, or set `authority: {confirm: before}`"
        )
        raise RequestRejected(GUARD_ORDERS_UNREAD, message)
    return TextShown(orders=canonical_json(orders_json(stands.orders)).decode(), by=said.by)


def _shown(tracer: Tracer) -> JsonObject:
    """The list as a person reads it now, the reads that fill it, and who has confirmed it."""
    book = tracer.gate.book
    if book is None:
        return {"list": [], "reads": [], "confirmed_by": ""}
    reads = [{"tool": read.name, "args": read.arguments} for read in tracer.order_reads]
    return {"list": list(book.lines()), "reads": reads, "confirmed_by": book.confirmed_by}


async def use_grant(runner: Runner, run: OpenRun, waiting: WaitingCall) -> JsonObject:
    """Approve a waiting call by a standing grant; gives the verdict that allows it, empty where no grant covers it."""
    report = None if runner.grants is None else await runner.grants(run.state)
    if not isinstance(report, PersonApproved) or report.command_id != waiting.question.id:
        return {}
    await runner.rule_on(run.live, replace(report, is_awaited=True))
    return {"decision": "allow", "code": "", "reasons": [], "fix": "", "approved_by": report.by, "grant": report.grant}
