"""Leases that expire: one that is not renewed goes to the next that asks, and no sooner; one that is renewed stays."""

from collections.abc import Callable, Coroutine
from random import Random
from typing import Any
from unittest import mock

import pytest

from remit.orchestrate.ports import Leases
from tests.simulation.seeded_loop import SeededLoop, Turns
from tests.simulation.shared_store import Ground, SharedLeases, SharedStore

RUN, LASTS_MS = "run", 1_000
# Waits for a part of the time that a lease lasts.
Wait = Callable[[float], Coroutine[Any, Any, None]]
Check = Callable[[Leases, Leases, Wait], Coroutine[Any, Any, None]]


async def a_lease_that_is_not_renewed_goes_to_the_next(one: Leases, other: Leases, wait: Wait) -> None:
    token = await one.take(RUN)
    assert token is not None, "a run without a holder cannot be taken"
    await wait(0.8)
    assert await other.is_held(RUN), "a lease ended before its time"
    assert await other.take(RUN) is None, "a lease went to another before its time"
    await wait(0.3)
    assert not await other.is_held(RUN), "a lease whose time is over is still held"
    later = await other.take(RUN)
    assert later is not None, "a lease whose time is over goes to no other"
    assert later > token, "the next holder has an older token"
    assert not await one.renew(RUN, token), "the holder before has renewed what went to another"
    await one.release(RUN, token)
    assert await one.is_held(RUN), "the holder before has let go of what went to another"


async def a_lease_that_is_renewed_stays(one: Leases, other: Leases, wait: Wait) -> None:
    token = await one.take(RUN)
    assert token is not None, "a run without a holder cannot be taken"
    for _ in range(4):
        await wait(0.6)
        assert await one.renew(RUN, token), "a lease that was renewed in time is lost"
        assert await other.take(RUN) is None, "a lease that was renewed in time went to another"


CHECKS: tuple[Check, ...] = (a_lease_that_is_not_renewed_goes_to_the_next, a_lease_that_is_renewed_stays)


def play(check: Check) -> None:
    """Play a check on two processes of the poor store, in time of its own."""
    loop, ground = SeededLoop(Random(1)), Ground()

    async def scene() -> None:
        async def pause() -> None:
            await Turns(1)

        async def wait(part: float) -> None:
            until_s = loop.time() + part * LASTS_MS / 1000
            future = loop.create_future()
            loop.call_at(until_s, future.set_result, None)
            await future

        one, other = (SharedStore(ground, name, pause, LASTS_MS).leases for name in ("one", "other"))
        await check(one, other, wait)

    try:
        loop.run_until_complete(scene())
    finally:
        loop.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_leases_of_the_poor_store_expire(check: Check) -> None:
    play(check)


async def _prolong_nothing(self: SharedLeases, run_id: str, token: int) -> bool:
    return self._is_current(run_id, token)


# Each way in which leases may expire wrongly, and the check that tells.
BROKEN: dict[str, tuple[Any, Check]] = {
    "they never expire": (
        mock.patch.object(SharedLeases, "_holder", lambda self, run_id: self._store.ground.leases.get(run_id)),
        a_lease_that_is_not_renewed_goes_to_the_next,
    ),
    "renewing prolongs nothing": (
        mock.patch.object(SharedLeases, "renew", _prolong_nothing),
        a_lease_that_is_renewed_stays,
    ),
    "they have no time": (
        mock.patch.object(SharedLeases, "_until_s", return_value=0.0),
        a_lease_that_is_not_renewed_goes_to_the_next,
    ),
    "they end at once": (
        mock.patch.object(SharedLeases, "_until_s", return_value=1e-9),
        a_lease_that_is_not_renewed_goes_to_the_next,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_leases_that_expire_wrongly_are_told(name: str) -> None:
    patch, check = BROKEN[name]
    with patch, pytest.raises(AssertionError):
        play(check)
