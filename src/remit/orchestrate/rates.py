"""Rates that hold for a user: how often all of their runs in this process have called tools of late.

Rule 1: what other runs of the user have called is a fact of a proposed call, so that the kernel judges it and every replay
        judges it the same.
Rule 2: calls are counted from the moment they are judged, before their turn is written: of runs side by side, none
        overlooks another. A call that was not let pass is taken back with its turn.
"""

from collections.abc import Iterable

from remit.core.arrivals import Arrival, CodeReturned, ModelAnswered, ProposedCall
from remit.core.boundary import Rate, Whose
from remit.core.commands import CallTool, Command, StartChild
from remit.core.record import replace
from remit.kernel.policy import ANY_TOOL
from remit.kernel.state import RunState, pinned

# Of so many users it is remembered; before more are, those are forgotten whose calls count for nobody any more.
USERS_MAX = 10_000


class _User:
    """The calls of a user that still count: when, of which tool, by which run, and at which of its turns."""

    __slots__ = ("calls", "until_ms")

    def __init__(self) -> None:
        self.calls: list[tuple[int, str, str, int]] = []
        self.until_ms = 0


class UserRates:
    """Counts the calls of users over their runs."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, str], _User] = {}

    def counted(self, state: RunState, arrival: Arrival, at_ms: int) -> Arrival:
        """The arrival whose calls say what other runs of the user have called of late; from now on they count, too."""
        if not isinstance(arrival, ModelAnswered | CodeReturned) or not arrival.calls or not (rates := _rates(state)):
            return arrival
        user, window_ms = self._user(state, at_ms), max(rate.per_ms for rate in rates)
        self._take_back(user, state)
        user.calls = [call for call in user.calls if call[0] > at_ms - window_ms or call[2] == state.run_id]
        user.until_ms = max(user.until_ms, at_ms + window_ms)
        others = [call for call in user.calls if call[2] != state.run_id]
        calls = tuple([_told(call, rates, others, at_ms) for call in arrival.calls])
        user.calls += [(at_ms, call.tool, state.run_id, state.seq + 1) for call in arrival.calls]
        return replace(arrival, calls=calls)

    def settle(self, state: RunState, orders: Iterable[Command], at_ms: int) -> None:
        """Let count what a turn has called, in place of what was proposed to it."""
        if state.manifest is None or not _rates(state):
            return
        user = self._user(state, at_ms)
        self._take_back(user, state)
        called = [order.tool for order in orders if isinstance(order, CallTool | StartChild) and order.tool]
        # Of a turn that is written, whatever comes after it takes nothing back.
        user.calls += [(at_ms, tool, state.run_id, -1) for tool in called]

    def _user(self, state: RunState, at_ms: int) -> _User:
        manifest = pinned(state)
        key = (manifest.request.tenant_id, manifest.started_by)
        if key not in self._users:
            if len(self._users) >= USERS_MAX:
                self._users = {name: user for name, user in self._users.items() if user.until_ms > at_ms}
            self._users[key] = _User()
        return self._users[key]

    def _take_back(self, user: _User, state: RunState) -> None:
        """Forget what was only proposed by a run."""
        user.calls = [call for call in user.calls if call[2] != state.run_id or call[3] < 0]


def as_counted(recorded: Arrival, completed: Arrival) -> Arrival:
    """An arrival that was made anew, with what other runs had called by then: that stands in no journal but where it was told."""
    if not isinstance(recorded, ModelAnswered | CodeReturned) or not isinstance(completed, type(recorded)):
        return completed
    told = [call.elsewhere for call in recorded.calls]
    if not any(told) or len(told) != len(completed.calls):
        return completed
    pairs = zip(completed.calls, told, strict=True)
    return replace(completed, calls=tuple([replace(call, elsewhere=counts) for call, counts in pairs]))


def _rates(state: RunState) -> tuple[Rate, ...]:
    rates = pinned(state).boundary.rates
    return tuple([rate for rate in rates if rate.whose is Whose.USER]) if rates else ()


def _told(
    call: ProposedCall, rates: tuple[Rate, ...], others: list[tuple[int, str, str, int]], at_ms: int
) -> ProposedCall:
    counts = [
        (
            rate.tool,
            rate.per_ms,
            sum(when > at_ms - rate.per_ms and rate.tool in (tool, ANY_TOOL) for when, tool, _, _ in others),
        )
        for rate in rates
        if rate.tool in (call.tool, ANY_TOOL)
    ]
    return replace(call, elsewhere=tuple([count for count in counts if count[2]]))
