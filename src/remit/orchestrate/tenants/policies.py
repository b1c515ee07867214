"""Policies: which boundary holds for a principal, asked anew for every run that one starts.

Rule 1: a policy that cannot be read, in whatever way, lets nothing begin, unless its operator named a boundary that
        stands in for it. Such a run says in its first turn that it began without a policy, and why.
Rule 2: a boundary that was found is pinned by the run; what is changed later holds for the runs that begin then.
"""

import asyncio
from collections.abc import Awaitable, Callable

from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.run.principal import Principal

POLICY_UNREADABLE = "POLICY_UNREADABLE"
# A caller that starts a run waits for this long at most before it has begun.
POLICY_WAIT_MS_MAX = 5_000
_SHOWN_CHARS_MAX = 200

FindBoundary = Callable[[Principal], Awaitable[Boundary]]
StandIn = Callable[[Principal], Boundary | None]


def _nothing(principal: Principal) -> None:
    return None


class Policies:
    """Finds the boundary for a principal; `otherwise` gives the one that stands in where none can be read."""

    def __init__(
        self, find: FindBoundary, *, otherwise: StandIn = _nothing, wait_ms_max: int = POLICY_WAIT_MS_MAX
    ) -> None:
        self._find = find
        self._otherwise = otherwise
        self._wait_ms_max = wait_ms_max

    async def of(self, principal: Principal) -> tuple[Boundary, str]:
        """The boundary for a principal, and why the policy could not be read where it only stands in for one."""
        try:
            found: object = await asyncio.wait_for(self._find(principal), self._wait_ms_max / 1000)
        except TimeoutError:
            why = f"no answer within {self._wait_ms_max} ms"
        except Exception as error:  # noqa: BLE001 - whatever keeps a policy from being read keeps the run from beginning
            why = f"{type(error).__name__}: {error}"[:_SHOWN_CHARS_MAX]
        else:
            if isinstance(found, Boundary):
                return found, ""
            why = f"{type(found).__name__} was found, which is no boundary"
        stand_in = self._otherwise(principal)
        if stand_in is None:
            message = (
                f"the policy for user {principal.user_id!r} of tenant {principal.tenant_id!r} cannot be read ({why}), so "
                "nothing begins; mend what keeps the policies, then submit again"
            )
            raise RequestRejected(POLICY_UNREADABLE, message)
        return stand_in, why
