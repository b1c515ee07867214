"""Rates that hold for a user: how often all of their runs in this process have called tools of late.

Rule 1: that a call is over a rate of its user is a fact of the proposed call, as what the gate finds is: the kernel judges by
        it, and so does every replay.
Rule 2: calls are counted from the moment they are proposed, before their turn is written: of runs side by side, none
        overlooks another. What the turn did not let pass is taken back with it.
"""

from collections.abc import Iterable

from remit.core.journal.arrivals import Arrival, CodeReturned, ModelAnswered
from remit.core.journal.commands import CallTool, Command, StartChild
from remit.core.journal.proposed_call import OVER_RATE, ProposedCall
from remit.core.limits.boundary import Rate
from remit.core.record import Record, replace
from remit.kernel.authority.boundary_checks import ANY_TOOL
from remit.kernel.state import RunState, pinned

# Of so many users it is remembered; before more are, those are forgotten whose calls do not count any more.
USERS_MAX = 10_000


class _Called(Record):
    """A call that counts: when, of which tool; and by which run it was only proposed so far."""

    at_ms: int
    tool: str
    proposed_by: str = ""


class _User:
    """The calls of a user, and until when any of them counts."""

    __slots__ = ("calls", "until_ms")

    def __init__(self) -> None:
        self.calls: list[_Called] = []
        self.until_ms = 0


class UserRates:
    """Counts the calls of users over their runs."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, str], _User] = {}

    def counted(self, state: RunState, arrival: Arrival, at_ms: int) -> Arrival:
        """The arrival whose calls say which of them are over a rate of the user; from now on the others count, too."""
        rates = state.derived.user_rates
        if not rates or not isinstance(arrival, ModelAnswered | CodeReturned) or not arrival.calls:
            return arrival
        user, window_ms = self._user(state, at_ms), max(rate.per_ms for rate in rates)
        user.calls = [one for one in user.calls if one.at_ms > at_ms - window_ms and one.proposed_by != state.run_id]
        user.until_ms = max(user.until_ms, at_ms + window_ms)
        judged: list[ProposedCall] = []
        for call in arrival.calls:
            over = "" if call.filtered else _over(call, rates, user.calls, at_ms)
            judged.append(replace(call, filtered=over) if over else call)
            if not over:
                user.calls.append(_Called(at_ms, call.tool, state.run_id))
        return replace(arrival, calls=tuple(judged))

    def settle(self, state: RunState, orders: Iterable[Command], at_ms: int) -> None:
        """Let count what a turn has called, in place of what was proposed to it."""
        if not state.derived.user_rates:
            return
        user = self._user(state, at_ms)
        called = [order.tool for order in orders if isinstance(order, CallTool | StartChild) and order.tool]
        kept = [one for one in user.calls if one.proposed_by != state.run_id]
        user.calls = [*kept, *(_Called(at_ms, tool) for tool in called)]

    def _user(self, state: RunState, at_ms: int) -> _User:
        manifest = pinned(state)
        key = (manifest.request.tenant_id, manifest.started_by)
        if key not in self._users:
            if len(self._users) >= USERS_MAX:
                self._users = {name: user for name, user in self._users.items() if user.until_ms > at_ms}
            self._users[key] = _User()
        return self._users[key]


def as_counted(recorded: Arrival, completed: Arrival) -> Arrival:
    """An arrival that was made anew, with what was known of other runs by then: no journal but its own tells that."""
    if not isinstance(recorded, ModelAnswered | CodeReturned) or not isinstance(completed, type(recorded)):
        return completed
    over = {place: call.filtered for place, call in enumerate(recorded.calls) if call.filtered.startswith(OVER_RATE)}
    if not over:
        return completed
    calls = [replace(call, filtered=over.get(place, call.filtered)) for place, call in enumerate(completed.calls)]
    return replace(completed, calls=tuple(calls))


def _over(call: ProposedCall, rates: tuple[Rate, ...], calls: Iterable[_Called], at_ms: int) -> str:
    """Why a call is one too many; empty where it is not."""
    for rate in rates:
        if rate.tool not in (call.tool, ANY_TOOL):
            continue
        times = sum(one.at_ms > at_ms - rate.per_ms and rate.tool in (one.tool, ANY_TOOL) for one in calls)
        if times >= rate.times_max:
            of = "all tools" if rate.tool == ANY_TOOL else rate.tool
            return f"{OVER_RATE}{of}: {rate.times_max} calls within {rate.per_ms} ms are allowed to all of their runs"
    return ""
