"""A host node: an agent that runs elsewhere proposes calls one by one, makes them, and tells what came of them.

Rule 1: a proposed call is judged by the same checks as any other; it is issued, held for a person, or refused, and nothing
        that comes of it moves the run. Only the agent's own word that it is done, a condition that stops, a signal or an
        unanswered question about an outcome ends it.
Rule 2: a call that a person approved while no agent waited for the answer is withheld until exactly it is proposed again, or
        what the person has changed; then it is made, once, as it was approved.
Rule 3: a person's no to a call holds for the rest of the run, whatever the call does.
Rule 4: an effect that was made without being allowed is a fact: it is counted at its worst, and the run ends as unsafe.
Rule 5: the agent's word that it is done ends a paused run, too. What it was allowed by a person and never came for was not
        made, and costs nothing.
"""

from remit.core.failure import ArrivalFault, Ending, IllegalArrival, Refusal
from remit.core.journal.arrivals import CallProposed, HostFinished, TextShown
from remit.core.journal.commands import CallTool
from remit.core.journal.proposed_call import ProposedCall, Provenance
from remit.core.journal.rulings import CallTaken, EffectUnallowed
from remit.core.record import replace
from remit.core.work.graph import Node, NodeKind, NodeOutcome
from remit.kernel.authority.authorize import CHECKS, authorize
from remit.kernel.authority.call_rulings import hold_call, issue_call, refuse_call
from remit.kernel.authority.verdict import ALLOWED, Judgement
from remit.kernel.budget.spend import WORST_CHARGES
from remit.kernel.results.endings import head_for, leave_untaken
from remit.kernel.rules.signal import unpark
from remit.kernel.tally import Tally


def enter_host(tally: Tally, node: Node) -> None:
    """Wait for what the agent proposes."""


def on_proposed(tally: Tally, arrival: CallProposed) -> str | None:
    """Order, hold or refuse one call."""
    state = tally.state
    _expect_host(tally)
    if tally.paused:
        message = f"run {state.run_id} is paused, so nothing can be proposed now; resume the run first"
        raise IllegalArrival(ArrivalFault.PAUSED, message)
    call = arrival.call
    tally.proposed = (call,)
    if arrival.takes:
        _take(tally, arrival)
        return None
    by = state.people.turned_away.get((call.tool, call.arguments_hash)) if state.people.turned_away else None
    if by is not None:
        call = replace(call, provenance=Provenance.REFUSED, reasons=(f"{by} said no to exactly this call",))
    # A read on this machine is never traced, so the check that hears a person's no is not among its own.
    verdict = authorize(call, tally, None if by is None else CHECKS)
    if verdict is ALLOWED:
        issue_call(tally, call)
    elif verdict.judgement is Judgement.ASK:
        hold_call(tally, call)
    else:
        refuse_call(tally, call, verdict.code, verdict.reason)
        if verdict.code == Refusal.UNSAFE:
            return head_for(tally, Ending.UNSAFE_DETECTION, message=f"{call.tool}: {verdict.reason}")
    return None


def _take(tally: Tally, arrival: CallProposed) -> None:
    """Have an approved call made that waited for the agent that proposed it."""
    command, call = tally.state.commands.open.get(arrival.takes), arrival.call
    is_meant = (
        isinstance(command, CallTool)
        and command.tool == call.tool
        and call.arguments_hash in (command.arguments_hash, command.instead_of)
    )
    if not is_meant or arrival.takes not in tally.state.commands.withheld:
        message = f"command {arrival.takes!r} of run {tally.state.run_id} is no approved call that waits to be made"
        raise IllegalArrival(ArrivalFault.UNKNOWN_COMMAND, message)
    tally.rule(CallTaken(arrival.takes))


def on_shown(tally: Tally, arrival: TextShown) -> str | None:
    """End the run over an effect that was not allowed; any other text counts when the next call is judged."""
    _expect_host(tally)
    if arrival.made is None:
        return None
    return head_for(tally, Ending.UNSAFE_DETECTION, message=note_unallowed(tally, arrival.made))


def note_unallowed(tally: Tally, made: ProposedCall) -> str:
    """Count an effect that was not allowed, and say so in words."""
    tool = tally.state.derived.tools.get(made.tool)
    charged = WORST_CHARGES if tool is None else tally.state.derived.charges[made.tool]
    for dimension, amount in charged:
        tally.left[dimension] -= amount
    reason = f"{made.tool} was made by the agent elsewhere without being allowed"
    tally.rule(EffectUnallowed(tally.next_id(), made.tool, reason, charged))
    return reason


def on_finished(tally: Tally, arrival: HostFinished) -> str:
    """End the run; what is still open is told by its ending."""
    _expect_host(tally)
    for command in map(tally.state.commands.open.__getitem__, tally.state.commands.withheld):
        assert isinstance(command, CallTool), "an agent elsewhere makes calls and nothing else"
        leave_untaken(tally, command)
    # No process is left that a pause could hold back.
    tally.paused = False
    return unpark(tally) or NodeOutcome.ANSWERED


def _expect_host(tally: Tally) -> None:
    if tally.graph.nodes[tally.node].kind is not NodeKind.HOST:
        message = f"run {tally.state.run_id} makes its calls itself, so no agent outside proposes any"
        raise IllegalArrival(ArrivalFault.NOT_WAITING, message)
