"""A proposed call: what the model wants a tool to do, with the facts by which the kernel judges it.

Rule: the facts (canonical arguments, their hash, violations, labels, origins) are found before it is judged and recorded
with it, so an audit can compute them again.
"""

from enum import StrEnum

from remit.core.limits.authority import ValueOrigin
from remit.core.record import Record, Text
from remit.core.schema.json_schema import Violation
from remit.core.work.orders import OrderUsed

# Why a call is turned away that a person said no to, or that no person answered in time.
SAID_NO = "a person said no to exactly this call"
NOBODY_ANSWERED = "the question about exactly this call expired without an answer, which is a no"
# How the reason begins for which a call is over a rate of its user, whose other runs no journal of this one knows.
OVER_RATE = "over the rate of its user: "


class Provenance(StrEnum):
    """Where the control arguments of a call were found to come from."""

    UNTRACED = "untraced"
    # The gate objects; the call says why.
    UNBOUND = "unbound"
    # A person has said no to exactly this call.
    REFUSED = "refused"
    # The gate of provenance found every control value bound, and nothing else to object to.
    BOUND = "bound"


class ProposedCall(Record):
    """A tool call as the model proposed it (rung: intended), with its facts.

    What the gate of provenance found stands beside them: its objection and the reasons, the labels of what the run had
    read by then, and where each value comes from. `abridged` are the short arguments of a call whose arguments are too
    long to stand in a turn.
    """

    call_id: str
    tool: str
    arguments: Text
    arguments_hash: bytes
    violations: tuple[Violation, ...] = ()
    provenance: Provenance = Provenance.UNTRACED
    objection: str = ""
    reasons: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    origins: tuple[ValueOrigin, ...] = ()
    abridged: str = ""
    # Why it is turned away before it is judged: by a filter, or (OVER_RATE) since the user's runs have called too often.
    filtered: str = ""
    # The arguments in the model's own words, where it named fields of results instead of copying their values.
    said: Text = ""
    # The hash of the rules by which the gate judged.
    rules: str = ""
    # Something in the arguments looks like a secret; said only where the boundary looks for that.
    carries_secret: bool = False


def order_of(call: ProposedCall) -> OrderUsed | None:
    """The confirmed order that a call equals."""
    return call.origins[0].order if call.origins else None
