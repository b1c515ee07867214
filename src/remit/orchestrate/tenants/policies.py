"""Policies: which boundary holds for a principal, asked anew for every run that one starts.

Rule 1: a policy that cannot be read, in whatever way, lets nothing begin, unless its operator named a boundary that
        stands in for it. Such a run says in its first turn that it began without a policy, and why.
Rule 2: what the operator's functions raise is the operator's to read, in the log; principals and journals are told its kind.
Rule 3: a boundary that was found is pinned by the run; what is changed later holds for the runs that begin then.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from remit.core.clipped import clipped
from remit.core.declared_arguments import is_async
from remit.core.failure import RemitError, RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.limits.profiles import declared_boundary
from remit.core.raised import raised
from remit.core.run.principal import Principal
from remit.observe.logs import NO_RUN

_log = logging.getLogger(__name__)

POLICY_UNREADABLE = "POLICY_UNREADABLE"
POLICY_INVALID = "POLICY_INVALID"
# A caller that starts a run waits for this long at most before it has begun.
POLICY_WAIT_MS_MAX = 5_000

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
        if not (said is None or isinstance(said, Boundary) or (callable(said) and not is_async(said))):
            raise _invalid(
                "otherwise", said, "a boundary, or a plain function that is given a principal and not awaited"
            )
        if isinstance(said, Boundary):
            declared_boundary(said)
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
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever keeps a policy from being read keeps the run from beginning
            why = _raised("it", principal, error)
        else:
            if isinstance(found, Boundary):
                return found, ""
            why = f"{type(found).__name__} was found, which is no boundary"
        stand_in, lacking = self._stand_in(principal)
        if stand_in is None:
            message = (
                f"the policy for user {principal.user_id!r} of tenant {principal.tenant_id!r} cannot be read ({why}{lacking}), "
                "so nothing begins; mend what keeps the policies, then submit again"
            )
            raise RequestRejected(POLICY_UNREADABLE, message)
        return stand_in, why

    def _stand_in(self, principal: Principal) -> tuple[Boundary | None, str]:
        """The boundary that stands in for a policy; None where there is none, with why the one that was named gave none."""
        said = self._otherwise
        if callable(said):
            try:
                said = _as_given(said(principal))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - so does whatever keeps another one from standing in
                return None, f"; {_raised('what stands in for it', principal, error)}"
        if said is None or isinstance(said, Boundary):
            return said, ""
        return None, f"; {type(said).__name__} was to stand in, which is no boundary"


def _as_given(said: object) -> Any:
    """Read what a function gave as a boundary; a coroutine is closed, and is none."""
    if inspect.iscoroutine(said):
        said.close()
    return declared_boundary(said) if isinstance(said, Boundary) else said


def _raised(what: str, principal: Principal, error: BaseException) -> str:
    """What is said of a function of the operator that raised: in full in the log, by its kind to callers and journals."""
    kind = error.code if isinstance(error, RemitError) else type(error).__name__
    whose = f"the policy for user {principal.user_id!r} of tenant {principal.tenant_id!r}"
    _log.warning("%s: %s: %s raised %s", POLICY_UNREADABLE, whose, what, raised(error), extra=NO_RUN)
    return f"{what} raised {kind}, of which the log of the program tells more"


def check_policies(policies: Policies | None) -> Policies | None:
    """The policies of a system, if they are any; refuses what is none before anything is asked of it."""
    given: object = policies
    if given is not None and not isinstance(given, Policies):
        raise _invalid("policies", given, "made by Policies(find)")
    return policies


def _invalid(field: str, value: object, wanted: str) -> RequestRejected:
    return RequestRejected(POLICY_INVALID, f"{field}={clipped(value)} is not {wanted}", {"field": field})
