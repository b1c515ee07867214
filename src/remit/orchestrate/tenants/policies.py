"""Policies: which boundary holds for a principal, asked anew for every run that one starts.

Rule 1: a policy that cannot be read, in whatever way, lets nothing begin, unless its operator named a boundary that
        stands in for it. Such a run says in its first turn that it began without a policy, and why.
Rule 2: a boundary that was found is pinned by the run; what is changed later holds for the runs that begin then.
"""

import asyncio
from collections.abc import Awaitable, Callable

from remit.core.clipped import clipped
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.profiles import declared_boundary
from remit.core.raised import raised
from remit.core.run.principal import Principal

POLICY_UNREADABLE = "POLICY_UNREADABLE"
POLICY_INVALID = "POLICY_INVALID"
# A caller that starts a run waits for this long at most before it has begun.
POLICY_WAIT_MS_MAX = 5_000
_SHOWN_CHARS_MAX = 200

FindBoundary = Callable[[Principal], Awaitable[Boundary]]
StandIn = Callable[[Principal], Boundary | None]


class Policies:
    """Finds the boundary for a principal; `otherwise` is the one that stands in where none can be read, or gives it."""

    def __init__(
        self,
        find: FindBoundary,
        *,
        otherwise: Boundary | StandIn | None = None,
        wait_ms_max: int = POLICY_WAIT_MS_MAX,
    ) -> None:
        said: object = otherwise
        if not callable(find):
            raise _invalid("find", find, "a function that is given a principal and awaited")
        if not (said is None or isinstance(said, Boundary) or callable(said)):
            raise _invalid("otherwise", said, "a boundary, or a function that is given a principal")
        if type(wait_ms_max) is not int or wait_ms_max < 1:
            raise _invalid("wait_ms_max", wait_ms_max, "a whole number of milliseconds above 0")
        self._find = find
        self._otherwise = otherwise
        self._wait_ms_max = wait_ms_max

    async def of(self, principal: Principal) -> tuple[Boundary, str]:
        """The boundary for a principal, and why the policy could not be read where it only stands in for one."""
        try:
            async with asyncio.timeout(self._wait_ms_max / 1000):
                found: object = await self._find(principal)
            found = declared_boundary(found) if isinstance(found, Boundary) else found
        except TimeoutError:
            why = f"no answer within {self._wait_ms_max} ms"
        except Exception as error:  # noqa: BLE001 - whatever keeps a policy from being read keeps the run from beginning
            why = raised(error)[:_SHOWN_CHARS_MAX]
        else:
            if isinstance(found, Boundary):
                return found, ""
            why = f"{type(found).__name__} was found, which is no boundary"
        stand_in = self._otherwise(principal) if callable(self._otherwise) else self._otherwise
        if not isinstance(stand_in, Boundary):
            message = (
                f"the policy for user {principal.user_id!r} of tenant {principal.tenant_id!r} cannot be read ({why}), so "
                "nothing begins; mend what keeps the policies, then submit again"
            )
            raise RequestRejected(POLICY_UNREADABLE, message)
        return stand_in, why


def check_policies(policies: Policies | None) -> Policies | None:
    """The policies of a system, if they are any; refuses what is none before anything is asked of it."""
    given: object = policies
    if given is not None and not isinstance(given, Policies):
        raise _invalid("policies", given, "made by Policies(find)")
    return policies


def _invalid(field: str, value: object, wanted: str) -> RequestRejected:
    return RequestRejected(POLICY_INVALID, f"{field}={clipped(value)} is not {wanted}", {"field": field})
