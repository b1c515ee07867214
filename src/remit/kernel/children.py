"""Starting runs beneath this one, each with a lease on this run's budget.

Rule 1: the lease is reserved in the parent's turn, so the sum of leases never exceeds what remains.
Rule 2: a child's run id follows from the command that starts it, so starting it twice starts it once.
Rule 3: a child that a model asked for is one level deeper; one that the graph declares is not.
"""

from remit.core.arrivals import ProposedCall
from remit.core.budget import Charges, Dimension, lease_of
from remit.core.commands import StartChild
from remit.core.record import Text
from remit.kernel.clock import deadline_at_ms
from remit.kernel.tally import Tally


def child_charges(lease: Charges, call: Charges = ()) -> Charges:
    """What starting a child reserves: its lease, one child run, and the call that asked for it, if one did."""
    amounts: dict[int, int] = {int(Dimension.CHILD_RUNS): 1}
    for dimension, amount in (*lease, *call):
        amounts[dimension] = amounts.get(dimension, 0) + amount
    return tuple(sorted(amounts.items()))


def start_delegate(tally: Tally, call: ProposedCall) -> None:
    """Start the child that an authorized call of a delegating tool asks for."""
    tool = tally.state.tools[call.tool]
    start_child(
        tally,
        prompt=call.arguments,
        lease=lease_of(tool.lease),
        reserved=tally.state.tool_charges[call.tool],
        depth=tally.manifest.depth + 1,
        call=call,
    )


def start_child(
    tally: Tally, *, prompt: Text, lease: Charges, reserved: Charges, depth: int, call: ProposedCall | None = None
) -> None:
    """Order a child with its lease; it inherits this run's deadline, which may have stood still until now."""
    command_id = tally.next_id()
    run_id = f"{tally.state.run_id}.{command_id}"
    deadline = deadline_at_ms(tally)
    asked_by = () if call is None else (call.call_id, call.tool, call.arguments_hash)
    tally.order(StartChild(command_id, run_id, prompt, lease, depth, deadline, reserved, *asked_by))
