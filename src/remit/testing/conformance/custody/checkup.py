"""What the Checkup of every store must say of it.

A check is a coroutine function. It opens an empty store that has a key with the function it is given, whose argument is the
clock that the store shall go by, uses it, and raises AssertionError with a sentence when it does not do what is relied on. Run
each of CHECKUP_CHECKS against yours, with any test runner. What can be wrong with the ground that a store stands on (files,
owners, a disk) is its own, and has to be broken by tests of your own.
"""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from remit.core.journal.codec import hash_turn
from remit.core.journal.signing import sign_head
from remit.core.journal.storage import STORE_BEHIND_ITS_LOG, Barrier, RunListing, Warrant
from remit.observe.checkup import Check, CheckState
from remit.orchestrate.loop.signatures import signed_journal
from remit.orchestrate.ports import Store
from remit.testing.conformance.custody.retention import OpenStore, Time
from remit.testing.conformance.in_words import in_words
from remit.testing.conformance.sample_turns import add

CheckupCheck = Callable[[OpenStore], Coroutine[Any, Any, None]]


async def a_store_is_looked_at_under_names(open_store: OpenStore) -> None:
    """Each once, the store itself first; what is not fine comes with the way out."""
    async with open_store(Time().now_ms) as store:
        found = await store.checkup.look()
        names = [check.name for check in found]
        assert names[:1] == ["store"], f"the store itself is not looked at first: {names}"
        assert len(set(names)) == len(names), f"something is looked at twice: {names}"
        silent = [check.name for check in found if check.state is not CheckState.OK and not check.way_out]
        assert not silent, f"{silent} are not fine, and name no way out"


async def a_store_that_is_well_has_no_problem(open_store: OpenStore) -> None:
    """Neither a new one, nor one with runs of all kinds, nor one that runs were deleted from."""
    async with open_store(Time().now_ms) as store:
        assert _problems(await store.checkup.look()) == [], "a new store has problems"
        await _runs(store)
        assert _problems(await store.checkup.look()) == [], "a store in which nothing is wrong has problems"
        await store.retention.delete("ended")
        assert _problems(await store.checkup.look()) == [], "a run was deleted on purpose, and that is a problem"


async def the_store_says_how_many_runs_it_holds(open_store: OpenStore) -> None:
    """How many are open, and how many of those wait for a person."""
    async with open_store(Time().now_ms) as store:
        await _runs(store)
        store_check, *_ = await store.checkup.look()
        expected = "3 runs, 2 open, 1 wait for a person"
        assert expected in store_check.seen, f"the store holds {expected}, and was seen as {store_check.seen!r}"


async def signed_turns_that_are_missing_are_a_problem(open_store: OpenStore) -> None:
    """With the code that such a run is refused with, and a way out."""
    async with open_store(Time().now_ms) as store:
        assert store.key is not None, "the suite is played on a store that has a key"
        head = sign_head(store.key.signer, run_id="run", seq=5, head=hash_turn(b"5"), ending="")
        await add(store.journal, "run", b"0", Barrier(), RunListing(1), Warrant(head=head))
        problems = _problems(await store.checkup.look())
        assert [check.code for check in problems] == [STORE_BEHIND_ITS_LOG], (
            f"signed turns are missing, and: {problems}"
        )
        assert problems[0].way_out, "signed turns are missing, and no way out is named"


async def looking_changes_nothing(open_store: OpenStore) -> None:
    """A second check-up sees the same, and the driver of a run goes on."""
    async with open_store(Time().now_ms) as store:
        await _runs(store)
        token = await store.leases.take("open") or 0
        before = await _standing(store)
        first = await store.checkup.look()
        second = await store.checkup.look()
        assert await _standing(store) == before, "a check-up changed what the store holds"
        states = [(check.name, check.state) for check in first]
        assert [(check.name, check.state) for check in second] == states, (
            "a second look sees what the first has changed"
        )
        assert await store.leases.renew("open", token), "a check-up took a run from its holder"
        await add(store.journal, "open", b"1", Barrier(), None, Warrant(token))


CHECKUP_CHECKS: Sequence[CheckupCheck] = in_words(
    a_store_is_looked_at_under_names,
    a_store_that_is_well_has_no_problem,
    the_store_says_how_many_runs_it_holds,
    signed_turns_that_are_missing_are_a_problem,
    looking_changes_nothing,
)


async def _runs(store: Store) -> None:
    """A run that has ended, one that waits for a person, and one that goes on."""
    standings = {"ended": Barrier("SUCCESS"), "waiting": Barrier(waiting_for="MISSING_INFO"), "open": Barrier()}
    for run_id, barrier in standings.items():
        await signed_journal(store.journal, store.key).append(run_id, b"0", -1, barrier, RunListing(1))


def _problems(found: Sequence[Check]) -> list[Check]:
    return [check for check in found if check.state is CheckState.PROBLEM]


async def _standing(store: Store) -> tuple[object, ...]:
    """What a store holds, as far as its ports say."""
    entries = list(await store.catalogue.entries())
    turns = [list(await store.journal.read(entry.run_id)) for entry in entries]
    heads = [list(await store.log.heads(entry.run_id)) for entry in entries]
    return entries, turns, heads, await store.log.losses(), list(await store.inbox.pending(after=0))
