"""Which boundary a principal's run has, and what becomes of it when nobody can tell."""

import asyncio

import pytest

from remit.backend.memory.store import MemoryStore
from remit.core.failure import RequestRejected
from remit.core.limits.boundary import Boundary
from remit.core.run.principal import Principal, Scope
from remit.orchestrate.facade import System
from remit.orchestrate.setup.kit import Kit
from remit.orchestrate.tenants.policies import POLICY_UNREADABLE, FindBoundary, Policies
from tests.unit.orchestrate.house import request, scripted

ADA = Principal("acme", "ada", (Scope.START, Scope.READ))
FOUND, OPEN = Boundary(name="found"), Boundary(name="open")


class Noon:
    """A clock that stands still."""

    def now_ms(self) -> int:
        """Noon."""
        return 1_700_000_000_000


async def found(principal: Principal) -> Boundary:
    return FOUND


async def gone(principal: Principal) -> Boundary:
    raise ConnectionError("503")


async def silent(principal: Principal) -> Boundary:
    await asyncio.Event().wait()
    return FOUND


async def odd(principal: Principal) -> Boundary:
    return "allow"  # type: ignore[return-value]


UNREADABLE = {
    "gone": (gone, "ConnectionError: 503"),
    "silent": (silent, "no answer within 5 ms"),
    "odd": (odd, "str was"),
}


async def began(policies: Policies, principal: Principal | None = ADA) -> tuple[str, str]:
    """The boundary and the fault that a run began with."""

    async def no_kit(state: object) -> Kit:
        raise AssertionError

    ids = iter(range(9))
    system = System(
        MemoryStore(),
        clock=Noon(),
        find_kit=no_kit,
        new_id=lambda: f"r{next(ids)}",
        policies=policies,
    )
    try:
        acting = system if principal is None else system.acting_for(principal)
        run_id = await acting.submit(request(), scripted({"text": "done"}))
        manifest = (await system.state_of(run_id)).manifest
        assert manifest is not None
        return manifest.boundary.name, manifest.policy_fault
    finally:
        await system.close()


def test_a_run_has_the_boundary_that_is_found_for_its_principal() -> None:
    assert asyncio.run(began(Policies(found))) == ("found", "")


def test_the_local_principal_brings_its_own() -> None:
    assert asyncio.run(began(Policies(gone), None)) == ("standard", "")


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_policy_that_cannot_be_read_lets_nothing_begin(how: str) -> None:
    find, why = UNREADABLE[how]
    with pytest.raises(RequestRejected) as refused:
        asyncio.run(began(Policies(find, wait_ms_max=5)))
    assert refused.value.code == POLICY_UNREADABLE
    assert why in refused.value.message
    assert "'ada' of tenant 'acme'" in refused.value.message


@pytest.mark.parametrize("how", UNREADABLE)
def test_a_boundary_that_stands_in_is_told_of_in_the_first_turn(how: str) -> None:
    find: FindBoundary
    find, why = UNREADABLE[how]
    name, fault = asyncio.run(began(Policies(find, otherwise=lambda principal: OPEN, wait_ms_max=5)))
    assert name == "open"
    assert why in fault
