"""Standing grants: a yes that a person gives to an effect before it is asked for, for more than one run.

Rule 1: a grant covers what its bytes say and nothing more: literals, exact texts, and free text that points nowhere. What it
        does not name must be empty, a default too, and the tool must take and do what it did when the grant first covered it.
Rule 2: it ends: by its moment, and after so many times or so much money.
Rule 3: what is left of it is a fold of entries in the journal of the store; each is written after the one before it, so two
        that draw at once are not both the last one. A question draws once, however often it is looked at.
Rule 4: who gives a grant approves by it: a person who may not approve what a run asks may not do so by a grant.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType

from remit.core.failure import RequestRejected
from remit.core.journal.canonical import canonical_json
from remit.core.limits.tools import ToolDefinition
from remit.core.record import Record, replace
from remit.core.work.orders import Exact, Free, Literal, Order, values_of, ways_of

GRANT_INVALID = "GRANT_INVALID"
GRANT_UNKNOWN = "GRANT_UNKNOWN"

# A thousand times is a program's work, and a program gives orders.
TIMES_MAX = 1_000
AMOUNT_MAX = 10**12
# A year: what is wanted for longer is a rule, and belongs into a boundary.
LASTS_MS_MAX = 366 * 24 * 3_600_000


class GrantDeed(StrEnum):
    """The deed that an entry of the journal records of a grant."""

    GIVEN = "given"
    REVOKED = "revoked"
    DRAWN = "drawn"


class Grant(Record):
    """An effect that may happen without another question, whose runs it is for, how often or for how much, until when."""

    order: Order
    until_ms: int
    # The person whose runs it is for; empty for every one of the tenant.
    who: str = ""
    tenant_id: str = ""
    # How often it covers a call; 0 for as often as the money lasts.
    times_max: int = 1
    # How much the calls may spend together, in the smallest unit of their currency; 0 where money does not count.
    amount_max: int = 0


class GrantEntry(Record):
    """An entry of the journal of the store about a grant. A grant is named by its tenant and its number there."""

    deed: GrantDeed
    grant_id: str = ""
    grant: Grant | None = None
    # The question that draws, and how much of the money.
    packet_id: str = ""
    amount: int = 0
    # The hash of the tool that is called.
    tool_hash: str = ""


class GrantStanding(Record):
    """A grant, who gave it when, which questions have drawn from it, and who has revoked it."""

    id: str
    grant: Grant
    by: str
    at_ms: int
    draws: tuple[tuple[str, int], ...] = ()
    revoked_by: str = ""
    # The hash of the tool that the first call was of.
    drawn_hash: str = ""

    def is_for_tool(self, tool_hash: str) -> bool:
        """Whether the tool is the one that the grant first covered a call of."""
        return tool_hash == (self.drawn_hash or tool_hash)

    @property
    def spent(self) -> int:
        """How much money was drawn."""
        return sum(amount for _, amount in self.draws)

    def why_not(self, amount: int, at_ms: int) -> str:
        """Why nothing of this amount may be drawn now; empty where it may."""
        grant = self.grant
        if self.revoked_by:
            return f"revoked by {self.revoked_by}"
        if at_ms >= grant.until_ms:
            return f"expired at {_day(grant.until_ms)}"
        if grant.times_max and len(self.draws) >= grant.times_max:
            return f"used up: times_max={grant.times_max}"
        if grant.amount_max and self.spent + max(amount, 1) > grant.amount_max:
            return f"used up: {self.spent} and {amount} exceed amount_max={grant.amount_max}"
        return ""


NO_GRANTS: Mapping[str, GrantStanding] = MappingProxyType({})


def grants_after(
    standing: Mapping[str, GrantStanding], entry: GrantEntry, *, by: str, at_ms: int
) -> Mapping[str, GrantStanding]:
    """How grants stand after an entry; one about a grant that was never given says nothing."""
    if entry.grant is not None:
        tenant = entry.grant.tenant_id
        # Counted within its tenant: how many others there are is told to no tenant.
        place = 1 + sum(one.grant.tenant_id == tenant for one in standing.values())
        given = GrantStanding(f"{tenant}:g{place}" if tenant else f"g{place}", entry.grant, by, at_ms)
        return MappingProxyType({**standing, given.id: given})
    found = standing.get(entry.grant_id)
    if found is None:
        return standing
    if entry.deed is GrantDeed.REVOKED:
        changed = replace(found, revoked_by=by)
    else:
        draws = (*found.draws, (entry.packet_id, entry.amount))
        changed = replace(found, draws=draws, drawn_hash=found.drawn_hash or entry.tool_hash)
    return MappingProxyType({**standing, found.id: changed})


def hash_of_tool(tool: ToolDefinition) -> str:
    """The hash of what a tool takes and does: another tool of the same name has another."""
    said = [
        tool.name,
        tool.version,
        tool.effect.value,
        tool.parameters,
        dict(tool.control_args),
        list(tool.trust.payload_args),
    ]
    return sha256(canonical_json(said)).hexdigest()


def told_grant(found: GrantStanding, packet_id: str) -> str:
    """A grant as the approval that rests on it is told."""
    place = [name for name, _ in found.draws].index(packet_id) + 1
    times = f"{place} of {found.grant.times_max}" if found.grant.times_max else f"use {place}"
    spent = sum(amount for _, amount in found.draws[:place])
    money = f", {spent} of {found.grant.amount_max} spent" if found.grant.amount_max else ""
    return f"grant {found.id}: {times}{money}, until {_day(found.grant.until_ms)}"


def check_grant(grant: Grant, at_ms: int) -> Grant:
    """Refuse a grant that says too little or covers too much."""
    for way in ways_of(grant.order):
        if way.note or grant.order.note:
            raise _rejected("if", way.note or grant.order.note, "no condition: nothing would check it")
        for name, wording in way.text:
            if not isinstance(wording, Exact) and wording != Free():
                raise _rejected(name, "a template or sources", 'an exact text, or {"free": []}')
    if any(not isinstance(value, Literal) for value in values_of(grant.order)):
        raise _rejected("args", "a look-up", "literals: what a look-up finds is not known beforehand")
    if not 0 <= grant.times_max <= TIMES_MAX or not 0 <= grant.amount_max <= AMOUNT_MAX:
        raise _rejected(
            "times", f"{grant.times_max} and {grant.amount_max}", f"up to {TIMES_MAX} times and {AMOUNT_MAX}"
        )
    if not grant.times_max and not grant.amount_max:
        raise _rejected("times", "0", "how often, or for how much money, it may be used")
    if not at_ms < grant.until_ms <= at_ms + LASTS_MS_MAX:
        raise _rejected("until", _day(grant.until_ms), "a moment within a year from now")
    return grant


def _day(at_ms: int) -> str:
    try:
        return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"  # No calendar has that moment.


def _rejected(key: str, value: str, way_out: str) -> RequestRejected:
    return RequestRejected(GRANT_INVALID, f"grant: {key}={value[:80]!r}; use {way_out}", {"key": key})
